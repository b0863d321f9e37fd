"""How the models refuse a tensor of the wrong shape."""

from __future__ import annotations

from torch import Tensor

from attnviz.errors import ModelError


def expect_shape(name: str, tensor: Tensor, *axes: str | int) -> None:
    """Refuse a tensor that has not these axes: a number is the size expected, a name stands for any size.

    ``expect_shape("x", x, "batch", "tokens", 20)`` says: x has the wrong shape: expected (batch, tokens, 20),
    got (1, 4, 19).

    Raises:
        ModelError: the shape is another; the message says what was expected and what came.
    """
    got = tuple(tensor.shape)
    if len(got) != len(axes) or any(
        isinstance(axis, int) and axis != size for axis, size in zip(axes, got, strict=True)
    ):
        expected = ", ".join(map(str, axes))
        raise ModelError(f"{name} has the wrong shape: expected ({expected}), got {got}")
