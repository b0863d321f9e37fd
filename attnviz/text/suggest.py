"""Suggestions for misspelled names in error messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def suggest(typed: str, known: Iterable[str], shown: Iterable[str] | None = None) -> str:
    """Return the end of a message: the most similar known name, or a list of names.

    Such as ": did you mean heatmap?" or ": there are png, svg, pdf". Case is ignored.
    """
    names = {name.casefold(): name for name in reversed([*known])}
    meant = typed.strip().casefold()
    near = [meant] if meant in names else difflib.get_close_matches(meant, names, 1)
    if near:
        return f": did you mean {names[near[0]]}?"
    listed = ", ".join(reversed(names.values()) if shown is None else shown)
    return f": there are {listed}" if listed else ""
