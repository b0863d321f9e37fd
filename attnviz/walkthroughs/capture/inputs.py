"""The projections to a layer's queries, keys and values, and their inputs.

What a model changes after a projection, as by rotary positions, is taken as it enters the scores.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from attnviz.attention import Note
from attnviz.capture.observers import Batch
from attnviz.capture.projections import Embedded, Projection
from attnviz.walkthroughs.calculation import Calculation
from attnviz.walkthroughs.capture.run import HeadRun, numbers
from attnviz.walkthroughs.record import Grid

LARGEST_PROJECTION = 2**22  # weights of the largest projection that is written down: 1,024 by 4,096

# How far the result of a projection may be from the model's own, relative to its largest number (or to 1).
# In half precision the difference is larger; then the query itself is taken as given.
CLOSE = 1e-4

Vectors = Float64[np.ndarray, "token d_model"]


@runtime_checkable  # home-built sources are recognized with isinstance
class HomeBuilt(Protocol):
    """A source whose model is home-built, so that its structure and the embeddings of the first layer are known."""

    def embedded(self, batch: Batch) -> tuple[Tensor, Tensor] | None:
        """Return the word vectors and the position vectors of the first sentence; None if no layer reads words."""


class Inputs:
    """The inputs of projections, each written down once: ``X``, its row ``x``, and ``M`` for another sentence."""

    def __init__(
        self, calculation: Calculation, run: HeadRun, query_input: str | None = None
    ) -> None:
        """Prepare to write; `query_input` is what queries are projected from, if it is written down already."""
        self._calculation, self._run, self._query_input = calculation, run, query_input
        self._written: dict[str, Vectors] = {}

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
    given_names, layer = [], run.layer
    for step, letter, head, name, grid, projection, vectors in zip(
        ("query", "keys", "values"),
        "qkv",
        (run.head, run.key_head, run.key_head),
        run.names,
        run.own(),
        run.collector.projections()[:3],
        (layer.query, layer.key, layer.value),
        strict=True,
    ):
        is_query = step == "query"
        parts = x = None
        if projection is not None:
            expected = numbers(vectors[0, head])
            parts = _weights_of_head(projection, expected, head, run.row if is_query else None)
        if projection is not None and parts is not None:
            x = inputs.write(numbers(projection.given), of_query=is_query)
        if parts is None or x is None:
            given_names.append(name.removesuffix(run.suffix))
            calculation.give(name, grid)
            continue
        symbols = (f"W{letter}{run.suffix}", f"b{letter}{run.suffix}")
        weights = dict(zip(symbols, parts, strict=False))
        calculation.project(step, name, x, weights, grid.rows)
    return [Note.of("taken_as_given", names=", ".join(given_names))] if given_names else []


def _weights_of_head(
    projection: Projection, expected: Vectors, head: int, row: int | None
) -> list[Grid] | None:
    """Return one head's weights, and its bias if there is one.

    None if they are too large, or if their result differs from the expected one of the model (in `row`, or in any).
    """
    d = expected.shape[1]
    columns = slice(head * d, head * d + d)  # the columns of each head stand side by side
    weight, bias = projection.weight[:, columns], projection.bias
    if weight.numel() > LARGEST_PROJECTION:
        return None
    parts = [numbers(weight)]
    if bias is not None:
        parts.append(numbers(bias[columns])[None])
    result = numbers(projection.given) @ parts[0] + sum(parts[1:])
    errors = np.abs(result - expected)[slice(None) if row is None else [row]]
    if errors.max(initial=0.0) > CLOSE * max(1.0, np.abs(result).max(initial=0.0)):
        return None
    return [Grid(values=part) for part in parts]


def _find_embedding(run: HeadRun, x: Vectors) -> Embedded | None:
    """Return the embeddings whose sum is the layer's input x; None if x is no such sum."""
    if not isinstance(run.source, HomeBuilt):
        return run.collector.embedded(torch.from_numpy(x))
    parts = run.source.embedded(run.batch)
    if parts is None or not np.array_equal(numbers(parts[0] + parts[1]), x):
        return None
    return Embedded(parts=parts, norm=None)
