"""A module of one's own, from a file of code or from memory: its attention, and what is refused in one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import attnviz
from attnviz.attention import Note
from attnviz.errors import AttnvizWarning, ModelError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.fixtures.zoo import Zoo

SAMPLE = Path(__file__).parents[3] / "sample_inputs" / "nanogpt.py"

CODE = """
import torch
from torch import nn
from beside import LETTERS

class Letters:
    def encode(self, text): return [LETTERS.index(letter) for letter in text]
    def decode(self, numbers): return "".join(LETTERS[number] for number in numbers)

class Model(nn.Module):
    def __init__(self, n=256):
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Embedding(n, 12)
        layer = nn.TransformerEncoderLayer(12, 3, 24, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    def forward(self, ids): return self.encoder(self.embed(ids))

def build(): return Model(3), Letters()
def reads_bytes(): return Model()
def small(): return Model(8)
def text(): return "no module"
def three(): return Model(), Letters(), 1
def one_sided():
    return Model(), len
def fails(): raise ValueError("a hint\\nand more")
def leaves(): raise SystemExit(3)
def wants(n): return Model(n)
def flat(): return nn.Embedding(256, 12)
def averages():
    class Pooled(Model):
        def forward(self, ids):
            x = self.embed(ids)
            return torch.softmax(x.mean(1, keepdim=True) @ x.mT, -1) @ x
    return Pooled()
"""


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    """A file of code that imports another beside it."""
    (tmp_path / "beside.py").write_text('LETTERS = "ab "\n')
    (tmp_path / "mine.py").write_text(CODE)
    before = list(sys.path)
    yield tmp_path / "mine.py"
    assert sys.path == before
    sys.modules.pop("beside", None)


class ByHand(nn.Module):
    """One causal head, as tutorials write it; it keeps what it computed."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(300, 16)
        self.drop = nn.Dropout(0.5)

    def forward(self, ids: Tensor) -> Tensor:
        """Context of each token."""
        x = self.drop(self.embed(ids))
        scores = x @ x.mT
        self.weights = torch.softmax(
            scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -torch.inf), dim=-1
        )
        y: Tensor = self.weights @ x
        return y


class TestFromCode:
    """``my_module.py:build``."""

    def test_seen(self, file: Path) -> None:
        """It is said that code runs; the weights are those that torch's own layers return; letters are the labels."""
        with pytest.warns(AttnvizWarning, match=f"^running the code of {file}$"):
            record = attnviz.attend("ab ba", f"{file}:build")
        model, _ = sys.modules["attnviz_own_mine"].build()
        layer = model.eval().encoder.layers[0]
        x = model.embed(torch.tensor([[0, 1, 2, 1, 0]]))
        expected = layer.self_attn(x, x, x, average_attn_weights=False)[1].detach().numpy()[0]
        np.testing.assert_allclose(record.weights[0], expected, atol=1e-6)
        assert (record.model, record.kind) == ("mine.py:build", "encoder")
        assert record.weights.shape == (2, 3, 5, 5)
        assert [token.text for token in record.query_tokens] == ["a", "·b", "␣", "b", "·a"]
        assert [token.word for token in record.query_tokens] == [0, 0, 1, 1, 1]
        assert record.receipt is not None
        assert record.notes == ()

    def test_without_a_tokenizer(self, file: Path) -> None:
        """It reads bytes, and a note says so; those of one letter are numbered."""
        told: list[str] = []
        record = attnviz.attend("a 나", f"{file}:reads_bytes", notify=told.append)
        assert told == [f"running the code of {file}"]
        assert [token.id for token in record.query_tokens] == list("a 나".encode())
        assert "|".join(token.text for token in record.query_tokens) == "a|␣|나 1/3|나 2/3|나 3/3"
        assert record.notes == (Note("reads_bytes"),)

    @pytest.mark.filterwarnings("ignore:running the code")
    @pytest.mark.parametrize(
        ("name", "line"),
        [
            (":buil", "there is no function buil in FILE: did you mean build?"),
            (
                "",
                "say which function of FILE is called: there are Letters, Model, build, reads_bytes, ",
            ),
            (":", "say which function of FILE is called: there are Letters"),
            (":text", "text() in FILE returns no torch module but a str: expected a module, or ("),
            (":three", "three() in FILE returns no torch module but a tuple: expected"),
            (
                ":one_sided",
                "a tokenizer has encode(text) and decode(numbers), but a builtin_function",
            ),
            (":fails", "FILE cannot be run: ValueError: a hint"),
            (":leaves", "FILE cannot be run: SystemExit: 3"),
            (":wants", "FILE cannot be run: TypeError: wants() missing 1 required"),
            (":small", "mine.py:small cannot be run on this text: IndexError: index out of range"),
            (
                ":flat",
                "mine.py:flat has no attention that attnviz can see: no softmax over all tokens",
            ),
            (":averages", "mine.py:averages has no weights of all tokens on all tokens: "),
        ],
    )
    def test_refused(self, file: Path, name: str, line: str) -> None:
        """Each mistake gives one line."""
        with pytest.raises(ModelError) as refused:
            attnviz.attend("ab ba", f"{file}{name}")
        assert str(refused.value).startswith(line.replace("FILE", str(file)))
        assert "\n" not in str(refused.value)


class TestInMemory:
    """A module that is there already."""

    @pytest.mark.parametrize("training", [True, False])
    def test_by_hand(self, *, training: bool) -> None:
        """The weights are the very tensor that it multiplied; each of its parts is in the mode that it was in."""
        model = ByHand().train(training)
        model.embed.train(not training)
        record = attnviz.attend("나는", model)
        assert torch.equal(torch.tensor(record.weights[0, 0]), model.weights[0])
        assert (record.kind, record.model) == ("decoder", "ByHand in memory")
        assert record.proof == "✓ verified (the model's own softmax)"
        modes = (model.training, model.embed.training, model.drop.training)
        assert modes == (training, not training, training)
        assert not model.weights.requires_grad

    def test_heads_that_are_modules(self) -> None:
        """Side by side on the same input, as courses write them: one layer."""

        class Heads(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.embed = nn.Embedding(300, 16)
                self.heads = nn.ModuleList(ByHand() for _ in range(3))
                for head in self.heads:
                    head.embed = nn.Linear(16, 8)

            def forward(self, ids: Tensor) -> Tensor:
                x = self.embed(ids)
                return torch.cat([head(x) for head in self.heads], -1)

        model = Heads()
        record = attnviz.attend("나는", model)
        want = torch.cat([head.weights for head in model.heads])  # type: ignore[misc]
        np.testing.assert_allclose(record.weights, want[None], atol=1e-6)

    def test_a_tokenizer_of_the_library(self, zoo: Any) -> None:
        """Hugging Face's tokens have their marks and words; those of `tokenizers` are placed in the text."""
        model = nn.Sequential(
            nn.Embedding(40000, 12), nn.TransformerEncoderLayer(12, 3, 24, batch_first=True)
        )
        tokenizer, _ = zoo.library("distilbert")
        record = attnviz.attend("Embeddings 나", model, tokenizer)
        texts = ["[CLS]", "em", "·bed", "·ding", "·s", "ㄴ", "·ㅏ", "[SEP]"]
        assert [token.text for token in record.query_tokens] == texts
        assert record.notes == (Note.of("syllables_broken", syllable="나", n=2),)
        lower = attnviz.attend("She IS", model, tokenizer.backend_tokenizer)
        assert [token.span for token in lower.query_tokens] == [None, (0, 3), (4, 6), None]

    def test_batches(self) -> None:
        """Sentences of one length run together, with the numbers that they have alone; others are refused."""
        source = attnviz.as_source(ByHand())
        records = attnviz.attend_all(["abcd", "dcba"], source)
        for record in records:
            alone = attnviz.attend(record.text, source)
            np.testing.assert_allclose(record.weights, alone.weights, atol=1e-6)
        with pytest.raises(ModelError, match="where padding is: give it sentences of one length"):
            attnviz.attend_all(["abcd", "dc"], source)

    def test_untrained(self) -> None:
        """Its layers draw their weights anew, the same from one seed; a weight that nobody can draw is refused."""
        source = attnviz.as_source(model := ByHand())
        before = model.embed.weight.clone()
        one, same, other = (source.untrained(seed).digest() for seed in (1, 1, 2))
        assert one == same != other != source.digest()
        assert torch.equal(model.embed.weight, before)
        model.own = nn.Parameter(torch.zeros(2))
        with pytest.raises(ModelError, match=r"made anew: ByHand has no reset_parameters\(\)"):
            source.untrained()


class Wrapper(nn.Module):
    """A module around a model of transformers, which requires a mask, or is called in a way of its own."""

    def __init__(self, model: nn.Module, *, reads_features: bool = False) -> None:
        super().__init__()
        self.inner = model
        self.reads_features = reads_features

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> object:
        if self.reads_features:
            return self.inner(features={"input_ids": input_ids})
        return self.inner(input_ids=input_ids, attention_mask=attention_mask)


def test_a_wrapper_of_a_model(zoo: Zoo) -> None:
    """It gets the mask that it requires; if it cannot be run, the error names the model inside."""
    tokenizer, model = zoo.library("distilbert")
    record = attnviz.attend("I am full", model=Wrapper(model), tokenizer=tokenizer)
    direct = attnviz.attend("I am full", model=model, tokenizer=tokenizer)
    np.testing.assert_allclose(record.weights, direct.weights, atol=1e-6)
    with pytest.raises(ModelError, match=r"instead, model=model\.inner$"):
        attnviz.attend("I am full", model=Wrapper(model, reads_features=True), tokenizer=tokenizer)


class Memory(nn.Module):
    """A model whose attention has a key that is no token."""

    def __init__(self, *, returns_weights: bool, **options: bool) -> None:
        super().__init__()
        self.embed = nn.Embedding(256, 16)
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True, **options)
        self.returns_weights = returns_weights

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids)
        output: Tensor = self.attention(x, x, x, need_weights=self.returns_weights)[0]
        return output


@pytest.mark.parametrize("returns_weights", [True, False])
@pytest.mark.parametrize("option", ["add_bias_kv", "add_zero_attn"])
def test_a_key_that_is_no_token(option: str, *, returns_weights: bool) -> None:
    """Its column is left out, as a sink is; rows lack its weight, and the record says so."""
    model = Memory(returns_weights=returns_weights, **{option: True}).eval()
    record = attnviz.attend("abcde", model=model)
    x = model.embed(torch.tensor([list(b"abcde")]))
    weights = model.attention(x, x, x, average_attn_weights=False)[1].detach().numpy()
    np.testing.assert_allclose(record.weights[0], weights[0, :, :, :5], atol=1e-6)
    assert record.short_rows == ("sink",)
    assert "sinks" in {note.code for note in record.notes}
    assert record.weights.sum(axis=-1).max() < 1


def test_a_model_without_word_vectors() -> None:
    """It is refused in attnviz's own words, which name `watch`."""
    from transformers import CanineConfig, CanineModel, CanineTokenizer

    config = CanineConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, num_hash_buckets=8
    )
    for use in (attnviz.doctor, lambda model, tokenizer: attnviz.attend("I", model, tokenizer)):
        with pytest.raises(ModelError, match=r"no table of word vectors.*attnviz\.watch"):
            use(CanineModel(config), CanineTokenizer())


class Pooled(Memory):
    """Attention of all tokens, then that of four learned queries, then attention of all tokens again."""

    def __init__(self) -> None:
        super().__init__(returns_weights=False)
        self.queries = nn.Parameter(torch.randn(1, 4, 16))
        self.last = nn.MultiheadAttention(16, 4, batch_first=True)

    def forward(self, ids: Tensor) -> Tensor:
        x = super().forward(ids)
        x = x + (torch.softmax(self.queries @ x.mT, dim=-1) @ x).mean(dim=1, keepdim=True)
        output: Tensor = self.last(x, x, x, need_weights=False)[0]
        return output


def test_a_layer_of_other_queries() -> None:
    """It is left out, and the record says so; the layers beside it are shown, by their own numbers."""
    record = attnviz.attend("abcde", model=Pooled().eval())
    assert record.layers == (0, 2)
    assert dict(record.notes[-1].fields) == {"n": 1}


def test_heads_on_a_corpus() -> None:
    """Sentences of several lengths run one at a time, because nothing tells a module where padding is."""
    texts = ["I love all you", "Yes", "He is eating a green apple"]
    model = Memory(returns_weights=False).eval()
    heads = attnviz.compare_heads(texts, model=attnviz.as_source(model))
    entropies = []
    for text in texts:
        weights = attnviz.attend(text, model=model).weights[0].astype(np.float64)
        entropies += [*-(weights * np.log(weights)).sum(axis=-1).T]
    expected = np.mean(entropies, axis=0)
    column = [measure.name for measure in heads.measures].index("entropy")
    np.testing.assert_allclose(heads.estimates.value[0, :, column], expected, rtol=1e-4)


def test_the_sample() -> None:
    """The GPT of the sample inputs learned, by a head of its last layer, where a word was written before."""
    source = attnviz.open_source(f"{SAMPLE}:build", notify=print)
    record = attnviz.attend("queen queen", source)
    assert record.weights[1][:, range(5, 10), range(5)].mean(axis=-1).max() > 0.6
    walk = attnviz.walkthrough("queen queen", source, head=0, layer=1)
    assert walk.difference is not None
    assert walk.difference < 1e-5
    assert not [note for note in walk.notes if note.code == "model_shapes"]


FORK = """
import os, signal, threading, torch
import attnviz
torch.set_num_threads(1)  # the threads of torch itself do not survive a fork
layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
model, ended = torch.nn.Sequential(torch.nn.Embedding(256, 16), layer), threading.Event()
def attend():
    attnviz.attend("I love all you", model)
def attend_on_and_on():
    while not ended.is_set():
        attend()
attend()
thread = threading.Thread(target=attend_on_and_on)
thread.start()
for _ in range(5):
    if not (child := os.fork()):
        signal.alarm(20)
        attend()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, "the child hangs"
ended.set()
thread.join()
"""


def test_a_process_forked_while_another_thread_runs() -> None:
    """A fork waits for the run of the other thread, so that the new process can run the model too."""
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORK], check=True, timeout=100)
