"""The attention of any torch module, captured while the caller's own code runs the module."""

from __future__ import annotations

import inspect
import math
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from threading import get_ident
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Float, Float32
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from attnviz.attention import (
    ROW_TOLERANCE,
    SOFTMAX,
    Attention,
    Kind,
    Note,
    Receipt,
    ShortRows,
    Token,
    count,
    indices_of,
)
from attnviz.capture.observers import CPU, Batch, Block, Observer, WeightCollector
from attnviz.capture.sources.axes import Axis, parse_axes, place_of, tensors_in
from attnviz.capture.sources.tracing import (
    FUSED,
    AttentionTracer,
    Computation,
    attend_fused,
    trace_attention,
)
from attnviz.capture.stream import (
    ForwardPass,
    Layer,
    LayerObserver,
    visible_keys,
)
from attnviz.errors import (
    InputError,
    ModelError,
    NoAttentionError,
    RecordError,
    SelectionError,
    SettingsError,
)
from attnviz.releases import grouped_queries

AXES = 4  # the number of axes of weights: batch, head, query, key
# The most bytes of weights that are kept of a run, and that a record may have.
KEEP_AT_MOST = 4 * 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One computation of attention: a layer, or some of its heads, of its rows or of its inputs."""

    # The inputs and the output of the fused function, or the weights themselves; None if these are too large.
    held: Layer | Float[Tensor, "batch head query key"] | None
    shape: tuple[int, ...]  # batch, head, query, key
    first: int  # the place of its first input in the batch
    first_query: int | None  # the place of its first query among the keys, if it is known
    dropped: bool  # whether dropout then set some of the weights to 0
    normalised: bool = True  # whether a softmax or the like made its rows sum to 1
    # Whether it has the weights of the part before it, for other values, as in DiffLlama.
    is_repeat: bool = False

    @property
    def inputs(self) -> range:
        """The places of its inputs in the batch."""
        return range(self.first, self.first + self.shape[0])

    def covers(self, index: int) -> bool:
        """Return whether input `index` of the batch is among those of the part."""
        return index in self.inputs

    def looks_ahead(self) -> bool:
        """Return whether a query of the first input sees a later key, as in an encoder."""
        held, (n_queries, n_keys) = self.held, self.shape[2:]
        # A model with a cache reads the last tokens of a text, and sees all keys before them.
        n_before = n_keys - n_queries if self.first_query is None else self.first_query
        if isinstance(held, Layer) and held.scoring.mask is None and n_before == 0:
            return not held.scoring.causal
        if held is None or (n_queries == 1 and n_before == 0):
            return True
        if isinstance(held, Layer):
            visible = visible_keys(held.scoring, 0, n_queries, n_keys, held.query.device)
            is_visible = visible[:1].expand(-1, -1, n_queries, -1)
        else:
            is_visible = held[:1] > 0
            # Queries that are padding on the left of a causal model may attend equally to all keys, even to later ones.
            is_uneven = held[:1].amax(dim=-1) > held[:1].amin(dim=-1)
            if is_uneven.any():
                is_visible &= is_uneven[..., None]
        return bool(is_visible.triu(1 + n_before).any())

    def verified(
        self, index: int, number: int
    ) -> tuple[Float32[np.ndarray, "head query key"], Receipt]:
        """Return the weights of input `index` of the batch, in layer `number`, and their receipt.

        Raises NotVerifiedError: the weights are not the module's own.
        """
        held, own = self.held, slice(index - self.first, index - self.first + 1)
        assert held is not None  # `_check_memory` refuses a layer whose weights were not kept
        real, real_keys = (torch.ones(1, n, dtype=torch.bool, device=CPU) for n in self.shape[2:])
        batch = Batch(sentences=(), inputs={}, real=real, real_keys=real_keys)
        collector = WeightCollector()
        native = "sdpa" if isinstance(held, Layer) else SOFTMAX
        run = ForwardPass(batch=batch, observers=[collector], native=native)
        if isinstance(held, Tensor):
            run.add_weights(held[own], number)
        else:
            run.add_layer(self._call_of(held, own, number))
        return collector.weights(0)[0], run.receipt("")

    def _call_of(self, call: Layer, own: slice, number: int) -> Layer:
        """Return a call of the fused function for one input of the batch."""
        query, key, value = call.query[own], call.key[own], call.value[own]
        output, scoring = call.output[own], call.scoring
        if isinstance(scoring.mask, Tensor) and scoring.mask.ndim == AXES and len(scoring.mask) > 1:
            scoring = replace(scoring, mask=scoring.mask[own])
        # With dropout, the output lacks some of the weights: compute it again without dropout.
        if self.dropped:
            arguments: dict[str, Any] = {"attn_mask": scoring.mask, "is_causal": scoring.causal}
            arguments |= {"scale": scoring.scaling, **grouped_queries(query, key)}
            output = FUSED(query, key, value, **arguments).transpose(1, 2)
        return Layer(
            query=query,
            key=key,
            value=value,
            output=output,
            scoring=scoring,
            number=number,
            attend=partial(attend_fused, query, key, scoring.scaling),
        )


@dataclass(slots=True, kw_only=True)
class SeenLayer:
    """A layer of attention; its weights are computed and verified when they are requested."""

    # The module that computed it, such as ``decoder.layers.0.self_attn``; empty for the watched module.
    path: str
    cross: bool  # whether queries and keys come from different sequences
    parts: list[Part]
    is_stepwise: bool = (
        False  # whether the parts are rows, one step of a decoder each; else they are heads
    )

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """The number of inputs, heads, queries and keys; of a decoder's steps, as many as the longest text has."""
        return self.shape_of(self.parts[0].first)

    def shape_of(self, index: int) -> tuple[int, int, int, int]:
        """Return the same numbers for one input of the batch, which may have fewer steps."""
        of_first = [part for part in self.parts if part.covers(index) and not part.is_repeat]
        _, n_heads, n_queries, n_keys = self.parts[0].shape
        n_inputs = max(part.inputs.stop for part in self.parts)
        if self.is_stepwise:
            return n_inputs, n_heads, len(of_first), n_keys
        return n_inputs, n_heads * len(of_first), n_queries, n_keys

    @property
    def kind(self) -> Kind:
        """The kind of attention; "decoder" (causal) if no query of the first input sees a later key."""
        if self.cross:
            return "cross"
        return "encoder" if any(part.looks_ahead() for part in self.parts) else "decoder"

    def add(self, part: Part, path: str) -> None:
        """Add a part that a module with this path computed."""
        before = self.parts[-1]
        if path != self.path:
            self.path = _siblings(path)[0].rstrip(".")
        elif part.covers(before.first) and self.cross and part.shape[2] == 1:
            self.is_stepwise = True
        elif part.covers(before.first) and _has_same_weights(part.held, before.held):
            part = replace(part, is_repeat=True)
        self.parts.append(part)

    def verified(
        self, index: int, number: int
    ) -> tuple[Float32[np.ndarray, "head query key"], list[Receipt]]:
        """Return the weights of input `index` of the batch, and a receipt of each part, as of layer `number`.

        Raises NotVerifiedError: the weights of a part are not the module's own.
        """
        own = [part for part in self.parts if part.covers(index)]
        found = [part.verified(index, number) for part in own]
        shown = [w for part, (w, _) in zip(own, found, strict=True) if not part.is_repeat]
        joined = np.concatenate(shown, axis=1 if self.is_stepwise else 0)
        return joined, [receipt for _, receipt in found]


@dataclass(frozen=True, slots=True)
class ModuleCall:
    """A module that is running."""

    path: str | None = ""  # None for a module outside the watched one
    number: int = 0  # counted in the order of calls
    caller: int = 0  # the number of the call that made it
    read: Tensor | None = None  # its first input


class ModuleCalls:
    """Knows which part of a module runs in this thread, while its block is open.

    Global hooks, unlike hooks on the module itself, leave nothing behind in copies of the module.
    """

    def __init__(self, module: nn.Module, begin: Callable[..., None] | None = None) -> None:
        """Follow a module; `begin` is called with the inputs whenever the whole module starts."""
        self._module, self._begin_run = module, begin
        self._stack: list[ModuleCall] = []  # the modules that are running, outermost first
        self._n_calls = 0

    @property
    def running(self) -> ModuleCall:
        """The innermost module that is running."""
        return self._stack[-1] if self._stack else ModuleCall()

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Follow the calls in this thread until the block ends."""
        self._thread = get_ident()
        self._paths = {module: path for path, module in self._module.named_modules()}
        with ExitStack() as stack:
            stack.callback(register_module_forward_pre_hook(self._begin).remove)
            stack.callback(register_module_forward_hook(self._end, always_call=True).remove)
            stack.callback(self._stack.clear)
            stack.enter_context(_silence_compile_warning())
            yield

    def _begin(self, module: nn.Module, inputs: Any) -> None:
        """Remember a module that starts."""
        if get_ident() != self._thread:
            return
        # Activation checkpointing runs modules again during the backward pass, which is not a new run.
        is_backward = torch._C._current_graph_task_id() >= 0
        is_inside = any(call.path is not None for call in self._stack)
        # A hook on all modules does not receive the arguments that are passed by name: they are in its caller.
        frame = inspect.currentframe()
        caller = None if frame is None else frame.f_back
        named = {} if caller is None else caller.f_locals.get("kwargs", {})
        is_run = module is self._module and not is_backward and not is_inside
        if is_run and self._begin_run is not None:
            self._begin_run(inputs, named)
        # A module that the watched one does not list, such as one made during the run, counts as its caller.
        outside = self._stack[-1].path if self._stack else None
        self._n_calls += 1
        read = next(tensors_in([inputs, named]), None)
        path = self._paths.get(module, outside)
        self._stack.append(ModuleCall(path, self._n_calls, self.running.number, read))

    def _end(self, _module: nn.Module, _inputs: Any, _output: Any) -> None:
        """Forget a module that ends."""
        if get_ident() == self._thread:
            del self._stack[-1:]


@dataclass(frozen=True, slots=True)
class _Beginning:
    """Where the first part of a layer was computed."""

    call: ModuleCall
    keys: tuple[Axis, ...]
    values: Tensor | None


def _continues(
    layer: SeenLayer, begun: _Beginning, part: Part, now: _Beginning, *, cross: bool
) -> bool:
    """Return whether a part continues a layer: as further inputs, as a decoder's next step, or as further heads.

    A layer is what the model numbers as a layer: its path ends with a number, as in ``layers.1.self_attn``.
    """
    first, path = layer.parts[0], now.call.path or ""
    if (first.shape[1:], layer.cross, first.dropped) != (part.shape[1:], cross, part.dropped):
        return False
    if path != layer.path:
        # Heads may be modules of their own, side by side on the same input.
        is_beside = (
            _siblings(begun.call.path or "") == _siblings(path) and _number(path) is not None
        )
        is_same_input = begun.call.read is not None and begun.call.read is now.call.read
        return is_beside and part.shape[1] == 1 and is_same_input
    if not any(part.covers(index) for other in layer.parts for index in other.inputs):
        return True
    # A decoder attends once per step, always to the same sequence; in a batch, short texts end before long ones.
    if cross and part.shape[2] == 1:
        origins = [[axis.origin for axis in of.keys] for of in (begun, now)]
        return bool(origins[0]) and origins[0] == origins[1]
    if first.shape != part.shape:
        return False
    is_same_call = begun.call.number == now.call.number
    if is_same_call and _number(path) is not None:
        return True  # several patterns of one layer, as in DiffLlama
    if begun.values is None or now.values is None:
        return False
    # Heads in a loop may share their values (Lim et al. 2021, temporal fusion transformer).
    return (is_same_call or begun.call.caller == now.call.caller) and torch.equal(
        begun.values, now.values
    )


def _has_same_weights(held: Layer | Tensor | None, other: Layer | Tensor | None) -> bool:
    """Return whether two computations have the same weights, and differ in their values alone."""
    if isinstance(held, Layer) and isinstance(other, Layer):
        pairs = [(held.query, other.query), (held.key, other.key)]
        masks = held.scoring.mask, other.scoring.mask
        if isinstance(masks[0], Tensor) and isinstance(masks[1], Tensor):
            pairs.append((masks[0], masks[1]))
        elif masks[0] is not masks[1]:
            return False
        return all(torch.equal(*pair) for pair in pairs)
    return isinstance(held, Tensor) and isinstance(other, Tensor) and torch.equal(held, other)


def _number(path: str) -> int | None:
    """Return the number in a path that is nearest to its end, as of ``layers.1.self_attn``; None without a number."""
    numbers = re.findall(r"(?<![^.])\d+(?![^.])", path)
    return int(numbers[-1]) if numbers else None


def _siblings(path: str) -> tuple[str, str]:
    """Return the parts of a path before and after its last number."""
    match = re.fullmatch(r"((?:.*\.)?)\d+((?:\.(?!\d+(?:\.|$))[^.]+)*)", path)
    return (match[1], match[2]) if match else (path, "")


@contextmanager
def _silence_compile_warning() -> Iterator[None]:
    """Silence torch's warning about hooks on all modules and compiled ones, until the block ends."""
    warnings.filterwarnings("ignore", "Using `torch.compile", UserWarning)
    rule = warnings.filters[0]
    try:
        yield
    finally:
        # The block may have removed the rule itself; other changes that it made to the filters remain.
        if rule in warnings.filters:
            warnings.filters.remove(rule)  # type: ignore[attr-defined]  # a list


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
        # The weights that were computed last, and the number of the call of the module that computed them.
        self._last: tuple[int, Tensor] | None = None

    def record_call(self, layer: Layer, computation: Computation) -> None:
        """Pass on a call of the fused function."""
        n_extra_keys = computation.n_extra_keys
        shape = (*layer.query.shape[:3], layer.key.shape[2] - n_extra_keys)
        if not self._covers_tokens(shape, computation):
            return
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
        last, self._last = self._last, (self._calls.running.number, weights)
        if last is not None and last[0] == self._last[0] and torch.equal(last[1], weights):
            return  # LiLT multiplies the weights of a layer by values of the text and by values of its boxes
        n_extra_keys = computation.n_extra_keys
        weights = weights[..., : weights.shape[-1] - n_extra_keys]
        if not self._covers_tokens(tuple(weights.shape), computation):
            return
        if not computation.normalised:
            sums = weights.sum(dim=-1)
            if sums.max() > 1 + ROW_TOLERANCE:
                self._run.leave_out(
                    f"has weights of the shape {tuple(weights.shape)} whose rows sum to up to {sums.max():.3g}: run it "
                    "yourself inside `with attnviz.watch(model):`, which shows them"
                )
                return
            self._run.has_sinks |= bool(sums.min() < 1 - ROW_TOLERANCE)
        self._run.has_sinks |= n_extra_keys > 0
        self._run.add_weights(weights)

    def record_unclear(self, shape: Sequence[int]) -> None:
        """Leave out weights whose axes are not clear."""
        self._run.leave_out(
            f"has weights of the shape {tuple(shape)}, of which it is not clear what the axes are: run it yourself "
            "inside `with attnviz.watch(model, axes=...):`"
        )

    def record_no_weights(self, numbers: Tensor) -> None:
        """Leave out numbers that are multiplied by values as weights are, and are none."""
        self._run.leave_out(_what_is_no_weight(numbers))

    def _covers_tokens(self, shape: tuple[int, ...], computation: Computation) -> bool:
        """Return whether weights of this shape have a row and a column for every token; if not, leave them out."""
        n_batch, n_rows = self._run.batch.real.shape
        n_keys = self._run.batch.real_keys.shape[1]
        if (shape[0], *shape[2:]) != (n_batch, n_rows, n_keys):
            self._run.leave_out(
                "has no weights of all tokens on all tokens: a softmax that it multiplies by values has the shape "
                f"{tuple(shape)}"
            )
            return False
        if place_of(computation.keys) is None:
            # As many keys as tokens may be something else, such as the places that Linformer projects its keys to.
            self._run.leave_out(
                f"has weights of the shape {tuple(shape)}, whose columns cannot be followed to the tokens: run it "
                "yourself inside `with attnviz.watch(model):`, which does not name them"
            )
            return False
        return True


@final
class Watched:
    """A context manager that watches a module, and then holds the attention of its last run; see `watch`.

    Raises ModelError: `module` is no torch module, or the block is already open.
    """

    def __init__(self, module: nn.Module, *, axes: str | Mapping[str, str] | None = None) -> None:
        if not hasattr(module, "named_modules"):
            raise ModelError(f"watch takes a torch.nn.Module, not {type(module).__name__}")
        # The axes of weights by the path of the module that computes them; "" stands for the whole module.
        self._axes = dict(axes) if isinstance(axes, Mapping) else {"": axes} if axes else {}
        _check_axes(self._axes, module)
        self._layers: list[tuple[SeenLayer, _Beginning]] = []
        # Weights whose axes are not clear: the path of their module, and their shape.
        self._unclear: list[str] = []
        # What was multiplied by values as weights are, but is none: the path of the module, and why.
        self._no_weights: list[str] = []
        self._module, self._tracer = module, AttentionTracer(self)
        self._calls = ModuleCalls(module, self._begin)
        self._open: ExitStack | None = None

    def __enter__(self) -> Watched:
        if self._open is not None:
            raise ModelError("this block is open already: call attnviz.watch again for another one")
        with ExitStack() as stack:
            stack.enter_context(self._calls.followed())
            stack.enter_context(trace_attention(self._tracer))
            self._open = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        stack, self._open = self._open, None
        self._tracer.forget()
        if stack is not None:
            stack.close()

    def attention(
        self,
        tokens: Sequence[str | Token] | None = None,
        key_tokens: Sequence[str | Token] | None = None,
        *,
        kind: Kind | None = None,
        layers: Sequence[int] | None = None,
        index: int = 0,
    ) -> Attention:
        """Return the record of one input of the last run.

        Args:
            tokens: a label for each query; further queries are padding and are left out: those before the labelled ones
                if padding is masked on the left, else those after them. None numbers the queries.
            key_tokens: a label for each key; None if they are the queries' labels.
            kind: the kind of attention, if the module has several.
            layers: indices in the list `Watched.layers`, counted from 0; None takes all layers of the kind.
            index: the index of the input in the batch.

        Returns:
            The record: `weights` of shape (layer, head, query, key), float32; its layers are numbered as in `layers`.

        Raises:
            NoAttentionError: no attention was seen.
            NotVerifiedError: the weights of a layer are not what the module computed.
            SelectionError: there are several kinds or shapes, or no such layer or input.
            RecordError: the tokens do not fit the weights.
            InputError: the weights take more memory than is kept.
            SettingsError: an argument of another type.
        """
        all_layers = self.layers
        chosen = self._chosen(all_layers, kind, layers)
        layers_shown = {number: all_layers[number] for number in chosen}
        first = all_layers[chosen[0]]
        n_inputs = first.shape[0]
        if len({layer.shape for layer in layers_shown.values()}) > 1:
            raise SelectionError(f"the layers have different shapes: choose layers= from\n{self}")
        if not -n_inputs <= index < n_inputs:
            raise SelectionError(
                f"there is no input {index}: the batch had {n_inputs} (counted from 0)"
            )
        _, _, n_queries, n_keys = first.shape_of(index % n_inputs)
        queries = keys = _tokens(tokens, n_queries, "queries")
        if key_tokens is not None or n_queries != n_keys:
            if key_tokens is None and tokens is not None and first.kind != "cross":
                raise RecordError(
                    f"there are {n_queries} queries and {n_keys} keys: name the keys too (key_tokens)"
                )
            keys = _tokens(key_tokens, n_keys, "keys")
        weights, receipt = _verified_weights(layers_shown, index % n_inputs)
        weights = _without_padding(weights, len(queries), len(keys))
        sums = weights.sum(axis=-1)
        n_masked = int((sums == 0).sum())
        numbers = _numbers(all_layers, chosen)
        return Attention(
            weights=weights,
            query_tokens=queries,
            key_tokens=keys,
            kind=first.kind,
            layers=numbers,
            model=type(self._module).__name__,
            receipt=replace(receipt, layers=numbers),
            text="" if tokens is None else " ".join(token.text for token in queries),
            short_rows=_short_rows(layers_shown.values(), n_masked),
            notes=_notes(layers_shown.values(), sums, len(self._unclear)),
        )

    def __str__(self) -> str:
        lines = [
            f"{number}: {layer.path or type(self._module).__name__}, {layer.kind}, {count(layer.shape[1], 'head')}, "
            f"{count(layer.shape[2], 'query', 'queries')} x {count(layer.shape[3], 'key')}"
            for number, layer in enumerate(self.layers)
        ]
        lines += [
            f"left out, because its axes are not clear: {weights}" for weights in self._unclear
        ]
        return "\n".join(lines)

    @property
    def axes(self) -> str | None:
        """The names that the user gives to the axes of weights in the module that is running, or None."""
        path = self._calls.running.path
        # Of several modules that contain the running one, the innermost counts.
        for outer in sorted(self._axes, key=len, reverse=True):
            if path is not None and (not outer or f"{path}.".startswith(f"{outer}.")):
                return self._axes[outer]
        return None

    @property
    def layers(self) -> list[SeenLayer]:
        """The layers of the last run, in the order in which they ran."""
        return [layer for layer, _ in self._layers]

    def record_weights(
        self, weights: Float[Tensor, "batch head query key"], computation: Computation
    ) -> None:
        """Keep weights that the module computed itself, as long as all of them stay within `KEEP_AT_MOST`."""
        held = [part.held for layer in self.layers for part in layer.parts]
        size = weights.nbytes + sum(part.nbytes for part in held if isinstance(part, Tensor))
        kept_weights = None
        if size <= KEEP_AT_MOST:
            # The softmax of a row that may attend to no key is not a number; the fused function leaves such rows empty.
            sees_nothing = weights.isnan().all(dim=-1, keepdim=True)
            kept_weights = weights.masked_fill(sees_nothing, 0.0)
        self._keep(weights.shape, kept_weights, computation)

    def record_call(self, layer: Layer, computation: Computation) -> None:
        """Keep the inputs and the output of the fused function, from which the weights can be computed later.

        If the module overwrites the inputs afterwards, the weights no longer match the output and are refused.
        """
        kept_layer = replace(layer, output=layer.output.clone())
        shape = (*layer.query.shape[:3], layer.key.shape[2])
        self._keep(shape, kept_layer, computation)

    def record_unclear(self, shape: Sequence[int]) -> None:
        """Remember that there are weights whose axes are not clear."""
        if (path := self._calls.running.path) is not None:
            self._unclear.append(f"{path or type(self._module).__name__} {tuple(shape)}")

    def record_no_weights(self, numbers: Tensor) -> None:
        """Remember numbers that are multiplied by values as weights are, and are none."""
        if (path := self._calls.running.path) is not None:
            name = path or type(self._module).__name__
            self._no_weights.append(f"{name} {_what_is_no_weight(numbers)}")

    def _keep(
        self, shape: Sequence[int], held: Layer | Tensor | None, computation: Computation
    ) -> None:
        """Add a computation of the module that is running, unless that module is outside the watched one."""
        running = self._calls.running
        if running.path is None:
            return
        cross = shape[2] != shape[3] if computation.cross is None else computation.cross
        first, end = computation.inputs or (0, 0)
        part = Part(
            held=held,
            shape=tuple(shape),
            first=first if end - first == shape[0] else 0,
            first_query=computation.first_query,
            dropped=computation.dropped,
            normalised=computation.normalised,
        )
        # The values are only needed to recognise heads in a loop.
        values = computation.values if shape[1] == 1 else None
        now = _Beginning(running, computation.keys, values)
        for layer, begun in self._layers:
            if _continues(layer, begun, part, now, cross=cross):
                layer.add(part, running.path)
                return
        layer = SeenLayer(path=running.path, cross=cross, parts=[part])
        self._layers.append((layer, now))

    def _chosen(
        self, seen: Sequence[SeenLayer], kind: Kind | None, layers: Sequence[int] | None
    ) -> tuple[int, ...]:
        """Return the indices of the chosen layers or, if `layers` is None, of all layers of the kind.

        Raises NoAttentionError: no attention was seen; SelectionError: no such layer or kind, or several kinds.
        """
        name = type(self._module).__name__
        if not seen and self._unclear:
            raise NoAttentionError(
                f"it is not clear what the axes of the weights in {name} are: {', '.join(self._unclear)}; name them, "
                "as in attnviz.watch(module, axes='(batch head) query key')"
            )
        if not seen and self._no_weights:
            raise NoAttentionError(f"no attention was seen in {name}: {self._no_weights[0]}")
        if not seen:
            raise NoAttentionError(
                f"no attention was seen in {name}: run it inside `with attnviz.watch(module):`, in the same thread; "
                "seen are scaled_dot_product_attention, flex_attention, torch's own layers, and a softmax that is "
                "multiplied by values"
            )
        if layers is not None:
            return tuple(indices_of(layers, range(len(seen)), "layer"))
        kinds = list(dict.fromkeys(layer.kind for layer in seen))
        if kind is None and len(kinds) > 1:
            raise SelectionError(
                f"this module has {', '.join(kinds)} attention: choose kind={kinds[-1]!r} or another"
            )
        numbers = tuple(
            number for number, layer in enumerate(seen) if layer.kind == (kind or kinds[0])
        )
        if not numbers:
            raise SelectionError(f"this module has no {kind} attention: it has {', '.join(kinds)}")
        return numbers

    def _begin(self, *inputs: Any) -> None:
        """Discard the last run, because another one starts with these inputs."""
        self._layers, self._unclear, self._no_weights = [], [], []
        self._tracer.forget()
        self._tracer.begin(*inputs)


@contextmanager
def trace_model(module: nn.Module, run: ForwardPass, name: str, *inputs: Any) -> Iterator[None]:
    """Pass the attention of a module with these inputs to a run until the block ends; `name` is for its messages."""
    calls = ModuleCalls(module)
    tracer = AttentionTracer(FunctionalRecorder(run, name, calls))
    with calls.followed(), trace_attention(tracer, *inputs):
        yield


def watch(module: nn.Module, *, axes: str | Mapping[str, str] | None = None) -> Watched:
    """Watch a torch module and keep the attention of its last run inside the block.

    ::

        with attnviz.watch(model) as seen:
            model(x)
        record = seen.attention(tokens=["I", "love", "you"])

    The module's results do not change, and it is left unchanged. The block captures calls of
    `scaled_dot_product_attention` and `flex_attention`, torch's own layers, and softmax results that are multiplied by
    values, in the thread that opened it.

    Args:
        module: any module. Compiled parts run uncompiled inside the block.
        axes: the axes of the weights before they are multiplied by values, such as "(batch head) query key" where the
            heads of all sentences are folded into one axis. A dictionary gives them by the path of the submodule that
            computes them, such as {"encoder.attention": "query key"}. None lets attnviz follow them from the module's
            inputs.

    Raises:
        ModelError: `module` is no torch module.
        SettingsError: `axes` does not name axes of weights, names no submodule, or does not fit the weights that are
            computed.
    """
    return Watched(module, axes=axes)


def _check_axes(axes: Mapping[str, str], module: nn.Module) -> None:
    """Raise SettingsError unless all are axes of weights, and their keys are paths of submodules."""
    paths = {path for path, _ in module.named_modules()}
    for path, names in axes.items():
        parse_axes(names)
        if path not in paths:
            raise SettingsError(
                f"{type(module).__name__} has no submodule {path!r}: print(module) lists their names",
                "axes",
            )


def _short_rows(layers: Iterable[SeenLayer], n_masked: int) -> tuple[ShortRows, ...]:
    """Return why rows of a record may not sum to 1; `n_masked` of them see no key."""
    is_softmax = all(part.normalised for layer in layers for part in layer.parts)
    reasons: dict[ShortRows, bool] = {"masked": n_masked > 0, "unnormalised": not is_softmax}
    return tuple(reason for reason, holds in reasons.items() if holds)


def _notes(
    layers: Iterable[SeenLayer], sums: Float32[np.ndarray, "layer head row"], n_unclear: int
) -> tuple[Note, ...]:
    """Return the notes of a record with these sums of rows; `n_unclear` layers of the run are left out."""
    parts = [part for layer in layers for part in layer.parts]
    notes = []
    if any(part.dropped for part in parts):
        notes.append(Note("dropout"))
    if n_masked := int((sums == 0).sum()):
        notes.append(Note.of("rows_masked", n=n_masked))
    if not all(part.normalised for part in parts):
        notes.append(Note.of("no_softmax", least=f"{sums.min():.3g}", most=f"{sums.max():.3g}"))
    if n_unclear:
        notes.append(Note.of("layers_unclear", n=n_unclear))
    return tuple(notes)


def _what_is_no_weight(numbers: Tensor) -> str:
    """Return why numbers that are multiplied by values are no weights, as the end of a sentence about a module."""
    least, most = float(numbers.min()), float(numbers.max())
    reason = "some are negative" if least < 0 else "some are above 1"
    return (
        f"multiplies its values by {tuple(numbers.shape)} numbers from {least:.3g} to {most:.3g}, which are no "
        f"weights: {reason}"
    )


def _numbers(seen: Sequence[SeenLayer], chosen: Sequence[int]) -> tuple[int, ...]:
    """Return the numbers of the chosen layers: the model's own, or their places among the layers of their kind."""
    numbers = [_number(seen[index].path) for index in chosen]
    own = [number for number in numbers if number is not None]
    if len({*own}) == len(chosen):
        return tuple(own)
    places = [
        [index for index, layer in enumerate(seen) if layer.kind == seen[chosen[0]].kind].index(i)
        if seen[i].kind == seen[chosen[0]].kind
        else i
        for i in chosen
    ]
    return tuple(places) if len({*places}) == len(places) else tuple(chosen)


def _verified_weights(
    layers: Mapping[int, SeenLayer], index: int
) -> tuple[Float32[np.ndarray, "layer head query key"], Receipt]:
    """Return the weights of input `index` of the batch in layers of one shape, and their receipt.

    Raises NotVerifiedError: the weights of a layer are not what the module computed; InputError: they take more memory
    than is kept.
    """
    _check_memory(list(layers.values()))
    found = {number: layer.verified(index, number) for number, layer in layers.items()}
    weights = [part for part, _ in found.values()]
    if len({part.shape for part in weights}) > 1:
        raise SelectionError(f"input {index} has other steps in each layer: choose one of layers=")
    receipts = [receipt for _, of_layer in found.values() for receipt in of_layer]
    receipt = replace(
        max(receipts, key=lambda receipt: receipt.tolerance),
        native=" and ".join(sorted({receipt.native for receipt in receipts})),
        layers=tuple(found),
        differences=tuple(
            max(difference for receipt in of_layer for difference in receipt.differences)
            for _, of_layer in found.values()
        ),
        proves="weights" if all(r.proves == "weights" for r in receipts) else "output",
        rows=min((r.rows for r in receipts if r.rows is not None), default=None),
    )
    return np.stack(weights), receipt


def _without_padding(
    weights: Float32[np.ndarray, "layer head query key"], n_queries: int, n_keys: int
) -> Float32[np.ndarray, "layer head row column"]:
    """Return the weights of so many queries and keys, without the others, which are padding on the left or right.

    It is on the left if all of the last queries attend, and none of them to the first keys.
    """
    n_more_queries, n_more_keys = weights.shape[2] - n_queries, weights.shape[3] - n_keys
    last = weights[:, :, n_more_queries:]
    is_left = last.any(axis=-1).all() and not last[..., :n_more_keys].any()
    first_key = n_more_keys if is_left else 0
    # In cross-attention, the padding of the keys says nothing about the queries.
    first_query = n_more_queries if is_left and n_more_queries == n_more_keys else 0
    return weights[:, :, first_query : first_query + n_queries, first_key : first_key + n_keys]


def _check_memory(layers: Sequence[SeenLayer]) -> None:
    """Raise InputError if the weights of these layers take more memory than is kept."""
    size = 4 * len(layers) * math.prod(layers[0].shape[1:])
    parts = [part for layer in layers for part in layer.parts]
    if size > KEEP_AT_MOST or any(part.held is None for part in parts):
        raise InputError(
            f"the weights of {len(layers)} layers take {size / 2**30:.1f} GiB an input, more than attnviz "
            f"keeps ({KEEP_AT_MOST / 2**30:.0f} GiB for all of a run): choose fewer layers=, or give the module less"
        )


def _tokens(tokens: Sequence[str | Token] | None, n: int, axis: str) -> tuple[Token, ...]:
    """Return labels as tokens; if there are none, the numbers of all `n` queries or keys (`axis`, for the message)."""
    labels = [str(number) for number in range(n)] if tokens is None else list(tokens)
    if not 0 < len(labels) <= n:
        raise RecordError(f"there are {len(labels)} tokens for {n} {axis}")
    return tuple(
        Token(text=label, piece=label) if isinstance(label, str) else label for label in labels
    )
