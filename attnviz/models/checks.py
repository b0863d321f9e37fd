"""How the models refuse a tensor of the wrong shape, and sizes that make no sense."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnviz.errors import ModelError

if TYPE_CHECKING:
    from torch import Tensor  # for its name alone: who reads a table of models need not wait for torch


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


def expect_sizes(**sizes: int) -> None:
    """Refuse a size below 1: ``expect_sizes(d_ff=0)`` says: d_ff is too small: expected at least 1, got 0.

    Raises:
        ModelError: some size is; the message says which.
    """
    for name, size in sizes.items():
        if size < 1:
            raise ModelError(f"{name} is too small: expected at least 1, got {size}")


def expect_share(**shares: float) -> None:
    """Refuse a share, such as that of a dropout, below 0 or from 1 on.

    Raises:
        ModelError: some share is; the message says which.
    """
    for name, share in shares.items():
        if not 0 <= share < 1:
            raise ModelError(f"{name} must be a share: expected at least 0 and less than 1, got {share}")
