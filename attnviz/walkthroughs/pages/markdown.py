"""A walkthrough as Markdown, with tables for GitHub, and its numbers as CSV."""

from __future__ import annotations

import csv as tables
import re
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO

from attnviz.text.display import inert
from attnviz.walkthroughs.pages.content import PageCell, PageTable, Section, diagram, lay_out
from attnviz.walkthroughs.view import View

COLUMNS = ("step", "name", "grid", "row", "row_name", "column", "column_name", "value")
# Characters with a meaning in Markdown, its tables, or HTML inside it.
_MARKS = re.compile(r"[\\`*_{}\[\]<>|#&~$!@]")
# Beginnings of a line that would make it a list or a heading.
_BEGINNING = re.compile(r"^(\d+(?=[.)])|(?=[-+=]))")


def markdown(view: View) -> str:
    """Return the walkthrough as Markdown, with tables for GitHub."""
    first, second = view.heading
    blocks = [_paragraph(view.cut), f"# {escape(first)}", _paragraph(second), _paragraph(view.task)]
    whole = diagram(view)
    if whole is not None and whole.tables[0].headings:
        blocks += [f"## {escape(whole.title)}", _paragraph(whole.formula)]
        blocks.append(_table(_join_vectors(whole.tables[0])))
    for section in lay_out(view):
        blocks += _section(section)
    blocks += map(_paragraph, (view.signs, *view.notes, view.receipt))
    return "\n\n".join(filter(None, blocks)) + "\n"


def _join_vectors(table: PageTable) -> PageTable:
    """Return the table of all keys with each vector in one cell, since Markdown has no cells over several columns."""
    rows = []
    for label, cells in table.rows:
        texts = [text for cell in cells for text in (cell.text, *[""] * (cell.span - 1))]
        joined, start = [], 0
        for width, _formula in table.headings:
            vector = list(filter(None, texts[start : start + width]))
            joined.append(
                PageCell(f"[{', '.join(vector)}]" if len(vector) > 1 else "".join(vector))
            )
            start += width
        rows.append((label, tuple(joined)))
    columns = [
        f"{column} = {formula}" if formula else column
        for column, (_width, formula) in zip(table.columns, table.headings, strict=True)
    ]
    return replace(table, columns=tuple(columns), rows=tuple(rows))


def escape(text: str) -> str:
    """Return the text escaped, so that Markdown shows it unchanged."""
    return _MARKS.sub(r"\\\g<0>", " ".join(text.split()))


def _section(section: Section) -> Iterator[str]:
    yield f"## {escape(section.title)}"
    yield _paragraph(" · ".join(filter(None, (section.formula, section.shapes))))
    yield _paragraph(section.sentence)
    yield _table(section.table)
    yield _paragraph(section.remark)
    yield _paragraph(section.hand)


def _table(table: PageTable) -> str:
    lines = [
        [escape(table.corner), *map(escape, table.columns)],
        ["---", *["---:" for _column in table.columns]],
    ]
    for label, cells in table.rows:
        texts = [cell.text for cell in cells] or [""] * len(table.columns)
        lines.append([escape(label), *map(escape, texts)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _paragraph(text: str) -> str:
    return _BEGINNING.sub(r"\1\\", escape(text))


def csv(view: View) -> str:
    """Return the numbers as CSV, one line per number, in full precision; rows and columns count from 0.

    Given numbers have no step; blanks have an empty value. The precision of the view is ignored.
    """
    walk, text = view.walk, StringIO()
    writer = tables.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    grids: list[tuple[object, str, str]] = []
    for step in view.step_views():
        grids += [("", "", name) for name in step.inputs]
        grids.append((step.number, step.step.name, step.step.result))
    listed_names = {name for _number, _step, name in grids}
    grids += [("", "", name) for name in walk.inputs() if name not in listed_names]
    for number, step_name, name in grids:
        grid = walk.grids[name]
        for row, values in enumerate(grid.values.tolist()):
            row_name = inert(grid.rows[row]) if grid.rows else ""
            for column, value in enumerate(values):
                column_name = inert(grid.columns[column]) if grid.columns else ""
                cell = "" if (name, row, column) in view.blanks else value
                writer.writerow([number, step_name, name, row, row_name, column, column_name, cell])
    return text.getvalue()
