"""Cards of roles and of links: what a head does, a sentence, and the head's weights on it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from attnviz.attention import Attention
from attnviz.heads import words
from attnviz.heads.figure.parts import KEY, Inches, draw_swatch
from attnviz.heads.record import HeadComparison, Role
from attnviz.heads.selection import RoleCard, strongest, strongest_link, strongest_links
from attnviz.render.figure.page import Line, Page, height_of, lines
from attnviz.render.figure.pen import MARGIN, POINT, TEXT, Pen
from attnviz.render.sheet import Sheet, pool, resolve, with_limits
from attnviz.text.display import clip, visible
from attnviz.text.messages import N_, _

ACROSS, SIDE, CARD_GAP = 4, 1.45, 0.25  # cards per row; inches: side of a pattern, between cards
MOST_TOKENS = 24  # largest number of tokens of a pattern; longer sentences are pooled
LARGEST_CELL = 0.3  # largest side of a cell of a pattern, in inches
LABEL, LEADING = 11, 1.35 * TEXT * POINT  # letters of a token label; line height in inches
AXES = N_("Rows are queries, columns are keys; colour: weight.")
Patterns: TypeAlias = Mapping[tuple[str, str], Attention]
"""The attention on examples, by the names of the head and the role."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadCard:
    """A card with a role or a link, its head, a sentence, and the weights on it."""

    role: Role | None
    title: str
    text: str  # description of the role or link
    sentence: str
    sheet: Sheet | None  # the weights, from 0 to 1; None if unknown
    link: str = ""  # the strongest link between words of the sentence

    @property
    def texts(self) -> list[str]:
        """All texts of the card, to choose fonts."""
        tokens = [] if self.sheet is None else [*self.sheet.query_labels, *self.sheet.key_labels]
        return [self.title, self.text, self.sentence, self.link, *tokens]


def cards_of(comparison: HeadComparison, patterns: Patterns) -> list[HeadCard]:
    """Return a card for each of the clearest roles, or, for one sentence, for each of its strongest links."""
    record = comparison.attention
    if record is None:
        return [card_of(card, patterns.get(card.key)) for card in strongest(comparison)]
    cards = []
    for link in strongest_links(record):
        title = _("Layer {layer}, head {head}").format(layer=link.layer, head=link.head)
        card = HeadCard(
            role=None,
            title=visible(title),
            text=visible(f"{link.words} {link.weight:.2f}"),
            sentence="",
            sheet=_weights(record, link.layer, link.head),
        )
        cards.append(card)
    return cards


def card_of(card: RoleCard, record: Attention | None) -> HeadCard:
    """Return the card of a role; `record` has the attention on its example."""
    if card.example is None:
        sentence = visible(_("no example among the sentences kept"))
    else:
        sentence = f"“{visible(card.example.text)}” {card.example.score:.2f}"
    sheet, link = None, ""
    if record is not None:
        sheet = _weights(record, card.head.layer, card.head.head)
        link = _strongest_link(card, record)
    return HeadCard(
        role=card.role,
        title=visible(
            f"{card.head.name} · {_(card.role.rule.short)} {words.rounded(card.role.score)}",
        ),
        text=visible(_(card.role.rule.words)),
        sentence=sentence,
        sheet=sheet,
        link=link,
    )


def _strongest_link(card: RoleCard, record: Attention) -> str:
    """Return the head's strongest link between two words; empty if its role is not about words."""
    own = record.select([card.head.layer], [card.head.head])
    link = strongest_link(own, 0, 0)
    if link is None or card.role.rule.group in {"special", "broad"}:
        return ""
    text = _("Strongest link: {words} {weight}")
    return visible(text.format(words=link.words, weight=words.rounded(link.weight)))


def _weights(record: Attention, layer: int, head: int) -> Sheet:
    """Return the pattern of a head, pooled if it has too many tokens."""
    return pool(
        with_limits(resolve(record.select([layer], [head])), 0.0, 1.0), MOST_TOKENS, MOST_TOKENS
    )


def _labels(tokens: Iterable[str]) -> list[str]:
    """Return tokens cut to the length of a label."""
    return [clip(token, LABEL) for token in tokens]


def label_room(pen: Pen, sheets: Iterable[Sheet]) -> Inches:
    """Return the width of the labels to the left of patterns and the height of those above, in inches."""
    all_sheets = list(sheets)
    left = [label for sheet in all_sheets for label in _labels(sheet.query_labels)]
    above = [label for sheet in all_sheets for label in _labels(sheet.key_labels)]
    return pen.widest(left) + 0.05, pen.widest(above) + 0.08


def draw_cards(page: Page, cards: Sequence[HeadCard], title: str, top: float) -> float:
    """Draw the title and below it the cards, `ACROSS` per row; return the lower end."""
    sheets = [card.sheet for card in cards if card.sheet is not None]
    if sheets:
        bar = page.size[0] - MARGIN - 1.02, top, 0.9
        page.colour_bar(page.pen.theme.colours(), bar, {0.0: "0", 1.0: "1"}, along=True)
    top = (
        page.write(lines(page.pen, [title], page.size[0] - 2 * MARGIN - 1.5, TEXT + 1), top) + 0.12
    )
    pen, width = page.pen, (page.size[0] - 2 * MARGIN - (ACROSS - 1) * CARD_GAP) / ACROSS
    card_lines = [
        [
            Line(line, TEXT, colour, LEADING)
            for text, colour in (
                (card.text, pen.ink),
                (card.sentence, pen.quiet),
                (card.link, pen.ink),
            )
            for line in cut_lines(pen, text, width, 2)
        ]
        for card in cards
    ]
    left, above = label_room(pen, sheets)
    text_height = max(map(height_of, card_lines)) + 1.6 * LEADING
    pitch = text_height + 0.14 + (above + SIDE + 0.06 if sheets else 0.0)
    for number, (card, lines_of_card) in enumerate(zip(cards, card_lines, strict=True)):
        row, column = divmod(number, ACROSS)
        x, y = MARGIN + column * (width + CARD_GAP), top + row * pitch
        inset = 0.0
        if card.role is not None:
            draw_swatch(page, card.role, (x, y - 0.02, KEY, 0.17))
            inset = KEY + 0.08
        page.text(x + inset, y + 0.015, clip(card.title, 40), TEXT + 0.5, va="top")
        page.write(lines_of_card, y + 1.6 * LEADING, x)
        if card.sheet is not None:
            draw_pattern(page, card.sheet, (x + left, y + text_height + above), SIDE)
    return top + pitch * -(-len(cards) // ACROSS)


def cut_lines(pen: Pen, text: str, width: float, most: int, size: float = TEXT) -> list[str]:
    """Break a text into at most `most` lines, with an ellipsis if it was cut."""
    broken = pen.wrap(text, width, size, most + 1)
    if len(broken) > most:
        broken = [*broken[: most - 1], broken[most - 1][:-1] + "…"]
    return broken


def draw_pattern(page: Page, sheet: Sheet, corner: Inches, side: float) -> None:
    """Draw a pattern with its tokens on the left and above; labels that do not fit are left out."""
    left, top = corner
    pen, panel = page.pen, sheet.panels[0]
    queries, keys = _labels(sheet.query_labels), _labels(sheet.key_labels)
    cell = min(LARGEST_CELL, side / max(len(queries), len(keys)))
    size = min(TEXT, max(pen.least, cell / POINT / 1.15))
    step = math.ceil(size * 1.15 * POINT / cell - 0.01)
    pixels = pen.theme.pixels(panel.matrix, panel.top, pen.theme.colours())
    page.image(pixels, (left, top, cell * len(keys), cell * len(queries)))
    for index in range(0, len(queries), step):
        page.text(
            left - 0.05, top + (index + 0.5) * cell, queries[index], size, ha="right", va="center"
        )
    for index in range(0, len(keys), step):
        style: dict[str, Any] = {"ha": "center", "va": "bottom", "rotation": 90}
        page.text(left + (index + 0.5) * cell, top - 0.05, keys[index], size, **style)
