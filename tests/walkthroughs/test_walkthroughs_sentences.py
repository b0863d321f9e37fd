"""The sentences of walkthroughs in Korean: each that is written anywhere is known, and keeps what it holds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from attnviz.capture.source import open_source
from attnviz.walkthroughs.capture.walks import walk
from attnviz.walkthroughs.examples import EXAMPLES, example
from attnviz.walkthroughs.exercise import make
from attnviz.walkthroughs.sentences import KOREAN, translated
from tests.walkthroughs.noted import noted

if TYPE_CHECKING:
    from attnviz.walkthroughs.record import Walkthrough


def all_said() -> list[str]:
    """What the walkthroughs say that attnviz makes: titles and notes."""
    toy, random, seq2seq = (open_source(name) for name in ("toy", "toy-random", "toy-seq2seq"))
    walks: list[Walkthrough] = [*map(example, EXAMPLES), make(3)]
    walks += [walk("I love you", source, every=every) for source in (toy, random, seq2seq) for every in (True, False)]
    walks += [walk("I love you", toy, whole_layer=True, query=query, every=query is None) for query in (None, 1)]
    walks += [
        walk("I love you", toy, score=score, causal=causal)
        for score in ("scaled_dot", "dot", "general", "additive")
        for causal in (True, False)
    ]
    walks += [walk("love blub " * 60, toy, truncate=True)]
    return list(dict.fromkeys(said for one in walks for said in (one.title, *one.notes)))


def test_all_that_is_said_is_known_in_korean() -> None:
    """Numbers, words and names of models stay, all else is Korean."""
    found = all_said()
    assert len(found) > 20
    for sentence in found:
        korean = translated(sentence, "ko")
        assert re.search("[가-힣]", korean), sentence
        assert sorted(re.findall(r"\d+", korean)) == sorted(re.findall(r"\d+", sentence))
        assert not re.search(r"\b(the|and|of|is|are|it|which|layer|head|words?)\b", korean), korean
        assert translated(sentence, "en") == sentence


def test_every_note_that_is_written_has_korean() -> None:
    """Also those that no model at hand gives: their wording is found among the sentences."""
    found = noted()
    beginnings = {parts[0] for parts in found}
    assert {"no single map makes ", "not the model's own way: ", "small whole numbers, drawn from seed "} <= beginnings
    for parts in found:
        wording = ".+".join(map(re.escape, parts))
        known = any(re.search(wording, english) for english in KOREAN)
        assert known or re.search("[가-힣]", translated("".join(parts), "ko")), parts


@pytest.mark.parametrize("english", KOREAN)
def test_nothing_is_lost(english: str) -> None:
    """Each sentence has the same holes in both languages, and is found by its own wording and no other's."""
    korean = KOREAN[english]
    names = re.findall(r"\{(\w+)\}", english)
    assert sorted(set(re.findall(r"\{(\w+)\}", korean))) == sorted(set(names))
    values = {name: f"<{name}>" for name in names}
    assert translated(english.format(**values), "ko") == korean.format(**values)
    assert re.search("[가-힣]", korean)


def test_a_list_and_an_unknown_sentence() -> None:
    """In a list there is no "and"; what a person wrote stays as it is."""
    said = "no single map makes q, K and V (rotary positions, or a scaling, may come after it): they are taken as "
    assert translated(said + "attention was given them", "ko").startswith("q, K, V: ")
    assert translated("My homework", "ko") == "My homework"
