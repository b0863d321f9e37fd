"""Similarity of heads: the Jensen-Shannon divergence of their rows, for all pairs of a model's heads or for two models.

The divergence of two rows p and q, in nats (Lin 1991; Clark et al. 2019, section 6)::

    JSD(p, q) = H((p + q) / 2) - (H(p) + H(q)) / 2        where H(p) = - sum over keys of p ln p

It is 0 for equal rows and ln 2 for rows that share no key. Two heads differ by the mean over all rows that count, of
all sentences: each row weighs the same, as each token does in Clark et al. Only sums are kept, so that parts of a
corpus merge. Where a row sums to less than 1 (a head with a sink) the formula is used as it is: still 0 only for equal
rows, and at most ln 2 times the mean of the two sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor

from attnviz.heads.similarity import Divergences

_NUMBERS = 32_000  # how many weights are taken at once: blocks of this size stay in a core's cache
# added to each weight, so that its logarithm exists; x ln x of it is 0 in every digit
_TINY = 1e-30


def divergences(
    weights: Float[Tensor, "batch head row key"], counted: Bool[Tensor, "batch row"]
) -> Divergences:
    """The divergences between all pairs of heads, summed over the rows of a batch.

    With s = p + q, the divergence is a sum of x ln x alone, whatever the rows sum to::

        JSD(p, q) = (T(p, p) + T(q, q)) / 4 - T(p, q) / 2        where T(p, q) = sum of s ln s

    T is computed for one distance in the list of heads at a time: all heads, and all heads that many places further
    on. A key that no head looks at (padding, what a mask hides) adds nothing, and is left out first. The heads are
    those of all layers; padded rows do not count, whatever stands in them. Sums are float64; the terms are float32
    (float64 where the weights are), which is exact to about 1e-7 a row.
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
    crossed = np.empty((n_heads, n_heads))
    for distance, values in enumerate(sums.cpu().numpy()):
        other = (head + distance) % n_heads
        crossed[head, other] = crossed[other, head] = values
    own = crossed.diagonal()
    # What rounding leaves of equal heads may lie below 0.
    total = np.maximum((own[:, None] + own) / 4 - crossed / 2, 0)
    return Divergences(total=total, n_rows=int(counted.sum()))


@contextmanager
def _one_thread() -> Iterator[None]:
    """Torch on one thread while this lasts: 100,000 operations cost less than threads that meet after each."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _blocks(weights: Tensor, counted: Tensor) -> Iterator[Tensor]:
    """The cells of the rows that count, [heads, cells], a block at a time; the first half of the heads again below."""
    kept = (weights.amax(1) != 0) & counted[:, :, None]
    batch, row, key = kept.nonzero(as_tuple=True)
    n_heads, n_cells = weights.shape[1], len(batch)
    width = min(max(1, _NUMBERS // n_heads), n_cells)
    dtype = torch.promote_types(weights.dtype, torch.float32)
    block = torch.empty(n_heads + n_heads // 2, width, dtype=dtype, device=weights.device)
    for start in range(0, n_cells, width or 1):
        here = slice(start, start + width)
        found = weights[batch[here], :, row[here], key[here]]
        block[:n_heads, : len(found)] = found.T
        block[:n_heads, len(found) :] = 0
        block[:n_heads] += _TINY
        block[n_heads:] = block[: n_heads // 2]
        yield block


def divergence_between(
    one: Float[Tensor, "batch head row key"],
    other: Float[Tensor, "batch head row key"],
    counted: Bool[Tensor, "batch row"],
) -> Float64[np.ndarray, "batch head"]:
    """Return the divergence of each head of one model from the same head of another, by the rows that count.

    Sums in nats: divided by the sentence's number of rows they are means, from 0 to ln 2.
    """
    found = np.zeros((one.shape[0], one.shape[1]))
    for number, rows in enumerate(counted):
        p, q = one[number][:, rows], other[number][:, rows]
        dtype = torch.promote_types(torch.promote_types(p.dtype, q.dtype), torch.float32)
        p, q = p.to(dtype) + _TINY, q.to(dtype) + _TINY
        apart = (_mixed_entropy(p, p) + _mixed_entropy(q, q)) / 4 - _mixed_entropy(p, q) / 2
        found[number] = apart.clamp_(min=0).sum((1, 2), dtype=torch.float64).cpu().numpy()
    return found


def _mixed_entropy(p: Tensor, q: Tensor) -> Tensor:
    both = p + q
    return both.log().mul_(both)
