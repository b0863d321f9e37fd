"""Names that somebody typed and that are not there: what was probably meant."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(typed: str, known: Iterable[str], shown: Iterable[str] | None = None) -> str:
    """The end of a message about a name that is not there: the nearest one, or else all that there are.

    Args:
        typed: what was typed; the size of its letters does not matter.
        known: the names that there are.
        shown: those to list where none is near; None lists all of them.

    Returns:
        Such as ": did you mean heatmap?" or ": there are png, svg, pdf".
    """
    import difflib

    names = {name.casefold(): name for name in reversed([*known])}
    meant = typed.strip().casefold()
    near = [meant] if meant in names else difflib.get_close_matches(meant, names, 1)
    if near:
        return f": did you mean {names[near[0]]}?"
    there = ", ".join(reversed(names.values()) if shown is None else shown)
    return f": there are {there}" if there else ""
