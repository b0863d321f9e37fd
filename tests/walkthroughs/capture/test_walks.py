"""A word followed through any model: the context is the model's own, from its own projections, for every query."""

from __future__ import annotations

import itertools
import re
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from attnviz import walkthrough
from attnviz.attention import Kind, Note, Token
from attnviz.capture.attend import attend
from attnviz.capture.source import open_source
from attnviz.capture.sources import Source
from attnviz.errors import SelectionError
from attnviz.walkthroughs.calculation import largest_difference
from attnviz.walkthroughs.capture.walks import find_query
from tests.walkthroughs.by_hand import largest_error

if TYPE_CHECKING:
    from attnviz.walkthroughs.settings import Score
    from tests.fixtures.zoo import Zoo

CLOSE = 1e-6
"""How far a recomputed context may be from the model's own in float32, relative to its largest number if above 1."""

HOME: list[tuple[str, Kind]] = [
    ("toy", "encoder"),
    ("toy-random", "encoder"),
    ("toy-decoder", "decoder"),
    ("toy-seq2seq", "cross"),
    ("toy-transformer", "cross"),
    ("toy-transformer", "encoder"),
    ("toy-transformer", "decoder"),
]
"""Each home-built model with each of its kinds of attention."""

ROTARY = ("gemma2", "gpt_oss", "llama", "mistral", "modernbert")
"""Models whose query and keys are shown after rotary positions."""

SHORT = "I love all you"
LONG = "the animal didn't cross the street because it was too tired"

home = cache(open_source)


def check_every(text: str, source: Source, kind: Kind | None = None) -> None:
    """Every query of heads in the first and the last layer: close to the model's own numbers, and made of its own."""
    record = attend(text, source, kind=kind)
    n_layers, n_heads, n_queries, _ = record.weights.shape
    for layer, head in itertools.product({0, n_layers - 1}, {0, n_heads // 2, n_heads - 1}):
        every = walkthrough(text, source, layer=layer, head=head, all_queries=True, kind=kind)
        close = CLOSE * max(1.0, float(np.abs(every.grids["context"].values).max()))
        assert every.own == "context"
        assert every.difference is not None
        assert every.difference <= close
        assert every.from_input is None or every.from_input <= 2 * close
        assert largest_error(every) == 0
        assert largest_difference(every.grids["weights"].values, record.weights[layer, head]) < 5e-6
        assert len(every.grids["context"].values) == n_queries
        assert every.receipt is not None


@pytest.mark.parametrize(("name", "kind"), HOME)
class TestHomeBuilt:
    """The home-built models, whose every projection is found."""

    def test_every_layer_head_and_query(self, name: str, kind: Kind) -> None:
        check_every(LONG, home(name), kind)

    def test_all_is_made_of_the_input(self, name: str, kind: Kind) -> None:
        """Query, keys and values are steps; the input is the sum of words and positions where it is one."""
        for layer in (0, -1):
            walked = walkthrough(SHORT, home(name), layer=layer, query=1, kind=kind)
            steps = {step.result: step.operands for step in walked.steps}
            memory = "M" if kind == "cross" else "X"
            assert steps["q"] == ("x", "Wq", "bq")
            assert steps["K"] == (memory, "Wk", "bk")
            assert steps["V"] == (memory, "Wv", "bv")
            assert (steps.get("X") == ("E", "P")) == (walked.layer == 0 and kind != "cross")
            assert (steps.get("x") == ("X",)) == (memory == "X")
            if memory == "X":
                assert np.array_equal(walked.grids["x"].values[0], walked.grids["X"].values[1])
            if name == "toy-seq2seq":
                assert steps["concatenated"] == ("y", "context")
            else:
                assert steps["output"] == ("concatenated", "Wo", "bo")


@pytest.mark.parametrize("name", ["real", "bart", "distilbert", "gpt2", "opt", "t5", *ROTARY])
class TestPretrained:
    """Architectures whose projections are found where their numbers are those of query, key and value."""

    def test_every_layer_head_and_query(self, zoo: Zoo, name: str) -> None:
        check_every(zoo.sentences[1], zoo.source(name))

    def test_projections(self, zoo: Zoo, name: str) -> None:
        """A query is given where something else follows its projection, and a note says so; all others are made."""
        walked = walkthrough(zoo.sentences[0], zoo.source(name), head=1)
        made = {step.result for step in walked.steps}
        given = {"opt": {"q"}, **{rotary: {"q", "K"} for rotary in ROTARY}}.get(name, set())
        assert {"q", "K", "V"} - made == given
        assert any("taken_as_given" in note.code for note in walked.notes) == bool(given)
        assert "output" in made
        assert (walked.from_input is None) == (not made & {"q", "K", "V"})


def test_the_input_of_bert(zoo: Zoo) -> None:
    """The first layer reads the norm of word, position and segment: the library's own embeddings."""
    tokenizer, model = zoo.library("real")
    encoded = tokenizer(SHORT, return_tensors="pt")
    with torch.inference_mode():
        expected = model.embeddings(input_ids=encoded["input_ids"])[0].double().numpy()
    walked = walkthrough(SHORT, zoo.source("real"), all_queries=True)
    assert [step.result for step in walked.steps[:3]] == ["EP", "EPS", "X"]
    assert largest_difference(walked.grids["X"].values, expected) < 5e-6
    tables, ids = model.embeddings, encoded["input_ids"][0]
    for name, vectors in (
        ("E", tables.word_embeddings.weight[ids]),
        ("P", tables.position_embeddings.weight[:6]),
    ):
        assert np.array_equal(walked.grids[name].values, vectors.detach().double())


@pytest.mark.parametrize(
    ("score", "weights"), [("dot", set()), ("general", {"W"}), ("additive", {"W", "U", "v"})]
)
def test_another_score(score: Score, weights: set[str]) -> None:
    """The home-built models' scores made otherwise: with weights that are drawn, and no context to compare with."""
    own = walkthrough(SHORT, home("toy"))
    walked, again = (walkthrough(SHORT, home("toy"), score=score) for _ in range(2))
    assert (walked.own, walked.difference, walked.from_input) == (None, None, None)
    assert weights <= set(walked.inputs())
    assert "output" not in walked.grids
    assert Note.of("other_score", score=score) in walked.notes
    assert np.array_equal(walked.grids["q"].values, own.grids["q"].values)
    assert not np.allclose(walked.grids["weights"].values, own.grids["weights"].values)
    assert np.array_equal(walked.grids["scores"].values, again.grids["scores"].values)


TOKENS = tuple(
    Token(text=text, piece=text, word=word, special=word is None)
    for text, word in (
        *(("[CLS]", None), ("walk", 0), ("·through", 0)),
        *(("The", 1), ("it", 2), ("the", 3), ("it", 4)),
    )
)
THERE = "there are 0 [CLS], 1 walk, 2 ·through, 3 The, 4 it, 5 the, 6 it"


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        *((None, 1), (-1, 6), ("2", 2), ("The", 3), ("through", 2), (" walk ", 1), ("[cls]", 0)),
        ("it", "several queries are 'it': choose one by its number: 4 it, 6 it"),
        ("THE", "several queries are 'THE': choose one by its number: 3 The, 5 the"),
        ("walkthrough", "several queries are 'walkthrough': choose one by its number: 1 walk, 2 "),
        ("wlak", "there is no query 'wlak': did you mean walk?"),
        ("run", f"there is no query 'run': {THERE}"),
        ("7", f"there is no query 7: {THERE}"),
    ],
)
def test_queries(wanted: str | int | None, found: int | str) -> None:
    """A word, a piece of one, or a number; what is neither, or several, is refused with what there is."""
    if isinstance(found, int):
        assert find_query(TOKENS, wanted) == found
    else:
        with pytest.raises(SelectionError, match=re.escape(found)):
            find_query(TOKENS, wanted)
