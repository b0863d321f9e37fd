"""What heads find of a sentence's structure: for each word, is the word it belongs to the one a head looks at most?

As in Clark et al. 2019, "What does BERT look at?", section 4: attention to a word in several pieces is the sum over the
pieces, attention from it their mean. A head's guess for a word is, of the other words, the one that this word looks at
most; or, the other way round, the one that looks most at this word. A fixed offset guesses the word so far away.

All is counted in two halves of the sentences, told apart by their keys: the best of many heads is chosen on one half
and scored on the other, so that being the best flatters nobody. Counts are whole numbers: parts of a corpus merge
exactly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int64, Real

from attnviz.attention import Note
from attnviz.heads import tally
from attnviz.heads.measures import MAX_OFFSET, offsets_up_to
from attnviz.text.corpus import Annotation

WAYS = 2  # a head guesses by where a word looks, and by what looks at the word
FORWARD, REVERSE = range(WAYS)
DISTANCES = tuple(offset for offset in offsets_up_to(MAX_OFFSET) if offset)
"""The fixed offsets that heads are held against, in words."""
HALVES = 2
CHOOSE, SCORE = range(HALVES)
GROUPS = tally.GROUPS // HALVES  # groups of sentences in each half
LINKED = 10  # controls of a relation are taken on so many sentences of each half that have it
MOST_RELATIONS = 128
"""A corpus with more relations than this is counted for the first of them by name, so that memory has an end.

Whichever part of a corpus a name comes up in, it is then among the first of that part too: nothing depends on the
order."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinkHits:
    """Which links of one sentence each head finds."""

    names: tuple[str, ...]  # the relation of each link
    # whether the head's guess for the word that depends is right, by where that word looks and by what looks at it
    hits: Bool[np.ndarray, "link 2 layer head"]
    # how many words after the word that depends the other one stands; negative where it is before
    distances: Int64[np.ndarray, " link"]
    # the relations of links that no head could be asked for: one of their words has no token of its own
    lost: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Relations:
    """How often heads find each relation, by halves of the sentences: of all of a half first, then of each group."""

    names: tuple[str, ...]  # of the relations, sorted
    hits: Real[np.ndarray, "half group relation 2 layer head"]  # how often a head is right
    offsets: Real[np.ndarray, "half group relation offset"]  # how often the right word is at each of `DISTANCES`
    counts: Real[np.ndarray, "half group relation"]  # how often the relation comes up
    lost: Int64[np.ndarray, " relation"]  # how many of its links lack a word with a token of its own
    n_links: int  # all links, those lost and those of relations beyond `MOST_RELATIONS` too
    n_other: int = 0  # sentences whose links are between other words than attention is

    @property
    def n_uncounted(self) -> int:
        """Links of relations beyond `MOST_RELATIONS`."""
        return self.n_links - int(self.lost.sum()) - int(self.counts[:, 0].sum())


def count_links(found: Iterable[tuple[int, LinkHits]], n_layers: int, n_heads: int) -> Relations:
    """What some sentences say."""
    linked = [(key, one) for key, one in found if one.names or one.lost]
    names = tuple(sorted({name for _, one in linked for name in (*one.names, *one.lost)})[:MOST_RELATIONS])
    at = {name: number for number, name in enumerate(names)}
    shape = (HALVES, GROUPS + 1, len(names))
    hits = np.zeros((*shape, WAYS, n_layers, n_heads), dtype=np.int32)
    offsets, counts = np.zeros((*shape, len(DISTANCES)), dtype=np.int32), np.zeros(shape, dtype=np.int32)
    for key, one in linked:
        kept = [link for link, name in enumerate(one.names) if name in at]
        where = half_of(key), 1 + key // HALVES % GROUPS, [at[one.names[link]] for link in kept]
        np.add.at(counts, where, 1)
        np.add.at(hits, where, one.hits[kept])
        np.add.at(offsets, where, one.distances[kept, None] == np.array(DISTANCES))
    for values in (hits, offsets, counts):
        values[:, 0] = values.sum(axis=1)
    lost = np.bincount([at[name] for _, one in linked for name in one.lost if name in at], minlength=len(names))
    return Relations(
        names=names, hits=hits, offsets=offsets, counts=counts, lost=lost,
        n_links=sum(len(one.names) + len(one.lost) for _, one in linked),
    )  # fmt: skip


def sample_links(sentences: Iterable[tuple[int, Annotation]]) -> dict[int, Annotation]:
    """The sentences that controls of relations are taken of: of each relation, in each half, the smallest keys.

    Those of two parts together, drawn again, are those of the whole; of a sentence said to be built in two ways,
    always one.
    """
    annotated: dict[int, Annotation] = {}
    for key, one in sentences:
        if annotated.setdefault(key, one) != one:
            annotated[key] = min(annotated[key], one, key=repr)
    taken = Counter[tuple[str, int]]()
    kept = {}
    for key in sorted(annotated):
        places = {(link.relation, half_of(key)) for link in annotated[key].links}
        if any(taken[place] < LINKED for place in places):
            kept[key] = annotated[key]
        taken.update(places)
    return kept


def half_of(key: int) -> int:
    """The half that a sentence belongs to."""
    return key % HALVES


def merge(one: Relations, other: Relations) -> Relations:
    """Both together: exactly what all of their sentences say."""
    names = tuple(sorted({*one.names, *other.names})[:MOST_RELATIONS])
    both = [_under_names(which, names) for which in (one, other)]
    hits, offsets, counts, lost = (first + second for first, second in zip(*both, strict=True))
    return Relations(
        names=names, hits=hits, offsets=offsets, counts=counts, lost=lost, n_links=one.n_links + other.n_links,
        n_other=one.n_other + other.n_other,
    )  # fmt: skip


def notes(found: Relations) -> Iterator[Note]:
    """What a reader of these numbers should know."""
    if n_lost := int(found.lost.sum()):
        yield Note.of("relations_lost", n=n_lost, total=found.n_links)
    there = found.counts[:, 0] > 0
    if n_halved := int((there.any(axis=0) & ~there.all(axis=0)).sum()):
        yield Note.of("relations_in_one_half", n=n_halved)
    if found.n_uncounted:
        yield Note.of("relations_uncounted", most=MOST_RELATIONS, n=found.n_uncounted)
    if found.n_other:
        yield Note.of("relations_of_other_words", n=found.n_other)


def _under_names(found: Relations, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    if found.names == tuple(names):
        return found.hits, found.offsets, found.counts, found.lost
    at = {name: number for number, name in enumerate(names)}
    kept = [name in at for name in found.names]
    places = [at[name] for name in found.names if name in at]

    def spread(values: np.ndarray, axis: int) -> np.ndarray:
        shape = (*values.shape[:axis], len(names), *values.shape[axis + 1 :])
        wide = np.zeros(shape, dtype=values.dtype)
        wide[(slice(None),) * axis + (places,)] = values.compress(kept, axis=axis)
        return wide

    return spread(found.hits, 2), spread(found.offsets, 2), spread(found.counts, 2), spread(found.lost, 0)
