"""The operations of a walkthrough, each with its arithmetic, formula, shapes, one cell written out, and words.

To add one, put an `Operation` into `OPERATIONS`, and its formula into those of `attnviz.walkthroughs.verify`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from attnviz.text.messages import _, in_language
from attnviz.walkthroughs import arithmetic
from attnviz.walkthroughs.hand import Hand, format_number
from attnviz.walkthroughs.record import CalculationStep, Grid, Walkthrough

MATRIX, CELLS, ARROW = "\N{MULTIPLICATION SIGN}", "⊙", "→"
"""Signs on a sheet: of a matrix product, of one cell by cell, and of what is made, as a norm does before its gain."""
SIDES = ("rows", "columns")
ANY = 10_000  # more operands than any step has
SEVERAL = 3  # operands of one shape, from which on they are counted and not listed


# the rows and the columns of an operand that a cell is made of, if any
Part = tuple[Sequence[int], Sequence[int]]
NOTHING: Part = ((), ())


@dataclass(frozen=True, slots=True)
class ResultCell:
    """One cell of what a step makes, whose arithmetic is to be written out."""

    walk: Walkthrough
    step: CalculationStep
    row: int
    column: int

    @property
    def grids(self) -> list[np.ndarray]:
        """The numbers of the operands."""
        return [self.walk.grids[name].values for name in self.step.operands]

    @property
    def values(self) -> list[float]:
        """The number in the cell's own place of each operand."""
        return [float(grid[self.row, self.column]) for grid in self.grids]

    def row_of(self, place: int) -> list[float]:
        """Return the cell's row of an operand."""
        return [*map(float, self.grids[place][self.row])]

    def column_of(self, place: int) -> list[float]:
        """Return the cell's column of an operand."""
        return [*map(float, self.grids[place][:, self.column])]

    @property
    def number(self) -> float:
        """The number that the step needs beside its grids."""
        return self.step.number or 0.0


@dataclass(frozen=True, slots=True)
class Text:
    """The words for a step or a grid."""

    title: str
    sentence: str
    short: str = ""  # the name of a column of it; empty where it has none
    # what the step makes: what attention works on, or something by key
    role: Literal["", "before", "by key"] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation.

    In formulas the operands are a, b, c, ..., in capitals where rows and columns are exchanged, ``{all}`` is all of
    them, ``{number}`` the step's number and ``{factor}`` the same as a factor; a part is left out where its operand is
    not there. The axes are a letter for the rows and one for the columns of each operand and of what it makes: sizes
    with one letter are equal, the capital one says what the others must be; 1 is one, and "." any. Behind an operand
    "?" says that it may be missing, "*" that more may follow, "-" that a cell of the result needs a whole row of it.
    """

    # its numbers, from those of its operands, and the step's number if it has one
    compute: Callable[..., np.ndarray]
    spell: Callable[[Hand, ResultCell], str]  # writes the arithmetic of one cell, up to its result
    axes: str = "TN -> tn"
    numbered: bool = False  # whether it needs a number beside its operands
    formula: tuple[str, ...] = ()  # its parts
    for_key: str = ""  # the formula for one query and key, {a} what the step before made of them; empty without one
    # the shapes put in, from those of the operands, where they do not stand in the formula's places
    shapes: Callable[[Sequence[tuple[int, ...]]], str | None] | None = None
    # What stands on a sheet before the second operand and those that follow, the last sign before all that are left.
    signs: tuple[str, ...] = (",",)  # a comma where the formula is no chain of signs
    # What one cell is made of, the rows and columns of each operand, where the axes do not say it.
    reads: Callable[[ResultCell], list[Part]] | None = None
    # whether `spell` writes a phrase and no sum: the result follows without a sign
    is_phrase: bool = False
    # what must be said of how a cell is written
    note: Callable[[Hand, ResultCell], str] = lambda _hand, _cell: ""
    # Whether whole numbers give a number that can be written to its end: roots and powers of e mostly do not.
    comes_out: Callable[[ResultCell], bool] = lambda _cell: True
    # for a step of the same name; None where `attnviz.walkthroughs.texts` has it
    text: Text | None = None

    @property
    def operand_axes(self) -> list[str]:
        """The two letters of each operand, and what says how often it is there."""
        return self.axes.partition(" -> ")[0].split()

    @property
    def operands(self) -> tuple[int, int]:
        """The least and the largest number of operands."""
        each = self.operand_axes
        return len([one for one in each if one[2:] in {"", "-"}]), ANY if each[-1].endswith(
            "*"
        ) else len(each)

    def sides(self, n: int) -> list[tuple[int, str, str]]:
        """Return the rows and columns of so many operands: the operand's number, the side, and its letter."""
        each = self.operand_axes
        letters = [*each, *each[-1:] * (n - len(each))][:n]
        return [
            (i, side, letter)
            for i, two in enumerate(letters)
            for side, letter in zip(SIDES, two, strict=False)
        ]

    def parts(self, cell: ResultCell) -> list[Part]:
        """Return the rows and columns of each operand that one cell of the result is made of."""
        if self.reads is not None:
            return self.reads(cell)
        places: dict[str, Sequence[int]] = {
            self.axes[-2]: (cell.row,),
            self.axes[-1]: (cell.column,),
        }
        each = self.operand_axes
        found: list[Part] = []
        for i, grid in enumerate(cell.grids):
            letters, every = each[min(i, len(each) - 1)].lower(), range(grid.shape[1])
            columns = every if letters.endswith("-") else places.get(letters[1], every)
            found.append((places.get(letters[0], range(len(grid))), columns))
        return found

    def labels(self, operands: Sequence[Grid]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the names of the result's rows and columns, which are those of its operands."""
        sides = self.sides(len(operands))
        rows, columns = (
            [getattr(operands[i], side) for i, side, letter in sides if letter.lower() == own]
            for own in self.axes[-2:]
        )
        if self.axes.endswith("."):
            return rows[0], tuple(name for names in columns for name in names) if all(
                columns
            ) else ()
        return next(filter(None, rows), ()), next(filter(None, columns), ())


def factor(walk: Walkthrough, step: CalculationStep) -> tuple[str, float]:
    """Return how to write the factor of a step: ("/ sqrt", d) if it is 1 / sqrt(d) of queries and keys d wide.

    An eighth is 1 / sqrt(64), but where nothing is 64 wide, 64 would say nothing.
    """
    number = 1.0 if step.number is None else step.number
    made = next(
        (one for one in walk.steps if one.result == step.operands[0] and one.operation == "dot"),
        None,
    )
    how, root = scale(number)
    if made is not None and how != "*" and root == walk.grids[made.operands[0]].values.shape[1]:
        return how, root
    return "*", number


def scale(number: float) -> tuple[str, float]:
    """Return how to write a factor: ("/ sqrt", 64.0) for an eighth, which is 1 over the root of 64; else as it is."""
    if number > 0:
        width = round(1 / number**2)
        if width > 1 and math.isclose(number, 1 / math.sqrt(width), rel_tol=1e-7):
            return "/ sqrt", float(width)
    return "*", number


def _spell_projection(hand: Hand, cell: ResultCell) -> str:
    bias = cell.grids[2:]
    text = hand.products(cell.row_of(0), cell.column_of(1))
    return f"{text} + {hand.factor(bias[0][0, cell.column])}" if bias else text


def _spell_additive(hand: Hand, cell: ResultCell) -> str:
    a, b, c, d, (weights,) = cell.grids
    inside = a[cell.row] @ c.T + b[cell.column] @ d.T
    values = (weights * np.tanh(inside)).tolist()
    return hand.add(values, lambda i: f"{hand.factor(weights[i])}·tanh({hand.write(inside[i])})")


def _spell_times(hand: Hand, cell: ResultCell) -> str:
    how, number = factor(cell.walk, cell.step)
    value = hand.factor(cell.values[0])
    return (
        f"{value} / sqrt({hand.write(number)})"
        if how == "/ sqrt"
        else f"{value}·{hand.factor(number)}"
    )


def _spell_mask(hand: Hand, cell: ResultCell) -> str:
    value, may_look = cell.values
    text = hand.write(value)
    words = _("allowed: {value} stays") if may_look else _("masked: {value} becomes")
    return in_language(words.format(value=text), hand.language)


def _all_scores(cell: ResultCell) -> list[float]:
    return [
        *cell.row_of(0),
        *(number for grid in cell.grids[1:] for number in grid.ravel().tolist()),
    ]


def _spell_softmax(hand: Hand, cell: ResultCell) -> str:
    scores = _all_scores(cell)
    top = max(scores)

    def power(i: int) -> str:
        return (
            "exp(-∞)"
            if math.isinf(scores[i])
            else f"exp({hand.write(scores[i])} - {hand.factor(top)})"
        )

    below = hand.add([math.exp(score - top) for score in scores], power)
    return f"{power(cell.column)} / ({below})"


def _largest_taken_off(hand: Hand, cell: ResultCell) -> str:
    top = format_number(max(_all_scores(cell)), hand.digits)
    words = _("({top}, the largest, is taken from each: that changes no weight)")
    return in_language(words.format(top=top), hand.language)


def _spell_copy(hand: Hand, cell: ResultCell) -> str:
    parts = OPERATIONS[cell.step.operation].parts(cell)
    place, ((row,), (column,)) = next(
        (place, part) for place, part in enumerate(parts) if part != NOTHING
    )
    hand.write(cell.grids[place][row, column])
    return f"{cell.step.operands[place]}[{row}, {column}]"


def _spell_norm(hand: Hand, cell: ResultCell) -> str:
    a, gain, shift = cell.grids
    values = a[cell.row]
    middle = f"({hand.write(values[cell.column])} - {hand.factor(values.mean())})"
    spread = f"sqrt({hand.write(values.var())} + {hand.write(cell.number)})"
    return f"{middle} / {spread}·{hand.factor(gain[0, cell.column])} + {hand.factor(shift[0, cell.column])}"


def _spell_rms_norm(hand: Hand, cell: ResultCell) -> str:
    a, gain = cell.grids
    values = a[cell.row]
    size = f"sqrt({hand.write((values**2).mean())} + {hand.write(cell.number)})"
    return f"{hand.factor(values[cell.column])} / {size}·{hand.factor(gain[0, cell.column])}"


def _spell_gelu_tanh(hand: Hand, cell: ResultCell) -> str:
    (value,) = cell.values
    cubed = f"{hand.write(value)} + {hand.write(0.044715)}·{hand.factor(value)}^3"
    return f"{hand.factor(value)} / 2·(1 + tanh(sqrt(2 / pi)·({cubed})))"


def _gates(cell: ResultCell) -> tuple[float, float, float]:
    keep, new = arithmetic.gates(*cell.grids)
    return (
        float(keep[cell.row, cell.column]),
        float(new[cell.row, cell.column]),
        cell.row_of(1)[cell.column],
    )


def _spell_gru(hand: Hand, cell: ResultCell) -> str:
    keep, new, old = _gates(cell)
    return f"(1 - {hand.write(keep)})·{hand.factor(new)} + {hand.write(keep)}·{hand.factor(old)}"


def _gates_of(hand: Hand, cell: ResultCell) -> str:
    keep, new, old = (format_number(value, hand.digits) for value in _gates(cell))
    words = _("(the gate {keep} says how much of the old state {old} stays, beside the new {new})")
    return in_language(words.format(keep=keep, new=new, old=old), hand.language)


def _spell_rotate(hand: Hand, cell: ResultCell) -> str:
    a, angles = cell.grids
    turned = _turned_with(cell)
    if turned is None:
        return _spell_copy(hand, cell)
    other, pair = turned
    own, partner = hand.factor(a[cell.row, cell.column]), hand.factor(a[cell.row, other])
    angle = hand.write(angles[cell.row, pair])
    return f"{own}·cos({angle}) {'+' if other < cell.column else '-'} {partner}·sin({angle})"


def _turned_with(cell: ResultCell) -> tuple[int, int] | None:
    """Return the other column of a cell's pair in ``rotate``, and the pair's number; None behind all pairs."""
    columns = arithmetic.pairs(2 * cell.grids[1].shape[1], int(cell.number))
    pairs = enumerate(zip(*(side.tolist() for side in columns), strict=True))
    return next(
        ((sum(pair) - cell.column, number) for number, pair in pairs if cell.column in pair), None
    )


def _parts_of_concatenate(cell: ResultCell) -> list[Part]:
    """Return one cell of one operand."""
    ends = np.cumsum([grid.shape[1] for grid in cell.grids])
    at = int(np.searchsorted(ends, cell.column, side="right"))
    column = cell.column - int(ends[at]) + cell.grids[at].shape[1]
    return [
        ((cell.row,), (column,)) if place == at else NOTHING for place in range(len(cell.grids))
    ]


def _parts_of_split(cell: ResultCell) -> list[Part]:
    """Return one cell, and the number of parts."""
    before = int(cell.number) * int(cell.grids[0].shape[1] // cell.grids[1].item())
    return [((cell.row,), (before + cell.column,)), ((0,), (0,))]


def _parts_of_rotate(cell: ResultCell) -> list[Part]:
    """Return the pair of cells and its angle; behind all pairs the cell alone."""
    turned = _turned_with(cell)
    if turned is None:
        return [((cell.row,), (cell.column,)), NOTHING]
    other, pair = turned
    return [((cell.row,), sorted((cell.column, other))), ((cell.row,), (pair,))]


def _parts_of_gru(cell: ResultCell) -> list[Part]:
    """Return the input, the old state, and of weights and biases a column for each gate and the new state."""
    shapes = [grid.shape for grid in cell.grids]
    columns = [gate * shapes[1][1] + cell.column for gate in range(3)]
    inputs: list[Part] = [((cell.row,), range(width)) for _rows, width in shapes[:2]]
    return [*inputs, *((range(rows), columns) for rows, _width in shapes[2:])]


def _first_factors(hand: Hand, cell: ResultCell) -> str:
    first, second = cell.step.operands[:2]
    words = _("(first factors: {first} {second})").format(first=first, second=second)
    return in_language(words, hand.language)


def _so_many_times(shapes: Sequence[tuple[int, ...]]) -> str | None:
    n = len(shapes)
    if n <= SEVERAL or len(set(shapes)) > 1:
        return None
    return _("[{n} times {shape}]").format(n=n, shape=shapes[0])


OPERATIONS: dict[str, Operation] = {
    "add": Operation(
        compute=lambda a, b: a + b,
        axes="tn TN -> tn",
        formula=("{a} + {b}",),
        for_key="{a} + {b}",
        signs=("+",),
        spell=lambda hand, cell: f"{hand.write(cell.values[0])} + {hand.factor(cell.values[1])}",
    ),
    "projection": Operation(
        compute=lambda a, b, *c: sum(c, a @ b),  # (T, n) x (n, m) + (1, m) -> (T, m)
        axes="tn NM 1m? -> tm",
        formula=("{a} {b}", " + {c}"),
        signs=(MATRIX, "+"),
        spell=_spell_projection,
    ),
    "dot": Operation(
        compute=lambda a, b: a @ b.T,  # (Q, d) x (d, K) -> (Q, K)
        axes="qd KD -> qk",
        formula=("{a} {B}",),
        for_key="q · k",
        signs=(MATRIX,),
        spell=lambda hand, cell: hand.products(cell.row_of(0), cell.grids[1][cell.column].tolist()),
    ),
    "general": Operation(
        # (Q, d) x (d, d) x (d, K) -> (Q, K): Luong et al. 2015, equation 8
        compute=lambda a, b, c: a @ b @ c.T,
        axes="qa AD kd -> qk",
        formula=("{a} {b} {C}",),
        for_key="q W k^T",
        signs=(MATRIX, MATRIX),
        spell=lambda hand, cell: hand.products(
            (cell.grids[0][cell.row] @ cell.grids[1]).tolist(), cell.grids[2][cell.column].tolist()
        ),
        note=_first_factors,
    ),
    "additive": Operation(
        compute=arithmetic.additive,
        axes="qa kb hA HB 1h -> qk",
        formula=("tanh({a} {C} + {b} {D}) {E}",),
        for_key="v · tanh(W q + U k)",
        spell=_spell_additive,
        comes_out=lambda _cell: False,
    ),
    "times": Operation(
        compute=lambda a, number: a * number,
        numbered=True,
        formula=("{a} {factor}",),
        for_key="{a} {factor}",
        spell=_spell_times,
        comes_out=lambda cell: (
            factor(cell.walk, cell.step)[0] == "*"
            or math.sqrt(factor(cell.walk, cell.step)[1]).is_integer()
        ),
    ),
    "softcap": Operation(
        # Gemma Team 2024, "Gemma 2", section 2
        compute=lambda a, number: number * np.tanh(a / number),
        numbered=True,
        formula=("{number} tanh({a} / {number})",),
        for_key="{number} tanh({a} / {number})",
        spell=lambda hand, cell: "{0}·tanh({1} / {0})".format(
            *map(hand.write, (cell.number, cell.values[0]))
        ),
        comes_out=lambda _cell: False,
    ),
    "mask": Operation(
        compute=lambda a, b: np.where(b == 0, -np.inf, a),
        axes="TN tn -> tn",
        formula=("mask({a})",),
        spell=_spell_mask,
        is_phrase=True,
    ),
    "softmax": Operation(
        compute=arithmetic.softmax,
        axes="TN- 11? -> tn",
        formula=("softmax({a}", " and {b}", ")"),
        for_key="softmax({a})",
        spell=_spell_softmax,
        note=_largest_taken_off,
        comes_out=lambda cell: (
            len({score for score in _all_scores(cell) if math.isfinite(score)}) == 1
        ),
    ),
    "weigh": Operation(
        # (K, 1) * (K, d) -> (K, d), an alignment vector a key
        compute=lambda a, b: a[0][:, None] * b,
        axes="1k KD -> kd",
        formula=("{A} * {b}",),
        for_key="{a} · {b}",
        signs=(CELLS,),
        spell=lambda hand, cell: (
            f"{hand.factor(cell.grids[0][0, cell.row])}·{hand.factor(cell.row_of(1)[cell.column])}"
        ),
    ),
    "sum": Operation(
        compute=lambda a: a.sum(axis=0, keepdims=True),  # (K, d) -> (1, d)
        axes="kd -> 1d",
        formula=(_("sum of the rows of {a}"),),
        shapes=lambda shapes: _("sum of {n} rows of (1, {width})").format(
            n=shapes[0][0], width=shapes[0][1]
        ),
        spell=lambda hand, cell: hand.add(
            cell.column_of(0), lambda i: hand.factor(cell.column_of(0)[i])
        ),
    ),
    "concatenate": Operation(
        compute=lambda *grids: np.hstack(grids),
        axes="T. t.* -> t.",
        formula=("[{all}]",),
        shapes=_so_many_times,
        signs=(";",),
        spell=_spell_copy,
        reads=_parts_of_concatenate,
    ),
    "norm": Operation(
        compute=arithmetic.norm,
        axes="TN- 1n 1n -> tn",
        numbered=True,
        formula=(_("({a} - mean) / sqrt(variance + {number})"), " * {b}", " + {c}"),
        signs=(f"{ARROW} {CELLS}", "+"),
        spell=_spell_norm,
        comes_out=lambda _cell: False,
    ),
    "rms_norm": Operation(
        compute=arithmetic.rms_norm,
        axes="TN- 1n -> tn",
        numbered=True,
        formula=(_("{a} / sqrt(mean square + {number})"), " * {b}"),
        signs=(f"{ARROW} {CELLS}",),
        spell=_spell_rms_norm,
        comes_out=lambda _cell: False,
    ),
    "relu": Operation(
        compute=lambda a: np.maximum(a, 0.0),
        formula=("max(0, {a})",),
        spell=lambda hand, cell: f"max(0, {hand.write(cell.values[0])})",
    ),
    "gelu": Operation(
        compute=arithmetic.gelu,
        formula=("{a} Φ({a})",),
        spell=lambda hand, cell: f"{hand.factor(cell.values[0])}·Φ({hand.write(cell.values[0])})",
        comes_out=lambda _cell: False,
    ),
    "gelu_tanh": Operation(
        compute=arithmetic.gelu_tanh,
        formula=("{a} / 2 * (1 + tanh(sqrt(2 / pi) ({a} + 0.044715 {a}^3)))",),
        spell=_spell_gelu_tanh,
        comes_out=lambda _cell: False,
    ),
    "silu": Operation(
        compute=arithmetic.silu,
        formula=("{a} / (1 + exp(-{a}))",),
        spell=lambda hand, cell: (
            f"{hand.factor(cell.values[0])} / (1 + exp({hand.write(-cell.values[0])}))"
        ),
        comes_out=lambda _cell: False,
    ),
    "product": Operation(
        compute=lambda a, b: a * b,  # Shazeer 2020, "GLU Variants Improve Transformer", equation 5
        axes="TN tn -> tn",
        formula=("{a} * {b}",),
        signs=(CELLS,),
        spell=lambda hand, cell: f"{hand.factor(cell.values[0])}·{hand.factor(cell.values[1])}",
    ),
    "row": Operation(
        compute=arithmetic.row,
        axes="tn -> 1n",
        numbered=True,
        formula=(_("row {number} of {a}"),),
        spell=_spell_copy,
        reads=lambda cell: [((int(cell.number),), (cell.column,))],
    ),
    "tanh": Operation(
        compute=np.tanh,
        formula=("tanh({a})",),
        spell=lambda hand, cell: f"tanh({hand.write(cell.values[0])})",
        comes_out=lambda _cell: False,
    ),
    "gru": Operation(
        compute=arithmetic.gru,
        axes="tx Td Xg 1g DG 1g -> td",
        formula=("GRU({a}, {b})",),
        spell=_spell_gru,
        reads=_parts_of_gru,
        note=_gates_of,
        comes_out=lambda _cell: False,
    ),
    "rotate": Operation(
        compute=arithmetic.rotate,
        axes="Tn tp -> tn",
        numbered=True,
        formula=("rotate({a}, {b})",),
        spell=_spell_rotate,
        reads=_parts_of_rotate,
        comes_out=lambda _cell: False,
    ),
    "split": Operation(
        compute=arithmetic.split,
        axes="tn 11 -> t.",
        numbered=True,
        formula=("split({a}, {b})",),
        spell=_spell_copy,
        reads=_parts_of_split,
    ),
}
"""Each operation by its name, which files hold."""
