"""Stories, each in a language, computed once for all tests."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import pytest

from attnviz.stories import tell

if TYPE_CHECKING:
    from collections.abc import Callable

    from attnviz.stories.record import Story


@pytest.fixture(scope="session")
def told() -> Callable[..., Story]:
    """Each story by its name, in a language, computed once for all tests."""
    return functools.cache(tell)
