"""The demo of scaling: its experiment with other random numbers, its formulas with autograd."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from attnviz.stories.lessons.scaling import WIDTHS, experiment, measure
from attnviz.stories.record import Story
from tests.stories.parts import tables, told


def test_variance() -> None:
    """It is d_k unscaled, and 1 scaled: within five standard errors."""
    for d_k, plain, scaled in zip(WIDTHS, *experiment(), strict=True):
        for estimate, expected in ((plain.variance, d_k), (scaled.variance, 1)):
            error = (estimate.high - estimate.mean) / 1.96
            assert abs(estimate.mean - expected) < 5 * error < 0.3 * expected


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_measure(scale: float) -> None:
    """The derivatives by query and keys, from autograd."""
    random = torch.Generator().manual_seed(3)
    query = torch.randn(5, 1, 4, generator=random, dtype=torch.float64)
    key = 2 * torch.randn(5, 3, 4, generator=random, dtype=torch.float64)

    def weights(query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        return (scale * query @ key.T).softmax(dim=-1)

    found = measure(scale * (query @ key.mT)[:, 0], query, key, scale)
    sizes = []
    for row in zip(query, key, strict=True):
        jacobians = torch.autograd.functional.jacobian(weights, row)  # type: ignore[no-untyped-call]
        sizes.append(math.hypot(*(float(jacobian.norm()) for jacobian in jacobians)))
    assert found.mean_slope.mean == pytest.approx(np.mean(sizes))
    assert found.median_slope.mean == pytest.approx(np.median(sizes))
    largest = [float(weights(*row).max()) for row in zip(query, key, strict=True)]
    assert found.largest.mean == pytest.approx(np.mean(largest))
    error = 1.96 * np.std(largest, ddof=1) / math.sqrt(5)
    assert found.largest.high - found.largest.mean == pytest.approx(error)


def test_claims(story: Story) -> None:
    """Unscaled, the softmax peaks; most derivatives vanish, while their mean grows. Scaled, all stay."""
    largest, slopes = (np.array(table.rows, dtype=float) for table in tables(story))
    assert (np.diff(largest[:, 3]) > 0).all()
    assert largest[-1, 3] > 0.9
    assert np.ptp(largest[:, 4]) < 0.1
    last = largest[-1]
    assert f"takes {last[3]:.0%} of the attention; with it, {last[4]:.0%}" in story.title
    _d_k, median, scaled_median, mean, scaled_mean = slopes[-1]
    assert 50 < scaled_median / median < 250
    assert 3.5 < mean / scaled_mean < 5
    assert f"{scaled_median / median:.0f} times smaller than with scaling" in told(story)
    assert f"{mean / scaled_mean:.1f} times larger" in told(story)
    assert slopes[:, 2] == pytest.approx(slopes[:, 4], rel=0.15)
