"""Tiny models, and what each of them learns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jaxtyping
import pytest

from attnviz.models.registry import Recipe, training_plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from attnviz.models.registry import TrainingPlan

KINDS = {
    "encoder": "toy",
    "decoder": "toy-decoder",
    "recurrent": "toy-seq2seq",
    "translation": "toy-transformer",
}
"""A shipped model of each kind."""


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the shape checks, which take longer than many small steps do."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.fixture
def plan() -> Callable[..., TrainingPlan]:
    """A plan for a tiny model of a kind; everything of its recipe can be set."""

    def make(kind: str, **recipe: Any) -> TrainingPlan:
        shipped = training_plan(KINDS[kind])
        sizes: dict[str, int] = {"d_model": 12, "n_heads": 3, "n_layers": 2, "d_ff": 13}
        if kind == "recurrent":
            sizes = {"d_embedding": 11, "d_hidden": 13, "forgetful": False}
        settings = {"steps": 12, "batch": 7, "rate": 1e-2, "drop_heads": 0.3, "forget": 0.1}
        return replace(
            shipped,
            config=replace(shipped.config, **sizes),  # type: ignore[arg-type]
            recipe=Recipe(**(settings | recipe)),
        )

    return make
