"""Heatmaps for paper and slides: PNG, SVG and PDF, drawn with Matplotlib.

One pattern is drawn large; more stand on a grid, layers down and heads across.
"""

from __future__ import annotations

import math
import re
import warnings
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
from attnviz.render.sheet import AXES, Scale, Sheet, pool, resolve
from attnviz.text.display import clip
from attnviz.text.messages import Phrase, _, expect_language

LARGEST = 16.0
"""The widest and highest a sheet may get, in inches; what needs more is drawn with smaller cells, then pooled."""
SHARP = 32.0  # inches that the largest PNG has at 125 dots an inch: no more cells can be told apart on a sheet
SENTENCE_LINES = 3  # a longer sentence is cut in the title; its tokens are all in the picture
BAR = 0.7  # inches that a colour bar takes beside the panels, numbers included
# rows or columns that one pattern may have before it is pooled: about two pixels each
MOST_CELLS = 2000
NAMED = PITCH * 0.9  # inches of a cell beside which a token has room for its name
NARROWEST_CELL = 0.02  # inches of the smallest cell that can be seen
ROUNDED = _("numbers: weights, rounded to 2 decimals")
CLOSE = 0.05  # inches between panels on a page of a given width
MOST_STEP = 3  # where fewer tokens than every so many could be named on such a page, none is
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
    """A picture of a sheet: one pattern large, or all panels on a grid, as `attnviz.heatmap` has them.

    Without a `title` the model below it is left out, too. It is laid out for the width of its `style`, and an
    `AttnvizWarning` tells of names that have no room there.

    Raises:
        SelectionError: a palette that is not there.
        SettingsError: a width on which one pattern has no room.
    """
    if title == "auto" and not style.has_title:
        title = None
    sheet = replace(sheet, has_blanks=has_blanks(colours(palette)))
    with usual_settings():
        pen = blank_figure([*texts_of(sheet), title or ""])
        options = _Drawing(palette=palette, style=style, title=title, cbar=cbar, annot=annot)
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
        SettingsError: a style, width or title that no picture has.
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
    """Return the title; or SettingsError: half a character, which no picture can show."""
    if re.search("[\ud800-\udfff]", title or ""):
        raise SettingsError("it holds half a character", "title")
    return title


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawing:
    palette: Palette  # the colours
    style: Style  # what the picture is for
    title: str | None  # `auto`, another one, or None for none
    cbar: bool  # whether there is a colour bar
    # whether weights stand in the cells; None: where one pattern has room for them
    annot: bool | None


@dataclass(frozen=True, slots=True)
class _Caption:
    """The words above the picture and those below it, with the inches that each takes with its margin."""

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
    sheet: Sheet, pen: Pen, options: _Drawing, width: float, margin: float, *more: str
) -> _Caption:
    """The words of a sheet and `more` on a page of this width, as far as its style has them."""
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
    own = sheet.scale == "panel" and len(sheet.panels) > 1
    marks = (
        {0.0: "0", 1.0: "max"}
        if own
        else scale_marks(0.0, max(panel.top for panel in sheet.panels))
    )
    page.colour_bar(colours(palette), place, marks)


def _tell(style: Style, what: str, needed: float) -> None:
    """Tell what a page has no room for, and the width that has it, in inches."""
    warnings.warn(
        f"at {style.width:.3g}in {what} in letters of {style.sizes[-1]:g} pt: all of them need "
        f"{math.ceil(10 * needed) / 10:g}in",
        AttnvizWarning,
        stacklevel=6,
    )


@dataclass(frozen=True, slots=True)
class _One:
    """Where one pattern stands on its page, in inches for letters of the usual size."""

    width: float
    height: float
    left: float
    top: float
    cell: float
    upright: bool  # whether the keys' names stand upright
    caption: _Caption


def _draw_one(sheet: Sheet, options: _Drawing, pen: Pen) -> None:
    """Draw one pattern, large: with the largest letters of the style in which every token has room for its name."""
    sheet, style = pool(sheet, MOST_CELLS, MOST_CELLS), options.style
    for size in style.sizes:
        pen = replace(pen, least=style.least * TEXT / size)
        it = _place_one(sheet, pen, options, size / TEXT)
        if it.cell >= NAMED:
            break
    n_rows, n_columns, cell = len(sheet.query_labels), len(sheet.key_labels), it.cell
    pattern = pen.figure.add_axes((0, 0, 1, 1))
    page = page_of(pen, it.width, it.height)
    page.move(pattern, (it.left, it.top, n_columns * cell, n_rows * cell))
    draw_pattern(
        pattern, sheet, options.palette, pen, cell=cell, upright=it.upright, annot=options.annot
    )
    it.caption.write(page)
    if options.cbar:
        place = (it.left + n_columns * cell + 0.12, it.top, min(max(0.8, n_rows * cell * 0.6), 2.5))
        _colour_bar(page, sheet, options.palette, place)
    enlarge(pen.figure, size / TEXT)
    if style.width and cell < NAMED:
        _tell(
            style,
            "not every token can be named",
            style.width + (NAMED - cell) * n_columns * size / TEXT,
        )


def _place_one(sheet: Sheet, pen: Pen, options: _Drawing, zoom: float) -> _One:
    """The largest cells in which one pattern fits its style, whose page is made larger by `zoom` afterwards."""
    style = options.style
    queries, keys = clipped(sheet.query_labels), clipped(sheet.key_labels)
    longest, margin = max(len(queries), len(keys)), style.margin / zoom
    before = margin + 0.3 + pen.widest(queries) + 0.08
    after = (
        BAR if style.width is None else 0.26 + pen.widest(["0.25"], max(SMALL, pen.least))
    ) * options.cbar + margin
    cell = min(0.5, max(PITCH, 6.0 / longest), LARGEST / longest)
    width = max(before + len(keys) * cell + after, 4.5)
    if style.width is not None:
        width = style.width / zoom
        cell = min((width - before - after) / len(keys), 0.5 if style.height is None else LARGEST)
    more = [sheet.say(ROUNDED)] if number_size(cell, options.annot, pen.least) else []
    caption = _caption(sheet, pen, options, width, margin, *more)
    widest = pen.widest(keys)
    top = (
        caption.head
        + (widest if widest > cell - 0.06 else PITCH)
        + (0.36 if style.width is None else 0.26)
    )
    if style.height is not None:
        cell = min(cell, (style.height / zoom - top - 0.12 - caption.foot) / len(queries))
    if style.width is not None and cell * zoom < NARROWEST_CELL:
        least = (before + after + len(keys) * NARROWEST_CELL / zoom) * zoom
        raise SettingsError(
            f"{style.width:.3g}in is too narrow for {len(keys)} tokens and their names: it takes {least + 0.05:.1f}in"
        )
    # the colour bar's at least
    height = top + max(len(queries) * cell, 0.8 * options.cbar) + 0.12 + caption.foot
    spare = width - before - after - len(keys) * cell if style.width is not None else 0.0
    return _One(width, height, before + spare / 2, top, cell, widest > cell - 0.06, caption)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grid:
    """Where everything on a sheet of many panels stands, in inches from its upper left corner."""

    across: int  # panels side by side
    wrapped: bool  # whether panels run on in the next line, each with its name; else layers stand down, heads across
    numbered: bool  # whether layers and heads have only room for their numbers along the edges
    cell: float
    left: float
    top: float
    panel: tuple[float, float]  # across and down, as are the gaps between panels
    gaps: tuple[float, float]
    names: tuple[str, ...]  # above each panel; empty where nothing is
    print: float  # the size of the tokens' labels, in points
    step: int  # every how many tokens one is named; 0 for none

    def place(self, index: int) -> tuple[float, float, float, float]:
        """The place of a panel."""
        row, column = divmod(index, self.across)
        across, down = self.panel[0] + self.gaps[0], self.panel[1] + self.gaps[1]
        return self.left + column * across, self.top + row * down, *self.panel


def _draw_grid(sheet: Sheet, options: _Drawing, pen: Pen) -> None:
    style = options.style
    zoom, n = style.sizes[-1] / TEXT, len(sheet.panels)
    wrapped, margin = len(sheet.layers) == 1 or len(sheet.heads) == 1, style.margin / zoom
    pen = replace(pen, least=style.least / zoom)
    around = 1.5
    if style.width:
        words = _caption(sheet, pen, options, style.width / zoom, margin)
        around = words.head + words.foot + 0.15
    across = len(sheet.heads)
    if wrapped:  # a sheet a little wider than high, with the fewest places left empty
        least = math.ceil(math.sqrt(n))
        across = min(
            range(least, min(n, math.ceil(1.3 * least)) + 1),
            key=lambda across: (-n % across, across),
        )
    if wrapped and style.height:  # on a slide as many side by side as make the largest
        across = max(
            range(1, n + 1),
            key=lambda a: _grid(sheet, pen, options, (a, math.ceil(n / a)), around).cell,
        )
    down = math.ceil(n / across)
    most = [int((style.width or SHARP) * 100 * 0.8 / many) for many in (down, across)]
    sheet = pool(sheet, max(most[0], LEAST_CELLS), max(most[1], LEAST_CELLS))
    grid = _grid(sheet, pen, options, (across, down), around)
    if style.width is None:
        pen = replace(pen, larger=min(1.6, max(1.0, grid.panel[0] * across / 10)))
        grid = _grid(sheet, pen, options, (across, down), around, size=grid.print)
    x, y, wide, high = grid.place(across * down - 1)
    right = x + wide + (grid.gaps[0] - GAP if style.width is None else 0.0)
    width = style.width / zoom if style.width else max(right + BAR * options.cbar + margin, 4.5)
    more = []
    if grid.step > 1:
        nth = Phrase(ordinal(grid.step), str(grid.step))
        more.append(sheet.say(_("every {nth} token is named").format(nth=nth)))
    if options.annot:
        more.append(sheet.say(ROUNDED))
    caption = _caption(sheet, pen, options, width, margin, *more)
    spare = max(0.0, width - margin - 0.6 * options.cbar - right) / 2 if style.width else 0.0
    grid = replace(grid, top=grid.top + caption.head, left=grid.left + spare)
    page = page_of(
        pen, width, caption.head + y + high + max(0.15, grid.gaps[1] - GAP) + caption.foot
    )
    caption.write(page)
    # With an alpha channel Matplotlib resamples each panel in one pass instead of two.
    table = np.pad(colours(options.palette), ((0, 0), (0, 1)), constant_values=255)
    for index, panel in enumerate(sheet.panels):
        place = grid.place(index)
        page.image(pixels(panel.matrix, panel.top, table), place)
        if options.annot:
            corner = (*place[:2], grid.cell)
            write_numbers(
                page.ax,
                panel,
                options.palette,
                pen,
                number_size(grid.cell, annot=True),
                place=corner,
            )
    _label(page, sheet, grid, caption.head, margin)
    if options.cbar:
        length = min(1.5, max(0.6, grid.panel[1]))
        _colour_bar(page, sheet, options.palette, (spare + right + 0.15, grid.top, length))
    enlarge(pen.figure, zoom)
    if style.width and grid.step != 1:
        needed = style.width + (PITCH - grid.cell) * len(sheet.key_labels) * across * zoom
        _tell(
            style, "not every token can be named" if grid.step else "no token can be named", needed
        )


def _grid(
    sheet: Sheet,
    pen: Pen,
    options: _Drawing,
    shape: tuple[int, int],
    around: float,
    *,
    size: float = TEXT,
) -> _Grid:
    """Cells as large as their labels need, smaller where the sheet would grow too large; from below its words on."""
    across, down = shape
    style, zoom = options.style, options.style.sizes[-1] / TEXT
    margin, room = style.margin / zoom, (style.width / zoom if style.width else LARGEST)
    wrapped, own = len(sheet.layers) == 1 or len(sheet.heads) == 1, sheet.scale == "panel"
    bar = BAR if style.width is None else 0.3 + pen.widest(["0.25"], max(SMALL, pen.least))
    names = tuple(
        " · ".join(
            [*([sheet.name(panel)] if wrapped else []), *([f"max {panel.top:.3g}"] if own else [])]
        )
        for panel in sheet.panels
    )
    small, n_rows, n_columns = max(SMALL, pen.least), len(sheet.query_labels), len(sheet.key_labels)
    numbered = bool(style.width) and not wrapped
    named, edge = (
        (PITCH if wrapped or own else 0.0),
        (0.0 if wrapped else 0.36 if numbered else 0.22 * pen.larger),
    )
    least = LEAST_TEXT * POINT / 0.35 if options.annot else PITCH
    if style.width:
        least = room
    for labels in ((sheet.query_labels, sheet.key_labels), ((), ())):
        label_width, label_height = (
            pen.widest(clipped(those), size) + 0.1 * bool(those) for those in labels
        )
        left, top = margin + edge + label_width, edge + label_height + named
        gap = GAP if labels[0] else CLOSE
        cell = min(
            max(
                least,
                (1.5 if wrapped else 0.9) / max(n_rows, n_columns),
                pen.widest(names, small) / n_columns,
            ),
            (room - left - bar * options.cbar - margin - across * gap) / (across * n_columns),
            (
                (style.height / zoom if style.height else LARGEST)
                - top
                - around
                - down * (gap + named)
            )
            / (down * n_rows),
        )
        size = max(pen.least, min(TEXT, cell / POINT / 1.15))
        step = max(1, math.ceil(1.15 * size * POINT / cell - 0.01)) if labels[0] else 0
        if style.width is None or (cell > 0 and step <= MOST_STEP):
            break
    # Where panels are narrower or lower than the names along them, they stand further apart.
    wide, high = pen.widest(names, small), 0.0
    if not wrapped and not numbered:
        wide = max(wide, pen.widest([f"head {head}" for head in sheet.heads], TEXT * pen.larger))
        high = pen.widest([f"layer {layer}" for layer in sheet.layers], TEXT * pen.larger)
    panel = n_columns * cell, n_rows * cell
    return _Grid(
        across=across,
        wrapped=wrapped,
        numbered=numbered,
        cell=cell,
        left=left,
        top=top,
        panel=panel,
        names=names,
        gaps=(max(gap, wide + 0.06 - panel[0]), max(gap + named, high + 0.06 - panel[1])),
        print=size,
        step=step,
    )


def _label(page: Page, sheet: Sheet, grid: _Grid, head: float, margin: float) -> None:
    """Tokens along the first column and the first row; names of layers and heads, or of each panel."""
    queries, keys = clipped(sheet.query_labels), clipped(sheet.key_labels)
    large, small = TEXT * page.pen.larger, max(SMALL, page.pen.least)
    every = slice(0, None if grid.step else 0, grid.step or 1)
    layer, number = sheet.say(_("layer")), sheet.say(_("head"))
    apart = math.ceil(
        (page.pen.widest([f"{sheet.heads[-1]}"], large) + 0.04) / (grid.panel[0] + grid.gaps[0])
    )
    for index, (panel, name) in enumerate(zip(sheet.panels, grid.names, strict=True)):
        x, y, width, height = grid.place(index)
        if name:
            page.text(x, y - 0.03, name, small, va="bottom", color=GREY)
        if index % grid.across == 0:
            edge = margin + (0.14 if grid.numbered else 0.0)
            for i, query in list(enumerate(queries))[every]:
                page.text(
                    x - 0.04, y + (i + 0.5) * grid.cell, query, grid.print, ha="right", va="center"
                )
            if not grid.wrapped:
                write = page.text if grid.numbered else page.write_upward
                text = f"{panel.layer}" if grid.numbered else f"{layer} {panel.layer}"
                write(edge, y + height / 2, text, large, va="center")
        if index < grid.across:
            above = y - 0.04 - (PITCH if name else 0)
            for i, key in list(enumerate(keys))[every]:
                middle = x + (i + 0.5) * grid.cell
                page.text(middle, above, key, grid.print, rotation=90, ha="center", va="bottom")
            if not grid.wrapped and (not grid.numbered or index % apart == 0):
                text = f"{panel.head}" if grid.numbered else f"{number} {panel.head}"
                page.text(
                    x + width / 2,
                    head + 0.08 + edge - margin,
                    text,
                    large,
                    ha="center",
                    va="center",
                )
    if grid.numbered:
        x, y, width, height = grid.place(len(sheet.panels) - 1)
        page.text(
            (grid.left + x + width) / 2,
            head + 0.06,
            number,
            small,
            ha="center",
            va="center",
            color=GREY,
        )
        page.write_upward(
            margin, (grid.top + y + height) / 2, layer, small, va="center", color=GREY
        )
