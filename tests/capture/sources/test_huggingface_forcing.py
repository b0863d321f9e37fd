"""What encoder-decoders say: how it is labelled, followed through a head, and refused where nothing is proved."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from attnviz.attention import Note
from attnviz.capture.attend import attend
from attnviz.capture.sources import huggingface, interface
from attnviz.capture.sources.tokens import generated_tokens, meaning
from attnviz.errors import (
    InputError,
    ModelError,
    NoAttentionError,
    NotVerifiedError,
    SelectionError,
)
from tests.fixtures.zoo import SENTENCES

if TYPE_CHECKING:
    from pathlib import Path

    from attnviz.attention import Attention
    from tests.fixtures.zoo import Zoo

TARGETS = ("나는 너희 모두를 사랑해", "The animal was too tired")
"""What is to be said."""


def texts(record: Attention) -> tuple[list[str], list[str]]:
    """What rows and columns are called."""
    return [token.text for token in record.query_tokens], [
        token.text for token in record.key_tokens
    ]


class TestLabels:
    """What rows and columns are called."""

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

    def test_places_of_what_is_said_freely(self, zoo: Zoo) -> None:
        """Tokens that no tokenizer would make of their text are placed by how far it gets with each."""
        tokenizer, _ = zoo.library("bart")
        pieces = ["l", "o", "ve", "Ġ", *"ìĤ¬", "!", "</s>"]
        ids = tokenizer.convert_tokens_to_ids(pieces)
        text = meaning(tokenizer, ids)
        assert text == "love 사!"
        assert tokenizer(text)["input_ids"] != ids
        said = generated_tokens(tokenizer, ids, text)
        spans = [(0, 1), (1, 2), (2, 4), (4, 5), (5, 6), (5, 6), (5, 6), (6, 7), None]
        assert [token.span for token in said] == spans
        assert [token.text for token in said] == [
            "l",
            "·o",
            "·ve",
            "␣",
            "사 1/3",
            "사 2/3",
            "사 3/3",
            "!",
            "</s>",
        ]
        assert [token.word for token in said] == [0, 0, 0, 1, 1, 1, 1, 2, None]

    @pytest.mark.parametrize("name", ["bart_wordpiece", "marian_wordpiece"])
    def test_cut(self, zoo: Zoo, name: str) -> None:
        """A target that is cut, of a tokenizer that writes it otherwise: each token stands where the text has it."""
        target = "The Animal Didn't Cross The Street, Because It Was Too Tired: The Street Was Much Too Wide For It."
        record = attend("I love all you", zoo.source(name), target=target, truncate=True)
        said = record.query_tokens
        assert len(said) == 24
        assert record.notes[0] == Note.of("target_truncated", kept=24, total=26)
        marked = [token.text.removeprefix("·").lower() for token in said if not token.special]
        assert [target[slice(*token.span)].lower() for token in said if token.span] == marked

    def test_written_otherwise(self, zoo: Zoo) -> None:
        """Tokens that mean another text than the one given: they stand somewhere in it, and nothing ends."""
        tokenizer, _ = zoo.library("bart_wordpiece")
        said = generated_tokens(
            tokenizer, tokenizer.convert_tokens_to_ids(["the", "##ani", "##mal"]), "THE ANIMAL"
        )
        assert all(
            token.span is not None and 0 <= token.span[0] <= token.span[1] <= 10 for token in said
        )

    def test_nothing(self, zoo: Zoo) -> None:
        """What another model generated may be its end alone: it is a row as others are."""
        batch = zoo.source("t5").encode(["I love all you"], kind="cross", targets=[""])
        assert [token.piece for token in batch.sentences[0].tokens] == ["<s>"]


class TestRefused:
    """What cannot be shown, or cannot be proved."""

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

    def test_where_it_starts_is_unknown(self, zoo: Zoo, tmp_path: Path) -> None:
        """A configuration that does not say what the decoder reads first."""
        folder = shutil.copytree(zoo.folder("t5"), tmp_path / "t5")
        path = folder / "config.json"
        saved = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps(saved | {"decoder_start_token_id": None}), encoding="utf-8")
        with pytest.raises(
            ModelError, match=r"cannot be forced to a target: [^\n]*decoder_start_token_id[^\n]*$"
        ):
            attend(SENTENCES[0], str(folder), target="I")

    @pytest.mark.parametrize(
        ("cross_names", "self_names"),
        [(set(), {"selfattn"}), ({"encoderattn"}, set()), ({"selfattn"}, {"encoderattn"})],
    )
    def test_layers_of_unknown_kind(
        self, zoo: Zoo, cross_names: set[str], self_names: set[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A layer that is named otherwise, or looks at something else than its name says."""
        source: Any = zoo.source("bart")
        monkeypatch.setattr(huggingface, "CROSS_NAMES", cross_names)
        monkeypatch.setattr(huggingface, "SELF_NAMES", self_names)
        monkeypatch.setattr(source._generator, "kinds", huggingface.kinds_of(source._full_model))
        with pytest.raises(
            NoAttentionError, match=r"bart: it is not clear what [\w.]+ looks at: [^\n]*$"
        ):
            attend(SENTENCES[0], source, target=TARGETS[1], kind="cross")

    def test_a_term_overlooked(self, zoo: Zoo, monkeypatch: pytest.MonkeyPatch) -> None:
        """The receipt proves a decoder's layers as it does all others: without its bias T5 is refused."""
        found = interface._scoring
        monkeypatch.setattr(
            interface, "_scoring", lambda *given, **more: replace(found(*given, **more), bias=None)
        )
        with pytest.raises(NotVerifiedError, match="layer 0 is not verified"):
            attend(SENTENCES[0], zoo.source("t5"), target=TARGETS[1], kind="decoder")
        attend(SENTENCES[0], zoo.source("t5"), target=TARGETS[1], kind="cross")  # which has none
