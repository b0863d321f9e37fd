"""Search for a model's files in a folder, the cache or on the hub; needs neither torch nor transformers."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from attnviz.errors import ModelError, UnknownModelError, UnreachableModelError
from attnviz.text.display import clip, visible

PATIENCE = 3.0  # seconds to wait for the hub's first answer before it counts as unreachable
# The file that holds a model's weights, or the index of the files among which they are divided.
INDEX = "model.safetensors.index.json"  # which of several files holds which weights
WEIGHTS = ("model.safetensors", INDEX)
ADAPTER = "adapter_config.json"  # PEFT writes it beside weights that only change those of another
SAFETENSORS_ONLY = "attnviz reads safetensors only (other formats can run code while they load)"
WHAT_TO_DO = (
    "download it where there is a network, give a local folder, or use the home-built model (toy)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A place to load a model from."""

    path: str  # the path for transformers: a folder, or a name on the hub
    name: str  # the model's name in pictures
    is_local: bool = True  # whether it is in a folder or in the cache, so that the hub is not asked


def locate(model: str, revision: str | None = None, *, needs_weights: bool = True) -> Location:
    """Return where a model, or only its configuration, can be loaded from, within a few seconds.

    Raises UnknownModelError: there is no model of this name; UnreachableModelError: the hub does not answer, or may not
    be asked; ModelError: the hub refuses access, as it does for gated models.
    """
    if model and os.path.isdir(folder := os.path.expanduser(model)):
        return _folder(Path(folder), needs_weights=needs_weights)
    model_name = clip(visible(model), 100)
    if model.startswith((".", "/", "~")) or model.count("/") > 1 or "\\" in model:
        raise UnknownModelError(f"there is no folder {model_name}")
    from huggingface_hub.errors import HFValidationError

    try:
        if is_cached(model, revision, needs_weights=needs_weights):
            return Location(path=model, name=model)
    except HFValidationError:
        raise UnknownModelError(
            f"'{model_name}' is neither a folder nor a model's name on the hub"
        ) from None
    _ask_hub(model, revision)
    return Location(path=model, name=model, is_local=False)


def _folder(folder: Path, *, needs_weights: bool) -> Location:
    """Return the location of a model in a folder, if nothing in it is missing or dangerous."""
    name = f"the folder {visible(str(folder))}"
    for path in (*folder.glob("*"), *folder.glob("additional_chat_templates/*")):
        # Reading a pipe or a device could take forever.
        if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
            raise ModelError(f"{name} is refused: its {visible(path.name)} is not a regular file")
    if (folder / ADAPTER).is_file():
        raise ModelError(
            f"{name} holds an adapter: merge it with its base model (merge_and_unload), and give that"
        )
    if not (folder / "config.json").is_file():
        raise UnknownModelError(f"{name} holds no model: it has no config.json")
    if needs_weights and not any((folder / file).is_file() for file in WEIGHTS):
        raise ModelError(f"{name} has no model.safetensors: {SAFETENSORS_ONLY}")
    return Location(path=str(folder), name=visible("/".join(folder.resolve().parts[1:][-2:])))


def is_cached(model: str, revision: str | None = None, *, needs_weights: bool = True) -> bool:
    """Return whether the cache holds the model's configuration and, if they are needed, all its weights."""
    from huggingface_hub import try_to_load_from_cache

    def cached(file: str) -> Path | None:
        path = try_to_load_from_cache(model, file, revision=revision)
        return Path(path) if isinstance(path, str) else None

    if cached("config.json") is None:
        return False
    if not needs_weights or cached("model.safetensors") is not None:
        return True
    if (index := cached(INDEX)) is None:
        return False
    try:
        parts = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
    except (OSError, ValueError, KeyError, AttributeError):
        return False
    return all(cached(part) is not None for part in parts)


def cached_models() -> list[str]:
    """Return the names of the pretrained models with at least one file in the cache."""
    from huggingface_hub import constants

    folders = sorted(Path(constants.HF_HUB_CACHE).glob("models--*"))
    return [folder.name.removeprefix("models--").replace("--", "/") for folder in folders]


def _ask_hub(model: str, revision: str | None) -> None:
    """Check that the hub has a model's configuration and weights, as `locate`."""
    from huggingface_hub import constants, errors

    if constants.HF_HUB_OFFLINE:
        raise _unreachable(model, "the hub may not be asked (HF_HUB_OFFLINE is set)")
    try:
        if not _within_patience(partial(_is_on_hub, model, "config.json", revision)):
            raise UnknownModelError(f"{model} on the hub holds no model: it has no config.json")
        # Without this check, transformers would ask another server to convert the weights.
        if not any(_is_on_hub(model, file, revision) for file in WEIGHTS):
            raise ModelError(f"{model} has no model.safetensors on the hub: {SAFETENSORS_ONLY}")
    except ModelError:
        raise
    except FutureTimeoutError:
        reason = f"the hub did not answer within {PATIENCE:.0f} seconds"
        raise _unreachable(model, reason) from None
    except errors.GatedRepoError:
        reason = "is gated: ask its owner for access, then log in with `hf auth login`"
        raise ModelError(f"{model} {reason}") from None
    except errors.RevisionNotFoundError:
        raise UnknownModelError(f"{model} has no revision {revision!r} on the hub") from None
    except errors.RepositoryNotFoundError:
        reason = f"there is no model {model!r} on the hub (or it is private)"
        raise UnknownModelError(reason) from None
    except Exception as error:
        reason = f"the hub cannot be reached ({first_line(error, 120)})"
        raise _unreachable(model, reason) from None


def _within_patience(ask: Callable[[], bool]) -> bool:
    """Return the answer to the first question, asked in a thread: a slow name server or proxy blocks for any time."""
    answer: Future[bool] = Future()

    def run() -> None:
        try:
            answer.set_result(ask())
        except Exception as error:
            answer.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return answer.result(PATIENCE)


def _is_on_hub(model: str, file: str, revision: str | None) -> bool:
    """Return whether the hub has a file of a model."""
    from huggingface_hub import errors, get_hf_file_metadata, hf_hub_url

    url = hf_hub_url(model, file, revision=revision)
    try:
        answer = get_hf_file_metadata(url, timeout=PATIENCE)
    except errors.EntryNotFoundError:
        return False
    if answer.commit_hash is None:  # as from the page of a network at which one logs in
        raise _unreachable(model, "what answers in the hub's place is not the hub")
    return True


def _unreachable(model: str, reason: str) -> UnreachableModelError:
    """Return the error for a model that is not in the cache and, for this reason, cannot be downloaded."""
    return UnreachableModelError(f"{model} is not in the cache, and {reason}", WHAT_TO_DO)


def first_line(error: BaseException, length: int = 200) -> str:
    """Return the first line of an error's message, shortened to `length` characters."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return clip(visible(lines[0] if lines else type(error).__name__), length)
