"""Parts of the figures of heads: cells in the colours of roles, maps of heads, and tables.

Positions are in inches from the upper left corner of the page.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Real

from attnviz.attention import Attention
from attnviz.heads import tables, words
from attnviz.heads.measures import GROUPS
from attnviz.heads.record import HeadComparison, Role
from attnviz.heads.selection import by_role, groups_of, received_by_words
from attnviz.render.columns import Column
from attnviz.render.figure.export import Picture
from attnviz.render.figure.page import Page, Place, page_of
from attnviz.render.figure.pen import PITCH, POINT, TEXT, TITLE, Pen
from attnviz.render.palette import hexed, levels, rgb_of, text_colours
from attnviz.render.theme import Theme
from attnviz.text.display import clip, visible
from attnviz.text.messages import _

CELL_LINES = 3  # most lines of a text in a cell
BESIDE, ABOVE = 0.45, 0.4  # inches for the layer numbers (left) and the head numbers (above)
ENTRY, BETWEEN, KEY = 0.205, 0.16, 0.24  # inches: height of a table row, between columns, a swatch
GAP = 0.45  # inches between the map and a table
Inches: TypeAlias = tuple[float, float]
RoleNumbers: TypeAlias = dict[tuple[str, bool], str]
"""The numbers of roles on a map, by their names and by whether they are established."""


def begin(pen: Pen, width: float) -> Page:
    """Return a page that is drawn from top to bottom; `finish` sets its height."""
    return page_of(pen, width, 1.0)


def finish(page: Page, height: float) -> None:
    """Set the height of a page; the line about characters missing from the fonts moves with its lower edge."""
    width, before = page.size
    page.pen.figure.set_size_inches(width, height)
    page.ax.set_ylim(height, 0)
    if page.pen.typefaces.missing:
        line = page.ax.texts[0]
        line.set_y(line.get_position()[1] + height - before)


def picture_of(pen: Pen, title: str, comparison: HeadComparison) -> Picture:
    """Return the picture that was drawn, with the model in its title and the corpus and receipt as its description."""
    names = visible(words.model_names(comparison))
    return Picture(
        pen, f"{title}: {names}", f"{words.sample(comparison)}; {words.proof(comparison)}"
    )


def grid_size(comparison: HeadComparison, cell: Inches) -> Inches:
    """Return the width and height of a map with its numbers, in inches."""
    return BESIDE + comparison.n_heads * cell[0], ABOVE + comparison.n_layers * cell[1]


def draw_map(page: Page, comparison: HeadComparison, corner: Inches, cell: Inches) -> RoleNumbers:
    """Draw each head's clearest role in words, one row per layer.

    If a cell is too small for its words, all have the number of the role's row in the table instead, or only colours
    where numbers do not fit either; the numbers on the map are returned.
    """
    labels = {
        head.place: visible(tables.map_label(head.role)) if head.role else ""
        for head in comparison.heads
    }
    numbers: RoleNumbers = {}
    if not all(_fit_text(page.pen, label, cell) for label in labels.values()):
        first_roles = [row[0].role for row in by_role(comparison)]
        numbers = {
            (role.name, role.established): str(number)
            for number, role in enumerate(first_roles, 1)
            if role is not None
        }
    if not all(_fit_text(page.pen, number, cell) for number in numbers.values()):
        numbers, labels = {}, dict.fromkeys(labels, "")  # only colours
    for head in comparison.heads:
        label = labels[head.place]
        if numbers and head.role is not None:
            label = numbers[head.role.name, head.role.established]
        colour = _role_colour(head.role, page.pen.theme)
        _draw_cell(page, colour, label, place_of(head.place, corner, cell))
    number_grid(page, (comparison.n_layers, comparison.n_heads), corner, cell)
    return numbers


def place_of(head: tuple[int, int], corner: Inches, cell: Inches) -> Place:
    """Return the position and size of the cell of a head, on a map with this upper left corner."""
    left, top = corner[0] + BESIDE + head[1] * cell[0], corner[1] + ABOVE + head[0] * cell[1]
    return left, top, cell[0], cell[1]


def number_grid(page: Page, shape: tuple[int, int], corner: Inches, cell: Inches) -> None:
    """Write the numbers of layers and heads along a map; numbers that do not fit are left out."""
    left, top = corner[0] + BESIDE, corner[1] + ABOVE
    for head in range(0, shape[1], max(1, math.ceil(PITCH / cell[0]))):
        page.text(left + (head + 0.5) * cell[0], top - 0.05, str(head), ha="center", va="bottom")
    for layer in range(0, shape[0], max(1, math.ceil(PITCH / cell[1]))):
        page.text(left - 0.06, top + (layer + 0.5) * cell[1], str(layer), ha="right", va="center")
    title = visible(_("head, counted from 0"))
    page.text(left, corner[1] + 0.02, title, va="top", color=page.pen.quiet)
    layers = visible(_("layer"))
    page.write_upward(corner[0], top + 0.01, layers, va="top", ha="left", color=page.pen.quiet)


def draw_colour_legend(
    page: Page, comparison: HeadComparison, corner: Inches, right: float
) -> float:
    """Draw the colour and the name of each group of roles on the map, not beyond `right`; return the lower end."""
    left, top = corner
    for name, colour in map(GROUPS.__getitem__, groups_of(comparison)):
        text = visible(_(name))
        width = KEY + 0.05 + page.pen.width(text)
        if left > corner[0] and left + width > right:
            left, top = corner[0], top + ENTRY
        _draw_cell(page, colour, "", (left, top, KEY, 0.13), edge=(page.pen.quiet, 0.5))
        page.text(left + KEY + 0.05, top + 0.065, text, va="center", color=page.pen.quiet)
        left += width + 0.2
    return top + 0.13


def _role_colour(role: Role | None, theme: Theme) -> str:
    """Return the colour of a role, pale if the role is not established."""
    if role is None:
        return theme.shade
    return role.rule.colour if role.established else theme.paler(role.rule.colour)


def draw_swatch(page: Page, role: Role | None, place: Place, text: str = "") -> None:
    """Draw a small cell in the colour of a role, with a question mark if the role is not established.

    Its outline makes a pale colour visible on the paper.
    """
    doubtful = role is not None and not role.established
    pen = page.pen
    _draw_cell(
        page, _role_colour(role, pen.theme), text or "?" * doubtful, place, edge=(pen.quiet, 0.5)
    )


def _draw_cell(
    page: Page, colour: str, text: str, place: Place, *, edge: tuple[str, float] | None = None
) -> None:
    """Draw a cell with a text in its middle, scaled to fit; no text if the letters would be too small.

    `edge` is the colour of its edge and the width of the line in points; by default a gap in the colour of the paper.
    """
    left, top, width, height = place
    edge_colour, line_width = edge or (page.pen.theme.paper, 1.0 if height > 0.15 else 0.3)
    page.box(place, facecolor=colour, edgecolor=edge_colour, linewidth=line_width, zorder=2)
    fitted = _fit_text(page.pen, text, (width, height))
    if fitted is None or not text:
        return
    style: dict[str, Any] = {"ha": "center", "va": "center", "zorder": 4, "linespacing": 1.05}
    style["color"] = str(text_colours(rgb_of(colour)))
    broken, size = fitted
    page.text(left + width / 2, top + height / 2, broken, size, **style)


def _fit_text(pen: Pen, text: str, cell: Inches) -> tuple[str, float] | None:
    """Return a text in lines that fit a cell, with the largest font size; None if no readable size fits."""
    room = cell[0] - 0.04
    # The letters grow in a cell that is much higher than they are, as on a slide.
    size = min(max(TEXT, min(TITLE, cell[1] / POINT / 6)), cell[1] / POINT / 1.35)
    while size >= pen.least:
        broken = pen.wrap(text, room, size)
        words_fit = pen.widest(text.split(), size) <= room
        if words_fit and len(broken) <= min(CELL_LINES, int(cell[1] / (1.3 * size * POINT))):
            return "\n".join(broken), size
        size -= 0.25
    return None


def translated(columns: Iterable[Column]) -> list[Column]:
    """Return columns with control characters made visible."""
    return [
        replace(
            column,
            title=visible(column.title),
            cells=[visible(cell) for cell in column.cells],
        )
        for column in columns
    ]


def texts_of(columns: Iterable[Column]) -> list[str]:
    """Return all texts of columns, to choose fonts."""
    return [text for column in columns for text in (column.title, *column.cells)]


def _column_width(pen: Pen, column: Column) -> float:
    """Return the width of a column, in inches."""
    # A column of roles without a title has their marks, which are drawn as swatches.
    if not column.title and column.roles:
        return KEY
    return pen.widest([column.title, *column.cells])


def table_width(pen: Pen, columns: Sequence[Column]) -> float:
    """Return the width of a table with the space between its columns, in inches."""
    return sum(_column_width(pen, column) for column in columns) + BETWEEN * (len(columns) - 1)


def fitting_columns(pen: Pen, columns: Sequence[Column], room: float) -> list[Column]:
    """Return as many of the first columns as fit into `room`, but at least two."""
    n = len(columns)
    while n > 2 and table_width(pen, columns[:n]) > room:
        n -= 1
    return list(columns[:n])


def draw_table(
    page: Page, columns: Sequence[Column], corner: Inches, numbers: RoleNumbers | None = None
) -> None:
    """Draw a table; roles that are not established are grey, and their marks are drawn as swatches.

    `numbers` has the numbers of the roles that stand on the map instead of their names.
    """
    left, top = corner
    roles = columns[0].roles
    for column in columns:
        width = _column_width(page.pen, column)
        at, ha = (left + width, "right") if column.right else (left, "left")
        page.text(at, top + 0.5 * ENTRY, column.title, ha=ha, va="center", color=page.pen.quiet)
        for row, text in enumerate(column.cells):
            middle = top + (row + 1.5) * ENTRY
            if not column.title and column.roles:
                place, own = (left, middle - 0.085, width, 0.17), column.roles[row]
                number = (numbers or {}).get((own.name, own.established), "") if own else ""
                draw_swatch(page, own, place, number)
                continue
            role = roles[row] if roles else None
            is_grey = bool(roles) and not (role and role.established)
            colour = page.pen.quiet if is_grey else page.pen.ink
            page.text(at, middle, text, ha=ha, va="center", color=colour)
        left += width + BETWEEN


def draw_values(
    page: Page,
    values: Real[np.ndarray, "layer head"],
    texts: Mapping[tuple[int, ...], str],
    corner: Inches,
    cell: Inches,
) -> None:
    """Draw a cell for each head in the colour of a value from 0 to 1, with a text in it."""
    table = page.pen.theme.colours()
    for place, text in texts.items():
        colour = hexed(table[levels(values[place].reshape(1), 1.0)[0]])
        _draw_cell(page, colour, text, place_of((place[0], place[1]), corner, cell))
    number_grid(page, (values.shape[0], values.shape[1]), corner, cell)


def draw_words(page: Page, record: Attention, corner: Inches, cell: Inches) -> None:
    """Draw a map with the word that receives most attention from each head, in the colour of its share."""
    received = received_by_words(record)
    texts = {
        place: clip(visible(record.key_tokens[int(received[place].argmax())].text), 12)
        for place in np.ndindex(*received.shape[:2])
    }
    draw_values(page, received.max(axis=2), texts, corner, cell)


def draw_divergences(page: Page, comparison: HeadComparison, corner: Inches, cell: Inches) -> None:
    """Draw a map with the divergence of each head from the second model."""
    values = np.array([head.change.divergence for head in comparison.heads if head.change])
    values = values.reshape(comparison.n_layers, comparison.n_heads)
    numbers = {
        place: "" if np.isnan(values[place]) else f"{values[place]:.2f}"[1:]
        for place in np.ndindex(*values.shape)
    }
    # Scale to the largest divergence, which gets the darkest colour; 1e-9 avoids a division by 0.
    shades = np.nan_to_num(values / max(np.nanmax(values, initial=0.0), 1e-9))
    draw_values(page, shades, numbers, corner, cell)
