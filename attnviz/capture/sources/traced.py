"""The attention of a model outside the attention interface, traced while the model runs on a text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnviz.attention import ROW_TOLERANCE, SOFTMAX
from attnviz.capture.observers import Block, Observer, WeightCollector
from attnviz.capture.sources.axes import place_of
from attnviz.capture.sources.calls import ModuleCalls
from attnviz.capture.sources.seen import Beginning, Part, SeenLayer, continues
from attnviz.capture.sources.tracing import AttentionTracer, Computation, trace_attention
from attnviz.capture.stream import ForwardPass, Layer, LayerObserver
from attnviz.errors import NoAttentionError


class CausalityProbe(Observer):
    """An observer that finds out whether any query attends to a later key.

    For a model outside the attention interface, only the weights show whether it is causal.
    """

    looks_ahead = False  # whether a query attends to a later key

    def observe(self, block: Block) -> None:
        """Check whether the block has weights above the diagonal."""
        if not self.looks_ahead:
            self.looks_ahead = bool(block.weights.triu(block.first_row + 1).any())


class FunctionalRecorder:
    """A recorder for `AttentionTracer` that passes the attention of a model to a run."""

    axes = None

    def __init__(self, run: ForwardPass, name: str, calls: ModuleCalls) -> None:
        self._run, self._name, self._calls = run, name, calls
        # The layer of which weights were computed last: more of its heads may follow.
        self._layer: tuple[SeenLayer, Beginning] | None = None

    def record_call(self, layer: Layer, computation: Computation) -> None:
        """Pass on a call of the fused function."""
        n_extra_keys = computation.n_extra_keys
        shape = (*layer.query.shape[:3], layer.key.shape[2] - n_extra_keys)
        if not self._covers_tokens(shape, computation):
            return
        self.flush()
        self._run.native = self._run.native.replace(SOFTMAX, "sdpa")
        self._run.add_layer(replace(layer, n_extra_keys=n_extra_keys))

    def record_weights(
        self, weights: Float[Tensor, "batch head query key"], computation: Computation
    ) -> None:
        """Pass on weights that the model itself computed.

        Raises NoAttentionError: an observer needs queries and keys too.
        """
        # Collectors of weights can do without queries and keys; other observers of layers cannot.
        if any(
            isinstance(observer, LayerObserver) and not isinstance(observer, WeightCollector)
            for observer in self._run.observers
        ):
            raise NoAttentionError(
                f"{self._name} computes its attention by itself: its weights can be shown, its queries and keys cannot"
            )
        n_extra_keys = computation.n_extra_keys
        weights = weights[..., : weights.shape[-1] - n_extra_keys]
        if not self._covers_tokens(tuple(weights.shape), computation):
            return
        if not computation.normalised:
            sums = weights.sum(dim=-1)
            if sums.max() > 1 + ROW_TOLERANCE:
                self._leave_out(
                    f"has weights of the shape {tuple(weights.shape)} whose rows sum to up to {sums.max():.3g}: run it "
                    "yourself inside `with attnviz.watch(model):`, which shows them"
                )
                return
            self._run.has_sinks |= bool(sums.min() < 1 - ROW_TOLERANCE)
        self._run.has_sinks |= n_extra_keys > 0
        # LiLT multiplies the weights of a layer by values of the text and by values of its boxes; heads may be modules.
        part = Part(
            held=weights, shape=tuple(weights.shape), first=0, first_query=None, dropped=False
        )
        values = computation.values if weights.shape[1] == 1 else None
        begun = Beginning(self._calls.running, computation.keys, computation.n_behind, values)
        if self._layer is not None and continues(*self._layer, part, begun, cross=False):
            self._layer[0].add(part, begun.call.path or "")
            return
        self.flush()
        self._layer = (SeenLayer(path=begun.call.path or "", cross=False, parts=[part]), begun)

    def flush(self) -> None:
        """Pass on the weights of the last layer, whose heads may have been computed one after the other."""
        if self._layer is not None:
            parts = [part.held for part in self._layer[0].parts if not part.is_repeat]
            self._run.add_weights(
                torch.cat([held for held in parts if isinstance(held, Tensor)], 1)
            )
        self._layer = None

    def _leave_out(self, reason: str) -> None:
        """Leave out a layer, which comes after those before it."""
        self.flush()
        self._run.leave_out(reason)

    def record_unclear(self, shape: Sequence[int]) -> None:
        """Leave out weights whose axes are not clear."""
        self._leave_out(
            f"has weights of the shape {tuple(shape)}, of which it is not clear what the axes are: run it yourself "
            "inside `with attnviz.watch(model, axes=...):`"
        )

    def record_no_weights(self, numbers: Tensor) -> None:
        """Leave out numbers that are multiplied by values as weights are, and are none."""
        self._leave_out(what_is_no_weight(numbers))

    def _covers_tokens(self, shape: tuple[int, ...], computation: Computation) -> bool:
        """Return whether weights of this shape have a row and a column for every token; if not, leave them out."""
        n_batch, n_rows = self._run.batch.real.shape
        n_keys = self._run.batch.real_keys.shape[1]
        if (shape[0], *shape[2:]) != (n_batch, n_rows, n_keys):
            self._leave_out(
                "has no weights of all tokens on all tokens: a softmax that it multiplies by values has the shape "
                f"{tuple(shape)}; run it yourself inside `with attnviz.watch(model):`, where its rows and columns can "
                "be named"
            )
            return False
        if place_of(computation.keys) is None:
            # As many keys as tokens may be something else, such as the places that Linformer projects its keys to.
            self._leave_out(
                f"has weights of the shape {tuple(shape)}, whose columns cannot be followed to the tokens: run it "
                "yourself inside `with attnviz.watch(model):`, which does not name them"
            )
            return False
        return True


@contextmanager
def trace_model(module: nn.Module, run: ForwardPass, name: str, *inputs: Any) -> Iterator[None]:
    """Pass the attention of a module with these inputs to a run until the block ends; `name` is for its messages."""
    calls = ModuleCalls(module)
    recorder = FunctionalRecorder(run, name, calls)
    with calls.followed(), trace_attention(AttentionTracer(recorder), *inputs):
        yield
    recorder.flush()


def what_is_no_weight(numbers: Tensor) -> str:
    """Return why numbers that are multiplied by values are no weights, as the end of a sentence about a module."""
    least, most = float(numbers.min()), float(numbers.max())
    reason = "some are negative" if least < 0 else "some are above 1"
    return (
        f"multiplies its values by {tuple(numbers.shape)} numbers from {least:.3g} to {most:.3g}, which are no "
        f"weights: {reason}"
    )
