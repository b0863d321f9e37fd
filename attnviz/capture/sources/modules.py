"""The attention of any torch module, captured while the caller's own code runs the module."""

from __future__ import annotations

import inspect
import math
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
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

from attnviz.attention import SOFTMAX, Attention, Kind, Note, Receipt, Token, count, indices_of
from attnviz.capture.observers import CPU, Batch, Block, Observer, WeightCollector
from attnviz.capture.sources.axes import parse_axes, tensors_in
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
    Scoring,
    for_each_head,
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
class SeenLayer:
    """A layer of attention; its weights are computed and verified when they are requested."""

    # The module that computed it, such as ``decoder.layers.0.self_attn``; empty for the watched module.
    path: str
    shape: tuple[int, ...]  # batch, head, query, key
    cross: bool  # whether queries and keys come from different sequences
    dropped: bool  # whether dropout then set some of the weights to 0
    # The inputs and the output of the fused function, or the weights themselves; None if these are too large.
    held: Layer | Float[Tensor, "batch head query key"] | None

    @property
    def kind(self) -> Kind:
        """The kind of attention; "decoder" (causal) if no query of the first input sees a later key."""
        n_queries, n_keys = self.shape[2:]
        held = self.held
        if self.cross:
            return "cross"
        # A model with a cache reads the last tokens of a text, and sees all keys before them.
        n_before = n_keys - n_queries
        if isinstance(held, Layer) and held.scoring.mask is None and n_before == 0:
            return "decoder" if held.scoring.causal else "encoder"
        if held is None or (n_queries == 1 and n_before == 0):
            return "encoder"
        if isinstance(held, Layer):
            visible = visible_keys(held.scoring, 0, n_queries, n_keys, held.query.device)
            is_visible = visible[:1].expand(-1, -1, n_queries, -1)
        else:
            is_visible = held[:1] > 0
            # Queries that are padding on the left of a causal model may attend equally to all keys, even to later ones.
            is_uneven = held[:1].amax(dim=-1) > held[:1].amin(dim=-1)
            if is_uneven.any():
                is_visible &= is_uneven[..., None]
        return "encoder" if is_visible.triu(1 + n_before).any() else "decoder"

    def show(self, run: ForwardPass, index: int, number: int) -> None:
        """Pass the weights of input `index` of the batch to a run, as layer `number`.

        Raises NotVerifiedError: the weights are not the module's own.
        """
        held, part = self.held, slice(index, index + 1)
        assert held is not None  # `_check_memory` refuses a layer whose weights were not kept
        if isinstance(held, Tensor):
            run.add_weights(held[part], number)
            return
        query, key, value = held.query[part], held.key[part], held.value[part]
        output = held.output[part]
        scoring, mask = held.scoring, held.scoring.mask
        if isinstance(mask, Tensor) and mask.ndim == AXES and len(mask) > 1:
            scoring = replace(scoring, mask=mask[part])
        # With dropout, the output lacks some of the weights: compute it again without dropout.
        if self.dropped:
            arguments: dict[str, Any] = {"attn_mask": scoring.mask, "is_causal": scoring.causal}
            arguments |= {"scale": scoring.scaling, **grouped_queries(query, key)}
            output = FUSED(query, key, value, **arguments).transpose(1, 2)
        run.add_layer(
            Layer(
                query=query,
                key=key,
                value=value,
                output=output,
                scoring=scoring,
                number=number,
                attend=partial(attend_fused, query, key, scoring.scaling),
            )
        )


@dataclass(frozen=True, slots=True)
class _Call:
    """One computation of attention during a run."""

    layer: SeenLayer
    invocation: int  # the number of the call of the module that computed it
    read: Tensor | None  # the first input of that module
    # The axis of an input of the watched module that the keys run over; None if it is unknown.
    keys: tuple[int, int] | None


def _is_same_layer(first: _Call, call: _Call) -> bool:
    """Return whether a call continues the layer that begins with `first`.

    A layer is what the model numbers as a layer: its path ends with a number, as in ``layers.1.self_attn``.
    """
    before, now = first.layer, call.layer
    if (before.shape, before.cross, before.dropped) != (now.shape, now.cross, now.dropped):
        return False
    if before.path == now.path:
        # A decoder attends once per step, always to the same sequence.
        if now.cross and now.shape[2] == 1:
            return first.keys is not None and first.keys == call.keys
        # A layer may compute several patterns, as in DiffLlama and LiLT.
        return first.invocation == call.invocation and _number(now.path) is not None
    # Heads may be modules of their own, side by side on the same input.
    is_beside = _siblings(before.path) == _siblings(now.path) and _number(now.path) is not None
    return is_beside and now.shape[1] == 1 and first.read is not None and first.read is call.read


def _layers_of(calls: Sequence[_Call]) -> list[SeenLayer]:
    """Return the layers of a run; several calls may make one layer, as heads or as steps of a decoder."""
    groups: list[list[_Call]] = []
    for call in calls:
        group = next((group for group in groups if _is_same_layer(group[0], call)), None)
        if group is None:
            groups.append([call])
        else:
            group.append(call)
    return [layer for group in groups for layer in _join([call.layer for call in group])]


def _join(parts: list[SeenLayer]) -> list[SeenLayer]:
    """Return one layer of these parts, or the parts themselves if they cannot be joined."""
    first = parts[0]
    if len(parts) == 1:
        return parts
    held = [part.held for part in parts]
    is_one_module = first.path == parts[1].path
    is_step = is_one_module and first.cross and first.shape[2] == 1
    path = first.path if is_one_module else _siblings(first.path)[0].rstrip(".")
    joined: Layer | Tensor | None = None
    if all(isinstance(part, Tensor) for part in held):
        weights = [part for part in held if isinstance(part, Tensor)]
        if is_one_module and all(torch.equal(part, weights[0]) for part in weights):
            joined = weights[0]  # the same weights, for several sets of values
        else:
            joined = torch.cat(weights, dim=2 if is_step else 1)
        shape = tuple(joined.shape)
    elif all(isinstance(part, Layer) for part in held):
        calls = [part for part in held if isinstance(part, Layer)]
        joined = _join_calls(calls, is_one_module=is_one_module, is_step=is_step)
        if joined is not None:
            shape = (*joined.query.shape[:3], joined.key.shape[2])
    if joined is None:  # the weights are too large to be kept, or the calls do not fit
        return parts
    return [replace(first, path=path, shape=shape, held=joined)]


def _join_calls(calls: Sequence[Layer], *, is_one_module: bool, is_step: bool) -> Layer | None:
    """Return calls of the fused function as one, with the queries or the heads of all; None if they do not fit."""
    first = calls[0]
    if not all(_is_alike(call, first) for call in calls):
        return None
    if is_step:
        return _join_steps(calls)
    has_same_weights = is_one_module and all(
        torch.equal(call.query, first.query)
        and torch.equal(call.key, first.key)
        and _has_same_mask(call, first)
        for call in calls
    )
    if has_same_weights:
        # Several sets of values, as in DiffLlama: their vectors stand side by side.
        return replace(
            first,
            value=torch.cat([call.value for call in calls], dim=-1),
            output=torch.cat([call.output for call in calls], dim=-1),
        )
    return _join_heads(calls)


def _join_steps(calls: Sequence[Layer]) -> Layer | None:
    """Return one call with the queries of all calls; None if they have other keys, or masks that do not fit."""
    first = calls[0]
    is_same = all(
        torch.equal(call.key, first.key) and torch.equal(call.value, first.value) for call in calls
    )
    # The fused function aligns a causal mask with the first query, so a single query sees the first key only.
    if first.scoring.causal or not is_same:
        return None
    return replace(
        first,
        query=torch.cat([call.query for call in calls], dim=2),
        output=torch.cat([call.output for call in calls], dim=1),
        scoring=_join_masks(calls, dim=2),
    )


def _join_heads(calls: Sequence[Layer]) -> Layer:
    """Return one call with the heads of all calls."""
    n_heads = calls[0].query.shape[1]
    return replace(
        calls[0],
        query=torch.cat([call.query for call in calls], dim=1),
        key=torch.cat([for_each_head(call.key, n_heads) for call in calls], dim=1),
        value=torch.cat([for_each_head(call.value, n_heads) for call in calls], dim=1),
        output=torch.cat([call.output for call in calls], dim=2),
        scoring=_join_masks(calls, dim=1),
    )


def _join_masks(calls: Sequence[Layer], dim: int) -> Scoring:
    """Return the scoring of several calls as one call: their masks side by side as heads (1) or queries (2)."""
    masks = [mask for mask in map(_mask_of, calls) if mask is not None]
    if all(_has_same_mask(call, calls[0]) for call in calls):
        return calls[0].scoring
    shape = calls[0].query.shape[:3]
    expanded = [mask.expand(-1, *shape[1:], -1) for mask in masks]
    return replace(calls[0].scoring, mask=torch.cat(expanded, dim=dim))


def _has_same_mask(call: Layer, other: Layer) -> bool:
    """Return whether two calls have equal masks, or none."""
    mask, other_mask = call.scoring.mask, other.scoring.mask
    if isinstance(mask, Tensor) and isinstance(other_mask, Tensor):
        return torch.equal(mask, other_mask)
    return mask is other_mask


def _mask_of(call: Layer) -> Tensor | None:
    """Return the mask of a call of the fused function, [batch or 1, head or 1, query or 1, key]."""
    mask = call.scoring.mask
    if not isinstance(mask, Tensor):
        return None
    return mask.reshape((1,) * (AXES - mask.ndim) + mask.shape)


def _is_alike(call: Layer, other: Layer) -> bool:
    """Return whether two calls have the same scoring but for their masks, and tensors of the same shapes."""
    masks = [_mask_of(layer) for layer in (call, other)]
    kinds = [None if mask is None else (mask.dtype, len(mask)) for mask in masks]
    return (
        kinds[0] == kinds[1]
        and call.scoring.causal == other.scoring.causal
        and call.scoring.scaling == other.scoring.scaling
        and call.query.shape == other.query.shape
        and call.value.shape == other.value.shape
    )


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

    def __init__(self, run: ForwardPass, name: str) -> None:
        self._run, self._name = run, name

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
        n_extra_keys = computation.n_extra_keys
        weights = weights[..., : weights.shape[-1] - n_extra_keys]
        if not self._covers_tokens(tuple(weights.shape), computation):
            return
        self._run.has_sinks |= n_extra_keys > 0
        self._run.add_weights(weights)

    def record_unclear(self, shape: Sequence[int]) -> None:
        """Leave out weights whose axes are not clear."""
        self._run.leave_out(
            f"has weights of the shape {tuple(shape)}, of which it is not clear what the axes are: run it yourself "
            "inside `with attnviz.watch(model, axes=...):`"
        )

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
        if computation.keys is None:
            # As many keys as tokens may be something else, such as the places that Linformer projects its keys to.
            self._run.leave_out(
                f"has weights of the shape {tuple(shape)}, whose columns cannot be followed to the tokens: run it "
                "yourself inside `with attnviz.watch(model):`, which does not name them"
            )
            return False
        return True


@dataclass(frozen=True, slots=True)
class _Running:
    """A module that is running."""

    path: str | None  # None for a module outside the watched one
    invocation: int
    read: Tensor | None  # its first input


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
        self._calls: list[_Call] = []
        # Weights whose axes are not clear: the path of their module, and their shape.
        self._unclear: list[str] = []
        self._module, self._tracer = module, AttentionTracer(self)
        self._open: ExitStack | None = None
        self._paths = dict[nn.Module, str]()  # the path of each submodule
        # The modules that are running, outermost first.
        self._running: list[_Running] = []
        self._n_invocations = 0
        self._thread = 0  # the thread in which the block was opened

    def __enter__(self) -> Watched:
        if self._open is not None:
            raise ModelError("this block is open already: call attnviz.watch again for another one")
        with ExitStack() as stack:
            # Global hooks show which module computes attention. Unlike hooks on the module itself, they leave nothing
            # behind in copies of the module.
            self._thread = get_ident()
            self._paths = {module: path for path, module in self._module.named_modules()}
            stack.callback(register_module_forward_pre_hook(self._begin).remove)
            stack.callback(register_module_forward_hook(self._end, always_call=True).remove)
            stack.enter_context(_silence_compile_warning())
            stack.enter_context(trace_attention(self._tracer))
            self._open = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        stack, self._open = self._open, None
        self._running = []
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
        n_inputs, _, n_queries, n_keys = first.shape
        if len({layer.shape for layer in layers_shown.values()}) > 1:
            raise SelectionError(f"the layers have different shapes: choose layers= from\n{self}")
        if not -n_inputs <= index < n_inputs:
            raise SelectionError(
                f"there is no input {index}: the batch had {n_inputs} (counted from 0)"
            )
        queries = keys = _tokens(tokens, n_queries, "queries")
        if key_tokens is not None or n_queries != n_keys:
            if key_tokens is None and tokens is not None and first.kind != "cross":
                raise RecordError(
                    f"there are {n_queries} queries and {n_keys} keys: name the keys too (key_tokens)"
                )
            keys = _tokens(key_tokens, n_keys, "keys")
        weights, receipt = _verified_weights(layers_shown, index % n_inputs)
        weights = _without_padding(weights, len(queries), len(keys))
        n_masked = int((weights.sum(axis=-1) == 0).sum())
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
            short_rows=("masked",) if n_masked else (),
            notes=_notes(layers_shown.values(), n_masked, len(self._unclear)),
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
        path = self._running[-1].path if self._running else ""
        # Of several modules that contain the running one, the innermost counts.
        for outer in sorted(self._axes, key=len, reverse=True):
            if path is not None and (not outer or f"{path}.".startswith(f"{outer}.")):
                return self._axes[outer]
        return None

    @property
    def layers(self) -> list[SeenLayer]:
        """The layers of the last run, in the order in which they ran."""
        return _layers_of(self._calls)

    def record_weights(
        self, weights: Float[Tensor, "batch head query key"], computation: Computation
    ) -> None:
        """Keep weights that the module computed itself, as long as all of them stay within `KEEP_AT_MOST`."""
        size = weights.nbytes + sum(
            call.layer.held.nbytes for call in self._calls if isinstance(call.layer.held, Tensor)
        )
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
        path = self._running[-1].path if self._running else ""
        if path is not None:
            self._unclear.append(f"{path or type(self._module).__name__} {tuple(shape)}")

    def _keep(
        self, shape: Sequence[int], held: Layer | Tensor | None, computation: Computation
    ) -> None:
        """Add a call of the module that is running, unless that module is outside the watched one."""
        running = self._running[-1] if self._running else _Running("", 0, None)
        if running.path is None:
            return
        is_cross = shape[2] != shape[3] if computation.cross is None else computation.cross
        layer = SeenLayer(
            path=running.path,
            shape=tuple(shape),
            cross=is_cross,
            dropped=computation.dropped,
            held=held,
        )
        # The input of a module is only needed to recognise heads that are modules of their own.
        read = running.read if shape[1] == 1 else None
        self._calls.append(_Call(layer, running.invocation, read, computation.keys))

    def _chosen(
        self, seen: Sequence[SeenLayer], kind: Kind | None, layers: Sequence[int] | None
    ) -> tuple[int, ...]:
        """Return the indices of the chosen layers or, if `layers` is None, of all layers of the kind.

        Raises NoAttentionError: no attention was seen; SelectionError: no such layer or kind, or several kinds.
        """
        name = type(self._module).__name__
        if not self._calls and self._unclear:
            raise NoAttentionError(
                f"it is not clear what the axes of the weights in {name} are: {', '.join(self._unclear)}; name them, "
                "as in attnviz.watch(module, axes='(batch head) query key')"
            )
        if not self._calls:
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

    def _begin(self, module: nn.Module, inputs: Any) -> None:
        """Remember the path of a module that starts; a new run of the watched module discards the last one."""
        if get_ident() != self._thread:
            return
        # Activation checkpointing runs modules again during the backward pass, which is not a new run.
        is_backward = torch._C._current_graph_task_id() >= 0
        is_inside = any(running.path is not None for running in self._running)
        # A hook on all modules does not receive the arguments that are passed by name: they are in its caller.
        frame = inspect.currentframe()
        caller = None if frame is None else frame.f_back
        named = {} if caller is None else caller.f_locals.get("kwargs", {})
        if module is self._module and not is_backward and not is_inside:
            self._calls, self._unclear, self._n_invocations = [], [], 0
            self._tracer.forget()
            self._tracer.begin(inputs, named)
        # A module that the watched one does not list, such as one made during the run, counts as its caller.
        outside = self._running[-1].path if self._running else None
        self._n_invocations += 1
        read = next(tensors_in([inputs, named]), None)
        self._running.append(_Running(self._paths.get(module, outside), self._n_invocations, read))

    def _end(self, _module: nn.Module, _inputs: Any, _output: Any) -> None:
        """Forget the path of a module that ends."""
        if get_ident() == self._thread:
            del self._running[-1:]


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


def _notes(layers: Iterable[SeenLayer], n_masked: int, n_unclear: int) -> tuple[Note, ...]:
    """Return the notes of a record: `n_masked` of its rows see no key, `n_unclear` layers of the run are left out."""
    notes = []
    if any(layer.dropped for layer in layers):
        notes.append(Note("dropout"))
    if n_masked:
        notes.append(Note.of("rows_masked", n=n_masked))
    if n_unclear:
        notes.append(Note.of("layers_unclear", n=n_unclear))
    return tuple(notes)


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
    n_queries, n_keys = next(iter(layers.values())).shape[2:]
    real, real_keys = (torch.ones(1, n, dtype=torch.bool, device=CPU) for n in (n_queries, n_keys))
    batch = Batch(sentences=(), inputs={}, real=real, real_keys=real_keys)
    natives = {"sdpa" if isinstance(layer.held, Layer) else SOFTMAX for layer in layers.values()}
    collector = WeightCollector()
    run = ForwardPass(batch=batch, observers=[collector], native=" and ".join(sorted(natives)))
    for number, layer in layers.items():
        layer.show(run, index, number)
    return collector.weights(0), run.receipt("")


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
    if size > KEEP_AT_MOST or any(layer.held is None for layer in layers):
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
