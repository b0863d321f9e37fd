"""The demo of rotary positions: with them a score depends on the distance alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attnviz.stories.lessons import rotary
from attnviz.stories.record import Matrix, Story
from tests.stories.parts import tables


def complex_of(vector: torch.Tensor) -> np.ndarray:
    """Each pair of numbers as one complex number."""
    pairs = vector.numpy().reshape(-1, 2)
    made: np.ndarray = pairs[:, 0] + 1j * pairs[:, 1]
    return made


def speeds() -> np.ndarray:
    """Of each pair, in radians a position."""
    return np.array([10_000 ** (-2 * i / rotary.D) for i in range(rotary.D // 2)])


def test_rotation_is_a_product_of_complex_numbers() -> None:
    """Each pair times e^(i position speed)."""
    one, _, _ = rotary.two_words()
    turned = rotary.rotate(one.expand(rotary.N, rotary.D))
    for position in (0, 1, 7, rotary.N - 1):
        expected = complex_of(one) * np.exp(1j * position * speeds())
        assert complex_of(turned[position]) == pytest.approx(expected, abs=1e-12)


def test_it_is_the_rotation_of_llama() -> None:
    """The library's own, whose pairs are a number and the one half a vector further on."""
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

    one, other, _ = rotary.two_words()
    embedding = LlamaRotaryEmbedding(LlamaConfig(hidden_size=rotary.D, num_attention_heads=1))
    order = [*range(0, rotary.D, 2), *range(1, rotary.D, 2)]
    rows = [vector[order].float().expand(1, 1, rotary.N, rotary.D) for vector in (one, other)]
    cosine, sine = embedding(rows[0], torch.arange(rotary.N)[None])
    turned = apply_rotary_pos_emb(*rows, cosine, sine)
    scores = turned[0][0, 0] @ turned[1][0, 0].T / rotary.D**0.5
    assert torch.allclose(scores.double(), rotary.scores()["rotary"], atol=1e-4)


def test_scores_by_distance_alone(story: Story) -> None:
    """The score is the real part of a sum over pairs that has only the distance in it; with what is added it is not."""
    one, other, _ = rotary.two_words()
    found = rotary.scores()
    for m, n in ((0, 3), (10, 13), (5, 2), (23, 0)):
        pairs = complex_of(one) * complex_of(other).conj() * np.exp(1j * (m - n) * speeds())
        assert float(found["rotary"][m, n]) == pytest.approx(
            pairs.sum().real / rotary.D**0.5, abs=1e-12
        )
    assert rotary.spread(found["rotary"]) < 1e-12
    assert min(rotary.spread(found[way]) for way in ("sinusoidal", "learned")) > 1
    assert f"by {rotary.spread(found['sinusoidal']):.3f} if sinusoidal" in story.title


def test_what_is_shown(story: Story) -> None:
    """The table's rows are entries of the patterns, and the patterns are the scores."""
    angles, *panels = story.picture
    assert isinstance(angles, Matrix)
    assert angles.values == pytest.approx(
        np.cos(np.arange(len(angles.values))[:, None] * speeds()), abs=1e-12
    )
    for panel, row, values in zip(
        panels, tables(story)[1].rows, rotary.scores().values(), strict=True
    ):
        assert isinstance(panel, Matrix)
        assert panel.values == pytest.approx(values.numpy(), abs=0)
        assert row[1:-1] == tuple(values[start, start + rotary.DISTANCE] for start in rotary.STARTS)
