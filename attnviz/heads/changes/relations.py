"""How much better or worse another model's heads find the words that belong together.

A relation has in each model its own best head, chosen on one half of the sentences and scored on the other. Both models
are scored on the same half, and in each replicate a sentence counts as often in the one as in the other: the difference
of both shares is taken replicate by replicate, so that what a sentence does to both cancels.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from jaxtyping import Int

from attnviz.heads import tally
from attnviz.heads.changes.record import RelationChange
from attnviz.heads.record import Relation
from attnviz.heads.relations import name_of
from attnviz.heads.structure import FORWARD, REVERSE, SCORE, Relations, Z, interval

Scored: TypeAlias = tuple[Int[np.ndarray, " replicate"], Int[np.ndarray, " replicate"]]
"""How often a head is right, and how often it could be."""


def relations_changed(
    before: Relations | None, after: Relations | None, best: tuple[Relation, ...], best_after: tuple[Relation, ...]
) -> tuple[RelationChange, ...]:
    """For each relation that both models were measured on, how much better or worse it is found.

    Args:
        before: what the heads of the first model find; None where no sentence says which words belong together.
        after: likewise of the second.
        best: the best head of the first for each relation.
        best_after: likewise of the second.

    Returns:
        The changes in the order of `best`.
    """
    if before is None or after is None:
        return ()
    there = {one.name: one for one in best_after}
    found = []
    for one in best:
        if (other := there.get(one.name)) is not None:
            value, low, high = difference(_scored(before, one), _scored(after, other))
            found.append(RelationChange(before=one, after=other, value=value, low=low, high=high))
    return tuple(found)


def role_difference(
    before: Relations | None, after: Relations | None, role: str, head: tuple[int, int]
) -> tuple[float, float, float] | None:
    """By how much more often one head is right after, over all sentences, with its interval; None where unknown.

    Args:
        before: what the heads of the first model find.
        after: likewise of the second.
        role: of a relation, as `attnviz.heads.relations.name_of` names it.
        head: layer and head.
    """
    if before is None or after is None:
        return None
    for name in before.names:
        for way in (FORWARD, REVERSE):
            if name_of(name, reverse=way == REVERSE) == role and name in after.names:
                one, other = (
                    (
                        found.hits[:, :, found.names.index(name), way, head[0], head[1]].sum(axis=0),
                        found.counts[:, :, found.names.index(name)].sum(axis=0),
                    )
                    for found in (before, after)
                )
                return difference(one, other)
    return None


def difference(before: Scored, after: Scored) -> tuple[float, float, float]:
    """The second share less the first, with its 95 % interval; NaN where either was not counted.

    It is the interval of the replicates' differences, and never narrower than so few links allow: then it is put
    together of the intervals of both shares with the correlation of their replicates (Zou and Donner 2008,
    "Construction of confidence limits about effect measures"). Ten links of which both models find all give a
    difference of 0 in each replicate, and still one of the models may miss the next.
    """
    (one, low, high), (other, low_after, high_after) = interval(*before), interval(*after)
    value = other - one
    if math.isnan(value):
        return math.nan, math.nan, math.nan
    with np.errstate(invalid="ignore", divide="ignore"):  # a replicate without the relation: NaN, left out
        shares, shares_after = (hits / counts for hits, counts in (before, after))
    apart = (shares_after - shares)[:, None]
    drawn = tally.estimate(apart, np.ones_like(apart))
    n = int(min(before[1][0], after[1][0]))
    together = _correlation(shares[1:], shares_after[1:]) * n / (n + Z**2)  # two links that agree are no proof
    below = _joined(other - low_after, high - one, together)
    above = _joined(high_after - other, one - low, together)
    ends = np.array([drawn.low[0], drawn.high[0], value - below, value + above])
    return value, max(float(np.nanmin(ends)), -1.0), min(float(np.nanmax(ends)), 1.0)


def _scored(found: Relations, best: Relation) -> Scored:
    at, way = found.names.index(best.name), REVERSE if best.reverse else FORWARD
    return found.hits[SCORE, :, at, way, best.layer, best.head], found.counts[SCORE, :, at]


def _joined(one: float, other: float, correlation: float) -> float:
    """How far the difference of two numbers reaches that reach so far themselves."""
    return math.sqrt(max(one**2 + other**2 - 2 * correlation * one * other, 0.0))


def _correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Of the replicates that both have; 0 where one of them never varies."""
    there = np.isfinite(one) & np.isfinite(other)
    if not there.any() or np.ptp(one[there]) == 0 or np.ptp(other[there]) == 0:
        return 0.0
    return float(np.corrcoef(one[there], other[there])[0, 1])
