"""Tables of numbers for a terminal, coloured by sign or weight and shortened where they must be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.style import Style
from rich.text import Text

from attnviz.render.palette import LEVELS
from attnviz.render.sheet import BLANK as UNSEEN
from attnviz.render.terminal.screen import Screen
from attnviz.render.terminal.table import GAP
from attnviz.render.terminal.text import MARKS, fit, spell, wrap
from attnviz.walkthroughs.hand import format_number, one_format
from attnviz.walkthroughs.view import BLANK, LEAST, Cut, GridView, View, cut

LABEL_WIDTH = 14  # cells of a row's name at most
NAME_WIDTH = 10  # cells of a column's name at most, where its numbers take fewer
EIGHTHS = "▏▎▍▌▋▊▉█"
ARITHMETIC = MARKS | str.maketrans(
    {
        "·": "*",
        "⊙": "*",
        "…": "..",
        "∞": "inf",
        "≈": "~=",
        "Φ": "Phi",
        "→": "->",
        "√": "sqrt ",
        "ᵀ": "^T",
    }
)
"""Stand-ins for the signs of arithmetic on a screen that does not know all characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenView(View):
    """A view on a screen."""

    screen: Screen
    lacks_korean: bool = False  # whether English is shown because the screen knows no Korean

    def spell(self, text: str) -> str:
        """Return the text as the screen can show it."""
        if self.screen.unicode:
            return text
        # Between two parts of a sentence the dot is no sign of multiplication.
        return spell(text.replace(" · ", " - "), self.screen, ARITHMETIC)

    def number(self, value: float) -> str:
        """Return a number that stands alone, with the digits of the view."""
        return self.spell(format_number(value, self.digits))

    def fit(self, text: str, width: int) -> str:
        """Return the text in so many cells, with an ellipsis where it was cut."""
        return fit(self.spell(text), width, self.screen, ARITHMETIC)

    def wrap(self, text: str, style: str = "", indent: int = 0) -> list[Text]:
        """Return the text in lines."""
        return wrap(self.spell(text), self.screen, style, indent=indent)

    def group(self, grid: GridView, title: str = "") -> ColumnGroup:
        """Return all columns of a grid, with a corner of the rows where there are many."""
        n_rows = len(grid.values)
        rows = cut(n_rows, 40, 20, 10) if grid.rows or n_rows == 1 else cut(n_rows, 9, 4, 1)
        return ColumnGroup(self, grid, [row for row in rows if row is not None], title=title)

    def draw(self, grid: GridView) -> Iterator[Text]:
        """Return one grid as a table."""
        return GridTable([self.group(grid)]).draw()


class ColumnGroup:
    """Columns of numbers that belong together, all written alike."""

    def __init__(
        self,
        view: ScreenView,
        grid: GridView,
        rows: Sequence[int],
        *,
        title: str = "",
        bar: int = 0,
        remarks: Mapping[int, str] | None = None,
        sums: np.ndarray | None = None,
        has_heading: bool = True,
    ) -> None:
        """Measure the columns.

        `rows` are shown in their order; `bar` is the length of a bar behind each number, in cells; `remarks` stand in
        place of the bars of some rows; `sums` are the numbers of a last line.
        """
        self.view, self.grid, self.rows = view, grid, list(rows)
        self.title = view.spell(title)
        self.bar, self.sums, self.has_heading = bar, sums, has_heading
        self.remarks = remarks or {}
        self.n = grid.values.shape[1]
        self.is_shaded = grid.is_weights and not view.screen.colour and not bar
        numbers = grid.values[self.rows]
        if sums is None:
            self._format = one_format(grid.values, view.digits)
        else:
            numbers = np.append(numbers, sums)
            self._format = one_format(np.vstack([grid.values, sums]), view.digits)
        self._before_point, self._after_point = self._measure(numbers)
        self._number_width = self._before_point + self._after_point
        self.suffix_width = bar + 1 if bar else int(self.is_shaded)
        names = [min(NAME_WIDTH, cell_len(view.spell(name))) for name in grid.columns]
        self.column_width = max(
            self._number_width + self.suffix_width, cell_len(str(self.n - 1)), *names
        )

    def _measure(self, numbers: np.ndarray) -> tuple[int, int]:
        """Return the cells before the point of the numbers, and those from the point on."""
        # All are written alike: the longest is the outermost, or that nearest to 0 with its power.
        finite = numbers[np.isfinite(numbers)]
        nonzero = finite[finite != 0]
        longest = [finite.min(), finite.max(), *numbers[np.isinf(numbers)][:1]]
        if nonzero.size:
            longest.append(nonzero[np.abs(nonzero).argmin()])
        parts = [self.write(float(value)).partition(".") for value in longest]
        before = max(len(whole) for whole, _, _ in parts)
        after = max(len(point + rest) for _, point, rest in parts)
        if self.grid.blanks:
            before = max(before, len(BLANK) - after)
        return before, after

    def write(self, value: float) -> str:
        """Return a number as the screen can show it."""
        return self.view.spell(self._format(value))

    def align(self, text: str) -> str:
        """Return a number with its point under the other points."""
        whole, point, rest = text.partition(".")
        aligned = whole.rjust(self._before_point) + (point + rest).ljust(self._after_point)
        return aligned.rjust(self._number_width)

    def width(self, n_columns: int) -> int:
        """Return the cells of the group with so many of its columns."""
        width = n_columns * (self.column_width + 1) - 1
        if n_columns < self.n:
            # Dots take the place of a space between two columns, or follow a single one.
            width += cell_len(self.view.spell("…")) - (1 if n_columns > 1 else 0)
        return max(width, cell_len(self.title))

    def heading(self, column: int) -> str:
        """Return the name of a column, or its number where there are several."""
        if self.grid.columns:
            return self.view.fit(self.grid.columns[column], self.column_width)
        return str(column) if self.n > 1 else ""

    def cell(self, row: int, column: int) -> Text:
        """Return one number with its colour, and its bar or shade."""
        screen, value = self.view.screen, float(self.grid.values[row, column])
        if (row, column) in self.grid.blanks:
            blank = self.view.spell(BLANK).rjust(self._number_width)
            return Text(blank + " " * self.suffix_width)
        level = round(value * (LEVELS - 1)) if self.grid.is_weights else 0
        style = Style()
        if not self.grid.is_weights and np.isfinite(value):
            style = screen.paint_signed(value, self.grid.top)
        elif self.grid.is_weights and screen.colour and value >= UNSEEN and not self.bar:
            style = screen.paint(level)
        suffix, suffix_style = "", Style()
        if self.bar and row in self.remarks:
            suffix = " " + self.view.spell(self.remarks[row]).ljust(self.bar)
            suffix_style = Style(dim=True)
        elif self.bar:
            suffix = " " + self._draw_bar(value).ljust(self.bar)
            if screen.colour:
                suffix_style = Style(color=screen.paint(LEVELS * 3 // 4).bgcolor)
        elif self.is_shaded:
            suffix = screen.shade(level) if value >= UNSEEN else " "
        number = self.align(self.write(value)).rjust(self.column_width - self.suffix_width)
        return Text.assemble((number, style), (suffix, suffix_style))

    def _draw_bar(self, weight: float) -> str:
        """Return a bar to an eighth of a cell; the whole width is weight 1."""
        if not self.view.screen.unicode:
            return "#" * round(weight * self.bar)
        cells, eighths = divmod(round(weight * self.bar * 8), 8)
        return "█" * cells + (EIGHTHS[eighths - 1] if eighths else "")

    def sum(self, column: int) -> str:
        """Return the sum below a column."""
        assert self.sums is not None
        return self.align(self.write(float(self.sums[column]))) + " " * self.suffix_width


@dataclass(frozen=True, slots=True)
class _Block:
    """A group with the columns of it that are printed; None stands for those left out."""

    group: ColumnGroup
    columns: Cut

    def pad(self, text: Text) -> Text:
        """Return the text as wide as the block; a single column of numbers stands at the right."""
        n_columns = sum(column is not None for column in self.columns)
        free = max(0, self.group.width(n_columns) - text.cell_len)
        if len(self.columns) == 1 and not self.group.suffix_width:
            text.pad_left(free)
        else:
            text.pad_right(free)
        return text

    def title(self) -> Text:
        return self.pad(Text(self.group.title))

    def headings(self) -> Text:
        return self._line(lambda column: Text(self.group.heading(column)))

    def numbers(self, row: int) -> Text:
        return self._line(partial(self.group.cell, row))

    def sums(self) -> Text:
        if self.group.sums is None:
            return self.pad(Text())
        return self._line(lambda column: Text(self.group.sum(column)))

    def _line(self, write: Callable[[int], Text]) -> Text:
        text, before = Text(), ""
        for column in self.columns:
            if column is None:
                text.append(self.group.view.spell("…"), "dim")
                before = ""
                continue
            written = write(column)
            text.append(before + " " * max(0, self.group.column_width - written.cell_len))
            text.append_text(written)
            before = " "
        return self.pad(text)


class GridTable:
    """Rows of numbers, no wider than the screen.

    Vectors are shortened in the middle where they do not fit; if need be, groups and named columns go on below.
    """

    def __init__(
        self,
        groups: Sequence[ColumnGroup],
        *,
        labels: Sequence[str] = (),
        head: str = "",
        dim_rows: frozenset[int] = frozenset(),
        last: str = "",
        counts_hidden_rows: bool = True,
    ) -> None:
        """Prepare the names of the rows.

        `labels` replace the names of the rows; `head` stands above them, and `last` names the line of sums.
        """
        view = groups[0].view
        self._groups, self._dim_rows = list(groups), dim_rows
        self._head, self._last = view.spell(head), view.spell(last)
        self._counts_hidden_rows = counts_hidden_rows
        self._names = [view.fit(name, LABEL_WIDTH) for name in labels or groups[0].grid.labels]
        shown = [*(self._names[row] for row in groups[0].rows), self._head, self._last]
        self._left = min(LABEL_WIDTH, max(map(cell_len, shown)))
        self._room = view.screen.width - self._left

    @property
    def fits(self) -> bool:
        """True if all groups stand side by side, shortened or not."""
        return _count_columns(self._groups, self._room) is not None

    def draw(self) -> Iterator[Text]:
        """Yield the lines of the table."""
        for number, blocks in enumerate(_arrange(self._groups, self._room)):
            if number:
                yield Text()
            yield from self._draw(blocks)

    def _draw(self, blocks: Sequence[_Block]) -> Iterator[Text]:
        groups = [block.group for block in blocks]
        view = groups[0].view
        if self._head or any(group.title for group in groups):
            yield self._line(self._head, [block.title() for block in blocks], "dim")
        if any(group.grid.columns or (group.has_heading and group.n > 1) for group in groups):
            yield self._line("", [block.headings() for block in blocks], "dim")
        previous = -1
        for row in [*groups[0].rows, len(self._names)]:
            n_hidden = row - previous - 1
            if n_hidden and self._counts_hidden_rows:
                more = view.fit(view.say("more rows", n=n_hidden), view.screen.width)
                yield Text(more, "dim", no_wrap=True)
            if row < len(self._names):
                line = self._line(self._names[row], [block.numbers(row) for block in blocks])
                if row in self._dim_rows:
                    line.stylize("dim", 0, len(self._names[row]))
                yield line
            previous = row
        if any(group.sums is not None for group in groups):
            yield self._line(self._last, [block.sums() for block in blocks], "bold")

    def _line(self, name: str, cells: Sequence[Text], style: str = "") -> Text:
        line = Text.assemble(set_cell_size(name, self._left), no_wrap=True, style=style)
        for cell in cells:
            line.append(" " * GAP).append_text(cell)
        line.rstrip()
        return line


def _arrange(groups: Sequence[ColumnGroup], room: int) -> Iterator[list[_Block]]:
    """Yield the groups that stand side by side, block below block."""
    counts = _count_columns(groups, room)
    if counts is not None:
        blocks = []
        for group, n in zip(groups, counts, strict=True):
            last = max(1, n // 3) if n > 1 else 0
            blocks.append(_Block(group, cut(group.n, n, n - last, last)))
        yield blocks
    elif len(groups) == 1:
        (group,) = groups
        n = max(1, (room - GAP + 1) // (group.column_width + 1))
        for first in range(0, group.n, n):
            yield [_Block(group, tuple(range(first, min(first + n, group.n))))]
    else:
        half = len(groups) // 2
        yield from _arrange(groups[:half], room)
        yield from _arrange(groups[half:], room)


def _count_columns(groups: Sequence[ColumnGroup], room: int) -> list[int] | None:
    """Return how many columns of each group are printed so that all fit; None where they cannot."""
    counts = [
        group.n if group.grid.columns else min(group.n, max(1, room // group.column_width))
        for group in groups
    ]

    def widths() -> list[int]:
        return [group.width(n) for group, n in zip(groups, counts, strict=True)]

    while sum(widths()) + GAP * len(groups) > room:
        can_shrink = [
            not group.grid.columns and group.n > LEAST and n > 1
            for group, n in zip(groups, counts, strict=True)
        ]
        if not any(can_shrink):
            return None
        # the widest, of equal ones the first
        widest = np.argmax(np.where(can_shrink, widths(), -1))
        counts[int(widest)] -= 1
    return counts
