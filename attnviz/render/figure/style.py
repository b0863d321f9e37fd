"""What a picture is for: how wide it stands there, how large its letters are, and which words go with it."""

from __future__ import annotations

import math
import re
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from attnviz.errors import AttnvizWarning, SettingsError
from attnviz.render.figure.pen import DPI, LEAST_TEXT, MARGIN, TEXT, Pen

if TYPE_CHECKING:
    from matplotlib.figure import Figure

UNITS = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72.27}
"""Inches in a unit of length; points are those of TeX, in which it tells a column's width."""
PAD = 3.5  # points between an axis and its labels, where nobody says how many
NARROWEST, WIDEST = 0.5, 100.0  # inches that a picture may be wide
MOST_PIXELS = 30_000  # dots that a side of a PNG may have


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """What a picture is for."""

    width: float | None = None  # of the picture, in inches; None: as wide as what is on it
    height: float | None = None  # the most that it may be high, in inches; None: as high as what is on it
    sizes: tuple[float, ...] = (TEXT,)  # of the letters, in points: the first in which every label has room
    least: float = LEAST_TEXT  # the smallest that any letters may be, in points
    margin: float = MARGIN  # round the picture, in inches
    dpi: float = DPI  # dots an inch of a PNG
    has_title: bool = True  # whether the sentence and the model stand above, where no other title is given
    caption: str = "all"  # how much stands below: all that must be said, the receipt alone, or nothing
    transparent: bool = False  # whether what is the colour of the page is left open
    exact_dpi: bool = False  # whether a large PNG, too, has these dots an inch


STYLES = {
    "sheet": Style(),
    "slides": Style(
        width=40 / 3, height=7.5, sizes=(20.0, 18.0, 16.0, 14.0, 12.0), least=10.0, margin=0.2, dpi=144.0,
        caption="receipt",
    ),
    "paper": Style(
        width=3.3, sizes=(8.0, 7.5, 7.0, 6.5, 6.0), least=6.0, margin=0.03, dpi=600.0, has_title=False, caption="",
        exact_dpi=True,
    ),
}  # fmt: skip
"""By name; a slide has 1,920 dots across, a paper's column 3.3 inches, as at ACL, IEEE and Nature."""


def inches(length: str) -> float:
    """A length as it is typed: ``3.3in``, ``8cm``, ``84mm`` or ``240pt``.

    Raises:
        SettingsError: no number, no such unit, or a width that no picture has.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([^\W\d]*)\s*", length)
    if match is None or match[2] not in UNITS:
        raise SettingsError(f"width: {length!r} is no length: give a number and its unit, {', '.join(UNITS)}")
    width = float(match[1]) * UNITS[match[2]]
    if not NARROWEST <= width <= WIDEST:
        raise SettingsError(f"width: {length} is not between {NARROWEST:g}in and {WIDEST:g}in")
    return width


def style_of(
    name: str = "sheet", *, width: str | None = None, dpi: int | None = None, font_size: float | None = None,
    caption: bool = True, transparent: bool = False,
) -> Style:  # fmt: skip
    """A style, with what is wanted otherwise.

    Raises:
        SettingsError: a width or dots an inch with which no picture can be made.
    """
    style = STYLES[name]
    if width is not None:
        high = style.height and style.width and style.height * inches(width) / style.width
        style = replace(style, width=inches(width), height=high)
    if dpi is not None:
        style = replace(style, dpi=float(dpi), exact_dpi=True)
        if style.width and style.width * dpi > MOST_PIXELS:
            raise SettingsError(
                f"{dpi} dots an inch make a picture of more than {MOST_PIXELS:,} dots across: give fewer"
            )
    if font_size is not None:
        style = replace(style, sizes=(float(font_size),), least=min(style.least, float(font_size)))
    return replace(style, caption=style.caption if caption else "", transparent=transparent)


def fit(pen: Pen, style: Style, advice: str = "") -> None:
    """Give a picture that is drawn already the size of a style; an `AttnvizWarning` tells where it cannot be read."""
    width, height = map(float, pen.figure.get_size_inches())
    if style.width is None:
        enlarge(pen.figure, style.sizes[0] / TEXT)
        return
    factor = min(style.width / width, (style.height or math.inf) / height)
    enlarge(pen.figure, factor)
    smallest = smallest_letters(pen.figure)
    if smallest < style.least - 0.05:
        warnings.warn(
            f"at {width * factor:.3g}in the smallest letters are {smallest:.1f} pt: they can be read from "
            f"{width * factor * style.least / smallest:.2g}in on{advice}",
            AttnvizWarning,
            stacklevel=4,
        )


def enlarge(figure: Figure, factor: float) -> None:
    """Make a figure and all that is on it larger, or smaller: letters and lines, which have sizes of their own."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.text import Text

    if factor == 1:
        return
    figure.set_size_inches(*(figure.get_size_inches() * factor))
    for text in figure.findobj(Text):
        text.set_fontsize(float(text.get_fontsize()) * factor)
    for line in figure.findobj(Line2D):
        line.set(linewidth=line.get_linewidth() * factor, markersize=line.get_markersize() * factor)
    for patch in figure.findobj(Patch):
        patch.set_linewidth(patch.get_linewidth() * factor)
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            axis.labelpad *= factor
            axis.set_tick_params(pad=axis.get_tick_params().get("pad", PAD) * factor)


def smallest_letters(figure: Figure) -> float:
    """The size of the smallest letters on a figure, in points."""
    from matplotlib.text import Text

    shown = (text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip())
    return min(float(text.get_fontsize()) for text in shown)
