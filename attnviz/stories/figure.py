"""The picture of a story: its main panel large, the others smaller beside it or below.

Each panel is drawn first, so that Matplotlib can measure how far its labels reach, and is then moved to its place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import UInt8

from attnviz.look import Look
from attnviz.render.figure.export import Picture, blank_figure, usual_settings
from attnviz.render.figure.page import Line, height_of, legend_above, lines, page_of, scale_marks
from attnviz.render.figure.pen import (
    LEAST_TEXT,
    MARGIN,
    POINT,
    SMALL,
    TEXT,
    TITLE,
    Pen,
)
from attnviz.render.figure.style import Style, enlarge, style_of
from attnviz.render.palette import MARKERS, levels, text_colours
from attnviz.render.theme import Theme, theme_of
from attnviz.stories.record import Bars, Lines, Matrix, Panel, Series, Story, typeset
from attnviz.text.display import decimals
from attnviz.text.messages import _

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

# All lengths are inches, in letters of the usual size: a slide or a paper is enlarged as a whole at the end.
LETTERS = {"sheet": TEXT, "slides": 13.0, "paper": TEXT}  # font sizes of the labels, in points
WIDTH, WIDTH_OF_ONE = 10.0, 6.0  # of a sheet with several panels, and with one
HEIGHT = 3.9  # of all panels together, on a page without a fixed height
COLUMN = 5.0  # on a narrower page, panels stand below one another
MAIN_SHARE = 0.55  # of the width, at most, for the first panel
HEIGHT_SHARES = (
    0.85,
    0.65,
)  # largest heights of the first panel and of others in a column, by its width
GAP = 0.22  # between panels
STAGE = 20.0  # side of the square figure on which panels are drawn before they have a place
CHART_SHAPE = 1.6  # width over height of a chart
LARGEST_CELL, SMALLEST_AXES = 0.75, 0.5
MOST_CORRECTIONS = 4
BAR = 0.55  # room for a colour bar and its numbers
NAMED = 40  # a matrix with more rows or columns has numbered axes instead of names
LEAST_TITLE = 0.7  # width of a line in the title of an axis
NAME_WIDTH, NAME_GAP = 1.1, 0.2  # of the names of lines, and their distance from the axes
DASHES = ("-", "--", ":", "-.")  # different dashes keep lines visible that coincide


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnPanel:
    """A panel that is drawn and measured, but not placed yet."""

    panel: Panel
    ax: Axes
    title: list[Line]
    title_width: float
    width: float  # of the axes
    height: float
    left: float  # how far labels reach beyond the axes
    right: float
    above: float
    below: float

    @property
    def head(self) -> float:
        """The distance from the top of the title to the axes."""
        return height_of(self.title) + self.above + 0.06

    @property
    def full_width(self) -> float:
        """The width with title, labels and colour bar."""
        return self.left + max(self.width + self.right, self.title_width)

    @property
    def full_height(self) -> float:
        """The height with title and labels."""
        return self.head + self.height + self.below


@dataclass(frozen=True, slots=True)
class Placed:
    """A panel and the upper left corner of its title and labels, in inches below and beside that of all panels."""

    drawn: DrawnPanel
    left: float
    top: float

    @property
    def bottom(self) -> float:
        """The lowest edge of the panel."""
        return self.top + self.drawn.full_height


def draw(story: Story, look: Look) -> Picture:
    """Return a picture with all panels of a story, its title, and its receipt below.

    Raises SelectionError: the palette is unknown.
    """
    page_style, palette = style_of(look), look.palette
    zoom = LETTERS[look.style] / TEXT
    colours = theme_of(look.theme, palette)
    with usual_settings(colours):
        texts = [story.title, *_caption(story), typeset(repr(story.picture))]
        pen = blank_figure(texts, colours)
        pen = replace(pen, least=max(LEAST_TEXT, page_style.least / zoom))
        _draw_page(story, palette, pen, page_style, zoom)
        enlarge(pen.figure, zoom)
    return Picture(pen, story.title, story.receipt, page_style)


def _draw_page(story: Story, palette: str, pen: Pen, style: Style, zoom: float) -> None:
    """Draw the title, the panels and the caption."""
    width = WIDTH if len(story.picture) > 1 else WIDTH_OF_ONE
    if style.width is not None:
        width = style.width / zoom
    room = width - 2 * MARGIN
    title = _title(story, pen, room)
    caption = lines(pen, _caption(story), room, max(SMALL, pen.least) + 0.5)
    top = MARGIN + height_of(title) + 0.12
    foot = 0.15 + height_of(caption) + MARGIN
    height = HEIGHT if style.height is None else style.height / zoom - top - foot
    pen.figure.set_size_inches(STAGE, STAGE)
    others = [panel for panel in story.picture if panel is not story.picture[story.main]]
    panels = [story.picture[story.main], *others]
    if room < COLUMN:
        placed = _in_column(panels, palette, pen, room)
    else:
        placed = _beside_main(panels, palette, pen, (room, height))
    if style.height is None:
        height = max(item.bottom for item in placed)
    page = page_of(pen, width, top + height + foot)
    page.write(title, MARGIN)
    for item in placed:
        drawn, ax_left = item.drawn, MARGIN + item.left + item.drawn.left
        page.write(drawn.title, top + item.top, ax_left)
        place = (ax_left, top + item.top + drawn.head, drawn.width, drawn.height)
        page.move(drawn.ax, place)
        if isinstance(drawn.panel, Matrix) and not drawn.ax.texts:
            bar = (ax_left + drawn.width + 0.1, place[1], min(drawn.height, 2.0))
            marks = scale_marks(*drawn.panel.limits)
            page.colour_bar(_colour_table(drawn.panel, palette, pen.theme), bar, marks)
    page.write(caption, page.size[1] - foot + 0.15)


def _title(story: Story, pen: Pen, width: float) -> list[Line]:
    """Return the lines of the title, in letters that are a little smaller if it then fits on one line."""
    for size in (TITLE, 0.93 * TITLE, 0.86 * TITLE):
        title = lines(pen, [typeset(story.title)], width, size)
        if len(title) == 1:
            return title
    return lines(pen, [typeset(story.title)], width, TITLE)


def _in_column(panels: Sequence[Panel], palette: str, pen: Pen, width: float) -> list[Placed]:
    """Draw panels below one another, the first one largest."""
    placed: list[Placed] = []
    for panel in panels:
        height = width * HEIGHT_SHARES[bool(placed)]
        drawn = _fit_panel(panel, palette, pen, (width, height), TEXT)
        placed.append(Placed(drawn, 0.0, placed[-1].bottom + GAP if placed else 0.0))
    return placed


def _beside_main(
    panels: Sequence[Panel], palette: str, pen: Pen, room: tuple[float, float]
) -> list[Placed]:
    """Draw the first panel large, and the others at its right, in letters a little smaller."""
    width, height = room
    others = panels[1:]
    main_width = width * MAIN_SHARE if others else width
    main = Placed(_fit_panel(panels[0], palette, pen, (main_width, height), TEXT), 0.0, 0.0)
    if not others:
        return [main]
    left = main.drawn.full_width + GAP
    shape = 1.0 if all(isinstance(panel, Matrix) for panel in others) else CHART_SHAPE
    n_columns = round(math.sqrt(len(others) * (width - left) / height / shape))
    n_columns = min(max(n_columns, 1), len(others))
    n_rows = math.ceil(len(others) / n_columns)
    column_width = (width - left - GAP * (n_columns - 1)) / n_columns
    row_height = (height - GAP * (n_rows - 1)) / n_rows
    placed = [main]
    for index, panel in enumerate(others):
        row, column = divmod(index, n_columns)
        drawn = _fit_panel(panel, palette, pen, (column_width, row_height), SMALL)
        x, y = left + column * (column_width + GAP), row * (row_height + GAP)
        placed.append(Placed(drawn, x, y))
    return placed


def _fit_panel(
    panel: Panel, palette: str, pen: Pen, room: tuple[float, float], text_size: float
) -> DrawnPanel:
    """Draw a panel as large as it fits with its title and labels, anywhere on the figure.

    `text_size` is the font size of its labels, in points.
    """
    full_width, full_height = room
    drawn = _draw_panel(panel, palette, pen, room, text_size, full_width)
    # Labels depend a little on the size of their panel, so the first correction may not be the last.
    for _correction in range(MOST_CORRECTIONS):
        drawn.ax.remove()
        size = (
            max(SMALLEST_AXES, full_width - drawn.left - drawn.right),
            max(SMALLEST_AXES, full_height - drawn.head - drawn.below),
        )
        drawn = _draw_panel(panel, palette, pen, size, text_size, full_width)
        if drawn.full_width <= full_width + 0.01 and drawn.full_height <= full_height + 0.01:
            break
    return drawn


def _draw_panel(
    panel: Panel,
    palette: str,
    pen: Pen,
    size: tuple[float, float],
    text_size: float,
    full_width: float,
) -> DrawnPanel:
    """Draw a panel with axes of at most this size, and measure how far its labels reach beyond them.

    Its title is broken into lines of at most `full_width`.
    """
    ax = pen.figure.add_axes((0.2, 0.2, size[0] / STAGE, size[1] / STAGE))
    match panel:
        case Matrix():
            _draw_matrix(ax, panel, palette, pen, size, text_size)
        case Lines():
            _draw_lines(ax, panel, pen, text_size)
        case Bars():
            _draw_bars(ax, panel, pen, text_size)
    dpi = pen.figure.dpi
    extents = ax.get_tightbbox(pen.figure.canvas.get_renderer()).extents  # type: ignore[attr-defined, union-attr]
    left, below, right, above = (float(x) / dpi for x in extents)
    x0, y0, x1, y1 = (float(x) / dpi for x in ax.get_window_extent().extents)
    # Without numbers printed in its cells, a matrix needs a colour bar.
    needs_bar = isinstance(panel, Matrix) and not ax.texts
    title_size = 1.15 * text_size
    title = lines(pen, [typeset(panel.title)], full_width - (x0 - left), title_size, colour=pen.ink)
    return DrawnPanel(
        panel=panel,
        ax=ax,
        title=title,
        title_width=pen.widest([line.text for line in title], title_size),
        width=x1 - x0,
        height=y1 - y0,
        left=x0 - left,
        right=max(right - x1, BAR if needs_bar else 0.0),
        above=above - y1,
        below=y0 - below,
    )


def _caption(story: Story) -> list[str]:
    """Return the lines below the panels."""
    caption = [story.receipt]
    matrices = [panel for panel in story.picture if isinstance(panel, Matrix)]
    if any(np.isnan(matrix.values).any() for matrix in matrices):
        caption.append(_("Hatched cells are masked."))
    charts = [panel for panel in story.picture if isinstance(panel, Lines)]
    if any(series.low for chart in charts for series in chart.series):
        caption.append(_("Bands are 95% intervals."))
    return caption


def _draw_matrix(
    ax: Axes,
    matrix: Matrix,
    palette: str,
    pen: Pen,
    size: tuple[float, float],
    text_size: float,
) -> None:
    """Draw the cells, name rows and columns, and print the numbers if all of them fit."""
    n_rows, n_columns = matrix.values.shape
    width, height = _matrix_size(n_rows, n_columns, size)
    cell_width, cell_height = width / n_columns, height / n_rows
    ax.set_position((0.2, 0.2, width / STAGE, height / STAGE))
    masked = np.isnan(matrix.values)
    rgb = _colour_table(matrix, palette, pen.theme)[_levels(matrix)]
    alpha = np.where(masked, 0, 255).astype(np.uint8)
    ax.imshow(np.dstack([rgb, alpha]), aspect="auto", interpolation="none", zorder=2)
    if masked.any():
        ax.patch.set(**pen.theme.masked)
    ax.locator_params(integer=True)  # rows and columns without names have numbers
    if matrix.columns:
        fits = pen.widest(matrix.columns, text_size) < cell_width - 0.06
        rotation = 0 if fits else 90
        _name_cells(ax.xaxis, matrix.columns, pen, cell_width, text_size, rotation)
    if matrix.rows:
        _name_cells(ax.yaxis, matrix.rows, pen, cell_height, text_size, None)
    ax.tick_params(length=0, pad=3, labelsize=text_size)
    _name_axes(ax, pen, text_size, matrix.column_title, matrix.row_title)
    ax.spines[:].set(color=pen.theme.frame, linewidth=0.6)
    if max(n_rows, n_columns) <= NAMED:
        _print_numbers(ax, matrix, palette, pen, (cell_width, cell_height))


def _name_cells(
    axis: Axis, names: Sequence[str], pen: Pen, cell: float, size: float, rotation: int | None
) -> None:
    """Name rows or columns, which are `cell` inches wide, in letters of at most `size` points.

    Letters become smaller where names would touch, and then only every second or third cell is named. A `rotation` of 0
    is for names of columns that fit side by side.
    """
    if rotation != 0:
        size = min(size, max(pen.least, cell / 1.2 / POINT))
    step = math.ceil(0.95 * size * POINT / cell)
    places = range(0, len(names), step)
    axis.set_ticks(
        places, [names[place] for place in places], rotation=rotation or 0, **pen.style(size)
    )


def _matrix_size(n_rows: int, n_columns: int, size: tuple[float, float]) -> tuple[float, float]:
    """Return the width and height of a matrix; its cells are square, unless there are too many to name."""
    width, height = size
    cell = min(width / n_columns, height / n_rows, LARGEST_CELL)
    if max(n_rows, n_columns) <= NAMED:
        return n_columns * cell, n_rows * cell
    height = min(height, width)
    return min(width, 1.4 * height if n_columns > 2 * n_rows else height), height


def _print_numbers(
    ax: Axes, matrix: Matrix, palette: str, pen: Pen, cell: tuple[float, float]
) -> None:
    """Print the number of each cell, in the largest font that fits; none if it would be too small to read."""
    values = matrix.values[~np.isnan(matrix.values)]
    digits = 0 if (values == values.round()).all() else 2
    widest = pen.widest([decimals(value, digits) for value in values.tolist()], TEXT)
    # The widest number takes at most 82% of the width of a cell, and a letter 60% of its height.
    size_for_width = 0.82 * cell[0] / widest * TEXT
    size_for_height = 0.6 * cell[1] / POINT
    size = min(TEXT + 1.5, size_for_width, size_for_height)
    if size < pen.least:
        return
    inks = text_colours(_colour_table(matrix, palette, pen.theme))[_levels(matrix)]
    for (row, column), value in np.ndenumerate(matrix.values):
        if not np.isnan(value):
            style = pen.style(size, color=inks[row, column])
            number = decimals(float(value), digits)
            ax.text(column, row, number, ha="center", va="center", zorder=3, **style)


def _colour_table(matrix: Matrix, palette: str, theme: Theme) -> UInt8[np.ndarray, "level rgb"]:
    """Return the colours of a matrix, from its lowest value to its highest."""
    return theme.diverging() if matrix.diverging else theme.colours(palette)


def _levels(matrix: Matrix) -> UInt8[np.ndarray, "row column"]:
    """Return the index of the colour of each cell."""
    low, high = matrix.limits
    return levels(np.nan_to_num(matrix.values, nan=low) - low, high - low)


def _draw_lines(ax: Axes, chart: Lines, pen: Pen, text_size: float) -> None:
    """Draw a line per series, with its name at its end, and a band around it if the series has an interval."""
    for index, series in enumerate(chart.series):
        look = _look(index, pen)
        if series.low:
            ax.fill_between(
                chart.x, series.low, series.high, color=look["color"], alpha=0.18, linewidth=0
            )
        ax.plot(
            chart.x,
            series.values,
            label=series.name,
            linewidth=1.4,
            linestyle=DASHES[index % len(DASHES)],
            clip_on=False,
            zorder=3,
            **look,
        )
    if chart.doubling:
        ax.set_xscale("log", base=2)
        ax.xaxis.set_major_formatter("{x:g}")
    elif len(chart.x) <= 12:
        ax.set_xticks(chart.x, [f"{x:g}" for x in chart.x])
    else:
        ax.locator_params(axis="x", integer=True)
    if chart.y_doubling:
        ax.set_yscale("log", base=2)
        ax.yaxis.set_major_formatter("{x:.3g}")
    ax.minorticks_off()
    if chart.y_limits is not None:
        ax.set_ylim(*chart.y_limits)
    _finish_chart(ax, chart, pen, text_size, chart.x_title)
    if len(chart.series) > 1:
        _name_lines(ax, chart.series, pen, text_size)


def _look(index: int, pen: Pen) -> dict[str, Any]:
    """Return the colour and the marker of a series."""
    return {
        "color": pen.theme.series[index % len(pen.theme.series)],
        "marker": MARKERS[index % len(MARKERS)],
        "markersize": 3.5,
    }


def _name_lines(ax: Axes, series: Sequence[Series], pen: Pen, text_size: float) -> None:
    """Write the name of each line at its right end, with its marker; names are moved apart where lines meet."""
    box = ax.get_window_extent()
    width, height = box.width / pen.figure.dpi, box.height / pen.figure.dpi
    names = ["\n".join(pen.wrap(typeset(one.name), NAME_WIDTH, text_size)) for one in series]
    # Heights are shares of that of the axes.
    name_heights = [(name.count("\n") + 1) * 1.3 * text_size * POINT / height for name in names]
    to_axes = ax.transData + ax.transAxes.inverted()
    x_end = ax.get_xlim()[1]
    ends = [float(to_axes.transform((x_end, one.values[-1]))[1]) for one in series]
    for index, (name, y) in enumerate(zip(names, _apart(ends, name_heights), strict=True)):
        ax.plot(
            [1 + NAME_GAP / 2 / width],
            [y],
            transform=ax.transAxes,
            clip_on=False,
            **_look(index, pen),
        )
        place = (1 + NAME_GAP / width, y)
        ax.text(
            *place,
            name,
            transform=ax.transAxes,
            va="center",
            linespacing=1.1,
            **pen.style(text_size),
        )


def _apart(places: Sequence[float], sizes: Sequence[float]) -> list[float]:
    """Return the centres of boxes of these sizes, near their places in [0, 1] without overlapping."""
    order = sorted(range(len(places)), key=lambda index: places[index])
    moved = list(places)
    lowest = -math.inf
    for index in order:  # upward
        moved[index] = max(places[index], lowest + sizes[index] / 2)
        lowest = moved[index] + sizes[index] / 2
    highest = 1.05
    for index in reversed(order):  # back downward, if the top is too high
        moved[index] = min(moved[index], highest - sizes[index] / 2)
        highest = moved[index] - sizes[index] / 2
    return moved


def _draw_bars(ax: Axes, chart: Bars, pen: Pen, text_size: float) -> None:
    """Draw the bars of each series side by side at each label, with their numbers if these fit."""
    n_labels, n_series = len(chart.labels), len(chart.series)
    room = ax.get_window_extent().width / pen.figure.dpi / n_labels
    thickness, number_size = 0.8 / n_series, max(pen.least, text_size - 1)
    for index, series in enumerate(chart.series):
        bars = ax.bar(
            np.arange(n_labels) + (index - (n_series - 1) / 2) * thickness,
            series.values,
            thickness * 0.94,
            label=series.name,
            color=pen.theme.series[index % len(pen.theme.series)],
            zorder=2,
        )
        if pen.width("0.00", number_size) < thickness * room - 0.03:
            ax.bar_label(bars, fmt="%.2f", padding=2, **pen.style(number_size, color=pen.quiet))
    ax.margins(x=0.02, y=0.12)
    words = [word for label in chart.labels for word in label.split()]
    if pen.widest(words, text_size) <= room - 0.06:
        wrapped = ["\n".join(pen.wrap(label, room - 0.06, text_size)) for label in chart.labels]
        ax.set_xticks(range(n_labels), wrapped, **pen.style(text_size))
    else:
        ax.set_xticks(range(n_labels), chart.labels, rotation=90, **pen.style(text_size))
    _finish_chart(ax, chart, pen, text_size, "")
    width = ax.get_window_extent().width / pen.figure.dpi
    if n_series > 1:
        names = [
            "\n".join(pen.wrap(series.name, width - 0.3, text_size)) for series in chart.series
        ]
        # width per entry besides its name, in font sizes: the line sample and two spaces
        legend_above(
            ax, pen, names, 1.4 + 0.8 + 1.5, text_size, handlelength=1.4, columnspacing=1.5
        )


def _finish_chart(ax: Axes, chart: Lines | Bars, pen: Pen, text_size: float, x_title: str) -> None:
    """Style a chart and name its axes."""
    _name_axes(ax, pen, text_size, x_title, chart.y_title)
    ax.tick_params(length=0, pad=4, labelsize=text_size, labelcolor=pen.ink)
    ax.grid(axis="y", color=pen.theme.grid, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.spines["bottom"].set(color=pen.theme.frame, linewidth=0.6)


def _name_axes(ax: Axes, pen: Pen, text_size: float, x_title: str, y_title: str) -> None:
    """Write the titles of the axes, in lines that are not longer than these."""
    box = ax.get_window_extent()
    style = pen.style(text_size, color=pen.quiet)
    for name_axis, title, length in (
        (ax.set_xlabel, x_title, box.width),
        (ax.set_ylabel, y_title, box.height),
    ):
        room = max(length / pen.figure.dpi, LEAST_TITLE)
        name_axis("\n".join(pen.wrap(typeset(title), room, text_size)), labelpad=4, **style)
