"""The demo of K transposed: the dot products by hand, in float64."""

from __future__ import annotations

import numpy as np
import pytest

from attnviz.stories.lessons import self_attention
from attnviz.stories.lessons.self_attention import WORDS
from attnviz.stories.record import Matrix, Story
from tests.stories.parts import panels, tables, told


def query_and_key() -> tuple[np.ndarray, np.ndarray]:
    """Queries and keys from the model's weights."""
    head, x = self_attention.random_models()[0], self_attention.embed(WORDS)[0].double().numpy()
    found = []
    for projection in (head.query_projection, head.key_projection):
        weight, bias = (p.detach().double().numpy() for p in (projection.weight, projection.bias))
        found.append(x @ weight.T + bias)
    return found[0], found[1]


def test_title(story: Story) -> None:
    """One dot product, both ways the same; all others to the bit."""
    query, key = query_and_key()
    score = sum(q * k for q, k in zip(query[1], key[3], strict=True))
    assert f"“love” and “all” is {score:.3f} from K and {score:.3f} from K^T" in story.title
    assert "16 dot products from rows and from columns differ by 0," in story.receipt
    row, column = tables(story)[0].rows
    assert row[1:] == column[1:] == pytest.approx(key[3], abs=1e-5)


def test_panels(story: Story) -> None:
    """K, its transpose and every score."""
    query, key = query_and_key()
    for panel, values in zip(panels(story, Matrix), (key, key.T, query @ key.T), strict=True):
        assert panel.values == pytest.approx(values, abs=1e-5)
        assert panel.values.shape == (len(panel.rows), len(panel.columns))


def test_without_the_transpose(story: Story) -> None:
    """The error is torch's own."""
    assert "mat1 and mat2 shapes cannot be multiplied (4x5 and 4x5)" in told(story)
