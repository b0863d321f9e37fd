"""What stories share: trained models, sentences as numbers of words, panels, numbers as text, and how all is joined."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, SupportsFloat, TypeVar

import numpy as np
import torch

from attnviz.attention import Attention
from attnviz.errors import FileFormatError
from attnviz.heads.tally import wilson
from attnviz.models.language.vocabulary import Vocabulary
from attnviz.models.training.files import ModelCard, load_home_built
from attnviz.models.training.measure import Head
from attnviz.models.training.tasks import Model, pad_numbers
from attnviz.stories.record import Cell, Matrix, Panel, Story, StoryView, Table
from attnviz.text.notes import proof
from attnviz.text.phrase import Phrase, Texts
from attnviz.text.words import split_words

M = TypeVar("M", bound=Model)

ROWS = Phrase(
    "Rows are queries, columns are keys; layers and heads count from 0.",
    "행은 쿼리, 열은 키이고, 층과 헤드는 0부터 셉니다.",
)
"""What stands under every picture of patterns."""

LEAST = 1e-3  # what three digits after the point can tell from 0
CERTAIN = 1.96  # standard errors on each side of a mean, between which it lies in 95 % of such experiments


class Estimate(NamedTuple):
    """A mean with the ends of its 95 % interval."""

    mean: float
    low: float
    high: float

    @classmethod
    def of_share(cls, share: float, n: int) -> Estimate:
        """A share of n things, with Wilson's interval."""
        return cls(share, *wilson(share, n))

    def __str__(self) -> str:
        return f"{self.mean:.3f} ({self.low:.3f} to {self.high:.3f})"

    @property
    def ko(self) -> str:
        """The same in Korean."""
        return f"{self.mean:.3f} ({self.low:.3f}~{self.high:.3f})"


def story(
    say: Texts, parts: Iterable[str | Table], picture: Iterable[Panel], *, title: str = "title",
    receipt: str = "receipt", views: Iterable[StoryView] = (), records: Iterable[Attention] = (),
) -> Story:  # fmt: skip
    """A story; its title, its receipt and each part may be the name of a text."""
    return Story(
        title=say(title), receipt=say(receipt), picture=tuple(picture), views=tuple(views), records=tuple(records),
        parts=tuple(part if isinstance(part, Table) else say(part) for part in parts),
    )  # fmt: skip


def table(say: Texts, name: str, rows: Iterable[Iterable[Cell]], **more: Any) -> Table:
    """A table; the text of this name is its title, the text `NAME_columns` names its columns."""
    return Table(say(name), say.names(f"{name}_columns"), tuple(map(tuple, rows)), **more)


def row_view(say: Texts, record: Attention, head: Head, query: int, number: int) -> StoryView:
    """A view of a row of the record of this number; the text `view` may name what it looks at most, and the weight."""
    row, word = record.pattern(*head)[query], record.query_tokens[query].text
    at = record.key_tokens[int(row.argmax())].text
    text = say("view", name=record.model, word=word, at=at, weight=row.max())
    return StoryView(text=text, head=head, query=query, record=number)


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


def largest(sums: np.ndarray) -> Head:
    """The head with the largest mean over its rows [layer, head, query]."""
    layer, head = np.unravel_index(sums.mean(axis=-1).argmax(), sums.shape[:2])
    return int(layer), int(head)


def small(difference: SupportsFloat) -> str:
    """A difference: exactly 0, or three digits, or where it is too small for them its size."""
    size = float(difference)
    return "0" if not size else f"{size:.1e}" if abs(size) < LEAST else f"{size:.3f}"


def number_names(n: int) -> tuple[Phrase, ...]:
    """Names for the numbers of a vector."""
    return tuple(Phrase(f"number {i}", f"{i}번째 수") for i in range(n))


def percent(share: SupportsFloat) -> str:
    """A share in percent."""
    return f"{100 * float(share):.1f} %"


def receipt_of(record: Attention) -> Phrase:
    """The receipt of a record."""
    return Phrase(proof(record.receipt), proof(record.receipt, "ko"))


def head_name(head: Head) -> Phrase:
    """A head as text: ``head 2.3`` is head 3 of layer 2."""
    return Phrase("head {}.{}".format(*head), "헤드 {}.{}".format(*head))


def square(title: str, values: np.ndarray, words: Sequence[str], top: float = 1.0) -> Matrix:
    """A panel of the weights between the words of one sentence."""
    return Matrix(title, values, tuple(words), tuple(words), limits=(0.0, top))


def signed(title: str, values: np.ndarray, axes: Sequence[str], top: float | None = None, **names: Any) -> Matrix:
    """A panel of numbers on both sides of 0, between -top and top; without a top up to the largest of them."""
    limit = float(np.abs(values).max()) if top is None else top
    return Matrix(
        title, values, row_title=axes[0], column_title=axes[1], limits=(-limit, limit), diverging=True, **names
    )


def steps_panel(title: str, record: Attention, head: Head) -> Matrix:
    """A panel of what each step of a decoder looks at in the English sentence."""
    rows, columns = (tuple(token.text for token in tokens) for tokens in (record.query_tokens, record.key_tokens))
    row_title, column_title = (
        Phrase("query: decoding step", "쿼리: 디코딩 단계"),
        Phrase("key: English word", "키: 영어 단어"),
    )
    return Matrix(title, record.pattern(*head), rows, columns, row_title, column_title)
