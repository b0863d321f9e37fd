"""Loading of a pretrained model and its tokenizer by transformers; errors become one line."""

from __future__ import annotations

import inspect
import json
import logging
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from attnviz.attention import Note
from attnviz.capture.sources import Head
from attnviz.capture.sources.hub import INDEX, SAFETENSORS_ONLY, Location, first_line
from attnviz.capture.sources.locks import fork_safe_lock
from attnviz.capture.sources.tracing import as_written
from attnviz.capture.stream import ForwardPass
from attnviz.errors import AttnvizError, ModelError, UnreachableModelError
from attnviz.releases import (
    config_class,
    dtype_keyword,
    hide_progress_bars,
    input_embeddings,
    input_modalities,
    unfit_releases,
)
from attnviz.text.display import clip, visible

# Tokenizers without a limit report an astronomically large number, and so do some configurations.
UNLIMITED = 1_000_000
# How the names of classes end that sort texts, and that predict hidden words.
CLASSIFIER, HIDES = "ForSequenceClassification", "ForMaskedLM"
# The attention implementations that are part of transformers. It takes any other name for a kernel on the hub, whose
# code it loads and runs even if trust_remote_code is False.
IMPLEMENTATIONS = frozenset(
    {"eager", "sdpa", "flex_attention"}
    | {"flash_attention_2", "flash_attention_3", "flash_attention_4"}
)
# Files beside config.json that may also name an attention implementation.
BESIDE = tuple(
    f"{name}_config.json" for name in ("generation", "tokenizer", "processor", "preprocessor")
)
# The largest numbers of labels (each of which gets a name) and of layers in a configuration, and of anything else.
MOST = {"labels": 2**20, "layer": 1_000, "": 2**27}
# The gain of randomly drawn weights. The libraries' own initial weights are so small that every head would attend to
# all tokens equally.
GAIN = 0.7
# Model inputs other than text, in words.
WATCH = "run it yourself inside `with attnviz.watch(model):`, which shows its attention"
SENSES = {"image": "pictures", "video": "films", "audio": "sound"}


def load(
    location: Location,
    dtype: torch.dtype | None,
    options: dict[str, Any],
    *,
    head: Head = None,
) -> tuple[Any, Any, bool]:
    """Return a tokenizer, its model, and whether the model's projection to words was saved with it.

    Without a dtype, the weights are in the number format that they were saved in.
    The options are those of transformers: ``revision``, ``local_files_only``, ``trust_remote_code``.
    """
    from transformers import AutoTokenizer

    config = _read_config(location, options)
    _check_vocabularies(location.name, config)
    tokenizer = AutoTokenizer.from_pretrained(location.path, **options)
    # If the vocabulary files are missing, transformers still returns a tokenizer. It knows only its special tokens and
    # at most a space.
    if len(tokenizer) < len(tokenizer.all_special_tokens) + 2:
        raise ModelError(
            f"{location.name} has no vocabulary (no tokenizer.json, vocab.txt or the like): every word would be unknown"
        )
    _check_vocabularies(location.name, tokenizer)
    auto_class, is_seq2seq = _class_of(config, head)
    model, report = auto_class.from_pretrained(
        location.path,
        config=config,
        use_safetensors=True,
        output_loading_info=True,
        **{dtype_keyword(): dtype or "auto"},
        **options,
    )
    # A model that is its own base has no head, so its word vectors are no projection to words.
    may_have_projection = is_seq2seq or model is not model.base_model
    word_projection: Any = model.get_output_embeddings() if may_have_projection else None
    projection_names = {
        f"{path}.{name}"
        for path, module in model.named_modules()
        if module is word_projection
        for name, _ in module.named_parameters()
    }
    missing_names = set(report["missing_keys"])
    # The pooler comes after all attention, and many checkpoints lack it.
    absent = sorted(name for name in missing_names - projection_names if "pooler" not in name)
    if absent:
        raise ModelError(
            f"{location.name} lacks {len(absent)} of its weights ({absent[0]}, ...): the library would fill "
            "them with random numbers, and the picture would not be the model"
        )
    has_head = bool(projection_names) and not projection_names & missing_names
    if is_seq2seq:
        saved_config, _ = config.get_config_dict(location.path, **options)
        # If the checkpoint has no projection to words, transformers uses the word vectors instead (tied weights), which
        # is wrong if the configuration says that they are not tied.
        is_tied = word_projection.weight is model.get_input_embeddings().weight
        has_head &= not (is_tied and saved_config.get("tie_word_embeddings") is False)
    return tokenizer, model, has_head


def _check_vocabularies(name: str, tokenizer_or_config: Any) -> None:
    """Raise ModelError for a tokenizer (Marian) or a configuration (FSMT) with a second vocabulary for generated words.

    Transformers would spell the tokens that the model reads with words of the other vocabulary.
    """
    # FSMT's tokenizer needs a package of its own: nobody should install it in vain, so the configuration tells.
    if getattr(tokenizer_or_config, "separate_vocabs", False) or hasattr(
        tokenizer_or_config, "tgt_vocab_size"
    ):
        raise ModelError(
            f"{name} reads words of one vocabulary and generates those of another, which attnviz cannot tell apart: "
            f"{WATCH}"
        )


def draw(
    location: Location, dtype: torch.dtype | None, options: dict[str, Any], seed: int
) -> tuple[Any, Any, bool]:
    """Return as `load` a model built from only its configuration, with weights drawn from a seed."""
    config = _read_config(location, options)
    auto_class, is_seq2seq = _class_of(config)
    torch.default_generator.manual_seed(seed)
    model = auto_class.from_config(config, **{dtype_keyword(): dtype or torch.float32})
    for parameter in model.parameters():
        if parameter.ndim > 1:
            nn.init.xavier_uniform_(parameter, gain=GAIN)
    return SimpleNamespace(model_max_length=UNLIMITED), model, is_seq2seq


def _class_of(config: Any, head: Head = None) -> tuple[Any, bool]:
    """Return the transformers class for a configuration, and whether it is an encoder-decoder that generates."""
    from transformers import (
        AutoModel,
        AutoModelForCausalLM,
        AutoModelForMaskedLM,
        AutoModelForSeq2SeqLM,
        AutoModelForSequenceClassification,
    )
    from transformers.models.auto import modeling_auto as known

    kind = type(config)
    if config.is_encoder_decoder:
        is_seq2seq = kind in known.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING
        return (AutoModelForSeq2SeqLM if is_seq2seq else AutoModel), is_seq2seq
    saved = (config.architectures or [""])[0] if head == "saved" else ""
    if saved.endswith(CLASSIFIER):
        return AutoModelForSequenceClassification, False
    if saved.endswith(HIDES):
        return AutoModelForMaskedLM, False
    is_decoder = (
        head is not None and kind in known.MODEL_FOR_CAUSAL_LM_MAPPING and not _is_reader(config)
    )
    return (AutoModelForCausalLM if is_decoder else AutoModel), False


def _is_reader(config: Any) -> bool:
    """Return whether a model only reads, such as BERT, although transformers can build a decoder of its parts."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING

    writes = config.is_encoder_decoder or getattr(config, "is_decoder", False)
    return type(config) in MODEL_FOR_MASKED_LM_MAPPING and not writes


def _read_config(location: Location, options: dict[str, Any]) -> Any:
    """Return a model's configuration; a model that reads more than text is refused before its weights are loaded."""
    from transformers import AutoConfig, AutoModel

    _check_files(location, options)
    config = AutoConfig.from_pretrained(location.path, **options)
    config.use_cache = False
    if config._attn_implementation not in {"eager", "sdpa"}:
        config._attn_implementation = None
    classes: Any = AutoModel._model_mapping.get(type(config), None) or ()
    for model_class in classes if isinstance(classes, tuple) else (classes,):
        reads_ids = model_class.main_input_name == "input_ids"
        if not reads_ids or "text" not in input_modalities(model_class):
            inputs_read = senses(model_class) or "something else than text"
            raise ModelError(
                f"{location.name} reads {inputs_read}, and attnviz runs models on text alone: {WATCH}"
            )
    return config


def _check_files(location: Location, options: dict[str, Any]) -> None:
    """Refuse files that would run somebody's code, read beside the model's folder, or take hours and all memory."""
    options = {name: option for name, option in options.items() if name != "trust_remote_code"}
    # The configuration may be in another file than config.json, which it names.
    config = config_class().get_config_dict(location.path, **options)[0]
    files = {name: _read_json(location, name, options) for name in (*BESIDE, INDEX)}
    for name, content in {"config.json": config, **files}.items():
        for keys, value in _leaves(content):
            text = clip(visible(str(value)), 60)
            # The theta of rotary positions is the base of their wavelengths, not a size, and may be larger.
            name_of_size = keys[-1] if keys else ""
            largest = next(most for part, most in MOST.items() if part in name_of_size)
            is_size = content is config and "theta" not in name_of_size
            if is_size and isinstance(value, int) and value > largest:
                raise ModelError(
                    f"{location.name} cannot be loaded: its {name_of_size} is {clip(text, 24)}, which no model has"
                )
            names_attention = any("attn_implementation" in key for key in keys)
            if names_attention and value not in {None, *IMPLEMENTATIONS}:
                reason = f"the attention {text!r}, which is not the library's own: to load it would run somebody's code"
            elif "weight_map" in keys and not re.fullmatch(r"[^/\\]+\.safetensors", str(value)):
                reason = f"{text!r}: {SAFETENSORS_ONLY}, in the model's own folder"
            else:
                continue
            raise ModelError(f"{location.name} is refused: its {name} names {reason}")


def _read_json(location: Location, name: str, options: dict[str, Any]) -> Any:
    """Return the content of a JSON file of a model; None if the model has no such file."""
    from huggingface_hub import try_to_load_from_cache
    from transformers.utils.hub import cached_file

    path: object
    if location.is_local and not Path(location.path).is_dir():
        # Do not ask the hub for files that the cache lacks.
        path = try_to_load_from_cache(location.path, name, revision=options["revision"])
    else:
        path = cached_file(
            location.path, name, _raise_exceptions_for_missing_entries=False, **options
        )
    return json.loads(Path(path).read_text(encoding="utf-8")) if isinstance(path, str) else None


def _leaves(content: Any, keys: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield each value of parsed JSON that is neither an object nor a list, after the keys that lead to it."""
    if isinstance(content, dict):
        for key, value in content.items():
            yield from _leaves(value, (*keys, key))
    elif isinstance(content, list):
        for value in content:
            yield from _leaves(value, keys)
    else:
        yield keys, content


def senses(model: Any) -> str:
    """Return in words the inputs other than text that a model or its class reads; empty if there are none."""
    return " and ".join(SENSES[name] for name in input_modalities(model) if name in SENSES)


# The smallest usual share of a model's word vectors for which its tokenizer has tokens; the remaining vectors are
# padding of the embedding table. Below it, the tokenizer may belong to another model, and a note says so.
LEAST_SHARE = 0.98


def check_fit(model: Any, tokenizer: Any) -> tuple[Note, ...]:
    """Raise ModelError if a model in memory and its tokenizer do not fit together; return notes if they hardly do."""
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    if not isinstance(model, PreTrainedModel):
        raise ModelError(
            f"the model must be a name, a folder or a torch module, not of type {type(model).__name__}"
        )
    if tokenizer is None and model.main_input_name != "input_ids" and senses(model):
        raise ModelError(f"{type(model).__name__} reads {senses(model)}, and no text: {WATCH}")
    if not isinstance(tokenizer, PreTrainedTokenizerBase):
        problem = "there is none" if tokenizer is None else f"this is a {type(tokenizer).__name__}"
        raise ModelError(
            f"a model in memory needs its Hugging Face tokenizer, as in tokenizer=...: {problem}"
        )
    for part in (tokenizer, model.config):
        _check_vocabularies(type(model).__name__, part)
    # CANINE has no table: it computes its vectors from hashes of characters.
    vectors = getattr(input_embeddings(model), "weight", None)
    if vectors is None:
        name = type(model).__name__
        raise ModelError(
            f"{name} has no table of word vectors, so it cannot be run on a text: {WATCH}"
        )
    n_pieces, n_vectors = len(tokenizer), len(vectors)
    if n_pieces > n_vectors:
        raise ModelError(
            f"the tokenizer has {n_pieces:,} tokens, but {type(model).__name__} has {n_vectors:,} word vectors: it "
            "belongs to another model"
        )
    if n_pieces >= LEAST_SHARE * n_vectors:
        return ()
    return (Note.of("vocabulary_smaller", pieces=n_pieces, vectors=n_vectors),)


def has_own_head(model: Any) -> bool:
    """Return whether a model in memory generates text, with its projection to words."""
    can_generate = model.can_generate() and not _is_reader(model.config)
    return can_generate and model.get_output_embeddings() is not None


def base_of(model: Any) -> Any:
    """Return a model without its head: the encoder of an encoder-decoder, the decoder inside a wrapper."""
    if model.config.is_encoder_decoder:
        return model.get_encoder()
    base = model.base_model
    has_input = "input_ids" in inspect.signature(base.forward).parameters
    return base if has_input else getattr(base, "decoder", base)


def refuse_script(model: object) -> None:
    """Raise ModelError if a module, or a part of it, is TorchScript: nothing that it computes can be seen."""
    for part in model.modules() if isinstance(model, torch.nn.Module) else [model]:
        if isinstance(part, torch.jit.ScriptModule | torch.jit.ScriptFunction):
            raise ModelError(
                f"a {type(part).__name__} is TorchScript, which runs outside of Python, where no attention is seen: "
                "give the torch module that it was made from; weights that it returns are drawn by attnviz.heatmap"
            )


# Held while a run changes state that all threads share: a model's mode and configuration, the library's settings.
EXCLUSIVE = fork_safe_lock()


@contextmanager
def evaluated(module: nn.Module) -> Iterator[None]:
    """Put a module in evaluation mode until the block ends; each part then returns to its own mode."""
    with EXCLUSIVE:
        training = [(part, part.training) for part in module.modules()]
        module.eval()
        try:
            yield
        finally:
            for part, was_training in training:
                part.training = was_training


@contextmanager
def keep_state(model: Any) -> Iterator[None]:
    """Put the caller's model in evaluation mode; restore its configurations and modes when the block ends."""
    if model is None:
        yield
        return
    with EXCLUSIVE, as_written():
        models = [getattr(module, "config", None) for module in model.modules()]
        saved_settings = [(config, dict(vars(config))) for config in _configs(models)]
        generation = getattr(model, "generation_config", None)
        try:
            model.config.use_cache = False
            with evaluated(model):
                yield
        finally:
            if generation is not None:
                model.generation_config = generation
            for config, fields in saved_settings:
                vars(config).clear()
                vars(config).update(fields)


def _configs(values: Iterable[Any]) -> Iterator[Any]:
    """Yield each configuration among these values, and the configurations nested in it, once."""
    queue, seen_ids = list(values), set()
    while queue:
        config = queue.pop()
        if isinstance(config, config_class()) and id(config) not in seen_ids:
            seen_ids.add(id(config))
            yield config
            queue += vars(config).values()


def limit_of(model: nn.Module, tokenizer: Any) -> int | None:
    """Return the most tokens that the tokenizer takes and the model has positions for; None if there is no limit."""
    config: Any = model.config
    if getattr(config, "model_type", "") in {"t5", "mt5", "umt5", "longt5"}:
        # With relative positions there is no limit; the tokenizer's number is only the length used in training.
        return None
    limits = [tokenizer.model_max_length, getattr(config, "max_position_embeddings", None)]
    for name, module in model.named_modules():
        is_table = name.endswith("position_embeddings") and isinstance(module, nn.Embedding)
        # RoBERTa and related models count positions from padding_idx + 1.
        if is_table and module.padding_idx is not None:
            limits.append(module.num_embeddings - module.padding_idx - 1)
    # XLNet reports -1 for no limit.
    limit = min((value for value in limits if value and value > 0), default=UNLIMITED)
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
    """Turn any exception of a library into a ModelError of one line: "<name> cannot <what>: ...".

    With `is_on_hub`, a connection error becomes an UnreachableModelError; with `is_typed`, the line names the error's
    class. An error of the observers of `run` is raised unchanged.
    """
    try:
        yield
    except (AttnvizError, KeyboardInterrupt):
        raise
    except BaseException as error:
        # The tokenizers library is written in Rust; on a malformed file it panics, which is no subclass of Exception.
        is_panic = type(error).__name__ == "PanicException"
        is_known = is_panic or isinstance(error, Exception | SystemExit)
        if (run is not None and run.observing) or not is_known:
            raise
        if is_on_hub and (connection_error := _connection_error(error)) is not None:
            raise UnreachableModelError(
                f"{name} cannot be downloaded: {first_line(connection_error)}"
            ) from error
        if unfit := unfit_releases():
            raise ModelError(unfit) from error
        if "trust_remote_code" in str(error):
            raise ModelError(
                f"{name} comes with code of its own, which is not run unless you trust it: --trust-remote-code "
                "(in Python trust_remote_code=True)"
            ) from error
        kind = f"{type(error).__name__}: " if is_typed else ""
        raise ModelError(f"{name} cannot {what}: {kind}{first_line(error)}") from error


def _connection_error(error: BaseException | None) -> BaseException | None:
    """Return the connection error nearest to the root of this error's chain of causes; None if there is none."""
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    connection_error = None
    while error is not None:
        is_of_hub = isinstance(error, HfHubHTTPError | LocalEntryNotFoundError | ConnectionError)
        is_of_http = type(error).__module__.startswith("http")  # of the packages httpx and httpcore
        if is_of_hub or is_of_http:
            connection_error = error
        error = error.__cause__ or error.__context__
    return connection_error


@contextmanager
def silence_library() -> Iterator[None]:
    """Silence the warnings and progress bars of transformers, except for download bars, until the block ends."""
    from transformers.utils import logging as library

    with EXCLUSIVE:
        verbosity = library.get_verbosity()
        library.set_verbosity(logging.CRITICAL)
        try:
            with hide_progress_bars():
                yield
        finally:
            library.set_verbosity(verbosity)
