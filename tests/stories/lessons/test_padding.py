"""The demo of padding: masked, the sentence is read as if alone; without the mask it is not."""

from __future__ import annotations

import numpy as np
import pytest

from attnviz.stories.common import words_of
from attnviz.stories.lessons import padding
from attnviz.stories.record import Bars, Matrix, Story
from tests.stories.lessons import by_hand
from tests.stories.parts import tables

WORDS = words_of(padding.SHORT)
N_PADS = len(words_of(padding.LONG)) - len(WORDS)


def padded() -> list[str]:
    """The sentence with its padding: the first word of the vocabulary, whose vector is all zeros."""
    weights, card = by_hand.open_model("toy")
    vocabulary = card["source"]
    assert isinstance(vocabulary, list)
    assert not weights["embedding.table.weight"][0].any()
    return [*WORDS, *[vocabulary[0]] * N_PADS]


def test_the_patterns(story: Story) -> None:
    """With the mask those of the sentence alone, nothing on padding; without it those of padding read as words."""
    alone, wrong = (
        by_hand.patterns("toy", WORDS),
        by_hand.patterns("toy", padded())[:, :, : len(WORDS)],
    )
    on_padding = wrong[..., len(WORDS) :].sum(axis=-1)
    head = np.unravel_index(on_padding.mean(axis=-1).argmax(), on_padding.shape[:2])
    masked, forgotten, _ = story.picture
    assert isinstance(masked, Matrix)
    assert isinstance(forgotten, Matrix)
    assert masked.values[:, : len(WORDS)] == pytest.approx(alone[head], abs=1e-5)
    assert np.isnan(masked.values[:, len(WORDS) :]).all()
    assert forgotten.values == pytest.approx(wrong[head], abs=1e-5)
    assert masked.columns[len(WORDS) :] == (padding.PAD,) * N_PADS
    assert (
        f"without the mask {100 * on_padding.mean():.1f} % of a row's weight is on padding"
        in story.title
    )
    table = tables(story)[0]
    assert table.rows[0][1:3] == ("0.0 %", "0.0 %")
    assert table.rows[1][1:3] == (
        f"{100 * on_padding.mean():.1f} %",
        f"{100 * on_padding.max():.1f} %",
    )


def test_the_changes(story: Story) -> None:
    """Of each word's last vector, as a share of its length; masked, only rounding."""
    alone, wrong = (
        by_hand.read("toy", words)[-1].steps[-1][: len(WORDS)] for words in (WORDS, padded())
    )
    changes = np.linalg.norm(wrong - alone, axis=1) / np.linalg.norm(alone, axis=1)
    bars = story.picture[-1]
    assert isinstance(bars, Bars)
    assert max(bars.series[0].values) < 1e-5
    assert bars.series[1].values == pytest.approx(changes, abs=1e-4)
    assert changes.mean() > 0.05
    assert f"words change by {100 * changes.mean():.1f} %" in story.title


def test_hidden_words(story: Story) -> None:
    """One word of each sentence is hidden, and fewer are named right without the mask."""
    from attnviz.models.wholes import LanguageEncoder
    from attnviz.stories.common import open_model

    card, model = open_model("toy", LanguageEncoder)
    shown, places, words = hidden = padding.hidden_words(card.source, model.config)
    assert (shown == model.config.mask).sum(dim=1).tolist() == [1] * len(shown)
    right, wrong = (padding.accuracy(model, hidden, masked=way) for way in (True, False))
    vocabulary = list(card.source.words)
    hits = []
    for row, place, word in list(zip(shown.tolist(), places.tolist(), words.tolist(), strict=True))[
        :12
    ]:
        sentence = [vocabulary[number] for number in row if number]
        hits.append(by_hand.logits("toy", sentence, "word_projection")[place].argmax() == word)
    few = tuple(part[:12] for part in hidden)
    assert padding.accuracy(model, (few[0], few[1], few[2]), masked=True) == pytest.approx(
        np.mean(hits)
    )
    assert right > wrong
    told = " ".join(part for part in story.parts if isinstance(part, str))
    assert f"right in {100 * right:.1f} % with the mask, and in {100 * wrong:.1f} % without" in told
    assert story.receipt.startswith("the masked batch: verified: max difference")
    assert "without the mask: verified" in story.receipt
