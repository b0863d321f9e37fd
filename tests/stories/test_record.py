"""A story as JSON: all its numbers, and null for what is none."""

from __future__ import annotations

import json
import math

import numpy as np

from attnviz.stories.record import Bars, Lines, Matrix, Series, Story, Table, to_json

STORY = Story(
    name="made",
    title="나는 너를 사랑해",
    parts=(
        "It begins.",
        Table(
            title="t", columns=("word", "weight", "n"), rows=(("나는", math.nan, 3), ("x", 0.25, 4))
        ),
    ),
    picture=(
        Matrix(
            title="m",
            values=np.array([[0.5, np.nan], [0.125, 1.0]], dtype=np.float32),
            rows=("a", "b"),
        ),
        Lines(
            title="l",
            x=(1.0, 2.0),
            x_title="x",
            series=(Series(name="s", values=(1.0, math.inf), low=(0.5, 1.5), high=(1.5, 2.5)),),
            y_title="y",
            y_limits=(0.0, 3.0),
            doubling=True,
        ),
        Bars(title="b", labels=("a",), series=(Series(name="s", values=(0.75,)),), y_title="y"),
    ),
    receipt="verified",
)


def test_to_json() -> None:
    """Sentences, tables and panels in their order, each under its kind; strict JSON, in the letters as they are."""
    text = to_json(STORY)
    assert "나는" in text
    read = json.loads(text, parse_constant=lambda name: (_ for _ in ()).throw(ValueError(name)))
    assert {name: read[name] for name in ("name", "title", "receipt")} == {
        "name": "made",
        "title": "나는 너를 사랑해",
        "receipt": "verified",
    }
    sentence, table = read["parts"]
    assert sentence == {"text": "It begins."}
    assert table == {
        "table": {
            "title": "t",
            "columns": ["word", "weight", "n"],
            "rows": [["나는", None, 3], ["x", 0.25, 4]],
            "digits": 3,
            "shade": None,
        }
    }
    matrix, lines, bars = (
        panel[kind]
        for panel, kind in zip(read["picture"], ("matrix", "lines", "bars"), strict=True)
    )
    assert matrix["values"] == [[0.5, None], [0.125, 1.0]]
    assert (matrix["rows"], matrix["limits"], matrix["diverging"]) == (
        ["a", "b"],
        [0.0, 1.0],
        False,
    )
    assert lines["series"] == [
        {"name": "s", "values": [1.0, None], "low": [0.5, 1.5], "high": [1.5, 2.5]}
    ]
    assert (lines["x"], lines["y_limits"], lines["doubling"]) == ([1.0, 2.0], [0.0, 3.0], True)
    assert bars["labels"] == ["a"]
    assert bars["series"][0]["values"] == [0.75]
