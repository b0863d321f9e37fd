"""A story's panels of lines and of bars."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from attnviz.render.figure.pen import FRAME, LEGEND_GAP, PITCH, POINT, SMALL, TEXT, Pen
from attnviz.render.palette import COLOURS, MARKERS
from attnviz.stories.record import Bars, Lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, HEIGHT = 3.6, 3.0
"""Inches of the axes."""
LINES_OF_A_LABEL = 3
"""A bar's label of more lines stands upright instead."""
UNSEEN = 1e-3
"""A bar so short beside the longest cannot be seen."""


def draw_lines(ax: Axes, lines: Lines, pen: Pen, resize: Callable[[float, float], None]) -> float:
    """Draw the lines with their intervals.

    Args:
        ax: where.
        lines: what.
        pen: for the figure of these axes.
        resize: gives the axes a width and a height, in inches.

    Returns:
        The height of what stands above the axes, in inches.
    """
    resize(WIDTH, HEIGHT)
    few = len(lines.x) <= 24
    for index, one in enumerate(lines.series):
        colour = COLOURS[index % len(COLOURS)]
        covers = any(np.allclose(one.values, other.values, equal_nan=True) for other in lines.series[:index])
        if one.low:
            ax.fill_between(lines.x, one.low, one.high, color=colour, alpha=0.18, linewidth=0)
        ax.plot(
            lines.x,
            one.values,
            color=colour,
            linewidth=1.4,
            marker=MARKERS[index % len(MARKERS)] if few else "",
            markersize=3.5,
            linestyle=(0, (2, 3)) if covers else ("-", "--")[index // len(COLOURS) % 2],
            markerfacecolor="none" if covers else colour,
            markeredgewidth=1.4 if covers else 1.0,
            label=one.name,
            clip_on=False,
            zorder=3,
        )
    if lines.doubling:
        ax.set_xscale("log", base=2)
        ax.minorticks_off()
    if lines.y_doubling:
        ax.set_yscale("log", base=2)
        ax.yaxis.set_major_formatter("{x:g}")
        ax.minorticks_off()
    if lines.y_limits is not None:
        ax.set_ylim(*lines.y_limits)
    _ticks(ax, lines, pen)
    _finish(ax, pen, lines.x_title, lines.y_title)
    return _legend(ax, pen, lines.y_title, WIDTH)


def draw_bars(ax: Axes, bars: Bars, pen: Pen, resize: Callable[[float, float], None]) -> float:
    """Draw the bars, those of one label side by side.

    Args:
        ax: where.
        bars: what.
        pen: for the figure of these axes.
        resize: gives the axes a width and a height, in inches.

    Returns:
        The height of what stands above the axes, in inches.
    """
    n, n_series = len(bars.labels), len(bars.series)
    width = min(6.0, max(2.4, n * (0.2 + 0.3 * n_series)))
    resize(width, HEIGHT)
    thick = 0.8 / n_series
    places = np.arange(n)
    numbers = [f"{value:.2f}" for one in bars.series for value in one.values if not math.isnan(value)]
    longest = max((abs(value) for one in bars.series for value in one.values if not math.isnan(value)), default=0.0)
    fits = pen.widest(numbers, SMALL) < thick * width / n - 0.03
    for index, one in enumerate(bars.series):
        errors = [np.subtract(one.values, one.low), np.subtract(one.high, one.values)] if one.low else None
        drawn = ax.bar(
            places + (index - (n_series - 1) / 2) * thick,
            one.values,
            thick * 0.94,
            color=COLOURS[index % len(COLOURS)],
            yerr=errors,
            error_kw={"elinewidth": 0.8, "capsize": 2, "ecolor": pen.ink},
            label=one.name,
            zorder=2,
        )
        if fits:
            ax.bar_label(drawn, fmt="%.2f", padding=2, **pen.style(SMALL, color=pen.quiet))
        elif pen.width("0", SMALL) < thick * width / n:
            nothing = ["0" if abs(value) <= UNSEEN * longest else "" for value in one.values]
            ax.bar_label(drawn, nothing, padding=2, **pen.style(SMALL, color=pen.quiet))
    ax.margins(x=0.02, y=0.12)
    ax.axhline(0, color=pen.quiet, linewidth=0.6, zorder=3)
    _name(ax, bars.labels, width / n, pen)
    _finish(ax, pen, "", bars.y_title)
    return _legend(ax, pen, bars.y_title, width)


def _name(ax: Axes, labels: Sequence[str], room: float, pen: Pen) -> None:
    """Name the bars: in a few lines where the words have room, else upright; not each, where they stand too close."""
    if pen.widest([word for label in labels for word in label.split()]) <= room - 0.06:
        wrapped = [pen.wrap(label, room - 0.06) for label in labels]
        if max(map(len, wrapped)) <= LINES_OF_A_LABEL:
            ax.set_xticks(range(len(labels)), ["\n".join(lines) for lines in wrapped], **pen.style())
            return
    places = range(0, len(labels), math.ceil(PITCH / room))
    ax.set_xticks(places, [labels[place] for place in places], rotation=90, **pen.style())


def _ticks(ax: Axes, lines: Lines, pen: Pen) -> None:
    """Along the bottom the places themselves where they are few or double, else round numbers."""
    if not lines.doubling and len(lines.x) > 12:
        return
    low, high = ax.get_xlim()
    room = pen.widest([f"{x:g}" for x in lines.x]) + 0.06
    along = np.log2 if lines.doubling else np.asarray
    inches = (along(np.array(lines.x)) - along(low)) / (along(high) - along(low)) * WIDTH
    kept: list[int] = []
    for index in range(len(lines.x) - 1, -1, -1):
        if not kept or inches[kept[-1]] - inches[index] >= room:
            kept.append(index)
    ax.set_xticks([lines.x[index] for index in kept], [f"{lines.x[index]:g}" for index in kept])


def _finish(ax: Axes, pen: Pen, x_title: str, y_title: str) -> None:
    """The axes' names, a quiet grid, no box."""
    ax.set_xlabel(x_title, labelpad=4, **pen.style(color=pen.quiet))
    ax.set_ylabel("\n".join(pen.wrap(y_title, HEIGHT)), labelpad=4, **pen.style(color=pen.quiet))
    ax.tick_params(length=0, pad=4, labelsize=TEXT, labelcolor=pen.ink)
    ax.grid(axis="y", color="#e6e6e6", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.spines["bottom"].set(color=FRAME, linewidth=0.6)


def _legend(ax: Axes, pen: Pen, y_title: str, width: float) -> float:
    """The names of the series above the axes, and how high they stand; none where the axis says it already."""
    from matplotlib.transforms import ScaledTranslation

    handles, names = ax.get_legend_handles_labels()
    if len(names) == 1 and names[0] in {"", y_title}:
        return 0.0
    # A line of the sample, a space, the name, a space; lengths in a legend are in sizes of its letters.
    entry = pen.widest(names) + (1.4 + 0.8 + 1.5) * TEXT * POINT
    drawn = ax.legend(
        handles,
        ["\n".join(pen.wrap(name, width - 0.3)) for name in names],
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        bbox_transform=ax.transAxes + ScaledTranslation(0.0, LEGEND_GAP, pen.figure.dpi_scale_trans),
        ncols=min(len(names), max(1, int(width / entry))),
        frameon=False,
        fontsize=TEXT,
        borderpad=0,
        borderaxespad=0,
        handlelength=1.4,
        columnspacing=1.5,
    )
    for text in drawn.get_texts():
        text.set(**pen.style())
    box = drawn.get_window_extent(pen.figure.canvas.get_renderer())  # type: ignore[attr-defined]
    return float(box.height / pen.figure.dpi) + LEGEND_GAP
