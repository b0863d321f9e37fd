"""Heads measured while their rows stream by: what is kept of a batch are sums, a few numbers for each head."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnviz.attention import Token
from attnviz.capture.observers import Batch, Block
from attnviz.capture.projections import Call, map_of, same
from attnviz.capture.stream import Layer, for_each_head, visible_keys
from attnviz.errors import NoAttentionError
from attnviz.heads import measures as heads
from attnviz.heads.measures import Marks, Rows, Specials
from attnviz.heads.record import MAX_OFFSET, offsets_up_to

CORNER = 16
"""Patterns are compared place by place within so many first tokens."""

MOST_PAIRS = 2**17
"""Pairs of a query and a key of one sentence whose rows are all kept for comparing heads (362 tokens); of a longer
sentence, so many rows, evenly spaced, as make no more."""


MOST_AT_ONCE = 2**23
"""Pairs of a query and a key, times shares, that are measured at once: several usual batches, or some rows of a long
sentence, for which all that is worked out takes 100 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was measured of the sentences of a batch.

    Attributes:
        sums: of each measure of `heads.names`, the sum over a sentence's rows.
        counts: how many rows were counted.
        corner: each head's weights among the first `CORNER` tokens, 0 beyond the sentence.
        corner_seen: where a weight was counted there.
        fixed: sums of the shares of `heads.SHARES` for heads made up, each of which looks at one offset
            always; of the first layer, and where the model lets it.
        fixed_counts: how many rows were counted.
        rows: the rows of all heads, where they were kept, 0 where there is padding.
        rows_counted: which of these rows count.
    """

    sums: Float[Tensor, "batch layer head measure"]
    counts: Float[Tensor, "batch layer measure"]
    corner: Float[Tensor, "batch layer head 16 16"]
    corner_seen: Bool[Tensor, "batch layer 16 16"]
    fixed: Float[Tensor, "batch offset share"]
    fixed_counts: Float[Tensor, "batch share"]
    rows: Float[Tensor, "batch heads rows key"] | None = None
    rows_counted: Bool[Tensor, "batch rows"] | None = None


class MeasureHeads:
    """Measures every head of every layer on each sentence of a batch.

    Args:
        specials: whether special tokens take part.
        handed: each layer's output map as `output_maps` found it, for norm-based measures; without one, none is
            counted.
        keep_rows: whether rows are kept, so that heads can be compared with one another.
        dealt: for each sentence of a batch a seed: the weights of its rows are dealt out to its keys at random.
        max_offset: fixed offsets are measured from so many tokens back to so many ahead.
    """

    def __init__(
        self,
        specials: Specials = "keep",
        handed: Mapping[int, Float[Tensor, "head d_v small"]] | None = None,
        *,
        keep_rows: bool = False,
        dealt: Sequence[int] | None = None,
        max_offset: int = MAX_OFFSET,
    ) -> None:
        self._dealt = dealt
        self._max_offset = max_offset
        self._specials = specials
        self._handed = handed or {}
        self._keep_rows = keep_rows

    def begin(self, batch: Batch) -> None:
        """Read the tokens of a new batch, and forget the last one."""
        self._marks = marks_of(batch, self._specials)
        self._order = None if self._dealt is None else _orders(self._marks.keys, self._dealt)
        self._targets = _KnownTargets(offsets_up_to(self._max_offset))
        self._layers: list[_OneLayer] = []

    def observe_layer(self, layer: Layer) -> None:
        """A new layer begins."""
        found = self._handed.get(layer.number)
        lengths = None if found is None else _lengths(layer, found)
        is_first = not self._layers
        self._layers.append(
            _OneLayer(
                layer,
                self._marks,
                lengths,
                order=self._order,
                targets=self._targets,
                is_first=is_first,
                keep_rows=self._keep_rows,
            )
        )

    def observe(self, block: Block) -> None:
        """Measure these rows."""
        self._layers[-1].add(block)

    @torch.inference_mode()
    def measured(self) -> Measured:
        """What was measured of the batch.

        Raises:
            NoAttentionError: the layers have different numbers of heads.
        """
        done = [layer.done() for layer in self._layers]
        if len({one.sums.shape for one in done}) > 1:
            counts = ", ".join(str(one.sums.shape[2]) for one in done)
            raise NoAttentionError(f"the layers of this model have different numbers of heads ({counts})")
        kept = [one.rows for one in done if one.rows is not None]
        return Measured(
            sums=torch.cat([one.sums for one in done], dim=1),
            counts=torch.cat([one.counts for one in done], dim=1),
            corner=torch.cat([one.corner for one in done], dim=1),
            corner_seen=torch.cat([one.corner_seen for one in done], dim=1),
            fixed=done[0].fixed,
            fixed_counts=done[0].fixed_counts,
            rows=torch.cat(kept, dim=1) if kept else None,
            rows_counted=done[0].rows_counted,
        )


class FindOutputMaps:
    """Finds the map that each layer gives the contexts of its heads to, by its being given them to the last bit."""

    def __init__(self) -> None:
        self.handed: dict[int, Float[Tensor, "head d_v small"]] = {}
        """Of each layer, for each head a matrix R for which |v R| is the length of v through the output map."""
        self._layer: Layer | None = None

    def begin(self, batch: Batch) -> None:
        """Nothing of a batch is needed."""

    def observe(self, block: Block) -> None:
        """Nor of its weights."""

    def observe_layer(self, layer: Layer) -> None:
        """The calls that follow may be its output map's."""
        self._layer = layer

    def observe_call(self, call: Call) -> None:
        """See whether this is the map."""
        layer = self._layer
        if layer is None or layer.number in self.handed or not same(call.given, layer.output.flatten(2)):
            return
        found = map_of(call, 0, call.made.shape[2])
        if found is not None:
            n_heads, d_v = layer.output.shape[2:]
            weight = found.weight.reshape(n_heads, d_v, -1)  # (H, d_v, D)
            dtype = torch.promote_types(weight.dtype, torch.float32)
            # W = R Q with the rows of Q orthonormal, so |v W| = |v R|, with R as small as a head.
            r = torch.linalg.qr(weight.transpose(1, 2).to(dtype), mode="r").R  # (H, min(d_v, D), d_v)
            self.handed[layer.number] = r.transpose(1, 2)


def marks_of(batch: Batch, specials: Specials = "keep") -> Marks:
    """What is known of the tokens of a batch."""
    keys = [sentence.tokens if sentence.keys is None else sentence.keys for sentence in batch.sentences]
    real_keys = batch.real if batch.real_keys is None else batch.real_keys
    device = batch.real.device
    numbers: dict[str, int] = {}  # home-built models may have none of their own

    def number(token: Token) -> int:
        return token.id if token.id is not None else numbers.setdefault(token.piece, len(numbers))

    def where(true: Callable[[int, Token], bool]) -> Bool[Tensor, "batch key"]:
        return _padded([[true(j, token) for j, token in enumerate(row)] for row in keys], real_keys, fill=False)

    special = where(lambda _, token: token.special)
    special_queries = _padded([[t.special for t in s.tokens] for s in batch.sentences], batch.real, fill=False)
    last = real_keys & (torch.arange(real_keys.shape[1], device=device) == real_keys.sum(dim=1)[:, None] - 1)
    first = where(lambda j, _: j == 0)
    out = specials == "exclude"
    return Marks(
        specials=specials,
        queries=batch.real & ~special_queries if out else batch.real,
        keys=real_keys & ~special if out else real_keys,
        first=first,
        separator=special & ~first,
        punctuation=where(lambda _, token: not token.special and is_punctuation(token.text)),
        end=special & last & ~first,
        ids=_padded([[-1 if t.special else number(t) for t in row] for row in keys], real_keys, fill=-1),
        square=batch.kind != "cross",
    )


class _KnownTargets:
    """Where the keys of each share are: worked out once for all layers of a batch whose rows see the same keys.

    Of matrices that come in several blocks nothing is kept: that would be larger than the blocks.
    """

    def __init__(self, offsets: tuple[int, ...]) -> None:
        self.offsets = offsets
        self._known: tuple[Tensor, heads.Targets] | None = None

    def of(self, rows: Rows, *, whole: bool) -> heads.Targets:
        """The targets of these rows."""
        if self._known is not None and whole and torch.equal(self._known[0], rows.seen):
            return self._known[1]
        targets = heads.targets_of(rows, self.offsets)
        if whole:
            self._known = rows.seen, targets
        return targets


class _OneLayer:
    """One layer of a batch being measured."""

    def __init__(
        self,
        layer: Layer,
        marks: Marks,
        lengths: Float[Tensor, "batch head key"] | None,
        *,
        order: Int[Tensor, "batch key"] | None,
        targets: _KnownTargets,
        is_first: bool,
        keep_rows: bool,
    ) -> None:
        n_batch, n_heads = layer.query.shape[:2]
        n_keys = marks.keys.shape[1]
        self._scoring, self._marks, self._lengths, self._is_first = layer.scoring, marks, lengths, is_first
        self._order, self._targets, self._offsets = order, targets, targets.offsets
        self._names = heads.names(self._offsets[-1])
        new = partial(torch.zeros, device=marks.keys.device)
        self._sums = new(n_batch, n_heads, len(self._names), dtype=torch.float64)
        self._counts = new(n_batch, len(self._names), dtype=torch.float64)
        self._received = new(n_batch, n_heads, n_keys, dtype=torch.float64)
        self._seen_by = new(n_batch, n_keys, dtype=torch.float64)
        self._n_rows = new(n_batch, dtype=torch.float64)
        self._corner = new(n_batch, n_heads, CORNER, CORNER)
        self._corner_seen = new(n_batch, CORNER, CORNER, dtype=torch.bool)
        self._fixed = new(n_batch, len(self._offsets), len(heads.SHARES), dtype=torch.float64)
        self._fixed_counts = new(n_batch, len(heads.SHARES), dtype=torch.float64)
        self._kept: list[Tensor] = []
        self._kept_counted: list[Tensor] = []
        self._step = max(1, -(-marks.queries.shape[1] * n_keys // MOST_PAIRS)) if keep_rows else None

    def add(self, block: Block) -> None:
        """Measure some of its rows, few enough at a time that what is worked out on the way stays small."""
        n_batch, _, n_rows, n_keys = block.weights.shape
        step = max(1, MOST_AT_ONCE // (n_batch * n_keys * (len(heads.SHARES) + len(self._offsets))))
        for start in range(0, n_rows, step):
            weights = block.weights[:, :, start : start + step]
            self._add(weights, block.first_row + start, whole=weights.shape[2] == block.n_rows)

    def _add(self, weights: Float[Tensor, "batch head rows key"], first: int, *, whole: bool) -> None:
        visible = visible_keys(self._scoring, first, first + weights.shape[2], weights.shape[3], weights.device)
        rows = heads.rows_of(weights, visible[:, 0], first, self._marks)
        if self._order is not None:
            rows = heads.dealt_out(rows, self._order)
        targets, top = self._targets.of(rows, whole=whole), heads.largest(rows)
        for name, (total, n) in heads.row_measures(rows, top).items():
            self._sums[:, :, self._names.index(name)] += total
            self._counts[:, self._names.index(name)] += n
        sorts, offsets = slice(len(heads.SHARES)), slice(len(heads.SHARES), None)
        found = heads.shares(rows, targets)
        self._add_shares("self", found[..., sorts], targets.counts[:, sorts])
        self._add_shares(f"offset_{self._offsets[0]:+d}", found[..., offsets], targets.counts[:, offsets])
        self._add_shares(
            f"peak_{self._offsets[0]:+d}", heads.peaks(rows, top, self._offsets), targets.counts[:, offsets]
        )
        if self._lengths is not None:
            weighed = heads.shares(heads.norm_based(rows, self._lengths), targets)
            self._add_shares("norm_self", weighed[..., sorts], targets.counts[:, sorts])
        self._received += rows.weights.sum(dim=2)
        self._seen_by += rows.seen.sum(dim=1)
        self._n_rows += rows.counted.sum(dim=1)
        self._add_corner(rows)
        if self._is_first and self._marks.square:
            self._fixed += heads.shares(heads.fixed_offsets(rows, self._offsets), targets)[..., : len(heads.SHARES)]
            self._fixed_counts += targets.counts[:, : len(heads.SHARES)]
        if self._step is not None:
            here = slice(-first % self._step, None, self._step)
            self._kept.append(rows.weights[:, :, here].clone())
            self._kept_counted.append(rows.counted[:, here])

    def _add_shares(
        self, start: str, sums: Float[Tensor, "batch head some"], counts: Float[Tensor, "batch some"]
    ) -> None:
        """Add to the measures that are kept side by side, the first of them of this name."""
        at = self._names.index(start)
        self._sums[:, :, at : at + sums.shape[2]] += sums
        self._counts[:, at : at + sums.shape[2]] += counts

    def _add_corner(self, rows: Rows) -> None:
        first, last = rows.first_row, min(CORNER, rows.first_row + rows.weights.shape[2])
        n_keys = min(CORNER, rows.weights.shape[3])
        if first < last:
            self._corner[:, :, first:last, :n_keys] = rows.weights[:, :, : last - first, :n_keys]
            self._corner_seen[:, first:last, :n_keys] = rows.seen[:, : last - first, :n_keys]

    def done(self) -> Measured:
        """What was measured of the layer: it is the only one of the axis `layer`."""
        at = self._names.index("sink")
        self._sums[:, :, at], self._counts[:, at] = heads.sink(self._received, self._seen_by, self._n_rows)
        return Measured(
            sums=self._sums[:, None],
            counts=self._counts[:, None],
            corner=self._corner[:, None],
            corner_seen=self._corner_seen[:, None],
            fixed=self._fixed,
            fixed_counts=self._fixed_counts,
            rows=torch.cat(self._kept, dim=2) if self._kept else None,
            rows_counted=torch.cat(self._kept_counted, dim=1) if self._kept else None,
        )


def _orders(real: Bool[Tensor, "batch key"], seeds: Sequence[int]) -> Int[Tensor, "batch key"]:
    """For each sentence an order of its keys, drawn from its seed; padding stays where it is."""
    orders = torch.arange(real.shape[1], device=real.device).repeat(len(seeds), 1)
    for row, seed in enumerate(seeds):
        places = real[row].nonzero()[:, 0]
        drawn = np.random.Generator(np.random.PCG64(seed)).permutation(len(places))
        orders[row, places] = places[torch.from_numpy(drawn).to(places.device)]
    return orders


def is_punctuation(text: str) -> bool:
    """Whether a token is nothing but punctuation marks (the Unicode categories P)."""
    return bool(text) and all(unicodedata.category(character).startswith("P") for character in text)


def _lengths(layer: Layer, handed: Float[Tensor, "head d_v small"]) -> Float[Tensor, "batch head key"]:
    """How long what each key hands over is: its value, through the part of the output map that is its head's."""
    value = for_each_head(layer.value.to(handed.dtype), handed.shape[0])
    lengths: Tensor = torch.linalg.vector_norm(torch.matmul(value, handed), dim=-1)
    return lengths


def _padded(rows: Sequence[Sequence[int]], real: Bool[Tensor, "batch token"], *, fill: int) -> Tensor:
    """Rows of a value for each token as one tensor, with what stands for padding."""
    width = real.shape[1]
    return torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows], device=real.device)
