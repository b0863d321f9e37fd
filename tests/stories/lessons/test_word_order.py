"""The demo of word order: a bag of words without positions, a sentence with them."""

from __future__ import annotations

import numpy as np
import pytest

from attnviz.stories.common import words_of
from attnviz.stories.lessons import word_order
from attnviz.stories.lessons.word_order import LONG, SHORT
from attnviz.stories.record import Bars, Matrix, Story
from tests.stories.lessons import models
from tests.stories.parts import panels, tables, told

Pair = tuple[str, str]


def places(first: list[str], second: list[str]) -> list[int]:
    """Return where each word stands in the other sentence: the first "get" is the first "get" there."""
    found = []
    for place, word in enumerate(first):
        before = [other.lower() for other in first[:place]].count(word.lower())
        there = [at for at, other in enumerate(second) if other.lower() == word.lower()]
        found.append(there[before])
    return found


def vectors(pair: Pair, *, positions: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the last vectors of a pair's words, the second's in the order of the first."""
    words = [words_of(sentence) for sentence in pair]
    first, second = (models.read("toy", w, positions=positions)[0] for w in words)
    return first, second[places(*words)]


def moved(pair: Pair) -> np.ndarray:
    """Return how much of each row's weight lies on other words in the second sentence [layer, head, query]."""
    words = [words_of(sentence) for sentence in pair]
    first, second = (models.patterns("toy", w) for w in words)
    there = places(*words)
    shares: np.ndarray = (first - second[:, :, there][..., there]).clip(min=0).sum(axis=-1)
    return shares


@pytest.mark.parametrize(("row", "pair"), [(0, SHORT), (1, LONG)])
def test_differences(story: Story, row: int, pair: Pair) -> None:
    """Without positions only rounding; with them those of the formulas."""
    _name, without, with_positions = tables(story)[0].rows[row]
    assert float(without) < 1e-12
    differences = [
        np.abs(np.subtract(*vectors(pair, positions=positions))).max()
        for positions in (False, True)
    ]
    assert differences[0] < 1e-5
    assert 0.1 < differences[1] == pytest.approx(float(with_positions), abs=6e-4)


def test_bars(story: Story) -> None:
    """How far each word's vector moves, as a share of its length."""
    (bars,) = panels(story, Bars)
    assert max(bars.series[0].values) < 1e-12
    first, second = vectors(LONG, positions=True)
    shares = np.linalg.norm(first - second, axis=1) / np.linalg.norm(first, axis=1)
    assert bars.series[1].values == pytest.approx(shares, abs=1e-6)
    there = np.array(places(*(words_of(sentence) for sentence in LONG)))
    stays = there == np.arange(len(there))
    assert f"move by {100 * shares[~stays].mean():.1f}% of their" in told(story)
    assert f"keep it move by {100 * shares[stays].mean():.1f}%" in told(story)


def test_the_head_shown_is_the_one_that_moves_most_elsewhere(story: Story) -> None:
    """It is chosen on other pairs; its patterns are the model's, of both sentences."""
    others = word_order.other_pairs()
    means = [moved(pair).mean(axis=-1) for pair in zip(others[::2], others[1::2], strict=True)]
    layer, head = np.unravel_index(np.mean(means, axis=0).argmax(), means[0].shape)
    assert f"layer {layer}, head {head}, whose rows moved most in {len(means)} other" in told(story)
    assert f"On average {100 * moved(LONG).mean():.1f}% of a row's weight" in told(story)
    for panel, sentence in zip(panels(story, Matrix), LONG, strict=True):
        expected = models.patterns("toy", words_of(sentence))[layer, head]
        assert panel.values == pytest.approx(expected, abs=1e-5)
