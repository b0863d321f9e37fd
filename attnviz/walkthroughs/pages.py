"""A walkthrough as text for other programs to show: Markdown, LaTeX, HTML, CSV."""

from __future__ import annotations

import csv as tables
from io import StringIO
from typing import Unpack

from attnviz.walkthroughs.record import Walkthrough
from attnviz.walkthroughs.wording import explain
from attnviz.walkthroughs.words import NO_BLANKS, Blanks, Telling, chosen

COLUMNS = ("step", "name", "grid", "row", "row_name", "column", "column_name", "value")


def markdown(walk: Walkthrough, **told: Unpack[Telling]) -> str:
    """The walkthrough as Markdown, with tables as GitHub draws them; the rest is as in `Telling`.

    Raises:
        SelectionError: a step or a language that is not there.
    """
    from attnviz.walkthroughs.markdown import page
    from attnviz.walkthroughs.page import laid_out

    return page(laid_out(walk, **told))


def latex(walk: Walkthrough, **told: Unpack[Telling]) -> str:
    """The walkthrough as a LaTeX document that compiles as it is; the rest is as in `Telling`.

    Raises:
        SelectionError: a step or a language that is not there.
    """
    from attnviz.walkthroughs.latex import page
    from attnviz.walkthroughs.page import laid_out

    return page(laid_out(walk, **told))


def html(walk: Walkthrough, **told: Unpack[Telling]) -> str:
    """The walkthrough as one web page that fetches nothing; the rest is as in `Telling`.

    Raises:
        SelectionError: a step or a language that is not there.
    """
    from attnviz.walkthroughs.html import page
    from attnviz.walkthroughs.page import laid_out

    return page(laid_out(walk, **told))


def csv(walk: Walkthrough, **told: Unpack[Telling]) -> str:
    """The numbers as a table with one line for each, in full precision; rows and columns count from 0.

    A number that was given has no step; the value of a blank is empty. Names are the grids' own and every digit is
    written, so that a language and a precision change nothing.

    Args:
        walk: whose numbers.
        told: as in `Telling`.

    Raises:
        SelectionError: a step or a language that is not there.
    """
    steps, blanks = told.get("steps"), told.get("blanks", NO_BLANKS)
    explain("scores", told.get("language", "en"))
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
