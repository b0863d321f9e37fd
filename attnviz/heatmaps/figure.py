"""Heatmaps for paper and slides: PNG, SVG and PDF, drawn with Matplotlib.

One pattern is drawn large; more stand on a grid, layers down and heads across.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attnviz.attention import Attention
from attnviz.errors import AttnvizWarning, SelectionError, SettingsError
from attnviz.render.figure.export import Picture, blank_figure, usual_settings
from attnviz.render.figure.page import Line, Page, height_of, lines, page_of, scale_marks
from attnviz.render.figure.pattern import draw_pattern, number_size, write_numbers
from attnviz.render.figure.pen import (
    BLACK,
    FRAME,
    GAP,
    GREY,
    LARGEST,
    LEAST_TEXT,
    MARGIN,
    PITCH,
    PIXELS,
    POINT,
    SENTENCE_LINES,
    SMALL,
    TEXT,
    TITLE,
    Pen,
    clipped,
    ordinal,
)
from attnviz.render.figure.style import STYLES, Style, enlarge, fit
from attnviz.render.fonts import typefaces_for
from attnviz.render.palette import DEFAULT, colours, luminance, pixels
from attnviz.render.sheet import AXES, Sheet, pool, resolve
from attnviz.storage.files import write_whole
from attnviz.text.display import clip

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

BAR = 0.7
"""Inches that a colour bar takes beside the panels, numbers included."""
MOST_CELLS = 2000
"""Rows or columns that one pattern may have before it is pooled: about two pixels each."""
NAMED = PITCH * 0.9
"""Inches of a cell beside which a token has room for its name."""
NARROWEST_CELL = 0.02
"""Inches of the smallest cell that can be seen."""
ROUNDED = "numbers: weights, rounded to 2 decimals"


def draw_on(
    ax: Axes,
    sheet: Sheet,
    palette: str | Colormap = DEFAULT,
    *,
    title: str | None = "auto",
    cbar: bool = False,
    annot: bool | None = None,
) -> None:
    """Draw one pattern on somebody's own axes; the other arguments are those of `draw_pattern`.

    Raises:
        SelectionError: a palette that is not there, more than one pattern, or axes without a figure.
    """
    if len(sheet.panels) > 1:
        raise SelectionError(f"an ax holds one pattern, and this is {sheet.size}: give layer and head")
    root = ax.get_figure(root=True)
    if root is None:
        raise SelectionError("the ax given belongs to no figure")
    with usual_settings():
        ink, quiet = (BLACK, GREY) if _is_light(root) else ("white", FRAME)
        pen = Pen(root, typefaces_for([*_texts(sheet), title or ""]), ink=ink, quiet=quiet)
        draw_pattern(ax, sheet, palette, pen, title=title, cbar=cbar, annot=annot)


def draw(
    sheet: Sheet,
    palette: str | Colormap = DEFAULT,
    *,
    title: str | None = "auto",
    cbar: bool = True,
    annot: bool | None = None,
    style: Style = STYLES["sheet"],
) -> Picture:
    """A picture of a sheet: one pattern large, or all panels on a grid.

    Args:
        sheet: what to draw.
        palette: as `heatmap` takes it.
        title: `auto`, which is the sentence, or another title; None leaves out the title and the model below it.
        cbar: whether a colour bar stands beside the panels.
        annot: whether the weights stand in the cells; None: where one pattern has room for them.
        style: what the picture is for. One pattern is drawn for its width; a sheet of many is made smaller or larger.

    Raises:
        SelectionError: a palette that is not there.
        SettingsError: a width on which one pattern has no room.
    """
    if title == "auto" and not style.has_title:
        title = None
    with usual_settings():
        pen = blank_figure([*_texts(sheet), title or ""])
        if len(sheet.panels) == 1:
            _draw_one(sheet, palette, pen, style, title=title, cbar=cbar, annot=annot)
        else:
            _draw_grid(sheet, palette, pen, style, title=title, cbar=cbar, annot=annot)
            fit(pen, style, "; one head (--head) needs less")
    return Picture(pen, sheet.model, sheet.description, style)


def draw_record(record: Attention, **look: Any) -> Picture:
    """The picture of a record; `look` is what `attnviz.settings.FigureSettings` takes, such as ``style="paper"``."""
    from attnviz.settings import FigureSettings

    settings = FigureSettings(**look)
    return draw(resolve(record), title=settings.heading, style=settings.look)


def save(record: Attention, path: str | Path, **look: Any) -> Path:
    """Write the picture of a record, whole or not at all, in the format that the path's ending names.

    Raises:
        OutputError: the file cannot be written.
    """
    picture = draw_record(record, **look)
    return write_whole(path, lambda temporary: picture.write(temporary, temporary.suffix.lower()))


def png(record: Attention) -> bytes:
    """The picture of a record, as a notebook shows it."""
    buffer = BytesIO()
    draw(resolve(record)).write(buffer, ".png")
    return buffer.getvalue()


def _is_light(figure: Figure) -> bool:
    """Whether dark writing can be read on somebody's figure."""
    from matplotlib.colors import to_rgb

    rgb = (np.array(to_rgb(figure.get_facecolor())) * 255).round().astype(np.uint8)
    return bool(luminance(rgb) > 0.18)


def _texts(sheet: Sheet) -> list[str]:
    return [*sheet.query_labels, *sheet.key_labels, sheet.model, sheet.sentence, *sheet.notes]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Caption:
    """The words of a figure: the title and the model above the picture, what must be said below it.

    Attributes:
        above: the lines above.
        below: the lines below.
        head: the height of those above with their margin, in inches.
        foot: likewise of those below.
        margin: round the page, in inches.
    """

    above: list[Line]
    below: list[Line]
    head: float
    foot: float
    margin: float

    def write(self, page: Page) -> None:
        """Write the words: the last line stands on the lower margin."""
        page.write(self.above, self.margin, self.margin)
        if self.below:
            last = self.below[-1].pitch
            page.write(
                self.below, page.size[1] - self.margin - height_of(self.below) + last, self.margin, va="baseline"
            )


def _caption(
    sheet: Sheet, pen: Pen, style: Style, width: float, title: str | None, *more: str, margin: float = MARGIN
) -> _Caption:
    """The words of a sheet and `more` on a page of this width, under the title given, as far as the style has them."""
    room = width - 2 * margin
    title_size, size = TITLE * pen.larger, TEXT * pen.larger
    shown = sheet.sentence if title == "auto" else title or ""
    above = lines(pen, [shown], room, title_size, most=SENTENCE_LINES + 1)
    if len(above) > SENTENCE_LINES:
        last = above[SENTENCE_LINES - 1]
        above = [*above[: SENTENCE_LINES - 1], replace(last, text=clip(last.text, len(last.text) - 1))]
    if title is not None:
        what = sheet.panels[0].name if len(sheet.panels) == 1 else sheet.size
        model = lines(pen, [f"{sheet.model} · {what}"], room, size + 0.5, colour=GREY)
        above += [replace(line, pitch=1.35 * size * POINT) for line in model]
    said = {"all": [sheet.proof, AXES, sheet.legend, *more, *sheet.notes], "receipt": [sheet.proof], "": []}
    below = lines(pen, said[style.caption], room, size, leading=1.3)
    return _Caption(
        above=above,
        below=below,
        head=margin + height_of(above) + (0.25 * size * POINT + 0.1) * bool(above or style.has_title),
        foot=margin + height_of(below) + 0.06 * bool(below or style.has_title),
        margin=margin,
    )


def _colour_bar(page: Page, sheet: Sheet, palette: str | Colormap, place: tuple[float, float, float]) -> None:
    own = sheet.scale == "panel" and len(sheet.panels) > 1
    marks = {0.0: "0", 1.0: "max"} if own else scale_marks(0.0, max(panel.top for panel in sheet.panels))
    page.colour_bar(colours(palette), place, marks)


def _draw_one(
    sheet: Sheet, palette: str | Colormap, pen: Pen, style: Style, *, title: str | None, cbar: bool, annot: bool | None
) -> None:
    """Draw one pattern, large: with the largest letters of the style in which every token has room for its name."""
    sheet = pool(sheet, MOST_CELLS, MOST_CELLS)
    for size in style.sizes:
        pen = replace(pen, least=style.least * TEXT / size)
        place = _place_one(sheet, pen, style, size / TEXT, title=title, cbar=cbar, annot=annot)
        if place.cell >= NAMED:
            break
    n_rows, n_columns = len(sheet.query_labels), len(sheet.key_labels)
    left, top, cell = place.left, place.top, place.cell
    pattern = pen.figure.add_axes((0, 0, 1, 1))
    page = page_of(pen, place.width, place.height)
    page.move(pattern, (left, top, n_columns * cell, n_rows * cell))
    draw_pattern(pattern, sheet, palette, pen, cell=cell, upright=place.upright, annot=annot)
    place.caption.write(page)
    if cbar:
        _colour_bar(
            page, sheet, palette, (left + n_columns * cell + 0.12, top, min(max(0.8, n_rows * cell * 0.6), 2.5))
        )
    enlarge(pen.figure, size / TEXT)
    if style.width and cell < NAMED:
        _tell_of_room(sheet, style, place)


@dataclass(frozen=True, slots=True, kw_only=True)
class _One:
    """Where one pattern stands on its page, in inches for letters of the usual size.

    Attributes:
        width: of the page.
        height: likewise.
        left: where the pattern begins.
        top: likewise, from above.
        cell: the side of a cell.
        upright: whether the keys' names stand upright.
        caption: the words above and below.
    """

    width: float
    height: float
    left: float
    top: float
    cell: float
    upright: bool
    caption: _Caption


def _place_one(
    sheet: Sheet, pen: Pen, style: Style, zoom: float, *, title: str | None, cbar: bool, annot: bool | None
) -> _One:
    """The largest cells in which one pattern fits its style, whose page is made larger by `zoom` afterwards.

    Raises:
        SettingsError: its labels leave no room for it.
    """
    queries, keys = clipped(sheet.query_labels), clipped(sheet.key_labels)
    longest, margin = max(len(queries), len(keys)), style.margin / zoom
    before = margin + 0.3 + pen.widest(queries) + 0.08
    after = (BAR if style.width is None else 0.26 + pen.widest(["0.25"], max(SMALL, pen.least))) * cbar + margin
    cell = min(0.5, max(PITCH, 6.0 / longest), LARGEST / longest)
    width = max(before + len(keys) * cell + after, 4.5)
    if style.width is not None:
        width = style.width / zoom
        cell = min((width - before - after) / len(keys), 0.5 if style.height is None else LARGEST)
    caption = _caption(
        sheet, pen, style, width, title, *([ROUNDED] if number_size(cell, annot, pen.least) else []), margin=margin
    )
    upright = pen.widest(keys) > cell - 0.06
    top = caption.head + (pen.widest(keys) if upright else PITCH) + (0.36 if style.width is None else 0.26)
    if style.height is not None:
        cell = min(cell, (style.height / zoom - top - 0.12 - caption.foot) / len(queries))
        upright = pen.widest(keys) > cell - 0.06
    if cell * zoom < NARROWEST_CELL:
        least = (before + after + len(keys) * NARROWEST_CELL / zoom) * zoom
        raise SettingsError(
            f"{style.width:.3g}in is too narrow for {len(keys)} tokens and their names: it takes {least + 0.05:.1f}in"
        )
    height = top + max(len(queries) * cell, 0.8 * cbar) + 0.12 + caption.foot  # as high as the colour bar at least
    spare = width - before - after - len(keys) * cell if style.width is not None else 0.0
    return _One(
        width=width, height=height, left=before + spare / 2, top=top, cell=cell, upright=upright, caption=caption
    )


def _tell_of_room(sheet: Sheet, style: Style, place: _One) -> None:
    """Tell where a page has no room for the name of every token."""
    zoom = style.sizes[-1] / TEXT
    needed = style.width + (NAMED - place.cell) * len(sheet.key_labels) * zoom if style.width else 0.0
    warnings.warn(
        f"at {style.width:.3g}in not every token can be named in letters of {style.sizes[-1]:g} pt: all of them need "
        f"{math.ceil(10 * needed) / 10:g}in",
        AttnvizWarning,
        stacklevel=5,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grid:
    """Where everything on a sheet of many panels stands, in inches from its upper left corner.

    Attributes:
        across: panels side by side.
        down: lines of panels.
        wrapped: whether panels are a run that goes on in the next line, each with its name, rather than a matrix of
            layers and heads with names at its edges.
        cell: the side of a cell.
        left: where the first panel begins.
        top: likewise, from above.
        panel: width and height of a panel.
        gaps: between panels, across and down.
        names: what stands above each panel; empty where nothing does.
        print: the size of the tokens' labels, in points.
        step: every how many tokens one is named.
    """

    across: int
    down: int
    wrapped: bool
    cell: float
    left: float
    top: float
    panel: tuple[float, float]
    gaps: tuple[float, float]
    names: tuple[str, ...]
    print: float
    step: int

    def place(self, index: int) -> tuple[float, float, float, float]:
        """The place of a panel."""
        row, column = divmod(index, self.across)
        across, down = self.panel[0] + self.gaps[0], self.panel[1] + self.gaps[1]
        return self.left + column * across, self.top + row * down, *self.panel

    @property
    def end(self) -> tuple[float, float]:
        """The right and the lower end of the panels."""
        left, top, width, height = self.place(self.across * self.down - 1)
        return left + width, top + height


def _draw_grid(
    sheet: Sheet, palette: str | Colormap, pen: Pen, style: Style, *, title: str | None, cbar: bool, annot: bool | None
) -> None:
    """Draw all panels of a sheet on one figure."""
    wrapped = len(sheet.layers) == 1 or len(sheet.heads) == 1
    across = _near_square(len(sheet.panels)) if wrapped else len(sheet.heads)
    down = math.ceil(len(sheet.panels) / across)
    sheet = pool(sheet, int(PIXELS * 0.8 / down), int(PIXELS * 0.8 / across))
    least = LEAST_TEXT * POINT / 0.35 if annot else PITCH
    grid = _grid(sheet, pen, (across, down), least=least)
    pen = replace(pen, larger=min(1.6, max(1.0, grid.panel[0] * across / 10)))
    grid = _grid(sheet, pen, (across, down), least=least, size=grid.print)
    right = grid.end[0] + grid.gaps[0] - GAP
    width = max(right + BAR * cbar + MARGIN, 4.5)
    thinned = [f"every {ordinal(grid.step)} token is named"] if grid.step > 1 else []
    caption = _caption(sheet, pen, style, width, title, *thinned, *([ROUNDED] if annot else []))
    grid = _grid(sheet, pen, (across, down), least=least, above=caption.head, size=grid.print)
    page = page_of(pen, width, grid.end[1] + max(0.15, grid.gaps[1] - GAP) + caption.foot)
    caption.write(page)
    # With an alpha channel Matplotlib resamples each panel in one pass instead of two.
    table = np.pad(colours(palette), ((0, 0), (0, 1)), constant_values=255)
    for index, panel in enumerate(sheet.panels):
        place = grid.place(index)
        page.image(pixels(panel.matrix, panel.top, table), place)
        if annot:
            corner = (*place[:2], grid.cell)
            write_numbers(page.ax, panel, palette, pen, number_size(grid.cell, annot), place=corner)
    _label(page, sheet, grid, caption.head)
    if cbar:
        _colour_bar(page, sheet, palette, (right + 0.15, grid.top, min(1.5, max(0.6, grid.panel[1]))))


def _grid(
    sheet: Sheet, pen: Pen, shape: tuple[int, int], *, least: float, above: float = 1.0, size: float = TEXT
) -> _Grid:
    """Cells as large as their labels need, smaller where the sheet would grow too large.

    Args:
        sheet: what is drawn.
        pen: what with.
        shape: panels side by side, and lines of them.
        least: the side of a cell at least, unless the sheet would grow too large.
        above: the height of what stands above the picture.
        size: the size that labels are expected to get, in points.
    """
    across, down = shape
    wrapped, own = len(sheet.layers) == 1 or len(sheet.heads) == 1, sheet.scale == "panel"
    names = tuple(
        " · ".join([*([panel.name] if wrapped else []), *([f"max {panel.top:.3g}"] if own else [])])
        for panel in sheet.panels
    )
    n_rows, n_columns = len(sheet.query_labels), len(sheet.key_labels)
    label_width, label_height = (
        pen.widest(clipped(labels), size) + 0.1 for labels in (sheet.query_labels, sheet.key_labels)
    )
    named = PITCH if wrapped or own else 0.0
    edge = 0 if wrapped else 0.22 * pen.larger
    left = MARGIN + edge + label_width
    top = above + edge + label_height + named
    gaps = (GAP, GAP + named)
    cell = min(
        max(least, (1.5 if wrapped else 0.9) / max(n_rows, n_columns), pen.widest(names, SMALL) / n_columns),
        (LARGEST - left - BAR - across * gaps[0]) / (across * n_columns),
        (LARGEST - top - 1.5 - down * gaps[1]) / (down * n_rows),
    )
    # Where panels are narrower or lower than the names along them, they stand further apart.
    wide, high = pen.widest(names, SMALL), 0.0
    if not wrapped:
        wide = max(wide, pen.widest([f"head {head}" for head in sheet.heads], TEXT * pen.larger))
        high = pen.widest([f"layer {layer}" for layer in sheet.layers], TEXT * pen.larger)
    size = max(LEAST_TEXT, min(TEXT, cell / POINT / 1.15))
    return _Grid(
        across=across,
        down=down,
        wrapped=wrapped,
        cell=cell,
        left=left,
        top=top,
        panel=(n_columns * cell, n_rows * cell),
        gaps=(max(gaps[0], wide + 0.06 - n_columns * cell), max(gaps[1], high + 0.06 - n_rows * cell)),
        names=names,
        print=size,
        step=max(1, math.ceil(1.15 * size * POINT / cell - 0.01)),
    )


def _label(page: Page, sheet: Sheet, grid: _Grid, head: float) -> None:
    """Tokens along the first column and the first row; names of layers and heads, or of each panel."""
    queries, keys = clipped(sheet.query_labels), clipped(sheet.key_labels)
    large = TEXT * page.pen.larger
    for index, (panel, name) in enumerate(zip(sheet.panels, grid.names, strict=True)):
        x, y, width, height = grid.place(index)
        if name:
            page.text(x, y - 0.03, name, SMALL, va="bottom", color=GREY)
        if index % grid.across == 0:
            for i in range(0, len(queries), grid.step):
                page.text(x - 0.04, y + (i + 0.5) * grid.cell, queries[i], grid.print, ha="right", va="center")
            if not grid.wrapped:
                page.text(MARGIN, y + height / 2, f"layer {panel.layer}", large, rotation=90, va="center")
        if index < grid.across:
            above = y - 0.04 - (PITCH if name else 0)
            for i in range(0, len(keys), grid.step):
                middle = x + (i + 0.5) * grid.cell
                page.text(middle, above, keys[i], grid.print, rotation=90, ha="center", va="bottom")
            if not grid.wrapped:
                page.text(x + width / 2, head + 0.08, f"head {panel.head}", large, ha="center", va="center")


def _near_square(n: int) -> int:
    """How many panels to put side by side: a sheet a little wider than high, with the fewest places left empty."""
    least = math.ceil(math.sqrt(n))
    return min(range(least, min(n, math.ceil(1.3 * least)) + 1), key=lambda across: (-n % across, across))
