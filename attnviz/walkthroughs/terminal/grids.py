"""The numbers of a walkthrough in a terminal: one grid, or what the query makes of each key, a row for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rich.text import Text

from attnviz.render.terminal.screen import Screen
from attnviz.text.numbers import shown
from attnviz.walkthroughs.record import CalculationStep, Grid, Walkthrough
from attnviz.walkthroughs.selection import Blanks, Seen, followed
from attnviz.walkthroughs.terminal.lines import prose
from attnviz.walkthroughs.terminal.table import Block, columns_shown, rows_shown, table
from attnviz.walkthroughs.wording import explain, say

INDENT = 3
SHORT = 4
"""Vectors of no more numbers need not be counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """A calculation, and how it is shown.

    Attributes:
        walk: the calculation.
        screen: where it is shown.
        language: the one that was asked for, of `attnviz.walkthroughs.texts.LANGUAGES`.
        precision: digits after the point.
        blanks: cells that a learner fills in.
    """

    walk: Walkthrough
    screen: Screen
    language: str
    precision: int
    blanks: Blanks

    def __post_init__(self) -> None:
        explain("scores", self.language)  # refuses a language that is not there

    @property
    def spoken(self) -> str:
        """The language that the screen can show."""
        return self.language if self.screen.unicode else "en"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Rows of numbers, before it is known how many of them and of their columns are printed.

    Attributes:
        blocks: the numbers.
        labels: a name for each row.
        head: what the names are.
        named: whether somebody reads each row; of others a few will do.
    """

    blocks: tuple[Block, ...]
    labels: tuple[str, ...]
    head: str = ""
    named: bool = True


def numbered(lesson: Lesson, name: str) -> Iterator[Text]:
    """The numbers of one grid.

    Of a large matrix that no token names only a corner is shown: nobody reads it, but its shape matters.
    """
    yield from lined(lesson, _lines_of(lesson, name))


def keyed(lesson: Lesson, steps: Sequence[CalculationStep]) -> Iterator[Text]:
    """What the query makes of each key, a row for each."""
    weights = followed(lesson.walk)
    if weights is None:
        return
    yield Text()
    yield from prose(say("by key", lesson.spoken), lesson.screen, "bold", INDENT)
    yield from lined(lesson, _lines_by_key(lesson, steps, weights))
    if any(step.name == "softmax" for step in steps) and not lesson.blanks:
        total = float(weights.values.sum())
        text = say("weights sum", lesson.spoken, total=shown(round(total, 9), lesson.precision))
        if any(len(step.operands) > 1 for step in steps if step.name == "softmax"):
            text += say("rest", lesson.spoken, rest=shown(1 - total, lesson.precision))
        yield from prose(text, lesson.screen, "", INDENT)


def seen(lesson: Lesson, step: CalculationStep, by_key: Sequence[CalculationStep]) -> Seen:
    """The rows and columns of what a step makes that are printed; `by_key` are the steps of the table of keys."""
    weights = followed(lesson.walk)
    if weights is None or step not in by_key:
        lines, number = _lines_of(lesson, step.result), 0
    else:
        lines = _lines_by_key(lesson, by_key, weights)
        number = len(lines.blocks) - len(by_key) + by_key.index(step)
    rows, cut = _cut(lines)
    columns = columns_shown(cut.labels, cut.head, cut.blocks, lesson.screen, lesson.precision)[number]
    is_turned = step in by_key and step.operation != "weigh"
    return ([0], rows) if is_turned else (rows, columns)


def _lines_of(lesson: Lesson, name: str) -> Lines:
    grid = lesson.walk.grids[name]
    n_rows, n_columns = grid.values.shape
    named = bool(grid.rows) or n_rows == 1
    block = Block(
        title="",
        values=grid.values,
        names=grid.columns,
        total=say("sum", lesson.spoken, n=n_columns) if named else "",
        blanks=blanks_of(name, lesson.blanks),
    )
    labels = grid.rows or ((name,) if n_rows == 1 else tuple(map(str, range(n_rows))))
    return Lines(blocks=(block,), labels=labels, named=named)


def _lines_by_key(lesson: Lesson, steps: Sequence[CalculationStep], weights: Grid) -> Lines:
    """A row for each key, with the key itself where there is room."""
    blocks = []
    if steps[0].name == "scores" and "K" in steps[0].operands:
        keys = lesson.walk.grids["K"].values
        blanks = blanks_of("K", lesson.blanks)
        blocks.append(_vectors(lesson, say("key vector", lesson.spoken), keys, blanks, optional=True))
    blocks += [_column(lesson, step) for step in steps]
    labels = weights.columns or tuple(map(str, range(weights.values.shape[1])))
    return Lines(blocks=tuple(blocks), labels=labels, head=say("key", lesson.spoken))


def _column(lesson: Lesson, step: CalculationStep) -> Block:
    """What one step makes of each key: a number or a vector."""
    values = lesson.walk.grids[step.result].values
    title = say(step.name, lesson.spoken)
    blanks = blanks_of(step.result, lesson.blanks)
    if step.operation == "weigh":
        return _vectors(lesson, title, values, blanks)
    return Block(title=title, values=values.T, blanks=frozenset((column, row) for row, column in blanks))


def _vectors(
    lesson: Lesson, title: str, values: object, blanks: frozenset[tuple[int, int]], *, optional: bool = False
) -> Block:
    """A vector for each key."""
    import numpy as np

    numbers = np.asarray(values)
    n = numbers.shape[1]
    return Block(
        title=say("numbers", lesson.spoken, name=title, n=n) if n > SHORT else title,
        values=numbers,
        total=say("sum", lesson.spoken, n=n),
        blanks=blanks,
        optional=optional,
    )


def lined(lesson: Lesson, lines: Lines) -> Iterator[Text]:
    """A table of those rows that are shown, and how many are left out."""
    held, cut = _cut(lines)
    left_out = len(lines.labels) - len(held)
    first, _ = rows_shown(len(lines.labels), named=lines.named)
    more = (first, say("more rows", lesson.spoken, n=left_out)) if left_out else None
    yield from table(cut.labels, cut.head, cut.blocks, lesson.screen, lesson.precision, more=more)


def _cut(lines: Lines) -> tuple[list[int], Lines]:
    """The rows that are shown, and the numbers and names of these."""
    n = len(lines.labels)
    first, last = rows_shown(n, named=lines.named)
    held = [*range(first), *range(n - last, n)]
    place = {row: index for index, row in enumerate(held)}
    blocks = (
        replace(
            block,
            values=block.values[held],
            blanks=frozenset((place[row], column) for row, column in block.blanks if row in place),
        )
        for block in lines.blocks
    )
    return held, replace(lines, blocks=tuple(blocks), labels=tuple(lines.labels[row] for row in held))


def blanks_of(name: str, blanks: Blanks) -> frozenset[tuple[int, int]]:
    """The rows and columns of one grid's blank cells."""
    return frozenset((row, column) for grid, row, column in blanks if grid == name)
