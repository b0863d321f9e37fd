"""A report on each layer's attention, and on whether attnviz captures exactly what the model computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor
from typing_extensions import Unpack

from attnviz.attention import SOFTMAX, Kind, count
from attnviz.capture.observers import Batch, WeightCollector
from attnviz.capture.source import Model, Opening, as_source, check_keywords, open_source
from attnviz.capture.sources import Source
from attnviz.capture.sources.huggingface import PretrainedSource
from attnviz.capture.stream import Layer
from attnviz.errors import NoAttentionError, NotVerifiedError
from attnviz.text.display import rounding

# The numbers of tokens of the two inputs: long enough to show a sliding window, short enough to run fast. They differ,
# so that the second input is padded.
N_TOKENS = 24
N_SHORTER = 17
# The input of home-built models and torch modules, which read no random tokens.
SENTENCE = "I love all you"
# The largest accepted difference from the weights of ``output_attentions``, in float32.
CLOSE = 1e-5


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerReport:
    """The attention of one layer, and how far the captured weights are from the model's own."""

    number: int  # counted from 0 among the layers of its kind
    kind: Kind
    heads: int
    key_heads: int | None  # the number of key heads; None if only the weights are captured
    mask: str  # ``full`` or ``causal``
    # The largest number of keys that a query sees, if a window limits it; else None.
    window: int | None
    # The difference between weights times values and the model's own output; None if there is nothing to compare (the
    # weights are the model's own tensor), or if the layer is refused.
    output: float | None
    # The difference from ``output_attentions=True`` of the eager implementation, if there is one.
    eager: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The result of `doctor`."""

    model: str
    layers: tuple[LayerReport, ...]  # if a layer is refused, only the layers before it
    # The largest accepted difference of the output in the model's number format.
    tolerance: float
    refusal: str = ""  # why a layer is not verified; empty if all layers are
    # Kinds of attention of an encoder-decoder that cannot be captured.
    unseen: tuple[Kind, ...] = ()

    def __repr__(self) -> str:
        return f"<Diagnosis: {self.verdict}>"

    @property
    def verdict(self) -> str:
        """The result in one line."""
        if self.refusal:
            return f"{self.model}: {self.refusal}"
        n_layers = len(self.layers)
        outputs = [layer.output for layer in self.layers if layer.output is not None]
        eager = [layer.eager for layer in self.layers if layer.eager is not None]
        proof = f"output within {rounding(max(outputs))}" if outputs else "its own softmax"
        remarks = f", weights within {rounding(max(eager))} of output_attentions" if eager else ""
        # What is verified is the implementation that the model itself runs with. In formats coarser than float32,
        # rounding alone exceeds CLOSE, so there a larger difference shows nothing.
        if max(eager, default=0) > CLOSE >= self.tolerance:
            remarks = (
                f"; output_attentions shows other weights than these ({rounding(max(eager))} off)"
            )
        if self.unseen:
            remarks += f"; its {' and '.join(self.unseen)} attention cannot be seen"
        return f"{self.model}: verified in {count(n_layers, 'layer')}: {proof}{remarks}"


def doctor(
    model: Model = None,
    tokenizer: object = None,
    *,
    random: bool = False,
    seed: int = 0,
    **loading: Unpack[Opening],
) -> Diagnosis:
    """Run a model on a short input, and compare the captured attention with what the model computes.

    A pretrained model runs its fused implementation, if it has one, on two inputs of random tokens, the shorter of
    which is padded. Any other model reads a sentence.

    Args:
        model: as for `as_source`.
        tokenizer: the tokenizer of a model in memory, as for `as_source`.
        random: draw the weights at random, so that only the model's configuration is needed.
        seed: the seed of the random tokens and of random weights.
        loading: how to load the model, as for `as_source`.

    Raises:
        ModelError: the model cannot be loaded or run, or has no attention that can be captured.
        InputError, FileFormatError, SettingsError: as for `as_source` and `open_source`.
    """
    check_keywords(doctor, loading, Opening.__optional_keys__)
    if random:
        is_named = tokenizer is None and isinstance(model, str | Path)
        # Weights can be drawn only of a named model; for any other, `open_source` raises SettingsError.
        source = open_source(str(model) if is_named else None, drawn=seed, **loading)
    else:
        source = as_source(model, tokenizer, **loading)
    reports: list[LayerReport] = []
    unseen: list[Kind] = []
    tolerance = 0.0
    for batch in _batches(source, seed):
        layers = _LayerCollector()
        try:
            receipt = source.stream(batch, [layers])
        except NoAttentionError:
            # Of an encoder-decoder, the report lists a later kind of attention that cannot be captured.
            if not reports or batch.kind is None:
                raise
            unseen.append(batch.kind)
            continue
        except NotVerifiedError as error:
            reports += [_report(number, layers, batch) for number in layers.kept]
            return Diagnosis(
                model=source.name, layers=tuple(reports), tolerance=tolerance, refusal=str(error)
            )
        tolerance = receipt.tolerance
        outputs = dict(zip(receipt.layers, receipt.differences, strict=True))
        eager = source.eager(batch) if isinstance(source, PretrainedSource) else []
        if len(eager) == len(receipt.layers):
            eager_weights = dict(zip(receipt.layers, eager, strict=True))
        else:  # the model also lists layers without attention, each at its own number
            eager_weights = dict(enumerate(eager))
        for number, weights in layers.kept.items():
            output = None if receipt.native == SOFTMAX else outputs[number]
            eager_difference = _difference(weights, eager_weights.get(number), batch)
            reports.append(_report(number, layers, batch, output, eager_difference))
    return Diagnosis(
        model=source.name, layers=tuple(reports), tolerance=tolerance, unseen=tuple(unseen)
    )


class _LayerCollector(WeightCollector):
    """Collects all weights and, if they are captured, the queries and keys behind them."""

    def begin(self, batch: Batch) -> None:
        super().begin(batch)
        self.inputs: dict[int, Layer] = {}

    def observe_layer(self, layer: Layer) -> None:
        self.inputs[layer.number] = layer


def _batches(source: Source, seed: int) -> list[Batch]:
    """Return one batch per kind of attention: random tokens for a pretrained model, a sentence for any other."""
    if isinstance(source, PretrainedSource):
        source.is_fused = True
        return source.random_batches((N_TOKENS, N_SHORTER), seed)
    # A torch module shows its kinds of attention only when it runs, so encode the sentence before reading `kinds`.
    source.encode([SENTENCE])
    return [source.encode([SENTENCE], kind=kind) for kind in source.kinds]


def _report(
    number: int,
    layers: _LayerCollector,
    batch: Batch,
    output: float | None = None,
    eager: float | None = None,
) -> LayerReport:
    """Return the report on one layer, with the differences of its output and of the eager weights."""
    weights, layer = layers.kept[number][0], layers.inputs.get(number)
    n_queries, n_keys = weights.shape[1:]
    seen = weights.gt(0).any(dim=0)  # (query, key)
    is_causal = batch.kind != "cross" and not seen.triu(1).any()
    most_seen = int(seen.sum(dim=1).max())
    window = None if layer is None else layer.scoring.window
    if most_seen < (min(n_queries, n_keys) if is_causal else n_keys):
        window = most_seen
    return LayerReport(
        number=number,
        kind=batch.kind or ("decoder" if is_causal else "encoder"),
        heads=len(weights),
        key_heads=None if layer is None else layer.key.shape[1],
        mask="causal" if is_causal else "full",
        window=window,
        output=output,
        eager=eager,
    )


def _difference(weights: Sequence[Tensor], eager: Tensor | None, batch: Batch) -> float | None:
    """Return the largest difference from the eager weights; None if there are none, or their shapes do not match."""
    shape = (len(weights), len(weights[0]), batch.real.shape[1], batch.real_keys.shape[1])
    if eager is None or eager.shape != shape:
        return None
    pairs = zip(weights, eager, strict=True)
    return max(
        float((own - other[:, : own.shape[1], : own.shape[2]]).abs().max()) for own, other in pairs
    )
