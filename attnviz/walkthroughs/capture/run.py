"""One run of a model and the head that is followed: its query, keys, values and scoring."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attnviz.attention import Kind
from attnviz.capture.observers import Batch
from attnviz.capture.projections import ProjectionCollector
from attnviz.capture.sources import Source
from attnviz.capture.stream import Layer, rows_of
from attnviz.walkthroughs.calculation import Calculation, Terms
from attnviz.walkthroughs.record import Grid
from attnviz.walkthroughs.settings import Score

SCORE_SEED = 0  # seed for the weights of another score function


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadRun:
    """One run of a model, and the head and query that are followed."""

    source: Source
    batch: Batch  # with one sentence
    collector: ProjectionCollector  # has the layer and its projections
    kind: Kind
    head: int
    row: int | None  # the index of the query; None follows all queries
    suffix: str = ""  # of the names of the head's grids, if there are several heads

    @property
    def layer(self) -> Layer:
        """The layer's query, key, value and output."""
        return self.collector.layer

    @property
    def key_head(self) -> int:
        """The index of the key head, which several query heads may share."""
        return self.head // (self.layer.query.shape[1] // self.layer.key.shape[1])

    @property
    def queries(self) -> tuple[str, ...]:
        """The names of all queries."""
        return tuple(token.text for token in self.batch.sentences[0].tokens)

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of all keys."""
        sentence = self.batch.sentences[0]
        tokens = sentence.tokens if sentence.keys is None else sentence.keys
        return tuple(token.text for token in tokens)

    @property
    def query_names(self) -> tuple[str, ...]:
        """The names of the followed queries."""
        return self.queries if self.row is None else (self.queries[self.row],)

    @property
    def names(self) -> tuple[str, str, str]:
        """The names of the grids of queries, keys and values."""
        query = "Q" if self.row is None else "q"
        return f"{query}{self.suffix}", f"K{self.suffix}", f"V{self.suffix}"

    def rows_of(self, vectors: Tensor) -> Tensor:
        """Return the rows of the followed queries."""
        return vectors if self.row is None else vectors[self.row : self.row + 1]

    def own(self) -> tuple[Grid, Grid, Grid]:
        """Return the head's queries, keys and values as the model computed them."""
        layer = self.layer
        query = self.rows_of(layer.query[0, self.head])
        key, value = layer.key[0, self.key_head], layer.value[0, self.key_head]
        return (
            Grid(values=numbers(query), rows=self.query_names),
            Grid(values=numbers(key), rows=self.keys),
            Grid(values=numbers(value), rows=self.keys),
        )

    def give_own(self, calculation: Calculation) -> None:
        """Write down the model's query, keys and values as given."""
        for name, grid in zip(self.names, self.own(), strict=True):
            calculation.give(name, grid)

    def write_attention(self, calculation: Calculation, score: Score = "scaled") -> str:
        """Write down the attention of queries, keys and values; return the name of the context."""
        return calculation.write_attention(terms_of(self, score), *self.names, self.suffix)


def terms_of(run: HeadRun, score: Score) -> Terms:
    """Return the terms of the model's scores, with another score function if the user chose one."""
    layer, scoring = run.layer, run.layer.scoring
    n_queries, n_keys = layer.query.shape[2], layer.key.shape[2]
    bias = None if scoring.bias is None else _of_head(scoring.bias, run)
    allowed: Tensor | None = None
    if scoring.mask is not None:
        mask = _of_head(rows_of(scoring.mask, 0, n_queries), run)
        if mask.dtype == torch.bool:
            allowed = mask
        else:
            # A mask of numbers is added to the scores: the most negative number hides a key, any other is a bias.
            allowed = mask > torch.finfo(mask.dtype).min / 2
            mask_bias = mask.masked_fill(~allowed, 0.0)
            if mask_bias.any():
                bias = mask_bias if bias is None else bias + mask_bias
    if scoring.causal and allowed is None:
        positions = torch.arange(n_queries, device=layer.query.device)
        rows = run.rows_of(positions)
        allowed = torch.arange(n_keys, device=layer.query.device) <= rows[:, None]
    # A mask that hides nothing is left out, except in a decoder, where it belongs to the method.
    if allowed is not None and allowed.all() and run.kind != "decoder":
        allowed = None
    sink = None
    if scoring.sinks is not None:
        own_sink = scoring.sinks.flatten()[run.head : run.head + 1]
        sink = Grid(values=numbers(own_sink)[None])
    return Terms(
        score=score,
        weights=_draw_weights(score, layer.query.shape[3]),
        scaling=scoring.scaling,
        softcap=scoring.softcap,
        bias=_name_pairs(run, bias),
        mask=_name_pairs(run, allowed),
        sink=sink,
    )


def _of_head(pairs: Tensor, run: HeadRun) -> Tensor:
    """Return the part of a mask or bias for the followed head and rows [query, key].

    Axes for batch, head or query may be missing or of size 1, which means that all share the same numbers.
    """
    n_queries, n_keys = run.layer.query.shape[2], run.layer.key.shape[2]
    pairs = pairs.reshape((1,) * (4 - pairs.ndim) + pairs.shape)[..., :n_keys]
    head = run.head if pairs.shape[1] > 1 else 0
    return run.rows_of(pairs[0, head].expand(n_queries, n_keys))


def _name_pairs(run: HeadRun, pairs: Tensor | None) -> Grid | None:
    if pairs is None:
        return None
    return Grid(values=numbers(pairs), rows=run.query_names, columns=run.keys)


def _draw_weights(score: Score, d: int) -> dict[str, Grid]:
    """Draw the weights of another score function, scaled so that scores of independent numbers have variance 1."""
    draw = np.random.default_rng(SCORE_SEED)
    if score == "general":
        return {"W": Grid(values=draw.normal(0, 1 / d, (d, d)))}
    shapes = {"W": (d, d), "U": (d, d), "v": (1, d)} if score == "additive" else {}
    return {name: Grid(values=draw.normal(0, d**-0.5, shape)) for name, shape in shapes.items()}


def numbers(tensor: Tensor) -> np.ndarray:
    """Return the numbers of a tensor in double precision."""
    return tensor.detach().to("cpu", torch.float64).numpy()
