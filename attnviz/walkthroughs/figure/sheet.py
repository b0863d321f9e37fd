"""A walkthrough on one sheet: what was found, then a card for each step, with its words and its matrices.

The steps of one query stand side by side, a row a key; several heads below one another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, Unpack

from attnviz.render.figure.export import Picture, blank_figure, usual_settings
from attnviz.render.figure.page import Page, height_of, lines, page_of
from attnviz.render.figure.pen import BLACK, FRAME, GREY, MARGIN
from attnviz.render.figure.style import StyleName, style_of
from attnviz.render.palette import DEFAULT
from attnviz.text.display import visible
from attnviz.walkthroughs import wording
from attnviz.walkthroughs.figure.card import WORDS, CardStyle, Strip, block_of, bold, strip_of
from attnviz.walkthroughs.figure.flow import MOST_KEYS, Flow, flow_of, keys_of
from attnviz.walkthroughs.record import Walkthrough
from attnviz.walkthroughs.texts import BEFORE, BY_KEY
from attnviz.walkthroughs.view import (
    BLANK,
    HEADED,
    GridView,
    StepView,
    View,
    ViewOptions,
    query_weights,
)

FOUND, SOURCE = 15.0, 8.5  # the size of what was found and of whose calculation it is, in points
WIDE, NARROW = (
    12.9,
    7.0,
)  # what a sheet may take across for cards, and what it has at least, in inches
FEW_ROWS = 6  # rows of a matrix that are printed outside attention itself
BETWEEN = 0.3  # between two sections of a sheet, in inches
MOST_JOINED = 3  # vectors put side by side that are drawn; of more, as the contexts of a dozen heads, the result is
SMALL = (
    6,
    8,
)  # rows and columns of given numbers that are drawn; larger ones are weights, whose shape says enough
PARAMETERS = {"projection": 1, "norm": 1, "rms_norm": 1, "general": 1, "additive": 1, "gru": 2}
"""How many operands of an operation, from the first, are no weights of the model; of others all."""

Kind = Literal["before", "attention", "rows", "after"]
Section = Strip | Flow


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetText:
    """What a picture of a walkthrough tells."""

    view: View  # the calculation, and how it is shown
    cards: list[StepView]  # its steps
    style: CardStyle  # how it is drawn
    # the key with the largest weight; None where no single query is followed, or cells are left
    # blank
    lit: int | None
    rows: Mapping[str, int]  # of several queries the row to be followed of each matrix, by its name


def prepare_sheet(walk: Walkthrough, palette: str, **options: Unpack[ViewOptions]) -> SheetText:
    """Everything that a picture needs before anything is measured; to be called in `usual_settings`."""
    view = View(walk=walk, **options)
    made = view.cards()
    texts = [*_heading(view), view.receipt, *view.notes, BLANK, "⋮…∞"]
    texts += map(view.say, ("colours", "lit", "left out", "cells"))
    for card in made:
        texts += [
            card.title,
            card.sentence,
            *map(wording.shown_formula, (card.formula, card.shapes)),
        ]
        texts += [
            text for sign, one in card.parts for text in (sign, one.name, *one.rows, *one.columns)
        ]
    style = CardStyle(pen=blank_figure(texts), palette=palette, precision=view.digits)
    lit, rows = _lit(view, made)
    return SheetText(view=view, cards=made, style=style, lit=lit, rows=rows)


def _lit(view: View, made: Sequence[StepView]) -> tuple[int | None, dict[str, int]]:
    """The key of the largest weight of one query; of several the rows of the query and the key whose weight is."""
    walk = view.walk
    if len(walk.distributions()) != 1 or {name for name, _, _ in view.blanks} & {
        step.result for step in walk.steps
    }:
        return None, {}
    largest = wording.strongest(walk)
    if largest is None or query_weights(walk) is not None:
        return (None if largest is None else largest[1]), {}
    rows: dict[str, int] = {}
    for card in made:
        if card.step.name in BY_KEY or card.step.name == "context":
            names = [matrix.name for _, matrix in card.parts]
            rows |= dict.fromkeys(names, largest[0])
            keys = 1 if card.step.name == "context" else keys_of(card.step)
            rows |= {} if keys is None else {names[keys]: largest[1]}
    return None, rows


def draw(walk: Walkthrough, *, palette: str = DEFAULT, **options: Unpack[ViewOptions]) -> Picture:
    """The whole calculation as a picture."""
    with usual_settings():
        it = prepare_sheet(walk, palette, **options)
        page = _draw_page(it)
    return Picture(page.pen, _heading(it.view)[0], it.view.receipt)


def draw_for(
    walk: Walkthrough,
    *,
    palette: str = DEFAULT,
    style: StyleName = "sheet",
    width: str | None = None,
    dpi: int | None = None,
    **view: Unpack[ViewOptions],
) -> Picture:
    """The whole calculation as a picture of a style; or SettingsError: a width that no picture has."""
    fitting = style_of(style, width, dpi)
    return draw(walk, palette=palette, **view).fitted(fitting)


def _heading(view: View) -> tuple[str, str, str]:
    walk, found = view.walk, "" if view.blanks else view.finding
    source = f"{view.title} · “{visible(walk.text)}”" if walk.text else view.title
    formula = wording.shown_formula(wording.whole_formula(walk))
    return found or view.title, source if found else view.source, formula


def _notes(it: SheetText, sections: Sequence[Section]) -> list[str]:
    view = it.view
    is_cut = any(None in (*box.rows, *box.columns) for one in sections for box in one.boxes)
    signs = {
        "lit": any(isinstance(one, Flow) and one.weights for one in sections),
        "left out, blanks" if view.blanks else "left out": is_cut,
        "cells": wording.by_cells(view.walk.steps),
    }
    read = view.say("colours") + "".join(
        view.say(what) for what, is_there in signs.items() if is_there
    )
    return [view.receipt, read, *view.notes]


def _draw_page(it: SheetText) -> Page:
    sections = _sections(it)
    room = max(NARROW, *(section.width for section in sections))
    pen = it.style.pen
    above = [
        line
        for text, size, colour in zip(
            _heading(it.view), (FOUND, SOURCE, SOURCE + 1), (BLACK, GREY, BLACK), strict=True
        )
        for line in lines(
            pen, [text], room / (1.1 if size == FOUND else 1), size, colour=colour, leading=1.4
        )
    ]
    below = lines(pen, _notes(it, sections), room, WORDS)
    inside = sum(section.height + BETWEEN for section in sections)
    page = page_of(
        pen, room + 2 * MARGIN, 2 * MARGIN + height_of([*above, *below]) + inside + BETWEEN / 2
    )
    top = MARGIN
    for line in above:
        look = bold(line.text) if line.size == FOUND else {}
        page.text(MARGIN, top, line.text, line.size, va="top", color=line.colour, **look)
        top += line.pitch
    top = MARGIN + height_of(above) + BETWEEN / 2
    for section in sections:
        page.ax.plot([MARGIN, MARGIN + room], [top - 0.06] * 2, color=FRAME, linewidth=0.6)
        section.draw(page, (MARGIN, top + 0.06))
        top += section.height + BETWEEN
    page.ax.plot([MARGIN, MARGIN + room], [top - 0.06] * 2, color=FRAME, linewidth=0.6)
    page.write(below, top)
    return page


def _sections(it: SheetText) -> list[Section]:
    weights = query_weights(it.view.walk)
    new = fresh(it.cards)
    sections: list[Section] = []
    for kind, made in blocks(it.cards):
        if kind == "rows" and weights is not None:
            flow = flow_of(made, it.style, weights.values[0], lit=it.lit)
            sections.append(flow)
            others = [("", matrix) for matrix in flow.others]
            if others:
                block = block_of(made[0], others, it.style, WIDE, words=False, rows=FEW_ROWS)
                sections.append(Strip([[block]], it.rows))
        else:
            drawn = [
                block_of(card, new[card.number], it.style, WIDE, rows=_rows(card)) for card in made
            ]
            sections.append(strip_of(drawn, WIDE, it.rows))
    return sections


def _rows(card: StepView) -> int:
    """So many rows of a matrix are drawn: all that attention itself makes, the first and last of others."""
    return (
        MOST_KEYS
        if card.step.name in BY_KEY or (card.step.name == "context" and not card.heads)
        else FEW_ROWS
    )


def blocks(made: Sequence[StepView]) -> list[tuple[Kind, list[StepView]]]:
    """The cards of a sheet in blocks: what comes before attention, its steps, and what follows it."""

    def kind(card: StepView) -> Kind:
        if card.heads or card.step.name not in HEADED:
            return "before" if card.step.name in BEFORE else "after"
        if card.step.name in BEFORE:
            return "before"
        return "rows" if card.is_by_key or card.step.operation == "sum" else "attention"

    return [(kind, list(group)) for kind, group in groupby(made, key=kind)]


def fresh(made: Sequence[StepView]) -> dict[int, list[tuple[str, GridView]]]:
    """The matrices drawn on each card, by its number: those that no card before it has.

    What a later step of attention is made from is drawn there; of a model's weights the shapes say enough, and of heads
    with many rows the weights and contexts.
    """
    later = {name for card in made if card.step.name not in BEFORE for name in card.step.operands}
    results = {matrix.name for card in made for _, matrix in card.parts[0 if card.heads else -1 :]}
    drawn: set[str] = set()
    found: dict[int, list[tuple[str, GridView]]] = {}
    for card in made:
        step, new = card.step, found.setdefault(card.number, [])
        given = [matrix for _, matrix in card.parts if matrix.name not in results]
        is_large = len(given) > MOST_JOINED or not all(map(_is_small, given))
        for place, (sign, matrix) in enumerate(card.parts):
            if card.heads:
                left_out = len(matrix.values) > SMALL[0] and step.name not in {"softmax", "context"}
            elif step.name in BEFORE:
                left_out = (
                    is_large
                    or not _is_small(matrix)
                    or (matrix is card.result and matrix.name in later)
                )
            else:
                learned = (
                    place >= PARAMETERS.get(step.operation, place + 1) and step.name != "context"
                )
                left_out = (
                    matrix in given and is_large and (learned or step.operation == "concatenate")
                )
            # what it makes shows it
            masks = step.operation == "mask" and 0 < place < len(card.parts) - 1
            if not (left_out or masks or matrix.name in drawn):
                new.append((sign, matrix))
                drawn.add(matrix.name)
    return found


def _is_small(matrix: GridView) -> bool:
    return all(n <= most for n, most in zip(matrix.values.shape, SMALL, strict=True))
