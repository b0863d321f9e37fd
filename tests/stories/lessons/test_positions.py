"""The demo of positions: each number, computed again from the formula."""

from __future__ import annotations

import math

import numpy as np
import pytest

from attnviz.stories.record import Matrix, Story
from tests.stories.parts import panels, tables

FREQUENCIES = 10_000.0 ** (-np.arange(0, 512, 2) / 512)


def formula(position: int, i: int, d: int) -> float:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(the same)."""
    angle = position / 10_000 ** ((i - i % 2) / d)
    return math.cos(angle) if i % 2 else math.sin(angle)


def test_small_table(story: Story) -> None:
    """Four numbers for each of six positions."""
    expected = [[position, *(formula(position, i, 4) for i in range(4))] for position in range(6)]
    assert np.array(tables(story)[0].rows) == pytest.approx(np.array(expected), abs=1e-7)


def test_dot_products(story: Story) -> None:
    """Each is the sum of the cosines of the distance, wherever the positions stand."""
    table = tables(story)[1]
    distances = [int(name.removeprefix("k = ")) for name in table.columns[1:]]
    expected = [float(np.cos(distance * FREQUENCIES).sum()) for distance in distances]
    assert len(table.rows) == 4
    for _name, *row in table.rows:
        assert row == pytest.approx(expected, abs=1e-4)
    assert float(story.receipt.rpartition(" ")[2].rstrip(".")) < 1e-4


def test_picture(story: Story) -> None:
    """Sines, cosines, and the cosine of two positions."""
    angles = np.arange(64)[:, None] * FREQUENCIES
    distance = np.abs(np.subtract.outer(np.arange(64), np.arange(64)))
    similar = np.cos(distance[..., None] * FREQUENCIES).mean(axis=-1)
    for panel, expected in zip(
        panels(story, Matrix), (np.sin(angles), np.cos(angles), similar), strict=True
    ):
        np.testing.assert_allclose(panel.values, expected, atol=1e-6)
    assert f"{similar[0, 1]:.3f} for neighbours, {similar[0, 63]:.3f} at a" in story.title
