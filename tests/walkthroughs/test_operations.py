"""Each operation against arithmetic from elsewhere, and what does not fit."""

from __future__ import annotations

import math

import jaxtyping
import numpy as np
import pytest
import torch

from attnviz.errors import RecordError
from attnviz.walkthroughs.calculation import compute
from attnviz.walkthroughs.operations import OPERATIONS
from attnviz.walkthroughs.record import CalculationStep, Grid

DRAW = np.random.default_rng(3)
A, B, K = DRAW.normal(size=(2, 3)), DRAW.normal(size=(2, 3)), DRAW.normal(size=(4, 3))
SQUARE, ROW = DRAW.normal(size=(3, 3)), DRAW.normal(size=(1, 3))


def close(one: np.ndarray, other: object) -> None:
    """Equal but for the last bits of double precision."""
    np.testing.assert_allclose(one, np.asarray(other), rtol=1e-13, atol=1e-15)


def step(operation: str, *operands: str, number: float | None = None) -> CalculationStep:
    """A step called "made"."""
    return CalculationStep(
        name="made", result="made", operation=operation, operands=operands, number=number
    )


def of(operation: str, *values: np.ndarray, number: float | None = None) -> np.ndarray:
    """An operation's result on these grids, called a, b, c, ..."""
    names = tuple("abcdefgh"[: len(values)])
    grids = {name: Grid(values=value) for name, value in zip(names, values, strict=True)}
    return compute(step(operation, *names, number=number), grids)


def product(a: np.ndarray, b: np.ndarray) -> float:
    """The dot product, term by term."""
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def test_maps_and_products() -> None:
    """Against sums written out in Python."""
    rows = list(zip(A, B, strict=True))
    projected = [[product(x, w) for w in SQUARE.T] for x in A]
    close(of("projection", A, SQUARE), projected)
    biased = [[cell + b for cell, b in zip(row, ROW[0], strict=True)] for row in projected]
    close(of("projection", A, SQUARE, ROW), biased)
    close(of("dot", A, K), [[product(q, k) for k in K] for q in A])
    weighed = [[ROW[0, key] * cell for cell in K[key]] for key in range(2)]
    close(of("weigh", ROW[:, :2], K[:2]), weighed)
    close(of("sum", K), [[math.fsum(column) for column in K.T]])
    close(of("add", A, B), [[x + y for x, y in zip(a, b, strict=True)] for a, b in rows])
    close(of("concatenate", A, B, A), [[*a, *b, *a] for a, b in rows])
    close(of("times", A, number=0.5), [[cell / 2 for cell in row] for row in A])


def test_functions_of_cells_and_rows() -> None:
    """Against torch in double precision."""
    x = torch.from_numpy(A)
    close(of("softmax", A), x.softmax(dim=1))
    close(of("softcap", A, number=0.7), 0.7 * torch.tanh(x / 0.7))
    close(of("relu", A), x.relu())
    gain, shift = torch.from_numpy(ROW[0]), torch.from_numpy(SQUARE[0])
    close(
        of("norm", A, ROW, SQUARE[:1], number=1e-3),
        torch.nn.functional.layer_norm(x, (3,), gain, shift, 1e-3),
    )


def test_a_row() -> None:
    """By its number from 0; one that is not there is refused."""
    assert of("row", K, number=2.0).tolist() == K[2:3].tolist()
    for number in (4.0, -1.0, 0.5):
        with pytest.raises(RecordError, match=r"there is no row .*: there are 4, counted from 0"):
            of("row", K, number=number)


def test_a_gated_recurrent_unit() -> None:
    """PyTorch's own; and tanh, number by number."""
    cell = torch.nn.GRUCell(3, 5, dtype=torch.float64)
    x, state = DRAW.normal(size=(2, 3)), DRAW.normal(size=(2, 5))
    tensors = (cell.weight_ih.T, cell.bias_ih[None], cell.weight_hh.T, cell.bias_hh[None])
    weights = [tensor.detach().numpy() for tensor in tensors]
    expected = cell(torch.from_numpy(x), torch.from_numpy(state)).detach()
    close(of("gru", x, state, *weights), expected)
    close(of("tanh", A), torch.from_numpy(A).tanh())


def test_a_sink_takes_its_share() -> None:
    """A score for looking at nothing takes part in the sum, and is dropped."""
    scores = torch.from_numpy(np.hstack([A, np.full((2, 1), 1.5)]))
    close(of("softmax", A, np.array([[1.5]])), scores.softmax(dim=1)[:, :3])


def test_mask() -> None:
    """A masked key gets minus infinity, and so no weight."""
    masked = of("mask", A, np.array([[1.0, 0.0, 1.0], [1.0, 1.0, 1.0]]))
    assert masked[0, 1] == -np.inf
    assert np.array_equal(np.delete(masked.ravel(), 1), np.delete(A.ravel(), 1))
    with pytest.raises(
        RecordError, match="all keys are masked: the query of row 1 has nothing to look at"
    ):
        of("softmax", np.array([[0.0, 1.0], [-np.inf, -np.inf]]))


@pytest.mark.parametrize(
    ("operation", "values"),
    [
        ("projection", (A, K)),
        ("projection", (A, SQUARE, A)),
        ("projection", (A, SQUARE, ROW[:, :2])),
        ("dot", (A, K[:, :2])),
        ("add", (A, K)),
        ("add", (A, ROW)),
        ("general", (A, SQUARE, K[:, :2])),
        ("additive", (A, K, SQUARE, SQUARE[:2], ROW)),
        ("weigh", (A, K)),
        ("weigh", (ROW, K)),
        ("mask", (A, K)),
        ("softmax", (A, ROW)),
        ("concatenate", (A, A, K)),
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


def test_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that cannot be computed, and numbers that leave the range."""
    # or the tests' own checks would speak first
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    grids = {"a": Grid(values=A)}
    for wrong, line in (
        (step("dot", "a", "b"), r"step made \(dot\) is made from b, which is not there"),
        (step("dot", "a"), r"step made \(dot\) has 1 operands, not 2"),
        (step("times", "a"), r"step made \(times\) needs a number"),
        (step("guess", "a"), "there is no operation 'guess'"),
    ):
        with pytest.raises(RecordError, match=line):
            compute(wrong, grids)
    with pytest.raises(RecordError, match="row 1, column 2 is not finite"):
        of("times", np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 1e300]]), number=1e300)
    with pytest.raises(RecordError, match="row 0, column 0 is not finite"):
        of("norm", np.zeros((1, 3)), ROW, ROW, number=0.0)
