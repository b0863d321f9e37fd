"""A walkthrough in files, one entry for each kind: every view of it is drawn or written before the file is touched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from attnviz.storage.files import check_ending, write_whole
from attnviz.walkthroughs.files import to_json
from attnviz.walkthroughs.html import html
from attnviz.walkthroughs.latex import latex
from attnviz.walkthroughs.markdown import csv, markdown
from attnviz.walkthroughs.record import Walkthrough

Content = tuple[bytes, str]
"""What a file holds, and the characters in it that no font has."""


def _json(walks: Sequence[Walkthrough], _: str, __: dict[str, Any]) -> Content:
    return f"{to_json(walks[0])}\n".encode(), ""


def _page(write: Callable[..., str], walks: Sequence[Walkthrough], _: str, view: dict[str, Any]) -> Content:
    return write(walks[0], **{name: value for name, value in view.items() if name != "palette"}).encode(), ""


def _picture(walks: Sequence[Walkthrough], suffix: str, view: dict[str, Any]) -> Content:
    from attnviz.walkthroughs.figure.sheet import draw

    drawn = BytesIO()
    typefaces = draw(walks[0], **view).write(drawn, suffix)
    return drawn.getvalue(), typefaces.missing


def _film(walks: Sequence[Walkthrough], suffix: str, view: dict[str, Any]) -> Content:
    from attnviz.walkthroughs.figure.film import film

    with TemporaryDirectory(prefix="attnviz-") as folder:  # ffmpeg needs a file
        path = Path(folder) / f"film{suffix}"
        typefaces = film(walks, path, suffix, **view)
        return path.read_bytes(), typefaces.missing


FORMATS: dict[str, Callable[[Sequence[Walkthrough], str, dict[str, Any]], Content]] = {
    ".json": _json,
    ".md": partial(_page, markdown),
    ".tex": partial(_page, latex),
    ".csv": partial(_page, csv),
    ".html": partial(_page, html),
    ".png": _picture,
    ".svg": _picture,
    ".pdf": _picture,
    ".gif": _film,
    ".mp4": _film,
}
"""What makes a file's content, by its ending: from the calculations, the ending, and how they are shown."""


def content(walks: Sequence[Walkthrough], path: Path, **view: Any) -> Content:
    """What a file holds.

    Args:
        walks: the calculations: a film shows all of them, another file the first.
        path: the file; its ending, one of `FORMATS`, says what it holds.
        view: ``language``, ``precision``, ``steps``, ``blanks`` and ``palette``.

    Returns:
        The content, and the characters in it that no font has.

    Raises:
        OutputError: another ending.
        SelectionError: a step, a language or a palette that is not there.
    """
    suffix = check_ending(path, tuple(FORMATS), "a walkthrough is")
    return FORMATS[suffix](walks, suffix, view)


def write(walks: Sequence[Walkthrough], path: Path, **view: Any) -> None:
    """Write one file, whole or not at all; the arguments, and what is raised, are those of `content`."""
    write_whole(path, content(walks, path, **view)[0])
