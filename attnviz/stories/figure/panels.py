"""The panels of a story: shaded cells, lines and bars, each drawn on axes that take the size it needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import UInt8

from attnviz.render.figure.page import legend_above
from attnviz.render.figure.pen import BLACK, FRAME, LEAST_TEXT, PITCH, POINT, SMALL, TEXT, Pen, upward
from attnviz.render.palette import COLOURS, MARKERS, colours, diverging, ink, levels
from attnviz.stories.record import Bars, Lines, Matrix, decimals

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STAGE = 10  # inches of the square figure on which each panel is drawn before it has a place
WIDTH, HEIGHT = 3.6, 3.0  # inches of the axes
LINES_OF_A_LABEL = 3  # a bar's label of more lines stands upright instead
UNSEEN = 1e-3  # a bar so short beside the longest cannot be seen
NAMED = 40  # rows or columns that are drawn large enough to be named each
LEVEL = 5.4  # inches across in which columns are made as wide as their names, so that these need not stand upright
SIDE = 3.6  # inches of a panel of more cells than can be named


def resize(ax: Axes, width: float, height: float) -> None:
    """Give axes on the stage their size in inches."""
    ax.set_position((0.2, 0.2, width / STAGE, height / STAGE))


def draw_matrix(ax: Axes, matrix: Matrix, palette: str, pen: Pen, room: float) -> float:
    """Draw the cells and name them."""
    width, height = _size(matrix, pen.widest(matrix.columns) + 0.12, room)
    resize(ax, width, height)
    n_rows, n_columns = matrix.values.shape
    masked = np.isnan(matrix.values)
    shown = table_of(matrix, palette)[_levels(matrix)]
    ax.set_facecolor("#f4f4f4")
    if masked.any():
        ax.patch.set(hatch="////", edgecolor="#c8c8c8", linewidth=0)
    image = np.dstack([shown, np.where(masked, 0, 255).astype(np.uint8)])
    ax.imshow(image, aspect="auto", interpolation="none", zorder=2)
    cell_width, cell_height = width / n_columns, height / n_rows
    upright = bool(matrix.columns) and pen.widest(matrix.columns) > cell_width - 0.06
    turned, apart = (90.0, PITCH) if upright else (0.0, 0.3)
    across = _cells(matrix.columns, n_columns, cell_width, apart)
    ax.set_xticks(*across, rotation=turned, **pen.style())
    ax.set_yticks(*_cells(matrix.rows, n_rows, cell_height, PITCH), **pen.style())
    ax.tick_params(length=0, pad=3)
    _name_axes(ax, pen, matrix.column_title, matrix.row_title)
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
    numbers = {place: decimals(value, digits) for place, value in given.items()}
    size = min(TEXT, 0.82 * width / (pen.widest(list(numbers.values()), TEXT) / TEXT or 1), 0.6 * height / POINT)
    if size < LEAST_TEXT:
        return
    white = ink(table_of(matrix, palette))[_levels(matrix)]
    for place, number in numbers.items():
        style = pen.style(size, color="white" if white[place] else BLACK)
        ax.text(place[1], place[0], number, ha="center", va="center", zorder=3, **style)


def table_of(matrix: Matrix, palette: str) -> UInt8[np.ndarray, "level rgb"]:
    """The colours of a matrix, from its lowest limit to its highest."""
    return diverging() if matrix.diverging else colours(palette)


def draw_lines(ax: Axes, lines: Lines, pen: Pen, room: float) -> float:
    """Draw the lines with their intervals."""
    width, height = WIDTH * room, HEIGHT * room
    resize(ax, width, height)
    few = len(lines.x) <= 24
    for index, one in enumerate(lines.series):
        colour = COLOURS[index % len(COLOURS)]
        covers = any(np.allclose(one.values, other.values, equal_nan=True) for other in lines.series[:index])
        if one.low:
            ax.fill_between(lines.x, one.low, one.high, color=colour, alpha=0.18, linewidth=0)
        ax.plot(
            lines.x, one.values, color=colour, linewidth=1.4, label=one.name, clip_on=False, zorder=3,
            linestyle=(0, (2, 3)) if covers else ("-", "--")[index // len(COLOURS) % 2],
            marker=MARKERS[index % len(MARKERS)] if few else "", markersize=3.5,
            markerfacecolor="none" if covers else colour, markeredgewidth=1.4 if covers else 1.0,
        )  # fmt: skip
    if lines.doubling:
        ax.set_xscale("log", base=2)
        ax.minorticks_off()
    if lines.y_doubling:
        ax.set_yscale("log", base=2)
        ax.yaxis.set_major_formatter("{x:g}")
        ax.minorticks_off()
    if lines.y_limits is not None:
        ax.set_ylim(*lines.y_limits)
    _ticks(ax, lines, width, pen)
    _finish_axes(ax, pen, lines.x_title, lines.y_title, height)
    return _legend(ax, pen, lines.y_title, width)


def draw_bars(ax: Axes, bars: Bars, pen: Pen, room: float) -> float:
    """Draw the bars, those of one label side by side."""
    n, n_series = len(bars.labels), len(bars.series)
    width, height = min(6.0, max(2.4, n * (0.2 + 0.3 * n_series))) * room, HEIGHT * room
    resize(ax, width, height)
    thick = 0.8 / n_series
    places = np.arange(n)
    given = [value for one in bars.series for value in one.values if not math.isnan(value)]
    longest = max(map(abs, given), default=0.0)
    fits = pen.widest([f"{value:.2f}" for value in given], SMALL) < thick * width / n - 0.03
    for index, one in enumerate(bars.series):
        errors = [np.subtract(one.values, one.low), np.subtract(one.high, one.values)] if one.low else None
        drawn = ax.bar(
            places + (index - (n_series - 1) / 2) * thick, one.values, thick * 0.94, label=one.name, zorder=2,
            color=COLOURS[index % len(COLOURS)], yerr=errors,
            error_kw={"elinewidth": 0.8, "capsize": 2, "ecolor": pen.ink},
        )  # fmt: skip
        if fits:
            ax.bar_label(drawn, fmt="%.2f", padding=2, **pen.style(SMALL, color=pen.quiet))
        elif pen.width("0", SMALL) < thick * width / n:
            nothing = ["0" if abs(value) <= UNSEEN * longest else "" for value in one.values]
            ax.bar_label(drawn, nothing, padding=2, **pen.style(SMALL, color=pen.quiet))
    ax.margins(x=0.02, y=0.12)
    ax.axhline(0, color=pen.quiet, linewidth=0.6, zorder=3)
    _name_bars(ax, bars.labels, width / n, pen)
    _finish_axes(ax, pen, "", bars.y_title, height)
    return _legend(ax, pen, bars.y_title, width)


def _size(matrix: Matrix, label: float, room: float) -> tuple[float, float]:
    """Width and height of the cells together, in inches: square where there are few, unless names want them wider."""
    n_rows, n_columns = matrix.values.shape
    longest = max(n_rows, n_columns)
    if longest <= NAMED:
        cell = min(0.5 * room, max(1.1 * PITCH, SIDE * room / longest))
        level = max(cell, label)
        return n_columns * (level if n_columns * level <= LEVEL * room else cell), n_rows * cell
    side = SIDE * room
    return side * (1.4 if n_columns > 2 * n_rows else 1), side * (1.4 if n_rows > 2 * n_columns else 1)


def _cells(labels: Sequence[str], n: int, cell: float, room: float) -> tuple[range, list[str]]:
    """Which cells along one side are named, or counted where they have no names; not each, where they are too close."""
    if labels:
        places = range(0, n, max(1, math.ceil(room / cell - 0.01)))
        return places, [labels[place] for place in places]
    steps = (step * 10**power for power in range(9) for step in (1, 2, 5))
    places = range(0, n, next(step for step in steps if step * cell >= room))
    return places, [f"{place}" for place in places]


def _levels(matrix: Matrix) -> UInt8[np.ndarray, "row column"]:
    low, high = matrix.limits
    return levels(np.nan_to_num(matrix.values, nan=low) - low, high - low)


def _name_bars(ax: Axes, labels: Sequence[str], room: float, pen: Pen) -> None:
    """Name the bars: in a few lines where the words have room, else upright; not each, where they stand too close."""
    if pen.widest([word for label in labels for word in label.split()]) <= room - 0.06:
        wrapped = [pen.wrap(label, room - 0.06) for label in labels]
        if max(map(len, wrapped)) <= LINES_OF_A_LABEL:
            ax.set_xticks(range(len(labels)), ["\n".join(lines) for lines in wrapped], **pen.style())
            return
    places = range(0, len(labels), math.ceil(PITCH / room))
    ax.set_xticks(places, [labels[place] for place in places], rotation=90, **pen.style())


def _ticks(ax: Axes, lines: Lines, width: float, pen: Pen) -> None:
    """Along the bottom the places themselves where they are few or double, else round numbers."""
    if not lines.doubling and len(lines.x) > 12:
        ax.locator_params(axis="x", integer=all(x.is_integer() for x in lines.x))
        return
    low, high = ax.get_xlim()
    room = pen.widest([f"{x:g}" for x in lines.x]) + 0.06
    along = np.log2 if lines.doubling else np.asarray
    inches = (along(np.array(lines.x)) - along(low)) / (along(high) - along(low)) * width
    kept, after = [], math.inf
    for x, at in zip(lines.x[::-1], inches[::-1], strict=True):
        if after - at >= room:
            kept.append(x)
            after = at
    ax.set_xticks(kept, [f"{x:g}" for x in kept])


def _name_axes(ax: Axes, pen: Pen, x_title: str, y_title: str) -> None:
    ax.set_xlabel(x_title, labelpad=4, **pen.style(color=pen.quiet))
    text, turned = upward(y_title)
    place: dict[str, Any] = {} if turned else {"ha": "right", "va": "center", "multialignment": "center"}
    ax.set_ylabel(text, labelpad=4, rotation=turned, **place, **pen.style(color=pen.quiet))


def _finish_axes(ax: Axes, pen: Pen, x_title: str, y_title: str, height: float) -> None:
    _name_axes(ax, pen, x_title, "\n".join(pen.wrap(y_title, height)))
    ax.tick_params(length=0, pad=4, labelsize=TEXT, labelcolor=pen.ink)
    ax.grid(axis="y", color="#e6e6e6", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.spines["bottom"].set(color=FRAME, linewidth=0.6)


def _legend(ax: Axes, pen: Pen, y_title: str, width: float) -> float:
    """The names of the series above the axes, and how high they stand; none where the axis says it already."""
    _, names = ax.get_legend_handles_labels()
    if len(names) == 1 and names[0] in {"", y_title}:
        return 0.0
    wrapped = ["\n".join(pen.wrap(name, width - 0.3)) for name in names]
    # A line of the sample, a space, the name, a space.
    return legend_above(ax, pen, wrapped, 1.4 + 0.8 + 1.5, handlelength=1.4, columnspacing=1.5)
