"""Heatmaps for paper and slides: PNG, SVG and PDF, drawn with Matplotlib.

One pattern is drawn large; more stand on a grid, layers down and heads across. All of them are one image on one Axes,
whose unit is a cell, so that everything on it is placed by counting cells.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int

from attnviz.attention import Attention, HeadChoice, LayerChoice
from attnviz.errors import AttnvizWarning, SelectionError, SettingsError
from attnviz.heatmaps.difference import Difference
from attnviz.heatmaps.finding import NO_CHANGE, Change, Finder, Finding, find
from attnviz.look import Look
from attnviz.releases import check_letters
from attnviz.render.fonts import Typefaces, typefaces_for
from attnviz.render.palette import DEFAULT, Palette, hexed, levels, luminance, text_colours
from attnviz.render.picture import (
    LONGEST_LABEL,
    POINT,
    STYLES,
    Line,
    Picture,
    Style,
    break_lines,
    colour_bar,
    height_of,
    length_of,
    missing_line,
    new_figure,
    scale_marks,
    settings,
    style_of,
    write_lines,
)
from attnviz.render.sheet import AXES, BLANK, LOG_LEAST, Panel, Sheet, pool, resolve
from attnviz.render.theme import DARK, LIGHT, Theme, theme_of
from attnviz.text.display import clip
from attnviz.text.messages import _, current_language

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

# All lengths are inches.
LARGEST_SHEET = 16.0  # a larger sheet gets smaller cells, then it is pooled
LARGEST_CELL = 0.5
LEAST_WIDTH = 4.5  # of a sheet, for the words around a small pattern
NARROWEST_CELL = 0.02  # of one pattern
LEAST_CELL = 0.001  # of a panel on a grid
GAP, CLOSE_GAP = 0.14, 0.05  # between panels with labels, and without
BAR_GAP = 0.15  # between the cells and the colour bar
SHORTEST_BAR, LONGEST_BAR = 0.8, 2.0
PITCH = 1.25  # the least distance of two labels, in sizes of their letters
# The most rows or columns of one pattern; a larger one is pooled. A cell is then about two pixels wide.
MOST_CELLS = 2000
LEAST_CELLS = 8  # rows and columns that a panel keeps, however small it is
PIXELS_AN_INCH = 80  # for cells of a grid: no reader can tell more of them apart
SENTENCE_LINES = 3  # a longer sentence is cut in the title; its tokens are all in the picture
MOST_STEP = 3  # on a page of a given width at least every third token is named, or none
# Sizes of the numbers, in cells: ".81" is 1.6 times as long as its letters are high, "+.25" 2.4 times.
NUMBER, SIGNED_NUMBER = 0.5, 0.36


def draw(
    sheet: Sheet,
    palette: Palette = DEFAULT,
    *,
    title: str | None = "auto",
    cbar: bool = True,
    annot: bool | None = None,
    style: Style = STYLES["sheet"],
    theme: Theme = LIGHT,
    change: Change | None = None,
    finder: Finder = find,
) -> Picture:
    """Draw a sheet: one pattern large, or all panels on a grid; the arguments are as for `attnviz.heatmap`.

    The title names the link that stands out most, and its head has a ring. That of a difference names the `change`.
    Without a `title`, the line with the model is left out too. An `AttnvizWarning` says if names of tokens have no
    room.

    Raises:
        SelectionError: an unknown palette.
        SettingsError: a size that is too small for the tokens.
    """
    if title == "auto" and not style.has_title:
        title = None
    finding: Finding | Change | None = None
    if title == "auto" and sheet.quantity == "difference" and change is None:
        title = _(NO_CHANGE)
    if title == "auto":
        finding = finder(sheet.record) if sheet.quantity == "weight" else change
    table = theme.table(palette, diverging=sheet.center is not None)
    sheet = replace(sheet, has_blanks=theme.has_blanks(table))
    texts = [*_texts_of(sheet), finding.sentence if finding else "", title or ""]
    check_letters(texts)
    typefaces = typefaces_for(texts)
    words = _Words(title=title, finding=finding, has_bar=cbar, annot=annot, typefaces=typefaces)
    layout = _lay_out(sheet, style, words)
    sheet = layout.sheet
    with settings(style, theme, typefaces):
        figure = new_figure(layout.width, layout.height)
        ax = figure.add_axes(layout.box, frame_on=False, xticks=[], yticks=[])
        _draw_cells(ax, sheet, table, theme, layout.corners)
        columns, rows = layout.total
        ax.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5), aspect="auto")
        size = _number_size(sheet, layout.cell, annot, style)
        if size:
            _write_numbers(ax, sheet, table, layout.corners, size)
        if finding is not None and len(sheet.panels) > 1:
            _draw_ring(ax, layout, theme, finding)
        if len(sheet.panels) == 1:
            _name_one(ax, layout, theme)
        else:
            _name_grid(ax, layout, theme)
        bottom = layout.height - style.margin - height_of(layout.below)
        write_lines(figure, theme, layout.above, style.margin, style.margin)
        write_lines(figure, theme, layout.below, style.margin, bottom)
        if cbar:
            room = bottom - layout.top - 0.1
            length = min(max(SHORTEST_BAR, 0.6 * rows * layout.cell), LONGEST_BAR, room)
            place = layout.right + BAR_GAP, layout.top, length
            colour_bar(figure, theme, table, place, _marks(sheet), size=layout.small)
    return Picture(
        figure=figure,
        title=sheet.model,
        description=sheet.description,
        style=style,
        theme=theme,
        typefaces=typefaces,
    )


def draw_record(
    record: Attention,
    look: Look,
    layer: LayerChoice = None,
    head: HeadChoice = None,
    *,
    finder: Finder = find,
) -> Picture:
    """Return the picture of a record; layer and head are as for `attnviz.heatmap`.

    Raises SelectionError: no such layer, head or palette.
    """
    _, record = record.choose(layer, head)
    theme = theme_of(look.theme, look.palette)
    return draw(
        resolve(record, look.scale),
        look.palette,
        style=style_of(look),
        theme=theme,
        finder=finder,
    )


def draw_difference(
    difference: Difference, look: Look, layer: LayerChoice = None, head: HeadChoice = None
) -> Picture:
    """Return the picture of a difference: all heads, or one; layer and head are as for `attnviz.heatmap`.

    Raises SelectionError: no such layer or head.
    """
    chosen = difference.select(*difference.numbers(layer, head))
    changes = chosen.largest(1)
    return draw(
        chosen.sheet(look.scale),
        style=style_of(look),
        theme=theme_of(look.theme),
        change=changes[0] if changes else None,
    )


def draw_on(
    ax: Axes,
    sheet: Sheet,
    palette: Palette,
    *,
    title: str | None,
    cbar: bool,
    annot: bool | None,
) -> None:
    """Draw the single pattern of a sheet on the user's own axes, with its keys below it.

    The label of the image holds the words that a new figure has around its pattern. Raises SelectionError: `ax` is not
    the axes of a figure, or the sheet has several patterns.
    """
    if not hasattr(ax, "imshow"):
        raise SelectionError(f"ax must be the axes of a Matplotlib figure, not {ax!r}")
    if len(sheet.panels) > 1:
        raise SelectionError(
            f"an ax holds one pattern, and this is {sheet.size}: give layer and head"
        )
    figure = ax.get_figure(root=True)
    if figure is None:
        raise SelectionError("the ax given belongs to no figure")
    theme, style = _theme_behind(figure), STYLES["sheet"]
    table = theme.table(palette, diverging=sheet.center is not None)
    sheet = replace(sheet, has_blanks=theme.has_blanks(table))
    (panel,) = sheet.panels
    with settings(style, theme, typefaces_for([*_texts_of(sheet), title or ""])):
        image = _draw_cells(ax, sheet, table, theme, [(0, 0)])
        image.set_label(sheet.description)
        if cbar:
            _bar_beside(ax, table, panel, theme)
        box, (n_rows, n_columns) = ax.get_window_extent(), panel.matrix.shape
        cell = min(box.width / n_columns, box.height / n_rows) / figure.dpi
        step = math.ceil(0.9 * PITCH * style.letters * POINT / cell)
        note = _(" (every {nth} is named)").format(nth=_ordinal(step)) if step > 1 else ""
        names = _("key (attended to)") + note, _("query (attends)") + note
        subplot = ax.get_subplotspec()
        if subplot is not None:  # in the user's grid of subplots, only the outer axes have names
            names = (
                names[0] if subplot.is_last_row() else "",
                names[1] if subplot.is_first_col() else "",
            )
        _name_axes(ax, sheet, style.letters, step, names, theme)
        if title is not None:
            heading = sheet.name(panel) if title == "auto" else title
            ax.set_title(heading, size=style.letters + 1)
        size = _number_size(sheet, cell, annot, style)
        if size:
            _write_numbers(ax, sheet, table, [(0, 0)], size)


def _bar_beside(ax: Axes, table: np.ndarray, panel: Panel, theme: Theme) -> None:
    """Draw a colour bar beside the user's own axes, which give up some of their room."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, LogNorm, Normalize

    norm = Normalize(panel.bottom, panel.top or 1.0)
    if panel.log:
        norm = LogNorm(LOG_LEAST, max(panel.top, 10 * LOG_LEAST))
    bar = ax.figure.colorbar(ScalarMappable(norm, ListedColormap(table / 255)), ax=ax)
    if panel.log:
        bar.ax.yaxis.set_major_formatter("{x:g}")
        bar.ax.minorticks_off()
    bar.ax.tick_params(labelsize="small", color=theme.quiet, labelcolor=theme.quiet)
    bar.outline.set(edgecolor=theme.frame, linewidth=0.6)


def check_title(title: str | None) -> str | None:
    """Return the title. Raises SettingsError: it is not text, or contains half a surrogate pair."""
    if title is not None and not isinstance(title, str):
        raise SettingsError(f"it must be text, not {title!r}", "title")
    if re.search("[\ud800-\udfff]", title or ""):
        raise SettingsError("it holds half a character", "title")
    return title


def _theme_behind(figure: Figure) -> Theme:
    """Return the theme for the background of the user's own figure."""
    from matplotlib.colors import to_rgb

    background = (np.array(to_rgb(figure.get_facecolor())) * 255).round().astype(np.uint8)
    return LIGHT if luminance(background) > 0.18 else replace(DARK, paper=hexed(background))


def _texts_of(sheet: Sheet) -> list[str]:
    """Return all texts of a picture of a sheet."""
    return [*sheet.query_labels, *sheet.key_labels, sheet.description, sheet.size, *sheet.notes]


def _clipped(labels: Sequence[str]) -> list[str]:
    return [clip(label, LONGEST_LABEL) for label in labels]


# ---------------------------------------------------------------------------------------------------------------------
# The layout
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words:
    """What stands around the panels."""

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
            notes.insert(2, _("every {nth} token is named").format(nth=_ordinal(step)))
        lines = []
        if style.caption:
            lines = break_lines([sheet.proof], width, size)
        if style.caption == "all":
            lines += break_lines(notes, width, size, is_quiet=True)
        return lines + missing_line(self.typefaces, style, width)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
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


def _lay_out(sheet: Sheet, style: Style, words: _Words) -> _Layout:
    """Return the places of everything on a picture of this style; a sheet that is too large is pooled.

    Raises SettingsError: the size of the style is too small for the tokens.
    """
    n = len(sheet.panels)
    if n == 1:
        return _fit(pool(sheet, MOST_CELLS, MOST_CELLS), style, words, 1)
    if not _is_wrapped(sheet):
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
        most_columns = max(int(pixels / across), LEAST_CELLS)
        most_rows = max(int(pixels / math.ceil(n / across)), LEAST_CELLS)
        layouts.append(_fit(pool(sheet, most_rows, most_columns), style, words, across))
    return max(layouts, key=lambda layout: layout.cell)


def _fit(sheet: Sheet, style: Style, words: _Words, across: int) -> _Layout:
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
    words: _Words,
    across: int,
    label_size: float,
    larger: float = 1.0,
) -> _Layout:
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
        before += _longest(sheet.query_labels) * label_size * POINT + 0.08
        on_top += _longest(sheet.key_labels) * label_size * POINT + 0.08
    names = [name for panel in sheet.panels if (name := _panel_name(sheet, panel))]
    name_width = _longest(names) * 0.8 * style.letters * POINT
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
    return _Layout(
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


def _is_wrapped(sheet: Sheet) -> bool:
    """Return whether all panels belong to one layer or one head, so that they wrap from line to line."""
    return len(sheet.layers) == 1 or len(sheet.heads) == 1


def _edge(sheet: Sheet) -> float:
    """Return the room for the names of the axes, and of layers and heads, in lines of text."""
    if len(sheet.panels) == 1:
        return 2.0
    return 0.0 if _is_wrapped(sheet) else 2.8


def _panel_name(sheet: Sheet, panel: Panel) -> str:
    """Return the line above a panel: its head if panels wrap, and the end of its scale if it has its own."""
    parts = []
    if len(sheet.panels) > 1 and _is_wrapped(sheet):
        parts.append(sheet.name(panel))
    if len(sheet.panels) > 1 and sheet.scale == "panel":
        parts.append(f"max {panel.top:.3g}")
    return " · ".join(parts)


def _longest(labels: Sequence[str]) -> float:
    """Return the length of the longest label, in sizes of its letters."""
    return max(map(length_of, _clipped(labels)), default=0.0)


def _usual_cell(sheet: Sheet, style: Style, words: _Words, name: float) -> float:
    """Return the side of a cell where there is room enough; `name` is the length of the longest name of a panel."""
    n_queries, n_keys = len(sheet.query_labels), len(sheet.key_labels)
    if style.width:
        return LARGEST_SHEET if len(sheet.panels) > 1 or style.height else LARGEST_CELL
    pitch = PITCH * style.letters * POINT
    if len(sheet.panels) == 1:
        return min(LARGEST_CELL, max(pitch, 6.0 / max(n_queries, n_keys)))
    least = 1.5 if _is_wrapped(sheet) else 0.9  # of a panel
    number = style.least * POINT / NUMBER if words.annot else 0.0
    return max(pitch, number, least / max(n_queries, n_keys), name / n_keys)


def _no_room(layout: _Layout) -> SettingsError:
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


def _warn_unnamed(layout: _Layout) -> None:
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


def _number_size(sheet: Sheet, cell: float, annot: bool | None, style: Style) -> float:
    """Return the size of the letters of numbers in cells of `cell` inches, or 0 if no numbers are written.

    With `annot` None, numbers are written into a single pattern if they can be read; with True always, else never.
    """
    share = SIGNED_NUMBER if sheet.center == 0 else NUMBER
    size = min(style.letters + 1, share * cell / POINT)
    if annot is None:
        annot = len(sheet.panels) == 1 and size >= style.least
    return size if annot else 0.0


# ---------------------------------------------------------------------------------------------------------------------
# The drawing
# ---------------------------------------------------------------------------------------------------------------------


def _draw_cells(
    ax: Axes, sheet: Sheet, table: np.ndarray, theme: Theme, corners: Sequence[tuple[int, int]]
) -> AxesImage:
    """Draw the cells of all panels as one image, with a thin frame around each and hatches over masked cells."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Polygon, Rectangle

    is_diverging = sheet.center is not None
    n_rows, n_columns = len(sheet.query_labels), len(sheet.key_labels)
    columns, rows = (max(corner[i] for corner in corners) for i in (0, 1))
    tiles = np.zeros((rows + n_rows, columns + n_columns, 4), dtype=np.uint8)  # transparent
    frames, hatches = [], []
    is_masked = (sheet.masked_from < n_columns).any()
    for panel, (column, row) in zip(sheet.panels, corners, strict=True):
        tile = tiles[row : row + n_rows, column : column + n_columns]
        tile[..., :3] = theme.pixels(
            panel.above_bottom, panel.span, table, log=panel.log, diverging=is_diverging
        )
        tile[..., 3] = 255
        left, top = column - 0.5, row - 0.5
        frames.append(Rectangle((left, top), n_columns, n_rows))
        if is_masked:
            hatches.append(
                Polygon(_masked_outline(sheet.masked_from, n_columns) + np.array((left, top)))
            )
    if len(corners) == 1:
        tiles = tiles[..., :3]
    image = ax.imshow(tiles, interpolation="none")
    for hatch in hatches:
        hatch.set(zorder=2.5, **theme.masked)
        ax.add_patch(hatch)
    # a line around a panel, so that pale cells at its border have an edge
    frame: dict[str, Any] = {"facecolor": "none", "edgecolor": theme.frame, "linewidth": 0.6}
    ax.add_collection(PatchCollection(frames, zorder=3, clip_on=False, **frame))
    return image


def _masked_outline(masked_from: Int[np.ndarray, " row"], n_columns: int) -> np.ndarray:
    """Return the outline of a panel's masked cells: down along the first one of each row, and back up on the right."""
    steps = [(column, row + i) for row, column in enumerate(masked_from) for i in (0, 1)]
    return np.array([*steps, (n_columns, len(masked_from)), (n_columns, 0)])


def _write_numbers(
    ax: Axes,
    sheet: Sheet,
    table: np.ndarray,
    corners: Sequence[tuple[int, int]],
    size: float,
) -> None:
    """Write the weights into their cells, dark on pale cells and white on dark ones."""
    colours = text_colours(table)
    for panel, (left, top) in zip(sheet.panels, corners, strict=True):
        inks = colours[levels(panel.above_bottom, panel.span, log=panel.log)]
        for row, column in np.argwhere(np.abs(panel.matrix) >= BLANK):
            ax.text(
                left + column,
                top + row,
                number_text(float(panel.matrix[row, column]), signed=panel.center == 0),
                size=size,
                color=inks[row, column],
                ha="center",
                va="center",
                zorder=4,
            )


def number_text(value: float, *, signed: bool = False) -> str:
    """Return a number for a cell, such as ``.25``, ``1`` or ``12.5``; a `signed` one with its sign, ``+.25``."""
    size = abs(value)
    digits = f"{size:.2f}" if size < 9.995 else f"{size:.3g}"
    digits = "1" if digits == "1.00" else digits.removeprefix("0")
    if value < 0:
        return f"−{digits}"
    return f"+{digits}" if signed else digits


def _draw_ring(ax: Axes, layout: _Layout, theme: Theme, finding: Finding | Change) -> None:
    """Draw a ring around the panel of the link that the title names."""
    from matplotlib.patches import Rectangle

    columns, rows = layout.panel
    for panel, (left, top) in zip(layout.sheet.panels, layout.corners, strict=True):
        if (panel.layer, panel.head) == (finding.layer, finding.head):
            ring = Rectangle((left - 0.5, top - 0.5), columns, rows, fill=False)
            ring.set(edgecolor=theme.accent, linewidth=1.8, zorder=5, clip_on=False)
            ax.add_patch(ring)


def _name_axes(
    ax: Axes, sheet: Sheet, size: float, step: int, names: tuple[str, str], theme: Theme
) -> None:
    """Name every `step`-th key and query along the axes of one pattern, in letters of this size, and the axes."""
    queries, keys = _clipped(sheet.query_labels), _clipped(sheet.key_labels)
    ax.set_xticks(range(0, len(keys), step), keys[::step], size=size, rotation=90)
    ax.set_yticks(range(0, len(queries), step), queries[::step], size=size)
    ax.tick_params(length=0, pad=3)
    ax.set_xlabel(names[0], color=theme.quiet)
    ax.set_ylabel(names[1], color=theme.quiet)


def _name_one(ax: Axes, layout: _Layout, theme: Theme) -> None:
    """Name the tokens and the axes of a single pattern, its keys above it."""
    sheet, size = layout.sheet, layout.size * POINT
    lengths = [n * layout.cell for n in layout.panel]
    names = [
        name if length_of(name) * size <= length else short
        for name, short, length in zip(
            (_("key (attended to)"), _("query (attends)")),
            (_("key"), _("query")),
            lengths,
            strict=True,
        )
    ]
    _name_axes(ax, sheet, layout.label_size, layout.step, (names[0], names[1]), theme)
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    ax.tick_params(length=0, pad=2)
    if _longest(sheet.key_labels) * layout.label_size * POINT <= 0.95 * layout.cell:
        ax.tick_params(axis="x", rotation=0)


def _name_grid(ax: Axes, layout: _Layout, theme: Theme) -> None:
    """Name the queries before each row of panels and the keys above the first, and layers and heads or each panel."""
    sheet, cell = layout.sheet, layout.cell
    pad, above = 0.5 + 0.04 / cell, layout.name_height / cell
    queries, keys = _clipped(sheet.query_labels), _clipped(sheet.key_labels)
    size: dict[str, Any] = {"size": layout.label_size}
    upright: dict[str, Any] = {"rotation": 90, "ha": "center", "va": "bottom"}
    for index, (left, top) in enumerate(layout.corners):
        if layout.step and index % layout.across == 0:
            for i in range(0, len(queries), layout.step):
                ax.text(-pad, top + i, queries[i], ha="right", va="center", **size)
        if layout.step and index < layout.across:
            for i in range(0, len(keys), layout.step):
                ax.text(left + i, -pad - above, keys[i], **upright, **size)
        name = _panel_name(sheet, sheet.panels[index])
        ax.text(left - 0.5, top - pad, name, va="bottom", size=layout.small, color=theme.quiet)
    if not _is_wrapped(sheet):
        _number_heads(ax, layout, theme)


def _number_heads(ax: Axes, layout: _Layout, theme: Theme) -> None:
    """Number the heads along the upper edge and the layers along the left one."""
    sheet = layout.sheet
    left, top = (-0.5 - room / layout.cell for room in layout.edges)
    middle, centre = ((total - 1) / 2 for total in layout.total)
    line = layout.size * POINT / layout.cell  # the height of a letter, in cells
    (columns, rows), size = layout.panel, layout.size
    ax.text(middle, top, _("head"), ha="center", va="top", size=size, color=theme.quiet)
    name, rotation = _upward(_("layer"))
    ax.text(left, centre, name, va="center", rotation=rotation, size=size, color=theme.quiet)
    # where panels are narrow, some numbers are left out, so that they do not touch
    every = math.ceil((length_of(f"{sheet.heads[-1]}") + 0.6) * line / (columns + layout.gaps[0]))
    for head, (x, _y) in [*zip(sheet.heads, layout.corners, strict=False)][::every]:
        place = x + (columns - 1) / 2, top + 1.4 * line
        ax.text(*place, f"{head}", ha="center", va="top", size=size)
    for layer, (_x, y) in zip(sheet.layers, layout.corners[:: layout.across], strict=True):
        ax.text(left + 1.4 * line, y + (rows - 1) / 2, f"{layer}", va="center", size=size)


def _upward(text: str) -> tuple[str, float]:
    """Return a text to be written upward, and the angle of its rotation.

    A short Korean word is hard to read on its side. It is not rotated: its syllables are placed below one another, with
    a number, if there is one, at the bottom.
    """
    if not re.fullmatch(r"[가-힣]{1,3}( \d+)?", text):
        return text, 90.0
    return "\n".join(re.findall(r"[가-힣]|\d+", text)), 0.0


def _ordinal(n: int) -> str:
    """Return a number such as ``2nd``; in Korean ``2``, which the sentence completes."""
    if current_language() != "en":
        return str(n)
    return f"{n}{'th' if 10 < n % 100 < 14 else {1: 'st', 2: 'nd', 3: 'rd'}.get(n % 10, 'th')}"


def _marks(sheet: Sheet) -> dict[float, str]:
    """Return the texts beside the colour bar, by their share of its length."""
    if sheet.scale == "panel" and len(sheet.panels) > 1:
        return {0.0: "0" if sheet.center is None else "min", 1.0: "max"}
    top = max(panel.top for panel in sheet.panels)
    if sheet.scale == "log":
        return _log_marks(top)
    marks = scale_marks(sheet.panels[0].bottom, top)
    if sheet.center == 0:
        marks = {share: _with_sign(mark) for share, mark in marks.items()}
    return marks


def _with_sign(mark: str) -> str:
    """Return a number of a colour bar with its sign, such as ``+0.5``; 0 has none."""
    return mark.replace("-", "−") if mark == "0" or mark.startswith("-") else f"+{mark}"


def _log_marks(top: float) -> dict[float, str]:
    """Return the powers of ten along a logarithmic colour bar, as texts by their share of its length."""
    powers = (0.0001, 0.001, 0.01, 0.1, 1.0)
    length = max(math.log10(top / LOG_LEAST), 1.0) if top else 1.0
    return {
        math.log10(power / LOG_LEAST) / length: f"{power:.4f}".rstrip("0").rstrip(".")
        for power in powers
        if power <= max(top, LOG_LEAST) * 1.001
    }
