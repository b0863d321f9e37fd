"""The demo of the library: scores, weights and what comes back, computed again in plain Python."""

from __future__ import annotations

import math

import numpy as np
import pytest

from attnviz.stories.lessons.library import CONTENTS, SOUGHT, SPINES, TOPICS
from attnviz.stories.record import Bars, Lines, Matrix, Story
from tests.stories.parts import tables


def look_up(title: str, factor: float = 1.0) -> tuple[list[float], list[float], list[float]]:
    """Scores, weights and the mix, step by step."""
    scores = [
        factor
        * sum(q * k for q, k in zip(SOUGHT[title], key, strict=True))
        / math.sqrt(len(TOPICS))
        for key in SPINES.values()
    ]
    raised = [math.exp(score - max(scores)) for score in scores]
    weights = [one / sum(raised) for one in raised]
    mix = [
        sum(weight * pages[kind] for weight, pages in zip(weights, CONTENTS.values(), strict=True))
        for kind in range(3)
    ]
    return scores, weights, mix


def test_keys_and_values(story: Story) -> None:
    """The first tables are the vectors made by hand, which are of one length, under the same titles."""
    keys, values = tables(story)[:2]
    assert {title: tuple(row) for title, *row in keys.rows} == SPINES
    assert {title: tuple(row) for title, *row in values.rows} == CONTENTS
    assert list(SPINES) == list(CONTENTS)
    assert len({sum(number**2 for number in key) for key in SPINES.values()}) == 1


@pytest.mark.parametrize("index", [0, 1])
def test_look_ups(story: Story, index: int) -> None:
    """Each book's score, weight and share of pages; the last row is their sum."""
    title = list(SOUGHT)[index]
    scores, weights, mix = look_up(title)
    table = tables(story)[2 + index]
    assert table.title == f"sought: “{title}”"
    *rows, (name, blank, total, *context) = table.rows
    for row, spine, score, weight in zip(rows, SPINES, scores, weights, strict=True):
        assert row[0] == spine
        assert row[1:] == pytest.approx(
            (score, weight, *(weight * pages for pages in CONTENTS[spine]))
        )
    assert (name, blank) == ("sum", "")
    assert total == pytest.approx(1)
    assert context == pytest.approx(mix)


def test_multiplied(story: Story) -> None:
    """Times 0 it is the average of the library, times 16 the dictionary's answer to the last printed digit."""
    title = next(iter(SOUGHT))
    *rows, dictionary = tables(story)[4].rows
    for factor, *numbers in rows:
        _, weights, mix = look_up(title, float(factor))
        assert numbers == pytest.approx([*weights, *mix])
    assert rows[0][0] == "0"
    assert rows[0][1:] == pytest.approx(
        [0.2] * 5 + np.mean(list(CONTENTS.values()), axis=0).tolist()
    )
    assert dictionary == (
        "dictionary",
        *(float(spine == title) for spine in SPINES),
        *map(float, CONTENTS[title]),
    )
    assert [f"{number:.2f}" for number in rows[-1][1:]] == [
        f"{number:.2f}" for number in dictionary[1:]
    ]


def test_sentences(story: Story) -> None:
    """What the dictionary finds and does not find, what comes back, and which books are nearest."""
    title = next(iter(SOUGHT))
    best, second = sorted(look_up(title)[1], reverse=True)[:2]
    assert (
        story.title
        == f"“{title}” is found with {best:.2f} of the weight; the next book gets {second:.2f}"
    )
    text = " ".join(part for part in story.parts if isinstance(part, str))
    exact, absent = SOUGHT
    assert exact in CONTENTS
    assert absent not in CONTENTS
    assert (
        "“Korean Cooking” is there: out come 180 pages of recipes, 10 of dates and 10 of animals."
        in text
    )
    assert f"“{absent}” stands on no spine: out comes nothing." in text
    _, weights, mix = look_up(exact)
    assert max(weights) == weights[0]
    assert (
        f"the largest weight, {weights[0]:.2f}, but the next has {sorted(weights)[-2]:.2f}" in text
    )
    assert (
        f"{mix[0]:.0f} pages of recipes, {mix[1]:.0f} of dates and {mix[2]:.0f} of animals: a mix"
        in text
    )
    _, weights, mix = look_up(absent)
    shares = dict(zip(SPINES, weights, strict=True))
    for title in sorted(shares, key=lambda title: -shares[title])[:3]:
        assert f"{title} ({shares[title]:.2f})" in text
    assert (
        f"Out come {mix[0]:.0f} pages of recipes, {mix[1]:.0f} of dates and {mix[2]:.0f} of animals."
        in text
    )


def test_picture(story: Story) -> None:
    """The vectors, the weights of both look-ups, and how the weights change as scores are multiplied."""
    matrix, bars, lines = story.picture
    assert isinstance(matrix, Matrix)
    assert isinstance(bars, Bars)
    assert isinstance(lines, Lines)
    np.testing.assert_array_equal(matrix.values, [*SOUGHT.values(), *SPINES.values()])
    assert matrix.rows[2:] == bars.labels == tuple(SPINES)
    for series, title in zip(bars.series, SOUGHT, strict=True):
        assert series.name == title
        assert series.values == pytest.approx(look_up(title)[1])
    expected = np.array([look_up(next(iter(SOUGHT)), factor)[1] for factor in lines.x])
    assert lines.x[0] < 1 < lines.x[-1]
    for index, series in enumerate(lines.series):
        assert series.values == pytest.approx(expected[:, index], abs=1e-12)
