"""The linear projections around one layer's attention: to query, key and value, and from the joined contexts.

No table of module names is needed: a projection is recognised because its output equals the query, key or value to the
last bit. If no output is equal, for example because rotary positions change queries and keys afterwards, there is no
projection to show.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from threading import get_ident
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnviz.attention import indices_of
from attnviz.capture.observers import Batch
from attnviz.capture.stream import Layer, LayerObserver


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a small module of the model: a linear projection, a norm, an embedding or a recurrent cell."""

    module: nn.Module
    given: (
        Tensor  # its input: vectors [batch, token, d], or word ids [batch, token] for an embedding
    )
    made: Float[Tensor, "batch token made"]  # its output


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """A linear projection, x W + b, or some of its columns."""

    given: Float[Tensor, "token given"]  # its input for the first sentence
    weight: Float[Tensor, "given made"]
    bias: Float[Tensor, " made"] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """The embeddings whose sum is the input of a model's first layer, for the first sentence."""

    # Embeddings of words, positions and, in some models, segments.
    parts: tuple[Float[Tensor, "token d_model"], ...]
    # Gain, shift and epsilon of the layer norm that is applied to the sum; None if there is no such norm.
    norm: tuple[Tensor, Tensor, float] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WordHead:
    """The projection from a decoder's states to words: logits = state W + b."""

    module: nn.Module  # the projection, or the word embedding if the model shares its weights
    bias: Float[Tensor, " word"] | None
    names: Callable[[Sequence[int]], Sequence[str]]  # returns the texts of these word ids
    never: tuple[int, ...] = ()  # ids of words that the model never generates

    @property
    def weight(self) -> Float[Tensor, "word d_model"]:
        """The weight matrix, one row per word."""
        return self.module.get_parameter("weight")


@runtime_checkable  # so that `show_calls` can recognise these observers with isinstance
class CallObserver(Protocol):
    """An observer of the calls of small modules: linear projections, norms, embeddings, recurrent cells."""

    def observe_call(self, call: Call) -> None:
        """Receive a call that has run."""


@contextmanager
def show_calls(model: nn.Module, observers: Sequence[object]) -> Iterator[None]:
    """Pass each call of a small module of the model to every `CallObserver`, until the block ends."""
    call_observers = [observer for observer in observers if isinstance(observer, CallObserver)]
    thread = get_ident()  # hooks also fire for other threads that run the same model

    def show(module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        if get_ident() != thread or not inputs:
            return
        x = inputs[0]
        if not isinstance(x, Tensor) or not isinstance(output, Tensor):
            return
        if not isinstance(module, nn.Embedding):
            x = _with_token_axis(x)
        for observer in call_observers:
            observer.observe_call(Call(module=module, given=x, made=_with_token_axis(output)))

    with ExitStack() as stack:
        for module in filter(_is_small, model.modules() if call_observers else ()):
            stack.callback(module.register_forward_hook(show).remove)
        yield


class ProjectionCollector(LayerObserver):
    """Collects one layer's query, key and value, and the calls around its attention; layer -1 is the last one."""

    def __init__(self, layer: int) -> None:
        self._wanted = layer

    def begin(self, batch: Batch) -> None:
        """Discard the data of an earlier batch."""
        self._batch = batch
        self._seen: list[int] = []
        # The calls since the latest layer's attention; when the model has run, they lead to its output.
        self.last: list[Call] = []
        # The wanted layer, or as many of the latest as may be it: a negative number counts from the yet unknown end.
        self._kept = deque[tuple[Layer, list[Call], list[Call]]](maxlen=max(1, -self._wanted))

    def observe_call(self, call: Call) -> None:
        """Keep the call at least until the next layer is observed."""
        self.last.append(call)

    def observe_layer(self, layer: Layer) -> None:
        """Keep the layer if it is the wanted one, or may be."""
        self._seen.append(layer.number)
        calls_before, self.last = self.last, []
        if self._wanted < 0 or self._wanted == layer.number:
            self._kept.append((layer, calls_before, self.last))

    @property
    def layer(self) -> Layer:
        """The wanted layer. Raises SelectionError: there is no layer of that number."""
        indices_of([self._wanted], self._seen, "layer")
        return self._kept[0][0]

    @property
    def before(self) -> list[Call]:
        """The calls between the previous layer's attention and that of the wanted one."""
        return self._kept[0][1]

    @property
    def after(self) -> list[Call]:
        """The calls between the wanted layer's attention and the next one's."""
        return self._kept[0][2]

    def projections(self) -> tuple[Projection | None, ...]:
        """Return the projections to the queries, keys and values of all heads, and from their joined contexts.

        Each is None if no linear projection computed exactly that tensor.
        """
        layer, calls = self.layer, _join_steps(self.before)
        contexts = layer.output.flatten(2)  # (B, Q, H, d) -> (B, Q, H * d)
        readers = [call for call in self.after if same(call.given, contexts)]
        output = projection_of(readers[0], 0, readers[0].made.shape[2]) if readers else None
        return (*(maker_of(calls, x) for x in (layer.query, layer.key, layer.value)), output)

    def embedded(self, x: Tensor) -> Embedded | None:
        """Return the embeddings whose sum is the layer's input x [token, d_model]; None if x is no such sum."""
        norms = (call for call in self.before if isinstance(call.module, nn.LayerNorm))
        norm = next((call for call in norms if same(call.made[0].to(x), x)), None)
        total = x if norm is None else norm.given[0].to(x)
        ids = self._batch.inputs.get("input_ids")
        words: list[Call] = []
        other_calls: list[Call] = []
        for call in self.before:
            if isinstance(call.module, nn.Embedding) and call.made.shape[1:] == x.shape:
                is_of_words = ids is not None and same(call.given, ids)
                (words if is_of_words else other_calls).append(call)
        if len(words) != 1 or not other_calls:
            return None
        # Put positions before segments: a position table has many vectors, a segment table two.
        other_calls.sort(key=lambda call: -call.module.num_embeddings)  # type: ignore[operator]
        parts = tuple(call.made[0].to(x) for call in (*words, *other_calls))
        tolerance = 1e-5 * max(1.0, total.abs().max().item())
        if (sum(parts) - total).abs().max().item() > tolerance:
            return None
        return Embedded(parts=parts, norm=None if norm is None else norm_of(norm))

    def beside(self) -> Tensor | None:
        """Return the part of a recurrent cell's input that is not the context, [step, d]; None if no cell reads it."""
        context = self.layer.output.flatten(2)[0]  # (T, H * d)
        width = context.shape[1]
        for call in _join_steps(self.cells()):
            cell_inputs = call.given[0]
            if same(cell_inputs[:, -width:].to(context), context):
                return cell_inputs[:, :-width]
        return None

    def read_by(self, head: WordHead) -> Tensor | None:
        """Return the input of a projection to words [token, d_model]; if it did not run, the model's last output."""
        calls = _join_steps(self.last or self.before)
        for call in reversed(calls):
            if call.module is head.module and is_linear(call.module):
                return call.given[0]
        shape = (self.layer.query.shape[2], head.weight.shape[1])
        for call in reversed(calls):
            if call.made.shape[1:] == shape:
                return call.made[0]
        return None

    def cells(self) -> list[Call]:
        """Return the calls of recurrent cells between one step of the attention and the next."""
        return [call for call in self.before if isinstance(call.module, nn.RNNCellBase)]


def maker_of(calls: Sequence[Call], tensor: Tensor) -> Projection | None:
    """Return the projection whose output, or a block of its columns, is this tensor [batch, head, token, d]."""
    columns = tensor.transpose(1, 2).flatten(2)  # (B, H, T, d) -> (B, T, H * d)
    size = columns.shape[2]
    for call in reversed(calls):
        if is_linear(call.module):
            # One fused projection may compute query, key and value as three blocks of columns.
            for first in range(0, call.made.shape[2] - size + 1, size):
                if same(call.made[:, :, first : first + size], columns):
                    return projection_of(call, first, first + size)
    return None


def projection_of(call: Call, first: int, last: int) -> Projection | None:
    """Return the columns `first` to `last` (exclusive) of a linear projection; None if the module is no projection."""
    if not is_linear(call.module):
        return None
    matrix = call.module.get_parameter("weight")
    bias: Tensor | None = getattr(call.module, "bias", None)
    # nn.Linear stores W^T; the Conv1D modules of GPT-2 store W itself.
    weight: Tensor = matrix.T if isinstance(call.module, nn.Linear) else matrix
    bias = None if bias is None else bias[first:last]
    return Projection(given=call.given[0], weight=weight[:, first:last], bias=bias)


def norm_of(call: Call) -> tuple[Tensor, Tensor, float]:
    """Return gain, shift and epsilon of a layer norm."""
    module, width = call.module, call.made.shape[2]
    gain, shift = getattr(module, "weight", None), getattr(module, "bias", None)
    return (
        call.made.new_ones(width) if gain is None else gain,
        call.made.new_zeros(width) if shift is None else shift,
        float(module.eps),  # type: ignore[arg-type]
    )


def is_linear(module: nn.Module) -> bool:
    """Return whether a module is a plain linear projection, neither quantised nor with an adapter."""
    return type(module) is nn.Linear or type(module).__name__ == "Conv1D"


def _is_small(module: nn.Module) -> bool:
    """Return whether calls of a module are shown.

    A module without submodules whose parameters are all vectors is taken for a norm that the model defines itself.
    """
    if is_linear(module) or isinstance(module, nn.LayerNorm | nn.Embedding | nn.RNNCellBase):
        return True
    parameters = list(module.parameters())
    is_leaf = next(module.children(), None) is None
    return is_leaf and bool(parameters) and all(parameter.ndim == 1 for parameter in parameters)


def _with_token_axis(x: Tensor) -> Tensor:
    """Return x as (B, T, D). A recurrent model has no token axis: (B, D) becomes (B, 1, D)."""
    return x[:, None] if x.ndim == 2 else x.reshape(x.shape[0], -1, x.shape[-1])


def _join_steps(calls: Sequence[Call]) -> list[Call]:
    """Return the calls and, for each module that runs once per token, one more call that joins all its steps."""
    steps: dict[nn.Module, list[Call]] = {}
    for call in calls:
        steps.setdefault(call.module, []).append(call)
    joined = [
        Call(
            module=module,
            given=torch.cat([step.given for step in module_calls], 1),
            made=torch.cat([step.made for step in module_calls], 1),
        )
        for module, module_calls in steps.items()
        if len(module_calls) > 1 and all(step.made.shape[1] == 1 for step in module_calls)
    ]
    return [*calls, *joined]


def same(first: Tensor, second: Tensor) -> bool:
    """Return whether two tensors are equal to the last bit."""
    return first.shape == second.shape and torch.equal(first, second)
