"""Two models' heads as a file: ``.csv``, a row a head, and ``.json``, all there is."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attnviz.heads import files as comparisons
from attnviz.heads.changes.record import MOST, Change, Changes, RelationChange
from attnviz.heads.notes import note_words
from attnviz.heads.record import Relation
from attnviz.storage.encoding import to_text
from attnviz.storage.files import check_ending, write_whole

FORMAT, VERSION = "attnviz-changes", 1


def to_csv(found: Changes) -> str:
    """Two models as CSV: a line of names, then a row for each head, layer after layer.

    ``change`` is the pattern's, in nats, with the ends of its 95 % interval; ``nearest`` and ``others`` are how far, in
    the model before, the head most like it is, and another head in the mean. Roles are the clearest ones, empty where
    there is none. Each measure has its values, their difference (after less before) and the ends of its interval. A
    relation between words, such as ``relation_nsubj``, stands in the row of the head that finds it best before:
    ``_head_after`` is the one that does after, ``_before`` and ``_after`` are how often they are right. What was not
    measured is empty.
    """
    written = io.StringIO()
    table = csv.writer(written, lineterminator="\n")
    ends = ("before", "after", "difference", "low", "high")
    named = [f"{measure}_{end}" for measure in found.before.names for end in ends]
    table.writerow(
        [
            "layer", "head", "change", "change_low", "change_high", "nearest", "others", "role_before", "role_after",
            "role_changed", "role_established", *named,
            *(f"relation_{one.name}_{end}" for one in found.relations for end in ("head_after", *ends)),
        ]
    )  # fmt: skip
    for change in found.heads:
        at = change.before.layer, change.before.head
        numbers = (change.pattern, change.low, change.high, change.nearest, change.others)
        measured = []
        for measure in found.before.names:
            one = found.difference(measure, *at)
            measured += [one.before, one.after, one.value, one.low, one.high]
        related = [cell for one in found.relations for cell in _related(one, at)]
        table.writerow([*at, *map(_shown, numbers), *_roles(change), *(_shown(value) for value in measured), *related])
    return written.getvalue()


def frame(found: Changes) -> Any:
    """The table of the CSV file as a pandas data frame."""
    import pandas as pd

    return pd.read_csv(io.StringIO(to_csv(found)), dtype=dict.fromkeys(("role_before", "role_after"), "string"))


def _related(one: RelationChange, head: tuple[int, int]) -> list[str]:
    """What the row of a head says of a relation."""
    if head != (one.before.layer, one.before.head):
        return [""] * 6
    numbers = (one.before.accuracy, one.after.accuracy, one.value, one.low, one.high)
    return [f"{one.after.layer}.{one.after.head}", *map(_shown, numbers)]


def _roles(change: Change) -> list[object]:
    before, after = ("" if role is None else role.name for role in change.roles)
    return [before, after, change.role_changed, change.role_established]


def _shown(value: float) -> str:
    """A number in full; what is none is left empty, as pandas and spreadsheets read it."""
    return repr(float(value)) if math.isfinite(value) else ""


def to_json(found: Changes) -> str:
    """Two models as JSON: both comparisons as they are saved, and what differs; what is no number is null.

    Raises:
        RecordError: a text holds half a character.
    """
    before, after = (json.loads(comparisons.to_json(one)) for one in (found.before, found.after))
    fields: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "paired": found.paired,
        "most": MOST,
        "measures": found.before.names,
        "heads": [_head(found, change) for change in found.heads],
        "relations": [_relation(one) for one in found.relations],
        "notes": [note_words(note) for note in found.notes],
        "before": before,
        "after": after,
    }
    return to_text(fields, "the changes")


def _head(found: Changes, change: Change) -> dict[str, object]:
    """One head: its pattern change, its roles, the differences of its measures."""
    at = change.before.layer, change.before.head
    before, after = (None if role is None else role.name for role in change.roles)
    differences = {}
    for measure in found.before.names:
        one = found.difference(measure, *at)
        ends = {name: _number(getattr(one, name)) for name in ("before", "after", "value", "low", "high")}
        differences[measure] = {**ends, "established": one.established}
    return {
        "layer": at[0],
        "head": at[1],
        "name": change.name,
        "change": {name: _number(getattr(change, name)) for name in ("pattern", "low", "high", "nearest", "others")},
        "beyond_nearest": change.beyond_nearest,
        "role_before": before,
        "role_after": after,
        "role_changed": change.role_changed,
        "role_established": change.role_established,
        "differences": differences,
    }


def _relation(one: RelationChange) -> dict[str, object]:
    """One relation: the best head before and after, and the difference of how often they are right."""
    ends = {name: _number(getattr(one, name)) for name in ("value", "low", "high")}
    return {
        "name": one.name,
        "before": _best_head(one.before),
        "after": _best_head(one.after),
        "difference": {**ends, "established": one.established},
        "other_head": one.moved,
    }


def _best_head(best: Relation) -> dict[str, object]:
    """How often the best head of one model is right."""
    numbers = {name: _number(getattr(best, name)) for name in ("accuracy", "low", "high")}
    return {"layer": best.layer, "head": best.head, "reverse": best.reverse, "n": best.n, **numbers}


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


WRITERS: dict[str, Callable[[Changes], str]] = {".csv": to_csv, ".json": lambda found: to_json(found) + "\n"}


def save(found: Changes, path: str | os.PathLike[str]) -> Path:
    """Write what two models' heads do otherwise as ``.csv`` or ``.json``, whole or not at all.

    Returns:
        The path.

    Raises:
        OutputError: another ending, or the file cannot be written.
        RecordError: a text holds half a character.
    """
    make = WRITERS[check_ending(path, WRITERS, "changes are")]
    return write_whole(path, make(found))
