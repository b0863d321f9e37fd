"""Lengths, font sizes and colours of figures, and texts that are measured before they are placed."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from attnviz.render.fonts import Typefaces
from attnviz.text.display import clip, line_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINT = 1 / 72  # an inch has 72 points; all lengths below are inches
TEXT, SMALL, TITLE = 7.5, 6.0, 10.0  # font sizes, in points
PITCH = 1.25 * TEXT * POINT  # the least distance of two labels that do not touch
MARGIN, GAP = 0.15, 0.14
LEAST_TEXT = 4.5  # print smaller than this, in points, nobody reads: fewer labels are drawn instead
LABEL_LENGTH = 18
LONGEST_LINE = 1000  # more characters than the widest sheet has room for in a line
TINY = 1e-9  # inches by which widths may differ that were added in another order
DPI = 150.0
PIXELS = 4000  # the widest and highest a PNG may get, in pixels
LEGEND_GAP = 0.09  # inches between the axes and the legend above them
GREY, BLACK, FRAME = "#555555", "#111111", "#bbbbbb"


@dataclass(frozen=True, slots=True)
class Pen:
    """A figure, with the fonts, sizes and colours of its texts."""

    figure: Figure  # the figure drawn on
    typefaces: Typefaces  # its fonts
    least: float = LEAST_TEXT  # the smallest that letters may be, in points
    larger: float = 1.0  # by how much the words round the picture are larger than usual, as they are on a large sheet
    ink: str = BLACK  # the colour of what is written on the figure
    quiet: str = GREY  # that of what matters less

    def style(self, size: float = TEXT, **more: Any) -> dict[str, Any]:
        """Return the keyword arguments of a text. Dollar signs are plain characters, never mathematics."""
        return {
            "fontfamily": self.typefaces.families,
            "fontsize": size,
            "parse_math": False,
            "color": self.ink,
            **more,
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
        """Break a text into at most `most` lines no wider than `width`; only a wider word is broken.

        Words are measured one by one: no font moves letters together over a space.
        """
        lines: list[str] = []
        end = math.inf  # of the last line, in inches
        for word in line_words(text):
            more = self.width(" ", size) + self.width(word[:LONGEST_LINE], size)
            if end + more <= width + TINY:
                lines[-1] += f" {word}"
                end += more
                continue
            rest = word
            while rest:
                if len(lines) == most:
                    return lines
                n = self._fitting(rest, width, size)
                lines.append(rest[:n])
                rest = rest[n:]
            end = self.width(lines[-1], size)
        return lines

    def _fitting(self, text: str, width: float, size: float) -> int:
        """Return how many characters of a text fit, at least 1."""
        n = min(len(text), LONGEST_LINE)
        if self.width(text[:n], size) <= width:
            return n
        return max(
            1, bisect_right(range(1, n + 1), width, key=lambda end: self.width(text[:end], size))
        )


@lru_cache(maxsize=2**14)  # the same text is measured often
def _width(text: str, size: float, families: tuple[str, ...], dpi: float) -> float:
    from matplotlib.backends.backend_agg import RendererAgg
    from matplotlib.font_manager import FontProperties

    font = FontProperties(family=list(families), size=size)
    renderer = cast("Any", RendererAgg)(1, 1, dpi)
    pixels: float = renderer.get_text_width_height_descent(text, font, ismath=False)[0]
    return pixels / dpi


def clipped(labels: Sequence[str]) -> list[str]:
    """Cut the longest token labels."""
    return [clip(label, LABEL_LENGTH) for label in labels]


def upward(text: str) -> tuple[str, float]:
    """Return a text for writing from below to above, and the angle of its rotation.

    A word of few Hangul syllables, which are not read on their side, has syllable below syllable, a number below them.
    """
    if not re.fullmatch(r"[가-힣]{1,3}( \d+)?", text):
        return text, 90.0
    return "\n".join(re.findall(r"[가-힣]|\d+", text)), 0.0


def ordinal(n: int) -> str:
    """Return a number such as ``2nd``."""
    return f"{n}{'th' if 10 < n % 100 < 14 else {1: 'st', 2: 'nd', 3: 'rd'}.get(n % 10, 'th')}"
