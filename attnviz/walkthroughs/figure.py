"""The picture of a walkthrough: a heading, every step with its matrices, and the notes.

The sheet is one Axes whose unit is the size of its letters, so everything is placed by counting letters and cells. The
keys are drawn as the columns of Kᵀ, above the scores, with the queries to their left: each score stands where the row
of its query meets the column of its key.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from attnviz.errors import AttnvizWarning
from attnviz.look import Look
from attnviz.render.fonts import BASE, typefaces_for
from attnviz.render.palette import hexed, levels, signed_levels, text_colours
from attnviz.render.picture import (
    LEADING,
    POINT,
    Picture,
    Style,
    break_lines,
    length_of,
    settings,
    style_of,
)
from attnviz.render.theme import Theme, theme_of
from attnviz.text.display import clip
from attnviz.text.messages import _
from attnviz.walkthroughs import wording
from attnviz.walkthroughs.hand import NEARLY_ZERO, TINY, format_number
from attnviz.walkthroughs.operations import KEYS_PLACE, MATRIX
from attnviz.walkthroughs.texts import BEFORE, BY_KEY
from attnviz.walkthroughs.view import BLANK, DIGITS, Cut, GridView, StepView, View, query_weights

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# All lengths are in sizes of the letters.
ROW, LEAST_COLUMN, THIN = 2.1, 2.6, 1.4  # cells; columns without numbers are thin
PAD, GAP, LINE_GAP, STEP_GAP = 0.7, 1.2, 1.6, 3.0
FINDING, TITLE, SIGN = 1.8, 1.15, 1.3  # the sizes of the first line, titles and signs
BOLD = 1.12  # the width of bold letters, in that of others
BAR = 3.0  # the height of a weight of 1
WIDEST = 118.0  # the width of a sheet
NARROW = 60.0  # sheets that are narrower have the query above the keys
LONGEST_NAME = 14  # characters
MOST_KEYS, MOST_TOKENS = 24, 48  # the most keys of one query, and tokens of several
MOST_NUMBERED = 16  # the most columns of a matrix with numbers
FEW_ROWS = 6  # the most rows of the matrices before and after attention
# The most numbers of a vector, and the most tokens, until the matrices of a step fit.
CUTS = ((8, 48), (6, 48), (5, 48), (4, 48), (4, 16), (4, 12), (4, 9), (4, 7), (4, 5))
SMALL = (6, 8)  # rows and columns of the largest given matrices that are drawn, unlike weights
MOST_JOINED = 3  # vectors that are drawn before their concatenation
# Of a slide: steps without matrices, the most tokens, and the most numbers of a vector, until the letters are large.
SLIDES = (
    ((), 24, 8),
    (("alignment",), 16, 8),
    (("alignment",), 16, 5),
    (("alignment",), 12, 4),
    (("alignment",), 8, 4),
    (("alignment",), 6, 4),
)
LARGE = 9.5  # points
PALE, STRONG = 0.45, 0.72  # the opacity of red and blue behind numbers; the colour of bars


@dataclass(frozen=True, slots=True)
class Pen:
    """The figure, with the sizes and colours that everything is drawn with."""

    ax: Axes
    theme: Theme
    palette: Any
    letters: float  # points

    def write(self, x: float, y: float, text: str, size: float = 1.0, **look: Any) -> None:
        """Write a text with its middle at this height."""
        look = {"va": "center_baseline", "fontsize": size * self.letters, **look}
        # Texts of an Axes also get a clip path, which takes time.
        self.ax.figure.text(x, y, text, transform=self.ax.transData, **look)

    def outline(self, extent: tuple[float, float, float, float], colour: str, line: float) -> None:
        """Draw a frame; `extent` is left, right, bottom and top."""
        from matplotlib.patches import Rectangle

        left, right, bottom, top = extent
        look: dict[str, Any] = {"edgecolor": colour, "linewidth": line, "zorder": 3 + line}
        self.ax.add_patch(Rectangle((left, top), right - left, bottom - top, fill=False, **look))


@dataclass(frozen=True, slots=True)
class Box:
    """Something on the sheet: its size, its texts, and a function that draws it below and right of a point."""

    width: float
    height: float
    texts: Sequence[str]
    draw: Callable[[Pen, float, float], None]


def words(text: str, kind: Literal["", "bold", "quiet", "number"] = "", size: float = 1.0) -> Box:
    """Return a line of text; the number of a step is white on black."""
    wider = BOLD if kind == "bold" else 1.0
    width = length_of(text) * size * wider + (PAD if kind == "number" else 0.0)

    def draw(pen: Pen, left: float, top: float) -> None:
        look: dict[str, Any] = {"color": pen.theme.quiet if kind == "quiet" else pen.theme.ink}
        if kind == "bold":
            look |= bold(text)
        if kind == "number":
            left += width / 2
            box = {"boxstyle": "round,pad=0.25", "facecolor": pen.theme.ink, "edgecolor": "none"}
            look = {"color": pen.theme.paper, "ha": "center", "bbox": box}
        pen.write(left, top + LEADING * size / 2, text, size, **look)

    return Box(width, LEADING * size, [text], draw)


def bold(text: str) -> dict[str, Any]:
    """Return the look of bold text; empty if the text needs another font than Matplotlib's, without bold letters."""
    is_covered = typefaces_for([text]).families == (BASE,)
    return {"fontweight": "bold", "fontfamily": BASE} if is_covered else {}


def group(places: Sequence[tuple[float, float, Box]]) -> Box:
    """Return boxes at their places, from the left and from the top."""

    def draw(pen: Pen, left: float, top: float) -> None:
        for x, y, box in places:
            box.draw(pen, left + x, top + y)

    return Box(
        max((x + box.width for x, _y, box in places), default=0.0),
        max((y + box.height for _x, y, box in places), default=0.0),
        [text for _x, _y, box in places for text in box.texts],
        draw,
    )


def below(boxes: Sequence[Box], gap: float = 0.0) -> Box:
    """Place boxes below one another."""
    tops = np.cumsum([0.0, *(box.height + gap for box in boxes)]).tolist()
    return group([(0.0, top, box) for top, box in zip(tops, boxes, strict=False)])


def flow(boxes: Sequence[Box], width: float, gap: float, line_gap: float = LINE_GAP) -> Box:
    """Place boxes side by side, in as many lines as this width needs."""
    places: list[tuple[float, float, Box]] = []
    left = top = line_height = 0.0
    for box in boxes:
        if left and left + box.width > width:
            left, top, line_height = 0.0, top + line_height + line_gap, 0.0
        places.append((left, top, box))
        left += box.width + gap
        line_height = max(line_height, box.height)
    return group(places)


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """A matrix in colour, with its numbers and names."""

    grid: GridView
    rows: Cut
    columns: Cut
    digits: int
    title: str
    outlined: tuple[str, int] | None = None  # "row" or "column", and its index
    is_numbered: bool = True
    has_bars: bool = False  # whether weights are bars above their numbers
    least_column: float = LEAST_COLUMN  # the least width of a column

    @cached_property
    def numbers(self) -> list[list[str]]:
        """The texts of the cells."""
        rows = self.rows if self.is_numbered else ()
        return [[self._number(row, column) for column in self.columns] for row in rows]

    def _number(self, row: int | None, column: int | None) -> str:
        """Return the text of a cell; dots for a row or column left out, a line for a blank."""
        if row is None or column is None:
            return "⋮" if row is None else "…"
        if (row, column) in self.grid.blanks:
            return BLANK
        value = float(self.grid.values[row, column])
        if self.digits > DIGITS or not np.isfinite(value) or value == round(value):
            return format_number(value, self.digits)
        if abs(value) < TINY:
            return NEARLY_ZERO
        text = f"{value:.{self.digits}f}"
        return text.removeprefix("-") if float(text) == 0 else text

    @cached_property
    def column_width(self) -> float:
        """The width of a column."""
        if not self.is_numbered:
            return THIN
        longest = max(length_of(text) for texts in self.numbers for text in texts)
        return max(self.least_column, longest + PAD)

    @cached_property
    def row_names(self) -> list[str]:
        """The names of the rows that are drawn."""
        names = [clip(name, LONGEST_NAME) for name in self.grid.rows]
        return ["⋮" if row is None else names[row] for row in self.rows if names]

    @cached_property
    def column_names(self) -> list[str]:
        """The names of the columns that are drawn."""
        names = [clip(name, LONGEST_NAME) for name in self.grid.columns]
        return ["…" if column is None else names[column] for column in self.columns if names]

    @cached_property
    def left(self) -> float:
        """The width of the names of the rows, which may be bold."""
        return max((BOLD * length_of(name) + 0.6 for name in self.row_names), default=0.0)

    @cached_property
    def is_upright(self) -> bool:
        """Whether the names of the columns are too long to be written across."""
        return any(BOLD * length_of(name) > self.column_width for name in self.column_names)

    @cached_property
    def top(self) -> float:
        """The height of what stands above the cells: the title, bars and the names of the columns."""
        height = 0.2 + LEADING * bool(self.title) + BAR * self.has_bars
        if self.is_upright:
            return height + BOLD * max(map(length_of, self.column_names)) + 0.4
        return height + LEADING * bool(self.column_names)

    @property
    def size(self) -> tuple[float, float]:
        """The width and height of the cells."""
        return len(self.columns) * self.column_width, len(self.rows) * ROW

    def box(self) -> Box:
        """Return the matrix as something on the sheet."""
        width, height = self.size
        texts = [
            self.title,
            *self.row_names,
            *self.column_names,
        ]
        texts += [number for numbers in self.numbers for number in numbers]
        return Box(
            self.left + max(width, length_of(self.title)), self.top + height, texts, self.draw
        )

    def draw(self, pen: Pen, left: float, top: float) -> None:
        """Draw the matrix."""
        left += self.left
        pen.write(left, top + LEADING / 2, self.title, color=pen.theme.quiet)
        top += self.top
        width, height = self.size
        pixels, inks = self._colours(pen)
        extent = left, left + width, top + height, top
        pen.ax.imshow(pixels, extent=extent, aspect="auto", interpolation="none")
        pen.outline(extent, pen.theme.frame, 0.6)
        row_height = height / len(self.rows)
        xs = [left + self.column_width * (j + 0.5) for j in range(len(self.columns))]
        ys = [top + row_height * (i + 0.5) for i in range(len(self.rows))]
        for i, numbers in enumerate(self.numbers):
            for j, number in enumerate(numbers):
                pen.write(xs[j], ys[i], number, color=inks[i, j], ha="center")
        if self.has_bars:
            heights = BAR * np.nan_to_num(self._values()[0])
            table = pen.theme.colours(pen.palette)
            colour = hexed(table[round(STRONG * (len(table) - 1))])
            pen.ax.bar(xs, -heights, 0.6 * self.column_width, top - 0.1, color=colour)
        for y, name, row in zip(ys, self.row_names, self.rows, strict=False):
            look = bold(name) if self.outlined == ("row", row) else {}
            pen.write(left - 0.5, y, name, ha="right", **look)
        for x, name, column in zip(xs, self.column_names, self.columns, strict=False):
            look = bold(name) if self.outlined == ("column", column) else {}
            rotation = 90.0 if self.is_upright else 0.0
            pen.write(x, top - 0.3, name, ha="center", va="bottom", rotation=rotation, **look)
        if self.outlined is None:
            return
        axis, index = self.outlined
        if axis == "row":
            first = top + self.rows.index(index) * row_height
            extent = left, left + width, first + row_height, first
        else:
            first = left + self.columns.index(index) * self.column_width
            extent = first, first + self.column_width, top + height, top
        pen.outline(extent, pen.theme.accent, 1.8)

    def _values(self) -> np.ndarray:
        """Return the numbers of the cells; NaN for numbers left out and for blanks."""
        values = np.full((len(self.rows), len(self.columns)), np.nan)
        for i, row in enumerate(self.rows):
            for j, column in enumerate(self.columns):
                if row is not None and column is not None and (row, column) not in self.grid.blanks:
                    values[i, j] = self.grid.values[row, column]
        return values

    def _colours(self, pen: Pen) -> tuple[np.ndarray, np.ndarray]:
        """Return the colours of the cells, red, green, blue and opacity, and the colours of their numbers."""
        values = self._values()
        has_colour = np.isfinite(values) & (not self.has_bars)
        finite = np.where(has_colour, values, 0.0)
        largest = float(np.abs(finite).max(initial=0.0))
        inks = np.full(values.shape, pen.theme.ink)
        if self.grid.is_weights:
            table, level, opacity = pen.theme.colours(pen.palette), levels(finite, largest), 255
            inks = np.where(has_colour, text_colours(table)[level], inks)
        else:
            table, level = pen.theme.diverging(), signed_levels(finite, largest)
            opacity = round(PALE * 255)
        return np.dstack([table[level], np.where(has_colour, opacity, 0).astype(np.uint8)]), inks


def shorten(n: int, most: int, first: Sequence[int] = ()) -> Cut:
    """Return the indices of the rows or columns that are drawn, with None where some are left out.

    Those in `first` are kept, then the last one, and then the others from the beginning.
    """
    if n <= most:
        return tuple(range(n))
    order = list(dict.fromkeys([*first, n - 1, *range(n)]))
    indices: list[int | None] = []
    for n_kept in range(most, 0, -1):
        indices, following = [], 0
        for index in sorted(order[:n_kept]):
            indices += [index] if index == following else [None, index]
            following = index + 1
        indices += [] if following == n else [None]
        if len(indices) <= most:
            break
    return tuple(indices)


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """The steps of a calculation, as boxes that are no wider than `width`."""

    view: View
    steps: Sequence[StepView]
    width: float = WIDEST
    most_tokens: int = MOST_TOKENS
    most_in_vector: int = CUTS[0][0]
    without: Collection[str] = ()  # the names of steps whose formulas are enough

    @cached_property
    def strongest(self) -> list[int]:
        """The keys with the largest weights, if a single query is followed and no cells are blank."""
        grid = query_weights(self.view.walk)
        if grid is None or self.view.blanks:
            return []
        keys: list[int] = np.argsort(-grid.values[0], kind="stable")[:3].tolist()
        return keys

    def boxes(self) -> list[Box]:
        """Return a box for each step, or for several that need only formulas or have the same columns."""
        grids = grids_to_draw([step for step in self.steps if step.step.name not in self.without])
        by_key = [step for step in self.steps if step.is_by_key and step.step.operation != "weigh"]
        formulas: list[StepView] = []
        boxes: list[Box] = []
        for step in self.steps:
            parts = [
                (sign, grid)
                for sign, grid in grids.get(step.number, [])
                if not (self.without and grid is not step.result)
                or step.heads
                or step.step.operation in KEYS_PLACE
            ]
            if step in by_key[1:]:
                continue  # beside the first one
            if not parts:
                if formulas and (step.step.name in BEFORE) != (formulas[0].step.name in BEFORE):
                    boxes.append(self.formulas(formulas))
                    formulas = []
                formulas.append(step)
                continue
            aside = [self.formulas(formulas)] if formulas else []
            formulas = []
            if step.step.operation in KEYS_PLACE and not step.heads:
                boxes.append(self.comparison(step, parts, by_key[1:], aside))
            elif self.without:  # there is more room below than beside
                boxes.append(below([*aside, self.step(step, parts)], LINE_GAP))
            else:
                boxes += [*aside, self.step(step, parts)]
        return boxes + ([self.formulas(formulas)] if formulas else [])

    def formulas(self, steps: Sequence[StepView]) -> Box:
        """Return the formulas of steps, one below the other, each with the shape of its result."""
        is_before = all(step.step.name in BEFORE for step in steps)
        title = _("Input and projections") if is_before else steps[0].title
        lines = [_heading(replace(steps[0], numbers=_numbers(steps), title=title))]
        for step in steps:
            heads = f"{len(step.heads)} {MATRIX} " if step.heads else ""
            formula = wording.shown_formula(step.formula)
            lines.append(words(f"{formula}   {heads}{step.result.values.shape}"))
        return below(lines, 0.4)

    def formula(self, step: StepView) -> str:
        """Return the formula of a step, with the shape of the result if its names do not say it."""
        formula, result = wording.shown_formula(step.formula), step.result
        return f"{formula}   {result.values.shape}" if result.has_vectors else formula

    def step(self, step: StepView, parts: Sequence[tuple[str, GridView]]) -> Box:
        """Return a step with its matrices side by side, which are cut until they fit."""
        if step.heads and all(len(grid.values) == 1 for _sign, grid in parts):
            parts = [("", _stack(step))]
        is_attention = step.step.name in {*BY_KEY, "context"}
        for most_in_vector, most_tokens in CUTS:
            most_tokens = min(most_tokens, self.most_tokens)
            most_rows = most_tokens if is_attention else min(FEW_ROWS, most_tokens)
            boxes: list[Box] = []
            left = 0.0
            for sign, grid in parts:
                title = self.formula(step) if grid is step.result and not step.heads else ""
                cuts = most_rows, most_tokens, min(most_in_vector, self.most_in_vector)
                has_names = not boxes or bool(step.heads) or grid.rows != parts[0][1].rows
                box = self.matrix(grid, cuts, title, sign if boxes else "", has_names=has_names)
                if left and left + box.width > self.width:
                    left, box = 0.0, self.matrix(grid, cuts, title, sign)
                boxes.append(box)
                left += box.width + GAP
            drawn = flow(boxes, self.width, GAP)
            is_one_line = drawn.height == max(box.height for box in boxes)
            if drawn.width <= self.width and (is_one_line or most_in_vector == CUTS[-1][0]):
                break
        has_formula = bool(step.heads) or step.result not in [grid for _sign, grid in parts]
        return below([_heading(step, self.width, has_formula=has_formula), drawn], 0.6)

    def matrix(
        self,
        grid: GridView,
        cuts: tuple[int, int, int],
        title: str = "",
        sign: str = "",
        *,
        has_names: bool = True,
    ) -> Box:
        """Return a matrix with the sign before it; `cuts` are the most rows, columns, and numbers of a vector.

        In a matrix with a row for each key of the only query, the largest weight is outlined.
        """
        n_rows, n_columns = grid.values.shape
        most_rows, most_columns, most_in_vector = cuts
        weights = query_weights(self.view.walk)
        is_by_key = weights is not None and (n_rows, grid.rows) == (
            weights.values.size,
            weights.columns,
        )
        strongest = self.strongest if is_by_key and n_rows > 1 else []
        rows = shorten(n_rows, most_rows, strongest)
        columns = shorten(n_columns, most_in_vector if grid.has_vectors else most_columns)
        shape = f" {grid.values.shape}" if grid.has_vectors else ""
        matrix = Matrix(
            grid=grid if has_names else replace(grid, rows=()),
            rows=rows,
            columns=columns,
            digits=self.digits(is_vector=grid.has_vectors),
            title=title or f"{grid.name}{shape}",
            outlined=("row", strongest[0]) if strongest else None,
            is_numbered=grid.has_vectors or n_rows == 1 or len(columns) <= MOST_NUMBERED,
        )
        if not sign:
            return matrix.box()
        before = words(sign, "quiet", SIGN)
        top = matrix.top + (ROW - before.height) / 2
        return group([(0.0, top, before), (before.width + GAP, 0.0, matrix.box())])

    def digits(self, *, is_vector: bool) -> int:
        """Return the digits of numbers; vectors have many, so they get one less unless the user chose them."""
        return self.view.digits - (is_vector and self.view.digits == DIGITS)

    def comparison(
        self,
        step: StepView,
        parts: Sequence[tuple[str, GridView]],
        following: Sequence[StepView],
        formulas: Sequence[Box],
    ) -> Box:
        """Return the scores below Kᵀ, with the queries to their left and formulas above these.

        The `following` steps have the same columns, one for each key of the only query, and stand below the scores.
        """
        name = step.step.operands[KEYS_PLACE[step.step.operation]]
        keys = self.view.grid(name)
        given = [grid for _, grid in parts if grid.name not in {name, step.step.result}]
        n_keys = len(keys.values)
        most = self.most_tokens if len(step.result.values) > 1 else MOST_KEYS
        while True:
            cuts = self.most_tokens, self.most_tokens, self.most_in_vector
            left = flow([self.matrix(grid, cuts) for grid in given], self.width, GAP)
            columns = shorten(n_keys, most, self.strongest)
            stack, scores_top = self.below_keys(step, following, keys, columns)
            is_narrow = self.width < NARROW
            room = self.width if is_narrow else self.width - left.width - STEP_GAP
            if stack.width <= room or most <= 3:
                break
            most = min(most, n_keys) - 1
        heading = _heading(step)
        if is_narrow:
            return below([*formulas, heading, left, stack], LINE_GAP)
        above = below(formulas or [heading])
        x = max(left.width + GAP, above.width + STEP_GAP if formulas else 0.0)
        top = max(heading.height + 0.6 + scores_top, above.height + LINE_GAP)
        places = [(0.0, 0.0, above), (0.0, top, left), (x, top - scores_top, stack)]
        if formulas:
            places.append((x, top - scores_top - heading.height - 0.6, heading))
        return group(places)

    def below_keys(
        self, step: StepView, following: Sequence[StepView], keys: GridView, columns: Cut
    ) -> tuple[Box, float]:
        """Return Kᵀ, the scores below it, and the following steps below these; and where the scores begin."""
        transposed = replace(
            keys,
            name=f"{keys.name}ᵀ",
            values=keys.values.T,
            rows=(),
            columns=keys.rows,
            blanks=frozenset((column, row) for row, column in keys.blanks),
        )
        shape = self.view.grid(step.step.result).values.shape
        title = f"{transposed.name} {transposed.values.shape}"
        rows: list[tuple[Box | None, GridView, str]] = [(None, transposed, title)]
        for other in (step, *following):
            heading = None if other is step else _heading(other, self.width, has_formula=True)
            # A mask is not drawn, since its result shows it.
            given = [name for name in other.inputs if other is not step and name != "mask"]
            for name in (*given, other.step.result):
                grid = replace(self.view.grid(name), columns=())
                if heading and grid.values.shape == (1, 1) != shape:  # an extra score, a sink
                    number = f"{name} = {format_number(grid.values.item(), self.view.digits)}"
                    heading = flow([heading, words(number, "quiet")], self.width, PAD)
                if grid.values.shape == shape:
                    title = name if name in given else self.formula(step) if other is step else ""
                    rows.append((heading, grid, title))
                    heading = None
        matrices = [
            Matrix(
                grid=grid,
                rows=shorten(
                    len(grid.values),
                    self.most_in_vector if grid is transposed else self.most_tokens,
                ),
                columns=columns,
                digits=self.digits(is_vector=grid is transposed),
                title=title,
                outlined=("column", self.strongest[0]) if self.strongest else None,
                is_numbered=shape[0] == 1 or len(columns) <= MOST_NUMBERED,
                has_bars=grid.is_weights and shape[0] == 1 and not grid.blanks,
            )
            for _heading, grid, title in rows
        ]
        column_width = max(matrix.column_width for matrix in matrices)
        left = max(matrix.left for matrix in matrices)
        places: list[tuple[float, float, Box]] = []
        top = scores_top = 0.0
        for (heading, grid, _title), matrix in zip(rows, matrices, strict=True):
            if heading is not None:
                places.append((0.0, top, heading))
                top += heading.height + 0.4
            if grid.name == step.step.result:
                scores_top = top
            box = replace(matrix, least_column=column_width).box()
            places.append((left - matrix.left, top, box))
            top += box.height + LINE_GAP
        return group(places), scores_top


def _heading(step: StepView, width: float = WIDEST, *, has_formula: bool = False) -> Box:
    """Return the number of a step, its title, and its formula, no wider than this."""
    title = step.title.partition(":")[0]  # "Softmax: the attention distribution"
    boxes = [words(step.numbers, "number", 0.95), words(title, "bold", TITLE)]
    if has_formula:
        boxes.append(words(wording.shown_formula(step.formula), "quiet"))
    return flow(boxes, width, PAD, 0.2)


def _numbers(steps: Sequence[StepView]) -> str:
    """Return the numbers of steps, such as "1–5"; of several heads "1–4, … 39", since other steps are in between."""
    first, last = steps[0].number, steps[-1].number
    text = str(first) if last == first else f"{first}–{last}"
    last_of_heads = (steps[-1].heads or steps[-1:])[-1].number
    return text if last_of_heads == last else f"{text}, … {last_of_heads}"


def _stack(step: StepView) -> GridView:
    """Return the results of several heads, one row each, as one matrix with a row for each head."""
    grids = [head.result for head in step.heads]
    numbers = [grid.name.rpartition("_")[2] for grid in grids]
    return replace(
        grids[0],
        name=grids[0].name.rpartition("_")[0],
        values=np.vstack([grid.values for grid in grids]),
        rows=tuple(_("head {n}").format(n=number) for number in numbers),
        blanks=frozenset((i, column) for i, grid in enumerate(grids) for _, column in grid.blanks),
    )


def grids_to_draw(steps: Sequence[StepView]) -> dict[int, list[tuple[str, GridView]]]:
    """Return the matrices to draw of each step, by its number; each matrix is drawn only once.

    A result that a step of attention needs is drawn with that step. Model weights are not drawn, since their shapes
    are enough. If several heads have many rows, only their weights and contexts are drawn.
    """
    needed_later = {
        name for step in steps if step.step.name not in BEFORE for name in step.step.operands
    }
    results = {step.step.result for step in steps}
    drawn_names: set[str] = set()
    grids: dict[int, list[tuple[str, GridView]]] = {}
    for step in steps:
        inputs = [grid for _, grid in step.parts if grid.name not in results]
        has_weights = len(inputs) > MOST_JOINED or not all(map(_is_small, inputs))
        grids[step.number] = [
            (sign, grid)
            for sign, grid in step.parts
            if grid.name not in drawn_names
            and _is_shown(step, grid, grid.name in needed_later, has_weights and grid in inputs)
        ]
        drawn_names |= {grid.name for _, grid in grids[step.number]}
    before = [step for step in steps if step.step.name in BEFORE]
    if not any(grids[step.number] for step in before if not step.heads):
        grids |= {step.number: [] for step in before}  # of large matrices the shapes are enough
    return grids


def _is_shown(step: StepView, grid: GridView, is_needed_later: bool, is_of_model: bool) -> bool:
    """Return whether a step draws one of its grids, which no earlier step draws."""
    name, is_result = step.step.name, grid.name == step.result.name
    if step.heads:
        return len(grid.values) <= FEW_ROWS or name in {"softmax", "context"}
    if name in BEFORE:
        return _is_small(grid) and not is_of_model and not (is_result and is_needed_later)
    if is_result:
        return True
    if name in {*BY_KEY, "context"}:
        return name != "mask"  # the result of a mask shows the mask
    return not is_of_model


def _is_small(grid: GridView) -> bool:
    n_rows, n_columns = grid.values.shape
    return bool(n_rows <= SMALL[0] and n_columns <= SMALL[1])


def draw(view: View, look: Look) -> Picture:
    """Draw the whole calculation; slides and columns of a paper have the steps of attention alone."""
    style, theme = style_of(look), theme_of(look.theme, look.palette)
    contents, letters = _contents(view, style)
    typefaces = typefaces_for(contents.texts)
    with settings(style, theme, typefaces):
        from matplotlib.figure import Figure

        unit = letters * POINT  # inches
        margin = style.margin / unit
        width = (style.width or 0.0) / unit or contents.width + 2 * margin
        height = (style.height or 0.0) / unit or contents.height + 2 * margin
        figure = Figure(figsize=(width * unit, height * unit))
        ax = figure.add_axes((0, 0, 1, 1))
        ax.set_axis_off()
        contents.draw(Pen(ax, theme, look.palette, letters), margin, margin)
        ax.set(xlim=(0, width), ylim=(height, 0))
    return Picture(
        figure=figure,
        title=view.heading[0],
        description=view.receipt,
        style=style,
        theme=theme,
        typefaces=typefaces,
    )


def _contents(view: View, style: Style) -> tuple[Box, float]:
    """Return what a picture shows, and the size of its letters in points.

    A slide has fewer numbers if they would be too small; a warning says if they still are.
    """
    steps = view.cards()
    if style.width is None:
        return _page(view, style, Sheet(view=view, steps=steps)), style.letters
    names = {*BY_KEY, "context"} if query_weights(view.walk) else {"softmax", "context"}
    steps = [step for step in steps if step.step.name in names] or steps
    room = style.width - 2 * style.margin
    if style.height is None:
        sheet = Sheet(view=view, steps=steps, width=room / (style.letters * POINT))
        return _page(view, style, sheet), style.letters
    room_below = style.height - 2 * style.margin
    layouts: list[tuple[float, Box]] = []
    for without, most_tokens, most_in_vector in SLIDES:
        for width in (60.0, 75.0, 90.0, 105.0, 120.0):
            sheet = Sheet(
                view=view,
                steps=steps,
                width=width,
                most_tokens=most_tokens,
                most_in_vector=most_in_vector,
                without=without,
            )
            page = _page(view, style, sheet)
            layouts.append((min(room / page.width, room_below / page.height) / POINT, page))
        large = [layout for layout in layouts if layout[0] >= LARGE]
        if large:
            letters, contents = max(large, key=lambda layout: len(layout[1].texts))
            break
    else:
        letters, contents = max(layouts, key=lambda layout: layout[0])
    if letters < style.least:
        warnings.warn(
            f"the letters are {letters:.1f} pt: show less, such as fewer words, or a larger picture",
            AttnvizWarning,
            stacklevel=2,
        )
    return contents, min(letters, 1.5 * style.letters)


def _page(view: View, style: Style, sheet: Sheet) -> Box:
    """Return the heading, the steps, and the notes below."""
    steps = flow(sheet.boxes(), sheet.width, STEP_GAP, STEP_GAP)
    width = max(steps.width, min(sheet.width, NARROW))
    finding, source = view.heading
    formula = wording.shown_formula(wording.whole_formula(view.walk))
    heading = [
        *_lines([finding], width, "bold", FINDING),
        *_lines([view.task or source], width, "quiet"),
        *_lines([formula], width),
    ]
    notes = [view.cut, view.receipt]
    if style.caption == "all":
        notes += [_("Red: positive; blue: negative, scaled per matrix"), view.small_weights]
        notes += [view.signs, *view.notes]
        if {"…", "⋮"} & set(steps.texts):
            notes.append(_("… stands for numbers left out; -o FILE.md has more, FILE.csv all"))
    parts = [
        below(heading) if style.has_title else below([]),
        steps,
        below(_lines(notes, width, "quiet") if style.caption else []),
    ]
    return below([part for part in parts if part.height], STEP_GAP)


def _lines(
    texts: Sequence[str], width: float, kind: Literal["", "bold", "quiet"] = "", size: float = 1.0
) -> list[Box]:
    """Break texts into lines of this width; empty ones are left out."""
    room = width * POINT / (BOLD if kind == "bold" else 1.0)
    return [words(line.text, kind, size) for line in break_lines(filter(None, texts), room, size)]
