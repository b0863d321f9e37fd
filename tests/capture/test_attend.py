"""From a name to a record: what `attend` takes, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

import attnviz
from attnviz.attention import Note
from attnviz.capture.attend import attend, attend_all
from attnviz.capture.source import open_source
from attnviz.errors import (
    AttnvizError,
    AttnvizWarning,
    InputError,
    ModelError,
    UnknownModelError,
    UnreachableModelError,
)
from attnviz.models.registry import names
from attnviz.text.display import visible

if TYPE_CHECKING:
    from attnviz.models.registry import Device
    from tests.fixtures.zoo import Zoo

TEXT = "I love all you"
KNOWN_SIZES = "seed=N, d_model=N, n_heads=N, n_layers=N"


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache, and a hub that may not be asked."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))


class TestRecord:
    """The record that `attend` returns."""

    def test_public_name(self, zoo: Zoo) -> None:
        """`attnviz.attend(text, model=folder)` is all that it takes."""
        record = attnviz.attend(TEXT, model=str(zoo.folder("distilbert")))
        assert record.weights.shape == (5, 3, 6, 6)
        assert record.weights.dtype == np.float32
        assert record.query_tokens == record.key_tokens
        assert " ".join(token.text for token in record.query_tokens) == "[CLS] i love all you [SEP]"
        assert record.model == "zoo0/distilbert"
        assert (record.text, record.pair, record.kind) == (TEXT, None, "encoder")
        assert record.notes == ()
        assert record.short_rows == ()

    def test_pair(self, zoo: Zoo) -> None:
        """Two sentences are read together: segments, spans in their own sentence, words numbered on."""
        record = attend("I love", zoo.source("distilbert"), pair="all you")
        tokens = record.query_tokens
        assert " ".join(token.text for token in tokens) == "[CLS] i love [SEP] all you [SEP]"
        assert [token.segment for token in tokens[1:6]] == [0, 0, 0, 1, 1]
        spans = [token.span for token in tokens if token.span]
        assert spans == [(0, 1), (2, 6), (0, 3), (4, 7)]
        assert [token.word for token in tokens] == [None, 0, 1, None, 2, 3, None]
        assert record.pair == "all you"
        assert record.notes == ()

    @pytest.mark.parametrize(
        ("layers", "heads", "expected"),
        [
            ([-1], None, ((4,), (0, 1, 2))),
            (None, [-3, -1], ((0, 1, 2, 3, 4), (0, 2))),
            ([3, 1, 3], [2, 0], ((1, 3), (0, 2))),
            (range(1, 3), (2,), ((1, 2), (2,))),
        ],
    )
    def test_layers_and_heads(
        self, zoo: Zoo, layers: Any, heads: Any, expected: tuple[tuple[int, ...], ...]
    ) -> None:
        """Layers and heads are chosen by number, negative from the end, and keep their numbers."""
        whole = attend(TEXT, zoo.source("distilbert"))
        record = attend(TEXT, zoo.source("distilbert"), layers=layers, heads=heads)
        assert (record.layers, record.heads) == expected
        chosen = whole.weights[np.ix_(record.layers, record.heads)]
        np.testing.assert_array_equal(record.weights, chosen)

    def test_batch(self, zoo: Zoo) -> None:
        """Several sentences, some in pairs, come back in their order."""
        records = attend_all(
            [TEXT, "Yes!"], zoo.source("distilbert"), pairs=[None, "No way at all"], heads=[-1]
        )
        assert [(record.text, record.pair) for record in records] == [
            (TEXT, None),
            ("Yes!", "No way at all"),
        ]
        assert [record.weights.shape for record in records] == [(5, 1, 6, 6), (5, 1, 9, 9)]


def test_longer_than_the_model_has_positions(zoo: Zoo) -> None:
    """The record says how much is left, and its weights are those of the beginning."""
    text = " love" * 101
    record = attend(text, zoo.source("gpt2"))
    assert record.notes == (Note.of("input_truncated_tokens", kept=61, total=101),)
    assert record.text == text
    kept = attend(" love" * 61, zoo.source("gpt2"))
    np.testing.assert_allclose(record.weights, kept.weights, atol=1e-6)


class TestText:
    """Texts that no model can read, and texts that look so."""

    def test_blank(self, zoo: Zoo) -> None:
        """Refused in one line, by every way in."""
        source = zoo.source("distilbert")
        for refused, what in (
            (lambda: attend(" \n", source), "the text"),
            (lambda: attend(" \n", "toy-random"), "the text"),
            (lambda: attend_all(["Yes!", " \n"], source), "the text"),
            (lambda: attend("Yes!", source, pair=" \n"), "the second sentence"),
        ):
            with pytest.raises(InputError, match=rf"^{what} is empty \(only spaces\)$"):
                refused()

    @pytest.mark.parametrize("texts", ["I love you", b"I love you", Path("sentences.txt")])
    def test_no_list(self, texts: Any) -> None:
        """A text is not taken apart into its letters, and a path is not read."""
        with pytest.raises(InputError, match=r"expected a list of sentences.*splitlines"):
            attend_all(texts, "toy")
        with pytest.raises(InputError, match="expected a list of sentences"):
            attend_all(["I love you"], "toy", pairs=texts)

    def test_no_text(self, zoo: Zoo) -> None:
        """A batch of nothing is refused too."""
        with pytest.raises(InputError, match=r"^there is no text"):
            attend_all([], zoo.source("distilbert"))
        with pytest.raises(
            InputError, match=r"^the second sentence is given 1 times, for 2 texts$"
        ):
            attend_all([TEXT, TEXT], zoo.source("distilbert"), pairs=[TEXT])

    @pytest.mark.parametrize("name", ["distilbert", "gpt2", "llama"])
    def test_hostile(self, zoo: Zoo, name: str) -> None:
        """Control characters, escapes, marks of direction and special tokens in the text are shown, never obeyed."""
        text = "a\x1b[2J[red]\u202eb\x00\x07 [SEP] <s> <|endoftext|> </script>\r\n"
        record = attend(text, zoo.source(name))
        assert record.text == text
        assert all(token.text.isprintable() for token in record.query_tokens)

    @pytest.mark.parametrize(
        ("name", "typed"), [("distilbert", "[SEP]"), ("gpt2", "<|endoftext|>"), ("llama", "</s>")]
    )
    def test_typed_special(self, zoo: Zoo, name: str, typed: str) -> None:
        """A special token that was typed is text: it has a place and is not hidden with those that were added."""
        tokens = attend(f"I {typed} you", zoo.source(name)).query_tokens
        (found,) = [token for token in tokens if token.piece == typed and token.span]
        assert found.text == typed
        assert not found.special


class TestModel:
    """Which model runs, and where."""

    @pytest.mark.usefixtures("offline")
    @pytest.mark.parametrize(
        ("text", "model"),
        [(TEXT, "toy"), ("고양이가 방에서 자고 있어요", "toy-ko"), ("the cat saw 고양이", "toy")],
    )
    def test_default_is_not_there(self, text: str, model: str) -> None:
        """Without DistilBERT a home-built model that reads the language stands in; one warning says so, and why."""
        with pytest.warns(AttnvizWarning) as warned:
            record = attend(text)
        assert record.model == model
        assert [str(warning.message) for warning in warned] == [
            "distilbert-base-uncased is not in the cache, and the hub may not be asked (HF_HUB_OFFLINE is set); using "
            f'the home-built model "{model}" instead (with DistilBERT\'s shapes: '
            "-m toy-random-bert:n_layers=6,d_model=768,n_heads=12)"
        ]

    @pytest.mark.usefixtures("offline")
    @pytest.mark.parametrize(
        "model", ["distilbert-base-uncased", "no-such-model", "google-bert/bert-base-uncased"]
    )
    def test_named_is_never_replaced(self, model: str) -> None:
        """A model asked for by name is that or an error that says what to do, the default's own name included."""
        with pytest.raises(
            UnreachableModelError, match=rf"^{model} is not in the cache.*a local folder.*\(toy\)$"
        ):
            attend(TEXT, model)

    @pytest.mark.parametrize(
        "model", ["", "./no/such/folder", "a/b/c", "no model\x1b[2J", "no\ud800model"]
    )
    def test_no_model(self, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """An impossible model name is refused in one printable line."""
        monkeypatch.chdir(tmp_path)
        with pytest.raises(UnknownModelError) as refused:
            attend(TEXT, model)
        assert str(refused.value).isprintable()

    @pytest.mark.parametrize(
        ("model", "nearest"),
        [
            ("toy-rand", "toy-random"),
            ("TOY-Decoder", "toy-decoder"),
            ("tpy-random", "toy-random"),
            ("bottleneck-with-0", ""),
            ("toy\x1b[2J", "toy"),
        ],
    )
    def test_no_home_built_model(
        self, model: str, nearest: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A name that only a home-built model could have is not sought elsewhere: one line says which was meant."""
        monkeypatch.setattr("attnviz.capture.source.locate", pytest.fail)
        with pytest.raises(UnknownModelError) as refused:
            attend(TEXT, model)
        line = str(refused.value)
        assert line.isprintable()
        meant = f"did you mean {nearest}?" if nearest else f"there are {', '.join(names())}"
        assert line.startswith(f"there is no home-built model '{visible(model)}': {meant}")

    def test_sizes(self) -> None:
        """Those of `toy-random` are part of its name, and it tells those that are not as usual."""
        source = open_source("toy-random:n_heads=2,n_layers=5,seed=3")
        assert source.name == "toy-random (seed 3, n_heads 2, n_layers 5)"
        record = attend(TEXT, source)
        assert record.weights.shape == (5, 2, 4, 4)
        assert not np.array_equal(record.weights[:2], attend(TEXT, "toy-random").weights[:, :2])

    @pytest.mark.parametrize(
        ("sizes", "line"),
        [
            (
                "d_model=20,n_heads=3",
                "n_heads must divide d_model: expected a divisor of 20, got 3 heads",
            ),
            ("n_layers=0", "n_layers is too small: expected at least 1, got 0"),
            *(
                (sizes, f"'{sizes}' is no size of toy-random: expected {KNOWN_SIZES}")
                for sizes in ("width=8", "n_heads", "n_heads=two", "d_model=-4", "")
            ),
        ],
    )
    def test_sizes_that_make_no_sense(self, sizes: str, line: str) -> None:
        """Each is refused with what was expected and what came."""
        with pytest.raises(AttnvizError, match=f"^{line}$"):
            open_source(f"toy-random:{sizes}")

    @pytest.mark.parametrize("device", ["cuda", "mps"])
    @pytest.mark.parametrize("model", ["toy", "toy-random", None])
    def test_device_not_there(
        self, device: Device, model: str | None, offline: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A device that is not there is refused, whichever model: no warning first, and nothing runs elsewhere."""
        del offline
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
        with pytest.raises(
            ModelError, match=f"^there is no {device.upper()} device here that torch can use: take"
        ):
            attend(TEXT, model, device=device)
