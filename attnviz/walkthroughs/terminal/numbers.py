"""Tables of numbers for a terminal: points under points, shaded by size, shortened in the middle where they must be."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.text import Text

from attnviz.render.palette import levels
from attnviz.render.terminal.screen import Screen
from attnviz.render.terminal.table import GAP, Column, rows
from attnviz.render.terminal.text import MARKS, fit, spell, wrap
from attnviz.text.numbers import shown
from attnviz.walkthroughs.record import Walkthrough
from attnviz.walkthroughs.selection import BLANK, Blanks
from attnviz.walkthroughs.wording import say

LABEL = 14
"""Cells that a row's name may take."""
NAME = 10
"""Cells that a column's name may take, where its numbers take fewer."""
LEAST = 4
"""Vectors of no more numbers are never shortened: that would gain nothing."""
_ARITHMETIC = MARKS | str.maketrans(
    {"·": "*", "⊙": "*", "…": "..", "∞": "inf", "≈": "~=", "Φ": "Phi", "→": "->", "←": "<-", "↑": "up", "↓": "down"}
)
"""What stands for the marks of arithmetic on a screen that knows no more than ASCII."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A calculation, and how it is shown.

    Attributes:
        walk: the calculation.
        screen: where it is shown.
        language: of the sentences, one of `attnviz.walkthroughs.texts.LANGUAGES`.
        precision: digits after the point.
        blanks: cells that a learner fills in.
        is_english_for_ascii: whether another language was chosen, which the screen cannot show.
    """

    walk: Walkthrough
    screen: Screen
    language: str
    precision: int
    blanks: Blanks
    is_english_for_ascii: bool

    def say(self, phrase: str, /, **fields: object) -> str:
        """One of the phrases of `attnviz.walkthroughs.wording`, in the language of the view."""
        return say(phrase, self.language, **fields)

    def spell(self, text: str) -> str:
        """The text as the screen can show it."""
        # Between two parts of a sentence the dot is no sign of multiplication.
        return text if self.screen.unicode else spell(text.replace(" · ", " - "), self.screen, _ARITHMETIC)

    def number(self, value: float) -> str:
        """A number with the digits of the view."""
        return self.spell(shown(value, self.precision))

    def fit(self, text: str, width: int) -> str:
        """The text in so many cells, with an ellipsis where it was cut."""
        return fit(self.spell(text), width, self.screen, _ARITHMETIC)

    def wrap(self, text: str, style: str = "", indent: int = 0) -> list[Text]:
        """The text in lines that can be read."""
        return wrap(self.spell(text), self.screen, style, indent=indent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Columns of numbers that belong together.

    Attributes:
        title: their name.
        values: the numbers [row, column].
        names: a name for each column; empty where they are only counted.
        total: what the sum of each row is called, where columns are left out; empty leaves it out.
        blanks: rows and columns of cells that stay empty.
        optional: whether the whole group may be left out; only the first may be.
    """

    title: str = ""
    values: np.ndarray
    names: tuple[str, ...] = ()
    total: str = ""
    blanks: frozenset[tuple[int, int]] = frozenset()
    optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GridTable:
    """Rows of numbers, before it is known how many of them and of their columns are printed.

    Attributes:
        groups: the numbers.
        labels: a name for each row.
        head: what the names are.
        is_named: whether somebody reads each row; of others a few will do.
    """

    groups: tuple[Group, ...]
    labels: tuple[str, ...]
    head: str = ""
    is_named: bool = True


@dataclass(frozen=True, slots=True)
class _Part:
    """A group, or a piece of it, as it is printed.

    Attributes:
        title: above it.
        columns: with their numbers, and what colours or shades them.
        places: the number of each column in the group; None where it is no column of it.
        behind: the cells that stand behind each number.
    """

    title: str
    columns: list[Column]
    places: list[int | None]
    behind: int

    @property
    def width(self) -> int:
        """Cells across."""
        return max(cell_len(self.title), sum(column.width for column in self.columns))

    def split(self, at: int) -> tuple[_Part, _Part]:
        """The first columns, and the rest."""
        first = replace(self, columns=self.columns[:at], places=self.places[:at])
        return first, replace(self, columns=self.columns[at:], places=self.places[at:])


def draw_numbers(view: View, table: GridTable) -> Iterator[Text]:
    """A table in lines no wider than the screen, and how many rows are left out.

    Groups without column names are shortened in the middle where they do not fit; those with names go on below.
    """
    kept, cut = _cut(table)
    names, left = _names(view, cut)
    room = view.screen.width - left - GAP
    parts = [replace(part, title=view.fit(part.title, room)) for part in _fit_groups(view, cut.groups, room)]
    n_hidden = len(table.labels) - len(kept)
    for number, band in enumerate(_bands(parts, room)):
        if number:
            yield Text()
        head = set_cell_size(view.spell(cut.head), left)
        lines = list(_print_band(view, band, [Column("", names)], head))
        if n_hidden:
            place = len(lines) - len(names) + _ends(len(table.labels), is_named=table.is_named)[0]
            more = view.fit(view.say("more rows", n=n_hidden), view.screen.width)
            lines.insert(place, Text(more, "dim", no_wrap=True))
        yield from lines


def printed_cells(view: View, table: GridTable) -> tuple[list[int], list[list[int]]]:
    """The rows that `draw_numbers` prints, and for each group the columns."""
    kept, cut = _cut(table)
    parts = _fit_groups(view, cut.groups, view.screen.width - _names(view, cut)[1] - GAP)
    places = [[place for place in part.places if place is not None] for part in parts]
    return kept, [*([] for _ in range(len(table.groups) - len(parts))), *places]


def _cut(table: GridTable) -> tuple[list[int], GridTable]:
    """The rows that are shown, and the table of these alone."""
    n = len(table.labels)
    first, last = _ends(n, is_named=table.is_named)
    kept = [*range(first), *range(n - last, n)]
    place = {row: index for index, row in enumerate(kept)}
    groups = (
        replace(
            group,
            values=group.values[kept],
            blanks=frozenset((place[row], column) for row, column in group.blanks if row in place),
        )
        for group in table.groups
    )
    return kept, replace(table, groups=tuple(groups), labels=tuple(table.labels[row] for row in kept))


def _ends(n: int, *, is_named: bool) -> tuple[int, int]:
    """How many rows of so many are printed at the beginning and at the end of a table."""
    most, first, last = (40, 20, 10) if is_named else (9, 4, 1)
    return (n, 0) if n <= most else (first, last)


def _names(view: View, table: GridTable) -> tuple[list[str], int]:
    """The names of the rows as they are printed, and the cells that they take."""
    names = [view.fit(label, LABEL) for label in table.labels]
    return names, min(LABEL, max(map(cell_len, (view.spell(table.head), *names)), default=0))


def _fit_groups(view: View, groups: Sequence[Group], room: int) -> list[_Part]:
    """All groups side by side if that can be; what may be left out goes first, then vectors are shortened."""
    behind = 0 if view.screen.colour else 2
    makers = [_columns_of(view, group, behind) for group in groups]
    # No number takes less than two cells: of vectors longer than that not all can fit.
    counts = [n if group.names else min(n, max(2, room // 2)) for group in groups for n in [group.values.shape[1]]]
    while True:
        parts = [_part(view, *three, behind) for three in zip(groups, counts, makers, strict=True)]
        over = _across(parts) - room
        if over <= 0:
            return parts
        if groups[0].optional:
            return _fit_groups(view, groups[1:], room)
        if all(count == group.values.shape[1] for count, group in zip(counts, groups, strict=True)):
            plain = [
                _part(view, group, n, _columns_of(view, group, 0), 0) for group, n in zip(groups, counts, strict=True)
            ]
            if _across(plain) <= room:
                return plain  # rather all numbers without shades than some with them
        long = [i for i, one in enumerate(groups) if not one.names and one.values.shape[1] > LEAST and counts[i] > 2]
        if not long:
            return parts
        widest = max(long, key=lambda i: counts[i])
        each = parts[widest].width / counts[widest]
        counts[widest] = max(2, min(counts[widest] - 1, counts[widest] - int(over / each / len(long))))


def _across(parts: Sequence[_Part]) -> int:
    """The cells that parts take side by side."""
    return sum(part.width + GAP for part in parts) - GAP


def _columns_of(view: View, group: Group, behind: int) -> Callable[[int, str], Column]:
    """What makes a column of a group by its number and name, once each."""
    values = group.values
    finite = np.abs(np.where(np.isfinite(values), values, 0.0))
    level = levels(finite, float(finite.max(initial=0.0))).tolist()

    @cache
    def make(index: int, name: str) -> Column:
        texts, steps = [], []
        for row, value in enumerate(values[:, index].tolist()):
            blank = (row, index) in group.blanks
            texts.append(view.spell(BLANK) if blank else view.number(value))
            steps.append(None if blank or not math.isfinite(value) else level[row][index])
        cells = _align(texts)
        return _column(view, view.fit(name, max(NAME, len(cells[0]))), cells, steps, behind)

    return make


def _column(view: View, name: str, cells: Sequence[str], steps: Sequence[int | None], behind: int) -> Column:
    """A column of numbers, each on its colour or before its shade; one without a step of the palette has neither."""
    texts = []
    for cell, step in zip(cells, steps, strict=True):
        if behind:
            texts.append(Text(cell + (" " if step is None else view.screen.shade(step)) + " "))
        else:
            texts.append(Text(f" {cell}", "" if step is None or not view.screen.colour else view.screen.paint(step)))
    return Column(name and (name + " " * behind if behind else f" {name}"), texts, right=True, gap=0)


def _part(view: View, group: Group, count: int, make: Callable[[int, str], Column], behind: int) -> _Part:
    """A group with so many of its columns, from both ends."""
    n, title = group.values.shape[1], view.spell(group.title)
    if count == n:
        names = group.names or (tuple(map(str, range(n))) if n > 1 else ("",))
        return _Part(title, [make(index, name) for index, name in enumerate(names)], list(range(n)), behind)
    nothing = [None] * len(group.values)
    last = max(1, count // 3)
    places: list[int | None] = [*range(count - last), None, *range(n - last, n)]
    dots = _column(view, "", [view.spell("…")] * len(nothing), nothing, behind)
    columns = [dots if place is None else make(place, str(place)) for place in places]
    if group.total and not group.blanks:
        totals = _align([view.number(math.fsum(row)) for row in group.values.tolist()])
        columns.append(_column(view, view.spell(group.total), totals, nothing, behind))
    return _Part(title, columns, [*places, *[None] * (len(columns) - len(places))], behind)


def _align(texts: Sequence[str]) -> list[str]:
    """Numbers with point under point, all of one width."""
    parts = [text.partition(".") for text in texts]
    before = max(cell_len(whole) for whole, _, _ in parts)
    after = max(len(point + rest) for _, point, rest in parts)
    return [" " * (before - cell_len(whole)) + whole + (point + rest).ljust(after) for whole, point, rest in parts]


def _bands(parts: Sequence[_Part], room: int) -> Iterator[list[_Part]]:
    """The parts in lines of the screen: columns that do not fit go on below."""
    band: list[_Part] = []
    for part in parts:
        rest = part
        while rest.columns:
            free = room - _across(band) - GAP
            taken = 0
            while taken < len(rest.columns) and rest.split(taken + 1)[0].width <= free:
                taken += 1
            # A few columns of a wide group are no good beginning.
            few = taken < 3 and rest is part
            if band and (not taken or (few and taken < len(rest.columns))):
                yield band
                band = []
                continue
            first, rest = rest.split(max(1, taken))
            band.append(first)
    if band:
        yield band


def _print_band(view: View, band: Sequence[_Part], first: list[Column], head: str) -> Iterator[Text]:
    """The lines of one band: titles, names of columns where there are any, rows."""
    if head.strip() or any(part.title for part in band):
        titles = [_pad_title(part, view.screen.width - cell_len(head) - GAP) for part in band]
        yield Text((" " * GAP).join([head, *titles]).rstrip(), "dim", no_wrap=True)
    columns = list(first)
    for part in band:
        free = part.width - sum(column.width for column in part.columns)
        columns += [replace(column, gap=0 if index else GAP + free) for index, column in enumerate(part.columns)]
    lines = rows(columns, [cell_len(head), *(column.width for column in columns[1:])], view.screen)
    if any(column.title for column in columns):
        yield Text(next(lines).plain, "dim", no_wrap=True)
    yield from lines


def _pad_title(part: _Part, room: int) -> str:
    """A group's title as wide as the group: over one column of numbers at the right, else at the left."""
    width = min(part.width, room)
    if len(part.columns) == 1 and cell_len(part.title) + part.behind <= width:
        return " " * (width - cell_len(part.title) - part.behind) + part.title + " " * part.behind
    return set_cell_size(part.title, width)
