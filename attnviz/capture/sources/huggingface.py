"""Hugging Face models as a source: any that goes through the library's attention interface.

Of an encoder-decoder also what it generates, freely or by teacher forcing, and which attention is which. Source: the
three uses of attention in Vaswani et al. 2017, section 3.2.3 (https://arxiv.org/abs/1706.03762).
"""

from __future__ import annotations

import copy
import inspect
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from jaxtyping import Int64
from torch import Tensor, nn

from attnviz.attention import GENERATED, SOFTMAX, Kind, Note, Receipt, Token
from attnviz.capture.batching import GeneratedText, batch_of_one, join, with_generation
from attnviz.capture.observers import CPU, Batch, Observer, Sentence
from attnviz.capture.projections import WordHead, show_calls
from attnviz.capture.sources import PerSentenceSource, expect_kind
from attnviz.capture.sources.decoding import (
    PretrainedDecoding,
    cannot_generate,
    no_template,
    room_of,
)
from attnviz.capture.sources.hub import Location, first_line
from attnviz.capture.sources.interface import IsShown, native_of, show_layers, watch
from attnviz.capture.sources.loading import (
    EXCLUSIVE,
    Loaded,
    adopt,
    as_model_error,
    draw,
    keep_state,
    limit_of,
    load,
    senses,
    silence_library,
)
from attnviz.capture.sources.modules import (
    AttentionTracer,
    CausalityProbe,
    FunctionalRecorder,
    trace_attention,
)
from attnviz.capture.sources.tokens import (
    broken_syllable,
    generated_tokens,
    meaning,
    read_tokens,
    run_together,
)
from attnviz.capture.stream import LOAD_INSTEAD, ForwardPass, digest_of
from attnviz.errors import AttnvizError, InputError, ModelError, NoAttentionError, TooLongError
from attnviz.text.display import visible

# Pairs of a query and a key in a batch (1,024 tokens alone) up to which the model's eager implementation runs: the very
# numbers of `output_attentions=True`. Beyond, its fused one does, which rounds otherwise and holds no whole matrix.
EAGER_UP_TO = 2**20
CROSS_NAMES = {"encoderattn", "encdecattention", "crossattention", "crossattn"}
SELF_NAMES = {"selfattn", "selfattention", "attention"}
"""Parts of the names of a decoder's two attention modules, in lower case and without _."""
AT_MOST = 128  # how many tokens a model generates freely before it is stopped
GREEDY = {
    "do_sample": False,
    "num_beams": 1,
    "num_return_sequences": 1,
    "early_stopping": False,
    "max_length": None,
    "max_time": None,
    "min_length": 0,
    "min_new_tokens": None,
    "no_repeat_ngram_size": 0,
    "repetition_penalty": 1.0,
    "length_penalty": 1.0,
    "forced_eos_token_id": None,
    "stop_strings": None,
    "guidance_scale": None,
    "return_dict_in_generate": False,
    "use_cache": False,
}
"""How a model generates the likeliest token at each step and nothing else. What it may never generate, and what it must
begin with (the language that it translates into), stay as its own settings have them. The library's cache is left out:
of some models it is as deep as the encoder, not the decoder."""


def open_pretrained(
    location: Location,
    *,
    device: torch.device,
    dtype: torch.dtype | None = None,
    revision: str | None = None,
    trust_remote_code: bool = False,
    seed: int | None = None,
    generates: bool = False,
) -> PretrainedSource:
    """Load a pretrained model; with a seed, its configuration alone, and draw its weights.

    One that `generates` comes with its projection to words. Raises ModelError: it cannot be loaded as it is.
    """
    options = {
        "revision": revision or "main",
        "local_files_only": location.where != "hub",
        "trust_remote_code": trust_remote_code,
    }
    # The library may draw random numbers while it loads; the caller's stay the caller's.
    loading = as_model_error(location.name, "be loaded", is_on_hub=location.where == "hub")
    with loading, silence_library(), torch.random.fork_rng(devices=[]):
        if seed is None:
            loaded = load(location, dtype, options, generates=generates)
        else:
            loaded = draw(location, dtype, options, seed)
        (loaded.full_model or loaded.model).to(device).eval()
        return PretrainedSource(location.name, loaded)


def from_memory(model: Any, tokenizer: Any) -> PretrainedSource:
    """Return a source for a model in memory, with any head, which is left unchanged. Raises ModelError."""
    loaded = adopt(model, tokenizer)
    origin = visible(getattr(model.config, "name_or_path", "") or "")
    name = f"{type(model).__name__} in memory{f', from {origin}' if origin else ''}"
    with EXCLUSIVE:  # what is its own implementation is seen where no other run has changed it
        return PretrainedSource(name, loaded, owner=model)


class PretrainedSource(PerSentenceSource):
    """A pretrained model, run by its own library. A model that the caller owns is left unchanged."""

    def __init__(self, name: str, loaded: Loaded, *, owner: Any = None) -> None:
        self.name, self.has_sinks, self._is_traced = name, False, False
        self._needs_whole_masks = False  # whether it does more with a mask than pass it on
        self.is_fused = False  # whether short inputs, too, run the implementation that long ones do
        self._tokenizer = loaded.tokenizer
        self._model, self._full_model = loaded.model, loaded.full_model
        self._owner, self._notes = owner, loaded.notes
        self._native, self._device = native_of(self._model), self._model.device
        causal = any(
            getattr(module, "is_causal", False) is True for module in self._model.modules()
        )
        self.kinds: tuple[Kind, ...] = ("decoder",) if causal else ("encoder",)
        self._generator: Generator | None = None
        if self._full_model is not None and self._full_model.config.is_encoder_decoder:
            # A sentence alone is read by the encoder: what a decoder looks at depends on what is generated.
            self.kinds = ("encoder", "cross", "decoder")
            self._generator = Generator(
                name, loaded.tokenizer, self._full_model, has_head=loaded.has_head
            )
        self.generates = self._generator is not None
        self._limit = limit_of(self._model, self._tokenizer)
        self._accepted = frozenset(inspect.signature(self._model.forward).parameters)

    def _read(
        self, text: str, pair: str | None, target: str | None, kind: Kind | None, *, truncate: bool
    ) -> Batch:
        """Return a batch of one sentence.

        An encoder-decoder reads a sentence alone with its encoder. For another kind of attention, or with a target
        (then cross attention is the usual kind), the decoder runs too: it generates the target, or where there is none
        the likeliest token at each step.

        Raises InputError: there is no token; ModelError: it cannot generate freely.
        """
        shown = expect_kind(self, kind, target)
        with as_model_error(self.name, "read this text"):
            sentence, encoded = self._sentence(text, pair, truncate=truncate)
        batch = batch_of_one(sentence, self._inputs(encoded))
        if self._generator is None:
            return batch
        if shown == "encoder" and target is None:
            return replace(batch, kind=shown)
        with keep_state(self._owner):
            return self._generator.generate(batch, target, kind or "cross", truncate=truncate)

    def _sentence(
        self, text: str, pair: str | None, *, truncate: bool, **more: Any
    ) -> tuple[Sentence, Any]:
        more |= {
            "return_offsets_mapping": self._tokenizer.is_fast,
            "return_special_tokens_mask": True,
        }
        encoded = self._tokenizer(text, pair, verbose=False, **more)
        n_tokens, notes = len(encoded["input_ids"]), self._notes
        if self._limit is not None and n_tokens > self._limit:
            if not truncate:
                raise TooLongError(
                    f"the text has {n_tokens:,} tokens, but {self.name} has {self._limit:,} positions: shorten it, "
                    "or have it cut there (truncate)"
                )
            encoded = self._tokenizer(text, pair, truncation=True, max_length=self._limit, **more)
            notes += (
                Note.of("input_truncated_tokens", kept=len(encoded["input_ids"]), total=n_tokens),
            )
        tokens = read_tokens(self._tokenizer, encoded, text, pair)
        if all(token.special for token in tokens):
            raise InputError(f"{self.name} finds no token in this text: {visible(text)[:40]!r}")
        if (broken := broken_syllable(tokens, text, pair)) is not None:
            notes += (Note.of("syllables_broken", syllable=broken[0], n=broken[1]),)
        if run_together(tokens):
            notes += (Note("sentences_run_together"),)
        is_cut = len(tokens) < n_tokens
        return Sentence(text=text, pair=pair, tokens=tokens, notes=notes, is_cut=is_cut), encoded

    def stream(self, batch: Batch, observers: Sequence[Observer]) -> Receipt:
        """Run the model; every observer sees every block of rows.

        A model whose attention does not pass through the library's interface runs once more, and the functions of torch
        that it calls are traced; from then on it is traced at once.
        """
        # Whose layers of an encoder-decoder are seen, only the interface says.
        is_whole = "decoder_input_ids" in batch.inputs
        if not self._is_traced or is_whole:
            try:
                return self._run(batch, observers, is_traced=False)
            except ModelError as error:
                reason = error.__cause__
                if isinstance(reason, AttributeError | TypeError) and not self._needs_whole_masks:
                    # It may look into its mask, which of a long text is a function of rows.
                    self._needs_whole_masks = True
                    return self.stream(batch, observers)
                if is_whole or not isinstance(error, NoAttentionError):
                    raise
                self._is_traced = True
        return self._run(batch, observers, is_traced=True)

    def _run(self, batch: Batch, observers: Sequence[Observer], *, is_traced: bool) -> Receipt:
        model: Any = self._model
        shows: dict[str, IsShown] = {}
        n_sentences, n_tokens = batch.real.shape
        if self._generator is not None and "decoder_input_ids" in batch.inputs:
            model = self._full_model
            shows["is_shown"] = partial(self._generator.is_shown, batch=batch)
            n_tokens = max(
                batch.inputs[name].shape[1] for name in ("input_ids", "decoder_input_ids")
            )
        is_long = n_sentences * n_tokens**2 > EAGER_UP_TO
        native = self._native if self.is_fused or is_long else "eager"
        probe = CausalityProbe()
        if is_traced:
            run = ForwardPass(batch=batch, observers=[*observers, probe], native=SOFTMAX)
            recorder = FunctionalRecorder(run, self.name, splits=True)
            seeing = trace_attention(AttentionTracer(recorder))
        else:
            run = ForwardPass(batch=batch, observers=observers, native=native)
            seeing = show_layers(run, **shows, whole_masks=self._needs_whole_masks)
        with self._at_rest(), show_calls(model, run.observers), seeing:
            try:
                if not is_traced:
                    watch(model, native)
                model(**batch.inputs)
            except AttnvizError:
                raise
            except Exception as error:
                if run.observing:
                    raise
                refusal = ModelError if run.dtypes else NoAttentionError
                raise refusal(self._explain(error, batch, model)) from error
        self.has_sinks = run.has_sinks
        if is_traced and n_tokens > 1:
            self.kinds = ("encoder",) if probe.found else ("decoder",)
        return run.receipt(self.name)

    def _explain(self, error: Exception, batch: Batch, model: Any) -> str:
        """Return why a model fails on a batch, in one line."""
        other = senses(model)
        if other and isinstance(error, AttributeError | TypeError | ValueError):
            return f"{self.name} reads {other} too, and cannot be run on text alone; {LOAD_INSTEAD}"
        known = getattr(model.config.get_text_config(), "vocab_size", math.inf)
        ids = [token.id or 0 for sentence in batch.sentences for token in sentence.tokens]
        if max(ids, default=0) >= known:
            return (
                f"the text has token {max(ids)}, but {self.name} knows {known} tokens:"
                " is this its tokenizer?"
            )
        return f"{self.name} cannot be run on this text: {first_line(error)}"

    @contextmanager
    def decoding(self, text: str, *, chat: bool, most: int) -> Iterator[PretrainedDecoding]:
        """Let the model continue a text, or translate it; its cache holds the keys and values of what it has read.

        Raises ModelError: it generates nothing; InputError: a text that leaves no room, or there is no chat template.
        """
        generator, model = self._generator, self._full_model
        if model is None or (generator is not None and not generator.has_head):
            raise cannot_generate(self.name, lacks_words="decoder" in self.kinds)
        more = dict[str, bool]()
        with as_model_error(self.name, "read this text"):
            if chat:  # in which the text is what the user says; the template has its special tokens
                if not getattr(self._tokenizer, "chat_template", None):
                    raise no_template(self.name)
                said, more = [{"role": "user", "content": text}], {"add_special_tokens": False}
                text = self._tokenizer.apply_chat_template(
                    said, add_generation_prompt=True, tokenize=False
                )
            sentence, encoded = self._sentence(text, None, truncate=True, **more)
        numbers: tuple[int, ...] = tuple(encoded["input_ids"])
        begin, limit, source, native = numbers, self._limit, None, self._native
        if generator is not None:
            native = generator.native
            start = model.generation_config.decoder_start_token_id
            begin = (model.config.decoder_start_token_id if start is None else start,)
            limit = generator.limit
            source = torch.tensor([numbers], device=self._device)
        decoding = PretrainedDecoding(
            name=self.name,
            sentence=sentence,
            kind="decoder" if source is None else "cross",
            begin=begin,
            room=room_of(sentence, limit, len(numbers) if source is None else 0, self.name),
            model=model,
            tokenizer=self._tokenizer,
            text=partial(meaning, self._tokenizer),
            tokens=partial(generated_tokens, self._tokenizer),
            source=source,
            native=native if self.is_fused or (len(numbers) + most) ** 2 > EAGER_UP_TO else "eager",
            kinds={} if generator is None else generator.kinds,
        )
        with self._at_rest():
            watch(model, decoding.native)
            yield decoding

    @contextmanager
    def _at_rest(self) -> Iterator[None]:
        # Tensors of inference mode that a model keeps could not be trained with afterwards.
        without_gradients = torch.inference_mode if self._owner is None else torch.no_grad
        with keep_state(self._owner), without_gradients(), silence_library():
            yield

    def word_head(self, kind: Kind) -> WordHead | None:
        """Return the projection to words behind this kind of attention.

        None of an encoder's, where it was not loaded, and where its logits are capped or scaled afterwards.
        """
        config, full_model = self._model.config, self._full_model or self._owner
        bent = any(
            getattr(config, name, None)
            for name in ("final_logit_softcapping", "logit_scale", "logits_scaling")
        )
        if (
            kind == "encoder"
            or bent
            or (self._generator is not None and not self._generator.has_head)
        ):
            return None
        head = None if full_model is None else full_model.get_output_embeddings()
        if (
            head is None
            and self._generator is None
            and getattr(config, "tie_word_embeddings", False)
        ):
            head = self._model.get_input_embeddings()  # the word vectors serve as the projection
        if head is None or not isinstance(getattr(head, "weight", None), torch.Tensor):
            return None
        bias = getattr(head, "bias", None)
        # BART's, which its library adds afterwards
        if (more := getattr(full_model, "final_logits_bias", None)) is not None:
            bias = more[0] if bias is None else bias + more[0]
        return WordHead(module=head, bias=bias, names=self._names)

    def _names(self, numbers: Sequence[int]) -> list[str]:
        """Return tokens as text, or where nothing could be seen of them, as the vocabulary spells them."""
        pieces = self._tokenizer.convert_ids_to_tokens(list(numbers))
        return [
            visible(self._tokenizer.decode([number]).strip()) or visible(piece or f"<{number}>")
            for number, piece in zip(numbers, pieces, strict=True)
        ]

    def draw(self, lengths: Sequence[int], seed: int) -> list[Batch]:
        """Return sentences of random token ids, as a batch for each kind of attention.

        No special token, such as padding, is among them.
        """
        random = torch.Generator().manual_seed(seed)
        rows = self._draw_ids(lengths, random)
        singles = []
        for row in rows:
            tokens = tuple(Token(text=str(number), piece=str(number), id=number) for number in row)
            sentence = Sentence(text="", pair=None, tokens=tokens)
            singles.append(batch_of_one(sentence, self._inputs({"input_ids": row})))
        read = join(singles)
        if self._generator is None:
            return [read]
        generated = self._draw_ids(lengths, random)
        forced = join(
            [
                replace(single, inputs=self._generator.inputs(single.inputs, row))
                for single, row in zip(singles, generated, strict=True)
            ]
        )
        return [
            replace(read, kind="encoder"),
            replace(forced, kind="cross"),
            replace(forced, kind="decoder"),
        ]

    def _draw_ids(self, lengths: Sequence[int], random: torch.Generator) -> list[list[int]]:
        config = self._model.config
        special = {value for name, value in vars(config).items() if name.endswith("_token_id")}
        n_known = self._model.get_input_embeddings().weight.shape[0]
        plain = [number for number in range(n_known) if number not in special]
        longest = min(max(lengths), self._limit or max(lengths))
        places = torch.randint(
            len(plain), (len(lengths), longest), generator=random, device=CPU
        ).tolist()
        return [
            [plain[place] for place in row[:length]]
            for row, length in zip(places, lengths, strict=True)
        ]

    def eager(self, batch: Batch) -> list[Tensor]:
        """Return the model's own ``output_attentions=True`` of a batch; empty where it gives none.

        Shapes are (batch, head, query, key), one a layer.
        """
        is_whole = "decoder_input_ids" in batch.inputs
        model = self._full_model if is_whole else self._model
        with (
            keep_state(self._owner),
            torch.no_grad(),
            torch.random.fork_rng(devices=[]),
            silence_library(),
        ):
            try:
                if self._is_traced:
                    # Such a model chooses its attention when it is built.
                    config = copy.deepcopy(model.config)
                    config._attn_implementation = "eager"
                    rebuilt = type(model)(config).to(self._device, model.dtype).eval()
                    rebuilt.load_state_dict(model.state_dict())
                    model = rebuilt
                model.set_attn_implementation("eager")
                made = model(**batch.inputs, output_attentions=True)
            except Exception:  # a model without such an implementation raises whatever it likes
                return []
        name = f"{batch.kind}_attentions" if is_whole else "attentions"
        return [
            one.float().cpu() for one in getattr(made, name, None) or () if isinstance(one, Tensor)
        ]

    def digest(self) -> str:
        """Return a digest of the bytes of all weights, which tells models apart."""
        return digest_of(self._full_model if self.generates else self._model)

    def untrained(self, seed: int = 0) -> PretrainedSource:
        """Return the same architecture with weights as its own library draws them, from a seed.

        Raises ModelError: the library cannot build it anew.
        """
        other, full_model = copy.copy(self), self._full_model if self.generates else self._model
        with silence_library(), torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            with as_model_error(type(full_model).__name__, "be made anew"):
                # Its own config: an implementation chosen for a model is written into it.
                new = (
                    type(full_model)(copy.deepcopy(full_model.config))
                    .to(self._device, full_model.dtype)
                    .eval()
                )
        other.name = f"{self.name} with random weights"
        other._owner = None
        other._model = new.get_encoder() if self.generates else new
        other._full_model = new if self.generates else None
        if self._generator is not None:
            other._generator = Generator(other.name, self._tokenizer, new, has_head=True)
        return other

    def _inputs(self, encoded: Any) -> dict[str, Tensor]:
        names = [name for name in ("input_ids", "token_type_ids") if name in encoded]
        inputs = {name: torch.tensor([encoded[name]], device=self._device) for name in names}
        inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
        return {
            name: given
            for name, given in inputs.items()
            if name == "input_ids" or name in self._accepted
        }


class Generator:
    """An encoder-decoder of the library, with its tokenizer.

    It generates freely only with a projection to words of its own (`has_head`).
    """

    def __init__(self, name: str, tokenizer: Any, model: Any, *, has_head: bool) -> None:
        self._name, self._tokenizer, self._model = name, tokenizer, model
        self.native = native_of(model)
        self.has_head = has_head
        self.limit = limit_of(model.get_decoder(), tokenizer)
        self.kinds = kinds_of(model)

    def generate(self, single: Batch, target: str | None, kind: Kind, *, truncate: bool) -> Batch:
        """Return a sentence with its generated text: the target, or without one the model's own words.

        Raises InputError: there is no token in a target; TooLongError: it has more than the decoder has positions, and
        may not be truncated; ModelError: the model cannot generate freely, or cannot be forced to a target.
        """
        made = (
            self._free(single.inputs["input_ids"])
            if target is None
            else self._forced(target, truncate=truncate)
        )
        inputs = self.inputs(single.inputs, [token.id or 0 for token in made.read])
        return batch_of_one(with_generation(single.sentences[0], made, kind, "token"), inputs, kind)

    def inputs(self, source: dict[str, Tensor], read: Sequence[int]) -> dict[str, Tensor]:
        """Return the model's inputs: those of its encoder, and the tokens that its decoder reads."""
        numbers = torch.tensor([read], device=self._model.device)
        return {
            **source,
            "decoder_input_ids": numbers,
            "decoder_attention_mask": torch.ones_like(numbers),
        }

    def is_shown(self, module: nn.Module, query: Tensor, key: Tensor, batch: Batch) -> bool:
        """Return whether a layer with these queries and keys is of the batch's kind.

        Raises NoAttentionError: that is not clear.
        """
        kind = self.kinds.get(module)
        n_source = batch.inputs["input_ids"].shape[1]
        n_target = batch.inputs["decoder_input_ids"].shape[1]
        expected = {
            "encoder": (n_source, n_source),
            "cross": (n_target, n_source),
            "decoder": (n_target, n_target),
        }
        if kind is None or expected[kind] != (query.shape[2], key.shape[2]):
            named = next(
                (name for name, other in self._model.named_modules() if other is module), "a layer"
            )
            raise NoAttentionError(
                f"{self._name}: it is not clear what {named} looks at: its keys are neither those of the source alone "
                "nor those of what was generated alone"
            )
        return kind == batch.kind

    def _forced(self, target: str, *, truncate: bool) -> GeneratedText:
        """Return the tokens of a target, whatever the model would have generated (teacher forcing)."""
        encoded = self._tokenizer(text_target=target, verbose=False)
        ids, notes = encoded["input_ids"], tuple[Note, ...]()
        n_tokens = len(ids)
        if self.limit is not None and n_tokens > self.limit:
            if not truncate:
                raise TooLongError(
                    f"the target has {n_tokens:,} tokens, but {self._name} generates at most {self.limit:,}: shorten "
                    "it, or have it cut there (truncate)"
                )
            ids = self._tokenizer(text_target=target, truncation=True, max_length=self.limit)[
                "input_ids"
            ]
            notes = (Note.of("target_truncated", kept=len(ids), total=n_tokens),)
        tokens = generated_tokens(self._tokenizer, ids, target)
        # What another model generated may be its end alone.
        if not tokens or (target and all(token.special for token in tokens)):
            raise InputError(
                f"{self._name} finds no token in this target: {visible(target)[:40]!r}"
            )
        with as_model_error(self._name, "be forced to a target"):
            read = _read_before(self._model, torch.tensor([ids], device=self._model.device))[
                0
            ].tolist()
        if read[1:] != ids[:-1]:
            raise ModelError(
                f"{self._name} cannot be forced to a target: it reads something else than it generated"
            )
        return GeneratedText(
            text=target, tokens=tokens, read=(self._start(read[0]), *tokens[:-1]), notes=notes
        )

    def _free(self, source: Int64[Tensor, "1 token"]) -> GeneratedText:
        """Generate the likeliest token at each step, until the end."""
        if not self.has_head:
            raise ModelError(
                f"{self._name} was saved without the projection to its words, so it generates nothing freely: give "
                "what it should generate (target)"
            )
        most = min(AT_MOST, self.limit or AT_MOST)
        with as_model_error(self._name, "generate freely"), torch.no_grad(), silence_library():
            watch(self._model, self.native)
            self._model.generation_config.update(**GREEDY)
            start, *ids = self._model.generate(
                input_ids=source, attention_mask=torch.ones_like(source), max_new_tokens=most
            )[0].tolist()
        end = self._model.generation_config.eos_token_id
        is_over = ids[-1] in (end if isinstance(end, list) else [end])
        notes = () if is_over else (Note.of("generation_stopped", n=most),)
        text, tokens = meaning(self._tokenizer, ids), generated_tokens(self._tokenizer, ids)
        return GeneratedText(
            text=text, tokens=tokens, read=(self._start(start), *tokens[:-1]), notes=notes
        )

    def _start(self, number: int) -> Token:
        piece = self._tokenizer.convert_ids_to_tokens(number) or f"<{number}>"
        return Token(text=visible(piece), piece=piece, id=number, special=True, segment=GENERATED)


def _read_before(model: Any, generated: Tensor) -> Tensor:
    """Return the token that a decoder reads before each that it generates [batch, token], as in training."""
    if hasattr(model, "prepare_decoder_input_ids_from_labels"):
        return model.prepare_decoder_input_ids_from_labels(labels=generated)  # type: ignore[no-any-return]
    shift, config = sys.modules[type(model).__module__].shift_tokens_right, model.config
    return shift(generated, config.pad_token_id, config.decoder_start_token_id)  # type: ignore[no-any-return]


def kinds_of(model: Any) -> dict[nn.Module, Kind | None]:
    """Return the kind of attention of each module of an encoder-decoder; None where that is not clear."""
    kinds: dict[nn.Module, Kind | None] = dict.fromkeys(model.get_encoder().modules(), "encoder")
    for name, module in model.get_decoder().named_modules(remove_duplicate=False):
        parts = {part.replace("_", "").lower() for part in name.split(".")}
        kind: Kind | None = (
            "cross" if parts & CROSS_NAMES else "decoder" if parts & SELF_NAMES else None
        )
        if kinds.setdefault(module, kind) != kind:  # encoder and decoder share it
            kinds[module] = None
    return kinds
