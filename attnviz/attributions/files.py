"""Attributions as JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator
from typing import Any

from attnviz.attributions.record import COLUMNS, Attribution
from attnviz.storage.encoding import with_nulls
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
    verdicts = [
        verdict and with_nulls(verdict) | {"strong": verdict.is_strong}
        for verdict in attribution.verdicts
    ]
    content = {
        "format": "attnviz-attribution",
        "version": 1,
        **with_nulls(attribution),
        "tokens": [token.text for token in attribution.tokens],
        "unit": attribution.output.unit,
        "verdicts": verdicts,
    }
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"
