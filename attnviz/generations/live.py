"""A generation as it happens: drawn anew with each token, stepped through with the keyboard, or a line a token."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Self

from rich.console import Console
from rich.text import Text

from attnviz.attention import Attention
from attnviz.commands import console_here
from attnviz.generations.record import Step
from attnviz.generations.settings import GenerationAppearance
from attnviz.generations.terminal import GenerationView, draw_end, draw_keys, draw_line, draw_step, draw_table_head
from attnviz.render.terminal.keyboard import browse, pressed, whole_screen
from attnviz.render.terminal.screen import screen_of


class Live:
    """The view of the newest token, on a terminal or in a pipe; a context, which has the keyboard."""

    def __init__(self, appearance: GenerationAppearance) -> None:
        self._palette, self._language = appearance.palette, appearance.lang
        self._console = console_here()
        self._redraws = sys.stdout.isatty() and not self._console.is_dumb_terminal
        self._interactive = appearance.interactive
        first = screen_of(self._console, appearance.background, appearance.palette)
        self._background = ("dark" if first.dark else "light") if appearance.interactive else appearance.background
        self._view = GenerationView(screen=first, language=self._language if first.unicode else "en")
        self._steps: list[Step] = []
        self._n_lines = 0
        self._stack = ExitStack()
        self._keys: Iterator[str] = iter(())

    def __enter__(self) -> Self:
        if self._interactive:
            self._keys = self._stack.enter_context(whole_screen())
        elif self._redraws:
            self._keys = self._stack.enter_context(pressed())
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def show(self, step: Step) -> None:
        """Show a token that has come, or raise KeyboardInterrupt: the key was pressed that stops it."""
        self._steps.append(step)
        if self._interactive:
            stopped = self._browse(grows=True) == "quit"
        else:
            stopped = self._redraws and next(self._keys) == "quit"
            if self._redraws:
                lines = draw_step(step, self._view, self._console.height - 1)
                self._write(lines, back=self._n_lines)
                self._n_lines = len(lines)
            else:
                head = draw_table_head(step, self._view) if step.number == 1 else []
                self._write([*head, draw_line(step, self._view)])
        if stopped:
            self._interactive = False
            raise KeyboardInterrupt

    def look_back(self) -> None:
        """With the keyboard: see the steps again, until it is left."""
        if self._interactive:
            self._browse(grows=False)

    def end(self, record: Attention) -> None:
        """Show what was generated, and the receipt; first its last step, where that was on another screen."""
        if self._redraws and not self._n_lines:
            self._write(draw_step(self._steps[-1], self._view, self._console.height - 1))
        self._write(draw_end(record, self._view))

    def _browse(self, *, grows: bool) -> str:
        """The steps so far as pages, from the newest on."""

        def view(console: Console) -> GenerationView:
            return replace(self._view, screen=screen_of(console, self._background, self._palette))

        def draw(page: int, console: Console) -> list[Text]:
            return draw_step(self._steps[page], view(console), console.height)

        def below(page: int, lines: tuple[int, int, int], console: Console) -> str:
            del lines
            return draw_keys(self._steps[page], view(console), grows=grows)

        n = len(self._steps)
        return browse(self._keys, draw, below, n, console=console_here, first=n - 1, grows=grows)

    def _write(self, lines: Sequence[Text], back: int = 0) -> None:
        """Write lines over so many above, in one go, which flickers less."""
        with self._console.capture() as output:
            for line in lines:
                self._console.print(line, soft_wrap=True)
        sys.stdout.write((f"\x1b[{back}F\x1b[J" if back else "") + output.get())
        sys.stdout.flush()
