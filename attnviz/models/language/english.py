"""English sentences made up from a seed, each with what is known about it.

What the grammar decides: a word is decided where no other word of the language could stand in its place, the others
being as they are: "the dogs near the house [are] big", "there [is] a prince", "the girls see [themselves]". In "she is
eating" it is not: she may have been eating.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from attnviz.models.language import lexicon as words
from attnviz.models.language.lexicon import (
    FITTING,
    Adjective,
    Noun,
    Verb,
    am_is_are,
    takes_plural,
    was_were,
    with_article,
)
from attnviz.text.corpus import AGREEMENT, COREFERENCE, Link


@dataclass(frozen=True, slots=True)
class Reference:
    """What a pronoun stands for."""

    pronoun: int  # its position
    noun: int  # the position of the noun it stands for
    other: int  # the position of the noun it might have stood for

    @property
    def turned(self) -> Reference:
        """The same with the other noun."""
        return Reference(self.pronoun, self.other, self.noun)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldSentence:
    """A sentence and the gold facts about it."""

    words: tuple[str, ...]  # lower case, punctuation last
    kind: str  # which construction it is
    decided: frozenset[int] = frozenset()  # the positions whose word the grammar decides
    reference: Reference | None = None  # what its pronoun stands for, where that is the point
    # other words that belong together, where that is the point: a form of "be" and the subject that it agrees with,
    # "himself" and whom it stands for
    links: tuple[Link, ...] = ()


Kinds: TypeAlias = dict[str, tuple[Callable[[Random], GoldSentence], float]]
"""What makes each kind of sentence, and how often it comes up relative to the others."""


def generate(random: Random, kind: str | None = None, kinds: Kinds | None = None) -> GoldSentence:
    """One sentence, of a kind or of any; of these kinds, or of those of English."""
    kinds = kinds or KINDS
    chosen = kind or random.choices(list(kinds), [weight for _, weight in kinds.values()])[0]
    return kinds[chosen][0](random)


def marked(
    kind: str,
    *parts: str,
    refers: tuple[str, str, str] | None = None,
    link: tuple[str, str, str] | None = None,
) -> GoldSentence:
    """A sentence from its words; those in square brackets are decided by the grammar.

    `refers` is its pronoun, the noun that it stands for, and the other; `link` two words and how they belong together.
    """
    shown = " ".join(parts).split()
    plain = tuple(word.strip("[]") for word in shown)
    links = (
        ()
        if link is None
        else (Link(query=plain.index(link[0]), key=plain.index(link[1]), relation=link[2]),)
    )
    return GoldSentence(
        words=plain,
        kind=kind,
        decided=frozenset(i for i, word in enumerate(shown) if word.startswith("[")),
        reference=None if refers is None else Reference(*map(plain.index, refers)),
        links=links,
    )


def _maybe(random: Random, adjectives: tuple[Adjective, ...], chance: float = 0.5) -> str:
    return random.choice(adjectives).english if random.random() < chance else ""


def _phrase(random: Random, noun: Noun, *, many: bool = False, definite: bool | None = None) -> str:
    """A noun with its article, number or owner, and perhaps an adjective."""
    bare = f"{_maybe(random, FITTING[noun])} {noun.many if many else noun.one}".strip()
    if many:
        return f"{random.choice(('the', random.choice(words.NUMBERS)))} {bare}"
    if definite is None:
        definite = random.random() < 0.5
    return f"the {bare}" if definite else with_article(bare)


def _own(random: Random, nouns: tuple[Noun, ...], *, many: bool = False) -> str:
    """A noun with its owner: my dog."""
    noun = random.choice(nouns)
    return f"{random.choice(words.OWNERS)} {noun.many if many else noun.one}"


def _somebody(random: Random) -> tuple[str, bool]:
    """Somebody known, and whether a verb takes the plural there: she, Kim, my dogs."""
    which = random.random()
    if which < 0.55:
        pronoun = random.choice(tuple(words.PRONOUNS))
        return pronoun, takes_plural(pronoun)
    if which < 0.75:
        return random.choice(words.NAMES), False
    if which < 0.8:
        return f"{random.choice(words.NAMES)} and {random.choice(words.NAMES)}", True
    many = random.random() < 0.3
    return _own(random, words.LIVING, many=many), many


def _whom(random: Random) -> str:
    if random.random() < 0.3:
        return random.choice(words.NAMES)
    return random.choice([found for _, found, _, _ in words.PRONOUNS.values()])


def _verb(random: Random, subject: str, verb: Verb, *, many: bool) -> tuple[str, str]:
    """A verb in some form with its subject, and the time that goes with it, or none: went, yesterday."""
    how = random.choice(("plain", "past", "past", "is", "was", "n't", "can"))
    not_ = random.choice(("don't" if many else "doesn't", "didn't"))
    form = {
        "plain": verb.base if many else verb.third,
        "past": verb.past,
        "is": f"{am_is_are(subject, many=many)} {verb.ing}",
        "was": f"{was_were(subject, many=many)} {verb.ing}",
        "n't": f"{not_} {verb.base}",
        "can": f"{random.choice(words.MODALS)} {verb.base}",
    }
    times = words.TIMES.get("past" if how == "was" else how, ())
    return form[how], random.choice(("", *times, random.choice(words.ADVERBS)))


def _reference(random: Random) -> GoldSentence:
    """The animal didn't cross the street because it was too tired (or: wide)."""
    animal, place = random.choice(words.ANIMALS), random.choice(words.PLACES)
    lives = random.random() < 0.5
    last = random.choice(words.FEELINGS if lives else words.SHAPES).english
    first, second = (_maybe(random, FITTING[noun], 0.3) for noun in (animal, place))
    verb = random.choice(words.MOVES).base
    return marked(
        "reference",
        f"the {first} {animal.one} {random.choice(tuple(words.FAILED))} {verb} the {second} {place.one}",
        f"[because] [it] [was] {random.choice(tuple(words.HOW))} {last} .",
        refers=("it", animal.one, place.one) if lives else ("it", place.one, animal.one),
    )


def _copula(random: Random) -> GoldSentence:
    """The dogs near the house are big: the verb agrees with the dogs, not with the house."""
    many, near_many = random.random() < 0.5, random.random() < 0.5
    noun, near = random.choice(words.LIVING), random.choice(words.PLACES)
    subject, be = noun.many if many else noun.one, "are" if many else "is"
    place = f"near the {near.many if near_many else near.one}" if random.random() < 0.6 else ""
    adjective = random.choice(FITTING[noun] + words.FEELINGS).english
    return marked(
        "copula", "the", subject, place, f"[{be}]", adjective, ".", link=(be, subject, AGREEMENT)
    )


def _action(random: Random) -> GoldSentence:
    """She is eating a green apple; the boys do not love the old king."""
    return marked("action", *_actions(random), ".")


def _two_clauses(random: Random) -> GoldSentence:
    """I like tea but she drinks coffee."""
    return marked(
        "joined", *_actions(random), random.choice(("and", "but", "or")), *_actions(random), "."
    )


def _actions(random: Random) -> tuple[str, str, str]:
    verb = random.choice(words.VERBS)
    known = random.random() < 0.7
    if known:
        subject, many = _somebody(random)
    else:
        many = random.random() < 0.4
        subject = _phrase(random, random.choice(words.LIVING), many=many)
    how = random.choice(("plain", "past", "ing", "was", "not", "n't"))
    do = "do" if many else "does"
    failed = random.choice((f"{do}n't", *words.FAILED, random.choice(words.MODALS)))
    done = {
        "plain": verb.base if many else verb.third,
        "past": verb.past,
        "ing": f"{am_is_are(subject, many=many)} {verb.ing}",
        "was": f"{was_were(subject, many=many)} {verb.ing}",
        "not": f"[{do}] [not] {verb.base}",
        "n't": f"{failed} {verb.base}",
    }
    return subject, done[how], _object(random, verb, known=known)


def _object(random: Random, verb: Verb, *, known: bool) -> str:
    """What a verb takes; of somebody known also somebody known, or something that is not counted."""
    if verb.objects == "subjects":
        return random.choice(words.SUBJECTS)
    if known and random.random() < 0.4:
        if verb.objects in {"any", "people"}:
            return _whom(random)
        if verb.objects in {"food", "drinks"}:
            return random.choice(words.SUBSTANCES if verb.objects == "food" else words.LIQUIDS)
        return _own(random, words.OBJECTS[verb.objects], many=random.random() < 0.2)
    return _phrase(random, random.choice(words.OBJECTS[verb.objects]), many=random.random() < 0.2)


def _where(random: Random) -> str:
    """On the mat; in the kitchen; in Seoul; at home."""
    which, many = random.random(), random.random() < 0.15
    if which < 0.1:
        return random.choice(
            (
                f"in {random.choice(words.TOWNS[2:])}",
                f"at {random.choice(('school', 'work', 'home'))}",
            )
        )
    if which < 0.5:
        place = random.choice(words.PLACES + words.ROOMS)
        return f"in the {place.many if many else place.one}"
    spot = random.choice(words.SPOTS)
    return f"{random.choice(words.PREPOSITIONS)} the {spot.many if many else spot.one}"


def _subject(random: Random) -> tuple[str, bool]:
    """Somebody known or not, and whether a verb takes the plural there."""
    if random.random() < 0.5:
        return _somebody(random)
    many = random.random() < 0.3
    return _phrase(random, random.choice(words.LIVING), many=many), many


def _stay(random: Random) -> GoldSentence:
    """The cat sat on the mat."""
    subject, many = _subject(random)
    verb, when = _verb(random, subject, random.choice(words.STAYS), many=many)
    return marked("stay", subject, verb, _where(random), when, ".")


def _go(random: Random) -> GoldSentence:
    """Kim went to school yesterday."""
    subject, many = _subject(random)
    verb, when = _verb(random, subject, random.choice(words.GOES), many=many)
    town = random.random() < 0.5
    where = (
        random.choice(words.TOWNS)
        if town
        else f"the {random.choice(words.PLACES + words.ROOMS).one}"
    )
    with_ = f"with {_whom(random)}" if random.random() < 0.2 else ""
    return marked("go", subject, verb, random.choice(("to", "to", "from")), where, with_, when, ".")


def _give(random: Random) -> GoldSentence:
    """She gave me a book."""
    subject, many = _somebody(random)
    verb, when = _verb(random, subject, random.choice(words.GIVES), many=many)
    whom = _whom(random) if random.random() < 0.6 else _own(random, words.PEOPLE)
    return marked(
        "give", subject, verb, whom, _phrase(random, random.choice(words.TOOLS)), when, "."
    )


def _be(random: Random) -> GoldSentence:
    """I am very happy; Kim is my friend; she was in the kitchen yesterday."""
    subject, many = _somebody(random)
    past = random.random() < 0.3
    be = (was_were if past else am_is_are)(subject, many=many)
    one = not many or subject == "i"
    what = random.choice(("so", "so", "who", "where"))
    found = {
        "so": f"{random.choice(('', '', 'so', *words.HOW))} {random.choice(words.FEELINGS + words.TRAITS).english}",
        "who": random.choice(
            (
                _own(random, words.PEOPLE, many=not one),
                _phrase(random, random.choice(words.PEOPLE), many=not one),
            )
        ).replace("my friend", "my best friend"),
        "where": _where(random),
    }
    return marked(
        "be", subject, be, found[what], random.choice(words.TIMES["past"]) if past else "", "."
    )


def _have(random: Random) -> GoldSentence:
    """She has three dogs and a cat."""
    subject, many = _somebody(random)
    has = random.choice(("have" if many else "has", "had", "need" if many else "needs"))
    some = random.random() < 0.3
    thing = _phrase(random, random.choice(words.COUNTED), many=some, definite=False)
    return marked("have", subject, has, thing.replace("the ", "some ", 1) if some else thing, ".")


def _reason(random: Random) -> GoldSentence:
    """I went to school because I was happy."""
    subject, many = random.choice(tuple((p, takes_plural(p)) for p in words.PRONOUNS))
    was = was_were(subject, many=many)
    goes = random.random() < 0.5
    first = random.choice(words.GOES if goes else words.STAYS)
    where = f"to {random.choice(words.TOWNS)}" if goes else _where(random)
    last = random.choice(words.FEELINGS).english
    return marked(
        "reason",
        subject,
        random.choice((first.past, f"didn't {first.base}")),
        where,
        "because",
        subject,
        was,
        random.choice(("", *words.HOW)),
        last,
        ".",
    )


def _question(random: Random) -> GoldSentence:
    """Where is the cat? What did she eat? Do you like coffee? Who is your teacher?"""
    subject, many = _somebody(random)
    be, do = am_is_are(subject, many=many), random.choice(("do" if many else "does", "did"))
    verb = random.choice(words.ACTIONS)
    thing, lives = random.choice(words.LIVING + words.TOOLS), ("go", "live", "sleep", "work")
    return marked(
        "question",
        random.choice(
            (
                f"where {be} {subject} [?]",
                f"where is the {thing.one} [?]",
                f"{random.choice(('who', 'what', 'why'))} {do} {subject} {verb.base} [?]",
                f"{do} {subject} {verb.base} {_object(random, verb, known=True)} [?]",
                f"{random.choice(('where', 'when', 'why'))} {do} {subject} {random.choice(lives)} [?]",
                f"who is {_own(random, words.PEOPLE)} [?]",
                f"what is {random.choice(('this', 'that', 'it', 'your name', 'my name'))} [?]",
                f"how {random.choice(('', 'old'))} {be} {subject} [?]",
                f"{be} {subject} {random.choice(words.FEELINGS).english} [?]",
                f"who {random.choice((verb.past, verb.third))} {_object(random, verb, known=True)} [?]",
            )
        ),
    )


def _this(random: Random) -> GoldSentence:
    """This is my cat; those are apples; my name is Kim; hello, Kim."""
    noun = random.choice(words.COUNTED)
    return marked(
        "this",
        random.choice(
            (
                f"{random.choice(('this', 'that'))} is {_own(random, (noun,))} .",
                f"{random.choice(('this', 'that'))} is {_phrase(random, noun)} .",
                f"{random.choice(('these', 'those'))} are {_own(random, (noun,), many=True)} .",
                f"{random.choice(words.OWNERS)} name is {random.choice(words.NAMES)} .",
                f"{random.choice(words.HELLO)} , {random.choice(words.NAMES)} {random.choice('.!')}",
            )
        ),
    )


def _weather(random: Random) -> GoldSentence:
    """The sky is blue; it was cold yesterday."""
    noun, past = random.choice(words.NATURE), random.random() < 0.4
    what = random.choice(("raining", "snowing", "sunny", "cold", "hot", "warm"))
    so = random.choice(
        (f"the {noun.one} {{}} {random.choice(FITTING[noun]).english}", f"it {{}} {what}")
    )
    return marked(
        "weather",
        so.format("was" if past else "is"),
        random.choice(("", *words.TIMES["past" if past else "is"])),
        ".",
    )


def _reflexive(random: Random) -> GoldSentence:
    """The girls see themselves: the last word looks back to the first."""
    noun = random.choice(words.PEOPLE[:6])
    many = random.random() < 0.4
    verb = random.choice(words.ACTIONS[:5])
    she = noun.one in {"princess", "queen", "girl"}
    self_ = "themselves" if many else "herself" if she else "himself"
    who = noun.many if many else noun.one
    return marked(
        "reflexive",
        "the",
        _maybe(random, FITTING[noun]),
        who,
        verb.base if many else verb.third,
        f"[{self_}] .",
        link=(self_, who, COREFERENCE),
    )


def _all(random: Random) -> GoldSentence:
    """I love all you."""
    subject = random.choice(("i", "you", "we", "they"))
    verb = random.choice(words.ACTIONS[:5]).base
    return marked("all", subject, verb, "all", random.choice(("you", "them", "us")), ".")


def _existence(random: Random) -> GoldSentence:
    """There is a prince; is there a prince?"""
    many = random.random() < 0.3
    noun = random.choice(words.COUNTED)
    what = (
        f"{random.choice(words.NUMBERS)} {noun.many}"
        if many
        else _phrase(random, noun, definite=False)
    )
    be = "are" if many else "is"
    if random.random() < 0.5:
        there = (
            "[there]" if many else "there"
        )  # "she is a doctor" is a sentence too, "she are" is not
        return marked("existence", f"{there} [{be}]", what, "[.]")
    return marked("existence", f"[{be}] [there]", what, "[?]")


def _although(random: Random) -> GoldSentence:
    """Although I did not get 95 in last TOEFL, I could get in the Ph.D program: one "not", here or there."""
    subject = random.choice(tuple(words.PRONOUNS))
    score, when, exam = (
        random.choice(words.SCORES),
        random.choice(tuple(words.WHEN)),
        random.choice(tuple(words.EXAMS)),
    )
    enter, program = random.choice(tuple(words.ENTER)), random.choice(tuple(words.PROGRAMS))
    first, second = ("[not]", "") if random.random() < 0.5 else ("", "[not]")
    return marked(
        "although",
        f"[although] {subject} [did] {first} [get] {score} [in] {when} {exam} [,]",
        f"{subject} [could] {second} {enter} [in] [the] {program} {random.choice(words.PROGRAMS[program][1])} .",
    )


KINDS: Kinds = {
    "reference": (_reference, 5),
    "copula": (_copula, 3),
    "action": (_action, 5),
    "reflexive": (_reflexive, 1),
    "all": (_all, 0.3),
    "existence": (_existence, 1.5),
    "although": (_although, 1),
    "joined": (_two_clauses, 0.5),
    "stay": (_stay, 2),
    "go": (_go, 1),
    "give": (_give, 0.5),
    "be": (_be, 1.5),
    "have": (_have, 0.7),
    "reason": (_reason, 0.7),
    "question": (_question, 1.5),
    "this": (_this, 0.5),
    "weather": (_weather, 0.3),
}
