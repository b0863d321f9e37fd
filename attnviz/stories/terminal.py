"""A story in a terminal: sentences wrapped to be read, tables that fit the window, the receipt last.

Tables are Rich's own; what is decided here is how wide each column is. A table that does not fit goes on below, in
blocks of columns that each begin with the first one: no number is ever cut.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from typing import TYPE_CHECKING

import numpy as np
from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.table import Column
from rich.table import Table as Grid
from rich.text import Text

from attnviz.render.palette import LEVELS, colours, hexed, ink, levels
from attnviz.render.terminal.screen import LIKENESS, READABLE, Screen, scale_bar
from attnviz.stories.record import Cell, Story, Table

if TYPE_CHECKING:
    from rich.console import RenderableType

GAP = 2
HELD = "\ue000"
"""Stands for a space at which no line may end, while Rich makes lines: it would end them at Unicode's own too."""


def told(story: Story, screen: Screen) -> list[Text]:
    """The whole story, in lines no wider than the screen."""
    lines = _prose(story.title, screen, "bold")
    for part in story.parts:
        lines.append(Text())
        lines += _table(part, screen) if isinstance(part, Table) else _prose(part, screen)
    return [*lines, Text(), *_prose(story.receipt, screen, "dim")]


def listed(names: Mapping[str, str], screen: Screen) -> list[Text]:
    """Names, and beside each what it is, in lines no wider than the screen."""
    widest = max(map(cell_len, names))
    grid = Grid.grid(
        Column(width=widest, overflow="fold"),
        Column(width=max(1, min(READABLE, screen.width) - widest - GAP), overflow="fold"),
        padding=(0, GAP, 0, 0),
    )
    for name, what in names.items():
        grid.add_row(Text(_spelled(name, screen), "bold"), Text(_spelled(what, screen)))
    return _lines(grid, screen.width)


def _prose(text: str, screen: Screen, style: str = "") -> list[Text]:
    return _lines(Text(_spelled(text, screen), style, overflow="fold"), min(READABLE, screen.width))


def _lines(part: RenderableType, width: int) -> list[Text]:
    """What Rich makes of a text or a table, in lines, with no spaces at their ends."""
    console = Console(file=StringIO(), width=width, color_system="truecolor", legacy_windows=False)
    lines = []
    for segments in console.render_lines(part, pad=False):
        line = Text.assemble(
            *((segment.text.replace(HELD, " "), segment.style or "") for segment in segments), no_wrap=True
        )
        line.rstrip()
        lines.append(line)
    return lines


def _spelled(text: str, screen: Screen) -> str:
    r"""The text as the screen can show it: what has no likeness in ASCII is spelled out there, as in ``\ub098``.

    The space of a percentage is held, so that no line ends in it.
    """
    shown = text if screen.unicode else text.translate(LIKENESS).encode("ascii", "backslashreplace").decode()
    return re.sub(r"(?<=\d) (?=%)", HELD, shown)


def _table(table: Table, screen: Screen) -> Iterator[Text]:
    """A table's title, its columns in as many blocks as the window asks for, and what its shades mean."""
    yield from _prose(table.title, screen, "bold")
    columns = [[_shown(row[index], table, screen) for row in table.rows] for index in range(len(table.columns))]
    names = [Text(_spelled(name, screen), "dim") for name in table.columns]
    wide = [_widths(name, cells, screen.width) for name, cells in zip(names, columns, strict=True)]
    for number, block in enumerate(_blocks(wide, screen.width)):
        if number:
            yield Text()
        grid = Grid(box=None, padding=(0, GAP, 0, 0), pad_edge=False)
        for index, width in block.items():
            right = any(_is_number(row[index]) for row in table.rows)
            grid.add_column(names[index], justify="right" if right else "left", width=width, overflow="fold")
        for row in zip(*([_held(cell, width) for cell in columns[i]] for i, width in block.items()), strict=True):
            grid.add_row(*row)
        yield from _lines(grid, screen.width)
    if table.shade is not None:
        yield from _legend(table.shade, screen)


def _shown(cell: Cell, table: Table, screen: Screen) -> Text:
    """One cell; a float on a shaded table stands on its colour, or before its shade where there are no colours."""
    if isinstance(cell, str):
        return Text(_spelled(cell, screen))
    if isinstance(cell, float) and math.isnan(cell):
        return Text("-" if table.shade is None or screen.colour else "- ")
    text = f"{cell:.{table.digits}f}" if isinstance(cell, float) else f"{cell:,}"
    text = text.removeprefix("-") if not text.strip("-0.") else text  # no minus before nothing
    if table.shade is None:
        return Text(text)
    if not isinstance(cell, float):
        return Text(text if screen.colour else f"{text} ")
    low, high = table.shade
    step = int(levels(np.array([cell - low]), high - low)[0])
    if not screen.colour:
        return Text(text + screen.shades[math.ceil(step / (LEVELS - 1) * 4 - 0.5)])
    palette = colours(screen.palette, on_dark=screen.dark)
    return Text(text, Style(color="#ffffff" if ink(palette)[step] else "#000000", bgcolor=hexed(palette[step])))


def _is_number(cell: Cell) -> bool:
    """Whether a cell is a number, or reads as one: ``99.6 %``."""
    return not isinstance(cell, str) or re.fullmatch(r"[-+]?[\d.,]+( ?%)?", cell) is not None


def _held(cell: Text, width: int) -> Text:
    """The cell; one that ends with an empty shade stays at the right with it, where Rich would take the space off."""
    if not cell.plain.endswith(" "):
        return cell
    return Text(" " * (width - cell_len(cell.plain)) + cell.plain, justify="left")


def _legend(shade: tuple[float, float], screen: Screen) -> Iterator[Text]:
    """What the shades mean, with the scale itself."""
    text = f"{'colour' if screen.colour else 'shade'}: {shade[0]:.3g} to {shade[1]:.3g}"
    yield Text()
    yield Text.assemble(scale_bar(screen, 16), (text, "dim"))


def _widths(name: Text, cells: Sequence[Text], most: int) -> tuple[int, int, int]:
    """The cells that a column needs so that no word is broken, those for its rows in a line each, and for its name."""
    words = [word for cell in (name, *cells) for word in cell.plain.split()]
    # A shade stands behind its number with no space between, unless it is the empty one.
    padded = [cell_len(cell.plain) for cell in cells if cell.plain.endswith(" ")]
    least = max([1, *map(cell_len, words), *padded])
    rows = max([least, *(cell_len(cell.plain) for cell in cells)])
    return min(least, most), min(rows, most), min(max(rows, cell_len(name.plain)), most)


def _blocks(wide: Sequence[tuple[int, int, int]], room: int) -> Iterator[dict[int, int]]:
    """Which columns stand side by side, each with its width; every block begins with the first column.

    Args:
        wide: for each column the least width, and the two wished ones.
        room: cells across.
    """
    rest = list(range(1, len(wide)))
    while True:
        # Words of a first column that would leave no room for numbers are folded.
        widths = {0: min(wide[0][0], max(1, room // 2 - GAP)) if rest else min(wide[0][0], room)}
        while rest and (len(widths) == 1 or sum(widths.values()) + len(widths) * GAP + wide[rest[0]][0] <= room):
            index = rest.pop(0)
            widths[index] = min(wide[index][0], room - widths[0] - GAP)
        free = room - GAP * (len(widths) - 1)
        _spread(widths, {index: wide[index][1] for index in widths}, free)
        named = {index: wide[index][2] for index in widths}
        yield named if sum(named.values()) <= free else widths
        if not rest:
            return


def _spread(widths: dict[int, int], wished: dict[int, int], room: int) -> None:
    """Give what is left of the room, cell by cell, to the column that lacks the largest part of its wish."""
    for _ in range(room - sum(widths.values())):
        lacking = [index for index in widths if widths[index] < wished[index]]
        if not lacking:
            break
        widths[max(lacking, key=lambda index: wished[index] / widths[index])] += 1
