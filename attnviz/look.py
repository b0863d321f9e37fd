"""How results are shown: one value that the command line or a public function builds, and that views take whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from attnviz.errors import SelectionError, SettingsError

Palette: TypeAlias = Any
"""A palette: a name of Matplotlib's or seaborn's, a colormap, or a list of colours."""
Scale: TypeAlias = Literal["shared", "panel", "log"]
Style: TypeAlias = Literal["sheet", "slides", "paper"]
Theme: TypeAlias = Literal["auto", "light", "dark"]
DEFAULT_PALETTE = "teal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How a result is shown.

    Raises SelectionError: there is no such scale; SettingsError: no such style or theme, or an impossible
    resolution or size.
    """

    palette: Palette = DEFAULT_PALETTE
    # The weight with the strongest colour: the largest of all heads (``shared``; ``log`` with a logarithmic scale), or
    # of each head (``panel``).
    scale: Scale = "shared"
    style: Style = "sheet"  # what pictures are for
    theme: Theme = "auto"  # light or dark
    dpi: int | None = None  # dots per inch of pictures; None is that of the style
    # width and height of pictures in inches; None is that of the style
    figsize: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.palette is None:
            object.__setattr__(self, "palette", DEFAULT_PALETTE)
        if self.scale not in get_args(Scale):
            raise SelectionError(
                f"the scale must be one of {', '.join(get_args(Scale))}, not {self.scale!r}"
            )
        for name, kind in (("style", Style), ("theme", Theme)):
            value = getattr(self, name)
            if value not in get_args(kind):
                raise SettingsError(
                    f"{value!r} is not one of {', '.join(map(repr, get_args(kind)))}", name
                )
