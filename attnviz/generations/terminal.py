"""A generation in the terminal: the text so far, shaded by what the newest token attends to.

A terminal is redrawn at each token; a pipe gets one line per token.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.style import Style
from rich.text import Text

from attnviz.attention import Attention, Token
from attnviz.generations.record import LEAST, Step, running_text, whose
from attnviz.render.palette import levels
from attnviz.render.sheet import KINDS, blank_below
from attnviz.render.terminal.screen import Screen, screen_of
from attnviz.render.terminal.text import fit, legend, shortened, spell, wrap
from attnviz.text.display import visible
from attnviz.text.messages import _, in_language
from attnviz.text.notes import proof, sentence

LABEL = 14  # width of a token's name in a line, in cells
PROBABILITY = 11  # width of a probability and its heading
BEFORE = (
    4 + 1 + LABEL + 1 + PROBABILITY + 2
)  # width of all that stands before the tokens attended to
TOP = 4  # how many of the tokens attended to most are named


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationView:
    """The screen and the language of a generation."""

    screen: Screen
    language: str = "en"

    def say(self, text: str) -> str:
        """Return a text in the language of the view."""
        return in_language(text, self.language)

    def top(self, step: Step, room: int | None = None) -> str:
        """Return the tokens attended to most, with weights, as many as fit in this many cells."""
        parts = [
            f"{spell(token.text, self.screen)} {weight:.2f}" for token, weight in step.top(TOP)
        ]
        between = spell(" · ", self.screen)
        while room is not None and len(parts) > 1 and cell_len(between.join(parts)) > room:
            parts.pop()
        return between.join(parts) or self.say(
            _("no token with a weight of {least} or more").format(least=LEAST)
        )


def draw_head(step: Step, view: GenerationView) -> list[Text]:
    """Return the lines with the model and the heads shown."""
    kind = view.say(KINDS[step.kind])
    return wrap(
        f"{visible(step.model)} · {kind} · {view.say(whose(step))}",
        view.screen,
        most=view.screen.width,
    )


def draw_table_head(step: Step, view: GenerationView) -> list[Text]:
    """Draw the heading above the lines of a pipe."""
    names = (view.say(_("token")), view.say(_("probability")), view.say(_("attends to")))
    return [*draw_head(step, view), _row("", *names, view)]


def draw_line(step: Step, view: GenerationView) -> Text:
    """Return one line for a pipe: number, token, probability, and the tokens attended to."""
    probability = "" if step.probability is None else f"{step.probability:.2f}"
    attended = view.top(step, view.screen.width - BEFORE)
    return _row(str(step.number), step.token.text, probability, attended, view)


def _row(number: str, name: str, probability: str, rest: str, view: GenerationView) -> Text:
    name = set_cell_size(fit(name, LABEL, view.screen), LABEL)
    line = f"{number:>4} {name} {' ' * (PROBABILITY - cell_len(probability))}{probability}  {rest}"
    return Text(fit(line, view.screen.width, view.screen), no_wrap=True)


def draw_step(step: Step, view: GenerationView, room: int) -> list[Text]:
    """Return the text so far in at most this many lines, shaded by the newest token's row, and its strongest links."""
    screen, mean = view.screen, step.mean
    top = float(mean.max())
    title = view.say(
        _("token {number} of at most {most}").format(number=step.number, most=step.most)
    )
    probability = (
        ""
        if step.probability is None
        else view.say(_(" (probability {probability:.2f})").format(probability=step.probability))
    )
    below = [
        Text(),
        *wrap(f"{spell(step.token.text, screen)}{probability}", screen, "bold", most=screen.width),
        *wrap(
            view.say(_("attends to: {tokens}").format(tokens=view.top(step))),
            screen,
            indent=2,
            first=0,
            most=screen.width,
        ),
        *legend(
            view.say(_("0 to {top:.2g}: weights of the newest token's row").format(top=top)),
            screen,
            cells=8,
            most=screen.width,
        ),
    ]
    above = [*draw_head(step, view), *wrap(title, screen, "dim"), Text()]
    body = _shaded(step.keys, mean, top, screen)
    if step.kind == "cross":
        plain = [Text(part, "bold" if last else "") for part, last in _marked(step.so_far, screen)]
        body = [*body, Text(), *_lines(plain, screen.width)]
    # on a small screen, drop the heading before the text
    if len(above) + len(below) + min(len(body), 2) > room:
        above = []
    left = max(1, room - len(above) - len(below))
    if len(body) > left:  # keep the last lines: they have the newest tokens
        body = (
            [Text(spell("…", screen), "dim"), *body[len(body) - left + 1 :]]
            if left > 1
            else body[-1:]
        )
    return [*above, *body, *below]


def draw_end(record: Attention, view: GenerationView) -> list[Text]:
    """Draw the generated text, its notes and the receipt."""
    read, made = (
        f"“{visible(record.text)}”",
        f"{spell('→', view.screen)} “{visible(record.target or '')}”",
    )
    lines = wrap(read, view.screen, "bold", most=view.screen.width)
    if len(short := shortened(lines, view.screen)) < len(lines):  # a long prompt is cut
        lines = [*short, *wrap(made, view.screen, "bold", most=view.screen.width)]
    else:
        lines = wrap(f"{read} {made}", view.screen, "bold", most=view.screen.width)
    for note in record.notes:
        lines += wrap(
            in_language(sentence(note), view.language), view.screen, "dim", most=view.screen.width
        )
    return [
        *lines,
        *wrap(
            in_language(proof(record.receipt), view.language),
            view.screen,
            "bold",
            most=view.screen.width,
        ),
    ]


def _marked(tokens: Sequence[Token], screen: Screen) -> list[tuple[str, bool]]:
    return [
        (spell(part, screen), n == len(tokens))
        for n, part in enumerate(running_text(tokens), start=1)
    ]


def _shaded(tokens: Sequence[Token], weights: np.ndarray, top: float, screen: Screen) -> list[Text]:
    """Return running text, each token on the colour of its weight; without colours, followed by a shade character."""
    steps, blank = levels(weights, top).tolist(), blank_below(top)
    parts = []
    for (part, newest), step, weight in zip(
        _marked(tokens, screen), steps, weights.tolist(), strict=True
    ):
        bare = part.lstrip(" ")
        text = Text(part[: len(part) - len(bare)])
        style = (
            screen.paint(step)
            if screen.colour and (weight >= blank or not screen.has_blanks)
            else Style()
        )
        text.append(bare, style + Style(bold=newest, underline=newest))
        if not screen.colour and weight >= blank:
            text.append(screen.shade(step).strip() or screen.dot)
        parts.append(text)
    return _lines(parts, screen.width)


def _lines(parts: Sequence[Text], width: int) -> list[Text]:
    """Wrap parts into lines of this many cells; a line does not begin with a space."""
    lines = [Text(no_wrap=True)]
    for part in parts:
        if lines[-1].cell_len + part.cell_len > width and lines[-1].cell_len:
            lines.append(Text(no_wrap=True))
        stripped = part[1:] if not lines[-1].cell_len and part.plain.startswith(" ") else part
        while stripped.cell_len > width:
            cut = len(set_cell_size(stripped.plain, width).rstrip()) or 1
            lines[-1].append_text(stripped[:cut])
            lines.append(Text(no_wrap=True))
            stripped = stripped[cut:]
        lines[-1].append_text(stripped)
    return lines


class Live:
    """Shows each new token: redraws a terminal, or prints a line into a pipe."""

    def __init__(self, console: Console, palette: str, lang: str) -> None:
        self._console = console
        self._redraws = console.is_terminal and not console.is_dumb_terminal
        screen = screen_of(console, palette)
        self._view = GenerationView(screen=screen, language=screen.language(lang))
        self._n_lines = 0

    def show(self, step: Step) -> None:
        """Show a new token."""
        if self._redraws:
            lines = draw_step(step, self._view, self._console.height - 1)
            self._write(lines, back=self._n_lines)
            self._n_lines = len(lines)
        else:
            head = draw_table_head(step, self._view) if step.number == 1 else []
            self._write([*head, draw_line(step, self._view)])

    def end(self, record: Attention) -> None:
        """Show the generated text and the receipt."""
        self._write(draw_end(record, self._view))

    def _write(self, lines: Sequence[Text], back: int = 0) -> None:
        """Overwrite this many lines above, in one write, which flickers less."""
        with self._console.capture() as output:
            for line in lines:
                self._console.print(line, soft_wrap=True)
        sys.stdout.write((f"\x1b[{back}F\x1b[J" if back else "") + output.get())
        sys.stdout.flush()
