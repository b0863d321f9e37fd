"""A walkthrough in a terminal: every step with its formula, shapes, numbers and one cell done by hand.

Where one query is followed, what it makes of the keys stands in one table, a row for each key: score, weight,
alignment vector.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from attnviz.text.numbers import shown
from attnviz.text.steps import explained, formulated, shaped
from attnviz.views.palette import LEVELS, colours
from attnviz.views.terminal import Screen
from attnviz.views.walk_lines import likeness, prose
from attnviz.views.walk_table import Block, rows_shown, table
from attnviz.views.walk_words import (
    BY_KEY,
    NO_BLANKS,
    Blanks,
    by_hand,
    chosen,
    followed,
    receipt_line,
    say,
    source_line,
)
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
        language: one of `attnviz.text.steps.LANGUAGES`.
        precision: digits after the point.
        blanks: cells that a learner fills in.
    """

    walk: Walkthrough
    screen: Screen
    language: str
    precision: int
    blanks: Blanks


def walked(
    walk: Walkthrough,
    screen: Screen,
    *,
    language: str = "en",
    precision: int = 3,
    steps: Sequence[str] | None = None,
    blanks: Blanks = NO_BLANKS,
) -> Iterator[Text]:
    """The whole calculation, in lines no wider than the screen.

    Args:
        walk: what to show.
        screen: where.
        language: one of `attnviz.text.steps.LANGUAGES`; a screen that knows no more than ASCII gets English.
        precision: digits after the point of each number.
        steps: the names of the steps to show; None shows all.
        blanks: cells that a learner fills in: grid, row, column.

    Raises:
        SelectionError: a step or a language that is not there.
    """
    explained("scores", language)  # refuses a language that is not there
    lesson = Lesson(
        walk=walk,
        screen=screen,
        language=language if screen.unicode else "en",
        precision=precision,
        blanks=blanks,
    )
    yield from prose(walk.title, screen, "bold")
    yield from prose(source_line(walk, lesson.language), screen)
    yield from _steps(lesson, steps)
    yield from _legend(lesson)
    if lesson.language != language:
        yield from prose(say("ascii", "en"), screen, "dim")
    for note in walk.notes:
        yield from prose(note, screen, "dim")
    yield from prose(receipt_line(walk, lesson.language), screen, "bold" if walk.own is not None else "")


def _steps(lesson: Lesson, names: Sequence[str] | None) -> Iterator[Text]:
    """Each step, and before it what it needs that was given."""
    walk = lesson.walk
    shown_steps = chosen(walk, names)
    weights = followed(walk)
    by_key = [step for _, step in shown_steps if weights is not None and step.name in BY_KEY]
    given = set(walk.given())
    for number, step in shown_steps:
        needed = [name for name in dict.fromkeys(step.operands) if name in given]
        given -= set(needed)
        if step.operation == "concatenate" and len(needed) > 1 and all(len(walk.grids[n].values) == 1 for n in needed):
            yield from _others(lesson, needed)
        else:
            for name in needed:
                yield from _given(lesson, name)
        yield from _step(lesson, number, step)
        if step not in by_key:
            yield from _grid(lesson, step.result)
        elif step is by_key[-1]:
            yield from _by_key(lesson, by_key)


def _given(lesson: Lesson, name: str) -> Iterator[Text]:
    """A grid that no step makes."""
    told = explained(name, lesson.language)
    n_rows, n_columns = lesson.walk.grids[name].values.shape
    yield Text()
    yield from prose(f"{told.title} ({n_rows}, {n_columns})", lesson.screen, "bold")
    if told.sentence:
        yield from prose(told.sentence, lesson.screen, "", INDENT)
    yield from _grid(lesson, name)


def _others(lesson: Lesson, names: Sequence[str]) -> Iterator[Text]:
    """The contexts of other heads, a row for each."""
    import numpy as np

    told = explained("contexts", lesson.language)
    values = np.vstack([lesson.walk.grids[name].values for name in names])
    blanks = frozenset((names.index(name), column) for name, _, column in lesson.blanks if name in names)
    yield Text()
    yield from prose(f"{told.title} ({len(names)} x {values.shape[1]})", lesson.screen, "bold")
    yield from prose(told.sentence, lesson.screen, "", INDENT)
    total = say("sum", lesson.language, n=values.shape[1])
    yield from _rows(lesson, [Block(title="", values=values, total=total, blanks=blanks)], names, "", named=True)


def _step(lesson: Lesson, number: int, step: Step) -> Iterator[Text]:
    """A step in words: its title, formula, shapes, a sentence, and one cell done by hand."""
    walk, screen = lesson.walk, lesson.screen
    told = explained(step.name, lesson.language)
    yield Text()
    yield from prose(f"{number}. {told.title}", screen, "bold")
    formula, shapes = likeness(formulated(step), screen), likeness(shaped(walk, step), screen)
    if INDENT + cell_len(formula) + INDENT + cell_len(shapes) <= screen.width:
        yield Text.assemble(" " * INDENT, formula, " " * INDENT, (shapes, "dim"), no_wrap=True)
    else:
        yield from prose(formula, screen, "", INDENT)
        yield from prose(shapes, screen, "dim", INDENT)
    yield from prose(told.sentence, screen, "", INDENT)
    yield from prose(by_hand(walk, step, lesson.precision, lesson.language, lesson.blanks), screen, "", INDENT)


def _grid(lesson: Lesson, name: str) -> Iterator[Text]:
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
        total=say("sum", lesson.language, n=n_columns) if named else "",
        blanks=_blanks_of(name, lesson.blanks),
    )
    labels = grid.rows or ((name,) if n_rows == 1 else tuple(map(str, range(n_rows))))
    yield from _rows(lesson, [block], labels, "", named=named)


def _by_key(lesson: Lesson, steps: Sequence[Step]) -> Iterator[Text]:
    """What the query makes of each key, a row for each."""
    weights = followed(lesson.walk)
    if weights is None:
        return
    blocks = []
    if steps[0].name == "scores" and "K" in steps[0].operands:
        keys = lesson.walk.grids["K"].values
        blanks = _blanks_of("K", lesson.blanks)
        blocks.append(_vectors(lesson, say("key vector", lesson.language), keys, blanks, optional=True))
    blocks += [_column(lesson, step) for step in steps]
    labels = weights.columns or tuple(map(str, range(weights.values.shape[1])))
    yield Text()
    yield from prose(say("by key", lesson.language), lesson.screen, "bold", INDENT)
    yield from _rows(lesson, blocks, labels, say("key", lesson.language), named=True)
    if any(step.name == "softmax" for step in steps) and not lesson.blanks:
        total = float(weights.values.sum())
        text = say("weights sum", lesson.language, total=shown(round(total, 9), lesson.precision))
        if any(len(step.operands) > 1 for step in steps if step.name == "softmax"):
            text += say("rest", lesson.language, rest=shown(1 - total, lesson.precision))
        yield from prose(text, lesson.screen, "", INDENT)


def _column(lesson: Lesson, step: Step) -> Block:
    """What one step makes of each key: a number or a vector."""
    values = lesson.walk.grids[step.result].values
    title = say(step.name, lesson.language)
    blanks = _blanks_of(step.result, lesson.blanks)
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
        title=say("numbers", lesson.language, name=title, n=n) if n > SHORT else title,
        values=numbers,
        total=say("sum", lesson.language, n=n),
        blanks=blanks,
        optional=optional,
    )


def _rows(lesson: Lesson, blocks: Sequence[Block], labels: Sequence[str], head: str, *, named: bool) -> Iterator[Text]:
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
    more = (first, say("more rows", lesson.language, n=left_out)) if left_out else None
    yield from table([labels[row] for row in held], head, cut, lesson.screen, lesson.precision, more=more)


def _blanks_of(name: str, blanks: Blanks) -> frozenset[tuple[int, int]]:
    return frozenset((row, column) for grid, row, column in blanks if grid == name)


def _legend(lesson: Lesson) -> Iterator[Text]:
    """What the shades mean."""
    screen = lesson.screen
    bar = Text(no_wrap=True)
    if screen.colour:
        palette = colours(screen.palette, on_dark=screen.dark)
        for step in range(0, LEVELS, 32):
            bar.append(" ", Style(bgcolor="#" + bytes(palette[step]).hex()))
    else:
        bar.append(f"[{screen.shades}]")
    bar.append(" ")
    first, *rest = prose(say("shade", lesson.language), screen, "dim", bar.cell_len)
    yield Text()
    yield Text.assemble(bar, (first.plain.lstrip(), "dim"), no_wrap=True)
    yield from rest
