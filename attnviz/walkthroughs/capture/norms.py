"""Norms, found by their numbers: a small module is one if it makes what a norm with its weights makes.

So a family's own class is read as well as the library's: those that divide by the root of the mean of the squares, and
those whose gain is 1 plus what they hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnviz.capture.projections import Call, is_map, norm_of

CLOSE = 1e-5
"""How far numbers may be from those that they are taken for, relative to the largest: some models have small ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Norm:
    """A norm that has run.

    Attributes:
        operation: what a step calls it: ``rms_norm`` takes no mean away, and adds nothing.
        given: what it was given.
        made: what it made of that.
        gain: what each number of a row is multiplied with in the end.
        shift: what is then added; zeros where nothing is.
        epsilon: what is added below the root.
    """

    operation: Literal["norm", "rms_norm"]
    given: Float[Tensor, "token d_model"]
    made: Float[Tensor, "token d_model"]
    gain: Float[Tensor, " d_model"]
    shift: Float[Tensor, " d_model"]
    epsilon: float


def in_rows(x: Tensor) -> Float[Tensor, "token width"]:
    """One sentence, a row for each token, whichever axes a model put around them."""
    return x.flatten(0, -2)


def near(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors are equal but for rounding."""
    return one.shape == other.shape and distance(one, other) <= closeness(other)


def distance(one: Tensor, other: Tensor) -> float:
    """The largest difference of two tensors of one shape, in double precision, which not every device has."""
    return (_exact(one) - _exact(other)).abs().max().item()


def closeness(numbers: Tensor) -> float:
    """How far others may be from these: farther in half precision, which rounds them."""
    return max(CLOSE, 2 * torch.finfo(numbers.dtype).eps) * numbers.abs().max().item()


def _exact(numbers: Tensor) -> Tensor:
    return numbers.detach().to("cpu", torch.float64)


def may_be_norm(call: Call) -> bool:
    """Whether it made rows as wide as those that it was given, and is nothing else."""
    other = is_map(call.module) or isinstance(call.module, nn.Embedding | nn.RNNCellBase)
    return not other and call.given.shape == call.made.shape


def read_norm(call: Call) -> Norm | None:
    """The norm that a module is; None where none makes what it made."""
    given, made = in_rows(call.given), in_rows(call.made)
    if isinstance(call.module, nn.LayerNorm):
        gain, shift, epsilon = norm_of(call)
        return Norm(operation="norm", given=given, made=made, gain=gain, shift=shift, epsilon=epsilon)
    weight = getattr(call.module, "weight", None)
    if not isinstance(weight, Tensor) or weight.shape != made.shape[1:]:
        return None
    none = torch.zeros_like(weight)
    found = [
        Norm(operation="rms_norm", given=given, made=made, gain=gain, shift=none, epsilon=epsilon)
        for gain in (weight, 1 + weight)
        for epsilon in _epsilons(call.module, made.dtype)
    ]
    best = min(found, key=_off)
    return best if _off(best) <= closeness(made) else None


def _epsilons(module: nn.Module, dtype: torch.dtype) -> list[float]:
    """The small numbers that a module holds, whatever it calls them, and the one that torch takes where it has none."""
    held = [value for value in vars(module).values() if type(value) is float and 0 <= value < 1]
    return [*held, torch.finfo(dtype).eps]


def _off(norm: Norm) -> float:
    """How far it is from what its module made: a root mean square norm (Zhang and Sennrich 2019, equation 4)."""
    x = _exact(norm.given)
    again = x / (x.square().mean(dim=1, keepdim=True) + norm.epsilon).sqrt() * _exact(norm.gain)
    return distance(again, norm.made)
