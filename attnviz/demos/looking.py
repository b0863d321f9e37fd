"""What demos share: a trained model of words, sentences as its numbers, figures as words."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from attnviz.errors import FileFormatError, ModelError
from attnviz.models.language.vocabulary import Vocabulary
from attnviz.models.training import shipped
from attnviz.models.training.tasks import padded
from attnviz.models.wholes import LanguageDecoder, LanguageEncoder
from attnviz.text.words import split_words

ROWS = "Rows are queries, columns are keys; layers and heads count from 0."
"""What every picture of patterns says."""

LEAST = 1e-3
"""What three digits after the point can tell from 0."""


def words_of(text: str) -> list[str]:
    """The words and punctuation marks of a sentence."""
    return [text[start:end] for start, end in split_words(text)]


def encoder() -> tuple[shipped.Card, LanguageEncoder]:
    """The trained model that reads in both directions.

    Raises:
        FileFormatError: its file holds another model.
    """
    card, model = shipped.load(shipped.FOLDER / "toy.safetensors")
    if not isinstance(model, LanguageEncoder):
        raise FileFormatError(f"toy must be an encoder, not a {card.plan.kind}")
    return card, model


def decoder() -> tuple[shipped.Card, LanguageDecoder]:
    """The trained model that reads from left to right.

    Raises:
        FileFormatError: its file holds another model.
    """
    card, model = shipped.load(shipped.FOLDER / "toy-decoder.safetensors")
    if not isinstance(model, LanguageDecoder):
        raise FileFormatError(f"toy-decoder must be a decoder, not a {card.plan.kind}")
    return card, model


def untrained(card: shipped.Card) -> LanguageEncoder:
    """The same model with its first weights, as it was before training.

    Raises:
        ModelError: the card is of another kind of model.
    """
    model = card.plan.task().model
    if not isinstance(model, LanguageEncoder):
        raise ModelError(f"expected the plan of an encoder, got that of a {card.plan.kind}")
    return model


def numbers(vocabulary: Vocabulary, sentences: Sequence[Sequence[str]]) -> torch.Tensor:
    """Sentences as numbers of words [batch, tokens], zeros after the shorter ones."""
    return padded([vocabulary.encode(words) for words in sentences])


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
