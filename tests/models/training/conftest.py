"""Tiny models, and what each of them learns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jaxtyping
import pytest

from attnviz.models.config import LanguageConfig, RecurrentConfig, TranslationConfig
from attnviz.models.language.vocabulary import load_vocabulary
from attnviz.models.registry import Recipe, TrainingPlan

if TYPE_CHECKING:
    from collections.abc import Callable

    from attnviz.models.registry import Architecture

KINDS = ("encoder", "decoder", "recurrent", "translation")


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the shape checks, which take longer than many small steps do."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.fixture
def plan() -> Callable[..., TrainingPlan]:
    """A plan for a tiny model of a kind; everything of its recipe can be set."""

    def make(kind: Architecture, **recipe: Any) -> TrainingPlan:
        english, source, target = (
            len(load_vocabulary(name)) for name in ("english", "source", "target")
        )
        both: dict[str, Any] = {"n_source_words": source, "n_target_words": target}
        small: dict[str, Any] = {"d_model": 12, "n_heads": 3, "n_layers": 2, "d_ff": 13}
        config: LanguageConfig | RecurrentConfig | TranslationConfig
        if kind == "recurrent":
            config = RecurrentConfig(d_embedding=11, d_hidden=13, **both)
        elif kind == "translation":
            config = TranslationConfig(**both, **small)
        else:
            config = LanguageConfig(n_words=english, **small)
        told: dict[str, Any] = {
            "steps": 12,
            "batch": 7,
            "rate": 1e-2,
            "drop_heads": 0.3,
            "forget": 0.1,
        } | recipe
        return TrainingPlan(kind=kind, config=config, recipe=Recipe(**told), learns="a little")

    return make
