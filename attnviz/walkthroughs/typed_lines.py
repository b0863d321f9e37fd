"""JSON and YAML typed by hand: plain values, each with the line that it stands on.

YAML's own way of making values is not used: it makes objects, dates and copies of copies. Here its scanner only takes
the text apart; a file with anchors, which is what a YAML bomb is made of, is refused.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from attnviz.errors import FileFormatError
from attnviz.text.display import visible
from attnviz.walkthroughs.verify.saved import contents, named

if TYPE_CHECKING:
    import yaml

LARGEST = 2**20
"""Bytes of a file that is read: numbers typed by hand are far fewer."""

DEEPEST = 8
"""How many lists and objects may lie in one another."""

ENDINGS = (".json", ".yaml", ".yml")

_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}
_INTEGER = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_HALVES = re.compile(r"(?<!\\)((?:\\\\)*)\\u(d[89ab]..)\\u(d[c-f]..)", re.IGNORECASE)
_INFINITE = re.compile(r"[-+]?\.?(?:inf|infinity)|[-+]?\.?nan", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Line:
    """A value and where it stands.

    Attributes:
        value: an object, a list, or a text, number, true, false or null.
        line: counted from 1.
    """

    value: Value
    line: int


Value: TypeAlias = dict[str, Line] | list[Line] | str | int | float | bool | None


def read_lines(path: str | os.PathLike[str]) -> Line:
    """What a file holds.

    Raises:
        FileFormatError: it cannot be read, is too large, or is neither JSON nor YAML; the message is one line.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in ENDINGS:
        raise FileFormatError(visible(f"{path}: numbers are read from {', '.join(ENDINGS)}, not {suffix!r}"))
    try:
        return _parsed(contents(path, LARGEST), is_json=suffix == ".json")
    except FileFormatError as error:
        reason = str(error)
    except RecursionError:
        reason = "it is nested too deeply to be numbers"
    raise FileFormatError(visible(f"{path}: {' '.join(reason.split())}"))


def _parsed(raw: bytes, *, is_json: bool) -> Line:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileFormatError(f"it is not UTF-8: byte {error.start + 1} is 0x{raw[error.start]:02x}") from None
    if is_json:
        try:
            json.loads(text, parse_int=str, parse_float=str)  # for the sake of its refusals
        except ValueError as error:
            raise FileFormatError(f"it is not JSON: {error}") from None
        # JSON is YAML but for tabs, which stand in no text of it, and for the spelling of emoji.
        text = _HALVES.sub(_joined, text.replace("\t", " "))
    import yaml

    try:
        events = _Events(yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
        return events.document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = "" if mark is None else f"line {mark.line + 1}: "
        raise FileFormatError(f"{where}it is not YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # the last two of an escape that is no character
        raise FileFormatError(f"it is not YAML: {error}") from None


class _Events:
    """What the scanner finds, one thing after another, put together."""

    def __init__(self, events: Iterator[yaml.Event]) -> None:
        self._events = events

    def document(self) -> Line:
        """The only document of the text."""
        import yaml

        found: Line | None = None
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                if found is not None:
                    raise FileFormatError(f"line {_line(event)}: it holds a second document")
                found = self._value(next(self._events), 0)
        if found is None:
            raise FileFormatError("it is empty")
        return found

    def _value(self, event: yaml.Event, depth: int) -> Line:
        import yaml

        line = _line(event)
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise FileFormatError(f"line {line}: anchors and aliases (& and *) are not read: write the numbers out")
        if event.tag is not None and event.tag != "!":
            raise FileFormatError(f"line {line}: tags such as {event.tag[:40]} are not read")
        if isinstance(event, yaml.ScalarEvent):
            return Line(_scalar(event.value, line, plain=event.implicit[0]), line)
        if depth == DEEPEST:
            raise FileFormatError(f"line {line}: it is nested too deeply to be numbers")
        if isinstance(event, yaml.SequenceStartEvent):
            items = []
            while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
                items.append(self._value(event, depth + 1))
            return Line(items, line)
        fields: dict[str, Line] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._value(event, depth + 1)
            if not isinstance(event, yaml.ScalarEvent):
                raise FileFormatError(f"line {key.line}: a name must be text, not {named(key.value)}")
            name = event.value
            if name in fields:
                raise FileFormatError(f"line {key.line}: {name} is there twice")
            fields[name] = Line(self._value(next(self._events), depth + 1).value, key.line)
        return Line(fields, line)


def _line(event: yaml.Event) -> int:
    line: int = event.start_mark.line + 1
    return line


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


def _joined(pair: re.Match[str]) -> str:
    """One character that JSON spelled as the two halves that UTF-16 has of it."""
    halves = bytes.fromhex(pair[2] + pair[3])
    return pair[1] + halves.decode("utf-16-be")
