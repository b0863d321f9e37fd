"""Labels of tokens for each kind of vocabulary."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from attnviz.attention import Note
from attnviz.capture.attend import attend
from attnviz.capture.sources.tokens import read_tokens
from attnviz.text.notes import sentence

if TYPE_CHECKING:
    from attnviz.attention import Token
    from tests.fixtures.zoo import Zoo


def tokens_of(zoo: Zoo, name: str, text: str) -> list[Token]:
    """The tokens of a text, without those that the tokenizer added."""
    return [token for token in attend(text, zoo.source(name)).query_tokens if not token.special]


@pytest.mark.parametrize(
    ("name", "text", "labels"),
    [
        # A piece that continues a word has a dot for its mark (##).
        ("distilbert", "unhappily tokenized", "un|·ha|·pp|·ily|token|·ized"),
        ("distilbert", "didn't", "didn|·'|·t"),
        # Korean letters are shown in the form that fonts draw alone, not as empty boxes.
        ("distilbert", "사랑", "ㅅ|·ㅏ|·ㄹ|·ㅏ|·ㅇ"),
        # An unknown word is shown with the token that the model reads.
        ("distilbert", "I 🙂 you", "i|🙂→[UNK]|you"),
        ("distilbert", "我们", "我|们→[UNK]"),
        # The mark of a space (Ġ, ▁) is no part of the label; more spaces than one are seen.
        ("gpt2", "I love all you", "I|love|all|you"),
        ("gpt2", "I  love\nyou", "I|␣|love|\\n|you"),
        ("roberta", "I  love\nyou", "I|␣|love|\\n|you"),
        ("llama", "I love all you", "I|love|all|you"),
        ("llama", "I  love", "I|␣|love"),
        ("llama", "I\nI", "I|\\n|I"),
        # A character in several tokens is shown in each, with the number of its part.
        ("gpt2", "I 너", "I|␣|너 1/3|너 2/3|너 3/3"),
        ("roberta", "I 너", "I|␣|너 1/3|너 2/3|너 3/3"),
        ("gpt2", "🙂🙂", "🙂 1/4|🙂 2/4|🙂 3/4|🙂 4/4|🙂 1/4|🙂 2/4|🙂 3/4|🙂 4/4"),
        ("llama", "사랑해", "사랑해"),
        ("llama", "I 한🙂", "I|␣|한 1/3|한 2/3|한 3/3|🙂 1/4|🙂 2/4|🙂 3/4|🙂 4/4"),
    ],
)
def test_labels(zoo: Zoo, name: str, text: str, labels: str) -> None:
    """Each token is shown as a person reads it, whatever the marks of its vocabulary."""
    assert [token.text for token in tokens_of(zoo, name, text)] == labels.split("|")


def test_a_tokenizer_of_bytes_that_reports_no_offsets() -> None:
    """Each token says which byte of which character it is."""
    from transformers import ByT5Tokenizer

    tokenizer = ByT5Tokenizer()
    encoded = tokenizer("나 é", return_special_tokens_mask=True)
    labels = [token.text for token in read_tokens(tokenizer, encoded, "나 é")]
    assert labels == ["나 1/3", "나 2/3", "나 3/3", "␣", "é 1/2", "é 2/2", "</s>"]


def test_words_and_pieces(zoo: Zoo) -> None:
    """Pieces of a word have its number; Chinese characters are words; a piece is spelled as in the vocabulary."""
    words = [token.word for token in tokens_of(zoo, "distilbert", "unhappily tokenized")]
    assert words == [0, 0, 0, 0, 1, 1]
    assert [token.word for token in tokens_of(zoo, "distilbert", "我们")] == [0, 1]
    pieces = [token.piece for token in tokens_of(zoo, "llama", "I 한")]
    assert pieces == ["▁I", "▁", "<0xED>", "<0x95>", "<0x9C>"]


@pytest.mark.parametrize(
    ("name", "text", "note"),
    [
        ("distilbert", "I 사랑", Note.of("syllables_broken", syllable="사", n=2)),
        ("gpt2", "나는 너희", Note.of("syllables_broken", syllable="너", n=3)),
        ("t5", "나", Note.of("syllables_broken", syllable="나", n=3)),
    ],
)
def test_broken_syllables(zoo: Zoo, name: str, text: str, note: Note) -> None:
    """The first syllable of letters or bytes is an example in the note that says why tokens look broken."""
    assert attend(text, zoo.source(name)).notes == (note,)
    assert sentence(note).startswith("The vocabulary has no Korean syllables")
