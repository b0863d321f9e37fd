"""The tokens of a pretrained model, with the labels that a person reads.

The span of a token is its first and its one-past-last character in the text. The text of some tokens differs from their
spelling in the vocabulary (`piece`), and tokens of a few bytes have no text of their own.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from attnviz.attention import GENERATED, Note, Token
from attnviz.errors import InputError
from attnviz.text.display import HANGUL, token_text, visible
from attnviz.text.words import assign_words

Span: TypeAlias = tuple[int, int]


def read_tokens(
    tokenizer: Any, encoded: Any, text: str, pair: str | None = None
) -> tuple[Token, ...]:
    """Return the tokens of a sentence and its pair.

    `encoded` is the tokenizer's output, with a mask of special tokens and, from a fast tokenizer, offsets.
    """
    ids: list[int] = encoded["input_ids"]
    pieces: list[str] = tokenizer.convert_ids_to_tokens(ids)
    are_special = [bool(mark) for mark in encoded["special_tokens_mask"]]
    if tokenizer.is_fast:
        segments, spans = encoded.sequence_ids(0), encoded["offset_mapping"]
    else:
        segments, spans = _slow_spans(tokenizer, pieces, are_special, (text, pair or ""))
    return _labelled(tokenizer, ids, pieces, spans, (text, pair or ""), are_special, segments)


def check_words(words: Sequence[str], tokens: Sequence[Token]) -> None:
    """Raise InputError if one of these words, which stand in the text with spaces between them, has no token."""
    spans = [token.span for token in tokens if token.span is not None]
    if not spans:
        return  # a tokenizer written in Python does not tell where its tokens stand
    with_token = {place for start, end in spans for place in range(start, end)}
    start = 0
    for number, word in enumerate(words):
        if with_token.isdisjoint(range(start, start + len(word))):
            raise InputError(
                f"the tokenizer has no token for word {number}, {word!r}: leave it out"
            )
        start += len(word) + 1


NO_IDS = "expected a text, its words, or the token ids of one text, as a list, a tensor or the tokenizer's output"
# What tokenizers and processors return for the caller alone; no model computes with it.
FOR_THE_CALLER = frozenset(
    {"special_tokens_mask", "offset_mapping", "length", "overflow_to_sample_mapping"}
    | {"overflowing_tokens", "num_truncated_tokens"}
)


def read_encoding(prepared: Any, n_known: int, padding: int | None) -> dict[str, Tensor]:
    """Return the inputs of a model for one text, from the output of a tokenizer or processor or from ids alone.

    Each has an axis for the batch. If there is no ``attention_mask``, ids equal to `padding` at both ends are left out.
    """
    parts = prepared if isinstance(prepared, Mapping) else {"input_ids": prepared}
    inputs = {
        name: _as_tensor(part, name)
        for name, part in parts.items()
        if part is not None and name not in FOR_THE_CALLER
    }
    ids = inputs.get("input_ids", torch.zeros(0))
    if ids.ndim == 1:  # without an axis for the batch, which inputs with one row a token lack too
        inputs = {
            name: tensor[None] if tensor.shape[:1] == ids.shape else tensor
            for name, tensor in inputs.items()
        }
        ids = ids[None]
    if ids.ndim != 2 or len(ids) != 1 or ids.is_floating_point() or not ids.numel():
        raise InputError(NO_IDS)
    if not 0 <= ids.min() <= ids.max() < n_known:
        raise InputError(f"token ids are from 0 to {n_known - 1:,}: got {ids.min()} to {ids.max()}")
    mask = inputs.get("attention_mask", ids != (-1 if padding is None else padding))
    if mask.shape != ids.shape:
        raise InputError(
            f"the attention_mask has the shape {tuple(mask.shape)}, the ids {tuple(ids.shape)}"
        )
    places = mask[0].nonzero()[:, 0]
    if not len(places):
        raise InputError("there is no token: all ids are padding")
    if "attention_mask" in inputs:
        return inputs
    real = slice(int(places[0]), int(places[-1]) + 1)
    inputs = {
        name: tensor[:, real] if tensor.shape[:2] == ids.shape else tensor
        for name, tensor in inputs.items()
    }
    return {**inputs, "attention_mask": torch.ones_like(inputs["input_ids"])}


def _as_tensor(part: Any, name: str) -> Tensor:
    """Return an input of a model as a tensor. Raises InputError: it is no array of numbers."""
    if isinstance(part, Tensor):
        return part
    try:
        array = np.asarray(part)
        if array.ndim:
            return torch.from_numpy(array)
    except (TypeError, ValueError):  # rows of several lengths, texts, objects
        pass
    raise InputError(NO_IDS if name == "input_ids" else f"{name} must be an array of numbers")


def padding_id(tokenizer: Any) -> int | None:
    """Return the id of padding; None if there is none, or if a token that has another meaning is used for it.

    GPT-2 has no token for padding, so that people often take its end token.
    """
    padding: int | None = tokenizer.pad_token_id
    others = (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.unk_token_id)
    return None if padding in others else padding


def generated_tokens(
    tokenizer: Any, ids: Sequence[int], text: str | None = None
) -> tuple[Token, ...]:
    """Return the tokens that a model generates; `text` is their text, which is decoded if it is None.

    If tokenizing the text gives the same ids again, the tokenizer's offsets are the spans of the tokens. Otherwise each
    token ends where the decoded text of all tokens up to it ends.
    """
    text = meaning(tokenizer, ids) if text is None else text
    pieces, are_special = pieces_of(tokenizer, ids), [False] * len(ids)
    if not is_of_library(tokenizer):
        spans = _own_spans(tokenizer, ids, text)
    else:
        special, is_fast = set(tokenizer.all_special_ids), tokenizer.is_fast
        are_special = [number in special for number in ids]
        spans = _spans_of_generated(tokenizer, ids, text) if is_fast else [None] * len(ids)
    tokens = _labelled(tokenizer, ids, pieces, spans, (text, ""), are_special)
    return tuple(replace(token, segment=GENERATED) for token in tokens)


def own_tokens(tokenizer: Any, text: str) -> tuple[Token, ...]:
    """Return the tokens of a text by the user's own tokenizer, or its bytes if `tokenizer` is None."""
    if is_of_library(tokenizer):
        options = {"return_offsets_mapping": tokenizer.is_fast, "return_special_tokens_mask": True}
        return read_tokens(tokenizer, tokenizer(text, verbose=False, **options), text)
    encoding = text.encode() if tokenizer is None else tokenizer.encode(text)
    # The package tokenizers returns an object with `ids`, others the ids themselves, perhaps as a tensor.
    all_ids = [int(number) for number in getattr(encoding, "ids", encoding)]
    # Its tokenizers may add padding, which the module could not tell from tokens.
    are_real = [bool(mark) for mark in getattr(encoding, "attention_mask", [True] * len(all_ids))]
    ids = [*itertools.compress(all_ids, are_real)]
    spans: Sequence[Span | None]
    if hasattr(encoding, "offsets"):  # those of tokens that are not in the text are empty
        offsets = itertools.compress(encoding.offsets, are_real)
        spans = [span if span[0] < span[1] else None for span in offsets]
    else:
        spans = _own_spans(tokenizer, ids, text)
    return _labelled(tokenizer, ids, pieces_of(tokenizer, ids), spans, (text, ""))


def meaning(tokenizer: Any, ids: Sequence[int]) -> str:
    """Return the text of token ids (bytes if `tokenizer` is None), without the special tokens of transformers."""
    if tokenizer is None:
        return bytes(ids).decode(errors="replace")
    options = {}
    if is_of_library(tokenizer):
        options = {"skip_special_tokens": True, "clean_up_tokenization_spaces": False}
    return str(tokenizer.decode(list(ids), **options))


def n_tokens(tokenizer: Any) -> int | None:
    """Return the size of a tokenizer's vocabulary; None if it is unknown, 256 (bytes) if `tokenizer` is None."""
    if tokenizer is None:
        return 256
    if hasattr(tokenizer, "__len__"):
        return len(tokenizer)
    if hasattr(tokenizer, "get_vocab_size"):  # the package tokenizers
        return int(tokenizer.get_vocab_size())
    return getattr(tokenizer, "n_vocab", None)  # the package tiktoken


def is_of_library(tokenizer: Any) -> bool:
    """Return whether a tokenizer comes from transformers."""
    return hasattr(tokenizer, "convert_ids_to_tokens")


def pieces_of(tokenizer: Any, ids: Sequence[int]) -> list[str]:
    """Return the spelling of each token in the vocabulary or, if the tokenizer does not tell it, its text."""
    if not is_of_library(tokenizer):
        return [meaning(tokenizer, [number]) for number in ids]
    pieces = tokenizer.convert_ids_to_tokens(list(ids))
    # Some models have more ids than their vocabulary has tokens; such an id has no piece.
    return [piece or f"<{number}>" for piece, number in zip(pieces, ids, strict=True)]


def _own_spans(tokenizer: Any, ids: Sequence[int], text: str) -> Sequence[Span | None]:
    """Return the spans of tokens by the user's own tokenizer; None for each if they do not make up the text."""
    if meaning(tokenizer, ids) != text:
        return [None] * len(ids)
    return _spans_by_prefixes(partial(meaning, tokenizer), ids, text)


def notes_on(
    tokenizer: Any, tokens: Sequence[Token], text: str, pair: str | None = None
) -> tuple[Note, ...]:
    """Return notes on broken Korean syllables, on unknown tokens, and on sentences with nothing between them."""
    notes = []
    if (syllable := _broken_syllable(tokens, (text, pair or ""))) is not None:
        notes.append(Note.of("syllables_broken", syllable=syllable[0], n=syllable[1]))
    unknown = getattr(tokenizer, "unk_token_id", None)
    numbers = [token.id for token in tokens if not token.special]
    if unknown is not None and unknown in numbers:
        n = numbers.count(unknown)
        notes.append(Note.of("unknown_tokens", n=n, total=len(numbers)))
    if any(
        (first.segment, second.segment) == (0, 1) and not (first.special or second.special)
        for first, second in itertools.pairwise(tokens)
    ):
        notes.append(Note("sentences_run_together"))
    return tuple(notes)


def _broken_syllable(tokens: Sequence[Token], typed: tuple[str, str]) -> tuple[str, int] | None:
    """Return the first Korean syllable that is split into several tokens, and their number; None if there is none."""
    # The number of tokens that each character is in, by its sentence and place.
    counts = Counter(
        (token.segment, place)
        for token in tokens
        if token.span and not token.special and token.piece.strip("▁Ġ")
        for place in range(*token.span)
    )
    for (segment, place), n in counts.items():
        letter = typed[segment][place]
        if n > 1 and HANGUL.match(letter):
            return letter, n
    return None


def _slow_spans(
    tokenizer: Any, pieces: Sequence[str], are_special: Sequence[bool], typed: tuple[str, str]
) -> tuple[list[int | None], list[Span | None]]:
    """Return the sentence (0 or 1) and the span of each token, for a tokenizer that reports neither, such as ByT5's.

    Both are None for special tokens, and a span where the decoded tokens are not the text.
    """
    places: tuple[list[int], list[int]] = ([], [])
    segment = 0
    for place, special in enumerate(are_special):
        if not special:
            places[segment].append(place)
        elif places[0]:  # a special token after the first sentence: the second one follows
            segment = 1
    segments: list[int | None] = [None] * len(pieces)
    spans: list[Span | None] = [None] * len(pieces)
    decode = tokenizer.convert_tokens_to_string
    for segment, (text, own) in enumerate(zip(typed, places, strict=True)):
        own_pieces = [pieces[place] for place in own]
        read = decode(own_pieces)
        # A text that is cut may end within a character.
        found = _spans_by_prefixes(decode, own_pieces, text[: len(read) + 1])
        for place, span in zip(own, found, strict=True):
            segments[place], spans[place] = segment, span if text.startswith(read) else None
    return segments, spans


def _spans_of_generated(tokenizer: Any, ids: Sequence[int], text: str) -> list[Span]:
    """Return the span of each generated token in the text, by a fast tokenizer; see `generated_tokens`."""
    encoding = tokenizer(text_target=text, return_offsets_mapping=True, verbose=False)
    # If the text was truncated, `ids` has an end token earlier than the new encoding; special tokens may differ.
    special = tokenizer.all_special_ids
    is_same = all(
        token_id == encoded_id or token_id in special
        for token_id, encoded_id in zip(ids, encoding["input_ids"], strict=False)
    )
    if is_same and len(ids) <= len(encoding["input_ids"]):
        return [(start, end) for start, end in encoding["offset_mapping"][: len(ids)]]
    return _spans_by_prefixes(partial(meaning, tokenizer), ids, text)


def _spans_by_prefixes(
    decode: Callable[[Sequence[Any]], str], ids: Sequence[Any], text: str
) -> list[Span]:
    """Return the span of each token, from the lengths of the decoded text up to it and with it.

    A token may hold only some bytes of a character, so that the text up to it cannot be decoded. All tokens of such a
    character get the span of the whole character.
    """
    spans: list[Span] = []
    start, previous = 0, ""
    for n in range(1, len(ids) + 1):
        prefix = decode(ids[:n])
        # A tokenizer may decode a part of a character as nothing, so that the text does not grow.
        if prefix != previous and text.startswith(prefix):
            spans += [(start, len(prefix))] * (n - len(spans))
            start = len(prefix)
        previous = prefix
    return spans + [(start, len(text))] * (len(ids) - len(spans))


def _labelled(
    tokenizer: Any,
    ids: Sequence[int],
    pieces: Sequence[str],
    spans: Sequence[Span | None],
    typed: tuple[str, str],
    are_special: Sequence[bool] | None = None,
    segments: Sequence[int | None] | None = None,
) -> tuple[Token, ...]:
    """Return tokens with the words they belong to and the text to show; `typed` holds the two sentences."""
    are_special, segments = are_special or [False] * len(ids), segments or [0] * len(ids)
    tokens = assign_words(
        [
            Token(
                text="",
                piece=piece,
                id=number,
                span=None if special or span is None else (span[0], span[1]),
                special=special,
                segment=segment or 0,
            )
            for number, piece, span, special, segment in zip(
                ids, pieces, spans, are_special, segments, strict=True
            )
        ],
        *typed,
    )
    decoded, unknown = list(pieces), None
    if is_of_library(tokenizer):
        unknown = tokenizer.unk_token_id
        decoded = [
            token.piece if token.special else _decode(tokenizer, token.piece) for token in tokens
        ]
    parts = _parts(tokens, decoded)
    labelled = []
    for index, token in enumerate(tokens):
        # A token that holds only the space before a word does not count as the word's beginning.
        previous = tokens[index - 1] if index and decoded[index - 1].strip() else None
        continues = previous is not None and token.word is not None and previous.word == token.word
        if token.special:
            text = visible(token.piece)
        else:
            text = token_text(
                decoded[index],
                part=parts[index],
                typed=typed[token.segment][slice(*token.span)] if token.span else "",
                continues=continues,
                unknown=unknown is not None and token.id == unknown,
            )
        labelled.append(replace(token, text=text))
    return tuple(labelled)


def _decode(tokenizer: Any, piece: str) -> str:
    """Return a piece without its vocabulary's marks (``##``, ``Ġ``, ``▁``, ``</w>``)."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        # A piece that is one byte of a character decodes to an empty string.
        return str(tokenizer.convert_tokens_to_string([piece])) or (
            "\ufffd" if piece.strip("▁") else ""
        )
    prefix = getattr(backend.model, "continuing_subword_prefix", None)
    if prefix and piece.startswith(prefix) and piece != prefix:
        piece = piece.removeprefix(prefix)
    return piece if backend.decoder is None else str(backend.decoder.decode([piece]))


def _parts(tokens: Sequence[Token], decoded: Sequence[str]) -> list[tuple[int, int] | None]:
    """Return (part, number of parts) for each token that holds only some bytes of a character; None for others."""
    parts: list[tuple[int, int] | None] = []
    while (index := len(parts)) < len(tokens):
        n = 1  # tokens of the same character, this one the first
        while (
            index + n < len(tokens)
            and _is_broken(decoded[index + n - 1])
            and _is_broken(decoded[index + n])
            and _overlap(tokens[index + n - 1], tokens[index + n])
        ):
            n += 1
        parts += [(number, n) for number in range(1, n + 1)] if n > 1 else [None]
    return parts


def _is_broken(text: str) -> bool:
    """Return whether the text of a token holds only some bytes of a character."""
    return "\ufffd" in text or (text.startswith("<0x") and text.endswith(">"))


def _overlap(first: Token, second: Token) -> bool:
    """Return whether the spans of two tokens share a character."""
    if first.span is None or second.span is None or first.segment != second.segment:
        return False
    return first.span[0] < second.span[1] and second.span[0] < first.span[1]
