"""Sums and a few sentences, kept of a corpus while it streams by; two surveys can be merged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from jaxtyping import Bool, Float, Float64, UInt64

from attnviz.errors import RecordError
from attnviz.heads import relations, tally
from attnviz.heads.record import Estimates
from attnviz.heads.relations import LinkHits, Relations
from attnviz.heads.similarity import Divergences
from attnviz.heads.tally import Tally
from attnviz.text.corpus import Annotation, BadLine

GROUPS = 8  # tables of positions are kept for so many groups of sentences, so that their spread can be seen
EXAMPLES = 3  # sentences kept for each head and measure: those where it is strongest
BAD_LINES = 20  # bad lines of which number and reason are kept; all are counted


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Places:
    """Weights by place, among the first tokens of sentences: a place is a row and a column."""

    # of the weights, by group of sentences
    sums: Float64[np.ndarray, "group layer head row column"]
    squares: Float64[np.ndarray, "group layer head row column"]  # of their squares
    counts: Float64[np.ndarray, "group layer row column"]  # how many sentences have the place

    def __add__(self, other: Places) -> Places:
        """Both together."""
        return Places(
            sums=self.sums + other.sums,
            squares=self.squares + other.squares,
            counts=self.counts + other.counts,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Examples:
    """For each head and measure the sentences where it is strongest."""

    # the measure on that sentence, the largest first; minus infinity where there is none
    scores: Float64[np.ndarray, "layer head measure example"]
    keys: UInt64[np.ndarray, "layer head measure example"]  # which sentence
    texts: Mapping[int, str]  # the sentences, by their keys


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """The settings that two surveys must share to be merged."""

    model: str  # its name
    weights: str  # their digest
    kind: str  # which attention
    sample: int  # how many sentences controls are taken of

    def words(self) -> dict[str, str]:
        """Each of them as messages name it, in alphabetical order."""
        return {
            "kind": self.kind,
            "model": self.model,
            "sample": str(self.sample),
            "weights": self.weights,
        }


PerSentence: TypeAlias = tuple[Float[np.ndarray, "_ _ _ _"], Float[np.ndarray, "_ _ _"]]
"""Sums (sentence, layer, head, measure) and counts (sentence, layer, measure); of several models the layers of all one
after another, and the counts of any of them."""
OWN = "own"  # in a sample, what the model's own heads do, not otherwise but as they are


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """Sentences drawn by their keys, the smallest: of the same corpus always the same ones."""

    size: int  # how many at most
    texts: Mapping[int, tuple[str, str | None]]  # the sentences, by their keys
    # measures that may give one: of these alone are `OWN` and the random weights of seeds
    roles: tuple[str, ...] = ()
    # measures taken otherwise, by name, and `OWN`
    controls: Mapping[str, PerSentence] = field(default_factory=dict)
    # the sentences that the controls of relations are taken of, as `relations.sample_links` draws them
    linked: Mapping[int, tuple[str, str | None]] = field(default_factory=dict)
    # of these, the words that belong together
    annotated: Mapping[int, Annotation] = field(default_factory=dict)
    # likewise what heads of random weights find of that, the layers of all seeds in a row
    found: Mapping[int, LinkHits] = field(default_factory=dict)
    # likewise what the model's own find, for examples
    own: Mapping[int, LinkHits] = field(default_factory=dict)
    no_random: str = ""  # why no random weights could be made of the model; empty where they could


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Survey:
    """All that is known of a corpus so far."""

    about: About  # what makes two surveys ones of the same kind
    measures: tuple[str, ...]  # the names of the measures, those of shares first
    heads: Tally  # each measure's sums for each head
    offsets: Tally  # the same for heads made up that always look at one fixed offset: its one layer
    places: Places  # for how far a pattern is position alone
    examples: Examples  # the strongest sentences
    sample: Sample  # the sentences that controls are taken of
    similarity: Divergences  # of all pairs of heads
    # what heads find of words that belong together; None where none is said to
    relations: Relations | None = None
    n_tokens: int = 0  # tokens read, special ones too
    n_cut: int = 0  # sentences of which the model took the first tokens only
    n_bad: int = 0  # lines that could not be used
    bad: tuple[tuple[int, str], ...] = ()  # the first of them: number and reason
    worst: tuple[float, ...] = ()  # the largest difference of each layer's receipt
    tolerance: float = 0.0  # how much of it is accepted
    dtype: str = ""  # the model's number format
    against: Against | None = None  # a second model on the same sentences; None without one

    @property
    def n_sentences(self) -> int:
        """The number of sentences read."""
        return self.heads.n_sentences

    def with_bad(self, bad: Sequence[BadLine], n_bad: int) -> Survey:
        """The survey with so many more unusable lines, the first of which are `bad`."""
        named = [(line.number, line.reason) for line in bad]
        return replace(self, n_bad=self.n_bad + n_bad, bad=(*self.bad, *named)[:BAD_LINES])


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


def same_sentences(one: Survey, other: Survey) -> bool:
    """Whether both were measured on the same sentences, as often: how many each group has depends on their words."""
    if one.measures != other.measures or "sink" not in one.measures:
        return False
    at = one.measures.index("sink")  # counted once a sentence
    drawn, drawn_after = (found.heads.counts[:, 0, 0, at] for found in (one, other))
    return one.n_sentences == other.n_sentences and np.array_equal(drawn, drawn_after)


def merge(one: Survey, other: Survey) -> Survey:
    """The survey of both corpora together. Raises RecordError: they are not of the same kind; it says what differs."""
    _check_same_kind(one, other)
    linked = one.relations or other.relations
    if one.relations is not None and other.relations is not None:
        linked = relations.merge(one.relations, other.relations)
    return replace(
        one,
        heads=one.heads.merge(other.heads),
        offsets=one.offsets.merge(other.offsets),
        places=one.places + other.places,
        examples=merge_examples(one.examples, other.examples),
        sample=merge_samples(one.sample, other.sample),
        similarity=one.similarity + other.similarity,
        relations=linked,
        n_tokens=one.n_tokens + other.n_tokens,
        n_cut=one.n_cut + other.n_cut,
        n_bad=one.n_bad + other.n_bad,
        bad=(*one.bad, *other.bad)[:BAD_LINES],
        worst=tuple(map(max, one.worst or other.worst, other.worst or one.worst)),
        tolerance=max(one.tolerance, other.tolerance),
        against=one.against and other.against and one.against.merge(other.against),
    )


def _check_same_kind(one: Survey, other: Survey) -> None:
    here, there = one.about.words(), other.about.words()
    differing = [
        f"{name}: {value} and {there[name]}" for name, value in here.items() if there[name] != value
    ]
    if differing:
        raise RecordError(f"these cannot be put together, they differ in {'; '.join(differing)}")
    if one.measures != other.measures or one.heads.sums.shape != other.heads.sums.shape:
        raise RecordError("these cannot be put together: they hold other measures, layers or heads")
    if (one.against is None) != (other.against is None):
        raise RecordError("these cannot be put together: only one was compared with another model")


def merge_examples(one: Examples, other: Examples) -> Examples:
    """The strongest of both; of equally strong ones, those of the smaller key."""
    scores = np.concatenate([one.scores, other.scores], axis=-1)
    keys = np.concatenate([one.keys, other.keys], axis=-1)
    again = (keys[..., :, None] == keys[..., None, :]) & np.tril(
        np.ones((keys.shape[-1],) * 2, dtype=bool), -1
    )
    # a sentence that comes twice is one example
    scores = np.where(again.any(axis=-1), -np.inf, scores)
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
    keys = np.where(np.isfinite(scores), keys, np.uint64(0))
    kept = set(keys.ravel().tolist())
    return Examples(
        scores=scores, keys=keys, texts={key: text for key, text in texts.items() if key in kept}
    )


def merge_samples(one: Sample, other: Sample) -> Sample:
    """The sentences of the smallest keys of both, with the controls that both have taken."""
    texts = dict(sorted({**one.texts, **other.texts}.items())[: one.size])
    at = {key: (which, row) for which in (other, one) for row, key in enumerate(which.texts)}
    controls = {}
    # of no sentence there are none
    for name in [name for name in one.controls if name in other.controls and texts]:
        parts = [(at[key][0].controls[name], at[key][1]) for key in texts]
        sums, counts = (np.stack([part[side][row] for part, row in parts]) for side in (0, 1))
        controls[name] = sums, counts
    said = relations.sample_links((*one.annotated.items(), *other.annotated.items()))
    linked = {**one.linked, **other.linked}
    return Sample(
        size=one.size,
        texts=texts,
        roles=one.roles or other.roles,
        controls=controls,
        linked={key: linked[key] for key in said},
        annotated=said,
        found=_relations_found_by(
            said, [(other.annotated, other.found), (one.annotated, one.found)]
        ),
        own=_relations_found_by(said, [(other.annotated, other.own), (one.annotated, one.own)]),
        no_random=one.no_random or other.no_random,
    )


def _relations_found_by(
    said: Mapping[int, Annotation],
    parts: Sequence[tuple[Mapping[int, Annotation], Mapping[int, LinkHits]]],
) -> dict[int, LinkHits]:
    found = {
        key: there[key]
        for annotated, there in parts
        for key, one in annotated.items()
        if key in there and said.get(key) == one
    }
    return {key: found[key] for key in said} if found.keys() == said.keys() else {}


def examples_of(
    sums: Float64[np.ndarray, "sentence layer head measure"],
    counts: Float64[np.ndarray, "sentence layer measure"],
    keys: Sequence[int],
    texts: Sequence[str],
    enough: Float64[np.ndarray, " measure"],
) -> Examples:
    """Sentences as examples, each of every head."""
    once, first = np.unique(np.array(keys, dtype=np.uint64), return_index=True)
    sums, counts = sums[first], counts[first, :, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        scores = np.where(counts >= enough, sums / counts, -np.inf)
    found = []
    for _ in range(min(EXAMPLES, len(once))):
        # of equally strong ones the first, which has the smallest key
        at = scores.argmax(axis=0)[None]
        found.append((np.take_along_axis(scores, at, 0)[0], once[at[0]]))
        np.put_along_axis(scores, at, -np.inf, 0)
    strongest, which = (np.stack(some, axis=-1) for some in zip(*found, strict=True))
    return _examples(strongest, which, dict(zip(keys, texts, strict=True)))


def places_of(
    corner: Float[np.ndarray, "sentence layer head row column"],
    seen: Bool[np.ndarray, "sentence layer row column"],
    keys: Sequence[int],
) -> Places:
    """The weights of sentences by place."""
    sums, squares = np.zeros((2, GROUPS, *corner.shape[1:]))
    counts = np.zeros((GROUPS, *seen.shape[1:]))
    for key, weights, there in zip(keys, corner, seen, strict=True):
        group = key % GROUPS
        sums[group] += weights
        squares[group] += np.square(weights, dtype=np.float64)
        counts[group] += there
    return Places(sums=sums, squares=squares, counts=counts)


def variability(places: Places) -> Estimates:
    """Return how far a head's pattern changes with the words: 0 where position alone makes it.

    The variance of a weight over sentences, summed over places, as a share of the mean square; both weighed by how many
    sentences have the place. Its interval is that of a jackknife that leaves out one group of sentences at a time.

    Source: after Vig and Belinkov 2019, "Analyzing the Structure of Attention in a Transformer Language Model", section
    4.3 (attention variability), with squares in place of absolute differences, so that it is made of sums.
    """
    return tally.interval(_without_each(places))


def _without_each(places: Places) -> Float64[np.ndarray, "group layer head"]:
    """Return how far patterns change over all groups, then without each; NaN without an empty one."""
    chosen = np.concatenate([np.ones((1, len(places.counts))), 1 - np.eye(len(places.counts))])
    n, total, squares = (
        np.tensordot(chosen, values, 1)
        for values in (places.counts[:, :, None], places.sums, places.squares)
    )
    twice = n > 1  # (group, L, 1, row, column)
    with np.errstate(invalid="ignore", divide="ignore"):
        varied = np.where(twice, (squares - total**2 / n) * n / (n - 1), 0.0).sum(axis=(3, 4))
        share: np.ndarray = np.clip(
            varied / np.where(twice, squares, 0.0).sum(axis=(3, 4)), 0.0, 1.0
        )
    share[1:][~places.counts.any(axis=(1, 2, 3))] = np.nan
    return share
