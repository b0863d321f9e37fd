"""The words of the small language, English beside Korean, read from `words.txt`, with all their forms."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun in English and Korean.

    Attributes:
        one: singular.
        many: plural.
        korean: without particle; Korean does not need a plural.
    """

    one: str
    many: str
    korean: str


@dataclass(frozen=True, slots=True)
class Adjective:
    """An adjective in English and Korean.

    Attributes:
        english: its one form.
        before: Korean before a noun (큰).
        is_so: Korean as a sentence's end (크다).
        being: Korean before 때문에, "because" (크기; of what one feels the past, 피곤했기).
    """

    english: str
    before: str
    is_so: str
    being: str


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb in English and Korean.

    Attributes:
        base: as after "did not".
        third: with he, she, it.
        past: past tense.
        ing: as after "is".
        present: Korean present (먹는다).
        did: Korean past (먹었다).
        going: Korean before 있다, "is doing" (먹고).
        not_: Korean before 않는다, "does not" (먹지).
        doing: Korean before 때문에, "because" (먹기).
        objects: which nouns it takes.
    """

    base: str
    third: str
    past: str
    ing: str
    present: str
    did: str
    going: str
    not_: str
    doing: str
    objects: str


def _noun(word: str) -> Noun:
    """A noun from "prince=왕자" or "potato/potatoes=감자"."""
    english, korean = word.split("=")
    one, _, many = english.partition("/")
    return Noun(one, many or _with_s(one), korean)


def _adjective(word: str) -> Adjective:
    """An adjective from "big=큰/크다/크기"."""
    english, korean = word.split("=")
    return Adjective(english, *korean.split("/"))


def _verb(word: str, objects: str) -> Verb:
    """A verb from "love=사랑하" or "see/saw=보/보았다"."""
    english, korean = word.split("=")
    base, _, past = english.partition("/")
    stem, _, did = korean.partition("/")
    without_e = base.removesuffix("e") if base[-2:] != "ee" else base
    return Verb(
        base=base,
        third=_with_s(base),
        past=past or f"{base.removesuffix('e')}ed",
        ing=f"{without_e}ing",
        present=f"{stem}는다" if ends_in_consonant(stem) else f"{stem[:-1]}{chr(ord(stem[-1]) + 4)}다",  # 4: final ㄴ
        did=did or f"{stem[:-1]}했다",
        going=f"{stem}고",
        not_=f"{stem}지",
        doing=f"{stem}기",
        objects=objects,
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


def with_particle(noun: str, role: str) -> str:
    """A Korean noun with its particle, by its final consonant: topic 은/는, subject 이/가, object 을/를."""
    after_consonant, after_vowel = {"topic": ("은", "는"), "subject": ("이", "가"), "object": ("을", "를")}[role]
    return noun + (after_consonant if ends_in_consonant(noun) else after_vowel)


def _groups() -> dict[str, list[str]]:
    """The words of each group; that of verbs says what they take: "actions taking food"."""
    lines = Path(__file__).with_name("words.txt").read_text("utf-8").replace("\n  ", " ").splitlines()
    named = (line.split(": ", 1) for line in lines if not line.startswith("#"))
    return {name: words.split() for name, words in named}


_GROUPS = _groups()
PEOPLE, ANIMALS, PLACES, FOOD, DRINKS, WRITINGS, PICTURES = (
    tuple(map(_noun, _GROUPS[name]))
    for name in ("people", "animals", "places", "food", "drinks", "writings", "pictures")
)
THINGS = DRINKS + WRITINGS + PICTURES
COLOURS_AND_SIZES, FEELINGS, SHAPES = (
    tuple(map(_adjective, _GROUPS[name])) for name in ("colours and sizes", "feelings", "shapes")
)
"""Of anything; of what lives alone; of a place alone."""
ACTIONS = tuple(
    _verb(word, name.removeprefix("actions taking "))
    for name, words in _GROUPS.items()
    if name.startswith("actions taking ")
    for word in words
)
MOVES = tuple(_verb(word, "places") for word in _GROUPS["moves"])
"""What one does to things and people; what one does to a place."""
VERBS = ACTIONS + MOVES

OBJECTS = {
    "any": PEOPLE + ANIMALS + FOOD + THINGS,
    "food": FOOD,
    "drinks": DRINKS,
    "writings": WRITINGS,
    "goods": FOOD + THINGS,
    "places": PLACES,
}
"""Which nouns a verb takes."""

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
ENTER = {"get": "들어갈", "stay": "머물"}
"""To get in, and to stay in: Korean before 수 있다, "can"."""
JOINTS = {"because": "때문에", "before": "전에"}
ALL = {"you": "너희", "them": "그들", "us": "우리"}
"""Before 모두를: all of you."""
HOW = {"too": "너무", "very": "매우"}
FAILED = {"didn't": "않았다", "couldn't": "못했다"}
"""What did not happen, in one word: Korean after a verb's form in 지."""


def am_is_are(subject: str, *, many: bool) -> str:
    """The form of "be" that a subject takes."""
    return "am" if subject == "i" else "are" if many else "is"


def was_were(subject: str, *, many: bool) -> str:
    """The past of "be" that a subject takes: I was, you were."""
    return "were" if many and subject != "i" else "was"


def takes_plural(pronoun: str) -> bool:
    """Whether a pronoun takes the verb's plain form: I love, they love, but she loves."""
    return pronoun not in {"he", "she"}
