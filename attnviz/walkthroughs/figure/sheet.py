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
from attnviz.walkthroughs.figure.card import WORDS, CardRows, arrange_cards, measure_card
from attnviz.walkthroughs.figure.flow import Flow, measure_flow, place_of_keys
from attnviz.walkthroughs.figure.matrix import MOST_ROWS, SheetStyle, bold
from attnviz.walkthroughs.record import Walkthrough
from attnviz.walkthroughs.texts import BEFORE, BY_KEY
from attnviz.walkthroughs.view import (
    BLANK,
    OF_HEADS,
    GridView,
    StepView,
    View,
    ViewOptions,
    query_weights,
)

FINDING, SOURCE = 15.0, 8.5  # sizes of letters, in points
WIDEST, LEAST_WIDTH = 12.9, 7.0  # of the cards, in inches
SECTION_GAP = 0.3
FEW_ROWS = 6  # rows of a matrix outside attention itself
MOST_JOINED = 3  # vectors put side by side that are drawn; of more only the result

# Given numbers up to this size are drawn; larger ones are weights, whose shape says enough.
SMALL_ROWS, SMALL_COLUMNS = 6, 8

INPUTS = {"projection": 1, "norm": 1, "rms_norm": 1, "general": 1, "additive": 1, "gru": 2}
"""The number of operands, from the first, that are no weights of the model; of other operations all."""

Kind = Literal["before", "attention", "by key", "after"]
Section = CardRows | Flow


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetText:
    """The contents of a sheet, before anything is measured."""

    view: View
    cards: list[StepView]
    style: SheetStyle
    followed_key: int | None  # of one query the key with the largest weight, if it may be shown
    followed_rows: Mapping[str, int]  # of several queries the row to follow of each grid, by name


def prepare_sheet(walk: Walkthrough, palette: str, **options: Unpack[ViewOptions]) -> SheetText:
    """Return everything that a sheet shows; to be called in `usual_settings`."""
    view = View(walk=walk, **options)
    cards = view.cards()
    texts = [*_heading(view), view.receipt, *view.notes, BLANK, "⋮…∞"]
    texts += [view.say(phrase) for phrase in ("colours", "lit", "left out", "cells")]
    for card in cards:
        formulas = wording.shown_formula(card.formula), wording.shown_formula(card.shapes)
        texts += [card.title, card.sentence, *formulas]
        for sign, grid in card.parts:
            texts += [sign, grid.name, *grid.rows, *grid.columns]
    style = SheetStyle(pen=blank_figure(texts), palette=palette, precision=view.digits)
    key, rows = _followed(view, cards)
    return SheetText(view=view, cards=cards, style=style, followed_key=key, followed_rows=rows)


def _followed(view: View, cards: Sequence[StepView]) -> tuple[int | None, dict[str, int]]:
    """Return the key of the largest weight of one query; of several, the row to follow of each grid."""
    walk, largest = view.walk, wording.strongest(view.walk)
    results = {step.result for step in walk.steps}
    has_blanks = any(name in results for name, _, _ in view.blanks)
    if largest is None or has_blanks or len(walk.distributions()) != 1:
        return None, {}
    query, key, _, _ = largest
    if query_weights(walk) is not None:
        return key, {}
    rows: dict[str, int] = {}
    for card in cards:
        is_context = card.step.name == "context"
        if is_context or card.step.name in BY_KEY:
            names = [grid.name for _, grid in card.parts]
            rows |= dict.fromkeys(names, query)
            place = 1 if is_context else place_of_keys(card.step)
            if place is not None:
                rows[names[place]] = key
    return None, rows


def draw(walk: Walkthrough, *, palette: str = DEFAULT, **options: Unpack[ViewOptions]) -> Picture:
    """Draw the whole calculation."""
    with usual_settings():
        sheet = prepare_sheet(walk, palette, **options)
        page = _draw_page(sheet)
    return Picture(page.pen, _heading(sheet.view)[0], sheet.view.receipt)


def draw_for(
    walk: Walkthrough,
    *,
    palette: str = DEFAULT,
    style: StyleName = "sheet",
    width: str | None = None,
    dpi: int | None = None,
    **view: Unpack[ViewOptions],
) -> Picture:
    """Draw the whole calculation in a style. Raises SettingsError: a width that no picture has."""
    fitting = style_of(style, width, dpi)
    return draw(walk, palette=palette, **view).fitted(fitting)


def _heading(view: View) -> tuple[str, str, str]:
    """Return the finding, the source and the formula."""
    walk = view.walk
    finding = "" if view.blanks else view.finding
    source = f"{view.title} · “{visible(walk.text)}”" if walk.text else view.title
    formula = wording.shown_formula(wording.whole_formula(walk))
    return (finding, source, formula) if finding else (view.title, view.source, formula)


def _notes(sheet: SheetText, sections: Sequence[Section]) -> list[str]:
    view = sheet.view
    reading = view.say("colours")
    if any(isinstance(section, Flow) and section.weights for section in sections):
        reading += view.say("lit")
    if any(None in (*box.rows, *box.columns) for section in sections for box in section.boxes):
        reading += view.say("left out, blanks" if view.blanks else "left out")
    if wording.by_cells(view.walk.steps):
        reading += view.say("cells")
    return [view.receipt, reading, *view.notes]


def _draw_page(sheet: SheetText) -> Page:
    sections = _sections(sheet)
    room = max(LEAST_WIDTH, *(section.width for section in sections))
    pen = sheet.style.pen
    finding, source, formula = _heading(sheet.view)
    # Bold letters are wider than those that were measured.
    above = lines(pen, [finding], room / 1.1, FINDING, colour=BLACK, leading=1.4)
    above += lines(pen, [source], room, SOURCE, colour=GREY, leading=1.4)
    above += lines(pen, [formula], room, SOURCE + 1, colour=BLACK, leading=1.4)
    below = lines(pen, _notes(sheet, sections), room, WORDS)
    inside = sum(section.height + SECTION_GAP for section in sections)
    height = 2 * MARGIN + height_of([*above, *below]) + inside + SECTION_GAP / 2
    page = page_of(pen, room + 2 * MARGIN, height)
    top = MARGIN
    for line in above:
        look = bold(line.text) if line.size == FINDING else {}
        page.text(MARGIN, top, line.text, line.size, va="top", color=line.colour, **look)
        top += line.pitch
    top = MARGIN + height_of(above) + SECTION_GAP / 2
    for section in sections:
        _draw_rule(page, room, top)
        section.draw(page, MARGIN, top + 0.06)
        top += section.height + SECTION_GAP
    _draw_rule(page, room, top)
    page.write(below, top)
    return page


def _draw_rule(page: Page, width: float, top: float) -> None:
    page.ax.plot([MARGIN, MARGIN + width], [top - 0.06] * 2, color=FRAME, linewidth=0.6)


def _sections(sheet: SheetText) -> list[Section]:
    """Return the cards before attention, its steps, and what follows, each measured."""
    weights = query_weights(sheet.view.walk)
    grids = grids_to_draw(sheet.cards)
    style, rows = sheet.style, sheet.followed_rows
    sections: list[Section] = []
    for kind, group in groupby(sheet.cards, key=_kind):
        cards = list(group)
        if kind == "by key" and weights is not None:
            flow = measure_flow(cards, style, weights.values[0], followed=sheet.followed_key)
            sections.append(flow)
            if flow.others:
                others = [("", grid) for grid in flow.others]
                wordless = measure_card(
                    cards[0], others, style, WIDEST, has_words=False, most_rows=FEW_ROWS
                )
                sections.append(CardRows([[wordless]], rows))
        else:
            measured = []
            for card in cards:
                is_context = card.step.name == "context" and not card.heads
                most = MOST_ROWS if is_context or card.step.name in BY_KEY else FEW_ROWS
                parts = grids[card.number]
                measured.append(measure_card(card, parts, style, WIDEST, most_rows=most))
            sections.append(arrange_cards(measured, WIDEST, rows))
    return sections


def _kind(card: StepView) -> Kind:
    if card.step.name in BEFORE:
        return "before"
    if card.heads or card.step.name not in OF_HEADS:
        return "after"
    return "by key" if card.is_by_key or card.step.operation == "sum" else "attention"


def grids_to_draw(cards: Sequence[StepView]) -> dict[int, list[tuple[str, GridView]]]:
    """Return the matrices on each card, by its number: those that no card before it has.

    A matrix that a later step of attention needs is drawn there; of a model's weights the shapes say enough, and of
    heads with many rows the weights and contexts.
    """
    needed_later = {
        name for card in cards if card.step.name not in BEFORE for name in card.step.operands
    }
    results = {
        grid.name for card in cards for _, grid in (card.parts if card.heads else card.parts[-1:])
    }
    drawn: set[str] = set()
    chosen: dict[int, list[tuple[str, GridView]]] = {}
    for card in cards:
        chosen[card.number] = []
        for place, (sign, grid) in enumerate(card.parts):
            is_drawn = _is_shown(card, place, needed_later, results)
            if is_drawn and grid.name not in drawn:
                chosen[card.number].append((sign, grid))
                drawn.add(grid.name)
    return chosen


def _is_shown(card: StepView, place: int, needed_later: set[str], results: set[str]) -> bool:
    """Return whether a card shows one of its parts, where no card before it does."""
    step, grid = card.step, card.parts[place][1]
    given = [part for _, part in card.parts if part.name not in results]
    is_large = len(given) > MOST_JOINED or not all(map(_is_small, given))
    if card.heads:
        return len(grid.values) <= SMALL_ROWS or step.name in {"softmax", "context"}
    if step.name in BEFORE:
        is_shown_later = grid is card.result and grid.name in needed_later
        return not (is_large or is_shown_later or not _is_small(grid))
    if step.operation == "mask" and 0 < place < len(card.parts) - 1:
        return False  # the result shows the mask
    is_learned = place >= INPUTS.get(step.operation, place + 1) and step.name != "context"
    is_spare = is_learned or step.operation == "concatenate"
    return not (grid in given and is_large and is_spare)


def _is_small(grid: GridView) -> bool:
    n_rows, n_columns = grid.values.shape
    return bool(n_rows <= SMALL_ROWS and n_columns <= SMALL_COLUMNS)
