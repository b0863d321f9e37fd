"""The link that every view names first: the one that a person would name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import attnviz
from attnviz.attention import Attention
from attnviz.heatmaps.finding import Finding, find, head_sentence, other_heads
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
        ("나는 너희 모두를 사랑해", "toy-ko", "사랑해", "모두"),
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
    said = (Path(__file__).parents[2] / "docs" / "heatmaps.md").read_text(encoding="utf-8")
    assert f"is named in {sum(hits)} ({np.mean(hits):.0%})" in said
    assert np.mean(hits) >= 0.9


def test_a_row_of_a_translation_is_the_step_that_chose_its_token() -> None:
    """The word that was chosen did not attend; the step before it did."""
    finding = find(attnviz.attend("I love all you", "toy-transformer"))
    assert finding is not None
    assert finding.sentence.startswith("“나는” was chosen while attending most to “I”: 96%")
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


TEN = {
    "The committee rejected the proposal because it was too expensive.": ("it", "expensive"),
    "The match was cancelled because of the heavy rain.": ("heavy", "rain"),
    "We had dinner at a small restaurant near the station.": ("small", "restaurant"),
    "Nobody knew where the old man had come from.": ("knew", "nobody"),
    "The doctor told the patient that he would be home by Friday.": ("he", "patient"),
    "She put the keys on the table and left the room.": ("room", "left"),
    "Students who study every day usually pass the exam.": ("pass", "exam"),
    "The company announced record profits in the third quarter.": ("third", "quarter"),
    "My brother plays the guitar and sings.": ("plays", "guitar"),
    "When the bus arrived, the passengers were already tired.": ("already", "tired"),
}


def test_ordinary_sentences(real_model: str) -> None:
    """Ten sentences and a real model: no link is that of a head that attends to the word before, whatever it is."""
    for sentence, words in TEN.items():
        finding = find(attnviz.attend(sentence, real_model))
        assert finding is not None
        assert finding.words == words, sentence


def test_no_link_is_named_where_there_is_none(make_record: Callable[..., Attention]) -> None:
    """Heads that attend evenly, to the token before or to one token from everywhere; a pooled record has none."""
    n = 6
    even = np.full((n, n), 1 / n)
    before = np.eye(n, k=-1)
    before[0, 0] = 1
    to_one = np.zeros((n, n))
    to_one[:, 2] = 1
    for pattern in (even, before, to_one):
        weights = pattern[None, None].astype(np.float32)
        assert find(make_record("a dog saw one grey cat", weights=weights, receipt=None)) is None
    # One word that attends to another, in a head without a rule.
    link = even * 0.9
    link[[0, 1, 2, 4, 5], [2, 4, 0, 3, 1]] += 0.1
    link[3] = np.eye(n)[1]
    named = find(
        make_record(
            "I see dogs chase grey cats", weights=link[None, None].astype(np.float32), receipt=None
        )
    )
    assert named is not None
    assert named.words == ("chase", "see")
    long = attnviz.attend("the animal crossed the street " * 9, model="toy", memory=40_000)
    assert find(long) is None


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        (
            np.eye(4, k=-1) + np.diag([1, 0, 0, 0]),
            "100% of the tokens attend most to the token before them",
        ),
        (np.eye(4), "100% of the tokens attend most to themselves"),
        (np.tile([0, 1, 0, 0], (4, 1)), "100% of the tokens attend most to “love”"),
    ],
)
def test_what_a_head_does_where_no_link_is_named(
    make_record: Callable[..., Attention], pattern: np.ndarray, sentence: str
) -> None:
    """A chosen head has a first line too: its rule of position."""
    record = make_record(
        "I love all you", weights=pattern[None, None].astype(np.float32), receipt=None
    )
    said = head_sentence(record)
    if "before" not in sentence:
        assert said == f"{sentence} (layer 0, head 0)"
    else:
        assert said == f"{sentence.replace('100', '75')} (layer 0, head 0)"


def test_other_heads_by_hand(make_record: Callable[..., Attention]) -> None:
    """Heads agree if their largest key for the word is the same; of the other layers two keys are named."""
    weights = np.full((2, 3, 4, 4), 0.25, dtype=np.float32)
    weights[0, :, 3] = [0.1, 0.7, 0.1, 0.1]
    weights[1, 0, 3] = [0.1, 0.6, 0.2, 0.1]
    weights[1, 1:, 3] = [0.1, 0.1, 0.7, 0.1]
    record = make_record("I love all you", weights=weights, receipt=None)
    finding = Finding(layer=0, head=1, query=3, key=1, weight=0.7, words=("you", "love"))
    assert other_heads(record, finding) == (
        "4 of 6 heads agree: 0.2 70%, 0.0 70%, 1.0 60%; layer 1: all"
    )
