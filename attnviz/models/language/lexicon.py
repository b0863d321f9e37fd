"""The words of the small language, English beside Korean, read from `words.txt`, with all their forms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias, TypeVar


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun in English and Korean."""

    one: str  # singular
    many: str  # plural
    korean: str  # without particle; Korean does not need a plural. Empty where no translator knows the word


@dataclass(frozen=True, slots=True)
class Adjective:
    """An adjective in English and Korean."""

    english: str  # its one form
    korean: str  # before a noun (큰); empty where no translator knows the word
    is_so: str  # Korean as a sentence's end (크다)
    being: str  # Korean before 때문에, "because" (크기; of what one feels the past, 피곤했기)


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb in English and Korean."""

    base: str  # as after "did not"
    third: str  # with he, she, it
    past: str  # past tense
    ing: str  # as after "is"
    objects: str  # which nouns it takes
    korean: str  # the stem, from which the other forms are made (먹); empty where no translator knows the word
    did: str  # Korean past (먹었다)

    @property
    def present(self) -> str:
        """Korean present: 먹는다; after a vowel ㄴ다: 본다."""
        if ends_in_consonant(self.korean):
            return f"{self.korean}는다"
        return f"{self.korean[:-1]}{chr(ord(self.korean[-1]) + 4)}다"  # 4: final ㄴ

    @property
    def going(self) -> str:
        """Korean before 있다, "is doing": 먹고."""
        return f"{self.korean}고"

    @property
    def not_(self) -> str:
        """Korean before 않는다, "does not": 먹지."""
        return f"{self.korean}지"

    @property
    def doing(self) -> str:
        """Korean before 때문에, "because": 먹기."""
        return f"{self.korean}기"


Word = TypeVar("Word", Noun, Adjective, Verb)


def _noun(word: str) -> Noun:
    """A noun from "prince=왕자" or "man/men"."""
    english, _, korean = word.partition("=")
    one, _, many = english.partition("/")
    return Noun(one, many or _with_s(one), korean)


def _adjective(word: str) -> Adjective:
    """An adjective from "big=큰/크다/크기" or "blue"."""
    english, _, korean = word.partition("=")
    return Adjective(english, *(korean.split("/") if korean else ("", "", "")))


def _verb(word: str, objects: str = "") -> Verb:
    """A verb from "love=사랑하", "see/saw=보/보았다" or "sit/sat/sitting"."""
    english, _, korean = word.partition("=")
    base, past, ing, third, *_ = [*english.split("/"), "", "", ""]
    stem, _, did = korean.partition("/")
    without_e = base.removesuffix("e") if base[-2:] != "ee" else base
    third = third or _with_s(base)
    return Verb(
        base=base,
        third=third,
        past=past or f"{third.removesuffix('s').removesuffix('e')}ed",  # cries, cried
        ing=ing or f"{without_e}ing",
        objects=objects,
        korean=stem,
        did=did or f"{stem[:-1]}했다",
    )


def _with_s(word: str) -> str:
    """The plural of a noun, or the form of a verb with he, she, it."""
    if word.endswith(("s", "x", "ch", "sh")):
        return f"{word}es"
    return f"{word[:-1]}ies" if word[-1] == "y" and word[-2] not in "aeiou" else f"{word}s"


def ends_in_consonant(word: str) -> bool:
    """Whether the last syllable of a Korean word has a final consonant.

    A Korean syllable's number is ((initial * 21) + vowel) * 28 + final, counted from U+AC00; final 0 is none
    (The Unicode Standard, section 3.12).
    """
    return (ord(word[-1]) - 0xAC00) % 28 != 0


PARTICLES = {
    "topic": ("은", "는"),
    "subject": ("이", "가"),
    "object": ("을", "를"),
    "with": ("과", "와"),
    "is": ("이에요", "예요"),
    "was": ("이었어요", "였어요"),
    "too": ("도", "도"),
    "to": ("으로", "로"),
    "at": ("에서", "에서"),
    "in": ("에", "에"),
    "whom": ("에게", "에게"),
}
"""What follows a final consonant, and what follows none."""


def particle_of(noun: str, role: str) -> str:
    """The particle of a Korean noun by its final consonant; before 로 ㄹ counts as none."""
    with_final = ends_in_consonant(noun) and not (
        role == "to" and (ord(noun[-1]) - 0xAC00) % 28 == 8
    )
    return PARTICLES[role][not with_final]


def with_particle(noun: str, role: str) -> str:
    """A Korean noun with its particle: topic 은/는, subject 이/가, object 을/를."""
    return noun + particle_of(noun, role)


Listed: TypeAlias = tuple[tuple[str, str, str], ...]
"""Words as they are listed, each after its group and, of a verb, what it takes."""


def read_words(name: str) -> Listed:
    """The words of a file, in which a line is a group of them: "people: prince=왕자 ...", "verbs taking food: ..."."""
    lines = Path(__file__).with_name(name).read_text("utf-8").replace("\n  ", " ").splitlines()
    groups = (line.split(": ", 1) for line in lines if not line.startswith("#"))
    return tuple(
        (*group.partition(" taking ")[::2], word)
        for group, words in groups
        for word in words.split()
    )


def words_of(listed: Listed, group: str) -> tuple[str, ...]:
    """Those of a group. Raises LookupError: there is none."""
    found = tuple(word for name, _, word in listed if name == group)
    if not found:
        raise LookupError(f"no group of words is called {group!r}")
    return found


_LISTED = read_words("words.txt")
_of = partial(words_of, _LISTED)


def _nouns(group: str) -> tuple[Noun, ...]:
    return tuple(map(_noun, _of(group)))


def _verbs(group: str) -> tuple[Verb, ...]:
    return tuple(_verb(word, objects) for name, objects, word in _LISTED if name == group)


PEOPLE, ANIMALS, PLACES, ROOMS, NATURE = map(
    _nouns, ("people", "animals", "places", "rooms", "nature")
)
FURNITURE, TOOLS, CLOTHES, INSTRUMENTS, VEHICLES = map(
    _nouns, ("furniture", "tools", "clothes", "instruments", "vehicles")
)
FOOD, DRINKS, WRITINGS = map(_nouns, ("food", "drinks", "writings"))
SPOTS = FURNITURE + _nouns("spots")  # what one can be on, under or behind
THINGS = (
    DRINKS + WRITINGS + _nouns("pictures") + INSTRUMENTS + VEHICLES + CLOTHES + TOOLS + FURNITURE
)
LIVING, COUNTED = PEOPLE + ANIMALS, PEOPLE + ANIMALS + FOOD + THINGS
NOUNS = tuple(dict.fromkeys(PEOPLE + ANIMALS + PLACES + ROOMS + SPOTS + FOOD + THINGS + NATURE))

QUALITIES, TRAITS, FEELINGS, SHAPES = (
    tuple(map(_adjective, _of(group))) for group in ("qualities", "traits", "feelings", "shapes")
)
"""Of what `FITTING` says; of people; of what lives alone; of a place alone."""
ADJECTIVES = QUALITIES + TRAITS + FEELINGS + SHAPES

ACTIONS, MOVES, STAYS, GOES, GIVES = map(_verbs, ("verbs", "moves", "stays", "goes", "gives"))
"""What takes an object; what one does to a place; what one does somewhere; how one gets to a place; what one does to
somebody with something."""
VERBS = ACTIONS + MOVES

OBJECTS = {
    "any": COUNTED,
    "people": PEOPLE,
    "animals": ANIMALS,
    "food": FOOD,
    "drinks": DRINKS,
    "writings": WRITINGS,
    "goods": FOOD + THINGS,
    "tools": TOOLS,
    "clothes": CLOTHES,
    "instruments": INSTRUMENTS,
    "vehicles": VEHICLES,
    "places": PLACES,
    "rooms": ROOMS,
}
"""Which nouns a verb takes."""

NAMES, TOWNS, SUBJECTS, SUBSTANCES, LIQUIDS = map(
    _of, ("names", "towns", "subjects", "substances", "liquids")
)
NUMBERS, MODALS, OWNERS, PREPOSITIONS, ADVERBS = map(
    _of, ("numbers", "modals", "owners", "prepositions", "adverbs")
)
"""Words of one form: names, goals without an article, what is not counted, ..."""


def in_korean(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Those of the words that the translators know."""
    return tuple(word for word in words if word.korean)


def _fitting() -> dict[Noun, tuple[Adjective, ...]]:
    groups = {"people": PEOPLE} | {noun.one: (noun,) for noun in NOUNS}
    found: dict[Noun, tuple[Adjective, ...]] = dict.fromkeys(PEOPLE, TRAITS)
    for adjective in QUALITIES:
        for group in _of(f"what is {adjective.english}"):
            for noun in groups[group]:
                found[noun] = (*found.get(noun, ()), adjective)
    return found


FITTING = _fitting()
"""The adjectives that go with a noun, so that the two have something to tell each other."""

PRONOUNS = {
    # English subject: (Korean as topic, English object, Korean object, Korean as subject)
    "i": ("나는", "me", "나를", "내가"),
    "you": ("너는", "you", "너를", "네가"),
    "he": ("그는", "him", "그를", "그가"),
    "she": ("그녀는", "her", "그녀를", "그녀가"),
    "we": ("우리는", "us", "우리를", "우리가"),
    "they": ("그들은", "them", "그들을", "그들이"),
}

SCORES = ("95", "90", "80", "70")
EXAMS = {"toefl": "토플", "test": "시험", "exam": "고사"}
WHEN = {"last": "지난", "this": "이번"}
PROGRAMS = {
    # English: (Korean, what it can be a program or a school of)
    "ph.d": ("박사", ("program",)),
    "master": ("석사", ("program",)),
    "summer": ("여름", ("program", "school")),
    "science": ("과학", ("program", "school")),
    "language": ("언어", ("program", "school")),
}
COURSES = {"program": "과정에", "school": "학교에"}
ENTER = {"get": "들어갈", "stay": "머물"}  # to get in, and to stay in: Korean before 수 있다, "can"
JOINTS = {"because": "때문에", "before": "전에"}
ALL = {"you": "너희", "them": "그들", "us": "우리"}  # before 모두를: all of you
HOW = {"too": "너무", "very": "매우"}
FAILED = {
    "didn't": "않았다",
    "couldn't": "못했다",
}  # what did not happen: Korean after a verb's form in 지
TIMES = {
    "past": ("yesterday", "last night", "this morning"),
    "plain": ("often", "every day", "every morning"),
    "is": ("now", "today"),
}
"""What can stand at the end of a sentence, by the form of its verb."""
HELLO = (
    "hello",
    "goodbye",
    "good morning",
    "good night",
    "thank you",
    "please",
    "sorry",
    "yes",
    "no",
)


def with_article(phrase: str) -> str:
    """With the article that its first sound takes."""
    return f"{'an' if phrase[0] in 'aeiou' else 'a'} {phrase}"


def am_is_are(subject: str, *, many: bool) -> str:
    """The form of "be" that a subject takes."""
    return "am" if subject == "i" else "are" if many else "is"


def was_were(subject: str, *, many: bool) -> str:
    """The past of "be" that a subject takes: I was, you were."""
    return "were" if many and subject != "i" else "was"


def takes_plural(pronoun: str) -> bool:
    """Whether a pronoun takes the verb's plain form: I love, they love, but she loves."""
    return pronoun not in {"he", "she"}
