"""The calculations by hand: the course's own digits, and exercises that come out well."""

from __future__ import annotations

import math

import numpy as np
import pytest

from attnviz.attention import Note
from attnviz.walkthroughs.examples import LARGEST, example, make


def test_the_five_steps_by_hand() -> None:
    """Sequence-to-sequence attention, digit for digit, as the course prints them."""
    walk = example("seq2seq")
    grids = {name: grid.values.tolist() for name, grid in walk.grids.items()}
    states = [[0, 1, 1], [5, 0, 1], [1, 1, 0], [0, 5, 1]]
    assert (grids["q"], grids["K"], grids["V"]) == ([[10, 5, 10]], states, states)
    assert grids["scores"] == [[15, 60, 15, 35]]
    digits = {
        name: " ".join(f"{value:.9g}" for value in walk.grids[name].values.ravel())
        for name in ("weights", "alignment", "context")
    }
    small, tiny = "2.86251858e-20", "1.38879439e-11"
    assert digits == {
        "weights": f"{small} 1 {small} {tiny}",
        "alignment": f"0 {small} {small} 5 0 1 {small} {small} 0 0 6.94397193e-11 {tiny}",
        "context": "5 6.94397194e-11 1",
    }
    assert grids["concatenated"] == [[*grids["context"][0], 10, 5, 10]]
    names = ["scores", "softmax", "alignment", "context", "concatenated"]
    assert [step.name for step in walk.steps] == names


def test_self_attention_by_hand() -> None:
    """Four tokens 20 wide, attention 5 wide: the textbook's formula, from numbers of one decimal."""
    walk = example("self-attention")
    grids = {name: grid.values for name, grid in walk.grids.items()}
    shapes = {name: values.shape for name, values in grids.items()}
    assert shapes == {
        **{"X": (4, 20), "Wq": (20, 5), "Wk": (20, 5), "Wv": (20, 5)},
        **{"Q": (4, 5), "K": (4, 5), "V": (4, 5), "context": (4, 5)},
        **{"scores": (4, 4), "scaled": (4, 4), "weights": (4, 4)},
    }
    for name in ("X", "Wq", "Wk", "Wv"):
        assert (grids[name] == grids[name].round(1)).all()
        assert 0.5 < np.abs(grids[name]).max() <= 1
        assert len(np.unique(grids[name])) > 10
    scaled = (grids["X"] @ grids["Wq"]) @ (grids["X"] @ grids["Wk"]).T / math.sqrt(5)
    weights = np.exp(scaled) / np.exp(scaled).sum(axis=1, keepdims=True)
    assert grids["weights"] == pytest.approx(weights)
    assert grids["context"] == pytest.approx(weights @ (grids["X"] @ grids["Wv"]))
    table = walk.grids["weights"]
    assert table.rows == table.columns == ("I", "love", "you", "all")
    # The same everywhere: the first numbers of Python's own generator, which is promised not to change.
    assert grids["X"][0, :5].tolist() == [0.7, 0.5, -0.2, -0.5, 0.0]


@pytest.mark.parametrize("seed", range(0, 40, 5))
def test_exercises_come_out_well(seed: int) -> None:
    """Small whole numbers everywhere before the softmax, and something to tell apart."""
    walk = make(seed)
    grids = {name: grid.values for name, grid in walk.grids.items()}
    assert (grids["q"].shape, grids["K"].shape, grids["V"].shape) == ((1, 4), (3, 4), (3, 2))
    for name in ("q", "K", "V", "scores", "scaled"):
        assert set(grids[name].ravel()) <= set(range(10))
    assert grids["scores"].max() <= LARGEST
    assert (grids["scaled"] * 2 == grids["scores"]).all()
    assert len(np.unique(grids["scaled"])) > 1
    assert len(np.unique(grids["K"], axis=0)) == 3
    assert walk.title == Note.of("title_exercise", seed=seed, n=3)


def test_from_context_to_word() -> None:
    """Beside the decoder's state the context goes through Wc and tanh to logits, and the softmax names the word."""
    walk = example("seq2seq-word")
    grids = {name: grid.values for name, grid in walk.grids.items()}
    assert grids["concatenated"][0] == pytest.approx([5, 0, 1, 10, 5, 10], abs=1e-9)
    state = np.tanh([0.2 * 5 + 0.05 * 10, 0.05 * 5, 0.2 * 1 - 0.1 * 10])
    assert grids["state"][0] == pytest.approx(state, abs=1e-9)
    a, b, c = state
    powers = np.exp([b + 2 * c, a + c, 3 * a, a + 2 * b - c])
    assert grids["probabilities"][0] == pytest.approx(powers / powers.sum(), abs=1e-9)
    assert walk.grids["probabilities"].columns == ("I", "love", "you", "all")
    assert walk.notes[-1] == Note.of("next_chosen", word="you")
