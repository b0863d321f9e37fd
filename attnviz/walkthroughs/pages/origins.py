"""Where the numbers of a page come from: the arithmetic of each, and the cells it is made of, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attnviz.text.phrase import LANGUAGES
from attnviz.walkthroughs.calculation import spell_out
from attnviz.walkthroughs.operations import OPERATIONS, Part, ResultCell
from attnviz.walkthroughs.pages.content import PageTable
from attnviz.walkthroughs.record import CalculationStep, Walkthrough
from attnviz.walkthroughs.view import View, cell_name
from attnviz.walkthroughs.wording import say

Words = str | list[str]  # a text; a list of two where it is another in Korean


def origins(view: View, tables: Sequence[PageTable]) -> dict[str, Any]:
    """What the script of a page reads of its tables; of steps with a blank, which a learner fills in, no arithmetic.

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
        [-1 if cell.at is None else places.setdefault(cell.at, len(places)) for cell in cells]
        for table in tables
        for cells in [[cell for _, row in table.rows if any(one.text for one in row) for cell in row]]
    ]
    grids = {name: number for number, name in enumerate(walk.grids)}
    hidden = {grid for grid, _, _ in view.blanks}
    numbers = []
    for name, row, column in places:
        step = steps.get(name)
        if step is not None and not hidden & {name, *step.operands}:
            text = [spell_out(walk, step, row, column, view.digits, language=one) for one in LANGUAGES]
            parts = _parts(walk, step, row, column, grids)
        else:
            text, parts = [say("given" if step is None else "to fill in", one) for one in LANGUAGES], []
        called = [cell_name(name, walk.grids[name], row, column, one) for one in LANGUAGES]
        numbers.append([grids[name], row, column, _bilingual(called), _bilingual(text), parts])
    return {"numbers": list(zip(*numbers, strict=True)), "tables": found}


def _parts(walk: Walkthrough, step: CalculationStep, row: int, column: int, grids: dict[str, int]) -> list[list[Any]]:
    """The parts of each operand that one number is made of; an operand that has no share in it is left out."""
    found = OPERATIONS[step.operation].parts(ResultCell(walk, step, row, column))
    parts = []
    for name, part in zip(step.operands, found, strict=True):
        if part[0]:
            sides = zip(part, walk.grids[name].values.shape, strict=True)
            shares = [0 if len(numbers) == size else list(numbers) for numbers, size in sides]  # 0 for all
            parts.append([grids[name], *shares, _bilingual([_part_name(walk, name, part, one) for one in LANGUAGES])])
    return parts


def _part_name(walk: Walkthrough, name: str, part: Part, language: str) -> str:
    """As "K, love", or "Wq, number 3" of a column: of what is not whole the rows and columns are named."""
    grid = walk.grids[name]
    names = [name]
    sides = (("row", grid.rows), ("number", grid.columns))
    for (what, labels), numbers, size in zip(sides, part, grid.values.shape, strict=True):
        if len(numbers) < size:
            names += [labels[n] if labels else say(what, language, n=n) for n in numbers]
    return ", ".join(names)


def _bilingual(texts: list[str]) -> Words:
    return texts[0] if len(set(texts)) == 1 else texts
