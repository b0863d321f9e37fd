"""Pictures of how alike heads are: all pairs as shaded cells beside the tree that groups them, and a map of the heads.

The cells and the trees are drawn by seaborn's clustermap on a figure of our own, so that no window of pyplot opens.
It needs scipy, which attnviz otherwise does without: importing it costs every start a second.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float64

from attnviz.errors import OutputError, RecordError, SelectionError
from attnviz.heads.notes import proof
from attnviz.heads.record import HeadComparison
from attnviz.heads.similarity import leaves
from attnviz.heads.wording import sample
from attnviz.render.figure.export import blank_sheet, save, usual_settings
from attnviz.render.figure.page import canvas, frame
from attnviz.render.figure.pen import BLACK, GREY, LEAST_TEXT, MARGIN, PITCH, POINT, SMALL, TEXT, TITLE, Pen, ordinal
from attnviz.render.fonts import Typefaces, typefaces_for
from attnviz.render.palette import DEFAULT, colours
from attnviz.text.display import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

UNIT = "Jensen-Shannon distance, √nats"
"""What the distances are measured in: the square root of a divergence in nats."""
FARTHEST = math.sqrt(math.log(2))
"""The distance of two heads that never look at the same token."""
CELL = 0.24
"""Inches of the largest cell."""
SIDES = (2.4, 8.0, 11.3)
"""Inches of the matrix: the least; the usual; the most, for heads whose labels have no room on less: up to 144."""
TREE = 0.9
"""Inches that a tree takes beside the matrix."""
BAR, SCALE = 0.12, 0.62
"""Inches: how wide the colours are, and with their numbers and their unit."""
LINE = 1.35
"""A line of text, in sizes of its letters."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Likeness:
    """Heads, how far they are from one another, and how they are grouped.

    Attributes:
        names: of the heads, such as ``3.7``: layer 3, head 7.
        distances: of all pairs, the roots of mean divergences.
        tree: their grouping, as `attnviz.heads.similarity.cluster` makes it.
        title: what is shown: the model, on which text.
        receipt: how it is proved that the weights are the model's own.
    """

    names: tuple[str, ...]
    distances: Float64[np.ndarray, "head head"]
    tree: Float64[np.ndarray, "merge 4"]
    title: str
    receipt: str

    def __post_init__(self) -> None:
        n = len(self.names)
        if self.distances.shape != (n, n) or len(self.tree) != n - 1:
            raise RecordError(
                f"{n} names of heads, distances of {len(self.distances)} and a tree of {len(self.tree) + 1} do not fit"
            )


def check_installed() -> None:
    """Make sure that what draws clusters is there.

    Raises:
        OutputError: it is not.
    """
    if find_spec("scipy") is None:
        raise OutputError('the picture of clusters needs scipy: pip install "attnviz[clusters]"')


def write(comparison: HeadComparison, path: Path | BytesIO, suffix: str, palette: str = DEFAULT) -> Typefaces:
    """Draw the clusters of a comparison's heads into a file.

    Args:
        comparison: of heads, their likeness among it.
        path: the file, or what it is written into.
        suffix: `.png`, `.svg` or `.pdf`.
        palette: one of `attnviz.render.palette.PALETTES`.

    Returns:
        The fonts used, with the characters that none has.

    Raises:
        OutputError: scipy is missing.
        SelectionError: heads were not compared with one another, or there is one only.
    """
    if comparison.similarity is None:
        raise SelectionError("the heads were not compared with one another: there are no clusters to draw")
    title = f"Which heads are alike: {visible(comparison.model)}; {sample(comparison)}"
    likeness = Likeness(
        names=tuple(head.name for head in comparison.heads),
        distances=np.sqrt(np.maximum(comparison.similarity.divergences, 0.0)),
        tree=comparison.similarity.linkage,
        title=title,
        receipt=proof(comparison),
    )
    save(clustermap(likeness, palette), path, suffix, title=title, description=proof(comparison))
    return typefaces_for([title, proof(comparison)])


def clustermap(likeness: Likeness, palette: str = DEFAULT) -> Figure:
    """A figure of all pairs of heads in the order of their tree, dark where they are alike.

    Args:
        likeness: what to draw.
        palette: one of `attnviz.render.palette.PALETTES`; a name that ends in ``_r`` turns it round.

    Raises:
        OutputError: scipy is missing.
        SelectionError: there is one head only, or there is no such palette.
    """
    check_installed()
    n = len(likeness.names)
    if n < 2:
        raise SelectionError("a picture of clusters needs two heads or more")
    least, usual, most = SIDES
    side = max(least, min(n * CELL, max(usual, min(most, n * PITCH * LEAST_TEXT / TEXT))))
    size = max(LEAST_TEXT, min(TEXT, TEXT * side / n / PITCH))
    step = math.ceil(0.96 * PITCH * size / TEXT / (side / n))
    with usual_settings():
        pen = blank_sheet([likeness.title, likeness.receipt, *likeness.names])
        grid = _drawn(likeness, palette, pen.figure)
        _label(grid.ax_heatmap, [likeness.names[head] for head in leaves(likeness.tree)], step, size, pen)
        _place(grid, likeness, palette, (side, size, step), pen)
    return pen.figure


def _drawn(likeness: Likeness, palette: str, figure: Figure) -> Any:
    """The matrix and its trees, drawn by seaborn.

    seaborn makes such a grid on a figure that it asks pyplot for, and its `plot` asks pyplot for one more where no
    colours stand beside the matrix. So the grid is put together here, and only its parts are drawn.
    """
    from matplotlib.colors import ListedColormap
    from pandas import DataFrame
    from seaborn.matrix import ClusterGrid

    grid = ClusterGrid.__new__(ClusterGrid)
    grid._figure = figure  # noqa: SLF001 - as its own __init__ does
    grid.data2d = DataFrame(likeness.distances)
    grid.mask = grid.data2d.isna()
    grid.row_colors = grid.col_colors = grid.ax_cbar = None
    grid.ax_col_dendrogram, grid.ax_row_dendrogram, grid.ax_heatmap = (figure.add_subplot(2, 2, k) for k in (2, 3, 4))
    grid.ax_row_dendrogram.set_axis_off()
    grid.ax_col_dendrogram.set_axis_off()
    order = leaves(likeness.tree)
    if likeness.tree[:, 2].max() > 0:  # else all heads are equal: the tree has no height
        tree_style = {"linewidths": 0.7, "colors": GREY}
        grid.plot_dendrograms(
            row_cluster=True,
            col_cluster=True,
            metric=None,
            method=None,
            row_linkage=likeness.tree,
            col_linkage=likeness.tree,
            tree_kws=tree_style,
        )
    grid.plot_matrix(
        None,
        order,
        order,
        cmap=ListedColormap(_dark_at_0(palette)),
        vmin=0.0,
        vmax=_top(likeness),
        xticklabels=False,
        yticklabels=False,
        rasterized=True,  # thousands of cells are one image in SVG and PDF
    )
    return grid


def _dark_at_0(palette: str) -> np.ndarray:
    """The palette with its dark end at distance 0: heads that are alike stand out from the paper."""
    turned = palette.removesuffix("_r") if palette.endswith("_r") else f"{palette}_r"
    return np.asarray(colours(turned) / 255)


def _top(likeness: Likeness) -> float:
    """The distance at the pale end: the largest there is."""
    return float(likeness.distances.max()) or FARTHEST


def _label(ax: Axes, names: Sequence[str], step: int, size: float, pen: Pen) -> None:
    """Name the rows at the right and the columns below, or each `step`-th of them."""
    shown = names[::step]
    places = np.arange(len(shown)) * step
    ax.set_xticks(places + 0.5, shown, rotation=90, **pen.style(size))
    ax.set_yticks(places + 0.5, shown, rotation=0, va="center", **pen.style(size))
    ax.tick_params(length=0, pad=2)
    ax.set(xlabel="", ylabel="")


def _place(grid: Any, likeness: Likeness, palette: str, sizes: tuple[float, float, int], pen: Pen) -> None:
    """Put matrix and trees in their places; the title above, the scale at the right, below what must be said."""
    side, size, step = sizes
    reach = pen.widest(likeness.names, size) + 0.06
    left = MARGIN + TREE
    scale = left + side + reach + 0.22
    width = scale + SCALE + MARGIN
    pen = replace(pen, larger=min(1.4, max(1.0, width / 10)))
    top = MARGIN + height_of(likeness.title, pen, width - 2 * MARGIN, TITLE) + TREE + 0.1
    below = top + side + reach + 0.15
    said = _said(likeness, step)
    height = below + sum(height_of(text, pen, width - 2 * MARGIN, TEXT) for text in said) + MARGIN
    paper = canvas(pen, width, height)

    def put(ax: Axes, place: tuple[float, float, float, float]) -> None:
        x, y, w, h = place
        ax.set_position((x / width, 1 - (y + h) / height, w / width, h / height))

    put(grid.ax_heatmap, (left, top, side, side))
    put(grid.ax_row_dendrogram, (MARGIN, top, TREE - 0.03, side))
    put(grid.ax_col_dendrogram, (left, top - TREE, side, TREE - 0.03))
    frame(paper, left, top, side, side)
    _scale(paper, pen, likeness, palette, (scale, top, 2.4))
    say(paper, pen, [likeness.title], MARGIN, TITLE)
    say(paper, pen, said, below, TEXT)


def height_of(text: str, pen: Pen, width: float, size: float) -> float:
    """How high a text stands in lines of this width, in inches."""
    return LINE * size * pen.larger * POINT * len(pen.wrap(text, width, size * pen.larger))


def say(paper: Axes, pen: Pen, texts: Sequence[str], top: float, size: float) -> None:
    """Write texts below one another over the whole width, the first in black, the others in grey.

    Args:
        paper: axes over the whole figure, in inches.
        pen: for the figure.
        texts: what to write; each starts a new line.
        top: where, in inches from the upper edge.
        size: of the letters, in points, before the pen enlarges them.
    """
    width = paper.get_xlim()[1] - 2 * MARGIN
    for index, text in enumerate(texts):
        for line in pen.wrap(text, width, size * pen.larger):
            style = pen.style(size * pen.larger, color=GREY if index else BLACK)
            paper.text(MARGIN, top, line, va="top", **style)
            top += LINE * size * pen.larger * POINT


def _scale(paper: Axes, pen: Pen, likeness: Likeness, palette: str, place: tuple[float, float, float]) -> None:
    """The colours and their numbers, upright, 0 below, and what they measure."""
    left, top, height = place
    table = _dark_at_0(palette)
    paper.imshow(table[::-1, None], extent=(left, left + BAR, top + height, top), aspect="auto", zorder=2)
    frame(paper, left, top, BAR, height)
    for fraction in (0, 0.5, 1):
        y = top + height * (1 - fraction)
        value = fraction * _top(likeness)
        paper.plot([left + BAR, left + BAR + 0.03], [y, y], color=GREY, linewidth=0.6)
        words = f"{value:.2g}" if value else "0"
        paper.text(left + BAR + 0.06, y, words, va="center", **pen.style(SMALL, color=GREY))
    middle = top + height / 2
    paper.text(left + SCALE, middle, UNIT, rotation=90, ha="right", va="center", **pen.style(SMALL, color=GREY))


def _said(likeness: Likeness, step: int) -> list[str]:
    """What stands below the picture: the receipt, and how to read it."""
    largest = float(likeness.distances.max())
    ends = (
        f"0 is that of heads whose weights are always equal, {FARTHEST:.2f} that of heads that never look at the same"
    )
    names = f" · each {ordinal(step)} head is named" if step > 1 else ""
    return [
        likeness.receipt,
        f"rows and columns: heads as layer.head, counted from 0, in the order of the tree (average linkage){names}",
        f"dark: alike · the largest distance here is {largest:.2g}; {ends} token",
    ]
