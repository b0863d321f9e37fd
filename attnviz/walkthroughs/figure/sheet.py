"""A walkthrough on one sheet: what was found, then the steps in their order, each with its words and its numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Unpack

from attnviz.render.figure.export import Picture, blank_figure, usual_settings
from attnviz.render.figure.page import Line, Page, height_of, lines, page_of
from attnviz.render.figure.pen import BLACK, FRAME, GREY, MARGIN
from attnviz.render.palette import DEFAULT
from attnviz.text.display import visible
from attnviz.walkthroughs.figure.card import WORDS, Block, block_of
from attnviz.walkthroughs.figure.flow import MOST_KEYS, Flow, draw_flow, flow_of
from attnviz.walkthroughs.figure.panel import Style, bold
from attnviz.walkthroughs.figure.plan import KEYS, Card, blocks, cards, fresh
from attnviz.walkthroughs.record import Walkthrough
from attnviz.walkthroughs.texts import BY_KEY
from attnviz.walkthroughs.wording import (
    BLANK,
    NO_BLANKS,
    Blanks,
    ViewOptions,
    by_cells,
    finding,
    followed,
    note_lines,
    receipt_line,
    say,
    shown_formula,
    source_line,
    strongest,
    title_line,
    whole_formula,
)

FOUND, SOURCE = 15.0, 8.5
"""The size of what was found and of whose calculation it is, in points."""
WIDE, NARROW = 12.9, 7.0
"""What a sheet may take across for cards, and what it has at least, in inches."""
FEW_ROWS = 6
"""Rows of a matrix that are printed outside attention itself."""
BETWEEN, BESIDE = 0.3, 0.4
"""Between two sections of a sheet, and between two cards, in inches."""

Section = list[list[Block]] | Flow


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a picture of a walkthrough tells.

    Attributes:
        walk: the calculation.
        cards: its steps.
        language: of all words.
        style: how it is drawn.
        lit: the key with the largest weight; None where no single query is followed, or cells are left blank.
        rows: of several queries the row to be followed of each matrix, by its name.
    """

    walk: Walkthrough
    cards: list[Card]
    language: str
    style: Style
    lit: int | None
    rows: Mapping[str, int]


def told(walk: Walkthrough, palette: str, scale: float = 1.0, **options: Unpack[ViewOptions]) -> Told:
    """Everything that a picture needs before anything is measured; to be called in `usual_settings`.

    Raises:
        SelectionError: a step or a language that is not there.
    """
    language, blanks = options.get("language", "en"), options.get("blanks", NO_BLANKS)
    made = cards(walk, **options)
    texts = [text for card in made for text in card.texts()]
    texts += [
        *_heading(walk, language, blanks),
        receipt_line(walk, language),
        *note_lines(walk, language),
        BLANK,
        "⋮…∞",
    ]
    texts += [say(what, language) for what in ("colours", "lit", "left out", "cells")]
    style = Style(pen=blank_figure(texts), palette=palette, precision=options.get("precision", 3), scale=scale)
    lit, rows = _lit(walk, made, blanks)
    return Told(walk=walk, cards=made, language=language, style=style, lit=lit, rows=rows)


def _lit(walk: Walkthrough, made: Sequence[Card], blanks: Blanks) -> tuple[int | None, dict[str, int]]:
    """The key of the largest weight of one query; of several the rows of the query and the key whose weight is."""
    softmax = [step for step in walk.steps if step.operation == "softmax"]
    if len(softmax) != 1 or {name for name, _, _ in blanks} & {step.result for step in walk.steps}:
        return None, {}
    largest = strongest(walk)
    if largest is None or followed(walk) is not None:
        return (None if largest is None else largest[1]), {}
    rows: dict[str, int] = {}
    for card in made:
        if card.step.name in BY_KEY or card.step.name == "context":
            names = [matrix.name for _, matrix in card.parts]
            rows |= dict.fromkeys(names, largest[0])
            keys = 1 if card.step.name == "context" else KEYS.get(card.step.operation)
            rows |= {} if keys is None else {names[keys]: largest[1]}
    return None, rows


def draw(walk: Walkthrough, *, palette: str = DEFAULT, **options: Unpack[ViewOptions]) -> Picture:
    """The whole calculation as a picture.

    Args:
        walk: what to draw.
        palette: one of `attnviz.render.names.PALETTES`, or any other colormap's name.
        options: as in `attnviz.walkthroughs.wording.ViewOptions`.

    Raises:
        SelectionError: a step, language or palette that is not there.
    """
    with usual_settings():
        it = told(walk, palette, **options)
        heading = _heading(walk, it.language, options.get("blanks", NO_BLANKS))
        page = _drawn(it, heading)
    return Picture(page.pen, heading[0], receipt_line(walk, it.language))


def _heading(walk: Walkthrough, language: str, blanks: Blanks) -> tuple[str, str, str]:
    """What was found, whose calculation it is, and its formula."""
    found = "" if blanks else finding(walk, language)
    title = title_line(walk, language)
    source = f"{title} · “{visible(walk.text)}”" if walk.text else title
    return found or title, source if found else source_line(walk, language), shown_formula(whole_formula(walk))


def _notes(it: Told, sections: Sequence[Section]) -> list[str]:
    """The receipt, how the sheet is read, and what was done to the input."""
    flows = [section for section in sections if isinstance(section, Flow)]
    boxes = [box for flow in flows for box in flow.boxes]
    boxes += [
        spot.box
        for section in sections
        if isinstance(section, list)
        for line in section
        for block in line
        for spot in block.spots
    ]
    read = say("colours", it.language) + (say("lit", it.language) if any(flow.weights for flow in flows) else "")
    read += say("left out", it.language) if any(None in (*box.rows, *box.columns) for box in boxes) else ""
    read += say("cells", it.language) if by_cells(it.walk.steps) else ""
    return [receipt_line(it.walk, it.language), read, *note_lines(it.walk, it.language)]


def _drawn(it: Told, heading: Sequence[str]) -> Page:
    """Measure the sections, and draw them below one another on a page that has the size they need."""
    sections = _sections(it)
    room = max(NARROW, *(_width(section) for section in sections))
    pen = it.style.pen
    above = [
        line
        for text, size, colour in zip(heading, (FOUND, SOURCE, SOURCE + 1), (BLACK, GREY, BLACK), strict=True)
        for line in lines(pen, [text], room / (1.1 if size == FOUND else 1), size, colour=colour, leading=1.4)
    ]
    below = lines(pen, _notes(it, sections), room, WORDS)
    inside = sum(_height(section) + BETWEEN for section in sections)
    page = page_of(pen, room + 2 * MARGIN, 2 * MARGIN + height_of([*above, *below]) + inside + BETWEEN / 2)
    _write_heading(page, above)
    top = MARGIN + height_of(above) + BETWEEN / 2
    for section in sections:
        page.ax.plot([MARGIN, MARGIN + room], [top - 0.06] * 2, color=FRAME, linewidth=0.6)
        _draw(page, section, top + 0.06, it)
        top += _height(section) + BETWEEN
    page.ax.plot([MARGIN, MARGIN + room], [top - 0.06] * 2, color=FRAME, linewidth=0.6)
    page.write(below, top)
    return page


def _write_heading(page: Page, above: Iterable[Line]) -> None:
    top = MARGIN
    for line in above:
        look = bold(line.text) if line.size == FOUND else {}
        page.text(MARGIN, top, line.text, line.size, va="top", color=line.colour, **look)
        top += line.pitch


def _sections(it: Told) -> list[Section]:
    """The steps in sections, measured."""
    weights = followed(it.walk)
    new = fresh(it.cards)
    sections: list[Section] = []
    for kind, made in blocks(it.cards):
        if kind == "rows" and weights is not None:
            flow = flow_of(made, it.style, weights.values[0], lit=it.lit)
            sections.append(flow)
            others = [("", matrix) for matrix in flow.others]
            if others:
                sections.append([[block_of(made[0], others, it.style, WIDE, words=False, rows=FEW_ROWS)]])
        else:
            sections.append(
                _strip([block_of(card, new[card.number], it.style, WIDE, rows=_rows(card)) for card in made])
            )
    return sections


def _rows(card: Card) -> int:
    """So many rows of a matrix are drawn: all that attention itself makes, the first and last of others."""
    return MOST_KEYS if card.step.name in BY_KEY or (card.step.name == "context" and not card.is_of_heads) else FEW_ROWS


def _strip(made: Sequence[Block]) -> list[list[Block]]:
    """Cards side by side, in as many lines as they need."""
    found: list[list[Block]] = []
    for block in made:
        used = sum(one.width + BESIDE for one in found[-1]) if found else 0.0
        if not found or used + block.width > WIDE:
            found.append([])
        found[-1].append(block)
    return found


def _width(section: Section) -> float:
    if isinstance(section, list):
        return max(sum(block.width for block in line) + BESIDE * (len(line) - 1) for line in section)
    return section.width


def _height(section: Section) -> float:
    if isinstance(section, list):
        return sum(map(_high, section)) + BETWEEN * (len(section) - 1)
    return section.height


def _high(line: Sequence[Block]) -> float:
    """The height of cards side by side."""
    return max(block.head for block in line) + max(block.body for block in line)


def _draw(page: Page, section: Section, top: float, it: Told) -> None:
    """Draw a section from this height on."""
    if isinstance(section, Flow):
        draw_flow(page, section, (MARGIN, top), it.style)
    else:
        for line in section:
            left = MARGIN
            for block in line:
                block.draw(page, (left, top), max(one.head for one in line), it.style, it.rows)
                left += block.width + BESIDE
            top += _high(line) + BETWEEN
