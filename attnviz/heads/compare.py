"""From what was kept of a corpus to what each head does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from attnviz.attention import Note
from attnviz.heads import measures, relations, roles, selection, survey, tally
from attnviz.heads.measures import CHANCE, MEASURES, OFFSET, SHUFFLED, UNTRAINED, Entry, Measure
from attnviz.heads.record import (
    Estimates,
    Example,
    HeadChange,
    HeadComparison,
    HeadProfile,
    HeadSimilarity,
    Relation,
)
from attnviz.heads.similarity import cluster, cut
from attnviz.heads.survey import Survey

CLUSTERS = 8  # into how many clusters heads are put, where there are so many
Place: TypeAlias = tuple[str, str]  # a head, as layer.head, and a measure


def compare(
    found: Survey,
    *,
    corpus: str,
    thresholds: Mapping[str, float] | None = None,
    entries: Iterable[Entry] = MEASURES,
) -> HeadComparison:
    """Return what each head does, and how far it is from the same head of a second model, if there is one.

    Raises SelectionError: a threshold of no role, or not between 0 and 1.
    """
    entries = tuple(entries)
    comparison = _compare_one(found, corpus, thresholds, entries)
    if found.against is None:
        return comparison
    second = _compare_one(found.against.survey, corpus, thresholds, entries)
    divergences = found.against.divergences.estimate()
    heads = []
    for head, other in zip(comparison.heads, second.heads, strict=True):
        value, low, high = divergences.at(*head.place)
        change = HeadChange(divergence=value, low=low, high=high, role=other.role)
        heads.append(replace(head, change=change))
    notes = dict.fromkeys((*comparison.notes, *second.notes))
    return replace(comparison, heads=tuple(heads), against=second, notes=tuple(notes))


def _compare_one(
    found: Survey, corpus: str, thresholds: Mapping[str, float] | None, entries: Iterable[Entry]
) -> HeadComparison:
    taken = measures.named((*found.measures, "variability"), entries)
    measured = _with_peaks(found.heads, taken)
    estimates = _shares_to_1(measured.with_one_more(survey.variability(found.places)), taken)
    n_looked_at = len(measures.rules_of(taken))
    if found.relations is not None:
        n_looked_at += len(found.relations.names)
    controls = _controls(found, n_looked_at)
    judged = roles.with_thresholds(taken, thresholds or {})
    n_layers, n_heads = estimates.value.shape[:2]
    counts = _counts(found)
    threshold = (thresholds or {}).get(roles.RELATION, relations.THRESHOLD)
    candidates: dict[str, tuple[Relation, ...]] = {}
    if found.relations is not None:
        hits = found.sample.found
        # of the random weights of all seeds
        layers = next(iter(hits.values())).hits.shape[2] if hits else 0
        untrained = relations.count_links(hits.items(), layers, n_heads) if hits else None
        candidates = relations.candidates(
            found.relations, untrained, threshold, different=counts.different, looked_at=n_looked_at
        )
    related = relations.roles_of(candidates)
    similarity = _similarity(found)
    clusters = None
    if similarity is not None:
        clusters = cut(similarity.linkage, min(CLUSTERS, n_layers * n_heads))

    def profile(layer: int, head: int) -> HeadProfile:
        own = roles.roles_of(
            layer, head, measures=judged, estimates=estimates, controls=controls, counts=counts
        )
        every = (*own, *related.get((layer, head), ()))
        return HeadProfile(
            layer=layer,
            head=head,
            roles=tuple(sorted(every, key=lambda role: role.clearness, reverse=True)),
            cluster=None if clusters is None else int(clusters[layer * n_heads + head]),
        )

    heads = tuple(profile(layer, head) for layer, head in np.ndindex(n_layers, n_heads))
    linked = {key: text for key, (text, _pair) in found.sample.linked.items()}
    by_links = relations.examples_of(found.sample.own, linked)
    return HeadComparison(
        kind=found.about.kind,  # type: ignore[arg-type]  # it was written from one
        model=found.about.model,
        corpus=corpus,
        n_sentences=found.n_sentences,
        n_tokens=found.n_tokens,
        n_bad=found.n_bad,
        bad=found.bad,
        differences=found.worst,
        measures=taken,
        estimates=estimates,
        controls=controls,
        heads=heads,
        similarity=similarity,
        examples=_examples(found, by_links),
        typical=_typical_examples(found, heads, taken, by_links),
        relations=relations.best_of(candidates),
        notes=tuple(_notes(found)),
    )


def _with_peaks(heads: tally.Tally, taken: Sequence[Measure]) -> Estimates:
    """Every measure of rows: a largest weight is at an offset or not, and of such the interval is another."""
    found = heads.estimate()
    at = [number for number, one in enumerate(taken) if one.takes == "peaks"]
    peaks = tally.share(
        heads.sums[..., at], np.broadcast_to(heads.counts, heads.sums.shape)[..., at]
    )
    for ends, given in ((found.low, peaks.low), (found.high, peaks.high)):
        # none of what one group alone has
        ends[..., at] = np.where(np.isfinite(ends[..., at]), given, np.nan)
    return found


def _shares_to_1(estimates: Estimates, taken: Sequence[Measure]) -> Estimates:
    most = np.array([1.0 if one.unit == "share" else np.inf for one in taken])
    high = np.minimum(estimates.high, np.maximum(most, estimates.value))
    return Estimates(value=estimates.value, low=np.maximum(estimates.low, 0.0), high=high)


def _controls(found: Survey, looked_at: int) -> dict[str, Estimates]:
    """The controls as estimates of the same measures; NaN where one is not taken."""
    keys, shape = list(found.sample.texts), (*found.heads.sums.shape[1:3], len(found.measures) + 1)
    controls = {}
    for name in (SHUFFLED, CHANCE):
        if name in found.sample.controls:
            sums, counts = found.sample.controls[name]
            taken = tally.tally_sentences(sums, counts[:, :, None], keys).estimate()
            controls[name] = _spread(taken, range(shape[2] - 1), shape)
    places = [found.measures.index(name) for name in found.sample.roles]
    if UNTRAINED in found.sample.controls:
        sums, counts = found.sample.controls[UNTRAINED]
        total, rows = sums.sum(axis=0, dtype=np.float64), counts.sum(axis=0, dtype=np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            # (seed, layer, head, role)
            means = total.reshape(-1, *shape[:2], len(places)) / rows[:, None]
        best = roles.best_of_seeds(np.fmax.reduce(means, axis=(1, 2)), looked_at)
        controls[UNTRAINED] = _carried_over(_spread(best, places, shape), found, places)
    fixed = found.offsets.estimate()  # (offset, share), shares come first
    if np.isfinite(fixed.value).any():
        there = np.flatnonzero(np.isfinite(fixed.value).any(axis=0))
        at = np.nanargmax(fixed.value[:, there], axis=0), there
        controls[OFFSET] = _spread(fixed.map(lambda values: values[at]), there, shape)
    return controls


def _carried_over(random: Estimates, found: Survey, places: Sequence[int]) -> Estimates:
    """Random weights held against a head: where the sentences of both let the head do less, so do random weights."""
    sums, counts = (one.sum(axis=0, dtype=np.float64) for one in found.sample.controls[survey.OWN])
    with np.errstate(invalid="ignore", divide="ignore"):
        less = found.heads.estimate().value[..., places] - sums / counts[:, None]
    more = np.maximum(np.nan_to_num(less), 0.0)
    for ends in (random.value, random.low, random.high):
        ends[..., places] = np.minimum(ends[..., places] + more, 1.0)
    return random


def _spread(
    found: Estimates, places: Sequence[int] | np.ndarray, shape: tuple[int, ...]
) -> Estimates:
    """Estimates of some measures among those of all; NaN of the others."""

    def spread(values: np.ndarray) -> np.ndarray:
        every = np.full(shape, np.nan)
        every[..., places] = values
        return every

    return found.map(spread)


def _similarity(found: Survey) -> HeadSimilarity | None:
    if found.similarity.n_rows == 0:
        return None
    linkage = cluster(found.similarity.distances())
    return HeadSimilarity(divergences=found.similarity.mean(), linkage=linkage)


def _counts(found: Survey) -> roles.Counts:
    """Return how many rows each measure counts, and over how many sentences they are spread."""
    rows = found.heads.counts[:, :, 0]
    sentences = even = tally.effective(rows)
    if "entropy" in found.measures:
        with np.errstate(invalid="ignore"):
            even = sentences / sentences[:, [found.measures.index("entropy")]]
    return roles.Counts(rows=rows[0], sentences=sentences, even=even, different=_different(found))


def _typical_examples(
    found: Survey,
    heads: Sequence[HeadProfile],
    taken: Sequence[Measure],
    by_links: Mapping[Place, list[Example]],
) -> dict[Place, Example]:
    """Return a typical sentence of each role of each head."""
    by_name = {one.name: one for one in taken}
    typical: dict[Place, Example] = {}
    for head in heads:
        for role in head.roles:
            place = head.name, role.measure
            measure = by_name.get(role.measure)
            ranked = by_links.get(place, []) if measure is None else _ranked(found, head, measure)
            example = selection.typical(ranked)
            if example is not None:
                typical[place] = example
    return typical


def _examples(
    found: Survey, by_links: Mapping[Place, list[Example]]
) -> dict[Place, tuple[Example, ...]]:
    """Return by head and measure the sentences where it is strongest."""
    examples: dict[Place, list[Example]] = {}
    kept = found.examples
    for layer, head, measure, rank in np.argwhere(np.isfinite(kept.scores)).tolist():
        place = layer, head, measure, rank
        example = Example(text=kept.texts[int(kept.keys[place])], score=float(kept.scores[place]))
        examples.setdefault((f"{layer}.{head}", found.measures[measure]), []).append(example)
    examples |= {place: several[: survey.EXAMPLES] for place, several in by_links.items()}
    return {place: tuple(several) for place, several in examples.items()}


def _ranked(found: Survey, head: HeadProfile, measure: Measure) -> list[Example]:
    """Return the sentences of the sample in the order of a measure of one head."""
    sample = found.sample
    if measure.name not in sample.roles or survey.OWN not in sample.controls:
        return []
    sums, counts = sample.controls[survey.OWN]
    at = sample.roles.index(measure.name)
    examples = []
    for number, (text, _pair) in enumerate(sample.texts.values()):
        n = counts[number, head.layer, at]
        if n >= measure.enough_rows:
            score = float(sums[number, head.layer, head.head, at] / n)
            examples.append(Example(text=text, score=score))
    return sorted(examples, key=lambda one: (-one.score, one.text))


def _different(found: Survey) -> int:
    """Return the number of different sentences, as far as the sample tells: of few it holds all."""
    n = len(found.sample.texts)
    return n if n < found.sample.size else found.n_sentences


def _notes(found: Survey) -> Iterator[Note]:
    if not found.heads.counts[0].any():
        yield Note("nothing_measured")
    n = _different(found)
    if n < roles.FEWEST_DIFFERENT:
        yield Note.of("few_sentences", different=n, fewest=roles.FEWEST_DIFFERENT)
    if found.sample.no_random:
        yield Note.of("no_random_weights", why=found.sample.no_random)
    if found.n_cut:
        yield Note.of("sentences_cut", n=found.n_cut)
    if found.n_bad:
        line, reason = found.bad[0]
        yield Note.of("bad_lines", n=found.n_bad, line=line, reason=reason)
    if found.relations is not None:
        if not found.sample.found and not found.sample.no_random:
            yield Note("relations_uncontrolled")
        yield from relations.notes(found.relations)
