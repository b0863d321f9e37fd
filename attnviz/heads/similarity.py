"""Heads that are alike, put together in clusters, from a matrix of distances such as `Divergences.distances`."""

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
    """Return the tree of heads by average linkage (UPGMA: Sokal and Michener 1958).

    Two clusters are as far apart as their heads are in the mean. Raises InputError: no distances: of no head, not
    symmetric, negative, not finite, or not 0 from a head to itself.
    """
    from scipy.cluster.hierarchy import average
    from scipy.spatial.distance import squareform

    _check(distances)
    if len(distances) == 1:  # scipy makes no tree of one head
        return np.empty((0, 4))
    tree: Linkage = average(squareform(distances, checks=False))
    return tree


def cut(tree: Linkage, n: int) -> Int64[np.ndarray, " head"]:
    """Return the cluster of each head, of `n`, numbered by first heads. Raises SelectionError: more than heads."""
    n_heads = len(tree) + 1
    if not 1 <= n <= n_heads:
        raise SelectionError(f"{n_heads} heads cannot make {n} clusters: choose 1 to {n_heads}")
    if n_heads == 1:
        return np.zeros(1, dtype=np.int64)
    from scipy.cluster.hierarchy import cut_tree

    found: Int64[np.ndarray, " head"] = cut_tree(tree, n_clusters=n)[:, 0]
    return found


def _check(distances: Distances) -> None:
    if len(distances) == 0:
        raise InputError("there are no heads to compare")
    if not np.isfinite(distances).all() or (distances < 0).any():
        raise InputError("distances of heads must be finite and not negative")
    if not np.allclose(distances, distances.T) or np.abs(distances.diagonal()).max() > 0:
        raise InputError(
            "distances of heads must be the same both ways, and 0 from a head to itself"
        )
