"""A generation in the terminal: the text so far, shaded by the row that chose the newest token.

A terminal is redrawn at each token; a pipe gets one line per token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from attnviz.attention import Attention, Token
from attnviz.generations.record import LEAST, Step, running_text, whose
from attnviz.render.palette import levels
from attnviz.render.sheet import KINDS, blank_below
from attnviz.render.terminal.screen import Screen, screen_of
from attnviz.render.terminal.text import fit, fold, legend, shortened, spell, wrap
from attnviz.render.theme import ThemeName
from attnviz.text.display import visible
from attnviz.text.messages import _, in_language
from attnviz.text.notes import proof, sentence

# Widths in a line of a pipe, in character cells: of a token's name, of a probability and its heading, and of everything
# before the tokens attended to.
LABEL_WIDTH = 14
PROBABILITY_WIDTH = 11
START_WIDTH = 4 + 1 + LABEL_WIDTH + 1 + PROBABILITY_WIDTH + 2
MOST_NAMED = 4  # of the tokens attended to


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationView:
    """The screen and the language of a generation."""

    screen: Screen
    language: str = "en"

    def say(self, text: str) -> str:
        """Return a text in the language of the view."""
        return in_language(text, self.language)

    def top(self, step: Step, room: int | None = None) -> str:
        """Return the tokens attended to most, with weights, as many as fit in `room` character cells."""
        parts = [
            f"{spell(token.text, self.screen)} {weight:.2f}"
            for token, weight in step.top(MOST_NAMED)
        ]
        if not parts:
            return self.say(_("no token with a weight of {least} or more").format(least=LEAST))
        separator = spell(" · ", self.screen)
        while room is not None and len(parts) > 1 and cell_len(separator.join(parts)) > room:
            parts.pop()
        return separator.join(parts)

    def wrap(self, text: str, style: str = "") -> list[Text]:
        """Return the text in lines as wide as the screen, however wide that is."""
        return wrap(text, self.screen, style, most=self.screen.width)


def draw_head(step: Step, view: GenerationView) -> list[Text]:
    """Return the lines with the model and the heads shown."""
    kind = view.say(KINDS[step.kind])
    return view.wrap(f"{visible(step.model)} · {kind} · {view.say(whose(step))}")


def draw_table_head(step: Step, view: GenerationView) -> list[Text]:
    """Return the model and the heads, and the heading above the lines of a pipe."""
    names = (view.say(_("token")), view.say(_("probability")), view.say(_("attends to")))
    return [*draw_head(step, view), _row("", *names, view)]


def draw_line(step: Step, view: GenerationView) -> Text:
    """Return one line for a pipe: number, token, probability, and the tokens attended to."""
    probability = "" if step.probability is None else f"{step.probability:.2f}"
    attended = view.top(step, view.screen.width - START_WIDTH)
    return _row(str(step.number), step.token.text, probability, attended, view)


def _row(number: str, name: str, probability: str, attended: str, view: GenerationView) -> Text:
    """Return a line of a pipe, in columns of fixed width."""
    name = set_cell_size(fit(name, LABEL_WIDTH, view.screen), LABEL_WIDTH)
    probability = " " * (PROBABILITY_WIDTH - cell_len(probability)) + probability
    line = f"{number:>4} {name} {probability}  {attended}"
    return Text(fit(line, view.screen.width, view.screen), no_wrap=True)


def draw_step(step: Step, view: GenerationView, room: int) -> list[Text]:
    """Return the text so far, shaded by the newest token's row, and the tokens that it attends to most.

    The lines are at most `room`: if the text is longer, its first lines are left out.
    """
    screen, mean = view.screen, step.mean
    top = float(mean.max())
    title = view.say(
        _("token {number} of at most {most}").format(number=step.number, most=step.most)
    )
    newest = spell(step.token.text, screen)
    if step.probability is not None:
        words = _(" (probability {probability:.2f})")
        newest += view.say(words.format(probability=step.probability))
    attended = view.say(_("attends to: {tokens}").format(tokens=view.top(step)))
    scale = view.say(_("0 to {top:.2g}: weights of the newest token's row").format(top=top))
    above = [*draw_head(step, view), *wrap(title, screen, "dim"), Text()]
    below = [
        Text(),
        *view.wrap(newest, "bold"),
        *wrap(attended, screen, indent=2, first=0, most=screen.width),
        *legend(scale, screen, cells=8, most=screen.width),
    ]
    if step.kind == "cross":
        *earlier, newest_part = (Text(spell(part, screen)) for part in running_text(step.so_far))
        newest_part.stylize("bold")
        body = [
            *fold(Text.assemble(*_shaded(step.keys, mean, top, screen)), screen.width),
            Text(),
            *fold(Text.assemble(*earlier, newest_part), screen.width),
        ]
    else:
        newest_part = Text(spell(running_text((*step.keys, step.token))[-1], screen))
        newest_part.stylize("bold underline")
        shaded = _shaded(step.keys, mean, top, screen)
        body = fold(Text.assemble(*shaded, newest_part), screen.width)
    # A small screen has no room for the heading above the text.
    if len(above) + len(below) + min(len(body), 2) > room:
        above = []
    left = max(1, room - len(above) - len(below))
    return [*above, *_last_lines(body, left, screen), *below]


def _last_lines(lines: list[Text], n: int, screen: Screen) -> list[Text]:
    """Return the last lines, which have the newest tokens; an ellipsis is the first of `n` if others are left out."""
    if len(lines) <= n:
        return lines
    if n == 1:
        return lines[-1:]
    return [Text(spell("…", screen), "dim"), *lines[len(lines) - n + 1 :]]


def draw_end(record: Attention, view: GenerationView) -> list[Text]:
    """Return the prompt and the generated text, the notes and the receipt."""
    prompt = f"“{visible(record.text)}”"
    generated = f"{spell('→', view.screen)} “{visible(record.target or '')}”"
    prompt_lines = view.wrap(prompt, "bold")
    short_lines = shortened(prompt_lines, view.screen)
    if len(short_lines) < len(prompt_lines):  # a long prompt is cut
        lines = [*short_lines, *view.wrap(generated, "bold")]
    else:
        lines = view.wrap(f"{prompt} {generated}", "bold")
    for note in record.notes:
        lines += view.wrap(view.say(sentence(note)), "dim")
    return [*lines, *view.wrap(view.say(proof(record.receipt)), "bold")]


def _shaded(tokens: Sequence[Token], weights: np.ndarray, top: float, screen: Screen) -> list[Text]:
    """Return running text, one part per token, on the colour of its weight or followed by a shade character."""
    token_levels, blank = levels(weights, top).tolist(), blank_below(top)
    parts = []
    for part, level, weight in zip(
        running_text(tokens), token_levels, weights.tolist(), strict=True
    ):
        part = spell(part, screen)
        bare = part.lstrip(" ")
        text = Text(part[: len(part) - len(bare)])  # the space before a word has no colour
        if screen.colour and (weight >= blank or not screen.has_blanks):
            text.append(bare, screen.paint(level))
        else:
            text.append(bare)
        if not screen.colour and weight >= blank:
            text.append(screen.shade(level).strip() or screen.dot)
        parts.append(text)
    return parts


class Live:
    """Shows each new token: redraws a terminal, or prints a line into a pipe."""

    def __init__(
        self, console: Console, palette: str, lang: str, theme: ThemeName = "auto"
    ) -> None:
        self._console = console
        can_redraw = not (console.is_dumb_terminal or console.legacy_windows)
        self._redraws = console.is_terminal and can_redraw
        screen = screen_of(console, palette, theme)
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
        """Write lines over the last `back` lines, in one write, which flickers less."""
        with self._console:  # writes at the end
            if back:
                self._console.out(f"\x1b[{back}F\x1b[J", end="")
            for line in lines:
                self._console.print(line, soft_wrap=True)
        self._console.file.flush()
