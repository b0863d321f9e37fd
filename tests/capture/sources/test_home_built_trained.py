"""The trained home-built models: what is captured is what they compute, whichever attention is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from attnviz.attention import Note
from attnviz.capture.attend import attend
from attnviz.capture.source import open_source
from attnviz.models.language import splits
from attnviz.models.language_models import LanguageDecoder, LanguageEncoder
from attnviz.models.registry import HOME_BUILT, KINDS, is_random, names
from attnviz.models.seq2seq import RecurrentTranslator
from attnviz.models.training import files, measure
from attnviz.models.training.tasks import pad_numbers

if TYPE_CHECKING:
    from attnviz.attention import Kind
    from attnviz.models.training.files import ModelCard

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
