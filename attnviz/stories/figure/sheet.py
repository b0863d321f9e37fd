"""The picture of a story: its panels on one page.

Each panel is drawn at its size, Matplotlib measures how far its labels reach, and only then is it put in its place:
nothing is cut.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from attnviz.render.figure.export import Picture, blank_figure, usual_settings
from attnviz.render.figure.page import height_of, lines, page_of, scale_marks
from attnviz.render.figure.pen import MARGIN, POINT, TEXT, TITLE, Pen
from attnviz.render.figure.style import STYLES, Style
from attnviz.render.palette import DEFAULT
from attnviz.settings import PageSettings
from attnviz.stories.figure.panels import STAGE, draw_bars, draw_lines, draw_matrix, print_numbers, resize, table_of
from attnviz.stories.record import Bars, Lines, Matrix, Panel, Story

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NARROWEST, WIDEST = 5.0, 17.0  # inches: of the page, and what panels may take side by side before they go on below
GAP = 0.3
CLOSE = 0.65  # how large panels are of their usual size in a style that has a width: their letters come out larger
AROUND = 1.0  # about what the words above and below the panels take
TALLEST = 6.0  # inches: beside a matrix taller than this a chart keeps its own height
BAR = 0.55  # what a colour bar takes at the right of its panel, numbers included


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnPanel:
    """A panel that is drawn but has no place yet; lengths in inches."""

    panel: Panel  # what it shows
    ax: Axes  # the axes
    width: float  # of the axes
    height: float  # likewise
    left: float  # how far its labels reach out of the axes on this side
    right: float  # likewise, with its colour bar
    above: float  # likewise, with its title
    below: float  # likewise
    has_bar: bool  # whether a colour bar stands at its right
    pad: float  # how far its title stands above the axes, in points


def draw(story: Story, palette: str = DEFAULT, style: Style = STYLES["sheet"]) -> Picture:
    """A picture with all panels of a story, its title, and below how the numbers were proved.

    An `AttnvizWarning` tells where it cannot be read in its style.

    Raises:
        SelectionError: a palette that is not there.
    """
    with usual_settings():
        pen = blank_figure([*_texts((story.title, *_words_below(story), story.picture))])
        room = 1.0 if style.width is None else CLOSE
        panels = [_draw_panel(panel, palette, pen, room) for panel in story.picture]
        _place([_levelled(row, pen) for row in _rows(panels, style)], story, palette, pen, NARROWEST * room)
    return Picture(pen, story.title, story.receipt).fitted(style)


def draw_for(story: Story, *, cmap: str = DEFAULT, **page: Any) -> Picture:
    """The same for what the fields of `attnviz.settings.PageSettings` say."""
    return draw(story, cmap, PageSettings(**page).look)


def _draw_panel(panel: Panel, palette: str, pen: Pen, room: float) -> DrawnPanel:
    pen.figure.set_size_inches(STAGE, STAGE)
    ax = pen.figure.add_axes((0.2, 0.2, 0.5, 0.5))
    match panel:
        case Matrix():
            legend = draw_matrix(ax, panel, palette, pen, room)
        case Lines():
            legend = draw_lines(ax, panel, pen, room)
        case Bars():
            legend = draw_bars(ax, panel, pen, room)
    box = ax.get_window_extent()
    title = pen.wrap(panel.title, max(box.width / pen.figure.dpi, 2.4), TEXT + 1)
    pad = 6 + legend / POINT
    _title(ax, "\n".join(title), pad, pen)
    return _measure(panel, ax, pen, pad)


def _title(ax: Axes, text: str, pad: float, pen: Pen) -> None:
    ax.set_title(text, loc="left", pad=pad, linespacing=1.25, **pen.style(TEXT + 1))


def _measure(panel: Panel, ax: Axes, pen: Pen, pad: float) -> DrawnPanel:
    around = ax.get_tightbbox(pen.figure.canvas.get_renderer())  # type: ignore[attr-defined]
    left, below, right, above = (float(x) / pen.figure.dpi for x in around.extents)  # type: ignore[union-attr]
    x0, y0, x1, y1 = (float(x) / pen.figure.dpi for x in ax.get_window_extent().extents)
    has_bar = isinstance(panel, Matrix)
    return DrawnPanel(
        panel=panel, ax=ax, width=x1 - x0, height=y1 - y0, left=x0 - left, above=above - y1, below=y0 - below,
        right=max(right - x1, BAR if has_bar else 0.0), has_bar=has_bar, pad=pad,
    )  # fmt: skip


def _levelled(row: list[DrawnPanel], pen: Pen) -> list[DrawnPanel]:
    """Panels that stand side by side: charts as tall as the matrices, titles at one height."""
    tall = max((one.height for one in row if isinstance(one.panel, Matrix)), default=0.0)
    pen.figure.set_size_inches(STAGE, STAGE)
    grown = []
    for one in row:
        short = not isinstance(one.panel, Matrix) and one.height < tall <= TALLEST
        if short:
            resize(one.ax, one.width, tall)
        grown.append(_measure(one.panel, one.ax, pen, one.pad) if short else one)
    above = max(one.above for one in grown)
    for one in grown:
        _title(one.ax, one.ax.get_title(loc="left"), one.pad + (above - one.above) / POINT, pen)
    return [replace(one, above=above) for one in grown]


def _place(rows: list[list[DrawnPanel]], story: Story, palette: str, pen: Pen, least: float) -> None:
    """Put the panels in their places on a page of a least width, and write what stands above and below them."""
    panels = [one for row in rows for one in row]
    across = len(rows[0])
    lefts = [max(one.left for one in panels[column::across]) for column in range(across)]
    widths = [max(one.width + one.right for one in panels[column::across]) for column in range(across)]
    starts = [MARGIN + sum(lefts[: c + 1]) + sum(widths[:c]) + GAP * c for c in range(across)]
    width = max(starts[-1] + widths[-1] + MARGIN, least)
    larger = min(1.4, max(1.0, width / 10))
    title = lines(pen, [story.title], width - 2 * MARGIN, TITLE * larger)
    below = lines(pen, _words_below(story), width - 2 * MARGIN, TEXT * larger)
    top = MARGIN + height_of(title) + 0.12
    tops = []
    for row in rows:
        top += max(one.above for one in row)
        tops.append(top)
        top += max(one.height + one.below for one in row) + GAP
    top -= GAP / 2
    page = page_of(pen, width, top + height_of(below) + MARGIN)
    for number, one in enumerate(panels):
        row_number, column = divmod(number, across)
        x, y = starts[column], tops[row_number]
        page.move(one.ax, (x, y, one.width, one.height))
        if isinstance(one.panel, Matrix):
            print_numbers(one.ax, one.panel, palette, pen)
            if one.has_bar:
                place = (x + one.width + 0.1, y, min(one.height, max(0.8, one.height * 0.6)))
                page.colour_bar(table_of(one.panel, palette), place, scale_marks(*one.panel.limits))
    page.write(title, MARGIN)
    page.write(below, top + 1.1 * TEXT * larger * POINT, va="baseline")


def _rows(panels: list[DrawnPanel], style: Style) -> list[list[DrawnPanel]]:
    """Rows of one length, as few as can be read best in the style; one bar for equal neighbours."""
    lengths = sorted({math.ceil(len(panels) / down) for down in range(1, len(panels) + 1)}, reverse=True)
    ways = [[panels[start : start + n] for start in range(0, len(panels), n)] for n in lengths]
    return [
        [
            replace(one, has_bar=False, right=one.right - BAR + 0.1)
            if one.has_bar and one.right <= BAR and _scale(one) == _scale(after)
            else one
            for one, after in zip(row, [*row[1:], None], strict=True)
        ]
        for row in max(ways, key=lambda rows: _zoom(rows, style))
    ]


def _zoom(rows: list[list[DrawnPanel]], style: Style) -> float:
    """How many times as large as they are drawn panels come out in a style; on a sheet, as they are if they fit."""
    width = max(sum(one.left + one.width + one.right + GAP for one in row) for row in rows)
    if style.width is None:
        return min(1.0, WIDEST / width)
    height = AROUND + sum(max(one.above + one.height + one.below + GAP for one in row) for row in rows)
    return min(style.width / width, (style.height or math.inf) / height)


def _scale(drawn: DrawnPanel | None) -> tuple[tuple[float, float], bool] | None:
    """What a colour bar says of a panel; None where it has none."""
    return (drawn.panel.limits, drawn.panel.diverging) if drawn and isinstance(drawn.panel, Matrix) else None


def _words_below(story: Story) -> list[str]:
    """What stands below the panels: the receipt, and how to read them."""
    matrices = [panel for panel in story.picture if isinstance(panel, Matrix)]
    intervals = [
        name
        for kind, name in ((Lines, story.say("bands", "띠")), (Bars, story.say("whiskers", "수염")))
        if any(isinstance(panel, kind) and any(one.low for one in panel.series) for panel in story.picture)
    ]
    axes = dict.fromkeys((m.row_title, m.column_title) for m in matrices)
    notes = [story.say(f"rows: {row}, columns: {column}", f"행: {row}, 열: {column}") for row, column in axes]
    if any(np.isnan(matrix.values).any() for matrix in matrices):
        notes.append(story.say("hatched: masked, so that there is no number", "빗금: 마스크로 가려져 수가 없음"))
    if intervals:
        bands, korean = " and ".join(intervals), ", ".join(intervals)
        notes.append(story.say(f"{bands}: the interval of each value", f"{korean}: 각 값의 구간"))
    return [story.receipt, *([" · ".join(notes)] if notes else [])]


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _texts(part)
    elif is_dataclass(value):
        for one in fields(value):
            yield from _texts(getattr(value, one.name))
