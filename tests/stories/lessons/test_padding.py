"""The demo of padding: masked, the sentence is read as if alone; without the mask it is not."""

from __future__ import annotations

import numpy as np
import pytest

from attnviz.stories.common import words_of
from attnviz.stories.lessons import padding
from attnviz.stories.record import Bars, Matrix, Story
from tests.stories.lessons import by_hand
from tests.stories.parts import panels, tables

WORDS = words_of(padding.SHORT)
N = len(WORDS)


def padded() -> list[str]:
    """The sentence with its padding, the first word of the vocabulary, whose vector is all zeros."""
    weights, card = by_hand.open_model("toy")
    assert not weights["embedding.table.weight"][0].any()
    return [*WORDS, *[card["source"][0]] * (len(words_of(padding.LONG)) - N)]  # type: ignore[index]


def test_attention(story: Story) -> None:
    """With the mask the weights of the sentence alone; without it those of padding read as words."""
    alone = by_hand.patterns("toy", WORDS)
    unmasked = by_hand.patterns("toy", padded())[:, :, :N]
    on_padding = unmasked[..., N:].sum(axis=-1)
    head = np.unravel_index(on_padding.mean(axis=-1).argmax(), on_padding.shape[:2])
    first, second = panels(story, Matrix)
    assert first.values[:, :N] == pytest.approx(alone[head], abs=1e-5)
    assert np.isnan(first.values[:, N:]).all()
    assert second.values == pytest.approx(unmasked[head], abs=1e-5)
    shares = [f"{100 * share:.1f}%" for share in (on_padding.mean(), on_padding.max())]
    masked_row, unmasked_row = tables(story)[0].rows
    assert list(masked_row[1:3]) == ["0.0%", "0.0%"]
    assert list(unmasked_row[1:3]) == shares
    assert f"Without the mask, {shares[0]} of the attention goes to padding" in story.title


def test_vectors(story: Story) -> None:
    """The change of each word's last vector, as a share of its length; masked, only rounding."""
    alone, unmasked = (by_hand.read("toy", w)[-1].steps[-1][:N] for w in (WORDS, padded()))
    changes = np.linalg.norm(unmasked - alone, axis=1) / np.linalg.norm(alone, axis=1)
    (bars,) = panels(story, Bars)
    assert max(bars.series[0].values) < 1e-5
    assert bars.series[1].values == pytest.approx(changes, abs=1e-4)
    assert f"change by {100 * changes.mean():.1f}% of their length" in story.title
    assert changes.mean() > 0.05
