"""Walkthroughs from Python: the same as on the command line, refused in the same words; shown and saved."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import attnviz
from attnviz.errors import SelectionError
from attnviz.walkthroughs.files import to_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from attnviz.attention import Kind
    from tests.fixtures.command_line import Result

NUMBERS = (
    '{"query": [1, 2], "keys": [[1, 0], [0, 1]], "values": [[3, 4], [5, 6]], "words": ["a", "b"]}'
)


@pytest.mark.parametrize(
    ("typed_so", "called_so"),
    [
        (("--toy",), {"model": "toy"}),
        (
            ("--toy", "love you", "--head", "1.-1", "--query", "you"),
            {"text": "love you", "model": "toy", "layer": 1, "head": -1, "query": "you"},
        ),
        (("--toy", "--all-queries"), {"model": "toy", "all_queries": True}),
        (("--toy", "--whole-layer", "1"), {"model": "toy", "layer": 1, "whole_layer": True}),
        (
            ("-m", "toy-random", "--score", "general"),
            {"model": "toy-random", "score": "general"},
        ),
        (
            ("-m", "toy-seq2seq", "--target", "나는 너를"),
            {"model": "toy-seq2seq", "target": "나는 너를"},
        ),
        (
            ("--example", "self-attention", "--query", "1"),
            {"example": "self-attention", "query": 1},
        ),
        (("--exercise", "7", "--solution"), {"exercise": 7}),
        (("--input", "mine.json"), {"numbers": "mine.json"}),
    ],
)
def test_the_same_as_on_the_command_line(
    typed: Callable[..., Result], here: Path, typed_so: tuple[str, ...], called_so: dict[str, Any]
) -> None:
    """Every number, label and note."""
    (here / "mine.json").write_text(NUMBERS, encoding="utf-8")
    printed = json.loads(typed("walkthrough", *typed_so, "-o", "-").output)
    assert printed == json.loads(to_json(attnviz.walkthrough(**called_so)))


def test_it_shows_itself() -> None:
    """In one line, as a picture, and as a table of what the query makes of each key."""
    walk = attnviz.walkthrough(example="seq2seq")
    assert repr(walk) == "<Walkthrough 'seq2seq': 5 steps>"
    frame = walk.to_frame()
    assert list(frame.columns) == ["scores", "weights"]
    assert frame["scores"].tolist() == [15, 60, 15, 35]
    assert frame.index.names == ["query", "key"]
    assert frame.loc[("decoder", "encoder 2"), "weights"] == pytest.approx(1)
    every = attnviz.walkthrough(model="toy", all_queries=True).to_frame()
    assert every["weights"].groupby("query").sum().tolist() == pytest.approx([1.0] * 4)
    assert walk._repr_png_().startswith(b"\x89PNG")
    assert str(walk._repr_html_()).startswith("<iframe sandbox=")
    made = attnviz.walkthrough(exercise=3)
    assert {grid for grid, _, _ in made.blanks()} == {step.result for step in made.steps}


def test_one_head_of_several() -> None:
    """By its layer and number, as of a record: its attention weights; what is not walked is refused."""
    walk, record = (
        attnviz.walkthrough(model="toy", whole_layer=True),
        attnviz.attend("I love all you", model="toy"),
    )
    assert all(np.allclose(walk[0, head], record[0, head], atol=1e-6) for head in range(6))
    assert np.array_equal(walk[-1, -1], walk[0, 5])
    one = attnviz.walkthrough(model="toy", head="1.2")
    assert one.query is not None
    assert np.allclose(one[1, 2], record[1, 2][[one.query]], atol=1e-6)
    for place in ((0, 2), (1, 1)):
        with pytest.raises(SelectionError, match=r"there is no (layer|head) .: this record holds"):
            one[place]
    assert attnviz.walkthrough(example="seq2seq")[0, 0].shape == (1, 4)
    kinds: tuple[Kind, ...] = ("decoder", "cross")
    back, across = (
        attnviz.walkthrough(model="toy-transformer", whole_layer=True, kind=kind) for kind in kinds
    )
    assert np.array_equal(back[0, 1], across.grids["weights_1"].values)
    assert np.array_equal(across[0, 1], across.grids["weights_cross_1"].values)


def test_a_spreadsheet_runs_no_word(tmp_path: Path) -> None:
    """Words that begin like a formula are texts in a CSV file."""
    numbers = tmp_path / "numbers.json"
    numbers.write_text(
        '{"words": ["=1+1", "@SUM(1)"], "query": [[1, 2]], "keys": [[1, 2], [3, 4]], "values": [[1], [0]]}'
    )
    table = attnviz.walkthrough(numbers=numbers).save(tmp_path / "a.csv").read_text()
    names = {
        cell for line in table.splitlines()[1:] for cell in (line.split(",")[4], line.split(",")[6])
    }
    assert {"'=1+1", "'@SUM(1)"} <= names
    assert not any(name.startswith(("=", "@")) for name in names)
