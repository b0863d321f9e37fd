"""A walkthrough as text for other programs to show: Markdown, LaTeX, HTML, CSV."""

from __future__ import annotations

import csv as tables
from collections.abc import Sequence
from io import StringIO

from attnviz.text.steps import explained
from attnviz.views.walk_words import NO_BLANKS, Blanks, chosen
from attnviz.walk import Walkthrough

COLUMNS = ("step", "name", "grid", "row", "row_name", "column", "column_name", "value")


def markdown(
    walk: Walkthrough,
    *,
    language: str = "en",
    precision: int = 3,
    steps: Sequence[str] | None = None,
    blanks: Blanks = NO_BLANKS,
) -> str:
    """The walkthrough as Markdown, with tables as GitHub draws them; the arguments are those of `laid_out`.

    Raises:
        SelectionError: a step or a language that is not there.
    """
    from attnviz.views.walk_markdown import page
    from attnviz.views.walk_sheet import laid_out

    return page(laid_out(walk, language=language, precision=precision, steps=steps, blanks=blanks))


def latex(
    walk: Walkthrough,
    *,
    language: str = "en",
    precision: int = 3,
    steps: Sequence[str] | None = None,
    blanks: Blanks = NO_BLANKS,
) -> str:
    """The walkthrough as a LaTeX document that compiles as it is; the arguments are those of `laid_out`.

    Raises:
        SelectionError: a step or a language that is not there.
    """
    from attnviz.views.walk_latex import page
    from attnviz.views.walk_sheet import laid_out

    return page(laid_out(walk, language=language, precision=precision, steps=steps, blanks=blanks))


def html(
    walk: Walkthrough,
    *,
    language: str = "en",
    precision: int = 3,
    steps: Sequence[str] | None = None,
    blanks: Blanks = NO_BLANKS,
) -> str:
    """The walkthrough as one web page that fetches nothing; the arguments are those of `laid_out`.

    Raises:
        SelectionError: a step or a language that is not there.
    """
    from attnviz.views.walk_html import page
    from attnviz.views.walk_sheet import laid_out

    return page(laid_out(walk, language=language, precision=precision, steps=steps, blanks=blanks))


def csv(
    walk: Walkthrough,
    *,
    language: str = "en",
    precision: int = 3,  # noqa: ARG001 - a table for programs holds every digit
    steps: Sequence[str] | None = None,
    blanks: Blanks = NO_BLANKS,
) -> str:
    """The numbers as a table with one line for each, in full precision; rows and columns count from 0.

    A number that was given has no step; the value of a blank is empty.

    Args:
        walk: whose numbers.
        language: of nothing, since the names are the grids' own; it must be there all the same.
        precision: likewise of nothing.
        steps: the names of the steps to write, with what they were given; None writes all.
        blanks: cells that a learner fills in.

    Raises:
        SelectionError: a step or a language that is not there.
    """
    explained("scores", language)
    text = StringIO()
    writer = tables.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    given = dict.fromkeys(walk.given())
    for number, step in chosen(walk, steps):
        for name in step.operands:
            if name in given:
                del given[name]
                writer.writerows(_cells(walk, name, "", "", blanks))
        writer.writerows(_cells(walk, step.result, str(number), step.name, blanks))
    if steps is None:
        for name in given:
            writer.writerows(_cells(walk, name, "", "", blanks))
    return text.getvalue()


def _cells(walk: Walkthrough, name: str, number: str, step: str, blanks: Blanks) -> list[tuple[str, ...]]:
    grid = walk.grids[name]
    return [
        (
            number, step, name,
            str(row), grid.rows[row] if grid.rows else "",
            str(column), grid.columns[column] if grid.columns else "",
            "" if (name, row, column) in blanks else repr(value),
        )
        for row, values in enumerate(grid.values.tolist())
        for column, value in enumerate(values)
    ]  # fmt: skip
