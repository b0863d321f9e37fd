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
from typing import TYPE_CHECKING, Any, Literal

from rich.style import Style
from rich.text import Text

from attnviz.render.palette import DEFAULT, LEVELS, colours, hexed, ink

if TYPE_CHECKING:
    from rich.console import Console

PATIENCE = 0.2
"""Seconds to wait for a terminal to say which colour its background has."""


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

    def shade(self, level: int) -> str:
        """What stands for a level of the palette where there are no colours."""
        return self.shades[math.ceil(level / (LEVELS - 1) * 4 - 0.5)]

    def paint(self, level: int) -> Style:
        """A level of the palette as a background, with the ink that can be read on it."""
        return _styles(self.palette, self.dark)[level]

    def scale_bar(self, cells: int) -> Text:
        """The colours from 0 up in so many cells, or the shades where there are none, and a space."""
        if not self.colour:
            return Text(f"[{self.shades}] ", no_wrap=True)
        bar = Text(no_wrap=True)
        for level in range(0, LEVELS, LEVELS // cells):
            bar.append(" ", Style(bgcolor=self.paint(level).bgcolor))
        return bar.append(" ")


@functools.cache
def _styles(palette: str, on_dark: bool) -> list[Style]:  # noqa: FBT001 - a key of the cache
    """A style for each level of a palette."""
    table = colours(palette, on_dark=on_dark)
    return [
        Style(color="#ffffff" if white else "#000000", bgcolor=hexed(colour))
        for colour, white in zip(table, ink(table), strict=True)
    ]


def console_here(color: Literal["auto", "always", "never"] = "auto") -> Console:
    """Standard output, as wide as the window, with no colour where none is wanted.

    Args:
        color: whether there is colour; ``auto`` asks ``NO_COLOR``, ``FORCE_COLOR`` and the terminal, in this order.
    """
    from rich.console import Console

    plain = color == "never" or (color == "auto" and bool(os.environ.get("NO_COLOR")))  # Rich still prints bold and dim
    forced = not plain and (color == "always" or bool(os.environ.get("FORCE_COLOR")))
    usual: dict[str, Any] = {"highlight": False, "emoji": False, "markup": False, "no_color": plain}
    console = Console(color_system=None if plain else "auto", force_terminal=forced or None, **usual)
    if forced and console.color_system not in {"256", "truecolor"}:  # a pipe does not say what it can show
        console = Console(color_system="256", force_terminal=True, **usual)
    if console.is_dumb_terminal and console.is_terminal:  # Rich takes 80 columns there, whatever the window has
        console.width = shutil.get_terminal_size().columns
    return console


def screen_of(console: Console, background: str, palette: str) -> Screen:
    """The screen that a console writes to; ``auto`` as background asks the terminal."""
    colour = console.color_system in {"256", "truecolor"} and not console.no_color
    return Screen(
        width=console.width,
        colour=colour,
        dark=not (background == "light" or (background == "auto" and colour and _is_light())),
        unicode=console.encoding.lower().startswith("utf"),
        palette=palette,
    )


def _is_light() -> bool:
    """Whether the terminal's background is light, as far as it says; dark where it does not."""
    number = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    if number.isdigit():
        return int(number) in {7, 15}
    rgb = _background()
    return rgb is not None and 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2] > 0.5


def _background() -> tuple[float, ...] | None:
    """The background's red, green and blue, 0 to 1, as the terminal answers to OSC 11; None where it does not.

    The question is followed by one that every terminal answers (its device attributes), so that a terminal that does
    not know the first makes nobody wait.
    """
    try:
        import termios
        import tty
    except ImportError:  # Windows has no such terminal
        return None
    if not _can_answer():
        return None
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    answer = b""
    try:
        tty.setcbreak(keyboard)
        os.write(sys.stdout.fileno(), b"\x1b]11;?\x1b\\\x1b[c")
        while not re.search(rb"\x1b\[\?[\d;]*c", answer) and select.select([keyboard], [], [], PATIENCE)[0]:
            answer += os.read(keyboard, 256)
    except OSError:
        return None
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
    match = re.search(rb"\x1b\]11;rgba?:([0-9a-fA-F]+)/([0-9a-fA-F]+)/([0-9a-fA-F]+)", answer)
    return match and tuple(int(part, 16) / (16 ** len(part) - 1) for part in match.groups())


def _can_answer() -> bool:
    """Whether a terminal can answer: not in a pipe, nor in the background, where a question would stop us."""
    if sys.stdin is None or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:
        return False
