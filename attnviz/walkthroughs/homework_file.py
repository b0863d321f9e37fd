"""JSON and YAML written by hand: plain values and tables of numbers, each with the line that it stands on.

PyYAML only takes the text apart, since it would make objects, dates and numbers of 1_000; anchors are refused.
"""

from __future__ import annotations

import json
import math
import os
import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from jaxtyping import Float64

from attnviz.errors import FileFormatError, InputError
from attnviz.text.display import from_utf8, visible
from attnviz.walkthroughs.verify.saved import contents, named, number

if TYPE_CHECKING:
    import yaml

LARGEST = 2**20  # bytes of a file that is read: numbers typed by hand are far fewer
DEEPEST = 8  # how many lists and objects may lie in one another
ONE_ROW = ("v", "bq", "bk", "bv", "bo")  # they, a query and its weights may be typed without a list around the row
ENDINGS = (".json", ".yaml", ".yml")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}
_INTEGER = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_HALVES = re.compile(r"(?<!\\)((?:\\\\)*)\\u(d[89ab]..)\\u(d[c-f]..)", re.IGNORECASE)
_INFINITE = re.compile(r"[-+]?\.?(?:inf|infinity)|[-+]?\.?nan", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Entry:
    """A value and where it stands."""

    value: Value  # an object, a list, or a text, number, true, false or null
    line: int  # counted from 1


Value: TypeAlias = dict[str, Entry] | list[Entry] | str | int | float | bool | None


def read_entries(path: str | os.PathLike[str]) -> Entry:
    """What a file holds. Raises FileFormatError: it cannot be read, is too large, or is neither JSON nor YAML."""
    suffix = Path(path).suffix.lower()
    if suffix not in ENDINGS:
        raise FileFormatError(visible(f"{path}: numbers are read from {', '.join(ENDINGS)}, not {suffix!r}"))
    try:
        return _parse(contents(path, LARGEST), is_json=suffix == ".json")
    except FileFormatError as error:
        reason = str(error)
    except RecursionError:
        reason = "it is nested too deeply to be numbers"
    raise FileFormatError(visible(f"{path}: {' '.join(reason.split())}"))


def _parse(raw: bytes, *, is_json: bool) -> Entry:
    try:
        text = from_utf8(raw.removeprefix(BOM_UTF8))
    except InputError as error:
        raise FileFormatError(f"it is {error}") from None
    if is_json:
        try:
            json.loads(text, parse_int=str, parse_float=str)  # for the sake of its refusals
        except ValueError as error:
            raise FileFormatError(f"it is not JSON: {error}") from None
        # JSON is YAML but for tabs, which stand in no text of it, and for the spelling of emoji.
        text = _HALVES.sub(_join, text.replace("\t", " "))
    import yaml

    try:
        return _document(yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = "" if mark is None else f"line {mark.line + 1}: "
        raise FileFormatError(f"{where}it is not YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # the last two of an escape that is no character
        raise FileFormatError(f"it is not YAML: {error}") from None


def _document(events: Iterator[yaml.Event]) -> Entry:
    import yaml

    found: Entry | None = None
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            if found is not None:
                raise FileFormatError(f"line {_line(event)}: it holds a second document")
            found = _entry(next(events), events, 0)
    if found is None:
        raise FileFormatError("it is empty")
    return found


def _entry(event: yaml.Event, events: Iterator[yaml.Event], depth: int) -> Entry:
    import yaml

    line = _line(event)
    if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
        raise FileFormatError(f"line {line}: anchors and aliases (& and *) are not read: write the numbers out")
    if event.tag is not None and event.tag != "!":
        raise FileFormatError(f"line {line}: tags such as {event.tag[:40]} are not read")
    if isinstance(event, yaml.ScalarEvent):
        return Entry(_scalar(event.value, line, plain=event.implicit[0]), line)
    if depth == DEEPEST:
        raise FileFormatError(f"line {line}: it is nested too deeply to be numbers")
    if isinstance(event, yaml.SequenceStartEvent):
        return Entry([_entry(item, events, depth + 1) for item in _until(events, yaml.SequenceEndEvent)], line)
    fields: dict[str, Entry] = {}
    for key in _until(events, yaml.MappingEndEvent):
        name = _entry(key, events, depth + 1)
        if not isinstance(key, yaml.ScalarEvent):
            raise FileFormatError(f"line {name.line}: a name must be text, not {named(name.value)}")
        if key.value in fields:
            raise FileFormatError(f"line {name.line}: {key.value} is there twice")
        fields[key.value] = Entry(_entry(next(events), events, depth + 1).value, name.line)
    return Entry(fields, line)


def _until(events: Iterator[yaml.Event], end: type[yaml.Event]) -> Iterator[yaml.Event]:
    """The events up to one that ends a list or an object; whoever takes one takes all that belongs to it."""
    while not isinstance(event := next(events), end):
        yield event


def _line(event: yaml.Event) -> int:
    return int(event.start_mark.line) + 1


def _scalar(text: str, line: int, *, plain: bool) -> Value:
    """A value as it is written: only what stands without quotation marks can be a number."""
    if not plain:
        return text
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _INFINITE.fullmatch(text):
        raise FileFormatError(f"line {line}: a number must be finite, not {text}")
    if not _FLOAT.fullmatch(text):
        return text
    found = float(text)
    if not math.isfinite(found):
        raise FileFormatError(f"line {line}: {text[:40]} is too large to be a number")
    return int(text) if _INTEGER.fullmatch(text) else found


def _join(pair: re.Match[str]) -> str:
    """One character that JSON spelled as the two halves that UTF-16 has of it."""
    return pair[1] + bytes.fromhex(pair[2] + pair[3]).decode("utf-16-be")


@dataclass(frozen=True, slots=True)
class NumberTable:
    """Numbers as they were typed."""

    name: str  # in the file
    line: int  # likewise
    values: Float64[np.ndarray, "row column"]  # the numbers [row, column]

    def size(self, side: str) -> int:
        """How many ``rows`` or ``columns``."""
        return int(self.values.shape[side == "columns"])


def read_table(name: str, field: Entry) -> NumberTable:
    """A matrix, or one row where that may be. Raises FileFormatError: no numbers, or rows of different lengths."""
    rows = field.value
    if not isinstance(rows, list):
        raise FileFormatError(f"line {field.line}: {name} must be a list of numbers, not {named(rows)}")
    if name in (*ONE_ROW, "query", "weights") and not any(isinstance(row.value, list) for row in rows):
        rows = [Entry(rows, field.line)]
    if not rows:
        raise FileFormatError(f"line {field.line}: {name} is empty")
    values: list[list[float]] = []
    for i, row in enumerate(rows):
        where = f"line {row.line}: row {i} of {name}"
        if not isinstance(row.value, list):
            raise FileFormatError(f"{where} must be a list of numbers, not {named(row.value)}")
        if not row.value:
            raise FileFormatError(f"{where} is empty")
        values.append([number(cell.value, f"line {cell.line}: {name}[{i}][{j}]") for j, cell in enumerate(row.value)])
        if len(values[i]) != len(values[0]):
            raise FileFormatError(f"{where} has {len(values[i])} numbers, but row 0 has {len(values[0])}")
    if name in ONE_ROW and len(values) > 1:
        raise FileFormatError(f"line {field.line}: {name} must be one row, not {len(values)}")
    return NumberTable(name, field.line, np.array(values))


def match(one: NumberTable, side: str, other: NumberTable, other_side: str) -> None:
    """Refuse two tables of which two sizes clash, by their names and lines: a FileFormatError."""
    if one.size(side) != other.size(other_side):
        raise FileFormatError(
            f"{one.name} (line {one.line}) has {one.size(side)} {side}, but {other.name} (line {other.line}) has "
            f"{other.size(other_side)} {other_side}"
        )


def expect(one: NumberTable, side: str, wanted: int, what: str) -> None:
    """Refuse a table whose size is not what something else makes it: a FileFormatError."""
    if one.size(side) != wanted:
        raise FileFormatError(f"{one.name} (line {one.line}) has {one.size(side)} {side}, but {what} is {wanted}")
