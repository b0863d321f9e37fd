"""Frozen dataclasses as JSON and back, each value checked against the type of its field."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import asdict, fields, is_dataclass
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from attnviz.errors import FileFormatError, RecordError
from attnviz.text.display import clip
from attnviz.text.messages import Message, _

_hints = cache(get_type_hints)
# The types of JSON: msgspec's name for each, and its name in messages.
_JSON_TYPES = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
}


def to_text(labels: object, what: str) -> str:
    """Return fields as JSON on one line. Raises RecordError: they contain half a surrogate pair or NaN."""
    try:
        text = json.dumps(labels, ensure_ascii=False, allow_nan=False, default=plain)
        text.encode()
    except ValueError as error:
        raise RecordError(f"{what} cannot be written: {error}") from None
    return text


def from_text(text: str | bytes) -> dict[str, object]:
    """Return the fields of a JSON object.

    Raises FileFormatError: it is not JSON, not an object, or has NaN or a duplicate field.
    """
    try:
        content = json.loads(
            text, parse_constant=_refuse_constant, object_pairs_hook=_object_of_pairs
        )
    except ValueError as error:
        raise FileFormatError(f"it is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise FileFormatError(f"it must hold a JSON object, not {show(content)}")
    return content


def plain(value: object) -> object:
    """Convert a dataclass or a NumPy number for JSON. Raises TypeError: it is something else."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is no part of a record")


def with_nulls(value: object) -> Any:
    """Convert a value for JSON, at any depth.

    Arrays and tuples become lists, dataclasses objects, messages texts in the current language, and numbers that are
    not finite null.
    """
    if isinstance(value, Message):
        return _(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: with_nulls(getattr(value, item.name)) for item in fields(value)}
    match value:
        case np.ndarray() | np.generic():
            return with_nulls(value.tolist())
        case Mapping():
            return {str(name): with_nulls(entry) for name, entry in value.items()}
        case list() | tuple():
            return [with_nulls(entry) for entry in value]
        case float() if not math.isfinite(value):
            return None
    return value


def show(value: object) -> str:
    """Return a short description of a value, for error messages."""
    if isinstance(value, np.ndarray):
        return f"an array of {'text' if value.dtype.kind in 'US' else value.dtype}"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return clip(json.dumps(value), 40)


def _refuse_constant(name: str) -> float:
    """Raise ValueError for NaN or Infinity, which Python's parser accepts although JSON does not have them."""
    raise ValueError(f"{name} is no number")


def _object_of_pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return the fields of a JSON object. Raises ValueError: a field is there twice."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        name = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"{clip(name, 40)!r} is there twice")
    return fields


def decode(value: object, kind: Any, where: str) -> Any:
    """Convert a value from JSON to the type `kind`.

    Raises FileFormatError, which names the field, as in ``key_tokens[2].id``; `where` is the name of the value itself,
    such as ``key_tokens``.
    """
    import msgspec

    _check_text(value, where)
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise FileFormatError(_explain(str(error), value, kind, where)) from None


def decode_fields(
    content: Mapping[str, object], kind: type, *, apart: Collection[str] = ()
) -> dict[str, Any]:
    """Convert the fields of the dataclass `kind` from JSON; fields `apart` and unknown ones are left out.

    Raises FileFormatError: a field is missing or of another type.
    """
    names = [field.name for field in fields(kind) if field.name not in apart]
    hints = {name: _hints(kind)[name] for name in names}
    if missing := [name for name in hints if name not in content]:
        raise FileFormatError(f"it lacks {', '.join(missing)}")
    return {name: decode(content[name], hint, name) for name, hint in hints.items()}


def _check_text(value: object, where: str) -> None:
    """Refuse values that JSON cannot contain, at any depth: half a surrogate pair, a number that is not finite."""
    if isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value):
        raise FileFormatError(f"{where} holds half a character: {show(value)}")
    if isinstance(value, float) and not math.isfinite(value):
        raise FileFormatError(f"{where} must be a number, not {show(value)}")
    if isinstance(value, Mapping):
        for name, entry in value.items():
            _check_text(entry, f"{where}.{name}")
    elif isinstance(value, list | tuple):
        for index, entry in enumerate(value):
            _check_text(entry, f"{where}[{index}]")


def _explain(error: str, value: Any, kind: Any, where: str) -> str:
    """Rephrase a msgspec error for users: which field, which type is expected, and which value was found."""
    reason, _, path = error.partition(" - at `$")
    path = path.removesuffix("`")
    where += path
    if lacking := re.match(r"Object missing required field `(\w+)`", reason):
        return f"it lacks {where}.{lacking[1]}"
    in_words = re.sub("`([^`]*)`", lambda types: _types_in_words(types[1]), reason[1:])
    general = f"{where}: {reason[0].lower()}{in_words}"
    # For mappings msgspec gives `[...]` instead of the key, so the value cannot be found.
    if "[...]" in path or "at `key` in" in error:
        return general
    for name, index in re.findall(r"\.(\w+)|\[(\d+)\]", path):
        value = value[name] if name else value[int(index)]
    expected = re.match(r"Expected `([^`]*)`, got", reason)
    expected_type = _types_in_words(expected[1]) if expected else "text"
    if expected_type == "text" and (options := _options(kind)):
        return f"{where} must be one of {', '.join(options)}, not {show(value)}"
    return f"{where} must be {expected_type}, not {show(value)}" if expected else general


def _types_in_words(types: str) -> str:
    """Return types such as ``int | null`` in words, without null."""
    words = [_JSON_TYPES.get(name, name) for name in types.split(" | ") if name != "null"]
    return " or ".join(words) or types


def _options(kind: Any) -> tuple[str, ...]:
    """Return the texts that a type such as ``Literal["a", "b"] | None`` allows; none for other types."""
    if get_origin(kind) is Literal:
        return get_args(kind)
    for inner in get_args(kind):
        if options := _options(inner):
            return options
    return ()
