"""The models of transformers: weights against `output_attentions`, and the Python API on a real model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

import attnviz
from attnviz.errors import ModelError
from tests.fixtures.architectures import diagnose

if TYPE_CHECKING:
    from pathlib import Path

SENTENCE = "The animal didn't cross the street because it was too tired."

# The most used ones, and one of each way to compute attention. All of them load in each release of the range.
ARCHITECTURES = (
    *("albert", "bart", "bert", "distilbert", "falcon", "gemma", "gpt2", "gpt_neox", "gptj"),
    *("llama", "mistral", "mpnet", "opt", "phi3", "qwen2", "qwen3", "roberta", "t5"),
)


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_architecture(name: str, tmp_path: Path) -> None:
    """Every layer is verified, alone and padded, and its weights are those of `output_attentions`.

    Both are rounded to float32 in each layer: with torch 2.2, Gemma's second layer differs by 1.1e-6 on one processor.
    Until transformers 5.14, T5 computes attention on its own, and only its encoder is shown.
    """
    found = diagnose(name, tmp_path)
    assert found.refusal == ""
    assert found.unseen == () or (name == "t5" and found.layers[0].kind == "encoder")
    differences = [layer.eager for layer in found.layers]
    assert name == "t5" or None not in differences
    assert all(eager <= 2e-6 for eager in differences if eager is not None)


@pytest.fixture(scope="module")
def record(real_model: str) -> attnviz.Attention:
    """The attention of a real model."""
    return attnviz.attend(SENTENCE, model=real_model)


@pytest.mark.usefixtures("as_installed")
class TestRealModel:
    """all-MiniLM-L6-v2, with its real weights."""

    def test_weights(self, record: attnviz.Attention, real_model: str) -> None:
        """They are those of the library's eager implementation."""
        from transformers import AutoModel, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(real_model)
        model = AutoModel.from_pretrained(real_model, attn_implementation="eager").eval()
        with torch.no_grad():
            expected = model(**tokenizer(SENTENCE, return_tensors="pt"), output_attentions=True)
        expected = torch.stack(expected.attentions)[:, 0].numpy()
        np.testing.assert_allclose(record.weights, expected, rtol=0, atol=1e-5)

    def test_a_model_in_memory(self, record: attnviz.Attention, real_model: str) -> None:
        """Its attention is the same, and its own attention implementation stays as it was."""
        from transformers import AutoModel, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(real_model)
        model = AutoModel.from_pretrained(real_model)
        before = model.config._attn_implementation
        other = attnviz.attend(SENTENCE, model=model, tokenizer=tokenizer)
        np.testing.assert_allclose(other.weights, record.weights, rtol=0, atol=1e-5)
        assert model.config._attn_implementation == before

    def test_refused(self, real_model: str) -> None:
        """A model that does not fit is refused as attnviz's own error."""
        with pytest.raises(ModelError):
            attnviz.attend("I love you", model=f"{real_model}-which-is-not-there")


@pytest.mark.usefixtures("as_installed")
class TestTorch:
    """torch's own layers, and modules written with its functions."""

    def test_encoder_layer(self) -> None:
        """The weights of `nn.TransformerEncoderLayer` are those of its `nn.MultiheadAttention`."""
        torch.manual_seed(0)
        layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
        x = torch.randn(1, 5, 16)
        with torch.no_grad(), attnviz.watch(layer) as seen:
            layer(x)
        _, expected = layer.self_attn(x, x, x, average_attn_weights=False)
        record = seen.attention(tokens=list("abcde"))
        np.testing.assert_allclose(record.weights[0], expected[0].detach(), atol=1e-6)

    def test_generation(self) -> None:
        """The home-built decoder generates, and each step's attention is verified."""
        generated = attnviz.generate("The animal", model="toy-decoder", max_new_tokens=4)
        np.testing.assert_allclose(generated.weights.sum(-1), 1, atol=1e-5)
