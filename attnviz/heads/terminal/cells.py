"""The parts that the terminal views of heads are made of: cells, bars, small patterns, tables that never wrap a row."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from io import StringIO

from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.text import Text

from attnviz.heads.record import Role
from attnviz.heads.shown import COLOURS, family, readable
from attnviz.render.terminal.screen import LIKENESS, Screen
from attnviz.text.display import visible

READABLE = 110
"""Cells that a line of prose may have; longer lines are hard to come back from."""
MISSING = "—"
"""Stands for a number that there is none of."""
ESTABLISHED, DOUBTFUL = "●", "○"
"""A role that is established, and one that is not."""
UP = " ▁▂▃▄▅▆▇█"
ALONG = " ▏▎▍▌▋▊▉█"
UP_ASCII = " .:-=+*#@"
MARKS = LIKENESS | str.maketrans({MISSING: "-", ESTABLISHED: "*", DOUBTFUL: "o", "↔": "-", "←": "<"})
"""What stands for the marks of these views on a screen that knows no more than ASCII."""
MOST_NAMES = 48
"""So many heads are named in one list."""
SEEN = 0.005
"""A share below this reads 0.00."""
LEAST_TOP = 0.2
"""The least weight that a small pattern's full height stands for: an even head looks even."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table; all columns of a table have as many cells.

    Attributes:
        title: above it.
        cells: from top to bottom.
        right: whether they end at one place, as numbers do.
        least: where it may be narrower than its widest cell, the cells that it keeps; 0 where it may not.
        gap: the cells left free before it.
    """

    title: str
    cells: list[Text] = field(default_factory=list)
    right: bool = False
    least: int = 0
    gap: int = 2

    @property
    def width(self) -> int:
        """Of the widest cell."""
        return max([cell_len(self.title), *(cell.cell_len for cell in self.cells)])


def spelled(text: str, screen: Screen) -> str:
    r"""The text as the screen can show it: what has no likeness in ASCII is spelled out there, as in ``\ub098``."""
    text = visible(text)
    return text if screen.unicode else text.translate(MARKS).encode("ascii", "backslashreplace").decode()


def prose(text: str, screen: Screen, style: str | Style = "", indent: int = 0) -> list[Text]:
    """A text in lines that can be read; those after the first begin so many cells further in."""
    width = max(12, min(READABLE, screen.width) - indent)
    console = Console(file=StringIO(), width=width, legacy_windows=False)
    whole = Text(spelled(text, screen), overflow="fold")
    lines = []
    for index, line in enumerate(whole.wrap(console, width)):
        line.rstrip()
        lines.append(Text(" " * indent * (index > 0) + line.plain, style, no_wrap=True))
    return lines


def fit(text: str, width: int, screen: Screen) -> str:
    """The text in so many cells at most, with an ellipsis where it was cut."""
    cut = Text(spelled(text, screen), no_wrap=True)
    cut.truncate(max(1, width), overflow="ellipsis")
    return cut.plain.translate(MARKS) if not screen.unicode else cut.plain


def number(value: float, screen: Screen, digits: int = 2) -> str:
    """A measure with two decimals, or a dash where there is none."""
    if math.isnan(value):
        return spelled(MISSING, screen)
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if not text.strip("-0.") else text


def interval(low: float, high: float, screen: Screen) -> str:
    """Both ends, or a dash where there are none."""
    if math.isnan(low) or math.isnan(high):
        return spelled(MISSING, screen)
    return spelled(f"{number(low, screen)}–{number(high, screen)}", screen)  # noqa: RUF001 - an en dash is meant


def bar(share: float, width: int, screen: Screen) -> str:
    """A share of 1 as a bar of so many cells; one that reads 0.00 is blank, one that is missing is a dash."""
    if math.isnan(share):
        return fit(MISSING, 1, screen).ljust(width)
    part = min(max(share, 0.0), 1.0) * width if share >= SEEN else 0.0
    if not screen.unicode:
        filled = max(round(part), int(share >= SEEN))
        return ("#" * filled).ljust(width)
    eighths = max(round(part * 8), int(share >= SEEN))
    return ("█" * (eighths // 8) + ALONG[eighths % 8].strip()).ljust(width)


def spark(values: Sequence[float], screen: Screen) -> str:
    """A small pattern: a bar for each weight; nothing where there is no weight, or no such key."""
    top = max([LEAST_TOP, *(value for value in values if not math.isnan(value))])
    steps = UP if screen.unicode else UP_ASCII
    return "".join(
        " " if math.isnan(value) or value <= 0 else steps[max(1, round(value / top * (len(steps) - 1)))]
        for value in values
    )


def family_style(name: str, screen: Screen) -> Style:
    """The colour of a role; none where there are no colours."""
    if not screen.colour or family(name) not in COLOURS:
        return Style()
    return Style(color=readable(COLOURS[family(name)], dark=screen.dark))


def role_style(role: Role | None, screen: Screen) -> Style:
    """The colour of a role: dim where there is none, italic where it is not established."""
    if role is None:
        return Style(dim=True)
    return family_style(role.name, screen) + Style(italic=None if role.established else True)


def mark(role: Role | None, screen: Screen) -> str:
    """What stands before a role: whether it is established."""
    return " " if role is None else spelled(ESTABLISHED if role.established else DOUBTFUL, screen)


def _least(columns: Sequence[Column]) -> int:
    """The cells that a table cannot do without."""
    needed = sum(min(column.least, column.width) if column.least else column.width for column in columns)
    return needed + sum(column.gap for column in columns[1:])


def rows(columns: Sequence[Column], screen: Screen) -> Iterator[Text]:
    """A table, a line a row, no wider than the screen.

    Cells that have no room are cut with an ellipsis; where that is not enough, the last columns are left out.
    """
    while len(columns) > 2 and _least(columns) > screen.width:
        columns = columns[:-1]
    widths = [column.width for column in columns]
    spare = screen.width - sum(widths) - sum(column.gap for column in columns[1:])
    for index, column in enumerate(columns):
        if spare < 0 and column.least:
            narrower = max(column.least, widths[index] + spare)
            spare += widths[index] - narrower
            widths[index] = narrower
    titles = [Text(column.title, "dim") for column in columns]
    for cells in (titles, *zip(*(column.cells for column in columns), strict=True)):
        line = Text(no_wrap=True)
        for index, (cell, column, width) in enumerate(zip(cells, columns, widths, strict=True)):
            shown = cell.copy()
            shown.truncate(width, overflow="ellipsis")
            if not screen.unicode:
                shown.plain = shown.plain.translate(MARKS)
            pad = " " * (width - shown.cell_len)
            line.append(" " * (column.gap if index else 0))
            line = Text.assemble(line, pad, shown) if column.right else Text.assemble(line, shown, pad)
        line.rstrip()
        line.no_wrap = True
        yield line


def heads_in_lines(title: Text, names: Sequence[str], screen: Screen, indent: int) -> Iterator[Text]:
    """A title and behind it names, `MOST_NAMES` at most, as many in a line as fit; further lines begin below."""
    line, room = title.copy(), min(READABLE, screen.width)
    line.no_wrap = True
    line.append(" " * max(1, indent - line.cell_len))
    if line.cell_len > room // 2:
        line.rstrip()
        yield line
        indent = 6
        line = Text(" " * indent, no_wrap=True)
    first = True
    more = len(names) - MOST_NAMES
    words = [*names[:MOST_NAMES], *(["and", f"{more:,}", "more"] if more > 0 else [])]
    for name in words:
        if not first and line.cell_len + 1 + len(name) > room:
            yield line
            line, first = Text(" " * indent, no_wrap=True), True
        line.append(name if first else f" {name}")
        first = False
    line.rstrip()
    yield line
