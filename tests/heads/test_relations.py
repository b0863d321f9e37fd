"""Relations between words: counted by hand, chosen and scored on different halves, named where controls allow it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.attention import Note
from attnviz.heads import relations, tally
from attnviz.heads.relations import (
    DISTANCES,
    LinkHits,
    Relations,
    best_of,
    candidates,
    count_links,
)
from attnviz.text.corpus import COREFERENCE
from attnviz.text.messages import _

if TYPE_CHECKING:
    from attnviz.heads.record import Relation

N_LAYERS, N_HEADS = 2, 3
EVEN, ODD = 2, 3
"""Keys of sentences of either half: the even ones choose, the odd ones score."""


def found(*links: tuple[str, int, tuple[int, ...] | None], lost: tuple[str, ...] = ()) -> LinkHits:
    """Counts of found links: relation, distance, and which direction, layer and head find each, if one does."""
    hits = np.zeros((len(links), 2, N_LAYERS, N_HEADS), dtype=bool)
    for number, (_name, _distance, where) in enumerate(links):
        if where is not None:
            hits[(number, *where)] = True
    return LinkHits(
        names=tuple(name for name, _, _ in links),
        hits=hits,
        distances=np.array([distance for _, distance, _ in links], dtype=np.int64),
        lost=lost,
    )


def small(sentences: list[tuple[int, LinkHits]]) -> Relations:
    """Return the counts for these sentences."""
    return count_links(sentences, N_LAYERS, N_HEADS)


def candidates_of(
    trained: Relations, random: Relations | None = None
) -> dict[str, tuple[Relation, ...]]:
    """The candidates of each relation, beside eight models of random weights that all find the same."""
    if random is not None:
        by_name = {
            name: replace(counts, hits=np.concatenate([counts.hits] * 8, axis=3))
            for name, counts in random.by_name.items()
        }
        random = replace(random, by_name=by_name)
    return candidates(trained, random, different=100)


def numbers(counted: Relations) -> dict[str, object]:
    """Everything that is counted."""
    by_name: dict[str, object] = {
        name: (one.hits.tolist(), one.offsets.tolist(), one.counts.tolist(), one.lost)
        for name, one in counted.by_name.items()
    }
    return {"names": list(by_name), **by_name, "other": counted.n_other}


def in_groups(values: np.ndarray) -> np.ndarray:
    """So many links, each in a group of its own, after their sum."""
    return np.concatenate([[values.sum()], values, np.zeros(tally.GROUPS - len(values))])


LINKS = st.tuples(
    st.sampled_from(("det", "nsubj", "obj", "zzz")),
    st.integers(-12, 12).filter(bool),
    st.one_of(st.none(), st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 2))),
)
LOST = st.lists(st.sampled_from(("aux", "det")), max_size=2)
CORPORA = st.lists(
    st.tuples(st.integers(0, 2**64 - 1), st.lists(LINKS, max_size=5), LOST), max_size=6
)
"""A few sentences: key, links, lost links."""

Drawn = list[tuple[int, list[tuple[str, int, tuple[int, ...] | None]], list[str]]]


def made(drawn: Drawn) -> Relations:
    """Return the counts for random sentences."""
    return small([(key, found(*links, lost=tuple(lost))) for key, links, lost in drawn])


class TestCounts:
    """Each link is counted where it belongs."""

    def test_by_hand(self) -> None:
        counted = small(
            [
                (EVEN, found(("det", 1, (0, 0, 1)), ("det", 2, None), ("obj", -1, (1, 1, 2)))),
                (ODD, found(("det", 1, (0, 0, 1)), lost=("aux", "det"))),
            ]
        )
        assert list(counted.by_name) == ["aux", "det", "obj"]
        aux, det, obj = counted.by_name.values()
        assert [one.counts[:, 0].tolist() for one in (aux, det, obj)] == [[0, 0], [2, 1], [1, 0]]
        assert det.hits[:, 0, 0, 0, 1].tolist() == [1, 1]
        assert obj.hits[:, 0, 1, 1, 2].tolist() == [1, 0]
        assert sum(one.hits[:, 0].sum() for one in (aux, det, obj)) == 3
        at = DISTANCES.tolist().index
        assert det.offsets[0, 0, [at(1), at(2)]].tolist() == [1, 1]
        assert obj.offsets[0, 0, at(-1)] == 1
        assert (aux.lost, det.lost, obj.lost) == (1, 1, 0)
        assert list(relations.notes(counted)) == [
            Note.of("relations_lost", n=2, total=6),
            Note.of("relations_in_one_half", n=1),
        ]

    def test_a_sentence_counts_in_its_half_in_all_and_in_one_group(self) -> None:
        links = found(("det", 1, (0, 0, 1)), ("det", 5, None))
        counted = small([(key, links) for key in (EVEN, EVEN + 2, EVEN + 34)]).by_name["det"]
        groups = np.zeros(1 + relations.HALF_GROUPS, dtype=int)
        groups[[0, 2, 3]] = 3, 1, 2
        assert counted.counts.tolist() == [(2 * groups).tolist(), (0 * groups).tolist()]
        assert counted.hits[0, :, 0, 0, 1].tolist() == groups.tolist()
        assert counted.offsets[0, :, DISTANCES.tolist().index(5)].tolist() == groups.tolist()


class TestMerging:
    """Parts make exactly the whole, whatever their relations and their order."""

    @given(CORPORA, st.integers(0, 6), st.permutations(range(6)))
    def test_parts_make_the_whole(self, drawn: Drawn, cut: int, order: list[int]) -> None:
        whole, one, other = numbers(made(drawn)), made(drawn[:cut]), made(drawn[cut:])
        assert numbers(relations.merge(one, other)) == whole
        assert numbers(relations.merge(other, one)) == whole
        assert numbers(made([drawn[place] for place in order if place < len(drawn)])) == whole


class TestInterval:
    """Shares come with an interval that is honest about few links."""

    def test_of_ten_out_of_ten_is_wilsons(self) -> None:
        ones = in_groups(np.ones(10))
        share, low, high = tally.share(ones, ones).at()
        assert share == 1.0
        # what the formula comes to for p = 1
        assert low == pytest.approx(10 / (10 + tally.Z**2), abs=1e-12)
        assert high == 1.0

    def test_links_of_one_sentence_go_together(self) -> None:
        """Eight sentences of thirty links each, all found or none: they speak for seven, and not for 240."""
        sentences = [
            (2 * key, found(*[("det", 1, (0, 0, 0) if key < 4 else None)] * 30)) for key in range(8)
        ]
        counted = small(sentences).by_name["det"]
        share, low, high = tally.share(counted.hits[0, :, 0, 0, 0], counted.counts[0]).at()
        assert share == 0.5
        # as many as vary so: n - 1 of n
        assert (low, high) == pytest.approx(tally.wilson(0.5, 7.0))
        assert high - low > 0.58


class TestBestHeads:
    """The best head is chosen on one half of the sentences and scored on the other."""

    def test_being_best_by_luck_does_not_flatter(self) -> None:
        """A head is best in the half that chooses, another in the half that scores: the first is scored.

        It has to beat the offset that is best on the half that scores.
        """
        lucky, other = (0, 0, 1), (1, 1, 2)
        chooses = [(2 * key, found(("det", 1, lucky), ("det", 1, lucky))) for key in range(10)]
        scores = [
            (
                2 * key + 1,
                found(("det", 5, other), ("det", 1, lucky) if key < 5 else ("det", 5, None)),
            )
            for key in range(10)
        ]
        (relation,) = best_of(candidates_of(small(chooses + scores)))
        assert (relation.layer, relation.head, relation.reverse) == (0, 1, False)
        assert (relation.n, relation.role.score) == (20, 0.25)
        (fixed,) = relation.role.controls
        assert (fixed.name, fixed.offset, fixed.value) == ("offset", 5, 0.75)
        assert not relation.role.established

    def test_a_head_that_looks_one_back_finds_no_relation(self) -> None:
        """Of pure offset heads nothing is established, even if few cases of the choosing half point elsewhere."""
        back = (0, 0, 1)
        chooses = [
            (2 * key, found(("aux", 3, None), ("aux", 3, None), ("aux", -1, back)))
            for key in range(4)
        ]
        scores = [
            (
                2 * key + 1,
                found(("aux", -1, back), ("aux", -1 if key % 4 else 3, back if key % 4 else None)),
            )
            for key in range(30)
        ]
        nothing = corpus(40, "aux", 9, None)
        for relation in candidates_of(small(chooses + scores), nothing)["aux"]:
            fixed = relation.role.control("offset")
            assert fixed is not None
            assert fixed.offset == -1
            assert fixed.value == pytest.approx(52 / 60, abs=0.02)
            assert relation.role.score <= fixed.value
            assert not relation.role.established

    def test_random_weights_are_chosen_and_scored_likewise(self) -> None:
        """The head that is best in the half that chooses is right in a quarter of the other half."""
        links = [(key, (0, 1, 1) if key % 2 == 0 or key < 10 else (0, 0, 2)) for key in range(40)]
        random = small([(key, found(("det", 9, where))) for key, where in links])
        (relation,) = best_of(candidates_of(corpus(40, "det", 9, HEAD), random))
        fixed, best = relation.role.controls
        assert (relation.role.score, fixed.value, best.value) == (1.0, 0.0, 0.25)
        assert 0.25 < best.high < 0.4  # eight times twenty links
        assert relation.role.established

    @pytest.mark.parametrize(
        ("n", "right", "doubt"),
        [(9, 1.0, "too_few"), (10, 1.0, None), (30, 0.6, "below_threshold"), (300, 0.6, None)],
    )
    def test_enough_cases_in_each_half(self, n: int, right: float, doubt: str | None) -> None:
        """Nine links that choose are too few; of 0.6 the interval reaches 0.5 for 300 cases, and not for 30."""
        keys = [*range(0, 2 * n, 2), *range(1, 2 * max(n, 30), 2)]
        sentences = [
            (key, found(("det", 9, HEAD if key // 2 % 5 < 5 * right else None))) for key in keys
        ]
        (relation, *_others) = candidates_of(small(sentences), corpus(40, "det", 9, None))["det"]
        assert relation.role.score == pytest.approx(right)
        assert (relation.role.doubt and relation.role.doubt.code) == doubt
        assert (relation.role.low >= 0.5) is (doubt != "below_threshold")


RANDOM = (0, 1, 1)
HEAD = (0, 0, 2)
"""Direction, layer and head of the head that finds a link."""


def corpus(
    n: int, name: str, distance: int, where: tuple[int, ...] | None, right: int | None = None
) -> Relations:
    """So many sentences with a link each, the first of them found."""
    right = n if right is None else right
    keys = range(n)
    return small([(key, found((name, distance, where if key < right else None))) for key in keys])


class TestWords:
    """Heads are named in plain words."""

    @pytest.mark.parametrize(
        ("relation", "reverse", "words"),
        [
            ("nsubj", False, "attends from the subject to its verb"),
            ("nmod:poss", True, "attends from the possessed noun to its possessor"),
            (COREFERENCE, False, "attends from the pronoun to its referent"),
            ("kinship", True, "attends along “kinship” in reverse"),
        ],
    )
    def test_of_a_relation(self, relation: str, reverse: bool, words: str) -> None:
        assert _(relations.rule_of(relation, reverse=reverse).words) == words


class TestRoles:
    """A head has the role of a relation where nothing simpler does as much."""

    def test_a_head_that_finds_it(self) -> None:
        """So it is named in both directions; beside it stand the best fixed offset and the best random head."""
        random = corpus(80, "obj", 9, RANDOM, right=8)
        made = relations.roles_of(candidates_of(corpus(80, "obj", 9, HEAD), random))
        ((where, (role,)),) = made.items()
        assert (where, role.name, role.established) == ((0, 2), "relation_obj", True)
        assert (role.score, role.high, role.rule.threshold) == (1.0, 1.0, 0.5)
        assert 0.9 < role.low < 1
        offset, untrained = role.controls
        assert offset.value == 0
        assert untrained.value == pytest.approx(0.1)

    @pytest.mark.parametrize(
        ("n", "distance", "right", "random"),
        [
            pytest.param(40, 9, 19, ("obj", 0), id="threshold"),
            pytest.param(19, 9, 19, ("obj", 0), id="few"),
            pytest.param(40, 1, 40, ("obj", 0), id="offset"),
            pytest.param(40, 9, 40, ("obj", 39), id="random"),
            pytest.param(40, 9, 40, ("det", 40), id="no control of it"),
            pytest.param(40, 9, 40, None, id="no control"),
        ],
    )
    def test_what_rules_it_out(
        self, n: int, distance: int, right: int, random: tuple[str, int] | None
    ) -> None:
        untrained = random and corpus(n, random[0], 9, RANDOM, right=random[1])
        trained = corpus(n, "obj", distance, HEAD, right=right)
        assert relations.roles_of(candidates_of(trained, untrained or None)) == {}
