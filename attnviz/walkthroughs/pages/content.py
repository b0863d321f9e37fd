"""A walkthrough laid out for a page: what Markdown, LaTeX and HTML all say, before any of them says it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from attnviz.render.sheet import BLANK as UNSEEN
from attnviz.walkthroughs import wording
from attnviz.walkthroughs.hand import one_format
from attnviz.walkthroughs.record import CalculationStep, Walkthrough
from attnviz.walkthroughs.texts import BY_KEY
from attnviz.walkthroughs.view import BLANK, ShownStep, View, ViewOptions, query_weights

MOST = 24  # columns that a page holds side by side; of more, those at the ends are shown
FIRST, LAST = 9, 3  # how many are then shown at either end
MOST_ROWS = 40  # rows of a table; of more, those at the ends are shown
FIRST_ROWS, LAST_ROWS = 20, 10  # of them, where rows have names; of a large matrix a corner will do
GAP = "…"
TEAL, RED, BLUE = (0, 128, 124), (200, 40, 40), (40, 90, 200)  # the hues of weights, and of numbers above and below 0
DEPTH = 0.5  # the largest part of a hue, so that dark letters on light paper and light ones on dark can be read


@dataclass(frozen=True, slots=True)
class PageCell:
    """What stands in a table."""

    text: str  # the number, as shown
    share: float = 0.0  # of its hue in the page: a weight itself, or a number by the largest of its grid; 0 of a text
    hue: tuple[int, int, int] = TEAL  # of weights, of numbers above 0, or of those below
    at: tuple[str, int, int] | None = None  # its grid, row and column, where it is a number


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTable:
    """Numbers with their names."""

    corner: str  # what the names of the rows are
    columns: tuple[str, ...]  # a name for each column
    rows: tuple[tuple[str, tuple[PageCell, ...]], ...]  # a name and the cells of each row
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
        """What stands below its title, by what it is, without what is empty."""
        symbols = {name: getattr(self, name) for name in ("formula", "shapes") if getattr(self, name)}
        every = {
            "symbols": symbols, "sentence": self.sentence, "table": self.table, "remark": self.table.remark,
            "hand": self.hand,
        }  # fmt: skip
        return [(kind, block) for kind, block in every.items() if block]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageContent:
    """The whole page."""

    title: str  # what is calculated
    source: str  # whose calculation it is; empty where numbers are made by hand
    sections: tuple[Section, ...]  # in the order of the calculation
    signs: str  # what the signs of its formulas mean
    notes: tuple[str, ...]  # what was done to the input
    receipt: str  # how the numbers were checked


def lay_out(walk: Walkthrough, **options: Unpack[ViewOptions]) -> PageContent:
    """The page of a walkthrough."""
    view = View(walk=walk, **options)
    language, steps = view.lang, view.shown()
    return PageContent(
        title=wording.title_line(walk, language), source=wording.source_line(walk, language),
        sections=tuple(_sections(view, steps)), notes=wording.note_lines(walk, language),
        signs=view.say("products") + (view.say("cells") if wording.by_cells(one.step for one in steps) else ""),
        receipt=wording.receipt_line(walk, language),
    )  # fmt: skip


def _sections(view: View, steps: Sequence[ShownStep]) -> Iterator[Section]:
    """Each step, before it what it needs that was given, and after the last step by key what all of them made."""
    by_key = [one.step for one in steps if query_weights(view.walk) is not None and one.step.name in BY_KEY]
    for one in steps:
        yield from (_given_section(view, name) for name in one.given)
        yield Section(
            title=f"{one.number}. {one.title}", formula=one.formula, shapes=one.shapes, sentence=one.sentence,
            hand=one.hand, table=_table(view, one.step.result),
        )  # fmt: skip
        if len(by_key) > 1 and one.step is by_key[-1]:
            yield _section_by_key(view, by_key)


def _given_section(view: View, name: str) -> Section:
    text, (n_rows, n_columns) = wording.explain(name, view.lang), view.walk.grids[name].values.shape
    shapes = f"{name}: ({n_rows}, {n_columns})"
    return Section(title=text.title, shapes=shapes, sentence=text.sentence, table=_table(view, name))


def _table(view: View, name: str) -> PageTable:
    grid = view.walk.grids[name]
    n_rows, n_columns = grid.values.shape
    columns = grid.columns or tuple(map(str, range(n_columns)))
    labels = view.labels_of(name)
    is_long = n_columns > MOST
    if is_long:
        columns = (*columns[:FIRST], GAP, *columns[-LAST:])
    return PageTable(
        corner=name, columns=columns,
        rows=_rows(view, labels, _Numbers(view, name).vector, len(columns), named=bool(grid.rows) or n_rows == 1),
        remark=view.say("more middle", n=n_columns) if is_long else "",
    )  # fmt: skip


def _section_by_key(view: View, steps: Sequence[CalculationStep]) -> Section:
    """What the query makes of each key: a row for each, with its score, weight and alignment vector."""
    numbers = [(step, _Numbers(view, step.result)) for step in steps]
    weights = query_weights(view.walk)
    n_keys = max(one.grid.values.shape[0 if step.operation == "weigh" else 1] for step, one in numbers)
    labels = (weights.columns if weights is not None else ()) or tuple(map(str, range(n_keys)))

    def cell(step: CalculationStep, one: _Numbers, key: int) -> PageCell:
        vector = f"[{', '.join(cell.text for cell in one.vector(key))}]" if step.operation == "weigh" else ""
        return PageCell(vector) if vector else one.cell(0, key)

    columns = tuple(wording.short_title(step.name, view.lang) for step in steps)
    rows = _rows(view, labels, lambda key: tuple(cell(*one, key) for one in numbers), len(columns), named=True)
    table = PageTable(corner=view.say("key"), columns=columns, rows=rows)
    return Section(title=view.say("by key").rstrip(":"), table=table)


def _rows(
    view: View, labels: Sequence[str], cells: Callable[[int], tuple[PageCell, ...]], n_columns: int, *, named: bool
) -> tuple[tuple[str, tuple[PageCell, ...]], ...]:
    n_rows = len(labels)
    first, last = (n_rows, 0) if n_rows <= MOST_ROWS else (FIRST_ROWS, LAST_ROWS) if named else (FIRST, LAST)
    held = [*range(first), *range(n_rows - last, n_rows)]
    rows = [(labels[row], cells(row)) for row in held]
    if len(held) < len(labels):
        more = view.say("more rows", n=len(labels) - len(held))
        rows.insert(next(row for row, one in enumerate(held) if row != one), (more, (PageCell(""),) * n_columns))
    return tuple(rows)


class _Numbers:
    """The numbers of one grid as cells, all written alike."""

    def __init__(self, view: View, name: str) -> None:
        self.name = name
        self.grid = view.walk.grids[name]
        self._blanks = view.blanks_of(name)
        self._write = one_format(self.grid.values, view.digits)
        is_softmax = view.is_weights(name)
        self._hue = TEAL if is_softmax else None
        finite = self.grid.values[np.isfinite(self.grid.values)]
        self._top = 1.0 if is_softmax else float(np.abs(finite).max(initial=0.0)) or 1.0

    def cell(self, row: int, column: int) -> PageCell:
        """One number on its colour, or a blank."""
        if (row, column) in self._blanks:
            return PageCell(BLANK)
        value = float(self.grid.values[row, column])
        share = abs(value) / self._top if math.isfinite(value) else 0.0
        hue = self._hue or (RED if value > 0 else BLUE)
        return PageCell(self._write(value), share if share >= UNSEEN else 0.0, hue, (self.name, row, column))

    def vector(self, row: int) -> tuple[PageCell, ...]:
        """The numbers of a row; of many those at the ends, and a gap between them."""
        n = self.grid.values.shape[1]
        if n <= MOST:
            return tuple(self.cell(row, column) for column in range(n))
        ends = [self.cell(row, column) for column in (*range(FIRST), *range(n - LAST, n))]
        return (*ends[:FIRST], PageCell(GAP), *ends[FIRST:])
