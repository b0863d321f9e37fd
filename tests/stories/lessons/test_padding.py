"""The demo of padding: masked, the sentence is read as if alone; without the mask it is not."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attnviz.stories.common import words_of
from attnviz.stories.lessons import padding as padding_story
from attnviz.stories.record import Bars, Matrix, Story
from tests.stories.lessons import models
from tests.stories.parts import panels, tables

WORDS = words_of(padding_story.SHORT)
N = len(WORDS)


@torch.inference_mode()
def unmasked() -> tuple[np.ndarray, np.ndarray]:
    """Return what `models.read` does for the sentence with its padding, which is read like words."""
    card, model = models.opened("toy")
    padding = [model.config.pad] * (len(words_of(padding_story.LONG)) - N)
    embedded = model.embedding(torch.tensor([[*card.source.encode(WORDS), *padding]]))
    vectors, weights, _ = model.encoder(embedded)
    return vectors[0].double().numpy(), torch.cat(weights).double().numpy()


def test_attention(story: Story) -> None:
    """With the mask the weights of the sentence alone; without it those of padding read as words."""
    alone = models.patterns("toy", WORDS)
    patterns = unmasked()[1][:, :, :N]
    on_padding = patterns[..., N:].sum(axis=-1)
    head = np.unravel_index(on_padding.mean(axis=-1).argmax(), on_padding.shape[:2])
    first, second = panels(story, Matrix)
    assert first.values[:, :N] == pytest.approx(alone[head], abs=1e-5)
    assert np.isnan(first.values[:, N:]).all()
    assert second.values == pytest.approx(patterns[head], abs=1e-5)
    shares = [f"{100 * share:.1f}%" for share in (on_padding.mean(), on_padding.max())]
    masked_row, unmasked_row = tables(story)[0].rows
    assert list(masked_row[1:3]) == ["0.0%", "0.0%"]
    assert list(unmasked_row[1:3]) == shares
    assert f"Without the mask, {shares[0]} of the attention goes to padding" in story.title


def test_vectors(story: Story) -> None:
    """The change of each word's last vector, as a share of its length; masked, only rounding."""
    alone, padded = models.read("toy", WORDS)[0], unmasked()[0][:N]
    changes = np.linalg.norm(padded - alone, axis=1) / np.linalg.norm(alone, axis=1)
    (bars,) = panels(story, Bars)
    assert max(bars.series[0].values) < 1e-5
    assert bars.series[1].values == pytest.approx(changes, abs=1e-4)
    assert f"change by {100 * changes.mean():.1f}% of their length" in story.title
    assert changes.mean() > 0.05
