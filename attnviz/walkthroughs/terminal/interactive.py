"""A walkthrough step by step: next, back, quit."""

from __future__ import annotations

import sys
from typing import Unpack

import typer

from attnviz.render.terminal.screen import console_here, screen_of
from attnviz.text.messages import _, in_language, join_phrases
from attnviz.walkthroughs.record import Walkthrough
from attnviz.walkthroughs.terminal.steps import draw_step
from attnviz.walkthroughs.view import ViewOptions

# Arrow keys as Unix and Windows send them; letters also as a Korean keyboard has them.
NEXT = {"n", "ㅜ", " ", "\r", "\n", "\x1b[C", "\x1bOC", "\xe0M", "\x00M"}
BACK = {"p", "ㅔ", "b", "ㅠ", "\x7f", "\x1b[D", "\x1bOD", "\xe0K", "\x00K"}
QUIT = {"q", "Q", "ㅂ", "\x1b", "\x04"}


def browse(walk: Walkthrough, palette: str, **view: Unpack[ViewOptions]) -> None:
    """Show one step after another, as the keys say, until the one that quits."""
    n_steps = len(walk.steps)
    korean = view.get("lang") == "ko"
    place = 0
    while True:
        console = console_here()  # anew each time: the window may have another size
        screen = screen_of(console, palette)
        console.clear()
        for line in draw_step(walk, screen, place + 1, **view):
            console.print(line, soft_wrap=True)
        keys = _("→ next · ← back · q quit")
        step = _("step {n} of {total}").format(n=place + 1, total=n_steps)
        status = in_language(join_phrases([step, keys], " · "), "ko" if korean else "en")
        console.print(status, style="reverse", end="")
        sys.stdout.flush()
        typed = typer.getchar()
        # Several letters come at once from a person in a hurry; an arrow is one key of several.
        for key in [typed] if typed[0] in "\x1b\xe0\x00" else typed:
            if key in QUIT:
                sys.stdout.write("\n")
                return
            if key in NEXT:
                place = min(place + 1, n_steps - 1)
            elif key in BACK:
                place = max(place - 1, 0)
