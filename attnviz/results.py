"""Results of any kind as files: ``attnviz.save`` and ``attnviz.load``."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from attnviz.attention import Attention
    from attnviz.heads.record import HeadComparison
    from attnviz.walkthroughs.record import Walkthrough


@runtime_checkable  # the shape checks of the tests ask
class Result(Protocol):
    """What can write itself: a record, a walkthrough, a comparison."""

    def save(self, path: Path) -> Path:
        """Write it, by the path's ending."""


def save(result: Result, path: str | os.PathLike[str]) -> Path:
    """Write a result in the format that the path's ending names: the same as ``result.save(path)``.

    Raises:
        OutputError: another ending, or a file that cannot be written.
        RecordError: it holds what no file can hold.
    """
    return result.save(Path(path))


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
    if suffix == ".stats":
        from attnviz.heads.api import compare_heads

        return compare_heads(path)
    if suffix == ".json" and _is_walkthrough(path):
        from attnviz.walkthroughs.files import load as load_walkthrough

        return load_walkthrough(path)
    from attnviz.storage import load as load_record

    return load_record(path)


def _is_walkthrough(path: Path) -> bool:
    """Whether a JSON file calls itself a walkthrough; what cannot be read is left to the reader of records."""
    from attnviz.walkthroughs.verify.saved import FORMAT

    try:
        held = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(held, dict) and held.get("format") == FORMAT
