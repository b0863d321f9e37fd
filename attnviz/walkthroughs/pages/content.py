"""A walkthrough laid out for a page: what Markdown and HTML both say."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from attnviz.render.sheet import BLANK as UNSEEN
from attnviz.text.messages import _
from attnviz.walkthroughs import wording
from attnviz.walkthroughs.hand import one_format
from attnviz.walkthroughs.view import BLANK, GridView, StepView, View, cut

MOST, FIRST, LAST = 24, 9, 3  # columns that a page shows; of more, so many at either end
MOST_ROWS, FIRST_ROWS, LAST_ROWS = 40, 20, 10  # rows; of a table without names a corner will do
GAP = "…"


@dataclass(frozen=True, slots=True)
class PageCell:
    """One cell of a table."""

    text: str  # the number, as shown
    share: float = 0.0  # a weight itself, or a number by the largest of its grid; 0 of a text
    hue: str = "t"  # of weights; ``r`` of numbers above 0 and ``b`` of those below
    at: tuple[str, int, int] | None = None  # its grid, row and column, where it is a number


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTable:
    """Numbers with their names."""

    corner: str  # what the names of the rows are
    columns: tuple[str, ...]
    # a name and the cells of each row; no cells of those left out
    rows: tuple[tuple[str, tuple[PageCell, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A step, or numbers that were given; texts are empty where there is nothing to say."""

    title: str  # with the step's number where it is one
    formula: str = ""  # with the names of its grids
    shapes: str = ""  # the same with the shapes put in; of what is given, its shape
    sentence: str = ""
    table: PageTable
    remark: str = ""  # on what is left out
    hand: str = ""  # one cell done by hand


def lay_out(view: View) -> Iterator[Section]:
    """Yield each step after the given grids that it needs, and after the last step by key a table of the keys."""
    steps = view.step_views()
    by_key = [step for step in steps if step.is_by_key]
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
    """Return a table with a row for each key: its score, weight and alignment vector."""
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


def _rows(
    view: View, labels: Sequence[str], cells: Callable[[int], tuple[PageCell, ...]], named: object
) -> tuple[tuple[str, tuple[PageCell, ...]], ...]:
    """Return the rows of a table; of many the first and the last, and how many are left out."""
    first, last = (FIRST_ROWS, LAST_ROWS) if named else (FIRST, LAST)
    shown = cut(len(labels), MOST_ROWS, first, last)
    more = view.say(_("... {n} more rows"), n=len(labels) - len(shown) + 1)
    return tuple((more, ()) if row is None else (labels[row], cells(row)) for row in shown)


def _cell_writer(view: View, grid: GridView) -> Callable[[int], tuple[PageCell, ...]]:
    """Return a function that writes a row of a grid, all numbers alike."""
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
