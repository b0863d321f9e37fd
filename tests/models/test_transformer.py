"""The encoder: its equations, PyTorch's own beside it, and what a mask must not change."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from attnviz.models.attention import causal_mask
from attnviz.models.config import StackConfig
from attnviz.models.transformer import Encoder, FeedForward, TransformerLayer, pad
from tests.models.parity import copy_layer

# Different primes; only d_model must divide by the heads: 3 x 7.
BATCH, TOKENS, HEADS, D_MODEL, D_FF, LAYERS = 2, 11, 3, 21, 17, 5
SIZES = StackConfig(n_layers=LAYERS, d_model=D_MODEL, n_heads=HEADS, d_ff=D_FF)


class TestFeedForward:
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2."""

    def test_by_hand(self) -> None:
        """With W_1 = [1, -1] and W_2 = [[2], [3]]: 5 becomes 10, and -5 becomes 15."""
        network = FeedForward(1, 2)
        for parameter, numbers in zip(
            network.parameters(), ([[1], [-1]], [0, 0], [[2, 3]], [0]), strict=True
        ):
            parameter.data = torch.tensor(numbers, dtype=torch.float32)
        assert network(torch.tensor([[[5.0], [-5.0]]])).tolist() == [[[10], [15]]]


class TestLayer:
    """Attention, sum, norm, feed-forward, sum, norm."""

    @pytest.mark.parametrize("mask", ["none", "causal", "padding"])
    def test_parity_with_torch(self, mask: str) -> None:
        """PyTorch's layer with the same weights gives the same vectors."""
        theirs = nn.TransformerEncoderLayer(D_MODEL, HEADS, D_FF, dropout=0, batch_first=True)
        for parameter in theirs.parameters():
            # the norms' weights and the biases too, which begin as ones and zeros
            nn.init.normal_(parameter)
        mine, x = (
            TransformerLayer(SIZES),
            torch.randn(BATCH, TOKENS, D_MODEL),
        )
        copy_layer(mine, theirs)
        mine, theirs, x = mine.double(), theirs.double(), x.double()
        here = torch.arange(TOKENS) < torch.tensor([[TOKENS], [4]])
        may_look, hidden = {
            "none": (None, {}),
            "causal": (causal_mask(TOKENS), {"src_mask": ~causal_mask(TOKENS)}),
            "padding": (here[:, None], {"src_key_padding_mask": ~here}),
        }[mask]
        output, weights, _ = mine(x, may_look)
        assert weights.shape == (BATCH, HEADS, TOKENS, TOKENS)
        assert_close(output, theirs(x, **hidden))


class TestPad:
    """Sentences of different lengths in one batch."""

    @pytest.mark.parametrize("causal", [False, True])
    def test_padding_changes_nothing(self, *, causal: bool) -> None:
        """In a batch each sentence gets the numbers that it gets alone, and the padding no weight."""
        encoder = Encoder(SIZES).double()  # rounds too little to hide a mistake
        sentences = [torch.randn(length, D_MODEL, dtype=torch.float64) for length in (5, 11, 1, 7)]
        x, mask = pad(sentences)
        output, weights, _ = encoder(x, mask & causal_mask(11) if causal else mask)
        for row, sentence in enumerate(sentences):
            n = len(sentence)
            alone, patterns, _ = encoder(sentence[None], causal_mask(n) if causal else None)
            assert_close(output[row, :n], alone[0], rtol=0, atol=1e-12)
            for together, pattern in zip(weights, patterns, strict=True):
                assert_close(together[row, :, :n, :n], pattern[0], rtol=0, atol=1e-12)
                assert (together[row, :, :, n:] == 0).all()
