"""Which heads, roles and measures are shown, in which order; and the numbers that every view takes of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
MOST_CARDS = 8  # so many roles have a card with an example; so many of the strongest links of a sentence are shown
FEWEST, SHORT = 6, 12
"""Words of an example with letters in them, at least, and words at most, where there is such a one: its words stand
beside its pattern."""
MOST = 144  # heads that are all shown where nothing was chosen: those of a base model. Of more, those that have a role.


class HeadRole(NamedTuple):
    """A head with the role that is shown of it; None where it has no clear one."""

    head: HeadProfile
    role: Role | None


def role_names(comparison: HeadComparison) -> list[str]:
    """The names of all roles that there are: of position, of content, of relations, of spread; no role is ``none``."""
    rules = [rule for _, rule in rules_of(comparison.measures)]
    sorts = [
        [rule for rule in rules if rule.about == about]
        for about in ("position", "content", "spread")
    ]
    names: dict[str, dict[str, None]] = {}
    for rule in (*sorts[0], *sorts[1], FAMILY, *sorts[2]):
        names.setdefault(rule.family, {}).update({} if rule is FAMILY else {rule.name: None})
    for role in sorted(
        (role for head in comparison.heads for role in head.roles), key=lambda role: role.name
    ):
        names.setdefault(role.rule.family, {})[role.name] = None
    return [*dict.fromkeys(name for several in names.values() for name in several), NONE]


def find_roles(wanted: str, measures: Sequence[Measure], relations: Sequence[str] = ()) -> set[str]:
    """The roles, and families of roles, that are meant by a name: short or in full, of a relation, or of a sort.

    Such as ``previous``, ``sink``, ``nsubj``, ``nsubj > verb``, ``coref``, ``relation``, ``none``. Raises
    SelectionError: there is no such role.
    """
    known = {name: {rule.name} for _, rule in rules_of(measures) for name in names_of(rule)}
    families = dict.fromkeys([*(rule.family for _, rule in rules_of(measures)), FAMILY.name, NONE])
    known |= {family: {family} for family in families} | names_of_relations(relations)
    typed = spelling(wanted)
    if typed in known:
        return known[typed]
    if wanted.startswith(f"{FAMILY.name}_"):
        return {wanted}
    raise SelectionError(f"there is no role {clip(wanted, 40)!r}{suggest(typed, known, families)}")


def find_measure(wanted: str, measures: Sequence[Measure]) -> Measure:
    """The measure of this name, beginning, or heading in a table. Raises SelectionError: none, or more than one."""
    meant = [one for one in measures if one.name == wanted]
    meant = meant or [one for one in measures if wanted and one.name.startswith(wanted)]
    meant = meant or [one for one in measures if one.label == wanted]
    if len(meant) == 1:
        return meant[0]
    names = [one.name for one in measures]
    shown = [one.name for offset in (None, -1) for one in measures if one.offset == offset]
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
    """The heads that are asked for, in the order asked for; of more than `MOST`, where nothing is, those with a role.

    `sort` is ``head`` (as they stand in the model), ``role`` (then by score), ``score``, ``divergence`` (from a second
    model), or a measure, largest first. A head that has any of the roles is shown; ``none`` is no clear role. Layers,
    and heads of each of them, may be negative, from the end. Raises SelectionError: there is no such measure, role,
    layer or head, or no second model.
    """
    relations = [one.name for one in comparison.relations]
    wanted = {name for one in role for name in find_roles(one, comparison.measures, relations)}
    rows = set(
        indices_of(layers or range(comparison.n_layers), range(comparison.n_layers), "layer")
    )
    columns = set(indices_of(heads or range(comparison.n_heads), range(comparison.n_heads), "head"))
    found = []
    for head in (one for one in comparison.heads if one.layer in rows and one.head in columns):
        have = [
            one
            for one in head.roles
            if not wanted or one.name in wanted or one.rule.family in wanted
        ]
        if have or (not head.roles and (not wanted or NONE in wanted)):
            found.append(HeadRole(head, have[0] if have else None))
    if not (role or layers or heads) and len(found) > MOST:
        found = [one for one in found if one.role is not None]
    return sorted(found, key=_order(comparison, sort))


def _order(comparison: HeadComparison, sort: str) -> Callable[[HeadRole], tuple[float, float]]:
    order = {name: place for place, name in enumerate(role_names(comparison))}
    measure = None if sort in ORDERS else find_measure(sort, comparison.measures)
    if sort == DIVERGENCE and comparison.against is None:
        raise SelectionError("there is no second model to be sorted by")

    def key(one: HeadRole) -> tuple[float, float]:
        if sort == "head":
            return 0.0, 0.0
        if measure is not None:
            value = comparison.estimate(measure.name, *one.head.place)[0]
            return (math.inf if math.isnan(value) else -value), 0.0
        if one.head.change is not None and sort == DIVERGENCE:
            value = one.head.change.divergence
            return (math.inf if math.isnan(value) else -value), 0.0
        if one.role is None:
            return math.inf, 0.0
        return (order.get(one.role.name, len(order)) if sort == "role" else 0.0), -one.role.score

    return key


def estimate_of(
    comparison: HeadComparison, measure: str, profile: HeadProfile
) -> tuple[float, float, float]:
    """A measure of a head and both ends of its interval; NaN where it was not measured."""
    return (
        comparison.estimate(measure, *profile.place)
        if measure in comparison.names
        else (math.nan,) * 3
    )


def at_offset(
    comparison: HeadComparison, offset: int, profile: HeadProfile, family: str = "offset"
) -> tuple[float, float, float]:
    """The weight at a fixed offset (or of ``peak``, how often the largest is there) with its interval; NaN likewise."""
    names = (
        one.name for one in comparison.measures if (one.family, one.offset) == (family, offset)
    )
    return estimate_of(comparison, next(names, ""), profile)


def control_of(comparison: HeadComparison, control: str, name: str, profile: HeadProfile) -> float:
    """A control of one measure of a head."""
    return float(comparison.controls[control].value[(*profile.place, comparison.names.index(name))])


def by_role(comparison: HeadComparison) -> list[list[HeadRole]]:
    """For each role the heads of which it is established, be it their clearest or not, that of the best score first.

    After these come the roles that are the clearest of a head and not established, then the heads that have none.
    """
    order = {name: place for place, name in enumerate(role_names(comparison))}
    rows: dict[tuple[bool, int, str], list[HeadRole]] = {}
    for head, role in sorted(_held_roles(comparison), key=lambda had: -had[1].score):
        place = not role.established, order.get(role.name, len(order)), role.name
        rows.setdefault(place, []).append(HeadRole(head, role))
    without = [HeadRole(head, None) for head in comparison.heads if not head.roles]
    return [*(rows[place] for place in sorted(rows)), *([without] if without else [])]


class RoleCard(NamedTuple):
    """The head that has a role most clearly, and a sentence where it does; None where none was kept."""

    head: HeadProfile
    role: Role
    example: Example | None


def strongest(comparison: HeadComparison) -> list[RoleCard]:
    """For each established role, or for each where none is, the head that has it most clearly; `MOST_CARDS` at most."""
    cards = dict([*_clearest(comparison).items()][:MOST_CARDS])
    return [cards[name] for name in role_names(comparison) if name in cards]


def without_card(comparison: HeadComparison) -> int:
    """How many roles of which there are cards have none."""
    return max(0, len(_clearest(comparison)) - MOST_CARDS)


def _clearest(comparison: HeadComparison) -> dict[str, RoleCard]:
    cards: dict[str, RoleCard] = {}
    sure = comparison.n_established > 0
    for head, role in sorted(
        _held_roles(comparison), key=lambda held: held[1].clearness, reverse=True
    ):
        if role.established == sure and role.name not in cards:
            cards[role.name] = RoleCard(head, role, example_of(comparison, head, role))
    return cards


def own_card(head: HeadProfile, comparison: HeadComparison) -> list[RoleCard]:
    """The card of a head's clearest role; none of a head without one."""
    return [RoleCard(head, one, example_of(comparison, head, one)) for one in head.roles[:1]]


def example_of(comparison: HeadComparison, head: HeadProfile, role: Role) -> Example | None:
    """A typical sentence of a head with a role, or the strongest that is short; None where none was kept."""
    if (found := comparison.typical.get((head.name, role.measure))) is not None:
        return found
    kept = comparison.examples.get((head.name, role.measure), ())
    return next((one for one in kept if len(one.text.split()) <= SHORT), next(iter(kept), None))


def typical(ranked: Sequence[Example]) -> Example | None:
    """A sentence like those where a measure is strong: near the median of the strongest tenth, with words enough.

    Of sentences with `FEWEST` words or more that have letters, the nearest in rank to that median: one of at most
    `SHORT` words where that tenth has any; None where no sentence has so many words.
    """
    tenth = max(1, round(len(ranked) / 10))

    def far(rank: int) -> tuple[bool, bool, float]:
        return rank >= tenth, len(ranked[rank].text.split()) > SHORT, abs(rank - (tenth - 1) / 2)

    n_words = [sum(any(map(str.isalpha, word)) for word in one.text.split()) for one in ranked]
    fit = [rank for rank, n in enumerate(n_words) if n >= FEWEST]
    return ranked[min(fit, key=far)] if fit else None


def _held_roles(comparison: HeadComparison) -> list[tuple[HeadProfile, Role]]:
    """The heads with their roles: the clearest of each head, and what it is established to do beside that."""
    return [
        (head, role)
        for head in comparison.heads
        for role in head.roles
        if role.established or role is head.roles[0]
    ]


def received_by_words(record: Attention) -> Float32[np.ndarray, "layer head key"]:
    """The mean weight that each key gets of the rows; special tokens get none, unless there is nothing else."""
    words = np.array([not token.special for token in record.key_tokens])
    return np.asarray(record.weights.mean(axis=2) * (words if words.any() else 1))


def strongest_link(record: Attention, layer: int, head: int) -> tuple[int, int, float] | None:
    """The largest weight of a head from a word to another, no special token: query, key, weight; None without any."""
    return next(iter(record.links(record.layers[layer], record.heads[head], 1)), None)


def strongest_links(record: Attention) -> list[tuple[tuple[int, int], tuple[float, int, int]]]:
    """The strongest links between words, between other words each: query and key; weight, layer and head."""
    places = np.ndindex(*record.weights.shape[:2])
    every = [
        (link, *place) for place in places if (link := strongest_link(record, *place)) is not None
    ]
    shown: dict[tuple[int, int], tuple[float, int, int]] = {}
    for (query, key, weight), layer, head in sorted(every, key=lambda one: -one[0][2]):
        shown.setdefault((query, key), (weight, layer, head))
    return list(shown.items())[:MOST_CARDS]


# Four sorts of heads, as a lecture on attention names them on "I love all you": grammar, from the verb to its subject
# and object; meaning, from love to you; pronoun, from you to I; position, from all to the word beside it.


class HeadSort(NamedTuple):
    """A sort of heads."""

    words: Phrase  # its name
    # from which words to which it looks in the lecture's sentence
    links: tuple[tuple[str, str], ...]
    holds: Callable[[Role], bool]  # whether a role is of this sort


SORTS = (
    HeadSort(
        _("grammar"),
        (("love", "I"), ("love", "you")),
        lambda role: (
            role.rule.family == FAMILY.name and ("subj" in role.name or "_obj" in role.name)
        ),
    ),
    HeadSort(_("meaning"), (("love", "you"),), lambda role: role.name == "meaning"),
    HeadSort(_("pronoun"), (("you", "I"),), lambda role: "coreference" in role.name),
    HeadSort(
        _("position"),
        (("all", "you"),),
        lambda role: role.rule.about == "position" and role.name != "self",
    ),
)
"""The lecture's four."""


class SortedHead(NamedTuple):
    """The head of a model that is most clearly of a sort, on one sentence."""

    sort: HeadSort  # which
    best: HeadRole | None  # the head and its established role; None where no head has one
    # of the lecture's links that the sentence has, both words, the weight of this head, or where there is none the
    # largest of any head, and the head that it is of
    cells: tuple[tuple[str, str, float, str], ...]
    # its strongest link between two words of the sentence, and the weight; None where there is none
    strongest: tuple[str, str, float] | None


def sorted_heads(comparison: HeadComparison, record: Attention) -> list[SortedHead]:
    """Of each sort the head that is most clearly so, and what it looks at in a sentence."""
    queries, keys = (
        [token.text for token in tokens] for tokens in (record.query_tokens, record.key_tokens)
    )
    found = []
    for sort in SORTS:
        every = [
            (one, role)
            for one in comparison.heads
            for role in one.roles
            if role.established and sort.holds(role)
        ]
        best = HeadRole(*max(every, key=lambda one: one[1].clearness)) if every else None
        cells, link = [], None
        for start, end in sort.links:
            at = _place(queries, start), _place(keys, end)
            if at[0] is not None and at[1] is not None:
                weights = np.asarray(record.weights[:, :, at[0], at[1]])
                head = (
                    np.unravel_index(int(weights.argmax()), weights.shape)
                    if best is None
                    else best.head.place
                )
                cells.append(
                    (queries[at[0]], keys[at[1]], float(weights[head]), f"{head[0]}.{head[1]}")
                )
        if best is not None and (strong := strongest_link(record, *best.head.place)) is not None:
            link = queries[strong[0]], keys[strong[1]], strong[2]
        found.append(SortedHead(sort, best, tuple(cells), link))
    return found


def _place(texts: list[str], word: str) -> int | None:
    places = [at for at, text in enumerate(texts) if text.casefold() == word.casefold()]
    return places[0] if len(places) == 1 else None
