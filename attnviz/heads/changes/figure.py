"""What two models' heads do otherwise, as PNG, SVG or PDF: a grid of layers x heads, coloured by how far each changed.

As in the other figures nothing touches pyplot, and Matplotlib's settings are what they were afterwards.
"""

from __future__ import annotations

import math
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from attnviz.heads.changes import relations_figure as related
from attnviz.heads.changes import wording as say
from attnviz.heads.changes.compare import most_changed, size
from attnviz.heads.changes.record import MOST, Change, Changes
from attnviz.heads.changes.wording import words
from attnviz.heads.notes import note_words
from attnviz.heads.record import Role
from attnviz.heads.settings import MAX_OFFSET
from attnviz.heads.wording import NOT_EXPLANATION
from attnviz.render.figure.export import blank_sheet, save, usual_settings
from attnviz.render.figure.page import canvas
from attnviz.render.figure.pen import BLACK, FRAME, GREY, LEAST_TEXT, MARGIN, PITCH, POINT, SMALL, TEXT, TITLE, Pen
from attnviz.render.fonts import Typefaces, typefaces_for
from attnviz.render.palette import DEFAULT, colours, hexed, ink, levels
from attnviz.text.display import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CELLS = (0.16, 0.62)
"""Inches of a cell: the least, the most."""
WIDEST, HIGHEST = 7.6, 8.4
"""Inches for which cells are made smaller."""
BESIDE, ABOVE = 0.5, 0.42
"""Inches that the numbers of layers and heads take, and what they are."""
SCALE = 1.1
"""Inches that the colour scale takes beside the grid."""
LEAST_WIDTH = 6.2
"""Inches of the narrowest figure: its words need room."""
LINE = 1.35
"""A line of text, in sizes of its letters."""
NOTHING = "#f1f1f1"
"""Of a head that was not measured."""
NO_SIGN = "–"  # noqa: RUF001 - an en dash is meant
"""Stands in a cell for no clear role, where a head has one in the other model."""
MOVES = 12
"""So many changes of role are listed."""


def figure(found: Changes, palette: str = DEFAULT) -> Figure:
    """A figure of two models.

    Args:
        found: what to draw. Where patterns are unknown, cells are coloured by the measure that changed most.
        palette: one of `attnviz.render.palette.PALETTES`.

    Raises:
        SelectionError: there is no such palette.
    """
    with usual_settings():
        pen = blank_sheet(_texts(found))
        _draw(pen, found, palette)
    return pen.figure


def write(found: Changes, path: Path | BytesIO, suffix: str, *, palette: str = DEFAULT) -> Typefaces:
    """Draw two models into a file.

    Args:
        found: what to draw.
        path: the file, or what it is written into.
        suffix: `.png`, `.svg` or `.pdf`.
        palette: one of `attnviz.render.palette.PALETTES`.

    Returns:
        The fonts used, with the characters that none has.

    Raises:
        SelectionError: there is no such palette.
    """
    title = visible(say.title(found))
    save(figure(found, palette), path, suffix, title=title, description="; ".join(_below(found)))
    return typefaces_for(_texts(found))


def _draw(pen: Pen, found: Changes, palette: str) -> None:
    n_layers, n_heads = found.before.n_layers, found.before.n_heads
    least, most = CELLS
    cell = max(least, min(most, WIDEST / n_heads, HIGHEST / n_layers))
    grid = (BESIDE + n_heads * cell, ABOVE + n_layers * cell)
    width = max(LEAST_WIDTH, grid[0] + SCALE + 2 * MARGIN)
    room = width - 2 * MARGIN
    above = [
        (line, size, colour)
        for text, size, colour in [
            *((text, TITLE, BLACK) for text in _title(found, pen, room)),
            *((text, TEXT + 0.5, GREY) for text in say.measured_on(found)),
        ]
        for line in pen.wrap(visible(text), room, size)
    ]
    top = MARGIN + sum(LINE * size * POINT for _, size, _ in above) + 0.12
    listed = [line for text in _listed(found) for line in pen.wrap(visible(text), room, TEXT)]
    below = [line for text in _below(found) for line in pen.wrap(visible(text), room, TEXT)]
    n_lines = len(listed) + len(below)
    height = top + grid[1] + 0.2 + n_lines * LINE * TEXT * POINT + 0.08 * bool(listed) + related.height(found) + MARGIN
    paper = canvas(pen, width, height)
    y = MARGIN
    for line, letters, colour in above:
        paper.text(MARGIN, y, line, va="top", **pen.style(letters, color=colour))
        y += LINE * letters * POINT
    values = _values(found)
    largest = float(np.nanmax(values)) if np.isfinite(values).any() else 0.0
    limit = largest if largest > 0 else 1.0 if found.pattern is None else MOST
    _grid(paper, pen, found, (MARGIN, top, cell), (values, limit, palette))
    scale_height = min(1.6, max(0.6, n_layers * cell))
    _scale(paper, pen, found, (MARGIN + grid[0] + 0.25, top + ABOVE, scale_height), (limit, palette))
    y = top + grid[1] + 0.2
    for lines, colour in ((listed, BLACK), (below, GREY)):
        for line in lines:
            paper.text(MARGIN, y, line, va="top", **pen.style(TEXT, color=colour))
            y += LINE * TEXT * POINT
        y += 0.08 * bool(lines)
        if lines is listed:
            related.draw(paper, pen, found, (MARGIN, y), room)
            y += related.height(found)


def _title(found: Changes, pen: Pen, room: float) -> list[str]:
    """The title; where a line is too short for it, each model has one of its own."""
    whole = say.title(found)
    return [whole] if pen.width(visible(whole), TITLE) <= room else whole.split(say.BETWEEN, 2)


def _grid(
    paper: Axes,
    pen: Pen,
    found: Changes,
    place: tuple[float, float, float],
    coloured: tuple[np.ndarray, float, str],
) -> None:
    """A cell a head, layers from top to bottom, heads from left to right."""
    from matplotlib.patches import Rectangle

    left, top, cell = place
    values, limit, palette = coloured
    x, y = left + BESIDE, top + ABOVE
    table = colours(palette)
    white = ink(table)
    level = levels(np.nan_to_num(values), limit)
    for change in found.heads:
        at = change.before.layer, change.before.head
        known = bool(np.isfinite(values[at]))
        corner = (x + at[1] * cell, y + at[0] * cell)
        fill = hexed(table[level[at]]) if known else NOTHING
        letters = "white" if known and white[level[at]] else BLACK
        paper.add_patch(Rectangle(corner, cell, cell, facecolor=fill, edgecolor="white", linewidth=1.0, zorder=2))
        paper.add_patch(Rectangle(corner, cell, cell, fill=False, edgecolor=FRAME, linewidth=0.4, zorder=3))
        if change.role_changed:
            inset = 0.06 * cell
            style = "-" if change.role_established else (0, (1.5, 1.5))
            paper.add_patch(
                Rectangle(
                    (corner[0] + inset, corner[1] + inset), cell - 2 * inset, cell - 2 * inset,
                    fill=False, edgecolor=letters, linewidth=1.1, linestyle=style, zorder=4,
                )
            )  # fmt: skip
        _signs(paper, pen, change, (*corner, cell), letters)
    step = max(1, math.ceil(PITCH / cell))
    quiet = pen.style(TEXT, color=GREY)
    for head in range(0, found.before.n_heads, step):
        paper.text(x + (head + 0.5) * cell, y - 0.05, str(head), ha="center", va="bottom", **pen.style())
    for layer in range(0, found.before.n_layers, step):
        paper.text(x - 0.06, y + (layer + 0.5) * cell, str(layer), ha="right", va="center", **pen.style())
    paper.text(x, top + 0.02, "head, counted from 0", va="top", **quiet)
    paper.text(left, y + 0.01, "layer", va="top", rotation=90, ha="left", **quiet)


def _signs(paper: Axes, pen: Pen, change: Change, place: tuple[float, float, float], colour: str) -> None:
    """The sign of its role, or of the role before above that after; none where there is no room to read them."""
    x, y, side = place
    lines = _sign_lines(change)
    if not lines:
        return
    widest = max(pen.width(line, 1.0) for line in lines)
    inner = side * 0.82
    letters = min(TEXT, inner / max(widest, POINT), inner / (len(lines) * 1.25 * POINT))
    if letters < LEAST_TEXT:
        return
    for index, line in enumerate(lines):
        middle = y + side / 2 + (index - (len(lines) - 1) / 2) * 1.25 * letters * POINT
        paper.text(
            x + side / 2, middle, line, ha="center", va="center", zorder=5, **pen.style(letters, color=colour)
        )  # fmt: skip


def _sign_lines(change: Change) -> list[str]:
    before, after = map(_sign, change.roles)
    if not change.role_changed:
        return [] if change.roles[0] is None else [before]
    return [before, f"→ {after}"]


def _scale(paper: Axes, pen: Pen, found: Changes, place: tuple[float, float, float], scaled: tuple[float, str]) -> None:
    """What the colours mean, upright, at (left, top, height)."""
    from matplotlib.patches import Rectangle

    left, top, height = place
    limit, palette = scaled
    paper.imshow(colours(palette)[::-1, None], extent=(left, left + 0.12, top + height, top), aspect="auto", zorder=2)
    paper.add_patch(Rectangle((left, top), 0.12, height, fill=False, edgecolor=FRAME, linewidth=0.6, zorder=3))
    for fraction in (0.0, 0.5, 1.0):
        y = top + height * (1 - fraction)
        label = f"{fraction * limit:.2g}" if fraction else "0"
        paper.plot([left + 0.12, left + 0.15], [y, y], color=GREY, linewidth=0.6)
        paper.text(left + 0.18, y, label, va="center", **pen.style(SMALL, color=GREY))
    what = "nats" if found.pattern is not None else "share"
    paper.text(left, top - 0.1, what, va="bottom", **pen.style(SMALL, color=GREY))


def _values(found: Changes) -> np.ndarray:
    """What cells are coloured by: pattern changes, or else the largest difference of a measure."""
    if found.pattern is not None:
        return found.matrix
    largest = [max((size(one) for one in most_changed(found, change)), default=0.0) for change in found.heads]
    return np.array(largest).reshape(found.matrix.shape)


def _listed(found: Changes) -> list[str]:
    """How many heads changed in which way; from which role to which; and what the signs of roles that stayed mean."""
    lines = ["; ".join(f"{what}: {len(names):,}" for what, names in say.tallied(found) if names)]
    moved = say.moves(found)
    for before, after, heads in moved[:MOVES]:
        signs = " → ".join(_sign(role) for role in (before, after))
        names = " ".join(change.name for change in heads[:MOVES])
        more = f" and {len(heads) - MOVES:,} more" if len(heads) > MOVES else ""
        lines.append(f"{signs}: {words(before)} → {words(after)}: {names}{more}")
    if len(moved) > MOVES:
        lines.append(f"and {len(moved) - MOVES:,} more sorts of change of role")
    stayed = {role.name: role for change in found.heads if not change.role_changed and (role := change.roles[0])}
    if stayed:
        lines.append("the same role: " + "; ".join(f"{_sign(role)}: {role.words}" for role in stayed.values()))
    return lines


def _sign(role: Role | None) -> str:
    return NO_SIGN if role is None else role.sign


def _below(found: Changes) -> list[str]:
    """How to read it, what to know, and the proofs."""
    by_measure = f"the measure of the head that changed most; tokens as a share of {MAX_OFFSET} of them"
    return [
        f"colour: {say.HOW_PATTERN if found.pattern is not None else by_measure}",
        "in a frame: the role before and, below it, another one after; dashed: not established",
        say.HOW_ROLES,
        *_on_relations(found),
        say.WHERE_FROM,
        NOT_EXPLANATION,
        *(note_words(note) for note in found.notes),
        *say.proofs(found),
    ]


def _on_relations(found: Changes) -> list[str]:
    """How to read the lines of relations, and which are not there."""
    if not related.shown(found):
        return say.on_relations(found) if found.relations else []
    more = len(say.relations(found)) - len(related.shown(found))
    rest = f"; {more:,} more that changed less not drawn: a file of the ending .json has all" if more else ""
    first, change, *others = say.on_relations(found)
    marks = "; a full mark: its interval excludes 0"
    return [f"relations between words: {first}", f"{change}{marks}{rest}", *others]


def _texts(found: Changes) -> list[str]:
    above = say.title(found), *say.measured_on(found), *_listed(found)
    return [visible(text) for text in (*above, *related.texts(found), *_below(found))]
