"""What the shipped models compute for one sentence, asked of the models themselves, which have tests of their own."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from attnviz.models.training.files import ModelCard, load_home_built

if TYPE_CHECKING:
    from collections.abc import Sequence


class Translation(NamedTuple):
    """A model's translation of one sentence."""

    words: tuple[str, ...]  # the likeliest at each step, after its own words or those forced on it
    chances: np.ndarray  # of every word [step, word]
    weights: np.ndarray  # attention [step, source]; empty without attention


@cache
def opened(name: str) -> tuple[ModelCard, Any]:
    """Return the card of a model and the model."""
    return load_home_built(name)


@torch.inference_mode()
def read(name: str, words: Sequence[str], **reading: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the last vectors of one sentence, and its weights [layer, head, query, key]."""
    card, model = opened(name)
    vectors, weights = model.encode(torch.tensor([card.source.encode(words)]), **reading)
    return vectors[0].double().numpy(), torch.cat(weights).double().numpy()


def patterns(name: str, words: Sequence[str]) -> np.ndarray:
    """Return the attention weights of one sentence [layer, head, query, key]."""
    return read(name, words)[1]


@torch.inference_mode()
def translate(
    name: str, english: Sequence[str], forced: Sequence[str] | None = None, most: int = 128
) -> Translation:
    """Translate one sentence, after its own words or after those forced on it; the end is a word."""
    card, model = opened(name)
    assert card.target is not None
    target = None
    if forced is not None:
        target = torch.tensor([[*card.target.encode(forced), model.config.end]])
    made = model(torch.tensor([card.source.encode(english)]), target, max_length=most)
    return Translation(
        words=tuple(card.target.words[number] for number in made.words[0].tolist()),
        chances=made.logits[0].softmax(dim=-1).numpy(),
        weights=np.empty(0) if made.weights is None else made.weights[0].numpy(),
    )
