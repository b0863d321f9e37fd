"""The library's attention interface, its two traps, and the state of the library, which stays as it was."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from attnviz.capture import stream
from attnviz.capture.attend import attend, attend_all
from attnviz.capture.source import open_source
from attnviz.capture.sources import huggingface as pretrained
from attnviz.capture.sources import interface
from attnviz.errors import ModelError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fixtures.zoo import Zoo


@pytest.mark.parametrize(
    "name",
    ["distilbert", "roberta", "mistral", "modernbert", "phi3", "qwen3", "gpt2", "olmo2", "bart"],
)
def test_masks_of_rows_are_those_of_all(
    zoo: Zoo, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Padded and with windows: masks that are made a block of rows at a time give what whole masks do, and receipts."""
    monkeypatch.setattr(pretrained, "EAGER_UP_TO", 0)
    source = zoo.source(name)
    wholes = attend_all(zoo.sentences, source)
    monkeypatch.setattr(interface, "LARGE", 0)
    monkeypatch.setattr(interface, "ROWS", 3)
    monkeypatch.setattr(stream, "BLOCK_ROWS", 2)
    for whole, record in zip(wholes, attend_all(zoo.sentences, source), strict=True):
        np.testing.assert_allclose(record.weights, whole.weights, rtol=0, atol=1e-6)
    assert len(attend(zoo.sentences[0], source).key_tokens) == len(wholes[0].key_tokens)


@pytest.mark.parametrize("name", ["distilbert", "qwen3", "bart"])
def test_a_model_that_looks_into_its_mask(
    zoo: Zoo, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that needs its mask as a tensor gets it whole, of a long text too, and shows the same weights."""
    monkeypatch.setattr(pretrained, "EAGER_UP_TO", 0)
    monkeypatch.setattr(interface, "LARGE", 0)
    source: Any = zoo.source(name)
    expected = attend_all(zoo.sentences, source)
    sizes = list[int]()

    def look(module: object, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        del module
        for given in (*args, *options.values()):
            if callable(given) or (isinstance(given, torch.Tensor) and given.dtype == torch.bool):
                sizes.append(given[..., :1].ndim)

    layers = [
        module
        for path, module in source._model.named_modules()
        if path.endswith(("attention", "self_attn"))
    ]
    assert layers
    for layer in layers:
        layer.register_forward_pre_hook(look, with_kwargs=True)
    for record, other in zip(attend_all(zoo.sentences, source), expected, strict=True):
        np.testing.assert_array_equal(record.weights, other.weights)
    assert set(sizes) == {4}


@pytest.mark.parametrize("name", ["distilbert", "gpt2", "t5", "llama"])
def test_same_output(zoo: Zoo, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A watched model returns exactly what it returns unwatched."""
    source = zoo.source(name)
    assert isinstance(source, pretrained.PretrainedSource)
    batch = source.encode([zoo.sentences[1]])
    outputs = []
    forward = source._model.forward

    def kept(*given: object, **more: object) -> object:
        outputs.append(forward(*given, **more))
        return outputs[-1]

    source.stream(batch, [])
    monkeypatch.setattr(source._model, "forward", kept)
    source.stream(batch, [])
    _, model = zoo.library(name)
    with torch.inference_mode():
        expected = model(**batch.inputs)
    assert torch.equal(outputs[0].last_hidden_state, expected.last_hidden_state)


@pytest.mark.parametrize("verbosity", [10, 30, 50])
def test_the_library_is_as_it_was(
    zoo: Zoo, tmp_path: Path, verbosity: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """Verbosity, bars and the bars' hook are as before, after a success and a failure; nothing was printed."""
    from huggingface_hub.utils.tqdm import are_progress_bars_disabled
    from transformers.utils import logging

    def mine(factory: Any, given: Any, more: Any) -> Any:
        return factory(*given, **more)

    folder = zoo.folder("distilbert")
    broken = shutil.copytree(folder, tmp_path / "broken")
    (broken / "model.safetensors").write_bytes(b"nothing")
    before = logging.get_verbosity(), logging.set_tqdm_hook(mine)
    logging.set_verbosity(verbosity)
    logging.enable_progress_bar()
    capfd.readouterr()
    attend("I love all you", str(folder), device="cpu")
    with pytest.raises(ModelError):
        open_source(str(broken))
    after = logging.get_verbosity(), logging.set_tqdm_hook(before[1])
    bars = logging.is_progress_bar_enabled(), not are_progress_bars_disabled()
    logging.set_verbosity(before[0])
    logging.disable_progress_bar()  # as the tests have it
    assert after == (verbosity, mine)
    assert bars == (True, True)
    assert capfd.readouterr() == ("", "")
