"""Training, validation and test sentences that share none; and some of them as a corpus.

A sentence's split depends on its content words in their order. No two splits share such a sequence, so every test
sentence combines words in a new way.

The first validation and test sentences, which the models are measured on, are kept as text in ``held_out``. They are
those that the grammar makes, and only the sentences after them need it.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from random import Random
from typing import Literal

from attnviz.models.config import Language
from attnviz.models.language.sentences import GoldSentence, Pair, parse_pair, parse_sentence
from attnviz.models.language.vocabulary import PIECE
from attnviz.text.corpus import COREFERENCE, Annotation, CorpusLine, Link

Split = Literal["train", "validation", "test"]

HELD_OUT = Path(__file__).with_name("held_out")

_LIGHT = frozenset(("the", "a", "an", "two", ".", "?"))
# The constant part of the seed of sentences.
_STREAMS: dict[Language, str] = {"english": "english", "korean": "hangul"}
_SEEDS: dict[Split, int] = {"train": 1, "validation": 2, "test": 3}


def split_of(words: Sequence[str]) -> Split:
    """Return the split of a sentence: eight in ten belong to training, one each to the others."""
    content = " ".join(word for word in words if word not in _LIGHT and not word.startswith(PIECE))
    tenth = hashlib.blake2b(content.encode(), digest_size=8).digest()[0] % 10
    return "validation" if tenth == 8 else "test" if tenth == 9 else "train"


def sentences(
    split: Split, seed: int = 0, kind: str | None = None, language: Language = "english"
) -> Iterator[GoldSentence]:
    """Yield sentences of a split without end; the same seed yields the same sentences."""
    lines = _held_out(f"{language}-{kind}-{split}" if kind else f"{language}-{split}", seed)
    yield from map(parse_sentence, lines)
    from attnviz.models.language.grammar import load_grammar

    grammar, random = load_grammar(language), Random(f"{_STREAMS[language]} {_SEEDS[split]} {seed}")
    made = (parse_sentence(grammar.sentence(random, kind)) for _ in count())
    # The grammar makes the same sentences again, so those of the file are skipped.
    yield from islice((s for s in made if split_of(s.words) == split), len(lines), None)


def pairs(split: Split, seed: int = 0, clauses: int | None = None) -> Iterator[Pair]:
    """Yield English-Korean pairs of a split without end; with this number of clauses, or any number."""
    lines = _held_out(f"pairs-{split}", seed) if clauses is None else []
    yield from map(parse_pair, lines)
    from attnviz.models.language.grammar import load_grammar

    grammar, random = load_grammar("translation"), Random(f"korean {_SEEDS[split]} {seed}")
    made = (parse_pair(grammar.pair(random, clauses)) for _ in count())
    yield from islice((p for p in made if split_of(p.english) == split), len(lines), None)


@functools.cache
def endings(language: Language) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the last words of sentences of reference: those that fit an animal, and those that fit a place."""
    lines = (HELD_OUT / f"{language}-endings.txt").read_text("utf-8").splitlines()
    animals, places = (tuple(line.split()) for line in lines)
    return animals, places


def _held_out(name: str, seed: int) -> list[str]:
    """Return the lines of a file of `held_out`, which has the first sentences of seed 0; empty if there is none."""
    path = HELD_OUT / f"{name}.txt"
    return path.read_text("utf-8").splitlines() if seed == 0 and path.exists() else []


def corpus_lines(
    n: int, *, kind: str | None = None, language: Language = "english"
) -> tuple[CorpusLine, ...]:
    """Return different test sentences with known links; of one construction that has links, or of all."""
    by_text: dict[str, CorpusLine] = {}
    for line in map(line_of, sentences("test", kind=kind, language=language)):
        if len(by_text) == n:
            break
        if line.annotated is not None and line.annotated.links:
            by_text.setdefault(line.text, replace(line, number=len(by_text) + 1))
    return tuple(by_text.values())


def source_lines(n: int) -> tuple[CorpusLine, ...]:
    """Return English test sentences to be translated, without links."""
    texts = [" ".join(pair.english) for pair in islice(pairs("test"), n)]
    return tuple(CorpusLine(number=number, text=text) for number, text in enumerate(texts, 1))


def line_of(sentence: GoldSentence) -> CorpusLine:
    """Return a sentence as the first line of a corpus, in which a noun and its particle are one word."""
    text, words, word_of = "", list[tuple[int, int]](), list[int]()
    for piece in sentence.words:
        if piece.startswith(PIECE):
            text += piece.removeprefix(PIECE)
            words[-1] = (words[-1][0], len(text))
        else:
            text += f" {piece}" if text else piece
            words.append((len(text) - len(piece), len(text)))
        word_of.append(len(words) - 1)
    links = list(sentence.links)
    if sentence.reference is not None:
        pronoun, noun = sentence.reference.pronoun, sentence.reference.noun
        links.insert(0, Link(query=pronoun, key=noun, relation=COREFERENCE))
    links = [replace(link, query=word_of[link.query], key=word_of[link.key]) for link in links]
    annotation = Annotation(words=tuple(words), links=tuple(links))
    return CorpusLine(number=1, text=text, annotated=annotation)
