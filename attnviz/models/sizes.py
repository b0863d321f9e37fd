"""How the models refuse a size that makes no sense."""

from __future__ import annotations

from attnviz.errors import ModelError


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
