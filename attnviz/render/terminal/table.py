"""Tables for a terminal: columns of cells that fit the screen, one line a row unless words are folded."""

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

    title: str  # above it
    cells: Sequence[Text | str]  # from top to bottom
    right: bool = False  # whether they end at one place, as numbers do
    least: int = 0  # where it may be narrower than its widest cell, the cells that it keeps; 0 where it may not
    gap: int | None = None  # the cells left free before it, where they are not those of the table

    @property
    def width(self) -> int:
        """The width of the widest cell."""
        return max([cell_len(self.title), *(cell_len(str(cell)) for cell in self.cells)])


def table(columns: Sequence[Column], screen: Screen, *, gap: int = GAP) -> Iterator[Text]:
    """Yield the lines of a table, one for each row, no wider than the screen.

    Cells that have no room are cut with an ellipsis; where that is not enough, the last columns are left out.
    """
    gaps = [gap if column.gap is None else column.gap for column in columns]
    widths = [column.width for column in columns]
    needs = [
        min(column.least or width, width) for column, width in zip(columns, widths, strict=True)
    ]
    while len(columns) > 2 and sum(needs) + sum(gaps[1:]) > screen.width:
        columns, gaps, widths, needs = columns[:-1], gaps[:-1], widths[:-1], needs[:-1]
    spare = screen.width - sum(widths) - sum(gaps[1:])
    for cuts_cells in (False, True):  # first long titles are cut
        for index, column in enumerate(columns):
            if spare < 0 and column.least:
                least = column.least if cuts_cells else replace(column, title="").width
                narrower = min(widths[index], max(column.least, least, widths[index] + spare))
                spare += widths[index] - narrower
                widths[index] = narrower
    yield from rows(columns, widths, screen, gap=gap)


def folded_table(columns: Sequence[Column], screen: Screen) -> Iterator[Text]:
    """Yield the lines of a table in which nothing is cut, no wider than the screen.

    Sentences continue on the next line. Columns that do not fit go below, in blocks that each begin with the first one.
    """
    needs = [_needs(column, screen.width) for column in columns]
    for number, widths in enumerate(_blocks(needs, screen.width)):
        if number:
            yield Text()
        block = [replace(columns[index], gap=GAP) for index in widths]
        yield from rows(block, list(widths.values()), screen, folded=True)


def _needs(column: Column, most: int) -> tuple[int, int, int]:
    """Return the widths in which a column has no broken word, one line a row, and a title in one line."""
    cells = list(map(str, column.cells))
    words = [word for cell in (column.title, *cells) for word in line_words(cell)]
    # A shade stands behind its number with no space between, unless it is the empty one.
    padded = [cell_len(cell) for cell in cells if cell.endswith(" ")]
    least = max([1, *map(cell_len, words), *padded])
    whole = max([least, *map(cell_len, cells)])
    return min(least, most), min(whole, most), min(max(whole, cell_len(column.title)), most)


def _blocks(needs: Sequence[tuple[int, int, int]], room: int) -> Iterator[dict[int, int]]:
    """Yield the columns that stand side by side, each with its width; every block begins with the first one."""
    rest = list(range(1, len(needs)))
    while True:
        # Words of a first column that would leave no room for numbers are folded.
        widths = {0: min(needs[0][0], max(1, room // 2 - GAP)) if rest else min(needs[0][0], room)}
        while rest and (
            len(widths) == 1 or sum(widths.values()) + len(widths) * GAP + needs[rest[0]][0] <= room
        ):
            index = rest.pop(0)
            widths[index] = min(needs[index][0], room - widths[0] - GAP)
        free = room - GAP * (len(widths) - 1)
        # cell by cell to the column that lacks most of its rows
        for _ in range(free - sum(widths.values())):
            lacking = [index for index in widths if widths[index] < needs[index][1]]
            if not lacking:
                break
            widths[max(lacking, key=lambda index: needs[index][1] / widths[index])] += 1
        titled = {index: needs[index][2] for index in widths}
        yield titled if sum(titled.values()) <= free else widths
        if not rest:
            return


def rows(
    columns: Sequence[Column],
    widths: Sequence[int],
    screen: Screen,
    *,
    gap: int = GAP,
    folded: bool = False,
) -> Iterator[Text]:
    """Yield the titles, if any, and the rows of columns of these widths; a wider cell is cut or folded."""

    def cut(cell: Text, width: int) -> Text:
        short = cell.copy()
        short.plain = fit(cell.plain, width, screen)
        return short

    titles = [Text(column.title, "dim") for column in columns]
    cells = [
        [Text(cell) if isinstance(cell, str) else cell for cell in column.cells]
        for column in columns
    ]
    for index, row in enumerate(
        (titles, *zip(*cells, strict=True)) if any(titles) else zip(*cells, strict=True)
    ):
        stacks = [
            [cell]
            if cell.cell_len <= width
            else fold(cell, width)
            if folded
            else [cut(cell, width)]
            for cell, width in zip(row, widths, strict=True)
        ]
        height = max(map(len, stacks))
        if any(titles) and not index:  # titles stand at the bottom of their lines
            stacks = [[*[Text()] * (height - len(stack)), *stack] for stack in stacks]
        for line in range(height):
            parts = [stack[line] if line < len(stack) else Text() for stack in stacks]
            yield _join(parts, columns, widths, gap)


def _join(
    cells: Sequence[Text], columns: Sequence[Column], widths: Sequence[int], gap: int
) -> Text:
    """Return one line of a table; a number with a background fills its column."""
    parts: list[Text | str] = []
    for cell, column, width in zip(cells, columns, widths, strict=True):
        free = width - cell.cell_len
        if parts:
            parts.append(" " * (gap if column.gap is None else column.gap))
        if not column.right:
            parts += [cell, " " * free]
        elif isinstance(cell.style, Style) and cell.style.bgcolor is not None:
            filled = cell.copy()
            filled.pad_left(free)
            parts.append(filled)
        else:
            parts += [" " * free, cell]
    line = Text.assemble(*parts, no_wrap=True)
    line.rstrip()
    return line
