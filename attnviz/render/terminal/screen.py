"""The abilities of a terminal: its width, colours and characters; and those of the one at hand."""

from __future__ import annotations

import functools
import math
import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.style import Style
from rich.text import Text

from attnviz.render.palette import (
    DEFAULT,
    LEVELS,
    MIDDLE,
    colours,
    diverging,
    has_blanks,
    hexed,
    ink,
    signed_levels,
)

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """The abilities of a terminal."""

    width: int = 80  # in cells
    # whether cells have 24-bit or 256 colours of the palette, or are shaded (16 or none)
    colour: bool = True
    dark: bool = True  # whether its background is dark
    unicode: bool = True  # whether it can show all characters
    encoding: str = "ascii"  # those that it can show otherwise
    palette: str = DEFAULT  # one of `attnviz.render.names.PALETTES`, or any other colormap's name

    @property
    def shades(self) -> str:
        """Five steps from nothing to full, which stand for weights on screens without colour, never for signs."""
        return " ░▒▓█" if self.unicode else " .:*#"

    @property
    def dot(self) -> str:
        """The mark of a weight that is too small for a shade."""
        return "·" if self.unicode else "-"

    @property
    def has_blanks(self) -> bool:
        """Whether cells of nearly no weight stay blank; else they have the palette's colour of 0."""
        return not self.colour or has_blanks(
            colours(self.palette, on_dark=self.dark), on_dark=self.dark
        )

    def language(self, wanted: str) -> str:
        """Return the wanted language, or English where the terminal cannot show Korean."""
        return wanted if self.unicode or "가".encode(self.encoding, "ignore") else "en"

    def shade(self, level: int) -> str:
        """Return the shade of a palette level, for screens without colours."""
        return self.shades[math.ceil(level / (LEVELS - 1) * 4 - 0.5)]

    def paint(self, level: int) -> Style:
        """Return a palette level as a background, with a readable colour of text."""
        return _styles(self.palette, self.dark)[level]

    def paint_signed(self, value: float, top: float) -> Style:
        """Return a background for a signed number, red above 0 and blue below, on a scale up to ``top``.

        Zero, and any number on a screen without colour, has no background: its sign tells enough.
        """
        level = int(signed_levels(np.array([value]), top)[0])
        return _styles(None, self.dark)[level] if self.colour and level != MIDDLE else Style()

    def scale_bar(self, cells: int, *, signed: bool = False) -> Text:
        """Return the colours from 0 up in so many cells, or the shades where there are none, and a space.

        For signed numbers the colours go from the lowest to the highest; without colours the bar is empty.
        """
        if not self.colour:
            return Text("" if signed else f"[{self.shades}] ", no_wrap=True)
        styles = _styles(None if signed else self.palette, self.dark)
        bar = Text(no_wrap=True)
        for level in np.linspace(0, LEVELS - 1, cells).round():
            bar.append(" ", Style(bgcolor=styles[int(level)].bgcolor))
        return bar.append(" ")


@functools.cache
def _styles(palette: str | None, on_dark: bool) -> list[Style]:
    """Return a style for each level of a palette, or of signed numbers; each sets both its colours."""
    table = diverging(on_dark=on_dark) if palette is None else colours(palette, on_dark=on_dark)
    return [
        Style(color="#ffffff" if white else "#000000", bgcolor=hexed(colour))
        for colour, white in zip(table, ink(table), strict=True)
    ]


def console_here() -> Console:
    """Return standard output as a console as wide as the window, in colour where that is wanted.

    ``NO_COLOR`` and ``FORCE_COLOR`` of the environment say so, else the terminal does.
    """
    from rich.console import Console

    plain = bool(os.environ.get("NO_COLOR"))  # Rich still prints bold and dim
    forced = not plain and bool(os.environ.get("FORCE_COLOR"))
    usual: dict[str, Any] = {"highlight": False, "emoji": False, "markup": False, "no_color": plain}
    console = Console(
        color_system=None if plain else "auto", force_terminal=forced or None, **usual
    )
    if forced and console.color_system not in {"256", "truecolor"}:
        # A pipe does not say what it can show.
        console = Console(color_system="256", force_terminal=True, **usual)
    if console.is_dumb_terminal and console.is_terminal:
        # Rich takes 80 columns there, whatever the window has.
        console.width = shutil.get_terminal_size().columns
    return console


def screen_of(console: Console, palette: str) -> Screen:
    """Return the screen that a console writes to.

    Its background is taken for dark, unless ``COLORFGBG`` says otherwise or a notebook shows it.
    """
    number = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    return Screen(
        width=console.width,
        colour=console.color_system in {"256", "truecolor"} and not console.no_color,
        dark=number not in {"7", "15"} and not in_notebook(),
        unicode=console.encoding.lower().startswith("utf"),
        encoding=console.encoding,
        palette=palette,
    )


def in_notebook() -> bool:
    """Return whether a cell of a notebook runs the command."""
    # IPython's kernels say so, and no terminal of today.
    return os.environ.get("TERM") == "xterm-color"
