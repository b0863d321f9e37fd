"""Weights of PyTorch's own modules for the home-built ones, and sentences for both."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from attnviz.models.attention import MultiHeadAttention
from attnviz.models.config import WordsConfig


def words(n_words: int, *lengths: int) -> Tensor:
    """Sentences of these lengths, in one batch, of words that are not special."""
    rows = [torch.randint(WordsConfig.mask + 1, n_words, (length,)) for length in lengths]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True)


def copy_attention(mine: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    """Give home-built attention the weights of PyTorch's, which holds the three projections fused."""
    projections = (mine.query_projection, mine.key_projection, mine.value_projection)
    weights, biases = theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.chunk(3)
    for projection, weight, bias in zip(projections, weights, biases, strict=True):
        projection.load_state_dict({"weight": weight, "bias": bias})
    mine.output_projection.load_state_dict(theirs.out_proj.state_dict())


def copy_layer(mine: Any, theirs: Any) -> None:
    """Give a home-built layer the weights of PyTorch's encoder layer, or of its decoder layer if it has a memory."""
    copy_attention(mine.attention, theirs.self_attn)
    norms = [mine.attention_norm, mine.feed_forward_norm]
    their_norms = [theirs.norm1, theirs.norm2]
    if mine.cross_attention is not None:
        copy_attention(mine.cross_attention, theirs.multihead_attn)
        norms.insert(1, mine.cross_attention_norm)
        their_norms.append(theirs.norm3)
    linears, their_linears = (
        [mine.feed_forward.widen, mine.feed_forward.narrow],
        [theirs.linear1, theirs.linear2],
    )
    for module, their_module in zip(norms + linears, their_norms + their_linears, strict=True):
        module.load_state_dict(their_module.state_dict())
