"""The decoder: PyTorch's own beside it, no look ahead, and what a mask must not change."""

from __future__ import annotations

from typing import TypeVar

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from attnviz.models.attention import causal_mask
from attnviz.models.config import StackConfig
from attnviz.models.transformer import Decoder, EncoderDecoder, TransformerLayer
from tests.models.parity import copy_layer

# Different primes; only d_model must divide by the heads: 3 x 7.
BATCH, TOKENS, SOURCE, HEADS, D_MODEL, D_FF, LAYERS = 2, 11, 13, 3, 21, 17, 5
SIZES = StackConfig(n_layers=LAYERS, d_model=D_MODEL, n_heads=HEADS, d_ff=D_FF)


Module = TypeVar("Module", bound=nn.Module)


def stirred(module: Module) -> Module:
    """The module with random norms and biases too, which begin as ones and zeros."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)
    return module


def vectors(*shape: int) -> Tensor:
    """Random vectors in double precision, which rounds too little to hide a mistake."""
    return torch.randn(*shape, dtype=torch.float64)


class TestCrossLayer:
    """Self-attention, cross attention, feed-forward, each with its sum and norm."""

    @pytest.mark.parametrize("masked", [False, True])
    def test_parity_with_torch(self, *, masked: bool) -> None:
        """PyTorch's layer with the same weights gives the same vectors, and the same attention inside."""
        theirs = stirred(
            nn.TransformerDecoderLayer(D_MODEL, HEADS, D_FF, dropout=0, batch_first=True)
        ).double()
        mine = TransformerLayer(SIZES, cross=True).double()
        copy_layer(mine, theirs)
        mine, x, memory = (
            mine.double(),
            vectors(BATCH, TOKENS, D_MODEL),
            vectors(BATCH, SOURCE, D_MODEL),
        )
        here = torch.arange(SOURCE) < torch.tensor([[SOURCE], [4]])
        mask, memory_mask = (causal_mask(TOKENS), here[:, None]) if masked else (None, None)
        output, weights, cross_weights = mine(x, mask, memory=memory, memory_mask=memory_mask)
        hidden = (
            {"tgt_mask": ~causal_mask(TOKENS), "memory_key_padding_mask": ~here} if masked else {}
        )
        assert_close(output, theirs(x, memory, **hidden))
        hidden_from_self = ~causal_mask(TOKENS) if masked else None
        attended, expected = theirs.self_attn(
            x, x, x, attn_mask=hidden_from_self, average_attn_weights=False
        )
        assert_close(weights, expected)
        asking, hidden_from_cross = theirs.norm1(x + attended), ~here if masked else None
        _, expected = theirs.multihead_attn(
            asking, memory, memory, key_padding_mask=hidden_from_cross, average_attn_weights=False
        )
        assert expected.shape == (BATCH, HEADS, TOKENS, SOURCE)
        assert_close(cross_weights, expected)


class TestDecoder:
    """N layers that never look ahead."""

    def test_parity_with_torch(self) -> None:
        """PyTorch's stack, told not to look ahead, gives the same vectors."""
        layer = nn.TransformerDecoderLayer(D_MODEL, HEADS, D_FF, dropout=0, batch_first=True)
        theirs = stirred(nn.TransformerDecoder(layer, LAYERS)).double()
        mine = Decoder(SIZES)
        for ours, other in zip(mine.layers.children(), theirs.layers.children(), strict=True):
            copy_layer(ours, other)
        x, memory = vectors(BATCH, TOKENS, D_MODEL), vectors(BATCH, SOURCE, D_MODEL)
        output, weights, cross_weights = mine.double()(x, memory=memory)
        assert_close(output, theirs(x, memory, tgt_mask=~causal_mask(TOKENS)))
        assert [tuple(pattern.shape) for pattern in weights] == [
            (BATCH, HEADS, TOKENS, TOKENS)
        ] * LAYERS
        assert [tuple(pattern.shape) for pattern in cross_weights] == [
            (BATCH, HEADS, TOKENS, SOURCE)
        ] * LAYERS


class TestEncoderDecoder:
    """The two halves, and the cross attention between them."""

    def test_parity_with_torch(self) -> None:
        """PyTorch's Transformer, its last norms left out as in the paper, gives the same vectors."""
        encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(D_MODEL, HEADS, D_FF, dropout=0, batch_first=True),
            LAYERS,
            enable_nested_tensor=False,
        )
        decoder = nn.TransformerDecoder(
            nn.TransformerDecoderLayer(D_MODEL, HEADS, D_FF, dropout=0, batch_first=True), LAYERS
        )
        theirs = stirred(
            nn.Transformer(
                D_MODEL, HEADS, custom_encoder=encoder, custom_decoder=decoder, batch_first=True
            )
        ).double()
        mine = EncoderDecoder(SIZES)
        for ours, other in zip(mine.encoder.layers, encoder.layers, strict=True):
            copy_layer(ours, other)
        for ours, other in zip(mine.decoder.layers, decoder.layers, strict=True):
            copy_layer(ours, other)
        source, target = vectors(BATCH, SOURCE, D_MODEL), vectors(BATCH, TOKENS, D_MODEL)
        here = torch.arange(SOURCE) < torch.tensor([[4], [SOURCE]])
        output, _ = mine.double()(source, target, here[:, None])
        expected = theirs(
            source,
            target,
            tgt_mask=~causal_mask(TOKENS),
            src_key_padding_mask=~here,
            memory_key_padding_mask=~here,
        )
        assert_close(output, expected)

    def test_the_papers_size(self) -> None:
        """Six layers in each half, 512 wide, eight heads."""
        model = EncoderDecoder(StackConfig())
        output, weights = model(torch.randn(1, 5, 512), torch.randn(1, 3, 512))
        assert output.shape == (1, 3, 512)
        assert [tuple(pattern.shape) for pattern in weights.encoder] == [(1, 8, 5, 5)] * 6
        assert [tuple(pattern.shape) for pattern in weights.decoder] == [(1, 8, 3, 3)] * 6
        assert [tuple(pattern.shape) for pattern in weights.cross] == [(1, 8, 3, 5)] * 6
