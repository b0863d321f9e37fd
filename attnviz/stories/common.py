"""Models, sentences as word ids, panels and formatting that several stories use.

A model is one that comes with attnviz, or of the reader's choice: its self-attention, a row and a column for each word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, SupportsFloat, TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor

from attnviz.attention import Attention, Kind, Note
from attnviz.capture.attend import attend_all
from attnviz.capture.observers import Batch
from attnviz.capture.source import Model as AnyModel
from attnviz.capture.source import as_source
from attnviz.capture.sources import Source
from attnviz.capture.sources.home_built import TrainedSource
from attnviz.errors import FileFormatError, InputError, ModelError, TooLongError
from attnviz.heads.tally import wilson
from attnviz.heatmaps.words import hide_special, merge_words
from attnviz.models.language.sentences import GoldSentence
from attnviz.models.language.vocabulary import Vocabulary
from attnviz.models.registry import TOY
from attnviz.models.training import measure
from attnviz.models.training.files import ModelCard, load_home_built
from attnviz.models.training.measure import Head
from attnviz.models.training.tasks import Model, pad_numbers
from attnviz.models.wholes import LanguageEncoder
from attnviz.stories.record import Cell, Matrix, Panel, Story, StoryView, Table
from attnviz.text.display import clip, visible
from attnviz.text.messages import Phrase, _, join_phrases
from attnviz.text.notes import proof, sentence
from attnviz.text.words import split_words

M = TypeVar("M", bound=Model)

# under every picture of patterns
ROWS = _("Rows are queries, columns are keys; layers and heads count from 0.")

LEAST = 1e-3  # what three digits after the point can tell from 0
CERTAIN = 1.96  # standard errors on each side of a mean, between which it lies in 95 % of such experiments
# how many other sentences a head is chosen on, and as many more that it is tried on
OWN_SENTENCES = 100
AT_ONCE = 50  # sentences that run together
SELF_ATTENTION: tuple[Kind, ...] = ("encoder", "decoder")

Look: TypeAlias = Callable[[Sequence[GoldSentence]], Tensor]
"""A function from sentences to the key with the largest weight [sentence, layer, head, word]."""


class Estimate(NamedTuple):
    """A mean with the ends of its 95 % interval."""

    mean: float
    low: float
    high: float

    @classmethod
    def of_share(cls, share: float, n: int) -> Estimate:
        """A share of n things, with Wilson's interval."""
        return cls(share, *wilson(share, n))

    def shown(self) -> Phrase:
        """Return the mean and its interval as text."""
        return _("{mean:.3f} ({low:.3f} to {high:.3f})").format(**self._asdict())


def story(
    *,
    title: Phrase,
    receipt: Phrase,
    parts: Iterable[Phrase | Table],
    picture: Iterable[Panel],
    views: Iterable[StoryView] = (),
    records: Iterable[Attention] = (),
) -> Story:
    """Return a story of these parts."""
    return Story(
        title=title,
        receipt=receipt,
        parts=tuple(parts),
        picture=tuple(picture),
        views=tuple(views),
        records=tuple(records),
    )


def table(
    title: Phrase, columns: Iterable[str], rows: Iterable[Iterable[Cell]], **more: Any
) -> Table:
    """Return a table of these rows."""
    return Table(title, tuple(columns), tuple(map(tuple, rows)), **more)


def row_view(
    text: Phrase, record: Attention, head: Head, query: int, number: int, **values: object
) -> StoryView:
    """Return a view of one row of the record of this number.

    The text may name the model, the row's word, what it attends to most, and that weight.
    """
    row, word = record.pattern(*head)[query], record.query_tokens[query].text
    at = record.key_tokens[int(row.argmax())].text
    text = text.format(name=record.model, word=word, at=at, weight=row.max(), **values)
    return StoryView(text=text, head=head, query=query, record=number)


def words_of(text: str) -> list[str]:
    """The words and punctuation marks of a sentence."""
    return [text[start:end] for start, end in split_words(text)]


def open_model(name: str, kind: type[M]) -> tuple[ModelCard, M]:
    """A trained model of this kind, with its card. Raises FileFormatError: its file holds another kind of model."""
    card, model = load_home_built(name)
    if not isinstance(model, kind):
        raise FileFormatError(
            f"{name} must be of the kind {kind.__name__}: its file holds a {type(model).__name__}"
        )
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
    return tuple(_("number {i}").format(i=i) for i in range(n))


def percent(share: SupportsFloat) -> str:
    """A share in percent."""
    return f"{100 * float(share):.1f} %"


def receipt_of(record: Attention) -> Phrase:
    """The receipt of a record."""
    return proof(record.receipt)


def head_name(head: Head) -> Phrase:
    """A head as text: ``head 2.3`` is head 3 of layer 2."""
    return _("head {layer}.{head}").format(layer=head[0], head=head[1])


def square(title: str, values: np.ndarray, words: Sequence[str], top: float = 1.0) -> Matrix:
    """A panel of the weights between the words of one sentence."""
    return Matrix(title, values, tuple(words), tuple(words), limits=(0.0, top))


def signed(
    title: str, values: np.ndarray, axes: Sequence[str], top: float | None = None, **names: Any
) -> Matrix:
    """A panel of numbers on both sides of 0, between -top and top; without a top up to the largest of them."""
    limit = float(np.abs(values).max()) if top is None else top
    return Matrix(
        title,
        values,
        row_title=axes[0],
        column_title=axes[1],
        limits=(-limit, limit),
        diverging=True,
        **names,
    )


def steps_panel(title: str, record: Attention, head: Head) -> Matrix:
    """A panel of what each step of a decoder looks at in the English sentence."""
    rows, columns = (
        tuple(token.text for token in tokens) for tokens in (record.query_tokens, record.key_tokens)
    )
    row_title, column_title = _("query: decoding step"), _("key: English word")
    return Matrix(title, record.pattern(*head), rows, columns, row_title, column_title)


def open_own(model: AnyModel) -> Source:
    """The model that a story is told with. Raises ModelError: it has no self-attention, or cannot be used."""
    source = as_source(model)
    if not set(source.kinds) & set(SELF_ATTENTION):
        raise ModelError(
            f"{source.name} has no self-attention, which this story is about: it has {source.kinds[0]}"
        )
    return source


def read_words(source: Source, texts: Sequence[str]) -> Iterator[Attention]:
    """The self-attention of sentences, word by word: pieces merged, special tokens left out.

    Raises:
        InputError: the model knows none of a sentence's words, or has no token of its own for one of them.
        TooLongError: the model takes no sentence so long.
    """
    kind = next(kind for kind in SELF_ATTENTION if kind in source.kinds)
    for first in range(0, len(texts), AT_ONCE):
        some = texts[first : first + AT_ONCE]
        # A home-built translator would generate a translation, which its encoder's attention does not need.
        translates = source.generates and isinstance(
            getattr(source, "usual", source), TrainedSource
        )
        targets = ["."] * len(some) if translates else None
        try:
            records = attend_all(some, source, kind=kind, targets=targets)
        except TooLongError:
            raise TooLongError(
                f"a sentence of this story has more tokens than {source.name} takes"
            ) from None
        yield from map(_in_words, records)


def _in_words(record: Attention) -> Attention:
    words, found = words_of(record.text), hide_special(merge_words(record))
    places = [token.word for token in found.query_tokens]
    if places != list(range(len(words))):
        missing = next((word for place, word in enumerate(words) if place not in places), "a space")
        raise InputError(
            f"{record.model} cannot be shown word by word: it has no token of its own for “{missing}”"
        )
    pieces = [
        (token.word or 0, "→" in token.text) for token in record.query_tokens if not token.special
    ]
    unknown = sorted({word for word, is_unknown in pieces if is_unknown})
    if len(unknown) == len(words):
        raise InputError(f"{record.model} knows none of the words of “{clip(record.text, 60)}”")
    if not unknown or any(note.code == "unknown_words" for note in found.notes):
        return found
    note = Note.of("unknown_words", words=", ".join(words[place] for place in unknown))
    return replace(found, notes=(*found.notes, note))


class AtOnePlace:
    """A model every word of which is told that it stands at position 0; it passes for a source.

    Models that take no position numbers read as before.
    """

    def __init__(self, source: Source) -> None:
        self.usual = source
        self.name, self.kinds, self.generates = source.name, source.kinds, source.generates
        self.has_sinks = source.has_sinks
        self.digest, self.untrained, self.stream = source.digest, source.untrained, source.stream

    def encode(self, texts: Sequence[str], *pairs: Any, **more: Any) -> Batch:
        """The source's own batch, with a 0 for each position."""
        batch = self.usual.encode(texts, *pairs, **more)
        if "input_ids" not in batch.inputs:
            return batch
        return replace(
            batch,
            inputs={**batch.inputs, "position_ids": torch.zeros_like(batch.inputs["input_ids"])},
        )


def without_positions(source: Source, texts: Sequence[str]) -> list[Attention] | None:
    """The self-attention of sentences without positions, word by word; None where they cannot be taken away."""
    try:
        bare, usual = (list(read_words(one, texts)) for one in (AtOnePlace(source), source))
    except ModelError:
        return None
    return (
        None
        if all(np.array_equal(a.weights, b.weights) for a, b in zip(bare, usual, strict=True))
        else bare
    )


def looks_of(source: Source, n: int) -> tuple[Look, Look, int]:
    """Where a model looks, and one like it with random weights; and on how many sentences to see it: n of toy.

    What they find after the end of a sentence means nothing.
    """
    if source.name != TOY:
        return partial(_looks_in, source), partial(_looks_in, source.untrained()), OWN_SENTENCES
    toy = open_model(TOY, LanguageEncoder)[1]
    at_once, at_random = (
        partial(_looks_at_once, one) for one in (toy, measure.untrained(toy.config))
    )
    return at_once, at_random, n


def _looks_at_once(model: LanguageEncoder, sentences: Sequence[GoldSentence]) -> Tensor:
    return measure.weights(model, sentences).argmax(dim=-1)


def _looks_in(source: Source, sentences: Sequence[GoldSentence]) -> Tensor:
    """Return the key word with the largest weight for each word, in any model."""
    rows = [
        torch.from_numpy(one.weights.argmax(axis=-1))
        for one in read_words(source, [*map(sentence_text, sentences)])
    ]
    longest = max(row.shape[-1] for row in rows)
    return torch.stack(
        [torch.nn.functional.pad(row, (0, longest - row.shape[-1]), value=-1) for row in rows]
    )


def sentence_text(made: GoldSentence) -> str:
    """A sentence of the small language as a person writes it."""
    text = " ".join(made.words)
    return text[0].upper() + text[1:].replace(" .", ".").replace(" ,", ",").replace(" i ", " I ")


def name_of(source: Source) -> str:
    """Return a model's name in a story."""
    return clip(visible(source.name.rstrip("/").rpartition("/")[2]), 30)


def notes_of(records: Iterable[Attention]) -> tuple[Phrase, ...]:
    """Return the notes on the sentences that are shown, such as truncation."""
    notes = dict.fromkeys(note for record in records for note in record.notes)
    sentences = [_("Note: {note}.").format(note=sentence(note)) for note in notes]
    return (join_phrases(sentences),) if sentences else ()
