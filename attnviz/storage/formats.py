"""How a record lies in each format: `meta`, the labels as JSON text, beside `weights`; JSON is one object."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from attnviz.attention import Attention, Weights
from attnviz.errors import FileFormatError
from attnviz.storage.encoding import from_text, to_text
from attnviz.storage.record import arrays, describe

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


def _write_npz(record: Attention, path: Path) -> None:
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays(record), meta=np.array(to_text(describe(record), _WHAT)))


def _write_safetensors(record: Attention, path: Path) -> None:
    from safetensors.numpy import save  # a library that few commands need

    path.write_bytes(save(arrays(record), {"meta": to_text(describe(record), _WHAT)}))


def _read_safetensors(path: Path) -> dict[str, object]:
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata() or {}
        if "meta" not in metadata or "weights" not in file.keys():  # noqa: SIM118  safe_open is no mapping
            raise FileFormatError(
                "it holds no record of attnviz's; attention made elsewhere is read from .npz and .json"
            )
        numbers = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  as above
        return {**from_text(metadata["meta"]), **numbers}


def _read_npz(path: Path) -> dict[str, object]:
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


WRITERS: dict[str, Callable[[Attention, Path], object]] = {
    ".safetensors": _write_safetensors, ".npz": _write_npz,
    ".json": lambda record, path: path.write_text(to_json(record) + "\n", encoding="utf-8"),
}  # fmt: skip
READERS: dict[str, Callable[[Path], dict[str, object]]] = {
    ".safetensors": _read_safetensors, ".npz": _read_npz, ".json": lambda path: from_text(path.read_bytes()),
}  # fmt: skip
