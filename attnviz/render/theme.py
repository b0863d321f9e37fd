"""Themes: the colours of the paper, and of everything that is drawn on it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float, UInt8

from attnviz.errors import AttnvizWarning
from attnviz.look import DEFAULT_PALETTE, Palette
from attnviz.look import Theme as ThemeName
from attnviz.render import palette as palettes
from attnviz.render.palette import Table, blank_below, contrast, hexed, levels, rgb_of

# Cells near 0 stay blank if the contrast of the palette's first colour and the paper is below this.
NEAR = 1.5
BLIND = 2.0
"""The least contrast of a palette's strongest colour with the paper; below it, large weights can hardly be seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """The colours of a picture, in hexadecimal."""

    name: Literal["light", "dark"]
    paper: str  # the background, which cells of weight 0 have too
    ink: str  # text
    quiet: str  # less important text
    accent: str  # a ring around what the reader should see first
    frame: str  # lines around panels
    grid: str  # lines behind charts
    shade: str  # what has no value: masked cells, heads without a role
    hatch: str  # the lines across masked cells
    series: tuple[str, ...]  # lines and bars of charts, in their order

    @property
    def is_dark(self) -> bool:
        """Whether the paper is dark."""
        return self.name == "dark"

    @property
    def masked(self) -> dict[str, Any]:
        """The look of masked cells, whose weights were never computed, as arguments of a Matplotlib patch."""
        return {
            "hatch": "////",
            "facecolor": self.shade,
            "edgecolor": self.hatch,
            "linewidth": 0,
        }

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of Matplotlib for what is drawn without a colour of its own."""
        return {
            "text.color": self.ink,
            "axes.facecolor": self.paper,
            "axes.edgecolor": self.frame,
            "axes.labelcolor": self.ink,
            "xtick.color": self.ink,
            "ytick.color": self.ink,
        }

    def colours(self, palette: Palette = DEFAULT_PALETTE) -> Table:
        """Return the colours of weights, from 0 to the largest, as `attnviz.render.palette.colours` does."""
        return self._on_paper(palettes.colours(palette, on_dark=self.is_dark))

    def diverging(self) -> Table:
        """Return the colours of signed numbers: blue below 0, red above 0, and the paper at 0."""
        return self._on_paper(palettes.diverging(on_dark=self.is_dark))

    def has_blanks(self, table: UInt8[np.ndarray, "level channel"]) -> bool:
        """Return whether cells of weight near 0 stay blank, because the palette begins near the paper."""
        return contrast(hexed(table[0, :3]), self.paper) < NEAR

    def pixels(
        self,
        weights: Float[np.ndarray, "row column"],
        top: float,
        table: UInt8[np.ndarray, "level channel"],
        *,
        log: bool = False,
    ) -> UInt8[np.ndarray, "row column channel"]:
        """Return the colours of weights on a scale up to `top`; see `painted`."""
        return self.painted(
            levels(weights, top, log=log), weights < blank_below(top, log=log), table
        )

    def painted(
        self,
        levels: UInt8[np.ndarray, "row column"],
        blanks: Bool[np.ndarray, "row column"],
        table: UInt8[np.ndarray, "level channel"],
    ) -> UInt8[np.ndarray, "row column channel"]:
        """Return the colours of levels of a palette; those of `blanks` are the paper, or that of 0 (`has_blanks`)."""
        rgb: np.ndarray = table[levels]
        rgb[blanks] = table[0]
        if self.has_blanks(table):
            rgb[blanks, :3] = rgb_of(self.paper)
        return rgb

    def readable(self, colour: str) -> str:
        """Return the colour, made darker or lighter until it can be read as text on the paper."""
        return palettes.readable(colour, dark=self.is_dark)

    def _on_paper(self, table: Table) -> Table:
        """Return a palette that begins at black or white, mixed so that black or white becomes the paper."""
        if not self.is_dark:
            return table
        share = (255 - table.astype(float)) / 255
        mixed: Table = (255 - share * (255 - rgb_of(self.paper))).round().astype(np.uint8)
        return mixed


LIGHT = Theme(
    name="light",
    paper="#ffffff",
    ink="#111111",
    quiet="#555555",
    accent="#b2450a",
    frame="#bbbbbb",
    grid="#e6e6e6",
    shade="#f4f4f4",
    hatch="#c8c8c8",
    # Okabe and Ito's colours, which colour-blind readers can tell apart (https://jfly.uni-koeln.de/color/), dark ones
    # first. Their light blue and orange are darker here, for a contrast of 3 with the paper.
    series=(
        "#0072b2",
        "#d55e00",
        "#009e73",
        "#cc79a7",
        "#4a9bc8",
        "#c38700",
        "#000000",
        "#7f7f7f",
    ),
)
# The colours of a dark web page (`html/page.css` and `html/colours.js`), so that page and picture agree.
DARK = Theme(
    name="dark",
    paper="#0f1315",
    ink="#e9eef0",
    quiet="#9daab0",
    accent="#ffa45c",
    frame="#445055",
    grid="#20272b",
    shade="#181e21",
    hatch="#333d42",
    series=(
        "#56b4e9",
        "#e69f00",
        "#2dd4a7",
        "#e29cc4",
        "#8fb8ff",
        "#f0e442",
        "#e9eef0",
        "#9daab0",
    ),
)


def theme_of(name: ThemeName, palette: Palette = DEFAULT_PALETTE) -> Theme:
    """Return the theme of a picture that is drawn in this palette; it is light unless a dark one is asked for.

    An `AttnvizWarning` says if the palette's strongest colour can hardly be told from the paper. Raises
    SelectionError: there is no such palette.
    """
    theme = DARK if name == "dark" else LIGHT
    strongest = hexed(theme.colours(palette)[-1])
    if contrast(strongest, theme.paper) >= BLIND:
        return theme
    shown = palette if isinstance(palette, str) else "given"
    forward = shown.removesuffix("_r")
    is_seen = forward != shown and contrast(hexed(theme.colours(forward)[-1]), theme.paper) >= BLIND
    warnings.warn(
        f"in the palette {shown} the largest weight, {strongest}, hardly differs from {theme.name} paper (contrast "
        f"{contrast(strongest, theme.paper):.1f}): use {forward if is_seen else DEFAULT_PALETTE}",
        AttnvizWarning,
        stacklevel=4,
    )
    return theme
