"""Walkthroughs from Python: the same as on the command line, refused in the same words; shown and saved."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import attnviz
from attnviz.errors import OutputError, SelectionError, SettingsError
from attnviz.walkthroughs.files import FORMATS, load, to_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.fixtures.command_line import Result

NUMBERS = '{"query": [1, 2], "keys": [[1, 0], [0, 1]], "values": [[3, 4], [5, 6]], "words": ["a", "b"]}'


@pytest.mark.parametrize(
    ("typed_so", "called_so"),
    [
        (("--toy",), {"model": "toy"}),
        (("--toy", "love you", "--layer", "1", "--head", "-1", "--query", "you"),
         {"text": "love you", "model": "toy", "layer": 1, "head": -1, "query": "you"}),
        (("--toy", "--all-queries"), {"model": "toy", "all_queries": True}),
        (("--toy", "--whole-layer"), {"model": "toy", "whole_layer": True}),
        (("-m", "toy-random", "--score", "general", "--causal"),
         {"model": "toy-random", "score": "general", "causal": True}),
        (("-m", "toy-seq2seq", "--target", "나는 너를"), {"model": "toy-seq2seq", "target": "나는 너를"}),
        (("--example", "self-attention", "--query", "1"), {"example": "self-attention", "query": 1}),
        (("--exercise", "--solution", "--seed", "7"), {"exercise": 7}),
        (("--input", "mine.json"), {"numbers": "mine.json"}),
    ],
)  # fmt: skip
def test_the_same_as_on_the_command_line(
    typed: Callable[..., Result], here: Path, typed_so: tuple[str, ...], called_so: dict[str, Any]
) -> None:
    """Every number, label and note."""
    (here / "mine.json").write_text(NUMBERS, encoding="utf-8")
    printed = json.loads(typed("walkthrough", *typed_so, "--json").output)
    assert printed == json.loads(to_json(attnviz.walkthrough(**called_so)))


@pytest.mark.parametrize(
    ("called_so", "line"),
    [
        ({"query": "I", "all_queries": True}, "give --query or --all-queries, not both"),
        ({"whole_layer": True, "head": 1}, "give --head or --whole-layer, not both"),
        ({"example": "seq2seq", "numbers": "x.json"}, "give --example or --input, not both"),
        (
            {"example": "seq2seq", "text": "I"},
            "--example needs no model: it takes no sentence, and no option of a model",
        ),
        ({"numbers": "x.json", "layer": 1}, "--input needs no model: it takes no sentence, and no option of a model"),
        ({"exercise": 1, "model": "toy"}, "an exercise is made of small integers: it takes no sentence and no model"),
    ],
)
def test_refused(called_so: dict[str, Any], line: str) -> None:
    """Settings that exclude one another, in the words of the command line."""
    with pytest.raises(SettingsError) as error:
        attnviz.walkthrough(**called_so)
    assert str(error.value) == line


def test_a_source_that_is_open_and_its_steps() -> None:
    """A model is loaded once; each step of a decoder is a walkthrough."""
    source = attnviz.open_source("toy-seq2seq")
    steps = attnviz.decoding_steps("I love all you", source)
    assert [walk.query for walk in steps] == list(range(len(steps)))
    assert len(steps) > 2
    second = attnviz.walkthrough("I love all you", source, query=1)
    assert to_json(second) == to_json(steps[1])
    with pytest.raises(SettingsError, match="the model is loaded already: dtype cannot be chosen"):
        attnviz.walkthrough(model=source, dtype="float64")


def test_it_shows_itself() -> None:
    """In one line, as a picture, and as a table of what the query makes of each key."""
    walk = attnviz.walkthrough(example="seq2seq")
    assert repr(walk) == (
        '<Walkthrough "Attention by hand: a decoder\'s state and four states of the encoder": 5 steps; '
        "no model to compare with>"
    )
    frame = walk.to_frame()
    assert list(frame.columns) == ["scores", "weights"]
    assert frame["scores"].tolist() == [15, 60, 15, 35]
    assert frame.index.names == ["query", "key"]
    assert frame.loc[("decoder", "encoder 2"), "weights"] == pytest.approx(1)
    every = attnviz.walkthrough(model="toy", all_queries=True).to_frame()
    assert every["weights"].groupby("query").sum().tolist() == pytest.approx([1.0] * 4)
    assert walk._repr_png_().startswith(b"\x89PNG")
    assert walk._repr_html_().startswith("<iframe sandbox=")
    assert walk.figure(language="ko", palette="viridis").get_figwidth() > 3
    made = attnviz.walkthrough(exercise=3)
    assert {grid for grid, _, _ in made.blanks(3)} == {step.result for step in made.steps}


@pytest.mark.parametrize("suffix", ["svg", "pdf", "gif", "mp4"])
def test_what_a_picture_is_made_of(here: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    """By the ending what draws it is given the calculation and the view; its bytes are the file."""
    walk, view = attnviz.walkthrough(exercise=3), {"language": "ko", "precision": 2, "palette": "gray"}
    monkeypatch.setitem(FORMATS, f".{suffix}", lambda *given: (repr(given).encode(), ""))
    assert walk.save(here / f"walk.{suffix}", **view).read_bytes() == repr(([walk], f".{suffix}", view)).encode()


@pytest.mark.parametrize("suffix", ["json", "md", "tex", "csv", "html", "png"])
def test_it_is_saved(here: Path, suffix: str) -> None:
    """By the ending; what JSON holds is loaded and verified."""
    walk = attnviz.walkthrough(exercise=3)
    path = walk.save(here / f"walk.{suffix}", language="ko", blanks=walk.blanks(3), palette="gray")
    assert path.stat().st_size > 500
    if suffix == "json":
        assert to_json(load(path)) == to_json(walk)
        assert attnviz.verify(path).fault == ""
    elif suffix in {"md", "html"}:
        assert "____" in path.read_text(encoding="utf-8").replace("\\", "")
        assert "소프트맥스" in path.read_text(encoding="utf-8")


def test_what_cannot_be_shown(here: Path) -> None:
    """Another ending, a step that is not there, a table of a calculation without scores."""
    walk = attnviz.walkthrough(example="seq2seq")
    with pytest.raises(OutputError, match=r"a walkthrough is saved as \.json, "):
        walk.save(here / "walk.doc")
    with pytest.raises(SelectionError, match="there is no step 'soup'"):
        walk.save(here / "walk.md", steps=["soup"])
    from attnviz.walkthroughs.calculation import Calculation

    with pytest.raises(SelectionError, match="this calculation has no scores"):
        Calculation().finish("nothing").to_frame()
    assert list(here.iterdir()) == []
