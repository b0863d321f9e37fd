"""Two models' heads as a file: ``.csv``, a row a head, and ``.json``, all there is."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from attnviz.heads import files as comparisons
from attnviz.heads.changes.record import MOST, Change, Changes, RelationChange
from attnviz.heads.files import shown
from attnviz.heads.notes import note_words
from attnviz.storage.encoding import to_text, with_nulls
from attnviz.storage.files import check_ending, write_whole

FORMAT, VERSION = "attnviz-changes", 1

ENDS = ("before", "after", "difference", "low", "high")
"""What stands behind the name of a measure, and of a relation, in a table."""


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
    rows = list(_rows(found))
    table = csv.DictWriter(written, list(rows[0]), lineterminator="\n")
    table.writeheader()
    for row in rows:
        table.writerow({name: shown(value) if isinstance(value, float) else value for name, value in row.items()})
    return written.getvalue()


def frame(found: Changes) -> Any:
    """The table of the CSV file as a pandas data frame."""
    import pandas as pd

    return pd.read_csv(io.StringIO(to_csv(found)), dtype=dict.fromkeys(("role_before", "role_after"), "string"))


def _rows(found: Changes) -> Iterator[dict[str, object]]:
    """What a row of the table says of each head."""
    for change in found.heads:
        at = change.before.layer, change.before.head
        row: dict[str, object] = {
            "layer": at[0], "head": at[1], "change": change.pattern, "change_low": change.low,
            "change_high": change.high, "nearest": change.nearest, "others": change.others, **_roles(change, ""),
        }  # fmt: skip
        for name in found.before.names:
            one = found.difference(name, *at)
            ends = (one.before, one.after, one.value, one.low, one.high)
            row |= {f"{name}_{end}": value for end, value in zip(ENDS, ends, strict=True)}
        for relation in found.relations:
            best, after = relation.before, relation.after
            own = (best.layer, best.head) == at
            row[f"relation_{relation.name}_head_after"] = f"{after.layer}.{after.head}" if own else ""
            ends = (best.accuracy, after.accuracy, relation.value, relation.low, relation.high)
            row |= {
                f"relation_{relation.name}_{end}": value if own else math.nan
                for end, value in zip(ENDS, ends, strict=True)
            }
        yield row


def _roles(change: Change, none: str | None) -> dict[str, object]:
    before, after = (none if role is None else role.name for role in change.roles)
    sure = {"role_changed": change.role_changed, "role_established": change.role_established}
    return {"role_before": before, "role_after": after, **sure}


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
    return to_text(with_nulls(fields), "the changes")


def _head(found: Changes, change: Change) -> dict[str, object]:
    """One head: its pattern change, its roles, the differences of its measures."""
    at = change.before.layer, change.before.head
    return {
        "layer": at[0],
        "head": at[1],
        "name": change.name,
        "change": _fields(change, "pattern", "low", "high", "nearest", "others"),
        "beyond_nearest": change.beyond_nearest,
        **_roles(change, None),
        "differences": {
            name: _fields(found.difference(name, *at), "before", "after", "value", "low", "high", "established")
            for name in found.before.names
        },
    }


def _relation(one: RelationChange) -> dict[str, object]:
    """One relation: the best head before and after, and the difference of how often they are right."""
    best = ("layer", "head", "reverse", "n", "accuracy", "low", "high")
    return {
        "name": one.name,
        "before": _fields(one.before, *best),
        "after": _fields(one.after, *best),
        "difference": _fields(one, "value", "low", "high", "established"),
        "other_head": one.moved,
    }


def _fields(one: object, *names: str) -> dict[str, object]:
    return {name: getattr(one, name) for name in names}


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
