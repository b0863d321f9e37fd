"""Take out of each layer's output what chosen edges of attention carry to it, while the model runs.

An edge (layer, head, query, key) carries the key's value vector times its weight. A cut run goes on with the context
vectors without them; all other weights stay as they are, and nothing is normalised again. All variants of a text run as
one batch, each without other edges.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnviz.capture.observers import Batch, Block
from attnviz.capture.stream import Layer, for_each_head


class Cutter:
    """An observer that takes edges out of the output of each layer.

    Args:
        rows: the queries of which edges are cut.
        edges: layer, variant, head, place of the query among these rows, and key of each edge; layers are counted in
            the order in which they run.
        shares: what share of each edge is cut.
    """

    def __init__(
        self,
        rows: Int[Tensor, " row"],
        edges: Int[Tensor, "5 edge"],
        shares: Float[Tensor, " edge"],
    ) -> None:
        self._rows, self._edges, self._shares = rows, edges, shares

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
        of_layer, _, head, *_others = self._edges
        is_here = (of_layer == self._layer) & (head < n_heads)
        cut = torch.zeros(n_batch, n_heads, len(self._rows), layer.key.shape[2])
        cut[tuple(self._edges[1:, is_here])] = self._shares[is_here]
        self._cut = cut.to(self._values) if is_here.any() else None

    def observe(self, block: Block) -> None:
        """Add up what the edges carry that are cut from these rows."""
        weights = block.seen.to(self._values.dtype)
        n_rows, n_keys = weights.shape[2:]
        is_here = (self._rows >= block.first_row) & (self._rows < block.first_row + n_rows)
        if self._cut is None or not is_here.any():
            return
        rows = self._rows[is_here].to(weights.device)
        cut = weights[:, :, rows - block.first_row] * self._cut[:, :, is_here, :n_keys]
        self._carried[:, :, rows] += cut @ self._values[:, :, :n_keys]

    def edit(
        self, output: Float[Tensor, "batch query head d_v"]
    ) -> Float[Tensor, "batch query head d_v"]:
        """Return the output of the layer without what the cut edges carried."""
        return output - self._carried.transpose(1, 2)
