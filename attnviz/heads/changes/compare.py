"""From two surveys to what two models' heads do otherwise.

A pattern changes by the mean Jensen-Shannon divergence between a head's rows in one model and in the other. It is never
below 0, so its interval says how large the change is, and not whether there is one; what is small and what is large is
said by two yardsticks from the first model: how far the head most like it is, and how far another head is in the mean.

A measure changes by the difference of its means. A sentence is in the same group in both surveys, since that is drawn
from its words. The difference is taken without each group in turn: what sentences of both do to both models cancels,
and where the sentences are others it is the interval of two independent means.

A relation between words changes by how much more often its best head is right, likewise.

A role changes where a head's clearest role has another name. That alone may be a score that crosses its threshold by a
hair; it is established where a measure that the role before or after is judged by differs, interval and all, from 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import product
from typing import TypeAlias

import numpy as np
from jaxtyping import Float64, Real

from attnviz.attention import Note
from attnviz.errors import RecordError
from attnviz.heads import survey, tally
from attnviz.heads.changes.record import ROUNDING, Change, Changes, Difference, RelationChange
from attnviz.heads.compare import compare
from attnviz.heads.measures import MEASURES, Entry, Measure
from attnviz.heads.record import Estimates, HeadComparison, HeadProfile, Relation
from attnviz.heads.relations import FORWARD, REVERSE, SCORE, Relations, name_of
from attnviz.heads.survey import Survey
from attnviz.heads.tally import Tally


def changes(
    before: Survey,
    after: Survey,
    divergences: Tally | None = None,
    *,
    corpus: str,
    corpus_after: str | None = None,
    thresholds: Mapping[str, float] | None = None,
    entries: Iterable[Entry] = MEASURES,
) -> Changes:
    """What two models' heads do otherwise.

    `divergences` of each head's rows in both are summed over sentences; None where only surveys are there. `corpus`
    says in a few words what the first was measured on, `corpus_after` what the second was, where that is another.
    Raises RecordError: the models have other numbers of layers or heads, other tokens of the same sentences, or
    were measured otherwise; SelectionError: a threshold of no role, or not between 0 and 1.
    """
    check_alike(before, after)
    paired = survey.same_sentences(before, after)
    one = compare(before, corpus=corpus, thresholds=thresholds, entries=entries)
    other = compare(
        after,
        corpus=corpus if corpus_after is None else corpus_after,
        thresholds=thresholds,
        entries=entries,
    )
    differences = _differences(before, after)
    pattern = None if divergences is None else divergences.estimate()
    yardsticks = _yardsticks(one)
    heads = []
    for first, second, (nearest, others) in zip(
        one.heads, other.heads, yardsticks.T.tolist(), strict=True
    ):
        value, low, high = (math.nan,) * 3 if pattern is None else pattern.at(*first.place)
        heads.append(
            Change(
                before=first,
                after=second,
                pattern=value,
                low=low,
                high=high,
                nearest=nearest,
                others=others,
                role_differs=_differs(first, second, differences, before, after),
            )
        )
    return Changes(
        before=one,
        after=other,
        pattern=pattern,
        measures=one.measures,
        differences=differences,
        paired=paired,
        heads=tuple(heads),
        notes=tuple(_notes(one, other, pattern, paired=paired)),
        relations=relation_changes(
            before.relations, after.relations, one.relations, other.relations
        ),
    )


def check_alike(before: Survey, after: Survey) -> None:
    """Make sure that heads can be compared one by one. Raises RecordError: they cannot."""
    names = before.about.model, after.about.model
    sizes, sizes_after = before.heads.sums.shape[1:3], after.heads.sums.shape[1:3]
    if sizes != sizes_after:
        raise RecordError(
            f"heads are compared one by one, and these models have other numbers of them: {names[0]} has {sizes[0]} x "
            f"{sizes[1]} (layers x heads), {names[1]} {sizes_after[0]} x {sizes_after[1]}"
        )
    here, there = before.about.words(), after.about.words()
    for what in ("kind", "special tokens", "fixed offsets"):
        if here[what] != there[what]:
            raise RecordError(
                f"these cannot be compared: {what}: {names[0]} was measured with {here[what]}, {names[1]} with "
                f"{there[what]}"
            )
    if before.measures != after.measures or len(before.heads.sums) != len(after.heads.sums):
        raise RecordError(
            "these cannot be compared: they hold other measures, or were measured by another version"
        )
    if survey.same_sentences(before, after) and before.n_tokens != after.n_tokens:
        raise RecordError(
            f"the same sentences are {before.n_tokens:,} tokens to {names[0]} and {after.n_tokens:,} to {names[1]}: "
            "only models that cut them into the same tokens are compared"
        )


def sort_changes(found: Changes) -> list[Change]:
    """All heads, those that changed most first: by their patterns, or where these are unknown by their measures.

    Of measures the largest difference that is established counts.
    """

    def largest(change: Change) -> float:
        if found.pattern is not None:
            return change.pattern if change.pattern > 0 else 0.0  # where it was not measured, too
        return max(
            (abs(one.scaled) for one in largest_changes(found, change) if one.established),
            default=0.0,
        )

    return sorted(found.heads, key=lambda change: -largest(change))


def change_on_map(found: Changes, change: Change) -> float:
    """What a map shows of a head: how far its pattern changed, or else the largest difference of a measure, scaled."""
    if found.pattern is not None:
        return change.pattern
    return next((one.scaled for one in largest_changes(found, change, 1)), 0.0)


def largest_changes(found: Changes, change: Change, n: int | None = None) -> list[Difference]:
    """The measures of one head that changed most: those that are established first, then by their size."""
    every = [
        found.difference(one.name, *change.before.place) for one in found.measures if is_main(one)
    ]
    there = [one for one in every if abs(one.value) > ROUNDING]
    return sorted(there, key=lambda one: (not one.established, -abs(one.scaled)))[:n]


def is_main(measure: Measure) -> bool:
    """Whether a measure is looked through for what changed most; entropy is, as a share of the largest."""
    return (
        measure.offset is None
        and measure.takes not in {"norms", "unknown"}
        and measure.unit != "nats"
    )


def _differences(before: Survey, after: Survey) -> Estimates:
    """After less before, of every measure: of all sentences, and without each group of them for the interval."""
    means = [tally.left_out(one.heads.sums, one.heads.counts) for one in (before, after)]
    found = tally.interval(_apart(*means), tally.effective(before.heads.counts))
    return found.with_one_more(survey.variability(after.places, before.places))


def _apart(
    before: Float64[np.ndarray, "group ..."], after: Float64[np.ndarray, "group ..."]
) -> Float64[np.ndarray, "group ..."]:
    """The second less the first, of all and without each group; a group that only one has leaves the other whole."""
    known = np.isfinite(before) | np.isfinite(after)
    one, other = (np.where(np.isnan(means) & known, means[:1], means) for means in (before, after))
    return np.asarray(other - one)


def _yardsticks(before: HeadComparison) -> Float64[np.ndarray, "yardstick one"]:
    """Of each head, how far the head most like it is, and how far other heads are in the mean."""
    n = len(before.heads)
    if before.similarity is None or n < 2:
        return np.full((2, n), np.nan)
    others = before.similarity.divergences[~np.eye(n, dtype=np.bool_)].reshape(n, n - 1)
    return np.stack([others.min(axis=1), others.mean(axis=1)])


def _differs(
    before: HeadProfile, after: HeadProfile, differences: Estimates, one: Survey, other: Survey
) -> bool:
    """Whether what the clearest role before or after is judged by, a measure or a relation, has changed for sure."""
    at, measures = before.place, (*one.measures, "variability")
    for name in {profile.role.measure for profile in (before, after) if profile.role}:
        if name in measures:
            ends: tuple[float, ...] | None = differences.at(*at, measures.index(name))
        else:
            ends = role_difference(one.relations, other.relations, name, at)
        if ends is not None and (ends[1] > ROUNDING or ends[2] < -ROUNDING):
            return True
    return False


def _notes(
    before: HeadComparison, after: HeadComparison, pattern: Estimates | None, *, paired: bool
) -> Iterable[Note]:
    if pattern is None:
        yield Note("saved_numbers")
    if not paired:
        yield Note("other_sentences")
    elif pattern is None:
        yield Note("paired")
    yield from dict.fromkeys((*before.notes, *after.notes))


Scored: TypeAlias = tuple[Real[np.ndarray, " group"], Real[np.ndarray, " group"]]
"""How often a head is right, and how often it could be."""


def relation_changes(
    before: Relations | None,
    after: Relations | None,
    best: tuple[Relation, ...],
    best_after: tuple[Relation, ...],
) -> tuple[RelationChange, ...]:
    """For each relation that both were measured on, in the order of `best`, how much better or worse it is found."""
    if before is None or after is None:
        return ()
    there = {one.name: one for one in best_after}
    found = []
    for one, other in ((one, there[one.name]) for one in best if one.name in there):
        sides = ((before, one), (after, other))
        value, low, high = difference(
            *(
                _score_counts(which, best.name, int(best.reverse), best.layer, best.head)
                for which, best in sides
            )
        )
        found.append(RelationChange(before=one, after=other, value=value, low=low, high=high))
    return tuple(found)


def role_difference(
    before: Relations | None, after: Relations | None, role: str, head: tuple[int, int]
) -> tuple[float, float, float] | None:
    """By how much more often one head is right after, where roles are scored, with its interval; None where unknown."""
    if before is None or after is None:
        return None
    for name, way in product(before.names, (FORWARD, REVERSE)):
        if name_of(name, reverse=way == REVERSE) == role and name in after.names:
            return difference(
                *(_score_counts(found, name, way, *head) for found in (before, after))
            )
    return None


def difference(before: Scored, after: Scored) -> tuple[float, float, float]:
    """The second share less the first, with its 95 % interval; NaN where either was not counted.

    It is the interval of the differences without each group of sentences, and never narrower than so few links allow:
    then it is put together of the intervals of both shares with their correlation (Zou and Donner 2008, "Construction
    of confidence limits about effect measures"). Ten links of which both models find all give a difference of 0
    without any group, and still one of the models may miss the next.
    """
    (one, low, high), (other, low_after, high_after) = (
        tally.share(*before).at(),
        tally.share(*after).at(),
    )
    value = other - one
    if math.isnan(value):
        return math.nan, math.nan, math.nan
    shares, shares_after = (tally.left_out(*one) for one in (before, after))
    drawn = tally.interval(_apart(shares, shares_after)[:, None], tally.effective(before[1])[None])
    n = int(min(before[1][0], after[1][0]))
    together = (
        _correlation(shares[1:], shares_after[1:]) * n / (n + tally.Z**2)
    )  # two links that agree are no proof
    below = _reach(other - low_after, high - one, together)
    above = _reach(high_after - other, one - low, together)
    ends = np.array([drawn.low[0], drawn.high[0], value - below, value + above])
    return value, max(float(np.nanmin(ends)), -1.0), min(float(np.nanmax(ends)), 1.0)


def _score_counts(found: Relations, name: str, way: int, layer: int, head: int) -> Scored:
    at = found.names.index(name)
    return found.hits[SCORE, :, at, way, layer, head], found.counts[SCORE, :, at]


def _reach(one: float, other: float, correlation: float) -> float:
    """How far the difference of two numbers reaches that reach so far themselves."""
    return math.sqrt(max(one**2 + other**2 - 2 * correlation * one * other, 0.0))


def _correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Of the groups that both have; 0 where one of them never varies."""
    there = np.isfinite(one) & np.isfinite(other)
    if not there.any() or np.ptp(one[there]) == 0 or np.ptp(other[there]) == 0:
        return 0.0
    return float(np.corrcoef(one[there], other[there])[0, 1])
