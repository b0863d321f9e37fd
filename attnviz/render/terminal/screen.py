"""The capabilities of a terminal: width, colours and characters."""

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

from attnviz.look import DEFAULT_PALETTE, Theme
from attnviz.render.palette import (
    LEVELS,
    MIDDLE,
    colours,
    diverging,
    hexed,
    in_256,
    signed_levels,
    terminal_colours,
    text_colours,
)

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """The capabilities of a terminal."""

    width: int = 80  # in cells
    # Whether cells have colours of the palette (256 or 24-bit); otherwise they are shaded (16 colours or none).
    colour: bool = True
    # Whether the background is dark; None if that is unknown, and cells are those of a light one.
    dark: bool | None = True
    # Whether each cell can have any colour; otherwise one of 256.
    true_colour: bool = True
    unicode: bool = True  # whether all characters can be shown
    # The encoding of the characters that can be shown, if `unicode` is false.
    encoding: str = "ascii"
    # One of `attnviz.render.names.PALETTES`, or the name of another colormap.
    palette: str = DEFAULT_PALETTE

    @property
    def shades(self) -> str:
        """Five characters from empty to full, which show weights on screens without colour; never used for signs."""
        return " ░▒▓█" if self.unicode else " .:*#"

    @property
    def dot(self) -> str:
        """The mark of a weight that is too small for a shade."""
        return "·" if self.unicode else "-"

    @property
    def hatch(self) -> str:
        """The mark of a cell that a mask hides."""
        return "╱" if self.unicode else "/"

    @property
    def fallback(self) -> str | None:
        """The language of a terminal that cannot show Korean letters, English; None for all others."""
        return None if self.unicode or "가".encode(self.encoding, "ignore") else "en"

    def shade(self, level: int) -> str:
        """Return the shade of a palette level, for screens without colours."""
        return self.shades[math.ceil(level / (LEVELS - 1) * 4 - 0.5)]

    def paint(self, level: int, *, signed: bool = False) -> Style:
        """Return a style with a level as background, of the palette or of `signed` numbers, and a readable text."""
        return self._styles(signed=signed)[level]

    def paint_signed(self, value: float, top: float) -> Style:
        """Return a background for a signed number, red above 0 and blue below 0, on a scale up to ``top``.

        On a screen without colour no number has a background; the printed sign is enough.
        """
        level = int(signed_levels(np.array([value]), top)[0])
        return self.paint(level, signed=True) if self.colour else Style()

    def scale_bar(self, cells: int, *, signed: bool = False) -> Text:
        """Return the colour scale from 0 upward in `cells` cells, or the shades if there are no colours, and a space.

        For signed numbers the colours go from the lowest to the highest; without colours the bar is empty.
        """
        if not self.colour:
            return Text("" if signed else f"[{self.shades}] ", no_wrap=True)
        styles = self._styles(signed=signed)
        bar = Text(no_wrap=True)
        for level in np.linspace(0, LEVELS - 1, cells).round():
            bar.append(" ", Style(bgcolor=styles[int(level)].bgcolor))
        return bar.append(" ")

    def _styles(self, *, signed: bool) -> list[Style]:
        """Return a style for each level of the palette, or of signed numbers."""
        return _styles(None if signed else self.palette, bool(self.dark), self.true_colour)


@functools.cache
def _styles(palette: str | None, on_dark: bool, true_colour: bool) -> list[Style]:
    """Return a style for each level of a palette, or of signed numbers if `palette` is None.

    Each style sets the text colour and the background, so that it does not depend on the terminal's own colours.
    """
    table = diverging(on_dark=on_dark) if palette is None else colours(palette, on_dark=on_dark)
    if true_colour:
        return [
            Style(color=str(text_colour), bgcolor=hexed(colour))
            for colour, text_colour in zip(table, text_colours(table), strict=True)
        ]
    arms = [table] if palette is not None else [table[:MIDDLE], table[MIDDLE:]]
    numbers = [number for arm in arms for number in in_256(arm)]
    inks = text_colours(terminal_colours()[np.array(numbers) - 16])
    return [
        Style(color="color(231)" if ink == "#ffffff" else "color(16)", bgcolor=f"color({number})")
        for number, ink in zip(numbers, inks, strict=True)
    ]


def console_here() -> Console:
    """Return standard output as a console as wide as the window, with colours if the terminal has them.

    The environment variables ``NO_COLOR`` and ``FORCE_COLOR`` turn colours off and on.
    """
    from rich.console import Console

    # Without colours, Rich still prints bold and dim text.
    is_plain = bool(os.environ.get("NO_COLOR"))
    is_forced = not is_plain and bool(os.environ.get("FORCE_COLOR"))
    options: dict[str, Any] = {
        "highlight": False,
        "emoji": False,
        "markup": False,
        "no_color": is_plain,
    }
    console = Console(
        color_system=None if is_plain else "auto", force_terminal=is_forced or None, **options
    )
    if is_forced and console.color_system not in {"256", "truecolor"}:
        # Nothing is known about the reader of a pipe, so use 256 colours, which most terminals have.
        console = Console(color_system="256", force_terminal=True, **options)
    if (console.is_dumb_terminal and console.is_terminal) or console.width < 1:
        # For a dumb terminal Rich assumes 80 columns, whatever the width of the window; and COLUMNS=0, which says that
        # the width is unknown, it takes for a window in which nothing fits.
        console.width = shutil.get_terminal_size().columns
    return console


def screen_of(console: Console, palette: str, theme: Theme = "auto") -> Screen:
    """Return the screen that a console writes to.

    With the theme ``auto`` the background is the one that ``COLORFGBG`` names: light if it is 7 or 15. A notebook is
    light, and all else unknown.
    """
    number = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    is_dark = number not in {"7", "15"} if number.isdecimal() else None
    # IPython's kernels set TERM to xterm-color, and current terminals do not.
    if os.environ.get("TERM") == "xterm-color":
        is_dark = False
    return Screen(
        width=console.width,
        colour=console.color_system in {"256", "truecolor"} and not console.no_color,
        dark=is_dark if theme == "auto" else theme == "dark",
        true_colour=console.color_system == "truecolor",
        unicode=console.encoding.lower().startswith("utf"),
        encoding=console.encoding,
        palette=palette,
    )
