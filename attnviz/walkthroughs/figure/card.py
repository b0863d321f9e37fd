"""A step on a card: its words, and its matrices with the signs between; and cards side by side.

Lengths are in inches, sizes of letters in points.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from attnviz.render.figure.page import Line, Page, height_of, lines
from attnviz.render.figure.pen import BLACK, GREY, TINY
from attnviz.walkthroughs.figure.matrix import (
    EDGE_GAP,
    LETTERS,
    MOST_COLUMNS,
    MOST_ROWS,
    TITLE_HEIGHT,
    MatrixBox,
    SheetStyle,
    bold,
    measure_matrix,
)
from attnviz.walkthroughs.view import GridView, StepView
from attnviz.walkthroughs.wording import shown_formula

TITLE, FORMULA, WORDS, SIGN = 9.0, 8.0, 7.5, 11.0  # sizes of letters
BADGE_WIDTH = 0.26  # of the number of a step with two digits
SIGN_WIDTH, LINE_GAP = 0.3, 0.16  # between two matrices, and between two lines of them
NARROWEST, ROOMY = 1.15, 2.7  # the least width of a card beside others, and alone
CARD_GAP, CARD_LINE_GAP = 0.4, 0.3
FEWEST_COLUMNS = 4  # of a vector, when room is short


@dataclass(frozen=True, slots=True, kw_only=True)
class StepWords:
    """The words of a step in lines; the first lines are its title."""

    card: StepView
    style: SheetStyle
    lines: tuple[Line, ...]
    left: float = 0.0  # from the left edge of what they belong to

    @property
    def height(self) -> float:
        """The height of all lines."""
        return height_of(self.lines)

    def draw(self, page: Page, left: float, top: float) -> None:
        """Write the lines, with the step's number before the title."""
        left += self.left
        badge = badge_width(self.card, self.style)
        shape = "round" if self.card.heads else "circle"
        box = {"boxstyle": f"{shape},pad=0.25", "facecolor": BLACK, "edgecolor": "none"}
        x, y = left + badge / 2 - 0.03, top + 0.6 * self.lines[0].pitch
        look = {"ha": "center", "va": "center_baseline", "color": "white", "bbox": box}
        page.text(x, y, self.card.numbers, WORDS, **look)
        for line in self.lines:
            is_title = line.size == TITLE
            x = left + badge if is_title else left
            look = bold(line.text) if is_title else {}
            y = top + line.pitch
            page.text(x, y, line.text, line.size, va="baseline", color=line.colour, **look)
            top = y


def measure_words(
    card: StepView, style: SheetStyle, width: float, *, has_shapes: bool = False, left: float = 0.0
) -> StepWords:
    """Break the words of a step into lines of a width."""
    pen = style.pen
    # Bold letters are wider than those that were measured.
    title_width = (width - badge_width(card, style)) / 1.12
    written = lines(pen, [card.title], title_width, TITLE, colour=BLACK)
    texts = [(shown_formula(card.formula), FORMULA, BLACK)]
    if has_shapes:
        texts.append((shown_formula(card.shapes), WORDS, GREY))
    texts.append((card.sentence, WORDS, GREY))
    for text, size, colour in texts:
        written += lines(pen, [text], width, size, colour=colour, leading=1.3)
    return StepWords(card=card, style=style, lines=tuple(written), left=left)


def badge_width(card: StepView, style: SheetStyle) -> float:
    """Return the width of the step's number before the title; that of several heads is longer."""
    longer = style.pen.width(card.numbers, WORDS) - style.pen.width("00", WORDS)
    return BADGE_WIDTH + max(0.0, longer)


def narrowest(card: StepView, style: SheetStyle) -> float:
    """Return the least width of a card: the longest word of its title."""
    longest = style.pen.widest(card.title.split(), TITLE)
    return max(NARROWEST, 1.14 * longest + badge_width(card, style))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedMatrix:
    """A matrix in its place, from the corner of what it belongs to."""

    box: MatrixBox
    left: float
    top: float = 0.0
    sign: str = ""  # before it

    @property
    def right(self) -> float:
        """The right edge."""
        return self.left + self.box.width


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A card that has been measured."""

    words: StepWords | None
    matrices: tuple[PlacedMatrix, ...]
    width: float
    head: float  # the height of the words
    body: float  # the height of the matrices

    def draw(
        self, page: Page, left: float, top: float, head: float, followed: Mapping[str, int]
    ) -> None:
        """Draw the card, its matrices below `head`; `followed` has the row to follow of some matrices."""
        if self.words is not None:
            self.words.draw(page, left, top)
        for placed in self.matrices:
            box, x, y = placed.box, left + placed.left, top + head + placed.top
            row = followed.get(box.grid.name)
            drawn_row = box.rows.index(row) if row is not None and row in box.rows else None
            box.write_title(page, x, y)
            box.draw(page, x, y, drawn_row)
            box.write_names(page, x - EDGE_GAP, y, drawn_row)
            if placed.sign:
                middle = x - box.names_width - SIGN_WIDTH / 2
                height = y + min(box.height / 2, 0.6)
                look = {"ha": "center", "va": "center", "color": GREY}
                page.text(middle, height, placed.sign, SIGN, **look)


def measure_card(
    card: StepView,
    parts: Sequence[tuple[str, GridView]],
    style: SheetStyle,
    room: float,
    *,
    has_words: bool = True,
    most_rows: int = MOST_ROWS,
) -> Card:
    """Measure a card no wider than `room`, with these of its matrices, cut as far as needed."""
    signs = [sign for sign, _ in parts]
    for most_columns in range(MOST_COLUMNS, FEWEST_COLUMNS - 1, -1):
        boxes = [
            measure_matrix(grid, style, most_rows=most_rows, most_columns=most_columns)
            for _, grid in parts
        ]
        matrices, width, height = _place(signs, boxes, style, room, len(boxes))
        if _count_lines(matrices) <= 1 and width <= room:
            break
    else:
        if card.heads:  # lines of equally many, with cells of one width
            widest = max(boxes, key=lambda box: box.column_width)
            boxes = [
                replace(
                    box,
                    column_width=widest.column_width,
                    names_stand_upright=widest.names_stand_upright,
                    names_height=widest.names_height,
                )
                for box in boxes
            ]
            n_lines = _count_lines(_place(signs, boxes, style, room, len(boxes))[0])
            most = math.ceil(len(boxes) / n_lines)
            matrices, width, height = _place(signs, boxes, style, room, most)
    words, head = None, 0.0
    if has_words:
        width = max(width, min(room, ROOMY))
        words = measure_words(card, style, width, has_shapes=True)
        head = words.height + EDGE_GAP
    return Card(words=words, matrices=tuple(matrices), width=width, head=head, body=height)


def _count_lines(matrices: Sequence[PlacedMatrix]) -> int:
    return len({placed.top for placed in matrices})


def _place(
    signs: Sequence[str],
    boxes: Sequence[MatrixBox],
    style: SheetStyle,
    room: float,
    most_in_line: int,
) -> tuple[list[PlacedMatrix], float, float]:
    """Place matrices side by side, in as many lines as needed; return them, the width and the height."""
    x = top = width = line_height = 0.0
    placed: list[PlacedMatrix] = []
    for i, (sign, box) in enumerate(zip(signs, boxes, strict=True)):
        own_width = max(box.width, style.pen.width(box.title, LETTERS))
        if not placed:
            sign = ""
        before = box.names_width + (SIGN_WIDTH if sign else 0.0)
        if placed and (x + before + own_width > room or i % most_in_line == 0):
            x, top, line_height = 0.0, top + line_height + LINE_GAP, 0.0
        placed.append(PlacedMatrix(sign=sign, box=box, left=x + before, top=top + TITLE_HEIGHT))
        x += before + own_width + EDGE_GAP
        width = max(width, x)
        line_height = max(line_height, TITLE_HEIGHT + box.height + box.names_height)
    return placed, width, top + line_height


@dataclass(frozen=True, slots=True)
class CardRows:
    """Cards side by side, in as many lines as they need."""

    lines: list[list[Card]]
    followed: Mapping[str, int]  # the row to follow of some matrices, by name

    @property
    def boxes(self) -> list[MatrixBox]:
        """All matrices."""
        return [placed.box for line in self.lines for card in line for placed in card.matrices]

    @property
    def width(self) -> float:
        """The width of the longest line."""
        return max(
            sum(card.width for card in line) + CARD_GAP * (len(line) - 1) for line in self.lines
        )

    @property
    def height(self) -> float:
        """The height of all lines."""
        return sum(map(_line_height, self.lines)) + CARD_LINE_GAP * (len(self.lines) - 1)

    def draw(self, page: Page, left: float, top: float) -> None:
        """Draw the cards from this corner on."""
        for line in self.lines:
            head, x = max(card.head for card in line), left
            for card in line:
                card.draw(page, x, top, head, self.followed)
                x += card.width + CARD_GAP
            top += _line_height(line) + CARD_LINE_GAP


def arrange_cards(cards: Sequence[Card], room: float, followed: Mapping[str, int]) -> CardRows:
    """Put cards side by side, in as few lines as fit into `room`, as narrow as these can be."""
    rows = CardRows(_fill_lines(cards, room), followed)
    widest = max(card.width for card in cards)
    while rows.width > widest:
        narrower = _fill_lines(cards, rows.width - TINY)
        if len(narrower) > len(rows.lines):
            break
        rows = CardRows(narrower, followed)
    return rows


def _fill_lines(cards: Sequence[Card], room: float) -> list[list[Card]]:
    lines: list[list[Card]] = []
    for card in cards:
        used = sum(one.width + CARD_GAP for one in lines[-1]) if lines else 0.0
        if not lines or used + card.width > room:
            lines.append([])
        lines[-1].append(card)
    return lines


def _line_height(line: Sequence[Card]) -> float:
    return max(card.head for card in line) + max(card.body for card in line)
