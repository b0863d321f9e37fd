"""The picture of a walkthrough: a heading, every step with its matrices, and the notes.

The sheet is one Axes whose unit is the size of its letters, so everything is placed by counting letters and cells. The
keys are drawn as the columns of Kᵀ, above the scores, with the queries to their left: each score stands where the row
of its query meets the column of its key.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from attnviz.errors import AttnvizWarning
from attnviz.look import Look
from attnviz.render.fonts import BASE, typefaces_for
from attnviz.render.palette import hexed, levels, text_colours
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
from attnviz.walkthroughs.hand import format_number, one_format
from attnviz.walkthroughs.operations import KEYS_PLACE, MATRIX
from attnviz.walkthroughs.texts import BEFORE, BY_KEY
from attnviz.walkthroughs.view import (
    Cut,
    GridView,
    StepView,
    View,
    query_weights,
    stack,
)

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
MOST_NUMBERS = 8  # of a vector
SMALL = (6, 8)  # rows and columns of the largest given matrices that are drawn, unlike weights
MOST_JOINED = 3  # vectors that are drawn before their concatenation
# Of a slide: the most tokens, and the most numbers of a vector, until the letters are large.
SLIDES = ((24, 8), (16, 8), (16, 5), (12, 4), (8, 4), (6, 4))
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
    left: float = 0.0  # of a matrix: where its cells begin
    top: float = 0.0


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

    @cached_property
    def numbers(self) -> list[list[str]]:
        """The texts of the cells; dots for a row or column left out."""
        write = one_format(self.grid.values, self.digits)

        def text(row: int | None, column: int | None) -> str:
            if row is None or column is None:
                return "⋮" if row is None else "…"
            return write(float(self.grid.values[row, column]))

        return [[text(row, column) for column in self.columns] for row in self.rows]

    @cached_property
    def column_width(self) -> float:
        """The width of a column."""
        if not self.is_numbered:
            return THIN
        longest = max(length_of(text) for texts in self.numbers for text in texts)
        return max(LEAST_COLUMN, longest + PAD)

    def values(self) -> np.ndarray:
        """Return the numbers of the cells; NaN for numbers left out, for blanks and for infinity."""
        values = np.full((len(self.rows), len(self.columns)), np.nan)
        for i, row in enumerate(self.rows):
            for j, column in enumerate(self.columns):
                if row is not None and column is not None:
                    values[i, j] = self.grid.values[row, column]
        return np.where(np.isfinite(values), values, np.nan)

    def box(self, column_width: float = 0.0, left: float = 0.0) -> Box:
        """Return the matrix with columns, and names of rows, that have at least these widths."""
        row_names = _names(self.grid.rows, self.rows, "⋮")
        column_names = _names(self.grid.columns, self.columns, "…")
        # Names may be bold.
        left = max([left, *(BOLD * length_of(name) + 0.6 for name in row_names)])
        column_width = max(column_width, self.column_width)
        longest = BOLD * max(map(length_of, column_names), default=0.0)
        is_upright = longest > column_width
        top = 0.2 + LEADING * bool(self.title) + BAR * self.has_bars
        top += longest + 0.4 if is_upright else LEADING * bool(column_names)
        width, height = len(self.columns) * column_width, len(self.rows) * ROW
        numbers = self.numbers if self.is_numbered else []

        def draw(pen: Pen, x: float, y: float) -> None:
            pen.write(x + left, y + LEADING / 2, self.title, color=pen.theme.quiet)
            x, y = x + left, y + top
            xs = [x + column_width * (j + 0.5) for j in range(len(self.columns))]
            ys = [y + ROW * (i + 0.5) for i in range(len(self.rows))]
            inks = self._colour(pen, (x, x + width, y + height, y), xs)
            for i, texts in enumerate(numbers):
                for j, text in enumerate(texts):
                    pen.write(xs[j], ys[i], text, color=inks[i, j], ha="center")
            for middle, name, row in zip(ys, row_names, self.rows, strict=False):
                look = bold(name) if self.outlined == ("row", row) else {}
                pen.write(x - 0.5, middle, name, ha="right", **look)
            for middle, name, column in zip(xs, column_names, self.columns, strict=False):
                look = bold(name) if self.outlined == ("column", column) else {}
                look |= {"va": "bottom", "rotation": 90.0 if is_upright else 0.0}
                pen.write(middle, y - 0.3, name, ha="center", **look)
            if self.outlined is not None:
                axis, index = self.outlined
                if axis == "row":
                    first = y + self.rows.index(index) * ROW
                    extent = x, x + width, first + ROW, first
                else:
                    first = x + self.columns.index(index) * column_width
                    extent = first, first + column_width, y + height, y
                pen.outline(extent, pen.theme.accent, 1.8)

        texts = [self.title, *row_names, *column_names, *(text for row in numbers for text in row)]
        right = left + max(width, length_of(self.title))
        return Box(right, top + height, texts, draw, left, top)

    def _colour(
        self, pen: Pen, extent: tuple[float, float, float, float], xs: Sequence[float]
    ) -> np.ndarray:
        """Draw the cells, or bars with their middles at `xs`; return the colours of their numbers."""
        from matplotlib.colors import ListedColormap

        pen.outline(extent, pen.theme.frame, 0.6)
        values = self.values()
        inks = np.full(values.shape, pen.theme.ink)
        largest = float(np.abs(values[~np.isnan(values)]).max(initial=0.0)) or 1.0
        table, low, opacity = pen.theme.diverging(), -largest, PALE
        if self.grid.is_weights:
            table, low, opacity = pen.theme.colours(pen.palette), 0.0, 1.0
        if self.has_bars:
            heights = BAR * np.nan_to_num(values[0])
            width = 0.6 * (extent[1] - extent[0]) / len(xs)
            colour = hexed(table[round(STRONG * (len(table) - 1))])
            pen.ax.bar(xs, -heights, width, extent[3] - 0.1, color=colour)
            return inks
        look: dict[str, Any] = {"aspect": "auto", "interpolation": "none", "alpha": opacity}
        look |= {"extent": extent, "vmin": low, "vmax": largest}
        pen.ax.imshow(np.ma.masked_invalid(values), ListedColormap(table / 255), **look)
        if self.grid.is_weights:
            shades = text_colours(table)[levels(np.nan_to_num(values), largest)]
            inks = np.where(np.isnan(values), inks, shades)
        return inks


def _names(names: Sequence[str], cut: Cut, dots: str) -> list[str]:
    """Return the names of the rows or columns that are drawn; there are none if they have only numbers."""
    names = [clip(name, LONGEST_NAME) for name in names]
    return [dots if number is None else names[number] for number in cut if names]


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
    most_in_vector: int = MOST_NUMBERS
    # whether of the alignment the formula is enough, and of steps after the scores the result
    is_slide: bool = False

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
        steps = [
            step for step in self.steps if not (self.is_slide and step.step.name == "alignment")
        ]
        grids = grids_to_draw(steps)
        by_key = [step for step in self.steps if step.is_by_key and step.step.operation != "weigh"]
        formulas: list[StepView] = []
        boxes: list[Box] = []
        for step in self.steps:
            if step in by_key[1:]:
                continue  # below the first one
            parts = grids.get(step.number, [])
            is_comparison = step.step.operation in KEYS_PLACE and not step.heads
            if self.is_slide and not is_comparison and not step.heads:
                parts = [(sign, grid) for sign, grid in parts if grid is step.result]
            if not parts:
                formulas.append(step)
                continue
            box = (
                self.comparison(step, parts, by_key[1:])
                if is_comparison
                else self.step(step, parts)
            )
            before = [self.formulas(formulas)] if formulas else []
            formulas = []
            # On a slide there is more room below than beside.
            boxes += [below([*before, box], LINE_GAP)] if self.is_slide else [*before, box]
        return boxes + ([self.formulas(formulas)] if formulas else [])

    def formulas(self, steps: Sequence[StepView]) -> Box:
        """Return the formulas of steps, one below the other, each with the shape of its result."""
        is_before = all(step.step.name in BEFORE for step in steps)
        title = _("Input and projections") if is_before else steps[0].title
        lines = [_heading(replace(steps[0], numbers=_numbers(steps), title=title))]
        for step in steps:
            heads = f"{len(step.heads)} {MATRIX} " if step.heads else ""
            lines.append(words(f"{step.formula}   {heads}{step.result.values.shape}"))
        return below(lines, 0.4)

    def formula(self, step: StepView) -> str:
        """Return the formula of a step, with the shape of the result if its names do not say it."""
        shape = f"   {step.result.values.shape}" if step.result.has_vectors else ""
        return f"{step.formula}{shape}"

    def step(self, step: StepView, parts: Sequence[tuple[str, GridView]]) -> Box:
        """Return a step with its matrices side by side, in as many lines as they need."""
        if step.heads and all(len(grid.values) == 1 for _sign, grid in parts):
            results = [head.result for head in step.heads]
            numbers = [grid.name.rpartition("_")[2] for grid in results]
            rows = tuple(_("head {n}").format(n=number) for number in numbers)
            name = results[0].name.rpartition("_")[0]
            parts = [("", replace(stack(results, rows), name=name))]
        is_attention = step.step.name in {*BY_KEY, "context"}
        most_rows = self.most_tokens if is_attention else min(FEW_ROWS, self.most_tokens)
        boxes: list[Box] = []
        for sign, grid in parts:
            title = self.formula(step) if grid is step.result and not step.heads else ""
            narrow = replace(self, most_in_vector=4) if step.heads and len(parts) > 1 else self
            boxes.append(narrow.matrix(grid, most_rows, title, sign if boxes else ""))
        has_formula = bool(step.heads) or step.result not in [grid for _sign, grid in parts]
        heading = _heading(step, self.width, has_formula=has_formula)
        return below([heading, flow(boxes, self.width, GAP)], 0.6)

    def matrix(self, grid: GridView, most_rows: int, title: str = "", sign: str = "") -> Box:
        """Return a matrix with the sign before it, shortened until it is no wider than the sheet.

        In a matrix with a row for each key of the only query, the largest weight is outlined.
        """
        n_rows, n_columns = grid.values.shape
        weights = query_weights(self.view.walk)
        is_by_key = n_rows > 1 and weights is not None and grid.rows == weights.columns
        strongest = self.strongest if is_by_key else []
        before = words(sign, "quiet", SIGN)
        is_vector = grid.has_vectors
        most_columns = self.most_in_vector if is_vector else self.most_tokens
        shape = f" {grid.values.shape}" if is_vector else ""
        for most in range(most_columns, 3, -1):
            columns = shorten(n_columns, most)
            box = Matrix(
                grid=grid,
                rows=shorten(n_rows, most_rows if is_vector else min(most_rows, most), strongest),
                columns=columns,
                digits=self.view.digits_of(grid),
                title=title or f"{grid.name}{shape}",
                outlined=("row", strongest[0]) if strongest else None,
                is_numbered=is_vector or n_rows == 1 or len(columns) <= MOST_NUMBERED,
            ).box()
            if before.width + GAP + box.width <= self.width:
                break
        if not sign:
            return box
        top = box.top + (ROW - before.height) / 2
        return group([(0.0, top, before), (before.width + GAP, 0.0, box)])

    def comparison(
        self,
        step: StepView,
        parts: Sequence[tuple[str, GridView]],
        following: Sequence[StepView],
    ) -> Box:
        """Return the scores below Kᵀ, with the queries to their left.

        The `following` steps have the same columns, one for each key of the only query, and stand below the scores.
        """
        name = step.step.operands[KEYS_PLACE[step.step.operation]]
        keys = self.view.grid(name)
        given = [grid for _, grid in parts if grid.name not in {name, step.step.result}]
        left = flow([self.matrix(grid, self.most_tokens) for grid in given], self.width, GAP)
        is_narrow = self.width < NARROW
        room = self.width if is_narrow else self.width - left.width - GAP
        most = self.most_tokens if len(step.result.values) > 1 else MOST_KEYS
        most = min(most, len(keys.values))
        while True:
            columns = shorten(len(keys.values), most, self.strongest)
            right, scores_top = self.below_keys(step, following, keys, columns)
            if right.width <= room or most <= 3:
                break
            most -= 1
        if is_narrow:
            return below([_heading(step), left, right], LINE_GAP)
        beside = group([(0.0, scores_top, left), (left.width + GAP, 0.0, right)])
        return below([_heading(step), beside], 0.6)

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
        )
        scores = self.view.grid(step.step.result)
        shape = scores.values.shape
        matrices: list[tuple[Box | None, Matrix]] = []

        def add(grid: GridView, title: str, heading: Box | None = None) -> None:
            most_rows = self.most_in_vector if grid is transposed else self.most_tokens
            matrix = Matrix(
                grid=grid,
                rows=shorten(len(grid.values), most_rows),
                columns=columns,
                digits=self.view.digits_of(keys) if grid is transposed else self.view.digits,
                title=title,
                outlined=("column", self.strongest[0]) if self.strongest else None,
                is_numbered=shape[0] == 1 or len(columns) <= MOST_NUMBERED,
                has_bars=grid.is_weights and shape[0] == 1 and not np.isnan(grid.values).any(),
            )
            matrices.append((heading, matrix))

        add(transposed, f"{transposed.name} {transposed.values.shape}")
        add(replace(scores, columns=()), self.formula(step))
        for other in following:
            heading: Box | None = _heading(other, self.width, has_formula=True)
            for name in (*other.inputs, other.step.result):
                grid = replace(self.view.grid(name), columns=())
                if heading and grid.values.shape == (1, 1) != shape:  # an extra score, a sink
                    number = f"{name} = {format_number(grid.values.item(), self.view.digits)}"
                    heading = flow([heading, words(number, "quiet")], self.width, PAD)
                elif name != "mask":  # which its result shows
                    add(grid, name if name in other.inputs else "", heading)
                    heading = None
        column_width = max(matrix.column_width for _heading, matrix in matrices)
        left = max(matrix.box().left for _heading, matrix in matrices)
        places: list[tuple[float, float, Box]] = []
        top = scores_top = 0.0
        for heading, matrix in matrices:
            if heading is not None:
                places.append((0.0, top, heading))
                top += heading.height + 0.4
            if matrix.grid.name == step.step.result:
                scores_top = top
            box = matrix.box(column_width, left)
            places.append((0.0, top, box))
            top += box.height + LINE_GAP
        return group(places), scores_top


def _heading(step: StepView, width: float = WIDEST, *, has_formula: bool = False) -> Box:
    """Return the number of a step, its title, and its formula, no wider than this."""
    title = step.title.partition(":")[0]  # "Softmax: the attention distribution"
    boxes = [words(step.numbers, "number", 0.95), words(title, "bold", TITLE)]
    if has_formula:
        boxes.append(words(step.formula, "quiet"))
    return flow(boxes, width, PAD, 0.2)


def _numbers(steps: Sequence[StepView]) -> str:
    """Return the numbers of steps, such as "1–5"; of several heads "1–4, … 39", since other steps are in between."""
    first, last = steps[0].number, steps[-1].number
    text = str(first) if last == first else f"{first}–{last}"
    last_of_heads = (steps[-1].heads or steps[-1:])[-1].number
    return text if last_of_heads == last else f"{text}, … {last_of_heads}"


def grids_to_draw(steps: Sequence[StepView]) -> dict[int, list[tuple[str, GridView]]]:
    """Return the matrices to draw of each step, by its number; each matrix is drawn only once.

    A result that a step of attention needs is drawn with that step. Of large matrices before and after attention the
    shapes are enough. If several heads have many rows, only their weights and contexts are drawn.
    """
    before = [step for step in steps if step.step.name in BEFORE and not step.heads]
    are_small = all(_is_small(grid) for step in before for _sign, grid in step.parts)
    of_attention = {
        name for step in steps if step.step.name not in BEFORE for name in step.step.operands
    }
    results = {step.step.result for step in steps}

    def is_shown(step: StepView, grid: GridView) -> bool:
        name, is_result = step.step.name, grid.name == step.result.name
        if name in BEFORE and not are_small:
            return False
        if step.heads:
            return len(grid.values) <= FEW_ROWS or name in {"softmax", "context"}
        if name in BEFORE:
            return not (is_result and grid.name in of_attention)
        if is_result or grid.name in results:
            return True
        if name in {*BY_KEY, "context"}:
            return name != "mask"  # the result of a mask shows the mask
        return _is_small(grid) and len(step.inputs) <= MOST_JOINED

    drawn: set[str] = set()
    grids = {}
    for step in steps:
        shown = [(sign, grid) for sign, grid in step.parts if is_shown(step, grid)]
        grids[step.number] = [(sign, grid) for sign, grid in shown if grid.name not in drawn]
        drawn |= {grid.name for _sign, grid in shown}
    return grids


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
    letters, contents = 0.0, below([])
    for most_tokens, most_in_vector in SLIDES:
        for width in (60.0, 75.0, 90.0, 105.0, 120.0):
            sheet = Sheet(
                view=view,
                steps=steps,
                width=width,
                most_tokens=most_tokens,
                most_in_vector=most_in_vector,
                is_slide=True,
            )
            page = _page(view, style, sheet)
            size = min(room / page.width, room_below / page.height) / POINT
            if size > letters:
                letters, contents = size, page
        if letters >= LARGE:
            break
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
    formula = wording.whole_formula(view.walk)
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
