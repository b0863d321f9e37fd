"""From what was kept of a corpus to what each head does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from attnviz.attention import Note
from attnviz.heads import measures, relations, roles, structure, survey, tally
from attnviz.heads.measures import MEASURES, OFFSET, Entry
from attnviz.heads.record import Estimates, Example, HeadComparison, HeadProfile, HeadSimilarity, Relation
from attnviz.heads.similarity import cluster, cut, scaled_to_two
from attnviz.heads.survey import Survey

CLUSTERS = 8
"""Into how many clusters heads are put, where there are so many."""


def compare(
    found: Survey, *, corpus: str, thresholds: Mapping[str, float] | None = None, entries: Iterable[Entry] = MEASURES
) -> HeadComparison:
    """What each head does.

    Args:
        found: the survey of a corpus, with its controls.
        corpus: what was read, in a few words.
        thresholds: of roles, by name, that are other than usual.
        entries: the measures that there are.

    Raises:
        SelectionError: a threshold of no role, or not between 0 and 1.
    """
    estimates = _with_variability(found.heads.estimate(), survey.variability(found.places))
    taken = measures.named((*found.measures, "variability"), entries, found.about.max_offset)
    controls = _controls(found)
    every = roles.with_thresholds(measures.rules_of(taken), thresholds or {})
    n_layers, n_heads = estimates.value.shape[:2]
    rows = found.heads.counts[:, :, 0]
    counts = roles.Counts(rows=rows[0], sentences=tally.effective(rows), different=_different(found))
    threshold = (thresholds or {}).get(roles.RELATION, relations.THRESHOLD)
    candidates: dict[str, tuple[Relation, ...]] = {}
    if found.relations is not None:
        candidates = relations.candidates(found.relations, _untrained(found), threshold, different=counts.different)
    related = relations.roles_of(candidates, threshold)
    similarity = _similarity(found)
    clusters = None if similarity is None else cut(similarity.linkage, min(CLUSTERS, n_layers * n_heads))

    def profile(layer: int, head: int) -> HeadProfile:
        own = roles.roles_of(
            layer, head, measures=taken, estimates=estimates, controls=controls, counts=counts, every=every
        )
        return HeadProfile(
            layer=layer,
            head=head,
            roles=roles.clearest_first((*own, *related.get((layer, head), ()))),
            cluster=None if clusters is None else int(clusters[layer * n_heads + head]),
        )

    return HeadComparison(
        model=found.about.model,
        kind=found.about.kind,  # type: ignore[arg-type]  # it was written from one
        corpus=corpus,
        specials=found.about.specials,
        n_sentences=found.n_sentences,
        n_tokens=found.n_tokens,
        n_bad=found.n_bad,
        bad=found.bad,
        differences=found.worst,
        measures=taken,
        estimates=estimates,
        controls=controls,
        heads=tuple(profile(layer, head) for layer, head in np.ndindex(n_layers, n_heads)),
        similarity=similarity,
        examples=_examples(found),
        relations=relations.best_of(candidates),
        notes=_notes(found),
    )


def _with_variability(estimates: Estimates, more: Estimates) -> Estimates:
    def both(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        return np.concatenate([one, other[:, :, None]], axis=2)

    return Estimates(
        value=both(estimates.value, more.value), low=both(estimates.low, more.low), high=both(estimates.high, more.high)
    )


def _controls(found: Survey) -> dict[str, Estimates]:
    """The controls as estimates of the same measures; NaN where one is not taken."""
    keys = list(found.sample.texts)
    controls = {}
    for name, (sums, counts) in found.sample.controls.items():
        counted = counts[:, :, None]
        taken = tally.tallied(sums, counted, keys).estimate()
        controls[name] = _with_variability(taken, _nothing(taken.value.shape[:2]))
    fixed = found.offsets.estimate()  # (offset, share)
    if np.isfinite(fixed.value).any():
        shape = (*found.heads.sums.shape[1:3], len(found.measures) + 1)
        best = _nothing(shape)
        for number in range(fixed.value.shape[1]):  # shares come first
            if np.isfinite(fixed.value[:, number]).any():
                offset = int(np.nanargmax(fixed.value[:, number]))
                for ends, which in ((best.value, fixed.value), (best.low, fixed.low), (best.high, fixed.high)):
                    ends[:, :, number] = which[offset, number]
        controls[OFFSET] = best
    return controls


def _untrained(found: Survey) -> structure.Relations | None:
    """What heads of random weights find of the words that belong together; None where it is not known."""
    if found.relations is None or not found.sample.found:
        return None
    return structure.tallied(found.sample.found.items(), *found.heads.sums.shape[1:3])


def _nothing(shape: Sequence[int]) -> Estimates:
    return Estimates(value=np.full(shape, np.nan), low=np.full(shape, np.nan), high=np.full(shape, np.nan))


def _similarity(found: Survey) -> HeadSimilarity | None:
    if found.similarity is None or found.similarity.n_rows == 0:
        return None
    distances = found.similarity.distances()
    plane = scaled_to_two(distances)
    return HeadSimilarity(
        divergences=found.similarity.mean(), linkage=cluster(distances), points=plane.points, kept=sum(plane.shares)
    )


def _examples(found: Survey) -> dict[tuple[str, str], tuple[Example, ...]]:
    examples = {}
    scores, keys, texts = found.examples.scores, found.examples.keys, found.examples.texts
    for layer, head, measure in np.ndindex(scores.shape[:3]):
        best = [
            Example(text=texts[int(key)], score=float(score))
            for score, key in zip(scores[layer, head, measure], keys[layer, head, measure], strict=True)
            if np.isfinite(score)
        ]
        if best:
            examples[f"{layer}.{head}", found.measures[measure]] = tuple(best)
    own = {key: text for key, (text, _) in found.sample.texts.items()}
    return examples | relations.examples_of(found.sample.own, own)


def _different(found: Survey) -> int:
    """How many different sentences there are, as far as the sample tells: of so few it holds all."""
    n = len(found.sample.texts)
    return n if n < found.sample.size else found.n_sentences


def _notes(found: Survey) -> tuple[Note, ...]:
    notes = []
    if not found.heads.counts[0].any():
        notes.append(Note("nothing_measured"))
    n = _different(found)
    if n < roles.FEWEST_DIFFERENT:
        notes.append(Note.of("few_sentences", different=n, lines=found.n_sentences))
    if found.about.specials == "exclude":
        notes.append(Note("specials_excluded"))
    if found.n_cut:
        notes.append(Note.of("sentences_cut", n=found.n_cut))
    if found.n_bad:
        notes.append(Note.of("bad_lines", n=found.n_bad))
    if found.relations is not None:
        if not found.sample.found:
            notes.append(Note("relations_uncontrolled"))
        notes += structure.notes(found.relations)
    return tuple(notes)
