"""The diagram at the top of a page: the matrices of attention at a glance, from the query to the context."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from attnviz.text.messages import _
from attnviz.walkthroughs import wording
from attnviz.walkthroughs.keys import KeyTable, key_table
from attnviz.walkthroughs.pages.content import (
    GAP,
    MOST_ROWS,
    PageCell,
    PageTable,
    cell_writer,
    rows_of,
)
from attnviz.walkthroughs.texts import BY_KEY
from attnviz.walkthroughs.view import Cut, GridView, View, cut

# Of a vector with more than MOST_NUMBERS numbers, only the first and the last are shown.
MOST_NUMBERS, FIRST, LAST = 5, 3, 1
MOST_CELLS = 150  # more cells of one matrix are only in the tables of the steps, except for weights
MOST_OF_HEADS = 600  # most weights of all heads together


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagramPart:
    """A matrix of the diagram, or all matrices of one query side by side."""

    sign: str = ""  # before it, such as "×"
    table: PageTable
    # the width, in cells, and the formula of each heading; empty if each column has its own heading
    headings: tuple[tuple[int, str], ...] = ()
    largest: int | None = None  # the row of the key with the largest weight


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagram:
    """The matrices from left to right."""

    title: str
    formula: str = ""  # of attention in one line
    matrices: tuple[DiagramPart, ...]


def diagram(view: View) -> Diagram | None:
    """Return the diagram of a calculation; None for an exercise, and for matrices that are too large."""
    keys = key_table(view)
    if keys is not None and view.blanks:
        return None
    matrices = tuple(_matrices(view)) if keys is None else (_side_by_side(view, keys),)
    if not matrices:
        return None
    if len(view.walk.distributions()) > 1:
        title, _sentence = wording.explain("softmax")
        return Diagram(title=title, matrices=matrices)
    title, formula = _("The whole calculation"), wording.whole_formula(view.walk)
    return Diagram(title=title, formula=formula, matrices=matrices)


def _cut(grid: GridView) -> Cut:
    return cut(grid.values.shape[1], MOST_NUMBERS, FIRST, LAST)


def _side_by_side(view: View, keys: KeyTable) -> DiagramPart:
    """Return one table with the query above the keys, a row per key, and the context below the alignment vectors."""
    grids = [column.grid for column in keys.columns]
    cuts = [_cut(grid) for grid in grids]
    writers = [
        cell_writer(view, grid, columns, view.digits_of(grid))
        for grid, columns in zip(grids, cuts, strict=True)
    ]
    query = () if keys.query is None else _row(view, keys.query)
    # The query of an additive score may be wider than the keys.
    padding = max(0, len(query) - len(cuts[0]))
    widths = [len(cuts[0]) + padding, *map(len, cuts[1:])]
    width = sum(widths)

    def cells(key: int) -> tuple[PageCell, ...]:
        first, *others = (write(key) for write in writers)
        pad = (PageCell("", span=padding),) if padding else ()
        return (*first, *pad, *(cell for row in others for cell in row))

    rows = list(rows_of(view, keys.keys, cells, True))
    if query:
        rows.insert(0, ("q", (*query, PageCell("", span=width - len(query)))))
    if keys.context is not None:
        context = _row(view, keys.context)
        formula = _("context = sum of the alignment vectors")
        rows.append((_("context"), (PageCell(formula, span=width - len(context)), *context)))
    headings = tuple(
        (n_columns, column.formula.partition(" = ")[2])
        for column, n_columns in zip(keys.columns, widths, strict=True)
    )
    titles = tuple(column.title for column in keys.columns)
    followed = None if keys.largest is None else cells(keys.largest)
    largest = next((row for row, (_key, shown) in enumerate(rows) if shown == followed), None)
    marked = tuple((name, _mark(row, widths)) for name, row in rows)
    table = PageTable(corner=_("key"), columns=titles, rows=marked)
    return DiagramPart(table=table, headings=headings, largest=largest)


def _mark(cells: Sequence[PageCell], widths: Sequence[int]) -> tuple[PageCell, ...]:
    """Return the cells of a row, those that begin a matrix marked as first."""
    starts, places = accumulate(widths, initial=0), accumulate(cell.span for cell in cells)
    first = {0, *starts}
    return tuple(
        replace(cell, is_first=place - cell.span in first)
        for cell, place in zip(cells, places, strict=True)
    )


def _row(view: View, grid: GridView) -> tuple[PageCell, ...]:
    return cell_writer(view, grid, _cut(grid), view.digits_of(grid))(0)


def _matrices(view: View) -> Iterator[DiagramPart]:
    """Yield the matrices of attention of several queries, each once; of several heads only their weights."""
    distributions = view.walk.distributions()
    if len(distributions) > 1:
        grids = [view.grid(name) for name in distributions]
        if sum(grid.values.size for grid in grids) <= MOST_OF_HEADS:
            yield from (DiagramPart(table=_table(view, grid)) for grid in grids)
        return
    drawn: set[str] = set()
    for step in view.step_views():
        if step.step.name not in {*BY_KEY, "context"}:
            continue
        # The result of a mask shows the mask.
        for sign, grid in step.parts[-1:] if step.step.name == "mask" else step.parts:
            is_small = len(grid.values) * len(_cut_matrix(grid)) <= MOST_CELLS
            if grid.name not in drawn and (is_small or grid.is_weights):
                yield DiagramPart(sign=sign if drawn else "", table=_table(view, grid))
                drawn.add(grid.name)


def _cut_matrix(grid: GridView) -> Cut:
    """Return the columns that are shown: of vectors the first and last, of other matrices all."""
    return _cut(grid) if grid.has_vectors else cut(grid.values.shape[1], MOST_ROWS, 20, 10)


def _table(view: View, grid: GridView) -> PageTable:
    columns = _cut_matrix(grid)
    names = grid.columns or tuple(map(str, range(grid.values.shape[1])))
    return PageTable(
        corner=grid.name,
        columns=tuple(GAP if column is None else names[column] for column in columns),
        rows=rows_of(
            view, grid.labels, cell_writer(view, grid, columns, view.digits_of(grid)), grid.rows
        ),
    )
