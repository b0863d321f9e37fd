"""Walkthroughs from Python: the same as on the command line, refused in the same words; shown and saved."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jaxtyping
import numpy as np
import pytest
from PIL import Image

import attnviz
from attnviz.errors import OutputError, SelectionError, SettingsError
from attnviz.storage.formats import WALKTHROUGH
from attnviz.walkthroughs.files import load, to_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from attnviz.attention import Kind
    from tests.fixtures.command_line import Result

NUMBERS = (
    '{"query": [1, 2], "keys": [[1, 0], [0, 1]], "values": [[3, 4], [5, 6]], "words": ["a", "b"]}'
)
BY_HAND = "a calculation by hand needs no model: it takes no sentence and no settings of a model"


@pytest.mark.parametrize(
    ("typed_so", "called_so"),
    [
        (("--toy",), {"model": "toy"}),
        (
            ("--toy", "love you", "--layer", "1", "--head", "-1", "--query", "you"),
            {"text": "love you", "model": "toy", "layer": 1, "head": -1, "query": "you"},
        ),
        (("--toy", "--all-queries"), {"model": "toy", "all_queries": True}),
        (("--toy", "--whole-layer"), {"model": "toy", "whole_layer": True}),
        (
            ("-m", "toy-random", "--score", "general", "--causal"),
            {"model": "toy-random", "score": "general", "causal": True},
        ),
        (
            ("-m", "toy-seq2seq", "--target", "나는 너를"),
            {"model": "toy-seq2seq", "target": "나는 너를"},
        ),
        (
            ("--example", "self-attention", "--query", "1"),
            {"example": "self-attention", "query": 1},
        ),
        (("--exercise", "--solution", "--seed", "7"), {"exercise": 7}),
        (("--input", "mine.json"), {"numbers": "mine.json"}),
    ],
)
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
        ({"query": "I", "all_queries": True}, "give one query or all, not both"),
        ({"whole_layer": True, "head": 1}, "give one head or the whole layer, not both"),
        (
            {"example": "seq2seq", "numbers": "x.json"},
            "give an example or a file of numbers, not both",
        ),
        ({"example": "seq2seq", "text": "I"}, BY_HAND),
        ({"numbers": "x.json", "layer": 1}, BY_HAND),
        (
            {"exercise": 1, "model": "toy"},
            "an exercise is made of small integers: it takes no sentence and no model",
        ),
        (
            {"model": "toy", "score": "foo"},
            "Invalid value for 'score': 'foo' is not one of 'dot', 'scaled', 'general', 'additive'",
        ),
    ],
)
def test_refused(monkeypatch: pytest.MonkeyPatch, called_so: dict[str, Any], line: str) -> None:
    """Settings that are not there or exclude one another, in the words of the command line."""
    monkeypatch.setattr(
        jaxtyping.config, "jaxtyping_disable", True
    )  # or the tests' own checks would speak first
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
    assert repr(walk) == "<Walkthrough 'seq2seq': 5 steps>"
    one = attnviz.walkthrough(model="toy", head="1.2")
    assert repr(one) == "<Walkthrough of 'toy' (encoder), head 1.2: 'I love all you', 11 steps>"
    whole = attnviz.walkthrough(model="toy", whole_layer=True)
    assert repr(whole).startswith("<Walkthrough of 'toy' (encoder), layer 0: ")
    frame = walk.to_frame()
    assert list(frame.columns) == ["scores", "weights"]
    assert frame["scores"].tolist() == [15, 60, 15, 35]
    assert frame.index.names == ["query", "key"]
    assert frame.loc[("decoder", "encoder 2"), "weights"] == pytest.approx(1)
    every = attnviz.walkthrough(model="toy", all_queries=True).to_frame()
    assert every["weights"].groupby("query").sum().tolist() == pytest.approx([1.0] * 4)
    assert walk._repr_png_().startswith(b"\x89PNG")
    assert walk._repr_html_().startswith("<iframe sandbox=")
    assert walk.figure(lang="ko", cmap="viridis").get_figwidth() > 3
    made = attnviz.walkthrough(exercise=3)
    assert {grid for grid, _, _ in made.blanks(3)} == {step.result for step in made.steps}


def test_one_head_of_several() -> None:
    """By its layer and number, as of a record: its attention weights; what is not walked is refused."""
    walk, record = (
        attnviz.walkthrough(model="toy", whole_layer=True),
        attnviz.attend("I love all you", model="toy"),
    )
    assert all(np.allclose(walk[0, head], record[0, head], atol=1e-6) for head in range(6))
    assert np.array_equal(walk[-1, -1], walk[0, 5])
    one = attnviz.walkthrough(model="toy", head="1.2")
    assert np.allclose(one[1, 2], record[1, 2][:1], atol=1e-6)
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


def test_steps_are_read_as_on_the_command_line(typed: Callable[..., Result], here: Path) -> None:
    """A list or a text with commas, by the beginnings of names too: the same files, to the byte."""
    walk = attnviz.walkthrough(model="toy")
    typed("walkthrough", "--toy", "--steps", "score,softmax", "-o", "typed.md")
    for steps in (["score", "softmax"], "score, softmax", ("scores", "weights")):
        assert (
            walk.save(here / "called.md", steps=steps).read_bytes()
            == (here / "typed.md").read_bytes()
        )


def test_the_example_needs_eight_digits(typed: Callable[..., Result], here: Path) -> None:
    """Both ways print its smallest weights, and so does one that was loaded; other digits can be wanted."""
    walk = attnviz.walkthrough(example="seq2seq")
    typed(
        "walkthrough",
        "--example",
        "seq2seq",
        "-o",
        "typed.md",
        "-o",
        "typed.html",
        "-o",
        "typed.json",
    )
    for one in (walk, load(here / "typed.json")):
        assert one.save(here / "called.md").read_bytes() == (here / "typed.md").read_bytes()
    assert "2.86251858e-20" in (here / "typed.md").read_text(encoding="utf-8")
    assert walk.save(here / "called.html").read_bytes() == (here / "typed.html").read_bytes()
    assert "2.86251858e-20" not in walk.save(here / "called.md", precision=3).read_text(
        encoding="utf-8"
    )


def test_several_walkthroughs_are_one_film(typed: Callable[..., Result], here: Path) -> None:
    """The film of all steps of a decoder, as the command writes it; other files hold one walkthrough."""
    steps = attnviz.decoding_steps("I love", model="toy-seq2seq")
    typed("walkthrough", "-m", "toy-seq2seq", "I love", "--steps", "softmax", "-o", "typed.gif")
    path = attnviz.save(steps, here / "called.gif", steps="softmax")
    assert path.read_bytes() == (here / "typed.gif").read_bytes()
    with Image.open(path) as film:
        assert getattr(film, "n_frames", 1) == len(steps) > 1
    with pytest.raises(
        OutputError, match=r"2 walkthroughs are no file: only a film \(\.gif, \.mp4\) holds several"
    ):
        attnviz.save(steps[:2], here / "walk.json")
    with pytest.raises(OutputError, match="0 walkthroughs are no file"):
        attnviz.save([], here / "walk.gif")
    with pytest.raises(SettingsError, match="a film is made only where all are walkthroughs"):
        attnviz.save([*steps, attnviz.attend("I", model="toy")], here / "walk.gif")  # type: ignore[list-item]


@pytest.mark.parametrize("suffix", ["svg", "pdf", "gif", "mp4"])
def test_what_a_picture_is_made_of(
    here: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    """By the ending what draws it is given the calculation and the view; its bytes are the file."""
    walk, view = attnviz.walkthrough(exercise=3), {"lang": "ko", "precision": 2, "cmap": "gray"}
    made = replace(WALKTHROUGH[f".{suffix}"], make=lambda walk, **view: repr((walk, view)))
    monkeypatch.setitem(WALKTHROUGH, f".{suffix}", made)
    assert walk.save(here / f"walk.{suffix}", **view).read_text() == f"{(walk, view)!r}\n"


@pytest.mark.parametrize("suffix", ["json", "md", "tex", "csv", "html", "png"])
def test_it_is_saved(here: Path, suffix: str) -> None:
    """By the ending; what JSON holds is loaded and verified, and it has no blanks."""
    walk = attnviz.walkthrough(exercise=3)
    blanks = walk.blanks(3)
    if suffix == "json":
        with pytest.raises(
            SettingsError, match="JSON holds every number: an exercise with blank cells cannot"
        ):
            walk.save(here / "walk.json", blanks=blanks)
        blanks = frozenset()
    view = {} if suffix == "json" else {"lang": "ko"}
    path = walk.save(here / f"walk.{suffix}", blanks=blanks, **view)
    assert path.stat().st_size > 500
    if suffix == "json":
        assert to_json(load(path)) == to_json(walk)
        verdict = attnviz.verify(path)
        assert verdict.fault == ""
        assert (
            repr(verdict) == f"<Verdict verified: {len(walk.steps)} steps, {verdict.cells} cells>"
        )
    elif suffix in {"md", "html"}:
        assert "____" in path.read_text(encoding="utf-8").replace("\\", "")
        assert "소프트맥스" in path.read_text(encoding="utf-8")


def test_digits_and_heads_that_are_none() -> None:
    """More digits than a number has, and a place that is no head, are refused."""
    walk = attnviz.walkthrough("I love you", "toy")
    assert (walk["0.0"] == walk[0, 0]).all()
    for precision in (-1, 99):
        with pytest.raises(SettingsError, match="the precision is from 0 to 17 digits"):
            walk.figure(precision=precision)
    with pytest.raises(SelectionError, match="is no head"):
        _ = walk["0"]


def test_the_usual_sentence() -> None:
    """It is one that the model knows."""
    assert attnviz.walkthrough(model="toy").text == "I love all you"
    assert attnviz.walkthrough(model="toy-ko").text == "고양이가 방에서 자고 있어요"


def test_what_cannot_be_shown(here: Path) -> None:
    """Another ending, a step that is not there, a table of a calculation without scores."""
    walk = attnviz.walkthrough(example="seq2seq")
    with pytest.raises(OutputError, match=r"a walkthrough is saved as \.png, "):
        walk.save(here / "walk.doc")
    with pytest.raises(SelectionError, match="there is no step 'soup'"):
        walk.save(here / "walk.md", steps=["soup"])
    from attnviz.walkthroughs.calculation import Calculation

    with pytest.raises(SelectionError, match="this calculation has no scores"):
        Calculation().finish("nothing").to_frame()
    assert list(here.iterdir()) == []


def test_copies_are_read_only() -> None:
    """What comes from a pickle is written as the same file, and nobody can write into its grids."""
    walk = attnviz.walkthrough("I love", model="toy")
    copied = pickle.loads(pickle.dumps(walk))
    assert to_json(copied) == to_json(walk)
    with pytest.raises(ValueError, match="read-only"):
        copied.grids["K"].values[...] = 0
