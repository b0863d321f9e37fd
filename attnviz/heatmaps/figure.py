"""Heatmaps for paper and slides: PNG, SVG and PDF, drawn with Matplotlib.

One pattern is drawn large; more stand on a grid, layers down and heads across.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from attnviz.attention import Attention
from attnviz.errors import AttnvizWarning, SettingsError
from attnviz.render.figure.export import Picture, blank_figure, usual_settings
from attnviz.render.figure.page import Line, Page, height_of, lines, page_of, scale_marks
from attnviz.render.figure.pattern import draw_pattern, number_size, texts_of, write_numbers
from attnviz.render.figure.pen import (
    GAP,
    GREY,
    LEAST_TEXT,
    PITCH,
    POINT,
    SMALL,
    TEXT,
    TITLE,
    Pen,
    clipped,
    ordinal,
)
from attnviz.render.figure.style import STYLES, Style, StyleName, enlarge, style_of
from attnviz.render.palette import DEFAULT, Palette, colours, has_blanks, pixels
from attnviz.render.sheet import AXES, Panel, Scale, Sheet, pool, resolve
from attnviz.text.display import clip
from attnviz.text.messages import Phrase, _, expect_language

LARGEST = 16.0
"""The largest width and height of a sheet, in inches. A larger one gets smaller cells, then it is pooled."""
SHARP = 32.0  # inches of the largest PNG at 125 dots per inch; no reader can tell more cells apart
SENTENCE_LINES = 3  # a longer sentence is cut in the title; its tokens are all in the picture
BAR = 0.7  # inches for a colour bar beside the panels, with its numbers
# rows or columns of one pattern; a larger one is pooled. A cell is then about two pixels wide
MOST_CELLS = 2000
NAMED = PITCH * 0.9  # inches; a token can be named beside a cell of this size
NARROWEST_CELL = 0.02  # inches of the smallest visible cell
ROUNDED = _("Numbers: weights, rounded to 2 decimals")
CLOSE = 0.05  # inches between panels on a page of a given width
MOST_STEP = 3  # on such a page at least every third token is named, or none
LEAST_CELLS = 8  # rows and columns that a panel keeps, however small it is


def draw(
    sheet: Sheet,
    palette: Palette = DEFAULT,
    *,
    title: str | None = "auto",
    cbar: bool = True,
    annot: bool | None = None,
    style: Style = STYLES["sheet"],
) -> Picture:
    """Draw a sheet: one pattern large, or all panels on a grid; the arguments are as for `attnviz.heatmap`.

    Without a `title`, the line with the model is left out too. The layout fits the width of the `style`; an
    `AttnvizWarning` says if names of tokens have no room.

    Raises:
        SelectionError: an unknown palette.
        SettingsError: a width that is too narrow for one pattern.
    """
    if title == "auto" and not style.has_title:
        title = None
    sheet = replace(sheet, has_blanks=has_blanks(colours(palette)))
    with usual_settings():
        pen = blank_figure([*texts_of(sheet), title or ""])
        options = _Options(palette=palette, style=style, title=title, cbar=cbar, annot=annot)
        (_draw_one if len(sheet.panels) == 1 else _draw_grid)(sheet, options, pen)
    return Picture(pen, sheet.model, sheet.description, style)


def draw_record(
    record: Attention,
    *,
    palette: Palette | None = None,
    scale: Scale = "shared",
    lang: str = "en",
    title: str | None = "auto",
    style: StyleName = "sheet",
    width: str | None = None,
    dpi: int | None = None,
) -> Picture:
    """Return the picture of a record; the arguments are as for `heatmap`.

    Raises:
        SelectionError: no such palette, scale or language.
        SettingsError: an unknown style, or an impossible width or title.
    """
    expect_language(lang)
    sheet = resolve(record, scale, lang)
    return draw(
        sheet,
        DEFAULT if palette is None else palette,
        title=check_title(title),
        style=style_of(style, width, dpi),
    )


def check_title(title: str | None) -> str | None:
    """Return the title. Raises SettingsError: it contains half a surrogate pair."""
    if re.search("[\ud800-\udfff]", title or ""):
        raise SettingsError("it holds half a character", "title")
    return title


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    palette: Palette  # the colours
    style: Style  # what the picture is for
    title: str | None  # `auto`, a text, or None
    cbar: bool  # whether there is a colour bar
    # whether weights are printed in the cells; None: if one pattern has room for them
    annot: bool | None


@dataclass(frozen=True, slots=True)
class _Caption:
    """The words above and below a picture, with their heights in inches, margins included."""

    above: list[Line]
    below: list[Line]
    head: float
    foot: float
    margin: float

    def write(self, page: Page) -> None:
        """Write the words: the last line stands on the lower margin."""
        page.write(self.above, self.margin, self.margin)
        if self.below:
            top = page.size[1] - self.margin - height_of(self.below) + self.below[-1].pitch
            page.write(self.below, top, self.margin, va="baseline")


def _caption(
    sheet: Sheet, pen: Pen, options: _Options, width: float, margin: float, *more: str
) -> _Caption:
    """Break the title, notes and `more` of a sheet into lines for this page width; the style chooses among them."""
    style, room = options.style, width - 2 * margin
    size = TEXT * pen.larger
    shown = sheet.sentence if options.title == "auto" else options.title or ""
    above = lines(pen, [shown], room, TITLE * pen.larger, most=SENTENCE_LINES + 1)
    if len(above) > SENTENCE_LINES:
        last = above[SENTENCE_LINES - 1]
        above = [
            *above[: SENTENCE_LINES - 1],
            replace(last, text=clip(last.text, len(last.text) - 1)),
        ]
    if options.title is not None:
        model = lines(pen, [f"{sheet.model} · {sheet.size}"], room, size + 0.5, colour=GREY)
        above += [replace(line, pitch=1.35 * size * POINT) for line in model]
    said = {
        "all": [sheet.proof, sheet.say(AXES), sheet.legend, *more, *sheet.notes],
        "receipt": [sheet.proof],
    }
    below = lines(pen, said.get(style.caption, []), room, size, leading=1.3)
    head = margin + height_of(above) + (0.25 * size * POINT + 0.1) * bool(above or style.has_title)
    return _Caption(
        above,
        below,
        head,
        margin + height_of(below) + 0.06 * bool(below or style.has_title),
        margin,
    )


def _colour_bar(
    page: Page, sheet: Sheet, palette: Palette, place: tuple[float, float, float]
) -> None:
    """Draw the colour bar at `place` (left, top, length); if each panel has its own scale, mark only 0 and max."""
    if sheet.scale == "panel" and len(sheet.panels) > 1:
        marks = {0.0: "0", 1.0: "max"}
    else:
        marks = scale_marks(0.0, max(panel.top for panel in sheet.panels))
    page.colour_bar(colours(palette), place, marks)


def _warn_unnamed(style: Style, what: str, needed: float) -> None:
    """Warn that some tokens cannot be named, and say which width (in inches) would be enough."""
    warnings.warn(
        f"at {style.width:.3g}in {what} in letters of {style.sizes[-1]:g} pt: all of them need "
        f"{math.ceil(10 * needed) / 10:g}in",
        AttnvizWarning,
        stacklevel=6,
    )


@dataclass(frozen=True, slots=True)
class _OnePlace:
    """Where one pattern stands on its page, in inches for letters of the usual size."""

    width: float
    height: float
    left: float
    top: float
    cell: float
    upright: bool  # whether the keys' names stand upright
    caption: _Caption


def _draw_one(sheet: Sheet, options: _Options, pen: Pen) -> None:
    """Draw one pattern with the largest letters of the style in which every token can be named."""
    sheet, style = pool(sheet, MOST_CELLS, MOST_CELLS), options.style
    for size in style.sizes:
        pen = replace(pen, least=style.least * TEXT / size)
        placed = _place_one(sheet, pen, options, size / TEXT)
        if placed.cell >= NAMED:
            break
    n_rows, n_columns, cell = len(sheet.query_labels), len(sheet.key_labels), placed.cell
    pattern = pen.figure.add_axes((0, 0, 1, 1))
    page = page_of(pen, placed.width, placed.height)
    page.move(pattern, (placed.left, placed.top, n_columns * cell, n_rows * cell))
    draw_pattern(
        pattern, sheet, options.palette, pen, cell=cell, upright=placed.upright, annot=options.annot
    )
    placed.caption.write(page)
    if options.cbar:
        right = placed.left + n_columns * cell
        length = min(max(0.8, n_rows * cell * 0.6), 2.5)
        _colour_bar(page, sheet, options.palette, (right + 0.12, placed.top, length))
    enlarge(pen.figure, size / TEXT)
    if style.width and cell < NAMED:
        needed = style.width + (NAMED - cell) * n_columns * size / TEXT
        _warn_unnamed(style, "not every token can be named", needed)


def _place_one(sheet: Sheet, pen: Pen, options: _Options, zoom: float) -> _OnePlace:
    """Find the largest cells in which one pattern fits its style; the page is enlarged by `zoom` afterwards."""
    style = options.style
    queries, keys = clipped(sheet.query_labels), clipped(sheet.key_labels)
    margin = style.margin / zoom
    before = margin + 0.3 + pen.widest(queries) + 0.08
    after = margin
    if options.cbar:
        after += _bar_width(style, pen, 0.26)
    if style.width is None:
        longest = max(len(queries), len(keys))
        cell = min(0.5, max(PITCH, 6.0 / longest), LARGEST / longest)
        width = max(before + len(keys) * cell + after, 4.5)
    else:
        largest = LARGEST if style.height else 0.5
        width = style.width / zoom
        cell = min((width - before - after) / len(keys), largest)
    more = [sheet.say(ROUNDED)] if number_size(cell, options.annot, pen.least) else []
    caption = _caption(sheet, pen, options, width, margin, *more)
    widest_key = pen.widest(keys)
    upright = widest_key > cell - 0.06
    top = caption.head + (widest_key if upright else PITCH) + (0.26 if style.width else 0.36)
    if style.height is not None:
        cell = min(cell, (style.height / zoom - top - 0.12 - caption.foot) / len(queries))
    if style.width is not None and cell * zoom < NARROWEST_CELL:
        needed = (before + after + len(keys) * NARROWEST_CELL / zoom) * zoom
        raise SettingsError(
            f"{style.width:.3g}in is too narrow for {len(keys)} tokens and their names: "
            f"it takes {needed + 0.05:.1f}in"
        )
    pattern_height = len(queries) * cell
    if options.cbar:
        pattern_height = max(pattern_height, 0.8)  # the shortest colour bar
    left = before
    if style.width is not None:  # in the middle
        left += (width - before - after - len(keys) * cell) / 2
    return _OnePlace(
        width=width,
        height=top + pattern_height + 0.12 + caption.foot,
        left=left,
        top=top,
        cell=cell,
        upright=widest_key > cell - 0.06,
        caption=caption,
    )


def _bar_width(style: Style, pen: Pen, gap: float) -> float:
    """Return the width of a colour bar with its numbers, with `gap` inches between both."""
    if style.width is None:
        return BAR
    return gap + pen.widest(["0.25"], max(SMALL, pen.least))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grid:
    """Where everything on a sheet of many panels stands, in inches from its upper left corner."""

    across: int  # panels side by side
    wrapped: (
        bool  # True: panels wrap, each with its name; False: one row per layer, one column per head
    )
    numbered: bool  # whether layers and heads are named only by their numbers, for lack of room
    cell: float
    left: float
    top: float
    panel: tuple[float, float]  # width and height, as for the gaps between panels
    gaps: tuple[float, float]
    names: tuple[str, ...]  # above each panel; empty for none
    print: float  # the size of the tokens' labels, in points
    step: int  # every n-th token is named; 0: none

    def place(self, index: int) -> tuple[float, float, float, float]:
        """Return (left, top, width, height) of a panel."""
        row, column = divmod(index, self.across)
        across, down = self.panel[0] + self.gaps[0], self.panel[1] + self.gaps[1]
        return self.left + column * across, self.top + row * down, *self.panel


def _draw_grid(sheet: Sheet, options: _Options, pen: Pen) -> None:
    """Draw many patterns: one row per layer and one column per head, or the panels of one layer or head in lines."""
    style = options.style
    zoom = style.sizes[-1] / TEXT  # the finished figure is enlarged by this factor
    margin = style.margin / zoom
    pen = replace(pen, least=style.least / zoom)
    words_height = 1.5
    if style.width:
        words = _caption(sheet, pen, options, style.width / zoom, margin)
        words_height = words.head + words.foot + 0.15
    across = _panels_across(sheet, pen, options, words_height)
    down = math.ceil(len(sheet.panels) / across)
    pixels_across = (style.width or SHARP) * 100 * 0.8
    sheet = pool(
        sheet,
        max(int(pixels_across / down), LEAST_CELLS),
        max(int(pixels_across / across), LEAST_CELLS),
    )
    grid = _fit_grid(sheet, pen, options, (across, down), words_height)
    if style.width is None:  # the words of a large sheet are larger
        pen = replace(pen, larger=min(1.6, max(1.0, grid.panel[0] * across / 10)))
        grid = _fit_grid(sheet, pen, options, (across, down), words_height, size=grid.print)

    x, y, panel_width, panel_height = grid.place(across * down - 1)
    right = x + panel_width
    if style.width:
        width = style.width / zoom
        bar = 0.6 if options.cbar else 0.0
        spare = max(0.0, width - margin - bar - right) / 2  # on each side
    else:
        right += grid.gaps[0] - GAP
        bar = BAR if options.cbar else 0.0
        width, spare = max(right + bar + margin, 4.5), 0.0
    caption = _caption(sheet, pen, options, width, margin, *_grid_remarks(sheet, grid, options))
    grid = replace(grid, top=grid.top + caption.head, left=grid.left + spare)
    below = max(0.15, grid.gaps[1] - GAP)
    page = page_of(pen, width, caption.head + y + panel_height + below + caption.foot)
    caption.write(page)
    _draw_panels(page, sheet, grid, options)
    _label(page, sheet, grid, caption.head, margin)
    if options.cbar:
        length = min(1.5, max(0.6, grid.panel[1]))
        _colour_bar(page, sheet, options.palette, (spare + right + 0.15, grid.top, length))
    enlarge(pen.figure, zoom)
    if style.width and grid.step != 1:
        needed = style.width + (PITCH - grid.cell) * len(sheet.key_labels) * across * zoom
        what = "not every token can be named" if grid.step else "no token can be named"
        _warn_unnamed(style, what, needed)


def _panels_across(sheet: Sheet, pen: Pen, options: _Options, words_height: float) -> int:
    """Return how many panels stand side by side."""
    if not _is_wrapped(sheet):
        return len(sheet.heads)
    n = len(sheet.panels)
    if options.style.height:  # on a slide, choose the number that makes the panels largest

        def cell(across: int) -> float:
            shape = (across, math.ceil(n / across))
            return _fit_grid(sheet, pen, options, shape, words_height).cell

        return max(range(1, n + 1), key=cell)

    def empty_places(across: int) -> tuple[int, int]:
        return -n % across, across

    least = math.ceil(math.sqrt(n))  # a sheet a little wider than high
    return min(range(least, min(n, math.ceil(1.3 * least)) + 1), key=empty_places)


def _is_wrapped(sheet: Sheet) -> bool:
    """Return whether all panels belong to one layer or one head, so that they wrap from line to line."""
    return len(sheet.layers) == 1 or len(sheet.heads) == 1


def _grid_remarks(sheet: Sheet, grid: _Grid, options: _Options) -> list[str]:
    remarks = []
    if grid.step > 1:
        nth = Phrase(ordinal(grid.step), str(grid.step))
        remarks.append(sheet.say(_("every {nth} token is named").format(nth=nth)))
    if options.annot:
        remarks.append(sheet.say(ROUNDED))
    return remarks


def _draw_panels(page: Page, sheet: Sheet, grid: _Grid, options: _Options) -> None:
    # With an alpha channel Matplotlib resamples each panel in one pass instead of two.
    table = np.pad(colours(options.palette), ((0, 0), (0, 1)), constant_values=255)
    for index, panel in enumerate(sheet.panels):
        place = grid.place(index)
        page.image(pixels(panel.matrix, panel.top, table), place)
        if options.annot:
            corner = (*place[:2], grid.cell)
            size = number_size(grid.cell, annot=True)
            write_numbers(page.ax, panel, options.palette, page.pen, size, place=corner)


def _fit_grid(
    sheet: Sheet,
    pen: Pen,
    options: _Options,
    shape: tuple[int, int],
    words_height: float,
    *,
    size: float = TEXT,
) -> _Grid:
    """Find the largest cells in which panels of this shape (across, down) fit the style with their labels.

    Positions start below the text at the top of the page. `size` is the font size of the labels, in points.
    """
    across, down = shape
    style, zoom = options.style, options.style.sizes[-1] / TEXT
    margin = style.margin / zoom
    page_width = style.width / zoom if style.width else LARGEST
    page_height = style.height / zoom if style.height else LARGEST
    wrapped = _is_wrapped(sheet)
    numbered = bool(style.width) and not wrapped
    n_rows, n_columns = len(sheet.query_labels), len(sheet.key_labels)
    bar = _bar_width(style, pen, 0.3) if options.cbar else 0.0
    names = tuple(_panel_name(sheet, panel) for panel in sheet.panels)
    names_height = PITCH if any(names) else 0.0
    edge = 0.0  # for the names of layers and heads
    if not wrapped:
        edge = 0.36 if numbered else 0.22 * pen.larger
    largest_cell = page_width if style.width else _usual_cell(sheet, pen, options, names)
    # If not even every third token can be named, none is, and the panels get their room.
    for has_labels in (True, False):
        left = margin + edge
        top = edge + names_height
        gap = CLOSE
        if has_labels:
            left += pen.widest(clipped(sheet.query_labels), size) + 0.1
            top += pen.widest(clipped(sheet.key_labels), size) + 0.1
            gap = GAP
        cell_across = (page_width - left - bar - margin - across * gap) / (across * n_columns)
        rows_height = page_height - top - words_height - down * (gap + names_height)
        cell = min(largest_cell, cell_across, rows_height / (down * n_rows))
        size = max(pen.least, min(TEXT, cell / POINT / 1.15))
        step = max(1, math.ceil(1.15 * size * POINT / cell - 0.01)) if has_labels else 0
        if style.width is None or (cell > 0 and step <= MOST_STEP):
            break
    # If names are wider or higher than their panels, the panels stand further apart.
    panel_width, panel_height = n_columns * cell, n_rows * cell
    name_width, name_height = pen.widest(names, max(SMALL, pen.least)), 0.0
    if not wrapped and not numbered:
        heads, layers = _edge_sizes(sheet, pen)
        name_width, name_height = max(name_width, heads), layers
    return _Grid(
        across=across,
        wrapped=wrapped,
        numbered=numbered,
        cell=cell,
        left=left,
        top=top,
        panel=(panel_width, panel_height),
        names=names,
        gaps=(
            max(gap, name_width + 0.06 - panel_width),
            max(gap + names_height, name_height + 0.06 - panel_height),
        ),
        print=size,
        step=step,
    )


def _edge_sizes(sheet: Sheet, pen: Pen) -> tuple[float, float]:
    """Return the lengths of the longest "head 11" and "layer 11" along the edges of a sheet, in inches."""
    heads = pen.widest([f"head {head}" for head in sheet.heads], TEXT * pen.larger)
    layers = pen.widest([f"layer {layer}" for layer in sheet.layers], TEXT * pen.larger)
    return heads, layers


def _usual_cell(sheet: Sheet, pen: Pen, options: _Options, names: Sequence[str]) -> float:
    """Return the size of a cell, in inches, on a sheet that may be as wide as its content."""
    longest = max(len(sheet.query_labels), len(sheet.key_labels))
    return max(
        LEAST_TEXT * POINT / 0.35 if options.annot else PITCH,
        (1.5 if _is_wrapped(sheet) else 0.9) / longest,
        pen.widest(names, max(SMALL, pen.least)) / len(sheet.key_labels),
    )


def _panel_name(sheet: Sheet, panel: Panel) -> str:
    """Return the line above a panel: its head if panels wrap, and the end of its scale if it has its own."""
    parts = []
    if _is_wrapped(sheet):
        parts.append(sheet.name(panel))
    if sheet.scale == "panel":
        parts.append(f"max {panel.top:.3g}")
    return " · ".join(parts)


def _label(page: Page, sheet: Sheet, grid: _Grid, head: float, margin: float) -> None:
    """Write tokens along the first column and row, and the names of layers and heads, or of each panel."""
    small = max(SMALL, page.pen.least)
    for index, name in enumerate(grid.names):
        x, y, _width, _height = grid.place(index)
        if name:
            page.text(x, y - 0.03, name, small, va="bottom", color=GREY)
        if index % grid.across == 0:
            _label_row(page, sheet, grid, index, margin)
        if index < grid.across:
            _label_column(page, sheet, grid, index, head, margin)
    if grid.numbered:  # say what the numbers along the edges count
        style = {"va": "center", "color": GREY}
        x, y, width, height = grid.place(len(sheet.panels) - 1)
        middle = (grid.left + x + width) / 2
        page.text(middle, head + 0.06, sheet.say(_("head")), small, ha="center", **style)
        middle = (grid.top + y + height) / 2
        page.write_upward(margin, middle, sheet.say(_("layer")), small, **style)


def _label_row(page: Page, sheet: Sheet, grid: _Grid, index: int, margin: float) -> None:
    """Name the queries before the first panel of a row, and its layer."""
    x, y, _width, height = grid.place(index)
    queries = clipped(sheet.query_labels)
    for i in range(0, len(queries), grid.step) if grid.step else ():
        middle = y + (i + 0.5) * grid.cell
        page.text(x - 0.04, middle, queries[i], grid.print, ha="right", va="center")
    if grid.wrapped:
        return
    layer, size = sheet.panels[index].layer, TEXT * page.pen.larger
    if grid.numbered:
        page.text(margin + 0.14, y + height / 2, f"{layer}", size, va="center")
    else:
        name = f"{sheet.say(_('layer'))} {layer}"
        page.write_upward(margin, y + height / 2, name, size, va="center")


def _label_column(
    page: Page, sheet: Sheet, grid: _Grid, index: int, head: float, margin: float
) -> None:
    """Name the keys above a panel of the first row, and its head."""
    x, y, width, _height = grid.place(index)
    above = y - 0.04 - (PITCH if grid.names[index] else 0)
    keys = clipped(sheet.key_labels)
    style = {"ha": "center", "rotation": 90, "va": "bottom"}
    for i in range(0, len(keys), grid.step) if grid.step else ():
        page.text(x + (i + 0.5) * grid.cell, above, keys[i], grid.print, **style)
    if grid.wrapped:
        return
    size = TEXT * page.pen.larger
    number_width = page.pen.widest([f"{sheet.heads[-1]}"], size) + 0.04
    every = math.ceil(number_width / (grid.panel[0] + grid.gaps[0]))  # so that numbers do not touch
    if grid.numbered and index % every:
        return
    number = sheet.panels[index].head
    name = f"{number}" if grid.numbered else f"{sheet.say(_('head'))} {number}"
    top = head + 0.08 + (0.14 if grid.numbered else 0.0)
    page.text(x + width / 2, top, name, size, ha="center", va="center")
