"""A saved walkthrough computed again: each step from the numbers in the file, by formulas of its own."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from attnviz.walkthroughs.files import read
from attnviz.walkthroughs.record import CalculationStep, Walkthrough

TOLERANCE = 1e-12  # of the amounts that a cell sums; an addition loses about 1e-16 of them
SMALLEST, LARGEST = np.finfo(float).tiny, np.finfo(float).max
Array = np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of computing a walkthrough again."""

    walk: Walkthrough
    differences: tuple[float, ...] = field(repr=False)  # the largest of each step that agrees
    fault: str  # what is wrong first, in one line; empty where everything agrees
    cells: int  # how many numbers agree


def verify(path: str | os.PathLike[str]) -> Verdict:
    """Compute a saved walkthrough again, and name the first cell that differs.

    Raises FileFormatError: the file cannot be read or holds no walkthrough; SettingsError: it is no path.
    """
    walk, is_changed = read(path)
    return examine(walk, is_changed=is_changed)


def examine(walk: Walkthrough, *, is_changed: bool = False) -> Verdict:
    """Compute every step of a walkthrough again, up to the first that differs."""
    fault = "" if walk.steps else "it holds no step that could be computed"
    if is_changed:
        fault = "a number or label was changed after the receipt was issued"
    differences: list[float] = []
    for number, step in enumerate(walk.steps, start=1):
        largest, wrong_cell = _compare(walk, step)
        if wrong_cell:
            fault = f"step {number} ({step.name}): {wrong_cell}"
            break
        differences.append(largest)
    agreed = walk.steps[: len(differences)]
    cells = sum(walk.grids[step.result].values.size for step in agreed)
    return Verdict(walk=walk, differences=tuple(differences), fault=fault, cells=cells)


def _compare(walk: Walkthrough, step: CalculationStep) -> tuple[float, str]:
    """Return the largest difference of a step, and its first cell that differs by more than rounding."""
    saved = walk.grids[step.result]
    operands: list[Any] = [walk.grids[name].values for name in step.operands]
    if step.number is not None:
        operands.append(step.number)
    formula = FORMULAS[step.operation]
    with np.errstate(all="ignore"):
        expected = formula(*operands)
        if step.operation in AMOUNTS:
            amounts = AMOUNTS[step.operation](*operands)
        else:  # of sums and products those of the absolute values
            amounts = np.abs(formula(*map(abs, operands)))
        difference = np.abs(saved.values - expected)
    difference[saved.values == expected] = 0.0  # infinities, too
    is_rounding = difference <= np.clip(TOLERANCE * amounts, SMALLEST, LARGEST)
    for row, column in np.argwhere(~is_rounding).tolist():
        found, right = float(saved.values[row, column]), float(expected[row, column])
        cell = f"{step.result}, {saved.describe_cell(row, column)}"
        return math.inf, f"{cell}: the file says {found!r}, recomputed it is {right!r}"
    return float(difference.max()), ""


def _logistic(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def _softmax(scores: Array, sink: Array | None = None) -> Array:
    n_keys = scores.shape[1]
    scores = scores if sink is None else np.insert(scores, n_keys, sink[0, 0], axis=1)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers[:, :n_keys] / powers.sum(axis=1, keepdims=True))


def _norm(a: Array, gain: Array, shift: Array, epsilon: float) -> Array:
    spread = np.sqrt(a.var(axis=1, keepdims=True) + epsilon)
    return np.asarray((a - a.mean(axis=1, keepdims=True)) / spread * gain + shift)


def _gru(x: Array, state: Array, w: Array, b: Array, u: Array, c: Array) -> Array:
    read_r, read_z, read_n = np.split(x @ w + b, 3, axis=1)
    held_r, held_z, held_n = np.split(state @ u + c, 3, axis=1)
    keep = _logistic(read_z + held_z)
    new = np.tanh(read_n + _logistic(read_r + held_r) * held_n)
    return np.asarray((1 - keep) * new + keep * state)


def _rotate(a: Array, angles: Array, distance: float) -> Array:
    columns = np.arange(2 * angles.shape[1])
    first = columns[columns // distance % 2 == 0]
    second = first + int(distance)
    pairs = (a[:, first] + 1j * a[:, second]) * np.exp(1j * angles)
    turned = a.copy()
    turned[:, first], turned[:, second] = pairs.real, pairs.imag
    return turned


FORMULAS: dict[str, Callable[..., Array]] = {
    "add": lambda a, b: a + b,
    "projection": lambda x, w, bias=0.0: x @ w + bias,
    "dot": lambda q, k: q @ k.T,
    "general": lambda q, w, k: q @ w @ k.T,
    "additive": lambda q, k, w, u, v: np.tanh((q @ w.T)[:, None] + (k @ u.T)[None]) @ v[0],
    "times": lambda a, factor: a * factor,
    "softcap": lambda a, cap: cap * np.tanh(a / cap),
    "mask": lambda a, allowed: np.select([allowed == 1, allowed == 0], [a, -np.inf], np.nan),
    "softmax": _softmax,
    "weigh": lambda weights, values: weights.T * values,
    "sum": lambda a: a.sum(axis=0, keepdims=True),
    "norm": _norm,
    "rms_norm": lambda a, gain, eps: a / np.sqrt((a**2).mean(1, keepdims=True) + eps) * gain,
    "relu": lambda a: np.maximum(a, 0),
    "gelu": lambda a: a * np.vectorize(math.erfc, otypes=[float])(-a / math.sqrt(2)) / 2,
    "gelu_tanh": lambda a: a * _logistic(math.sqrt(8 / math.pi) * (a + 0.044715 * a**3)),
    "silu": lambda a: a * _logistic(a),
    "product": lambda a, b: a * b,
    "row": lambda a, number: a[[int(number)]],
    "tanh": np.tanh,
    "gru": _gru,
    "rotate": _rotate,
    "split": lambda a, parts, number: np.hsplit(a, int(parts.item()))[int(number)],
    "concatenate": lambda *grids: np.hstack(grids),
}

AMOUNTS: dict[str, Callable[..., Array]] = {
    "softmax": _softmax,
    "norm": lambda a, gain, shift, eps: (
        2 * abs(a).max(1, keepdims=True) / np.sqrt(a.var(1, keepdims=True) + eps) * abs(gain)
        + abs(shift)
    ),
    "gru": lambda x, state, *gates: 1 + abs(state),  # gates are at most 1
    "rotate": lambda a, angles, _: abs(a).max() * (1 + abs(angles).max()),
}
"""The amounts that a cell of other operations sums, or a bound of them."""
