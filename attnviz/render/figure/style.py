"""Styles of pictures for different uses: width, font sizes, and the texts around the picture."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from attnviz.errors import AttnvizWarning, SettingsError
from attnviz.look import Look
from attnviz.render.figure.pen import DPI, LEAST_TEXT, MARGIN, POINT, TEXT, Pen

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

NARROWEST, WIDEST = 0.5, 100.0  # limits on the width of a picture, in inches
MOST_PIXELS = 30_000  # the most pixels along one side of a PNG


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """The size, font sizes and surrounding texts of a picture for one use."""

    width: float | None = None  # the width of the picture in inches; None fits it to the content
    # The largest height of the picture in inches; None fits it to the content.
    height: float | None = None
    # Font sizes to try, in points: the first one in which every label fits is used.
    sizes: tuple[float, ...] = (TEXT,)
    least: float = LEAST_TEXT  # the smallest font size, in points
    margin: float = MARGIN  # the margin around the picture, in inches
    dpi: float = DPI  # the resolution of a PNG, in dots per inch
    # Whether the sentence and the model are the title if no other title is given.
    has_title: bool = True
    # The caption: "all" (notes and receipt), "receipt" (only the receipt) or "" (none).
    caption: str = "all"
    exact_dpi: bool = False  # whether a large PNG also has this resolution, instead of a lower one


STYLES = {
    "sheet": Style(),
    "slides": Style(
        width=40 / 3,
        height=7.5,
        sizes=(14.0, 12.0, 10.0),
        least=9.0,  # 18 pixels
        margin=0.2,
        dpi=144.0,
        caption="receipt",
    ),
    "paper": Style(
        width=3.3,
        sizes=(8.0, 7.5, 7.0, 6.5, 6.0),
        least=6.0,
        margin=0.03,
        dpi=600.0,
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


def fit(pen: Pen, style: Style) -> None:
    """Scale a finished picture to the size of a style; warn with an `AttnvizWarning` if its text becomes too small."""
    width, height = map(float, pen.figure.get_size_inches())
    if style.width is None:
        enlarge(pen.figure, style.sizes[0] / TEXT)
        return
    factor = min(style.width / width, (style.height or math.inf) / height)
    enlarge(pen.figure, factor)
    if style.height is not None:
        _centre(pen.figure, style.width, style.height)
    smallest = smallest_letters(pen.figure)
    if smallest < style.least - 0.05:
        letters = f"the smallest letters are {smallest:.1f} pt"
        readable_width = style.width * style.least / smallest
        text = f"at {style.width:.3g}in {letters}: they can be read from {readable_width:.2g}in on"
        if style.height is not None:
            text = f"on a slide {letters}: show less (fewer words or heads), or use --style sheet"
        warnings.warn(text, AttnvizWarning, stacklevel=4)


def _centre(figure: Figure, width: float, height: float) -> None:
    """Give a figure another size in inches; what is on it keeps its size and stands in the middle."""
    old_width, old_height = map(float, figure.get_size_inches())
    boxes = [axes.get_position() for axes in figure.axes]
    figure.set_size_inches(width, height)
    for axes, box in zip(figure.axes, boxes, strict=True):
        left = box.x0 * old_width + (width - old_width) / 2
        bottom = box.y0 * old_height + (height - old_height) / 2
        size = box.width * old_width / width, box.height * old_height / height
        axes.set_position((left / width, bottom / height, *size))


def enlarge(figure: Figure, factor: float) -> None:
    """Scale a figure and everything on it.

    Changing the figure's size is not enough, because Matplotlib measures fonts, lines and markers in points. Only the
    density of hatches does not change.
    """
    from matplotlib.artist import Artist
    from matplotlib.legend import Legend

    if factor == 1:
        return
    for legend in figure.findobj(Legend):
        _enlarge_legend(legend, factor)
    figure.set_size_inches(*(figure.get_size_inches() * factor))
    for artist in figure.findobj(Artist):
        _enlarge_artist(artist, factor)
    for ax in figure.axes:
        _enlarge_distances(ax, factor)


def _enlarge_artist(artist: Artist, factor: float) -> None:
    """Scale the fonts, lines and markers of an artist."""
    from matplotlib.collections import Collection, PathCollection
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.text import Annotation, Text

    match artist:
        case Text():
            artist.set_fontsize(float(artist.get_fontsize()) * factor)
            if isinstance(artist, Annotation) and artist.anncoords == "offset points":
                artist.xyann = (artist.xyann[0] * factor, artist.xyann[1] * factor)
        case Line2D():
            artist.set(
                linewidth=artist.get_linewidth() * factor,
                markersize=artist.get_markersize() * factor,
            )
            artist.set_markeredgewidth(artist.get_markeredgewidth() * factor)
        case Patch():
            artist.set_linewidth(artist.get_linewidth() * factor)
        case Collection():
            artist.set_linewidth(
                [width * factor for width in np.atleast_1d(artist.get_linewidth())]
            )
            if isinstance(artist, PathCollection):
                artist.set_sizes(artist.get_sizes() * factor**2)


def _enlarge_distances(ax: Axes, factor: float) -> None:
    """Scale the distances of titles and labels from their axes; present fonts and ticks are already scaled."""
    pad = cast("Any", ax).titleOffsetTrans.get_matrix()[1, 2] / ax.figure.dpi / POINT
    ax.set_title(ax.get_title(), pad=pad * factor, fontsize=ax.title.get_fontsize())
    for axis in (ax.xaxis, ax.yaxis):
        axis.labelpad *= factor
        tick: Any = axis.get_major_ticks()[0]
        mark, label = tick.tick1line, tick.label1
        # Matplotlib makes further ticks when it draws: they get the sizes of the scaled ones.
        axis.set_tick_params(
            pad=tick.get_pad() * factor,
            length=mark.get_markersize(),
            width=mark.get_markeredgewidth(),
            labelsize=label.get_fontsize(),  # Matplotlib chooses the number of ticks by this size
        )


def _enlarge_legend(legend: Legend, factor: float) -> None:
    """Scale the rows, columns and samples of a legend, which keeps its place on its axes."""
    from matplotlib.artist import Artist
    from matplotlib.collections import Collection
    from matplotlib.offsetbox import DrawingArea, PackerBase
    from matplotlib.transforms import Affine2D

    axes, scaling = legend.axes.transAxes, Affine2D().scale(factor)
    legend.set_bbox_to_anchor(
        tuple(axes.inverted().transform(legend.get_bbox_to_anchor().p0)), axes
    )
    legend.borderaxespad *= factor
    for box in legend.findobj(PackerBase):
        box.pad, box.sep = (box.pad or 0) * factor, (box.sep or 0) * factor
    for area in legend.findobj(DrawingArea):
        area.width, area.height = area.width * factor, area.height * factor
        area.xdescent, area.ydescent = area.xdescent * factor, area.ydescent * factor
        for sample in area.get_children():
            if isinstance(sample, Collection):
                sample.set_offset_transform(scaling + sample.get_offset_transform())
            else:
                sample.set_transform(scaling + Artist.get_transform(sample))


def smallest_letters(figure: Figure) -> float:
    """Return the smallest font size on a figure, in points."""
    from matplotlib.text import Text

    texts = (
        text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()
    )
    return min(float(text.get_fontsize()) for text in texts)
