"""Heatmaps for paper and slides: PNG, SVG and PDF, drawn with Matplotlib.

Nothing here touches pyplot, and Matplotlib's settings are what they were when a function returns: a picture looks the
same whatever a notebook has set.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from attnviz.attention import Attention
from attnviz.errors import SelectionError
from attnviz.heatmaps.grid import draw_grid
from attnviz.render.figure.export import blank_sheet, save, usual_settings
from attnviz.render.figure.pattern import draw_pattern, draw_single
from attnviz.render.figure.pen import BLACK, FRAME, GREY, Pen
from attnviz.render.fonts import Typefaces, typefaces_for
from attnviz.render.palette import DEFAULT, luminance
from attnviz.render.sheet import Scale, Sheet, resolve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure


def heatmap(
    record: Attention,
    *,
    layer: int | None = None,
    head: int | None = None,
    scale: Scale = "shared",
    palette: str | Colormap = DEFAULT,
    ax: Axes | None = None,
) -> Axes:
    """Draw a record: one head's pattern where layer and head are given, else the sheet of all that is asked for.

    Args:
        record: what to draw.
        layer: its number, counted from 0, negative from the end; None draws all layers.
        head: likewise.
        scale: `shared`, `panel` or `unit`: where the colour scale of each panel ends.
        palette: one of `attnviz.render.names.PALETTES`, or any other colormap of Matplotlib or seaborn.
        ax: where to draw one pattern; without it a new figure is made.

    Returns:
        The axes drawn on; its `figure` can be saved.

    Raises:
        SelectionError: a layer, head, scale or palette that is not there, or an `ax` for more than one pattern.
    """
    chosen = record.select(None if layer is None else [layer], None if head is None else [head])
    sheet = resolve(chosen, scale)
    if ax is None:
        return figure(sheet, palette).axes[0]
    if len(sheet.panels) > 1:
        raise SelectionError(f"an ax holds one pattern, and this is {sheet.size}: give layer and head")
    root = ax.get_figure(root=True)
    if root is None:
        raise SelectionError("the ax given belongs to no figure")
    with usual_settings():
        ink, quiet = (BLACK, GREY) if _is_light(root) else ("white", FRAME)
        draw_pattern(ax, sheet, palette, Pen(root, typefaces_for(_texts(sheet)), ink=ink, quiet=quiet))
    return ax


def figure(
    sheet: Sheet,
    palette: str | Colormap = DEFAULT,
    *,
    title: str | None = "auto",
    cbar: bool = True,
    annot: bool | None = None,
) -> Figure:
    """A figure of a sheet: one pattern large, or all panels on a grid.

    Args:
        sheet: what to draw.
        palette: as `heatmap` takes it.
        title: `auto`, which is the sentence, or another title; None leaves out the title and the model below it.
        cbar: whether a colour bar stands beside the panels.
        annot: whether the weights stand in the cells; None: where one pattern has room for them.
    """
    with usual_settings():
        pen = blank_sheet([*_texts(sheet), title or ""])
        draw = draw_single if len(sheet.panels) == 1 else draw_grid
        draw(sheet, palette, pen, title=title, cbar=cbar, annot=annot)
    return pen.figure


def write(sheet: Sheet, path: Path | BytesIO, suffix: str, palette: str = DEFAULT) -> Typefaces:
    """Draw a sheet into a file.

    Args:
        sheet: what to draw.
        path: the file, or what it is written into.
        suffix: `.png`, `.svg` or `.pdf`.
        palette: one of `attnviz.render.palette.PALETTES`.

    Returns:
        The fonts used, with the characters that none has.
    """
    save(figure(sheet, palette), path, suffix, title=sheet.model, description=sheet.description)
    return typefaces_for(_texts(sheet))


def png(record: Attention) -> bytes:
    """The picture of a record, as a notebook shows it."""
    buffer = BytesIO()
    write(resolve(record), buffer, ".png")
    return buffer.getvalue()


def _is_light(figure: Figure) -> bool:
    """Whether dark writing can be read on somebody's figure."""
    from matplotlib.colors import to_rgb

    rgb = (np.array(to_rgb(figure.get_facecolor())) * 255).round().astype(np.uint8)
    return bool(luminance(rgb) > 0.18)


def _texts(sheet: Sheet) -> list[str]:
    return [*sheet.query_labels, *sheet.key_labels, sheet.model, sheet.sentence, *sheet.notes]
