"""A digest tells a model's weights from others, and from nothing else."""

from __future__ import annotations

import pytest
import torch

from attnviz.capture.source import open_source
from attnviz.capture.stream import digest_of


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


def test_every_tensor_counts() -> None:
    """Each parameter alone makes another digest, if by a single number, and so does each buffer that is saved."""
    layer = torch.nn.BatchNorm1d(3)
    layer.register_parameter("large", torch.nn.Parameter(torch.zeros(100, 1000)))
    seen = {digest_of(layer)}
    for tensor in layer.state_dict().values():
        tensor.view(-1)[-1 if tensor.ndim else 0] += 1
        seen.add(digest_of(layer))
    assert len(seen) == 1 + len(layer.state_dict())
