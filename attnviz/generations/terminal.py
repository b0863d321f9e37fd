"""A generation in the terminal: the text so far, shaded by the row that chose the newest token.

A terminal is redrawn at each token; a pipe gets one line per token.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from attnviz.attention import Attention, Token
from attnviz.generations.record import LEAST, Step, running_text, whose
from attnviz.render.palette import levels
from attnviz.render.sheet import KINDS, blank_below
from attnviz.render.terminal.screen import Screen
from attnviz.render.terminal.text import fit, fold, legend, shortened, spell, wrap
from attnviz.text.display import visible
from attnviz.text.messages import _, in_language
from attnviz.text.notes import proof, sentence

# Widths in a line of a pipe, in character cells: of a token's name, and of a probability and its heading.
LABEL_WIDTH = 14
PROBABILITY_WIDTH = 11
MOST_NAMED = 4  # of the tokens attended to


class Live:
    """Shows each new token: redraws a terminal, or prints a line into a pipe."""

    def __init__(self, console: Console, screen: Screen, language: str = "en") -> None:
        self._console, self._screen = console, screen
        self._language = screen.language(language)
        can_redraw = not (console.is_dumb_terminal or console.legacy_windows)
        self._redraws = console.is_terminal and can_redraw
        self._n_lines = 0  # of the last token that was drawn

    def show(self, step: Step) -> None:
        """Show a new token."""
        if self._redraws:
            lines = self.drawing(step, self._console.height - 1)
            self._print(lines, back=self._n_lines)
            self._n_lines = len(lines)
        else:
            self._print(self.rows(step))

    def end(self, record: Attention) -> None:
        """Show the prompt and the generated text, the notes and the receipt."""
        prompt = self._wrap(f"“{visible(record.text)}”", "bold")
        arrow = spell("→", self._screen)
        generated = f"{arrow} “{visible(record.target or '')}”"
        lines = shortened(prompt, self._screen)
        if len(lines) < len(prompt):  # a long prompt is cut
            lines = [*lines, *self._wrap(generated, "bold")]
        else:
            lines = self._wrap(f"“{visible(record.text)}” {generated}", "bold")
        for note in record.notes:
            lines += self._wrap(self._say(sentence(note)), "dim")
        self._print([*lines, *self._wrap(self._say(proof(record.receipt)), "bold")])

    def rows(self, step: Step) -> list[Text]:
        """Return the line for a pipe: number, token, probability, and the tokens attended to.

        Before the first token come the model, the heads shown and a heading.
        """
        names = (self._say(_("token")), self._say(_("probability")), self._say(_("attends to")))
        head = [*self._head(step), self._row("", *names)] if step.number == 1 else []
        start_width = cell_len(self._row("", "", "", "").plain)
        attended = self._top(step, self._screen.width - start_width)
        return [
            *head,
            self._row(str(step.number), step.token.text, f"{step.probability:.2f}", attended),
        ]

    def drawing(self, step: Step, room: int) -> list[Text]:
        """Return the text so far, shaded by the newest token's row, and the tokens that it attends to most.

        The lines are at most `room`: if the text is longer, its first lines are left out.
        """
        screen = self._screen
        top = float(step.mean.max())
        number = _("token {number} of at most {most}").format(number=step.number, most=step.most)
        chance = _(" (probability {probability:.2f})").format(probability=step.probability)
        newest = spell(step.token.text, screen) + self._say(chance)
        attended = self._say(_("attends to: {tokens}").format(tokens=self._top(step)))
        scale = self._say(_("0 to {top:.2g}: weights of the newest token's row").format(top=top))
        above = [*self._head(step), *wrap(self._say(number), screen, "dim"), Text()]
        below = [
            Text(),
            *self._wrap(newest, "bold"),
            *wrap(attended, screen, indent=2, first=0, most=screen.width),
            *legend(scale, screen, cells=8, most=screen.width),
        ]
        body = self._body(step, top)
        # A small screen has no room for the heading above the text.
        if len(above) + len(below) + min(len(body), 2) > room:
            above = []
        left = max(1, room - len(above) - len(below))
        if len(body) > left:  # the last lines have the newest tokens
            ellipsis = [Text(spell("…", screen), "dim")] if left > 1 else []
            body = [*ellipsis, *body[len(body) - left + len(ellipsis) :]]
        return [*above, *body, *below]

    def _body(self, step: Step, top: float) -> list[Text]:
        """Return the keys as running text, on the colours of their weights, and the generated text."""
        shaded = self._shaded(step.keys, step.mean, top)
        if step.kind != "cross":
            newest = spell(running_text((*step.keys, step.token))[-1], self._screen)
            return self._fold(*shaded, Text(newest, "bold underline"))
        *earlier, newest = (spell(part, self._screen) for part in running_text(step.so_far))
        return [*self._fold(*shaded), Text(), *self._fold(*earlier, Text(newest, "bold"))]

    def _shaded(self, tokens: Sequence[Token], weights: np.ndarray, top: float) -> list[Text]:
        """Return running text, one part per token, on the colour of its weight or followed by a shade character."""
        screen, blank = self._screen, blank_below(top)
        parts = []
        for part, level, weight in zip(
            running_text(tokens), levels(weights, top).tolist(), weights.tolist(), strict=True
        ):
            part = spell(part, screen)
            bare = part.lstrip(" ")
            text = Text(part[: len(part) - len(bare)])  # the space before a word has no colour
            has_colour = screen.colour and (weight >= blank or not screen.has_blanks)
            text.append(bare, screen.paint(level) if has_colour else None)
            if not screen.colour and weight >= blank:
                text.append(screen.shade(level).strip() or screen.dot)
            parts.append(text)
        return parts

    def _head(self, step: Step) -> list[Text]:
        """Return the lines with the model and the heads shown."""
        kind = self._say(KINDS[step.kind])
        return self._wrap(f"{visible(step.model)} · {kind} · {self._say(whose(step))}")

    def _row(self, number: str, name: str, probability: str, attended: str) -> Text:
        """Return a line of a pipe, in columns of fixed width."""
        name = set_cell_size(fit(name, LABEL_WIDTH, self._screen), LABEL_WIDTH)
        probability = " " * (PROBABILITY_WIDTH - cell_len(probability)) + probability
        line = f"{number:>4} {name} {probability}  {attended}"
        return Text(fit(line, self._screen.width, self._screen), no_wrap=True)

    def _top(self, step: Step, room: int | None = None) -> str:
        """Return the tokens attended to most, with weights, as many as fit in `room` character cells."""
        top = step.top(MOST_NAMED)
        parts = [f"{spell(token.text, self._screen)} {weight:.2f}" for token, weight in top]
        if not parts:
            return self._say(_("no token with a weight of {least} or more").format(least=LEAST))
        separator = spell(" · ", self._screen)
        while room is not None and len(parts) > 1 and cell_len(separator.join(parts)) > room:
            parts.pop()
        return separator.join(parts)

    def _say(self, text: str) -> str:
        return in_language(text, self._language)

    def _wrap(self, text: str, style: str = "") -> list[Text]:
        """Return the text in lines as wide as the screen, however wide that is."""
        return wrap(text, self._screen, style, most=self._screen.width)

    def _fold(self, *parts: Text | str) -> list[Text]:
        return fold(Text.assemble(*parts), self._screen.width)

    def _print(self, lines: Sequence[Text], back: int = 0) -> None:
        """Print lines over the last `back` lines, in one write, which flickers less."""
        with self._console:  # writes at the end
            if back:
                self._console.out(f"\x1b[{back}F\x1b[J", end="")
            for line in lines:
                self._console.print(line, soft_wrap=True)
        self._console.file.flush()
