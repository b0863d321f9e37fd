"""The parts that all pictures share: styles, Matplotlib's settings, lines above and below, colour bars, and files.

The size of a picture, its letters and its colours are set before anything is drawn, and Matplotlib does the rest. No
function here uses pyplot, and a picture looks the same whatever settings a notebook has.
"""

from __future__ import annotations

import math
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attnviz.errors import AttnvizWarning, SettingsError
from attnviz.look import Look
from attnviz.render.fonts import Typefaces, advice, boxes
from attnviz.render.theme import Theme
from attnviz.text.display import line_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINT = 1 / 72  # an inch has 72 points; all lengths are inches, all sizes of letters points
LEADING = 1.35  # the distance of two lines, in sizes of their letters
NARROWEST, WIDEST = 0.5, 100.0  # limits on the width and height of a picture
MOST_PIXELS = 30_000  # the most pixels along one side of a PNG
USUAL_PIXELS = 4_000  # the most of a sheet, whose size follows from what it shows
LONGEST_LABEL = 18  # characters of a token's label
NARROW, WIDE = frozenset(" fijlrtI.,:;'!|()[]“”‘’"), frozenset("mwMW%@…—")  # letters


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """The size, letters and surrounding texts of a picture for one use."""

    width: float | None = None  # None fits it to the content
    height: float | None = None
    letters: float = 7.5
    least: float = 4.5  # the smallest letters that can be read
    margin: float = 0.15
    dpi: float = 150.0  # dots per inch of a PNG
    has_title: bool = True
    # The lines below: "all" (notes and receipt), "receipt" (only the receipt) or "" (none).
    caption: str = "all"
    exact_dpi: bool = False  # whether a large PNG also has this resolution, instead of a lower one

    @property
    def small(self) -> float:
        """The size of the smallest print."""
        return max(self.least, 0.8 * self.letters)


STYLES: Mapping[str, Style] = {
    "sheet": Style(),
    "slides": Style(
        width=40 / 3, height=7.5, letters=14, least=9, margin=0.2, dpi=144, caption="receipt"
    ),
    "paper": Style(
        width=3.3,
        letters=7,
        margin=0.03,
        dpi=600,
        has_title=False,
        caption="",
        exact_dpi=True,
    ),
}
"""The styles by name. A slide has 1,920 x 1,080 pixels; a column of a paper is 3.3 inches wide (ACL, IEEE, Nature)."""


def style_of(look: Look) -> Style:
    """Return the style of a look, with another size (in inches) and resolution if they are given.

    Raises SettingsError: a picture cannot have this size or resolution.
    """
    style = STYLES[look.style]
    if look.figsize is not None:
        if np.shape(look.figsize) != (2,):
            raise SettingsError("figsize is a width and a height in inches, such as (8, 6)")
        width, height = map(float, look.figsize)
        if not all(NARROWEST <= length <= WIDEST for length in (width, height)):
            raise SettingsError(f"figsize is between {NARROWEST:g} and {WIDEST:g} inches")
        style = replace(style, width=width, height=height)
    if look.dpi is not None:
        if not isinstance(look.dpi, (int, float, np.number)) or not 20 <= look.dpi <= 2400:
            raise SettingsError(f"it must be a number from 20 to 2400, not {look.dpi!r}", "dpi")
        style = replace(style, dpi=float(look.dpi), exact_dpi=True)
        if style.width and style.width * look.dpi > MOST_PIXELS:
            raise SettingsError(
                f"a picture of more than {MOST_PIXELS:,} dots across: give fewer dots an inch",
                "dpi",
            )
    return style


@contextmanager
def settings(style: Style, theme: Theme, typefaces: Typefaces) -> Iterator[None]:
    """Draw with Matplotlib's defaults, in the letters of a style and the colours of a theme, until the block ends.

    In SVG files element ids are the same each time, and an image has one pixel per cell, sharp at any size. Text
    remains text: searchable and editable in SVG, TrueType in PDF, because publishers refuse Type 3 fonts.
    """
    from matplotlib import rc_context, rcParamsDefault

    defaults: dict[Any, Any] = {
        name: value for name, value in rcParamsDefault.items() if name != "backend"
    }
    own = {
        "figure.dpi": 150.0,
        "figure.facecolor": theme.paper,
        "font.family": list(typefaces.families),
        "font.size": style.letters,
        "text.parse_math": False,
        # Letters look the same without hinting, and are drawn in three quarters of the time.
        "text.hinting": "none",
        "svg.hashsalt": "attnviz",
        "svg.fonttype": "none",
        "pdf.fonttype": 42,
        "image.composite_image": False,
    }
    with rc_context(defaults | own | theme.settings), warnings.catch_warnings():
        # `Picture.fill` warns about missing characters instead, with advice on what to install.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of this size in inches; call it within `settings`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    return FigureCanvasAgg(Figure(figsize=(width, height))).figure


FALLBACKS = (
    b"'DejaVu Sans', Verdana, 'Noto Sans', 'Noto Sans CJK KR', 'Malgun Gothic',"
    b" 'Apple SD Gothic Neo', 'Hiragino Sans', 'Yu Gothic', 'PingFang SC', 'Microsoft YaHei', sans-serif"
)
"""The fonts for an SVG if attnviz's font is not installed; the first ones have letters of the same width."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A figure that is drawn, and the description for the metadata of its file."""

    figure: Figure
    title: str
    description: str  # how to read the picture, and the receipt
    style: Style
    theme: Theme
    typefaces: Typefaces  # the fonts, and the characters that no font has

    def write(self, path: Path | BytesIO, suffix: str) -> None:
        """Write the picture into a file or buffer; equal pictures give equal bytes, without a date.

        `suffix` is ``.png``, ``.svg`` or ``.pdf``.
        """
        metadata: dict[str, Any] = {"Title": self.title}
        metadata["Subject" if suffix == ".pdf" else "Description"] = self.description
        metadata["Software" if suffix == ".png" else "Creator"] = "attnviz"
        options: dict[str, Any] = {}
        if suffix == ".png":  # nearly as small as at higher levels, in half the time
            options["pil_kwargs"] = {"compress_level": 2}
        else:
            metadata["CreationDate" if suffix == ".pdf" else "Date"] = None
        max_pixels = MOST_PIXELS if self.style.exact_dpi else USUAL_PIXELS
        dpi = min(self.style.dpi, max_pixels / max(self.figure.get_size_inches()))
        buffer = BytesIO()
        with settings(self.style, self.theme, self.typefaces):
            self.figure.savefig(buffer, format=suffix[1:], dpi=dpi, metadata=metadata, **options)
        content = buffer.getvalue()
        if suffix == ".svg":
            content = content.replace(b"'DejaVu Sans'", FALLBACKS)
        if isinstance(path, Path):
            path.write_bytes(content)
        else:
            path.write(content)

    def fill(self, path: Path) -> None:
        """Write the picture into a file in the format of its ending.

        An `AttnvizWarning` names the characters that no installed font has.
        """
        self.write(path, path.suffix.lower())
        if self.typefaces.missing:
            warnings.warn(advice(self.typefaces.missing), AttnvizWarning, stacklevel=2)

    def png(self) -> bytes:
        """Return the picture as PNG, for notebooks."""
        file = BytesIO()
        self.write(file, ".png")
        return file.getvalue()


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text above or below the drawing."""

    text: str
    size: float
    is_quiet: bool = False  # whether it has the colour of less important text

    @property
    def height(self) -> float:
        """The distance to the next line, in inches."""
        return LEADING * self.size * POINT


def length_of(text: str) -> float:
    """Return about how long a text is, in sizes of its letters, a little more than it is in Matplotlib's own font.

    Matplotlib measures a text only once there is a figure, whose size follows from the texts around the drawing.
    """
    return sum(map(_length_of_letter, text))


def _length_of_letter(letter: str) -> float:
    if letter in NARROW:
        return 0.38
    if letter in WIDE or unicodedata.east_asian_width(letter) in "WF":
        return 1.0
    return 0.7 if letter.isupper() else 0.62


def break_lines(
    texts: Iterable[str],
    width: float,
    size: float,
    *,
    is_quiet: bool = False,
    most: int | None = None,
) -> list[Line]:
    """Break texts into lines for a `width` in inches; a text that has more than `most` lines ends in an ellipsis."""
    room = width / (size * POINT)
    result = []
    for text in texts:
        rows: list[str] = []
        for word in line_words(text):
            longer = f"{rows[-1]} {word}" if rows else word
            if rows and length_of(longer) <= room:
                rows[-1] = longer
                continue
            # A word that is longer than a line, such as a path, is broken where the line ends.
            n = max(1, math.floor(room))
            pieces = (
                [word]
                if length_of(word) <= room
                else [word[i : i + n] for i in range(0, len(word), n)]
            )
            rows += pieces
        if most is not None and len(rows) > most:
            rows = [*rows[: most - 1], rows[most - 1][:-1] + "…"]
        result += [Line(row, size, is_quiet) for row in rows]
    return result


def height_of(lines: Iterable[Line]) -> float:
    """Return the height of lines below one another, in inches."""
    return math.fsum(line.height for line in lines)


def write_lines(
    figure: Figure, theme: Theme, lines: Sequence[Line], left: float, top: float
) -> None:
    """Write lines below one another; `left` and `top` are the distances from the edges of the figure, in inches."""
    height = float(figure.get_size_inches()[1])
    for line in lines:
        figure.text(
            left,
            height - top,
            line.text,
            fontsize=line.size,
            va="top",
            color=theme.quiet if line.is_quiet else theme.ink,
            transform=figure.dpi_scale_trans,
        )
        top += line.height


def missing_line(typefaces: Typefaces, style: Style, width: float) -> list[Line]:
    """Return the line of small print about characters that no font has; there is none if all have one."""
    if not typefaces.missing:
        return []
    return break_lines([boxes(typefaces.missing)], width, style.small, is_quiet=True, most=1)
