"""What may be kept of the rows of attention that a model streams by.

A source hands every observer each block of query rows once, layer by layer. Keeping all of the weights is one
thing to do with a block; a pooled picture, the strongest links or a running sum are others, and none needs more than
this interface.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32
from torch import Tensor

from attnviz.attention import Kind, Note, Token, positions
from attnviz.errors import InputError, NoAttentionError, SelectionError


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """One input as the model reads it: its tokens, and what was done to it on the way in."""

    text: str  # as typed
    pair: str | None  # the second sentence, where there is one
    tokens: tuple[Token, ...]  # the queries
    keys: tuple[Token, ...] | None = None  # None where they are the same
    target: str | None = None  # what the model generates, where it generates text
    notes: tuple[Note, ...] = ()  # what was done
    is_cut: bool = False  # whether it has more tokens than the model takes, and only the first of them are here


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Sentences that run together."""

    sentences: tuple[Sentence, ...]
    inputs: dict[str, Tensor]  # what the model takes, by name
    real: Bool[Tensor, "batch token"]  # True where there is a query token, False where there is padding
    real_keys: Bool[Tensor, "batch key"] | None = None  # likewise for the keys; None where they are the same
    kind: Kind | None = None  # which attention is streamed, where the model has several; None where the weights tell


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Some query rows of one layer."""

    layer: int  # from 0
    first_row: int  # the number of the first query row held
    n_rows: int  # how many query rows the layer has in all
    causal: bool  # whether queries may look at earlier keys only
    weights: Float[Tensor, "batch head rows keys"]  # after the softmax, 0 for padding; valid until `observe` returns


@runtime_checkable  # the shape checks of the tests need it
class Observer(Protocol):
    """Something that sees every block of attention once."""

    def begin(self, batch: Batch) -> None:
        """A batch is about to run."""

    def observe(self, block: Block) -> None:
        """A block of rows has been computed."""


@runtime_checkable  # as above
class Kinded(Protocol):
    """What has attention of some kinds, and may generate text."""

    name: str
    kinds: tuple[Kind, ...]
    generates: bool


def expect_kind(source: Kinded, kind: Kind | None, targets: Sequence[str | None] | None) -> Kind:
    """The kind of attention to show: the one chosen, or the usual one.

    Raises:
        SelectionError: the model has no such attention, or generates nothing, so that no target can be given.
    """
    if kind is not None and kind not in source.kinds:
        has = " and ".join(source.kinds)
        raise SelectionError(f"{source.name} has no {kind} attention to show: it has {has}")
    if not source.generates and any(target is not None for target in targets or ()):
        raise SelectionError(f"{source.name} generates nothing, so it takes no --target")
    return kind or source.kinds[0]


KEEP_AT_MOST = 4 * 2**30
"""Bytes of weights that `KeepWeights` will hold."""


class KeepWeights:
    """Keeps the weights of every head of every layer, or of those chosen."""

    def __init__(self, layers: Collection[int] | None = None, heads: Collection[int] | None = None) -> None:
        self._layers = layers
        self._heads = None if heads is None else sorted(set(heads))
        self._kept: dict[int, Float32[np.ndarray, "batch head query key"]] = {}
        self._seen: list[int] = []
        self._n_heads = 0
        self._causal = False

    def begin(self, batch: Batch) -> None:
        """Forget what was kept of an earlier batch."""
        self._batch = batch
        self._kept.clear()
        self._seen.clear()

    def observe(self, block: Block) -> None:
        """Copy the block.

        Raises:
            InputError: the weights would not fit in memory.
            SelectionError: a chosen head is not there.
        """
        batch, n_heads, n_rows, n_keys = block.weights.shape
        if block.first_row == 0:
            self._seen.append(block.layer)
            self._n_heads, self._causal = n_heads, block.causal
        if self._layers is not None and block.layer not in self._layers:
            return
        positions(self._heads or (), range(n_heads), "head")
        n_kept = n_heads if self._heads is None else len(self._heads)
        if block.layer not in self._kept:
            size = 4 * batch * n_kept * block.n_rows * n_keys
            if size * (len(self._kept) + 1) > KEEP_AT_MOST:
                raise InputError(
                    f"the weights of {n_kept} heads at {n_keys:,} tokens take {size / 2**30:.1f} GiB a layer, more "
                    f"than attnviz keeps ({KEEP_AT_MOST / 2**30:.0f} GiB in all): choose fewer layers and heads, or a "
                    "shorter text"
                )
            self._kept[block.layer] = np.empty((batch, n_kept, block.n_rows, n_keys), dtype=np.float32)
        weights = block.weights if self._heads is None else block.weights[:, self._heads]
        self._kept[block.layer][:, :, block.first_row : block.first_row + n_rows] = weights.float().cpu().numpy()

    @property
    def layers(self) -> tuple[int, ...]:
        """The layers kept.

        Raises:
            SelectionError: a chosen layer is not there.
        """
        positions(self._layers or (), self._seen, "layer")
        return tuple(self._kept)

    @property
    def heads(self) -> tuple[int, ...]:
        """The heads kept."""
        return tuple(range(self._n_heads)) if self._heads is None else tuple(self._heads)

    def weights(self, index: int) -> Float32[np.ndarray, "layer head query key"]:
        """The weights of one sentence of the batch, without its padding.

        Raises:
            NoAttentionError: the layers have different numbers of heads.
            SelectionError: a chosen layer is not there.
        """
        batch = self._batch
        real = batch.real[index].cpu().numpy()
        real_keys = real if batch.real_keys is None else batch.real_keys[index].cpu().numpy()
        layers = [self._kept[layer][index] for layer in self.layers]
        if len({layer.shape for layer in layers}) > 1:
            counts = ", ".join(str(layer.shape[0]) for layer in layers)
            raise NoAttentionError(f"the layers of this model have different numbers of heads ({counts}): choose one")
        weights = np.stack(layers)
        if real.all() and real_keys.all():
            return weights
        return np.ascontiguousarray(weights[:, :, real][..., real_keys])

    def kind(self, weights: Float32[np.ndarray, "layer head query key"]) -> Kind:
        """Which attention it is: as the batch says, or causal or bidirectional as the weights show."""
        if self._batch.kind is not None:
            return self._batch.kind
        ahead = torch.ones(weights.shape[2:], dtype=torch.bool).triu(1).numpy()
        if weights.shape[2] == 1:
            return "decoder" if self._causal else "encoder"
        return "encoder" if weights[:, :, ahead].any() else "decoder"
