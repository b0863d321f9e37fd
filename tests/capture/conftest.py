"""Tiny models of many architectures, in folders as their library saves them, and what that library says of each."""

from __future__ import annotations

import inspect
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jaxtyping
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from attnviz.capture.source import Source, open_source

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np

SENTENCES = (
    "I love all you",
    "The animal didn't cross the street because it was too tired",
    "Yes!",
    "나는 너희 모두를 사랑해 🙂",
)
"""Of four lengths, so that a batch of them is padded."""

SIZES = {"hidden_size": 33, "num_attention_heads": 3, "num_hidden_layers": 3, "intermediate_size": 41}
"""The sizes of a tiny model, unless its architecture has other names or needs for them."""

ROTARY = {"hidden_size": 30, "head_dim": 10, "num_attention_heads": 3, "num_key_value_heads": 1, "sliding_window": 5}
"""Positions that turn pairs of numbers need an even width; one key head serves three query heads."""

GROUPED = {"hidden_size": 32, "head_dim": 8, "num_attention_heads": 4, "num_key_value_heads": 2}
"""Likewise, for families that slide no window."""

MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "albert": ("Albert", "wordpiece", {**SIZES, "embedding_size": 13}),
    "bart": (
        "Bart",
        "roberta",
        {"d_model": 33, "encoder_layers": 3, "encoder_attention_heads": 3, "encoder_ffn_dim": 41, "decoder_layers": 1}
        | {"decoder_attention_heads": 3},
    ),
    "bloom": ("Bloom", "gpt2", {"hidden_size": 33, "n_head": 3, "n_layer": 3}),
    "distilbert": ("DistilBert", "wordpiece", {"dim": 33, "n_heads": 3, "n_layers": 5, "hidden_dim": 41}),
    "gemma2": ("Gemma2", "metaspace", {**SIZES, **ROTARY, "attn_logit_softcapping": 0.5}),
    "gpt2": ("GPT2", "gpt2", {"n_embd": 33, "n_head": 3, "n_layer": 5, "n_positions": 61}),
    "gpt_oss": (
        "GptOss",
        "gpt2",
        {**SIZES, **ROTARY, "hidden_size": 32, "intermediate_size": 44, "num_local_experts": 5},
    ),
    "llama": ("Llama", "metaspace", {**SIZES, "hidden_size": 60, "num_attention_heads": 6, "num_key_value_heads": 2}),
    "m2m_100": (
        "M2M100",
        "roberta",
        {"d_model": 30, "encoder_layers": 2, "encoder_attention_heads": 3, "encoder_ffn_dim": 41, "decoder_layers": 2}
        | {"decoder_attention_heads": 3, "decoder_ffn_dim": 37, "decoder_start_token_id": 2},
    ),
    "mamba": ("Mamba", "gpt2", {"hidden_size": 33, "state_size": 5, "num_hidden_layers": 3}),
    "marian": (
        "Marian",
        "roberta",
        {"d_model": 30, "encoder_layers": 2, "encoder_attention_heads": 3, "encoder_ffn_dim": 41, "decoder_layers": 3}
        | {"decoder_attention_heads": 5, "decoder_ffn_dim": 37, "decoder_start_token_id": 1},
    ),
    "mistral": ("Mistral", "metaspace", {**SIZES, **ROTARY}),
    "modernbert": (
        "ModernBert",
        "roberta",
        {**SIZES, "hidden_size": 30, "local_attention": 6, "cls_token_id": 0, "sep_token_id": 2},
    ),
    "mt5": (
        "MT5",
        "metaspace",
        {"d_model": 33, "num_heads": 3, "d_kv": 11, "d_ff": 41, "num_layers": 2, "num_decoder_layers": 3}
        | {"decoder_start_token_id": 1},
    ),
    "olmo2": ("Olmo2", "gpt2", {**SIZES, **GROUPED}),
    "opt": ("OPT", "roberta", {**SIZES, "ffn_dim": 41, "word_embed_proj_dim": 33, "max_position_embeddings": 61}),
    "pegasus": (
        "Pegasus",
        "roberta",
        {"d_model": 30, "encoder_layers": 2, "encoder_attention_heads": 3, "encoder_ffn_dim": 41, "decoder_layers": 2}
        | {"decoder_attention_heads": 3, "decoder_ffn_dim": 37, "decoder_start_token_id": 1},
    ),
    "phi": ("Phi", "gpt2", {**SIZES, "hidden_size": 32, "num_attention_heads": 4}),
    "phi3": ("Phi3", "metaspace", {**SIZES, **GROUPED}),
    "qwen3": ("Qwen3", "gpt2", {**SIZES, **GROUPED}),
    "roberta": ("Roberta", "roberta", {**SIZES, "max_position_embeddings": 514}),
    "starcoder2": ("Starcoder2", "gpt2", {**SIZES, **GROUPED}),
    "t5": (
        "T5",
        "metaspace",
        {"d_model": 33, "num_heads": 3, "d_kv": 11, "d_ff": 41, "num_layers": 3, "decoder_start_token_id": 1},
    ),
    "xlm_roberta": ("XLMRoberta", "metaspace", {**SIZES, "num_hidden_layers": 2, "max_position_embeddings": 514}),
}
"""How each tiny model's classes are called, the kind of its vocabulary, and its sizes."""


class Zoo:
    """Tiny models with random weights, and the real one: each is made, opened and loaded at most once."""

    sentences = SENTENCES

    def __init__(self, root: Path, real_model: str) -> None:
        self.root = root
        self._real_model = real_model
        self.folder = cache(self._folder)
        self.source = cache(self._source)
        self.library = cache(self._load)
        self.whole = cache(self._load_whole)

    def _folder(self, name: str) -> Path:
        if name == "real":
            return Path(self._real_model)
        import transformers

        kind, vocabulary, sizes = MODELS[name]
        tokenizer = make_tokenizer(vocabulary, self._real_model)
        config = getattr(transformers, f"{kind}Config")(
            vocab_size=len(tokenizer),
            pad_token_id=tokenizer.pad_token_id,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
            **sizes,
        )
        folder = self.root / name
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(7)
            model = getattr(transformers, f"{kind}Model")(config)
            for parameter in model.parameters():
                if parameter.ndim > 1:  # the library's own choice is so small that all attention is flat
                    torch.nn.init.xavier_uniform_(parameter, gain=0.7 if name in {"t5", "mt5"} else 1.1)
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return folder

    def _source(self, name: str, dtype: str = "auto") -> Source:
        return open_source(str(self.folder(name)), device="cpu", dtype=dtype)

    def _load(self, name: str) -> tuple[Any, Any]:
        import transformers

        tokenizer = transformers.AutoTokenizer.from_pretrained(self.folder(name))
        tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
        tokenizer.padding_side = "right"
        model = transformers.AutoModel.from_pretrained(self.folder(name), attn_implementation="eager")
        return tokenizer, model.get_encoder() if model.config.is_encoder_decoder else model

    def _load_whole(self, name: str) -> Any:
        import transformers

        return transformers.AutoModelForSeq2SeqLM.from_pretrained(self.folder(name), attn_implementation="eager")

    def forced(self, name: str, texts: Sequence[str], targets: Sequence[str]) -> list[dict[str, np.ndarray]]:
        """What `output_attentions=True` gives of an encoder-decoder that is told what to say, for one batch.

        The library itself makes what the decoder reads of the targets.

        Returns:
            For each sentence and kind, [layer, head, query, key] without its padding.
        """
        tokenizer, _ = self.library(name)
        encoded = tokenizer(list(texts), padding=True, return_tensors="pt")
        labels = tokenizer(text_target=list(targets), padding=True, return_tensors="pt")
        said = labels["input_ids"].masked_fill(labels["attention_mask"] == 0, -100)
        with torch.inference_mode():
            made = self.whole(name)(
                input_ids=encoded["input_ids"],
                attention_mask=encoded["attention_mask"],
                labels=said,
                output_attentions=True,
            )
        kinds = (("encoder", 0, 0), ("cross", 1, 0), ("decoder", 1, 1))
        whole = {kind: torch.stack(made[f"{kind}_attentions"]).numpy() for kind, _, _ in kinds}
        sizes = [one["attention_mask"].sum(dim=1).tolist() for one in (encoded, labels)]
        return [
            {kind: whole[kind][:, index, :, : sizes[rows][index], : sizes[keys][index]] for kind, rows, keys in kinds}
            for index in range(len(texts))
        ]

    def eager(self, name: str, *texts: str, pair: str | None = None) -> list[np.ndarray]:
        """What `output_attentions=True` gives, without attnviz, for sentences of one batch.

        Returns:
            For each, [layer, head, query, key] without its padding.
        """
        tokenizer, model = self.library(name)
        encoded = tokenizer(list(texts), pair and [pair], padding=True, return_tensors="pt")
        accepted = inspect.signature(model.forward).parameters
        inputs = {name: tensor for name, tensor in encoded.items() if name in accepted}
        with torch.inference_mode():
            attentions = torch.stack(model(**inputs, output_attentions=True).attentions).numpy()
        lengths = encoded["attention_mask"].sum(dim=1).tolist()
        return [attentions[:, index, :, :n, :n] for index, n in enumerate(lengths)]


def make_tokenizer(kind: str, real_model: str) -> Any:
    """A vocabulary of one of the kinds that models have, learned from a few sentences."""
    import transformers

    if kind == "wordpiece":
        return transformers.AutoTokenizer.from_pretrained(real_model)
    names = {"bos": "<s>", "pad": "<pad>", "eos": "</s>", "unk": "<unk>"}
    if kind == "gpt2":
        names = dict.fromkeys(["bos", "eos", "unk"], "<|endoftext|>")
    elif kind == "roberta":
        names |= {"cls": "<s>", "sep": "</s>", "mask": "<mask>"}
    specials = list(dict.fromkeys(names.values()))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=_metaspace(specials) if kind == "metaspace" else _bytelevel(specials),
        **{f"{name}_token": token for name, token in names.items()},
    )


def _bytelevel(specials: list[str]) -> Tokenizer:
    """Bytes as letters, merged: ``Ġ`` is a space, and a Korean syllable or an emoji may be several tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        [*SENTENCES[:3], "나는 모두를 사랑해"],
        trainers.BpeTrainer(
            vocab_size=347,
            special_tokens=specials,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    if "</s>" in specials:
        tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return tokenizer


def _metaspace(specials: list[str]) -> Tokenizer:
    """``▁`` is a space, and what the vocabulary lacks falls back to its bytes, ``<0xED>``."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    every_byte = [f"<0x{byte:02X}>" for byte in range(256)]
    tokenizer.train_from_iterator(
        [*SENTENCES[:3], "사랑해"],
        trainers.BpeTrainer(vocab_size=347, special_tokens=specials + every_byte, show_progress=False),
    )
    whole = json.loads(tokenizer.to_str())
    whole["model"] |= {"byte_fallback": True, "unk_token": "<unk>"}
    whole["added_tokens"] = [token for token in whole["added_tokens"] if token["content"] in specials]
    tokenizer = Tokenizer.from_str(json.dumps(whole))
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A",
        pair="<s> $A </s>:1 $B:1",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    return tokenizer


@pytest.fixture(scope="session")
def zoo(tmp_path_factory: pytest.TempPathFactory, real_model: str) -> Iterator[Zoo]:
    """The tiny models."""
    from transformers.utils import logging

    bars = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    yield Zoo(tmp_path_factory.mktemp("zoo"), real_model)
    if bars:
        logging.enable_progress_bar()


@pytest.fixture
def as_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the tests' own shape checks, which would speak before attnviz's refusals do."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Models this small wait longer for their threads than they compute, most of all where tests run side by side."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
