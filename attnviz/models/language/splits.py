"""Training, validation and test sentences that share none; and some of them as a corpus.

A sentence's split is read off its content words (not its articles and full stop) in their order: no such row of words
is in two splits, so every test sentence puts words together as no training sentence does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from random import Random
from typing import Literal

from attnviz.models.config import Language
from attnviz.models.language import english, hangul, korean
from attnviz.models.language.english import GoldSentence
from attnviz.models.language.korean import Pair
from attnviz.text.corpus import COREFERENCE, Annotation, CorpusLine, Link

Split = Literal["train", "validation", "test"]

MOST_DRAWN = 100  # sentences are drawn until there are enough different ones, or until so many times as many were drawn

_LIGHT = frozenset(("the", "a", "an", "two", ".", "?"))
_KINDS = {"english": ("english", english.KINDS), "korean": ("hangul", hangul.KINDS)}
_SEEDS: dict[Split, int] = {"train": 1, "validation": 2, "test": 3}


def split_of(words: Sequence[str]) -> Split:
    """Which split a sentence belongs to: eight in ten to training, one each to the others."""
    content = " ".join(
        word for word in words if word not in _LIGHT and not word.startswith(hangul.PIECE)
    )
    tenth = hashlib.blake2b(content.encode(), digest_size=8).digest()[0] % 10
    return "validation" if tenth == 8 else "test" if tenth == 9 else "train"


def sentences(
    split: Split, seed: int = 0, kind: str | None = None, language: Language = "english"
) -> Iterator[GoldSentence]:
    """Sentences of a split, without end; the same seed, the same sentences."""
    name, kinds = _KINDS[language]
    random = Random(f"{name} {_SEEDS[split]} {seed}")
    while True:
        sentence = english.generate(random, kind, kinds)
        if split_of(sentence.words) == split:
            yield sentence


def pairs(split: Split, seed: int = 0, clauses: int | None = None) -> Iterator[Pair]:
    """English-Korean pairs of a split, without end; of so many clauses, or of any number."""
    random = Random(f"korean {_SEEDS[split]} {seed}")
    while True:
        pair = korean.generate(random, clauses)
        if split_of(pair.english) == split:
            yield pair


def corpus_lines(
    n: int, *, kind: str | None = None, language: Language = "english"
) -> tuple[CorpusLine, ...]:
    """Test sentences of which words are known to belong together, each once; of a construction or of any.

    Raises ValueError: there are not so many.
    """
    drawn = map(line_of, islice(sentences("test", kind=kind, language=language), MOST_DRAWN * n))
    known = (line for line in drawn if line.annotated is not None and line.annotated.links)
    found: dict[str, CorpusLine] = {}
    while len(found) < n and (line := next(known, None)) is not None:
        found.setdefault(line.text, replace(line, number=len(found) + 1))
    if len(found) < n:
        raise ValueError(
            f"there are only {len(found)} such sentences among {MOST_DRAWN * n}, not {n}"
        )
    return tuple(found.values())


def source_lines(n: int) -> tuple[CorpusLine, ...]:
    """English test sentences to be translated; nothing is known of what belongs together in them."""
    found = enumerate(islice(pairs("test"), n), 1)
    return tuple(CorpusLine(number=number, text=" ".join(pair.english)) for number, pair in found)


def line_of(sentence: GoldSentence) -> CorpusLine:
    """A sentence as the first line of a corpus; a particle belongs to its noun, and one word is linked to another."""
    text, words, word_of = "", list[tuple[int, int]](), list[int]()
    for piece in sentence.words:
        if piece.startswith(hangul.PIECE):
            text += piece.removeprefix(hangul.PIECE)
            words[-1] = (words[-1][0], len(text))
        else:
            text += f" {piece}" if text else piece
            words.append((len(text) - len(piece), len(text)))
        word_of.append(len(words) - 1)
    found = sentence.reference
    refers = (
        () if found is None else (Link(query=found.pronoun, key=found.noun, relation=COREFERENCE),)
    )
    links = (*refers, *sentence.links)
    links = tuple(replace(link, query=word_of[link.query], key=word_of[link.key]) for link in links)
    return CorpusLine(number=1, text=text, annotated=Annotation(words=tuple(words), links=links))
