"""Text that a model can read, that a person can read, and that no terminal obeys."""

from __future__ import annotations

import re
import shlex
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.errors import InputError
from attnviz.text.display import JOINERS, check_text, clip, from_utf8, quoted, token_text, visible


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"caf\xe9", "not UTF-8: byte 4 is 0xe9"),
        ("I love 너".encode("cp949"), "not UTF-8: byte 8 is 0xb3"),  # of any of many encodings
        ("너를 love".encode("cp949"), "not UTF-8: byte 1 is 0xb3"),
        (
            "나는 너를 사랑해".encode("cp949"),
            "not UTF-8, but looks like cp949, the encoding of Korean Windows: save it as UTF-8 in an editor, "
            "or by iconv -f cp949 -t UTF-8 FILE > NEW",
        ),
        (
            "나는".encode("utf-16"),
            "not UTF-8, but looks like UTF-16: save it",
        ),
        (b"\xfe\xff\xb0\x98", "not UTF-8, but looks like UTF-16"),
    ],
)
def test_other_encodings(raw: bytes, reason: str) -> None:
    """The error names the likely encoding and the remedy, or else the wrong byte."""
    assert from_utf8("나는".encode()) == "나는"
    with pytest.raises(InputError, match=f"^{reason}"):
        from_utf8(raw)


class TestVisible:
    """Characters that do something are spelled out; characters that are seen stay."""

    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("I love all you", "I love all you"),
            ("[red]bold[/red]", "[red]bold[/red]"),
            ("a\nb\tc\rd", r"a\nb\tc\rd"),
            ("\x1b[2J", r"\x1b[2J"),
            ("\x00\x07\x7f\x9b", r"\x00\x07\x7f\x9b"),
            ("a\u202eb\u2066c", r"a\u202eb\u2066c"),
            ("\u200b\ufeff\u00ad", r"\u200b\ufeff\xad"),
            ("\u2028\u2029", r"\u2028\u2029"),
            ("\ud83d", r"\ud83d"),
            ("\ue000", r"\ue000"),
            ("\ufffe\ufdd0\U0001ffff", r"\ufffe\ufdd0\U0001ffff"),
            ("\U000e0041", r"\U000e0041"),
            ("사랑", "사랑"),
            ("مرحبا", "مرحبا"),
        ],
    )
    def test_characters(self, text: str, shown: str) -> None:
        """Controls, escapes, marks of direction, halves of characters and non-characters show their numbers."""
        assert visible(text) == shown

    @pytest.mark.parametrize("text", ["👨‍👩‍👧‍👦", "می‌خواهم", "क्‍ष", "അവന്‍"])
    def test_joiners(self, text: str) -> None:
        """Families of emoji, Persian and Indic words keep the joiners that shape them."""
        assert visible(text) == text

    @given(st.text())
    def test_nothing_is_obeyed(self, text: str) -> None:
        """Whatever went in, what comes out can be encoded and is seen, but for joiners behind something."""
        shown = visible(text)
        shown.encode()
        for index, character in enumerate(shown):
            category = unicodedata.category(character)
            assert category not in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"} or (
                character in JOINERS and index > 0 and not shown[index - 1].isspace()
            )


class TestTokenText:
    """The label of one token."""

    @pytest.mark.parametrize(
        ("decoded", "more", "shown"),
        [
            ("love", {}, "love"),
            (" love", {}, "love"),
            ("ing", {"continues": True}, "·ing"),
            ("\n\n", {}, r"\n\n"),
            (" \t", {}, r"␣\t"),
            (" ", {}, "␣"),
            ("   ", {}, "␣␣␣"),
            ("", {}, "␣"),
            ("", {"typed": "   "}, "␣␣␣"),
            ("\n", {}, "\\n"),
            ("\n    ", {}, "\\n␣␣␣␣"),
            ("\n        ", {"typed": "\n        "}, "\\n␣␣␣␣␣␣␣␣"),
            ("\t", {}, "\\t"),
            ("\u00a0\u3000", {}, "␣␣"),
            ("[UNK]", {"typed": "🙂", "unknown": True}, "🙂→[UNK]"),
            ("<unk>", {"typed": " \x1b", "unknown": True}, "\\x1b→<unk>"),
            ("[UNK]", {"unknown": True}, "[UNK]"),
            ("<|end|>", {"typed": "<|end|>", "unknown": True}, "<|end|>"),
            ("\ufffd", {"typed": "한", "part": (1, 3)}, "한 1/3"),
            ("\ufffd", {"typed": " 한", "part": (3, 3)}, "한 3/3"),
            ("\ufffd", {"typed": "\u00a0", "part": (1, 2)}, "␣ 1/2"),
            ("\ufffd", {"part": (2, 4)}, "� 2/4"),
            ("\ufffd", {}, "\ufffd"),
            ("\u1109", {}, "ㅅ"),
            ("\u1161", {"continues": True}, "·ㅏ"),
            ("\u11bc", {}, "ㅇ"),
            ("\u1101", {}, "ㄲ"),
            ("\u1109\u1161\u11bc", {}, "상"),
            ("\u1140", {}, "ㅿ"),
            ("\u115f", {}, "\u115f"),
        ],
    )
    def test_label(self, decoded: str, more: dict[str, object], shown: str) -> None:
        """Marks are gone, white space is seen, and bytes, unknowns and Korean letters are readable."""
        assert token_text(decoded, **more) == shown  # type: ignore[arg-type]

    @given(decoded=st.text(max_size=7), continues=st.booleans())
    def test_something_is_seen(self, *, decoded: str, continues: bool) -> None:
        """No label is empty or blank."""
        assert token_text(decoded, continues=continues).strip()


@pytest.mark.parametrize(
    ("text", "length", "cut"),
    [
        *(("love", 4, "love"), ("loving", 4, "lov…"), ("I love", 3, "I…"), ("love", 1, "…")),
        ("\U0001f469\u200d" * 200, 40, "\U0001f469\u200d" * 8),  # counts as one character
    ],
)
def test_clip(text: str, length: int, cut: str) -> None:
    """A text that is too long ends in an ellipsis, and has no space before it."""
    assert clip(text, length) == cut


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the text is empty"),
        (" ", "the text is empty (only spaces)"),
        ("\u00a0\u3000\r\n\t", "the text is empty (only spaces)"),
        ("\ud800", r"the text is not valid Unicode: character 1 is a lone surrogate (\ud800)"),
        ("나는 \udcff", r"the text is not valid Unicode: character 4 is a lone surrogate (\udcff)"),
    ],
)
def test_a_text_is_refused(text: str, said: str) -> None:
    """Each refusal says in one line what is wrong, and where."""
    with pytest.raises(InputError, match=f"^{re.escape(said)}$"):
        check_text(text)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip))
def test_any_other_text_passes(text: str) -> None:
    """Any other text is for the model to read; it can be encoded."""
    check_text(text)
    assert text.encode()


@pytest.mark.parametrize(
    "sentence", ["I love all you", "it's 5 $", 'say "no"', "a\\", "`a`!b", 'a\\"b']
)
def test_quotation_marks(sentence: str) -> None:
    """A shell reads one word, the sentence."""
    assert shlex.split(quoted(sentence)) == [sentence]
