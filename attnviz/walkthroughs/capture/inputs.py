"""What query, keys and values are made of, written down: the layer's input, and the head's part of each projection."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from attnviz.attention import Note
from attnviz.capture.observers import Batch
from attnviz.capture.projections import Embedded
from attnviz.walkthroughs.calculation import Calculation
from attnviz.walkthroughs.capture.rotations import Made, makers
from attnviz.walkthroughs.capture.run import HeadRun, numbers
from attnviz.walkthroughs.record import Grid

LARGEST_MAP = 2**22
"""How many numbers a projection may have to be written down: 1,024 by 4,096 are, those of very large models are not."""

CLOSE = 1e-4
"""How far a projection that was found may be from what it seems to have made, relative to its largest number where
that exceeds 1: in half precision rounding makes more, and then the query itself is given."""

STEPS = ("query", "keys", "values")
LETTERS = ("q", "k", "v")


@runtime_checkable  # it is how they are told apart
class HomeBuilt(Protocol):
    """A source whose model is home-built: it knows what the first layer reads."""

    def embedded(self, batch: Batch) -> tuple[Tensor, Tensor] | None:
        """The vectors of the first sentence's words, and those of their positions; None where no layer reads words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadProjection:
    """One head's part of a projection, and what the whole projection was given."""

    x: Float64[np.ndarray, "token d_model"]
    weight: Float64[np.ndarray, "d_model d_k"]
    bias: Float64[np.ndarray, " d_k"] | None


class Inputs:
    """What projections were given, written down once each: ``X`` of all words, ``x`` its row, ``M`` of other words."""

    def __init__(self, calculation: Calculation, run: HeadRun) -> None:
        self._calculation, self._walked = calculation, run
        self._there: dict[str, Float64[np.ndarray, "token d_model"]] = {}
        self._made: list[tuple[Float64[np.ndarray, "token d_model"], str, str]] = []

    @cached_property
    def makers(self) -> tuple[Made | None, Made | None, Made | None]:
        """How query, keys and values of all heads are made: found once for all."""
        return makers(self._walked.keep)

    def know(self, whole: Float64[np.ndarray, "token d_model"], name: str, row_name: str) -> None:
        """Name what a projection may be given, and its row of the query that is followed, made already or not."""
        self._made.append((whole, name, row_name))

    def write(self, whole: Float64[np.ndarray, "token d_model"], *, of_query: bool) -> str | None:
        """Write down the vectors that a projection was given; their name comes back, None where it is taken."""
        run = self._walked
        across, one = run.kind == "cross", of_query and run.row is not None
        for made, every, row_name in self._made:
            if np.array_equal(made, whole):
                return self._row_of(every, row_name) if one else every
        if one and not across:  # all words, and then the row of the one that is followed
            all_words = self.write(whole, of_query=False)
            return None if all_words is None else self._row_of(all_words, "x")
        name = "x" if one else "M" if across and not of_query else "X"
        if name in self._there:
            return name if np.array_equal(self._there[name], whole) else None
        self._there[name] = whole
        rows = run.looking if of_query and across else run.keys
        embedded = None if across else _embedded(run, whole)
        if embedded is not None:
            return self._write_embedded(name, embedded, rows)
        row = slice(run.row, run.row + 1) if one and run.row is not None else slice(None)
        return self._calculation.give(name, Grid(values=whole[row], rows=rows))

    def _row_of(self, every: str, name: str) -> str:
        """Write down the row of the one that is followed, unless it is there."""
        run, c = self._walked, self._calculation
        if name in c.grids:
            return name
        assert run.row is not None  # noqa: S101 - one word is followed
        return c.step("row", name, "row", every, number=float(run.row), rows=run.looking)

    def _write_embedded(self, name: str, embedded: Embedded, rows: tuple[str, ...]) -> str:
        """Write down the embeddings of word, position and segment, their sum, and the norm where there is one."""
        c, sum_of = self._calculation, ""
        for letter, part in zip("EPS", embedded.parts, strict=False):
            c.give(letter, Grid(values=numbers(part), rows=rows))
            is_last = part is embedded.parts[-1] and embedded.norm is None
            sum_of = c.step("input", name if is_last else sum_of + letter, "add", sum_of, letter) if sum_of else letter
        if embedded.norm is None:
            return sum_of
        gain, shift, epsilon = embedded.norm
        c.give("gain", Grid(values=numbers(gain)[None]))
        c.give("shift", Grid(values=numbers(shift)[None]))
        return c.step("input_norm", name, "norm", sum_of, "gain", "shift", number=epsilon)


def write_projections(calculation: Calculation, run: HeadRun, inputs: Inputs) -> list[Note]:
    """Write down query, keys and values, made by the head's projections where these are found; notes come back."""
    missing = []
    heads = (run.head, run.group, run.group)
    row_names = (run.looking, run.keys, run.keys)
    for name, own, rows, made, head, step, letter in zip(
        run.names, run.own(), row_names, inputs.makers, heads, STEPS, LETTERS, strict=True
    ):
        row = run.row if step == "query" else None
        part = None if made is None else part_of(made, head, row)
        x = None if part is None else inputs.write(part.x, of_query=step == "query")
        if made is None or part is None or x is None:
            missing.append(name.removesuffix(run.suffix))
            calculation.give(name, Grid(values=numbers(own), rows=rows))
            continue
        weights = {f"W{letter}{run.suffix}": Grid(values=part.weight)}
        weights |= {} if part.bias is None else {f"b{letter}{run.suffix}": Grid(values=part.bias[None])}
        after = _after_projection(calculation, run, made, row, letter)
        names = [*(name.removesuffix(run.suffix) + kind + run.suffix for kind, *_ in after), name]
        calculation.project(step, names[0], x, weights, rows)
        for before, result, (_, then, operation, operands, number) in zip(names, names[1:], after, strict=False):
            calculation.step(then, result, operation, before, *operands, number=number)
    notes = [Note("rotated")] if "angles" in calculation.grids else []
    *names, last = missing or [""]
    if names:
        notes.append(Note.of("all_taken_as_given", names=", ".join(names), last=last))
    elif last:
        notes.append(Note.of("taken_as_given", names=last))
    return notes


def _after_projection(
    calculation: Calculation, run: HeadRun, made: Made, row: int | None, letter: str
) -> list[tuple[str, str, str, list[str], float]]:
    """What follows a projection: what its result is called before, then step, operation, operands and number."""
    after: list[tuple[str, str, str, list[str], float]] = []
    norm, rotation, kind = made.norm, made.rotation, "_raw"

    def given(name: str, values: np.ndarray, rows: tuple[str, ...] = ()) -> str:
        """The same for all heads: written down once."""
        return name if name in calculation.grids else calculation.give(name, Grid(values=values, rows=rows))

    if norm is not None:
        operands = [given(f"gain_{letter}", numbers(norm.gain)[None])]
        if norm.operation == "norm":
            operands.append(given(f"shift_{letter}", numbers(norm.shift)[None]))
        after.append((kind, "head_norm", norm.operation, operands, norm.epsilon))
        kind = "_normed"
    if rotation is not None:
        if rotation.scale != 1:
            after.append((kind, "rotation_scale", "times", [], rotation.scale))
            kind = "_larger"
        angles = given("angles", rotation.angles, run.keys)
        if row is not None and "angle" not in calculation.grids:
            calculation.step("angle", "angle", "row", angles, number=float(row), rows=run.looking)
        after.append((kind, "rotation", "rotate", [angles if row is None else "angle"], float(rotation.distance)))
    return after


def part_of(made: Made, head: int, row: int | None) -> HeadProjection | None:
    """One head's part of a projection, if it is small enough and made what it should, or this row of it."""
    found, own = made.projection, made.before[0, head]
    d = own.shape[1]
    columns = slice(head * d, head * d + d)
    if found.weight[:, columns].numel() > LARGEST_MAP:
        return None
    part = HeadProjection(
        x=numbers(found.given),
        weight=numbers(found.weight[:, columns]),
        bias=None if found.bias is None else numbers(found.bias[columns]),
    )
    again, theirs = part.x @ part.weight + (0.0 if part.bias is None else part.bias), numbers(own)
    off = np.abs(again - theirs)[slice(None) if row is None else slice(row, row + 1)].max(initial=0.0)
    return part if off <= CLOSE * max(1.0, np.abs(again).max(initial=0.0)) else None


def _embedded(run: HeadRun, x: Float64[np.ndarray, "token d_model"]) -> Embedded | None:
    """What the layer's input is the sum of, where it is one of embeddings."""
    parts = run.source.embedded(run.batch) if isinstance(run.source, HomeBuilt) else None
    if parts is None:
        return run.keep.embedded(torch.from_numpy(x))
    return Embedded(parts=parts, norm=None) if np.array_equal(numbers(parts[0] + parts[1]), x) else None
