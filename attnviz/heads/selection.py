"""Selection of heads, roles, measures and examples from a comparison, in the order of views."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float32

from attnviz.attention import Attention
from attnviz.heads.measures import RELATION
from attnviz.heads.record import Example, HeadComparison, HeadProfile, Role
from attnviz.text.messages import N_, Message

ABOUT = ("position", "content", "relation", "spread")  # the order of roles, by their subject
MOST_CARDS = 8  # largest number of role cards, and of links of a sentence
FEWEST_CARDS = 4  # smallest number of role cards, if there are enough heads with a role
FEWEST, SHORT = 6, 12
"""Smallest and, if possible, largest number of words of an example, so that it fits beside its pattern. Only words with
letters count for the smallest number."""
MOST = 144  # largest number of heads shown without a selection: those of a base model (12 x 12)


Cells: TypeAlias = tuple[int, int, int, int]
"""The first and one-past-last row, and the first and one-past-last column."""


def shown_heads(
    comparison: HeadComparison, places: Collection[tuple[int, int]] | None = None
) -> list[HeadProfile]:
    """Return the heads at these places, in the order of the model.

    None stands for all heads; if there are more than `MOST`, for those with a role.
    """
    heads = comparison.heads
    if places is not None:
        return [head for head in heads if head.place in places]
    return [head for head in heads if head.roles or len(heads) <= MOST]


def role_order(comparison: HeadComparison, role: Role) -> tuple[int, int, str]:
    """Return the sort key of a role: by its subject, then in the order of measures."""
    if role.rule.family == RELATION:
        return ABOUT.index("relation"), 0, role.name
    return ABOUT.index(role.rule.about), comparison.names.index(role.measure), role.name


def by_role(comparison: HeadComparison) -> list[list[tuple[HeadProfile, Role]]]:
    """Return the heads of each established role, the best score first."""
    rows: dict[tuple[int, int, str], list[tuple[HeadProfile, Role]]] = {}
    pairs = [(head, role) for head in comparison.heads for role in head.established]
    for head, role in sorted(pairs, key=lambda pair: -pair[1].score):
        rows.setdefault(role_order(comparison, role), []).append((head, role))
    return [rows[place] for place in sorted(rows)]


# Examples.


class RoleCard(NamedTuple):
    """A role, a head that has it, and an example sentence; None if no sentence was kept."""

    head: HeadProfile
    role: Role
    example: Example | None

    @property
    def key(self) -> tuple[str, str]:
        """The name of the head and the example, which its pattern belongs to."""
        return self.head.name, self.example.text if self.example is not None else ""


def strongest(comparison: HeadComparison) -> list[RoleCard]:
    """Return cards of the clearest `MOST_CARDS` roles: only established roles, or all if none is established.

    Each card is of the head that has the role most clearly. If there are fewer than `FEWEST_CARDS` roles, the next
    clearest heads of the same roles follow, each with another sentence.
    """
    has_established = comparison.n_established > 0
    pairs = [
        (head, role)
        for head in comparison.heads
        for role in (head.established if has_established else head.roles[:1])
    ]
    pairs.sort(key=lambda pair: pair[1].clearness, reverse=True)
    cards: dict[str, RoleCard] = {}
    for head, role in pairs:
        if role.name not in cards:
            cards[role.name] = RoleCard(head, role, example_of(comparison, head, role))
    clearest = list(cards.values())[:MOST_CARDS]
    shown = {(card.head.name, card.role.name) for card in clearest}
    texts = {card.example.text for card in clearest if card.example is not None}
    for head, role in pairs:
        if len(clearest) >= FEWEST_CARDS:
            break
        unused = [
            example
            for example in (
                example_of(comparison, head, role),
                *comparison.examples.get((head.name, role.measure), ()),
            )
            if example is not None and example.text not in texts
        ]
        # The longest sentence that fits beside its pattern says most.
        example = max(unused, key=_words_if_short, default=None)
        if (head.name, role.name) not in shown and example is not None:
            clearest.append(RoleCard(head, role, example))
            texts.add(example.text)
    return sorted(clearest, key=lambda card: role_order(comparison, card.role))


def _words_if_short(example: Example) -> int:
    """Return the number of words of a sentence; 0 if it has more than `SHORT`."""
    n_words = len(example.text.split())
    return n_words if n_words <= SHORT else 0


def clearest_card(head: HeadProfile, comparison: HeadComparison) -> RoleCard:
    """Return the card of the clearest role of a head that has one."""
    return RoleCard(head, head.roles[0], example_of(comparison, head, head.roles[0]))


def example_of(comparison: HeadComparison, head: HeadProfile, role: Role) -> Example | None:
    """Return a typical sentence for a role of a head, or the strongest short one; None if no sentence was kept."""
    place = head.name, role.measure
    if place in comparison.typical:
        return comparison.typical[place]
    ranked = comparison.examples.get(place, ())
    short = [example for example in ranked if len(example.text.split()) <= SHORT]
    return next(iter([*short, *ranked]), None)


def link_words(example: Example) -> str:
    """Return the words that an example links, such as ``it → city``; empty for roles that are no relations."""
    return ", ".join(
        " → ".join(example.text[start:end] for start, end in link) for link in example.links
    )


def linked_cells(example: Example, record: Attention) -> list[Cells]:
    """Return the cells of the links of an example; a link of a word without tokens has none."""
    cells = []
    for link in example.links:
        ends: list[int] = []
        for tokens, (start, end) in zip(
            (record.query_tokens, record.key_tokens), link, strict=True
        ):
            spans = [token.span or (0, 0) for token in tokens]
            inside = [n for n, span in enumerate(spans) if span[0] < end and start < span[1]]
            ends += [inside[0], inside[-1] + 1] if inside else []
        if len(ends) == 4:
            cells.append((ends[0], ends[1], ends[2], ends[3]))
    return cells


def typical(ranked: Sequence[Example]) -> Example | None:
    """Return a typical sentence for a high score: near the median of the strongest tenth.

    Only sentences with at least `FEWEST` words with letters are considered; None if there is no such sentence. In the
    strongest tenth, sentences of at most `SHORT` words are preferred, then the nearest in rank to the median.
    """
    tenth = max(1, round(len(ranked) / 10))

    def distance(rank: int) -> tuple[bool, bool, float]:
        return rank >= tenth, len(ranked[rank].text.split()) > SHORT, abs(rank - (tenth - 1) / 2)

    n_words = [
        sum(any(map(str.isalpha, word)) for word in example.text.split()) for example in ranked
    ]
    ranks = [rank for rank, n in enumerate(n_words) if n >= FEWEST]
    return ranked[min(ranks, key=distance)] if ranks else None


# One sentence.


def received_by_words(record: Attention) -> Float32[np.ndarray, "layer head key"]:
    """Return the mean weight that each key receives; 0 for special tokens, unless there are no other tokens."""
    words = np.array([not token.special for token in record.key_tokens])
    return np.asarray(record.weights.mean(axis=2) * (words if words.any() else 1))


class WordLink(NamedTuple):
    """The weight of a head from one word of a sentence to another."""

    query: str
    key: str
    weight: float
    layer: int
    head: int
    row: int  # of the query
    column: int  # of the key

    @property
    def words(self) -> str:
        """Both words, such as ``it → animal``."""
        return f"{self.query} → {self.key}"


def strongest_link(record: Attention, layer: int, head: int) -> WordLink | None:
    """Return the largest weight of a head between two words; None if there is no link."""
    for query, key, weight in record.links(record.layers[layer], record.heads[head], 1):
        texts = record.query_tokens[query].text, record.key_tokens[key].text
        return WordLink(*texts, weight, layer, head, query, key)
    return None


def strongest_links(record: Attention) -> list[WordLink]:
    """Return the strongest links between words, the strongest first; each pair of words occurs once."""
    places = np.ndindex(*record.weights.shape[:2])
    links = [link for place in places if (link := strongest_link(record, *place)) is not None]
    links.sort(key=lambda link: -link.weight)
    by_words: dict[str, WordLink] = {}
    for link in links:
        by_words.setdefault(link.words, link)
    return list(by_words.values())[:MOST_CARDS]


class HeadKind(NamedTuple):
    """A kind of head from lectures on attention, with the link of the lecture and the head that gives it most."""

    name: Message
    # the link with its weight in the head where it is largest; None if the sentence lacks the words
    link: WordLink | None
    role: Role | None  # the clearest established role of that head


# The kinds of heads in a lecture on "I love all you", each with the words that it links in this sentence.
KINDS: tuple[tuple[Message, str, str], ...] = (
    (N_("grammar"), "I", "love"),
    (N_("meaning"), "love", "you"),
    (N_("pronoun"), "you", "I"),
    (N_("position"), "all", "you"),
)


def head_kinds(roles_on: HeadComparison, record: Attention) -> list[HeadKind]:
    """Return the link of each kind in the lecture's sentence, with the roles measured on many sentences."""
    kinds = []
    for name, *words in KINDS:
        link = _best_link(record, *words)
        role = None if link is None else roles_on.head(link.layer, link.head).role
        kinds.append(HeadKind(name, link, role if role and role.established else None))
    return kinds


def _best_link(record: Attention, start: str, end: str) -> WordLink | None:
    """Return the weight between two words in the head where it is largest; None if one does not occur exactly once."""
    queries = [token.text for token in record.query_tokens]
    keys = [token.text for token in record.key_tokens]
    from_start = [
        query for query, text in enumerate(queries) if text.casefold() == start.casefold()
    ]
    to_end = [key for key, text in enumerate(keys) if text.casefold() == end.casefold()]
    if len(from_start) != 1 or len(to_end) != 1:
        return None
    row, column = from_start[0], to_end[0]
    weights = record.weights[:, :, row, column]
    layer, head = divmod(int(weights.argmax()), weights.shape[1])
    return WordLink(
        queries[row], keys[column], float(weights[layer, head]), layer, head, row, column
    )
