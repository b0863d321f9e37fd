"""Sources from the name of a model or from a model in memory."""

from __future__ import annotations

import difflib
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, get_args

from typing_extensions import Unpack

from attnviz.capture.sources import Head, Source
from attnviz.capture.sources.hub import cached_models, is_cached, locate
from attnviz.errors import (
    AttnvizWarning,
    FileFormatError,
    InputError,
    ModelError,
    SettingsError,
    UnknownModelError,
    UnreachableModelError,
)
from attnviz.models.registry import TOY, TOY_KOREAN, Device, Dtype, is_random, names, split_sizes
from attnviz.text.display import clip, is_korean, visible
from attnviz.text.suggest import FOREIGN, suggest

if TYPE_CHECKING:
    import torch
    from torch.nn import Module
    from transformers import Pipeline

    from attnviz.models.training.files import ModelCard

DEFAULT_MODEL = "distilbert-base-uncased"


class Opening(TypedDict, total=False):
    """The options for loading a model (see `open_source`)."""

    device: Device
    dtype: Dtype
    revision: str | None
    trust_remote_code: bool
    notify: Callable[[str], None] | None


# A model's name or a model in memory; see `as_source`.
Model: TypeAlias = "str | Path | Source | Module | Pipeline | None"


def check_keywords(
    function: Callable[..., object], given: Iterable[str], known: frozenset[str]
) -> None:
    """Refuse a keyword that a function would hand on to another one, which does not know it.

    The TypeError names the function that was called, as Python does for its own keywords.
    """
    for name in given:
        if name not in known:
            meant = difflib.get_close_matches(name, [*signature(function).parameters, *known], 1)
            hint = f". Did you mean {meant[0]!r}?" if meant else ""
            raise TypeError(
                f"{function.__name__}() got an unexpected keyword argument {name!r}{hint}"
            )


def as_source(
    model: Model = None,
    tokenizer: object = None,
    *,
    reads: str = "",
    head: Head = None,
    **loading: Unpack[Opening],
) -> Source:
    """Return the source that a model's attention streams from.

    Args:
        model: a name or a folder, as for `open_source`; a Hugging Face model in memory, with any head, or a torch
            module that takes token ids [batch, token], both of which are left unchanged; a pipeline of transformers or
            a SentenceTransformer, whose model and tokenizer are taken; or a source, returned as is.
        tokenizer: the tokenizer of a model in memory. The tokenizer of a torch module has ``encode`` and ``decode``;
            without one, the module reads the bytes of a text.
        reads: as for `open_source`.
        head: as for `open_source`.
        loading: options as for `open_source`; not allowed for a model in memory, which is already loaded.

    Raises:
        SettingsError: a tokenizer is given for a model that has its own, or loading options for a loaded model.
        ModelError, InputError, FileFormatError: as for `open_source`, or the tokenizer belongs to another model.
    """
    check_keywords(as_source, loading, Opening.__optional_keys__)
    if tokenizer is not None and (model is None or isinstance(model, str | Path | Source)):
        raise SettingsError("a tokenizer goes with a model that is in memory: this one has its own")
    if model is None or isinstance(model, str | Path):
        return open_source(model, reads=reads, head=head, **loading)
    if options := [name for name, value in loading.items() if value not in (None, "auto", False)]:
        raise SettingsError(
            f"the model is loaded already: {' and '.join(options)} cannot be chosen"
        )
    if isinstance(model, Source):
        return model
    import torch

    if (inner := _unwrap(model)) is not None:
        if tokenizer is not None:
            raise SettingsError(f"a {type(model).__name__} has its own tokenizer: give none")
        model, tokenizer = inner
    from attnviz.capture.sources.loading import refuse_script

    refuse_script(model)
    # If the model comes from transformers, the library is already imported; otherwise it need not be.
    library = sys.modules.get("transformers")
    if isinstance(model, torch.nn.Module):
        first = next(model.parameters(), None)
        if first is not None and first.is_meta:
            raise ModelError(
                f"this {type(model).__name__} has no numbers: its weights are on the meta device"
            )
        if library is None or not isinstance(model, library.PreTrainedModel):
            from attnviz.capture.sources.own import ModuleSource

            return ModuleSource(f"{type(model).__name__} in memory", model, tokenizer)
    from attnviz.capture.sources.huggingface import from_memory

    return from_memory(model, tokenizer)


def _unwrap(model: Any) -> tuple[Any, object] | None:
    """Return the model and the tokenizer in a pipeline or a SentenceTransformer; None for any other model."""
    import torch

    if isinstance(model, torch.nn.Sequential):
        # A SentenceTransformer is its transformer, then pooling, perhaps more.
        first: Any = next(model.children(), None)
        if hasattr(first, "auto_model") and hasattr(first, "tokenizer"):
            return first.auto_model, first.tokenizer
    # Imported wherever there is a pipeline.
    pipelines = sys.modules.get("transformers.pipelines.base")
    if pipelines is not None and isinstance(model, pipelines.Pipeline):
        return model.model, model.tokenizer
    return None


def open_source(
    model: str | Path | None = None,
    *,
    device: Device = "auto",
    dtype: Dtype = "auto",
    revision: str | None = None,
    trust_remote_code: bool = False,
    notify: Callable[[str], None] | None = None,
    reads: str = "",
    drawn: int | None = None,
    head: Head = None,
) -> Source:
    """Find and load a model.

    Args:
        model: one of

            - a home-built model (``toy``, ``toy-decoder``, ``toy-seq2seq``, ``toy-transformer``, ``toy-random``, or
              with sizes ``toy-random:n_heads=2,d_model=16,seed=1``),
            - a name on the hub (``name@revision``),
            - a folder,
            - a file that ``attnviz train`` wrote,
            - a file of code and a function in it that returns a torch module, or a module and its tokenizer
              (``my_module.py:build``),
            - None for DistilBERT. If that is neither cached nor reachable within 3 seconds, ``toy`` is used instead,
              or ``toy-ko`` if the text in `reads` is Korean, and `notify` gets a line about it.
        device: the device that the model runs on; ``auto`` takes a GPU if there is one.
        dtype: the model's number format; ``auto`` is the format that the weights were saved in.
        revision: a branch, tag or commit on the hub.
        trust_remote_code: whether code shipped with the model may run.
        notify: called with a line that the user should read; by default the line becomes a warning.
        reads: the text that the model is going to read, if there is one.
        head: what is loaded with the model: ``words`` the projection of a decoder, which only generation needs;
            ``saved`` also that of a model of hidden words, or of classes; None is only what attends.
        drawn: a seed for drawing all weights at random, so that only the configuration of the named model is needed.

    Raises:
        ModelError: the model cannot be used, or not with these sizes. A named model is never replaced by another.
        UnknownModelError: there is no model of this name, neither home-built nor on the hub.
        InputError: there is no such size of ``toy-random``, or no such device or number format.
        FileFormatError: the file of a home-built model is damaged.
        SettingsError: weights cannot be drawn at random, because no model is named or the model is home-built.
    """
    notify = notify or _warn
    name, sizes = DEFAULT_MODEL if model is None else str(model), dict[str, int]()
    code = re.fullmatch(r"(.+\.py)(?::(.*))?", name)
    # An existing path is not divided, nor one of Windows, where a colon follows the letter of the drive.
    if code is None and "\\" not in name and not os.path.exists(os.path.expanduser(name)):
        name, sizes = split_sizes(name)
        if revision is None and "@" in name:
            name, _, revision = name.partition("@")
    is_home_built = name in names() or name.endswith(".safetensors")
    if drawn is not None and (model is None or code is not None or is_home_built):
        raise SettingsError(
            "weights are drawn at random of a model on the hub or in a folder, which must be named"
        )
    if code is not None:
        return _from_code(code[1], code[2] or "", _device(device), _dtype(dtype), notify)
    if is_home_built:
        from attnviz.capture.sources.home_built import home_built

        return home_built(name, sizes, _device(device), _dtype(dtype))
    suffix = Path(name).suffix.lower()
    if suffix in FOREIGN and not os.path.isdir(name):
        raise ModelError(f"{visible(name)} {FOREIGN[suffix]}")
    _refuse_misspelling(name)
    try:
        location = locate(name, revision, needs_weights=drawn is None)
        from attnviz.capture.sources.huggingface import open_pretrained

        return open_pretrained(
            location,
            device=_device(device),
            dtype=_dtype(dtype),
            revision=revision,
            trust_remote_code=trust_remote_code,
            seed=drawn,
            head=head,
        )
    except ModelError as error:
        if model is not None:
            raise
        substitute = TOY_KOREAN if is_korean(reads) else TOY
        # Opening the substitute fails too if the device does not exist, so it comes before the notice.
        toy = open_source(substitute, device=device, dtype=dtype)
        reason = error.reason if isinstance(error, UnreachableModelError) else str(error)
        notify(
            f'{reason}; using the home-built model "{substitute}" instead (with DistilBERT\'s shapes: '
            "-m toy-random-bert:n_layers=6,d_model=768,n_heads=12)"
        )
        return toy


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedModel:
    """A model that can be used by its name."""

    # The name for functions and commands; for a model trained by the user, the path of its file.
    name: str
    # Whether the model comes with attnviz, was trained by the user, or is in the cache of pretrained models.
    where: Literal["attnviz", "here", "cache"]
    # the training and the accuracy of a home-built model
    card: ModelCard | None = field(default=None, repr=False)


def list_models(folders: Iterable[str | Path] = (".", "outputs")) -> tuple[ListedModel, ...]:
    """Return the home-built models, the models trained by the user, and the pretrained models in the cache.

    `folders` are searched for files that ``attnviz train`` wrote.
    """
    from attnviz.models.training.files import ENDING, file_of, load_card

    models = []
    for name in names():
        card = None if is_random(name) else load_card(file_of(name))
        models.append(ListedModel(name=name, where="attnviz", card=card))
    for path in sorted(path for folder in folders for path in Path(folder).glob(f"*{ENDING}")):
        with suppress(FileFormatError):  # the file may be a record, or come from another program
            models.append(ListedModel(name=str(path), where="here", card=load_card(path)))
    models += [ListedModel(name=name, where="cache") for name in cached_models() if is_cached(name)]
    return tuple(models)


def _from_code(
    file: str,
    function: str,
    device: torch.device,
    dtype: torch.dtype | None,
    notify: Callable[[str], None],
) -> Source:
    """Return the source of the torch module that a function in a file of code returns."""
    from attnviz.capture.sources.own import build

    if not os.path.isfile(os.path.expanduser(file)):
        raise UnknownModelError(f"there is no file {clip(visible(file), 100)}")
    notify(f"running the code of {visible(file)}")
    module, tokenizer = build(file, function)
    source = as_source(module.to(device, dtype), tokenizer)
    source.name = visible(f"{Path(file).name}:{function}")
    return source


def _refuse_misspelling(model: str) -> None:
    """Raise UnknownModelError for a misspelled name of a home-built model, before the hub is asked.

    Names that resemble no home-built model, such as "gpt2", pass.
    """
    name = model.strip().lower()
    is_similar = difflib.get_close_matches(name, names(), n=1, cutoff=0.8)
    is_meant = name.startswith((TOY, "bottleneck-")) or is_similar
    if "/" not in model and is_meant and not os.path.isdir(model):
        shown = clip(visible(model), 60)
        raise UnknownModelError(f"there is no home-built model '{shown}'{suggest(name, names())}")


def _check_choice(what: str, name: str, choices: Any) -> None:
    """Raise InputError if a device or a number format is not among the known ones."""
    if name not in get_args(choices):
        raise InputError(
            f"{what} must be one of {', '.join(get_args(choices))}, not {visible(name)!r}"
        )


def _device(name: Device) -> torch.device:
    """Return the device of this name. Raises ModelError: it is not available."""
    import torch

    _check_choice("the device", name, Device)
    has_kind = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    has_kind["cpu"] = True
    if name == "auto":
        return torch.device(next(kind for kind, is_there in has_kind.items() if is_there))
    if not has_kind[name]:
        raise ModelError(f"there is no {name.upper()} device here that torch can use: take cpu")
    return torch.device(name)


def _dtype(name: Dtype) -> torch.dtype | None:
    """Return the number format of this name; None for ``auto``."""
    import torch

    _check_choice("the number format", name, Dtype)
    return None if name == "auto" else getattr(torch, name)


def _warn(line: str) -> None:
    """Show a line as a warning at the place in the user's code that called attnviz."""
    warnings.warn(line, AttnvizWarning, stacklevel=6)


def is_model(text: str) -> bool:
    """Return whether a text names a model and is no sentence.

    A model is a home-built name, an existing path, in the cache, or a name with a slash and no space, ``owner/name``.
    """
    name, _, revision = text.partition("@")
    if text.partition(":")[0] in names() or ("/" in text and " " not in text.strip()):
        return True
    try:
        is_path = bool(text.strip()) and os.path.exists(os.path.expanduser(text))
        return is_path or is_cached(name, revision or None, needs_weights=False)
    except ValueError:  # the text is no valid name of a model
        return False
