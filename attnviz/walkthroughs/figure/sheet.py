"""A walkthrough on one sheet, left to right, as on a blackboard: PNG, SVG or PDF.

As in the other figures nothing touches pyplot, and Matplotlib's settings are what they were afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from attnviz.render.figure.export import save, usual_settings
from attnviz.render.fonts import Typefaces, typefaces_for
from attnviz.render.palette import DEFAULT
from attnviz.walkthroughs.figure.layout import STEP_LINES, all_texts, layout
from attnviz.walkthroughs.figure.plan import plan
from attnviz.walkthroughs.record import Walkthrough
from attnviz.walkthroughs.wording import explain, receipt_line, title_line
from attnviz.walkthroughs.words import NO_BLANKS, Blanks, Telling, chosen

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figure(walk: Walkthrough, *, palette: str = DEFAULT, **told: Unpack[Telling]) -> Figure:
    """The whole calculation as a figure.

    Args:
        walk: what to draw.
        palette: one of `attnviz.render.palette.PALETTES`.
        told: as in `attnviz.walkthroughs.words.Telling`.

    Raises:
        SelectionError: a step, language or palette that is not there.
    """
    sheet = layout(walk, **told)
    with usual_settings():
        sheet.draw(range(1, len(walk.steps) + 1), palette)
    return sheet.pen.figure


def stages(
    walk: Walkthrough, *, palette: str = DEFAULT, **told: Unpack[Telling]
) -> Iterator[tuple[Figure, tuple[float, float]]]:
    """The sheet as far as each step, with the words of that step: one figure, with more on it each time.

    The arguments are those of `figure`.

    Yields:
        The figure, and where the words of the step begin and end: inches from the top. All else that was drawn stays.

    Raises:
        SelectionError: a step, language or palette that is not there.
    """
    sheet = layout(walk, words=STEP_LINES, **told)
    done = 0
    for number, step in chosen(walk, told.get("steps")):
        with usual_settings():
            sheet.draw(range(done + 1, number + 1), palette)
            said = sheet.say(number, explain(step.name, told.get("language", "en")))
        yield sheet.pen.figure, sheet.words
        for text in said:
            text.remove()
        done = number


def write(
    walk: Walkthrough, path: Path | BytesIO, suffix: str, *, palette: str = DEFAULT, **told: Unpack[Telling]
) -> Typefaces:
    """Draw the whole calculation into a file; the other arguments are those of `figure`.

    Args:
        walk: what to draw.
        path: the file, or what it is written into.
        suffix: `.png`, `.svg` or `.pdf`.
        palette: as in `figure`.
        told: likewise.

    Returns:
        The fonts used, with the characters that none has.

    Raises:
        SelectionError: a step, language or palette that is not there.
    """
    language = told.get("language", "en")
    made = figure(walk, palette=palette, **told)
    save(made, path, suffix, title=title_line(walk, language), description=receipt_line(walk, language))
    return typefaces_for(texts_of(walk, language, told.get("steps"), told.get("blanks", NO_BLANKS)))


def texts_of(walk: Walkthrough, language: str, steps: Sequence[str] | None, blanks: Blanks) -> list[str]:
    """All that the sheet says."""
    return all_texts(walk, plan(walk, language=language, steps=steps, blanks=blanks), language)
