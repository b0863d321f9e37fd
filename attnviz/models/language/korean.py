"""English-Korean pairs made up from a seed, each with its gold word alignment.

Korean puts the verb last and marks each noun's part with a particle, so that alignments cross. A Korean word is what
stands between spaces: a noun with its particle, a verb with its ending.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from attnviz.models.language import lexicon as words
from attnviz.models.language.lexicon import (
    Noun,
    am_is_are,
    in_korean,
    takes_plural,
    was_were,
    with_particle,
)

PEOPLE, ANIMALS, PLACES = map(in_korean, (words.PEOPLE, words.ANIMALS, words.PLACES))
QUALITIES, FEELINGS, SHAPES = map(in_korean, (words.QUALITIES, words.FEELINGS, words.SHAPES))
VERBS, MOVES = map(in_korean, (words.VERBS, words.MOVES))
OBJECTS = {
    verb.objects: in_korean(words.OBJECTS[verb.objects]) for verb in VERBS
}  # which nouns a verb takes

HOWS = {
    "": ("plain", "past", "is", "was", "do not", "did not", "don't", "didn't", "couldn't"),
    "때문에": ("plain", "do not", "don't"),
}
"""The forms of a verb: alone, and before 때문에."""
PRESENT = ("plain", "is", "do not", "don't")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A sentence, its translation, and which word comes from which."""

    english: tuple[str, ...]  # the words of the source
    korean: tuple[str, ...]  # the words of the translation
    sure: frozenset[
        tuple[int, int]
    ]  # (Korean position, English position) of words that mean the same
    # the sure ones, and those that only go together: an article with its noun's translation
    possible: frozenset[tuple[int, int]]


class Piece(NamedTuple):
    """Some English words, in English order, and their Korean words, in Korean order.

    Each English word has a tag after a slash, ``dog/noun``, or is its own; words of one tag belong together. A Korean
    word has the tags of the words it means, and after one more slash of those it only goes with: ``때문에/because``,
    ``개는/noun/article``, ``받았지만/get/although+did``.
    """

    english: str
    korean: str

    def tagged(self, mark: str) -> Piece:
        """The same piece with its tags made its own, so that two pieces can stand in one sentence."""
        english, korean = (text.replace("/", f"/{mark}").replace("+", f"+{mark}") for text in self)
        return Piece(english, korean)


def generate(random: Random, clauses: int | None = None) -> Pair:
    """One pair; of so many clauses joined, or mostly of one."""
    n = clauses or random.choices((1, 2, 3), (6, 3, 1))[0]
    if n == 1 and clauses is None:
        makers, weights = zip(*KINDS.values(), strict=True)
        return _pair(random.choices(makers, weights)[0](random), random.random() < 0.7)
    return _pair(_clauses(random, n), random.random() < 0.7)


def _pair(piece: Piece, stop: bool) -> Pair:
    english, korean = ([word.split("/") for word in text.split()] for text in piece)
    if stop and korean[-1][0] not in {"?", "있니"}:
        english.append(["."])
        korean.append([".", "."])
    places: dict[str, list[int]] = {}
    for index, word in enumerate(english):
        places.setdefault(word[-1], []).append(index)
    sure, goes_with = set[tuple[int, int]](), set[tuple[int, int]]()
    for index, (_, *tags) in enumerate(korean):
        for links, listed in zip((sure, goes_with), tags, strict=False):
            links |= {(index, place) for tag in listed.split("+") for place in places[tag]}
    return Pair(
        english=tuple(word for word, *_ in english),
        korean=tuple(word for word, *_ in korean),
        sure=frozenset(sure),
        possible=frozenset(sure | goes_with),
    )


def _noun(
    random: Random, nouns: Sequence[Noun], role: str, tag: str, *, known: bool | None = None
) -> Piece:
    """A noun with its article and perhaps an adjective. A new topic takes 이/가, a known one 은/는."""
    noun = random.choice(nouns)
    adjective = random.choice(QUALITIES) if random.random() < 0.4 else None
    known = random.random() < 0.6 if known is None else known
    role = "subject" if role == "topic" and not known else role
    english, korean = f"{noun.one}/{tag}", with_particle(noun.korean, role)
    if adjective:
        english, korean = (
            f"{adjective.english}/{tag}-so {english}",
            f"{adjective.korean}/{tag}-so {korean}",
        )
    article = "the" if known else "an" if english[0] in "aeiou" else "a"
    return Piece(f"{article}/{tag}-article {english}", f"{korean}/{tag}/{tag}-article")


def _subject(random: Random, *, inside: bool) -> tuple[Piece, str | None]:
    """A subject, and which pronoun it is, if one; inside another sentence it is no topic, and takes 이/가."""
    if random.random() < 0.5:
        pronoun = random.choice(tuple(words.PRONOUNS))
        topic, _, _, subject = words.PRONOUNS[pronoun]
        return Piece(f"{pronoun}/subject", f"{subject if inside else topic}/subject"), pronoun
    return _noun(random, PEOPLE + ANIMALS, "subject" if inside else "topic", "subject"), None


def _object(random: Random, nouns: Sequence[Noun]) -> Piece:
    if nouns is OBJECTS["any"] and random.random() < 0.25:
        if random.random() < 0.3:
            whom = random.choice(tuple(words.ALL))
            return Piece(f"all/all {whom}/object", f"{words.ALL[whom]}/object 모두를/all")
        _, english, korean, _ = words.PRONOUNS[random.choice(tuple(words.PRONOUNS))]
        return Piece(f"{english}/object", f"{korean}/object")
    return _noun(random, nouns, "object", "object")


def _clause(random: Random, *, before: str = "", how: str | None = None) -> Piece:
    """Subject, verb, object, perhaps a place; in the form that goes before 때문에 or 전에 where `before` says so."""
    subject, pronoun = _subject(random, inside=bool(before))
    plain = pronoun is not None and takes_plural(pronoun)
    verb = random.choice(VERBS)
    found = _object(random, OBJECTS[verb.objects])
    how = how or random.choice(HOWS[before])
    if how == "plain":
        done = Piece(
            f"{verb.base if plain else verb.third}/verb",
            f"{verb.doing if before else verb.present}/verb",
        )
    elif how == "past":
        done = Piece(f"{verb.past}/verb", f"{verb.doing if before else verb.did}/verb")
    elif how in {"is", "was"}:
        be = (am_is_are if how == "is" else was_were)(pronoun or "", many=plain)
        done = Piece(
            f"{be}/be {verb.ing}/verb",
            f"{verb.going}/verb {'있다' if how == 'is' else '있었다'}/be",
        )
    else:
        do = how.removesuffix("n't").removesuffix(" not")
        failed = "않기" if before else {"do": "않는다", "did": "않았다", "could": "못했다"}[do]
        do = "does" if do == "do" and not plain else do
        if how.endswith("n't"):
            done = Piece(f"{do}n't/not {verb.base}/verb", f"{verb.not_}/verb {failed}/not")
        else:
            done = Piece(f"{do}/do not/not {verb.base}/verb", f"{verb.not_}/verb {failed}/not/do")
    place = _place(random) if random.random() < 0.25 and verb.objects != "places" else Piece("", "")
    return Piece(
        f"{subject.english} {done.english} {found.english} {place.english}",
        f"{subject.korean} {place.korean} {found.korean} {done.korean}",
    )


def _place(random: Random) -> Piece:
    noun = random.choice(PLACES)
    return Piece(f"in/in the/where {noun.one}/place", f"{noun.korean}에서/place/in+where")


def _is_so(random: Random, *, before: str = "") -> Piece:
    """The dog is big."""
    subject, pronoun = _subject(random, inside=bool(before))
    adjective = random.choice(QUALITIES)
    be = am_is_are(pronoun or "", many=pronoun is not None and takes_plural(pronoun))
    word = adjective.being if before else adjective.is_so
    return Piece(
        f"{subject.english} {be}/be {adjective.english}/so", f"{subject.korean} {word}/so/be"
    )


def _existence(random: Random) -> Piece:
    """There is a prince; is there a prince?"""
    what = _noun(random, PEOPLE + ANIMALS, "subject", "who", known=False)
    if random.random() < 0.5:
        return Piece(f"there is {what.english}", f"{what.korean} 있다/is/there")
    if random.random() < 0.7:
        return Piece(f"is there {what.english} ?", f"{what.korean} 있니/is/there+? ?/?")
    return Piece(f"is there {what.english}", f"{what.korean} 있니/is/there")  # as people type


def _reference(random: Random) -> Piece:
    """The animal didn't cross the street because it was too tired (or: wide). Korean names what "it" is.

    What was named as the reason is not named again: 길이 너무 넓었기 때문에 동물은 건너지 않았다.
    """
    animal, place, verb = random.choice(ANIMALS), random.choice(PLACES), random.choice(MOVES)
    lives = random.random() < 0.5
    adjective = random.choice(FEELINGS if lives else SHAPES)
    how, failed = random.choice(tuple(words.HOW)), random.choice(tuple(words.FAILED))
    topic = f"{with_particle(animal.korean, 'topic')}/animal/the"
    because = f"{words.HOW[how]}/how {adjective.being}/so/was 때문에/because"
    did_not = f"{verb.not_}/verb {words.FAILED[failed]}/not"
    english = (
        f"the {animal.one}/animal {failed}/not {verb.base}/verb the/that {place.one}/place "
        f"because it was {how}/how {adjective.english}/so"
    )
    if lives:
        return Piece(
            english,
            f"{topic} {because} {with_particle(place.korean, 'object')}/place/that {did_not}",
        )
    return Piece(
        english,
        f"{with_particle(place.korean, 'subject')}/place/it+that {because} {topic} {did_not}",
    )


def _although(random: Random) -> Piece:
    """Although I did not get 95 in last TOEFL, I could get in the Ph.D program."""
    pronoun = random.choice(tuple(words.PRONOUNS))
    score, when, exam = (
        random.choice(words.SCORES),
        random.choice(tuple(words.WHEN)),
        random.choice(tuple(words.EXAMS)),
    )
    enter, program = random.choice(tuple(words.ENTER)), random.choice(tuple(words.PROGRAMS))
    course = random.choice(words.PROGRAMS[program][1])
    failed = random.random() < 0.5
    did, got, can, could = "did", "받았지만/get/although+did", "could not", "없었다/not/could"
    if failed:
        did, got, can, could = (
            "did not",
            "받지/get 못했지만/not/although+did",
            "could",
            "있었다/could",
        )
    return Piece(
        f"although {pronoun}/subject {did} get {score}/score in {when}/last {exam}/exam , "
        f"{pronoun}/subject2 {can} {enter}/enter in/in2 the {program}/program {course}/course",
        f"{words.PRONOUNS[pronoun][0]}/subject/subject2 {words.WHEN[when]}/last {words.EXAMS[exam]}에서/exam/in "
        f"{score}점을/score {got} {words.PROGRAMS[program][0]}/program/the {words.COURSES[course]}/course/in2 "
        f"{words.ENTER[enter]}/enter/in2 수/could {could}",
    )


def _clauses(random: Random, n: int) -> Piece:
    """Clauses joined by "and" (in the same order), or two by "because" or "before" (in Korean the other way round)."""
    joint = random.choice(("and", "because", "before")) if n == 2 else "and"
    if joint != "and":
        how = random.choice(HOWS[""])
        first = _clause(random, how=how).tagged("1")
        if joint == "before":  # English says when; Korean leaves that to the end of the sentence
            second = _clause(
                random, before=words.JOINTS[joint], how="plain" if how in PRESENT else "past"
            )
        else:
            second = random.choice((_clause, _is_so))(random, before=words.JOINTS[joint])
        second = second.tagged("2")
        return Piece(
            f"{first.english} {joint} {second.english}",
            f"{second.korean} {words.JOINTS[joint]}/{joint} {first.korean}",
        )
    pieces = [random.choice((_clause, _clause, _is_so))(random).tagged(str(i)) for i in range(n)]
    english, korean = pieces[0]
    for i, piece in enumerate(pieces[1:]):
        english += f" and/and{i} {piece.english}"
        korean += f" 그리고/and{i} {piece.korean}"
    return Piece(english, korean)


KINDS: dict[str, tuple[Callable[[Random], Piece], float]] = {
    "clause": (_clause, 5),
    "is so": (_is_so, 1),
    "existence": (_existence, 1),
    "reference": (_reference, 1.5),
    "although": (_although, 1),
}
"""Each kind of single sentence, with how often it comes up relative to the others."""


@functools.cache
def _grammar() -> re.Pattern[str]:
    """All English sentences that these kinds can make, and some more: of which words agree it says nothing."""

    def one_of(*groups: Iterable[str]) -> str:
        return f"(?:{'|'.join(re.escape(word) for group in groups for word in group)}|<unknown>)"

    def noun(nouns: Sequence[Noun]) -> str:
        return f"(?:the|a|an) (?:{good} )?{one_of(one.one for one in nouns)}"

    good = one_of(one.english for one in QUALITIES)
    base, third, past, going = (
        one_of(getattr(v, form) for v in VERBS) for form in ("base", "third", "past", "ing")
    )
    not_ = "(?:(?:do|does|did) not|don't|doesn't|didn't|couldn't)"
    verb = f"(?:{base}|{third}|{past}|(?:am|are|is|was|were) {going}|{not_} {base})"
    subject = f"(?:{one_of(words.PRONOUNS)}|{noun(PEOPLE + ANIMALS)})"
    whom = one_of(found for _, found, _, _ in words.PRONOUNS.values())
    what = f"(?:{noun([one for nouns in OBJECTS.values() for one in nouns])}|{whom}|all {one_of(words.ALL)})"
    place = one_of(one.one for one in PLACES)
    clause = f"{subject} {verb} {what}(?: in the {place})?"
    part = f"(?:{clause}|{subject} (?:am|is|are) {good})"
    there = f"(?:there is|is there) {noun(PEOPLE + ANIMALS)}(?: [?])?"
    reference = (
        f"the {one_of(one.one for one in ANIMALS)} {one_of(words.FAILED)} {one_of(one.base for one in MOVES)} "
        f"the {place} because it was {one_of(words.HOW)} {one_of(one.english for one in FEELINGS + SHAPES)}"
    )
    who, school = one_of(words.PRONOUNS), f"{one_of(words.PROGRAMS)} {one_of(words.COURSES)}"
    although = (
        f"although {who} did (?:not )?get {one_of(words.SCORES)} in {one_of(words.WHEN)} {one_of(words.EXAMS)} , "
        f"{who} could (?:not )?{one_of(words.ENTER)} in the {school}"
    )
    joined = f"{part}(?: and {part}){{0,2}}|{clause} (?:because {part}|before {clause})"
    return re.compile(f"(?:{joined}|{there}|{reference}|{although})(?: [.])?")


def could_be_generated(words: Sequence[str]) -> bool:
    """Whether an English sentence is built like some that can come up; False is certain, True is not.

    Unknown words are ``<unknown>``, and stand wherever a word may that is one of many.
    """
    return _grammar().fullmatch(" ".join(words)) is not None
