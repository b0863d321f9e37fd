"""The heads of a model as a grid of layers x heads: each with the sign and the colour of its role."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from attnviz.heads.measures import RoleRule
from attnviz.heads.record import HeadComparison, Role
from attnviz.heads.wording import Cells, description, model_names, sample, say
from attnviz.render.figure.page import Line, Page, Place, lines, page_of
from attnviz.render.figure.pen import BLACK, FRAME, GREY, PITCH, POINT, SMALL, TEXT, TITLE, Pen
from attnviz.render.figure.style import Style
from attnviz.render.palette import hexed, ink
from attnviz.text.display import visible

CELLS = (0.16, 0.42)  # inches of a cell: the least, the most
HIGH = 0.75  # how high a cell of the map is, in widths
WIDEST, HIGHEST = 5.1, 7.0  # inches for which cells are made smaller
ENTRY, BETWEEN = 0.205, 0.16  # inches of a line of a table, and between its columns
BESIDE, ABOVE = 0.45, 0.4  # inches that the numbers of layers and heads take, and what they are
GAP = 0.45  # inches between the map and a table
COLUMN, SLIDE = 7.0, 8.2
"""Inches of the widest picture that has the map and a table alone; and of one of them on a slide, before it grows."""
EMPTY = "#f4f4f4"  # of a head with no clear role
KEY = 0.17  # inches that a colour with its sign is high
# how far across and down: where a corner is, how large a cell
Inches: TypeAlias = tuple[float, float]


def rule_of(role: Role | RoleRule | None) -> RoleRule | None:
    """The rule of a role that a head has; one that stands by itself, and none, as it is."""
    return role.rule if isinstance(role, Role) else role


def paler(colour: str, part: float) -> str:
    """A colour mixed with this part of white."""
    rgb = np.array([*bytes.fromhex(colour[1:])])
    return hexed((rgb + (255 - rgb) * part).round().astype(np.uint8))


def map_cell(n_layers: int, n_heads: int, widest: float = WIDEST) -> Inches:
    """Width and height of a cell, in inches: no map is wider than `widest` unless its cells are the least."""
    side = max(CELLS[0], min(CELLS[1], widest / n_heads, HIGHEST / n_layers))
    return side, max(CELLS[0], HIGH * side)


def grid_size(n_layers: int, n_heads: int, cell: Inches) -> Inches:
    """Width and height of a grid with its numbers, in inches."""
    return BESIDE + n_heads * cell[0], ABOVE + n_layers * cell[1]


def draw_grid(
    page: Page, comparison: HeadComparison, corner: Inches, cell: Inches, language: str
) -> None:
    """Draw the grid: a cell a head, layers from top to bottom, heads from left to right, with their numbers."""
    for head in comparison.heads:
        swatch(page, head.role, place_of(head.place, corner, cell))
    number_grid(page, (comparison.n_layers, comparison.n_heads), corner, cell, language)


def place_of(head: tuple[int, int], corner: Inches, cell: Inches) -> Place:
    """Where the cell of a head (layer, head) is, on a grid at this corner."""
    (layer, number), (left, top), (across, down) = head, corner, cell
    return left + BESIDE + number * across, top + ABOVE + layer * down, across, down


def write_inside(
    page: Page, place: Place, text: str, room: float, leading: float, **style: Any
) -> None:
    """Write a text into the middle of a cell, in letters that leave it room across; none where these are too small."""
    left, top, width, height = place
    size = min(TEXT, room / max(page.pen.width(text, 1.0), POINT), height / POINT / leading)
    if size >= page.pen.least:
        page.text(left + width / 2, top + height / 2, text, size, ha="center", va="center", **style)


def number_grid(
    page: Page, shape: tuple[int, int], corner: Inches, cell: Inches, language: str
) -> None:
    """Write the numbers of layers and heads along a grid of so many, as many as have room, and what they are."""
    (n_layers, n_heads), (left, top), (across, down) = shape, corner, cell
    x, y = left + BESIDE, top + ABOVE
    for head in range(0, n_heads, max(1, math.ceil(PITCH / across))):
        page.text(x + (head + 0.5) * across, y - 0.05, str(head), ha="center", va="bottom")
    for layer in range(0, n_layers, max(1, math.ceil(PITCH / down))):
        page.text(x - 0.06, y + (layer + 0.5) * down, str(layer), ha="right", va="center")
    page.text(x, top + 0.02, say("heads_from_0", language), va="top", color=GREY)
    page.write_upward(left, y + 0.01, say("layer", language), va="top", ha="left", color=GREY)


def swatch(page: Page, role: Role | RoleRule | None, place: Place) -> None:
    """A rectangle in the colour of a role with its sign, where that has room; not established: hatched and pale."""
    (_, _, width, height), rule = place, rule_of(role)
    colour = EMPTY if rule is None else rule.colour
    doubtful = isinstance(role, Role) and not role.established
    patch = page.box(
        place,
        facecolor=paler(colour, 0.82) if doubtful else colour,
        edgecolor=paler(colour, 0.45) if doubtful else "none",
        hatch="////" if doubtful else None,
        linewidth=0,
        zorder=2,
    )
    patch.set_hatch_linewidth(0.7)
    page.box(
        place, fill=False, edgecolor="white", linewidth=1.0 if height > 0.15 else 0.3, zorder=3
    )
    if rule is not None:
        is_white = not doubtful and ink(np.array([[*bytes.fromhex(colour[1:])]], dtype=np.uint8))[0]
        letters = "white" if is_white else BLACK
        write_inside(page, place, rule.sign, width - 0.04, 1.4, zorder=4, color=letters)


def key_width(role: Role | RoleRule | None, pen: Pen) -> float:
    """How wide a colour with its sign is, in inches."""
    rule = rule_of(role)
    return max(0.34, 0 if rule is None else pen.width(rule.sign, SMALL + 0.5) + 0.08)


def keys_width(pen: Pen, roles: Iterable[Role | RoleRule | None]) -> float:
    """How wide the keys beside a table are with what keeps them apart from it, in inches; 0 without any."""
    return max((key_width(role, pen) + 0.1 for role in roles), default=0.0)


def draw_key(page: Page, role: Role | RoleRule | None, corner: Inches) -> None:
    """Draw the colour and the sign of a role, beside which its words stand."""
    swatch(page, role, (*corner, key_width(role, page.pen), KEY))
    if role is None:
        page.box(
            (*corner, key_width(role, page.pen), KEY),
            fill=False,
            edgecolor=FRAME,
            linewidth=0.4,
            zorder=3,
        )


def fitting(pen: Pen, columns: Iterable[Cells], room: float) -> list[Cells]:
    """The first columns, as many as stand in so many inches; one at least, with what a terminal would obey spelled."""
    shown: list[Cells] = []
    for column in columns:
        shown.append(column._replace(cells=list(map(visible, column.cells))))
        if len(shown) > 1 and table_width(pen, shown) > room:
            return shown[:-1]
    return shown


def table_width(pen: Pen, columns: Sequence[Cells]) -> float:
    """The width of a table, in inches."""
    return sum(pen.widest([one.title, *one.cells]) for one in columns) + BETWEEN * (
        len(columns) - 1
    )


def draw_table(
    page: Page,
    columns: Sequence[Cells],
    corner: Inches,
    *,
    roles: Sequence[Role | RoleRule | None] = (),
    quiet: Sequence[bool] = (),
) -> None:
    """Draw a table at (left, top), a line a row: behind the keys of roles, if it is of these; the unsure in grey."""
    x, top = corner
    for number, role in enumerate(roles, 1):
        draw_key(page, role, (x, top + number * ENTRY + (ENTRY - KEY) / 2))
    x += keys_width(page.pen, roles)
    quiet = quiet or [
        not isinstance(role, RoleRule) and not (role and role.established) for role in roles
    ]
    for title, cells, right in columns:
        wide = page.pen.widest([title, *cells])
        at, ha = (x + wide, "right") if right else (x, "left")
        page.text(at, top + 0.5 * ENTRY, title, ha=ha, va="center", color=GREY)
        for row, cell in enumerate(cells):
            colour = GREY if quiet and quiet[row] else BLACK
            page.text(at, top + (row + 1.5) * ENTRY, cell, ha=ha, va="center", color=colour)
        x += wide + BETWEEN


def about(comparison: HeadComparison, language: str) -> str:
    """Describe the model, the measures and the sentences."""
    words = model_names(comparison), description(comparison, language), sample(comparison, language)
    return " · ".join(map(visible, words))


def heading(
    pen: Pen, title: str, about: Sequence[str], room: float, larger: float | None = None
) -> list[Line]:
    """The title, so many times as large as usual, or as large as fits on a line up to a limit; and what it is about."""
    larger = larger or min(1.35, max(1.0, 1.35 * room / pen.width(title, 1.35 * TITLE)))
    return [
        *lines(pen, [title], room, TITLE * larger, leading=1.5),
        *lines(pen, about, room, colour=GREY),
    ]


def begin_page(pen: Pen, width: float) -> Page:
    """A page to be drawn from above to below, until `end_page`: only then is it known how high it is."""
    return page_of(pen, width, 1.0)


def end_page(page: Page, height: float) -> None:
    """Make a page so high, in inches: what is said at its lower edge, of characters that no font has, moves with it."""
    width, before = page.size
    page.pen.figure.set_size_inches(width, height)
    page.ax.set_ylim(height, 0)
    for text in page.ax.texts[: bool(page.pen.typefaces.missing)]:
        text.set_y(text.get_position()[1] + height - before)


def is_brief(style: Style) -> bool:
    """Whether a picture has room for the map and a table alone."""
    return style.width is not None and (bool(style.height) or style.width < COLUMN)


def draw_brief(
    pen: Pen,
    style: Style,
    draw_map: Callable[[Page, Inches, Inches], None],
    *,
    shape: tuple[int, int],
    words: tuple[str, Sequence[str]],
    columns: Sequence[Cells],
    least: float,
    scale: float = 0.0,
    roles: Sequence[Role | None] = (),
) -> None:
    """Draw a map with a table below it, or on a slide beside it; the title and the notes are `words`.

    `draw_map` is given the corner and the size of a cell of so many layers and heads. In inches: the page is `least`
    wide or more, and `scale` is free beside the map.
    """
    keys, margin = keys_width(pen, roles), style.margin
    if style.height:
        cell = map_cell(*shape)
        across = grid_size(*shape, cell)[0] + scale + GAP
        shown = fitting(pen, columns, SLIDE - across - keys)
        width = max(least, across + keys + table_width(pen, shown) + 2 * margin)
    else:
        across = 0.0
        shown = fitting(pen, columns, least - 2 * margin - keys)
        width = max(least, keys + table_width(pen, shown) + 2 * margin)
        cell = map_cell(*shape, width - 2 * margin - BESIDE - scale)
        width = max(width, grid_size(*shape, cell)[0] + scale + 2 * margin)
    page, high, (title, notes) = begin_page(pen, width), grid_size(*shape, cell)[1], words
    above = lines(pen, [title] * style.has_title, width - 2 * margin, TITLE, leading=1.5)
    top = page.write(above, margin, margin) + 0.1 * bool(above)
    below = top if style.height else top + high + 0.12
    foot = max(top + high, below + ENTRY * (1 + len(shown[0].cells))) + 0.1 * bool(notes)
    end_page(page, page.write(lines(pen, notes, width - 2 * margin), foot, margin) + margin)
    draw_map(page, (margin, top), cell)
    draw_table(page, shown, (margin + across, below), roles=roles)
