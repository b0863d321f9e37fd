"""The small language: its sentences, which must never change, its words, its splits, and some of it as a corpus."""

from __future__ import annotations

import functools
import hashlib
import itertools
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, get_args

import jaxtyping
import pytest

from attnviz.models.language import splits
from attnviz.models.language.grammar import load_grammar, particle
from attnviz.models.language.sentences import Reference, parse_pair, parse_sentence
from attnviz.models.language.splits import Split, corpus_lines
from attnviz.models.language.vocabulary import PIECE, SPECIAL, UNKNOWN, load_vocabulary
from attnviz.text.corpus import AGREEMENT, COREFERENCE, CorpusLine
from attnviz.text.words import split_words

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module", autouse=True)
def unchecked() -> Iterator[None]:
    """Without the shape checks: there are no shapes here, and tens of thousands of sentences."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jaxtyping.config, "jaxtyping_disable", True)
        yield


DIGESTS = {
    "english": "9d04ba38e1f6e536",
    "korean": "aa97e465182f0153",
    "translation": "6d626ba8c23ab9d6",
}
"""Of the lines that each grammar makes here: the shipped models were trained on these very sentences."""

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


@functools.cache
def made(name: str) -> list[str]:
    """Lines of a grammar: 10,000 or more as they come, and hundreds of each kind or number of clauses."""
    grammar, random = load_grammar(name), Random(f"pinned {name}")
    if name == "translation":
        lines = [grammar.pair(random) for _ in range(10_000)]
        return lines + [grammar.pair(random, n) for n in (2, 3) for _ in range(300)]
    lines = [grammar.sentence(random) for _ in range(20_000)]
    return lines + [
        grammar.sentence(random, kind) for kind in grammar.rules["kinds"] for _ in range(400)
    ]


@pytest.mark.parametrize("name", DIGESTS)
def test_sentences_stay_the_same(name: str) -> None:
    """The same words, marks, references, links and alignments; each of them can be read."""
    lines = made(name)
    assert hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16] == DIGESTS[name]
    for line in lines:
        if name == "translation":
            pair = parse_pair(line)
            assert pair.sure <= pair.possible
            assert {row for row, _ in pair.possible} == set(range(len(pair.korean)))
        else:
            sentence = parse_sentence(line)
            assert max(sentence.decided, default=0) < len(sentence.words)


@pytest.mark.parametrize("name", ["english", "korean", "source", "target"])
def test_words_are_in_the_vocabulary(name: str) -> None:
    """No sentence has a word without a number, and no number is that of a word that never comes up."""
    if name in {"source", "target"}:
        pairs = map(parse_pair, made("translation"))
        said = {word for p in pairs for word in (p.english if name == "source" else p.korean)}
    else:
        said = {word for line in made(name) for word in parse_sentence(line).words}
    words = set(load_vocabulary(name).words) - set(SPECIAL)
    assert said <= words
    assert said == words or name == "korean"  # a lecture's words beside those that come up


@pytest.mark.parametrize(("last", "noun", "other"), [("tired", 1, 5), ("wide", 5, 1)])
def test_the_animal_and_the_street(last: str, noun: int, other: int) -> None:
    """The last word decides what "it" stands for; the words in brackets are decided by the grammar."""
    line = (
        "reference\tthe animal/animal didn't cross the street/place [because] [it/it] [was] too "
        f"{last} .\tit {'animal place' if last == 'tired' else 'place animal'}\t"
    )
    sentence = parse_sentence(line)
    assert sentence.reference == Reference(pronoun=7, noun=noun, other=other)
    assert sentence.decided == {6, 7, 8}


@pytest.mark.parametrize(
    "forms",
    [
        "왕은 왕이 왕을 왕으로",
        "공주는 공주가 공주를 공주로",
        "말은 말이 말을 말로",
        "선생님은 선생님이 선생님을 선생님으로",
        "케이크는 케이크가 케이크를 케이크로",
    ],
)
def test_particles(forms: str) -> None:
    """은/는, 이/가, 을/를, 으로/로 by the final consonant."""
    noun = forms.split()[0][:-1]
    roles = ("topic", "subject", "object", "to")
    assert [noun + particle(noun, role) for role in roles] == forms.split()


@pytest.mark.parametrize(
    "pieces", ["고양이 ##가", "고양이", "학교 ##에서", "도로", "서울 ##로", "먹었어요", "쿼카가"]
)
def test_a_particle_is_a_piece_of_its_own(pieces: str) -> None:
    """Where the noun is known; what stands in the vocabulary whole stays whole."""
    whole = pieces.replace(f" {PIECE}", "")
    assert load_vocabulary("korean").pieces(whole) == tuple(pieces.split())


@pytest.mark.parametrize("sentence", MISSION + NEWCOMERS)
def test_knows_the_missions_sentences(sentence: str) -> None:
    """As a person types them, capitals and all."""
    words = [sentence[start:end] for start, end in split_words(sentence)]
    if sentence not in NEWCOMERS:
        assert [word for word in words if not load_vocabulary("source").knows(word)] == []
    english = load_vocabulary("english")
    assert [word for word in words if not english.knows(word)] == []
    assert UNKNOWN not in english.decode(english.encode(words))
    assert [word.lower() for word in words] == list(english.decode(english.encode(words)))


def test_unknown_words() -> None:
    """A stranger has the number of the unknown, in both languages."""
    for words in (load_vocabulary("english"), load_vocabulary("target")):
        assert words.encode(["xylophone", "실로폰", ""]) == [1, 1, 1]
        assert not words.knows("xylophone")
        assert words.decode([0, 1, 2, 3, 4]) == SPECIAL


def linked(line: CorpusLine) -> list[tuple[str, str, str]]:
    """The words of each link as they stand in the text."""
    said = line.annotated
    assert said is not None
    return [
        (
            line.text[slice(*said.words[link.query])],
            line.text[slice(*said.words[link.key])],
            link.relation,
        )
        for link in said.links
    ]


class TestCorpus:
    """Lines are as those of a file, each once."""

    @pytest.mark.parametrize(
        ("kind", "link"),
        [
            ("copula", ("is", "child", AGREEMENT)),  # the child near the markets is important .
            ("reflexive", ("herself", "queen", COREFERENCE)),  # the smart queen sees herself .
            ("reference", ("it", "lake", COREFERENCE)),  # ... the lake because it was too long .
        ],
    )
    def test_links(self, kind: str, link: tuple[str, str, str]) -> None:
        """Links connect words that belong together."""
        assert linked(corpus_lines(1, kind=kind)[0]) == [link]

    def test_words_are_where_attnviz_sees_them(self) -> None:
        for line in corpus_lines(60):
            assert line.annotated is not None
            assert split_words(line.text) == list(line.annotated.words)

    def test_each_sentence_once_and_numbered(self) -> None:
        lines = corpus_lines(80)
        assert len({line.text for line in lines}) == 80
        assert [line.number for line in lines] == list(range(1, 81))
        relations = {relation for line in lines for _, _, relation in linked(line)}
        assert relations == {COREFERENCE, AGREEMENT}


class TestSplits:
    """Training, validation and test."""

    @pytest.mark.parametrize("corpus", ["english", "korean", "pairs"])
    def test_share_nothing(self, corpus: Any) -> None:
        """Of 300 sentences each, no two splits share one, nor one with other articles or particles only."""
        light, seen = {"the", "a", "an", "two", ".", "?"}, []
        for split in get_args(Split):
            if corpus == "pairs":
                made = (pair.english for pair in splits.pairs(split))
            else:
                made = (one.words for one in splits.sentences(split, language=corpus))
            seen.append(
                {
                    tuple(word for word in words if word not in light and word[:2] != PIECE)
                    for words in itertools.islice(made, 300)
                }
            )
        assert min(map(len, seen)) > 150
        for one, other in itertools.combinations(seen, 2):
            assert one.isdisjoint(other)

    @pytest.mark.parametrize(
        "path", sorted(splits.HELD_OUT.glob("*.txt")), ids=lambda path: path.stem
    )
    def test_what_is_shipped_is_what_the_grammar_makes(
        self, path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """The sentences in the files are the first of their seed, so that the files can be read instead."""
        monkeypatch.setattr(splits, "HELD_OUT", tmp_path)
        language, *kind, split = path.stem.split("-")
        lines = path.read_text("utf-8").splitlines()[:200]
        if split == "endings":
            form = "word" if language == "english" else "reason"
            words = load_grammar(language).words
            expected = [[word[form] for word in words[group]] for group in ("feelings", "shapes")]
            assert [line.split() for line in lines] == expected
        elif language == "pairs":
            made = splits.pairs(split)  # type: ignore[arg-type]
            assert [parse_pair(line) for line in lines] == list(itertools.islice(made, len(lines)))
        else:
            found = splits.sentences(split, 0, kind[0] if kind else None, language)  # type: ignore[arg-type]
            assert [*map(parse_sentence, lines)] == list(itertools.islice(found, len(lines)))

    def test_after_what_is_shipped_come_others(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """As if all of them were made by the grammar."""
        n = 510
        shipped = list(itertools.islice(splits.sentences("test", kind="reference"), n))
        monkeypatch.setattr(splits, "HELD_OUT", tmp_path)
        assert shipped == list(itertools.islice(splits.sentences("test", kind="reference"), n))
