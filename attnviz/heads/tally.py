"""Sums over sentences that merge, and what they say: means with their 95 % intervals.

A sentence gives each measure a sum over its rows and a count of them; the mean of a corpus is the sum of the sums over
the sum of the counts. For the interval the sentences are kept in `GROUPS` groups, drawn from their own words: neither
the order of sentences nor how they are split into parts changes it, and a sentence that comes twice is in one group, so
that copies make no interval narrower. The mean is taken again without each of the groups in turn (the jackknife); how
far these means lie apart, and how skewed, gives the interval.

What was tried, on samples of 5 to 400 sentences of real text (`tests/benchmarks/coverage.py` measures it): the
percentiles of 400 Poisson bootstraps hold the truth least often; Student's t of the jackknife is right where sentences
weigh alike; on the scale of logarithms or log odds it gains little; corrected for skewness it is right most often.
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
GROUPS = 32  # groups of sentences, so that it can be seen how far they differ
Z = 1.959963984540054  # the normal quantile of a 95 % interval
LEVEL = 0.95  # how often an interval should hold the truth


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tally:
    """Sums and counts over sentences: of the corpus first, then of each group."""

    # of each number measured; its last axis may be of another length than that of the counts' leading axes
    sums: Float64[np.ndarray, "group ..."]
    # how many rows were counted for it; broadcasts against `sums`
    counts: Float64[np.ndarray, "group ..."]
    n_sentences: int = 0  # how many sentences were added

    def merge(self, other: Tally) -> Tally:
        """Both together: exactly what one tally of all the sentences holds, but for the rounding of sums."""
        n = self.n_sentences + other.n_sentences
        return Tally(sums=self.sums + other.sums, counts=self.counts + other.counts, n_sentences=n)

    def estimate(self) -> Estimates:
        """Means and their intervals, none of which goes below 0, as nothing that is measured does."""
        found = interval(left_out(self.sums, self.counts), effective(self.counts))
        return Estimates.of(found.value, np.maximum(found.low, 0.0), found.high)


def tally_sentences(
    sums: Float[np.ndarray, "sentence ..."],
    counts: Float[np.ndarray, "sentence ..."],
    keys: Sequence[int],
) -> Tally:
    """A tally of some sentences."""
    groups = np.array([key % GROUPS for key in keys], dtype=np.int64)
    return Tally(
        sums=sum_groups(sums, groups), counts=sum_groups(counts, groups), n_sentences=len(keys)
    )


def sum_groups(
    values: Real[np.ndarray, "some ..."], groups: Int64[np.ndarray, " some"]
) -> Float64[np.ndarray, "group ..."]:
    """The sum of all, then that of each group; whole numbers stay exact."""
    chosen = np.concatenate([np.ones((1, len(groups))), groups == np.arange(GROUPS)[:, None]])
    return np.asarray(
        (chosen @ values.reshape(len(groups), -1)).reshape(GROUPS + 1, *values.shape[1:])
    )


def left_out(
    sums: Real[np.ndarray, "group ..."], counts: Real[np.ndarray, "group ..."]
) -> Float64[np.ndarray, "group ..."]:
    """The mean of all, then without each group; NaN without one that has no row, and where no row is left."""
    rest, rows = sums.astype(np.float64), counts.astype(np.float64)
    rest[1:], rows[1:] = sums[:1] - sums[1:], np.where(counts[1:] != 0, counts[:1] - counts[1:], 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(rows > 0, rest / rows, np.nan))


def interval(
    means: Float64[np.ndarray, "group ..."], sentences: Float64[np.ndarray, " ..."] | None = None
) -> Estimates:
    """A number with its interval, of what it comes to for all sentences and without each group.

    It is the jackknife's (Tukey 1958) with Student's t, of so many degrees of freedom as sentences count alike,
    less one, and with the skewness of the groups taken into account (Hall 1992, "On the removal of skewness by
    transformation"). What was counted in one group alone has no interval: nothing says how far another would
    differ. `sentences` says over how many groups what was counted is spread; None takes all that have any.
    """
    value, there = means[0], np.isfinite(means[1:])
    n = there.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        apart = np.where(there, np.where(there, means[1:], 0.0).sum(axis=0) / n - means[1:], 0.0)
        squares = (apart**2).sum(axis=0)
        error = np.sqrt((n - 1) / n * squares)
        skewness = np.nan_to_num((apart**3).sum(axis=0) / n / (squares / n) ** 1.5)
    freedom = np.broadcast_to(
        n if sentences is None else np.nan_to_num(np.minimum(sentences, n)), n.shape
    )
    t = np.array([student(max(int(one), 1)) for one in np.rint(freedom - 1).ravel()]).reshape(
        n.shape
    )
    low, high = (value - error * _unskew(side * t, skewness, np.maximum(n, 1)) for side in (1, -1))
    known = n > 1
    low = np.where(known, np.minimum(low, value), np.nan)
    high = np.where(known, np.maximum(high, value), np.nan)
    return Estimates.of(value, low, high)


def _unskew(
    t: Float64[np.ndarray, " ..."],
    skewness: Float64[np.ndarray, " ..."],
    n: Int64[np.ndarray, " ..."],
) -> Float64[np.ndarray, " ..."]:
    """Where Hall's transformation of Student's t comes to this; t itself where nothing is skewed."""
    root, even = np.sqrt(n), np.abs(skewness) < 1e-6
    bent = np.where(even, 1.0, skewness)
    turned = np.cbrt(1 + bent * (t / root - bent / (6 * n))) - 1
    return np.asarray(np.where(even, t, 3 * root / bent * turned))


@cache
def student(freedom: int, tail: float = (1 - LEVEL) / 2) -> float:
    """Return what Student's t of so many degrees of freedom exceeds with this probability."""
    # The same number as scipy.stats.t.isf, whose import takes half a second longer.
    from scipy.special import stdtrit

    return -float(stdtrit(freedom, tail))


def effective(counts: Real[np.ndarray, "group ..."]) -> Float64[np.ndarray, " ..."]:
    """Over how many groups of sentences what was counted is spread; NaN where nothing was. Copies are one sentence.

    It is as many as give a mean that varies as much where each counts alike (Kish 1965, "Survey Sampling"): the square
    of the sum over the sum of squares.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(
            counts[0].astype(np.float64) ** 2 / (counts[1:].astype(np.float64) ** 2).sum(axis=0)
        )


def share(hits: Real[np.ndarray, "group ..."], counts: Real[np.ndarray, "group ..."]) -> Estimates:
    """Of things that are so or not, how many are: with Wilson's interval for as many as speak for themselves.

    Those of one sentence go together: so many count as give a share that varies as much as it does from group to group
    of sentences (Korn and Graubard 1998, "Confidence intervals for proportions with small expected number of positive
    counts"), never more than there are. Where ten are all so no group differs from another, and Wilson's interval says
    that ten out of ten may well come from a share of 0.73.
    """
    means = left_out(hits, counts)
    value, there = means[0], np.isfinite(means[1:])
    n = np.maximum(there.sum(axis=0), 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        apart = np.where(there, np.where(there, means[1:], 0.0).sum(axis=0) / n - means[1:], 0.0)
        alone = value * (1 - value) / ((n - 1) / n * (apart**2).sum(axis=0))
        low, high = wilson(value, np.fmin(alone, counts[0]))
    return Estimates.of(value, np.clip(low, 0.0, value), np.clip(high, value, 1.0))


def wilson(share: _Number, n: _Number | int) -> tuple[_Number, _Number]:
    """Both ends of the 95 % interval of a share of n things (Wilson 1927, "Probable Inference")."""
    middle = (share + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z / (1 + Z**2 / n) * (share * (1 - share) / n + Z**2 / (4 * n**2)) ** 0.5
    return middle - half, middle + half


def key_of(text: str, pair: str | None = None) -> int:
    """A number for a sentence, from its words alone."""
    return int.from_bytes(blake2b(repr((text, pair)).encode(), digest_size=8).digest(), "little")
