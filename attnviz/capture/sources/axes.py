"""Follow what the axes of tensors run over, through the functions of torch.

A softmax result of shape (6, 5, 5) may belong to six sentences, to six heads, or to two sentences of three heads. Its
shape does not tell, but its history does: `AxisTracker` knows which axes the inputs had, and follows them through
views, products and all other functions, until attention weights are multiplied by values.
"""

from __future__ import annotations

import itertools
import math
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.weak import WeakIdKeyDictionary


@dataclass(frozen=True, slots=True, eq=False)
class Origin:
    """The things that an axis runs over, such as the tokens of one sentence; axes over the same things share one."""

    # The axis of an input, as the input's number and its own; None if the run made the axis.
    place: tuple[int, int] | None = None
    is_learned: bool = False  # whether it is an axis of parameters, such as learned queries
    is_of_numbers: bool = False  # whether it is the last axis of an input that is no ids
    parts: frozenset[Origin] = frozenset()  # of tensors that were put one after the other

    @property
    def is_certain(self) -> bool:
        """Whether it is known where the axis comes from."""
        return self.place is not None or self.is_learned or any(p.is_certain for p in self.parts)

    @property
    def roots(self) -> frozenset[Origin]:
        """This origin with all its parts, and their parts."""
        return frozenset({self}).union(*(part.roots for part in self.parts))


# An axis that was computed from the numbers of each token, such as the output of a linear layer.
FEATURES = Origin()
# An axis of an input over which queries and keys were multiplied.
OWN_FEATURES = Origin()
# Functions that put the dimensions of their argument into another order, or a new one between them.
REORDER = frozenset(
    {"permute", "transpose", "swapaxes", "swapdims", "movedim", "moveaxis", "t", "adjoint"}
    | {"T", "mT", "H", "mH", "unsqueeze"}
)
# Functions that only arrange the numbers of their first argument.
VIEWS = REORDER | frozenset(
    {"view", "reshape", "view_as", "reshape_as", "flatten", "unflatten", "squeeze", "unfold"}
    | {"expand", "expand_as", "broadcast_to", "select", "narrow", "__getitem__"}
    | {"chunk", "split", "split_with_sizes", "tensor_split", "unbind"}
)
CONCATENATE = frozenset({"cat", "concat", "concatenate"})
STACK = frozenset({"stack", "pad_sequence"})
PRODUCTS = frozenset(
    {"matmul", "__matmul__", "__rmatmul__", "bmm", "mm", "addmm", "baddbmm", "einsum"}
)
MULTIPLY = frozenset({"mul", "multiply", "__mul__", "__rmul__"})
# Functions that write their last argument into a part of the first.
WRITES = frozenset({"__setitem__", "index_copy", "index_copy_", "scatter", "scatter_"})
REDUCTIONS = frozenset({"sum", "mean", "amax", "amin", "prod", "logsumexp", "std", "var", "norm"})
CONVOLUTIONS = frozenset({"conv1d", "conv2d", "conv3d"})
RECURRENT = frozenset({"rnn_tanh", "rnn_relu", "gru", "lstm"})
# Functions after which a dimension of another size still runs over the same things, more coarsely or with gaps.
RESIZE = CONVOLUTIONS | frozenset(
    {f"{kind}_pool{n}d" for kind in ("max", "avg", "lp") for n in (1, 2, 3)}
    | {f"adaptive_{kind}_pool{n}d" for kind in ("max", "avg") for n in (1, 2, 3)}
    | {"interpolate", "pad", "index_select", "__getitem__", "repeat", "repeat_interleave"}
)


@dataclass(frozen=True, slots=True)
class Axis:
    """A dimension of a tensor, or a factor of one: heads folded into the batch make one dimension of two axes."""

    size: int
    origin: Origin | None = None  # None if it is unknown
    # The first and one-past-last place on its origin; None for features, and where they are unknown.
    span: tuple[int, int] | None = None
    normalised: bool = False  # whether a softmax made the numbers along this axis sum to 1
    # Whether its numbers were computed from products of queries and keys.
    is_of_scores: bool = False

    @property
    def has_features(self) -> bool:
        """Whether it runs over features, and not over tokens."""
        return self.origin is FEATURES or self.origin is OWN_FEATURES

    @property
    def is_certain(self) -> bool:
        """Whether it is known where the axis comes from."""
        return self.has_features or (self.origin is not None and self.origin.is_certain)

    @property
    def is_sequence(self) -> bool:
        """Whether it is known to run over tokens."""
        return self.origin is not None and not self.has_features


Dimension: TypeAlias = tuple[Axis, ...]  # its axes, the outermost first
Layout: TypeAlias = tuple[Dimension, ...]


def are_one_sequence(queries: Sequence[Axis], keys: Sequence[Axis]) -> bool | None:
    """Return whether queries and keys are tokens of one sequence; None if that is unknown.

    Two parts of one sequence without a common token, such as the past and the future of a series, count as two.
    """
    pairs = [(query, key) for query in queries for key in keys]
    origins = [origin for pair in pairs for axis in pair if (origin := axis.origin) is not None]
    of_one_origin = [(query, key) for query, key in pairs if query.origin is key.origin]
    if of_one_origin:
        return any(_overlap(query, key) for query, key in of_one_origin)
    if any(
        query.origin and key.origin and query.origin.roots & key.origin.roots
        for query, key in pairs
    ):
        return True
    return False if origins and all(origin.is_certain for origin in origins) else None


def distance(keys: Sequence[Axis], queries: Sequence[Axis]) -> int | None:
    """Return the place of the first query among keys of one sequence; None if it is unknown."""
    if len(keys) != 1 or len(queries) != 1 or keys[0].origin is not queries[0].origin:
        return None
    key, query = keys[0].span, queries[0].span
    return None if key is None or query is None else query[0] - key[0]


def _overlap(first: Axis, second: Axis) -> bool:
    """Return whether two axes of one origin have a place in common, or may have one."""
    if first.span is None or second.span is None:
        return True
    return max(first.span[0], second.span[0]) < min(first.span[1], second.span[1])


@dataclass(frozen=True, slots=True)
class Product:
    """A product of two tensors, as roles of the dimensions of each.

    A dimension is "shared" if both tensors have it and the result too, "summed" if the product sums over it, and "free"
    if only one of the tensors has it. `roles` holds, for each dimension of each operand, its role and the dimension of
    the other operand that it meets, if there is one.
    """

    operands: tuple[Tensor, Tensor]
    roles: tuple[tuple[tuple[str, int | None], ...], tuple[tuple[str, int | None], ...]]


class AxisTracker:
    """The layouts of the tensors of one run; it keeps no tensor alive."""

    def __init__(self) -> None:
        self._layouts: MutableMapping[Tensor, Layout] = by_tensor()
        # The sizes of the axes of each input that may be its batch or its tokens.
        self.inputs: list[tuple[int, ...]] = []
        # Weights that were multiplied by values, but not yet summed over the keys: the weights and the values.
        self._weighted: MutableMapping[Tensor, tuple[Tensor, Tensor]] = by_tensor()
        # Axes of inputs over which queries and keys were multiplied: they run over features, not over tokens.
        self._features: set[Origin] = set()

    def begin(self, *inputs: Any) -> None:
        """Name the axes of the tensors among the inputs, which may be in lists and dictionaries."""
        for tensor in tensors_in(inputs):
            if tensor in self._layouts or tensor.ndim == 0 or isinstance(tensor, nn.Parameter):
                continue
            number, has_numbers = len(self.inputs), tensor.is_floating_point()
            # Of one sentence, (token, d), only the first axis is certain.
            n_certain = 1 if has_numbers and tensor.ndim == 2 else tensor.ndim
            self.inputs.append(tuple(tensor.shape[:n_certain]))
            self._layouts[tensor] = tuple(
                (Axis(size, Origin((number, axis), is_of_numbers=is_last), (0, size)),)
                for axis, size in enumerate(tensor.shape)
                for is_last in [has_numbers and axis == tensor.ndim - 1]
            )

    def n_batch(self, keys: Sequence[Axis] = ()) -> int:
        """Return the number of sentences in the batch, if the keys run over these axes."""
        number, axis = place_of(keys) or (0, 1)
        sizes = self.inputs[number] if self.inputs else ()
        # Where the keys run over the first axis, the batch is the second, as in torch's own Transformer.
        batch_axis = 1 if axis == 0 else 0
        return sizes[batch_axis] if batch_axis < len(sizes) else 1

    def is_whole(self, axis: Axis) -> bool:
        """Return whether an axis is a whole axis of an input that may be one of tokens, and not a part of one."""
        return self.n_tokens([axis]) == axis.size

    def n_tokens(self, axes: Sequence[Axis]) -> int | None:
        """Return the size of the whole axis of an input that these axes run over; None if it may not be of tokens."""
        place = place_of(axes)
        sizes = () if place is None else self.inputs[place[0]]
        return sizes[place[1]] if place is not None and place[1] < len(sizes) else None

    def layout(self, tensor: Tensor) -> Layout:
        """Return the layout of a tensor; its axes have no origin if they are unknown."""
        layout = self._layouts.get(tensor)
        # A tensor that was resized in place has another shape than when its layout was noted.
        if layout is None or shape_of(layout) != tuple(tensor.shape):
            return tuple((Axis(size),) for size in tensor.shape)
        return tuple(tuple(map(self._known, axes)) for axes in layout)

    def multiply_over(self, axes: Dimension) -> None:
        """Note that queries and keys are multiplied over a dimension, unless it is one of weights."""
        if not any(axis.normalised or axis.is_of_scores for axis in axes):
            self._features |= {axis.origin for axis in axes if axis.origin and axis.origin.place}

    def _known(self, axis: Axis) -> Axis:
        """Return an axis with the origin that is known of it now."""
        return replace(axis, origin=OWN_FEATURES) if axis.origin in self._features else axis

    def note(self, tensor: Tensor, layout: Layout) -> None:
        """Note the layout of a tensor; an axis of unknown origin is the first of an origin of its own."""
        self._layouts[tensor] = tuple(
            tuple(
                replace(axis, origin=Origin(), span=(0, axis.size))
                if axis.origin is None and axis.size > 1
                else axis
                for axis in axes
            )
            for axes in layout
        )

    def follow(
        self,
        name: str,
        function: Callable[..., Any],
        args: Sequence[Any],
        keywords: Mapping[str, Any],
        output: Any,
    ) -> Product | None:
        """Note the layouts of a function's results; return the product of two tensors if the function computes one."""
        if name in PRODUCTS:
            product = self._product(name, args, keywords, output)
            if product is not None:
                return product
        results = list(tensors_in([output]))
        given = list(tensors_in([args, keywords]))
        operands = [tensor for tensor in given if tensor in self._layouts]
        if results and not operands:
            self._note_learned(given)
            operands = [tensor for tensor in given if tensor in self._layouts]
        if results and operands:
            layouts = self._result_layouts(name, function, args, keywords, operands, results)
            for result, layout in zip(results, list(layouts), strict=True):
                self.note(result, layout)
        if name in WRITES:
            self._write(args)
        elif name == "softmax":
            self._normalise(output, dim_of(args, keywords))
        elif name in MULTIPLY:
            self._weigh((*args, *keywords.values())[:2], output)
        elif name == "sum" and args and args[0] in self._weighted:
            return self._sum_of_weighted(args[0], dim_of(args, keywords), output)
        return None

    def _normalise(self, tensor: Tensor, dim: Any) -> None:
        """Note that a softmax made the numbers along a dimension of the tensor sum to 1."""
        layout = [
            tuple(replace(axis, normalised=False) for axis in axes) for axes in self.layout(tensor)
        ]
        if isinstance(dim, int):
            layout[dim] = tuple(replace(axis, normalised=True) for axis in layout[dim])
        self.note(tensor, tuple(layout))

    def _write(self, args: Sequence[Any]) -> None:
        """Note that a part of a tensor, such as a cache, got the numbers of another one: keys run over both."""
        target, value = args[0], args[-1]
        if not isinstance(value, Tensor) or value not in self._layouts:
            return
        strides = torch.empty(target.shape, device="meta").stride()
        written = strides
        if value.ndim != target.ndim and len(args) == 3 and _is_simple(args[1:2]):
            written = torch.empty(target.shape, device="meta")[args[1]].stride()
        if len(written) != value.ndim:
            return
        layout, part = list(self.layout(target)), self.layout(value)
        for dim, stride in enumerate(strides):
            if stride in written:
                axes = part[written.index(stride)]
                if len_of(axes) != target.shape[dim]:
                    layout[dim] = (_joined([layout[dim], axes], target.shape[dim]),)
                elif all(axis.origin is None for axis in layout[dim]):
                    layout[dim] = axes
        self.note(target, tuple(layout))

    def _weigh(self, operands: Sequence[Any], output: Tensor) -> None:
        """Note that weights were multiplied by values number by number."""
        for weights, values in itertools.permutations(operands, 2):
            if isinstance(weights, Tensor) and isinstance(values, Tensor):
                axes = itertools.chain(*self.layout(weights))
                is_marked = any(axis.normalised or axis.is_of_scores for axis in axes)
                if is_marked and output.numel() > weights.numel():
                    self._weighted[output] = (weights, values)
                    return

    def _sum_of_weighted(self, weighted: Tensor, dim: Any, output: Tensor) -> Product | None:
        """Return the sum of weighted values along one dimension as a product of the weights and the values."""
        dims = [dim] if isinstance(dim, int) else list(dim or ())
        if len(dims) != 1:
            return None
        weights, values = self._weighted[weighted]
        # Both are broadcast to the dimensions of their product, so dimensions are counted from the end.
        letters = string.ascii_lowercase[: weighted.ndim]
        own = [letters[weighted.ndim - tensor.ndim :] for tensor in (weights, values)]
        summed = letters[dims[0]]
        layouts = (self.layout(weights), self.layout(values))
        rest = letters.replace(summed, "")
        roles = (
            _roles(own[0], layouts[0], own[1], layouts[1], rest),
            _roles(own[1], layouts[1], own[0], layouts[0], rest),
        )
        self.note(output, _without_marks(self.layout(output)))
        return Product((weights, values), roles)

    def _note_learned(self, tensors: Iterable[Tensor]) -> None:
        """Note the axes of parameters from which, and from no input, something is computed: learned queries or keys."""
        for tensor in tensors:
            if isinstance(tensor, nn.Parameter):
                self._layouts[tensor] = tuple(
                    (Axis(size, Origin(is_learned=True), (0, size)),) for size in tensor.shape
                )

    def _result_layouts(
        self,
        name: str,
        function: Callable[..., Any],
        args: Sequence[Any],
        keywords: Mapping[str, Any],
        operands: Sequence[Tensor],
        results: Sequence[Tensor],
    ) -> Iterator[Layout]:
        """Yield the layouts of the results of a function that is no product."""
        if name in VIEWS and args and args[0] is operands[0] and _is_simple(args[1:]):
            yield from self._views(name, function, args, keywords)
        elif name in CONCATENATE | STACK:
            yield self._layout_of_joined(name, args, keywords, results[0])
        else:
            layouts = [self.layout(tensor) for tensor in operands]
            first = layouts[0]
            for place, result in enumerate(results):
                # A function may change its argument in place, and return it.
                is_operand = any(result is operand for operand in operands)
                is_reduced = name in REDUCTIONS and result.ndim < len(first)
                if is_operand:
                    yield self.layout(result)
                elif name in RECURRENT and place and result.ndim == len(first) == 3:
                    batch_axis = 0 if args[-1] is True else 1
                    yield (
                        (Axis(len(result)),),
                        first[batch_axis],
                        (Axis(result.shape[2], FEATURES),),
                    )
                elif is_reduced:
                    yield _layout_of_sum(first, dim_of(args, keywords), result.shape)
                else:
                    yield _layout_of_others(name, layouts, result.shape)

    def _views(
        self,
        name: str,
        function: Callable[..., Any],
        args: Sequence[Any],
        keywords: Mapping[str, Any],
    ) -> Iterator[Layout]:
        """Yield the layouts of views of the first argument."""
        layout = self.layout(args[0])
        if name in REORDER:
            # A tensor of the sizes 2, 3, 4 and so on tells where each dimension goes, also those of size 1.
            probe = torch.empty(*range(2, len(layout) + 2), device="meta")
            yield tuple(
                (Axis(1),) if size == 1 else layout[size - 2]
                for size in function(probe, *args[1:], **keywords).shape
            )
            return
        # The same function arranges a tensor without numbers; the strides of the result tell where its axes are.
        probe = torch.empty(args[0].shape, device="meta")
        storage = probe.untyped_storage()._cdata
        for view in tensors_in([function(probe, *args[1:], **keywords)]):
            # A copy tells nothing, and neither does an empty part.
            if view.untyped_storage()._cdata != storage or view.numel() == 0:
                # Falcon's x[..., [-2], :] keeps the other dimensions.
                is_part = name == "__getitem__" and view.ndim == len(layout)
                # The patches of `torch.nn.functional.unfold` have the batch first.
                known = layout if is_part else layout[: int(name == "unfold")]
                yield _layout_of_others(name, [known], view.shape)
            else:
                yield _layout_of_view(layout, view)

    def _layout_of_joined(
        self, name: str, args: Sequence[Any], keywords: Mapping[str, Any], output: Tensor
    ) -> Layout:
        """Return the layout of tensors that are put one after the other along a dimension, or along a new one."""
        dim = dim_of(args, keywords) or 0
        if name == "pad_sequence":
            dim = int(not dim)  # it gets whether the batch is first
        dim %= output.ndim
        tensors = args[0] if args else keywords["tensors"]
        n_dims = output.ndim - (name in STACK)
        layouts = [self.layout(tensor) for tensor in tensors if tensor.ndim == n_dims]
        along = list(zip(*layouts, strict=True))
        joined = [_best(axes, len_of(axes[0])) for axes in along]
        if name in STACK:
            places = [place_of(layout[0]) for layout in layouts]
            # Inputs of one sentence each make a batch of sentences.
            are_sentences = all(place and len(self.inputs[place[0]]) == 1 for place in places)
            batch = Origin((places[0][0], 1)) if are_sentences and places[0] else None
            joined.insert(dim, (Axis(len(tensors), batch, (0, len(tensors)) if batch else None),))
        elif len(layouts) > 1 and len({*along[dim]}) == 1:
            joined[dim] = (Axis(len(layouts)), *layouts[0][dim])
        else:
            joined[dim] = (_joined(along[dim], output.shape[dim]),)
        return tuple(
            axes if len_of(axes) == size else _resized(axes, size)
            for axes, size in zip(joined, output.shape, strict=True)
        )

    def _product(
        self, name: str, args: Sequence[Any], keywords: Mapping[str, Any], output: Tensor
    ) -> Product | None:
        """Note the layout of a product, and return the roles of its dimensions; None for products of another form."""
        operands = list(tensors_in([args, *(keywords[key] for key in keywords if key != "out")]))
        if name in {"addmm", "baddbmm"}:  # its first argument is added to the product
            operands = operands[1:]
        if len(operands) != 2 or min(tensor.ndim for tensor in operands) < 1:
            return None
        first, second = operands[::-1] if name == "__rmatmul__" else operands
        if name != "einsum":
            letters = _letters_of_matmul(first.ndim, second.ndim)
        elif args and isinstance(args[0], str):
            letters = _letters(args[0].replace(" ", ""), first.ndim, second.ndim)
        else:
            return None
        layouts = (self.layout(first), self.layout(second))
        roles = (
            _roles(letters[0], layouts[0], letters[1], layouts[1], letters[2]),
            _roles(letters[1], layouts[1], letters[0], layouts[0], letters[2]),
        )
        result = _layout_of_product(letters, layouts)
        # A parameter counts as one also when it is turned, as in Falcon's `x @ weight.T`.
        are_tracked = [
            tensor in self._layouts
            and not all(axis.origin and axis.origin.is_learned for axes in layout for axis in axes)
            for tensor, layout in zip((first, second), layouts, strict=True)
        ]
        both = list(zip(roles, layouts, strict=True))
        summed = [axis for own, layout in both for axis in axes_of(layout, own, "summed")]
        if any(axis.normalised for own, layout in both for axis in axes_of(layout, own, "free")):
            pass  # weights times weights are weights
        elif all(are_tracked):
            is_mixing = any(axis.normalised or axis.is_of_scores for axis in summed)
            self.multiply_over(tuple(summed))
            result = _without_marks(result, is_of_scores=not is_mixing)
        elif any(are_tracked):
            own_roles, layout = both[are_tracked.index(True)]
            summed = axes_of(layout, own_roles, "summed")
            new = _origin_of_new(are_tracked, second, summed, is_einsum=name == "einsum")
            known = letters[are_tracked.index(True)]
            pairs = list(zip(letters[2], result, strict=True))
            result = tuple(
                axes if letter in known else (Axis(len_of(axes), new),) for letter, axes in pairs
            )
            # One number a token is a score, as in additive attention; a sum over heads mixes scores with scores.
            new_sizes = (len_of(axes) for letter, axes in pairs if letter not in known)
            is_score = math.prod(new_sizes) == 1
            if is_score or any(axis.normalised or axis.is_of_scores for axis in summed):
                result = _without_marks(result, is_of_scores=is_score)
        if any(are_tracked) and shape_of(result) == tuple(output.shape):
            self.note(output, result)
        return Product((first, second), roles)


def _origin_of_new(
    are_tracked: Sequence[bool], second: Tensor, summed: Sequence[Axis], *, is_einsum: bool
) -> Origin | None:
    """Return the origin of the axes that a product takes from its untracked operand, such as a matrix of parameters.

    `summed` are the axes that the product sums over.
    """
    # Keys may be projected to places that are learned (Wang et al. 2020, Linformer).
    if any(map(is_of_tokens, summed)):
        return Origin(is_learned=True)
    if is_einsum:
        return None
    if not are_tracked[0]:  # such as learned queries
        return Origin(is_learned=True)
    return FEATURES if second.ndim == 2 else None


def axes_of(layout: Layout, roles: Sequence[tuple[str, int | None]], role: str) -> list[Axis]:
    """Return the axes of the dimensions with this role in a product."""
    return [
        axis for axes, (own, _) in zip(layout, roles, strict=True) if own == role for axis in axes
    ]


def place_of(axes: Sequence[Axis]) -> tuple[int, int] | None:
    """Return the axis of an input that these axes run over, if there is one."""
    return next((axis.origin.place for axis in axes if axis.origin and axis.origin.place), None)


def is_of_tokens(axis: Axis) -> bool:
    """Return whether an axis runs over tokens for certain: an input's last axis may be one of features."""
    origin = axis.origin
    return (
        axis.is_sequence and origin is not None and origin.is_certain and not origin.is_of_numbers
    )


def _without_marks(layout: Layout, *, is_of_scores: bool = False) -> Layout:
    """Return a layout whose numbers are no weights, and scores only if `is_of_scores`."""
    return tuple(
        tuple(
            replace(axis, normalised=False, is_of_scores=is_of_scores and not axis.has_features)
            for axis in axes
        )
        for axes in layout
    )


def _joined(parts: Sequence[Dimension], size: int) -> Axis:
    """Return the axis of dimensions that are put one after the other."""
    axes = [axis for dimension in parts for axis in dimension if axis.origin is not None]
    origins = list(dict.fromkeys(axis.origin for axis in axes if axis.origin is not None))
    if len(origins) == 1 and len(axes) == len(parts):
        spans = [axis.span for axis in axes if axis.span is not None]
        is_known = len(spans) == len(axes) and origins[0] is not FEATURES
        hull = (
            (min(first for first, _ in spans), max(end for _, end in spans)) if is_known else None
        )
        return Axis(size, origins[0], hull)
    if any(origin in {FEATURES, OWN_FEATURES} for origin in origins):
        return Axis(size, FEATURES)
    places = [origin.place for origin in origins if origin.place is not None]
    is_one = (
        len({axis for _, axis in places}) == 1
    )  # the same axis of several inputs, such as a memory
    origin = Origin(place=places[0] if is_one else None, parts=frozenset(origins))
    return Axis(size, origin if origins else None, (0, size) if origins else None)


def _layout_of_sum(layout: Layout, dim: Any, shape: Sequence[int]) -> Layout:
    """Return the layout of sums over one dimension or several, which the result lacks."""
    dims = {place % len(layout) for place in ([dim] if isinstance(dim, int) else dim or ())}
    kept = tuple(axes for place, axes in enumerate(layout) if place not in dims)
    return kept if shape_of(kept) == tuple(shape) else tuple((Axis(size),) for size in shape)


def _layout_of_others(name: str, layouts: Sequence[Layout], shape: Sequence[int]) -> Layout:
    """Return the layout of any other function's result, by the sizes that it has in common with its operands.

    Most functions keep the axes of their operands or broadcast them. Linear layers and embeddings end with features.
    """
    if name == "embedding":
        return (*layouts[0][: len(shape) - 1], (Axis(shape[-1], FEATURES),))
    first = layouts[0]
    if name == "grid_sample":
        return (*first[:2], *((Axis(size),) for size in shape[2:]))
    candidates = _candidates(name, layouts, shape)
    combined = [_best(found, size) for size, found in zip(shape, candidates, strict=True)]
    if name in RESIZE and len(first) == len(shape):
        combined = [
            axes if any(axis.origin is not None for axis in axes) else _resized(before, size)
            for axes, before, size in zip(combined, first, shape, strict=True)
        ]
    if name in CONVOLUTIONS:
        combined[-int(name[4]) - 1] = (Axis(shape[-int(name[4]) - 1], FEATURES),)
    if name == "linear":
        is_projected = any(map(is_of_tokens, first[-1]))
        combined[-1] = (Axis(shape[-1], Origin(is_learned=True) if is_projected else FEATURES),)
        # Heads may be mixed (Shazeer et al. 2020, talking heads).
        are_scores = any(axis.is_of_scores for axes in first[:-1] for axis in axes)
        return _without_marks(tuple(combined), is_of_scores=are_scores or shape[-1] == 1)
    return tuple(combined)


def _resized(axes: Dimension, size: int) -> Dimension:
    """Return a dimension that runs over the same things as another, with another number of places."""
    origins = {axis.origin for axis in axes}
    return (Axis(size, origins.pop() if len(origins) == 1 else None),)


def _candidates(
    name: str, layouts: Sequence[Layout], shape: Sequence[int]
) -> list[list[Dimension]]:
    """Return, for each dimension of a result, the dimensions of the operands that it may be."""
    fits = [layout for layout in layouts if len(layout) <= len(shape)]
    if name not in {"linear", "__getitem__"} and tuple(shape) == _broadcast(
        [shape_of(layout) for layout in fits]
    ):
        # Operands are broadcast, so their dimensions meet at the end.
        dims = range(-len(shape), 0)
        return [[layout[dim] for layout in fits if dim >= -len(layout)] for dim in dims]
    known = [[axes] for axes in layouts[0][: len(shape)]]
    return known + [[] for _ in range(len(shape) - len(known))]


def _best(candidates: Sequence[Dimension], size: int) -> Dimension:
    """Return the dimension of this size of which most is known, the first of several."""
    fitting = [axes for axes in candidates if len_of(axes) == size]
    # A single query may be beside another dimension.
    return max(
        fitting,
        key=lambda axes: (_knowledge(axes), sum(axis.size == 1 for axis in axes)),
        default=(Axis(size),),
    )


def _knowledge(axes: Dimension) -> int:
    """Return how much is known of a dimension: 3 for an axis of an input or features, 0 for nothing."""
    origins = [axis.origin for axis in axes if axis.origin is not None]
    if any(axis.normalised or axis.has_features for axis in axes) or place_of(axes):
        return 3 + any(axis.is_of_scores for axis in axes)  # a mask is an input too
    return 2 * bool(origins) or int(len(axes) > 1)


def _layout_of_product(letters: Sequence[str], layouts: tuple[Layout, Layout]) -> Layout:
    """Return the layout of a product, given a letter for each dimension of the operands and of the result."""
    dimensions = []
    for letter in letters[2]:
        candidates = [
            layout[own.index(letter)]
            for own, layout in zip(letters, layouts, strict=False)
            if letter in own
        ]
        dimensions.append(_best(candidates, max(len_of(axes) for axes in candidates)))
    return tuple(dimensions)


def _roles(
    letters: str, layout: Layout, other_letters: str, other: Layout, result: str
) -> tuple[tuple[str, int | None], ...]:
    """Return the role of each dimension of an operand, and the dimension of the other operand that it meets."""
    roles: list[tuple[str, int | None]] = []
    for dim, letter in enumerate(letters):
        met = other_letters.find(letter)
        if letter not in result:
            roles.append(("summed", met if met >= 0 else None))
        elif met < 0 or len_of(other[met]) < len_of(layout[dim]):  # the other operand is broadcast
            roles.append(("free", None))
        else:
            roles.append(("shared", met))
    return tuple(roles)


def by_tensor() -> MutableMapping[Tensor, Any]:
    """Return an empty dictionary whose keys are tensors themselves, not their numbers, and are not kept alive."""
    return cast("MutableMapping[Tensor, Any]", WeakIdKeyDictionary())


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of a function of torch; of a property such as ``x.mT``, that of the property."""
    name = getattr(function, "__name__", "")
    return getattr(function, "__self__", function).__name__ if name == "__get__" else name


def dim_of(args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Return the dimension along which a function works, by position or by one of its two names; None without one."""
    named = keywords.get("dim", keywords.get("axis"))
    return args[1] if named is None and len(args) > 1 else named


def shape_of(layout: Layout) -> tuple[int, ...]:
    """Return the shape of a tensor with this layout."""
    return tuple(len_of(axes) for axes in layout)


def len_of(axes: Dimension) -> int:
    """Return the size of a dimension."""
    return math.prod(axis.size for axis in axes)


def tensors_in(values: Iterable[Any]) -> Iterator[Tensor]:
    """Yield all tensors among the values, also those in lists, tuples and dictionaries."""
    for value in values:
        if isinstance(value, Tensor):
            # Sparse and nested tensors have no axes to follow.
            if value.layout is torch.strided and not value.is_nested:
                yield value
        elif isinstance(value, Mapping):
            yield from tensors_in(value.values())
        elif isinstance(value, list | tuple):
            yield from tensors_in(value)


def _with_strides(layout: Layout) -> list[tuple[Axis, int]]:
    """Return all axes of a contiguous tensor, and how far apart its numbers along each of them are in memory."""
    axes: list[tuple[Axis, int]] = []
    stride = 1
    for axis in reversed([axis for dimension in layout for axis in dimension]):
        axes.insert(0, (axis, stride))
        stride *= axis.size
    return axes


def _layout_of_view(layout: Layout, view: Tensor) -> Layout:
    """Return the layout of a view of a contiguous tensor with this layout."""
    axes, offset = _with_strides(layout), int(view.storage_offset())
    dims = list(zip(view.shape, view.stride(), strict=True))
    left = [entry for entry in axes if entry[0].size > 1]  # the axes that no dimension has yet
    found = [
        (Axis(1),) if size == 1 else _axes_along(axes, size, stride, offset, left)
        for size, stride in dims
    ]
    # Of each axis that is left the view has one place, such as a class token.
    are_known = all(axis.origin for dimension in found for axis in dimension if axis.size > 1)
    units = [
        (replace(axis, size=1, span=_part_of(axis, offset // stride, 1, 1)), stride)
        for axis, stride in axes
        if axis.size == 1 or (are_known and (axis, stride) in left)
    ]
    # Strides alone do not tell several dimensions of size 1 apart: they keep their order, and the last gets all axes
    # that remain, as where batch and tokens are folded into one.
    unit_dims = [(dim, stride) for dim, (size, stride) in enumerate(dims) if size == 1]
    for place, (dim, stride) in enumerate(unit_dims):
        own = [entry for entry in units if entry[1] == stride]
        if any(other == stride for _, other in unit_dims[place + 1 :]):
            own = own[:1]
        units = [entry for entry in units if entry not in own]
        found[dim] = tuple(axis for axis, _ in own) or found[dim]
    if found:  # a place that no dimension has is kept beside the first, so that it is known later
        found[0] += tuple(axis for axis, _ in units if axis.is_sequence)
    return tuple(found)


def _axes_along(
    axes: Sequence[tuple[Axis, int]],
    size: int,
    stride: int,
    offset: int,
    left: list[tuple[Axis, int]],
) -> Dimension:
    """Return the axes that a dimension of a view runs over, given its size and stride, and take them out of `left`."""
    if stride == 0:  # a dimension that `expand` repeats
        return (Axis(size),)
    found: list[Axis] = []
    remaining, position = size, stride
    for entry in reversed(axes):
        axis, axis_stride = entry
        end = axis_stride * axis.size
        if remaining == 1 or not axis_stride <= position < end:
            continue
        if entry in left:
            left.remove(entry)
        # A dimension may run over a part of an axis: of a slice, or of an axis that is split into several.
        part = min(remaining, end // position)
        if position % axis_stride or remaining % part:
            return (Axis(size),)
        span = _part_of(axis, offset // axis_stride, part, position // axis_stride)
        found.insert(0, replace(axis, size=part, span=span))
        remaining //= part
        position = end
    return tuple(found) if remaining == 1 else (Axis(size),)


def _part_of(axis: Axis, start: int, n: int, step: int) -> tuple[int, int] | None:
    """Return the span of `n` places of an axis, `step` apart, of which the first is `start` (modulo its size)."""
    if axis.span is None or axis.has_features or axis.span[1] - axis.span[0] != axis.size:
        return None if axis.span is None or axis.has_features else axis.span
    first = axis.span[0] + start % axis.size
    return first, first + (n - 1) * step + 1


def _is_simple(args: Sequence[Any]) -> bool:
    """Return whether no argument selects numbers one by one, as in ``x[:, indices]``."""
    return not any(isinstance(index, Tensor) and index.ndim > 0 for index in tensors_in(args))


def _broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    try:
        return tuple(np.broadcast_shapes(*shapes)) if shapes else None
    except ValueError:  # they do not fit
        return None


def _letters(equation: str, n_first: int, n_second: int) -> list[str]:
    """Return the letters of an einsum equation for both operands and the result, with letters in place of "..."."""
    inputs, arrow, result = equation.partition("->")
    first, second = inputs.split(",")
    if not arrow:  # the result has the letters that only one operand has, in their order
        result = "..." * ("..." in inputs) + "".join(sorted({*first} ^ {*second} - {"."}))
    spare = [letter for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if letter not in equation]
    missing = [
        n - len(term.replace("...", "")) for n, term in ((n_first, first), (n_second, second))
    ]
    most = max(
        [n for n, term in zip(missing, (first, second), strict=True) if "..." in term], default=0
    )
    letters = [
        term.replace("...", "".join(spare[most - n : most]))
        for n, term in zip((*missing, most), (first, second, result), strict=True)
    ]
    return letters


def _letters_of_matmul(n_first: int, n_second: int) -> list[str]:
    """Return the letters of a matrix product as of an einsum: "abik,abkj->abij" for two operands of four dimensions."""
    batch = "abcdefgh"[: max(n_first, n_second, 2) - 2]
    first = batch[len(batch) - max(n_first - 2, 0) :] + ("ik" if n_first > 1 else "k")
    second = batch[len(batch) - max(n_second - 2, 0) :] + ("kj" if n_second > 1 else "k")
    return [first, second, batch + "i" * (n_first > 1) + "j" * (n_second > 1)]
