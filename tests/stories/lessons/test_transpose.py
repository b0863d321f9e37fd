"""The demo of K transposed: the same dot products from rows and from columns, and Q K, which is none of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attnviz.stories.lessons import self_attention, transpose
from attnviz.stories.lessons.self_attention import WORDS
from attnviz.stories.record import Matrix, Story
from tests.stories.parts import tables


def by_hand(words: tuple[str, ...] = WORDS) -> tuple[np.ndarray, np.ndarray]:
    """Queries and keys from the model's weights, in float64."""
    head, x = self_attention.models()[0], self_attention.vectors(words)[0].double().numpy()
    made = []
    for projection in (head.query_projection, head.key_projection):
        weight, bias = (
            part.detach().double().numpy() for part in (projection.weight, projection.bias)
        )
        made.append(x @ weight.T + bias)
    return made[0], made[1]


def test_the_number_of_the_title(story: Story) -> None:
    """One product, added up by hand; both ways the same."""
    query, key = by_hand()
    score = sum(q * k for q, k in zip(query[1], key[3], strict=True))
    assert (
        story.title == f"q·k of “love” and “all”: {score:.3f} from K, {score:.3f} from K transposed"
    )


def test_the_panels(story: Story) -> None:
    """K, the same with rows and columns exchanged, every q · k, and the softmax of them over sqrt(d_k)."""
    query, key = by_hand()
    scores = query @ key.T
    weights = np.exp(scores / 5**0.5)
    expected = (key, key.T, scores, weights / weights.sum(axis=1, keepdims=True))
    for panel, values in zip(story.picture, expected, strict=True):
        assert isinstance(panel, Matrix)
        assert panel.values == pytest.approx(values, abs=1e-5)
        assert panel.values.shape == (len(panel.rows), len(panel.columns))


def test_rows_and_columns_give_the_same_bits() -> None:
    """Read from the transpose, written anew, each product is the same to the bit."""
    query, key = torch.randn(2, 7, 11, generator=torch.Generator().manual_seed(1))
    by_rows, by_columns, product = transpose.read_both_ways(query, key)
    assert torch.equal(by_rows, by_columns)
    assert torch.allclose(by_rows, product, atol=1e-5)


def test_without_the_transpose(story: Story) -> None:
    """Refused where the sizes differ; where they do not, other numbers, which are computed by hand here."""
    assert "mat1 and mat2 shapes cannot be multiplied (4x5 and 4x5)" in " ".join(
        map(str, story.parts)
    )
    table = tables(story)[1]
    query, key = by_hand(transpose.SQUARE)
    right = [sum(query[1, d] * key[word, d] for d in range(5)) for word in range(5)]
    wrong = [sum(query[1, i] * key[i, column] for i in range(5)) for column in range(5)]
    assert table.rows[0][1:] == pytest.approx(right, abs=1e-4)
    assert table.rows[1][1:] == pytest.approx(wrong, abs=1e-4)
    assert np.abs(np.subtract(right, wrong)).max() > 0.1
