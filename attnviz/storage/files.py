"""Write files atomically, and check paths before any work."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from attnviz.errors import FileFormatError, OutputError, RecordError
from attnviz.text.display import visible


def write_whole(
    path: str | os.PathLike[str], content: str | bytes | Callable[[Path], object]
) -> Path:
    """Write a file whole or not at all: a temporary file beside `path` replaces it at the end. Raises OutputError.

    After an error or an interrupt, the old file is unchanged and no temporary file remains. A missing folder is
    created. The content is text (written as UTF-8), bytes, or a function that fills the temporary file, which has the
    ending of `path`, for writers that choose a format by it.
    """
    path = Path(path)
    with _temporary_beside(path, create_folder=True) as (temporary, target):
        if callable(content):
            content(temporary)
        else:
            temporary.write_bytes(_encode(content, path) if isinstance(content, str) else content)
        temporary.replace(target)
    return path


def _encode(text: str, path: Path) -> bytes:
    """Return a text as UTF-8 with a line end. Raises RecordError: it contains half a surrogate pair."""
    try:
        return text.encode() if text.endswith("\n") else f"{text}\n".encode()
    except UnicodeEncodeError as error:
        raise RecordError(f"{visible(path.name)} cannot be written: {error}") from None


def check_ending(path: str | os.PathLike[str], endings: Collection[str], what: str) -> str:
    """Return the ending of a path in lower case.

    Raises OutputError: it is not one of these; `what` is such as "a record is".
    """
    ending = Path(path).suffix
    if ending.lower() in endings:
        return ending.lower()
    instead = use_instead(ending) or f"{what} saved as {listed(endings)}, not {ending!r}"
    raise OutputError(f"{visible(str(path))}: {instead}")


PAGE_PLAYS = "no films are written; a page (.html) plays the steps"
REPLACED = {
    ".gif": PAGE_PLAYS,
    ".stats": "a comparison is kept as .json, which --load and attnviz.load read",
    ".mp4": PAGE_PLAYS,
    ".tex": "no LaTeX is written; use .md or .html, or to_frame().to_latex() in Python",
}


def use_instead(ending: str) -> str | None:
    """Return what to use in place of an ending that people may expect; None for any other ending."""
    return REPLACED.get(ending.lower())


def listed(endings: Collection[str]) -> str:
    """Return endings in words, such as ``.png, .svg or .pdf``."""
    *most, last = endings
    return f"{', '.join(most)} or {last}" if most else last


def check_is_file(path: Path, largest: int | None = None) -> None:
    """Refuse a path that is not a file, an empty file, or one with more than `largest` bytes (None: any number).

    Raises FileFormatError, without the path, for `as_file_error` to name; OSError: it does not exist.
    """
    try:
        status = path.stat()
    except ValueError:  # a null character
        raise FileFormatError("it cannot be read: no file has such a name") from None
    if stat.S_ISDIR(status.st_mode):
        raise FileFormatError("it is a folder")
    if not stat.S_ISREG(status.st_mode):
        raise FileFormatError("it is not a regular file")
    if not status.st_size:
        raise FileFormatError("it is empty")
    if largest is not None and status.st_size > largest:
        raise FileFormatError(f"it has {status.st_size:,} bytes, and at most {largest:,} are read")


@contextmanager
def as_file_error(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Turn an error of the block, which reads a file, into a FileFormatError: one line that names the file.

    `what` is the expected content, such as "a record".
    """
    try:
        yield
        return
    except RecordError as error:
        reason = str(error)
    except OSError as error:
        reason = f"it cannot be read: {error.strerror or error}"
    except MemoryError:
        reason = "it is too large for this computer's memory"
    except RecursionError:
        reason = f"it is nested too deeply to be {what}"
    except OverflowError:
        reason = "it holds a number too large to be one"
    # The reason may quote the file, and the path may be any text: keep both on one line.
    raise FileFormatError(visible(f"{path}: {reason}"))


def check_writable(path: str | os.PathLike[str]) -> None:
    """Check, before hours of work, that a file can be written there. Raises OutputError.

    The check creates a temporary file there; if the folder is missing, in the folder where it would be created. No
    file remains.
    """
    with _temporary_beside(Path(path), create_folder=False):
        pass


@contextmanager
def _temporary_beside(path: Path, *, create_folder: bool) -> Iterator[tuple[Path, Path]]:
    """Create an empty file beside the target of a path, with its permissions, and delete it at the end.

    Yield this file and the target, which is another path if `path` is a link. The file has the ending of `path`, which
    the user typed, not of the target. If the folder is missing, it is created, or the file is in the nearest parent.

    An OSError of the block becomes an OutputError about `path`.
    """
    try:
        target = Path(os.path.realpath(path))  # follow links, as open() does
        folder = _nearest_folder(target)
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, f"{folder} is not a folder")
        if create_folder:
            target.parent.mkdir(parents=True, exist_ok=True)
            folder = target.parent
        permissions = _permissions(target)
        temporary = folder / f".attnviz-{secrets.token_hex(8)}{path.suffix}"
        try:
            # Not mkstemp: its files are readable only by their owner, this one has the permissions of open().
            temporary.open("xb").close()
            if permissions is not None:
                temporary.chmod(permissions)
            yield temporary, target
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise OutputError(visible(f"{path} cannot be written: {reason}")) from error


def _nearest_folder(target: Path) -> Path:
    """Return the nearest parent of a path that exists, which may be a file; the drive if there is none."""
    return next((parent for parent in target.parents if parent.exists()), Path(target.anchor))


def _permissions(target: Path) -> int | None:
    """Return the permissions of a file; None if it does not exist yet. Raises OSError: open() could not write it."""
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is not a regular file")
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return stat.S_IMODE(mode)
