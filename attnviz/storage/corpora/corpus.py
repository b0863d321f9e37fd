"""Corpora: sentences from a file or standard input, one after another, at a memory that does not grow with them."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from attnviz.errors import InputError
from attnviz.storage.corpora.conllu import read_conllu
from attnviz.storage.corpora.stream import COMPRESSED, STANDARD_INPUT, LineStream
from attnviz.text.corpus import BadLine, CorpusLine, Parse
from attnviz.text.display import check_text, clip, visible

Format: TypeAlias = Literal["lines", "jsonl", "conllu"]  # a sentence a line; a JSON object a line; a treebank
FIELD = "text"  # where a JSON object holds its sentence, unless another name is given
_ENDINGS: dict[str, Format] = {".jsonl": "jsonl", ".ndjson": "jsonl", ".conllu": "conllu"}
_UNSEEN = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """What a corpus is, so that another one is not taken for it."""

    name: str  # the file's, without its folder
    size: int  # in bytes
    sha256: str  # of all that is in it


class Corpus:
    """The sentences of a file, one after another, and in their places the lines that cannot be used.

    The file is closed at its end, or when nobody holds the corpus any more.
    """

    def __init__(self, path: str | os.PathLike[str], field: str | None, kind: Format) -> None:
        self._file = LineStream(path)
        self.name, self.size = self._file.name, self._file.size
        self._items = _treebank(self._file) if kind == "conllu" else _sentences(self._file, field)

    @property
    def read(self) -> int:
        """How many of these bytes have been read."""
        return self._file.count

    def __iter__(self) -> Iterator[CorpusLine | BadLine]:
        return self

    def __next__(self) -> CorpusLine | BadLine:
        return next(self._items)


def read_corpus(path: str | os.PathLike[str], *, field: str | None = None, kind: Format | None = None) -> Corpus:
    """The sentences of a file, perhaps compressed (.gz, .bz2, .xz), or of standard input (``-``).

    Empty lines and lines of spaces are passed over; spaces around a sentence are no part of it. `field` is the name
    that a JSON object has its sentence under, else ``text``. Without a kind the file's name says how sentences stand in
    it (.jsonl, .conllu, else a sentence a line); where a field is given it is JSON. Raises InputError: the file cannot
    be read; while its lines are read, it breaks off.
    """
    if kind is None:
        endings = [ending.lower() for ending in Path(path).suffixes if ending.lower() not in COMPRESSED]
        kind = _ENDINGS.get(endings[-1] if endings else "", "lines" if field is None else "jsonl")
    if field is not None and kind != "jsonl":
        raise InputError(f"{visible(str(path))} is read as {kind}: only JSON lines have a field {clip(field, 40)!r}")
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


def _sentences(file: LineStream, field: str | None) -> Iterator[CorpusLine | BadLine]:
    for number, line in enumerate(file, start=1):
        if isinstance(line, BadLine):
            yield line
        elif line.strip():
            text = line if field is None else _field(line, field, number)
            yield text if isinstance(text, BadLine) else _check(text.strip(), number)


def _treebank(file: LineStream) -> Iterator[CorpusLine | BadLine]:
    for parsed in read_conllu(file):
        yield parsed if isinstance(parsed, BadLine) else _check(parsed.text, parsed.line, parsed)


def _field(line: str, field: str, number: int) -> str | BadLine:
    try:
        found = json.loads(line)
    except RecursionError:
        return BadLine(number=number, reason="JSON nested too deeply")
    except ValueError as error:
        return BadLine(number=number, reason=f"not JSON: {visible(str(error))}")
    if not isinstance(found, dict):
        return BadLine(number=number, reason=f"no JSON object: there is no field {clip(field, 40)!r} in it")
    if field not in found:
        others = clip(visible(", ".join(found)), 60) or "none"
        return BadLine(number=number, reason=f"no field {clip(field, 40)!r}; there are: {others}")
    text = found[field]
    return text if isinstance(text, str) else BadLine(number=number, reason=f"field {clip(field, 40)!r} is no text")


def _check(text: str, number: int, parsed: Parse | None = None) -> CorpusLine | BadLine:
    """A sentence, if a model can read it and a person can see it."""
    if "\0" in text:
        return BadLine(number=number, reason=f"a NUL (\\0) at character {text.index(chr(0)) + 1}")
    try:
        check_text(text, "the sentence")
    except InputError as error:
        return BadLine(number=number, reason=str(error))
    if not any(unicodedata.category(character) not in _UNSEEN for character in text):
        return BadLine(number=number, reason=f"nothing in it can be seen: {clip(visible(text), 30)}")
    return CorpusLine(number=number, text=text, parsed=parsed)
