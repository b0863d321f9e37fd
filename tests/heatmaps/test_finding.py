"""The link that every view names first: the one that a person would name."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import attnviz
from attnviz.attention import Attention
from attnviz.heatmaps.finding import find
from attnviz.stories.lessons.reference import FRAMES, NOUNS

TIRED = "The animal didn't cross the street because it was too tired."


@pytest.mark.parametrize(
    ("sentence", "model", "query", "key"),
    [
        (TIRED, "toy", "it", "animal"),
        (TIRED.replace("tired", "wide"), "toy", "it", "street"),
        ("The monkey ate the apple because it was hungry.", "toy", "it", "monkey"),
        ("She is eating a green apple", "toy", "green", "apple"),
        ("왕자는 자기 말을 사랑해요.", "toy-ko", "자기", "왕자"),
        ("동물은 길을 건너지 않았다. 그것은 너무 피곤했기 때문이다.", "toy-ko", "그것", "동물"),
        ("나는 너희 모두를 사랑해", "toy-ko", "너희", "모두"),
        ("I love all you", "toy-transformer", "나는", "I"),
    ],
)
def test_the_link_that_a_person_would_name(sentence: str, model: str, query: str, key: str) -> None:
    """On the sentences of the course, and it is the largest weight of its row."""
    record = attnviz.attend(sentence, model)
    finding = find(record)
    assert finding is not None
    assert finding.words == (query, key)
    row = record[finding.layer, finding.head][finding.query]
    assert finding.weight == row.max() == row[finding.key]


def test_what_it_refers_to() -> None:
    """In 84 sentences of 14 other constructions, the noun that "it" refers to is named first in at least 90%."""
    named = [
        find(attnviz.attend(frame.format(living=living, place=place, end=end), "toy"))
        for frame in FRAMES
        for living, place, *ends in NOUNS
        for end in ends
    ]
    nouns = [noun for _ in FRAMES for living, place, *_ends in NOUNS for noun in (living, place)]
    hits = [
        finding is not None and [word.lower() for word in finding.words] == ["it", noun]
        for finding, noun in zip(named, nouns, strict=True)
    ]
    assert len(hits) == 84
    assert np.mean(hits) >= 0.9


def test_a_row_of_a_translation_is_the_step_that_chose_its_token() -> None:
    """The word that was chosen did not attend; the step before it did."""
    finding = find(attnviz.attend("I love all you", "toy-transformer"))
    assert finding is not None
    assert finding.sentence.startswith("“나는” was chosen while attending most to “I” (96%)")
    encoder = find(attnviz.attend("I love all you", "toy-transformer", kind="encoder"))
    assert encoder is not None
    assert " attends most to " in encoder.sentence


def test_pieces_punctuation_and_special_tokens_are_not_named(real_model: str) -> None:
    """Where there are words to name; a word's own pieces are no link."""
    record = attnviz.attend("Unbelievably, the toefl frightens photographers.", real_model)
    finding = find(record)
    assert finding is not None
    tokens = [record.query_tokens[finding.query], record.key_tokens[finding.key]]
    assert tokens[0].word != tokens[1].word
    assert not any(token.special or token.text in {",", ".", "the"} for token in tokens)


def test_any_record_has_an_answer(make_record: Callable[..., Attention]) -> None:
    """Function words alone, a single token, numbers in the place of words; a pooled record has none."""
    for words in ("the of and", "[CLS] [SEP]", "0 1 2", ". , !"):
        record = make_record(words)
        finding = find(record)
        assert finding is not None
        row = record[finding.layer, finding.head][finding.query]
        assert finding.weight == row.max()
    long = attnviz.attend("the animal crossed the street " * 9, model="toy", memory=40_000)
    assert find(long) is None
