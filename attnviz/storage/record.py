"""A record's labels as plain values and back: one dictionary for all formats, checked as it is read."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass, replace
from functools import cache
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
from jaxtyping import Float32

from attnviz.attention import AXES, Attention, Receipt, Token
from attnviz.errors import FileFormatError, RecordError
from attnviz.text.display import clip, visible

FORMAT = "attnviz"
VERSION = 1

_WANTED: dict[object, str] = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


def describe(record: Attention) -> dict[str, object]:
    """Everything but the weights; a receipt brings a digest, which ties it to the weights and the labels."""
    labels = {name: getattr(record, name) for name in _hints(Attention)}
    described = {"format": FORMAT, "version": VERSION, **labels}
    return described if record.receipt is None else {**described, "digest": _digest(labels, record.weights)}


def rebuild(found: Mapping[str, object]) -> Attention:
    """The record of a file that attnviz wrote.

    Raises:
        RecordError: a label is missing, of another type or does not fit, or was changed after the receipt.
    """
    version = read(found.get("version"), int, "version")
    if version != VERSION:
        raise FileFormatError(f"it is of version {version}, but this attnviz reads version {VERSION}: update attnviz")
    if "weights" not in found:
        raise FileFormatError("it lacks weights")
    weights = as_weights(found["weights"])
    labels = _members(found, Attention)
    digest = found.get("digest")
    if (labels["receipt"] is not None or digest is not None) and digest != _digest(labels, weights):
        raise FileFormatError("its weights or labels were changed after the receipt was issued")
    return Attention(weights=weights, **_harmless(labels))


def read(value: object, wanted: Any, where: str) -> Any:  # noqa: ANN401  a type, and a value of that type
    """A value from JSON as the type that a field is annotated with.

    Raises:
        FileFormatError: it is of another type; the message says where it stands.
    """
    options = get_args(wanted)
    if isinstance(wanted, UnionType):  # only ever `... | None`
        return None if value is None else read(value, options[0], where)
    if get_origin(wanted) is tuple:
        if not isinstance(value, list):
            raise FileFormatError(f"{where} must be a list, not {_named(value)}")
        each = options[:1] * len(value) if options[-1] is Ellipsis else options
        if len(value) != len(each):
            raise FileFormatError(f"{where} must hold {len(each)} values, not {len(value)}")
        return tuple(read(value[i], kind, f"{where}[{i}]") for i, kind in enumerate(each))
    if wanted is Token or wanted is Receipt:
        if not isinstance(value, dict):
            raise FileFormatError(f"{where} must be an object, not {_named(value)}")
        return wanted(**_members(value, wanted, f"{where}."))
    return _read_one(value, wanted, where)


def _read_one(value: object, wanted: object, where: str) -> object:
    if get_origin(wanted) is Literal:
        options = get_args(wanted)
        if not isinstance(value, str) or value not in options:
            raise FileFormatError(f"{where} must be one of {', '.join(options)}, not {_named(value)}")
        return value
    if wanted is float and type(value) is int:
        return float(value)
    # By exact type: to isinstance, true is a whole number.
    if type(value) is not wanted or (isinstance(value, float) and not math.isfinite(value)):
        raise FileFormatError(f"{where} must be {_WANTED[wanted]}, not {_named(value)}")
    if isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value):
        raise FileFormatError(f"{where} holds half a character: {_named(value)}")
    return value


def as_weights(value: object) -> Float32[np.ndarray, "layer head query key"]:
    """Nested lists or an array as float32; one layer, or one head of one, may come without its axis.

    Raises:
        FileFormatError: something in it is no number, its rows differ in length, or it has other axes.
    """
    if isinstance(value, list):
        _check_numbers(value)
        try:
            value = np.array(value, dtype=np.float64)
        except ValueError:
            raise FileFormatError("its weights' rows differ in length") from None
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiu":
        raise FileFormatError(f"its weights must be numbers, not {_named(value)}")
    missing = len(AXES) - value.ndim
    if missing not in {0, 1, 2}:
        raise FileFormatError(
            f"its weights must have the axes ({', '.join(AXES)}), of which the first two may be left out, "
            f"but have shape {value.shape}"
        )
    return value.reshape((1,) * missing + value.shape).astype(np.float32)


def to_text(fields: Mapping[str, object]) -> str:
    """The fields as JSON.

    Raises:
        RecordError: a text holds half a character, or a number is not finite.
    """
    try:
        text = json.dumps(fields, ensure_ascii=False, allow_nan=False, default=_plain)
        text.encode()
    except ValueError as error:
        raise RecordError(f"a label of the record cannot be written: {error}") from None
    return text


def from_text(text: str | bytes) -> dict[str, object]:
    """The fields that a JSON text holds.

    Raises:
        FileFormatError: it is not JSON, holds NaN, names a field twice, or is no object.
    """
    try:
        fields = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_each_once)
    except ValueError as error:
        raise FileFormatError(f"it is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise FileFormatError(f"it must hold a JSON object, not {_named(fields)}")
    return fields


def _digest(labels: Mapping[str, object], weights: Float32[np.ndarray, "layer head query key"]) -> str:
    """What differs whenever a label or a weight does, whichever program wrote them down."""
    text = json.dumps([labels, weights.shape], default=_plain)
    canonical = json.dumps(json.loads(text, parse_int=float), sort_keys=True)  # to some, 1.0 is 1
    digest = hashlib.sha256(canonical.encode())
    digest.update(weights.astype("<f4").tobytes())
    return digest.hexdigest()


def _harmless(labels: dict[str, Any]) -> dict[str, Any]:
    """The labels with nothing in them, of what every view prints, that a terminal would obey.

    attnviz writes none, but a file with an escape sequence for a token is easily made and sent to someone.
    """
    shown = dict(labels, model=visible(labels["model"]), notes=tuple(map(visible, labels["notes"])))
    for name in ("query_tokens", "key_tokens"):
        shown[name] = tuple(replace(token, text=visible(token.text)) for token in labels[name])
    if (receipt := labels["receipt"]) is not None:
        shown["receipt"] = replace(receipt, native=visible(receipt.native), dtype=visible(receipt.dtype))
    return shown


_LATER = frozenset({"target"})
"""Labels that files have had since, and may lack: they then are what a record has by default."""


@cache
def _hints(kind: type) -> dict[str, Any]:
    """The fields of a token, a receipt or a record, and their types; the weights are kept apart."""
    return {name: hint for name, hint in get_type_hints(kind).items() if name != "weights"}


def _members(found: Mapping[str, object], kind: type, where: str = "") -> dict[str, Any]:
    hints = _hints(kind)
    if missing := [where + name for name in hints if name not in found and name not in _LATER]:
        raise FileFormatError(f"it lacks {', '.join(missing)}")
    return {name: read(found[name], hint, where + name) for name, hint in hints.items() if name in found}


def _check_numbers(value: list[object], axes: int = 1) -> None:
    """Refuse what numpy would take for a number without a word, such as "0.5" and true."""
    if value and isinstance(value[0], list) and axes < len(AXES):
        for inner in value:
            if not isinstance(inner, list):
                raise FileFormatError("its weights' rows differ in length")
            _check_numbers(inner, axes + 1)
    elif not set(map(type, value)) <= {int, float}:
        wrong = next(item for item in value if type(item) not in {int, float})
        raise FileFormatError(f"its weights must be numbers, but hold {_named(wrong)}")


def _plain(value: object) -> object:
    """What JSON can write of a token, a receipt or a number of numpy's."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is no part of a record")


def _named(value: object) -> str:
    """A value as an error's message names it: short."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return clip(json.dumps(value), 40)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _each_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        name = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"{clip(name, 40)!r} is there twice")
    return fields
