"""The slide of all heads: their map with a legend.

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
    cut_lines,
)
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
    table_width,
    texts_of,
    translated,
)
from attnviz.heads.record import HeadComparison
from attnviz.heads.selection import by_role
from attnviz.render.columns import Column
from attnviz.render.figure.export import Picture, blank_figure, usual_settings
from attnviz.render.figure.page import Line, Page, height_of, lines, page_of
from attnviz.render.figure.pen import MARGIN, POINT, TITLE
from attnviz.render.figure.style import Style
from attnviz.render.theme import Theme
from attnviz.text.display import clip, visible
from attnviz.text.messages import _

SCALE = 1.6
WIDTH, HEIGHT = 40 / 3 / SCALE, 7.5 / SCALE  # inches, before the slide is enlarged
TEXT_WIDTH = WIDTH - 2 * MARGIN
BAR = 1.5  # width kept for the colour bar at the foot, in inches
WIDEST_CELL = 2.0  # largest width of a cell of the map, in inches
BELOW = 4  # a table of at most this many rows stands below the map, a longer one beside it
WIDEST_TABLE = 3.4  # largest width of a table beside the map, if two columns are not wider
CLIPPED = 32  # letters of two words in the table of links
CHANGED = 12  # most heads in the table of those that differ most from a second model


def _begin(
    comparison: HeadComparison,
    title: str,
    texts: Sequence[str],
    style: Style,
    theme: Theme,
) -> tuple[Page, float]:
    """Return a slide with its headline, the model and the corpus, and the top of what follows.

    `texts` are all other texts of the slide, to choose fonts.
    """
    sources = [words.model_names(comparison), words.sample(comparison)]
    subtitle = visible(" · ".join(sources))
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


def draw_slide(comparison: HeadComparison, style: Style, theme: Theme) -> Picture:
    """Draw the map of all heads with its legend: below the map if it is short, and otherwise beside it.

    The map has roles; with a second model, the divergence from it; on one sentence, the word that each head attends to
    most.
    """
    columns = translated(_legend(comparison))
    title = visible(words.finding(comparison))
    notes = [words.proof(comparison)]
    if comparison.attention is not None:
        notes.append(_("Colour: mean weight that the word receives"))
    if comparison.against is not None:
        title = visible(words.changes(comparison, comparison.against))
        notes.append(_(words.DIVERGENCE))
    foot = [visible(text) for text in notes]
    texts = [*foot, *texts_of(columns)]
    if comparison.attention is not None:
        texts += [token.text for token in comparison.attention.key_tokens]
    with usual_settings(theme):
        page, top = _begin(comparison, title, texts, style, theme)
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
                columns = _first_rows(page, columns, (left, top), bottom - top)
            cell = _cell_of_map(comparison, left - GAP - MARGIN, bottom - top)
            corner = left, top
        numbers = _draw_map(page, comparison, (MARGIN, top), cell)
        draw_table(page, columns, corner, numbers)
    return picture_of(pen, title, comparison)


def _first_rows(
    page: Page, columns: Sequence[Column], corner: Inches, height: float
) -> list[Column]:
    """Return as many rows of a table as fit; write below them how many do not, and warn."""
    n_rows = len(columns[0].cells)
    n_shown = int(height / ENTRY) - 2  # without the line of titles and the one below
    more = visible(_("and {n} more: --style sheet").format(n=n_rows - n_shown))
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


def _draw_map(page: Page, comparison: HeadComparison, corner: Inches, cell: Inches) -> RoleNumbers:
    """Draw the map; return the numbers of the roles, if they stand on the map instead of their names."""
    if comparison.attention is not None:
        draw_words(page, comparison.attention, corner, cell)
        return {}
    if comparison.against is not None:
        draw_divergences(page, comparison, corner, cell)
        return {}
    return draw_map(page, comparison, corner, cell)


def _cell_of_map(comparison: HeadComparison, width: float, height: float) -> Inches:
    """Return the largest cell with which the map and its numbers are not wider or higher than this."""
    across = min(WIDEST_CELL, (width - BESIDE) / comparison.n_heads)
    return across, min(across, (height - ABOVE) / comparison.n_layers)
