"""Batches joined from sentences that were encoded one by one."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeVar

import torch
from torch import Tensor

from attnviz.attention import Kind, Note, Token
from attnviz.capture.observers import CPU, Batch, Sentence

_Key = TypeVar("_Key", bound=Hashable)


def with_generation(
    sentence: Sentence,
    kind: Kind,
    unit: Literal["word", "token"],
    *,
    text: str,
    tokens: tuple[Token, ...],
    start: Token,
) -> Sentence:
    """Return a sentence with the text generated from it, and with the queries and keys of this kind of attention.

    A decoder reads the start token first, then the tokens generated so far; `unit` is that of its text, for the notes.
    """
    sentence = replace(sentence, target=text)
    if kind == "encoder":
        return sentence
    notes = [*sentence.notes, Note(f"row_generates_{unit}")]
    if kind == "decoder":
        notes.append(Note(f"column_read_{unit}s"))
    keys = sentence.tokens if kind == "cross" else (start, *tokens[:-1])
    return replace(sentence, tokens=tokens, keys=keys, notes=tuple(notes))


def batch_of_one(sentence: Sentence, inputs: dict[str, Tensor], kind: Kind | None = None) -> Batch:
    """Return a batch of one sentence, with the padding that the inputs' attention mask hides."""
    device = next((tensor.device for tensor in inputs.values()), CPU)
    keys = sentence.tokens if sentence.keys is None else sentence.keys
    real = torch.ones(1, len(sentence.tokens), dtype=torch.bool, device=device)
    real_keys = torch.ones(1, len(keys), dtype=torch.bool, device=device)
    if "attention_mask" in inputs and kind != "decoder":
        real_keys = inputs["attention_mask"] > 0
        real = real if kind == "cross" else real_keys
    return Batch(sentences=(sentence,), inputs=inputs, real=real, real_keys=real_keys, kind=kind)


def join(batches: Collection[Batch]) -> Batch:
    """Return one batch of all sentences, padded on the right, where no token of a causal model can attend to it."""
    first = next(iter(batches))
    return replace(
        first,
        sentences=tuple(sentence for batch in batches for sentence in batch.sentences),
        inputs={name: _stack([batch.inputs[name] for batch in batches]) for name in first.inputs},
        real=_stack([batch.real for batch in batches]),
        real_keys=_stack([batch.real_keys for batch in batches]),
    )


def first_sentence(batch: Batch) -> Batch:
    """Return a batch of only the first sentence, with its padding."""
    return replace(
        batch,
        sentences=batch.sentences[:1],
        inputs={name: tensor[:1] for name, tensor in batch.inputs.items()},
        real=batch.real[:1],
        real_keys=batch.real_keys[:1],
    )


def in_batches(singles: Mapping[_Key, Batch], tokens: int) -> Iterator[dict[_Key, Batch]]:
    """Yield groups of sentences of similar length, whose joined batch has at most `tokens` tokens with padding.

    `singles` holds batches of one sentence each; one with more tokens forms a group of its own.
    """
    group: dict[_Key, Batch] = {}
    for key, single in sorted(singles.items(), key=lambda item: size_of(item[1])):
        if group and (len(group) + 1) * size_of(single) > tokens:
            yield group
            group = {}
        group[key] = single
    if group:
        yield group


def size_of(batch: Batch) -> int:
    """Return the larger of the batch's numbers of queries and keys."""
    return max(batch.real.shape[1], batch.real_keys.shape[1])


def _stack(rows: Sequence[Tensor]) -> Tensor:
    """Stack tensors [1, token, ...] as rows, padded with 0."""
    longest = max(row.shape[1] for row in rows)
    return torch.cat(
        [
            torch.nn.functional.pad(row, (0, 0) * (row.ndim - 2) + (0, longest - row.shape[1]))
            for row in rows
        ]
    )
