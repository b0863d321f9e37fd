"""Random small configurations: whatever the sizes, texts, batch and blocks, the weights are the library's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import attnviz
from attnviz.capture import stream
from attnviz.capture.attend import attend_all
from attnviz.capture.sources import huggingface as pretrained
from tests.fixtures.zoo import make_tokenizer

WORDS = ["the", "animal", "didn't", "cross", "unbelievable", "street", "."]
TEXTS = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join), min_size=1, max_size=3
)


@st.composite
def configurations(draw: st.DrawFn) -> Any:
    """A small configuration of one of four families, with the extras that it may have."""
    import transformers

    groups, each, layers = (draw(st.integers(1, 3)) for _ in range(3))
    heads, width = groups * each, 2 * draw(st.integers(1, 4))
    sizes: dict[str, Any] = {"hidden_size": heads * width, "num_attention_heads": heads}
    sizes |= {"num_hidden_layers": layers, "intermediate_size": 7}
    sizes["initializer_range"] = draw(st.sampled_from([0.02, 0.1]))
    grouped: dict[str, Any] = {"num_key_value_heads": groups, "head_dim": width}
    family = draw(st.sampled_from(["Bert", "GPT2", "Llama", "Gemma2"]))
    if family == "GPT2":
        del sizes["intermediate_size"]
        divides = draw(st.booleans())
        return transformers.GPT2Config(**sizes, scale_attn_by_inverse_layer_idx=divides)
    if family == "Gemma2":
        sizes["attn_logit_softcapping"] = draw(st.sampled_from([0.5, 50.0]))
        sizes["sliding_window"] = draw(st.integers(1, 6))
        sizes["query_pre_attn_scalar"] = draw(st.integers(1, 9))
        return transformers.Gemma2Config(**sizes, **grouped)
    if family == "Llama":
        return transformers.LlamaConfig(**sizes, **grouped, attention_bias=draw(st.booleans()))
    return transformers.BertConfig(**sizes)


@pytest.fixture(scope="module")
def tokenizer(real_model: str) -> Any:
    """The words of BERT."""
    return make_tokenizer("wordpiece", real_model)


def model_of(config: Any, tokenizer: Any) -> Any:
    """A model with random weights."""
    from transformers import AutoModel

    config.vocab_size, config.pad_token_id = len(tokenizer), 0
    torch.manual_seed(0)
    return AutoModel.from_config(config, attn_implementation="eager").eval()


@settings(max_examples=25)
@given(config=configurations(), texts=TEXTS, rows=st.integers(1, 9), fused=st.booleans())
def test_weights_are_the_librarys(
    tokenizer: Any, config: Any, texts: list[str], rows: int, *, fused: bool
) -> None:
    """Alone and in any batch, in blocks of any size, eager or fused: those of `output_attentions`."""
    model = model_of(config, tokenizer)
    with torch.no_grad():
        wanted = [
            model(**tokenizer(one, return_tensors="pt"), output_attentions=True).attentions
            for one in texts
        ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "BLOCK_ROWS", rows)
        patch.setattr(pretrained, "EAGER_UP_TO", 0 if fused else 512)
        records, backwards = (
            attend_all(given, attnviz.as_source(model, tokenizer)) for given in (texts, texts[::-1])
        )
    for record, attentions, again in zip(records, wanted, backwards[::-1], strict=True):
        np.testing.assert_allclose(record.weights, torch.cat(attentions).numpy(), rtol=0, atol=1e-6)
        np.testing.assert_allclose(again.weights, record.weights, rtol=0, atol=1e-6)
