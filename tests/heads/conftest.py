"""Fixtures for tests that measure whole corpora."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jaxtyping
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def few_seeds() -> Iterator[None]:
    """Two models of random weights, not eight, for modules to which it is nothing how many there are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("attnviz.heads.capture.survey.SEEDS", 2)
        yield


@pytest.fixture(scope="module")
def whole_corpora() -> Iterator[None]:
    """Shapes are not checked while corpora are measured, which takes twice as long: tests of few sentences do that."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jaxtyping.config, "jaxtyping_disable", True)
        yield
