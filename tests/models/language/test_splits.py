"""The home-built language as a corpus: which words belong together, held against the words themselves."""

from __future__ import annotations

import pytest

from attnviz.models.language import english, lexicon, splits
from attnviz.models.language.splits import corpus_lines, line_of
from attnviz.text.corpus import AGREEMENT, COREFERENCE, CorpusLine
from attnviz.text.words import split_words
from tests.models.language.conftest import seeded

SELVES = {"himself", "herself", "themselves"}
NOUNS = {
    form
    for noun in lexicon.PEOPLE + lexicon.ANIMALS + lexicon.PLACES
    for form in (noun.one, noun.many)
}
MANY = {noun.many for noun in lexicon.PEOPLE + lexicon.ANIMALS}

BEFORE = [
    "we ask the young babies .",
    "are there three shirts ?",
    "although we did get 95 in this toefl , we could not get in the ph.d program .",
    "the players are old .",
]
"""The first sentences of a seed."""


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


class TestLinks:
    """What is said to belong together does."""

    @pytest.mark.parametrize("kind", ["reference", "copula", "reflexive"])
    def test_of_each_kind(self, kind: str) -> None:
        for line in corpus_lines(20, kind=kind):
            words = line.text.split()
            ((one, other, relation),) = linked(line)
            assert relation == (AGREEMENT if kind == "copula" else COREFERENCE)
            assert other == words[1] or kind != "copula"  # not what it is near
            if kind == "reference":
                assert (one, other in NOUNS) == ("it", True)
                lives = words[words.index("it") + 3] in {
                    adjective.english for adjective in lexicon.FEELINGS
                }
                assert lives == (other in {noun.one for noun in lexicon.ANIMALS})
            elif kind == "copula":
                assert one == ("are" if other in MANY else "is")
            else:
                assert one in SELVES
                assert (one == "themselves") == (other in MANY)
                assert words.index(one) == words.index(other) + 2

    def test_other_sentences_have_none(self) -> None:
        for kind in english.KINDS:
            links = english.generate(seeded(3), kind).links
            assert bool(links) == (kind in {"copula", "reflexive"})

    def test_the_sentences_are_what_they_were(self) -> None:
        """Facts about a sentence draw no random number: the models were trained on these very sentences."""
        made = [
            " ".join(english.generate(random).words) for random in [seeded(7)] for _ in range(4)
        ]
        assert made == BEFORE


class TestCorpus:
    """Lines are as those of a file, each once."""

    def test_words_are_where_attnviz_sees_them(self) -> None:
        for line in corpus_lines(60):
            assert line.annotated is not None
            assert split_words(line.text) == list(line.annotated.words)

    def test_each_sentence_once_and_numbered(self) -> None:
        lines = corpus_lines(80)
        assert len({line.text for line in lines}) == 80
        assert [line.number for line in lines] == list(range(1, 81))
        assert {relation for line in lines for _, _, relation in linked(line)} == {
            COREFERENCE,
            AGREEMENT,
        }

    def test_they_are_of_their_split(self) -> None:
        assert all(splits.split_of(line.text.split()) == "test" for line in corpus_lines(20))

    def test_they_are_the_same_each_time(self) -> None:
        assert corpus_lines(5) == corpus_lines(5)

    def test_a_sentence_of_which_nothing_is_known(self) -> None:
        line = line_of(english.generate(seeded(1), "all"))
        assert line.annotated is not None
        assert (line.number, line.annotated.links) == (1, ())

    def test_too_few(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(splits, "MOST_DRAWN", 2)
        with pytest.raises(ValueError, match="only 0 such sentences among 8, not 4"):
            corpus_lines(4, kind="all")
