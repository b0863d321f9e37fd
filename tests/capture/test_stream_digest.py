"""A digest tells a model's weights from others, and from nothing else."""

from __future__ import annotations

import pytest

from attnviz.capture.source import open_source


@pytest.mark.parametrize(
    "name", ["real", "toy", "toy-decoder", "toy-seq2seq", "toy-transformer", "toy-random"]
)
def test_a_model_has_one_digest(name: str, real_model: str) -> None:
    """Loaded twice it is the same; in another number format, with random weights, or trained on it is another."""
    model = real_model if name == "real" else name
    source = open_source(model)
    digest = source.digest()
    assert digest == open_source(model).digest()
    others = {
        source.untrained().digest(),
        source.untrained(seed=1).digest(),
        open_source(model, dtype="float64").digest(),
    }
    assert len({digest, *others}) == 4
