"""The demo of positions: each number it states, computed again from the formula."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from attnviz.stories.record import Lines, Matrix, Story
from tests.stories.parts import tables, told

FREQUENCIES = 10_000.0 ** (-np.arange(0, 512, 2) / 512)


def formula(position: int, number: int, d: int) -> float:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(the same)."""
    angle = position / 10_000 ** ((number - number % 2) / d)
    return math.cos(angle) if number % 2 else math.sin(angle)


def test_small_table(story: Story) -> None:
    """Four numbers for each of six positions, by the formula; columns are named after it."""
    small, _ = tables(story)
    assert small.columns == ("pos", "sin(pos)", "cos(pos)", "sin(pos / 100)", "cos(pos / 100)")
    for position, (counted, *row) in enumerate(small.rows):
        assert counted == position
        assert row == pytest.approx([formula(position, number, 4) for number in range(4)], abs=1e-7)
    assert len(small.rows) == 6


def test_dot_products(story: Story) -> None:
    """The dot product of two positions is the sum of the cosines of their distance, wherever they stand."""
    _, dots = tables(story)
    steps = [int(name.removeprefix("k = ")) for name in dots.columns[1:]]
    expected = [float(np.cos(step * FREQUENCIES).sum()) for step in steps]
    assert steps[0] == 0
    assert expected[0] == 256
    assert len(dots.rows) > 3
    for _, *row in dots.rows:
        assert row == pytest.approx(expected, abs=1e-4)


def test_picture(story: Story) -> None:
    """Sines, cosines, how alike positions are, and three rows of that."""
    sines, cosines, alike, rows = story.picture
    assert isinstance(sines, Matrix)
    assert isinstance(cosines, Matrix)
    assert isinstance(alike, Matrix)
    assert isinstance(rows, Lines)
    angles = np.arange(64)[:, None] * FREQUENCIES
    np.testing.assert_allclose(sines.values, np.sin(angles), atol=1e-6)
    np.testing.assert_allclose(cosines.values, np.cos(angles), atol=1e-6)
    distance = np.abs(np.subtract.outer(np.arange(64), np.arange(64)))
    expected = np.cos(distance[..., None] * FREQUENCIES).mean(axis=-1)
    np.testing.assert_allclose(alike.values, expected, atol=1e-6)
    for series in rows.series:
        position = int(series.name.removeprefix("position "))
        assert series.values == pytest.approx(expected[position], abs=1e-6)
        assert series.values[position] == pytest.approx(1)
    assert len(rows.series) == 3


def test_stated_numbers(story: Story) -> None:
    """How long a wave is, how long each vector, how alike neighbours and the two ends."""
    text = told(story)
    assert f"once in {2 * math.pi:.2f} positions, the second in {2 * math.pi * 100:,.0f}" in text
    assert (
        f"there are 256, from {2 * math.pi:.2f} to {2 * math.pi / FREQUENCIES[-1]:,.0f} positions a round"
        in text
    )
    assert "sqrt(d/2) = 16," in text
    assert f"(cosine {np.cos(FREQUENCIES).mean():.3f}), the one 63 further on" in text
    assert f"({np.cos(63 * FREQUENCIES).mean():.3f})" in text


def test_receipt(story: Story) -> None:
    """The difference from the sums of cosines is stated, and small beside dot products of 256."""
    found = re.search(r"by (\S+) at most", story.receipt)
    assert found is not None
    assert 0 < float(found[1]) < 1e-4
