"""A walkthrough on slides: each begins with the finding and holds as many steps as fit in readable letters.

A slide is laid out in the letters of a sheet, and then enlarged. Lengths are in inches, font sizes in points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from attnviz.render.figure.export import Picture, blank_figure, fill_pages, usual_settings
from attnviz.render.figure.page import Line, height_of, lines, page_of
from attnviz.render.figure.pen import MARGIN, TEXT, Pen
from attnviz.render.figure.style import STYLES, Style, style_of
from attnviz.render.palette import DEFAULT
from attnviz.render.theme import ThemeName, theme_of
from attnviz.storage.files import write_whole
from attnviz.walkthroughs.figure.sheet import (
    LINE_GAP,
    SECTION_GAP,
    SOURCE,
    WORDS,
    Card,
    Sheet,
    break_into_lines,
    draw,
    draw_line,
    draw_rule,
    heading_lines,
    heading_texts,
    leaves_out,
    line_height,
    line_width,
    note_texts,
    prepare_sheet,
    write_heading,
)
from attnviz.walkthroughs.view import View

SLIDES = STYLES["slides"]
# Font sizes of the words to try: the smallest is that of the sheet's smallest letters.
SIZES = (*SLIDES.sizes, SLIDES.least)
SOURCE_LINES = 2  # a longer sentence is cut
COUNTER_WIDTH = 0.7  # beside the finding, for a number such as "2 / 12"


def save_slides(
    view: View,
    path: Path,
    *,
    palette: str = DEFAULT,
    theme: ThemeName = "auto",
    dpi: int | None = None,
) -> list[Path]:
    """Write all slides as pages of one PDF, or as ``NAME-1.png``, ``NAME-2.png`` ...; a single slide as `path` itself.

    Return the files. Raises OutputError: a file cannot be written; SettingsError: the theme or resolution is
    invalid.
    """
    slides = draw_slides(view, palette=palette, theme=theme, dpi=dpi)
    first = slides[0]
    if path.suffix.lower() == ".pdf" and len(slides) > 1:
        fill = partial(
            fill_pages, pictures=slides, title=first.title, description=first.description
        )
        return [write_whole(path, fill)]
    paths = [path]
    if len(slides) > 1:
        n_digits = len(str(len(slides)))
        paths = [
            path.with_stem(f"{path.stem}-{number:0{n_digits}}")
            for number in range(1, len(slides) + 1)
        ]
    for slide, slide_path in zip(slides, paths, strict=True):
        write_whole(slide_path, slide.fill)
    return paths


def draw_slides(
    view: View,
    *,
    palette: str = DEFAULT,
    theme: ThemeName = "auto",
    dpi: int | None = None,
) -> list[Picture]:
    """Draw the calculation on slides; an exercise, which is one table, on one slide.

    An `AttnvizWarning` says if a matrix is so large that its letters become too small. Raises SettingsError: the theme,
    width or resolution is invalid.
    """
    style, colours = style_of("slides", dpi=dpi), theme_of(theme, palette)
    if view.is_exercise:
        return [draw(view, palette=palette, style="slides", theme=theme, dpi=dpi)]
    with usual_settings(colours):
        sheet = prepare_sheet(view, palette, colours)
        layouts = [_lay_out(sheet, style, size / TEXT) for size in SIZES]
        # Larger letters are better, but not at the price of numbers left out, more slides, or no notes.
        layout = min(
            layouts,
            key=lambda layout: (-layout.n_cells, len(layout.slides), not layout.has_notes),
        )
        pens = [_draw(layout, number) for number in range(1, len(layout.slides) + 1)]
    title = heading_texts(view)[0]
    return [Picture(pen, title, view.receipt).fitted(style) for pen in pens]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """The cards of each slide, for a page that is enlarged to the size of a slide afterwards."""

    sheet: Sheet
    size: tuple[float, float]  # width and height of the page
    heading: list[Line]
    receipt: list[Line]  # below every slide but the last
    notes: list[Line]  # below the last slide: the receipt, and the notes if there is room
    slides: list[list[list[Card]]]  # for each slide its lines of cards

    @property
    def has_notes(self) -> bool:
        """Whether there is room for the notes on the last slide."""
        return self.notes != self.receipt

    @property
    def n_cells(self) -> int:
        """The number of cells that are drawn on all slides."""
        cards = [card for slide in self.slides for line in slide for card in line]
        return sum(card.n_cells for card in cards)


def _lay_out(sheet: Sheet, style: Style, zoom: float) -> _Layout:
    """Distribute the cards on slides that are enlarged by `zoom` afterwards."""
    assert style.width is not None
    assert style.height is not None
    width, height = style.width / zoom, style.height / zoom
    room = width - 2 * MARGIN
    heading = heading_lines(sheet.pen, sheet.view, room, COUNTER_WIDTH, most=SOURCE_LINES)
    receipt = lines(sheet.pen, [sheet.view.receipt], room, WORDS)
    room_below = height - 2 * MARGIN - height_of([*heading, *receipt]) - 2 * SECTION_GAP
    sheet = replace(sheet, width=room, height=room_below)
    cards = [
        part for section in sheet.sections() for card in section for part in card.split(room_below)
    ]
    slides = _distribute(break_into_lines(cards, room), room_below)
    left_out = any(leaves_out(card_lines) for card_lines in slides)
    notes = lines(sheet.pen, note_texts(sheet.view, left_out=left_out), room, WORDS)
    if _height(slides[-1]) + height_of(notes) > room_below + height_of(receipt):
        notes = receipt
    return _Layout(
        sheet=sheet,
        size=(width, height),
        heading=heading,
        receipt=receipt,
        notes=notes,
        slides=slides,
    )


def _height(card_lines: Sequence[Sequence[Card]]) -> float:
    """Return the height of lines of cards."""
    return sum(line_height(line) + LINE_GAP for line in card_lines) - LINE_GAP


def _distribute(card_lines: Sequence[list[Card]], height: float) -> list[list[list[Card]]]:
    """Return the lines of cards of each slide: as many as fit in `height`, and at least one."""
    slides: list[list[list[Card]]] = []
    room = 0.0
    for line in card_lines:
        if line_height(line) > room:
            slides.append([])
            room = height
        slides[-1].append(line)
        room -= line_height(line) + LINE_GAP
    return slides


def _draw(layout: _Layout, number: int) -> Pen:
    """Draw one slide, and return its pen; a matrix that is too large for a slide makes the page larger."""
    sheet, slide = layout.sheet, layout.slides[number - 1]
    pen = replace(sheet.pen, figure=blank_figure([], sheet.pen.theme).figure, least=TEXT)
    width, height = layout.size
    footer = layout.notes if number == len(layout.slides) else layout.receipt
    words_height = height_of([*layout.heading, *footer])
    page = page_of(
        pen,
        max(width, 2 * MARGIN + max(map(line_width, slide))),
        max(height, 2 * MARGIN + words_height + 2 * SECTION_GAP + _height(slide)),
    )
    right, bottom = page.size[0] - MARGIN, page.size[1] - MARGIN
    if len(layout.slides) > 1:
        counter = f"{number} / {len(layout.slides)}"
        page.text(right, MARGIN, counter, SOURCE, ha="right", va="top", color=pen.quiet)
    top = draw_rule(page, right - MARGIN, write_heading(page, layout.heading))
    for line in slide:
        top = draw_line(line, page, top)
    top = bottom - height_of(footer)
    draw_rule(page, right - MARGIN, top - SECTION_GAP)
    page.write(footer, top)
    return pen
