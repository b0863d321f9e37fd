"""Names that users type or read: palettes, and files named after their content."""

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

The luminance of each palette changes evenly, so that equal steps of weight look equal, also in greyscale and to
colour-blind readers.
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
    """Return the path of a file in `outputs` that is named after the picture's content.

    The name depends only on the arguments, so running a command again replaces its file. `shown` is the sentence,
    `pair` the second sentence and `target` the generated text; `more` holds the options that distinguish the picture
    from others of the same sentence. An empty `model` is left out.
    """
    texts = " + ".join(filter(None, [shown, pair])) + (f" -> {target}" if target else "")
    name = re.sub(r"[(),]", "", model.rpartition("/")[2].removesuffix(" (seed 0)"))
    parts = [command, slug(texts, 40), *([slug(name, 30)] if name else []), *more]
    return outputs() / f"{'-'.join(parts)}.png"


def outputs() -> Path:
    """Return the folder for files that the user did not name: ``outputs/``, or the value of ``ATTNVIZ_OUTPUTS``.

    Raises SettingsError: the variable names a file, or a new folder with the ending of a file.
    """
    folder_name = os.environ.get("ATTNVIZ_OUTPUTS")
    folder = Path(folder_name or "outputs")
    if folder_name and not folder.is_dir() and (folder.exists() or folder.suffix[1:].isalpha()):
        raise SettingsError(
            f"ATTNVIZ_OUTPUTS names a folder for pictures, and {folder} is a file, or looks like one"
        )
    return folder


def slug(text: str, length: int) -> str:
    """Return a text as part of a file name: letters and digits of any script, and hyphens for everything else.

    If that changes more than spaces, dots and underscores, or the text is too long, a short hash is appended, so that
    different texts have different names. This includes letters that the file system's encoding lacks, such as Korean
    letters in Latin-1.
    """
    encoding = sys.getfilesystemencoding()
    slug = re.sub(r"[\W_]+", "-", text.lower().encode(encoding, "replace").decode(encoding)).strip(
        "-"
    )
    if slug == re.sub(r"[ ._-]", "-", text.lower()) and len(slug) <= length:
        return slug
    digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=3).hexdigest()
    return f"{slug[:length].rstrip('-') or 'text'}-{digest}"
