"""The demo of rotary positions: with them a score depends on the distance alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attnviz.stories.lessons import rotary
from attnviz.stories.record import Matrix, Story
from tests.stories.parts import panels, tables

SPEEDS = 10_000.0 ** (-2 * np.arange(rotary.D // 2) / rotary.D)  # in radians a position


def as_complex(vector: torch.Tensor) -> np.ndarray:
    """Return each pair of numbers as one complex number."""
    pairs = vector.numpy().reshape(-1, 2)
    numbers: np.ndarray = pairs[:, 0] + 1j * pairs[:, 1]
    return numbers


def test_scores(story: Story) -> None:
    """A rotary score has only the distance in it; the others do not."""
    one, other, _table = rotary.random_vectors()
    found = list(rotary.scores().values())
    for m, n in ((0, 3), (10, 13), (5, 2), (23, 0)):
        pairs = as_complex(one) * as_complex(other).conj() * np.exp(1j * (m - n) * SPEEDS)
        assert float(found[0][m, n]) == pytest.approx(pairs.sum().real / rotary.D**0.5, abs=1e-12)
    spreads = [rotary.spread(values) for values in found]
    assert spreads[0] < 1e-12
    assert min(spreads[1:]) > 1
    assert f"sinusoidal ones by {spreads[1]:.3f}" in story.title
    for panel, row, values in zip(panels(story, Matrix), tables(story)[0].rows, found, strict=True):
        assert panel.values == pytest.approx(values.numpy(), abs=0)
        assert list(row[1:-1]) == [values[start, start + 3] for start in rotary.STARTS]
