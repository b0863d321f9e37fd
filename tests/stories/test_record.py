"""A story as JSON: all its numbers, and null for those that are missing."""

from __future__ import annotations

import json
import math

import numpy as np

from attnviz.stories.record import Bars, Lines, Matrix, Series, Story, Table, to_json


def test_to_json() -> None:
    """Paragraphs, tables and panels in their order, each under its kind, as strict JSON."""
    weights = np.array([[0.5, np.nan], [0.125, 1.0]], dtype=np.float32)
    series = Series("s", [1.0, math.inf], [0.5, 1.5], [1.5, 2.5])
    story = Story(
        name="made",
        title="나는 너를 사랑해",
        parts=["It begins.", Table("t", ["word", "weight", "n"], [("나는", math.nan, 3)])],
        picture=[
            Matrix("m", weights, rows=["a", "b"]),
            Lines("l", [1.0, 2.0], "x", [series], "y", (0.0, 3.0), doubling=True),
            Bars("b", ["a"], [Series("s", [0.75])], "y"),
        ],
        receipt="verified",
    )
    text = to_json(story)
    assert "나는" in text
    read = json.loads(text, parse_constant=lambda name: (_ for _ in ()).throw(ValueError(name)))
    assert list(read) == ["format", "version", "name", "title", "parts", "picture", "receipt"]
    assert read["parts"] == [
        {"text": "It begins."},
        {
            "table": {
                "title": "t",
                "columns": ["word", "weight", "n"],
                "rows": [["나는", None, 3]],
                "digits": 3,
                "shade": None,
            }
        },
    ]
    matrix, lines, bars = (next(iter(panel.values())) for panel in read["picture"])
    assert [list(panel) for panel in read["picture"]] == [["matrix"], ["lines"], ["bars"]]
    assert matrix["values"] == [[0.5, None], [0.125, 1.0]]
    assert (matrix["rows"], matrix["limits"], matrix["diverging"]) == (["a", "b"], [0, 1], False)
    assert lines["series"] == [
        {"name": "s", "values": [1.0, None], "low": [0.5, 1.5], "high": [1.5, 2.5]}
    ]
    assert (lines["x"], lines["y_limits"], lines["doubling"]) == ([1.0, 2.0], [0.0, 3.0], True)
    assert (bars["labels"], bars["series"][0]["values"]) == (["a"], [0.75])
