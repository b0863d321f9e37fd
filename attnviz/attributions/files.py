"""Attributions as JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from attnviz.attributions.record import COLUMNS, Attribution
from attnviz.attributions.verdicts import Comparison
from attnviz.text.display import inert

HEADING = ("token", *COLUMNS, "controls", "spread", "verdict")


def rows(attribution: Attribution) -> Iterator[list[Any]]:
    """Yield the row of each token, with NaN for what is not known."""
    columns = [getattr(attribution, name) for name in COLUMNS]
    for place, token in enumerate(attribution.tokens):
        verdict = attribution.verdicts[place]
        here = None if verdict is None else verdict.here
        controls = [math.nan] * 2 if here is None else [here.controls, here.spread]
        name = "not tested" if verdict is None else verdict.name
        yield [token.text, *(float(column[place]) for column in columns), *controls, name]


def to_csv(attribution: Attribution) -> str:
    """Return a tidy table with one row per token; a number that is not known is empty."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(HEADING)
    for row in rows(attribution):
        writer.writerow(
            inert(cell) if isinstance(cell, str) else "" if math.isnan(cell) else repr(cell)
            for cell in row
        )
    return file.getvalue()


def to_json(attribution: Attribution) -> str:
    """Return the whole record as JSON; a number that is not known is null."""
    a = attribution
    content = {
        "format": "attnviz-attribution",
        "version": 1,
        "model": a.model,
        "text": a.text,
        "kind": a.kind,
        "output": asdict(a.output) | {"unit": a.output.unit},
        "tokens": [token.text for token in a.tokens],
        "head": a.head,
        **{name: _numbers(getattr(a, name)) for name in COLUMNS},
        "after": None if a.after is None else [_numbers(values) for values in a.after],
        "verdicts": [
            None
            if verdict is None
            else {
                "name": verdict.name,
                "strong": verdict.counted is not None and verdict.counted.is_strong,
                "here": _comparison(verdict.here),
                "everywhere": _comparison(verdict.everywhere),
                "head": verdict.head,
                "of_head": _comparison(verdict.of_head),
                "alone": verdict.alone,
            }
            for verdict in a.verdicts
        ],
        "chosen": a.chosen,
        "heads": [_numbers(row) for row in a.heads],
        "together": _numbers(a.together),
        "without_head": None if a.without_head is None else [_numbers(x) for x in a.without_head],
        "receipt": str(a.receipt),
        "notes": [[note.code, dict(note.fields)] for note in a.notes],
    }
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def _numbers(values: np.ndarray) -> list[float | None]:
    return [None if math.isnan(value) else float(value) for value in values]


def _comparison(found: Comparison | None) -> dict[str, float] | None:
    return None if found is None else asdict(found)
