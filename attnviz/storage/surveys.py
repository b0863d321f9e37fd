"""Surveys as ``.stats`` files: what a checkpoint goes on from, what is merged, what is drawn again without its model.

A file is safetensors: the arrays, and in its metadata everything else as JSON. What is no array is written with the
name of its class, and read back as a class of that name only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from attnviz.analysis import structure, survey, tally
from attnviz.analysis.similarity_groups import Divergences
from attnviz.corpus import Annotated, Link
from attnviz.errors import FileFormatError, OutputError
from attnviz.storage.corpus import Fingerprint
from attnviz.storage.whole import write_whole
from attnviz.text.display import visible

FORMAT = "attnviz stats"
VERSION = 1
SUFFIX = ".stats"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """A survey and how it came about.

    Attributes:
        survey: the survey.
        corpora: what was read, in a few words each.
        n_lines: how many lines of the corpus were read, for a run that goes on; None for one that is finished.
        fingerprint: of the corpus being read; None where it has none, as standard input has not.
        options: what else must be the same for a run to go on, by name.
    """

    survey: survey.Survey
    corpora: tuple[str, ...]
    n_lines: int | None = None
    fingerprint: Fingerprint | None = None
    options: Mapping[str, str]


_CLASSES: dict[str, type] = {
    one.__name__: one
    for one in (
        Stats, Fingerprint, survey.Survey, survey.Places, survey.Examples, survey.Sample, Divergences, tally.Tally,
        structure.Relations, structure.Found, Annotated, Link,
    )
}  # fmt: skip


def save(stats: Stats, path: str | os.PathLike[str]) -> Path:
    """Write a survey, whole or not at all.

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
    described = json.dumps({"format": FORMAT, "version": VERSION, "stats": _plain(stats, arrays)})
    written = serialised(arrays, {"attnviz": described})
    return write_whole(path, lambda temporary: temporary.write_bytes(written))


def load(path: str | os.PathLike[str]) -> Stats:
    """Read a survey that attnviz saved.

    Raises:
        FileFormatError: the file cannot be read, or holds no survey; the message is one line.
    """
    from safetensors import SafetensorError, safe_open

    name = visible(str(path))
    try:
        Path(path).open("rb").close()  # what safetensors says of a file that is not there does not fit in a message
        with safe_open(os.fspath(path), framework="numpy") as file:
            described = json.loads((file.metadata() or {})["attnviz"])
            if (described["format"], described["version"]) != (FORMAT, VERSION):
                raise FileFormatError(f"{name} was written by another version of attnviz")
            stats = _whole(described["stats"], {key: file.get_tensor(key) for key in file.keys()})  # noqa: SIM118
        if isinstance(stats, Stats) and _is_whole(stats.survey):
            return stats
    except OSError as error:
        raise FileFormatError(f"{name} cannot be read: {visible(str(error.strerror or error))}") from None
    except (SafetensorError, KeyError, TypeError, ValueError, AttributeError, RecursionError):
        pass  # said below, as of a file that holds something else
    raise FileFormatError(f"{name} holds no stats of attnviz's, or is not whole")


def _is_whole(found: survey.Survey) -> bool:
    """Whether the parts of a survey fit together."""
    n_layers, n_heads, n_measures = found.heads.sums.shape[1:]
    return (
        {"model", "kind", "special tokens", "sample"} <= found.about.keys()
        and n_measures == len(found.measures)
        and found.heads.counts.shape[1:] == (n_layers, 1, n_measures)
        and found.places.sums.shape[1:3] == found.examples.scores.shape[:2] == (n_layers, n_heads)
        and len(found.worst) == n_layers
    )


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


def _whole(value: Any, arrays: Mapping[str, np.ndarray]) -> Any:  # noqa: ANN401 - whatever was written
    """What `_plain` was given."""
    if not isinstance(value, dict):
        return value
    ((sort, held),) = [pair for pair in value.items() if pair[0] != "fields"]
    if sort == "array":
        return arrays[held]
    if sort == "class":
        made = _CLASSES[held](**{name: _whole(one, arrays) for name, one in value["fields"].items()})
        wrong = [name for name, wanted in _hints(_CLASSES[held]).items() if not _fits(getattr(made, name), wanted)]
        if wrong:
            raise TypeError(f"{held} holds something else as {', '.join(wrong)}")
        return made
    if sort == "mapping":
        return {_whole(key, arrays): _whole(one, arrays) for key, one in held}
    if sort == "tuple":
        return tuple(_whole(one, arrays) for one in held)
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
