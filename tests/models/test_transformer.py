"""The Transformer between embeddings and words: by hand, beside PyTorch's own, and what a mask must not change."""

from __future__ import annotations

from typing import TypeVar

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from attnviz.models.attention import causal_mask
from attnviz.models.config import StackConfig
from attnviz.models.transformer import Encoder, EncoderDecoder, FeedForward, TransformerLayer, pad
from tests.models.parity import copy_layer

# Different primes; only d_model must divide by the heads: 3 x 7.
BATCH, TOKENS, SOURCE, HEADS, D_MODEL, D_FF, LAYERS = 2, 11, 13, 3, 21, 17, 5
SIZES = StackConfig(n_layers=LAYERS, d_model=D_MODEL, n_heads=HEADS, d_ff=D_FF)

Module = TypeVar("Module", bound=nn.Module)


def stirred(module: Module) -> Module:
    """The module in double precision, with random norms and biases too, which begin as ones and zeros."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)
    return module.double()


def vectors(*shape: int) -> Tensor:
    """Random vectors in double precision, which rounds too little to hide a mistake."""
    return torch.randn(*shape, dtype=torch.float64)


def test_feed_forward_by_hand() -> None:
    """With W_1 = [1, -1] and W_2 = [[2], [3]]: 5 becomes 10, and -5 becomes 15."""
    network = FeedForward(1, 2)
    numbers = ([[1], [-1]], [0, 0], [[2, 3]], [0])
    for parameter, values in zip(network.parameters(), numbers, strict=True):
        parameter.data = torch.tensor(values, dtype=torch.float32)
    assert network(torch.tensor([[[5.0], [-5.0]]])).tolist() == [[[10], [15]]]


@pytest.mark.parametrize("masked", [False, True])
def test_layer_of_a_decoder(*, masked: bool) -> None:
    """PyTorch's layer with the same weights gives the same vectors, and the same attention inside."""
    theirs = stirred(nn.TransformerDecoderLayer(D_MODEL, HEADS, D_FF, dropout=0, batch_first=True))
    mine = TransformerLayer(SIZES, cross=True).double()
    copy_layer(mine, theirs)
    x, memory = vectors(BATCH, TOKENS, D_MODEL), vectors(BATCH, SOURCE, D_MODEL)
    here = torch.arange(SOURCE) < torch.tensor([[SOURCE], [4]])
    mask, memory_mask = (causal_mask(TOKENS), here[:, None]) if masked else (None, None)
    output, weights, cross_weights = mine(x, mask, memory=memory, memory_mask=memory_mask)
    later, padding = (~causal_mask(TOKENS), ~here) if masked else (None, None)
    assert_close(output, theirs(x, memory, tgt_mask=later, memory_key_padding_mask=padding))
    attended, expected = theirs.self_attn(x, x, x, attn_mask=later, average_attn_weights=False)
    assert_close(weights, expected)
    asking = theirs.norm1(x + attended)
    _, expected = theirs.multihead_attn(
        asking, memory, memory, key_padding_mask=padding, average_attn_weights=False
    )
    assert expected.shape == (BATCH, HEADS, TOKENS, SOURCE)
    assert_close(cross_weights, expected)


def test_both_halves() -> None:
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
    )
    mine = EncoderDecoder(SIZES)
    for half, other in ((mine.encoder, encoder), (mine.decoder, decoder)):
        for layer, their_layer in zip(half.layers, other.layers, strict=True):
            copy_layer(layer, their_layer)
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


def test_the_papers_size() -> None:
    """Six layers in each half, 512 wide, eight heads."""
    output, weights = EncoderDecoder(StackConfig())(torch.randn(1, 5, 512), torch.randn(1, 3, 512))
    assert output.shape == (1, 3, 512)
    shapes = {"encoder": (1, 8, 5, 5), "decoder": (1, 8, 3, 3), "cross": (1, 8, 3, 5)}
    for kind, patterns in weights._asdict().items():
        assert [tuple(pattern.shape) for pattern in patterns] == [shapes[kind]] * 6


@pytest.mark.parametrize("causal", [False, True])
def test_padding_changes_nothing(*, causal: bool) -> None:
    """In a batch each sentence gets the numbers that it gets alone, and the padding no weight."""
    encoder = Encoder(SIZES).double()
    sentences = [vectors(length, D_MODEL) for length in (5, 11, 1, 7)]
    x, mask = pad(sentences)
    output, weights, _ = encoder(x, mask & causal_mask(11) if causal else mask)
    for row, sentence in enumerate(sentences):
        n = len(sentence)
        alone, patterns, _ = encoder(sentence[None], causal_mask(n) if causal else None)
        assert_close(output[row, :n], alone[0], rtol=0, atol=1e-12)
        for together, pattern in zip(weights, patterns, strict=True):
            assert_close(together[row, :, :n, :n], pattern[0], rtol=0, atol=1e-12)
            assert (together[row, :, :, n:] == 0).all()
