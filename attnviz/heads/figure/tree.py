"""All pairs of heads as shaded cells in the order of their tree, which is drawn beside them; without scipy."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from attnviz.heads.figure.grid import swatch
from attnviz.heads.record import HeadComparison, HeadSimilarity
from attnviz.heads.similarity import leaves
from attnviz.render.figure.page import frame
from attnviz.render.figure.pen import GREY, LEAST_TEXT, PITCH, SMALL, TEXT, Pen
from attnviz.render.palette import colours, levels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIDES = (1.6, 6.0)
"""Inches of the matrix: the least, the most."""
CELL = 0.24
"""Inches of the largest cell."""
TREE, STRIP = 1.0, 0.12
"""Inches that the tree takes beside the matrix, and the colours of the roles."""
BELOW = 0.4
"""Inches that the scale takes below the matrix."""
NAMES = 0.32
"""Inches of the heads' names beside the matrix."""


def side_of(n_heads: int) -> float:
    """The side of the matrix, in inches."""
    least, most = SIDES
    return max(least, min(most, n_heads * CELL))


def tree_size(n_heads: int) -> tuple[float, float]:
    """Width and height of tree, matrix, names and scale, in inches."""
    side = side_of(n_heads)
    return TREE + STRIP + 0.04 + side + NAMES, side + BELOW


def branches(similarity: HeadSimilarity) -> tuple[list[np.ndarray], np.ndarray]:
    """The tree as lines of four points (distance, place), a line a merge, and the heads in the order of their places.

    A head stands at the middle of its cell: 0.5, 1.5 and on; a merge between the two that it joins.
    """
    order = leaves(similarity.linkage)
    n = len(order)
    place = np.empty(2 * n - 1)
    place[order] = np.arange(n) + 0.5
    height = np.zeros(2 * n - 1)
    lines = []
    for merge, (one, other, far, _) in enumerate(similarity.linkage):
        a, b = int(one), int(other)
        lines.append(np.array([[height[a], place[a]], [far, place[a]], [far, place[b]], [height[b], place[b]]]))
        place[n + merge] = (place[a] + place[b]) / 2
        height[n + merge] = far
    return lines, order


def draw_tree(
    paper: Axes,
    pen: Pen,
    comparison: HeadComparison,
    similarity: HeadSimilarity,
    place: tuple[float, float],
    *,
    palette: str,
) -> None:
    """Draw tree, roles and matrix, on axes in inches.

    Args:
        paper: axes over the whole figure, in inches from its upper left corner.
        pen: for the figure.
        comparison: of two heads or more.
        similarity: of them.
        place: the left and upper end.
        palette: one of `attnviz.render.palette.PALETTES`.
    """
    from matplotlib.collections import LineCollection

    left, top = place
    lines, order = branches(similarity)
    n = len(order)
    side = side_of(n)
    cell = side / n
    x = left + TREE + STRIP + 0.04
    farthest = max(float(similarity.linkage[:, 2].max()), 1e-12)
    inches = [
        np.stack([left + TREE - 0.03 - (TREE - 0.1) * line[:, 0] / farthest, top + line[:, 1] * cell], axis=1)
        for line in lines
    ]
    paper.add_collection(LineCollection(inches, colors=GREY, linewidths=0.7))
    for row, head in enumerate(order):
        roles = comparison.heads[head].roles
        swatch(paper, roles[0] if roles else None, (left + TREE, top + row * cell, STRIP, cell))
    distances = np.sqrt(np.maximum(similarity.divergences, 0.0))[np.ix_(order, order)]
    largest = float(distances.max()) or 1.0
    table = colours(palette)
    # Dark is alike: the palette's pale end stands for the largest distance.
    image = table[levels(largest - distances, largest)]
    paper.imshow(image, extent=(x, x + side, top + side, top), aspect="auto", interpolation="none", zorder=2)
    frame(paper, x, top, side, side)
    size = max(LEAST_TEXT, min(TEXT, TEXT * cell / PITCH))
    step = max(1, math.ceil(0.96 * PITCH * size / TEXT / cell))
    for row in range(0, n, step):
        name = comparison.heads[order[row]].name
        paper.text(x + side + 0.05, top + (row + 0.5) * cell, name, va="center", **pen.style(size))
    _scale(paper, pen, table, largest, (x, top + side + 0.12))


def _scale(paper: Axes, pen: Pen, table: np.ndarray, largest: float, place: tuple[float, float]) -> None:
    """The colours along, dark at distance 0, with both ends' numbers."""
    x, y = place
    paper.imshow(table[::-1][None], extent=(x, x + 1.0, y + 0.1, y), aspect="auto", zorder=2)
    frame(paper, x, y, 1.0, 0.1)
    style = pen.style(SMALL, color=GREY)
    paper.text(x - 0.05, y + 0.05, "0 alike", ha="right", va="center", **style)
    paper.text(x + 1.05, y + 0.05, f"{largest:.2g} √nats", va="center", **style)
