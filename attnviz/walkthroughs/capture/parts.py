"""The parts of a layer: attention, in some decoders cross attention, and the feed-forward network.

No model family is named. The parts are found by following the numbers: what a part makes is added to what came in, and
some later module reads that sum. Norms stand before the parts (pre-norm), after the sums (post-norm), or between a
part and its sum. A module counts as a norm if a norm with its weights makes the same numbers, so a family's own class
is recognised as well as the library's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnviz.capture.projections import (
    Call,
    Projection,
    ProjectionCollector,
    is_linear,
    norm_of,
    projection_of,
)
from attnviz.errors import NoAttentionError

CLOSE = 1e-5  # two tensors count as equal up to this, relative to the largest number

Vectors = Float[Tensor, "token d_model"]
Activation = Literal["relu", "gelu", "gelu_tanh", "silu"]

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "relu": nn.functional.relu,
    "gelu": nn.functional.gelu,
    "gelu_tanh": partial(nn.functional.gelu, approximate="tanh"),
    "silu": nn.functional.silu,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Norm:
    """A norm that has run."""

    operation: Literal["norm", "rms_norm"]  # the name of the step's operation
    given: Vectors
    made: Vectors
    gain: Float[Tensor, " d_model"]
    shift: Float[Tensor, " d_model"]  # zeros for a root mean square norm
    epsilon: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedForwardCalls:
    """A feed-forward network that has run."""

    widen: Projection
    gate: Projection | None  # in a gated network, whose activation is multiplied with `widen`
    activation: Activation  # follows `gate`, or `widen` where there is no gate
    narrow: Projection
    made: Vectors


Work = Projection | FeedForwardCalls  # the output projection of attention, or the network


@dataclass(frozen=True, slots=True, kw_only=True)
class SubLayer:
    """One part of a layer, with its norms and the residual sum that follows it."""

    before: Norm | None  # of what comes in
    read: Vectors
    work: Work
    inside: Norm | None  # of what the part makes, before that is added
    after: Norm | None  # of the sum
    made: Vectors  # the sum, or the norm of it
    next_reads: tuple[tuple[Norm | None, Vectors], ...]  # what the next part may read


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerParts:
    """A whole layer."""

    x: Vectors  # its input
    parts: tuple[SubLayer, ...]
    made: Vectors  # its output


def parts_of(name: str, keep: ProjectionCollector, cross: ProjectionCollector | None) -> LayerParts:
    """Return the parts of a layer. Raises NoAttentionError: the layer is built otherwise."""
    if keep.cells():
        raise NoAttentionError(
            f"{name} has no layer to walk whole: it is recurrent, one cell that looks once a step; follow "
            "that from its query to what the cell reads"
        )
    reader = _LayerReader([*keep.before, *keep.after])
    layer = reader.read(keep, cross)
    if layer is None:
        raise NoAttentionError(
            f"{name}: layer {keep.layer.number} cannot be walked whole: it has no {reader.missing}"
        )
    return layer


Finder = Callable[[Vectors], Iterator[tuple[Work, Vectors]]]
"""Finds what may read some vectors, and what it makes."""

SUMMED = "with one output projection, whose result is added to what came in"
NETWORK = (
    "feed-forward network of two projections, or three with a gate, with ReLU, GELU or SiLU,"
    " whose result is added to what came in"
)


class _LayerReader:
    """Reads a layer from the calls of its modules."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._calls = [call for call in calls if call.given.is_floating_point()]
        self._linear_calls = [call for call in self._calls if is_linear(call.module)]
        self._finders: dict[str, Finder] = {}
        self._n_found = 0  # parts of the best reading

    @property
    def missing(self) -> str:
        """The first part that was not found."""
        return list(self._finders)[self._n_found]

    def read(
        self, keep: ProjectionCollector, cross: ProjectionCollector | None
    ) -> LayerParts | None:
        """Return the layer; None where it is not found."""
        self._finders[f"attention {SUMMED}"] = lambda _: self._find_output(keep)
        if cross is not None:
            self._finders[f"cross attention {SUMMED}"] = partial(self._find_cross, cross)
        self._finders[NETWORK] = self._find_networks
        query, key, value, _ = keep.projections()
        made_from = [found.given for found in (value, key, query) if found is not None]
        if not made_from:
            return None
        read = made_from[0]
        for has_norms_after in (True, False):
            layer = self._follow(read, (None, read), has_norms_after=has_norms_after)
            if layer is not None:
                return layer
        for norm in self._norms(call for call in self._calls if is_close(in_rows(call.made), read)):
            layer = self._follow(norm.given, (norm, read), has_norms_after=False)
            if layer is not None:
                return layer
        return None

    def _follow(
        self, x: Vectors, read: tuple[Norm | None, Vectors], *, has_norms_after: bool
    ) -> LayerParts | None:
        """Follow the stream x from sum to sum; None where a part is not found."""
        parts: list[SubLayer] = []
        stream = x
        reads: tuple[tuple[Norm | None, Tensor], ...] = (read,)
        for find in self._finders.values():
            part = self._find_part(stream, reads, find, has_norm_after=has_norms_after)
            if part is None:
                return None
            parts.append(part)
            self._n_found = max(self._n_found, len(parts))
            stream, reads = part.made, part.next_reads
        return LayerParts(x=x, parts=tuple(parts), made=stream)

    def _find_part(
        self,
        stream: Vectors,
        reads: Iterable[tuple[Norm | None, Vectors]],
        find: Finder,
        *,
        has_norm_after: bool,
    ) -> SubLayer | None:
        for before, read in reads:
            for work, made in find(read):
                for inside in (None, *self._norms(self._calls_given(made))):
                    added = made if inside is None else inside.made
                    if added.shape != stream.shape:
                        continue
                    readers = self._calls_given(stream + added)
                    after = next(self._norms(readers), None) if has_norm_after else None
                    next_reads: tuple[tuple[Norm | None, Vectors], ...]
                    if after is not None:
                        made_of_sum, next_reads = after.made, ((None, after.made),)
                    elif not has_norm_after and (next_reads := tuple(_reads(readers))):
                        made_of_sum = in_rows(readers[0].given)
                    else:
                        continue
                    return SubLayer(
                        before=before,
                        read=read,
                        work=work,
                        inside=inside,
                        after=after,
                        made=made_of_sum,
                        next_reads=next_reads,
                    )
        return None

    def _find_output(self, keep: ProjectionCollector) -> Iterator[tuple[Projection, Vectors]]:
        """Yield the output projections that are given the contexts of all heads."""
        contexts = in_rows(keep.layer.output.flatten(2))  # (B, Q, H, d) -> (B, Q, H * d) -> (Q, ..)
        for call in self._linear_calls:
            if is_close(in_rows(call.given), contexts):
                yield _columns(call), in_rows(call.made)

    def _find_cross(
        self, cross: ProjectionCollector, read: Vectors
    ) -> Iterator[tuple[Projection, Vectors]]:
        query = cross.projections()[0]
        if query is None or is_close(query.given, read):
            yield from self._find_output(cross)

    def _find_networks(self, read: Vectors) -> Iterator[tuple[FeedForwardCalls, Vectors]]:
        """Yield the feed-forward networks that read these vectors."""
        widened: list[tuple[Projection, Tensor]] = []
        for call in self._linear_calls:
            if is_close(in_rows(call.given), read):
                made, width = in_rows(call.made), call.made.shape[2]
                widened.append((_columns(call), made))
                if width % 2 == 0:  # one fused projection may make the gate and what it opens
                    half = width // 2
                    widened.append((_columns(call, 0, half), made[:, :half]))
                    widened.append((_columns(call, half, width), made[:, half:]))
        for call in self._linear_calls:
            network = _network_into(call, widened)
            if network is not None:
                yield network, network.made

    def _norms(self, calls: Iterable[Call]) -> Iterator[Norm]:
        for call in calls:
            norm = read_norm(call)
            if norm is not None:
                yield norm

    def _calls_given(self, vectors: Vectors) -> list[Call]:
        return [call for call in self._calls if is_close(in_rows(call.given), vectors)]


def _reads(readers: Sequence[Call]) -> Iterator[tuple[Norm | None, Vectors]]:
    """Yield what the next part may read of a sum: the sum itself, or a norm of it."""
    for call in readers:
        if is_linear(call.module):
            yield None, in_rows(call.given)
        norm = read_norm(call)
        if norm is not None:
            yield norm, norm.made


def _network_into(
    last: Call, widened: Sequence[tuple[Projection, Tensor]]
) -> FeedForwardCalls | None:
    """Return the network that ends in a projection and begins with some of these; None if none fits."""
    given = in_rows(last.given)
    fitting = [(projection, made) for projection, made in widened if made.shape == given.shape]
    smallest = closeness(given)
    best: tuple[Activation, Projection, Projection | None] | None = None
    for activation, function in ACTIVATIONS.items():
        for projection, made in fitting:
            active = function(made)
            if (error := distance(active, given)) <= smallest:
                smallest, best = error, (activation, projection, None)
            for other, opened in fitting:
                if (
                    other is not projection
                    and (error := distance(active * opened, given)) <= smallest
                ):
                    smallest, best = error, (activation, other, projection)
    if best is None:
        return None
    activation, widen, gate = best
    return FeedForwardCalls(
        widen=widen,
        gate=gate,
        activation=activation,
        narrow=_columns(last),
        made=in_rows(last.made),
    )


def _columns(call: Call, first: int = 0, last: int | None = None) -> Projection:
    projection = projection_of(call, first, call.made.shape[2] if last is None else last)
    assert projection is not None
    return projection


def read_norm(call: Call) -> Norm | None:
    """Return the norm that a module is; None where no norm with its weights makes the same numbers."""
    if call.given.shape != call.made.shape:
        return None
    given, made = in_rows(call.given), in_rows(call.made)
    if isinstance(call.module, nn.LayerNorm):
        gain, shift, epsilon = norm_of(call)
        return Norm(
            operation="norm", given=given, made=made, gain=gain, shift=shift, epsilon=epsilon
        )
    weight = getattr(call.module, "weight", None)
    if not isinstance(weight, Tensor) or weight.shape != made.shape[1:]:
        return None
    epsilons = [
        value for value in vars(call.module).values() if type(value) is float and 0 <= value < 1
    ]
    epsilons.append(torch.finfo(made.dtype).eps)  # torch's own, where a module has none
    # Gemma's gain is 1 plus its weight.
    candidates = [(gain, epsilon) for gain in (weight, 1 + weight) for epsilon in epsilons]
    errors = [distance(_rms_norm(given, *candidate), made) for candidate in candidates]
    if min(errors) > closeness(made):
        return None
    gain, epsilon = candidates[errors.index(min(errors))]
    shift = torch.zeros_like(weight)
    return Norm(
        operation="rms_norm", given=given, made=made, gain=gain, shift=shift, epsilon=epsilon
    )


# Zhang and Sennrich 2019, equation 4
def _rms_norm(x: Tensor, gain: Tensor, epsilon: float) -> Tensor:
    x = _double(x)
    return x / (x.square().mean(dim=1, keepdim=True) + epsilon).sqrt() * _double(gain)


def in_rows(x: Tensor) -> Float[Tensor, "token width"]:
    """Return the vectors of one sentence, a row for each token."""
    return x.flatten(0, -2)


def is_close(one: Tensor, other: Tensor) -> bool:
    """Return whether two tensors are equal up to rounding."""
    return one.shape == other.shape and distance(one, other) <= closeness(other)


def distance(one: Tensor, other: Tensor) -> float:
    """Return the largest difference of two tensors of one shape."""
    return (_double(one) - _double(other)).abs().max().item()


def closeness(numbers: Tensor) -> float:
    """Return how far others may be from these numbers, farther in half precision."""
    return max(CLOSE, 2 * torch.finfo(numbers.dtype).eps) * numbers.abs().max().item()


def _double(numbers: Tensor) -> Tensor:
    # on the CPU, since not every device has double precision
    return numbers.detach().to("cpu", torch.float64)
