"""Hugging Face models as a source: any that goes through the library's attention interface."""

from __future__ import annotations

import inspect
import itertools
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from attnviz.attention import Kind, Receipt, Token
from attnviz.capture.hub import Location
from attnviz.capture.interface import native_of, watch, watched_by
from attnviz.capture.observers import Batch, Observer, Sentence, expect_kind
from attnviz.capture.projections import calls_shown
from attnviz.capture.stream import Run
from attnviz.errors import AttnvizError, InputError, ModelError, NoAttentionError, TooLongError, UnreachableModelError
from attnviz.text.display import clip, token_text, visible
from attnviz.text.words import assign_words

UNLIMITED = 1_000_000
"""Tokenizers without a limit give an astronomic number; so do some configurations."""

EAGER_UP_TO = 2**20
"""Pairs of a query and a key in a batch (1,024 tokens alone) up to which the model's eager implementation runs: the
very numbers of `output_attentions=True`. Beyond, its fused one does, which rounds otherwise and never holds a whole
matrix."""


class PretrainedSource:
    """A pretrained model, run as its own library runs it.

    Raises:
        ModelError: it cannot be loaded, or only in ways that would not show the model's own numbers.
    """

    def __init__(
        self,
        location: Location,
        *,
        device: torch.device,
        dtype: torch.dtype | None = None,
        revision: str | None = None,
        trust_remote_code: bool = False,
    ) -> None:
        self.name = location.name
        self.has_sinks = False
        self._device = device
        options = {
            "revision": revision or "main",
            "local_files_only": location.where != "hub",
            "trust_remote_code": trust_remote_code,
        }
        # The library may draw random numbers while it loads; the caller's stay the caller's.
        with _in_one_line(location), _quiet(), torch.random.fork_rng(devices=[]):
            self._tokenizer, self._model = _load(location, dtype, options)
            self._native = native_of(self._model)
        self._model.to(device).eval()
        causal = any(getattr(module, "is_causal", False) is True for module in self._model.modules())
        self.kinds: tuple[Kind, ...] = ("decoder",) if causal else ("encoder",)
        self.speaks = False
        self._limit = _limit(self._model, self._tokenizer)

    def encode(
        self,
        texts: Sequence[str],
        pairs: Sequence[str | None] | None = None,
        *,
        truncate: bool = False,
        kind: Kind | None = None,
        targets: Sequence[str | None] | None = None,
    ) -> Batch:
        """Tokenize sentences into one padded batch.

        Raises:
            SelectionError: another kind of attention than this model is run for, or a target.
            TooLongError: a sentence has more tokens than the model has positions, and may not be truncated.
            InputError: the tokenizer finds nothing in a sentence.
        """
        expect_kind(self, kind, targets)
        pairs = pairs or [None] * len(texts)
        sentences, rows = [], []
        for text, pair in zip(texts, pairs, strict=True):
            encoded = self._tokenizer(
                text,
                pair,
                return_offsets_mapping=self._tokenizer.is_fast,
                return_special_tokens_mask=True,
                verbose=False,
            )
            n_tokens, notes = len(encoded["input_ids"]), tuple[str, ...]()
            if self._limit is not None and n_tokens > self._limit:
                if not truncate:
                    raise TooLongError(
                        f"the text has {n_tokens:,} tokens, but {self.name} has {self._limit:,} positions: shorten it, "
                        "or cut it there with --truncate"
                    )
                encoded = self._tokenizer(
                    text,
                    pair,
                    truncation=True,
                    max_length=self._limit,
                    return_offsets_mapping=self._tokenizer.is_fast,
                    return_special_tokens_mask=True,
                )
                notes = (f"input truncated: {len(encoded['input_ids']):,} of {n_tokens:,} tokens",)
            tokens = self._tokens(encoded, text, pair)
            if all(token.special for token in tokens):
                raise InputError(f"{self.name} finds no token in this text: {visible(text)[:40]!r}")
            if _run_together(tokens):
                notes += ("the two sentences run together: this model puts no token between them",)
            sentences.append(Sentence(text=text, pair=pair, tokens=tokens, notes=notes))
            rows.append(encoded)
        return self._batch(sentences, rows)

    def stream(self, batch: Batch, observers: Sequence[Observer]) -> Receipt:
        """Run the model once; every observer sees every block of rows.

        Raises:
            NoAttentionError: no layer's attention could be seen.
            NotVerifiedError: a layer's weights are not proved to be the model's own.
            ModelError: the model cannot be run.
        """
        n_sentences, n_tokens = batch.real.shape
        native = "eager" if n_sentences * n_tokens**2 <= EAGER_UP_TO else self._native
        run = Run(batch=batch, observers=observers, native=native)
        with torch.inference_mode(), watched_by(run), calls_shown(self._model, observers), _quiet():
            try:
                watch(self._model, native)
                self._model(**batch.inputs)
            except AttnvizError:
                raise
            except Exception as error:
                if run.observing:
                    raise
                problem = f"{self.name} cannot be run on this text: {_first_line(error)}"
                raise (NoAttentionError if run.dtype is None else ModelError)(problem) from error
        self.has_sinks = run.has_sinks
        return run.receipt(self.name)

    def _batch(self, sentences: Sequence[Sentence], rows: Sequence[Any]) -> Batch:
        """Pad on the right, where causal models stay exact too, and say where padding is."""
        longest = max(len(row["input_ids"]) for row in rows)
        accepted = inspect.signature(self._model.forward).parameters
        fill = {"input_ids": self._tokenizer.pad_token_id or 0, "attention_mask": 0, "token_type_ids": 0}
        inputs = {
            name: torch.tensor(
                [row[name] + [pad] * (longest - len(row["input_ids"])) for row in rows], device=self._device
            )
            for name, pad in fill.items()
            if name in accepted and all(name in row for row in rows)
        }
        lengths = torch.tensor([len(row["input_ids"]) for row in rows], device=self._device)
        real = torch.arange(longest, device=self._device) < lengths[:, None]
        if "attention_mask" in accepted:
            inputs["attention_mask"] = real.long()
        return Batch(sentences=tuple(sentences), inputs=inputs, real=real)

    def _tokens(self, encoded: Any, text: str, pair: str | None) -> tuple[Token, ...]:
        ids: list[int] = encoded["input_ids"]
        pieces: list[str] = self._tokenizer.convert_ids_to_tokens(ids)
        fast = self._tokenizer.is_fast
        segments = encoded.sequence_ids(0) if fast else [0] * len(ids)
        tokens = []
        for index, (number, piece) in enumerate(zip(ids, pieces, strict=True)):
            special = bool(encoded["special_tokens_mask"][index])
            span = tuple(encoded["offset_mapping"][index]) if fast and not special else None
            tokens.append(
                Token(text="", piece=piece, id=number, span=span, special=special, segment=segments[index] or 0)
            )
        return self._labelled(assign_words(tokens, text, pair), (text, pair or ""))

    def _labelled(self, tokens: Sequence[Token], typed: tuple[str, str]) -> tuple[Token, ...]:
        """The same tokens with the text to show for each."""
        decoded = [token.piece if token.special else self._decode(token.piece) for token in tokens]
        parts = _parts(tokens, decoded)
        labelled = []
        for index, token in enumerate(tokens):
            # A token that is only the space before the word has not begun it.
            before = tokens[index - 1] if index and decoded[index - 1].strip() else None
            source = typed[token.segment][slice(*token.span)] if token.span else ""
            if token.special:
                text = visible(token.piece)
            else:
                text = token_text(
                    decoded[index],
                    typed=source,
                    part=parts[index],
                    continues=before is not None and token.word is not None and before.word == token.word,
                    unknown=token.id == self._tokenizer.unk_token_id,
                )
            labelled.append(replace(token, text=text))
        return tuple(labelled)

    def _decode(self, piece: str) -> str:
        """A piece without its vocabulary's marks (``##``, ``Ġ``, ``▁``, ``</w>``)."""
        backend = getattr(self._tokenizer, "backend_tokenizer", None)
        if backend is None:
            # A byte of a character alone says nothing, and comes back empty.
            return str(self._tokenizer.convert_tokens_to_string([piece])) or ("\ufffd" if piece.strip("▁") else "")
        prefix = getattr(backend.model, "continuing_subword_prefix", None)
        if prefix and piece.startswith(prefix) and piece != prefix:
            piece = piece.removeprefix(prefix)
        return piece if backend.decoder is None else str(backend.decoder.decode([piece]))


def _parts(tokens: Sequence[Token], decoded: Sequence[str]) -> list[tuple[int, int] | None]:
    """For tokens that are some bytes of a character: which of how many; None for all others."""
    broken = ["\ufffd" in text or (text.startswith("<0x") and text.endswith(">")) for text in decoded]
    runs: list[list[int]] = []
    for index, token in enumerate(tokens):
        if index and broken[index - 1] and broken[index] and _overlap(tokens[index - 1], token):
            runs[-1].append(index)
        else:
            runs.append([index])
    return [(number, len(run)) if len(run) > 1 else None for run in runs for number in range(1, len(run) + 1)]


def _run_together(tokens: Sequence[Token]) -> bool:
    """Whether the second sentence of a pair begins right behind the first."""
    return any(
        (one.segment, other.segment) == (0, 1) and not (one.special or other.special)
        for one, other in itertools.pairwise(tokens)
    )


def _overlap(one: Token, other: Token) -> bool:
    if one.span is None or other.span is None or one.segment != other.segment:
        return False
    return one.span[0] < other.span[1] and other.span[0] < one.span[1]


def _load(location: Location, dtype: torch.dtype | None, options: dict[str, Any]) -> tuple[Any, Any]:
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    config = AutoConfig.from_pretrained(location.path, **options)
    config.use_cache = False
    tokenizer = AutoTokenizer.from_pretrained(location.path, **options)
    # Where the files are missing, the library makes a tokenizer that knows its special tokens and at most a space.
    if len(tokenizer) < len(tokenizer.all_special_tokens) + 2:
        raise ModelError(
            f"{location.name} has no vocabulary (no tokenizer.json, vocab.txt or the like): every word would be unknown"
        )
    model, report = AutoModel.from_pretrained(
        location.path,
        config=config,
        dtype="auto" if dtype is None else dtype,
        use_safetensors=True,
        output_loading_info=True,
        **options,
    )
    # A pooler stands after all attention, and many checkpoints come without one.
    missing = sorted(name for name in report["missing_keys"] if "pooler" not in name)
    if missing:
        raise ModelError(
            f"{location.name} lacks {len(missing)} of its weights ({missing[0]}, ...): the library would fill them "
            "with random numbers, and the picture would not be the model"
        )
    return tokenizer, model.get_encoder() if config.is_encoder_decoder else model


def _limit(model: nn.Module, tokenizer: Any) -> int | None:
    """How many tokens the model has positions for; None where it has no such limit."""
    config: Any = model.config
    limits = [tokenizer.model_max_length, getattr(config, "max_position_embeddings", None) or UNLIMITED]
    if getattr(config, "model_type", "") in {"t5", "mt5", "umt5", "longt5"}:
        return None  # relative positions: the tokenizer's number is what it was trained on, not a limit
    for name, module in model.named_modules():
        # RoBERTa and its kin count positions from behind the padding token's.
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding) and module.padding_idx is not None:
            limits.append(module.num_embeddings - module.padding_idx - 1)
    limit = min(limits)
    return int(limit) if limit < UNLIMITED else None


@contextmanager
def _in_one_line(location: Location) -> Iterator[None]:
    """Whatever goes wrong while the library loads a model, as one line that names the model."""
    try:
        yield
    except (ModelError, KeyboardInterrupt):
        raise
    except Exception as error:
        broken = _connection_error(error) if location.where == "hub" else None
        if broken is not None:
            raise UnreachableModelError(f"{location.name} cannot be downloaded: {_first_line(broken)}") from error
        raise ModelError(f"{location.name} cannot be loaded: {_first_line(error)}") from error


def _connection_error(error: BaseException | None) -> BaseException | None:
    """The connection that failed behind this error, as near to the cause as is known; None if there is none."""
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    found = None
    while error is not None:
        module = type(error).__module__.partition(".")[0]
        if isinstance(error, HfHubHTTPError | LocalEntryNotFoundError | ConnectionError) or module.startswith("http"):
            found = error
        error = error.__cause__ or error.__context__
    return found


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return clip(visible(lines[0] if lines else type(error).__name__), 200)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the library's own bars and warnings off the screen, but for the bars of a long download."""
    from transformers.utils import logging as library

    verbosity = library.get_verbosity()
    library.set_verbosity(logging.CRITICAL)
    # The bars of a download are huggingface_hub's, which this leaves alone.
    hook = library.set_tqdm_hook(lambda _, given, more: library.EmptyTqdm(*given, **more))
    try:
        yield
    finally:
        library.set_verbosity(verbosity)
        library.set_tqdm_hook(hook)
