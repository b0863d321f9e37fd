"""A story told with a model of the reader's choice: its self-attention, with a row and a column for each word."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from attnviz.attention import Attention, Kind, Note
from attnviz.capture.attend import attend_all
from attnviz.capture.observers import Batch
from attnviz.capture.source import Model, as_source
from attnviz.capture.sources import Source
from attnviz.capture.sources.home_built import TrainedSource
from attnviz.errors import InputError, ModelError, TooLongError
from attnviz.heatmaps.words import hide_special, merge_words
from attnviz.models.language.english import GoldSentence
from attnviz.models.registry import TOY
from attnviz.models.training import measure
from attnviz.models.wholes import LanguageEncoder
from attnviz.stories.common import open_model, words_of
from attnviz.text.display import clip, visible
from attnviz.text.notes import sentence
from attnviz.text.phrase import Phrase, join_phrases

SENTENCES = 100  # how many other sentences a head is chosen on, and as many more that it is tried on
AT_ONCE = 50  # sentences that run together
SELF_ATTENTION: tuple[Kind, ...] = ("encoder", "decoder")

Look: TypeAlias = Callable[[Sequence[GoldSentence]], Tensor]
"""Where each head of a model looks most from each word of sentences [sentence, layer, head, word]."""


def open_own(model: Model) -> Source:
    """The model that a story is told with.

    Raises:
        ModelError: it has no self-attention, or cannot be used.
    """
    source = as_source(model)
    if not set(source.kinds) & set(SELF_ATTENTION):
        raise ModelError(f"{source.name} has no self-attention, which this story is about: it has {source.kinds[0]}")
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
        translates = source.generates and isinstance(getattr(source, "usual", source), TrainedSource)
        targets = ["."] * len(some) if translates else None
        try:
            records = attend_all(some, source, kind=kind, targets=targets)
        except TooLongError:
            raise TooLongError(f"a sentence of this story has more tokens than {source.name} takes") from None
        yield from map(_in_words, records)


def _in_words(record: Attention) -> Attention:
    words, found = words_of(record.text), hide_special(merge_words(record))
    places = [token.word for token in found.query_tokens]
    if places != list(range(len(words))):
        missing = next((word for place, word in enumerate(words) if place not in places), "a space")
        raise InputError(f"{record.model} cannot be shown word by word: it has no token of its own for “{missing}”")
    pieces = [(token.word or 0, "→" in token.text) for token in record.query_tokens if not token.special]
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
        return replace(batch, inputs={**batch.inputs, "position_ids": torch.zeros_like(batch.inputs["input_ids"])})


def without_positions(source: Source, texts: Sequence[str]) -> list[Attention] | None:
    """The self-attention of sentences without positions, word by word; None where they cannot be taken away."""
    try:
        bare, usual = (list(read_words(one, texts)) for one in (AtOnePlace(source), source))
    except ModelError:
        return None
    return None if all(np.array_equal(a.weights, b.weights) for a, b in zip(bare, usual, strict=True)) else bare


def looks_of(source: Source, n: int) -> tuple[Look, Look, int]:
    """Where a model looks, and one like it with random weights; and on how many sentences to see it: n of toy.

    What they find after the end of a sentence means nothing.
    """
    if source.name != TOY:
        return partial(_looks_in, source), partial(_looks_in, source.untrained()), SENTENCES
    _, toy = open_model(TOY, LanguageEncoder)
    at_once, at_random = (partial(_looks_at_once, one) for one in (toy, measure.untrained(toy.config)))
    return at_once, at_random, n


def _looks_at_once(model: LanguageEncoder, sentences: Sequence[GoldSentence]) -> Tensor:
    return measure.weights(model, sentences).argmax(dim=-1)


def _looks_in(source: Source, sentences: Sequence[GoldSentence]) -> Tensor:
    """The same of any model, word by word."""
    rows = [
        torch.from_numpy(one.weights.argmax(axis=-1)) for one in read_words(source, [*map(sentence_text, sentences)])
    ]
    longest = max(row.shape[-1] for row in rows)
    return torch.stack([torch.nn.functional.pad(row, (0, longest - row.shape[-1]), value=-1) for row in rows])


def sentence_text(made: GoldSentence) -> str:
    """A sentence of the small language as a person writes it."""
    text = " ".join(made.words)
    return text[0].upper() + text[1:].replace(" .", ".").replace(" ,", ",").replace(" i ", " I ")


def name_of(source: Source) -> str:
    """What a story calls a model."""
    return clip(visible(source.name.rstrip("/").rpartition("/")[2]), 30)


def notes_of(records: Iterable[Attention]) -> tuple[Phrase, ...]:
    """What was done to the sentences that are shown, if anything."""
    notes = dict.fromkeys(note for record in records for note in record.notes)
    said = [Phrase(sentence(note), sentence(note, "ko")) for note in notes]
    return (join_phrases(Phrase(f"Note: {one}.", f"참고: {one.ko}.") for one in said),) if said else ()
