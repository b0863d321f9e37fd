"""A walkthrough with the keyboard: one step at a time, forward and back."""

from __future__ import annotations

import os
import re
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import typer

if TYPE_CHECKING:
    from attnviz.walkthroughs.record import Walkthrough

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

PATIENCE = 0.25
"""Seconds after which it is looked whether the window has another size."""

_KEY = re.compile(r"\x1b(?:\[[0-9;]*[A-Za-z~]|O[A-Za-z])|[^\x1b]")
_UNFINISHED = re.compile(r"\x1b(?:\[[0-9;]*|O)$")


def expect_terminal() -> None:
    """Refuse where nobody can press a key and see what it does.

    Raises:
        BadParameter: standard input or output is no terminal, or one that cannot move its cursor.
    """
    try:
        import termios  # noqa: F401 - Windows has none
    except ImportError:
        raise typer.BadParameter("--interactive needs a terminal as Linux and macOS have it") from None
    streams = [stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout)]
    if not all(streams) or os.environ.get("TERM") == "dumb":
        raise typer.BadParameter("--interactive needs a terminal; without one, --jump N begins at a step")


def browse(walk: Walkthrough, view: dict[str, Any], palette: str, background: str, first: int) -> None:
    """Show one step after another as the keys say, until the one that quits; the screen is then as it was.

    Raises:
        SelectionError: there is no step of the number to begin at.
    """
    from attnviz.commands import console_here
    from attnviz.render.terminal.screen import screen_of
    from attnviz.walkthroughs.terminal.steps import draw_keys, draw_step
    from attnviz.walkthroughs.view import chosen

    numbers = [number for number, _ in chosen(walk, view["steps"])]
    place = numbers.index(chosen(walk, view["steps"], first)[0][0])
    background = "dark" if screen_of(console_here(), background, palette).dark else "light"
    top, seen = 0, None
    with _whole_screen() as keys:
        while True:
            size = os.get_terminal_size(sys.stdout.fileno())
            room = max(1, size.lines - 1)
            if seen != (size, place, top):
                console = console_here()
                console.width = size.columns
                screen = screen_of(console, background, palette)
                lines = draw_step(walk, screen, numbers[place], **view)
                lowest = max(0, len(lines) - room)
                top = min(top, lowest)
                last = min(top + room, len(lines))
                with console.capture() as output:
                    for line in lines[top:last]:
                        console.print(line, soft_wrap=True)
                below = draw_keys(walk, numbers[place], (top + 1, last, len(lines)), screen, view["language"])
                _draw(output.get().splitlines(), below, room)
                seen = (size, place, top)
            key = next(keys)
            if key == "quit":
                return
            if key == "on":
                key = "next" if top == lowest else "down a page"
            step = {"down": 1, "up": -1, "down a page": room - 1, "up a page": 1 - room}.get(key, 0)
            top = min(max(0, top + step), lowest)
            target = {"next": place + 1, "back": place - 1, "first": 0, "last": len(numbers) - 1}.get(key, place)
            target = min(max(target, 0), len(numbers) - 1)
            place, top = target, top if target == place else 0


def _draw(lines: list[str], below: str, room: int) -> None:
    """Write a page over the one before it, which flickers less than an empty screen between them."""
    body = "".join(f"{line}\x1b[K\r\n" for line in [*lines, *[""] * (room - len(lines))])
    sys.stdout.write(f"\x1b[H{body}\x1b[7m{below}\x1b[m\x1b[K\x1b[J")
    sys.stdout.flush()


@contextmanager
def _whole_screen() -> Iterator[Iterator[str]]:
    """The terminal's other screen, and the keys pressed there; whatever happens, all is put back afterwards."""
    import termios
    import tty

    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    handler = signal.signal(signal.SIGTERM, _end)
    try:
        tty.setcbreak(keyboard)
        mode = termios.tcgetattr(keyboard)
        mode[6][termios.VSUSP] = b"\0"  # stopped, it would leave the terminal as it is now
        termios.tcsetattr(keyboard, termios.TCSADRAIN, mode)
        sys.stdout.write("\x1b[?1049h\x1b[?25l")
        yield _read_keys(keyboard)
    finally:
        sys.stdout.write("\x1b[m\x1b[?25h\x1b[?1049l")
        sys.stdout.flush()
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
        signal.signal(signal.SIGTERM, handler)


def _end(*_: object) -> NoReturn:
    raise typer.Exit(128 + signal.SIGTERM)


def _read_keys(keyboard: int) -> Iterator[str]:
    """What each key pressed means; nothing where none was, for a while; "quit" once the terminal is gone."""
    meanings = {code: meaning for meaning, codes in KEYS.items() for code in codes}
    rest = b""
    while True:
        if not select.select([keyboard], [], [], PATIENCE)[0]:
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
