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

import numpy as np
from jaxtyping import Bool, Int64, Real

from attnviz.attention import Note
from attnviz.heads import tally
from attnviz.heads.measures import OFFSET, OFFSETS, RELATION, UNTRAINED, RoleRule
from attnviz.heads.record import Control, Example, Relation, Role
from attnviz.heads.relation_words import HEAD_WORDS, OWN_RELATIONS, RELATIONS
from attnviz.heads.roles import best_of_seeds, doubt
from attnviz.text.corpus import Annotation, universal
from attnviz.text.messages import N_, Message, _

WAYS = 2  # directions: the word that this word attends to most; the word that attends most to it
FORWARD, REVERSE = range(WAYS)
DISTANCES = tuple(offset for offset in OFFSETS if offset)
"""The fixed offsets that heads are compared with, in words."""
HALVES = 2
CHOOSE, SCORE = range(HALVES)
HALF_GROUPS = tally.GROUPS // HALVES  # groups of sentences in each half
WHOLE = 0  # the index that counts all groups of a half together; single groups begin at 1
LINKED = 10  # number of sentences per half with a relation, for its controls
MOST_RELATIONS = 128
"""Largest number of relations that are counted, in alphabetical order, so that memory is bounded.

A name among the first of the whole corpus is also among the first of each part that has it, so the result does not
depend on the order of parts."""


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Relations:
    """Counts of how often heads find each relation, per half of the sentences: the whole half, then each group."""

    names: tuple[str, ...]  # the names of the relations, sorted
    hits: Real[np.ndarray, "half group relation 2 layer head"]  # how often a head is right
    # how often the right word is at each of `DISTANCES`
    offsets: Real[np.ndarray, "half group relation offset"]
    counts: Real[np.ndarray, "half group relation"]  # how often the relation occurs
    # number of links with a word that has no token of its own
    lost: Int64[np.ndarray, " relation"]
    # number of all links, including lost ones and those of relations beyond `MOST_RELATIONS`
    n_links: int
    n_other: int = 0  # number of sentences whose links are not between queries and keys

    @property
    def n_uncounted(self) -> int:
        """The number of links of relations beyond `MOST_RELATIONS`."""
        return self.n_links - int(self.lost.sum()) - int(self.counts[:, 0].sum())


def count_links(
    hits_by_key: Iterable[tuple[int, LinkHits]], n_layers: int, n_heads: int
) -> Relations:
    """Count the links of some sentences, given by their keys; `n_layers` may be those of several models."""
    sentences = list(hits_by_key)
    all_names = {
        name for _key, link_hits in sentences for name in (*link_hits.names, *link_hits.lost)
    }
    names = tuple(sorted(all_names)[:MOST_RELATIONS])
    number_of = {name: number for number, name in enumerate(names)}
    shape = (HALVES, HALF_GROUPS + 1, len(names))
    hits = np.zeros((*shape, WAYS, n_layers, n_heads), dtype=np.int32)
    offsets = np.zeros((*shape, len(DISTANCES)), dtype=np.int32)
    counts = np.zeros(shape, dtype=np.int32)
    for key, link_hits in sentences:
        counted_links = [link for link, name in enumerate(link_hits.names) if name in number_of]
        numbers = [number_of[link_hits.names[link]] for link in counted_links]
        # Group 0 is the whole half, summed below, so the groups of sentences begin at 1.
        cells = half_of(key), 1 + key // HALVES % HALF_GROUPS, numbers
        np.add.at(counts, cells, 1)
        np.add.at(hits, cells, link_hits.hits[counted_links])
        np.add.at(offsets, cells, link_hits.distances[counted_links, None] == np.array(DISTANCES))
    for values in (hits, offsets, counts):
        values[:, 0] = values.sum(axis=1)
    lost = Counter(name for _key, link_hits in sentences for name in link_hits.lost)
    return Relations(
        names=names,
        hits=hits,
        offsets=offsets,
        counts=counts,
        lost=np.array([lost[name] for name in names], dtype=np.int64),
        n_links=sum(len(link_hits.names) + len(link_hits.lost) for _, link_hits in sentences),
    )


def sample_links(sentences: Iterable[tuple[int, Annotation]]) -> dict[int, Annotation]:
    """Return the sentences for the controls of relations: those with the smallest keys, per relation and half.

    Sampling the samples of two parts again gives the sample of the whole. If a sentence has two different annotations,
    the same one is always taken.
    """
    annotated: dict[int, Annotation] = {}
    for key, annotation in sentences:
        if annotated.setdefault(key, annotation) != annotation:
            annotated[key] = min(annotated[key], annotation, key=repr)
    n_taken = Counter[tuple[str, int]]()
    sample = {}
    for key in sorted(annotated):
        places = {(link.relation, half_of(key)) for link in annotated[key].links}
        if any(n_taken[place] < LINKED for place in places):
            sample[key] = annotated[key]
        n_taken.update(places)
    return sample


def half_of(key: int) -> int:
    """Return the half that a sentence belongs to."""
    return key % HALVES


def merge(first: Relations, second: Relations) -> Relations:
    """Add the counts of two parts of a corpus."""
    names = tuple(sorted({*first.names, *second.names})[:MOST_RELATIONS])
    arrays, second_arrays = (_under_names(part, names) for part in (first, second))
    hits, offsets, counts, lost = (a + b for a, b in zip(arrays, second_arrays, strict=True))
    return Relations(
        names=names,
        hits=hits,
        offsets=offsets,
        counts=counts,
        lost=lost,
        n_links=first.n_links + second.n_links,
        n_other=first.n_other + second.n_other,
    )


def notes(measured: Relations) -> Iterator[Note]:
    """Yield the caveats of these counts."""
    if n_lost := int(measured.lost.sum()):
        yield Note.of("relations_lost", n=n_lost, total=measured.n_links)
    occurs = measured.counts[:, 0] > 0
    if n_halved := int((occurs.any(axis=0) & ~occurs.all(axis=0)).sum()):
        yield Note.of("relations_in_one_half", n=n_halved)
    if measured.n_uncounted:
        yield Note.of("relations_uncounted", most=MOST_RELATIONS, n=measured.n_uncounted)
    if measured.n_other:
        yield Note.of("relations_of_other_words", n=measured.n_other)


def _under_names(
    relations: Relations, names: Sequence[str]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return hits, offsets, counts and lost links with one entry per name; 0 for names without counts."""
    number_of = {name: number for number, name in enumerate(names)}
    is_named = [name in number_of for name in relations.names]
    places = [number_of[name] for name in relations.names if name in number_of]

    def spread(values: np.ndarray, axis: int) -> np.ndarray:
        shape = (*values.shape[:axis], len(names), *values.shape[axis + 1 :])
        all_values = np.zeros(shape, dtype=values.dtype)
        all_values[(slice(None),) * axis + (places,)] = values.compress(is_named, axis=axis)
        return all_values

    return (
        spread(relations.hits, 2),
        spread(relations.offsets, 2),
        spread(relations.counts, 2),
        spread(relations.lost, 0),
    )


THRESHOLD = 0.5  # smallest accuracy that gives a head the role of a relation

FAMILY = RoleRule(
    name=RELATION,
    words=N_("finds a relation between words"),
    threshold=THRESHOLD,
    group="grammar",
)
"""The properties shared by all roles from relations between words."""


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
        family=FAMILY.name,
    )


def terms_of(rules: Sequence[RoleRule]) -> list[str]:
    """Return the names in Universal Dependencies of the relations of roles, such as ``adjective amod``."""
    found = [relation_of(rule.name) for rule in rules]
    names = [relation[0] for relation in found if relation is not None]
    known = [name for name in names if name in RELATIONS and name not in OWN_RELATIONS]
    return [f"{_(RELATIONS[name][1])} {name}" for name in dict.fromkeys(known)]


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
    for number, name in enumerate(measured.names):
        if not measured.counts[:, WHOLE, number].all():
            continue
        controls = [_best_offset(measured, number)]
        random = _best_untrained(untrained, name, measured.hits.shape[4], n_tested)
        if random is not None:
            controls.append(random)
        by_relation[name] = tuple(
            _score_head(measured, number, cell, controls, different)
            for cell in _chosen(measured, number)
        )
    return by_relation


def _best_offset(measured: Relations, number: int) -> Control:
    """Return the accuracy of the best fixed offset for one relation, on the half that scores heads.

    The offset is the better one of those that are best on either half. With the offset of the choosing half alone, a
    head that always attends to one offset would seem to find a relation if the few cases there point elsewhere.
    """
    counts = measured.counts[SCORE, :, number]
    controls = []
    for half in range(HALVES):
        column = int(measured.offsets[half, WHOLE, number].argmax())
        value, low, high = tally.share(measured.offsets[SCORE, :, number, column], counts).at()
        controls.append(_control(OFFSET, value, low, high, DISTANCES[column]))
    return max(controls, key=lambda control: control.high)


def _score_head(
    measured: Relations,
    number: int,
    cell: tuple[int, int, int],
    controls: Sequence[Control],
    different: int,
) -> Relation:
    """Return one relation with the accuracy of a candidate on the second half; `cell` is direction, layer and head."""
    direction, layer, head = cell
    name, is_reverse = measured.names[number], direction == REVERSE
    counts = measured.counts[SCORE, :, number]
    n_cases = int(counts[0])
    score, low, high = tally.share(measured.hits[(SCORE, slice(None), number, *cell)], counts).at()
    reason = doubt(
        score,
        low,
        controls,
        threshold=THRESHOLD,
        needs=(OFFSET, UNTRAINED),
        cases=float(measured.counts[:, WHOLE, number].min()),
        sentences=float(tally.effective(counts)),
        different=different,
    )
    rule = rule_of(name, reverse=is_reverse)
    role = Role(
        rule=rule,
        measure=rule.name,
        score=score,
        low=low,
        high=high,
        controls=tuple(controls),
        doubt=reason,
    )
    return Relation(name=name, n=n_cases, layer=layer, head=head, reverse=is_reverse, role=role)


def _chosen(relations: Relations, relation: int) -> Iterator[tuple[int, int, int]]:
    """Yield direction, layer and head of the candidates for one relation, the best first."""
    hits = relations.hits[CHOOSE, WHOLE, relation]  # (direction, layer, head)
    enough = THRESHOLD * relations.counts[CHOOSE, WHOLE, relation]
    for rank, flat_index in enumerate(np.argsort(-hits, axis=None, kind="stable").tolist()):
        direction, layer, head = map(int, np.unravel_index(flat_index, hits.shape))
        if rank > 0 and hits[direction, layer, head] < enough:
            return
        yield direction, layer, head


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


def _control(
    name: str, value: float, low: float, high: float, offset: int | None = None
) -> Control:
    return Control(name=name, value=value, low=low, high=high, rules_out=True, offset=offset)


def _best_untrained(
    untrained: Relations | None, name: str, n_layers: int, n_tested: int
) -> Control | None:
    """Return the accuracy of the best head of random weights, chosen and scored like other heads, for each seed."""
    if untrained is None or name not in untrained.names:
        return None
    number = untrained.names.index(name)
    n = untrained.counts[:, WHOLE, number]
    if not n.all():
        return None
    seeds = untrained.hits.shape[4] // n_layers
    choosing_hits, scoring_hits = (  # (seed, direction and head)
        hits.reshape(WAYS, seeds, -1).swapaxes(0, 1).reshape(seeds, -1)
        for hits in untrained.hits[:, WHOLE, number]
    )
    shares = scoring_hits[np.arange(seeds), choosing_hits.argmax(axis=1)] / n[SCORE]
    mean = float(shares.mean())
    estimates = best_of_seeds(shares, n_tested, noise=mean * (1 - mean) / n[SCORE])
    # If all seeds agree by chance, their variance is 0. Wilson's interval for all their links is then the wider one.
    wilson_low, wilson_high = tally.wilson(mean, float(n[SCORE]) * seeds)
    return _control(
        UNTRAINED,
        mean,
        float(np.fmin(estimates.low, wilson_low)),
        float(np.maximum(estimates.high, wilson_high)),
    )


def examples_of(
    own: Mapping[int, LinkHits], texts: Mapping[int, str]
) -> dict[tuple[str, str], list[Example]]:
    """Return the sentences in which a head finds links of a relation, by ``layer.head`` and role.

    They are sorted by the share of links found, then by the number of links, then by length (shorter first).
    """
    by_place: dict[tuple[str, str], list[tuple[float, int, str]]] = {}
    for key, sentence in own.items():
        for relation in dict.fromkeys(sentence.names):
            is_relation = [name == relation for name in sentence.names]
            shares = sentence.hits[is_relation].mean(axis=0)  # (direction, layer, head)
            for direction, layer, head in np.argwhere(shares).tolist():
                place = f"{layer}.{head}", name_of(relation, reverse=direction == REVERSE)
                share = float(shares[direction, layer, head])
                by_place.setdefault(place, []).append((share, sum(is_relation), texts[key]))
    examples = {}
    for place, ranked in by_place.items():
        ranked.sort(key=lambda item: (-item[0], -item[1], len(item[2]), item[2]))
        examples[place] = [Example(text=text, score=share) for share, _n_links, text in ranked]
    return examples
