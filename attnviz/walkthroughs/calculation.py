"""Attention written down step by step, in double precision: from what makes query, keys and values to the context."""

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
"""The grids of weights that each way to score needs, by their symbols; of ``additive`` v is one row."""

MOST_LISTED = 16  # rows that a refusal names one by one


class Calculation:
    """A calculation while it is written down: grids that are given, and steps that make others from them."""

    def __init__(self) -> None:
        self.grids: dict[str, Grid] = {}
        self.steps: list[CalculationStep] = []

    def give(self, name: str, grid: Grid) -> str:
        """Write down given numbers, by name. Raises RecordError: the name is taken, or a number missing or infinite."""
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
        """Compute a grid from those before it; return its name.

        The fields of `CalculationStep`, and names of rows. Raises RecordError: the name is taken, or shapes clash.
        """
        if result in self.grids:
            raise RecordError(f"there are two grids {result}")
        step = CalculationStep(
            name=name, result=result, operation=operation, operands=operands, number=number
        )
        values = compute(step, self.grids)
        labels = OPERATIONS[operation].labels([self.grids[operand] for operand in operands])
        own_rows = labels[0] if rows is None else rows
        self.grids[result] = Grid(values=values, rows=own_rows, columns=labels[1])
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
        """Write down a projection's weights, and its bias if it has one, and what it makes of x; as in `step`."""
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

        By the letter ``q``, ``k`` or ``v`` come weights, and a bias if there is one. The row is the query's, None for
        all.
        """
        self.give("X", x)
        queries, x_of_query = "Q", "X"
        if row is not None:
            queries, x_of_query = "q", "x"
            self.step("row", "x", "row", "X", number=float(row), rows=names[row : row + 1])
        for step, given, result in (
            ("query", x_of_query, queries),
            ("keys", "X", "K"),
            ("values", "X", "V"),
        ):
            found = weights(result.lower())
            if found:
                self.project(step, result, given, found)
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
        """Write down the attention of queries, keys and values already there; return the name of the context.

        Of queries [query, d], keys [key, d] and values [key, d_v]; one query is followed through an alignment vector
        for each key, whose sum is the context, several are walked at once. Without terms it is the scaled dot product,
        without values it ends at the weights; a suffix follows every name. Raises RecordError: shapes that do not fit,
        weights that are missing, or a query whose keys are all masked.
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
        """Write down what weights already there make of the values; the rest is as in `write_attention`."""
        if len(self.grids[weights].values) > 1:
            return self.step("context", f"context{suffix}", "projection", weights, values)
        alignment = self.step("alignment", f"alignment{suffix}", "weigh", weights, values)
        return self.step(
            "context", f"context{suffix}", "sum", alignment, rows=self.grids[weights].rows
        )

    def _write_scores(self, terms: Terms, query: str, keys: str, suffix: str) -> str:
        """Write down how well each query fits each key; return the name of the scores."""
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
        title: Note | str,
        *,
        query: int | None = None,
        notes: Sequence[Note | str] = (),
        **of: Any,
    ) -> Walkthrough:
        """Return the finished walkthrough of the row `query`, None for all; `of` has the model and the place."""
        return Walkthrough(
            title=_as_note(title),
            grids=dict(self.grids),
            steps=tuple(self.steps),
            query=query,
            notes=tuple(map(_as_note, notes)),
            **of,
        )


def _as_note(note: Note | str) -> Note:
    return Note.of("text", text=note) if isinstance(note, str) else note


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The terms of the scores between queries and keys."""

    score: Score = "scaled"  # how a query and a key make a score; only ``scaled`` is scaled
    # what the score is multiplied with; None is 1 / sqrt(d), and 1 is no step
    scaling: float | None = None
    # the weights of a score, by the names in `SCORE_WEIGHTS`
    weights: Mapping[str, Grid] = field(default_factory=dict)
    softcap: float | None = None  # where scores are squeezed to
    bias: Grid | None = None  # what is added to the scores [query, key]
    mask: Grid | None = None  # 1 where a query may look, 0 where it may not [query, key]
    sink: Grid | None = None  # one score for looking at nothing [1, 1]


def largest_difference(one: np.ndarray, other: np.ndarray) -> float:
    """Return the largest absolute difference of two grids, 0 between infinities. Raises RecordError: two shapes."""
    if one.shape != other.shape:
        raise RecordError(f"{one.shape} numbers cannot be compared with {other.shape}")
    with np.errstate(invalid="ignore"):
        return float(np.where(one == other, 0.0, np.abs(one - other)).max(initial=0.0))


def find_row(rows: Sequence[Sequence[str]], wanted: str | int) -> int:
    """Return the number of the row that a person means, of rows with these spellings, first as each is shown.

    What is wanted is a spelling, or a number counted from 0, negative from the end. Raises SelectionError: there is
    none, or there are several.
    """
    n = len(rows)
    if isinstance(wanted, str):
        typed = visible(wanted.strip())
        found = [i for i, row in enumerate(rows) if typed in row]
        if not found:
            found = [i for i, row in enumerate(rows) if typed.casefold() in map(str.casefold, row)]
        if len(found) == 1:
            return found[0]
        if found:
            raise SelectionError(
                f"several queries are '{clip(typed, 40)}': choose one by its number: "
                f"{_list_rows(rows, found)}"
            )
        if not re.fullmatch(r"-?[0-9]{1,9}", typed):
            words = [word for row in rows for word in row]
            there = suggest(typed, words, [_list_rows(rows, range(n))])
            raise SelectionError(f"there is no query '{clip(typed, 40)}'{there}")
        wanted = int(typed)
    if not -n <= wanted < n:
        raise SelectionError(f"there is no query {wanted}: there are {_list_rows(rows, range(n))}")
    return wanted % n


def _list_rows(rows: Sequence[Sequence[str]], numbers: Sequence[int]) -> str:
    shown = [" ".join([str(number), *rows[number][:1]]) for number in numbers]
    if len(shown) > MOST_LISTED:
        shown[MOST_LISTED - 2 : -1] = ["…"]
    return clip(", ".join(shown), 400)


def compute(step: CalculationStep, grids: Mapping[str, Grid]) -> Float64[np.ndarray, "row column"]:
    """Return the result of a step, from the grids before it.

    Raises RecordError: there is no such operation or operand, shapes that do not fit, or a row all masked.
    """
    if step.operation not in OPERATIONS:
        raise RecordError(f"step {step.name}: there is no operation {step.operation!r}")
    operation, where = OPERATIONS[step.operation], f"step {step.name} ({step.operation})"
    for name in step.operands:
        if name not in grids:
            raise RecordError(f"{where} is made from {name}, which is not there")
    least, most = operation.n_operands
    if not least <= len(step.operands) <= most:
        raise RecordError(f"{where} has {len(step.operands)} operands, not {least}")
    if operation.numbered != (step.number is not None):
        needs = "needs a number" if operation.numbered else "takes no number"
        raise RecordError(f"{where} {needs} beside its grids")
    operands = [grids[name].values for name in step.operands]
    if not operation.fits(*(values.shape for values in operands)):
        shapes = [f"{name} {grids[name].values.shape}" for name in step.operands]
        raise RecordError(f"{where}: these shapes do not fit together: {', '.join(shapes)}")
    number = (step.number,) if operation.numbered else ()
    with np.errstate(over="ignore", invalid="ignore"):  # refused below, in our own words
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
    *,
    language: str = "en",
) -> str:
    """Return the arithmetic of one cell, "10·5 + 5·0 + 10·1 = 60"; "≈" where a number is rounded."""
    operation, cell = OPERATIONS[step.operation], ResultCell(walk, step, row, column)
    hand = Hand(digits=digits, language=language, numbers=[])
    written = operation.spell(hand, cell)
    result = hand.write(float(walk.grids[step.result].values[row, column]))
    sign = "=" if operation.is_exact and hand.is_exact() else "≈"
    return f"{written} {sign} {result}"
