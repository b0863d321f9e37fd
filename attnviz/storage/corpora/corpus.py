"""Corpora: sentences from a file or standard input, read one by one in constant memory."""

from __future__ import annotations

import os
import stat
import sys
import unicodedata
import weakref
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from io import BufferedIOBase, BufferedReader
from pathlib import Path
from typing import Literal, TypeAlias, cast

from attnviz.errors import InputError
from attnviz.storage.corpora.conllu import read_conllu
from attnviz.text.corpus import BadLine, CorpusLine
from attnviz.text.display import WIDE, check_text, clip, from_utf8, visible

Format: TypeAlias = Literal["lines", "conllu"]  # one sentence per line; a treebank
# Unicode categories of characters that cannot be seen: control and format characters, and spaces.
_UNSEEN = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp"})
STANDARD_INPUT = "-"
LONGEST = 2**20  # bytes of a line; a longer one is skipped without being held in memory
# The endings of compressed files, and the bytes that such files begin with.
COMPRESSED = {
    ".gz": b"\x1f\x8b",
    ".bz2": b"BZh9",
    ".xz": b"\xfd7zXZ\x00",
    ".zst": b"\x28\xb5\x2f\xfd",
}


class Corpus:
    """The sentences of a file or of standard input, in order, with lines that cannot be used.

    The file is closed at its end, or when the corpus is deleted. Raises InputError: it cannot be read, is compressed,
    or is not UTF-8.
    """

    def __init__(self, path: str | os.PathLike[str], kind: Format) -> None:
        self._kind = kind
        self._close: Callable[[], object] = int  # standard input is not ours to close
        if str(path) == STANDARD_INPUT:
            self.name = "standard input"
            if sys.stdin is None:
                raise InputError("standard input is closed")
            self._stream = cast("BufferedIOBase", sys.stdin.buffer)
            return
        self.name = visible(str(path))
        try:
            stream = Path(path).open("rb")  # noqa: SIM115 - open until its last line
        except (OSError, ValueError) as error:  # the second of a NUL in the name
            raise self._unreadable(error) from None
        self._stream = stream
        self._close = weakref.finalize(self, stream.close)
        try:
            self._check_device(stream)
            self._check_encoding(stream, Path(path).suffix.lower())
        except InputError:
            self._close()
            raise

    def __iter__(self) -> Iterator[CorpusLine | BadLine]:
        lines = self._lines()
        for line in read_conllu(lines) if self._kind == "conllu" else _sentences(lines):
            yield line if isinstance(line, BadLine) else _check(line)

    def _lines(self) -> Iterator[str | BadLine]:
        """Yield each line without its line end, or the reason why it cannot be read."""
        number = 1
        try:
            while (raw := self._stream.readline(LONGEST + 2)) != b"":
                yield self._line(raw, number)
                number += 1
        except OSError as error:
            raise self._unreadable(error, f" from line {number:,} on") from None
        finally:
            self._close()

    def _line(self, raw: bytes, number: int) -> str | BadLine:
        """Return a line as text without its line end; skip the rest of a line that is too long."""
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

    def _check_device(self, stream: BufferedReader) -> None:
        """Refuse a device such as /dev/zero, which has no end; a pipe and a terminal are read."""
        mode = os.fstat(stream.fileno()).st_mode
        if (stat.S_ISCHR(mode) or stat.S_ISBLK(mode)) and not stream.isatty():
            raise InputError(f"{self.name} is a device, not a file of sentences")

    def _check_encoding(self, stream: BufferedReader, suffix: str) -> None:
        """Refuse a compressed file or another encoding, before any line is read."""
        try:
            first = stream.peek(8)
        except OSError as error:  # a folder, for one
            raise self._unreadable(error) from None
        if suffix in COMPRESSED or first.startswith(tuple(COMPRESSED.values())):
            raise InputError(f"{self.name} is compressed: decompress it first")
        if first.startswith(tuple(WIDE)):
            try:
                from_utf8(first[:8])
            except InputError as error:
                raise InputError(f"{self.name} is {error}") from None

    def _unreadable(self, error: Exception, where: str = "") -> InputError:
        reason = getattr(error, "strerror", None) or error
        return InputError(
            f"{self.name} cannot be read{where}: {visible(' '.join(str(reason).split()))}"
        )


def read_corpus(path: str | os.PathLike[str], *, kind: Format | None = None) -> Corpus:
    """Return the sentences of a file, or of standard input (``-``).

    Blank lines are skipped; spaces around a sentence are removed. Without a kind, the file name decides: a treebank if
    it ends in ``.conllu``, otherwise one sentence per line. Raises InputError: the file cannot be read.
    """
    suffix = Path(path).suffix.lower()
    if suffix in {".jsonl", ".ndjson"}:
        how = "write one sentence a line, as jq -r .text FILE does"
        raise InputError(f"{visible(str(path))} holds JSON lines, which are not read: {how}")
    return Corpus(path, kind or ("conllu" if suffix == ".conllu" else "lines"))


def _sentences(lines: Iterator[str | BadLine]) -> Iterator[CorpusLine | BadLine]:
    """Yield each line that is not blank, without the spaces around it, and its number."""
    for number, line in enumerate(lines, start=1):
        if isinstance(line, BadLine):
            yield line
        elif line.strip():
            yield CorpusLine(number=number, text=line.strip())


def _check(line: CorpusLine) -> CorpusLine | BadLine:
    """Return the sentence, or the reason why no model could read it or no reader could see it."""
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
