"""The picture of a story: its panels in rows on one page.

Each panel is drawn at its final size first, so that Matplotlib can measure how far its labels reach. Only then is it
moved to its place; this way no label is cut off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import UInt8

from attnviz.render.figure.export import Picture, blank_figure, usual_settings
from attnviz.render.figure.page import Line, height_of, legend_above, lines, page_of, scale_marks
from attnviz.render.figure.pen import MARGIN, PITCH, POINT, SMALL, TEXT, TITLE, Pen
from attnviz.render.figure.style import Style, StyleName, style_of
from attnviz.render.palette import DEFAULT, MARKERS, levels, text_colours
from attnviz.render.theme import Theme, ThemeName, theme_of
from attnviz.stories.record import Bars, Lines, Matrix, Panel, Story
from attnviz.text.display import decimals
from attnviz.text.messages import _, in_language

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# All lengths are inches.
NARROWEST, WIDEST = 5.0, 17.0  # narrowest page, and widest row of panels
GAP = 0.3  # between panels
SMALLER = 0.65  # scale of panels in a style with a fixed width, so that letters come out larger
STAGE = 10.0  # side of the square figure on which panels are drawn before they have a place
CHART = (3.6, 3.0)  # width and height of the axes of a line chart
SIDE = 3.6  # usual length of the longer side of a matrix
CELL = 0.5  # largest side of a cell
BAR = 0.55  # room for a colour bar and its numbers
TITLE_WIDTH = 2.4  # least width for the title of a panel
NAMED = 40  # a matrix with more rows or columns has numbered axes instead of names
DASHES = ("-", "--", ":", "-.")  # different dashes keep lines visible that coincide


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnPanel:
    """A panel that is drawn and measured, but not placed yet."""

    panel: Panel
    ax: Axes
    title: list[Line]
    width: float  # of the axes
    height: float
    left: float  # how far labels reach beyond the axes
    right: float
    above: float
    below: float

    @property
    def full_width(self) -> float:
        """The width with labels, colour bar and title."""
        return self.left + max(self.width + self.right, TITLE_WIDTH)


def draw(
    story: Story,
    *,
    palette: str = DEFAULT,
    style: StyleName = "sheet",
    theme: ThemeName = "auto",
    width: str | None = None,
    dpi: int | None = None,
) -> Picture:
    """Return a picture with all panels of a story, its title, and its receipt below.

    Warns with `AttnvizWarning` if the text is too small to read in its style.

    Raises:
        SelectionError: the palette is unknown.
        SettingsError: the style, theme or width is invalid.
    """
    page_style = style_of(style, width, dpi)
    colours = theme_of(theme, palette)
    with usual_settings(colours):
        letters = [story.title, *_caption(story), repr(story.picture)]
        pen = blank_figure(letters, colours)
        pen.figure.set_size_inches(STAGE, STAGE)
        scale = 1.0 if page_style.width is None else SMALLER
        panels = [_draw_panel(panel, palette, pen, scale) for panel in story.picture]
        rows = _in_rows(panels, _row_width(page_style))
        _arrange(rows, story, palette, pen, NARROWEST * scale)
    return Picture(pen, story.title, story.receipt).fitted(page_style)


def _draw_panel(panel: Panel, palette: str, pen: Pen, scale: float) -> DrawnPanel:
    """Draw a panel anywhere on the figure, and measure its axes and how far its labels reach beyond them."""
    ax = pen.figure.add_axes((0.2, 0.2, 0.5, 0.5))
    match panel:
        case Matrix():
            _draw_matrix(ax, panel, palette, pen, scale)
        case Lines():
            _draw_lines(ax, panel, pen, scale)
        case Bars():
            _draw_bars(ax, panel, pen, scale)
    dpi = pen.figure.dpi
    extents = ax.get_tightbbox(pen.figure.canvas.get_renderer()).extents  # type: ignore[attr-defined, union-attr]
    left, below, right, above = (float(x) / dpi for x in extents)
    x0, y0, x1, y1 = (float(x) / dpi for x in ax.get_window_extent().extents)
    # Without numbers printed in its cells, a matrix needs a colour bar.
    needs_bar = isinstance(panel, Matrix) and not ax.texts
    return DrawnPanel(
        panel=panel,
        ax=ax,
        title=lines(pen, [panel.title], max(x1 - x0, TITLE_WIDTH), TEXT + 1, colour=pen.ink),
        width=x1 - x0,
        height=y1 - y0,
        left=x0 - left,
        right=max(right - x1, BAR if needs_bar else 0.0),
        above=above - y1,
        below=y0 - below,
    )


def _row_width(style: Style) -> float:
    """Return the largest width of a row, in inches, at which the text of the style stays readable."""
    if style.width is None or style.height is not None:  # a slide has no room for rows
        return WIDEST
    return style.width * TEXT / style.least - 2 * MARGIN


def _in_rows(panels: list[DrawnPanel], width: float) -> list[list[DrawnPanel]]:
    """Break the panels into rows, with as many panels per row as fit."""
    rows: list[list[DrawnPanel]] = []
    for panel in panels:
        if rows and sum(item.full_width + GAP for item in [*rows[-1], panel]) <= width + GAP:
            rows[-1].append(panel)
        else:
            rows.append([panel])
    return rows


def _arrange(
    rows: list[list[DrawnPanel]], story: Story, palette: str, pen: Pen, narrowest: float
) -> None:
    """Move the panels to their places, and write the title above them and the caption below."""
    indent = max(row[0].left for row in rows)
    widths = [
        indent - row[0].left + sum(panel.full_width + GAP for panel in row) - GAP for row in rows
    ]
    width = max(*widths, narrowest)
    title = lines(pen, [story.title], width, TITLE)
    caption = lines(pen, _caption(story), width)
    first_top = MARGIN + height_of(title) + 0.15
    heights = [_title_height(row) + max(p.height + p.below for p in row) + GAP for row in rows]
    caption_top = first_top + sum(heights)
    page = page_of(pen, width + 2 * MARGIN, caption_top + height_of(caption) + MARGIN)
    page.write(title, MARGIN)
    top = first_top
    for row, height in zip(rows, heights, strict=True):
        left = MARGIN + indent - row[0].left
        for panel in row:
            page.write(panel.title, top, left + panel.left)
            place = (left + panel.left, top + _title_height(row), panel.width, panel.height)
            page.move(panel.ax, place)
            if isinstance(panel.panel, Matrix) and not panel.ax.texts:
                bar = (place[0] + panel.width + 0.1, place[1], min(panel.height, 2.0))
                marks = scale_marks(*panel.panel.limits)
                page.colour_bar(_colour_table(panel.panel, palette, pen.theme), bar, marks)
            left += panel.full_width + GAP
        top += height
    page.write(caption, caption_top)


def _title_height(row: list[DrawnPanel]) -> float:
    """Return the distance from the top of a row to its axes, which leaves room for titles and legends."""
    return max(height_of(panel.title) for panel in row) + max(panel.above for panel in row) + 0.08


def _caption(story: Story) -> list[str]:
    """Return the lines below the panels."""
    caption = [story.receipt]
    matrices = [panel for panel in story.picture if isinstance(panel, Matrix)]
    if any(np.isnan(matrix.values).any() for matrix in matrices):
        caption.append(in_language(_("Hatched cells are masked."), story.language))
    charts = [panel for panel in story.picture if isinstance(panel, Lines)]
    if any(series.low for chart in charts for series in chart.series):
        caption.append(in_language(_("Bands are 95% intervals."), story.language))
    return caption


def _resize(ax: Axes, width: float, height: float) -> None:
    """Set the size of axes, in inches."""
    ax.set_position((0.2, 0.2, width / STAGE, height / STAGE))


def _draw_matrix(ax: Axes, matrix: Matrix, palette: str, pen: Pen, scale: float) -> None:
    """Draw the cells, name rows and columns, and print the numbers if all of them fit."""
    n_rows, n_columns = matrix.values.shape
    width, height = _matrix_size(n_rows, n_columns, scale)
    _resize(ax, width, height)
    masked = np.isnan(matrix.values)
    rgb = _colour_table(matrix, palette, pen.theme)[_levels(matrix)]
    alpha = np.where(masked, 0, 255).astype(np.uint8)
    ax.imshow(np.dstack([rgb, alpha]), aspect="auto", interpolation="none", zorder=2)
    if masked.any():
        ax.patch.set(**pen.theme.masked)
    ax.locator_params(integer=True)  # rows and columns without names have numbers
    if matrix.columns:
        fits = pen.widest(matrix.columns) < width / n_columns - 0.06
        ax.set_xticks(range(n_columns), matrix.columns, rotation=0 if fits else 90, **pen.style())
    if matrix.rows:
        ax.set_yticks(range(n_rows), matrix.rows, **pen.style())
    ax.tick_params(length=0, pad=3, labelsize=TEXT)
    _name_axes(ax, pen, matrix.column_title, matrix.row_title)
    ax.spines[:].set(color=pen.theme.frame, linewidth=0.6)
    if max(n_rows, n_columns) <= NAMED:
        _print_numbers(ax, matrix, palette, pen, (width / n_columns, height / n_rows))


def _matrix_size(n_rows: int, n_columns: int, scale: float) -> tuple[float, float]:
    """Return the width and height of a matrix; its cells are square, unless there are too many to name."""
    longest = max(n_rows, n_columns)
    if longest <= NAMED:
        cell = min(CELL * scale, max(1.1 * PITCH, SIDE * scale / longest))
        return n_columns * cell, n_rows * cell
    side = SIDE * scale
    return (1.4 * side if n_columns > 2 * n_rows else side), side


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
    size = min(TEXT, size_for_width, size_for_height)
    if size < SMALL - 1:
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


def _draw_lines(ax: Axes, chart: Lines, pen: Pen, scale: float) -> None:
    """Draw a line per series, with a band around it if the series has an interval."""
    _resize(ax, CHART[0] * scale, CHART[1] * scale)
    for index, series in enumerate(chart.series):
        colour = pen.theme.series[index % len(pen.theme.series)]
        if series.low:
            ax.fill_between(chart.x, series.low, series.high, color=colour, alpha=0.18, linewidth=0)
        ax.plot(
            chart.x,
            series.values,
            color=colour,
            label=series.name,
            linewidth=1.4,
            linestyle=DASHES[index % len(DASHES)],
            marker=MARKERS[index % len(MARKERS)],
            markersize=3.5,
            clip_on=False,
            zorder=3,
        )
    if chart.doubling:
        ax.set_xscale("log", base=2)
        ax.xaxis.set_major_formatter("{x:g}")
    elif len(chart.x) <= 12:
        ax.set_xticks(chart.x, [f"{x:g}" for x in chart.x])
    if chart.y_doubling:
        ax.set_yscale("log", base=2)
        ax.yaxis.set_major_formatter("{x:.3g}")
    ax.minorticks_off()
    if chart.y_limits is not None:
        ax.set_ylim(*chart.y_limits)
    _finish_chart(ax, chart, pen, chart.x_title)


def _draw_bars(ax: Axes, chart: Bars, pen: Pen, scale: float) -> None:
    """Draw the bars of each series side by side at each label, with their numbers if these fit."""
    n_labels, n_series = len(chart.labels), len(chart.series)
    width = min(6.0, max(2.4, n_labels * (0.2 + 0.3 * n_series))) * scale
    _resize(ax, width, CHART[1] * scale)
    room = width / n_labels
    thickness = 0.8 / n_series
    for index, series in enumerate(chart.series):
        bars = ax.bar(
            np.arange(n_labels) + (index - (n_series - 1) / 2) * thickness,
            series.values,
            thickness * 0.94,
            label=series.name,
            color=pen.theme.series[index % len(pen.theme.series)],
            zorder=2,
        )
        if pen.width("0.00", SMALL) < thickness * room - 0.03:
            ax.bar_label(bars, fmt="%.2f", padding=2, **pen.style(SMALL, color=pen.quiet))
    ax.margins(x=0.02, y=0.12)
    words = [word for label in chart.labels for word in label.split()]
    if pen.widest(words) <= room - 0.06:
        wrapped = ["\n".join(pen.wrap(label, room - 0.06)) for label in chart.labels]
        ax.set_xticks(range(n_labels), wrapped, **pen.style())
    else:
        ax.set_xticks(range(n_labels), chart.labels, rotation=90, **pen.style())
    _finish_chart(ax, chart, pen, "")


def _finish_chart(ax: Axes, chart: Lines | Bars, pen: Pen, x_title: str) -> None:
    """Style a chart and name its axes; a chart with several series gets a legend above it."""
    width = ax.get_window_extent().width / pen.figure.dpi
    height = ax.get_window_extent().height / pen.figure.dpi
    _name_axes(ax, pen, x_title, "\n".join(pen.wrap(chart.y_title, height)))
    ax.tick_params(length=0, pad=4, labelsize=TEXT, labelcolor=pen.ink)
    ax.grid(axis="y", color=pen.theme.grid, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.spines["bottom"].set(color=pen.theme.frame, linewidth=0.6)
    if len(chart.series) > 1:
        names = ["\n".join(pen.wrap(series.name, width - 0.3)) for series in chart.series]
        # width per entry besides its name, in font sizes: the line sample and two spaces
        legend_above(ax, pen, names, 1.4 + 0.8 + 1.5, handlelength=1.4, columnspacing=1.5)


def _name_axes(ax: Axes, pen: Pen, x_title: str, y_title: str) -> None:
    """Write the titles of the axes."""
    ax.set_xlabel(x_title, labelpad=4, **pen.style(color=pen.quiet))
    ax.set_ylabel(y_title, labelpad=4, **pen.style(color=pen.quiet))
