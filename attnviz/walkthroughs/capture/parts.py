"""The parts of a layer: attention, in some decoders cross attention, and the feed-forward network.

The code knows no model family. It finds the parts by following the numbers: the output of a part is added to its input
(the residual stream), and a later module reads that sum. Norms come before the parts (pre-norm) or after the sums
(post-norm). A module counts as a norm if a norm with its weights gives the same numbers, so that norm classes of model
families are recognized as well.
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

CLOSE = 1e-5  # tolerance for equal tensors, relative to the largest number

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
    """A call of a norm, with its input and output."""

    operation: Literal["norm", "rms_norm"]  # the name of the operation in a walkthrough
    input: Vectors
    output: Vectors
    gain: Float[Tensor, " d_model"]
    shift: Float[Tensor, " d_model"]  # zeros for a root mean square norm
    epsilon: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedForwardCalls:
    """The projections and the activation of a feed-forward network."""

    widen: Projection
    # only in a gated network, which multiplies the activation of `gate` by the result of `widen`
    gate: Projection | None
    activation: Activation  # follows `gate`, or `widen` if there is no gate
    narrow: Projection


Computation = Projection | FeedForwardCalls  # the output projection of attention, or the network


@dataclass(frozen=True, slots=True, kw_only=True)
class SubLayer:
    """One part of a layer, with its norms and the residual sum that follows it."""

    pre_norm: Norm | None  # of the residual stream, before the part
    input: Vectors  # the residual stream, or the norm of it
    computation: Computation
    post_norm: Norm | None  # of the residual sum
    output: Vectors  # the residual sum, or the norm of it


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerParts:
    """All parts of a layer, with its input and output."""

    input: Vectors
    parts: tuple[SubLayer, ...]
    output: Vectors


SUMMED = "with one output projection, whose result is added to what came in"
NETWORK = (
    "feed-forward network of two projections, or three with a gate, with ReLU, GELU or SiLU,"
    " whose result is added to what came in"
)


def parts_of(
    name: str, collector: ProjectionCollector, cross: ProjectionCollector | None
) -> LayerParts:
    """Return the parts of a layer.

    `name` is the model's name for error messages; `collector` has the calls of the layer and its self-attention,
    `cross` those of the cross attention if there is one. Raises NoAttentionError: the layer has an unknown structure.
    """
    if collector.cells():
        raise NoAttentionError(
            f"{name} is recurrent: it has no layer to follow as a whole; follow one query of it instead"
        )
    calls = [
        call for call in (*collector.before, *collector.after) if call.given.is_floating_point()
    ]
    sources = [
        projection.given for projection in collector.projections()[:3] if projection is not None
    ]
    missing = f"attention {SUMMED}"
    if sources:
        # Try post-norm, then pre-norm without a first norm (a first layer may have none), then pre-norm.
        attention_input = sources[-1]
        norms = [
            norm
            for norm in map(read_norm, calls)
            if norm and is_close(norm.output, attention_input)
        ]
        starts = [(attention_input, None, True), (attention_input, None, False)]
        for x, norm, is_post_norm in [*starts, *((norm.input, norm, False) for norm in norms)]:
            parts = list(_follow(calls, collector, cross, (norm, attention_input), x, is_post_norm))
            names = [f"attention {SUMMED}", f"cross attention {SUMMED}", NETWORK]
            if cross is None:
                del names[1]
            if len(parts) == len(names):
                return LayerParts(input=x, parts=tuple(parts), output=parts[-1].output)
            if parts:
                missing = names[len(parts)]  # the first part that was not found
    raise NoAttentionError(
        f"{name}: layer {collector.layer.number} cannot be followed: no {missing}"
    )


def _follow(
    calls: Sequence[Call],
    collector: ProjectionCollector,
    cross: ProjectionCollector | None,
    first_input: tuple[Norm | None, Vectors],
    stream: Vectors,
    is_post_norm: bool,
) -> Iterator[SubLayer]:
    """Yield the parts of a layer, following the residual stream, until one is not found.

    `first_input` is the norm before the first part, if any, and the input of that part; `stream` is the input of the
    layer.
    """
    inputs = [first_input]
    attentions = [collector] if cross is None else [collector, cross]
    for attention in (*attentions, None):  # None stands for the feed-forward network
        part = _find_part(calls, attention, inputs, stream, is_post_norm)
        if part is None:
            return
        yield part
        stream = part.output
        inputs = [(None, stream)]
        if not is_post_norm:
            norms = map(read_norm, _calls_given(calls, stream))
            inputs += [(norm, norm.output) for norm in norms if norm is not None]


def _find_part(
    calls: Sequence[Call],
    attention: ProjectionCollector | None,
    inputs: Sequence[tuple[Norm | None, Vectors]],
    stream: Vectors,
    is_post_norm: bool,
) -> SubLayer | None:
    """Return the part that reads one of `inputs` and whose result is added to the stream; None if there is none.

    Each input comes after the norm that computed it, if there is one. The part is this attention, or the feed-forward
    network if `attention` is None.
    """
    for pre_norm, part_input in inputs:
        if attention is None:
            candidates = _find_network(calls, part_input)
        else:
            query = attention.projections()[0]
            if query is not None and not is_close(query.given, part_input):
                continue
            candidates = _find_output(calls, attention)
        for computation, result in candidates:
            if result.shape != stream.shape:
                continue
            # The residual sum must be the input of a later norm or projection.
            readers = _calls_given(calls, stream + result)
            norms = [norm for norm in map(read_norm, readers) if norm is not None]
            if is_post_norm and norms:
                return SubLayer(
                    pre_norm=pre_norm,
                    input=part_input,
                    computation=computation,
                    post_norm=norms[0],
                    output=norms[0].output,
                )
            if not is_post_norm and (norms or any(is_linear(call.module) for call in readers)):
                total = in_rows(readers[0].given)
                return SubLayer(
                    pre_norm=pre_norm,
                    input=part_input,
                    computation=computation,
                    post_norm=None,
                    output=total,
                )
    return None


def _find_output(
    calls: Sequence[Call], attention: ProjectionCollector
) -> Iterator[tuple[Computation, Vectors]]:
    """Yield the output projections, which read the contexts of all heads, each with its result."""
    contexts = in_rows(attention.layer.output.flatten(2))  # (B, Q, H, d) -> (Q, H * d)
    for call in _calls_given(calls, contexts):
        if is_linear(call.module):
            yield _columns(call), in_rows(call.made)


def _find_network(calls: Sequence[Call], read: Vectors) -> Iterator[tuple[Computation, Vectors]]:
    """Yield the feed-forward networks that read these vectors, each with its result."""
    projections: list[tuple[Projection, Tensor]] = []
    for call in _calls_given(calls, read):
        if is_linear(call.module):
            result, width = in_rows(call.made), call.made.shape[2]
            projections.append((_columns(call), result))
            if width % 2 == 0:  # one fused projection may compute the gate and the gated numbers
                half = width // 2
                projections.append((_columns(call, 0, half), result[:, :half]))
                projections.append((_columns(call, half, width), result[:, half:]))
    for call in calls:
        network = _network_into(call, projections) if is_linear(call.module) else None
        if network is not None:
            yield network, in_rows(call.made)


def _network_into(
    last: Call, widened: Sequence[tuple[Projection, Tensor]]
) -> FeedForwardCalls | None:
    """Return the network that ends in the projection `last` and begins with some of `widened`; None if none fits.

    All activations are tried, with and without a gate, and the combination closest to the input of `last` wins.
    """
    expected = in_rows(last.given)
    fitting = [
        (projection, projected)
        for projection, projected in widened
        if projected.shape == expected.shape
    ]
    candidates: list[tuple[float, Activation, Projection, Projection | None]] = []
    for activation, function in ACTIVATIONS.items():
        for projection, projected in fitting:
            activated = function(projected)
            candidates.append((distance(activated, expected), activation, projection, None))
            for widening, factor in fitting:
                if widening is not projection:
                    error = distance(activated * factor, expected)
                    candidates.append((error, activation, widening, projection))
    if not candidates:
        return None
    error, activation, widen, gate = min(candidates, key=lambda candidate: candidate[0])
    if error > closeness(expected):
        return None
    return FeedForwardCalls(widen=widen, gate=gate, activation=activation, narrow=_columns(last))


def _calls_given(calls: Sequence[Call], vectors: Vectors) -> list[Call]:
    """Return the calls whose input is equal to these vectors."""
    return [call for call in calls if is_close(in_rows(call.given), vectors)]


def _columns(call: Call, first: int = 0, last: int | None = None) -> Projection:
    """Return the columns of a linear module from `first` to before `last` as a projection; all by default."""
    projection = projection_of(call, first, call.made.shape[2] if last is None else last)
    assert projection is not None
    return projection


def read_norm(call: Call) -> Norm | None:
    """Return the norm that a call computed; None if no norm with the module's weights gives the same numbers."""
    if call.given.shape != call.made.shape:
        return None
    x, y = in_rows(call.given), in_rows(call.made)
    if isinstance(call.module, nn.LayerNorm):
        gain, shift, epsilon = norm_of(call)
        return Norm(operation="norm", input=x, output=y, gain=gain, shift=shift, epsilon=epsilon)
    weight = getattr(call.module, "weight", None)
    if not isinstance(weight, Tensor) or weight.shape != y.shape[1:]:
        return None
    # Any small number among the attributes of the module may be its epsilon, whatever its name.
    epsilons = [
        value for value in vars(call.module).values() if type(value) is float and 0 <= value < 1
    ]
    # the default of torch, for a module without an epsilon
    epsilons.append(torch.finfo(y.dtype).eps)
    # In Gemma the gain is 1 plus the weight.
    candidates = [(gain, epsilon) for gain in (weight, 1 + weight) for epsilon in epsilons]
    errors = [distance(_rms_norm(x, *candidate), y) for candidate in candidates]
    if min(errors) > closeness(y):
        return None
    gain, epsilon = candidates[errors.index(min(errors))]
    shift = torch.zeros_like(weight)
    return Norm(operation="rms_norm", input=x, output=y, gain=gain, shift=shift, epsilon=epsilon)


# Zhang and Sennrich 2019, equation 4
def _rms_norm(x: Tensor, gain: Tensor, epsilon: float) -> Tensor:
    x = _double(x)
    return x / (x.square().mean(dim=1, keepdim=True) + epsilon).sqrt() * _double(gain)


def in_rows(x: Tensor) -> Float[Tensor, "token width"]:
    """Return the vectors of one sentence, one row per token."""
    return x.flatten(0, -2)


def is_close(a: Tensor, b: Tensor) -> bool:
    """Return whether two tensors are equal up to rounding."""
    return a.shape == b.shape and distance(a, b) <= closeness(b)


def distance(a: Tensor, b: Tensor) -> float:
    """Return the largest difference of two tensors of one shape."""
    return (_double(a) - _double(b)).abs().max().item()


def closeness(numbers: Tensor) -> float:
    """Return how far other numbers may be from these to count as equal; more in half precision."""
    return max(CLOSE, 2 * torch.finfo(numbers.dtype).eps) * numbers.abs().max().item()


def _double(numbers: Tensor) -> Tensor:
    # Moved to the CPU, since not every device supports double precision.
    return numbers.detach().to("cpu", torch.float64)
