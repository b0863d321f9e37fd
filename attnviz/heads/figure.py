"""Figures of heads: the sheet of all heads with examples of their roles, and the page of one head.

Positions are in inches from the upper left corner of the page.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from jaxtyping import Real

from attnviz.attention import Attention
from attnviz.heads import tables, words
from attnviz.heads.measures import GROUPS
from attnviz.heads.record import HeadComparison, HeadProfile, Role
from attnviz.heads.roles import CONTROLS
from attnviz.heads.selection import (
    RoleCard,
    by_role,
    groups_of,
    own_card,
    received_by_words,
    strongest,
    strongest_link,
    strongest_links,
)
from attnviz.heads.tables import Column
from attnviz.render.figure.export import Picture, blank_figure, usual_settings
from attnviz.render.figure.page import Line, Page, Place, height_of, lines, page_of
from attnviz.render.figure.pen import (
    LEAST_TEXT,
    MARGIN,
    PITCH,
    POINT,
    SMALL,
    TEXT,
    TITLE,
    Pen,
)
from attnviz.render.figure.style import STYLES, Style
from attnviz.render.palette import hexed, levels, rgb_of, text_colours
from attnviz.render.sheet import Sheet, pool, resolve
from attnviz.render.theme import LIGHT, Theme
from attnviz.text.display import clip, visible
from attnviz.text.messages import Phrase, _, in_language, join_phrases

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 12.0  # width of the sheet in inches
# Inches. A picture narrower than COLUMN has only the map, and the table below it; a slide has them side by side.
COLUMN, SLIDE = 7.0, 8.8
# Inches: the smallest side of a cell of the map, its largest width and height (three lines of text).
LEAST_CELL, WIDEST_CELL, HIGHEST_CELL = 0.16, 1.05, 0.42
CELL_LINES = 3  # most lines of a text in a cell
WORD = (0.84, 0.26)  # largest width and height of a cell with a word, in inches
HIGHEST = 9.0  # largest height of the map in inches; cells shrink to fit
BESIDE, ABOVE = 0.45, 0.4  # inches for the layer numbers (left) and the head numbers (above)
ENTRY, BETWEEN, KEY = 0.205, 0.16, 0.24  # inches: height of a table row, between columns, a swatch
GAP = 0.45  # inches between the map and a table
CHANGED = 12  # number of heads in the table of those that differ most from a second model
ACROSS, SIDE, CARD_GAP = 4, 1.45, 0.25  # cards per row; inches: side of a pattern, between cards
MOST_TOKENS = 24  # largest number of tokens of a pattern; longer sentences are pooled
LABEL, LEADING = 11, 1.35 * TEXT * POINT  # letters of a token label; line height in inches
HEAD_WIDTH, LEFT, HEAD_SIDE, BARS = 10.0, 4.2, 3.6, 1.4
"""Sizes of the page of one head, in inches: width of the page and of its left column, side of the example pattern,
height of the bars by offset."""
NAMES, ROW = 1.4, 0.36  # inches: width of the names of measures, height of a row
LANES = {"shuffled": -0.12, "untrained": 0.06, "offset": 0.24, "chance": 0.42}
OWN_LANE = -0.3
"""Where the marks of a head and of its controls stand within a row, in rows, so that none covers another."""
MEASURE_NAMES = {
    "self": _("weight on itself"),
    "previous": _("weight on the previous token"),
    "next": _("weight on the next token"),
    "first": _("weight on the first token"),
    "separator": _("weight on separators"),
    "punctuation": _("weight on punctuation"),
    "same_word": _("weight on the same word"),
    "induction": _("weight by induction"),
    "entropy_share": _("entropy (share of maximum)"),
    "meaning": _("similarity of meaning (rank)"),
    "confidence": _("largest weight of a row"),
    "sink": _("largest weight on one key"),
    "variability": _("variation with the words"),
}
"""The names of measures on the page of a head; another measure has its own name."""
MARKERS = {"shuffled": ("x", 1), "untrained": ("^", 2), "offset": ("s", 7), "chance": ("D", 3)}
"""The marker of each control, and the index of its colour in the series of the theme."""
AXES = _("Rows are queries, columns are keys; colour: weight.")
Inches: TypeAlias = tuple[float, float]
Patterns: TypeAlias = Mapping[tuple[str, str], Attention]
"""The attention on examples, by the names of the head and the role."""
RoleNumbers: TypeAlias = dict[tuple[str, bool], str]
"""The numbers of roles on a map, by their names and by whether they are established."""


def _say(text: str, language: str) -> str:
    """Return a text in one language, with control characters made visible."""
    return visible(in_language(text, language))


def _begin(pen: Pen, width: float) -> Page:
    """Return a page that is drawn from top to bottom; `_end` sets its height."""
    return page_of(pen, width, 1.0)


def _end(page: Page, height: float) -> None:
    """Set the height of a page; the line about characters missing from the fonts moves with its lower edge."""
    width, before = page.size
    page.pen.figure.set_size_inches(width, height)
    page.ax.set_ylim(height, 0)
    if page.pen.typefaces.missing:
        line = page.ax.texts[0]
        line.set_y(line.get_position()[1] + height - before)


def _picture(pen: Pen, title: str, comparison: HeadComparison) -> Picture:
    """Return the picture that was drawn, with the model in its title and the corpus and receipt as its description."""
    names = visible(words.model_names(comparison))
    return Picture(
        pen, f"{title}: {names}", f"{words.sample(comparison)}; {words.proof(comparison)}"
    )


# The sheet of all heads.


def draw(
    comparison: HeadComparison,
    *,
    patterns: Patterns | None = None,
    unseen: str = "",
    language: str = "en",
    style: Style = STYLES["sheet"],
    theme: Theme = LIGHT,
) -> Picture:
    """Draw a comparison; for one sentence with known weights, draw what each head attends to in it.

    A slide or a narrow column has only the map and the roles, in readable letters. `patterns` has the attention on the
    examples; `unseen` says why there are no patterns.

    Raises SelectionError: a pattern lacks a head.
    """
    record = comparison.attention
    narrow = style.width is not None and (bool(style.height) or style.width < COLUMN)
    if narrow and record is None:
        return _draw_narrow(comparison, style, theme, language)
    rows = by_role(comparison)
    columns = _in_language(tables.role_table(rows), language) if record is None else []
    cards = _cards_of(comparison, patterns or {}, language)
    title = _say(words.finding(comparison), language)
    model = join_phrases(
        [words.model_names(comparison), words.description(comparison), words.sample(comparison)],
        " · ",
    )
    subtitle = _say(model, language)
    card_title = _say(_title_of_cards(comparison, unseen), language)
    notes = [_say(text, language) for text in _notes(comparison)]
    with usual_settings(theme):
        drawn_texts = [title, subtitle, card_title, *notes, *_texts_of(columns), "√→–·●○≤"]
        drawn_texts += [_say(GROUPS[group][0], language) for group in groups_of(comparison)]
        pen = blank_figure([*drawn_texts, *(text for card in cards for text in card.texts)], theme)
        text_width = WIDTH - 2 * MARGIN
        page = _begin(pen, WIDTH)
        heading = [*lines(pen, [title], text_width, 1.35 * TITLE, leading=1.5)]
        heading += lines(pen, [subtitle], text_width, colour=pen.quiet)
        top = page.write(heading, MARGIN) + 0.16
        if record is None:
            lower_end = _draw_roles(page, comparison, columns, top, language)
        else:
            lower_end = _draw_words(page, record, top, language)
        if comparison.against is not None:
            lower_end = _draw_changes(page, comparison, lower_end, language)
        if cards:
            lower_end = _draw_cards(page, cards, card_title, lower_end)
        _end(page, page.write(lines(pen, notes, text_width), lower_end) + MARGIN)
    return _picture(pen, title, comparison)


def _draw_narrow(comparison: HeadComparison, style: Style, theme: Theme, language: str) -> Picture:
    """Draw only the map and the table of roles: side by side on a slide, one below the other in a column."""
    margin, is_slide = style.margin, bool(style.height)
    columns = _in_language(tables.role_table(by_role(comparison)), language)
    title = _say(words.finding(comparison), language)
    notes = _notes(comparison) if style.caption == "all" else []
    if style.caption == "receipt":
        notes = [words.proof(comparison)]
    foot_lines = [_say(text, language) for text in notes]
    with usual_settings(theme):
        pen = blank_figure([title, *foot_lines, *_texts_of(columns)], theme)
        width = SLIDE if is_slide else style.width or SLIDE
        cell = _map_cell(comparison, 4.7 if is_slide else width - 2 * margin - BESIDE)
        left = margin + (_grid_size(comparison, cell)[0] + GAP if is_slide else 0.0)
        columns_shown = _fitting(pen, columns, width - margin - left)
        width = max(width, left + _table_width(pen, columns_shown) + margin)
        # The picture is enlarged or reduced to the width of its style, and its letters with it.
        pen = replace(pen, least=style.least * width / (style.width or width))
        page = _begin(pen, width)
        top = margin
        if style.has_title:
            title_lines = lines(pen, [title], width - 2 * margin, TITLE, leading=1.5)
            top = page.write(title_lines, margin, margin) + 0.1
        numbers = _draw_map(page, comparison, (margin, top), cell, language)
        lower_end = top + _grid_size(comparison, cell)[1]
        table_top = top if is_slide else lower_end + 0.12
        _draw_table(page, columns_shown, (left, table_top), numbers)
        lower_end = max(lower_end, table_top + ENTRY * (1 + len(columns_shown[0].cells)))
        foot = page.write(lines(pen, foot_lines, width - 2 * margin), lower_end + 0.1, margin)
        _end(page, foot + margin)
    return _picture(pen, title, comparison)


def _title_of_cards(comparison: HeadComparison, unseen: str) -> str:
    """Return the title above the cards; `unseen` says why there are no patterns."""
    if unseen:
        return _("Examples; their patterns are not shown: {why}").format(why=visible(unseen))
    title = _("A typical example of the clearest roles. {axes}")
    if comparison.attention is not None:
        title = _("The strongest links between words, each of another head. {axes}")
    return title.format(axes=AXES)


def _notes(comparison: HeadComparison) -> list[str]:
    """Return the notes at the foot of the sheet.

    The sheet of one sentence (`attention` is not None) shows what heads attend to in it, and has no roles to explain.
    """
    notes = [words.proof(comparison), *map(words.note_words, comparison.notes)]
    if comparison.attention is None:
        established = _(
            "Established: the 95% interval of the score reaches the role's threshold and lies above "
            "every control that could rule the role out; pale and with a question mark: not established."
        )
        notes += [established, words.HALVES] if comparison.relations else [established]
    if any(role.narrow for head in comparison.heads for role in head.roles[:1]):
        notes.append(words.TOO_NARROW)
    return [*notes, words.NOT_EXPLANATION]


def _map_cell(comparison: HeadComparison, widest: float = WIDTH - 2 * MARGIN - BESIDE) -> Inches:
    """Return the width and height of a cell of the map, in inches; the map is at most `widest`."""
    width = max(LEAST_CELL, min(WIDEST_CELL, widest / comparison.n_heads))
    height = max(LEAST_CELL, min(HIGHEST_CELL, HIGHEST / comparison.n_layers))
    return width, min(height, max(LEAST_CELL, 0.75 * width))


def _grid_size(comparison: HeadComparison, cell: Inches) -> Inches:
    """Return the width and height of a map with its numbers, in inches."""
    return BESIDE + comparison.n_heads * cell[0], ABOVE + comparison.n_layers * cell[1]


def _draw_roles(
    page: Page, comparison: HeadComparison, columns: Sequence[Column], top: float, language: str
) -> float:
    """Draw the map of roles and their table: side by side if the map is small; return their lower end."""
    cell = _map_cell(comparison)
    width, height = _grid_size(comparison, cell)
    numbers = _draw_map(page, comparison, (MARGIN, top), cell, language)
    left, table_top = MARGIN + max(width, 1.7) + GAP, top
    place = MARGIN + BESIDE, top + height + 0.1
    height = _draw_colour_legend(page, comparison, place, left - GAP, language) - top
    # All columns but the last, which describes the roles in words, must fit beside the map.
    if _table_width(page.pen, columns[:-1]) > WIDTH - MARGIN - left:
        left, table_top = MARGIN, top + height + 0.2
    columns_shown = _fitting(page.pen, columns, WIDTH - MARGIN - left)
    _draw_table(page, columns_shown, (left, table_top), numbers)
    return max(top + height, table_top + ENTRY * (1 + len(columns_shown[0].cells))) + 0.3


def _draw_map(
    page: Page, comparison: HeadComparison, corner: Inches, cell: Inches, language: str
) -> RoleNumbers:
    """Draw each head's clearest role in words, one row per layer.

    If a cell is too small for its words, all have the number of the role's row in the table instead; these numbers are
    returned, and none otherwise.
    """
    labels = {
        head.place: _say(tables.map_label(head.role), language) if head.role else ""
        for head in comparison.heads
    }
    numbers: RoleNumbers = {}
    if not all(_fit_text(page.pen, label, cell) for label in labels.values()):
        first_roles = [row[0].role for row in by_role(comparison)]
        numbers = {
            (role.name, role.established): str(number)
            for number, role in enumerate(first_roles, 1)
            if role is not None
        }
    for head in comparison.heads:
        label = labels[head.place]
        if numbers and head.role is not None:
            label = numbers[head.role.name, head.role.established]
        colour = _role_colour(head.role, page.pen.theme)
        _draw_cell(page, colour, label, _place(head.place, corner, cell))
    _number_grid(page, (comparison.n_layers, comparison.n_heads), corner, cell, language)
    return numbers


def _place(head: tuple[int, int], corner: Inches, cell: Inches) -> Place:
    """Return the position and size of the cell of a head, on a map with this upper left corner."""
    left, top = corner[0] + BESIDE + head[1] * cell[0], corner[1] + ABOVE + head[0] * cell[1]
    return left, top, cell[0], cell[1]


def _number_grid(
    page: Page, shape: tuple[int, int], corner: Inches, cell: Inches, language: str
) -> None:
    """Write the numbers of layers and heads along a map; numbers that do not fit are left out."""
    left, top = corner[0] + BESIDE, corner[1] + ABOVE
    for head in range(0, shape[1], max(1, math.ceil(PITCH / cell[0]))):
        page.text(left + (head + 0.5) * cell[0], top - 0.05, str(head), ha="center", va="bottom")
    for layer in range(0, shape[0], max(1, math.ceil(PITCH / cell[1]))):
        page.text(left - 0.06, top + (layer + 0.5) * cell[1], str(layer), ha="right", va="center")
    title = _say(_("head, counted from 0"), language)
    page.text(left, corner[1] + 0.02, title, va="top", color=page.pen.quiet)
    layers = _say(_("layer"), language)
    page.write_upward(corner[0], top + 0.01, layers, va="top", ha="left", color=page.pen.quiet)


def _draw_colour_legend(
    page: Page, comparison: HeadComparison, corner: Inches, right: float, language: str
) -> float:
    """Draw the colour and the name of each group of roles on the map, not beyond `right`; return the lower end."""
    left, top = corner
    for name, colour in map(GROUPS.__getitem__, groups_of(comparison)):
        text = _say(name, language)
        width = KEY + 0.05 + page.pen.width(text)
        if left > corner[0] and left + width > right:
            left, top = corner[0], top + ENTRY
        _draw_cell(page, colour, "", (left, top, KEY, 0.13), edge=(page.pen.quiet, 0.5))
        page.text(left + KEY + 0.05, top + 0.065, text, va="center", color=page.pen.quiet)
        left += width + 0.2
    return top + 0.13


def _role_colour(role: Role | None, theme: Theme) -> str:
    """Return the colour of a role, pale if the role is not established."""
    if role is None:
        return theme.shade
    return role.rule.colour if role.established else theme.paler(role.rule.colour)


def _draw_swatch(page: Page, role: Role | None, place: Place, text: str = "") -> None:
    """Draw a small cell in the colour of a role, with a question mark if the role is not established.

    Its outline makes a pale colour visible on the paper.
    """
    doubtful = role is not None and not role.established
    pen = page.pen
    _draw_cell(
        page, _role_colour(role, pen.theme), text or "?" * doubtful, place, edge=(pen.quiet, 0.5)
    )


def _draw_cell(
    page: Page, colour: str, text: str, place: Place, *, edge: tuple[str, float] | None = None
) -> None:
    """Draw a cell with a text in its middle, scaled to fit; no text if the letters would be too small.

    `edge` is the colour of its edge and the width of the line in points; by default a gap in the colour of the paper.
    """
    left, top, width, height = place
    edge_colour, line_width = edge or (page.pen.theme.paper, 1.0 if height > 0.15 else 0.3)
    page.box(place, facecolor=colour, edgecolor=edge_colour, linewidth=line_width, zorder=2)
    fitted = _fit_text(page.pen, text, (width, height))
    if fitted is None or not text:
        return
    style: dict[str, Any] = {"ha": "center", "va": "center", "zorder": 4, "linespacing": 1.05}
    style["color"] = str(text_colours(rgb_of(colour)))
    broken, size = fitted
    page.text(left + width / 2, top + height / 2, broken, size, **style)


def _fit_text(pen: Pen, text: str, cell: Inches) -> tuple[str, float] | None:
    """Return a text in lines that fit a cell, with the largest font size; None if no readable size fits."""
    room = cell[0] - 0.04
    size = min(TEXT, cell[1] / POINT / 1.35)
    while size >= pen.least:
        broken = pen.wrap(text, room, size)
        words_fit = pen.widest(text.split(), size) <= room
        if words_fit and len(broken) <= min(CELL_LINES, int(cell[1] / (1.3 * size * POINT))):
            return "\n".join(broken), size
        size -= 0.25
    return None


def _in_language(columns: Iterable[Column], language: str) -> list[Column]:
    """Return columns in one language, with control characters made visible."""
    return [
        replace(
            column,
            title=_say(column.title, language),
            cells=[_say(cell, language) for cell in column.cells],
        )
        for column in columns
    ]


def _texts_of(columns: Iterable[Column]) -> list[str]:
    """Return all texts of columns, to choose fonts."""
    return [text for column in columns for text in (column.title, *column.cells)]


def _column_width(pen: Pen, column: Column) -> float:
    """Return the width of a column, in inches."""
    # A column of roles without a title has their marks, which are drawn as swatches.
    if not column.title and column.roles:
        return KEY
    return pen.widest([column.title, *column.cells])


def _table_width(pen: Pen, columns: Sequence[Column]) -> float:
    """Return the width of a table with the space between its columns, in inches."""
    return sum(_column_width(pen, column) for column in columns) + BETWEEN * (len(columns) - 1)


def _fitting(pen: Pen, columns: Sequence[Column], room: float) -> list[Column]:
    """Return as many of the first columns as fit into `room`, but at least two."""
    n = len(columns)
    while n > 2 and _table_width(pen, columns[:n]) > room:
        n -= 1
    return list(columns[:n])


def _draw_table(
    page: Page, columns: Sequence[Column], corner: Inches, numbers: RoleNumbers | None = None
) -> None:
    """Draw a table; roles that are not established are grey, and their marks are drawn as swatches.

    `numbers` has the numbers of the roles that stand on the map instead of their names.
    """
    left, top = corner
    roles = columns[0].roles
    for column in columns:
        width = _column_width(page.pen, column)
        at, ha = (left + width, "right") if column.right else (left, "left")
        page.text(at, top + 0.5 * ENTRY, column.title, ha=ha, va="center", color=page.pen.quiet)
        for row, text in enumerate(column.cells):
            middle = top + (row + 1.5) * ENTRY
            if not column.title and column.roles:
                place, own = (left, middle - 0.085, width, 0.17), column.roles[row]
                number = (numbers or {}).get((own.name, own.established), "") if own else ""
                _draw_swatch(page, own, place, number)
                continue
            role = roles[row] if roles else None
            is_grey = bool(roles) and not (role and role.established)
            colour = page.pen.quiet if is_grey else page.pen.ink
            page.text(at, middle, text, ha=ha, va="center", color=colour)
        left += width + BETWEEN


def _draw_words(page: Page, record: Attention, top: float, language: str) -> float:
    """Draw a map with the word that receives most attention from each head, in the colour of its share.

    Return where the next part of the page may begin.
    """
    received = received_by_words(record)
    n_layers, n_heads = received.shape[:2]
    cell = min(WORD[0], (WIDTH - 2 * MARGIN - BESIDE) / n_heads), min(WORD[1], HIGHEST / n_layers)
    texts = {
        place: clip(visible(record.key_tokens[int(received[place].argmax())].text), 12)
        for place in np.ndindex(n_layers, n_heads)
    }
    _draw_values(page, received.max(axis=2), texts, (MARGIN, top), cell, language)
    lower_end = top + ABOVE + n_layers * cell[1]
    return float(lower_end + 0.24)  # with a space below the map


def _draw_values(
    page: Page,
    values: Real[np.ndarray, "layer head"],
    texts: Mapping[tuple[int, ...], str],
    corner: Inches,
    cell: Inches,
    language: str,
) -> None:
    """Draw a cell for each head in the colour of a value from 0 to 1, with a text in it."""
    table = page.pen.theme.colours()
    for place, text in texts.items():
        colour = hexed(table[levels(values[place].reshape(1), 1.0)[0]])
        _draw_cell(page, colour, text, _place((place[0], place[1]), corner, cell))
    _number_grid(page, (values.shape[0], values.shape[1]), corner, cell, language)


def _draw_changes(page: Page, comparison: HeadComparison, top: float, language: str) -> float:
    """Draw the divergence of each head from the second model, and a table of the largest; return the lower end."""
    cell = _map_cell(comparison)
    captions = [words.DIVERGENCE]
    if comparison.against is not None:
        captions.append(words.changes(comparison, comparison.against))
    texts = [_say(text, language) for text in captions]
    top = page.write(lines(page.pen, texts, WIDTH - 2 * MARGIN), top) + 0.08
    values = np.array([head.change.divergence for head in comparison.heads if head.change])
    values = values.reshape(comparison.n_layers, comparison.n_heads)
    numbers = {
        place: "" if np.isnan(values[place]) else f"{values[place]:.2f}"[1:]
        for place in np.ndindex(*values.shape)
    }
    # Scale to the largest divergence, which gets the darkest colour; 1e-9 avoids a division by 0.
    shades = np.nan_to_num(values / max(np.nanmax(values, initial=0.0), 1e-9))
    _draw_values(page, shades, numbers, (MARGIN, top), cell, language)
    width, height = _grid_size(comparison, cell)
    left = MARGIN + max(width, 1.7) + GAP
    n_rows = min(CHANGED, max(1, int(height / ENTRY) - 1))
    columns = _in_language(tables.change_table(comparison, n_rows), language)
    columns_shown = _fitting(page.pen, columns, WIDTH - MARGIN - left)
    _draw_table(page, columns_shown, (left, top))
    return top + max(height, ENTRY * (1 + len(columns_shown[0].cells))) + 0.24


# The cards.


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


def _cards_of(comparison: HeadComparison, patterns: Patterns, language: str) -> list[HeadCard]:
    """Return a card for each of the clearest roles, or, for one sentence, for each of its strongest links."""
    record = comparison.attention
    if record is None:
        return [_card_of(card, patterns.get(card.key), language) for card in strongest(comparison)]
    cards = []
    for link in strongest_links(record):
        title = _("Layer {layer}, head {head}").format(layer=link.layer, head=link.head)
        card = HeadCard(
            role=None,
            title=_say(title, language),
            text=visible(f"{link.words} {link.weight:.2f}"),
            sentence="",
            sheet=_weights(record, link.layer, link.head),
        )
        cards.append(card)
    return cards


def _card_of(card: RoleCard, record: Attention | None, language: str) -> HeadCard:
    """Return the card of a role; `record` has the attention on its example."""
    if card.example is None:
        sentence = _say(_("no example among the sentences kept"), language)
    else:
        sentence = f"“{visible(card.example.text)}” {card.example.score:.2f}"
    sheet, link = None, ""
    if record is not None:
        sheet = _weights(record, card.head.layer, card.head.head)
        link = _strongest_link(card, record, language)
    return HeadCard(
        role=card.role,
        title=_say(
            join_phrases(
                [card.head.name, "·", card.role.rule.short, words.rounded(card.role.score)]
            ),
            language,
        ),
        text=_say(card.role.rule.words, language),
        sentence=sentence,
        sheet=sheet,
        link=link,
    )


def _strongest_link(card: RoleCard, record: Attention, language: str) -> str:
    """Return the head's strongest link between two words; empty if its role is not about words."""
    own = record.select([card.head.layer], [card.head.head])
    link = strongest_link(own, 0, 0)
    if link is None or card.role.rule.group in {"special", "broad"}:
        return ""
    text = _("Strongest link: {words} {weight}")
    return _say(text.format(words=link.words, weight=words.rounded(link.weight)), language)


def _weights(record: Attention, layer: int, head: int) -> Sheet:
    """Return the pattern of a head, pooled if it has too many tokens."""
    return pool(resolve(record.select([layer], [head]), "unit"), MOST_TOKENS, MOST_TOKENS)


def _labels(tokens: Iterable[str]) -> list[str]:
    """Return tokens cut to the length of a label."""
    return [clip(token, LABEL) for token in tokens]


def _label_room(pen: Pen, sheets: Iterable[Sheet]) -> Inches:
    """Return the width of the labels to the left of patterns and the height of those above, in inches."""
    all_sheets = list(sheets)
    left = [label for sheet in all_sheets for label in _labels(sheet.query_labels)]
    above = [label for sheet in all_sheets for label in _labels(sheet.key_labels)]
    return pen.widest(left) + 0.05, pen.widest(above) + 0.08


def _draw_cards(page: Page, cards: Sequence[HeadCard], title: str, top: float) -> float:
    """Draw the title and below it the cards, `ACROSS` per row; return the lower end."""
    sheets = [card.sheet for card in cards if card.sheet is not None]
    if sheets:
        bar = WIDTH - MARGIN - 1.02, top, 0.9
        page.colour_bar(page.pen.theme.colours(), bar, {0.0: "0", 1.0: "1"}, along=True)
    top = page.write(lines(page.pen, [title], WIDTH - 2 * MARGIN - 1.5, TEXT + 1), top) + 0.12
    pen, width = page.pen, (WIDTH - 2 * MARGIN - (ACROSS - 1) * CARD_GAP) / ACROSS
    card_lines = [
        [
            Line(line, TEXT, colour, LEADING)
            for text, colour in (
                (card.text, pen.ink),
                (card.sentence, pen.quiet),
                (card.link, pen.ink),
            )
            for line in _two_lines(pen, text, width)
        ]
        for card in cards
    ]
    left, above = _label_room(pen, sheets)
    text_height = max(map(height_of, card_lines)) + 1.6 * LEADING
    pitch = text_height + 0.14 + (above + SIDE + 0.06 if sheets else 0.0)
    for number, (card, lines_of_card) in enumerate(zip(cards, card_lines, strict=True)):
        row, column = divmod(number, ACROSS)
        x, y = MARGIN + column * (width + CARD_GAP), top + row * pitch
        inset = 0.0
        if card.role is not None:
            _draw_swatch(page, card.role, (x, y - 0.02, KEY, 0.17))
            inset = KEY + 0.08
        page.text(x + inset, y + 0.015, clip(card.title, 40), TEXT + 0.5, va="top")
        page.write(lines_of_card, y + 1.6 * LEADING, x)
        if card.sheet is not None:
            _draw_pattern(page, card.sheet, (x + left, y + text_height + above), SIDE)
    return top + pitch * -(-len(cards) // ACROSS)


def _two_lines(pen: Pen, text: str, width: float) -> list[str]:
    """Break a text into at most two lines, with an ellipsis if it was cut."""
    first, *rest = [*pen.wrap(text, width, TEXT, 3), ""]
    return [first, rest[0][:-1] + "…"] if len(rest) > 2 else [first, *rest[:-1]]


def _draw_pattern(page: Page, sheet: Sheet, corner: Inches, side: float) -> None:
    """Draw a pattern with its tokens on the left and above; labels that do not fit are left out."""
    left, top = corner
    queries, keys = _labels(sheet.query_labels), _labels(sheet.key_labels)
    cell = min(0.3, side / max(len(queries), len(keys)))
    size = min(TEXT, max(LEAST_TEXT, cell / POINT / 1.15))
    step = math.ceil(size * 1.15 * POINT / cell - 0.01)
    panel = sheet.panels[0]
    place = left, top, cell * len(keys), cell * len(queries)
    theme = page.pen.theme
    page.image(theme.pixels(panel.matrix, panel.top, theme.colours()), place)
    for index in range(0, len(queries), step):
        page.text(
            left - 0.05, top + (index + 0.5) * cell, queries[index], size, ha="right", va="center"
        )
    for index in range(0, len(keys), step):
        style: dict[str, Any] = {"ha": "center", "va": "bottom", "rotation": 90}
        page.text(left + (index + 0.5) * cell, top - 0.05, keys[index], size, **style)


# The page of one head.


def draw_head(
    comparison: HeadComparison,
    layer: int,
    head: int,
    *,
    patterns: Patterns | None = None,
    language: str = "en",
    theme: Theme = LIGHT,
) -> Picture:
    """Draw one head: its roles and an example, its measures with their controls, and its weight by offset.

    Raises SelectionError: there is no such head.
    """
    profile = comparison.head(layer, head)
    cards = [
        _card_of(card, (patterns or {}).get(card.key), language)
        for card in own_card(profile, comparison)
    ]
    heading = _say(_title_of_head(profile), language)
    role_texts = [words.closest_roles(comparison, profile)]
    if profile.roles:
        role_texts = [
            text(role) for role in profile.roles for text in (words.role_score, words.how_sure)
        ]
    roles = [_say(text, language) for text in role_texts]
    subtitle = (
        f"{visible(words.model_names(comparison))} · {_say(words.sample(comparison), language)}"
    )
    notes = [_say(text, language) for text in _notes_of_head(comparison, profile)]
    with usual_settings(theme):
        texts = [
            heading,
            subtitle,
            *roles,
            *notes,
            *(text for card in cards for text in card.texts),
        ]
        pen = blank_figure([*texts, "√→–·—“”…●○"], theme)
        text_width = HEAD_WIDTH - 2 * MARGIN
        page = _begin(pen, HEAD_WIDTH)
        top = page.write(lines(pen, [heading], text_width, 1.35 * TITLE, leading=1.5), MARGIN)
        top = page.write(lines(pen, [subtitle], text_width, colour=pen.quiet), top) + 0.25
        left_end = page.write(lines(pen, roles, LEFT, colour=pen.ink), top)
        for card in cards:
            left_end = page.write(
                lines(pen, [card.sentence], LEFT, colour=pen.quiet), left_end + 0.1
            )
            if card.sheet is not None:
                label_width, label_height = _label_room(pen, [card.sheet])
                corner = MARGIN + label_width, left_end + label_height + 0.1
                _draw_pattern(page, card.sheet, corner, HEAD_SIDE)
                left_end = corner[1] + HEAD_SIDE
        n_shares = len(_shares(comparison))
        right = MARGIN + LEFT + 0.5 + NAMES
        width = HEAD_WIDTH - MARGIN - 0.1 - right
        bars_top = top + 0.2 + ROW * n_shares + 1.0
        right_end = bars_top + BARS + 0.4 if comparison.offsets else bars_top
        notes_top = max(left_end, right_end) + 0.15
        # Axes are placed relative to the height of the page, so it is set before they are added.
        _end(page, page.write(lines(pen, notes, text_width), notes_top) + MARGIN)
        if n_shares:
            ax = page.axes((right, top + 0.2, width, ROW * n_shares))
            _draw_measures(ax, pen, comparison, profile, language)
        if comparison.offsets:
            ax = page.axes((right, bars_top, width, BARS))
            _draw_offsets(ax, pen, comparison, profile, language)
    return _picture(pen, heading, comparison)


def _title_of_head(profile: HeadProfile) -> Phrase:
    """Return the layer and head, and what the head does."""
    place = _("Layer {layer}, head {head}").format(layer=profile.layer, head=profile.head)
    title = join_phrases([place, words.role_words(profile.role)], ": ")
    if profile.role and not profile.role.established:
        return _("{title} (not established)").format(title=title)
    return title


def _notes_of_head(comparison: HeadComparison, profile: HeadProfile) -> list[str]:
    """Return the notes at the foot of the page of one head."""
    notes: list[str] = [words.proof(comparison)]
    similar_heads = words.list_alike(comparison, profile)
    if similar_heads is not None:
        notes.append(similar_heads)
    notes += map(words.note_words, comparison.notes)
    return [*notes, words.TOO_NARROW, words.NOT_EXPLANATION]


def _shares(comparison: HeadComparison) -> list[str]:
    """Return the names of the shares, without those at fixed offsets and the norm-based ones."""
    return [
        measure.name
        for measure in comparison.measures
        if measure.unit == "share" and measure.offset is None and measure.takes != "norms"
    ]


def _mark_colour(role: Role | None, theme: Theme) -> str:
    """Return the colour of a role for marks on the paper."""
    return theme.quiet if role is None else theme.readable(role.rule.colour)


def _draw_offsets(
    ax: Axes, pen: Pen, comparison: HeadComparison, profile: HeadProfile, language: str
) -> None:
    """Draw the mean weight at each offset as a bar with its interval."""
    offsets = comparison.offsets
    estimates = np.array([comparison.at_offset(offset, profile) for offset in offsets])
    colour = _mark_colour(profile.role, pen.theme)
    ax.bar(offsets, np.nan_to_num(estimates[:, 0]), width=0.75, color=colour, zorder=2)
    for offset, (_value, low, high) in zip(offsets, estimates, strict=True):
        if not math.isnan(low):
            ax.plot([offset, offset], [low, high], color=pen.ink, linewidth=1.0, zorder=3)
    top = float(np.nanmax([*estimates.ravel(), 0.05]))
    ax.set(ylim=(0, min(1.0, 1.08 * top)), xlim=(offsets[0] - 0.6, offsets[-1] + 0.6))
    names = [f"{offset:+d}" if offset else "0" for offset in offsets]
    ax.set_xticks(offsets, names, **pen.style(SMALL))
    _finish_axes(ax, pen, _say(_("Mean weight by offset, 0 is the token itself"), language))


def _draw_measures(
    ax: Axes, pen: Pen, comparison: HeadComparison, profile: HeadProfile, language: str
) -> None:
    """Draw each share as a dot with its interval, with the controls in the same row."""
    names = _shares(comparison)
    rows = np.arange(len(names))
    estimates = np.array([comparison.estimate(name, *profile.place) for name in names])
    colour = _mark_colour(profile.role, pen.theme)
    has_interval = ~np.isnan(estimates[:, 1])
    style: dict[str, Any] = {"linewidth": 2.4, "alpha": 0.6, "zorder": 4}
    ax.hlines(
        rows[has_interval] + OWN_LANE,
        estimates[has_interval, 1],
        estimates[has_interval, 2],
        color=colour,
        **style,
    )
    label = _say(_("this head"), language)
    own_rows = rows + OWN_LANE
    dots: dict[str, Any] = {"s": 26, "color": colour, "edgecolor": pen.theme.paper, "zorder": 5}
    ax.scatter(estimates[:, 0], own_rows, label=label, **dots)
    _draw_controls(ax, pen.theme, comparison, profile, language)
    ax.set(xlim=(-0.02, 1.02), ylim=(len(names) - 0.5, -0.5))
    narrow = {measure.name for measure in comparison.measures if measure.narrow}
    shown_names = [
        _say(MEASURE_NAMES.get(name, name.replace("_", " ")), language) for name in names
    ]
    labels = [
        f"~{shown}" if name in narrow else shown
        for name, shown in zip(names, shown_names, strict=True)
    ]
    ax.set_yticks(rows, labels, **pen.style(SMALL + 0.5))
    ticks = np.linspace(0, 1, 6)
    ax.set_xticks(ticks, [f"{x:.1f}" for x in ticks], **pen.style(SMALL))
    legend = ax.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, -0.28 / (ROW * len(names))),
        ncols=1 + len(comparison.controls),
        frameon=False,
        handletextpad=0.1,
        columnspacing=0.6,
    )
    for text in legend.get_texts():
        text.set(**pen.style(SMALL + 0.5))
    _finish_axes(ax, pen, _say(_("Measures with their 95% intervals, and controls"), language))
    ax.grid(visible=False, axis="y")
    for row in range(0, len(names), 2):
        ax.axhspan(row - 0.5, row + 0.5, color=pen.theme.shade, linewidth=0, zorder=0)


def _draw_controls(
    ax: Axes, theme: Theme, comparison: HeadComparison, profile: HeadProfile, language: str
) -> None:
    """Draw a marker for each control of each share."""
    names = _shares(comparison)
    for control, (marker, index) in MARKERS.items():
        shade = theme.series[index]
        if control in comparison.controls:
            values = [comparison.control(control, name, profile) for name in names]
            label = _say(CONTROLS[control].title, language)
            rows = np.arange(len(names)) + LANES[control]
            markers = ax.scatter(
                values, rows, marker=marker, s=11, color=shade, label=label, zorder=6
            )
            if marker != "x":  # a cross has no face
                markers.set_facecolor("none")
                markers.set_edgecolor(shade)


def _finish_axes(ax: Axes, pen: Pen, title: str) -> None:
    """Write the title of axes, and style their grid, labels and frame."""
    ax.set_title(title, loc="left", pad=6, **pen.style(TEXT + 0.5))
    ax.grid(color=pen.theme.grid, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(length=0, pad=3)
    for label in ax.get_yticklabels():
        label.set(**pen.style(SMALL + 0.5))
    ax.spines[:].set(color=pen.theme.frame, linewidth=0.6)
