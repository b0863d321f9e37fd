"""Compute attention weights from queries and keys, a block of rows at a time, and verify each layer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32
from torch import Tensor, nn

from attnviz.attention import QKV, Receipt
from attnviz.capture.observers import CPU, Batch, Block, Observer, WeightCollector
from attnviz.errors import NoAttentionError, NotVerifiedError

# The most bytes and rows of a block of weights: enough to keep the cores busy, small beside any model.
BLOCK_BYTES = 256 * 2**20
BLOCK_ROWS = 256
LOAD_INSTEAD = (
    "weights that you saved with their tokens as .npz or .json can be loaded and drawn instead"
)
# The largest difference accepted between weights times values and the native output, for each number format: about
# ten times what rounding alone makes. It is relative to the layer's largest output, or sum, where that exceeds 1.
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}
# Up to so many keys every number of an output is compared; beyond, so many random sums of each row (Freivalds 1977).
# Wrong numbers of a row cancel out in one sum with a chance of a half at most, so in all of them once in 2**8 times.
EVERY_NUMBER = 4096
SUMS = 8
SMALL = 96 * 2**10  # bytes of queries, keys and values up to which a record has them


# A mask of a long text is never made whole: called with a first and a one-past-last query, it returns
# where these queries may look, [batch or 1, head or 1, query, key].
MaskRows: TypeAlias = Callable[[int, int], Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """The terms of a layer's scores beside the dot product.

    Sources: soft cap, Gemma Team 2024, "Gemma 2", section 2; bias, Raffel et al. 2020, T5; sinks, OpenAI 2025, gpt-oss.
    """

    scaling: float | None = None  # factor of the dot product; None for 1 / sqrt(d_k)
    # True (or 0) where a query may attend; a float mask is added to the scores
    mask: Tensor | MaskRows | None = None
    causal: bool = False  # without a mask: whether queries attend to earlier keys only
    softcap: float | None = None  # tanh keeps the scores in (-softcap, softcap)
    bias: Tensor | None = None  # added to the scores, such as relative positions
    # One score per head for attending to nothing. It takes part in the softmax and is then dropped, so rows sum to less
    # than 1.
    sinks: Float[Tensor, " head"] | None = None
    window: int | None = (
        None  # the largest number of keys that a query sees; already part of the mask
    )
    # Eager implementations compute scores in the model's own number format: in bfloat16 a score of 30 is off by up to
    # 0.06, and its weight by 6%. Fused ones compute them in float32.
    rounded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """The inputs of one layer's attention, and the output that the model computed from them."""

    number: int = -1  # counted from 0; -1 leaves the counting to the forward pass
    query: Float[Tensor, "batch head query d_k"]  # after rotary positions, if there are any
    # There may be fewer key heads than query heads.
    key: Float[Tensor, "batch group key d_k"]
    value: Float[Tensor, "batch group key d_v"]
    # the context of each head, by the native implementation
    output: Float[Tensor, "batch query head d_v"]
    scoring: Scoring

    @property
    def scaling(self) -> float:
        """The factor that the dot products are multiplied by."""
        return scaling_of(self.query, self.scoring)


@runtime_checkable  # so that a run finds these observers
class LayerObserver(Observer, Protocol):
    """An observer of each layer's query, key and value, which come before the blocks."""

    def observe_layer(self, layer: Layer) -> None:
        """Take a layer whose attention has been computed; its blocks follow."""


class RecordCollector(WeightCollector):
    """Collect weights and, where they are seen and small, the queries, keys and values of whole sentences."""

    def begin(self, batch: Batch) -> None:
        """Forget what was kept of an earlier batch."""
        super().begin(batch)
        self._bytes_needed = 0
        self._held: list[Layer] = []

    def observe_layer(self, layer: Layer) -> None:
        """Keep a layer's queries, keys and values, as long as there is room for all layers."""
        if not self._keeps(layer.number):
            return
        n_heads = len(self._heads_of(layer.query.shape[1]))
        for tensor in (layer.query, layer.key, layer.value):
            self._bytes_needed += 4 * n_heads * tensor.shape[2] * tensor.shape[3]
        if self._bytes_needed <= SMALL:
            self._held.append(layer)
        else:
            self._held.clear()

    def vectors(self, index: int) -> QKV | None:
        """Return one sentence's queries, keys and values without padding; None where they are not all held."""
        is_part = self._window != (None, None) or self.cell > 1
        if not self._held or len(self._held) < len(self.layers) or is_part:
            return None
        rows, keys = (slice(*span) for span in self._spans[index])
        queries, all_keys, values, scalings = [], [], [], []
        for layer in self._held:
            n_heads = layer.query.shape[1]
            heads = self._heads_of(n_heads)
            key = for_each_head(layer.key, n_heads)
            value = for_each_head(layer.value, n_heads)
            queries.append(layer.query[index, heads, rows].float().numpy(force=True))
            all_keys.append(key[index, heads, keys].float().numpy(force=True))
            values.append(value[index, heads, keys].float().numpy(force=True))
            scalings.append(layer.scaling)
        for arrays in (queries, all_keys, values):
            # The heads of some layers may be wider than those of others.
            if len({array.shape for array in arrays}) > 1:
                return None
        return QKV(
            query=np.stack(queries),
            key=np.stack(all_keys),
            value=np.stack(values),
            scaling=tuple(scalings),
        )


def scaling_of(query: Tensor, scoring: Scoring) -> float:
    """Return the factor of the dot products, 1 / sqrt(d_k) unless the layer has its own."""
    return query.shape[-1] ** -0.5 if scoring.scaling is None else scoring.scaling


def weights_in_blocks(
    query: Float[Tensor, "batch head query d_k"],
    key: Float[Tensor, "batch group key d_k"],
    scoring: Scoring,
) -> Iterator[tuple[int, int, Float[Tensor, "batch head rows seen"]]]:
    """Yield the attention weights, softmax(q k^T * scaling + mask), as (first row, first key, block of rows).

    block[..., j] is key j. A block ends with the last key that one of its rows may see; later keys have weight 0, and
    so have the keys before `first key`, which none of its rows may see. A row that sees nothing is all zeros.

    Weights are computed in float32, or in float64 if the model is in float64; scores in the model's own format if it
    rounds them. All blocks share one buffer, so a block is valid only until the next one. If there are fewer key heads
    than query heads, each serves a group of them (Ainslie et al. 2023, grouped-query attention).
    """
    dtype = torch.promote_types(query.dtype, torch.float32)
    score_dtype = query.dtype if scoring.rounded else dtype
    n_batch, n_heads, n_queries, _ = query.shape
    n_keys = key.shape[2]
    scaling = scaling_of(query, scoring)
    keys = for_each_head(key.to(score_dtype), n_heads).mT  # (B, H, d, K)
    if n_keys > EVERY_NUMBER:
        # For a long text, one copy costs less than strided products in every block.
        keys = keys.contiguous()
    row_bytes = n_batch * n_heads * n_keys * dtype.itemsize
    size = max(1, min(BLOCK_ROWS, BLOCK_BYTES // row_bytes))
    buffer = query.new_empty(n_batch * n_heads * min(size, n_queries) * n_keys, dtype=score_dtype)
    for first in range(0, n_queries, size):
        last = min(first + size, n_queries)
        first_key, end_key, mask = 0, n_keys, None
        if scoring.mask is not None:
            mask = rows_of(scoring.mask, first, last)[..., :n_keys]
            if not isinstance(scoring.mask, Tensor):
                first_key, end_key = span_of(mask)
                mask = mask[..., first_key:end_key]
        elif scoring.causal:
            end_key = min(last, n_keys)
        shape = n_batch, n_heads, last - first, end_key
        block = buffer[: math.prod(shape)].view(shape)
        block[..., :first_key] = 0.0
        scores = block[..., first_key:]
        queries = query[:, :, first:last].to(score_dtype)
        # A model that rounds its scores multiplies first, which rounds otherwise than scaling the queries.
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
            # All rows see the keys before the block's first row.
            future = ~_causal(first, last, first, end_key, scores.device)
            scores[..., first:].masked_fill_(future, -torch.inf)
        weights = _softmax(scores, scoring.sinks, dtype)
        if sees_nothing is not None:
            weights.masked_fill_(sees_nothing, 0.0)
        if first_key and score_dtype == dtype:
            # The zeros of the keys before the first one are in the buffer already.
            scores.copy_(weights)
            weights = block
        elif first_key:
            weights = torch.nn.functional.pad(weights, (first_key, 0))
        yield first, first_key, weights


def _softmax(
    scores: Float[Tensor, "batch head rows seen"],
    sinks: Float[Tensor, " head"] | None,
    dtype: torch.dtype,
) -> Float[Tensor, "batch head rows seen"]:
    """Return the softmax over the keys, in place where the format allows it; a sink takes part and is dropped."""
    if sinks is None:
        return torch.softmax(
            scores, dim=-1, dtype=dtype, out=scores if scores.dtype == dtype else None
        )
    n_batch, n_heads, n_rows, _ = scores.shape
    column = sinks.to(scores.dtype).reshape(1, -1, 1, 1).expand(n_batch, n_heads, n_rows, 1)
    return torch.softmax(torch.cat([scores, column], dim=-1), dim=-1, dtype=dtype)[..., :-1]


def span_of(mask: Bool[Tensor, "#batch #head rows key"]) -> tuple[int, int]:
    """Return the first and one-past-last key that one of the rows may see; all keys where none sees any."""
    seen = mask.flatten(0, 2).any(dim=0).nonzero()[:, 0]
    return (int(seen[0]), int(seen[-1]) + 1) if len(seen) else (0, mask.shape[-1])


def _hide(
    scores: Float[Tensor, "batch head rows seen"], mask: Tensor
) -> Bool[Tensor, "#batch #head #rows 1"] | None:
    """Hide keys by the mask, in place; return which rows see no key at all, or None if every row sees one."""
    if mask.dtype == torch.bool:
        scores.masked_fill_(~mask, -torch.inf)
        sees_nothing = ~mask.any(dim=-1, keepdim=True)
    else:
        scores += mask
        sees_nothing = (mask == -torch.inf).all(dim=-1, keepdim=True)
    return sees_nothing if sees_nothing.any() else None


def for_each_head(
    shared: Float[Tensor, "batch group token d"], n_heads: int
) -> Float[Tensor, "batch head token d"]:
    """Repeat the keys or values that a group of heads shares; without groups nothing is copied."""
    n_groups = shared.shape[1]
    return shared if n_groups == n_heads else shared.repeat_interleave(n_heads // n_groups, dim=1)


def rows_of(whole: Tensor | MaskRows, first: int, last: int) -> Tensor:
    """Return these rows of a mask or bias, which may be one row for all."""
    if not isinstance(whole, Tensor):
        return whole(first, last)
    return whole if whole.shape[-2] == 1 else whole[..., first:last, :]


def visible_keys(
    scoring: Scoring, first: int, last: int, n_keys: int, device: torch.device
) -> Bool[Tensor, "#batch #head #rows key"]:
    """Return which keys these rows may see; padding counts as seen where the layer has no mask."""
    if scoring.mask is None:
        if scoring.causal:
            return _causal(first, last, 0, n_keys, device)[None, None]
        return torch.ones(1, 1, 1, n_keys, dtype=torch.bool, device=device)
    mask = rows_of(scoring.mask, first, last)[..., :n_keys]
    # A float mask hides a key by adding minus infinity, or the lowest number of the format.
    seen = mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2
    return seen.reshape((1,) * (4 - seen.ndim) + seen.shape)


def _causal(
    first: int, last: int, first_key: int, last_key: int, device: torch.device
) -> Bool[Tensor, "rows key"]:
    rows: Bool[Tensor, "rows 1"] = torch.arange(first, last, device=device)[:, None]
    return torch.arange(first_key, last_key, device=device) <= rows


@dataclass(slots=True, kw_only=True)
class ForwardPass:
    """One forward pass, which shows each layer's rows to the observers and verifies them."""

    batch: Batch
    observers: Sequence[Observer]
    native: str  # the name of the model's own implementation
    # Whether some head may look at nothing, so that its rows sum to less than 1.
    has_sinks: bool = False
    # Whether a text is read again from its start: the batch has the last rows of each layer only.
    last_rows_only: bool = False
    dtypes: set[torch.dtype] = field(default_factory=set)  # of the layers so far
    # Whether an observer runs now: an error is then its own, not the model's.
    observing: bool = False
    _differences: dict[int, float] = field(default_factory=dict)  # by the number of the layer
    _by_sums: bool = False  # whether a layer was compared by random sums

    def __post_init__(self) -> None:
        for observer in self.observers:
            observer.begin(self.batch)

    def layer(self, layer: Layer, unknown: Sequence[str] = ()) -> None:
        """Stream a layer's rows to the observers, and verify them against the native output.

        Raises NotVerifiedError: they do not match; it names `unknown`, keywords that attnviz does not know.
        """
        layer = replace(layer, number=self._next_number(layer.number))
        if self.last_rows_only:
            layer = _last_rows(layer, self.batch.real.shape[1])
        query, key, scoring = layer.query, layer.key, layer.scoring
        self.dtypes.add(query.dtype)
        self.has_sinks |= scoring.sinks is not None
        self.observing = True
        for observer in self.observers:
            if isinstance(observer, LayerObserver):
                observer.observe_layer(layer)
        self.observing = False

        dtype = torch.promote_types(query.dtype, torch.float32)
        values = for_each_head(layer.value.to(dtype), query.shape[1])  # (B, H, K, d)
        output = layer.output.to(dtype)  # (B, Q, H, d)
        width = values.shape[3]
        # Sums are compared only where all that comes of the pass is a record, whose receipt says so.
        is_record = all(isinstance(observer, WeightCollector) for observer in self.observers)
        by_sums = key.shape[2] > EVERY_NUMBER and width > SUMS and is_record
        if by_sums:
            self._by_sums = True
            random_signs = signs(width, layer.number).to(values)  # (d, sums)
            values, output = (values @ random_signs).contiguous(), output @ random_signs

        largest, scale = 0.0, 1.0
        for first, low, block in weights_in_blocks(query, key, scoring):
            rows = slice(first, first + block.shape[2])
            native = output[:, rows]  # (B, rows, H, d or sums)
            weights, seen_values = block[..., low:], values[:, :, low : block.shape[3]]
            # A few columns are added up faster, and in float32 more exactly, as rows.
            context = (seen_values.mT @ weights.mT).mT if by_sums else weights @ seen_values
            difference = (context.transpose(1, 2) - native).abs().amax(dim=(2, 3))  # (B, rows)
            real = self.batch.real[:, rows].to(difference.device)
            largest = _larger(largest, difference[real])
            scale = _larger(scale, native.abs().amax(dim=(2, 3))[real])
            self._show(
                Block(
                    layer=layer.number,
                    first_row=first,
                    n_rows=query.shape[2],
                    n_keys=key.shape[2],
                    causal=scoring.causal,
                    seen=block,
                )
            )
        check_layer(layer.number, largest, scale, query.dtype, unknown)
        self._differences[layer.number] = largest

    def own(self, weights: Float[Tensor, "batch head query key"], number: int = -1) -> None:
        """Show the observers weights that the model itself computed and used, which need no verification."""
        number = self._next_number(number)
        self.dtypes.add(weights.dtype)
        n_rows, n_keys = weights.shape[2:]
        self._show(
            Block(
                layer=number, first_row=0, n_rows=n_rows, n_keys=n_keys, causal=False, seen=weights
            )
        )
        self._differences[number] = 0.0

    def _next_number(self, number: int) -> int:
        """Return a layer's number, counted on from the last where it has none or one that is taken."""
        return max(number, max(self._differences, default=-1) + 1)

    def _show(self, block: Block) -> None:
        self.observing = True
        for observer in self.observers:
            observer.observe(block)
        self.observing = False

    def receipt(self, name: str) -> Receipt:
        """Return the proof of the whole pass. Raises NoAttentionError: no layer came by."""
        if not self._differences:
            raise NoAttentionError(
                f"{name} has no attention that attnviz can see: no softmax over all tokens is multiplied by values in "
                f"it; {LOAD_INSTEAD}"
            )
        dtype = max(self.dtypes, key=tolerance_of)
        return Receipt(
            native=self.native,
            dtype=str(dtype).removeprefix("torch."),
            tolerance=tolerance_of(dtype),
            layers=tuple(self._differences),
            differences=tuple(self._differences.values()),
            sums=SUMS if self._by_sums else None,
        )


def _last_rows(layer: Layer, n: int) -> Layer:
    """Return a layer with its last n queries only."""
    scoring, n_queries = layer.scoring, layer.query.shape[2]
    first = n_queries - n
    mask, bias = scoring.mask, scoring.bias
    if mask is not None:
        mask = rows_of(mask, first, n_queries)
    elif scoring.causal:
        mask = _causal(first, n_queries, 0, layer.key.shape[2], layer.query.device)
    if bias is not None:
        bias = rows_of(bias, first, n_queries)
    return replace(
        layer,
        query=layer.query[:, :, first:],
        output=layer.output[:, first:],
        scoring=replace(scoring, causal=False, mask=mask, bias=bias),
    )


def _larger(largest: float, values: Tensor) -> float:
    """Return the larger of the two, or NaN if any value is: NaN must never pass for a small difference."""
    top = values.max().item() if values.numel() else 0.0
    return top if math.isnan(top) or top > largest else largest


def signs(width: int, layer: int) -> Float32[Tensor, "d_v sums"]:
    """Return random signs for the Freivalds check of a layer, one for each number of a row and each sum."""
    chance = torch.Generator().manual_seed(layer)
    return torch.randint(0, 2, (width, SUMS), generator=chance, device=CPU).float() * 2 - 1


def tolerance_of(dtype: torch.dtype) -> float:
    """Return the tolerance of a number format, relative to a layer's largest output; by default that of float32."""
    return TOLERANCE.get(dtype, TOLERANCE[torch.float32])


def check_layer(
    layer: int, difference: float, scale: float, dtype: torch.dtype, unknown: Sequence[str] = ()
) -> None:
    """Raise NotVerifiedError for a layer whose difference is above the tolerance, or not a finite number.

    `difference` is the largest one between weights times values and the native output, `scale` that output's largest
    number, at least 1; `unknown` are keywords of the layer that attnviz does not know.
    """
    tolerance = tolerance_of(dtype) * scale
    if difference <= tolerance < math.inf:
        return
    if math.isfinite(difference):
        fault = (
            f"its captured weights times its values differ by {difference:.1e} from the model's own output "
            f"(tolerance {tolerance:.1e} for {str(dtype).removeprefix('torch.')})"
        )
        why = "it may compute attention in a way attnviz does not know (an extra term in its scores, or dropout)"
        why = f"it was given {', '.join(unknown)}, which attnviz does not know" if unknown else why
    else:
        fault = "its output, or its captured weights times its values, is not a finite number"
        why = "its weights may be damaged, or too large for this number format (try dtype float32)"
    raise NotVerifiedError(f"refused, because layer {layer} is not verified: {fault}; {why}")


def digest_of(model: nn.Module) -> str:
    """Return a short digest of every byte of a model's weights, with names, shapes and formats."""
    found = blake2b(digest_size=8)
    for name, tensor in sorted(model.state_dict().items()):
        found.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        found.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return found.hexdigest()
