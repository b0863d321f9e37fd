"""The story that a test module is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from attnviz.stories.record import Story


@pytest.fixture(scope="module")
def story(request: pytest.FixtureRequest, told: Callable[[str], Story]) -> Story:
    """The story that a module's tests are about."""
    return told(request.module.__name__.rpartition("test_")[2].replace("_", "-"))
