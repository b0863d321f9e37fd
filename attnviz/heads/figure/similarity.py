"""How alike heads are: all pairs as shaded cells in the order of their tree, which is drawn beside them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64, Int64

from attnviz.errors import SelectionError
from attnviz.heads.figure.grid import swatch
from attnviz.heads.record import HeadComparison, HeadSimilarity
from attnviz.heads.similarity import leaves
from attnviz.heads.wording import description, proof, sample, say
from attnviz.render.figure.export import Picture, blank_figure, usual_settings
from attnviz.render.figure.page import Page, height_of, lines, page_of, scale_marks
from attnviz.render.figure.pen import GREY, LEAST_TEXT, MARGIN, PITCH, SMALL, TEXT, TITLE, ordinal
from attnviz.render.palette import colours, levels
from attnviz.text.display import visible

FARTHEST = math.sqrt(math.log(2))  # the distance of two heads that never look at the same token
CELL = 0.24  # inches of the largest cell
SIDES = (2.4, 8.0, 11.3)
"""Inches of the matrix: the least; the usual; the most, for heads whose labels have no room on
less: up to 144."""
TREE, STRIP = 1.0, 0.12  # inches that the tree takes beside the matrix, and the colours of the roles
BAR = 0.62  # inches of the upright scale, with its numbers and its unit


def draw(comparison: HeadComparison, language: str = "en") -> Picture:
    """All pairs of heads, dark where alike, with trees above and at the left. Raises SelectionError: not compared."""
    similarity = expect_similarity(comparison)
    names = [head.name for head in comparison.heads]
    n = len(names)
    least, usual, most = SIDES
    side = max(least, min(n * CELL, max(usual, min(most, n * PITCH * LEAST_TEXT / TEXT))))
    size, step = _thin(side / n)
    title = say("clusters_title", language, model=visible(comparison.model))
    about = [visible(text) for text in (description(comparison, language), sample(comparison, language))]
    with usual_settings():
        pen = blank_figure(
            [title, *about, say("distance", language), *_words_below(comparison, similarity, step, language)]
        )
        reach = pen.widest(names, size) + 0.06
        left = MARGIN + TREE + STRIP + 0.04
        bar = left + side + reach + 0.22
        width = bar + BAR + MARGIN
        larger = min(1.4, max(1.0, width / 10))
        above = [
            *lines(pen, [title], width - 2 * MARGIN, TITLE * larger, leading=1.5),
            *lines(pen, about, width - 2 * MARGIN, TEXT * larger, colour=GREY),
        ]
        top = MARGIN + height_of(above) + TREE + 0.1
        end = top + side + reach + 0.15
        below = lines(pen, _words_below(comparison, similarity, step, language), width - 2 * MARGIN, TEXT * larger)
        page = page_of(pen, width, end + height_of(below) + MARGIN)
        page.write(above, MARGIN)
        order, largest = _draw_pairs(page, similarity, names, (left, top, side))
        for row, head in enumerate(order):
            roles = comparison.heads[head].roles
            swatch(page, roles[0] if roles else None, (left - STRIP - 0.04, top + row * side / n, STRIP, side / n))
        for column in range(0, n, step):
            name, middle = names[order[column]], left + (column + 0.5) * side / n
            page.text(middle, top + side + 0.05, name, size, rotation=90, ha="center", va="top")
        _draw_tree(page, similarity, (left, top, side), upright=True)
        page.colour_bar(colours()[::-1], (bar, top, 2.4), scale_marks(0.0, largest))
        page.text(
            bar + BAR, top + 1.2, say("distance", language), SMALL, rotation=90, ha="right", va="center", color=GREY
        )
        page.write(below, end)
    return Picture(pen, title, proof(comparison))


def expect_similarity(comparison: HeadComparison) -> HeadSimilarity:
    """How alike its heads are. Raises SelectionError: they were not compared, or there is one only."""
    if comparison.similarity is None:
        raise SelectionError("the heads were not compared with one another: there are no clusters to draw")
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
        forks.append(np.array([[height[a], place[a]], [far, place[a]], [far, place[b]], [height[b], place[b]]]))
        place[n + merge] = (place[a] + place[b]) / 2
        height[n + merge] = far
    return forks, order


def _thin(cell: float) -> tuple[float, int]:
    """The size of the names beside cells of this side, in points, and every how many heads one is named."""
    size = max(LEAST_TEXT, min(TEXT, TEXT * cell / PITCH))
    return size, max(1, math.ceil(0.96 * PITCH * size / TEXT / cell))


def _draw_pairs(
    page: Page, similarity: HeadSimilarity, names: Sequence[str], place: tuple[float, float, float]
) -> tuple[Int64[np.ndarray, " head"], float]:
    """Draw the matrix with its names and tree; gives the heads in the tree's order, and the largest distance."""
    left, top, side = place
    _, order = branches(similarity)
    distances = _distances(similarity)[np.ix_(order, order)]
    largest = float(distances.max()) or FARTHEST
    # Dark is alike: the palette's pale end stands for the largest distance.
    page.image(colours()[levels(largest - distances, largest)], (left, top, side, side))
    cell = side / len(order)
    size, step = _thin(cell)
    for row in range(0, len(order), step):
        page.text(left + side + 0.05, top + (row + 0.5) * cell, names[order[row]], size, va="center")
    _draw_tree(page, similarity, (left - STRIP - 0.04, top, side))
    return order, largest


def _draw_tree(
    page: Page, similarity: HeadSimilarity, place: tuple[float, float, float], *, upright: bool = False
) -> None:
    from matplotlib.collections import LineCollection

    left, top, side = place
    forks, order = branches(similarity)
    farthest = max(float(similarity.linkage[:, 2].max()), 1e-12)
    along = [(left if upright else top) + fork[:, 1] * side / len(order) for fork in forks]
    away = [(top if upright else left) - 0.03 - (TREE - 0.1) * fork[:, 0] / farthest for fork in forks]
    points = [np.stack((a, b) if upright else (b, a), axis=1) for a, b in zip(along, away, strict=True)]
    page.ax.add_collection(LineCollection(points, colors=GREY, linewidths=0.7))


def _distances(similarity: HeadSimilarity) -> Float64[np.ndarray, "head head"]:
    return np.asarray(np.sqrt(np.maximum(similarity.divergences, 0.0)))


def _words_below(comparison: HeadComparison, similarity: HeadSimilarity, step: int, language: str) -> list[str]:
    largest = float(_distances(similarity).max())
    names = say("each_named", language, n=step, nth=ordinal(step)) if step > 1 else ""
    return [
        proof(comparison, language),
        say("pairs_axes", language, names=names),
        say("pairs_colour", language, largest=f"{largest:.2g}", farthest=f"{FARTHEST:.2f}"),
    ]
