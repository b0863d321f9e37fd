"""Batches put together from sentences encoded one by one, and batches with their tokens shuffled."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import numpy as np
import torch
from torch import Tensor

from attnviz.attention import Kind, Note, Token
from attnviz.capture.observers import CPU, Batch, Sentence

_Key = TypeVar("_Key", bound=Hashable)
# The inputs with the ids of tokens that are read, one for each sort of model.
READ = ("input_ids", "words", "source")


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedText:
    """The text that a model generates from one sentence."""

    text: str  # as typed, or what its tokens mean
    tokens: tuple[Token, ...]  # those that it generates, one a step
    # those that its decoder reads, one a step: its start, then those generated before
    read: tuple[Token, ...]
    notes: tuple[Note, ...] = ()


def with_generation(
    sentence: Sentence, made: GeneratedText, kind: Kind, unit: Literal["word", "token"]
) -> Sentence:
    """Return a sentence with its generated text, and the queries and keys of this kind of attention."""
    sentence = replace(sentence, target=made.text, notes=(*sentence.notes, *made.notes))
    if kind == "encoder":
        return sentence
    notes = [Note(f"row_generates_{unit}")]
    if kind == "decoder":
        notes.append(Note(f"column_read_{unit}s"))
    keys = sentence.tokens if kind == "cross" else made.read
    return replace(sentence, tokens=made.tokens, keys=keys, notes=(*sentence.notes, *notes))


def batch_of_one(sentence: Sentence, inputs: dict[str, Tensor], kind: Kind | None = None) -> Batch:
    """Return a batch of one sentence, without padding."""
    device = next((given.device for given in inputs.values()), CPU)
    keys = sentence.tokens if sentence.keys is None else sentence.keys
    real = torch.ones(1, len(sentence.tokens), dtype=torch.bool, device=device)
    real_keys = torch.ones(1, len(keys), dtype=torch.bool, device=device)
    return Batch(sentences=(sentence,), inputs=inputs, real=real, real_keys=real_keys, kind=kind)


def join(batches: Collection[Batch]) -> Batch:
    """Return one batch of all sentences, padded on the right, where causal models stay exact too.

    No number of any sentence depends on the others.
    """
    first = next(iter(batches))
    return replace(
        first,
        sentences=tuple(sentence for batch in batches for sentence in batch.sentences),
        inputs={name: _stack([batch.inputs[name] for batch in batches]) for name in first.inputs},
        real=_stack([batch.real for batch in batches]),
        real_keys=_stack([batch.real_keys for batch in batches]),
    )


def first_sentence(batch: Batch) -> Batch:
    """Return the first sentence of a batch, with the padding that it has there."""
    return replace(
        batch,
        sentences=batch.sentences[:1],
        inputs={name: given[:1] for name, given in batch.inputs.items()},
        real=batch.real[:1],
        real_keys=batch.real_keys[:1],
    )


def in_batches(singles: Mapping[_Key, Batch], tokens: int) -> Iterator[dict[_Key, Batch]]:
    """Yield sentences of similar length together, padded to at most so many tokens; a longer one alone.

    The sentences may have any keys, and keep them.
    """
    together: dict[_Key, Batch] = {}
    for key, single in sorted(singles.items(), key=lambda one: size_of(one[1])):
        if together and (len(together) + 1) * size_of(single) > tokens:
            yield together
            together = {}
        together[key] = single
    if together:
        yield together


def size_of(batch: Batch) -> int:
    """Return the number of tokens of the longest sentence, read or generated."""
    return max(batch.real.shape[1], batch.real_keys.shape[1])


def shuffle(single: Batch, seed: int) -> Batch | None:
    """Return one sentence with the tokens that are read in random order, special tokens in their places.

    None where the model itself generates those tokens.
    """
    (sentence,) = single.sentences
    if single.kind == "decoder" and sentence.keys is not None:
        return None
    tokens = sentence.tokens if sentence.keys is None else sentence.keys
    free = [place for place, token in enumerate(tokens) if not token.special]
    order = np.arange(len(tokens))
    order[free] = np.random.Generator(np.random.PCG64(seed)).permutation(free)
    mixed = tuple(tokens[place] for place in order.tolist())
    notes = (*sentence.notes, Note("tokens_shuffled"))
    if sentence.keys is None:
        shuffled = replace(sentence, tokens=mixed, notes=notes)
    else:
        shuffled = replace(sentence, keys=mixed, notes=notes)
    inputs = {
        name: given[:, order] if name in READ else given for name, given in single.inputs.items()
    }
    return replace(single, sentences=(shuffled,), inputs=inputs)


def _stack(rows: Sequence[Tensor]) -> Tensor:
    """Stack tensors [1, token] as rows, padded with 0."""
    longest = max(row.shape[1] for row in rows)
    return torch.cat([torch.nn.functional.pad(row, (0, longest - row.shape[1])) for row in rows])
