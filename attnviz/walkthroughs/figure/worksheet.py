"""An exercise as one table to print and fill in, or its solution. Lengths are in inches, font sizes in points."""

from __future__ import annotations

from attnviz.errors import SelectionError
from attnviz.render.figure.export import blank_figure
from attnviz.render.figure.page import Page, height_of, lines, page_of
from attnviz.render.theme import Theme
from attnviz.walkthroughs.figure.matrix import bold
from attnviz.walkthroughs.hand import one_format
from attnviz.walkthroughs.keys import KeyColumn, formulas, key_table
from attnviz.walkthroughs.view import GridView, View

WIDTH, MARGIN = 8.27, 0.4  # the page is as wide as A4
TITLE, TEXT, NUMBER = 14.0, 9.5, 10.0  # font sizes
NAMES_WIDTH, COLUMN_GAP = 0.8, 0.14
GIVEN_WIDTH, BLANK_WIDTH = 0.32, 0.74  # widths of a given number, and of a box to write in
ROW_PITCH, BOX_HEIGHT = 0.46, 0.36
ROOM_FOR_NAME = 0.2  # above the line for the name, so that there is room to write


def draw_worksheet(view: View, theme: Theme) -> Page:
    """Draw the table of an exercise; numbers to fill in have a box, which is empty if they are blank.

    Must be called inside `usual_settings`. Raises SelectionError: there are several queries.
    """
    table = key_table(view)
    if table is None:
        raise SelectionError("a worksheet has one query")
    answers = view.walk.blanks()
    recipe = "; ".join(formulas(view, table))
    second = view.task or view.finding
    titles = [column.title for column in table.columns]
    texts = [view.title, second, recipe, *titles, *table.keys, "q", "context", "≈"]
    pen = blank_figure(texts, theme)
    room = WIDTH - 2 * MARGIN
    title = lines(pen, [view.title], room / 1.18, TITLE, colour=pen.ink, leading=1.5)
    notes = lines(pen, [recipe], room, TEXT, colour=pen.ink, leading=1.7)
    top_of_table = MARGIN + height_of(title) + ROOM_FOR_NAME + 0.35 + height_of(notes) + 0.2
    n_rows = len(table.keys) + 1 + (table.query is not None) + (table.context is not None)
    page = page_of(pen, WIDTH, top_of_table + n_rows * ROW_PITCH + MARGIN)
    page.text(MARGIN, MARGIN, title[0].text, TITLE, va="top", **bold(view.title))
    top = MARGIN + height_of(title) + ROOM_FOR_NAME
    page.text(MARGIN, top, second.replace("   ", " " * 6), TEXT, va="top")
    page.write(notes, top + 0.35, MARGIN)

    def write_row(grid: GridView, row: int, left: float, top: float) -> None:
        write = one_format(grid.values, view.digits)
        width = _cell_width(grid, answers)
        for column, value in enumerate(grid.values[row].tolist()):
            place = (row, column)
            x = left + column * width
            cell = (column, row) if grid.is_upright else place
            if (grid.name, *cell) in answers:
                box = (x + 0.02, top + (ROW_PITCH - BOX_HEIGHT) / 2, width - 0.04, BOX_HEIGHT)
                page.box(box, fill=False, edgecolor=pen.ink, linewidth=0.9)
            if place not in grid.blanks:
                middle = x + width / 2, top + ROW_PITCH / 2
                page.text(*middle, write(value), NUMBER, ha="center", va="center_baseline")

    def write_name(name: str, top: float) -> None:
        page.text(MARGIN, top + ROW_PITCH / 2, name, TEXT, va="center_baseline")

    top, left = top_of_table, MARGIN + NAMES_WIDTH
    lefts = []
    for column in table.columns:
        width = _width(column, answers)
        lefts.append(left)
        centre = left + width / 2, top + ROW_PITCH / 2
        page.text(*centre, column.title, TEXT, ha="center", va="center", **bold(column.title))
        left += width + COLUMN_GAP
    top += ROW_PITCH
    y = top
    page.ax.plot([MARGIN, left - COLUMN_GAP], [y, y], color=pen.quiet, linewidth=0.8)
    if table.query is not None:
        write_name("q", top)
        write_row(table.query, 0, lefts[0], top)
        top += ROW_PITCH
    for key, name in enumerate(table.keys):
        write_name(name, top)
        for column, left_of_column in zip(table.columns, lefts, strict=True):
            write_row(column.grid, key, left_of_column, top)
        top += ROW_PITCH
    if table.context is not None:
        write_name("context", top)
        write_row(table.context, 0, lefts[-1], top)
    return page


def _cell_width(grid: GridView, answers: frozenset[tuple[str, int, int]]) -> float:
    return BLANK_WIDTH if any(name == grid.name for name, _row, _column in answers) else GIVEN_WIDTH


def _width(column: KeyColumn, answers: frozenset[tuple[str, int, int]]) -> float:
    n_columns = column.grid.values.shape[1]
    return float(n_columns) * _cell_width(column.grid, answers)
