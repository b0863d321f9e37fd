"""Where everything stands on a picture of heatmaps: the page in inches, and the panels in cells."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from attnviz.errors import AttnvizWarning, SettingsError
from attnviz.heatmaps.finding import Change, Finding
from attnviz.render.fonts import Typefaces
from attnviz.render.picture import (
    LONGEST_LABEL,
    POINT,
    Line,
    Style,
    break_lines,
    height_of,
    length_of,
    missing_line,
)
from attnviz.render.sheet import AXES, Panel, Sheet, pool
from attnviz.text.display import clip
from attnviz.text.messages import _, current_language

# All lengths are inches.
LARGEST_SHEET = 16.0  # a larger sheet gets smaller cells, then it is pooled
LARGEST_CELL = 0.5
LEAST_WIDTH = 4.5  # of a sheet, for the words around a small pattern
NARROWEST_CELL = 0.02  # of one pattern
LEAST_CELL = 0.001  # of a panel on a grid
GAP, CLOSE_GAP = 0.14, 0.05  # between panels with labels, and without
BAR_GAP = 0.15  # between the cells and the colour bar
SHORTEST_BAR = 0.8
PITCH = 1.25  # the least distance of two labels, in sizes of their letters
# The most rows or columns of one pattern; a larger one is pooled. A cell is then about two pixels wide.
MOST_CELLS = 2000
LEAST_POOLED = 8  # rows and columns that a panel keeps, however small it is
PIXELS_AN_INCH = 80  # for cells of a grid: no reader can tell more of them apart
SENTENCE_LINES = 3  # a longer sentence is cut in the title; its tokens are all in the picture
MOST_STEP = 3  # on a page of a given width at least every third token is named, or none
# Sizes of the numbers, in cells: ".81" is 1.6 times as long as its letters are high, "+.25" 2.4 times.
NUMBER, SIGNED_NUMBER = 0.5, 0.36


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The words around the panels, and the numbers in them."""

    title: str | None  # `auto`, a text, or None
    finding: Finding | Change | None  # the link that the title names; None if it names none
    has_bar: bool
    annot: bool | None
    typefaces: Typefaces

    def above(self, sheet: Sheet, width: float, size: float) -> list[Line]:
        """Return the title and the line with the model, for a page of this width, in letters of this size."""
        if self.title is None:
            return []
        title_size = 1.33 * size
        lines = []
        if self.finding is not None:
            lines = break_lines([self.finding.sentence], width, title_size)
            title_size = 1.07 * size
        sentence = sheet.sentence if self.title == "auto" else self.title
        lines += break_lines([sentence], width, title_size, most=SENTENCE_LINES)
        model = f"{sheet.model} · {sheet.size}"
        return lines + break_lines([model], width, 1.07 * size, is_quiet=True)

    def below(
        self, sheet: Sheet, style: Style, width: float, size: float, step: int = 1
    ) -> list[Line]:
        """Return the receipt and the notes that the style has; every `step`-th token is named."""
        notes = [_(AXES), sheet.legend, *sheet.notes]
        if step > 1:
            notes.insert(2, _("every {nth} token is named").format(nth=ordinal(step)))
        lines = []
        if style.caption:
            lines = break_lines([sheet.proof], width, size)
        if style.caption == "all":
            lines += break_lines(notes, width, size, is_quiet=True)
        return lines + missing_line(self.typefaces, style, width)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The places of everything: on the page in inches, and of the panels in cells."""

    sheet: Sheet
    style: Style
    width: float  # of the page
    height: float
    left: float  # of the first cell
    top: float
    edges: tuple[float, float]  # the room of names and labels before the cells and above them
    name_height: float  # of the lines above panels
    cell: float
    across: int  # the number of panels side by side
    gaps: tuple[int, int]  # cells between panels side by side, and below one another
    label_size: float  # of the tokens' labels; 0 for no labels
    size: float  # of the letters of all other words
    above: list[Line]
    below: list[Line]

    @property
    def panel(self) -> tuple[int, int]:
        """The numbers of columns and rows of a panel."""
        return len(self.sheet.key_labels), len(self.sheet.query_labels)

    @property
    def total(self) -> tuple[int, int]:
        """The numbers of columns and rows of all panels, with the cells between them."""
        down = math.ceil(len(self.sheet.panels) / self.across)
        (columns, rows), (gap, gap_down) = self.panel, self.gaps
        return self.across * (columns + gap) - gap, down * (rows + gap_down) - gap_down

    @property
    def right(self) -> float:
        """The right edge of the cells, in inches."""
        return self.left + self.total[0] * self.cell

    @property
    def box(self) -> tuple[float, float, float, float]:
        """The place of the cells, as left, bottom, width and height in shares of the page."""
        columns, rows = self.total
        bottom = self.height - self.top - rows * self.cell
        return (
            self.left / self.width,
            bottom / self.height,
            columns * self.cell / self.width,
            rows * self.cell / self.height,
        )

    @property
    def corners(self) -> list[tuple[int, int]]:
        """The column and the row of each panel's first cell."""
        (columns, rows), (gap, gap_down) = self.panel, self.gaps
        places = (divmod(index, self.across) for index in range(len(self.sheet.panels)))
        return [(column * (columns + gap), row * (rows + gap_down)) for row, column in places]

    @property
    def largest_label(self) -> float:
        """The largest letters with which every token can be named, or else the smallest ones that can be read."""
        return min(self.style.letters, max(self.style.least, self.cell / POINT / PITCH))

    @property
    def step(self) -> int:
        """Every so many tokens one is named; 0 for none."""
        if not self.label_size:
            return 0
        return math.ceil(PITCH * self.label_size * POINT / self.cell - 0.01)

    @property
    def small(self) -> float:
        """The size of the smallest print."""
        return max(self.style.least, 0.8 * self.style.letters)


def lay_out(sheet: Sheet, style: Style, words: Words) -> Layout:
    """Return the places of everything on a picture of this style; a sheet that is too large is pooled.

    Raises SettingsError: the size of the style is too small for the tokens.
    """
    n = len(sheet.panels)
    if n == 1:
        return _fit(pool(sheet, MOST_CELLS, MOST_CELLS), style, words, 1)
    if not is_wrapped(sheet):
        choices = [len(sheet.heads)]
    elif style.height:  # a slide has the number of panels side by side that makes them largest
        choices = [*range(1, n + 1)]
    else:  # a sheet is a little wider than high, and has few empty places
        least = math.ceil(math.sqrt(n))
        most = min(n, math.ceil(1.3 * least))
        choices = [min(range(least, most + 1), key=lambda across: (-n % across, across))]
    pixels = (style.width or 2 * LARGEST_SHEET) * PIXELS_AN_INCH
    layouts = []
    for across in choices:
        most_columns = max(int(pixels / across), LEAST_POOLED)
        most_rows = max(int(pixels / math.ceil(n / across)), LEAST_POOLED)
        layouts.append(_fit(pool(sheet, most_rows, most_columns), style, words, across))
    return max(layouts, key=lambda layout: layout.cell)


def _fit(sheet: Sheet, style: Style, words: Words, across: int) -> Layout:
    """Return the layout with the largest cells; labels shrink with the cells, as far as they can be read."""
    layout = _place(sheet, style, words, across, style.letters)
    if layout.largest_label < style.letters:  # smaller labels leave more room to the cells
        layout = _place(sheet, style, words, across, layout.largest_label)
    if style.width and len(sheet.panels) > 1 and layout.step > MOST_STEP:
        layout = _place(sheet, style, words, across, 0.0)
    larger = min(1.6, layout.total[0] * layout.cell / 10)
    if style.width is None and larger > 1:  # the words of a large sheet are larger
        layout = _place(sheet, style, words, across, layout.label_size, larger)
    if style.width and layout.cell < (NARROWEST_CELL if len(sheet.panels) == 1 else LEAST_CELL):
        raise _no_room(layout)
    if style.width and layout.step != 1:
        _warn_unnamed(layout)
    return layout


def _place(
    sheet: Sheet,
    style: Style,
    words: Words,
    across: int,
    label_size: float,
    larger: float = 1.0,
) -> Layout:
    """Find the largest cells with which a sheet fits a style, for labels of this size (0 for none).

    The words around a large sheet are `larger` than its labels. Raises SettingsError: there is no room for the tokens.
    """
    size, margin = style.letters * larger, style.margin
    shape = across, math.ceil(len(sheet.panels) / across)
    panel = len(sheet.key_labels), len(sheet.query_labels)
    room = (style.width or LARGEST_SHEET) - 2 * margin
    above, below = words.above(sheet, room, size), words.below(sheet, style, room, size)
    before = on_top = _edge(sheet) * size * POINT
    if label_size:
        before += longest_of(sheet.query_labels) * label_size * POINT + 0.08
        on_top += longest_of(sheet.key_labels) * label_size * POINT + 0.08
    names = [name for panel in sheet.panels if (name := panel_name(sheet, panel))]
    name_width = longest_of(names) * 0.8 * style.letters * POINT
    name_height = PITCH * style.letters * POINT if names else 0.0
    on_top += name_height
    # the bar is as wide as in `colour_bar`, and has numbers in small print
    bar = BAR_GAP + 0.18 + length_of("0.25") * 0.8 * style.letters * POINT if words.has_bar else 0.0
    head, foot = margin + height_of(above) + 0.08, margin + height_of(below) + 0.5 * size * POINT
    free = room - before - bar, math.inf
    if style.height or not style.width:
        free = free[0], (style.height or LARGEST_SHEET) - head - on_top - foot

    gap = GAP if label_size else CLOSE_GAP
    usual = _usual_cell(sheet, style, words, name_width)
    cell = min(usual, *((free[i] + gap) / shape[i] / (panel[i] + gap / usual) for i in (0, 1)))
    cell = max(cell, 0.9 * LEAST_CELL)
    wide = max(gap, name_width + 0.06 - panel[0] * cell)  # where names are wider than panels
    gaps = max(1, round(wide / cell)), max(1, round((gap + name_height) / cell))
    columns, rows = (shape[i] * (panel[i] + gaps[i]) - gaps[i] for i in (0, 1))
    cell = min(cell, free[0] / columns, free[1] / rows)

    width = style.width or max(before + columns * cell + bar + 2 * margin, LEAST_WIDTH)
    if style.width is None:
        above = words.above(sheet, width - 2 * margin, size)
        step = math.ceil(PITCH * label_size * POINT / cell - 0.01)
        below = words.below(sheet, style, width - 2 * margin, size, step)
        head, foot = (
            margin + height_of(above) + 0.08,
            margin + height_of(below) + 0.5 * size * POINT,
        )
    longest = max(rows * cell, SHORTEST_BAR) if words.has_bar else rows * cell
    height = style.height or head + on_top + longest + 0.08 + foot
    left, top = margin + before, head + on_top
    if style.width:  # the panels stand in the middle
        left += max(0.0, free[0] - columns * cell) / 2
    if style.height:
        top += max(0.0, free[1] - rows * cell) / 2
    return Layout(
        sheet=sheet,
        style=style,
        width=width,
        height=height,
        left=left,
        top=top,
        edges=(before, on_top),
        name_height=name_height,
        cell=cell,
        across=across,
        gaps=gaps,
        label_size=label_size,
        size=size,
        above=above,
        below=below,
    )


def is_wrapped(sheet: Sheet) -> bool:
    """Return whether all panels belong to one layer or one head, so that they wrap from line to line."""
    return len(sheet.layers) == 1 or len(sheet.heads) == 1


def _edge(sheet: Sheet) -> float:
    """Return the room for the names of the axes, and of layers and heads, in lines of text."""
    if len(sheet.panels) == 1:
        return 2.0
    return 0.0 if is_wrapped(sheet) else 2.8


def panel_name(sheet: Sheet, panel: Panel) -> str:
    """Return the line above a panel: its head if panels wrap, and the end of its scale if it has its own."""
    parts = []
    if len(sheet.panels) > 1 and is_wrapped(sheet):
        parts.append(sheet.name(panel))
    if len(sheet.panels) > 1 and sheet.scale == "panel":
        parts.append(f"max {panel.top:.3g}")
    return " · ".join(parts)


def longest_of(labels: Sequence[str]) -> float:
    """Return the length of the longest label, in sizes of its letters."""
    return max(map(length_of, clipped(labels)), default=0.0)


def _usual_cell(sheet: Sheet, style: Style, words: Words, name: float) -> float:
    """Return the side of a cell where there is room enough; `name` is the length of the longest name of a panel."""
    n_queries, n_keys = len(sheet.query_labels), len(sheet.key_labels)
    if style.width:
        return LARGEST_SHEET if len(sheet.panels) > 1 or style.height else LARGEST_CELL
    pitch = PITCH * style.letters * POINT
    if len(sheet.panels) == 1:
        return min(LARGEST_CELL, max(pitch, 6.0 / max(n_queries, n_keys)))
    least = 1.5 if is_wrapped(sheet) else 0.9  # of a panel
    number = style.least * POINT / NUMBER if words.annot else 0.0
    return max(pitch, number, least / max(n_queries, n_keys), name / n_keys)


def _no_room(layout: Layout) -> SettingsError:
    """Return the error for a page that is too small for the tokens and the words around them."""
    sheet, style = layout.sheet, layout.style
    if style.height:
        size = f"{style.width:.3g} x {style.height:.3g}in"
        return SettingsError(f"{size} is too small for {sheet.size} and the words around them")
    size = f"{style.width:.3g}in"
    if len(sheet.panels) > 1:
        return SettingsError(f"{size} has no room for {sheet.size} and the words around them")
    n_keys = len(sheet.key_labels)
    needed = (style.width or 0) + n_keys * (NARROWEST_CELL - layout.cell)
    return SettingsError(
        f"{size} is too narrow for {n_keys} tokens and their names: it takes {needed + 0.05:.1f}in"
    )


def _warn_unnamed(layout: Layout) -> None:
    """Warn that some tokens cannot be named, and say which width (in inches) or which option would help."""
    style = layout.style
    what = "not every token can be named" if layout.label_size else "no token can be named"
    size, letters = f"{style.width:.3g}", f"in letters of {style.least:g} pt"
    if style.height is None:
        pitch = PITCH * style.least * POINT
        needed = (style.width or 0) + (pitch - layout.cell) * layout.total[0]
        advice = f"all of them need {needed + 0.05:.1f}in"
    else:
        size += f" x {style.height:.3g}"
        advice = "show fewer heads (--head) or fewer tokens (--rows, --keys)"
    warnings.warn(f"at {size}in {what} {letters}: {advice}", AttnvizWarning, stacklevel=6)


def number_size(sheet: Sheet, cell: float, annot: bool | None, style: Style) -> float:
    """Return the size of the letters of numbers in cells of `cell` inches, or 0 if no numbers are written.

    With `annot` None, numbers are written into a single pattern if they can be read; with True always, else never.
    """
    share = SIGNED_NUMBER if sheet.center == 0 else NUMBER
    size = min(style.letters + 1, share * cell / POINT)
    if annot is None:
        annot = len(sheet.panels) == 1 and size >= style.least
    return size if annot else 0.0


def clipped(labels: Sequence[str]) -> list[str]:
    """Return labels of tokens, cut to `LONGEST_LABEL` letters."""
    return [clip(label, LONGEST_LABEL) for label in labels]


def ordinal(n: int) -> str:
    """Return a number such as ``2nd``; in Korean ``2``, which the sentence completes."""
    if current_language() != "en":
        return str(n)
    return f"{n}{'th' if 10 < n % 100 < 14 else {1: 'st', 2: 'nd', 3: 'rd'}.get(n % 10, 'th')}"
