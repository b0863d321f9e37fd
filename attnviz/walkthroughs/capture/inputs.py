"""The projections to a layer's queries, keys and values, their inputs, and the rotations that follow.

Rotary positions turn pairs of numbers by angles that grow with the position (Su et al. 2021, "RoFormer", equations 13
to 15). No family is named: the angles are found from what went in and what came out.
"""

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
from attnviz.capture.projections import (
    Embedded,
    Projection,
    ProjectionCollector,
    is_linear,
    projection_of,
)
from attnviz.walkthroughs.arithmetic import pairs, rotate
from attnviz.walkthroughs.calculation import Calculation
from attnviz.walkthroughs.capture.run import HeadRun, numbers
from attnviz.walkthroughs.record import Grid

LARGEST_PROJECTION = 2**22  # numbers of a projection that is written down: 1,024 by 4,096

# How far the numbers of a projection that was found may be from the model's own, relative to the largest number above
# 1. In half precision they are farther, and the query itself is given.
CLOSE = 1e-4
ROTATION_CLOSE = 1e-4  # the same of rotated numbers
STEADY = 1e-2  # how far an angle may be from position times frequency, in radians

Vectors = Float64[np.ndarray, "token d_model"]
Heads = Float64[np.ndarray, "head token d"]


@runtime_checkable  # it is how they are told apart
class HomeBuilt(Protocol):
    """A source whose model is home-built: it knows what the first layer reads."""

    def embedded(self, batch: Batch) -> tuple[Tensor, Tensor] | None:
        """The vectors of the first sentence's words, and those of their positions; None where no layer reads words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """The rotation of the rows of a layer's heads by rotary positions."""

    angles: Float64[np.ndarray, "token pair"]  # in radians
    distance: int  # between the two columns of a pair


@dataclass(frozen=True, slots=True, kw_only=True)
class Maker:
    """The projection and rotation that make a layer's queries, keys or values."""

    projection: Projection
    before: Tensor  # what the projection makes of it: [batch, head, token, d]
    rotation: Rotation | None = None  # where one follows


class Inputs:
    """The inputs of projections, each written down once: ``X``, its row ``x``, and ``M`` of another sentence."""

    def __init__(self, calculation: Calculation, run: HeadRun) -> None:
        self._calculation, self._run = calculation, run
        self._written: dict[str, Vectors] = {}
        self._known: list[tuple[Vectors, str, str]] = []

    @cached_property
    def makers(self) -> list[Maker | None]:
        """The makers of query, keys and values of all heads."""
        return makers(self._run.keep)

    def know(self, vectors: Vectors, name: str, row_name: str) -> None:
        """Name vectors that a projection may read and that are a grid already, and their row of the query."""
        self._known.append((vectors, name, row_name))

    def write(self, vectors: Vectors, *, of_query: bool) -> str | None:
        """Write down the input of a projection; return its name, None where the name is taken."""
        run = self._run
        is_cross, is_one = run.kind == "cross", of_query and run.row is not None
        for known, name, row_name in self._known:
            if np.array_equal(known, vectors):
                return self._row(name, row_name) if is_one else name
        if is_one and not is_cross:  # all words, and then the row of the followed one
            every = self.write(vectors, of_query=False)
            return None if every is None else self._row(every, "x")
        name = "x" if is_one else "X"
        if is_cross and not of_query:
            name = "M"
        if name in self._written:
            return name if np.array_equal(self._written[name], vectors) else None
        self._written[name] = vectors
        return self._write_new(name, vectors, of_query=of_query)

    def _write_new(self, name: str, vectors: Vectors, *, of_query: bool) -> str:
        run = self._run
        if run.kind == "cross":
            rows = run.query_names if of_query else run.keys
            if of_query and run.row is not None:
                vectors = vectors[run.row : run.row + 1]
            return self._calculation.give(name, Grid(values=vectors, rows=rows))
        embedded = _find_embedding(run, vectors)
        if embedded is not None:
            return self._write_embedded(name, embedded, run.keys)
        return self._calculation.give(name, Grid(values=vectors, rows=run.keys))

    def _row(self, every: str, name: str) -> str:
        run, calculation = self._run, self._calculation
        if name in calculation.grids:
            return name
        assert run.row is not None
        row = float(run.row)
        return calculation.step("row", name, "row", every, number=row, rows=run.query_names)

    def _write_embedded(self, name: str, embedded: Embedded, rows: tuple[str, ...]) -> str:
        """Write down the sum of the embeddings of words E, positions P and segments S."""
        calculation, total = self._calculation, ""
        for letter, part in zip("EPS", embedded.parts, strict=False):
            calculation.give(letter, Grid(values=numbers(part), rows=rows))
            if not total:
                total = letter
                continue
            is_last = part is embedded.parts[-1] and embedded.norm is None
            result = name if is_last else total + letter
            total = calculation.step("input", result, "add", total, letter)
        if embedded.norm is None:
            return total
        gain, shift, epsilon = embedded.norm
        calculation.give("gain", Grid(values=numbers(gain)[None]))
        calculation.give("shift", Grid(values=numbers(shift)[None]))
        return calculation.step("input_norm", name, "norm", total, "gain", "shift", number=epsilon)


def write_projections(calculation: Calculation, run: HeadRun, inputs: Inputs) -> list[Note]:
    """Write down query, keys and values, made by the head's projections where these are found; return notes."""
    given = []
    steps = (("query", "q", run.head), ("keys", "k", run.key_head), ("values", "v", run.key_head))
    for (step, letter, head), name, own, maker in zip(
        steps, run.names, run.own(), inputs.makers, strict=True
    ):
        is_query = step == "query"
        row = run.row if is_query else None
        found = None if maker is None else part_of(maker, head, row)
        x = None if found is None else inputs.write(found[0], of_query=is_query)
        if maker is None or found is None or x is None:
            given.append(name.removesuffix(run.suffix))
            calculation.give(name, own)
            continue
        symbols = (f"W{letter}{run.suffix}", f"b{letter}{run.suffix}")
        weights = dict(zip(symbols, found[1], strict=False))
        _write_projection(calculation, run, maker, (step, name), x, weights)
    notes = [Note("rotated")] if "angles" in calculation.grids else []
    if given:
        notes.append(Note.of("taken_as_given", names=", ".join(given)))
    return notes


def _write_projection(
    calculation: Calculation,
    run: HeadRun,
    maker: Maker,
    names: tuple[str, str],
    x: str,
    weights: dict[str, Grid],
) -> None:
    """Write down a projection, and the rotation that follows it."""
    step, name = names
    is_query, rotation = step == "query", maker.rotation
    rows = run.query_names if is_query else run.keys
    if rotation is None:
        calculation.project(step, name, x, weights, rows)
        return
    angles = "angles"
    if angles not in calculation.grids:
        calculation.give(angles, Grid(values=rotation.angles, rows=run.keys))
    if is_query and run.row is not None:
        angles, row = "angle", float(run.row)
        if angles not in calculation.grids:
            calculation.step("angle", angles, "row", "angles", number=row, rows=run.query_names)
    base = name.removesuffix(run.suffix)
    raw = calculation.project(step, f"{base}_raw{run.suffix}", x, weights, rows)
    distance = float(rotation.distance)
    calculation.step("rotation", name, "rotate", raw, angles, number=distance)


def part_of(maker: Maker, head: int, row: int | None) -> tuple[np.ndarray, list[Grid]] | None:
    """Return the input of one head's part of a projection, its weights, and its bias if it has one.

    None unless the part is small enough, and makes what it should, or this row of it.
    """
    projection, own = maker.projection, numbers(maker.before[0, head])
    d = own.shape[1]
    weight = projection.weight[:, head * d : head * d + d]
    if weight.numel() > LARGEST_PROJECTION:
        return None
    x, parts = numbers(projection.given), [numbers(weight)]
    made = x @ parts[0]
    if projection.bias is not None:
        parts.append(numbers(projection.bias[head * d : head * d + d])[None])
        made = made + parts[1]
    errors = np.abs(made - own)
    if row is not None:
        errors = errors[row : row + 1]
    if errors.max(initial=0.0) > CLOSE * max(1.0, np.abs(made).max(initial=0.0)):
        return None
    return x, [Grid(values=part) for part in parts]


def _find_embedding(run: HeadRun, x: Vectors) -> Embedded | None:
    """Return the embeddings whose sum is the layer's input; None where it is no such sum."""
    parts = run.source.embedded(run.batch) if isinstance(run.source, HomeBuilt) else None
    if parts is None:
        return run.keep.embedded(torch.from_numpy(x))
    is_sum = np.array_equal(numbers(parts[0] + parts[1]), x)
    return Embedded(parts=parts, norm=None) if is_sum else None


def makers(keep: ProjectionCollector) -> list[Maker | None]:
    """Return how a layer's queries, keys and values are made; None for each that is not found."""
    layer = keep.layer
    found: list[Maker | None] = []
    for projection, own in zip(
        keep.projections(), (layer.query, layer.key, layer.value), strict=False
    ):
        known = None if projection is None else Maker(projection=projection, before=own)
        found.append(known or _find_rotated(keep, own))
    return found


def _find_rotated(keep: ProjectionCollector, own: Tensor) -> Maker | None:
    """Return the projection and rotation that make this [batch, head, token, d]."""
    batch, n_heads, n_tokens, d = own.shape
    size = n_heads * d
    for call in reversed(keep.before):
        if not is_linear(call.module) or call.made.shape[1] != n_tokens:
            continue
        # One fused projection may make query, keys and values.
        for first in range(0, call.made.shape[2] - size + 1, size):
            columns = call.made[:, :, first : first + size]
            before = columns.reshape(batch, n_tokens, n_heads, d).transpose(1, 2)
            rotation = rotation_between(numbers(before[0]), numbers(own[0]))
            projection = projection_of(call, first, first + size)
            if rotation is not None and projection is not None:
                return Maker(projection=projection, before=before, rotation=rotation)
    return None


def rotation_between(before: Heads, behind: Heads) -> Rotation | None:
    """Return the rotation that makes one of the other, the same for all heads; None where there is none.

    The two columns of a pair are half of the columns apart, or neighbours.
    """
    d = before.shape[2]
    close = ROTATION_CLOSE * max(1.0, np.abs(behind).max())
    for distance in (d // 2, 1) if d % 2 == 0 else ():
        angles = _angles(before, behind, distance)
        again = [rotate(head, angles, float(distance)) for head in before]
        if np.abs(again - behind).max() <= close and _is_steady(angles):
            return Rotation(angles=angles, distance=distance)
    return None


def _angles(before: Heads, behind: Heads, distance: int) -> Float64[np.ndarray, "token pair"]:
    """Return the angle of each token and pair that fits all heads best (least squares, of complex numbers)."""
    first, second = pairs(before.shape[2], distance)
    z, turned = (x[..., first] + 1j * x[..., second] for x in (before, behind))
    return np.unwrap(np.angle((z.conj() * turned).sum(axis=0)), axis=0)


def _is_steady(angles: Float64[np.ndarray, "token pair"]) -> bool:
    position = np.arange(len(angles), dtype=float)[:, None]
    frequency = (position * angles).sum(axis=0) / max((position**2).sum(), 1.0)
    return bool(np.abs(angles - position * frequency).max() <= STEADY)
