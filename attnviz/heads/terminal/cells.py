"""The parts that the terminal views of heads are made of: numbers, bars, small patterns, lists of heads."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from rich.style import Style
from rich.text import Text

from attnviz.attention import Note
from attnviz.heads.measures import RoleRule
from attnviz.heads.record import HeadComparison, HeadProfile, Role
from attnviz.heads.wording import MARKS, ends, note_words, proof, rounded, say
from attnviz.render.palette import readable
from attnviz.render.terminal.screen import Screen
from attnviz.render.terminal.table import Column
from attnviz.render.terminal.text import behind, fit, spell, wrap

READABLE = 110  # cells that a line of prose may have; longer lines are hard to come back from
MISSING = "—"  # stands for a number that there is none of
UP = " ▁▂▃▄▅▆▇█"
ALONG = " ▏▎▍▌▋▊▉█"
UP_ASCII = " .:-=+*#@"
LEAST_CELL, WIDEST_CELL = 3, 8
"""Cells that a head takes on a map; of more heads than there is room for, some go on below."""
BAD_SHOWN = 5  # so many lines that could not be used are named
MOST_NAMES = 48  # so many heads are named in one list
SEEN = 0.005  # a share below this reads 0.00
# the least weight that a small pattern's full height stands for: an even head looks even
LEAST_TOP = 0.2
# gives what stands for a head in so many cells
CellOf: TypeAlias = Callable[[HeadProfile, int], Text]


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes in a language, in the characters that a screen has: phrases, numbers, columns."""

    screen: Screen
    language: str = "en"

    def say(self, phrase: str, /, **fields: object) -> str:
        """A phrase of `attnviz.heads.wording`, in the characters that the screen has."""
        return spell(say(phrase, self.language, **fields), self.screen)

    def prose(self, text: str, style: str | Style = "", indent: int = 0) -> list[Text]:
        """A text in lines that can be read; those after the first begin so many cells further in."""
        return wrap(text, self.screen, style, first=0, indent=indent, most=READABLE)

    def tell(self, phrase: str, /, style: str | Style = "", **fields: object) -> list[Text]:
        """A phrase in such lines."""
        return self.prose(say(phrase, self.language, **fields), style)

    def number(self, value: float, digits: int = 2) -> str:
        """A measure with two decimals, or a dash where there is none."""
        return spell(MISSING if math.isnan(value) else rounded(value, digits), self.screen)

    def interval(self, low: float, high: float, digits: int = 2, *, narrow: bool = False) -> str:
        """Both ends, marked where they are not to be trusted; a dash where there are none."""
        return spell(ends(low, high, digits, narrow=narrow) or MISSING, self.screen)

    def mark(self, *, established: bool) -> str:
        """Return the mark before a role, a relation or a change: whether it is established."""
        return spell(MARKS[established], self.screen)

    def column(self, phrase: str, cells: Iterable[Text | str], **how: Any) -> Column:
        """A column of a table under a phrase, or another title; `how` is as of `Column`."""
        spelled = [spell(cell, self.screen) if isinstance(cell, str) else cell for cell in cells]
        return Column(self.say(phrase), spelled, **how)

    def numbers(self, phrase: str, values: Iterable[float], style: str = "", **how: Any) -> Column:
        """A column of measures."""
        texts = map(self.number, values)
        return self.column(
            phrase, [Text(text, style) if style else text for text in texts], right=True, **how
        )


def bar(share: float, width: int, screen: Screen) -> str:
    """A share of 1 as a bar of so many cells; one that reads 0.00 is blank, one that is missing is a dash."""
    if math.isnan(share):
        return fit(MISSING, 1, screen).ljust(width)
    part = min(max(share, 0.0), 1.0) * width if share >= SEEN else 0.0
    if not screen.unicode:
        filled = max(round(part), int(share >= SEEN))
        return ("#" * filled).ljust(width)
    eighths = max(round(part * 8), int(share >= SEEN))
    return ("█" * (eighths // 8) + ALONG[eighths % 8].strip()).ljust(width)


def spark(values: Sequence[float], screen: Screen) -> str:
    """A small pattern: a bar for each weight; nothing where there is no weight, or no such key."""
    top = max([LEAST_TOP, *(value for value in values if not math.isnan(value))])
    steps = UP if screen.unicode else UP_ASCII
    return "".join(
        " "
        if math.isnan(value) or value <= 0
        else steps[max(1, round(value / top * (len(steps) - 1)))]
        for value in values
    )


def rule_style(rule: RoleRule | None, screen: Screen) -> Style:
    """The colour of a role; none where there are no colours, dim where there is no role."""
    if rule is None:
        return Style(dim=True)
    return Style(color=readable(rule.colour, dark=screen.dark)) if screen.colour else Style()


def role_style(role: Role | None, screen: Screen) -> Style:
    """The colour of a role; italic where it is not established."""
    if role is None:
        return Style(dim=True)
    return rule_style(role.rule, screen) + Style(italic=None if role.established else True)


def name_role(role: Role | None, words: str, out: Writer) -> Text:
    """A role in words, after its mark and in its colour."""
    start = out.mark(established=role.established) if role else " "
    return Text(f"{start} {spell(words, out.screen)}", role_style(role, out.screen))


def list_heads(title: Text, names: Sequence[str], out: Writer, indent: int) -> Iterator[Text]:
    """A title and behind it names, `MOST_NAMES` at most, as many in a line as fit; further lines begin below."""
    room = min(READABLE, out.screen.width)
    start = Text.assemble(title, " " * max(1, indent - title.cell_len), no_wrap=True)
    if start.cell_len > room // 2:
        start.rstrip()
        yield start
        indent = 6
        start = Text(" " * indent)
    more = len(names) - MOST_NAMES
    text = " ".join([*names[:MOST_NAMES], *([out.say("and_more", n=more)] if more > 0 else [])])
    yield from behind(
        start, wrap(text, out.screen, first=start.cell_len, indent=indent, most=READABLE)
    )


def draw_clusters(comparison: HeadComparison, out: Writer) -> Iterator[Text]:
    """The clusters of heads that look alike, and the heads that are alone; nothing of heads that were not compared."""
    clusters = sorted(comparison.clusters.items())
    if len(comparison.heads) < 2 or not clusters:
        return
    yield from out.tell("alike")
    groups = [(out.say("cluster", n=n), names) for n, names in clusters if len(names) > 1]
    alone = [names[0] for _, names in clusters if len(names) == 1]
    if alone:
        groups.append((out.say("alone"), alone))
    for what, names in groups:
        yield from list_heads(Text(f"{len(names):>4}  {what}", "dim"), names, out, 18)


def draw_grid(
    comparison: HeadComparison, screen: Screen, cell_of: CellOf, widest: int = WIDEST_CELL
) -> Iterator[Text]:
    """A cell for each head, layers downward, heads across, with their numbers."""
    left = len(str(comparison.n_layers - 1)) + 2
    across = max(1, min(comparison.n_heads, (screen.width - left) // LEAST_CELL))
    bands = -(-comparison.n_heads // across)
    across = -(-comparison.n_heads // bands)
    room = min(widest, (screen.width - left) // across)
    for start in range(0, comparison.n_heads, across):
        if start:
            yield Text()
        numbers = range(start, min(start + across, comparison.n_heads))
        yield _line(" " * left, [Text(str(number), "dim") for number in numbers], room)
        for layer in range(comparison.n_layers):
            heads = [comparison.heads[layer * comparison.n_heads + number] for number in numbers]
            yield _line(f"{layer:<{left}}", [cell_of(head, room - 1) for head in heads], room)


def _line(label: str, cells: Iterable[Text], room: int) -> Text:
    line = Text(no_wrap=True)
    line.append(label, "dim")
    for cell in cells:
        line.append_text(cell)
        line.append(" " * (room - cell.cell_len))
    line.rstrip()
    return line


def draw_notes(comparison: HeadComparison, notes: Sequence[Note], out: Writer) -> Iterator[Text]:
    """Draw the lines below every view: notes, bad lines, and the proof last."""
    for note in notes:
        yield from out.tell("note", text=note_words(note, out.language))
    yield from draw_bad_lines(comparison, out)
    more = comparison.n_bad - min(len(comparison.bad), BAD_SHOWN)
    if more > 0:
        yield from out.tell("more_bad", n=more)
    yield from out.prose(proof(comparison, out.language), "bold")


def draw_bad_lines(comparison: HeadComparison, out: Writer) -> Iterator[Text]:
    """The first lines that could not be used."""
    for line, reason in comparison.bad[:BAD_SHOWN]:
        yield from out.prose(say("bad_line", out.language, line=line, reason=reason), indent=2)
