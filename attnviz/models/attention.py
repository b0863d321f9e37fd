"""Attention: the formula first, then one head, then many side by side, then their projections as one.

References:
    Vaswani et al. 2017, "Attention Is All You Need", section 3.2: https://arxiv.org/abs/1706.03762
    Rush 2018, "The Annotated Transformer": https://nlp.seas.harvard.edu/annotated-transformer/
    Radford et al. 2019, GPT-2, whose `c_attn` is one projection for all three: https://github.com/openai/gpt-2

Everywhere: rows are queries, columns are keys, and True in a mask means "may look"; a number of heads
that does not divide the width, and a mask that leaves a query no key to look at are refused (ModelError).
The trails of shapes use B batch, H heads, Q queries, K keys, d the width of a head (d_k) and D the width of the model
(d_model).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attnviz.errors import ModelError
from attnviz.models.config import expect_sizes

AttendFunction: TypeAlias = Callable[
    [Tensor, Tensor, Tensor, Tensor | None], tuple[Tensor, Tensor | None]
]
"""A function between the projections of every layer: (query, key, value, mask) -> (context, weights).

Query and context are [batch, head, query, d_k], key and value [batch, head, key, d_k], the weights
[batch, head, query, key]; the mask is [batch, 1, query, key], already checked, or None. The weights may be
None too: whoever streams them, a block of rows at a time, never holds them all.
"""


def causal_mask(n: int, device: torch.device | None = None) -> Bool[Tensor, "query key"]:
    """Return the causal mask: each token may attend to itself and to earlier ones; shape [query, key], both n long.

    Source: Vaswani et al. 2017, section 3.2.3.
    """
    return torch.ones(n, n, dtype=torch.bool, device=device).tril()


# scores = Q K^T / sqrt(d_k)
def attention_scores(
    query: Float[Tensor, "*batch query d_k"], key: Float[Tensor, "*batch key d_k"]
) -> Float[Tensor, "*batch query key"]:
    """Return how well each query matches each key, before the softmax: shape [..., query, key].

    The dot product of two vectors of d_k independent numbers of variance 1 has variance d_k; divided by
    sqrt(d_k) it has 1, so the softmax stays where its gradient is not tiny.

    Source: Vaswani et al. 2017, equation 1 and footnote 4.
    """
    d_k = query.shape[-1]
    # (.., Q, d) x (.., d, K) -> (.., Q, K)
    scores: Tensor = query @ key.transpose(-2, -1) / d_k**0.5
    return scores


# Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V
def scaled_dot_product_attention(
    query: Float[Tensor, "*batch query d_k"],
    key: Float[Tensor, "*batch key d_k"],
    value: Float[Tensor, "*batch key d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> tuple[Float[Tensor, "*batch query d_v"], Float[Tensor, "*batch query key"]]:
    """Return the context [..., query, d_v] and the weights [..., query, key], whose rows each sum to 1.

    Source: Vaswani et al. 2017, equation 1.
    """
    scores = attention_scores(query, key)  # (.., Q, K)
    if mask is not None:
        # Minus infinity, not a large negative number: real scores of -110,208 have been seen.
        scores = scores.masked_fill(~full_mask(mask, scores.shape), -torch.inf)
    weights = scores.softmax(dim=-1)
    return weights @ value, weights  # (.., Q, K) x (.., K, d_v) -> (.., Q, d_v)


def full_mask(mask: Tensor, shape: Sequence[int]) -> Tensor:
    """Return the mask in this shape [..., query, key]. Raises ModelError: it does not fit, or leaves a query no key."""
    if mask.dtype != torch.bool:
        raise ModelError(
            f"a mask says True where a query may look: expected torch.bool, got {mask.dtype}"
        )
    try:
        full = mask.expand(*shape)
    except RuntimeError:
        raise ModelError(
            f"mask has the wrong shape: expected {tuple(shape)} or 1 for a size, got {tuple(mask.shape)}"
        ) from None
    if not mask.any(dim=-1).all():
        query = int((~full.any(dim=-1)).nonzero()[0, -1])
        raise ModelError(
            f"mask leaves a query nothing to look at: expected at least 1 key, got 0 (row {query})"
        )
    return full


class SelfAttention(nn.Module):
    """One head: three projections of the same sequence, d_k wide, and the formula.

    Source: Vaswani et al. 2017, section 3.2.1.
    """

    def __init__(self, d_model: int, d_k: int) -> None:
        super().__init__()
        self.query_projection = nn.Linear(d_model, d_k)
        self.key_projection = nn.Linear(d_model, d_k)
        self.value_projection = nn.Linear(d_model, d_k)

    def forward(
        self,
        x: Float[Tensor, "batch tokens d_model"],
        mask: Bool[Tensor, "*#batch #tokens #tokens"] | None = None,
        *,
        attend: AttendFunction = scaled_dot_product_attention,
    ) -> tuple[Float[Tensor, "batch tokens d_k"], Float[Tensor, "batch tokens tokens"] | None]:
        """Return the context [batch, query, d_k] and the weights [batch, query, key]."""
        query = self.query_projection(x)[:, None]  # (B, T, D) -> (B, 1, T, d): one head
        key = self.key_projection(x)[:, None]
        value = self.value_projection(x)[:, None]
        # (B, 1, T, d), (B, 1, T, T)
        context, weights = attend(query, key, value, _for_all_heads(mask, x, x))
        return context[:, 0], None if weights is None else weights[:, 0]


# MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O, where head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V)
class MultiHeadAttention(nn.Module):
    """Many heads side by side, each d_model / n_heads wide, concatenated and projected by W^O.

    Source: Vaswani et al. 2017, section 3.2.2.
    """

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        expect_sizes(d_model=d_model)
        if n_heads < 1 or d_model % n_heads:
            raise ModelError(
                f"n_heads must divide d_model: expected a divisor of {d_model}, got {n_heads} heads"
            )
        self.n_heads, self.d_k = n_heads, d_model // n_heads
        self.query_projection = nn.Linear(d_model, d_model)  # W_1^Q .. W_h^Q, stacked
        self.key_projection = nn.Linear(d_model, d_model)
        self.value_projection = nn.Linear(d_model, d_model)
        self.output_projection = nn.Linear(d_model, d_model)  # W^O

    def forward(
        self,
        x: Float[Tensor, "batch query d_model"],
        mask: Bool[Tensor, "*#batch #query #key"] | None = None,
        *,
        memory: Float[Tensor, "batch key d_model"] | None = None,
        attend: AttendFunction = scaled_dot_product_attention,
    ) -> tuple[Float[Tensor, "batch query d_model"], Float[Tensor, "batch head query key"] | None]:
        """Return the output [batch, query, d_model] and the weights [batch, head, query, key].

        Queries come from x; keys and values from memory (cross attention), or from x too where there is none.
        """
        memory = x if memory is None else memory
        query = self._heads(self.query_projection(x))  # (B, Q, D) -> (B, H, Q, d)
        key = self._heads(self.key_projection(memory))  # (B, K, D) -> (B, H, K, d)
        value = self._heads(self.value_projection(memory))  # (B, K, D) -> (B, H, K, d)
        mask = _for_all_heads(mask, x, memory)  # (B, 1, Q, K)
        context, weights = attend(query, key, value, mask)  # (B, H, Q, d) and (B, H, Q, K)
        concatenated = context.transpose(1, 2).flatten(start_dim=2)  # (B, H, Q, d) -> (B, Q, H * d)
        return self.output_projection(concatenated), weights  # (B, Q, D) and (B, H, Q, K)

    def _heads(self, x: Tensor) -> Tensor:
        """Split the width of the model into heads."""
        batch, tokens, _ = x.shape
        # (B, T, H * d) -> (B, H, T, d)
        return x.view(batch, tokens, self.n_heads, self.d_k).transpose(1, 2)


def _for_all_heads(mask: Tensor | None, x: Tensor, memory: Tensor) -> Tensor | None:
    """Return the full mask with an axis for the heads: (Q, K) or (B, Q, K) -> (B, 1, Q, K)."""
    if mask is None:
        return None
    shape = len(x), x.shape[1], memory.shape[1]
    return full_mask(mask, shape)[:, None]


# x [W^Q W^K W^V] = [x W^Q, x W^K, x W^V]
def fuse(
    query_projection: nn.Linear, key_projection: nn.Linear, value_projection: nn.Linear
) -> nn.Linear:
    """Return one projection from d_model to 3 h d_k that computes query, key and value in one multiplication."""
    states = [p.state_dict() for p in (query_projection, key_projection, value_projection)]
    weights = {name: torch.cat([state[name] for state in states]) for name in states[0]}
    d_out, d_in = weights["weight"].shape
    # On the device without data, where no random numbers are drawn only to be overwritten.
    fused = nn.Linear(d_in, d_out, bias="bias" in weights, device="meta")
    fused.load_state_dict(weights, assign=True)
    return fused
