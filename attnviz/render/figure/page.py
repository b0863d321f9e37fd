"""The page of a figure, measured in inches: lines of text above and below, panels with thin frames, colour bars.

Places are (left, top) or (left, top, width, height), in inches from the upper left corner.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import UInt8

from attnviz.render.figure.pen import (
    LEGEND_GAP,
    MARGIN,
    POINT,
    SMALL,
    TEXT,
    Pen,
    upward,
)
from attnviz.render.fonts import boxes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# A colour bar has fewer steps between its numbers than this: at most 5, and a margin for rounding.
MOST_MARKS = 5.9

# Font size of the note about characters without a font, small enough for the bottom margin.
BOXES = 6.5

Place = tuple[float, float, float, float]  # left, top, width and height, in inches


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text."""

    text: str
    size: float  # the font size, in points
    colour: str
    pitch: float  # the distance to the next line, in inches


def lines(
    pen: Pen,
    texts: Iterable[str],
    width: float,
    size: float = TEXT,
    *,
    colour: str | None = None,
    leading: float = 1.35,
    most: int | None = None,
) -> list[Line]:
    """Break texts into lines of at most `width` inches, in letters of `size` points.

    Each text has at most `most` lines. Without a `colour`, the first text, which is the receipt, has the colour of
    text and the others that of less important text. The distance from line to line is `leading` times the size.
    """
    return [
        Line(line, size, colour or (pen.quiet if index else pen.ink), leading * size * POINT)
        for index, text in enumerate(texts)
        for line in pen.wrap(text, width, size, most)
    ]


def height_of(written: Iterable[Line]) -> float:
    """Return the total height of lines, in inches."""
    return math.fsum(line.pitch for line in written)


@dataclass(frozen=True, slots=True)
class Page:
    """A figure of a fixed size, with axes that cover it, in inches from its upper left corner."""

    pen: Pen  # the pen for the figure
    ax: Axes  # the axes that cover the figure

    @property
    def size(self) -> tuple[float, float]:
        """The width and height, in inches."""
        width, height = self.pen.figure.get_size_inches()
        return float(width), float(height)

    def text(self, left: float, top: float, text: str, size: float = TEXT, **style: Any) -> None:
        """Write a text; `style` has further arguments of Matplotlib's `text`."""
        self.ax.text(left, top, text, **self.pen.style(size, **style))

    def write_upward(
        self, left: float, top: float, text: str, size: float = TEXT, **style: Any
    ) -> None:
        """Write a text that runs upward, as `upward` prepares it."""
        text, rotation = upward(text)
        self.text(left, top, text, size, rotation=rotation, multialignment="center", **style)

    def write(
        self, written: Sequence[Line], top: float, left: float = MARGIN, *, va: str = "top"
    ) -> float:
        """Write lines below one another, and return the top of the next line.

        `va` is Matplotlib's vertical alignment of each line.
        """
        for line in written:
            self.text(left, top, line.text, line.size, va=va, color=line.colour)
            top += line.pitch
        return top

    def image(
        self,
        pixels: UInt8[np.ndarray, "row column channel"],
        place: Place,
        interpolation: str | None = "none",
    ) -> None:
        """Draw an image with one pixel per cell, and a thin frame, so that pale cells at its border have an edge."""
        left, top, width, height = place
        extent = (left, left + width, top + height, top)
        self.ax.imshow(pixels, extent=extent, aspect="auto", interpolation=interpolation, zorder=2)
        self.frame(place)

    def frame(self, place: Place) -> None:
        """Draw a thin line around a panel."""
        self.box(place, fill=False, edgecolor=self.pen.theme.frame, linewidth=0.6, zorder=3)

    def box(self, place: Place, **style: Any) -> Any:
        """Draw a rectangle; `style` has further arguments of Matplotlib's `Rectangle`."""
        from matplotlib.patches import Rectangle

        left, top, width, height = place
        return self.ax.add_artist(Rectangle((left, top), width, height, **style))

    def axes(self, place: Place) -> Axes:
        """Add new axes at a place."""
        return self.pen.figure.add_axes(self._share(place))

    def move(self, ax: Axes, place: Place) -> None:
        """Move existing axes to a place."""
        ax.set_position(self._share(place))

    def _share(self, place: Place) -> tuple[float, float, float, float]:
        left, top, panel_width, panel_height = place
        width, height = self.size
        return (
            left / width,
            1 - (top + panel_height) / height,
            panel_width / width,
            panel_height / height,
        )

    def colour_bar(
        self,
        table: UInt8[np.ndarray, "level rgb"],
        place: tuple[float, float, float],
        marks: Mapping[float, str],
        *,
        along: bool = False,
    ) -> None:
        """Draw a colour bar: vertical with the lowest value at the bottom, or `along` (horizontal), lowest at the left.

        `place` is left, top and length; `marks` maps shares of the length to the texts written there. Matplotlib's
        colour bar, which the user's own axes get, needs axes and a norm, and has no room for numbers at its ends.
        """
        left, top, length = place
        quiet = self.pen.quiet
        style: dict[str, Any] = {"size": max(SMALL, self.pen.least), "va": "center", "color": quiet}
        if along:
            self.image(table[None], (left, top, length, 0.1), None)
            self.text(left - 0.05, top + 0.05, marks[0], ha="right", **style)
            self.text(left + length + 0.05, top + 0.05, marks[1], **style)
            return
        self.image(table[::-1, None], (left, top, 0.12, length), None)
        for share, text in marks.items():
            y = top + length * (1 - share)
            self.ax.plot([left + 0.12, left + 0.15], [y, y], color=quiet, linewidth=0.6)
            self.text(left + 0.18, y, text, **style)


def page_of(pen: Pen, width: float, height: float) -> Page:
    """Set the size of a figure in inches and return it as a page, with a note about characters that no font has."""
    pen.figure.set_size_inches(width, height)
    ax = pen.figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, width), ylim=(height, 0))
    ax.set_axis_off()
    ax.set_autoscale_on(False)  # drawing must not change the limits of the axes
    page = Page(pen, ax)
    if pen.typefaces.missing:
        size = max(BOXES, pen.least)
        (words, *_) = pen.wrap(boxes(pen.typefaces.missing), width - 2 * MARGIN, size, most=1)
        page.text(MARGIN, height - 0.03, words, size, va="bottom", color=pen.quiet)
    return page


def scale_marks(low: float, high: float) -> dict[float, str]:
    """Return three to six round numbers along a colour bar, as texts by their share of its length."""
    if high <= low:
        return {0.0: f"{low:.3g}"}
    power = 10.0 ** math.floor(math.log10(high - low))
    step = next(
        s * power for s in (0.1, 0.2, 0.25, 0.5, 1, 2) if (high - low) / (s * power) < MOST_MARKS
    )
    first, last = math.ceil(low / step - 1e-6), math.floor(high / step + 1e-6)
    return {(i * step - low) / (high - low): f"{i * step:.4g}" for i in range(first, last + 1)}


def legend_above(
    ax: Axes, pen: Pen, names: Sequence[str], sample: float, size: float = TEXT, **style: Any
) -> float:
    """Draw a legend above axes, in as many columns as fit; return its height in inches.

    `sample` is the width of an entry's handle and gaps, in font sizes; `style` has further arguments of Matplotlib's
    `legend`.
    """
    from matplotlib.transforms import ScaledTranslation

    widest = pen.widest([line for name in names for line in name.split("\n")], size)
    room = ax.get_window_extent().width / pen.figure.dpi
    legend = ax.legend(
        ax.get_legend_handles_labels()[0],
        names,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        bbox_transform=ax.transAxes
        + ScaledTranslation(0.0, LEGEND_GAP, pen.figure.dpi_scale_trans),
        ncols=max(1, min(len(names), int(room / (widest + sample * size * POINT)))),
        frameon=False,
        fontsize=size,
        borderpad=0,
        borderaxespad=0,
        **style,
    )
    for text in legend.get_texts():
        text.set(**pen.style(size))
    box = legend.get_window_extent(pen.figure.canvas.get_renderer())  # type: ignore[attr-defined]
    return float(box.height / pen.figure.dpi) + LEGEND_GAP
