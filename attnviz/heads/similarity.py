"""Heads that are alike, put together: clusters, and a map in two dimensions. Numbers from a matrix of distances.

The distances are best those of `Divergences.distances`, the roots of the mean divergences: a metric, which points of
some space have. Nothing here needs scipy: importing it costs every start a second.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

from attnviz.errors import InputError, SelectionError

Distances = Float64[np.ndarray, "head head"]
Linkage = Float64[np.ndarray, "merge 4"]
"""A tree of merges as scipy writes it: the two clusters merged, their distance, the number of heads in the new cluster.

Numbers below the number of heads are heads; merge k makes the cluster of number heads + k.
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Divergences:
    """The divergences of all pairs of heads, summed over rows: sums of parts add up to the sum of the whole."""

    total: Float64[np.ndarray, "head head"]  # the sum over rows, in nats
    n_rows: int  # how many rows there were

    def __add__(self, other: Divergences) -> Divergences:
        """Both together. Raises InputError: they are not of as many heads."""
        if self.total.shape != other.total.shape:
            raise InputError(
                f"similarities of {len(self.total)} heads and of {len(other.total)} heads cannot be added: two models"
            )
        return Divergences(total=self.total + other.total, n_rows=self.n_rows + other.n_rows)

    def mean(self) -> Float64[np.ndarray, "head head"]:
        """The mean divergence of a row, in nats, from 0 to ln 2. Raises InputError: there is no row."""
        if self.n_rows == 0:
            raise InputError("there is no row to compare heads by: no sentence is left")
        return self.total / self.n_rows

    def distances(self) -> Float64[np.ndarray, "head head"]:
        """The Jensen-Shannon distance, the square root of the mean divergence: what heads are grouped and drawn by.

        The root of the divergence is a metric (Endres and Schindelin 2003) and a distance between points of some space
        (Fuglede and Topsoe 2004), and so is the root of a mean of its squares: groups and pictures may rely on that.
        Raises InputError: there is no row.
        """
        far: Float64[np.ndarray, "head head"] = np.sqrt(self.mean())
        return far


def cluster(distances: Distances) -> Linkage:
    """The tree of heads by average linkage (UPGMA: Sokal and Michener 1958).

    The two nearest clusters are merged, again and again; two clusters are as far apart as their heads are in the mean.
    Of equally near pairs the one whose first heads have the lowest numbers is merged first. Raises InputError: no
    distances: of no head, not symmetric, negative, not finite, or not 0 from a head to itself.
    """
    _check(distances)
    n = len(distances)
    far = distances.copy()
    np.fill_diagonal(far, np.inf)
    number, size = np.arange(n), np.ones(n)
    tree = np.empty((max(n - 1, 0), 4))
    for merge in range(n - 1):
        one, other = divmod(int(far.argmin()), n)
        first, second = sorted((number[one], number[other]))
        tree[merge] = first, second, far[one, other], size[one] + size[other]
        joined = (size[one] * far[one] + size[other] * far[other]) / (size[one] + size[other])
        far[one], far[:, one] = joined, joined
        far[other] = far[:, other] = far[one, one] = np.inf
        number[one] = n + merge
        size[one] += size[other]
    return tree


def cut(tree: Linkage, n: int) -> Int64[np.ndarray, " head"]:
    """The cluster of each head, of `n`, numbered by first heads. Raises SelectionError: more than heads, or none."""
    n_heads = len(tree) + 1
    if not 1 <= n <= n_heads:
        raise SelectionError(f"{n_heads} heads cannot make {n} clusters: choose 1 to {n_heads}")
    members = _members(tree[: n_heads - n], n_heads)
    found = np.empty(n_heads, dtype=np.int64)
    for index, heads in enumerate(sorted(members.values(), key=min)):
        found[heads] = index
    return found


def leaves(tree: Linkage) -> Int64[np.ndarray, " head"]:
    """The heads in the order in which the tree is drawn, so that no two branches cross."""
    (order,) = _members(tree, len(tree) + 1).values()
    return np.array(order, dtype=np.int64)


def _members(tree: Linkage, n_heads: int) -> dict[int, list[int]]:
    members = {head: [head] for head in range(n_heads)}
    for merge, (one, other, _, _) in enumerate(tree):
        members[n_heads + merge] = members.pop(int(one)) + members.pop(int(other))
    return members


def scaled_to_two(
    distances: Distances,
) -> tuple[Float64[np.ndarray, "head 2"], tuple[float, float]]:
    """Heads on two axes so that their distances are kept as well as two axes can: classical scaling (Torgerson 1952).

    A point for each, in the unit of the distances, and of the squared distances how much each axis keeps, from 0 to 1.
    The squared distances, centred by row and column, are products of points; the two largest eigenvalues are the axes.
    An axis points to the side of its farthest point, so that the same heads give the same picture each time. Raises
    InputError: no distances, as for `cluster`.
    """
    _check(distances)
    n = len(distances)
    squared = distances**2
    across = squared.mean(0)
    products = -(squared - across - across[:, None] + across.mean()) / 2
    values, vectors = np.linalg.eigh(products)
    # Distances that no points have give negative values: they count as what is not kept.
    whole = float(np.abs(values).sum())
    points, shares = np.zeros((n, 2)), [1.0, 0.0]
    for axis in range(min(2, n)):
        kept = max(float(values[-1 - axis]), 0.0)
        vector = vectors[:, -1 - axis]
        # Rounding must not choose between two points that are equally far.
        farthest = int(np.flatnonzero(np.abs(vector) >= np.abs(vector).max() * (1 - 1e-9))[0])
        points[:, axis] = vector * np.sign(vector[farthest]) * np.sqrt(kept)
        if whole > 0:
            shares[axis] = kept / whole
    return points, (shares[0], shares[1])


def _check(distances: Distances) -> None:
    if len(distances) == 0:
        raise InputError("there are no heads to compare")
    if not np.isfinite(distances).all() or (distances < 0).any():
        raise InputError("distances of heads must be finite and not negative")
    if not np.allclose(distances, distances.T) or np.abs(distances.diagonal()).max() > 0:
        raise InputError(
            "distances of heads must be the same both ways, and 0 from a head to itself"
        )
