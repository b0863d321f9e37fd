"""What a terminal can show: its width, its colours, its characters; and the one at hand."""

from __future__ import annotations

import functools
import math
import os
import re
import select
import shutil
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TextIO

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

PATIENCE = 1.0  # seconds to wait for a terminal, which may be far away, to say which colour its background has
HALF = 127.5  # a background whose bytes are brighter than this on the average is light


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """What a terminal can show."""

    width: int = 80  # in cells
    colour: bool = (
        True  # whether cells have 24-bit or 256 colours of the palette, or are shaded (16 or none)
    )
    dark: bool = True  # whether its background is dark
    unicode: bool = True  # whether it can show all characters
    encoding: str = "ascii"  # those that it can show otherwise
    palette: str = DEFAULT  # one of `attnviz.render.names.PALETTES`, or any other colormap's name
    page: tuple[int, int, int] | None = (
        None  # the colour of its background, where it is known: zero has no other
    )

    @property
    def shades(self) -> str:
        """Five steps from nothing to full, for screens without colour: they stand for weights, never for signs."""
        return " ░▒▓█" if self.unicode else " .:*#"

    @property
    def dot(self) -> str:
        """What stands for a weight that is too small for a shade."""
        return "·" if self.unicode else "-"

    @property
    def has_blanks(self) -> bool:
        """Whether cells of nearly no weight stay blank; else they have the palette's colour of 0."""
        return not self.colour or has_blanks(
            colours(self.palette, on_dark=self.dark), on_dark=self.dark
        )

    def language(self, wanted: str) -> str:
        """The language wanted, or English where it cannot show Korean."""
        return wanted if self.unicode or "가".encode(self.encoding, "ignore") else "en"

    def shade(self, level: int) -> str:
        """What stands for a level of the palette where there are no colours."""
        return self.shades[math.ceil(level / (LEVELS - 1) * 4 - 0.5)]

    def paint(self, level: int) -> Style:
        """A level of the palette as a background, with the ink that can be read on it."""
        return _styles(self.palette, self.dark, self.page)[level]

    def paint_signed(self, value: float, top: float) -> Style:
        """A signed number as a background, red above 0 and blue below, on a scale from ``-top`` to ``top``.

        Zero, and any number on a screen without colour, has no background: its sign tells enough.
        """
        level = int(signed_levels(np.array([value]), top)[0])
        return (
            _styles(None, self.dark, self.page)[level]
            if self.colour and level != MIDDLE
            else Style()
        )

    def scale_bar(self, cells: int, *, signed: bool = False) -> Text:
        """The colours from 0 up in so many cells, or the shades where there are none, and a space.

        Of signed numbers: those from the lowest to the highest, and nothing where there are no colours.
        """
        if not self.colour:
            return Text("" if signed else f"[{self.shades}] ", no_wrap=True)
        styles = _styles(None if signed else self.palette, self.dark, self.page)
        bar = Text(no_wrap=True)
        for level in np.linspace(0, LEVELS - 1, cells).round():
            bar.append(" ", Style(bgcolor=styles[int(level)].bgcolor))
        return bar.append(" ")


@functools.cache
def _styles(palette: str | None, on_dark: bool, page: tuple[int, int, int] | None) -> list[Style]:
    """A style for each level of a palette, or of signed numbers.

    Where the page's colour is known, it multiplies the palette's, or their opposites each other, so that the scale
    begins with the page itself and never turns back.
    """
    table = diverging(on_dark=on_dark) if palette is None else colours(palette, on_dark=on_dark)
    if page is not None:
        share = np.array(page) / 255
        mixed = 255 - (255 - table) * (1 - share) if on_dark else table * share
        table = mixed.round().astype(np.uint8)
    return [
        Style(color="#ffffff" if white else "#000000", bgcolor=hexed(colour))
        for colour, white in zip(table, ink(table), strict=True)
    ]


def console_here(color: Literal["auto", "always", "never"] = "auto") -> Console:
    """Standard output, as wide as the window; ``auto`` asks ``NO_COLOR``, ``FORCE_COLOR``, then the terminal."""
    from rich.console import Console

    plain = color == "never" or (
        color == "auto" and bool(os.environ.get("NO_COLOR"))
    )  # Rich still prints bold and dim
    forced = not plain and (color == "always" or bool(os.environ.get("FORCE_COLOR")))
    usual: dict[str, Any] = {"highlight": False, "emoji": False, "markup": False, "no_color": plain}
    console = Console(
        color_system=None if plain else "auto", force_terminal=forced or None, **usual
    )
    if forced and console.color_system not in {
        "256",
        "truecolor",
    }:  # a pipe does not say what it can show
        console = Console(color_system="256", force_terminal=True, **usual)
    if (
        console.is_dumb_terminal and console.is_terminal
    ):  # Rich takes 80 columns there, whatever the window has
        console.width = shutil.get_terminal_size().columns
    return console


def screen_of(console: Console, background: str, palette: str) -> Screen:
    """The screen that a console writes to; ``auto`` as background asks the terminal, and is light in a notebook."""
    colour = console.color_system in {"256", "truecolor"} and not console.no_color
    dark, page = background != "light", None
    if background == "auto" and colour:
        number = os.environ.get("COLORFGBG", "").rpartition(";")[2]
        number = number or "15" * in_notebook()
        page = None if number.isdigit() else _background()
        dark = number not in {"7", "15"} and (
            page is None or bool(np.array(page) @ (0.2126, 0.7152, 0.0722) <= HALF)
        )
    return Screen(
        width=console.width,
        colour=colour,
        dark=dark,
        unicode=console.encoding.lower().startswith("utf"),
        encoding=console.encoding,
        palette=palette,
        page=page,
    )


def _background() -> tuple[int, int, int] | None:
    """The background's red, green and blue as the terminal answers to OSC 11; None where it does not.

    The question is followed by one that every terminal answers (its device attributes), so that a terminal that does
    not know the first makes nobody wait.
    """
    try:
        import termios
        import tty
    except ImportError:  # Windows has no such terminal
        return None
    if (
        sys.stdin is None
        or not (sys.stdin.isatty() and sys.stdout.isatty())
        or is_behind(sys.stdin)
    ):
        return None
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    answer = b""
    try:
        tty.setcbreak(keyboard)
        os.write(sys.stdout.fileno(), b"\x1b]11;?\x1b\\\x1b[c")
        while (
            not re.search(rb"\x1b\[\?[\d;]*c", answer)
            and select.select([keyboard], [], [], PATIENCE)[0]
        ):
            answer += os.read(keyboard, 256)
    except OSError:
        return None
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
    match = re.search(rb"\x1b\]11;rgba?:([0-9a-fA-F]+)/([0-9a-fA-F]+)/([0-9a-fA-F]+)", answer)
    if match is None:
        return None
    red, green, blue = (
        round(255 * int(part, 16) / (16 ** len(part) - 1)) for part in match.groups()
    )
    return red, green, blue


def in_notebook() -> bool:
    """Whether a cell of a notebook runs us: it calls itself a terminal, but has no keys and answers no question."""
    return (
        os.environ.get("TERM") == "xterm-color"
    )  # as IPython's kernels say, and no terminal of today


def is_behind(terminal: TextIO) -> bool:
    """Whether we run in its background, where a question to the terminal, or a pager, would stop us."""
    try:
        return os.tcgetpgrp(terminal.fileno()) != os.getpgrp()
    except AttributeError:  # Windows
        return False
    except OSError:
        return True
