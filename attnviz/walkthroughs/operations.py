"""The operations of a walkthrough, each with its arithmetic, formula, shapes, one cell written out, and words.

To add an operation, put one `Operation` into `OPERATIONS`; so that files with it can be verified, put its arithmetic in
plain Python into the `OPERATIONS` of `attnviz.walkthroughs.verify.arithmetic`, which shares nothing with this module.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from attnviz.walkthroughs import arithmetic, spelling
from attnviz.walkthroughs.hand import Hand
from attnviz.walkthroughs.record import Grid
from attnviz.walkthroughs.spelling import ResultCell, factor

Labels = tuple[tuple[str, ...], tuple[str, ...]]
"""The names of a grid's rows, and of its columns."""

Fit = tuple[tuple[int, str, int | None, str], ...]
"""Pairs of sizes that must be equal: an operand's number and its side, the same of another; None stands for 1."""

MATRIX, CELLS, ARROW = "\N{MULTIPLICATION SIGN}", "⊙", "→"
"""The signs between two matrices on a sheet: of the matrix product, of one cell by cell, and of what is made.

The arrow of a norm says that what is multiplied is no longer the first operand: the formula says what it is.
"""
ROWS, COLUMNS, ONE = "rows", "columns", "one row"
ANY = 10_000
"""More operands than any step has."""
SEVERAL = 3
"""Operands of one shape, from which on they are counted and not listed."""


@dataclass(frozen=True, slots=True)
class Text:
    """What a step or a grid is.

    Attributes:
        en: a title and a sentence.
        ko: the same in Korean.
        short: what a column of it is called, in both languages; empty where it has none of its own.
        role: whether the step makes what attention works on, or something for each key of a query.
    """

    en: tuple[str, str]
    ko: tuple[str, str]
    short: tuple[str, str] = ("", "")
    role: Literal["", "before", "by key"] = ""


def _never(_: ResultCell) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation.

    Attributes:
        compute: makes its numbers from those of its operands, in their order, and from the step's number if it has one.
        operands: how many grids it takes at least and at most.
        numbered: whether it needs a number beside them.
        fit: which size of which operand must be which size of which other, or 1; or what makes that from the number of
            operands.
        labels: the names of the rows and columns that it makes, from its operands.
        formula: parts with the operands a, b, c, ..., in capitals where rows and columns are exchanged; ``{number}`` is
            the step's number, ``{factor}`` the same as a factor. A part is left out where its operand is not there.
        korean: the same where there are words in it; empty where there are none.
        for_key: the same for one query and one key, {a} what the step before made of them; empty where there is none.
        joined: in place of a formula, what stands before, between and behind all operands.
        shapes: the shapes put in where they do not stand in the formula's places, from the operands' shapes and the
            language; it gives None where they do. Without it they always do.
        signs: what stands on a sheet before the second operand and those that follow, the last sign before all that are
            left; a comma where the formula is no chain of signs.
        spell: writes the arithmetic of one cell, up to its result.
        is_phrase: whether what `spell` writes is a phrase and no sum: the result follows without a sign.
        note: what must be said of how a cell is written.
        comes_out: whether whole numbers give a number that can be written to its end: roots and powers of e mostly do
            not.
        text: a title and a sentence for a step of the same name; None where `attnviz.walkthroughs.texts` has them.
    """

    compute: Callable[..., np.ndarray]
    spell: Callable[[Hand, ResultCell], str]
    operands: tuple[int, int] = (1, 1)
    numbered: bool = False
    fit: Fit | Callable[[int], Fit] = ()
    labels: Callable[[Sequence[Grid]], Labels] = lambda operands: (operands[0].rows, operands[0].columns)
    formula: tuple[str, ...] = ()
    korean: tuple[str, ...] = ()
    for_key: str = ""
    joined: tuple[str, str, str] | None = None
    shapes: Callable[[Sequence[tuple[int, ...]], str], str | None] | None = None
    signs: tuple[str, ...] = (",",)
    is_phrase: bool = False
    note: Callable[[Hand, ResultCell], str] = lambda _, __: ""
    comes_out: Callable[[ResultCell], bool] = lambda _: True
    text: Text | None = None


# -------------------------------------------------------------------------------------- how shapes and names follow


def _so_many_times(shapes: Sequence[tuple[int, ...]], language: str) -> str | None:
    n = len(shapes)
    if n <= SEVERAL or len(set(shapes)) > 1:
        return None
    return f"[{shapes[0]} {n}개]" if language == "ko" else f"[{n} times {shapes[0]}]"


def _side_by_side(operands: Sequence[Grid]) -> Labels:
    named = all(operand.columns for operand in operands)
    return operands[0].rows, tuple(name for operand in operands for name in operand.columns) if named else ()


_SAME_SHAPE = ((1, ROWS, 0, ROWS), (1, COLUMNS, 0, COLUMNS))
_GAIN = ((1, ROWS, None, ONE), (1, COLUMNS, 0, COLUMNS))

OPERATIONS: dict[str, Operation] = {
    "add": Operation(
        compute=lambda a, b: a + b,
        operands=(2, 2),
        fit=((0, ROWS, 1, ROWS), (0, COLUMNS, 1, COLUMNS)),
        joined=("", " + ", ""),
        for_key="{a} + {b}",
        signs=("+",),
        spell=lambda hand, cell: f"{hand.write(cell.values[0])} + {hand.factor(cell.values[1])}",
    ),
    "map": Operation(
        compute=lambda a, b, *c: sum(c, a @ b),  # (T, n) x (n, m) + (1, m) -> (T, m)
        operands=(2, 3),
        fit=((0, COLUMNS, 1, ROWS), (2, ROWS, None, ONE), (2, COLUMNS, 1, COLUMNS)),
        labels=lambda operands: (operands[0].rows, operands[1].columns),
        formula=("{a} {b}", " + {c}"),
        signs=(MATRIX, "+"),
        spell=spelling.spell_map,
    ),
    "dot": Operation(
        compute=lambda a, b: a @ b.T,  # (Q, d) x (d, K) -> (Q, K)
        operands=(2, 2),
        fit=((0, COLUMNS, 1, COLUMNS),),
        labels=lambda operands: (operands[0].rows, operands[1].rows),
        formula=("{a} {B}",),
        for_key="q · k",
        signs=(MATRIX,),
        spell=lambda hand, cell: hand.products(cell.row_of(0), cell.grids[1][cell.column].tolist()),
    ),
    "general": Operation(
        compute=lambda a, b, c: a @ b @ c.T,  # (Q, d) x (d, d) x (d, K) -> (Q, K): Luong et al. 2015, equation 8
        operands=(3, 3),
        fit=((0, COLUMNS, 1, ROWS), (2, COLUMNS, 1, COLUMNS)),
        labels=lambda operands: (operands[0].rows, operands[2].rows),
        formula=("{a} {b} {C}",),
        for_key="q W k^T",
        signs=(MATRIX, MATRIX),
        spell=lambda hand, cell: hand.products(
            (cell.grids[0][cell.row] @ cell.grids[1]).tolist(), cell.grids[2][cell.column].tolist()
        ),
        note=lambda hand, cell: ("(앞의 수: {} {})" if hand.language == "ko" else "(first factors: {} {})").format(
            *cell.step.operands
        ),
    ),
    "additive": Operation(
        compute=arithmetic.additive,
        operands=(5, 5),
        fit=(
            (0, COLUMNS, 2, COLUMNS),
            (1, COLUMNS, 3, COLUMNS),
            (2, ROWS, 3, ROWS),
            (4, ROWS, None, ONE),
            (4, COLUMNS, 2, ROWS),
        ),
        labels=lambda operands: (operands[0].rows, operands[1].rows),
        formula=("tanh({a} {C} + {b} {D}) {E}",),
        for_key="v · tanh(W q + U k)",
        spell=spelling.spell_additive,
        comes_out=_never,
    ),
    "times": Operation(
        compute=lambda a, number: a * number,
        numbered=True,
        formula=("{a} {factor}",),
        for_key="{a} {factor}",
        spell=spelling.spell_times,
        comes_out=lambda cell: (
            factor(cell.walk, cell.step)[0] == "*" or math.sqrt(factor(cell.walk, cell.step)[1]).is_integer()
        ),
    ),
    "softcap": Operation(
        compute=lambda a, number: number * np.tanh(a / number),  # Gemma Team 2024, "Gemma 2", section 2
        numbered=True,
        formula=("{number} tanh({a} / {number})",),
        for_key="{number} tanh({a} / {number})",
        spell=lambda hand, cell: "{0}·tanh({1} / {0})".format(*map(hand.write, (cell.number, cell.values[0]))),
        comes_out=_never,
    ),
    "mask": Operation(
        compute=lambda a, b: np.where(b == 0, -np.inf, a),
        operands=(2, 2),
        fit=_SAME_SHAPE,
        formula=("mask({a})",),
        spell=spelling.spell_mask,
        is_phrase=True,
    ),
    "softmax": Operation(
        compute=arithmetic.softmax,
        operands=(1, 2),
        fit=((1, ROWS, None, ONE), (1, COLUMNS, None, ONE)),
        formula=("softmax({a}", " and {b}", ")"),
        for_key="softmax({a})",
        spell=spelling.spell_softmax,
        note=spelling.largest_taken_off,
        comes_out=lambda cell: len({score for score in spelling.all_scores(cell) if math.isfinite(score)}) == 1,
    ),
    "weigh": Operation(
        compute=lambda a, b: a[0][:, None] * b,  # (K, 1) * (K, d) -> (K, d), an alignment vector a key
        operands=(2, 2),
        fit=((0, ROWS, None, ONE), (0, COLUMNS, 1, ROWS)),
        labels=lambda operands: (operands[1].rows, operands[1].columns),
        formula=("{A} * {b}",),
        for_key="{a} · {b}",
        signs=(CELLS,),
        spell=lambda hand, cell: (
            f"{hand.factor(cell.grids[0][0, cell.row])}·{hand.factor(cell.row_of(1)[cell.column])}"
        ),
    ),
    "sum": Operation(
        compute=lambda a: a.sum(axis=0, keepdims=True),  # (K, d) -> (1, d)
        labels=lambda operands: ((), operands[0].columns),
        formula=("sum of the rows of {a}",),
        korean=("{a}의 행의 합",),
        shapes=lambda shapes, language: (
            "(1, {1}) 행 {0}개의 합" if language == "ko" else "sum of {0} rows of (1, {1})"
        ).format(*shapes[0]),
        spell=lambda hand, cell: hand.add(cell.column_of(0), lambda i: hand.factor(cell.column_of(0)[i])),
    ),
    "concatenate": Operation(
        compute=lambda *grids: np.hstack(grids),
        operands=(1, ANY),
        fit=lambda n: tuple((other, ROWS, 0, ROWS) for other in range(1, n)),
        labels=_side_by_side,
        joined=("[", "; ", "]"),
        shapes=_so_many_times,
        signs=(";",),
        spell=spelling.spell_concatenate,
    ),
    "norm": Operation(
        compute=arithmetic.norm,
        operands=(3, 3),
        numbered=True,
        fit=(*_GAIN, (2, ROWS, None, ONE), (2, COLUMNS, 0, COLUMNS)),
        formula=("({a} - mean) / sqrt(variance + {number})", " * {b}", " + {c}"),
        korean=("({a} - 평균) / sqrt(분산 + {number})", " * {b}", " + {c}"),
        signs=(f"{ARROW} {CELLS}", "+"),
        spell=spelling.spell_norm,
        comes_out=_never,
    ),
    "rms_norm": Operation(
        compute=arithmetic.rms_norm,
        operands=(2, 2),
        numbered=True,
        fit=_GAIN,
        formula=("{a} / sqrt(mean square + {number})", " * {b}"),
        korean=("{a} / sqrt(제곱의 평균 + {number})", " * {b}"),
        signs=(f"{ARROW} {CELLS}",),
        spell=spelling.spell_rms_norm,
        comes_out=_never,
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
        comes_out=_never,
    ),
    "gelu_tanh": Operation(
        compute=arithmetic.gelu_tanh,
        formula=("{a} / 2 * (1 + tanh(sqrt(2 / pi) ({a} + 0.044715 {a}^3)))",),
        spell=spelling.spell_gelu_tanh,
        comes_out=_never,
    ),
    "silu": Operation(
        compute=arithmetic.silu,
        formula=("{a} / (1 + exp(-{a}))",),
        spell=lambda hand, cell: f"{hand.factor(cell.values[0])} / (1 + exp({hand.write(-cell.values[0])}))",
        comes_out=_never,
    ),
    "product": Operation(
        compute=lambda a, b: a * b,  # Shazeer 2020, "GLU Variants Improve Transformer", equation 5
        operands=(2, 2),
        fit=_SAME_SHAPE,
        formula=("{a} * {b}",),
        signs=(CELLS,),
        spell=lambda hand, cell: f"{hand.factor(cell.values[0])}·{hand.factor(cell.values[1])}",
    ),
    "row": Operation(
        compute=arithmetic.row,
        numbered=True,
        labels=lambda operands: ((), operands[0].columns),
        formula=("row {number} of {a}",),
        korean=("{a}의 {number}행",),
        spell=spelling.spell_row,
    ),
    "tanh": Operation(
        compute=np.tanh,
        formula=("tanh({a})",),
        spell=lambda hand, cell: f"tanh({hand.write(cell.values[0])})",
        comes_out=_never,
    ),
    "gru": Operation(
        compute=arithmetic.gru,
        operands=(6, 6),
        fit=(
            (0, ROWS, 1, ROWS),
            (0, COLUMNS, 2, ROWS),
            (3, ROWS, None, ONE),
            (3, COLUMNS, 2, COLUMNS),
            (1, COLUMNS, 4, ROWS),
            (5, ROWS, None, ONE),
            (5, COLUMNS, 4, COLUMNS),
            (2, COLUMNS, 4, COLUMNS),
        ),
        labels=lambda operands: (operands[1].rows, operands[1].columns),
        formula=("GRU({a}, {b})",),
        spell=spelling.spell_gru,
        note=spelling.gates_of,
        comes_out=_never,
    ),
    "split": Operation(
        compute=arithmetic.split,
        operands=(2, 2),
        numbered=True,
        fit=((1, ROWS, None, ONE), (1, COLUMNS, None, ONE)),
        labels=lambda operands: (operands[0].rows, ()),
        formula=("split({a}, {b})",),
        spell=spelling.spell_split,
    ),
}
"""Each operation by its name, which files hold."""
