"""Fixtures of the small language."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jaxtyping
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module", autouse=True)
def unchecked() -> Iterator[None]:
    """Without the shape checks: there are no shapes here, and tens of thousands of sentences."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jaxtyping.config, "jaxtyping_disable", True)
        yield
