"""Clusters of heads and their map: against scipy, against distances that are known, and what must always hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform

from attnviz.errors import InputError, SelectionError
from attnviz.heads.similarity import cluster, cut, leaves, scaled_to_two


def between(points: np.ndarray) -> np.ndarray:
    """The distances of points."""
    return np.asarray(np.linalg.norm(points[:, None] - points, axis=-1))


def some(seed: int, n: int, n_axes: int = 5) -> np.ndarray:
    """Distances of random points: no two are equal."""
    return between(np.random.default_rng(seed).normal(size=(n, n_axes)))


LINE = between(np.array([[0.0], [10.0], [1.0], [12.0], [2.5]]))
"""Heads 0, 2, 4 stand together, and 1, 3."""


@given(seed=st.integers(0, 10_000), n=st.integers(2, 40))
def test_it_is_scipys_tree(seed: int, n: int) -> None:
    """Average linkage, its order of drawing and its cuts are scipy's."""
    far = some(seed, n)
    tree = cluster(far)
    np.testing.assert_allclose(
        tree, hierarchy.linkage(squareform(far, checks=False), method="average"), atol=1e-12
    )
    np.testing.assert_array_equal(leaves(tree), hierarchy.leaves_list(tree))
    for count in range(1, n + 1):
        found = cut(tree, count)
        assert len(set(found.tolist())) == count
        expected = hierarchy.fcluster(tree, count, criterion="maxclust")
        np.testing.assert_array_equal(found[:, None] == found, expected[:, None] == expected)


def test_a_tree_of_many_heads_is_scipys() -> None:
    """144 heads."""
    far = some(3, 144)
    np.testing.assert_allclose(
        cluster(far), hierarchy.linkage(squareform(far, checks=False), "average"), atol=1e-12
    )


def test_a_tree_by_hand() -> None:
    """0 and 2 first (1 apart), then 4 to them and 1 to 3 (2: head 0 comes first), last by the mean of six distances."""
    tree = cluster(LINE)
    last = np.mean([10, 9, 7.5, 12, 11, 9.5])
    np.testing.assert_allclose(
        tree, np.array([[0, 2, 1, 2], [4, 5, 2, 3], [1, 3, 2, 2], [6, 7, last, 5]])
    )
    np.testing.assert_array_equal(cut(tree, 2), [0, 1, 0, 1, 0])
    np.testing.assert_array_equal(cut(tree, 4), [0, 1, 0, 2, 3])
    np.testing.assert_array_equal(cut(tree, 5), [0, 1, 2, 3, 4])
    np.testing.assert_array_equal(leaves(tree), [4, 0, 2, 1, 3])


def test_equal_heads_are_merged_in_their_order() -> None:
    """No distance decides: the lowest numbers come first, the same each time, and the tree is whole."""
    tree = cluster(np.zeros((4, 4)))
    np.testing.assert_array_equal(tree, [[0, 1, 0, 2], [2, 4, 0, 3], [3, 5, 0, 4]])
    assert hierarchy.is_valid_linkage(tree)
    np.testing.assert_array_equal(cut(tree, 1), [0] * 4)


def test_one_head() -> None:
    """It is a cluster, a leaf and a point."""
    alone = np.zeros((1, 1))
    tree = cluster(alone)
    assert tree.shape == (0, 4)
    np.testing.assert_array_equal(cut(tree, 1), [0])
    np.testing.assert_array_equal(leaves(tree), [0])
    points, shares = scaled_to_two(alone)
    np.testing.assert_array_equal(points, [[0, 0]])
    assert shares == (1.0, 0.0)


def test_cluster_leaves_its_distances_alone() -> None:
    """What it was given is what it was."""
    far = some(1, 6)
    before = far.copy()
    cluster(far)
    scaled_to_two(far)
    np.testing.assert_array_equal(far, before)


@pytest.mark.parametrize("n", [0, 6])
def test_a_cut_that_cannot_be(n: int) -> None:
    """Too many clusters, or none."""
    with pytest.raises(SelectionError, match="1 to 5"):
        cut(cluster(LINE), n)


@pytest.mark.parametrize(
    ("distances", "said"),
    [
        (np.zeros((0, 0)), "no heads"),
        (np.array([[0, np.nan], [np.nan, 0]]), "finite"),
        (np.array([[0, -1.0], [-1.0, 0]]), "not negative"),
        (np.array([[0, 1.0], [2.0, 0]]), "both ways"),
        (np.array([[1.0, 1.0], [1.0, 0]]), "to itself"),
    ],
)
def test_what_is_no_distance(distances: np.ndarray, said: str) -> None:
    """Refused in words, by both."""
    for measure in (cluster, scaled_to_two):
        with pytest.raises(InputError, match=said):
            measure(distances)


@given(seed=st.integers(0, 10_000), n=st.integers(3, 20))
def test_points_of_a_plane_are_found_again(seed: int, n: int) -> None:
    """Distances of points on two axes are kept whole, and shares say so; the first axis keeps most."""
    far = some(seed, n, 2)
    points, shares = scaled_to_two(far)
    np.testing.assert_allclose(between(points), far, atol=1e-6)
    assert sum(shares) == pytest.approx(1)
    assert shares[0] >= shares[1] >= 0
    np.testing.assert_allclose(points.mean(0), 0, atol=1e-9)


@given(seed=st.integers(0, 10_000), n=st.integers(4, 20))
def test_shares_are_of_the_squared_distances(seed: int, n: int) -> None:
    """What an axis keeps is the sum of its squared distances by the sum of all."""
    far = some(seed, n)
    points, shares = scaled_to_two(far)
    for axis, share in enumerate(shares):
        assert share == pytest.approx((between(points[:, [axis]]) ** 2).sum() / (far**2).sum())
    assert sum(shares) < 1


@given(seed=st.integers(0, 10_000), order=st.permutations(range(7)))
def test_the_map_does_not_depend_on_the_order(seed: int, order: list[int]) -> None:
    """The same heads in another order stand on the same points: signs are chosen by the points themselves."""
    far = some(seed, 7, 3)
    (points, _), (turned, _) = scaled_to_two(far), scaled_to_two(far[np.ix_(order, order)])
    np.testing.assert_allclose(turned, points[order], atol=1e-6)
    assert (points.max(0) >= -points.min(0) - 1e-9).all()


def test_a_line_and_no_distance() -> None:
    """Heads on a line keep to the first axis; heads that are all equal stand on one point, and nothing is lost."""
    points, shares = scaled_to_two(LINE)
    np.testing.assert_allclose(np.abs(points[:, 0] - points[0, 0]), LINE[0], atol=1e-9)
    np.testing.assert_allclose(points[:, 1], 0, atol=1e-6)
    assert shares == pytest.approx((1, 0))
    points, shares = scaled_to_two(np.zeros((5, 5)))
    np.testing.assert_array_equal(points, np.zeros((5, 2)))
    assert shares == (1.0, 0.0)


def test_distances_that_no_points_have() -> None:
    """They break the triangle: what negative eigenvalues hold counts as lost, and no root of them is drawn."""
    far = between(np.random.default_rng(0).normal(size=(6, 2)))
    far[0, 1] = far[1, 0] = 9.0
    points, shares = scaled_to_two(far)
    assert np.isfinite(points).all()
    assert sum(shares) < 1
