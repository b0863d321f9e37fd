"""Heads that are alike, put together in clusters, from a matrix of distances such as `Divergences.distances`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

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
        """Both together."""
        return Divergences(total=self.total + other.total, n_rows=self.n_rows + other.n_rows)

    def mean(self) -> Float64[np.ndarray, "head head"]:
        """The mean divergence of a row, in nats, from 0 to ln 2; NaN without any row."""
        return self.total / self.n_rows

    def distances(self) -> Float64[np.ndarray, "head head"]:
        """The Jensen-Shannon distances, the square roots of the mean divergences, by which heads are grouped.

        The root of the divergence is a metric (Endres and Schindelin 2003), and so is the root of a mean of squares.
        """
        far: Float64[np.ndarray, "head head"] = np.sqrt(self.mean())
        return far


def cluster(distances: Distances) -> Linkage:
    """Return the tree of heads by average linkage (UPGMA: Sokal and Michener 1958)."""
    from scipy.cluster.hierarchy import average
    from scipy.spatial.distance import squareform

    if len(distances) == 1:  # scipy makes no tree of one head
        return np.empty((0, 4))
    tree: Linkage = average(squareform(distances, checks=False))
    return tree


def cut(tree: Linkage, n: int) -> Int64[np.ndarray, " head"]:
    """Return the cluster of each head, of `n`, numbered by their first heads."""
    if len(tree) == 0:
        return np.zeros(1, dtype=np.int64)
    from scipy.cluster.hierarchy import cut_tree

    found: Int64[np.ndarray, " head"] = cut_tree(tree, n_clusters=n)[:, 0]
    return found
