"""The functions ``attnviz.page``, ``attnviz.save`` and ``attnviz.load`` for results of any kind."""

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


COMPARISON, WALKTHROUGH = "attnviz-comparison", "attnviz-walkthrough"  # the formats of JSON files


class Result(Protocol):
    """A result that can be saved and shown as a page: a record, a walkthrough, a comparison of heads."""

    @property
    def save(self) -> Callable[..., Path]:
        """The method that writes the result in the format of the path's ending."""

    @property
    def page(self) -> Callable[..., WebPage]:
        """The method that makes the page of the result."""


def page(
    result: Any = None,
    path: str | os.PathLike[str] | None = None,
    *,
    model: str | None = None,
    lang: str = "en",
    **look: Any,
) -> WebPage:
    """Make one HTML page of a result, which works offline; without a result, make a page for typing sentences.

    Args:
        result: the result of `attend`, `generate`, `walkthrough`, `compare_heads` or `load`; None for a page in which
            the reader types sentences and a home-built encoder runs.
        path: the file to write; None writes no file.
        model: the model that runs in a page without a result: ``toy`` (the default) or ``toy-ko``.
        lang: the initial language, ``en`` or ``ko``; the page has both.
        look: further options. Every page takes ``theme``: ``light`` or ``dark``, or ``auto`` (the default), which
            follows the reader's system. A record and a page without a result take ``palette`` and ``scale`` (the
            initial end of the colour scale), as for `attnviz.heatmap`. A walkthrough takes ``precision``, ``steps``
            and ``blanks``, as for its `figure`.

    Returns:
        The page, which a notebook shows and `save` writes.

    Raises:
        OutputError: the path does not end in ``.html``, or cannot be written.
        SelectionError: there is no such language, palette, scale, step or model.
        SettingsError: `result` is no result, a model is given beside a result, or the theme or precision is impossible.
    """
    if result is None:
        from attnviz.heatmaps.html import tour
        from attnviz.models.registry import TOY

        web_page = tour(TOY if model is None else model, lang=lang, **look)
    elif not hasattr(result, "page"):
        kind = type(result).__name__
        raise SettingsError(f"a page shows a result, such as that of attnviz.attend, not {kind}")
    elif model is not None:
        raise SettingsError("a model runs in a page without a result: give one of them")
    else:
        web_page = result.page(lang=lang, **look)
    if path is not None:
        web_page.save(path)
    return web_page


def save(result: Result, path: str | os.PathLike[str], **look: Any) -> Path:
    """Write a result in the format of the path's ending; equivalent to ``result.save(path, **look)``."""
    return result.save(Path(path), **look)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a saved record, walkthrough, or comparison of heads.

    Args:
        path: a record (``.safetensors``, ``.npz``, ``.json``), also one written by another program (see docs/files.md);
            a walkthrough or the result of `attnviz.compare_heads` (``.json``).

    Raises:
        FileFormatError: the file cannot be read, holds something else, or was changed after its receipt was issued.
    """
    from attnviz.storage import record_files

    path = Path(path)
    suffix = path.suffix.lower()
    kind = _format_of(path) if suffix == ".json" else None
    if suffix == ".stats" or kind == COMPARISON:
        from attnviz.heads import files as heads_files

        return heads_files.load(path)
    if kind == WALKTHROUGH:
        from attnviz.walkthroughs import files as walkthrough_files

        return walkthrough_files.load(path)
    if suffix not in record_files.SUFFIXES:
        suffixes = listed(record_files.SUFFIXES)
        raise FileFormatError(
            visible(f"{path}: what was saved is read from {suffixes}, not {suffix!r}")
        )
    return record_files.read(path)


def load_record(path: str | os.PathLike[str]) -> Attention:
    """Read a record. Raises FileFormatError: the file holds something else, or cannot be read."""
    path = Path(path)
    kind = _format_of(path) if path.suffix.lower() == ".json" else None
    if kind == COMPARISON:
        holds, command = "a comparison of heads", "attnviz compare-heads --load"
    elif kind == WALKTHROUGH:
        holds, command = "a walkthrough", "attnviz verify"
    else:
        record: Attention = load(path)
        return record
    raise FileFormatError(visible(f"{path}: it holds {holds}, no record: {command} reads it"))


def _format_of(path: Path) -> object:
    """Return the format field of a JSON file; None if it cannot be read, which its reader will say."""
    if not os.path.isfile(path):  # reading a pipe here would block, or consume its data
        return None
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return content.get("format") if isinstance(content, dict) else None
