"""Surveys: sums and a few sentences, collected from a corpus that streams by. Two surveys can be merged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np
from jaxtyping import Float, Float64, UInt64

from attnviz.errors import RecordError
from attnviz.heads import relations
from attnviz.heads.relations import LinkHits, Relations
from attnviz.heads.tally import Tally
from attnviz.text.corpus import Annotation, BadLine

EXAMPLES = 3  # number of sentences kept per head and measure: those with the highest score
BAD_LINES = 20  # number of bad lines kept with line number and reason; all of them are counted


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Examples:
    """The sentences with the highest score, for each head and measure."""

    # the measure on each sentence, the largest first; minus infinity if there is no sentence
    scores: Float64[np.ndarray, "layer head measure example"]
    keys: UInt64[np.ndarray, "layer head measure example"]  # the key of the sentence
    texts: Mapping[int, str]  # the sentences, by their keys


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """The model of a survey and its settings, which two surveys must share to be merged."""

    model: str  # the name of the model
    weights: str  # the digest of its weights
    kind: str  # the kind of attention
    sample: int  # the number of sentences that controls are measured on

    def words(self) -> dict[str, str]:
        """Return the settings under the names that messages use, in alphabetical order."""
        return {
            "kind": self.kind,
            "model": self.model,
            "sample": str(self.sample),
            "weights": self.weights,
        }


PerSentence: TypeAlias = tuple[Float[np.ndarray, "_ _ _ _"], Float[np.ndarray, "_ _ _"]]
"""Sums (sentence, layer, head, measure) and counts (sentence, layer, measure). For several models, the sums have the
layers of all models one after another; the counts are those of one model, since they are equal."""
OWN = "own"  # the key in `Sample.controls` of the measures of the model itself, without any control


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """A sample of sentences: those with the smallest keys, so that the same corpus always gives the same sample."""

    size: int  # the largest number of sentences
    texts: Mapping[int, tuple[str, str | None]]  # the sentences, by their keys
    # names of the measures that may give a role; `OWN` and random weights are stored for these only
    roles: tuple[str, ...] = ()
    # the measures under each control, by its name, and without a control (`OWN`)
    controls: Mapping[str, PerSentence] = field(default_factory=dict)
    # the sentences for the controls of relations, drawn by `relations.sample_links`
    linked: Mapping[int, tuple[str, str | None]] = field(default_factory=dict)
    # the annotation of these sentences: which words belong together
    annotated: Mapping[int, Annotation] = field(default_factory=dict)
    # the links of these sentences that heads of random weights find; the layers of all seeds one after another
    found: Mapping[int, LinkHits] = field(default_factory=dict)
    # the links of these sentences that the model's own heads find, for examples
    own: Mapping[int, LinkHits] = field(default_factory=dict)
    no_random: str = ""  # why the model could not be built with random weights; empty if it could


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Survey:
    """All measurements of a corpus so far."""

    about: About  # the settings that two surveys must share to be merged
    measures: tuple[str, ...]  # the names of the measures, shares first
    heads: Tally  # the sums of each measure for each head
    offsets: Tally  # the same sums for imaginary heads that always attend to one fixed offset
    examples: Examples  # the sentences with the highest scores
    sample: Sample  # the sentences that controls are measured on
    # the links between words that heads find; None if no sentence is annotated
    relations: Relations | None = None
    n_tokens: int = 0  # number of tokens, special tokens included
    n_cut: int = 0  # number of sentences that were cut because they are too long
    n_bad: int = 0  # number of lines that could not be used
    bad: tuple[tuple[int, str], ...] = ()  # the first of these lines: number and reason
    worst: tuple[float, ...] = ()  # the largest difference from the model's own output, per layer
    # whether the weights themselves were verified, or only their products with the values
    proves: Literal["weights", "output"] = "weights"
    against: Against | None = None  # a second model on the same sentences; None without one

    @property
    def n_sentences(self) -> int:
        """The number of sentences measured."""
        return self.heads.n_sentences

    def with_bad(self, bad: Sequence[BadLine], n_bad: int) -> Survey:
        """Return the survey with `n_bad` more unusable lines, of which `bad` are the first."""
        lines = [(line.number, line.reason) for line in bad]
        lines = sorted((*self.bad, *lines))[:BAD_LINES]
        return replace(self, n_bad=self.n_bad + n_bad, bad=tuple(lines))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Against:
    """A second model, measured on the same sentences as the first."""

    survey: Survey
    divergences: Tally  # between the rows of each head in both models, summed over sentences

    def merge(self, other: Against) -> Against:
        """Merge the measurements of two parts of a corpus."""
        return Against(
            survey=merge(self.survey, other.survey),
            divergences=self.divergences.merge(other.divergences),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """The survey of a part of a corpus; without a single sentence it has only lines that could not be used."""

    survey: Survey | None = None
    # the first lines that could not be used and are not in the survey, and how many there are
    bad: tuple[BadLine, ...] = ()
    n_bad: int = 0

    def merge(self, later: Part) -> Part:
        """Return this part with the lines that follow it."""
        measured = self.survey or later.survey
        if self.survey is not None and later.survey is not None:
            measured = merge(self.survey, later.survey)
        bad, n_bad = (*self.bad, *later.bad)[:BAD_LINES], self.n_bad + later.n_bad
        if measured is None:
            return Part(bad=bad, n_bad=n_bad)
        return Part(survey=measured.with_bad(bad, n_bad) if n_bad else measured)


def merge(one: Survey, other: Survey) -> Survey:
    """Merge the surveys of two corpora.

    Raises RecordError: they have different settings, measures or shapes; the message says which.
    """
    _check_same_kind(one, other)
    link_counts = one.relations or other.relations
    if one.relations is not None and other.relations is not None:
        link_counts = relations.merge(one.relations, other.relations)
    return replace(
        one,
        heads=one.heads.merge(other.heads),
        offsets=one.offsets.merge(other.offsets),
        examples=merge_examples(one.examples, other.examples),
        sample=merge_samples(one.sample, other.sample),
        relations=link_counts,
        n_tokens=one.n_tokens + other.n_tokens,
        n_cut=one.n_cut + other.n_cut,
        n_bad=one.n_bad + other.n_bad,
        bad=(*one.bad, *other.bad)[:BAD_LINES],
        worst=tuple(map(max, one.worst or other.worst, other.worst or one.worst)),
        proves=max(one.proves, other.proves, key=("weights", "output").index),
        against=one.against and other.against and one.against.merge(other.against),
    )


def _check_same_kind(one: Survey, other: Survey) -> None:
    """Raise RecordError if two surveys cannot be merged."""
    settings, other_settings = one.about.words(), other.about.words()
    differing = [
        f"{name}: {value} and {other_settings[name]}"
        for name, value in settings.items()
        if other_settings[name] != value
    ]
    if differing:
        raise RecordError(f"these cannot be put together, they differ in {'; '.join(differing)}")
    if one.measures != other.measures or one.heads.sums.shape != other.heads.sums.shape:
        raise RecordError("these cannot be put together: they hold other measures, layers or heads")
    if (one.against is None) != (other.against is None):
        raise RecordError("these cannot be put together: only one was compared with another model")


def merge_examples(one: Examples, other: Examples) -> Examples:
    """Return the sentences with the highest scores of both; if scores are equal, the smaller key comes first."""
    scores = np.concatenate([one.scores, other.scores], axis=-1)
    keys = np.concatenate([one.keys, other.keys], axis=-1)
    # A sentence that occurs twice is only one example: its later copies get no score.
    n_examples = keys.shape[-1]
    is_earlier = np.tri(n_examples, k=-1, dtype=bool)
    is_copy = (keys[..., :, None] == keys[..., None, :]) & is_earlier
    scores = np.where(is_copy.any(axis=-1), -np.inf, scores)
    order = np.lexsort((keys, -scores), axis=-1)[..., :EXAMPLES]
    return _examples(
        np.take_along_axis(scores, order, -1),
        np.take_along_axis(keys, order, -1),
        {**one.texts, **other.texts},
    )


def _examples(
    scores: Float64[np.ndarray, "layer head measure some"],
    keys: UInt64[np.ndarray, "layer head measure some"],
    texts: Mapping[int, str],
) -> Examples:
    """Return examples with only the texts that are needed."""
    keys = np.where(np.isfinite(scores), keys, np.uint64(0))
    used_keys = set(keys.ravel().tolist())
    return Examples(
        scores=scores,
        keys=keys,
        texts={key: text for key, text in texts.items() if key in used_keys},
    )


def merge_samples(one: Sample, other: Sample) -> Sample:
    """Return the sentences with the smallest keys of both samples, with the controls that both have."""
    texts = dict(sorted({**one.texts, **other.texts}.items())[: one.size])
    controls = {}
    if texts:  # without sentences there are no controls
        for name in one.controls:
            if name in other.controls:
                # `one` comes last, so its entry wins if both samples have a sentence.
                by_key = _by_key(other, name) | _by_key(one, name)
                sums, counts = zip(*(by_key[key] for key in texts), strict=True)
                controls[name] = np.stack(sums), np.stack(counts)
    annotated = relations.sample_links((*one.annotated.items(), *other.annotated.items()))
    linked = {**one.linked, **other.linked}
    return Sample(
        size=one.size,
        texts=texts,
        roles=one.roles or other.roles,
        controls=controls,
        linked={key: linked[key] for key in annotated},
        annotated=annotated,
        found=_merge_hits(annotated, [(other.annotated, other.found), (one.annotated, one.found)]),
        own=_merge_hits(annotated, [(other.annotated, other.own), (one.annotated, one.own)]),
        no_random=one.no_random or other.no_random,
    )


def _by_key(sample: Sample, control: str) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Return the sums [layer, head, measure] and counts [layer, measure] of each sentence under a control."""
    sums, counts = sample.controls[control]
    return dict(zip(sample.texts, zip(sums, counts, strict=True), strict=True))


def _merge_hits(
    wanted: Mapping[int, Annotation],
    parts: Sequence[tuple[Mapping[int, Annotation], Mapping[int, LinkHits]]],
) -> dict[int, LinkHits]:
    """Return the hits of all wanted sentences, from the annotations and hits of parts; empty if one has no hits."""
    hits = {
        key: hits_of_part[key]
        for annotated, hits_of_part in parts
        for key, annotation in annotated.items()
        if key in hits_of_part and wanted.get(key) == annotation
    }
    return {key: hits[key] for key in wanted} if hits.keys() == wanted.keys() else {}


def examples_of(
    sums: Float64[np.ndarray, "sentence layer head measure"],
    counts: Float64[np.ndarray, "sentence layer measure"],
    keys: Sequence[int],
    texts: Sequence[str],
    enough: Float64[np.ndarray, " measure"],
) -> Examples:
    """Return the sentences of a batch with the highest scores, for each head and measure.

    `enough` is the number of rows that a measure must count in a sentence.
    """
    unique_keys, first_rows = np.unique(np.array(keys, dtype=np.uint64), return_index=True)
    sums, counts = sums[first_rows], counts[first_rows, :, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        scores = np.where(counts >= enough, sums / counts, -np.inf)
    ranked = []
    for _ in range(min(EXAMPLES, len(unique_keys))):
        # If scores are equal, argmax takes the first sentence, which has the smallest key.
        best = scores.argmax(axis=0)[None]
        ranked.append((np.take_along_axis(scores, best, 0)[0], unique_keys[best[0]]))
        np.put_along_axis(scores, best, -np.inf, 0)
    strongest, strongest_keys = (np.stack(values, axis=-1) for values in zip(*ranked, strict=True))
    return _examples(strongest, strongest_keys, dict(zip(keys, texts, strict=True)))
