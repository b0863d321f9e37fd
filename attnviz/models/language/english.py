"""English sentences made up from a seed, each with what is known about it.

What the grammar decides: a word is decided where no other word of the language could stand in its place, the others
being as they are: "the dogs near the house [are] big", "there [is] a prince", "the girls see [themselves]". In "she is
eating" it is not: she may have been eating.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from attnviz.models.language.lexicon import (
    ACTIONS,
    ANIMALS,
    COLOURS_AND_SIZES,
    ENTER,
    EXAMS,
    FAILED,
    FEELINGS,
    FOOD,
    HOW,
    MOVES,
    OBJECTS,
    PEOPLE,
    PLACES,
    PROGRAMS,
    PRONOUNS,
    SCORES,
    SHAPES,
    THINGS,
    VERBS,
    WHEN,
    Adjective,
    Noun,
    am_is_are,
    was_were,
)
from attnviz.text.corpus import COREFERENCE, Link

AGREEMENT = "agreement"
"""The relation of a verb to the subject that it agrees with."""


@dataclass(frozen=True, slots=True)
class Reference:
    """What a pronoun stands for.

    Attributes:
        pronoun: its position.
        noun: the position of the noun it stands for.
        other: the position of the noun it might have stood for.
    """

    pronoun: int
    noun: int
    other: int


@dataclass(frozen=True, slots=True, kw_only=True)
class English:
    """A sentence and the gold facts about it.

    Attributes:
        words: lower case, punctuation last.
        kind: which construction it is.
        decided: the positions whose word the grammar decides.
        reference: what its pronoun stands for, where that is the point.
        links: other words that belong together, where that is the point: a form of "be" and the subject that it
            agrees with, "himself" and whom it stands for.
    """

    words: tuple[str, ...]
    kind: str
    decided: frozenset[int] = frozenset()
    reference: Reference | None = None
    links: tuple[Link, ...] = ()


def generate(random: Random, kind: str | None = None) -> English:
    """One sentence, of a kind or of any."""
    kinds = list(KINDS)
    weights = [weight for _, weight in KINDS.values()]
    chosen = kind or random.choices(kinds, weights)[0]
    return KINDS[chosen][0](random)


def _marked(kind: str, *parts: str, reference: Reference | None = None, links: tuple[Link, ...] = ()) -> English:
    """A sentence from its words; those in square brackets are decided by the grammar."""
    words = " ".join(parts).split()
    decided = frozenset(i for i, word in enumerate(words) if word.startswith("["))
    plain = tuple(word.strip("[]") for word in words)
    return English(words=plain, kind=kind, decided=decided, reference=reference, links=links)


def _maybe(random: Random, adjectives: tuple[Adjective, ...], chance: float = 0.4) -> str:
    return random.choice(adjectives).english if random.random() < chance else ""


def _a(phrase: str) -> str:
    """With the article that its first sound takes."""
    return f"{'an' if phrase[0] in 'aeiou' else 'a'} {phrase}"


def _phrase(random: Random, noun: Noun, *, many: bool = False, definite: bool | None = None) -> str:
    """A noun with its article and perhaps an adjective."""
    bare = f"{_maybe(random, COLOURS_AND_SIZES)} {noun.many if many else noun.one}".strip()
    if many:
        return f"{random.choice(('the', 'two'))} {bare}"
    if definite is None:
        definite = random.random() < 0.5
    return f"the {bare}" if definite else _a(bare)


def _reference(random: Random) -> English:
    """The animal didn't cross the street because it was too tired (or: wide)."""
    animal, place = random.choice(ANIMALS), random.choice(PLACES)
    lives = random.random() < 0.5
    last = random.choice(FEELINGS if lives else SHAPES).english
    first = f"the {_maybe(random, COLOURS_AND_SIZES, 0.3)} {animal.one}".split()
    second = f"the {_maybe(random, COLOURS_AND_SIZES, 0.3)} {place.one}".split()
    verb = random.choice(MOVES).base
    animal_at = len(first) - 1
    place_at = len(first) + 2 + len(second) - 1
    pronoun_at = place_at + 2
    noun, other = (animal_at, place_at) if lives else (place_at, animal_at)
    return _marked(
        "reference",
        *first,
        f"{random.choice(tuple(FAILED))} {verb}",
        *second,
        f"[because] [it] [was] {random.choice(tuple(HOW))} {last} .",
        reference=Reference(pronoun_at, noun, other),
    )


def _copula(random: Random) -> English:
    """The dogs near the house are big: the verb agrees with the dogs, not with the house."""
    many, near_many = random.random() < 0.5, random.random() < 0.5
    noun, near = random.choice(PEOPLE + ANIMALS), random.choice(PLACES)
    subject = f"the {noun.many if many else noun.one}"
    place = f"near the {near.many if near_many else near.one}" if random.random() < 0.6 else ""
    adjective = random.choice(COLOURS_AND_SIZES + FEELINGS).english
    verb_at = len(f"{subject} {place}".split())
    return _marked(
        "copula", subject, place, f"[{'are' if many else 'is'}]", adjective, ".",
        links=(Link(query=verb_at, key=1, relation=AGREEMENT),),
    )  # fmt: skip


def _action(random: Random) -> English:
    """She is eating a green apple; the boys do not love the old king."""
    verb = random.choice(VERBS)
    found = random.choice(OBJECTS[verb.objects])
    if random.random() < 0.5:
        subject = random.choice(tuple(PRONOUNS))
        many = subject in {"i", "you", "we", "they"}
    else:
        many = random.random() < 0.4
        noun = random.choice(PEOPLE + ANIMALS)
        subject = _phrase(random, noun, many=many)
    thing = _phrase(random, found, many=random.random() < 0.2)
    how = random.choice(("plain", "past", "ing", "was", "not", "n't"))
    do = "do" if many else "does"
    failed = random.choice((f"{do}n't", *FAILED))
    done = {
        "plain": verb.base if many else verb.third,
        "past": verb.past,
        "ing": f"{am_is_are(subject, many=many)} {verb.ing}",
        "was": f"{was_were(subject, many=many)} {verb.ing}",
        "not": f"[{do}] [not] {verb.base}",
        "n't": f"{failed} {verb.base}",
    }
    return _marked("action", subject, done[how], thing, ".")


def _reflexive(random: Random) -> English:
    """The girls see themselves: the last word looks back to the first."""
    noun = random.choice(PEOPLE[:6])
    many = random.random() < 0.4
    verb = random.choice(ACTIONS[:5])
    she = noun.one in {"princess", "queen", "girl"}
    self_ = "themselves" if many else "herself" if she else "himself"
    who = f"the {_maybe(random, COLOURS_AND_SIZES)} {noun.many if many else noun.one}".split()
    noun_at = len(who) - 1
    return _marked(
        "reflexive",
        *who,
        verb.base if many else verb.third,
        f"[{self_}] .",
        links=(Link(query=noun_at + 2, key=noun_at, relation=COREFERENCE),),
    )


def _all(random: Random) -> English:
    """I love all you."""
    subject = random.choice(("i", "you", "we", "they"))
    return _marked("all", subject, random.choice(ACTIONS[:5]).base, "all", random.choice(("you", "them", "us")), ".")


def _existence(random: Random) -> English:
    """There is a prince; is there a prince?"""
    many = random.random() < 0.3
    noun = random.choice(PEOPLE + ANIMALS + FOOD + THINGS)
    what = f"two {noun.many}" if many else _phrase(random, noun, definite=False)
    be = "are" if many else "is"
    if random.random() < 0.5:
        return _marked("existence", f"[there] [{be}]", what, "[.]")
    return _marked("existence", f"[{be}] [there]", what, "[?]")


def _although(random: Random) -> English:
    """Although I did not get 95 in last TOEFL, I could get in the Ph.D program: one "not", here or there."""
    subject = random.choice(tuple(PRONOUNS))
    score, when, exam = random.choice(SCORES), random.choice(tuple(WHEN)), random.choice(tuple(EXAMS))
    enter, program = random.choice(tuple(ENTER)), random.choice(tuple(PROGRAMS))
    first, second = ("[not]", "") if random.random() < 0.5 else ("", "[not]")
    return _marked(
        "although",
        f"[although] {subject} [did] {first} [get] {score} [in] {when} {exam} [,]",
        f"{subject} [could] {second} {enter} [in] [the] {program} {random.choice(PROGRAMS[program][1])} .",
    )


KINDS: dict[str, tuple[Callable[[Random], English], float]] = {
    "reference": (_reference, 4),
    "copula": (_copula, 2),
    "action": (_action, 4),
    "reflexive": (_reflexive, 1),
    "all": (_all, 0.3),
    "existence": (_existence, 1),
    "although": (_although, 1),
}
"""Each kind of sentence, with how often it comes up relative to the others."""
