"""What follows a head's context, written down: all heads side by side, the output map, and the rest of the layer.

The rest is followed by its numbers, as maps are found: the layer norm of the sum of the attention's input and output,
a map of what it made, another of that map's output after its activation, and the norm of the sum of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float64
from torch import Tensor, nn

from attnviz.analysis.walkthrough import Calculation
from attnviz.capture.inputs import LARGEST_MAP
from attnviz.capture.projections import Call, LinearMap, is_map, map_of, norm_of, same
from attnviz.capture.walked import Walked, numbers
from attnviz.errors import NoAttentionError
from attnviz.walk import Grid

ACTIVATIONS: dict[Literal["relu", "gelu"], Callable[[Tensor], Tensor]] = {
    "relu": nn.functional.relu,
    "gelu": nn.functional.gelu,
}
"""The activations that a walkthrough can compute."""

CLOSE = 1e-5
"""How far a residual sum may be from the sum of the two that it is taken for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """A layer behind its attention.

    Attributes:
        norm: the norm of the sum of the attention's input and output.
        widen: the first map of the feed-forward network.
        activation: what follows it.
        narrow: the second map.
        final: the norm of the sum of the network's input and output; what it made is the layer's output.
    """

    norm: Call
    widen: Call
    activation: Literal["relu", "gelu"]
    narrow: Call
    final: Call


def write_output(calculation: Calculation, walked: Walked) -> list[str]:
    """Write down the contexts of all heads side by side, and the output map, where it is found.

    Returns:
        What a reader should know about it, a sentence each.
    """
    output, layer = walked.keep.maps()[3], walked.layer
    if output is None:
        return _write_step(calculation, walked)
    if output.weight.numel() > LARGEST_MAP:
        return [f"the output map, {' x '.join(map(str, output.weight.shape))} numbers, is left out"]
    contexts = []
    for head in range(layer.output.shape[2]):
        theirs = Grid(values=numbers(walked.rows_of(layer.output[0, :, head])), rows=walked.looking)
        contexts.append("context" if head == walked.head else calculation.give(f"context_{head}", theirs))
    write_output_map(calculation, contexts, output)
    return []


def _write_step(calculation: Calculation, walked: Walked) -> list[str]:
    """Write down what a recurrent decoder reads at its step: the word before, and the context."""
    beside = walked.keep.beside()
    if beside is None:
        return []
    y = "Y" if walked.row is None else "y"
    calculation.give(y, Grid(values=numbers(walked.rows_of(beside)), rows=walked.looking))
    calculation.step("concatenated", "concatenated", "concatenate", y, "context")
    return [f"{y} is the vector of the word said before; with the context beside it, it goes to the decoder"]


def write_output_map(calculation: Calculation, contexts: Sequence[str], output: LinearMap) -> str:
    """Write down contexts side by side and what the output map makes of them; the name of that comes back."""
    together = contexts[0]
    if len(contexts) > 1:
        together = calculation.step("concatenated", "concatenated", "concatenate", *contexts)
    return _write_map(calculation, "output", "output", together, found=output, letter="o")


def write_rest(calculation: Calculation, rest: Rest, x: str) -> str:
    """Write down the layer behind its output map; the name of the layer's output comes back.

    Args:
        calculation: what is written so far: the output map's result is ``output``.
        rest: the modules.
        x: the name of the queries' input.
    """
    c = calculation
    summed = c.step("residual", "residual", "add", "output", x)
    normed = _write_norm(c, "norm", summed, rest.norm, "1")
    widened = _write_map(c, "feed_forward_1", "hidden", normed, found=_whole(rest.widen), letter="1")
    active = c.step(rest.activation, "active", rest.activation, widened)
    narrowed = _write_map(c, "feed_forward_2", "narrowed", active, found=_whole(rest.narrow), letter="2")
    summed = c.step("residual_2", "residual_2", "add", narrowed, normed)
    return _write_norm(c, "norm_2", summed, rest.final, "2")


def rest_of(walked: Walked) -> tuple[LinearMap, LinearMap, Rest, Float64[np.ndarray, "query d_model"]]:
    """The map that makes queries, the output map, the layer behind it, and its own output of the queries walked.

    Raises:
        NoAttentionError: the layer is built otherwise.
    """
    query_map, _, _, output = walked.keep.maps()
    if query_map is not None and output is not None:
        for rest in _rests(walked.keep.after, walked, query_map.given):
            return query_map, output, rest, numbers(walked.rows_of(rest.final.made[0]))
    raise NoAttentionError(
        f"{walked.source.name}: layer {walked.layer.number} cannot be walked whole: it is not attention, residual sum, "
        "norm, feed-forward (ReLU or GELU), residual sum, norm"
    )


def _rests(calls: Sequence[Call], walked: Walked, x: Tensor) -> Iterator[Rest]:
    """Every way to read the calls behind attention as the rest of a layer: one, or none."""
    together = walked.layer.output.flatten(2)  # (B, Q, H, d) -> (B, Q, H * d)
    outputs = [call for call in calls if is_map(call.module) and same(call.given, together)]
    norms = [call for call in calls if isinstance(call.module, nn.LayerNorm)]
    maps = [call for call in calls if is_map(call.module)]
    for output in outputs:
        for norm in norms:
            if not _is_sum(norm.given, output.made, x[None]):
                continue
            for widen, narrow in ((one, two) for one in maps for two in maps if same(one.given, norm.made)):
                activation = next(
                    (name for name, apply in ACTIVATIONS.items() if same(apply(widen.made), narrow.given)), None
                )
                for final in norms:
                    if activation is not None and _is_sum(final.given, narrow.made, norm.made):
                        yield Rest(norm=norm, widen=widen, activation=activation, narrow=narrow, final=final)


def _is_sum(total: Tensor, one: Tensor, other: Tensor) -> bool:
    if not total.shape == one.shape == other.shape:
        return False
    close = CLOSE * max(1.0, total.abs().max().item())
    return bool((one + other - total).abs().max().item() <= close)


def _whole(call: Call) -> LinearMap:
    found = map_of(call, 0, call.made.shape[2])
    assert found is not None  # noqa: S101 - only maps come here
    return found


def _write_map(c: Calculation, step: str, result: str, x: str, *, found: LinearMap, letter: str) -> str:
    weight = c.give(f"W{letter}", Grid(values=numbers(found.weight)))
    bias = [] if found.bias is None else [c.give(f"b{letter}", Grid(values=numbers(found.bias)[None]))]
    return c.step(step, result, "map", x, weight, *bias)


def _write_norm(c: Calculation, step: str, x: str, call: Call, number: str) -> str:
    gain, shift, epsilon = norm_of(call)
    given = [
        c.give(f"{what}_{number}", Grid(values=numbers(values)[None]))
        for what, values in (("gain", gain), ("shift", shift))
    ]
    return c.step(step, step, "norm", x, *given, number=epsilon)
