"""The contents of a walkthrough page, shared by Markdown and HTML."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from attnviz.render.palette import BLANK as UNSEEN
from attnviz.text.messages import _
from attnviz.walkthroughs import wording
from attnviz.walkthroughs.hand import one_format
from attnviz.walkthroughs.keys import KeyTable, formulas, key_table
from attnviz.walkthroughs.texts import BEFORE
from attnviz.walkthroughs.view import BLANK, Cut, GridView, View, cut

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
    span: int = 1  # how many columns it is wide
    is_first: bool = False  # whether it is the first of a matrix beside others


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

    kind: Literal["before", "step", "keys"] = "step"  # "keys" is the table with one row per key
    number: int = 0  # the number of the step, also of the grids that it uses first

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
    keys = key_table(view, steps)
    if view.blanks and keys and keys.query and keys.context:
        yield _section_by_key(view, keys)
        return
    for step in steps:
        kind: Literal["before", "step"] = "before" if step.step.name in BEFORE else "step"
        for name in step.inputs:
            title, sentence = wording.explain(name)
            grid = view.grid(name)
            yield Section(
                kind=kind,
                number=step.number,
                title=title,
                shapes=f"{name}: {grid.values.shape}",
                sentence=sentence,
                table=_table(view, grid),
                remark=_remark(view, grid),
            )
        result = view.grid(step.step.result)
        yield Section(
            kind=kind,
            number=step.number,
            title=f"{step.number}. {step.title}",
            formula=step.formula,
            shapes=step.shapes,
            sentence=step.sentence,
            table=_table(view, result),
            remark=_remark(view, result),
            hand=step.hand,
        )
        if keys is not None and len(by_key) > 1 and step is by_key[-1]:
            yield _section_by_key(view, keys)


def _remark(view: View, grid: GridView) -> str:
    n = grid.values.shape[1]
    return _("{n} columns; those in the middle are left out").format(n=n) if n > MOST else ""


def _table(view: View, grid: GridView) -> PageTable:
    n_rows, n = grid.values.shape
    names = grid.columns or tuple(map(str, range(n)))
    columns = cut(n, MOST, FIRST, LAST)
    return PageTable(
        corner=grid.name,
        columns=tuple(GAP if column is None else names[column] for column in columns),
        rows=rows_of(view, grid.labels, cell_writer(view, grid), grid.rows or n_rows == 1),
    )


def _section_by_key(view: View, keys: KeyTable) -> Section:
    """Return one table with the query, a row per key, and the context."""
    others = [PageCell("")] * (len(keys.columns) - 1)

    def vector(grid: GridView, row: int) -> PageCell:
        cells = cell_writer(view, grid)(row)
        texts = ", ".join(cell.text for cell in cells)
        return cells[0] if grid.is_upright else PageCell(f"[{texts}]")

    def cells(key: int) -> tuple[PageCell, ...]:
        return tuple(vector(column.grid, key) for column in keys.columns)

    rows = list(rows_of(view, keys.keys, cells, True))
    if keys.query is not None:
        rows.insert(0, ("q", (vector(keys.query, 0), *others)))
    if keys.context is not None:
        rows.append((_("context"), (*others, vector(keys.context, 0))))
    titles = tuple(column.title for column in keys.columns)
    table = PageTable(corner=_("key"), columns=titles, rows=tuple(rows))
    sentence = "; ".join(formulas(view, keys))
    return Section(kind="keys", title=_("Key by key"), sentence=sentence, table=table)


def rows_of(
    view: View, labels: Sequence[str], cells: Callable[[int], tuple[PageCell, ...]], names: object
) -> tuple[tuple[str, tuple[PageCell, ...]], ...]:
    """Return the rows of a table; if there are many, the first, a count of those left out, and the last.

    If `names` is empty or False, the rows have no names, and fewer of them are shown.
    """
    first, last = (FIRST_ROWS, LAST_ROWS) if names else (FIRST, LAST)
    row_numbers = cut(len(labels), MOST_ROWS, first, last)
    gap_label = _("... {n} more rows").format(n=len(labels) - len(row_numbers) + 1)
    return tuple(
        (gap_label, ()) if row is None else (labels[row], cells(row)) for row in row_numbers
    )


def cell_writer(
    view: View, grid: GridView, columns: Cut | None = None, digits: int | None = None
) -> Callable[[int], tuple[PageCell, ...]]:
    """Return a function that writes a row of a grid, with all numbers in one format.

    Without `columns`, the first and last columns of a wide grid are written; without `digits`, all digits of the view.
    """
    write = one_format(grid.values, view.full_digits if digits is None else digits)
    if columns is None:
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
