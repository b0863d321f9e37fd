"""What is chosen alike by every view of a walkthrough: steps, a query, the cell done by hand, and the whole formula."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypedDict

import numpy as np

from attnviz.errors import SelectionError
from attnviz.text.display import clip, visible
from attnviz.walkthroughs.calculation import spell_out
from attnviz.walkthroughs.record import CalculationStep, Grid, Walkthrough
from attnviz.walkthroughs.wording import formula_of, say

Blanks = frozenset[tuple[str, int, int]]
"""Cells that a learner fills in: grid, row, column."""

BLANK = "____"

LEAST = 4
"""Vectors of no more numbers are never shortened; of longer ones the first number is always shown."""

NO_BLANKS: Blanks = frozenset()


class ViewOptions(TypedDict, total=False):
    """What every view of a walkthrough may be told; what it is not told is as written here.

    Attributes:
        language: one of `attnviz.walkthroughs.texts.LANGUAGES`; English.
        precision: digits after the point of each number; 3.
        steps: the names of the steps to show; None, which is all.
        blanks: cells that a learner fills in: grid, row, column; none.
    """

    language: str
    precision: int
    steps: Sequence[str] | None
    blanks: Blanks


BY_KEY = ("scores", "scaled", "bias", "softcap", "mask", "softmax", "alignment")
"""Steps that make a number or a vector for each key of a query."""


def whole_formula(walk: Walkthrough) -> str:
    """The steps of attention in one line, such as "context = softmax(q K^T / sqrt(8)) V"."""
    text, written = "", ""
    for step in walk.steps:
        if step.name == "scores":
            written = formula_of(step, walk=walk).partition(" = ")[2]
            text = f"scores = {written}"
        elif step.name in BY_KEY and written and step.operation != "weigh":
            inner = f"({written})" if step.operation == "times" and " + " in written else written
            written = formula_of(step, {step.operands[0]: inner}, walk=walk).partition(" = ")[2]
            text = f"{step.result} = {written}"
        elif written and step.operation == "weigh":
            text = f"context = {written} {step.operands[1]}"
        elif written and step.name == "context":
            text = text if step.operation == "sum" else f"context = {written} {step.operands[1]}"
            break
    return re.sub(r"_\d+", "", text)  # of several heads all have the same


def chosen(walk: Walkthrough, names: Sequence[str] | None, first: int = 1) -> list[tuple[int, CalculationStep]]:
    """The steps with these names, from a step on, and the number that each has in the whole calculation, from 1.

    Raises:
        SelectionError: a name that no step has, or no step is left.
    """
    steps = list(enumerate(walk.steps, start=1))
    known = dict.fromkeys(step.name for step in walk.steps)
    for name in names or ():
        if name not in known:
            raise SelectionError(f"there is no step {name!r}: this calculation has {', '.join(known)}")
    found = [(number, step) for number, step in steps if names is None or step.name in names]
    if found and not 1 <= first <= found[-1][0]:
        raise SelectionError(f"there is no step {first} to begin at: the last one is {found[-1][0]}, counted from 1")
    return [(number, step) for number, step in found if number >= first]


def steps_named(walk: Walkthrough, typed: str) -> tuple[str, ...]:
    """The names of the steps that a person means: a step, the beginning of its name, or what it makes.

    Raises:
        SelectionError: one that this calculation has not.
    """
    found = []
    for part in filter(None, (part.strip() for part in typed.split(","))):
        word = part.lower()
        exact = [step.name for step in walk.steps if word in {step.name, step.result.lower()}]
        meant = exact or [step.name for step in walk.steps if step.name.startswith(word)]
        if not meant:
            there = ", ".join(dict.fromkeys(step.name for step in walk.steps))
            raise SelectionError(f"there is no step '{visible(part)}': this calculation has {there}")
        found += meant
    if not found:
        raise SelectionError("no step is named: choose some, such as score,softmax,context")
    return tuple(dict.fromkeys(found))


def keyed_columns(walk: Walkthrough) -> tuple[Sequence[object], Sequence[object], dict[str, np.ndarray]]:
    """What queries make of keys: names of queries and keys, or their numbers, and by grid a number for each pair.

    Raises:
        SelectionError: the calculation has no scores.
    """
    grids = {step.result: walk.grids[step.result] for step in walk.steps if step.name in BY_KEY}
    pairs = {step.result for step in walk.steps if step.operation != "weigh"}
    if not grids:
        raise SelectionError("this calculation has no scores: no query looks at a key")
    first = next(iter(grids.values()))
    n_queries, n_keys = first.values.shape
    columns = {
        name: grid.values.ravel() for name, grid in grids.items()
        if name in pairs and grid.values.shape == first.values.shape
    }  # fmt: skip
    return first.rows or range(n_queries), first.columns or range(n_keys), columns


def by_hand(walk: Walkthrough, step: CalculationStep, precision: int, language: str, blanks: Blanks) -> str:
    """The arithmetic of one telling cell of a step, with the cell's name; empty where it would fill in a blank."""
    if {grid for grid, _, _ in blanks} & {step.result, *step.operands}:
        return ""
    row, column = telling_cell(walk, step)
    grid = walk.grids[step.result]
    return f"{cell_name(step.result, grid, row, column, language)}: " + spell_out(
        walk, step, row, column, precision, language=language
    )


def followed(walk: Walkthrough) -> Grid | None:
    """The weights of the one query that is followed; None where several are walked, or several heads."""
    made = [walk.grids[step.result] for step in walk.steps if step.operation == "softmax"]
    return made[0] if len(made) == 1 and len(made[0].values) == 1 else None


def telling_cell(walk: Walkthrough, step: CalculationStep) -> tuple[int, int]:
    """The cell that tells most: of the largest weight, or number; of a longer vector its first number.

    It is the same in every view, and in windows of any width.
    """
    grid, weights = walk.grids[step.result], followed(walk)
    values, row = grid.values, 0
    if weights is not None and step.name in BY_KEY:
        key = int(weights.values[0].argmax())
        if step.operation != "weigh":
            return 0, key
        row = key
    elif step.name in BY_KEY or step.name == "context":
        row = len(values) - 1  # the last query is the one that may see most
        made = next((walk.grids[one.result].values for one in walk.steps if one.operation == "softmax"), values)
        if step.name in BY_KEY and made.shape == values.shape:
            return row, int(made[row].argmax())
    if not grid.columns and values.shape[1] > LEAST:
        return row, 0
    return row, int(np.where(np.isfinite(values[row]), np.abs(values[row]), -1.0).argmax())


def cell_name(name: str, grid: Grid, row: int, column: int, language: str) -> str:
    """As "scores, love" or "alignment, love, number 3"."""
    parts = [name]
    if len(grid.values) > 1:
        parts.append(grid.rows[row] if grid.rows else say("row", language, n=row))
    parts.append(grid.columns[column] if grid.columns else say("number", language, n=column))
    return ", ".join(parts)


def chosen_row(names: Sequence[str], n_rows: int, wanted: str | int) -> int:
    """The number of the row that a person means.

    Args:
        names: of the rows; empty where they are only counted.
        n_rows: how many there are.
        wanted: a name, whatever the size of its letters where none is exactly so; or a number counted from 0, negative
            from the end, as a number or in digits.

    Raises:
        SelectionError: there is none, or there are several.
    """
    there = ", ".join(f"{number} {name}" for number, name in enumerate(names)) or f"0 to {n_rows - 1}, without names"
    there = clip(there, 200)
    if isinstance(wanted, str):
        shown = clip(visible(wanted), 40)
        found = [number for number, name in enumerate(names) if name == visible(wanted.strip())] or [
            number for number, name in enumerate(names) if name.casefold() == visible(wanted.strip()).casefold()
        ]
        if len(found) == 1:
            return found[0]
        if found:
            raise SelectionError(
                f"several queries are '{shown}': choose one by its number: {', '.join(map(str, found))}"
            )
        digits = wanted.strip().removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 9):
            raise SelectionError(f"there is no query '{shown}' to follow: there are {there}")
        wanted = int(wanted)
    if not -n_rows <= wanted < n_rows:
        raise SelectionError(f"there is no query {wanted}: there are {there}")
    return wanted % n_rows
