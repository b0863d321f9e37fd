"""Roles that relations between words speak for: named in plain words, and only where the controls allow it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from attnviz.heads import relation_words, relations
from attnviz.text.corpus import COREFERENCE
from tests.heads.test_relations_counts import found, small

if TYPE_CHECKING:
    from attnviz.heads.record import Role
    from attnviz.heads.relations import LinkHits, Relations

RANDOM = (0, 1, 1)
HEAD = (0, 0, 2)
"""Where a word looks, layer 0, head 2."""

UNIVERSAL = (
    "acl advcl advmod amod appos aux case cc ccomp clf compound conj cop csubj dep det discourse dislocated expl fixed "
    "flat goeswith iobj list mark nmod nsubj nummod obj obl orphan parataxis punct reparandum vocative xcomp"
)
"""The relations of Universal Dependencies 2 but for the root, from its table of them."""


def corpus(
    n: int, name: str, distance: int, where: tuple[int, ...], right: int | None = None
) -> Relations:
    """So many sentences with a link each, the first of them found."""
    sentences: list[tuple[int, LinkHits]] = [
        (key, found((name, distance, where if right is None or key < right else None)))
        for key in range(n)
    ]
    return small(sentences)


def seeds(random: Relations, n: int = 8) -> Relations:
    """As many models of random weights that all find the same."""
    return replace(random, hits=np.concatenate([random.hits] * n, axis=4))


def roles_of(
    trained: Relations, random: Relations | None, threshold: float = 0.5, different: int = 100
) -> dict[tuple[int, int], list[Role]]:
    """The roles that these speak for."""
    random = None if random is None else seeds(random)
    return relations.roles_of(relations.candidates(trained, random, threshold, different=different))


class TestWords:
    """Heads are named in plain words."""

    @pytest.mark.parametrize(
        ("relation", "reverse", "words"),
        [
            ("nsubj", False, "attends from the subject to its verb"),
            ("nsubj", True, "attends from the verb to its subject"),
            ("det", True, "attends from the noun to its determiner"),
            ("amod", False, "attends from the adjective to its noun"),
            ("nmod:poss", True, "attends from the possessed noun to its possessor"),
            ("obl:tmod", False, "attends along “obl:tmod”"),
            (COREFERENCE, False, "attends from the pronoun or later mention to its referent"),
            ("agreement", True, "attends from the subject to its verb"),
            ("kinship", False, "attends along “kinship”"),
            ("kinship", True, "attends along “kinship” in reverse"),
        ],
    )
    def test_of_a_relation(self, relation: str, reverse: bool, words: str) -> None:
        assert relations.rule_of(relation, reverse=reverse).words == words

    def test_no_two_roles_are_named_alike(self) -> None:
        rules = [
            relations.rule_of(name, reverse=reverse)
            for name in relation_words.RELATIONS
            for reverse in (False, True)
        ]
        names = [one.short for one in rules]
        assert len(names) == len(set(names))


class TestRoles:
    """A head has the role of a relation where nothing simpler does as much."""

    def test_a_head_that_finds_it(self) -> None:
        made = roles_of(corpus(80, "obj", 9, HEAD), corpus(80, "obj", 9, RANDOM, right=8))
        ((where, (role,)),) = made.items()
        assert where == (0, 2)
        assert (role.rule.words, role.name, role.established) == (
            "attends from the object to its verb",
            "relation_obj",
            True,
        )
        assert (role.score, role.high, role.rule.threshold) == (1.0, 1.0, 0.5)
        assert 0.9 < role.low < 1
        offset, untrained = role.controls
        assert offset.value == 0
        assert untrained.value == pytest.approx(0.1)

    def test_the_other_way_round(self) -> None:
        made = roles_of(corpus(40, "obj", 9, (1, 1, 0)), corpus(40, "obj", 9, RANDOM, right=4))
        (role,) = made[1, 0]
        assert (role.name, role.rule.words) == (
            "relation_obj_reversed",
            "attends from the verb to its object",
        )

    @pytest.mark.parametrize(
        ("trained", "random"),
        [
            pytest.param(
                corpus(40, "obj", 9, HEAD, right=19),
                corpus(40, "obj", 9, RANDOM, right=0),
                id="threshold",
            ),
            pytest.param(
                corpus(19, "obj", 9, HEAD), corpus(19, "obj", 9, RANDOM, right=0), id="few"
            ),
            pytest.param(
                corpus(40, "obj", 1, HEAD), corpus(40, "obj", 9, RANDOM, right=0), id="offset"
            ),
            pytest.param(
                corpus(40, "obj", 9, HEAD), corpus(40, "obj", 9, RANDOM, right=39), id="random"
            ),
            pytest.param(
                corpus(40, "obj", 9, HEAD), corpus(40, "det", 9, RANDOM), id="no control of it"
            ),
            pytest.param(corpus(40, "obj", 9, HEAD), None, id="no control"),
        ],
    )
    def test_what_rules_it_out(self, trained: Relations, random: Relations | None) -> None:
        assert roles_of(trained, random) == {}
