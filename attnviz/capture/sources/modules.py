"""The attention of any torch module, captured while the caller's own code runs the module.

Three ways of computing attention are recognised:

- calls of `torch.nn.functional.scaled_dot_product_attention`, also under another name. The weights are computed again
  from query, key and mask, and verified against the result of the call;
- torch's `MultiheadAttention`, and with it `TransformerEncoder`, `TransformerDecoder` and `Transformer`;
- attention written by hand: a softmax whose result is multiplied by values. The weights are that very tensor.
"""

from __future__ import annotations

import inspect
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from threading import RLock, get_ident
from typing import Any, cast, final

import numpy as np
import torch
from jaxtyping import Float, Float32
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode

from attnviz.attention import SOFTMAX, Attention, Kind, Note, Receipt, Token, indices_of
from attnviz.capture.observers import CPU, Batch, Block, Observer, WeightCollector
from attnviz.capture.stream import ForwardPass, Layer, LayerObserver, Scoring, visible_keys
from attnviz.errors import InputError, ModelError, NoAttentionError, RecordError, SelectionError

AXES = 4  # the number of axes of weights: batch, head, query, key
FUSED = functional.scaled_dot_product_attention
FUSED_INPUTS = ("query", "key", "value")
FUSED_PARAMETERS = (*FUSED_INPUTS, "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa")
MULTI_HEAD = functional.multi_head_attention_forward
MULTI_HEAD_SIGNATURE = inspect.signature(MULTI_HEAD)
# Functions whose result still counts as attention weights if their input does.
PASS_THROUGH = frozenset(
    {"to", "type", "type_as", "float", "double", "half", "bfloat16"}
    | {"contiguous", "clone", "view", "reshape", "flatten", "squeeze", "unsqueeze", "expand"}
    | {"dropout", "masked_fill", "masked_fill_"}
)
# Functions that multiply weights by values.
PRODUCTS = frozenset({"matmul", "bmm", "__matmul__", "baddbmm", "einsum"})
# The most bytes of weights that are kept of a run, and that a record may have.
KEEP_AT_MOST = 4 * 2**30
# The number of softmax results that are remembered. In attention the product with the values follows soon after the
# softmax, so older results belong to something else, such as a classifier.
PENDING = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenLayer:
    """One computation of attention; its weights are computed and verified when they are requested."""

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
        if isinstance(held, Layer) and held.scoring.mask is None:
            return "decoder" if held.scoring.causal else "encoder"
        if held is None or n_queries == 1:
            return "encoder"
        if isinstance(held, Layer):
            visible = visible_keys(held.scoring, 0, n_queries, n_keys, held.query.device)
            is_visible = visible[:1].expand(-1, -1, n_queries, -1)
        else:
            is_visible = held[:1] > 0
        return "encoder" if is_visible.triu(1).any() else "decoder"

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
            arguments |= {"scale": scoring.scaling, "enable_gqa": key.shape[1] < query.shape[1]}
            output = FUSED(query, key, value, **arguments).transpose(1, 2)
        run.add_layer(
            Layer(query=query, key=key, value=value, output=output, scoring=scoring, number=number)
        )


@dataclass(frozen=True, slots=True)
class _Weights:
    """The result of a softmax, followed until it is multiplied by values."""

    tensor: Tensor  # kept alive, so that no other tensor can get the same id
    shape: torch.Size
    before_dropout: Tensor | None


class AttentionTracer(TorchFunctionMode):
    """Traces each computation of attention in its thread while this mode is on; results do not change.

    Computations are passed to a recorder in the order in which they run. A call of the fused function, whose output can
    verify the weights, goes to its method `record_call`. The result of a softmax that is multiplied by values, as it
    was before dropout, goes to its method `record_weights`. The argument `cross` of both says whether queries and keys
    come from different sequences (None if unknown); `dropped` says whether dropout then set some weights to 0.
    """

    def __init__(self, recorder: FunctionalRecorder | Watched) -> None:
        super().__init__()
        self._recorder = recorder
        # The softmax results that have not been multiplied by values, by the id of the tensor, oldest first.
        self._pending: dict[int, _Weights] = {}

    def forget(self) -> None:
        """Discard the softmax results that have not been multiplied by values."""
        self._pending = {}

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
        output = function(*args, **keywords)
        name = getattr(function, "__name__", "")
        if name == "softmax":
            dim = keywords.get("dim", args[1] if len(args) > 1 else None)
            if isinstance(output, Tensor) and dim in {-1, output.ndim - 1}:
                self._remember(_Weights(output, output.shape, None))
        elif self._pending and name in PASS_THROUGH and isinstance(output, Tensor):
            self._follow(name, args[0], output)
        elif self._pending and name in PRODUCTS:
            self._multiply(name, args)
        return output

    def _remember(self, weights: _Weights) -> None:
        """Remember a softmax result until it is multiplied by values, and forget the oldest of too many."""
        self._pending[id(weights.tensor)] = weights
        while len(self._pending) > PENDING:
            self._pending.pop(next(iter(self._pending)))

    def _follow(self, name: str, argument: Any, output: Tensor) -> None:
        """Remember the output of the function `name` as weights, if its argument is a remembered softmax result."""
        weights = self._pending.get(id(argument))
        if weights is None:
            return
        before_dropout = weights.before_dropout
        if name == "dropout" and not torch.equal(output, argument):
            before_dropout = argument
        self._remember(_Weights(output, weights.shape, before_dropout))

    def _multiply(self, name: str, args: tuple[Any, ...]) -> None:
        """Pass on each remembered softmax result that the product `name` of these arguments multiplies by values."""
        # In matmul and bmm, the weights are the first argument. In einsum the first argument is an equation, and in
        # baddbmm a summand, so the weights are one of the others; einsum may also take its operands as a list.
        operands: Sequence[Any] = args[1:] if name in {"einsum", "baddbmm"} else args[:1]
        if operands and isinstance(operands[0], list | tuple):
            operands = operands[0]
        for operand in operands:
            weights = self._pending.pop(id(operand), None)
            if weights is not None and (name == "einsum" or args[-1].ndim == operand.ndim):
                self._pass_on(weights)

    def _pass_on(self, softmax_result: _Weights) -> None:
        """Pass on the weights of a softmax, before dropout, as [batch, head, query, key]."""
        tensor, before_dropout = softmax_result.tensor, softmax_result.before_dropout
        if before_dropout is not None:
            tensor = before_dropout
        weights = tensor.detach().reshape(softmax_result.shape)
        # (batch, query, key) has one head; (query, key) also has one input.
        while weights.ndim < AXES:
            weights = weights.unsqueeze(weights.ndim - 2)
        weights = weights.flatten(0, weights.ndim - AXES)
        self._recorder.record_weights(
            weights, cross=None, dropped=softmax_result.before_dropout is not None
        )

    def _fused(
        self,
        *args: Any,
        cross: bool | None = None,
        call: Callable[..., Tensor] = FUSED,
        **keywords: Any,
    ) -> Tensor:
        """Call the fused function (`call`), pass its inputs and output on as a layer, and return the output."""
        arguments = dict(zip(FUSED_PARAMETERS, args, strict=False)) | keywords
        output = call(**arguments)
        with torch.no_grad():
            query, key, value = (_with_four_axes(arguments[name].detach()) for name in FUSED_INPUTS)
            native = _with_four_axes(output.detach())
            mask = arguments.get("attn_mask")
            if mask is not None and mask.ndim == arguments["query"].ndim == AXES - 1:
                mask = mask[:, None]
            layer = Layer(
                query=query,
                key=key,
                value=value,
                output=native.transpose(1, 2),
                scoring=Scoring(
                    scaling=arguments.get("scale"),
                    mask=mask,
                    causal=arguments.get("is_causal", False),
                ),
            )
            self._recorder.record_call(layer, cross=cross, dropped=bool(arguments.get("dropout_p")))
        return output

    def _multi_head(self, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
        """Call the function behind `nn.MultiheadAttention`, and pass its weights on.

        This mode does not see the calls inside the function.
        """
        bound = MULTI_HEAD_SIGNATURE.bind(*args, **keywords)
        bound.apply_defaults()
        arguments = bound.arguments
        cross = arguments["query"] is not arguments["key"]
        if not arguments["need_weights"]:
            with self._tracing_inside(cross=cross):
                return MULTI_HEAD(*bound.args, **bound.kwargs)
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
        self._recorder.record_weights(
            _with_four_axes(weights_before_dropout.detach()), cross=cross, dropped=dropped
        )
        return output, weights.mean(dim=-3) if is_averaged else weights

    @contextmanager
    def _tracing_inside(self, *, cross: bool) -> Iterator[None]:
        """Trace calls of the fused function inside torch's own code, which the mode does not see, until the block ends.

        The function in `torch.nn.functional` is replaced meanwhile.
        """
        with SHARED:
            # Another tracer may already have replaced the function.
            previous, thread = functional.scaled_dot_product_attention, get_ident()

            def fused(*args: Any, **keywords: Any) -> Tensor:
                if get_ident() != thread:
                    return previous(*args, **keywords)
                return self._fused(*args, cross=cross, call=previous, **keywords)

            functional.scaled_dot_product_attention = fused
            try:
                yield
            finally:
                functional.scaled_dot_product_attention = previous


# Held while a setting changes that all threads share: a function of torch, or the use of its fast path.
SHARED = RLock()
_runs: list[None] = []  # one entry per model that runs in `as_written`, in any thread
_as_before = ExitStack()  # restores the fast paths of torch after the last of these runs


@contextmanager
def as_written() -> Iterator[None]:
    """Run models as their code is written until the block ends, without torch's fast path or compiled code."""
    with SHARED:
        if not _runs:
            _as_before.callback(
                torch.backends.mha.set_fastpath_enabled, torch.backends.mha.get_fastpath_enabled()
            )
            torch.backends.mha.set_fastpath_enabled(False)
            # If the compiler is loaded, some module may be compiled.
            if "torch._dynamo" in sys.modules:
                _as_before.enter_context(torch.compiler.set_stance("force_eager"))
        _runs.append(None)
    try:
        yield
    finally:
        with SHARED:  # the last run of all threads restores the settings
            _runs.pop()
            if not _runs:
                _as_before.close()


@contextmanager
def trace_attention(tracer: AttentionTracer) -> Iterator[None]:
    """Trace all attention of this thread until the block ends."""
    with as_written(), tracer:
        yield


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
    """A recorder for `AttentionTracer` that passes the attention of a model to a run.

    With `splits`, weights of shape (batch x head, query, key) are reshaped to (batch, head, query, key).
    """

    def __init__(self, run: ForwardPass, name: str, *, splits: bool = False) -> None:
        self._run, self._name = run, name
        self._splits = splits or len(run.batch.real) == 1

    def record_call(self, layer: Layer, *, cross: bool | None, dropped: bool) -> None:
        """Pass on a call of the fused function."""
        self._expect((*layer.query.shape[:3], layer.key.shape[2]))
        self._run.native = self._run.native.replace(SOFTMAX, "sdpa")
        self._run.add_layer(layer)

    def record_weights(
        self, weights: Float[Tensor, "batch head query key"], *, cross: bool | None, dropped: bool
    ) -> None:
        """Pass on weights that the model itself computed.

        Raises NoAttentionError: they do not cover all tokens, or an observer needs queries and keys too.
        """
        # Collectors of weights can do without queries and keys; other observers of layers cannot.
        if any(
            isinstance(observer, LayerObserver) and not isinstance(observer, WeightCollector)
            for observer in self._run.observers
        ):
            raise NoAttentionError(
                f"{self._name} computes its attention by itself: its weights can be shown, its queries and keys cannot"
            )
        n_batch, n_rows = self._run.batch.real.shape
        has_one_head = weights.shape[1] == 1
        if self._splits and has_one_head and weights.shape[0] % n_batch == 0:
            weights = weights.reshape(n_batch, -1, *weights.shape[2:])
        self._expect(tuple(weights.shape))
        self._run.add_weights(weights[:, :, -n_rows:])

    def _expect(self, shape: tuple[int, ...]) -> None:
        """Raise NoAttentionError unless weights of this shape have a row and a column for every token."""
        n_batch, n_rows = self._run.batch.real.shape
        n_keys = self._run.batch.real_keys.shape[1]
        if self._run.last_rows_only:
            n_rows = (
                n_keys  # the model computes all rows, of which the run then takes the last ones
            )
        if (shape[0], *shape[2:]) != (n_batch, n_rows, n_keys):
            raise NoAttentionError(
                f"{self._name} has no weights of all tokens on all tokens: a softmax that it multiplies by values has "
                f"the shape {shape}"
            )


@final
class Watched:
    """A context manager that watches a module, and then holds the attention of its last run; see `watch`.

    Raises ModelError: `module` is no torch module, or the block is already open.
    """

    def __init__(self, module: nn.Module) -> None:
        if not hasattr(module, "named_modules"):
            raise ModelError(f"watch takes a torch.nn.Module, not {type(module).__name__}")
        self.layers: list[SeenLayer] = []
        self._module, self._tracer = module, AttentionTracer(self)
        self._open: ExitStack | None = None
        self._paths = dict[nn.Module, str]()  # the path of each submodule
        # The paths of the modules that are running, outermost first; None for a module outside the watched one.
        self._running: list[str | None] = []
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
            tokens: a label for each query; further queries (padding) are left out. None numbers the queries.
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
        layers_shown = {number: self.layers[number] for number in self._chosen(kind, layers)}
        first = next(iter(layers_shown.values()))
        n_inputs, _, n_queries, n_keys = first.shape
        if len({layer.shape for layer in layers_shown.values()}) > 1:
            raise SelectionError(f"the layers have different shapes: choose layers= from\n{self}")
        if not -n_inputs <= index < n_inputs:
            raise SelectionError(
                f"there is no input {index}: the batch had {n_inputs} (counted from 0)"
            )
        queries = keys = _tokens(tokens, n_queries, "queries")
        if key_tokens is not None or (first.kind == "cross" and n_queries != n_keys):
            keys = _tokens(key_tokens, n_keys, "keys")
        weights, receipt = _verified_weights(layers_shown, index % n_inputs)
        has_dropout = any(layer.dropped for layer in layers_shown.values())
        return Attention(
            weights=weights[:, :, : len(queries), : len(keys)],
            query_tokens=queries,
            key_tokens=keys,
            kind=first.kind,
            layers=tuple(layers_shown),
            model=type(self._module).__name__,
            receipt=receipt,
            text="" if tokens is None else " ".join(token.text for token in queries),
            notes=(Note("dropout"),) if has_dropout else (),
        )

    def __str__(self) -> str:
        return "\n".join(
            f"{number}: {layer.path or type(self._module).__name__}, {layer.kind}, {layer.shape[1]} heads, "
            f"{layer.shape[2]} queries x {layer.shape[3]} keys"
            for number, layer in enumerate(self.layers)
        )

    def record_weights(
        self, weights: Float[Tensor, "batch head query key"], *, cross: bool | None, dropped: bool
    ) -> None:
        """Keep weights that the module computed itself, as long as all of them stay within `KEEP_AT_MOST`."""
        size = weights.nbytes + sum(
            layer.held.nbytes for layer in self.layers if isinstance(layer.held, Tensor)
        )
        kept_weights = weights.clone() if size <= KEEP_AT_MOST else None
        self._keep(weights.shape, kept_weights, cross=cross, dropped=dropped)

    def record_call(self, layer: Layer, *, cross: bool | None, dropped: bool) -> None:
        """Keep the inputs and the output of the fused function, from which the weights can be computed later.

        If the module overwrites the inputs afterwards, the weights no longer match the output and are refused.
        """
        kept_layer = replace(layer, output=layer.output.clone())
        self._keep(
            (*layer.query.shape[:3], layer.key.shape[2]), kept_layer, cross=cross, dropped=dropped
        )

    def _keep(
        self,
        shape: Sequence[int],
        held: Layer | Tensor | None,
        *,
        cross: bool | None,
        dropped: bool,
    ) -> None:
        """Add a layer, with the path of the module that is running, unless that module is outside the watched one."""
        is_cross = shape[2] != shape[3] if cross is None else cross
        path = self._running[-1] if self._running else ""
        if path is not None:
            self.layers.append(
                SeenLayer(path=path, shape=tuple(shape), cross=is_cross, dropped=dropped, held=held)
            )

    def _chosen(self, kind: Kind | None, layers: Sequence[int] | None) -> tuple[int, ...]:
        """Return the indices of the chosen layers or, if `layers` is None, of all layers of the kind.

        Raises NoAttentionError: no attention was seen; SelectionError: no such layer or kind, or several kinds.
        """
        if not self.layers:
            name = type(self._module).__name__
            raise NoAttentionError(
                f"no attention was seen in {name}: run it inside `with attnviz.watch(module):`, in the same thread; "
                "seen are scaled_dot_product_attention, torch's own layers, and a softmax that is multiplied by values"
            )
        if layers is not None:
            return tuple(indices_of(layers, range(len(self.layers)), "layer"))
        kinds = list(dict.fromkeys(layer.kind for layer in self.layers))
        if kind is None and len(kinds) > 1:
            raise SelectionError(
                f"this module has {', '.join(kinds)} attention: choose kind={kinds[-1]!r} or another"
            )
        numbers = tuple(
            number for number, layer in enumerate(self.layers) if layer.kind == (kind or kinds[0])
        )
        if not numbers:
            raise SelectionError(f"this module has no {kind} attention: it has {', '.join(kinds)}")
        return numbers

    def _begin(self, module: nn.Module, _inputs: Any) -> None:
        """Remember the path of a module that starts; a new run of the watched module discards the last one."""
        if get_ident() != self._thread:
            return
        # Activation checkpointing runs modules again during the backward pass, which is not a new run.
        is_backward = torch._C._current_graph_task_id() >= 0
        is_inside = any(path is not None for path in self._running)
        if module is self._module and not is_backward and not is_inside:
            self.layers = []
            self._tracer.forget()
        # A module that the watched one does not list, such as one made during the run, counts as its caller.
        caller = self._running[-1] if self._running else None
        self._running.append(self._paths.get(module, caller))

    def _end(self, _module: nn.Module, _inputs: Any, _output: Any) -> None:
        """Forget the path of a module that ends."""
        if get_ident() == self._thread:
            del self._running[-1:]


def watch(module: nn.Module) -> Watched:
    """Watch a torch module and keep the attention of its last run inside the block.

    ::

        with attnviz.watch(model) as seen:
            model(x)
        record = seen.attention(tokens=["I", "love", "you"])

    The module's results do not change, and it is left unchanged. The block captures calls of
    `scaled_dot_product_attention`, torch's own layers, and softmax results that are multiplied by values, in the thread
    that opened it.

    Args:
        module: any module. Compiled parts run uncompiled inside the block.

    Raises:
        ModelError: `module` is no torch module.
    """
    return Watched(module)


def _verified_weights(
    layers: Mapping[int, SeenLayer], index: int
) -> tuple[Float32[np.ndarray, "layer head query key"], Receipt]:
    """Return the weights of input `index` of the batch in layers of one shape, by their numbers, and the receipt.

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


def _check_memory(layers: Sequence[SeenLayer]) -> None:
    """Raise InputError if the weights of these layers take more memory than is kept."""
    size = 4 * len(layers) * math.prod(layers[0].shape[1:])
    if size > KEEP_AT_MOST or any(layer.held is None for layer in layers):
        raise InputError(
            f"the weights of {len(layers)} layers take {size / 2**30:.1f} GiB an input, more than attnviz "
            f"keeps ({KEEP_AT_MOST / 2**30:.0f} GiB for all of a run): choose fewer layers=, or give the module less"
        )


def _with_four_axes(tensor: Tensor) -> Tensor:
    """Return a tensor as (batch, head, token, d): add a head to three axes, merge all axes before the last three."""
    return tensor[:, None] if tensor.ndim == AXES - 1 else tensor.reshape(-1, *tensor.shape[-3:])


def _tokens(tokens: Sequence[str | Token] | None, n: int, axis: str) -> tuple[Token, ...]:
    """Return labels as tokens; if there are none, the numbers of all `n` queries or keys (`axis`, for the message)."""
    labels = [str(number) for number in range(n)] if tokens is None else list(tokens)
    if not 0 < len(labels) <= n:
        raise RecordError(f"there are {len(labels)} tokens for {n} {axis}")
    return tuple(
        Token(text=label, piece=label) if isinstance(label, str) else label for label in labels
    )
