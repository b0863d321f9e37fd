"""Collectors of the attention that a model streams: all weights, a pooled picture, strong links.

A source hands every observer each block of query rows once, layer by layer.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Int64
from torch import Tensor
from torch.nn.functional import pad

from attnviz.attention import NEIGHBOURS, STATISTICS, Kind, Note, Token, TokenStatistics, indices_of
from attnviz.errors import InputError, NoAttentionError

# where what is kept stands, whatever device torch makes its tensors on by default
CPU = torch.device("cpu")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """One input as the model reads it: its tokens, and notes about what was done to it before."""

    text: str  # as typed
    pair: str | None  # the second sentence, where there is one
    tokens: tuple[Token, ...]  # the queries
    keys: tuple[Token, ...] | None = None  # None where they are the same
    target: str | None = None  # what the model generates, where it generates text
    notes: tuple[Note, ...] = ()  # what was done
    is_cut: bool = False  # whether it has more tokens than the model takes, and only the first of them are here


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Sentences that run together."""

    sentences: tuple[Sentence, ...]
    inputs: dict[str, Tensor]  # what the model takes, by name
    # True where there is a query token, False where there is padding
    real: Bool[Tensor, "batch token"]
    real_keys: Bool[Tensor, "batch key"]  # likewise for the keys
    # which attention is streamed, where the model has several; None where the weights tell
    kind: Kind | None = None


@dataclass(slots=True, kw_only=True)
class Block:
    """Some query rows of one layer; valid until `observe` returns."""

    layer: int  # from 0
    first_row: int  # the number of the first query row held
    n_rows: int  # how many query rows the layer has in all
    causal: bool  # whether queries may look at earlier keys only
    n_keys: int  # how many keys it has
    # after the softmax, 0 for padding: the first keys, all others are 0
    seen: Float[Tensor, "batch head rows seen"]

    @property
    def weights(self) -> Float[Tensor, "batch head rows keys"]:
        """The weights after the softmax, of all keys."""
        if ahead := self.n_keys - self.seen.shape[-1]:
            self.seen = pad(self.seen, (0, ahead))
        return self.seen


@runtime_checkable  # the shape checks of the tests need it
class Observer(Protocol):
    """Receives every block of attention once."""

    def begin(self, batch: Batch) -> None:
        """Prepare for a batch that is about to run."""
        del batch

    def observe(self, block: Block) -> None:
        """Take a block of rows that has been computed."""
        del block


CELLS = 512  # rows and columns of a pattern that is pooled, at most
LINKS = 8  # links that are kept of a row, at most
GROUP = 64  # keys among which the largest weight is looked for first
ROWS = 64  # rows that are looked at together: as many as caches hold of a head


class ExactRows:
    """The strongest links of each row of a layer, and statistics of its heads, collected as rows stream by."""

    def __init__(
        self,
        n_heads: int,
        rows: tuple[int, int],
        keys: tuple[int, int],
        n_links: int,
        statistics: tuple[str, ...],
    ) -> None:
        self._rows, self._keys = rows, keys
        n_links = min(n_links, keys[1] - keys[0])
        self.link_keys = torch.zeros(
            n_heads, rows[1] - rows[0], n_links, dtype=torch.int32, device=CPU
        )
        self.link_weights = torch.zeros(self.link_keys.shape, device=CPU)
        self._sums = {
            name: torch.zeros(n_heads, dtype=torch.float64, device=CPU) for name in statistics
        }

    def add(self, first: int, own: Float32[Tensor, "head row key"]) -> None:
        """Take in rows from the number `first` on.

        `own` are their weights on the first keys; those on all later keys are 0.
        """
        n_links = min(self.link_keys.shape[2], own.shape[2])
        # to take new memory for each head costs more than to compute
        spare = torch.empty_like(own[0, :ROWS])
        for start in range(0, own.shape[1], ROWS):
            rows = own[:, start : start + ROWS]
            number, n_rows = first + start, rows.shape[1]
            at = slice(number - self._rows[0], number - self._rows[0] + n_rows)
            weights, keys = strongest(rows, n_links)
            self.link_weights[:, at, :n_links] = weights.cpu()
            self.link_keys[:, at, :n_links] = keys.int().cpu()
            for name in self._sums:
                values = self._statistic(name, number, rows, spare[:n_rows])
                self._sums[name] += values.sum(dim=1, dtype=torch.float64).cpu()

    def _statistic(
        self,
        name: str,
        first: int,
        rows: Float32[Tensor, "head row key"],
        spare: Float32[Tensor, "row key"],
    ) -> Float32[Tensor, "head row"]:
        """Return for each row its entropy, the mean distance of its keys, or its weight on one certain key."""
        if name == "entropy":
            # NaN where a weight is 0
            bits = [-torch.log2(head, out=spare).mul_(head).nansum(dim=1) for head in rows]
            return torch.stack(bits) * math.log(2)
        if name == "first":
            return rows[..., 0]
        queries = (
            torch.arange(first, first + rows.shape[1], device=rows.device)[:, None] - self._keys[0]
        )
        if name == "distance":
            away = (torch.arange(rows.shape[2], device=rows.device) - queries).abs_().float()
            return torch.stack([torch.mul(head, away, out=spare).sum(dim=1) for head in rows])
        key = queries + NEIGHBOURS[name]
        weights = rows.gather(2, key.clamp(0, rows.shape[2] - 1).expand(*rows.shape[:2], 1))[..., 0]
        return weights.where((key[:, 0] >= 0) & (key[:, 0] < rows.shape[2]), 0.0)

    def cut(self, n_links: int) -> None:
        """Keep fewer links of each row."""
        self.link_keys = self.link_keys[..., :n_links].clone()
        self.link_weights = self.link_weights[..., :n_links].clone()

    def statistics(self) -> dict[str, list[float]]:
        """Return the mean of each statistic over the rows: entropy in nats, shares, distance in tokens."""
        n_rows = self._rows[1] - self._rows[0]
        return {name: (total / n_rows).tolist() for name, total in self._sums.items()}


def strongest(
    weights: Float32[Tensor, "head row key"], n: int
) -> tuple[Float32[Tensor, "head row link"], Int64[Tensor, "head row link"]]:
    """Return the largest weights of each row, largest first, and the numbers of their keys.

    They are all in the groups of keys whose largest weights are largest, so only few keys need be sorted.
    """
    n_heads, n_rows, n_keys = weights.shape
    n_groups = n_keys // GROUP
    if n_groups <= n:
        best = weights.topk(n, dim=2)
        return best.values, best.indices
    whole = weights[..., : n_groups * GROUP].reshape(n_heads, n_rows, n_groups, GROUP)
    groups = whole.amax(dim=3).topk(n, dim=2, sorted=False).indices  # (H, R, n)
    some = whole.gather(2, groups[..., None].expand(-1, -1, -1, GROUP)).flatten(2)
    rest = weights[..., n_groups * GROUP :]
    best = (torch.cat([some, rest], dim=2) if rest.shape[2] else some).topk(n, dim=2)
    group, place = best.indices // GROUP, best.indices % GROUP
    keys = groups.gather(2, group.clamp_max(n - 1)) * GROUP + place
    return best.values, keys.where(group < n, best.indices + (n_groups - n) * GROUP)


class WeightCollector:
    """Collect the weights of every head of every layer, or of those chosen, within a memory.

    Once they would take more, neighbouring tokens are pooled: to a group the sum over its keys, from it the mean over
    its queries. Each such cell is exact: its rows are added up as they stream by. The strongest links of each row are
    kept beside them, and statistics of each head.

    Args:
        layers: numbers from 0; None keeps all.
        heads: likewise.
        rows: the query tokens to keep; None keeps all.
        keys: the key tokens to keep, likewise.
        memory: the most bytes to keep; None sets no limit.
    """

    def __init__(
        self,
        layers: Collection[int] | None = None,
        heads: Collection[int] | None = None,
        *,
        rows: slice | None = None,
        keys: slice | None = None,
        memory: int | None = None,
    ) -> None:
        self._layers = layers
        self._heads = None if heads is None else sorted(set(heads))
        self._window = rows, keys
        self._memory = memory
        # of each layer, for each sentence
        self.kept: dict[int, list[Float32[Tensor, "head group keys"]]] = {}
        self._exact: dict[int, list[ExactRows]] = {}

    def begin(self, batch: Batch) -> None:
        """Forget what was kept of an earlier batch."""
        self._batch = batch
        self._seen: list[int] = []  # numbers of layers
        self._n_heads, self._causal = 0, False
        self.kept.clear()
        self._exact.clear()
        self.cell = 1  # neighbouring tokens that are pooled, along both sides
        self._n_links = LINKS
        # The first and one-past-last row and column to keep of each sentence, counted with its padding.
        rows, keys = self._window
        self._spans = [
            (_span(real, rows), _span(real_keys, keys))
            for real, real_keys in zip(batch.real, batch.real_keys, strict=True)
        ]

    def observe(self, block: Block) -> None:
        """Keep the wanted part of a block.

        Raises InputError: the memory is too small for anything; SelectionError: there is no such head.
        """
        n_heads, n_rows, n_seen = block.seen.shape[1:]
        if block.first_row == 0:
            self._seen.append(block.layer)
            self._n_heads, self._causal = n_heads, block.causal
        if not self._keeps(block.layer):
            return
        if block.layer not in self.kept:
            indices_of(self._heads or (), range(n_heads), "head")
            self._add_layer(block.layer)
        # A list of all heads would copy the block.
        heads = slice(None) if self._heads is None else self._heads
        for sentence, (rows, keys) in enumerate(self._spans):
            first, last = max(block.first_row, rows[0]), min(block.first_row + n_rows, rows[1])
            if first >= last or keys[0] >= n_seen:
                continue
            places = slice(first - block.first_row, last - block.first_row)
            own = block.seen[sentence, heads, places, slice(*keys)].float()
            if self.cell > 1:
                self._add_rows(self.kept[block.layer][sentence], first - rows[0], own)
                self._exact[block.layer][sentence].add(first, own)
            else:
                kept = self.kept[block.layer][sentence]
                kept[:, first - rows[0] : last - rows[0], : own.shape[-1]] = own.cpu()

    def _add_layer(self, layer: int) -> None:
        """Make room for another layer."""
        n_heads = len(self.heads)
        self._make_room(n_heads)
        self.kept[layer] = [
            torch.zeros(n_heads, *self._shape(spans), device=CPU) for spans in self._spans
        ]
        if self.cell > 1:
            self._exact[layer] = [self._rows(*spans) for spans in self._spans]

    def _add_rows(
        self,
        pooled: Float32[Tensor, "head group keys"],
        start: int,
        rows: Float32[Tensor, "head row key"],
    ) -> None:
        """Add rows from the place `start` on to the groups that they belong to."""
        # The first rows may belong to a group that an earlier block began.
        n_begun = min(-start % self.cell, rows.shape[1])
        sums = _grouped(rows[:, n_begun:], self.cell, -2)
        if n_begun:
            sums = torch.cat([rows[:, :n_begun].sum(1, keepdim=True), sums], 1)
        cells = _grouped(sums, self.cell).cpu()
        group = start // self.cell
        pooled[:, group : group + cells.shape[1], : cells.shape[2]] += cells

    @property
    def layers(self) -> tuple[int, ...]:
        """The numbers of the layers kept. Raises SelectionError: there is no such layer."""
        indices_of(self._layers or (), self._seen, "layer")
        return tuple(self.kept)

    @property
    def heads(self) -> tuple[int, ...]:
        """The numbers of the heads kept."""
        return tuple(self._heads_of(self._n_heads))

    def _keeps(self, layer: int) -> bool:
        return self._layers is None or layer in self._layers

    def _heads_of(self, n_heads: int) -> list[int]:
        return list(range(n_heads)) if self._heads is None else self._heads

    def weights(self, index: int) -> Float32[np.ndarray, "layer head query key"]:
        """Return one sentence's weights without padding; where `cell` is above 1, those of groups of tokens.

        Raises NoAttentionError: the layers have different numbers of heads.
        """
        layers = [self.kept[layer][index] for layer in self.layers]
        if len({layer.shape for layer in layers}) > 1:
            counts = ", ".join(str(layer.shape[0]) for layer in layers)
            raise NoAttentionError(
                f"the layers of this model have different numbers of heads ({counts}): choose one"
            )
        weights = torch.stack(layers)
        if self.cell > 1:
            (first, last), _ = self._spans[index]
            weights /= _grouped(torch.ones(last - first, device=CPU), self.cell)[:, None]
        return weights.numpy()

    def exact(
        self, index: int, queries: tuple[Token, ...], keys: tuple[Token, ...]
    ) -> TokenStatistics | None:
        """Return the links and statistics of single tokens of a sentence; None where weights are not pooled."""
        if self.cell == 1:
            return None
        layers = [self._exact[layer][index] for layer in self.layers]
        means = [layer.statistics() for layer in layers]
        return TokenStatistics(
            query_tokens=queries,
            key_tokens=keys,
            statistics={name: tuple(tuple(mean[name]) for mean in means) for name in means[0]},
            link_keys=torch.stack([layer.link_keys for layer in layers]).numpy(),
            link_weights=torch.stack([layer.link_weights for layer in layers]).numpy(),
        )

    def kind(self, weights: Float32[np.ndarray, "layer head query key"]) -> Kind:
        """Return whether attention is causal or bidirectional, judged by the weights."""
        ahead = np.triu(np.ones(weights.shape[2:], dtype=bool), 1)
        causal = self._causal if weights.shape[2] == 1 else not weights[:, :, ahead].any()
        return "decoder" if causal else "encoder"

    def _shape(self, spans: Sequence[tuple[int, int]]) -> tuple[int, ...]:
        return tuple(-(-(last - first) // self.cell) for first, last in spans)

    def _rows(self, rows: tuple[int, int], keys: tuple[int, int]) -> ExactRows:
        """Return an empty collection of links and statistics for a layer of a sentence.

        Statistics compare positions, so there are fewer of cross attention, and none of a part of the keys.
        """
        names = STATISTICS
        if self._batch.kind == "cross":
            names = STATISTICS[:2]
        if self._window[1] is not None:
            names = ()
        return ExactRows(len(self.heads), rows, keys, self._n_links, names)

    def _make_room(self, n_heads: int) -> None:
        """Pool tokens until another layer of so many heads fits in the memory.

        Links take half of the memory at most; where not even one of each row fits in it, there are none.
        """
        if self._memory is None:
            return
        n_layers = len(self.kept) + 1
        n_rows = sum(last - first for (first, last), _ in self._spans)
        longest = max(last - first for spans in self._spans for first, last in spans)
        while True:
            n_cells = sum(math.prod(self._shape(spans)) for spans in self._spans)
            weights = 4 * n_heads * n_layers * n_cells
            links = 8 * n_heads * n_layers * n_rows * self._n_links if self.cell > 1 else 0
            if weights + links <= self._memory:
                return
            if links > self._memory / 2:
                self._n_links //= 2
                for rows in itertools.chain(*self._exact.values()):
                    rows.cut(self._n_links)
            elif self.cell < longest:
                self._pool(-(-longest // CELLS) if self.cell == 1 and longest > CELLS else 2)
            else:
                what = f"{n_heads} heads of {n_layers} layers: at least {weights:,} are needed"
                raise InputError(f"{self._memory:,} bytes are too few for {what}")

    def _pool(self, factor: int) -> None:
        """Pool so many neighbouring cells of the layers kept so far."""
        if self.cell == 1:
            self._exact = {number: self._exact_rows(layer) for number, layer in self.kept.items()}
        self.cell *= factor
        for layer in self.kept.values():
            layer[:] = [
                _grouped(_grouped(weights, factor).mT, factor).mT.contiguous() for weights in layer
            ]

    def _exact_rows(self, layer: Sequence[Float32[Tensor, "head _query _key"]]) -> list[ExactRows]:
        """Return links and statistics of a layer whose weights are still kept in full."""
        found = []
        for (rows, keys), weights in zip(self._spans, layer, strict=True):
            exact = self._rows(rows, keys)
            for first in range(0, weights.shape[1], CELLS):
                exact.add(rows[0] + first, weights[:, first : first + CELLS])
            found.append(exact)
        return found


def _span(real: Bool[Tensor, " token"], window: slice | None) -> tuple[int, int]:
    """Return the first and one-past-last place in a batch of a sentence's tokens, or of those in the window."""
    places = real.nonzero()[:, 0]
    first, last, _ = (window or slice(None)).indices(len(places))
    return int(places[0]) + first, int(places[0]) + last


def _grouped(
    weights: Float[Tensor, "*weights"], size: int, dim: int = -1
) -> Float[Tensor, "*sums"]:
    """Return sums over groups of neighbours along a dimension; the last group may be smaller."""
    left = weights.shape[dim] % size
    full = weights.shape[dim] - left
    sums = torch.unflatten(weights.narrow(dim, 0, full), dim, (-1, size)).sum(dim)
    if left:
        rest = weights.narrow(dim, full, left).sum(dim, keepdim=True)
        sums = torch.cat([sums, rest], dim)
    return sums
