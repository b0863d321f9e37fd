"""The numbers of a walkthrough in a terminal: one grid, or what the query makes of each key, a row for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rich.text import Text

from attnviz.text.numbers import shown
from attnviz.text.steps import explained
from attnviz.views.terminal import Screen
from attnviz.views.walk_lines import prose
from attnviz.views.walk_table import Block, rows_shown, table
from attnviz.views.walk_words import Blanks, followed, say
from attnviz.walk import Step, Walkthrough

INDENT = 3
SHORT = 4
"""Vectors of no more numbers need not be counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """A calculation, and how it is shown.

    Attributes:
        walk: the calculation.
        screen: where it is shown.
        language: the one that was asked for, of `attnviz.text.steps.LANGUAGES`.
        precision: digits after the point.
        blanks: cells that a learner fills in.
    """

    walk: Walkthrough
    screen: Screen
    language: str
    precision: int
    blanks: Blanks

    def __post_init__(self) -> None:
        explained("scores", self.language)  # refuses a language that is not there

    @property
    def spoken(self) -> str:
        """The language that the screen can show."""
        return self.language if self.screen.unicode else "en"


def numbered(lesson: Lesson, name: str) -> Iterator[Text]:
    """The numbers of one grid.

    Of a large matrix that no token names only a corner is shown: nobody reads it, but its shape matters.
    """
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
    yield from lined(lesson, [block], labels, "", named=named)


def keyed(lesson: Lesson, steps: Sequence[Step]) -> Iterator[Text]:
    """What the query makes of each key, a row for each."""
    weights = followed(lesson.walk)
    if weights is None:
        return
    blocks = []
    if steps[0].name == "scores" and "K" in steps[0].operands:
        keys = lesson.walk.grids["K"].values
        blanks = blanks_of("K", lesson.blanks)
        blocks.append(_vectors(lesson, say("key vector", lesson.spoken), keys, blanks, optional=True))
    blocks += [_column(lesson, step) for step in steps]
    labels = weights.columns or tuple(map(str, range(weights.values.shape[1])))
    yield Text()
    yield from prose(say("by key", lesson.spoken), lesson.screen, "bold", INDENT)
    yield from lined(lesson, blocks, labels, say("key", lesson.spoken), named=True)
    if any(step.name == "softmax" for step in steps) and not lesson.blanks:
        total = float(weights.values.sum())
        text = say("weights sum", lesson.spoken, total=shown(round(total, 9), lesson.precision))
        if any(len(step.operands) > 1 for step in steps if step.name == "softmax"):
            text += say("rest", lesson.spoken, rest=shown(1 - total, lesson.precision))
        yield from prose(text, lesson.screen, "", INDENT)


def _column(lesson: Lesson, step: Step) -> Block:
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


def lined(lesson: Lesson, blocks: Sequence[Block], labels: Sequence[str], head: str, *, named: bool) -> Iterator[Text]:
    """A table of those rows that are shown, and how many are left out."""
    first, last = rows_shown(len(labels), named=named)
    held = [*range(first), *range(len(labels) - last, len(labels))]
    place = {row: index for index, row in enumerate(held)}
    cut = [
        replace(
            block,
            values=block.values[held],
            blanks=frozenset((place[row], column) for row, column in block.blanks if row in place),
        )
        for block in blocks
    ]
    left_out = len(labels) - len(held)
    more = (first, say("more rows", lesson.spoken, n=left_out)) if left_out else None
    yield from table([labels[row] for row in held], head, cut, lesson.screen, lesson.precision, more=more)


def blanks_of(name: str, blanks: Blanks) -> frozenset[tuple[int, int]]:
    """The rows and columns of one grid's blank cells."""
    return frozenset((row, column) for grid, row, column in blanks if grid == name)
