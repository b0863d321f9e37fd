"""The contents of a walkthrough page, shared by Markdown and HTML."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from attnviz.render.sheet import BLANK as UNSEEN
from attnviz.text.messages import _
from attnviz.walkthroughs import wording
from attnviz.walkthroughs.hand import one_format
from attnviz.walkthroughs.view import BLANK, GridView, StepView, View, cut

# A table with more than MOST columns or MOST_ROWS rows shows only the first and last of them.
MOST, FIRST, LAST = 24, 9, 3  # columns; FIRST and LAST are also for rows without names
MOST_ROWS, FIRST_ROWS, LAST_ROWS = 40, 20, 10  # rows
GAP = "…"


@dataclass(frozen=True, slots=True)
class PageCell:
    """One cell of a table."""

    text: str  # the number, as shown
    share: float = 0.0  # a weight, or a number divided by the largest of its grid; 0 for text
    hue: str = "t"  # ``t`` for weights, ``r`` for numbers above 0, ``b`` for numbers below
    at: tuple[str, int, int] | None = None  # grid, row and column of a number; None for text


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTable:
    """A table of numbers with the names of its rows and columns."""

    corner: str  # the heading of the row names
    columns: tuple[str, ...]
    # the name and the cells of each row; a row without cells stands for rows left out
    rows: tuple[tuple[str, tuple[PageCell, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A step or a given grid; texts are empty if there is nothing to say."""

    title: str  # with the number of the step, if it is a step
    formula: str = ""  # with the names of the grids
    shapes: str = ""  # the formula with shapes instead of names; for a given grid, its shape
    sentence: str = ""
    table: PageTable
    remark: str = ""  # says which numbers are left out
    hand: str = ""  # the arithmetic of one cell


def lay_out(view: View) -> Iterator[Section]:
    """Yield each step after the given grids that it uses first; after the last step by key, a table of all keys.

    Of an exercise with one query, one table has everything.
    """
    steps = view.step_views()
    by_key = [step for step in steps if step.is_by_key]
    if (
        view.blanks
        and by_key
        and by_key[0].step.name == "scores"
        and by_key[-1].step.name == "alignment"
    ):
        yield _worksheet(view, by_key)
        return
    for step in steps:
        for name in step.inputs:
            title, sentence = wording.explain(name, view.lang)
            grid = view.grid(name)
            yield Section(
                title=title,
                shapes=f"{name}: {grid.values.shape}",
                sentence=sentence,
                table=_table(view, grid),
                remark=_remark(view, grid),
            )
        result = view.grid(step.step.result)
        yield Section(
            title=f"{step.number}. {step.title}",
            formula=step.formula,
            shapes=step.shapes,
            sentence=step.sentence,
            table=_table(view, result),
            remark=_remark(view, result),
            hand=step.hand,
        )
        if len(by_key) > 1 and step is by_key[-1]:
            yield _section_by_key(view, by_key)


def _remark(view: View, grid: GridView) -> str:
    n = grid.values.shape[1]
    return view.say(_("{n} columns; those in the middle are left out"), n=n) if n > MOST else ""


def _table(view: View, grid: GridView) -> PageTable:
    n_rows, n = grid.values.shape
    names = grid.columns or tuple(map(str, range(n)))
    columns = cut(n, MOST, FIRST, LAST)
    return PageTable(
        corner=grid.name,
        columns=tuple(GAP if column is None else names[column] for column in columns),
        rows=_rows(view, grid.labels, _cell_writer(view, grid), grid.rows or n_rows == 1),
    )


def _section_by_key(view: View, steps: Sequence[StepView]) -> Section:
    """Return a table with one row per key: its score, weight and alignment vector."""
    writers = [_cell_writer(view, step.result) for step in steps]

    def cells(key: int) -> tuple[PageCell, ...]:
        row = []
        for step, write in zip(steps, writers, strict=True):
            numbers = write(key)
            if step.result.is_upright:
                row.append(numbers[0])
            else:
                row.append(PageCell(f"[{', '.join(cell.text for cell in numbers)}]"))
        return tuple(row)

    labels = max((step.result.labels for step in steps), key=len)
    table = PageTable(
        corner=view.say(_("key")),
        columns=tuple(step.column for step in steps),
        rows=_rows(view, labels, cells, True),
    )
    return Section(title=view.say(_("Key by key")), table=table)


def _worksheet(view: View, steps: Sequence[StepView]) -> Section:
    """Return one table with the query, a row per key, and the context, for a learner to fill in."""
    walk = view.walk
    parts = [("k", "", view.grid("K"))]
    for step in steps:
        if step.step.operation == "weigh":
            parts.append((view.say(_("value")), "", step.parts[1][1]))
        parts.append(
            (step.column, wording.formula_for_key(walk, step.step, view.lang), step.result)
        )
    empty = PageCell("")

    def vector(grid: GridView, row: int) -> PageCell:
        cells = _cell_writer(view, grid)(row)
        texts = ", ".join(cell.text for cell in cells)
        return cells[0] if grid.is_upright else PageCell(f"[{texts}]")

    others = [empty] * (len(parts) - 1)
    query = view.grid(steps[0].step.operands[0])
    context = view.grid("context")
    keys = max((step.result.labels for step in steps), key=len)
    table = PageTable(
        corner="",
        columns=tuple(title for title, _formula, _grid in parts),
        rows=(
            ("q", (vector(query, 0), *others)),
            *(
                (name, tuple(vector(grid, key) for _title, _formula, grid in parts))
                for key, name in enumerate(keys)
            ),
            ("context", (*others, vector(context, 0))),
        ),
    )
    formulas = [formula for _title, formula, _grid in parts if formula]
    formulas.append(view.say(_("context = sum of the alignment vectors")))
    return Section(title=view.say(_("Key by key")), sentence="; ".join(formulas), table=table)


def _rows(
    view: View, labels: Sequence[str], cells: Callable[[int], tuple[PageCell, ...]], names: object
) -> tuple[tuple[str, tuple[PageCell, ...]], ...]:
    """Return the rows of a table; if there are many, the first, a count of those left out, and the last.

    If `names` is empty or False, the rows have no names, and fewer of them are shown.
    """
    first, last = (FIRST_ROWS, LAST_ROWS) if names else (FIRST, LAST)
    row_numbers = cut(len(labels), MOST_ROWS, first, last)
    gap_label = view.say(_("... {n} more rows"), n=len(labels) - len(row_numbers) + 1)
    return tuple(
        (gap_label, ()) if row is None else (labels[row], cells(row)) for row in row_numbers
    )


def _cell_writer(view: View, grid: GridView) -> Callable[[int], tuple[PageCell, ...]]:
    """Return a function that writes a row of a grid, with all numbers in one format."""
    write = one_format(grid.values, view.digits)
    columns = cut(grid.values.shape[1], MOST, FIRST, LAST)

    def cell(row: int, column: int | None) -> PageCell:
        if column is None:
            return PageCell(GAP)
        if (row, column) in grid.blanks:
            return PageCell(BLANK)
        value = float(grid.values[row, column])
        share = abs(value) / grid.top if math.isfinite(value) else 0.0
        hue = "r" if value > 0 else "b"
        if grid.is_weights:
            hue = "t"
        place = (column, row) if grid.is_upright else (row, column)
        return PageCell(write(value), share if share >= UNSEEN else 0.0, hue, (grid.name, *place))

    return lambda row: tuple(cell(row, column) for column in columns)
