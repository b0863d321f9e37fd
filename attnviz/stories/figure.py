"""The picture of a story: its panels on one page.

Each panel is drawn at its size, Matplotlib measures how far its labels reach, and only then is it put in its place:
nothing is cut.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import UInt8

from attnviz.render.figure.export import Picture, blank_figure, usual_settings
from attnviz.render.figure.page import height_of, legend_above, lines, page_of, scale_marks
from attnviz.render.figure.pen import (
    FRAME,
    LEAST_TEXT,
    MARGIN,
    PITCH,
    POINT,
    SMALL,
    TEXT,
    TITLE,
    Pen,
    upward,
)
from attnviz.render.figure.style import Style, StyleName, style_of
from attnviz.render.palette import COLOURS, DEFAULT, MARKERS, colours, diverging, ink, levels
from attnviz.stories.record import Bars, Lines, Matrix, Panel, Story, decimals
from attnviz.text.messages import _, join_phrases

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NARROWEST, WIDEST = (
    5.0,
    17.0,
)  # inches: of the page, and what panels may take side by side before they go on below
GAP = 0.3
CLOSE = 0.65  # how large panels are of their usual size in a style that has a width: their letters come out larger
AROUND = 1.0  # about what the words above and below the panels take
TALLEST = 6.0  # inches: beside a matrix taller than this a chart keeps its own height
BAR = 0.55  # what a colour bar takes at the right of its panel, numbers included
STAGE = 10  # inches of the square figure on which each panel is drawn before it has a place
WIDTH, HEIGHT = 3.6, 3.0  # inches of the axes
LINES_OF_A_LABEL = 3  # a bar's label of more lines stands upright instead
UNSEEN = 1e-3  # a bar so short beside the longest cannot be seen
NAMED = 40  # rows or columns that are drawn large enough to be named each
LEVEL = 5.4  # inches across in which columns are made as wide as their names, so that these need not stand upright
SIDE = 3.6  # inches of a panel of more cells than can be named


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnPanel:
    """A panel that is drawn but has no place yet; lengths in inches."""

    panel: Panel
    ax: Axes
    width: float  # of the axes
    height: float  # likewise
    left: float  # how far its labels reach out of the axes on this side
    right: float  # likewise, with its colour bar
    above: float  # likewise, with its title
    below: float  # likewise
    has_bar: bool  # whether a colour bar stands at its right
    pad: float  # how far its title stands above the axes, in points


def draw(
    story: Story,
    *,
    palette: str = DEFAULT,
    style: StyleName = "sheet",
    width: str | None = None,
    dpi: int | None = None,
) -> Picture:
    """A picture with all panels of a story, its title, and below how the numbers were proved.

    An `AttnvizWarning` tells where it cannot be read in its style. Raises SelectionError: a palette that is not there;
    SettingsError: a style or width that no picture has.
    """
    fitting = style_of(style, width, dpi)
    with usual_settings():
        # all letters that are written
        pen = blank_figure([story.title, *_words_below(story), repr(story.picture)])
        pen.figure.set_size_inches(STAGE, STAGE)
        room = 1.0 if fitting.width is None else CLOSE
        panels = [_draw_panel(panel, palette, pen, room) for panel in story.picture]
        _place(
            [_levelled(row, pen) for row in _rows(panels, fitting)],
            story,
            palette,
            pen,
            NARROWEST * room,
        )
    return Picture(pen, story.title, story.receipt).fitted(fitting)


def _draw_panel(panel: Panel, palette: str, pen: Pen, room: float) -> DrawnPanel:
    ax = pen.figure.add_axes((0.2, 0.2, 0.5, 0.5))
    match panel:
        case Matrix():
            legend = _draw_matrix(ax, panel, palette, pen, room)
        case Lines():
            legend = _draw_lines(ax, panel, pen, room)
        case Bars():
            legend = _draw_bars(ax, panel, pen, room)
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
        panel=panel,
        ax=ax,
        width=x1 - x0,
        height=y1 - y0,
        left=x0 - left,
        above=above - y1,
        below=y0 - below,
        right=max(right - x1, BAR if has_bar else 0.0),
        has_bar=has_bar,
        pad=pad,
    )


def _levelled(row: list[DrawnPanel], pen: Pen) -> list[DrawnPanel]:
    """Panels that stand side by side: charts as tall as the matrices, titles at one height."""
    tall = max((one.height for one in row if isinstance(one.panel, Matrix)), default=0.0)
    for index, one in enumerate(row):
        if not isinstance(one.panel, Matrix) and one.height < tall <= TALLEST:
            _resize(one.ax, one.width, tall)
            row[index] = _measure(one.panel, one.ax, pen, one.pad)
    above = max(one.above for one in row)
    for one in row:
        _title(one.ax, one.ax.get_title(loc="left"), one.pad + (above - one.above) / POINT, pen)
    return [replace(one, above=above) for one in row]


def _place(
    rows: list[list[DrawnPanel]], story: Story, palette: str, pen: Pen, least: float
) -> None:
    """Put the panels in their places on a page of a least width, and write what stands above and below them."""
    panels = [one for row in rows for one in row]
    across = len(rows[0])
    lefts = [max(one.left for one in panels[column::across]) for column in range(across)]
    widths = [
        max(one.width + one.right for one in panels[column::across]) for column in range(across)
    ]
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
            _print_numbers(one.ax, one.panel, palette, pen)
            if one.has_bar:
                place = (x + one.width + 0.1, y, min(one.height, max(0.8, one.height * 0.6)))
                page.colour_bar(
                    _table_of(one.panel, palette), place, scale_marks(*one.panel.limits)
                )
    page.write(title, MARGIN)
    page.write(below, top + 1.1 * TEXT * larger * POINT, va="baseline")


def _rows(panels: list[DrawnPanel], style: Style) -> list[list[DrawnPanel]]:
    """Rows of one length, as few as can be read best in the style; one bar for equal neighbours."""
    lengths = sorted(
        {math.ceil(len(panels) / down) for down in range(1, len(panels) + 1)}, reverse=True
    )
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
    height = AROUND + sum(
        max(one.above + one.height + one.below + GAP for one in row) for row in rows
    )
    return min(style.width / width, (style.height or math.inf) / height)


def _scale(drawn: DrawnPanel | None) -> tuple[tuple[float, float], bool] | None:
    """Return the limits of a panel's colour bar and whether it diverges, or None where it has none."""
    return (
        (drawn.panel.limits, drawn.panel.diverging)
        if drawn and isinstance(drawn.panel, Matrix)
        else None
    )


def _words_below(story: Story) -> list[str]:
    """Return the lines below the panels: the receipt, and how to read them."""
    matrices = [panel for panel in story.picture if isinstance(panel, Matrix)]
    intervals = [
        name
        for kind, name in ((Lines, _("bands")), (Bars, _("whiskers")))
        if any(
            isinstance(panel, kind) and any(one.low for one in panel.series)
            for panel in story.picture
        )
    ]
    axes = dict.fromkeys((m.row_title, m.column_title) for m in matrices)
    notes = [
        _("rows: {row}, columns: {column}").format(row=row, column=column) for row, column in axes
    ]
    if any(np.isnan(matrix.values).any() for matrix in matrices):
        notes.append(_("hatched: masked, so that there is no number"))
    if intervals:
        marks = join_phrases(intervals, " and ", ", ")
        notes.append(_("{marks}: the interval of each value").format(marks=marks))
    return [story.receipt, *([story.say(join_phrases(notes, " · "))] if notes else [])]


def _resize(ax: Axes, width: float, height: float) -> None:
    ax.set_position((0.2, 0.2, width / STAGE, height / STAGE))


def _draw_matrix(ax: Axes, matrix: Matrix, palette: str, pen: Pen, room: float) -> float:
    """Draw the cells and name them; as those of the charts, it returns how high its legend stands: it has none."""
    width, height = _size(matrix, pen.widest(matrix.columns) + 0.12, room)
    _resize(ax, width, height)
    n_rows, n_columns = matrix.values.shape
    masked = np.isnan(matrix.values)
    shown = _table_of(matrix, palette)[_levels(matrix)]
    ax.set_facecolor("#f4f4f4")
    if masked.any():
        ax.patch.set(hatch="////", edgecolor="#c8c8c8", linewidth=0)
    image = np.dstack([shown, np.where(masked, 0, 255).astype(np.uint8)])
    ax.imshow(image, aspect="auto", interpolation="none", zorder=2)
    upright = bool(matrix.columns) and pen.widest(matrix.columns) > width / n_columns - 0.06
    turned, apart = (90.0, PITCH) if upright else (0.0, 0.3)
    ax.set_xticks(
        *_cells(matrix.columns, n_columns, width / n_columns, apart), rotation=turned, **pen.style()
    )
    ax.set_yticks(*_cells(matrix.rows, n_rows, height / n_rows, PITCH), **pen.style())
    ax.tick_params(length=0, pad=3)
    _name_axes(ax, pen, matrix.column_title, matrix.row_title)
    ax.spines[:].set(color=FRAME, linewidth=0.6)
    return 0.0


def _print_numbers(ax: Axes, matrix: Matrix, palette: str, pen: Pen) -> None:
    """Print each cell's number in it, where all of them fit."""
    n_rows, n_columns = matrix.values.shape
    if max(n_rows, n_columns) > NAMED:
        return
    box = ax.get_window_extent()
    width, height = box.width / n_columns / pen.figure.dpi, box.height / n_rows / pen.figure.dpi
    given = {
        place: float(value) for place, value in np.ndenumerate(matrix.values) if not np.isnan(value)
    }
    digits = 0 if all(value.is_integer() for value in given.values()) else 2
    numbers = {place: decimals(value, digits) for place, value in given.items()}
    size = min(
        TEXT,
        0.82 * width / (pen.widest(list(numbers.values()), TEXT) / TEXT or 1),
        0.6 * height / POINT,
    )
    if size < LEAST_TEXT:
        return
    white = ink(_table_of(matrix, palette))[_levels(matrix)]
    for place, number in numbers.items():
        style = pen.style(size, color="white" if white[place] else pen.ink)
        ax.text(place[1], place[0], number, ha="center", va="center", zorder=3, **style)


def _table_of(matrix: Matrix, palette: str) -> UInt8[np.ndarray, "level rgb"]:
    return diverging() if matrix.diverging else colours(palette)


def _draw_lines(ax: Axes, lines: Lines, pen: Pen, room: float) -> float:
    width, height = WIDTH * room, HEIGHT * room
    _resize(ax, width, height)
    few = len(lines.x) <= 24
    for index, one in enumerate(lines.series):
        colour = COLOURS[index % len(COLOURS)]
        covers = any(
            np.allclose(one.values, other.values, equal_nan=True) for other in lines.series[:index]
        )
        if one.low:
            ax.fill_between(lines.x, one.low, one.high, color=colour, alpha=0.18, linewidth=0)
        ax.plot(
            lines.x,
            one.values,
            color=colour,
            linewidth=1.4,
            label=one.name,
            clip_on=False,
            zorder=3,
            linestyle=(0, (2, 3)) if covers else ("-", "--")[index // len(COLOURS) % 2],
            marker=MARKERS[index % len(MARKERS)] if few else "",
            markersize=3.5,
            markerfacecolor="none" if covers else colour,
            markeredgewidth=1.4 if covers else 1.0,
        )
    if lines.doubling:
        ax.set_xscale("log", base=2)
        ax.minorticks_off()
    if lines.y_doubling:
        ax.set_yscale("log", base=2)
        ax.yaxis.set_major_formatter("{x:g}")
        ax.minorticks_off()
    if lines.y_limits is not None:
        ax.set_ylim(*lines.y_limits)
    _ticks(ax, lines, width, pen)
    return _finish_chart(ax, pen, lines.x_title, lines.y_title, (width, height))


def _draw_bars(ax: Axes, bars: Bars, pen: Pen, room: float) -> float:
    n, n_series = len(bars.labels), len(bars.series)
    width, height = min(6.0, max(2.4, n * (0.2 + 0.3 * n_series))) * room, HEIGHT * room
    _resize(ax, width, height)
    thick = 0.8 / n_series
    places = np.arange(n)
    given = [value for one in bars.series for value in one.values if not math.isnan(value)]
    longest = max(map(abs, given), default=0.0)
    fits = pen.widest([f"{value:.2f}" for value in given], SMALL) < thick * width / n - 0.03
    for index, one in enumerate(bars.series):
        errors = (
            [np.subtract(one.values, one.low), np.subtract(one.high, one.values)]
            if one.low
            else None
        )
        drawn = ax.bar(
            places + (index - (n_series - 1) / 2) * thick,
            one.values,
            thick * 0.94,
            label=one.name,
            zorder=2,
            color=COLOURS[index % len(COLOURS)],
            yerr=errors,
            error_kw={"elinewidth": 0.8, "capsize": 2, "ecolor": pen.ink},
        )
        if fits:
            ax.bar_label(drawn, fmt="%.2f", padding=2, **pen.style(SMALL, color=pen.quiet))
        elif pen.width("0", SMALL) < thick * width / n:
            nothing = ["0" if abs(value) <= UNSEEN * longest else "" for value in one.values]
            ax.bar_label(drawn, nothing, padding=2, **pen.style(SMALL, color=pen.quiet))
    ax.margins(x=0.02, y=0.12)
    ax.axhline(0, color=pen.quiet, linewidth=0.6, zorder=3)
    _name_bars(ax, bars.labels, width / n, pen)
    return _finish_chart(ax, pen, "", bars.y_title, (width, height))


def _size(matrix: Matrix, label: float, room: float) -> tuple[float, float]:
    """Width and height of the cells together, in inches: square where there are few, unless names want them wider."""
    n_rows, n_columns = matrix.values.shape
    longest = max(n_rows, n_columns)
    if longest <= NAMED:
        cell = min(0.5 * room, max(1.1 * PITCH, SIDE * room / longest))
        level = max(cell, label)
        return n_columns * (level if n_columns * level <= LEVEL * room else cell), n_rows * cell
    side = SIDE * room
    return side * (1.4 if n_columns > 2 * n_rows else 1), side * (
        1.4 if n_rows > 2 * n_columns else 1
    )


def _cells(labels: Sequence[str], n: int, cell: float, room: float) -> tuple[range, list[str]]:
    """Which cells along one side are named, or counted where they have no names; not each, where they are too close."""
    if labels:
        places = range(0, n, max(1, math.ceil(room / cell - 0.01)))
        return places, [labels[place] for place in places]
    steps = (step * 10**power for power in range(9) for step in (1, 2, 5))
    places = range(0, n, next(step for step in steps if step * cell >= room))
    return places, [f"{place}" for place in places]


def _levels(matrix: Matrix) -> UInt8[np.ndarray, "row column"]:
    low, high = matrix.limits
    return levels(np.nan_to_num(matrix.values, nan=low) - low, high - low)


def _name_bars(ax: Axes, labels: Sequence[str], room: float, pen: Pen) -> None:
    """Name the bars: in a few lines where the words have room, else upright; not each, where they stand too close."""
    if pen.widest([word for label in labels for word in label.split()]) <= room - 0.06:
        wrapped = [pen.wrap(label, room - 0.06) for label in labels]
        if max(map(len, wrapped)) <= LINES_OF_A_LABEL:
            ax.set_xticks(
                range(len(labels)), ["\n".join(lines) for lines in wrapped], **pen.style()
            )
            return
    places = range(0, len(labels), math.ceil(PITCH / room))
    ax.set_xticks(places, [labels[place] for place in places], rotation=90, **pen.style())


def _ticks(ax: Axes, lines: Lines, width: float, pen: Pen) -> None:
    """Along the bottom the places themselves where they are few or double, else round numbers."""
    if not lines.doubling and len(lines.x) > 12:
        ax.locator_params(axis="x", integer=all(x.is_integer() for x in lines.x))
        return
    low, high = ax.get_xlim()
    room = pen.widest([f"{x:g}" for x in lines.x]) + 0.06
    along = np.log2 if lines.doubling else np.asarray
    inches = (along(np.array(lines.x)) - along(low)) / (along(high) - along(low)) * width
    kept, after = [], math.inf
    for x, at in zip(lines.x[::-1], inches[::-1], strict=True):
        if after - at >= room:
            kept.append(x)
            after = at
    ax.set_xticks(kept, [f"{x:g}" for x in kept])


def _name_axes(ax: Axes, pen: Pen, x_title: str, y_title: str) -> None:
    ax.set_xlabel(x_title, labelpad=4, **pen.style(color=pen.quiet))
    text, turned = upward(y_title)
    place: dict[str, Any] = (
        {} if turned else {"ha": "right", "va": "center", "multialignment": "center"}
    )
    ax.set_ylabel(text, labelpad=4, rotation=turned, **place, **pen.style(color=pen.quiet))


def _finish_chart(
    ax: Axes, pen: Pen, x_title: str, y_title: str, size: tuple[float, float]
) -> float:
    """Name the axes, and above them the series unless an axis says it already; return how high the names stand."""
    width, height = size
    _name_axes(ax, pen, x_title, "\n".join(pen.wrap(y_title, height)))
    ax.tick_params(length=0, pad=4, labelsize=TEXT, labelcolor=pen.ink)
    ax.grid(axis="y", color="#e6e6e6", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.spines["bottom"].set(color=FRAME, linewidth=0.6)
    names = ax.get_legend_handles_labels()[1]
    if len(names) == 1 and names[0] in {"", y_title}:
        return 0.0
    wrapped = ["\n".join(pen.wrap(name, width - 0.3)) for name in names]
    # A line of the sample, a space, the name, a space.
    return legend_above(ax, pen, wrapped, 1.4 + 0.8 + 1.5, handlelength=1.4, columnspacing=1.5)
