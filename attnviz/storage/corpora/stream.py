"""Files read as a stream of lines, decompressed where they need it, with a count of the bytes that were read."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import stat
import sys
import weakref
import zlib
from bz2 import BZ2File
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

from attnviz.errors import InputError
from attnviz.text.corpus import BadLine
from attnviz.text.display import WIDE, from_utf8, visible

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

STANDARD_INPUT = "-"
LONGEST = 2**20  # bytes that a line may have; a longer one is left out without being held
COMPRESSED = {".gz": b"\x1f\x8b", ".bz2": b"BZh", ".xz": b"\xfd7zXZ\x00", ".zst": b"\x28\xb5\x2f\xfd"}
"""Endings of compressed files, and the bytes that such files begin with."""


class _CountingStream(io.RawIOBase):
    """A stream that counts the bytes that are read, and whose first bytes can be looked at before."""

    def __init__(self, source: io.BufferedIOBase) -> None:
        self.count = 0
        self._source = source
        self._ahead = b""

    def readable(self) -> bool:
        return True

    def look(self, size: int) -> bytes:
        """The first bytes, which will be read again."""
        while len(self._ahead) < size and (more := self._source.read1(size - len(self._ahead))):
            self._ahead += more
        return self._ahead

    def readinto(self, buffer: WriteableBuffer) -> int:
        space = memoryview(buffer).cast("B")
        if self._ahead:
            found, self._ahead = self._ahead[: len(space)], self._ahead[len(space) :]
        else:
            found = self._source.read1(len(space))
        space[: len(found)] = found
        self.count += len(found)
        return len(found)


class LineStream:
    """The lines of a file or of standard input (``-``); or InputError: it is packed or encoded in no known way."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.size: int | None = None  # the bytes of the file as it lies on the disk; None where it is no regular file
        self._n_lines = 0
        self._close: Callable[[], object] = int  # standard input is not ours to close
        if str(path) == STANDARD_INPUT:
            self.name = "standard input"
            if sys.stdin is None:
                raise InputError("standard input is closed")
            source = cast("io.BufferedIOBase", sys.stdin.buffer)
        else:
            self.name = visible(str(path))
            try:
                source = Path(path).open("rb")  # noqa: SIM115 - open until its last line
            except (OSError, ValueError) as error:  # the second of a NUL in the name
                raise self._unreadable(error) from None
            self._close = weakref.finalize(self, source.close)
            about = os.fstat(source.fileno())
            self.size = about.st_size if stat.S_ISREG(about.st_mode) else None
        self._source = _CountingStream(source)
        try:
            self._stream = self._decompress(Path(path).suffix.lower())
        except InputError:
            self._close()
            raise

    @property
    def count(self) -> int:
        """How many bytes of the file as it lies on the disk have been read."""
        return self._source.count

    def __iter__(self) -> Iterator[str | BadLine]:
        """Every line without its end, or in its place why it cannot be read; InputError where the file breaks off."""
        try:
            while (raw := self._stream.readline(LONGEST + 2)) != b"":
                self._n_lines += 1
                yield self._line(raw)
        except EOFError:
            raise InputError(f"{self.name} breaks off in line {self._n_lines + 1:,}: it was not packed whole") from None
        except (OSError, zlib.error, lzma.LZMAError) as error:
            raise self._unreadable(error, f" from line {self._n_lines + 1:,} on") from None
        finally:
            self._close()

    def _line(self, raw: bytes) -> str | BadLine:
        number = self._n_lines
        ended = raw.endswith(b"\n")
        raw = raw.removesuffix(b"\n").removesuffix(b"\r")
        if len(raw) > LONGEST:
            while not ended:
                more = self._stream.readline(LONGEST)
                ended = more.endswith(b"\n") or not more
            return BadLine(number=number, reason=f"longer than {LONGEST:,} bytes")
        if number == 1:
            raw = raw.removeprefix(BOM_UTF8)
        try:
            return from_utf8(raw)
        except InputError as error:
            return BadLine(number=number, reason=str(error))

    def _decompress(self, suffix: str) -> io.BufferedIOBase:
        try:
            first = self._source.look(max(len(start) for start in COMPRESSED.values()))
        except OSError as error:  # a folder, for one
            raise self._unreadable(error) from None
        packed = next((ending for ending, start in COMPRESSED.items() if first.startswith(start)), None)
        if packed == ".bz2" and suffix != ".bz2":  # three letters that a sentence may begin with
            packed = None
        if suffix in COMPRESSED and packed != suffix and first:
            raise InputError(f"{self.name} is named {suffix}, but is not packed so")
        buffered = io.BufferedReader(self._source)
        match packed:
            case ".gz":
                return gzip.GzipFile(fileobj=buffered, mode="rb")
            case ".bz2":
                return BZ2File(buffered)
            case ".xz":
                return lzma.LZMAFile(buffered)
            case ".zst":
                how = "unpack it first, or write zstdcat FILE | attnviz ... -"
                raise InputError(f"{self.name} is packed with zstd: {how}")
        if first.startswith((*WIDE,)):
            try:
                from_utf8(first)
            except InputError as error:
                raise InputError(f"{self.name} is {error}") from None
        return buffered

    def _unreadable(self, error: Exception, where: str = "") -> InputError:
        reason = getattr(error, "strerror", None) or error
        return InputError(f"{self.name} cannot be read{where}: {visible(' '.join(str(reason).split()))}")
