"""The relations between words that heads find, and the roles that follow.

For each word, does a head attend most to the word that it belongs to? The method is that of Clark et al. 2019, "What
does BERT look at?", section 4: attention to a word of several pieces is the sum over the pieces, attention from it is
the mean. A head's guess for a word is the other word that this word attends to most; in the opposite direction, it is
the other word that attends most to this word. A fixed offset guesses the word at that offset.

Everything is counted separately in two halves of the sentences, which are divided by their keys. The heads of a
relation are chosen on one half and scored on the other, and so is the best head of random weights. The best of many
would otherwise get too high a score. The best fixed offset is that of either half, whichever scores more. Counts are
integers, so that parts of a corpus merge exactly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int64, Real

from attnviz.attention import Note
from attnviz.heads import tally
from attnviz.heads.measures import OFFSET, OFFSETS, RELATION, UNTRAINED, RoleRule
from attnviz.heads.record import Control, Example, Relation, Role
from attnviz.heads.relation_words import HEAD_WORDS, RELATIONS
from attnviz.heads.roles import best_of_seeds, doubt
from attnviz.text.corpus import Annotation, universal
from attnviz.text.messages import N_, Message

WAYS = 2  # directions: the word that this word attends to most; the word that attends most to it
FORWARD, REVERSE = range(WAYS)
DISTANCES = np.array([offset for offset in OFFSETS if offset])
"""The fixed offsets that heads are compared with, in words."""
HALVES = 2  # a sentence belongs to the half that is the remainder of its key
CHOOSE, SCORE = range(HALVES)
HALF_GROUPS = tally.GROUPS // HALVES  # groups of sentences in each half
WHOLE = 0  # the index that counts all groups of a half together; single groups begin at 1
LINKED = 10  # number of sentences per half with a relation, for its controls


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinkHits:
    """The links of one sentence, and the heads that find them."""

    names: tuple[str, ...]  # the relation of each link
    # whether the guess of a head for the dependent word is right, in each direction
    hits: Bool[np.ndarray, "link 2 layer head"]
    # position of the governor after the dependent word, in words; negative if it comes before
    distances: Int64[np.ndarray, " link"]
    # the relations of links that cannot be tested, because one of their words has no token of its own
    lost: tuple[str, ...]


class LinkedSentence(NamedTuple):
    """A sentence whose words are linked, and the heads that find the links."""

    text: str
    annotation: Annotation
    found: LinkHits


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RelationCounts:
    """Counts of one relation, per half of the sentences: of the whole half, then of each group."""

    hits: Real[np.ndarray, "half group 2 layer head"]  # how often a head is right
    offsets: Real[np.ndarray, "half group offset"]  # how often the word is at each of `DISTANCES`
    counts: Real[np.ndarray, "half group"]  # how often the relation occurs
    lost: int  # number of links with a word that has no token of its own

    @classmethod
    def zero(cls, n_layers: int, n_heads: int, *, lost: int) -> RelationCounts:
        """Return the counts of a relation before any of its links is counted, except those that are lost."""
        shape = HALVES, HALF_GROUPS + 1
        return cls(
            hits=np.zeros((*shape, WAYS, n_layers, n_heads), np.int32),
            offsets=np.zeros((*shape, len(DISTANCES)), np.int32),
            counts=np.zeros(shape, np.int32),
            lost=lost,
        )

    def __add__(self, other: RelationCounts) -> RelationCounts:
        return RelationCounts(
            hits=self.hits + other.hits,
            offsets=self.offsets + other.offsets,
            counts=self.counts + other.counts,
            lost=self.lost + other.lost,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Relations:
    """Counts of how often heads find each relation."""

    by_name: Mapping[str, RelationCounts]
    n_other: int = 0  # number of sentences whose links are not between queries and keys


def count_links(
    sentences: Sequence[tuple[int, LinkHits]], n_layers: int, n_heads: int
) -> Relations:
    """Count the links of some sentences, given by their keys; `n_layers` may be those of several models."""
    lost = Counter(name for _key, found in sentences for name in found.lost)
    names = {name for _key, found in sentences for name in found.names}.union(lost)
    by_name = {
        name: RelationCounts.zero(n_layers, n_heads, lost=lost[name]) for name in sorted(names)
    }
    for key, found in sentences:
        # Group 0 is the whole half, so the groups of sentences begin at 1.
        places = key % HALVES, [WHOLE, 1 + key // HALVES % HALF_GROUPS]
        for name, hits, distance in zip(found.names, found.hits, found.distances, strict=True):
            by_name[name].counts[places] += 1
            by_name[name].hits[places] += hits
            by_name[name].offsets[places] += distance == DISTANCES
    return Relations(by_name=by_name)


def sample_links(
    sentences: Iterable[tuple[int, LinkedSentence]],
) -> dict[int, LinkedSentence]:
    """Return the sentences for the controls of relations: those with the smallest keys, per relation and half.

    Sampling the samples of two parts again gives the sample of the whole. If a sentence has two different annotations,
    the same one is always taken.
    """
    by_key: dict[int, LinkedSentence] = {}
    for key, sentence in sentences:
        first = by_key.setdefault(key, sentence)
        if first.annotation != sentence.annotation:
            by_key[key] = min(first, sentence, key=lambda linked: repr(linked.annotation))
    n_taken = Counter[tuple[str, int]]()
    sample = {}
    for key in sorted(by_key):
        places = {(link.relation, key % HALVES) for link in by_key[key].annotation.links}
        if any(n_taken[place] < LINKED for place in places):
            sample[key] = by_key[key]
        n_taken.update(places)
    return sample


def merge(first: Relations, second: Relations) -> Relations:
    """Add the counts of two parts of a corpus."""
    by_name = dict(first.by_name)
    for name, counts in second.by_name.items():
        by_name[name] = by_name[name] + counts if name in by_name else counts
    return Relations(
        by_name=dict(sorted(by_name.items())),
        n_other=first.n_other + second.n_other,
    )


def notes(measured: Relations) -> Iterator[Note]:
    """Yield the caveats of these counts."""
    relations = measured.by_name.values()
    n_per_half = [relation.counts[:, WHOLE] for relation in relations]
    if n_lost := sum(relation.lost for relation in relations):
        n_links = n_lost + int(sum(map(np.sum, n_per_half)))
        yield Note.of("relations_lost", n=n_lost, total=n_links)
    if n_halved := sum(bool(n.any() and not n.all()) for n in n_per_half):
        yield Note.of("relations_in_one_half", n=n_halved)
    if measured.n_other:
        yield Note.of("relations_of_other_words", n=measured.n_other)


THRESHOLD = 0.5  # smallest accuracy that gives a head the role of a relation


def rule_of(relation: str, *, reverse: bool) -> RoleRule:
    """Return the role of a head that finds a relation: "subject to verb", or "verb to subject" if `reverse`.

    A subtype that is not known, such as ``nsubj:x``, has the governor of its relation.
    """
    known_name = relation if relation in RELATIONS else universal(relation)
    governor, term = RELATIONS.get(known_name, ("head", N_("word")))
    if relation in RELATIONS:
        words = N_("attends from the {dependent} to its {head}")
        if reverse:
            words = N_("attends from the {head} to its {dependent}")
        words = words.format(dependent=term, head=HEAD_WORDS[governor])
    elif reverse:
        words = N_("attends along “{relation}” in reverse").format(relation=relation)
    else:
        words = N_("attends along “{relation}”").format(relation=relation)
    ends: list[str | Message] = [
        term if relation in RELATIONS else relation,
        HEAD_WORDS[governor],
    ]
    if reverse:
        ends.reverse()
    return RoleRule(
        name=name_of(relation, reverse=reverse),
        words=words,
        threshold=THRESHOLD,
        short=N_("{query} to {key}").format(query=ends[0], key=ends[1]),
        group="reference" if relation == "coreference" else "grammar",
        family=RELATION,
    )


def name_of(relation: str, *, reverse: bool) -> str:
    """Return the name of a role in files."""
    return f"{RELATION}_{relation}{'_reversed' if reverse else ''}"


def relation_of(role: str) -> tuple[str, bool] | None:
    """Return the relation of a role, and whether in reverse: the inverse of `name_of`; None for other roles."""
    start, _underscore, relation = role.partition("_")
    if start != RELATION:
        return None
    return relation.removesuffix("_reversed"), relation.endswith("_reversed")


def candidates(
    measured: Relations,
    untrained: Relations | None,
    *,
    different: int,
    n_tested: int = 1,
) -> dict[str, tuple[Relation, ...]]:
    """Return the candidate heads of each relation, the best first, chosen on one half and scored on the other half.

    Candidates are the best head and all heads that reach the threshold of accuracy. A relation that occurs in only one
    half is left out.

    Args:
        measured: the counts of the model.
        untrained: the counts of models with random weights, the layers of all seeds one after another; without them,
            nothing is established.
        different: the number of different sentences.
        n_tested: the number of roles and relations tested.
    """
    by_relation = {}
    for name, counts in measured.by_name.items():
        if not counts.counts[:, WHOLE].all():
            continue
        controls = [_best_offset(counts)]
        random = None if untrained is None else untrained.by_name.get(name)
        if random is not None and random.counts[:, WHOLE].all():
            n_seeds = random.hits.shape[3] // counts.hits.shape[3]
            controls.append(_best_untrained(random, n_seeds, n_tested))
        by_relation[name] = tuple(
            _score_head(name, counts, place, controls, different) for place in _chosen(counts)
        )
    return by_relation


def _best_offset(counts: RelationCounts) -> Control:
    """Return the accuracy of the best fixed offset, on the half that scores heads.

    The offset is the better one of those that are best on either half. With the offset of the choosing half alone, a
    head that always attends to one offset would seem to find a relation if the few cases there point elsewhere.
    """
    controls = []
    for column in counts.offsets[:, WHOLE].argmax(axis=1):
        share = tally.share(counts.offsets[SCORE, :, column], counts.counts[SCORE])
        value, low, high = share.at()
        offset = int(DISTANCES[column])
        controls.append(Control(name=OFFSET, value=value, low=low, high=high, offset=offset))
    return max(controls, key=lambda control: control.high)


def _best_untrained(random: RelationCounts, n_seeds: int, n_tested: int) -> Control:
    """Return the accuracy of the best head of random weights, chosen and scored like other heads, for each seed."""
    n_scored = float(random.counts[SCORE, WHOLE])
    choosing_hits, scoring_hits = (  # (seed, direction and head)
        hits.reshape(WAYS, n_seeds, -1).swapaxes(0, 1).reshape(n_seeds, -1)
        for hits in random.hits[:, WHOLE]
    )
    shares = scoring_hits[np.arange(n_seeds), choosing_hits.argmax(axis=1)] / n_scored
    mean = float(shares.mean())
    estimates = best_of_seeds(shares, n_tested, noise=mean * (1 - mean) / n_scored)
    # If all seeds agree by chance, their variance is 0. Wilson's interval for all their links is then the wider one.
    low, high = tally.wilson(mean, n_scored * n_seeds)
    return Control(
        name=UNTRAINED,
        value=mean,
        low=float(np.fmin(estimates.low, low)),
        high=float(np.maximum(estimates.high, high)),
    )


def _chosen(relation: RelationCounts) -> Iterator[tuple[int, int, int]]:
    """Yield direction, layer and head of the candidates for one relation, the best first."""
    hits = relation.hits[CHOOSE, WHOLE]  # (direction, layer, head)
    enough = THRESHOLD * relation.counts[CHOOSE, WHOLE]
    for rank, flat_index in enumerate(np.argsort(-hits, axis=None, kind="stable").tolist()):
        direction, layer, head = map(int, np.unravel_index(flat_index, hits.shape))
        if rank > 0 and hits[direction, layer, head] < enough:
            return
        yield direction, layer, head


def _score_head(
    name: str,
    relation: RelationCounts,
    place: tuple[int, int, int],
    controls: Sequence[Control],
    different: int,
) -> Relation:
    """Return a relation with the accuracy of a candidate on the second half; `place` is direction, layer and head."""
    direction, layer, head = place
    counts = relation.counts[SCORE]
    hits = relation.hits[SCORE, :, direction, layer, head]
    score, low, high = tally.share(hits, counts).at()
    reason = doubt(
        low,
        controls,
        threshold=THRESHOLD,
        needs=(OFFSET, UNTRAINED),
        cases=float(relation.counts[:, WHOLE].min()),
        sentences=float(tally.effective(counts)),
        different=different,
    )
    rule = rule_of(name, reverse=direction == REVERSE)
    role = Role(
        rule=rule,
        measure=rule.name,
        score=score,
        low=low,
        high=high,
        controls=tuple(controls),
        doubt=reason,
    )
    return Relation(
        name=name,
        n=int(counts[WHOLE]),
        layer=layer,
        head=head,
        reverse=direction == REVERSE,
        role=role,
    )


def best_of(by_relation: Mapping[str, Sequence[Relation]]) -> tuple[Relation, ...]:
    """Return one head per relation, the most frequent relation first: the best established head, or else the best."""
    best = []
    for candidate_heads in by_relation.values():
        established = [item for item in candidate_heads if item.role.established]
        best.append((established or candidate_heads)[0])
    return tuple(sorted(best, key=lambda relation: (-relation.n, relation.name)))


def roles_of(by_relation: Mapping[str, Sequence[Relation]]) -> dict[tuple[int, int], list[Role]]:
    """Return the established roles of relations, by layer and head."""
    roles: dict[tuple[int, int], list[Role]] = {}
    for candidate_heads in by_relation.values():
        for relation in candidate_heads:
            if relation.role.established:
                place = relation.layer, relation.head
                roles.setdefault(place, []).append(relation.role)
    return roles


def examples_of(linked: Mapping[int, LinkedSentence]) -> dict[tuple[str, str], list[Example]]:
    """Return the sentences in which a head finds links of a relation, by ``layer.head`` and role.

    They are sorted by the share of links found, then by the number of links, then by length (shorter first).
    """
    by_place: dict[tuple[str, str], list[tuple[Example, int]]] = {}
    for text, annotation, found in linked.values():
        for relation in dict.fromkeys(found.names):
            is_relation = [name == relation for name in found.names]
            shares = found.hits[is_relation].mean(axis=0)  # (direction, layer, head)
            for direction, layer, head in np.argwhere(shares).tolist():
                place = f"{layer}.{head}", name_of(relation, reverse=direction == REVERSE)
                links = _links_of(annotation, relation, reverse=direction == REVERSE)
                example = Example(
                    text=text, score=float(shares[direction, layer, head]), links=links
                )
                by_place.setdefault(place, []).append((example, sum(is_relation)))
    examples = {}
    for place, ranked in by_place.items():
        ranked.sort(key=lambda item: (-item[0].score, -item[1], len(item[0].text), item[0].text))
        examples[place] = [example for example, _n_links in ranked]
    return examples


def _links_of(
    annotation: Annotation, relation: str, *, reverse: bool
) -> tuple[tuple[tuple[int, int], tuple[int, int]], ...]:
    """Return the characters of the two words of each link of a relation, that of the query first."""
    links = []
    for link in annotation.links:
        if link.relation == relation:
            words = annotation.words[link.query], annotation.words[link.key]
            links.append(words[::-1] if reverse else words)
    return tuple(links)
