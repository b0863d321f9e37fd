"""A story's panel of shaded cells: labels that fit, numbers where they can be read, its colours beside it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import UInt8

from attnviz.render.figure.page import frame
from attnviz.render.figure.pen import BLACK, FRAME, GREY, LEAST_TEXT, PITCH, POINT, SMALL, TEXT, Pen
from attnviz.render.palette import colours, diverging, ink, levels
from attnviz.stories.record import Matrix, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMED = 40
"""Rows or columns that are drawn large enough to be named each."""
LEVEL = 5.4
"""Inches across in which columns are made as wide as their names, so that these need not stand upright."""
SIDE = 3.6
"""Inches of a panel of more cells than can be named."""


def draw_matrix(ax: Axes, matrix: Matrix, palette: str, pen: Pen, resize: Callable[[float, float], None]) -> float:
    """Draw the cells and name them.

    Args:
        ax: where.
        matrix: what.
        palette: one of `attnviz.render.palette.PALETTES`; a diverging matrix has its own.
        pen: for the figure of these axes.
        resize: gives the axes a width and a height, in inches.

    Returns:
        The height of what stands above the axes, in inches: nothing does.
    """
    width, height = _size(matrix, pen.widest(matrix.columns) + 0.12)
    resize(width, height)
    n_rows, n_columns = matrix.values.shape
    masked = np.isnan(matrix.values)
    shown = _table(matrix, palette)[_levels(matrix)]
    ax.set_facecolor("#f4f4f4")
    if masked.any():
        ax.patch.set(hatch="////", edgecolor="#c8c8c8", linewidth=0)
    ax.imshow(
        np.dstack([shown, np.where(masked, 0, 255).astype(np.uint8)]), aspect="auto", interpolation="none", zorder=2
    )
    cell_width, cell_height = width / n_columns, height / n_rows
    upright = bool(matrix.columns) and pen.widest(matrix.columns) > cell_width - 0.06
    turned, room = (90.0, PITCH) if upright else (0.0, 0.3)
    _name(ax.set_xticks, matrix.columns, n=n_columns, cell=cell_width, room=room, pen=pen, turned=turned)
    _name(ax.set_yticks, matrix.rows, n=n_rows, cell=cell_height, room=PITCH, pen=pen)
    ax.tick_params(length=0, pad=3)
    ax.set_xlabel(matrix.column_title, labelpad=4, **pen.style(color=pen.quiet))
    ax.set_ylabel(matrix.row_title, labelpad=4, **pen.style(color=pen.quiet))
    ax.spines[:].set(color=FRAME, linewidth=0.6)
    return 0.0


def print_numbers(ax: Axes, matrix: Matrix, palette: str, pen: Pen) -> None:
    """Print each cell's number in it, where all of them fit."""
    box = ax.get_window_extent()
    n_rows, n_columns = matrix.values.shape
    if max(n_rows, n_columns) > NAMED:
        return
    width, height = box.width / n_columns / pen.figure.dpi, box.height / n_rows / pen.figure.dpi
    given = {place: float(value) for place, value in np.ndenumerate(matrix.values) if not np.isnan(value)}
    digits = 0 if all(value.is_integer() for value in given.values()) else 2
    numbers = {place: _number(value, digits) for place, value in given.items()}
    size = min(TEXT, 0.82 * width / (pen.widest(list(numbers.values()), TEXT) / TEXT or 1), 0.6 * height / POINT)
    if size < LEAST_TEXT:
        return
    white = ink(_table(matrix, palette))[_levels(matrix)]
    for place, number in numbers.items():
        style = pen.style(size, color="white" if white[place] else BLACK)
        ax.text(place[1], place[0], number, ha="center", va="center", zorder=3, **style)


def same_colours(one: Panel, other: Panel) -> bool:
    """Whether one colour bar says what the colours of both mean."""
    return (
        isinstance(one, Matrix)
        and isinstance(other, Matrix)
        and (one.limits, one.diverging) == (other.limits, other.diverging)
    )


def colour_bar(ax: Axes, matrix: Matrix, palette: str, pen: Pen, place: tuple[float, float, float]) -> None:
    """The scale with its limits, upright, at (left, top, height)."""
    left, top, height = place
    extent = (left, left + 0.12, top + height, top)
    ax.imshow(_table(matrix, palette)[::-1, None], extent=extent, aspect="auto", zorder=2)
    frame(ax, left, top, 0.12, height)
    low, high = matrix.limits
    for fraction in (0.0, 0.5, 1.0):
        y = top + height * (1 - fraction)
        ax.plot([left + 0.12, left + 0.15], [y, y], color=GREY, linewidth=0.6)
        ax.text(left + 0.18, y, f"{low + fraction * (high - low):.3g}", va="center", **pen.style(SMALL, color=GREY))


def _size(matrix: Matrix, label: float) -> tuple[float, float]:
    """Width and height of the cells together, in inches: square where there are few, unless names want them wider.

    Args:
        matrix: what is drawn.
        label: the width of the widest column's name.
    """
    n_rows, n_columns = matrix.values.shape
    longest = max(n_rows, n_columns)
    if longest <= NAMED:
        cell = min(0.5, max(1.1 * PITCH, SIDE / longest))
        level = max(cell, label)
        return n_columns * (level if n_columns * level <= LEVEL else cell), n_rows * cell
    return SIDE * (1.4 if n_columns > 2 * n_rows else 1), SIDE * (1.4 if n_rows > 2 * n_columns else 1)


def _name(
    set_ticks: Callable[..., object],
    labels: Sequence[str],
    *,
    n: int,
    cell: float,
    room: float,
    pen: Pen,
    turned: float = 0.0,
) -> None:
    """Name the cells along one side, or count them where they have no names; not each, where they stand too close."""
    if labels:
        places = range(0, n, max(1, math.ceil(room / cell - 0.01)))
        set_ticks(places, [labels[place] for place in places], rotation=turned, **pen.style())
        return
    steps = (step * 10**power for power in range(9) for step in (1, 2, 5))
    places = range(0, n, next(step for step in steps if step * cell >= room))
    set_ticks(places, [f"{place}" for place in places], **pen.style())


def _table(matrix: Matrix, palette: str) -> UInt8[np.ndarray, "level rgb"]:
    return diverging() if matrix.diverging else colours(palette)


def _levels(matrix: Matrix) -> UInt8[np.ndarray, "row column"]:
    low, high = matrix.limits
    return levels(np.nan_to_num(matrix.values, nan=low) - low, high - low)


def _number(value: float, digits: int) -> str:
    """A number with so many decimals, without a minus before nothing."""
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if not text.strip("-0.") else text
