"""Norms found by their numbers: those of any family, and nothing that only looks like one."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from attnviz.capture.projections import Call
from attnviz.walkthroughs.capture.parts import Norm, near, read_norm

X = torch.randn(1, 5, 12, generator=torch.Generator().manual_seed(3))


class Own(nn.Module):
    """A root mean square norm as families write their own."""

    def __init__(self, *, adds_one: bool, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(12, generator=torch.Generator().manual_seed(4)) - 0.3)
        self.adds_one, self.variance_epsilon = adds_one, epsilon

    def forward(self, x: Tensor) -> Tensor:
        """The rows normalised."""
        size = (x.square().mean(-1, keepdim=True) + self.variance_epsilon).rsqrt()
        return x * size * (1 + self.weight if self.adds_one else self.weight)


class Scale(Own):
    """What only stretches is no norm."""

    def forward(self, x: Tensor) -> Tensor:
        """The rows stretched."""
        return x * self.weight


def call(module: nn.Module, x: Tensor = X) -> Call:
    """A module that has run."""
    with torch.inference_mode():
        return Call(module=module, given=x, made=module(x))


def again(norm: Norm) -> Tensor:
    """What a norm that was read makes."""
    x = norm.given.double()
    if norm.operation == "norm":
        x = x - x.mean(1, keepdim=True)
    return x / (x.square().mean(1, keepdim=True) + norm.epsilon).sqrt() * norm.gain + norm.shift


@pytest.mark.parametrize(
    ("module", "operation", "epsilon"),
    [
        (nn.LayerNorm(12, eps=1e-3), "norm", 1e-3),
        (nn.LayerNorm(12, bias=False), "norm", 1e-5),
        (nn.LayerNorm(12, elementwise_affine=False), "norm", 1e-5),
        (nn.RMSNorm(12, eps=1e-2), "rms_norm", 1e-2),
        (nn.RMSNorm(12), "rms_norm", torch.finfo(torch.float32).eps),
        (Own(adds_one=False, epsilon=1e-2), "rms_norm", 1e-2),
        (Own(adds_one=True, epsilon=1e-4), "rms_norm", 1e-4),
    ],
)
def test_norms_are_read(module: nn.Module, operation: str, epsilon: float) -> None:
    """Their kind, their epsilon and what they stretch by are those that make their numbers."""
    made = call(module)
    norm = read_norm(made)
    assert norm is not None
    assert norm.operation == operation
    assert norm.epsilon == pytest.approx(epsilon)
    assert near(again(norm).float(), made.made[0])


def test_what_is_no_norm() -> None:
    """A stretch, a projection, a norm in another width."""
    assert read_norm(call(Scale(adds_one=False, epsilon=1e-5))) is None
    assert read_norm(call(nn.Linear(12, 12))) is None
    assert read_norm(call(nn.Linear(12, 8))) is None
    assert read_norm(call(nn.GELU())) is None


def test_near_is_relative_to_the_largest_number() -> None:
    """Rounding grows with the numbers, and with the format; shapes must be equal."""
    one = torch.tensor([[0.1, 0.2]])
    for size in (1e-3, 1.0, 1e3):
        assert near((one + 1e-6) * size, one * size)
        assert not near((one + 4e-6) * size, one * size)
    assert not near(one, one[:, :1])
    assert near((one + 1e-3).bfloat16(), one.bfloat16())
    assert near(one * 0, one * 0)
