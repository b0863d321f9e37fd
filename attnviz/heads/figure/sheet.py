"""The sheet of a comparison, as PNG, SVG or PDF: heads by role, clusters, a map of the heads, the strongest examples.

As in the other figures nothing touches pyplot, and Matplotlib's settings are what they were afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from attnviz.attention import Attention
from attnviz.heads.figure import cards as heads_cards
from attnviz.heads.figure import examples, heads_map
from attnviz.heads.figure.grid import draw_grid, draw_legend, grid_size, legend_entries, legend_height
from attnviz.heads.figure.similarity import UNIT
from attnviz.heads.figure.tree import draw_tree, tree_size
from attnviz.heads.notes import note_words, proof
from attnviz.heads.record import HeadComparison
from attnviz.heads.selection import strongest
from attnviz.heads.wording import NOT_EXPLANATION, described, sample, scored_on
from attnviz.render.figure.export import blank_sheet, save, usual_settings
from attnviz.render.figure.page import canvas
from attnviz.render.figure.pen import BLACK, GREY, MARGIN, POINT, TEXT, TITLE, Pen
from attnviz.render.fonts import Typefaces, typefaces_for
from attnviz.render.palette import DEFAULT
from attnviz.text.display import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RIGHT = 6.8
"""Inches of the right column: the legend, the map, cards."""
LEFT = 1.8
"""Inches of the left column at least: the words above a grid of one head."""
GAP = 0.55
LEVEL = 2.5
"""Inches that may stay free below the grid or its legend, so that the map stands level with the clusters."""
LEGEND = 0.1
"""Inches above the legend."""
HEADING, TWO_LINES = 0.34, 0.48
"""Inches that the heading of a part takes."""
AROUND = (0.5, 0.5)
"""Inches at the left of the map and below it."""


def sheet(
    comparison: HeadComparison,
    *,
    patterns: Mapping[str, Attention] | None = None,
    unseen: str = "",
    palette: str = DEFAULT,
) -> Figure:
    """A figure of a comparison.

    Args:
        comparison: of heads.
        patterns: by role, the attention on the sentence of `attnviz.heads.wording.strongest`; the patterns of
            those heads are drawn below their sentences.
        unseen: why there are no patterns, which is said where they would be; empty says nothing.
        palette: one of `attnviz.render.palette.PALETTES`, for distances and patterns.

    Raises:
        SelectionError: a pattern without the head that it is given for, or no such palette.
    """
    with usual_settings():
        pen = blank_sheet(_texts(comparison, patterns or {}, unseen))
        _draw(pen, comparison, patterns or {}, unseen, palette)
    return pen.figure


def write(
    comparison: HeadComparison,
    path: Path | BytesIO,
    suffix: str,
    *,
    patterns: Mapping[str, Attention] | None = None,
    unseen: str = "",
    palette: str = DEFAULT,
) -> Typefaces:
    """Draw a comparison into a file.

    Args:
        comparison: of heads.
        path: the file, or what it is written into.
        suffix: `.png`, `.svg` or `.pdf`.
        patterns: as `sheet` takes them.
        unseen: likewise.
        palette: likewise.

    Returns:
        The fonts used, with the characters that none has.
    """
    made = sheet(comparison, patterns=patterns, unseen=unseen, palette=palette)
    title = f"What each head does: {visible(comparison.model)}"
    save(made, path, suffix, title=title, description=f"{sample(comparison)}; {proof(comparison)}")
    return typefaces_for(_texts(comparison, patterns or {}, unseen))


def _draw(pen: Pen, comparison: HeadComparison, patterns: Mapping[str, Attention], unseen: str, palette: str) -> None:
    """Measure all parts, give the figure its size, then draw them."""
    similarity = comparison.similarity if len(comparison.heads) > 1 else None
    grid = grid_size(comparison)
    tree = tree_size(len(comparison.heads)) if similarity is not None else (0.0, 0.0)
    right = MARGIN + max(grid[0], tree[0], LEFT) + GAP
    width = right + RIGHT + MARGIN
    full = width - 2 * MARGIN
    title = pen.wrap(f"What each head does · {visible(comparison.model)}", full, TITLE * 1.2)
    about = [line for text in (described(comparison), sample(comparison)) for line in pen.wrap(visible(text), full)]
    top = MARGIN + 1.35 * 1.2 * TITLE * POINT * len(title) + 1.4 * TEXT * POINT * len(about) + 0.2
    ends = [top + grid[1], top + LEGEND + legend_height(comparison, pen, RIGHT)]
    tree_top, map_top = (end + GAP for end in ends)
    drawn, scattered = None, (0.0, 0.0)
    if similarity is not None:
        drawn, scattered = heads_map.unplaced(pen, comparison, similarity, RIGHT - AROUND[0])
        if abs(tree_top - map_top) < LEVEL:
            tree_top = map_top = max(tree_top, map_top)
        ends = [tree_top + HEADING + tree[1], map_top + TWO_LINES + sum(scattered) + AROUND[1]]
    deck = heads_cards.deck_of(comparison, patterns, unseen, pen)
    places, end = heads_cards.placed(
        deck, pen, width=full, below=max(ends) + GAP / 2, beside=(right, ends[1] + GAP / 2), floor=ends[0]
    )
    said = [
        (line, GREY if index else BLACK)
        for index, text in enumerate(_said(comparison))
        for line in pen.wrap(text, full)
    ]
    below = max(*ends, end) + 0.35
    height = below + 1.4 * TEXT * POINT * len(said) + MARGIN
    paper = canvas(pen, width, height)
    _words(paper, pen, title, about, (said, below))
    draw_grid(paper, pen, comparison, MARGIN, top)
    draw_legend(paper, pen, comparison, (right, top + LEGEND, RIGHT))
    if similarity is not None and drawn is not None:
        _heading(paper, pen, "heads that look alike stand together", (MARGIN, tree_top))
        draw_tree(paper, pen, comparison, similarity, (MARGIN, tree_top + HEADING), palette=palette)
        what = heads_map.heading(comparison, similarity)
        _heading(paper, pen, "\n".join(pen.wrap(what, RIGHT, TEXT + 1)), (right, map_top))
        legend, tall = scattered
        x, y = right + AROUND[0], map_top + TWO_LINES + legend
        drawn.set_position((x / width, 1 - (y + tall) / height, (RIGHT - AROUND[0]) / width, tall / height))
    heads_cards.draw(paper, pen, deck, places, palette)
    paper.set(xlim=(0, width), ylim=(height, 0))


def _heading(paper: Axes, pen: Pen, text: str, place: tuple[float, float]) -> None:
    paper.text(*place, text, va="top", **pen.style(TEXT + 1))


def _words(
    paper: Axes, pen: Pen, title: Sequence[str], about: Sequence[str], below: tuple[Sequence[tuple[str, str]], float]
) -> None:
    """Write what stands above the picture and below it."""
    y = MARGIN
    for line in title:
        paper.text(MARGIN, y, line, va="top", **pen.style(TITLE * 1.2))
        y += 1.35 * 1.2 * TITLE * POINT
    for line in about:
        paper.text(MARGIN, y, line, va="top", **pen.style(color=GREY))
        y += 1.4 * TEXT * POINT
    said, y = below
    for line, colour in said:
        paper.text(MARGIN, y, line, va="top", **pen.style(color=colour))
        y += 1.4 * TEXT * POINT


def _said(comparison: HeadComparison) -> list[str]:
    """What stands below the picture: the proof, what to know, how to read it."""
    said = [proof(comparison), *(note_words(note) for note in comparison.notes)]
    if comparison.similarity is not None and len(comparison.heads) > 1:
        said.append(f"distances: {UNIT}; a tree of average linkage, the strip beside it the colours of the roles")
    said += [text for text in [scored_on(comparison)] if text]
    sure = any(math.isfinite(role.low) for head in comparison.heads for role in head.roles)
    how = "intervals: 95 %, from resampling sentences; " * sure
    return [*said, f"{how}layers and heads count from 0; {NOT_EXPLANATION}"]


def _texts(comparison: HeadComparison, patterns: Mapping[str, Attention], unseen: str) -> list[str]:
    """All that the picture says, for its fonts."""
    texts = [visible(comparison.model), visible(comparison.corpus), visible(unseen), *_said(comparison), "√→–·"]  # noqa: RUF001 - a dash
    texts += [words for _, words in legend_entries(comparison)]
    for card in strongest(comparison):
        texts.append(visible(card.role.words))
        if card.example is not None:
            texts.append(visible(card.example.text))
        pattern = examples.pattern_of(card, patterns)
        if pattern is not None:
            texts += [*pattern.query_labels, *pattern.key_labels]
    return texts
