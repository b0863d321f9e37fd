"""Records as ``.safetensors``, ``.npz`` (without pickle) and ``.json`` files; attention from other programs.

All formats contain the same dictionary of labels. JSON is one object; the others have the labels as JSON text in
`meta`, beside `weights`.
"""

from __future__ import annotations

import hashlib
import json
import sys
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64

from attnviz import attention
from attnviz.attention import AXES, NUMBERS, Attention, Kind, Note, Token, TokenStatistics, Weights
from attnviz.errors import FileFormatError, RecordError
from attnviz.storage.encoding import decode, decode_fields, from_text, plain, show, to_text
from attnviz.storage.files import as_file_error, check_is_file
from attnviz.text.display import visible

FORMAT = "attnviz"
VERSION = 1
LINKS = {
    "link_keys": np.int32,
    "link_weights": np.float32,
}  # arrays of a pooled record, besides its weights
_NAMES = ("weights", "attention", "attentions")  # names that other programs use for weights
_WHAT = "a label of the record"
_LARGE = 2**30  # bytes that any archive may unpack to
_PACKED = 200  # A larger archive may be compressed by at most this factor. Attention is compressed about 2 times.


def to_json(record: Attention) -> str:
    """Return a record as JSON on one line; each weight is the shortest decimal that gives back the same float32."""
    numbers = {
        name: _shortest(one) if one.dtype == np.float32 else one
        for name, one in arrays(record).items()
    }
    return to_text(
        {**describe(record), **{name: one.tolist() for name, one in numbers.items()}}, _WHAT
    )


def _shortest(weights: Weights) -> Float64[np.ndarray, "layer head query key"]:
    """Return float32 weights as float64 with few decimals: 0.1, not 0.10000000149."""
    texts = map(str, weights.ravel())
    short = np.fromiter(map(float, texts), np.float64, count=weights.size).reshape(weights.shape)
    # Parsed as float64 first, a decimal near the middle of two float32 could give the wrong one.
    return np.where(short.astype(np.float32) == weights, short, weights)


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


def _safetensors_fields(path: Path) -> dict[str, object]:
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata() or {}
        if "meta" not in metadata or "weights" not in file.keys():  # noqa: SIM118  safe_open is no mapping
            raise FileFormatError(
                "it holds no record of attnviz's; attention made elsewhere is read from .npz and .json"
            )
        numbers = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  as above
        return {**from_text(metadata["meta"]), **numbers}


def _npz_fields(path: Path) -> dict[str, object]:
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        if len(names) != len(set(names)):
            raise FileFormatError("it holds two arrays of one name")
        unpacked = sum(member.file_size for member in archive.infolist())
        if unpacked > max(_LARGE, _PACKED * path.stat().st_size):
            raise FileFormatError(f"it would unpack to {unpacked:,} bytes, which no attention does")
        fields = {
            name.removesuffix(".npy"): _read_array(archive, name)
            for name in names
            if name.endswith(".npy")
        }
    meta = fields.pop("meta", None)
    if meta is None:
        return fields
    if not isinstance(meta, str):
        raise FileFormatError("its meta is not text")
    return {**from_text(meta), **fields}


def _read_array(archive: zipfile.ZipFile, name: str) -> object:
    try:
        with archive.open(name) as member:
            array = np.lib.format.read_array(member, allow_pickle=False)
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        raise FileFormatError(
            f"its {name} is an array of Python objects, which attnviz does not unpickle: "
            "save numbers as float32 and tokens as text (dtype=str)"
        ) from None
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8")
    if (
        array.dtype.kind == "U"
        and np.frombuffer(array.astype("<U").tobytes(), "<u4").max(initial=0) > sys.maxunicode
    ):
        raise FileFormatError(f"its {name} holds characters that there are not")
    return array.tolist() if array.dtype.kind == "U" else array


def _record(path: Path, read: Callable[[Path], dict[str, object]]) -> Attention:
    """Return the record in a file of attnviz or of another program, whose fields `read` returns.

    Raises FileFormatError.
    """
    with as_file_error(path, "a record"):
        fields = _fields(path, read)
        ours = isinstance(fields.get("format"), str) and fields["format"] == FORMAT
        with np.errstate(over="ignore", invalid="ignore"):  # the record itself refuses infinity
            return rebuild(fields) if ours else adopt(fields, path.name)


read_json = partial(_record, read=lambda path: from_text(path.read_bytes()))
read_npz, read_safetensors = (
    partial(_record, read=read) for read in (_npz_fields, _safetensors_fields)
)
"""Of a file, whatever its ending, the record in it: what `attnviz.storage.formats` names."""


def _fields(path: Path, read: Callable[[Path], dict[str, object]]) -> dict[str, object]:
    try:
        check_is_file(path)
        return read(path)
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
    labels = {
        field.name: getattr(record, field.name)
        for field in fields(Attention)
        if field.name not in NUMBERS
    }
    if (exact := record.exact) is not None:
        labels["exact"] = {
            one.name: getattr(exact, one.name) for one in fields(exact) if one.name not in LINKS
        }
    return labels


def arrays(record: Attention) -> dict[str, np.ndarray]:
    """Return the weights, and for a pooled record the links."""
    exact = {} if record.exact is None else {name: getattr(record.exact, name) for name in LINKS}
    return {"weights": record.weights, **exact}


def rebuild(found: Mapping[str, object]) -> Attention:
    """Return the record in a file that attnviz wrote.

    Raises RecordError: a label is missing, of another type, or changed since; FileFormatError: of another version.
    """
    version = decode(found.get("version"), int, "version")
    if version != VERSION:
        raise FileFormatError(
            f"it is of version {version}, but this attnviz reads version {VERSION}: update attnviz"
        )
    if "weights" not in found:
        raise FileFormatError("it lacks weights")
    weights = _as_weights(found["weights"])
    labels = decode_fields(found, Attention, apart=NUMBERS)
    exact = _exact(found) if "exact" in found else None
    record, digest = Attention(weights=weights, exact=exact, **labels), found.get("digest")
    if (record.receipt is not None or digest is not None) and digest != _digest(record):
        raise FileFormatError("its weights or labels were changed after the receipt was issued")
    return _harmless(record)


def _exact(found: Mapping[str, object]) -> TokenStatistics:
    labels = decode(found["exact"], dict[str, Any], "exact")
    numbers: dict[str, Any] = {}
    for name, kind in LINKS.items():
        array = np.asarray(found.get(name))
        if array.dtype.kind not in "fiu" or array.ndim != len(AXES):
            raise FileFormatError(f"its {name} must be numbers of a layer, head, query and link")
        numbers[name] = array.astype(kind)
    return TokenStatistics(
        **decode_fields(labels, TokenStatistics, apart=frozenset(LINKS)), **numbers
    )


def _digest(record: Attention) -> str:
    """Return a digest of all labels and numbers; it does not depend on how they are written."""
    text = json.dumps([_labels(record), record.weights.shape], default=plain)
    canonical = json.dumps(
        json.loads(text, parse_int=float), sort_keys=True
    )  # some programs write 1.0 as 1
    digest = hashlib.sha256(canonical.encode())
    for array in arrays(record).values():
        digest.update(array.astype(array.dtype.newbyteorder("<")).tobytes())
    return digest.hexdigest()


def _harmless(record: Attention) -> Attention:
    """Return a record whose texts contain no terminal escape sequences.

    attnviz writes none, but a file with an escape sequence for a token is easily made and sent to someone.
    """

    def tokens(of: Attention | TokenStatistics) -> dict[str, Any]:
        sides = {"query_tokens": of.query_tokens, "key_tokens": of.key_tokens}
        return {
            name: tuple(replace(one, text=visible(one.text)) for one in side)
            for name, side in sides.items()
        }

    exact, receipt = record.exact, record.receipt
    return replace(
        record,
        model=visible(record.model),
        notes=tuple(map(harmless_note, record.notes)),
        **tokens(record),
        exact=None if exact is None else replace(exact, **tokens(exact)),
        receipt=receipt
        and replace(receipt, native=visible(receipt.native), dtype=visible(receipt.dtype)),
    )


def harmless_note(note: Note) -> Note:
    """Return a note whose texts contain no escape sequences."""
    fields = (
        (visible(name), visible(value) if isinstance(value, str) else value)
        for name, value in note.fields
    )
    return Note(visible(note.code), tuple(fields))


def _as_weights(value: object) -> Weights:
    if isinstance(value, list):
        _check_numbers(value)
        try:
            value = np.array(value, dtype=np.float64)
        except ValueError:
            raise FileFormatError("its weights' rows differ in length") from None
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiu":
        raise FileFormatError(f"its weights must be numbers, not {show(value)}")
    missing = len(AXES) - value.ndim
    if missing not in {0, 1, 2}:
        raise FileFormatError(
            f"its weights must have the axes ({', '.join(AXES)}), of which the first two may be left out, "
            f"but have shape {value.shape}"
        )
    return value.reshape((1,) * missing + value.shape).astype(np.float32)


def _check_numbers(value: list[object], axes: int = 1) -> None:
    """Refuse values that NumPy would silently convert to numbers, such as "0.5" and true."""
    if value and isinstance(value[0], list) and axes < len(AXES):
        for inner in value:
            if not isinstance(inner, list):
                raise FileFormatError("its weights' rows differ in length")
            _check_numbers(inner, axes + 1)
    elif not set(map(type, value)) <= {int, float}:
        wrong = next(item for item in value if type(item) not in {int, float})
        raise FileFormatError(f"its weights must be numbers, but hold {show(wrong)}")


OTHER = {
    "attnviz-walkthrough": "a walkthrough: attnviz verify computes it again, and attnviz.load reads it",
    "attnviz-comparison": "the numbers of heads compared, for other programs: attnviz compare-heads reads .stats",
    "attnviz-story": "the numbers of a story, for other programs: attnviz demo tells it again",
}
"""Contents of other JSON files of attnviz, by format, and the command that reads each."""


def adopt(found: Mapping[str, object], name: str) -> Attention:
    """Return a record of another program's fields; it has no receipt. Raises RecordError.

    Such a file is an ``.npz`` or ``.json`` with ``weights``, of shape (layer, head, query, key) or without the first
    axis or two, and ``tokens``, or both ``query_tokens`` and ``key_tokens``; ``model``, ``text`` and ``kind`` are
    optional.
    """
    weights = _as_weights(_find_weights(found))
    queries, keys = (_tokens(found, name) for name in ("query_tokens", "key_tokens"))
    is_causal = len(keys) > 1 and not np.triu(weights, 1).any()
    usual: Kind = "cross" if queries != keys else "decoder" if is_causal else "encoder"
    off = np.abs(weights.sum(axis=-1, dtype=np.float64) - 1)
    is_rounded = bool(
        (off > attention.ROW_TOLERANCE).any() and (off <= attention.ROUNDED_TOLERANCE).all()
    )
    return Attention(
        weights=weights,
        query_tokens=queries,
        key_tokens=keys,
        kind=decode(found["kind"], Kind, "kind") if "kind" in found else usual,
        model=visible(decode(found.get("model", visible(name)), str, "model")),
        text=decode(found.get("text", ""), str, "text"),
        short_rows=("rounded",) if is_rounded else (),
        notes=(Note("rounded"),) if is_rounded else (),
    )


def _find_weights(found: Mapping[str, object]) -> object:
    known = [name for name in _NAMES if name in found]
    arrays = [
        name
        for name, value in found.items()
        if isinstance(value, np.ndarray) and value.dtype.kind == "f"
    ]
    if known:
        return found[known[0]]
    if len(arrays) == 1:
        return found[arrays[0]]
    if (held := OTHER.get(str(found.get("format")))) is not None:
        raise FileFormatError(f"it holds {held}")
    raise FileFormatError(
        f"it holds {'several arrays' if arrays else 'no attention'}: name the attention 'weights'"
    )


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
    tokens: tuple[Token, ...] = decode(labels, tuple[Token, ...], where)
    return tuple(
        replace(token, text=visible(token.text), piece=visible(token.piece)) for token in tokens
    )


def _in_full(label: object, where: str) -> dict[str, object]:
    """Return a label as an object with the displayed text and the vocabulary's piece."""
    if isinstance(label, str):
        return {"text": label, "piece": label}
    if isinstance(label, dict):
        return {"text": label.get("piece"), "piece": label.get("text"), **label}
    raise FileFormatError(f"{where} must be text, or an object with a text")
