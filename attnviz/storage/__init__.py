"""The record as a file: ``.safetensors``, ``.npz`` without pickle, ``.json``; and attention made elsewhere.

The formats hold the same labels, one dictionary, and differ only in how the numbers lie beside it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np

from attnviz.attention import Attention
from attnviz.errors import FileFormatError, RecordError
from attnviz.storage.files import check_ending, check_writable, write_whole
from attnviz.storage.formats import READERS, WRITERS, to_json
from attnviz.storage.record import FORMAT, adopt, rebuild
from attnviz.text.display import visible

__all__ = ["WRITERS", "check_ending", "check_writable", "load", "save", "to_json", "write_whole"]


def save(record: Attention, path: str | os.PathLike[str]) -> Path:
    """Write a record, losing nothing, in the format of the path's ending; or OutputError, RecordError."""
    write = WRITERS[check_ending(path, WRITERS, "a record is")]
    return write_whole(path, lambda temporary: write(record, temporary))


def load(path: str | os.PathLike[str]) -> Attention:
    """Read a record that attnviz saved, or attention weights that another program saved, or raise FileFormatError.

    Another program's file is an ``.npz`` or ``.json`` with ``weights``, of shape (layer, head, query, key) or without
    the first axis or two, and ``tokens``, or both ``query_tokens`` and ``key_tokens``; ``model``, ``text`` and ``kind``
    if it likes. Its record has no receipt.
    """
    path = Path(path)
    try:
        fields = _read(path)
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


def _read(path: Path) -> dict[str, object]:
    suffix = path.suffix.lower()
    if suffix not in READERS:
        raise FileFormatError(f"a record is read from .safetensors, .npz or .json, not {suffix!r}")
    try:
        _check_is_file(path)
        return READERS[suffix](path)
    except (RecordError, OSError, MemoryError, RecursionError):
        raise
    except Exception as error:  # whatever a parser raises on foreign bytes, the file is at fault
        raise FileFormatError(f"it is not a readable {suffix} file: {error}") from error


def _check_is_file(path: Path) -> None:
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise FileFormatError("it is a folder" if stat.S_ISDIR(found.st_mode) else "it is not a regular file")
    if not found.st_size:
        raise FileFormatError("it is empty")
