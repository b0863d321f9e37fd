"""Files of heads: ``.csv`` with one row per head, ``.json`` with everything."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from attnviz.heads.measures import Measure
from attnviz.heads.record import Control, Example, HeadComparison, HeadProfile, Relation, Role
from attnviz.heads.roles import CONTROLS
from attnviz.heads.words import note_words, proof, reason
from attnviz.storage.encoding import to_text, with_nulls
from attnviz.text.display import inert, visible

# The columns of a short table; the last three are there if a second model is.
SHORT = (
    "layer",
    "head",
    "role",
    "words",
    "established",
    "reason",
    "score",
    "divergence",
    "role_after",
    "established_after",
)
# the cells of a head by column name; None is an empty cell
Row = dict[str, object]


def to_csv(comparison: HeadComparison) -> str:
    """Return a comparison as CSV: a header, then one row per head, ordered by layer.

    ``role`` is the clearest role. ``established`` is empty if there is no role
    and a number if nothing was counted. Each measure has its value; ``_low`` and ``_high``, the ends of its 95%
    interval; and the value of each control, such as ``_chance``. ``_untrained`` is the value of the best head of
    random weights, the mean over several seeds. With a second model there are also ``divergence`` in nats with both
    ends of its interval, ``role_after``, the clearest role in that model, and ``established_after``.
    """
    buffer = io.StringIO()
    rows = _rows(comparison)
    table = csv.DictWriter(buffer, rows[0], lineterminator="\n")
    table.writeheader()
    for row in rows:
        table.writerow(
            {
                name: inert(value) if isinstance(value, str) else with_nulls(value)
                for name, value in row.items()
            }
        )
    return buffer.getvalue()


def frame(comparison: HeadComparison, *, full: bool) -> Any:
    """Return the table of the CSV file as a pandas data frame; empty cells are NaN or None.

    Unless it is `full`, it has the columns of `SHORT` only.
    """
    from pandas import DataFrame

    table = DataFrame(_rows(comparison))
    return table if full else table[[name for name in SHORT if name in table]]


def _rows(comparison: HeadComparison) -> list[Row]:
    """Return the cells of each head by column name."""
    return [_row_of_head(comparison, head) for head in comparison.heads]


def _row_of_head(comparison: HeadComparison, head: HeadProfile) -> Row:
    """Return the cells of one head by column name."""
    role = head.role
    row: Row = {
        "layer": head.layer,
        "head": head.head,
        "role": role and role.name,
        "words": head.words,
        "established": role and role.established,
        "reason": (role and visible(reason(role.doubt))) or None,
        "score": role.score if role else math.nan,
    }
    if head.change is not None:
        second_role = head.change.role
        row |= {
            "divergence": head.change.divergence,
            "divergence_low": head.change.low,
            "divergence_high": head.change.high,
            "role_after": second_role and second_role.name,
            "established_after": second_role and second_role.established,
        }
    estimates = comparison.estimates
    parts = {"": estimates.value, "_low": estimates.low, "_high": estimates.high}
    parts |= {f"_{name}": control.value for name, control in comparison.controls.items()}
    for column, measure in enumerate(comparison.names):
        row |= {
            f"{measure}{end}": float(part[head.layer, head.head, column])
            for end, part in parts.items()
        }
    return row


def to_json(comparison: HeadComparison) -> str:
    """Return a comparison as JSON.

    Raises RecordError: a text has half a character (a lone surrogate).
    """
    return to_text(with_nulls(_comparison(comparison)), "the comparison")


def _comparison(comparison: HeadComparison) -> dict[str, Any]:
    """Return the fields of the JSON file; a second model is nested under ``against``."""
    return {
        "format": "attnviz-comparison",
        "version": 1,
        **_fields(comparison, "model", "kind", "corpus", "n_sentences", "n_tokens", "n_bad"),
        "bad": [{"line": line, "reason": reason} for line, reason in comparison.bad],
        "proof": proof(comparison),
        "notes": [note_words(note) for note in comparison.notes],
        "axes": ["layer", "head", "measure"],
        "measures": list(map(_measure, comparison.measures)),
        "estimates": asdict(comparison.estimates),
        "controls": {name: asdict(control) for name, control in comparison.controls.items()},
        "heads": list(map(_head, comparison.heads)),
        "examples": _examples(comparison.examples),
        "typical": _examples({place: (item,) for place, item in comparison.typical.items()}),
        "relations": [_relation(item) for item in comparison.relations],
        **({} if comparison.against is None else {"against": _comparison(comparison.against)}),
    }


def _measure(measure: Measure) -> dict[str, object]:
    """Return the fields of a measure; one of another version has only its name."""
    fields: dict[str, object] = {"name": measure.name}
    if measure.unit:
        fields |= {"unit": measure.unit, "meaning": measure.meaning}
        if measure.narrow:
            fields["narrow"] = True
    return fields


def _head(head: HeadProfile) -> dict[str, Any]:
    """Return the fields of a head."""
    return {
        **_fields(head, "name", "words", "layer", "head"),
        "roles": list(map(_role, head.roles)),
        **_change(head),
    }


def _change(head: HeadProfile) -> dict[str, Any]:
    """Return the divergence of a head from a second model and its role there; empty without a second model."""
    if head.change is None:
        return {}
    role = head.change.role
    return {
        "change": {
            **_fields(head.change, "divergence", "low", "high"),
            "role": None if role is None else _role(role),
        }
    }


def _role(role: Role) -> dict[str, Any]:
    """Return the fields of a role, without those that only pictures need."""
    rule = role.rule
    return {
        "name": role.name,
        "short": rule.short,
        "words": rule.words,
        "threshold": rule.threshold,
        **_fields(role, "measure", "score", "low", "high", "established"),
        "reason": reason(role.doubt),
        "controls": [_control(control) for control in role.controls],
    }


def _relation(relation: Relation) -> dict[str, Any]:
    """Return the fields of a relation."""
    return {
        **_fields(relation, "name", "n", "layer", "head", "reverse"),
        "accuracy": relation.role.score,
        **_fields(relation.role, "low", "high", "established"),
        "reason": reason(relation.role.doubt),
        "controls": [_control(control) for control in relation.role.controls],
    }


def _control(control: Control) -> dict[str, Any]:
    """Return the fields of a control, with its description in English."""
    return {**asdict(control), "what": str(CONTROLS[control.name].describe(control))}


def _examples(
    examples: Mapping[tuple[str, str], Sequence[Example]],
) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Return the sentences by head, then by measure."""
    by_head: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for (head, measure), ranked in examples.items():
        by_head.setdefault(head, {})[measure] = [asdict(example) for example in ranked]
    return by_head


def _fields(record: object, *names: str) -> dict[str, object]:
    """Return some fields of a record, by name."""
    return {name: getattr(record, name) for name in names}
