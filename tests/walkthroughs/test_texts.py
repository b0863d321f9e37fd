"""Titles and notes of walkthroughs are data: every code has a sentence in each language."""

from __future__ import annotations

import re
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING

import pytest

from attnviz.attention import Note
from attnviz.capture.source import open_source
from attnviz.text.notes import NOTES as OF_RECORDS
from attnviz.text.notes import sentence
from attnviz.walkthroughs.examples import EXAMPLES, example, make
from attnviz.walkthroughs.texts import NOTES
from tests.walkthroughs.head_walks import walk

if TYPE_CHECKING:
    from attnviz.walkthroughs.record import Walkthrough

TESTS = Path(__file__).parents[1]
PACKAGE = TESTS.parent / "attnviz"
OWN = sorted(set(NOTES) - set(OF_RECORDS))


def everything() -> list[Note]:
    """The titles and notes of walkthroughs of every kind."""
    toy, random, seq2seq = (open_source(name) for name in ("toy", "toy-random", "toy-seq2seq"))
    walks: list[Walkthrough] = [*map(example, EXAMPLES), make(3)]
    walks += [
        walk("I love you", source, every=every)
        for source in (toy, random, seq2seq)
        for every in (True, False)
    ]
    walks += [
        walk("I love you", toy, whole_layer=True, query=query, every=query is None)
        for query in (None, 1)
    ]
    walks += [
        walk("I love you", toy, score=score, causal=causal)
        for score in ("scaled", "dot", "general", "additive")
        for causal in (True, False)
    ]
    walks += [walk("love blub " * 60, toy, truncate=True)]
    return list(dict.fromkeys(note for one in walks for note in (one.title, *one.notes)))


def test_all_that_is_told_is_told_in_korean() -> None:
    """Numbers, words and names of models stay, all else is Korean."""
    notes = everything()
    assert len(notes) > 20
    for note in notes:
        english = sentence(note, NOTES)
        korean = english.ko
        assert re.search("[가-힣]", korean), korean
        assert sorted(re.findall(r"\d+", korean)) == sorted(re.findall(r"\d+", english))
        assert not re.search(r"\b(the|and|of|is|are|it|which|layer|head|words?)\b", korean), korean


@pytest.mark.parametrize("code", OWN)
def test_nothing_is_lost(code: str) -> None:
    """Both sentences have the same holes, and no other code has the same sentence."""
    text = NOTES[code]
    holes = [{name for _, name, _, _ in Formatter().parse(one) if name} for one in (text, text.ko)]
    assert holes[0] == holes[1]
    assert re.search("[가-힣]", text.ko)
    assert [other for other in NOTES if NOTES[other] == text or NOTES[other].ko == text.ko] == [
        code
    ]


def test_a_list_and_an_unknown_code() -> None:
    """In a Korean list there is no "and"; a code of a later version is told as it is, words of a person too."""
    note = Note.of("all_taken_as_given", names="q, K", last="V")
    assert sentence(note, NOTES).startswith(
        "q, K and V are given: no single projection makes them (a norm"
    )
    assert sentence(note, NOTES).ko.startswith("q, K, V: ")
    assert sentence(Note.of("text", text="My homework"), NOTES).ko == "My homework"
    assert sentence(Note.of("later", n=3), NOTES).ko == "later, n: 3"
