"""The picture of a story: its main panel large, and the others beside it or, on a narrow page, below it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from attnviz.look import Look, Palette
from attnviz.render.fonts import typefaces_for
from attnviz.render.palette import MARKERS, levels, text_colours
from attnviz.render.picture import (
    LEADING,
    POINT,
    STYLES,
    Picture,
    break_lines,
    height_of,
    length_of,
    missing_line,
    settings,
    style_of,
    write_lines,
)
from attnviz.render.theme import Theme, theme_of
from attnviz.stories.record import Bars, Lines, Matrix, Panel, Story, typeset
from attnviz.text.display import decimals
from attnviz.text.messages import _

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# All lengths are inches.
WIDTH, WIDTH_OF_ONE = 10.0, 6.5  # of a picture with several panels, and with one
PAGE_WIDTH, PAGE_LETTERS = 4.4, 9.5  # of a panel in a web page, in inches and points
HEIGHT = 4.3  # of all panels together, where the style leaves it open
NARROW = 5.0  # on a narrower page, panels stand below one another
MAIN_SHARES = (0.36, 0.42, 0.48, 0.54)  # of the width, from which that of the main panel is chosen
GAP = 0.2  # between panels, and between them and the texts above and below
CHART_SHAPE = 1.6  # width over height
LARGEST_LETTERS = 12.0  # points, of labels, also on a slide
TITLE_PAD = 0.7  # below the title of a panel, in sizes of letters
LARGEST_CELL = 8.0  # in sizes of letters
NAMED = 40  # more rows or columns are not named, and their cells are not square
DASHES = ("-", "--", ":", "-.")  # different dashes keep lines visible that coincide


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """The room for a panel with its labels, and the letters and colours that it is drawn in."""

    left: float  # from the left edge of the figure
    top: float  # from its upper edge
    width: float
    height: float
    size: float  # of letters, in points
    least: float  # of the smallest letters that can be read
    theme: Theme
    palette: Palette

    def letters(self, n: float) -> float:
        """Return the length of n sizes of letters."""
        return n * self.size * POINT

    def length(self, text: str) -> float:
        """Return about how long a text is."""
        return self.letters(length_of(typeset(text)))

    def wrap(self, text: str, width: float) -> str:
        """Return a text in lines of at most this width, unless that is very narrow."""
        lines = break_lines([typeset(text)], max(width, self.letters(6)), self.size)
        return "\n".join(line.text for line in lines)

    def height_of(self, text: str) -> float:
        """Return the height of a text of one or more lines; 0 of an empty one."""
        return self.letters(LEADING * (text.count("\n") + 1)) if text else 0.0


class Cells(NamedTuple):
    """The size of the cells of a matrix, and of the labels around them."""

    width: float
    height: float
    left: float
    right: float
    above: float
    below: float
    is_upright: bool  # whether the names of columns are turned, because they are wider than a cell
    numbers: float  # size of the letters of the numbers in the cells; 0 for a colour bar instead


def draw(story: Story, look: Look) -> Picture:
    """Draw all panels of a story, with its title above and its receipt below.

    Raises SelectionError: the palette is unknown.
    """
    from matplotlib.figure import Figure

    style, theme = style_of(look), theme_of(look.theme, look.palette)
    main = story.picture[story.main]
    panels = [main, *(panel for panel in story.picture if panel is not main)]
    caption = typeset(_caption(story))
    typefaces = typefaces_for([story.title, caption, typeset(repr(panels))])

    width = style.width or (WIDTH if len(panels) > 1 else WIDTH_OF_ONE)
    text_width = width - 2 * style.margin
    titles, captions = [typeset(story.title)] * style.has_title, [caption] * bool(style.caption)
    title = break_lines(titles, text_width, 1.25 * style.letters)
    foot = break_lines(captions, text_width, 0.9 * style.letters, is_quiet=True)
    foot += missing_line(typefaces, style, text_width)
    top = style.margin + height_of(title) + (GAP if title else 0)
    bottom = height_of(foot) + style.margin + (GAP if foot else 0)
    is_narrow = width < NARROW
    room_height = math.inf if is_narrow else HEIGHT
    if style.height is not None:
        room_height = style.height - top - bottom
    room = Room(
        left=style.margin,
        top=top,
        width=text_width,
        height=room_height,
        size=min(style.letters, LARGEST_LETTERS),
        least=style.least,
        theme=theme,
        palette=look.palette,
    )
    rooms = _below_one_another(panels, room) if is_narrow else _beside_main(panels, room)
    ends = [own.top + _height(panel, own) for panel, own in zip(panels, rooms, strict=True)]
    height = style.height or max(ends) + bottom
    with settings(style, theme, typefaces):
        figure = Figure(figsize=(width, height))
        write_lines(figure, theme, title, style.margin, style.margin)
        write_lines(figure, theme, foot, style.margin, height - bottom + GAP)
        for panel, own in zip(panels, rooms, strict=True):
            draw_panel(figure, panel, own)
    return Picture(
        figure=figure,
        title=story.title,
        description=story.receipt,
        style=style,
        theme=theme,
        typefaces=typefaces,
    )


def draw_alone(panel: Panel, theme: Theme, palette: Palette) -> Picture:
    """Draw one panel without its title, for a page."""
    from matplotlib.figure import Figure

    style, panel = STYLES["sheet"], replace(panel, title="")
    room = Room(
        left=0.0,
        top=0.0,
        width=PAGE_WIDTH,
        height=math.inf,
        size=PAGE_LETTERS,
        least=0.7 * PAGE_LETTERS,
        theme=theme,
        palette=palette,
    )
    room = replace(room, height=_height(panel, room))
    typefaces = typefaces_for([typeset(repr(panel))])
    with settings(style, theme, typefaces):
        figure = Figure(figsize=(room.width, room.height))
        draw_panel(figure, panel, room)
    return Picture(
        figure=figure, title="", description="", style=style, theme=theme, typefaces=typefaces
    )


def _caption(story: Story) -> str:
    """Return the receipt, and what hatches and bands are."""
    notes = []
    matrices = [panel for panel in story.picture if isinstance(panel, Matrix)]
    if any(np.isnan(matrix.values).any() for matrix in matrices):
        notes.append(_("Hatched cells are masked."))
    charts = [panel for panel in story.picture if isinstance(panel, Lines)]
    if any(series.low for chart in charts for series in chart.series):
        notes.append(_("Bands are 95% intervals."))
    return ". ".join([story.receipt.removesuffix("."), " ".join(notes)]) if notes else story.receipt


def _below_one_another(panels: Sequence[Panel], room: Room) -> list[Room]:
    """Return the rooms of panels that are all as wide as the page."""
    heights = [_height(panel, replace(room, height=math.inf)) for panel in panels]
    free = room.height - GAP * (len(panels) - 1)
    share = min(1.0, free / math.fsum(heights))  # below 1 where the height is fixed
    rooms, top = [], room.top
    for height in heights:
        rooms.append(replace(room, top=top, height=height * share))
        top += height * share + GAP
    return rooms


def _beside_main(panels: Sequence[Panel], room: Room) -> list[Room]:
    """Return the rooms of panels, the main one at the left, divided so that all panels become large."""
    main, *others = panels
    if not others:
        return [room]
    choices = []
    for share, n_columns in itertools.product(MAIN_SHARES, range(1, len(others) + 1)):
        main_room = replace(room, width=share * room.width)
        if isinstance(main, Matrix):
            cells = _cells(main, main_room)
            width = cells.left + main.values.shape[1] * cells.width + cells.right
            main_room = replace(main_room, width=width)
        left = room.left + main_room.width + GAP
        size = max(room.least, 0.88 * room.size)
        rest = replace(room, left=left, width=room.left + room.width - left, size=size)
        choices.append([main_room, *_divide(rest, len(others), n_columns)])
    return max(choices, key=lambda rooms: _total_size(panels, rooms))


def _divide(room: Room, n: int, n_columns: int) -> list[Room]:
    """Return a room divided into n rooms of one size."""
    n_rows = math.ceil(n / n_columns)
    width = (room.width - GAP * (n_columns - 1)) / n_columns
    height = (room.height - GAP * (n_rows - 1)) / n_rows
    rooms = []
    for row, column in itertools.islice(np.ndindex(n_rows, n_columns), n):
        left, top = room.left + column * (width + GAP), room.top + row * (height + GAP)
        rooms.append(replace(room, left=left, top=top, width=width, height=height))
    return rooms


def _total_size(panels: Sequence[Panel], rooms: Sequence[Room]) -> float:
    """Return the area of the main panel times the mean area of the others, a geometric one, so that none is tiny."""
    areas = [_area(panel, room) for panel, room in zip(panels, rooms, strict=True)]
    return areas[0] * math.prod(areas[1:]) ** (1 / (len(areas) - 1))


def _area(panel: Panel, room: Room) -> float:
    """Return how large a panel is without its labels, in square inches."""
    if isinstance(panel, Matrix):
        cells = _cells(panel, room)
        return panel.values.size * cells.width * cells.height
    width, height = room.width - room.letters(5), room.height - room.letters(7)
    return max(0.01, min(width, CHART_SHAPE * height)) ** 2 / CHART_SHAPE


def _height(panel: Panel, room: Room) -> float:
    """Return how high a panel with its labels is in a room, whose height may be infinite."""
    if isinstance(panel, Matrix):
        cells = _cells(panel, room)
        return cells.above + len(panel.values) * cells.height + cells.below
    natural = room.width / CHART_SHAPE + room.letters(1.5 * len(panel.series))
    return natural if math.isinf(room.height) else room.height


def draw_panel(figure: Figure, panel: Panel, room: Room) -> None:
    """Draw a panel with its labels in a room of a figure; without a title if that is empty."""
    if isinstance(panel, Matrix):
        _draw_matrix(figure, panel, room)
    else:
        _draw_chart(figure, panel, room)


def _add_axes(
    figure: Figure, room: Room, left: float, above: float, width: float, height: float
) -> Axes:
    """Return axes of a size in inches, at a distance from the upper left corner of a room."""
    whole_width, whole_height = figure.get_size_inches()
    bottom = whole_height - room.top - above - height
    ax = figure.add_axes(
        (
            (room.left + left) / whole_width,
            bottom / whole_height,
            width / whole_width,
            height / whole_height,
        )
    )
    ax.tick_params(length=0, pad=3, labelsize=room.size, labelcolor=room.theme.ink)
    return ax


def _name(ax: Axes, room: Room, title: str, x_title: str, y_title: str, pad: float) -> None:
    """Write the title, at a distance of `pad` inches, and the titles of the axes."""
    quiet: dict[str, Any] = {"color": room.theme.quiet, "fontsize": room.size, "labelpad": 3}
    ax.set_title(title, loc="left", fontsize=1.1 * room.size, pad=pad / POINT)
    ax.set_xlabel(x_title, **quiet)
    ax.set_ylabel(y_title, **quiet)


# Matrices.


def _cells(matrix: Matrix, room: Room) -> Cells:
    """Return the largest cells with which a matrix and its labels fit; they are square if they have names."""
    n_rows, n_columns = matrix.values.shape
    is_named = max(n_rows, n_columns) <= NAMED
    left = max(map(room.length, matrix.rows), default=room.letters(1.3)) + room.letters(2.2)
    longest = max(map(room.length, matrix.columns), default=room.letters(1.3))
    number = max(map(length_of, _numbers(matrix).values())) if is_named else math.inf
    for has_bar, is_upright in itertools.product((False, True), repeat=2):
        right = room.letters(5) if has_bar else 0.0
        below = (longest if is_upright else room.letters(1.2)) + room.letters(2)
        title = room.wrap(matrix.title, (room.width - left) / 1.1)
        above = 1.1 * room.height_of(title) + room.letters(TITLE_PAD)
        width = (room.width - left - right) / n_columns
        height = (room.height - above - below) / n_rows
        if not is_named:  # it is not higher than wide
            height = min(height, width * n_columns / n_rows)
        else:
            width = height = min(width, height, room.letters(LARGEST_CELL))
        size = min(1.2 * room.size, 0.85 * width / number / POINT, 0.6 * height / POINT)
        if size < room.least:
            size = 0.0
        if (is_upright or longest < width - room.letters(0.5)) and (has_bar or size):
            break
    return Cells(width, height, left, right, above, below, is_upright, 0.0 if has_bar else size)


def _numbers(matrix: Matrix) -> dict[tuple[int, int], str]:
    """Return the numbers of cells that are not masked, as texts."""
    values = {
        place: float(value) for place, value in np.ndenumerate(matrix.values) if value == value
    }
    digits = 0 if all(map(float.is_integer, values.values())) else 2
    return {place: decimals(value, digits) for place, value in values.items()}


def _draw_matrix(figure: Figure, matrix: Matrix, room: Room) -> None:
    """Draw the cells with their numbers or, where these do not fit, with a colour bar, and name rows and columns."""
    from matplotlib.colors import ListedColormap

    cells, (low, high) = _cells(matrix, room), matrix.limits
    n_rows, n_columns = matrix.values.shape
    width, height = n_columns * cells.width, n_rows * cells.height
    ax = _add_axes(figure, room, cells.left, cells.above, width, height)
    theme = room.theme
    table = theme.diverging() if matrix.diverging else theme.colours(room.palette)
    image = ax.imshow(
        np.ma.masked_invalid(matrix.values),
        ListedColormap(table / 255),
        vmin=low,
        vmax=high,
        aspect="auto",
        interpolation="none",
    )
    if np.isnan(matrix.values).any():
        ax.patch.set(**theme.masked)
    ax.spines[:].set(color=theme.frame, linewidth=0.6)
    ax.locator_params(integer=True)  # rows and columns without names have numbers
    for axis, names, length, angle in (
        (ax.xaxis, matrix.columns, cells.width, 90 if cells.is_upright else 0),
        (ax.yaxis, matrix.rows, cells.height, 0),
    ):
        if names:
            size = min(room.size, max(room.least, length / 1.2 / POINT))
            places = range(0, len(names), math.ceil(0.95 * size * POINT / length))
            shown = [names[place] for place in places]
            axis.set_ticks(places, shown, rotation=angle, fontsize=size)
    title = room.wrap(matrix.title, (room.width - cells.left) / 1.1)
    x_title = room.wrap(matrix.column_title, room.width - cells.left)
    y_title = room.wrap(matrix.row_title, height)
    _name(ax, room, title, x_title, y_title, room.letters(TITLE_PAD))

    if not cells.numbers:
        bar = ax.inset_axes((1 + 0.08 / width, 0, 0.1 / width, 1))
        figure.colorbar(image, cax=bar).outline.set(color=theme.frame, linewidth=0.6)
        bar.tick_params(length=2, pad=2, labelsize=0.9 * room.size, color=theme.frame)
        return
    inks = text_colours(table)[levels(np.nan_to_num(matrix.values) - low, high - low)]
    for (row, column), number in _numbers(matrix).items():
        ink = inks[row, column]
        ax.text(column, row, number, ha="center", va="center", fontsize=cells.numbers, color=ink)


# Charts.


def _draw_chart(figure: Figure, chart: Lines | Bars, room: Room) -> None:
    """Draw lines or bars over a grid, with their names above."""
    y_title = room.wrap(chart.y_title, 0.7 * room.height)
    left = _longest_mark(chart, room) + room.height_of(y_title) + room.letters(0.8)
    width = room.width - left - room.letters(1)
    title = room.wrap(chart.title, width / 1.1)
    names = [room.wrap(series.name, width - room.letters(4)) for series in chart.series]
    longest = max(room.length(line) for name in names for line in name.split("\n"))
    n_columns = max(1, int(width / (longest + room.letters(4))))
    n_lines = math.ceil(len(names) / n_columns) * max(name.count("\n") + 1 for name in names)
    legend = room.letters(1.4 * n_lines + 0.3) if len(names) > 1 else 0.0
    above = 1.1 * room.height_of(title) + room.letters(TITLE_PAD) + legend
    labels, is_upright = [""], False
    if isinstance(chart, Bars):
        labels, is_upright = _bar_labels(chart, room, width)
    marks = max(map(room.length, labels)) if is_upright else max(map(room.height_of, labels))
    x_title = room.wrap(chart.x_title, width) if isinstance(chart, Lines) else ""
    below = max(marks, room.letters(1.3)) + room.height_of(x_title) + room.letters(0.6)
    ax = _add_axes(figure, room, left, above, width, room.height - above - below)
    if isinstance(chart, Lines):
        _draw_lines(ax, chart, names, room, width)
    else:
        _draw_bars(ax, chart, names, room, width)
        ax.set_xticks(range(len(labels)), labels, rotation=90 if is_upright else 0)
    _name(ax, room, title, x_title, y_title, room.letters(TITLE_PAD) + legend)
    ax.grid(axis="y", color=room.theme.grid, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    if legend:
        ax.legend(
            loc="lower left",
            bbox_to_anchor=(0, 1),
            ncols=n_columns,
            fontsize=room.size,
            frameon=False,
            borderpad=0,
            borderaxespad=0.5,
            labelspacing=0.3,
        )


def _longest_mark(chart: Lines | Bars, room: Room) -> float:
    """Return about how long the numbers along the y axis are."""
    if isinstance(chart, Bars) or not chart.y_doubling:
        return room.length("0.000")
    values = [value for series in chart.series for value in series.values]
    return max(room.length(f"{value:.3g}") for value in values)


def _bar_labels(chart: Bars, room: Room, width: float) -> tuple[list[str], bool]:
    """Return the labels below bars, in lines, and whether they are turned, because they are wider than their bars."""
    step = width / len(chart.labels)
    words = [word for label in chart.labels for word in label.split()]
    if max(map(room.length, words)) > step - room.letters(0.5):
        return list(chart.labels), True
    return [room.wrap(label, step) for label in chart.labels], False


def _draw_lines(ax: Axes, chart: Lines, names: Sequence[str], room: Room, width: float) -> None:
    """Draw a line per series, with a band around it if the series has an interval."""
    for index, (series, name) in enumerate(zip(chart.series, names, strict=True)):
        colour = room.theme.series[index % len(room.theme.series)]
        if series.low:
            ax.fill_between(chart.x, series.low, series.high, color=colour, alpha=0.18, linewidth=0)
        ax.plot(
            chart.x,
            series.values,
            label=name,
            color=colour,
            linestyle=DASHES[index % len(DASHES)],
            linewidth=1.4,
            marker=MARKERS[index % len(MARKERS)],
            markersize=3.5,
            clip_on=False,
            zorder=3,
        )
    if chart.doubling:
        ax.set_xscale("log", base=2)
    if chart.doubling or len(chart.x) <= 12:
        marks = [f"{x:g}" for x in chart.x]
        longest = max(map(room.length, marks)) + room.letters(0.5)
        step = math.ceil(longest * len(marks) / width)
        ax.set_xticks(chart.x[::step], marks[::step])
    else:
        ax.locator_params(axis="x", integer=True)
    if chart.y_doubling:
        ax.set_yscale("log", base=2)
        ax.yaxis.set_major_formatter("{x:.3g}")
    ax.minorticks_off()
    if chart.y_limits is not None:
        ax.set_ylim(*chart.y_limits)


def _draw_bars(ax: Axes, chart: Bars, names: Sequence[str], room: Room, width: float) -> None:
    """Draw the bars of each series side by side at each label, with their numbers if these fit."""
    thickness = 0.8 / len(names)
    has_numbers = room.length("0.00") < thickness * width / len(chart.labels)
    for index, (series, name) in enumerate(zip(chart.series, names, strict=True)):
        bars = ax.bar(
            np.arange(len(chart.labels)) + (index - (len(names) - 1) / 2) * thickness,
            series.values,
            0.94 * thickness,
            label=name,
            color=room.theme.series[index % len(room.theme.series)],
        )
        if has_numbers:
            quiet: dict[str, Any] = {"fontsize": 0.9 * room.size, "color": room.theme.quiet}
            ax.bar_label(bars, fmt="%.2f", padding=2, **quiet)
    ax.margins(x=0.02, y=0.12)
