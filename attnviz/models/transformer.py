"""The Transformer's encoder: attention, then a small network at each position, N times over.

References:
    Vaswani et al. 2017, "Attention Is All You Need", section 3.1 and figure 1: https://arxiv.org/abs/1706.03762
    Rush 2018, "The Annotated Transformer": https://nlp.seas.harvard.edu/annotated-transformer/

As in the paper the norm comes after each residual sum (post-norm), and dropout, where it is asked for, before it.
The trails of shapes use B batch, T tokens, D the width of the model (d_model), F that of the feed-forward network
(d_ff).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attnviz.errors import ModelError
from attnviz.models.attention import AttendFunction, MultiHeadAttention, scaled_dot_product_attention
from attnviz.models.shapes import expect_shape
from attnviz.models.sizes import expect_share, expect_sizes

Activation = Literal["relu", "gelu"]


# FFN(x) = max(0, x W_1 + b_1) W_2 + b_2
class FeedForward(nn.Module):
    """The same small network at every position, each on its own.

    Args:
        d_model: the width of the words' vectors.
        d_ff: the width between the two maps.
        activation: ``relu`` as in the paper, or ``gelu`` as in BERT and GPT.

    Raises:
        ModelError: no such activation, or a width below 1.

    Source: Vaswani et al. 2017, equation 2.
    """

    def __init__(self, d_model: int, d_ff: int, activation: Activation = "relu") -> None:
        super().__init__()
        expect_sizes(d_model=d_model, d_ff=d_ff)
        activations = {"relu": nn.ReLU, "gelu": nn.GELU}
        if activation not in activations:
            raise ModelError(f"no such activation: expected relu or gelu, got {activation}")
        self.widen = nn.Linear(d_model, d_ff)
        self.activation = activations[activation]()
        self.narrow = nn.Linear(d_ff, d_model)

    def forward(self, x: Float[Tensor, "batch tokens d_model"]) -> Float[Tensor, "batch tokens d_model"]:
        """The network's output [batch, tokens, d_model]."""
        out: Tensor = self.narrow(self.activation(self.widen(x)))  # (B, T, D) -> (B, T, F) -> (B, T, D)
        return out


# y = LayerNorm(x + MultiHead(x, x, x)), then LayerNorm(y + FFN(y))
class EncoderLayer(nn.Module):
    """Attention and feed-forward, each followed by a residual sum and a layer norm.

    Args:
        d_model: the width of the words' vectors.
        n_heads: how many heads share it.
        d_ff: the width inside the feed-forward network.
        activation: ``relu`` or ``gelu``.
        dropout: the share of what each sub-layer adds that training leaves out; 0.1 in the paper.

    Raises:
        ModelError: n_heads does not divide d_model, or a size or share that makes no sense.

    Source: Vaswani et al. 2017, sections 3.1 and 5.4.
    """

    def __init__(
        self, d_model: int, n_heads: int, d_ff: int, activation: Activation = "relu", *, dropout: float = 0.0
    ) -> None:
        super().__init__()
        expect_share(dropout=dropout)
        self.attention = MultiHeadAttention(d_model, n_heads)
        self.attention_norm = nn.LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.feed_forward_norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Float[Tensor, "batch tokens d_model"],
        mask: Bool[Tensor, "*#batch #tokens #tokens"] | None = None,
        *,
        attend: AttendFunction = scaled_dot_product_attention,
    ) -> tuple[Float[Tensor, "batch tokens d_model"], Float[Tensor, "batch head tokens tokens"] | None]:
        """The output [batch, tokens, d_model] and the weights [batch, head, query, key].

        Raises:
            ModelError: x is not d_model wide, or the mask does not fit.
        """
        attended, weights = self.attention(x, mask, attend=attend)
        x = self.attention_norm(x + self.dropout(attended))
        x = self.feed_forward_norm(x + self.dropout(self.feed_forward(x)))
        return x, weights


class Encoder(nn.Module):
    """N layers, each reading what the one before wrote.

    Args:
        n_layers: how many; N = 6 in the paper.
        d_model: the width of the words' vectors; 512 in the paper.
        n_heads: how many heads share it; 8 in the paper.
        d_ff: the width inside the feed-forward networks; 2048 in the paper.
        activation: ``relu`` or ``gelu``.
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
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if n_layers < 1:
            raise ModelError(f"an encoder needs layers: expected at least 1, got {n_layers}")
        self.layers = nn.ModuleList(
            EncoderLayer(d_model, n_heads, d_ff, activation, dropout=dropout) for _ in range(n_layers)
        )

    def forward(
        self,
        x: Float[Tensor, "batch tokens d_model"],
        mask: Bool[Tensor, "*#batch #tokens #tokens"] | None = None,
        *,
        attend: AttendFunction = scaled_dot_product_attention,
    ) -> tuple[Float[Tensor, "batch tokens d_model"], list[Float[Tensor, "batch head tokens tokens"] | None]]:
        """The last output [batch, tokens, d_model] and each layer's weights [batch, head, query, key].

        Raises:
            ModelError: x is not d_model wide, or the mask does not fit.
        """
        weights = []
        for layer in self.layers:
            x, layer_weights = layer(x, mask, attend=attend)
            weights.append(layer_weights)
        return x, weights


def pad(
    sequences: Sequence[Float[Tensor, "_ d_model"]],
) -> tuple[Float[Tensor, "batch tokens d_model"], Bool[Tensor, "batch 1 tokens"]]:
    """Sequences of different lengths as one batch [batch, tokens, d_model], and its mask [batch, 1, key].

    The mask hides the padding from every query, so each sequence gets the numbers that it gets alone; what
    comes out at the padding itself means nothing. With ``& causal_mask(tokens)`` it is causal too.

    Raises:
        ModelError: there is no sequence, or they differ in width.
    """
    if not sequences:
        raise ModelError("a batch needs sequences: expected at least 1, got 0")
    for sequence in sequences:
        expect_shape("sequence", sequence, "tokens", sequences[0].shape[-1])
    lengths = torch.tensor([len(sequence) for sequence in sequences], device=sequences[0].device)
    padded = nn.utils.rnn.pad_sequence(list(sequences), batch_first=True)  # (B, T, D)
    here = torch.arange(padded.shape[1], device=padded.device) < lengths[:, None]  # (T) < (B, 1) -> (B, T)
    return padded, here[:, None]
