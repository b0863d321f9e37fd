"""Keys that are pressed while something is shown, and pages that they turn."""

from __future__ import annotations

import os
import re
import select
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import repeat
from typing import TYPE_CHECKING, Literal

import typer

from attnviz.render.terminal.screen import in_notebook, is_behind

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

KEYS = {
    "next": ("\x1b[C", "\x1bOC", "n", "ㅜ", "\n", "\r"),
    "back": ("\x1b[D", "\x1bOD", "p", "ㅔ", "b", "ㅠ", "\x7f"),
    "first": ("\x1b[H", "\x1bOH", "\x1b[1~", "\x1b[7~", "g"),
    "last": ("\x1b[F", "\x1bOF", "\x1b[4~", "\x1b[8~", "G"),
    "down": ("\x1b[B", "\x1bOB", "j"),
    "up": ("\x1b[A", "\x1bOA", "k"),
    "on": (" ", "\x1b[6~"),
    "up a page": ("\x1b[5~",),
    "quit": ("q", "Q", "ㅂ"),
}
"""What each key does, as terminals send it; a letter also as the same key gives it on a Korean keyboard."""

PATIENCE = 0.25  # seconds after which it is looked whether the window has another size

_KEY = re.compile(r"\x1b(?:\[[0-9;]*[A-Za-z~]|O[A-Za-z])|[^\x1b]")
_UNFINISHED = re.compile(r"\x1b(?:\[[0-9;]*|O)$")

Place = tuple[int, int, int]
"""The first and the last line of a page that are shown, counted from 1, and how many it has."""


def expect_terminal(otherwise: str) -> None:
    """Refuse where nobody can press a key and see what it does; `otherwise` says what can be done there."""
    try:
        import termios  # noqa: F401 - Windows has none
    except ImportError:
        raise typer.BadParameter(
            "--interactive needs a terminal as Linux and macOS have it"
        ) from None
    streams = [stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout)]
    if not all(streams) or os.environ.get("TERM") == "dumb" or in_notebook():
        raise typer.BadParameter(f"--interactive needs a terminal; without one, {otherwise}")


def browse(
    keys: Iterator[str],
    draw: Callable[[int, Console], Sequence[Text]],
    below: Callable[[int, Place, Console], str],
    n_pages: int,
    *,
    console: Callable[[], Console],
    first: int = 0,
    grows: bool = False,
) -> Literal["quit", "more"]:
    """Show one page after another as the keys say, in `whole_screen`, until the one that quits.

    `draw` makes the lines of a page, by its number from 0, and `below` the line below them. Where the number of pages
    `grows`, "more" is returned when the one after the last is wanted.
    """
    place, top, seen = first, 0, None
    while True:
        size = os.get_terminal_size(sys.stdout.fileno())
        room = max(
            1, (size.lines or 25) - 1
        )  # zero: a terminal such as a serial line does not know its size
        if seen != (size, place, top):
            screen = console()
            screen.width = size.columns or 80
            lines = draw(place, screen)
            lowest = max(0, len(lines) - room)
            top = min(top, lowest)
            last = min(top + room, len(lines))
            with screen.capture() as output:
                for line in lines[top:last]:
                    screen.print(line, soft_wrap=True)
            shown = [*output.get().splitlines(), *[""] * room][:room]
            body = "".join(
                f"{line}\x1b[K\r\n" for line in shown
            )  # over the page before: it flickers less
            foot = below(place, (top + 1, last, len(lines)), screen)
            sys.stdout.write(f"\x1b[H{body}\x1b[7m{foot}\x1b[m\x1b[K\x1b[J")
            sys.stdout.flush()
            seen = (size, place, top)
        key = next(keys)
        if key == "quit":
            return "quit"
        if key == "on":
            key = "next" if top == lowest else "down a page"
        if key == "next" and grows and place == n_pages - 1:
            return "more"
        step = {"down": 1, "up": -1, "down a page": room - 1, "up a page": 1 - room}.get(key, 0)
        top = min(max(0, top + step), lowest)
        target = {"next": place + 1, "back": place - 1, "first": 0, "last": n_pages - 1}.get(
            key, place
        )
        target = min(max(target, 0), n_pages - 1)
        place, top = target, top if target == place else 0


@contextmanager
def whole_screen() -> Iterator[Iterator[str]]:
    """The terminal's other screen, and the keys pressed there; whatever happens, all is put back afterwards."""
    try:
        with pressed(PATIENCE) as keys:
            sys.stdout.write("\x1b[?1049h\x1b[?25l")
            yield keys
    finally:
        sys.stdout.write("\x1b[m\x1b[?25h\x1b[?1049l")
        sys.stdout.flush()


@contextmanager
def pressed(patience: float = 0.0) -> Iterator[Iterator[str]]:
    """What each key means that is pressed meanwhile, or "" where none was for so many seconds.

    Where there is no keyboard, no key is ever pressed.
    """
    try:
        import termios
        import tty
    except ImportError:  # Windows
        yield repeat("")
        return
    if (
        sys.stdin is None
        or not sys.stdin.isatty()
        or in_notebook()
        or (not patience and is_behind(sys.stdin))
    ):
        yield repeat("")
        return
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    try:
        tty.setcbreak(keyboard)
        mode = termios.tcgetattr(keyboard)
        mode[6][termios.VSUSP] = b"\0"  # stopped, it would leave the terminal as it is now
        termios.tcsetattr(keyboard, termios.TCSADRAIN, mode)
        yield _read_keys(keyboard, patience)
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


def _read_keys(keyboard: int, patience: float) -> Iterator[str]:
    """What each key pressed means; nothing where none was, for a while; "quit" once the terminal is gone."""
    meanings = {code: meaning for meaning, codes in KEYS.items() for code in codes}
    rest = b""
    while True:
        if not select.select([keyboard], [], [], patience)[0]:
            rest = b""
            yield ""
            continue
        try:
            read = os.read(keyboard, 1024)
        except OSError:
            read = b""
        if not read:
            yield "quit"
            continue
        text = (rest + read).decode("utf-8", "surrogateescape")
        unfinished = _UNFINISHED.search(text)
        rest = b"" if unfinished is None else unfinished[0].encode()
        for key in _KEY.findall(text.removesuffix(rest.decode())):
            yield meanings.get(key, "")
