"""A step on a card: its words, and its matrices in colour with the signs between; of long ones the first and last."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import UInt8

from attnviz.render.figure.page import Line, Page, height_of, lines
from attnviz.render.figure.pen import BLACK, GREY, POINT, TINY, Pen, clipped
from attnviz.render.fonts import BASE, typefaces_for
from attnviz.render.palette import colours, diverging, ink, levels, signed_levels
from attnviz.walkthroughs.hand import format_number
from attnviz.walkthroughs.view import BLANK, Cut, GridView, StepView, cut
from attnviz.walkthroughs.wording import shown_formula

NUMBER, LABEL = 8.0, 8.0  # the size of numbers in cells, and of names at their sides, in points
ROW, PAD, LEAST, THIN = (
    0.25,
    0.06,
    0.28,
    0.15,
)  # a row, a cell beside its number, at least, and without one, in inches
NAMES_GAP = 0.07
LONGEST = 0.7  # the length of the longest bar of weights, in inches
MOST_NUMBERED = 12  # columns of keys whose numbers are printed
USUAL_DIGITS = 3  # digits after the point that are usual: vectors then have one less, since there are many of them
GAP_SIGN = {True: "⋮", False: "…"}
STRONG = 0.72  # how far along the palette the colour of bars and of what they weigh is
STEP, FORMULA, WORDS = (
    9.0,
    8.0,
    7.5,
)  # the sizes of a card's title, of its formula, and of its other words, in points
DOT = 0.26  # what the number of a step of two digits takes before its title, in inches
TITLED, SIGN, NEXT = (
    0.24,
    0.3,
    0.16,
)  # above a matrix for its symbol, between two, and two lines of them, in inches
NARROWEST, ROOMY = 1.15, 2.7  # what a card takes at least, beside others and alone, in inches
BESIDE, BELOW = 0.4, 0.3  # between two cards side by side, and between two lines of them, in inches
FEWEST = 4  # columns of a vector that are printed at least, with what stands for the others


@dataclass(frozen=True, slots=True, kw_only=True)
class CardStyle:
    """How a walkthrough is drawn."""

    pen: Pen  # with what
    palette: str  # the colours of weights
    precision: int  # digits after the point
    scale: float = 1.0  # how much larger than on a sheet all is
    most: int = 8  # columns of a vector that are drawn, with what stands for those left out

    @property
    def strong(self) -> tuple[float, ...]:
        """The one colour of bars."""
        table = colours(self.palette)
        return tuple(table[round(STRONG * (len(table) - 1))] / 255)

    def narrowest(self, card: StepView) -> float:
        """What a card takes at least: the longest word of its title."""
        longest = self.pen.widest(card.title.split(), STEP * self.scale)
        return max(NARROWEST * self.scale, 1.14 * longest + _dot(card, self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """How large a matrix is drawn; lengths in inches."""

    matrix: GridView  # what is drawn
    style: CardStyle  # how
    rows: Cut  # which of its rows
    columns: Cut  # which of its columns
    texts: tuple[tuple[str, ...], ...]  # the numbers printed; empty where there are too many
    row: float  # the height of a row
    column: float  # the width of a column
    bar: float  # the length of the longest bar beside the numbers
    below: float  # what the names of its columns take below it
    upright: bool  # whether these stand upright

    @property
    def scale(self) -> float:
        """How much larger than on a sheet."""
        return self.style.scale

    @property
    def width(self) -> float:
        """Of cells and bars."""
        return len(self.columns) * self.column + self.bar

    @property
    def height(self) -> float:
        """Of the cells."""
        return len(self.rows) * self.row

    @property
    def seen(self) -> np.ndarray:
        """The numbers that are drawn, NaN where some are left out."""
        seen = np.full((len(self.rows), len(self.columns)), np.nan)
        for i, row in enumerate(self.rows):
            for j, column in enumerate(self.columns):
                if (
                    row is not None
                    and column is not None
                    and (row, column) not in self.matrix.blanks
                ):
                    seen[i, j] = self.matrix.values[row, column]
        return seen

    @property
    def names(self) -> list[str]:
        """The names of the rows that are drawn."""
        names = clipped(self.matrix.rows)
        return [GAP_SIGN[True] if row is None else names[row] for row in self.rows] if names else []

    @property
    def names_width(self) -> float:
        """What these take at its left."""
        names, scale = self.names, self.scale
        return (
            1.1 * self.style.pen.widest(names, LABEL * scale) + NAMES_GAP * scale if names else 0.0
        )

    @property
    def title(self) -> str:
        """Its symbol, and its shape where it is drawn as it is used."""
        return (
            f"{self.matrix.name} {self.matrix.values.shape}"
            if self.matrix.has_vectors
            else self.matrix.name
        )

    def draw(self, page: Page, corner: tuple[float, float], lit: int | None = None) -> None:
        """Draw it with its cells from this corner on; `lit` is the row, as it is drawn, that is to be followed."""
        left, top = corner
        pixels, white = self._pixels()
        cells = len(self.columns) * self.column
        if self.bar:
            self._draw_bars(page, (left + cells, top), lit)
        else:
            page.image(pixels, (left, top, cells, self.height))
        size = NUMBER * self.scale
        for i, line in enumerate(self.texts):
            for j, text in enumerate(line):
                colour = "white" if white[i, j] and not self.bar else "black"
                x, y = left + (j + 0.5) * self.column, top + (i + 0.5) * self.row
                page.text(
                    x, y, text, size, ha="center", va="center_baseline", zorder=4, color=colour
                )
        if lit is not None:
            edge = {"fill": False, "edgecolor": BLACK, "linewidth": 1.4 * self.scale, "zorder": 5}
            page.box(
                (left, top + lit * self.row, self.width if not self.bar else cells, self.row),
                **edge,
            )
        names, below = clipped(self.matrix.columns), top + self.height + 0.04 * self.scale
        look = {"ha": "center", "va": "top", "rotation": 90.0 if self.upright else 0.0}
        for j, column in enumerate(self.columns if names else ()):
            name = GAP_SIGN[False] if column is None else names[column]
            page.text(left + (j + 0.5) * self.column, below, name, LABEL * self.scale, **look)

    def write_title(self, page: Page, corner: tuple[float, float]) -> None:
        """Write its title above it."""
        page.text(
            corner[0],
            corner[1] - 0.05 * self.scale,
            self.title,
            LABEL * self.scale,
            va="bottom",
            color=GREY,
        )

    def write_names(self, page: Page, right: float, top: float, lit: int | None = None) -> None:
        """Write the names of its rows at its left, smaller where they stand too close."""
        size = min(LABEL * self.scale, self.row / POINT / 1.2)
        for i, name in enumerate(self.names):
            look = bold(name) if i == lit else {}
            page.text(
                right,
                top + (i + 0.5) * self.row,
                name,
                size,
                ha="right",
                va="center_baseline",
                **look,
            )

    def _draw_bars(self, page: Page, corner: tuple[float, float], lit: int | None) -> None:
        weights, (left, top) = np.nan_to_num(self.seen[:, 0]), corner
        for i, share in enumerate(weights / max(weights.max(initial=0.0), np.finfo(float).tiny)):
            place = (left, top + (i + 0.2) * self.row, float(share) * self.bar, 0.6 * self.row)
            alpha = 1.0 if lit in {None, i} else 0.6
            page.box(place, facecolor=self.style.strong, edgecolor="none", alpha=alpha, zorder=3)

    def _pixels(self) -> tuple[UInt8[np.ndarray, "row column rgba"], np.ndarray]:
        """The colours of the cells that are drawn, and where white letters are read better than black ones."""
        seen = self.seen
        bare = ~np.isfinite(seen)
        values = np.where(bare, 0.0, seen)
        top = float(np.abs(values).max(initial=0.0))
        if self.matrix.is_weights:
            table, level = colours(self.style.palette), levels(values, top)
        else:
            table, level = diverging(), signed_levels(values, top)
        return np.dstack([table[level], np.where(bare, 0, 255).astype(np.uint8)]), ink(table)[
            level
        ] & ~bare


def _cut(n: int, most: int) -> Cut:
    last = 2 if most > 6 else 1
    return cut(n, most, most - 1 - last, last)


def box_of(
    matrix: GridView,
    style: CardStyle,
    *,
    rows: Cut | None = None,
    n_rows: int = 48,
    bars: bool = False,
) -> Box:
    """How large a matrix is drawn: with these rows, or with so many; with bars beside its weights or not."""
    rows = _cut(len(matrix.values), n_rows) if rows is None else rows
    columns = _cut(
        matrix.values.shape[1], style.most if matrix.has_vectors else max(n_rows, MOST_NUMBERED)
    )
    scale, size = style.scale, NUMBER * style.scale
    is_numbered = matrix.has_vectors or len(columns) <= MOST_NUMBERED
    texts = tuple(
        tuple(_number(matrix, row, column, style.precision) for column in columns) for row in rows
    )
    column = max(
        LEAST * scale,
        style.pen.widest([text for line in texts for text in line], size) + PAD * scale,
    )
    names = clipped(matrix.columns)
    widest = style.pen.widest(names, LABEL * scale)
    upright = bool(names) and (not is_numbered or widest + PAD * scale / 2 > column)
    line = 1.25 * LABEL * scale * POINT
    return Box(
        matrix=matrix,
        rows=rows,
        columns=columns,
        texts=texts if is_numbered else (),
        style=style,
        upright=upright,
        row=scale * (ROW if is_numbered else THIN),
        column=column if is_numbered else scale * THIN,
        bar=scale * LONGEST if bars else 0.0,
        below=((widest if upright else line) + 0.06 * scale) if names else 0.0,
    )


def _number(matrix: GridView, row: int | None, column: int | None, precision: int) -> str:
    if row is None or column is None:
        return GAP_SIGN[row is None]
    if (row, column) in matrix.blanks:
        return BLANK
    value = float(matrix.values[row, column])
    if precision > USUAL_DIGITS or not np.isfinite(value) or value == round(value):
        return format_number(value, precision)
    text = f"{value:.{precision - (matrix.has_vectors and precision == USUAL_DIGITS)}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def bold(text: str) -> dict[str, Any]:
    """How a text is made bold: only Matplotlib's own font has bold letters."""
    own = (BASE,)
    return (
        {"fontweight": "bold", "fontfamily": own} if typefaces_for([text]).families == own else {}
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The words of a step in lines."""

    card: StepView  # the step
    lines: tuple[Line, ...]  # from the first, the lines of its title
    style: CardStyle  # how they are written
    left: float = 0.0  # where they begin, in inches from what they belong to

    @property
    def height(self) -> float:
        """Of all lines, in inches."""
        return height_of(self.lines)

    def write(self, page: Page, corner: tuple[float, float]) -> None:
        """Write them, with the step's number before the title."""
        left, top, scale = corner[0] + self.left, corner[1], self.style.scale
        dot, shape = _dot(self.card, self.style), "round" if self.card.heads else "circle"
        box = {"boxstyle": f"{shape},pad=0.25", "facecolor": BLACK, "edgecolor": "none"}
        page.text(
            left + dot / 2 - 0.03,
            top + 0.6 * self.lines[0].pitch,
            self.card.numbers,
            WORDS * scale,
            ha="center",
            va="center_baseline",
            color="white",
            bbox=box,
        )
        for line in self.lines:
            is_title = line.size == STEP * scale
            look = bold(line.text) if is_title else {}
            x = left + (dot if is_title else 0.0)
            page.text(
                x, top + line.pitch, line.text, line.size, va="baseline", color=line.colour, **look
            )
            top += line.pitch


def _dot(card: StepView, style: CardStyle) -> float:
    """What the number of a step takes before its title, in inches; that of several heads is longer."""
    more = style.pen.width(card.numbers, WORDS * style.scale) - style.pen.width(
        "00", WORDS * style.scale
    )
    return DOT * style.scale + max(0.0, more)


def words_of(
    card: StepView, width: float, style: CardStyle, *, shapes: bool = False, left: float = 0.0
) -> Words:
    """The words of a step in lines no wider than this; the letters of its title are bold, and wider than measured."""
    scale, pen = style.scale, style.pen
    written = lines(
        pen, [card.title], (width - _dot(card, style)) / 1.12, STEP * scale, colour=BLACK
    )
    texts = [(shown_formula(card.formula), FORMULA, BLACK), (card.sentence, WORDS, GREY)]
    texts[1:1] = [(shown_formula(card.shapes), WORDS, GREY)] if shapes else []
    for text, size, colour in texts:
        written += lines(pen, [text], width, size * scale, colour=colour, leading=1.3)
    return Words(card=card, lines=tuple(written), style=style, left=left)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A matrix in its place, and where its cells begin, in inches from the corner of what it belongs to."""

    box: Box
    left: float
    top: float = 0.0
    sign: str = ""  # the sign before it
    number: int = 0  # the step that it is drawn for

    @property
    def right(self) -> float:
        """Its right edge."""
        return self.left + self.box.width


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedCard:
    """A card that has been measured; lengths in inches."""

    words: Words | None  # its words
    spots: tuple[Spot, ...]  # its matrices
    width: float  # of all
    head: float  # what the words take
    body: float  # what the matrices take below them

    def draw(
        self, page: Page, corner: tuple[float, float], head: float, lit: Mapping[str, int]
    ) -> None:
        """Draw it; its words take as much as `head`, and `lit` has the row to be followed of some matrices."""
        left, top = corner
        if self.words is not None:
            self.words.write(page, corner)
        for spot in self.spots:
            box, x, y = spot.box, left + spot.left, top + head + spot.top
            row = lit.get(box.matrix.name)
            seen = None if row is None or row not in box.rows else box.rows.index(row)
            box.write_title(page, (x, y))
            box.draw(page, (x, y), seen)
            box.write_names(page, x - 0.06 * box.scale, y, seen)
            if spot.sign:
                middle, high = (
                    x - box.names_width - SIGN * box.scale / 2,
                    y + min(box.height / 2, 0.6 * box.scale),
                )
                page.text(
                    middle, high, spot.sign, 11 * box.scale, ha="center", va="center", color=GREY
                )


def block_of(
    card: StepView,
    parts: Sequence[tuple[str, GridView]],
    style: CardStyle,
    room: float,
    *,
    words: bool = True,
    rows: int = 48,
) -> PlacedCard:
    """Measure a card that may be so wide, with these of its matrices, cut as far as they need to be."""
    signs = [sign for sign, _ in parts]
    for most in range(style.most, FEWEST - 1, -1):
        boxes = [box_of(matrix, replace(style, most=most), n_rows=rows) for _, matrix in parts]
        spots, width, height = _spots(signs, boxes, style, room, len(boxes))
        if len({spot.top for spot in spots}) <= 1 and width <= room:
            break
    else:
        if card.heads:  # in lines of as many each, with cells as wide
            wide = max(boxes, key=lambda box: box.column)
            boxes = [
                replace(box, column=wide.column, upright=wide.upright, below=wide.below)
                for box in boxes
            ]
            n_lines = len({spot.top for spot in _spots(signs, boxes, style, room, len(boxes))[0]})
            spots, width, height = _spots(
                signs, boxes, style, room, math.ceil(len(boxes) / n_lines)
            )
    least = max(width, min(room, ROOMY * style.scale)) if words else width
    heading = words_of(card, least, style, shapes=True) if words else None
    head = 0.0 if heading is None else heading.height + 0.06 * style.scale
    return PlacedCard(words=heading, spots=tuple(spots), width=least, head=head, body=height)


def _spots(
    signs: Sequence[str], boxes: Sequence[Box], style: CardStyle, room: float, most: int
) -> tuple[list[Spot], float, float]:
    """Matrices side by side, so many at most, in as many lines as they need; how wide and how high they are."""
    x = top = widest = tallest = 0.0
    spots: list[Spot] = []
    for place, (sign, box) in enumerate(zip(signs, boxes, strict=True)):
        own = max(box.width, style.pen.width(box.title, 8 * style.scale))
        before = box.names_width + (SIGN * style.scale if sign and spots else 0.0)
        if spots and (x + before + own > room or place % most == 0):
            x, top, tallest = 0.0, top + tallest + NEXT * style.scale, 0.0
            before = box.names_width + (SIGN * style.scale if sign else 0.0)
        spots.append(
            Spot(
                sign=sign if spots else "", box=box, left=x + before, top=top + TITLED * style.scale
            )
        )
        x += before + own + 0.06 * style.scale
        widest, tallest = (
            max(widest, x),
            max(tallest, TITLED * style.scale + box.height + box.below),
        )
    return spots, widest, top + tallest


@dataclass(frozen=True, slots=True)
class Strip:
    """Cards side by side, in as many lines as they need; lengths in inches."""

    lines: list[list[PlacedCard]]
    lit: Mapping[str, int]  # the row to be followed of some matrices

    @property
    def boxes(self) -> list[Box]:
        """All matrices."""
        return [spot.box for line in self.lines for block in line for spot in block.spots]

    @property
    def width(self) -> float:
        """Of the longest line."""
        return max(
            sum(block.width for block in line) + BESIDE * (len(line) - 1) for line in self.lines
        )

    @property
    def height(self) -> float:
        """Of all lines."""
        return sum(map(_high, self.lines)) + BELOW * (len(self.lines) - 1)

    def draw(self, page: Page, corner: tuple[float, float]) -> None:
        """Draw them from this corner on."""
        top = corner[1]
        for line in self.lines:
            left = corner[0]
            for block in line:
                block.draw(page, (left, top), max(one.head for one in line), self.lit)
                left += block.width + BESIDE
            top += _high(line) + BELOW


def strip_of(made: Sequence[PlacedCard], room: float, lit: Mapping[str, int]) -> Strip:
    """Cards side by side, in as few lines as there can be that are no wider than this, as narrow as these can be."""
    found, widest = Strip(_lines(made, room), lit), max(block.width for block in made)
    while found.width > widest and len(narrower := _lines(made, found.width - TINY)) == len(
        found.lines
    ):
        found = Strip(narrower, lit)
    return found


def _lines(made: Sequence[PlacedCard], room: float) -> list[list[PlacedCard]]:
    found: list[list[PlacedCard]] = []
    for block in made:
        if not found or sum(one.width + BESIDE for one in found[-1]) + block.width > room:
            found.append([])
        found[-1].append(block)
    return found


def _high(line: Sequence[PlacedCard]) -> float:
    return max(block.head for block in line) + max(block.body for block in line)
