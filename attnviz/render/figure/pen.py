"""Lengths, font sizes and colours of figures, and the measuring of texts before they are placed."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from attnviz.render.fonts import Typefaces
from attnviz.render.theme import LIGHT, Theme
from attnviz.text.display import clip, line_words
from attnviz.text.messages import current_language

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINT = 1 / 72  # an inch has 72 points; all lengths below are inches
TEXT, SMALL, TITLE = 7.5, 6.0, 10.0  # font sizes, in points
PITCH = 1.25 * TEXT * POINT  # the smallest distance at which two labels do not touch
MARGIN, GAP = 0.15, 0.14
# The smallest readable font size, in points; if labels do not fit in it, fewer are drawn.
LEAST_TEXT = 4.5
LABEL_LENGTH = 18  # token labels are cut to this many characters
# More characters than fit in a line of the widest sheet; limits the text that is measured.
LONGEST_LINE = 1000
TINY = 1e-9  # tolerance in inches for widths whose parts were added in another order
DPI = 150.0
PIXELS = 4000  # the most pixels along one side of a PNG, unless the style demands its resolution
LEGEND_GAP = 0.09  # inches between the axes and the legend above them


@dataclass(frozen=True, slots=True)
class Pen:
    """A figure, with its theme, and the fonts and sizes of its texts."""

    figure: Figure  # the figure to draw on
    typefaces: Typefaces  # the fonts
    least: float = LEAST_TEXT  # the smallest font size, in points
    # The factor on the font size of the texts around the picture, above 1 on a large sheet.
    larger: float = 1.0
    theme: Theme = LIGHT  # the colours

    @property
    def ink(self) -> str:
        """The colour of text."""
        return self.theme.ink

    @property
    def quiet(self) -> str:
        """The colour of less important text."""
        return self.theme.quiet

    def style(self, size: float = TEXT, **options: Any) -> dict[str, Any]:
        """Return the keyword arguments of Matplotlib's `text`; dollar signs are plain characters, not mathematics."""
        return {
            "fontfamily": self.typefaces.families,
            "fontsize": size,
            "parse_math": False,
            "color": self.ink,
            **options,
        }

    def width(self, text: str, size: float = TEXT) -> float:
        """Return the width of a text, in inches."""
        return _width(text, size, self.typefaces.families, self.figure.dpi)

    def widest(self, texts: Sequence[str], size: float = TEXT) -> float:
        """Return the width of the widest of these texts, in inches."""
        return max((self.width(text, size) for text in set(texts)), default=0.0)

    def wrap(
        self, text: str, width: float, size: float = TEXT, most: int | None = None
    ) -> list[str]:
        """Break a text into at most `most` lines no wider than `width`; a word is broken only if it is wider.

        Words are measured one by one, which is exact because fonts do not kern across a space.
        """
        lines: list[str] = []
        # The width of the last line in inches; there is no line yet, so nothing fits on it.
        line_width = math.inf
        for word in line_words(text):
            added_width = self.width(" ", size) + self.width(word[:LONGEST_LINE], size)
            if line_width + added_width <= width + TINY:
                lines[-1] += f" {word}"
                line_width += added_width
                continue
            remainder = word
            while remainder:
                if len(lines) == most:
                    return lines
                n = self._fitting(remainder, width, size)
                lines.append(remainder[:n])
                remainder = remainder[n:]
            line_width = self.width(lines[-1], size)
        return lines

    def _fitting(self, text: str, width: float, size: float) -> int:
        """Return how many characters of a text fit in `width`, at least 1."""
        n = min(len(text), LONGEST_LINE)
        if self.width(text[:n], size) <= width:
            return n
        return max(
            1, bisect_right(range(1, n + 1), width, key=lambda end: self.width(text[:end], size))
        )


@lru_cache(maxsize=2**14)  # measuring is slow, and many texts are measured several times
def _width(text: str, size: float, families: tuple[str, ...], dpi: float) -> float:
    from matplotlib.backends.backend_agg import RendererAgg
    from matplotlib.font_manager import FontProperties

    font = FontProperties(family=list(families), size=size)
    renderer = cast("Any", RendererAgg)(1, 1, dpi)
    pixels: float = renderer.get_text_width_height_descent(text, font, ismath=False)[0]
    return pixels / dpi


def clipped(labels: Sequence[str]) -> list[str]:
    """Return token labels cut to `LABEL_LENGTH` characters."""
    return [clip(label, LABEL_LENGTH) for label in labels]


def upward(text: str) -> tuple[str, float]:
    """Return a text to be written upward, and the angle of its rotation.

    A short Korean word is hard to read on its side. It is not rotated: its syllables are placed below one another, with
    a number, if there is one, at the bottom.
    """
    if not re.fullmatch(r"[가-힣]{1,3}( \d+)?", text):
        return text, 90.0
    return "\n".join(re.findall(r"[가-힣]|\d+", text)), 0.0


def ordinal(n: int) -> str:
    """Return a number such as ``2nd``; in Korean ``2``, which the sentence completes."""
    if current_language() != "en":
        return str(n)
    return f"{n}{'th' if 10 < n % 100 < 14 else {1: 'st', 2: 'nd', 3: 'rd'}.get(n % 10, 'th')}"
