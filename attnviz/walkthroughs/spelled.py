"""The arithmetic of one cell, written out so that a person can do it by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from attnviz.text.numbers import shown
from attnviz.walkthroughs.record import Step, Walkthrough
from attnviz.walkthroughs.steps import factor

MOST = 6
"""Terms that a sum is written with; of a longer one those in the middle are counted and summed up."""
HEAD, TAIL = 3, 1
"""Terms of a long sum before and after its middle."""
NEAR = 1e-13
"""Relative difference that double precision makes by itself: numbers nearer than this are equal."""

_SAID = {
    "en": {
        "more": "[{n} more terms: {total}]",
        "largest": "({top}, the largest, is taken from each: that changes no weight)",
        "kept": "allowed: {a} stays {result}",
        "masked": "masked: {a} becomes {result}",
        "mapped": "(first factors: {names})",
    },
    "ko": {
        "more": "[나머지 {n}개 항의 합: {total}]",
        "largest": "(가장 큰 값 {top}을 모두에서 뺍니다. 가중치는 변하지 않습니다)",
        "kept": "볼 수 있음: {a} → {result}",
        "masked": "가림: {a} → {result}",
        "mapped": "(앞의 수: {names})",
    },
}


@dataclass(frozen=True, slots=True)
class Hand:
    """What the arithmetic of a cell is written with; `numbers` collects all that is shown.

    Attributes:
        digits: after the point of each number.
        language: ``en`` or ``ko``.
        numbers: each number written so far.
    """

    digits: int
    language: str
    numbers: list[float]

    def write(self, value: float) -> str:
        """A number; it is remembered, to know in the end whether anything was rounded."""
        self.numbers.append(float(value))
        return shown(float(value), self.digits)

    def factor(self, value: float) -> str:
        """A number that stands behind an operator: in brackets where it is negative."""
        text = self.write(value)
        return f"({text})" if text.startswith("-") else text

    def add(self, terms: Sequence[str], values: Sequence[float]) -> str:
        """A sum of terms, in the middle shortened where there are many."""
        if len(terms) <= MOST:
            return " + ".join(terms)
        total = self.write(math.fsum(values[HEAD:-TAIL]))
        more = self.say("more", n=str(len(terms) - HEAD - TAIL), total=total)
        return " + ".join([*terms[:HEAD], more, *terms[-TAIL:]])

    def products(self, a: Sequence[float], b: Sequence[float]) -> str:
        """A sum of products."""
        chosen = range(len(a)) if len(a) <= MOST else (*range(HEAD), *range(len(a) - TAIL, len(a)))
        written = {i: f"{self.factor(a[i])}·{self.factor(b[i])}" for i in chosen}
        return self.add([written.get(i, "") for i in range(len(a))], [x * y for x, y in zip(a, b, strict=True)])

    def say(self, what: str, **fields: str) -> str:
        """One of the few phrases."""
        return _SAID[self.language][what].format(**fields)

    def is_exact(self) -> bool:
        """Whether no number written was rounded."""
        return all(
            math.isinf(value) or math.isclose(value, float(shown(value, self.digits)), rel_tol=NEAR)
            for value in self.numbers
        )


Cell = tuple[int, int]
Spell = Callable[[Hand, list[np.ndarray], Step, Cell], str]


def spelled(walk: Walkthrough, step: Step, row: int, column: int, digits: int, *, language: str = "en") -> str:
    """The arithmetic of one cell of a step's result, such as "10·5 + 5·0 + 10·1 = 60".

    Args:
        walk: the calculation.
        step: one of its steps.
        row: of the result.
        column: likewise.
        digits: after the point of each number.
        language: of the few words in it: ``en`` or ``ko``.

    Returns:
        The arithmetic, with "≈" where a number of it is rounded and "=" where none is.
    """
    hand = Hand(digits=digits, language=language, numbers=[])
    operands = [walk.grids[name].values for name in step.operands]
    result = hand.write(float(walk.grids[step.result].values[row, column]))
    if step.operation == "mask":
        return _mask(hand, operands, (row, column), result)
    if step.operation == "times":
        written = _times(hand, operands, factor(walk, step), (row, column))
    else:
        written = _SPELLS[step.operation](hand, operands, step, (row, column))
    equal = hand.is_exact() and _comes_out(walk, step, operands, row)
    text = f"{written} {'=' if equal else '≈'} {result}"
    note = _note(hand, operands, step, row)
    return f"{text} {note}" if note else text


def _comes_out(walk: Walkthrough, step: Step, operands: list[np.ndarray], row: int) -> bool:
    """Whether whole numbers give a number that can be written to its end: roots and powers of e mostly do not."""
    match step.operation:
        case "softmax":
            scores = [score for grid in (operands[0][row], *operands[1:]) for score in grid.ravel().tolist()]
            return len({score for score in scores if math.isfinite(score)}) == 1
        case "times":
            how, number = factor(walk, step)
            return how == "*" or math.sqrt(number).is_integer()
        case "additive" | "softcap" | "norm" | "rms_norm" | "gelu" | "gelu_tanh" | "silu":
            return False
        case _:
            return True


def _mask(hand: Hand, operands: list[np.ndarray], cell: Cell, result: str) -> str:
    return hand.say("kept" if operands[1][cell] else "masked", a=hand.write(operands[0][cell]), result=result)


def _note(hand: Hand, operands: list[np.ndarray], step: Step, row: int) -> str:
    """What must be said of how a cell is written."""
    match step.operation:
        case "softmax":
            return hand.say("largest", top=shown(_top(operands, row), hand.digits))
        case "general":
            return hand.say("mapped", names=" ".join(step.operands[:2]))
        case _:
            return ""


def _add(hand: Hand, operands: list[np.ndarray], _: Step, cell: Cell) -> str:
    return f"{hand.write(operands[0][cell])} + {hand.factor(operands[1][cell])}"


def _map(hand: Hand, operands: list[np.ndarray], _: Step, cell: Cell) -> str:
    row, column = cell
    text = hand.products(operands[0][row].tolist(), operands[1][:, column].tolist())
    return f"{text} + {hand.factor(operands[2][0, column])}" if operands[2:] else text


def _dot(hand: Hand, operands: list[np.ndarray], _: Step, cell: Cell) -> str:
    return hand.products(operands[0][cell[0]].tolist(), operands[1][cell[1]].tolist())


def _general(hand: Hand, operands: list[np.ndarray], _: Step, cell: Cell) -> str:
    a, b, c = operands
    return hand.products((a[cell[0]] @ b).tolist(), c[cell[1]].tolist())


def _additive(hand: Hand, operands: list[np.ndarray], _: Step, cell: Cell) -> str:
    a, b, c, d, e = operands
    inside, weights = a[cell[0]] @ c.T + b[cell[1]] @ d.T, e[0]
    n = len(inside)
    chosen = range(n) if n <= MOST else (*range(HEAD), *range(n - TAIL, n))
    written = {i: f"{hand.factor(weights[i])}·tanh({hand.write(inside[i])})" for i in chosen}
    return hand.add([written.get(i, "") for i in range(n)], (weights * np.tanh(inside)).tolist())


def _times(hand: Hand, operands: list[np.ndarray], by: tuple[str, float], cell: Cell) -> str:
    how, number = by
    value = hand.factor(operands[0][cell])
    return f"{value} / sqrt({hand.write(number)})" if how == "/ sqrt" else f"{value}·{hand.factor(number)}"


def _softcap(hand: Hand, operands: list[np.ndarray], step: Step, cell: Cell) -> str:
    cap = hand.write(1.0 if step.number is None else step.number)
    return f"{cap}·tanh({hand.write(operands[0][cell])} / {cap})"


def _softmax(hand: Hand, operands: list[np.ndarray], _: Step, cell: Cell) -> str:
    row, column = cell
    scores = [*operands[0][row].tolist(), *(operands[1].ravel().tolist() if operands[1:] else [])]
    top = _top(operands, row)
    chosen = range(len(scores)) if len(scores) <= MOST else (*range(HEAD), *range(len(scores) - TAIL, len(scores)))

    def power(score: float) -> str:
        return "exp(-∞)" if math.isinf(score) else f"exp({hand.write(score)} - {hand.factor(top)})"

    written = {i: power(scores[i]) for i in chosen}
    below = hand.add([written.get(i, "") for i in range(len(scores))], [math.exp(score - top) for score in scores])
    return f"{power(scores[column])} / ({below})"


def _top(operands: list[np.ndarray], row: int) -> float:
    """The largest score of a row, that for looking at nothing among them."""
    return float(max(grid.max() for grid in (operands[0][row], *operands[1:])))


def _weigh(hand: Hand, operands: list[np.ndarray], _: Step, cell: Cell) -> str:
    return f"{hand.factor(operands[0][0, cell[0]])}·{hand.factor(operands[1][cell])}"


def _sum(hand: Hand, operands: list[np.ndarray], _: Step, cell: Cell) -> str:
    values = operands[0][:, cell[1]].tolist()
    chosen = range(len(values)) if len(values) <= MOST else (*range(HEAD), *range(len(values) - TAIL, len(values)))
    written = {i: hand.factor(values[i]) for i in chosen}
    return hand.add([written.get(i, "") for i in range(len(values))], values)


def _concatenate(hand: Hand, operands: list[np.ndarray], step: Step, cell: Cell) -> str:
    row, column = cell
    for name, grid in zip(step.operands, operands, strict=True):
        if column < grid.shape[1]:
            hand.write(grid[row, column])
            return f"{name}[{row}, {column}]"
        column -= grid.shape[1]
    raise IndexError(cell)


def _norm(hand: Hand, operands: list[np.ndarray], step: Step, cell: Cell) -> str:
    row, column = cell
    values = operands[0][row]
    middle = f"({hand.write(values[column])} - {hand.factor(values.mean())})"
    spread = f"sqrt({hand.write(values.var())} + {hand.write(step.number or 0.0)})"
    return f"{middle} / {spread}·{hand.factor(operands[1][0, column])} + {hand.factor(operands[2][0, column])}"


def _rms_norm(hand: Hand, operands: list[np.ndarray], step: Step, cell: Cell) -> str:
    row, column = cell
    values = operands[0][row]
    size = f"sqrt({hand.write((values**2).mean())} + {hand.write(step.number or 0.0)})"
    return f"{hand.factor(values[column])} / {size}·{hand.factor(operands[1][0, column])}"


def _row(hand: Hand, operands: list[np.ndarray], step: Step, cell: Cell) -> str:
    row = int(step.number or 0)
    hand.write(operands[0][row, cell[1]])
    return f"{step.operands[0]}[{row}, {cell[1]}]"


def _relu(hand: Hand, operands: list[np.ndarray], _: Step, cell: Cell) -> str:
    return f"max(0, {hand.write(operands[0][cell])})"


def _gelu(hand: Hand, operands: list[np.ndarray], _: Step, cell: Cell) -> str:
    value = operands[0][cell]
    return f"{hand.factor(value)}·Φ({hand.write(value)})"


def _gelu_tanh(hand: Hand, operands: list[np.ndarray], _: Step, cell: Cell) -> str:
    value = operands[0][cell]
    cubed = f"{hand.write(value)} + {hand.write(0.044715)}·{hand.factor(value)}^3"
    return f"{hand.factor(value)} / 2·(1 + tanh(sqrt(2 / pi)·({cubed})))"


def _silu(hand: Hand, operands: list[np.ndarray], _: Step, cell: Cell) -> str:
    value = operands[0][cell]
    return f"{hand.factor(value)} / (1 + exp({hand.write(-value)}))"


def _product(hand: Hand, operands: list[np.ndarray], _: Step, cell: Cell) -> str:
    return f"{hand.factor(operands[0][cell])}·{hand.factor(operands[1][cell])}"


_SPELLS: dict[str, Spell] = {
    "add": _add,
    "map": _map,
    "dot": _dot,
    "general": _general,
    "additive": _additive,
    "softcap": _softcap,
    "softmax": _softmax,
    "weigh": _weigh,
    "sum": _sum,
    "concatenate": _concatenate,
    "norm": _norm,
    "rms_norm": _rms_norm,
    "relu": _relu,
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "silu": _silu,
    "product": _product,
    "row": _row,
}
