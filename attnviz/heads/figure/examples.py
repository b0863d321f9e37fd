"""The strongest example of each role, as cards: the head, its score, the sentence, its pattern where that is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from attnviz.attention import Attention
from attnviz.heads.figure.grid import KEY, draw_key
from attnviz.heads.measures import ENOUGH_ROWS
from attnviz.heads.record import Role
from attnviz.heads.relations import FAMILY
from attnviz.heads.selection import RoleCard
from attnviz.render.figure.pattern import draw_pattern
from attnviz.render.figure.pen import GREY, POINT, TEXT, Pen, clipped
from attnviz.render.sheet import Sheet, pool, resolve
from attnviz.text.display import clip, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINE = 1.4 * TEXT * POINT
LINES = 3
"""A longer sentence is cut."""
LARGEST = 2.3
"""Inches of the largest pattern."""
MOST_TOKENS = 32
"""Of a longer sentence the pattern is pooled."""
INDENT = KEY + 0.1
AXIS = 0.22
"""Inches of what stands along a pattern's sides: that keys are looked at, and queries look."""


def pattern_of(card: RoleCard, patterns: Mapping[str, Attention]) -> Sheet | None:
    """The pattern of a card's head, on a scale from 0 to 1; None where it is not given."""
    record = patterns.get(card.role.name)
    if record is None:
        return None
    return pool(resolve(record.select([card.head.layer], [card.head.head]), "unit"), MOST_TOKENS, MOST_TOKENS)


def words_of(card: RoleCard, pen: Pen, width: float) -> tuple[list[str], list[str]]:
    """What a card of this width says, in lines: the role with its score; the sentence, or why there is none."""
    role = card.role
    doubt = "" if role.established else " · not established"
    numbers = f"{role.score:.2f}" + (f" ({role.low:.2f} to {role.high:.2f})" if role.low == role.low else "")
    title = f"{visible(role.words)} · head {card.head.name} · {role.measure} {numbers}{doubt}"
    if card.example is None:
        return pen.wrap(title, width - INDENT), pen.wrap(_no_example(role), width - INDENT)
    said = pen.wrap(f"“{visible(card.example.text)}”", width - INDENT, TEXT, LINES + 1)
    if len(said) > LINES:
        said = [*said[: LINES - 1], clip(said[LINES - 1], len(said[LINES - 1]) - 1)]
    return pen.wrap(title, width - INDENT), said


def _no_example(role: Role) -> str:
    if role.family == FAMILY.name:
        return "no example: it is found in none of the sentences that controls were taken of"
    return f"no example: no sentence has {ENOUGH_ROWS} rows that it is counted for"


def _sides(sheet: Sheet, pen: Pen, width: float) -> tuple[float, float, float]:
    """The side of a pattern's cells on a card of this width, and the inches of its labels at the left and above."""
    queries, keys = clipped(sheet.query_labels), clipped(sheet.key_labels)
    beside, above = (AXIS + pen.widest(labels) + 0.08 for labels in (queries, keys))
    cell = min(0.26, LARGEST / max(len(queries), len(keys)), (width - beside) / len(keys))
    return cell, beside, above


def card_height(card: RoleCard, sheet: Sheet | None, pen: Pen, width: float) -> float:
    """How high a card of this width is, in inches."""
    title, said = words_of(card, pen, width)
    height = LINE * (len(title) + len(said)) + 0.16
    if sheet is not None:
        cell, _, above = _sides(sheet, pen, width)
        height += above + cell * len(sheet.query_labels) + 0.22
    return height


def draw_card(
    paper: Axes, pen: Pen, card: RoleCard, sheet: Sheet | None, place: tuple[float, float, float], *, palette: str
) -> None:
    """Draw a card on axes in inches over the whole figure, which has its size.

    Args:
        paper: the axes.
        pen: for the figure.
        card: what to draw.
        sheet: its pattern; None where it is not given.
        place: the left and upper end, and the width.
        palette: one of `attnviz.render.palette.PALETTES`.
    """
    left, top, wide = place
    title, said = words_of(card, pen, wide)
    draw_key(paper, pen, card.role, (left, top - 0.03))
    for line in title:
        paper.text(left + INDENT, top, line, va="top", **pen.style())
        top += LINE
    for line in said:
        paper.text(left + INDENT, top, line, va="top", **pen.style(color=GREY))
        top += LINE
    if sheet is None:
        return
    cell, beside, above = _sides(sheet, pen, wide)
    width, height = float(paper.get_xlim()[1]), float(paper.get_ylim()[0])
    across, down = cell * len(sheet.key_labels), cell * len(sheet.query_labels)
    x, y = left + min(INDENT, wide - beside - across) + beside, top + above + 0.04
    ax = pen.figure.add_axes((x / width, 1 - (y + down) / height, across / width, down / height))
    draw_pattern(ax, sheet, palette, pen, cell=cell)
