"""Attention that another program saved: its weights and tokens, and what can be told from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace

import numpy as np
from jaxtyping import Float32

from attnviz.attention import ROUNDED_TOLERANCE, ROW_TOLERANCE, Attention, Kind, ShortRows, Token
from attnviz.errors import FileFormatError
from attnviz.storage.record import as_weights, read
from attnviz.text.display import visible

_NAMES = ("weights", "attention", "attentions")
_ROUNDED = "the rows sum to 1 only roughly: the file's numbers were rounded"
_BARE = asdict(Token(text="", piece=""))


def adopt(found: Mapping[str, object], name: str) -> Attention:
    """The record of a file that another program made, without a receipt.

    Args:
        found: what the file holds, by name.
        name: the file's, where it names no model.

    Raises:
        RecordError: weights or tokens are missing or do not fit together.
    """
    weights = as_weights(_find_weights(found))
    queries = _tokens(found, "query_tokens")
    keys = _tokens(found, "key_tokens")
    rounded = _is_rounded(weights)
    short_rows: tuple[ShortRows, ...] = ("rounded",) if rounded else ()
    return Attention(
        weights=weights,
        query_tokens=queries,
        key_tokens=keys,
        kind=read(found["kind"], Kind, "kind") if "kind" in found else _kind(weights, queries, keys),
        model=visible(read(found.get("model", visible(name)), str, "model")),
        text=read(found.get("text", ""), str, "text"),
        short_rows=short_rows,
        notes=(_ROUNDED,) if rounded else (),
    )


def _find_weights(found: Mapping[str, object]) -> object:
    named = [name for name in _NAMES if name in found]
    arrays = [name for name, value in found.items() if isinstance(value, np.ndarray) and value.dtype.kind == "f"]
    if named:
        return found[named[0]]
    if len(arrays) == 1:
        return found[arrays[0]]
    raise FileFormatError(f"it holds {'several arrays' if arrays else 'no attention'}: name the attention 'weights'")


def _tokens(found: Mapping[str, object], name: str) -> tuple[Token, ...]:
    where = name if name in found else "tokens"
    if where not in found:
        raise FileFormatError(
            f"it holds no {name}: attnviz needs 'tokens', or both 'query_tokens' and 'key_tokens', "
            f"a label for each row and each column"
        )
    labels = found[where]
    if isinstance(labels, list):
        labels = [_in_full(label, f"{where}[{i}]") for i, label in enumerate(labels)]
    tokens: tuple[Token, ...] = read(labels, tuple[Token, ...], where)
    return tuple(replace(token, text=visible(token.text), piece=visible(token.piece)) for token in tokens)


def _in_full(label: object, where: str) -> dict[str, object]:
    """A label, which may be text alone, with all that a token has."""
    if isinstance(label, str):
        return {**_BARE, "text": label, "piece": label}
    if isinstance(label, dict):
        return {**_BARE, "text": label.get("piece"), "piece": label.get("text"), **label}
    raise FileFormatError(f"{where} must be text, or an object with a text")


def _kind(
    weights: Float32[np.ndarray, "layer head query key"], queries: tuple[Token, ...], keys: tuple[Token, ...]
) -> Kind:
    if queries != keys:
        return "cross"
    return "decoder" if len(keys) > 1 and not np.triu(weights, 1).any() else "encoder"


def _is_rounded(weights: Float32[np.ndarray, "layer head query key"]) -> bool:
    off = np.abs(weights.sum(axis=-1, dtype=np.float64) - 1)
    return bool((off > ROW_TOLERANCE).any() and (off <= ROUNDED_TOLERANCE).all())
