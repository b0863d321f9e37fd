"""Values written as ``.stats`` files and read back: what runs go on from, what is merged and drawn again.

A file is safetensors: the arrays, and in its metadata everything else as JSON. What is no array is written with the
name of its class, and read back as a class of that name only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, TypeAlias, get_args, get_origin, get_type_hints

import numpy as np

from attnviz.errors import FileFormatError, OutputError
from attnviz.storage.files import write_whole
from attnviz.text.display import visible

SUFFIX = ".stats"

ONE, TWO = "attnviz stats", "attnviz stats of two models"
"""What a file holds."""

WORDS = {ONE: "one model", TWO: "two models"}

VERSION = 2

Classes: TypeAlias = Mapping[str, type]
"""Those that may be read, by their names."""


def write(value: object, path: str | os.PathLike[str], kind: str) -> Path:
    """Write a value, whole or not at all.

    Args:
        value: a frozen dataclass.
        path: where.
        kind: what it is: `ONE` or `TWO`.

    Returns:
        The path.

    Raises:
        OutputError: another ending than ``.stats``, or a file that cannot be written.
    """
    from safetensors.numpy import save as serialised

    path = Path(path)
    if path.suffix.lower() != SUFFIX:
        raise OutputError(f"{visible(str(path))}: what was measured is saved as {SUFFIX}, not {path.suffix!r}")
    arrays: dict[str, np.ndarray] = {}
    described = json.dumps({"format": kind, "version": VERSION, "stats": _plain(value, arrays)})
    written = serialised(arrays, {"attnviz": described})
    return write_whole(path, lambda temporary: temporary.write_bytes(written))


def read(path: str | os.PathLike[str], kind: str, classes: Classes, is_whole: Callable[[Any], bool]) -> Any:  # noqa: ANN401 - whatever was written
    """Read what was written.

    Args:
        path: where it lies.
        kind: what is looked for.
        classes: that may be in it.
        is_whole: whether what was read is what was looked for, and its parts fit together.

    Raises:
        FileFormatError: the file cannot be read, or holds something else; the message is one line.
    """
    from safetensors import SafetensorError, safe_open

    name = visible(str(path))
    try:
        Path(path).open("rb").close()  # what safetensors says of a file that is not there does not fit in a message
        with safe_open(os.fspath(path), framework="numpy") as file:
            described = json.loads((file.metadata() or {})["attnviz"])
            if described["format"] in WORDS.keys() - {kind}:
                raise FileFormatError(f"{name} holds a run of {WORDS[described['format']]}, not of {WORDS[kind]}")
            if (described["format"], described["version"]) != (kind, VERSION):
                raise FileFormatError(f"{name} was written by another version of attnviz")
            arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 - it is no mapping
        found = _whole(described["stats"], arrays, classes)
        if is_whole(found):
            return found
    except OSError as error:
        raise FileFormatError(f"{name} cannot be read: {visible(str(error.strerror or error))}") from None
    except (SafetensorError, KeyError, TypeError, ValueError, AttributeError, RecursionError):
        pass  # said below, as of a file that holds something else
    raise FileFormatError(f"{name} holds no stats of attnviz's, or is not whole")


def _plain(value: object, arrays: dict[str, np.ndarray]) -> object:
    """A value as JSON can write it; arrays are put aside, and their numbers stand for them."""
    if isinstance(value, np.ndarray):
        arrays[str(len(arrays))] = np.ascontiguousarray(value)
        return {"array": str(len(arrays) - 1)}
    if is_dataclass(value):
        return {
            "class": type(value).__name__,
            "fields": {f.name: _plain(getattr(value, f.name), arrays) for f in fields(value)},
        }
    if isinstance(value, Mapping):
        return {"mapping": [[_plain(key, arrays), _plain(one, arrays)] for key, one in value.items()]}
    if isinstance(value, tuple | list):
        return {"tuple": [_plain(one, arrays) for one in value]}
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise TypeError(f"a {type(value).__name__} cannot be written")


def _whole(value: Any, arrays: Mapping[str, np.ndarray], classes: Classes) -> Any:  # noqa: ANN401 - whatever was written
    """What `_plain` was given."""
    if not isinstance(value, dict):
        return value
    ((sort, held),) = [pair for pair in value.items() if pair[0] != "fields"]
    if sort == "array":
        return arrays[held]
    if sort == "class":
        made = classes[held](**{name: _whole(one, arrays, classes) for name, one in value["fields"].items()})
        wrong = [name for name, wanted in _hints(classes[held]).items() if not _fits(getattr(made, name), wanted)]
        if wrong:
            raise TypeError(f"{held} holds something else as {', '.join(wrong)}")
        return made
    if sort == "mapping":
        return {_whole(key, arrays, classes): _whole(one, arrays, classes) for key, one in held}
    if sort == "tuple":
        return tuple(_whole(one, arrays, classes) for one in held)
    raise ValueError(f"{sort} is nothing that was written")


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _fits(value: object, wanted: Any) -> bool:  # noqa: ANN401 - a type
    """Whether a value is of the type that a field is annotated with."""
    origin, options = get_origin(wanted), get_args(wanted)
    if isinstance(wanted, UnionType):
        return any(_fits(value, option) for option in options)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        each = options[:1] * len(value) if options[-1] is Ellipsis else options
        return len(value) == len(each) and all(map(_fits, value, each))
    if origin is Mapping:
        return isinstance(value, Mapping) and all(
            _fits(key, options[0]) and _fits(one, options[1]) for key, one in value.items()
        )
    return isinstance(value, int | float if wanted is float else wanted)
