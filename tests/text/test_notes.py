"""Notes in words, in both languages."""

from __future__ import annotations

from attnviz.attention import Note
from attnviz.text.messages import language
from attnviz.text.notes import sentence


def test_fields() -> None:
    """Numbers have their thousands set apart, and no terminal obeys a text."""
    note = Note.of("input_truncated_tokens", kept=512, total=20000)
    assert sentence(note) == "Input truncated: 512 of 20,000 tokens"
    with language("ko"):
        assert sentence(note) == "입력을 자름: 토큰 20,000개 가운데 512개"
    assert sentence(Note.of("text", text="a\x1b[2J")) == r"a\x1b[2J"


def test_a_code_of_a_later_version() -> None:
    """A note that nobody knows is told as it is."""
    assert sentence(Note.of("new_thing", n=3, what="x\n")) == r"new_thing, n: 3, what: x\n"
