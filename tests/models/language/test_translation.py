"""English-Korean pairs: particles, word order and gold alignments, against cases written by hand."""

from __future__ import annotations

import itertools
import unicodedata
from dataclasses import replace
from typing import Any

import pytest

from attnviz.models.language.grammar import could_be_generated, load_grammar, particle
from attnviz.models.language.sentences import Pair, parse_pair
from attnviz.models.language.vocabulary import SPECIAL, UNKNOWN, load_vocabulary
from attnviz.text.words import split_words
from tests.models.language.conftest import seeded

GRAMMAR = load_grammar("translation")

PARTICLES = (
    # topic, subject, object
    "왕은 왕이 왕을",
    "공주는 공주가 공주를",
    "왕자는 왕자가 왕자를",
    "여왕은 여왕이 여왕을",
    "선생님은 선생님이 선생님을",
    "학생은 학생이 학생을",
    "친구는 친구가 친구를",
    "동물은 동물이 동물을",
    "고양이는 고양이가 고양이를",
    "말은 말이 말을",
    "새는 새가 새를",
    "곰은 곰이 곰을",
    "길은 길이 길을",
    "다리는 다리가 다리를",
    "숲은 숲이 숲을",
    "계곡은 계곡이 계곡을",
    "사과는 사과가 사과를",
    "달걀은 달걀이 달걀을",
    "빵은 빵이 빵을",
    "케이크는 케이크가 케이크를",
    "책은 책이 책을",
    "편지는 편지가 편지를",
    "그림은 그림이 그림을",
    "노래는 노래가 노래를",
)

GOLD = {
    # English: Korean, and which English words each Korean word means, in brackets those it only goes with.
    ("clause", "i love all you"): ("나는 너희 모두를 사랑한다", "0 3 2 1"),
    ("clause", "she is eating a green apple"): ("그녀는 초록색 사과를 먹고 있다", "0 4 5(3) 2 1"),
    ("clause", "he did not see me"): ("그는 나를 보지 않았다", "0 4 3 2(1)"),
    ("clause", "we buy the bread in the park"): ("우리는 공원에서 빵을 산다", "0 6(4,5) 3(2) 1"),
    ("clause", "a king likes her"): ("왕이 그녀를 좋아한다", "1(0) 3 2"),
    ("clause", "you were eating the egg"): ("너는 달걀을 먹고 있었다", "0 4(3) 2 1"),
    ("clause", "they couldn't find all us"): ("그들은 우리 모두를 찾지 못했다", "0 4 3 2 1"),
    ("clause", "i don't see all them"): ("나는 그들 모두를 보지 않는다", "0 4 3 2 1"),
    ("clause", "she crossed a small river"): ("그녀는 작은 강을 건넜다", "0 3 4(2) 1"),
    ("is so", "the cat is big"): ("고양이는 크다", "1(0) 3(2)"),
    ("is so", "a girl is beautiful"): ("소녀가 아름답다", "1(0) 3(2)"),
    ("existence", "there is a prince"): ("왕자가 있다", "3(2) 1(0)"),
    ("existence", "is there a prince ?"): ("왕자가 있니 ?", "3(2) 0(1,4) 4"),
    ("existence", "is there a prince"): ("왕자가 있니", "3(2) 0(1)"),
    ("existence", "there is an old king"): ("오래된 왕이 있다", "3 4(2) 1(0)"),
    ("reference", "the animal didn't cross the street because it was too tired"): (
        "동물은 너무 피곤했기 때문에 길을 건너지 않았다",
        "1(0) 9 10(8) 6 5(4) 3 2",
    ),
    ("reference", "the animal didn't cross the street because it was too wide"): (
        "길이 너무 넓었기 때문에 동물은 건너지 않았다",
        "5(4,7) 9 10(8) 6 1(0) 3 2",
    ),
    ("reference", "the fox couldn't visit the lake because it was very icy"): (
        "호수가 매우 얼어붙었기 때문에 여우는 방문하지 못했다",
        "5(4,7) 9 10(8) 6 1(0) 3 2",
    ),
    ("although", "although i did not get 95 in last toefl , i could get in the ph.d program"): (
        "나는 지난 토플에서 95점을 받지 못했지만 박사 과정에 들어갈 수 있었다",
        "1(10) 7 8(6) 5 4 3(0,2) 15(14) 16(13) 12(13) 11 11",
    ),
    ("although", "although i did get 95 in last toefl , i could not get in the ph.d program"): (
        "나는 지난 토플에서 95점을 받았지만 박사 과정에 들어갈 수 없었다",
        "1(9) 6 7(5) 4 3(0,2) 15(14) 16(13) 12(13) 10 11(10)",
    ),
    (
        "although",
        "although she did get 70 in this exam , she could not stay in the summer school",
    ): (
        "그녀는 이번 고사에서 70점을 받았지만 여름 학교에 머물 수 없었다",
        "1(9) 6 7(5) 4 3(0,2) 15(14) 16(13) 12(13) 10 11(10)",
    ),
}

MISSION = (
    "I love all you",
    "She is eating a green apple",
    "Although I did not get 95 in last TOEFL, I could get in the Ph.D program.",
    "Although I did get 95 in last TOEFL, I could not get in the Ph.D program.",
    "There is a prince",
    "Is there a prince",
    "The animal didn't cross the street because it was too tired.",
    "The animal didn't cross the street because it was too wide.",
)


NEWCOMERS = (
    "The cat sat on the mat",
    "The dog is barking",
    "The bird is singing in the tree",
    "My name is Anna.",
    "I am a student",
    "I am hungry",
    "Hello, Tom!",
    "What is this?",
    "My dog likes your cat.",
    "Kim went to school yesterday",
    "The boy is playing with a red ball",
    "We watched a movie together last night",
    "She reads a book every day",
    "The sun is shining today",
    "I want to go home",
    "He can speak English very well",
)
"""What people type first; the encoder and the decoder know every word."""


def pair(random: Any, clauses: int | None = None) -> Pair:
    """A pair from the grammar."""
    return parse_pair(GRAMMAR.pair(random, clauses))


def find(kind: str, english: str) -> Pair:
    """The pair of an English sentence, made over and over, of few other words, until it comes up."""
    own = set(english.split())

    def keep(words: list[dict[str, Any]]) -> list[dict[str, Any]]:
        named = [
            word for word in words if own & {form for form in word.values() if type(form) is str}
        ]
        return [
            word | {"objects": keep(word["objects"])} if "objects" in word else word
            for word in named or words[:1]
        ]

    words = {
        name: keep(group) if isinstance(group, list) else group
        for name, group in GRAMMAR.words.items()
    }
    rules = GRAMMAR.rules | {"kinds": {kind: 1}, "clauses": {1: 1}}
    grammar, random = replace(GRAMMAR, words=words, rules=rules), seeded(0)
    for _ in range(20_000):
        english_text, korean, alignment = grammar.pair(random).split("\t")
        if english_text == english:
            return parse_pair("\t".join((english_text, korean, alignment)))
    raise AssertionError(f"never made: {english}")


def gold(told: str) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """Sure and possible links, read from "1(0) 3": Korean word 0 means English word 1 and goes with 0."""
    sure, possible = set(), set()
    for row, entry in enumerate(told.split()):
        means, _, goes_with = entry.rstrip(")").partition("(")
        sure |= {(row, int(means))} if means else set()
        possible |= {(row, int(place)) for place in goes_with.split(",") if place}
    return sure, sure | possible


class TestParticles:
    """은/는, 이/가, 을/를 by the final consonant."""

    @pytest.mark.parametrize("forms", PARTICLES)
    def test_of_a_noun(self, forms: str) -> None:
        topic, subject, object_ = forms.split()
        noun = topic[:-1]
        found = [noun + particle(noun, role) for role in ("topic", "subject", "object")]
        assert found == [topic, subject, object_]


class TestAlignment:
    """Which Korean word comes from which English word."""

    @pytest.mark.parametrize(("kind", "english"), GOLD)
    def test_is_the_one_written_by_hand(self, kind: str, english: str) -> None:
        """Translation, sure links and possible links, word by word."""
        translation, told = GOLD[kind, english]
        found = find(kind, english)
        assert found.korean == tuple(translation.split())
        assert (set(found.sure), set(found.possible)) == gold(told)

    def test_crosses(self) -> None:
        """In "I love all you", the words "all" and "you" change places and the verb goes last: 3 crossings."""
        sure = find("clause", "i love all you").sure
        crossing = [(a, b) for a, b in itertools.combinations(sorted(sure), 2) if a[1] > b[1]]
        assert crossing == [((1, 3), (2, 2)), ((1, 3), (3, 1)), ((2, 2), (3, 1))]


@pytest.fixture(scope="module")
def many() -> list[Pair]:
    """9,600 pairs, some of several clauses."""
    random = seeded(1)
    return [pair(random) for _ in range(9000)] + [
        pair(random, n) for n in (2, 3) for _ in range(300)
    ]


WORDS = GRAMMAR.words
LIVING = [word["korean"] for word in WORDS["people"] + WORDS["animals"]]


class TestEveryPair:
    """Properties of all generated pairs."""

    def test_words_are_in_the_vocabularies(self, many: list[Pair]) -> None:
        """No sentence has a word without a number, and no number is that of a word that never comes up."""
        special = set(SPECIAL)
        assert {word for found in many for word in found.english} == set(
            load_vocabulary("source").words
        ) - special
        assert {word for found in many for word in found.korean} == set(
            load_vocabulary("target").words
        ) - special

    def test_links_are_inside_the_sentences(self, many: list[Pair]) -> None:
        """Each sure link is possible, each link leads from a word to a word, each Korean word has a link."""
        for found in many:
            assert found.sure <= found.possible
            assert {row for row, _ in found.possible} == set(range(len(found.korean)))
            assert {column for _, column in found.possible} <= set(range(len(found.english)))

    def test_english_words_are_accounted_for(self, many: list[Pair]) -> None:
        """Each English word goes with a Korean one, but the comma, and "it" where Korean leaves it out."""
        for found in many:
            linked = {column for _, column in found.possible}
            assert [found.english[i] for i in range(len(found.english)) if i not in linked] in (
                [],
                [","],
                ["it"],
            )

    def test_the_verb_is_last(self, many: list[Pair]) -> None:
        """A Korean sentence ends in a verb, an adjective that says so, or an auxiliary."""
        last = {form for verb in WORDS["verbs"] for form in (verb["present"], verb["did"])}
        last |= {adjective["end"] for adjective in WORDS["qualities"]}
        last |= {"있다", "있니", "않는다", "않았다", "못했다", "있었다", "없었다"}
        for found in many:
            words = [word for word in found.korean if word not in {".", "?"}]
            assert words[-1] in last

    def test_particles_agree_with_their_nouns(self, many: list[Pair]) -> None:
        """Whatever word bears 은, 이 or 을 ends in a consonant before it; 는, 가 or 를 never follows one."""
        nouns = set(LIVING) | {noun["korean"] for noun in WORDS["places"] + WORDS["food"]}
        seen = set()
        for found in many:
            for word in found.korean:
                if word[:-1] in nouns and word[-1] in "은는이가을를":
                    seen.add(word[-1])
                    is_closed = len(unicodedata.normalize("NFD", word[-2])) == 3
                    assert is_closed == (word[-1] in "은이을")
        assert seen == set("은는이가을를")


class TestVocabulary:
    """Words and numbers."""

    @pytest.mark.parametrize("sentence", MISSION + NEWCOMERS)
    def test_knows_the_missions_sentences(self, sentence: str) -> None:
        """As a person types them, capitals and all."""
        words = [sentence[start:end] for start, end in split_words(sentence)]
        if sentence not in NEWCOMERS:
            assert [word for word in words if not load_vocabulary("source").knows(word)] == []
        english = load_vocabulary("english")
        assert [word for word in words if not english.knows(word)] == []
        assert UNKNOWN not in english.decode(english.encode(words))
        assert [word.lower() for word in words] == list(english.decode(english.encode(words)))

    def test_unknown_words(self) -> None:
        """A stranger has the number of the unknown, in both languages."""
        for words in (load_vocabulary("english"), load_vocabulary("target")):
            assert words.encode(["xylophone", "실로폰", ""]) == [1, 1, 1]
            assert not words.knows("xylophone")
            assert words.decode([0, 1, 2, 3, 4]) == SPECIAL


class TestConstruction:
    """Whether a sentence could have come up, told by how it is built."""

    def test_all_that_come_up(self) -> None:
        """Each sentence that is made is built like one that can be made."""
        random = seeded(11)
        for number in range(4_000):
            found = pair(random, (None, 1, 2, 3)[number % 4])
            assert could_be_generated(found.english), found.english

    @pytest.mark.parametrize(
        "sentence",
        [
            "i am a student",
            "i love",
            "a king",
            "i am very tired",
            "where is the cat ?",
            "she gave me a book",
            "the prince who loves her is big",
            "i like it",
            "the <unknown> is a student",
            "in the park i love you",
            "i love you and i love you and i love you and i love you",
            "because i love you he likes me",
            ". i love you",
        ],
    )
    def test_none_that_does(self, sentence: str) -> None:
        """Sentences of another construction never come up."""
        assert not could_be_generated(sentence.split())
