"""Where everything stands on the sheet of a walkthrough: matrices in lines, words above and below them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

from attnviz.render.figure.export import blank_sheet, usual_settings
from attnviz.render.figure.page import canvas
from attnviz.render.figure.pen import BLACK, GREY, MARGIN, POINT, TEXT, TITLE, Pen, clipped
from attnviz.walkthroughs.figure.panel import Box, draw, label_rows
from attnviz.walkthroughs.figure.places import BETWEEN, STACKED, Place, arranged, heights, is_named, length, sign_size
from attnviz.walkthroughs.figure.plan import Unit, plan
from attnviz.walkthroughs.operations import MATRIX
from attnviz.walkthroughs.record import Walkthrough
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
from attnviz.walkthroughs.words import BLANK, NO_BLANKS, Telling, whole_formula

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

NARROWEST = 6.0
"""Inches that a sheet takes at least."""
STEP_LINES = 2
"""Lines that the words of one step take."""
CLEAR = 0.05
"""Above and below them, since letters reach beyond their line."""
LINE = 1.4
"""From one line above the matrices to the next, in their letters' size."""


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

    def say(self, number: int, told: Explanation) -> list[Text]:
        """Write what a step is."""
        width, size = self.pen.figure.get_figwidth() - 2 * MARGIN, TEXT + 1
        lines = self.pen.wrap(f"{number}. {told.title}: {told.sentence}", width, size, STEP_LINES)
        style = self.pen.style(size)
        return [
            self.ax.text(MARGIN, self.words[0] + CLEAR + index * LINE * size * POINT, line, va="top", **style)
            for index, line in enumerate(lines)
        ]


def layout(walk: Walkthrough, *, words: int = 0, **told: Unpack[Telling]) -> Layout:
    """A sheet with nothing on it but its words, and the place of every matrix.

    Args:
        walk: what is to be drawn.
        words: lines left for the words of one step.
        told: as in `attnviz.walkthroughs.words.Telling`.

    Raises:
        SelectionError: a step or a language that is not there.
    """
    language, steps = told.get("language", "en"), told.get("steps")
    explain("scores", language)  # refuses a language that is not there
    bands = plan(walk, language=language, steps=steps, blanks=told.get("blanks", NO_BLANKS))
    with usual_settings():
        pen = blank_sheet(all_texts(walk, bands, language))
        lines = arranged(bands, pen, told.get("precision", 3))
        return _frame(lines, walk, language, pen, words)


def _frame(lines: list[list[Place]], walk: Walkthrough, language: str, pen: Pen, words: int) -> Layout:
    """The sheet with what stands above and below the matrices."""
    width = max(max(map(length, lines)) + 2 * MARGIN, NARROWEST)
    said = [(title_line(walk, language), TITLE, BLACK), (source_line(walk, language), TEXT + 0.5, GREY)]
    said.append((shown_formula(whole_formula(walk)), TITLE, BLACK))
    above = [(line, size, colour) for text, size, colour in said for line in pen.wrap(text, width - 2 * MARGIN, size)]
    boxes = [box for line in lines for place in line for box in place.boxes]
    notes = [receipt_line(walk, language), *_legend(walk, language, boxes), *note_lines(walk, language)]
    below = [line for text in notes for line in pen.wrap(text, width - 2 * MARGIN, TEXT)]
    begin = MARGIN + sum(LINE * size * POINT for _, size, _ in above)
    end = begin + (LINE * (TEXT + 1) * POINT * words + 2 * CLEAR if words else 0.0)
    tops, top = heights(lines, end + 0.12)
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
        seen = [box for box in place.boxes if box.panel.since in numbers]
        if place.symbol and place.main.panel.number in numbers:
            beside = line[index - 1].main if index else place.main
            middle = top + min(place.main.height, beside.height) / 2
            style = pen.style(sign_size(place.symbol), color=GREY)
            ax.text(x + place.gap - place.sign / 2, middle, place.symbol, ha="center", va="center", **style)
        x += place.gap + place.left
        new = index == 0 or is_named(place.unit, line[index - 1].unit)
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


def _legend(walk: Walkthrough, language: str, boxes: Sequence[Box]) -> tuple[str, str]:
    """How products are written on the sheet, and what the colours of these matrices mean."""
    signs = say("signs", language, matrix=MATRIX) + (say("cells", language) if by_cells(walk.steps) else "")
    said = [say("colours", language)]
    said += [say("beyond", language)] if any(box.is_clipped for box in boxes) else []
    said += [say("sharing", language)] if any(box.is_pooled for box in boxes) else []
    return signs, "".join(said)


def all_texts(walk: Walkthrough, bands: list[list[Unit]], language: str) -> list[str]:
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
