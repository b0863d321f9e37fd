"""A saved walkthrough as it lies in its file, read without numpy and with nothing of attnviz but its errors."""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from attnviz.errors import FileFormatError
from attnviz.walkthroughs.verify.arithmetic import OPERATIONS, CalculationStep, SavedGrid

FORMAT = "attnviz-walkthrough"
VERSION = 1
LARGEST = 2**29  # bytes of a file that is read; a whole layer of DistilBERT takes about 150 million
SHORT = 40  # characters of a value that a message shows
RENAMED = {"map": "projection"}  # operations that earlier versions called otherwise
HIDDEN = "-inf"  # how a file writes minus infinity, for which JSON has no number
_KINDS: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "text",
}  # of JSON, as messages name them
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedFile:
    """A whole file."""

    grids: Mapping[str, SavedGrid]  # by name
    steps: tuple[CalculationStep, ...]  # in the order of the calculation
    fields: Mapping[str, object]  # everything that the file holds, as JSON gives it

    @property
    def is_changed(self) -> bool:
        """Whether anything was changed after the receipt was issued."""
        issued = self.fields.get("digest")
        if issued is None and self.fields.get("receipt") is None:
            return False
        return issued != digest(self.fields)


def read(path: str | os.PathLike[str]) -> SavedFile:
    """Read a whole file. Raises FileFormatError: unreadable, too large, or no walkthrough, in one line."""
    try:
        return parse(contents(path, LARGEST))
    except FileFormatError as error:
        reason = str(error)
    except MemoryError:
        reason = "it is too large for this computer's memory"
    except RecursionError:
        reason = "it is nested too deeply to be a walkthrough"
    raise FileFormatError(  # with everything that a terminal could obey spelled out
        "".join(
            one if one.isprintable() else one.encode("unicode_escape").decode()
            for one in f"{path}: {reason}"
        )
    )


def contents(path: str | os.PathLike[str], largest: int) -> bytes:
    """The bytes of a file. Raises FileFormatError: it cannot be read, is empty, or is larger than `largest`."""
    try:
        found = Path(path).stat()
        if not stat.S_ISREG(found.st_mode):
            raise FileFormatError(
                "it is a folder" if stat.S_ISDIR(found.st_mode) else "it is not a regular file"
            )
        if found.st_size > largest:
            raise FileFormatError(
                f"it has {found.st_size:,} bytes, and at most {largest:,} are read"
            )
        raw = Path(path).read_bytes()
    except OSError as error:
        raise FileFormatError(f"it cannot be read: {error.strerror or error}") from None
    except ValueError:  # a path with a null character
        raise FileFormatError("it cannot be read: no file has such a name") from None
    if not raw.strip():
        raise FileFormatError("it is empty")
    return raw


def parse(text: str | bytes) -> SavedFile:
    """The walkthrough that a JSON text holds. Raises FileFormatError: it is not JSON or not a walkthrough."""
    try:
        fields = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_each_once)
    except ValueError as error:
        raise FileFormatError(f"it is not JSON: {error}") from None
    if not isinstance(fields, dict) or fields.get("format") != FORMAT:
        raise FileFormatError(
            'it holds no walkthrough (attnviz writes one with "attnviz walkthrough -o walk.json")'
        )
    if fields.get("version") != VERSION:
        raise FileFormatError(
            f"it is of version {named(fields.get('version'))}, but this attnviz reads version {VERSION}: update attnviz"
        )
    grids = {}
    for name, grid in _expect(fields.get("grids"), dict, "grids").items():
        grids[_plain_name(name, "a grid's name")] = _grid(
            _expect(grid, dict, f"grids.{name}"), f"grids.{name}"
        )
    found = _expect(fields.get("steps"), list, "steps")
    steps = tuple(
        _step(_expect(step, dict, f"steps[{i}]"), f"steps[{i}]", grids)
        for i, step in enumerate(found)
    )
    _check_order(steps, grids)
    return SavedFile(grids=grids, steps=steps, fields=fields)


def digest(fields: Mapping[str, object]) -> str:
    """What differs whenever a number or a label does, whichever program wrote them down."""
    text = json.dumps({name: value for name, value in fields.items() if name != "digest"})
    canonical = json.dumps(json.loads(text, parse_int=float), sort_keys=True)  # to some, 1.0 is 1
    return hashlib.sha256(canonical.encode()).hexdigest()


def named(value: object) -> str:
    """A value as an error's message names it: short."""
    if isinstance(value, dict | list):
        return _KINDS[type(value)]
    return (
        "nothing" if value is None else _short(json.dumps(value, ensure_ascii=False, default=str))
    )


def _short(text: str) -> str:
    return text if len(text) <= SHORT else text[: SHORT - 1].rstrip() + "…"


def number(value: object, where: str) -> float:
    """A finite number. Raises FileFormatError: it is something else, such as true, or text that looks like one."""
    if type(value) not in {int, float}:
        quoted = ": write it without quotation marks" if _looks_like_number(value) else ""
        raise FileFormatError(f"{where} must be a number, not {named(value)}{quoted}")
    try:
        found = float(value)  # type: ignore[arg-type]  # by exact type, just now
    except OverflowError:
        found = math.inf
    if not math.isfinite(found):
        raise FileFormatError(
            f"{where} must be finite, not {'NaN' if math.isnan(found) else 'infinity'}"
        )
    return found


def _texts(value: object, where: str) -> tuple[str, ...]:
    return tuple(_text(item, f"{where}[{i}]") for i, item in enumerate(_expect(value, list, where)))


def _grid(found: Mapping[str, object], where: str) -> SavedGrid:
    values = found.get("values")
    if not isinstance(values, list) or not values:
        raise FileFormatError(
            f"{where}.values must be a list of rows, not {named(values) if values else 'empty'}"
        )
    rows = []
    for i, row in enumerate(values):
        at = f"{where}.values[{i}]"
        if not isinstance(row, list) or not row:
            raise FileFormatError(
                f"{at} must be a list of numbers, not {named(row) if row else 'empty'}"
            )
        if len(row) != len(values[0]):
            raise FileFormatError(
                f"{at} holds {len(row)} numbers, but the row before it {len(values[i - 1])}"
            )
        rows.append(
            [-math.inf if x == HIDDEN else number(x, f"{at}[{j}]") for j, x in enumerate(row)]
        )
    names = []
    for axis, size in (("rows", len(rows)), ("columns", len(rows[0]))):
        labels = _texts(found.get(axis, []), f"{where}.{axis}")
        if labels and len(labels) != size:
            raise FileFormatError(f"{where} has {size} {axis}, but {len(labels)} are named")
        names.append(labels)
    return SavedGrid(values=rows, rows=names[0], columns=names[1])


def _step(
    found: Mapping[str, object], where: str, grids: Mapping[str, SavedGrid]
) -> CalculationStep:
    operation = _text(found.get("operation"), f"{where}.operation")
    operation = RENAMED.get(operation, operation)
    if operation not in OPERATIONS:
        raise FileFormatError(
            f"{where}.operation must be one of {', '.join(OPERATIONS)}, not {named(operation)}"
        )
    operands = _texts(found.get("operands"), f"{where}.operands")
    (fewest, most), numbered = OPERATIONS[operation].operands, OPERATIONS[operation].numbered
    if not fewest <= len(operands) <= most:
        wanted = str(fewest) if fewest == most else f"{fewest} to {most}"
        raise FileFormatError(f"{where}: {operation} takes {wanted} grids, not {len(operands)}")
    beside = found.get("number")
    if (beside is None) == numbered:
        raise FileFormatError(
            f"{where}: {operation} takes {'a' if beside is None else 'no'} number beside its grids"
        )
    step = CalculationStep(
        name=_plain_name(_text(found.get("name"), f"{where}.name"), f"{where}.name"),
        result=_text(found.get("result"), f"{where}.result"),
        operation=operation,
        operands=operands,
        number=None if beside is None else number(beside, f"{where}.number"),
    )
    if unknown := [name for name in (*operands, step.result) if name not in grids]:
        raise FileFormatError(f"{where} ({step.name}): there is no grid {named(unknown[0])}")
    return step


def _check_order(steps: tuple[CalculationStep, ...], grids: Mapping[str, SavedGrid]) -> None:
    """Refuse a calculation that uses what it has not come to yet, or makes a grid twice."""
    known = set(grids) - {step.result for step in steps}
    for i, step in enumerate(steps):
        if early := [name for name in step.operands if name not in known]:
            raise FileFormatError(
                f"steps[{i}] ({step.name}) is made from {early[0]}, which comes later"
            )
        if step.result in known:
            raise FileFormatError(
                f"steps[{i}] ({step.name}) makes {step.result}, which a step before it made"
            )
        known.add(step.result)


def _expect(value: object, kind: type[_Value], where: str) -> _Value:
    if not isinstance(value, kind):
        raise FileFormatError(f"{where} must be {_KINDS[kind]}, not {named(value)}")
    return value


def _text(value: object, where: str) -> str:
    text = _expect(value, str, where)
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise FileFormatError(f"{where} holds half a character: {named(text)}")
    return text


def _plain_name(name: str, where: str) -> str:
    if not name.strip() or not name.isprintable():
        raise FileFormatError(f"{where} must be text that can be printed, not {named(name)}")
    return name


def _looks_like_number(value: object) -> bool:
    try:
        return (
            isinstance(value, str)
            and value.isascii()
            and "_" not in value
            and math.isfinite(float(value))
        )
    except ValueError:
        return False


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _each_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        name = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"{_short(name)!r} is there twice")
    return fields
