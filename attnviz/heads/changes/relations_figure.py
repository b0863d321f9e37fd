"""How much better or worse relations between words are found, in a figure: a line a relation, its change as a mark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnviz.heads.changes import wording as say
from attnviz.heads.changes.record import Changes, RelationChange
from attnviz.render.figure.pen import BLACK, FRAME, GREY, POINT, TEXT, Pen
from attnviz.text.display import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 40
"""So many relations are drawn."""
ROW = 1.5 * TEXT * POINT
"""Inches of a line."""
BETWEEN = 0.14
"""Inches between columns."""
NAME, MARKS = 0.7, 1.1
"""Inches that the name of a relation may take in any case, and that the marks take at least."""
DOT = 0.028
"""Inches of the mark of a change, from its middle."""
TITLES = ("relation", "n", "before", "after", "change", "95 %", "best head")


def height(found: Changes) -> float:
    """Inches that the lines take, with their titles."""
    n = len(shown(found))
    return ROW * (n + 2) if n else 0.0


def shown(found: Changes) -> list[RelationChange]:
    """The relations that are drawn."""
    return say.relations(found)[:MOST]


def texts(found: Changes) -> list[str]:
    """All that is written, for its fonts."""
    return ["…", *TITLES, *(cell for one in shown(found) for cell in _cells(one))]


def draw(paper: Axes, pen: Pen, found: Changes, place: tuple[float, float], width: float) -> None:
    """Draw a line a relation: its numbers, then the interval of its change about 0.

    Args:
        paper: axes over the whole figure, in inches from its upper left corner.
        pen: for the figure.
        found: of two models.
        place: the left and upper end.
        width: how wide the lines may get.
    """
    lines = shown(found)
    if not lines:
        return
    left, top = place
    cells = [_cells(one) for one in lines]
    columns = list(zip(TITLES, *cells, strict=True))
    taken = sum(pen.widest(column, TEXT) for column in columns[1:])
    room = max(NAME, width - taken - MARKS - (len(TITLES) + 1) * BETWEEN)
    for cut in cells:
        cut[0] = _fitting(cut[0], room, pen)
    ends, x = [], left
    for column, title in enumerate(TITLES):
        x += pen.widest([title, *(row[column] for row in cells)], TEXT) + BETWEEN
        ends.append(x - BETWEEN)
    starts = [left, *(end + BETWEEN for end in ends[:-1])]
    for row, texts_of_row in enumerate([TITLES, *cells]):
        y = top + (row + 0.5) * ROW
        sure = row > 0 and lines[row - 1].established
        for column, text in enumerate(texts_of_row):
            right = 0 < column < len(TITLES) - 1
            style = pen.style(TEXT, color=BLACK if sure else GREY)
            paper.text(
                ends[column] if right else starts[column], y, text, ha="right" if right else "left", va="center",
                **style,
            )  # fmt: skip
    _marks(paper, pen, lines, (x + BETWEEN, top), left + width)


def _marks(paper: Axes, pen: Pen, lines: list[RelationChange], place: tuple[float, float], right: float) -> None:
    """The changes as dots with their intervals, 0 in the middle."""
    from matplotlib.patches import Ellipse

    left, top = place
    reach = max(abs(end) for one in lines for end in (one.low, one.high))
    middle, half = (left + right) / 2, (right - left) / 2 - DOT
    bottom = top + (len(lines) + 1) * ROW
    paper.plot([middle, middle], [top + ROW, bottom], color=FRAME, linewidth=0.8, zorder=1)
    titles = ((-reach, "left", f"{-reach:.2f}"), (0.0, "center", "0"), (reach, "right", f"+{reach:.2f}"))
    for value, side, text in titles:
        x = middle + half * value / reach
        paper.text(x, top + ROW / 2, text, ha=side, va="center", **pen.style(TEXT, color=GREY))
    for row, one in enumerate(lines, 1):
        y = top + (row + 0.5) * ROW
        colour = BLACK if one.established else GREY
        ends = [middle + half * end / reach for end in (one.low, one.high)]
        paper.plot(ends, [y, y], color=colour, linewidth=1.1 if one.established else 0.7, zorder=2)
        at = middle + half * one.value / reach
        paper.add_patch(
            Ellipse(
                (at, y), 2 * DOT, 2 * DOT, facecolor=colour if one.established else "white", edgecolor=colour,
                linewidth=0.8, zorder=3,
            )
        )  # fmt: skip


def _fitting(name: str, room: float, pen: Pen) -> str:
    """The name, with an ellipsis where it was cut."""
    if pen.width(name, TEXT) <= room:
        return name
    cut = pen.wrap(name, room - pen.width("…", TEXT), TEXT, most=1)[0]
    return f"{cut}…"


def _cells(one: RelationChange) -> list[str]:
    interval = f"{say.signed(one.low)} to {say.signed(one.high)}"
    numbers = [f"{one.before.accuracy:.2f}", f"{one.after.accuracy:.2f}", say.signed(one.value), interval]
    return [visible(one.name) or "?", say.links_of(one), *numbers, say.heads_of(one)]
