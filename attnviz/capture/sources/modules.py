"""The attention of any torch module, seen while the caller's own code runs it.

Three ways of computing attention are seen:

- calls of `torch.nn.functional.scaled_dot_product_attention`, also under another name. The weights are computed again
  from query, key and mask, and proved against what the call returned;
- torch's own `MultiheadAttention`, and with it `TransformerEncoder`, `TransformerDecoder` and `Transformer`;
- attention written by hand, a softmax whose result is multiplied by values: the weights are that very tensor.
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

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode

from attnviz.attention import SOFTMAX, Attention, Kind, Note, Token, indices_of
from attnviz.capture.observers import CPU, Batch, Block, Observer, WeightCollector
from attnviz.capture.stream import ForwardPass, Layer, LayerObserver, Scoring, visible_keys
from attnviz.errors import InputError, ModelError, NoAttentionError, RecordError, SelectionError

AXES = 4  # of weights: batch, head, query, key
FUSED = functional.scaled_dot_product_attention
FUSED_INPUTS = ("query", "key", "value")
FUSED_PARAMETERS = (*FUSED_INPUTS, "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa")
MULTI_HEAD = functional.multi_head_attention_forward
MULTI_HEAD_SIGNATURE = inspect.signature(MULTI_HEAD)
# Functions after which weights are still weights.
PASS_THROUGH = frozenset(
    {"to", "type", "type_as", "float", "double", "half", "bfloat16"}
    | {"contiguous", "clone", "view", "reshape", "flatten", "squeeze", "unsqueeze", "expand"}
    | {"dropout", "masked_fill", "masked_fill_"}
)
# Functions that multiply weights by values.
PRODUCTS = frozenset({"matmul", "bmm", "__matmul__", "baddbmm", "einsum"})
KEEP_AT_MOST = 4 * 2**30  # bytes of weights that are kept of a run, and that a record may have
# The number of softmax results that wait for their product: one that no product takes soon is no attention.
PENDING = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenLayer:
    """One computation of attention; its weights are computed, and verified, when they are asked for."""

    path: str  # the module it happened in, as ``decoder.layers.0.self_attn``; empty for the watched one itself
    shape: tuple[int, ...]  # batch, head, query, key
    cross: bool  # whether the queries are of another sequence than the keys
    dropped: bool  # whether dropout then left some weights out, of those that the module used
    # what the fused function was given and returned, or the weights themselves; None where these are too large
    held: Layer | Float[Tensor, "batch head query key"] | None

    @property
    def kind(self) -> Kind:
        """The kind of attention: causal where no query of the first input sees a later key."""
        n_queries, n_keys = self.shape[2:]
        if self.cross:
            return "cross"
        if not isinstance(self.held, Layer):
            seen = None if self.held is None else self.held[:1] > 0
        elif self.held.scoring.mask is None:
            return "decoder" if self.held.scoring.causal else "encoder"
        else:
            found = visible_keys(self.held.scoring, 0, n_queries, n_keys, self.held.query.device)
            seen = found[:1].expand(-1, -1, n_queries, -1)
        return "encoder" if n_queries == 1 or seen is None or seen.triu(1).any() else "decoder"

    def show(self, run: ForwardPass, index: int, number: int) -> None:
        """Show a run the weights of one input of the batch, as the layer of this number.

        Raises NotVerifiedError: they are not the module's own.
        """
        one = slice(index, index + 1)
        if isinstance(self.held, Layer):
            query, key, value = self.held.query[one], self.held.key[one], self.held.value[one]
            output, scoring = self.held.output[one], self.held.scoring
            mask = scoring.mask
            if isinstance(mask, Tensor) and mask.ndim == AXES and len(mask) > 1:
                scoring = replace(scoring, mask=mask[one])
            if self.dropped:  # the output has lost some
                given: dict[str, Any] = {"attn_mask": scoring.mask, "is_causal": scoring.causal}
                given |= {"scale": scoring.scaling, "enable_gqa": key.shape[1] < query.shape[1]}
                output = FUSED(query, key, value, **given).transpose(1, 2)
            run.layer(
                Layer(
                    query=query, key=key, value=value, output=output, scoring=scoring, number=number
                )
            )
        elif self.held is not None:
            run.own(self.held[one], number)


@dataclass(frozen=True, slots=True)
class _Weights:
    """The result of a softmax, followed until it is multiplied by values."""

    tensor: Tensor  # held, so that its id stays its own
    shape: torch.Size
    before_dropout: Tensor | None


class AttentionTracer(TorchFunctionMode):
    """Traces each computation of attention in its thread while this mode is on; nothing else changes.

    Computations are passed on in the order in which they run. Calls of the fused function, by whose output its weights
    can be verified, go to `fused`; the result of a softmax that was multiplied by values, before dropout, to `own`.
    `cross` tells whether the queries are of another sequence than the keys, where that is known; `dropped`, whether
    dropout then left some weights out.
    """

    def __init__(self, shown: FunctionalRecorder | Watched) -> None:
        super().__init__()
        self._shown = shown
        self._pending: dict[int, _Weights] = {}

    def forget(self) -> None:
        """Forget the softmax results that still wait for their products."""
        self._pending = {}

    def __torch_function__(
        self,
        function: Callable[..., Any],
        _types: Any,
        args: Any = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call a function of torch, and look at what it was given and what it returned."""
        given = kwargs or {}
        if function is MULTI_HEAD:
            return self._multi_head(args, given)
        if function is FUSED:
            return self._fused(*args, **given)
        output = function(*args, **given)
        name = getattr(function, "__name__", "")
        if name == "softmax":
            dim = given.get("dim", args[1] if len(args) > 1 else None)
            if isinstance(output, Tensor) and dim in {-1, output.ndim - 1}:
                self._wait(_Weights(output, output.shape, None))
        elif self._pending and name in PASS_THROUGH and isinstance(output, Tensor):
            weights = self._pending.get(id(args[0]))
            if weights is not None:
                before = weights.before_dropout
                if name == "dropout" and not torch.equal(output, args[0]):
                    before = args[0]
                self._wait(_Weights(output, weights.shape, before))
        elif self._pending and name in PRODUCTS:
            self._multiply(name, args)
        return output

    def _multiply(self, name: str, args: tuple[Any, ...]) -> None:
        """Pass on weights that are now multiplied by values."""
        # einsum begins with an equation, and baddbmm with a sum; einsum may take its operands as a list.
        operands: Sequence[Any] = args[1:] if name in {"einsum", "baddbmm"} else args[:1]
        if operands and isinstance(operands[0], list | tuple):
            operands = operands[0]
        for operand in operands:
            weights = self._pending.pop(id(operand), None)
            if weights is not None and (name == "einsum" or args[-1].ndim == operand.ndim):
                self._own(weights)

    def _wait(self, weights: _Weights) -> None:
        self._pending[id(weights.tensor)] = weights
        while len(self._pending) > PENDING:
            self._pending.pop(next(iter(self._pending)))

    def _own(self, found: _Weights) -> None:
        used = found.tensor if found.before_dropout is None else found.before_dropout
        weights = used.detach().reshape(found.shape)
        while weights.ndim < AXES:  # (batch, query, key) is one head; (query, key) one input too
            weights = weights.unsqueeze(weights.ndim - 2)
        weights = weights.flatten(0, weights.ndim - AXES)
        self._shown.own(weights, cross=None, dropped=found.before_dropout is not None)

    def _fused(
        self,
        *args: Any,
        cross: bool | None = None,
        call: Callable[..., Tensor] = FUSED,
        **named: Any,
    ) -> Tensor:
        given = dict(zip(FUSED_PARAMETERS, args, strict=False)) | named
        output = call(**given)
        with torch.no_grad():
            query, key, value = (_with_four_axes(given[name].detach()) for name in FUSED_INPUTS)
            native = _with_four_axes(output.detach())
            mask = given.get("attn_mask")
            if mask is not None and mask.ndim == given["query"].ndim == AXES - 1:
                mask = mask[:, None]
            layer = Layer(
                query=query,
                key=key,
                value=value,
                output=native.transpose(1, 2),
                scoring=Scoring(
                    scaling=given.get("scale"), mask=mask, causal=given.get("is_causal", False)
                ),
            )
            self._shown.fused(layer, cross=cross, dropped=bool(given.get("dropout_p")))
        return output

    def _multi_head(self, args: tuple[Any, ...], given: Mapping[str, Any]) -> Any:
        """Call the function behind `nn.MultiheadAttention`, inside which nothing is seen from without."""
        bound = MULTI_HEAD_SIGNATURE.bind(*args, **given)
        bound.apply_defaults()
        wanted = bound.arguments
        cross = wanted["query"] is not wanted["key"]
        if not wanted["need_weights"]:
            with self._tracing_inside(cross=cross):
                return MULTI_HEAD(*bound.args, **bound.kwargs)
        is_averaged = wanted["average_attn_weights"]
        wanted["average_attn_weights"] = False
        output, weights = cast("tuple[Tensor, Tensor]", MULTI_HEAD(*bound.args, **bound.kwargs))
        dropped = wanted["training"] and wanted["dropout_p"] > 0
        seen = weights
        if dropped:
            # The weights returned have lost some: those before come from a run without dropout.
            wanted["training"] = False
            with torch.no_grad():
                _, seen = cast("tuple[Tensor, Tensor]", MULTI_HEAD(*bound.args, **bound.kwargs))
        self._shown.own(_with_four_axes(seen.detach()), cross=cross, dropped=dropped)
        return output, weights.mean(dim=-3) if is_averaged else weights

    @contextmanager
    def _tracing_inside(self, *, cross: bool) -> Iterator[None]:
        """Trace calls of the fused function in torch's own, to which the mode is blind, until the block ends."""
        with SHARED:
            # It may be another tracer's already.
            before, thread = functional.scaled_dot_product_attention, get_ident()

            def fused(*args: Any, **named: Any) -> Tensor:
                if get_ident() != thread:
                    return before(*args, **named)
                return self._fused(*args, cross=cross, call=before, **named)

            functional.scaled_dot_product_attention = fused
            try:
                yield
            finally:
                functional.scaled_dot_product_attention = before


# Held while something changes that all threads share: a function of torch, or whether it takes its fast path.
SHARED = RLock()
_runs: list[None] = []  # one for each model that runs as it is written, in any thread
_as_before = ExitStack()  # restores the fast paths of torch after the last of them


@contextmanager
def as_written() -> Iterator[None]:
    """Run models as they are written until the block ends, even where torch has a faster path or compiled them."""
    with SHARED:
        if not _runs:
            _as_before.callback(
                torch.backends.mha.set_fastpath_enabled, torch.backends.mha.get_fastpath_enabled()
            )
            torch.backends.mha.set_fastpath_enabled(False)
            if "torch._dynamo" in sys.modules:  # something may be compiled
                _as_before.enter_context(torch.compiler.set_stance("force_eager"))
        _runs.append(None)
    try:
        yield
    finally:
        with SHARED:  # the last of all threads leaves all as it was
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
        if rule in warnings.filters:  # what the block did with the rules stays
            warnings.filters.remove(rule)  # type: ignore[attr-defined]  # a list


class CausalityProbe(Observer):
    """Finds out whether any query attends to a later key; only the weights of such models tell."""

    found = False

    def observe(self, block: Block) -> None:
        """Look for weights above the diagonal."""
        self.found = self.found or bool(block.weights.triu(block.first_row + 1).any())


class FunctionalRecorder:
    """Passes on to a run the attention of a model that computes it outside the library's interface.

    With `splits`, attention over (batch x head, query, key) is split so that the heads of a sentence stand together.
    """

    def __init__(self, run: ForwardPass, name: str, *, splits: bool = False) -> None:
        self._run, self._name = run, name
        self._splits = splits or len(run.batch.real) == 1

    def fused(self, layer: Layer, *, cross: bool | None, dropped: bool) -> None:
        """Pass on a call of the fused function."""
        self._expect((*layer.query.shape[:3], layer.key.shape[2]))
        self._run.native = self._run.native.replace(SOFTMAX, "sdpa")
        self._run.layer(layer)

    def own(
        self, weights: Float[Tensor, "batch head query key"], *, cross: bool | None, dropped: bool
    ) -> None:
        """Pass on weights that the model itself computed.

        Raises NoAttentionError: they are not of all tokens, or an observer needs queries and keys too.
        """
        # a record goes without
        needed = [one for one in self._run.observers if not isinstance(one, WeightCollector)]
        if any(isinstance(one, LayerObserver) for one in needed):
            raise NoAttentionError(
                f"{self._name} computes its attention by itself: its weights can be shown, its queries and keys cannot"
            )
        if (
            self._splits
            and weights.shape[1] == 1
            and weights.shape[0] % len(self._run.batch.real) == 0
        ):
            weights = weights.reshape(len(self._run.batch.real), -1, *weights.shape[2:])
        self._expect(tuple(weights.shape))
        self._run.own(weights[:, :, -self._run.batch.real.shape[1] :])

    def _expect(self, shape: tuple[int, ...]) -> None:
        """Refuse weights that are not of all tokens on all tokens."""
        (n_batch, n_rows), (_, n_keys) = self._run.batch.real.shape, self._run.batch.real_keys.shape
        n_rows = n_keys if self._run.last_rows_only else n_rows
        if (shape[0], *shape[2:]) != (n_batch, n_rows, n_keys):
            raise NoAttentionError(
                f"{self._name} has no weights of all tokens on all tokens: a softmax that it multiplies by values has "
                f"the shape {shape}"
            )


@final
class Watched:
    """A watched module: a context, and afterwards the attention of its last run; see `watch`.

    Raises ModelError: it is no torch module, or its block is open already.
    """

    def __init__(self, module: nn.Module) -> None:
        if not hasattr(module, "named_modules"):
            raise ModelError(f"watch takes a torch.nn.Module, not {type(module).__name__}")
        self.layers: list[SeenLayer] = []
        self._module, self._tracer = module, AttentionTracer(self)
        self._open: ExitStack | None = None
        self._paths = dict[nn.Module, str]()  # of the modules inside
        # the path of each module that runs; None of one outside the watched
        self._running: list[str | None] = []
        self._thread = 0  # of the block

    def __enter__(self) -> Watched:
        if self._open is not None:
            raise ModelError("this block is open already: call attnviz.watch again for another one")
        with ExitStack() as stack:
            # Hooks on all modules there are: whose attention it is then shows, and copies of the module have none.
            self._thread = get_ident()
            self._paths = {module: path for path, module in self._module.named_modules()}
            stack.callback(register_module_forward_pre_hook(self._begin).remove)
            stack.callback(register_module_forward_hook(self._end, always_call=True).remove)
            stack.enter_context(_silence_compile_warning())
            stack.enter_context(trace_attention(self._tracer))
            self._open = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        opened, self._open = self._open, None
        self._running = []
        self._tracer.forget()
        if opened is not None:
            opened.close()

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
            tokens: a label for each query; there may be more queries (padding), which are left out. None numbers them.
            key_tokens: likewise for the keys; None where they are the queries'.
            kind: which attention, where the module has several.
            layers: which of `layers`, counted from 0; None takes all of the kind.
            index: which input of the batch.

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
        numbers = self._chosen(kind, layers)
        chosen = [self.layers[number] for number in numbers]
        shape = chosen[0].shape
        if len({layer.shape for layer in chosen}) > 1:
            raise SelectionError(f"the layers have different shapes: choose layers= from\n{self}")
        if not -shape[0] <= index < shape[0]:
            raise SelectionError(
                f"there is no input {index}: the batch had {shape[0]} (counted from 0)"
            )
        queries = _tokens(tokens, shape[2], "queries")
        same = key_tokens is None and (chosen[0].kind != "cross" or shape[2] == shape[3])
        keys = queries if same else _tokens(key_tokens, shape[3], "keys")
        size = 4 * len(chosen) * math.prod(shape[1:])
        if size > KEEP_AT_MOST or any(layer.held is None for layer in chosen):
            raise InputError(
                f"the weights of {len(chosen)} layers take {size / 2**30:.1f} GiB an input, more than attnviz keeps "
                f"({KEEP_AT_MOST / 2**30:.0f} GiB for all of a run): choose fewer layers=, or give the module less"
            )
        real, real_keys = (torch.ones(1, n, dtype=torch.bool, device=CPU) for n in shape[2:])
        batch = Batch(sentences=(), inputs={}, real=real, real_keys=real_keys)
        keep = WeightCollector()
        natives = {"sdpa" if isinstance(layer.held, Layer) else SOFTMAX for layer in chosen}
        run = ForwardPass(batch=batch, observers=[keep], native=" and ".join(sorted(natives)))
        for number in numbers:
            self.layers[number].show(run, index % shape[0], number)
        return Attention(
            weights=keep.weights(0)[:, :, : len(queries), : len(keys)],
            query_tokens=queries,
            key_tokens=keys,
            kind=chosen[0].kind,
            layers=numbers,
            model=type(self._module).__name__,
            receipt=run.receipt(""),
            text=" ".join(token.text for token in queries) if tokens is not None else "",
            notes=(Note("dropout"),) if any(layer.dropped for layer in chosen) else (),
        )

    def __str__(self) -> str:
        return "\n".join(
            f"{number}: {layer.path or type(self._module).__name__}, {layer.kind}, {layer.shape[1]} heads, "
            f"{layer.shape[2]} queries x {layer.shape[3]} keys"
            for number, layer in enumerate(self.layers)
        )

    def own(
        self, weights: Float[Tensor, "batch head query key"], *, cross: bool | None, dropped: bool
    ) -> None:
        """Keep weights that the module computed itself, as long as they fit."""
        size = weights.nbytes + sum(
            one.held.nbytes for one in self.layers if isinstance(one.held, Tensor)
        )
        held = weights.clone() if size <= KEEP_AT_MOST else None
        self._keep(weights.shape, held, cross=cross, dropped=dropped)

    def fused(self, layer: Layer, *, cross: bool | None, dropped: bool) -> None:
        """Keep what the weights of the fused function are computed from; where that is written over, it is refused."""
        held = replace(layer, output=layer.output.clone())
        self._keep((*layer.query.shape[:3], layer.key.shape[2]), held, cross=cross, dropped=dropped)

    def _keep(
        self,
        shape: Sequence[int],
        held: Layer | Tensor | None,
        *,
        cross: bool | None,
        dropped: bool,
    ) -> None:
        is_cross = shape[2] != shape[3] if cross is None else cross
        path = self._running[-1] if self._running else ""
        if path is not None:
            self.layers.append(
                SeenLayer(path=path, shape=tuple(shape), cross=is_cross, dropped=dropped, held=held)
            )

    def _chosen(self, kind: Kind | None, layers: Sequence[int] | None) -> tuple[int, ...]:
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
        """Keep where the module stands that runs; the watched module's own start forgets its last run."""
        if get_ident() == self._thread:
            is_again = torch._C._current_graph_task_id() >= 0
            if (
                module is self._module
                and not is_again
                and all(path is None for path in self._running)
            ):
                self.layers = []
                self._tracer.forget()
            self._running.append(
                self._paths.get(module, self._running[-1] if self._running else None)
            )

    def _end(self, _module: nn.Module, _inputs: Any, _output: Any) -> None:
        if get_ident() == self._thread:
            del self._running[-1:]


def watch(module: nn.Module) -> Watched:
    """Watch a torch module: the attention of its last run inside the block is kept.

    ::

        with attnviz.watch(model) as seen:
            model(x)
        record = seen.attention(tokens=["I", "love", "you"])

    The module computes the same as without, and is left unchanged. Seen are calls of `scaled_dot_product_attention`,
    torch's own layers, and a softmax that is multiplied by values, in the thread of the block.

    Args:
        module: any module. Compiled parts run as they are written.

    Raises:
        ModelError: it is no torch module.
    """
    return Watched(module)


def _with_four_axes(tensor: Tensor) -> Tensor:
    """Return a tensor as (batch, head, token, number): three axes get a single head, more axes are a batch."""
    return tensor[:, None] if tensor.ndim == AXES - 1 else tensor.reshape(-1, *tensor.shape[-3:])


def _tokens(given: Sequence[str | Token] | None, n: int, what: str) -> tuple[Token, ...]:
    labels = [str(number) for number in range(n)] if given is None else list(given)
    if not 0 < len(labels) <= n:
        raise RecordError(f"there are {len(labels)} tokens for {n} {what}")
    return tuple(Token(text=one, piece=one) if isinstance(one, str) else one for one in labels)
