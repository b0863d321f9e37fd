"""A walkthrough as one web page of formulas and tables; its script shows how each number was computed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from attnviz.look import Look
from attnviz.pages import WebPage
from attnviz.render.html import BASE, build
from attnviz.text.messages import LANGUAGES, _, both
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
    """Return the walkthrough as one self-contained web page in English and Korean, opened in the view's language."""
    theme = look.theme
    walk, views = view.walk, [replace(view, lang=language) for language in LANGUAGES]
    diagrams = [one for one in map(diagram, views) if one is not None]
    sections = [
        section
        for section in zip(*map(lay_out, views), strict=True)
        if section[0].kind != "keys" or not diagrams  # the diagram has the same numbers
    ]
    top = list(_diagram(diagrams)) if diagrams else []
    notes = zip(*((v.small_weights, v.signs, *v.notes) for v in views), strict=True)
    remarks = [texts for texts in notes if any(texts)]
    foot = [f'<p class="faint">{_bilingual(texts)}</p>' for texts in remarks]
    labels = {
        "lang": view.lang,
        "grids": list(walk.grids),
        "cut": [v.cut for v in views],
        "title": [v.heading[0] for v in views],
        "source": [v.heading[1] for v in views],
        "task": [v.task for v in views],
        "proof": [v.receipt for v in views],
    }
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
    tables = [matrix.table for one in diagrams[:1] for matrix in one.matrices]
    origins = _origins(view, [*tables, *(section[0].table for section in sections)])
    steps = _steps(views, sections)
    return WebPage(
        build(
            title,
            head,
            labels=labels,
            data=json.dumps(origins, ensure_ascii=False, separators=(",", ":")).encode(),
            own=OWN,
            language=view.lang,
            theme=theme,
            shared=BASE,
            body="\n".join(
                [*top, '<div class="steps">', *steps, "</div>\n<footer>", *foot, "</footer>"]
            ),
            rules=" ".join(shares),
        )
    )


def _diagram(diagrams: Sequence[Diagram]) -> Iterator[str]:
    """Yield the HTML of the diagram; `diagrams` has it in each language."""
    title = "diagram-title"
    heading = _bilingual([one.title for one in diagrams])
    formula = _symbols("formula", [one.formula for one in diagrams])
    yield f'<section id="diagram">\n<h2 id="{title}">{heading} {formula}</h2>\n<div class="flow">'
    for matrices in zip(*(one.matrices for one in diagrams), strict=True):
        if matrices[0].headings:
            yield from _key_table(matrices, title)
            continue
        # The sign stays with its matrix where lines break.
        yield f'<div class="matrix"><span aria-hidden="true">{matrices[0].sign}</span>'
        yield from _table([matrix.table for matrix in matrices], title)
        yield "</div>"
    yield "</div>\n</section>"


def _key_table(matrices: Sequence[DiagramPart], title: str) -> Iterator[str]:
    """Yield the HTML of the table with one row per key, in which each heading spans the columns of a matrix."""
    first = matrices[0]
    heads = [f'<th scope="col">{_bilingual([matrix.table.corner for matrix in matrices])}</th>']
    for place, (width, formula) in enumerate(first.headings):
        text = _bilingual([matrix.table.columns[place] for matrix in matrices])
        if formula:
            text += (
                f"<small>{_bilingual([matrix.headings[place][1] for matrix in matrices])}</small>"
            )
        heads.append(f'<th scope="colgroup" colspan="{width}">{text}</th>')
    starts, column = set(), 0
    for width, _formula in first.headings:
        starts.add(column)
        column += width
    yield f'<div class="table keys" role="group" tabindex="0" aria-labelledby="{title}">'
    yield f'<table aria-labelledby="{title}">\n<thead><tr>{"".join(heads)}</tr></thead>\n<tbody>'
    for number, rows in enumerate(zip(*(matrix.table.rows for matrix in matrices), strict=True)):
        column, cells = 0, []
        for versions in zip(*(cells for _label, cells in rows), strict=True):
            cells.append(_cell(versions, is_first=column in starts))
            column += versions[0].span
        label = _bilingual([label for label, _cells in rows])
        row = ' class="most"' if number == first.largest else ""
        span = "" if cells else f' colspan="{sum(width for width, _ in first.headings) + 1}"'
        yield f'<tr{row}><th scope="row"{span}>{label}</th>{"".join(cells)}</tr>'
    yield "</tbody>\n</table>\n</div>"


def _steps(views: Sequence[View], sections: Sequence[tuple[Section, ...]]) -> Iterator[str]:
    """Yield the HTML of all sections; those before attention are folded."""
    numbers = {id(section): number for number, section in enumerate(sections)}
    for kind, group in groupby(sections, key=lambda section: section[0].kind):
        parts = list(group)
        if kind == "before":
            first, last = parts[0][0].number, parts[-1][0].number
            steps = f"{first}–{last}" if last > first else str(first)
            words = [view.say(_("Input and projections")) for view in views]
            yield f'<details>\n<summary><span class="steps-of">{steps}</span> {_bilingual(words)}</summary>'
        for section in parts:
            yield from _section(section, f"part-{numbers[id(section)]}")
        if kind == "before":
            yield "</details>"


def _section(sections: Sequence[Section], name: str) -> Iterator[str]:
    """Yield the HTML of a section; `sections` has it in each language."""

    def texts(field: str) -> list[str]:
        return [getattr(section, field) for section in sections]

    title, first = f"{name}-title", sections[0]
    yield f'<section id="{name}">\n<h2 id="{title}">{_bilingual(texts("title"))}</h2>'
    if first.shapes:
        formulas = [_symbols(kind, texts(kind)) for kind in ("formula", "shapes")]
        yield f"<p>{' '.join(filter(None, formulas))}</p>"
    yield from _paragraph("sentence", texts("sentence"))
    yield from _table([section.table for section in sections], title)
    yield from _paragraph("remark", texts("remark"))
    yield from _paragraph("hand", texts("hand"))
    yield "</section>"


def _bilingual(texts: Sequence[str], *, is_html: bool = False) -> str:
    """Return a text in all languages, of which the page shows one; only once if all are equal."""
    contents = texts if is_html else [escape(text) for text in texts]
    if len(set(contents)) == 1:
        return contents[0]
    return "".join(
        f'<span lang="{language}">{text}</span>'
        for language, text in zip(LANGUAGES, contents, strict=True)
    )


def _paragraph(name: str, texts: Sequence[str]) -> Iterator[str]:
    if texts[0]:
        yield f'<p class="{name}">{_bilingual(texts)}</p>'


def _symbols(name: str, formulas: Sequence[str]) -> str:
    if not formulas[0]:
        return ""
    content = _bilingual([mathml(formula) for formula in formulas], is_html=True)
    return f'<span class="{name}">{content}</span>'


def _table(tables: Sequence[PageTable], title: str) -> Iterator[str]:
    """Yield the HTML of a table; `tables` has it in each language, `title` is the id of its heading."""
    names = zip(*((table.corner, *table.columns) for table in tables), strict=True)
    heads = "".join(f'<th scope="col">{_bilingual(texts)}</th>' for texts in names)
    # tabindex lets keyboard users scroll the table, and aria-labelledby lets screen readers say its title.
    yield f'<div class="table" role="group" tabindex="0" aria-labelledby="{title}">'
    # Wide tables are printed in a smaller font.
    style = ' class="many"' if len(tables[0].columns) > WIDE else ""
    yield f'<table{style} aria-labelledby="{title}">\n<thead><tr>{heads}</tr></thead>\n<tbody>'
    for rows in zip(*(table.rows for table in tables), strict=True):
        label, cells = _bilingual([label for label, _cells in rows]), rows[0][1]
        # A row without cells is a line about rows left out, across the whole table.
        span = "" if cells else f' colspan="{len(tables[0].columns) + 1}"'
        columns = zip(*(cells for _label, cells in rows), strict=True)
        yield f'<tr><th scope="row"{span}>{label}</th>{"".join(map(_cell, columns))}</tr>'
    yield "</tbody>\n</table>\n</div>"


def _cell(versions: Sequence[PageCell], *, is_first: bool = False) -> str:
    """Return the HTML of a cell, which `versions` has in each language; `is_first` of a matrix in a row."""
    cell, level = versions[0], round(versions[0].share * LEVELS)
    classes = ["g"] if is_first else []
    classes += [cell.hue, f"s{level}"] if level else []
    style = f' class="{" ".join(classes)}"' if classes else ""
    span = f' colspan="{cell.span}"' if cell.span > 1 else ""
    return f"<td{style}{span}>{_bilingual([version.text for version in versions])}</td>"


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
            arithmetic = list(both(_("given")))
        elif with_blanks & {name, *step.operands}:
            arithmetic = list(both(_("This step has blanks for you to fill in")))
        else:
            arithmetic = [
                spell_out(walk, step, row, column, view.full_digits, language=language)
                for language in LANGUAGES
            ]
            parts = _parts(walk, step, row, column, grids)
        names = [cell_name(name, walk.grids[name], row, column, lang) for lang in LANGUAGES]
        numbers.append([grids[name], row, column, _once(names), _once(arithmetic), parts])
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
            names = [_part_name(walk, name, part, language) for language in LANGUAGES]
            parts.append([grids[name], *shares, _once(names)])
    return parts


def _part_name(walk: Walkthrough, name: str, part: Part, language: str) -> str:
    """Return the name of a part, such as "K, love" or "Wq, column 3"."""
    grid, names = walk.grids[name], [name]
    sides = zip(("row", "column"), (grid.rows, grid.columns), part, grid.values.shape, strict=True)
    for axis, labels, numbers, size in sides:
        if numbers is not None and len(numbers) < size:
            names += [line_name(axis, labels, number, language) for number in numbers]
    return ", ".join(names)


def _once(texts: list[str]) -> str | list[str]:
    """Return the only text, or the list of both if English and Korean differ."""
    return texts[0] if len(set(texts)) == 1 else texts
