"""Find a model's files in a folder, the cache or on the hub. Needs neither torch nor transformers."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from attnviz.errors import ModelError, UnknownModelError, UnreachableModelError
from attnviz.text.display import clip, visible

PATIENCE = 3.0  # seconds to wait for the hub's first answer before it counts as out of reach
# The files that hold a model's weights, or say which files do.
WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
SAFETENSORS_ONLY = "attnviz reads safetensors only (other formats can run code while they load)"
WHAT_TO_DO = (
    "download it where there is a network, give a local folder, or use the home-built model (toy)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A place to load a model from."""

    path: str  # for the library: a folder, or a name on the hub
    where: Literal["folder", "cache", "hub"]
    name: str  # as pictures have it


def locate(model: str, revision: str | None = None, *, needs_weights: bool = True) -> Location:
    """Find a model, or its configuration alone, within a few seconds.

    Raises UnknownModelError: there is none of this name; UnreachableModelError: the hub does not answer, or may not be
    asked; ModelError: the hub refuses it, as it does gated models.
    """
    is_folder = False
    with suppress(OSError, RuntimeError):  # longer than a path may be; in the home of nobody
        is_folder = bool(model) and Path(model).expanduser().is_dir()
    if is_folder:
        return _folder(Path(model).expanduser(), needs_weights=needs_weights)
    shown = clip(visible(model), 100)
    if model.startswith((".", "/", "~")) or model.count("/") > 1:
        raise UnknownModelError(f"there is no folder {shown}")
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]  # public, but its __init__ is lazy

    try:
        validate_repo_id(model)
    except HFValidationError:
        raise UnknownModelError(
            f"'{shown}' is neither a folder nor a model's name on the hub"
        ) from None
    if is_cached(model, revision, needs_weights=needs_weights):
        return Location(path=model, where="cache", name=model)
    _ask_hub(model, revision)
    return Location(path=model, where="hub", name=model)


def _folder(folder: Path, *, needs_weights: bool) -> Location:
    if not (folder / "config.json").is_file():
        raise UnknownModelError(
            f"the folder {visible(str(folder))} holds no model: it has no config.json"
        )
    if needs_weights and not any((folder / name).is_file() for name in WEIGHTS):
        raise ModelError(
            f"the folder {visible(str(folder))} has no model.safetensors: {SAFETENSORS_ONLY}"
        )
    whole = folder.resolve()
    return Location(
        path=str(folder),
        where="folder",
        name=visible(f"{whole.parent.name}/{whole.name}".lstrip("/")),
    )


def is_cached(model: str, revision: str | None = None, *, needs_weights: bool = True) -> bool:
    """Return whether the cache holds the model's configuration and, where they are needed, all its weights."""
    from huggingface_hub import try_to_load_from_cache

    def cached(file: str) -> Path | None:
        found = try_to_load_from_cache(model, file, revision=revision)
        return Path(found) if isinstance(found, str) else None

    if cached("config.json") is None:
        return False
    if not needs_weights or cached("model.safetensors") is not None:
        return True
    if (index := cached("model.safetensors.index.json")) is None:
        return False
    try:
        parts = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
    except (OSError, ValueError, KeyError, AttributeError):
        return False
    return all(cached(part) is not None for part in parts)


def cached_models() -> list[str]:
    """Return the names of the pretrained models of which something is in the cache."""
    from huggingface_hub import constants

    folders = sorted(Path(constants.HF_HUB_CACHE).glob("models--*"))
    return [folder.name.removeprefix("models--").replace("--", "/") for folder in folders]


def _ask_hub(model: str, revision: str | None) -> None:
    """Ask the hub whether the model is there, for a limited time whatever the name server or a proxy does."""
    from huggingface_hub import constants
    from huggingface_hub.errors import (
        GatedRepoError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    if constants.HF_HUB_OFFLINE:
        raise _unreachable(model, "the hub may not be asked (HF_HUB_OFFLINE is set)")
    heard = threading.Event()
    answer: list[Exception] = []

    def ask() -> None:
        try:
            _look(model, revision, heard)
        except Exception as error:
            answer.append(error)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(PATIENCE)
    if asking.is_alive() and not heard.is_set():
        raise _unreachable(model, f"the hub did not answer within {PATIENCE:.0f} seconds")
    for error in answer:
        if isinstance(error, ModelError):
            raise error
        if isinstance(error, GatedRepoError):
            raise ModelError(
                f"{model} is gated: ask its owner for access, then log in with `hf auth login`"
            ) from None
        if isinstance(error, RevisionNotFoundError):
            raise UnknownModelError(f"{model} has no revision {revision!r} on the hub") from None
        if isinstance(error, RepositoryNotFoundError):
            raise UnknownModelError(
                f"there is no model {model!r} on the hub (or it is private)"
            ) from None
        raise _unreachable(model, f"the hub cannot be reached ({first_line(error, 120)})") from None


def _look(model: str, revision: str | None, heard: threading.Event) -> None:
    """Check that the hub has the configuration and weights; `heard` is set at its first good answer."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url
    from huggingface_hub.errors import EntryNotFoundError

    def has(file: str) -> bool:
        try:
            found = get_hf_file_metadata(
                hf_hub_url(model, file, revision=revision), timeout=PATIENCE
            )
        except EntryNotFoundError:
            return False
        if found.commit_hash is None:
            # but a network's login page
            raise _unreachable(model, "what answers in the hub's place is not the hub")
        heard.set()
        return True

    if not has("config.json"):
        raise UnknownModelError(f"{model} on the hub holds no model: it has no config.json")
    if not any(map(has, WEIGHTS)):  # the library would ask another server to convert them
        raise ModelError(f"{model} has no model.safetensors on the hub: {SAFETENSORS_ONLY}")


def _unreachable(model: str, why: str) -> UnreachableModelError:
    return UnreachableModelError(f"{model} is not in the cache, and {why}", WHAT_TO_DO)


def first_line(error: BaseException, length: int = 200) -> str:
    """Return the first line of an error, shortened."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return clip(visible(lines[0] if lines else type(error).__name__), length)
