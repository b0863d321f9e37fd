"""Word embeddings, positions, and the choice of the most likely word.

Attention alone sees a set of words, not a sequence: if the words are shuffled, each still gets the same vector. So a
vector for its position is added to each word's vector.

References:
    Vaswani et al. 2017, "Attention Is All You Need", sections 3.4 and 3.5: https://arxiv.org/abs/1706.03762

The trails of shapes use B batch, T tokens, W words of the vocabulary and D the width of their vectors (d_model).
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from attnviz.models.config import WordsConfig


# PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos(the same)
def sinusoidal_positions(n: int, d_model: int) -> Float[Tensor, "position d_model"]:
    """Return sines and cosines of ever lower frequency for the first n positions: shape [position, d_model].

    Source: Vaswani et al. 2017, section 3.5.
    """
    # Double precision: at position 10,000 a sine in single precision is inaccurate.
    position = torch.arange(n, dtype=torch.float64)
    two_i = torch.arange(0, d_model, 2, dtype=torch.float64)
    angle = position[:, None] / 10_000 ** (two_i / d_model)  # (n, 1) / (D / 2) -> (n, D / 2)
    table = torch.empty(n, d_model)
    table[:, 0::2] = angle.sin()
    table[:, 1::2] = angle[:, : d_model // 2].cos()  # an odd d_model ends with a sine
    return table


# x = sqrt(d_model) E[word] + PE
class WordEmbedding(nn.Module):
    """Word vectors plus position vectors.

    Source: Vaswani et al. 2017, sections 3.4 and 3.5.
    """

    def __init__(self, n_words: int, d_model: int, *, positions: bool = True) -> None:
        super().__init__()
        self.positions = positions
        self.table = nn.Embedding(n_words, d_model, padding_idx=WordsConfig.pad)
        # After the factor sqrt(d_model), word vectors have variance 1 and positions 1/2.
        with torch.no_grad():
            self.table.weight.mul_(d_model**-0.5)

    def forward(
        self, words: Int[Tensor, "batch tokens"], *, positions: bool = True
    ) -> Float[Tensor, "batch tokens d_model"]:
        """Return the words' vectors [batch, tokens, d_model].

        Positions are added unless this call or the module leaves them out.
        """
        d_model = self.table.embedding_dim
        x: Tensor = self.table(words) * d_model**0.5  # (B, T) -> (B, T, D)
        if positions and self.positions:
            x = x + sinusoidal_positions(words.shape[1], d_model).to(x)  # (B, T, D) + (T, D)
        return x


def after_start(words: Int[Tensor, "batch tokens"], start: int) -> Int[Tensor, "batch tokens"]:
    """Return the decoder input under teacher forcing: the start token, then every word except the last.

    Source: Vaswani et al. 2017, section 3.1, "offset by one position".
    """
    return torch.cat([torch.full_like(words[:, :1], start), words[:, :-1]], dim=1)  # (B, T)


def likeliest(logits: Float[Tensor, "*batch words"], config: WordsConfig) -> Int[Tensor, "*batch"]:
    """Return the word with the largest logit; padding and start are never chosen."""
    never = torch.tensor([config.pad, config.start], device=logits.device)
    return logits.index_fill(-1, never, -torch.inf).argmax(dim=-1)  # (.., W) -> (..)
