"""Decoding: a model continues a text token by token, and each new row of attention is verified.

Source: Radford et al. 2018, GPT (https://openai.com/research/language-unsupervised).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from attnviz.attention import Kind, Receipt, Token
from attnviz.capture.observers import CPU, Batch, Observer, Sentence
from attnviz.capture.stream import ForwardPass
from attnviz.errors import InputError, ModelError, TooLongError


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
    if lacks_words:
        reason = (
            "it came without its projection to words; take the model as it was trained to generate (of transformers' "
            "classes AutoModelForCausalLM or AutoModelForSeq2SeqLM)"
        )
    else:
        reason = (
            "it only reads; models that generate are decoders, such as toy-decoder, gpt2 and Llama, and those that "
            "translate, such as toy-seq2seq and T5"
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
