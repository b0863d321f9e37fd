"""What two models' heads do otherwise: a grid of layers x heads, coloured by how far each changed, and relations.

Below the grid stand the changes of role in words; then a line a relation between words, its change as a mark.
"""

from __future__ import annotations

import numpy as np

from attnviz.heads.changes import wording
from attnviz.heads.changes.compare import most_changed, size
from attnviz.heads.changes.record import MOST, Change, Changes, RelationChange
from attnviz.heads.changes.wording import words
from attnviz.heads.figure.grid import ABOVE, BESIDE, cell_of, grid_size, number_grid
from attnviz.heads.notes import note_words
from attnviz.heads.record import Role
from attnviz.heads.settings import MAX_OFFSET
from attnviz.heads.wording import say
from attnviz.render.figure.export import Picture, blank_figure, usual_settings
from attnviz.render.figure.page import Page, height_of, lines, page_of, scale_marks
from attnviz.render.figure.pen import BLACK, FRAME, GREY, LEAST_TEXT, MARGIN, POINT, SMALL, TEXT, TITLE, Pen
from attnviz.render.palette import DEFAULT, colours, hexed, ink, levels
from attnviz.text.display import visible

CELL, WIDEST = 0.62, 7.6
"""Inches of the largest cell, and of the grid for which cells are made smaller."""
SCALE = 1.1
"""Inches that the colour scale takes beside the grid."""
LEAST_WIDTH = 6.2
"""Inches of the narrowest figure: its words need room."""
NOTHING = "#f1f1f1"
"""Of a head that was not measured."""
NO_SIGN = "–"  # noqa: RUF001 - an en dash is meant
"""Stands in a cell for no clear role, where a head has one in the other model."""
MOVES = 12
"""So many changes of role are listed."""
MOST_RELATIONS = 40
"""So many relations are drawn."""
ROW = 1.5 * TEXT * POINT
"""Inches of the line of a relation."""
BETWEEN = 0.14
"""Inches between columns."""
NAME, MARKS = 0.7, 1.1
"""Inches that the name of a relation may take in any case, and that the marks take at least."""
DOT = 0.028
"""Inches of the mark of a change, from its middle."""
TITLES = ("relation", "n", "before", "after", "change", "95 %", "best head")


def draw(found: Changes, palette: str = DEFAULT) -> Picture:
    """A picture of two models.

    Args:
        found: what to draw. Where patterns are unknown, cells are coloured by the measure that changed most.
        palette: one of `attnviz.render.names.PALETTES`.

    Raises:
        SelectionError: there is no such palette.
    """
    with usual_settings():
        pen = blank_figure(_texts(found))
        _draw(pen, found, palette)
    return Picture(pen, visible(wording.title(found)), "; ".join(_below(found)))


def _draw(pen: Pen, found: Changes, palette: str) -> None:
    shape = found.before.n_layers, found.before.n_heads
    cell = cell_of(*shape, CELL, WIDEST)
    grid = grid_size(*shape, (cell, cell))
    width = max(LEAST_WIDTH, grid[0] + SCALE + 2 * MARGIN)
    room = width - 2 * MARGIN
    above = [
        *lines(pen, map(visible, _title(found, pen, room)), room, TITLE, colour=BLACK),
        *lines(pen, map(visible, wording.corpora_of(found)), room, TEXT + 0.5, colour=GREY),
    ]
    top = MARGIN + height_of(above) + 0.12
    listed = lines(pen, map(visible, _listed(found)), room, colour=BLACK)
    below = lines(pen, map(visible, _below(found)), room, colour=GREY)
    relations = _relations_shown(found)
    table = ROW * (len(relations) + 2) if relations else 0.0
    words = height_of([*listed, *below]) + 0.08 * bool(listed)
    page = page_of(pen, width, top + grid[1] + 0.2 + words + table + MARGIN)
    page.write(above, MARGIN)
    values = _values(found)
    largest = float(np.nanmax(values)) if np.isfinite(values).any() else 0.0
    limit = largest if largest > 0 else 1.0 if found.pattern is None else MOST
    _draw_grid(page, found, (MARGIN, top, cell), (values, limit, palette))
    number_grid(page, shape, (cell, cell), (MARGIN, top))
    bar = (MARGIN + grid[0] + 0.25, top + ABOVE, min(1.6, max(0.6, shape[0] * cell)))
    page.colour_bar(colours(palette), bar, scale_marks(0.0, limit))
    page.text(bar[0], bar[1] - 0.1, "nats" if found.pattern is not None else "share", SMALL, va="bottom", color=GREY)
    y = page.write(listed, top + grid[1] + 0.2) + 0.08 * bool(listed)
    if relations:
        _draw_relations(page, relations, (MARGIN, y), room)
    page.write(below, y + table)


def _title(found: Changes, pen: Pen, room: float) -> list[str]:
    """The title; where a line is too short for it, each model has one of its own."""
    whole = wording.title(found)
    return [whole] if pen.width(visible(whole), TITLE) <= room else whole.split(wording.BETWEEN, 2)


def _draw_grid(
    page: Page, found: Changes, place: tuple[float, float, float], coloured: tuple[np.ndarray, float, str]
) -> None:
    """A cell a head, layers from top to bottom, heads from left to right; a frame where the role changed."""
    left, top, cell = place
    values, limit, palette = coloured
    table = colours(palette)
    white = ink(table)
    level = levels(np.nan_to_num(values), limit)
    for change in found.heads:
        at = change.before.layer, change.before.head
        known = bool(np.isfinite(values[at]))
        x, y = left + BESIDE + at[1] * cell, top + ABOVE + at[0] * cell
        letters = "white" if known and white[level[at]] else BLACK
        fill = hexed(table[level[at]]) if known else NOTHING
        page.box((x, y, cell, cell), facecolor=fill, edgecolor="white", linewidth=1.0, zorder=2)
        page.box((x, y, cell, cell), fill=False, edgecolor=FRAME, linewidth=0.4, zorder=3)
        if change.role_changed:
            inset = 0.06 * cell
            inner = (x + inset, y + inset, cell - 2 * inset, cell - 2 * inset)
            style = "-" if change.role_established else (0, (1.5, 1.5))
            page.box(inner, fill=False, edgecolor=letters, linewidth=1.1, linestyle=style, zorder=4)
        _draw_signs(page, change, (x, y, cell), letters)


def _draw_signs(page: Page, change: Change, place: tuple[float, float, float], colour: str) -> None:
    """The sign of its role, or of the role before above that after; none where there is no room to read them."""
    x, y, side = place
    signs = _sign_lines(change)
    if not signs:
        return
    widest = max(page.pen.width(sign, 1.0) for sign in signs)
    inner = side * 0.82
    size = min(TEXT, inner / max(widest, POINT), inner / (len(signs) * 1.25 * POINT))
    if size < LEAST_TEXT:
        return
    for index, sign in enumerate(signs):
        middle = y + side / 2 + (index - (len(signs) - 1) / 2) * 1.25 * size * POINT
        page.text(x + side / 2, middle, sign, size, ha="center", va="center", zorder=5, color=colour)


def _sign_lines(change: Change) -> list[str]:
    before, after = map(_sign, change.roles)
    if not change.role_changed:
        return [] if change.roles[0] is None else [before]
    return [before, f"→ {after}"]


def _values(found: Changes) -> np.ndarray:
    """What cells are coloured by: pattern changes, or else the largest difference of a measure."""
    if found.pattern is not None:
        return found.matrix
    largest = [max((size(one) for one in most_changed(found, change)), default=0.0) for change in found.heads]
    return np.array(largest).reshape(found.matrix.shape)


def _listed(found: Changes) -> list[str]:
    """How many heads changed in which way; from which role to which; and what the signs of roles that stayed mean."""
    lines = ["; ".join(f"{what}: {len(names):,}" for what, names in wording.tallied(found) if names)]
    moved = wording.moves(found)
    for before, after, heads in moved[:MOVES]:
        signs = " → ".join(_sign(role) for role in (before, after))
        names = " ".join(change.name for change in heads[:MOVES])
        more = f" and {len(heads) - MOVES:,} more" if len(heads) > MOVES else ""
        lines.append(f"{signs}: {words(before)} → {words(after)}: {names}{more}")
    if len(moved) > MOVES:
        lines.append(f"and {len(moved) - MOVES:,} more sorts of change of role")
    stayed = {role.name: role for change in found.heads if not change.role_changed and (role := change.roles[0])}
    if stayed:
        lines.append("the same role: " + "; ".join(f"{_sign(role)}: {role.rule.words}" for role in stayed.values()))
    return lines


def _sign(role: Role | None) -> str:
    return NO_SIGN if role is None else role.rule.sign


def _below(found: Changes) -> list[str]:
    """How to read it, what to know, and the proofs."""
    by_measure = f"the measure of the head that changed most; tokens as a share of {MAX_OFFSET} of them"
    return [
        f"colour: {wording.HOW_PATTERN if found.pattern is not None else by_measure}",
        "in a frame: the role before and, below it, another one after; dashed: not established",
        wording.HOW_ROLES,
        *_on_relations(found),
        wording.WHERE_FROM,
        say("not_explanation"),
        *(note_words(note) for note in found.notes),
        *wording.proofs(found),
    ]


def _on_relations(found: Changes) -> list[str]:
    """How to read the lines of relations, and which are not there."""
    if not _relations_shown(found):
        return wording.on_relations(found) if found.relations else []
    more = len(wording.relations(found)) - len(_relations_shown(found))
    rest = f"; {more:,} more that changed less not drawn: a file of the ending .json has all" if more else ""
    first, change, *others = wording.on_relations(found)
    marks = "; a full mark: its interval excludes 0"
    return [f"relations between words: {first}", f"{change}{marks}{rest}", *others]


def _texts(found: Changes) -> list[str]:
    """All that the picture says, for its fonts."""
    cells = [cell for one in _relations_shown(found) for cell in _cells(one)]
    above = wording.title(found), *wording.corpora_of(found), *_listed(found)
    return [visible(text) for text in (*above, "…", *TITLES, *cells, *_below(found))]


def _relations_shown(found: Changes) -> list[RelationChange]:
    """The relations that are drawn."""
    return wording.relations(found)[:MOST_RELATIONS]


def _draw_relations(page: Page, relations: list[RelationChange], corner: tuple[float, float], width: float) -> None:
    """Draw a line a relation, in a table no wider than this: its numbers, then the interval of its change about 0."""
    left, top = corner
    pen = page.pen
    cells = [_cells(one) for one in relations]
    taken = sum(pen.widest(column, TEXT) for column in list(zip(TITLES, *cells, strict=True))[1:])
    room = max(NAME, width - taken - MARKS - (len(TITLES) + 1) * BETWEEN)
    for row in cells:
        row[0] = _fitting(row[0], room, pen)
    ends, x = [], left
    for column in zip(TITLES, *cells, strict=True):
        x += pen.widest(column, TEXT) + BETWEEN
        ends.append(x - BETWEEN)
    starts = [left, *(end + BETWEEN for end in ends[:-1])]
    for number, row in enumerate([list(TITLES), *cells]):
        y = top + (number + 0.5) * ROW
        colour = BLACK if number > 0 and relations[number - 1].established else GREY
        for place, text in enumerate(row):
            right = 0 < place < len(TITLES) - 1
            at = ends[place] if right else starts[place]
            page.text(at, y, text, ha="right" if right else "left", va="center", color=colour)
    _draw_marks(page, relations, (x + BETWEEN, top), left + width)


def _draw_marks(page: Page, relations: list[RelationChange], corner: tuple[float, float], right: float) -> None:
    """The changes as dots with their intervals, 0 in the middle."""
    from matplotlib.patches import Ellipse

    left, top = corner
    reach = max(abs(end) for one in relations for end in (one.low, one.high))
    middle, half = (left + right) / 2, (right - left) / 2 - DOT
    bottom = top + (len(relations) + 1) * ROW
    page.ax.plot([middle, middle], [top + ROW, bottom], color=FRAME, linewidth=0.8, zorder=1)
    titles = ((-reach, "left", f"{-reach:.2f}"), (0.0, "center", "0"), (reach, "right", f"+{reach:.2f}"))
    for value, side, text in titles:
        page.text(middle + half * value / reach, top + ROW / 2, text, ha=side, va="center", color=GREY)
    for row, one in enumerate(relations, 1):
        y = top + (row + 0.5) * ROW
        colour = BLACK if one.established else GREY
        ends = [middle + half * end / reach for end in (one.low, one.high)]
        page.ax.plot(ends, [y, y], color=colour, linewidth=1.1 if one.established else 0.7, zorder=2)
        at = middle + half * one.value / reach
        fill = colour if one.established else "white"
        dot = Ellipse((at, y), 2 * DOT, 2 * DOT, facecolor=fill, edgecolor=colour, linewidth=0.8, zorder=3)
        page.ax.add_patch(dot)


def _fitting(name: str, room: float, pen: Pen) -> str:
    """The name, with an ellipsis where it was cut."""
    if pen.width(name, TEXT) <= room:
        return name
    cut = pen.wrap(name, room - pen.width("…", TEXT), TEXT, most=1)[0]
    return f"{cut}…"


def _cells(one: RelationChange) -> list[str]:
    interval = f"{wording.signed(one.low)} to {wording.signed(one.high)}"
    numbers = [f"{one.before.accuracy:.2f}", f"{one.after.accuracy:.2f}", wording.signed(one.value), interval]
    return [visible(one.name) or "?", wording.links_of(one), *numbers, wording.heads_of(one)]
