"""The record as a file: ``.safetensors``, ``.npz`` without pickle, ``.json``; and attention made elsewhere.

The formats hold the same labels, one dictionary, and differ only in how the numbers lie beside it: JSON is one object,
the others have `meta`, the labels as JSON text, beside `weights`.
"""

from __future__ import annotations

import os
import stat
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from attnviz.attention import Attention, Weights
from attnviz.errors import FileFormatError, RecordError
from attnviz.storage.encoding import from_text, to_text
from attnviz.storage.formats import RECORD
from attnviz.storage.record import FORMAT, adopt, arrays, describe, rebuild
from attnviz.text.display import visible

_WHAT = "a label of the record"
_LARGE = 2**30  # bytes that an archive may unpack to, whatever it was packed to
_PACKED = 200  # How many times smaller than what it unpacks to a larger archive may be. Attention packs about 2 times.


def to_json(record: Attention) -> str:
    """The record as JSON, on one line; each weight is the shortest number that gives back the same float32."""
    numbers = {name: _shortest(one) if one.dtype == np.float32 else one for name, one in arrays(record).items()}
    return to_text({**describe(record), **{name: one.tolist() for name, one in numbers.items()}}, _WHAT)


def _shortest(weights: Weights) -> Float64[np.ndarray, "layer head query key"]:
    """As float64, which Python writes in full, the decimals that float32 needs: 0.1, not 0.10000000149."""
    texts = map(str, weights.ravel())
    short = np.fromiter(map(float, texts), np.float64, count=weights.size).reshape(weights.shape)
    # Read by way of float64, decimals close to the middle between two float32 may give the other of them.
    return np.where(short.astype(np.float32) == weights, short, weights)


def npz(record: Attention) -> Callable[[Path], None]:
    """The record as an archive of NumPy's: what fills it."""

    def fill(path: Path) -> None:
        with path.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays(record), meta=np.array(to_text(describe(record), _WHAT)))

    return fill


def safetensors(record: Attention) -> bytes:
    """The record as safetensors."""
    from safetensors.numpy import save  # a library that few commands need

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
        fields = {name.removesuffix(".npy"): _read_array(archive, name) for name in names if name.endswith(".npy")}
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
    if array.dtype.kind == "U" and np.frombuffer(array.astype("<U").tobytes(), "<u4").max(initial=0) > sys.maxunicode:
        raise FileFormatError(f"its {name} holds characters that there are not")
    return array.tolist() if array.dtype.kind == "U" else array


def load(path: str | os.PathLike[str]) -> Attention:
    """Read a record that attnviz saved, or attention weights that another program saved, or raise FileFormatError.

    Another program's file is an ``.npz`` or ``.json`` with ``weights``, of shape (layer, head, query, key) or without
    the first axis or two, and ``tokens``, or both ``query_tokens`` and ``key_tokens``; ``model``, ``text`` and ``kind``
    if it likes. Its record has no receipt.
    """
    record: Attention = RECORD.load(path)
    return record


def read_json(path: Path) -> Attention:
    """The record in a JSON file; what is raised is as of `load`."""
    return _record(path, lambda path: from_text(path.read_bytes()))


def read_npz(path: Path) -> Attention:
    """Likewise in an archive of NumPy's."""
    return _record(path, _npz_fields)


def read_safetensors(path: Path) -> Attention:
    """Likewise in safetensors."""
    return _record(path, _safetensors_fields)


def _record(path: Path, read: Callable[[Path], dict[str, object]]) -> Attention:
    try:
        fields = _fields(path, read)
        ours = isinstance(fields.get("format"), str) and fields["format"] == FORMAT
        with np.errstate(over="ignore", invalid="ignore"):  # the record refuses infinity in its own words
            return rebuild(fields) if ours else adopt(fields, path.name)
    except RecordError as error:
        reason = str(error)
    except OSError as error:
        reason = f"it cannot be read: {error.strerror or error}"
    except MemoryError:
        reason = "it is too large for this computer's memory"
    except RecursionError:
        reason = "it is nested too deeply to be a record"
    except OverflowError:
        reason = "it holds a number too large to be one"
    # The reason may quote the file, and the path may be any text: neither may break the line.
    raise FileFormatError(visible(f"{path}: {reason}"))


def _fields(path: Path, read: Callable[[Path], dict[str, object]]) -> dict[str, object]:
    try:
        _check_is_file(path)
        return read(path)
    except (RecordError, OSError, MemoryError, RecursionError):
        raise
    except Exception as error:  # whatever a parser raises on foreign bytes, the file is at fault
        raise FileFormatError(f"it is not a readable {path.suffix.lower()} file: {error}") from error


def _check_is_file(path: Path) -> None:
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise FileFormatError("it is a folder" if stat.S_ISDIR(found.st_mode) else "it is not a regular file")
    if not found.st_size:
        raise FileFormatError("it is empty")
