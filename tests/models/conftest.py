"""Fixtures of the home-built models."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def seeded() -> Iterator[None]:
    """Seed the random numbers of every test."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield
