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
    POINT,
    Line,
    Style,
    break_lines,
    height_of,
    length_of,
    missing_line,
)
from attnviz.render.sheet import AXES, Panel, Sheet, pool
from attnviz.text.display import percent
from attnviz.text.messages import _, current_language

# All lengths are inches.
LARGEST_SHEET = 16.0  # the panels of a larger sheet get smaller cells, then they are pooled
LARGEST_CELL = 0.5
LEAST_WIDTH = 4.5  # of a sheet, for the words around a small pattern
NARROWEST_CELL = 0.02  # of one pattern
LEAST_CELL = 0.001  # of a panel on a grid
GAP, CLOSE_GAP = 0.14, 0.05  # between panels with labels, and without
BAR_GAP = 0.15  # between the cells and the colour bar
BAR_WIDTH = 0.12
SHORTEST_BAR = 0.8
PITCH = 1.25  # the least distance of two labels, in sizes of their letters
# The most rows or columns of one pattern; a larger one is pooled. A cell is then about two pixels wide.
MOST_CELLS = 2000
LEAST_POOLED = 8  # rows and columns that a panel keeps, however small it is
PIXELS_AN_INCH = 80  # for cells of a grid: no reader can tell more of them apart
SENTENCE_LINES = 3  # a longer sentence is cut in the title; its tokens are all in the picture
MOST_STEP = 3  # on a page of a given width at least every third token is named, or none
ADVICE = "make it larger, or show fewer heads (--head) or fewer tokens (--rows, --keys)"
# Sizes of the numbers, in cells: "81" is 1.3 times as long as its letters are high, "+25" 2.1 times.
NUMBER, SIGNED_NUMBER = 0.5, 0.4


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

    def below(self, sheet: Sheet, style: Style, width: float, size: float, step: int) -> list[Line]:
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
    pitch: tuple[int, int]  # cells from one panel to the next one, to the right and down
    total: tuple[int, int]  # columns and rows of all panels, with the cells between them
    corners: list[tuple[int, int]]  # the column and the row of each panel's first cell
    label_size: float  # of the tokens' labels; 0 for no labels
    step: int  # every so many tokens one is named; 0 for none
    size: float  # of the letters of all other words
    above: list[Line]
    below: list[Line]


def lay_out(sheet: Sheet, style: Style, words: Words) -> Layout:
    """Return the places of everything on a picture of this style; a sheet that is too large is pooled.

    Raises SettingsError: the size of the style is too small for the tokens.
    """
    n = len(sheet.panels)
    across = len(sheet.heads)
    if is_wrapped(sheet) and n > 1:
        # as wide as the page, or a little wider than high, with few empty places
        shape = 1.1 * style.width / style.height if style.width and style.height else 1.0
        least = min(n, math.ceil(math.sqrt(n * shape)))
        most = min(n, math.ceil(1.3 * least))
        across = min(range(least, most + 1), key=lambda across: (-n % across, across))
    most_columns = most_rows = MOST_CELLS
    if n > 1:
        pixels = (style.width or 2 * LARGEST_SHEET) * PIXELS_AN_INCH
        most_columns = max(int(pixels / across), LEAST_POOLED)
        most_rows = max(int(pixels / math.ceil(n / across)), LEAST_POOLED)
    sheet = pool(sheet, most_rows, most_columns)

    layout = _place(sheet, style, words, across, style.letters)
    # Smaller labels leave more room to the cells.
    label_size = max(style.least, layout.cell / POINT / PITCH)
    if label_size < style.letters:
        layout = _place(sheet, style, words, across, label_size)
    if style.width and n > 1 and layout.step > MOST_STEP:
        layout = _place(sheet, style, words, across, 0.0)
    if style.width is None:
        return layout
    size = f"{style.width:.3g}" + (f" x {style.height:.3g}in" if style.height else "in")
    if layout.cell < (NARROWEST_CELL if n == 1 else LEAST_CELL):
        raise SettingsError(
            f"{size} is too small for {sheet.size} of {max(sheet.tokens)} tokens and the words around them: {ADVICE}"
        )
    if layout.step != 1:
        what = "not every token" if layout.label_size else "no token"
        warnings.warn(
            f"at {size} {what} can be named in letters of {style.least:g} pt: {ADVICE}",
            AttnvizWarning,
            stacklevel=4,
        )
    return layout


def _place(sheet: Sheet, style: Style, words: Words, across: int, label_size: float) -> Layout:
    """Find the largest cells with which a sheet fits a style, for labels of this size (0 for none)."""
    margin = style.margin
    shape = across, math.ceil(len(sheet.panels) / across)
    panel = len(sheet.key_labels), len(sheet.query_labels)
    names = [panel_name(sheet, panel) for panel in sheet.panels]
    name_width = max(map(length_of, names)) * style.small * POINT
    gap = GAP if label_size else CLOSE_GAP
    usual = _usual_cell(sheet, style, words, name_width)
    size = style.letters
    if style.width is None:  # the words of a large sheet are larger
        size *= min(max(1.0, shape[0] * panel[0] * usual / 10), 1.5)

    # the names of the axes, or of layers and heads, in lines of text
    edge = 2.0 if len(sheet.panels) == 1 else 0.0 if is_wrapped(sheet) else 2.8
    before = on_top = edge * size * POINT
    if label_size:
        before += longest_of(sheet.query_labels) * label_size * POINT + 0.08
        on_top += longest_of(sheet.key_labels) * label_size * POINT + 0.08
    name_height = PITCH * style.letters * POINT if any(names) else 0.0
    on_top += name_height
    # the bar with its numbers
    bar = BAR_GAP + BAR_WIDTH + 0.06 + length_of("100%") * style.small * POINT
    beside = 2 * margin + before + bar * words.has_bar

    def lines(width: float, step: int) -> tuple[list[Line], list[Line], float]:
        """Return the lines above and below on a page of this width, and their height with the margins."""
        above = words.above(sheet, width - 2 * margin, size)
        below = words.below(sheet, style, width - 2 * margin, size, step)
        height = height_of([*above, *below]) + 2 * margin + 0.08 + 0.5 * size * POINT
        return above, below, height

    free = (style.width or LARGEST_SHEET) - beside, math.inf if style.width else LARGEST_SHEET
    if style.width and style.height:
        free = free[0], style.height - lines(style.width, 1)[2] - on_top
    cell = min(usual, *((free[i] + gap) / shape[i] / (panel[i] + gap / usual) for i in (0, 1)))
    cell = max(cell, 0.9 * LEAST_CELL)
    wide = max(gap, name_width + 0.06 - panel[0] * cell)  # where names are wider than panels
    gaps = max(1, round(wide / cell)), max(1, round((gap + name_height) / cell))
    pitch = panel[0] + gaps[0], panel[1] + gaps[1]
    columns, rows = (shape[i] * pitch[i] - gaps[i] for i in (0, 1))
    cell = min(cell, free[0] / columns, free[1] / rows)

    corners = [(x, y) for y in range(0, rows, pitch[1]) for x in range(0, columns, pitch[0])]

    width = style.width or max(columns * cell + beside, LEAST_WIDTH)
    above, below, around = lines(width, 1 if style.width else step_of(label_size, cell))
    longest = max(rows * cell, SHORTEST_BAR) if words.has_bar else rows * cell
    left, top = margin + before, margin + height_of(above) + 0.08 + on_top
    if style.width:  # the panels stand in the middle
        left += max(0.0, free[0] - columns * cell) / 2
    if style.height:
        top += max(0.0, free[1] - rows * cell) / 2
    return Layout(
        sheet=sheet,
        style=style,
        width=width,
        height=style.height or around + on_top + longest + 0.08,
        left=left,
        top=top,
        edges=(before, on_top),
        name_height=name_height,
        cell=cell,
        pitch=pitch,
        total=(columns, rows),
        corners=corners[: len(sheet.panels)],
        label_size=label_size,
        step=step_of(label_size, cell),
        size=size,
        above=above,
        below=below,
    )


def is_wrapped(sheet: Sheet) -> bool:
    """Return whether panels are no grid of several layers and heads, so that they wrap from line to line."""
    return bool(sheet.record.chosen) or len(sheet.layers) == 1 or len(sheet.heads) == 1


def panel_name(sheet: Sheet, panel: Panel) -> str:
    """Return the line above a panel: its head if panels wrap, and the end of its scale if it has its own."""
    if len(sheet.panels) == 1:
        return ""
    parts = [sheet.name(panel)] if is_wrapped(sheet) else []
    if sheet.scale == "panel":
        parts.append(f"max {percent(panel.top)}")
    return " · ".join(parts)


def longest_of(labels: Sequence[str]) -> float:
    """Return the length of the longest label, in sizes of its letters."""
    return max(map(length_of, labels))


def step_of(size: float, cell: float) -> int:
    """Return for labels of this size that every so many cells have one; 0 for no labels."""
    return math.ceil(PITCH * size * POINT / cell - 0.01)


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


def number_size(sheet: Sheet, cell: float, annot: bool | None, style: Style) -> float:
    """Return the size of the letters of numbers in cells of `cell` inches, or 0 if no numbers are written.

    With `annot` None, numbers are written into a single pattern if they can be read; with True always, else never.
    """
    share = SIGNED_NUMBER if sheet.signed else NUMBER
    size = min(style.letters + 1, share * cell / POINT)
    if annot is None:
        annot = len(sheet.panels) == 1 and size >= style.least
    return size if annot else 0.0


def ordinal(n: int) -> str:
    """Return a number such as ``2nd``; in Korean ``2``, which the sentence completes."""
    if current_language() != "en":
        return str(n)
    return f"{n}{'th' if 10 < n % 100 < 14 else {1: 'st', 2: 'nd', 3: 'rd'}.get(n % 10, 'th')}"
