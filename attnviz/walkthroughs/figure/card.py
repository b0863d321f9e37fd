"""A step on a card: its number, title, formula and one sentence, and below them its matrices with the signs between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from attnviz.render.figure.page import Line, Page, height_of
from attnviz.render.figure.pen import BLACK, GREY, POINT
from attnviz.walkthroughs.figure.panel import Box, Style, bold, box_of, draw_box, label_rows, labels_width, title_above
from attnviz.walkthroughs.figure.plan import Card, Matrix

STEP, FORMULA, WORDS = 9.0, 8.0, 7.5
"""The sizes of a card's title, of its formula, and of its other words, in points."""
DOT = 0.26
"""What the number of a step takes before its title, in inches."""
TITLED, SIGN, NEXT = 0.24, 0.3, 0.16
"""Above a matrix for its symbol, between two matrices for their sign, and between two lines of them, in inches."""
NARROWEST, ROOMY = 1.15, 2.7
"""What a card takes at least, beside others and alone, in inches."""
BESIDE, BELOW = 0.4, 0.3
"""Between two cards side by side, and between two lines of them, in inches."""
FEWEST = 4
"""Columns of a vector that are printed at least, with what stands for the others."""


def heading(card: Card, width: float, style: Style, *, shapes: bool = False) -> list[Line]:
    """The words of a step in lines no wider than this."""
    scale, pen = style.scale, style.pen
    texts = [(card.formula, FORMULA, BLACK), (card.sentence, WORDS, GREY)]
    texts[1:1] = [(card.shapes, WORDS, GREY)] if shapes else []
    title = [Line(text, STEP * scale, BLACK, 1.35 * STEP * scale * POINT) for text in _title(card, width, style)]
    return title + [
        Line(line, size * scale, colour, 1.3 * size * scale * POINT)
        for text, size, colour in texts
        for line in pen.wrap(text, width, size * scale)
    ]


def narrowest(card: Card, style: Style) -> float:
    """What a card takes at least: the longest word of its title."""
    longest = style.pen.widest(card.title.split(), STEP * style.scale)
    return max(NARROWEST * style.scale, 1.14 * longest + DOT * style.scale)


def _title(card: Card, width: float, style: Style) -> list[str]:
    """Its lines; the letters are bold, and wider than those that are measured."""
    return style.pen.wrap(card.title, (width - DOT * style.scale) / 1.12, STEP * style.scale)


def write_heading(page: Page, card: Card, words: Sequence[Line], corner: tuple[float, float], style: Style) -> None:
    """Write the words of a step, with its number before the title."""
    left, top = corner
    titles = len([line for line in words if line.size == STEP * style.scale])
    dot = {"boxstyle": "circle,pad=0.25", "facecolor": BLACK, "edgecolor": "none"}
    page.text(
        left + DOT * style.scale / 2 - 0.03, top + 0.6 * words[0].pitch, str(card.number), WORDS * style.scale,
        ha="center", va="center_baseline", color="white", bbox=dot,
    )  # fmt: skip
    for index, line in enumerate(words):
        is_title = index < titles
        page.text(
            left + (DOT * style.scale if is_title else 0.0), top + line.pitch, line.text, line.size, va="baseline",
            color=line.colour, **(bold(line.text) if is_title else {}),
        )  # fmt: skip
        top += line.pitch


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A matrix on its card: the sign before it, and where its cells begin, from the card's upper left corner."""

    sign: str
    box: Box
    left: float
    top: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A card that has been measured; lengths in inches."""

    card: Card  # the step
    words: tuple[Line, ...]  # its lines
    spots: tuple[Spot, ...]  # its matrices
    width: float  # of all
    head: float  # what the words take
    body: float  # what the matrices take below them

    def draw(self, page: Page, corner: tuple[float, float], head: float, style: Style, lit: Mapping[str, int]) -> None:
        """Draw it; its words take as much as `head`, and `lit` has the row to be followed of some matrices."""
        left, top = corner
        if self.words:
            write_heading(page, self.card, self.words, corner, style)
        top += head
        for spot in self.spots:
            x, y = left + spot.left, top + spot.top
            row = lit.get(spot.box.matrix.name)
            seen = None if row is None or row not in spot.box.rows else spot.box.rows.index(row)
            title_above(page, spot.box, (x, y))
            draw_box(page, spot.box, (x, y), style, lit=seen)
            label_rows(page, spot.box, x - 0.06 * style.scale, y, seen)
            if spot.sign:
                middle = x - labels_width(spot.box, style.pen) - SIGN * style.scale / 2
                high = y + min(spot.box.height / 2, 0.6 * style.scale)
                page.text(middle, high, spot.sign, 11 * style.scale, ha="center", va="center", color=GREY)


def block_of(
    card: Card, parts: Sequence[tuple[str, Matrix]], style: Style, room: float, *, words: bool = True, rows: int = 48
) -> Block:
    """Measure a card that may be so wide, with these of its matrices, cut as far as they need to be."""
    for most in range(style.most, FEWEST - 1, -1):
        boxes = [box_of(matrix, replace(style, most=most), n_rows=rows) for _, matrix in parts]
        spots, width, height = _spots([sign for sign, _ in parts], boxes, style, room)
        if len({spot.top for spot in spots}) <= 1 and width <= room:
            break
    least = max(width, min(room, ROOMY * style.scale)) if words else width
    lines = heading(card, least, style, shapes=True) if words else []
    return Block(
        card=card,
        words=tuple(lines),
        spots=tuple(spots),
        width=least,
        head=height_of(lines) + (0.06 * style.scale if lines else 0.0),
        body=height,
    )


def _spots(signs: Sequence[str], boxes: Sequence[Box], style: Style, room: float) -> tuple[list[Spot], float, float]:
    """Matrices side by side, in as many lines as they need; how wide and how high they are."""
    x = top = widest = tallest = 0.0
    spots: list[Spot] = []
    for sign, box in zip(signs, boxes, strict=True):
        own = max(box.width, style.pen.width(box.title, 8 * style.scale))
        before = labels_width(box, style.pen) + (SIGN * style.scale if sign and spots else 0.0)
        if spots and x + before + own > room:
            x, top, tallest = 0.0, top + tallest + NEXT * style.scale, 0.0
            before = labels_width(box, style.pen) + SIGN * style.scale
        spots.append(Spot(sign=sign if spots else "", box=box, left=x + before, top=top + TITLED * style.scale))
        x += before + own + 0.06 * style.scale
        widest, tallest = max(widest, x), max(tallest, TITLED * style.scale + box.height + box.below)
    return spots, widest, top + tallest


@dataclass(frozen=True, slots=True)
class Strip:
    """Cards side by side, in as many lines as they need; lengths in inches."""

    lines: list[list[Block]]

    @property
    def boxes(self) -> list[Box]:
        """All matrices."""
        return [spot.box for line in self.lines for block in line for spot in block.spots]

    @property
    def width(self) -> float:
        """Of the longest line."""
        return max(sum(block.width for block in line) + BESIDE * (len(line) - 1) for line in self.lines)

    @property
    def height(self) -> float:
        """Of all lines."""
        return sum(map(_high, self.lines)) + BELOW * (len(self.lines) - 1)

    def draw(self, page: Page, corner: tuple[float, float], style: Style, lit: Mapping[str, int]) -> None:
        """Draw them from this corner on; `lit` is as in `Block.draw`."""
        top = corner[1]
        for line in self.lines:
            left = corner[0]
            for block in line:
                block.draw(page, (left, top), max(one.head for one in line), style, lit)
                left += block.width + BESIDE
            top += _high(line) + BELOW


def strip_of(made: Sequence[Block], room: float) -> Strip:
    """Cards side by side, in lines no wider than this."""
    found: list[list[Block]] = []
    for block in made:
        used = sum(one.width + BESIDE for one in found[-1]) if found else 0.0
        if not found or used + block.width > room:
            found.append([])
        found[-1].append(block)
    return Strip(found)


def _high(line: Sequence[Block]) -> float:
    """The height of cards side by side."""
    return max(block.head for block in line) + max(block.body for block in line)
