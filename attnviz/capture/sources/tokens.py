"""The tokens of a pretrained model as a person reads them."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from attnviz.attention import GENERATED, Token
from attnviz.text.display import HANGUL, token_text, visible
from attnviz.text.words import assign_words


def read_tokens(
    tokenizer: Any, encoded: Any, text: str, pair: str | None = None
) -> tuple[Token, ...]:
    """Return the tokens of a sentence and its pair.

    `encoded` has a mask of special tokens and, from a fast tokenizer, offsets.
    """
    ids: list[int] = encoded["input_ids"]
    pieces: list[str] = tokenizer.convert_ids_to_tokens(ids)
    fast = tokenizer.is_fast
    segments = encoded.sequence_ids(0) if fast else [0] * len(ids)
    tokens = []
    for index, (number, piece) in enumerate(zip(ids, pieces, strict=True)):
        special = bool(encoded["special_tokens_mask"][index])
        span = tuple(encoded["offset_mapping"][index]) if fast and not special else None
        tokens.append(
            Token(
                text="",
                piece=piece,
                id=number,
                span=span,
                special=special,
                segment=segments[index] or 0,
            )
        )
    return _label_pieces(tokenizer, assign_words(tokens, text, pair), (text, pair or ""))


def generated_tokens(
    tokenizer: Any, ids: Sequence[int], text: str | None = None
) -> tuple[Token, ...]:
    """Return the tokens that a model generates; `text` is their meaning, decoded where it is not given.

    Where the tokenizer makes the same tokens of the text again, it tells where each of them stands; where it does not,
    each new token ends where the text of all tokens so far ends.
    """
    text = meaning(tokenizer, ids) if text is None else text
    if not is_of_library(tokenizer):
        return tuple(replace(token, segment=GENERATED) for token in _placed(tokenizer, ids, text))
    # Some models have more numbers than their vocabulary has tokens.
    pieces = [
        piece or f"<{number}>"
        for piece, number in zip(tokenizer.convert_ids_to_tokens(list(ids)), ids, strict=True)
    ]
    special = set(tokenizer.all_special_ids)
    spans: Sequence[tuple[int, int] | None] = (
        _spans(tokenizer, ids, text) if tokenizer.is_fast else [None] * len(ids)
    )
    tokens = [
        Token(
            text="",
            piece=piece,
            id=number,
            span=None if number in special else span,
            special=number in special,
        )
        for number, piece, span in zip(ids, pieces, spans, strict=True)
    ]
    labelled = _label_pieces(tokenizer, assign_words(tokens, text), (text, ""))
    return tuple(replace(token, segment=GENERATED) for token in labelled)


def own_tokens(tokenizer: Any, text: str) -> tuple[Token, ...]:
    """Return the tokens of a text, by the user's own tokenizer; without one, its bytes."""
    if is_of_library(tokenizer):
        more = {"return_offsets_mapping": tokenizer.is_fast, "return_special_tokens_mask": True}
        return read_tokens(tokenizer, tokenizer(text, verbose=False, **more), text)
    made = text.encode() if tokenizer is None else tokenizer.encode(text)
    return _placed(tokenizer, [int(number) for number in getattr(made, "ids", made)], text)


def meaning(tokenizer: Any, ids: Sequence[int]) -> str:
    """Return the text of token ids, without the special ones of the library's; without a tokenizer they are bytes."""
    if tokenizer is None:
        return bytes(ids).decode(errors="replace")
    more = (
        {"skip_special_tokens": True, "clean_up_tokenization_spaces": False}
        if is_of_library(tokenizer)
        else {}
    )
    return str(tokenizer.decode(list(ids), **more))


def n_tokens(tokenizer: Any) -> int | None:
    """Return the size of a tokenizer's vocabulary; None where it does not say, 256 bytes without a tokenizer."""
    if tokenizer is None:
        return 256
    if hasattr(tokenizer, "__len__"):
        return len(tokenizer)
    if hasattr(tokenizer, "get_vocab_size"):  # of tokenizers
        return int(tokenizer.get_vocab_size())
    return getattr(tokenizer, "n_vocab", None)  # of tiktoken


def is_of_library(tokenizer: Any) -> bool:
    """Return whether a tokenizer is one of transformers."""
    return hasattr(tokenizer, "convert_ids_to_tokens")


def _placed(tokenizer: Any, ids: Sequence[int], text: str) -> tuple[Token, ...]:
    decode = partial(meaning, tokenizer)
    decoded = [decode([number]) for number in ids]
    spans = _grown(decode, ids, text) if decode(ids) == text else _sought(decoded, text)
    tokens = [
        Token(text="", piece=piece, id=number, span=span)
        for number, piece, span in zip(ids, decoded, spans, strict=True)
    ]
    return _label(assign_words(tokens, text), decoded, (text, ""))


def run_together(tokens: Sequence[Token]) -> bool:
    """Return whether the second sentence of a pair begins right behind the first."""
    return any(
        (one.segment, other.segment) == (0, 1) and not (one.special or other.special)
        for one, other in itertools.pairwise(tokens)
    )


def broken_syllable(tokens: Sequence[Token], text: str, pair: str | None) -> tuple[str, int] | None:
    """Return the first Korean syllable that is several tokens, and how many; None where there is none."""
    parts = [
        token for token in tokens if token.span and not token.special and token.piece.strip("▁Ġ")
    ]
    counted = Counter(
        (token.segment, place) for token in parts for place in range(*(token.span or ()))
    )
    letters = (
        ((text, pair or "")[segment][place], n) for (segment, place), n in counted.items() if n > 1
    )
    return next(((letter, n) for letter, n in letters if HANGUL.match(letter)), None)


def _spans(tokenizer: Any, ids: Sequence[int], text: str) -> list[tuple[int, int]]:
    again = tokenizer(text_target=text, return_offsets_mapping=True, verbose=False)
    # Where the text was cut, its end stands earlier.
    special = tokenizer.all_special_ids
    is_same = all(
        own == other or own in special for own, other in zip(ids, again["input_ids"], strict=False)
    )
    if is_same and len(ids) <= len(again["input_ids"]):
        return [(start, end) for start, end in again["offset_mapping"][: len(ids)]]
    return _grown(partial(meaning, tokenizer), ids, text)


def _grown(
    decode: Callable[[Sequence[int]], str], ids: Sequence[int], text: str
) -> list[tuple[int, int]]:
    """Return the span of each token, by how far the decoded text gets with it.

    Some bytes of a character decode to nothing yet: they all get the span of the whole character.
    """
    grown = [decode(ids[:n]) for n in range(len(ids) + 1)]
    ends = [len(so_far) if text.startswith(so_far) else None for so_far in grown]

    def nearest(some: Iterable[int | None], otherwise: int) -> int:
        return next((end for end in some if end is not None), otherwise)

    return [
        (nearest(reversed(ends[: n + 1]), 0), nearest(ends[n + 1 :], len(text)))
        for n in range(len(ids))
    ]


def _sought(pieces: Sequence[str], text: str) -> list[tuple[int, int] | None]:
    """Return the span of each piece, searched behind the one before it; None where it is not found."""
    spans: list[tuple[int, int] | None] = []
    place = 0
    for piece in pieces:
        word = piece.strip()
        start = text.lower().find(word.lower(), place) if word else -1
        if start < 0:
            spans.append(None)
        else:
            place = start + len(word)
            spans.append((start, place))
    return spans


def _label_pieces(
    tokenizer: Any, tokens: Sequence[Token], typed: tuple[str, str]
) -> tuple[Token, ...]:
    decoded = [
        token.piece if token.special else _decode(tokenizer, token.piece) for token in tokens
    ]
    return _label(tokens, decoded, typed, tokenizer.unk_token_id)


def _label(
    tokens: Sequence[Token],
    decoded: Sequence[str],
    typed: tuple[str, str],
    unknown: int | None = None,
) -> tuple[Token, ...]:
    parts = _parts(tokens, decoded)
    labelled = []
    for index, token in enumerate(tokens):
        # A token that is only the space before the word has not begun it.
        before = tokens[index - 1] if index and decoded[index - 1].strip() else None
        if token.special:
            text = visible(token.piece)
        else:
            text = token_text(
                decoded[index],
                part=parts[index],
                typed=typed[token.segment][slice(*token.span)] if token.span else "",
                continues=before is not None
                and token.word is not None
                and before.word == token.word,
                unknown=unknown is not None and token.id == unknown,
            )
        labelled.append(replace(token, text=text))
    return tuple(labelled)


def _decode(tokenizer: Any, piece: str) -> str:
    """Return a piece without its vocabulary's marks (``##``, ``Ġ``, ``▁``, ``</w>``)."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        # A byte of a character alone says nothing, and comes back empty.
        return str(tokenizer.convert_tokens_to_string([piece])) or (
            "\ufffd" if piece.strip("▁") else ""
        )
    prefix = getattr(backend.model, "continuing_subword_prefix", None)
    if prefix and piece.startswith(prefix) and piece != prefix:
        piece = piece.removeprefix(prefix)
    return piece if backend.decoder is None else str(backend.decoder.decode([piece]))


def _parts(tokens: Sequence[Token], decoded: Sequence[str]) -> list[tuple[int, int] | None]:
    """Return (part, parts) for each token that is some bytes of a character; None for all others."""
    broken = [
        "\ufffd" in text or (text.startswith("<0x") and text.endswith(">")) for text in decoded
    ]
    runs: list[list[int]] = []
    for index, token in enumerate(tokens):
        before, span = tokens[index - 1], token.span
        overlap = (
            span
            and before.span
            and before.segment == token.segment
            and before.span[0] < span[1]
            and span[0] < before.span[1]
        )
        if index and broken[index - 1] and broken[index] and overlap:
            runs[-1].append(index)
        else:
            runs.append([index])
    return [
        (number, len(run)) if len(run) > 1 else None
        for run in runs
        for number in range(1, len(run) + 1)
    ]
