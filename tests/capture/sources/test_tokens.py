"""Labels of tokens for each kind of vocabulary."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from attnviz.attention import Note
from attnviz.capture.attend import attend
from attnviz.text.notes import sentence

if TYPE_CHECKING:
    from attnviz.attention import Token
    from tests.fixtures.zoo import Zoo


def tokens_of(zoo: Zoo, name: str, text: str) -> list[Token]:
    """The tokens of a text, without those that the tokenizer added."""
    return [token for token in attend(text, zoo.source(name)).query_tokens if not token.special]


def shown(zoo: Zoo, name: str, text: str) -> list[str]:
    """The labels of the tokens of a text."""
    return [token.text for token in tokens_of(zoo, name, text)]


class TestWordPiece:
    """DistilBERT's vocabulary: ``##`` continues a word, accents are dropped, syllables taken apart."""

    def test_pieces(self, zoo: Zoo) -> None:
        """A piece that continues a word has a dot for its mark."""
        assert shown(zoo, "distilbert", "unhappily tokenized") == [
            "un",
            "·ha",
            "·pp",
            "·ily",
            "token",
            "·ized",
        ]
        assert [token.word for token in tokens_of(zoo, "distilbert", "unhappily tokenized")] == [
            0,
            0,
            0,
            0,
            1,
            1,
        ]

    def test_contraction(self, zoo: Zoo) -> None:
        """Pieces of "didn't" belong to one word, and show that they do."""
        assert shown(zoo, "distilbert", "didn't") == ["didn", "·'", "·t"]

    def test_jamo(self, zoo: Zoo) -> None:
        """Korean letters are shown in the form that fonts draw alone, not as empty boxes."""
        assert shown(zoo, "distilbert", "사랑") == ["ㅅ", "·ㅏ", "·ㄹ", "·ㅏ", "·ㅇ"]

    def test_unknown(self, zoo: Zoo) -> None:
        """An unknown word is shown with the token that the model reads."""
        assert shown(zoo, "distilbert", "I 🙂 you") == ["i", "🙂→[UNK]", "you"]

    def test_han(self, zoo: Zoo) -> None:
        """Chinese characters are tokens and words of their own."""
        assert shown(zoo, "distilbert", "我们") == ["我", "们→[UNK]"]
        assert [token.word for token in tokens_of(zoo, "distilbert", "我们")] == [0, 1]


@pytest.mark.parametrize("name", ["gpt2", "roberta"])
class TestByteLevel:
    """Bytes as letters, ``Ġ`` for a space."""

    def test_spaces(self, zoo: Zoo, name: str) -> None:
        """The mark of a space is no part of the label; more spaces than one are seen."""
        assert shown(zoo, name, "I love all you") == ["I", "love", "all", "you"]
        assert shown(zoo, name, "I  love\nyou") == ["I", "␣", "love", "\\n", "you"]

    def test_broken_syllables(self, zoo: Zoo, name: str) -> None:
        """A character in several tokens is shown in each, with the number of its part."""
        assert shown(zoo, name, "I 너") == ["I", "␣", "너 1/3", "너 2/3", "너 3/3"]
        assert shown(zoo, name, "🙂🙂") == [f"🙂 {part}/4" for part in (1, 2, 3, 4)] * 2


class TestByteFallback:
    """``▁`` for a space, ``<0xED>`` for a byte that stands for itself."""

    def test_spaces(self, zoo: Zoo) -> None:
        """The mark of a space is no part of the label."""
        assert shown(zoo, "llama", "I love all you") == ["I", "love", "all", "you"]
        assert shown(zoo, "llama", "I  love") == ["I", "␣", "love"]

    def test_bytes(self, zoo: Zoo) -> None:
        """Bytes of one character are shown as its parts; those of a whole one as it is."""
        assert shown(zoo, "llama", "사랑해") == ["사랑해"]
        assert shown(zoo, "llama", "I 한🙂") == [
            "I",
            "␣",
            "한 1/3",
            "한 2/3",
            "한 3/3",
            "🙂 1/4",
            "🙂 2/4",
            "🙂 3/4",
            "🙂 4/4",
        ]
        assert [token.piece for token in tokens_of(zoo, "llama", "I 한")] == [
            "▁I",
            "▁",
            "<0xED>",
            "<0x95>",
            "<0x9C>",
        ]
        assert shown(zoo, "llama", "I\nI") == ["I", "\\n", "I"]


class TestKorean:
    """A vocabulary without whole Korean syllables."""

    @pytest.mark.parametrize(
        ("name", "text", "note"),
        [
            ("distilbert", "I 사랑", Note.of("syllables_broken", syllable="사", n=2)),
            ("gpt2", "나는 너희", Note.of("syllables_broken", syllable="너", n=3)),
            ("t5", "나", Note.of("syllables_broken", syllable="나", n=3)),
        ],
    )
    def test_broken(self, zoo: Zoo, name: str, text: str, note: Note) -> None:
        """The first syllable of letters or bytes is an example in the note that says why tokens look broken."""
        assert attend(text, zoo.source(name)).notes == (note,)
        assert sentence(note).startswith("The vocabulary has no Korean syllables")
