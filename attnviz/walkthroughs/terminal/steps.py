"""A walkthrough in a terminal: every step with its formula, shapes, numbers and one cell done by hand.

Where one query is followed, what it makes of the keys stands in one table, a row for each key: score, weight,
alignment vector.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Unpack

import numpy as np
from rich.cells import cell_len
from rich.text import Text

from attnviz.render.terminal.screen import Screen
from attnviz.render.terminal.text import legend
from attnviz.text.numbers import shown
from attnviz.walkthroughs.record import CalculationStep, Walkthrough
from attnviz.walkthroughs.selection import BY_KEY, NO_BLANKS, Blanks, Seen, ViewOptions, by_hand, chosen, followed
from attnviz.walkthroughs.terminal.numbers import GridTable, Group, View, draw_numbers, printed_cells
from attnviz.walkthroughs.wording import (
    by_cells,
    explain,
    formula_of,
    multiplied,
    note_lines,
    receipt_line,
    shapes_of,
    source_line,
    title_line,
)

INDENT = 3
"""Cells before what belongs to a step."""
SHORT = 4
"""Vectors of no more numbers need not be counted."""


def draw_walk(walk: Walkthrough, screen: Screen, *, first: int = 1, **settings: Unpack[ViewOptions]) -> Iterator[Text]:
    """The whole calculation, in lines no wider than the screen.

    Args:
        walk: what to show.
        screen: where; one that knows no more than ASCII gets English.
        first: the number of the step to begin at.
        settings: as in `attnviz.walkthroughs.selection.ViewOptions`.

    Raises:
        SelectionError: a step or a language that is not there.
    """
    view = _view(walk, screen, settings)
    steps = chosen(walk, settings.get("steps"), first)
    yield from _head(view)
    yield from _steps(view, steps)
    yield from _foot(view)


def draw_step(walk: Walkthrough, screen: Screen, number: int, **settings: Unpack[ViewOptions]) -> list[Text]:
    """One step of the calculation by itself; what the query makes of the keys as far as that step.

    The page of the last step ends as the whole calculation does.

    Args:
        walk: what to show.
        screen: where.
        number: the step's, from 1.
        settings: as in `draw_walk`.

    Raises:
        SelectionError: a step or a language that is not there.
    """
    view = _view(walk, screen, settings)
    every = chosen(walk, settings.get("steps"))
    so_far = [(one, step) for one, step in every if one <= number]
    lines = [*_head(view), *_steps(view, so_far, only=number)]
    return [*lines, *(_foot(view) if len(so_far) == len(every) else ())]


def draw_keys(walk: Walkthrough, number: int, lines: tuple[int, int, int], screen: Screen, language: str) -> str:
    """What stands below a page: which step it is, which of its lines are seen, and which keys there are.

    Args:
        walk: what is shown.
        number: the step's.
        lines: the first and the last line seen, from 1, and how many there are.
        screen: where.
        language: as in `draw_walk`.
    """
    view = _view(walk, screen, {"language": language})
    first, last, n = lines
    for form in ("", "short ", "shorter ", "shortest "):
        parts = [view.say(f"{form}step", n=number, total=len(walk.steps))]
        if last - first + 1 < n:
            parts.append(view.say(f"{form}lines", first=first, last=last, n=n))
        text = " · ".join([*parts, view.say(f"{form}keys")])
        if cell_len(view.spell(text)) <= screen.width:
            break
    return view.fit(text, screen.width)


def _view(walk: Walkthrough, screen: Screen, settings: ViewOptions) -> View:
    """A view with these settings.

    Raises:
        SelectionError: there is no such language.
    """
    language = settings.get("language", "en")
    explain("scores", language)  # refuses a language that is not there
    return View(
        walk=walk,
        screen=screen,
        language=language if screen.unicode else "en",
        precision=settings.get("precision", 3),
        blanks=settings.get("blanks", NO_BLANKS),
        is_english_for_ascii=language != "en" and not screen.unicode,
    )


def _head(view: View) -> Iterator[Text]:
    """Whose calculation it is."""
    yield from view.wrap(title_line(view.walk, view.language), "bold")
    yield from view.wrap(source_line(view.walk, view.language))


def _foot(view: View) -> Iterator[Text]:
    """What the shades mean, what was done to the input, and how far all is from the model's own."""
    walk, language = view.walk, view.language
    bar = view.screen.scale_bar(8)
    yield Text()
    yield from legend(view.spell(view.say("shade")), view.screen, cells=8, indent=bar.cell_len)
    yield from view.wrap(view.say("products") + (view.say("cells") if by_cells(walk.steps) else ""), "dim")
    if view.is_english_for_ascii:
        yield from view.wrap(view.say("ascii"), "dim")
    for note in note_lines(walk, language):
        yield from view.wrap(note, "dim")
    yield from view.wrap(receipt_line(walk, language), "bold" if walk.own is not None else "")


def _steps(view: View, steps: Sequence[tuple[int, CalculationStep]], only: int | None = None) -> Iterator[Text]:
    """Each step, and before it what it needs that was given; or only the one with this number."""
    walk = view.walk
    by_key = [step for _, step in steps if followed(walk) is not None and step.name in BY_KEY]
    given = set(walk.given())
    for number, step in steps:
        needed = [name for name in dict.fromkeys(step.operands) if name in given]
        given -= set(needed)
        if only not in {None, number}:
            continue
        if step.operation == "concatenate" and len(needed) > 1 and all(len(walk.grids[n].values) == 1 for n in needed):
            yield from _other_heads(view, needed)
        else:
            for name in needed:
                shape = walk.grids[name].values.shape
                yield from _explain(view, name, f"({shape[0]}, {shape[1]})")
                yield from draw_numbers(view, _table_of(view, name))
        yield from _step(view, number, step, by_key)
        if step not in by_key:
            yield from draw_numbers(view, _table_of(view, step.result))
        elif step is by_key[-1]:
            yield from _keys(view, by_key)


def _explain(view: View, name: str, shape: str) -> Iterator[Text]:
    """What a grid is that no step makes."""
    explanation = explain(name, view.language)
    yield Text()
    yield from view.wrap(f"{explanation.title} {shape}", "bold")
    yield from view.wrap(explanation.sentence, indent=INDENT)


def _other_heads(view: View, names: Sequence[str]) -> Iterator[Text]:
    """The contexts of other heads, a row for each."""
    values = np.vstack([view.walk.grids[name].values for name in names])
    blanks = frozenset((names.index(name), column) for name, _, column in view.blanks if name in names)
    yield from _explain(view, "contexts", f"({len(names)} x {values.shape[1]})")
    group = Group(values=values, total=view.say("sum", n=values.shape[1]), blanks=blanks)
    yield from draw_numbers(view, GridTable(groups=(group,), labels=tuple(names)))


def _step(view: View, number: int, step: CalculationStep, by_key: Sequence[CalculationStep]) -> Iterator[Text]:
    """A step in words: its title, formula, shapes, a sentence, and one cell done by hand."""
    walk, language = view.walk, view.language
    explanation = explain(step.name, language)
    yield Text()
    yield from view.wrap(f"{number}. {explanation.title}", "bold")
    formula = view.spell(multiplied(formula_of(step, language=language, walk=walk)))
    shapes = view.spell(multiplied(shapes_of(walk, step, language=language)))
    if INDENT + cell_len(formula) + INDENT + cell_len(shapes) <= view.screen.width:
        yield Text.assemble(" " * INDENT, formula, " " * INDENT, (shapes, "dim"), no_wrap=True)
    else:
        yield from view.wrap(formula, indent=INDENT)
        yield from view.wrap(shapes, "dim", INDENT)
    yield from view.wrap(explanation.sentence, indent=INDENT)
    seen = _seen(view, step, by_key)
    yield from view.wrap(by_hand(walk, step, view.precision, language, view.blanks, seen=seen), indent=INDENT)


def _keys(view: View, steps: Sequence[CalculationStep]) -> Iterator[Text]:
    """What the query makes of each key, a row for each."""
    weights = followed(view.walk)
    softmax = next((step for step in steps if step.name == "softmax"), None)
    yield Text()
    yield from view.wrap(view.say("by key"), "bold", INDENT)
    yield from draw_numbers(view, _table_by_key(view, steps))
    if weights is not None and softmax is not None and not view.blanks:
        total = float(weights.values.sum())
        text = view.say("weights sum", total=shown(round(total, 9), view.precision))
        if len(softmax.operands) > 1:
            text += view.say("rest", rest=shown(1 - total, view.precision))
        yield from view.wrap(text, indent=INDENT)


def _seen(view: View, step: CalculationStep, by_key: Sequence[CalculationStep]) -> Seen:
    """The rows and columns of what a step makes that are printed; `by_key` are the steps of the table of keys."""
    if step not in by_key:
        rows, columns = printed_cells(view, _table_of(view, step.result))
        return rows, columns[0]
    rows, columns = printed_cells(view, _table_by_key(view, by_key))
    return (rows, columns[by_key.index(step) - len(by_key)]) if step.operation == "weigh" else ([0], rows)


def _table_of(view: View, name: str) -> GridTable:
    """The numbers of one grid.

    Of a large matrix that no token names only a corner is shown: nobody reads it, but its shape matters.
    """
    grid = view.walk.grids[name]
    n_rows, n_columns = grid.values.shape
    is_named = bool(grid.rows) or n_rows == 1
    group = Group(
        values=grid.values,
        names=grid.columns,
        total=view.say("sum", n=n_columns) if is_named else "",
        blanks=_blanks_of(name, view.blanks),
    )
    labels = grid.rows or ((name,) if n_rows == 1 else tuple(map(str, range(n_rows))))
    return GridTable(groups=(group,), labels=labels, is_named=is_named)


def _table_by_key(view: View, steps: Sequence[CalculationStep]) -> GridTable:
    """A row for each key, with the key itself where there is room, and what each step makes of it."""
    groups = []
    if steps[0].name == "scores" and "K" in steps[0].operands:
        groups.append(_vectors(view, view.say("key vector"), "K", optional=True))
    for step in steps:
        grid, title = view.walk.grids[step.result], view.say(step.name)
        if step.operation == "weigh":
            groups.append(_vectors(view, title, step.result))
        else:
            blanks = frozenset((column, row) for row, column in _blanks_of(step.result, view.blanks))
            groups.append(Group(title=title, values=grid.values.T, blanks=blanks))
    weights = followed(view.walk)
    labels = (weights.columns if weights else ()) or tuple(map(str, range(len(groups[-1].values))))
    return GridTable(groups=tuple(groups), labels=labels, head=view.say("key"))


def _vectors(view: View, title: str, name: str, *, optional: bool = False) -> Group:
    """A vector for each key."""
    values = view.walk.grids[name].values
    n = values.shape[1]
    return Group(
        title=view.say("numbers", name=title, n=n) if n > SHORT else title,
        values=values,
        total=view.say("sum", n=n),
        blanks=_blanks_of(name, view.blanks),
        optional=optional,
    )


def _blanks_of(name: str, blanks: Blanks) -> frozenset[tuple[int, int]]:
    """The rows and columns of one grid's blank cells."""
    return frozenset((row, column) for grid, row, column in blanks if grid == name)
