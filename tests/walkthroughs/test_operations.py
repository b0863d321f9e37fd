"""Each operation against arithmetic from elsewhere, what does not fit, and one cell of each written out."""

from __future__ import annotations

import math
import re
from typing import Any

import jaxtyping
import numpy as np
import pytest

from attnviz.errors import RecordError
from attnviz.walkthroughs.calculation import Calculation, compute, spell_out
from attnviz.walkthroughs.operations import OPERATIONS
from attnviz.walkthroughs.record import CalculationStep, Grid, Walkthrough
from tests.walkthroughs.by_hand import note, walks

DRAW = np.random.default_rng(3)
A, B, K = DRAW.normal(size=(2, 3)), DRAW.normal(size=(2, 3)), DRAW.normal(size=(4, 3))
SQUARE, ROW = DRAW.normal(size=(3, 3)), DRAW.normal(size=(1, 3))


def made(
    operation: str, *operands: np.ndarray, number: float | None = None
) -> tuple[Walkthrough, CalculationStep]:
    """A calculation of one step, whose operands are called a, b, c, ..."""
    grids = {name: Grid(values=values) for name, values in zip("abcdef", operands, strict=False)}
    step = CalculationStep(
        name="made", result="r", operation=operation, operands=tuple(grids), number=number
    )
    grids |= {"r": Grid(values=compute(step, grids))}
    return Walkthrough(title=note("made"), grids=grids, steps=(step,)), step


def of(operation: str, *values: np.ndarray, number: float | None = None) -> np.ndarray:
    """An operation's result on these grids."""
    walk, _ = made(operation, *values, number=number)
    return walk.grids["r"].values


@pytest.mark.parametrize(
    ("operation", "values"),
    [
        ("dot", (A, K[:, :2])),
        ("add", (A, ROW)),
        ("additive", (A, K, SQUARE, SQUARE[:2], ROW)),
        ("mask", (A, K)),
        ("norm", (A, ROW, B)),
        ("split", (A, ROW)),
        ("gru", (A, A, SQUARE, ROW, SQUARE, ROW)),
    ],
)
def test_shapes_that_clash(operation: str, values: tuple[np.ndarray, ...]) -> None:
    """Nothing is stretched to fit: the line names the grids and their shapes."""
    with pytest.raises(RecordError) as error:
        of(operation, *values, number=1.0 if OPERATIONS[operation].numbered else None)
    shapes = ", ".join(f"{n} {v.shape}" for n, v in zip("abcdef", values, strict=False))
    line = f"step made ({operation}): these shapes do not fit together: {shapes}"
    assert str(error.value) == line


HUGE = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 1e300]])


@pytest.mark.parametrize(
    ("operation", "operands", "number", "line"),
    [
        ("dot", (A,), None, r"step made \(dot\) has 1 operands, not 2"),
        ("times", (A,), None, r"step made \(times\) needs a number"),
        ("guess", (A,), None, "there is no operation 'guess'"),
        ("times", (HUGE,), 1e300, "row 1, column 2 is not finite"),
        (
            "softmax",
            (np.array([[0, 1], [-np.inf, -np.inf]]),),
            None,
            "all keys are masked: the query of row 1 ",
        ),
        ("row", (K,), 4.0, "there is no row 4: there are 4, counted from 0"),
        ("row", (K,), 0.5, "there is no row 0.5: there are 4, counted from 0"),
    ],
)
def test_refused(
    monkeypatch: pytest.MonkeyPatch, operation: str, operands: Any, number: float | None, line: str
) -> None:
    """Steps that cannot be computed, and numbers that leave the range."""
    # or the tests' own checks would speak first
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(RecordError, match=line):
        of(operation, *operands, number=number)


@pytest.mark.parametrize(
    ("name", "values", "line"),
    [
        ("q", np.ones((1, 1)), "there are two grids q"),
        ("K", np.ones((0, 3)), r"K is empty: its shape is \(0, 3\)"),
        ("K", np.array([[1.0, np.nan]]), "K must hold finite numbers: row 0, column 1 is nan"),
    ],
)
def test_grids_that_are_refused(name: str, values: np.ndarray, line: str) -> None:
    """Two grids of a name, none, and numbers that are none."""
    c = Calculation()
    c.give("q", Grid(values=A))
    with pytest.raises(RecordError, match=line):
        c.give(name, Grid(values=values))
    with pytest.raises(RecordError, match="there are two grids q"):
        c.step("query", "q", "relu", "q")
    with pytest.raises(RecordError, match=r"step keys \(relu\) is made from X, which is not there"):
        c.step("keys", "K", "relu", "X")


# --------------------------------------------------------------------------------------- the arithmetic written out

NAMES = {"exp": math.exp, "sqrt": math.sqrt, "tanh": math.tanh, "max": max}
WALKS = walks()
COPIES = {"mask", "concatenate", "row", "split"}
STEPS = [
    (name, step)
    for name in ("layer", "general", "additive")
    for step in WALKS[name].steps
    if step.operation not in COPIES
]


def done(text: str) -> tuple[float, str, float]:
    """Return the value of the left side, the sign, and the number on the right."""
    left, sign, right = re.split(r" ([=≈]) ", text, maxsplit=1)
    left = left.removeprefix("(q W)·K: ")  # what the first factors of ``general`` are
    sum_of = re.sub(r"\[[^\]]*: ([^\]]+)\]", r"(\1)", left)
    roots = re.sub(r"√(\d+)", r"sqrt(\1)", sum_of).replace("√(", "sqrt(")
    python = roots.replace("·", "*").replace("exp(-∞)", "0.0")
    assert re.fullmatch(r"[\w\s.+*/(),-]+", python), python
    return float(eval(python, {"__builtins__": {}}, NAMES)), sign, float(right.split()[0])


@pytest.mark.parametrize(
    ("name", "step"), STEPS, ids=[f"{name}-{step.operation}" for name, step in STEPS]
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


@pytest.mark.parametrize(
    ("operation", "operands", "written"),
    [
        ("dot", ([[10, 5, 10]], [[0, 1, 1], [5, 0, 1]]), "10·0 + 5·1 + 10·1 = 15"),
        (
            "dot",
            ([[*range(1, 49)]], [[1] * 48]),
            "1·1 + 2·1 + 3·1 + [44 more terms: 1122] + 48·1 = 1176",
        ),
        (  # of scores whose power no number can hold, the largest is subtracted
            "softmax",
            ([[800, 801]],),
            "exp(800 - 801) / (exp(800 - 801) + exp(801 - 801)) ≈ 0.269",
        ),
        ("mask", ([[2.5]], [[0]]), "2.500 + (-∞) = -∞"),
    ],
)
def test_as_written_by_hand(operation: str, operands: tuple[object, ...], written: str) -> None:
    """With the sign of what is exact; the middle of a long sum is counted and added up."""
    walk, step = made(operation, *(np.array(grid, dtype=float) for grid in operands))
    assert spell_out(walk, step, 0, 0, 3) == written
