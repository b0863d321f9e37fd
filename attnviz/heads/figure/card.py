"""Cards of one size: what a head does, a sentence where it does it, and its weights there beside the words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from attnviz.attention import Attention
from attnviz.heads.figure.grid import draw_key, key_width
from attnviz.heads.measures import ENOUGH_ROWS
from attnviz.heads.record import HeadComparison, Role
from attnviz.heads.relations import FAMILY
from attnviz.heads.selection import RoleCard, strongest, strongest_links
from attnviz.heads.wording import say
from attnviz.render.figure.page import Line, Page, height_of
from attnviz.render.figure.pen import BLACK, GREY, LEAST_TEXT, POINT, TEXT, Pen
from attnviz.render.palette import colours, pixels
from attnviz.render.sheet import Sheet, pool, resolve
from attnviz.text.display import clip, visible

ACROSS = 4  # cards beside one another
BETWEEN = 0.25  # inches between two cards
SIDE, CELL, MOST_TOKENS = 1.45, 0.24, 24
"""Inches of the largest pattern and of its largest cell, and its tokens: of a longer sentence it is pooled."""
LABEL = 11  # characters of a token beside its row
LINE = 1.35 * TEXT * POINT
MOST_LINES = 2  # lines of what a head does, and of its sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadCard:
    """What one card shows."""

    role: Role | None  # whose colour and sign it has; None has none
    title: str  # the head, and what it is called
    words: str  # what it does
    sentence: str  # where; or why there is none
    sheet: Sheet | None  # its weights there, from 0 to 1; None where they are not known

    @property
    def texts(self) -> list[str]:
        """All that it says, for its fonts."""
        tokens = [] if self.sheet is None else [*self.sheet.query_labels, *self.sheet.key_labels]
        return [self.title, self.words, self.sentence, *tokens]


def cards_of(comparison: HeadComparison, patterns: Mapping[str, Attention], language: str) -> list[HeadCard]:
    """The cards of a comparison: of each established role; of one sentence the strongest links between its words."""
    record = comparison.attention
    if record is None:
        return [card_of(card, patterns.get(card.role.name), language) for card in strongest(comparison)]
    return [
        HeadCard(
            role=None, title=say("of_head", language, head=f"{layer}.{head}"),
            words=visible(f"{record.query_tokens[query].text} → {record.key_tokens[key].text} {weight:.2f}"),
            sentence="", sheet=_weights(record, layer, head),
        )
        for (query, key), (weight, layer, head) in strongest_links(record)
    ]  # fmt: skip


def card_of(card: RoleCard, record: Attention | None, language: str) -> HeadCard:
    """The card of a role. Raises SelectionError: the record lacks the head."""
    role = card.role
    if card.example is not None:
        sentence = f"“{visible(card.example.text)}” {card.example.score:.2f}"
    elif role.rule.family == FAMILY.name:
        sentence = say("no_example", language)
    else:
        sentence = say("no_example_rows", language, rows=ENOUGH_ROWS)
    return HeadCard(
        role=role, title=f"{card.head.name} · {visible(role.rule.short)} {role.score:.2f}",
        words=visible(role.rule.say(language)), sentence=sentence,
        sheet=None if record is None else _weights(record, card.head.layer, card.head.head),
    )  # fmt: skip


def _weights(record: Attention, layer: int, head: int) -> Sheet:
    return pool(resolve(record.select([layer], [head]), "unit"), MOST_TOKENS, MOST_TOKENS)


@dataclass(frozen=True, slots=True)
class Cards:
    """Cards with their measures: all of one size."""

    cards: Sequence[HeadCard]  # the cards
    written: Sequence[Sequence[Line]]  # what each says, in lines
    width: float  # of a card, in inches, as all lengths here
    text: float  # the height of what is said
    beside: float  # the width of the words at the left of a pattern
    above: float  # the height of those above it
    side: float  # of the largest pattern; 0 where there is none

    @property
    def pitch(self) -> float:
        """From the upper end of a card to that of the one below it."""
        return self.text + (self.above + self.side + 0.06 if self.side else 0.0) + 0.14

    @property
    def height(self) -> float:
        """Of all rows of cards."""
        return self.pitch * -(-len(self.cards) // ACROSS)


def lay_out_cards(pen: Pen, cards: Sequence[HeadCard], width: float, side: float = SIDE) -> Cards:
    """Lay out cards, `ACROSS` in a row of this width."""
    wide = (width - (ACROSS - 1) * BETWEEN) / ACROSS
    written = [_lines(card, pen, wide) for card in cards]
    sheets = [card.sheet for card in cards if card.sheet is not None]
    beside = pen.widest([label for sheet in sheets for label in labels_of(sheet.query_labels)]) + 0.05
    above = pen.widest([label for sheet in sheets for label in labels_of(sheet.key_labels)]) + 0.08
    largest = min(side, wide - beside) if sheets else 0.0
    return Cards(cards, written, wide, max(map(height_of, written), default=0.0), beside, above, largest)


def labels_of(labels: Sequence[str]) -> list[str]:
    """The words along a pattern, the longest cut."""
    return [clip(label, LABEL) for label in labels]


def _lines(card: HeadCard, pen: Pen, width: float) -> list[Line]:
    inset = 0.0 if card.role is None else key_width(card.role, pen) + 0.08
    (title, *more) = pen.wrap(card.title, width - inset, TEXT + 0.5, 2)
    written = [Line(clip(title, len(title) - 1) if more else title, TEXT + 0.5, BLACK, LINE * 1.25)]
    for text, colour in ((card.words, BLACK), (card.sentence, GREY)):
        found = pen.wrap(text, width, TEXT, MOST_LINES + 1)
        if len(found) > MOST_LINES:
            found = [*found[: MOST_LINES - 1], clip(found[MOST_LINES - 1], len(found[MOST_LINES - 1]) - 1)]
        written += [Line(line, TEXT, colour, LINE) for line in found]
    return written


def draw_cards(page: Page, cards: Cards, left: float, top: float) -> None:
    """Draw cards in rows."""
    for number, (card, written) in enumerate(zip(cards.cards, cards.written, strict=True)):
        row, column = divmod(number, ACROSS)
        x, y = left + column * (cards.width + BETWEEN), top + row * cards.pitch
        inset = 0.0
        if card.role is not None:
            draw_key(page, card.role, (x, y - 0.02))
            inset = key_width(card.role, page.pen) + 0.08
        page.write(written[:1], y + 0.015, x + inset)
        page.write(written[1:], y + written[0].pitch + 0.02, x)
        if card.sheet is not None:
            draw_weights(page, card.sheet, (x + cards.beside, y + cards.text + cards.above, cards.side))


def draw_weights(page: Page, sheet: Sheet, place: tuple[float, float, float], largest: float = CELL) -> None:
    """Draw a pattern at (left, top, side) with its words at the left and above, thinned where they have no room."""
    left, top, side = place
    panel = sheet.panels[0]
    queries, keys = labels_of(sheet.query_labels), labels_of(sheet.key_labels)
    cell = min(largest, side / max(len(queries), len(keys)))
    size = min(TEXT, max(LEAST_TEXT, cell / POINT / 1.15))
    step = max(1, round(size * 1.15 * POINT / cell + 0.49))
    page.image(pixels(panel.matrix, panel.top, colours()), (left, top, cell * len(keys), cell * len(queries)))
    for at in range(0, len(queries), step):
        page.text(left - 0.05, top + (at + 0.5) * cell, queries[at], size, ha="right", va="center")
    for at in range(0, len(keys), step):
        page.text(left + (at + 0.5) * cell, top - 0.05, keys[at], size, ha="center", va="bottom", rotation=90)
