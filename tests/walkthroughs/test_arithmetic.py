"""The arithmetic written out: a computer that reads it finds the number that stands behind it."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from attnviz.walkthroughs.calculation import compute, spell_out
from attnviz.walkthroughs.record import CalculationStep, Grid, Walkthrough
from tests.walkthroughs.by_hand import note, walks

NAMES = {
    "exp": math.exp,
    "sqrt": math.sqrt,
    "tanh": math.tanh,
    "max": max,
}


def done(text: str) -> tuple[float, str, float]:
    """Return the value of the left side, the sign, and the number on the right."""
    left, sign, right = re.split(r" ([=≈]) ", text, maxsplit=1)
    left = left.removeprefix("(q W)·K: ")  # what the first factors of ``general`` are
    sum_of = re.sub(r"\[[^\]]*: ([^\]]+)\]", r"(\1)", left)
    python = sum_of.replace("·", "*").replace("exp(-∞)", "0.0").replace("^", "**")
    assert re.fullmatch(r"[\w\s.+*/(),-]+", python), python
    return float(eval(python, {"__builtins__": {}}, NAMES)), sign, float(right.split()[0])


def made(
    operation: str, *operands: np.ndarray, number: float | None = None, names: str = "abcdefgh"
) -> tuple[Walkthrough, CalculationStep]:
    """A calculation of one step, done by `operations`."""
    grids = {name: Grid(values=values) for name, values in zip(names, operands, strict=False)}
    step = CalculationStep(
        name="made", result="r", operation=operation, operands=tuple(grids), number=number
    )
    return Walkthrough(
        title=note("made"), grids=grids | {"r": Grid(values=compute(step, grids))}, steps=(step,)
    ), step


WALKS = walks()
STEPS = [(name, step) for name in ("layer", "general", "additive") for step in WALKS[name].steps]
COPIES = {"mask", "concatenate", "row", "split"}


@pytest.mark.parametrize(
    ("name", "step"),
    [(name, step) for name, step in STEPS if step.operation not in COPIES],
    ids=lambda given: given if isinstance(given, str) else given.operation,
)
def test_what_is_written_comes_to_what_is_said(name: str, step: CalculationStep) -> None:
    """For every operation and every cell: read back and done again it is the cell's number."""
    walk = WALKS[name]
    for (row, column), value in np.ndenumerate(walk.grids[step.result].values):
        exact = spell_out(walk, step, row, column, 14)
        result, sign, said = done(exact)
        assert result == pytest.approx(value, abs=1e-9)
        assert said == pytest.approx(value, abs=1e-9)
        rough, rough_sign, rough_said = done(spell_out(walk, step, row, column, 3))
        assert rough == pytest.approx(rough_said, rel=0.03, abs=0.03)
        assert (sign, rough_sign) in {("≈", "≈"), ("=", "≈"), ("=", "=")}


def test_a_root_is_written_as_one() -> None:
    """60 divided by the root of 4 is 30, exactly: but only where queries and keys are 4 wide."""
    for width, written in ((4, "60 / sqrt(4) = 30"), (3, "60·0.500 = 30")):
        query, key = np.zeros((1, width)), np.zeros((1, width))
        query[0, 0], key[0, 0] = 6, 10
        steps = (
            CalculationStep(name="scores", result="s", operation="dot", operands=("q", "K")),
            CalculationStep(
                name="scaled", result="r", operation="times", operands=("s",), number=0.5
            ),
        )
        values = {"q": query, "K": key, "s": np.array([[60.0]]), "r": np.array([[30.0]])}
        grids = {name: Grid(values=numbers) for name, numbers in values.items()}
        walk = Walkthrough(title=note("made"), grids=grids, steps=steps)
        assert spell_out(walk, steps[1], 0, 0, 3) == written


@pytest.mark.parametrize(
    ("operation", "operands", "written"),
    [
        ("dot", ([[10, 5, 10]], [[0, 1, 1], [5, 0, 1]]), "10·0 + 5·1 + 10·1 = 15"),
        ("dot", ([[10, 5, 10]], [[5, 0, 1]]), "10·5 + 5·0 + 10·1 = 60"),
        ("sum", ([[1 / 3], [1 / 3]],), "0.333 + 0.333 ≈ 0.667"),  # a third is only near 0.333
        ("sum", ([[0.1], [0.2]],), "0.100 + 0.200 = 0.300"),
        (
            "dot",
            ([[*range(1, 49)]], [[1] * 48]),
            "1·1 + 2·1 + 3·1 + [44 more terms: 1122] + 48·1 = 1176",
        ),
        ("softmax", ([[60, 15, -np.inf]],), "exp(60) / (exp(60) + exp(15) + exp(-∞)) ≈ 1"),
        (  # of scores whose power no number can hold, the largest is subtracted
            "softmax",
            ([[800, 801]],),
            "exp(800 - 801) / (exp(800 - 801) + exp(801 - 801)) ≈ 0.269",
        ),
        ("mask", ([[1.5]], [[1]]), "1.500 + 0 = 1.500"),
        ("mask", ([[2.5]], [[0]]), "2.500 + (-∞) = -∞"),
    ],
)
def test_as_written_by_hand(operation: str, operands: tuple[object, ...], written: str) -> None:
    """With the sign of what is exact; the middle of a long sum is counted and added up."""
    walk, step = made(operation, *(np.array(grid, dtype=float) for grid in operands))
    assert spell_out(walk, step, 0, 0, 3) == written
