"""What the terminal at hand can show."""

from __future__ import annotations

import os
import re
import select
import shutil
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from attnviz.render.terminal.screen import Screen

PATIENCE = 0.2
"""Seconds to wait for a terminal to say which colour its background has."""


def console_here() -> Console:
    """Standard output, as wide as the window, with no colour where none is wanted."""
    from rich.console import Console

    plain = bool(os.environ.get("NO_COLOR"))  # Rich would still print bold and dim
    console = Console(highlight=False, emoji=False, markup=False, color_system=None if plain else "auto")
    if console.is_dumb_terminal and console.is_terminal:  # Rich takes 80 columns there, whatever the window has
        console.width = shutil.get_terminal_size().columns
    return console


def screen_of(console: Console, background: str, palette: str) -> Screen:
    """The screen that a console writes to; ``auto`` as background asks the terminal."""
    from attnviz.render.terminal.screen import Screen

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
    told = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    if told.isdigit():
        return int(told) in {7, 15}
    rgb = _asked()
    return rgb is not None and 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2] > 0.5


def _asked() -> tuple[float, ...] | None:
    """The background's red, green and blue, 0 to 1, as the terminal answers to OSC 11; None where it does not.

    The question is followed by one that every terminal answers (its device attributes), so that a terminal that does
    not know the first makes nobody wait.
    """
    try:
        import termios
        import tty
    except ImportError:  # Windows has no such terminal
        return None
    if not _may_ask():
        return None
    where = sys.stdin.fileno()
    before = termios.tcgetattr(where)
    answer = b""
    try:
        tty.setcbreak(where)
        os.write(sys.stdout.fileno(), b"\x1b]11;?\x1b\\\x1b[c")
        while not re.search(rb"\x1b\[\?[\d;]*c", answer) and select.select([where], [], [], PATIENCE)[0]:
            answer += os.read(where, 256)
    except OSError:
        return None
    finally:
        termios.tcsetattr(where, termios.TCSADRAIN, before)
    found = re.search(rb"\x1b\]11;rgba?:([0-9a-fA-F]+)/([0-9a-fA-F]+)/([0-9a-fA-F]+)", answer)
    if found is None:
        return None
    return tuple(int(part, 16) / (16 ** len(part) - 1) for part in found.groups())


def _may_ask() -> bool:
    """Whether a terminal can answer: not in a pipe, nor in the background, where asking would stop us."""
    if sys.stdin is None or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:
        return False
