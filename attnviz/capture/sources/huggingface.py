"""Hugging Face models as a source.

An encoder-decoder also generates text, freely or by teacher forcing, and has three kinds of attention; see Vaswani et
al. 2017, section 3.2.3 (https://arxiv.org/abs/1706.03762).
"""

from __future__ import annotations

import copy
import inspect
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from typing import Any

import torch
from torch import Tensor, nn

from attnviz.attention import GENERATED, SOFTMAX, Kind, Note, Receipt, Token
from attnviz.capture.batching import batch_of_one, join, with_generation
from attnviz.capture.observers import CPU, Batch, Observer, Sentence
from attnviz.capture.projections import WordHead, show_calls
from attnviz.capture.sources import Head, Outputs, Source, expect_kind
from attnviz.capture.sources.axes import tensors_in
from attnviz.capture.sources.chat import render_chat
from attnviz.capture.sources.decoding import cannot_generate, no_template, room_of
from attnviz.capture.sources.hub import Location, first_line
from attnviz.capture.sources.huggingface_decoding import PretrainedDecoding
from attnviz.capture.sources.interface import IsShown, native_of, show_layers, watched
from attnviz.capture.sources.loading import (
    CLASSIFIER,
    EXCLUSIVE,
    WATCH,
    as_model_error,
    base_of,
    check_fit,
    draw,
    has_own_head,
    keep_state,
    limit_of,
    load,
    senses,
    silence_library,
)
from attnviz.capture.sources.tokens import (
    check_words,
    generated_tokens,
    meaning,
    notes_on,
    padding_id,
    pieces_of,
    read_encoding,
    read_tokens,
)
from attnviz.capture.sources.traced import CausalityProbe, trace_model
from attnviz.capture.stream import ForwardPass, digest_of
from attnviz.capture.verification import tolerance_of
from attnviz.errors import AttnvizError, InputError, ModelError, NoAttentionError, TooLongError
from attnviz.releases import input_embeddings, set_attention
from attnviz.text.display import check_text, visible
from attnviz.text.words import assign_words

# The most pairs of query and key in a batch (one text of 1,024 tokens) for which the model's eager implementation runs,
# which gives exactly the numbers of `output_attentions=True`. For more pairs the fused implementation runs; it rounds
# differently, but never holds the full matrix.
EAGER_UP_TO = 2**20
# Names of a decoder's two kinds of attention modules, in lower case and without underscores.
CROSS_NAMES = {"encoderattn", "encdecattention", "crossattention", "crossattn"}
SELF_NAMES = {"selfattn", "selfattention", "attention"}
# The most tokens of the input on which a model is compared with itself while it is watched.
COMPARED = 16
IDS = ("input_ids", "decoder_input_ids")
AT_MOST = 128  # the most tokens that a model generates freely before it is stopped
# The model's own settings that hold when it generates the most likely tokens: which tokens begin and end a text, which
# may never be generated, and which must come first (the language that it translates into).
KEPT_SETTINGS = (
    *("decoder_start_token_id", "bos_token_id", "eos_token_id", "pad_token_id"),
    *("forced_bos_token_id", "bad_words_ids", "suppress_tokens", "begin_suppress_tokens"),
)


def open_pretrained(
    location: Location,
    *,
    device: torch.device,
    dtype: torch.dtype | None = None,
    revision: str | None = None,
    trust_remote_code: bool = False,
    seed: int | None = None,
    head: Head = None,
) -> PretrainedSource:
    """Load a pretrained model; with a seed, load only its configuration and draw random weights.

    Raises ModelError: the model cannot be loaded.
    """
    options = {
        "revision": revision or "main",
        "local_files_only": location.is_local,
        "trust_remote_code": trust_remote_code,
    }
    # Loading may draw random numbers; fork_rng restores the caller's random state.
    loading = as_model_error(location.name, "be loaded", is_on_hub=not location.is_local)
    with loading, silence_library(), torch.random.fork_rng(devices=[]):
        if seed is None:
            tokenizer, model, has_head = load(location, dtype, options, head=head)
        else:
            tokenizer, model, has_head = draw(location, dtype, options, seed)
        model.to(device).eval()
        return PretrainedSource(location.name, tokenizer, model, has_head=has_head)


def from_memory(model: Any, tokenizer: Any) -> PretrainedSource:
    """Return a source for a model in memory, with any head; the model is left unchanged. Raises ModelError."""
    notes = check_fit(model, tokenizer)
    origin = visible(getattr(model.config, "name_or_path", "") or "")
    name = f"{type(model).__name__} in memory{f', from {origin}' if origin else ''}"
    # While another run is active, the model may be switched to a watched implementation; wait until its own is set.
    with EXCLUSIVE:
        return PretrainedSource(
            name, tokenizer, model, has_head=has_own_head(model), notes=notes, owner=model
        )


class PretrainedSource(Source):
    """A pretrained model, run by transformers. A model that the caller owns is left unchanged."""

    def __init__(
        self,
        name: str,
        tokenizer: Any,
        model: Any,
        *,
        has_head: bool,
        notes: tuple[Note, ...] = (),
        owner: Any = None,
    ) -> None:
        """Take a model, with its projection to words if `has_head`; `notes` are shown in all its pictures."""
        self.name, self._is_traced = name, False
        self._needs_whole_masks = False  # whether the model does more with a mask than pass it on
        # Whether short inputs also run the implementation used for long inputs.
        self.is_fused = False
        self._tokenizer, self._owner, self._notes = tokenizer, owner, notes
        self._has_head, self._kinds_of_modules = has_head, dict[nn.Module, Kind | None]()
        self.generates = model.config.is_encoder_decoder and model.can_generate()
        # The model without its head, for an encoder-decoder its encoder; and the whole model, if it generates.
        self._model = base_of(model)
        is_classifier = type(model).__name__.endswith(CLASSIFIER) and self._model is not model
        is_one_of = model.config.problem_type in {None, "single_label_classification"}
        if is_classifier and is_one_of and not model.config.is_encoder_decoder:
            names = tuple(model.config.id2label.values())
            self.classes = names if len(names) > 1 else ()
            self.sorts_one = model.config.get_text_config().pad_token_id is None
        self.mask_id = getattr(tokenizer, "mask_token_id", None)
        self.mask = getattr(tokenizer, "mask_token", None) or self.mask
        keeps_head = has_head or self.generates or bool(self.classes)
        self._full_model: Any = model if keeps_head else None
        self._native, self._device = native_of(self._model), self._model.device
        causal = any(
            getattr(module, "is_causal", False) is True for module in self._model.modules()
        )
        self.kinds: tuple[Kind, ...] = ("decoder",) if causal else ("encoder",)
        if self.generates:
            # A sentence without a target runs only the encoder, because the decoder's attention depends on the
            # generated text.
            self.kinds = ("encoder", "cross", "decoder")
            self._kinds_of_modules = kinds_of(model)
            self._decoder_limit = limit_of(model.get_decoder(), tokenizer)
        self._limit = limit_of(self._model, self._tokenizer)
        self._text_config = self._model.config.get_text_config()
        # Models, and implementations of attention, that compute the same while they are watched.
        self._compared: set[tuple[Any, str]] = set()
        self._accepted = frozenset(inspect.signature(self._model.forward).parameters)

    def _read(self, text: str, pair: str | None, target: str | None, kind: Kind | None) -> Batch:
        """Return a batch of one sentence; an encoder-decoder also generates, for cross attention or with a target."""
        with as_model_error(self.name, "read this text"):
            sentence, encoded = self._sentence(text, pair, may_cut=target is None)
        return self._with_target(sentence, self._inputs(encoded), target, kind)

    def encode_prepared(
        self, prepared: Any, *, kind: Kind | None = None, target: str | None = None
    ) -> Batch:
        """Return a batch of one text that is split into words, or that a tokenizer or processor has read already.

        All inputs that the model takes go to the model, such as pictures or the places of words on a page.
        """
        with as_model_error(self.name, "read these words"):
            if isinstance(prepared, list | tuple) and all(isinstance(one, str) for one in prepared):
                text = " ".join(prepared)
                check_text(text, "the text")
                # With spaces between them: GPT-2's tokenizer would take words alone for one long word.
                sentence, encoded = self._sentence(text, None, may_cut=False)
                check_words(prepared, sentence.tokens)
                in_words = assign_words(sentence.tokens, text, words=prepared)
                sentence = replace(sentence, tokens=in_words)
                return self._with_target(sentence, self._inputs(encoded), target, kind)
            n_known = len(input_embeddings(self._model).weight)
            inputs = read_encoding(prepared, n_known, padding_id(self._tokenizer))
            self._refuse_long(inputs["input_ids"].shape[1])
            places = inputs["attention_mask"][0].nonzero()[:, 0]
            ids = inputs["input_ids"][0, places[0] : places[-1] + 1].tolist()
            text = meaning(self._tokenizer, ids)
            tokens = tuple(
                replace(token, segment=0) for token in generated_tokens(self._tokenizer, ids, text)
            )
        model = self._full_model if self._runs_decoder(kind, target) else self._model
        inputs, notes = self._taken(inputs, model)
        sentence = Sentence(text=text, pair=None, tokens=tokens, notes=(*self._notes, *notes))
        return self._with_target(sentence, inputs, target, kind)

    def _taken(
        self, inputs: dict[str, Tensor], model: Any
    ) -> tuple[dict[str, Tensor], tuple[Note, ...]]:
        """Return the inputs that a model takes, on its device, and a note on the unusual ones.

        Raises InputError: it does not take one that says something.
        """
        accepted = inspect.signature(model.forward).parameters
        refused = [
            name
            for name, tensor in inputs.items()
            if name not in accepted and not _says_nothing(name, tensor)
        ]
        if refused:
            raise InputError(
                f"{self.name} takes no {' and no '.join(refused)}: leave out what it does not take"
            )
        taken = {
            name: tensor.to(self._device) for name, tensor in inputs.items() if name in accepted
        }
        # The digest of a file covers its notes, and with them the numbers of these inputs.
        further = [
            f"{name} ({' x '.join(map(str, tensor.shape))}, #{_digest(tensor)})"
            for name, tensor in taken.items()
            if name not in {"input_ids", "attention_mask", "token_type_ids"}
        ]
        return taken, (Note.of("inputs", names=", ".join(further)),) if further else ()

    def _with_target(
        self, sentence: Sentence, inputs: dict[str, Tensor], target: str | None, kind: Kind | None
    ) -> Batch:
        """Return a batch of one sentence with its generated text, if the model generates one."""
        if not self._runs_decoder(kind, target):
            return batch_of_one(sentence, inputs, "encoder" if self.generates else None)
        if target is None:
            target, first, tokens, notes = self._free(inputs)
            sentence = replace(sentence, notes=(*sentence.notes, *notes))
        else:
            first, tokens = self._forced(target)
        kind = kind or "cross"
        (piece,) = pieces_of(self._tokenizer, [first])
        start = Token(text=visible(piece), piece=piece, id=first, special=True, segment=GENERATED)
        inputs = self._decoder_inputs(inputs, [first, *(token.id or 0 for token in tokens[:-1])])
        sentence = with_generation(sentence, kind, "token", text=target, tokens=tokens, start=start)
        return batch_of_one(sentence, inputs, kind)

    def _runs_decoder(self, kind: Kind | None, target: str | None) -> bool:
        """Return whether text must be generated to show this kind of attention. Raises SelectionError."""
        shown_kind = expect_kind(self, kind, target)
        return self.generates and (shown_kind != "encoder" or target is not None)

    def _decoder_inputs(self, inputs: dict[str, Tensor], read: Sequence[int]) -> dict[str, Tensor]:
        """Return the encoder's inputs, and the ids of the tokens that the decoder reads."""
        ids = torch.tensor([read], device=self._device)
        mask = torch.ones_like(ids)
        return {**inputs, "decoder_input_ids": ids, "decoder_attention_mask": mask}

    def _sentence(
        self, text: str, pair: str | None, *, may_cut: bool = True, **options: Any
    ) -> tuple[Sentence, Any]:
        """Return the tokenized sentence, cut to the model's limit if it may be, and the tokenizer's output."""
        options["return_special_tokens_mask"] = True
        options["return_offsets_mapping"] = self._tokenizer.is_fast
        encoded = self._tokenizer(text, pair, verbose=False, **options)
        n_tokens, notes = len(encoded["input_ids"]), self._notes
        if self._limit is not None and n_tokens > self._limit:
            if not may_cut:
                self._refuse_long(n_tokens)
            options |= {"truncation": True, "max_length": self._limit}
            encoded = self._tokenizer(text, pair, **options)
            kept = len(encoded["input_ids"])
            notes += (Note.of("input_truncated_tokens", kept=kept, total=n_tokens),)
        tokens = read_tokens(self._tokenizer, encoded, text, pair)
        if all(token.special for token in tokens):
            raise InputError(f"{self.name} finds no token in this text: {visible(text)[:40]!r}")
        notes += notes_on(self._tokenizer, tokens, text, pair)
        is_cut = len(tokens) < n_tokens
        return Sentence(text=text, pair=pair, tokens=tokens, notes=notes, is_cut=is_cut), encoded

    def _refuse_long(self, n_tokens: int) -> None:
        """Raise TooLongError if a text of this many tokens is longer than the model or its tokenizer takes."""
        if self._limit is not None and n_tokens > self._limit:
            raise TooLongError(
                f"the text has {n_tokens:,} tokens, but {self.name} takes at most {self._limit:,}: shorten it"
            )

    def stream(self, batch: Batch, observers: Sequence[Observer]) -> Receipt:
        """Run the model; every observer sees every block of rows."""
        return self._stream(batch, observers, self._model)[1]

    def outputs(
        self, batch: Batch, observers: Sequence[Observer], outputs: Outputs
    ) -> tuple[Tensor, Receipt]:
        """Run the model, and return one of its outputs too. Raises ModelError: it predicts no words, or no classes."""
        model, name = self._model, "last_hidden_state"
        if outputs != "vectors":
            model, name = self._full_model or self._owner or self._model, "logits"
        output, receipt = self._stream(batch, observers, model, is_edited=True)
        tensor = getattr(output, name, None)
        if not isinstance(tensor, Tensor) or (outputs == "words" and self.classes):
            head = "MaskedLM" if self.kinds[0] == "encoder" else "CausalLM"
            raise ModelError(
                f"{self.name} predicts no words: open it with its projection to words, as "
                f"transformers.AutoModelFor{head} does"
            )
        return tensor[:, None] if outputs == "classes" else tensor, receipt

    def hidden(self) -> tuple[nn.Embedding, Tensor] | None:
        """Return the table of word vectors, and the vector of the mask token or else the mean of all vectors."""
        table = input_embeddings(self._model)
        if not isinstance(table, nn.Embedding):
            return None
        mask = self.mask_id
        vector = table.weight.mean(dim=0) if mask is None else table.weight[mask]
        return table, vector * getattr(table, "embed_scale", 1.0)

    def _stream(
        self,
        batch: Batch,
        observers: Sequence[Observer],
        model: Any,
        *,
        is_edited: bool = False,
    ) -> tuple[Any, Receipt]:
        """Run a model, and return its output and the receipt; what observers make of its layers may change it.

        If the model's attention does not pass through the library's interface, the model runs a second time while the
        torch functions that it calls are traced; from then on it is always traced.
        """
        # A run of the decoder is never traced: only the interface tells self-attention and cross-attention apart.
        runs_decoder = "decoder_input_ids" in batch.inputs
        if not self._is_traced or runs_decoder:
            try:
                return self._run(batch, observers, model, is_traced=False, is_edited=is_edited)
            except ModelError as error:
                reason = error.__cause__
                if isinstance(reason, AttributeError | TypeError) and not self._needs_whole_masks:
                    # The model may compute with its mask, which for a long text is a function and not a tensor.
                    self._needs_whole_masks = True
                    return self._stream(batch, observers, model, is_edited=is_edited)
                if runs_decoder or not isinstance(error, NoAttentionError):
                    raise
                self._is_traced = True
        if is_edited:
            return super().outputs(batch, observers, "vectors")  # refuses
        return self._run(batch, observers, model, is_traced=True)

    def _run(
        self,
        batch: Batch,
        observers: Sequence[Observer],
        model: Any,
        *,
        is_traced: bool,
        is_edited: bool = False,
    ) -> tuple[Any, Receipt]:
        """Run a model once, traced or through the library's attention interface; return its output and the receipt.

        Raises NoAttentionError: the model fails before its first layer of attention, or has none that can be seen;
        ModelError: it fails later.
        """
        shows: dict[str, IsShown] = {}
        if "decoder_input_ids" in batch.inputs:
            model = self._full_model
            shows["is_shown"] = partial(self._is_of_kind, batch, with_encoder=is_edited)
        elif type(self._text_config) is not type(model.config):  # it reads more than text
            shows["is_shown"] = self._is_of_text
        n_tokens = max(batch.inputs[name].shape[1] for name in IDS if name in batch.inputs)
        is_long = len(batch.real) * n_tokens**2 > EAGER_UP_TO
        native = self._native if self.is_fused or is_long else "eager"
        probe = CausalityProbe()
        if is_traced:
            run = ForwardPass(batch=batch, observers=[*observers, probe], native=SOFTMAX)
            tracing = trace_model(model, run, self.name, batch.inputs)
        else:
            run = ForwardPass(batch=batch, observers=observers, native=native)
            tracing = show_layers(run, **shows, whole_masks=self._needs_whole_masks)
        with self._at_rest(), ExitStack() as stack:
            try:
                if not is_traced:
                    self._expect_unchanged(model, batch.inputs, native)
                    stack.enter_context(watched(model, native))
                stack.enter_context(show_calls(model, run.observers))
                stack.enter_context(tracing)
                output = model(**batch.inputs)
            except AttnvizError:
                raise
            except Exception as error:
                if run.observing:
                    raise
                refusal = ModelError if run.dtypes else NoAttentionError
                raise refusal(self._explain(error, batch, model)) from error
        self.can_be_cut = not is_traced
        self.has_sinks, self.n_left_out = run.has_sinks, len(run.left_out)
        if is_traced and n_tokens > 1:
            self.kinds = ("encoder",) if probe.looks_ahead else ("decoder",)
        return output, run.receipt(self.name)

    def _is_of_text(self, module: nn.Module, _query: Tensor, _key: Tensor) -> bool:
        """Return whether a layer attends to the text, and not to the parts of a picture before they join it."""
        own = getattr(module, "config", self._text_config)
        return isinstance(own, type(self._text_config))

    def _expect_unchanged(self, model: Any, inputs: Mapping[str, Tensor], native: str) -> None:
        """Raise ModelError if a model computes something else while it is watched (once for each implementation)."""
        if (model, native) in self._compared:
            return
        lengths = {inputs[name].shape[1] for name in IDS if name in inputs}
        if all(tensor.ndim > 1 and tensor.shape[1] in lengths for tensor in inputs.values()):
            inputs = {name: tensor[:1, :COMPARED] for name, tensor in inputs.items()}
        set_attention(model, native)
        alone = [*tensors_in([model(**inputs)])]
        with watched(model, native):
            seen = [*tensors_in([model(**inputs)])]
        if len(alone) != len(seen) or not all(map(_is_close, alone, seen)):
            raise ModelError(
                f"{self.name} is refused: it computes something else while it is watched than alone"
            )
        self._compared.add((model, native))

    def _explain(self, error: Exception, batch: Batch, model: Any) -> str:
        """Return in one line why a model fails on a batch."""
        other_inputs = senses(model)
        if other_inputs and isinstance(error, AttributeError | TypeError | ValueError):
            return f"{self.name} reads {other_inputs} too, and cannot be run on text alone: {WATCH}"
        n_known = getattr(model.config.get_text_config(), "vocab_size", math.inf)
        ids = [token.id or 0 for sentence in batch.sentences for token in sentence.tokens]
        if max(ids, default=0) >= n_known:
            return f"the text has token {max(ids)}, but {self.name} knows {n_known} tokens: is this its tokenizer?"
        return f"{self.name} cannot be run on this text: {first_line(error)}"

    @contextmanager
    def decoding(self, text: str, *, chat: bool, most: int) -> Iterator[PretrainedDecoding]:
        """Let the model continue or translate a text; its cache holds the keys and values of the tokens read so far."""
        model = self._full_model
        if model is None or not self._has_head or not has_own_head(model):
            raise cannot_generate(self.name, lacks_words="decoder" in self.kinds)
        options = dict[str, Any]()
        with as_model_error(self.name, "read this text"):
            # In a chat the text is the user's message; the template itself adds the special tokens.
            if chat:
                if not getattr(self._tokenizer, "chat_template", None):
                    raise no_template(self.name)
                options = {"add_special_tokens": False}
                text = render_chat(self._tokenizer, text, self.name)
            sentence, encoded = self._sentence(text, None, **options)
        numbers: tuple[int, ...] = tuple(encoded["input_ids"])
        is_long = self.is_fused or (len(numbers) + most) ** 2 > EAGER_UP_TO
        first_ids, limit, source = numbers, self._limit, None
        if self.generates:
            start = model.generation_config.decoder_start_token_id
            first_ids = (model.config.decoder_start_token_id if start is None else start,)
            limit, source = self._decoder_limit, torch.tensor([numbers], device=self._device)
        decoding = PretrainedDecoding(
            name=self.name,
            sentence=sentence,
            kind="decoder" if source is None else "cross",
            begin=first_ids,
            room=room_of(sentence, limit, len(numbers) if source is None else 0, self.name),
            model=model,
            tokenizer=self._tokenizer,
            text=partial(meaning, self._tokenizer),
            tokens=partial(generated_tokens, self._tokenizer),
            source=source,
            native=self._native if is_long else "eager",
            kinds=self._kinds_of_modules,
        )
        with self._at_rest(), watched(model, decoding.native):
            yield decoding

    @contextmanager
    def _at_rest(self) -> Iterator[None]:
        """Run the model without gradients and messages until the block ends; the caller's model is then as before."""
        # The caller's model may store tensors; those made in inference mode could not be used in training afterwards.
        without_gradients = torch.inference_mode if self._owner is None else torch.no_grad
        with keep_state(self._owner), without_gradients(), silence_library():
            yield

    def word_head(self, kind: Kind) -> WordHead | None:
        """Return the projection from states to words for this kind of attention.

        None for an encoder's attention, if it was not loaded, and if the model caps or scales the logits afterwards.
        """
        config, full_model = self._model.config, self._full_model or self._owner
        transforms = ("final_logit_softcapping", "logit_scale", "logits_scaling")
        is_transformed = any(getattr(config, name, None) for name in transforms)
        if kind == "encoder" or is_transformed or (self.generates and not self._has_head):
            return None
        module: Any = None if full_model is None else full_model.get_output_embeddings()
        if module is None and not self.generates and getattr(config, "tie_word_embeddings", False):
            # A decoder that was loaded without its projection shares the weights of its word vectors.
            module = input_embeddings(self._model)
        if not isinstance(getattr(module, "weight", None), Tensor):
            return None
        bias = getattr(module, "bias", None)
        # BART adds another bias to the logits after the projection.
        final_bias = getattr(full_model, "final_logits_bias", None)
        if final_bias is not None:
            bias = final_bias[0] if bias is None else bias + final_bias[0]
        return WordHead(module=module, bias=bias, names=self.word_names)

    def word_id(self, word: str) -> int:
        """Return the id of a word that the model predicts. Raises InputError: it is no single token."""
        spellings = [
            self._tokenizer(spelling, add_special_tokens=False)["input_ids"]
            for spelling in (f" {word}", word)
        ]
        ids = next((ids for ids in spellings if len(ids) == 1), None)
        if word.strip() and self._tokenizer.unk_token_id in spellings[1]:
            raise InputError(f"{self.name} does not know “{visible(word)}”")
        if ids is None:
            pieces = ", ".join(self.word_names(spellings[0]))
            raise InputError(
                f"“{visible(word)}” is {len(spellings[0])} tokens of {self.name}: {pieces}; give one of them"
            )
        return int(ids[0])

    def word_names(self, numbers: Sequence[int]) -> list[str]:
        """Return tokens as text; a token without visible text is spelled as in the vocabulary."""
        return [
            visible(self._tokenizer.decode([number]).strip()) or visible(piece)
            for number, piece in zip(numbers, pieces_of(self._tokenizer, numbers), strict=True)
        ]

    def random_batches(self, lengths: Sequence[int], seed: int) -> list[Batch]:
        """Return sentences of random token ids, of these lengths, as one batch per kind of attention."""
        random = torch.Generator().manual_seed(seed)
        config, longest = self._model.config, min(max(lengths), self._limit or max(lengths))
        special = {value for name, value in vars(config).items() if name.endswith("_token_id")}
        n_known = len(input_embeddings(self._model).weight)
        ids = torch.tensor([number for number in range(n_known) if number not in special])

        def draw() -> list[list[int]]:
            places = torch.randint(len(ids), (len(lengths), longest), generator=random, device=CPU)
            return [row[:length].tolist() for row, length in zip(ids[places], lengths, strict=True)]

        singles = []
        for row in draw():
            tokens = tuple(Token(text=str(number), piece=str(number), id=number) for number in row)
            sentence = Sentence(text="", pair=None, tokens=tokens)
            singles.append(batch_of_one(sentence, self._inputs({"input_ids": row})))
        if not self.generates:
            return [join(singles)]
        forced = [
            replace(single, inputs=self._decoder_inputs(single.inputs, row))
            for single, row in zip(singles, draw(), strict=True)
        ]
        return [
            replace(join(singles if kind == "encoder" else forced), kind=kind)
            for kind in self.kinds
        ]

    def eager(self, batch: Batch) -> list[Tensor]:
        """Return the weights of the model's own ``output_attentions=True`` for a batch; empty if it returns none.

        There is one tensor per layer, of shape (batch, head, query, key).
        """
        runs_decoder = "decoder_input_ids" in batch.inputs
        model = self._full_model if runs_decoder else self._model
        with self._at_rest(), torch.random.fork_rng(devices=[]):
            try:
                if self._is_traced:
                    # A model outside the attention interface chooses its attention classes when it is built.
                    config, weights = copy.deepcopy(model.config), model.state_dict()
                    config._attn_implementation = "eager"
                    model = type(model)(config).to(self._device, model.dtype).eval()
                    model.load_state_dict(weights)
                set_attention(model, "eager")
                output = model(**batch.inputs, output_attentions=True)
            except Exception:  # a model without an eager implementation may raise any exception
                return []
        name = f"{batch.kind}_attentions" if runs_decoder else "attentions"
        attentions = getattr(output, name, None) or ()
        return [weights.float().cpu() for weights in attentions if isinstance(weights, Tensor)]

    def digest(self) -> str:
        """Return a digest of the bytes of all weights, which identifies the model."""
        return digest_of(self._full_model if self.generates else self._model)

    def untrained(self, seed: int = 0) -> PretrainedSource:
        """Return the same architecture with initial weights, drawn by the library from a seed."""
        untrained_source = copy.copy(self)
        trained_model = self._full_model if self.generates else self._model
        model_class = type(trained_model)
        with silence_library(), torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            with as_model_error(model_class.__name__, "be made anew"):
                # The new model needs its own config, because the library writes the chosen implementation into it.
                new_model = model_class(copy.deepcopy(trained_model.config))
                new_model.to(self._device, trained_model.dtype).eval()
        untrained_source.name = f"{self.name} with random weights"
        untrained_source._owner = None
        untrained_source._model = new_model.get_encoder() if self.generates else new_model
        untrained_source._full_model = new_model if self.generates else None
        untrained_source._has_head = True
        untrained_source._kinds_of_modules = kinds_of(new_model) if self.generates else {}
        return untrained_source

    def _inputs(self, encoded: Any) -> dict[str, Tensor]:
        """Return the tokenizer's output as the inputs that the model accepts, for a batch of one sentence."""
        inputs = {
            name: torch.tensor([values], device=self._device)
            for name, values in encoded.items()
            if name in self._accepted
        }
        if "attention_mask" in self._accepted:
            inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
        return inputs

    def _is_of_kind(
        self,
        batch: Batch,
        module: nn.Module,
        query: Tensor,
        key: Tensor,
        *,
        with_encoder: bool = False,
    ) -> bool:
        """Return whether a layer with these queries and keys is of the batch's kind, or `with_encoder` the encoder's.

        Raises NoAttentionError: the kind is unknown, or the numbers of queries and keys do not fit it.
        """
        kind = self._kinds_of_modules.get(module)
        n_source = batch.inputs["input_ids"].shape[1]
        n_target = batch.inputs["decoder_input_ids"].shape[1]
        expected = {
            "encoder": (n_source, n_source),
            "cross": (n_target, n_source),
            "decoder": (n_target, n_target),
        }
        if kind is None or expected[kind] != (query.shape[2], key.shape[2]):
            raise NoAttentionError(
                f"{self.name}: it is not clear what a {type(module).__name__} looks at: its keys are neither those of "
                "the source alone nor those of what was generated alone"
            )
        return kind == batch.kind or (with_encoder and kind == "encoder")

    def _forced(self, target: str) -> tuple[int, tuple[Token, ...]]:
        """Return the id read first, and the tokens of a target, which the model is made to generate."""
        ids = self._tokenizer(text_target=target, verbose=False)["input_ids"]
        limit = self._decoder_limit
        if limit is not None and len(ids) > limit:
            raise TooLongError(
                f"the target has {len(ids):,} tokens, but {self.name} generates at most {limit:,}: shorten it"
            )
        tokens = generated_tokens(self._tokenizer, ids, target)
        # An empty target is allowed: a model may generate nothing but the end token.
        if not tokens or (target and all(token.special for token in tokens)):
            raise InputError(f"{self.name} finds no token in this target: {visible(target)[:40]!r}")
        with as_model_error(self.name, "be forced to a target"):
            read = _read_before(self._full_model, torch.tensor([ids], device=self._device))
        if read[1:] != ids[:-1]:
            raise ModelError(
                f"{self.name} cannot be forced to a target: it reads something else than it generated"
            )
        return read[0], tokens

    def _free(self, source: dict[str, Tensor]) -> tuple[str, int, tuple[Token, ...], list[Note]]:
        """Return the text of the most likely token at each step, the id read first, the tokens, and notes."""
        if not self._has_head:
            raise ModelError(
                f"{self.name} was saved without the projection to its words, so it generates nothing freely: give "
                "what it should generate (target)"
            )
        limit, model = min(AT_MOST, self._decoder_limit or AT_MOST), self._full_model
        with self._at_rest(), as_model_error(self.name, "generate freely"):
            set_attention(model, self._native)
            model.generation_config = greedy = _greedy(model.generation_config, limit)
            mask = torch.ones_like(source["input_ids"])
            start, *ids = model.generate(**{"attention_mask": mask, **source})[0].tolist()
        end = greedy.eos_token_id
        is_over = ids[-1] in (end if isinstance(end, list) else [end])
        notes = [] if is_over else [Note.of("generation_stopped", n=limit)]
        text = meaning(self._tokenizer, ids)
        return text, start, generated_tokens(self._tokenizer, ids, text), notes


def _greedy(own: Any, limit: int) -> Any:
    """Return a model's settings for generating at most `limit` tokens, each the most likely one."""
    from transformers import GenerationConfig

    kept = {name: getattr(own, name, None) for name in KEPT_SETTINGS}
    # The library's cache is off, because for some models it has as many layers as the encoder.
    return GenerationConfig(**kept, max_new_tokens=limit, use_cache=False)


def _is_close(first: Tensor, second: Tensor) -> bool:
    """Return whether two tensors are equal but for rounding; what is not finite must be the same."""
    if first.shape != second.shape or not first.is_floating_point():
        return torch.equal(first, second)
    largest = float(first[first.isfinite()].abs().max()) if first.isfinite().any() else 0.0
    close = tolerance_of(first.dtype) * max(1.0, largest)
    return torch.allclose(first, second, rtol=0, atol=close, equal_nan=True)


def _digest(tensor: Tensor) -> str:
    """Return a short digest of the numbers of a tensor."""
    numbers = tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()
    return blake2b(numbers.tobytes(), digest_size=4).hexdigest()


def _says_nothing(name: str, tensor: Tensor) -> bool:
    """Return whether an input is what a model assumes without it: tokens of one type, no padding."""
    if name == "token_type_ids":
        return not tensor.any()
    return name == "attention_mask" and bool(tensor.all())


def _read_before(model: Any, generated: Tensor) -> list[int]:
    """Return the ids that a decoder reads: the generated ids [1, token] shifted right by one, as in training."""
    if hasattr(model, "prepare_decoder_input_ids_from_labels"):
        read = model.prepare_decoder_input_ids_from_labels(labels=generated)
    else:
        shift_right, config = sys.modules[type(model).__module__].shift_tokens_right, model.config
        read = shift_right(generated, config.pad_token_id, config.decoder_start_token_id)
    return read[0].tolist()  # type: ignore[no-any-return]


def kinds_of(model: Any) -> dict[nn.Module, Kind | None]:
    """Return the kind of attention of each module of an encoder-decoder; None if the kind is not clear."""
    kinds: dict[nn.Module, Kind | None] = dict.fromkeys(model.get_encoder().modules(), "encoder")
    for name, module in model.get_decoder().named_modules(remove_duplicate=False):
        parts = {part.replace("_", "").lower() for part in name.split(".")}
        kind: Kind | None = None
        if parts & CROSS_NAMES:
            kind = "cross"
        elif parts & SELF_NAMES:
            kind = "decoder"
        if kinds.setdefault(module, kind) != kind:  # encoder and decoder share this module
            kinds[module] = None
    return kinds
