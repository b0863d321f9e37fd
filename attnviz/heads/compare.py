"""Comparison of heads: what each head does, computed from the measurements of a corpus."""

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

CLUSTERS = 8  # number of clusters of heads; fewer if the model has fewer heads
Place: TypeAlias = tuple[str, str]  # a head, as layer.head, and a measure


def compare(
    found: Survey,
    *,
    corpus: str,
    thresholds: Mapping[str, float] | None = None,
    entries: Iterable[Entry] = MEASURES,
) -> HeadComparison:
    """Return what each head does, and how much it differs from the same head of a second model, if there is one.

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
    model_survey: Survey,
    corpus: str,
    thresholds: Mapping[str, float] | None,
    entries: Iterable[Entry],
) -> HeadComparison:
    """Return the comparison of the heads of one model, without a second model."""
    known_measures = measures.named((*model_survey.measures, "variability"), entries)
    measured = _with_peaks(model_survey.heads, known_measures)
    estimates = _shares_to_1(
        measured.with_one_more(survey.variability(model_survey.places)), known_measures
    )
    n_tested = len(measures.rules_of(known_measures))
    if model_survey.relations is not None:
        n_tested += len(model_survey.relations.names)
    controls = _controls(model_survey, n_tested)
    judged = roles.with_thresholds(known_measures, thresholds or {})
    n_layers, n_heads = estimates.value.shape[:2]
    counts = _counts(model_survey)
    threshold = (thresholds or {}).get(roles.RELATION, relations.THRESHOLD)
    candidates: dict[str, tuple[Relation, ...]] = {}
    if model_survey.relations is not None:
        hits = model_survey.sample.found
        # `hits` are those of models with random weights, one per seed.
        layers = next(iter(hits.values())).hits.shape[2] if hits else 0
        untrained = relations.count_links(hits.items(), layers, n_heads) if hits else None
        candidates = relations.candidates(
            model_survey.relations,
            untrained,
            threshold,
            different=counts.different,
            looked_at=n_tested,
        )
    related = relations.roles_of(candidates)
    similarity = _similarity(model_survey)
    clusters = None
    if similarity is not None:
        clusters = cut(similarity.linkage, min(CLUSTERS, n_layers * n_heads))

    def profile(layer: int, head: int) -> HeadProfile:
        measure_roles = roles.roles_of(
            layer, head, measures=judged, estimates=estimates, controls=controls, counts=counts
        )
        all_roles = (*measure_roles, *related.get((layer, head), ()))
        return HeadProfile(
            layer=layer,
            head=head,
            roles=tuple(sorted(all_roles, key=lambda role: role.clearness, reverse=True)),
            cluster=None if clusters is None else int(clusters[layer * n_heads + head]),
        )

    heads = tuple(profile(layer, head) for layer, head in np.ndindex(n_layers, n_heads))
    linked = {key: text for key, (text, _pair) in model_survey.sample.linked.items()}
    by_links = relations.examples_of(model_survey.sample.own, linked)
    return HeadComparison(
        kind=model_survey.about.kind,  # type: ignore[arg-type]  # `kind` was stored as text
        model=model_survey.about.model,
        corpus=corpus,
        n_sentences=model_survey.n_sentences,
        n_tokens=model_survey.n_tokens,
        n_bad=model_survey.n_bad,
        bad=model_survey.bad,
        differences=model_survey.worst,
        measures=known_measures,
        estimates=estimates,
        controls=controls,
        heads=heads,
        similarity=similarity,
        examples=_examples(model_survey, by_links),
        typical=_typical_examples(model_survey, heads, known_measures, by_links),
        relations=relations.best_of(candidates),
        notes=tuple(_notes(model_survey)),
    )


def _with_peaks(heads: tally.Tally, known_measures: Sequence[Measure]) -> Estimates:
    """Return the estimates of all measures of rows.

    A measure of the largest weight (``peaks``) is a proportion, yes or no per row, so its interval is computed as one.
    """
    estimates = heads.estimate()
    peak_columns = [
        column for column, measure in enumerate(known_measures) if measure.takes == "peaks"
    ]
    peaks = tally.share(
        heads.sums[..., peak_columns],
        np.broadcast_to(heads.counts, heads.sums.shape)[..., peak_columns],
    )
    for ends, peak_ends in ((estimates.low, peaks.low), (estimates.high, peaks.high)):
        # No interval if only one group of sentences has the measure.
        ends[..., peak_columns] = np.where(np.isfinite(ends[..., peak_columns]), peak_ends, np.nan)
    return estimates


def _shares_to_1(estimates: Estimates, known_measures: Sequence[Measure]) -> Estimates:
    """Clip the intervals to the possible values: 0 to 1 for shares, at least 0 for other measures."""
    upper_bounds = np.array(
        [1.0 if measure.unit == "share" else np.inf for measure in known_measures]
    )
    high = np.minimum(estimates.high, np.maximum(upper_bounds, estimates.value))
    return Estimates(value=estimates.value, low=np.maximum(estimates.low, 0.0), high=high)


def _controls(model_survey: Survey, n_tested: int) -> dict[str, Estimates]:
    """Return the controls as estimates of all measures; NaN for measures without that control.

    `n_tested` is the number of roles that were tested.
    """
    keys, shape = (
        list(model_survey.sample.texts),
        (*model_survey.heads.sums.shape[1:3], len(model_survey.measures) + 1),
    )
    controls = {}
    for name in (SHUFFLED, CHANCE):
        if name in model_survey.sample.controls:
            sums, counts = model_survey.sample.controls[name]
            estimates = tally.tally_sentences(sums, counts[:, :, None], keys).estimate()
            controls[name] = _spread(estimates, range(shape[2] - 1), shape)
    places = [model_survey.measures.index(name) for name in model_survey.sample.roles]
    if UNTRAINED in model_survey.sample.controls:
        sums, counts = model_survey.sample.controls[UNTRAINED]
        total, rows = sums.sum(axis=0, dtype=np.float64), counts.sum(axis=0, dtype=np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            # (seed, layer, head, role)
            means = total.reshape(-1, *shape[:2], len(places)) / rows[:, None]
        best = roles.best_of_seeds(np.fmax.reduce(means, axis=(1, 2)), n_tested)
        controls[UNTRAINED] = _carried_over(_spread(best, places, shape), model_survey, places)
    fixed = model_survey.offsets.estimate()  # (offset, share), shares come first
    if np.isfinite(fixed.value).any():
        columns = np.flatnonzero(np.isfinite(fixed.value).any(axis=0))
        best_offsets = np.nanargmax(fixed.value[:, columns], axis=0), columns
        controls[OFFSET] = _spread(fixed.map(lambda values: values[best_offsets]), columns, shape)
    return controls


def _carried_over(random: Estimates, model_survey: Survey, places: Sequence[int]) -> Estimates:
    """Raise the control of random weights to the level of all sentences.

    Random weights are measured on the sample only. If the head scores higher on all sentences than on the sample, the
    control is raised by the same difference, at most to 1.
    """
    sums, counts = (
        values.sum(axis=0, dtype=np.float64) for values in model_survey.sample.controls[survey.OWN]
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        shortfall = model_survey.heads.estimate().value[..., places] - sums / counts[:, None]
    increase = np.maximum(np.nan_to_num(shortfall), 0.0)
    for ends in (random.value, random.low, random.high):
        ends[..., places] = np.minimum(ends[..., places] + increase, 1.0)
    return random


def _spread(
    estimates: Estimates, places: Sequence[int] | np.ndarray, shape: tuple[int, ...]
) -> Estimates:
    """Return estimates of all measures: those of some measures at their places, and NaN for the others."""

    def spread(values: np.ndarray) -> np.ndarray:
        all_values = np.full(shape, np.nan)
        all_values[..., places] = values
        return all_values

    return estimates.map(spread)


def _similarity(model_survey: Survey) -> HeadSimilarity | None:
    if model_survey.similarity.n_rows == 0:
        return None
    linkage = cluster(model_survey.similarity.distances())
    return HeadSimilarity(divergences=model_survey.similarity.mean(), linkage=linkage)


def _counts(model_survey: Survey) -> roles.Counts:
    """Return how many rows each measure counts, and how many sentences these rows come from."""
    rows = model_survey.heads.counts[:, :, 0]
    sentences = evenness = tally.effective(rows)
    if "entropy" in model_survey.measures:
        with np.errstate(invalid="ignore"):
            evenness = sentences / sentences[:, [model_survey.measures.index("entropy")]]
    return roles.Counts(
        rows=rows[0], sentences=sentences, even=evenness, different=_different(model_survey)
    )


def _typical_examples(
    model_survey: Survey,
    heads: Sequence[HeadProfile],
    known_measures: Sequence[Measure],
    by_links: Mapping[Place, list[Example]],
) -> dict[Place, Example]:
    """Return a typical sentence of each role of each head."""
    by_name = {known.name: known for known in known_measures}
    typical: dict[Place, Example] = {}
    for head in heads:
        for role in head.roles:
            place = head.name, role.measure
            measure = by_name.get(role.measure)
            ranked = (
                by_links.get(place, []) if measure is None else _ranked(model_survey, head, measure)
            )
            example = selection.typical(ranked)
            if example is not None:
                typical[place] = example
    return typical


def _examples(
    model_survey: Survey, by_links: Mapping[Place, list[Example]]
) -> dict[Place, tuple[Example, ...]]:
    """Return the sentences with the highest score, by head and measure."""
    examples: dict[Place, list[Example]] = {}
    stored = model_survey.examples
    for layer, head, measure, rank in np.argwhere(np.isfinite(stored.scores)).tolist():
        place = layer, head, measure, rank
        example = Example(
            text=stored.texts[int(stored.keys[place])], score=float(stored.scores[place])
        )
        examples.setdefault((f"{layer}.{head}", model_survey.measures[measure]), []).append(example)
    examples |= {place: ranked[: survey.EXAMPLES] for place, ranked in by_links.items()}
    return {place: tuple(ranked) for place, ranked in examples.items()}


def _ranked(model_survey: Survey, head: HeadProfile, measure: Measure) -> list[Example]:
    """Return the sentences of the sample, sorted by a measure of one head, highest first."""
    sample = model_survey.sample
    if measure.name not in sample.roles or survey.OWN not in sample.controls:
        return []
    sums, counts = sample.controls[survey.OWN]
    column = sample.roles.index(measure.name)
    examples = []
    for number, (text, _pair) in enumerate(sample.texts.values()):
        n = counts[number, head.layer, column]
        if n >= measure.enough_rows:
            score = float(sums[number, head.layer, head.head, column] / n)
            examples.append(Example(text=text, score=score))
    return sorted(examples, key=lambda item: (-item.score, item.text))


def _different(model_survey: Survey) -> int:
    """Return the number of different sentences: exact if all fit into the sample, else the number of all sentences."""
    n = len(model_survey.sample.texts)
    return n if n < model_survey.sample.size else model_survey.n_sentences


def _notes(model_survey: Survey) -> Iterator[Note]:
    """Yield the caveats of a survey."""
    if not model_survey.heads.counts[0].any():
        yield Note("nothing_measured")
    n = _different(model_survey)
    if n < roles.FEWEST_DIFFERENT:
        yield Note.of("few_sentences", different=n, fewest=roles.FEWEST_DIFFERENT)
    if model_survey.sample.no_random:
        yield Note.of("no_random_weights", why=model_survey.sample.no_random)
    if model_survey.n_cut:
        yield Note.of("sentences_cut", n=model_survey.n_cut)
    if model_survey.n_bad:
        line, reason = model_survey.bad[0]
        yield Note.of("bad_lines", n=model_survey.n_bad, line=line, reason=reason)
    if model_survey.relations is not None:
        if not model_survey.sample.found and not model_survey.sample.no_random:
            yield Note("relations_uncontrolled")
        yield from relations.notes(model_survey.relations)
