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
    """Every word that an English sentence can have."""
    grammar = (
        "the a an two all because although near in there is are am was were do does did don't doesn't not could "
        "get it himself herself themselves . , ?"
    )
    return _vocabulary(
        (form for noun in _NOUNS for form in (noun.one, noun.many)),
        *((verb.base, verb.third, verb.past, verb.ing) for verb in lexicon.VERBS),
        lexicon.PRONOUNS,
        ("you", "them", "us"),
        (adjective.english for adjective in _ADJECTIVES),
        *_EXAMS_AND_PROGRAMS,
        grammar.split(),
    )


@functools.cache
def source() -> Vocabulary:
    """Every English word that a sentence to be translated can have."""
    grammar = (
        "the a an all and because before although in there is are am was were do does did don't doesn't not could "
        "get it . , ?"
    )
    return _vocabulary(
        (noun.one for noun in _NOUNS),
        *((verb.base, verb.third, verb.past, verb.ing) for verb in lexicon.VERBS),
        lexicon.PRONOUNS,
        (found for _, found, _, _ in lexicon.PRONOUNS.values()),
        (adjective.english for adjective in _ADJECTIVES),
        *_EXAMS_AND_PROGRAMS,
        grammar.split(),
    )


@functools.cache
def korean() -> Vocabulary:
    """Every Korean word, with its particle or ending, that a translation can have."""
    living = lexicon.PEOPLE + lexicon.ANIMALS
    grammar = "있다 있니 있었다 없었다 않는다 않기 그리고 모두를 받지 받았지만 못했지만 수 . ?"
    return _vocabulary(
        (with_particle(noun.korean, role) for noun in living for role in ("topic", "subject", "object")),
        (with_particle(noun.korean, "object") for noun in _NOUNS),
        (with_particle(place.korean, "subject") for place in lexicon.PLACES),
        (f"{place.korean}에서" for place in lexicon.PLACES),
        *((verb.present, verb.did, verb.going, verb.not_, verb.doing) for verb in lexicon.VERBS),
        *((topic, found, subject) for topic, _, found, subject in lexicon.PRONOUNS.values()),
        *((adjective.before, adjective.is_so, adjective.being) for adjective in lexicon.COLOURS_AND_SIZES),
        (adjective.being for adjective in lexicon.FEELINGS + lexicon.SHAPES),
        (f"{score}점을" for score in lexicon.SCORES),
        (f"{exam}에서" for exam in lexicon.EXAMS.values()),
        (program for program, _ in lexicon.PROGRAMS.values()),
        *(words.values() for words in (lexicon.WHEN, lexicon.COURSES, lexicon.ENTER, lexicon.HOW, lexicon.FAILED)),
        lexicon.JOINTS.values(),
        lexicon.ALL.values(),
        grammar.split(),
    )


def _vocabulary(*words: Iterable[str]) -> Vocabulary:
    return Vocabulary(SPECIAL + tuple(sorted(set(chain.from_iterable(words)))))


_NOUNS = lexicon.PEOPLE + lexicon.ANIMALS + lexicon.PLACES + lexicon.FOOD + lexicon.THINGS
_ADJECTIVES = lexicon.COLOURS_AND_SIZES + lexicon.FEELINGS + lexicon.SHAPES
_EXAMS_AND_PROGRAMS: tuple[Iterable[str], ...] = (
    lexicon.SCORES,
    lexicon.EXAMS,
    lexicon.PROGRAMS,
    *(lexicon.WHEN, lexicon.COURSES, lexicon.ENTER, lexicon.HOW, lexicon.FAILED),
)
