"""Slides of heads: the map of all heads with a legend, and one head with an example.

A slide has one main panel and little text. It is drawn in the letters of a sheet, on a page that `Picture.fitted`
enlarges by `SCALE` to the size of a slide: labels are then 12 points, and no letters are below 9.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

from attnviz.errors import AttnvizWarning
from attnviz.heads import tables, words
from attnviz.heads.figure.cards import (
    AXES,
    Patterns,
    card_of,
    cut_lines,
    draw_pattern,
    label_room,
)
from attnviz.heads.figure.head import draw_offsets, has_offsets, title_of_head
from attnviz.heads.figure.parts import (
    ABOVE,
    BESIDE,
    ENTRY,
    GAP,
    Inches,
    RoleNumbers,
    draw_divergences,
    draw_map,
    draw_table,
    draw_words,
    fitting_columns,
    picture_of,
    say,
    table_width,
    texts_of,
    translated,
)
from attnviz.heads.record import HeadComparison, HeadProfile
from attnviz.heads.selection import by_role, own_card
from attnviz.heads.tables import Column
from attnviz.render.figure.export import Picture, blank_figure, usual_settings
from attnviz.render.figure.page import Line, Page, height_of, lines, page_of
from attnviz.render.figure.pen import MARGIN, POINT, TEXT, TITLE
from attnviz.render.figure.style import Style
from attnviz.render.sheet import Sheet
from attnviz.render.theme import Theme
from attnviz.text.display import clip
from attnviz.text.messages import _, join_phrases

SCALE = 1.6
WIDTH, HEIGHT = 40 / 3 / SCALE, 7.5 / SCALE  # inches, before the slide is enlarged
TEXT_WIDTH = WIDTH - 2 * MARGIN
BAR = 1.5  # width kept for the colour bar at the foot, in inches
WIDEST_CELL = 2.0  # largest width of a cell of the map, in inches
BELOW = 4  # a table of at most this many rows stands below the map, a longer one beside it
WIDEST_TABLE = 3.4  # largest width of a table beside the map, if two columns are not wider
PATTERN = 4.4  # largest width of the example of a head with its labels, in inches
LARGEST_CELL = 0.6  # largest side of a cell of the example, in inches
CHART = 1.8  # height of the chart beside an example, in inches
LEAST_CHART, TITLE_OF_CHART = 0.7, 0.4  # inches: smallest height of the chart, room for its title
MOST_LINES = 7  # most lines of a text beside the example
CLIPPED = 32  # letters of two words in the table of links
CHANGED = 12  # most heads in the table of those that differ most from a second model


def _begin(
    comparison: HeadComparison,
    title: str,
    texts: Sequence[str],
    style: Style,
    theme: Theme,
    language: str,
) -> tuple[Page, float]:
    """Return a slide with its headline, the model and the corpus, and the top of what follows.

    `texts` are all other texts of the slide, to choose fonts.
    """
    sources = [words.model_names(comparison), words.sample(comparison)]
    subtitle = say(join_phrases(sources, " · "), language)
    pen = blank_figure([title, subtitle, *texts, "√→–·—“”…●○≤"], theme)
    # The smallest letters are those of the style once the slide is enlarged.
    pen = replace(pen, least=style.least * WIDTH / (style.width or WIDTH))
    page, size = page_of(pen, WIDTH, HEIGHT), 1.35 * TITLE
    heading = [
        Line(line, size, pen.ink, 1.35 * size * POINT)
        for line in cut_lines(pen, title, TEXT_WIDTH, 2, size)
    ]
    heading += lines(pen, cut_lines(pen, subtitle, TEXT_WIDTH, 1), TEXT_WIDTH, colour=pen.quiet)
    return page, page.write(heading, MARGIN) + 0.12


def _write_foot(page: Page, texts: Sequence[str], width: float = TEXT_WIDTH) -> float:
    """Write the receipt and further texts at the foot of a slide; return their upper end."""
    foot = lines(page.pen, texts, width)
    top = HEIGHT - MARGIN - height_of(foot)
    page.write(foot, top)
    return top - 0.12


# All heads.


def draw_slide(comparison: HeadComparison, style: Style, theme: Theme, language: str) -> Picture:
    """Draw the map of all heads with its legend: below the map if it is short, and otherwise beside it.

    The map has roles; with a second model, the divergence from it; on one sentence, the word that each head attends to
    most.
    """
    columns = translated(_legend(comparison), language)
    title = say(words.finding(comparison), language)
    notes = [words.proof(comparison)]
    if comparison.attention is not None:
        notes.append(_("Colour: mean weight that the word receives"))
    if comparison.against is not None:
        title = say(words.changes(comparison, comparison.against), language)
        notes.append(words.DIVERGENCE)
    foot = [say(text, language) for text in notes]
    texts = [*foot, *texts_of(columns)]
    if comparison.attention is not None:
        texts += [token.text for token in comparison.attention.key_tokens]
    with usual_settings(theme):
        page, top = _begin(comparison, title, texts, style, theme, language)
        pen = page.pen
        bottom = _write_foot(page, foot, TEXT_WIDTH - BAR)
        if comparison.attention is not None:
            bar = WIDTH - MARGIN - 1.02, HEIGHT - MARGIN - 0.12, 0.9
            page.colour_bar(theme.colours(), bar, {0.0: "0", 1.0: "1"}, along=True)
        n_rows = len(columns[0].cells)
        table_height = ENTRY * (1 + n_rows)
        if n_rows <= BELOW:
            columns = fitting_columns(pen, columns, TEXT_WIDTH)
            cell = _cell_of_map(comparison, TEXT_WIDTH, bottom - top - table_height - 0.1)
            corner = MARGIN, top + ABOVE + comparison.n_layers * cell[1] + 0.1
        else:
            columns = fitting_columns(pen, columns, WIDEST_TABLE)
            left = WIDTH - MARGIN - table_width(pen, columns)
            if table_height > bottom - top:
                columns = _first_rows(page, columns, (left, top), bottom - top, language)
            cell = _cell_of_map(comparison, left - GAP - MARGIN, bottom - top)
            corner = left, top
        numbers = _draw_map(page, comparison, (MARGIN, top), cell, language)
        draw_table(page, columns, corner, numbers)
    return picture_of(pen, title, comparison)


def _first_rows(
    page: Page, columns: Sequence[Column], corner: Inches, height: float, language: str
) -> list[Column]:
    """Return as many rows of a table as fit; write below them how many do not, and warn."""
    n_rows = len(columns[0].cells)
    n_shown = int(height / ENTRY) - 2  # without the line of titles and the one below
    more = say(_("and {n} more: --style sheet").format(n=n_rows - n_shown), language)
    middle = corner[1] + (n_shown + 1.5) * ENTRY
    page.text(corner[0], middle, more, va="center", color=page.pen.quiet)
    warnings.warn(
        f"the slide has room for {n_shown} of {n_rows} roles: --style sheet shows all of them",
        AttnvizWarning,
        stacklevel=2,
    )
    return [
        replace(column, cells=column.cells[:n_shown], roles=column.roles[:n_shown])
        for column in columns
    ]


def _legend(comparison: HeadComparison) -> list[Column]:
    """Return the table that explains the map."""
    if comparison.attention is not None:
        return [
            replace(column, cells=[clip(cell, CLIPPED) for cell in column.cells])
            for column in tables.link_table(comparison.attention)
        ]
    if comparison.against is not None:
        head, divergence, _interval, *roles = tables.change_table(comparison, CHANGED)
        return [head, divergence, *roles]
    return tables.role_table(by_role(comparison))


def _draw_map(
    page: Page, comparison: HeadComparison, corner: Inches, cell: Inches, language: str
) -> RoleNumbers:
    """Draw the map; return the numbers of the roles, if they stand on the map instead of their names."""
    if comparison.attention is not None:
        draw_words(page, comparison.attention, corner, cell, language)
        return {}
    if comparison.against is not None:
        draw_divergences(page, comparison, corner, cell, language)
        return {}
    return draw_map(page, comparison, corner, cell, language)


def _cell_of_map(comparison: HeadComparison, width: float, height: float) -> Inches:
    """Return the largest cell with which the map and its numbers are not wider or higher than this."""
    across = min(WIDEST_CELL, (width - BESIDE) / comparison.n_heads)
    return across, min(across, (height - ABOVE) / comparison.n_layers)


# One head.


def draw_head_slide(
    comparison: HeadComparison,
    profile: HeadProfile,
    patterns: Patterns,
    style: Style,
    theme: Theme,
    language: str,
) -> Picture:
    """Draw the clearest role of a head: its example, its score in words, and the head's weight by offset.

    Without an example, the weight by offset is the main panel.
    """
    cards = [
        card_of(card, patterns.get(card.key), language) for card in own_card(profile, comparison)
    ]
    title = say(title_of_head(profile), language)
    texts = [say(text, language) for text in _role_texts(comparison, profile)]
    foot = [say(text, language) for text in _notes(comparison, profile)]
    drawn_texts = [*texts, *foot, *(text for card in cards for text in card.texts)]
    with usual_settings(theme):
        page, top = _begin(comparison, title, drawn_texts, style, theme, language)
        pen = page.pen
        bottom = _write_foot(page, foot)
        left = MARGIN
        for card in cards:
            if card.sheet is None:
                texts.append(card.sentence)
            else:
                texts.append(card.link)
                left = _draw_example(page, card.sheet, top, bottom, language) + GAP
        width = WIDTH - MARGIN - left
        # The role and its score are larger.
        n_large = 0 if profile.role is None else 2
        sizes = [TITLE if index < n_large else TEXT for index in range(len(texts))]
        written = [
            Line(line, size, pen.ink, 1.4 * size * POINT)
            for text, size in zip(texts, sizes, strict=True)
            for line in cut_lines(pen, text, width, MOST_LINES, size)
        ]
        chart_top = page.write(written, top, left) + TITLE_OF_CHART
        chart_left, lower_end = left + 0.35, bottom - 0.15
        if left > MARGIN:
            chart_top = max(chart_top, lower_end - CHART)
        if has_offsets(comparison, profile) and lower_end - chart_top > LEAST_CHART:
            place = chart_left, chart_top, WIDTH - MARGIN - chart_left, lower_end - chart_top
            draw_offsets(page.axes(place), pen, comparison, profile, language)
    return picture_of(pen, title, comparison)


def _role_texts(comparison: HeadComparison, profile: HeadProfile) -> list[str]:
    """Return the clearest role of a head, its score, and how sure it is."""
    role = profile.role
    if role is None:
        return [words.closest_roles(comparison, profile)]
    score = _("Score {score}, 95% interval {interval}").format(
        score=words.rounded(role.score),
        interval=words.interval(role.low, role.high, narrow=role.narrow),
    )
    return [role.rule.short, score, words.how_sure(role)]


def _notes(comparison: HeadComparison, profile: HeadProfile) -> list[str]:
    """Return the receipt, and where to find what the slide leaves out."""
    notes = [words.proof(comparison)]
    if profile.role is not None and profile.role.narrow:
        notes.append(words.TOO_NARROW)
    return [*notes, _("All measures and controls: --style sheet")]


def _draw_example(page: Page, sheet: Sheet, top: float, bottom: float, language: str) -> float:
    """Draw the weights of a head on its example, with numbers or a colour bar; return the right end."""
    caption = lines(page.pen, [say(AXES, language)], PATTERN, colour=page.pen.quiet)
    label_width, label_height = label_room(page.pen, [sheet])
    pattern_top = page.write(caption, top) + label_height + 0.06
    side = min(PATTERN - label_width, bottom - pattern_top)
    right, _lower_end = draw_pattern(
        page,
        sheet,
        (MARGIN + label_width, pattern_top),
        side,
        largest_cell=LARGEST_CELL,
        has_numbers=True,
    )
    caption_width = page.pen.widest([line.text for line in caption])
    return max(right, MARGIN + caption_width)
