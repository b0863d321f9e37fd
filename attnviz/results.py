"""``attnviz.page``, ``attnviz.save`` and ``attnviz.load``, for results of any kind."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from attnviz.errors import FileFormatError, SettingsError
from attnviz.storage.files import listed
from attnviz.text.display import visible

if TYPE_CHECKING:
    from attnviz.attention import Attention
    from attnviz.pages import WebPage


class Result(Protocol):
    """Anything that can write itself and be shown as a page: a record, a walkthrough, a comparison of heads."""

    @property
    def save(self) -> Callable[..., Path]:
        """Write it, by the path's ending."""

    @property
    def page(self) -> Callable[..., WebPage]:
        """Make its page."""


def page(
    result: Any = None,
    path: str | os.PathLike[str] | None = None,
    *,
    model: str | None = None,
    lang: str = "en",
    **look: Any,
) -> WebPage:
    """Make one HTML page of a result, which works offline; without a result, a page to type in.

    Args:
        result: what `attend`, `generate`, `walkthrough` or `compare_heads` returned, or what `load` did; None for a
            page in which the reader types sentences and a home-built encoder runs.
        path: where to write it; None writes nothing.
        model: which one runs in a page without a result: ``toy`` (None, too) or ``toy-ko``.
        lang: its language at first, ``en`` or ``ko``; the page has both.
        look: of a record, and of the page to type in, ``palette`` and ``scale`` (where the colours end at first), as
            for `attnviz.heatmap`, and ``roles``: what `compare_heads` measured of the same model, or the path of its
            ``.stats`` file, so that each head with an established role has its sign; of a walkthrough ``precision``,
            ``steps`` and ``blanks``, as of its `figure`.

    Returns:
        The page, which a notebook shows and `save` writes.

    Raises:
        OutputError: a path that does not end in ``.html``, or cannot be written.
        SelectionError: a language, palette, scale, step or model that is not there.
        SettingsError: something else than a result, a model beside a result, or a precision that no page has.
        FileFormatError: the file of roles cannot be read.
    """
    if result is None:
        from attnviz.heatmaps.html import tour
        from attnviz.models.registry import TOY

        made = tour(TOY if model is None else model, lang=lang, **look)
    elif not hasattr(result, "page"):
        kind = type(result).__name__
        raise SettingsError(f"a page shows a result, such as that of attnviz.attend, not {kind}")
    elif model is not None:
        raise SettingsError("a model runs in a page without a result: give one of them")
    else:
        made = result.page(lang=lang, **look)
    if path is not None:
        made.save(path)
    return made


def save(result: Result, path: str | os.PathLike[str], **look: Any) -> Path:
    """Write a result in the format that the path's ending names: the same as ``result.save(path, **look)``."""
    return result.save(Path(path), **look)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a saved record, walkthrough, or measurements of heads.

    Args:
        path: a record (``.safetensors``, ``.npz``, ``.json``), also one that another program made (see docs/files.md);
            a walkthrough (``.json``); or what `attnviz.compare_heads` measured (``.stats``).

    Raises:
        FileFormatError: the file cannot be read, holds something else, or was changed after its receipt was issued.
    """
    from attnviz.storage import record_files

    path = Path(path)
    suffix = path.suffix.lower()
    if suffix == ".stats":
        from attnviz.heads.api import compare_heads

        return compare_heads(path)
    if suffix == ".json" and _is_walkthrough(path):
        from attnviz.walkthroughs.files import load as load_walkthrough

        return load_walkthrough(path)
    readers = {
        ".safetensors": record_files.read_safetensors,
        ".npz": record_files.read_npz,
        ".json": record_files.read_json,
    }
    if suffix not in readers:
        known = listed([*readers, ".stats"])
        raise FileFormatError(
            visible(f"{path}: what was saved is read from {known}, not {suffix!r}")
        )
    return readers[suffix](path)


def load_record(path: str | os.PathLike[str]) -> Attention:
    """Read a record. Raises FileFormatError: the file holds something else, or cannot be read."""
    path = Path(path)
    if path.suffix.lower() == ".stats":
        holds, command = "measurements of heads", "attnviz compare-heads --load"
    elif path.suffix.lower() == ".json" and _is_walkthrough(path):
        holds, command = "a walkthrough", "attnviz verify"
    else:
        record: Attention = load(path)
        return record
    raise FileFormatError(visible(f"{path}: it holds {holds}, no record: {command} reads it"))


def _is_walkthrough(path: Path) -> bool:
    """Return whether a JSON file calls itself a walkthrough."""
    from attnviz.walkthroughs.files import FORMAT

    if not path.is_file():  # a pipe would be waited for
        return False
    try:
        held = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(held, dict) and held.get("format") == FORMAT
