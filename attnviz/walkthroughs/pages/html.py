"""A walkthrough as one web page of formulas and tables; its script shows how each number was computed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from attnviz.look import Look
from attnviz.pages import WebPage
from attnviz.render.html import BASE, build
from attnviz.text.messages import _
from attnviz.walkthroughs.calculation import spell_out
from attnviz.walkthroughs.operations import OPERATIONS, Part, ResultCell
from attnviz.walkthroughs.pages.content import PageCell, PageTable, Section, lay_out
from attnviz.walkthroughs.pages.diagram import Diagram, DiagramPart, diagram
from attnviz.walkthroughs.pages.mathematics import mathml
from attnviz.walkthroughs.record import CalculationStep, Walkthrough
from attnviz.walkthroughs.view import View, cell_name, line_name

SCRIPTS = Path(__file__).parent.parent / "scripts"
OWN = tuple(SCRIPTS / name for name in ("origins.js", "walkthrough.js", "walkthrough.css"))
LEVELS = 50  # shades per hue
WIDE = 10  # most columns that fit on paper in normal size
DEPTH = 0.5  # the strongest shade, on which text is readable in light and dark mode


def page(view: View, look: Look) -> WebPage:
    """Return the walkthrough as one self-contained web page."""
    walk, drawn = view.walk, diagram(view)
    # The diagram has the same numbers as the tables by key.
    sections = [section for section in lay_out(view) if section.kind != "keys" or drawn is None]
    top = [] if drawn is None else list(_diagram(drawn))
    remarks = filter(None, (view.small_weights, view.signs, *view.notes))
    foot = [f'<p class="faint">{escape(text)}</p>' for text in remarks]
    title, source = view.heading
    head = [
        (name, text)
        for name, text in (
            ("cut", view.cut),
            ("source", source),
            ("task", view.task),
            ("proof proved" if walk.receipt else "proof", view.receipt),
        )
        if text
    ]
    shares = [f".s{n} {{ --share: {n / LEVELS * DEPTH:g}; }}" for n in range(1, LEVELS + 1)]
    tables = [] if drawn is None else [matrix.table for matrix in drawn.matrices]
    origins = _origins(view, [*tables, *(section.table for section in sections)])
    steps = _steps(sections)
    return WebPage(
        build(
            title,
            head,
            labels={"grids": list(walk.grids)},
            data=json.dumps(origins, ensure_ascii=False, separators=(",", ":")).encode(),
            own=OWN,
            theme=look.theme,
            shared=BASE,
            body="\n".join(
                [*top, '<div class="steps">', *steps, "</div>\n<footer>", *foot, "</footer>"]
            ),
            rules=" ".join(shares),
        )
    )


def _diagram(drawn: Diagram) -> Iterator[str]:
    """Yield the HTML of the diagram."""
    title = "diagram-title"
    formula = _symbols("formula", drawn.formula)
    yield f'<section id="diagram">\n<h2 id="{title}">{escape(drawn.title)} {formula}</h2>\n<div class="flow">'
    for matrix in drawn.matrices:
        if matrix.headings:
            yield from _key_table(matrix, title)
            continue
        # The sign stays with its matrix where lines break.
        yield f'<div class="matrix"><span aria-hidden="true">{matrix.sign}</span>'
        yield from _table(matrix.table, title)
        yield "</div>"
    yield "</div>\n</section>"


def _key_table(matrix: DiagramPart, title: str) -> Iterator[str]:
    """Yield the HTML of the table with one row per key, in which each heading spans the columns of a matrix."""
    heads = [f'<th scope="col">{escape(matrix.table.corner)}</th>']
    for name, (width, formula) in zip(matrix.table.columns, matrix.headings, strict=True):
        text = escape(name) + (f"<small>{escape(formula)}</small>" if formula else "")
        heads.append(f'<th scope="colgroup" colspan="{width}">{text}</th>')
    starts, n_columns = set(), 0
    for width, _formula in matrix.headings:
        starts.add(n_columns)
        n_columns += width
    yield f'<div class="table keys" role="group" tabindex="0" aria-labelledby="{title}">'
    yield f'<table aria-labelledby="{title}">\n<thead><tr>{"".join(heads)}</tr></thead>\n<tbody>'
    for number, (label, row) in enumerate(matrix.table.rows):
        column, cells = 0, []
        for cell in row:
            cells.append(_cell(cell, is_first=column in starts))
            column += cell.span
        mark = ' class="most"' if number == matrix.largest else ""
        span = "" if cells else f' colspan="{n_columns + 1}"'
        yield f'<tr{mark}><th scope="row"{span}>{escape(label)}</th>{"".join(cells)}</tr>'
    yield "</tbody>\n</table>\n</div>"


def _steps(sections: Sequence[Section]) -> Iterator[str]:
    """Yield the HTML of all sections; those before attention are folded."""
    numbers = {id(section): number for number, section in enumerate(sections)}
    for kind, group in groupby(sections, key=lambda section: section.kind):
        parts = list(group)
        if kind == "before":
            first, last = parts[0].number, parts[-1].number
            steps = f"{first}–{last}" if last > first else str(first)
            words = escape(_("Input and projections"))
            yield f'<details>\n<summary><span class="steps-of">{steps}</span> {words}</summary>'
        for section in parts:
            yield from _section(section, f"part-{numbers[id(section)]}")
        if kind == "before":
            yield "</details>"


def _section(section: Section, name: str) -> Iterator[str]:
    """Yield the HTML of a section."""
    title = f"{name}-title"
    yield f'<section id="{name}">\n<h2 id="{title}">{escape(section.title)}</h2>'
    if section.shapes:
        formulas = [_symbols("formula", section.formula), _symbols("shapes", section.shapes)]
        yield f"<p>{' '.join(filter(None, formulas))}</p>"
    yield from _paragraph("sentence", section.sentence)
    yield from _table(section.table, title)
    yield from _paragraph("remark", section.remark)
    yield from _paragraph("hand", section.hand)
    yield "</section>"


def _paragraph(name: str, text: str) -> Iterator[str]:
    if text:
        yield f'<p class="{name}">{escape(text)}</p>'


def _symbols(name: str, formula: str) -> str:
    return f'<span class="{name}">{mathml(formula)}</span>' if formula else ""


def _table(table: PageTable, title: str) -> Iterator[str]:
    """Yield the HTML of a table; `title` is the id of its heading."""
    heads = "".join(
        f'<th scope="col">{escape(text)}</th>' for text in (table.corner, *table.columns)
    )
    # tabindex lets keyboard users scroll the table, and aria-labelledby lets screen readers say its title.
    yield f'<div class="table" role="group" tabindex="0" aria-labelledby="{title}">'
    # Wide tables are printed in a smaller font.
    style = ' class="many"' if len(table.columns) > WIDE else ""
    yield f'<table{style} aria-labelledby="{title}">\n<thead><tr>{heads}</tr></thead>\n<tbody>'
    for label, cells in table.rows:
        # A row without cells is a line about rows left out, across the whole table.
        span = "" if cells else f' colspan="{len(table.columns) + 1}"'
        yield f'<tr><th scope="row"{span}>{escape(label)}</th>{"".join(map(_cell, cells))}</tr>'
    yield "</tbody>\n</table>\n</div>"


def _cell(cell: PageCell, *, is_first: bool = False) -> str:
    """Return the HTML of a cell; `is_first` of a matrix in a row."""
    level = round(cell.share * LEVELS)
    classes = ["g"] if is_first else []
    classes += [cell.hue, f"s{level}"] if level else []
    style = f' class="{" ".join(classes)}"' if classes else ""
    span = f' colspan="{cell.span}"' if cell.span > 1 else ""
    return f"<td{style}{span}>{escape(cell.text)}</td>"


def _origins(view: View, tables: Sequence[PageTable]) -> dict[str, Any]:
    """Return how each number of the page was computed, for its script; steps with a blank have no arithmetic.

    Returns:
        ``numbers``: six lists with one entry per number: grids (their index in the calculation), rows, columns, names,
        arithmetic and parts. A part is a grid, its rows and columns (0 for all) and its name. Lists of equal kinds
        compress better than a list of numbers. ``tables``: for each cell of each table, in reading order, the index of
        its number, -1 if it has none.
    """
    walk = view.walk
    places: dict[tuple[str, int, int], int] = {}
    table_indices: list[list[int]] = []
    for table in tables:
        cells = [cell for _label, row in table.rows for cell in row]
        table_indices.append(
            [-1 if cell.at is None else places.setdefault(cell.at, len(places)) for cell in cells]
        )
    steps = {step.result: step for step in walk.steps}
    grids = {name: number for number, name in enumerate(walk.grids)}
    with_blanks = {grid for grid, _row, _column in view.blanks}
    numbers = []
    for name, row, column in places:
        step, parts = steps.get(name), []
        if step is None:
            arithmetic = _("given")
        elif with_blanks & {name, *step.operands}:
            arithmetic = _("This step has blanks for you to fill in")
        else:
            arithmetic = spell_out(walk, step, row, column, view.full_digits)
            parts = _parts(walk, step, row, column, grids)
        title = cell_name(name, walk.grids[name], row, column)
        numbers.append([grids[name], row, column, title, arithmetic, parts])
    return {"numbers": list(zip(*numbers, strict=True)), "tables": table_indices}


def _parts(
    walk: Walkthrough, step: CalculationStep, row: int, column: int, grids: dict[str, int]
) -> list[list[Any]]:
    """Return the parts of the operands from which one number is computed."""
    cell = ResultCell(walk, step, row, column)
    parts = []
    for name, part in zip(step.operands, OPERATIONS[step.operation].parts(cell), strict=True):
        if part is not None:
            sizes = walk.grids[name].values.shape
            shares = [
                0 if numbers is None or len(numbers) == size else list(numbers)
                for numbers, size in zip(part, sizes, strict=True)
            ]
            parts.append([grids[name], *shares, _part_name(walk, name, part)])
    return parts


def _part_name(walk: Walkthrough, name: str, part: Part) -> str:
    """Return the name of a part, such as "K, love" or "Wq, column 3"."""
    grid, names = walk.grids[name], [name]
    sides = zip(("row", "column"), (grid.rows, grid.columns), part, grid.values.shape, strict=True)
    for axis, labels, numbers, size in sides:
        if numbers is not None and len(numbers) < size:
            names += [line_name(axis, labels, number) for number in numbers]
    return ", ".join(names)
