"""Figures made and written: a blank figure, Matplotlib's own settings, PNG, SVG and PDF.

Nothing here touches pyplot, and Matplotlib's settings are what they were when a function returns: a picture looks the
same whatever a notebook has set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnviz.render.figure.pen import DPI, PIXELS, Pen
from attnviz.render.fonts import Typefaces, typefaces_for
from attnviz.render.names import PICTURES

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure, and what its file says of it.

    Attributes:
        pen: what it was drawn with.
        title: what a file calls the picture.
        description: what else it says of it: how it is read, and the receipt.
    """

    pen: Pen
    title: str
    description: str

    @property
    def figure(self) -> Figure:
        """The figure itself."""
        return self.pen.figure

    def write(self, path: Path | BytesIO, suffix: str) -> Typefaces:
        """Write the picture into a file; the same picture gives the same bytes each time.

        Args:
            path: the file, or what it is written into.
            suffix: one of `attnviz.render.names.PICTURES`.

        Returns:
            The fonts used, with the characters that none has.
        """
        words = {"{title}": self.title, "{description}": self.description}
        options = dict(PICTURES[suffix])
        options["metadata"] = {field: words.get(text, text) for field, text in options["metadata"].items()}
        with usual_settings():
            dpi = min(DPI, PIXELS / max(self.figure.get_size_inches()))
            self.figure.savefig(path, format=suffix.removeprefix("."), dpi=dpi, **options)
        return self.pen.typefaces


def blank_figure(texts: Sequence[str]) -> Pen:
    """A white figure with nothing on it, and what to draw these texts on it with; to be called in `usual_settings`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure(dpi=DPI, facecolor="white")
    FigureCanvasAgg(made)
    return Pen(made, typefaces_for(texts))


@contextmanager
def usual_settings() -> Iterator[None]:
    """Matplotlib as it comes while a figure is made, the user's settings afterwards.

    SVG files get the same names each time, and each panel stays an image of its own, a pixel a cell, sharp at any size.
    """
    from matplotlib import rc_context, rcParamsDefault

    usual: dict[Any, Any] = {name: value for name, value in rcParamsDefault.items() if name != "backend"}
    with rc_context(usual | {"svg.hashsalt": "attnviz", "image.composite_image": False}):
        yield
