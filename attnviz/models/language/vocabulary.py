"""All words of the small language, numbered."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from attnviz.models.language import lexicon
from attnviz.models.language.lexicon import with_particle

PAD, UNKNOWN, START, END, MASK = "<pad>", "<unknown>", "<start>", "<end>", "<mask>"
SPECIAL = (PAD, UNKNOWN, START, END, MASK)
"""The first words of every vocabulary: numbers 0 to 4."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Words and their numbers.

    Attributes:
        words: the special ones first, then the others in alphabetical order.
    """

    words: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, words: Iterable[str]) -> list[int]:
        """Each word's number, whatever its capitals; that of ``<unknown>`` for a word that is not there."""
        numbers = _numbers(self.words)
        return [numbers.get(word, numbers.get(word.lower(), numbers[UNKNOWN])) for word in words]

    def decode(self, numbers: Sequence[int]) -> tuple[str, ...]:
        """Each number's word."""
        return tuple(self.words[number] for number in numbers)

    def knows(self, word: str) -> bool:
        """Whether a word is there, whatever its capitals."""
        return not {word, word.lower()}.isdisjoint(_numbers(self.words))


@functools.cache
def _numbers(words: tuple[str, ...]) -> dict[str, int]:
    return {word: number for number, word in enumerate(words)}


@functools.cache
def english() -> Vocabulary:
    """Every English word that a sentence can have."""
    nouns = chain.from_iterable((noun.one, noun.many) for noun in _nouns())
    verbs = chain.from_iterable((verb.base, verb.third, verb.past, verb.ing) for verb in _verbs())
    pronouns = chain.from_iterable((subject, found) for subject, (_, found, _) in lexicon.PRONOUNS.items())
    grammar = (
        "the a an two all and because although near in there is are am was do does did didn't could not get last "
        "too it himself herself themselves program . , ?"
    )
    return _vocabulary(
        nouns,
        verbs,
        pronouns,
        (adjective.english for adjective in _adjectives()),
        lexicon.SCORES,
        lexicon.EXAMS,
        lexicon.PROGRAMS,
        grammar.split(),
    )


@functools.cache
def korean() -> Vocabulary:
    """Every Korean word, with its particle or ending, that a translation can have."""
    nouns = (
        with_particle(noun.korean, role)
        for noun in lexicon.PEOPLE + lexicon.ANIMALS + lexicon.FOOD + lexicon.THINGS + lexicon.PLACES
        for role in ("topic", "subject", "object")
    )
    verbs = chain.from_iterable((verb.present, verb.did, verb.going, verb.not_, verb.doing) for verb in _verbs())
    pronouns = chain.from_iterable((topic, found) for topic, _, found in lexicon.PRONOUNS.values())
    grammar = (
        "있다 있니 있었다 없었다 않는다 않았다 않기 너무 때문에 그곳을 그리고 너희 모두를 지난 받지 받았지만 못했지만 "
        "과정에 들어갈 수 . ?"
    )
    return _vocabulary(
        nouns,
        (f"{place.korean}에서" for place in lexicon.PLACES),
        verbs,
        pronouns,
        chain.from_iterable((adjective.before, adjective.is_so, adjective.being) for adjective in _adjectives()),
        (f"{score}점을" for score in lexicon.SCORES),
        (f"{exam}에서" for exam in lexicon.EXAMS.values()),
        lexicon.PROGRAMS.values(),
        grammar.split(),
    )


def _vocabulary(*words: Iterable[str]) -> Vocabulary:
    return Vocabulary(SPECIAL + tuple(sorted(set(chain.from_iterable(words)))))


def _nouns() -> tuple[lexicon.Noun, ...]:
    return lexicon.PEOPLE + lexicon.ANIMALS + lexicon.PLACES + lexicon.FOOD + lexicon.THINGS


def _adjectives() -> tuple[lexicon.Adjective, ...]:
    return lexicon.COLOURS_AND_SIZES + lexicon.FEELINGS + lexicon.SHAPES


def _verbs() -> tuple[lexicon.Verb, ...]:
    return lexicon.VERBS + lexicon.MOVES
