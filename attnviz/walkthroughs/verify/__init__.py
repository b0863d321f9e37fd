"""A saved walkthrough computed again, in nothing but Python's own arithmetic: no torch and no numpy.

Each step is computed from the grids in the file, so the first cell that differs is wrong, or made from what is.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from attnviz.errors import FileFormatError, SettingsError
from attnviz.walkthroughs.verify.arithmetic import (
    OPERATIONS,
    CalculationStep,
    SavedGrid,
    UnsoundError,
)
from attnviz.walkthroughs.verify.saved import SavedFile, number, read

TOLERANCE = 1e-12  # of a saved cell, relative to the amounts that it sums: an addition loses about 1e-16 of them
SMALLEST = 2.2e-308  # where double precision begins to lose digits; differences below it are none
BOUND = 1e-5  # how far from the model's own numbers a walkthrough may say it is, where no receipt says its tolerance
SLACK = (
    100  # times farther where it starts from the input, whose projections the model rounds itself
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCheck:
    """A step that was computed again."""

    step: str  # its name
    grid: str  # what it makes
    shape: tuple[int, int]  # how many rows and columns
    largest: float  # the largest absolute difference of a cell


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Verdict:
    """What came of checking a file."""

    checked: tuple[
        StepCheck, ...
    ]  # the steps that agree, in their order, up to the first that does not
    fault: str = ""  # the first thing that is wrong, in one line: a cell, or what the file says of itself; or nothing
    inputs: tuple[str, ...] = ()  # the grids that no step makes
    unused: tuple[
        str, ...
    ] = ()  # those of them that no step uses either: nothing tells whether they are right
    own: str | None = None  # the grid that the model computed too; None where there is no model
    difference: float | None = None  # how far the two are apart, as the file says; None likewise

    def __repr__(self) -> str:
        return f"<Verdict {self.fault or f'verified: {len(self.checked)} steps, {self.cells:,} cells'}>"

    @property
    def cells(self) -> int:
        """How many numbers were computed."""
        return sum(rows * columns for rows, columns in (step.shape for step in self.checked))

    @property
    def largest(self) -> float:
        """The largest absolute difference of a cell."""
        return max((step.largest for step in self.checked), default=0.0)


def verify(path: str | os.PathLike[str]) -> Verdict:
    """Compute a saved walkthrough again.

    Raises FileFormatError: the file cannot be read or holds no walkthrough; SettingsError: it is no path.
    """
    if not isinstance(path, str | os.PathLike):
        raise SettingsError(f"it must be a path, not {path!r}", "path")
    return examine(read(path))


def examine(saved: SavedFile) -> Verdict:
    """The verdict on what a file holds."""
    checked: list[StepCheck] = []
    fault = "" if saved.steps else "it holds no step that could be computed"
    for i, step in enumerate(saved.steps):
        found = _check(i + 1, step, saved.grids)
        if isinstance(found, str):
            fault = found
            break
        checked.append(found)
    used = {name for step in saved.steps for name in step.operands}
    made = {step.result for step in saved.steps}
    own, difference = saved.fields.get("own"), saved.fields.get("difference")
    return Verdict(
        checked=tuple(checked),
        fault=fault or _statement(saved),
        inputs=tuple(name for name in saved.grids if name not in made),
        unused=tuple(name for name in saved.grids if name not in made | used),
        own=own if isinstance(own, str) else None,
        difference=float(difference) if isinstance(difference, int | float) else None,
    )


def _check(position: int, step: CalculationStep, grids: Mapping[str, SavedGrid]) -> StepCheck | str:
    """The step, if all its cells agree; else the first that does not, in one line."""
    saved = grids[step.result]
    where = f"step {position} ({step.name})"
    try:
        cells = OPERATIONS[step.operation].apply(step, grids)
    except UnsoundError as error:
        return f"{where}: {error}"
    except (OverflowError, ValueError):  # a sum of both infinities, or beyond all numbers
        return f"{where}: {step.result} cannot be computed: it leaves the range of numbers"
    shape, there = (len(cells), len(cells[0])), saved.shape
    if shape != there:
        return (
            f"{where}: {step.result} is {there[0]} x {there[1]}, recomputed {shape[0]} x {shape[1]}"
        )
    largest = 0.0
    for i, row in enumerate(cells):
        for j, (value, amount) in enumerate(row):
            found = saved.values[i][j]
            if found == value:
                continue
            difference = abs(found - value)
            if not difference <= max(TOLERANCE * amount, SMALLEST if amount else 0.0) or math.isinf(
                difference
            ):
                cell = f"row {_label(i, saved.rows)}, column {_label(j, saved.columns)}"
                return f"{where}: {step.result}, {cell}: the file says {found!r}, recomputed it is {value!r}"
            largest = max(largest, difference)
    return StepCheck(step=step.name, grid=step.result, shape=shape, largest=largest)


def _label(index: int, names: Sequence[str]) -> str:
    return f"{index} ({names[index]})" if names and names[index] != str(index) else str(index)


def _statement(saved: SavedFile) -> str:
    """What is wrong with the receipt, or with how far the file says it is from the model; empty if nothing is."""
    try:
        _check_difference(saved, _tolerance(saved.fields.get("receipt")))
    except FileFormatError as error:
        return str(error)
    return (
        "a number that was given, or a label, was changed after the receipt was issued"
        if saved.is_changed
        else ""
    )


def _check_difference(saved: SavedFile, tolerance: float) -> None:
    own = saved.fields.get("own")
    if (own is None) != (saved.fields.get("difference") is None):
        raise FileFormatError("own and difference belong together: one of them is missing")
    if own is None:
        return
    if not isinstance(own, str) or own not in saved.grids:
        raise FileFormatError("own names no grid of the file")
    largest = max(
        (abs(x) for row in saved.grids[own].values for x in row if math.isfinite(x)), default=0.0
    )
    for name, slack in (("difference", 1), ("from_input", SLACK)):
        if saved.fields.get(name) is None:
            continue
        found = number(saved.fields[name], name)
        bound = tolerance * max(1.0, largest) * slack
        if not 0 <= found <= bound:
            raise FileFormatError(f"{name} must be from 0 to {bound:.1e}, not {found!r}")


def _tolerance(receipt: object) -> float:
    """The receipt's tolerance, after all its numbers have been looked at."""
    if receipt is None:
        return BOUND
    if not isinstance(receipt, dict):
        raise FileFormatError("the receipt must be an object")
    differences, layers = receipt.get("differences"), receipt.get("layers")
    if (
        not isinstance(differences, list)
        or not isinstance(layers, list)
        or len(differences) != len(layers)
    ):
        raise FileFormatError("the receipt must have a difference for each layer")
    tolerance = number(receipt.get("tolerance"), "receipt.tolerance")
    numbers = [number(x, f"receipt.differences[{i}]") for i, x in enumerate(differences)]
    if min(tolerance, *numbers, 0.0) < 0:
        raise FileFormatError("the receipt's numbers must not be negative")
    return tolerance
