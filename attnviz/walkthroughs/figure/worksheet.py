"""An exercise as one table to print and fill in, or its solution. Lengths are in inches, font sizes in points."""

from __future__ import annotations

from attnviz.errors import SelectionError
from attnviz.render.figure.export import blank_figure
from attnviz.render.figure.page import Page, height_of, lines, page_of
from attnviz.render.theme import Theme
from attnviz.walkthroughs.figure.matrix import bold
from attnviz.walkthroughs.hand import one_format
from attnviz.walkthroughs.keys import formulas, key_table
from attnviz.walkthroughs.view import GridView, View

WIDTH, MARGIN = 8.27, 0.4  # the page is as wide as A4
TITLE, TEXT, NUMBER = 14.0, 9.5, 10.0  # font sizes
NAMES_WIDTH, COLUMN_GAP = 0.8, 0.14
GIVEN_WIDTH, BLANK_WIDTH = 0.32, 0.74  # widths of a given number, and of a box to write in
ROW_PITCH, BOX_HEIGHT = 0.46, 0.36
TOP = 1.24  # of the recipe, below the title and the line for the name


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
    pen = blank_figure(
        [view.title, second, recipe, *titles, *table.keys, "q", "context", "≈"], theme
    )
    notes = lines(pen, [recipe], WIDTH - 2 * MARGIN, TEXT, colour=pen.ink, leading=1.7)
    top = TOP + height_of(notes) + 0.2
    grids = [column.grid for column in table.columns]
    # the rows of the table: a name, and for some columns a grid and its row
    rows: list[tuple[str, dict[int, tuple[GridView, int]]]] = [
        (name, {place: (grid, key) for place, grid in enumerate(grids)})
        for key, name in enumerate(table.keys)
    ]
    if table.query is not None:
        rows.insert(0, ("q", {0: (table.query, 0)}))
    if table.context is not None:
        rows.append(("context", {len(grids) - 1: (table.context, 0)}))
    page = page_of(pen, WIDTH, top + (len(rows) + 1) * ROW_PITCH + MARGIN)
    page.text(MARGIN, MARGIN, view.title, TITLE, va="top", **bold(view.title))
    page.text(MARGIN, TOP - 0.35, second.replace("   ", " " * 6), TEXT, va="top")
    page.write(notes, TOP, MARGIN)
    asked = {name for name, _row, _column in answers}
    widths = [BLANK_WIDTH if grid.name in asked else GIVEN_WIDTH for grid in grids]
    lefts = [MARGIN + NAMES_WIDTH]
    for title, grid, width in zip(titles, grids, widths, strict=True):
        column_width = width * grid.values.shape[1]
        centre = lefts[-1] + column_width / 2, top + ROW_PITCH / 2
        page.text(*centre, title, TEXT, ha="center", va="center", **bold(title))
        lefts.append(lefts[-1] + column_width + COLUMN_GAP)
    top += ROW_PITCH
    page.ax.plot([MARGIN, lefts[-1] - COLUMN_GAP], [top, top], color=pen.quiet, linewidth=0.8)
    for name, cells in rows:
        page.text(MARGIN, top + ROW_PITCH / 2, name, TEXT, va="center_baseline")
        for place, (grid, row) in cells.items():
            write, width = one_format(grid.values, view.digits), widths[place]
            for column, value in enumerate(grid.values[row].tolist()):
                left = lefts[place] + column * width
                cell = (column, row) if grid.is_upright else (row, column)
                if (grid.name, *cell) in answers:
                    margin = (ROW_PITCH - BOX_HEIGHT) / 2
                    box = (left + 0.02, top + margin, width - 0.04, BOX_HEIGHT)
                    page.box(box, fill=False, edgecolor=pen.ink, linewidth=0.9)
                if (row, column) not in grid.blanks:
                    middle = left + width / 2, top + ROW_PITCH / 2
                    page.text(*middle, write(value), NUMBER, ha="center", va="center_baseline")
        top += ROW_PITCH
    return page
