"""A matrix of a walkthrough, which is measured first and then drawn in colour, with its numbers and names.

Only the first and last numbers of long vectors are drawn. Lengths are in inches, font sizes in points.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import UInt8

from attnviz.render.figure.page import Page
from attnviz.render.figure.pen import POINT, Pen, clipped
from attnviz.render.fonts import BASE, typefaces_for
from attnviz.render.palette import levels, signed_levels, text_colours
from attnviz.walkthroughs.hand import NEARLY_ZERO, TINY, format_number
from attnviz.walkthroughs.view import BLANK, DIGITS, Cut, GridView, cut

LETTERS = 8.0  # the font size of numbers and names
ROW_HEIGHT, NARROW_CELL, THIN_CELL = 0.25, 0.28, 0.15  # cells are thin if no number is printed
CELL_PAD, NAMES_GAP = 0.06, 0.07
TITLE_HEIGHT = 0.24
LONGEST_BAR = 0.7
MOST_NUMBERED = 12  # a matrix over keys with more columns shows only colours
GAP_ROW, GAP_COLUMN = "⋮", "…"
STRONG = 0.72  # the position of the bars' colour in the palette, from 0 to 1
PALE = 0.45  # opacity of red and blue, on which the numbers must stand out
FOLLOWED = "#d98200"  # the frame of the followed row


class MatrixBox:
    """A matrix with the sizes of its cells and names."""

    def __init__(
        self,
        grid: GridView,
        pen: Pen,
        palette: str,
        digits: int,
        *,
        most_rows: int,
        most_columns: int,
        followed: int | None = None,
        has_names: bool = True,
        formula: str = "",
    ) -> None:
        """Measure a matrix.

        Args:
            grid: the numbers and names.
            pen: measures text.
            palette: the colours of weights.
            digits: decimals of the numbers.
            most_rows: most rows that are drawn.
            most_columns: most columns that are drawn of a vector.
            followed: the row that gets a frame.
            has_names: whether the names of the rows are drawn.
            formula: the title, if it says more than the symbol.
        """
        self.grid, self.pen, self.palette, self.followed = grid, pen, palette, followed
        self.formula = formula
        n_rows, n_columns = grid.values.shape
        self.rows = _shorten(n_rows, most_rows)
        if followed is not None and followed not in self.rows:
            self.rows = _keep(self.rows, followed)
        column_limit = most_columns if grid.has_vectors else max(most_rows, MOST_NUMBERED)
        self.columns = _shorten(n_columns, column_limit)
        is_numbered = grid.has_vectors or len(self.columns) <= MOST_NUMBERED
        self.texts = [
            [_number(grid, row, column, digits) for column in self.columns] for row in self.rows
        ]
        widest = pen.widest([text for line in self.texts for text in line], LETTERS)
        self.row_height, self.column_width = ROW_HEIGHT, max(NARROW_CELL, widest + CELL_PAD)
        if not is_numbered:
            self.texts, self.row_height, self.column_width = [], THIN_CELL, THIN_CELL
        names = clipped(grid.rows) if has_names else []
        self.row_names = _select(names, self.rows, GAP_ROW)
        self.column_names = _select(clipped(grid.columns), self.columns, GAP_COLUMN)
        # The pen measures regular letters; bold ones are up to 10% wider.
        widest_row = 1.1 * pen.widest(self.row_names, LETTERS)
        self.names_width = widest_row + NAMES_GAP if self.row_names else 0.0
        widest_name, self.names_height = pen.widest(self.column_names, LETTERS), 0.0
        self.names_stand_upright = widest_name + CELL_PAD / 2 > self.column_width
        if self.column_names:
            line_height = 1.25 * LETTERS * POINT
            self.names_height = 0.06 + (widest_name if self.names_stand_upright else line_height)

    @property
    def title(self) -> str:
        """The symbol, or the formula; with the shape if the rows are vectors, which may be shortened."""
        name = self.formula or self.grid.name
        if self.grid.has_vectors:
            return f"{name}{'   ' if self.formula else ' '}{self.grid.values.shape}"
        return name

    @property
    def cells_width(self) -> float:
        """The width of the cells."""
        return len(self.columns) * self.column_width

    @property
    def has_bars(self) -> bool:
        """True for the weights of a single query, which are drawn as bars."""
        return self.grid.is_weights and self.grid.is_upright and not self.grid.blanks

    @property
    def width(self) -> float:
        """The full width, with names and bars."""
        cells = self.cells_width + (LONGEST_BAR if self.has_bars else 0.0)
        return self.names_width + max(cells, self.pen.width(self.title, LETTERS))

    @property
    def height(self) -> float:
        """The full height, with title and names."""
        return TITLE_HEIGHT + len(self.rows) * self.row_height + self.names_height

    def draw(self, page: Page, left: float, top: float) -> None:
        """Draw the matrix with its top left corner at (`left`, `top`)."""
        left, top = left + self.names_width, top + TITLE_HEIGHT
        page.text(left, top - 0.06, self.title, LETTERS, va="bottom", color=self.pen.quiet)
        height = len(self.rows) * self.row_height
        values = self._drawn_values()
        pixels, inks = self._pixels(values)
        if self.has_bars:
            self._draw_bars(page, left + self.cells_width, top, values[:, 0])
        else:
            page.image(pixels, (left, top, self.cells_width, height))
        for i, texts in enumerate(self.texts):
            for j, text in enumerate(texts):
                x, y = left + (j + 0.5) * self.column_width, top + (i + 0.5) * self.row_height
                colour = self.pen.ink if self.has_bars else inks[i, j]
                centred = {"ha": "center", "va": "center_baseline", "zorder": 4}
                page.text(x, y, text, LETTERS, color=colour, **centred)
        for i, name in enumerate(self.row_names):
            look: dict[str, Any] = bold(name) if self.rows[i] == self.followed is not None else {}
            place = left - NAMES_GAP, top + (i + 0.5) * self.row_height
            page.text(*place, name, LETTERS, ha="right", va="center", **look)
        for j, name in enumerate(self.column_names):
            x, y = left + (j + 0.5) * self.column_width, top + height + 0.04
            rotation = 90.0 if self.names_stand_upright else 0.0
            page.text(x, y, name, LETTERS, ha="center", va="top", rotation=rotation)
        if self.followed is not None and self.followed in self.rows:
            y = top + self.rows.index(self.followed) * self.row_height
            frame = {"fill": False, "edgecolor": FOLLOWED, "linewidth": 1.8, "zorder": 5}
            page.box((left, y, self.cells_width, self.row_height), **frame)

    def _draw_bars(self, page: Page, left: float, top: float, weights: np.ndarray) -> None:
        """Draw a horizontal bar per weight; a weight of 1 is `LONGEST_BAR` long."""
        table = self.pen.theme.colours(self.palette)
        colour = tuple(table[round(STRONG * (len(table) - 1))] / 255)
        for i, weight in enumerate(weights):
            if np.isfinite(weight):
                y = top + (i + 0.22) * self.row_height
                place = (left, y, float(weight) * LONGEST_BAR, 0.56 * self.row_height)
                page.box(place, facecolor=colour, edgecolor="none", zorder=3)

    def _drawn_values(self) -> np.ndarray:
        """Return the numbers of the drawn cells; NaN for numbers left out and for blanks."""
        values = np.full((len(self.rows), len(self.columns)), np.nan)
        for i, row in enumerate(self.rows):
            for j, column in enumerate(self.columns):
                is_shown = row is not None and column is not None
                if is_shown and (row, column) not in self.grid.blanks:
                    values[i, j] = self.grid.values[row, column]
        return values

    def _pixels(
        self, values: np.ndarray
    ) -> tuple[UInt8[np.ndarray, "row column rgba"], np.ndarray]:
        """Return the colours of the cells, and the colour of the text on each."""
        has_colour = np.isfinite(values)
        finite = np.where(has_colour, values, 0.0)
        largest = float(np.abs(finite).max(initial=0.0))
        if self.grid.is_weights:
            table, level, opacity = (
                self.pen.theme.colours(self.palette),
                levels(finite, largest),
                255,
            )
            inks = text_colours(table)[level]
        else:
            table, level = self.pen.theme.diverging(), signed_levels(finite, largest)
            # These colours are so pale on the paper that numbers have the colour of all text.
            opacity, inks = round(PALE * 255), np.full(values.shape, self.pen.ink)
        inks = np.where(has_colour, inks, self.pen.ink)
        return np.dstack([table[level], np.where(has_colour, opacity, 0).astype(np.uint8)]), inks


def _shorten(n: int, most: int) -> Cut:
    n_last = 2 if most > 6 else 1
    return cut(n, most, most - 1 - n_last, n_last)


def _keep(rows: Cut, followed: int) -> Cut:
    """Put the followed row, which was left out, in the place of the last two rows before the gap."""
    gap = rows.index(None)
    shown_rows = [row for row in rows if row is not None]
    kept = sorted([*shown_rows[: gap - 2], followed, *shown_rows[gap:]])
    places: list[int | None] = [kept[0]]
    for row, next_row in pairwise(kept):
        if next_row > row + 1:
            places.append(None)
        places.append(next_row)
    return tuple(places)


def _select(names: list[str], places: Cut, gap: str) -> list[str]:
    if not names:
        return []
    return [gap if place is None else names[place] for place in places]


def _number(grid: GridView, row: int | None, column: int | None, digits: int) -> str:
    """Return the text of a cell; dots for a row or column left out, a line for a blank."""
    if row is None:
        return GAP_ROW
    if column is None:
        return GAP_COLUMN
    if (row, column) in grid.blanks:
        return BLANK
    value = float(grid.values[row, column])
    if digits > DIGITS or not np.isfinite(value) or value == round(value):
        return format_number(value, digits)
    if 0 < abs(value) < TINY:
        return NEARLY_ZERO
    # Vectors have many numbers, so they get one digit less unless the user chose the precision.
    text = f"{value:.{digits - 1 if grid.has_vectors and digits == DIGITS else digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def bold(text: str) -> dict[str, Any]:
    """Return the style of bold text; empty if the text needs another font than Matplotlib's, without bold letters."""
    families = (BASE,)
    if typefaces_for([text]).families != families:
        return {}
    return {"fontweight": "bold", "fontfamily": families}
