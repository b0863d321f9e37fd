"""Figures made and written: a blank sheet, Matplotlib's own settings, PNG, SVG and PDF.

Nothing here touches pyplot, and Matplotlib's settings are what they were when a function returns: a picture looks the
same whatever a notebook has set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnviz.render.figure.pen import DPI, PIXELS, Pen
from attnviz.render.fonts import typefaces_for
from attnviz.render.names import PICTURES

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def blank_sheet(texts: Sequence[str]) -> Pen:
    """A white figure with nothing on it, and what to draw these texts on it with; to be called in `usual_settings`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure(dpi=DPI, facecolor="white")
    FigureCanvasAgg(made)
    return Pen(made, typefaces_for(texts))


def save(made: Figure, path: Path | BytesIO, suffix: str, *, title: str, description: str) -> None:
    """Write a figure into a file, which says what it shows; the same figure gives the same bytes each time.

    Args:
        made: the figure.
        path: the file, or what it is written into.
        suffix: one of `attnviz.render.names.PICTURES`.
        title: what the file calls the picture.
        description: what else it says of it.
    """
    words = {"{title}": title, "{description}": description}
    options = dict(PICTURES[suffix])
    options["metadata"] = {field: words.get(text, text) for field, text in options["metadata"].items()}
    with usual_settings():
        dpi = min(DPI, PIXELS / max(made.get_size_inches()))
        made.savefig(path, format=suffix.removeprefix("."), dpi=dpi, **options)


@contextmanager
def usual_settings() -> Iterator[None]:
    """Matplotlib as it comes while a figure is made, the user's settings afterwards.

    SVG files get the same names each time, and each panel stays an image of its own, a pixel a cell, sharp at any size.
    """
    from matplotlib import rc_context, rcParamsDefault

    usual: dict[Any, Any] = {name: value for name, value in rcParamsDefault.items() if name != "backend"}
    with rc_context(usual | {"svg.hashsalt": "attnviz", "image.composite_image": False}):
        yield
