"""Attention written down step by step, in double precision, from the input of the projections to the context."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float64

from attnviz.attention import Note
from attnviz.errors import RecordError, SelectionError
from attnviz.text.display import clip, visible
from attnviz.text.suggest import suggest
from attnviz.walkthroughs.hand import Hand
from attnviz.walkthroughs.operations import OPERATIONS, ResultCell
from attnviz.walkthroughs.record import CalculationStep, Grid, Walkthrough
from attnviz.walkthroughs.settings import Score

SCORE_WEIGHTS: Mapping[Score, tuple[str, ...]] = {
    "dot": (),
    "scaled": (),
    "general": ("W",),
    "additive": ("W", "U", "v"),
}
"""The symbols of the weight grids that each score function needs; v of ``additive`` is a single row."""

MOST_LISTED = 16  # rows that an error message lists


class Calculation:
    """A calculation while it is written down: the given grids, and the steps that compute further grids."""

    def __init__(self) -> None:
        self.grids: dict[str, Grid] = {}
        self.steps: list[CalculationStep] = []

    def give(self, name: str, grid: Grid) -> str:
        """Write down a given grid; return its name.

        Raises RecordError: the name is taken, or the grid is empty or has a number that is not finite.
        """
        if name in self.grids:
            raise RecordError(f"there are two grids {name}")
        if not grid.values.size:
            raise RecordError(f"{name} is empty: its shape is {grid.values.shape}")
        for i, j in np.argwhere(~np.isfinite(grid.values)):
            raise RecordError(
                f"{name} must hold finite numbers: row {i}, column {j} is {grid.values[i, j]}"
            )
        self.grids[name] = grid
        return name

    def step(
        self,
        name: str,
        result: str,
        operation: str,
        *operands: str,
        number: float | None = None,
        rows: tuple[str, ...] | None = None,
    ) -> str:
        """Compute a grid from earlier grids, and write down the step; return the name of the result.

        The arguments are the fields of `CalculationStep`; `rows` replaces the row names that the operation gives.
        Raises RecordError: the name is taken, or the shapes do not fit together.
        """
        if result in self.grids:
            raise RecordError(f"there are two grids {result}")
        step = CalculationStep(
            name=name, result=result, operation=operation, operands=operands, number=number
        )
        values = compute(step, self.grids)
        labels = OPERATIONS[operation].labels([self.grids[operand] for operand in operands])
        row_labels = labels[0] if rows is None else rows
        self.grids[result] = Grid(values=values, rows=row_labels, columns=labels[1])
        self.steps.append(step)
        return result

    def project(
        self,
        name: str,
        result: str,
        x: str,
        weights: Mapping[str, Grid],
        rows: tuple[str, ...] | None = None,
    ) -> str:
        """Write down the weights of a projection (and its bias, if there is one), and project x; as in `step`."""
        symbols = [self.give(symbol, grid) for symbol, grid in weights.items()]
        return self.step(name, result, "projection", x, *symbols, rows=rows)

    # Q = X Wq + bq, K = X Wk + bk, V = X Wv + bv
    def write_inputs(
        self,
        x: Grid,
        weights: Callable[[str], Mapping[str, Grid]],
        row: int | None,
        names: tuple[str, ...],
    ) -> str:
        """Write down queries, keys and values projected from the input [token, d_model]; return the queries' name.

        `weights` takes the letter ``q``, ``k`` or ``v`` and returns the weights of that projection, with its bias if
        there is one. If it returns nothing, the projection is left out. `row` is the index of the query, None for all
        queries; `names` are the names of all rows.
        """
        self.give("X", x)
        queries, x_of_query = "Q", "X"
        if row is not None:  # first select this row x of X; its query q is a single row too
            queries, x_of_query = "q", "x"
            self.step("row", "x", "row", "X", number=float(row), rows=names[row : row + 1])
        for step, source, result in (
            ("query", x_of_query, queries),
            ("keys", "X", "K"),
            ("values", "X", "V"),
        ):
            projection = weights(result.lower())
            if projection:
                self.project(step, result, source, projection)
        return queries

    # context = softmax(score(q, K)) V
    def write_attention(
        self,
        terms: Terms | None = None,
        query: str = "q",
        keys: str = "K",
        values: str | None = "V",
        suffix: str = "",
    ) -> str:
        """Write down the attention of queries, keys and values already written down; return the name of the context.

        Shapes: queries [query, d], keys [key, d], values [key, d_v]. A single query gets an alignment vector per key,
        whose sum is the context; several queries get their contexts from one matrix product. Without terms the score is
        the scaled dot product; without values the calculation ends at the weights. The suffix is added to every name.
        Raises RecordError: shapes do not fit, weights are missing, or all keys of a query are masked.
        """
        terms = terms or Terms()
        scores = self._write_scores(terms, query, keys, suffix)
        if terms.softcap is not None:
            capped = f"capped{suffix}"
            scores = self.step("softcap", capped, "softcap", scores, number=terms.softcap)
        if terms.bias is not None:
            bias = self.give(f"B{suffix}", terms.bias)
            scores = self.step("bias", f"biased{suffix}", "add", scores, bias)
        if terms.mask is not None:
            mask = self.give(f"mask{suffix}", terms.mask)
            scores = self.step("mask", f"masked{suffix}", "mask", scores, mask)
        sink = [] if terms.sink is None else [self.give(f"sink{suffix}", terms.sink)]
        weights = self.step("softmax", f"weights{suffix}", "softmax", scores, *sink)
        return weights if values is None else self.write_context(weights, values, suffix)

    def write_context(self, weights: str = "weights", values: str = "V", suffix: str = "") -> str:
        """Write down the weighted sum of the values, from weights already written down; see `write_attention`."""
        if len(self.grids[weights].values) > 1:
            return self.step("context", f"context{suffix}", "projection", weights, values)
        alignment = self.step("alignment", f"alignment{suffix}", "weigh", weights, values)
        return self.step(
            "context", f"context{suffix}", "sum", alignment, rows=self.grids[weights].rows
        )

    def _write_scores(self, terms: Terms, query: str, keys: str, suffix: str) -> str:
        """Write down the score of each query and key, scaled if needed; return the name of the scores."""
        score, weights = terms.score, []
        for name in SCORE_WEIGHTS[score]:
            if name not in terms.weights:
                raise RecordError(f"the score {score} needs a grid {name}")
            weights.append(self.give(name + suffix, terms.weights[name]))
        operands = (query, *weights, keys) if score == "general" else (query, keys, *weights)
        scores = self.step("scores", f"scores{suffix}", score if weights else "dot", *operands)
        number = terms.scaling
        if number is None:
            number = self.grids[query].values.shape[1] ** -0.5
        if score != "scaled" or number == 1:
            return scores
        return self.step("scaled", f"scaled{suffix}", "times", scores, number=number)

    def finish(
        self,
        title: Note,
        *,
        query: int | None = None,
        notes: Sequence[Note] = (),
        **of: Any,
    ) -> Walkthrough:
        """Return the finished walkthrough.

        `query` is the row that is followed, None for all rows; `of` has further fields of `Walkthrough`, such as the
        model and the layer.
        """
        return Walkthrough(
            title=title,
            grids=dict(self.grids),
            steps=tuple(self.steps),
            query=query,
            notes=tuple(notes),
            **of,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The terms of the scores between queries and keys."""

    score: Score = "scaled"  # the score function; only ``scaled`` is scaled
    # the factor of the scores; None is 1 / sqrt(d), and with 1 there is no step for it
    scaling: float | None = None
    # the weights of the score function, by the names in `SCORE_WEIGHTS`
    weights: Mapping[str, Grid] = field(default_factory=dict)
    softcap: float | None = None  # the limit of the absolute scores, by tanh
    bias: Grid | None = None  # added to the scores [query, key]
    mask: Grid | None = None  # 1 if a query may attend to a key, 0 if not [query, key]
    sink: Grid | None = None  # an extra score, whose weight goes to no key [1, 1]


def largest_difference(a: np.ndarray, b: np.ndarray) -> float:
    """Return the largest absolute difference of two grids; equal infinities differ by 0.

    Raises RecordError: the shapes differ.
    """
    if a.shape != b.shape:
        raise RecordError(f"{a.shape} numbers cannot be compared with {b.shape}")
    with np.errstate(invalid="ignore"):
        return float(np.where(a == b, 0.0, np.abs(a - b)).max(initial=0.0))


def find_row(rows: Sequence[Sequence[str]], wanted: str | int) -> int:
    """Return the index of the row that the user means.

    `rows` has the spellings of each row, the displayed one first. `wanted` is a spelling, or a number counted from 0,
    negative from the end. Raises SelectionError: there is no such row, or there are several.
    """
    n = len(rows)
    if isinstance(wanted, str):
        spelling = visible(wanted.strip())
        matches = [i for i, row in enumerate(rows) if spelling in row]
        if not matches:
            matches = [
                i for i, row in enumerate(rows) if spelling.casefold() in map(str.casefold, row)
            ]
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise SelectionError(
                f"several queries are '{clip(spelling, 40)}': choose one by its number: "
                f"{_list_rows(rows, matches)}"
            )
        if not re.fullmatch(r"-?[0-9]{1,9}", spelling):
            words = [word for row in rows for word in row]
            suggestion = suggest(spelling, words, [_list_rows(rows, range(n))])
            raise SelectionError(f"there is no query '{clip(spelling, 40)}'{suggestion}")
        wanted = int(spelling)
    if not -n <= wanted < n:
        raise SelectionError(f"there is no query {wanted}: there are {_list_rows(rows, range(n))}")
    return wanted % n


def _list_rows(rows: Sequence[Sequence[str]], numbers: Sequence[int]) -> str:
    labels = [" ".join([str(number), *rows[number][:1]]) for number in numbers]
    if len(labels) > MOST_LISTED:
        labels[MOST_LISTED - 2 : -1] = ["…"]
    return clip(", ".join(labels), 400)


def compute(step: CalculationStep, grids: Mapping[str, Grid]) -> Float64[np.ndarray, "row column"]:
    """Return the result of a step, computed from the earlier grids.

    Raises RecordError: the operation or an operand is unknown, shapes do not fit, or all keys of a row are masked.
    """
    if step.operation not in OPERATIONS:
        raise RecordError(f"step {step.name}: there is no operation {step.operation!r}")
    operation, where = OPERATIONS[step.operation], f"step {step.name} ({step.operation})"
    for name in step.operands:
        if name not in grids:
            raise RecordError(f"{where} is made from {name}, which is not there")
    fewest, most = operation.n_operands
    if not fewest <= len(step.operands) <= most:
        expected = f"{fewest}" if fewest == most else f"{fewest} to {most}"
        raise RecordError(f"{where} has {len(step.operands)} operands, not {expected}")
    if operation.numbered != (step.number is not None):
        requirement = "needs a number" if operation.numbered else "takes no number"
        raise RecordError(f"{where} {requirement} beside its grids")
    operands = [grids[name].values for name in step.operands]
    if not operation.fits(*(values.shape for values in operands)):
        shapes = [f"{name} {grids[name].values.shape}" for name in step.operands]
        raise RecordError(f"{where}: these shapes do not fit together: {', '.join(shapes)}")
    number = (step.number,) if operation.numbered else ()
    with np.errstate(over="ignore", invalid="ignore"):  # checked below, with a clearer message
        result = np.asarray(operation.compute(*operands, *number), dtype=np.float64)
    for row, column in np.argwhere(np.isnan(result) | (result == np.inf)):
        raise RecordError(
            f"step {step.name} leaves the range of numbers: row {row}, column {column} is not finite"
        )
    return result


def spell_out(
    walk: Walkthrough,
    step: CalculationStep,
    row: int,
    column: int,
    digits: int,
) -> str:
    """Return the arithmetic of one cell, such as "10·5 + 5·0 + 10·1 = 60"; "≈" if a number is rounded."""
    operation, cell = OPERATIONS[step.operation], ResultCell(walk, step, row, column)
    hand = Hand(digits=digits, numbers=[])
    arithmetic = operation.spell(hand, cell)
    result = hand.write(float(walk.grids[step.result].values[row, column]))
    sign = "=" if operation.is_exact and hand.is_exact() else "≈"
    return f"{arithmetic} {sign} {result}"
