"""A matrix of a walkthrough: measured first, then drawn in colour, with its numbers and names.

Of long vectors the first and last numbers are drawn. Lengths are in inches, sizes of letters in points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import UInt8

from attnviz.render.figure.page import Page
from attnviz.render.figure.pen import BLACK, GREY, POINT, Pen, clipped
from attnviz.render.fonts import BASE, typefaces_for
from attnviz.render.palette import colours, diverging, ink, levels, signed_levels
from attnviz.walkthroughs.hand import format_number
from attnviz.walkthroughs.view import BLANK, DIGITS, Cut, GridView, cut

LETTERS = 8.0  # the size of numbers in cells, and of names beside them
ROW_HEIGHT, NARROW_CELL, THIN_CELL = 0.25, 0.28, 0.15  # thin where no number is printed
CELL_PAD, NAMES_GAP, EDGE_GAP = 0.06, 0.07, 0.06
TITLE_HEIGHT = 0.24
LONGEST_BAR = 0.7
MOST_NUMBERED = 12  # columns of keys whose numbers are printed
MOST_ROWS = 48  # rows that are drawn
MOST_COLUMNS = 8  # columns of a vector that are drawn
GAP_ROW, GAP_COLUMN = "⋮", "…"
STRONG = 0.72  # how far along the palette the colour of bars is


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetStyle:
    """The style that all parts of a sheet share."""

    pen: Pen
    palette: str
    precision: int  # digits after the point

    @property
    def strong(self) -> tuple[float, ...]:
        """The colour of bars."""
        table = colours(self.palette)
        return tuple(table[round(STRONG * (len(table) - 1))] / 255)


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixBox:
    """A matrix that has been measured."""

    grid: GridView
    style: SheetStyle
    rows: Cut  # the rows and columns that are drawn, None for those left out
    columns: Cut
    texts: tuple[tuple[str, ...], ...]  # the numbers printed; empty where there are too many
    row_names: tuple[str, ...]
    column_names: tuple[str, ...]
    row_height: float
    column_width: float
    bar: float  # the longest bar beside the numbers; 0 for none
    names_width: float  # of the names at the left
    names_height: float  # of the names below
    names_stand_upright: bool

    @property
    def cells_width(self) -> float:
        """The width without bars."""
        return len(self.columns) * self.column_width

    @property
    def width(self) -> float:
        """The width of cells and bars."""
        return self.cells_width + self.bar

    @property
    def height(self) -> float:
        """The height of the cells."""
        return len(self.rows) * self.row_height

    @property
    def title(self) -> str:
        """The symbol, with its shape where the matrix is drawn as it is used."""
        if self.grid.has_vectors:
            return f"{self.grid.name} {self.grid.values.shape}"
        return self.grid.name

    def draw(self, page: Page, left: float, top: float, followed: int | None = None) -> None:
        """Draw the cells from this corner on; `followed` is the drawn row that gets a frame."""
        values = self._drawn_values()
        pixels, is_dark = self._pixels(values)
        if self.bar:
            self._draw_bars(page, left + self.cells_width, top, values[:, 0], followed)
        else:
            page.image(pixels, (left, top, self.cells_width, self.height))
        for i, texts in enumerate(self.texts):
            for j, text in enumerate(texts):
                x = left + (j + 0.5) * self.column_width
                y = top + (i + 0.5) * self.row_height
                colour = "white" if is_dark[i, j] and not self.bar else "black"
                centred = {"ha": "center", "va": "center_baseline", "zorder": 4}
                page.text(x, y, text, LETTERS, color=colour, **centred)
        if followed is not None:
            y = top + followed * self.row_height
            frame = {"fill": False, "edgecolor": BLACK, "linewidth": 1.4, "zorder": 5}
            page.box((left, y, self.cells_width, self.row_height), **frame)
        rotation = 90.0 if self.names_stand_upright else 0.0
        for j, name in enumerate(self.column_names):
            x, y = left + (j + 0.5) * self.column_width, top + self.height + 0.04
            page.text(x, y, name, LETTERS, ha="center", va="top", rotation=rotation)

    def write_title(self, page: Page, left: float, top: float) -> None:
        """Write the title above the cells."""
        page.text(left, top - 0.05, self.title, LETTERS, va="bottom", color=GREY)

    def write_title_beside(self, page: Page, left: float, middle: float) -> None:
        """Write the title at the left of the cells."""
        look = {"ha": "right", "va": "center_baseline", "color": GREY}
        page.text(left - NAMES_GAP, middle, self.title, LETTERS, **look)

    def write_names(
        self, page: Page, right: float, top: float, followed: int | None = None
    ) -> None:
        """Write the names of the rows at their left, smaller where rows are low."""
        size = min(LETTERS, self.row_height / POINT / 1.2)
        for i, name in enumerate(self.row_names):
            look = bold(name) if i == followed else {}
            y = top + (i + 0.5) * self.row_height
            page.text(right, y, name, size, ha="right", va="center_baseline", **look)

    def _draw_bars(
        self, page: Page, left: float, top: float, weights: np.ndarray, followed: int | None
    ) -> None:
        weights = np.nan_to_num(weights)
        largest = max(weights.max(initial=0.0), np.finfo(float).tiny)
        for i, share in enumerate(weights / largest):
            y, height = top + (i + 0.2) * self.row_height, 0.6 * self.row_height
            alpha = 1.0 if followed in {None, i} else 0.6
            look = {"facecolor": self.style.strong, "edgecolor": "none", "zorder": 3}
            page.box((left, y, float(share) * self.bar, height), alpha=alpha, **look)

    def _drawn_values(self) -> np.ndarray:
        """Return the numbers that are drawn, NaN where they are left out or blank."""
        values = np.full((len(self.rows), len(self.columns)), np.nan)
        for i, row in enumerate(self.rows):
            for j, column in enumerate(self.columns):
                is_left_out = row is None or column is None
                if not is_left_out and (row, column) not in self.grid.blanks:
                    values[i, j] = self.grid.values[row, column]
        return values

    def _pixels(
        self, values: np.ndarray
    ) -> tuple[UInt8[np.ndarray, "row column rgba"], np.ndarray]:
        """Return the colours of the cells, and where white letters are easier to read."""
        has_colour = np.isfinite(values)
        finite = np.where(has_colour, values, 0.0)
        largest = float(np.abs(finite).max(initial=0.0))
        if self.grid.is_weights:
            table, level = colours(self.style.palette), levels(finite, largest)
        else:
            table, level = diverging(), signed_levels(finite, largest)
        opacity = np.where(has_colour, 255, 0).astype(np.uint8)
        return np.dstack([table[level], opacity]), ink(table)[level] & has_colour


def measure_matrix(
    grid: GridView,
    style: SheetStyle,
    *,
    rows: Cut | None = None,
    most_rows: int = MOST_ROWS,
    most_columns: int = MOST_COLUMNS,
    has_bars: bool = False,
) -> MatrixBox:
    """Measure a matrix, of which these rows are drawn, or so many."""
    n_rows, n_columns = grid.values.shape
    if rows is None:
        rows = _shorten(n_rows, most_rows)
    most = most_columns if grid.has_vectors else max(most_rows, MOST_NUMBERED)
    columns = _shorten(n_columns, most)
    is_numbered = grid.has_vectors or len(columns) <= MOST_NUMBERED
    texts = tuple(
        tuple(_number(grid, row, column, style.precision) for column in columns) for row in rows
    )
    widest = style.pen.widest([text for line in texts for text in line], LETTERS)
    column_width = max(NARROW_CELL, widest + CELL_PAD)
    names = clipped(grid.columns)
    widest_name = style.pen.widest(names, LETTERS)
    upright = bool(names) and (not is_numbered or widest_name + CELL_PAD / 2 > column_width)
    names_height = 0.0
    if names:
        names_height = (widest_name if upright else 1.25 * LETTERS * POINT) + 0.06
    row_names = _select(clipped(grid.rows), rows, GAP_ROW)
    names_width = 1.1 * style.pen.widest(row_names, LETTERS) + NAMES_GAP if row_names else 0.0
    return MatrixBox(
        grid=grid,
        style=style,
        rows=rows,
        columns=columns,
        texts=texts if is_numbered else (),
        row_names=row_names,
        column_names=_select(names, columns, GAP_COLUMN),
        row_height=ROW_HEIGHT if is_numbered else THIN_CELL,
        column_width=column_width if is_numbered else THIN_CELL,
        bar=LONGEST_BAR if has_bars else 0.0,
        names_width=names_width,
        names_height=names_height,
        names_stand_upright=upright,
    )


def _shorten(n: int, most: int) -> Cut:
    n_last = 2 if most > 6 else 1
    return cut(n, most, most - 1 - n_last, n_last)


def _select(names: list[str], places: Cut, gap: str) -> tuple[str, ...]:
    return tuple(gap if place is None else names[place] for place in places) if names else ()


def _number(grid: GridView, row: int | None, column: int | None, precision: int) -> str:
    if row is None:
        return GAP_ROW
    if column is None:
        return GAP_COLUMN
    if (row, column) in grid.blanks:
        return BLANK
    value = float(grid.values[row, column])
    if precision > DIGITS or not np.isfinite(value) or value == round(value):
        return format_number(value, precision)
    # Vectors have many numbers: usually one digit less.
    digits = precision - 1 if grid.has_vectors and precision == DIGITS else precision
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def bold(text: str) -> dict[str, Any]:
    """Return the style of bold text; only Matplotlib's own font has bold letters."""
    own = (BASE,)
    if typefaces_for([text]).families != own:
        return {}
    return {"fontweight": "bold", "fontfamily": own}
