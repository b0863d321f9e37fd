"""What the tests of the home-built models share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def seeded() -> Iterator[None]:
    """The same random numbers for every test, in whatever order they run."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield
