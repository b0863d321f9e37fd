"""Roles that relations between words speak for, in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from attnviz.heads.measures import OFFSET, UNTRAINED, RoleRule
from attnviz.heads.record import Control, Example, Role
from attnviz.heads.roles import RELATION, role_of
from attnviz.heads.structure import DISTANCES, REVERSE, LinkHits, Relations, interval
from attnviz.heads.survey import EXAMPLES
from attnviz.text.corpus import universal

THRESHOLD = 0.5
"""From which accuracy on a head has the role of a relation."""

FEWEST = 10
"""A relation that comes up less often makes no role."""

WORDS: dict[str, tuple[str, str]] = {
    "acl": ("a clause to the noun it describes", "a noun to the clause that describes it"),
    "acl:relcl": ("a relative clause to the noun it describes", "a noun to its relative clause"),
    "advcl": ("an adverbial clause to what it qualifies", "a clause to its adverbial clause"),
    "advmod": ("an adverb to the word it qualifies", "a word to its adverb"),
    "agreement": ("a verb to the subject it agrees with", "a subject to the verb that agrees with it"),
    "amod": ("an adjective to its noun", "a noun to its adjective"),
    "appos": ("an apposition to the noun it names again", "a noun to its apposition"),
    "aux": ("an auxiliary to its verb", "a verb to its auxiliary"),
    "aux:pass": ("a passive auxiliary to its verb", "a verb to its passive auxiliary"),
    "case": ("a preposition or case marker to its noun", "a noun to its preposition or case marker"),
    "cc": ("a conjunction to what it joins on", "what is joined on to its conjunction"),
    "ccomp": ("a clause to the verb it completes", "a verb to the clause that completes it"),
    "clf": ("a classifier to its numeral or noun", "a numeral or noun to its classifier"),
    "compound": ("a part of a compound to its head", "the head of a compound to its other part"),
    "compound:prt": ("a particle to its verb", "a verb to its particle"),
    "conj": ("what is joined on to what it is joined to", "a word to what is joined to it"),
    "cop": ("a copula to what is said with it", "what is said with a copula to the copula"),
    "coreference": (
        "a pronoun or later mention to what it stands for",
        "a first mention to a pronoun or later mention of it",
    ),
    "csubj": ("a clause to the verb it is the subject of", "a verb to the clause that is its subject"),
    "csubj:pass": (
        "a clause to the passive verb it is the subject of",
        "a passive verb to the clause that is its subject",
    ),
    "dep": ("a word to a word it depends on somehow", "a word to a word that depends on it somehow"),
    "det": ("a determiner to its noun", "a noun to its determiner"),
    "discourse": ("an interjection to its clause", "a clause to its interjection"),
    "dislocated": ("a dislocated phrase to its clause", "a clause to its dislocated phrase"),
    "expl": ("an expletive to its verb", "a verb to its expletive"),
    "fixed": ("a later word of a set phrase to its first word", "the first word of a set phrase to its later words"),
    "flat": ("a later word of a name to its first word", "the first word of a name to its later words"),
    "goeswith": ("a split-off piece to the rest of its word", "a word to a piece split off it"),
    "iobj": ("an indirect object to its verb", "a verb to its indirect object"),
    "list": ("an item of a list to its first item", "the first item of a list to its other items"),
    "mark": ("a conjunction that subordinates to its clause", "a clause to the conjunction that subordinates it"),
    "nmod": ("a noun to the noun it describes", "a noun to the noun that describes it"),
    "nmod:poss": ("a possessor to what is possessed", "what is possessed to its possessor"),
    "nsubj": ("a subject to its verb", "a verb to its subject"),
    "nsubj:pass": ("a passive subject to its verb", "a passive verb to its subject"),
    "nummod": ("a number to its noun", "a noun to its number"),
    "obj": ("an object to its verb", "a verb to its object"),
    "obl": ("an oblique noun to its verb", "a verb to its oblique noun"),
    "obl:agent": ("an agent to its passive verb", "a passive verb to its agent"),
    "orphan": ("an orphan to what stands for the missing word", "what stands for a missing word to its orphan"),
    "parataxis": ("a clause set beside to the main clause", "a main clause to a clause set beside it"),
    "punct": ("a punctuation mark to the word it belongs to", "a word to its punctuation mark"),
    "reparandum": ("what is said amiss to what repairs it", "a repair to what it repairs"),
    "vocative": ("a name called to its clause", "a clause to the name called in it"),
    "xcomp": ("an open clause to the verb it completes", "a verb to the open clause that completes it"),
}
"""From what to what a head looks that finds a relation, and one that finds it the other way round.

The relations are those of Universal Dependencies 2 (https://universaldependencies.org/u/dep/), but for the root, which
belongs to no other word, and attnviz's own."""


def words_of(relation: str, *, reverse: bool) -> str:
    """What a head does that finds a relation, in plain words."""
    known = WORDS.get(relation) or WORDS.get(universal(relation))
    if known is None:
        return f"looks along “{relation}”{' the other way round' if reverse else ''}"
    return f"looks from {known[reverse]}{'' if relation in WORDS else f' (“{relation}”)'}"


FAMILY = RoleRule(
    name=RELATION, words="finds a relation between words", threshold=THRESHOLD, sign="rel", colour="#0077bb"
)
"""What all roles have in common that relations speak for."""

REVERSED = "←"
"""How the sign of a relation the other way round ends."""


def rule_of(relation: str, *, reverse: bool, threshold: float = THRESHOLD) -> RoleRule:
    """The role of a head that finds a relation; its sign is such as ``nsubj``, of a kind of a relation ``ns:pa``."""
    first, _, sort = relation.partition(":")
    return replace(
        FAMILY, name=name_of(relation, reverse=reverse), words=words_of(relation, reverse=reverse),
        threshold=threshold, sign=(f"{first[:2]}:{sort[:2]}" if sort else first[:5]) + REVERSED * reverse,
    )  # fmt: skip


def name_of(relation: str, *, reverse: bool) -> str:
    """What such a role is called."""
    return f"relation_{relation}{'_reversed' if reverse else ''}"


def roles_of(
    found: Relations, untrained: Relations | None, threshold: float = THRESHOLD
) -> dict[tuple[int, int], tuple[Role, ...]]:
    """By layer and head, the roles that relations speak for, over all sentences.

    Only roles that are established are roles here: there are so many relations that one or another is found by half.

    Args:
        found: what heads find.
        untrained: what those of random weights find; without them no role is established.
        threshold: from which accuracy on a head has a role.
    """
    roles: dict[tuple[int, int], list[Role]] = {}
    if untrained is None:
        return {}
    for at, name in enumerate(found.names):
        counts = found.counts[:, :, at].sum(axis=0)  # (replicate,)
        if counts[0] < FEWEST or name not in untrained.names:
            continue
        hits = found.hits[:, 0, at].sum(axis=0)  # (way, layer, head)
        reached = np.argwhere(hits >= threshold * counts[0])
        controls = (_best_offset(found, at), _best_untrained(untrained, name)) if len(reached) else ()
        for way, layer, head in reached.tolist():
            score, low, high = interval(found.hits[:, :, at, way, layer, head].sum(axis=0), counts)
            if not all(low > control.high for control in controls):
                continue
            rule = rule_of(name, reverse=way == REVERSE, threshold=threshold)
            roles.setdefault((layer, head), []).append(role_of(rule, rule.name, (score, low, high), controls))
    return {head: tuple(several) for head, several in roles.items()}


def examples_of(own: Mapping[int, LinkHits], texts: Mapping[int, str]) -> dict[tuple[str, str], tuple[Example, ...]]:
    """By layer.head and relation, the sentences of a sample of whose links of that relation a head finds most.

    Of sentences of which it finds as large a share, the one with more links comes first, then the shorter one.

    Args:
        own: what the heads find of each sentence.
        texts: the sentences.
    """
    best: dict[tuple[str, str], list[tuple[float, int, str]]] = {}
    for key, found in own.items():
        for name in dict.fromkeys(found.names):
            mine = found.hits[[other == name for other in found.names]]  # (link, way, layer, head)
            for way, layer, head in np.argwhere(mine.any(axis=0)).tolist():
                share = float(mine[:, way, layer, head].mean())
                place = f"{layer}.{head}", name_of(name, reverse=way == REVERSE)
                best.setdefault(place, []).append((share, len(mine), texts[key]))
    return {
        place: tuple(
            Example(text=text, score=share)
            for share, _, text in sorted(several, key=lambda one: (-one[0], -one[1], len(one[2]), one[2]))[:EXAMPLES]
        )
        for place, several in best.items()
    }


def _best_offset(found: Relations, at: int) -> Control:
    number = int(found.offsets[:, 0, at].sum(axis=0).argmax())
    value, low, high = interval(found.offsets[:, :, at, number].sum(axis=0), found.counts[:, :, at].sum(axis=0))
    offset = DISTANCES[number]
    what = f"best fixed offset ({offset:+d} word{'s' * (abs(offset) != 1)})"
    return Control(name=OFFSET, what=what, value=value, low=low, high=high, rules_out=True)


def _best_untrained(found: Relations, name: str) -> Control:
    at = found.names.index(name)
    hits = found.hits[:, :, at].sum(axis=0)  # (replicate, way, layer, head)
    way, layer, head = np.unravel_index(int(hits[0].argmax()), hits.shape[1:])
    value, low, high = interval(hits[:, way, layer, head], found.counts[:, :, at].sum(axis=0))
    what = f"best head of random weights ({layer}.{head})"
    return Control(name=UNTRAINED, what=what, value=value, low=low, high=high, rules_out=True)
