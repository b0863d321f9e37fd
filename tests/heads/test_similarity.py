"""Clusters of heads: by hand, by the definition of average linkage, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from attnviz.heads.similarity import cluster, cut


def between(points: np.ndarray) -> np.ndarray:
    """The distances of points."""
    return np.asarray(np.linalg.norm(points[:, None] - points, axis=-1))


LINE = between(np.array([[0.0], [10.0], [1.0], [12.0], [2.5]]))
"""Heads 0, 2, 4 stand together, and 1, 3."""


def test_a_tree_by_hand() -> None:
    """0 and 2 first (1 apart), then 4 to them and 1 to 3 (2 apart), last by the mean of six distances."""
    tree = cluster(LINE)
    last = np.mean([10, 9, 7.5, 12, 11, 9.5])
    assert tree[:, 2].tolist() == pytest.approx([1, 2, 2, last])
    np.testing.assert_array_equal(cut(tree, 2), [0, 1, 0, 1, 0])
    np.testing.assert_array_equal(cut(tree, 5), [0, 1, 2, 3, 4])


def test_equal_heads_and_one_head() -> None:
    """No distance decides, and there is nothing to merge."""
    np.testing.assert_array_equal(cut(cluster(np.zeros((4, 4))), 1), [0] * 4)
    tree = cluster(np.zeros((1, 1)))
    assert tree.shape == (0, 4)
    np.testing.assert_array_equal(cut(tree, 1), [0])
