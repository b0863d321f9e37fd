"""The demo of the bottleneck: the models, sentence by sentence, and the intervals worked out anew."""

from __future__ import annotations

import math
import statistics
from itertools import pairwise

import pytest

from attnviz.models.language import splits
from attnviz.stories.lessons import bottleneck
from attnviz.stories.record import Lines, Story
from tests.stories.lessons import models
from tests.stories.parts import panels, tables

KINDS = ("with", "without")


def wilson(share: float, n: int) -> tuple[float, float]:
    """Return the two shares from which this one is 1.96 standard errors away, as Wilson defined them."""
    z = statistics.NormalDist().inv_cdf(0.975)
    a, b, c = 1 + z * z / n, -(2 * share + z * z / n), share * share
    root = math.sqrt(max(0.0, b * b - 4 * a * c))
    return (-b - root) / (2 * a), (-b + root) / (2 * a)


def interval(by_seed: list[list[bool]]) -> tuple[float, float, float]:
    """Return mean, low and high: the spread of the seeds by Student's t, that of the sentences by Wilson."""
    means = [statistics.fmean(one) for one in by_seed]
    mean = statistics.fmean(means)
    of_seeds = 4.302653 * statistics.stdev(means) / math.sqrt(3)
    low, high = wilson(mean, len(by_seed[0]))
    return (
        mean,
        max(0, mean - math.hypot(of_seeds, mean - low)),
        min(1, mean + math.hypot(of_seeds, high - mean)),
    )


def test_the_sentences_are_unseen_and_of_every_length() -> None:
    """As many in each group, all of the test split, no long one twice."""
    groups = bottleneck.unseen_pairs()
    for group, lengths in zip(groups, bottleneck.LENGTHS, strict=True):
        assert len(group) == bottleneck.N_SENTENCES
        assert all(len(pair.english) in lengths for pair in group)
        assert all(splits.split_of(pair.english) == "test" for pair in group)
    assert all(one.stop == other.start for one, other in pairwise(bottleneck.LENGTHS))
    assert len({pair.english for pair in groups[-1]}) == bottleneck.N_SENTENCES


@pytest.mark.parametrize(("kind", "group"), [("with", 5), ("without", 2)])
def test_shares_and_intervals(story: Story, kind: str, group: int) -> None:
    """The table's and the picture's, from three models."""
    pairs = bottleneck.unseen_pairs()[group]
    faultless = [
        [
            models.translate(
                f"bottleneck-{kind}-{seed}", pair.english, most=len(pair.korean) + 1
            ).words
            == (*pair.korean, "<end>")
            for pair in pairs
        ]
        for seed in range(3)
    ]
    mean, low, high = interval(faultless)
    column = 1 + KINDS.index(kind)
    shown = tables(story)[0].rows[group][column]
    assert shown == f"{mean:.3f} ({low:.3f} to {high:.3f})"
    (panel,) = panels(story, Lines)
    series = panel.series[column - 1]
    found = series.values[group], series.low[group], series.high[group]
    assert found == pytest.approx((mean, low, high), abs=1e-6)
    if group == 5:
        assert f"{100 * mean:.1f}%" in story.title


def test_attention_helps_on_long_sentences(story: Story) -> None:
    """Short sentences are learned both ways, long ones only with attention."""
    (panel,) = panels(story, Lines)
    one, other = panel.series
    assert min(one.values[0], other.values[0], one.values[-1]) > 0.8
    assert other.values[-1] < 0.2
