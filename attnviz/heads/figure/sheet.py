"""The figure of all heads: a sheet with examples of their roles, or a narrow column without them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from attnviz.attention import Attention
from attnviz.heads import tables, words
from attnviz.heads.figure.cards import AXES, Patterns, card_of, cards_of, draw_cards
from attnviz.heads.figure.parts import (
    ABOVE,
    BESIDE,
    ENTRY,
    GAP,
    Inches,
    begin,
    draw_colour_legend,
    draw_divergences,
    draw_map,
    draw_table,
    draw_words,
    finish,
    fitting_columns,
    grid_size,
    picture_of,
    table_width,
    texts_of,
    translated,
)
from attnviz.heads.measures import GROUPS
from attnviz.heads.record import HeadComparison
from attnviz.heads.selection import by_role, groups_of, own_cards
from attnviz.render.columns import Column
from attnviz.render.figure.export import Picture, blank_figure, usual_settings
from attnviz.render.figure.page import Page, lines
from attnviz.render.figure.pen import MARGIN, TITLE
from attnviz.render.figure.style import Style
from attnviz.render.theme import Theme
from attnviz.text.display import visible
from attnviz.text.messages import _

WIDTH = 12.0  # width of the sheet in inches
# Inches: the smallest side of a cell of the map, its largest width and height (three lines of text).
LEAST_CELL, WIDEST_CELL, HIGHEST_CELL = 0.16, 1.05, 0.42
WORD = (0.84, 0.26)  # largest width and height of a cell with a word, in inches
HIGHEST = 9.0  # largest height of the map in inches; cells shrink to fit
MOST_ROLES = 4  # roles of a head that are shown
CHANGED = 12  # number of heads in the table of those that differ most from a second model


def draw_sheet(
    comparison: HeadComparison, patterns: Patterns, unseen: str, theme: Theme
) -> Picture:
    """Draw all heads; for one sentence with known weights, what each head attends to in it."""
    record = comparison.attention
    rows = by_role(comparison)
    columns = translated(tables.role_table(rows)) if record is None else []
    cards = cards_of(comparison, patterns)
    title = visible(words.finding(comparison))
    model = " · ".join(
        [words.model_names(comparison), words.description(comparison), words.sample(comparison)]
    )
    subtitle = visible(model)
    card_title = visible(_title_of_cards(comparison, unseen))
    notes = [visible(text) for text in _notes(comparison)]
    with usual_settings(theme):
        drawn_texts = [title, subtitle, card_title, *notes, *texts_of(columns), "√→–·●○≤"]
        drawn_texts += [visible(_(GROUPS[group][0])) for group in groups_of(comparison)]
        pen = blank_figure([*drawn_texts, *(text for card in cards for text in card.texts)], theme)
        text_width = WIDTH - 2 * MARGIN
        page = begin(pen, WIDTH)
        heading = [*lines(pen, [title], text_width, 1.35 * TITLE, leading=1.5)]
        heading += lines(pen, [subtitle], text_width, colour=pen.quiet)
        top = page.write(heading, MARGIN) + 0.16
        lower_end = (
            _draw_roles(page, comparison, columns, top)
            if record is None
            else _draw_words(page, record, top)
        )
        if comparison.against is not None:
            lower_end = _draw_changes(page, comparison, lower_end)
        if cards:
            lower_end = draw_cards(page, cards, card_title, lower_end)
        finish(page, page.write(lines(pen, notes, text_width), lower_end) + MARGIN)
    return picture_of(pen, title, comparison)


def draw_some(
    comparison: HeadComparison,
    heads: Sequence[tuple[int, int]],
    patterns: Patterns,
    theme: Theme,
) -> Picture:
    """Draw some heads: what each does, how sure that is, and its clearest roles with their examples."""
    profiles = [comparison.head(place) for place in heads]
    title = visible("; ".join([words.describe(profile) for profile in profiles]))
    roles = [role for profile in profiles for role in profile.roles[:MOST_ROLES]]
    sure = [". ".join([words.role_score(role), words.how_sure(role)]) for role in roles]
    sure += [words.closest_roles(comparison, item) for item in profiles if not item.roles]
    places = [card for profile in profiles for card in own_cards(profile, comparison)]
    cards = [card_of(card, patterns.get(card.key)) for card in places]
    source = " · ".join([words.model_names(comparison), words.sample(comparison)])
    body = [visible(text) for text in (source, *sure)]
    foot = [visible(text) for text in (words.proof(comparison), _(words.NOT_EXPLANATION))]
    axes = visible(_(AXES))
    with usual_settings(theme):
        card_texts = [text for card in cards for text in card.texts]
        pen = blank_figure([title, axes, *body, *foot, *card_texts, "√→–·●○≤"], theme)
        page, text_width = begin(pen, WIDTH), WIDTH - 2 * MARGIN
        heading = [*lines(pen, [title], text_width, 1.35 * TITLE, leading=1.5)]
        top = page.write([*heading, *lines(pen, body, text_width)], MARGIN) + 0.16
        if cards:
            top = draw_cards(page, cards, axes, top)
        finish(page, page.write(lines(pen, foot, text_width), top) + MARGIN)
    return picture_of(pen, title, comparison)


def draw_column(comparison: HeadComparison, style: Style, width: float, theme: Theme) -> Picture:
    """Draw only the map and the table of roles below it, in a column of a paper."""
    margin, room = style.margin, width - 2 * style.margin
    columns = translated(tables.role_table(by_role(comparison)))
    title = visible(words.finding(comparison))
    foot_lines = [visible(text) for text in _notes(comparison) if style.caption == "all"]
    with usual_settings(theme):
        pen = blank_figure([title, *foot_lines, *texts_of(columns)], theme)
        columns_shown = fitting_columns(pen, columns, room)
        text_width = max(room, table_width(pen, columns_shown))
        page_width = text_width + 2 * margin
        # The picture is reduced to the width of the column, and its letters with it.
        pen = replace(pen, least=style.least * page_width / width)
        page = begin(pen, page_width)
        top = margin
        if style.has_title:
            title_lines = lines(pen, [title], text_width, TITLE, leading=1.5)
            top = page.write(title_lines, margin, margin) + 0.1
        cell = _cell_of_map(comparison, room - BESIDE)
        numbers = draw_map(page, comparison, (margin, top), cell)
        table_top = top + grid_size(comparison, cell)[1] + 0.12
        draw_table(page, columns_shown, (margin, table_top), numbers)
        lower_end = table_top + ENTRY * (1 + len(columns_shown[0].cells))
        foot = page.write(lines(pen, foot_lines, text_width), lower_end + 0.1, margin)
        finish(page, foot + margin)
    return picture_of(pen, title, comparison)


def _title_of_cards(comparison: HeadComparison, unseen: str) -> str:
    """Return the title above the cards; `unseen` says why there are no patterns."""
    if unseen:
        return _("Examples; their patterns are not shown: {why}").format(why=visible(unseen))
    title = _("A typical example of the clearest roles. {axes}")
    if comparison.attention is not None:
        title = _("The strongest links between words, each of another head. {axes}")
    return title.format(axes=_(AXES))


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
        notes += [established, _(words.HALVES)] if comparison.relations else [established]
    if any(role.narrow for head in comparison.heads for role in head.roles[:1]):
        notes.append(_(words.TOO_NARROW))
    return [*notes, _(words.NOT_EXPLANATION)]


def _cell_of_map(comparison: HeadComparison, widest: float = WIDTH - 2 * MARGIN - BESIDE) -> Inches:
    """Return the width and height of a cell of the map, in inches; the map is at most `widest`."""
    width = max(LEAST_CELL, min(WIDEST_CELL, widest / comparison.n_heads))
    height = max(LEAST_CELL, min(HIGHEST_CELL, HIGHEST / comparison.n_layers))
    return width, min(height, max(LEAST_CELL, 0.75 * width))


def _draw_roles(
    page: Page, comparison: HeadComparison, columns: Sequence[Column], top: float
) -> float:
    """Draw the map of roles and their table: side by side if the map is small; return their lower end."""
    cell = _cell_of_map(comparison)
    width, height = grid_size(comparison, cell)
    numbers = draw_map(page, comparison, (MARGIN, top), cell)
    left, table_top = MARGIN + max(width, 1.7) + GAP, top
    place = MARGIN + BESIDE, top + height + 0.1
    height = draw_colour_legend(page, comparison, place, left - GAP) - top
    # All columns but the last, which describes the roles in words, must fit beside the map.
    if table_width(page.pen, columns[:-1]) > WIDTH - MARGIN - left:
        left, table_top = MARGIN, top + height + 0.2
    columns_shown = fitting_columns(page.pen, columns, WIDTH - MARGIN - left)
    draw_table(page, columns_shown, (left, table_top), numbers)
    return max(top + height, table_top + ENTRY * (1 + len(columns_shown[0].cells))) + 0.3


def _draw_words(page: Page, record: Attention, top: float) -> float:
    """Draw the map of words; return where the next part of the page may begin."""
    n_layers, n_heads = record.weights.shape[:2]
    cell = min(WORD[0], (WIDTH - 2 * MARGIN - BESIDE) / n_heads), min(WORD[1], HIGHEST / n_layers)
    draw_words(page, record, (MARGIN, top), cell)
    return float(top + ABOVE + n_layers * cell[1] + 0.24)


def _draw_changes(page: Page, comparison: HeadComparison, top: float) -> float:
    """Draw the divergence of each head from the second model, and a table of the largest; return the lower end."""
    cell = _cell_of_map(comparison)
    captions = [_(words.DIVERGENCE)]
    if comparison.against is not None:
        captions.append(words.changes(comparison, comparison.against))
    texts = [visible(text) for text in captions]
    top = page.write(lines(page.pen, texts, WIDTH - 2 * MARGIN), top) + 0.08
    draw_divergences(page, comparison, (MARGIN, top), cell)
    width, height = grid_size(comparison, cell)
    left = MARGIN + max(width, 1.7) + GAP
    n_rows = min(CHANGED, max(1, int(height / ENTRY) - 1))
    columns = translated(tables.change_table(comparison, n_rows))
    columns_shown = fitting_columns(page.pen, columns, WIDTH - MARGIN - left)
    draw_table(page, columns_shown, (left, top))
    return top + max(height, ENTRY * (1 + len(columns_shown[0].cells))) + 0.24
