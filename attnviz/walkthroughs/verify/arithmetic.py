"""Every operation of a walkthrough in Python's own arithmetic: sums are exact before they are rounded once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import mul

Cell = tuple[
    float, float
]  # a number, and the sum of the amounts that it is made of: what rounding is relative to
Cells = list[list[Cell]]
Rows = list[list[float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedGrid:
    """Numbers in rows and columns, and the names of both; the names are empty where they are only counted."""

    values: Rows
    rows: tuple[str, ...]
    columns: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows, and how many columns."""
        return len(self.values), len(self.values[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class CalculationStep:
    """One line of the calculation."""

    name: str  # which step it is, such as ``scores``; explanations are found by it
    result: str  # the grid that it makes
    operation: str  # how: a name in `OPERATIONS`
    operands: tuple[str, ...]  # the grids that it is made from
    number: float | None = (
        None  # what some operations need beside them, such as ``times``; None for the others
    )


class UnsoundError(Exception):
    """A step that cannot be computed, and why."""


def _projection(a: Rows, b: Rows, bias: Rows | None = None) -> Cells:
    columns = _columns(b)
    shifts = bias[0] if bias else [0.0] * len(columns)
    return [
        [_sum(map(mul, row, c), shift) for c, shift in zip(columns, shifts, strict=True)]
        for row in a
    ]


def _dot(queries: Rows, keys: Rows) -> Cells:
    return [[_sum(map(mul, query, key)) for key in keys] for query in queries]


def _general(a: Rows, b: Rows, c: Rows) -> Cells:
    cells: Cells = []
    for projected in _projection(a, b):
        cells.append([])
        for key in c:
            pairs = list(zip(projected, key, strict=True))
            amount = math.fsum(amount * abs(y) for (_, amount), y in pairs)
            cells[-1].append((math.fsum(x * y for (x, _), y in pairs), amount))
    return cells


def _additive(a: Rows, b: Rows, c: Rows, d: Rows, e: Rows) -> Cells:
    def bent(query: list[Cell], key: list[Cell]) -> Cell:
        terms = list(zip(e[0], query, key, strict=True))
        value = math.fsum(w * math.tanh(x + y) for w, (x, _), (y, _) in terms)
        return value, math.fsum(abs(w) * (1 + of_x + of_y) for w, (_, of_x), (_, of_y) in terms)

    keys = _dot(b, d)
    return [[bent(query, key) for key in keys] for query in _dot(a, c)]


def _softmax(a: Rows, more: Rows | None = None) -> Cells:
    nothing = more[0] if more else []
    cells = []
    for i, row in enumerate(a):
        top = max((*row, *nothing))
        if math.isinf(top):
            raise UnsoundError(f"row {i} has no key that it may look at")
        powers = [math.exp(x - top) for x in row]
        whole = math.fsum((*powers, *(math.exp(x - top) for x in nothing)))
        cells.append([(power / whole, power / whole) for power in powers])
    return cells


def _mask(x: float, y: float) -> Cell:
    if y not in {0, 1}:
        raise UnsoundError("a mask must be 0 or 1")
    return (x if y else -math.inf), 0.0


def _weigh(weights: Rows, values: Rows) -> Cells:
    return [[(w * x, abs(w * x)) for x in row] for w, row in zip(weights[0], values, strict=True)]


def _norm(a: Rows, gains: Rows, shifts: Rows, number: float) -> Cells:
    cells = []
    for row in a:
        mean = math.fsum(row) / len(row)
        spread = math.sqrt(math.fsum((x - mean) ** 2 for x in row) / len(row) + number)
        if not spread:
            raise UnsoundError("a row without variance cannot be divided by it")
        largest = 2 * max(map(abs, row)) / spread
        values = [
            (x - mean) / spread * gain + shift
            for x, gain, shift in zip(row, gains[0], shifts[0], strict=True)
        ]
        amounts = [
            largest * abs(gain) + abs(shift)
            for gain, shift in zip(gains[0], shifts[0], strict=True)
        ]
        cells.append(list(zip(values, amounts, strict=True)))
    return cells


def _rms_norm(a: Rows, gains: Rows, number: float) -> Cells:
    cells = []
    for row in a:
        spread = math.sqrt(math.fsum(x * x for x in row) / len(row) + number)
        if not spread:
            raise UnsoundError("a row of zeros cannot be divided by its size")
        values = [x / spread * gain for x, gain in zip(row, gains[0], strict=True)]
        cells.append([(value, abs(value)) for value in values])
    return cells


def _row(a: Rows, number: float) -> Cells:
    if number not in range(len(a)):
        raise UnsoundError(f"there is no row {number:g}: there are {len(a)}, counted from 0")
    return [[(x, 0.0) for x in a[int(number)]]]


def _gru(xs: Rows, states: Rows, *gates: Rows) -> Cells:
    of_x, shift_x, of_state, shift_state = gates
    width = len(states[0])
    if len(shift_x[0]) != 3 * width:
        raise UnsoundError(
            f"a state of {width} numbers needs gates of {3 * width}, not {len(shift_x[0])}"
        )
    each_read, each_held = (
        _projection(xs, of_x, shift_x),
        _projection(states, of_state, shift_state),
    )
    return [
        [_gate(read[i::width], held[i::width], old) for i, old in enumerate(state)]
        for read, held, state in zip(each_read, each_held, states, strict=True)
    ]


def _gate(read: list[Cell], held: list[Cell], old: float) -> Cell:
    """One number of a gated recurrent unit's new state, from what its three gates read and held."""
    reset, keep = (_share(x + y) for (x, _), (y, _) in zip(read[:2], held[:2], strict=True))
    new = math.tanh(read[2][0] + reset * held[2][0])
    rounded = 1 + math.fsum(amount for _, amount in (*read, *held))
    return (1 - keep) * new + keep * old, (1 + abs(old)) * rounded


def _split(a: Rows, cell: Rows, number: float) -> Cells:
    ((parts,),) = cell
    if parts < 1 or len(a[0]) % parts or number not in range(int(parts)):
        raise UnsoundError(
            f"there is no part {number:g} of {len(a[0])} columns divided by {parts:g}"
        )
    width = len(a[0]) // int(parts)
    first = int(number) * width
    return [[(x, 0.0) for x in row[first : first + width]] for row in a]


def _rotate(a: Rows, angles: Rows, number: float) -> Cells:
    n, distance = 2 * len(angles[0]), int(number)
    if distance != number or distance < 1 or n % (2 * distance) or n > len(a[0]):
        raise UnsoundError(
            f"{len(a[0])} columns have no {len(angles[0])} pairs of columns {number:g} apart"
        )
    cells = [[(x, 0.0) for x in row] for row in a]
    firsts = [column for column in range(n) if column // distance % 2 == 0]
    for row, by, made in zip(a, angles, cells, strict=True):
        for first, angle in zip(firsts, by, strict=True):
            (x, y), cos, sin = (row[first], row[first + distance]), math.cos(angle), math.sin(angle)
            amount = (abs(x) + abs(y)) * (1 + abs(angle))
            made[first], made[first + distance] = (
                (x * cos - y * sin, amount),
                (y * cos + x * sin, amount),
            )
    return cells


def _cellwise(function: Callable[..., Cell]) -> Callable[..., Cells]:
    """An operation that looks at one cell at a time; the function is given the step's number, if it has one, too."""
    return lambda a, *number: [[function(x, *number) for x in row] for row in a]


def _pairwise(function: Callable[[float, float], Cell]) -> Callable[[Rows, Rows], Cells]:
    return lambda a, b: [[*map(function, *rows)] for rows in zip(a, b, strict=True)]


def _softcap(x: float, cap: float) -> Cell:
    if not cap:
        raise UnsoundError("a cap of 0 leaves nothing")
    value = cap * math.tanh(x / cap)
    return value, abs(value)


def _gelu_tanh(x: float) -> Cell:
    inside = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return x * _share(2 * inside), abs(x)  # (1 + tanh(y)) / 2 is the logistic function at 2 y


def _share(x: float) -> float:
    """The logistic function, 1 / (1 + exp(-x)), for every x."""
    if x >= 0:
        return 1 / (1 + math.exp(-x))
    power = math.exp(x)
    return power / (1 + power)


def _sum(terms: Iterable[float], shift: float = 0.0) -> Cell:
    """The sum of the terms, rounded once, and the sum of their amounts."""
    found = [*terms, shift]
    return math.fsum(found), math.fsum(map(abs, found))


def _columns(rows: Rows) -> list[tuple[float, ...]]:
    return list(zip(*rows, strict=True))


@dataclass(frozen=True, slots=True)
class Rule:
    """How an operation is computed again; its axes are as in `attnviz.walkthroughs.operations.Operation`."""

    compute: Callable[
        ..., Cells
    ]  # makes its cells from the numbers of its operands, and from its own if it has one
    axes: str = "tn"  # of each operand
    numbered: bool = False  # whether it needs a number beside them

    @property
    def operands(self) -> tuple[int, int]:
        """How many grids it takes at least and at most."""
        each = self.axes.split()
        return sum(len(letters) == 2 for letters in each), 10_000 if self.axes.endswith(
            "*"
        ) else len(each)

    def apply(self, step: CalculationStep, grids: Mapping[str, SavedGrid]) -> Cells:
        """The cells of a step. Raises UnsoundError: sizes that do not fit."""
        each, operands = self.axes.split(), [grids[name].values for name in step.operands]
        sizes = [
            (name, side, letter, size)
            for name, letters, rows in zip(
                step.operands, each + each[-1:] * len(operands), operands, strict=False
            )
            for side, letter, size in zip(
                ("rows", "columns"), letters, (len(rows), len(rows[0])), strict=False
            )
        ]
        wanted = {"1": (1, "must have 1")}
        wanted |= {
            one.lower(): (n, f"{name} has {n} {side}")
            for name, side, one, n in sizes
            if one.isupper()
        }
        for name, side, letter, size in sizes:
            expected, rest = wanted.get(letter.lower(), (size, ""))
            if size != expected:
                raise UnsoundError(f"{name} has {size} {side}, but {rest}")
        return self.compute(*operands, *([step.number] if self.numbered else []))


OPERATIONS: dict[str, Rule] = {
    "add": Rule(_pairwise(lambda x, y: (x + y, abs(x) + abs(y))), "TN tn"),
    "projection": Rule(_projection, "tn NM 1m?"),
    "dot": Rule(_dot, "qd KD"),
    "general": Rule(_general, "qa AD kd"),
    "additive": Rule(_additive, "qa kb hA HB 1h"),
    "times": Rule(_cellwise(lambda x, factor: (x * factor, abs(x * factor))), numbered=True),
    "softcap": Rule(_cellwise(_softcap), numbered=True),
    "mask": Rule(_pairwise(_mask), "TN tn"),
    "softmax": Rule(_softmax, "tn 11?"),
    "weigh": Rule(_weigh, "1k KD"),
    "sum": Rule(lambda a: [[_sum(column) for column in _columns(a)]]),
    "norm": Rule(_norm, "TN 1n 1n", numbered=True),
    "rms_norm": Rule(_rms_norm, "TN 1n", numbered=True),
    "relu": Rule(_cellwise(lambda x: (max(0.0, x), 0.0))),
    "gelu": Rule(_cellwise(lambda x: (x * math.erfc(-x / math.sqrt(2)) / 2, abs(x)))),
    "gelu_tanh": Rule(_cellwise(_gelu_tanh)),
    "silu": Rule(_cellwise(lambda x: (x * _share(x), abs(x * _share(x))))),
    "product": Rule(_pairwise(lambda x, y: (x * y, abs(x * y))), "TN tn"),
    "row": Rule(_row, numbered=True),
    "tanh": Rule(_cellwise(lambda x: (math.tanh(x), 1.0))),
    "gru": Rule(_gru, "tx Td Xg 1g DG 1g"),
    "split": Rule(_split, "tn 11", numbered=True),
    "rotate": Rule(_rotate, "Tn tp", numbered=True),
    "concatenate": Rule(
        lambda *all_rows: [
            [(x, 0.0) for row in rows for x in row] for rows in zip(*all_rows, strict=True)
        ],
        "T. t.*",
    ),
}
"""Each operation by its name in the file."""
