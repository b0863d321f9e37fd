"""How alike heads are: all pairs as shaded cells in the order of their tree, beside it; or as points on two axes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float64, Int64

from attnviz.errors import SelectionError
from attnviz.heads.figure.grid import swatch
from attnviz.heads.record import NO_ROLE, HeadComparison, HeadProfile, HeadSimilarity
from attnviz.heads.similarity import leaves
from attnviz.heads.wording import description, proof, sample, say
from attnviz.render.figure.export import Picture, blank_figure, usual_settings
from attnviz.render.figure.page import Page, height_of, legend_above, lines, page_of, scale_marks
from attnviz.render.figure.pen import (
    FRAME,
    GREY,
    LEAST_TEXT,
    MARGIN,
    PITCH,
    POINT,
    SMALL,
    TEXT,
    TITLE,
    Pen,
    ordinal,
)
from attnviz.render.palette import MARKERS, colours, levels, readable
from attnviz.text.display import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FARTHEST = math.sqrt(math.log(2))  # the distance of two heads that never look at the same token
CELL = 0.24  # inches of the largest cell
SIDES = (2.4, 8.0, 11.3)
"""Inches of the matrix: the least; the usual; the most, for heads whose labels have no room on
less: up to 144."""
TREE, STRIP = (
    1.0,
    0.12,
)  # inches that the tree takes beside the matrix, and the colours of the roles
BAR = 0.62  # inches of the upright scale, with its numbers and its unit
WIDTH, HEIGHTS = (
    7.0,
    (3.2, 6.4),
)  # inches of the axes: across; the least and the most in height, one scale on both axes
PLAIN = {
    "facecolor": "#a0a0a0",
    "edgecolor": "white",
    "linewidth": 0.4,
}  # the look of heads with no clear role
AROUND = 0.45  # inches at the left of the axes and below them
DOT = 5.0  # the diameter of a point, in points
_GAP = 2.0  # points that a label keeps from a dot
_RINGS = 6  # how far from its point, in rings, a place for a label is looked for
Points = Float64[np.ndarray, "head 2"]


def draw_clusters(comparison: HeadComparison, language: str = "en") -> Picture:
    """All pairs of heads, dark where alike, with trees above and at the left. Raises SelectionError: not compared."""
    similarity = expect_similarity(comparison)
    names = [head.name for head in comparison.heads]
    n = len(names)
    least, usual, most = SIDES
    side = max(least, min(n * CELL, max(usual, min(most, n * PITCH * LEAST_TEXT / TEXT))))
    size, step = _thin(side / n)
    title = say("clusters_title", language, model=visible(comparison.model))
    about = [
        visible(text) for text in (description(comparison, language), sample(comparison, language))
    ]
    largest = float(np.sqrt(similarity.divergences.max()))
    named = say("each_named", language, n=step, nth=ordinal(step)) if step > 1 else ""
    how = [
        proof(comparison, language),
        say("pairs_axes", language, names=named),
        say("pairs_colour", language, largest=f"{largest:.2g}", farthest=f"{FARTHEST:.2f}"),
    ]
    with usual_settings():
        pen = blank_figure([title, *about, say("distance", language), *how])
        reach = pen.widest(names, size) + 0.06
        left = MARGIN + TREE + STRIP + 0.04
        bar = left + side + reach + 0.22
        width = bar + BAR + MARGIN
        larger = min(1.4, max(1.0, width / 10))
        room = width - 2 * MARGIN
        above = lines(pen, [title], room, TITLE * larger, leading=1.5)
        above += lines(pen, about, room, TEXT * larger, colour=GREY)
        top = MARGIN + height_of(above) + TREE + 0.1
        end = top + side + reach + 0.15
        below = lines(pen, how, room, TEXT * larger)
        page = page_of(pen, width, end + height_of(below) + MARGIN)
        page.write(above, MARGIN)
        _draw_pairs(page, comparison, similarity, (left, top, side))
        page.colour_bar(colours()[::-1], (bar, top, 2.4), scale_marks(0.0, largest or FARTHEST))
        page.text(
            bar + BAR,
            top + 1.2,
            say("distance", language),
            SMALL,
            rotation=90,
            ha="right",
            va="center",
            color=GREY,
        )
        page.write(below, end)
    return Picture(pen, title, proof(comparison))


def expect_similarity(comparison: HeadComparison) -> HeadSimilarity:
    """How alike its heads are. Raises SelectionError: they were not compared, or there is one only."""
    if comparison.similarity is None:
        raise SelectionError(
            "the heads were not compared with one another: there are no clusters to draw"
        )
    if len(comparison.heads) < 2:
        raise SelectionError("a picture of clusters needs two heads or more")
    return comparison.similarity


def branches(similarity: HeadSimilarity) -> tuple[list[np.ndarray], Int64[np.ndarray, " head"]]:
    """The tree as lines of four points (distance, place), a line a merge, and the heads in the order of their places.

    A head stands at the middle of its cell: 0.5, 1.5 and on; a merge between the two that it joins.
    """
    order = leaves(similarity.linkage)
    n = len(order)
    place = np.empty(2 * n - 1)
    place[order] = np.arange(n) + 0.5
    height = np.zeros(2 * n - 1)
    forks = []
    for merge, (one, other, far, _) in enumerate(similarity.linkage):
        a, b = int(one), int(other)
        forks.append(
            np.array(
                [[height[a], place[a]], [far, place[a]], [far, place[b]], [height[b], place[b]]]
            )
        )
        place[n + merge] = (place[a] + place[b]) / 2
        height[n + merge] = far
    return forks, order


def _thin(cell: float) -> tuple[float, int]:
    """The size of the names beside cells of this side, in points, and every how many heads one is named."""
    size = max(LEAST_TEXT, min(TEXT, TEXT * cell / PITCH))
    return size, max(1, math.ceil(0.96 * PITCH * size / TEXT / cell))


def _draw_pairs(
    page: Page,
    comparison: HeadComparison,
    similarity: HeadSimilarity,
    place: tuple[float, float, float],
) -> None:
    """Draw the matrix at (left, top, side) in the tree's order, with the tree, the roles and the names on two sides."""
    left, top, side = place
    forks, order = branches(similarity)
    heads = [comparison.heads[head] for head in order]
    distances = np.sqrt(similarity.divergences[np.ix_(order, order)])
    largest = float(distances.max()) or FARTHEST
    # Dark is alike: the palette's pale end stands for the largest distance.
    page.image(colours()[levels(largest - distances, largest)], (left, top, side, side))
    n = len(heads)
    size, step = _thin(side / n)
    for row in range(0, n, step):
        page.text(
            left + side + 0.05, top + (row + 0.5) * (side / n), heads[row].name, size, va="center"
        )
    _draw_tree(page, forks, (left - STRIP - 0.04, top, side))
    for row, head in enumerate(heads):
        swatch(page, head.role, (left - STRIP - 0.04, top + row * side / n, STRIP, side / n))
    for column in range(0, n, step):
        middle = left + (column + 0.5) * side / n
        page.text(
            middle, top + side + 0.05, heads[column].name, size, rotation=90, ha="center", va="top"
        )
    _draw_tree(page, forks, (left, top, side), upright=True)


def _draw_tree(
    page: Page,
    forks: Sequence[np.ndarray],
    place: tuple[float, float, float],
    *,
    upright: bool = False,
) -> None:
    from matplotlib.collections import LineCollection

    left, top, side = place
    farthest = max(*(float(fork[1, 0]) for fork in forks), 1e-12)
    along = [(left if upright else top) + fork[:, 1] * side / (len(forks) + 1) for fork in forks]
    away = [
        (top if upright else left) - 0.03 - (TREE - 0.1) * fork[:, 0] / farthest for fork in forks
    ]
    points = [
        np.stack((a, b) if upright else (b, a), axis=1) for a, b in zip(along, away, strict=True)
    ]
    page.ax.add_collection(LineCollection(points, colors=GREY, linewidths=0.7))


def draw_points(comparison: HeadComparison, language: str = "en") -> Picture:
    """A page of the heads as points, in the colours of their roles. Raises SelectionError: they were not compared."""
    similarity = expect_similarity(comparison)
    title = say("scatter_title", language, model=visible(comparison.model))
    about = [
        visible(text) for text in (description(comparison, language), sample(comparison, language))
    ]
    groups = [_group(head, language) for head in comparison.heads]
    notes = [proof(comparison, language), say("kept", language, share=100 * similarity.kept)]
    with usual_settings():
        pen = blank_figure([title, *about, *groups, *notes, *_axes(language)])
        above = [
            *lines(pen, [title], WIDTH, TITLE * 1.2, leading=1.4),
            *lines(pen, about, WIDTH, colour=GREY),
        ]
        across, up = np.ptp(similarity.points, axis=0)
        height = min(HEIGHTS[1], max(HEIGHTS[0], WIDTH * up / across)) if across else HEIGHTS[0]
        pen.figure.set_size_inches(10, 10)
        ax = pen.figure.add_axes((0.1, 0.1, WIDTH / 10, height / 10))
        looks = {group: _look(head) for head, group in zip(comparison.heads, groups, strict=True)}
        none = say("no_role", language)
        legend, unnamed = draw_scatter(
            ax,
            similarity.points,
            [head.name for head in comparison.heads],
            groups,
            pen,
            looks=looks,
            last=none,
            axes=_axes(language),
        )
        if unnamed:
            notes.append(say("unnamed", language, n=unnamed))
        noted = lines(pen, [*notes, say("not_explanation", language)], WIDTH)
        top = MARGIN + height_of(above) + 0.2 + legend
        page = page_of(
            pen, AROUND + WIDTH + 2 * MARGIN, top + height + AROUND + height_of(noted) + MARGIN
        )
        page.write(above, MARGIN)
        page.move(ax, (MARGIN + AROUND, top, WIDTH, height))
        page.write(noted, top + height + AROUND)
    return Picture(pen, title, proof(comparison))


def _axes(language: str) -> tuple[str, str]:
    return say("axis_one", language, unit=say("distance", language)), say("axis_two", language)


def _group(head: HeadProfile, language: str) -> str:
    role = head.role
    if role is None:
        return say("no_role", language)
    return (
        role.rule.short
        if role.established
        else say("doubtful_group", language, role=role.rule.short)
    )


def _look(head: HeadProfile) -> dict[str, Any]:
    if head.role is None:
        return PLAIN
    colour = head.role.rule.colour
    if head.role.established:
        return {"facecolor": colour, "edgecolor": "white", "linewidth": 0.4}
    return {"facecolor": "white", "edgecolor": readable(colour, dark=False), "linewidth": 0.8}


def draw_scatter(
    ax: Axes,
    points: Points,
    labels: Sequence[str],
    groups: Sequence[str],
    pen: Pen,
    *,
    looks: Mapping[str, Mapping[str, Any]],
    last: str = NO_ROLE,
    axes: tuple[str, str] = ("", ""),
) -> tuple[float, int]:
    """Draw heads as points with their labels, one scale on both axes: a look for each group, that of no role last.

    The axes must have their size: labels are put where there is room on it. Gives the height of the legend above
    the axes, in inches, and how many labels had no room.
    """
    named = sorted(dict.fromkeys(groups), key=lambda group: (group == last, -groups.count(group)))
    for index, group in enumerate(named):
        here = points[[one == group for one in groups]]
        marker = MARKERS[(index + index // len(MARKERS)) % len(MARKERS)]
        ax.scatter(
            here[:, 0], here[:, 1], s=DOT**2, marker=marker, label=group, zorder=3, **looks[group]
        )
    _limit(ax, points)
    unnamed = _label(ax, points, labels, pen)
    ax.grid(color="#eeeeee", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(length=0, labelsize=SMALL, labelcolor=pen.quiet)
    ax.set_xlabel(axes[0], **pen.style(color=pen.quiet))
    ax.set_ylabel(axes[1], **pen.style(color=pen.quiet))
    ax.spines[:].set(color=FRAME, linewidth=0.6)
    return legend_above(ax, pen, named, 3.0, handletextpad=0.2, columnspacing=1.2), unnamed


def _limit(ax: Axes, points: Points) -> None:
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


def _label(ax: Axes, points: Points, labels: Sequence[str], pen: Pen) -> int:
    """Write the labels that have room, with a thin line to the point of one that stands away; how many have none."""
    scale = ax.figure.dpi * POINT
    size = SMALL if len(points) > 24 else TEXT
    dots = ax.transData.transform(points) / scale
    sizes = np.array([(pen.width(label, size) / POINT, size) for label in labels])
    frame = np.array(ax.get_window_extent().extents) / scale
    offsets, away, free = places(dots, sizes, frame)
    from_dots = ax.transData.inverted()
    for head, label in enumerate(labels):
        if not (label and free[head]):
            continue
        ax.annotate(
            label,
            tuple(points[head]),
            xytext=tuple(offsets[head]),
            textcoords="offset points",
            ha="center",
            va="center_baseline",
            zorder=4,
            **pen.style(size),
        )
        if away[head]:  # a line leads to the label, and ends where it meets it
            part = np.min(sizes[head] / 2 / np.maximum(np.abs(offsets[head]), 1e-9))
            end = dots[head] + offsets[head] * (1 - part)
            ends = from_dots.transform(np.array([dots[head], end]) * scale).T
            ax.plot(*ends, color=pen.quiet, linewidth=0.4, zorder=2)
    return sum(bool(label) and not there for label, there in zip(labels, free, strict=True))


def places(
    dots: Points, sizes: Points, frame: Float64[np.ndarray, " 4"]
) -> tuple[Points, Bool[np.ndarray, " head"], Bool[np.ndarray, " head"]]:
    """Where the middles of labels stand beside their dots, so that they cover neither one another nor a dot.

    The most crowded dot comes last. Places are tried on rings round the dot, from the nearest; the first that is
    free is taken. All is in points of print; no label leaves the frame (left, bottom, right, top). Gives the offset
    of each label from its dot, whether it stands so far away that a line must lead there, and whether there is a
    place for it.
    """
    n = len(dots)
    apart = np.hypot(*(dots[:, None] - dots).transpose(2, 0, 1))
    crowded = (apart < 30).sum(1)
    taken = np.concatenate([dots - DOT / 2, dots + DOT / 2], axis=1)
    offsets, away, free = np.zeros((n, 2)), np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)
    angles = np.deg2rad([0, 180, 90, 270, 45, 135, 225, 315, 22, 158, 202, 338, 68, 112, 248, 292])
    for head in np.argsort(crowded, kind="stable"):
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
        costs = _overlaps(boxes, taken) + np.where(inside, 0.0, 1e6)
        best = int(costs.argmin())
        offsets[head] = tried[best]
        free[head] = costs[best] <= 0
        if free[head]:
            away[head] = best >= len(angles)
            taken = np.concatenate([taken, boxes[best : best + 1]])
    return offsets, away, free


def _overlaps(
    boxes: Float64[np.ndarray, "box 4"], taken: Float64[np.ndarray, "there 4"]
) -> Float64[np.ndarray, " box"]:
    """How much of what is taken each box would cover; a box is its left, bottom, right and top."""
    across = np.minimum(boxes[:, None, 2], taken[:, 2]) - np.maximum(boxes[:, None, 0], taken[:, 0])
    up = np.minimum(boxes[:, None, 3], taken[:, 3]) - np.maximum(boxes[:, None, 1], taken[:, 1])
    return np.asarray((across.clip(min=0) * up.clip(min=0)).sum(1))
