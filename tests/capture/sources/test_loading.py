"""Folders that hold no model, or half of one: one line that says so, and never a picture of random numbers."""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from attnviz.capture.attend import attend
from attnviz.capture.source import open_source
from attnviz.capture.sources.modules import watch
from attnviz.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.fixtures.zoo import Zoo

TEXT = "I love all you"


@pytest.fixture
def folder(zoo: Zoo, tmp_path: Path) -> Path:
    """A copy of tiny DistilBERT, to be broken."""
    return shutil.copytree(zoo.folder("distilbert"), tmp_path / "copy")


def refusal(folder: Path) -> str:
    """The error for a folder, or for a text that its model cannot read, in one printable line."""
    with pytest.raises(ModelError) as refused:
        attend(TEXT, str(folder), device="cpu")
    said = str(refused.value)
    assert said.isprintable()
    return said


def change_config(folder: Path, **changes: Any) -> None:
    """Write something else into config.json."""
    path = folder / "config.json"
    path.write_text(
        json.dumps(json.loads(path.read_text(encoding="utf-8")) | changes), encoding="utf-8"
    )


def change_weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    """Write other weights into model.safetensors."""
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


class TestWeights:
    """model.safetensors, whole, or nothing."""

    def test_pickled(self, folder: Path) -> None:
        """Weights that can run code while they load are not read, even where there are no others."""
        torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
        (folder / "model.safetensors").unlink()
        assert "has no model.safetensors: attnviz reads safetensors only" in refusal(folder)

    @pytest.mark.parametrize(
        "name", ["weights.bin", "../copy/other.safetensors", 7, r"..\a.safetensors"]
    )
    def test_an_index_of_other_files(self, folder: Path, name: object) -> None:
        """Neither a pickle, nor a file outside the folder."""
        weights = folder / "model.safetensors"
        index = {"weight_map": dict.fromkeys(load_file(weights), name)}
        weights.rename(folder / "other.safetensors")
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
        assert "attnviz reads safetensors only" in refusal(folder)

    def test_missing(self, folder: Path) -> None:
        """Where the library would fill in random numbers, attnviz refuses, and says which."""
        change_weights(
            folder, lambda weights: weights.pop("transformer.layer.3.attention.q_lin.weight")
        )
        assert refusal(folder) == (
            f"{folder.parent.name}/copy lacks 1 of its weights (transformer.layer.3.attention.q_lin.weight, ...): the "
            "library would fill them with random numbers, and the picture would not be the model"
        )

    def test_damaged(self, folder: Path) -> None:
        """One NaN in the weights of layer 2, and the receipt refuses the whole."""

        def damage(weights: dict[str, torch.Tensor]) -> None:
            weights["transformer.layer.2.attention.v_lin.weight"][7, 11] = torch.nan

        change_weights(folder, damage)
        assert re.search("layer 2 is not verified: .* its weights may be damaged", refusal(folder))


class TestOtherFiles:
    """The rest of the folder."""

    def test_no_tokenizer(self, folder: Path) -> None:
        """A model without its tokenizer cannot read text: the library would make one to which every word is unknown."""
        for file in folder.glob("*token*"):
            file.unlink()
        assert " has no vocabulary (no tokenizer.json, vocab.txt or the like)" in refusal(folder)

    @pytest.mark.parametrize("name", ["config.json", "additional_chat_templates/tool.jinja"])
    def test_a_pipe(self, folder: Path, name: str) -> None:
        """A pipe, which could be read forever, is refused by name, whatever file it stands for."""
        path = folder / name
        path.unlink(missing_ok=True)
        path.parent.mkdir(exist_ok=True)
        os.mkfifo(path)
        assert f"its {path.name} is not a regular file" in refusal(folder)

    def test_a_device(self, folder: Path) -> None:
        """A link to a device that never ends is refused too, but not a link to nothing."""
        (folder / "merges.txt").symlink_to(folder / "gone")
        open_source(str(folder), device="cpu")
        (folder / "vocab.txt").unlink(missing_ok=True)
        (folder / "vocab.txt").symlink_to("/dev/zero")
        assert "its vocab.txt is not a regular file" in refusal(folder)

    def test_an_adapter(self, folder: Path) -> None:
        """An adapter of PEFT is no model, not even beside a whole one."""
        adapter = folder.parent / "adapter"
        adapter.mkdir()
        for place in (adapter, folder):
            (place / "adapter_config.json").touch()
            assert "holds an adapter: merge it with its base model" in refusal(place)

    def test_sizes_of_no_model(self, folder: Path) -> None:
        """They would take hours, and all memory, to build."""
        change_config(folder, num_labels=10**7)
        assert refusal(folder).endswith("its num_labels is 10000000, which no model has")
        change_config(folder, n_layers=10**6)
        assert refusal(folder).endswith("its n_layers is 1000000, which no model has")

    def test_code(self, folder: Path, tmp_path: Path) -> None:
        """Code that comes with a model does not run unless it is allowed to, and the option is named."""
        trace = tmp_path / "ran"
        (folder / "own.py").write_text(f"open({str(trace)!r}, 'w').close()", encoding="utf-8")
        change_config(
            folder,
            model_type="own",
            auto_map={"AutoConfig": "own.Config", "AutoModel": "own.Model"},
        )
        assert "code of its own, which is not run unless you trust it: --trust-remote" in refusal(
            folder
        )
        assert not trace.exists()


def plant(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A library that would load kernels from the hub; what it is asked for is listed."""
    from transformers.integrations import hub_kernels

    asked: list[str] = []

    def get_kernel(name: str, **_: Any) -> object:
        asked.append(name)
        raise ValueError("planted")

    monkeypatch.setattr(hub_kernels, "is_kernels_available", lambda: True)
    monkeypatch.setattr(hub_kernels, "get_kernel", get_kernel)
    return asked


KERNEL = "somebody/kernel"


@pytest.mark.parametrize(
    ("file", "named"),
    [
        ("config.json", {"attn_implementation": KERNEL}),
        ("config.json", {"_attn_implementation": KERNEL}),
        ("config.json", {"_attn_implementation_internal": KERNEL}),
        ("config.json", {"attn_implementation": {"": "sdpa", "text_config": KERNEL}}),
        ("config.json", {"parts": [{"deep": {"_attn_implementation": f"{KERNEL}@main:x"}}]}),
        ("tokenizer_config.json", {"attn_implementation": f"paged|{KERNEL}"}),
        ("processor_config.json", {"text_config": {"attn_implementation": KERNEL}}),
    ],
)
def test_kernels_are_refused(
    folder: Path, file: str, named: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever a file names it, it is refused by name, and nothing is asked of the hub."""
    asked = plant(monkeypatch)
    path = folder / file
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.write_text(json.dumps(before | named), encoding="utf-8")
    said = refusal(folder)
    assert f"its {file} names the attention " in said
    assert KERNEL in said
    assert asked == []


class TestOtherSenses:
    """Models that read no text, or not text alone; others that are refused."""

    SIZES: ClassVar = {"hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 2}

    def refused(self, kind: str, folder: Path, zoo: Zoo, **sizes: Any) -> str:
        """The error for a tiny model of the library's, with a tokenizer."""
        import transformers

        config = getattr(transformers, f"{kind}Config")(**sizes)
        getattr(transformers, f"{kind}Model")(config).save_pretrained(folder)
        zoo.library("distilbert")[0].save_pretrained(folder)
        said = refusal(folder)
        assert "attnviz.watch(model)" in said
        return said

    def test_pictures(self, tmp_path: Path, zoo: Zoo) -> None:
        """ViT reads pictures: said before its weights are loaded, and whether or not there is a tokenizer."""
        said = self.refused("ViT", tmp_path, zoo, image_size=32, **self.SIZES)
        assert " reads pictures, and attnviz runs models on text alone: " in said
        for file in tmp_path.glob("*token*"):
            file.unlink()
        assert refusal(tmp_path) == said

    def test_pictures_and_text(self, tmp_path: Path, zoo: Zoo) -> None:
        """CLIP reads both at once."""
        sizes = {**self.SIZES, "vocab_size": 30522, "bos_token_id": 101, "eos_token_id": 102}
        vision = {**self.SIZES, "image_size": 32}
        said = self.refused("CLIP", tmp_path, zoo, text_config=sizes, vision_config=vision)
        assert " reads pictures too, and cannot be run on text alone: " in said


class TestTwoVocabularies:
    """Translators that generate words of another vocabulary than they read."""

    def test_fsmt(self, tmp_path: Path, zoo: Zoo) -> None:
        """FSMT is refused, in a folder (with or without its tokenizer's package) and in memory; `watch` shows it."""
        import transformers

        sizes: dict[str, Any] = {"src_vocab_size": 14, "tgt_vocab_size": 12, "d_model": 24}
        for side in ("encoder", "decoder"):
            sizes |= {f"{side}_layers": 2, f"{side}_attention_heads": 3, f"{side}_ffn_dim": 20}
        config = transformers.FSMTConfig(langs=["en", "de"], **sizes)
        model = transformers.FSMTForConditionalGeneration(config).eval()
        model.save_pretrained(tmp_path / "fsmt")
        reason = "reads words of one vocabulary and generates those of another"
        assert reason in refusal(tmp_path / "fsmt")
        with pytest.raises(ModelError, match=reason):
            attend(TEXT, model, zoo.library("gpt2")[0])
        with watch(model) as seen, torch.no_grad():
            ids, target = torch.tensor([[4, 5, 6, 2]]), torch.tensor([[2, 4, 5]])
            output = model(ids, decoder_input_ids=target, output_attentions=True)
        record = seen.attention(list("abc"), list("ABCD"), kind="cross")
        own = torch.stack(output.cross_attentions)[:, 0]
        assert np.allclose(record.weights, own.numpy(), atol=1e-6)

    def test_marian(self, zoo: Zoo) -> None:
        """Marian with two vocabularies, whose tokenizer says so."""
        tokenizer = copy.copy(zoo.library("marian")[0])
        tokenizer.separate_vocabs = True
        with pytest.raises(ModelError, match="reads words of one vocabulary"):
            attend(TEXT, zoo.whole("marian"), tokenizer)
