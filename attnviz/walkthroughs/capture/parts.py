"""The parts of a layer: attention, in some decoders cross attention, and the feed-forward network.

No model family is named. The parts are found by following the numbers: what a part makes is added to what came in, and
some later module reads that sum. Norms stand before the parts (pre-norm) or after the sums (post-norm). A module counts
as a norm if a norm with its weights makes the same numbers, so a family's own class is recognized as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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


Work = Projection | FeedForwardCalls  # the output projection of attention, or the network


@dataclass(frozen=True, slots=True, kw_only=True)
class SubLayer:
    """One part of a layer, with its norms and the residual sum that follows it."""

    before: Norm | None  # of what comes in
    read: Vectors
    work: Work
    after: Norm | None  # of the sum
    made: Vectors  # the sum, or the norm of it


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerParts:
    """A whole layer."""

    x: Vectors  # its input
    parts: tuple[SubLayer, ...]
    made: Vectors  # its output


SUMMED = "with one output projection, whose result is added to what came in"
NETWORK = (
    "feed-forward network of two projections, or three with a gate, with ReLU, GELU or SiLU,"
    " whose result is added to what came in"
)


def parts_of(name: str, keep: ProjectionCollector, cross: ProjectionCollector | None) -> LayerParts:
    """Return the parts of a layer. Raises NoAttentionError: the layer is built otherwise."""
    if keep.cells():
        raise NoAttentionError(
            f"{name} is recurrent: it has no layer to follow as a whole; follow one query of it instead"
        )
    calls = [call for call in (*keep.before, *keep.after) if call.given.is_floating_point()]
    sources = [projection.given for projection in keep.projections()[:3] if projection is not None]
    missing = f"attention {SUMMED}"
    if sources:
        # Post-norm, then pre-norm; a first layer may read its input without a norm.
        read = sources[-1]
        norms = [norm for norm in map(read_norm, calls) if norm and is_close(norm.made, read)]
        starts = [(read, None, True), (read, None, False)]
        for x, norm, is_post_norm in [*starts, *((norm.given, norm, False) for norm in norms)]:
            parts = list(_follow(calls, keep, cross, (norm, read), x, is_post_norm))
            names = [f"attention {SUMMED}", f"cross attention {SUMMED}", NETWORK]
            if cross is None:
                del names[1]
            if len(parts) == len(names):
                return LayerParts(x=x, parts=tuple(parts), made=parts[-1].made)
            if parts:
                missing = names[len(parts)]
    raise NoAttentionError(f"{name}: layer {keep.layer.number} cannot be followed: no {missing}")


def _follow(
    calls: Sequence[Call],
    keep: ProjectionCollector,
    cross: ProjectionCollector | None,
    read: tuple[Norm | None, Vectors],
    stream: Vectors,
    is_post_norm: bool,
) -> Iterator[SubLayer]:
    """Yield the parts of a layer in turn, from sum to sum, up to the first that is not found."""
    reads = [read]
    for collector in [keep, None] if cross is None else [keep, cross, None]:
        part = _find_part(calls, collector, reads, stream, is_post_norm)
        if part is None:
            return
        yield part
        stream = part.made
        reads = [(None, stream)]
        if not is_post_norm:
            norms = map(read_norm, _calls_given(calls, stream))
            reads += [(norm, norm.made) for norm in norms if norm is not None]


def _find_part(
    calls: Sequence[Call],
    attention: ProjectionCollector | None,
    reads: Sequence[tuple[Norm | None, Vectors]],
    stream: Vectors,
    is_post_norm: bool,
) -> SubLayer | None:
    """Return the part whose result is added to the stream; without attention it is the network."""
    for before, read in reads:
        if attention is None:
            found = _find_network(calls, read)
        else:
            query = attention.projections()[0]
            if query is not None and not is_close(query.given, read):
                continue
            found = _find_output(calls, attention)
        for work, made in found:
            if made.shape != stream.shape:
                continue
            readers = _calls_given(calls, stream + made)
            norms = [norm for norm in map(read_norm, readers) if norm is not None]
            if is_post_norm and norms:
                return SubLayer(
                    before=before, read=read, work=work, after=norms[0], made=norms[0].made
                )
            if not is_post_norm and (norms or any(is_linear(call.module) for call in readers)):
                total = in_rows(readers[0].given)
                return SubLayer(before=before, read=read, work=work, after=None, made=total)
    return None


def _find_output(
    calls: Sequence[Call], attention: ProjectionCollector
) -> Iterator[tuple[Work, Vectors]]:
    """Yield the output projections that are given the contexts of all heads."""
    contexts = in_rows(attention.layer.output.flatten(2))  # (B, Q, H, d) -> (Q, H * d)
    for call in _calls_given(calls, contexts):
        if is_linear(call.module):
            yield _columns(call), in_rows(call.made)


def _find_network(calls: Sequence[Call], read: Vectors) -> Iterator[tuple[Work, Vectors]]:
    """Yield the feed-forward networks that read these vectors."""
    widened: list[tuple[Projection, Tensor]] = []
    for call in _calls_given(calls, read):
        if is_linear(call.module):
            made, width = in_rows(call.made), call.made.shape[2]
            widened.append((_columns(call), made))
            if width % 2 == 0:  # one fused projection may make the gate and what it opens
                half = width // 2
                widened.append((_columns(call, 0, half), made[:, :half]))
                widened.append((_columns(call, half, width), made[:, half:]))
    for call in calls:
        network = _network_into(call, widened) if is_linear(call.module) else None
        if network is not None:
            yield network, in_rows(call.made)


def _network_into(
    last: Call, widened: Sequence[tuple[Projection, Tensor]]
) -> FeedForwardCalls | None:
    """Return the network that ends in a projection and begins with some of these; None if none fits."""
    given = in_rows(last.given)
    fitting = [(projection, made) for projection, made in widened if made.shape == given.shape]
    candidates: list[tuple[float, Activation, Projection, Projection | None]] = []
    for activation, function in ACTIVATIONS.items():
        for projection, made in fitting:
            active = function(made)
            candidates.append((distance(active, given), activation, projection, None))
            for other, opened in fitting:
                if other is not projection:
                    error = distance(active * opened, given)
                    candidates.append((error, activation, other, projection))
    if not candidates:
        return None
    error, activation, widen, gate = min(candidates, key=lambda candidate: candidate[0])
    if error > closeness(given):
        return None
    return FeedForwardCalls(widen=widen, gate=gate, activation=activation, narrow=_columns(last))


def _calls_given(calls: Sequence[Call], vectors: Vectors) -> list[Call]:
    return [call for call in calls if is_close(in_rows(call.given), vectors)]


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
