"""Heads as files: ``.csv``, a row a head; ``.json``, everything."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from attnviz.heads.record import Control, Example, HeadComparison, HeadProfile, Relation, Role
from attnviz.heads.roles import CONTROLS
from attnviz.heads.words import note_words, proof, reason
from attnviz.storage.encoding import to_text, with_nulls
from attnviz.text.display import visible

# what a table says of a head, by the names of its columns; None of an empty cell
Row = dict[str, object]


def to_csv(found: HeadComparison) -> str:
    """Return a comparison as CSV: a line of names, then a row for each head, layer after layer.

    The role is the clearest. ``established`` is empty where there is no role, ``cluster`` where heads
    were not compared, a number where nothing was counted. Each measure has its value, ``_low`` and ``_high``, the ends
    of its 95 % interval, and the value of each control, such as ``_shuffled``; ``_untrained`` is that of the best heads
    of random weights, in the mean of several seeds. With a second model there are also ``divergence``, in nats, with
    both ends of its interval, and the clearest role in that model, ``role_after``, and ``established_after``.
    """
    written = io.StringIO()
    rows = _rows(found)
    table = csv.DictWriter(written, rows[0], lineterminator="\n")
    table.writeheader()
    table.writerows({name: with_nulls(value) for name, value in row.items()} for row in rows)
    return written.getvalue()


def frame(found: HeadComparison) -> Any:
    """The table of the CSV file as a pandas data frame; NaN and None where a cell is empty."""
    from pandas import DataFrame

    return DataFrame(_rows(found))


def _rows(found: HeadComparison) -> list[Row]:
    return [_row_of_head(found, head) for head in found.heads]


def _row_of_head(comparison: HeadComparison, head: HeadProfile) -> Row:
    role = head.role
    row: Row = {
        "layer": head.layer,
        "head": head.head,
        "role": role and role.name,
        "words": head.words,
        "established": role and role.established,
        "reason": (role and visible(reason(role.doubt))) or None,
        "score": role.score if role else math.nan,
        "cluster": head.cluster,
    }
    if head.change is not None:
        after = head.change.role
        row |= {
            "divergence": head.change.divergence,
            "divergence_low": head.change.low,
            "divergence_high": head.change.high,
            "role_after": after and after.name,
            "established_after": after and after.established,
        }
    e = comparison.estimates
    parts = {"": e.value, "_low": e.low, "_high": e.high}
    parts |= {f"_{name}": control.value for name, control in comparison.controls.items()}
    for at, measure in enumerate(comparison.names):
        row |= {
            f"{measure}{end}": float(part[head.layer, head.head, at]) for end, part in parts.items()
        }
    return row


def to_json(found: HeadComparison) -> str:
    """Return all that is in a comparison. Raises RecordError: a text holds half a character."""
    return to_text(with_nulls(_comparison(found)), "the comparison")


def _comparison(comparison: HeadComparison) -> dict[str, Any]:
    return {
        "format": "attnviz-comparison",
        "version": 1,
        **_fields(comparison, "model", "kind", "corpus", "n_sentences", "n_tokens", "n_bad"),
        "bad": [{"line": line, "reason": reason} for line, reason in comparison.bad],
        "proof": proof(comparison),
        "notes": [note_words(note) for note in comparison.notes],
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
                **_change(head),
            }
            for head in comparison.heads
        ],
        "similarity": None if comparison.similarity is None else asdict(comparison.similarity),
        "examples": _examples(comparison.examples),
        "typical": _examples({place: (one,) for place, one in comparison.typical.items()}),
        "relations": [_relation(one) for one in comparison.relations],
        **({} if comparison.against is None else {"against": _comparison(comparison.against)}),
    }


def _change(head: HeadProfile) -> dict[str, Any]:
    """Return the divergence of a head from a second model, and its role there; nothing without one."""
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
    """A role without what only pictures need."""
    rule = role.rule
    return {
        "name": role.name,
        "short": rule.short,
        "words": rule.words,
        "threshold": rule.threshold,
        **_fields(role, "measure", "score", "low", "high", "established"),
        "reason": reason(role.doubt),
        "controls": [_control(one) for one in role.controls],
    }


def _relation(one: Relation) -> dict[str, Any]:
    return {
        **_fields(one, "name", "n", "layer", "head", "reverse"),
        "accuracy": one.role.score,
        **_fields(one.role, "low", "high", "established"),
        "reason": reason(one.role.doubt),
        "controls": [_control(control) for control in one.role.controls],
    }


def _control(one: Control) -> dict[str, Any]:
    return {**asdict(one), "what": str(CONTROLS[one.name].describe(one))}


def _examples(
    examples: Mapping[tuple[str, str], Sequence[Example]],
) -> dict[str, dict[str, list[dict[str, Any]]]]:
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for (head, measure), several in examples.items():
        found.setdefault(head, {})[measure] = [asdict(example) for example in several]
    return found


def _fields(one: object, *names: str) -> dict[str, object]:
    return {name: getattr(one, name) for name in names}
