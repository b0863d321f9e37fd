"""One query followed from its keys to the context, a row for each key, with lines from number to number.

The query stands above the keys and the context below the alignment vectors, column over column; lines are as thick as
the weight. Lengths are in inches.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attnviz.render.figure.page import Page
from attnviz.render.figure.pen import BLACK, FRAME
from attnviz.walkthroughs.figure.card import (
    ROOMY,
    PlacedMatrix,
    StepWords,
    measure_words,
    narrowest,
)
from attnviz.walkthroughs.figure.matrix import (
    LETTERS,
    MOST_ROWS,
    NAMES_GAP,
    TITLE_HEIGHT,
    MatrixBox,
    SheetStyle,
    measure_matrix,
)
from attnviz.walkthroughs.operations import OPERATIONS
from attnviz.walkthroughs.record import CalculationStep
from attnviz.walkthroughs.view import Cut, GridView, StepView

COLUMN_GAP, WORDS_GAP = 0.25, 0.15
DROP = 0.22  # between the query and the keys, and between the alignment vectors and their sum
LIT = "#ffe9a8"  # behind the followed row: a colour of no number
THICKEST = 6.0  # the line of a weight of 1, in points


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """The steps of one query, measured."""

    columns: tuple[PlacedMatrix, ...]  # the matrices with a row for each key, from the left
    query: MatrixBox | None  # above the first column
    total: MatrixBox | None  # the sum of the alignment vectors, below the last column
    words: tuple[StepWords, ...]  # of the steps, above the columns
    total_words: StepWords | None
    followed: int | None  # the drawn row that stands out
    weights: tuple[float, ...]  # of each drawn row; empty where they are not shown
    others: tuple[GridView, ...]  # grids of these steps without a row for each key
    head: float  # the height above the columns
    foot: float  # the height below them
    width: float

    @property
    def boxes(self) -> list[MatrixBox]:
        """All matrices."""
        boxes = [self.query, self.total, *(column.box for column in self.columns)]
        return [box for box in boxes if box is not None]

    @property
    def height(self) -> float:
        """The height of everything."""
        return self.head + self.columns[0].box.height + self.foot

    def draw(self, page: Page, left: float, top: float) -> None:
        """Draw the steps from this corner on."""
        for words in self.words:
            words.draw(page, left, top)
        first, top = self.columns[0], top + self.head
        if self.query is not None:
            self._draw_query(page, self.query, left + first.left, top)
        self._draw_lines(page, left, top)
        for column in self.columns:
            box, x = column.box, left + column.left
            if column is first and self.query is not None:
                box.write_title_beside(page, x, top - TITLE_HEIGHT / 2)
            else:
                box.write_title(page, x, top)
            box.draw(page, x, top, self.followed)
        first.box.write_names(page, left + first.left - NAMES_GAP, top, self.followed)
        if self.total is not None:
            self._draw_total(page, self.total, left, top + first.box.height)

    def _draw_query(self, page: Page, query: MatrixBox, left: float, bottom: float) -> None:
        """Draw the query above the keys, and a line from each of its numbers down to them."""
        top = bottom - DROP - query.row_height
        if self.followed is not None:
            _draw_band(page, left - query.names_width, top, query.names_width, query.row_height)
        query.write_title(page, left, top)
        query.draw(page, left, top, 0)
        query.write_names(page, left - NAMES_GAP, top, 0)
        if query.columns == self.columns[0].box.columns:
            _draw_drops(page, query, left, top + query.row_height)

    def _draw_lines(self, page: Page, left: float, top: float) -> None:
        """Draw a line from each number to what is made of it."""
        first, last = self.columns[0].box, self.columns[-1]
        if self.followed is not None:
            x = left + self.columns[0].left - first.names_width
            width = last.right - self.columns[0].left + first.names_width
            y = top + self.followed * first.row_height
            _draw_band(page, x, y, width, first.row_height)
        is_weighed = False
        for before, after in itertools.pairwise(self.columns):
            is_weighed = is_weighed or before.box.grid.is_weights
            start, end = left + before.right + 0.03, left + after.left - 0.03
            for i, row in enumerate(first.rows):
                if row is None:
                    continue
                look: dict[str, Any]
                if is_weighed and self.weights:
                    width = 0.15 + THICKEST * self.weights[i]
                    look = {"color": first.style.strong, "linewidth": width}
                elif i == self.followed:
                    look = {"color": BLACK, "linewidth": 1.6}
                else:
                    look = {"color": FRAME, "linewidth": 0.7, "zorder": 1.0}
                y = top + (i + 0.5) * first.row_height
                page.ax.plot([start, end], [y, y], solid_capstyle="butt", **look)
                if i == self.followed:
                    tip: dict[str, Any] = {
                        "marker": ">",
                        "markersize": 5,
                        "linestyle": "none",
                        "zorder": 6,
                    }
                    page.ax.plot([end - 0.02], [y], color=look["color"], **tip)

    def _draw_total(self, page: Page, total: MatrixBox, left: float, top: float) -> None:
        last = self.columns[-1]
        x, y = left + last.left, top + DROP
        if total.columns == last.box.columns:
            _draw_drops(page, total, x, top)
        total.draw(page, x, y, 0)
        total.write_title_beside(page, x, y + total.row_height / 2)
        if self.total_words is not None:
            self.total_words.draw(page, left, top + 0.16)


def measure_flow(
    cards: Sequence[StepView], style: SheetStyle, weights: np.ndarray, *, followed: int | None
) -> Flow:
    """Measure the steps of one query; `followed` is a key, None where the weights are not to be shown."""
    rows = _rows(weights, followed)
    query_grid, total_grid, others, parts = _sort_grids(cards, len(weights))
    query = None if query_grid is None else measure_matrix(query_grid, style)
    total = None if total_grid is None else measure_matrix(total_grid, style)
    columns: list[PlacedMatrix] = []
    headings: list[StepWords] = []
    for card, grids in parts:
        begin = columns[-1].right if columns else 0.0
        for grid in grids:
            box = measure_matrix(
                grid, style, rows=rows, has_bars=grid.is_weights and not grid.blanks
            )
            if not columns:
                box = _widen(box, query)
                names_width = max(box.names_width, style.pen.width(box.title, LETTERS) + NAMES_GAP)
                left = max(names_width, 0.0 if query is None else query.names_width)
            else:
                left = columns[-1].right + COLUMN_GAP
                if grid is card.result:
                    box = _widen(box, total)
                    left = max(left, begin + WORDS_GAP + narrowest(card, style) - box.width)
            columns.append(PlacedMatrix(box=box, left=left))
        if card.result in grids:
            left = begin + WORDS_GAP if begin else 0.0
            headings.append(measure_words(card, style, columns[-1].right - left, left=left))
    if query is not None:
        query = _widen(query, columns[0].box)
    total_words, foot = None, 0.0
    if total is not None:
        total = _widen(total, columns[-1].box)
        total_words = _measure_total_words(cards[-1], columns[-1], style)
        foot = max(DROP + TITLE_HEIGHT + total.height, TITLE_HEIGHT + total_words.height)
    drawn_weights: tuple[float, ...] = ()
    if followed is not None:
        drawn_weights = tuple(0.0 if row is None else float(weights[row]) for row in rows)
    return Flow(
        columns=tuple(columns),
        query=query,
        total=total,
        words=tuple(headings),
        total_words=total_words,
        followed=rows.index(followed) if followed in rows else None,
        weights=drawn_weights,
        others=tuple(others),
        head=_head_height(headings, query),
        foot=foot,
        width=columns[-1].right,
    )


def _sort_grids(
    cards: Sequence[StepView], n_keys: int
) -> tuple[GridView | None, GridView | None, list[GridView], list[tuple[StepView, list[GridView]]]]:
    """Return the query, the sum, grids without a row for each key, and the new grids of each step that have one."""
    query = total = None
    others: list[GridView] = []
    parts: list[tuple[StepView, list[GridView]]] = []
    drawn: set[str] = set()
    for card in cards:
        grids = [grid for _, grid in card.parts]
        place = place_of_keys(card.step)
        if place is not None:
            query, keys, result = grids[0], grids[place], grids[-1]
            others += [grid for grid in grids[1:-1] if grid is not keys]
            grids = [keys, result]
        elif card.step.operation == "sum":
            total = grids.pop()
        elif card.step.operation == "mask":
            grids = [grids[0], grids[-1]]  # the result shows the mask
        others += [grid for grid in grids if len(grid.values) != n_keys]
        new = [grid for grid in grids if grid.name not in drawn and len(grid.values) == n_keys]
        drawn |= {grid.name for grid in new}
        parts.append((card, new))
    return query, total, others, parts


def place_of_keys(step: CalculationStep) -> int | None:
    """Return the place of the keys among the operands of a comparison with a query; None of other steps."""
    operation = OPERATIONS[step.operation]
    for place, side, letter in operation.sides(len(step.operands)):
        if side == "rows" and letter.lower() == operation.axes[-1]:
            return place
    return None


def _widen(box: MatrixBox, other: MatrixBox | None) -> MatrixBox:
    """Return a matrix with columns as wide as those of another that it stands above or below."""
    if other is None or other.columns != box.columns or not box.grid.has_vectors:
        return box
    return replace(box, column_width=max(box.column_width, other.column_width))


def _measure_total_words(card: StepView, last: PlacedMatrix, style: SheetStyle) -> StepWords:
    """Measure the words of the sum, which stand at its left."""
    end = last.left - style.pen.width(f"{card.result.name} (1, 999)", LETTERS) - 0.2
    left = max(0.0, end - ROOMY)
    return measure_words(card, style, end - left, left=left)


def _head_height(headings: Sequence[StepWords], query: MatrixBox | None) -> float:
    """Return the height above the columns: the words, and the query below those of its step."""
    heights = [words.height + TITLE_HEIGHT for words in headings] or [TITLE_HEIGHT]
    if query is not None:
        heights[0] += query.row_height + DROP + (TITLE_HEIGHT if headings else 0.0)
    return max(heights)


def _rows(weights: np.ndarray, followed: int | None) -> Cut:
    """Return the keys that are drawn: of many the first, the last and those with the largest weights."""
    n = len(weights)
    if n <= MOST_ROWS:
        return tuple(range(n))
    order = np.arange(n) if followed is None else np.argsort(-weights, kind="stable")
    chosen = sorted({0, n - 1, *order[: MOST_ROWS // 2].tolist()})
    rows: list[int | None] = [chosen[0]]
    for before, row in itertools.pairwise(chosen):
        if row > before + 1:
            rows.append(None)
        rows.append(row)
    return tuple(rows)


def _draw_band(page: Page, left: float, top: float, width: float, height: float) -> None:
    """Draw the colour behind a row that is followed."""
    place = (left - 0.04, top, width + 0.04, height)
    page.box(place, facecolor=LIT, edgecolor="none", zorder=0)


def _draw_drops(page: Page, box: MatrixBox, left: float, top: float) -> None:
    """Draw a line down from each column, or down to it."""
    for j, column in enumerate(box.columns):
        if column is not None:
            x = left + (j + 0.5) * box.column_width
            ends = [top + 0.02, top + DROP - 0.02]
            page.ax.plot([x, x], ends, color=FRAME, linewidth=0.7, zorder=1)
