"""Which models can be used without a network: ``attnviz.list_models``."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from attnviz.errors import FileFormatError
from attnviz.models.registry import is_random, names

if TYPE_CHECKING:
    from attnviz.models.training.files import ModelCard


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedModel:
    """A model that can be used by its name."""

    name: str  # as every function and command takes it; of one that was trained here its file
    where: Literal["attnviz", "here", "cache"]  # comes with attnviz, trained here, or in the cache of pretrained models
    card: ModelCard | None = None  # of a home-built one how it was trained, and how good it is


def list_models(folders: Iterable[str | Path] = (".", "outputs")) -> tuple[ListedModel, ...]:
    """The home-built models, those trained again whose files lie in these folders, and pretrained ones in the cache."""
    from attnviz.capture.sources import hub
    from attnviz.models.training.files import ENDING, file_of, load_card

    listed = [
        ListedModel(name=name, where="attnviz", card=None if is_random(name) else load_card(file_of(name)))
        for name in names()
    ]
    for path in sorted(path for folder in folders for path in Path(folder).glob(f"*{ENDING}")):
        with suppress(FileFormatError):  # a record, or another program's
            listed.append(ListedModel(name=str(path), where="here", card=load_card(path)))
    return (*listed, *(ListedModel(name=name, where="cache") for name in hub.cached_models() if hub.is_cached(name)))
