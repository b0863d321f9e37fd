"""Where a person would say the words of a sentence are, which word a token is of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.attention import Token
from attnviz.text.words import assign_words, split_words


def words(text: str) -> list[str]:
    """The words themselves."""
    return [text[start:end] for start, end in split_words(text)]


class TestSplitWords:
    """Words by the Unicode Standard (UAX #29)."""

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("I can't and won't.", ["I", "can't", "and", "won't", "."]),
            ("l\u2019homme", ["l\u2019homme"]),
            ("A Ph.D. in N.Y.", ["A", "Ph.D", ".", "in", "N.Y", "."]),
            ("3.14 and 1,000,000.5", ["3.14", "and", "1,000,000.5"]),
            ("Wait... what?!", ["Wait", ".", ".", ".", "what", "?", "!"]),
            ("well-known snake_case", ["well", "-", "known", "snake_case"]),
            ("“quoted” (so)", ["“", "quoted", "”", "(", "so", ")"]),
            ("나는 너희 모두를 사랑해", ["나는", "너희", "모두를", "사랑해"]),
            ("한국어와English", ["한국어와English"]),
            ("我爱你们", ["我", "爱", "你", "们"]),
            ("猫がカタカナ", ["猫", "が", "カタカナ"]),
            ("Привет, мир", ["Привет", ",", "мир"]),
            ("مرحبا بكم", ["مرحبا", "بكم"]),
            ("hi 👨‍👩‍👧‍👦🙂", ["hi", "👨‍👩‍👧‍👦", "🙂"]),
            ("👍🏽 🇰🇷🇺🇸 1️⃣", ["👍🏽", "🇰🇷", "🇺🇸", "1️⃣"]),
            ("e\u0301t\u00e9", ["e\u0301t\u00e9"]),
            ("  \n a\tb \r\n", ["a", "b"]),
            ("a \ufeff b", ["a", "\ufeff", "b"]),
            ("", []),
            (" \n ", []),
        ],
    )
    def test_words(self, text: str, expected: list[str]) -> None:
        """Contractions, abbreviations and numbers stay whole; marks stand alone; scripts without spaces are split."""
        assert words(text) == expected

    @given(st.text(st.characters(codec="utf-8")))
    def test_nothing_is_lost(self, text: str) -> None:
        """Words come in order, do not overlap, have no space at their ends, and leave out white space alone."""
        spans = split_words(text)
        edges = [0, *(edge for span in spans for edge in span), len(text)]
        assert edges == sorted(edges)
        assert all(text[start:end].strip() == text[start:end] != "" for start, end in spans)
        between = [text[edges[index] : edges[index + 1]] for index in range(0, len(edges), 2)]
        assert not "".join(between).strip()


def token(start: int, end: int, **more: object) -> Token:
    """A token that stands for these characters."""
    return Token(text="", piece="", span=(start, end), **more)  # type: ignore[arg-type]


def assigned(text: str, *tokens: Token, pair: str | None = None) -> list[int | None]:
    """The words of these tokens."""
    return [found.word for found in assign_words(tokens, text, pair)]


class TestAssignWords:
    """Which word a token is of."""

    def test_pieces(self) -> None:
        """Pieces of a word are of that word, the mark behind it is of its own."""
        assert assigned("unhappy!", token(0, 2), token(2, 7), token(7, 8)) == [0, 0, 1]

    def test_space_in_front(self) -> None:
        """A token that carries the space before its word is of that word, and so is the space alone."""
        assert assigned("I love you", token(0, 1), token(1, 6), token(6, 10)) == [0, 1, 2]
        assert assigned("I love", token(0, 1), token(1, 2), token(2, 6)) == [0, 1, 1]
        assert assigned("I love", token(0, 1), token(2, 2), token(2, 6)) == [0, 1, 1]

    def test_over_several_words(self) -> None:
        """A token that spans several words is of the first of them."""
        assert assigned("in the end", token(0, 6), token(6, 10)) == [0, 2]

    def test_added(self) -> None:
        """Tokens that the tokenizer added, or that have no place, are of none."""
        added = Token(text="[CLS]", piece="[CLS]", special=True)
        assert assigned("I", added, token(0, 1), token(0, 1, special=True)) == [None, 0, None]

    def test_pair(self) -> None:
        """Words of the second sentence are numbered on from those of the first."""
        tokens = [token(0, 1), token(2, 6), token(0, 3, segment=1), token(4, 7, segment=1)]
        assert assigned("I love", *tokens, pair="all you") == [0, 1, 2, 3]
