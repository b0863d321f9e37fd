"""Corpora: sentences from a file or standard input, one after another, at a memory that does not grow with them."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import lzma
import os
import stat
import sys
import unicodedata
import weakref
import zlib
from bz2 import BZ2File
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from attnviz.errors import InputError
from attnviz.storage.corpora.conllu import read_conllu
from attnviz.text.corpus import BadLine, CorpusLine
from attnviz.text.display import WIDE, check_text, clip, from_utf8, visible

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Format: TypeAlias = Literal[
    "lines", "jsonl", "conllu"
]  # a sentence a line; a JSON object a line; a treebank
FIELD = "text"  # where a JSON object holds its sentence, unless another name is given
_ENDINGS: dict[str, Format] = {".jsonl": "jsonl", ".ndjson": "jsonl", ".conllu": "conllu"}
_UNSEEN = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp"})
STANDARD_INPUT = "-"
LONGEST = 2**20  # bytes that a line may have; a longer one is left out without being held
COMPRESSED = {
    ".gz": b"\x1f\x8b",
    ".bz2": b"BZh",
    ".xz": b"\xfd7zXZ\x00",
    ".zst": b"\x28\xb5\x2f\xfd",
}
"""Endings of compressed files, and the bytes that such files begin with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """What a corpus is, so that another one is not taken for it."""

    name: str  # the file's, without its folder
    size: int  # in bytes
    sha256: str  # of all that is in it


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


class Corpus:
    """The sentences of a file or of standard input, one after another, and in their places the lines not to be used.

    The file is closed at its end, or when nobody holds the corpus any more. Raises InputError: it is packed or encoded
    in no known way.
    """

    def __init__(self, path: str | os.PathLike[str], field: str | None, kind: Format) -> None:
        self._field, self._kind = field, kind
        self.size: int | None = (
            None  # the bytes of the file as it lies on the disk; None where it is no regular file
        )
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
    def read(self) -> int:
        """How many bytes of the file as it lies on the disk have been read."""
        return self._source.count

    def __iter__(self) -> Iterator[CorpusLine | BadLine]:
        lines = self._lines()
        for line in (
            read_conllu(lines) if self._kind == "conllu" else _sentences(lines, self._field)
        ):
            yield line if isinstance(line, BadLine) else _check(line)

    def _lines(self) -> Iterator[str | BadLine]:
        """Every line without its end, or in its place why it cannot be read; InputError where the file breaks off."""
        number = 1
        try:
            while (raw := self._stream.readline(LONGEST + 2)) != b"":
                yield self._line(raw, number)
                number += 1
        except EOFError:
            raise InputError(
                f"{self.name} breaks off in line {number:,}: it was not packed whole"
            ) from None
        except (OSError, zlib.error, lzma.LZMAError) as error:
            raise self._unreadable(error, f" from line {number:,} on") from None
        finally:
            self._close()

    def _line(self, raw: bytes, number: int) -> str | BadLine:
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
        packed = next(
            (ending for ending, start in COMPRESSED.items() if first.startswith(start)), None
        )
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
        return InputError(
            f"{self.name} cannot be read{where}: {visible(' '.join(str(reason).split()))}"
        )


def read_corpus(
    path: str | os.PathLike[str], *, field: str | None = None, kind: Format | None = None
) -> Corpus:
    """The sentences of a file, perhaps compressed (.gz, .bz2, .xz), or of standard input (``-``).

    Empty lines and lines of spaces are passed over; spaces around a sentence are no part of it. `field` is the name
    that a JSON object has its sentence under, else ``text``. Without a kind the file's name says how sentences stand in
    it (.jsonl, .conllu, else a sentence a line); where a field is given it is JSON. Raises InputError: the file cannot
    be read; while its lines are read, it breaks off.
    """
    if kind is None:
        endings = [
            ending.lower() for ending in Path(path).suffixes if ending.lower() not in COMPRESSED
        ]
        kind = _ENDINGS.get(endings[-1] if endings else "", "lines" if field is None else "jsonl")
    if field is not None and kind != "jsonl":
        raise InputError(
            f"{visible(str(path))} is read as {kind}: only JSON lines have a field {clip(field, 40)!r}"
        )
    return Corpus(path, (field or FIELD) if kind == "jsonl" else None, kind)


def fingerprint(path: str | os.PathLike[str]) -> Fingerprint | None:
    """What a corpus is, or InputError; None for standard input and other pipes, which can be read only once."""
    if str(path) == STANDARD_INPUT:
        return None
    path = Path(path)
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode) and not stat.S_ISDIR(about.st_mode):
            return None
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError) as error:
        raise InputError(
            f"{visible(str(path))} cannot be read: {visible(str(getattr(error, 'strerror', error)))}"
        ) from None
    return Fingerprint(name=path.name, size=about.st_size, sha256=digest)


def _sentences(lines: Iterator[str | BadLine], field: str | None) -> Iterator[CorpusLine | BadLine]:
    for number, line in enumerate(lines, start=1):
        if isinstance(line, BadLine):
            yield line
        elif line.strip():
            text = line if field is None else _field(line, field, number)
            yield (
                text if isinstance(text, BadLine) else CorpusLine(number=number, text=text.strip())
            )


def _field(line: str, field: str, number: int) -> str | BadLine:
    try:
        found = json.loads(line)
    except RecursionError:
        return BadLine(number=number, reason="JSON nested too deeply")
    except ValueError as error:
        return BadLine(number=number, reason=f"not JSON: {visible(str(error))}")
    if not isinstance(found, dict):
        return BadLine(
            number=number, reason=f"no JSON object: there is no field {clip(field, 40)!r} in it"
        )
    if field not in found:
        others = clip(visible(", ".join(found)), 60) or "none"
        return BadLine(number=number, reason=f"no field {clip(field, 40)!r}; there are: {others}")
    text = found[field]
    return (
        text
        if isinstance(text, str)
        else BadLine(number=number, reason=f"field {clip(field, 40)!r} is no text")
    )


def _check(line: CorpusLine) -> CorpusLine | BadLine:
    """The sentence, if a model can read it and a person can see it."""
    number, text = line.number, line.text
    if "\0" in text:
        return BadLine(number=number, reason=f"a NUL (\\0) at character {text.index(chr(0)) + 1}")
    try:
        check_text(text, "the sentence")
    except InputError as error:
        return BadLine(number=number, reason=str(error))
    if not any(unicodedata.category(character) not in _UNSEEN for character in text):
        return BadLine(
            number=number, reason=f"nothing in it can be seen: {clip(visible(text), 30)}"
        )
    return line
