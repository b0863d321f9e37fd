"""One head's attention pattern, large: tokens along both sides, and numbers in the cells if they fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int

from attnviz.errors import SelectionError
from attnviz.render.figure.export import usual_settings
from attnviz.render.figure.pen import (
    LEAST_TEXT,
    PITCH,
    POINT,
    SMALL,
    TEXT,
    Pen,
    clipped,
    ordinal,
)
from attnviz.render.fonts import typefaces_for
from attnviz.render.palette import (
    Palette,
    hexed,
    levels,
    luminance,
    text_colours,
)
from attnviz.render.sheet import BLANK, LOG_LEAST, Panel, Sheet
from attnviz.render.theme import DARK, LIGHT
from attnviz.text.messages import _

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_on(
    ax: Axes,
    sheet: Sheet,
    palette: Palette,
    *,
    title: str | None,
    cbar: bool,
    annot: bool | None,
) -> None:
    """Draw the single pattern of a sheet on the user's own axes; the other arguments are those of `draw_pattern`.

    Raises SelectionError: `ax` is not the axes of a figure, or the sheet has several patterns.
    """
    if not hasattr(ax, "imshow"):
        raise SelectionError(f"ax must be the axes of a Matplotlib figure, not {ax!r}")
    if len(sheet.panels) > 1:
        raise SelectionError(
            f"an ax holds one pattern, and this is {sheet.size}: give layer and head"
        )
    root = ax.get_figure(root=True)
    if root is None:
        raise SelectionError("the ax given belongs to no figure")
    from matplotlib.colors import to_rgb

    background = (np.array(to_rgb(root.get_facecolor())) * 255).round().astype(np.uint8)
    is_light = luminance(background) > 0.18
    theme = LIGHT if is_light else replace(DARK, paper=hexed(background))
    table = theme.table(palette, diverging=sheet.center is not None)
    sheet = replace(sheet, has_blanks=theme.has_blanks(table))
    with usual_settings(theme):
        pen = Pen(root, typefaces_for([*texts_of(sheet), title or ""]), theme=theme)
        draw_pattern(ax, sheet, palette, pen, title=title, cbar=cbar, annot=annot)


def texts_of(sheet: Sheet) -> list[str]:
    """Return all texts of a picture of a sheet."""
    return [*sheet.query_labels, *sheet.key_labels, sheet.description, sheet.size, *sheet.notes]


def draw_pattern(
    ax: Axes,
    sheet: Sheet,
    palette: Palette,
    pen: Pen,
    *,
    cell: float | None = None,
    rooms: tuple[float, float] | None = None,
    upright: bool = True,
    title: str | None = "auto",
    cbar: bool = False,
    annot: bool | None = None,
) -> None:
    """Draw one pattern on axes: rows are queries, columns are keys.

    Args:
        ax: the axes to draw on.
        sheet: a sheet with one panel.
        palette: the colours.
        pen: the pen for the figure of these axes.
        cell: the side of a cell in inches, on axes made for the pattern; None on the user's own axes, which have the
            keys at the bottom and no caption (the label of the image holds its text).
        rooms: how long the names of the keys' and the queries' axes may be, in inches; None is the size of the axes.
        upright: whether the labels of the keys are vertical.
        title: the title of the user's own axes; `auto` names layer and head, None writes none.
        cbar: whether the user's own axes give up some room for a colour bar.
        annot: whether to write numbers in the cells; None writes them if they are large enough to read.
    """
    (panel,) = sheet.panels
    is_diverging = panel.center is not None
    table = pen.theme.table(palette, diverging=is_diverging)
    queries, keys = clipped(sheet.query_labels), clipped(sheet.key_labels)
    image = ax.imshow(
        pen.theme.pixels(
            panel.above_bottom, panel.span, table, log=panel.log, diverging=is_diverging
        ),
        aspect="equal" if cell is None else "auto",
        interpolation="none",
    )
    image.set_label(sheet.description)
    hatch_masked(ax, pen, sheet.masked_from, len(keys), place=(-0.5, -0.5, 1.0))
    if cell is None and cbar:
        _bar_beside(ax, table, panel, pen)
    box = ax.get_window_extent()
    if rooms is None:
        rooms = box.width / pen.figure.dpi, box.height / pen.figure.dpi
    if cell is None:
        cell = min(box.width / len(keys), box.height / len(queries)) / pen.figure.dpi
        if title is not None:
            ax.set_title(sheet.name(panel) if title == "auto" else title, **pen.style(TEXT + 1))
    else:
        ax.xaxis.tick_top()
        ax.xaxis.set_label_position("top")
    step = max(1, math.ceil(PITCH * 0.9 / cell))
    ax.set_xticks(
        range(0, len(keys), step), keys[::step], rotation=90 if upright else 0, **pen.style()
    )
    ax.set_yticks(range(0, len(queries), step), queries[::step], **pen.style())
    ax.tick_params(length=0, pad=3)
    label_note = _(" (every {nth} is named)").format(nth=ordinal(step)) if step > 1 else ""
    style = pen.style(color=pen.quiet)
    # In the user's grid of subplots, only the outer axes have axis labels.
    subplot = ax.get_subplotspec()
    if subplot is None or subplot.is_last_row():
        name = _("key (attended to)")
        choices = [name + label_note, name, _("key")]
        ax.set_xlabel(_first_fitting(choices, rooms[0], pen), labelpad=4, **style)
    if subplot is None or subplot.is_first_col():
        name = _("query (attends)")
        choices = [name + label_note, name, _("query")]
        ax.set_ylabel(_first_fitting(choices, rooms[1], pen), labelpad=4, **style)
    ax.spines[:].set(color=pen.theme.frame, linewidth=0.6)
    write_numbers(
        ax, panel, palette, pen, number_size(cell, annot, pen.least), place=(-0.5, -0.5, 1.0)
    )


def _first_fitting(texts: Sequence[str], room: float, pen: Pen) -> str:
    """Return the first text that is at most `room` inches long; none if all are longer."""
    return next((text for text in texts if pen.width(text) <= room), "")


def hatch_masked(
    ax: Axes,
    pen: Pen,
    masked_from: Int[np.ndarray, " row"],
    n_columns: int,
    *,
    place: tuple[float, float, float],
) -> None:
    """Hatch the cells of a panel from the first masked column of each row on.

    `place` is the panel's left edge, its top edge, and the side of a cell.
    """
    from matplotlib.patches import Polygon

    if (masked_from == n_columns).all():
        return
    left, top, cell = place
    # The border goes down along the first masked cell of each row, and back up along the right edge.
    right = left + n_columns * cell
    corners = []
    for row, column in enumerate(masked_from):
        x = left + column * cell
        corners += [(x, top + row * cell), (x, top + (row + 1) * cell)]
    corners += [(right, top + len(masked_from) * cell), (right, top)]
    ax.add_patch(Polygon(corners, closed=True, zorder=2.5, **pen.theme.masked))


def _bar_beside(ax: Axes, table: np.ndarray, panel: Panel, pen: Pen) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, LogNorm, Normalize

    norm = Normalize(panel.bottom, panel.top or 1.0)
    if panel.log:
        norm = LogNorm(LOG_LEAST, max(panel.top, 10 * LOG_LEAST))
    bar = pen.figure.colorbar(ScalarMappable(norm, ListedColormap(table / 255)), ax=ax)
    if panel.log:
        bar.ax.yaxis.set_major_formatter("{x:g}")
        bar.ax.minorticks_off()
    bar.ax.tick_params(labelsize=SMALL, color=pen.quiet, labelcolor=pen.quiet)
    bar.outline.set(edgecolor=pen.theme.frame, linewidth=0.6)


def write_numbers(
    ax: Axes,
    panel: Panel,
    palette: Palette,
    pen: Pen,
    size: float,
    *,
    place: tuple[float, float, float],
) -> None:
    """Write the weights of a panel into its cells, in a font of `size` points; size 0 writes none.

    `place` is the left edge and the top edge of the panel, and the side of a cell.
    """
    left, top, cell = place
    table = pen.theme.table(palette, diverging=panel.center is not None)
    inks = text_colours(table)[levels(panel.above_bottom, panel.span, log=panel.log)]
    for row, column in np.argwhere(np.abs(panel.matrix) >= BLANK) if size else ():
        text = number_text(float(panel.matrix[row, column]), signed=panel.center == 0)
        style = pen.style(
            size,
            color=inks[row, column],
            ha="center",
            va="center",
            zorder=4,
        )
        centre = (left + (column + 0.5) * cell, top + (row + 0.5) * cell)
        ax.text(*centre, text, **style)


def number_text(value: float, *, signed: bool = False) -> str:
    """Return a number for a cell, such as ``.25``, ``1`` or ``12.5``; a `signed` one with its sign, ``+.25``."""
    size = abs(value)
    digits = f"{size:.2f}" if size < 9.995 else f"{size:.3g}"
    digits = "1" if digits == "1.00" else digits.removeprefix("0")
    if value < 0:
        return f"−{digits}"
    return f"+{digits}" if signed else digits


def number_size(cell: float, annot: bool | None, least: float = LEAST_TEXT) -> float:
    """Return the font size in points for numbers in cells of `cell` inches, or 0 if no numbers are written.

    With `annot` None, numbers are written if their size is at least `least`; with True always, with False never.
    """
    size = min(TEXT + 1, cell / POINT * 0.36)
    return size if (size >= least if annot is None else annot) else 0.0
