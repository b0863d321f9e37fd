"""The Jensen-Shannon divergence between the rows of a head in two models.

The divergence of two rows p and q, in nats (Lin 1991; Clark et al. 2019, section 6)::

    JSD(p, q) = H((p + q) / 2) - (H(p) + H(q)) / 2        where H(p) = - sum over keys of p ln p

It is 0 for equal rows and ln 2 for rows that share no key. With s = p + q it needs only sums of s ln s, whatever the
rows sum to: JSD(p, q) = (T(p, p) + T(q, q)) / 4 - T(p, q) / 2, where T(p, q) = sum of s ln s. If a row sums to less
than 1 (a head with a sink), it is still 0 only for equal rows, and at most ln 2 times the mean of the two sums.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor

# Added to each weight to avoid the logarithm of 0; it is so small that x ln x of it is 0 in all digits.
_TINY = 1e-30


def divergence_between(
    one: Float[Tensor, "batch head row key"],
    other: Float[Tensor, "batch head row key"],
    counted: Bool[Tensor, "batch row"],
) -> Float64[np.ndarray, "batch head"]:
    """Return the divergence between each head of one model and the same head of another, summed over counted rows.

    In nats; divided by the number of rows of the sentence, it is a mean from 0 to ln 2.
    """
    sums = np.zeros((one.shape[0], one.shape[1]))
    for sentence, rows in enumerate(counted):
        p, q = one[sentence][:, rows], other[sentence][:, rows]
        dtype = torch.promote_types(torch.promote_types(p.dtype, q.dtype), torch.float32)
        p, q = p.to(dtype) + _TINY, q.to(dtype) + _TINY
        divergence = (_mixed_entropy(p, p) + _mixed_entropy(q, q)) / 4 - _mixed_entropy(p, q) / 2
        sums[sentence] = divergence.clamp_(min=0).sum((1, 2), dtype=torch.float64).cpu().numpy()
    return sums


def _mixed_entropy(p: Tensor, q: Tensor) -> Tensor:
    """Return s ln s with s = p + q, for each cell."""
    both = p + q
    return both.log().mul_(both)
