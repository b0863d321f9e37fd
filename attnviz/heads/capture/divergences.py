"""Similarity of heads: the Jensen-Shannon divergence of their rows, for all pairs of heads or between two models.

The divergence of two rows p and q, in nats (Lin 1991; Clark et al. 2019, section 6)::

    JSD(p, q) = H((p + q) / 2) - (H(p) + H(q)) / 2        where H(p) = - sum over keys of p ln p

It is 0 for equal rows and ln 2 for rows that share no key. The divergence of two heads is the mean over all counted
rows of all sentences: each row has the same weight, like each token in Clark et al. Only sums are kept, so that parts
of a corpus can be merged. If a row sums to less than 1 (a head with a sink), the formula is used unchanged: it is
still 0 only for equal rows, and at most ln 2 times the mean of the two sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor

from attnviz.heads.similarity import Divergences

_NUMBERS = 32_000  # number of weights per block: blocks of this size fit into the cache of a core
# Added to each weight to avoid the logarithm of 0; it is so small that x ln x of it is 0 in all digits.
_TINY = 1e-30


def divergences(
    weights: Float[Tensor, "batch head row key"], counted: Bool[Tensor, "batch row"]
) -> Divergences:
    """Return the divergences between all pairs of heads, summed over the rows of a batch.

    With s = p + q, the divergence needs only sums of x ln x, whatever the rows sum to::

        JSD(p, q) = (T(p, p) + T(q, q)) / 4 - T(p, q) / 2        where T(p, q) = sum of s ln s

    The heads of all layers are in one list. T is computed for one distance in this list at a time: all heads together
    with the heads that many places further on. A key that no head attends to (padding, or a masked key) adds nothing
    and is left out first; padded rows do not count. Sums are float64; the terms are float32 (float64 if the weights
    are), which is exact to about 1e-7 per row.
    """
    n_heads = weights.shape[1]
    n_distances = n_heads // 2 + 1
    sums = torch.zeros(n_distances, n_heads, dtype=torch.float64, device=weights.device)
    with _one_thread():
        for cells in _blocks(weights, counted):
            pair, product = torch.empty_like(cells[:n_heads]), torch.empty_like(cells[:n_heads])
            part = torch.empty(n_distances, n_heads, dtype=cells.dtype, device=cells.device)
            for distance in range(n_distances):
                torch.add(cells[:n_heads], cells[distance : distance + n_heads], out=pair)
                torch.log(pair, out=product)
                torch.sum(product.mul_(pair), -1, out=part[distance])
            sums += part
    head = np.arange(n_heads)
    pair_sums = np.empty((n_heads, n_heads))
    for distance, values in enumerate(sums.cpu().numpy()):
        other = (head + distance) % n_heads
        pair_sums[head, other] = pair_sums[other, head] = values
    diagonal = pair_sums.diagonal()
    # Rounding can make the divergence of equal heads slightly negative.
    total = np.maximum((diagonal[:, None] + diagonal) / 4 - pair_sums / 2, 0)
    return Divergences(total=total, n_rows=int(counted.sum()))


@contextmanager
def _one_thread() -> Iterator[None]:
    """Run torch on one thread: for 100,000 small operations, synchronising threads costs more than it saves."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _blocks(weights: Tensor, counted: Tensor) -> Iterator[Tensor]:
    """Yield the cells of the counted rows in blocks of shape [heads + heads / 2, cells].

    The first half of the heads is repeated at the end, so that a slice gives each head's partner at any distance.
    """
    is_used = (weights.amax(1) != 0) & counted[:, :, None]
    batch, row, key = is_used.nonzero(as_tuple=True)
    n_heads, n_cells = weights.shape[1], len(batch)
    width = min(max(1, _NUMBERS // n_heads), n_cells)
    dtype = torch.promote_types(weights.dtype, torch.float32)
    block = torch.empty(n_heads + n_heads // 2, width, dtype=dtype, device=weights.device)
    for start in range(0, n_cells, width or 1):
        columns = slice(start, start + width)
        cells = weights[batch[columns], :, row[columns], key[columns]]
        block[:n_heads, : len(cells)] = cells.T
        block[:n_heads, len(cells) :] = 0
        block[:n_heads] += _TINY
        block[n_heads:] = block[: n_heads // 2]
        yield block


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
