"""One head's pattern, large: tokens along both sides, numbers in the cells where they fit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from attnviz.render.figure.page import canvas, caption, caption_heights, colour_bar, write_caption
from attnviz.render.figure.pen import (
    BLACK,
    FRAME,
    LARGEST,
    LEAST_TEXT,
    MARGIN,
    PITCH,
    POINT,
    SMALL,
    TEXT,
    Pen,
    clipped,
    ordinal,
)
from attnviz.render.palette import colours, ink, levels
from attnviz.render.sheet import Sheet, pool

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_CELLS = 2000
"""Rows or columns that one pattern may have before it is pooled: about two pixels each."""


def draw_single(sheet: Sheet, palette: str, pen: Pen) -> None:
    """Draw one pattern on a figure of its own."""
    sheet = pool(sheet, MOST_CELLS, MOST_CELLS)
    queries, keys = clipped(sheet.query_labels), clipped(sheet.key_labels)
    n_rows, n_columns = len(queries), len(keys)
    longest = max(n_rows, n_columns)
    cell = min(0.5, max(PITCH, 6.0 / longest), LARGEST / longest)
    left = MARGIN + 0.3 + pen.widest(queries) + 0.08
    width = max(left + n_columns * cell + 0.7 + MARGIN, 4.5)
    rounded = ["numbers: weights, rounded to 2 decimals"] if _print_in(cell) else []
    lines = caption(sheet, pen, width - 2 * MARGIN, *rounded)
    head, foot = caption_heights(lines, pen)
    upright = pen.widest(keys) > cell - 0.06
    top = head + (pen.widest(keys) if upright else PITCH) + 0.36
    height = top + max(n_rows * cell, 0.8) + 0.12 + foot  # as high as the colour bar at least
    pen.figure.set_size_inches(width, height)
    bottom = 1 - (top + n_rows * cell) / height
    ax = pen.figure.add_axes((left / width, bottom, n_columns * cell / width, n_rows * cell / height))
    draw_pattern(ax, sheet, palette, pen, cell=cell, upright=upright)
    frame = canvas(pen, width, height)
    write_caption(frame, pen, lines, height)
    place = (left + n_columns * cell + 0.15, top, max(0.8, n_rows * cell * 0.6))
    colour_bar(frame, pen, sheet, palette, place)
    frame.set(xlim=(0, width), ylim=(height, 0))


def draw_pattern(
    ax: Axes, sheet: Sheet, palette: str, pen: Pen, *, cell: float | None = None, upright: bool = True
) -> None:
    """Draw one pattern on axes: rows are queries, columns are keys.

    Args:
        ax: where.
        sheet: with one panel.
        palette: its colours.
        pen: for the figure of these axes.
        cell: the side of a cell, in inches, on axes made for it; None on somebody's own axes, which then get a title
            that says what a figure's caption would, and the keys below, where such axes have room for them.
        upright: whether the keys' names stand upright.
    """
    (panel,) = sheet.panels
    table = colours(palette)
    level = levels(panel.matrix, panel.top)
    queries, keys = clipped(sheet.query_labels), clipped(sheet.key_labels)
    ax.imshow(table[level], aspect="equal" if cell is None else "auto", interpolation="none")
    if cell is None:
        box = ax.get_window_extent()
        cell = min(box.width / len(keys), box.height / len(queries)) / pen.figure.dpi
        rounded = ["numbers: weights, rounded to 2 decimals"] if _print_in(cell) else []
        what = (sheet.sentence, f"{sheet.model} · {panel.name}", sheet.proof, sheet.legend, *rounded, *sheet.notes)
        lines = [line for text in what for line in pen.wrap(text, box.width / pen.figure.dpi, SMALL)]
        ax.set_title("\n".join(lines), loc="left", **pen.style(SMALL))
    else:
        ax.xaxis.tick_top()
        ax.xaxis.set_label_position("top")
    step = max(1, math.ceil(PITCH * 0.9 / cell))
    ax.set_xticks(range(0, len(keys), step), keys[::step], rotation=90 if upright else 0, **pen.style())
    ax.set_yticks(range(0, len(queries), step), queries[::step], **pen.style())
    ax.tick_params(length=0, pad=3)
    thinned = f" (every {ordinal(step)} is named)" if step > 1 else ""
    ax.set_xlabel(f"key: looked at{thinned}", labelpad=4, **pen.style(color=pen.quiet))
    ax.set_ylabel(f"query: looking{thinned}", labelpad=4, **pen.style(color=pen.quiet))
    ax.spines[:].set(color=FRAME, linewidth=0.6)
    size = _print_in(cell)
    if not size:
        return
    white = ink(table)
    for row, column in np.ndindex(panel.matrix.shape):
        colour = "white" if white[level[row, column]] else BLACK
        weight = _short(float(panel.matrix[row, column]))
        ax.text(column, row, weight, ha="center", va="center", **pen.style(size, color=colour))


def _print_in(cell: float) -> float:
    """The size, in points, in which a number fits a cell; 0 where it would be too small to read."""
    size = min(TEXT + 1, cell / POINT * 0.36)
    return size if size >= LEAST_TEXT else 0.0


def _short(weight: float) -> str:
    """A weight with two decimals: ``.34``, ``1``; exactly nothing is ``0``, what rounds to nothing ``.00``."""
    if weight == 0:
        return "0"
    text = f"{weight:.2f}"
    return "1" if text == "1.00" else text.removeprefix("0")
