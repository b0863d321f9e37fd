"""What each layer of a model's attention is, and whether what attnviz sees of it is what the model computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

import torch
from torch import Tensor

from attnviz.attention import SOFTMAX, Kind
from attnviz.capture.observers import Batch, WeightCollector
from attnviz.capture.source import Model, Opening, as_source, open_source
from attnviz.capture.sources import Source
from attnviz.capture.sources.huggingface import PretrainedSource
from attnviz.capture.stream import Layer, visible_keys
from attnviz.errors import NoAttentionError, NotVerifiedError

N_TOKENS, N_SHORTER = (
    24,
    17,
)  # of the inputs that run together: long enough for windows to show, and short
SENTENCE = "I love all you"  # what home-built models and modules of one's own read: their tokens are not drawn
CLOSE = 1e-5  # as far as weights may be from those of ``output_attentions``, in float32


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerReport:
    """What one layer's attention is."""

    number: int  # counted from 0, in its kind
    kind: Kind  # which attention it is
    heads: int  # how many there are
    # how many of them have keys of their own; None where only the weights are seen
    key_heads: int | None
    mask: str  # ``full`` or ``causal``: which keys a query may see
    # how many keys a query sees at most, where these are not all that the mask leaves
    window: int | None
    # what goes into the scores beside the dot product / sqrt(d_k), in words
    extras: tuple[str, ...]
    # How far weights times values are from the model's own output; None where there is nothing to compare with (the
    # weights are the model's own), or the layer is refused.
    output: float | None
    # how far they are from ``output_attentions=True`` of the eager implementation, if there is one
    eager: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What `doctor` found."""

    model: str  # its name
    layers: tuple[LayerReport, ...]  # up to the one that is refused, if one is
    tolerance: float  # how far weights times values may be from the model's own output, in its number format
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
    reports, unseen, tolerance = list[LayerReport](), list[Kind](), 0.0
    for batch in _batches(source, seed):
        chart = _Chart()
        try:
            receipt = source.stream(batch, [chart])
        except NoAttentionError:
            if not reports or batch.kind is None:
                raise
            unseen.append(batch.kind)
            continue
        except NotVerifiedError as error:
            reports += [_report(number, chart, batch) for number in chart.kept]
            return Diagnosis(
                model=source.name, layers=tuple(reports), tolerance=tolerance, refusal=str(error)
            )
        tolerance = receipt.tolerance
        eager = source.eager(batch) if isinstance(source, PretrainedSource) else []
        # some give a tensor of layers, too, that do not attend
        holds_others = len(eager) != len(receipt.layers)
        for place, (number, difference) in enumerate(
            zip(receipt.layers, receipt.differences, strict=True)
        ):
            output = None if receipt.native == SOFTMAX else difference
            at = number if holds_others else place
            reports.append(
                _report(number, chart, batch, output, eager[at] if at < len(eager) else None)
            )
    return Diagnosis(
        model=source.name, layers=tuple(reports), tolerance=tolerance, unseen=tuple(unseen)
    )


class _Chart(WeightCollector):
    """All weights, and what they are computed from, where that is seen."""

    def begin(self, batch: Batch) -> None:
        super().begin(batch)
        self.given: dict[int, Layer] = {}

    def observe_layer(self, layer: Layer) -> None:
        self.given[layer.number] = layer


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
    chart: _Chart,
    batch: Batch,
    output: float | None = None,
    eager: Tensor | None = None,
) -> LayerReport:
    weights, layer = chart.kept[number], chart.given.get(number)
    n_heads, off = len(weights[0]), None
    if eager is not None and eager.shape == (
        len(weights),
        n_heads,
        batch.real.shape[1],
        batch.real_keys.shape[1],
    ):
        both = zip(eager, weights, strict=True)
        off = float(
            torch.stack(
                [(one[:, : own.shape[1], : own.shape[2]] - own).abs().max() for one, own in both]
            ).max()
        )
    seen = weights[0].gt(0).any(dim=0)
    if layer is not None:
        (n_queries, n_keys), device = seen.shape, layer.query.device
        found = visible_keys(layer.scoring, 0, n_queries, n_keys, device).cpu()
        seen = found.expand(-1, -1, n_queries, n_keys)[0].any(dim=0)
    causal = batch.kind != "cross" and not seen.triu(1).any()
    expected = torch.ones_like(seen).tril() if causal else torch.ones_like(seen)
    most = int(seen.sum(dim=1).max())
    return LayerReport(
        number=number,
        kind=batch.kind or ("decoder" if causal else "encoder"),
        heads=n_heads,
        key_heads=None if layer is None else layer.key.shape[1],
        mask="causal" if causal else "full",
        window=most
        if most < int(expected.sum(dim=1).max())
        else None
        if layer is None
        else layer.scoring.window,
        extras=() if layer is None else tuple(_extras(layer)),
        output=output,
        eager=off,
    )


def _extras(layer: Layer) -> Sequence[str]:
    """Describe what enters the scores beside the scaled dot product, and values of another width than keys."""
    scoring, d_k, d_v = layer.scoring, layer.key.shape[3], layer.value.shape[3]
    scale = d_k**-0.5 if scoring.scaling is None else scoring.scaling
    mask, adds = scoring.mask, False
    # it adds to the scores of keys that may be seen
    if isinstance(mask, Tensor) and mask.dtype != torch.bool:
        adds = bool(mask[mask > torch.finfo(mask.dtype).min / 2].any())
    return [
        *([f"scale {scale:.3g}"] if abs(scale * d_k**0.5 - 1) > CLOSE else []),
        *(["bias"] if scoring.bias is not None or adds else []),
        *([f"cap {scoring.softcap:g}"] if scoring.softcap is not None else []),
        *(["sinks"] if scoring.sinks is not None else []),
        *([f"values {d_v} wide, keys {d_k}"] if d_v != d_k else []),
    ]


def _number(difference: float) -> str:
    return f"{difference:.1e}" if difference else "0"
