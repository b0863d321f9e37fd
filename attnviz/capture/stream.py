"""Compute attention weights from queries and keys, a block of rows at a time, and verify each layer.

The model's own implementation of attention is called native; `verification` says how weights are compared with it.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn
from torch.nn import functional

from attnviz.attention import QKV, Receipt, indices_of
from attnviz.capture.observers import CPU, Batch, Block, Observer, WeightCollector
from attnviz.capture.verification import (
    EVERY_NUMBER,
    SUMS,
    Attend,
    LayerCheck,
    name_of_format,
    tolerance_of,
)
from attnviz.errors import InputError, ModelError, NoAttentionError

# The limits on a block of weights: large enough to keep all cores busy, small compared with any model.
BLOCK_BYTES = 256 * 2**20
BLOCK_ROWS = 256
# Rows of a long text are so many columns longer, which are not shown: rows whose length is a power of two all fall into
# the same lines of the processor's caches, and their products take a fifth longer.
LONG_ROWS_MORE = 16
LOAD_INSTEAD = (
    "weights that you saved with their tokens as .npz or .json can be loaded and drawn instead"
)
SMALL = 96 * 2**10  # the most bytes of queries, keys and values that a record keeps


# The mask of a long text is a function, because the whole matrix would not fit in memory. Called with a first and a
# one-past-last query, it returns True for the keys that these queries may attend to,
# [batch or 1, head or 1, query, key].
MaskRows: TypeAlias = Callable[[int, int], Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """The terms of a layer's scores beside the dot product.

    Sources: soft cap, Gemma Team 2024, "Gemma 2", section 2; bias, Raffel et al. 2020, T5; sinks, OpenAI 2025, gpt-oss.
    """

    scaling: float | None = None  # factor of the dot product; None for 1 / sqrt(d_k)
    # A boolean mask is True at the keys that a query may attend to. A float mask is added to the scores; there it is
    # usually 0.
    mask: Tensor | MaskRows | None = None
    # If there is no mask: whether queries attend only to keys up to their own position.
    causal: bool = False
    softcap: float | None = None  # tanh limits the scores to (-softcap, softcap)
    bias: Tensor | None = None  # added to the scores, such as relative positions
    # One score per head for attending to nothing. It takes part in the softmax and is then dropped, so rows sum to less
    # than 1.
    sinks: Float[Tensor, " head"] | None = None
    # The largest number of keys that a query sees; the mask already contains this limit.
    window: int | None = None
    # Eager implementations compute scores in the model's own number format: in bfloat16 a score of 30 is off by up to
    # 0.06, and its weight by 6%. Fused ones compute them in float32.
    rounded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """The inputs of one layer's attention, and the output that the model computed from them.

    With grouped queries, several query heads share one key and value head; the axis `group` counts the shared heads.
    """

    number: int = -1  # counted from 0; with -1 the forward pass assigns the next number
    query: Float[Tensor, "batch head query d_k"]  # after rotary positions, if there are any
    key: Float[Tensor, "batch group key d_k"]
    value: Float[Tensor, "batch group key d_v"]
    # The context vectors of each head, as the native implementation computed them.
    output: Float[Tensor, "batch query head d_v"]
    scoring: Scoring
    # The weights that the native implementation returned; None if it returns none.
    own_weights: Float[Tensor, "batch head query key"] | None = None
    # Runs the native implementation on this layer again, with other values; None if it cannot.
    attend: Attend | None = None
    # The number of last keys that are no token. They take part in the softmax, and are not shown.
    n_extra_keys: int = 0

    @property
    def scaling(self) -> float:
        """The factor that the dot products are multiplied by."""
        return scaling_of(self.query, self.scoring)


@runtime_checkable  # so that a run can recognise these observers with isinstance
class LayerObserver(Observer, Protocol):
    """An observer that also receives each layer's query, key and value, before the layer's blocks."""

    def observe_layer(self, layer: Layer) -> None:
        """Receive a layer whose attention has been computed; its blocks follow."""


@runtime_checkable
class OutputEditor(LayerObserver, Protocol):
    """An observer that changes what the model goes on with after each layer."""

    def edit(
        self, output: Float[Tensor, "batch query head d_v"]
    ) -> Float[Tensor, "batch query head d_v"]:
        """Return the output of the layer whose blocks it has observed, changed."""
        ...


class RecordCollector(WeightCollector):
    """Collects weights and, if they are available, the queries, keys and values of whole sentences.

    Queries, keys and values are kept if they are small, or with `vectors` as far as they fit in the memory, together
    with the weights; the other arguments are those of `WeightCollector`.
    """

    def __init__(self, *selection: Any, vectors: bool = False, **limits: Any) -> None:
        super().__init__(*selection, **limits)
        self._wants_vectors = vectors

    def begin(self, batch: Batch) -> None:
        """Discard the data of an earlier batch."""
        super().begin(batch)
        self._bytes_needed = 0
        # by sentence, of each layer: queries, keys and values without padding, and the scaling
        self._held: list[list[tuple[np.ndarray, np.ndarray, np.ndarray, float]]] = [
            [] for _ in batch.sentences
        ]

    def observe_layer(self, layer: Layer) -> None:
        """Keep a layer's queries, keys and values, as long as there is room for all layers."""
        if not self._keeps(layer.number):
            return
        n_heads = layer.query.shape[1]
        heads = self._heads_of(n_heads)
        indices_of(heads, range(n_heads), "head")
        widths = layer.query.shape[3], layer.key.shape[3] + layer.value.shape[3]
        sizes = [
            4
            * len(heads)
            * sum(d * (end - start) for d, (start, end) in zip(widths, spans, strict=True))
            for spans in self._spans
        ]
        if self._wants_vectors:
            # The weights of this layer are kept beside them.
            n_weights = sum(math.prod(end - start for start, end in spans) for spans in self._spans)
            self._bytes_needed += sum(sizes) + 4 * len(heads) * n_weights
            most = self._memory
        else:
            self._bytes_needed += max(sizes)
            most = SMALL
        if most is not None and self._bytes_needed > most:
            self._held = [[] for _ in self._spans]
            return
        key, value = (for_each_head(tensor, n_heads) for tensor in (layer.key, layer.value))
        for index, (row_span, key_span) in enumerate(self._spans):
            rows, keys = slice(*row_span), slice(*key_span)
            kept = (
                layer.query[index, heads, rows],
                key[index, heads, keys],
                value[index, heads, keys],
            )
            query_kept, key_kept, value_kept = (part.float().numpy(force=True) for part in kept)
            self._held[index].append((query_kept, key_kept, value_kept, layer.scaling))

    def vectors(self, index: int) -> QKV | None:
        """Return the queries, keys and values of sentence `index` without padding.

        Return None unless those of all layers are kept, of whole sentences and of one shape. Raises InputError: they
        are wanted, and the memory is too small; ModelError: they are wanted, and there are none of one shape.
        """
        is_too_large = self._memory is not None and self._bytes_needed > self._memory
        if self._wants_vectors and is_too_large:
            raise InputError(
                f"weights, queries, keys and values take {self._bytes_needed:,} bytes, and the memory is "
                f"{self._memory:,}: give memory={self._bytes_needed}, or choose layers or heads"
            )
        held = self._held[index]
        is_partial = self._window != (None, None) or self.cell > 1
        # Head widths may differ between layers; such arrays cannot be stacked.
        shapes = {(query.shape, key.shape, value.shape) for query, key, value, _ in held}
        if is_partial or len(held) != len(self.layers) or len(shapes) != 1:
            if self._wants_vectors:
                raise ModelError(
                    "vectors: this model shows no queries, keys and values of one shape for all of these layers"
                )
            return None
        queries, keys, values, scalings = zip(*held, strict=True)
        n_heads = len(queries[0])
        return QKV(
            query=np.stack(queries),
            key=np.stack(keys),
            value=np.stack(values),
            scaling=tuple(scaling for scaling in scalings for _ in range(n_heads)),
        )


def scaling_of(query: Tensor, scoring: Scoring) -> float:
    """Return the factor of the dot products: 1 / sqrt(d_k), unless the layer defines another one."""
    return query.shape[-1] ** -0.5 if scoring.scaling is None else scoring.scaling


def weights_in_blocks(
    query: Float[Tensor, "batch head query d_k"],
    key: Float[Tensor, "batch group key d_k"],
    scoring: Scoring,
) -> Iterator[tuple[int, int, Float[Tensor, "batch head rows seen"]]]:
    """Yield the attention weights, softmax(q k^T * scaling + mask), as (first row, first key, block of rows).

    block[..., j] holds the weights on key j. A block ends with the last key that any of its rows may see; later keys
    have weight 0. The keys before `first key`, which none of its rows may see, also have weight 0. A row that may see
    no key is all zeros.

    Weights are computed in float32, or in float64 if the model is in float64; scores in the model's own format if it
    rounds them. All blocks share one buffer, so a block is valid only until the next one. If there are fewer key heads
    than query heads, each key head serves a group of query heads (Ainslie et al. 2023, grouped-query attention).
    """
    dtype = torch.promote_types(query.dtype, torch.float32)
    score_dtype = query.dtype if scoring.rounded else dtype
    n_batch, n_heads, n_queries, _ = query.shape
    n_keys = key.shape[2]
    scaling = scaling_of(query, scoring)
    keys = for_each_head(key.to(score_dtype), n_heads).mT  # (B, H, d, K)
    # A sink takes part in the softmax as one more column, which is not shown.
    n_more = LONG_ROWS_MORE if n_keys > EVERY_NUMBER else int(scoring.sinks is not None)
    row_bytes = n_batch * n_heads * n_keys * dtype.itemsize
    size = max(1, min(BLOCK_ROWS, BLOCK_BYTES // row_bytes))
    most = n_batch * n_heads * min(size, n_queries) * (n_keys + n_more)
    buffer = query.new_empty(most, dtype=score_dtype)
    for first in range(0, n_queries, size):
        last = min(first + size, n_queries)
        first_key, end_key, mask = _visible_span(scoring, first, last, n_keys)
        shape = n_batch, n_heads, last - first, end_key + n_more
        block = buffer[: math.prod(shape)].view(shape)
        block[..., :first_key] = 0.0
        block[..., end_key:] = -torch.inf
        if scoring.sinks is not None:
            block[..., end_key] = scoring.sinks[:, None]
        scores = block[..., first_key:end_key]
        queries = query[:, :, first:last].to(score_dtype)
        # A model that rounds its scores scales them after the product. Scaling the queries first, which is cheaper,
        # would round differently.
        if scoring.rounded:
            torch.matmul(queries, keys[..., first_key:end_key], out=scores)
            scores *= scaling
        else:
            torch.matmul(queries * scaling, keys[..., first_key:end_key], out=scores)
        if scoring.softcap is not None:
            scores.div_(scoring.softcap).tanh_().mul_(scoring.softcap)
        if scoring.bias is not None:
            scores += rows_of(scoring.bias, first, last)[..., first_key:end_key]
        sees_nothing = None
        if mask is not None:
            sees_nothing = _hide(scores, mask)
        elif scoring.causal:
            # Every row of the block may see all keys before the block's first row.
            future = ~_causal(first, last, first, end_key, scores.device)
            scores[..., first:].masked_fill_(future, -torch.inf)
        seen = block[..., first_key:]
        weights = torch.softmax(seen, -1, dtype=dtype, out=seen if score_dtype == dtype else None)
        if sees_nothing is not None:
            weights.masked_fill_(sees_nothing, 0.0)
        # The buffer already holds zeros for the keys before `first_key`.
        weights = block if score_dtype == dtype else functional.pad(weights, (first_key, 0))
        yield first, first_key, weights[..., :end_key]


def _visible_span(
    scoring: Scoring, first: int, last: int, n_keys: int
) -> tuple[int, int, Tensor | None]:
    """Return the first and one-past-last key that the rows `first` to `last` (exclusive) may see.

    With them comes the mask of these rows and keys, or None.
    """
    if scoring.mask is None:
        return 0, min(last, n_keys) if scoring.causal else n_keys, None
    mask = rows_of(scoring.mask, first, last)[..., :n_keys]
    if isinstance(scoring.mask, Tensor):
        return 0, n_keys, mask
    first_key, end_key = span_of(mask)
    return first_key, end_key, mask[..., first_key:end_key]


def span_of(mask: Bool[Tensor, "#batch #head rows key"]) -> tuple[int, int]:
    """Return the first and one-past-last key that any of the rows may see; all keys if no row sees any."""
    visible = mask.flatten(0, 2).any(dim=0).nonzero()[:, 0]
    return (int(visible[0]), int(visible[-1]) + 1) if len(visible) else (0, mask.shape[-1])


def _hide(
    scores: Float[Tensor, "batch head rows seen"], mask: Tensor
) -> Bool[Tensor, "#batch #head #rows 1"] | None:
    """Apply the mask to the scores in place; return which rows see no key at all, or None if every row sees one."""
    if mask.dtype == torch.bool:
        scores.masked_fill_(~mask, -torch.inf)
        sees_nothing = ~mask.any(dim=-1, keepdim=True)
    else:
        scores += mask
        sees_nothing = (mask == -torch.inf).all(dim=-1, keepdim=True)
    return sees_nothing if sees_nothing.any() else None


def for_each_head(
    tensor: Float[Tensor, "batch group token *d"], n_heads: int
) -> Float[Tensor, "batch head token *d"]:
    """Repeat keys or values that a group of heads shares; without groups, return the tensor itself."""
    n_groups = tensor.shape[1]
    return tensor if n_groups == n_heads else tensor.repeat_interleave(n_heads // n_groups, dim=1)


def rows_of(matrix: Tensor | MaskRows, first: int, last: int) -> Tensor:
    """Return the rows `first` to `last` (exclusive) of a mask or bias, which may have one row for all queries."""
    if not isinstance(matrix, Tensor):
        return matrix(first, last)
    return matrix if matrix.shape[-2] == 1 else matrix[..., first:last, :]


def rows_at(matrix: Tensor | MaskRows, numbers: Int64[Tensor, " row"]) -> Tensor:
    """Return the rows of these numbers of a mask or bias, which may have one row for all queries."""
    if not isinstance(matrix, Tensor):
        return torch.cat([matrix(number, number + 1) for number in numbers.tolist()], dim=-2)
    return matrix if matrix.shape[-2] == 1 else matrix[..., numbers, :]


def visible_keys(
    scoring: Scoring, first: int, last: int, n_keys: int, device: torch.device
) -> Bool[Tensor, "#batch #head #rows key"]:
    """Return which keys these rows may see; padding counts as visible if the layer has no mask."""
    if scoring.mask is None:
        if scoring.causal:
            return _causal(first, last, 0, n_keys, device)[None, None]
        return torch.ones(1, 1, 1, n_keys, dtype=torch.bool, device=device)
    mask = rows_of(scoring.mask, first, last)[..., :n_keys]
    # A float mask hides a key by adding minus infinity or the lowest number of the format. Half of the lowest number
    # separates both from any real bias.
    is_visible = mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2
    return is_visible.reshape((1,) * (4 - is_visible.ndim) + is_visible.shape)


def _mask_of_rows(layer: Layer, numbers: Int64[Tensor, " row"], n_keys: int) -> Tensor | None:
    """Return the mask of the rows of these numbers, [batch or 1, head or 1, row, key], for the first `n_keys` keys.

    None hides no key.
    """
    if layer.scoring.mask is not None:
        return rows_at(layer.scoring.mask, numbers)[..., :n_keys]
    if layer.scoring.causal:
        return (torch.arange(n_keys, device=CPU) <= numbers[:, None]).to(layer.query.device)[
            None, None
        ]
    return None


def _causal(
    first: int, last: int, first_key: int, last_key: int, device: torch.device
) -> Bool[Tensor, "rows key"]:
    """Return the causal mask of these rows and keys (each range exclusive of its last): True up to the own position."""
    rows: Bool[Tensor, "rows 1"] = torch.arange(first, last, device=device)[:, None]
    return torch.arange(first_key, last_key, device=device) <= rows


@dataclass(slots=True, kw_only=True)
class ForwardPass:
    """One forward pass: it passes each layer's rows to the observers and verifies them."""

    batch: Batch
    observers: Sequence[Observer]
    native: str  # the name of the model's own implementation
    # Whether a layer may leave out the first queries, whose rows nothing needs, and the first keys, which its cache has
    # dropped because they are outside of its window.
    may_skip: bool = False
    # Whether some head has a sink, so that its rows sum to less than 1.
    has_sinks: bool = False
    # For each layer that is left out, because it is no attention of all tokens to all tokens, the reason.
    left_out: list[str] = field(default_factory=list)
    dtypes: set[torch.dtype] = field(default_factory=set)  # number formats of the layers so far
    # Whether an observer is running: an error raised now is the observer's, not the model's.
    observing: bool = False
    _differences: dict[int, float] = field(default_factory=dict)  # by layer number
    _next: int = 0  # the number of the next layer, if it has none
    # The query and the key of the last layer, which are not kept alive.
    _last_inputs: tuple[weakref.ref[Tensor], weakref.ref[Tensor]] | None = None
    _by_sums: bool = False  # whether any layer was compared by random sums
    # Whether the weights of all layers were compared, and not only products.
    _proves_weights: bool = True
    _n_rows_of_weights: int | None = None  # as in `Receipt.rows`

    def __post_init__(self) -> None:
        for observer in self.observers:
            observer.begin(self.batch)

    def add_layer(self, layer: Layer, unknown: Sequence[str] = ()) -> None:
        """Pass a layer's rows to the observers, and verify them against the native output.

        Raises NotVerifiedError: they do not match. The message names `unknown`, keywords that the layer received and
        that attnviz does not know.
        """
        # DiffLlama multiplies the same weights by two sets of values: one layer, of which both products are verified.
        is_same = self._is_last(layer)
        observers = () if is_same else self.observers
        if is_same and any(isinstance(observer, OutputEditor) for observer in self.observers):
            raise ModelError(
                "this model multiplies one attention by two sets of values: it cannot be cut"
            )
        number = max(self._differences) if is_same else self._next_number(layer.number)
        self._last_inputs = (weakref.ref(layer.query), weakref.ref(layer.key))
        layer = replace(layer, number=number)
        query, key, scoring = layer.query, layer.key, layer.scoring
        self.dtypes.add(query.dtype)
        self.has_sinks |= scoring.sinks is not None or layer.n_extra_keys > 0
        n_shown = key.shape[2] - layer.n_extra_keys
        n_skipped = n_dropped = 0
        if self.may_skip:
            n_skipped = self.batch.real.shape[1] - query.shape[2]
            n_dropped = self.batch.real_keys.shape[1] - n_shown
        self.observing = True
        for observer in observers:
            if isinstance(observer, LayerObserver):
                observer.observe_layer(layer)
        self.observing = False

        check = self._check(layer)
        for first, first_key, block in weights_in_blocks(query, key, scoring):
            check.compare(first, first_key, block, partial(_mask_of_rows, layer))
            seen = block[..., :n_shown]
            shown = Block(
                layer=layer.number,
                first_row=n_skipped + first,
                n_rows=n_skipped + query.shape[2],
                n_keys=n_dropped + n_shown,
                causal=scoring.causal,
                seen=functional.pad(seen, (n_dropped, 0)) if n_dropped else seen,
            )
            self._show(shown, observers)
        check.expect_equal(unknown)
        self.dtypes.add(check.format)
        self._proves_weights &= check.proves_weights
        self._n_rows_of_weights = check.n_rows_of_weights or self._n_rows_of_weights
        largest = max(check.difference, check.difference_of_sums)
        self._differences[layer.number] = max(largest, self._differences.get(layer.number, 0.0))

    def edited(
        self, output: Float[Tensor, "batch query head d_v"]
    ) -> Float[Tensor, "batch query head d_v"]:
        """Return the output of the layer that was added last as the model goes on with it."""
        for observer in self.observers:
            if isinstance(observer, OutputEditor):
                output = observer.edit(output)
        return output

    def _check(self, layer: Layer) -> LayerCheck:
        """Return the comparison of a layer with its native output."""
        # Random sums are compared only if the pass produces nothing but a record, because the record's receipt states
        # this weaker check.
        is_record = all(isinstance(observer, WeightCollector) for observer in self.observers)
        by_sums = layer.key.shape[2] > EVERY_NUMBER and layer.value.shape[-1] > SUMS and is_record
        self._by_sums |= by_sums
        real = self.batch.real[:, -layer.query.shape[2] :]
        return LayerCheck(layer, real, by_sums=by_sums)

    def add_weights(self, weights: Float[Tensor, "batch head query key"], number: int = -1) -> None:
        """Pass weights to the observers that the model itself computed and used, which need no verification."""
        number = self._next_number(number)
        self.dtypes.add(weights.dtype)
        n_rows, n_keys = weights.shape[2:]
        block = Block(
            layer=number, first_row=0, n_rows=n_rows, n_keys=n_keys, causal=False, seen=weights
        )
        self._show(block, self.observers)
        self._differences[number] = 0.0

    def _is_last(self, layer: Layer) -> bool:
        """Return whether a layer has the very query and key of the one before it."""
        if self._last_inputs is None:
            return False
        query, key = self._last_inputs
        return query() is layer.query and key() is layer.key

    def _next_number(self, number: int) -> int:
        """Return a layer's number, or the next free number if it has none or its number is taken."""
        number = max(number, self._next)
        self._next = number + 1
        return number

    def leave_out(self, reason: str) -> None:
        """Leave a layer out; the layers after it have the numbers that they would have with it."""
        self.left_out.append(reason)
        self._next += 1

    def _show(self, block: Block, observers: Sequence[Observer]) -> None:
        """Pass a block to observers."""
        self.observing = True
        for observer in observers:
            observer.observe(block)
        self.observing = False

    def receipt(self, name: str) -> Receipt:
        """Return the receipt of the whole pass. Raises NoAttentionError: no layer was seen."""
        if not self._differences and self.left_out:
            raise NoAttentionError(f"{name} {self.left_out[0]}")
        if not self._differences:
            raise NoAttentionError(
                f"{name} has no attention that attnviz can see: no softmax over all tokens is multiplied by values in "
                f"it; {LOAD_INSTEAD}"
            )
        dtype = max(self.dtypes, key=tolerance_of)
        return Receipt(
            native=self.native,
            dtype=name_of_format(dtype),
            tolerance=tolerance_of(dtype),
            layers=tuple(self._differences),
            differences=tuple(self._differences.values()),
            sums=SUMS if self._by_sums else None,
            proves="weights" if self._proves_weights else "output",
            rows=self._n_rows_of_weights,
        )


def digest_of(model: nn.Module) -> str:
    """Return a short digest of every byte of a model's weights, with names, shapes and formats."""
    digest = blake2b(digest_size=8)
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return digest.hexdigest()
