"""A pretrained model and its tokenizer, loaded by their own library or refused in one line."""

from __future__ import annotations

import copy
import inspect
import json
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from threading import RLock
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from attnviz.attention import Note
from attnviz.capture.sources.hub import Location, first_line
from attnviz.capture.sources.modules import as_written
from attnviz.capture.stream import LOAD_INSTEAD, ForwardPass
from attnviz.errors import AttnvizError, ModelError, UnreachableModelError
from attnviz.text.display import clip, visible

# tokenizers without a limit give an astronomic number; so do some configurations
UNLIMITED = 1_000_000
# The library's own names of attention. It takes any other for a kernel on the hub, whose code it loads and runs,
# whether or not code is trusted.
IMPLEMENTATIONS = frozenset(
    {"eager", "sdpa", "flex_attention"}
    | {"flash_attention_2", "flash_attention_3", "flash_attention_4"}
)
# Files beside config.json that may name one too.
BESIDE = tuple(
    f"{name}_config.json" for name in ("generation", "tokenizer", "processor", "preprocessor")
)
MOST_LAYERS = 1_000  # that a model may have
MOST = 2**27  # of any other size of a model
GAIN = 0.7  # of weights drawn at random: the libraries' own are so small that all heads look everywhere alike
# Inputs of models beside text, in words.
SENSES = {"image": "pictures", "video": "films", "audio": "sound"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A model and its tokenizer."""

    tokenizer: Any
    model: Any  # the part that reads: of an encoder-decoder its encoder
    full_model: Any = None  # with the projection to words; None where that is not loaded
    # Whether that projection is an encoder-decoder's own, so that it can generate freely.
    has_head: bool = False
    notes: tuple[Note, ...] = ()  # for the readers of its pictures


def load(
    location: Location,
    dtype: torch.dtype | None,
    options: dict[str, Any],
    *,
    generates: bool = False,
) -> Loaded:
    """Load a model and its tokenizer; without a dtype, in the number format that the weights were saved in.

    The options are the library's: ``revision``, ``local_files_only``, ``trust_remote_code``. A decoder that `generates`
    comes with its projection to words. Raises ModelError: there is no vocabulary, or weights are missing.
    """
    from transformers import AutoTokenizer

    config = _read_config(location, options)
    tokenizer = AutoTokenizer.from_pretrained(location.path, **options)
    # Where the files are missing, the library makes a tokenizer that knows its special tokens and at most a space.
    if len(tokenizer) < len(tokenizer.all_special_tokens) + 2:
        what = (
            "no vocabulary (no tokenizer.json, vocab.txt or the like): every word would be unknown"
        )
        raise ModelError(f"{location.name} has {what}")
    if getattr(tokenizer, "separate_vocabs", False):
        what = "reads and generates words of two vocabularies, which attnviz cannot tell apart"
        raise ModelError(f"{location.name} {what}")
    auto, is_whole = _class_of(config, generates=generates)
    model, report = auto.from_pretrained(
        location.path,
        config=config,
        dtype="auto" if dtype is None else dtype,
        use_safetensors=True,
        output_loading_info=True,
        **options,
    )
    has_words = (
        not is_whole and model is not model.base_model and model.get_output_embeddings() is not None
    )
    # The names of the weights that make words of the decoder's vectors.
    own: Any = model.get_output_embeddings() if is_whole or has_words else None
    paths = [path for path, module in model.named_modules() if own is not None and module is own]
    head = [f"{path}.{weight}" for path in paths for weight, _ in own.named_parameters()]
    # A pooler stands after all attention, and many checkpoints come without one; so does the projection to words.
    if missing := sorted(
        name for name in report["missing_keys"] if "pooler" not in name and name not in head
    ):
        raise ModelError(
            f"{location.name} lacks {len(missing)} of its weights ({missing[0]}, ...): the library would fill them "
            "with random numbers, and the picture would not be the model"
        )
    is_there = not set(head) & set(report["missing_keys"])
    if has_words:
        return Loaded(
            tokenizer=tokenizer, model=_base_of(model), full_model=model if is_there else None
        )
    if not is_whole:
        return Loaded(
            tokenizer=tokenizer, model=model.get_encoder() if config.is_encoder_decoder else model
        )
    saved, _ = config.get_config_dict(location.path, **options)
    # Where the library finds no projection to words, it uses the word vectors for it.
    is_tied = own.weight is model.get_input_embeddings().weight
    has_head = (
        bool(head) and is_there and not (is_tied and saved.get("tie_word_embeddings") is False)
    )
    return Loaded(tokenizer=tokenizer, model=_base_of(model), full_model=model, has_head=has_head)


def draw(
    location: Location, dtype: torch.dtype | None, options: dict[str, Any], seed: int
) -> Loaded:
    """Return a model built from its configuration alone, with weights drawn from a seed."""
    config = _read_config(location, options)
    auto, is_whole = _class_of(config)
    torch.default_generator.manual_seed(seed)
    model = auto.from_config(config, dtype=dtype or torch.float32)
    for parameter in model.parameters():
        if parameter.ndim > 1:
            nn.init.xavier_uniform_(parameter, gain=GAIN)
    numbers = SimpleNamespace(model_max_length=UNLIMITED)  # in the place of a tokenizer
    return Loaded(
        tokenizer=numbers,
        model=model.get_encoder() if config.is_encoder_decoder else model,
        full_model=model if is_whole else None,
        has_head=is_whole,
    )


def _class_of(config: Any, *, generates: bool = False) -> tuple[Any, bool]:
    """Return the library's class for a configuration, and whether it is an encoder-decoder that generates."""
    from transformers import AutoModel, AutoModelForCausalLM, AutoModelForSeq2SeqLM
    from transformers.models.auto import modeling_auto as known

    kind = type(config)
    if config.is_encoder_decoder:
        is_whole = kind in known.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING
        return (AutoModelForSeq2SeqLM if is_whole else AutoModel), is_whole
    # The library makes a decoder of an encoder, too, whose weights were never trained to be one.
    is_reader = kind in known.MODEL_FOR_MASKED_LM_MAPPING and not getattr(
        config, "is_decoder", False
    )
    is_decoder = generates and kind in known.MODEL_FOR_CAUSAL_LM_MAPPING and not is_reader
    return (AutoModelForCausalLM if is_decoder else AutoModel), False


def _read_config(location: Location, options: dict[str, Any]) -> Any:
    """Return a model's configuration, or refuse one that asks for something that attnviz must not load."""
    from transformers import AutoConfig, AutoModel

    _check_implementations(location, options)
    config = AutoConfig.from_pretrained(location.path, **options)
    _check_sizes(config, location.name)
    config.use_cache = False
    if config._attn_implementation not in {"eager", "sdpa"}:
        config._attn_implementation = None
    kind = AutoModel._model_mapping.get(type(config), None)
    for one in kind if isinstance(kind, tuple) else (kind,):  # before its weights are loaded
        if one is not None and (
            one.main_input_name != "input_ids" or "text" not in one.input_modalities
        ):
            read = senses(one) or "something else than text"
            raise ModelError(
                f"{location.name} reads {read}, and attnviz runs models on text alone; {LOAD_INSTEAD}"
            )
    return config


def _check_implementations(location: Location, options: dict[str, Any]) -> None:
    """Refuse attention that is not the library's own, wherever a model's files name it."""
    from huggingface_hub import try_to_load_from_cache
    from transformers import PreTrainedConfig
    from transformers.utils.hub import cached_file

    where = {name: option for name, option in options.items() if name != "trust_remote_code"}
    files: dict[str, Any] = {
        "config.json": PreTrainedConfig.get_config_dict(location.path, **where)[0]
    }
    for name in BESIDE:
        if location.where == "cache":  # where the hub is not asked for what is not there
            path: object = try_to_load_from_cache(location.path, name, revision=options["revision"])
        else:
            path = cached_file(
                location.path, name, _raise_exceptions_for_missing_entries=False, **where
            )
        if isinstance(path, str):
            files[name] = json.loads(Path(path).read_text(encoding="utf-8"))
    for name, held in files.items():
        for wanted in _implementations(held, is_named=False):
            if wanted not in IMPLEMENTATIONS:
                raise ModelError(
                    f"{location.name} is refused: its {name} names the attention {clip(visible(wanted), 60)!r}, which "
                    "is not the library's own: to load it would run somebody's code"
                )


def _implementations(held: Any, *, is_named: bool) -> Iterator[str]:
    if isinstance(held, dict):
        for key, value in held.items():
            own = key in {
                "attn_implementation",
                "_attn_implementation",
                "_attn_implementation_internal",
            }
            yield from _implementations(value, is_named=is_named or own)
    elif isinstance(held, list):
        for value in held:
            yield from _implementations(value, is_named=is_named)
    elif is_named and held is not None:
        yield str(held)


def _check_sizes(config: Any, name: str) -> None:
    """Refuse sizes that no model has, before hours and all memory go into building one."""
    for one in _configs([config]):
        for key in (field.name for field in fields(one)):
            value, most = getattr(one, key, None), MOST_LAYERS if "layer" in key else MOST
            # Rotary positions count in large numbers.
            if isinstance(value, int) and value > most and "theta" not in key:
                raise ModelError(
                    f"{name} cannot be loaded: its {key} is {clip(str(value), 24)}, which no model has"
                )


def senses(model: Any) -> str:
    """Return what a model or its class reads beside text, in words; empty where there is nothing."""
    read = model.input_modalities
    return " and ".join(
        SENSES[one] for one in ((read,) if isinstance(read, str) else read) if one in SENSES
    )


# of a model's word vectors its tokenizer has tokens for; the rest is padding of the table
LEAST_SHARE = 0.98


def adopt(model: Any, tokenizer: Any) -> Loaded:
    """Return the base of a model in memory, whatever head it has, and its tokenizer.

    Raises ModelError: they do not fit together.
    """
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    if not isinstance(model, PreTrainedModel):
        raise ModelError(
            f"the model must be a name, a folder or a torch module, not of type {type(model).__name__}"
        )
    if not isinstance(tokenizer, PreTrainedTokenizerBase):
        given = "there is none" if tokenizer is None else f"this is a {type(tokenizer).__name__}"
        raise ModelError(
            f"a model in memory needs its Hugging Face tokenizer, as in tokenizer=...: {given}"
        )
    table: Any = model.get_input_embeddings()
    pieces, vectors = len(tokenizer), int(table.weight.shape[0])
    if pieces > vectors:
        raise ModelError(
            f"the tokenizer has {pieces:,} tokens, but {type(model).__name__} has {vectors:,} word vectors: it belongs "
            "to another model"
        )
    notes = (
        ()
        if pieces >= LEAST_SHARE * vectors
        else (Note.of("vocabulary_smaller", pieces=pieces, vectors=vectors),)
    )
    has_head = model.can_generate() and model.get_output_embeddings() is not None
    reads, full_model = _base_of(model), model if has_head else None
    return Loaded(
        tokenizer=tokenizer, model=reads, full_model=full_model, has_head=has_head, notes=notes
    )


def _base_of(model: Any) -> Any:
    """Return a model without its head; of an encoder-decoder its encoder, of a wrapped decoder the decoder."""
    if model.config.is_encoder_decoder:
        return model.get_encoder()
    base = model.base_model
    has_input = "input_ids" in inspect.signature(base.forward).parameters
    return base if has_input else getattr(base, "decoder", base)


EXCLUSIVE = RLock()
"""Held while a run changes what all threads share: a model's mode and configuration, the library's own settings."""


@contextmanager
def evaluated(module: nn.Module) -> Iterator[None]:
    """Put a module in evaluation mode until the block ends; each part then returns to its own mode."""
    with EXCLUSIVE:
        training = [(one, one.training) for one in module.modules()]
        module.eval()
        try:
            yield
        finally:
            for one, was in training:
                one.training = was


@contextmanager
def keep_state(model: Any) -> Iterator[None]:
    """Put the caller's model in evaluation mode; restore configurations and modes when the block ends."""
    if model is None:
        yield
        return
    with EXCLUSIVE, as_written():
        models = [getattr(module, "config", None) for module in model.modules()]
        kept = [(config, dict(vars(config))) for config in _configs(models)]
        generation = getattr(model, "generation_config", None)
        try:
            if generation is not None:
                model.generation_config = copy.deepcopy(generation)
            model.config.use_cache = False
            with evaluated(model):
                yield
        finally:
            if generation is not None:
                model.generation_config = generation
            for config, fields in kept:
                vars(config).clear()
                vars(config).update(fields)


def _configs(held: Iterable[Any]) -> Iterator[Any]:
    from transformers import PreTrainedConfig

    waiting, seen = list(held), set()
    while waiting:
        config = waiting.pop()
        if isinstance(config, PreTrainedConfig) and id(config) not in seen:
            seen.add(id(config))
            yield config
            waiting += vars(config).values()


def limit_of(model: nn.Module, tokenizer: Any) -> int | None:
    """Return how many tokens the model has positions for; None without such a limit. Raises ModelError."""
    config: Any = model.config
    if getattr(config, "model_type", "") in {"t5", "mt5", "umt5", "longt5"}:
        return None  # relative positions: the tokenizer's number is what it was trained on, not a limit
    named = {
        "model_max_length": tokenizer.model_max_length,
        "max_position_embeddings": getattr(config, "max_position_embeddings", None) or UNLIMITED,
    }
    for name, value in named.items():
        if not isinstance(value, int | float):
            raise ModelError(
                f"the model's {name} must be a number, not {clip(visible(repr(value)), 40)}"
            )
    for name, module in model.named_modules():
        # RoBERTa and its kin count positions from behind the padding token's.
        if (
            name.endswith("position_embeddings")
            and isinstance(module, nn.Embedding)
            and module.padding_idx is not None
        ):
            named[name] = module.num_embeddings - module.padding_idx - 1
    # XLNet says -1
    limit = min((value for value in named.values() if value > 0), default=UNLIMITED)
    return int(limit) if limit < UNLIMITED else None


@contextmanager
def as_model_error(
    name: str,
    what: str,
    *,
    is_on_hub: bool = False,
    run: ForwardPass | None = None,
    is_typed: bool = False,
) -> Iterator[None]:
    """Turn whatever a library raises into a ModelError of one line: "<name> cannot <what>: ...".

    Where the hub does not answer it is an UnreachableModelError; an error of the observers of a run stays as it is.
    Where `is_typed`, the line names the error's class too.
    """
    try:
        yield
    except (AttnvizError, KeyboardInterrupt):
        raise
    except BaseException as error:
        # The tokenizers' own language panics where a file is not as it expects.
        is_panic = type(error).__name__ == "PanicException"
        if (run is not None and run.observing) or not (isinstance(error, Exception) or is_panic):
            raise
        if is_on_hub and (broken := _connection_error(error)) is not None:
            raise UnreachableModelError(
                f"{name} cannot be downloaded: {first_line(broken)}"
            ) from error
        kind = f"{type(error).__name__}: " if is_typed else ""
        raise ModelError(f"{name} cannot {what}: {kind}{first_line(error)}") from error


def _connection_error(error: BaseException | None) -> BaseException | None:
    """Return the failed connection behind this error, as near to the cause as is known."""
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    found = None
    while error is not None:
        module = type(error).__module__.partition(".")[0]
        if isinstance(
            error, HfHubHTTPError | LocalEntryNotFoundError | ConnectionError
        ) or module.startswith("http"):
            found = error
        error = error.__cause__ or error.__context__
    return found


@contextmanager
def silence_library() -> Iterator[None]:
    """Keep the library's own bars and warnings off the screen, but for the bars of a long download."""
    from transformers.utils import logging as library

    with EXCLUSIVE:
        verbosity = library.get_verbosity()
        library.set_verbosity(logging.CRITICAL)
        # The bars of a download are huggingface_hub's, which this leaves alone.
        hook = library.set_tqdm_hook(lambda _, given, more: library.EmptyTqdm(*given, **more))
        try:
            yield
        finally:
            library.set_verbosity(verbosity)
            library.set_tqdm_hook(hook)
