"""A walkthrough as one web page of formulas and tables; its script shows how each number was computed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from attnviz.look import Look
from attnviz.pages import WebPage
from attnviz.render.html import BASE, build, template
from attnviz.text.messages import _
from attnviz.walkthroughs.calculation import spell_out
from attnviz.walkthroughs.operations import OPERATIONS, Part, ResultCell
from attnviz.walkthroughs.pages.content import PageTable, diagram, lay_out
from attnviz.walkthroughs.record import CalculationStep, Walkthrough
from attnviz.walkthroughs.view import View, cell_name, line_name

SCRIPTS, TEMPLATES = (Path(__file__).parent.parent / name for name in ("scripts", "templates"))
OWN = tuple(SCRIPTS / name for name in ("origins.js", "walkthrough.js", "walkthrough.css"))
LEVELS = 50  # shades per hue
WIDE = 10  # most columns that fit on paper in normal size
DEPTH = 0.5  # the strongest shade, on which text is readable in light and dark mode


def page(view: View, look: Look) -> WebPage:
    """Return the walkthrough as one self-contained web page."""
    walk, drawn, sections = view.walk, diagram(view), list(lay_out(view))
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
    tables = () if drawn is None or not sections else drawn.tables  # an exercise explains nothing
    origins = _origins(view, [*tables, *(section.table for section in sections)])
    return WebPage(
        build(
            title,
            head,
            labels={"grids": list(walk.grids)},
            data=json.dumps(origins, ensure_ascii=False, separators=(",", ":")).encode(),
            own=OWN,
            theme=look.theme,
            shared=BASE,
            body=template(TEMPLATES / "walkthrough.html").render(
                diagram=drawn,
                groups=[
                    (is_before, list(group))
                    for is_before, group in groupby(
                        enumerate(sections), key=lambda item: item[1].is_before
                    )
                ],
                notes=[note for note in (view.small_weights, view.signs, *view.notes) if note],
                levels=LEVELS,
                wide=WIDE,
            ),
            rules=" ".join(shares),
        )
    )


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
