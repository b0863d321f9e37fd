"""A walkthrough laid out for a page: what Markdown and HTML both say, before any of them says it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from attnviz.render.sheet import BLANK as UNSEEN
from attnviz.walkthroughs import wording
from attnviz.walkthroughs.hand import one_format
from attnviz.walkthroughs.view import BLANK, GridView, StepView, View, cut

MOST = 24  # columns that a page holds side by side; of more, those at the ends are shown
FIRST, LAST = 9, 3  # how many are then shown at either end
MOST_ROWS = 40  # rows of a table; of more, those at the ends are shown
FIRST_ROWS, LAST_ROWS = 20, 10  # of them, where rows have names; of a large matrix a corner will do
GAP = "…"
TEAL, RED, BLUE = (0, 128, 124), (200, 40, 40), (40, 90, 200)  # weights, above 0, below 0
DEPTH = 0.5  # the largest part of a hue, so that dark letters on light paper and light ones on dark can be read


@dataclass(frozen=True, slots=True)
class PageCell:
    """One cell of a table."""

    text: str  # the number, as shown
    share: float = 0.0  # of its hue in the page: a weight itself, or a number by the largest of its grid; 0 of a text
    hue: tuple[int, int, int] = TEAL  # of weights, of numbers above 0, or of those below
    at: tuple[str, int, int] | None = None  # its grid, row and column, where it is a number


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTable:
    """Numbers with their names."""

    corner: str  # what the names of the rows are
    columns: tuple[str, ...]  # a name for each column
    # a name and the cells of each row; no cells of those left out
    rows: tuple[tuple[str, tuple[PageCell, ...]], ...]
    remark: str = ""  # what is left out; empty where nothing is


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A step, or numbers that were given."""

    title: str  # with the step's number where it is one
    formula: str = ""  # with the names of its grids; empty for what is given
    shapes: str = ""  # the same with the shapes put in; of what is given, its shape
    sentence: str = ""  # what it does
    hand: str = ""  # one cell done by hand; empty where there is none
    table: PageTable  # the numbers

    @property
    def blocks(self) -> list[tuple[str, Any]]:
        """The parts below the title with their kinds, without those that are empty."""
        symbols = {name: text for name in ("formula", "shapes") if (text := getattr(self, name))}
        numbers = [("table", self.table), ("remark", self.table.remark), ("hand", self.hand)]
        return [
            one for one in (("symbols", symbols), ("sentence", self.sentence), *numbers) if one[1]
        ]


def lay_out(view: View) -> Iterator[Section]:
    """Yield each step after the given grids that it needs, and after the last step by key a table of the keys."""
    steps = view.step_views()
    by_key = [one for one in steps if one.is_by_key]
    for one in steps:
        for name in one.inputs:
            text, grid = wording.explain(name, view.lang), view.grid(name)
            shapes = f"{name}: {grid.values.shape}"
            yield Section(
                title=text.title, shapes=shapes, sentence=text.sentence, table=_table(view, grid)
            )
        yield Section(
            title=f"{one.number}. {one.title}",
            formula=one.formula,
            shapes=one.shapes,
            sentence=one.sentence,
            hand=one.hand,
            table=_table(view, view.grid(one.step.result)),
        )
        if len(by_key) > 1 and one is by_key[-1]:
            yield _section_by_key(view, by_key)


def _table(view: View, grid: GridView) -> PageTable:
    n_rows, n = grid.values.shape
    names = grid.columns or tuple(map(str, range(n)))
    columns = cut(n, MOST, FIRST, LAST)
    writer = _RowWriter(view, grid)
    return PageTable(
        corner=grid.name,
        columns=tuple(GAP if column is None else names[column] for column in columns),
        rows=_rows(view, grid.labels, writer.cells, is_named=bool(grid.rows) or n_rows == 1),
        remark=view.say("more middle", n=n) if n > MOST else "",
    )


def _section_by_key(view: View, steps: Sequence[StepView]) -> Section:
    """Return a table with a row for each key: its score, weight and alignment vector."""
    writers = [_RowWriter(view, one.result) for one in steps]

    def cells(key: int) -> tuple[PageCell, ...]:
        row = []
        for writer in writers:
            numbers = writer.cells(key)
            if writer.grid.is_upright:
                row.append(numbers[0])
            else:
                row.append(PageCell(f"[{', '.join(cell.text for cell in numbers)}]"))
        return tuple(row)

    labels = max((writer.grid.labels for writer in writers), key=len)
    table = PageTable(
        corner=view.say("key"),
        columns=tuple(one.column for one in steps),
        rows=_rows(view, labels, cells, is_named=True),
    )
    return Section(title=view.say("by key").rstrip(":"), table=table)


def _rows(
    view: View,
    labels: Sequence[str],
    cells: Callable[[int], tuple[PageCell, ...]],
    *,
    is_named: bool,
) -> tuple[tuple[str, tuple[PageCell, ...]], ...]:
    """Return the rows of a table; of many the first and the last, and how many are left out."""
    first, last = (FIRST_ROWS, LAST_ROWS) if is_named else (FIRST, LAST)
    shown = cut(len(labels), MOST_ROWS, first, last)
    more = view.say("more rows", n=len(labels) - len(shown) + 1)
    return tuple((more, ()) if row is None else (labels[row], cells(row)) for row in shown)


class _RowWriter:
    """Writes the rows of a grid, all numbers alike; of many columns the first and the last."""

    def __init__(self, view: View, grid: GridView) -> None:
        self.grid = grid
        self._write = one_format(grid.values, view.digits)
        self._columns = cut(grid.values.shape[1], MOST, FIRST, LAST)

    def cells(self, row: int) -> tuple[PageCell, ...]:
        """Return the cells of a row."""
        return tuple(
            PageCell(GAP) if column is None else self._cell(row, column) for column in self._columns
        )

    def _cell(self, row: int, column: int) -> PageCell:
        grid = self.grid
        if (row, column) in grid.blanks:
            return PageCell(BLANK)
        value = float(grid.values[row, column])
        share = abs(value) / grid.top if math.isfinite(value) else 0.0
        hue = RED if value > 0 else BLUE
        if grid.is_weights:
            hue = TEAL
        place = (column, row) if grid.is_upright else (row, column)
        return PageCell(
            self._write(value), share if share >= UNSEEN else 0.0, hue, (grid.name, *place)
        )
