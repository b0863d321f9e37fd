"""Sums over sentences, and the means with 95% intervals that follow from them.

A sentence gives each measure a sum over its rows and a count of them; the mean of a corpus is the sum of the sums over
the sum of the counts. Sums of different parts of a corpus add up.

For the interval, the sentences are divided into `GROUPS` groups by a hash of their words. The interval therefore
depends neither on the order of sentences nor on how they are split into parts. Copies of a sentence are in one group,
so they make no interval narrower. The mean is computed again without each group in turn (the jackknife); the spread and
the skewness of these means give the interval.

Several methods were compared on samples of 5 to 400 sentences of real text (`tests/benchmarks/coverage.py`). The
percentiles of 400 Poisson bootstraps contain the true mean least often. Student's t of the jackknife is right if all
sentences have similar weight. Logarithms or log odds improve it little; a correction for skewness improves it most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from typing import TypeVar

import numpy as np
from jaxtyping import Float, Float64, Int64, Real

from attnviz.heads.record import Estimates

_Number = TypeVar("_Number", float, np.ndarray)
GROUPS = 32  # number of groups of sentences for the jackknife
Z = 1.959963984540054  # the normal quantile of a 95% interval
LEVEL = 0.95  # how often an interval should contain the true mean


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tally:
    """Sums and counts over sentences: first of the whole corpus, then of each group."""

    # the sum of each measured number; its axes may be longer than those of `counts`
    sums: Float64[np.ndarray, "group ..."]
    # the number of rows counted for it; broadcasts against `sums`
    counts: Float64[np.ndarray, "group ..."]
    n_sentences: int = 0  # the number of sentences added

    def merge(self, other: Tally) -> Tally:
        """Add two tallies: the result equals one tally of all sentences, up to rounding."""
        n = self.n_sentences + other.n_sentences
        return Tally(sums=self.sums + other.sums, counts=self.counts + other.counts, n_sentences=n)

    def estimate(self) -> Estimates:
        """Return the means with their intervals, clipped at 0 because no measure is negative."""
        estimates = interval(left_out(self.sums, self.counts), effective(self.counts))
        return Estimates.of(estimates.value, np.maximum(estimates.low, 0.0), estimates.high)


def tally_sentences(
    sums: Float[np.ndarray, "sentence ..."],
    counts: Float[np.ndarray, "sentence ..."],
    keys: Sequence[int],
) -> Tally:
    """Return the tally of some sentences; `keys` are their hashes (`key_of`), which choose the group."""
    groups = np.array([key % GROUPS for key in keys], dtype=np.int64)
    return Tally(
        sums=sum_groups(sums, groups), counts=sum_groups(counts, groups), n_sentences=len(keys)
    )


def sum_groups(
    values: Real[np.ndarray, "some ..."], groups: Int64[np.ndarray, " some"]
) -> Float64[np.ndarray, "group ..."]:
    """Return the sum of all values, then the sum of each group; integers stay exact."""
    membership = np.concatenate([np.ones((1, len(groups))), groups == np.arange(GROUPS)[:, None]])
    return np.asarray(
        (membership @ values.reshape(len(groups), -1)).reshape(GROUPS + 1, *values.shape[1:])
    )


def left_out(
    sums: Real[np.ndarray, "group ..."], counts: Real[np.ndarray, "group ..."]
) -> Float64[np.ndarray, "group ..."]:
    """Return the mean of all groups, then the mean without each group.

    The mean without a group is NaN if that group has no row, or if no row is left without it.
    """
    # Row 0 stays the total; row g becomes the total without group g.
    rest, rows = sums.astype(np.float64), counts.astype(np.float64)
    rest[1:], rows[1:] = sums[:1] - sums[1:], np.where(counts[1:] != 0, counts[:1] - counts[1:], 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(rows > 0, rest / rows, np.nan))


def interval(
    means: Float64[np.ndarray, "group ..."], sentences: Float64[np.ndarray, " ..."]
) -> Estimates:
    """Return a mean with its 95% interval, from the means of all sentences and without each group (`left_out`).

    It is the interval of the jackknife (Tukey 1958) with Student's t, corrected for the skewness of the groups (Hall
    1992, "On the removal of skewness by transformation"). The degrees of freedom are the effective number of
    `sentences` (see `effective`), at most the number of groups, minus 1. A measure that was counted in only one group
    has no interval, because its spread is unknown.
    """
    value, (n, deviations) = means[0], _deviations(means)
    with np.errstate(invalid="ignore", divide="ignore"):
        squares = (deviations**2).sum(axis=0)
        error = np.sqrt((n - 1) / n * squares)
        skewness = np.nan_to_num((deviations**3).sum(axis=0) / n / (squares / n) ** 1.5)
    freedom = np.broadcast_to(np.nan_to_num(np.minimum(sentences, n)), n.shape)
    t = np.array(
        [student(max(int(degrees), 1)) for degrees in np.rint(freedom - 1).ravel()]
    ).reshape(n.shape)
    low, high = (value - error * _unskew(side * t, skewness, np.maximum(n, 1)) for side in (1, -1))
    has_interval = n > 1
    low = np.where(has_interval, np.minimum(low, value), np.nan)
    high = np.where(has_interval, np.maximum(high, value), np.nan)
    return Estimates.of(value, low, high)


def _deviations(
    means: Float64[np.ndarray, "group ..."],
) -> tuple[Int64[np.ndarray, " ..."], Float64[np.ndarray, "some ..."]]:
    """Return the number of groups that have a row, and how far their means (`left_out`) are from the mean of these."""
    is_known = np.isfinite(means[1:])
    n = np.asarray(is_known.sum(axis=0))
    middle = np.where(is_known, means[1:], 0.0).sum(axis=0) / np.maximum(n, 1)
    return n, np.where(is_known, middle - means[1:], 0.0)


def _unskew(
    t: Float64[np.ndarray, " ..."],
    skewness: Float64[np.ndarray, " ..."],
    n: Int64[np.ndarray, " ..."],
) -> Float64[np.ndarray, " ..."]:
    """Return the inverse of Hall's transformation at t, which corrects for skewness; t itself if nothing is skewed."""
    root, is_symmetric = np.sqrt(n), np.abs(skewness) < 1e-6
    safe_skewness = np.where(is_symmetric, 1.0, skewness)
    transformed = np.cbrt(1 + safe_skewness * (t / root - safe_skewness / (6 * n))) - 1
    return np.asarray(np.where(is_symmetric, t, 3 * root / safe_skewness * transformed))


@cache
def student(freedom: int, tail: float = (1 - LEVEL) / 2) -> float:
    """Return the value that Student's t with `freedom` degrees of freedom exceeds with probability `tail`."""
    # This is scipy.stats.t.isf, whose import would take half a second longer.
    from scipy.special import stdtrit

    return -float(stdtrit(freedom, tail))


def effective(counts: Real[np.ndarray, "group ..."]) -> Float64[np.ndarray, " ..."]:
    """Return the effective number of groups of sentences behind a count; NaN if nothing was counted.

    It is the number of groups of equal size whose mean would vary as much (Kish 1965, "Survey Sampling"): the square of
    the sum of the counts over the sum of their squares. Copies of a sentence are in one group.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(
            counts[0].astype(np.float64) ** 2 / (counts[1:].astype(np.float64) ** 2).sum(axis=0)
        )


def share(hits: Real[np.ndarray, "group ..."], counts: Real[np.ndarray, "group ..."]) -> Estimates:
    """Return a proportion (hits over counts) with Wilson's interval for the effective number of cases.

    The cases of one sentence are not independent. The effective number is therefore the number of independent cases
    whose proportion would vary as much as it does between groups of sentences, at most the real number (Korn and
    Graubard 1998, "Confidence intervals for proportions with small expected number of positive counts"). Wilson's
    interval also holds if no group differs from another: ten hits out of ten may come from a proportion of 0.73.
    """
    means = left_out(hits, counts)
    value, (n, deviations) = means[0], _deviations(means)
    with np.errstate(invalid="ignore", divide="ignore"):
        n_independent = value * (1 - value) / ((n - 1) / n * (deviations**2).sum(axis=0))
        low, high = wilson(value, np.fmin(n_independent, counts[0]))
    return Estimates.of(value, np.clip(low, 0.0, value), np.clip(high, value, 1.0))


def wilson(share: _Number, n: _Number | int) -> tuple[_Number, _Number]:
    """Return both ends of the 95% interval of a proportion of n cases (Wilson 1927, "Probable Inference")."""
    middle = (share + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z / (1 + Z**2 / n) * (share * (1 - share) / n + Z**2 / (4 * n**2)) ** 0.5
    return middle - half, middle + half


def key_of(text: str) -> int:
    """Return a hash of a sentence, which depends on its words only."""
    return int.from_bytes(blake2b(repr((text, None)).encode(), digest_size=8).digest(), "little")
