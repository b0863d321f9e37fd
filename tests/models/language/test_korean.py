"""Polite Korean sentences: particles by final consonants, facts by particles, every piece with a number."""

from __future__ import annotations

import re
import unicodedata

import pytest

from attnviz.models.language.grammar import load_grammar
from attnviz.models.language.sentences import GoldSentence, parse_sentence
from attnviz.models.language.vocabulary import PIECE, load_vocabulary
from tests.models.language.conftest import seeded

GRAMMAR = load_grammar("korean")
VOCABULARY = load_vocabulary("korean")
WITH_FINAL, WITHOUT = (
    {"은", "이", "을", "과", "이에요", "이었어요"},
    {"는", "가", "를", "와", "예요", "였어요"},
)


@pytest.fixture(scope="module")
def many() -> list[GoldSentence]:
    """Four thousand sentences."""
    random = seeded(1)
    return [parse_sentence(GRAMMAR.sentence(random)) for _ in range(4_000)]


def test_particles_fit_the_last_sound_of_their_nouns(many: list[GoldSentence]) -> None:
    """By the letters that a syllable is made of: U+11A8 and above are final consonants."""
    seen = set()
    for sentence in many:
        for noun, piece in zip(sentence.words, sentence.words[1:], strict=False):
            particle = piece.removeprefix(PIECE)
            if piece.startswith(PIECE) and particle in WITH_FINAL | WITHOUT | {"으로", "로"}:
                last = unicodedata.normalize("NFD", noun)[-1]
                closed = last >= "\u11a8" and not (particle == "로" and last == "\u11af")
                assert (particle in WITH_FINAL | {"으로"}) == closed, sentence.words
                seen.add(particle)
    assert seen == WITH_FINAL | WITHOUT | {"으로", "로"}


def test_who_is_meant(many: list[GoldSentence]) -> None:
    """자기 is whoever bears 이 or 가; 그것 is the animal that was tired, or the place that was wide."""
    feelings = {adjective["reason"] for adjective in GRAMMAR.words["feelings"]}
    animals = {noun["word"] for noun in GRAMMAR.words["animals"]}
    for sentence in many:
        found = sentence.reference
        if sentence.kind == "own":
            assert found is not None
            assert sentence.words[found.pronoun] == "자기"
            assert sentence.words[found.noun + 1] in {"##이", "##가"}
            assert sentence.words[found.other + 1] in {"##을", "##를"}
        elif sentence.kind == "reference":
            assert found is not None
            assert sentence.words[found.pronoun] == "그것"
            lives = sentence.words[found.pronoun + 3] in feelings
            assert (sentence.words[found.noun] in animals) == lives
            assert (sentence.words[found.other] in animals) != lives
        else:
            assert found is None


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("own", "공주 ##를 왕자 ##가 자기 방 ##에서 만났어요 ."),
        ("hello", "안녕하세요 , 민수 씨 ."),
        ("all", "나 ##는 너희 모두 ##를 사랑해 ."),
    ],
)
def test_the_sentences_of_a_lecture(kind: str, sentence: str) -> None:
    """They come up, or are made of the words that do."""
    words = set(VOCABULARY.words)
    assert set(sentence.split()) <= words
    shapes = {
        re.sub("[가-힣]+", "x", " ".join(made.words))
        for made in (parse_sentence(GRAMMAR.sentence(seeded(n), kind)) for n in range(800))
    }
    assert re.sub("[가-힣]+", "x", sentence) in shapes


@pytest.mark.parametrize(
    "pieces",
    [
        "고양이 ##가",
        "고양이",
        "학교 ##에서",
        "도로",
        "서울 ##로",
        "먹었어요",
        "쿼카가",
        "제 ##가",
        "교수님 ##은",
    ],
)
def test_a_particle_is_a_piece_of_its_own(pieces: str) -> None:
    """Where the noun is known; what stands in the vocabulary whole stays whole."""
    assert VOCABULARY.pieces(pieces.replace(f" {PIECE}", "")) == tuple(pieces.split())
