"""A walkthrough on one sheet, left to right, as on a blackboard: PNG, SVG or PDF.

As in the other figures nothing touches pyplot, and Matplotlib's settings are what they were afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnviz.text.steps import explained
from attnviz.views.figure import usual_settings
from attnviz.views.fonts import Typefaces, typefaces_for
from attnviz.views.palette import DEFAULT
from attnviz.views.pen import DPI, PIXELS
from attnviz.views.walk_layout import STEP_LINES, all_texts, layout
from attnviz.views.walk_plan import plan
from attnviz.views.walk_words import NO_BLANKS, Blanks, chosen, receipt_line, title_line
from attnviz.walk import Walkthrough

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figure(
    walk: Walkthrough,
    *,
    palette: str = DEFAULT,
    language: str = "en",
    precision: int = 3,
    steps: Sequence[str] | None = None,
    blanks: Blanks = NO_BLANKS,
) -> Figure:
    """The whole calculation as a figure.

    Args:
        walk: what to draw.
        palette: one of `attnviz.views.palette.PALETTES`.
        language: one of `attnviz.text.steps.LANGUAGES`.
        precision: digits after the point of each number.
        steps: the names of the steps to draw; None draws all.
        blanks: cells that a learner fills in: grid, row, column.

    Raises:
        SelectionError: a step, language or palette that is not there.
    """
    sheet = layout(walk, language, precision, steps, blanks)
    with usual_settings():
        sheet.draw(range(1, len(walk.steps) + 1), palette)
    return sheet.pen.figure


def stages(
    walk: Walkthrough,
    *,
    palette: str = DEFAULT,
    language: str = "en",
    precision: int = 3,
    steps: Sequence[str] | None = None,
    blanks: Blanks = NO_BLANKS,
) -> Iterator[tuple[Figure, tuple[float, float]]]:
    """The sheet as far as each step, with the words of that step: one figure, with more on it each time.

    The arguments are those of `figure`.

    Yields:
        The figure, and where the words of the step begin and end: inches from the top. All else that was drawn stays.

    Raises:
        SelectionError: a step, language or palette that is not there.
    """
    sheet = layout(walk, language, precision, steps, blanks, words=STEP_LINES)
    done = 0
    for number, step in chosen(walk, steps):
        with usual_settings():
            sheet.draw(range(done + 1, number + 1), palette)
            said = sheet.say(number, explained(step.name, language))
        yield sheet.pen.figure, sheet.words
        for text in said:
            text.remove()
        done = number


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
    about, receipt = {"Title": title_line(walk, language)}, receipt_line(walk, language)
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
    return typefaces_for(texts_of(walk, language, steps, blanks))


def texts_of(walk: Walkthrough, language: str, steps: Sequence[str] | None, blanks: Blanks) -> list[str]:
    """All that the sheet says."""
    return all_texts(walk, plan(walk, language=language, steps=steps, blanks=blanks), language)
