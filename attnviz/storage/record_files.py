"""Records as ``.safetensors``, ``.npz`` (without pickle) and ``.json`` files; attention from other programs.

All formats contain the same dictionary of labels. JSON is one object; the others have the labels as JSON text in
`meta`, beside `weights`.
"""

from __future__ import annotations

import csv
import hashlib
import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64

from attnviz.attention import (
    AXES,
    NUMBERS,
    ROUNDED_TOLERANCE,
    ROW_TOLERANCE,
    Attention,
    Kind,
    Note,
    Token,
    TokenStatistics,
    Weights,
)
from attnviz.errors import FileFormatError, RecordError
from attnviz.storage.encoding import decode, decode_fields, from_text, plain, show, to_text
from attnviz.storage.files import as_file_error, check_is_file
from attnviz.text.display import inert, visible

FORMAT = "attnviz"
VERSION = 2
# The arrays of a pooled record beside its weights, and their number formats.
LINKS = {"link_keys": np.int32, "link_weights": np.float32}
_WEIGHT_NAMES = ("weights", "attention", "attentions")  # names that other programs use for weights
# The arrays of an ``.npz`` archive that are read: those of attnviz and of other programs.
_NPZ_NAMES = frozenset(
    {*_WEIGHT_NAMES, *LINKS, "meta", "format", "kind", "model", "text"}
    | {"tokens", "query_tokens", "key_tokens"}
)
_WHAT = "a label of the record"  # the subject of a message about labels that cannot be written
_LARGE = 2**30  # bytes that any archive may unpack to
# The factor by which a larger archive may be compressed. Attention is compressed about 2 times.
_MOST_COMPRESSION = 200


def to_json(record: Attention) -> str:
    """Return a record as JSON on one line; each weight is the shortest decimal that gives back the same float32."""
    content = describe(record)
    for name, array in arrays(record).items():
        content[name] = (_shortest(array) if array.dtype == np.float32 else array).tolist()
    return to_text(content, _WHAT)


def _shortest(weights: Weights) -> Float64[np.ndarray, "layer head query key"]:
    """Return float32 weights as float64 with few decimals: 0.1, not 0.10000000149."""
    decimals = map(str, weights.ravel())
    short = np.fromiter(map(float, decimals), np.float64, count=weights.size)
    short = short.reshape(weights.shape)
    # A decimal near the middle of two float32 may round to the wrong one, because it is a float64 first.
    return np.where(short.astype(np.float32) == weights, short, weights)


def csv_table(record: Attention) -> Callable[[Path], None]:
    """Return a function that writes the weights as CSV, one a line, with the numbers and texts of its tokens."""
    queries, keys = (
        [inert(token.text) for token in tokens]
        for tokens in (record.query_tokens, record.key_tokens)
    )
    rows = [record.first[0] + record.cell * i for i in range(len(queries))]
    columns = list(record.key_numbers)
    if record.cell > 1:
        columns = [record.first[1] + record.cell * i for i in range(len(keys))]

    def fill(path: Path) -> None:
        with path.open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file, lineterminator="\n")
            table.writerow(("layer", "head", "query", "key", "weight", "query_token", "key_token"))
            patterns = record.weights.reshape(-1, *record.weights.shape[2:])
            for (layer, head), pattern in zip(record.places, patterns, strict=True):
                for (i, j), weight in np.ndenumerate(pattern):
                    table.writerow((layer, head, rows[i], columns[j], weight, queries[i], keys[j]))

    return fill


def npz(record: Attention) -> Callable[[Path], None]:
    """Return a function that writes a record as an ``.npz`` archive."""

    def fill(path: Path) -> None:
        with path.open("wb") as file:
            np.savez(
                file,
                allow_pickle=False,
                **arrays(record),
                meta=np.array(to_text(describe(record), _WHAT)),
            )

    return fill


def safetensors(record: Attention) -> bytes:
    """Return a record as safetensors."""
    from safetensors.numpy import save  # imported here: few commands need it

    return save(arrays(record), {"meta": to_text(describe(record), _WHAT)})


def _json_fields(path: Path) -> dict[str, object]:
    """Return the labels and numbers in a ``.json`` file, by name."""
    return from_text(path.read_bytes())


def _safetensors_fields(path: Path) -> dict[str, object]:
    """Return the labels and arrays in a ``.safetensors`` file, by name."""
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata() or {}
        if "meta" not in metadata or "weights" not in file.keys():  # noqa: SIM118  safe_open is no mapping
            raise FileFormatError(
                "it holds no record of attnviz's; attention made elsewhere is read from .npz and .json"
            )
        names = [name for name in ("weights", *LINKS) if name in file.keys()]  # noqa: SIM118  as above
        numbers = {name: file.get_tensor(name) for name in names}
        return {**from_text(metadata["meta"]), **numbers}


def _npz_fields(path: Path) -> dict[str, object]:
    """Return the labels and arrays in an ``.npz`` archive that a record can have, by name."""
    with zipfile.ZipFile(path) as archive:
        sizes = {info.filename.removesuffix(".npy"): info.file_size for info in archive.infolist()}
    # If there are weights, other arrays are not read: they may be far larger than the attention.
    names = [name for name in sizes if name in _NPZ_NAMES]
    if not any(name in _WEIGHT_NAMES for name in names):
        names = list(sizes)
    unpacked = sum(sizes[name] for name in names)
    if unpacked > max(_LARGE, _MOST_COMPRESSION * path.stat().st_size):
        raise FileFormatError(f"it would unpack to {unpacked:,} bytes, which no attention does")
    with np.load(path, allow_pickle=False) as arrays:
        fields = {name: _read_array(arrays, name) for name in names}
    meta = fields.pop("meta", None)
    if meta is None:
        return fields
    if not isinstance(meta, str):
        raise FileFormatError("its meta is not text")
    return {**from_text(meta), **fields}


def _read_array(arrays: Mapping[str, Any], name: str) -> object:
    """Return an array of numbers, or an array of texts as a list. Raises FileFormatError: it holds other objects."""
    try:
        array = np.asarray(arrays[name])
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        raise FileFormatError(
            f"its {name}.npy is an array of Python objects, which attnviz does not unpickle: "
            "save numbers as float32 and tokens as text (dtype=str)"
        ) from None
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8")
    return array.tolist() if array.dtype.kind == "U" else array


_READERS = {".json": _json_fields, ".npz": _npz_fields, ".safetensors": _safetensors_fields}
SUFFIXES = (".safetensors", ".npz", ".json")  # of files that `read` reads, the usual one first


def read(path: Path) -> Attention:
    """Return the record in a file with one of `SUFFIXES`, written by attnviz or another program.

    Raises FileFormatError: the file cannot be read, or holds something else.
    """
    with as_file_error(path, "a record"):
        fields = _fields(path)
        # Another program's archive may have an array of this name, which cannot be compared with a text.
        is_own = isinstance(fields.get("format"), str) and fields["format"] == FORMAT
        with np.errstate(over="ignore", invalid="ignore"):  # the record itself refuses infinity
            return rebuild(fields) if is_own else adopt(fields, path.name)


def _fields(path: Path) -> dict[str, object]:
    """Return the labels and arrays in a file, by name."""
    try:
        check_is_file(path)
        return _READERS[path.suffix.lower()](path)
    except (RecordError, OSError, MemoryError, RecursionError):
        raise
    except Exception as error:  # any error of a parser on unknown bytes means a bad file
        raise FileFormatError(
            f"it is not a readable {path.suffix.lower()} file: {error}"
        ) from error


def describe(record: Attention) -> dict[str, object]:
    """Return everything except the numbers; a receipt gets a digest that ties it to numbers and labels."""
    described = {"format": FORMAT, "version": VERSION, **_labels(record)}
    return described if record.receipt is None else {**described, "digest": _digest(record)}


def _labels(record: Attention) -> dict[str, object]:
    """Return all fields of a record that are not arrays, by name."""
    labels = {
        field.name: getattr(record, field.name)
        for field in fields(Attention)
        if field.name not in NUMBERS and (field.name != "chosen" or record.chosen)
    }
    if (exact := record.exact) is not None:
        names = [field.name for field in fields(exact) if field.name not in LINKS]
        labels["exact"] = {name: getattr(exact, name) for name in names}
    return labels


def arrays(record: Attention) -> dict[str, np.ndarray]:
    """Return the weights, and for a pooled record the links."""
    exact = {} if record.exact is None else {name: getattr(record.exact, name) for name in LINKS}
    return {"weights": record.weights, **exact}


def rebuild(content: Mapping[str, object]) -> Attention:
    """Return the record in the content of a file that attnviz wrote.

    Raises RecordError: a label is missing, of another type, or changed since; FileFormatError: of another version.
    """
    version = decode(content.get("version"), int, "version")
    if version < VERSION:
        raise FileFormatError("it was made by an earlier version of attnviz: make it again")
    if version > VERSION:
        raise FileFormatError(
            f"it is of version {version}, but this attnviz reads version {VERSION}: update attnviz"
        )
    if "weights" not in content:
        raise FileFormatError("it lacks weights")
    weights = _as_weights(content["weights"])
    labels = decode_fields({"chosen": (), **content}, Attention, apart=NUMBERS)
    exact = _token_statistics(content) if "exact" in content else None
    record = Attention(weights=weights, exact=exact, **labels)
    digest = content.get("digest")
    is_signed = record.receipt is not None or digest is not None
    if is_signed and digest != _digest(record):
        raise FileFormatError("its weights or labels were changed after the receipt was issued")
    shown = ("model", "notes", "query_tokens", "key_tokens", "exact", "receipt")
    return replace(record, **{name: harmless(getattr(record, name)) for name in shown})


def _token_statistics(content: Mapping[str, object]) -> TokenStatistics:
    """Return the links and statistics of single tokens in the file of a pooled record."""
    labels = decode(content["exact"], dict[str, Any], "exact")
    links: dict[str, Any] = {}
    for name, number_format in LINKS.items():
        try:
            array = np.asarray(content.get(name))
        except ValueError:  # lists of different lengths
            array = np.array(None)
        if array.dtype.kind not in "fiu" or array.ndim != len(AXES):
            raise FileFormatError(f"its {name} must be numbers of a layer, head, query and link")
        links[name] = array.astype(number_format)
    return TokenStatistics(**decode_fields(labels, TokenStatistics, apart=LINKS), **links)


def _digest(record: Attention) -> str:
    """Return a digest of all labels and numbers; it does not depend on how they are written."""
    text = json.dumps([_labels(record), record.weights.shape], default=plain)
    # Some programs write 1.0 as 1, or labels in another order.
    canonical = json.dumps(json.loads(text, parse_int=float), sort_keys=True)
    digest = hashlib.sha256(canonical.encode())
    for array in arrays(record).values():
        digest.update(array.astype(array.dtype.newbyteorder("<")).tobytes())
    return digest.hexdigest()


def harmless(value: Any) -> Any:
    """Return a value whose texts contain no terminal escape sequences; the pieces of tokens, which are not shown, stay.

    attnviz writes none, but a file with an escape sequence for a token is easily made and sent to someone.
    """
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, tuple):
        return tuple(map(harmless, value))
    if is_dataclass(value):
        names = [field.name for field in fields(value) if field.name != "piece"]
        return replace(value, **{name: harmless(getattr(value, name)) for name in names})  # type: ignore[type-var]
    return value


def _as_weights(value: object) -> Weights:
    """Return an array, or nested lists of numbers, as weights; the axes of layers and heads may be missing.

    Raises FileFormatError: it is something else.
    """
    if isinstance(value, list):
        try:
            value = np.array(value)
        except ValueError:
            raise FileFormatError("its weights' rows differ in length") from None
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiu":
        raise FileFormatError(f"its weights must be numbers, not {show(value)}")
    n_missing = len(AXES) - value.ndim
    if n_missing not in {0, 1, 2}:
        raise FileFormatError(
            f"its weights must have the axes ({', '.join(AXES)}), of which the first two may be left out, "
            f"but have shape {value.shape}"
        )
    return value.reshape((1,) * n_missing + value.shape).astype(np.float32)


# The contents of attnviz's other JSON files, by the format that they name.
OTHER = {
    "attnviz-walkthrough": "a walkthrough: attnviz verify computes it again, and attnviz.load reads it",
    "attnviz-comparison": "a comparison of heads: attnviz compare-heads --load reads it",
    "attnviz-story": "the numbers of a story, for other programs: attnviz demo tells it again",
}


def adopt(content: Mapping[str, object], name: str) -> Attention:
    """Return a record from the content of another program's file `name`; it has no receipt. Raises RecordError.

    Such a file is an ``.npz`` or ``.json`` with ``weights``, of shape (layer, head, query, key) or without the first
    axis or two, and ``tokens``, or both ``query_tokens`` and ``key_tokens``; ``model``, ``text`` and ``kind`` are
    optional.
    """
    weights = _as_weights(_find_weights(content))
    queries, keys = _read_tokens(content, "query_tokens"), _read_tokens(content, "key_tokens")
    if "kind" in content:
        kind: Kind = decode(content["kind"], Kind, "kind")
    elif queries != keys:
        kind = "cross"
    else:
        is_causal = len(keys) > 1 and not np.triu(weights, 1).any()
        kind = "decoder" if is_causal else "encoder"
    errors = np.abs(weights.sum(axis=-1, dtype=np.float64) - 1)  # [layer, head, query]
    is_rounded = bool((errors > ROW_TOLERANCE).any() and (errors <= ROUNDED_TOLERANCE).all())
    return Attention(
        weights=weights,
        query_tokens=queries,
        key_tokens=keys,
        kind=kind,
        model=visible(decode(content.get("model", visible(name)), str, "model")),
        text=decode(content.get("text", ""), str, "text"),
        short_rows=("rounded",) if is_rounded else (),
        notes=(Note("rounded"),) if is_rounded else (),
    )


def _find_weights(content: Mapping[str, object]) -> object:
    """Return the weights in another program's file: the field of a usual name, or else the only array of floats."""
    for name in _WEIGHT_NAMES:
        if name in content:
            return content[name]
    arrays = [
        value
        for value in content.values()
        if isinstance(value, np.ndarray) and value.dtype.kind == "f"
    ]
    if len(arrays) == 1:
        return arrays[0]
    if (other := OTHER.get(str(content.get("format")))) is not None:
        raise FileFormatError(f"it holds {other}")
    raise FileFormatError(
        f"it holds {'several arrays' if arrays else 'no attention'}: name the attention 'weights'"
    )


def _read_tokens(content: Mapping[str, object], name: str) -> tuple[Token, ...]:
    """Return the tokens of the field `name` or, without that field, those that are both queries and keys."""
    where = name if name in content else "tokens"
    if where not in content:
        raise FileFormatError(
            f"it holds no {name}: attnviz needs 'tokens', or both 'query_tokens' and 'key_tokens', "
            f"a label for each row and each column"
        )
    labels = content[where]
    if isinstance(labels, list):
        labels = [_token_fields(label, f"{where}[{index}]") for index, label in enumerate(labels)]
    tokens: tuple[Token, ...] = decode(labels, tuple[Token, ...], where)
    return tuple(
        replace(token, text=visible(token.text), piece=visible(token.piece)) for token in tokens
    )


def _token_fields(label: object, where: str) -> dict[str, object]:
    """Return a label, a text or an object, as the fields of a token; `where` names it in messages."""
    if isinstance(label, str):
        return {"text": label, "piece": label}
    if isinstance(label, dict):
        return {"text": label.get("piece"), "piece": label.get("text"), **label}
    raise FileFormatError(f"{where} must be text, or an object with a text")
