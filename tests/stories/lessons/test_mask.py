"""The demo of the mask: no weight on the future, and nothing of the past changes with it."""

from __future__ import annotations

import numpy as np
import pytest

from attnviz.stories.common import words_of
from attnviz.stories.lessons import mask
from attnviz.stories.record import Bars, Matrix, Story
from tests.stories.lessons import by_hand
from tests.stories.parts import tables, told

WORDS = words_of(mask.SENTENCE)
OTHER = words_of(mask.OTHER)


def head_that_looks(patterns: np.ndarray, way: int) -> tuple[int, int]:
    """The head that puts most weight on later (1) or earlier (-1) words."""
    query, key = np.indices(patterns.shape[2:])
    sums = (patterns * ((key - query) * way > 0)).sum(axis=(2, 3))
    layer, head = np.unravel_index(sums.argmax(), sums.shape)
    return int(layer), int(head)


def test_only_the_last_word_differs() -> None:
    """What changes before it can come from nowhere else."""
    assert WORDS[:-1] == OTHER[:-1]
    assert WORDS[-1] != OTHER[-1]


def test_the_decoder_puts_exactly_nothing_on_the_future(story: Story) -> None:
    """In no layer, head or row; the encoder does."""
    table = tables(story)[1]
    ways, causal = table.rows
    assert causal[1:3] == ("0", "0")
    query, key = np.indices((len(WORDS), len(WORDS)))
    future = by_hand.patterns("toy", WORDS) * (key > query)
    rows = future.shape[0] * future.shape[1] * (len(WORDS) - 1)
    assert float(ways[1]) == pytest.approx(future.sum(), abs=1e-3)
    assert float(ways[2]) == pytest.approx(future.sum() / rows, abs=6e-4)
    assert f"exactly 0 over all {future.shape[0] * future.shape[1]} heads of all layers" in told(
        story
    )
    assert f"in toy a row puts {future.sum() / rows:.3f} there on average" in told(story)
    assert f"{future.sum() / rows:.2f} is on later words in toy; 0.00 in toy-decoder" in story.title


def test_the_last_word_changes_the_encoder_and_not_the_decoder(story: Story) -> None:
    """Largest change of weights and outputs at the words before; the bars give it word by word."""
    table = tables(story)[1]
    bars = story.picture[2]
    assert isinstance(bars, Bars)
    assert bars.labels == tuple(WORDS[:-1])
    apart = np.abs(by_hand.patterns("toy", WORDS) - by_hand.patterns("toy", OTHER))
    changes = [apart[:, :, row].max() for row in range(len(WORDS) - 1)]
    assert bars.series[0].values == pytest.approx(changes, abs=1e-5)
    assert min(changes) > 1e-4
    assert bars.series[1].values == (0.0,) * len(changes)
    first, second = (by_hand.read("toy", words)[-1].steps[-1][:-1] for words in (WORDS, OTHER))
    assert float(table.rows[0][3]) == pytest.approx(max(changes), abs=6e-4)
    assert float(table.rows[0][4]) == pytest.approx(np.abs(first - second).max(), abs=6e-4)
    assert table.rows[1][3:] == ("0", "0")
    assert "does not change at all" in told(story)
    assert f"one of their weights changes by {max(changes):.3f}" in told(story)


def test_the_row_step_by_step(story: Story) -> None:
    """Scores, minus infinity, exponentials, weights: those of the head that looks back most."""
    table = tables(story)[0]
    layers = by_hand.read("toy-decoder", WORDS)
    layer, head = head_that_looks(np.stack([found.weights for found in layers]), -1)
    assert f"head {layer}.{head}" in table.title
    scores = layers[layer].scores[head, mask.ROW]
    past = scores[: mask.ROW + 1]
    later = len(WORDS) - len(past)
    exponentials = np.exp(past - past.max())
    expected = (
        scores,
        [*past, *[-np.inf] * later],
        [*exponentials, *[0.0] * later],
        [*(exponentials / exponentials.sum()), *[0.0] * later],
        by_hand.softmax(scores),
    )
    assert table.columns[1:] == tuple(WORDS)
    for row, values in zip(table.rows, expected, strict=True):
        assert row[1:] == pytest.approx(list(values), abs=1e-4)
    assert table.rows[3][1:] == pytest.approx(layers[layer].weights[head, mask.ROW], abs=1e-5)
    lost = by_hand.softmax(scores)[mask.ROW + 1 :].sum()
    assert f"Without the mask {lost:.3f} of the weight of “{WORDS[mask.ROW]}”" in told(story)


def test_the_panels_are_the_heads_that_look_ahead_and_back(story: Story) -> None:
    """The encoder's whole, the decoder's with every later word masked and no other."""
    for panel, name, way in zip(story.picture, ("toy", "toy-decoder"), (1, -1), strict=False):
        assert isinstance(panel, Matrix)
        patterns = by_hand.patterns(name, WORDS)
        layer, head = head_that_looks(patterns, way)
        assert panel.title.startswith(f"{name}, head {layer}.{head}")
        assert panel.rows == panel.columns == tuple(WORDS)
        hidden = (
            np.triu(np.ones_like(panel.values, dtype=bool), k=1)
            if way == -1
            else np.zeros((6, 6), dtype=bool)
        )
        assert np.array_equal(np.isnan(panel.values), hidden)
        assert panel.values[~hidden] == pytest.approx(patterns[layer, head][~hidden], abs=1e-5)


def test_both_receipts_are_shown(story: Story) -> None:
    """Each model was verified."""
    assert story.receipt.count("verified: max difference") == 2
