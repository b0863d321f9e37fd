"""The frame of every figure: the words above and below the picture, and the colour bar beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnviz.render.figure.pen import BLACK, FRAME, GREY, MARGIN, POINT, SENTENCE_LINES, SMALL, TEXT, TITLE, Pen
from attnviz.render.palette import colours
from attnviz.render.sheet import AXES, Sheet
from attnviz.text.display import clip

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap


Lines = tuple[list[str], list[str], list[str]]
"""What stands above a picture, the sentence and the model, and what stands below it, in lines."""


def caption(sheet: Sheet, pen: Pen, width: float, title: str | None, *more: str) -> Lines:
    """What must be said about a sheet, and `more`, in lines no wider than this.

    Args:
        sheet: what is drawn.
        pen: what with.
        width: of a line, in inches.
        title: `auto`, which is the sentence, or another title; None leaves out the title and the model below it.
        more: what else stands below the picture.
    """
    above = pen.wrap(sheet.sentence if title == "auto" else title or "", width, TITLE * pen.larger, SENTENCE_LINES + 1)
    if len(above) > SENTENCE_LINES:
        last = SENTENCE_LINES - 1
        above = [*above[:last], clip(above[last], len(above[last]) - 1)]
    what = sheet.panels[0].name if len(sheet.panels) == 1 else sheet.size
    model = [] if title is None else pen.wrap(f"{sheet.model} · {what}", width, TEXT * pen.larger + 0.5)
    below = [sheet.proof, AXES, sheet.legend, *more, *sheet.notes]
    return above, model, [line for text in below for line in pen.wrap(text, width, TEXT * pen.larger)]


def canvas(pen: Pen, width: float, height: float) -> Axes:
    """Axes over the whole figure, in inches from the upper left corner."""
    pen.figure.set_size_inches(width, height)
    ax = pen.figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, width), ylim=(height, 0))
    ax.set_axis_off()
    return ax


def write_caption(ax: Axes, pen: Pen, lines: Lines, bottom: float) -> None:
    """Write the lines: the sentence and the model at the top, the rest so that it ends at the bottom."""
    above, model, below = lines
    title, text = TITLE * pen.larger, TEXT * pen.larger
    y = MARGIN
    for line in above:
        ax.text(MARGIN, y, line, va="top", **pen.style(title))
        y += 1.35 * title * POINT
    for line in model:
        ax.text(MARGIN, y, line, va="top", **pen.style(text + 0.5, color=GREY))
        y += 1.35 * text * POINT
    y = bottom - MARGIN - (len(below) - 1) * 1.3 * text * POINT
    for index, line in enumerate(below):
        ax.text(MARGIN, y, line, va="baseline", **pen.style(text, color=BLACK if index == 0 else GREY))
        y += 1.3 * text * POINT


def caption_heights(lines: Lines, pen: Pen) -> tuple[float, float]:
    """How much room they take above and below, in inches."""
    above, model, below = lines
    return (
        MARGIN + (1.35 * (TITLE * len(above) + TEXT * len(model)) + 0.25 * TEXT) * pen.larger * POINT + 0.1,
        MARGIN + 1.3 * TEXT * len(below) * pen.larger * POINT + 0.06,
    )


def colour_bar(ax: Axes, pen: Pen, sheet: Sheet, palette: str | Colormap, place: tuple[float, float, float]) -> None:
    """The scale, upright, at (left, top, height)."""
    left, top, height = place
    ax.imshow(colours(palette)[::-1, None], extent=(left, left + 0.12, top + height, top), aspect="auto", zorder=2)
    frame(ax, left, top, 0.12, height)
    largest = max(panel.top for panel in sheet.panels)
    own = sheet.scale == "panel" and len(sheet.panels) > 1
    marks = [(0.0, "0"), (1.0, "max")] if own else [(f, f"{f * largest:.3g}" if f else "0") for f in (0, 0.5, 1)]
    for fraction, label in marks:
        y = top + height * (1 - fraction)
        ax.plot([left + 0.12, left + 0.15], [y, y], color=GREY, linewidth=0.6)
        ax.text(left + 0.18, y, label, va="center", **pen.style(SMALL, color=GREY))


def frame(ax: Axes, left: float, top: float, width: float, height: float) -> None:
    """A thin line round a panel, so that a pale one has its edges."""
    from matplotlib.patches import Rectangle

    ax.add_patch(Rectangle((left, top), width, height, fill=False, edgecolor=FRAME, linewidth=0.6, zorder=3))
