"""Comparisons as files: every number is there, what is no number is empty or null, and pandas reads it as it is."""

from __future__ import annotations

import csv
import json
import math
from io import StringIO

import numpy as np
import pytest
from attnviz.heads.export import to_csv, to_json

from attnviz.heads.words import reason
from tests.heads.comparisons_by_hand import KOREAN, NAMES, made


def test_csv_holds_every_number() -> None:
    """A row a head: value, interval and controls of each measure, to the last digit."""
    comparison = made()
    names, *rows = csv.reader(StringIO(to_csv(comparison)))
    assert len(rows) == 6
    assert len(set(names)) == len(names) == 8 + 6 * len(NAMES)
    assert names[:8] == [
        "layer",
        "head",
        "role",
        "words",
        "established",
        "reason",
        "score",
        "cluster",
    ]
    e = comparison.estimates
    for head, row in zip(comparison.heads, rows, strict=True):
        found = dict(zip(names, row, strict=True))
        assert (found["layer"], found["head"]) == (str(head.layer), str(head.head))
        assert found["role"] == (head.roles[0].name if head.roles else "")
        assert found["words"] == head.words
        assert found["established"] == (str(head.roles[0].established) if head.roles else "")
        assert found["reason"] == (reason(head.roles[0].doubt) if head.roles else "")
        assert found["cluster"] == str(head.cluster)
        for at, name in enumerate(NAMES):
            wanted = {
                "": e.value,
                "_low": e.low,
                "_high": e.high,
                **{f"_{control}": one.value for control, one in comparison.controls.items()},
            }
            for end, values in wanted.items():
                value = float(values[head.layer, head.head, at])
                text = found[f"{name}{end}"]
                assert text == "" if math.isnan(value) else float(text) == value


def test_json_holds_everything() -> None:
    """All fields under their names; NaN is null, and the file is JSON as the standard says."""

    def refuse(constant: str) -> float:
        pytest.fail(f"{constant} is not JSON")

    comparison = made()
    found = json.loads(to_json(comparison), parse_constant=refuse)
    assert found["format"] == "attnviz-comparison"
    for name in ("model", "kind", "corpus", "n_sentences", "n_tokens", "n_bad"):
        assert found[name] == getattr(comparison, name)
    assert (
        found["proof"] == "verified: weights, max difference 2.5e-07 over 2 layers, 1,234 sentences"
    )
    assert [one["name"] for one in found["measures"]] == list(NAMES)
    assert found["notes"] == ["Sentences that were too long for the model and were cut: 3."]
    assert found["bad"] == [{"line": 3, "reason": "too long: 1,024 tokens"}]
    for estimate, written in (
        (comparison.estimates, found["estimates"]),
        *((comparison.controls[name], found["controls"][name]) for name in comparison.controls),
    ):
        for name in ("value", "low", "high"):
            assert np.array_equal(
                np.array(written[name], dtype=float), getattr(estimate, name), equal_nan=True
            )
    assert [head["name"] for head in found["heads"]] == [head.name for head in comparison.heads]
    for head, written in zip(comparison.heads, found["heads"], strict=True):
        assert written["cluster"] == head.cluster
        assert [role["words"] for role in written["roles"]] == [
            role.rule.words for role in head.roles
        ]
        assert [role["score"] for role in written["roles"]] == [role.score for role in head.roles]
        assert [len(role["controls"]) for role in written["roles"]] == [
            len(role.controls) for role in head.roles
        ]
    assert comparison.similarity is not None
    assert np.array_equal(found["similarity"]["divergences"], comparison.similarity.divergences)
    assert np.array_equal(found["similarity"]["linkage"], comparison.similarity.linkage)
    assert found["examples"]["0.0"]["previous"][0] == {"text": f"{KOREAN} 0.0", "score": 0.75}
    assert [one["established"] for one in found["relations"]] == [True, False]
    assert [one["name"] for one in found["relations"][1]["controls"]] == ["offset"]
