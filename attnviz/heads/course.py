"""Four sorts of heads, as a lecture on attention names them on "I love all you", and the heads of a model that are so.

Grammar: from the verb to its subject and object. Meaning: from love to you. Pronoun: from you to I. Position: from all
to the word beside it. Which head of a model is of which sort is told by its established roles on many sentences; what
it looks at in one sentence is told by its weights there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from attnviz.attention import Attention
from attnviz.heads.record import HeadComparison, HeadProfile, Role
from attnviz.heads.roles import RELATION
from attnviz.heads.selection import strongest_link


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadSort:
    """A sort of heads."""

    words: tuple[str, str]  # its name, in English and in Korean
    links: tuple[tuple[str, str], ...]  # from which words to which it looks in the lecture's sentence
    holds: Callable[[Role], bool]  # whether a role is of this sort


SORTS = (
    HeadSort(
        words=("grammar", "문법"), links=(("love", "I"), ("love", "you")),
        holds=lambda role: role.rule.family == RELATION and ("subj" in role.name or "_obj" in role.name),
    ),
    HeadSort(words=("meaning", "의미"), links=(("love", "you"),), holds=lambda role: role.name == "meaning"),
    HeadSort(words=("pronoun", "대명사"), links=(("you", "I"),), holds=lambda role: "coreference" in role.name),
    HeadSort(
        words=("position", "위치"), links=(("all", "you"),),
        holds=lambda role: role.rule.about == "position" and role.name != "self",
    ),
)  # fmt: skip
"""The lecture's four."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SortedHead:
    """The head of a model that is most clearly of a sort, on one sentence."""

    sort: HeadSort  # which
    had: tuple[HeadProfile, Role] | None  # the head and its established role; None where no head has one
    # of the lecture's links that the sentence has, both words, the weight of this head, or where there is none the
    # largest of any head, and the head that it is of
    cells: tuple[tuple[str, str, float, str], ...]
    # its strongest link between two words of the sentence, and the weight; None where there is none
    strongest: tuple[str, str, float] | None


def sorted_heads(comparison: HeadComparison, record: Attention) -> list[SortedHead]:
    """Of each sort the head that is most clearly so, and what it looks at in a sentence."""
    queries, keys = ([token.text for token in tokens] for tokens in (record.query_tokens, record.key_tokens))
    found = []
    for sort in SORTS:
        had = [(one, role) for one in comparison.heads for role in one.roles if role.established and sort.holds(role)]
        best = max(had, key=lambda one: one[1].clearness, default=None)
        cells, link = [], None
        for start, end in sort.links:
            at = _place(queries, start), _place(keys, end)
            if at[0] is not None and at[1] is not None:
                weights = np.asarray(record.weights[:, :, at[0], at[1]])
                head = np.unravel_index(int(weights.argmax()), weights.shape) if best is None else _at(best[0])
                cells.append((queries[at[0]], keys[at[1]], float(weights[head]), f"{head[0]}.{head[1]}"))
        if best is not None and (strong := strongest_link(record, *_at(best[0]))) is not None:
            link = queries[strong[0]], keys[strong[1]], strong[2]
        found.append(SortedHead(sort=sort, had=best, cells=tuple(cells), strongest=link))
    return found


def _at(head: HeadProfile) -> tuple[int, int]:
    return head.layer, head.head


def _place(texts: list[str], word: str) -> int | None:
    """Where a word stands, whichever its letters' case; None where it does not, or more than once."""
    places = [at for at, text in enumerate(texts) if text.casefold() == word.casefold()]
    return places[0] if len(places) == 1 else None
