"""The strongest example of each role, as cards: the head, its score, the sentence, its pattern where that is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attnviz.attention import Attention
from attnviz.comparison import Comparison, Example, HeadProfile, Role
from attnviz.text.display import clip, visible
from attnviz.views.heads_grid import swatch
from attnviz.views.heads_roles import COLOURS, family
from attnviz.views.heatmap import Sheet, pool, resolve
from attnviz.views.pattern import draw_pattern
from attnviz.views.pen import GREY, POINT, TEXT, Pen, clipped

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 6.8
"""Inches of a card."""
LINE = 1.4 * TEXT * POINT
LINES = 3
"""A longer sentence is cut."""
LARGEST = 2.6
"""Inches of the largest pattern."""
MOST_TOKENS = 32
"""Of a longer sentence the pattern is pooled."""
INDENT = 0.28
AXIS = 0.22
"""Inches of what stands along a pattern's sides: that keys are looked at, and queries look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """The head that has a role most clearly, and the sentence where it is strongest.

    Attributes:
        head: the head.
        role: the role.
        example: the sentence; None where none was kept.
    """

    head: HeadProfile
    role: Role
    example: Example | None


def strongest(comparison: Comparison) -> list[Card]:
    """For each colour of role that some head has first, the head that has it most clearly, established ones before."""
    best: dict[str, tuple[HeadProfile, Role]] = {}
    for head in comparison.heads:
        for role in head.roles[:1]:
            held = best.get(family(role.name))
            if held is None or (role.established, role.score) > (held[1].established, held[1].score):
                best[family(role.name)] = (head, role)
    order = list(COLOURS)
    return [
        Card(head=head, role=role, example=next(iter(comparison.examples.get((head.name, role.measure), ())), None))
        for _, (head, role) in sorted(
            best.items(), key=lambda item: order.index(item[0]) if item[0] in order else len(order)
        )
    ]


def pattern_of(card: Card, patterns: Mapping[str, Attention]) -> Sheet | None:
    """The pattern of a card's head; None where it is not given."""
    record = patterns.get(card.head.name)
    if record is None:
        return None
    return pool(resolve(record.select([card.head.layer], [card.head.head])), MOST_TOKENS, MOST_TOKENS)


def words_of(card: Card, pen: Pen) -> tuple[list[str], list[str]]:
    """What a card says, in lines: the role with its score; the sentence."""
    role = card.role
    doubt = "" if role.established else " · not established"
    numbers = f"{role.score:.2f}" + (f" ({role.low:.2f} to {role.high:.2f})" if role.low == role.low else "")
    title = f"{visible(role.words)} · head {card.head.name} · {role.measure} {numbers}{doubt}"
    if card.example is None:
        return pen.wrap(title, WIDTH - INDENT), []
    said = pen.wrap(f"“{visible(card.example.text)}”", WIDTH - INDENT, TEXT, LINES + 1)
    if len(said) > LINES:
        said = [*said[: LINES - 1], clip(said[LINES - 1], len(said[LINES - 1]) - 1)]
    return pen.wrap(title, WIDTH - INDENT), said


def _sides(sheet: Sheet, pen: Pen) -> tuple[float, float, float]:
    """The side of a pattern's cells, and the inches of its labels at the left and above."""
    queries, keys = clipped(sheet.query_labels), clipped(sheet.key_labels)
    cell = min(0.26, LARGEST / max(len(queries), len(keys)))
    return cell, AXIS + pen.widest(queries) + 0.06, AXIS + pen.widest(keys) + 0.08


def card_height(card: Card, sheet: Sheet | None, pen: Pen) -> float:
    """How high a card is, in inches."""
    title, said = words_of(card, pen)
    height = LINE * (len(title) + len(said)) + 0.16
    if sheet is not None:
        cell, _, above = _sides(sheet, pen)
        height += above + cell * len(sheet.query_labels) + 0.22
    return height


def draw_card(
    paper: Axes, pen: Pen, card: Card, sheet: Sheet | None, place: tuple[float, float], *, palette: str
) -> None:
    """Draw a card on axes in inches over the whole figure, which has its size.

    Args:
        paper: the axes.
        pen: for the figure.
        card: what to draw.
        sheet: its pattern; None where it is not given.
        place: the left and upper end.
        palette: one of `attnviz.views.palette.PALETTES`.
    """
    left, top = place
    title, said = words_of(card, pen)
    swatch(paper, card.role, (left, top + 0.005, 0.18, 0.12))
    for line in title:
        paper.text(left + INDENT, top, line, va="top", **pen.style())
        top += LINE
    for line in said:
        paper.text(left + INDENT, top, line, va="top", **pen.style(color=GREY))
        top += LINE
    if sheet is None:
        return
    cell, beside, above = _sides(sheet, pen)
    width, height = float(paper.get_xlim()[1]), float(paper.get_ylim()[0])
    across, down = cell * len(sheet.key_labels), cell * len(sheet.query_labels)
    x, y = left + INDENT + beside, top + above + 0.04
    ax = pen.figure.add_axes((x / width, 1 - (y + down) / height, across / width, down / height))
    draw_pattern(ax, sheet, palette, pen, cell=cell)
