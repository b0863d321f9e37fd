"""A walkthrough on one sheet: the finding, a drawing of the projections, then one card per step with its matrices.

If only one query is followed, its steps have one row per key. A slide has the steps of attention alone. Lengths are in
inches, font sizes in points.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from attnviz.look import Look
from attnviz.render.figure.export import Picture, blank_figure, usual_settings
from attnviz.render.figure.page import Line, Page, height_of, lines, page_of
from attnviz.render.figure.pen import MARGIN, TEXT, Pen
from attnviz.render.figure.style import Style, style_of
from attnviz.render.theme import LIGHT, Theme, theme_of
from attnviz.text.messages import _
from attnviz.walkthroughs import wording
from attnviz.walkthroughs.figure.matrix import MatrixBox, bold
from attnviz.walkthroughs.figure.projections import Projections
from attnviz.walkthroughs.texts import BEFORE, BY_KEY
from attnviz.walkthroughs.view import BLANK, OF_HEADS, GridView, StepView, View, query_weights

FINDING, SOURCE, TITLE, FORMULA, WORDS, SIGN = 15.0, 8.5, 9.0, 8.0, 7.5, 11.0  # font sizes
WIDEST, LEAST_WIDTH = 12.9, 7.0  # limits for the width of all cards together
HEADING_HEIGHT = 0.3
BADGE_WIDTH = 0.26  # width of a step number with two digits
SIGN_WIDTH, MATRIX_GAP = 0.3, 0.12  # widths of the sign and of the gap between two matrices
CARD_GAP, LINE_GAP, SECTION_GAP = 0.4, 0.3, 0.3
MOST_ROWS, FEW_ROWS = 48, 6  # most rows of an attention matrix, and of other matrices
MOST_COLUMNS, FEWEST_COLUMNS = 8, 4  # most and fewest columns that are drawn of a long vector
ASIDE_OF_SLIDE = 2.3  # height of the heading, the context and the receipt of a slide
SMALL = (6, 8)  # (rows, columns): larger given matrices are model weights, which are not drawn
# Most vectors drawn before a concatenation; if there are more, only the result is drawn.
MOST_JOINED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """One line above a card: the number of the step, its title, and sometimes its formula."""

    pen: Pen
    numbers: str  # such as "6"; of several steps "1 to 5"
    title: str
    formula: str = ""  # empty if it is written above the result

    @property
    def badge(self) -> float:
        """The width of the number, which is longer if it lists several steps."""
        longer = self.pen.width(self.numbers, WORDS) - self.pen.width("00", WORDS)
        return BADGE_WIDTH + max(0.0, longer)

    @property
    def title_width(self) -> float:
        """The width up to the end of the title, in bold letters, which are up to 18% wider than those measured."""
        return self.badge + 1.18 * self.pen.width(self.title, TITLE)

    @property
    def width(self) -> float:
        """The full width."""
        formula = self.pen.width(f"   {self.formula}", FORMULA) if self.formula else 0.0
        return self.title_width + formula

    def draw(self, page: Page, left: float, top: float) -> None:
        """Write the line with its top left corner at (`left`, `top`)."""
        shape = "circle" if self.numbers.isdigit() else "round"
        box = {"boxstyle": f"{shape},pad=0.25", "facecolor": self.pen.ink, "edgecolor": "none"}
        baseline = top + 0.17
        look: dict[str, Any] = {"ha": "center", "va": "center_baseline", "bbox": box}
        paper = self.pen.figure.get_facecolor()
        place = left + self.badge / 2 - 0.03, baseline - 0.05
        page.text(*place, self.numbers, WORDS, color=paper, **look)
        place = left + self.badge, baseline
        page.text(*place, self.title, TITLE, va="baseline", **bold(self.title))
        if self.formula:
            x = left + self.title_width + self.pen.width("  ", FORMULA)
            page.text(x, baseline, self.formula, FORMULA, va="baseline", color=self.pen.quiet)


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A step with the sizes and places of its matrices, or several steps with a drawing."""

    heading: Heading
    # the sign before each matrix, the matrix, and its left and top edge relative to the first matrix
    matrices: list[tuple[str, MatrixBox, float, float]]
    projections: Projections | None = None

    @property
    def width(self) -> float:
        """The width of the heading or of the matrices."""
        widths = [left + box.width for _, box, left, _ in self.matrices]
        drawing = self.projections.width if self.projections else 0.0
        return max([self.heading.width, drawing, *widths])

    @property
    def height(self) -> float:
        """The height of the heading and the matrices."""
        drawing = self.projections.height + 0.08 if self.projections else 0.0
        bottoms = [top + box.height for _, box, _, top in self.matrices]
        return HEADING_HEIGHT + max([drawing, *bottoms])

    def draw(self, page: Page, left: float, top: float) -> None:
        """Draw the card with its top left corner at (`left`, `top`)."""
        self.heading.draw(page, left, top)
        top += HEADING_HEIGHT
        if self.projections is not None:
            self.projections.draw(page, left, top + 0.08)
        for sign, matrix, x, y in self.matrices:
            matrix.draw(page, left + x, top + y)
            if sign:
                place = left + x - SIGN_WIDTH / 2, top + y + min(matrix.height / 2, 0.4)
                quiet = self.heading.pen.quiet
                page.text(*place, sign, SIGN, ha="center", va="center", color=quiet)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSheet:
    """The contents of a sheet, which `measure` turns into cards."""

    view: View
    cards: list[StepView]
    pen: Pen
    palette: str
    followed: Mapping[str, int]  # for some grids, by name, the row that has a frame
    width: float = WIDEST  # the largest width of the matrices of a card
    height: float = math.inf  # the largest height of a card with one line of matrices
    is_slide: bool = False  # whether the receipt is the only note

    def sections(self) -> list[list[Card]]:
        """Return the cards before, in and after attention."""
        grids = grids_to_draw(self.cards)
        sections = []
        for kind, group in groupby(self.cards, key=_kind_of):
            steps = list(group)
            # Small matrices, as in homework, are drawn; the shapes of large ones are enough.
            if kind == "before" and not any(grids[step.number] for step in steps if not step.heads):
                sections.append([self.summarize(steps)])
            else:
                sections.append([self.measure(step, grids[step.number]) for step in steps])
        return sections

    def summarize(self, steps: Sequence[StepView]) -> Card:
        """Return one card with a small drawing for the steps before attention."""
        title = _("Input and projections")
        return Card(
            heading=Heading(pen=self.pen, numbers=_range(steps), title=title),
            matrices=[],
            projections=Projections(self.view, steps, self.pen),
        )

    def measure(self, step: StepView, parts: Sequence[tuple[str, GridView]]) -> Card:
        """Measure a card with the matrices in `parts`.

        Vectors are shortened until the matrices fit into one line, and rows are left out until they fit the height.
        """
        is_attention = step.step.name in {*BY_KEY, "context"}
        formula = wording.shown_formula(step.formula)
        has_result = not step.heads and any(grid.name == step.step.result for _, grid in parts)
        shown_formula = formula if has_result else ""
        most_rows = MOST_ROWS if is_attention else FEW_ROWS
        for most_columns in range(MOST_COLUMNS, FEWEST_COLUMNS - 1, -1):
            matrices = self._arrange(step, parts, shown_formula, most_rows, most_columns)
            if all(
                top == 0.0 and left + box.names_width + box.cells_width <= self.width
                for _, box, left, top in matrices
            ):
                break
        while most_rows > FEW_ROWS and matrices:
            highest = max((box for _, box, _, _ in matrices), key=lambda box: box.height)
            excess = HEADING_HEIGHT + highest.height - self.height
            if excess <= 0:
                break
            n_rows = len(highest.rows) - math.ceil(excess / highest.row_height)
            most_rows = max(FEW_ROWS, n_rows)
            matrices = self._arrange(step, parts, shown_formula, most_rows, most_columns)
        heading = Heading(
            pen=self.pen,
            numbers=step.numbers,
            title=step.title,
            formula="" if has_result else formula,
        )
        room = max([0.0, *(left + box.width for _, box, left, _ in matrices)])
        if heading.width > room and ":" in step.title:  # "Softmax: the attention distribution"
            heading = replace(heading, title=step.title.partition(":")[0])
        return Card(heading=heading, matrices=matrices)

    def _arrange(
        self,
        step: StepView,
        parts: Sequence[tuple[str, GridView]],
        formula: str,
        most_rows: int,
        most_columns: int,
    ) -> list[tuple[str, MatrixBox, float, float]]:
        """Return the matrices with their signs and places; `formula` is above the result, if it is not empty."""
        boxes: list[MatrixBox] = []
        for _sign, grid in parts:
            box = MatrixBox(
                grid,
                self.pen,
                self.palette,
                self.view.digits,
                most_rows=most_rows,
                most_columns=most_columns,
                followed=self.followed.get(grid.name),
                has_names=bool(step.heads) or not boxes or boxes[-1].grid.rows != grid.rows,
                formula=formula if grid.name == step.step.result else "",
            )
            boxes.append(box)
        return _place([sign for sign, _ in parts], boxes, self.width)


def break_into_lines(cards: Sequence[Card], width: float) -> list[list[Card]]:
    """Return cards in lines of at most this width; a wider card has a line of its own."""
    card_lines: list[list[Card]] = []
    room = 0.0
    for card in cards:
        if card.width > room:
            card_lines.append([])
            room = width
        card_lines[-1].append(card)
        room -= card.width + CARD_GAP
    return card_lines


def _range(steps: Sequence[StepView]) -> str:
    """Return the numbers of steps, such as "1–5"; of several heads "1–4, … 39", since other steps are in between."""
    first, last = steps[0].number, steps[-1].number
    text = str(first) if last == first else f"{first}–{last}"
    last_of_heads = (steps[-1].heads or steps[-1:])[-1].number
    return text if last_of_heads == last else f"{text}, … {last_of_heads}"


def _place(
    signs: Sequence[str], boxes: Sequence[MatrixBox], width: float
) -> list[tuple[str, MatrixBox, float, float]]:
    """Place matrices side by side, in lines of this width; return each with its sign, left and top."""
    placed_boxes: list[tuple[str, MatrixBox, float, float]] = []
    left = top = line_height = 0.0
    for sign, box in zip(signs, boxes, strict=True):
        shown_sign = sign if placed_boxes else ""
        before = SIGN_WIDTH if shown_sign else 0.0
        if placed_boxes and left + before + box.width > width:
            left, top, line_height = 0.0, top + line_height + MATRIX_GAP, 0.0
        placed_boxes.append((shown_sign, box, left + before, top))
        left += before + box.width + MATRIX_GAP
        line_height = max(line_height, box.height)
    return placed_boxes


def prepare_sheet(view: View, palette: str, theme: Theme = LIGHT) -> StepSheet:
    """Return the contents of a sheet. Must be called inside `usual_settings` of the theme."""
    cards = view.cards()
    # All texts of the sheet, so that `blank_figure` can choose fonts that have their characters.
    texts = [*heading_texts(view), *note_texts(view, left_out=True), BLANK, "⋮…–∞≈"]
    texts.append(_("Input and projections"))
    for card in cards:
        texts += [card.title, wording.shown_formula(card.formula)]
        for sign, grid in card.parts:
            texts += [sign, grid.name, *grid.rows, *grid.columns]
    return StepSheet(
        view=view,
        cards=cards,
        pen=blank_figure(texts, theme),
        palette=palette,
        followed=_followed(view, cards),
    )


def _followed(view: View, cards: Sequence[StepView]) -> dict[str, int]:
    """Return the row to frame, that of the key with the largest weight, for each grid with one row per key.

    Empty if several queries are followed, or if cells are blank.
    """
    weights = query_weights(view.walk)
    if weights is None or view.blanks:
        return {}
    key = int(weights.values[0].argmax())
    return {
        grid.name: key
        for card in cards
        for _, grid in card.parts
        if card.is_by_key and len(grid.values) == weights.values.size > 1
    }


def draw(view: View, look: Look) -> Picture:
    """Draw the whole calculation."""
    page_style, palette = style_of(look), look.palette
    colours = theme_of(look.theme, palette)
    with usual_settings(colours):
        sheet = prepare_sheet(view, palette, colours)
        page = _draw_page(sheet if page_style.height is None else _slide(sheet, page_style))
    return Picture(page.pen, heading_texts(view)[0], view.receipt).fitted(page_style)


def heading_texts(view: View) -> tuple[str, str, str]:
    """Return the finding, the source and the formula."""
    first, second = view.heading
    return first, view.task or second, wording.shown_formula(wording.whole_formula(view.walk))


def note_texts(view: View, *, left_out: bool) -> Iterator[str]:
    """Yield the receipt, if there is one, and the notes; `left_out` says that numbers are left out."""
    yield from filter(None, (view.cut, view.receipt))
    yield _("Red: positive; blue: negative, scaled per matrix")
    if left_out:
        yield _("… stands for numbers left out; -o FILE.md has more, FILE.csv all")
    yield from filter(None, (view.small_weights, view.signs, *view.notes))


def _slide(sheet: StepSheet, style: Style) -> StepSheet:
    """Return the contents of a slide: the steps of attention, with as many rows as there is room for.

    Of several queries or heads, these are their weights and contexts.
    """
    assert style.width is not None
    assert style.height is not None
    names = {*BY_KEY, "context"}
    if query_weights(sheet.view.walk) is None:
        names = {"softmax", "context"}
    zoom = style.least / TEXT  # the smallest letters are then as small as can be read
    return replace(
        sheet,
        cards=[card for card in sheet.cards if card.step.name in names],
        width=style.width / zoom - 2 * MARGIN,
        height=(style.height / zoom - ASIDE_OF_SLIDE) / 2,  # of two lines of cards
        is_slide=True,
    )


def _draw_page(sheet: StepSheet) -> Page:
    """Draw the heading, the sections with a rule above each, and the notes."""
    pen = sheet.pen
    sections = [break_into_lines(cards, sheet.width) for cards in sheet.sections()]
    card_lines = [line for section in sections for line in section]
    room = max(LEAST_WIDTH, *map(line_width, card_lines))
    heading = heading_lines(pen, sheet.view, room)
    notes = [*note_texts(sheet.view, left_out=leaves_out(card_lines))]
    if sheet.is_slide:
        notes = [sheet.view.cut, sheet.view.receipt]
    note_lines = lines(pen, filter(None, notes), room, WORDS)
    cards_height = sum(line_height(line) + LINE_GAP for line in card_lines)
    cards_height += SECTION_GAP * (len(sections) + 1)
    height = 2 * MARGIN + height_of([*heading, *note_lines]) + cards_height
    page = page_of(pen, room + 2 * MARGIN, height)
    top = write_heading(page, heading)
    for section in sections:
        top = draw_rule(page, room, top)
        for cards in section:
            top = draw_line(cards, page, top)
    page.write(note_lines, draw_rule(page, room, top))
    return page


def heading_lines(pen: Pen, view: View, width: float) -> list[Line]:
    """Break the finding, the source and the formula into lines."""
    finding, source, formula = heading_texts(view)
    return [
        # The pen measures regular letters; bold ones are up to 10% wider.
        *lines(pen, [finding], width / 1.1, FINDING, colour=pen.ink, leading=1.4),
        *lines(pen, [source], width, SOURCE, colour=pen.quiet, leading=1.4),
        *lines(pen, [formula], width, SOURCE + 1, colour=pen.ink, leading=1.4),
    ]


def write_heading(page: Page, heading: Sequence[Line]) -> float:
    """Write the heading at the top of a page, and return the top of the contents below it."""
    top = MARGIN
    for line in heading:
        look = bold(line.text) if line.size == FINDING else {}
        page.text(MARGIN, top, line.text, line.size, va="top", color=line.colour, **look)
        top += line.pitch
    return top


def draw_line(cards: Sequence[Card], page: Page, top: float) -> float:
    """Draw cards side by side, and return the top of the next line."""
    left = MARGIN
    for card in cards:
        card.draw(page, left, top)
        left += card.width + CARD_GAP
    return top + line_height(cards) + LINE_GAP


def leaves_out(card_lines: Sequence[Sequence[Card]]) -> bool:
    """Return whether rows or columns of a matrix are left out."""
    boxes = [box for line in card_lines for card in line for _, box, _, _ in card.matrices]
    return any(None in (*box.rows, *box.columns) for box in boxes)


def line_width(cards: Sequence[Card]) -> float:
    """Return the width of cards side by side."""
    return sum(card.width + CARD_GAP for card in cards) - CARD_GAP


def line_height(cards: Sequence[Card]) -> float:
    """Return the height of cards side by side."""
    return max(card.height for card in cards)


def draw_rule(page: Page, width: float, top: float) -> float:
    """Draw a horizontal line, and return the top of the contents below it."""
    y = top + SECTION_GAP / 2
    page.ax.plot([MARGIN, MARGIN + width], [y, y], color=page.pen.theme.frame, linewidth=0.6)
    return top + SECTION_GAP


def _kind_of(card: StepView) -> str:
    if card.step.name in BEFORE:
        return "before"
    return "attention" if card.step.name in OF_HEADS else "after"


def grids_to_draw(cards: Sequence[StepView]) -> dict[int, list[tuple[str, GridView]]]:
    """Return the matrices to draw on each card, by its number; each matrix is drawn only once.

    A result that a step of attention needs is drawn on the card of that step. Model weights are not drawn, since their
    shapes are enough. If several heads have many rows, only their weights and contexts are drawn.
    """
    needed_later = {
        name for card in cards if card.step.name not in BEFORE for name in card.step.operands
    }
    results = {card.step.result for card in cards}
    drawn_names: set[str] = set()
    grids_of_card: dict[int, list[tuple[str, GridView]]] = {}
    for card in cards:
        inputs = [grid for _, grid in card.parts if grid.name not in results]
        has_weights = len(inputs) > MOST_JOINED or not all(map(_is_small, inputs))
        grids_of_card[card.number] = [
            (sign, grid)
            for sign, grid in card.parts
            if grid.name not in drawn_names
            and _is_shown(card, grid, grid.name in needed_later, has_weights and grid in inputs)
        ]
        drawn_names |= {grid.name for _, grid in grids_of_card[card.number]}
    return grids_of_card


def _is_shown(card: StepView, grid: GridView, is_needed_later: bool, is_of_model: bool) -> bool:
    """Return whether a card draws one of its grids, which no earlier card draws."""
    name, is_result = card.step.name, grid.name == card.result.name
    if card.heads:
        return len(grid.values) <= FEW_ROWS or name in {"softmax", "context"}
    if name in BEFORE:
        return _is_small(grid) and not is_of_model and not (is_result and is_needed_later)
    if is_result:
        return True
    if name in {*BY_KEY, "context"}:
        return name != "mask"  # the result of a mask shows the mask
    return not is_of_model


def _is_small(grid: GridView) -> bool:
    n_rows, n_columns = grid.values.shape
    return bool(n_rows <= SMALL[0] and n_columns <= SMALL[1])
