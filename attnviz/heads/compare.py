"""Comparison of heads: what each head does, computed from the measurements of a corpus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from attnviz.attention import Note
from attnviz.heads import measures, relations, roles, selection, survey, tally
from attnviz.heads.measures import CHANCE, MEASURES, OFFSET, UNTRAINED, Entry, Measure
from attnviz.heads.record import (
    Estimates,
    Example,
    HeadChange,
    HeadComparison,
    HeadProfile,
    Relation,
)
from attnviz.heads.survey import Survey

Place: TypeAlias = tuple[str, str]  # a head, as layer.head, and a measure


def compare(
    measured: Survey,
    *,
    corpus: str,
    entries: Iterable[Entry] = MEASURES,
) -> HeadComparison:
    """Return what each head does, and how much it differs from the same head of a second model, if there is one.

    Args:
        measured: the measurements of a corpus.
        corpus: a short description of the corpus.
        entries: the measures.
    """
    entries = tuple(entries)
    comparison = _compare_one(measured, corpus, entries)
    if measured.against is None:
        return comparison
    second = _compare_one(measured.against.survey, corpus, entries)
    divergences = measured.against.divergences.estimate()
    heads = []
    for head, second_head in zip(comparison.heads, second.heads, strict=True):
        value, low, high = divergences.at(*head.place)
        change = HeadChange(divergence=value, low=low, high=high, role=second_head.role)
        heads.append(replace(head, change=change))
    notes = dict.fromkeys((*comparison.notes, *second.notes))
    return replace(comparison, heads=tuple(heads), against=second, notes=tuple(notes))


def _compare_one(
    model_survey: Survey,
    corpus: str,
    entries: Iterable[Entry],
) -> HeadComparison:
    """Return the comparison of the heads of one model, without a second model."""
    known_measures = measures.named(model_survey.measures, entries)
    estimates = _with_peaks(model_survey.heads, known_measures)
    estimates = _clip_intervals(estimates, known_measures)
    n_tested = len(measures.rules_of(known_measures))
    if model_survey.relations is not None:
        n_tested += len(model_survey.relations.names)
    controls = _controls(model_survey, n_tested)
    candidates = _relation_candidates(model_survey, n_tested)
    roles_of_relations = relations.roles_of(candidates)
    n_layers, n_heads = estimates.value.shape[:2]
    counts = _counts(model_survey)

    def profile(layer: int, head: int) -> HeadProfile:
        head_roles = roles.roles_of(
            layer,
            head,
            measures=known_measures,
            estimates=estimates,
            controls=controls,
            counts=counts,
        )
        head_roles += roles_of_relations.get((layer, head), [])
        return HeadProfile(
            layer=layer,
            head=head,
            roles=tuple(sorted(head_roles, key=lambda role: role.clearness, reverse=True)),
        )

    heads = tuple(profile(layer, head) for layer, head in np.ndindex(n_layers, n_heads))
    linked_texts = {key: text for key, (text, _pair) in model_survey.sample.linked.items()}
    by_links = relations.examples_of(model_survey.sample.own, linked_texts)
    return HeadComparison(
        kind=model_survey.about.kind,  # type: ignore[arg-type]  # `kind` was stored as text
        model=model_survey.about.model,
        corpus=corpus,
        n_sentences=model_survey.n_sentences,
        n_tokens=model_survey.n_tokens,
        n_bad=model_survey.n_bad,
        bad=model_survey.bad,
        differences=model_survey.worst,
        proves=model_survey.proves,
        measures=known_measures,
        estimates=estimates,
        controls=controls,
        heads=heads,
        examples=_examples(model_survey, heads, by_links),
        typical=_typical_examples(model_survey, heads, known_measures, by_links),
        relations=relations.best_of(candidates),
        notes=tuple(_notes(model_survey)),
    )


def _relation_candidates(model_survey: Survey, n_tested: int) -> dict[str, tuple[Relation, ...]]:
    """Return the heads that may find each relation; empty if no sentence is annotated.

    `n_tested` is the number of roles and relations that were tested.
    """
    if model_survey.relations is None:
        return {}
    hits = (
        model_survey.sample.found
    )  # of models with random weights, their layers one after another
    untrained = None
    if hits:
        n_layers, n_heads = next(iter(hits.values())).hits.shape[2:]
        untrained = relations.count_links(hits.items(), n_layers, n_heads)
    return relations.candidates(
        model_survey.relations,
        untrained,
        different=_different(model_survey),
        n_tested=n_tested,
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


def _clip_intervals(estimates: Estimates, known_measures: Sequence[Measure]) -> Estimates:
    """Clip the intervals to the possible values: 0 to 1 for shares, at least 0 for other measures."""
    upper_bounds = np.array(
        [1.0 if measure.unit == "share" else np.inf for measure in known_measures]
    )
    high = np.minimum(estimates.high, np.maximum(upper_bounds, estimates.value))
    return Estimates(value=estimates.value, low=np.maximum(estimates.low, 0.0), high=high)


def _controls(model_survey: Survey, n_tested: int) -> dict[str, Estimates]:
    """Return the controls as estimates of all measures [layer, head, measure]; NaN for measures without that control.

    `n_tested` is the number of roles and relations that were tested.
    """
    shape = model_survey.heads.sums.shape[1:]
    sample, controls = model_survey.sample, {}
    if CHANCE in sample.controls:
        sums, counts = sample.controls[CHANCE]
        estimates = tally.tally_sentences(sums, counts[:, :, None], list(sample.texts))
        controls[CHANCE] = _fill_in(estimates.estimate(), range(shape[2]), shape)
    if UNTRAINED in sample.controls:
        controls[UNTRAINED] = _untrained_control(model_survey, n_tested, shape)
    by_offset = model_survey.offsets.estimate()  # (offset, share), shares come first
    has_offset = np.isfinite(by_offset.value).any(axis=0)
    if has_offset.any():
        columns = np.flatnonzero(has_offset)
        best = np.nanargmax(by_offset.value[:, columns], axis=0), columns
        controls[OFFSET] = _fill_in(by_offset.map(lambda values: values[best]), columns, shape)
    return controls


def _untrained_control(
    model_survey: Survey, n_tested: int, shape: tuple[int, int, int]
) -> Estimates:
    """Return the best head of random weights, for the measures that may give a role; NaN for the others.

    Random weights are measured on the sample only. If the trained head scores higher on all sentences than on the
    sample, the control is raised by the same difference, at most to 1.
    """
    sample = model_survey.sample
    columns = [model_survey.measures.index(name) for name in sample.roles]
    sums, counts = _sum_sentences(sample.controls[UNTRAINED])
    own_sums, own_counts = _sum_sentences(sample.controls[survey.OWN])
    with np.errstate(invalid="ignore", divide="ignore"):
        # (seed, layer, head, role)
        means = sums.reshape(-1, *shape[:2], len(columns)) / counts[:, None]
        shortfall = (
            model_survey.heads.estimate().value[..., columns] - own_sums / own_counts[:, None]
        )
    best = roles.best_of_seeds(np.fmax.reduce(means, axis=(1, 2)), n_tested)
    control = _fill_in(best, columns, shape)
    increase = np.maximum(np.nan_to_num(shortfall), 0.0)
    for ends in (control.value, control.low, control.high):
        ends[..., columns] = np.minimum(ends[..., columns] + increase, 1.0)
    return control


def _sum_sentences(measured: survey.PerSentence) -> tuple[np.ndarray, np.ndarray]:
    """Return sums [layer, head, measure] and counts [layer, measure], added up over sentences."""
    sums, counts = measured
    return sums.sum(axis=0, dtype=np.float64), counts.sum(axis=0, dtype=np.float64)


def _fill_in(
    estimates: Estimates, columns: Sequence[int] | np.ndarray, shape: tuple[int, int, int]
) -> Estimates:
    """Return estimates of all measures [layer, head, measure]: those given in these columns, NaN in the others."""

    def fill_in(values: np.ndarray) -> np.ndarray:
        all_values = np.full(shape, np.nan)
        all_values[..., columns] = values
        return all_values

    return estimates.map(fill_in)


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
            if role.measure in by_name:
                ranked = _ranked(model_survey, head, by_name[role.measure])
            else:  # a relation between words, which is no measure
                ranked = by_links.get(place, [])
            example = selection.typical(ranked)
            if example is not None:
                typical[place] = example
    return typical


def _examples(
    model_survey: Survey,
    heads: Sequence[HeadProfile],
    by_links: Mapping[Place, list[Example]],
) -> dict[Place, tuple[Example, ...]]:
    """Return the sentences with the highest score, by head and the measure of each of its roles."""
    stored = model_survey.examples
    examples: dict[Place, tuple[Example, ...]] = {}
    for head, role in ((profile, role) for profile in heads for role in profile.roles):
        place = head.name, role.measure
        if role.measure not in model_survey.measures:  # a relation between words
            examples[place] = tuple(by_links.get(place, [])[: survey.EXAMPLES])
            continue
        column = *head.place, model_survey.measures.index(role.measure)
        examples[place] = tuple(
            Example(text=stored.texts[int(key)], score=float(score))
            for key, score in zip(stored.keys[column], stored.scores[column], strict=True)
            if np.isfinite(score)
        )
    return examples


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
