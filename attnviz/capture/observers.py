"""Collectors of the attention that a model streams: all weights, pooled weights, the strongest links.

A source runs a model and passes its attention to observers, layer by layer. Each layer comes in blocks, of some query
rows each, so that the weights of a long text never have to be in memory all at once. To pool the weights of a long text
means to add up those of groups of neighbouring tokens. A link is the weight of one query on one key.
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

from attnviz.attention import (
    NEIGHBOURS,
    STATISTICS,
    Kind,
    Note,
    Token,
    TokenStatistics,
    count,
    indices_of,
)
from attnviz.errors import InputError, NoAttentionError

# Collected tensors are kept in main memory, whatever the default device of torch is.
CPU = torch.device("cpu")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """One input as the model reads it: its tokens, and notes about how it was prepared."""

    text: str  # as typed
    pair: str | None  # the second sentence, if there is one
    tokens: tuple[Token, ...]  # the queries
    keys: tuple[Token, ...] | None = None  # None if they are the same tokens as the queries
    target: str | None = None  # the generated text, if the model generates text
    notes: tuple[Note, ...] = ()  # changes made to the text, such as truncation
    # Whether the text had too many tokens for the model, and the last ones were dropped.
    is_cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Sentences that run together."""

    sentences: tuple[Sentence, ...]
    inputs: dict[str, Tensor]  # the model's inputs, by name
    # True for query tokens, False for padding
    real: Bool[Tensor, "batch token"]
    real_keys: Bool[Tensor, "batch key"]  # True for key tokens, False for padding
    # The kind of attention to stream, if the model has several; None if the weights show the kind.
    kind: Kind | None = None


@dataclass(slots=True, kw_only=True)
class Block:
    """Some query rows of one layer; valid until `observe` returns."""

    layer: int  # the layer's number, counted from 0
    first_row: int  # the number of the block's first query row
    n_rows: int  # the number of query rows in the whole layer
    causal: bool  # whether queries may attend to earlier keys only
    n_keys: int  # the number of keys in the whole layer
    # The weights after the softmax on the first keys of the layer, 0 for padding; those on all later keys are 0.
    seen: Float[Tensor, "batch head rows seen"]

    @property
    def weights(self) -> Float[Tensor, "batch head rows keys"]:
        """The weights after the softmax, on all keys."""
        if ahead := self.n_keys - self.seen.shape[-1]:
            self.seen = pad(self.seen, (0, ahead))
        return self.seen


@runtime_checkable  # the shape checks of the tests need it
class Observer(Protocol):
    """Receiver of every block of attention, once each."""

    def begin(self, batch: Batch) -> None:
        """Prepare for a batch that is about to run."""
        del batch

    def observe(self, block: Block) -> None:
        """Receive a block of rows that has been computed."""
        del block


# Pooling of a long text begins with groups so large that a head has at most this many rows.
CELLS = 512
LINKS = 8  # the largest number of links kept per row
GROUP = 64  # keys per group in the search for the largest weights (see `strongest`)
ROWS = 64  # rows processed together: about as many as the CPU caches hold for one head


class ExactRows:
    """The strongest links of each row of a layer, and statistics of its heads, collected as rows stream by.

    `rows` and `keys` are the first and one-past-last one that will come, counted in the padded batch; `statistics` are
    the names of some of `attnviz.attention.STATISTICS`.
    """

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

    def add(self, first: int, rows_added: Float32[Tensor, "head row key"]) -> None:
        """Add the rows that begin with row number `first`.

        `rows_added` holds their weights on the first keys; the weights on all later keys are 0.
        """
        n_links = min(self.link_keys.shape[2], rows_added.shape[2])
        # One scratch buffer for all heads: allocating new memory for each head takes longer than the computation.
        scratch = torch.empty_like(rows_added[0, :ROWS])
        for start in range(0, rows_added.shape[1], ROWS):
            rows = rows_added[:, start : start + ROWS]
            number, n_rows = first + start, rows.shape[1]
            places = slice(number - self._rows[0], number - self._rows[0] + n_rows)
            weights, keys = strongest(rows, n_links)
            self.link_weights[:, places, :n_links] = weights.cpu()
            self.link_keys[:, places, :n_links] = keys.int().cpu()
            for name in self._sums:
                values = self._statistic(name, number, rows, scratch[:n_rows])
                self._sums[name] += values.sum(dim=1, dtype=torch.float64).cpu()

    def _statistic(
        self,
        name: str,
        first: int,
        rows: Float32[Tensor, "head row key"],
        scratch: Float32[Tensor, "row key"],
    ) -> Float32[Tensor, "head row"]:
        """Return one statistic of each row: its entropy, the mean distance of its keys, or its weight on one key.

        `first` is the number of the first row; `scratch` is overwritten.
        """
        if name == "entropy":
            # 0 * log(0) gives NaN, which nansum counts as 0.
            bits = [-torch.log2(head, out=scratch).mul_(head).nansum(dim=1) for head in rows]
            return torch.stack(bits) * math.log(2)
        if name == "first":
            return rows[..., 0]
        queries = (
            torch.arange(first, first + rows.shape[1], device=rows.device)[:, None] - self._keys[0]
        )
        if name == "distance":
            distances = (torch.arange(rows.shape[2], device=rows.device) - queries).abs_().float()
            return torch.stack(
                [torch.mul(head, distances, out=scratch).sum(dim=1) for head in rows]
            )
        key = queries + NEIGHBOURS[name]
        weights = rows.gather(2, key.clamp(0, rows.shape[2] - 1).expand(*rows.shape[:2], 1))[..., 0]
        return weights.where((key[:, 0] >= 0) & (key[:, 0] < rows.shape[2]), 0.0)

    def cut(self, n_links: int) -> None:
        """Keep only the `n_links` strongest links of each row."""
        self.link_keys = self.link_keys[..., :n_links].clone()
        self.link_weights = self.link_weights[..., :n_links].clone()

    def statistics(self) -> dict[str, list[float]]:
        """Return the mean of each statistic over the rows: entropy in nats, shares, distance in tokens."""
        n_rows = self._rows[1] - self._rows[0]
        return {name: (total / n_rows).tolist() for name, total in self._sums.items()}


def strongest(
    weights: Float32[Tensor, "head row key"], n: int
) -> tuple[Float32[Tensor, "head row link"], Int64[Tensor, "head row link"]]:
    """Return the n largest weights of each row, largest first, and the indices of their keys.

    Keys are divided into groups of `GROUP`. The n largest weights lie in the n groups with the largest maxima, or in
    the incomplete last group, so only the keys of these groups need to be sorted.
    """
    n_heads, n_rows, n_keys = weights.shape
    n_groups = n_keys // GROUP
    if n_groups <= n:
        best = weights.topk(n, dim=2)
        return best.values, best.indices
    grouped = weights[..., : n_groups * GROUP].reshape(n_heads, n_rows, n_groups, GROUP)
    groups = grouped.amax(dim=3).topk(n, dim=2, sorted=False).indices  # (H, R, n)
    candidates = grouped.gather(2, groups[..., None].expand(-1, -1, -1, GROUP)).flatten(2)
    best = torch.cat([candidates, weights[..., n_groups * GROUP :]], dim=2).topk(n, dim=2)
    group, place = best.indices // GROUP, best.indices % GROUP
    keys = groups.gather(2, group.clamp_max(n - 1)) * GROUP + place
    return best.values, keys.where(group < n, best.indices + (n_groups - n) * GROUP)


class WeightCollector:
    """Collects the weights of every head of every layer, or of the chosen ones, within a memory limit.

    If the weights would exceed the limit, neighbouring tokens are pooled: a pooled weight is the sum over the keys of a
    group and the mean over its queries. Pooled weights are exact, because rows are added up as they arrive. The
    strongest links of each row, and statistics of each head, are kept beside them.

    Layers and heads are numbers counted from 0; None keeps all of them, all rows (queries) or all keys. `memory` is the
    most bytes to keep.
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
        # By layer, one tensor per sentence.
        self.kept: dict[int, list[Float32[Tensor, "head group keys"]]] = {}
        self._exact: dict[int, list[ExactRows]] = {}

    def begin(self, batch: Batch) -> None:
        """Discard the data of an earlier batch."""
        self._batch = batch
        self._seen: list[int] = []  # the numbers of all layers observed so far
        # The number of heads of the latest layer, and whether it is causal.
        self._n_heads, self._causal = 0, False
        self.kept.clear()
        self._exact.clear()
        self.cell = 1  # the number of neighbouring tokens per group, for queries and for keys
        self._n_links = LINKS
        # For each sentence, the first and one-past-last row and column to keep, counted with its padding.
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
        if self._seen[-1:] != [block.layer]:
            self._seen.append(block.layer)
            self._n_heads, self._causal = n_heads, block.causal
        if not self._keeps(block.layer):
            return
        if block.layer not in self.kept:
            indices_of(self._heads or (), range(n_heads), "head")
            self._add_layer(block.layer)
        # Indexing with a list of all heads would copy the block; a slice does not.
        heads = slice(None) if self._heads is None else self._heads
        for sentence, (rows, keys) in enumerate(self._spans):
            first, last = max(block.first_row, rows[0]), min(block.first_row + n_rows, rows[1])
            if first >= last or keys[0] >= n_seen:
                continue
            places = slice(first - block.first_row, last - block.first_row)
            rows_kept = block.seen[sentence, heads, places, slice(*keys)].float()
            if self.cell > 1:
                self._add_rows(self.kept[block.layer][sentence], first - rows[0], rows_kept)
                self._exact[block.layer][sentence].add(first, rows_kept)
            else:
                layer_weights = self.kept[block.layer][sentence]
                layer_weights[:, first - rows[0] : last - rows[0], : rows_kept.shape[-1]] = (
                    rows_kept.cpu()
                )

    def _add_layer(self, layer: int) -> None:
        """Allocate the tensors of another layer, after pooling the kept layers if memory is short."""
        n_heads = len(self.heads)
        self._make_room(n_heads)
        self.kept[layer] = [
            torch.zeros(n_heads, *self._n_groups(spans), device=CPU) for spans in self._spans
        ]
        if self.cell > 1:
            self._exact[layer] = [self._no_rows(*spans) for spans in self._spans]

    def _add_rows(
        self,
        pooled: Float32[Tensor, "head group keys"],
        start: int,
        rows: Float32[Tensor, "head row key"],
    ) -> None:
        """Add rows to the pooled groups that they belong to; `start` is the place of the first row among all rows."""
        # The first rows may complete a group that an earlier block began.
        n_completing = min(-start % self.cell, rows.shape[1])
        sums = _group_sums(rows[:, n_completing:], self.cell, -2)
        if n_completing:
            sums = torch.cat([rows[:, :n_completing].sum(1, keepdim=True), sums], 1)
        sums = _group_sums(sums, self.cell).cpu()
        group = start // self.cell
        pooled[:, group : group + sums.shape[1], : sums.shape[2]] += sums

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
        """Return one sentence's weights without padding; if `cell` is above 1, the weights between groups of tokens.

        Raises NoAttentionError: the layers have different numbers of heads.
        """
        shapes = [self.kept[layer][index].shape for layer in self.layers]
        if len({*shapes}) > 1:
            counts = ", ".join(str(shape[0]) for shape in shapes)
            raise NoAttentionError(
                f"the layers of this model have different numbers of heads ({counts}): choose one"
            )
        weights = np.empty((len(shapes), *shapes[0]), dtype=np.float32)
        for place, number in enumerate(self.layers):
            weights[place] = self.kept[number][index]
            if self.cell == 1:  # both together would take twice the memory
                self.kept[number][index] = torch.from_numpy(weights[place])
        if self.cell > 1:
            # The kept numbers are sums over queries: divide by the number of queries in each group.
            (first, last), _ = self._spans[index]
            ones = torch.ones(last - first, device=CPU)
            weights /= _group_sums(ones, self.cell).numpy()[:, None]
        weights.setflags(write=False)  # a record need not copy it
        return weights

    def exact(
        self, index: int, queries: tuple[Token, ...], keys: tuple[Token, ...]
    ) -> TokenStatistics | None:
        """Return the links and statistics of single tokens of a sentence; None if the weights are not pooled."""
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
        """Return whether attention is causal ("decoder") or bidirectional ("encoder"), judged by the weights."""
        if weights.shape[2] == 1:
            return "decoder" if self._causal else "encoder"
        patterns = itertools.chain.from_iterable(weights)
        return "encoder" if any(np.triu(pattern, 1).any() for pattern in patterns) else "decoder"

    def _n_groups(self, spans: Sequence[tuple[int, int]]) -> tuple[int, ...]:
        """Return the numbers of groups of a sentence's rows and of its keys."""
        return tuple(math.ceil((last - first) / self.cell) for first, last in spans)

    def _no_rows(self, rows: tuple[int, int], keys: tuple[int, int]) -> ExactRows:
        """Return an empty collection of links and statistics for one layer of a sentence.

        Statistics of neighbours and distance compare positions of queries and keys, so cross-attention has only the
        first two. With only a part of the keys there are none.
        """
        names = STATISTICS
        if self._batch.kind == "cross":
            names = STATISTICS[:2]
        if self._window[1] is not None:
            names = ()
        return ExactRows(len(self.heads), rows, keys, self._n_links, names)

    def _make_room(self, n_heads: int) -> None:
        """Pool tokens until another layer of `n_heads` heads fits in the memory.

        Links take at most half of the memory. If not even one link per row fits in that half, no links are kept.

        Raises InputError: the weights do not fit even if all tokens of a sentence form one group.
        """
        if self._memory is None:
            return
        n_layers = len(self.kept) + 1
        longest = max(last - first for spans in self._spans for first, last in spans)
        while True:
            weights, links = self._bytes_of(n_heads * n_layers)
            if weights + links <= self._memory:
                return
            if links > self._memory / 2:
                self._n_links //= 2
                for rows in itertools.chain(*self._exact.values()):
                    rows.cut(self._n_links)
            elif self.cell < longest:
                is_first_time = self.cell == 1 and longest > CELLS
                self._pool(math.ceil(longest / CELLS) if is_first_time else 2)
            else:
                needed = f"{count(n_heads, 'head')} of {count(n_layers, 'layer')}"
                raise InputError(
                    f"{count(self._memory, 'byte')} of memory cannot hold {needed}: give at least {weights:,}"
                )

    def _bytes_of(self, n_heads: int) -> tuple[int, int]:
        """Return the bytes that the weights, and the bytes that the links, of so many heads take."""
        n_weights = sum(math.prod(self._n_groups(spans)) for spans in self._spans)
        n_rows = sum(last - first for (first, last), _ in self._spans)
        n_links = n_rows * self._n_links if self.cell > 1 else 0
        # A weight takes 4 bytes, a link 8: its key and its weight.
        return 4 * n_heads * n_weights, 8 * n_heads * n_links

    def _pool(self, factor: int) -> None:
        """Join `factor` neighbouring groups into one, in all layers kept so far."""
        if self.cell == 1:
            self._exact = {number: self._exact_rows(layer) for number, layer in self.kept.items()}
        self.cell *= factor
        for layer in self.kept.values():
            layer[:] = [
                _group_sums(_group_sums(weights, factor).mT, factor).mT.contiguous()
                for weights in layer
            ]

    def _exact_rows(self, layer: Sequence[Float32[Tensor, "head _query _key"]]) -> list[ExactRows]:
        """Return links and statistics, one per sentence, of a layer whose weights are still kept in full."""
        collections = []
        for (rows, keys), weights in zip(self._spans, layer, strict=True):
            exact = self._no_rows(rows, keys)
            for first in range(0, weights.shape[1], CELLS):
                exact.add(rows[0] + first, weights[:, first : first + CELLS])
            collections.append(exact)
        return collections


def _span(real: Bool[Tensor, " token"], window: slice | None) -> tuple[int, int]:
    """Return the first and one-past-last position of a sentence's tokens in a padded batch, within the window."""
    places = real.nonzero()[:, 0]
    first, last, _ = (window or slice(None)).indices(len(places))
    return int(places[0]) + first, int(places[0]) + last


def _group_sums(
    weights: Float[Tensor, "*weights"], size: int, dim: int = -1
) -> Float[Tensor, "*sums"]:
    """Return sums over groups of `size` neighbours along a dimension; the last group may be smaller."""
    n_left = weights.shape[dim] % size
    n_full = weights.shape[dim] - n_left
    sums = torch.unflatten(weights.narrow(dim, 0, n_full), dim, (-1, size)).sum(dim)
    if n_left:
        last_sum = weights.narrow(dim, n_full, n_left).sum(dim, keepdim=True)
        sums = torch.cat([sums, last_sum], dim)
    return sums
