"""Verification of saved walkthroughs: every step is recomputed from the numbers in the file.

The formulas here are written independently of those in `attnviz.walkthroughs.operations`, so that an error in one of
them shows as a difference.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from attnviz.walkthroughs.files import read
from attnviz.walkthroughs.record import CalculationStep, Walkthrough

# Relative to the sum of the absolute values that a cell adds up; one addition loses about 1e-16 of it.
TOLERANCE = 1e-12
SMALLEST, LARGEST = np.finfo(float).tiny, np.finfo(float).max
Array = np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of verifying a walkthrough."""

    walk: Walkthrough
    # the largest difference of each step that agrees
    differences: tuple[float, ...] = field(repr=False)
    fault: str  # the first error, in one line; empty if everything agrees
    cells: int  # the number of cells that agree


def verify(walkthrough: str | os.PathLike[str] | Walkthrough) -> Verdict:
    """Recompute a walkthrough, saved or in memory, and report the first cell that differs.

    Raises FileFormatError: the file cannot be read or is no walkthrough; SettingsError: it is no path.
    """
    if isinstance(walkthrough, Walkthrough):
        return examine(walkthrough)
    walk, is_changed = read(walkthrough)
    return examine(walk, is_changed=is_changed)


def examine(walk: Walkthrough, *, is_changed: bool = False) -> Verdict:
    """Recompute the steps of a walkthrough, up to the first that differs."""
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
    """Return the largest difference of a step, and the first cell that differs by more than rounding; empty if none."""
    saved = walk.grids[step.result]
    operands: list[Any] = [walk.grids[name].values for name in step.operands]
    if step.number is not None:
        operands.append(step.number)
    formula = FORMULAS[step.operation]
    with np.errstate(all="ignore"):
        expected = formula(*operands)
        if step.operation in AMOUNTS:
            amounts = AMOUNTS[step.operation](*operands)
        else:  # for sums and products, the same formula with absolute values
            amounts = np.abs(formula(*map(abs, operands)))
        difference = np.abs(saved.values - expected)
    difference[saved.values == expected] = 0.0  # inf - inf is NaN
    is_rounding = difference <= np.clip(TOLERANCE * amounts, SMALLEST, LARGEST)
    for row, column in np.argwhere(~is_rounding).tolist():
        number, target = float(saved.values[row, column]), float(expected[row, column])
        cell = f"{step.result}, {saved.describe_cell(row, column)}"
        return math.inf, f"{cell}: the file says {number!r}, recomputed it is {target!r}"
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
    "relu": lambda a: np.maximum(a, 0),
    "row": lambda a, number: a[[int(number)]],
    "tanh": np.tanh,
    "gru": _gru,
    "split": lambda a, parts, number: np.hsplit(a, int(parts.item()))[int(number)],
    "concatenate": lambda *grids: np.hstack(grids),
}

AMOUNTS: dict[str, Callable[..., Array]] = {
    "softmax": _softmax,
    "norm": lambda a, gain, shift, eps: (
        2 * abs(a).max(1, keepdims=True) / np.sqrt(a.var(1, keepdims=True) + eps) * abs(gain)
        + abs(shift)
    ),
    # the new state lies between a tanh and the old state
    "gru": lambda x, state, *gates: 1 + abs(state),
}
"""The absolute values that a cell sums, or an upper bound of them, for operations that are no sums or products."""
