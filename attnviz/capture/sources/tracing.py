"""Trace the attention that a module computes, whatever way its code is written.

Recognised are calls of `torch.nn.functional.scaled_dot_product_attention`, `flex_attention`, torch's
`MultiheadAttention`, and weights that are normalised along a sequence, by a softmax or by dividing through their sum,
and then multiplied by values.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from threading import get_ident
from typing import Any, Protocol, cast

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from attnviz.attention import BFLOAT16_TOLERANCE, ROW_TOLERANCE
from attnviz.capture.sources.arrangement import (
    NAMES,
    Arrangement,
    arrangement_of,
    parse_arrangement,
    parse_axes,
)
from attnviz.capture.sources.axes import (
    VIEWS,
    Axis,
    AxisTracker,
    Layout,
    Product,
    are_one_sequence,
    axes_of,
    by_tensor,
    distance,
    is_of_tokens,
    len_of,
    name_of,
    tensors_in,
)
from attnviz.capture.sources.locks import fork_safe_lock
from attnviz.capture.stream import Layer, Scoring
from attnviz.releases import grouped_queries, is_mapped, without_compiler, without_fast_path

FUSED = functional.scaled_dot_product_attention
FUSED_PARAMETERS = (
    "query",
    "key",
    "value",
    "attn_mask",
    "dropout_p",
    "is_causal",
    "scale",
    "enable_gqa",
)
# The operator that torch.nn.attention.flex_attention calls (from torch 2.5), and the module of that function.
FLEX: Any = getattr(torch.ops.higher_order, "flex_attention", None)
FLEX_MODULE = "torch.nn.attention.flex_attention"
# Functions that change the format of numbers, or where they are stored.
CONVERT = frozenset({"to", "type", "type_as", "float", "double", "half", "bfloat16", "contiguous"})
MULTI_HEAD = functional.multi_head_attention_forward
MULTI_HEAD_SIGNATURE = inspect.signature(MULTI_HEAD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Computation:
    """A computation of attention, without its numbers."""

    cross: bool | None  # whether queries and keys come from different sequences; None if unknown
    keys: tuple[Axis, ...]  # the axes of sequences that the keys run over, as far as they are known
    # The place of the first query among the keys; None if it is unknown, or if they come from different sequences.
    first_query: int | None = None
    # The first and one-past-last input of the batch that it belongs to; None for all.
    inputs: tuple[int, int] | None = None
    values: Tensor | None = None  # what the weights were multiplied by
    dropped: bool = False  # whether dropout then set some weights to 0
    normalised: bool = True  # whether a softmax or the like made the rows sum to 1
    n_behind: int = 0  # the number of computations of attention whose results it depends on, one after the other
    # The number of last keys that are no token of a sequence: the bias of `nn.MultiheadAttention`, or its zeros.
    n_extra_keys: int = 0


class Recorder(Protocol):
    """Receives the attention that a tracer sees, in the order in which it is computed."""

    def record_call(self, layer: Layer, computation: Computation) -> None:
        """Receive a call of the fused function, whose output can verify the weights."""

    def record_weights(
        self, weights: Float[Tensor, "batch head query key"], computation: Computation
    ) -> None:
        """Receive weights that the module computed and used, as they were before dropout."""

    def record_unclear(self, shape: Sequence[int]) -> None:
        """Receive the shape of weights of which it is not clear what their axes are."""

    def record_no_weights(self, numbers: Tensor) -> None:
        """Receive numbers between tokens that are multiplied by values like weights, but some of which are none."""

    @property
    def axes(self) -> str | None:
        """The names of the axes of weights, as the user gives them; None if they are to be found."""


class AttentionTracer(TorchFunctionMode):
    """Traces each computation of attention in its thread while this mode is on; results do not change."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder
        self.forget()

    def forget(self) -> None:
        """Discard all that is known of tensors."""
        self._axes = AxisTracker()
        # The numbers that dropout received, by its result and views of it.
        self._before_dropout: MutableMapping[Tensor, Tensor] = by_tensor()
        # How many computations of attention lie behind a tensor, one after the other; of the arguments of the function
        # that is running too.
        self._behind: MutableMapping[Tensor, int] = by_tensor()
        self._n_behind = 0

    @property
    def has_inputs(self) -> bool:
        """Whether any input is followed."""
        return bool(self._axes.inputs)

    def begin(self, *inputs: Any) -> None:
        """Follow the axes of these inputs of the model."""
        self._axes.begin(*inputs)

    def __torch_function__(
        self,
        function: Callable[..., Any],
        _types: Any,
        args: Any = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call a function of torch, and inspect its arguments and its result."""
        keywords = kwargs or {}
        # Inside `torch.func.vmap`, numbers cannot be read.
        if is_mapped():
            return function(*args, **keywords)
        behind = (
            [self._behind.get(t, 0) for t in tensors_in([args, keywords])] if self._behind else []
        )
        self._n_behind = max(behind, default=0)
        output = self._call(function, args, keywords)
        if self._n_behind:
            for tensor in tensors_in([args[:1] if output is None else output]):
                self._behind[tensor] = self._n_behind
        return output

    def _call(
        self, function: Callable[..., Any], args: tuple[Any, ...], keywords: Mapping[str, Any]
    ) -> Any:
        """Call a function of torch, and pass on the attention that it computes."""
        if function is MULTI_HEAD:
            return self._multi_head(args, keywords)
        if function is FUSED:
            return self._fused(*args, **keywords)
        if function is FLEX:
            return self._flex(*args)
        name = name_of(function)
        before = None
        if name == "dropout" and (keywords.get("inplace") or args[3:] == (True,)):
            before = args[0].detach().clone()
        output = function(*args, **keywords)
        with torch._C.DisableTorchFunction():
            product = self._axes.follow(name, function, args, keywords, output)
            if product is not None:
                self._multiply(product)
            elif args and isinstance(args[0], Tensor) and isinstance(output, Tensor):
                given = args if before is None else (before, *args[1:])
                self._follow_dropout(name, function, given, keywords, output)
        return output

    def _follow_dropout(
        self,
        name: str,
        function: Callable[..., Any],
        args: Sequence[Any],
        keywords: Mapping[str, Any],
        output: Tensor,
    ) -> None:
        """Remember what dropout received, and arrange it as its result is arranged."""
        if name == "dropout" and not torch.equal(output, args[0]):
            self._before_dropout[output] = args[0]
        before = self._before_dropout.get(args[0])
        if before is not None and name in VIEWS | CONVERT:
            self._before_dropout[output] = function(before, *args[1:], **keywords)

    def _multiply(self, product: Product) -> None:
        """Record weights if a product sums over their keys.

        Weights are normalised along their keys. Other scores between tokens count too if they are between 0 and 1, as
        after a sigmoid or sparsemax.
        """
        for own in (0, 1):
            weights, values = product.operands[own], product.operands[1 - own]
            layout, roles = self._axes.layout(weights), product.roles[own]
            values_layout = self._axes.layout(values)
            keys = axes_of(layout, roles, "summed")
            is_scored = any(axis.is_of_scores and axis.is_sequence for axis in keys)
            others = axes_of(values_layout, product.roles[1 - own], "summed")
            shared = axes_of(layout, roles, "shared")
            is_normalised = any(axis.normalised for axis in keys)
            mixed = axes_of(values_layout, product.roles[1 - own], "free")
            if is_normalised and any(axis.normalised for axis in mixed):
                return  # weights times weights
            names = self._recorder.axes
            # The gate of a mixture of experts, and linear attention, are normalised over features or have features as
            # rows, and branches of a network are weighed channel by channel: none are tokens that attend to tokens. The
            # scores of a query may be outputs of a linear layer.
            if (names is None or len(parse_axes(names)) != weights.ndim) and (
                (_are_features(keys) and not any(map(is_of_tokens, others)))
                or (_are_features(axes_of(layout, roles, "free")) and not is_scored)
                or (any(a.has_features and a.size > 1 for a in shared) and _are_places(mixed))
            ):
                continue
            if is_normalised or (is_scored and are_one_sequence(keys, others)):
                self._record(weights, roles, values)
                return

    def _record(
        self, weights: Tensor, roles: Sequence[tuple[str, int | None]], values: Tensor
    ) -> None:
        """Pass weights on, as they were before dropout, as [batch, head, query, key]."""
        shown = self._before_dropout.get(weights, weights).detach()
        if not shown.numel():
            return
        least, most = shown.aminmax()
        if least < 0 or most > 1 + ROW_TOLERANCE:
            self._recorder.record_no_weights(shown)
            return
        layout = self._axes.layout(weights)
        arrangement = self._arrangement(layout, roles, self._axes.layout(values))
        if arrangement is None:
            self._recorder.record_unclear(weights.shape)
            return
        arranged = arrangement.apply(shown)
        sums = arranged.sum(dim=-1, dtype=torch.float32)
        # Rows that see no key are empty, or no numbers.
        is_whole = (sums - 1).abs() <= BFLOAT16_TOLERANCE
        computation = replace(
            self._computation(arrangement),
            values=values.detach(),
            dropped=weights in self._before_dropout,
            normalised=bool((is_whole | (sums == 0) | sums.isnan()).all()),
        )
        self._recorder.record_weights(arranged, computation)

    def _arrangement(
        self, layout: Layout, roles: Sequence[tuple[str, int | None]], values: Layout | None
    ) -> Arrangement | None:
        if self._recorder.axes is not None:
            shape = [len_of(axes) for axes in layout]
            return parse_arrangement(self._recorder.axes, shape, self._axes.n_batch())
        return arrangement_of(layout, roles, values, self._axes)

    def _computation(self, arrangement: Arrangement) -> Computation:
        """Return where the queries and keys of attention come from."""
        queries, keys = arrangement.queries, arrangement.keys
        are_one = are_one_sequence(queries, keys)
        if are_one is None and keys and not queries:
            # A model with a cache reads one new token at a time, and its keys are all tokens so far. Any other single
            # query comes from elsewhere.
            are_one = arrangement.size("query") == self._axes.n_tokens(keys)
        self._n_behind += 1
        return Computation(
            n_behind=self._n_behind - 1,
            cross=None if are_one is None else not are_one,
            keys=keys,
            inputs=arrangement.inputs,
            first_query=distance(keys, queries),
        )

    def _fused(
        self,
        *args: Any,
        known: Computation | None = None,
        call: Callable[..., Tensor] = FUSED,
        **keywords: Any,
    ) -> Tensor:
        """Call the fused function (`call`), pass its inputs and output on as a layer, and return the output.

        If the computation is `known`, the axes of the inputs are (batch, head, token, d).
        """
        arguments = dict(zip(FUSED_PARAMETERS, args, strict=False)) | keywords
        output = call(**arguments)
        with torch.no_grad(), torch._C.DisableTorchFunction():
            inputs = (arguments["query"], arguments["key"], arguments["value"])
            query, key, value = (tensor.detach() for tensor in inputs)
            native, mask = output.detach(), arguments.get("attn_mask")
            if mask is not None:
                mask = mask.detach()  # a learned bias has a gradient
            computation = known
            if computation is None:
                arrangement = self._arrangement_of_call(inputs, output)
                if arrangement is None:
                    self._recorder.record_unclear((*query.shape[:-1], key.shape[-2]))
                    return output
                computation = self._computation(arrangement)
                if arrangement.names != NAMES or query.ndim != len(NAMES):
                    if mask is not None:
                        mask = arrangement.apply(mask.expand(*query.shape[:-1], key.shape[-2]))
                    query = arrangement.apply_to_vectors(query, "query")
                    native = arrangement.apply_to_vectors(native, "query")
                    key, value = (_as_keys(tensor, arrangement) for tensor in (key, value))
            layer = Layer(
                query=query,
                key=key,
                value=value,
                output=native.transpose(1, 2),
                attend=partial(attend_fused, query, key, arguments.get("scale")),
                scoring=Scoring(
                    scaling=arguments.get("scale"),
                    mask=mask,
                    causal=arguments.get("is_causal", False),
                ),
            )
            dropped = bool(arguments.get("dropout_p"))
            computation = replace(computation, values=value, dropped=dropped)
            self._recorder.record_call(layer, computation)
        return output

    def _arrangement_of_call(
        self, inputs: tuple[Tensor, Tensor, Tensor], output: Tensor
    ) -> Arrangement | None:
        """Return the arrangement of the weights that the fused function computed; note the layout of its output."""
        query, key, _ = inputs
        for tensor in (query, key):
            self._axes.multiply_over(self._axes.layout(tensor)[-1])
        query_layout, key_layout, value_layout = map(self._axes.layout, inputs)
        self._axes.note(output, (*query_layout[:-1], value_layout[-1]))
        n_leading = query.ndim - 2
        roles: list[tuple[str, int | None]] = [("shared", dim) for dim in range(n_leading)]
        if query.shape[:n_leading] != key.shape[:n_leading]:
            roles[-1] = ("shared", None)  # each key head serves a group of query heads
        roles += [("free", None), ("summed", n_leading)]
        return self._arrangement((*query_layout[:-1], key_layout[-2]), roles, key_layout)

    def _flex(self, query: Tensor, key: Tensor, value: Tensor, *others: Any) -> Any:
        """Call torch's `flex_attention`, pass its weights on, and return its result.

        `others` are its functions of scores and masks. With the unit vectors as values, its output is the weights.
        """
        result = FLEX(query, key, value, *others)
        n_keys = key.shape[2]
        with torch.no_grad(), torch._C.DisableTorchFunction():
            unit_vectors = torch.eye(n_keys, dtype=value.dtype, device=value.device)
            unit_vectors = unit_vectors.expand(*value.shape[:2], n_keys, n_keys)
            weights = FLEX(query.detach(), key.detach(), unit_vectors, *others)[0]
            arrangement = self._arrangement_of_call((query, key, value), result[0])
            if arrangement is None:
                self._recorder.record_unclear(weights.shape)
                return result
            self._recorder.record_weights(
                arrangement.apply(weights), self._computation(arrangement)
            )
        return result

    def _multi_head(self, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
        """Call the function behind `nn.MultiheadAttention`, and pass its weights on.

        This mode does not see the calls inside the function. Its inputs have the axes (token, batch, d), or (token, d).
        """
        bound = MULTI_HEAD_SIGNATURE.bind(*args, **keywords)
        bound.apply_defaults()
        arguments = bound.arguments
        with torch._C.DisableTorchFunction():
            query, key = (self._axes.layout(arguments[name]) for name in ("query", "key"))
        queries, keys = (
            tuple(axis for axis in layout[0] if axis.is_sequence) for layout in (query, key)
        )
        n_extra_keys = int(arguments["bias_k"] is not None) + int(arguments["add_zero_attn"])
        are_one = are_one_sequence(queries, keys)
        cross = arguments["query"] is not arguments["key"] if are_one is None else not are_one
        known = Computation(
            cross=cross,
            keys=keys,
            first_query=distance(keys, queries),
            n_extra_keys=n_extra_keys,
            n_behind=self._n_behind,
        )
        self._n_behind += 1
        if not arguments["need_weights"]:
            with self._tracing_inside(known):
                result = MULTI_HEAD(*bound.args, **bound.kwargs)
            self._axes.note(result[0], query)
            return result
        is_averaged = arguments["average_attn_weights"]
        arguments["average_attn_weights"] = False
        output, weights = cast("tuple[Tensor, Tensor]", MULTI_HEAD(*bound.args, **bound.kwargs))
        dropped = arguments["training"] and arguments["dropout_p"] > 0
        weights_before_dropout = weights
        if dropped:
            # Some of the returned weights were dropped; a second call without dropout returns all of them.
            arguments["training"] = False
            with torch.no_grad():
                _, weights_before_dropout = cast(
                    "tuple[Tensor, Tensor]", MULTI_HEAD(*bound.args, **bound.kwargs)
                )
        shown = weights_before_dropout.detach()
        self._recorder.record_weights(
            shown if shown.ndim == len(NAMES) else shown[None],
            replace(known, dropped=dropped),
        )
        self._axes.note(output, query)
        return output, weights.mean(dim=-3) if is_averaged else weights

    @contextmanager
    def _tracing_inside(self, known: Computation) -> Iterator[None]:
        """Trace calls of the fused function inside torch's own code, which the mode does not see, until the block ends.

        The function in `torch.nn.functional` is replaced meanwhile. `known` is what is known of the computation.
        """
        with SHARED:
            # Another tracer may already have replaced the function.
            previous, thread = functional.scaled_dot_product_attention, get_ident()

            def fused(*args: Any, **keywords: Any) -> Tensor:
                if get_ident() != thread:
                    return previous(*args, **keywords)
                return self._fused(*args, known=known, call=previous, **keywords)

            functional.scaled_dot_product_attention = fused
            try:
                yield
            finally:
                functional.scaled_dot_product_attention = previous


def attend_fused(
    query: Float[Tensor, "batch head query d_k"],
    key: Float[Tensor, "batch group key d_k"],
    scale: float | None,
    rows: Tensor,
    values: Float[Tensor, "seen d_v"],
    mask: Tensor | None,
) -> Float[Tensor, "batch row head d_v"]:
    """Run the fused function on some rows with other values, in the number format of these values."""
    key = key[:, :, : len(values)].to(values.dtype)
    output = FUSED(
        query[:, :, rows].to(values.dtype),
        key,
        values.expand(*key.shape[:2], *values.shape),
        attn_mask=mask if mask is None or mask.dtype == torch.bool else mask.to(values.dtype),
        scale=scale,
        **grouped_queries(query, key),
    )
    return output.transpose(1, 2)


# Held while a setting changes that all threads share: a function of torch, or the use of its fast path.
SHARED = fork_safe_lock()
_runs: list[None] = []  # one entry per model that runs in `as_written`, in any thread
_as_before = ExitStack()  # restores the fast paths of torch after the last of these runs


@contextmanager
def as_written() -> Iterator[None]:
    """Run models as their code is written until the block ends, without torch's fast path or compiled code."""
    with SHARED:
        if not _runs:
            _as_before.enter_context(without_fast_path())
            # If the compiler is loaded, some module may be compiled; `flex_attention` loads it later.
            if {"torch._dynamo", FLEX_MODULE} & sys.modules.keys():
                _as_before.enter_context(without_compiler())
        _runs.append(None)
    try:
        yield
    finally:
        with SHARED:  # the last run of all threads restores the settings
            _runs.pop()
            if not _runs:
                _as_before.close()


@contextmanager
def trace_attention(tracer: AttentionTracer, *inputs: Any) -> Iterator[None]:
    """Trace all attention of this thread until the block ends; `inputs` are those of the model, if they are known."""
    tracer.begin(*inputs)
    with as_written(), tracer:
        yield


def _are_features(axes: Sequence[Axis]) -> bool:
    """Return whether these axes have more than one entry, and run over features only."""
    several = [axis for axis in axes if axis.size > 1]
    return bool(several) and all(axis.has_features for axis in several)


def _are_places(axes: Sequence[Axis]) -> bool:
    """Return whether some of these axes run over places of an input, and none over features."""
    return any(map(is_of_tokens, axes)) and not any(axis.has_features for axis in axes)


def _as_keys(tensor: Tensor, arrangement: Arrangement) -> Tensor:
    """Return keys or values as [batch, head, key, d]; their leading dimensions are those of the queries, or fewer."""
    n_leading = math.prod(tensor.shape[:-2])
    n_axes = 0
    while math.prod(arrangement.sizes[:n_axes]) < n_leading:
        n_axes += 1
    if math.prod(arrangement.sizes[:n_axes]) != n_leading:
        # Fewer heads than queries have: of such calls, only the usual ones are known.
        return tensor if tensor.ndim == len(NAMES) else tensor[:, None]
    leading = Arrangement(
        sizes=(*arrangement.sizes[:n_axes], tensor.shape[-2]),
        names=(*arrangement.names[:n_axes], "key"),
    )
    return leading.apply_to_vectors(tensor, "key")
