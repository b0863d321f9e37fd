"""A walkthrough in a terminal: every step with its formula, shapes, numbers and one cell done by hand.

Where one query is followed, what it makes of the keys stands in one table, a row for each key: score, weight,
alignment vector.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from attnviz.text.steps import explained, formulated, shaped
from attnviz.views.palette import LEVELS, colours
from attnviz.views.terminal import Screen
from attnviz.views.walk_grids import INDENT, Lesson, keyed, lined, numbered
from attnviz.views.walk_lines import fitted, likeness, prose
from attnviz.views.walk_table import Block
from attnviz.views.walk_words import (
    BY_KEY,
    NO_BLANKS,
    Blanks,
    by_hand,
    chosen,
    followed,
    note_lines,
    receipt_line,
    say,
    source_line,
    title_line,
)
from attnviz.walk import Step, Walkthrough


def walked(
    walk: Walkthrough,
    screen: Screen,
    *,
    language: str = "en",
    precision: int = 3,
    steps: Sequence[str] | None = None,
    blanks: Blanks = NO_BLANKS,
    first: int = 1,
) -> Iterator[Text]:
    """The whole calculation, in lines no wider than the screen.

    Args:
        walk: what to show.
        screen: where.
        language: one of `attnviz.text.steps.LANGUAGES`; a screen that knows no more than ASCII gets English.
        precision: digits after the point of each number.
        steps: the names of the steps to show; None shows all.
        blanks: cells that a learner fills in: grid, row, column.
        first: the number of the step to begin at.

    Raises:
        SelectionError: a step or a language that is not there.
    """
    lesson = Lesson(walk=walk, screen=screen, language=language, precision=precision, blanks=blanks)
    shown_steps = chosen(walk, steps, first)
    yield from _head(lesson)
    yield from _steps(lesson, shown_steps)
    yield from _foot(lesson)


def page(
    walk: Walkthrough,
    screen: Screen,
    number: int,
    *,
    language: str = "en",
    precision: int = 3,
    steps: Sequence[str] | None = None,
    blanks: Blanks = NO_BLANKS,
) -> list[Text]:
    """One step of the calculation by itself; what the query makes of the keys as far as that step.

    The page of the last step ends as the whole calculation does.

    Args:
        walk: what to show.
        screen: where.
        number: the step's, from 1.
        language: as in `walked`, and so are the others.
        precision: digits after the point of each number.
        steps: the names of all steps that are shown.
        blanks: cells that stay empty.

    Raises:
        SelectionError: a step or a language that is not there.
    """
    lesson = Lesson(walk=walk, screen=screen, language=language, precision=precision, blanks=blanks)
    every = chosen(walk, steps)
    so_far = [(one, step) for one, step in every if one <= number]
    lines = [*_head(lesson), *_steps(lesson, so_far, only=number)]
    return [*lines, *(_foot(lesson) if len(so_far) == len(every) else ())]


def key_line(walk: Walkthrough, number: int, lines: tuple[int, int, int], screen: Screen, language: str) -> str:
    """What stands below a page: which step it is, which of its lines are seen, and which keys there are.

    Args:
        walk: what is shown.
        number: the step's.
        lines: the first and the last line seen, from 1, and how many there are.
        screen: where.
        language: as in `walked`.
    """
    spoken = language if screen.unicode else "en"
    parts = [say("step", spoken, n=number, total=len(walk.steps))]
    first, last, n = lines
    parts += [say("lines", spoken, first=first, last=last, n=n)] if last - first + 1 < n else []
    return fitted(likeness(" · ".join([*parts, say("keys", spoken)]), screen), screen.width, screen)


def _head(lesson: Lesson) -> Iterator[Text]:
    """Whose calculation it is."""
    yield from prose(title_line(lesson.walk, lesson.spoken), lesson.screen, "bold")
    yield from prose(source_line(lesson.walk, lesson.spoken), lesson.screen)


def _foot(lesson: Lesson) -> Iterator[Text]:
    """What the shades mean, what was done to the input, and how far all is from the model's own."""
    walk, screen = lesson.walk, lesson.screen
    yield from _legend(lesson)
    if lesson.spoken != lesson.language:
        yield from prose(say("ascii", "en"), screen, "dim")
    for note in note_lines(walk, lesson.spoken):
        yield from prose(note, screen, "dim")
    yield from prose(receipt_line(walk, lesson.spoken), screen, "bold" if walk.own is not None else "")


def _steps(lesson: Lesson, shown_steps: Sequence[tuple[int, Step]], only: int | None = None) -> Iterator[Text]:
    """Each step, and before it what it needs that was given; or only the one with this number."""
    walk = lesson.walk
    weights = followed(walk)
    by_key = [step for _, step in shown_steps if weights is not None and step.name in BY_KEY]
    given = set(walk.given())
    for number, step in shown_steps:
        needed = [name for name in dict.fromkeys(step.operands) if name in given]
        given -= set(needed)
        if only not in {None, number}:
            continue
        if step.operation == "concatenate" and len(needed) > 1 and all(len(walk.grids[n].values) == 1 for n in needed):
            yield from _others(lesson, needed)
        else:
            for name in needed:
                yield from _given(lesson, name)
        yield from _step(lesson, number, step)
        if step not in by_key:
            yield from numbered(lesson, step.result)
        elif step is by_key[-1]:
            yield from keyed(lesson, by_key)


def _given(lesson: Lesson, name: str) -> Iterator[Text]:
    """A grid that no step makes."""
    told = explained(name, lesson.spoken)
    n_rows, n_columns = lesson.walk.grids[name].values.shape
    yield Text()
    yield from prose(f"{told.title} ({n_rows}, {n_columns})", lesson.screen, "bold")
    if told.sentence:
        yield from prose(told.sentence, lesson.screen, "", INDENT)
    yield from numbered(lesson, name)


def _others(lesson: Lesson, names: Sequence[str]) -> Iterator[Text]:
    """The contexts of other heads, a row for each."""
    import numpy as np

    told = explained("contexts", lesson.spoken)
    values = np.vstack([lesson.walk.grids[name].values for name in names])
    blanks = frozenset((names.index(name), column) for name, _, column in lesson.blanks if name in names)
    yield Text()
    yield from prose(f"{told.title} ({len(names)} x {values.shape[1]})", lesson.screen, "bold")
    yield from prose(told.sentence, lesson.screen, "", INDENT)
    total = say("sum", lesson.spoken, n=values.shape[1])
    yield from lined(lesson, [Block(title="", values=values, total=total, blanks=blanks)], names, "", named=True)


def _step(lesson: Lesson, number: int, step: Step) -> Iterator[Text]:
    """A step in words: its title, formula, shapes, a sentence, and one cell done by hand."""
    walk, screen = lesson.walk, lesson.screen
    told = explained(step.name, lesson.spoken)
    yield Text()
    yield from prose(f"{number}. {told.title}", screen, "bold")
    formula = likeness(formulated(step, language=lesson.spoken), screen)
    shapes = likeness(shaped(walk, step, language=lesson.spoken), screen)
    if INDENT + cell_len(formula) + INDENT + cell_len(shapes) <= screen.width:
        yield Text.assemble(" " * INDENT, formula, " " * INDENT, (shapes, "dim"), no_wrap=True)
    else:
        yield from prose(formula, screen, "", INDENT)
        yield from prose(shapes, screen, "dim", INDENT)
    yield from prose(told.sentence, screen, "", INDENT)
    yield from prose(by_hand(walk, step, lesson.precision, lesson.spoken, lesson.blanks), screen, "", INDENT)


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
    first, *rest = prose(say("shade", lesson.spoken), screen, "dim", bar.cell_len)
    yield Text()
    yield Text.assemble(bar, (first.plain.lstrip(), "dim"), no_wrap=True)
    yield from rest
