"""One cell of each operation's result: written out, so that a person can do it by hand; and what it is made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attnviz.walkthroughs import arithmetic
from attnviz.walkthroughs.hand import Hand, shown
from attnviz.walkthroughs.record import CalculationStep, Walkthrough


@dataclass(frozen=True, slots=True)
class ResultCell:
    """One cell of what a step makes, whose arithmetic is to be written out."""

    walk: Walkthrough
    step: CalculationStep
    row: int
    column: int

    @property
    def grids(self) -> list[np.ndarray]:
        """The numbers that the step is made from."""
        return [self.walk.grids[name].values for name in self.step.operands]

    @property
    def values(self) -> list[float]:
        """Of each of these, the number in the cell's own place."""
        return [float(grid[self.row, self.column]) for grid in self.grids]

    def row_of(self, place: int) -> list[float]:
        """The cell's row of one of these grids."""
        return [*map(float, self.grids[place][self.row])]

    def column_of(self, place: int) -> list[float]:
        """The cell's column of one of these grids."""
        return [*map(float, self.grids[place][:, self.column])]

    @property
    def number(self) -> float:
        """What the step needs beside its grids."""
        return self.step.number or 0.0


def factor(walk: Walkthrough, step: CalculationStep) -> tuple[str, float]:
    """How to write the factor of a step: ("/ sqrt", d) if it is 1 / sqrt(d), of queries and keys d wide; else as it is.

    An eighth is 1 / sqrt(64), but where nothing is 64 wide, 64 would say nothing.
    """
    number = 1.0 if step.number is None else step.number
    made = next((one for one in walk.steps if one.result == step.operands[0] and one.operation == "dot"), None)
    how, root = scale(number)
    if made is not None and how != "*" and root == walk.grids[made.operands[0]].values.shape[1]:
        return how, root
    return "*", number


def scale(number: float) -> tuple[str, float]:
    """How to write a factor: ("/ sqrt", 64.0) for an eighth, which is 1 over the root of 64; else ("*", the factor)."""
    if number > 0:
        width = round(1 / number**2)
        if width > 1 and math.isclose(number, 1 / math.sqrt(width), rel_tol=1e-7):
            return "/ sqrt", float(width)
    return "*", number


def spell_projection(hand: Hand, cell: ResultCell) -> str:
    """A cell of ``projection``."""
    bias = cell.grids[2:]
    text = hand.products(cell.row_of(0), cell.column_of(1))
    return f"{text} + {hand.factor(bias[0][0, cell.column])}" if bias else text


def spell_additive(hand: Hand, cell: ResultCell) -> str:
    """A cell of ``additive``."""
    a, b, c, d, (weights,) = cell.grids
    inside = a[cell.row] @ c.T + b[cell.column] @ d.T
    values = (weights * np.tanh(inside)).tolist()
    return hand.add(values, lambda i: f"{hand.factor(weights[i])}·tanh({hand.write(inside[i])})")


def spell_times(hand: Hand, cell: ResultCell) -> str:
    """A cell of ``times``."""
    how, number = factor(cell.walk, cell.step)
    value = hand.factor(cell.values[0])
    return f"{value} / sqrt({hand.write(number)})" if how == "/ sqrt" else f"{value}·{hand.factor(number)}"


def spell_mask(hand: Hand, cell: ResultCell) -> str:
    """A cell of ``mask``."""
    value, may_look = cell.values
    text = hand.write(value)
    if hand.language == "ko":
        return f"{'볼 수 있음' if may_look else '가림'}: {text} →"
    return f"allowed: {text} stays" if may_look else f"masked: {text} becomes"


def all_scores(cell: ResultCell) -> list[float]:
    """All scores of the cell's row, that for looking at nothing among them."""
    return [*cell.row_of(0), *(number for grid in cell.grids[1:] for number in grid.ravel().tolist())]


def spell_softmax(hand: Hand, cell: ResultCell) -> str:
    """A cell of ``softmax``."""
    scores = all_scores(cell)
    top = max(scores)

    def power(i: int) -> str:
        return "exp(-∞)" if math.isinf(scores[i]) else f"exp({hand.write(scores[i])} - {hand.factor(top)})"

    below = hand.add([math.exp(score - top) for score in scores], power)
    return f"{power(cell.column)} / ({below})"


def largest_taken_off(hand: Hand, cell: ResultCell) -> str:
    """What a softmax does to its scores first."""
    top = shown(max(all_scores(cell)), hand.digits)
    if hand.language == "ko":
        return f"(가장 큰 값({top})을 모든 스코어에서 뺍니다. 가중치는 변하지 않습니다)"
    return f"({top}, the largest, is taken from each: that changes no weight)"


def spell_copy(hand: Hand, cell: ResultCell, place: int, row: int, column: int) -> str:
    """A cell that is one of an operand's."""
    hand.write(cell.grids[place][row, column])
    return f"{cell.step.operands[place]}[{row}, {column}]"


def spell_concatenate(hand: Hand, cell: ResultCell) -> str:
    """A cell of ``concatenate``."""
    place, column = _taken_from(cell)
    return spell_copy(hand, cell, place, cell.row, column)


def _taken_from(cell: ResultCell) -> tuple[int, int]:
    """Which operand a cell of ``concatenate`` is taken from, and from which of its columns."""
    ends = np.cumsum([grid.shape[1] for grid in cell.grids])
    place = int(np.searchsorted(ends, cell.column, side="right"))
    return place, cell.column - int(ends[place]) + cell.grids[place].shape[1]


def spell_norm(hand: Hand, cell: ResultCell) -> str:
    """A cell of ``norm``."""
    a, gain, shift = cell.grids
    values = a[cell.row]
    middle = f"({hand.write(values[cell.column])} - {hand.factor(values.mean())})"
    spread = f"sqrt({hand.write(values.var())} + {hand.write(cell.number)})"
    return f"{middle} / {spread}·{hand.factor(gain[0, cell.column])} + {hand.factor(shift[0, cell.column])}"


def spell_rms_norm(hand: Hand, cell: ResultCell) -> str:
    """A cell of ``rms_norm``."""
    a, gain = cell.grids
    values = a[cell.row]
    size = f"sqrt({hand.write((values**2).mean())} + {hand.write(cell.number)})"
    return f"{hand.factor(values[cell.column])} / {size}·{hand.factor(gain[0, cell.column])}"


def spell_gelu_tanh(hand: Hand, cell: ResultCell) -> str:
    """A cell of ``gelu_tanh``."""
    (value,) = cell.values
    cubed = f"{hand.write(value)} + {hand.write(0.044715)}·{hand.factor(value)}^3"
    return f"{hand.factor(value)} / 2·(1 + tanh(sqrt(2 / pi)·({cubed})))"


def _gates(cell: ResultCell) -> tuple[float, float, float]:
    keep, new = arithmetic.gates(*cell.grids)
    return float(keep[cell.row, cell.column]), float(new[cell.row, cell.column]), cell.row_of(1)[cell.column]


def spell_gru(hand: Hand, cell: ResultCell) -> str:
    """A cell of ``gru``."""
    keep, new, old = _gates(cell)
    return f"(1 - {hand.write(keep)})·{hand.factor(new)} + {hand.write(keep)}·{hand.factor(old)}"


def gates_of(hand: Hand, cell: ResultCell) -> str:
    """What the numbers of ``gru`` are."""
    keep, new, old = (shown(value, hand.digits) for value in _gates(cell))
    if hand.language == "ko":
        return f"(게이트 {keep}: 새 값 {new}, 이전 상태 {old})"
    return f"(the gate {keep} says how much of the old state {old} stays, beside the new {new})"


def spell_rotate(hand: Hand, cell: ResultCell) -> str:
    """A cell of ``rotate``."""
    a, angles = cell.grids
    turned = _turned_with(cell)
    if turned is None:
        return spell_copy(hand, cell, 0, cell.row, cell.column)
    other, pair = turned
    own, partner = hand.factor(a[cell.row, cell.column]), hand.factor(a[cell.row, other])
    angle = hand.write(angles[cell.row, pair])
    return f"{own}·cos({angle}) {'+' if other < cell.column else '-'} {partner}·sin({angle})"


def _turned_with(cell: ResultCell) -> tuple[int, int] | None:
    """The other column of the pair that a cell of ``rotate`` is in, and the pair's number; None behind all pairs."""
    column, distance = cell.column, int(cell.number)
    if column >= 2 * cell.grids[1].shape[1]:
        return None
    other = column - distance if column // distance % 2 == 1 else column + distance
    return other, min(column, other) // (2 * distance) * distance + min(column, other) % distance


def column_before(cell: ResultCell) -> int:
    """The column that a cell of ``split`` is taken from."""
    return int(cell.number) * int(cell.grids[0].shape[1] // cell.grids[1].item()) + cell.column


Part = tuple[Sequence[int], Sequence[int]]  # the rows and the columns of an operand that a cell is made of, if any
NOTHING: Part = ((), ())


def parts_of_concatenate(cell: ResultCell) -> list[Part]:
    """One cell of one operand."""
    at, column = _taken_from(cell)
    return [((cell.row,), (column,)) if place == at else NOTHING for place in range(len(cell.grids))]


def parts_of_rotate(cell: ResultCell) -> list[Part]:
    """The pair of cells, and its angle; behind all pairs the cell alone."""
    turned = _turned_with(cell)
    if turned is None:
        return [((cell.row,), (cell.column,)), NOTHING]
    other, pair = turned
    return [((cell.row,), sorted((cell.column, other))), ((cell.row,), (pair,))]


def parts_of_gru(cell: ResultCell) -> list[Part]:
    """What it reads, the old state, and of weights and biases a column for each gate and for the new state."""
    shapes = [grid.shape for grid in cell.grids]
    columns = [gate * shapes[1][1] + cell.column for gate in range(3)]
    inputs: list[Part] = [((cell.row,), range(width)) for _, width in shapes[:2]]
    return [*inputs, *((range(rows), columns) for rows, _ in shapes[2:])]
