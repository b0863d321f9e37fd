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

from attnviz.attention import Attention, HeadChoice, LayerChoice
from attnviz.errors import AttnvizWarning, SettingsError
from attnviz.heatmaps.difference import Difference
from attnviz.heatmaps.finding import NO_CHANGE, Change, Finder, Finding, find
from attnviz.look import Look
from attnviz.render.figure.export import Picture, blank_figure, usual_settings
from attnviz.render.figure.page import Line, Page, height_of, lines, page_of, scale_marks
from attnviz.render.figure.pattern import (
    draw_pattern,
    hatch_masked,
    number_size,
    texts_of,
    write_numbers,
)
from attnviz.render.figure.pen import (
    GAP,
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
from attnviz.render.figure.style import STYLES, Style, enlarge, style_of
from attnviz.render.palette import DEFAULT, Palette
from attnviz.render.sheet import AXES, LOG_LEAST, Panel, Sheet, pool, resolve
from attnviz.render.theme import LIGHT, Theme, theme_of
from attnviz.text.display import clip
from attnviz.text.messages import _

# All lengths are in inches.
LARGEST_SHEET = 16.0
"""The largest width and height of a sheet. A larger one gets smaller cells, then it is pooled."""
SHARP_WIDTH = 32.0  # of the largest PNG at 125 dots per inch; no reader can tell more cells apart
SENTENCE_LINES = 3  # a longer sentence is cut in the title; its tokens are all in the picture
BAR_WIDTH = 0.7  # of a colour bar beside the panels, with its numbers
SHORTEST_BAR = 0.8  # the length of the colour bar beside a pattern of few rows
# The most rows or columns of one pattern; a larger one is pooled. A cell is then about two pixels wide.
MOST_CELLS = 2000
NAMED_CELL = PITCH * 0.9  # the size of a cell beside which its token can be named
NARROWEST_CELL = 0.02  # the size of the smallest visible cell
CLOSE_GAP = 0.05  # between panels without labels
MOST_STEP = 3  # on a page of a given width at least every third token is named, or none
LEAST_CELLS = 8  # rows and columns that a panel keeps, however small it is
RING_WIDTH = 1.6  # in points


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

    The title of a grid names the link that stands out most, and its head has a ring.
    That of a difference names the `change`. Without a `title`, the line with the model is left out too. The layout fits
    the width of the `style`; an `AttnvizWarning` says if names of tokens have no room.

    Raises:
        SelectionError: an unknown palette.
        SettingsError: a width that is too narrow for one pattern.
    """
    if title == "auto" and not style.has_title:
        title = None
    table = theme.table(palette, diverging=sheet.center is not None)
    sheet = replace(sheet, has_blanks=theme.has_blanks(table))
    finding: Finding | Change | None = None
    if title == "auto" and sheet.quantity == "difference" and change is None:
        title = _(NO_CHANGE)
    if title == "auto":
        finding = finder(sheet.record) if sheet.quantity == "weight" else change
    answer = "" if finding is None else finding.sentence
    with usual_settings(theme):
        pen = blank_figure([*texts_of(sheet), answer, title or ""], theme)
        options = _Options(
            palette=palette, style=style, title=title, cbar=cbar, annot=annot, finding=finding
        )
        if len(sheet.panels) == 1:
            _draw_single(sheet, options, pen)
        else:
            _draw_grid(sheet, options, pen)
    return Picture(pen, sheet.model, sheet.description, style)


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
    sheet = resolve(record, look.scale)
    theme = theme_of(look.theme, look.palette)
    return draw(sheet, look.palette, style=style_of(look), theme=theme, finder=finder)


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


def check_title(title: str | None) -> str | None:
    """Return the title. Raises SettingsError: it is not text, or contains half a surrogate pair."""
    if title is not None and not isinstance(title, str):
        raise SettingsError(f"it must be text, not {title!r}", "title")
    if re.search("[\ud800-\udfff]", title or ""):
        raise SettingsError("it holds half a character", "title")
    return title


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    """The options of a picture; their names are those of the arguments of `draw`."""

    palette: Palette  # the colours
    style: Style  # what the picture is for
    title: str | None  # `auto`, a text, or None
    cbar: bool  # whether there is a colour bar
    # Whether weights are printed in the cells; None prints them if one pattern has room for them.
    annot: bool | None
    finding: Finding | Change | None  # the link that the title names; None if it names none


@dataclass(frozen=True, slots=True)
class _Caption:
    """The words above and below a picture."""

    above: list[Line]  # the title, and the line with the model
    below: list[Line]  # the receipt and the notes
    head: float  # the height of the words above, with the margin, in inches
    foot: float  # the height of the words below, with the margin
    margin: float  # of the page, in inches

    def write(self, page: Page) -> None:
        """Write the words: the last line stands on the lower margin."""
        page.write(self.above, self.margin, self.margin)
        if self.below:
            top = page.size[1] - self.margin - height_of(self.below) + self.below[-1].pitch
            page.write(self.below, top, self.margin, va="baseline")


def _caption(
    sheet: Sheet, pen: Pen, options: _Options, width: float, margin: float, *more: str
) -> _Caption:
    """Break the title and the notes of a sheet into lines for a page of this width; the style chooses among them.

    `more` has further notes.
    """
    style, room = options.style, width - 2 * margin
    size = TEXT * pen.larger
    title = sheet.sentence if options.title == "auto" else options.title or ""
    title_size = TITLE * pen.larger
    above = []
    if options.finding is not None:
        above = lines(pen, [options.finding.sentence], room, title_size)
        title_size = size + 0.5
    sentence = lines(pen, [title], room, title_size, most=SENTENCE_LINES + 1)
    if len(sentence) > SENTENCE_LINES:
        last = sentence[SENTENCE_LINES - 1]
        sentence = [
            *sentence[: SENTENCE_LINES - 1],
            replace(last, text=clip(last.text, len(last.text) - 1)),
        ]
    above += sentence
    if options.title is not None:
        model = lines(pen, [f"{sheet.model} · {sheet.size}"], room, size + 0.5, colour=pen.quiet)
        above += [replace(line, pitch=1.35 * size * POINT) for line in model]
    notes = {
        "all": [sheet.proof, _(AXES), sheet.legend, *more, *sheet.notes],
        "receipt": [sheet.proof],
        "": [],
    }
    below = lines(pen, notes[style.caption], room, size, leading=1.3)
    head, foot = margin + height_of(above), margin + height_of(below)
    if above or style.has_title:
        head += 0.25 * size * POINT + 0.1
    if below or style.has_title:
        foot += 0.06
    return _Caption(above, below, head, foot, margin)


def _colour_bar(
    page: Page, sheet: Sheet, palette: Palette, place: tuple[float, float, float]
) -> None:
    """Draw the colour bar at `place` (left, top, length); if each panel has its own scale, mark only 0 and max."""
    if sheet.scale == "panel" and len(sheet.panels) > 1:
        marks = {0.0: "0", 1.0: "max"} if sheet.center is None else {0.0: "min", 1.0: "max"}
    elif sheet.scale == "log":
        marks = _log_marks(max(panel.top for panel in sheet.panels))
    else:
        marks = scale_marks(sheet.panels[0].bottom, max(panel.top for panel in sheet.panels))
        if sheet.center == 0:
            marks = {share: _with_sign(mark) for share, mark in marks.items()}
    table = page.pen.theme.table(palette, diverging=sheet.center is not None)
    page.colour_bar(table, place, marks)


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


def _warn_unnamed(style: Style, what: str, needed: float) -> None:
    """Warn that some tokens cannot be named, and say which width (in inches) or which option would help."""
    letters = f"in letters of {style.sizes[-1]:g} pt"
    text = f"at {style.width:.3g}in {what} {letters}: all of them need {needed + 0.05:.1f}in"
    if style.height is not None:
        text = (
            f"at {style.width:.3g} x {style.height:.3g}in {what} {letters}: "
            "show fewer heads (--head) or fewer tokens (--rows, --keys)"
        )
    warnings.warn(text, AttnvizWarning, stacklevel=6)


@dataclass(frozen=True, slots=True)
class _SingleLayout:
    """The place of a single pattern on its page, in inches for letters of the usual size."""

    width: float  # of the page
    height: float
    left: float  # of the pattern
    top: float
    cell: float  # the side of a cell
    upright: bool  # whether the names of the keys are vertical
    caption: _Caption

    def rooms(
        self, pattern_width: float, pattern_height: float, keys_height: float
    ) -> tuple[float, float]:
        """Return the longest name, in inches, for the axis of the keys and for that of the queries.

        Each is centred on its side of the pattern. The first must stay within the margins of the page, the second
        between the name of the other axis and the caption.
        """
        x, y = self.left + pattern_width / 2, self.top + pattern_height / 2
        across = min(x, self.width - x) - self.caption.margin
        upward = min(y - self.top + keys_height, self.height - self.caption.foot - y)
        return 2 * across, 2 * upward


def _draw_single(sheet: Sheet, options: _Options, pen: Pen) -> None:
    """Draw one pattern with the largest letters of the style in which every token can be named."""
    sheet, style = pool(sheet, MOST_CELLS, MOST_CELLS), options.style
    for size in style.sizes:  # from the largest
        pen = replace(pen, least=style.least * TEXT / size)
        layout = _lay_out_single(sheet, pen, options, size / TEXT)
        # On a slide, smaller letters are better than cells without numbers.
        is_numbered = options.annot is False or number_size(layout.cell, options.annot, pen.least)
        if layout.cell >= NAMED_CELL and (is_numbered or style.height is None):
            break
    cell = layout.cell
    pattern_width, pattern_height = len(sheet.key_labels) * cell, len(sheet.query_labels) * cell
    keys_height = pen.widest(clipped(sheet.key_labels)) if layout.upright else PITCH
    pattern = pen.figure.add_axes((0, 0, 1, 1))
    page = page_of(pen, layout.width, layout.height)
    page.move(pattern, (layout.left, layout.top, pattern_width, pattern_height))
    draw_pattern(
        pattern,
        sheet,
        options.palette,
        pen,
        cell=cell,
        rooms=layout.rooms(pattern_width, pattern_height, keys_height),
        upright=layout.upright,
        annot=options.annot,
    )
    layout.caption.write(page)
    if options.cbar:
        room = layout.height - layout.caption.foot - layout.top - 0.08
        length = min(max(SHORTEST_BAR, pattern_height * 0.6), 2.5, room)
        place = (layout.left + pattern_width + 0.12, layout.top, length)
        _colour_bar(page, sheet, options.palette, place)
    enlarge(pen.figure, size / TEXT)
    if style.width and cell < NAMED_CELL:
        needed = style.width + (NAMED_CELL - cell) * len(sheet.key_labels) * size / TEXT
        _warn_unnamed(style, "not every token can be named", needed)


def _lay_out_single(sheet: Sheet, pen: Pen, options: _Options, zoom: float) -> _SingleLayout:
    """Find the largest cells in which a single pattern fits its style; the page is enlarged by `zoom` afterwards.

    Raises SettingsError: the width of the style is too narrow for the tokens and their names.
    """
    style = options.style
    queries, keys = clipped(sheet.query_labels), clipped(sheet.key_labels)
    margin = style.margin / zoom
    before = margin + 0.3 + pen.widest(queries) + 0.08
    after = margin
    if options.cbar:
        after += _bar_width(style, pen, 0.26)
    if style.width is None:
        longest = max(len(queries), len(keys))
        cell = min(0.5, max(PITCH, 6.0 / longest), LARGEST_SHEET / longest)
        width = max(before + len(keys) * cell + after, 4.5)
    else:
        largest_cell = LARGEST_SHEET if style.height else 0.5
        width = style.width / zoom
        cell = min((width - before - after) / len(keys), largest_cell)
    caption = _caption(sheet, pen, options, width, margin)
    widest_key = pen.widest(keys)
    upright = widest_key > cell - 0.06
    top = caption.head + (widest_key if upright else PITCH) + (0.26 if style.width else 0.36)
    if style.height is not None:
        rows_height = style.height / zoom - top - 0.12 - caption.foot
        cell = min(cell, rows_height / len(queries))
        if not upright and widest_key > cell - 0.06:  # upright names take more of the height
            upright = True
            top += widest_key - PITCH
            cell = min(cell, (rows_height - widest_key + PITCH) / len(queries))
        if cell * zoom < NARROWEST_CELL:
            raise SettingsError(
                f"{style.width:.3g} x {style.height:.3g}in is too small for {len(queries)} x {len(keys)} tokens, "
                "their names and the words around them"
            )
    if style.width is not None and cell * zoom < NARROWEST_CELL:
        needed = (before + after + len(keys) * NARROWEST_CELL / zoom) * zoom
        raise SettingsError(
            f"{style.width:.3g}in is too narrow for {len(keys)} tokens and their names: "
            f"it takes {needed + 0.05:.1f}in"
        )
    pattern_height = len(queries) * cell
    if options.cbar:
        pattern_height = max(pattern_height, SHORTEST_BAR)
    height = top + pattern_height + 0.12 + caption.foot
    left = before
    if style.width is not None:  # the pattern stands in the middle
        left += (width - before - after - len(keys) * cell) / 2
    if style.height is not None:
        top += max(0.0, style.height / zoom - height) / 2
        height = style.height / zoom
    return _SingleLayout(
        width=width,
        height=height,
        left=left,
        top=top,
        cell=cell,
        upright=upright,
        caption=caption,
    )


def _bar_width(style: Style, pen: Pen, gap: float) -> float:
    """Return the width of a colour bar with its numbers; on a page of a given width, with this `gap` before them."""
    if style.width is None:
        return BAR_WIDTH
    return gap + pen.widest(["0.25"], max(SMALL, pen.least))


@dataclass(frozen=True, slots=True, kw_only=True)
class _GridLayout:
    """The places of the panels on a sheet, in inches."""

    across: int  # the number of panels side by side
    numbered: bool  # whether layers and heads are named only by their numbers, for lack of room
    cell: float  # the side of a cell
    left: float  # of the first panel
    top: float
    panel: tuple[float, float]  # width and height of a panel
    gaps: tuple[float, float]  # between panels side by side, and between rows of panels
    names: tuple[str, ...]  # the line above each panel; empty for none
    label_size: float  # the font size of the tokens' labels, in points
    step: int  # every n-th token is named; 0 for none

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
    words_height = 1.5  # about the height of the caption, which is not known before the width
    if style.width:
        words = _caption(sheet, pen, options, style.width / zoom, margin)
        words_height = words.head + words.foot + 0.15
    across = _panels_across(sheet, pen, options, words_height)
    down = math.ceil(len(sheet.panels) / across)
    pixels_across = (style.width or SHARP_WIDTH) * 100 * 0.8
    sheet = pool(
        sheet,
        max(int(pixels_across / down), LEAST_CELLS),
        max(int(pixels_across / across), LEAST_CELLS),
    )
    grid = _lay_out_grid(sheet, pen, options, (across, down), words_height)
    if style.width is None:  # the words of a large sheet are larger
        pen = replace(pen, larger=min(1.6, max(1.0, grid.panel[0] * across / 10)))
        grid = _lay_out_grid(
            sheet, pen, options, (across, down), words_height, label_size=grid.label_size
        )

    if grid.cell <= 0:
        size = f"{style.width:.3g}in" + (f" x {style.height:.3g}in" if style.height else "")
        raise SettingsError(f"{size} has no room for {sheet.size} and the words around them")

    x, y, panel_width, panel_height = grid.place(across * down - 1)
    right = x + panel_width
    if style.width:
        width = style.width / zoom
        bar = 0.6 if options.cbar else 0.0
        spare = max(0.0, width - margin - bar - right) / 2  # the free width on each side
    else:
        right += grid.gaps[0] - GAP
        bar = BAR_WIDTH if options.cbar else 0.0
        width, spare = max(right + bar + margin, 4.5), 0.0
    caption = _caption(sheet, pen, options, width, margin, *_grid_remarks(sheet, grid, options))
    below = max(0.15, grid.gaps[1] - GAP)
    height, head = caption.head + y + panel_height + below + caption.foot, caption.head
    if style.height is not None:  # the panels stand in the middle
        head += max(0.0, style.height / zoom - height) / 2
        height = style.height / zoom
    grid = replace(grid, top=grid.top + head, left=grid.left + spare)
    page = page_of(pen, width, height)
    caption.write(page)
    _draw_panels(page, sheet, grid, options)
    _write_labels(page, sheet, grid, head, margin)
    if options.cbar:
        length = min(1.5, max(0.6, grid.panel[1]))
        _colour_bar(page, sheet, options.palette, (spare + right + 0.15, grid.top, length))
    enlarge(pen.figure, zoom)
    if style.width and grid.step != 1:
        needed = style.width + (PITCH - grid.cell) * len(sheet.key_labels) * across * zoom
        what = "not every token can be named" if grid.step else "no token can be named"
        _warn_unnamed(style, what, needed)


def _panels_across(sheet: Sheet, pen: Pen, options: _Options, words_height: float) -> int:
    """Return how many panels stand side by side; `words_height` is the height of the caption, in inches."""
    if not _is_wrapped(sheet):
        return len(sheet.heads)
    n = len(sheet.panels)
    if options.style.height:  # on a slide, choose the number that makes the panels largest

        def cell(across: int) -> float:
            shape = (across, math.ceil(n / across))
            return _lay_out_grid(sheet, pen, options, shape, words_height).cell

        return max(range(1, n + 1), key=cell)

    def empty_places(across: int) -> tuple[int, int]:
        return -n % across, across

    least = math.ceil(math.sqrt(n))  # a sheet a little wider than high
    return min(range(least, min(n, math.ceil(1.3 * least)) + 1), key=empty_places)


def _is_wrapped(sheet: Sheet) -> bool:
    """Return whether all panels belong to one layer or one head, so that they wrap from line to line."""
    return len(sheet.layers) == 1 or len(sheet.heads) == 1


def _grid_remarks(sheet: Sheet, grid: _GridLayout, options: _Options) -> list[str]:
    """Return notes on the labels and the numbers of a grid."""
    remarks = []
    if grid.step > 1:
        remarks.append(_("every {nth} token is named").format(nth=ordinal(grid.step)))
    return remarks


def _draw_panels(page: Page, sheet: Sheet, grid: _GridLayout, options: _Options) -> None:
    """Draw the matrices of all panels, with numbers in their cells if the user asked for them."""
    # With an alpha channel Matplotlib resamples each panel in one pass instead of two.
    theme = page.pen.theme
    is_diverging = sheet.center is not None
    table = theme.table(options.palette, diverging=is_diverging)
    table = np.pad(table, ((0, 0), (0, 1)), constant_values=255)
    masked_from = sheet.masked_from
    for index, panel in enumerate(sheet.panels):
        place = grid.place(index)
        pixels = theme.pixels(
            panel.above_bottom, panel.span, table, log=panel.log, diverging=is_diverging
        )
        page.image(pixels, place)
        corner = (*place[:2], grid.cell)
        hatch_masked(page.ax, page.pen, masked_from, len(sheet.key_labels), place=corner)
        if options.annot:
            size = number_size(grid.cell, annot=True)
            write_numbers(page.ax, panel, options.palette, page.pen, size, place=corner)
        finding = options.finding
        if finding is not None and (panel.layer, panel.head) == (finding.layer, finding.head):
            _draw_ring(page, place)


def _draw_ring(page: Page, place: tuple[float, float, float, float]) -> None:
    """Draw a ring round the panel at `place`, just outside its frame."""
    left, top, width, height = place
    out = RING_WIDTH / 2 * POINT + 0.005
    around = (left - out, top - out, width + 2 * out, height + 2 * out)
    page.box(around, fill=False, edgecolor=page.pen.theme.accent, linewidth=RING_WIDTH, zorder=5)


def _lay_out_grid(
    sheet: Sheet,
    pen: Pen,
    options: _Options,
    shape: tuple[int, int],
    words_height: float,
    *,
    label_size: float = TEXT,
) -> _GridLayout:
    """Find the largest cells in which panels of this shape (across, down) fit the style with their labels.

    Positions start below the text at the top of the page. `words_height` is the height of the caption, in inches;
    `label_size` the font size, in points, for which the room of the labels is measured.
    """
    across, down = shape
    style, zoom = options.style, options.style.sizes[-1] / TEXT
    margin = style.margin / zoom
    page_width = style.width / zoom if style.width else LARGEST_SHEET
    page_height = style.height / zoom if style.height else LARGEST_SHEET
    n_rows, n_columns = len(sheet.query_labels), len(sheet.key_labels)
    bar = _bar_width(style, pen, 0.3) if options.cbar else 0.0
    names = tuple(_panel_name(sheet, panel) for panel in sheet.panels)
    names_height = PITCH if any(names) else 0.0
    edge = _edge_room(sheet, pen, style)
    largest_cell = page_width if style.width else _usual_cell(sheet, pen, options, names)
    # If not even every third token can be named, none is, and the panels get their room.
    for has_labels in (True, False):
        left = margin + edge
        top = edge + names_height
        gap = CLOSE_GAP
        if has_labels:
            left += pen.widest(clipped(sheet.query_labels), label_size) + 0.1
            top += pen.widest(clipped(sheet.key_labels), label_size) + 0.1
            gap = GAP
        cell_across = (page_width - left - bar - margin - across * gap) / (across * n_columns)
        rows_height = page_height - top - words_height - down * (gap + names_height)
        cell = min(largest_cell, cell_across, rows_height / (down * n_rows))
        label_size = max(pen.least, min(TEXT, cell / POINT / 1.15))
        step = max(1, math.ceil(1.15 * label_size * POINT / cell - 0.01)) if has_labels else 0
        if style.width is None or (cell > 0 and step <= MOST_STEP):
            break
    panel = (n_columns * cell, n_rows * cell)
    # If names are wider or higher than their panels, the panels stand further apart.
    name_width, name_height = _name_size(sheet, pen, style, names)
    return _GridLayout(
        across=across,
        numbered=_is_numbered(sheet, style),
        cell=cell,
        left=left,
        top=top,
        panel=panel,
        names=names,
        gaps=(
            max(gap, name_width + 0.06 - panel[0]),
            max(gap + names_height, name_height + 0.06 - panel[1]),
        ),
        label_size=label_size,
        step=step,
    )


def _is_numbered(sheet: Sheet, style: Style) -> bool:
    """Return whether layers and heads are named only by their numbers: along the edges of a page of a given width."""
    return style.width is not None and not _is_wrapped(sheet)


def _edge_room(sheet: Sheet, pen: Pen, style: Style) -> float:
    """Return the room for the names of layers along the left edge, and for those of heads along the top, in inches."""
    if _is_wrapped(sheet):
        return 0.0
    return 0.36 if _is_numbered(sheet, style) else 0.22 * pen.larger


def _name_size(sheet: Sheet, pen: Pen, style: Style, names: Sequence[str]) -> tuple[float, float]:
    """Return the width of the widest name above a panel, and the height of the longest one beside it, in inches.

    `names` are the lines above the panels. Without wrapping, the head's name stands above its column, and the layer's
    name runs upward beside its row.
    """
    width, height = pen.widest(names, max(SMALL, pen.least)), 0.0
    if not _is_wrapped(sheet) and not _is_numbered(sheet, style):
        size = TEXT * pen.larger
        width = max(width, pen.widest([f"head {head}" for head in sheet.heads], size))
        height = pen.widest([f"layer {layer}" for layer in sheet.layers], size)
    return width, height


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


def _write_labels(page: Page, sheet: Sheet, grid: _GridLayout, head: float, margin: float) -> None:
    """Write tokens along the first column and row, and the names of layers and heads, or of each panel.

    `head` is the distance from the upper edge to the labels, `margin` that of the page, in inches.
    """
    small = max(SMALL, page.pen.least)
    for index, name in enumerate(grid.names):
        x, y, _width, _height = grid.place(index)
        if name:
            page.text(x, y - 0.03, name, small, va="bottom", color=page.pen.quiet)
        if index % grid.across == 0:
            _label_queries(page, sheet, grid, index, margin)
        if index < grid.across:
            _label_keys(page, sheet, grid, index, head)
    if grid.numbered:  # say what the numbers along the edges count
        style = {"va": "center", "color": page.pen.quiet}
        x, y, width, height = grid.place(len(sheet.panels) - 1)
        middle = (grid.left + x + width) / 2
        page.text(middle, head + 0.06, _("head"), small, ha="center", **style)
        middle = (grid.top + y + height) / 2
        page.write_upward(margin, middle, _("layer"), small, **style)


def _label_queries(page: Page, sheet: Sheet, grid: _GridLayout, index: int, margin: float) -> None:
    """Name the queries before the first panel of a row, which has this `index`, and its layer."""
    x, y, _width, height = grid.place(index)
    queries = clipped(sheet.query_labels)
    for i in range(0, len(queries), grid.step) if grid.step else ():
        middle = y + (i + 0.5) * grid.cell
        page.text(x - 0.04, middle, queries[i], grid.label_size, ha="right", va="center")
    if _is_wrapped(sheet):
        return
    layer, size = sheet.panels[index].layer, TEXT * page.pen.larger
    if grid.numbered:
        page.text(margin + 0.14, y + height / 2, f"{layer}", size, va="center")
    else:
        name = f"{_('layer')} {layer}"
        page.write_upward(margin, y + height / 2, name, size, va="center")


def _label_keys(page: Page, sheet: Sheet, grid: _GridLayout, index: int, head: float) -> None:
    """Name the keys above a panel of the first row, which has this `index`, and its head."""
    x, y, width, _height = grid.place(index)
    above = y - 0.04 - (PITCH if grid.names[index] else 0)
    keys = clipped(sheet.key_labels)
    style = {"ha": "center", "rotation": 90, "va": "bottom"}
    for i in range(0, len(keys), grid.step) if grid.step else ():
        page.text(x + (i + 0.5) * grid.cell, above, keys[i], grid.label_size, **style)
    if _is_wrapped(sheet):
        return
    size = TEXT * page.pen.larger
    number_width = page.pen.widest([f"{sheet.heads[-1]}"], size) + 0.04
    every = math.ceil(number_width / (grid.panel[0] + grid.gaps[0]))  # so that numbers do not touch
    if grid.numbered and index % every:
        return
    number = sheet.panels[index].head
    name = f"{number}" if grid.numbered else f"{_('head')} {number}"
    top = head + 0.08 + (0.14 if grid.numbered else 0.0)
    page.text(x + width / 2, top, name, size, ha="center", va="center")
