"""The one place that all attention of a Hugging Face model passes through, with attnviz looking on.

transformers lets a function be registered as an attention implementation. Ours calls the model's native
implementation, returns exactly its output, and shows query, key and value to whoever watches: the forward pass stays
the model's own. Two traps (each gives numbers that are wrong and says nothing): a registered function also needs a
registered mask, or padding is attended to; and `from_config(attn_implementation=...)` writes into its config. Of a long
text no mask of all queries and keys is made: the library makes it for a block of queries at a time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnviz.capture.stream import ForwardPass, Layer, MaskRows, Scoring, span_of

# which layers a run sees: by module, queries and keys
IsShown: TypeAlias = Callable[[nn.Module, Tensor, Tensor], bool]
_watching: ContextVar[tuple[ForwardPass, IsShown] | None] = ContextVar(
    "attnviz_watching", default=None
)
LARGE, ROWS = 2**22, 256
"""Pairs of a query and a key (2,048 tokens) up to which a mask is made whole; queries whose mask is made at once."""
_KNOWN = {
    "dropout",
    "scaling",
    "is_causal",
    "softcap",
    "position_bias",
    "s_aux",
    "sliding_window",
    "position_ids",
    "cache_position",
    "use_cache",
    "output_attentions",
    "output_hidden_states",
    "return_dict",
    "past_key_values",
    "cache",
    "position_embeddings",
}
"""Keywords of a layer that are read below, are already in the mask, or have no part in the weights."""


@contextmanager
def show_layers(run: ForwardPass, is_shown: IsShown = lambda *_: True) -> Iterator[None]:
    """While this lasts, `run` sees the layers to be shown of any model that uses a watched implementation."""
    token = _watching.set((run, is_shown))
    try:
        yield
    finally:
        _watching.reset(token)


def _attention(
    native: str,
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | MaskRows | None,
    **given: Any,
) -> tuple[Tensor, Tensor | None]:
    run = _native(native, module)
    run = partial(_in_rows, run) if isinstance(attention_mask, MaskRows) else run
    output, weights = run(module, query, key, value, attention_mask, **given)
    watching = _watching.get()
    if watching is not None and watching[1](module, query, key):
        number = getattr(module, "layer_idx", None)
        scoring = _scoring(
            native, module, attention_mask, given, is_one=query.shape[2] == 1 < key.shape[2]
        )
        layer = Layer(
            number=number if isinstance(number, int) else -1,
            query=query,
            key=key,
            value=value,
            output=output,
            scoring=scoring,
        )
        unknown = [name for name, what in given.items() if name not in _KNOWN and what is not None]
        watching[0].layer(layer, unknown)
    return output, weights


class _MaskNeededError(Exception):
    """Raised in place of what a mask would hold."""


def _mask(
    make: Callable[..., Tensor | None], *, q_length: int, kv_length: int, **given: Any
) -> object:
    """What the library's function makes, or where that would be large what makes its rows."""
    if q_length * kv_length <= LARGE:
        return make(q_length=q_length, kv_length=kv_length, **given)

    def needed(*_: object) -> Tensor:
        raise _MaskNeededError

    try:  # the library knows when it needs none
        return make(q_length=q_length, kv_length=kv_length, **{**given, "mask_function": needed})
    except _MaskNeededError:
        skip = {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": False}
        return MaskRows(
            partial(make, kv_length=kv_length, **{**given, **skip}),
            q_length,
            given.pop("q_offset", 0),
        )


def _in_rows(
    run: Callable[..., tuple[Tensor, Tensor | None]],
    module: nn.Module,
    query: Float[Tensor, "batch head query d_k"],
    key: Float[Tensor, "batch group key d_k"],
    value: Float[Tensor, "batch group key d_v"],
    mask: MaskRows,
    **given: Any,
) -> tuple[Float[Tensor, "batch query head d_v"], None]:
    """The native implementation on a block of queries at a time, and the keys that one of them may see."""
    bias, parts = given.pop("position_bias", None), []
    for first in range(0, query.shape[2], ROWS):
        rows = slice(first, min(first + ROWS, query.shape[2]))
        part = mask.rows(rows.start, rows.stop)
        keys = slice(*span_of(part))
        more = {} if bias is None else {"position_bias": bias[:, :, rows, keys]}
        made, _ = run(
            module,
            query[:, :, rows],
            key[:, :, keys],
            value[:, :, keys],
            part[..., keys],
            **given,
            **more,
        )
        parts.append(made)
    return torch.cat(parts, dim=1), None


def _native(name: str, module: nn.Module) -> Callable[..., tuple[Tensor, Tensor | None]]:
    """The implementation that the model would have used: the library's, or the eager one of the model's own file."""
    if name == "eager":
        for base in type(module).__mro__:
            if own := getattr(sys.modules[base.__module__], "eager_attention_forward", None):
                return own  # type: ignore[no-any-return]
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    return ALL_ATTENTION_FUNCTIONS[name]  # type: ignore[no-any-return]


def _scoring(
    native: str,
    module: nn.Module,
    mask: Tensor | MaskRows | None,
    given: Mapping[str, Any],
    *,
    is_one: bool = False,
) -> Scoring:
    """How the layer computes its weights. Without a mask, ``sdpa`` goes by the layer's flag, ``eager`` by none.

    `is_one` is a query alone on the keys of all tokens before it, which sees them all.
    """
    unmasked, causal = mask is None, given.get("is_causal")
    causal = getattr(module, "is_causal", unmasked) if causal is None else causal
    scaling, bias = given.get("scaling"), given.get("position_bias")
    return Scoring(
        scaling=None if scaling is None else float(scaling),
        mask=mask,
        rounded=native == "eager",
        causal=bool(causal) and not is_one and not (unmasked and native == "eager"),
        bias=bias
        if bias is not None and bias.any()
        else None,  # T5 adds zeros where it has none, as across sentences
        softcap=given.get("softcap"),
        sinks=given.get("s_aux"),
        window=given.get("sliding_window"),
    )


def native_of(model: Any) -> str:
    """Which implementation a freshly loaded model uses: ``sdpa``, or ``eager`` where it cannot use that."""
    name = model.config._attn_implementation
    return "sdpa" if name == "sdpa" else "eager"


def watch(model: Any, native: str) -> None:
    """Switch a loaded model to ``attnviz_sdpa`` or ``attnviz_eager``, the watched form of a native implementation."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS

    name, made = f"attnviz_{native}", ALL_MASK_ATTENTION_FUNCTIONS[native]
    AttentionInterface.register(name, partial(_attention, native))
    AttentionMaskInterface.register(name, partial(_mask, made) if native == "sdpa" else made)
    model.set_attn_implementation(name)
