"""A comparison as a JSON file, which every view loads again, and as a tidy CSV table."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import numpy as np

from attnviz.errors import FileFormatError
from attnviz.heads.measures import (
    CHANCE,
    OFFSET,
    UNTRAINED,
    Measure,
    RoleRule,
    measures_of,
    named,
    rules_of,
)
from attnviz.heads.record import (
    Estimates,
    Example,
    HeadComparison,
    HeadProfile,
    Role,
)
from attnviz.heads.relations import relation_of, rule_of
from attnviz.heads.words import reason
from attnviz.storage import record_files
from attnviz.storage.encoding import from_text, to_text, with_nulls
from attnviz.storage.files import as_file_error, check_is_file
from attnviz.text.display import inert, visible
from attnviz.text.messages import _, language

_T = TypeVar("_T")
FORMAT, VERSION = "attnviz-comparison", 4
LARGEST = 2**29  # bytes; a model of 40 layers of 40 heads has 40 MB
# The fields of a comparison that JSON holds as they are.
PLAIN = (
    *("model", "kind", "corpus", "n_sentences", "n_tokens", "n_bad", "bad", "differences"),
    *("proves", "notes", "heads", "relations", "weights"),
)
# Numbers that are null in a file where nothing was counted.
MEASURED = {"value", "low", "high", "score", "divergence"}


def to_json(comparison: HeadComparison) -> str:
    """Return a comparison as JSON, with a digest by which a file that was changed is recognised.

    Raises RecordError: a text has half a character (a lone surrogate).
    """
    with language("en"):
        content = with_nulls({"format": FORMAT, "version": VERSION, **_content(comparison)})
    return to_text(content | {"digest": _digest(content)}, "the comparison")


def _content(comparison: HeadComparison) -> dict[str, Any]:
    """Return the fields of the file; those of a second model are nested under ``against``."""
    return {
        **{name: getattr(comparison, name) for name in PLAIN},
        "axes": ["layer", "head", "measure"],
        "measures": [
            {"name": item.name, "unit": item.unit, "meaning": _(item.meaning)}
            for item in comparison.measures
        ],
        "estimates": comparison.estimates,
        "controls": comparison.controls,
        "examples": _by_head(comparison.examples),
        "typical": _by_head(comparison.typical),
        "patterns": {
            head: {text: json.loads(record_files.to_json(record)) for text, record in held.items()}
            for head, held in _by_head(comparison.patterns).items()
        },
        "against": None if comparison.against is None else _content(comparison.against),
    }


def _by_head(examples: Mapping[tuple[str, str], _T]) -> dict[str, dict[str, _T]]:
    """Return examples by head, then by measure."""
    by_head: dict[str, dict[str, _T]] = {}
    for (head, measure), held in examples.items():
        by_head.setdefault(head, {})[measure] = held
    return by_head


def _digest(content: Mapping[str, object]) -> str:
    """Return a digest of all fields."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def load(path: str | os.PathLike[str]) -> HeadComparison:
    """Read a comparison that attnviz saved.

    Raises FileFormatError: the file cannot be read, holds something else, is of another version, or was changed.
    """
    path = Path(path)
    with as_file_error(path, "a comparison"):
        if path.suffix.lower() == ".stats":
            raise FileFormatError(
                "it was made by an earlier version of attnviz: make it again, as .json"
            )
        check_is_file(path, LARGEST)
        content = from_text(path.read_bytes())
        if content.get("format") != FORMAT:
            raise FileFormatError("it holds no comparison of heads")
        if content.get("version") != VERSION:
            raise FileFormatError("it was made by another version of attnviz: make it again")
        if content.pop("digest", None) != _digest(content):
            raise FileFormatError("it was changed after attnviz wrote it")
        try:
            return _read(content)
        except (LookupError, TypeError, ValueError, AttributeError):
            raise FileFormatError("it is damaged, or was not written by attnviz") from None


def _restored(value: Any) -> Any:
    """Return a value from JSON with NaN in place of null where a number was measured, and with known rules of roles."""
    if isinstance(value, dict):
        restored = {name: _restored(entry) for name, entry in value.items()}
        restored |= {name: math.nan for name in MEASURED & {*value} if value[name] is None}
        return restored | {name: _known(value[name]) for name in {"rule"} & {*value}}
    return [_restored(entry) for entry in value] if isinstance(value, list) else value


def _known(content: object) -> RoleRule:
    """Return the rule of a role with the texts that it has here: a file has those of one language only."""
    import msgspec

    rule = msgspec.convert(content, RoleRule)
    if (relation := relation_of(rule.name)) is not None:
        return rule_of(relation[0], reverse=relation[1])
    rules = {known.name: known for _measure, known in rules_of(measures_of())}
    # Its threshold is that of the run, which may have had measures of its own.
    return replace(rules.get(rule.name, rule), threshold=rule.threshold)


def _read(content: dict[str, Any]) -> HeadComparison:
    """Return the comparison of a file. Raises an error of any kind: the file does not hold one."""
    import msgspec

    types = get_type_hints(HeadComparison)
    fields = {name: msgspec.convert(_restored(content[name]), types[name]) for name in PLAIN}
    measures = tuple(map(_measure, content["measures"]))
    estimates = _estimates(content["estimates"])
    controls = {str(name): _estimates(item) for name, item in content["controls"].items()}
    shape = *estimates.value.shape[:2], len(measures)
    if {item.value.shape for item in (estimates, *controls.values())} != {shape}:
        raise ValueError("the measures do not fit together")
    if [head.place for head in fields["heads"]] != list(np.ndindex(shape[:2])):
        raise ValueError("the heads do not fit together")
    examples = msgspec.convert(content["examples"], dict[str, dict[str, tuple[Example, ...]]])
    typical = msgspec.convert(content["typical"], dict[str, dict[str, Example]])
    return HeadComparison(
        **fields,
        measures=measures,
        estimates=estimates,
        controls=controls,
        examples=_by_place(examples),
        typical=_by_place(typical),
        patterns={
            place: record_files.rebuild(held)
            for place, held in _by_place(content["patterns"]).items()
        },
        against=None if content["against"] is None else _read(content["against"]),
    )


def _measure(content: Mapping[str, Any]) -> Measure:
    """Return a measure by name; one that is not known here has the unit and the description of the file."""
    (measure,) = named([content["name"]])
    if measure.takes == "unknown":
        return replace(measure, unit=str(content["unit"]), meaning=str(content["meaning"]))
    return measure


def _estimates(content: Mapping[str, Any]) -> Estimates:
    """Return estimates from lists of numbers."""
    ends = np.array([content[name] for name in ("value", "low", "high")], dtype=np.float64)
    return Estimates.of(*ends)


def _by_place(by_head: Mapping[str, Mapping[str, _T]]) -> dict[tuple[str, str], _T]:
    """Return examples by head and measure: the inverse of `_by_head`."""
    return {
        (head, measure): held
        for head, by_measure in by_head.items()
        for measure, held in by_measure.items()
    }


# Tables: one row a head and measure, and a short one with one row a head.

Row = dict[str, object]  # the cells by the name of the column; None is an empty cell


def to_csv(comparison: HeadComparison) -> str:
    """Return a comparison as CSV: a header, then a row per head and measure, and per head and relation that it finds.

    ``value`` has both ends of its 95% interval, and is empty if nothing was counted. ``role`` is the name of the role
    that the head has by this measure. ``chance``, ``random`` and ``offset`` are the values of the controls. With a
    second model, ``divergence`` is how far the head is from the same head of that model, in nats, and ``role_before``
    its clearest role there.
    """
    rows = [row for head in comparison.heads for row in _rows(comparison, head)]
    buffer = io.StringIO()
    table = csv.DictWriter(buffer, rows[0], lineterminator="\n")
    table.writeheader()
    for row in rows:
        cells = {
            name: inert(cell) if isinstance(cell, str) else with_nulls(cell)
            for name, cell in row.items()
        }
        table.writerow(cells)
    return buffer.getvalue()


def frame(comparison: HeadComparison, *, full: bool) -> Any:
    """Return a pandas data frame: the table of the CSV file if `full`, else one row a head with its clearest role.

    Empty cells are NaN or None.
    """
    from pandas import DataFrame

    if full:
        return DataFrame([row for head in comparison.heads for row in _rows(comparison, head)])
    return DataFrame([_short_row(head) for head in comparison.heads])


def _rows(comparison: HeadComparison, head: HeadProfile) -> Iterator[Row]:
    """Yield a row for each measure of a head, and for each relation that it finds."""
    roles = {role.measure: role for role in head.roles}
    names = [*comparison.names, *(name for name in roles if name not in comparison.names)]
    for name in names:
        role = roles.get(name)
        if name in comparison.names:
            value, low, high = comparison.estimate(name, *head.place)
            controls = {
                control: comparison.control(control, name, head) for control in comparison.controls
            }
        else:  # a relation between words, which is no measure
            assert role is not None
            value, low, high = role.score, role.low, role.high
            controls = {control.name: control.value for control in role.controls}
        yield {
            "layer": head.layer,
            "head": head.head,
            "measure": name,
            "value": value,
            "low": low,
            "high": high,
            **_role_cells(role),
            "chance": controls.get(CHANCE),
            "random": controls.get(UNTRAINED),
            "offset": controls.get(OFFSET),
            **_change_cells(head),
        }


def _short_row(head: HeadProfile) -> Row:
    """Return the cells of a head with its clearest role."""
    score = math.nan if head.role is None else head.role.score
    row: Row = {"layer": head.layer, "head": head.head, **_role_cells(head.role)}
    return row | {"words": str(head.words), "score": score, **_change_cells(head)}


def _role_cells(role: Role | None) -> Row:
    """Return the cells of a role; empty if there is none."""
    if role is None:
        return {"role": None, "established": None, "reason": None}
    why = visible(reason(role.doubt)) or None
    return {"role": role.name, "established": role.established, "reason": why}


def _change_cells(head: HeadProfile) -> Row:
    """Return the cells of the difference from a second model; none without one."""
    if head.change is None:
        return {}
    role = head.change.role
    return {"divergence": head.change.divergence, "role_before": role and role.name}
