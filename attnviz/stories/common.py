"""What demos share: a trained model, sentences as numbers of words, numbers as text, the interval of a share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import torch

from attnviz.errors import FileFormatError
from attnviz.models.language.vocabulary import Vocabulary
from attnviz.models.training.files import ModelCard, load_home_built
from attnviz.models.training.tasks import Model, pad_numbers
from attnviz.text.words import split_words

M = TypeVar("M", bound=Model)

ROWS = "Rows are queries, columns are keys; layers and heads count from 0."
"""What stands under every picture of patterns."""

LEAST = 1e-3
"""What three digits after the point can tell from 0."""


def words_of(text: str) -> list[str]:
    """The words and punctuation marks of a sentence."""
    return [text[start:end] for start, end in split_words(text)]


def open_model(name: str, kind: type[M]) -> tuple[ModelCard, M]:
    """A trained model of this kind, with its card.

    Raises:
        FileFormatError: its file holds another kind of model.
    """
    card, model = load_home_built(name)
    if not isinstance(model, kind):
        raise FileFormatError(f"{name} must be of the kind {kind.__name__}: its file holds a {type(model).__name__}")
    return card, model


def numbers(vocabulary: Vocabulary, sentences: Sequence[Sequence[str]]) -> torch.Tensor:
    """Sentences as numbers of words [batch, tokens], zeros after the shorter ones."""
    return pad_numbers([vocabulary.encode(words) for words in sentences])


def small(difference: float) -> str:
    """A difference: exactly 0, or three digits, or where it is too small for them its size."""
    if not difference:
        return "0"
    return f"{difference:.1e}" if abs(difference) < LEAST else f"{difference:.3f}"


def percent(share: float) -> str:
    """A share in percent."""
    return f"{100 * share:.1f} %"


def head_name(head: tuple[int, int]) -> str:
    """A layer and a head, in words."""
    return f"layer {head[0]}, head {head[1]}"
