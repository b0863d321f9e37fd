"""Figures made and written: a blank figure, Matplotlib's own settings, PNG, SVG and PDF.

Nothing here touches pyplot, and Matplotlib's settings are what they were when a function returns: a picture looks the
same whatever a notebook has set.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnviz.errors import AttnvizWarning
from attnviz.render.figure.pen import DPI, PIXELS, Pen
from attnviz.render.figure.style import MOST_PIXELS, STYLES, Style, fit
from attnviz.render.fonts import Typefaces, advice, typefaces_for

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LETTERS = {
    "svg.hashsalt": "attnviz",
    "image.composite_image": False,
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
}
FALLBACKS = (
    b"'DejaVu Sans', Verdana, 'Noto Sans', 'Noto Sans CJK KR', 'Malgun Gothic',"
    b" 'Apple SD Gothic Neo', sans-serif"
)
"""The fonts in which an SVG is read where ours is not installed; the first are as wide."""


OPTIONS: dict[str, dict[str, Any]] = {
    ".png": {
        "metadata": {"Title": "{title}", "Description": "{description}", "Software": "attnviz"},
        "pil_kwargs": {
            "compress_level": 2
        },  # nearly as small as at higher levels, in half the time
    },
    ".svg": {
        "metadata": {
            "Title": "{title}",
            "Description": "{description}",
            "Creator": "attnviz",
            "Date": None,
        }
    },
    ".pdf": {
        "metadata": {
            "Title": "{title}",
            "Subject": "{description}",
            "Creator": "attnviz",
            "CreationDate": None,
        }
    },
}
"""By ending what Matplotlib's `savefig` is given; no file holds the time of its making."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure, and the description that its file holds."""

    pen: Pen  # what it was drawn with
    title: str
    description: str  # how it is read, and the receipt
    style: Style = STYLES["sheet"]  # what it is for

    @property
    def figure(self) -> Figure:
        """The figure itself."""
        return self.pen.figure

    def fitted(self, style: Style) -> Picture:
        """Return the same figure in the size of a style; an `AttnvizWarning` tells if it cannot be read."""
        fit(self.pen, style)
        return replace(self, style=style)

    def write(self, path: Path | BytesIO, suffix: str) -> Typefaces:
        """Write the picture into a file or buffer; the same picture gives the same bytes each time.

        `suffix` is one of `OPTIONS`. Return the fonts used, with the characters that none has.
        """
        words = {"{title}": self.title, "{description}": self.description}
        fields = OPTIONS[suffix]["metadata"].items()
        options = OPTIONS[suffix] | {
            "metadata": {field: words.get(text, text) for field, text in fields}
        }
        most = MOST_PIXELS if self.style.exact_dpi else PIXELS
        dpi = min(self.style.dpi, most / max(self.figure.get_size_inches()))
        buffer = BytesIO()
        with usual_settings():
            self.figure.savefig(buffer, format=suffix.removeprefix("."), dpi=dpi, **options)
        content = buffer.getvalue()
        if suffix == ".svg":
            content = content.replace(b"'DejaVu Sans'", FALLBACKS)
        if isinstance(path, Path):
            path.write_bytes(content)
        else:
            path.write(content)
        return self.pen.typefaces

    def fill(self, path: Path) -> None:
        """Write the picture into a file, by its ending.

        An `AttnvizWarning` names the characters that no installed font has.
        """
        missing = self.write(path, path.suffix.lower()).missing
        if missing:
            warnings.warn(advice(missing), AttnvizWarning, stacklevel=2)

    def png(self) -> bytes:
        """Return the picture as PNG, for notebooks."""
        file = BytesIO()
        self.write(file, ".png")
        return file.getvalue()


def blank_figure(texts: Sequence[str]) -> Pen:
    """Return a pen on an empty white figure, with fonts for these texts; call it within `usual_settings`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    return Pen(FigureCanvasAgg(Figure(dpi=DPI, facecolor="white")).figure, typefaces_for(texts))


@contextmanager
def usual_settings() -> Iterator[None]:
    """Use Matplotlib's defaults while a figure is made; the user's settings return when the block ends.

    SVG files get the same names each time, and each panel stays an image of its own, a pixel a cell, sharp at any size.
    Letters stay letters: in SVG text that can be searched and edited, in PDF TrueType, since publishers refuse Type 3.
    """
    from matplotlib import rc_context, rcParamsDefault

    usual: dict[Any, Any] = {
        name: value for name, value in rcParamsDefault.items() if name != "backend"
    }
    with rc_context(usual | LETTERS), warnings.catch_warnings():
        # Characters without a font are named by `Picture.fill`, in words that help.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield
