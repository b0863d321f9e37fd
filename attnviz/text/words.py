"""Split sentences into words, and assign tokens to words."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence
from dataclasses import replace

from attnviz.attention import Token


def split_words(text: str) -> list[tuple[int, int]]:
    """Return the words and punctuation marks of a sentence, as (first, one-past-last) characters.

    Words are those of the Unicode Standard (UAX #29, default word boundaries): "didn't" and "3.14" are one word,
    a Korean word keeps its particle. Chinese and Japanese, which have no spaces, split into single characters; only
    katakana stay together.
    """
    import regex  # importing it takes 15 ms

    # (?w): \b by the Unicode rules (UAX #29), which keep "didn't", "3.14" and a family of emoji whole.
    marks = {0, len(text), *(match.start() for match in regex.finditer(r"(?w)(?V1)\b", text))}
    words = []
    for start, end in itertools.pairwise(sorted(marks)):
        piece = text[start:end]
        # an invisible character is matched with the space beside it; words have no space at their ends
        if piece.strip():
            words.append(
                (start + len(piece) - len(piece.lstrip()), end - len(piece) + len(piece.rstrip()))
            )
    return words


def assign_words(
    tokens: Sequence[Token],
    text: str,
    pair: str | None = None,
    *,
    words: Sequence[str] | None = None,
) -> tuple[Token, ...]:
    """Return the tokens, each with the number of the word it belongs to.

    A token that spans several words belongs to the first of them. Tokens that the tokenizer added, or that are only
    white space, belong to none, except for a space right before a word. Words are numbered across the sentence and its
    pair. If the `words` of the text are given, with one space between two, they count instead of those of Unicode.
    """
    spans_of_text = split_words(text)
    if words is not None:
        starts = itertools.accumulate((len(word) + 1 for word in words), initial=0)
        spans_of_text = [
            (start, start + len(word)) for start, word in zip(starts, words, strict=False)
        ]
    spans_of_both = [spans_of_text, split_words(pair or "")]
    texts = (text, pair or "")
    offset = (0, len(spans_of_text))
    assigned = []
    for token in tokens:
        word = None
        if token.span is not None and not token.special:
            start, end = token.span
            # Many vocabularies include the space before a word: the word starts after it.
            inside = texts[token.segment][start:end]
            start += len(inside) - len(inside.lstrip())
            # white space such as a new line is never part of a word
            is_break = inside.isspace() and inside.strip(" ")
            spans = spans_of_both[token.segment]
            # the first word that ends after the start of the token
            number = bisect.bisect_right(spans, start, key=lambda span: span[1])
            if not is_break and number < len(spans) and spans[number][0] < max(end, start + 1):
                word = number + offset[token.segment]
        assigned.append(replace(token, word=word))
    return tuple(assigned)
