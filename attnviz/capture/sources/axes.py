"""Follow the axes of a model's inputs through the functions of torch.

A softmax result of shape (6, 5, 5) may belong to six sentences, to six heads, or to two sentences of three heads. Its
shape does not tell, but its history does: `AxisTracker` knows which axes the inputs had, and follows them through
views, products and all other functions, until attention weights are multiplied by values.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, cast

import numpy as np
import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from attnviz.errors import SettingsError

# The origin of an axis that was computed from the numbers of each token, such as the output of a linear layer.
FEATURES: Final = "features"
# The origin of an axis of an input over which queries and keys were multiplied.
OWN_FEATURES: Final = "features of an input"
NAMES: Final = ("batch", "head", "query", "key")  # the axes of weights in a record's order
# Functions that put the dimensions of their argument into another order, or a new one between them.
REORDER = frozenset(
    {"permute", "transpose", "swapaxes", "swapdims", "movedim", "moveaxis", "t", "adjoint"}
    | {"T", "mT", "H", "mH", "unsqueeze"}
)
# Functions that only arrange the numbers of their first argument.
VIEWS = REORDER | frozenset(
    {"view", "reshape", "view_as", "reshape_as", "flatten", "unflatten", "squeeze"}
    | {"expand", "expand_as", "broadcast_to", "select", "narrow", "__getitem__"}
    | {"chunk", "split", "split_with_sizes", "tensor_split", "unbind"}
)
CONCATENATE = frozenset({"cat", "concat", "concatenate"})
PRODUCTS = frozenset(
    {"matmul", "__matmul__", "__rmatmul__", "bmm", "mm", "addmm", "baddbmm", "einsum"}
)


@dataclass(frozen=True, slots=True)
class Axis:
    """A dimension of a tensor, or a factor of one: heads folded into the batch make one dimension of two axes."""

    size: int
    # The input, by its number, and its axis; FEATURES or OWN_FEATURES; or None if the origin is unknown.
    origin: tuple[int, int] | str | None = None
    normalised: bool = False  # whether a softmax made the numbers along this axis sum to 1

    @property
    def has_features(self) -> bool:
        """Whether it runs over features, and not over tokens."""
        return self.origin in {FEATURES, OWN_FEATURES}


Dimension: TypeAlias = tuple[Axis, ...]  # its axes, the outermost first
Layout: TypeAlias = tuple[Dimension, ...]


@dataclass(frozen=True, slots=True)
class Product:
    """A product of two tensors, as roles of the dimensions of each.

    A dimension is "shared" if both tensors have it and the result too, "summed" if the product sums over it, and "free"
    if only one of the tensors has it. `roles` holds, for each dimension of each operand, its role and the dimension of
    the other operand that it meets, if there is one.
    """

    operands: tuple[Tensor, Tensor]
    roles: tuple[tuple[tuple[str, int | None], ...], tuple[tuple[str, int | None], ...]]
    result: Layout


class AxisTracker:
    """The layouts of the tensors of one run; it keeps no tensor alive."""

    def __init__(self) -> None:
        self._layouts: MutableMapping[Tensor, Layout] = by_tensor()
        # The sizes of the axes of each input that may be its batch or its tokens.
        self.inputs: list[tuple[int, ...]] = []
        # Axes of inputs over which queries and keys were multiplied: they run over features, not over tokens.
        self._features: set[tuple[int, int]] = set()

    def begin(self, *inputs: Any) -> None:
        """Name the axes of the tensors among the inputs, which may be in lists and dictionaries."""
        for tensor in tensors_in(inputs):
            if tensor in self._layouts or tensor.ndim == 0:
                continue
            number = len(self.inputs)
            layout = [(Axis(size, (number, axis)),) for axis, size in enumerate(tensor.shape)]
            # Of one sentence, (token, d), only the first axis is certain.
            has_features = tensor.is_floating_point() and tensor.ndim == 2
            self.inputs.append(tuple(tensor.shape[:-1] if has_features else tensor.shape))
            self._layouts[tensor] = tuple(layout)

    def n_batch(self, keys: tuple[int, int] | None = None) -> int:
        """Return the number of sentences in the batch, if the keys run over this axis of an input."""
        number, axis = keys or (0, 1)
        sizes = self.inputs[number] if self.inputs else ()
        # Where the keys run over the first axis, the batch is the second, as in torch's own Transformer.
        batch_axis = 1 if axis == 0 else 0
        return sizes[batch_axis] if batch_axis < len(sizes) else 1

    def is_whole(self, axis: Axis) -> bool:
        """Return whether an axis is a whole axis of an input, and not a part of one."""
        return isinstance(axis.origin, tuple) and self.n_tokens(axis.origin) == axis.size

    def n_tokens(self, keys: tuple[int, int]) -> int | None:
        """Return the size of this axis of an input; None if it may not be one of tokens."""
        sizes = self.inputs[keys[0]]
        return sizes[keys[1]] if keys[1] < len(sizes) else None

    def layout(self, tensor: Tensor) -> Layout:
        """Return the layout of a tensor; its axes have no origin if they are unknown."""
        layout = self._layouts.get(tensor)
        # A tensor that was resized in place has another shape than when its layout was noted.
        if layout is None or shape_of(layout) != tuple(tensor.shape):
            return tuple((Axis(size),) for size in tensor.shape)
        return tuple(tuple(map(self._known, axes)) for axes in layout)

    def multiply_over(self, axes: Dimension) -> None:
        """Note that queries and keys are multiplied over a dimension, unless it is one of weights."""
        if not any(axis.normalised for axis in axes):
            self._features |= {axis.origin for axis in axes if isinstance(axis.origin, tuple)}

    def _known(self, axis: Axis) -> Axis:
        """Return an axis with the origin that is known of it now."""
        return replace(axis, origin=OWN_FEATURES) if axis.origin in self._features else axis

    def note(self, tensor: Tensor, layout: Layout) -> None:
        """Note the layout of a tensor."""
        self._layouts[tensor] = layout

    def normalise(self, tensor: Tensor, dim: int) -> None:
        """Note that a softmax made the numbers along a dimension of the tensor sum to 1."""
        layout = [
            tuple(replace(axis, normalised=False) for axis in axes) for axes in self.layout(tensor)
        ]
        layout[dim] = tuple(replace(axis, normalised=True) for axis in layout[dim])
        self._layouts[tensor] = tuple(layout)

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
            product = self._product(name, args, keywords)
            if product is not None:
                if shape_of(product.result) == tuple(output.shape):
                    self._layouts[output] = product.result
                return product
        results = list(tensors_in([output]))
        operands = [tensor for tensor in tensors_in([args, keywords]) if tensor in self._layouts]
        if results and operands:
            self._layouts.update(
                zip(
                    results,
                    self._result_layouts(name, function, args, keywords, operands, results),
                    strict=True,
                )
            )
        return None

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
        elif name in CONCATENATE:
            yield self._layout_of_cat(args, keywords, results[0])
        else:
            layouts = [self.layout(tensor) for tensor in operands]
            for result in results:
                # A function may change its argument in place, and return it.
                is_operand = any(result is operand for operand in operands)
                yield (
                    self.layout(result)
                    if is_operand
                    else _layout_of_others(name, layouts, result.shape)
                )

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
                yield _layout_of_others(name, [layout] if is_part else [()], view.shape)
                continue
            axes = _with_strides(layout)
            strides = [
                stride for size, stride in zip(view.shape, view.stride(), strict=True) if size == 1
            ]
            yield tuple(
                _units_along(axes, stride, strides)
                if size == 1
                else _axes_along(axes, size, stride)
                for size, stride in zip(view.shape, view.stride(), strict=True)
            )

    def _layout_of_cat(
        self, args: Sequence[Any], keywords: Mapping[str, Any], output: Tensor
    ) -> Layout:
        """Return the layout of tensors that are put one after the other along a dimension."""
        dim = (dim_of(args, keywords) or 0) % output.ndim
        tensors = args[0] if args else keywords["tensors"]
        layouts = [self.layout(tensor) for tensor in tensors if tensor.ndim == output.ndim]
        known = max(layouts, key=lambda layout: sum(axes[0].origin is not None for axes in layout))
        joined = list(known)
        if len(layouts) > 1 and all(layout == known for layout in layouts):
            joined[dim] = (Axis(len(layouts)), *known[dim])
        else:
            origins = {axes[dim][0].origin for axes in layouts} - {None}
            joined[dim] = (Axis(output.shape[dim], origins.pop() if len(origins) == 1 else None),)
        return tuple(joined)

    def _product(
        self, name: str, args: Sequence[Any], keywords: Mapping[str, Any]
    ) -> Product | None:
        """Return a product's operands and the roles of their dimensions; None for products of another form."""
        operands = list(tensors_in([args, keywords]))
        if name in {"addmm", "baddbmm"}:  # its first argument is added to the product
            operands = operands[1:]
        if len(operands) != 2 or min(tensor.ndim for tensor in operands) < 1:
            return None
        first, second = operands[::-1] if name == "__rmatmul__" else operands
        if name != "einsum":
            letters = _letters_of_matmul(first.ndim, second.ndim)
        elif args and isinstance(args[0], str) and "->" in args[0]:
            letters = _letters(args[0].replace(" ", ""), first.ndim, second.ndim)
        else:
            return None
        layouts = (self.layout(first), self.layout(second))
        result = _layout_of_product(letters, layouts)
        # The columns of a matrix of parameters are features.
        if second not in self._layouts and second.ndim == 2 and name != "einsum":
            result = (*result[:-1], (Axis(second.shape[-1], FEATURES),))
        roles = (
            _roles(letters[0], layouts[0], letters[1], layouts[1], letters[2]),
            _roles(letters[1], layouts[1], letters[0], layouts[0], letters[2]),
        )
        if first in self._layouts and second in self._layouts:
            places = zip(itertools.chain(*roles), itertools.chain(*layouts), strict=True)
            summed = [axes for (role, _), axes in places if role == "summed"]
            self.multiply_over(tuple(itertools.chain(*summed)))
        return Product((first, second), roles, result)


def _layout_of_others(name: str, layouts: Sequence[Layout], shape: Sequence[int]) -> Layout:
    """Return the layout of any other function's result, by the sizes that it has in common with its operands.

    Most functions keep the axes of their operands or broadcast them. Linear layers and embeddings end with features.
    """
    if name == "embedding":
        return (*layouts[0], (Axis(shape[-1], FEATURES),))
    candidates = _candidates(name, layouts, shape)
    combined = [
        _best([axes for axes in found if len_of(axes) == size], size)
        for size, found in zip(shape, candidates, strict=True)
    ]
    if name == "linear":
        combined[-1] = (Axis(shape[-1], FEATURES),)
    return tuple(combined)


def _candidates(
    name: str, layouts: Sequence[Layout], shape: Sequence[int]
) -> list[list[Dimension]]:
    """Return, for each dimension of a result, the dimensions of the operands that it may be."""
    fits = [layout for layout in layouts if len(layout) <= len(shape)]
    if name != "linear" and tuple(shape) == _broadcast([shape_of(layout) for layout in fits]):
        # Operands are broadcast, so their dimensions meet at the end.
        dims = range(-len(shape), 0)
        return [[layout[dim] for layout in fits if dim >= -len(layout)] for dim in dims]
    known = [[axes] for axes in layouts[0][: len(shape)]]
    return known + [[] for _ in range(len(shape) - len(known))]


def _best(candidates: Sequence[Dimension], size: int) -> Dimension:
    """Return the dimension of which most is known, the first of several."""
    for axes in candidates:
        if len(axes) > 1 or axes[0].origin is not None or axes[0].normalised:
            return axes
    return (Axis(size),)


def _layout_of_product(letters: Sequence[str], layouts: tuple[Layout, Layout]) -> Layout:
    """Return the layout of a product, given a letter for each dimension of the operands and of the result."""
    dimensions = []
    for letter in letters[2]:
        candidates = [
            layout[own.index(letter)]
            for own, layout in zip(letters, layouts, strict=False)
            if letter in own
        ]
        size = max(len_of(axes) for axes in candidates)
        dimensions.append(_best([axes for axes in candidates if len_of(axes) == size], size))
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


def _units_along(axes: list[tuple[Axis, int]], stride: int, strides: list[int]) -> Dimension:
    """Return the axes of size 1 that a dimension of size 1 runs over, and take them out of the list.

    Strides alone do not tell several of them apart: they keep their order. `strides` holds those of the dimensions of
    size 1 that are left; the last with this stride gets all that remain, as where batch and tokens are folded into one.
    """
    strides.remove(stride)
    units = [entry for entry in axes if entry[0].size == 1 and entry[1] == stride]
    if stride in strides:
        units = units[:1]
    for unit in units:
        axes.remove(unit)
    return tuple(axis for axis, _ in units) or (Axis(1),)


def _axes_along(axes: list[tuple[Axis, int]], size: int, stride: int) -> Dimension:
    """Return the axes that a dimension of a view runs over, given its size and stride."""
    if stride == 0:  # a dimension that `expand` repeats
        return (Axis(size),)
    found: list[Axis] = []
    left, position = size, stride
    for axis, axis_stride in reversed(axes):
        end = axis_stride * axis.size
        if left == 1 or not axis_stride <= position < end:
            continue
        # A dimension may run over a part of an axis: of a slice, or of an axis that is split into several.
        part = min(left, end // position)
        if position % axis_stride or left % part:
            return (Axis(size),)
        found.insert(0, replace(axis, size=part))
        left //= part
        position = end
    return tuple(found) if left == 1 else (Axis(size),)


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
    inputs, result = equation.split("->")
    first, second = inputs.split(",")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrangement:
    """Which axis of attention weights is the batch, the heads, the queries or the keys.

    A dimension of the weights may consist of several axes; `sizes` and `names` list the axes of all dimensions, in
    their order in memory.
    """

    sizes: tuple[int, ...]
    names: tuple[str, ...]  # "batch", "head", "query" or "key"
    query_origin: tuple[int, int] | None = None
    key_origin: tuple[int, int] | None = None

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
        if role == "shared" and values is not None and link is not None:
            other = values[link]
            if any(isinstance(axis.origin, tuple) for axis in other) or len(other) > len(dimension):
                known = other
        axes += [(axis, role) for axis in known]
    key_origin = sequence_of([axis for axis, role in axes if role == "summed"])
    query_origin = sequence_of([axis for axis, role in axes if role == "free"])
    batch_axis = 1 if key_origin is not None and key_origin[1] == 0 else 0
    shared = [axis for axis, role in axes if role == "shared"]
    has_features = any(axis.has_features for axis in shared)
    # Queries, keys and values that are inputs themselves, (batch, head, token, d), have an axis of heads.
    are_inputs = values is not None and any(
        isinstance(axis.origin, tuple) or axis.origin == OWN_FEATURES for axis in values[-1]
    )
    names = []
    for axis, role in axes:
        if role == "summed":
            names.append("key")
        elif role == "free":
            # Heads may share their values, and a library may put the heads of one query into rows.
            names.append("head" if axis.has_features else "query")
        elif isinstance(axis.origin, tuple) and axis.origin[1] == batch_axis:
            names.append("batch")
        elif axis.size > 1 and (
            not (are_inputs and tracker.is_whole(axis))
            if isinstance(axis.origin, tuple)
            else has_features and axis.origin is None
        ):
            # Part of a sequence, such as the windows of a picture; or another axis of the input, such as the channels
            # of a signal, each of which attends alone.
            return None
        else:
            names.append("head")
    arrangement = Arrangement(
        sizes=tuple(axis.size for axis, _ in axes),
        names=tuple(names),
        query_origin=query_origin,
        key_origin=key_origin,
    )
    n = tracker.n_batch(key_origin)
    if n == 1 or "batch" in names:
        return _without_units(arrangement)
    # The history of the batch was lost: its size may still tell.
    first = roles[0][0] == "shared" and len_of(layout[0]) == n
    if not first or any(axis.has_features for axis in layout[0]):
        return None
    return _without_units(replace(arrangement, names=("batch", *names[1:])))


def parse_axes(axes: str) -> list[list[str]]:
    """Return the names in a text such as "(batch head) query key", one list for each axis.

    Raises SettingsError: it is no such list of names.
    """
    groups = [group.strip("()").split() for group in re.findall(r"\([^()]*\)|[^\s()]+", axes)]
    named = [name for group in groups for name in group]
    if sorted(named) != sorted({*named} & {*NAMES}) or "key" not in named:
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
        if len(group) != 2 or "batch" not in group or size % n_batch:
            raise SettingsError(
                f"{axes!r} does not fit weights of shape {tuple(shape)} of {n_batch} inputs", "axes"
            )
        sizes += [n_batch if name == "batch" else size // n_batch for name in group]
    return Arrangement(sizes=tuple(sizes), names=tuple(itertools.chain(*groups)))


def sequence_of(axes: Sequence[Axis]) -> tuple[int, int] | None:
    """Return the axis of an input that these axes run over, if there is one."""
    return next((axis.origin for axis in axes if isinstance(axis.origin, tuple)), None)


def _without_units(arrangement: Arrangement) -> Arrangement:
    """Leave out axes of size 1 beside another axis of the same name, so that usual weights are recognised."""
    names, sizes = arrangement.names, arrangement.sizes
    kept = [place for place, name in enumerate(names) if sizes[place] > 1 or names.count(name) == 1]
    return replace(
        arrangement,
        names=tuple(names[place] for place in kept),
        sizes=tuple(sizes[place] for place in kept),
    )
