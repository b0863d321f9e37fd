"""A comparison of heads as a file: ``.csv``, a row a head, and ``.json``, all there is."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from attnviz.errors import RecordError
from attnviz.heads.record import NO_ROLE, Comparison, Estimate, HeadProfile, measure_of
from attnviz.storage.encoding import to_text, with_nulls
from attnviz.storage.files import check_ending, write_whole
from attnviz.text.display import visible

FORMAT, VERSION = "attnviz-comparison", 1


def to_csv(comparison: Comparison) -> str:
    """The comparison as CSV: a line of names, then a row for each head, layer after layer.

    The role is the clearest. ``established`` is empty where there is no role, ``cluster`` where heads were not
    compared, a number where nothing was counted. Each measure has its value, ``_low`` and ``_high``, the ends of its
    95 % interval, and the value of each control, such as ``_shuffled``; ``_untrained`` is that of the head of random
    weights at the same place, while a role is held against the best of them.
    """
    written = io.StringIO()
    table = csv.writer(written, lineterminator="\n")
    named = [f"{measure}{end}" for measure in comparison.measures for end in ("", "_low", "_high", *_ends(comparison))]
    table.writerow(["layer", "head", "role", "words", "established", "reason", "score", "cluster", *named])
    for head in comparison.heads:
        table.writerow([*_about(head), *(_shown(value) for value in _numbers(comparison, head))])
    return written.getvalue()


def _ends(comparison: Comparison) -> list[str]:
    return [f"_{name}" for name in comparison.controls]


def _about(head: HeadProfile) -> list[object]:
    role = head.roles[0] if head.roles else None
    cluster = "" if head.cluster is None else head.cluster
    if role is None:
        return [head.layer, head.head, "", NO_ROLE, "", "", "", cluster]
    reason = visible(role.reason)
    return [head.layer, head.head, role.name, role.words, role.established, reason, _shown(role.score), cluster]


def _numbers(comparison: Comparison, head: HeadProfile) -> Iterator[float]:
    e, at = comparison.estimates, (head.layer, head.head)
    for measure in range(len(comparison.measures)):
        yield from (float(e.value[at][measure]), float(e.low[at][measure]), float(e.high[at][measure]))
        yield from (float(control.value[at][measure]) for control in comparison.controls.values())


def _shown(value: float) -> str:
    """A number in full; what is none is left empty, as pandas and spreadsheets read it."""
    return repr(float(value)) if math.isfinite(value) else ""


def to_json(comparison: Comparison) -> str:
    """The comparison as JSON: all that is in it, under the names it has there; what is no number is null.

    Raises:
        RecordError: a text holds half a character.
    """
    fields: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "model": comparison.model,
        "kind": comparison.kind,
        "corpus": comparison.corpus,
        "specials": comparison.specials,
        "n_sentences": comparison.n_sentences,
        "n_tokens": comparison.n_tokens,
        "n_bad": comparison.n_bad,
        "bad": [{"line": line, "reason": reason} for line, reason in comparison.bad],
        "proof": comparison.proof,
        "notes": comparison.notes,
        "axes": ["layer", "head", "measure"],
        "measures": [{"name": name, **_meant(name)} for name in comparison.measures],
        "estimates": _estimate(comparison.estimates),
        "controls": {name: _estimate(control) for name, control in comparison.controls.items()},
        "heads": [{"name": head.name, "words": head.words, **asdict(head)} for head in comparison.heads],
        "likeness": None if comparison.likeness is None else asdict(comparison.likeness),
        "examples": _examples(comparison),
        "relations": [{**asdict(one), "established": one.established} for one in comparison.relations],
    }
    return to_text(with_nulls(fields), "the comparison")


def _meant(name: str) -> dict[str, str]:
    one = measure_of(name)
    return {} if one is None else {"unit": one.unit, "meaning": one.meaning}


def _estimate(estimate: Estimate) -> dict[str, object]:
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high}


def _examples(comparison: Comparison) -> dict[str, dict[str, list[dict[str, Any]]]]:
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for (head, measure), examples in comparison.examples.items():
        found.setdefault(head, {})[measure] = [asdict(example) for example in examples]
    return found


WRITERS: dict[str, Callable[[Comparison], str]] = {
    ".csv": to_csv,
    ".json": lambda comparison: to_json(comparison) + "\n",
}


def save(comparison: Comparison, path: str | os.PathLike[str]) -> Path:
    """Write a comparison as ``.csv`` or ``.json``, whole or not at all.

    Returns:
        The path.

    Raises:
        OutputError: another ending, or the file cannot be written.
        RecordError: a text holds half a character.
    """
    make = WRITERS[check_ending(path, WRITERS, "a comparison is")]
    try:
        data = make(comparison).encode()
    except UnicodeEncodeError as error:
        raise RecordError(f"the comparison cannot be written: {error}") from None
    return write_whole(path, data)
