"""Decoders of many architectures: the tokens of the model's own `generate`, and the rows that it computes meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

import attnviz
from attnviz.errors import ModelError
from tests.fixtures.architectures import ARCHITECTURES

if TYPE_CHECKING:
    from tests.fixtures.zoo import Zoo

PROMPT, NEW = "The animal did not cross the street", 3


def generating(name: str, zoo: Zoo) -> tuple[Any, Any]:
    """A model of this architecture with random weights and its projection to words, and a tokenizer."""
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(zoo.folder("llama"))
    tokenizer.eos_token = None  # nothing ends the text
    kind, sizes = ARCHITECTURES[name]
    numbers = {"vocab_size": len(tokenizer), "pad_token_id": 0, "bos_token_id": 1}
    numbers |= {"vocab_size_per_layer_input": len(tokenizer)} if name == "gemma4" else {}
    config = getattr(transformers, f"{kind}Config")(**sizes | numbers, eos_token_id=None)
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    for parameter in model.parameters():
        if parameter.ndim > 1:
            torch.nn.init.xavier_uniform_(parameter, gain=0.7)
    return model, tokenizer


@pytest.mark.parametrize(
    "name",
    [
        *("bamba", "deepseek_v32", "deepseek_v4", "gemma3", "gemma4", "glm_moe_dsa", "gpt_oss"),
        *("granitemoehybrid", "lfm2", "nemotron_h", "olmo_hybrid", "openai_gpt", "qwen3_5"),
        *("qwen3_next", "zamba2"),
    ],
)
def test_tokens_and_rows_are_the_models_own(name: str, zoo: Zoo) -> None:
    """Caches of windows, of states and of an index, layers that share keys, no cache at all."""
    model, tokenizer = generating(name, zoo)
    ids = tokenizer(PROMPT, return_tensors="pt").input_ids
    record = attnviz.generate(PROMPT, model, tokenizer, max_new_tokens=NEW)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        own = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=NEW,
            min_new_tokens=NEW,
            do_sample=False,
            output_attentions=True,
            return_dict_in_generate=True,
            use_cache=name not in {"bamba", "openai_gpt"},  # Bamba's loses the positions
        )
    assert [token.id for token in record.query_tokens] == own.sequences[0, ids.shape[1] :].tolist()
    for step, layers in enumerate(own.attentions):
        seen = [layer for layer in layers if layer is not None and layer.ndim == 4]
        assert len(seen) == len(record.layers)
        for weights, layer in zip(record.weights[:, :, step], seen, strict=True):
            row = layer[0, :, -1].numpy()  # a cache may have dropped the first keys
            end = ids.shape[1] + step
            np.testing.assert_allclose(weights[:, end - row.shape[1] : end], row, atol=5e-6)


@pytest.mark.parametrize("name", ["bert", "roberta", "xlnet"])
def test_models_that_only_read(name: str, zoo: Zoo) -> None:
    """The library makes a class that generates of each, whose tokens look at later ones."""
    model, tokenizer = generating(name, zoo)
    with pytest.raises(ModelError, match="generates nothing: it only reads"):
        attnviz.generate(PROMPT, model, tokenizer, max_new_tokens=NEW)
