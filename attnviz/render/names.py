"""Names that users type or read: palettes, and files named after what they show."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from attnviz.errors import SettingsError

PALETTES = {
    "teal": "attnviz",
    "magma": "matplotlib",
    "inferno": "matplotlib",
    "plasma": "matplotlib",
    "viridis": "matplotlib",
    "cividis": "matplotlib",
    "gray": "matplotlib",
    "mako": "seaborn",
    "rocket": "seaborn",
    "crest": "seaborn",
    "flare": "seaborn",
}
"""The palettes of the command line, and the library that each comes from.

Each runs evenly from dark to light, so that equal steps of weight look equal, in grey and to any eye.
"""
DEFAULT = "teal"


def picture_path(
    command: str,
    shown: str,
    model: str,
    more: Sequence[str] = (),
    *,
    pair: str | None,
    target: str | None,
) -> Path:
    """A file in `outputs` named after what it shows, and `more` that makes it another picture.

    The same command writes the same file again. `shown` is the sentence, `pair` the second one, `target` what the model
    was made to generate; without a `model` its name is empty.
    """
    texts = " + ".join(filter(None, [shown, pair])) + (f" -> {target}" if target else "")
    name = re.sub(r"[(),]", "", model.rpartition("/")[2].removesuffix(" (seed 0)"))
    parts = [command, slug(texts, 40), *([slug(name, 30)] if name else []), *more]
    return outputs() / f"{'-'.join(parts)}.png"


def outputs() -> Path:
    """The folder of files that nobody named: ``outputs/``, or the one that ``ATTNVIZ_OUTPUTS`` names.

    Raises SettingsError: it names a file, or a new folder with the ending of a file.
    """
    named = os.environ.get("ATTNVIZ_OUTPUTS")
    folder = Path(named or "outputs")
    if named and not folder.is_dir() and (folder.exists() or folder.suffix[1:].isalpha()):
        raise SettingsError(
            f"ATTNVIZ_OUTPUTS names a folder for pictures, and {folder} is a file, or looks like one"
        )
    return folder


def slug(text: str, length: int) -> str:
    """Letters and digits of any script, all else a hyphen; where that loses something, a short hash tells it apart.

    A letter that no name can have here, such as Korean ones where the system's encoding is Latin-1, is lost, too.
    """
    here = sys.getfilesystemencoding()
    slug = re.sub(r"[\W_]+", "-", text.lower().encode(here, "replace").decode(here)).strip("-")
    if slug == re.sub(r"[ ._-]", "-", text.lower()) and len(slug) <= length:
        return slug
    hashed = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=3).hexdigest()
    return f"{slug[:length].rstrip('-') or 'text'}-{hashed}"
