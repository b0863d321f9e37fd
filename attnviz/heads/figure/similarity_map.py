"""Heads as points on two axes, coloured by what they do, each with its name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float64

from attnviz.errors import RecordError
from attnviz.heads.figure.similarity import UNIT, height_of, say
from attnviz.heads.similarity import Map
from attnviz.render.figure.export import blank_sheet, usual_settings
from attnviz.render.figure.page import canvas
from attnviz.render.figure.pen import FRAME, LEGEND_GAP, MARGIN, POINT, SMALL, TEXT, TITLE, Pen
from attnviz.render.palette import COLOURS, MARKERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 7.0
"""Inches of the axes."""
HEIGHTS = (3.2, 6.4)
"""The least and the most: the map is as high as its points need, one scale on both axes."""
PLAIN = "#a0a0a0"
"""Of heads that have no colour."""
DOT = 5.0
"""The diameter of a point, in points."""
_GAP = 2.0
"""Points that a label keeps from a dot."""
_RINGS = 16
"""How far from its point, in rings, a place for a label is looked for."""


def scatter(
    shown: Map, names: Sequence[str], groups: Sequence[str], *, title: str, receipt: str, plain: str = ""
) -> Figure:
    """A figure of heads as points.

    Args:
        shown: where they are, and how much of their distances that keeps.
        names: of the heads, such as ``3.7``.
        groups: what each head does: a colour and a mark for each.
        title: what is shown: the model, on which text.
        receipt: how it is proved that the weights are the model's own.
        plain: the group that is drawn in grey, because it says nothing.
    """
    with usual_settings():
        pen = blank_sheet([title, receipt, *names, *groups])
        first, second = shown.shares
        kept = f"two axes keep {first + second:.0%} of the squared distances ({first:.0%} along, {second:.0%} up)"
        said = [
            receipt,
            f"heads as layer.head, counted from 0; those that look alike stand close ({UNIT}, classical scaling)",
            f"{kept}: how else heads differ is not seen here",
        ]
        across, up = np.ptp(shown.points, axis=0)
        low, high = HEIGHTS
        tall = min(high, max(low, WIDTH * up / across)) if across else low
        left = MARGIN + 0.5
        width = left + WIDTH + MARGIN
        pen.figure.set_size_inches(width, 10)
        ax = pen.figure.add_axes((left / width, 0.2, WIDTH / width, tall / 10))
        legend = draw_scatter(ax, shown.points, names, groups, pen, plain=plain)
        top = MARGIN + height_of(title, pen, width - 2 * MARGIN, TITLE) + legend + 0.1
        below = top + tall + 0.45
        height = below + sum(height_of(text, pen, width - 2 * MARGIN, TEXT) for text in said) + MARGIN
        paper = canvas(pen, width, height)
        ax.set_position((left / width, 1 - (top + tall) / height, WIDTH / width, tall / height))
        say(paper, pen, [title], MARGIN, TITLE)
        say(paper, pen, said, below, TEXT)
    return pen.figure


def draw_scatter(
    ax: Axes,
    points: Float64[np.ndarray, "head 2"],
    labels: Sequence[str],
    groups: Sequence[str],
    pen: Pen,
    *,
    plain: str = "",
) -> float:
    """Draw heads as points with their labels, one scale on both axes.

    The axes must have their size: labels are put where there is room on it.

    Args:
        ax: where.
        points: of the heads.
        labels: of the heads.
        groups: of the heads: a colour and a mark for each group, the largest group first.
        pen: for the figure of these axes.
        plain: the group drawn in grey, last.

    Returns:
        The height of the legend above the axes, in inches.

    Raises:
        RecordError: not as many labels or groups as points.
    """
    if not len(points) == len(labels) == len(groups):
        raise RecordError(f"{len(points)} points, {len(labels)} labels and {len(groups)} groups do not fit")
    named = sorted(dict.fromkeys(groups), key=lambda group: (group == plain, -groups.count(group)))
    for index, group in enumerate(named):
        here = points[[one == group for one in groups]]
        ax.scatter(
            here[:, 0],
            here[:, 1],
            s=DOT**2,
            marker=MARKERS[(index + index // len(MARKERS)) % len(MARKERS)],
            color=PLAIN if group == plain else COLOURS[index % len(COLOURS)],
            edgecolor="white",
            linewidth=0.4,
            label=group,
            zorder=3,
        )
    _limit(ax, points)
    _label(ax, points, labels, pen)
    ax.grid(color="#eeeeee", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(length=0, labelsize=SMALL, labelcolor=pen.quiet)
    ax.set_xlabel(f"first axis ({UNIT})", **pen.style(color=pen.quiet))
    ax.set_ylabel("second axis", **pen.style(color=pen.quiet))
    ax.spines[:].set(color=FRAME, linewidth=0.6)
    return _legend(ax, pen)


def _limit(ax: Axes, points: Float64[np.ndarray, "head 2"]) -> None:
    """All points well inside, an inch the same distance along as up, and the same steps marked on both axes."""
    from matplotlib.ticker import MaxNLocator

    box = ax.get_window_extent()
    size = np.array([box.width, box.height])
    low, high = points.min(0), points.max(0)
    reach = size * (float(np.max((high - low) / size)) * 1.14 or 1 / box.width) / 2
    start, end = (low + high) / 2 - reach, (low + high) / 2 + reach
    ax.set(xlim=(start[0], end[0]), ylim=(start[1], end[1]))
    marks = MaxNLocator(7).tick_values(start[0], end[0])
    step = float(marks[1] - marks[0])
    for axis, first, last in zip((ax.xaxis, ax.yaxis), start, end, strict=True):
        axis.set_ticks(np.arange(math.ceil(first / step), math.floor(last / step) + 1) * step)


def _label(ax: Axes, points: Float64[np.ndarray, "head 2"], labels: Sequence[str], pen: Pen) -> None:
    """Write the labels, with a thin line to the point where a label stands away from it."""
    scale = ax.figure.dpi * POINT
    size = SMALL if len(points) > 24 else TEXT
    dots = ax.transData.transform(points) / scale
    sizes = np.array([(pen.width(label, size) / POINT, size) for label in labels])
    frame = np.array(ax.get_window_extent().extents) / scale
    offsets, away = places(dots, sizes, frame)
    for label, point, offset in zip(labels, points, offsets, strict=True):
        ax.annotate(
            label,
            tuple(point),
            xytext=tuple(offset),
            textcoords="offset points",
            ha="center",
            va="center_baseline",
            zorder=4,
            **pen.style(size),
        )
    from_dots = ax.transData.inverted()
    for dot, offset, half in zip(dots[away], offsets[away], sizes[away] / 2, strict=True):
        # The line ends where it meets the label.
        end = dot + offset * (1 - np.min(half / np.maximum(np.abs(offset), 1e-9)))
        ax.plot(*from_dots.transform(np.array([dot, end]) * scale).T, color=pen.quiet, linewidth=0.4, zorder=2)


def places(
    dots: Float64[np.ndarray, "head 2"], sizes: Float64[np.ndarray, "head 2"], frame: Float64[np.ndarray, " 4"]
) -> tuple[Float64[np.ndarray, "head 2"], Bool[np.ndarray, " head"]]:
    """Where the middles of labels stand beside their dots, so that they cover neither one another nor a dot.

    The most crowded dot comes first. Places are tried on rings round the dot, from the nearest; the first that is free
    is taken, else the one that covers least.

    Args:
        dots: in points of print, as everything here.
        sizes: width and height of each label.
        frame: left, bottom, right, top of the axes: no label leaves it.

    Returns:
        The offset of each label from its dot, and whether it stands so far away that a line must lead there.
    """
    n = len(dots)
    apart = np.hypot(*(dots[:, None] - dots).transpose(2, 0, 1))
    crowded = (apart < 30).sum(1)
    taken = np.concatenate([dots - DOT / 2, dots + DOT / 2], axis=1)
    offsets, away = np.zeros((n, 2)), np.zeros(n, dtype=np.bool_)
    angles = np.deg2rad([0, 180, 90, 270, 45, 135, 225, 315, 22, 158, 202, 338, 68, 112, 248, 292])
    for head in np.argsort(-crowded, kind="stable"):
        width, height = sizes[head]
        rings = np.arange(_RINGS)[:, None]
        # On a ring the label's edge, not its middle, keeps its distance from the dot.
        across = (width / 2 + DOT / 2 + _GAP + rings * 6.0) * np.cos(angles)
        up = (height / 2 + DOT / 2 + _GAP / 2 + rings * 6.0) * np.sin(angles)
        tried = np.stack([across, up], axis=-1).reshape(-1, 2)
        middles = dots[head] + tried
        half = np.array([width + 1, height]) / 2
        boxes = np.concatenate([middles - half, middles + half], axis=1)
        inside = (boxes[:, :2] >= frame[:2] + 1).all(1) & (boxes[:, 2:] <= frame[2:] - 1).all(1)
        costs = _covered(boxes, taken) + np.where(inside, 0.0, 1e6)
        best = int(costs.argmin())
        offsets[head] = tried[best]
        away[head] = best >= len(angles)
        taken = np.concatenate([taken, boxes[best : best + 1]])
    return offsets, away


def _covered(boxes: Float64[np.ndarray, "box 4"], taken: Float64[np.ndarray, "there 4"]) -> Float64[np.ndarray, " box"]:
    """How much of what is taken each box would cover; a box is its left, bottom, right and top."""
    across = np.minimum(boxes[:, None, 2], taken[:, 2]) - np.maximum(boxes[:, None, 0], taken[:, 0])
    up = np.minimum(boxes[:, None, 3], taken[:, 3]) - np.maximum(boxes[:, None, 1], taken[:, 1])
    return np.asarray((across.clip(min=0) * up.clip(min=0)).sum(1))


def _legend(ax: Axes, pen: Pen) -> float:
    """The groups above the axes, and how high they stand, in inches."""
    from matplotlib.transforms import ScaledTranslation

    handles, names = ax.get_legend_handles_labels()
    width = ax.get_window_extent().width / pen.figure.dpi
    entry = pen.widest(names) + 3.0 * TEXT * POINT
    drawn = ax.legend(
        handles,
        names,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        bbox_transform=ax.transAxes + ScaledTranslation(0.0, LEGEND_GAP, pen.figure.dpi_scale_trans),
        ncols=max(1, min(len(names), int(width / entry))),
        frameon=False,
        fontsize=TEXT,
        borderpad=0,
        borderaxespad=0,
        handletextpad=0.2,
        columnspacing=1.2,
    )
    for text in drawn.get_texts():
        text.set(**pen.style())
    box = drawn.get_window_extent(pen.figure.canvas.get_renderer())  # type: ignore[attr-defined]
    return float(box.height / pen.figure.dpi) + LEGEND_GAP
