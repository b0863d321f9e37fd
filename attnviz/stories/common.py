"""Models, sentences, panels and number formats that several stories share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, SupportsFloat, TypeAlias, TypeVar

import numpy as np
from torch import Tensor

from attnviz.attention import Attention
from attnviz.errors import FileFormatError
from attnviz.heads.tally import wilson
from attnviz.models.language.sentences import GoldSentence
from attnviz.models.language.vocabulary import Vocabulary
from attnviz.models.language_models import LanguageEncoder
from attnviz.models.registry import TOY
from attnviz.models.training import measure
from attnviz.models.training.files import Model, ModelCard, load_home_built
from attnviz.models.training.measure import Head
from attnviz.models.training.tasks import pad_numbers
from attnviz.stories.record import Matrix, StoryView
from attnviz.text import display
from attnviz.text.messages import N_, _
from attnviz.text.notes import proof
from attnviz.text.words import split_words

M = TypeVar("M", bound=Model)

CERTAIN = 1.96  # standard errors on each side of a mean in its 95% interval

TopKeys: TypeAlias = Callable[[Sequence[GoldSentence]], Tensor]
"""A function from sentences to the key with the largest weight [sentence, layer, head, query].

Keys of queries after the end of a sentence are meaningless."""


class Estimate(NamedTuple):
    """A mean and the ends of its 95% interval."""

    mean: float
    low: float
    high: float

    @classmethod
    def of_share(cls, share: float, n: int) -> Estimate:
        """Return a share of n observations with its 95% Wilson interval."""
        return cls(share, *wilson(share, n))

    def shown(self) -> str:
        """Return the mean and its interval as text."""
        return _("{mean:.3f} ({low:.3f} to {high:.3f})").format(**self._asdict())


def row_view(record: Attention, head: Head, query: int, number: int = 0) -> StoryView:
    """Return a view of one row of a record; `number` is the index of the record in the story."""
    row = record.pattern(*head)[query]
    words = N_("“{word}” attends most to “{at}” ({weight}).").format(
        word=record.query_tokens[query].text,
        at=record.key_tokens[int(row.argmax())].text,
        weight=display.percent(row.max()),
    )
    return StoryView(text=_(words), sentence=record.text, record=number, head=head, query=query)


def words_of(text: str) -> list[str]:
    """Split a sentence into words and punctuation marks."""
    return [text[start:end] for start, end in split_words(text)]


def open_model(name: str, kind: type[M]) -> tuple[ModelCard, M]:
    """Open a trained model of a class, with its card. Raises FileFormatError: the file has a model of another class."""
    card, model = load_home_built(name)
    if not isinstance(model, kind):
        raise FileFormatError(
            f"{name} must be of the kind {kind.__name__}: its file holds a {type(model).__name__}"
        )
    return card, model


def encode(vocabulary: Vocabulary, sentences: Sequence[Sequence[str]]) -> Tensor:
    """Return the word ids of sentences [sentence, word]; zeros follow the shorter ones."""
    return pad_numbers([vocabulary.encode(words) for words in sentences])


def largest(sums: np.ndarray) -> Head:
    """Return the head with the largest mean over its queries, from numbers [layer, head, query]."""
    layer, head = np.unravel_index(sums.mean(axis=-1).argmax(), sums.shape[:2])
    return int(layer), int(head)


def small(difference: SupportsFloat) -> str:
    """Format a difference with three decimals, or with a power of ten if it is below 0.001; exactly 0 is "0"."""
    size = float(difference)
    if size == 0:
        return "0"
    return f"{size:.1e}" if abs(size) < 1e-3 else f"{size:.3f}"


def percent(share: SupportsFloat) -> str:
    """Format a share as a percentage."""
    return f"{100 * float(share):.1f}%"


def receipt_of(record: Attention) -> str:
    """Return the receipt of a record."""
    return proof(record.receipt)


def head_name(head: Head) -> str:
    """Return the name of a head for use in a sentence."""
    return _("layer {layer}, head {head}").format(layer=head[0], head=head[1])


def head_title(name: str, head: Head) -> str:
    """Return the title of a panel for one head of a model."""
    return _("{name}, layer {layer}, head {head}").format(name=name, layer=head[0], head=head[1])


def weights_panel(title: str, weights: np.ndarray, words: Sequence[str], top: float = 1) -> Matrix:
    """Return a panel of the weights between the words of one sentence."""
    return Matrix(title, weights, words, words, limits=(0.0, top))


def signed_panel(
    title: str,
    values: np.ndarray,
    axes: tuple[str, str],
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
) -> Matrix:
    """Return a panel of signed numbers, with the titles of its rows and columns."""
    limit = float(np.abs(values).max())
    return Matrix(title, values, rows, columns, *axes, (-limit, limit), diverging=True)


def translation_panel(title: str, record: Attention, head: Head) -> Matrix:
    """Return a panel of the cross-attention weights of one head: decoding steps by English words."""
    return Matrix(
        title,
        record.pattern(*head),
        [token.text for token in record.query_tokens],
        [token.text for token in record.key_tokens],
        _("query: decoding step"),
        _("key: English word"),
    )


def top_keys() -> tuple[TopKeys, TopKeys]:
    """Return functions that find the keys with the largest weights: of toy, and of toy with random weights."""
    _card, toy = open_model(TOY, LanguageEncoder)
    return partial(_top_keys, toy), partial(_top_keys, measure.untrained(toy.config))


def _top_keys(model: LanguageEncoder, sentences: Sequence[GoldSentence]) -> Tensor:
    """Return the top keys of a model, which reads the sentences in one batch."""
    return measure.weights(model, sentences).argmax(dim=-1)


def sentence_text(gold: GoldSentence) -> str:
    """Return a sentence of the small language in normal spelling."""
    text = " ".join(gold.words)
    return text[0].upper() + text[1:].replace(" .", ".").replace(" ,", ",").replace(" i ", " I ")
