"""Pretrained encoder-decoders: what they generate, freely or by teacher forcing, and which attention is which.

Source: the three uses of attention in Vaswani et al. 2017, section 3.2.3 (https://arxiv.org/abs/1706.03762).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from attnviz.attention import GENERATED, Kind, Note, Token
from attnviz.capture.batching import GeneratedText, join_generations, pad_rows
from attnviz.capture.observers import Batch
from attnviz.capture.sources.interface import watch
from attnviz.capture.sources.loading import in_one_line, limit_of, quiet
from attnviz.capture.sources.tokens import generated_tokens, meaning
from attnviz.errors import InputError, ModelError, NoAttentionError, TooLongError
from attnviz.text.display import visible

CROSS_NAMES = {"encoderattn", "encdecattention", "crossattention", "crossattn"}
SELF_NAMES = {"selfattn", "selfattention", "attention"}
"""What the library calls a decoder's two attentions: parts of their modules' names, in small letters, without _."""
AT_MOST = 128  # how many tokens a model generates freely before it is stopped
GREEDY = {
    "do_sample": False, "num_beams": 1, "num_return_sequences": 1, "early_stopping": False, "max_length": None,
    "max_time": None, "min_length": 0, "min_new_tokens": None, "no_repeat_ngram_size": 0, "repetition_penalty": 1.0,
    "length_penalty": 1.0, "forced_eos_token_id": None, "stop_strings": None, "guidance_scale": None,
    "return_dict_in_generate": False, "use_cache": False,
}  # fmt: skip
"""How a model generates the likeliest token at each step and nothing else. What it may never generate, and what it must
begin with (the language that it translates into), stay as its own settings have them. The library's cache is left out:
of some models it is as deep as the encoder, not the decoder."""


class Generator:
    """A whole encoder-decoder of the library's, with its tokenizer.

    It generates freely with its `native` implementation, if the projection to its words is its own (`has_head`).
    """

    def __init__(self, name: str, tokenizer: Any, model: Any, *, native: str, has_head: bool) -> None:
        self._name, self._tokenizer, self._model = name, tokenizer, model
        self._native, self.has_head = native, has_head
        self._limit = limit_of(model.get_decoder(), tokenizer)
        self._kinds = kinds_of(model)

    def generate(self, batch: Batch, targets: Sequence[str | None], kind: Kind, *, truncate: bool) -> Batch:
        """The batch with what is generated: the target where there is one, the model's own words where there is none.

        Raises InputError: there is no token in a target; TooLongError: it has more than the decoder has positions, and
        may not be truncated; ModelError: the model cannot generate freely, or cannot be forced to a target.
        """
        source, real_source = batch.inputs["input_ids"], batch.real
        generations = [
            self._free(row[is_token]) if target is None else self._forced(target, truncate=truncate)
            for row, is_token, target in zip(source, real_source, targets, strict=True)
        ]
        rows = [[token.id or 0 for token in one.read] for one in generations]
        read, real_target = pad_rows(rows, source.device, self._tokenizer.pad_token_id or 0)
        inputs = {**batch.inputs, "decoder_input_ids": read, "decoder_attention_mask": real_target.long()}
        return join_generations(batch.sentences, generations, kind, "token", inputs, real=(real_source, real_target))

    def is_shown(self, module: nn.Module, query: Tensor, key: Tensor, batch: Batch) -> bool:
        """Whether a layer with these queries and keys is of the batch's kind, or NoAttentionError: it is not clear."""
        kind = self._kinds.get(module)
        n_source, n_target = batch.inputs["input_ids"].shape[1], batch.inputs["decoder_input_ids"].shape[1]
        expected = {"encoder": (n_source,) * 2, "cross": (n_target, n_source), "decoder": (n_target,) * 2}
        if kind is None or expected[kind] != (query.shape[2], key.shape[2]):
            named = next((name for name, other in self._model.named_modules() if other is module), "a layer")
            raise NoAttentionError(
                f"{self._name}: it is not clear what {named} looks at: its keys are neither those of the source alone "
                "nor those of what was generated alone"
            )
        return kind == batch.kind

    def _forced(self, target: str, *, truncate: bool) -> GeneratedText:
        """Teacher forcing: the tokens of a target, whatever the model would have generated."""
        encoded = self._tokenizer(text_target=target, verbose=False)
        ids, notes = encoded["input_ids"], tuple[Note, ...]()
        n_tokens = len(ids)
        if self._limit is not None and n_tokens > self._limit:
            if not truncate:
                raise TooLongError(
                    f"the target has {n_tokens:,} tokens, but {self._name} generates at most {self._limit:,}: shorten "
                    "it, or have it cut there (truncate)"
                )
            ids = self._tokenizer(text_target=target, truncation=True, max_length=self._limit)["input_ids"]
            notes = (Note.of("target_truncated", kept=len(ids), total=n_tokens),)
        tokens = generated_tokens(self._tokenizer, ids, target)
        # What another model generated may be its end alone.
        if not tokens or (target and all(token.special for token in tokens)):
            raise InputError(f"{self._name} finds no token in this target: {visible(target)[:40]!r}")
        with in_one_line(self._name, "be forced to a target"):
            read = _read_before(self._model, torch.tensor([ids], device=self._model.device))[0].tolist()
        if read[1:] != ids[:-1]:
            raise ModelError(f"{self._name} cannot be forced to a target: it reads something else than it generated")
        return GeneratedText(text=target, tokens=tokens, read=(self._start(read[0]), *tokens[:-1]), notes=notes)

    def _free(self, source: Tensor) -> GeneratedText:
        """The likeliest token at each step, until the end; a source alone, so that no neighbour changes it."""
        if not self.has_head:
            raise ModelError(
                f"{self._name} was saved without the projection to its words, so it generates nothing freely: give "
                "what it should generate (target)"
            )
        most = min(AT_MOST, self._limit or AT_MOST)
        with in_one_line(self._name, "generate freely"), torch.no_grad(), quiet():
            watch(self._model, self._native)
            self._model.generation_config.update(**GREEDY)
            start, *ids = self._model.generate(
                input_ids=source[None], attention_mask=torch.ones_like(source)[None], max_new_tokens=most
            )[0].tolist()
        end = self._model.generation_config.eos_token_id
        is_over = ids[-1] in (end if isinstance(end, list) else [end])
        notes = () if is_over else (Note.of("generation_stopped", n=most),)
        text = meaning(self._tokenizer, ids)
        tokens = generated_tokens(self._tokenizer, ids, text)
        return GeneratedText(text=text, tokens=tokens, read=(self._start(start), *tokens[:-1]), notes=notes)

    def _start(self, number: int) -> Token:
        piece = self._tokenizer.convert_ids_to_tokens(number) or f"<{number}>"
        return Token(text=visible(piece), piece=piece, id=number, special=True, segment=GENERATED)


def _read_before(model: Any, generated: Tensor) -> Tensor:
    """What a decoder has read before each token that it generates [batch, token], as its own library trains it."""
    if hasattr(model, "prepare_decoder_input_ids_from_labels"):
        return model.prepare_decoder_input_ids_from_labels(labels=generated)  # type: ignore[no-any-return]
    shift, config = sys.modules[type(model).__module__].shift_tokens_right, model.config
    return shift(generated, config.pad_token_id, config.decoder_start_token_id)  # type: ignore[no-any-return]


def kinds_of(model: Any) -> dict[nn.Module, Kind | None]:
    """The kind of attention that each module of an encoder-decoder would be; None where that is not clear."""
    kinds: dict[nn.Module, Kind | None] = dict.fromkeys(model.get_encoder().modules(), "encoder")
    for name, module in model.get_decoder().named_modules(remove_duplicate=False):
        parts = {part.replace("_", "").lower() for part in name.split(".")}
        kind: Kind | None = "cross" if parts & CROSS_NAMES else "decoder" if parts & SELF_NAMES else None
        if kinds.setdefault(module, kind) != kind:  # encoder and decoder share it
            kinds[module] = None
    return kinds
