"""Pretrained encoder-decoders: cross attention and the decoder's own, of what they say and of what they must say."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from attnviz.attention import Note
from attnviz.capture.attend import attend
from attnviz.capture.source import open_source
from attnviz.capture.sources import Source
from attnviz.capture.sources import huggingface as pretrained
from attnviz.errors import InputError, ModelError, SelectionError, TooLongError
from attnviz.text.notes import sentence
from tests.fixtures.zoo import SENTENCES, make_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

    from attnviz.attention import Attention, Kind
    from tests.fixtures.zoo import Zoo

TINY = ("bart", "m2m_100", "marian", "mt5", "pegasus", "t5")

KINDS: tuple[Kind, ...] = ("encoder", "cross", "decoder")

TARGETS = ("나는 너희 모두를 사랑해", "The animal was too tired", "Yes!", "I love")
"""What each of the sentences must say: of other lengths than these."""

TAUGHT = {SENTENCES[0]: "나는 모두를 사랑해", SENTENCES[1]: "The street was tired"}
"""What two tiny models are taught to say."""


@pytest.fixture(scope="module", params=["bart", "t5"])
def taught(
    request: pytest.FixtureRequest, real_model: str, tmp_path_factory: pytest.TempPathFactory
) -> Source:
    """A tiny model that has learned two sentences by heart, and says them by itself."""
    import transformers

    tokenizer = make_tokenizer("roberta", real_model)
    sizes: dict[str, Any] = {"d_model": 24, "vocab_size": len(tokenizer)}
    sizes |= {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
    for side in ("encoder", "decoder"):
        sizes |= {f"{side}_layers": 2, f"{side}_attention_heads": 2, f"{side}_ffn_dim": 32}
    model: Any
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        if request.param == "bart":
            config: Any = transformers.BartConfig(**sizes, dropout=0.0, max_position_embeddings=40)
            model = transformers.BartForConditionalGeneration(config)
            # Its own settings would sample, search and repeat itself; a model that says the likeliest token does not.
            model.generation_config.update(
                num_beams=3, do_sample=True, min_length=30, forced_bos_token_id=0
            )
        else:
            sizes |= {"decoder_start_token_id": 1, "num_layers": 2, "num_heads": 2}
            config = transformers.T5Config(**sizes, d_kv=12, d_ff=32, dropout_rate=0.0)
            model = transformers.T5ForConditionalGeneration(config)
        made = tokenizer(list(TAUGHT), padding=True, return_tensors="pt")
        said = tokenizer(list(TAUGHT.values()), padding=True, return_tensors="pt")
        labels = said["input_ids"].masked_fill(said["attention_mask"] == 0, -100)
        optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(100):
            loss = model(**made, labels=labels).loss
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    folder = tmp_path_factory.mktemp("taught") / request.param
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return open_source(str(folder), device="cpu")


def texts(record: Attention) -> tuple[list[str], ...]:
    """The labels of rows and columns."""
    axes = (record.query_tokens, record.key_tokens)
    return tuple([token.text for token in tokens] for tokens in axes)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", TINY)
def test_forced(zoo: Zoo, name: str, kind: Kind) -> None:
    """With a target the weights are those of the library, given the same target as labels."""
    for text, target in zip(SENTENCES, TARGETS, strict=True):
        record = attend(text, zoo.source(name), target=target, kind=kind)
        assert np.array_equal(record.weights, zoo.forced(name, [text], [target])[0][kind])
        assert record.kind == kind
        assert record.target == target
        assert record.receipt is not None
        assert record.layers == record.receipt.layers == tuple(range(len(record.weights)))


class TestFree:
    """Without a target the model says what it finds likeliest."""

    @pytest.mark.parametrize("kind", KINDS[1:])
    def test_forced_equals_free(self, taught: Source, kind: Kind) -> None:
        """Saying by itself what it learned, and being made to say that, are one record."""
        for text, target in TAUGHT.items():
            free = attend(text, taught, kind=kind)
            assert free.target == target
            assert free == attend(text, taught, kind=kind, target=target)
            assert texts(free)[0][-1] == "</s>"

    def test_no_end(self, zoo: Zoo) -> None:
        """Who does not stop is stopped, and a note says so."""
        record = attend(SENTENCES[0], zoo.source("mt5"), kind="cross")
        assert len(record.query_tokens) == pretrained.AT_MOST == 128
        assert sentence(record.notes[0]) == "Stopped after 128 tokens, before the end of the text"

    @pytest.mark.parametrize("name", ["bart", "t5"])
    def test_without_a_head(self, zoo: Zoo, tmp_path: Path, name: str) -> None:
        """A checkpoint without the map to words is shown with a target, and refused without."""
        folder = shutil.copytree(zoo.folder(name), tmp_path / name)
        path = folder / "config.json"
        saved = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps(saved | {"tie_word_embeddings": False}), encoding="utf-8")
        if name == "bart":  # which then has word vectors of its own on either side
            weights = load_file(folder / "model.safetensors")
            for side in ("encoder", "decoder"):
                weights[f"{side}.embed_tokens.weight"] = weights["shared.weight"].clone()
            save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        source = open_source(str(folder), device="cpu")
        with pytest.raises(
            ModelError, match=r"saved without the projection to its words, .* \(target\)$"
        ):
            attend(SENTENCES[0], source, kind="cross")
        # T5 reads of that setting how large what its decoder makes is; its attention stays.
        forced = attend(SENTENCES[0], source, target=TARGETS[1])
        assert np.array_equal(
            forced.weights, attend(SENTENCES[0], zoo.source(name), target=TARGETS[1]).weights
        )

    def test_too_long(self, taught: Source) -> None:
        """Beside a target, neither may be longer than the positions; a text alone is cut, and that is said."""
        if "t5" in taught.name:  # it counts relative positions, and has no limit
            assert len(attend("I", taught, target="love " * 60).query_tokens) > 60
            return
        with pytest.raises(
            TooLongError, match=r"the target has 63 tokens, but taught0/bart generates at most 40:"
        ):
            attend("I", taught, target=("love " * 60).strip())
        with pytest.raises(
            TooLongError, match=r"63 tokens, but taught0/bart takes at most 40: shorten it$"
        ):
            attend(("love " * 60).strip(), taught, target="I")
        cut = attend(("love " * 60).strip(), taught)
        assert len(cut.key_tokens) == 40
        assert sentence(cut.notes[0]) == "Input truncated: 40 of 63 tokens"


class TestLabels:
    """The labels of rows and columns."""

    def test_cross(self, zoo: Zoo) -> None:
        """Rows are generated, columns are read by the encoder."""
        record = attend("I love all you", zoo.source("bart"), target="The love too")
        rows, columns = texts(record)
        assert rows == ["<s>", "The", "love", "too", "</s>"]
        assert columns == ["<s>", "I", "love", "all", "you", "</s>"]
        assert record.notes == (Note("row_generates_token"),)
        assert {token.segment for token in record.query_tokens} == {2}
        assert [token.special for token in record.query_tokens] == [True, False, False, False, True]

    def test_decoder(self, zoo: Zoo) -> None:
        """Columns are the start, then what was generated before."""
        record = attend("I love all you", zoo.source("bart"), target="The love too", kind="decoder")
        rows, columns = texts(record)
        assert rows == ["<s>", "The", "love", "too", "</s>"]
        assert columns == ["</s>", "<s>", "The", "love", "too"]
        assert record.notes == (Note("row_generates_token"), Note("column_read_tokens"))
        assert record.key_tokens[1:] == record.query_tokens[:-1]
        record = attend("I love all you", zoo.source("t5"), target="love", kind="decoder")
        assert texts(record) == (["<s>", "love"], ["<pad>", "<s>"])

    def test_places(self, zoo: Zoo) -> None:
        """Each token knows where in the target it stands, and of which word it is."""
        target = "The animals didn't love"
        record = attend("I love all you", zoo.source("bart"), target=target)
        said = [token for token in record.query_tokens if not token.special]
        letters = [target[slice(*token.span)] for token in said if token.span]
        assert "".join(letters) == target.replace(" ", "")
        words = [token.word for token in said if token.word is not None]
        assert words == sorted(words)
        assert {*words} == {0, 1, 2, 3}


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
            SelectionError, match=r"no cross attention to show: it has (en|de)coder$"
        ):
            attend(SENTENCES[0], source, kind="cross")

    def test_empty(self, zoo: Zoo) -> None:
        """A target without anything in it, or with nothing that the tokenizer reads."""
        for target in ("", " "):
            with pytest.raises(InputError, match="the target is empty"):
                attend(SENTENCES[0], zoo.source("t5"), target=target)
        with pytest.raises(InputError, match="finds no token in this target: '<pad></s>'"):
            attend(SENTENCES[0], zoo.source("bart"), target="<pad></s>")
