"""The Transformer between its embeddings and its words: a layer, a stack of layers, an encoder, a decoder, both halves.

References:
    Vaswani et al. 2017, "Attention Is All You Need", section 3.1 and figure 1: https://arxiv.org/abs/1706.03762
    Rush 2018, "The Annotated Transformer": https://nlp.seas.harvard.edu/annotated-transformer/
    Radford et al. 2018, GPT, a decoder without an encoder: https://openai.com/research/language-unsupervised

As in the paper the norm comes after each residual sum (post-norm). These models are too small to need dropout.

The trails of shapes use B batch, H heads, T tokens, S tokens of the memory (what the encoder computed), D the width of
the model (d_model), F that of the feed-forward network (d_ff).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attnviz.models.attention import (
    AttendFunction,
    MultiHeadAttention,
    causal_mask,
    full_mask,
    scaled_dot_product_attention,
)
from attnviz.models.config import StackConfig, expect_sizes


# FFN(x) = max(0, x W_1 + b_1) W_2 + b_2
class FeedForward(nn.Module):
    """A small network, applied to each position separately.

    Source: Vaswani et al. 2017, equation 2.
    """

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.widen = nn.Linear(d_model, d_ff)
        self.narrow = nn.Linear(d_ff, d_model)

    def forward(
        self, x: Float[Tensor, "batch tokens d_model"]
    ) -> Float[Tensor, "batch tokens d_model"]:
        """Return the output [batch, tokens, d_model]."""
        # (B, T, D) -> (B, T, F) -> (B, T, D)
        out: Tensor = self.narrow(self.widen(x).relu())
        return out


# y = LayerNorm(x + MultiHead(x, x, x)), [z = LayerNorm(y + MultiHead(y, memory, memory)),] LayerNorm(z + FFN(z))
class TransformerLayer(nn.Module):
    """Self-attention, with a memory cross attention, and feed-forward; after each a residual sum and a layer norm.

    Source: Vaswani et al. 2017, section 3.1.
    """

    def __init__(self, config: StackConfig, *, cross: bool = False) -> None:
        super().__init__()
        d_model = config.d_model
        self.attention = MultiHeadAttention(d_model, config.n_heads)
        self.attention_norm = nn.LayerNorm(d_model)
        self.cross_attention = MultiHeadAttention(d_model, config.n_heads) if cross else None
        self.cross_attention_norm = nn.LayerNorm(d_model) if cross else None
        self.feed_forward = FeedForward(d_model, config.d_ff)
        self.feed_forward_norm = nn.LayerNorm(d_model)

    def forward(
        self,
        x: Float[Tensor, "batch tokens d_model"],
        mask: Bool[Tensor, "*#batch #tokens #tokens"] | None = None,
        *,
        memory: Float[Tensor, "batch source d_model"] | None = None,
        memory_mask: Bool[Tensor, "*#batch #tokens #source"] | None = None,
        attend: AttendFunction = scaled_dot_product_attention,
        attend_cross: AttendFunction = scaled_dot_product_attention,
    ) -> tuple[Float[Tensor, "batch tokens d_model"], Tensor | None, Tensor | None]:
        """Return the output [batch, tokens, d_model], the weights [batch, head, query, key] and the cross weights.

        Weights are None if the `attend` function kept them, cross weights also without cross-attention.
        """
        attended, weights = self.attention(x, mask, attend=attend)  # (B, T, D), (B, H, T, T)
        x = self.attention_norm(x + attended)
        cross_weights = None
        if self.cross_attention is not None and self.cross_attention_norm is not None:
            attended, cross_weights = self.cross_attention(
                x, memory_mask, memory=memory, attend=attend_cross
            )
            x = self.cross_attention_norm(x + attended)  # (B, T, D), (B, H, T, S)
        x = self.feed_forward_norm(x + self.feed_forward(x))
        return x, weights, cross_weights


class StackOutput(NamedTuple):
    """The output of a stack of layers."""

    states: Tensor  # the last layer's vectors [batch, tokens, d_model]
    weights: list[Tensor | None]  # each layer's, of self-attention [batch, head, query, key]
    # each layer's, of cross attention [batch, head, query, source]; None for each where there is none
    cross_weights: list[Tensor | None]


class Stack(nn.Module):
    """N layers, each reading what the one before computed.

    Source: Vaswani et al. 2017, section 3.1.
    """

    def __init__(self, config: StackConfig, *, causal: bool, cross: bool) -> None:
        super().__init__()
        expect_sizes(n_layers=config.n_layers)
        self.causal = causal
        self.layers = nn.ModuleList(
            TransformerLayer(config, cross=cross) for _ in range(config.n_layers)
        )

    def forward(
        self,
        x: Float[Tensor, "batch tokens d_model"],
        mask: Bool[Tensor, "*#batch #tokens #tokens"] | None = None,
        *,
        memory: Float[Tensor, "batch source d_model"] | None = None,
        memory_mask: Bool[Tensor, "*#batch #tokens #source"] | None = None,
        attend: AttendFunction = scaled_dot_product_attention,
        attend_cross: AttendFunction = scaled_dot_product_attention,
    ) -> StackOutput:
        """Return the last states [batch, tokens, d_model], and each layer's weights and cross weights.

        A causal mask is made here; ``mask`` may hide more.
        """
        if self.causal:
            batch, n, _ = x.shape
            causal = causal_mask(n, x.device)  # (T, T)
            mask = causal if mask is None else full_mask(mask, (batch, n, n)) & causal  # (B, T, T)
        output = StackOutput(x, [], [])
        for layer in self.layers:
            x, weights, cross_weights = layer(
                x,
                mask,
                memory=memory,
                memory_mask=memory_mask,
                attend=attend,
                attend_cross=attend_cross,
            )
            output.weights.append(weights)
            output.cross_weights.append(cross_weights)
        return output._replace(states=x)


class Encoder(Stack):
    """A stack in which every token attends to every token, as in BERT and in the left half of the Transformer."""

    def __init__(self, config: StackConfig) -> None:
        super().__init__(config, causal=False, cross=False)


class Decoder(Stack):
    """A stack in which no token attends to later ones.

    With cross attention it is the right half of the Transformer; with ``cross=False`` it stands alone, as GPT does.
    """

    def __init__(self, config: StackConfig, *, cross: bool = True) -> None:
        super().__init__(config, causal=True, cross=cross)


class Weights(NamedTuple):
    """The attention weights of an encoder-decoder by kind: one tensor per layer."""

    # source to source [batch, head, source, source]
    encoder: list[Tensor | None]
    # target to target, never to later words [batch, head, target, target]
    decoder: list[Tensor | None]
    # target to source [batch, head, target, source]
    cross: list[Tensor | None]


class EncoderDecoder(nn.Module):
    """The Transformer between its embeddings and its output projection: vectors in, vectors out.

    Source: Vaswani et al. 2017, figure 1.
    """

    def __init__(self, config: StackConfig) -> None:
        super().__init__()
        self.encoder, self.decoder = Encoder(config), Decoder(config)

    def forward(
        self,
        source: Float[Tensor, "batch source d_model"],
        target: Float[Tensor, "batch target d_model"],
        source_mask: Bool[Tensor, "*#batch 1 source"] | None = None,
        *,
        attend_encoder: AttendFunction = scaled_dot_product_attention,
        attend_decoder: AttendFunction = scaled_dot_product_attention,
        attend_cross: AttendFunction = scaled_dot_product_attention,
    ) -> tuple[Float[Tensor, "batch target d_model"], Weights]:
        """Return the last output [batch, target, d_model] and the weights by kind.

        ``source_mask`` marks the source words (not padding) for both halves.
        """
        memory, encoder, _ = self.encoder(source, source_mask, attend=attend_encoder)  # (B, S, D)
        output, decoder, cross = self.decoder(
            target,
            memory=memory,
            memory_mask=source_mask,
            attend=attend_decoder,
            attend_cross=attend_cross,
        )  # (B, T, D)
        return output, Weights(encoder, decoder, cross)


def pad(
    sequences: Sequence[Float[Tensor, "_ d_model"]],
) -> tuple[Float[Tensor, "batch tokens d_model"], Bool[Tensor, "batch 1 tokens"]]:
    """Return sequences of different lengths as one batch [batch, tokens, d_model], with its mask [batch, 1, key].

    The mask hides the padding from every query, so each sequence gets the same numbers as without padding. The output
    at the padding itself has no meaning. With ``& causal_mask(tokens)`` it is causal too.
    """
    lengths = torch.tensor([len(sequence) for sequence in sequences], device=sequences[0].device)
    padded = nn.utils.rnn.pad_sequence(list(sequences), batch_first=True)  # (B, T, D)
    # (T) < (B, 1) -> (B, T)
    here = torch.arange(padded.shape[1], device=padded.device) < lengths[:, None]
    return padded, here[:, None]
