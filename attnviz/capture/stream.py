"""From queries and keys to attention weights, a block of query rows at a time, each layer proved as it goes by."""

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

BLOCK_BYTES, BLOCK_ROWS = (
    256 * 2**20,
    256,
)  # of a block of weights: keeps the cores busy, small beside any model
LOAD_INSTEAD = (
    "weights that you saved with their tokens as .npz or .json can be loaded and drawn instead"
)
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}
"""The largest difference accepted between weights times values and the native output, per number format: about ten
times what rounding alone makes. It is relative to the layer's largest output, or sum, where that exceeds 1."""
EVERY_NUMBER, SUMS = 4096, 8
"""Keys up to which every number of an output is compared; beyond, this many random sums of each row. Wrong numbers of a
row cancel out in one sum with a chance of a half at most, and so in all of them once in 2**8 times."""


# A mask of a long text is never made whole: called with a first and a one-past-last query, it returns
# where these queries may look, [batch or 1, head or 1, query, key].
MaskRows: TypeAlias = Callable[[int, int], Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """How a layer turns queries and keys into weights, beyond the dot product.

    Sources: soft cap, Gemma Team 2024, "Gemma 2", section 2; bias, Raffel et al. 2020, T5; sinks, OpenAI 2025, gpt-oss.
    """

    scaling: float | None = None  # what the dot product is multiplied by; None for 1 / sqrt(d_k)
    # True (or 0) where a query may look; a float mask is added to the scores
    mask: Tensor | MaskRows | None = None
    causal: bool = False  # whether queries look at earlier keys only, where no mask says so
    softcap: float | None = None  # tanh keeps the scores in (-softcap, softcap)
    bias: Tensor | None = None  # added to the scores, such as relative positions
    # A score a head for looking at nothing: it is part of the softmax and then dropped, so rows sum to less than 1.
    sinks: Float[Tensor, " head"] | None = None
    window: int | None = None  # how many keys a query sees at most, which the mask has already
    # Eager implementations compute scores in the model's own number format: in bfloat16 a score of 30 is off by up to
    # 0.06, and its weight by 6 %. Fused ones compute them in float32.
    rounded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """What one layer's attention was given, and what the model made of it."""

    number: int = -1  # from 0; below that a run counts
    query: Float[Tensor, "batch head query d_k"]  # after positions are applied, if they are rotary
    # likewise; there may be fewer key heads than query heads
    key: Float[Tensor, "batch group key d_k"]
    value: Float[Tensor, "batch group key d_v"]
    # the context of each head, by the native implementation
    output: Float[Tensor, "batch query head d_v"]
    scoring: Scoring


@runtime_checkable  # so that a run finds these observers
class LayerObserver(Observer, Protocol):
    """An observer of each layer's query, key and value, which come before the blocks."""

    def observe_layer(self, layer: Layer) -> None:
        """A layer's attention has been computed; its blocks follow."""


SMALL = 96 * 2**10  # bytes of queries, keys and values up to which a record has them


class RecordCollector(WeightCollector):
    """Keeps weights and, where they are seen and all are small, queries, keys and values of whole sentences."""

    def begin(self, batch: Batch) -> None:
        """Forget what was kept of an earlier batch."""
        super().begin(batch)
        self._size, self._given = 0, list[Layer]()

    def observe_layer(self, layer: Layer) -> None:
        """Keep a layer's queries, keys and values, as long as there is room."""
        if not self._keeps(layer.number):
            return
        n_heads = len(self._heads_of(layer.query.shape[1]))
        sides = (layer.query, layer.key, layer.value)
        self._size += 4 * n_heads * sum(one.shape[2] * one.shape[3] for one in sides)
        if self._size <= SMALL:
            self._given.append(layer)
        else:
            self._given.clear()

    def vectors(self, index: int) -> QKV | None:
        """Those of one sentence of the batch, without its padding; None where there is too much, or not all."""
        is_part = self._window != (None, None) or self.cell > 1
        if not self._given or len(self._given) < len(self.layers) or is_part:
            return None
        rows, keys = (slice(*span) for span in self._spans[index])
        kept = []
        for layer in self._given:
            n_heads = layer.query.shape[1]
            heads = self._heads_of(n_heads)
            sides = (
                layer.query[:, :, rows],
                for_each_head(layer.key, n_heads),
                for_each_head(layer.value, n_heads),
            )
            kept.append(
                [
                    one[index, heads, span].float().numpy(force=True)
                    for one, span in zip(sides, (slice(None), keys, keys), strict=True)
                ]
            )
        # heads of some layers may be wider
        if len({tuple(one.shape for one in parts) for parts in kept}) > 1:
            return None
        query, key, value = (np.stack(parts) for parts in zip(*kept, strict=True))
        scaling = [
            layer.query.shape[-1] ** -0.5
            if layer.scoring.scaling is None
            else layer.scoring.scaling
            for layer in self._given
        ]
        return QKV(query=query, key=key, value=value, scaling=tuple(scaling))


def weights_in_blocks(
    query: Float[Tensor, "batch head query d_k"],
    key: Float[Tensor, "batch group key d_k"],
    scoring: Scoring,
) -> Iterator[tuple[int, int, Float[Tensor, "batch head rows seen"]]]:
    """The attention weights, softmax(q k^T * scaling + mask), as (first row, first key, block of rows).

    Of the keys a block has all up to the last that its rows may see; those after it, and those before the first key,
    are 0. Computed in float32, or float64 where the model is; the scores in the model's own format where it rounds
    them. All blocks stand in one buffer: each is gone with the next. Where there are fewer key heads than query heads,
    each serves a group of them (Ainslie et al. 2023, grouped-query attention). A row that sees nothing is all zeros.
    """
    dtype = torch.promote_types(query.dtype, torch.float32)
    n_batch, n_heads, n_queries, d_k = query.shape
    n_keys = key.shape[2]
    scaling = d_k**-0.5 if scoring.scaling is None else scoring.scaling
    own = query.dtype if scoring.rounded else dtype
    keys = for_each_head(key.to(own), n_heads).mT  # (B, H, d, K)
    keys = keys.contiguous() if n_keys > EVERY_NUMBER else keys
    size = max(1, min(BLOCK_ROWS, BLOCK_BYTES // (n_batch * n_heads * n_keys * dtype.itemsize)))
    buffer = query.new_empty(n_batch * n_heads * min(size, n_queries) * n_keys, dtype=own)
    for first in range(0, n_queries, size):
        last = min(first + size, n_queries)
        mask = None if scoring.mask is None else rows_of(scoring.mask, first, last)[..., :n_keys]
        low, high = (0, min(last, n_keys) if scoring.causal and mask is None else n_keys)
        if mask is not None and not isinstance(scoring.mask, Tensor):
            low, high = span_of(mask)
            mask = mask[..., low:high]
        shape = n_batch, n_heads, last - first, high
        block = buffer[: math.prod(shape)].view(shape)
        block[..., :low] = 0.0
        scores = block[..., low:]
        queries = query[:, :, first:last].to(own)
        torch.matmul(
            queries if scoring.rounded else queries * scaling, keys[..., low:high], out=scores
        )
        if scoring.rounded:
            scores *= scaling
        if scoring.softcap is not None:
            scores.div_(scoring.softcap).tanh_().mul_(scoring.softcap)
        if scoring.bias is not None:
            scores += rows_of(scoring.bias, first, last)[..., low:high]
        if mask is None and scoring.causal:  # of the keys before the first row nothing is hidden
            scores[..., first:].masked_fill_(
                ~_causal(first, last, first, high, scores.device), -torch.inf
            )
        blind = None if mask is None else _hide(scores, mask)
        if scoring.sinks is not None:
            sinks = (
                scoring.sinks.to(own).reshape(1, -1, 1, 1).expand(n_batch, n_heads, last - first, 1)
            )
            weights = torch.softmax(torch.cat([scores, sinks], dim=-1), dim=-1, dtype=dtype)[
                ..., :-1
            ]
        else:
            weights = torch.softmax(
                scores, dim=-1, dtype=dtype, out=scores if own == dtype else None
            )
        weights = weights if blind is None else weights.masked_fill_(blind, 0.0)
        if low:
            scores.copy_(weights)
        yield first, low, block if low else weights


def span_of(mask: Bool[Tensor, "#batch #head rows key"]) -> tuple[int, int]:
    """The first and one-past-last key that one of the rows may see; all where none sees any."""
    seen = mask.flatten(0, 2).any(dim=0).nonzero()[:, 0]
    return (int(seen[0]), int(seen[-1]) + 1) if len(seen) else (0, mask.shape[-1])


def _hide(
    scores: Float[Tensor, "batch head rows seen"], mask: Tensor
) -> Bool[Tensor, "#batch #head #rows 1"] | None:
    """Hide the keys that these rows may not see, in place; which rows then see none, where there are such rows."""
    if mask.dtype == torch.bool:
        scores.masked_fill_(~mask, -torch.inf)
        blind = ~mask.any(dim=-1, keepdim=True)
    else:
        scores += mask
        blind = (mask == -torch.inf).all(dim=-1, keepdim=True)
    return blind if blind.any() else None


def for_each_head(
    shared: Float[Tensor, "batch group token d"], n_heads: int
) -> Float[Tensor, "batch head token d"]:
    """The keys or values of each head, where a group of heads may share some; nothing is copied where none does."""
    n_groups = shared.shape[1]
    return shared if n_groups == n_heads else shared.repeat_interleave(n_heads // n_groups, dim=1)


def rows_of(whole: Tensor | MaskRows, first: int, last: int) -> Tensor:
    """These rows of a mask or bias, which may be one row for all."""
    if not isinstance(whole, Tensor):
        return whole(first, last)
    return whole if whole.shape[-2] == 1 else whole[..., first:last, :]


def visible_keys(
    scoring: Scoring, first: int, last: int, n_keys: int, device: torch.device
) -> Bool[Tensor, "#batch #head #rows key"]:
    """Where these rows may look; padding may be seen where nothing says otherwise."""
    if scoring.mask is None:
        if scoring.causal:
            return _causal(first, last, 0, n_keys, device)[None, None]
        return torch.ones(1, 1, 1, n_keys, dtype=torch.bool, device=device)
    mask = rows_of(scoring.mask, first, last)[..., :n_keys]
    # What is added to hide a key is minus infinity, or the lowest number of the format.
    seen = mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2
    return seen.reshape((1,) * (4 - seen.ndim) + seen.shape)


def _causal(
    first: int, last: int, first_key: int, last_key: int, device: torch.device
) -> Bool[Tensor, "rows key"]:
    rows: Bool[Tensor, "rows 1"] = torch.arange(first, last, device=device)[:, None]
    return torch.arange(first_key, last_key, device=device) <= rows


@dataclass(slots=True, kw_only=True)
class ForwardPass:
    """One forward pass: it shows each layer's rows to the observers, and proves them."""

    batch: Batch
    observers: Sequence[Observer]
    native: str  # the name of the model's own implementation
    # whether some head may look at nothing, so that its rows sum to less than 1
    has_sinks: bool = False
    anew: bool = False  # whether a text is read anew: of each layer it is shown the last rows alone, as the batch has
    dtypes: set[torch.dtype] = field(default_factory=set)  # of the layers so far
    # whether an observer runs now: an error is then its own, not the model's
    observing: bool = False
    _differences: dict[int, float] = field(default_factory=dict)
    _sums: bool = False  # whether a layer was compared by sums

    def __post_init__(self) -> None:
        for observer in self.observers:
            observer.begin(self.batch)

    def layer(self, layer: Layer, unknown: Sequence[str] = ()) -> None:
        """Stream a layer's rows, or NotVerifiedError, which names `unknown` keywords: it is not the native output."""
        layer = replace(layer, number=max(layer.number, max(self._differences, default=-1) + 1))
        layer = _last_rows(layer, self.batch.real.shape[1]) if self.anew else layer
        query, key, scoring = layer.query, layer.key, layer.scoring
        self.dtypes.add(query.dtype)
        self.has_sinks |= scoring.sinks is not None
        width = layer.value.shape[3]
        # Where all that comes of the pass is a record, its receipt says so.
        is_record = all(isinstance(observer, WeightCollector) for observer in self.observers)
        by_sums = key.shape[2] > EVERY_NUMBER and width > SUMS and is_record
        self._sums |= by_sums
        self.observing = True
        for observer in self.observers:
            if isinstance(observer, LayerObserver):
                observer.observe_layer(layer)
        self.observing = False
        dtype = torch.promote_types(query.dtype, torch.float32)
        values, output = (
            for_each_head(layer.value.to(dtype), query.shape[1]),
            layer.output.to(dtype),
        )  # (B, H, K, d)
        if by_sums:
            added = signs(width, layer.number).to(values)
            values, output = (values @ added).contiguous(), output @ added
        largest, scale = 0.0, 1.0
        for first, low, seen in weights_in_blocks(query, key, scoring):
            rows = slice(first, first + seen.shape[2])
            native = output[:, rows]  # (B, rows, H, d or sums)
            weights, summed = seen[..., low:], values[:, :, low : seen.shape[3]]
            # Few columns are added up faster, and in float32 more exactly, as rows.
            context = ((summed.mT @ weights.mT).mT if by_sums else weights @ summed).transpose(1, 2)
            off = (context - native).abs().amax(dim=(2, 3))  # (B, rows)
            real = self.batch.real[:, rows].to(off.device)
            largest = _larger(largest, off[real])
            scale = _larger(scale, native.abs().amax(dim=(2, 3))[real])
            self._show(
                layer.number,
                seen,
                query.shape[2],
                key.shape[2],
                first_row=first,
                causal=scoring.causal,
            )
        check_layer(layer.number, largest, scale, query.dtype, unknown)
        self._differences[layer.number] = largest

    def own(self, weights: Float[Tensor, "batch head query key"], number: int = -1) -> None:
        """Show the observers a layer's weights that the model itself computed and used; there is nothing to prove."""
        layer = max(number, max(self._differences, default=-1) + 1)
        self.dtypes.add(weights.dtype)
        self._show(layer, weights, *weights.shape[2:])
        self._differences[layer] = 0.0

    def _show(
        self,
        layer: int,
        seen: Tensor,
        n_rows: int,
        n_keys: int,
        *,
        first_row: int = 0,
        causal: bool = False,
    ) -> None:
        block = Block(
            layer=layer, first_row=first_row, n_rows=n_rows, causal=causal, n_keys=n_keys, seen=seen
        )
        self.observing = True
        for observer in self.observers:
            observer.observe(block)
        self.observing = False

    def receipt(self, name: str) -> Receipt:
        """The proof of the whole pass. Raises NoAttentionError: no layer came by."""
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
            sums=SUMS if self._sums else None,
        )


def _last_rows(layer: Layer, n: int) -> Layer:
    query, mask, bias = layer.query, layer.scoring.mask, layer.scoring.bias
    first, last = query.shape[2] - n, query.shape[2]
    if mask is None and layer.scoring.causal:
        mask = torch.ones(last, layer.key.shape[2], dtype=torch.bool, device=query.device).tril()
    scoring = replace(
        layer.scoring,
        causal=False,
        mask=None if mask is None else rows_of(mask, first, last),
        bias=None if bias is None else rows_of(bias, first, last),
    )
    return replace(
        layer, query=query[:, :, first:], output=layer.output[:, first:], scoring=scoring
    )


def _larger(largest: float, values: Tensor) -> float:
    """The larger of the two, NaN if any value is: NaN must never pass for a small difference."""
    top = values.max().item() if values.numel() else 0.0
    return top if top != top or top > largest else largest


def signs(width: int, layer: int) -> Float32[Tensor, "d_v sums"]:
    """With which signs the numbers of a row are added up, for each sum: at random, of a layer always the same."""
    chance = torch.Generator().manual_seed(layer)
    return torch.randint(0, 2, (width, SUMS), generator=chance, device=CPU).float() * 2 - 1


def tolerance_of(dtype: torch.dtype) -> float:
    """The tolerance of a number format, relative to a layer's largest output; of one not listed, that of float32."""
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
    """A short digest of every byte of a model's weights, with names, shapes and formats; takes seconds a gigabyte."""
    found = blake2b(digest_size=8)
    for name, tensor in sorted(model.state_dict().items()):
        found.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        found.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return found.hexdigest()
