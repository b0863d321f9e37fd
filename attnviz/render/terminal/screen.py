"""What a terminal can show: its width, its colours, its characters."""

from __future__ import annotations

from dataclasses import dataclass

from rich.style import Style
from rich.text import Text

from attnviz.render.palette import DEFAULT, LEVELS, colours, hexed

READABLE = 100
"""Cells that a line of prose may have; longer lines are hard to come back from."""
ASCII = str.maketrans({"“": '"', "”": '"', "·": "-", "…": "~", "→": ">", "␣": "_"})
"""What stands for the marks of attnviz on a screen that knows no more than ASCII; each is one cell, as its likeness."""
LIKENESS = ASCII | str.maketrans({"×": "x", "−": "-", "–": "-", "’": "'", "√": "v"})  # noqa: RUF001 - these are meant
"""What stands for the marks of attnviz on a screen that knows no more than ASCII."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """What a terminal can show.

    Attributes:
        width: in cells.
        colour: whether cells can be coloured from the palette (24-bit and 256 colours), or are shaded (16 or none).
        dark: whether its background is dark.
        unicode: whether it can show more than ASCII.
        palette: one of `attnviz.render.palette.PALETTES`.
    """

    width: int = 80
    colour: bool = True
    dark: bool = True
    unicode: bool = True
    palette: str = DEFAULT

    @property
    def shades(self) -> str:
        """Five steps from nothing to full, for screens without colour."""
        return " ░▒▓█" if self.unicode else " .:*#"


def scale_bar(screen: Screen, cells: int) -> Text:
    """The colours from 0 up in so many cells, or the shades where there are none, and a space."""
    bar = Text(no_wrap=True)
    if screen.colour:
        table = colours(screen.palette, on_dark=screen.dark)
        for step in range(0, LEVELS, LEVELS // cells):
            bar.append(" ", Style(bgcolor=hexed(table[step])))
        return bar.append(" ")
    return bar.append(f"[{screen.shades}] ")
