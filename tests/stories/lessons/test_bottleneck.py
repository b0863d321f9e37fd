"""The demo of the bottleneck: the six models in numpy, sentence by sentence, and the intervals worked out anew."""

from __future__ import annotations

import math
import statistics
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
import torch

from attnviz.models.language import splits
from attnviz.stories.common import Estimate
from attnviz.stories.lessons import bottleneck
from attnviz.stories.record import Lines, Story
from tests.stories.lessons import by_hand, by_hand_recurrent
from tests.stories.parts import tables, told

if TYPE_CHECKING:
    from attnviz.models.language.sentences import Pair

KINDS = ("with", "without")
LONGER = len(bottleneck.LENGTHS) // 2


@cache
def groups() -> list[list[Pair]]:
    """The test sentences."""
    return bottleneck.unseen_pairs()


@cache
def words_right(kind: str, seed: int, group: int) -> list[tuple[bool, float]]:
    """Each sentence in numpy: whether it is right as a whole, and the share of its words that are at their place."""
    found = []
    for pair in groups()[group]:
        said = by_hand_recurrent.say(
            f"bottleneck-{kind}-{seed}", pair.english, most=len(pair.korean) + 1
        ).words
        hits = [place < len(said) and said[place] == word for place, word in enumerate(pair.korean)]
        found.append((said == (*pair.korean, "<end>"), sum(hits) / len(hits)))
    return found


def results(kind: str, places: range, what: int) -> list[list[float]]:
    """For each seed the sentences' results: 0 whole sentences, 1 words."""
    return [
        [float(one[what]) for g in places for one in words_right(kind, seed, g)]
        for seed in range(3)
    ]


def wilson(share: float, n: int) -> tuple[float, float]:
    """The two shares from which the one found is 1.96 standard errors away, as Wilson defined them."""
    z = statistics.NormalDist().inv_cdf(0.975)
    a, b, c = 1 + z * z / n, -(2 * share + z * z / n), share * share
    root = math.sqrt(max(0.0, b * b - 4 * a * c))
    return (-b - root) / (2 * a), (-b + root) / (2 * a)


def interval(by_seed: list[list[float]]) -> tuple[float, float, float]:
    """Mean, low and high: the spread of the seeds' means by Student's t, the sentences' by Wilson."""
    means = [statistics.fmean(one) for one in by_seed]
    mean = statistics.fmean(means)
    seeds = 4.302653 * statistics.stdev(means) / math.sqrt(3)
    low, high = wilson(mean, len(by_seed[0]))
    return (
        mean,
        max(0, mean - math.hypot(seeds, mean - low)),
        min(1, mean + math.hypot(seeds, high - mean)),
    )


def test_the_sentences_are_unseen_and_of_every_length() -> None:
    """As many of each group, none twice in a group of long ones, all of the test split."""
    for group, lengths in zip(groups(), bottleneck.LENGTHS, strict=True):
        assert len(group) == bottleneck.N_SENTENCES
        assert all(len(pair.english) in lengths for pair in group)
        assert all(splits.split_of(pair.english) == "test" for pair in group)
    assert all(one.stop == other.start for one, other in pairwise(bottleneck.LENGTHS))
    assert len({pair.english for pair in groups()[-1]}) == bottleneck.N_SENTENCES


@pytest.mark.parametrize("kind", KINDS)
def test_each_share_and_its_interval(story: Story, kind: str) -> None:
    """Every number in the table and the picture, from the six models in numpy."""
    at = KINDS.index(kind)
    assert (
        f"unseen test sentences by length, {bottleneck.N_SENTENCES} each" in tables(story)[0].title
    )
    for place, (row, lengths) in enumerate(
        zip(tables(story)[0].rows, bottleneck.LENGTHS, strict=True)
    ):
        assert row[0] == f"{lengths.start} to {lengths.stop - 1}"
        exact = interval(results(kind, range(place, place + 1), 0))
        words = interval(results(kind, range(place, place + 1), 1))
        assert row[1 + 2 * at] == pytest.approx(exact[0])
        assert row[2 + 2 * at] == f"{exact[1]:.2f} to {exact[2]:.2f}"
        assert row[5 + at] == pytest.approx(words[0])
        for panel, expected in zip(story.picture, (exact, words), strict=True):
            assert isinstance(panel, Lines)
            series = panel.series[at]
            assert series.name == f"{kind} attention"
            assert panel.x[place] == (lengths.start + lengths.stop - 1) / 2
            assert (series.values[place], series.low[place], series.high[place]) == pytest.approx(
                expected, abs=1e-6
            )


def test_without_attention_the_longer_half_is_worse(story: Story) -> None:
    """The difference with its interval, which holds no 0; with attention length does not matter so."""
    half = range(LONGER, len(bottleneck.LENGTHS))
    (one, low, high), (other, other_low, other_high) = (
        interval(results(kind, half, 0)) for kind in KINDS
    )
    apart = one - other
    ends = (
        apart - math.hypot(one - low, other_high - other),
        apart + math.hypot(high - one, other - other_low),
    )
    assert ends[0] > 0.3
    assert (
        f"by {apart:.3f} ({ends[0]:.3f} to {ends[1]:.3f}) on the longer half: more than chance"
        in told(story)
    )


def test_without_attention_short_sentences_are_learned(story: Story) -> None:
    """So what fails on long ones is their length; both ends are told."""
    first, last = range(1), range(len(bottleneck.LENGTHS) - 1, len(bottleneck.LENGTHS))
    short, long = (
        [interval(results(kind, places, 0))[0] for kind in KINDS] for places in (first, last)
    )
    assert min(short) > 0.8
    assert long[0] > 0.8
    assert long[1] < 0.2
    text = told(story)
    assert (
        f"translate {100 * short[0]:.1f} % without a fault, those without {100 * short[1]:.1f} %"
        in text
    )
    assert f"{100 * long[0]:.1f} % and {100 * long[1]:.1f} %" in text
    changes = [100 * (late - early) for early, late in zip(short, long, strict=True)]
    assert (
        f"a change of {changes[0]:+.1f} points with attention and of {changes[1]:+.1f} points without"
        in text
    )


def test_the_models_were_trained_alike(story: Story) -> None:
    """One recipe, seeds 0 to 2; about as many weights, so that it is not size that wins."""
    cards = {
        kind: [by_hand.open_model(f"bottleneck-{kind}-{seed}") for seed in range(3)]
        for kind in KINDS
    }
    recipes = [card["recipe"] for found in cards.values() for _, card in found]
    assert [recipe["seed"] for recipe in recipes] == [0, 1, 2, 0, 1, 2]  # type: ignore[index]
    assert all(recipe | {"seed": 0} == recipes[0] for recipe in recipes)  # type: ignore[operator]
    assert (
        len(
            {
                str((card["learns"], card["clauses"]))
                for found in cards.values()
                for _, card in found
            }
        )
        == 1
    )
    clauses = cards["with"][0][1]["clauses"]
    assert isinstance(clauses, list)
    assert set(clauses) == {1, 2, 3}
    assert "The test sentences have 1 to 3 clauses, as those of training." in told(story)
    sizes = [sum(array.size for array in found[0][0].values()) for found in cards.values()]
    assert sizes[1] == pytest.approx(sizes[0], rel=0.05)
    text = told(story)
    assert "trained alike, on the same sentences" in text
    assert f"those with attention have {sizes[0]:,} weights, those without {sizes[1]:,}" in text
    wide = [found[0][0]["encoder.weight_hh_l0"].shape[1] for found in cards.values()]
    assert f"last state alone: {wide[1]} numbers" in text
    assert f"the state after every word: {wide[0]} numbers each" in text


def test_no_two_models_are_the_same() -> None:
    """Three seeds are three trainings."""
    for kind in KINDS:
        maps = [
            by_hand.open_model(f"bottleneck-{kind}-{seed}")[0]["word_projection.weight"]
            for seed in range(3)
        ]
        assert all(abs(one - other).max() > 1e-2 for one, other in pairwise([*maps, maps[0]]))


def test_the_example(story: Story) -> None:
    """What the first model of each kind makes of the first of the longest sentences."""
    pair = groups()[-1][0]
    said = [
        by_hand_recurrent.say(f"bottleneck-{kind}-0", pair.english, most=len(pair.korean) + 1).words
        for kind in KINDS
    ]
    expected = [
        pair.english,
        pair.korean,
        *([word for word in words if word != "<end>"] for words in said),
    ]
    assert [row[1] for row in tables(story)[1].rows] == [" ".join(words) for words in expected]


def test_an_interval_of_seeds_that_differ() -> None:
    """Seeds that differ widen it; that all sentences are right leaves no point."""
    same = bottleneck.share(torch.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]).double())
    apart = bottleneck.share(torch.tensor([[1.0, 1.0], [0.0, 0.0], [1.0, 0.0]]).double())
    assert same.mean == apart.mean == 0.5
    assert apart.low < same.low
    assert bottleneck.share(torch.ones(3, 10).double()).low == pytest.approx(wilson(1, 10)[0])


def test_difference() -> None:
    """Newcombe 1998, table II, method 10: 56 of 70 and 48 of 80."""
    one, other = (Estimate(hits / n, *wilson(hits / n, n)) for hits, n in ((56, 70), (48, 80)))
    assert bottleneck.difference(one, other) == pytest.approx((0.2, 0.0524, 0.3339), abs=1e-4)


@pytest.mark.parametrize(
    ("with_them", "without", "said"), [(0.5, 0.5, "perhaps by chance"), (0.0, 1.0, "the other way")]
)
def test_words_follow_the_numbers(with_them: float, without: float, said: str) -> None:
    """Where attention does not help, nothing says that it does."""
    groups = {
        kind: [
            bottleneck.LengthGroup(
                exact=torch.full((3, 30), value).double(), words=torch.ones(3, 30)
            )
            for _ in range(6)
        ]
        for kind, value in zip(KINDS, (with_them, without), strict=True)
    }
    assert said in bottleneck._interval(groups)
    assert "fetch" not in bottleneck._finding(groups)
