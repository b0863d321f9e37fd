"""Frozen dataclasses as JSON and back, each value checked against the type of its field; and ``.stats`` files.

A ``.stats`` file is safetensors: the arrays, and in its metadata everything else as JSON. A dataclass is written with a
name that stands for it, and read back as the class of that name only, each value checked by msgspec.
"""

from __future__ import annotations

import json
import math
import os
import re
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from jaxtyping import jaxtyped

from attnviz.errors import FileFormatError, RecordError, SettingsError
from attnviz.storage.files import check_ending, write_whole
from attnviz.text.display import clip, visible

SUFFIX = ".stats"
FORMAT = "attnviz stats"  # metadata key for the content of a ``.stats`` file
WORTH_IT, MOST_DEFLATED = (
    2**16,
    256,
)  # smaller arrays (in bytes) are not compressed; none may be compressed by more than this factor
VERSION = 1  # of ``.stats`` files
_T = TypeVar("_T")
_hints = cache(get_type_hints)
_WANTED = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
}
"""The types of JSON, as msgspec names them and as a message does."""


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
        found = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_each_once)
    except ValueError as error:
        raise FileFormatError(f"it is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise FileFormatError(f"it must hold a JSON object, not {show(found)}")
    return found


def plain(value: object) -> object:
    """Convert a dataclass or a NumPy number for JSON. Raises TypeError: it is something else."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is no part of a record")


def with_nulls(value: object) -> object:
    """Convert a value for JSON, at any depth: arrays and tuples become lists, numbers that are not finite null."""
    match value:
        case np.ndarray() | np.generic():
            return with_nulls(value.tolist())
        case Mapping():
            return {str(name): with_nulls(one) for name, one in value.items()}
        case list() | tuple():
            return [with_nulls(one) for one in value]
        case float() if not math.isfinite(value):
            return None
    return value


def show(value: object) -> str:
    """Return a short description of a value, for error messages."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return clip(json.dumps(value), 40)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _each_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        name = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"{clip(name, 40)!r} is there twice")
    return found


def decode(value: object, kind: Any, where: str) -> Any:
    """Convert a value from JSON to a type.

    Raises FileFormatError, which names the field, as in ``key_tokens[2].id``.
    """
    import msgspec

    _check_text(value, where)
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise FileFormatError(_explain(str(error), value, kind, where)) from None


def decode_fields(
    found: Mapping[str, object], kind: type, *, apart: Collection[str] = ()
) -> dict[str, Any]:
    """Convert the fields of a dataclass from JSON; unknown fields are ignored. Raises FileFormatError.

    Fields `apart` are left out.
    """
    hints = {name: hint for name, hint in _hints(kind).items() if name not in apart}
    if missing := [name for name in hints if name not in found]:
        raise FileFormatError(f"it lacks {', '.join(missing)}")
    return {name: decode(found[name], hint, name) for name, hint in hints.items()}


def _check_text(value: object, where: str) -> None:
    """Refuse values that JSON cannot contain, at any depth: half a surrogate pair, a number that is not finite."""
    if isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value):
        raise FileFormatError(f"{where} holds half a character: {show(value)}")
    if isinstance(value, float) and not math.isfinite(value):
        raise FileFormatError(f"{where} must be a number, not {show(value)}")
    if isinstance(value, Mapping):
        for name, one in value.items():
            _check_text(one, f"{where}.{name}")
    elif isinstance(value, list | tuple):
        for i, one in enumerate(value):
            _check_text(one, f"{where}[{i}]")


def _explain(error: str, value: Any, kind: Any, where: str) -> str:
    """Rephrase a msgspec error for users: which field, which type is expected, and which value was found."""
    reason, _, path = error.partition(" - at `$")
    where += (path := path.removesuffix("`"))
    # for mappings msgspec gives `[...]`, not the key, so the value cannot be found
    is_found = "[...]" not in path and "at `key` in" not in error
    for name, index in re.findall(r"\.(\w+)|\[(\d+)\]", path if is_found else ""):
        value = value[name] if name else value[int(index)]
    if lacking := re.match(r"Object missing required field `(\w+)`", reason):
        return f"it lacks {where}.{lacking[1]}"
    expected = re.match(r"Expected `([^`]*)`, got", reason) if is_found else None
    if (
        is_found
        and (expected is None or _words(expected[1]) == "text")
        and (options := _options(kind))
    ):
        return f"{where} must be one of {', '.join(options)}, not {show(value)}"
    if expected:
        return f"{where} must be {_words(expected[1])}, not {show(value)}"
    reason = reason[0].lower() + re.sub("`([^`]*)`", lambda types: _words(types[1]), reason[1:])
    return f"{where}: {reason}"


def _words(types: str) -> str:
    """Return types such as ``int | null`` in words, without null."""
    return (
        " or ".join(_WANTED.get(one, one) for one in types.split(" | ") if one != "null") or types
    )


def _options(kind: Any) -> tuple[str, ...]:
    """Return the texts that a type such as ``Literal["a", "b"] | None`` allows; none for other types."""
    inner = get_args(kind)
    return (
        inner
        if get_origin(kind) is Literal
        else next((found for one in inner if (found := _options(one))), ())
    )


def _check_shapes(made: object) -> None:
    """Refuse arrays whose types or shapes differ from their annotations; axes of one name have one length."""
    kind: type = type(made)
    with jaxtyped("context"):
        for name, hint in _hints(kind).items():
            if hasattr(hint, "dim_str") and not isinstance(getattr(made, name), hint):
                raise ValueError(f"{name} is no {hint}")


def write(value: object, path: str | os.PathLike[str]) -> Path:
    """Write a frozen dataclass as a ``.stats`` file. Raises OutputError."""
    check_ending(path, (SUFFIX,), "what was measured is")
    return write_whole(path, to_bytes(value))


def to_bytes(value: object) -> bytes:
    """Return the content of a ``.stats`` file."""
    from safetensors.numpy import save as serialised

    arrays: dict[str, np.ndarray] = {}
    described = json.dumps({"format": FORMAT, "version": VERSION, "stats": _pack(value, arrays)})
    return serialised(arrays, {"attnviz": described})


def read(
    path: str | os.PathLike[str],
    classes: Collection[type],
    wanted: type[_T],
    fits: Callable[[_T], bool],
) -> _T:
    """Read a value of the class `wanted` from a ``.stats`` file.

    It may contain values of these classes. Raises FileFormatError, in one line: the file cannot be read, or contains
    something else.
    """
    from safetensors import safe_open

    name = visible(str(path))
    with as_file_error(path):
        # the message of safetensors for a missing file is not suitable for users
        Path(path).open("rb").close()
        with safe_open(os.fspath(path), framework="numpy") as file:
            described = json.loads((file.metadata() or {})["attnviz"])
            if described["format"] != FORMAT or described["version"] != VERSION:
                raise FileFormatError(f"{name} was written by another version of attnviz")
            arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 - it is no mapping
        found = _unpack(described["stats"], arrays, {one.__name__: one for one in classes})
        if isinstance(found, wanted) and fits(found):
            return found
        raise ValueError("parts that do not fit together")


@contextmanager
def as_file_error(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn any error of reading or using the numbers of a ``.stats`` file into a FileFormatError."""
    from msgspec import ValidationError
    from safetensors import SafetensorError

    name = visible(str(path))
    try:
        yield
    except OSError as error:
        raise FileFormatError(
            f"{name} cannot be read: {visible(str(error.strerror or error))}"
        ) from None
    except (
        SafetensorError,
        ValidationError,
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
        RecursionError,
        MemoryError,
        zlib.error,
    ):
        raise FileFormatError(f"{name} holds no stats of attnviz's, or is not whole") from None


def _pack(value: object, arrays: dict[str, np.ndarray]) -> object:
    """Convert a value for JSON; arrays are collected in `arrays` and replaced by their keys."""
    if isinstance(value, np.ndarray):
        name, whole = str(len(arrays)), np.ascontiguousarray(value)
        arrays[name], deflated = (
            whole,
            b"" if whole.nbytes < WORTH_IT else zlib.compress(whole.tobytes(), level=1),
        )
        if not 0 < len(deflated) < 0.8 * whole.nbytes or whole.nbytes > MOST_DEFLATED * len(
            deflated
        ):
            return {"array": name}
        arrays[name] = np.frombuffer(deflated, dtype=np.uint8)
        return {"array": name, "deflated": {"dtype": whole.dtype.str, "shape": whole.shape}}
    if is_dataclass(value):
        members = {field.name: _pack(getattr(value, field.name), arrays) for field in fields(value)}
        return {"class": type(value).__name__, "fields": members}
    if isinstance(value, Mapping):
        return {"mapping": [[_pack(key, arrays), _pack(one, arrays)] for key, one in value.items()]}
    if isinstance(value, tuple | list):
        return {"tuple": [_pack(one, arrays) for one in value]}
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise TypeError(f"a {type(value).__name__} cannot be written")


def _inflated(deflated: np.ndarray, dtype: str, shape: Sequence[int]) -> np.ndarray:
    """Decompress an array.

    Raises ValueError: it would be larger than `MOST_DEFLATED` allows, or not as large as it says.
    """
    kind = np.dtype(dtype)
    n_bytes = kind.itemsize * math.prod(shape)
    if kind.kind not in "biuf" or not 0 < n_bytes <= MOST_DEFLATED * deflated.nbytes:
        raise ValueError("an array of another size than its numbers make")
    made = zlib.decompressobj().decompress(deflated.tobytes(), n_bytes + 1)
    if len(made) != n_bytes:
        raise ValueError("an array of another size than it says")
    return np.frombuffer(made, dtype=kind).reshape(shape).copy()


def _unpack(value: Any, arrays: Mapping[str, np.ndarray], classes: Mapping[str, type]) -> Any:
    import msgspec

    if not isinstance(value, dict):
        return value
    ((sort, held),) = [pair for pair in value.items() if pair[0] not in {"fields", "deflated"}]
    if sort == "array":
        return _inflated(arrays[held], **value["deflated"]) if "deflated" in value else arrays[held]
    if sort == "class":
        members = {name: _unpack(one, arrays, classes) for name, one in value["fields"].items()}
        try:
            made: object = msgspec.convert(members, classes[held])
        except SettingsError as error:
            raise ValueError(str(error)) from None
        _check_shapes(made)
        return made
    if sort == "mapping":
        return {_unpack(key, arrays, classes): _unpack(one, arrays, classes) for key, one in held}
    if sort == "tuple":
        return tuple(_unpack(one, arrays, classes) for one in held)
    raise ValueError(f"{sort} is nothing that was written")
