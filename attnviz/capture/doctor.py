"""A report on each layer's attention, and whether attnviz sees of it what the model computes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

import torch
from jaxtyping import Bool
from torch import Tensor

from attnviz.attention import SOFTMAX, Kind
from attnviz.capture.observers import Batch, WeightCollector
from attnviz.capture.source import Model, Opening, as_source, open_source
from attnviz.capture.sources import Source
from attnviz.capture.sources.huggingface import PretrainedSource
from attnviz.capture.stream import Layer, visible_keys
from attnviz.errors import NoAttentionError, NotVerifiedError

# Tokens of the inputs that run together: long enough for windows to show, and short.
N_TOKENS = 24
N_SHORTER = 17
SENTENCE = "I love all you"  # for home-built models and torch modules, whose tokens are not drawn
CLOSE = 1e-5  # the most that weights may differ from those of ``output_attentions``, in float32


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerReport:
    """The attention of one layer, and how far the captured weights are from the model's own."""

    number: int  # counted from 0, in its kind
    kind: Kind
    heads: int
    key_heads: int | None  # heads with keys of their own; None where only the weights are seen
    mask: str  # ``full`` or ``causal``
    window: int | None  # the most keys that a query sees, where the mask alone would leave more
    extras: tuple[str, ...]  # terms of the scores beside the dot product / sqrt(d_k), in words
    # The difference between weights times values and the model's own output; None where there is nothing to compare
    # with (the weights are the model's own), or the layer is refused.
    output: float | None
    # The difference from ``output_attentions=True`` of the eager implementation, if there is one.
    eager: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The result of `doctor`."""

    model: str
    layers: tuple[LayerReport, ...]  # up to the one that is refused, if one is
    tolerance: (
        float  # the largest difference of output that is accepted in the model's number format
    )
    refusal: str = ""  # why a layer is not verified; empty where all are
    unseen: tuple[Kind, ...] = ()  # kinds of attention of an encoder-decoder that cannot be seen

    def __repr__(self) -> str:
        return f"<Diagnosis: {self.verdict}>"

    @property
    def verdict(self) -> str:
        """The result in one line."""
        if self.refusal:
            return f"{self.model}: {self.refusal}"
        n = len(self.layers)
        outputs = [layer.output for layer in self.layers if layer.output is not None]
        eager = [layer.eager for layer in self.layers if layer.eager is not None]
        proof = f"output within {_number(max(outputs))}" if outputs else "its own softmax"
        more = f", weights within {_number(max(eager))} of output_attentions" if eager else ""
        if max(eager, default=0) > CLOSE >= self.tolerance:  # coarser formats round scores by more
            more += ", which is something else"
        if self.unseen:
            more += f"; its {' and '.join(self.unseen)} attention cannot be seen"
        return f"{self.model}: verified in {n} layer{'' if n == 1 else 's'}: {proof}{more}"


def doctor(
    model: Model = None,
    tokenizer: object = None,
    *,
    random: bool = False,
    seed: int = 0,
    **loading: Unpack[Opening],
) -> Diagnosis:
    """Run a model on random tokens, and compare the captured attention with what the model computes.

    A pretrained model runs its fused implementation, if it has one, on two inputs of which one is padded.

    Args:
        model: as for `as_source`; so are `tokenizer` and `loading`.
        tokenizer: of a model in memory, its own.
        random: draw the weights at random: only the model's configuration is needed then.
        seed: of the tokens, and of random weights.
        loading: how the model is loaded.

    Raises:
        ModelError: the model cannot be loaded or run, or has no attention that can be seen.
        InputError, FileFormatError, SettingsError: as `as_source` and `open_source`.
    """
    if random:
        is_named = tokenizer is None and isinstance(model, str | Path)
        source = open_source(str(model) if is_named else None, drawn=seed, **loading)
    else:
        source = as_source(model, tokenizer, **loading)
    reports: list[LayerReport] = []
    unseen: list[Kind] = []
    tolerance, refusal = 0.0, ""
    for batch in _batches(source, seed):
        layers = _LayerCollector()
        try:
            receipt = source.stream(batch, [layers])
        except NoAttentionError:
            if not reports or batch.kind is None:
                raise
            unseen.append(batch.kind)
            continue
        except NotVerifiedError as error:
            reports += [_report(number, layers, batch) for number in layers.kept]
            refusal = str(error)
            break
        tolerance = receipt.tolerance
        eager = source.eager(batch) if isinstance(source, PretrainedSource) else []
        # Some libraries also list layers that do not attend: those with attention then stand at their own numbers.
        is_by_number = len(eager) != len(receipt.layers)
        for place, number in enumerate(receipt.layers):
            output = None if receipt.native == SOFTMAX else receipt.differences[place]
            at = number if is_by_number else place
            own = eager[at] if at < len(eager) else None
            reports.append(_report(number, layers, batch, output, own))
    return Diagnosis(
        model=source.name,
        layers=tuple(reports),
        tolerance=tolerance,
        refusal=refusal,
        unseen=() if refusal else tuple(unseen),
    )


class _LayerCollector(WeightCollector):
    """Collects all weights and, where they are seen, the queries and keys behind them."""

    def begin(self, batch: Batch) -> None:
        super().begin(batch)
        self.inputs: dict[int, Layer] = {}

    def observe_layer(self, layer: Layer) -> None:
        self.inputs[layer.number] = layer


def _batches(source: Source, seed: int) -> list[Batch]:
    """Return a batch for each kind of attention.

    A pretrained model gets two inputs of random tokens, the second padded; any other a sentence.
    """
    if isinstance(source, PretrainedSource):
        source.is_fused = True
        return source.draw((N_TOKENS, N_SHORTER), seed)
    source.encode([SENTENCE])  # of some it is known only then which kinds they have
    return [source.encode([SENTENCE], kind=kind) for kind in source.kinds]


def _report(
    number: int,
    layers: _LayerCollector,
    batch: Batch,
    output: float | None = None,
    eager: Tensor | None = None,
) -> LayerReport:
    weights, layer = layers.kept[number], layers.inputs.get(number)
    seen = _seen_keys(weights[0], layer)
    is_causal = batch.kind != "cross" and not seen.triu(1).any()
    unwindowed = torch.ones_like(seen).tril() if is_causal else torch.ones_like(seen)
    most_seen = int(seen.sum(dim=1).max())
    window = None if layer is None else layer.scoring.window
    if most_seen < int(unwindowed.sum(dim=1).max()):
        window = most_seen
    return LayerReport(
        number=number,
        kind=batch.kind or ("decoder" if is_causal else "encoder"),
        heads=len(weights[0]),
        key_heads=None if layer is None else layer.key.shape[1],
        mask="causal" if is_causal else "full",
        window=window,
        extras=() if layer is None else tuple(_extras(layer)),
        output=output,
        eager=None if eager is None else _difference(weights, eager, batch),
    )


def _seen_keys(weights: Tensor, layer: Layer | None) -> Bool[Tensor, "query key"]:
    """Return which keys each query sees: by the layer's mask, or where it is not seen by the weights."""
    n_queries, n_keys = weights.shape[1:]
    if layer is None:
        return weights.gt(0).any(dim=0)
    seen = visible_keys(layer.scoring, 0, n_queries, n_keys, layer.query.device).cpu()
    return seen.expand(-1, -1, n_queries, n_keys)[0].any(dim=0)


def _difference(weights: Sequence[Tensor], eager: Tensor, batch: Batch) -> float | None:
    """Return the largest difference from the eager weights; None where these have another shape."""
    shape = (len(weights), len(weights[0]), batch.real.shape[1], batch.real_keys.shape[1])
    if eager.shape != shape:
        return None
    differences = [
        (theirs[:, : own.shape[1], : own.shape[2]] - own).abs().max()
        for theirs, own in zip(eager, weights, strict=True)
    ]
    return float(torch.stack(differences).max())


def _extras(layer: Layer) -> Iterator[str]:
    """Yield what enters the scores beside the scaled dot product, and values of another width than keys."""
    scoring, d_k, d_v = layer.scoring, layer.key.shape[3], layer.value.shape[3]
    if abs(layer.scaling * d_k**0.5 - 1) > CLOSE:
        yield f"scale {layer.scaling:.3g}"
    mask, has_bias = scoring.mask, scoring.bias is not None
    if isinstance(mask, Tensor) and mask.dtype != torch.bool:
        # A float mask may add to the scores of keys that are seen.
        has_bias |= bool(mask[mask > torch.finfo(mask.dtype).min / 2].any())
    if has_bias:
        yield "bias"
    if scoring.softcap is not None:
        yield f"cap {scoring.softcap:g}"
    if scoring.sinks is not None:
        yield "sinks"
    if d_v != d_k:
        yield f"values {d_v} wide, keys {d_k}"


def _number(difference: float) -> str:
    return f"{difference:.1e}" if difference else "0"
