"""The encoder: its equations, PyTorch's own beside it, and what a mask must not change."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from attnviz.errors import ModelError
from attnviz.models.attention import causal_mask, split
from attnviz.models.config import StackConfig
from attnviz.models.transformer import Encoder, FeedForward, TransformerLayer, pad

# Different primes; only d_model must divide by the heads: 3 x 7.
BATCH, TOKENS, HEADS, D_MODEL, D_FF, LAYERS = 2, 11, 3, 21, 17, 5
SIZES = StackConfig(n_layers=LAYERS, d_model=D_MODEL, n_heads=HEADS, d_ff=D_FF)


def copy_into(mine: TransformerLayer, theirs: nn.TransformerEncoderLayer) -> None:
    """Give the home-built layer the weights of PyTorch's."""
    fused = nn.Linear(D_MODEL, 3 * D_MODEL)
    fused.load_state_dict(
        {"weight": theirs.self_attn.in_proj_weight, "bias": theirs.self_attn.in_proj_bias}
    )
    attention = mine.attention
    attention.query_projection, attention.key_projection, attention.value_projection = split(fused)
    for ours, other in (
        (attention.output_projection, theirs.self_attn.out_proj),
        (mine.attention_norm, theirs.norm1),
        (mine.feed_forward.widen, theirs.linear1),
        (mine.feed_forward.narrow, theirs.linear2),
        (mine.feed_forward_norm, theirs.norm2),
    ):
        ours.load_state_dict(other.state_dict())


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
        copy_into(mine, theirs)
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


class TestEncoder:
    """N layers, each on top of the one before."""

    def test_a_later_word_changes_no_earlier_row(self) -> None:
        """With the causal mask, new words at the end leave those before as they were; without, not."""
        encoder, x = Encoder(SIZES), torch.randn(BATCH, TOKENS, D_MODEL)
        changed = x.clone()
        changed[:, 7:] = torch.randn(BATCH, TOKENS - 7, D_MODEL)
        mask = causal_mask(TOKENS)
        assert torch.equal(encoder(x, mask)[0][:, :7], encoder(changed, mask)[0][:, :7])
        assert not torch.allclose(encoder(x, mask)[0][:, 7:], encoder(changed, mask)[0][:, 7:])
        assert not torch.allclose(encoder(x)[0][:, :7], encoder(changed)[0][:, :7])

    def test_order_is_not_seen(self) -> None:
        """Without positions, shuffled words give the same vectors, shuffled."""
        encoder, x = Encoder(SIZES), torch.randn(BATCH, TOKENS, D_MODEL)
        shuffled = torch.randperm(TOKENS)
        assert_close(encoder(x[:, shuffled])[0], encoder(x)[0][:, shuffled], rtol=0, atol=1e-5)


class TestPad:
    """Sentences of different lengths in one batch."""

    def test_mask_hides_what_was_added(self) -> None:
        """Zeros fill up the shorter ones, and no query may look at them."""
        padded, mask = pad([torch.ones(3, 2), torch.ones(1, 2)])
        assert padded[:, :, 0].tolist() == [[1, 1, 1], [1, 0, 0]]
        assert mask.tolist() == [[[True, True, True]], [[True, False, False]]]

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


@pytest.mark.usefixtures("as_installed")
class TestRefusals:
    """Impossible arguments are refused; the message names the expected and the given value."""

    def test_sizes(self) -> None:
        """No layer, heads that do not divide."""
        with pytest.raises(ModelError, match="expected at least 1, got 0"):
            Encoder(replace(SIZES, n_layers=0))
        with pytest.raises(ModelError, match="expected a divisor of 21, got 2 heads"):
            Encoder(replace(SIZES, n_heads=2))
