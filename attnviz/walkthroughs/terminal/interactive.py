"""The interactive walkthrough, step by step, with keys for next, back and quit."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

from attnviz.look import Theme as ThemeName
from attnviz.render.terminal.screen import console_here, screen_of
from attnviz.text.messages import _, language
from attnviz.walkthroughs.terminal.steps import draw_walk
from attnviz.walkthroughs.view import View

# Arrow keys send different codes on Unix and Windows; the Korean letters are on the same keys as n, p, b and q.
NEXT = {"n", "ㅜ", " ", "\r", "\n", "\x1b[C", "\x1bOC", "\xe0M", "\x00M"}
BACK = {"p", "ㅔ", "b", "ㅠ", "\x7f", "\x1b[D", "\x1bOD", "\xe0K", "\x00K"}
QUIT = {"q", "Q", "ㅂ", "\x1b", "\x04"}
KEY = re.compile(r"\x1b[\[O].|[\xe0\x00].|.", re.DOTALL)


def browse(view: View, palette: str, theme: ThemeName = "auto") -> None:
    """Show one step at a time, and move with the keys until the user quits."""
    place, last = 0, len(view.walk.steps) - 1
    with _key_reader() as read_keys:
        while True:
            # A new console for each step, since the user may resize the window.
            console = console_here()
            console.clear()
            screen = screen_of(console, palette, theme)
            with language(screen.fallback):
                for line in draw_walk(view, screen, place + 1):
                    console.print(line, soft_wrap=True)
                words = _("step {n} of {total} · → next · ← back · q quit")
                status = words.format(n=place + 1, total=last + 1)
            console.print(status, style="reverse", end="")
            sys.stdout.flush()
            # An empty read means the end of the input: quit.
            for key in KEY.findall(read_keys()) or ["q"]:
                if key in QUIT:
                    sys.stdout.write("\n")
                    return
                if key in NEXT:
                    place = min(place + 1, last)
                elif key in BACK:
                    place = max(place - 1, 0)


@contextmanager
def _key_reader() -> Iterator[Callable[[], str]]:
    """Yield a function that waits for keys; keys typed while a step is drawn are not lost."""
    try:
        import termios
        import tty
    except ImportError:  # Windows, which buffers keys by itself
        yield typer.getchar
        return
    keyboard = sys.stdin.fileno()
    attributes = termios.tcgetattr(keyboard)
    tty.setcbreak(keyboard)
    try:
        yield lambda: os.read(keyboard, 64).decode(errors="replace")
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, attributes)
