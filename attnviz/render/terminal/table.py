"""Tables for a terminal, drawn by Rich: columns that fit the screen, with one line per row unless words are folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import StringIO

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from attnviz.render.columns import Column
from attnviz.render.terminal.screen import Screen
from attnviz.text.display import HELD, hold_units, line_words

GAP = 2  # cells between two columns


def table(columns: Sequence[Column], screen: Screen, *, gap: int = GAP) -> Iterator[Text]:
    """Yield the lines of a table, one per row, no wider than the screen.

    Titles that are too wide are folded, then cells cut with an ellipsis; if that is not enough, columns are left out
    from the right, first those to spare.
    """
    columns = _fitting(columns, screen.width, gap)
    least, n = _least_widths(columns), len(columns)
    cells = [_line_width(column) for column in columns]
    titles = [_word_width([column.title]) for column in columns]
    widths = [max(_line_width(column), cell_len(column.title)) for column in columns]
    folded = [max(pair) for pair in zip(cells, titles, strict=True)]
    for smallest in (folded, least):
        for index in range(n):
            too_wide = sum(widths) + gap * (n - 1) - screen.width
            widths[index] -= max(0, min(too_wide, widths[index] - smallest[index]))
    yield from _lines(columns, widths, screen, gap=gap)


def _fitting(columns: Sequence[Column], width: int, gap: int) -> list[Column]:
    """Return the columns that fit side by side, at least two."""
    kept = [*columns]
    while len(kept) > 2 and sum(_least_widths(kept)) + gap * (len(kept) - 1) > width:
        kept.pop(max(range(len(kept)), key=lambda index: (kept[index].spare, index)))
    return kept


def _least_widths(columns: Sequence[Column]) -> list[int]:
    """Return the width that each column needs at least."""
    widths = [_line_width(column) for column in columns]
    return [
        max(min(column.least or width, width), _word_width([column.title]))
        for column, width in zip(columns, widths, strict=True)
    ]


def folded_table(columns: Sequence[Column], screen: Screen) -> Iterator[Text]:
    """Yield the lines of a table in which nothing is cut, no wider than the screen.

    Sentences continue on the next line. Columns that do not fit follow below, in further blocks, each of which begins
    with the first column.
    """
    for number, widths in enumerate(_blocks(columns, screen.width)):
        if number:
            yield Text()
        block = [columns[index] for index in widths]
        yield from _lines(block, list(widths.values()), screen, folded=True)


def _blocks(columns: Sequence[Column], room: int) -> Iterator[dict[int, int]]:
    """Yield blocks of columns that fit side by side, as widths by column index; every block begins with column 0."""
    words = [min(room, _word_width([column.title, *column.cells])) for column in columns]
    lines = [
        min(room, max(word, _line_width(column)))
        for word, column in zip(words, columns, strict=True)
    ]
    remaining = list(range(1, len(columns)))
    while True:
        # The first column takes at most half of the room, so that numbers fit beside it; its words may be broken.
        widths = {0: min(words[0], max(1, room // 2 - GAP) if remaining else room)}
        while remaining and (
            len(widths) == 1
            or sum(widths.values()) + len(widths) * GAP + words[remaining[0]] <= room
        ):
            index = remaining.pop(0)
            widths[index] = min(words[index], room - widths[0] - GAP)
        free = room - GAP * (len(widths) - 1)
        # Each free cell goes to the column whose rows need the most lines.
        for _ in range(free - sum(widths.values())):
            narrow = [index for index in widths if widths[index] < lines[index]]
            if not narrow:
                break
            widths[max(narrow, key=lambda index: lines[index] / widths[index])] += 1
        titled = {index: max(lines[index], cell_len(columns[index].title)) for index in widths}
        yield titled if sum(titled.values()) <= free else widths
        if not remaining:
            return


def _lines(
    columns: Sequence[Column],
    widths: Sequence[int],
    screen: Screen,
    *,
    gap: int = GAP,
    folded: bool = False,
) -> Iterator[Text]:
    """Yield the lines of columns of these widths; wider cells are folded or cut."""
    drawn = Table(
        box=None,
        pad_edge=False,
        padding=(0, gap, 0, 0),
        show_header=any(column.title for column in columns),
    )
    for column, width in zip(columns, widths, strict=True):
        # Titles are folded where cells are cut.
        title = Text(hold_units(column.title, HELD), "dim", no_wrap=False, overflow="fold")
        drawn.add_column(
            title,
            width=width,
            justify="right" if column.right else "left",
            no_wrap=not folded,
            overflow="fold" if folded else "ellipsis",
        )
    for row in zip(*(column.cells for column in columns), strict=True):
        drawn.add_row(*map(_held, row))
    console = Console(
        file=StringIO(), width=screen.width, color_system="truecolor", legacy_windows=False
    )
    for segments in console.render_lines(drawn, pad=False):
        line = Text.assemble(*((text, style or "") for text, style, _ in segments), no_wrap=True)
        line.plain = line.plain.replace(HELD, " ")
        if not screen.unicode:
            line.plain = line.plain.replace("…", "~")
        line.rstrip()
        yield line


def _held(cell: Text | str) -> Text:
    """Return a cell in which numbers stay with their units."""
    text = Text(cell) if isinstance(cell, str) else cell.copy()
    text.plain = hold_units(text.plain, HELD)
    return text


def _line_width(column: Column) -> int:
    """Return the width of the widest cell, without the title."""
    return max([1, *(cell_len(str(cell)) for cell in column.cells)])


def _word_width(cells: Sequence[Text | str]) -> int:
    """Return the width of the longest word of texts, and of numbers with their shades."""
    texts = list(map(str, cells))
    words = [word for text in texts for word in line_words(text)]
    # A shade follows its number without a space; the empty shade is itself a space.
    padded = [cell_len(text) for text in texts if text.endswith(" ")]
    return max([1, *map(cell_len, words), *padded])
