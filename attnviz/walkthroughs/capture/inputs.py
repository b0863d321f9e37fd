"""The projections to a layer's queries, keys and values, their inputs, and the rotations that follow.

Rotary positions rotate pairs of numbers by angles that grow with the position (Su et al. 2021, "RoFormer", equations 13
to 15). The code knows no model family: it computes the angles from the vectors before and after the rotation.
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

LARGEST_PROJECTION = 2**22  # weights of the largest projection that is written down: 1,024 by 4,096

# How far the result of a projection may be from the model's own, relative to its largest number (or to 1). In half
# precision the difference is larger; then the query itself is taken as given.
CLOSE = 1e-4
ROTATION_CLOSE = 1e-4  # the tolerance for rotated numbers
STEADY = 1e-2  # radians that an angle may differ from position times frequency

Vectors = Float64[np.ndarray, "token d_model"]
Heads = Float64[np.ndarray, "head token d"]


@runtime_checkable  # home-built sources are recognized with isinstance
class HomeBuilt(Protocol):
    """A source whose model is home-built, so that the embeddings of the first layer are known."""

    def embedded(self, batch: Batch) -> tuple[Tensor, Tensor] | None:
        """Return the word vectors and the position vectors of the first sentence; None if no layer reads words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """The rotation by rotary positions, shared by the heads of a layer."""

    angles: Float64[np.ndarray, "token pair"]  # in radians
    distance: int  # the number of columns from the first to the second of a pair


@dataclass(frozen=True, slots=True, kw_only=True)
class RotatedProjection:
    """The projection that computes a layer's queries, keys or values, and the rotation that may follow it."""

    projection: Projection
    result: Tensor  # of the projection, before the rotation: [batch, head, token, d]
    rotation: Rotation | None = None  # None if no rotation follows


class Inputs:
    """The inputs of projections, each written down once: ``X``, its row ``x``, and ``M`` for another sentence."""

    def __init__(self, calculation: Calculation, run: HeadRun) -> None:
        self._calculation, self._run = calculation, run
        self._written: dict[
            str, Vectors
        ] = {}  # the inputs by the names under which they are written down
        # the arguments of `know`: vectors, the name of their grid, and that of the query's row
        self._known: list[tuple[Vectors, str, str]] = []

    @cached_property
    def projections(self) -> list[RotatedProjection | None]:
        """The projections and rotations of the queries, keys and values of all heads; None for those not found."""
        return projections_of_layer(self._run.collector)

    def know(self, vectors: Vectors, name: str, row_name: str) -> None:
        """Register vectors that are written down already under `name`, so that a projection can read them.

        `row_name` is the name for the row of the query.
        """
        self._known.append((vectors, name, row_name))

    def write(self, vectors: Vectors, *, of_query: bool) -> str | None:
        """Write down the input of a projection; return its name, or None if the name is taken by other vectors."""
        run = self._run
        is_cross, is_query_row = run.kind == "cross", of_query and run.row is not None
        for known_vectors, name, row_name in self._known:
            if np.array_equal(known_vectors, vectors):
                return self._row(name, row_name) if is_query_row else name
        if is_query_row and not is_cross:  # write down all words, then the row of the query
            input_name = self.write(vectors, of_query=False)
            return None if input_name is None else self._row(input_name, "x")
        name = "x" if is_query_row else "X"
        if is_cross and not of_query:
            name = "M"
        if name in self._written:
            return name if np.array_equal(self._written[name], vectors) else None
        self._written[name] = vectors
        return self._write_new(name, vectors, of_query=of_query)

    def _write_new(self, name: str, vectors: Vectors, *, of_query: bool) -> str:
        """Write down an input for the first time, as a sum of embeddings if it is one; return its name."""
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

    def _row(self, input_name: str, name: str) -> str:
        """Write down the row of the query as a grid, unless it exists; return its name."""
        run, calculation = self._run, self._calculation
        if name in calculation.grids:
            return name
        assert run.row is not None
        row = float(run.row)
        return calculation.step("row", name, "row", input_name, number=row, rows=run.query_names)

    def _write_embedded(self, name: str, embedded: Embedded, rows: tuple[str, ...]) -> str:
        """Write down the sum of the embeddings E (words), P (positions) and S (segments); return its name."""
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
    """Write down query, keys and values; return notes.

    They are computed by the head's projections if these are found, and otherwise taken as given.
    """
    given_names = []
    steps = (("query", "q", run.head), ("keys", "k", run.key_head), ("values", "v", run.key_head))
    for (step, letter, head), name, grid, projected in zip(
        steps, run.names, run.own(), inputs.projections, strict=True
    ):
        is_query = step == "query"
        row = run.row if is_query else None
        head_part = None if projected is None else part_of(projected, head, row)
        x = None if head_part is None else inputs.write(head_part[0], of_query=is_query)
        if projected is None or head_part is None or x is None:
            given_names.append(name.removesuffix(run.suffix))
            calculation.give(name, grid)
            continue
        symbols = (f"W{letter}{run.suffix}", f"b{letter}{run.suffix}")
        weights = dict(zip(symbols, head_part[1], strict=False))
        _write_projection(calculation, run, projected, (step, name), x, weights)
    notes = [Note("rotated")] if "angles" in calculation.grids else []
    if given_names:
        notes.append(Note.of("taken_as_given", names=", ".join(given_names)))
    return notes


def _write_projection(
    calculation: Calculation,
    run: HeadRun,
    projected: RotatedProjection,
    names: tuple[str, str],
    x: str,
    weights: dict[str, Grid],
) -> None:
    """Write down a projection and the rotation that follows it, if there is one."""
    step, name = names
    is_query, rotation = step == "query", projected.rotation
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


def part_of(
    projected: RotatedProjection, head: int, row: int | None
) -> tuple[np.ndarray, list[Grid]] | None:
    """Return the input of a projection and one head's part of its weights, with its bias if it has one.

    None if the part is too large, or if its result differs from the model's own (only in `row`, if it is a number).
    """
    projection, expected = projected.projection, numbers(projected.result[0, head])
    d = expected.shape[1]
    # The columns of each head stand side by side.
    weight = projection.weight[:, head * d : head * d + d]
    if weight.numel() > LARGEST_PROJECTION:
        return None
    x, parts = numbers(projection.given), [numbers(weight)]
    result = x @ parts[0]
    if projection.bias is not None:
        parts.append(numbers(projection.bias[head * d : head * d + d])[None])
        result = result + parts[1]
    errors = np.abs(result - expected)
    if row is not None:
        errors = errors[row : row + 1]
    if errors.max(initial=0.0) > CLOSE * max(1.0, np.abs(result).max(initial=0.0)):
        return None
    return x, [Grid(values=part) for part in parts]


def _find_embedding(run: HeadRun, x: Vectors) -> Embedded | None:
    """Return the embeddings whose sum is the layer's input x; None if x is no such sum."""
    parts = run.source.embedded(run.batch) if isinstance(run.source, HomeBuilt) else None
    if parts is None:
        return run.collector.embedded(torch.from_numpy(x))
    is_sum = np.array_equal(numbers(parts[0] + parts[1]), x)
    return Embedded(parts=parts, norm=None) if is_sum else None


def projections_of_layer(collector: ProjectionCollector) -> list[RotatedProjection | None]:
    """Return how a layer computes its queries, keys and values; None for each that is not found."""
    layer = collector.layer
    layer_projections: list[RotatedProjection | None] = []
    for projection, vectors in zip(
        collector.projections(), (layer.query, layer.key, layer.value), strict=False
    ):
        projected = (
            None if projection is None else RotatedProjection(projection=projection, result=vectors)
        )
        layer_projections.append(projected or _find_rotated(collector, vectors))
    return layer_projections


def _find_rotated(collector: ProjectionCollector, vectors: Tensor) -> RotatedProjection | None:
    """Return the projection and rotation whose result is `vectors` [batch, head, token, d]; None if not found."""
    batch, n_heads, n_tokens, d = vectors.shape
    size = n_heads * d
    for call in reversed(collector.before):
        if not is_linear(call.module) or call.made.shape[1] != n_tokens:
            continue
        # A fused projection computes query, keys and values side by side, so each block of columns is tried.
        for first in range(0, call.made.shape[2] - size + 1, size):
            columns = call.made[:, :, first : first + size]
            before = columns.reshape(batch, n_tokens, n_heads, d).transpose(1, 2)
            rotation = rotation_between(numbers(before[0]), numbers(vectors[0]))
            projection = projection_of(call, first, first + size)
            if rotation is not None and projection is not None:
                return RotatedProjection(projection=projection, result=before, rotation=rotation)
    return None


def rotation_between(before: Heads, behind: Heads) -> Rotation | None:
    """Return the rotation from the vectors before to those behind; None if there is none shared by all heads.

    The two columns of a pair are either half of all columns apart, or neighbours.
    """
    d = before.shape[2]
    close = ROTATION_CLOSE * max(1.0, np.abs(behind).max())
    for distance in (d // 2, 1) if d % 2 == 0 else ():
        angles = _angles(before, behind, distance)
        recomputed = [rotate(head, angles, float(distance)) for head in before]
        if np.abs(recomputed - behind).max() <= close and _is_steady(angles):
            return Rotation(angles=angles, distance=distance)
    return None


def _angles(before: Heads, behind: Heads, distance: int) -> Float64[np.ndarray, "token pair"]:
    """Return the angle of each token and pair that fits all heads best, by least squares.

    Each pair is read as a complex number, since rotating it is then a multiplication by exp(i angle).
    """
    first, second = pairs(before.shape[2], distance)
    z, z_behind = (x[..., first] + 1j * x[..., second] for x in (before, behind))
    return np.unwrap(np.angle((z.conj() * z_behind).sum(axis=0)), axis=0)


def _is_steady(angles: Float64[np.ndarray, "token pair"]) -> bool:
    """Return whether each pair's angle is proportional to the position, as rotary positions are."""
    position = np.arange(len(angles), dtype=float)[:, None]
    # the slope of the line through the origin that fits best
    frequency = (position * angles).sum(axis=0) / max((position**2).sum(), 1.0)
    return bool(np.abs(angles - position * frequency).max() <= STEADY)
