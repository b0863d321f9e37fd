"""Tables of numbers for a terminal, coloured by sign or weight; long vectors are shortened in the middle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from attnviz.render.palette import BLANK as UNSEEN
from attnviz.render.palette import LEVELS
from attnviz.render.terminal.screen import Screen
from attnviz.render.terminal.table import GAP
from attnviz.render.terminal.text import MARKS, fit, spell, wrap
from attnviz.text.messages import _
from attnviz.walkthroughs.hand import format_number, one_format
from attnviz.walkthroughs.view import LEAST, Cut, GridView, View, cut

LABEL_WIDTH, NAME_WIDTH = 14, 10  # largest widths of a row name and a column name
MEASURED = 60  # columns of a long vector that are measured, at its two ends
EIGHTHS = " ▏▎▍▌▋▊▉"
SIGNS = {"·": "*", "⊙": "*", "∞": "inf", "≈": "~=", "→": "->", "√": "sqrt ", "ᵀ": "^T"}
ARITHMETIC = MARKS | str.maketrans({**SIGNS, "…": ".."})
"""ASCII replacements for mathematical signs, for screens without Unicode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenView(View):
    """A view together with the screen that shows it."""

    screen: Screen

    def spell(self, text: str) -> str:
        """Return the text with the characters that the screen lacks replaced."""
        if self.screen.unicode:
            return text
        # Between spaces the dot separates parts of a sentence; it is no multiplication sign there.
        return spell(text.replace(" · ", " - "), self.screen, ARITHMETIC)

    def number(self, value: float) -> str:
        """Return a number outside a table, with the digits of the view."""
        return self.spell(format_number(value, self.digits))

    def fit(self, text: str, width: int) -> str:
        """Return the text in `width` cells, with an ellipsis if it was cut."""
        return fit(self.spell(text), width, self.screen, ARITHMETIC)

    def wrap(self, text: str, style: str = "", indent: int = 0) -> list[Text]:
        """Return the text wrapped to the width of the screen."""
        return wrap(self.spell(text), self.screen, style, indent=indent)


class ColumnGroup:
    """Adjacent columns of a table, such as the values or the weights of all keys, with numbers in one format."""

    def __init__(
        self,
        view: ScreenView,
        grid: GridView,
        rows: Sequence[int],
        *,
        title: str = "",
        bar: int = 0,
        is_summed: bool = False,
        has_numbers: bool = True,
    ) -> None:
        """Measure the columns.

        Args:
            view: the view with its screen.
            grid: the numbers.
            rows: the rows to show.
            title: a title above the columns.
            bar: the length of the bar after each number, in character cells; 0 for no bars.
            is_summed: whether the sum of each column is shown below it.
            has_numbers: whether columns without names are numbered.
        """
        self.view, self.grid, self.rows = view, grid, rows
        self.title, self.bar = view.spell(title), bar
        self.n_columns = grid.values.shape[1]
        has_sums = is_summed and not view.blanks
        self.sums = grid.values.sum(axis=0) if has_sums else np.empty(0)
        self.is_fixed = bool(grid.columns) or self.n_columns <= LEAST
        # Without colours, a shade character follows each weight.
        self.has_shades = grid.is_weights and not view.screen.colour and not bar
        values = np.vstack([grid.values, self.sums]) if has_sums else grid.values
        self._format = one_format(values, view.digits)
        self._number_width = self._measure()
        self._suffix_width = bar + 1 if bar else int(self.has_shades)
        self.headings = [view.fit(name, NAME_WIDTH) for name in grid.columns]
        if not self.headings and has_numbers and self.n_columns > 1:
            self.headings = [str(column) for column in range(self.n_columns)]
        widths = [cell_len(heading) for heading in self.headings]
        self.column_width = max([self._number_width + self._suffix_width, *widths])

    def _measure(self) -> int:
        """Return the width of the widest number; in a long vector only the two ends are measured."""
        ends = cut(self.n_columns, MEASURED, MEASURED // 2, MEASURED // 2)
        columns = [column for column in ends if column is not None]
        texts = [
            self._write(self.grid.values[row, column]) for row in self.rows for column in columns
        ]
        if self.sums.size:
            texts += [self._write(self.sums[column]) for column in columns]
        return max(map(cell_len, texts))

    def width(self, n_shown: int) -> int:
        """Return the width of the block with `n_shown` of its columns, and dots in place of the others."""
        dots = cell_len(self.view.spell("…"))
        width = n_shown * (self.column_width + 1) - 1
        if n_shown < self.n_columns:
            width += dots if n_shown == 1 else dots - 1
        return max(width, cell_len(self.title))

    def line(self, columns: Cut, row: int | str) -> Text:
        """Return one line of the block: a row of its grid, or its ``title``, ``headings`` or ``sums``."""
        text, gap = Text(self.title if row == "title" else ""), ""
        for column in columns if row != "title" else ():
            if column is None:
                dots = self.view.spell("…")
                has_none = row == "sums" and not self.sums.size
                text.append(" " * len(dots) if has_none else dots, "dim")
                gap = ""
            else:
                text.append(gap).append_text(self._cell(row, column))
                gap = " "
        n_shown = sum(column is not None for column in columns)
        free = max(0, self.width(n_shown) - text.cell_len)
        if self.n_columns == 1 and not self._suffix_width:
            text.pad_left(free)
        else:
            text.pad_right(free)
        return text

    def _cell(self, row: int | str, column: int) -> Text:
        """Return one cell of a line: a number with its bar or shade, a heading, or a sum."""
        width = self.column_width - self._suffix_width
        style, suffix = Style(), Text(" " * self._suffix_width)
        if row == "headings":
            number, width = self.headings[column] if self.headings else "", self.column_width
            return Text(" " * (width - cell_len(number)) + number)
        if row == "sums":
            number = self._write(self.sums[column]) if self.sums.size else ""
        else:
            value = float(self.grid.values[int(row), column])
            number = self._write(value)
            if np.isfinite(value):
                style, suffix = self._look(value)
        return Text.assemble((number.rjust(width), style), suffix)

    def _write(self, value: float) -> str:
        return self.view.spell(self._format(value))

    def _look(self, value: float) -> tuple[Style, Text]:
        """Return the colour of a number, and the bar or shade after it."""
        screen = self.view.screen
        level = round(value * (LEVELS - 1)) if self.grid.is_weights else 0
        if self.bar:
            style = Style(color=screen.paint(LEVELS * 3 // 4).bgcolor) if screen.colour else ""
            return Style(), Text(" " + self._bar(value).ljust(self.bar), style)
        if self.has_shades:
            return Style(), Text(screen.shade(level) if value >= UNSEEN else " ")
        if self.grid.is_weights:
            is_seen = screen.colour and value >= UNSEEN
            return screen.paint(level) if is_seen else Style(), Text()
        return screen.paint_signed(value, self.grid.top), Text()

    def _bar(self, weight: float) -> str:
        """Return a bar, exact to an eighth of a cell; its full width is a weight of 1."""
        if not self.view.screen.unicode:
            return "#" * round(weight * self.bar)
        cells, eighths = divmod(round(weight * self.bar * 8), 8)
        return ("█" * cells + EIGHTHS[eighths]).rstrip()


def draw_table(
    blocks: Sequence[ColumnGroup],
    *,
    labels: Sequence[str] = (),
    head: str = "",
    last: str = "",
    counts_hidden: bool = True,
) -> Iterator[Text]:
    """Yield the lines of blocks side by side; blocks that do not fit the screen follow below.

    Args:
        blocks: the blocks, all with the same rows.
        labels: the names of the rows, instead of those of the first grid.
        head: the heading of the names.
        last: the name of the line of sums.
        counts_hidden: whether lines say how many rows are left out.
    """
    view = blocks[0].view
    names = [view.fit(name, LABEL_WIDTH) for name in labels or blocks[0].grid.labels]
    head, last = view.spell(head), view.spell(last)
    left = max(cell_len(name) for name in [*(names[row] for row in blocks[0].rows), head, last])
    for number, (group, cuts) in enumerate(_arrange(blocks, view.screen.width - left)):
        line = partial(_line, left, group, cuts)
        if number:
            yield Text()
        if head or _has(group, "title"):
            yield line("title", head, "dim")
        if _has(group, "headings"):
            yield line("headings", "", "dim")
        previous = -1
        for row in blocks[0].rows:
            yield from _hidden(view, row - previous - 1 if counts_hidden else 0)
            yield line(row, names[row])
            previous = row
        yield from _hidden(view, len(names) - previous - 1 if counts_hidden else 0)
        if _has(group, "sums"):
            yield line("sums", last, "bold")


def _has(blocks: Sequence[ColumnGroup], name: str) -> bool:
    """Return whether any block has this line."""
    return any(len(getattr(block, name)) for block in blocks)


def _hidden(view: ScreenView, n: int) -> list[Text]:
    return view.wrap(_("... {n} more rows").format(n=n), "dim") if n else []


def _line(
    left: int,
    blocks: Sequence[ColumnGroup],
    cuts: Sequence[Cut],
    row: int | str,
    name: str,
    style: str = "",
) -> Text:
    """Return one line of a table: its name, then the line of each block.

    `row` is the number of a row, or "title", "headings" or "sums"; `left` is the width of the names.
    """
    text = Text(name + " " * (left - cell_len(name)), style, no_wrap=True)
    for block, columns in zip(blocks, cuts, strict=True):
        text.append(" " * GAP).append_text(block.line(columns, row))
    text.rstrip()
    return text


def draw_grid(view: ScreenView, grid: GridView) -> Iterator[Text]:
    """Yield the lines of one grid as a table."""
    return draw_table([ColumnGroup(view, grid, rows_of(grid))])


def rows_of(grid: GridView) -> list[int]:
    """Return the rows to show; fewer if they have no names, as in weight matrices."""
    n_rows = len(grid.values)
    rows = cut(n_rows, 40, 20, 10) if grid.rows or n_rows == 1 else cut(n_rows, 9, 4, 1)
    return [row for row in rows if row is not None]


def _arrange(
    blocks: Sequence[ColumnGroup], room: int
) -> Iterator[tuple[Sequence[ColumnGroup], Sequence[Cut]]]:
    """Yield groups of blocks that fit side by side, each with the columns of its blocks."""
    counts = _count_columns(blocks, room)
    if counts is not None:
        cuts = []
        for block, n in zip(blocks, counts, strict=True):
            n_last = max(1, n // 3) if n > 1 else 0
            cuts.append(cut(block.n_columns, n, n - n_last, n_last))
        yield blocks, cuts
    elif len(blocks) == 1:
        n = max(1, (room - GAP + 1) // (blocks[0].column_width + 1))
        for first in range(0, blocks[0].n_columns, n):
            yield blocks, [tuple(range(first, min(first + n, blocks[0].n_columns)))]
    else:
        half = len(blocks) // 2
        yield from _arrange(blocks[:half], room)
        yield from _arrange(blocks[half:], room)


def _count_columns(blocks: Sequence[ColumnGroup], room: int) -> list[int] | None:
    """Return how many columns of each block to show so that all blocks fit; None if they cannot fit."""
    counts = [
        block.n_columns if block.is_fixed else min(block.n_columns, MEASURED) for block in blocks
    ]
    while True:
        widths = [block.width(n) for block, n in zip(blocks, counts, strict=True)]
        if sum(widths) + GAP * len(blocks) <= room:
            return counts
        shrinkable = [i for i, block in enumerate(blocks) if not block.is_fixed and counts[i] > 1]
        if not shrinkable:
            return None
        counts[max(shrinkable, key=lambda i: widths[i])] -= 1
