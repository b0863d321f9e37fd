"""The nearest of the names that are known, for messages about one that is not there."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def suggest(typed: str, known: Iterable[str], shown: Iterable[str] | None = None) -> str:
    """Return the end of a message: the nearest of those known, or else those to be shown.

    Such as ": did you mean heatmap?" or ": there are png, svg, pdf". Upper and lower case are one.
    """
    names = {name.casefold(): name for name in reversed([*known])}
    meant = typed.strip().casefold()
    near = [meant] if meant in names else difflib.get_close_matches(meant, names, 1)
    if near:
        return f": did you mean {names[near[0]]}?"
    listed = ", ".join(reversed(names.values()) if shown is None else shown)
    return f": there are {listed}" if listed else ""
