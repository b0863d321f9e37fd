"""Which axes of attention weights are the batch, the heads, the queries and the keys."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from attnviz.capture.sources.axes import OWN_FEATURES, Axis, AxisTracker, Layout, len_of, place_of
from attnviz.errors import SettingsError

NAMES = ("batch", "head", "query", "key")  # the axes of weights in a record's order


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrangement:
    """Which axis of attention weights is the batch, the heads, the queries or the keys.

    A dimension of the weights may consist of several axes; `sizes` and `names` list the axes of all dimensions, in
    their order in memory.
    """

    sizes: tuple[int, ...]
    names: tuple[str, ...]  # "batch", "head", "query" or "key"
    queries: tuple[
        Axis, ...
    ] = ()  # the axes of sequences that the queries run over, as far as they are known
    keys: tuple[Axis, ...] = ()
    inputs: tuple[int, int] | None = None  # the span of the batch, if it is known

    def size(self, name: str) -> int:
        """Return the number of inputs, heads, queries or keys."""
        return math.prod(
            size for size, own in zip(self.sizes, self.names, strict=True) if own == name
        )

    def apply(self, weights: Tensor) -> Tensor:
        """Return weights with these axes as [batch, head, query, key]."""
        return self._ordered(weights, NAMES, ())

    def apply_to_vectors(self, vectors: Tensor, tokens: str) -> Tensor:
        """Return vectors as [batch, head, token, d]; `tokens` says whether they are of a "query" or of a "key".

        Their last dimension is d, and the others are those of the weights without the other kind of token.
        """
        names = ("batch", "head", tokens)
        kept = [place for place, name in enumerate(self.names) if name in names]
        rows = replace(
            self,
            sizes=tuple(self.sizes[place] for place in kept),
            names=tuple(self.names[place] for place in kept),
        )
        return rows._ordered(vectors, names, vectors.shape[-1:])

    def _ordered(self, tensor: Tensor, names: Sequence[str], width: Sequence[int]) -> Tensor:
        places = sorted(range(len(self.names)), key=lambda place: NAMES.index(self.names[place]))
        order = [*places, *range(len(places), len(places) + len(width))]
        shape = [self.size(name) for name in names]
        return tensor.reshape(*self.sizes, *width).permute(order).reshape(*shape, *width)


def arrangement_of(
    layout: Layout,
    roles: Sequence[tuple[str, int | None]],
    values: Layout | None,
    tracker: AxisTracker,
) -> Arrangement | None:
    """Return the arrangement of attention weights with this layout, or None if it is not clear.

    Args:
        layout: the axes of the weights.
        roles: the role of each of their dimensions in the product with the values.
        values: the layout of the values.
        tracker: knows the inputs of the run.
    """
    axes: list[tuple[Axis, str]] = []
    for dimension, (role, link) in zip(layout, roles, strict=True):
        known = dimension
        # Keys and values belong to one sequence, so the batch of the values is that of the keys.
        if values is not None and link is not None:
            other = values[link]
            # Scores may be outputs of a linear layer, one for each token.
            is_better = role == "summed" and all(axis.has_features for axis in dimension)
            is_split = len(other) > len(dimension) and all(axis.is_certain for axis in other)
            is_better |= role == "shared" and (place_of(other) is not None or is_split)
            if is_better and len_of(other) == len_of(dimension):
                # A single query may be beside the batch.
                batch = place_of(other) or (0, 0)
                units = (axis for axis in dimension if axis.size == 1)
                known = (*other, *(a for a in units if (place_of([a]) or batch)[1] != batch[1]))
        axes += [(axis, role) for axis in known]
    keys = tuple(axis for axis, role in axes if role == "summed" and axis.is_sequence)
    place = place_of(keys)
    batch_axis = 1 if place is not None and place[1] == 0 else 0
    names = []
    shared = [axis for axis, role in axes if role == "shared"]
    has_features = any(axis.has_features for axis in shared)
    # Queries, keys and values that are inputs themselves, (batch, head, token, d), have an axis of heads.
    met = {link for _, link in roles}
    vectors = [axes for dim, axes in enumerate(values or ()) if dim not in met]
    are_inputs = any(
        axis.origin is OWN_FEATURES or place_of([axis]) for axes in vectors for axis in axes
    )
    for axis, role in axes:
        place = place_of([axis])
        is_of_batch = place is not None and place[1] == batch_axis
        if role == "summed":
            names.append("key")
        elif role == "free" and not (is_of_batch and axis.size == 1):
            # Heads may share their values, and a library may put the heads of one query into rows.
            names.append("head" if axis.has_features else "query")
        elif is_of_batch:
            names.append("batch")
        elif axis.size > 1 and (
            not (are_inputs and tracker.is_whole(axis))
            if place is not None
            else has_features and not axis.is_certain
        ):
            # Part of a sequence, such as the windows of a picture; or another axis of the input, such as the channels
            # of a signal, each of which attends alone.
            return None
        else:
            names.append("head")
    batches = [axis for (axis, _), name in zip(axes, names, strict=True) if name == "batch"]
    arrangement = Arrangement(
        sizes=tuple(axis.size for axis, _ in axes),
        names=tuple(names),
        inputs=batches[0].span if len(batches) == 1 else None,
        queries=_queries_of(axes, batch_axis),
        keys=keys,
    )
    n = tracker.n_batch(keys)
    if n == 1 or "batch" in names:
        return _without_units(arrangement)
    # The history of the batch was lost: its size may still tell.
    first = roles[0][0] == "shared" and len_of(layout[0]) == n
    if not first or any(axis.has_features for axis in layout[0]):
        return None
    return _without_units(replace(arrangement, names=("batch", *names[1:])))


def _queries_of(axes: Sequence[tuple[Axis, str]], batch_axis: int) -> tuple[Axis, ...]:
    """Return the axes of a sequence that the queries run over; a single query may be beside another dimension."""
    found = {
        role: tuple(
            axis
            for axis, own in axes
            if own == role and axis.is_sequence and (place_of([axis]) or (0, -1))[1] != batch_axis
        )
        for role in ("free", "shared")
    }
    selected = tuple(axis for axis in found["shared"] if axis.size == 1)
    return found["free"] or selected


def parse_axes(axes: str) -> list[list[str]]:
    """Return the names in a text such as "(batch head) query key", one list for each axis.

    Raises SettingsError: it is no such list of names.
    """
    groups = [group.strip("()").split() for group in re.findall(r"\([^()]*\)|[^\s()]+", axes)]
    named = [name for group in groups for name in group]
    if not {"key"} <= {*named} <= {*NAMES}:
        raise SettingsError(
            f"{axes!r} does not name the axes of weights: write batch, head, query and key in their order, and those "
            "that are folded into one in parentheses, as in '(batch head) query key'",
            "axes",
        )
    return groups


def parse_arrangement(axes: str, shape: Sequence[int], n_batch: int) -> Arrangement:
    """Return the arrangement that a user gives, such as "(batch head) query key", for weights of this shape.

    Raises SettingsError: it is no such list of names, or does not fit the shape.
    """
    groups = parse_axes(axes)
    if len(groups) != len(shape):
        raise SettingsError(f"{axes!r} names {len(groups)} axes of weights of {len(shape)}", "axes")
    sizes: list[int] = []
    for group, size in zip(groups, shape, strict=True):
        if len(group) == 1:
            sizes.append(size)
            continue
        # The size of the batch is known, and with it the size of the other axis.
        if len({*group}) != len(group) or len(group) != 2 or "batch" not in group or size % n_batch:
            raise SettingsError(
                f"{axes!r} does not fit weights of shape {tuple(shape)} of {n_batch} inputs", "axes"
            )
        sizes += [n_batch if name == "batch" else size // n_batch for name in group]
    return Arrangement(sizes=tuple(sizes), names=tuple(itertools.chain(*groups)))


def _without_units(arrangement: Arrangement) -> Arrangement:
    """Leave out axes of size 1 beside another axis of the same name, so that usual weights are recognised."""
    names, sizes = arrangement.names, arrangement.sizes
    kept = [place for place, name in enumerate(names) if sizes[place] > 1 or names.count(name) == 1]
    return replace(
        arrangement,
        names=tuple(names[place] for place in kept),
        sizes=tuple(sizes[place] for place in kept),
    )
