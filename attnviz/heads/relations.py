"""The relations between words that heads find, and the roles that follow.

For each word, is the word it belongs to the one a head looks at most? As in Clark et al. 2019, "What does BERT look
at?", section 4: attention to a word in several pieces is the sum over the pieces, attention from it their mean. A
head's guess for a word is, of the other words, the one that this word looks at most; or, the other way round, the one
that looks most at this word. A fixed offset guesses the word so far away.

All is counted in two halves of the sentences, told apart by their keys. The heads of a relation are chosen on one half
and scored on the other, and so are the best fixed offset and the best head of random weights that they are held
against: being the best of many flatters nobody. Counts are whole numbers: parts of a corpus merge exactly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int64, Real

from attnviz.attention import Note
from attnviz.heads import tally
from attnviz.heads.measures import OFFSET, OFFSETS, UNTRAINED, RoleRule
from attnviz.heads.record import Control, Example, Relation, Role
from attnviz.heads.relation_words import ALSO, COLOURS, DEPENDENTS, HEAD_WORDS, RELATIONS
from attnviz.heads.roles import RELATION, best_of_seeds, doubt, spelling
from attnviz.text.corpus import Annotation, universal
from attnviz.text.messages import Phrase, _, join_phrases

WAYS = 2  # a head guesses by where a word looks, and by what looks at the word
FORWARD, REVERSE = range(WAYS)
DISTANCES = tuple(offset for offset in OFFSETS if offset)
"""The fixed offsets that heads are held against, in words."""
HALVES = 2
CHOOSE, SCORE = range(HALVES)
HALF_GROUPS = tally.GROUPS // HALVES  # groups of sentences in each half
LINKED = 10  # controls of a relation are taken on so many sentences of each half that have it
MOST_RELATIONS = 128
"""A corpus with more relations than this is counted for the first of them by name, so that memory has an end.

Whichever part of a corpus a name comes up in, it is then among the first of that part too: nothing depends on the
order."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinkHits:
    """The links of one sentence, and the heads that find them."""

    names: tuple[str, ...]  # the relation of each link
    # whether the head's guess for the word that depends is right, by where that word looks and by what looks at it
    hits: Bool[np.ndarray, "link 2 layer head"]
    # how many words after the word that depends the other one stands; negative where it is before
    distances: Int64[np.ndarray, " link"]
    # the relations of links that no head could be asked for: one of their words has no token of its own
    lost: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Relations:
    """Counts of how often heads find each relation, by halves of the sentences: in the half, then in each group."""

    names: tuple[str, ...]  # of the relations, sorted
    hits: Real[np.ndarray, "half group relation 2 layer head"]  # how often a head is right
    # how often the right word is at each of `DISTANCES`
    offsets: Real[np.ndarray, "half group relation offset"]
    counts: Real[np.ndarray, "half group relation"]  # how often the relation comes up
    # how many of its links lack a word with a token of its own
    lost: Int64[np.ndarray, " relation"]
    n_links: int  # all links, those lost and those of relations beyond `MOST_RELATIONS` too
    n_other: int = 0  # sentences whose links are between other words than attention is

    @property
    def n_uncounted(self) -> int:
        """Links of relations beyond `MOST_RELATIONS`."""
        return self.n_links - int(self.lost.sum()) - int(self.counts[:, 0].sum())


def count_links(found: Iterable[tuple[int, LinkHits]], n_layers: int, n_heads: int) -> Relations:
    """Count the links of some sentences."""
    linked = list(found)
    every = {name for _key, one in linked for name in (*one.names, *one.lost)}
    names = tuple(sorted(every)[:MOST_RELATIONS])
    at = {name: number for number, name in enumerate(names)}
    shape = (HALVES, HALF_GROUPS + 1, len(names))
    hits = np.zeros((*shape, WAYS, n_layers, n_heads), dtype=np.int32)
    offsets = np.zeros((*shape, len(DISTANCES)), dtype=np.int32)
    counts = np.zeros(shape, dtype=np.int32)
    for key, one in linked:
        kept = [link for link, name in enumerate(one.names) if name in at]
        numbers = [at[one.names[link]] for link in kept]
        where = half_of(key), 1 + key // HALVES % HALF_GROUPS, numbers
        np.add.at(counts, where, 1)
        np.add.at(hits, where, one.hits[kept])
        np.add.at(offsets, where, one.distances[kept, None] == np.array(DISTANCES))
    for values in (hits, offsets, counts):
        values[:, 0] = values.sum(axis=1)
    lost = Counter(name for _key, one in linked for name in one.lost)
    return Relations(
        names=names,
        hits=hits,
        offsets=offsets,
        counts=counts,
        lost=np.array([lost[name] for name in names], dtype=np.int64),
        n_links=sum(len(one.names) + len(one.lost) for _, one in linked),
    )


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
        names=names,
        hits=hits,
        offsets=offsets,
        counts=counts,
        lost=lost,
        n_links=one.n_links + other.n_links,
        n_other=one.n_other + other.n_other,
    )


def notes(found: Relations) -> Iterator[Note]:
    """Return the notes for a reader of these numbers."""
    if n_lost := int(found.lost.sum()):
        yield Note.of("relations_lost", n=n_lost, total=found.n_links)
    there = found.counts[:, 0] > 0
    if n_halved := int((there.any(axis=0) & ~there.all(axis=0)).sum()):
        yield Note.of("relations_in_one_half", n=n_halved)
    if found.n_uncounted:
        yield Note.of("relations_uncounted", most=MOST_RELATIONS, n=found.n_uncounted)
    if found.n_other:
        yield Note.of("relations_of_other_words", n=found.n_other)


def _under_names(
    found: Relations, names: Sequence[str]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    at = {name: number for number, name in enumerate(names)}
    kept = [name in at for name in found.names]
    places = [at[name] for name in found.names if name in at]

    def spread(values: np.ndarray, axis: int) -> np.ndarray:
        shape = (*values.shape[:axis], len(names), *values.shape[axis + 1 :])
        wide = np.zeros(shape, dtype=values.dtype)
        wide[(slice(None),) * axis + (places,)] = values.compress(kept, axis=axis)
        return wide

    return (
        spread(found.hits, 2),
        spread(found.offsets, 2),
        spread(found.counts, 2),
        spread(found.lost, 0),
    )


THRESHOLD = 0.5  # from which accuracy on a head has the role of a relation
OTHER = "#5566aa"  # the colour of relations that have none of their own

FAMILY = RoleRule(
    name=RELATION,
    words=_("finds a relation between words"),
    threshold=THRESHOLD,
    sign="rel",
    colour="#0077bb",
)
"""The properties shared by all roles that rest on a relation between words."""


def rule_of(relation: str, *, reverse: bool, threshold: float = THRESHOLD) -> RoleRule:
    """Return the role of a head that finds a relation: ``nsubj > verb``, or in reverse ``verb > nsubj``."""
    known = relation if relation in RELATIONS else universal(relation)
    to, term = RELATIONS.get(known, ("head", _("word")))
    dependent = DEPENDENTS.get(relation, relation)
    if relation in RELATIONS:
        words = _("attends from the {dependent} to its {head}")
        if reverse:
            words = _("attends from the {head} to its {dependent}")
        words = words.format(dependent=term, head=HEAD_WORDS[to])
    elif reverse:
        words = _("attends along “{relation}” in reverse").format(relation=relation)
    else:
        words = _("attends along “{relation}”").format(relation=relation)
    first, _colon, sort = relation.partition(":")
    sign = f"{first[:2]}:{sort[:1]}" if sort else dependent[:4]
    return RoleRule(
        name=name_of(relation, reverse=reverse),
        words=words,
        threshold=threshold,
        short=f"{to} > {dependent}" if reverse else f"{dependent} > {to}",
        sign=f">{sign}" if reverse else f"{sign}>",
        colour=COLOURS.get(known, OTHER if known in RELATIONS else FAMILY.colour),
        family=FAMILY.name,
    )


def terms_of(rules: Sequence[RoleRule]) -> list[Phrase]:
    """Return the terms in the short names of roles with their meaning, as ``amod adjective``."""
    of_relations = [rule.name for rule in rules if rule.family == RELATION]
    names = [name.removeprefix(f"{RELATION}_").removesuffix("_reversed") for name in of_relations]
    known = [name for name in names if name in RELATIONS and name not in DEPENDENTS]
    return [join_phrases([name, RELATIONS[name][1]]) for name in dict.fromkeys(known)]


def name_of(relation: str, *, reverse: bool) -> str:
    """Return the name of a role in files."""
    return f"{RELATION}_{relation}{'_reversed' if reverse else ''}"


def names_of(relations: Sequence[str]) -> dict[str, set[str]]:
    """By each name, as `spelling` spells it, the roles that it means; a relation's own name means it both ways."""
    found: dict[str, set[str]] = {}
    for relation in dict.fromkeys([*RELATIONS, *relations]):
        rules = [rule_of(relation, reverse=reverse) for reverse in (False, True)]
        also = ALSO.get(relation, ())
        found |= {spelling(name): {rule.name for rule in rules} for name in (relation, *also)}
        found |= {spelling(name): {rule.name} for rule in rules for name in (rule.name, rule.short)}
    return found


def candidates(
    found: Relations,
    untrained: Relations | None,
    threshold: float = THRESHOLD,
    *,
    different: int,
    looked_at: int = 1,
) -> dict[str, tuple[Relation, ...]]:
    """By relation the heads that one half of the sentences chooses, the best first, as the other half scores them.

    Chosen are the best head, and all that reach the threshold of accuracy. Relations that only one half has are
    left out. `untrained` has the layers of all seeds in a row; without it nothing is established. `different`
    sentences there are, and `looked_at` roles and relations.
    """
    made = {}
    for at, name in enumerate(found.names):
        counts = found.counts[SCORE, :, at]
        n = int(counts[0])
        if not found.counts[:, 0, at].all():
            continue
        offset = int(found.offsets[CHOOSE, 0, at].argmax())
        controls = [
            _control(
                OFFSET,
                *tally.share(found.offsets[SCORE, :, at, offset], counts).at(),
                DISTANCES[offset],
            )
        ]
        random = _best_untrained(untrained, name, found.hits.shape[4], looked_at)
        if random is not None:
            controls.append(random)
        heads = []
        for way, layer, head in _chosen(found, at, threshold):
            score, low, high = tally.share(found.hits[SCORE, :, at, way, layer, head], counts).at()
            why = doubt(
                score,
                low,
                controls,
                threshold=threshold,
                needs=(OFFSET, UNTRAINED),
                cases=n,
                sentences=float(tally.effective(counts)),
                different=different,
            )
            rule = rule_of(name, reverse=way == REVERSE, threshold=threshold)
            role = Role(
                rule=rule,
                measure=rule.name,
                score=score,
                low=low,
                high=high,
                controls=tuple(controls),
                doubt=why,
            )
            heads.append(
                Relation(name=name, n=n, layer=layer, head=head, reverse=way == REVERSE, role=role)
            )
        made[name] = tuple(heads)
    return made


def _chosen(found: Relations, at: int, threshold: float) -> Iterator[tuple[int, int, int]]:
    hits = found.hits[CHOOSE, 0, at]
    for number, flat in enumerate(np.argsort(-hits, axis=None, kind="stable")):
        way, layer, head = (int(one) for one in np.unravel_index(int(flat), hits.shape))
        if number and hits[way, layer, head] < threshold * found.counts[CHOOSE, 0, at]:
            return
        yield way, layer, head


def best_of(found: Mapping[str, Sequence[Relation]]) -> tuple[Relation, ...]:
    """A head for each relation, the most frequent relation first: the best that is established, else the best."""
    best = [
        next((one for one in several if one.role.established), several[0])
        for several in found.values()
    ]
    return tuple(sorted(best, key=lambda one: (-one.n, one.name)))


def roles_of(found: Mapping[str, Sequence[Relation]]) -> dict[tuple[int, int], list[Role]]:
    """Return by layer and head the roles of relations, those alone that are established."""
    roles: dict[tuple[int, int], list[Role]] = {}
    for one in (one for several in found.values() for one in several if one.role.established):
        roles.setdefault((one.layer, one.head), []).append(one.role)
    return roles


def _control(
    name: str, value: float, low: float, high: float, offset: int | None = None
) -> Control:
    return Control(name=name, value=value, low=low, high=high, rules_out=True, offset=offset)


def _best_untrained(
    untrained: Relations | None, name: str, n_layers: int, looked_at: int
) -> Control | None:
    """Return how often the best head of random weights is right, chosen and scored alike for each seed."""
    if untrained is None or name not in untrained.names:
        return None
    at = untrained.names.index(name)
    n = untrained.counts[:, 0, at]
    if not n.all():
        return None
    seeds = untrained.hits.shape[4] // n_layers
    chosen, scored = (  # (seed, way and head)
        hits.reshape(WAYS, seeds, -1).swapaxes(0, 1).reshape(seeds, -1)
        for hits in untrained.hits[:, 0, at]
    )
    shares = scored[np.arange(seeds), chosen.argmax(axis=1)] / n[SCORE]
    mean = float(shares.mean())
    found = best_of_seeds(shares, looked_at, noise=mean * (1 - mean) / n[SCORE])
    # Where no seed differs from another, so few links may still hide that they do.
    least, most = tally.wilson(mean, float(n[SCORE]) * seeds)
    return _control(
        UNTRAINED, mean, float(np.fmin(found.low, least)), float(np.maximum(found.high, most))
    )


def examples_of(
    own: Mapping[int, LinkHits], texts: Mapping[int, str]
) -> dict[tuple[str, str], list[Example]]:
    """By layer.head and relation, the sentences of a sample in which a head finds some, that of the most links first.

    Of sentences of which it finds as large a share, the one with more links comes first, then the shorter one.
    """
    best: dict[tuple[str, str], list[tuple[float, int, str]]] = {}
    for key, found in own.items():
        for name in dict.fromkeys(found.names):
            mine = found.hits[[other == name for other in found.names]]  # (link, way, layer, head)
            shares = mine.mean(axis=0)
            for way, layer, head in np.argwhere(shares).tolist():
                place = f"{layer}.{head}", name_of(name, reverse=way == REVERSE)
                best.setdefault(place, []).append(
                    (float(shares[way, layer, head]), len(mine), texts[key])
                )
    return {
        place: [
            Example(text=text, score=share)
            for share, _, text in sorted(
                several, key=lambda one: (-one[0], -one[1], len(one[2]), one[2])
            )
        ]
        for place, several in best.items()
    }
