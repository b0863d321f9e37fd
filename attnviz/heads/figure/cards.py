"""The cards of roles on the sheet: their heading, the one colour scale of their patterns, and where each stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attnviz.attention import Attention
from attnviz.heads.figure import examples
from attnviz.heads.figure.examples import LINE
from attnviz.heads.notes import counted
from attnviz.heads.record import HeadComparison
from attnviz.heads.selection import RoleCard, strongest, without_card
from attnviz.render.figure.page import frame
from attnviz.render.figure.pen import GREY, MARGIN, SMALL, TEXT, Pen
from attnviz.render.palette import colours
from attnviz.render.sheet import Sheet
from attnviz.text.display import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, LEAST = 6.8, 3.35
"""Inches of a card: the most, and the least of one that stands beside another."""
BETWEEN = 0.3
"""Inches between two cards."""
HEADING = 0.3
"""Inches that the heading takes, and below all that it says."""
SCALE = 1.0
"""Inches across of the colour scale."""
TITLE = "each role's clearest head, and the sentence where it is strongest"
COLOUR = "colour: attention weight, on every card from 0 to 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deck:
    """The cards of a comparison.

    Attributes:
        cards: each with its pattern; None where it is not given.
        said: what stands below their heading, in lines.
    """

    cards: tuple[tuple[RoleCard, Sheet | None], ...]
    said: tuple[str, ...]

    @property
    def heading(self) -> float:
        """Inches of all that stands above the cards."""
        return HEADING + LINE * len(self.said) + 0.1


def deck_of(comparison: HeadComparison, patterns: Mapping[str, Attention], unseen: str, pen: Pen) -> Deck:
    """The cards of a comparison.

    Args:
        comparison: of heads.
        patterns: by the name of its role, the attention on the sentence of a card.
        unseen: why there are no patterns; empty says nothing.
        pen: for the figure.
    """
    cards = tuple((card, examples.pattern_of(card, patterns)) for card in strongest(comparison))
    more = without_card(comparison)
    said = [
        *([COLOUR] if any(sheet is not None for _, sheet in cards) else []),
        *([f"no patterns: {visible(unseen)}"] if cards and unseen else []),
        *([f"{counted(more, 'more role')} without a card: less clear"] if more else []),
    ]
    return Deck(cards=cards, said=tuple(line for text in said for line in pen.wrap(text, WIDTH)))


def columns_in(width: float, n_cards: int) -> tuple[int, float]:
    """How many cards stand side by side in so many inches, and how wide each is."""
    n = max(1, min(int((width + BETWEEN) / (LEAST + BETWEEN)), n_cards))
    return n, min(WIDTH, (width - (n - 1) * BETWEEN) / n)


def placed(
    deck: Deck, pen: Pen, *, width: float, below: float, beside: tuple[float, float], floor: float
) -> tuple[list[tuple[float, float, float]], float]:
    """Where heading and cards stand: in the right column down to the floor as far as they fit, the others in rows.

    Args:
        deck: the cards.
        pen: for the figure.
        width: of a row, in inches.
        below: where rows begin.
        beside: the left and upper end of what is free in the right column.
        floor: the lower end of that.

    Returns:
        The left and upper end and the width of the heading and of each card, and where the lowest ends.
    """
    if not deck.cards:
        return [], 0.0
    n, wide = columns_in(width, len(deck.cards))
    heights = [examples.card_height(card, sheet, pen, wide) for card, sheet in deck.cards]
    x, y = beside
    places = []
    if y + deck.heading + heights[0] <= floor:
        places.append((x, y, wide))
        y += deck.heading
        while len(places) <= len(heights) and y + heights[len(places) - 1] <= floor:
            places.append((x, y, wide))
            y += heights[len(places) - 2]
        end = below
    else:
        places.append((MARGIN, below, wide))
        end = below + deck.heading
    rest = heights[len(places) - 1 :]
    for start in range(0, len(rest), n):
        places += [(MARGIN + at * (wide + BETWEEN), end, wide) for at in range(len(rest[start : start + n]))]
        end += max(rest[start : start + n])
    return places, max(y, end) if rest else y


def draw(paper: Axes, pen: Pen, deck: Deck, places: list[tuple[float, float, float]], palette: str) -> None:
    """Draw heading, colour scale and cards, on axes in inches over the whole figure, which has its size."""
    if not deck.cards:
        return
    x, y, _ = places[0]
    paper.text(x, y, TITLE, va="top", **pen.style(TEXT + 1))
    y += HEADING - 0.08
    for line in deck.said:
        paper.text(x, y, line, va="top", **pen.style(color=GREY))
        if line == COLOUR:
            _scale(paper, pen, palette, (x + pen.width(COLOUR) + 0.25, y + 0.02))
        y += LINE
    for (card, sheet), place in zip(deck.cards, places[1:], strict=True):
        examples.draw_card(paper, pen, card, sheet, place, palette=palette)


def _scale(paper: Axes, pen: Pen, palette: str, place: tuple[float, float]) -> None:
    """The colours along, with the weights at both ends."""
    x, y = place
    paper.imshow(colours(palette)[None], extent=(x, x + SCALE, y + 0.1, y), aspect="auto", zorder=2)
    frame(paper, x, y, SCALE, 0.1)
    style = pen.style(SMALL, color=GREY)
    paper.text(x - 0.05, y + 0.05, "0", ha="right", va="center", **style)
    paper.text(x + SCALE + 0.05, y + 0.05, "1", va="center", **style)
