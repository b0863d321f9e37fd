"""Names that somebody typed and that are not there: what was probably meant."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from attnviz.errors import SettingsError

OTHERWISE = {"palette": "cmap", "colormap": "cmap"}
"""What the command line or another library calls a setting of Python."""


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


def check_settings(given: Iterable[str], known: Iterable[str], what: str) -> None:
    """Refuse a setting that is not among those known, by a `SettingsError`; `what` has them, such as "attend"."""
    known = [*known]
    for name in given:
        if name not in known:
            meant = OTHERWISE.get(name, name)
            raise SettingsError(f"{what} has no setting {name!r}{did_you_mean(meant, known)}")


def arguments(function: Callable[..., Any]) -> list[str]:
    """The names of what a function takes, or a group of settings."""
    from inspect import Parameter, signature

    return [one.name for one in signature(function).parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
