"""A generation in the terminal: a line for each new token, then the text, the notes and the receipt."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from attnviz.attention import Attention
from attnviz.generations.record import LEAST, Step, whose
from attnviz.render.sheet import KINDS
from attnviz.render.terminal.screen import Screen
from attnviz.render.terminal.text import fit, shortened, spell, wrap
from attnviz.text.display import percent, visible
from attnviz.text.messages import _
from attnviz.text.notes import proof, sentence

# In character cells: the width of a token's name, and of a probability and its heading.
LABEL_WIDTH = 14
PROBABILITY_WIDTH = 11
MOST_NAMED = 4  # of the tokens attended to


class StepLog:
    """Prints a generation as it goes."""

    def __init__(self, console: Console, screen: Screen) -> None:
        self._console, self._screen = console, screen

    def show(self, step: Step) -> None:
        """Print the line of a new token: number, token, probability, and the tokens attended to.

        Before the first token come the model, the heads shown and a heading.
        """
        if step.number == 1:
            kind = _(KINDS[step.kind])
            self._print(f"{visible(step.model)} · {kind} · {whose(step)}")
            self._print_row("", _("token"), _("probability"), _("attends to"))
        start_width = cell_len(_row("", "", "", ""))
        attended = self._top(step, self._screen.width - start_width)
        self._print_row(str(step.number), step.token.text, percent(step.probability), attended)

    def end(self, record: Attention) -> None:
        """Print the prompt and the generated text, the notes and the receipt."""
        prompt = f"“{visible(record.text)}”"
        generated = f"{spell('→', self._screen)} “{visible(record.target or '')}”"
        lines = wrap(prompt, self._screen, "bold", most=self._screen.width)
        if len(shortened(lines, self._screen)) < len(lines):  # a long prompt is cut
            for line in shortened(lines, self._screen):
                self._console.print(line, soft_wrap=True)
            self._print(generated, "bold")
        else:
            self._print(f"{prompt} {generated}", "bold")
        for note in record.notes:
            self._print(sentence(note), "dim")
        self._print(proof(record.receipt), "bold")

    def _print_row(self, number: str, name: str, probability: str, attended: str) -> None:
        name = fit(name, LABEL_WIDTH, self._screen)
        line = fit(_row(number, name, probability, attended), self._screen.width, self._screen)
        self._console.print(Text(line, no_wrap=True), soft_wrap=True)
        self._console.file.flush()

    def _top(self, step: Step, room: int) -> str:
        """Return the tokens attended to most, with weights, as many as fit in `room` character cells."""
        top = step.top(MOST_NAMED)
        parts = [f"{spell(token.text, self._screen)} {percent(weight)}" for token, weight in top]
        if not parts:
            return _("no token with a weight of {least} or more").format(least=percent(LEAST))
        separator = spell(" · ", self._screen)
        while len(parts) > 1 and cell_len(separator.join(parts)) > room:
            parts.pop()
        return separator.join(parts)

    def _print(self, text: str, style: str = "") -> None:
        """Print a text in lines as wide as the screen, however wide that is."""
        for line in wrap(text, self._screen, style, most=self._screen.width):
            self._console.print(line, soft_wrap=True)


def _row(number: str, name: str, probability: str, attended: str) -> str:
    """Return a line in columns of fixed width."""
    name = set_cell_size(name, LABEL_WIDTH)
    probability = " " * (PROBABILITY_WIDTH - cell_len(probability)) + probability
    return f"{number:>4} {name} {probability}  {attended}"
