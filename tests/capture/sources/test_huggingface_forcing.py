"""Encoder-decoders with a forced target: labels, and refusals where nothing can be proved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from attnviz.attention import Note
from attnviz.capture.attend import attend
from attnviz.errors import InputError, SelectionError
from tests.fixtures.zoo import SENTENCES

if TYPE_CHECKING:
    from attnviz.attention import Attention
    from tests.fixtures.zoo import Zoo


def texts(record: Attention) -> tuple[list[str], list[str]]:
    """The labels of rows and columns."""
    return [token.text for token in record.query_tokens], [
        token.text for token in record.key_tokens
    ]


class TestLabels:
    """The labels of rows and columns."""

    def test_cross(self, zoo: Zoo) -> None:
        record = attend("I love all you", zoo.source("bart"), target="The love too")
        assert texts(record) == (
            ["<s>", "The", "love", "too", "</s>"],
            ["<s>", "I", "love", "all", "you", "</s>"],
        )
        assert record.notes == (Note("row_generates_token"),)
        assert {token.segment for token in record.query_tokens} == {2}
        assert [token.special for token in record.query_tokens] == [True, False, False, False, True]

    def test_decoder(self, zoo: Zoo) -> None:
        """Rows are said, columns are read: the start, then what was said before."""
        record = attend("I love all you", zoo.source("bart"), target="The love too", kind="decoder")
        assert texts(record) == (
            ["<s>", "The", "love", "too", "</s>"],
            ["</s>", "<s>", "The", "love", "too"],
        )
        assert record.notes == (Note("row_generates_token"), Note("column_read_tokens"))
        assert record.key_tokens[1:] == record.query_tokens[:-1]
        record = attend("I love all you", zoo.source("t5"), target="love", kind="decoder")
        assert texts(record) == (["<s>", "love"], ["<pad>", "<s>"])

    def test_places(self, zoo: Zoo) -> None:
        """Each token knows where in the target it stands, and of which word it is."""
        target = "The animals didn't love"
        record = attend("I love all you", zoo.source("bart"), target=target)
        said = [token for token in record.query_tokens if not token.special]
        assert "".join(
            target[slice(*token.span)] for token in said if token.span
        ) == target.replace(" ", "")
        assert [token.word for token in said] == sorted(
            token.word for token in said if token.word is not None
        )
        assert {token.word for token in said} == {0, 1, 2, 3}


class TestRefused:
    """Attention that cannot be shown or proved."""

    @pytest.mark.parametrize("name", ["distilbert", "gpt2", "llama"])
    def test_others_say_nothing(self, zoo: Zoo, name: str) -> None:
        """Encoders and decoders alone are what they were."""
        source = zoo.source(name)
        assert len(source.kinds) == 1
        with pytest.raises(SelectionError, match="generates nothing, so it takes no target"):
            attend(SENTENCES[0], source, target="나는")
        with pytest.raises(
            SelectionError, match=r"has no cross attention to show: it has (encoder|decoder)$"
        ):
            attend(SENTENCES[0], source, kind="cross")

    def test_empty(self, zoo: Zoo) -> None:
        """A target without anything in it, or with nothing that the tokenizer reads."""
        for target in ("", " "):
            with pytest.raises(InputError, match="the target is empty"):
                attend(SENTENCES[0], zoo.source("t5"), target=target)
        with pytest.raises(InputError, match="finds no token in this target: '<pad></s>'"):
            attend(SENTENCES[0], zoo.source("bart"), target="<pad></s>")
