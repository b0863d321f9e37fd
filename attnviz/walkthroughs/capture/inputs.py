"""One run of a model and the part of it that is followed: what query, keys and values are made of, and its attention.

Before attention reads what a projection made, there may be a norm of each head, a rotation, or both. Rotary positions
turn pairs of a query's and a key's numbers by angles that grow with the position (Su et al. 2021, "RoFormer", equations
13 to 15). No family is named: all heads of a layer are turned by the same angles, so these are read off what went in
and what came out, and it is a rotation only if one angle for each token and pair makes all of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from attnviz.attention import Kind, Note
from attnviz.capture.observers import Batch
from attnviz.capture.projections import (
    Embedded,
    Projection,
    ProjectionCollector,
    is_linear,
    maker_of,
    same,
)
from attnviz.capture.sources import Source
from attnviz.capture.stream import Layer, rows_of
from attnviz.walkthroughs.arithmetic import pairs, rotate
from attnviz.walkthroughs.calculation import Calculation, Terms
from attnviz.walkthroughs.capture.parts import Norm, read_norm
from attnviz.walkthroughs.record import Grid
from attnviz.walkthroughs.settings import Score

SCORE_SEED = 0  # the weights of another way to score are drawn from it
LARGEST_PROJECTION = 2**22  # numbers of a projection that is written down: 1,024 by 4,096
CLOSE = 1e-4
"""How far a projection that was found may be from what it seems to have made, relative to its largest number where
that exceeds 1: in half precision rounding makes more, and then the query itself is given."""

TURNED = 1e-4  # how far turned numbers may be from the model's, relative to the largest
STEADY = 1e-2  # how far an angle may be from position times frequency, in radians


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadRun:
    """One run, and which part of it is followed."""

    source: Source  # the model
    batch: Batch  # what it ran on: one sentence
    keep: ProjectionCollector  # the layer
    kind: Kind  # which attention it is
    head: int  # the number of the head
    row: int | None  # the number of the query; None where all are walked at once
    suffix: str = ""  # put after the names of the head's grids, where there are several heads

    @property
    def layer(self) -> Layer:
        """The layer's query, key, value and output."""
        return self.keep.layer

    @property
    def group(self) -> int:
        """The key head that serves this head."""
        return self.head // (self.layer.query.shape[1] // self.layer.key.shape[1])

    @property
    def queries(self) -> tuple[str, ...]:
        """The names of all queries."""
        return tuple(token.text for token in self.batch.sentences[0].tokens)

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of all keys."""
        sentence = self.batch.sentences[0]
        return tuple(
            token.text for token in (sentence.tokens if sentence.keys is None else sentence.keys)
        )

    @property
    def query_names(self) -> tuple[str, ...]:
        """The names of the queries walked."""
        return self.queries if self.row is None else (self.queries[self.row],)

    @property
    def names(self) -> tuple[str, str, str]:
        """What the grids of queries, keys and values are called."""
        return (
            f"{'Q' if self.row is None else 'q'}{self.suffix}",
            f"K{self.suffix}",
            f"V{self.suffix}",
        )

    def rows_of(self, whole: Tensor) -> Tensor:
        """Of something with a row for each query, the rows walked."""
        return whole if self.row is None else whole[self.row : self.row + 1]

    def own(self) -> tuple[Tensor, Tensor, Tensor]:
        """The head's queries walked, keys and values, as the model computed them: each [token, d]."""
        layer = self.layer
        return (
            self.rows_of(layer.query[0, self.head]),
            layer.key[0, self.group],
            layer.value[0, self.group],
        )

    def give_own(self, calculation: Calculation) -> None:
        """Write down query, keys and values as given."""
        for name, own, rows in zip(
            self.names, self.own(), (self.query_names, self.keys, self.keys), strict=True
        ):
            calculation.give(name, Grid(values=numbers(own), rows=rows))

    def write_attention(
        self, calculation: Calculation, score: Score = "scaled", *, causal: bool = False
    ) -> str:
        """Write down what the head makes of query, keys and values already there; the context's name comes back."""
        return calculation.write_attention(
            terms_of(self, score, causal=causal), *self.names, self.suffix
        )


def terms_of(run: HeadRun, score: Score, *, causal: bool) -> Terms:
    """The terms as the model has them, but for another way to score and a mask of its own."""
    layer, scoring = run.layer, run.layer.scoring
    n_queries, n_keys = layer.query.shape[2], layer.key.shape[2]
    bias = None if scoring.bias is None else _of_head(scoring.bias, run)
    may_look: Tensor | None = None
    if scoring.mask is not None:
        mask = _of_head(rows_of(scoring.mask, 0, n_queries), run)
        if mask.dtype == torch.bool:
            may_look = mask
        else:  # added to the scores: the most negative number hides, any other is a bias
            may_look = mask > torch.finfo(mask.dtype).min / 2
            rest = mask.masked_fill(~may_look, 0.0)
            if rest.any():
                bias = rest if bias is None else bias + rest
    if causal or (scoring.causal and may_look is None):
        rows = run.rows_of(torch.arange(n_queries, device=layer.query.device))
        behind = torch.arange(n_keys, device=layer.query.device) <= rows[:, None]
        may_look = behind if may_look is None else may_look & behind
    hides = may_look is not None and (causal or run.kind == "decoder" or not may_look.all())
    head = run.head
    return Terms(
        score=score,
        weights=_draw_weights(score, layer.query.shape[3]),
        scaling=scoring.scaling,
        softcap=scoring.softcap,
        bias=_label(run, bias),
        mask=_label(run, may_look) if hides else None,
        sink=None
        if scoring.sinks is None
        else Grid(values=numbers(scoring.sinks.flatten()[head : head + 1])[None]),
    )


def _of_head(whole: Tensor, run: HeadRun) -> Tensor:
    """Of a mask or bias [batch, head, query, key], each of which may be 1 for all, the head and rows walked."""
    n_queries, n_keys = run.layer.query.shape[2], run.layer.key.shape[2]
    whole = whole.reshape((1,) * (4 - whole.ndim) + whole.shape)[..., :n_keys]
    return run.rows_of(whole[0, run.head if whole.shape[1] > 1 else 0].expand(n_queries, n_keys))


def _label(run: HeadRun, rows: Tensor | None) -> Grid | None:
    return (
        None if rows is None else Grid(values=numbers(rows), rows=run.query_names, columns=run.keys)
    )


def _draw_weights(score: Score, d: int) -> dict[str, Grid]:
    """Weights for another way to score, such that the scores of independent numbers of variance 1 have variance 1."""
    draw = np.random.default_rng(SCORE_SEED)
    if score == "general":
        return {"W": Grid(values=draw.normal(0, 1 / d, (d, d)))}
    shapes = {"W": (d, d), "U": (d, d), "v": (1, d)} if score == "additive" else {}
    return {name: Grid(values=draw.normal(0, d**-0.5, shape)) for name, shape in shapes.items()}


def numbers(tensor: Tensor) -> np.ndarray:
    """The numbers in double precision."""
    return tensor.detach().to("cpu", torch.float64).numpy()


@runtime_checkable  # it is how they are told apart
class HomeBuilt(Protocol):
    """A source whose model is home-built: it knows what the first layer reads."""

    def embedded(self, batch: Batch) -> tuple[Tensor, Tensor] | None:
        """The vectors of the first sentence's words, and those of their positions; None where no layer reads words."""


Heads = Float64[np.ndarray, "head token d"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """How rotary positions turn the rows of a layer's heads."""

    # in radians; a row's further columns stay as they are
    angles: Float64[np.ndarray, "token pair"]
    distance: int  # between the two columns of a pair
    scale: float  # what every number is multiplied with besides; mostly 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Maker:
    """How a layer's queries, keys or values are made."""

    projection: Projection
    before: Tensor  # what the projection makes of it: [batch, head, token, d]
    norm: Norm | None = None  # of each head's rows, where one follows
    rotation: Rotation | None = None  # what follows then


class Inputs:
    """What projections were given, written down once each: ``X`` of all words, ``x`` its row, ``M`` of other words."""

    def __init__(self, calculation: Calculation, run: HeadRun) -> None:
        self._calculation, self._run = calculation, run
        self._there: dict[str, Float64[np.ndarray, "token d_model"]] = {}
        self._made: list[tuple[Float64[np.ndarray, "token d_model"], str, str]] = []

    @cached_property
    def makers(self) -> list[Maker | None]:
        """How query, keys and values of all heads are made: found once for all."""
        return makers(self._run.keep)

    def know(self, whole: Float64[np.ndarray, "token d_model"], name: str, row_name: str) -> None:
        """Name what a projection may be given, and its row of the query that is followed, made already or not."""
        self._made.append((whole, name, row_name))

    def write(self, whole: Float64[np.ndarray, "token d_model"], *, of_query: bool) -> str | None:
        """Write down the vectors that a projection was given; their name comes back, None where it is taken."""
        run = self._run
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
        rows = run.query_names if of_query and across else run.keys
        embedded = None if across else _find_embedding(run, whole)
        if embedded is not None:
            return self._write_embedded(name, embedded, rows)
        row = slice(run.row, run.row + 1) if one and run.row is not None else slice(None)
        return self._calculation.give(name, Grid(values=whole[row], rows=rows))

    def _row_of(self, every: str, name: str) -> str:
        run, c = self._run, self._calculation
        if name in c.grids:
            return name
        assert run.row is not None
        return c.step("row", name, "row", every, number=float(run.row), rows=run.query_names)

    def _write_embedded(self, name: str, embedded: Embedded, rows: tuple[str, ...]) -> str:
        c, sum_of = self._calculation, ""
        for letter, part in zip("EPS", embedded.parts, strict=False):
            c.give(letter, Grid(values=numbers(part), rows=rows))
            is_last = part is embedded.parts[-1] and embedded.norm is None
            sum_of = (
                c.step("input", name if is_last else sum_of + letter, "add", sum_of, letter)
                if sum_of
                else letter
            )
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
    row_names = (run.query_names, run.keys, run.keys)
    for name, own, rows, made, head, step, letter in zip(
        run.names,
        run.own(),
        row_names,
        inputs.makers,
        heads,
        ("query", "keys", "values"),
        "qkv",
        strict=True,
    ):
        row = run.row if step == "query" else None
        part = None if made is None else part_of(made, head, row)
        x = None if part is None else inputs.write(part[0], of_query=step == "query")
        if made is None or part is None or x is None:
            missing.append(name.removesuffix(run.suffix))
            calculation.give(name, Grid(values=numbers(own), rows=rows))
            continue
        weights = {
            f"{one}{letter}{run.suffix}": grid for one, grid in zip("Wb", part[1], strict=False)
        }
        after = _after_projection(calculation, run, made, row, letter)
        names = [*(name.removesuffix(run.suffix) + kind + run.suffix for kind, *_ in after), name]
        calculation.project(step, names[0], x, weights, rows)
        for before, result, (_, then, operation, operands, number) in zip(
            names, names[1:], after, strict=False
        ):
            calculation.step(then, result, operation, before, *operands, number=number)
    notes = [Note("rotated")] if "angles" in calculation.grids else []
    *names, last = missing or [""]
    if names:
        notes.append(Note.of("all_taken_as_given", names=", ".join(names), last=last))
    elif last:
        notes.append(Note.of("taken_as_given", names=last))
    return notes


def _after_projection(
    calculation: Calculation, run: HeadRun, made: Maker, row: int | None, letter: str
) -> list[tuple[str, str, str, list[str], float]]:
    """What follows a projection: what its result is called before, then step, operation, operands and number."""
    after: list[tuple[str, str, str, list[str], float]] = []
    norm, rotation, kind = made.norm, made.rotation, "_raw"

    def given(name: str, values: np.ndarray, rows: tuple[str, ...] = ()) -> str:
        """The same for all heads: written down once."""
        return (
            name
            if name in calculation.grids
            else calculation.give(name, Grid(values=values, rows=rows))
        )

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
            calculation.step(
                "angle", "angle", "row", angles, number=float(row), rows=run.query_names
            )
        after.append(
            (
                kind,
                "rotation",
                "rotate",
                [angles if row is None else "angle"],
                float(rotation.distance),
            )
        )
    return after


def part_of(made: Maker, head: int, row: int | None) -> tuple[np.ndarray, list[Grid]] | None:
    """What one head's part of a projection was given [token, d_model], its weights, and its bias if it has one.

    None unless it is small enough, and made what it should, or this row of it.
    """
    found, own = made.projection, made.before[0, head]
    d = own.shape[1]
    columns = slice(head * d, head * d + d)
    if found.weight[:, columns].numel() > LARGEST_PROJECTION:
        return None
    x, parts = numbers(found.given), [numbers(found.weight[:, columns])]
    parts += [] if found.bias is None else [numbers(found.bias[columns])[None]]
    again, theirs = sum(parts[1:], x @ parts[0]), numbers(own)
    off = np.abs(again - theirs)[slice(None) if row is None else slice(row, row + 1)].max(
        initial=0.0
    )
    is_close = off <= CLOSE * max(1.0, np.abs(again).max(initial=0.0))
    return (x, [Grid(values=part) for part in parts]) if is_close else None


def _find_embedding(run: HeadRun, x: Float64[np.ndarray, "token d_model"]) -> Embedded | None:
    """What the layer's input is the sum of, where it is one of embeddings."""
    parts = run.source.embedded(run.batch) if isinstance(run.source, HomeBuilt) else None
    if parts is None:
        return run.keep.embedded(torch.from_numpy(x))
    return (
        Embedded(parts=parts, norm=None)
        if np.array_equal(numbers(parts[0] + parts[1]), x)
        else None
    )


def makers(keep: ProjectionCollector) -> list[Maker | None]:
    """How a layer's queries, keys and values are made; None where it is not found."""
    layer = keep.layer
    return [
        next(_find_makers(keep, own), None)
        if found is None
        else Maker(projection=found, before=own)
        for found, own in zip(
            keep.projections(), (layer.query, layer.key, layer.value), strict=False
        )
    ]


def _find_makers(keep: ProjectionCollector, own: Tensor) -> Iterator[Maker]:
    """Ways to make this [batch, head, token, d] of what a projection made, or of a norm of that."""
    for before, heads, norm in _candidates(keep, own):
        rotation = (
            None if same(heads, own) else rotation_between(numbers(heads[0]), numbers(own[0]))
        )
        found = (
            maker_of(keep.before, before) if rotation is not None or heads is not before else None
        )
        if found is not None and (rotation is not None or same(heads, own)):
            yield Maker(projection=found, before=before, norm=norm, rotation=rotation)


def _candidates(
    keep: ProjectionCollector, own: Tensor
) -> Iterator[tuple[Tensor, Tensor, Norm | None]]:
    """What projections made of as many heads, and norms of it: before the norm, behind it, and the norm."""
    batch, n_heads, n_tokens, d = own.shape
    size = n_heads * d
    for call in reversed(keep.before):
        if is_linear(call.module) and call.made.shape[1] == n_tokens:
            # one fused projection may make all three
            for first in range(0, call.made.shape[2] - size + 1, size):
                heads = (
                    call.made[:, :, first : first + size]
                    .reshape(batch, n_tokens, n_heads, d)
                    .transpose(1, 2)
                )
                yield heads, heads, None
        elif call.made.shape == (batch, n_tokens * n_heads, d) and (norm := read_norm(call)):
            for one, other, axis in (
                (n_tokens, n_heads, 1),
                (n_heads, n_tokens, 2),
            ):  # heads within tokens, or not
                given, made = (
                    x.reshape(batch, one, other, d).transpose(axis, 2)
                    for x in (call.given, call.made)
                )
                yield given, made, norm


def rotation_between(before: Heads, behind: Heads) -> Rotation | None:
    """The rotation that makes one of the other, the same for all heads; None where there is none.

    The two columns of a pair are neighbours, or half of the turned columns apart; columns behind those stay.
    """
    first, other = before[:, 0], behind[:, 0]  # the first position is not turned
    scale = float((first * other).sum() / max((first**2).sum(), np.finfo(float).tiny))
    scale = 1.0 if abs(scale - 1) <= TURNED else scale
    close = TURNED * max(1.0, np.abs(behind).max())
    if np.abs(scale * first - other).max() > close:
        return None
    d = before.shape[2]
    moved = np.flatnonzero(np.abs(before - behind).max(axis=(0, 1)) > close)
    least = 2 + int(moved[-1]) // 2 * 2 if scale == 1 and moved.size else d
    for n_turned in range(d - d % 2, least - 1, -2):
        for distance in dict.fromkeys((n_turned // 2, 1)):
            angles = _angles(before[..., :n_turned], behind[..., :n_turned], distance)
            again = [rotate(scale * head, angles, float(distance)) for head in before]
            if np.abs(again - behind).max() <= close and _is_steady(angles):
                return Rotation(angles=angles, distance=distance, scale=scale)
    return None


def _angles(before: Heads, behind: Heads, distance: int) -> Float64[np.ndarray, "token pair"]:
    """The angle of each token and pair that fits all heads best (least squares, of complex numbers)."""
    first, second = pairs(before.shape[2], distance)
    z, turned = (x[..., first] + 1j * x[..., second] for x in (before, behind))
    return np.unwrap(np.angle((z.conj() * turned).sum(axis=0)), axis=0)


def _is_steady(angles: Float64[np.ndarray, "token pair"]) -> bool:
    position = np.arange(len(angles), dtype=float)[:, None]
    frequency = (position * angles).sum(axis=0) / max((position**2).sum(), 1.0)
    return bool(np.abs(angles - position * frequency).max() <= STEADY)
