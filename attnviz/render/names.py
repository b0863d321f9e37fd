"""Names of files, made from what they show."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path


def picture_path(
    command: str, shown: str, model: str, more: Sequence[str] = (), *, pair: str | None, target: str | None
) -> Path:
    """A file in ``outputs/`` named after what it shows: the same command writes the same file again.

    Args:
        command: whose picture it is.
        shown: the sentence, or what else is shown.
        model: its name; empty where there is none.
        more: what else makes it another picture.
        pair: the second sentence.
        target: what the model was made to say.
    """
    said = " + ".join(filter(None, [shown, pair])) + (f" -> {target}" if target else "")
    name = re.sub(r"[(),]", "", model.rpartition("/")[2].removesuffix(" (seed 0)"))
    parts = [command, slug(said, 40), *([slug(name, 30)] if name else []), *more]
    return Path("outputs") / f"{'-'.join(parts)}.png"


def slug(text: str, length: int) -> str:
    """Letters and digits of any script, all else a hyphen; where that loses something, a short hash tells it apart."""
    slug = re.sub(r"[\W_]+", "-", text.lower()).strip("-")
    if slug == re.sub(r"[ ._-]", "-", text.lower()) and len(slug) <= length:
        return slug
    return f"{slug[:length].rstrip('-') or 'text'}-{hashlib.blake2b(text.encode(), digest_size=3).hexdigest()}"
