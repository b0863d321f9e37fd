"""The picture of a story: its main panel large, and the others beside it or, on a narrow page, below it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from attnviz.look import Look, Palette
from attnviz.render.fonts import typefaces_for
from attnviz.render.palette import MARKERS, levels, text_colours
from attnviz.render.picture import (
    POINT,
    STYLES,
    Picture,
    break_lines,
    height_of,
    length_of,
    missing_line,
    new_figure,
    settings,
    style_of,
    write_lines,
)
from attnviz.render.theme import DARK, LIGHT, Theme, theme_of
from attnviz.stories.record import Bars, Lines, Matrix, Panel, Story, typeset
from attnviz.text.display import decimals
from attnviz.text.messages import _

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, FigureBase, SubFigure

# All lengths are inches.
WIDTH, WIDTH_OF_ONE = 10.0, 6.5  # of a picture with several panels, and with one
PAGE_WIDTH, PAGE_LETTERS = 4.4, 9.5  # of a panel in a web page, in inches and points
HEIGHT = 4.3  # of panels beside one another, where the style leaves it open
NARROW = 5.0  # on a narrower page, panels stand below one another
MATRIX_SHARE, CHART_SHARE = 0.48, 0.42  # of the width, for the main panel
GAP = 0.2  # between the panels and the texts above and below
PAD = 0.05  # around a panel
ABOVE = 1.8  # the height of a panel's title, in sizes of letters
CHART_SHAPE = 1.6  # width over height
LARGEST_LETTERS = 12.0  # points, of labels, also on a slide
NAMED = 40  # more rows or columns are not named, and their cells are not square
DASHES = ("-", "--", ":", "-.")  # different dashes keep lines visible that coincide


@dataclass(frozen=True, slots=True, kw_only=True)
class Pen:
    """The room for a panel, and the letters and colours that it is drawn in."""

    width: float
    height: float
    size: float  # of letters, in points
    least: float  # of the smallest letters that can be read
    theme: Theme
    palette: Palette

    def letters(self, length: float) -> float:
        """Return the length of so many sizes of letters."""
        return length * self.size * POINT

    def wrap(self, text: str, width: float) -> str:
        """Return a text in lines of at most this width, unless that is very narrow."""
        lines = break_lines([typeset(text)], max(width, self.letters(6)), self.size)
        return "\n".join(line.text for line in lines)


class Cells(NamedTuple):
    """About how large the cells of a matrix will be, and the labels below them."""

    width: float
    height: float
    below: float
    is_upright: bool  # whether the names of columns are turned, because they are wider than a cell


def draw(story: Story, look: Look) -> Picture:
    """Draw all panels of a story, with its title above and its receipt below.

    Raises SelectionError: the palette is unknown.
    """
    style, theme = style_of(look), theme_of(look.theme, look.palette)
    main = story.picture[story.main]
    panels = [main, *(panel for panel in story.picture if panel is not main)]
    notes = " ".join(notes_of(story.picture))
    receipt = f"{story.receipt.removesuffix('.')}. {notes}" if notes else story.receipt
    caption = typeset(receipt)
    typefaces = typefaces_for([story.title, caption, typeset(repr(panels))])

    width = style.width or (WIDTH if len(panels) > 1 else WIDTH_OF_ONE)
    text_width = width - 2 * style.margin
    titles, captions = [typeset(story.title)] * style.has_title, [caption] * bool(style.caption)
    title = break_lines(titles, text_width, 1.25 * style.letters)
    foot = break_lines(captions, text_width, 0.9 * style.letters, is_quiet=True)
    foot += missing_line(typefaces, style, text_width)
    top = style.margin + height_of(title) + (GAP if title else 0)
    bottom = height_of(foot) + style.margin + (GAP if foot else 0)

    size = min(style.letters, LARGEST_LETTERS)
    heights = [_height(panel, text_width, size) for panel in panels]
    is_narrow = width < NARROW
    room = sum(heights) if is_narrow else HEIGHT
    height = style.height or top + room + bottom
    room = height - top - bottom
    with settings(style, theme, typefaces):
        figure = new_figure(width, height)
        write_lines(figure, theme, title, style.margin, style.margin)
        write_lines(figure, theme, foot, style.margin, height - bottom + GAP)
        parts: Iterable[SubFigure]
        if is_narrow or len(panels) == 1:
            parts = figure.subfigures(len(panels), 1, squeeze=False, height_ratios=heights).flat
        else:
            parts = _beside_main(figure, panels, text_width / room)
        axes = []
        for panel, part in zip(panels, parts, strict=False):
            share = part.bbox.size / figure.bbox.size
            pen = Pen(
                width=text_width * share[0],
                height=room * share[1],
                size=size,
                least=style.least,
                theme=theme,
                palette=look.palette,
            )
            axes.append(_draw_panel(part, panel, pen))
        rect = (style.margin / width, bottom / height, text_width / width, room / height)
        _arrange(figure, panels, axes, rect)
    return Picture(
        figure=figure,
        title=story.title,
        description=story.receipt,
        style=style,
        theme=theme,
        typefaces=typefaces,
    )


def draw_alone(panel: Panel, palette: Palette) -> Picture:
    """Draw one panel without its title, for a page; its cells twice, for light and for dark pages."""
    style, typefaces = STYLES["sheet"], typefaces_for([typeset(repr(panel))])
    pen = Pen(
        width=PAGE_WIDTH,
        height=_height(panel, PAGE_WIDTH, PAGE_LETTERS),
        size=PAGE_LETTERS,
        least=0.7 * PAGE_LETTERS,
        theme=LIGHT,
        palette=palette,
    )
    with settings(style, LIGHT, typefaces):
        figure = new_figure(pen.width, pen.height)
        ax = _draw_panel(figure, panel, pen, in_page=True)
        _arrange(figure, [panel], [ax], (0, 0, 1, 1))
    return Picture(
        figure=figure, title="", description="", style=style, theme=LIGHT, typefaces=typefaces
    )


def notes_of(panels: Sequence[Panel]) -> list[str]:
    """Return what hatches and bands are, if a panel has them."""
    notes = []
    if any(isinstance(panel, Matrix) and np.isnan(panel.values).any() for panel in panels):
        notes.append(_("Hatched cells are masked."))
    if any(not isinstance(panel, Matrix) and any(s.low for s in panel.series) for panel in panels):
        notes.append(_("Bands are 95% intervals."))
    return notes


def _shape(panel: Panel) -> float:
    """Return the width of a panel over its height, without labels."""
    if not isinstance(panel, Matrix):
        return CHART_SHAPE
    n_rows, n_columns = panel.values.shape
    shape: float = n_columns / n_rows
    return shape if max(n_rows, n_columns) <= NAMED else max(1.0, shape)


def _height(panel: Panel, width: float, size: float) -> float:
    """Return how high a panel of this width should be, with its labels in letters of `size` points."""
    letters = size * POINT
    if not isinstance(panel, Matrix):
        return width / CHART_SHAPE + letters * 1.5 * len(panel.series)
    cells = _cells(panel, width, math.inf, letters)
    return (
        float(panel.values.shape[1]) * cells.width / _shape(panel) + cells.below + ABOVE * letters
    )


def _cells(matrix: Matrix, width: float, height: float, letters: float) -> Cells:
    """Return the cells of a matrix that has this width and height with its labels, in letters of this size."""
    n_rows, n_columns = matrix.values.shape
    rows, columns = (
        letters * max(map(length_of, "\n".join(names).split("\n"))) if names else letters * 1.3
        for names in (matrix.rows, matrix.columns)
    )
    cell_width = (width - rows - 2.2 * letters) / n_columns
    cell_height = (height - (ABOVE + 3) * letters) / n_rows
    is_upright = columns > min(cell_width, cell_height) - 0.5 * letters
    below = columns + 2 * letters if is_upright else 3.2 * letters
    cell_height = (height - ABOVE * letters - below) / n_rows
    if max(n_rows, n_columns) <= NAMED:
        cell_width = cell_height = min(cell_width, cell_height)
    return Cells(cell_width, cell_height, below, is_upright)


def _beside_main(figure: Figure, panels: Sequence[Panel], shape: float) -> Iterable[SubFigure]:
    """Divide a figure of this width over height into a part for each panel, the main one at the left."""
    n_others = len(panels) - 1
    share = MATRIX_SHARE if isinstance(panels[0], Matrix) else CHART_SHARE
    first, rest = figure.subfigures(1, 2, squeeze=False, width_ratios=(share, 1 - share)).flat
    widest = max(map(_shape, panels[1:]))
    n_columns = round(math.sqrt(n_others * (1 - share) * shape / widest))
    n_columns = min(max(n_columns, 1), n_others)
    n_rows = math.ceil(n_others / n_columns)
    return [first, *rest.subfigures(n_rows, n_columns, squeeze=False).flat]


def _arrange(
    figure: Figure,
    panels: Sequence[Panel],
    axes: Sequence[Axes],
    rect: tuple[float, float, float, float],
) -> None:
    """Give panels all the room that their labels leave in a part of the figure: left, bottom, width and height."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.transforms import Bbox

    # Set as the figure's engine, it would run again, and draw everything twice, whenever the figure is saved.
    ConstrainedLayoutEngine(rect=rect, w_pad=PAD, h_pad=PAD, wspace=0, hspace=0).execute(figure)
    # The solver's last bits change from run to run, and equal stories should give equal files.
    _round_parts(figure)
    for ax in figure.axes:
        ax.set_position(Bbox(ax.get_position(original=True).get_points().round(9)))
    for panel, ax in zip(panels, axes, strict=True):
        if isinstance(panel, Matrix) and max(panel.values.shape) <= NAMED:
            # Not before, since the engine takes the labels for smaller then.
            ax.set_aspect("equal", anchor="NW")


def _round_parts(figure: FigureBase) -> None:
    """Round where the parts of a figure, and their parts, begin and end."""
    for part in figure.subfigs:
        part.bbox_relative.set_points(part.bbox_relative.get_points().round(9))
        _round_parts(part)


def _draw_panel(part: FigureBase, panel: Panel, pen: Pen, *, in_page: bool = False) -> Axes:
    """Draw a panel with its labels in a part of a figure, in a page without a title; return its axes."""
    if not in_page:
        title = pen.wrap(panel.title, pen.width / 1.1)
        part.suptitle(title, x=0, ha="left", fontsize=1.1 * pen.size)
    ax = part.subplots()
    ax.tick_params(length=0, pad=3, labelsize=pen.size)
    if isinstance(panel, Matrix):
        _draw_matrix(ax, panel, pen, in_page=in_page)
        x_title, y_title = panel.column_title, panel.row_title
    else:
        _draw_chart(ax, panel, pen)
        x_title, y_title = panel.x_title if isinstance(panel, Lines) else "", panel.y_title
    quiet: dict[str, Any] = {"color": pen.theme.quiet, "fontsize": pen.size, "labelpad": 3}
    ax.set_xlabel(pen.wrap(x_title, 0.8 * pen.width), **quiet)
    ax.set_ylabel(pen.wrap(y_title, 0.6 * pen.height), **quiet)
    return ax


# Matrices.


def _draw_matrix(ax: Axes, matrix: Matrix, pen: Pen, *, in_page: bool) -> None:
    """Draw the cells with their numbers or, where these do not fit, with a colour bar, and name rows and columns."""
    cells = _cells(matrix, pen.width, pen.height, pen.letters(1))
    is_named = max(matrix.values.shape) <= NAMED
    number = max(map(length_of, _numbers(matrix).values()))
    size = min(1.2 * pen.size, 0.8 * cells.width / number / POINT, 0.55 * cells.height / POINT)
    has_numbers = is_named and size >= pen.least

    themes = {"on-light": LIGHT, "on-dark": DARK} if in_page else {None: pen.theme}
    for name, theme in themes.items():
        _draw_cells(ax, matrix, pen, theme, name, size if has_numbers else 0.0)
    if np.isnan(matrix.values).any():
        ax.patch.set(**pen.theme.masked)
    ax.spines[:].set(color=pen.theme.frame, linewidth=0.6)
    ax.locator_params(integer=True)  # rows and columns without names have numbers
    for axis, names, length, angle in (
        (ax.xaxis, matrix.columns, cells.width, 90 if cells.is_upright else 0),
        (ax.yaxis, matrix.rows, cells.height, 0),
    ):
        if names:
            size = min(pen.size, max(pen.least, length / 1.2 / POINT))
            places = range(0, len(names), math.ceil(0.95 * size * POINT / length))
            axis.set_ticks(
                places, [names[place] for place in places], rotation=angle, fontsize=size
            )


def _draw_cells(
    ax: Axes, matrix: Matrix, pen: Pen, theme: Theme, name: str | None, size: float
) -> None:
    """Draw the cells with numbers of this size, or with a colour bar if it is 0; a page names them."""
    from matplotlib.colors import ListedColormap

    low, high = matrix.limits
    table = theme.diverging() if matrix.diverging else theme.colours(pen.palette)
    image = ax.imshow(
        np.ma.masked_invalid(matrix.values),
        ListedColormap(table / 255),
        vmin=low,
        vmax=high,
        aspect="auto",
        interpolation="none",
        gid=name,
    )
    if not size:
        bar = ax.inset_axes((1.03, 0, 0.04, 1), gid=name)
        ax.figure.colorbar(image, cax=bar).outline.set(color=theme.frame, linewidth=0.6)
        bar.tick_params(
            length=2, pad=2, labelsize=0.85 * pen.size, color=theme.frame, labelcolor=theme.ink
        )
        return
    inks = text_colours(table)[levels(np.nan_to_num(matrix.values) - low, high - low)]
    for (row, column), number in _numbers(matrix).items():
        look: dict[str, Any] = {"fontsize": size, "color": inks[row, column], "gid": name}
        ax.text(column, row, number, ha="center", va="center", in_layout=False, **look)


def _numbers(matrix: Matrix) -> dict[tuple[int, int], str]:
    """Return the numbers of cells that are not masked, as texts."""
    values = {
        place: float(value) for place, value in np.ndenumerate(matrix.values) if value == value
    }
    digits = 0 if all(map(float.is_integer, values.values())) else 2
    return {place: decimals(value, digits) for place, value in values.items()}


# Charts.


def _draw_chart(ax: Axes, chart: Lines | Bars, pen: Pen) -> None:
    """Draw lines or bars over a grid, with their names above."""
    width = pen.width - pen.letters(6)
    names = [pen.wrap(series.name, width - pen.letters(4)) for series in chart.series]
    if isinstance(chart, Lines):
        _draw_lines(ax, chart, names, pen, width)
    else:
        _draw_bars(ax, chart, names, pen, width)
    ax.grid(axis="y", color=pen.theme.grid, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    if len(names) > 1:
        longest = max(
            pen.letters(length_of(line) + 4) for name in names for line in name.split("\n")
        )
        ax.legend(
            loc="lower left",
            bbox_to_anchor=(0, 1),
            ncols=max(1, int(width / longest)),
            fontsize=pen.size,
            frameon=False,
            borderpad=0,
            borderaxespad=0.5,
            labelspacing=0.3,
        )


def _draw_lines(ax: Axes, chart: Lines, names: Sequence[str], pen: Pen, width: float) -> None:
    """Draw a line per series, with a band around it if the series has an interval."""
    for index, (series, name) in enumerate(zip(chart.series, names, strict=True)):
        colour = pen.theme.series[index % len(pen.theme.series)]
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
        longest = pen.letters(max(map(length_of, marks)) + 0.5)
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


def _draw_bars(ax: Axes, chart: Bars, names: Sequence[str], pen: Pen, width: float) -> None:
    """Draw the bars of each series side by side at each label, with their numbers if these fit."""
    thickness = 0.8 / len(names)
    step = width / len(chart.labels)
    for index, (series, name) in enumerate(zip(chart.series, names, strict=True)):
        bars = ax.bar(
            np.arange(len(chart.labels)) + (index - (len(names) - 1) / 2) * thickness,
            series.values,
            0.94 * thickness,
            label=name,
            color=pen.theme.series[index % len(pen.theme.series)],
        )
        if pen.letters(length_of("0.00")) < thickness * step:
            quiet: dict[str, Any] = {"fontsize": 0.9 * pen.size, "color": pen.theme.quiet}
            ax.bar_label(bars, fmt="%.2f", padding=2, **quiet)
    words = [word for label in chart.labels for word in label.split()]
    is_upright = pen.letters(max(map(length_of, words)) + 0.5) > step
    labels = [label if is_upright else pen.wrap(label, step) for label in chart.labels]
    ax.set_xticks(range(len(labels)), labels, rotation=90 if is_upright else 0)
    ax.margins(x=0.02, y=0.12)
