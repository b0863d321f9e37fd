"""The home-built models as sources: any sentence, no download; what is captured is what they compute."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnviz.attention import Note
from attnviz.capture.attend import attend
from attnviz.capture.source import open_source
from attnviz.capture.sources.home_built import ToySource
from attnviz.errors import InputError, ModelError
from attnviz.models.config import ToyConfig
from attnviz.models.language import splits
from attnviz.models.language_models import (
    LanguageDecoder,
    LanguageEncoder,
    ToyEncoder,
)
from attnviz.models.registry import HOME_BUILT, KINDS, is_random, names
from attnviz.models.seq2seq import RecurrentTranslator
from attnviz.models.training import files, measure
from attnviz.models.training.tasks import pad_numbers

if TYPE_CHECKING:
    from attnviz.attention import Kind
    from attnviz.models.training.files import ModelCard

SIZES = ToyConfig(d_model=21, n_heads=3, n_layers=5, d_ff=11, seed=13)
TEXTS = ["I love all you", "Yes!", "The animal didn't cross the street.", "나는 너희 모두를 사랑해"]


def test_random_weights() -> None:
    """The record holds what the model itself returns beside its output."""
    _, weights = ToyEncoder(SIZES)([["I", "love", "all", "you"]])
    record = attend(TEXTS[0], ToySource(SIZES))
    expected = np.stack([pattern[0].detach().numpy() for pattern in weights if pattern is not None])
    np.testing.assert_allclose(record.weights, expected, rtol=0, atol=1e-6)
    assert record.weights.shape == (5, 3, 4, 4)
    assert record.model == "toy-random (seed 13, d_model 21, n_heads 3, n_layers 5)"


def test_words_are_tokens() -> None:
    """A word is a token, split as a person would, in a pair too."""
    record = attend("I can't, 3.14!", ToySource(SIZES), pair="나는 너희")
    assert " ".join(token.text for token in record.query_tokens) == "I can't , 3.14 ! 나는 너희"
    spans = [(0, 1), (2, 7), (7, 8), (9, 13), (13, 14), (0, 2), (3, 5)]
    assert [token.span for token in record.query_tokens] == spans
    assert [token.segment for token in record.query_tokens] == [0, 0, 0, 0, 0, 1, 1]
    assert [token.word for token in record.query_tokens] == [0, 1, 2, 3, 4, 5, 6]
    assert not any(token.special for token in record.query_tokens)


@settings(max_examples=150)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_any_sentence(text: str) -> None:
    """Any Unicode sentence works, or is refused in one line as empty."""
    if not text.strip():
        with pytest.raises(InputError, match=r"^the text is empty"):
            attend(text, "toy-random")
        return
    tokens = attend(text, "toy-random").query_tokens
    assert all(token.text.strip() for token in tokens)
    assert [text[slice(*token.span)] for token in tokens if token.span] == [
        token.piece for token in tokens
    ]


@pytest.mark.parametrize("sizes", [{"d_model": 100_000, "n_heads": 1}, {"n_layers": 100_000}])
def test_too_large(sizes: dict[str, int]) -> None:
    """Sizes that would take minutes, or all memory, are refused at once."""
    with pytest.raises(
        ModelError, match=r"^these sizes make [\d,]+ weights: at most 50,000,000 are drawn$"
    ):
        ToySource(ToyConfig(**sizes))  # type: ignore[arg-type]


def test_special_tokens() -> None:
    """In lower case between [CLS] and [SEP], a second sentence before another one, as an uncased BERT reads it."""
    source = open_source("toy-random-bert:n_layers=1")
    (sentence,) = source.encode(["I love"], ["you"]).sentences
    assert " ".join(token.text for token in sentence.tokens) == "[CLS] i love [SEP] you [SEP]"
    assert [token.special for token in sentence.tokens] == [True, False, False, True, False, True]
    assert [token.segment for token in sentence.tokens] == [0, 0, 0, 0, 1, 1]
    assert attend("I love", source).weights.shape == (1, 4, 4, 4)


@pytest.mark.parametrize("name", ["toy-transformer", "toy-seq2seq"])
def test_each_translation_is_that_of_the_sentence_alone(name: str) -> None:
    """The same greedy tokens, whatever is translated beside a sentence; other sentences are read as ever."""
    sentences = [line.text for line in splits.source_lines(80)]
    source, together = open_source(name), open_source(name)
    alone = source.encode([*sentences, "I love all you"])
    together.prepare([*sentences, "qwertz asdfgh"])
    batch = together.encode([*sentences, "I love all you"])
    assert batch.sentences == alone.sentences
    assert torch.equal(batch.inputs["target"], alone.inputs["target"])


CHOSEN = [name for name in names() if not is_random(name)]
SENTENCE = "she is eating a green apple ."


def loaded(name: str) -> tuple[ModelCard, Any]:
    """A shipped model, without attnviz looking on."""
    return files.load_home_built(name)


def test_quality_is_good_enough() -> None:
    """Each model reaches its quality on unseen sentences, far above random weights."""
    toy = loaded("toy")[0].quality
    assert toy["hidden words predicted"] >= 0.9
    assert toy["reference head attends to the right noun"] >= 0.95
    assert toy["reference head follows the last word"] >= 0.9
    assert toy["best head with random weights attends to the right noun"] < 0.6
    assert toy["best fixed offset is right"] < 0.6
    for name in ("toy-seq2seq", "toy-transformer"):
        quality = loaded(name)[0].quality
        assert quality["sentences translated correctly"] >= 0.95
        assert quality["alignment error"] <= 0.1
        assert quality["alignment error of the diagonal"] > 0.8


@pytest.mark.parametrize("name", CHOSEN)
def test_quality_is_what_is_measured(name: str) -> None:
    """The quality on a model's card equals a new measurement."""
    card, model = loaded(name)
    assert measure.quality(model) == pytest.approx(dict(card.quality), abs=0.005)


def test_shipped_weights_are_small() -> None:
    """All shipped weights together take at most 8 MB."""
    assert sum(path.stat().st_size for path in files.FOLDER.iterdir()) <= 8_000_000


@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, kind) for name in CHOSEN for kind in KINDS[HOME_BUILT[name].architecture]],
)
def test_weights_are_the_models_own(name: str, kind: Kind) -> None:
    """The record holds what the model returns beside its output, run without anybody looking on."""
    record = attend(SENTENCE, name, kind=kind)
    card, model = loaded(name)
    source = pad_numbers([card.source.encode(SENTENCE.split())])
    with torch.inference_mode():
        if isinstance(model, LanguageEncoder | LanguageDecoder):
            own = torch.cat(model(source)[-1])
        else:
            weights = model.translate(source).weights
            is_recurrent = isinstance(model, RecurrentTranslator)
            own = weights[None] if is_recurrent else torch.cat(getattr(weights, kind))
    np.testing.assert_allclose(record.weights, own.numpy(), atol=1e-6)
    assert record.kind == kind
    assert record.receipt is not None


def test_unknown_words_are_said() -> None:
    """A stranger among the words is marked where it stands, read or generated, and a note says how it was read."""
    record = attend("she is eating a green Zwetschge", "toy-seq2seq")
    assert record.key_tokens[-1].text == "Zwetschge→[UNK]"
    assert record.key_tokens[-1].piece == "Zwetschge"
    assert Note.of("unknown_words", words="Zwetschge") in record.notes
    forced = attend(SENTENCE, "toy-seq2seq", target="그녀는 자두를 먹는다")
    assert (
        " ".join(token.text for token in forced.query_tokens) == "그녀는 자두를→[UNK] 먹는다 <end>"
    )


def test_a_model_that_ships_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Later calls read no file, and what is done to one source is not seen in another."""
    first = open_source("toy")
    first.name = "mine"
    record = attend(SENTENCE, model="toy")

    def read_again(_: object) -> None:
        raise AssertionError("the file is read again")

    monkeypatch.setattr("attnviz.models.training.files.load", read_again)
    again = attend(SENTENCE, model="toy")
    assert again == record
    assert again.model == "toy"
    monkeypatch.undo()
    receipt = attend(SENTENCE, model="toy", dtype="float64").receipt
    assert receipt is not None
    assert receipt.dtype == "float64"
    assert attend(SENTENCE, model="toy") == record
