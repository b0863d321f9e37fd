"""Whole layers: of home-built models up to the layer's own output, of pretrained ones up to the output projection."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest

from attnviz import walkthrough
from attnviz.attention import Kind, Note
from attnviz.capture.source import open_source
from attnviz.errors import NoAttentionError
from attnviz.walkthroughs.texts import BEFORE, BY_KEY
from attnviz.walkthroughs.verify import examine
from attnviz.walkthroughs.wording import explain
from tests.walkthroughs.by_hand import largest_error

if TYPE_CHECKING:
    from attnviz.walkthroughs.record import Walkthrough
    from tests.fixtures.zoo import Zoo

CLOSE = 1e-6
"""How far a recomputed output may be from the model's own in float32, relative to its largest number if above 1."""

TEXT, TARGET = "I love all you", "Yes! I love you"
OF_HEAD = {*BY_KEY, *BEFORE, "context"}
HEADS = ["concatenated", "output"]
NETWORK = ["feed_forward_1", "relu", "feed_forward_2", "residual_2", "norm_out"]
ENCODER = [*HEADS, "residual", "norm", *NETWORK]
DECODER = [*HEADS, "residual", "norm", *HEADS, "residual_cross", "norm", *NETWORK]

Names = list[tuple[str, Kind | None]]
ENCODERS: Names = [
    *((name, None) for name in ("toy", "toy-random", "toy-decoder")),
    ("toy-transformer", "encoder"),
]
DECODERS: Names = [("toy-transformer", "cross"), ("toy-transformer", "decoder")]
PRETRAINED: Names = [
    *((name, None) for name in ("distilbert", "gpt2", "llama", "modernbert", "gemma2")),
    *(("bart_wordpiece", "cross"), ("t5", "decoder")),
]
LAYERS = [
    *((*names, ENCODER) for names in ENCODERS),
    *((*names, DECODER) for names in DECODERS),
    *((*names, HEADS) for names in PRETRAINED),
]
"""The steps around the heads of each model's layers."""


@cache
def whole(
    zoo: Zoo, name: str, kind: Kind | None = None, layer: int = 0, query: int | None = None
) -> Walkthrough:
    """A layer of a model; an encoder-decoder whose words are random is made to say something."""
    source = open_source(name) if name.startswith("toy") else zoo.source(name)
    target = TARGET if kind in {"cross", "decoder"} and not name.startswith("toy") else None
    return walkthrough(
        TEXT, source, whole_layer=True, kind=kind, target=target, layer=layer, query=query
    )


def output_of(walked: Walkthrough) -> np.ndarray:
    """The numbers that the layer ends in."""
    assert walked.own == walked.steps[-1].result
    return np.asarray(walked.grids[walked.own].values)


@pytest.mark.parametrize(("name", "kind", "steps"), LAYERS)
def test_whole_layers(zoo: Zoo, name: str, kind: Kind | None, steps: list[str]) -> None:
    """Every step to the model's own numbers, each explained; a note says where a pretrained layer ends."""
    for layer in (0, -1):
        walked = whole(zoo, name, kind, layer)
        around = [step.name for step in walked.steps if step.name not in OF_HEAD]
        assert around == steps
        assert (Note("ends_at_output") in walked.notes) == (not name.startswith("toy"))
        output = output_of(walked)
        scale = max(1.0, float(np.abs(output).max()))
        assert walked.difference is not None
        assert walked.from_input is not None
        assert max(walked.difference, walked.from_input / 2) <= CLOSE * scale
        assert largest_error(walked) == 0
        one = whole(zoo, name, kind, layer, 1)
        np.testing.assert_allclose(output_of(one)[0], output[1], atol=1e-11)
        assert examine(one).fault == ""
        for what in {*one.inputs(), *(step.name for step in one.steps)}:
            assert explain(what)[1], what


def test_a_large_layer() -> None:
    """Its weights are left out unless they are asked for: the results of the projections are given then."""
    model = "toy-random-bert:d_model=768,n_heads=12,n_layers=1"
    short = walkthrough("I", model, whole_layer=True)
    full = walkthrough("I", model, whole_layer=True, full=True)
    assert any(note.code == "layer_left_out" for note in short.notes)
    assert "Wo" not in short.grids
    assert "Wo" in full.grids
    assert short.from_input is None
    np.testing.assert_allclose(output_of(short), output_of(full), atol=1e-4)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("toy-seq2seq", "is recurrent: it has no layer to follow as a whole"),
        ("bloom", "computes its attention by itself"),
    ],
)
def test_other_layers_are_refused(zoo: Zoo, name: str, why: str) -> None:
    """One sentence says why: a recurrent cell, another interface."""
    with pytest.raises(NoAttentionError, match=why) as caught:
        whole(zoo, name)
    assert "\n" not in str(caught.value)
    assert name in str(caught.value)
