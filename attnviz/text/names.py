"""Names that somebody typed and that are not there: what was probably meant."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(typed: str, known: Iterable[str], shown: Iterable[str] | None = None) -> str:
    """The end of a message about a name that is not there: the nearest of those known, or else those to be shown.

    Such as ": did you mean heatmap?" or ": there are png, svg, pdf"; the size of letters does not matter.
    """
    import difflib

    names = {name.casefold(): name for name in reversed([*known])}
    meant = typed.strip().casefold()
    near = [meant] if meant in names else difflib.get_close_matches(meant, names, 1)
    if near:
        return f": did you mean {names[near[0]]}?"
    there = ", ".join(reversed(names.values()) if shown is None else shown)
    return f": there are {there}" if there else ""
