"""A walkthrough in a terminal: every step with its formula, shapes, numbers and one cell done by hand.

Where one query is followed, what it makes of the keys stands in one table, a row for each key: score, weight,
alignment vector.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Unpack

from rich.cells import cell_len
from rich.text import Text

from attnviz.render.terminal.screen import Screen, scale_bar
from attnviz.walkthroughs.record import CalculationStep, Walkthrough
from attnviz.walkthroughs.selection import BY_KEY, NO_BLANKS, ViewOptions, by_hand, chosen, followed
from attnviz.walkthroughs.terminal.grids import INDENT, Lesson, Lines, keyed, lined, numbered, seen
from attnviz.walkthroughs.terminal.lines import fitted, likeness, prose
from attnviz.walkthroughs.terminal.table import Block
from attnviz.walkthroughs.wording import (
    by_cells,
    explain,
    formula_of,
    multiplied,
    note_lines,
    receipt_line,
    say,
    shapes_of,
    source_line,
    title_line,
)


def walked(walk: Walkthrough, screen: Screen, *, first: int = 1, **told: Unpack[ViewOptions]) -> Iterator[Text]:
    """The whole calculation, in lines no wider than the screen.

    Args:
        walk: what to show.
        screen: where; one that knows no more than ASCII gets English.
        first: the number of the step to begin at.
        told: as in `attnviz.walkthroughs.selection.ViewOptions`.

    Raises:
        SelectionError: a step or a language that is not there.
    """
    lesson = _lesson(walk, screen, told)
    shown_steps = chosen(walk, told.get("steps"), first)
    yield from _head(lesson)
    yield from _steps(lesson, shown_steps)
    yield from _foot(lesson)


def page(walk: Walkthrough, screen: Screen, number: int, **told: Unpack[ViewOptions]) -> list[Text]:
    """One step of the calculation by itself; what the query makes of the keys as far as that step.

    The page of the last step ends as the whole calculation does.

    Args:
        walk: what to show.
        screen: where.
        number: the step's, from 1.
        told: as in `walked`.

    Raises:
        SelectionError: a step or a language that is not there.
    """
    lesson = _lesson(walk, screen, told)
    every = chosen(walk, told.get("steps"))
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
    first, last, n = lines
    is_cut = last - first + 1 < n
    for form in ("", "short ", "shorter ", "shortest "):
        parts = [say(f"{form}step", spoken, n=number, total=len(walk.steps))]
        parts += [say(f"{form}lines", spoken, first=first, last=last, n=n)] if is_cut else []
        text = likeness(" · ".join([*parts, say(f"{form}keys", spoken)]), screen)
        if cell_len(text) <= screen.width:
            break
    return fitted(text, screen.width, screen)


def _lesson(walk: Walkthrough, screen: Screen, told: ViewOptions) -> Lesson:
    return Lesson(
        walk=walk,
        screen=screen,
        language=told.get("language", "en"),
        precision=told.get("precision", 3),
        blanks=told.get("blanks", NO_BLANKS),
    )


def _head(lesson: Lesson) -> Iterator[Text]:
    """Whose calculation it is."""
    yield from prose(title_line(lesson.walk, lesson.spoken), lesson.screen, "bold")
    yield from prose(source_line(lesson.walk, lesson.spoken), lesson.screen)


def _foot(lesson: Lesson) -> Iterator[Text]:
    """What the shades mean, what was done to the input, and how far all is from the model's own."""
    walk, screen = lesson.walk, lesson.screen
    yield from _legend(lesson)
    signs = say("products", lesson.spoken) + (say("cells", lesson.spoken) if by_cells(walk.steps) else "")
    yield from prose(signs, screen, "dim")
    if lesson.spoken != lesson.language:
        yield from prose(say("ascii", "en"), screen, "dim")
    for note in note_lines(walk, lesson.spoken):
        yield from prose(note, screen, "dim")
    yield from prose(receipt_line(walk, lesson.spoken), screen, "bold" if walk.own is not None else "")


def _steps(
    lesson: Lesson, shown_steps: Sequence[tuple[int, CalculationStep]], only: int | None = None
) -> Iterator[Text]:
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
        yield from _step(lesson, number, step, by_key)
        if step not in by_key:
            yield from numbered(lesson, step.result)
        elif step is by_key[-1]:
            yield from keyed(lesson, by_key)


def _given(lesson: Lesson, name: str) -> Iterator[Text]:
    """A grid that no step makes."""
    told = explain(name, lesson.spoken)
    n_rows, n_columns = lesson.walk.grids[name].values.shape
    yield Text()
    yield from prose(f"{told.title} ({n_rows}, {n_columns})", lesson.screen, "bold")
    if told.sentence:
        yield from prose(told.sentence, lesson.screen, "", INDENT)
    yield from numbered(lesson, name)


def _others(lesson: Lesson, names: Sequence[str]) -> Iterator[Text]:
    """The contexts of other heads, a row for each."""
    import numpy as np

    told = explain("contexts", lesson.spoken)
    values = np.vstack([lesson.walk.grids[name].values for name in names])
    blanks = frozenset((names.index(name), column) for name, _, column in lesson.blanks if name in names)
    yield Text()
    yield from prose(f"{told.title} ({len(names)} x {values.shape[1]})", lesson.screen, "bold")
    yield from prose(told.sentence, lesson.screen, "", INDENT)
    total = say("sum", lesson.spoken, n=values.shape[1])
    block = Block(title="", values=values, total=total, blanks=blanks)
    yield from lined(lesson, Lines(blocks=(block,), labels=tuple(names)))


def _step(lesson: Lesson, number: int, step: CalculationStep, by_key: Sequence[CalculationStep]) -> Iterator[Text]:
    """A step in words: its title, formula, shapes, a sentence, and one cell done by hand."""
    walk, screen = lesson.walk, lesson.screen
    told = explain(step.name, lesson.spoken)
    yield Text()
    yield from prose(f"{number}. {told.title}", screen, "bold")
    formula = likeness(multiplied(formula_of(step, language=lesson.spoken, walk=walk)), screen)
    shapes = likeness(multiplied(shapes_of(walk, step, language=lesson.spoken)), screen)
    if INDENT + cell_len(formula) + INDENT + cell_len(shapes) <= screen.width:
        yield Text.assemble(" " * INDENT, formula, " " * INDENT, (shapes, "dim"), no_wrap=True)
    else:
        yield from prose(formula, screen, "", INDENT)
        yield from prose(shapes, screen, "dim", INDENT)
    yield from prose(told.sentence, screen, "", INDENT)
    hand = by_hand(walk, step, lesson.precision, lesson.spoken, lesson.blanks, seen=seen(lesson, step, by_key))
    yield from prose(hand, screen, "", INDENT)


def _legend(lesson: Lesson) -> Iterator[Text]:
    """What the shades mean."""
    screen = lesson.screen
    bar = scale_bar(screen, 8)
    first, *rest = prose(say("shade", lesson.spoken), screen, "dim", bar.cell_len)
    yield Text()
    yield Text.assemble(bar, (first.plain.lstrip(), "dim"), no_wrap=True)
    yield from rest
