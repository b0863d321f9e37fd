"""Tables of numbers for a terminal: points under points, shaded by size, shortened in the middle where they must be."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.style import Style
from rich.text import Text

from attnviz.render.palette import LEVELS, colours, hexed, ink, levels
from attnviz.render.terminal.screen import Screen
from attnviz.text.numbers import shown
from attnviz.walkthroughs.selection import BLANK
from attnviz.walkthroughs.terminal.lines import fitted, likeness

LABEL = 14
"""Cells that a row's name may take."""
NAME = 10
"""Cells that a column's name may take, where its numbers take fewer."""
GAP = 2
"""Cells between two blocks."""
LEAST = 4
"""Vectors of no more numbers are never shortened: that would gain nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Columns of a table that belong together.

    Attributes:
        title: their name.
        values: the numbers [row, column].
        names: a name for each column; empty where they are only counted.
        total: what the sum of each row is called, where columns are left out; empty leaves it out.
        blanks: rows and columns of cells that stay empty.
        optional: whether the whole block may be left out; only the first may be.
    """

    title: str
    values: np.ndarray
    names: tuple[str, ...] = ()
    total: str = ""
    blanks: frozenset[tuple[int, int]] = frozenset()
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A column as it is printed.

    Attributes:
        name: what stands above it.
        cells: the numbers, all of one width.
        levels: for each cell its level in the palette, or None.
        place: its number in the grid; None where it is no column of a grid.
        shades: whether a shade stands behind each number where there are no colours.
    """

    name: str
    cells: tuple[str, ...]
    levels: tuple[int | None, ...]
    place: int | None = None
    shades: bool = True

    @property
    def width(self) -> int:
        """Cells across."""
        return max(map(cell_len, (self.name, *self.cells)))


Part = tuple[str, list[Column]]
"""A block that has been cut to size: its title and columns."""


def table(
    labels: Sequence[str],
    head: str,
    blocks: Sequence[Block],
    screen: Screen,
    precision: int,
    *,
    more: tuple[int, str] | None = None,
) -> Iterator[Text]:
    """Rows with names, in lines no wider than the screen.

    Blocks without column names are shortened in the middle where they do not fit; those with names go on below.

    Args:
        labels: a name for each row.
        head: what the names are.
        blocks: the columns.
        screen: where.
        precision: digits after the point.
        more: before which row something is left out, and what is said there.
    """
    names = _names(labels, screen)
    head = likeness(head, screen)
    left = _left(names, head)
    room = screen.width - left - GAP
    parts = _fit(list(blocks), room, screen, precision)
    parts = [(fitted(title, room, screen), columns) for title, columns in parts]
    for number, line in enumerate(_bands(parts, room, screen)):
        if number:
            yield Text()
        printed = list(_printed(line, names, head, left, screen))
        if more is not None:
            place = len(printed) - len(names) + more[0]
            printed.insert(place, Text(fitted(likeness(more[1], screen), screen.width, screen), "dim", no_wrap=True))
        yield from printed


def columns_shown(
    labels: Sequence[str], head: str, blocks: Sequence[Block], screen: Screen, precision: int
) -> list[list[int]]:
    """The columns of each block that `table` prints; the arguments are the same."""
    room = screen.width - _left(_names(labels, screen), likeness(head, screen)) - GAP
    parts = _fit(list(blocks), room, screen, precision)
    shown_of = [[column.place for column in columns if column.place is not None] for _, columns in parts]
    return [*([] for _ in range(len(blocks) - len(parts))), *shown_of]


def _names(labels: Sequence[str], screen: Screen) -> list[str]:
    """The names of rows as they are printed."""
    return [fitted(likeness(label, screen), LABEL, screen) for label in labels]


def _left(names: Sequence[str], head: str) -> int:
    """The cells that they take."""
    return min(LABEL, max(map(cell_len, (head, *names)), default=0))


def rows_shown(n: int, *, named: bool) -> tuple[int, int]:
    """How many rows of so many are printed at the beginning and at the end of a table."""
    most, first, last = (40, 20, 10) if named else (9, 4, 1)
    return (n, 0) if n <= most else (first, last)


def _fit(blocks: list[Block], room: int, screen: Screen, precision: int) -> list[Part]:
    """All blocks side by side if that can be; what may be left out goes first, then vectors are shortened."""
    # No number takes less than two cells: of vectors longer than that not all can fit.
    counts = [n if block.names else min(n, max(2, room // 2)) for block in blocks for n in [block.values.shape[1]]]
    while True:
        parts = [_part(block, count, screen, precision) for block, count in zip(blocks, counts, strict=True)]
        over = sum(_width(part, screen) + GAP for part in parts) - GAP - room
        if over <= 0:
            return parts
        spare = [i for i, block in enumerate(blocks) if block.optional]
        if spare:
            del blocks[spare[0]], counts[spare[0]]
            continue
        whole = all(count == block.values.shape[1] for count, block in zip(counts, blocks, strict=True))
        bare = [(title, [replace(column, shades=False) for column in columns]) for title, columns in parts]
        if whole and sum(_width(part, screen) + GAP for part in bare) - GAP <= room:
            return bare  # rather all numbers without shades than some with them
        long = [
            i for i, block in enumerate(blocks) if not block.names and block.values.shape[1] > LEAST and counts[i] > 2
        ]
        if not long:
            return parts
        widest = max(long, key=lambda i: counts[i])
        each = _width(parts[widest], screen) / counts[widest]
        counts[widest] = max(2, min(counts[widest] - 1, counts[widest] - int(over / each / len(long))))


def _part(block: Block, count: int, screen: Screen, precision: int) -> Part:
    """A block with so many of its columns, from both ends."""
    values, n = block.values, block.values.shape[1]
    finite = np.abs(np.where(np.isfinite(values), values, 0.0))
    level = levels(finite, float(finite.max(initial=0.0)))
    blank = likeness(BLANK, screen)

    def column(index: int, name: str) -> Column:
        empty = [(row, index) in block.blanks for row in range(len(values))]
        texts = [
            blank if none else likeness(shown(value, precision), screen)
            for value, none in zip(values[:, index].tolist(), empty, strict=True)
        ]
        shades = [
            None if none or not np.isfinite(value) else int(step)
            for value, step, none in zip(values[:, index].tolist(), level[:, index], empty, strict=True)
        ]
        cells = _aligned(texts)
        return Column(fitted(likeness(name, screen), max(NAME, len(cells[0])), screen), cells, tuple(shades), index)

    if count == n:
        names = block.names or (tuple(map(str, range(n))) if n > 1 else ("",))
        return likeness(block.title, screen), [column(i, name) for i, name in enumerate(names)]
    nothing = (None,) * len(values)
    dots = Column("", (likeness("…", screen),) * len(values), nothing)
    last = max(1, count // 3)
    shown_columns = [*(column(i, str(i)) for i in range(count - last)), dots]
    shown_columns += [column(i, str(i)) for i in range(n - last, n)]
    if block.total and not block.blanks:
        totals = [likeness(shown(math.fsum(row), precision), screen) for row in values.tolist()]
        shown_columns.append(Column(likeness(block.total, screen), _aligned(totals), nothing))
    return likeness(block.title, screen), shown_columns


def _aligned(texts: Sequence[str]) -> tuple[str, ...]:
    """Numbers with point under point, all of one width."""
    parts = [text.partition(".") for text in texts]
    before = max(cell_len(whole) for whole, _, _ in parts)
    after = max(len(point + rest) for _, point, rest in parts)
    return tuple(" " * (before - cell_len(whole)) + whole + (point + rest).ljust(after) for whole, point, rest in parts)


def _cell_width(column: Column, screen: Screen) -> int:
    """With a space before it, or its shade behind it and a space."""
    return column.width + (2 if column.shades and not screen.colour else 1)


def _width(part: Part, screen: Screen) -> int:
    title, columns = part
    return max(cell_len(title), sum(_cell_width(column, screen) for column in columns))


def _bands(parts: list[Part], room: int, screen: Screen) -> Iterator[list[Part]]:
    """The parts in lines of the screen: columns that do not fit go on below."""
    band: list[Part] = []
    used = 0
    for title, columns in parts:
        rest = columns
        while rest:
            free = room - used - (GAP if band else 0)
            taken = 0
            while taken < len(rest) and _width((title, rest[: taken + 1]), screen) <= free:
                taken += 1
            if not taken and band:
                yield band
                band, used = [], 0
                continue
            taken = max(1, taken)
            if taken < len(rest) and band and len(columns) == len(rest) and taken < 3:
                yield band  # a few cells of a wide block are no good beginning
                band, used = [], 0
                continue
            piece = (title, rest[:taken])
            used += _width(piece, screen) + (GAP if band else 0)
            band.append(piece)
            rest = rest[taken:]
    if band:
        yield band


def _printed(band: list[Part], names: Sequence[str], head: str, left: int, screen: Screen) -> Iterator[Text]:
    """The lines of one band: titles, names of columns where there are any, rows."""
    if head or any(title for title, _ in band):
        yield _line([set_cell_size(head, left), *(_titled(part, left, screen) for part in band)])
    if any(column.name for _, columns in band for column in columns):
        lines = [" " * left]
        for part in band:
            text = "".join(_padded(column.name, column, screen) for column in part[1])
            lines.append(" " * (_width(part, screen) - cell_len(text)) + text)
        yield _line(lines)
    for row, name in enumerate(names):
        line = Text(set_cell_size(name, left), no_wrap=True)
        for part in band:
            cells = [_shaded(column, row, screen) for column in part[1]]
            pad = _width(part, screen) - sum(cell.cell_len for cell in cells)
            line = Text.assemble(line, " " * (GAP + pad), *cells, no_wrap=True)
        line.rstrip()
        yield line


def _titled(part: Part, left: int, screen: Screen) -> str:
    """A block's title as wide as the block: over one column of numbers at the right, else at the left."""
    title, columns = part
    width = min(_width(part, screen), screen.width - left - GAP)
    cut = fitted(title, width, screen)
    behind = 2 if columns[0].shades and not screen.colour else 0
    if len(columns) == 1 and cell_len(cut) + behind <= width:
        return " " * (width - cell_len(cut) - behind) + cut + " " * behind
    return set_cell_size(cut, width)


def _line(parts: Sequence[str]) -> Text:
    return Text((" " * GAP).join(parts).rstrip(), "dim", no_wrap=True)


def _padded(text: str, column: Column, screen: Screen) -> str:
    """A text at the right of its column."""
    free = column.width - cell_len(text)
    return " " * free + text + "  " if column.shades and not screen.colour else " " * (free + 1) + text


def _shaded(column: Column, row: int, screen: Screen) -> Text:
    """A cell on its colour, or before its shade where there are no colours."""
    cell, level = column.cells[row], column.levels[row]
    padded = " " * (column.width - cell_len(cell)) + cell
    with_shade = column.shades and not screen.colour
    if level is None or not (screen.colour or with_shade):
        return Text(f"{padded}  " if with_shade else f" {padded}")
    if with_shade:
        return Text(padded + screen.shades[math.ceil(level / (LEVELS - 1) * 4 - 0.5)] + " ")
    palette = colours(screen.palette, on_dark=screen.dark)
    return Text(
        f" {padded}",
        Style(color="#ffffff" if ink(palette)[level] else "#000000", bgcolor=hexed(palette[level])),
    )
