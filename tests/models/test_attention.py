"""Attention: by hand, against PyTorch's own, and refused where it makes no sense."""

from __future__ import annotations

import math
import re

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from attnviz.errors import ModelError
from attnviz.models.attention import (
    MultiHeadAttention,
    SelfAttention,
    causal_mask,
    fuse,
    scaled_dot_product_attention,
)
from tests.models.parity import copy_attention

# Different primes, so that no two axes can be confused; only d_model must divide by the heads: 3 x 7.
BATCH, QUERIES, KEYS, HEADS, D_K, D_V = 2, 11, 13, 3, 7, 5
D_MODEL = HEADS * D_K


class TestTheFormula:
    """Scaled dot-product attention, without a module around it."""

    def test_two_keys_by_hand(self) -> None:
        """Scores 0 and 1 give the weights [1, e] / (1 + e)."""
        key, value = torch.tensor([[0.0], [1.0]]), torch.tensor([[2.0], [3.0]])
        context, weights = scaled_dot_product_attention(torch.tensor([[1.0]]), key, value)
        assert_close(weights, torch.tensor([[1, math.e]]) / (1 + math.e))
        assert_close(context, torch.tensor([[(2 + 3 * math.e) / (1 + math.e)]]))

    @pytest.mark.parametrize("mask", [None, torch.ones(QUERIES, KEYS, dtype=torch.bool).tril(2)])
    def test_parity_with_torch(self, mask: Tensor | None) -> None:
        """PyTorch's fused function gives the same context, with a mask and without."""
        query = torch.randn(BATCH, HEADS, QUERIES, D_K)
        key, value = torch.randn(BATCH, HEADS, KEYS, D_K), torch.randn(BATCH, HEADS, KEYS, D_V)
        context, weights = scaled_dot_product_attention(query, key, value, mask)
        assert weights.shape == (BATCH, HEADS, QUERIES, KEYS)
        assert_close(context, nn.functional.scaled_dot_product_attention(query, key, value, mask))

    def test_scores_far_below_zero_are_still_masked(self) -> None:
        """A hidden key gets exactly 0 where the seen one scores -200,000: a mask of -1e5 would choose it."""
        query, key = torch.tensor([[1.0]]), torch.tensor([[-2e5], [0.0]])
        _, weights = scaled_dot_product_attention(query, key, key, torch.tensor([[True, False]]))
        assert weights.tolist() == [[1, 0]]


class TestCausalMask:
    """No token looks ahead."""

    def test_no_weight_on_the_future(self) -> None:
        """The weights above the diagonal are exactly 0, and the last row is that of unmasked attention."""
        x = torch.randn(BATCH, QUERIES, D_MODEL)
        attention = SelfAttention(D_MODEL, D_K)
        _, masked = attention(x, causal_mask(QUERIES))
        _, unmasked = attention(x)
        assert (masked.triu(1) == 0).all()
        assert (unmasked > 0).all()
        assert_close(masked[:, -1], unmasked[:, -1])


class TestMultiHeadAttention:
    """Many heads side by side."""

    def test_heads_are_concatenated_in_order(self) -> None:
        """Head i is single-head attention on the i-th rows of each map, and W^O sees them side by side."""
        attention, x = MultiHeadAttention(D_MODEL, HEADS), torch.randn(BATCH, QUERIES, D_MODEL)
        output, weights = attention(x)
        contexts = []
        for head in range(HEADS):
            single, rows = SelfAttention(D_MODEL, D_K), slice(head * D_K, (head + 1) * D_K)
            for name in ("query_projection", "key_projection", "value_projection"):
                one, all_heads = getattr(single, name), getattr(attention, name)
                one.load_state_dict(
                    {"weight": all_heads.weight[rows], "bias": all_heads.bias[rows]}
                )
            context, pattern = single(x)
            assert_close(pattern, weights[:, head])
            contexts.append(context)
        assert_close(output, attention.output_projection(torch.cat(contexts, dim=-1)))

    @pytest.mark.parametrize("mask", [None, causal_mask(QUERIES)])
    def test_parity_with_torch_self(self, mask: Tensor | None) -> None:
        """PyTorch's module with the same weights gives the same output and weights, causal or not."""
        theirs = nn.MultiheadAttention(D_MODEL, HEADS, batch_first=True)
        nn.init.normal_(theirs.in_proj_bias)
        mine, x = MultiHeadAttention(D_MODEL, HEADS), torch.randn(BATCH, QUERIES, D_MODEL)
        copy_attention(mine, theirs)
        hidden = None if mask is None else ~mask  # PyTorch's True means: may not look
        expected = theirs(x, x, x, attn_mask=hidden, average_attn_weights=False)
        assert_close(mine(x, mask), expected)

    def test_parity_with_torch_cross(self) -> None:
        """PyTorch's module gives the same cross-attention, with padding."""
        theirs = nn.MultiheadAttention(D_MODEL, HEADS, batch_first=True)
        mine = MultiHeadAttention(D_MODEL, HEADS)
        copy_attention(mine, theirs)
        x, memory = torch.randn(BATCH, QUERIES, D_MODEL), torch.randn(BATCH, KEYS, D_MODEL)
        here = torch.arange(KEYS) < torch.tensor([[KEYS], [4]])
        output, weights = mine(x, here[:, None], memory=memory)
        assert weights.shape == (BATCH, HEADS, QUERIES, KEYS)
        expected = theirs(x, memory, memory, key_padding_mask=~here, average_attn_weights=False)
        assert_close((output, weights), expected)

    @pytest.mark.parametrize(("kind", "size"), [(MultiHeadAttention, HEADS), (SelfAttention, D_K)])
    def test_order_of_the_words_is_not_seen(self, kind: type[nn.Module], size: int) -> None:
        """Shuffle the words, and what comes out is shuffled in the same way: attention sees a set."""
        module, x = kind(D_MODEL, size), torch.randn(BATCH, QUERIES, D_MODEL)
        shuffled = torch.randperm(QUERIES)
        assert_close(module(x[:, shuffled])[0], module(x)[0][:, shuffled])


class TestAttendFunction:
    """A caller can stand where the formula stands."""

    @pytest.mark.parametrize(("kind", "size"), [(MultiHeadAttention, HEADS), (SelfAttention, D_K)])
    def test_rows_may_be_streamed(self, kind: type[nn.Module], size: int) -> None:
        """A function that attends a few rows at a time and keeps no weights gives the same output."""

        def by_rows(
            query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
        ) -> tuple[Tensor, None]:
            assert mask is not None
            blocks = zip(torch.split(query, 4, dim=-2), torch.split(mask, 4, dim=-2), strict=True)
            rows = [
                scaled_dot_product_attention(part, key, value, seen)[0] for part, seen in blocks
            ]
            return torch.cat(rows, dim=-2), None

        module, mask = kind(D_MODEL, size), causal_mask(QUERIES)
        x = torch.randn(BATCH, QUERIES, D_MODEL)
        output, weights = module(x, mask, attend=by_rows)
        assert weights is None
        assert_close(output, module(x, mask)[0])


def whole_numbers(linear: nn.Linear) -> nn.Linear:
    """The projection with small whole numbers, on which floating point makes no rounding error in any order."""
    for parameter in linear.parameters():
        nn.init.trunc_normal_(parameter, std=3, a=-9, b=9)
        parameter.data.round_()
    return linear


class TestFusedProjection:
    """One projection for query, key and value."""

    def test_fused_is_separate(self) -> None:
        """On whole numbers, where nothing is rounded, the fused projection gives exactly what three give."""
        projections = [whole_numbers(nn.Linear(D_MODEL, HEADS * D_K)) for _ in range(3)]
        x = torch.randint(-9, 9, (BATCH, QUERIES, D_MODEL)).float()
        parts = fuse(*projections)(x).chunk(3, dim=-1)
        for part, one in zip(parts, projections, strict=True):
            assert part.abs().max() > 0
            assert torch.equal(part, one(x))


@pytest.mark.usefixtures("as_installed")
class TestRefusals:
    """Impossible arguments are refused; the message names the expected and the given value."""

    @pytest.mark.parametrize("n_heads", [0, -1, 3, 40])
    def test_heads_that_do_not_divide(self, n_heads: int) -> None:
        """Twenty wide is not three heads wide."""
        with pytest.raises(ModelError, match=f"expected a divisor of 20, got {n_heads} heads"):
            MultiHeadAttention(d_model=20, n_heads=n_heads)

    @pytest.mark.parametrize(
        ("mask", "message"),
        [
            # transposed, with heads, not bool, and with a query that sees nothing
            (torch.ones(13, 11).bool(), "expected (2, 11, 13) or 1 for a size, got (13, 11)"),
            (torch.ones(2, 3, 11, 13).bool(), "or 1 for a size, got (2, 3, 11, 13)"),
            (torch.ones(11, 13), "expected torch.bool, got torch.float32"),
            (torch.arange(11)[:, None] != 5, "expected at least 1 key, got 0 (row 5)"),
        ],
    )
    def test_masks(self, mask: Tensor, message: str) -> None:
        """A mask must be bool, fit, and leave every query something to look at."""
        attention, x = MultiHeadAttention(D_MODEL, HEADS), torch.ones(BATCH, QUERIES, D_MODEL)
        with pytest.raises(ModelError, match=re.escape(message)):
            attention(x, mask, memory=torch.ones(BATCH, KEYS, D_MODEL))
