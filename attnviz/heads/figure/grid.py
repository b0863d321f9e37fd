"""The heads of a model as a grid of layers x heads, each in the colour of its role, and what the colours mean."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from attnviz.heads.notes import counted, doubts
from attnviz.heads.record import HeadComparison, Role
from attnviz.heads.relations import REVERSED
from attnviz.heads.selection import tallied
from attnviz.render.figure.pen import BLACK, FRAME, GREY, LEAST_TEXT, PITCH, POINT, SMALL, TEXT, Pen
from attnviz.render.palette import hexed, luminance
from attnviz.text.display import clip, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
LINE = 1.5 * SMALL * POINT
"""Inches of a line of what is said below them."""
KEY = 1.7 * SWATCH
"""Inches across of a colour with its sign."""


def colour_of(role: Role | None) -> str:
    """The colour of a role, on paper."""
    return EMPTY if role is None else role.colour


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


def cell_of(comparison: HeadComparison) -> float:
    """The side of a cell, in inches."""
    least, most = CELLS
    return max(least, min(most, WIDEST / comparison.n_heads, HIGHEST / comparison.n_layers))


def grid_size(comparison: HeadComparison) -> tuple[float, float]:
    """Width and height of the grid with its numbers, in inches."""
    cell = cell_of(comparison)
    return BESIDE + comparison.n_heads * cell, ABOVE + comparison.n_layers * cell


def draw_grid(paper: Axes, pen: Pen, comparison: HeadComparison, left: float, top: float) -> None:
    """Draw the grid on axes in inches: a cell a head, layers from top to bottom, heads from left to right.

    Args:
        paper: axes over the whole figure, in inches from its upper left corner.
        pen: for the figure.
        comparison: of heads.
        left: where the grid begins, its numbers included.
        top: likewise.
    """
    cell = cell_of(comparison)
    x, y = left + BESIDE, top + ABOVE
    for head in comparison.heads:
        place = (x + head.head * cell, y + head.layer * cell, cell)
        _cell(paper, pen, head.roles[0] if head.roles else None, place)
    step = max(1, math.ceil(PITCH / cell))
    quiet = pen.style(TEXT, color=GREY)
    for head_ in range(0, comparison.n_heads, step):
        paper.text(x + (head_ + 0.5) * cell, y - 0.05, str(head_), ha="center", va="bottom", **pen.style())
    for layer in range(0, comparison.n_layers, step):
        paper.text(x - 0.06, y + (layer + 0.5) * cell, str(layer), ha="right", va="center", **pen.style())
    paper.text(x, top + 0.02, "head, counted from 0", va="top", **quiet)
    paper.text(left, y + 0.01, "layer", va="top", rotation=90, ha="left", **quiet)


def _cell(paper: Axes, pen: Pen, role: Role | None, place: tuple[float, float, float]) -> None:
    """One head: the colour of its role, and the role's sign where it fits."""
    x, y, side = place
    swatch(paper, role, (x, y, side, side))
    if role is None:
        return
    size = min(TEXT, (side - 0.05) / max(pen.width(role.sign, 1.0), POINT))
    if size >= LEAST_TEXT:
        _write_sign(paper, pen, role, (x + side / 2, y + side / 2), size)


def _write_sign(paper: Axes, pen: Pen, role: Role, middle: tuple[float, float], size: float) -> None:
    ink = ink_on(colour_of(role)) if role.established else BLACK
    paper.text(*middle, role.sign, ha="center", va="center", zorder=4, **pen.style(size, color=ink))


def swatch(paper: Axes, role: Role | None, place: tuple[float, float, float, float]) -> None:
    """A rectangle in the colour of a role; hatched and pale where it is not established."""
    from matplotlib.patches import Rectangle

    x, y, width, height = place
    colour = colour_of(role)
    doubtful = role is not None and not role.established
    patch = Rectangle(
        (x, y),
        width,
        height,
        facecolor=paler(colour, 0.82) if doubtful else colour,
        edgecolor=paler(colour, 0.45) if doubtful else "none",
        hatch="////" if doubtful else None,
        linewidth=0,
        zorder=2,
    )
    patch.set_hatch_linewidth(0.7)
    paper.add_patch(patch)
    line = 1.0 if height > 0.15 else 0.3
    paper.add_patch(Rectangle((x, y), width, height, fill=False, edgecolor="white", linewidth=line, zorder=3))
    if role is None and height > 0.15:
        paper.add_patch(Rectangle((x, y), width, height, fill=False, edgecolor=FRAME, linewidth=0.4, zorder=3))


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


def legend_said(comparison: HeadComparison) -> list[str]:
    """How to read the grid, where there is something to read."""
    signs = {role.sign for role, _ in legend_entries(comparison) if role is not None}
    back = f"; {REVERSED} is a relation the other way round" if any(one.endswith(REVERSED) for one in signs) else ""
    why = doubts(comparison.heads)
    return [
        *([f"each head has the colour of its clearest role, and that role's sign{back}"] if signs else []),
        *([f"hatched and pale: not established, since {why}"] if why else []),
    ]


def _legend_lines(comparison: HeadComparison, pen: Pen, width: float) -> list[str]:
    return [line for text in legend_said(comparison) for line in pen.wrap(text, width, SMALL + 0.5)]


def legend_height(comparison: HeadComparison, pen: Pen, width: float) -> float:
    """How high the legend is, in inches."""
    return ENTRY * len(legend_entries(comparison)) + LINE * len(_legend_lines(comparison, pen, width)) + 0.05


def draw_legend(paper: Axes, pen: Pen, comparison: HeadComparison, place: tuple[float, float, float]) -> None:
    """Draw what the colours and signs of the grid mean, on axes in inches.

    Args:
        paper: axes over the whole figure, in inches from its upper left corner.
        pen: for the figure.
        comparison: of heads.
        place: the left and upper end, and the width.
    """
    left, top, width = place
    for index, (role, words) in enumerate(legend_entries(comparison)):
        y = top + index * ENTRY
        draw_key(paper, pen, role, (left, y))
        (line, *more) = pen.wrap(words, width - KEY - 0.1, TEXT, 2)
        line = clip(line, len(line) - 1) if more else line
        paper.text(left + KEY + 0.1, y + SWATCH / 2, line, va="center", **pen.style())
    y = top + ENTRY * len(legend_entries(comparison)) + 0.05
    for line in _legend_lines(comparison, pen, width):
        paper.text(left, y, line, va="top", **pen.style(SMALL + 0.5, color=GREY))
        y += LINE


def draw_key(paper: Axes, pen: Pen, role: Role | None, place: tuple[float, float]) -> None:
    """Draw the colour and the sign of a role beside which it is told what they mean."""
    x, y = place
    swatch(paper, role, (x, y, KEY, SWATCH))
    if role is not None:
        size = min(SMALL, (KEY - 0.04) / pen.width(role.sign, 1.0))
        _write_sign(paper, pen, role, (x + KEY / 2, y + SWATCH / 2), size)
