"""One map in place of three: nothing may change by it."""

from __future__ import annotations

import re

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from attnviz.errors import ModelError
from attnviz.models.attention import MultiHeadAttention
from attnviz.models.fused import fuse, split

# Different primes; only d_model must divide by the heads: 3 x 7.
BATCH, TOKENS, HEADS, D_K, D_V = 2, 11, 3, 7, 5
D_MODEL = HEADS * D_K


def whole_numbers(linear: nn.Linear) -> nn.Linear:
    """The map with small whole numbers, on which floating point makes no rounding error in any order."""
    for parameter in linear.parameters():
        nn.init.trunc_normal_(parameter, std=3, a=-9, b=9)
        parameter.data.round_()
    return linear


class TestFusedMap:
    """One map for query, key and value."""

    def test_fused_is_separate(self) -> None:
        """On whole numbers, where nothing is rounded, the fused map gives exactly what three maps give."""
        maps = [whole_numbers(nn.Linear(D_MODEL, HEADS * D_K)) for _ in range(3)]
        x = torch.randint(-9, 9, (BATCH, TOKENS, D_MODEL)).float()
        parts = fuse(*maps)(x).chunk(3, dim=-1)
        for part, one in zip(parts, maps, strict=True):
            assert part.abs().max() > 0
            assert torch.equal(part, one(x))

    @pytest.mark.parametrize("bias", [False, True])
    def test_split_is_the_inverse(self, *, bias: bool) -> None:
        """Split what was fused, and the maps are the same to the last bit."""
        maps = [nn.Linear(D_MODEL, D_K, bias=bias) for _ in range(3)]
        for before, after in zip(maps, split(fuse(*maps)), strict=True):
            assert (after.in_features, after.out_features) == (D_MODEL, D_K)
            assert_close(after.state_dict(), before.state_dict(), rtol=0, atol=0)

    def test_multi_head_attention_from_a_fused_map(self) -> None:
        """Attention whose maps were fused and split again is the same attention."""
        attention, x = MultiHeadAttention(D_MODEL, HEADS), torch.randn(BATCH, TOKENS, D_MODEL)
        before = attention(x)
        fused = fuse(attention.query_map, attention.key_map, attention.value_map)
        attention.query_map, attention.key_map, attention.value_map = split(fused)
        assert_close(attention(x), before, rtol=0, atol=0)

    def test_no_random_number_is_drawn(self) -> None:
        """Fusing and splitting leave the caller's random numbers alone."""
        maps = [nn.Linear(D_MODEL, D_K) for _ in range(3)]
        before = torch.get_rng_state()
        split(fuse(*maps))
        assert torch.equal(torch.get_rng_state(), before)

    def test_refuses_what_is_not_three_alike(self) -> None:
        """Maps of two widths, or a width that 3 does not divide."""
        with pytest.raises(ModelError, match=re.escape("expected one, got [(5, 21, 'bias'), (7, 21, 'bias')]")):
            fuse(nn.Linear(D_MODEL, D_K), nn.Linear(D_MODEL, D_K), nn.Linear(D_MODEL, D_V))
        with pytest.raises(ModelError, match="expected a width that 3 divides, got 7"):
            split(nn.Linear(D_MODEL, 7))
