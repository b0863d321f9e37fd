"""Four ways to score how well a query fits a key; attention is the same with each.

References:
    Luong et al. 2015, "Effective Approaches to Attention-based Neural Machine Translation", section 3.1:
        https://arxiv.org/abs/1508.04025
    Bahdanau et al. 2015, "Neural Machine Translation by Jointly Learning to Align and Translate", appendix A.1.2:
        https://arxiv.org/abs/1409.0473
    Vaswani et al. 2017, "Attention Is All You Need", section 3.2.1: https://arxiv.org/abs/1706.03762

The trails of shapes use Q queries, K keys, d their width (d_k) and A the width in which ``additive`` adds them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnviz.models.attention import attention_scores
from attnviz.models.config import ScoreName

ScoreFunction: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""(query [..., query, d_k], key [..., key, d_k]) -> scores [..., query, key], before the softmax."""


# score(q, k) = q . k
def dot(
    query: Float[Tensor, "*batch query d_k"], key: Float[Tensor, "*batch key d_k"]
) -> Float[Tensor, "*batch query key"]:
    """Return the dot products of queries and keys: shape [..., query, key].

    Source: Luong et al. 2015, equation 8, "dot".
    """
    scores: Tensor = query @ key.transpose(-2, -1)  # (.., Q, d) x (.., d, K) -> (.., Q, K)
    return scores


# score(q, k) = q . k / sqrt(d_k)
scaled_dot = attention_scores


# score(q, k) = q . W k
def general(
    query: Float[Tensor, "*batch query d_q"],
    key: Float[Tensor, "*batch key d_k"],
    weight: Float[Tensor, "d_q d_k"],
) -> Float[Tensor, "*batch query key"]:
    """Return dot products after a learned projection, so query and key may differ in width: shape [..., query, key].

    Source: Luong et al. 2015, equation 8, "general".
    """
    # (.., Q, d) x (d, d) x (.., d, K) -> (.., Q, K)
    scores: Tensor = query @ weight @ key.transpose(-2, -1)
    return scores


# score(q, k) = v . tanh(W q + U k)
def additive(
    query: Float[Tensor, "*batch query d_q"],
    key: Float[Tensor, "*batch key d_k"],
    query_weight: Float[Tensor, "d_a d_q"],
    key_weight: Float[Tensor, "d_a d_k"],
    direction: Float[Tensor, " d_a"],
) -> Float[Tensor, "*batch query key"]:
    """Return the scores of a small network that reads the sum of query and key: shape [..., query, key].

    Source: Bahdanau et al. 2015, appendix A.1.2.
    """
    projected_query = query @ query_weight.T  # (.., Q, d) x (d, A) -> (.., Q, A)
    projected_key = key @ key_weight.T  # (.., K, d) x (d, A) -> (.., K, A)
    # -> (.., Q, K, A)
    together = torch.tanh(projected_query.unsqueeze(-2) + projected_key.unsqueeze(-3))
    scores: Tensor = together @ direction  # (.., Q, K, A) x (A) -> (.., Q, K)
    return scores


class General(nn.Module):
    """``general`` with the projection that it learns."""

    def __init__(self, d_k: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(d_k, d_k)))  # W

    def forward(
        self, query: Float[Tensor, "*batch query d_k"], key: Float[Tensor, "*batch key d_k"]
    ) -> Float[Tensor, "*batch query key"]:
        """Return the scores [..., query, key]."""
        return general(query, key, self.weight)


class Additive(nn.Module):
    """``additive`` with the projections and the direction that it learns."""

    def __init__(self, d_k: int) -> None:
        super().__init__()
        self.query_weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(d_k, d_k)))  # W
        self.key_weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(d_k, d_k)))  # U
        self.direction = nn.Parameter(nn.init.normal_(torch.empty(d_k), std=d_k**-0.5))  # v

    def forward(
        self, query: Float[Tensor, "*batch query d_k"], key: Float[Tensor, "*batch key d_k"]
    ) -> Float[Tensor, "*batch query key"]:
        """Return the scores [..., query, key]."""
        return additive(query, key, self.query_weight, self.key_weight, self.direction)


SCORES: Mapping[ScoreName, Callable[[int], ScoreFunction]] = {
    "dot": lambda _: dot,
    "scaled_dot": lambda _: scaled_dot,
    "general": General,
    "additive": Additive,
}
"""By name, a function from the width d_k of queries and keys to the score function; a module if it learns something."""
