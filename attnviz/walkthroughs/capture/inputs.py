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
from attnviz.walkthroughs.arithmetic import pairs
from attnviz.walkthroughs.calculation import Calculation
from attnviz.walkthroughs.capture.run import HeadRun, numbers
from attnviz.walkthroughs.record import Grid

LARGEST_PROJECTION = 2**22  # weights of the largest projection that is written down: 1,024 by 4,096

# How far the result of a projection or rotation may be from the model's own, relative to its largest number (or to 1).
# In half precision the difference is larger; then the query itself is taken as given.
CLOSE = 1e-4
STEADY = 1e-2  # radians that an angle may differ from position times frequency

Vectors = Float64[np.ndarray, "token d_model"]
Heads = Float64[np.ndarray, "head token d"]


@runtime_checkable  # home-built sources are recognized with isinstance
class HomeBuilt(Protocol):
    """A source whose model is home-built, so that its structure and the embeddings of the first layer are known."""

    def embedded(self, batch: Batch) -> tuple[Tensor, Tensor] | None:
        """Return the word vectors and the position vectors of the first sentence; None if no layer reads words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """The rotation by rotary positions, shared by the heads of a layer."""

    angles: Float64[np.ndarray, "token pair"]  # in radians
    distance: int  # the number of columns from the first to the second of a pair


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerProjection:
    """The projection that computes a layer's queries, keys or values, and the rotation that may follow it."""

    projection: Projection
    result: Tensor  # of the projection, before the rotation: [batch, head, token, d]
    rotation: Rotation | None = None

    def of_head(self, head: int, row: int | None) -> list[Grid] | None:
        """Return one head's weights, and its bias if there is one.

        None if they are too large, or if their result differs from the model's own (of `row`, or of all rows).
        """
        expected, x = numbers(self.result[0, head]), numbers(self.projection.given)
        d = expected.shape[1]
        columns = slice(head * d, head * d + d)  # the columns of each head stand side by side
        weight, bias = self.projection.weight[:, columns], self.projection.bias
        if weight.numel() > LARGEST_PROJECTION:
            return None
        parts = [numbers(weight)]
        if bias is not None:
            parts.append(numbers(bias[columns])[None])
        result = x @ parts[0] + sum(parts[1:])
        errors = np.abs(result - expected)[slice(None) if row is None else [row]]
        if errors.max(initial=0.0) > CLOSE * max(1.0, np.abs(result).max(initial=0.0)):
            return None
        return [Grid(values=part) for part in parts]


class Inputs:
    """The inputs of projections, each written down once: ``X``, its row ``x``, and ``M`` for another sentence."""

    def __init__(
        self, calculation: Calculation, run: HeadRun, query_input: str | None = None
    ) -> None:
        """Prepare to write; `query_input` is what queries are projected from, if it is written down already."""
        self._calculation, self._run, self._query_input = calculation, run, query_input
        self._written: dict[str, Vectors] = {}

    @cached_property
    def projections(self) -> list[LayerProjection | None]:
        """The projections and rotations of the queries, keys and values of all heads; None for those not found."""
        return projections_of_layer(self._run.collector)

    def write(self, vectors: Vectors, *, of_query: bool) -> str | None:
        """Write down the input of a projection; return its name, or None if the name is taken by other vectors."""
        run, calculation = self._run, self._calculation
        is_cross, is_row = run.kind == "cross", of_query and run.row is not None
        if of_query and self._query_input is not None:
            return self._query_input
        name = "X"
        if is_cross:
            name = ("x" if is_row else "X") if of_query else "M"
        if name not in self._written:
            self._written[name] = vectors
            embedded = None if is_cross else _find_embedding(run, vectors)
            if embedded is not None:
                self._write_embedded(name, embedded)
            elif is_cross and of_query:
                rows = run.rows_of(torch.from_numpy(vectors))
                calculation.give(name, Grid(values=rows.numpy(), rows=run.query_names))
            else:
                calculation.give(name, Grid(values=vectors, rows=run.keys))
        if not np.array_equal(self._written[name], vectors):
            return None
        if not is_row or is_cross:
            return name
        if "x" not in calculation.grids:
            row = float(run.row or 0)
            calculation.step("row", "x", "row", name, number=row, rows=run.query_names)
        return "x"

    def _write_embedded(self, name: str, embedded: Embedded) -> None:
        """Write down the sum of the embeddings E (words), P (positions) and S (segments), and the norm of it."""
        calculation, total = self._calculation, ""
        for letter, part in zip("EPS", embedded.parts, strict=False):
            calculation.give(letter, Grid(values=numbers(part), rows=self._run.keys))
            if not total:
                total = letter
                continue
            is_last = part is embedded.parts[-1] and embedded.norm is None
            result = name if is_last else total + letter
            total = calculation.step("input", result, "add", total, letter)
        if embedded.norm is not None:
            gain, shift, epsilon = embedded.norm
            calculation.give("gain", Grid(values=numbers(gain)[None]))
            calculation.give("shift", Grid(values=numbers(shift)[None]))
            calculation.step("input_norm", name, "norm", total, "gain", "shift", number=epsilon)


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
        parts = x = None
        if projected is not None:
            parts = projected.of_head(head, run.row if is_query else None)
        if projected is not None and parts is not None:
            x = inputs.write(numbers(projected.projection.given), of_query=is_query)
        if projected is None or parts is None or x is None:
            given_names.append(name.removesuffix(run.suffix))
            calculation.give(name, grid)
            continue
        symbols = (f"W{letter}{run.suffix}", f"b{letter}{run.suffix}")
        weights = dict(zip(symbols, parts, strict=False))
        if projected.rotation is None:
            calculation.project(step, name, x, weights, grid.rows)
            continue
        angles = _write_angles(calculation, run, projected.rotation, is_query=is_query)
        raw = f"{name.removesuffix(run.suffix)}_raw{run.suffix}"
        calculation.project(step, raw, x, weights, grid.rows)
        distance = float(projected.rotation.distance)
        calculation.step("rotation", name, "rotate", raw, angles, number=distance)
    notes = [Note("rotated")] if "angles" in calculation.grids else []
    if given_names:
        notes.append(Note.of("taken_as_given", names=", ".join(given_names)))
    return notes


def _write_angles(
    calculation: Calculation, run: HeadRun, rotation: Rotation, *, is_query: bool
) -> str:
    """Write down the angles, or those of the followed query, unless they are there; return their name."""
    if "angles" not in calculation.grids:
        calculation.give("angles", Grid(values=rotation.angles, rows=run.keys))
    if not is_query or run.row is None:
        return "angles"
    if "angle" not in calculation.grids:
        row = float(run.row)
        calculation.step("angle", "angle", "row", "angles", number=row, rows=run.query_names)
    return "angle"


def _find_embedding(run: HeadRun, x: Vectors) -> Embedded | None:
    """Return the embeddings whose sum is the layer's input x; None if x is no such sum."""
    if not isinstance(run.source, HomeBuilt):
        return run.collector.embedded(torch.from_numpy(x))
    parts = run.source.embedded(run.batch)
    if parts is None or not np.array_equal(numbers(parts[0] + parts[1]), x):
        return None
    return Embedded(parts=parts, norm=None)


def projections_of_layer(collector: ProjectionCollector) -> list[LayerProjection | None]:
    """Return how a layer computes its queries, keys and values; None for each that is not found."""
    layer, results = collector.layer, list[LayerProjection | None]()
    for projection, vectors in zip(
        collector.projections(), (layer.query, layer.key, layer.value), strict=False
    ):
        if projection is None:
            results.append(_find_rotated(collector, vectors))
        else:
            results.append(LayerProjection(projection=projection, result=vectors))
    return results


def _find_rotated(collector: ProjectionCollector, vectors: Tensor) -> LayerProjection | None:
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
                return LayerProjection(projection=projection, result=before, rotation=rotation)
    return None


def rotation_between(before: Heads, behind: Heads) -> Rotation | None:
    """Return the rotation from the vectors before to those behind; None if there is none shared by all heads.

    The two columns of a pair are either half of all columns apart, or neighbours. Each angle is the one that fits all
    heads best, by least squares, and must grow with the position.
    """
    _, n_tokens, d = before.shape
    position = np.arange(n_tokens, dtype=float)[:, None]
    for distance in (d // 2, 1) if d % 2 == 0 else ():
        first, second = pairs(d, distance)
        # Each pair is read as a complex number, since rotating it is then a multiplication by exp(i angle).
        z, z_behind = (x[..., first] + 1j * x[..., second] for x in (before, behind))
        angles = np.unwrap(np.angle((z.conj() * z_behind).sum(axis=0)), axis=0)
        errors = np.abs(z * np.exp(1j * angles) - z_behind)
        # the slope of the line through the origin that fits best
        frequency = (position * angles).sum(axis=0) / max((position**2).sum(), 1.0)
        is_steady = np.abs(angles - position * frequency).max() <= STEADY
        if is_steady and errors.max() <= CLOSE * max(1.0, np.abs(behind).max()):
            return Rotation(angles=angles, distance=distance)
    return None
