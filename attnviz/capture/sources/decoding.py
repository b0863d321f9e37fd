"""Decoding: a model continues a text token by token, and each new row of attention is verified.

Sources: Radford et al. 2018, GPT (https://openai.com/research/language-unsupervised); for the cache of keys and values,
Pope et al. 2022, "Efficiently Scaling Transformer Inference", section 2.1 (https://arxiv.org/abs/2211.05102).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnviz.attention import SOFTMAX, Kind, Receipt, Token
from attnviz.capture.observers import CPU, Batch, Observer, Sentence
from attnviz.capture.sources.interface import show_layers
from attnviz.capture.sources.loading import as_model_error
from attnviz.capture.sources.modules import FunctionalRecorder
from attnviz.capture.sources.tracing import AttentionTracer, trace_attention
from attnviz.capture.stream import ForwardPass
from attnviz.errors import InputError, ModelError, NoAttentionError, TooLongError


@dataclass(slots=True, kw_only=True)
class Decoding:
    """A text that a model continues, and reads again from its start at each step."""

    name: str  # the model's name in pictures
    sentence: Sentence  # the prompt, or the sentence to translate
    kind: Kind  # ``decoder``, whose keys are the text so far, or ``cross``
    # The ids that the decoder reads first: the prompt, or the start token of an encoder-decoder.
    begin: tuple[int, ...]
    room: int | None  # the number of tokens that can follow; None if there is no limit
    text: Callable[[Sequence[int]], str]  # returns the text of generated ids
    tokens: Callable[[Sequence[int]], tuple[Token, ...]]  # returns generated ids as labelled tokens
    # Runs the model over the ids so far, passes its rows to a run, and returns the logits of the next token.
    forward: Callable[[Sequence[int], ForwardPass], Tensor] | None = None
    native: str = "home-built"  # the implementation that runs
    ends: frozenset[int] = frozenset()  # ids that end the text
    never: tuple[int, ...] = ()  # ids that are never chosen
    first: int | None = None  # the id that the generated text must begin with, if any
    # Whether a head has a sink, so that its rows may sum to less than 1.
    has_sinks: bool = False
    _read: list[int] = field(default_factory=list)  # the ids that the decoder has read so far

    def read(
        self, numbers: Sequence[int], observers: Sequence[Observer]
    ) -> tuple[Float[Tensor, " word"], Receipt]:
        """Read these tokens after all earlier ones; observers see their rows. Return the logits of the next token.

        Raises ModelError: the model cannot be run, or its rows are not verified.
        """
        assert self.forward is not None
        self._read += numbers
        run = self._run(len(self._read), observers)
        # The user's module may store tensors; those made in inference mode could not be used in training afterwards.
        with torch.no_grad():
            logits = self.forward(self._read, run)
        return logits.float().cpu(), run.receipt(self.name)

    def _run(self, n_rows: int, observers: Sequence[Observer]) -> ForwardPass:
        """Return a forward pass that sees the rows of the last `n_rows` tokens."""
        n_keys = len(self._read) if self.kind == "decoder" else len(self.sentence.tokens)
        real, real_keys = (torch.ones(1, n, dtype=torch.bool, device=CPU) for n in (n_rows, n_keys))
        batch = Batch(
            sentences=(self.sentence,), inputs={}, real=real, real_keys=real_keys, kind=self.kind
        )
        return ForwardPass(batch=batch, observers=observers, native=self.native)


def cannot_generate(name: str, *, lacks_words: bool = False) -> ModelError:
    """Return the error for a model that only reads, or that was loaded without its projection to words."""
    reason = (
        "it only reads; models that generate are decoders, such as toy-decoder, gpt2 and Llama, and those that "
        "translate, such as toy-seq2seq and T5"
    )
    if lacks_words:
        reason = (
            "it came without its projection to words; take the model as it was trained to generate (of transformers' "
            "classes AutoModelForCausalLM or AutoModelForSeq2SeqLM)"
        )
    return ModelError(f"{name} generates nothing: {reason}")


def no_template(name: str) -> InputError:
    """Return the error for a chat with a model that has no chat template."""
    return InputError(
        f"{name} has no chat template: without chat it goes on with the text as it is"
    )


def room_of(sentence: Sentence, limit: int | None, n_read: int, name: str) -> int | None:
    """Return how many tokens fit in a model's positions after `n_read` tokens; None if there is no limit.

    Raises TooLongError: no further token fits.
    """
    if sentence.is_cut or (limit is not None and n_read >= limit):
        raise TooLongError(
            f"the prompt takes all the positions of {name}: nothing can follow it; shorten it"
        )
    return None if limit is None else limit - n_read


@dataclass(slots=True, kw_only=True)
class PretrainedDecoding(Decoding):
    """A Hugging Face model that continues a text, with the library's own cache of keys and values."""

    model: Any  # the model with its projection to words
    tokenizer: Any
    source: Tensor | None = None  # the ids that the encoder reads, [1, token]; None for a decoder
    # The kind of attention of each module of an encoder-decoder.
    kinds: dict[nn.Module, Kind | None] = field(default_factory=dict)
    cached: bool = True  # whether the keys and values of earlier tokens are kept, so that each token is read once
    _cache: Any = None
    _cache_name: str = ""  # the model's keyword argument for the cache
    _encoded: Any = None  # the output of the encoder, which runs once
    # Whether the model computes attention outside the transformers interface.
    _is_traced: bool = False
    # The keyword argument that limits the logits to the last token, for models that have one.
    _only_last: dict[str, int] = field(default_factory=dict)

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
        accepted = inspect.signature(self.model.forward).parameters
        # The keyword argument is called past_key_values until transformers 5.23.
        self._cache_name = "cache" if "cache" in accepted else "past_key_values"
        self.cached = self._cache_name in accepted
        if "logits_to_keep" in accepted:
            self._only_last = {"logits_to_keep": 1}

    def read(
        self, numbers: Sequence[int], observers: Sequence[Observer]
    ) -> tuple[Float[Tensor, " word"], Receipt]:
        """Read tokens and return the logits of the next, as `Decoding.read`."""
        # Models outside the interface are traced, except those that only the interface can tell apart.
        may_trace = not self._read and self.source is None and self.cached
        self._read += numbers
        try:
            return self._watched(numbers, observers)
        except NoAttentionError:
            if not may_trace:
                raise
            self._is_traced, self._cache = True, None
            return self._watched(numbers, observers)

    def _watched(
        self, numbers: Sequence[int], observers: Sequence[Observer]
    ) -> tuple[Tensor, Receipt]:
        """Run the model over new tokens while observers see their rows; return the last logits and the receipt."""
        run = self._run(len(numbers if self.cached else self._read), observers)
        tracing = show_layers(run, self._is_shown)
        if self._is_traced:
            run.native = SOFTMAX
            tracing = trace_attention(AttentionTracer(FunctionalRecorder(run, self.name)))
        with as_model_error(self.name, "go on with this text", run=run), tracing:
            logits = self._forward(numbers)
        if run.left_out:
            raise NoAttentionError(f"{self.name} {run.left_out[0]}")
        self.has_sinks |= run.has_sinks
        return logits.float().cpu(), run.receipt(self.name)

    def _forward(self, numbers: Sequence[int]) -> Float[Tensor, " word"]:
        """Run the model over the new tokens, or over all tokens if there is no cache; return the last logits."""
        from transformers import DynamicCache, EncoderDecoderCache

        new_ids = torch.tensor([numbers if self.cached else self._read], device=self.model.device)
        options: dict[str, Any] = {"use_cache": self.cached, **self._only_last}
        if self.cached:
            if self._cache is None:
                # With a configuration, the cache would drop keys outside a layer's sliding window.
                self._cache = DynamicCache()
                if self.source is not None:
                    self._cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
            options[self._cache_name] = self._cache
        if self.source is None:
            return self.model(input_ids=new_ids, **options).logits[0, -1]  # type: ignore[no-any-return]
        mask = torch.ones_like(self.source)
        if self._encoded is None:
            self._encoded = self.model.get_encoder()(input_ids=self.source, attention_mask=mask)
        output = self.model(
            encoder_outputs=self._encoded, attention_mask=mask, decoder_input_ids=new_ids, **options
        )
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
