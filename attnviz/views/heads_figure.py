"""The sheet of a comparison, as PNG, SVG or PDF: heads by role, clusters, a map of the heads, the strongest examples.

As in the other figures nothing touches pyplot, and Matplotlib's settings are what they were afterwards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64

from attnviz.attention import Attention
from attnviz.comparison import NO_ROLE, Comparison, HeadProfile, Likeness
from attnviz.text.display import visible
from attnviz.views import heads_examples as examples
from attnviz.views.caption import canvas
from attnviz.views.figure import blank_sheet, save, usual_settings
from attnviz.views.fonts import Typefaces, typefaces_for
from attnviz.views.heads_grid import colour_of, draw_grid, draw_legend, grid_size, legend_height
from attnviz.views.heads_roles import NOT_EXPLANATION, described, family_words, readable, sample
from attnviz.views.heads_tree import draw_tree, tree_size
from attnviz.views.likeness import UNIT
from attnviz.views.likeness_map import HEIGHTS, draw_scatter
from attnviz.views.palette import DEFAULT
from attnviz.views.pen import BLACK, GREY, MARGIN, POINT, TEXT, TITLE, Pen

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RIGHT = 6.8
"""Inches of the right column: the legend, the map, cards."""
LEFT = 1.8
"""Inches of the left column at least: the words above a grid of one head."""
GAP = 0.55
LEVEL = 2.5
"""Inches that may stay free below the legend, so that the map stands level with the clusters."""
HEADING, TWO_LINES = 0.34, 0.48
"""Inches that the heading of a part takes."""
LABELLED, NAMED = 144, 48
"""On a map of more heads only so many are named: those of the rarest established roles."""
RARER = "; heads of the rarer roles are named"
AROUND = (0.5, 0.5)
"""Inches at the left of the map and below it."""


def sheet(comparison: Comparison, *, patterns: Mapping[str, Attention] | None = None, palette: str = DEFAULT) -> Figure:
    """A figure of a comparison.

    Args:
        comparison: of heads.
        patterns: by ``layer.head``, the attention on the sentence of `attnviz.views.heads_examples.strongest`; the
            patterns of those heads are drawn beside their sentences.
        palette: one of `attnviz.views.palette.PALETTES`, for distances and patterns.

    Raises:
        SelectionError: a pattern without the head that it is given for, or no such palette.
    """
    with usual_settings():
        pen = blank_sheet(_texts(comparison, patterns or {}))
        _draw(pen, comparison, patterns or {}, palette)
    return pen.figure


def write(
    comparison: Comparison,
    path: Path | BytesIO,
    suffix: str,
    *,
    patterns: Mapping[str, Attention] | None = None,
    palette: str = DEFAULT,
) -> Typefaces:
    """Draw a comparison into a file.

    Args:
        comparison: of heads.
        path: the file, or what it is written into.
        suffix: `.png`, `.svg` or `.pdf`.
        patterns: as `sheet` takes them.
        palette: likewise.

    Returns:
        The fonts used, with the characters that none has.
    """
    made = sheet(comparison, patterns=patterns, palette=palette)
    title = f"What each head does: {visible(comparison.model)}"
    save(made, path, suffix, title=title, description=f"{sample(comparison)}; {comparison.proof}")
    return typefaces_for(_texts(comparison, patterns or {}))


def _draw(pen: Pen, comparison: Comparison, patterns: Mapping[str, Attention], palette: str) -> None:
    """Measure all parts, give the figure its size, then draw them."""
    likeness = comparison.likeness if len(comparison.heads) > 1 else None
    cards = [(card, examples.pattern_of(card, patterns)) for card in examples.strongest(comparison)]
    heights = [examples.card_height(card, pattern, pen) for card, pattern in cards]
    grid = grid_size(comparison)
    tree = tree_size(len(comparison.heads)) if likeness is not None else (0.0, 0.0)
    right = MARGIN + max(grid[0], tree[0], LEFT) + GAP
    width = right + RIGHT + MARGIN
    title = pen.wrap(f"What each head does · {visible(comparison.model)}", width - 2 * MARGIN, TITLE * 1.2)
    about = [
        line
        for text in (described(comparison), sample(comparison))
        for line in pen.wrap(visible(text), width - 2 * MARGIN)
    ]
    top = MARGIN + 1.35 * 1.2 * TITLE * POINT * len(title) + 1.4 * TEXT * POINT * len(about) + 0.2
    second = top + grid[1] + GAP  # the left column's second part
    left_end = second + HEADING + tree[1] if likeness is not None else top + grid[1]
    map_ax, scattered = _map(pen, comparison, likeness) if likeness is not None else (None, (0.0, 0.0))
    map_top = top + legend_height(comparison) + GAP - 0.2
    if likeness is not None and second - LEVEL < map_top < second:
        map_top = second
    right_end = (
        map_top + HEADING + sum(scattered) + AROUND[1] if likeness is not None else top + legend_height(comparison)
    )
    places, end = _flow(heights, (right, right_end + GAP / 2), left_end)
    said = [
        (line, GREY if index else BLACK)
        for index, text in enumerate(_said(comparison))
        for line in pen.wrap(text, width - 2 * MARGIN)
    ]
    below = max(left_end, right_end, end) + 0.35
    height = below + 1.4 * TEXT * POINT * len(said) + MARGIN
    paper = canvas(pen, width, height)
    _words(paper, pen, title, about, (said, below))
    draw_grid(paper, pen, comparison, MARGIN, top)
    draw_legend(paper, pen, comparison, right, top + 0.05)
    if likeness is not None and map_ax is not None:
        _heading(paper, pen, "heads that look alike stand together", (MARGIN, second))
        draw_tree(paper, pen, comparison, likeness, (MARGIN, second + HEADING), palette=palette)
        kept = (
            f"heads as points: those that look alike stand close (two axes keep {100 * likeness.kept:.0f} % of the "
            f"squared distances){RARER if len(comparison.heads) > LABELLED else ''}"
        )
        _heading(paper, pen, "\n".join(pen.wrap(kept, RIGHT, TEXT + 1)), (right, map_top))
        legend, tall = scattered
        y = map_top + TWO_LINES + legend
        x = right + AROUND[0]
        map_ax.set_position((x / width, 1 - (y + tall) / height, (RIGHT - AROUND[0]) / width, tall / height))
    if cards:
        _heading(paper, pen, "each role's clearest head, and the sentence where it is strongest", places[0])
    for (card, pattern), (x, y) in zip(cards, places[1:], strict=True):
        examples.draw_card(paper, pen, card, pattern, (x, y), palette=palette)
    paper.set(xlim=(0, width), ylim=(height, 0))


def _flow(
    heights: Sequence[float], start: tuple[float, float], floor: float
) -> tuple[list[tuple[float, float]], float]:
    """Where the cards' heading and the cards stand: in the right column down to the floor, then on both sides below.

    Returns:
        The places of the heading and of the cards, and where the lowest ends.
    """
    x, y = start
    if y + HEADING + (heights[0] if heights else 0.0) > floor:
        x, y = MARGIN, max(floor, y) + GAP / 2
    places = [(x, y)]
    y += HEADING
    if x > MARGIN:
        while len(places) <= len(heights) and y + heights[len(places) - 1] <= floor:
            places.append((x, y))
            y += heights[len(places) - 2]
        ends = [floor + 0.3, max(y, floor + 0.3)]
    else:
        ends = [y, y]
    columns = [MARGIN, max(start[0], MARGIN + examples.WIDTH + 0.3)]
    two = columns[1] + examples.WIDTH <= start[0] + RIGHT + MARGIN
    for height in heights[len(places) - 1 :]:
        column = int(np.argmin(ends)) if two else 0
        places.append((columns[column], ends[column]))
        ends[column] += height
    return places, max(ends) if len(heights) else y


def _map(pen: Pen, comparison: Comparison, likeness: Likeness) -> tuple[Axes, tuple[float, float]]:
    """Draw the map, which has no place yet; the heights of its legend and of its axes, in inches."""
    wide = RIGHT - AROUND[0]
    across, up = np.ptp(likeness.points, axis=0)
    low, high = HEIGHTS
    tall = min(high - 0.6, max(low, wide * up / across)) if across else low
    pen.figure.set_size_inches(10, 10)
    ax = pen.figure.add_axes((0.1, 0.1, wide / 10, tall / 10))
    groups = [_group(head) for head in comparison.heads]
    names = _names(comparison.heads, groups)
    legend = draw_scatter(ax, likeness.points, names, groups, pen, plain=NO_ROLE)
    _clear(ax, likeness.points, names)
    _recolour(ax, comparison.heads)
    return ax, (legend, tall)


def _clear(ax: Axes, points: Float64[np.ndarray, "head 2"], names: Sequence[str]) -> None:
    """Take away what was written beside heads that have no name there, and the lines that lead to it."""
    for text in [text for text in ax.texts if not text.get_text()]:
        text.remove()
    for line in list(ax.lines):
        start = np.asarray(line.get_xydata(), dtype=np.float64)[0]
        if not names[int(np.hypot(*(points - start).T).argmin())]:
            line.remove()


def _names(heads: Sequence[HeadProfile], groups: Sequence[str]) -> list[str]:
    """What is written beside each point: on a crowded map nothing, but for heads of rare roles."""
    if len(heads) <= LABELLED:
        return [head.name for head in heads]
    sizes = Counter(
        group for head, group in zip(heads, groups, strict=True) if head.roles and head.roles[0].established
    )
    named: set[str] = set()
    room = NAMED
    for group, n in sorted(sizes.items(), key=lambda item: item[1]):
        room -= n
        if room >= 0:
            named.add(group)
    return [head.name if group in named else "" for head, group in zip(heads, groups, strict=True)]


def _group(head: HeadProfile) -> str:
    if not head.roles:
        return NO_ROLE
    role = head.roles[0]
    return family_words(role) + ("" if role.established else " (not established)")


def _recolour(ax: Axes, heads: Sequence[HeadProfile]) -> None:
    """Give the points of the map, and its legend, the colours of the grid; hollow where a role is not established."""
    roles = {_group(head): head.roles[0] for head in heads if head.roles}
    drawn = ax.get_legend()
    handles = dict(zip([t.get_text() for t in drawn.get_texts()], drawn.legend_handles, strict=True)) if drawn else {}
    for points in ax.collections:
        role = roles.get(str(points.get_label()))
        if role is not None:
            for one in (points, handles[str(points.get_label())]):
                one.set_facecolor(colour_of(role) if role.established else "white")  # type: ignore[union-attr]
                one.set_edgecolor("white" if role.established else readable(colour_of(role), dark=False))  # type: ignore[union-attr]
                one.set_linewidth(0.4 if role.established else 0.8)  # type: ignore[union-attr]


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


def _said(comparison: Comparison) -> list[str]:
    """What stands below the picture: the proof, what to know, how to read it."""
    said = [comparison.proof, *(visible(note) for note in comparison.notes)]
    if comparison.likeness is not None and len(comparison.heads) > 1:
        said.append(f"distances: {UNIT}; a tree of average linkage, the strip beside it the colours of the roles")
    return [*said, f"intervals: 95 %, from resampling sentences; layers and heads count from 0; {NOT_EXPLANATION}"]


def _texts(comparison: Comparison, patterns: Mapping[str, Attention]) -> list[str]:
    """All that the picture says, for its fonts."""
    texts = [visible(comparison.model), visible(comparison.corpus), *_said(comparison), "√→–·"]  # noqa: RUF001 - a dash
    for card in examples.strongest(comparison):
        texts.append(visible(card.role.words))
        if card.example is not None:
            texts.append(visible(card.example.text))
        pattern = examples.pattern_of(card, patterns)
        if pattern is not None:
            texts += [*pattern.query_labels, *pattern.key_labels]
    return texts
