"""The demo of the library: scores, weights and results, computed again in plain Python."""

from __future__ import annotations

import math

import numpy as np
import pytest

from attnviz.stories.lessons.library import KEYS, QUERIES, VALUES
from attnviz.stories.record import Bars, Lines, Matrix, Story
from tests.stories.parts import panels, tables, told


def search(title: str, factor: float = 1.0) -> tuple[list[float], list[float], list[float]]:
    """Scores, weights and result, step by step."""
    scores = [
        factor * sum(q * k for q, k in zip(QUERIES[title], key, strict=True)) / math.sqrt(5)
        for key in KEYS.values()
    ]
    total = sum(math.exp(score) for score in scores)
    weights = [math.exp(score) / total for score in scores]
    pages = zip(*VALUES.values(), strict=True)
    return (
        scores,
        weights,
        [sum(w * n for w, n in zip(weights, kind, strict=True)) for kind in pages],
    )


@pytest.mark.parametrize("index", [0, 1])
def test_searches(story: Story, index: int) -> None:
    """Each book's score, weight and pages; the last row is their sum, which the sentences tell."""
    title = list(QUERIES)[index]
    scores, weights, result = search(title)
    *rows, total = tables(story)[2 + index].rows
    for row, book, score, weight in zip(rows, KEYS, scores, weights, strict=True):
        assert row[0] == book
        assert row[1:] == pytest.approx([score, weight, *(weight * n for n in VALUES[book])])
    assert total[2:] == pytest.approx([1, *result])
    recipes, dates, animals = result
    assert f"{recipes:.0f} pages of recipes, {dates:.0f} of dates and {animals:.0f}" in told(story)


def test_title(story: Story) -> None:
    """The largest weight is that of the book sought, and the others are not 0."""
    exact, absent = QUERIES
    assert exact in VALUES
    assert absent not in VALUES
    weights = search(exact)[1]
    assert weights[0] == max(weights)
    assert f"“{exact}” gets {weights[0]:.0%}" in story.title
    assert f"still {sorted(weights)[-2]:.0%}" in story.title


def test_picture(story: Story) -> None:
    """The vectors, the weights of both searches, and the weights as scores are multiplied."""
    (matrix,), (bars,), (lines,) = (
        panels(story, Matrix),
        panels(story, Bars),
        panels(story, Lines),
    )
    np.testing.assert_array_equal(matrix.values, [*QUERIES.values(), *KEYS.values()])
    for series, title in zip(bars.series, QUERIES, strict=True):
        assert series.values == pytest.approx(search(title)[1])
    expected = [search(next(iter(QUERIES)), factor)[1] for factor in lines.x]
    assert np.transpose([one.values for one in lines.series]) == pytest.approx(np.array(expected))
