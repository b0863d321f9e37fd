"""Where everything stands on the sheet of a walkthrough: matrices in lines, words above and below them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attnviz.text.steps import Explained, explained
from attnviz.views.caption import canvas
from attnviz.views.figure import usual_settings
from attnviz.views.fonts import typefaces_for
from attnviz.views.pen import BLACK, DPI, GREY, MARGIN, POINT, TEXT, TITLE, Pen, clipped
from attnviz.views.walk_panel import Box, draw, label_rows, label_size, measured
from attnviz.views.walk_plan import Unit, plan, shown_formula
from attnviz.views.walk_words import (
    BLANK,
    Blanks,
    note_lines,
    receipt_line,
    say,
    source_line,
    title_line,
    whole_formula,
)
from attnviz.walk import Walkthrough

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

WIDEST = 18.5
"""Inches that matrices may take side by side before they go on below."""
NARROWEST = 6.0
GAP, ARROW = 0.22, 0.34
"""Between two matrices, without and with a symbol between them."""
BETWEEN = 0.32
"""Between two lines of matrices."""
STACKED = 0.16
"""Between matrices that stand over each other."""
STEP_LINES = 2
"""Lines that the words of one step take."""
CLEAR = 0.05
"""Above and below them, since letters reach beyond their line."""
LINE = 1.4
"""From one line above the matrices to the next, in their letters' size."""
SYMBOL = {"→": 12.0, "+": 12.0, "·": 20.0}
"""The size of what stands between matrices, in points."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A unit that has been measured; lengths in inches.

    Attributes:
        unit: what is drawn.
        upper: the size of what stands above.
        main: that of the middle.
        lower: that of what stands below.
        gap: before it.
        left: what the names of its rows take.
        width: of its widest part, without these names.
    """

    unit: Unit
    upper: Box | None
    main: Box
    lower: Box | None
    gap: float
    left: float
    width: float

    @property
    def above(self) -> float:
        """What stands above the cells in the middle, their own words not counted."""
        return 0.0 if self.upper is None else self.upper.head + self.upper.height + self.upper.below + STACKED

    @property
    def below(self) -> float:
        """The cells in the middle and what stands below them."""
        own = self.main.height + self.main.below
        return own if self.lower is None else own + STACKED + self.lower.head + self.lower.height + self.lower.below


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A sheet whose matrices have their places.

    Attributes:
        ax: what is drawn on.
        pen: with what.
        lines: the matrices.
        tops: the height at which each line of them begins.
        words: where the words of one step begin and end; lengths in inches.
    """

    ax: Axes
    pen: Pen
    lines: list[list[Place]]
    tops: list[float]
    words: tuple[float, float]

    def draw(self, numbers: range, palette: str) -> None:
        """Draw the matrices of these steps."""
        for line, top in zip(self.lines, self.tops, strict=True):
            _draw_line(self, line, top, palette, numbers)

    def say(self, number: int, told: Explained) -> list[Text]:
        """Write what a step is."""
        width, size = self.pen.figure.get_figwidth() - 2 * MARGIN, TEXT + 1
        lines = self.pen.wrap(f"{number}. {told.title}: {told.sentence}", width, size, STEP_LINES)
        style = self.pen.style(size)
        return [
            self.ax.text(MARGIN, self.words[0] + CLEAR + index * LINE * size * POINT, line, va="top", **style)
            for index, line in enumerate(lines)
        ]


def layout(
    walk: Walkthrough, language: str, precision: int, steps: Sequence[str] | None, blanks: Blanks, *, words: int = 0
) -> Layout:
    """A sheet with nothing on it but its words, and the place of every matrix.

    Args:
        walk: what is to be drawn.
        language: as in `attnviz.views.walk_figure.figure`, and so are the next three.
        precision: digits after the point.
        steps: the names of the steps.
        blanks: cells that stay empty.
        words: lines left for the words of one step.

    Raises:
        SelectionError: a step or a language that is not there.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    explained("scores", language)  # refuses a language that is not there
    bands = plan(walk, language=language, steps=steps, blanks=blanks)
    with usual_settings():
        made = Figure(dpi=DPI, facecolor="white")
        FigureCanvasAgg(made)
        pen = Pen(made, typefaces_for(all_texts(walk, bands, language)))
        lines = [line for band in bands for line in _lines(band, pen, precision)]
        return _frame(lines, walk, language, pen, words)


def _lines(band: list[Unit], pen: Pen, precision: int) -> list[list[Place]]:
    """A band in lines that fit the sheet; rows are named where they are not those of the neighbour."""
    lines: list[list[Place]] = []
    used = 0.0
    for unit in band:
        before = lines[-1][-1] if lines else None
        place = _place(unit, before, pen, precision)
        wide = place.gap + place.left + place.width
        if before is None or used + wide > WIDEST:
            place = _place(unit, None, pen, precision)
            lines.append([])
            used, wide = 0.0, place.gap + place.left + place.width
        lines[-1].append(place)
        used += wide
    return lines


def _place(unit: Unit, before: Place | None, pen: Pen, precision: int) -> Place:
    """Measure a unit; `before` is its neighbour at the left, None at the beginning of a line."""
    upper, main, lower = (
        None if panel is None else measured(panel, pen, precision, small=unit.small)
        for panel in (unit.upper, unit.main, unit.lower)
    )
    assert main is not None  # noqa: S101 - a unit has one
    boxes = [box for box in (upper, main, lower) if box is not None]
    named = [box for box in (main, upper) if box is not None and box.panel.rows]
    if before is not None and before.unit.main.rows == unit.main.rows:
        named = [box for box in named if box is not main]
    left = max((pen.widest(clipped(box.panel.rows), label_size(box)) + 0.08 for box in named), default=0.0)
    return Place(
        unit=unit,
        upper=upper,
        main=main,
        lower=lower,
        gap=ARROW if unit.symbol else GAP if before is not None else 0.0,
        left=left,
        width=max(box.room for box in boxes),
    )


def _frame(lines: list[list[Place]], walk: Walkthrough, language: str, pen: Pen, words: int) -> Layout:
    """The sheet with what stands above and below the matrices."""
    wide = max(sum(place.gap + place.left + place.width for place in line) for line in lines)
    width = max(wide + 2 * MARGIN, NARROWEST)
    said = [(title_line(walk, language), TITLE, BLACK), (source_line(walk, language), TEXT + 0.5, GREY)]
    said.append((shown_formula(whole_formula(walk)), TITLE, BLACK))
    above = [(line, size, colour) for text, size, colour in said for line in pen.wrap(text, width - 2 * MARGIN, size)]
    notes = [receipt_line(walk, language), say("colours", language), *note_lines(walk, language)]
    below = [line for text in notes for line in pen.wrap(text, width - 2 * MARGIN, TEXT)]
    begin = MARGIN + sum(LINE * size * POINT for _, size, _ in above)
    end = begin + (LINE * (TEXT + 1) * POINT * words + 2 * CLEAR if words else 0.0)
    top = end + 0.12
    tops = []
    for line in lines:
        top += max(place.above for place in line) + max(place.main.head for place in line)
        tops.append(top)
        top += max(place.below for place in line) + BETWEEN
    height = top - BETWEEN / 2 + 1.35 * TEXT * POINT * len(below) + MARGIN
    frame = canvas(pen, width, height)
    y = MARGIN
    for text, size, colour in above:
        frame.text(MARGIN, y, text, va="top", **pen.style(size, color=colour))
        y += LINE * size * POINT
    y = height - MARGIN - 1.35 * TEXT * POINT * (len(below) - 1)
    for index, text in enumerate(below):
        frame.text(MARGIN, y, text, va="baseline", **pen.style(TEXT, color=GREY if index else BLACK))
        y += 1.35 * TEXT * POINT
    frame.set_autoscale_on(False)  # an image drawn later must not move the edges
    return Layout(ax=frame, pen=pen, lines=lines, tops=tops, words=(begin, end))


def _draw_line(sheet: Layout, line: list[Place], top: float, palette: str, numbers: range) -> None:
    """Draw units side by side, as far as they belong to these steps; the cells of all begin at the same height."""
    ax, pen = sheet.ax, sheet.pen
    x = MARGIN
    for index, place in enumerate(line):
        seen = [box for box in (place.upper, place.main, place.lower) if box is not None]
        seen = [box for box in seen if box.panel.number in numbers]
        if place.unit.symbol and place.main in seen:
            beside = line[index - 1].main if index else place.main
            middle = top + min(place.main.height, beside.height) / 2
            style = pen.style(SYMBOL[place.unit.symbol], color=GREY)
            ax.text(x + place.gap / 2, middle, place.unit.symbol, ha="center", va="center", **style)
        x += place.gap + place.left
        new = index == 0 or line[index - 1].unit.main.rows != place.unit.main.rows
        if place.upper is not None and place.upper in seen:
            y = top - max(one.main.head for one in line) - STACKED - place.upper.height - place.upper.below
            draw(ax, place.upper, (x, y), palette, pen)
            label_rows(ax, place.upper, x - 0.08, y, pen)
        if place.main in seen:
            draw(ax, place.main, (x, top), palette, pen)
            if new:
                label_rows(ax, place.main, x - 0.08, top, pen)
        if place.lower is not None and place.lower in seen:
            y = top + place.main.height + place.main.below + STACKED + place.lower.head
            draw(ax, place.lower, (x, y), palette, pen)
        x += place.width


def all_texts(walk: Walkthrough, bands: list[list[Unit]], language: str) -> list[str]:
    """All that the sheet says."""
    texts = [title_line(walk, language), source_line(walk, language), receipt_line(walk, language)]
    texts += [say("colours", language), shown_formula(whole_formula(walk)), *note_lines(walk, language)]
    texts += [*SYMBOL, BLANK, "∞", *(explained(step.name, language).sentence for step in walk.steps)]
    for band in bands:
        for unit in band:
            for panel in unit.panels:
                texts += [panel.title, *panel.lines, *clipped(panel.rows), *clipped(panel.columns)]
    return texts
