"""The layers of attention that `attnviz.watch` saw, and the computations that they are made of."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float32
from torch import Tensor

from attnviz.attention import SOFTMAX, Kind, Receipt
from attnviz.capture.observers import CPU, Batch, WeightCollector
from attnviz.capture.sources.axes import Axis
from attnviz.capture.sources.calls import ModuleCall
from attnviz.capture.sources.tracing import FUSED, attend_fused
from attnviz.capture.stream import ForwardPass, Layer, visible_keys
from attnviz.releases import grouped_queries

AXES = 4  # the number of axes of weights: batch, head, query, key


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One computation of attention: a layer, or some of its heads, of its rows or of its inputs."""

    # The inputs and the output of the fused function, or the weights themselves; None if these are too large.
    held: Layer | Float[Tensor, "batch head query key"] | None
    shape: tuple[int, ...]  # batch, head, query, key
    first: int  # the place of its first input in the batch
    first_query: int | None  # the place of its first query among the keys, if it is known
    dropped: bool  # whether dropout then set some of the weights to 0
    normalised: bool = True  # whether a softmax or the like made its rows sum to 1
    # Whether it has the weights of the part before it, for other values, as in DiffLlama.
    is_repeat: bool = False

    @property
    def inputs(self) -> range:
        """The places of its inputs in the batch."""
        return range(self.first, self.first + self.shape[0])

    def covers(self, index: int) -> bool:
        """Return whether input `index` of the batch is among those of the part."""
        return index in self.inputs

    def looks_ahead(self) -> bool:
        """Return whether a query of the first input sees a later key, as in an encoder."""
        held, (n_queries, n_keys) = self.held, self.shape[2:]
        # A model with a cache reads the last tokens of a text, and sees all keys before them.
        n_before = n_keys - n_queries if self.first_query is None else self.first_query
        if isinstance(held, Layer) and held.scoring.mask is None and n_before == 0:
            return not held.scoring.causal
        if held is None or (n_queries == 1 and n_before == 0):
            return True
        if isinstance(held, Layer):
            visible = visible_keys(held.scoring, 0, n_queries, n_keys, held.query.device)
            is_visible = visible[:1].expand(-1, -1, n_queries, -1)
        else:
            is_visible = held[:1] > 0
            # Queries that are padding on the left of a causal model may attend equally to all keys, even to later ones.
            is_uneven = held[:1].amax(dim=-1) > held[:1].amin(dim=-1)
            if is_uneven.any():
                is_visible &= is_uneven[..., None]
        return bool(is_visible.triu(1 + n_before).any())

    def verified(
        self, index: int, number: int
    ) -> tuple[Float32[np.ndarray, "head query key"], Receipt]:
        """Return the weights of input `index` of the batch, in layer `number`, and their receipt.

        Raises NotVerifiedError: the weights are not the module's own.
        """
        held, own = self.held, slice(index - self.first, index - self.first + 1)
        assert held is not None  # `_check_memory` refuses a layer whose weights were not kept
        real, real_keys = (torch.ones(1, n, dtype=torch.bool, device=CPU) for n in self.shape[2:])
        batch = Batch(sentences=(), inputs={}, real=real, real_keys=real_keys)
        collector = WeightCollector()
        native = "sdpa" if isinstance(held, Layer) else SOFTMAX
        run = ForwardPass(batch=batch, observers=[collector], native=native)
        if isinstance(held, Tensor):
            run.add_weights(held[own], number)
        else:
            run.add_layer(self._call_of(held, own, number))
        return collector.weights(0)[0], run.receipt("")

    def _call_of(self, call: Layer, own: slice, number: int) -> Layer:
        """Return a call of the fused function for one input of the batch."""
        query, key, value = call.query[own], call.key[own], call.value[own]
        output, scoring = call.output[own], call.scoring
        if isinstance(scoring.mask, Tensor) and scoring.mask.ndim == AXES and len(scoring.mask) > 1:
            scoring = replace(scoring, mask=scoring.mask[own])
        # With dropout, the output lacks some of the weights: compute it again without dropout.
        if self.dropped:
            arguments: dict[str, Any] = {"attn_mask": scoring.mask, "is_causal": scoring.causal}
            arguments |= {"scale": scoring.scaling, **grouped_queries(query, key)}
            output = FUSED(query, key, value, **arguments).transpose(1, 2)
        return Layer(
            query=query,
            key=key,
            value=value,
            output=output,
            scoring=scoring,
            number=number,
            attend=partial(attend_fused, query, key, scoring.scaling),
        )


@dataclass(slots=True, kw_only=True)
class SeenLayer:
    """A layer of attention; its weights are computed and verified when they are requested."""

    # The module that computed it, such as ``decoder.layers.0.self_attn``; empty for the watched module.
    path: str
    cross: bool  # whether queries and keys come from different sequences
    parts: list[Part]
    # Whether the parts are rows, such as the steps of a decoder; else they are heads.
    is_stepwise: bool = False

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """The number of inputs, heads, queries and keys; of a decoder's steps, as many as the longest text has."""
        return self.shape_of(self.parts[0].first)

    def shape_of(self, index: int) -> tuple[int, int, int, int]:
        """Return the same numbers for one input of the batch, which may have fewer steps."""
        of_first = [part for part in self.parts if part.covers(index) and not part.is_repeat]
        _, n_heads, n_queries, n_keys = self.parts[0].shape
        n_inputs = max(part.inputs.stop for part in self.parts)
        if self.is_stepwise:
            return n_inputs, n_heads, sum(part.shape[2] for part in of_first), n_keys
        return n_inputs, n_heads * len(of_first), n_queries, n_keys

    @property
    def kind(self) -> Kind:
        """The kind of attention; "decoder" (causal) if no query of the first input sees a later key."""
        if self.cross:
            return "cross"
        return "encoder" if any(part.looks_ahead() for part in self.parts) else "decoder"

    def add(self, part: Part, path: str) -> None:
        """Add a part that a module with this path computed."""
        before = self.parts[-1]
        if path != self.path:
            self.path = siblings(path)[0].rstrip(".")
        elif part.covers(before.first) and (
            (self.cross and part.shape[2] == 1) or _are_next_rows(before, part)
        ):
            self.is_stepwise = True
        elif part.covers(before.first) and _has_same_weights(part.held, before.held):
            part = replace(part, is_repeat=True)
        self.parts.append(part)

    def verified(
        self, index: int, number: int
    ) -> tuple[Float32[np.ndarray, "head query key"], list[Receipt]]:
        """Return the weights of input `index` of the batch, and a receipt of each part, as of layer `number`.

        Raises NotVerifiedError: the weights of a part are not the module's own.
        """
        own = [part for part in self.parts if part.covers(index)]
        found = [part.verified(index, number) for part in own]
        shown = [w for part, (w, _) in zip(own, found, strict=True) if not part.is_repeat]
        joined = np.concatenate(shown, axis=1 if self.is_stepwise else 0)
        return joined, [receipt for _, receipt in found]


@dataclass(frozen=True, slots=True)
class Beginning:
    """Where the first part of a layer was computed."""

    call: ModuleCall
    keys: tuple[Axis, ...]
    n_behind: int  # the number of computations of attention whose results it depends on, one after the other
    values: Tensor | None


def continues(
    layer: SeenLayer, begun: Beginning, part: Part, now: Beginning, *, cross: bool
) -> bool:
    """Return whether a part continues a layer: as further inputs, as a decoder's next step, or as further heads.

    A layer is what the model numbers as a layer: its path ends with a number, as in ``layers.1.self_attn``.
    """
    first, path = layer.parts[0], now.call.path or ""
    are_rows = _are_next_rows(layer.parts[-1], part)
    shapes = [(s[1], 0 if are_rows else s[2], s[3]) for s in (first.shape, part.shape)]
    if shapes[0] != shapes[1] or (layer.cross, first.dropped) != (cross, part.dropped):
        return False
    if path != layer.path:
        # Heads may be modules of their own, side by side on the same input.
        is_beside = (
            siblings(begun.call.path or "") == siblings(path) and number_in(path) is not None
        )
        is_same_input = begun.call.read is not None and begun.call.read is now.call.read
        return is_beside and part.shape[1] == 1 and is_same_input
    if not any(part.covers(index) for other in layer.parts for index in other.inputs):
        return True
    # A decoder attends once per step, always to the same sequence; in a batch, short texts end before long ones.
    origins = [[axis.origin for axis in of.keys] for of in (begun, now)]
    are_same_keys = bool(origins[0]) and origins[0] == origins[1]
    if cross and part.shape[2] == 1:
        return are_same_keys
    if first.shape[0] != part.shape[0] or begun.n_behind != now.n_behind:
        return False
    is_same_call = begun.call.number == now.call.number
    # Several patterns of one layer, as in DiffLlama, or its heads or rows in a loop.
    if is_same_call and (number_in(path) is not None or are_same_keys):
        return True
    if begun.values is None or now.values is None:
        return False
    # Heads in a loop may share their values (Lim et al. 2021, temporal fusion transformer).
    is_same_caller = begun.call.caller == now.call.caller != 0
    return (is_same_call or is_same_caller) and torch.equal(begun.values, now.values)


def _are_next_rows(before: Part, part: Part) -> bool:
    """Return whether the queries of a part are those that follow the queries of the part before it."""
    return (
        before.first_query is not None and part.first_query == before.first_query + before.shape[2]
    )


def _has_same_weights(held: Layer | Tensor | None, other: Layer | Tensor | None) -> bool:
    """Return whether two computations have the same weights, and differ in their values alone."""
    if isinstance(held, Layer) and isinstance(other, Layer):
        pairs = [(held.query, other.query), (held.key, other.key)]
        masks = held.scoring.mask, other.scoring.mask
        if isinstance(masks[0], Tensor) and isinstance(masks[1], Tensor):
            pairs.append((masks[0], masks[1]))
        elif masks[0] is not masks[1]:
            return False
        return all(torch.equal(*pair) for pair in pairs)
    if isinstance(held, Tensor) and isinstance(other, Tensor):
        # Of a single key, all weights are equal.
        return held.shape[-1] > 1 and torch.equal(held, other)
    return False


def number_in(path: str) -> int | None:
    """Return the number in a path that is nearest to its end, as of ``layers.1.self_attn``; None without a number."""
    numbers = re.findall(r"(?<![^.])\d+(?![^.])", path)
    return int(numbers[-1]) if numbers else None


def siblings(path: str) -> tuple[str, str]:
    """Return the parts of a path before and after its last number."""
    match = re.fullmatch(r"((?:.*\.)?)\d+((?:\.(?!\d+(?:\.|$))[^.]+)*)", path)
    return (match[1], match[2]) if match else (path, "")
