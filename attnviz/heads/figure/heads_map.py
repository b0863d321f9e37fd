"""The heads of a model as points on a map, in the colours of their roles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64

from attnviz.heads.figure.grid import colour_of
from attnviz.heads.figure.similarity_map import HEIGHTS, draw_scatter
from attnviz.heads.record import NO_ROLE, HeadComparison, HeadProfile, HeadSimilarity
from attnviz.heads.wording import readable
from attnviz.render.figure.pen import Pen

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABELLED, NAMED = 144, 48
"""On a map of more heads only so many are named: those of the rarest established roles."""
RARER = "; heads of the rarer roles are named"


def heading(comparison: HeadComparison, similarity: HeadSimilarity) -> str:
    """What the map shows."""
    return (
        f"heads as points: those that look alike stand close (two axes keep {100 * similarity.kept:.0f} % of the "
        f"squared distances){RARER if len(comparison.heads) > LABELLED else ''}"
    )


def unplaced(
    pen: Pen, comparison: HeadComparison, similarity: HeadSimilarity, wide: float
) -> tuple[Axes, tuple[float, float]]:
    """Draw a map of this width, which has no place yet; the heights of its legend and of its axes, in inches."""
    across, up = np.ptp(similarity.points, axis=0)
    low, high = HEIGHTS
    tall = min(high - 0.6, max(low, wide * up / across)) if across else low
    pen.figure.set_size_inches(10, 10)
    ax = pen.figure.add_axes((0.1, 0.1, wide / 10, tall / 10))
    groups = [_group(head) for head in comparison.heads]
    names = _names(comparison.heads, groups)
    legend = draw_scatter(ax, similarity.points, names, groups, pen, plain=NO_ROLE)
    _clear(ax, similarity.points, names)
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
    return role.family_words + ("" if role.established else " (not established)")


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
