"""Polite Korean sentences made up from a seed, in words whose particles are pieces of their own, each with its facts.

What a word does in a Korean sentence is told by its particle, not by its place: 왕자가 공주를 만났어요 and 공주를
왕자가 만났어요 mean the same. Two kinds of sentences have a pronoun: 그것 stands for what the end of the sentence
fits, as "it" does in English, and 자기 for whoever bears 이/가, wherever that stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from attnviz.models.language.english import GoldSentence, Kinds, marked
from attnviz.models.language.lexicon import (
    PARTICLES,
    ends_in_consonant,
    particle_of,
    read_words,
    words_of,
)
from attnviz.text.corpus import Link

PIECE = "##"
"""What begins a piece that continues a word."""
OBJECT = "object"  # the relation of a verb to the noun that bears its 을/를

_LISTED = read_words("words_ko.txt")
_of = partial(words_of, _LISTED)
SUBJECTS = {
    "저": "제 ##가",
    "나": "내 ##가",
    "너": "네 ##가",
    "우리": "우리 ##가",
    "그": "그 ##가",
    "그녀": "그녀 ##가",
    "그들": "그들 ##이",
    "여러분": "여러분 ##이",
}
"""Pronouns, and as they stand as subjects."""
TIMES = {
    "did": ("어제", "아침에", "지난주에"),
    "does": ("오늘", "지금", "매일"),
    "will": ("내일", "다음 주에", "주말에"),
}
"""What can stand at the beginning of a sentence, by the form of its verb."""
HELLO = ("안녕하세요", "감사합니다", "고맙습니다", "미안해요", "반가워요")
FAMILIAR = ("사랑해", "좋아해", "기억해")


@dataclass(frozen=True, slots=True)
class KoreanVerb:
    """A verb, or an adjective, in Korean."""

    stem: str  # as before 고 and 지 (먹)
    does: str  # polite present (먹어요)
    will: str  # before 거예요 (먹을); of an adjective before a noun (큰)
    objects: str = ""  # which nouns it takes

    @property
    def did(self) -> str:
        """Polite past: 먹었어요, 갔어요."""
        return f"{self.was}어요"

    @property
    def because(self) -> str:
        """The past before 때문이에요: 피곤했기."""
        return f"{self.was}기"

    @property
    def was(self) -> str:
        """The past before 기 and 어요: 먹었, 갔."""
        return _with_final(self.does.removesuffix("요"), 20)  # 20: final ㅆ


def _with_final(word: str, final: int) -> str:
    """With a final consonant, by its number in Unicode, on the last syllable."""
    return word[:-1] + chr(ord(word[-1]) + final)


def _verb(entry: str, objects: str) -> KoreanVerb:
    stem, _, forms = entry.partition("=")
    does, _, will = forms.partition("/")
    return KoreanVerb(
        stem,
        does,
        will or (f"{stem}을" if ends_in_consonant(stem) else _with_final(stem, 8)),
        objects,
    )


def _adjective(entry: str) -> KoreanVerb:
    stem, _, forms = entry.partition("=")
    before, _, does = forms.partition("/")
    return KoreanVerb(stem, does, before)


def _verbs(group: str) -> tuple[KoreanVerb, ...]:
    return tuple(_verb(word, objects) for name, objects, word in _LISTED if name == group)


ACTIONS, FEELS, STAYS, GOES, GIVES = map(_verbs, ("verbs", "feels", "stays", "goes", "gives"))
"""What one does to things and people; what one feels for them, which is not said with 고 있어요; where one stays or
goes; what one does to somebody with something."""
VERBS = ACTIONS + FEELS
QUALITIES, FEELINGS, SHAPES = (
    tuple(map(_adjective, _of(group))) for group in ("qualities", "feelings", "shapes")
)
PEOPLE, ANIMALS, CROSSED, PASSED, OUTSIDE = map(
    _of, ("people", "animals", "crossed", "passed", "outside")
)
ROOMS, TOWNS, OWNED, NAMES, TOOLS, CLOTHES = map(
    _of, ("rooms", "towns", "owned", "names", "tools", "clothes")
)
FOOD, DRINKS, WRITINGS, SHOWN = map(_of, ("food", "drinks", "writings", "shown"))
THINGS = FOOD + DRINKS + WRITINGS + TOOLS + CLOTHES
OBJECTS = {
    "any": PEOPLE + ANIMALS + SHOWN + TOOLS,
    "people": PEOPLE,
    "animals": ANIMALS,
    "food": FOOD,
    "drinks": DRINKS,
    "writings": WRITINGS,
    "goods": FOOD + TOOLS + CLOTHES,
    "tools": TOOLS,
    "clothes": CLOTHES,
    "subjects": _of("subjects"),
    "crossed": CROSSED,
    "passed": PASSED,
}
"""Which nouns a verb takes."""
_FITS = {adjective: {*_of(f"what is {adjective.stem}")} for adjective in QUALITIES + SHAPES}
FITTING = {
    noun: [adjective for adjective, nouns in _FITS.items() if noun in nouns]
    for _, _, noun in _LISTED
}
"""The adjectives that go with a noun."""


def _linked(kind: str, *parts: str) -> GoldSentence:
    """A sentence from its pieces, as `marked` takes them, whose verb is linked to its object."""
    plain = marked(kind, *parts)
    verb = max(i for i, piece in enumerate(plain.words) if piece in _TRANSITIVE)
    (bearer,) = (i for i, piece in enumerate(plain.words) if piece in {"##을", "##를"})
    return replace(plain, links=(Link(query=verb, key=bearer - 1, relation=OBJECT),))


def _with(noun: str, role: str, *, decided: bool = False) -> str:
    """A noun and its particle, which the grammar may decide."""
    piece = PIECE + particle_of(noun, role)
    return f"{noun} [{piece}]" if decided else f"{noun} {piece}"


def _phrase(random: Random, noun: str, chance: float = 0.4) -> str:
    """A noun, perhaps with an adjective, with 이, 그, 저, or with its owner."""
    if random.random() < chance and FITTING.get(noun):
        return f"{random.choice(FITTING[noun]).will} {noun}"
    if random.random() < 0.2:
        return f"{random.choice(('이', '그', '저', '제', '우리'))} {noun}"
    return noun


def _subject(random: Random, living: Sequence[str]) -> str:
    """Who does it, as topic or subject."""
    role, which = random.choice(("topic", "subject")), random.random()
    if which < 0.25:
        pronoun = random.choice(tuple(SUBJECTS))
        return SUBJECTS[pronoun] if role == "subject" else _with(pronoun, role)
    if which < 0.45:
        return _with(random.choice(NAMES) + random.choice(("", " 씨")), role)
    return _with(_phrase(random, random.choice(living), 0.3), role)


def _ends(random: Random, verb: KoreanVerb) -> tuple[str, str]:
    """A verb in some form, and the time that goes with it, or none: 어제, 먹었어요."""
    how = random.choice(
        ("does", "did", "did", "not", "will", "an", *(("ing", "ing") if verb not in FEELS else ()))
    )
    form = {
        "does": verb.does,
        "did": verb.did,
        "ing": f"{verb.stem}고 {random.choice(('있어요', '있었어요'))}",
        "not": f"{verb.stem}지 {random.choice(('않아요', '않았어요', '못했어요'))}",
        "an": f"{random.choice(('안', '못'))} {random.choice((verb.does, verb.did))}",
        "will": f"{verb.will} 거예요",
    }
    times = TIMES.get(how, ())
    return form[how], random.choice(("", *times)) if times else ""


def _it(random: Random) -> GoldSentence:
    """동물은 길을 건너지 않았어요, 왜냐하면 그것이 너무 피곤했기 (or: 넓었기) 때문이에요."""
    verb = random.choice([verb for verb in VERBS if verb.objects in {"crossed", "passed"}])
    animal, place = random.choice(ANIMALS), random.choice(OBJECTS[verb.objects])
    lives = random.random() < 0.5
    last = random.choice(
        FEELINGS if lives else [shape for shape in SHAPES if shape in FITTING[place]]
    )
    first = _with(_phrase(random, animal, 0.25), random.choice(("topic", "subject")))
    second = _with(_phrase(random, place, 0.25), "object", decided=True)
    order = (first, second) if random.random() < 0.7 else (second, first)
    return marked(
        "reference",
        *order,
        f"{verb.stem}지 {random.choice(('않았어요', '못했어요'))}",
        random.choice((".", ",", ",")),
        random.choice(("왜냐하면", "왜냐하면", "")),
        f"그것 [##이] {random.choice(('너무', '아주'))} {last.because} [때문이에요] .",
        refers=("그것", animal if lives else place, place if lives else animal),
    )


def _own(random: Random) -> GoldSentence:
    """왕자가 공주를 자기 방에서 만났어요; 공주를 왕자가 자기 방에서 만났어요: 자기 is the prince both times."""
    who, whom = random.sample(PEOPLE, 2)
    first, second = (
        _with(_phrase(random, who, 0.15), "subject"),
        _with(_phrase(random, whom, 0.15), "object"),
    )
    order = (first, second) if random.random() < 0.5 else (second, first)
    verb = random.choice([verb for verb in ACTIONS if verb.objects == "people"])
    ends, when = _ends(random, verb)
    return marked(
        "own",
        when,
        *order,
        f"자기 {random.choice(OWNED)} [##에서]",
        ends,
        ".",
        refers=("자기", who, whom),
    )


def _action(random: Random) -> GoldSentence:
    """소년이 공원에서 초록색 사과를 먹고 있어요."""
    verb = random.choice(VERBS)
    ends, when = _ends(random, verb)
    thing = _with(_phrase(random, random.choice(OBJECTS[verb.objects])), "object", decided=True)
    where = f"{random.choice(ROOMS + OUTSIDE)} [##에서]" if random.random() < 0.35 else ""
    who = PEOPLE + (
        ANIMALS if verb.objects in {"any", "food", "animals", "crossed", "passed"} else ()
    )
    middle = [_subject(random, who), where, thing]
    if random.random() < 0.25:
        middle = [thing, *middle[:2]]
    return _linked("action", when, *middle, ends, "." if random.random() < 0.9 else "?")


def _stay(random: Random) -> GoldSentence:
    """고양이가 방에서 자고 있어요."""
    ends, when = _ends(random, random.choice(STAYS))
    return marked(
        "stay",
        when,
        _subject(random, PEOPLE + ANIMALS),
        f"{random.choice(ROOMS + OUTSIDE)} [##에서]",
        ends,
        ".",
    )


def _go(random: Random) -> GoldSentence:
    """민수 씨는 어제 학교에 갔어요."""
    ends, when = _ends(random, random.choice(GOES))
    with_ = f"{_with(random.choice(PEOPLE), 'with')} 같이" if random.random() < 0.2 else ""
    where = _with(random.choice(ROOMS + OUTSIDE + TOWNS), random.choice(("in", "in", "to")))
    return marked("go", _subject(random, PEOPLE), when, with_, where, ends, ".")


def _give(random: Random) -> GoldSentence:
    """선생님은 학생에게 책을 줬어요."""
    ends, when = _ends(random, random.choice(GIVES))
    thing = _with(_phrase(random, random.choice(TOOLS + WRITINGS)), "object", decided=True)
    return _linked(
        "give",
        when,
        _subject(random, PEOPLE),
        f"{random.choice(PEOPLE)} [##에게]",
        thing,
        ends,
        ".",
    )


def _is(random: Random) -> GoldSentence:
    """저는 학생이에요; 이것은 사과예요; 사과가 아니에요."""
    if random.random() < 0.5:
        subject = _with(
            random.choice((*SUBJECTS, "저", random.choice(NAMES) + " 씨")),
            random.choice(("topic", "topic", "too")),
        )
        what = random.choice(PEOPLE)
    else:
        subject, what = (
            f"{random.choice(('이것', '그것', '저것'))} ##은",
            random.choice(THINGS + SHOWN),
        )
    if random.random() < 0.2:
        return marked("is", subject, _with(what, "subject"), "아니에요 .")
    return marked(
        "is", subject, _with(_phrase(random, what, 0.3), random.choice(("is", "is", "was"))), "."
    )


def _so(random: Random) -> GoldSentence:
    """그 산은 아주 높아요; 저는 피곤해요."""
    noun = random.choice([noun for noun, found in FITTING.items() if found])
    who = random.random() < 0.4
    adjective = random.choice(FEELINGS) if who else random.choice(FITTING[noun])
    subject = (
        _subject(random, PEOPLE + ANIMALS)
        if who
        else _with(
            random.choice(("", "이 ", "그 ", "저 ")) + noun, random.choice(("topic", "subject"))
        )
    )
    form = random.choice(
        (adjective.does, adjective.does, adjective.did, f"{adjective.stem}지 않아요")
    )
    return marked(
        "so", subject, random.choice(("", "", "아주", "너무", "정말")), form, random.choice("..?")
    )


def _existence(random: Random) -> GoldSentence:
    """방에 고양이가 있어요; 집에 우유가 없어요."""
    inside = random.random() < 0.5
    what = random.choice(PEOPLE + (THINGS if inside else ANIMALS))
    return marked(
        "existence",
        f"{random.choice(ROOMS if inside else OUTSIDE)} [##에]",
        _with(_phrase(random, what), "subject"),
        random.choice(("있어요", "없어요", "있었어요", "없었어요")),
        random.choice("..?"),
    )


def _because(random: Random) -> GoldSentence:
    """소년은 배고파서 빵을 먹었어요."""
    verb = random.choice(
        [verb for verb in VERBS if verb.objects in {"food", "drinks"}] + list(GOES)
    )
    what = (
        f"{random.choice(ROOMS)} ##에"
        if verb in GOES
        else _with(random.choice(OBJECTS[verb.objects]), "object")
    )
    why = random.choice(FEELINGS).does.removesuffix("요") + "서"
    form = random.choice((verb.did, f"{verb.stem}지 않았어요"))
    return marked(
        "because", _subject(random, PEOPLE), random.choice(("", "너무")), why, what, form, "."
    )


def _all(random: Random) -> GoldSentence:
    """나는 너희 모두를 사랑해."""
    verb, whom = random.choice(FAMILIAR), random.choice(("너희", "그들", "여러분"))
    who, ending = random.choice((("나 ##는", ""), ("저 ##는", "요"), ("우리 ##는", "요")))
    return marked("all", who, whom, "모두 ##를", verb + ending, ".")


def _question(random: Random) -> GoldSentence:
    """누가 사과를 먹었어요? 민수 씨는 어디에 가요? 이것은 무엇이에요?"""
    verb = random.choice(
        [
            verb
            for verb in ACTIONS
            if verb.objects in {"food", "drinks", "writings", "goods", "tools"}
        ]
    )
    goes, who = random.choice(GOES), _subject(random, PEOPLE)
    thing = _with(random.choice(OBJECTS[verb.objects]), "object", decided=True)
    return marked(
        "question",
        random.choice(
            (
                f"누가 {thing} {verb.did}",
                f"{who} 어디 ##에 {random.choice((goes.does, goes.did))}",
                f"{who} 무엇 [##을] {random.choice((verb.does, verb.did))}",
                f"{random.choice(('이것', '그것', '저것'))} ##은 무엇 ##이에요",
                f"{who} 왜 {random.choice(STAYS).did}",
                f"{who} 언제 {random.choice(ROOMS)} ##에 {goes.did}",
            )
        ),
        "?",
    )


def _hello(random: Random) -> GoldSentence:
    """안녕하세요, 민수 씨."""
    name = random.choice(NAMES)
    return marked(
        "hello",
        random.choice(
            (
                f"{random.choice(HELLO)} , {name} 씨 .",
                f"제 이름 ##은 {name} ##예요 .",
                f"저 ##는 {name} ##예요 .",
            )
        ),
    )


KINDS: Kinds = {
    "reference": (_it, 3),
    "own": (_own, 3),
    "action": (_action, 5),
    "stay": (_stay, 1),
    "go": (_go, 1),
    "give": (_give, 1),
    "is": (_is, 1),
    "so": (_so, 1.5),
    "existence": (_existence, 1),
    "because": (_because, 1),
    "all": (_all, 0.3),
    "question": (_question, 1),
    "hello": (_hello, 0.2),
}


def _forms(verb: KoreanVerb) -> tuple[str, ...]:
    return verb.does, verb.did, verb.will, f"{verb.stem}고", f"{verb.stem}지"


_TRANSITIVE = {form for verb in VERBS + GIVES for form in _forms(verb)}


def alike() -> tuple[tuple[str, ...], ...]:
    """Pieces of the same form: nouns, names, adjectives before a noun and at the end, verbs in each form, particles."""
    nouns = (
        PEOPLE
        + ANIMALS
        + CROSSED
        + PASSED
        + OUTSIDE
        + ROOMS
        + TOWNS
        + THINGS
        + SHOWN
        + OBJECTS["subjects"]
    )
    adjectives = QUALITIES + SHAPES + FEELINGS
    return (
        tuple(dict.fromkeys(nouns)),
        NAMES,
        tuple(a.will for a in QUALITIES + SHAPES),
        tuple(a.does for a in adjectives),
        tuple(a.did for a in adjectives),
        tuple(f"{a.stem}지" for a in adjectives),
        tuple(a.because for a in FEELINGS + SHAPES),
        tuple(f"{a.does[:-1]}서" for a in FEELINGS),
        *zip(*map(_forms, VERBS + STAYS + GOES + GIVES), strict=True),
        tuple(sorted({PIECE + particle for both in PARTICLES.values() for particle in both})),
    )


def words() -> set[str]:
    """Every piece that a sentence can have, and a few forms that none has."""
    listed = (
        *SUBJECTS,
        *TIMES["did"],
        *TIMES["does"],
        *TIMES["will"],
        *HELLO,
        *FAMILIAR,
        *(f"{w}요" for w in FAMILIAR),
    )
    grammar = (
        "이 그 저 제 내 네 씨 이것 그것 저것 자기 너희 모두 누가 무엇 어디 왜 언제 이름 같이 왜냐하면 때문이에요 "
        "너무 아주 정말 안 못 있어요 있었어요 없어요 없었어요 않아요 않았어요 못했어요 거예요 아니에요 . , ?"
    )
    return {
        piece for group in (*alike(), grammar.split(), " ".join(listed).split()) for piece in group
    }
