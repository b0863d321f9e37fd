"""The contents of a walkthrough page, shared by Markdown and HTML: the whole calculation at a glance, and its steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from attnviz.render.palette import BLANK as UNSEEN
from attnviz.text.messages import _
from attnviz.walkthroughs import wording
from attnviz.walkthroughs.hand import one_format
from attnviz.walkthroughs.keys import KeyTable, key_table
from attnviz.walkthroughs.texts import BEFORE, BY_KEY
from attnviz.walkthroughs.view import Cut, GridView, View, cut

# A table with more than MOST columns or MOST_ROWS rows shows only the first and last of them.
MOST, FIRST, LAST = 24, 9, 3  # columns; FIRST and LAST are also for rows without names
MOST_ROWS, FIRST_ROWS, LAST_ROWS = 40, 20, 10  # rows
# In the diagram: numbers of a vector, and of those that are cut the first and the last.
MOST_NUMBERS, FIRST_NUMBERS, LAST_NUMBERS = 5, 3, 1
MOST_CELLS = 150  # of a matrix in the diagram; weights may have more
MOST_OF_HEADS = 600  # most weights of all heads together
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
    sign: str = ""  # before a matrix of the diagram, such as "×"
    # the width, in cells, and the formula of each heading; empty if each column has its own heading
    headings: tuple[tuple[int, str], ...] = ()
    largest: int | None = None  # the row of the key with the largest weight


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagram:
    """The matrices of attention at a glance, from the query to the context."""

    title: str
    formula: str = ""  # of attention in one line
    tables: tuple[PageTable, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A step or a given grid; texts are empty if there is nothing to say."""

    is_before: bool  # whether it is a step before attention
    number: int  # the number of the step, also of the grids that it uses first
    title: str  # with the number of the step, if it is a step
    formula: str = ""  # with the names of the grids
    shapes: str  # the formula with shapes instead of names; for a given grid, its shape
    sentence: str
    table: PageTable
    remark: str  # says which numbers are left out
    hand: str = ""  # the arithmetic of one cell


def lay_out(view: View) -> Iterator[Section]:
    """Yield each step after the given grids that it uses first; none of an exercise, whose diagram has everything."""
    steps = view.step_views()
    keys = key_table(view, steps)
    if view.blanks and keys and keys.query and keys.context:
        return
    for step in steps:
        title = f"{step.number}. {step.title}"
        texts = [(name, *wording.explain(name)) for name in step.inputs]
        for name, heading, sentence in [*texts, (step.step.result, title, step.sentence)]:
            grid, is_result = view.grid(name), name == step.step.result
            n = grid.values.shape[1]
            cut_words = _("{n} columns; those in the middle are left out")
            yield Section(
                is_before=step.step.name in BEFORE,
                number=step.number,
                title=heading,
                formula=step.formula if is_result else "",
                shapes=step.shapes if is_result else f"{name}: {grid.values.shape}",
                sentence=sentence,
                table=_table(view, grid, cut(n, MOST, FIRST, LAST), view.full_digits),
                remark=cut_words.format(n=n) if n > MOST else "",
                hand=step.hand if is_result else "",
            )


def diagram(view: View) -> Diagram | None:
    """Return the diagram of a calculation; None if its matrices are too large."""
    keys = key_table(view)
    tables = tuple(_matrices(view)) if keys is None else (_side_by_side(view, keys),)
    if not tables:
        return None
    if len(view.walk.distributions()) > 1:
        return Diagram(title=wording.explain("softmax")[0], tables=tables)
    title, formula = _("The whole calculation"), wording.whole_formula(view.walk)
    return Diagram(title=title, formula=formula, tables=tables)


def _side_by_side(view: View, keys: KeyTable) -> PageTable:
    """Return one table with the query above the keys, a row per key, and the context below the alignment vectors."""

    def writer(grid: GridView) -> Callable[[int], tuple[PageCell, ...]]:
        return _cell_writer(grid, _cut(view, grid), view.digits_of(grid))

    writers = [writer(column.grid) for column in keys.columns]
    query = () if keys.query is None else writer(keys.query)(0)
    widths = [len(_cut(view, column.grid)) for column in keys.columns]
    # The query of an additive score may be wider than the keys.
    padding = max(0, len(query) - widths[0])
    widths[0] += padding

    def cells(key: int) -> tuple[PageCell, ...]:
        first, *others = (write(key) for write in writers)
        pad = (PageCell("", span=padding),) if padding else ()
        return (*first, *pad, *(cell for row in others for cell in row))

    rows = list(_rows(keys.keys, cells, has_names=True))
    if query:
        rows.insert(0, ("q", (*query, PageCell("", span=sum(widths) - len(query)))))
    if keys.context is not None:
        context = writer(keys.context)(0)
        formula = _("context = sum of the alignment vectors")
        rows.append((_("context"), (PageCell(formula, span=sum(widths) - len(context)), *context)))
    followed = None if keys.largest is None else cells(keys.largest)
    return PageTable(
        corner=_("key"),
        columns=tuple(column.title for column in keys.columns),
        rows=tuple((name, _mark(row, widths)) for name, row in rows),
        headings=tuple(
            (width, column.formula.partition(" = ")[2])
            for column, width in zip(keys.columns, widths, strict=True)
        ),
        largest=next((place for place, (_key, row) in enumerate(rows) if row == followed), None),
    )


def _mark(cells: Sequence[PageCell], widths: Sequence[int]) -> tuple[PageCell, ...]:
    """Return the cells of a row, those that begin a matrix marked as first."""
    first = set(accumulate(widths, initial=0))
    places = accumulate((cell.span for cell in cells), initial=0)
    return tuple(
        replace(cell, is_first=place in first) for cell, place in zip(cells, places, strict=False)
    )


def _matrices(view: View) -> Iterator[PageTable]:
    """Yield the matrices of attention of several queries, each once; of several heads only their weights."""
    distributions = view.walk.distributions()
    if len(distributions) > 1:
        grids = [view.grid(name) for name in distributions]
        if sum(grid.values.size for grid in grids) <= MOST_OF_HEADS:
            for grid in grids:
                yield _table(view, grid, _cut(view, grid), view.digits_of(grid))
        return
    drawn: set[str] = set()
    for step in view.step_views():
        if step.step.name not in {*BY_KEY, "context"}:
            continue
        # The result of a mask shows the mask.
        for sign, grid in step.parts[-1:] if step.step.name == "mask" else step.parts:
            columns = _cut(view, grid)
            is_small = len(grid.values) * len(columns) <= MOST_CELLS
            if grid.name not in drawn and (is_small or grid.is_weights):
                table = _table(view, grid, columns, view.digits_of(grid))
                yield replace(table, sign=sign if drawn else "")
                drawn.add(grid.name)


def _cut(view: View, grid: GridView) -> Cut:
    """Return the columns that the diagram shows; of vectors the first and last, but in an exercise."""
    n = grid.values.shape[1]
    if view.blanks:
        return cut(n, MOST, FIRST, LAST)
    if grid.has_vectors:
        return cut(n, MOST_NUMBERS, FIRST_NUMBERS, LAST_NUMBERS)
    return cut(n, MOST_ROWS, FIRST_ROWS, LAST_ROWS)


def _table(view: View, grid: GridView, columns: Cut, digits: int) -> PageTable:
    names = grid.columns or tuple(map(str, range(grid.values.shape[1])))
    write = _cell_writer(grid, columns, digits)
    return PageTable(
        corner=grid.name,
        columns=tuple(GAP if column is None else names[column] for column in columns),
        rows=_rows(grid.labels, write, has_names=bool(grid.rows)),
    )


def _rows(
    labels: Sequence[str], cells: Callable[[int], tuple[PageCell, ...]], *, has_names: bool
) -> tuple[tuple[str, tuple[PageCell, ...]], ...]:
    """Return the rows of a table; if there are many, the first, a count of those left out, and the last.

    If the rows have no names, fewer of them are shown.
    """
    first, last = (FIRST_ROWS, LAST_ROWS) if has_names else (FIRST, LAST)
    row_numbers = cut(len(labels), MOST_ROWS, first, last)
    gap_label = _("... {n} more rows").format(n=len(labels) - len(row_numbers) + 1)
    return tuple(
        (gap_label, ()) if row is None else (labels[row], cells(row)) for row in row_numbers
    )


def _cell_writer(
    grid: GridView, columns: Cut, digits: int
) -> Callable[[int], tuple[PageCell, ...]]:
    """Return a function that writes a row of a grid, with all numbers in one format."""
    write = one_format(grid.values, digits)

    def cell(row: int, column: int | None) -> PageCell:
        if column is None:
            return PageCell(GAP)
        value = float(grid.values[row, column])
        if math.isnan(value):
            return PageCell(write(value))
        share = abs(value) / grid.top if math.isfinite(value) else 0.0
        hue = "r" if value > 0 else "b"
        if grid.is_weights:
            hue = "t"
        place = (column, row) if grid.is_upright else (row, column)
        return PageCell(write(value), share if share >= UNSEEN else 0.0, hue, (grid.name, *place))

    return lambda row: tuple(cell(row, column) for column in columns)
