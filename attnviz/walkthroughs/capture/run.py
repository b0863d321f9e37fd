"""One run of a model and the part of it that is followed: which head, which query, and what its layer did with them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attnviz.attention import Kind
from attnviz.capture.observers import Batch
from attnviz.capture.projections import KeepProjections
from attnviz.capture.sources import Source
from attnviz.capture.stream import Layer, rows_of
from attnviz.walkthroughs.calculation import Calculation, Terms
from attnviz.walkthroughs.record import Grid
from attnviz.walkthroughs.settings import Score

SCORE_SEED = 0  # the weights of another way to score are drawn from it


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadRun:
    """One run, and which part of it is followed."""

    source: Source  # the model
    batch: Batch  # what it ran on: one sentence
    keep: KeepProjections  # the layer
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
        return tuple(token.text for token in (sentence.tokens if sentence.keys is None else sentence.keys))

    @property
    def generates(self) -> bool:
        """Whether each query is the step that generates its word; else it is a word that was read."""
        return self.batch.sentences[0].keys is not None

    @property
    def query_names(self) -> tuple[str, ...]:
        """The names of the queries walked."""
        return self.queries if self.row is None else (self.queries[self.row],)

    @property
    def names(self) -> tuple[str, str, str]:
        """What the grids of queries, keys and values are called."""
        return f"{'Q' if self.row is None else 'q'}{self.suffix}", f"K{self.suffix}", f"V{self.suffix}"

    def rows_of(self, whole: Tensor) -> Tensor:
        """Of something with a row for each query, the rows walked."""
        return whole if self.row is None else whole[self.row : self.row + 1]

    def own(self) -> tuple[Tensor, Tensor, Tensor]:
        """The head's queries walked, keys and values, as the model computed them: each [token, d]."""
        layer = self.layer
        return self.rows_of(layer.query[0, self.head]), layer.key[0, self.group], layer.value[0, self.group]

    def context(self) -> np.ndarray:
        """The head's context of the queries walked, as the model computed it: [query, d_v]."""
        return numbers(self.rows_of(self.layer.output[0, :, self.head]))

    def give_own(self, calculation: Calculation) -> None:
        """Write down query, keys and values as given."""
        for name, own, rows in zip(self.names, self.own(), (self.query_names, self.keys, self.keys), strict=True):
            calculation.give(name, Grid(values=numbers(own), rows=rows))

    def write_attention(self, calculation: Calculation, score: Score = "scaled", *, causal: bool = False) -> str:
        """Write down what the head makes of query, keys and values already there; the context's name comes back."""
        query, keys, values = self.names
        terms = terms_of(self, score, causal=causal)
        return calculation.write_attention(terms, query=query, keys=keys, values=values, suffix=self.suffix)


def terms_of(run: HeadRun, score: Score = "scaled", *, causal: bool = False) -> Terms:
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
        score=score, weights=_draw_weights(score, layer.query.shape[3]), scaling=scoring.scaling,
        softcap=scoring.softcap, bias=_label(run, bias), mask=_label(run, may_look) if hides else None,
        sink=None if scoring.sinks is None else Grid(values=numbers(scoring.sinks.flatten()[head : head + 1])[None]),
    )  # fmt: skip


def _of_head(whole: Tensor, run: HeadRun) -> Tensor:
    """Of a mask or bias [batch, head, query, key], each of which may be 1 for all, the head and rows walked."""
    n_queries, n_keys = run.layer.query.shape[2], run.layer.key.shape[2]
    whole = whole.reshape((1,) * (4 - whole.ndim) + whole.shape)[..., :n_keys]
    return run.rows_of(whole[0, run.head if whole.shape[1] > 1 else 0].expand(n_queries, n_keys))


def _label(run: HeadRun, rows: Tensor | None) -> Grid | None:
    return None if rows is None else Grid(values=numbers(rows), rows=run.query_names, columns=run.keys)


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
