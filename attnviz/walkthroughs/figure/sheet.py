"""A walkthrough on one sheet, left to right, as on a blackboard.

Matrices stand in lines: steps that belong together side by side, little paper left empty, words above and below them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Unpack

from attnviz.render.figure.export import Picture, blank_figure, usual_settings
from attnviz.render.figure.page import Page, height_of, lines, page_of
from attnviz.render.figure.pen import BLACK, DPI, GREY, MARGIN, PIXELS, POINT, TEXT, TITLE, Pen, clipped
from attnviz.render.palette import DEFAULT
from attnviz.walkthroughs.figure.panel import Box, box_of, draw_panel, label_rows, label_size
from attnviz.walkthroughs.figure.plan import Unit, plan
from attnviz.walkthroughs.operations import MATRIX
from attnviz.walkthroughs.record import Walkthrough
from attnviz.walkthroughs.selection import BLANK, NO_BLANKS, ViewOptions, chosen, whole_formula
from attnviz.walkthroughs.wording import (
    Explanation,
    by_cells,
    explain,
    note_lines,
    receipt_line,
    say,
    shown_formula,
    source_line,
    title_line,
)

if TYPE_CHECKING:
    from matplotlib.text import Text

NARROWEST = 6.0
"""Inches that a sheet takes at least."""
STEP_LINES = 2
"""Lines that the words of one step take."""
STEP_MARGIN = 0.05
"""Above and below them, since letters reach beyond their line."""
LEADING = 1.4
"""From one line above the matrices to the next, in their letters' size."""
WIDEST = 18.5
"""Inches that matrices may take side by side before they go on below."""
GAP, ARROW = 0.22, 0.34
"""Between two matrices, without and with a symbol between them."""
BETWEEN = 0.32
"""Between two lines of matrices."""
STACKED = 0.16
"""Between matrices that stand over each other."""
SIGN, NAMES = 12.0, 9.5
"""The size of what stands between matrices, in points: signs alone, and signs with names."""
CLEAR = 0.07
"""At both sides of a symbol, at least."""
APART = 0.6
"""Between two heads that stand side by side."""
MOST_BESIDE = 4
"""Heads that may stand so."""
LEAST_WIDTH = 9.0
"""Inches: lines of matrices are broken no sooner."""
LONGEST = PIXELS / DPI
"""Inches: a sheet that is longer or wider has fewer points for an inch."""


def draw(walk: Walkthrough, *, palette: str = DEFAULT, **options: Unpack[ViewOptions]) -> Picture:
    """The whole calculation as a picture.

    Args:
        walk: what to draw.
        palette: one of `attnviz.render.names.PALETTES`.
        options: as in `attnviz.walkthroughs.selection.ViewOptions`.

    Raises:
        SelectionError: a step, language or palette that is not there.
    """
    sheet = _sheet(walk, **options)
    with usual_settings():
        sheet.draw(range(1, len(walk.steps) + 1), palette)
    language = options.get("language", "en")
    return Picture(sheet.page.pen, title_line(walk, language), receipt_line(walk, language))


def stages(
    walk: Walkthrough, *, palette: str = DEFAULT, **options: Unpack[ViewOptions]
) -> Iterator[tuple[Pen, tuple[float, float]]]:
    """The sheet as far as each step, with the words of that step: one figure, with more on it each time.

    The arguments are those of `draw`.

    Yields:
        The pen with the figure, and where the words of the step begin and end: inches from the top. All else that was
        drawn stays.

    Raises:
        SelectionError: a step, language or palette that is not there.
    """
    sheet = _sheet(walk, words=STEP_LINES, **options)
    done = 0
    for number, step in chosen(walk, options.get("steps")):
        with usual_settings():
            sheet.draw(range(done + 1, number + 1), palette)
            words = sheet.write_step(number, explain(step.name, options.get("language", "en")))
        yield sheet.page.pen, sheet.words
        for text in words:
            text.remove()
        done = number


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A unit that has been measured; lengths in inches.

    Attributes:
        unit: what is drawn.
        upper: the size of what stands above.
        main: that of the middle.
        lower: that of what stands below.
        symbol: what stands before it.
        gap: before it, for the symbol.
        sign: the part of it that is the symbol's, next to the matrix.
        left: what the names of its rows take.
        width: of its widest part, without these names.
    """

    unit: Unit
    upper: Box | None
    main: Box
    lower: Box | None
    symbol: str
    gap: float
    sign: float
    left: float
    width: float

    @property
    def boxes(self) -> tuple[Box, ...]:
        """All that stands here, from above."""
        return tuple(box for box in (self.upper, self.main, self.lower) if box is not None)

    @property
    def above(self) -> float:
        """What stands above the cells in the middle, their own words not counted."""
        return 0.0 if self.upper is None else self.upper.head + self.upper.height + self.upper.below + STACKED

    @property
    def below(self) -> float:
        """The cells in the middle and what stands below them."""
        own = self.main.height + self.main.below
        return own if self.lower is None else own + STACKED + self.lower.head + self.lower.height + self.lower.below


Boxes = tuple[Box | None, Box, Box | None]
"""The sizes of a unit's matrices: above, in the middle, below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """A sheet whose matrices have their places.

    Attributes:
        page: what is drawn on.
        lines: the matrices.
        tops: the height at which each line of them begins.
        words: where the words of one step begin and end; lengths in inches.
    """

    page: Page
    lines: list[list[Place]]
    tops: list[float]
    words: tuple[float, float]

    def draw(self, numbers: range, palette: str) -> None:
        """Draw the matrices of these steps."""
        for line, top in zip(self.lines, self.tops, strict=True):
            _draw_line(self.page, line, top, palette, numbers)

    def write_step(self, number: int, step: Explanation) -> list[Text]:
        """Write what a step is."""
        width, size = self.page.size[0] - 2 * MARGIN, TEXT + 1
        text = f"{number}. {step.title}: {step.sentence}"
        before = len(self.page.ax.texts)
        words = lines(self.page.pen, [text], width, size, leading=LEADING, most=STEP_LINES)
        self.page.write(words, self.words[0] + STEP_MARGIN)
        return list(self.page.ax.texts)[before:]


def _sheet(walk: Walkthrough, *, words: int = 0, **options: Unpack[ViewOptions]) -> _Layout:
    """A sheet with nothing on it but its words, and the place of every matrix; lines are left for one step's words."""
    language, steps = options.get("language", "en"), options.get("steps")
    explain("scores", language)  # refuses a language that is not there
    bands = plan(walk, language=language, steps=steps, blanks=options.get("blanks", NO_BLANKS))
    with usual_settings():
        pen = blank_figure(_texts(walk, bands, language))
        return _framed(arrange(bands, pen, options.get("precision", 3)), walk, language, pen, words)


def _framed(rows: list[list[Place]], walk: Walkthrough, language: str, pen: Pen, words: int) -> _Layout:
    """The sheet with what stands above and below the matrices."""
    width = max(max(map(length, rows)) + 2 * MARGIN, NARROWEST)
    room = width - 2 * MARGIN
    title, source, formula = title_line(walk, language), source_line(walk, language), shown_formula(whole_formula(walk))
    above = [
        line
        for text, size, colour in ((title, TITLE, BLACK), (source, TEXT + 0.5, GREY), (formula, TITLE, BLACK))
        for line in lines(pen, [text], room, size, colour=colour, leading=LEADING)
    ]
    boxes = [box for row in rows for place in row for box in place.boxes]
    notes = [receipt_line(walk, language), *_legend(walk, language, boxes), *note_lines(walk, language)]
    below = lines(pen, notes, room)
    begin = MARGIN + height_of(above)
    end = begin + (LEADING * (TEXT + 1) * POINT * words + 2 * STEP_MARGIN if words else 0.0)
    tops, bottom = heights(rows, end + 0.12)
    page = page_of(pen, width, bottom - BETWEEN / 2 + height_of(below) + MARGIN)
    page.write(above, MARGIN)
    page.write(below, page.size[1] - MARGIN - height_of(below[1:]), va="baseline")
    return _Layout(page=page, lines=rows, tops=tops, words=(begin, end))


def _draw_line(page: Page, line: list[Place], top: float, palette: str, numbers: range) -> None:
    """Draw units side by side, as far as they belong to these steps; the cells of all begin at the same height."""
    x = MARGIN
    for index, place in enumerate(line):
        seen = [box for box in place.boxes if box.panel.since in numbers]
        if place.symbol and place.main.panel.number in numbers:
            beside = line[index - 1].main if index else place.main
            y, size = top + min(place.main.height, beside.height) / 2, sign_size(place.symbol)
            page.text(x + place.gap - place.sign / 2, y, place.symbol, size, ha="center", va="center", color=GREY)
        x += place.gap + place.left
        new = index == 0 or is_named(place.unit, line[index - 1].unit)
        if place.upper is not None and place.upper in seen:
            y = top - max(one.main.head for one in line) - STACKED - place.upper.height - place.upper.below
            draw_panel(page, place.upper, (x, y), palette)
            label_rows(page, place.upper, x - 0.08, y)
        if place.main in seen:
            draw_panel(page, place.main, (x, top), palette)
            if new:
                label_rows(page, place.main, x - 0.08, top)
        if place.lower is not None and place.lower in seen:
            y = top + place.main.height + place.main.below + STACKED + place.lower.head
            draw_panel(page, place.lower, (x, y), palette)
        x += place.width


def _legend(walk: Walkthrough, language: str, boxes: Sequence[Box]) -> tuple[str, str]:
    """How products are written on the sheet, and what the colours of these matrices mean."""
    signs = say("signs", language, matrix=MATRIX) + (say("cells", language) if by_cells(walk.steps) else "")
    colours = [say("colours", language)]
    colours += [say("beyond", language)] if any(box.is_clipped for box in boxes) else []
    colours += [say("sharing", language)] if any(box.is_pooled for box in boxes) else []
    return signs, "".join(colours)


def _texts(walk: Walkthrough, bands: list[list[Unit]], language: str) -> list[str]:
    """All that the sheet says."""
    texts = [title_line(walk, language), source_line(walk, language), receipt_line(walk, language)]
    texts += [
        *(say(what, language, matrix=MATRIX) for what in ("signs", "cells", "colours", "beyond", "sharing")),
        shown_formula(whole_formula(walk)),
        *note_lines(walk, language),
    ]
    texts += [BLANK, "∞", *(explain(step.name, language).sentence for step in walk.steps)]
    for band in bands:
        for unit in band:
            for panel in unit.panels:
                texts += [
                    unit.symbol,
                    unit.opening,
                    panel.title,
                    *panel.lines,
                    *clipped(panel.rows),
                    *clipped(panel.columns),
                ]
    return texts


# Which line each matrix stands in.


def arrange(bands: Sequence[list[Unit]], pen: Pen, precision: int) -> list[list[Place]]:
    """The matrices in lines, broken in the way that needs the least paper; several heads may stand side by side."""
    sizes = {id(unit): _boxes_of(unit, pen, precision) for band in bands for unit in band}
    n_heads = sum(band[0].is_head for band in bands)
    layouts = []
    for beside in range(1, max(1, min(n_heads, MOST_BESIDE)) + 1):
        groups = _beside(bands, beside)
        longest = _rows(groups, sizes, pen, WIDEST)
        layouts.append(longest)
        limits = {round(width, 2) + 0.01 for width in map(length, longest) if width >= LEAST_WIDTH}
        layouts += [_rows(groups, sizes, pen, limit) for limit in sorted(limits)]
    return min(layouts, key=_paper)


def length(line: Sequence[Place]) -> float:
    """How long a line is."""
    return sum(place.gap + place.left + place.width for place in line)


def heights(lines: Sequence[Sequence[Place]], top: float) -> tuple[list[float], float]:
    """Where the cells of each line begin, and where the last line ends, if the first begins at the top given."""
    tops = []
    for line in lines:
        top += max(place.above for place in line) + max(place.main.head for place in line)
        tops.append(top)
        top += max(place.below for place in line) + BETWEEN
    return tops, top


def is_named(unit: Unit, before: Unit) -> bool:
    """Whether the rows of a unit are named behind its neighbour at the left, whose rows may be the same."""
    return unit.is_head or before.main.rows != unit.main.rows


def sign_size(symbol: str) -> float:
    """The size of what stands between two matrices, in points."""
    return NAMES if any(map(str.isalnum, symbol)) else SIGN


def _paper(lines: Sequence[Sequence[Place]]) -> float:
    """How much paper a sheet needs; more counts where it is higher than wide, or so long that all on it is smaller."""
    width, height = max(map(length, lines)) + 2 * MARGIN, heights(lines, 1.0)[1] + 0.6
    upright, long = max(1.0, height / width), max(1.0, width / LONGEST, height / LONGEST)
    return width * height * math.sqrt(upright) * long * long


def _beside(bands: Sequence[list[Unit]], beside: int) -> list[list[Unit]]:
    """The bands, of heads so many in one."""
    groups: list[list[Unit]] = []
    heads = 0
    for band in bands:
        if band[0].is_head and heads % beside:
            groups[-1] = [*groups[-1], *band]
        else:
            groups.append(band)
        heads = heads + 1 if band[0].is_head else 0
    return groups


def _rows(bands: Sequence[list[Unit]], sizes: dict[int, Boxes], pen: Pen, widest: float) -> list[list[Place]]:
    """Bands in lines no longer than this, unless heads stand side by side; the matrices of a step stay together."""
    rows: list[list[Place]] = []
    for band in bands:
        room = widest
        if sum(unit.is_head for unit in band) > 1:
            room = math.inf
        elif any(unit.lower is not None for unit in band):
            room = WIDEST  # what one query makes of its keys is read across
        line: list[Place] = []
        for _, units in groupby(band, key=lambda unit: unit.main.number):
            step = list(units)
            whole = _run(step, line[-1].unit if line else None, sizes, pen)
            if line and length(line) + length(whole) > room and length(_run(step, None, sizes, pen)) <= room:
                rows.append(line)
                line = []
            for unit in step:
                place = _place(unit, line[-1].unit if line else None, sizes, pen)
                if line and length([*line, place]) > room:
                    rows.append(line)
                    place = _place(unit, None, sizes, pen)
                    line = []
                line.append(place)
        rows.append(line)
    return rows


def _run(units: Sequence[Unit], before: Unit | None, sizes: dict[int, Boxes], pen: Pen) -> list[Place]:
    """Units in one line, whatever its length."""
    return [_place(unit, left, sizes, pen) for left, unit in zip([before, *units[:-1]], units, strict=True)]


def _boxes_of(unit: Unit, pen: Pen, precision: int) -> Boxes:
    upper, lower = (
        None if panel is None else box_of(panel, pen, precision, small=unit.small) for panel in (unit.upper, unit.lower)
    )
    return upper, box_of(unit.main, pen, precision, small=unit.small), lower


def _place(unit: Unit, before: Unit | None, sizes: dict[int, Boxes], pen: Pen) -> Place:
    """A unit behind its neighbour at the left, None at the beginning of a line."""
    upper, main, lower = sizes[id(unit)]
    boxes = [box for box in (upper, main, lower) if box is not None]
    named = [box for box in (main, upper) if box is not None and box.panel.rows]
    if before is not None and not is_named(unit, before):
        named = [box for box in named if box is not main]
    begins = before is None or unit.is_head
    symbol = unit.opening if begins else unit.symbol
    sign = max(ARROW, pen.width(symbol, sign_size(symbol)) + 2 * CLEAR) if symbol else 0.0
    gap = 0.0 if before is None else APART if begins else 0.0 if symbol and not symbol[0].isalnum() else GAP
    return Place(
        unit=unit,
        upper=upper,
        main=main,
        lower=lower,
        symbol=symbol,
        gap=gap + sign,
        sign=sign,
        left=max((pen.widest(clipped(box.panel.rows), label_size(box)) + 0.08 for box in named), default=0.0),
        width=max(box.room for box in boxes),
    )
