"""Take out of each layer's output what chosen edges of attention carry to it, while the model runs.

An edge (layer, head, query, key) carries the key's value vector times its weight. A cut run goes on with the context
vectors without them; all other weights stay as they are, and nothing is normalised again. All variants of a text run as
one batch, each without other edges.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnviz.capture.observers import Batch, Block
from attnviz.capture.stream import Layer, for_each_head


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """The edges that each variant of a batch is without; layers are counted in the order in which they run."""

    # The queries of which single edges are cut; each edge as layer, variant, head, place of the query among these rows,
    # and key; and what share of it is cut.
    rows: Int[Tensor, " row"]
    edges: Int[Tensor, "5 edge"]
    shares: Float[Tensor, " edge"]
    # The keys that are cut from all queries, but from a token's own query where queries and keys are the same tokens.
    columns: Bool[Tensor, "variant layer key"]
    # Whether queries and keys of a layer are the same tokens.
    is_self: Bool[Tensor, " layer"]


class Cutter:
    """An observer that takes edges out of the output of each layer."""

    def __init__(self, cuts: Cuts) -> None:
        self._cuts = cuts

    def begin(self, batch: Batch) -> None:
        """Begin with the first layer."""
        del batch
        self._layer = -1

    def observe_layer(self, layer: Layer) -> None:
        """Keep the values of a layer, of which its blocks take some out."""
        self._layer += 1
        n_batch, n_heads, n_queries, _ = layer.query.shape
        self._values = for_each_head(layer.value, n_heads)
        self._carried = self._values.new_zeros(n_batch, n_heads, n_queries, self._values.shape[-1])
        cuts = self._cuts
        is_here = (cuts.edges[0] == self._layer) & (cuts.edges[2] < n_heads)
        shares = torch.zeros(n_batch, n_heads, len(cuts.rows), layer.key.shape[2])
        shares[tuple(cuts.edges[1:, is_here])] = cuts.shares[is_here]
        self._shares = shares.to(self._values) if is_here.any() else None

    def observe(self, block: Block) -> None:
        """Add up what the edges carry that are cut from these rows."""
        weights, cuts, layer = block.seen.to(self._values.dtype), self._cuts, self._layer
        n_rows, n_keys = weights.shape[2:]
        values = self._values[:, :, :n_keys]
        device = values.device
        rows = torch.arange(block.first_row, block.first_row + n_rows, device=device)
        columns = cuts.columns[:, layer, :n_keys].to(device)
        if columns.any():
            is_cut = columns[:, None, None].expand(-1, 1, n_rows, -1)
            if cuts.is_self[layer]:
                is_cut = is_cut & (rows[:, None] != torch.arange(n_keys, device=device))
            self._carried[:, :, rows] += weights.masked_fill(~is_cut, 0.0) @ values
        is_here = (cuts.rows >= block.first_row) & (cuts.rows < block.first_row + n_rows)
        if self._shares is not None and is_here.any():
            here = cuts.rows[is_here].to(device)
            cut = weights[:, :, here - block.first_row] * self._shares[:, :, is_here, :n_keys]
            self._carried[:, :, here] += cut @ values

    def edit(
        self, output: Float[Tensor, "batch query head d_v"]
    ) -> Float[Tensor, "batch query head d_v"]:
        """Return the output of the layer without what the cut edges carried."""
        return output - self._carried.transpose(1, 2)
