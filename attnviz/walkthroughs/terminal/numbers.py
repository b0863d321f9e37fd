"""Tables of numbers for a terminal: points under points, coloured by sign or weight, shortened where they must be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

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

LABEL = 14  # cells that a row's name may take
NAME = 10  # cells that a column's name may take, where its numbers take fewer
EIGHTHS = "▏▎▍▌▋▊▉█"
_ARITHMETIC = MARKS | str.maketrans(
    {
        "·": "*",
        "⊙": "*",
        "…": "..",
        "∞": "inf",
        "≈": "~=",
        "Φ": "Phi",
        "→": "->",
        "←": "<-",
        "↑": "up",
        "↓": "down",
    }
    | {"√": "sqrt ", "ᵀ": "^T"}
)
"""What stands for the marks of arithmetic on a screen that does not know all characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenView(View):
    """A view on a screen; one that cannot show Korean gets English in its place, and `lacks_korean`."""

    screen: Screen
    lacks_korean: bool = False

    def spell(self, text: str) -> str:
        """The text as the screen can show it."""
        # Between two parts of a sentence the dot is no sign of multiplication.
        return (
            text
            if self.screen.unicode
            else spell(text.replace(" · ", " - "), self.screen, _ARITHMETIC)
        )

    def number(self, value: float) -> str:
        """A number that stands alone, with the digits of the view."""
        return self.spell(format_number(value, self.digits))

    def fit(self, text: str, width: int) -> str:
        """The text in so many cells, with an ellipsis where it was cut."""
        return fit(self.spell(text), width, self.screen, _ARITHMETIC)

    def wrap(self, text: str, style: str = "", indent: int = 0) -> list[Text]:
        """The text in lines that can be read."""
        return wrap(self.spell(text), self.screen, style, indent=indent)

    def group(self, grid: GridView, title: str = "") -> ColumnGroup:
        """All columns of a grid; of a large matrix that no token names a corner of rows, nobody reads it."""
        n = len(grid.values)
        rows = cut(n, *((40, 20, 10) if grid.rows or n == 1 else (9, 4, 1)))
        return ColumnGroup(
            view=self, grid=grid, title=title, rows=[row for row in rows if row is not None]
        )

    def draw(self, grid: GridView) -> Iterator[Text]:
        """One grid as a table."""
        return GridTable(groups=(self.group(grid),)).draw()


@dataclass(frozen=True, kw_only=True)
class ColumnGroup:
    """Columns of numbers that belong together, all written alike."""

    view: ScreenView  # how they are shown
    grid: GridView  # the numbers
    title: str = ""  # above them
    rows: Sequence[int]  # the rows that are printed, in their order
    bar: int = 0  # cells of a bar behind each number, as long as it is large; 0 for none
    # by row what stands in place of the bar
    remarks: Mapping[int, str] = field(default_factory=dict)
    sums: np.ndarray | None = None  # the numbers of a last line [column]; None for none
    counted: bool = True  # whether the numbers of columns without names stand above them
    printed: Cut = ()  # the columns that are printed

    @cached_property
    def n(self) -> int:
        """How many columns there are."""
        return int(self.grid.values.shape[1])

    @cached_property
    def write(self) -> Callable[[float], str]:
        """Writes a number."""
        values = self.grid.values
        form = one_format(
            values if self.sums is None else np.vstack([values, self.sums]), self.view.digits
        )
        return lambda value: self.view.spell(form(value))

    @cached_property
    def places(self) -> tuple[int, int]:
        """Cells before the point of each number, and from the point on."""
        seen = self.grid.values[list(self.rows)]
        seen = seen if self.sums is None else np.append(seen, self.sums)
        finite = seen[np.isfinite(seen)]
        small = finite[finite != 0]
        # Written alike, none is longer than the outermost, or than that nearest to 0 with its power of ten.
        longest = [
            finite.min(),
            finite.max(),
            *seen[np.isinf(seen)][:1],
            *small[np.abs(small).argsort()[:1]],
        ]
        texts = [self.write(float(value)).partition(".") for value in longest]
        after = max(len(point + rest) for _, point, rest in texts)
        before = max(len(whole) for whole, _, _ in texts)
        return max(before, len(BLANK) - after if self.grid.blanks else 0), after

    @cached_property
    def width(self) -> int:
        """Cells of each column."""
        names = [min(NAME, cell_len(self.view.spell(name))) for name in self.grid.columns]
        return max(sum(self.places) + self.behind, cell_len(str(self.n - 1)), *names)

    @property
    def behind(self) -> int:
        """Cells behind each number: of its bar, or of its shade."""
        return (
            self.bar + 1 if self.bar else int(self.grid.is_weights and not self.view.screen.colour)
        )

    def across(self, n: int) -> int:
        """Cells of the group with so many of its columns; dots stand for the others."""
        is_cut = n < self.n  # dots stand in place of a space, the last ones behind all
        numbers = n * (self.width + 1) - 1 + is_cut * (cell_len(self.view.spell("…")) - (n > 1))
        return max(numbers, cell_len(self.view.spell(self.title)))

    def heading(self, place: int) -> str:
        """The name of a column, or its number where there are several."""
        names = self.grid.columns
        return (
            self.view.fit(names[place], self.width) if names else str(place) if self.n > 1 else ""
        )

    def align(self, text: str) -> str:
        """A number, or what stands for it, with its point in its place."""
        whole, point, rest = text.partition(".")
        return (whole.rjust(self.places[0]) + (point + rest).ljust(self.places[1])).rjust(
            sum(self.places)
        )

    def cell(self, row: int, column: int) -> Text:
        """One number as it is printed."""
        grid, screen = self.grid, self.view.screen
        value, remark = float(grid.values[row, column]), self.view.spell(self.remarks.get(row, ""))
        if (row, column) in grid.blanks:
            return Text(self.view.spell(BLANK).rjust(sum(self.places)) + " " * self.behind)
        text, style, behind = self.align(self.write(value)), Style(), ""
        if not grid.is_weights and np.isfinite(value):
            style = screen.paint_signed(value, grid.top)
        elif grid.is_weights and screen.colour and value >= UNSEEN and not self.bar:
            style = screen.paint(round(value * (LEVELS - 1)))
        if self.bar:
            behind = " " + (remark or self.bar_of(value)).ljust(self.bar)
        elif grid.is_weights and not screen.colour:
            behind = screen.shade(round(value * (LEVELS - 1))) if value >= UNSEEN else " "
        ink = (
            screen.paint(LEVELS * 3 // 4).bgcolor
            if screen.colour and self.bar and not remark
            else None
        )
        padded = text.rjust(self.width - self.behind)
        return Text.assemble(
            (padded, style), (behind, Style(color=ink) if ink else "dim" if remark else "")
        )

    @property
    def last(self) -> Text:
        """The line of sums, where there are any."""
        texts = (
            [] if self.sums is None else [self.align(self.write(one)) for one in self.sums.tolist()]
        )
        return (
            self.line(lambda place: texts[place] + " " * self.behind)
            if texts
            else self.padded(Text())
        )

    def line(self, write: Callable[[int], Text | str]) -> Text:
        """What is written for each column printed, side by side, as wide as all."""
        text, before = Text(), ""
        for place in self.printed:
            if place is None:
                text.append(self.view.spell("…"), "dim")
            else:
                written = write(place)
                text.append(before + " " * max(0, self.width - cell_len(str(written)))).append(
                    written
                )
            before = "" if place is None else " "
        return self.padded(text)

    def padded(self, text: Text) -> Text:
        """The text as wide as the columns printed; of one number a row, with nothing behind it, at the right."""
        free = max(0, self.across(sum(place is not None for place in self.printed)) - text.cell_len)
        (text.pad_left if len(self.printed) == 1 and not self.behind else text.pad_right)(free)
        return text

    def bar_of(self, weight: float) -> str:
        """A bar as long as a weight is large, to an eighth of a cell; the whole width is weight 1."""
        if not self.view.screen.unicode:
            return "#" * round(weight * self.bar)
        whole, rest = divmod(round(weight * self.bar * 8), 8)
        return "█" * whole + (EIGHTHS[rest - 1] if rest else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class GridTable:
    """Rows of numbers, before it is known how many of their columns are printed."""

    groups: tuple[ColumnGroup, ...]  # the numbers
    labels: tuple[str, ...] = ()  # a name for each row, where it is not that of the first numbers
    head: str = ""  # what the names are
    faint: frozenset[int] = frozenset()  # rows that do not count
    last: str = ""  # the name of a last line, where groups have sums
    is_cut: bool = True  # whether rows that are left out are told of in their place

    @property
    def fits(self) -> bool:
        """Whether all groups stand side by side, shortened or not."""
        return _counts(self.groups, self.groups[0].view.screen.width - self._names()[1]) is not None

    def _names(self) -> tuple[list[str], int]:
        view = self.groups[0].view
        names = [view.fit(label, LABEL) for label in self.labels or self.groups[0].grid.labels]
        beside = [
            *(names[row] for row in self.groups[0].rows),
            view.spell(self.head),
            view.spell(self.last),
        ]
        return names, min(LABEL, max(map(cell_len, beside)))

    def draw(self) -> Iterator[Text]:
        """The table in lines no wider than the screen; where rows are left out, how many.

        Vectors are shortened in the middle where they do not fit; if need be, groups and columns with names go on
        below.
        """
        names, left = self._names()
        for number, groups in enumerate(
            _blocks(self.groups, self.groups[0].view.screen.width - left)
        ):
            if number:
                yield Text()
            yield from self._print(groups, names, left)

    def _print(
        self, groups: Sequence[ColumnGroup], names: Sequence[str], left: int
    ) -> Iterator[Text]:
        gap, view = " " * GAP, groups[0].view

        def line(name: str, cells: Sequence[Text], style: str = "") -> Text:
            joined = Text.assemble(set_cell_size(name, left), no_wrap=True, style=style)
            for cell in cells:
                joined.append(gap).append_text(cell)
            joined.rstrip()
            return joined

        if self.head or any(group.title for group in groups):
            yield line(
                view.spell(self.head),
                [group.padded(Text(view.spell(group.title))) for group in groups],
                "dim",
            )
        if any(group.grid.columns or (group.counted and group.n > 1) for group in groups):
            yield line("", [group.line(group.heading) for group in groups], "dim")
        shown = list(groups[0].rows)
        for before, row in zip([-1, *shown], [*shown, len(names)], strict=True):
            if row > before + 1 and self.is_cut:
                yield Text(
                    view.fit(view.say("more rows", n=row - before - 1), view.screen.width),
                    "dim",
                    no_wrap=True,
                )
            if row < len(names):
                printed = line(
                    names[row], [group.line(partial(group.cell, row)) for group in groups]
                )
                printed.stylize("dim" if row in self.faint else "", 0, len(names[row]))
                yield printed
        if any(group.sums is not None for group in groups):
            yield line(view.spell(self.last), [group.last for group in groups], "bold")


def _blocks(groups: Sequence[ColumnGroup], room: int) -> Iterator[list[ColumnGroup]]:
    """What stands side by side, each in so many cells, the gaps before its groups among them."""
    counts = _counts(groups, room)
    if counts is not None:
        cuts = [(n, n - max(1, n // 3), max(1, n // 3)) if n > 1 else (1, 1, 0) for n in counts]
        yield [replace(one, printed=cut(one.n, *at)) for one, at in zip(groups, cuts, strict=True)]
    elif len(groups) == 1:
        (group,) = groups
        each = max(1, (room - GAP + 1) // (group.width + 1))
        yield from (
            [replace(group, printed=tuple(range(group.n))[at : at + each])]
            for at in range(0, group.n, each)
        )
    else:
        at = len(groups) // 2
        yield from _blocks(groups[:at], room)
        yield from _blocks(groups[at:], room)


def _counts(groups: Sequence[ColumnGroup], room: int) -> list[int] | None:
    """How many columns of each group are printed so that all fit; None where they cannot."""
    counts = [
        one.n if one.grid.columns else min(one.n, max(1, room // one.width)) for one in groups
    ]
    while sum(group.across(n) + GAP for group, n in zip(groups, counts, strict=True)) > room:
        long = [
            i
            for i, one in enumerate(groups)
            if not one.grid.columns and one.n > LEAST and counts[i] > 1
        ]
        if not long:
            return None
        counts[max(long, key=lambda i: groups[i].across(counts[i]) - i / len(groups))] -= 1
    return counts
