"""Creation and export of figures: a blank figure, Matplotlib's default settings, PNG, SVG and PDF.

No function here uses pyplot, and Matplotlib's settings are restored when a function returns. A picture looks the same
whatever settings a notebook has.
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
from attnviz.releases import check_letters
from attnviz.render.figure.pen import DPI, PIXELS, Pen
from attnviz.render.figure.style import MOST_PIXELS, STYLES, Style, fit
from attnviz.render.fonts import Typefaces, advice, typefaces_for
from attnviz.render.theme import LIGHT, Theme

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
    b" 'Apple SD Gothic Neo', 'Hiragino Sans', 'Yu Gothic', 'PingFang SC', 'Microsoft YaHei', sans-serif"
)
"""The fonts for an SVG if attnviz's font is not installed; the first ones have letters of the same width."""


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
"""The options for Matplotlib's `savefig`, by the file's ending; without a date, equal pictures give equal files."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure, and the description for the metadata of its file."""

    pen: Pen  # the pen that it was drawn with
    title: str
    description: str  # how to read the picture, and the receipt
    style: Style = STYLES["sheet"]  # the style, which sets the resolution

    @property
    def figure(self) -> Figure:
        """The figure itself."""
        return self.pen.figure

    def fitted(self, style: Style) -> Picture:
        """Return the picture in the size of a style; warn with an `AttnvizWarning` if its text becomes too small."""
        fit(self.pen, style)
        return replace(self, style=style)

    def write(self, path: Path | BytesIO, suffix: str) -> Typefaces:
        """Write the picture into a file or buffer, and return the fonts used and the characters that no font has.

        `suffix` is one of `OPTIONS`. Equal pictures give equal bytes.
        """
        words = {"{title}": self.title, "{description}": self.description}
        fields = OPTIONS[suffix]["metadata"].items()
        options = OPTIONS[suffix] | {
            "metadata": {field: words.get(text, text) for field, text in fields}
        }
        max_pixels = MOST_PIXELS if self.style.exact_dpi else PIXELS
        dpi = min(self.style.dpi, max_pixels / max(self.figure.get_size_inches()))
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
        """Write the picture into a file in the format of its ending.

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


def blank_figure(texts: Sequence[str], theme: Theme = LIGHT) -> Pen:
    """Return a pen on an empty figure, with fonts for these texts; call it within `usual_settings` of this theme."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    check_letters(texts)
    figure = FigureCanvasAgg(Figure(dpi=DPI, facecolor=theme.paper)).figure
    return Pen(figure, typefaces_for(texts), theme=theme)


@contextmanager
def usual_settings(theme: Theme = LIGHT) -> Iterator[None]:
    """Use Matplotlib's default settings, in the colours of a theme, until the block ends; then restore the user's.

    In SVG files, element ids are the same each time, and each panel is a separate image with one pixel per cell, sharp
    at any size. Text remains text: searchable and editable in SVG, TrueType in PDF, because publishers refuse Type 3
    fonts.
    """
    from matplotlib import rc_context, rcParamsDefault

    defaults: dict[Any, Any] = {
        name: value for name, value in rcParamsDefault.items() if name != "backend"
    }
    with rc_context(defaults | LETTERS | theme.settings), warnings.catch_warnings():
        # `Picture.fill` warns about missing characters instead, with advice on what to install.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield
