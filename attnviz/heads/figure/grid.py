"""The heads of a model as a grid of layers x heads, each in the colour of its role, and what the colours mean."""

from __future__ import annotations

import math

import numpy as np

from attnviz.heads.notes import doubts
from attnviz.heads.record import HeadComparison, Role
from attnviz.heads.selection import tallied
from attnviz.heads.wording import counted
from attnviz.render.figure.page import Line, Page, Place, height_of, lines
from attnviz.render.figure.pen import BLACK, FRAME, GREY, LEAST_TEXT, PITCH, POINT, SMALL, TEXT, Pen
from attnviz.render.palette import hexed, luminance
from attnviz.text.display import clip, visible

CELLS = (0.16, 0.54)
"""Inches of a cell: the least, the most."""
WIDEST, HIGHEST = 6.5, 8.4
"""Inches for which cells are made smaller."""
BESIDE, ABOVE = 0.5, 0.42
"""Inches that the numbers of layers and heads take, and what they are."""
EMPTY = "#f1f1f1"
"""Of a head with no clear role."""
SWATCH, ENTRY = 0.2, 0.25
"""Inches of the colours of the legend, and of its entries."""
KEY = 1.7 * SWATCH
"""Inches across of a colour with its sign."""


def colour_of(role: Role | None) -> str:
    """The colour of a role, on paper."""
    return EMPTY if role is None else role.rule.colour


def paler(colour: str, part: float = 0.7) -> str:
    """A colour mixed with this part of white."""
    rgb = _rgb(colour)
    return hexed((rgb + (255 - rgb) * part).round().astype(np.uint8))


def ink_on(colour: str) -> str:
    """Black or white, whichever is easier to read on a colour."""
    light = float(luminance(_rgb(colour).astype(np.uint8)))
    return "white" if 1.05 / (light + 0.05) > (light + 0.05) / 0.05 else BLACK


def _rgb(colour: str) -> np.ndarray:
    return np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)], dtype=np.float64)


def cell_of(n_layers: int, n_heads: int, most: float = CELLS[1], widest: float = WIDEST) -> float:
    """The side of a cell, in inches: `most` where the grid then is no wider than `widest`."""
    return max(CELLS[0], min(most, widest / n_heads, HIGHEST / n_layers))


def grid_size(n_layers: int, n_heads: int, cell: float) -> tuple[float, float]:
    """Width and height of a grid with its numbers, in inches."""
    return BESIDE + n_heads * cell, ABOVE + n_layers * cell


def draw_grid(page: Page, comparison: HeadComparison, left: float, top: float) -> None:
    """Draw the grid: a cell a head, layers from top to bottom, heads from left to right, with their numbers."""
    cell = cell_of(comparison.n_layers, comparison.n_heads)
    for head in comparison.heads:
        place = (left + BESIDE + head.head * cell, top + ABOVE + head.layer * cell, cell, cell)
        role = head.roles[0] if head.roles else None
        swatch(page, role, place)
        if role is not None:
            size = min(TEXT, (cell - 0.05) / max(page.pen.width(role.rule.sign, 1.0), POINT))
            if size >= LEAST_TEXT:
                _write_sign(page, role, place, size)
    number_grid(page, (comparison.n_layers, comparison.n_heads), cell, left, top)


def number_grid(page: Page, shape: tuple[int, int], cell: float, left: float, top: float) -> None:
    """Write the numbers of layers and heads along a grid of so many, as many as have room, and what they are."""
    n_layers, n_heads = shape
    x, y = left + BESIDE, top + ABOVE
    step = max(1, math.ceil(PITCH / cell))
    for head in range(0, n_heads, step):
        page.text(x + (head + 0.5) * cell, y - 0.05, str(head), ha="center", va="bottom")
    for layer in range(0, n_layers, step):
        page.text(x - 0.06, y + (layer + 0.5) * cell, str(layer), ha="right", va="center")
    page.text(x, top + 0.02, "head, counted from 0", va="top", color=GREY)
    page.text(left, y + 0.01, "layer", va="top", rotation=90, ha="left", color=GREY)


def _write_sign(page: Page, role: Role, place: Place, size: float) -> None:
    left, top, width, height = place
    ink = ink_on(colour_of(role)) if role.established else BLACK
    page.text(left + width / 2, top + height / 2, role.rule.sign, size, ha="center", va="center", zorder=4, color=ink)


def swatch(page: Page, role: Role | None, place: Place) -> None:
    """A rectangle in the colour of a role; hatched and pale where it is not established."""
    colour, height = colour_of(role), place[3]
    doubtful = role is not None and not role.established
    patch = page.box(
        place,
        facecolor=paler(colour, 0.82) if doubtful else colour,
        edgecolor=paler(colour, 0.45) if doubtful else "none",
        hatch="////" if doubtful else None,
        linewidth=0,
        zorder=2,
    )
    patch.set_hatch_linewidth(0.7)
    page.box(place, fill=False, edgecolor="white", linewidth=1.0 if height > 0.15 else 0.3, zorder=3)
    if role is None and height > 0.15:
        page.box(place, fill=False, edgecolor=FRAME, linewidth=0.4, zorder=3)


def legend_entries(comparison: HeadComparison) -> list[tuple[Role | None, str]]:
    """The signs and colours of the grid and what they mean, in words, with how many heads have them."""
    entries: list[tuple[Role | None, str]] = []
    for _, words, heads, n_established in tallied(comparison):
        roles = [head.roles[0] for head in heads if head.roles]
        if not roles:
            entries.append((None, f"{words}: {counted(len(heads), 'head')}"))
            continue
        shown = next((role for role in roles if role.established), roles[0])
        how_many = "established" if n_established == len(roles) else f"{n_established or 'none'} established"
        entries.append((shown, f"{visible(words)}: {counted(len(roles), 'head')}, {how_many}"))
    return entries


def legend_notes(comparison: HeadComparison) -> list[str]:
    """How to read the grid, where there is something to read."""
    signs = any(role is not None for role, _ in legend_entries(comparison))
    why = doubts(comparison.heads)
    return [
        *(["each head has the colour of its clearest role, and that role's sign"] if signs else []),
        *([f"hatched and pale: not established, since {why}"] if why else []),
    ]


def _note_lines(comparison: HeadComparison, pen: Pen, width: float) -> list[Line]:
    written = lines(pen, legend_notes(comparison), width, SMALL + 0.5, colour=GREY)
    return [Line(line.text, line.size, line.colour, 1.5 * SMALL * POINT) for line in written]


def legend_height(comparison: HeadComparison, pen: Pen, width: float) -> float:
    """How high the legend is, in inches."""
    return ENTRY * len(legend_entries(comparison)) + height_of(_note_lines(comparison, pen, width)) + 0.05


def draw_legend(page: Page, comparison: HeadComparison, place: tuple[float, float, float]) -> None:
    """Draw what the colours and signs of the grid mean, at (left, top, width)."""
    left, top, width = place
    entries = legend_entries(comparison)
    for index, (role, words) in enumerate(entries):
        y = top + index * ENTRY
        draw_key(page, role, (left, y))
        (line, *more) = page.pen.wrap(words, width - KEY - 0.1, TEXT, 2)
        line = clip(line, len(line) - 1) if more else line
        page.text(left + KEY + 0.1, y + SWATCH / 2, line, va="center")
    page.write(_note_lines(comparison, page.pen, width), top + ENTRY * len(entries) + 0.05, left)


def draw_key(page: Page, role: Role | None, corner: tuple[float, float]) -> None:
    """Draw the colour and the sign of a role, beside which its words stand."""
    place = (*corner, KEY, SWATCH)
    swatch(page, role, place)
    if role is not None:
        _write_sign(page, role, place, min(SMALL, (KEY - 0.04) / page.pen.width(role.rule.sign, 1.0)))
