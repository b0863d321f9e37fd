"""The picture of a story: its panels on one sheet, as PNG, SVG or PDF.

As in the other figures nothing touches pyplot, and Matplotlib's settings are what they were afterwards. Each panel is
drawn at its size, Matplotlib measures how far its labels reach, and only then is it put in its place: nothing is cut.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from attnviz.render.figure.export import blank_sheet, save, usual_settings
from attnviz.render.figure.page import canvas
from attnviz.render.figure.pen import BLACK, GREY, MARGIN, POINT, TEXT, TITLE, Pen
from attnviz.render.fonts import Typefaces, typefaces_for
from attnviz.render.palette import DEFAULT
from attnviz.stories.figure.chart import draw_bars, draw_lines
from attnviz.stories.figure.matrix import colour_bar, draw_matrix, print_numbers, same_colours
from attnviz.stories.record import Bars, Lines, Matrix, Panel, Story

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDEST = 17.0
"""Inches that panels may take side by side before they go on below."""
GAP = 0.3
TALLEST = 6.0
"""Inches: beside a matrix taller than this a chart keeps its own height."""
BAR = 0.55
"""What a colour bar takes at the right of its panel, numbers included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A panel that is drawn but has no place yet; lengths in inches.

    Attributes:
        panel: what it shows.
        ax: the axes.
        width: of the axes.
        height: likewise.
        left: how far its labels reach out of the axes on this side.
        right: likewise, with its colour bar.
        above: likewise, with its title.
        below: likewise.
        has_bar: whether a colour bar stands at its right.
        pad: how far its title stands above the axes, in points.
    """

    panel: Panel
    ax: Axes
    width: float
    height: float
    left: float
    right: float
    above: float
    below: float
    has_bar: bool
    pad: float


def figure(story: Story, palette: str = DEFAULT) -> Figure:
    """A figure with all panels of a story, its title, and below how the numbers were proved."""
    with usual_settings():
        pen = blank_sheet(_texts(story))
        _place([_block(panel, palette, pen) for panel in story.picture], story, palette, pen)
    return pen.figure


def write(story: Story, path: Path | BytesIO, suffix: str, palette: str = DEFAULT) -> Typefaces:
    """Draw a story's picture into a file.

    Args:
        story: what to draw.
        path: the file, or what it is written into.
        suffix: `.png`, `.svg` or `.pdf`.
        palette: one of `attnviz.render.palette.PALETTES`.

    Returns:
        The fonts used, with the characters that none has.
    """
    save(figure(story, palette), path, suffix, title=story.title, description=story.receipt)
    return typefaces_for(_texts(story))


def _block(panel: Panel, palette: str, pen: Pen) -> Block:
    """Draw one panel and measure it."""
    pen.figure.set_size_inches(10, 10)
    ax = pen.figure.add_axes((0.2, 0.2, 0.5, 0.5))

    def resize(width: float, height: float) -> None:
        ax.set_position((0.2, 0.2, width / 10, height / 10))

    match panel:
        case Matrix():
            legend = draw_matrix(ax, panel, palette, pen, resize)
        case Lines():
            legend = draw_lines(ax, panel, pen, resize)
        case Bars():
            legend = draw_bars(ax, panel, pen, resize)
    box = ax.get_window_extent()
    lines = pen.wrap(panel.title, max(box.width / pen.figure.dpi, 2.4), TEXT + 1)
    pad = 6 + legend / POINT
    _title(ax, "\n".join(lines), pad, pen)
    return _measured(panel, ax, pen, pad)


def _title(ax: Axes, text: str, pad: float, pen: Pen) -> None:
    ax.set_title(text, loc="left", pad=pad, linespacing=1.25, **pen.style(TEXT + 1))


def _measured(panel: Panel, ax: Axes, pen: Pen, pad: float) -> Block:
    """How far a panel that is drawn reaches."""
    box = ax.get_window_extent()
    around = ax.get_tightbbox(pen.figure.canvas.get_renderer())  # type: ignore[attr-defined]
    left, below, right, above = (float(x) / pen.figure.dpi for x in around.extents)  # type: ignore[union-attr]
    x0, y0, x1, y1 = (float(x) / pen.figure.dpi for x in box.extents)
    has_bar = isinstance(panel, Matrix)
    return Block(
        panel=panel,
        ax=ax,
        width=x1 - x0,
        height=y1 - y0,
        left=x0 - left,
        right=max(right - x1, BAR if has_bar else 0.0),
        above=above - y1,
        below=y0 - below,
        has_bar=has_bar,
        pad=pad,
    )


def _levelled(line: list[Block], pen: Pen) -> list[Block]:
    """Panels that stand side by side: charts as tall as the matrices, titles at one height."""
    tall = max((block.height for block in line if isinstance(block.panel, Matrix)), default=0.0)
    pen.figure.set_size_inches(10, 10)
    grown = []
    for block in line:
        if isinstance(block.panel, Matrix) or not block.height < tall <= TALLEST:
            grown.append(block)
            continue
        block.ax.set_position((0.2, 0.2, block.width / 10, tall / 10))
        grown.append(_measured(block.panel, block.ax, pen, block.pad))
    above = max(block.above for block in grown)
    for block in grown:
        higher = block.pad + (above - block.above) / POINT
        _title(block.ax, block.ax.get_title(loc="left"), higher, pen)
    return [replace(block, above=above) for block in grown]


def _place(blocks: list[Block], story: Story, palette: str, pen: Pen) -> None:
    """Put the panels in their places, in lines and columns, and write what stands above and below them."""
    lines = [_levelled(line, pen) for line in _lines(blocks)]
    blocks = [block for line in lines for block in line]
    across = len(lines[0])
    lefts = [max(block.left for block in blocks[column::across]) for column in range(across)]
    widths = [max(block.width + block.right for block in blocks[column::across]) for column in range(across)]
    starts = [MARGIN + sum(lefts[: c + 1]) + sum(widths[:c]) + GAP * c for c in range(across)]
    width = max(starts[-1] + widths[-1] + MARGIN, 5.0)
    pen = replace(pen, larger=min(1.4, max(1.0, width / 10)))
    title = pen.wrap(story.title, width - 2 * MARGIN, TITLE * pen.larger)
    below = [
        (line, GREY if index else BLACK)
        for index, text in enumerate(_said(story))
        for line in pen.wrap(text, width - 2 * MARGIN, TEXT * pen.larger)
    ]
    top = MARGIN + 1.35 * TITLE * pen.larger * POINT * len(title) + 0.12
    tops = []
    for line in lines:
        top += max(block.above for block in line)
        tops.append(top)
        top += max(block.height + block.below for block in line) + GAP
    top -= GAP / 2
    height = top + 1.35 * TEXT * pen.larger * POINT * len(below) + MARGIN
    frame = canvas(pen, width, height)
    for number, block in enumerate(blocks):
        row, column = divmod(number, across)
        x, y = starts[column], tops[row]
        block.ax.set_position((x / width, 1 - (y + block.height) / height, block.width / width, block.height / height))
        if isinstance(block.panel, Matrix):
            print_numbers(block.ax, block.panel, palette, pen)
            if block.has_bar:
                place = (x + block.width + 0.1, y, min(block.height, max(0.8, block.height * 0.6)))
                colour_bar(frame, block.panel, palette, pen, place)
    y = MARGIN
    for text in title:
        frame.text(MARGIN, y, text, va="top", **pen.style(TITLE * pen.larger))
        y += 1.35 * TITLE * pen.larger * POINT
    y = top + 1.1 * TEXT * pen.larger * POINT
    for text, colour in below:
        frame.text(MARGIN, y, text, va="baseline", **pen.style(TEXT * pen.larger, color=colour))
        y += 1.35 * TEXT * pen.larger * POINT
    frame.set(xlim=(0, width), ylim=(height, 0))


def _lines(blocks: list[Block]) -> list[list[Block]]:
    """As many panels side by side as the sheet has room for, in lines of one length; one bar for equal neighbours."""
    n = len(blocks)
    for down in range(1, n + 1):
        across = math.ceil(n / down)
        lines = [blocks[start : start + across] for start in range(0, n, across)]
        if max(sum(b.left + b.width + b.right + GAP for b in line) for line in lines) <= WIDEST:
            break
    return [
        [
            replace(block, has_bar=False, right=block.right - BAR + 0.1)
            if after is not None and block.right <= BAR and same_colours(block.panel, after.panel)
            else block
            for block, after in zip(line, [*line[1:], None], strict=True)
        ]
        for line in lines
    ]


def _said(story: Story) -> list[str]:
    """What stands below the panels: the receipt, and how to read them."""
    matrices = [panel for panel in story.picture if isinstance(panel, Matrix)]
    intervals = [
        name
        for kind, name in ((Lines, "bands"), (Bars, "whiskers"))
        if any(isinstance(panel, kind) and any(one.low for one in panel.series) for panel in story.picture)
    ]
    said = [
        f"rows: {row}, columns: {column}"
        for row, column in dict.fromkeys((m.row_title, m.column_title) for m in matrices)
    ]
    if any(np.isnan(matrix.values).any() for matrix in matrices):
        said.append("hatched: masked, so that there is no number")
    if intervals:
        said.append(f"{' and '.join(intervals)}: the interval of each value")
    return [story.receipt, *([" · ".join(said)] if said else [])]


def _texts(story: Story) -> list[str]:
    """All that the picture says."""
    texts = [story.title, *_said(story)]
    for panel in story.picture:
        texts.append(panel.title)
        match panel:
            case Matrix():
                texts += [*panel.rows, *panel.columns, panel.row_title, panel.column_title]
            case Lines():
                texts += [panel.x_title, panel.y_title, *(one.name for one in panel.series)]
            case Bars():
                texts += [*panel.labels, panel.y_title, *(one.name for one in panel.series)]
    return texts
