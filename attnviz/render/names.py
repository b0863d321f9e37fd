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
    """Return a file in `outputs` named after the picture's content; `more` tells it from other pictures.

    The same command writes the same file again. `shown` is the sentence, `pair` the second one, `target` the generated
    text; an empty `model` is left out.
    """
    texts = " + ".join(filter(None, [shown, pair])) + (f" -> {target}" if target else "")
    name = re.sub(r"[(),]", "", model.rpartition("/")[2].removesuffix(" (seed 0)"))
    parts = [command, slug(texts, 40), *([slug(name, 30)] if name else []), *more]
    return outputs() / f"{'-'.join(parts)}.png"


def outputs() -> Path:
    """Return the folder of files without a given name: ``outputs/``, or that of ``ATTNVIZ_OUTPUTS``.

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
    """Keep letters and digits of any script, and turn all else into hyphens.

    Where that loses something, a short hash tells texts apart; so it does for letters that the system's encoding cannot
    have in a name, such as Korean ones in Latin-1.
    """
    here = sys.getfilesystemencoding()
    slug = re.sub(r"[\W_]+", "-", text.lower().encode(here, "replace").decode(here)).strip("-")
    if slug == re.sub(r"[ ._-]", "-", text.lower()) and len(slug) <= length:
        return slug
    hashed = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=3).hexdigest()
    return f"{slug[:length].rstrip('-') or 'text'}-{hashed}"
