"""Heatmaps for paper and slides: PNG, SVG and PDF, drawn with Matplotlib.

Nothing here touches pyplot, and Matplotlib's settings are what they were when a function returns: a picture looks the
same whatever a notebook has set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attnviz.attention import Attention
from attnviz.errors import SelectionError
from attnviz.views.fonts import Typefaces, typefaces_for
from attnviz.views.grid import draw_grid
from attnviz.views.heatmap import AXES, Scale, Sheet, resolve
from attnviz.views.palette import DEFAULT, luminance
from attnviz.views.pattern import draw_pattern, draw_single
from attnviz.views.pen import BLACK, DPI, FRAME, GREY, PIXELS, Pen

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def heatmap(
    record: Attention,
    *,
    layer: int | None = None,
    head: int | None = None,
    scale: Scale = "shared",
    palette: str = DEFAULT,
    ax: Axes | None = None,
) -> Axes:
    """Draw a record: one head's pattern where layer and head are given, else the sheet of all that is asked for.

    Args:
        record: what to draw.
        layer: its number, counted from 0, negative from the end; None draws all layers.
        head: likewise.
        scale: `shared`, `panel` or `unit`: where the colour scale of each panel ends.
        palette: one of `attnviz.views.palette.PALETTES`.
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


def figure(sheet: Sheet, palette: str = DEFAULT) -> Figure:
    """A figure of a sheet: one pattern large, or all panels on a grid."""
    with usual_settings():
        pen = blank_sheet(_texts(sheet))
        (draw_single if len(sheet.panels) == 1 else draw_grid)(sheet, palette, pen)
    return pen.figure


def blank_sheet(texts: Sequence[str]) -> Pen:
    """A white figure with nothing on it, and what to draw these texts on it with; to be called in `usual_settings`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure(dpi=DPI, facecolor="white")
    FigureCanvasAgg(made)
    return Pen(made, typefaces_for(texts))


def write(sheet: Sheet, path: Path | BytesIO, suffix: str, palette: str = DEFAULT) -> Typefaces:
    """Draw a sheet into a file.

    Args:
        sheet: what to draw.
        path: the file, or what it is written into.
        suffix: `.png`, `.svg` or `.pdf`.
        palette: one of `attnviz.views.palette.PALETTES`.

    Returns:
        The fonts used, with the characters that none has.
    """
    description = f"{sheet.model}; {sheet.sentence}; {AXES}; {sheet.legend}; {sheet.proof}"
    save(figure(sheet, palette), path, suffix, title=sheet.model, description=description)
    return typefaces_for(_texts(sheet))


def save(made: Figure, path: Path | BytesIO, suffix: str, *, title: str, description: str) -> None:
    """Write a figure into a file, which says what it shows; the same figure gives the same bytes each time.

    Args:
        made: the figure.
        path: the file, or what it is written into.
        suffix: `.png`, `.svg` or `.pdf`.
        title: what the file calls the picture.
        description: what else it says of it.
    """
    kind = suffix.removeprefix(".")
    # Nearly as small as at higher levels, in half the time.
    options: dict[str, Any] = {"pil_kwargs": {"compress_level": 2}} if kind == "png" else {}
    with usual_settings():
        made.savefig(
            path,
            format=kind,
            dpi=min(DPI, PIXELS / max(made.get_size_inches())),
            metadata={
                "png": {"Title": title, "Description": description, "Software": "attnviz"},
                "svg": {"Title": title, "Description": description, "Creator": "attnviz", "Date": None},
                "pdf": {"Title": title, "Subject": description, "Creator": "attnviz", "CreationDate": None},
            }[kind],
            **options,
        )


def png(record: Attention) -> bytes:
    """The picture of a record, as a notebook shows it."""
    buffer = BytesIO()
    write(resolve(record), buffer, ".png")
    return buffer.getvalue()


@contextmanager
def usual_settings() -> Iterator[None]:
    """Matplotlib as it comes while a figure is made, the user's settings afterwards.

    SVG files get the same names each time, and each panel stays an image of its own, a pixel a cell, sharp at any size.
    """
    from matplotlib import rc_context, rcParamsDefault

    usual: dict[Any, Any] = {name: value for name, value in rcParamsDefault.items() if name != "backend"}
    with rc_context(usual | {"svg.hashsalt": "attnviz", "image.composite_image": False}):
        yield


def _is_light(figure: Figure) -> bool:
    """Whether dark writing can be read on somebody's figure."""
    from matplotlib.colors import to_rgb

    rgb = (np.array(to_rgb(figure.get_facecolor())) * 255).round().astype(np.uint8)
    return bool(luminance(rgb) > 0.18)


def _texts(sheet: Sheet) -> list[str]:
    return [*sheet.query_labels, *sheet.key_labels, sheet.model, sheet.sentence, *sheet.notes]
