"""Captured weights are those of the eager implementation's `output_attentions=True`, alone and in padded batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from attnviz.attention import Note
from attnviz.capture.attend import attend, attend_all
from attnviz.capture.sources import huggingface as pretrained
from attnviz.errors import NoAttentionError, TooLongError

if TYPE_CHECKING:
    from tests.fixtures.zoo import Zoo

TINY = [
    *("albert", "bart", "codegen", "distilbert", "gemma2", "gpt2", "gpt_oss", "gptj", "llama"),
    *("mistral", "modernbert", "opt", "roberta", "t5", "xlm_roberta"),
]

DECODERS = {"codegen", "gemma2", "gpt2", "gpt_oss", "gptj", "llama", "mistral", "opt"}

APART = dict.fromkeys(["bloom", "falcon", "gpt_neo", "mpt", "openai_gpt"], "decoder")
APART |= dict.fromkeys(["big_bird", "deberta", "deberta_v2", "mpnet", "xlm", "xlnet"], "encoder")
"""Models that compute attention apart from the library's interface."""


def close(one: np.ndarray, other: np.ndarray, within: float = 1e-6) -> None:
    """Two sets of weights are equal, but for rounding."""
    np.testing.assert_allclose(one, other, rtol=0, atol=within)


@pytest.mark.parametrize("name", ["real", *TINY])
class TestEager:
    """Short inputs, which run the model's eager implementation."""

    def test_alone(self, zoo: Zoo, name: str) -> None:
        """A sentence alone has the weights that the library gives."""
        for sentence in zoo.sentences:
            record = attend(sentence, zoo.source(name))
            close(record.weights, zoo.eager(name, sentence)[0])
            assert record.receipt is not None
            assert record.receipt.native == "eager"
            assert record.kind == ("decoder" if name in DECODERS else "encoder")

    def test_padded_batch(self, zoo: Zoo, name: str) -> None:
        """In a padded batch each sentence has the weights that the library gives it there, and alone."""
        records = attend_all(zoo.sentences, zoo.source(name))
        for record, expected in zip(records, zoo.eager(name, *zoo.sentences), strict=True):
            close(record.weights, expected)
            if name != "real":  # whose rounding differs in a batch
                close(record.weights, zoo.eager(name, record.text)[0])


@pytest.mark.parametrize("name", TINY)
def test_fused(zoo: Zoo, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fused implementation, which longer inputs run, gives the same weights, in a batch too."""
    monkeypatch.setattr(pretrained, "EAGER_UP_TO", 0)
    for record, sentence in zip(
        attend_all(zoo.sentences, zoo.source(name)), zoo.sentences, strict=True
    ):
        close(record.weights, zoo.eager(name, sentence)[0])
        assert record.receipt is not None
        assert record.receipt.native == ("eager" if name in {"gemma2", "gpt_oss"} else "sdpa")


def test_the_real_model_without_rounding(zoo: Zoo, monkeypatch: pytest.MonkeyPatch) -> None:
    """In float64, alone, batched and fused are one: what differs in float32 is rounding and nothing else."""
    source = zoo.source("real", "float64")
    alone = [attend(sentence, source).weights for sentence in zoo.sentences]
    batched = [record.weights for record in attend_all(zoo.sentences, source)]
    monkeypatch.setattr(pretrained, "EAGER_UP_TO", 0)
    fused = [record.weights for record in attend_all(zoo.sentences, source)]
    for one, two, three in zip(alone, batched, fused, strict=True):
        close(one, two, within=1e-7)
        close(one, three, within=1e-7)


@pytest.mark.parametrize("name", APART)
def test_apart_from_the_interface(zoo: Zoo, name: str) -> None:
    """Such a model has the weights that the library gives, alone and in a padded batch, and is of the right kind."""
    source = zoo.source(name)
    for sentence in zoo.sentences:
        record = attend(sentence, source)
        close(record.weights, zoo.eager(name, sentence)[0])
        assert record.kind == APART[name]
        assert record.receipt is not None
        assert record.receipt.native == ("sdpa" if name == "falcon" else "softmax")
    assert source.kinds == (APART[name],)
    for record, expected in zip(
        attend_all(zoo.sentences, source), zoo.eager(name, *zoo.sentences), strict=True
    ):
        close(record.weights, expected)


LONG = "The animal didn't cross the street because it was too tired"


def test_window(zoo: Zoo) -> None:
    """Mistral looks at itself and the 4 tokens before it, no further."""
    weights = attend(LONG, zoo.source("mistral")).weights
    row, column = np.indices(weights.shape[2:])
    outside = (column > row) | (column <= row - 5)
    assert not weights[..., outside].any()
    assert weights[..., ~outside].all()


def test_rows_are_short(zoo: Zoo) -> None:
    """Each row of gpt-oss lacks what went to the sink, and the record says so."""
    record = attend(LONG, zoo.source("gpt_oss"))
    sums = record.weights.sum(axis=-1)
    assert sums.max() < 1
    assert sums.min() < 0.5
    assert record.short_rows == ("sink",)
    assert record.notes == (Note("sinks"),)


@pytest.mark.parametrize("name", ["longformer", "mamba"])
def test_not_on_the_interface(zoo: Zoo, name: str) -> None:
    """Longformer multiplies no whole rows of weights; Mamba has none."""
    with pytest.raises(
        NoAttentionError,
        match=rf"^zoo0/{name} has no attention that attnviz can see: [^\n]* drawn instead$",
    ):
        attend(LONG, zoo.source(name))


@pytest.mark.parametrize(
    ("name", "limit"),
    [("xlm_roberta", 512), ("roberta", 512), ("gpt2", 61), ("opt", 61), ("distilbert", 512)],
)
def test_longest(zoo: Zoo, name: str, limit: int) -> None:
    """The longest sentence runs; of one token more, both numbers are said. RoBERTa's 514 positions hold 512."""
    source = zoo.source(name)
    n_special = sum(token.special for token in attend("Yes", source, layers=[0]).query_tokens)
    longest = " love" * (limit - n_special)
    assert attend(longest, source, layers=[0], heads=[0]).weights.shape == (1, 1, limit, limit)
    cut = attend(longest + " love", source, layers=[0], heads=[0])
    assert cut.weights.shape == (1, 1, limit, limit)
    note = Note.of("input_truncated_tokens", kept=limit, total=limit + 1)
    assert note in cut.notes
    said = f"tokens, but zoo0/{name} takes at most {limit}: shorten it"
    with pytest.raises(TooLongError, match=said):
        attend(["love"] * (limit + 1), source)


def test_one_token(zoo: Zoo) -> None:
    """A single token looks at itself, and a decoder is still called one."""
    record = attend("I", zoo.source("gpt2"))
    assert record.kind == "decoder"
    assert record.weights.shape == (5, 3, 1, 1)
    assert (record.weights == 1).all()
