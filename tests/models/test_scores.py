"""Score functions: each by hand, and refused where query and key do not fit."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from attnviz.models.attention import weigh
from attnviz.models.config import ScoreName
from attnviz.models.scores import (
    SCORES,
    additive,
    dot,
    general,
    scaled_dot,
)

# Different primes, so that no two axes can be confused.
BATCH, QUERIES, KEYS, D_K, D_QUERY, D_ADD = 2, 11, 13, 7, 5, 3

QUERY = torch.tensor([[1.0, 2.0]])
KEY = torch.tensor([[3.0, 5.0], [7.0, 11.0]])


class TestByHand:
    """The query [1, 2] and the keys [3, 5] and [7, 11]."""

    def test_dot(self) -> None:
        """1 x 3 + 2 x 5 = 13, and 1 x 7 + 2 x 11 = 29."""
        assert dot(QUERY, KEY).tolist() == [[13, 29]]

    def test_scaled_dot(self) -> None:
        """The dot products divided by the square root of 2."""
        assert_close(scaled_dot(QUERY, KEY), torch.tensor([[13, 29]]) / math.sqrt(2))

    def test_general(self) -> None:
        """The map [[0, 2], [1, 0]] makes of the query [2, 2], which scores 16 and 36."""
        weight = torch.tensor([[0.0, 2.0], [1.0, 0.0]])
        assert general(QUERY, KEY, weight).tolist() == [[16, 36]]

    def test_additive(self) -> None:
        """W q = [1, 4], U k = [-1, -3] and [0, 0]: the sums are [0, 1] and [1, 4], and v adds their tanh as 2 and 3."""
        query_weight, key_weight = torch.diag(torch.tensor([1.0, 2.0])), -torch.eye(2)
        key, direction = torch.tensor([[1.0, 3.0], [0.0, 0.0]]), torch.tensor([2.0, 3.0])
        expected = [[3 * math.tanh(1), 2 * math.tanh(1) + 3 * math.tanh(4)]]
        assert_close(
            additive(QUERY, key, query_weight, key_weight, direction), torch.tensor(expected)
        )


class TestFunctions:
    """Any number of queries and keys, in any batch."""

    def test_general_against_torch(self) -> None:
        """PyTorch's bilinear form gives the same, also where query and key differ in width."""
        query, key = torch.randn(BATCH, QUERIES, D_QUERY), torch.randn(BATCH, KEYS, D_K)
        bilinear = nn.Bilinear(D_QUERY, D_K, 1, bias=False)
        weight = bilinear.weight[0]
        pairs = (
            query[:, :, None].expand(-1, -1, KEYS, -1),
            key[:, None].expand(-1, QUERIES, -1, -1),
        )
        expected = bilinear(*(pair.contiguous() for pair in pairs))[..., 0]
        assert_close(general(query, key, weight), expected, rtol=0, atol=1e-5)


class TestNames:
    """Four names."""

    @pytest.mark.parametrize("name", SCORES)
    def test_attention_with_each(self, name: ScoreName) -> None:
        """Whatever the scores, each row is a distribution over the keys, and gradients reach what is learned."""
        score = SCORES[name](D_K)
        query, key = (
            torch.randn(BATCH, QUERIES, D_K, requires_grad=True),
            torch.randn(BATCH, KEYS, D_K),
        )
        context, weights = weigh(score(query, key), key)
        assert_close(weights.sum(dim=-1), torch.ones(BATCH, QUERIES))
        assert_close(context, weights @ key)
        torch.autograd.backward(context.square().sum())
        parameters = list(score.parameters()) if isinstance(score, nn.Module) else []
        assert len(parameters) == {"dot": 0, "scaled_dot": 0, "general": 1, "additive": 3}[name]
        assert all(
            learned.grad is not None and learned.grad.any() for learned in [query, *parameters]
        )
