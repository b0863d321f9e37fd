"""The operations of a walkthrough, each with its arithmetic, its formula, and one cell worked out by hand.

To add an operation, put an `Operation` into `OPERATIONS`, its words into `attnviz.walkthroughs.texts`, and its formula
into `attnviz.walkthroughs.verify`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from attnviz.text.messages import N_, Message, _
from attnviz.walkthroughs import arithmetic
from attnviz.walkthroughs.hand import Hand
from attnviz.walkthroughs.record import CalculationStep, Grid, Walkthrough

# The signs between matrices: a matrix product, a product cell by cell, and "becomes".
MATRIX, CELLS, ARROW = "\N{MULTIPLICATION SIGN}", "⊙", "→"
ANY = 10_000  # no upper limit: more operands than any step has
LARGEST_POWER = 700  # exp overflows a double above about 709

Labels = tuple[tuple[str, ...], tuple[str, ...]]
# The rows and the columns of an operand that a cell is computed from; None stands for all of them.
Part = tuple[Sequence[int] | None, Sequence[int] | None]


@dataclass(frozen=True, slots=True)
class ResultCell:
    """One cell of a step's result, which is worked out by hand."""

    walk: Walkthrough
    step: CalculationStep
    row: int
    column: int

    @property
    def grids(self) -> list[np.ndarray]:
        """The numbers of each operand."""
        return [self.walk.grids[name].values for name in self.step.operands]

    @property
    def values(self) -> list[float]:
        """The number in each operand at the same row and column as the cell."""
        return [float(grid[self.row, self.column]) for grid in self.grids]

    @property
    def number(self) -> float:
        """The number that belongs to the step, 0 if it has none."""
        return self.step.number or 0.0


def spell_formula(hand: Hand, cell: ResultCell) -> str:
    """Write the formula of a step with the numbers of the operands at the cell put in."""
    operation = OPERATIONS[cell.step.operation]
    fields = dict(zip("abc", map(hand.factor, cell.values), strict=False))
    if operation.numbered:
        fields["number"] = hand.factor(cell.number)
        fields["factor"] = factor(cell.walk, cell.step, hand.factor)
    text = _(operation.formula).format(**fields).replace(" · ", "·")
    return re.sub(r"\((\([^()]*\))\)", r"\1", text)  # tanh((-1)) is tanh(-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One kind of step: how a grid is computed from other grids, and how the computation is written."""

    # takes the numbers of the operands, then the step's number if it has one
    compute: Callable[..., np.ndarray]
    # The rows and columns of each operand, as in einsum: r and c are the row and the column of the result, R and C the
    # same axes if a cell needs all of them, 1 is an axis of size 1, and a cell needs all of any other axis.
    axes: tuple[str, ...] = ("rc",)
    # Operands are {a}, {b}, ..., transposed {A}, {B}, ...; {all} lists them, {number} is the step's number.
    formula: str | Message
    longer_formula: str = ""  # the formula with the last operand, if a step may lack it
    for_key: str = ""  # the formula for one query and one key, if it is another
    # writes the arithmetic of one cell, without the result
    spell: Callable[[Hand, ResultCell], str] = spell_formula
    numbered: bool = False  # whether a step needs a number in addition to its operands
    signs: tuple[str, ...] = (",",)  # written before the second operand and those that follow
    is_exact: bool = True  # False if even whole numbers give rounded results, as powers of e do

    @property
    def n_operands(self) -> tuple[int, int]:
        """The smallest and the largest number of operands."""
        return len(self.axes) - bool(self.longer_formula), len(self.axes)

    def fits(self, *shapes: tuple[int, int]) -> bool:
        """Return whether operands of these shapes fit together."""
        sizes = {"1": 1}
        return all(
            sizes.setdefault(axis, size) == size
            for axes, shape in zip(self.axes, shapes, strict=False)
            for axis, size in zip(axes.lower(), shape, strict=True)
        )

    def labels(self, operands: Sequence[Grid]) -> Labels:
        """Return the names of the result's rows and columns."""
        names: dict[str, tuple[str, ...]] = {"r": (), "c": ()}
        for axes, grid in zip(self.axes, operands, strict=False):
            for axis, labels in zip(axes.lower(), (grid.rows, grid.columns), strict=True):
                names[axis] = names.get(axis) or labels
        return names["r"], names["c"]

    def parts(self, cell: ResultCell) -> list[Part | None]:
        """Return the part of each operand that a cell is computed from; None for an operand that does not count."""
        places = {"r": (cell.row,), "c": (cell.column,), "1": (0,)}
        axes = self.axes[: len(cell.step.operands)]
        return [(places.get(each[0]), places.get(each[1])) for each in axes]


class _Concatenation(Operation):
    """The operands side by side."""

    @property
    def n_operands(self) -> tuple[int, int]:
        return 1, ANY

    def fits(self, *shapes: tuple[int, int]) -> bool:
        return len({rows for rows, _columns in shapes}) == 1

    def labels(self, operands: Sequence[Grid]) -> Labels:
        columns = tuple(name for grid in operands for name in grid.columns)
        has_names = all(grid.columns for grid in operands)
        return operands[0].rows, columns if has_names else ()

    def parts(self, cell: ResultCell) -> list[Part | None]:
        parts: list[Part | None] = []
        first = 0
        for grid in cell.grids:
            column = cell.column - first
            first += grid.shape[1]
            is_inside = 0 <= column < grid.shape[1]
            parts.append(((cell.row,), (column,)) if is_inside else None)
        return parts


class _Row(Operation):
    """One row, by its number."""

    def parts(self, cell: ResultCell) -> list[Part | None]:
        return [((int(cell.number),), (cell.column,))]


class _Split(Operation):
    """One of several equal parts of the columns, by its number."""

    def parts(self, cell: ResultCell) -> list[Part | None]:
        a, n_parts = cell.grids
        first = int(cell.number) * int(a.shape[1] // n_parts.item())
        return [((cell.row,), (first + cell.column,)), ((0,), (0,))]


class _Gru(Operation):
    """A recurrent cell; the weights of its three gates stand side by side, each as wide as the state."""

    def fits(self, *shapes: tuple[int, int]) -> bool:
        return super().fits(*shapes) and shapes[2][1] == 3 * shapes[1][1]

    def parts(self, cell: ResultCell) -> list[Part | None]:
        width = cell.grids[1].shape[1]
        columns = [gate * width + cell.column for gate in range(3)]
        row: Part = ((cell.row,), None)
        gates: Part = (None, columns)
        return [row, row, gates, gates, gates, gates]


def factor(walk: Walkthrough, step: CalculationStep, write: Callable[[float], str]) -> str:
    """Return the factor of a step with its sign, such as "/ √8" if queries and keys have 8 columns."""
    number = 1.0 if step.number is None else step.number
    for earlier_step in walk.steps:
        if earlier_step.result == step.operands[0] and earlier_step.operation == "dot":
            width = walk.grids[earlier_step.operands[0]].values.shape[1]
            if width > 1 and math.isclose(number, width**-0.5, rel_tol=1e-7):
                return f"/ √{write(width)}"
    return f"· {write(number)}"


def _spell_projection(hand: Hand, cell: ResultCell) -> str:
    x, weights, *bias = cell.grids
    text = hand.products(x[cell.row], weights[:, cell.column])
    return f"{text} + {hand.factor(bias[0][0, cell.column])}" if bias else text


def _spell_general(hand: Hand, cell: ResultCell) -> str:
    query, weights, keys = cell.grids
    q, w, k = cell.step.operands
    return f"({q} {w})·{k}: {hand.products(query[cell.row] @ weights, keys[cell.column])}"


def _spell_additive(hand: Hand, cell: ResultCell) -> str:
    query, keys, w, u, (v,) = cell.grids
    inside = query[cell.row] @ w.T + keys[cell.column] @ u.T
    terms = (v * np.tanh(inside)).tolist()
    return hand.add(terms, lambda i: f"{hand.factor(v[i])}·tanh({hand.write(inside[i])})")


def _spell_mask(hand: Hand, cell: ResultCell) -> str:
    value, allowed = cell.values
    return f"{hand.write(value)} + {'0' if allowed else '(-∞)'}"


def _spell_softmax(hand: Hand, cell: ResultCell) -> str:
    """Write one weight: the power of e of a score, divided by the sum over the row."""
    scores = [*cell.grids[0][cell.row].tolist()]
    for sink in cell.grids[1:]:
        scores.append(sink.item())
    largest = max(scores)
    # Subtracting the same number from every score changes no weight and prevents exp from overflowing.
    shift = largest if largest > LARGEST_POWER else 0.0

    def power(i: int) -> str:
        score = hand.write(scores[i])
        return f"exp({score} - {hand.factor(shift)})" if shift else f"exp({score})"

    powers = [math.exp(score - shift) for score in scores]
    return f"{power(cell.column)} / ({hand.add(powers, power)})"


def _spell_weigh(hand: Hand, cell: ResultCell) -> str:
    weights, values = cell.grids
    return f"{hand.factor(weights[0, cell.row])}·{hand.factor(values[cell.row, cell.column])}"


def _spell_sum(hand: Hand, cell: ResultCell) -> str:
    values = cell.grids[0][:, cell.column].tolist()
    return hand.add(values, lambda i: hand.factor(values[i]))


def _spell_copy(hand: Hand, cell: ResultCell) -> str:
    """Write the place of the one number that the cell copies, such as "Q[0, 5]"."""
    parts = OPERATIONS[cell.step.operation].parts(cell)
    for name, grid, part in zip(cell.step.operands, cell.grids, parts, strict=True):
        if part is not None and part[0] is not None and part[1] is not None:
            row, column = part[0][0], part[1][0]
            # Only records the number, so that `hand` knows whether it is shown rounded.
            hand.write(grid[row, column])
            return f"{name}[{row}, {column}]"
    raise AssertionError(f"{cell.step.operation} copies no cell")


def _spell_norm(hand: Hand, cell: ResultCell) -> str:
    a, gain, shift = cell.grids
    values = a[cell.row]
    centred = f"({hand.write(values[cell.column])} - {hand.factor(values.mean())})"
    spread = f"√({hand.write(values.var())} + {hand.write(cell.number)})"
    gained = f"{centred} / {spread}·{hand.factor(gain[0, cell.column])}"
    return f"{gained} + {hand.factor(shift[0, cell.column])}"


def _spell_gru(hand: Hand, cell: ResultCell) -> str:
    place = cell.row, cell.column
    keep, candidate = arithmetic.gates(*cell.grids)
    share = hand.write(float(keep[place]))
    new, old = hand.factor(float(candidate[place])), hand.factor(float(cell.grids[1][place]))
    return f"(1 - {share})·{new} + {share}·{old}"


KEYS_PLACE = {"dot": 1, "additive": 1, "general": 2}
"""The index of the keys among the operands of each operation that compares queries with keys."""

OPERATIONS: dict[str, Operation] = {
    "add": Operation(
        compute=lambda a, b: a + b,
        axes=("rc", "rc"),
        formula="{a} + {b}",
        signs=("+",),
    ),
    "projection": Operation(
        compute=lambda x, w, *bias: sum(bias, x @ w),  # (T, n) x (n, m) + (1, m) -> (T, m)
        axes=("ri", "ic", "1c"),
        spell=_spell_projection,
        formula="{a} {b}",
        longer_formula="{a} {b} + {c}",
        signs=(MATRIX, "+"),
    ),
    "dot": Operation(
        compute=lambda q, k: q @ k.T,  # (Q, d) x (d, K) -> (Q, K)
        axes=("ri", "ci"),
        spell=lambda hand, cell: hand.products(cell.grids[0][cell.row], cell.grids[1][cell.column]),
        formula="{a} {B}",
        for_key="q · k",
        signs=(MATRIX,),
    ),
    "general": Operation(
        compute=lambda q, w, k: q @ w @ k.T,  # Luong et al. 2015, equation 8
        axes=("ri", "ij", "cj"),
        spell=_spell_general,
        formula="{a} {b} {C}",
        for_key="q W kᵀ",
        signs=(MATRIX,),
    ),
    "additive": Operation(
        compute=arithmetic.additive,
        axes=("ri", "cj", "ai", "aj", "1a"),
        spell=_spell_additive,
        formula="tanh({a} {C} + {b} {D}) {E}",
        for_key="v · tanh(W q + U k)",
        is_exact=False,
    ),
    "times": Operation(
        compute=lambda a, number: a * number,
        formula="{a} {factor}",
        numbered=True,
    ),
    "softcap": Operation(
        compute=lambda a, cap: cap * np.tanh(a / cap),  # Gemma Team 2024, "Gemma 2", section 2
        formula="{number} · tanh({a} / {number})",
        numbered=True,
        is_exact=False,
    ),
    "mask": Operation(
        compute=lambda a, allowed: np.where(allowed == 0, -np.inf, a),
        axes=("rc", "rc"),
        spell=_spell_mask,
        formula="mask({a})",
    ),
    "softmax": Operation(
        compute=arithmetic.softmax,
        axes=("rC", "11"),
        spell=_spell_softmax,
        formula="softmax({a})",
        longer_formula="softmax({a} and {b})",
        is_exact=False,
    ),
    "weigh": Operation(
        compute=lambda weights, v: weights[0][:, None] * v,  # (K, 1) * (K, d) -> (K, d)
        axes=("1r", "rc"),
        spell=_spell_weigh,
        formula="{A} ⊙ {b}",
        for_key="{a} · {b}",
        signs=(CELLS,),
    ),
    "sum": Operation(
        compute=lambda a: a.sum(axis=0, keepdims=True),  # (K, d) -> (1, d)
        axes=("ic",),
        spell=_spell_sum,
        formula=N_("sum of the rows of {a}"),
    ),
    "concatenate": _Concatenation(
        compute=lambda *grids: np.hstack(grids),
        spell=_spell_copy,
        formula="[{all}]",
        signs=(";",),
    ),
    "norm": Operation(
        compute=arithmetic.norm,
        axes=("rC", "1c", "1c"),
        spell=_spell_norm,
        formula=N_("({a} - mean) / √(variance + {number}) ⊙ {b} + {c}"),
        numbered=True,
        signs=(f"{ARROW} {CELLS}", "+"),
        is_exact=False,
    ),
    "relu": Operation(
        compute=lambda a: np.maximum(a, 0.0),
        formula="max(0, {a})",
    ),
    "row": _Row(
        compute=arithmetic.row,
        axes=("ic",),
        spell=_spell_copy,
        formula=N_("row {number} of {a}"),
        numbered=True,
    ),
    "tanh": Operation(
        compute=np.tanh,
        formula="tanh({a})",
        is_exact=False,
    ),
    "gru": _Gru(
        compute=arithmetic.gru,
        axes=("ri", "rC", "ig", "1g", "Cg", "1g"),
        spell=_spell_gru,
        formula="GRU({a}, {b})",
        is_exact=False,
    ),
    "split": _Split(
        compute=arithmetic.split,
        axes=("ri", "11"),
        spell=_spell_copy,
        formula="split({a}, {b})",
        numbered=True,
    ),
}
"""Each operation by its name, which saved files contain."""
