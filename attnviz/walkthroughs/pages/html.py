"""A walkthrough as one web page: formulas and tables to read; with its script each number says where it comes from."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any, Unpack
from unicodedata import east_asian_width

from attnviz.pages import WebPage
from attnviz.render.html import BASE, build
from attnviz.text.messages import LANGUAGES
from attnviz.walkthroughs.calculation import spell_out
from attnviz.walkthroughs.operations import OPERATIONS, Part, ResultCell
from attnviz.walkthroughs.pages.content import (
    BLUE,
    DEPTH,
    RED,
    TEAL,
    PageCell,
    PageTable,
    Section,
    lay_out,
)
from attnviz.walkthroughs.pages.mathematics import mathml
from attnviz.walkthroughs.record import CalculationStep, Walkthrough
from attnviz.walkthroughs.view import View, ViewOptions, cell_name
from attnviz.walkthroughs.wording import say

SCRIPTS = Path(__file__).parent.parent / "scripts"
OWN = tuple(SCRIPTS / name for name in ("origins.js", "walkthrough.js", "walkthrough.css"))
LEVELS = 50  # depths of a hue
NARROW = 16  # widths of a letter that every window has
HUES = {TEAL: "t", RED: "r", BLUE: "b"}  # what cells of a hue are called


def page(walk: Walkthrough, **options: Unpack[ViewOptions]) -> WebPage:
    """The walkthrough as one web page that fetches nothing, in one language at first; English and Korean are in it."""
    view = View(walk=walk, **options)
    each = [replace(view, lang=one) for one in LANGUAGES]
    sections = list(zip(*map(lay_out, each), strict=True))
    steps = [
        line
        for number, section in enumerate(sections)
        for line in _section(section, f"part-{number}")
    ]
    remarks = zip(*((one.signs, *one.notes) for one in each), strict=True)
    foot = [f'<p class="faint">{_bilingual(texts)}</p>' for texts in remarks]
    body = "\n".join(['<div class="steps">', *steps, "</div>\n<footer>", *foot, "</footer>"])
    labels = {
        "lang": view.lang,
        "grids": list(walk.grids),
        "title": [one.title for one in each],
        "source": [one.source for one in each],
        "proof": [one.receipt for one in each],
    }
    source = [("source", view.source)] if view.source else []
    found = _origins(view, [section[0].table for section in sections])
    return WebPage(
        build(
            view.title,
            [*source, ("proof proved" if walk.receipt else "proof", view.receipt)],
            labels=labels,
            data=json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode(),
            own=OWN,
            language=view.lang,
            shared=BASE,
            body=body,
            rules="\n".join(_rules(body)),
        )
    )


def _rules(body: str) -> Iterator[str]:
    """Yield the colours of cells, and the widths that make formulas and tables fit."""
    yield from (f".{name} {{ --hue: {' '.join(map(str, hue))}; }}" for hue, name in HUES.items())
    yield " ".join(
        f".s{level} {{ --share: {level / LEVELS * DEPTH:g}; }}" for level in range(1, LEVELS + 1)
    )
    yield " ".join(
        f".e{ems} {{ --ems: {ems}; }}"
        for ems in sorted(set(re.findall(r'class="[^"]*\be(\d+)"', body)))
    )


def _section(each: Sequence[Section], name: str) -> Iterator[str]:
    heading = f"{name}-title"
    yield f'<section id="{name}">\n<h2 id="{heading}">{_bilingual([section.title for section in each])}</h2>'
    for (kind, block), *others in zip(*(section.blocks for section in each), strict=True):
        texts = [block, *(other for _, other in others)]
        if kind == "symbols":
            yield f"<p>{' '.join(_symbols(kind, [one[kind] for one in texts]) for kind in block)}</p>"
        elif kind == "table":
            yield from _table(texts, heading)
        else:
            yield f'<p class="{kind}">{_bilingual(texts)}</p>'
    yield "</section>"


def _bilingual(texts: Sequence[str], *, as_it_is: bool = False) -> str:
    """Return a text in all languages, of which one is seen; once where all are the same."""
    written = texts if as_it_is else [escape(text) for text in texts]
    if len(set(written)) == 1:
        return written[0]
    return "".join(
        f'<span lang="{one}">{text}</span>' for one, text in zip(LANGUAGES, written, strict=True)
    )


def _symbols(kind: str, formulas: Sequence[str]) -> str:
    # its letters are narrow
    ems = round(max(_width(piece) for one in formulas for piece in one.split("; ")) / 2)
    written = _bilingual([mathml(one) for one in formulas], as_it_is=True)
    return f'<span class="{kind}{f" e{ems}" * (ems > NARROW)}">{written}</span>'


def _table(each: Sequence[PageTable], title: str) -> Iterator[str]:
    names = [(table.corner, *table.columns) for table in each]
    heads = "".join(
        f'<th scope="col">{_bilingual(texts)}</th>' for texts in zip(*names, strict=True)
    )
    # Who has no mouse must reach a table to scroll it, and who does not see it must hear which one it is.
    yield f'<div class="table" role="group" tabindex="0" aria-labelledby="{title}">'
    yield f'<table class="e{_ems(each[0])}" aria-labelledby="{title}">\n<thead><tr>{heads}</tr></thead>\n<tbody>'
    for rows in zip(*(table.rows for table in each), strict=True):
        label, cells = _bilingual([label for label, _ in rows]), rows[0][1]
        span = "" if cells else f' colspan="{len(names[0])}"'  # of rows left out
        yield f'<tr><th scope="row"{span}>{label}</th>{"".join(map(_cell, cells))}</tr>'
    yield "</tbody>\n</table>\n</div>"


def _ems(table: PageTable) -> int:
    """Return the largest width of a table, in sizes of its letters."""
    columns = [
        [table.columns[i], *(cells[i].text for _, cells in table.rows if cells)]
        for i in range(len(table.columns))
    ]
    names = [table.corner, *(label for label, _ in table.rows)]
    widths = (max(map(_width, texts)) for texts in columns)
    return math.ceil(
        0.7 * max(map(_width, names)) + sum(0.62 * width + 0.9 for width in widths) + 0.9
    )


def _width(text: str) -> int:
    """Return the width of a text; Korean letters count twice."""
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def _cell(cell: PageCell) -> str:
    level = round(cell.share * LEVELS)
    name = f' class="{HUES[cell.hue]} s{level}"' if level else ""
    return f"<td{name}>{escape(cell.text)}</td>"


def _origins(view: View, tables: Sequence[PageTable]) -> dict[str, Any]:
    """Return the data that the page's script reads; steps with a blank have no arithmetic.

    Returns:
        ``numbers``: six lists as long as there are numbers, since alike things pack best beside one another: grids (by
        their place in the calculation), rows, columns, names, arithmetic and parts; a part is a grid, its rows and
        columns (0 for all) and its name. ``tables``: of each cell of each table in reading order which of these numbers
        it is, -1 where it is none.
    """
    walk = view.walk
    steps = {step.result: step for step in walk.steps}
    places: dict[tuple[str, int, int], int] = {}
    found = [
        [
            -1 if cell.at is None else places.setdefault(cell.at, len(places))
            for _, row in table.rows
            for cell in row
        ]
        for table in tables
    ]
    grids = {name: number for number, name in enumerate(walk.grids)}
    hidden = {grid for grid, _, _ in view.blanks}
    numbers = []
    for name, row, column in places:
        step = steps.get(name)
        if step is not None and not hidden & {name, *step.operands}:
            text = [
                spell_out(walk, step, row, column, view.digits, language=one) for one in LANGUAGES
            ]
            parts = _parts(walk, step, row, column, grids)
        else:
            text, parts = (
                [say("given" if step is None else "to fill in", one) for one in LANGUAGES],
                [],
            )
        called = [cell_name(name, walk.grids[name], row, column, one) for one in LANGUAGES]
        numbers.append([grids[name], row, column, _once(called), _once(text), parts])
    return {"numbers": list(zip(*numbers, strict=True)), "tables": found}


def _parts(
    walk: Walkthrough, step: CalculationStep, row: int, column: int, grids: dict[str, int]
) -> list[list[Any]]:
    """Return the parts of each operand that one number is made of, without operands that have no share."""
    found = OPERATIONS[step.operation].parts(ResultCell(walk, step, row, column))
    parts = []
    for name, part in zip(step.operands, found, strict=True):
        if part[0]:
            sides = zip(part, walk.grids[name].values.shape, strict=True)
            # 0 for all
            shares = [0 if len(numbers) == size else list(numbers) for numbers, size in sides]
            parts.append(
                [
                    grids[name],
                    *shares,
                    _once([_part_name(walk, name, part, one) for one in LANGUAGES]),
                ]
            )
    return parts


def _part_name(walk: Walkthrough, name: str, part: Part, language: str) -> str:
    """Return the name of a part, as "K, love", or "Wq, number 3" of a column."""
    grid = walk.grids[name]
    names = [name]
    sides = (("row", grid.rows), ("number", grid.columns))
    for (what, labels), numbers, size in zip(sides, part, grid.values.shape, strict=True):
        if len(numbers) < size:
            names += [labels[n] if labels else say(what, language, n=n) for n in numbers]
    return ", ".join(names)


def _once(texts: list[str]) -> str | list[str]:
    """Return a text, or a list of two where it is another in Korean."""
    return texts[0] if len(set(texts)) == 1 else texts
