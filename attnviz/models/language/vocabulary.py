"""All words of the small language, numbered."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from unicodedata import normalize

from attnviz.models.config import Language
from attnviz.models.language import hangul, lexicon
from attnviz.models.language.hangul import PIECE
from attnviz.models.language.korean import (
    ANIMALS,
    FEELINGS,
    PEOPLE,
    PLACES,
    QUALITIES,
    SHAPES,
    VERBS,
)
from attnviz.models.language.lexicon import in_korean, with_particle

PAD, UNKNOWN, START, END, MASK = "<pad>", "<unknown>", "<start>", "<end>", "<mask>"
SPECIAL = (PAD, UNKNOWN, START, END, MASK)  # the first words of every vocabulary: numbers 0 to 4


@dataclass(frozen=True)
class Vocabulary:
    """Words and their numbers."""

    words: tuple[str, ...]  # the special ones first, then the others in alphabetical order

    def __len__(self) -> int:
        return len(self.words)

    @functools.cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each word."""
        return {word: number for number, word in enumerate(self.words)}

    def encode(self, words: Iterable[str]) -> list[int]:
        """Each word's number, whatever its capitals; that of ``<unknown>`` for a word that is not there."""
        numbers, unknown = self.numbers, self.numbers[UNKNOWN]
        composed = (normalize("NFC", word) for word in words)  # Macs store Korean in parts
        return [numbers.get(word, numbers.get(word.lower(), unknown)) for word in composed]

    def decode(self, numbers: Sequence[int]) -> tuple[str, ...]:
        """Each number's word."""
        return tuple(self.words[number] for number in numbers)

    def knows(self, word: str) -> bool:
        """Whether a word is there, whatever its capitals."""
        word = normalize("NFC", word)
        return word in self.numbers or word.lower() in self.numbers

    def pieces(self, word: str) -> tuple[str, ...]:
        """The word, or the noun and the particle that are both known: 고양이가 is 고양이 and ##가."""
        if not self.knows(word):
            for start in range(1, len(word)):  # the longest particle first
                if self.knows(word[:start]) and self.knows(PIECE + word[start:]):
                    return word[:start], PIECE + word[start:]
        return (word,)


@functools.cache
def english() -> Vocabulary:
    """Every word that an English sentence can have."""
    grammar = (
        "the a an all some because although and but or in at with from to there this that these those is are am was "
        "were do does did don't doesn't didn't not could get have has had need needs it himself herself themselves "
        "home name best raining snowing sunny who what where when why how so . , ? !"
    )
    return _vocabulary(
        *alike(),
        *(
            lexicon.TOWNS,
            lexicon.NUMBERS,
            lexicon.OWNERS,
            lexicon.PREPOSITIONS,
            lexicon.ADVERBS,
            lexicon.MODALS,
        ),
        *(time.split() for times in lexicon.TIMES.values() for time in times),
        *(hello.split() for hello in lexicon.HELLO),
        lexicon.PRONOUNS,
        (found for _, found, _, _ in lexicon.PRONOUNS.values()),
        *_EXAMS_AND_PROGRAMS,
        grammar.split(),
    )


def alike(language: Language = "english") -> tuple[tuple[str, ...], ...]:
    """Words of the same form: nouns in the singular, in the plural, names, adjectives, verbs in each of four forms."""
    if language == "korean":
        return hangul.alike()
    verbs = lexicon.VERBS + lexicon.STAYS + lexicon.GOES + lexicon.GIVES
    return (
        tuple(noun.one for noun in lexicon.NOUNS),
        tuple(noun.many for noun in lexicon.NOUNS if noun not in lexicon.NATURE),
        lexicon.SUBSTANCES + lexicon.LIQUIDS + lexicon.SUBJECTS,
        lexicon.NAMES,
        tuple(adjective.english for adjective in lexicon.ADJECTIVES),
        *zip(*((verb.base, verb.third, verb.past, verb.ing) for verb in verbs), strict=True),
    )


@functools.cache
def source() -> Vocabulary:
    """Every English word that a sentence to be translated can have."""
    grammar = (
        "the a an all and because before although in there is are am was were do does did don't doesn't not could "
        "get it . , ?"
    )
    return _vocabulary(
        (noun.one for noun in in_korean(lexicon.NOUNS)),
        *((verb.base, verb.third, verb.past, verb.ing) for verb in VERBS),
        lexicon.PRONOUNS,
        (found for _, found, _, _ in lexicon.PRONOUNS.values()),
        (adjective.english for adjective in in_korean(lexicon.ADJECTIVES)),
        *_EXAMS_AND_PROGRAMS,
        grammar.split(),
    )


@functools.cache
def target() -> Vocabulary:
    """Every Korean word, with its particle or ending, that a translation can have."""
    living = PEOPLE + ANIMALS
    grammar = "있다 있니 있었다 없었다 않는다 않기 그리고 모두를 받지 받았지만 못했지만 수 . ?"
    return _vocabulary(
        (
            with_particle(noun.korean, role)
            for noun in living
            for role in ("topic", "subject", "object")
        ),
        (with_particle(noun.korean, "object") for noun in in_korean(lexicon.NOUNS)),
        (with_particle(place.korean, "subject") for place in PLACES),
        (f"{place.korean}에서" for place in PLACES),
        *((verb.present, verb.did, verb.going, verb.not_, verb.doing) for verb in VERBS),
        *((topic, found, subject) for topic, _, found, subject in lexicon.PRONOUNS.values()),
        *((adjective.korean, adjective.is_so, adjective.being) for adjective in QUALITIES),
        (adjective.being for adjective in FEELINGS + SHAPES),
        (f"{score}점을" for score in lexicon.SCORES),
        (f"{exam}에서" for exam in lexicon.EXAMS.values()),
        (program for program, _ in lexicon.PROGRAMS.values()),
        *(
            words.values()
            for words in (lexicon.WHEN, lexicon.COURSES, lexicon.ENTER, lexicon.HOW, lexicon.FAILED)
        ),
        lexicon.JOINTS.values(),
        lexicon.ALL.values(),
        grammar.split(),
    )


@functools.cache
def korean() -> Vocabulary:
    """Every piece of `hangul`: Korean words, and particles that continue them."""
    return _vocabulary(hangul.words())


def of_language(language: Language) -> Vocabulary:
    """What a model of one language reads."""
    return korean() if language == "korean" else english()


def _vocabulary(*words: Iterable[str]) -> Vocabulary:
    return Vocabulary(SPECIAL + tuple(sorted(set(chain.from_iterable(words)))))


_EXAMS_AND_PROGRAMS: tuple[Iterable[str], ...] = (
    lexicon.SCORES,
    lexicon.EXAMS,
    lexicon.PROGRAMS,
    *(lexicon.WHEN, lexicon.COURSES, lexicon.ENTER, lexicon.HOW, lexicon.FAILED),
)
