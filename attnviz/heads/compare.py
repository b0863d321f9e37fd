"""Comparison of heads: what each head does, computed from the measurements of a corpus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from attnviz.attention import Note
from attnviz.heads import measures, relations, roles, selection, tally
from attnviz.heads.measures import CHANCE, MEASURES, OFFSET, UNTRAINED, Measure
from attnviz.heads.record import (
    Estimates,
    Example,
    HeadChange,
    HeadComparison,
    HeadProfile,
    Relation,
)
from attnviz.heads.survey import PerSentence, Survey

EXAMPLES = 3  # number of sentences kept per head and measure: those with the highest score
Place: TypeAlias = tuple[str, str]  # a head, as layer.head, and a measure


def compare(
    model_survey: Survey, *, corpus: str, entries: Iterable[Measure] = MEASURES
) -> HeadComparison:
    """Return what each head does, and how much it differs from the same head of a second model, if there is one.

    `corpus` is a short description of the corpus, and `entries` are the measures.
    """
    known_measures = measures.measures_of(entries)
    estimates = estimates_of(model_survey.heads, known_measures)
    n_tested = len(measures.rules_of(known_measures))
    if model_survey.relations is not None:
        n_tested += len(model_survey.relations.by_name)
    controls = _controls(model_survey, known_measures, n_tested)
    candidates = _relation_candidates(model_survey, n_tested)
    roles_of_relations = relations.roles_of(candidates)
    rows = model_survey.heads.counts[:, :, 0]
    counts = roles.Counts(
        rows=rows[0], sentences=tally.effective(rows), different=_different(model_survey)
    )

    heads = []
    for layer, head in np.ndindex(estimates.value.shape[:2]):
        head_roles = roles.roles_of(layer, head, known_measures, estimates, controls, counts)
        head_roles += roles_of_relations.get((layer, head), [])
        head_roles.sort(key=lambda role: role.clearness, reverse=True)
        heads.append(HeadProfile(layer=layer, head=head, roles=tuple(head_roles)))
    examples, typical = _examples(model_survey, heads, known_measures)
    comparison = HeadComparison(
        kind=model_survey.kind,
        model=model_survey.model,
        corpus=corpus,
        n_sentences=model_survey.n_sentences,
        n_tokens=model_survey.n_tokens,
        n_bad=model_survey.n_bad,
        bad=tuple((line.number, line.reason) for line in model_survey.bad),
        differences=model_survey.worst,
        weights=model_survey.weights,
        proves=model_survey.proves,
        measures=known_measures,
        estimates=estimates,
        controls=controls,
        heads=tuple(heads),
        examples=examples,
        typical=typical,
        relations=relations.best_of(candidates),
        notes=tuple(_notes(model_survey)),
    )
    if model_survey.against is None:
        return comparison
    second = compare(model_survey.against.survey, corpus=corpus, entries=known_measures)
    return _with_second(comparison, second, model_survey.against.divergences.estimate())


def _with_second(
    comparison: HeadComparison, second: HeadComparison, divergences: Estimates
) -> HeadComparison:
    """Return a comparison beside that of a second model on the same sentences."""
    heads = []
    for head, second_head in zip(comparison.heads, second.heads, strict=True):
        value, low, high = divergences.at(*head.place)
        change = HeadChange(divergence=value, low=low, high=high, role=second_head.role)
        heads.append(replace(head, change=change))
    notes = dict.fromkeys((*comparison.notes, *second.notes))
    return replace(comparison, heads=tuple(heads), against=second, notes=tuple(notes))


def _relation_candidates(model_survey: Survey, n_tested: int) -> dict[str, tuple[Relation, ...]]:
    """Return the heads that may find each relation; empty if no sentence is annotated.

    `n_tested` is the number of roles and relations that were tested.
    """
    if model_survey.relations is None:
        return {}
    untrained = None
    if model_survey.controls is not None and model_survey.controls.found:
        hits = list(model_survey.controls.found.items())
        untrained = relations.count_links(hits, *hits[0][1].hits.shape[2:])
    return relations.candidates(
        model_survey.relations,
        untrained,
        different=_different(model_survey),
        n_tested=n_tested,
    )


def estimates_of(heads: tally.Tally, known_measures: Sequence[Measure]) -> Estimates:
    """Return the estimates of all measures, with intervals within the possible values.

    A measure of the largest weight (``peaks``) is a proportion, yes or no per row, so its interval is computed as one.
    """
    estimates = heads.estimate()
    peaks = [column for column, measure in enumerate(known_measures) if measure.takes == "peaks"]
    counts = np.broadcast_to(heads.counts, heads.sums.shape)[..., peaks]
    shares = tally.share(heads.sums[..., peaks], counts)
    for ends, share_ends in ((estimates.low, shares.low), (estimates.high, shares.high)):
        # No interval if only one group of sentences has the measure.
        ends[..., peaks] = np.where(np.isfinite(ends[..., peaks]), share_ends, np.nan)
    largest = np.array([1.0 if measure.unit == "share" else np.inf for measure in known_measures])
    high = np.minimum(estimates.high, np.maximum(largest, estimates.value))
    return Estimates(value=estimates.value, low=estimates.low, high=high)


def _controls(
    model_survey: Survey, known_measures: Sequence[Measure], n_tested: int
) -> dict[str, Estimates]:
    """Return the controls as estimates of all measures [layer, head, measure]; NaN for measures without that control.

    `n_tested` is the number of roles and relations that were tested.
    """
    shape = model_survey.heads.sums.shape[1:]
    measured, controls = model_survey.controls, {}
    if measured is not None:
        sums, counts = measured.chance
        tallied = tally.tally_sentences(sums, counts[:, :, None], list(model_survey.sample))
        controls[CHANCE] = tallied.estimate()
        if measured.untrained is not None:
            columns = [at for at, measure in enumerate(known_measures) if measure.role is not None]
            controls[UNTRAINED] = _untrained_control(
                model_survey, measured.untrained, columns, n_tested
            )
    by_offset = model_survey.offsets.estimate()  # (offset, share), shares come first
    shares = np.flatnonzero(np.isfinite(by_offset.value).any(axis=0))
    if shares.size:
        best = np.nanargmax(by_offset.value[:, shares], axis=0), shares
        controls[OFFSET] = _fill_in(by_offset.map(lambda values: values[best]), shares, shape)
    return controls


def _untrained_control(
    model_survey: Survey, untrained: PerSentence, columns: Sequence[int], n_tested: int
) -> Estimates:
    """Return the best head of random weights, for the measures that may give a role (`columns`); NaN for the others.

    Random weights are measured on the sample only. If the trained head scores higher on all sentences than on the
    sample, the control is raised by the same difference, at most to 1.
    """
    shape = model_survey.heads.sums.shape[1:]
    sums, counts = (values.sum(axis=0, dtype=np.float64) for values in untrained)
    own = model_survey.sample.values()
    own_sums, own_counts = (
        np.stack(values).sum(axis=0, dtype=np.float64)[..., columns]
        for values in zip(*((one.sums, one.counts) for one in own), strict=True)
    )
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


def _fill_in(
    estimates: Estimates, columns: Sequence[int] | np.ndarray, shape: tuple[int, int, int]
) -> Estimates:
    """Return estimates of all measures [layer, head, measure]: those given in these columns, NaN in the others."""

    def fill_in(values: np.ndarray) -> np.ndarray:
        all_values = np.full(shape, np.nan)
        all_values[..., columns] = values
        return all_values

    return estimates.map(fill_in)


def _examples(
    model_survey: Survey, heads: Sequence[HeadProfile], known_measures: Sequence[Measure]
) -> tuple[dict[Place, tuple[Example, ...]], dict[Place, Example]]:
    """Return the sentences with the highest score, and a typical one, by head and the measure of each of its roles.

    They are sentences of the sample.
    """
    by_links = relations.examples_of(model_survey.linked)
    columns = {measure.name: column for column, measure in enumerate(known_measures)}
    highest: dict[Place, tuple[Example, ...]] = {}
    typical: dict[Place, Example] = {}
    for head, role in ((profile, role) for profile in heads for role in profile.roles):
        place, column = (head.name, role.measure), columns.get(role.measure)
        if column is None:  # a relation between words, which is no measure
            ranked = by_links.get(place, [])
        else:
            ranked = _ranked(model_survey, head, column, known_measures[column].enough_rows)
        highest[place] = tuple(ranked[:EXAMPLES])
        example = selection.typical(ranked)
        if example is not None:
            typical[place] = example
    return highest, typical


def _ranked(model_survey: Survey, head: HeadProfile, column: int, enough: int) -> list[Example]:
    """Return the sentences of the sample with enough rows, sorted by a measure of one head, highest first."""
    examples = []
    for text, sums, counts in model_survey.sample.values():
        n = counts[head.layer, column]
        if n >= enough:
            score = float(sums[head.layer, head.head, column] / n)
            examples.append(Example(text=text, score=score))
    return sorted(examples, key=lambda item: (-item.score, item.text))


def _different(model_survey: Survey) -> int:
    """Return the number of different sentences: exact if all fit into the sample, else the number of all sentences."""
    n = len(model_survey.sample)
    return n if n < model_survey.sample_size else model_survey.n_sentences


def _notes(model_survey: Survey) -> Iterator[Note]:
    """Yield the caveats of a survey."""
    if not model_survey.heads.counts[0].any():
        yield Note("nothing_measured")
    n = _different(model_survey)
    if n < roles.FEWEST_DIFFERENT:
        yield Note.of("few_sentences", different=n, fewest=roles.FEWEST_DIFFERENT)
    no_random = "" if model_survey.controls is None else model_survey.controls.no_random
    if no_random:
        yield Note.of("no_random_weights", why=no_random)
    if model_survey.n_cut:
        yield Note.of("sentences_cut", n=model_survey.n_cut)
    if model_survey.n_bad:
        first = model_survey.bad[0]
        yield Note.of("bad_lines", n=model_survey.n_bad, line=first.number, reason=first.reason)
    if model_survey.relations is not None:
        has_control = model_survey.controls is not None and model_survey.controls.found
        if not has_control and not no_random:
            yield Note("relations_uncontrolled")
        yield from relations.notes(model_survey.relations)
