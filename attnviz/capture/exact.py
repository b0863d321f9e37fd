"""What stays exact of rows that are pooled: the strongest links of each query, and statistics of each head."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float32, Int64
from torch import Tensor

from attnviz.attention import NEIGHBOURS

LINKS = 8
"""Links that are kept of a row, at most."""

GROUP = 64
"""Keys among which the largest weight is looked for first."""

ROWS = 64
"""Rows that are looked at together: as many as caches hold of a head."""


class ExactRows:
    """Some links of each row of a layer of a sentence, and these `STATISTICS`, as these rows and keys stream by."""

    def __init__(
        self, n_heads: int, rows: tuple[int, int], keys: tuple[int, int], n_links: int, statistics: tuple[str, ...]
    ) -> None:
        self._rows, self._keys = rows, keys
        n_links = min(n_links, keys[1] - keys[0])
        self.link_keys = torch.zeros(n_heads, rows[1] - rows[0], n_links, dtype=torch.int32)
        self.link_weights = torch.zeros(self.link_keys.shape)
        self._sums = {name: torch.zeros(n_heads, dtype=torch.float64) for name in statistics}

    def add(self, first: int, own: Float32[Tensor, "head row key"]) -> None:
        """Look at rows from the number `first` on: their weights on the first of the keys; on all others they are 0."""
        n_links = min(self.link_keys.shape[2], own.shape[2])
        spare = torch.empty_like(own[0, :ROWS])  # to take new memory for each head costs more than to compute
        for start in range(0, own.shape[1], ROWS):
            rows = own[:, start : start + ROWS]
            number, n_rows = first + start, rows.shape[1]
            at = slice(number - self._rows[0], number - self._rows[0] + n_rows)
            weights, keys = strongest(rows, n_links)
            self.link_weights[:, at, :n_links] = weights.cpu()
            self.link_keys[:, at, :n_links] = keys.int().cpu()
            for name in self._sums:
                values = self._statistic(name, number, rows, spare[:n_rows])
                self._sums[name] += values.sum(dim=1, dtype=torch.float64).cpu()

    def _statistic(
        self, name: str, first: int, rows: Float32[Tensor, "head row key"], spare: Float32[Tensor, "row key"]
    ) -> Float32[Tensor, "head row"]:
        """Of each row its entropy, how far its keys are, or what falls on the key that a statistic is about."""
        if name == "entropy":
            bits = [-torch.log2(head, out=spare).mul_(head).nansum(dim=1) for head in rows]  # NaN where a weight is 0
            return torch.stack(bits) * math.log(2)
        if name == "first":
            return rows[..., 0]
        queries = torch.arange(first, first + rows.shape[1], device=rows.device)[:, None] - self._keys[0]
        if name == "distance":
            away = (torch.arange(rows.shape[2], device=rows.device) - queries).abs_().float()
            return torch.stack([torch.mul(head, away, out=spare).sum(dim=1) for head in rows])
        key = queries + NEIGHBOURS[name]
        weights = rows.gather(2, key.clamp(0, rows.shape[2] - 1).expand(*rows.shape[:2], 1))[..., 0]
        return weights.where((key[:, 0] >= 0) & (key[:, 0] < rows.shape[2]), 0.0)

    def cut(self, n_links: int) -> None:
        """Keep fewer links of each row."""
        self.link_keys, self.link_weights = (one[..., :n_links].clone() for one in (self.link_keys, self.link_weights))

    def statistics(self) -> dict[str, list[float]]:
        """Of each head the mean over the rows."""
        n_rows = self._rows[1] - self._rows[0]
        return {name: (total / n_rows).tolist() for name, total in self._sums.items()}


def strongest(
    weights: Float32[Tensor, "head row key"], n: int
) -> tuple[Float32[Tensor, "head row link"], Int64[Tensor, "head row link"]]:
    """The largest weights of each row, from the largest, and the numbers of their keys.

    They are all in the groups of keys whose largest weights are largest, so that few keys need be sorted.
    """
    n_heads, n_rows, n_keys = weights.shape
    n_groups = n_keys // GROUP
    if n_groups <= n:
        best = weights.topk(n, dim=2)
        return best.values, best.indices
    whole = weights[..., : n_groups * GROUP].reshape(n_heads, n_rows, n_groups, GROUP)
    groups = whole.amax(dim=3).topk(n, dim=2, sorted=False).indices  # (H, R, n)
    some = whole.gather(2, groups[..., None].expand(-1, -1, -1, GROUP)).flatten(2)
    rest = weights[..., n_groups * GROUP :]
    best = (torch.cat([some, rest], dim=2) if rest.shape[2] else some).topk(n, dim=2)
    group, place = best.indices // GROUP, best.indices % GROUP
    keys = groups.gather(2, group.clamp_max(n - 1)) * GROUP + place
    return best.values, keys.where(group < n, best.indices + (n_groups - n) * GROUP)
