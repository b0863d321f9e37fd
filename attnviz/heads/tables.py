"""Heads as files: ``.csv``, a row a head; ``.json``, everything."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from attnviz.heads import wording
from attnviz.heads.changes.record import MOST, Change, Changes, Difference, RelationChange
from attnviz.heads.record import Example, HeadComparison, HeadProfile, Relation, Role
from attnviz.heads.roles import CONTROLS
from attnviz.heads.wording import proof, reason_of
from attnviz.storage.encoding import to_text, with_nulls
from attnviz.text.display import visible

Row = dict[
    str, object
]  # what a table says of a head, by the names of its columns; None of an empty cell


def to_csv(found: HeadComparison | Changes) -> str:
    """A comparison, or two models, as CSV: a line of names, then a row for each head, layer after layer.

    Of a comparison the role is the clearest. ``established`` is empty where there is no role, ``cluster`` where heads
    were not compared, a number where nothing was counted. Each measure has its value, ``_low`` and ``_high``, the ends
    of its 95 % interval, and the value of each control, such as ``_shuffled``; ``_untrained`` is that of the best heads
    of random weights, in the mean of several seeds.

    Of two models ``change`` is the pattern's, in nats, with the ends of its 95 % interval; ``nearest`` and ``others``
    are how far, in the model before, the head most like it is, and another head in the mean. Roles are the clearest
    ones, empty where there is none. Each measure has its values, their difference (after less before) and the ends of
    its interval. A relation between words, such as ``relation_nsubj``, stands in the row of the head that finds it best
    before: ``_head_after`` is the one that does after, ``_before`` and ``_after`` are how often they are right. What
    was not measured is empty.
    """
    written = io.StringIO()
    rows = _rows(found)
    table = csv.DictWriter(written, rows[0], lineterminator="\n")
    table.writeheader()
    table.writerows({name: with_nulls(value) for name, value in row.items()} for row in rows)
    return written.getvalue()


def frame(found: HeadComparison | Changes) -> Any:
    """The table of the CSV file as a pandas data frame; NaN and None where a cell is empty."""
    from pandas import DataFrame

    return DataFrame(_rows(found))


def _rows(found: HeadComparison | Changes) -> list[Row]:
    if isinstance(found, Changes):
        return [_row_of_change(found, change) for change in found.heads]
    return [_row_of_head(found, head) for head in found.heads]


def _row_of_head(comparison: HeadComparison, head: HeadProfile) -> Row:
    role = head.role
    row: Row = {
        "layer": head.layer,
        "head": head.head,
        "role": role and role.name,
        "words": head.words,
        "established": role and role.established,
        "reason": (role and visible(reason_of(role.doubt))) or None,
        "score": role.score if role else math.nan,
        "cluster": head.cluster,
    }
    e = comparison.estimates
    parts = {"": e.value, "_low": e.low, "_high": e.high}
    parts |= {f"_{name}": control.value for name, control in comparison.controls.items()}
    for at, measure in enumerate(comparison.names):
        row |= {
            f"{measure}{end}": float(part[head.layer, head.head, at]) for end, part in parts.items()
        }
    return row


def _row_of_change(found: Changes, change: Change) -> Row:
    at = change.before.place
    row: Row = {
        "layer": at[0],
        "head": at[1],
        "change": change.pattern,
        "change_low": change.low,
        "change_high": change.high,
        "nearest": change.nearest,
        "others": change.others,
        **_roles(change),
    }
    for name in found.before.names:
        one = found.difference(name, *at)
        row |= _ends(name, one.before, one.after, one)
    for relation in found.relations:
        best, after = relation.before, relation.after
        own = (best.layer, best.head) == at
        row[f"relation_{relation.name}_head_after"] = f"{after.layer}.{after.head}" if own else None
        numbers = _ends(f"relation_{relation.name}", best.accuracy, after.accuracy, relation)
        row |= numbers if own else dict.fromkeys(numbers, math.nan)
    return row


def _ends(name: str, before: float, after: float, one: Difference | RelationChange) -> Row:
    ends = {
        "before": before,
        "after": after,
        "difference": one.value,
        "low": one.low,
        "high": one.high,
    }
    return {f"{name}_{end}": value for end, value in ends.items()}


def _roles(change: Change) -> Row:
    before, after = (role and role.name for role in change.roles)
    return {
        "role_before": before,
        "role_after": after,
        **_fields(change, "role_changed", "role_established"),
    }


def to_json(found: HeadComparison | Changes) -> str:
    """All that is in a comparison, or in two and what differs. Raises RecordError: a text holds half a character."""
    if isinstance(found, Changes):
        return to_text(with_nulls(_changes(found)), "the changes")
    return to_text(with_nulls(_comparison(found)), "the comparison")


def _comparison(comparison: HeadComparison) -> dict[str, Any]:
    return {
        "format": "attnviz-comparison",
        "version": 1,
        **_fields(
            comparison, "model", "kind", "corpus", "specials", "n_sentences", "n_tokens", "n_bad"
        ),
        "bad": [{"line": line, "reason": reason} for line, reason in comparison.bad],
        "proof": proof(comparison),
        "notes": [wording.note_words(note) for note in comparison.notes],
        "axes": ["layer", "head", "measure"],
        "measures": [
            {
                "name": one.name,
                **({"unit": one.unit, "meaning": one.meaning} if one.unit else {}),
                **({"narrow": True} if one.narrow and one.unit else {}),
            }
            for one in comparison.measures
        ],
        "estimates": asdict(comparison.estimates),
        "controls": {name: asdict(control) for name, control in comparison.controls.items()},
        "heads": [
            {
                "name": head.name,
                "words": head.words,
                "layer": head.layer,
                "head": head.head,
                "roles": [_role(role) for role in head.roles],
                "cluster": head.cluster,
            }
            for head in comparison.heads
        ],
        "similarity": None if comparison.similarity is None else asdict(comparison.similarity),
        "examples": _examples(comparison.examples),
        "typical": _examples({place: (one,) for place, one in comparison.typical.items()}),
        "relations": [_relation(one) for one in comparison.relations],
    }


def _role(role: Role) -> dict[str, Any]:
    """A role without what only pictures need."""
    rule = role.rule
    controls = [
        {
            "name": one.name,
            "what": CONTROLS[one.name].say(control=one),
            **_fields(one, "value", "low", "high", "rules_out"),
        }
        for one in role.controls
    ]
    return {
        "name": role.name,
        "short": rule.short,
        "words": rule.words,
        "measure": role.measure,
        "score": role.score,
        "low": role.low,
        "high": role.high,
        "threshold": rule.threshold,
        "controls": controls,
        "established": role.established,
        "reason": reason_of(role.doubt),
    }


def _relation(one: Relation) -> dict[str, Any]:
    fixed, random = one.fixed, one.random
    value, low, high = (
        (math.nan,) * 3 if random is None else (random.value, random.low, random.high)
    )
    return {
        **_fields(one, "name", "n", "layer", "head", "reverse", "accuracy", "low", "high"),
        "offset": fixed.offset,
        "offset_accuracy": fixed.value,
        "offset_low": fixed.low,
        "offset_high": fixed.high,
        "untrained": value,
        "untrained_low": low,
        "untrained_high": high,
        "established": one.established,
        "reason": reason_of(one.doubt),
    }


def _examples(
    examples: Mapping[tuple[str, str], Sequence[Example]],
) -> dict[str, dict[str, list[dict[str, Any]]]]:
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for (head, measure), several in examples.items():
        found.setdefault(head, {})[measure] = [asdict(example) for example in several]
    return found


def _changes(found: Changes) -> dict[str, Any]:
    return {
        "format": "attnviz-changes",
        "version": 1,
        "paired": found.paired,
        "most": MOST,
        "measures": found.before.names,
        "heads": [_change(found, change) for change in found.heads],
        "relations": [_relation_change(one) for one in found.relations],
        "notes": [wording.note_words(note) for note in found.notes],
        "before": _comparison(found.before),
        "after": _comparison(found.after),
    }


def _change(found: Changes, change: Change) -> dict[str, object]:
    at = change.before.place
    ends = ("before", "after", "value", "low", "high", "established")
    return {
        "layer": at[0],
        "head": at[1],
        "name": change.name,
        "change": _fields(change, "pattern", "low", "high", "nearest", "others"),
        "beyond_nearest": change.beyond_nearest,
        **_roles(change),
        "differences": {
            name: _fields(found.difference(name, *at), *ends) for name in found.before.names
        },
    }


def _relation_change(one: RelationChange) -> dict[str, object]:
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
