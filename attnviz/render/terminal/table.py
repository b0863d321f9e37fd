"""Tables for a terminal: columns that fit the screen, with one line per row unless words are folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from attnviz.render.terminal.screen import Screen
from attnviz.render.terminal.text import fit, fold
from attnviz.text.display import line_words

GAP = 2  # cells between two columns


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table; all columns of a table have the same number of cells."""

    title: str  # the title above the column
    cells: Sequence[Text | str]  # from top to bottom
    right: bool = False  # whether the cells are aligned on the right, as numbers are
    # The smallest width, if the column may be narrower than its widest cell; 0 if it may not.
    least: int = 0
    gap: int | None = None  # the number of free cells before the column; None for that of the table

    @property
    def width(self) -> int:
        """The width of the widest cell."""
        return max([cell_len(self.title), *(cell_len(str(cell)) for cell in self.cells)])


def table(columns: Sequence[Column], screen: Screen, *, gap: int = GAP) -> Iterator[Text]:
    """Yield the lines of a table, one per row, no wider than the screen.

    Cells that are too wide are cut with an ellipsis; if that is not enough, the last columns are left out.
    """
    gaps = [gap if column.gap is None else column.gap for column in columns]
    widths = [column.width for column in columns]
    min_widths = [
        min(column.least or width, width) for column, width in zip(columns, widths, strict=True)
    ]
    while len(columns) > 2 and sum(min_widths) + sum(gaps[1:]) > screen.width:
        columns, gaps, widths, min_widths = columns[:-1], gaps[:-1], widths[:-1], min_widths[:-1]
    free_cells = screen.width - sum(widths) - sum(gaps[1:])
    # The first pass cuts only titles that are wider than their column's cells; the second pass cuts cells too.
    for cuts_cells in (False, True):
        for index, column in enumerate(columns):
            if free_cells < 0 and column.least:
                min_width = column.least if cuts_cells else replace(column, title="").width
                new_width = min(
                    widths[index], max(column.least, min_width, widths[index] + free_cells)
                )
                free_cells += widths[index] - new_width
                widths[index] = new_width
    yield from rows(columns, widths, screen, gap=gap)


def folded_table(columns: Sequence[Column], screen: Screen) -> Iterator[Text]:
    """Yield the lines of a table in which nothing is cut, no wider than the screen.

    Sentences continue on the next line. Columns that do not fit follow below, in further blocks, each of which begins
    with the first column.
    """
    column_widths = [_needs(column, screen.width) for column in columns]
    for number, widths in enumerate(_blocks(column_widths, screen.width)):
        if number:
            yield Text()
        block = [replace(columns[index], gap=GAP) for index in widths]
        yield from rows(block, list(widths.values()), screen, folded=True)


def _needs(column: Column, max_width: int) -> tuple[int, int, int]:
    """Return three widths of a column, at most `max_width` each.

    In the first no word is broken, in the second every row fits on one line, in the third the title does too.
    """
    cells = list(map(str, column.cells))
    words = [word for cell in (column.title, *cells) for word in line_words(cell)]
    # A shade follows its number without a space; the empty shade is itself a space, which must not be stripped.
    padded = [cell_len(cell) for cell in cells if cell.endswith(" ")]
    word_width = max([1, *map(cell_len, words), *padded])
    line_width = max([word_width, *map(cell_len, cells)])
    return (
        min(word_width, max_width),
        min(line_width, max_width),
        min(max(line_width, cell_len(column.title)), max_width),
    )


def _blocks(column_widths: Sequence[tuple[int, int, int]], room: int) -> Iterator[dict[int, int]]:
    """Yield blocks of columns that fit side by side, as widths by column index; every block begins with column 0.

    `column_widths` holds the result of `_needs` for each column, `room` the width of the screen.
    """
    remaining = list(range(1, len(column_widths)))
    while True:
        # The first column takes at most half of the room, so that numbers fit beside it; its words may be broken.
        most_of_first = max(1, room // 2 - GAP) if remaining else room
        widths = {0: min(column_widths[0][0], most_of_first)}
        while remaining and (
            len(widths) == 1
            or sum(widths.values()) + len(widths) * GAP + column_widths[remaining[0]][0] <= room
        ):
            index = remaining.pop(0)
            widths[index] = min(column_widths[index][0], room - widths[0] - GAP)
        free_cells = room - GAP * (len(widths) - 1)
        # Distribute the free cells one by one; each goes to the column whose rows need the most lines at its width.
        for _ in range(free_cells - sum(widths.values())):
            candidates = [index for index in widths if widths[index] < column_widths[index][1]]
            if not candidates:
                break
            widths[max(candidates, key=lambda index: column_widths[index][1] / widths[index])] += 1
        title_widths = {index: column_widths[index][2] for index in widths}
        yield title_widths if sum(title_widths.values()) <= free_cells else widths
        if not remaining:
            return


def rows(
    columns: Sequence[Column],
    widths: Sequence[int],
    screen: Screen,
    *,
    gap: int = GAP,
    folded: bool = False,
) -> Iterator[Text]:
    """Yield the titles, if any, and the rows of columns of these widths; wider cells are folded or cut."""
    cells = [
        [Text(cell) if isinstance(cell, str) else cell for cell in column.cells]
        for column in columns
    ]
    table_rows = list(zip(*cells, strict=True))
    has_titles = any(column.title for column in columns)
    if has_titles:
        table_rows.insert(0, tuple(Text(column.title, "dim") for column in columns))
    for index, row in enumerate(table_rows):
        stacks = [
            _cell_lines(cell, width, screen, folded=folded)
            for cell, width in zip(row, widths, strict=True)
        ]
        height = max(map(len, stacks))
        if has_titles and index == 0:  # titles are aligned at the bottom
            stacks = [[*[Text()] * (height - len(stack)), *stack] for stack in stacks]
        for line in range(height):
            parts = [stack[line] if line < len(stack) else Text() for stack in stacks]
            yield _join(parts, columns, widths, gap)


def _cell_lines(cell: Text, width: int, screen: Screen, *, folded: bool) -> list[Text]:
    """Return the lines of a cell, each at most `width` wide: a wider cell is folded, or cut with an ellipsis."""
    if cell.cell_len <= width:
        return [cell]
    if folded:
        return fold(cell, width)
    cut_cell = cell.copy()
    cut_cell.plain = fit(cell.plain, width, screen)
    return [cut_cell]


def _join(
    cells: Sequence[Text], columns: Sequence[Column], widths: Sequence[int], gap: int
) -> Text:
    """Return one line of a table; the background of a right-aligned cell fills the width of its column."""
    parts: list[Text | str] = []
    for cell, column, width in zip(cells, columns, widths, strict=True):
        n_free = width - cell.cell_len
        if parts:
            parts.append(" " * (gap if column.gap is None else column.gap))
        if not column.right:
            parts += [cell, " " * n_free]
        elif isinstance(cell.style, Style) and cell.style.bgcolor is not None:
            padded = cell.copy()
            padded.pad_left(n_free)
            parts.append(padded)
        else:
            parts += [" " * n_free, cell]
    line = Text.assemble(*parts, no_wrap=True)
    line.rstrip()
    return line
