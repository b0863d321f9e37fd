"""Run variants of a text through a model, each without some edges of attention or with a hidden word."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnviz.capture.cuts import Cutter
from attnviz.capture.observers import Batch, Block
from attnviz.capture.projections import ProjectionCollector
from attnviz.capture.sources import Source
from attnviz.capture.stream import Layer, for_each_head
from attnviz.capture.targets import Target
from attnviz.errors import ModelError, TooLongError

# The names of the input that holds the ids of the text; each kind of model uses one of them.
READ = ("input_ids", "words", "source")
MOST_VARIANTS = 15  # that run as one batch
MOST_WEIGHTS = 2**28  # of all layers
MOST_NUMBERS = 2**25  # weights of a layer, or logits, of one batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A run without some edges, or with one hidden token."""

    # Places among the weights [layer, head, row, key] of `Study.weights`, or of `Study.all_weights`, counted through.
    edges: Int[Tensor, " edge"] | None = None
    part: float = 1.0  # what share of the last of these edges is cut
    hidden: int | None = None  # a token in the place of which the model reads a mask


class _Base:
    """The observer of the run without cuts: it keeps all weights and values."""

    def begin(self, batch: Batch) -> None:
        """Begin without layers."""
        del batch
        self.layers: list[Layer] = []
        self.weights: list[Float[Tensor, "head query key"]] = []

    def observe_layer(self, layer: Layer) -> None:
        """Keep a layer. Raises TooLongError: its weights are too many."""
        self.layers.append(layer)
        n_queries, n_keys = layer.query.shape[2], layer.key.shape[2]
        self.weights.append(torch.zeros(layer.query.shape[1], n_queries, n_keys))
        if sum(weights.numel() for weights in self.weights) > MOST_WEIGHTS:
            raise TooLongError(
                f"{n_keys:,} tokens are too many to attribute: the cuts need the weights of all rows, which take more "
                "than 1 GB"
            )

    def observe(self, block: Block) -> None:
        """Keep the weights of a block."""
        rows = slice(block.first_row, block.first_row + block.seen.shape[2])
        self.weights[-1][:, rows, : block.seen.shape[3]] = block.seen[0]


class Study:
    """One text and one output of a model, which variants change.

    Args:
        source: the model.
        batch: the text, as a batch of one.
        target: the output.
        report: is called with the number of variants that have run so far.

    Raises ModelError: the model shows no attention that could be taken out.
    """

    def __init__(
        self,
        source: Source,
        batch: Batch,
        target: Target,
        report: Callable[[int], None] | None = None,
    ) -> None:
        self._source, self._target, self._report = source, target, report
        self._n_runs = 0
        self.is_translation = batch.kind == "cross"
        name = next((name for name in READ if name in batch.inputs), None)
        self._ids = None if name is None else batch.inputs[name]
        longest = max(batch.real.shape[1], batch.real_keys.shape[1])
        real = torch.ones(1, longest, dtype=torch.bool)
        self._batch = replace(batch, real=real, real_keys=real)
        base = _Base()
        numbers = self._numbers_of_layers(self._batch)
        n_layers = len(numbers)
        collectors = [ProjectionCollector(number) for number in numbers]
        output, self.receipt = source.outputs(self._batch, [base, *collectors], target.outputs)
        self.before = target.read(output)[0]
        self._n_outputs = output.shape[1] * output.shape[2]
        # Layers in which queries and keys are the same tokens; in a translation, cross-attention follows the encoder.
        # Models may have layers without attention between those that have some: these keep their numbers.
        self.layers, self.shown, n_self = tuple(numbers), list(range(n_layers)), n_layers
        if self.is_translation:
            encoder = source.encode([batch.sentences[0].text], kind="encoder")
            n_self = len(self._numbers_of_layers(encoder))
            self.shown = self.shown[n_self:]
            self.layers = tuple(range(len(self.shown)))
        self.is_self = torch.arange(n_layers) < n_self
        if len({len(base.weights[place]) for place in self.shown}) > 1:
            raise ModelError(
                f"the layers of {source.name} have different numbers of heads: it cannot be cut"
            )
        self.n_heads = max(len(weights) for weights in base.weights)
        self.n_keys = base.weights[0].shape[2]
        # The rows that are read: of a translation, those of the cross-attention.
        self.rows = torch.tensor(target.rows)
        self.all_weights = self._of_all_rows(base.weights)
        self.weights = self.all_weights[self.shown][:, :, self.rows]
        self._writers = self._find_writers(base, collectors)

    def _numbers_of_layers(self, batch: Batch) -> list[int]:
        base = _Base()
        is_encoder = self.is_translation and batch.kind == "encoder"
        self._source.outputs(batch, [base], "vectors" if is_encoder else self._target.outputs)
        return [layer.number for layer in base.layers]

    @property
    def predicts(self) -> bool:
        """Whether the output is a distribution."""
        return self._target.predicts

    @property
    def reads_all(self) -> bool:
        """Whether all rows are read."""
        return len(self.rows) == self.n_keys and not self.is_translation

    def predict(self, number: int) -> None:
        """Watch the probability of a word or class."""
        self._target = replace(self._target, number=number)

    def _of_all_rows(
        self, weights: Sequence[Float[Tensor, "_ _ key"]]
    ) -> Float[Tensor, "layer head query key"]:
        """Return the weights of all layers in one array, of a translator's encoder too.

        Rows that a layer lacks are 0, and so are those after the last row that is read, if none depends on later ones.
        """
        looks_ahead = self.is_self & (self._batch.kind != "decoder")
        last = int(self.rows.max()) + 1
        sizes = [
            of_layer.shape[1] if ahead else last
            for of_layer, ahead in zip(weights, looks_ahead, strict=True)
        ]
        found = torch.zeros(len(sizes), self.n_heads, max(sizes), self.n_keys)
        for place, (of_layer, n) in enumerate(zip(weights, sizes, strict=True)):
            found[place, : len(of_layer), :n] = of_layer[:, :n]
        return found

    def carried(self) -> Float[Tensor, "layer row key"] | None:
        """Return the length of what all heads write from each key into the rows; None if it is not known.

        It is that of weight x value, through the output projection (Kobayashi et al. 2020).
        """
        if self._writers is None:
            return None
        written = [
            torch.einsum("hrk,hkd,hde->rke", self.weights[place], values, through).norm(dim=-1)
            for place, (values, through) in enumerate(self._writers)
        ]
        return torch.stack(written)

    def carried_by_heads(self) -> Float[Tensor, "layer head row key"] | None:
        """Return the same for each head alone."""
        if self._writers is None:
            return None
        lengths = [(values @ through).norm(dim=-1) for values, through in self._writers]
        return self.weights * torch.stack(lengths)[:, :, None]

    def _find_writers(
        self, base: _Base, collectors: Sequence[ProjectionCollector]
    ) -> list[tuple[Tensor, Tensor]] | None:
        """Return values [head, key, d_v] and output projection [head, d_v, d] of each layer; None if one has none."""
        writers = []
        for place in self.shown:
            *_others, projection = collectors[place].projections()
            if projection is None:
                return None
            n_heads = len(base.weights[place])
            values = for_each_head(base.layers[place].value, n_heads)[0].cpu().to(torch.float32)
            through = projection.weight.detach().cpu().to(torch.float32)
            writers.append((values, through.reshape(n_heads, values.shape[2], -1)))
        return writers

    def run(
        self, variants: Sequence[Variant], *, everywhere: bool = False
    ) -> Float[np.ndarray, "2 variant"]:
        """Return how far each variant is from the output before, and the probability of what is predicted, if it is.

        `everywhere` says whether their edges are among all weights, or among those of the rows that are read.
        """
        # Everywhere the shares of edges that are cut take as much as the weights.
        per_variant = max(self.n_heads * self.n_keys**2 * (1 + everywhere), self._n_outputs)
        size = max(1, min(MOST_VARIANTS, MOST_NUMBERS // per_variant))
        if self._target.outputs == "classes" and self._source.sorts_one:
            size = 1
        found = np.full((2, len(variants)), np.nan)
        for first in range(0, len(variants), size):
            part = slice(first, first + size)
            outputs = self._run_batch(variants[part], everywhere)
            found[0, part] = self._target.change(self.before, outputs).double()
            if self._target.predicts:
                found[1, part] = self._target.probability(outputs).double()
            self._n_runs += len(outputs)
            if self._report is not None:
                self._report(self._n_runs)
        return found

    def _run_batch(
        self, variants: Sequence[Variant], everywhere: bool
    ) -> Float[Tensor, "variant width"]:
        n, shape = len(variants), (self.all_weights if everywhere else self.weights).shape
        layers = torch.arange(shape[0]) if everywhere else torch.tensor(self.shown)
        rows = torch.arange(shape[2]) if everywhere else self.rows
        edges, shares = [torch.empty(5, 0, dtype=torch.long)], [torch.empty(0)]
        for number, variant in enumerate(variants):
            if variant.edges is not None:
                layer, *others = torch.unravel_index(variant.edges, shape)
                edges.append(torch.stack([layers[layer], torch.full_like(layer, number), *others]))
                shares.append(torch.ones(len(layer)))
                shares[-1][-1:] = variant.part
        cutter = Cutter(rows, torch.cat(edges, dim=1), torch.cat(shares))
        batch = replace(
            self._batch,
            sentences=self._batch.sentences * n,
            inputs={
                name: tensor.expand(n, *tensor.shape[1:])
                for name, tensor in self._batch.inputs.items()
            },
            real=self._batch.real.expand(n, -1),
            real_keys=self._batch.real_keys.expand(n, -1),
        )
        with self._hidden([variant.hidden for variant in variants]):
            output, _ = self._source.outputs(batch, [cutter], self._target.outputs)
        return self._target.read(output)

    def can_hide(self) -> bool:
        """Return whether a word can be hidden: the model has a table of word vectors."""
        return self._source.hidden() is not None

    @contextmanager
    def _hidden(self, places: Sequence[int | None]) -> Iterator[None]:
        """Put a mask in place of one token of each variant until the block ends."""
        found = self._source.hidden() if any(place is not None for place in places) else None
        if found is None or self._ids is None:
            yield
            return
        table, vector = found
        chosen = [(variant, place) for variant, place in enumerate(places) if place is not None]
        ids = self._ids

        def hide(_: Any, inputs: tuple[Any, ...], output: Tensor) -> Tensor:
            # A translator may look up what it generates in the same table.
            if inputs[0].shape[1:] != ids.shape[1:] or not torch.equal(inputs[0][:1], ids):
                return output
            output = output.clone()
            for variant, place in chosen:
                output[variant, place] = vector.to(output)
            return output

        handle = table.register_forward_hook(hide)
        try:
            yield
        finally:
            handle.remove()
