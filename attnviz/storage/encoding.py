"""Frozen dataclasses as JSON and back, each value checked against the type of its field; and ``.stats`` files.

A ``.stats`` file is safetensors: the arrays, and in its metadata everything else as JSON. A dataclass is written with a
name that stands for it, and read back as the class of that name only, each value checked by msgspec.
"""

from __future__ import annotations

import hashlib
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
from attnviz.storage import files
from attnviz.storage.files import check_ending, check_is_file, write_whole
from attnviz.text.display import clip, visible

SUFFIX = ".stats"
FORMAT = "attnviz stats"  # metadata key for the content of a ``.stats`` file
COMPRESS_FROM = 2**16  # bytes; smaller arrays are not compressed
# The largest factor by which an array may be compressed: a small damaged file must not fill the memory.
MOST_COMPRESSION = 256
VERSION = 2  # of ``.stats`` files
_T = TypeVar("_T")
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


def with_nulls(value: object) -> object:
    """Convert a value for JSON, at any depth: arrays and tuples become lists, numbers that are not finite null."""
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
        return f"an array of {value.dtype}"
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
    hints = {name: hint for name, hint in _hints(kind).items() if name not in apart}
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


def _check_shapes(value: object) -> None:
    """Refuse a dataclass with arrays whose types or shapes differ from their annotations, such as ``Int[..., "a b"]``.

    Axes of one name must have one length in all fields.
    """
    kind: type = type(value)
    with jaxtyped("context"):
        for name, hint in _hints(kind).items():
            is_array = hasattr(hint, "dim_str")  # an annotation of jaxtyping
            if is_array and not isinstance(getattr(value, name), hint):
                raise ValueError(f"{name} is no {hint}")


def write(value: object, path: str | os.PathLike[str]) -> Path:
    """Write a frozen dataclass as a ``.stats`` file. Raises OutputError."""
    check_ending(path, (SUFFIX,), "what was measured is")
    return write_whole(path, to_bytes(value))


def to_bytes(value: object) -> bytes:
    """Return the content of a ``.stats`` file."""
    from safetensors.numpy import save

    arrays: dict[str, np.ndarray] = {}
    packed = _pack(value, arrays)
    metadata = {"format": FORMAT, "version": VERSION, "stats": packed}
    return save(arrays, {"attnviz": json.dumps(metadata | {"digest": _digest(packed, arrays)})})


def _digest(packed: object, arrays: Mapping[str, np.ndarray]) -> str:
    """Return a digest of everything in a ``.stats`` file, so that a file that was edited is recognised."""
    digest = hashlib.sha256(json.dumps(packed, sort_keys=True).encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def read(
    path: str | os.PathLike[str],
    classes: Collection[type],
    wanted: type[_T],
    fits: Callable[[_T], bool],
) -> _T:
    """Read a value of the class `wanted` from a ``.stats`` file.

    `classes` are the classes of all values in it. `fits` returns whether the parts of the value belong together.
    Raises FileFormatError: the file cannot be read, or contains something else.
    """
    from safetensors import safe_open

    name = visible(str(path))
    with files.as_file_error(path, "measurements of heads"):
        check_is_file(Path(path))
    with as_file_error(path):
        with safe_open(os.fspath(path), framework="numpy") as file:
            metadata = json.loads((file.metadata() or {})["attnviz"])
            if metadata["format"] != FORMAT or metadata["version"] != VERSION:
                raise FileFormatError(f"{name} was written by another version of attnviz")
            arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 - it is no mapping
        if metadata.get("digest") != _digest(metadata["stats"], arrays):
            raise FileFormatError(f"{name} was changed after attnviz wrote it")
        classes_by_name = {kind.__name__: kind for kind in classes}
        value = _unpack(metadata["stats"], arrays, classes_by_name)
        if isinstance(value, wanted) and fits(value):
            return value
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
        raise FileFormatError(f"{name} is damaged, or was not written by attnviz") from None


def _pack(value: object, arrays: dict[str, np.ndarray]) -> object:
    """Convert a value for JSON; arrays are collected in `arrays` and replaced by their keys."""
    if isinstance(value, np.ndarray):
        return _pack_array(value, arrays)
    if is_dataclass(value):
        members = {field.name: _pack(getattr(value, field.name), arrays) for field in fields(value)}
        return {"class": type(value).__name__, "fields": members}
    if isinstance(value, Mapping):
        pairs = [[_pack(key, arrays), _pack(entry, arrays)] for key, entry in value.items()]
        return {"mapping": pairs}
    if isinstance(value, tuple | list):
        return {"tuple": [_pack(entry, arrays) for entry in value]}
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise TypeError(f"a {type(value).__name__} cannot be written")


def _pack_array(array: np.ndarray, arrays: dict[str, np.ndarray]) -> dict[str, object]:
    """Add an array to `arrays`, compressed if that saves space, and return its key for JSON."""
    key = str(len(arrays))
    array = np.ascontiguousarray(array)
    arrays[key] = array
    if array.nbytes < COMPRESS_FROM:
        return {"array": key}
    compressed = zlib.compress(array.tobytes(), level=1)
    saves_space = len(compressed) < 0.8 * array.nbytes
    can_be_read = array.nbytes <= MOST_COMPRESSION * len(compressed)
    if not (saves_space and can_be_read):
        return {"array": key}
    arrays[key] = np.frombuffer(compressed, dtype=np.uint8)
    return {"array": key, "deflated": {"dtype": array.dtype.str, "shape": array.shape}}


def _unpack_array(compressed: np.ndarray, dtype: str, shape: Sequence[int]) -> np.ndarray:
    """Decompress an array.

    Raises ValueError: it would be larger than `MOST_COMPRESSION` allows, not as large as it says, or padded so that it
    seems to be compressed less.
    """
    kind = np.dtype(dtype)
    n_bytes = kind.itemsize * math.prod(shape)
    if kind.kind not in "biuf" or not 0 < n_bytes <= MOST_COMPRESSION * compressed.nbytes:
        raise ValueError("an array of another size than its numbers make")
    decompressor = zlib.decompressobj()
    data = decompressor.decompress(compressed.tobytes(), n_bytes + 1)
    if len(data) != n_bytes or not decompressor.eof or decompressor.unused_data:
        raise ValueError("an array of another size than it says")
    return np.frombuffer(data, dtype=kind).reshape(shape).copy()


def _unpack(value: Any, arrays: dict[str, np.ndarray], classes: Mapping[str, type]) -> Any:
    """Return the value that `_pack` converted, and remove its arrays from `arrays`.

    Raises an error of any kind: `_pack` did not convert this.
    """
    import msgspec

    if not isinstance(value, dict):
        return value
    # Beside its fields or the shape of its array, an object has one entry: the sort of value that it stands for.
    ((sort, content),) = [pair for pair in value.items() if pair[0] not in {"fields", "deflated"}]
    if sort == "array":
        # Each array belongs to one value: one that is named many times could fill the memory.
        array = arrays.pop(content)
        return _unpack_array(array, **value["deflated"]) if "deflated" in value else array
    if sort == "class":
        members = {name: _unpack(entry, arrays, classes) for name, entry in value["fields"].items()}
        try:
            instance: object = msgspec.convert(members, classes[content])
        except SettingsError as error:
            raise ValueError(str(error)) from None
        _check_shapes(instance)
        return instance
    if sort == "mapping":
        return {
            _unpack(key, arrays, classes): _unpack(entry, arrays, classes) for key, entry in content
        }
    if sort == "tuple":
        return tuple(_unpack(entry, arrays, classes) for entry in content)
    raise ValueError(f"{sort} is nothing that was written")
