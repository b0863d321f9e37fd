"""Training, validation and test sentences, and some of them as a corpus."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, get_args

import pytest

from attnviz.models.language import splits
from attnviz.models.language.grammar import load_grammar
from attnviz.models.language.sentences import parse_pair, parse_sentence
from attnviz.models.language.splits import Split, corpus_lines
from attnviz.models.language.vocabulary import PIECE
from attnviz.text.corpus import AGREEMENT, COREFERENCE, CorpusLine
from attnviz.text.words import split_words


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
