"""Results of any kind as pages and files: ``attnviz.page``, ``attnviz.save`` and ``attnviz.load``."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from attnviz.errors import FileFormatError, SettingsError
from attnviz.storage.files import listed
from attnviz.storage.formats import COMPARISON, RECORD, WALKTHROUGH
from attnviz.text.arguments import check_call
from attnviz.text.display import visible

if TYPE_CHECKING:
    from attnviz.attention import Attention
    from attnviz.heads.record import HeadComparison
    from attnviz.pages import WebPage
    from attnviz.walkthroughs.record import Walkthrough


@runtime_checkable  # `page`, and the shape checks of the tests, ask
class Result(Protocol):
    """What can write itself and is shown as a page: a record, a walkthrough, a comparison of heads or of models."""

    def save(self, path: Path, **look: Any) -> Path:
        """Write it, by the path's ending."""

    def page(self, lang: str) -> WebPage:
        """Its page, in English or Korean at first."""


@check_call()
def page(
    result: object = None,
    path: str | os.PathLike[str] | None = None,
    *,
    model: str | None = None,
    lang: str = "en",
    **look: Any,
) -> WebPage:
    """A result as one HTML page to explore, which needs no network and asks for none; without one, a page to type in.

    Args:
        result: what `attend`, `generate`, `walkthrough`, `compare_heads` or `compare_models` returned, or what `load`
            did; None for a page in which the reader types sentences and a home-built encoder runs.
        path: where to write it; None writes nothing.
        model: which one runs in a page without a result: ``toy`` (None, too) or ``toy-ko``.
        lang: its language at first, ``en`` or ``ko``; the page has both.
        look: of a record, and of the page to type in, ``cmap`` and ``scale`` (where the colours end at first), as
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
    elif not isinstance(result, Result):
        raise SettingsError(
            f"a page shows a result, such as that of attnviz.attend, and no {type(result).__name__}"
        )
    elif model is not None:
        raise SettingsError("a model runs in a page without a result: give one of them")
    else:
        made = result.page(lang=lang, **look)
    if path is not None:
        made.save(path)
    return made


@check_call()
def save(result: Result | Sequence[Walkthrough], path: str | os.PathLike[str], **look: Any) -> Path:
    """Write a result in the format that the path's ending names: the same as ``result.save(path, **look)``.

    Several walkthroughs, such as `decoding_steps` gives, are one film.

    Raises:
        OutputError: another ending, or a file that cannot be written.
        RecordError: it holds what no file can hold.
        SelectionError, SettingsError: as its own ``save``; SettingsError, too, of several results of another kind.
    """
    if isinstance(result, Sequence):
        from attnviz.walkthroughs.files import save as save_walkthroughs

        return save_walkthroughs(result, path, **look)
    return result.save(Path(path), **look)


@check_call()
def load(path: str | os.PathLike[str]) -> Attention | Walkthrough | HeadComparison:
    """Read what was saved: a record, a walkthrough, or what was measured of heads.

    Args:
        path: a record (``.safetensors``, ``.npz``, ``.json``), also one that another program made (see docs/files.md);
            a walkthrough (``.json``); or what `attnviz.compare_heads` measured (``.stats``).

    Raises:
        FileFormatError: the file cannot be read, holds something else, or was changed after its receipt was issued.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in (known := [*RECORD.read, *COMPARISON.read]):
        raise FileFormatError(
            visible(f"{path}: what was saved is read from {listed(known)}, not {suffix!r}")
        )
    is_walk = suffix == ".json" and _is_walkthrough(path)
    formats = COMPARISON if suffix in COMPARISON.read else WALKTHROUGH if is_walk else RECORD
    found: Attention | Walkthrough | HeadComparison = formats.load(path)
    return found


def _is_walkthrough(path: Path) -> bool:
    """Whether a JSON file calls itself a walkthrough; what cannot be read is left to the reader of records."""
    from attnviz.walkthroughs.verify.saved import FORMAT

    try:
        held = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(held, dict) and held.get("format") == FORMAT
