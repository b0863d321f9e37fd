"""Models on a GPU: the same numbers as on the CPU, within bounded memory of the device, of which nothing stays in use.

These tests are collected only where torch finds a CUDA device.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

import attnviz
from attnviz.errors import AttnvizError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attnviz.models.registry import Dtype

GPU = torch.device("cuda")
SENTENCE = "The animal didn't cross the street because it was too tired."


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    """After each test, no memory of the device is in use."""
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    yield
    gc.collect()
    assert torch.cuda.memory_allocated() <= before


def on_gpu(record: attnviz.Attention) -> attnviz.Attention:
    """The record, of a run that used the device."""
    assert torch.cuda.max_memory_allocated() > 0
    return record


def test_auto_is_the_gpu(real_model: str) -> None:
    """Weights of a real model are those of the CPU."""
    on_cpu = attnviz.attend(SENTENCE, model=real_model, device="cpu")
    record = on_gpu(attnviz.attend(SENTENCE, model=real_model))
    assert isinstance(record.weights, np.ndarray)
    np.testing.assert_allclose(record.weights, on_cpu.weights, rtol=0, atol=1e-5)


@pytest.mark.parametrize("model", ["toy", "toy-decoder", "toy-transformer", "toy-seq2seq"])
def test_home_built_models(model: str) -> None:
    """Their weights are those of the CPU."""
    on_cpu = attnviz.attend("I love all you", model=model, device="cpu")
    record = on_gpu(attnviz.attend("I love all you", model=model, device="cuda"))
    np.testing.assert_allclose(record.weights, on_cpu.weights, rtol=0, atol=1e-5)


@pytest.mark.parametrize("model", ["toy", "toy-decoder", "toy-transformer", "real"])
def test_what_is_cut(model: str, real_model: str) -> None:
    """What changes without the attention to each token, and without each head, is what changes on the CPU."""
    opened = real_model if model == "real" else model
    on_cpu, found = (
        attnviz.attribute("I love all you", opened, without_heads=True, device=device)
        for device in ("cpu", "cuda")
    )
    for name in ("weight", "carried", "here", "everywhere", "hidden", "heads", "without_head"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(on_cpu, name), rtol=1e-3, atol=1e-5, err_msg=name
        )


@pytest.mark.parametrize(("dtype", "error"), [("float16", 5e-3), ("bfloat16", 4e-2)])
def test_half_formats(dtype: Dtype, error: float, real_model: str) -> None:
    """They are verified, and differ from float32 by their rounding."""
    exact = attnviz.attend(SENTENCE, model=real_model, device="cpu", dtype="float32")
    record = on_gpu(attnviz.attend(SENTENCE, model=real_model, dtype=dtype))
    np.testing.assert_allclose(record.weights, exact.weights, rtol=0, atol=error)


def test_a_model_in_memory_stays_on_the_device(real_model: str) -> None:
    """It is read where it is."""
    from transformers import AutoModel, AutoTokenizer

    model = AutoModel.from_pretrained(real_model).to(GPU)
    tokenizer = AutoTokenizer.from_pretrained(real_model)
    record = on_gpu(attnviz.attend(SENTENCE, model=model, tokenizer=tokenizer))
    assert {parameter.device.type for parameter in model.parameters()} == {"cuda"}
    assert isinstance(record.weights, np.ndarray)


def test_memory_is_bounded() -> None:
    """The weights of a long text are never on the device as a whole."""
    n_tokens = 6000
    words = " ".join(f"w{number}" for number in range(n_tokens))
    record = on_gpu(attnviz.attend(words, model="toy-random", memory="50MB"))
    n_layers, n_heads = record.weights.shape[:2]
    assert torch.cuda.max_memory_allocated() < n_layers * n_heads * n_tokens**2 * 4 / 4


def test_walkthrough() -> None:
    """Each number of a walkthrough is that of the CPU."""
    walks = [
        attnviz.walkthrough(SENTENCE, model="toy", query="it", device=device)
        for device in ("cpu", "cuda")
    ]
    assert walks[0].grids.keys() == walks[1].grids.keys()
    for name, grid in walks[0].grids.items():
        np.testing.assert_allclose(walks[1].grids[name].values, grid.values, rtol=0, atol=1e-4)


def test_generation() -> None:
    """The same tokens are generated, with the same attention."""
    cpu, gpu = (
        attnviz.generate("The animal", max_new_tokens=8, device=device)
        for device in ("cpu", "cuda")
    )
    assert gpu.key_tokens == cpu.key_tokens
    np.testing.assert_allclose(gpu.weights, cpu.weights, rtol=0, atol=1e-5)


def test_comparison(real_model: str) -> None:
    """Heads have the same scores."""
    texts = [SENTENCE, "You love me.", "I love all of you."]
    cpu, gpu = (
        attnviz.compare_heads(texts, attnviz.open_source(real_model, device=device)).to_frame(
            full=True
        )
        for device in ("cpu", "cuda")
    )
    numbers = cpu.select_dtypes("number").columns
    np.testing.assert_allclose(gpu[numbers], cpu[numbers], rtol=0, atol=1e-3)


def test_not_enough_memory() -> None:
    """The error says so."""
    torch.cuda.set_per_process_memory_fraction(1e-4)
    try:
        with pytest.raises((torch.cuda.OutOfMemoryError, AttnvizError), match="memory"):
            attnviz.attend(
                "I love " * 200, model="toy-random:d_model=1024,n_heads=8", device="cuda"
            )
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
