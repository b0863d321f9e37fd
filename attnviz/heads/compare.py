"""From what was kept of a corpus to what each head does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from attnviz.heads import relations, roles, structure, survey, tally
from attnviz.heads.clusters import cluster, cut, scaled_to_two
from attnviz.heads.record import SHARES, Comparison, Estimate, Example, HeadProfile, Likeness, offsets_in
from attnviz.heads.survey import Survey

CLUSTERS = 8
"""Into how many clusters heads are put, where there are so many."""

FEW = 10
"""Intervals from fewer sentences are too narrow."""


def compare(found: Survey, *, corpus: str, thresholds: Mapping[str, float] | None = None) -> Comparison:
    """What each head does.

    Args:
        found: the survey of a corpus, with its controls.
        corpus: what was read, in a few words.
        thresholds: of roles, by name, that are other than usual.

    Raises:
        SelectionError: a threshold of no role, or not between 0 and 1.
    """
    estimates = _with_variability(found.heads.estimate(), survey.variability(found.places))
    measures = (*found.measures, "variability")
    controls = _controls(found)
    every = roles.with_thresholds(roles.kinds(offsets_in(found.measures)), thresholds or {})
    n_layers, n_heads = estimates.value.shape[:2]
    n_rows = found.heads.counts[0, :, 0]
    untrained = _untrained(found)
    related = {}
    if found.relations is not None:
        threshold = (thresholds or {}).get(roles.RELATION, relations.THRESHOLD)
        related = relations.roles_of(found.relations, untrained, threshold)
    likeness = _likeness(found)
    clusters = None if likeness is None else cut(likeness.linkage, min(CLUSTERS, n_layers * n_heads))
    heads = tuple(
        HeadProfile(
            layer=layer,
            head=head,
            roles=roles.clearest_first(
                (
                    *roles.roles_of(
                        layer,
                        head,
                        measures=measures,
                        estimates=estimates,
                        controls=controls,
                        n_rows=n_rows,
                        every=every,
                    ),
                    *related.get((layer, head), ()),
                )
            ),
            cluster=None if clusters is None else int(clusters[layer * n_heads + head]),
        )
        for layer in range(n_layers)
        for head in range(n_heads)
    )
    return Comparison(
        model=found.about["model"],
        kind=found.about["kind"],  # type: ignore[arg-type]  # it was written from one
        corpus=corpus,
        specials=found.about["special tokens"],
        n_sentences=found.n_sentences,
        n_tokens=found.n_tokens,
        n_bad=found.n_bad,
        bad=found.bad,
        proof=_proof(found),
        measures=measures,
        estimates=estimates,
        controls=controls,
        heads=heads,
        likeness=likeness,
        examples=_examples(found),
        relations=() if found.relations is None else structure.relations_of(found.relations, untrained),
        notes=_notes(found),
    )


def _with_variability(estimates: Estimate, more: Estimate) -> Estimate:
    def both(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        return np.concatenate([one, other[:, :, None]], axis=2)

    return Estimate(
        value=both(estimates.value, more.value), low=both(estimates.low, more.low), high=both(estimates.high, more.high)
    )


def _controls(found: Survey) -> dict[str, Estimate]:
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
        for number, name in enumerate(SHARES):
            if np.isfinite(fixed.value[:, number]).any():
                offset = int(np.nanargmax(fixed.value[:, number]))
                for ends, which in ((best.value, fixed.value), (best.low, fixed.low), (best.high, fixed.high)):
                    ends[:, :, found.measures.index(name)] = which[offset, number]
        controls[roles.OFFSET] = best
    return controls


def _untrained(found: Survey) -> structure.Relations | None:
    """What heads of random weights find of the words that belong together; None where it is not known."""
    if found.relations is None or not found.sample.found:
        return None
    return structure.tallied(found.sample.found.items(), *found.heads.sums.shape[1:3])


def _nothing(shape: Sequence[int]) -> Estimate:
    return Estimate(value=np.full(shape, np.nan), low=np.full(shape, np.nan), high=np.full(shape, np.nan))


def _likeness(found: Survey) -> Likeness | None:
    if found.likeness is None or found.likeness.n_rows == 0:
        return None
    distances = found.likeness.distances()
    plane = scaled_to_two(distances)
    return Likeness(
        divergences=found.likeness.mean(), linkage=cluster(distances), points=plane.points, kept=sum(plane.shares)
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


def _proof(found: Survey) -> str:
    layers = len(found.worst)
    largest = max(found.worst)
    return (
        f"verified: max difference {f'{largest:.1e}' if largest else '0'} over {layers} layer{'s' * (layers != 1)}, "
        f"all {found.n_sentences:,} sentences" if found.n_sentences != 1 else
        f"verified: max difference {f'{largest:.1e}' if largest else '0'} over {layers} layer{'s' * (layers != 1)}"
    )  # fmt: skip


def _different(found: Survey) -> int:
    """How many different sentences there are, as far as the sample tells: of so few it holds all."""
    n = len(found.sample.texts)
    return n if n < found.sample.size else found.n_sentences


def _notes(found: Survey) -> tuple[str, ...]:
    notes = []
    if not found.heads.counts[0].any():
        notes.append("nothing was measured: no token has more than one token to look at")
    n = _different(found)
    times = "" if n == found.n_sentences else f", in {found.n_sentences:,} lines"
    if n == 1:
        notes.append(f"one sentence{times}: no interval, so no role is established")
    elif n < FEW:
        notes.append(f"{n} different sentences{times}: intervals from so few are too narrow")
    if found.about["special tokens"] == "exclude":
        notes.append("special tokens left out: what remains of each row sums to 1 again, as if they were masked")
    if found.n_cut:
        are, go = ("sentence is", "it goes") if found.n_cut == 1 else ("sentences are", "they go")
        notes.append(f"{found.n_cut:,} {are} longer than the model takes: cut, and measured as far as {go}")
    if found.n_bad:
        notes.append(f"{found.n_bad:,} line{'s' * (found.n_bad != 1)} could not be used")
    if found.relations is not None:
        if not found.sample.found:
            notes.append("no control of random weights was taken of relations between words: they make no role")
        notes += structure.notes(found.relations)
    return tuple(notes)
