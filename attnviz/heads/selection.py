"""Heads, roles, measures and examples chosen from a comparison, in the order in which views show them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32

from attnviz.attention import Attention, indices_of
from attnviz.errors import SelectionError
from attnviz.heads.measures import Measure, rules_of
from attnviz.heads.record import Example, HeadComparison, HeadProfile, Role
from attnviz.heads.relations import FAMILY
from attnviz.heads.relations import names_of as names_of_relations
from attnviz.heads.roles import names_of, spelling
from attnviz.heads.settings import DIVERGENCE
from attnviz.text.display import clip
from attnviz.text.messages import Phrase, _
from attnviz.text.suggest import suggest

NONE = "none"  # stands for no clear role, where roles are chosen or sorted
ORDERS = ("head", "role", "score", DIVERGENCE)  # how heads can be sorted, beside by a measure
ABOUT = ("position", "content", "relation", "spread")  # the order of roles, by their subject
MOST_CARDS = 8  # roles that have a card with an example; links of a sentence that are shown
FEWEST, SHORT = 6, 12
"""Words with letters in them that an example has at least, and words that it has at most where possible: they stand
beside its pattern."""
MOST = 144  # heads that are all shown where nothing was chosen, those of a base model


class HeadRole(NamedTuple):
    """A head with the role that is shown of it; None where it has no clear one."""

    head: HeadProfile
    role: Role | None


def find_roles(wanted: str, measures: Sequence[Measure], relations: Sequence[str] = ()) -> set[str]:
    """Return the roles and families of roles that a name means, short or in full.

    Such as ``previous``, ``sink``, ``nsubj``, ``nsubj > verb``, ``coref``, ``relation``, ``none``. Raises
    SelectionError: there is no such role.
    """
    rules = [rule for _measure, rule in rules_of(measures)]
    known = {name: {rule.name} for rule in rules for name in names_of(rule)}
    families = dict.fromkeys([*(rule.family for rule in rules), FAMILY.name, NONE])
    known |= {family: {family} for family in families} | names_of_relations(relations)
    typed = spelling(wanted)
    if typed in known:
        return known[typed]
    if wanted.startswith(f"{FAMILY.name}_"):
        return {wanted}
    raise SelectionError(f"there is no role {clip(wanted, 40)!r}{suggest(typed, known, families)}")


def find_measure(wanted: str, measures: Sequence[Measure]) -> Measure:
    """Return the measure of this name, beginning, or heading in a table.

    Raises SelectionError: none, or more than one.
    """
    meant = [one for one in measures if wanted in {one.name, one.label}]
    meant = meant or [one for one in measures if wanted and one.name.startswith(wanted)]
    if len(meant) == 1:
        return meant[0]
    names = [one.name for one in measures]
    shown = [one.name for one in measures if one.offset in {None, -1}]
    hint = suggest(wanted, (*ORDERS, *names), shown)
    raise SelectionError(f"there is no measure {clip(wanted, 40)!r}{hint}")


def choose_heads(
    comparison: HeadComparison,
    *,
    sort: str = "head",
    role: Sequence[str] = (),
    layers: Sequence[int] = (),
    heads: Sequence[int] = (),
) -> list[HeadRole]:
    """Return the heads that are asked for, in the order asked for.

    Where nothing is asked for and there are more than `MOST`, only those with a role.

    Args:
        comparison: the heads.
        sort: ``head`` (as in the model), ``role`` (then by score), ``score``, ``divergence`` (from a second model), or
            a measure, largest first.
        role: heads that have any of these roles; ``none`` is no clear role.
        layers: their layers, which may be negative, from the end; all if empty.
        heads: their numbers in each layer, likewise.

    Raises:
        SelectionError: there is no such measure, role, layer or head, or no second model.
    """
    relations = [relation.name for relation in comparison.relations]
    wanted = set[str]()
    for one in role:
        wanted |= find_roles(one, comparison.measures, relations)
    every_layer, every_head = range(comparison.n_layers), range(comparison.n_heads)
    rows = indices_of(layers or every_layer, every_layer, "layer")
    columns = indices_of(heads or every_head, every_head, "head")
    chosen: list[HeadRole] = []
    for head in comparison.heads:
        if head.layer in rows and head.head in columns:
            chosen += _shown_role(head, wanted)
    if len(chosen) > MOST and not (role or layers or heads):
        chosen = [one for one in chosen if one.role is not None]
    return chosen if sort == "head" else sorted(chosen, key=_order(comparison, sort))


def _shown_role(head: HeadProfile, wanted: set[str]) -> Iterator[HeadRole]:
    """Yield a head with the first of its roles that is wanted, if any; an empty set is all."""
    if not head.roles and (not wanted or NONE in wanted):
        yield HeadRole(head, None)
    for role in head.roles:
        if not wanted or {role.name, role.rule.family} & wanted:
            yield HeadRole(head, role)
            return


def _order(
    comparison: HeadComparison, sort: str
) -> Callable[[HeadRole], tuple[tuple[int, int, str], float]]:
    """Return the key that heads are sorted by, largest first; what has no number comes last."""
    if sort == DIVERGENCE and comparison.against is None:
        raise SelectionError("there is no second model to sort by")
    measure = None if sort in ORDERS else find_measure(sort, comparison.measures)

    def key(one: HeadRole) -> tuple[tuple[int, int, str], float]:
        value = math.nan
        if measure is not None:
            value = comparison.estimate(measure.name, *one.head.place)[0]
        elif sort == DIVERGENCE and one.head.change is not None:
            value = one.head.change.divergence
        elif one.role is not None:
            value = one.role.score
        rank = role_order(comparison, one.role) if sort == "role" else (0, 0, "")
        return rank, math.inf if math.isnan(value) else -value

    return key


def role_order(comparison: HeadComparison, role: Role | None) -> tuple[int, int, str]:
    """Return the place of a role among others: by subject, then as measures stand; no role is last."""
    if role is None:
        return len(ABOUT), 0, ""
    if role.rule.family == FAMILY.name:
        return ABOUT.index("relation"), 0, role.name
    return ABOUT.index(role.rule.about), comparison.names.index(role.measure), role.name


def by_role(comparison: HeadComparison) -> list[list[HeadRole]]:
    """Return for each role its heads, the best score first.

    Established roles come first, with all heads of which they are established; then roles that are the clearest of a
    head and not established; then the heads without a role.
    """
    rows: dict[tuple[bool, tuple[int, int, str]], list[HeadRole]] = {}
    for head, role in sorted(_held_roles(comparison), key=lambda held: -held[1].score):
        place = not role.established, role_order(comparison, role)
        rows.setdefault(place, []).append(HeadRole(head, role))
    without = [HeadRole(head, None) for head in comparison.heads if not head.roles]
    groups = [rows[place] for place in sorted(rows)]
    return [*groups, without] if without else groups


def _held_roles(comparison: HeadComparison) -> list[tuple[HeadProfile, Role]]:
    """Return heads with their roles: the clearest of each, and those established beside it."""
    return [
        (head, role)
        for head in comparison.heads
        for role in head.roles
        if role.established or role is head.roles[0]
    ]


# Examples.


class RoleCard(NamedTuple):
    """The head that has a role most clearly, and a sentence where it does; None where none was kept."""

    head: HeadProfile
    role: Role
    example: Example | None


def strongest(comparison: HeadComparison) -> list[RoleCard]:
    """Return a card for each established role, or for each role where none is; the clearest `MOST_CARDS`."""
    held = sorted(_held_roles(comparison), key=lambda one: one[1].clearness, reverse=True)
    cards: dict[str, RoleCard] = {}
    for head, role in held:
        if role.established == (comparison.n_established > 0) and role.name not in cards:
            cards[role.name] = RoleCard(head, role, example_of(comparison, head, role))
    shown = list(cards.values())[:MOST_CARDS]
    return sorted(shown, key=lambda card: role_order(comparison, card.role))


def own_card(head: HeadProfile, comparison: HeadComparison) -> list[RoleCard]:
    """Return the card of a head's clearest role; none of a head without one."""
    return [RoleCard(head, one, example_of(comparison, head, one)) for one in head.roles[:1]]


def example_of(comparison: HeadComparison, head: HeadProfile, role: Role) -> Example | None:
    """Return a typical sentence of a head with a role, or the strongest that is short; None where none was kept."""
    place = head.name, role.measure
    if place in comparison.typical:
        return comparison.typical[place]
    kept = comparison.examples.get(place, ())
    short = [one for one in kept if len(one.text.split()) <= SHORT]
    return next(iter([*short, *kept]), None)


def examples_of(comparison: HeadComparison, head: HeadProfile) -> list[tuple[str, Example]]:
    """Return the strongest sentence of each measure of a head, those of its roles first."""
    names = [role.measure for role in head.roles]
    names += [one.name for one in comparison.measures if one.offset is None]
    found = [
        (name, comparison.examples.get((head.name, name), ())) for name in dict.fromkeys(names)
    ]
    return [(name, several[0]) for name, several in found if several]


def typical(ranked: Sequence[Example]) -> Example | None:
    """Return a sentence like those where a measure is strong: near the median of the strongest tenth.

    Of sentences with `FEWEST` words or more that have letters, the nearest in rank to that median: one of at most
    `SHORT` words where that tenth has any; None where no sentence has so many words.
    """
    tenth = max(1, round(len(ranked) / 10))

    def distance(rank: int) -> tuple[bool, bool, float]:
        return rank >= tenth, len(ranked[rank].text.split()) > SHORT, abs(rank - (tenth - 1) / 2)

    n_words = [sum(any(map(str.isalpha, word)) for word in one.text.split()) for one in ranked]
    ranks = [rank for rank, n in enumerate(n_words) if n >= FEWEST]
    return ranked[min(ranks, key=distance)] if ranks else None


# One sentence.


def received_by_words(record: Attention) -> Float32[np.ndarray, "layer head key"]:
    """Return the mean weight that each key receives; special tokens receive none, unless there is nothing else."""
    words = np.array([not token.special for token in record.key_tokens])
    return np.asarray(record.weights.mean(axis=2) * (words if words.any() else 1))


class WordLink(NamedTuple):
    """The weight of a head from one word of a sentence to another."""

    query: str
    key: str
    weight: float
    layer: int
    head: int

    @property
    def words(self) -> str:
        """Both words, as ``it → animal``."""
        return f"{self.query} → {self.key}"


def strongest_link(record: Attention, layer: int, head: int) -> WordLink | None:
    """Return the largest weight of a head between two words; None without any."""
    for query, key, weight in record.links(record.layers[layer], record.heads[head], 1):
        texts = record.query_tokens[query].text, record.key_tokens[key].text
        return WordLink(*texts, weight, layer, head)
    return None


def strongest_links(record: Attention) -> list[WordLink]:
    """Return the strongest links of heads, each between other words, the strongest first."""
    places = np.ndindex(*record.weights.shape[:2])
    links = [link for place in places if (link := strongest_link(record, *place)) is not None]
    links.sort(key=lambda link: -link.weight)
    shown: dict[str, WordLink] = {}
    for link in links:
        shown.setdefault(link.words, link)
    return list(shown.values())[:MOST_CARDS]


class HeadKind(NamedTuple):
    """A kind of head that lectures on attention name, and the head of a model that plays the part on a sentence."""

    name: Phrase
    head: HeadProfile | None  # the head that is most clearly of this kind; None without one
    role: Role | None  # its established role
    # the lecture's link in the sentence, as this head weighs it, or else the head that gives it most; None where the
    # sentence lacks the words
    lecture: WordLink | None
    strongest: WordLink | None  # its strongest link between words of the sentence


def _is_grammar(role: Role) -> bool:
    return role.rule.family == FAMILY.name and ("subj" in role.name or "_obj" in role.name)


def _is_position(role: Role) -> bool:
    return role.rule.about == "position" and role.name != "self"


# The kinds of a lecture on "I love all you", each with the words that it links there.
KINDS: tuple[tuple[Phrase, tuple[tuple[str, str], ...], Callable[[Role], bool]], ...] = (
    (_("grammar"), (("love", "I"), ("love", "you")), _is_grammar),
    (_("meaning"), (("love", "you"),), lambda role: role.name == "meaning"),
    (_("pronoun"), (("you", "I"),), lambda role: "coreference" in role.name),
    (_("position"), (("all", "you"),), _is_position),
)


def head_kinds(roles_on: HeadComparison, record: Attention) -> list[HeadKind]:
    """Return for each of the lecture's kinds the head that plays the part, by roles measured on many sentences."""
    kinds = []
    for name, words, is_kind in KINDS:
        held = [
            (head, role)
            for head in roles_on.heads
            for role in head.roles
            if role.established and is_kind(role)
        ]
        head, role = max(held, key=lambda one: one[1].clearness, default=(None, None))
        links = _links_of(record, words, head)
        lecture = max(links, key=lambda link: link.weight, default=None)
        strongest = None if head is None else strongest_link(record, *head.place)
        kinds.append(HeadKind(name, head, role, lecture, strongest))
    return kinds


def _links_of(
    record: Attention, words: Sequence[tuple[str, str]], head: HeadProfile | None
) -> Iterator[WordLink]:
    """Yield the weights between given words, of one head, or of the head where each is largest."""
    queries = [token.text for token in record.query_tokens]
    keys = [token.text for token in record.key_tokens]
    for start, end in words:
        query, key = _find_word(queries, start), _find_word(keys, end)
        if query is not None and key is not None:
            weights = np.asarray(record.weights[:, :, query, key])
            layer, number = divmod(int(weights.argmax()), weights.shape[1])
            if head is not None:
                layer, number = head.place
            weight = float(weights[layer, number])
            yield WordLink(queries[query], keys[key], weight, layer, number)


def _find_word(texts: Sequence[str], word: str) -> int | None:
    """Return the place of a word that occurs once; None otherwise."""
    places = [at for at, text in enumerate(texts) if text.casefold() == word.casefold()]
    return places[0] if len(places) == 1 else None
