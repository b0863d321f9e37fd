"""The attention interface of transformers, through which attnviz observes all attention of a Hugging Face model.

transformers lets a function be registered as an attention implementation. The one registered here calls the model's
native implementation, returns exactly its output, and passes query, key and value to the current run, so the forward
pass stays the model's own. For the time of a run it is registered under the native implementation's own name, since
some models compute something else where the name is another one.

Two mistakes give wrong numbers without any error: a registered function also needs a registered mask, or padding is
attended to; and `from_config(attn_implementation=...)` writes into its config. For a long text the full mask of all
queries and keys would be too large, so the library computes it for one block of queries at a time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, TypeAlias

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from attnviz.capture.stream import ForwardPass, Layer, MaskRows, Scoring, rows_at, span_of
from attnviz.errors import NoAttentionError
from attnviz.releases import mask_by_length, registered_mask, set_attention

# An implementation of attention, which returns its output, and perhaps its weights.
Function: TypeAlias = Callable[..., tuple[Tensor, Tensor | None]]
# Returns whether a run sees a layer, given its module, queries and keys.
IsShown: TypeAlias = Callable[[nn.Module, Tensor, Tensor], bool]
_watching: ContextVar[tuple[ForwardPass, IsShown] | None] = ContextVar(
    "attnviz_watching", default=None
)
_whole_masks: ContextVar[bool] = ContextVar("attnviz_whole_masks", default=False)
# The most pairs of query and key (2,048 tokens) for which the full mask is computed at once.
LARGE = 2**22
ROWS = 256  # the number of queries per block when the mask is computed in blocks
# Keywords of a layer that are read below, are already part of the mask, or do not affect the weights.
_KNOWN = (
    {"dropout", "scaling", "is_causal", "softcap", "position_bias", "s_aux", "sliding_window"}
    | {"position_ids", "position_embeddings", "cache_position", "past_key_values", "cache"}
    | {"use_cache", "output_attentions", "output_hidden_states", "return_dict"}
)


@contextmanager
def show_layers(
    run: ForwardPass, is_shown: IsShown = lambda *_: True, *, whole_masks: bool = False
) -> Iterator[None]:
    """Pass the layers of any model that uses a watched implementation to `run`, until the block ends.

    With `whole_masks`, the masks of long texts are computed in full too, for models that do more with a mask than pass
    it on.
    """
    watching_token, masks_token = _watching.set((run, is_shown)), _whole_masks.set(whole_masks)
    try:
        yield
    finally:
        _watching.reset(watching_token)
        _whole_masks.reset(masks_token)


def _attention(
    native: str,
    library: Function | None,
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | MaskRows | None,
    **options: Any,
) -> tuple[Tensor, Tensor | None]:
    """Run the native implementation, pass the layer to the current run if it is shown there, return the output.

    transformers calls it for each layer. `library` is its own function of the name `native`, if it has one.
    """
    compute = _native(native, library, module)
    if callable(attention_mask):
        compute = partial(_run_in_blocks, compute)
    output, weights = compute(module, query, key, value, attention_mask, **options)
    watching = _watching.get()
    if watching is None:
        return output, weights
    forward_pass, is_shown = watching
    if is_shown(module, query, key):
        number = getattr(module, "layer_idx", None)
        is_last_only = query.shape[2] == 1 < key.shape[2]
        layer = Layer(
            number=number if isinstance(number, int) else -1,
            query=query,
            key=key,
            value=value,
            output=output,
            own_weights=_own_weights(weights, query, key),
            attend=partial(
                _attend_again, _native(native, library, module), module, query, key, options
            ),
            scoring=_scoring(native, module, attention_mask, options, is_last_only=is_last_only),
        )
        unknown = [
            name for name, value in options.items() if name not in _KNOWN and value is not None
        ]
        forward_pass.add_layer(layer, unknown)
        output = forward_pass.edited(output)
    return output, weights


def _own_weights(weights: object, query: Tensor, key: Tensor) -> Tensor | None:
    """Return the weights that the native implementation returned, or None if it returned none of the usual shape."""
    shape = (*query.shape[:3], key.shape[2])
    return weights if isinstance(weights, Tensor) and weights.shape == shape else None


def _attend_again(
    compute: Function,
    module: nn.Module,
    query: Float[Tensor, "batch head query d_k"],
    key: Float[Tensor, "batch group key d_k"],
    options: Mapping[str, Any],
    rows: Int64[Tensor, " row"],
    values: Float[Tensor, "seen d_v"],
    mask: Tensor | None,
) -> Float[Tensor, "batch row head d_v"]:
    """Run the native implementation on some rows with other values, in the number format of these values."""
    options = {**options, "is_causal": False}
    if (bias := options.get("position_bias")) is not None:
        bias = rows_at(bias, rows)[..., : len(values)]
        options["position_bias"] = bias.to(values.dtype)
    output, _ = compute(
        module,
        query[:, :, rows].to(values.dtype),
        key[:, :, : len(values)].to(values.dtype),
        values.expand(*key.shape[:2], *values.shape),
        mask if mask is None or mask.dtype == torch.bool else mask.to(values.dtype),
        **options,
    )
    return output


class _MaskNeededError(Exception):
    """Raised instead of computing a mask, to find out whether the library needs one."""


def _mask(
    make_mask: Callable[..., Tensor | None],
    *,
    q_length: int,
    kv_length: int,
    q_offset: Any = 0,
    **options: Any,
) -> Tensor | MaskRows | None:
    """Return the mask that the library's function computes, or a function that computes its rows if it is large."""
    options["kv_length"] = kv_length
    if q_length * kv_length <= LARGE or _whole_masks.get() or _watching.get() is None:
        return make_mask(q_length=q_length, q_offset=q_offset, **options)

    def fail(*_: object) -> Tensor:
        raise _MaskNeededError

    try:
        # The library decides whether a text needs a mask at all. If not, it returns None without calling `fail`.
        return make_mask(q_length=q_length, q_offset=q_offset, **{**options, "mask_function": fail})
    except _MaskNeededError:
        options |= {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": False}

    def rows(first: int, last: int) -> Tensor:
        """Return the mask of these queries, the last exclusive."""
        mask = make_mask(q_length=last - first, q_offset=q_offset + first, **options)
        assert mask is not None
        return mask

    return rows


def _run_in_blocks(
    compute: Function,
    module: nn.Module,
    query: Float[Tensor, "batch head query d_k"],
    key: Float[Tensor, "batch group key d_k"],
    value: Float[Tensor, "batch group key d_v"],
    mask: MaskRows,
    **options: Any,
) -> tuple[Float[Tensor, "batch query head d_v"], None]:
    """Run the native implementation on one block of queries at a time, with the keys that any of them may see."""
    bias = options.pop("position_bias", None)
    outputs = []
    for first in range(0, query.shape[2], ROWS):
        last = min(first + ROWS, query.shape[2])
        rows, block = slice(first, last), mask(first, last)
        keys = slice(*span_of(block))
        if bias is not None:
            options["position_bias"] = bias[:, :, rows, keys]
        output, _ = compute(
            module,
            query[:, :, rows],
            key[:, :, keys],
            value[:, :, keys],
            block[..., keys],
            **options,
        )
        outputs.append(output)
    return torch.cat(outputs, dim=1), None


def _native(name: str, library: Function | None, module: nn.Module) -> Function:
    """Return the implementation that the model would use: the library's, or the eager one in the model's own file."""
    if name == "eager":
        for base in type(module).__mro__:
            if function := getattr(sys.modules[base.__module__], "eager_attention_forward", None):
                return function  # type: ignore[no-any-return]
    if library is None:
        raise NoAttentionError(f"{type(module).__name__} has no eager implementation of its own")
    return library


def _scoring(
    native: str,
    module: nn.Module,
    mask: Tensor | MaskRows | None,
    options: Mapping[str, Any],
    *,
    is_last_only: bool,
) -> Scoring:
    """Return how the layer computes its scores, from the keywords that it was called with.

    Without a mask, ``sdpa`` uses the layer's ``is_causal`` flag, and ``eager`` hides no key. `is_last_only` says that
    the only query is the last token of the text, which sees all keys.
    """
    causal = options.get("is_causal")
    if causal is None:
        causal = getattr(module, "is_causal", mask is None)
    if is_last_only or (mask is None and native == "eager"):
        causal = False
    bias = options.get("position_bias")
    if bias is not None and not bias.any():
        bias = None  # T5 adds a bias of zeros in layers without one, such as cross-attention
    scaling = options.get("scaling")
    return Scoring(
        scaling=None if scaling is None else float(scaling),
        mask=mask,
        rounded=native == "eager",
        causal=bool(causal),
        bias=bias,
        softcap=options.get("softcap"),
        sinks=options.get("s_aux"),
        window=options.get("sliding_window"),
    )


def native_of(model: Any) -> str:
    """Return the implementation of a freshly loaded model: ``sdpa``, or ``eager`` if the model does not support it."""
    name = model.config._attn_implementation
    return "sdpa" if name == "sdpa" else "eager"


@contextmanager
def watched(model: Any, native: str) -> Iterator[None]:
    """Switch a loaded model to the watched form of a native implementation, ``sdpa`` or ``eager``, for the block.

    transformers 5 looks functions up by name: the watched form has the native one's until the block ends. All threads
    find it then, and those that watch nothing pass through it; no other thread may be within such a block. transformers
    4 looks up no function of the name ``eager``, so there the watched forms have names of their own.
    """
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS as MASKS
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS as FUNCTIONS

    make_mask = mask = MASKS[native]
    if native == "sdpa":
        mask = registered_mask(partial(_mask, mask_by_length(make_mask)))
    if not hasattr(AttentionInterface, "get_interface"):
        AttentionInterface.register(
            f"attnviz_{native}", partial(_attention, native, FUNCTIONS.get(native))
        )
        AttentionMaskInterface.register(f"attnviz_{native}", mask)
        set_attention(model, f"attnviz_{native}")
        yield
        return
    # Some models, such as Doge, look functions up in a table of their own.
    files = {sys.modules[type(module).__module__] for module in model.modules()}
    tables = [FUNCTIONS, *(vars(file).get("ALL_ATTENTION_FUNCTIONS") for file in files)]
    with ExitStack() as stack:
        for table in {id(table): table for table in tables if table is not None}.values():
            library = table.get(native)
            if isinstance(library, partial) and library.func is _attention:
                library = library.args[1]  # within another such block
            function = partial(_attention, native, library)
            stack.enter_context(_replaced(table, native, function))
        stack.enter_context(_replaced(MASKS, native, mask))
        set_attention(model, native)
        yield


@contextmanager
def _replaced(table: Any, name: str, function: Callable[..., Any]) -> Iterator[None]:
    """Put a function in place of another in a table of transformers until the block ends."""
    before = table.get(name)
    table[name] = function
    try:
        yield
    finally:
        del table[name]  # the table's own entry, before those that all tables share
        if table.get(name) is not before:
            table[name] = before
