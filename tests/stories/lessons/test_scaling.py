"""The demo of scaling: its experiment with other random numbers, its formulas with autograd."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from attnviz.stories.lessons.scaling import WIDTHS, experiment, measure
from attnviz.stories.record import Lines, Story
from tests.stories.parts import tables, told


def test_variance() -> None:
    """It is d_k unscaled, and 1 scaled: within five standard errors."""
    for d_k, plain, scaled in zip(WIDTHS, *experiment(), strict=True):
        for estimate, expected in ((plain.variance, d_k), (scaled.variance, 1)):
            error = (estimate.high - estimate.mean) / 1.96
            assert abs(estimate.mean - expected) < 5 * error < 0.3 * expected


def test_softmax(story: Story) -> None:
    """The largest weight and the slopes are nearly those of other random numbers."""
    random = np.random.default_rng(7)
    (table,) = tables(story)
    for d_k, row in zip(WIDTHS, table.rows, strict=True):
        query, key = random.standard_normal((4000, 1, d_k)), random.standard_normal((4000, 10, d_k))
        scores = (query * key).sum(axis=-1)
        expected = []
        for described in (scores, scores / math.sqrt(d_k)):
            exponentials = np.exp(described - described.max(axis=1, keepdims=True))
            weights = exponentials / exponentials.sum(axis=1, keepdims=True)
            slopes = 2 * (weights * (1 - weights)).sum(axis=1)
            expected.append((weights.max(axis=1).mean(), slopes.mean()))
        assert list(row[3:]) == pytest.approx(np.transpose(expected).ravel(), abs=0.05)


def test_measure() -> None:
    """A few scores by hand, and the slopes from the softmax's own derivative."""
    scores = torch.tensor([[0.0, 0.0], [math.log(3), 0.0], [200.0, -200.0]], dtype=torch.float64)
    found = measure(scores)
    assert found.variance.mean == pytest.approx((0 + math.log(3) ** 2 / 2 + 40_000) / 3)
    assert found.largest.mean == pytest.approx((0.5 + 0.75 + 1) / 3)
    error = np.std([0.5, 0.75, 1], ddof=1) / math.sqrt(3)
    assert found.largest.high - found.largest.mean == pytest.approx(1.96 * error)
    slopes = [
        torch.autograd.functional.jacobian(lambda row: row.softmax(dim=-1), row).abs().sum().item()  # type: ignore[no-untyped-call]
        for row in scores
    ]
    assert found.slopes.mean == pytest.approx(sum(slopes) / 3)


def test_claims(story: Story) -> None:
    """Unscaled, the softmax peaks and its slopes vanish; scaled, both stay."""
    rows = np.array(tables(story)[0].rows, dtype=float)
    assert (np.diff(rows[:, 3]) > 0).all()
    assert (np.diff(rows[:, 5]) < 0).all()
    assert rows[-1, 3] > 0.9
    assert rows[-1, 5] < 0.25 * rows[-1, 6]
    assert np.ptp(rows[:, [4, 6]], axis=0).max() < 0.1
    last = rows[-1]
    assert f"takes {last[3]:.0%} of the attention without scaling, {last[4]:.0%}" in story.title
    assert f"{last[5]:.2f} without scaling, {last[6]:.2f} with it" in told(story)


def test_picture(story: Story) -> None:
    """The lines are the table's columns, each inside its interval."""
    columns = list(zip(*tables(story)[0].rows, strict=True))
    for panel, first in zip(story.picture, (1, 3, 5), strict=True):
        assert isinstance(panel, Lines)
        assert list(panel.x) == WIDTHS
        for series, column in zip(panel.series, columns[first : first + 2], strict=True):
            assert tuple(series.values) == column
            assert (np.array(series.low) < series.values).all()
            assert (np.array(series.high) > series.values).all()
