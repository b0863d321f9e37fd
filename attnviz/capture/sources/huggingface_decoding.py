"""Decoding by a Hugging Face model, with the library's own cache of keys and values.

Source: Pope et al. 2022, "Efficiently Scaling Transformer Inference", section 2.1 (https://arxiv.org/abs/2211.05102).
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from attnviz.attention import SOFTMAX, Kind, Receipt
from attnviz.capture.observers import Observer
from attnviz.capture.sources.decoding import Decoding, cannot_generate
from attnviz.capture.sources.interface import show_layers
from attnviz.capture.sources.loading import as_model_error
from attnviz.capture.sources.traced import CausalityProbe, trace_model
from attnviz.errors import NoAttentionError


@dataclass(slots=True, kw_only=True)
class PretrainedDecoding(Decoding):
    """A Hugging Face model that continues a text, with the library's own cache of keys and values."""

    model: Any  # the model with its projection to words
    tokenizer: Any
    source: Tensor | None = None  # the ids that the encoder reads, [1, token]; None for a decoder
    # The kind of attention of each module of an encoder-decoder.
    kinds: dict[nn.Module, Kind | None] = field(default_factory=dict)
    cached: bool = False  # whether the keys and values of earlier tokens are kept, so that each token is read once
    _cache: Any = None
    _encoded: Any = None  # the output of the encoder, which runs once
    # Whether the model computes attention outside the transformers interface.
    _is_traced: bool = False
    _accepted: frozenset[str] = frozenset()  # the model's keyword arguments

    def __post_init__(self) -> None:
        settings = self.model.generation_config
        end = settings.eos_token_id
        if end is None:
            end = self.tokenizer.eos_token_id
        self.ends = frozenset(end if isinstance(end, list) else [end]) - {None}
        bad_words = getattr(settings, "bad_words_ids", None) or ()
        suppressed = getattr(settings, "suppress_tokens", None) or ()
        self.never = (*suppressed, *(ids[0] for ids in bad_words if len(ids) == 1))
        self.first = getattr(settings, "forced_bos_token_id", None)
        self._accepted = frozenset(inspect.signature(self.model.forward).parameters)
        self.cached = self._cache_name in self._accepted

    @property
    def _cache_name(self) -> str:
        """The model's keyword argument for the cache, which is called past_key_values until transformers 5.23."""
        return "cache" if "cache" in self._accepted else "past_key_values"

    def read(
        self, numbers: Sequence[int], observers: Sequence[Observer]
    ) -> tuple[Float[Tensor, " word"], Receipt]:
        """Read tokens and return the logits of the next, as `Decoding.read`."""
        # Models outside the interface are traced, except those that only the interface can tell apart.
        may_trace = not self._read and self.source is None
        self._read += numbers
        try:
            return self._watched(numbers, observers)
        except NoAttentionError:
            if not may_trace:
                raise
            self._is_traced, self._cache = True, None
            probe = CausalityProbe()
            found = self._watched(numbers, [*observers, probe])
            if probe.looks_ahead:  # XLNet, whose rows would change with each new token
                raise cannot_generate(self.name) from None
            return found

    def _watched(
        self, numbers: Sequence[int], observers: Sequence[Observer]
    ) -> tuple[Tensor, Receipt]:
        """Run the model over new tokens while observers see their rows; return the last logits and the receipt."""
        new = numbers if self.cached else self._read
        new_ids = torch.tensor([new], device=self.model.device)
        run = self._run(len(new), observers)
        run.may_skip = self.source is None
        tracing = show_layers(run, self._is_shown)
        if self._is_traced:
            run.native = SOFTMAX
            tracing = trace_model(self.model, run, self.name, new_ids)
        with as_model_error(self.name, "go on with this text", run=run), tracing:
            logits = self._forward(new_ids)
        if run.left_out:
            raise NoAttentionError(f"{self.name} {run.left_out[0]}")
        self.has_sinks |= run.has_sinks
        return logits.float().cpu(), run.receipt(self.name)

    def _forward(self, new_ids: Int64[Tensor, "1 token"]) -> Float[Tensor, " word"]:
        """Run the model over the new tokens, or over all tokens if there is no cache; return the last logits."""
        from transformers import DynamicCache, EncoderDecoderCache

        options: dict[str, Any] = {"use_cache": self.cached}
        if "logits_to_keep" in self._accepted:
            options["logits_to_keep"] = 1
        if self.source is not None:
            mask = torch.ones_like(self.source)
            if self._encoded is None:
                self._encoded = self.model.get_encoder()(input_ids=self.source, attention_mask=mask)
                # The cache that some models make has as many layers as the encoder, not the decoder.
                self._cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
            options |= {"encoder_outputs": self._encoded, "attention_mask": mask}
        elif self._cache is not None and "position_ids" in self._accepted:
            # Some models, such as Bamba, would count the positions from 0 again.
            n = len(self._read)
            places = torch.arange(n - new_ids.shape[1], n, device=new_ids.device)
            options["position_ids"] = places[None]
        if self.cached and self._cache is not None:
            options[self._cache_name] = self._cache
        name = "input_ids" if self.source is None else "decoder_input_ids"
        output = self.model(**{name: new_ids}, **options)
        # A decoder makes its cache itself, with what each of its layers keeps; without one it reads all again.
        self._cache = output.get(self._cache_name) if self.cached else None
        self.cached = self._cache is not None
        return output.logits[0, -1]  # type: ignore[no-any-return]

    def _is_shown(self, module: nn.Module, query: Tensor, key: Tensor) -> bool:
        """Return whether a layer is of the kind to show: of an encoder-decoder, the cross-attention."""
        del query
        if self.source is None:
            return True
        is_cross = self.kinds.get(module) == "cross"
        if is_cross and key.shape[2] != self.source.shape[1]:
            raise NoAttentionError(
                f"{self.name}: its cross attention has keys that are not those of the source alone"
            )
        return is_cross
