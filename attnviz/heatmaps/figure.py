"""Heatmaps for paper and slides: PNG, SVG and PDF, drawn with Matplotlib.

One pattern is drawn large; more stand on a grid, layers down and heads across. All of them are one image on one Axes,
whose unit is a cell, so that everything on it is placed by counting cells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from attnviz.attention import Attention, HeadChoice, LayerChoice
from attnviz.errors import SelectionError, SettingsError
from attnviz.heatmaps.difference import Difference, sheet_of
from attnviz.heatmaps.finding import NO_CHANGE, Change, Finding, find
from attnviz.heatmaps.layout import (
    BAR_GAP,
    BAR_WIDTH,
    SHORTEST_BAR,
    Layout,
    Words,
    is_wrapped,
    lay_out,
    longest_of,
    number_size,
    ordinal,
    panel_name,
    step_of,
)
from attnviz.look import DEFAULT_PALETTE, Look, Palette
from attnviz.releases import check_letters
from attnviz.render.fonts import typefaces_for
from attnviz.render.palette import BLANK, LOG_LEAST, hexed, luminance, text_colours
from attnviz.render.picture import (
    LONGEST_LABEL,
    POINT,
    STYLES,
    Picture,
    height_of,
    length_of,
    new_figure,
    settings,
    style_of,
    write_lines,
)
from attnviz.render.sheet import Sheet
from attnviz.render.theme import DARK, LIGHT, Theme, theme_of
from attnviz.text.display import clip, number_text, visible
from attnviz.text.messages import _

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

LONGEST_BAR = 2.0  # inches


def draw_result(
    result: Attention | Difference,
    look: Look,
    layer: LayerChoice = None,
    head: HeadChoice = None,
) -> Picture:
    """Return the picture of a record or a difference; layer and head are as for `attnviz.heatmap`.

    Raises SelectionError: no such layer, head or palette.
    """
    _, chosen = result.choose(layer, head)
    return draw(sheet_of(chosen, look.scale), look)


def draw(
    sheet: Sheet,
    look: Look,
    *,
    title: str | None = "auto",
    cbar: bool = True,
    annot: bool | None = None,
) -> Picture:
    """Draw a sheet: one pattern large, or all panels on a grid; the arguments are as for `attnviz.heatmap`.

    The title names the link that stands out most, or the largest change, and its head has a ring. Without a `title`,
    the line with the model is left out too. An `AttnvizWarning` says if names of tokens have no room.

    Raises:
        SelectionError: an unknown palette.
        SettingsError: a size that is too small for the tokens.
    """
    style = style_of(look)
    theme = theme_of(look.theme, DEFAULT_PALETTE if sheet.signed else look.palette)
    finding: Finding | Change | None = None
    if title == "auto" and not style.has_title:
        title = None
    if title == "auto" and sheet.signed:
        finding = next(iter(sheet.changes), None)
        title = title if finding else _(NO_CHANGE)
    elif title == "auto":
        finding = find(sheet.record)
    sheet, table = _prepared(sheet, look.palette, theme)
    texts = [*_texts_of(sheet), finding.sentence if finding else "", title or ""]
    check_letters(texts)
    typefaces = typefaces_for(texts)
    words = Words(title=title, finding=finding, has_bar=cbar, annot=annot, typefaces=typefaces)
    layout = lay_out(sheet, style, words)
    sheet = layout.sheet
    width, height, cell = layout.width, layout.height, layout.cell
    columns, rows = layout.total
    with settings(style, theme, typefaces):
        figure = new_figure(width, height)
        bottom = height - layout.top - rows * cell
        sides = columns * cell / width, rows * cell / height
        ax = figure.add_axes(
            (layout.left / width, bottom / height, *sides), frame_on=False, xticks=[], yticks=[]
        )
        _draw_cells(ax, sheet, table, theme, layout.corners)
        ax.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5), aspect="auto")
        _write_numbers(ax, sheet, table, layout.corners, number_size(sheet, cell, annot, style))
        if len(sheet.panels) == 1:
            _name_one(ax, layout, theme)
        else:
            _name_grid(ax, layout, theme)
            if finding is not None:
                _draw_ring(ax, layout, theme, finding)
        foot = height - style.margin - height_of(layout.below)
        write_lines(figure, theme, layout.above, style.margin, style.margin)
        write_lines(figure, theme, layout.below, style.margin, foot)
        if cbar:
            length = min(max(SHORTEST_BAR, 0.6 * rows * cell), LONGEST_BAR, foot - layout.top - 0.1)
            left, top = layout.left + columns * cell + BAR_GAP, height - layout.top
            bar = figure.add_axes(
                (left / width, (top - length) / height, BAR_WIDTH / width, length / height)
            )
            _draw_bar(figure, sheet, table, theme, style.small, cax=bar)
    return Picture(
        figure=figure,
        title=sheet.model,
        description=sheet.description,
        style=style,
        theme=theme,
        typefaces=typefaces,
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
    sheet, table = _prepared(sheet, palette, theme)
    typefaces = typefaces_for([*_texts_of(sheet), title or ""])
    # The texts of the user's axes were made with the user's settings.
    text: dict[str, Any] = {"fontfamily": typefaces.families, "parse_math": False}
    with settings(style, theme, typefaces):
        image = _draw_cells(ax, sheet, table, theme, [(0, 0)])
        image.set_label(sheet.description)
        if cbar:
            _draw_bar(figure, sheet, table, theme, style.small, ax=ax)
        box = ax.get_window_extent()
        cell = min(box.width / len(sheet.key_labels), box.height / len(sheet.query_labels))
        cell /= figure.dpi
        step = step_of(0.9 * style.letters, cell)
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
            heading = sheet.name(sheet.panels[0]) if title == "auto" else title
            ax.set_title(heading, size=style.letters + 1, color=theme.ink, **text)
        _write_numbers(ax, sheet, table, [(0, 0)], number_size(sheet, cell, annot, style))


def _prepared(sheet: Sheet, palette: Palette, theme: Theme) -> tuple[Sheet, np.ndarray]:
    """Return the sheet as it is in the colours of a palette, with labels that are not too long, and these colours."""
    table = theme.diverging() if sheet.signed else theme.colours(palette)
    queries, keys = (
        tuple(clip(label, LONGEST_LABEL) for label in labels)
        for labels in (sheet.query_labels, sheet.key_labels)
    )
    has_blanks = theme.has_blanks(table)
    return replace(sheet, query_labels=queries, key_labels=keys, has_blanks=has_blanks), table


def _draw_bar(
    figure: Figure, sheet: Sheet, table: np.ndarray, theme: Theme, size: float, **place: Any
) -> None:
    """Draw the colour bar, with numbers of this size: on the axes `cax`, or beside `ax`, which gives up some room."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, LogNorm, Normalize
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    panel = max(sheet.panels, key=lambda panel: panel.top)
    norm: Normalize = Normalize(panel.bottom, panel.top or 1.0)
    if panel.log:
        norm = LogNorm(LOG_LEAST, max(panel.top, 10 * LOG_LEAST))
    bar = figure.colorbar(ScalarMappable(norm, ListedColormap(table / 255)), **place)
    if sheet.scale == "panel" and len(sheet.panels) > 1:
        bar.set_ticks([panel.bottom, panel.top], labels=["min" if panel.bottom else "0", "max"])
    else:
        if not panel.log:
            bar.locator = MaxNLocator(5, steps=[1, 2, 2.5, 5, 10])
        bar.formatter = FuncFormatter(lambda value, _place: _mark(value, signed=sheet.signed))
        bar.update_ticks()
    bar.minorticks_off()
    bar.ax.tick_params(labelsize=size, length=2, pad=2, color=theme.quiet, labelcolor=theme.quiet)
    bar.outline.set(edgecolor=theme.frame, linewidth=0.6)


def _mark(value: float, *, signed: bool) -> str:
    """Return a number of a colour bar, such as ``20%``; a `signed` one with its sign, ``+20%``."""
    sign = "−" if value < 0 else "+" if signed and value > 0 else ""
    return f"{sign}{abs(100 * value):.4g}%"


def check_title(title: str | None) -> str | None:
    """Return the title, in which all but letters and line breaks is spelled out, since no SVG file may contain it.

    Raises SettingsError: it is not text.
    """
    if title is None:
        return None
    if not isinstance(title, str):
        raise SettingsError(f"it must be text, not {title!r}", "title")
    return "\n".join(map(visible, title.split("\n")))


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

    n_rows, n_columns = len(sheet.query_labels), len(sheet.key_labels)
    columns, rows = (max(corner[i] for corner in corners) for i in (0, 1))
    tiles = np.zeros((rows + n_rows, columns + n_columns, 4), dtype=np.uint8)  # transparent
    frames, hatches = [], []
    masked_from = sheet.masked_from
    # the outline of masked cells: down along the first one of each row, and back up on the right
    steps = [(column, row + i) for row, column in enumerate(masked_from) for i in (0, 1)]
    outline = np.array([*steps, (n_columns, n_rows), (n_columns, 0)])
    for panel, (column, row) in zip(sheet.panels, corners, strict=True):
        tile = tiles[row : row + n_rows, column : column + n_columns]
        tile[..., :3] = theme.painted(panel.levels, panel.blanks, table)
        tile[..., 3] = 255
        left, top = column - 0.5, row - 0.5
        frames.append(Rectangle((left, top), n_columns, n_rows))
        if (masked_from < n_columns).any():
            hatches.append(Polygon(outline + np.array((left, top))))
    image = ax.imshow(tiles, interpolation="none")
    ax.add_collection(PatchCollection(hatches, zorder=2.5, **theme.masked))
    # a line around a panel, so that pale cells at its border have an edge
    frame: dict[str, Any] = {"facecolor": "none", "edgecolor": theme.frame, "linewidth": 0.6}
    ax.add_collection(PatchCollection(frames, zorder=3, clip_on=False, **frame))
    return image


def _write_numbers(
    ax: Axes,
    sheet: Sheet,
    table: np.ndarray,
    corners: Sequence[tuple[int, int]],
    size: float,
) -> None:
    """Write the weights into their cells in percent, dark on pale cells and white on dark ones; none if `size` is 0."""
    if not size:
        return
    colours = text_colours(table)
    for panel, (left, top) in zip(sheet.panels, corners, strict=True):
        inks = colours[panel.levels]
        for row, column in np.argwhere(np.abs(panel.matrix) >= BLANK):
            ax.text(
                left + column,
                top + row,
                number_text(float(panel.matrix[row, column]), signed=panel.signed),
                size=size,
                color=inks[row, column],
                ha="center",
                va="center",
                zorder=4,
            )


def _draw_ring(ax: Axes, layout: Layout, theme: Theme, finding: Finding | Change) -> None:
    """Draw a ring around the panel of the link that the title names."""
    from matplotlib.patches import Rectangle

    sheet = layout.sheet
    places = [(panel.layer, panel.head) for panel in sheet.panels]
    left, top = layout.corners[places.index((finding.layer, finding.head))]
    columns, rows = len(sheet.key_labels), len(sheet.query_labels)
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
    queries, keys = sheet.query_labels, sheet.key_labels
    ink: dict[str, Any] = {"size": size, "color": theme.ink, **text}
    ax.set_xticks(range(0, len(keys), step), keys[::step], rotation=90, **ink)
    ax.set_yticks(range(0, len(queries), step), queries[::step], **ink)
    ax.tick_params(length=0, pad=3)
    ax.set_xlabel(names[0], color=theme.quiet, **text)
    ax.set_ylabel(names[1], color=theme.quiet, **text)


def _name_one(ax: Axes, layout: Layout, theme: Theme) -> None:
    """Name the tokens and the axes of a single pattern, its keys above it."""
    sheet = layout.sheet
    columns, rows = layout.total
    names = _("key (attended to)"), _("query (attends)")
    if max(map(length_of, names)) * layout.size * POINT > min(columns, rows) * layout.cell:
        names = _("key"), _("query")
    _name_axes(ax, sheet, layout.label_size, layout.step, names, theme)
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    ax.tick_params(length=0, pad=2)
    if longest_of(sheet.key_labels) * layout.label_size * POINT <= 0.95 * layout.cell:
        ax.tick_params(axis="x", rotation=0)


def _name_grid(ax: Axes, layout: Layout, theme: Theme) -> None:
    """Name the queries before each row of panels and the keys above the first, and layers and heads or each panel.

    The names are texts, because Matplotlib takes much longer for as many ticks.
    """
    sheet, step = layout.sheet, layout.step
    columns, rows = len(sheet.key_labels), len(sheet.query_labels)
    before, above = (-0.5 - room / layout.cell for room in (0.04, layout.name_height + 0.04))
    queries, keys = sheet.query_labels, sheet.key_labels
    size: dict[str, Any] = {"size": layout.label_size}
    for panel, (left, top) in zip(sheet.panels, layout.corners, strict=True):
        if step and left == 0:
            for i in range(0, rows, step):
                ax.text(before, top + i, queries[i], ha="right", va="center", **size)
        if step and top == 0:
            for i in range(0, columns, step):
                ax.text(left + i, above, keys[i], rotation=90, ha="center", va="bottom", **size)
        name = panel_name(sheet, panel)
        ax.text(
            left - 0.5, top + before, name, va="bottom", size=layout.style.small, color=theme.quiet
        )
    if is_wrapped(sheet):
        return

    # the numbers of the heads along the upper edge, and of the layers along the left one
    x0, y0 = (-0.5 - room / layout.cell for room in layout.edges)
    middle, centre = ((total - 1) / 2 for total in layout.total)
    line = layout.size * POINT / layout.cell  # the height of a letter, in cells
    words: dict[str, Any] = {"size": layout.size}
    ax.text(middle, y0, _("head"), ha="center", va="top", color=theme.quiet, **words)
    name = _("layer")
    # The one Korean syllable is hard to read on its side.
    rotation = 0.0 if len(name) == 1 else 90.0
    ax.text(x0, centre, name, va="center", rotation=rotation, color=theme.quiet, **words)
    # where panels are narrow, some numbers are left out, so that they do not touch
    every = math.ceil((length_of(f"{sheet.heads[-1]}") + 0.6) * line / layout.pitch[0])
    for index, head in [*enumerate(sheet.heads)][::every]:
        x = index * layout.pitch[0] + (columns - 1) / 2
        ax.text(x, y0 + 1.4 * line, f"{head}", ha="center", va="top", **words)
    for index, layer in enumerate(sheet.layers):
        y = index * layout.pitch[1] + (rows - 1) / 2
        ax.text(x0 + 1.4 * line, y, f"{layer}", va="center", **words)
