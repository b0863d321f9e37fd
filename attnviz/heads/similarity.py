"""Clusters of similar heads, from a matrix of distances such as `Divergences.distances`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

Distances = Float64[np.ndarray, "head head"]
Linkage = Float64[np.ndarray, "merge 4"]
"""A tree of merges in the form of scipy: the two clusters, their distance, the number of heads in the new cluster.

Clusters 0 to heads - 1 are the single heads; merge k makes cluster heads + k.
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Divergences:
    """The divergences of all pairs of heads, summed over rows, so that the sums of parts of a corpus add up."""

    total: Float64[np.ndarray, "head head"]  # the sum over rows, in nats
    n_rows: int  # number of rows

    def __add__(self, other: Divergences) -> Divergences:
        """Add the sums of two parts of a corpus."""
        return Divergences(total=self.total + other.total, n_rows=self.n_rows + other.n_rows)

    def mean(self) -> Float64[np.ndarray, "head head"]:
        """Return the mean divergence per row, in nats, from 0 to ln 2; NaN if there is no row."""
        return self.total / self.n_rows

    def distances(self) -> Float64[np.ndarray, "head head"]:
        """Return the Jensen-Shannon distances, the square roots of the mean divergences, for clustering.

        The root of the divergence is a metric (Endres and Schindelin 2003), and so is the root of a mean of squares.
        """
        distances: Float64[np.ndarray, "head head"] = np.sqrt(self.mean())
        return distances


def cluster(distances: Distances) -> Linkage:
    """Return the tree of heads by average linkage (UPGMA: Sokal and Michener 1958)."""
    from scipy.cluster.hierarchy import average
    from scipy.spatial.distance import squareform

    if len(distances) == 1:  # scipy cannot cluster one head
        return np.empty((0, 4))
    tree: Linkage = average(squareform(distances, checks=False))
    return tree


def cut(tree: Linkage, n: int) -> Int64[np.ndarray, " head"]:
    """Cut the tree into `n` clusters and return the cluster of each head, numbered by their first heads."""
    if len(tree) == 0:
        return np.zeros(1, dtype=np.int64)
    from scipy.cluster.hierarchy import cut_tree

    clusters: Int64[np.ndarray, " head"] = cut_tree(tree, n_clusters=n)[:, 0]
    return clusters
