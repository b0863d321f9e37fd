"""A walkthrough as Markdown, with tables and mathematics as GitHub draws them; and its numbers as CSV."""

from __future__ import annotations

import csv as tables
import re
from collections.abc import Callable, Mapping
from io import StringIO
from typing import Any, Unpack

from attnviz.walkthroughs.pages.content import PageTable, lay_out
from attnviz.walkthroughs.pages.mathematics import tex
from attnviz.walkthroughs.record import Walkthrough
from attnviz.walkthroughs.view import View, ViewOptions

COLUMNS = (
    "step",
    "name",
    "grid",
    "row",
    "row_name",
    "column",
    "column_name",
    "value",
)  # of the table of numbers
_MARKS = re.compile(
    r"[\\`*_{}\[\]<>|#&~$!@]"
)  # what Markdown, its tables or HTML inside it would obey
# what makes a list or a heading of a line that begins with it
_BEGINNING = re.compile(r"^(\d+(?=[.)])|(?=[-+=]))")


def markdown(walk: Walkthrough, **options: Unpack[ViewOptions]) -> str:
    """Return the walkthrough as Markdown, with tables as GitHub draws them."""
    view = View(walk=walk, **options)
    blocks = [f"# {escape(view.title)}", *([_paragraph(view.source)] if view.source else [])]
    for section in lay_out(view):
        blocks += [
            f"## {escape(section.title)}",
            *(_BLOCKS[kind](block) for kind, block in section.blocks),
        ]
    return "\n\n".join([*blocks, *map(_paragraph, (view.signs, *view.notes, view.receipt))]) + "\n"


def escape(text: str) -> str:
    """Return the text so that Markdown shows it letter for letter."""
    return _MARKS.sub(r"\\\g<0>", " ".join(text.split()))


def _symbols(formulas: Mapping[str, str]) -> str:
    return " · ".join(f"${tex(text)}$" for text in formulas.values())


def _table(table: PageTable) -> str:
    left_out = [""] * len(table.columns)
    rows = [
        (escape(label), *([escape(cell.text) for cell in cells] or left_out))
        for label, cells in table.rows
    ]
    head = [
        [escape(table.corner), *map(escape, table.columns)],
        ["---", *["---:" for _ in table.columns]],
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (*head, *rows))


def _paragraph(text: str) -> str:
    return _BEGINNING.sub(r"\1\\", escape(text))


_BLOCKS: dict[str, Callable[[Any], str]] = {
    "symbols": _symbols,
    "sentence": _paragraph,
    "table": _table,
    "remark": _paragraph,
    "hand": _paragraph,
}


def csv(walk: Walkthrough, **options: Unpack[ViewOptions]) -> str:
    """Return the numbers as CSV, one line for each, in full precision; rows and columns count from 0.

    A number that was given has no step; the value of a blank is empty; language and precision change nothing.
    """
    view = View(walk=walk, **options)
    text = StringIO()
    writer = tables.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    shown: list[tuple[object, str, str]] = []
    for one in view.step_views():
        shown += [
            *(("", "", name) for name in one.inputs),
            (one.number, one.step.name, one.step.result),
        ]
    shown += [("", "", name) for name in walk.inputs() if ("", "", name) not in shown]
    for number, step, name in shown:
        grid = walk.grids[name]
        for row, values in enumerate(grid.values.tolist()):
            for column, value in enumerate(values):
                names = (
                    grid.rows[row] if grid.rows else "",
                    grid.columns[column] if grid.columns else "",
                )
                cell = "" if (name, row, column) in view.blanks else value
                writer.writerow([number, step, name, row, names[0], column, names[1], cell])
    return text.getvalue()
