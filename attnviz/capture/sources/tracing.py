"""Trace the attention that a module computes, whatever way its code is written.

Recognised are calls of `torch.nn.functional.scaled_dot_product_attention`, `flex_attention`, torch's
`MultiheadAttention`, and weights that are normalised along a sequence, by a softmax or by dividing through their sum,
and then multiplied by values.
"""

from __future__ import annotations

import inspect
import math
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from threading import get_ident
from typing import Any, Protocol, cast

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from attnviz.capture.sources.axes import (
    NAMES,
    VIEWS,
    Arrangement,
    AxisTracker,
    Dimension,
    Layout,
    arrangement_of,
    by_tensor,
    dim_of,
    len_of,
    name_of,
    parse_arrangement,
    sequence_of,
)
from attnviz.capture.sources.locks import fork_safe_lock
from attnviz.capture.stream import Layer, Scoring
from attnviz.releases import grouped_queries, without_compiler, without_fast_path

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
MULTI_HEAD = functional.multi_head_attention_forward
MULTI_HEAD_SIGNATURE = inspect.signature(MULTI_HEAD)
# Functions whose result still counts as attention weights if their input does, and has as many numbers.
PASS_THROUGH = frozenset(
    {"to", "type", "type_as", "float", "double", "half", "bfloat16", "contiguous", "clone"}
    | {"dropout", "masked_fill", "masked_fill_", "where", "nan_to_num", "tril", "triu"}
)
MULTIPLY = frozenset({"mul", "multiply", "__mul__", "__rmul__", "mul_", "__imul__"})
DIVIDE = frozenset({"div", "divide", "true_divide", "__truediv__", "div_", "__itruediv__"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Computation:
    """A computation of attention, without its numbers."""

    cross: bool | None  # whether queries and keys come from different sequences; None if unknown
    # The axis that the keys run over: the number of an input, and of its axis; None if unknown.
    keys: tuple[int, int] | None
    dropped: bool  # whether dropout then set some weights to 0
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

    @property
    def axes(self) -> str | None:
        """The names of the axes of weights, as the user gives them; None if they are to be found."""


@dataclass(frozen=True, slots=True)
class _Weights:
    """The note on a tensor of attention weights."""

    before_dropout: Tensor | None  # the same weights before dropout set some of them to 0


class AttentionTracer(TorchFunctionMode):
    """Traces each computation of attention in its thread while this mode is on; results do not change."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder
        self.forget()

    def forget(self) -> None:
        """Discard all that is known of tensors."""
        self._axes = AxisTracker()
        self._weights = by_tensor()  # tensors that are attention weights
        # Weights that were multiplied by values, but not yet summed over the keys: the weights and the values.
        self._weighted = by_tensor()
        # Sums of a tensor along one dimension: a weak reference to the tensor, and the dimension.
        self._sums = by_tensor()

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
        if function is MULTI_HEAD:
            return self._multi_head(args, keywords)
        if function is FUSED:
            return self._fused(*args, **keywords)
        if function is FLEX:
            return self._flex(*args)
        output = function(*args, **keywords)
        name = name_of(function)
        with torch._C.DisableTorchFunction():
            product = self._axes.follow(name, function, args, keywords, output)
            if product is not None:
                self._multiply(product.operands, product.roles)
            elif isinstance(output, Tensor):
                self._follow(name, function, args, keywords, output)
        return output

    def _follow(
        self,
        name: str,
        function: Callable[..., Any],
        args: Sequence[Any],
        keywords: Mapping[str, Any],
        output: Tensor,
    ) -> None:
        """Note whether the result of a function is attention weights, or becomes some."""
        if not args or not isinstance(args[0], Tensor):
            # Only `where` and products with a number have their tensors elsewhere.
            self._pass_on(name, args, keywords, output)
        elif name == "softmax":
            dim = dim_of(args, keywords)
            if isinstance(dim, int):
                self._normalise(output, dim)
        elif name == "sum":
            self._sum(args, keywords, output)
        elif name in DIVIDE:
            self._divide(args, keywords, output)
        elif name in VIEWS:
            self._view(function, args, keywords, output)
        elif name in MULTIPLY:
            self._scale(args, keywords, output)
        else:
            self._pass_on(name, args, keywords, output)

    def _view(
        self,
        function: Callable[..., Any],
        args: Sequence[Any],
        keywords: Mapping[str, Any],
        output: Tensor,
    ) -> None:
        """Follow a view of weights, or of their sums."""
        if args[0] in self._sums:
            self._sums[output] = self._sums[args[0]]
        if args[0] in self._weights:
            before = self._weights[args[0]].before_dropout
            if before is not None:
                before = function(before, *args[1:], **keywords)
            self._weights[output] = _Weights(before)

    def _pass_on(
        self, name: str, args: Sequence[Any], keywords: Mapping[str, Any], output: Tensor
    ) -> None:
        """Follow weights through a function that keeps their meaning, such as dropout."""
        if name in MULTIPLY:
            self._scale(args, keywords, output)
        if name not in PASS_THROUGH:
            return
        for source in args:
            if not isinstance(source, Tensor) or source not in self._weights:
                continue
            if output.numel() == source.numel():
                dropped = name == "dropout" and not torch.equal(output, source)
                self._weights[output] = _Weights(source) if dropped else self._weights[source]
            return

    def _divide(self, args: Sequence[Any], keywords: Mapping[str, Any], output: Tensor) -> None:
        """Follow a quotient: numbers divided by their own sum are weights."""
        source, divisor = _two_operands(args, keywords)
        if isinstance(divisor, Tensor) and divisor in self._sums:
            summed, dim = self._sums[divisor]
            if summed() is source:
                self._normalise(output, dim)
                return
        if source in self._weights and output.numel() == source.numel():
            self._weights[output] = _Weights(None)

    def _normalise(self, output: Tensor, dim: int) -> None:
        """Note that the numbers of a tensor along a dimension sum to 1, so that they may be weights."""
        self._axes.normalise(output, dim)
        self._weights[output] = _Weights(None)

    def _sum(self, args: Sequence[Any], keywords: Mapping[str, Any], output: Tensor) -> None:
        """Note along which dimension a tensor was summed; weights times values are complete then."""
        dim = dim_of(args, keywords)
        if isinstance(dim, list | tuple) and len(dim) == 1:
            dim = dim[0]
        source = args[0]
        if not isinstance(dim, int) or not isinstance(source, Tensor) or source.ndim == 0:
            return
        dim %= source.ndim
        self._sums[output] = (weakref.ref(source), dim)
        if source not in self._weighted:
            return
        weights, values = self._weighted[source]
        # Both are broadcast to the dimensions of their product, so dimensions are counted from the end.
        roles: list[tuple[str, int | None]] = []
        for place in range(weights.ndim):
            own = place + source.ndim - weights.ndim
            link = own - source.ndim + values.ndim
            is_shared = link >= 0 and values.shape[link] > 1
            if own == dim:
                roles.append(("summed", link))
            else:
                roles.append(("shared", link) if is_shared else ("free", None))
        nothing = tuple(("free", None) for _ in range(values.ndim))
        self._multiply((weights, values), (tuple(roles), nothing))

    def _scale(self, args: Sequence[Any], keywords: Mapping[str, Any], output: Tensor) -> None:
        """Follow weights that are multiplied number by number: by a mask or a factor, or by values."""
        first, second = _two_operands(args, keywords)
        for weights, other in ((first, second), (second, first)):
            if isinstance(weights, Tensor) and weights in self._weights:
                if output.numel() == weights.numel():
                    self._weights[output] = _Weights(None)
                elif isinstance(other, Tensor):
                    self._weighted[output] = (weights, other)
                return

    def _multiply(
        self,
        operands: tuple[Tensor, Tensor],
        roles: tuple[Sequence[tuple[str, int | None]], Sequence[tuple[str, int | None]]],
    ) -> None:
        """Record weights if a product sums over the dimension along which they are normalised."""
        for own in (0, 1):
            weights, values = operands[own], operands[1 - own]
            if weights not in self._weights:
                continue
            layout = self._axes.layout(weights)
            keys = [
                axes
                for axes, (role, _) in zip(layout, roles[own], strict=True)
                if role == "summed" and any(axis.normalised for axis in axes)
            ]
            rows = [
                axes for axes, (role, _) in zip(layout, roles[own], strict=True) if role == "free"
            ]
            # The gate of a mixture of experts, and linear attention, are normalised over features or have features as
            # rows: neither are tokens that attend to tokens.
            if not keys or _are_features(keys) or _are_features(rows):
                continue
            noted = self._weights.pop(weights)
            self._record(weights, noted, layout, roles[own], self._axes.layout(values))
            return

    def _record(
        self,
        weights: Tensor,
        noted: _Weights,
        layout: Layout,
        roles: Sequence[tuple[str, int | None]],
        values: Layout,
    ) -> None:
        """Pass weights on, as they were before dropout, as [batch, head, query, key]."""
        arrangement = self._arrangement(layout, roles, values)
        if arrangement is None:
            self._recorder.record_unclear(weights.shape)
            return
        shown = weights if noted.before_dropout is None else noted.before_dropout
        computation = Computation(
            cross=self._is_cross(arrangement),
            keys=arrangement.key_origin,
            dropped=noted.before_dropout is not None,
        )
        self._recorder.record_weights(arrangement.apply(shown.detach()), computation)

    def _arrangement(
        self, layout: Layout, roles: Sequence[tuple[str, int | None]], values: Layout | None
    ) -> Arrangement | None:
        if self._recorder.axes is not None:
            shape = [len_of(axes) for axes in layout]
            return parse_arrangement(self._recorder.axes, shape, self._axes.n_batch())
        return arrangement_of(layout, roles, values, self._axes)

    def _is_cross(self, arrangement: Arrangement) -> bool | None:
        """Return whether queries and keys come from different sequences; None if that is unknown."""
        queries, keys = arrangement.query_origin, arrangement.key_origin
        if keys is None:
            return None
        if queries is not None:
            return queries != keys
        # A model with a cache reads one new token at a time, and its keys are all tokens so far. Any other single query
        # comes from elsewhere.
        return arrangement.size("query") != self._axes.n_tokens(keys)

    def _fused(
        self,
        *args: Any,
        cross: bool | None = None,
        keys: tuple[int, int] | None = None,
        n_extra_keys: int = 0,
        call: Callable[..., Tensor] = FUSED,
        has_usual_axes: bool = False,
        **keywords: Any,
    ) -> Tensor:
        """Call the fused function (`call`), pass its inputs and output on as a layer, and return the output.

        With `has_usual_axes`, the axes of the inputs are known to be (batch, head, token, d).
        """
        arguments = dict(zip(FUSED_PARAMETERS, args, strict=False)) | keywords
        output = call(**arguments)
        with torch.no_grad(), torch._C.DisableTorchFunction():
            inputs = (arguments["query"], arguments["key"], arguments["value"])
            query, key, value = (tensor.detach() for tensor in inputs)
            native, mask = output.detach(), arguments.get("attn_mask")
            if mask is not None:
                mask = mask.detach()  # a learned bias has a gradient
            if not has_usual_axes:
                arrangement = self._arrangement_of_call(inputs, output)
                if arrangement is None:
                    self._recorder.record_unclear((*query.shape[:-1], key.shape[-2]))
                    return output
                cross, keys = self._is_cross(arrangement), arrangement.key_origin
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
            computation = Computation(
                cross=cross,
                keys=keys,
                dropped=bool(arguments.get("dropout_p")),
                n_extra_keys=n_extra_keys,
            )
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
        roles += [("free", None), ("summed", None)]
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
            computation = Computation(
                cross=self._is_cross(arrangement), keys=arrangement.key_origin, dropped=False
            )
            self._recorder.record_weights(arrangement.apply(weights), computation)
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
        queries, keys = sequence_of(query[0]), sequence_of(key[0])
        n_extra_keys = int(arguments["bias_k"] is not None) + int(arguments["add_zero_attn"])
        cross = arguments["query"] is not arguments["key"]
        if queries is not None and keys is not None:
            cross = queries != keys
        if not arguments["need_weights"]:
            with self._tracing_inside(cross=cross, keys=keys, n_extra_keys=n_extra_keys):
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
            Computation(cross=cross, keys=keys, dropped=dropped, n_extra_keys=n_extra_keys),
        )
        self._axes.note(output, query)
        return output, weights.mean(dim=-3) if is_averaged else weights

    @contextmanager
    def _tracing_inside(self, **computation: Any) -> Iterator[None]:
        """Trace calls of the fused function inside torch's own code, which the mode does not see, until the block ends.

        The function in `torch.nn.functional` is replaced meanwhile. `computation` has what is known of it, by the names
        of `Computation`.
        """
        with SHARED:
            # Another tracer may already have replaced the function.
            previous, thread = functional.scaled_dot_product_attention, get_ident()

            def fused(*args: Any, **keywords: Any) -> Tensor:
                if get_ident() != thread:
                    return previous(*args, **keywords)
                return self._fused(
                    *args, call=previous, has_usual_axes=True, **computation, **keywords
                )

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


def _two_operands(args: Sequence[Any], keywords: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the operands of a product or quotient, of which the second may be passed by name."""
    return (*args, *keywords.values())[:2]


def _are_features(dimensions: Sequence[Dimension]) -> bool:
    """Return whether these dimensions have more than one entry, and run over features only."""
    axes = [axis for dimension in dimensions for axis in dimension if axis.size > 1]
    return bool(axes) and all(axis.has_features for axis in axes)


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
