"""Where a word stands, as a vector that is added to the word's own.

Attention by itself sees a set of words, not a sequence: shuffle the words, and each gets the vector it had.

References:
    Vaswani et al. 2017, "Attention Is All You Need", section 3.5: https://arxiv.org/abs/1706.03762
    Devlin et al. 2019, "BERT", section 3: https://arxiv.org/abs/1810.04805
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnviz.errors import TooLongError


# PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos(the same)
def sinusoidal_positions(n: int, d_model: int) -> Float[Tensor, "position d_model"]:
    """The first n positions as waves of ever lower frequency: shape [position, d_model].

    Source: Vaswani et al. 2017, section 3.5.
    """
    # In double precision: at position 10,000 single precision has no good sine left.
    position = torch.arange(n, dtype=torch.float64)
    two_i = torch.arange(0, d_model, 2, dtype=torch.float64)
    angle = position[:, None] / 10_000 ** (two_i / d_model)  # (n, 1) / (D / 2) -> (n, D / 2)
    table = torch.empty(n, d_model)
    table[:, 0::2] = angle.sin()
    table[:, 1::2] = angle[:, : d_model // 2].cos()  # an odd d_model ends with a sine
    return table


class LearnedPositions(nn.Module):
    """One vector for each position, learned as the words' vectors are; BERT's way.

    Args:
        n_positions: how many there are, and so how long a sequence may be.
        d_model: the width of the words' vectors.

    Source: Devlin et al. 2019, section 3.
    """

    def __init__(self, n_positions: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Parameter(0.02 * torch.randn(n_positions, d_model))  # 0.02 is BERT's choice

    def forward(self, n: int) -> Float[Tensor, "position d_model"]:
        """The first n positions: shape [position, d_model].

        Raises:
            TooLongError: there are fewer.
        """
        if n > len(self.table):
            raise TooLongError(
                f"too many tokens for the positions learned: expected at most {len(self.table)}, got {n}"
            )
        return self.table[:n]
