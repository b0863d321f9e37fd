"""One matrix on the sheet of a walkthrough: shaded cells, numbers where they can be read, names at its sides."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, UInt8

from attnviz.render.figure.page import Line, Page
from attnviz.render.figure.pen import BLACK, DPI, GREY, LEAST_TEXT, PITCH, POINT, SMALL, TEXT, Pen, clipped
from attnviz.render.palette import colours, diverging, ink, levels, signed_levels
from attnviz.walkthroughs.figure.plan import MatrixPanel
from attnviz.walkthroughs.hand import shown
from attnviz.walkthroughs.selection import BLANK
from attnviz.walkthroughs.wording import say

NUMBER = 6.5
"""The size of the numbers in cells, in points."""
MOST_ACROSS, MOST_CELLS, MOST_SMALL = 12, 300, 5
"""Columns and cells of a matrix whose numbers are printed, and columns of a small one."""
CELL, THIN = 0.3, 0.11
"""The side of a cell with a number, and the width of one without, in inches."""
TALLEST, WIDEST = 4.5, 2.4
"""Inches of all rows of tokens, and of all columns without numbers."""
DEEP = 1.5
"""Inches of all rows of a matrix that no token names."""
SMALLER = 0.62
"""By how much a small panel is smaller."""
LEAST_ROOM = 1.2
"""Inches that the words over a matrix may take, where it is narrower."""
USUAL, RARE = 0.98, 1.5
"""The share of a wide matrix whose numbers the colours are made for, and how many times as far from 0 its farthest
number must be for that: else one column of a large model leaves all others pale."""
LEAST_CELL = 2 / DPI
"""Inches: narrower cells share one point of the picture."""
LEADING = 1.28
HEAD_GAP = 0.06


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """How large a panel is drawn; lengths in inches.

    Attributes:
        panel: what is drawn.
        values: its numbers, of cells that share a point only the one farthest from 0.
        limit: how far from 0 the last colour is.
        width: of the cells together.
        height: likewise.
        numbers: the numbers printed, for each row; empty where cells are too small.
        size: of the numbers, in points.
        title: the lines of its title.
        lines: those of its formula and shape.
        upright: whether the names of its columns stand upright.
        below: what these names take below it.
        head: what title, formula and shape take above it.
        room: the width of the cells or of the words above them.
    """

    panel: MatrixPanel
    values: Float64[np.ndarray, "row column"]
    limit: float
    width: float
    height: float
    numbers: tuple[tuple[str, ...], ...]
    size: float
    title: tuple[str, ...]
    lines: tuple[str, ...]
    upright: bool
    below: float
    head: float
    room: float

    @property
    def is_clipped(self) -> bool:
        """Whether numbers beyond the last colour are drawn."""
        return self.limit < float(np.abs(self.values[np.isfinite(self.values)]).max(initial=0.0))

    @property
    def is_pooled(self) -> bool:
        """Whether cells share a point."""
        return self.values.shape != self.panel.values.shape


def box_of(panel: MatrixPanel, pen: Pen, precision: int, *, small: bool = False) -> Box:
    """How large a panel is to be drawn; in a small one fewer numbers are printed."""
    n_rows, n_columns = panel.values.shape
    scale = SMALLER if small else 1.0
    row = scale * min(CELL, (TALLEST if panel.rows or n_rows == 1 else DEEP) / n_rows)
    numbers: tuple[tuple[str, ...], ...] = ()
    size = min(NUMBER, 0.75 * row / POINT)
    column = scale * min(CELL if panel.columns else THIN, WIDEST / n_columns)
    if n_columns <= (MOST_SMALL if small else MOST_ACROSS) and n_rows * n_columns <= MOST_CELLS and size >= LEAST_TEXT:
        numbers = tuple(
            tuple(
                BLANK if (i, j) in panel.blanks else shown(float(panel.values[i, j]), precision)
                for j in range(n_columns)
            )
            for i in range(n_rows)
        )
        column = max(CELL, pen.widest([text for line in numbers for text in line], size) + 0.1)
    width = n_columns * column
    widest = max((pen.width(name) for name in clipped(panel.columns)), default=0.0)
    upright = bool(panel.columns) and widest + 0.06 > column
    room = max(width, LEAST_ROOM)
    title = tuple(pen.wrap(panel.title, room, TEXT + 1))
    values, notes = panel.values, []
    if not panel.blanks and np.isfinite(values).all():
        values, pooled = _pooled(values, (n_rows * row, width))
        notes = [say("pooled", panel.language, rows=pooled[0], columns=pooled[1])] if max(pooled) > 1 else []
    limit = float(np.abs(values[np.isfinite(values)]).max(initial=0.0))
    if not numbers:
        limit, words = _limit(panel, values)
        notes = [words, *notes]
    lines = tuple(line for text in (*panel.lines, *notes) for line in pen.wrap(text, room, SMALL))
    return Box(
        panel=panel,
        values=values,
        limit=limit,
        width=width,
        height=n_rows * row,
        numbers=numbers,
        size=size,
        title=title,
        lines=lines,
        upright=upright,
        below=((widest if upright else PITCH) + 0.08) if panel.columns else 0.0,
        head=LEADING * POINT * ((TEXT + 1) * len(title) + SMALL * len(lines)) + HEAD_GAP,
        room=max([width, *(pen.width(text, TEXT + 1) for text in title), *(pen.width(text, SMALL) for text in lines)]),
    )


def draw_panel(page: Page, box: Box, corner: tuple[float, float], palette: str) -> None:
    """Draw a panel; its cells begin at (left, top)."""
    panel, (left, top) = box.panel, corner
    n_rows, n_columns = panel.values.shape
    row, column = box.height / n_rows, box.width / n_columns
    table, level = _shades(box.values, box.limit, palette, both_sides=_has_two_sides(panel))
    bare = ~np.isfinite(box.values)
    for cell in panel.blanks:
        bare[cell] = True
    image = np.dstack([table[level], np.where(bare, 0, 255).astype(np.uint8)])
    page.image(image, (left, top, box.width, box.height))
    white = ink(table)[level]
    for i, line in enumerate(box.numbers):
        for j, text in enumerate(line):
            light = bool(white[i, j]) and not bare[i, j]
            x, y = left + (j + 0.5) * column, top + (i + 0.5) * row
            page.text(x, y, text, box.size, ha="center", va="center", zorder=4, color="white" if light else BLACK)
    words = [(text, TEXT + 1, BLACK) for text in box.title] + [(text, SMALL, GREY) for text in box.lines]
    page.write([Line(text, size, colour, LEADING * size * POINT) for text, size, colour in words], top - box.head, left)
    for j, name in enumerate(clipped(panel.columns)):
        if column >= PITCH or j % math.ceil(PITCH / column) == 0:
            x, turn = left + (j + 0.5) * column, 90.0 if box.upright else 0.0
            page.text(x, top + box.height + 0.05, name, ha="center", va="top", rotation=turn)


def label_rows(page: Page, box: Box, right: float, top: float) -> None:
    """Name the rows of a panel at its left; not each, where they stand too close."""
    row = box.height / len(box.panel.values)
    size = label_size(box)
    step = max(1, math.ceil(1.2 * size * POINT / row - 0.01))
    for i, name in enumerate(clipped(box.panel.rows)):
        if i % step == 0:
            page.text(right, top + (i + 0.5) * row, name, size, ha="right", va="center")


def label_size(box: Box) -> float:
    """The size of the names of rows, in points."""
    return max(LEAST_TEXT, min(TEXT, box.height / len(box.panel.values) / POINT / 1.2))


def _pooled(
    values: Float64[np.ndarray, "row column"], size: tuple[float, float]
) -> tuple[Float64[np.ndarray, "fewer narrower"], tuple[int, int]]:
    """The numbers that are drawn at a size in inches, and of how many rows and columns each is the farthest from 0.

    A mean would be near 0 wherever the numbers of a map are, and the picture empty.
    """
    block = tuple(
        max(1, math.ceil(n * LEAST_CELL / inches - 0.01)) for n, inches in zip(values.shape, size, strict=True)
    )
    rows, columns = block
    down, across = -(-values.shape[0] // rows), -(-values.shape[1] // columns)
    filled = np.zeros((down * rows, across * columns))
    filled[: values.shape[0], : values.shape[1]] = values
    cells = filled.reshape(down, rows, across, columns).swapaxes(1, 2).reshape(down, across, rows * columns)
    return np.take_along_axis(cells, np.abs(cells).argmax(axis=2)[..., None], axis=2)[..., 0], (rows, columns)


def _limit(panel: MatrixPanel, values: np.ndarray) -> tuple[float, str]:
    """How far from 0 the last colour is where no numbers are printed, and the words that say so."""
    far = np.abs(values[np.isfinite(values)])
    largest = float(far.max(initial=0.0))
    sign = "±" if _has_two_sides(panel) else ""
    if not panel.columns and panel.values.shape[1] > MOST_ACROSS:
        usual = float(np.quantile(far, USUAL)) if far.size else 0.0
        if largest > RARE * usual > 0:
            texts = {"limit": sign + _short(usual), "largest": _short(largest)}
            return usual, say("clipped", panel.language, **texts)
    return largest, say("limits", panel.language, limit=sign + _short(largest))


def _has_two_sides(panel: MatrixPanel) -> bool:
    """Whether it has numbers below 0, though none of them may be the farthest of those that share a point."""
    return bool((panel.values[np.isfinite(panel.values)] < 0).any())


def _short(value: float) -> str:
    return f"{value:.2g}" if value < 100 else f"{value:.0f}"


def _shades(
    values: np.ndarray, limit: float, palette: str, *, both_sides: bool
) -> tuple[UInt8[np.ndarray, "level rgb"], UInt8[np.ndarray, "*cell"]]:
    """The colours of a matrix and each cell's level: from 0 up, or to both sides of 0."""
    finite = np.where(np.isfinite(values), values, 0.0)
    top = limit or 1.0
    if both_sides:
        return diverging(), signed_levels(finite, top)
    return colours(palette), levels(finite, top)
