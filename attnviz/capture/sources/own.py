"""A torch module as a source: a module in memory, or the result of a function in the user's file."""

from __future__ import annotations

import copy
import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from attnviz.attention import SOFTMAX, Kind, Note, Receipt
from attnviz.capture.batching import batch_of_one
from attnviz.capture.observers import Batch, Observer, Sentence
from attnviz.capture.projections import show_calls
from attnviz.capture.sources import Source, expect_kind
from attnviz.capture.sources.decoding import Decoding, no_template
from attnviz.capture.sources.hub import first_line
from attnviz.capture.sources.loading import as_model_error, evaluated
from attnviz.capture.sources.tokens import (
    generated_tokens,
    meaning,
    n_tokens,
    notes_on,
    own_tokens,
)
from attnviz.capture.sources.traced import CausalityProbe, trace_model
from attnviz.capture.stream import ForwardPass, digest_of
from attnviz.errors import InputError, ModelError, TooLongError, UnknownModelError
from attnviz.text.display import visible
from attnviz.text.suggest import suggest


def build(file: str, name: str) -> tuple[nn.Module, object]:
    """Run a file of code and its function `name`; return the function's torch module, and its tokenizer or None."""
    path, file_name = Path(file).expanduser(), visible(file)
    code = ModuleType(f"attnviz_own_{path.stem}")
    code.__file__ = str(path)
    sys.modules[code.__name__] = code  # pickle and dataclasses look up classes there
    # Let the code import files in its own folder, as under `python file.py`.
    folder = str(path.parent.resolve())
    sys.path.insert(0, folder)
    try:
        with as_model_error(file_name, "be run", is_typed=True):
            exec(compile(path.read_bytes(), path, "exec"), vars(code))
            function = getattr(code, name, None)
            if not callable(function):
                values = vars(code).items()
                names = [
                    key
                    for key, value in values
                    if getattr(value, "__module__", "") == code.__name__
                ]
                problem = f"say which function of {file_name} is called"
                if name:
                    problem = f"there is no function {visible(name)} in {file_name}"
                raise UnknownModelError(f"{problem}{suggest(name, names)}")
            result = function()
    finally:
        sys.path.remove(folder)
    module, tokenizer = result if isinstance(result, tuple) and len(result) == 2 else (result, None)
    if not isinstance(module, nn.Module):
        raise ModelError(
            f"{name}() in {file_name} returns no torch module but a {type(module).__name__}: expected a module, or "
            "(module, tokenizer)"
        )
    return module, tokenizer


def _further_inputs(module: nn.Module, ids: Int64[Tensor, "batch token"]) -> dict[str, Tensor]:
    """Return the inputs that a module requires beside the ids, as a tokenizer of transformers makes them."""
    usual = {"attention_mask": torch.ones_like(ids), "token_type_ids": torch.zeros_like(ids)}
    parameters = inspect.signature(module.forward).parameters
    return {
        name: tensor
        for name, tensor in usual.items()
        if name in parameters and parameters[name].default is inspect.Parameter.empty
    }


def _model_inside(module: nn.Module) -> str | None:
    """Return the code for the transformers model inside a module, such as ``model.base_model``; None without one."""
    library = sys.modules.get("transformers")
    for path, part in module.named_modules():
        if path and library is not None and isinstance(part, library.PreTrainedModel):
            return "model" + re.sub(r"\.(\d+)", r"[\1]", f".{path}")
    return None


class ModuleSource(Source):
    """Any torch module that takes token ids [batch, token]; it is left unchanged.

    The tokenizer has ``encode(text)``, which returns ids, and ``decode(ids)``, or is a Hugging Face tokenizer. Without
    a tokenizer, the module reads the bytes of a text. Raises ModelError: the tokenizer lacks these methods.
    """

    takes_padding = False

    def __init__(self, name: str, module: nn.Module, tokenizer: Any = None) -> None:
        self.name = name
        self._module, self._tokenizer = module, tokenizer
        # A module does not declare its kind; `_find_kind` sets it from the weights of the first sentence.
        self.kinds: tuple[Kind, ...] = ("encoder",)
        self._has_run = False
        if tokenizer is not None and not (
            hasattr(tokenizer, "encode") and hasattr(tokenizer, "decode")
        ):
            raise ModelError(
                f"a tokenizer has encode(text) and decode(numbers), but a {type(tokenizer).__name__} not"
            )
        devices = (parameter.device for parameter in module.parameters())
        self._device = next(devices, torch.device("cpu"))

    def _read(self, text: str, pair: str | None, target: str | None, kind: Kind | None) -> Batch:
        """Return a batch of one sentence."""
        if pair is not None:
            raise InputError(
                f"{self.name} is a module of your own: it reads one sentence, and no pair"
            )
        sentence = self._sentence(text)
        numbers = [token.id or 0 for token in sentence.tokens]
        self._find_kind(numbers)  # sets `kinds`, which `expect_kind` reads
        expect_kind(self, kind, target)
        ids = torch.tensor([numbers], device=self._device)
        return batch_of_one(sentence, {"input_ids": ids})

    def _find_kind(self, numbers: Sequence[int]) -> None:
        """Run the module once to find out whether any token attends to a later one, and set `kinds`."""
        if self._has_run:
            return
        # One token attends to itself alone, which shows no kind: probe with it twice.
        probed = [*numbers] if len(numbers) > 1 else [*numbers, *numbers]
        ids = torch.tensor([probed], device=self._device)
        probe, real = CausalityProbe(), torch.ones_like(ids, dtype=torch.bool)
        batch = Batch(sentences=(), inputs={"input_ids": ids}, real=real, real_keys=real)
        self.stream(batch, [probe])
        self.kinds = ("encoder",) if probe.looks_ahead else ("decoder",)
        self._has_run = True

    def _sentence(self, text: str) -> Sentence:
        """Return the tokenized text. Raises InputError: the tokenizer fails, or finds no token."""
        try:
            tokens = own_tokens(self._tokenizer, text)
        except Exception as error:
            raise InputError(
                f"the tokenizer of {self.name} cannot read this text: {type(error).__name__}: {first_line(error)}"
            ) from error
        if not tokens:
            raise InputError(
                f"the tokenizer of {self.name} finds no token in this text: {visible(text)[:40]!r}"
            )
        notes = notes_on(self._tokenizer, tokens, text)
        if self._tokenizer is None:
            notes = (Note("reads_bytes"),)
        return Sentence(text=text, pair=None, tokens=tokens, notes=notes)

    def stream(self, batch: Batch, observers: Sequence[Observer]) -> Receipt:
        """Run the module and trace the torch functions that it calls."""
        if not batch.real.all():
            raise ModelError(
                f"{self.name} is a module of your own, and nothing tells it where padding is: give it sentences of one "
                "length, or one alone"
            )
        run = ForwardPass(batch=batch, observers=observers, native=SOFTMAX)
        with show_calls(self._module, observers):
            self._run(batch.inputs["input_ids"], run)
        self.has_sinks, self.n_left_out = run.has_sinks, len(run.left_out)
        return run.receipt(self.name)

    def _run(self, ids: Int64[Tensor, "batch token"], run: ForwardPass) -> Any:
        """Run the module on token ids while its attention goes to a run, and return its output."""
        try:
            with (
                as_model_error(self.name, "be run on this text", run=run, is_typed=True),
                evaluated(self._module),
                torch.no_grad(),
                trace_model(self._module, run, self.name, ids),
            ):
                return self._module(ids, **_further_inputs(self._module, ids))
        except ModelError as error:
            hint, inside = None, _model_inside(self._module)
            if self._tokenizer is None and isinstance(error.__cause__, IndexError):
                hint = (
                    f"without a tokenizer it reads the bytes of the text, up to {int(ids.max())}, and its vocabulary "
                    "may be smaller: give its tokenizer too"
                )
            elif inside is not None and error.__cause__ is not None:
                hint = f"give the transformers model inside it instead, model={inside}"
            if hint is None:
                raise
            raise ModelError(f"{error}; {hint}") from error.__cause__

    @contextmanager
    def decoding(self, text: str, *, chat: bool, most: int) -> Iterator[Decoding]:
        """Let the module continue a text, by its logits."""
        del most  # the limit of a module is unknown
        if chat:
            raise no_template(self.name)
        sentence = self._sentence(text)
        numbers = [token.id or 0 for token in sentence.tokens]
        self._find_kind(numbers)
        if self.kinds != ("decoder",):
            raise ModelError(
                f"{self.name} generates nothing: its tokens look at later ones too; models that generate are decoders, "
                "in which each token looks at those before it"
            )
        end = getattr(self._tokenizer, "eos_token_id", None)
        yield Decoding(
            name=self.name,
            sentence=sentence,
            kind="decoder",
            begin=tuple(numbers),
            room=None,
            ends=frozenset(() if end is None else (end,)),
            native=SOFTMAX,
            tokens=partial(generated_tokens, self._tokenizer),
            text=partial(meaning, self._tokenizer),
            forward=partial(self._next, len(numbers)),
        )

    def _next(self, n_first: int, read: Sequence[int], run: ForwardPass) -> Float[Tensor, " word"]:
        """Return the logits of the token after those in `read`; the prompt, of `n_first` tokens, has run before.

        Raises TooLongError: the module fails on this many tokens, but did not fail on the prompt.
        """
        ids = torch.tensor([read], device=self._device)
        try:
            output = self._run(ids, run)
        except ModelError as error:
            if error.__cause__ is None or len(read) == n_first:
                raise
            reason = f"{type(error.__cause__).__name__}: {first_line(error.__cause__)}"
            raise TooLongError(
                f"{self.name} reads no more than {len(read) - 1:,} tokens ({reason})"
            ) from error
        return self._logits(output)

    def _logits(self, output: Any) -> Float[Tensor, " word"]:
        """Return the logits of the last token in a module's output: a tensor, a tuple with it, or an object's `logits`.

        There may be more logits than the vocabulary has tokens: one per word vector of a padded table.
        """
        first = output[0] if isinstance(output, tuple | list) and output else output
        logits = getattr(first, "logits", first)
        n_words = n_tokens(self._tokenizer)
        tables = [part for part in self._module.modules() if isinstance(part, nn.Embedding)]
        sizes = {n_words, *(table.num_embeddings for table in tables)}
        shape = tuple(getattr(logits, "shape", ()))
        has_logits = len(shape) == 3 and shape[-1] in sizes and shape[-1] >= (n_words or 0)
        if has_logits and isinstance(logits, Tensor):
            return logits[0, -1, :n_words]
        result = f"the shape {shape}" if shape else type(logits).__name__
        size = "" if n_words is None else f" of {n_words:,} tokens"
        raise ModelError(
            f"{self.name} generates nothing: it returns {result}, no logits over its vocabulary{size}"
        )

    def digest(self) -> str:
        """Return a digest of the bytes of all weights, which identifies the model."""
        return digest_of(self._module)

    def untrained(self, seed: int = 0) -> ModuleSource:
        """Return the same module with initial weights, drawn by its layers from a seed."""
        module = copy.deepcopy(self._module)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            for path, part in module.named_modules():
                # In nn.MultiheadAttention and nn.Transformer this method is private.
                private = getattr(part, "_reset_parameters", None)
                if reset := getattr(part, "reset_parameters", private):
                    reset()
                elif next(part.parameters(recurse=False), None) is not None:
                    raise ModelError(
                        f"{self.name} cannot be made anew: {path or type(part).__name__} has no reset_parameters()"
                    )
        untrained_source = copy.copy(self)
        untrained_source.name, untrained_source._module = f"{self.name} with random weights", module
        return untrained_source
