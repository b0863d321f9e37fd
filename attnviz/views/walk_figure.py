"""A walkthrough on one sheet, left to right, as on a blackboard: PNG, SVG or PDF.

As in the other figures nothing touches pyplot, and Matplotlib's settings are what they were afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnviz.text.steps import explained
from attnviz.views.caption import canvas
from attnviz.views.figure import usual_settings
from attnviz.views.fonts import Typefaces, typefaces_for
from attnviz.views.palette import DEFAULT
from attnviz.views.pen import BLACK, DPI, GREY, MARGIN, PIXELS, POINT, TEXT, TITLE, Pen, clipped
from attnviz.views.walk_panel import Box, draw, label_rows, label_size, measured
from attnviz.views.walk_plan import Unit, plan, shown_formula
from attnviz.views.walk_words import BLANK, NO_BLANKS, Blanks, receipt_line, say, source_line, whole_formula
from attnviz.walk import Walkthrough

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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


def figure(
    walk: Walkthrough,
    *,
    palette: str = DEFAULT,
    language: str = "en",
    precision: int = 3,
    steps: Sequence[str] | None = None,
    blanks: Blanks = NO_BLANKS,
    until: int | None = None,
) -> Figure:
    """The whole calculation as a figure.

    Args:
        walk: what to draw.
        palette: one of `attnviz.views.palette.PALETTES`.
        language: one of `attnviz.text.steps.LANGUAGES`.
        precision: digits after the point of each number.
        steps: the names of the steps to draw; None draws all.
        blanks: cells that a learner fills in: grid, row, column.
        until: the number of the last step drawn, from 1; the sheet has room for the rest, and says what this step is.

    Raises:
        SelectionError: a step, language or palette that is not there.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    explained("scores", language)  # refuses a language that is not there
    bands = plan(walk, language=language, steps=steps, blanks=blanks)
    with usual_settings():
        made = Figure(dpi=DPI, facecolor="white")
        FigureCanvasAgg(made)
        pen = Pen(made, typefaces_for(_texts(walk, bands, language)))
        lines = [line for band in bands for line in _lines(band, pen, precision)]
        frame, tops = _frame(lines, walk, language, pen, until=until)
        for line, top in zip(lines, tops, strict=True):
            _draw_line(frame, line, top, palette, pen, until=until)
    return made


def write(
    walk: Walkthrough,
    path: Path | BytesIO,
    suffix: str,
    *,
    palette: str = DEFAULT,
    language: str = "en",
    precision: int = 3,
    steps: Sequence[str] | None = None,
    blanks: Blanks = NO_BLANKS,
) -> Typefaces:
    """Draw the whole calculation into a file; the arguments are those of `figure`.

    Args:
        walk: what to draw.
        path: the file, or what it is written into.
        suffix: `.png`, `.svg` or `.pdf`.
        palette: as in `figure`.
        language: likewise.
        precision: likewise.
        steps: likewise.
        blanks: likewise.

    Returns:
        The fonts used, with the characters that none has.

    Raises:
        SelectionError: a step, language or palette that is not there.
    """
    made = figure(walk, palette=palette, language=language, precision=precision, steps=steps, blanks=blanks)
    kind = suffix.removeprefix(".")
    about, receipt = {"Title": walk.title}, receipt_line(walk, language)
    # Nearly as small as at higher levels, in half the time.
    options: dict[str, Any] = {"pil_kwargs": {"compress_level": 2}} if kind == "png" else {}
    with usual_settings():
        made.savefig(
            path,
            format=kind,
            dpi=min(DPI, PIXELS / max(made.get_size_inches())),
            metadata={
                "png": about | {"Description": receipt, "Software": "attnviz"},
                "svg": about | {"Description": receipt, "Creator": "attnviz", "Date": None},
                "pdf": about | {"Subject": receipt, "Creator": "attnviz", "CreationDate": None},
            }[kind],
            **options,
        )
    return typefaces_for(_texts(walk, plan(walk, language=language, steps=steps, blanks=blanks), language))


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


def _frame(
    lines: list[list[Place]], walk: Walkthrough, language: str, pen: Pen, *, until: int | None
) -> tuple[Axes, list[float]]:
    """The sheet with what stands above and below the matrices, and the height at which each line of them begins."""
    wide = max(sum(place.gap + place.left + place.width for place in line) for line in lines)
    width = max(wide + 2 * MARGIN, NARROWEST)
    said = [(walk.title, TITLE, BLACK), (source_line(walk, language), TEXT + 0.5, GREY)]
    said.append((shown_formula(whole_formula(walk)), TITLE, BLACK))
    above = [(line, size, colour) for text, size, colour in said for line in pen.wrap(text, width - 2 * MARGIN, size)]
    if until is not None:
        told = explained(walk.steps[until - 1].name, language)
        step = pen.wrap(f"{until}. {told.title}: {told.sentence}", width - 2 * MARGIN, TEXT + 1, STEP_LINES)
        above += [(line, TEXT + 1, BLACK) for line in [*step, *[""] * (STEP_LINES - len(step))]]  # all sheets alike
    notes = [receipt_line(walk, language), say("colours", language), *walk.notes]
    below = [line for text in notes for line in pen.wrap(text, width - 2 * MARGIN, TEXT)]
    top = MARGIN + sum(1.4 * size * POINT for _, size, _ in above) + 0.12
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
        y += 1.4 * size * POINT
    y = height - MARGIN - 1.35 * TEXT * POINT * (len(below) - 1)
    for index, text in enumerate(below):
        frame.text(MARGIN, y, text, va="baseline", **pen.style(TEXT, color=GREY if index else BLACK))
        y += 1.35 * TEXT * POINT
    frame.set_autoscale_on(False)  # an image drawn later must not move the edges
    return frame, tops


def _draw_line(ax: Axes, line: list[Place], top: float, palette: str, pen: Pen, *, until: int | None) -> None:
    """Draw units side by side, the cells of each beginning at the same height."""
    x = MARGIN
    for index, place in enumerate(line):
        seen = [box for box in (place.upper, place.main, place.lower) if box is not None]
        seen = [box for box in seen if until is None or box.panel.number <= until]
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


def _texts(walk: Walkthrough, bands: list[list[Unit]], language: str) -> list[str]:
    """All that the sheet says."""
    texts = [walk.title, source_line(walk, language), receipt_line(walk, language), say("colours", language)]
    texts += [shown_formula(whole_formula(walk)), *walk.notes, *SYMBOL, BLANK, "∞"]
    for band in bands:
        for unit in band:
            for panel in unit.panels:
                texts += [panel.title, *panel.lines, *clipped(panel.rows), *clipped(panel.columns)]
    return texts
