"""The lines of a treebank in CoNLL-U, a sentence at a time and taken apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from attnviz.text.corpus import BadLine
from attnviz.text.display import clip, visible

COLUMNS = 10
MOST_LINES = 10_000
"""Lines that a sentence may have: a file without empty lines is no treebank, and must not fill the memory."""

_WORD = re.compile(r"[1-9][0-9]{0,5}")
_RANGE = re.compile(r"([1-9][0-9]{0,5})-([1-9][0-9]{0,5})")
_EMPTY = re.compile(r"(0|[1-9][0-9]{0,5})\.([1-9][0-9]{0,5})")


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a sentence taken apart: a word, several written as one, or an empty node.

    Attributes:
        number: its line in the file.
        columns: all ten.
        first: of a word its number, from 1; of words written as one that of the first; of an empty node that of the
            word before it.
        last: of words written as one that of the last; else as first.
        kind: which of the three.
    """

    number: int
    columns: list[str]
    first: int
    last: int
    kind: str

    @property
    def form(self) -> str:
        """What is written."""
        return self.columns[1]

    def misc(self, name: str) -> str | None:
        """What the last column says under a name; None where it says nothing."""
        for item in self.columns[9].split("|"):
            key, equals, value = item.partition("=")
            if key == name and equals:
                return value
        return None


@dataclass(slots=True)
class Block:
    """The lines of one sentence, and what was found wrong with them.

    Attributes:
        line: where it begins.
        comments: what its comments say by name, each with its line; a comment that names nothing is left out.
        lines: its other lines, each with its number.
        rows: the same, taken apart.
        faults: what is wrong, in the order in which it was found.
        id_field: which part of an opened bracket names the entity, as the file declares.
    """

    line: int
    comments: dict[str, tuple[int, str]] = field(default_factory=dict)
    lines: list[tuple[int, str]] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    faults: list[BadLine] = field(default_factory=list)
    id_field: int = 0

    def fault(self, number: int, reason: str) -> None:
        """Note that a line is wrong."""
        if len(self.faults) < MOST_LINES:
            self.faults.append(BadLine(number=number, reason=reason))

    def words(self) -> list[Row]:
        """The rows that are words."""
        return [row for row in self.rows if row.kind == "word"]


def blocks(lines: Iterable[str | BadLine]) -> Iterator[Block]:
    """The lines of a treebank, a sentence at a time."""
    block: Block | None = None
    id_field = 0
    for number, line in enumerate(lines, start=1):
        if isinstance(line, str) and not line.strip():
            if block is not None and (block.lines or block.faults):
                yield block
            block = None
            continue
        block = block or Block(number, id_field=id_field)
        if isinstance(line, BadLine):
            block.fault(number, line.reason)
        elif line.startswith("#"):
            _comment(block, number, line)
            id_field = block.id_field
        elif len(block.lines) < MOST_LINES:
            block.lines.append((number, line.rstrip("\r\n")))
        elif len(block.lines) == MOST_LINES and not block.faults:
            block.fault(number, f"the sentence has more than {MOST_LINES:,} lines")
    if block is not None and (block.lines or block.faults):
        yield block


def _comment(block: Block, number: int, line: str) -> None:
    name, equals, value = line[1:].partition("=")
    name, value = name.strip(), value.strip()
    if not equals:
        return
    if name == "global.Entity":
        fields = value.split("-")
        block.id_field = next((place for place, what in enumerate(fields) if what in {"eid", "GRP"}), 0)
    elif name in {"text", "sent_id"}:
        if name in block.comments:
            block.fault(number, f"a second # {name}, after that of line {block.comments[name][0]}")
        block.comments.setdefault(name, (number, value))


def take_apart(block: Block) -> bool:
    """Fill the block's rows; whether they follow one another as they must."""
    before = len(block.faults)
    for number, line in block.lines:
        columns = line.split("\t")
        row = _row(number, columns)
        if len(columns) != COLUMNS:
            hint = "" if "\t" in line else ": they are separated by tabs"
            block.fault(number, f"{len(columns)} column{'s' * (len(columns) > 1)} where there must be {COLUMNS}{hint}")
        elif row is None:
            block.fault(number, f"{quoted(columns[0])} is no word's number")
        elif not row.form:
            block.fault(number, f"word {columns[0]} has no form")
        else:
            block.rows.append(row)
    if len(block.faults) == before:
        _check_order(block)
    return len(block.faults) == before


def _row(number: int, columns: list[str]) -> Row | None:
    name = columns[0]
    if _WORD.fullmatch(name):
        return Row(number, columns, int(name), int(name), "word")
    if match := _RANGE.fullmatch(name):
        return Row(number, columns, int(match[1]), int(match[2]), "range")
    if match := _EMPTY.fullmatch(name):
        return Row(number, columns, int(match[1]), int(match[1]), "empty")
    return None


def _check_order(block: Block) -> None:
    last = covered = n_empty = 0
    for row in block.rows:
        match row.kind:
            case "word":
                fits = row.first == last + 1
                last, n_empty = row.first, 0
            case "range":
                fits = covered < last + 1 == row.first <= row.last
                covered = row.last
            case _:
                n_empty += 1
                fits = row.columns[0] == f"{last}.{n_empty}"
        if not fits:
            block.fault(row.number, f"number {row.columns[0]} is out of order")
    if not last:
        block.fault(block.line, "the sentence has no words")
    for row in block.rows:
        if row.kind == "range" and row.last > last:
            block.fault(row.number, f"{row.columns[0]} goes past the last word, {last}")


def named(row: Row) -> str:
    """A word as a message names it."""
    return f"word {row.columns[0]} ({quoted(row.form)})"


def quoted(text: str) -> str:
    """A few characters of the file as a message shows them."""
    return f"“{clip(visible(text), 30)}”"
