"""One query followed from its keys to the context: a row for each key, lines from number to number, one row lit.

The query stands above the keys, column over column; lines are as thick as the weight; the context stands below.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attnviz.render.figure.page import Page
from attnviz.render.figure.pen import BLACK, FRAME, GREY
from attnviz.walkthroughs.figure.card import (
    LABEL,
    ROOMY,
    TITLED,
    Box,
    CardStyle,
    Spot,
    Words,
    box_of,
    words_of,
)
from attnviz.walkthroughs.operations import OPERATIONS
from attnviz.walkthroughs.record import CalculationStep
from attnviz.walkthroughs.view import Cut, GridView, StepView

GAP, APART = 0.25, 0.15  # between two columns, and between the words of two steps, in inches
DOWN = 0.22  # between the query and the keys, and between the alignment vectors and their sum, in inches
LIT = "#ffe9a8"  # behind the row that is to be followed: a colour of no number
MOST_KEYS = 48  # keys that are drawn; of more, those with the largest weights
THICKEST = 6.0  # the line of a weight of 1, in points


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """The steps of one query, measured; lengths in inches."""

    columns: tuple[Spot, ...]  # what has a row for each key, from the left
    query: Box | None  # what is compared with the keys; None where that is not shown
    total: Box | None  # the sum of the alignment vectors, likewise
    words: tuple[Words, ...]  # those of the steps above the columns
    total_words: Words | None  # those of the sum
    lit: int | None  # the row, as it is drawn, that is to be followed
    # the weight of each row that is drawn; empty where they are not to be told
    weights: tuple[float, ...]
    # those of these steps that have no row for each key, such as weights of a score
    others: tuple[GridView, ...]
    head: float  # what stands above the columns takes
    foot: float  # what stands below them takes
    width: float  # of all

    @property
    def boxes(self) -> list[Box]:
        """All matrices."""
        return [
            one
            for one in (self.query, self.total, *(column.box for column in self.columns))
            if one is not None
        ]

    @property
    def height(self) -> float:
        """Of all."""
        return self.head + self.columns[0].box.height + self.foot

    def draw(self, page: Page, corner: tuple[float, float]) -> None:
        """Draw the steps of one query from this corner on."""
        left, top = corner
        for one in self.words:
            one.write(page, (left, top))
        first, top = self.columns[0], top + self.head
        if self.query is not None:
            _draw_query(page, self, self.query, (left, top))
        _draw_lines(page, self, (left, top))
        for spot in self.columns:
            box, x, titled = spot.box, left + spot.left, TITLED * spot.box.scale
            if spot is first and self.query is not None:
                _symbol_beside(page, box, (x, top - titled / 2))
            else:
                box.write_title(page, (x, top))
            box.draw(page, (x, top), self.lit)
        first.box.write_names(page, left + first.left - 0.07 * first.box.scale, top, self.lit)
        if self.total is not None:
            _draw_total(page, self, self.total, (left, top + first.box.height))


def flow_of(
    cards: Sequence[StepView],
    style: CardStyle,
    weights: np.ndarray,
    *,
    lit: int | None,
) -> Flow:
    """Measure the steps of one query; `lit` is the key to be followed, None where nothing is to be told of weights."""
    rows, scale = _rows(weights, lit), style.scale
    query, total, others, parts = _sort_grids(cards, len(weights))
    above, below = (None if one is None else box_of(one, style) for one in (query, total))
    columns: list[Spot] = []
    headings: list[Words] = []
    for card, matrices in parts:
        begin = columns[-1].right if columns else 0.0
        for matrix in matrices:
            box = box_of(matrix, style, rows=rows, bars=matrix.is_weights and not matrix.blanks)
            box = _level(box, above if not columns else below if matrix is card.result else None)
            is_headed = columns and matrix is card.result
            least = begin + APART * scale + style.narrowest(card) - box.width if is_headed else 0.0
            gap = (
                GAP * scale
                if columns
                else max(_names_width(box), above.names_width if above else 0.0)
            )
            before = columns[-1].right if columns else 0.0
            columns.append(Spot(box=box, left=max(before + gap, least), number=card.number))
        if matrices and card.result in matrices:
            left = begin + (APART * scale if begin else 0.0)
            headings.append(words_of(card, columns[-1].right - left, style, left=left))
    above = None if above is None else _level(above, columns[0].box)
    below = None if below is None else _level(below, columns[-1].box)
    sum_words = _words_of_sum(cards[-1], columns, style) if below is not None else None
    return Flow(
        columns=tuple(columns),
        query=above,
        total=below,
        words=tuple(headings),
        total_words=sum_words,
        lit=rows.index(lit) if lit in rows else None,
        weights=()
        if lit is None
        else tuple(0.0 if row is None else float(weights[row]) for row in rows),
        others=tuple(others),
        head=_head(headings, above, scale),
        width=columns[-1].right,
        foot=max(
            0.0 if below is None else (DOWN + TITLED) * scale + below.height,
            0.0 if sum_words is None else TITLED * scale + sum_words.height,
        ),
    )


def _sort_grids(
    cards: Sequence[StepView], n_keys: int
) -> tuple[GridView | None, GridView | None, list[GridView], list[tuple[StepView, list[GridView]]]]:
    """The query, the sum, what has no row for each key, and for each step what it brings that has one."""
    query = total = None
    others, parts, drawn = [], [], set()
    for card in cards:
        matrices = [matrix for _, matrix in card.parts]
        place = keys_of(card.step)
        if place is not None:
            query, keys = matrices[0], matrices[place]
            others += [matrix for matrix in matrices[1:-1] if matrix is not keys]
            matrices = [keys, matrices[-1]]
        elif card.step.operation == "sum":
            total = matrices.pop()
        elif card.step.operation == "mask":
            matrices = [matrices[0], matrices[-1]]  # what it makes shows it
        others += [matrix for matrix in matrices if len(matrix.values) != n_keys]
        new = [one for one in matrices if one.name not in drawn and len(one.values) == n_keys]
        drawn |= {matrix.name for matrix in new}
        parts.append((card, new))
    return query, total, others, parts


def keys_of(step: CalculationStep) -> int | None:
    """The place of the keys among the operands of what compares them with a query; None of other steps."""
    operation = OPERATIONS[step.operation]
    sides = operation.sides(len(step.operands))
    return next(
        (i for i, side, letter in sides if (side, letter.lower()) == ("rows", operation.axes[-1])),
        None,
    )


def _level(box: Box, other: Box | None) -> Box:
    """A matrix whose columns are as wide as those of another with as many, which it stands above or below."""
    if other is None or other.columns != box.columns or not box.matrix.has_vectors:
        return box
    return replace(box, column=max(box.column, other.column))


def _names_width(box: Box) -> float:
    """What the names of keys, and the symbol of the first matrix, take at its left."""
    return max(
        box.names_width, box.style.pen.width(box.title, LABEL * box.scale) + 0.07 * box.scale
    )


def _words_of_sum(card: StepView, columns: Sequence[Spot], style: CardStyle) -> Words:
    """Those at the left of the sum, below the values."""
    end = (
        columns[-1].left
        - style.pen.width(f"{card.result.name} (1, 999)", LABEL * style.scale)
        - 0.2
    )
    left = max(0.0, end - ROOMY * style.scale)
    return words_of(card, end - left, style, left=left)


def _head(headings: Sequence[Words], query: Box | None, scale: float) -> float:
    """What stands above the columns: the words, and the query below those of its own step."""
    heights = [one.height + TITLED * scale for one in headings] or [TITLED * scale]
    if query is not None:
        heights[0] += query.row + (DOWN + TITLED if headings else DOWN) * scale
    return max(heights)


def _rows(weights: np.ndarray, lit: int | None) -> Cut:
    n = len(weights)
    if n <= MOST_KEYS:
        return tuple(range(n))
    order = np.argsort(-weights, kind="stable") if lit is not None else np.arange(n)
    pairs = itertools.pairwise([-1, *sorted({0, n - 1, *order[: MOST_KEYS // 2].tolist()})])
    return tuple(
        one for before, row in pairs for one in ((row,) if row == before + 1 else (None, row))
    )


def _symbol_beside(page: Page, box: Box, corner: tuple[float, float]) -> None:
    left, middle = corner
    look = {"ha": "right", "va": "center_baseline", "color": GREY}
    page.text(left - 0.07 * box.scale, middle, box.title, LABEL * box.scale, **look)


def _draw_query(page: Page, flow: Flow, query: Box, corner: tuple[float, float]) -> None:
    """The query above the keys, and from each of its numbers a line to the keys' column that it is multiplied with."""
    left, below = corner
    keys, scale = flow.columns[0], query.scale
    x, top = left + keys.left, below - DOWN * scale - query.row
    if flow.lit is not None:
        _light(page, (x, top), query.names_width, 0.0, query.row)
    query.write_title(page, (x, top))
    query.draw(page, (x, top), 0)
    query.write_names(page, x - 0.07 * scale, top, 0)
    if query.columns == keys.box.columns:
        _draw_drops(page, query, (x, top + query.row), DOWN * scale)


def _light(
    page: Page, corner: tuple[float, float], names: float, width: float, height: float
) -> None:
    """Behind a row that is to be followed, whose cells begin at the corner, and the names at its left."""
    place = (corner[0] - names - 0.04, corner[1], width + names + 0.04, height)
    page.box(place, facecolor=LIT, edgecolor="none", zorder=0)


def _draw_drops(page: Page, box: Box, corner: tuple[float, float], length: float) -> None:
    left, top = corner
    for j, column in enumerate(box.columns):
        if column is not None:
            x = left + (j + 0.5) * box.column
            page.ax.plot(
                [x, x],
                [top + 0.02, top + length - 0.02],
                color=FRAME,
                linewidth=0.7 * box.scale,
                zorder=1,
            )


def _draw_lines(page: Page, flow: Flow, corner: tuple[float, float]) -> None:
    """From each number to what is made of it; the row to be followed stands out."""
    left, top = corner
    first, last, style = flow.columns[0], flow.columns[-1], flow.columns[0].box.style
    if flow.lit is not None:
        place = (left + first.left, top + flow.lit * first.box.row)
        _light(page, place, first.box.names_width, last.right - first.left, first.box.row)
    weighed = False
    for before, after in itertools.pairwise(flow.columns):
        weighed = weighed or before.box.matrix.is_weights
        for i, row in enumerate(first.box.rows):
            if row is None:
                continue
            y = top + (i + 0.5) * first.box.row
            ends = [left + before.right + 0.03, left + after.left - 0.03]
            look: dict[str, Any] = {"color": FRAME, "linewidth": 0.7 * style.scale, "zorder": 1.0}
            if weighed and flow.weights:
                look = {
                    "color": style.strong,
                    "linewidth": (0.15 + THICKEST * flow.weights[i]) * style.scale,
                }
            elif i == flow.lit:
                look = {"color": BLACK, "linewidth": 1.6 * style.scale}
            page.ax.plot(ends, [y, y], solid_capstyle="butt", **look)
            if i == flow.lit:
                tip: dict[str, Any] = {
                    "marker": ">",
                    "markersize": 5 * style.scale,
                    "linestyle": "none",
                    "zorder": 6,
                }
                page.ax.plot([ends[1] - 0.02], [y], color=look["color"], **tip)


def _draw_total(page: Page, flow: Flow, total: Box, corner: tuple[float, float]) -> None:
    left, top = corner
    last, scale = flow.columns[-1], total.scale
    x, y = left + last.left, top + DOWN * scale
    if total.columns == last.box.columns:
        _draw_drops(page, total, (x, top), DOWN * scale)
    total.draw(page, (x, y), 0)
    _symbol_beside(page, total, (x, y + total.row / 2))
    if flow.total_words is not None:
        flow.total_words.write(page, (left, top + 0.16 * scale))
