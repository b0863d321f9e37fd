"""Sums over sentences that merge, and what they say: means with their 95 % intervals.

A sentence gives each measure a sum over its rows and a count of them; the mean of a corpus is the sum of the sums over
the sum of the counts. For the interval the corpus is resampled while it streams by: in each of `REPLICATES` replicates
a sentence counts as often as a Poisson variable of mean 1 says, which for many sentences is drawing as many with
replacement, and needs no sentence to be kept (Hanley and MacGibbon 2006, "Creating non-parametric bootstrap samples
using Poisson frequencies"; Chamandy et al. 2012). How often is drawn from a sentence's own words: neither the order of
sentences nor how they are split into parts changes it. A sentence that comes twice is drawn twice alike, so that copies
make no interval narrower.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from jaxtyping import Float64, Real

from attnviz.heads.record import Estimates

REPLICATES = 400
"""How often a corpus is resampled."""

Z = 1.959963984540054
"""The normal quantile of a 95 % interval."""

LEVEL = 0.95
"""How much of the replicates an interval holds."""

SINGLE = 0.25
"""Where a larger share of the replicates than this counts no row, one sentence alone was counted, or copies of it.

One sentence is missing from a share of exp(-1) = 0.37 of the replicates, two different ones from 0.14."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tally:
    """Sums and counts over sentences: of the corpus first, then of each replicate.

    Attributes:
        sums: of each number measured; its last axis may be of another length than that of the counts' leading axes.
        counts: how many rows were counted for it; broadcasts against `sums`.
        n_sentences: how many sentences were added.
    """

    sums: Float64[np.ndarray, "replicate ..."]
    counts: Float64[np.ndarray, "replicate ..."]
    n_sentences: int = 0

    def merged(self, other: Tally) -> Tally:
        """Both together: exactly what one tally of all the sentences holds, but for the rounding of sums."""
        return Tally(
            sums=self.sums + other.sums,
            counts=self.counts + other.counts,
            n_sentences=self.n_sentences + other.n_sentences,
        )

    def estimate(self) -> Estimates:
        """What the sums say."""
        return estimate(self.sums, self.counts)


def tallied(
    sums: Float64[np.ndarray, "sentence ..."],
    counts: Float64[np.ndarray, "sentence ..."],
    keys: Sequence[int],
    replicates: int = REPLICATES,
) -> Tally:
    """A tally of some sentences.

    Args:
        sums: of each sentence.
        counts: likewise.
        keys: of each sentence, as `key_of` makes it.
        replicates: how often they are resampled.
    """
    weights = frequencies(keys, replicates)  # (replicate, sentence)
    added = [
        (weights @ values.reshape(len(keys), -1)).reshape(replicates + 1, *values.shape[1:])
        for values in (sums, counts)
    ]
    return Tally(sums=added[0], counts=added[1], n_sentences=len(keys))


def estimate(sums: Float64[np.ndarray, "replicate ..."], counts: Float64[np.ndarray, "replicate ..."]) -> Estimates:
    """Means and their intervals, from the sums of the corpus and of its replicates.

    What was counted in one sentence alone has no interval: drawn as often as may be, its mean stays what it is.
    """
    with np.errstate(invalid="ignore", divide="ignore"):  # nothing counted: NaN, which says so
        means = sums / counts
    means[~np.isfinite(means)] = np.nan
    low, high = np.full_like(means[0], np.nan), np.full_like(means[0], np.nan)
    missing = np.isnan(means[1:])
    there = missing.mean(axis=0) < SINGLE
    if there.any():
        tails = (1 - LEVEL) / 2
        flat = means[1:].reshape(len(means) - 1, -1)[:, there.ravel()]
        low[there], high[there] = np.nanquantile(flat, (tails, 1 - tails), axis=0)
    return Estimates(value=means[0], low=low, high=high)


def effective(counts: Real[np.ndarray, "replicate ..."]) -> Float64[np.ndarray, ...]:
    """Over how many sentences what was counted is spread; NaN where nothing was.

    It is as many as give a mean that varies as much where each counts alike (Kish 1965, "Survey Sampling"): the square
    of the sum over the sum of squares, of which the variance of the replicates is an estimate. Copies are one sentence.
    """
    total = np.asarray(counts[0], dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(total > 0, total**2 / np.var(counts[1:], axis=0, dtype=np.float64), np.nan))


def wilson(share: float, n: int) -> tuple[float, float]:
    """Both ends of the 95 % interval of a share of n things.

    Source: Wilson 1927, "Probable Inference, the Law of Succession, and Statistical Inference".
    """
    middle = (share + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z / (1 + Z**2 / n) * math.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2))
    return middle - half, middle + half


def frequencies(keys: Sequence[int], replicates: int) -> Float64[np.ndarray, "replicate sentence"]:
    """How often each sentence counts: once in the corpus, in each replicate as a Poisson variable of mean 1 says."""
    drawn = [np.random.Generator(np.random.PCG64(key)).poisson(1.0, replicates) for key in keys]
    columns = np.array(drawn, dtype=np.float64).reshape(len(keys), replicates).T
    return np.concatenate([np.ones((1, len(keys))), columns])


def key_of(text: str, pair: str | None = None) -> int:
    """A number for a sentence, from its words alone."""
    return int.from_bytes(blake2b(repr((text, pair)).encode(), digest_size=8).digest(), "little")
