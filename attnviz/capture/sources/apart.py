"""Attention that a model computes apart from any interface, as an eye on torch's functions sees it."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from attnviz.attention import SOFTMAX
from attnviz.capture.observers import Block, Observer
from attnviz.capture.stream import ForwardPass, KeepVectors, LastRows, Layer, LayerObserver
from attnviz.errors import NoAttentionError


class LooksAhead(Observer):
    """Whether any query looks at a later key, which nothing but the weights says of such models."""

    found = False

    def observe(self, block: Block) -> None:
        """A block of rows has been computed."""
        self.found = self.found or bool(block.weights.triu(block.first_row + 1).any())


class Apart:
    """Shows a run the attention of all tokens on all tokens that a model computes by itself.

    Where it `splits` what a model put together as (batch x head, query, key), the heads of a sentence stand together.
    Of a text that is read anew, the run is shown the rows of its new tokens alone.
    """

    def __init__(self, run: ForwardPass, name: str, *, splits: bool = False, anew: bool = False) -> None:
        self._run, self._name, self._anew = run, name, anew
        self._splits = splits or len(run.batch.real) == 1

    def fused(self, layer: Layer, *, cross: bool | None, dropped: bool) -> None:  # noqa: ARG002 - a model that only reads drops nothing
        """A call of the fused function."""
        self._expect((*layer.query.shape[:3], layer.key.shape[2]))
        self._run.native = self._run.native.replace(SOFTMAX, "sdpa")
        run = LastRows(self._run, self._run.batch.real.shape[1]) if self._anew else self._run
        run.layer(layer)

    def own(self, weights: Float[Tensor, "batch head query key"], *, cross: bool | None, dropped: bool) -> None:  # noqa: ARG002 - likewise
        """Weights of the model's own."""
        needed = [one for one in self._run.observers if not isinstance(one, KeepVectors)]  # a record goes without
        if any(isinstance(one, LayerObserver) for one in needed):
            raise NoAttentionError(
                f"{self._name} computes its attention by itself: its weights can be shown, its queries and keys cannot"
            )
        if self._splits and weights.shape[1] == 1 and weights.shape[0] % len(self._run.batch.real) == 0:
            weights = weights.reshape(len(self._run.batch.real), -1, *weights.shape[2:])
        self._expect(tuple(weights.shape))
        self._run.own(weights[:, :, -self._run.batch.real.shape[1] :])

    def _expect(self, shape: tuple[int, ...]) -> None:
        """Refuse what is no attention of all tokens on all tokens."""
        batch = self._run.batch
        n_batch, n_rows = batch.real.shape
        n_keys = n_rows if batch.real_keys is None else batch.real_keys.shape[1]
        n_rows = n_keys if self._anew else n_rows
        if (shape[0], *shape[2:]) != (n_batch, n_rows, n_keys):
            raise NoAttentionError(
                f"{self._name} has no weights of all tokens on all tokens: a softmax that it multiplies by values has "
                f"the shape {shape}"
            )
