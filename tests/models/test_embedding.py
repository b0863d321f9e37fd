"""Positions, the paper's waves; and words that no model reads."""

from __future__ import annotations

import math

import torch
from torch.testing import assert_close

from attnviz.models.embedding import sinusoidal_positions


class TestSinusoidalPositions:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(the same)."""

    def test_by_hand(self) -> None:
        """Four wide, the two frequencies are 1 and 1/100."""
        expected = [
            [0, 1, 0, 1],
            [math.sin(1), math.cos(1), math.sin(0.01), math.cos(0.01)],
            [math.sin(2), math.cos(2), math.sin(0.02), math.cos(0.02)],
        ]
        assert_close(sinusoidal_positions(3, 4), torch.tensor(expected))

    def test_odd_width_ends_with_a_sine(self) -> None:
        """Five wide: sin, cos, sin, cos, sin."""
        table = sinusoidal_positions(2, 5)
        assert table.shape == (2, 5)
        assert table[0].tolist() == [0, 1, 0, 1, 0]
        assert_close(table[1, 4].item(), math.sin(1 / 10_000 ** (4 / 5)))
