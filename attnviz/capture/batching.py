"""Batches put together from sentences encoded one by one, and batches with their tokens shuffled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from attnviz.attention import Note
from attnviz.capture.observers import Batch, Sentence

READ = ("input_ids", "words", "source")
"""The inputs that hold the numbers of the tokens that are read, one of them for each sort of model."""


def joined(batches: Sequence[Batch]) -> Batch:
    """One batch of all sentences, padded on the right: no number of any sentence depends on the others.

    What stands where there is padding is masked, or comes after all that is real.
    """
    first = batches[0]
    keys = [batch.real_keys for batch in batches if batch.real_keys is not None]
    return replace(
        first,
        sentences=tuple(sentence for batch in batches for sentence in batch.sentences),
        inputs={name: _stacked([batch.inputs[name] for batch in batches]) for name in first.inputs},
        real=_stacked([batch.real for batch in batches]),
        real_keys=_stacked(keys) if keys else None,
    )


def alone(batch: Batch) -> Batch:
    """The first sentence of a batch, with the padding it has there."""
    return replace(
        batch,
        sentences=batch.sentences[:1],
        inputs={name: given[:1] for name, given in batch.inputs.items()},
        real=batch.real[:1],
        real_keys=None if batch.real_keys is None else batch.real_keys[:1],
    )


def in_batches(singles: Sequence[Batch], tokens: int) -> Iterator[list[Batch]]:
    """Sentences of like length together, so many that with their padding they have no more tokens than this.

    A sentence that has more alone is a batch of its own.
    """
    together: list[Batch] = []
    for single in sorted(singles, key=size_of):
        if together and (len(together) + 1) * size_of(single) > tokens:
            yield together
            together = []
        together.append(single)
    if together:
        yield together


def size_of(batch: Batch) -> int:
    """How many tokens its longest sentence has, read or generated."""
    return max(batch.real.shape[1], 0 if batch.real_keys is None else batch.real_keys.shape[1])


def shuffled(single: Batch, seed: int) -> Batch | None:
    """A sentence with the tokens that are read shuffled; special tokens stay where they are.

    Args:
        single: a batch of one sentence.
        seed: another seed, another order.

    Returns:
        None where what is looked at is what the model itself generates: there is no other order of that.
    """
    (sentence,) = single.sentences
    if single.kind == "decoder" and sentence.keys is not None:
        return None
    tokens = sentence.tokens if sentence.keys is None else sentence.keys
    free = [place for place, token in enumerate(tokens) if not token.special]
    order = list(range(len(tokens)))
    drawn = np.random.Generator(np.random.PCG64(seed)).permutation(free).tolist()
    for place, taken in zip(free, drawn, strict=True):
        order[place] = taken
    mixed = tuple(tokens[place] for place in order)
    changed = replace(sentence, tokens=mixed) if sentence.keys is None else replace(sentence, keys=mixed)
    inputs = {name: given[:, order] if name in READ else given for name, given in single.inputs.items()}
    return replace(single, sentences=(_note_shuffled(changed),), inputs=inputs)


def _note_shuffled(sentence: Sentence) -> Sentence:
    return replace(sentence, notes=(*sentence.notes, Note("tokens_shuffled")))


def _stacked(rows: Sequence[Tensor]) -> Tensor:
    """Tensors [1, token] under one another, padded with 0."""
    longest = max(row.shape[1] for row in rows)
    return torch.cat([torch.nn.functional.pad(row, (0, longest - row.shape[1])) for row in rows])
