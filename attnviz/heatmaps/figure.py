"""Heatmaps for paper and slides: PNG, SVG and PDF, drawn with Matplotlib.

One pattern is drawn large; more stand on a grid, layers down and heads across. All of them are one image on one Axes,
whose unit is a cell, so that everything on it is placed by counting cells.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int

from attnviz.attention import Attention, HeadChoice, LayerChoice
from attnviz.errors import SelectionError, SettingsError
from attnviz.heatmaps.difference import Difference
from attnviz.heatmaps.finding import NO_CHANGE, Change, Finder, Finding, find
from attnviz.heatmaps.layout import (
    BAR_GAP,
    PITCH,
    SHORTEST_BAR,
    Layout,
    Words,
    clipped,
    is_wrapped,
    lay_out,
    longest_of,
    number_size,
    ordinal,
    panel_name,
)
from attnviz.look import Look
from attnviz.releases import check_letters
from attnviz.render.fonts import typefaces_for
from attnviz.render.palette import DEFAULT, Palette, hexed, levels, luminance, text_colours
from attnviz.render.picture import (
    POINT,
    STYLES,
    Picture,
    Style,
    colour_bar,
    height_of,
    length_of,
    new_figure,
    scale_marks,
    settings,
    style_of,
    write_lines,
)
from attnviz.render.sheet import BLANK, LOG_LEAST, Panel, Sheet, resolve
from attnviz.render.theme import DARK, LIGHT, Theme, theme_of
from attnviz.text.messages import _

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

LONGEST_BAR = 2.0  # inches


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
    words = Words(title=title, finding=finding, has_bar=cbar, annot=annot, typefaces=typefaces)
    layout = lay_out(sheet, style, words)
    sheet = layout.sheet
    with settings(style, theme, typefaces):
        figure = new_figure(layout.width, layout.height)
        ax = figure.add_axes(layout.box, frame_on=False, xticks=[], yticks=[])
        _draw_cells(ax, sheet, table, theme, layout.corners)
        columns, rows = layout.total
        ax.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5), aspect="auto")
        size = number_size(sheet, layout.cell, annot, style)
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
    typefaces = typefaces_for([*_texts_of(sheet), title or ""])
    # The texts of the user's axes were made with the user's settings.
    text: dict[str, Any] = {"fontfamily": typefaces.families, "parse_math": False}
    with settings(style, theme, typefaces):
        image = _draw_cells(ax, sheet, table, theme, [(0, 0)])
        image.set_label(sheet.description)
        if cbar:
            _bar_beside(ax, table, panel, theme)
        box, (n_rows, n_columns) = ax.get_window_extent(), panel.matrix.shape
        cell = min(box.width / n_columns, box.height / n_rows) / figure.dpi
        step = math.ceil(0.9 * PITCH * style.letters * POINT / cell)
        note = _(" (every {nth} is named)").format(nth=ordinal(step)) if step > 1 else ""
        names = _("key (attended to)") + note, _("query (attends)") + note
        subplot = ax.get_subplotspec()
        if subplot is not None:  # in the user's grid of subplots, only the outer axes have names
            names = (
                names[0] if subplot.is_last_row() else "",
                names[1] if subplot.is_first_col() else "",
            )
        _name_axes(ax, sheet, style.letters, step, names, theme, **text)
        if title is not None:
            heading = sheet.name(panel) if title == "auto" else title
            ax.set_title(heading, size=style.letters + 1, color=theme.ink, **text)
        size = number_size(sheet, cell, annot, style)
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


def _draw_ring(ax: Axes, layout: Layout, theme: Theme, finding: Finding | Change) -> None:
    """Draw a ring around the panel of the link that the title names."""
    from matplotlib.patches import Rectangle

    columns, rows = layout.panel
    for panel, (left, top) in zip(layout.sheet.panels, layout.corners, strict=True):
        if (panel.layer, panel.head) == (finding.layer, finding.head):
            ring = Rectangle((left - 0.5, top - 0.5), columns, rows, fill=False)
            ring.set(edgecolor=theme.accent, linewidth=1.8, zorder=5, clip_on=False)
            ax.add_patch(ring)


def _name_axes(
    ax: Axes,
    sheet: Sheet,
    size: float,
    step: int,
    names: tuple[str, str],
    theme: Theme,
    **text: Any,
) -> None:
    """Name every `step`-th key and query along the axes of one pattern, in letters of this size, and the axes.

    `text` are further arguments of Matplotlib's `Text`.
    """
    queries, keys = clipped(sheet.query_labels), clipped(sheet.key_labels)
    ink: dict[str, Any] = {"size": size, "color": theme.ink, **text}
    ax.set_xticks(range(0, len(keys), step), keys[::step], rotation=90, **ink)
    ax.set_yticks(range(0, len(queries), step), queries[::step], **ink)
    ax.tick_params(length=0, pad=3)
    ax.set_xlabel(names[0], color=theme.quiet, **text)
    ax.set_ylabel(names[1], color=theme.quiet, **text)


def _name_one(ax: Axes, layout: Layout, theme: Theme) -> None:
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
    if longest_of(sheet.key_labels) * layout.label_size * POINT <= 0.95 * layout.cell:
        ax.tick_params(axis="x", rotation=0)


def _name_grid(ax: Axes, layout: Layout, theme: Theme) -> None:
    """Name the queries before each row of panels and the keys above the first, and layers and heads or each panel."""
    sheet, cell = layout.sheet, layout.cell
    pad, above = 0.5 + 0.04 / cell, layout.name_height / cell
    queries, keys = clipped(sheet.query_labels), clipped(sheet.key_labels)
    size: dict[str, Any] = {"size": layout.label_size}
    upright: dict[str, Any] = {"rotation": 90, "ha": "center", "va": "bottom"}
    for index, (left, top) in enumerate(layout.corners):
        if layout.step and index % layout.across == 0:
            for i in range(0, len(queries), layout.step):
                ax.text(-pad, top + i, queries[i], ha="right", va="center", **size)
        if layout.step and index < layout.across:
            for i in range(0, len(keys), layout.step):
                ax.text(left + i, -pad - above, keys[i], **upright, **size)
        name = panel_name(sheet, sheet.panels[index])
        ax.text(left - 0.5, top - pad, name, va="bottom", size=layout.small, color=theme.quiet)
    if not is_wrapped(sheet):
        _number_heads(ax, layout, theme)


def _number_heads(ax: Axes, layout: Layout, theme: Theme) -> None:
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
