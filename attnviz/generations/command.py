"""``attnviz generate``: a text goes on, each new token with what it attends to."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from attnviz.commands import check_writable, console_here, opened, read_text, took, write, write_picture
from attnviz.generations.settings import (
    GeneratingModel,
    GenerationAppearance,
    GenerationOutput,
    GenerationSelection,
    Prompt,
    Sampling,
)
from attnviz.render.names import picture_path
from attnviz.settings import RECORDS, name_parts
from attnviz.text.display import check_text

if TYPE_CHECKING:
    from rich.text import Text

    from attnviz.attention import Attention
    from attnviz.generations.record import Step
    from attnviz.generations.terminal import View

EXAMPLES = """Examples:

attnviz generate "I love"

attnviz generate "She is eating a green apple" -m toy-seq2seq --lang ko

attnviz generate "The big animal" --sample --temperature 1.5 --seed 3 -o record.npz

attnviz generate "Why is the sky blue?" -m Qwen/Qwen3-0.6B --chat"""


def command(
    prompt: Prompt,
    sampling: Sampling,
    model: GeneratingModel,
    selection: GenerationSelection,
    appearance: GenerationAppearance,
    output: GenerationOutput,
) -> None:
    """See a text go on, each new token with what it attends to.

    The text so far is shaded by the newest token's row of attention, the mean over layers and heads, or one head's.
    Ctrl-C stops it: what there is, is kept. All rows together are written as a picture, or as a record.
    """
    text = read_text(prompt.text, prompt.file)
    check_text(text, "the prompt")
    check_writable(output.planned())
    from attnviz.generations.api import generate

    with opened(model, text, generates=True) as source:
        live = _Live(appearance)
        record = generate(
            text, source, max_new_tokens=prompt.max_new_tokens, chat=prompt.chat, on_step=live.show,
            layers=selection.layers, heads=selection.heads, sample=sampling.sample, temperature=sampling.temperature,
            top_k=sampling.top_k, top_p=sampling.top_p, seed=sampling.seed,
        )  # fmt: skip
    took("generated")
    live.end(record)
    more = [*name_parts(selection), *name_parts(appearance)]
    more += [*name_parts(sampling), *(["chat"] if prompt.chat else []), *name_parts(prompt, "max_new_tokens")]
    usual = picture_path("generate", text, record.model, more, pair=None, target=None)
    for path in output.output or (usual,):
        _write(record, path, appearance)


def _write(record: Attention, path: Path, appearance: GenerationAppearance) -> None:
    """The record in one file, by its ending."""
    if path.suffix.lower() in RECORDS:
        write(path, partial(record.save, path))
        return
    from attnviz.heatmaps.figure import draw
    from attnviz.render.sheet import resolve

    write_picture(path, draw(resolve(record, "shared", appearance.lang), appearance.palette))


class _Live:
    """The view of the newest token: drawn over the one before on a terminal, a line a token in a pipe."""

    def __init__(self, appearance: GenerationAppearance) -> None:
        self._appearance = appearance
        self._console = console_here()
        self._redraws = sys.stdout.isatty() and not self._console.is_dumb_terminal
        self._view: View | None = None
        self._n_lines = 0

    def _made(self) -> View:
        from attnviz.generations.terminal import View
        from attnviz.render.terminal.screen import screen_of

        if self._view is None:
            screen = screen_of(self._console, self._appearance.background, self._appearance.palette)
            self._view = View(screen=screen, language=self._appearance.lang if screen.unicode else "en")
        return self._view

    def show(self, step: Step) -> None:
        """Show a token that has come."""
        from attnviz.generations.terminal import draw_line, draw_step, draw_table_head

        is_first, view = self._view is None, self._made()
        if self._redraws:
            lines = draw_step(step, view, self._console.height - 1)
            self._write(lines, back=self._n_lines)
            self._n_lines = len(lines)
        else:
            self._write([*(draw_table_head(step, view) if is_first else []), draw_line(step, view)])

    def end(self, record: Attention) -> None:
        """Show what was generated, and the receipt."""
        from attnviz.generations.terminal import draw_end

        self._write([*draw_end(record, self._made())])

    def _write(self, lines: list[Text], back: int = 0) -> None:
        """Write lines over so many above, in one go, which flickers less."""
        with self._console.capture() as output:
            for line in lines:
                self._console.print(line, soft_wrap=True)
        sys.stdout.write((f"\x1b[{back}F\x1b[J" if back else "") + output.get())
        sys.stdout.flush()
