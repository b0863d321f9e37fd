"""The Transformer's decoder: it looks back at its own words, across at the encoder's, N times over.

References:
    Vaswani et al. 2017, "Attention Is All You Need", section 3.1 and figure 1: https://arxiv.org/abs/1706.03762
    Radford et al. 2018, GPT, a decoder without an encoder: https://openai.com/research/language-unsupervised

As in the paper the norm comes after each residual sum (post-norm). The trails of shapes use B batch, H heads, T
tokens, S tokens of the memory (what the encoder wrote) and D the width of the model (d_model).
"""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Bool, Float
from torch import Tensor, nn

from attnviz.errors import ModelError
from attnviz.models.attention import (
    AttendFunction,
    MultiHeadAttention,
    causal_mask,
    full_mask,
    scaled_dot_product_attention,
)
from attnviz.models.shapes import expect_shape
from attnviz.models.sizes import expect_share
from attnviz.models.transformer import Activation, Encoder, FeedForward


# y = LayerNorm(x + MultiHead(x, x, x)), z = LayerNorm(y + MultiHead(y, memory, memory)), LayerNorm(z + FFN(z))
class DecoderLayer(nn.Module):
    """Self-attention, cross attention and feed-forward, each followed by a residual sum and a layer norm.

    Args:
        d_model: the width of the words' vectors.
        n_heads: how many heads share it.
        d_ff: the width inside the feed-forward network.
        activation: ``relu`` or ``gelu``.
        cross: whether there is cross attention, and so a memory to look at.
        dropout: the share of what each sub-layer adds that training leaves out; 0.1 in the paper.

    Raises:
        ModelError: n_heads does not divide d_model, or a size or share that makes no sense.

    Source: Vaswani et al. 2017, section 3.1.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        activation: Activation = "relu",
        *,
        cross: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        expect_share(dropout=dropout)
        self.attention = MultiHeadAttention(d_model, n_heads)
        self.attention_norm = nn.LayerNorm(d_model)
        self.cross_attention = MultiHeadAttention(d_model, n_heads) if cross else None
        self.cross_attention_norm = nn.LayerNorm(d_model) if cross else None
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.feed_forward_norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Float[Tensor, "batch tokens d_model"],
        mask: Bool[Tensor, "*#batch #tokens #tokens"] | None = None,
        *,
        memory: Float[Tensor, "batch source d_model"] | None = None,
        memory_mask: Bool[Tensor, "*#batch #tokens #source"] | None = None,
        attend: AttendFunction = scaled_dot_product_attention,
        attend_cross: AttendFunction = scaled_dot_product_attention,
    ) -> tuple[
        Float[Tensor, "batch tokens d_model"],
        Float[Tensor, "batch head tokens tokens"] | None,
        Float[Tensor, "batch head tokens source"] | None,
    ]:
        """The output [batch, tokens, d_model], the weights of self-attention and those of cross attention.

        Raises:
            ModelError: x or memory is not d_model wide, a mask does not fit, or a memory came to a layer without
                cross attention, or none to a layer with it.
        """
        if (memory is None) != (self.cross_attention is None):
            expected, got = ("no memory", "one") if self.cross_attention is None else ("a memory", "none")
            raise ModelError(f"a memory goes with cross attention: expected {expected}, got {got}")
        attended, weights = self.attention(x, mask, attend=attend)  # (B, T, D), (B, H, T, T)
        x = self.attention_norm(x + self.dropout(attended))
        cross_weights = None
        if self.cross_attention is not None and self.cross_attention_norm is not None:
            attended, cross_weights = self.cross_attention(x, memory_mask, memory=memory, attend=attend_cross)
            x = self.cross_attention_norm(x + self.dropout(attended))  # (B, T, D), (B, H, T, S)
        x = self.feed_forward_norm(x + self.dropout(self.feed_forward(x)))
        return x, weights, cross_weights


class Decoder(nn.Module):
    """N layers, each reading what the one before wrote, and none looking ahead.

    With a memory it is the right half of an encoder-decoder; with ``cross=False`` it stands alone, as GPT does.

    Args:
        n_layers: how many; N = 6 in the paper.
        d_model: the width of the words' vectors; 512 in the paper.
        n_heads: how many heads share it; 8 in the paper.
        d_ff: the width inside the feed-forward networks; 2048 in the paper.
        activation: ``relu`` or ``gelu``.
        cross: whether its layers have cross attention, and so a memory to look at.
        dropout: the share of what each sub-layer adds that training leaves out; 0.1 in the paper.

    Raises:
        ModelError: there is no layer, n_heads does not divide d_model, or a size or share that makes no sense.

    Source: Vaswani et al. 2017, section 3.1.
    """

    def __init__(
        self,
        n_layers: int,
        d_model: int,
        n_heads: int,
        d_ff: int,
        activation: Activation = "relu",
        *,
        cross: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if n_layers < 1:
            raise ModelError(f"a decoder needs layers: expected at least 1, got {n_layers}")
        self.d_model, self.cross = d_model, cross
        self.layers = nn.ModuleList(
            DecoderLayer(d_model, n_heads, d_ff, activation, cross=cross, dropout=dropout) for _ in range(n_layers)
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
    ) -> tuple[
        Float[Tensor, "batch tokens d_model"],
        list[Float[Tensor, "batch head tokens tokens"] | None],
        list[Float[Tensor, "batch head tokens source"] | None],
    ]:
        """The last output [batch, tokens, d_model], each layer's weights and each layer's cross weights.

        The causal mask is made here; ``mask`` may hide more. Without cross attention the last list is empty.

        Raises:
            ModelError: x or memory is not d_model wide, a mask does not fit, or a memory came to a decoder without
                cross attention, or none to a decoder with it.
        """
        expect_shape("x", x, "batch", "tokens", self.d_model)
        batch, n, _ = x.shape
        causal = causal_mask(n, x.device)  # (T, T)
        mask = causal if mask is None else full_mask(mask, (batch, n, n)) & causal  # (B, T, T)
        all_weights, all_cross_weights = [], []
        for layer in self.layers:
            x, weights, cross_weights = layer(
                x, mask, memory=memory, memory_mask=memory_mask, attend=attend, attend_cross=attend_cross
            )
            all_weights.append(weights)
            all_cross_weights.append(cross_weights)
        return x, all_weights, all_cross_weights if self.cross else []


class Weights(NamedTuple):
    """The attention of an encoder-decoder, by kind: of each, one tensor a layer.

    Attributes:
        encoder: the source at itself [batch, head, source, source].
        decoder: the target at itself, never ahead [batch, head, target, target].
        cross: the target at the source [batch, head, target, source].
    """

    encoder: list[Tensor | None]
    decoder: list[Tensor | None]
    cross: list[Tensor | None]


class EncoderDecoder(nn.Module):
    """The Transformer between its embeddings and its output map: vectors in, vectors out.

    Args:
        n_layers: how many layers each half has; N = 6 in the paper.
        d_model: the width of the words' vectors; 512 in the paper.
        n_heads: how many heads share it; 8 in the paper.
        d_ff: the width inside the feed-forward networks; 2048 in the paper.
        activation: ``relu`` or ``gelu``.
        dropout: the share of what each sub-layer adds that training leaves out; 0.1 in the paper.

    Raises:
        ModelError: there is no layer, n_heads does not divide d_model, or a size or share that makes no sense.

    Source: Vaswani et al. 2017, figure 1.
    """

    def __init__(
        self,
        n_layers: int,
        d_model: int,
        n_heads: int,
        d_ff: int,
        activation: Activation = "relu",
        *,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.encoder = Encoder(n_layers, d_model, n_heads, d_ff, activation, dropout=dropout)
        self.decoder = Decoder(n_layers, d_model, n_heads, d_ff, activation, dropout=dropout)

    def forward(
        self,
        source: Float[Tensor, "batch source d_model"],
        target: Float[Tensor, "batch target d_model"],
        source_mask: Bool[Tensor, "*#batch 1 source"] | None = None,
        target_mask: Bool[Tensor, "*#batch #target #target"] | None = None,
        *,
        attend_encoder: AttendFunction = scaled_dot_product_attention,
        attend_decoder: AttendFunction = scaled_dot_product_attention,
        attend_cross: AttendFunction = scaled_dot_product_attention,
    ) -> tuple[Float[Tensor, "batch target d_model"], Weights]:
        """The last output [batch, target, d_model] and the weights by kind.

        ``source_mask`` says which source words are there, for both who look at them.

        Raises:
            ModelError: vectors that are not d_model wide, or a mask that does not fit.
        """
        memory, encoder = self.encoder(source, source_mask, attend=attend_encoder)  # (B, S, D)
        output, decoder, cross = self.decoder(
            target,
            target_mask,
            memory=memory,
            memory_mask=source_mask,
            attend=attend_decoder,
            attend_cross=attend_cross,
        )  # (B, T, D)
        return output, Weights(encoder, decoder, cross)
