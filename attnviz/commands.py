"""What all commands do around their one call: read the sentence, open the model, write files and tell so."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from attnviz.errors import InputError, SettingsError
from attnviz.text.display import visible

if TYPE_CHECKING:
    from rich.text import Text

    from attnviz.capture.source import Source
    from attnviz.render.fonts import Typefaces
    from attnviz.render.terminal.screen import Screen
    from attnviz.settings import ModelSettings

LARGEST = 2**20
"""Bytes of a text that is read: some hundred thousand words, far more than any model's positions."""


def read_text(text: str | None, file: Path | None = None, what: str = "the text") -> str:
    """The sentence, from the argument, standard input or a file; the line end after it is not part of it.

    Raises:
        SettingsError: there is none.
        InputError: it cannot be read, is not UTF-8, or is longer than any model reads.
    """
    if file is not None:
        try:
            with file.open("rb") as opened:
                return _decoded(opened.read(LARGEST + 1), visible(str(file)))
        except OSError as error:
            raise InputError(f"{visible(str(file))} cannot be read: {error.strerror}") from None
    if text == "-":
        if sys.stdin is None:
            raise InputError("standard input is closed")
        return _decoded(sys.stdin.buffer.read(LARGEST + 1), "standard input")
    if text is None:
        raise SettingsError('give a sentence, as in "I love all you", or - to read it from standard input')
    try:
        # What the shell handed over in another encoding arrives as lone surrogates.
        return _decoded(text.encode("utf-8", "surrogateescape"), what)
    except UnicodeEncodeError:
        return text  # a surrogate of another kind: refused with all other texts that are no Unicode


def _decoded(raw: bytes, source: str) -> str:
    if len(raw) > LARGEST:
        raise InputError(f"{source} is too long: of a text at most {LARGEST:,} bytes are read")
    try:
        return raw.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{source} is not UTF-8: byte {error.start + 1} is 0x{raw[error.start]:02x}") from None


@contextmanager
def opened(model: ModelSettings) -> Iterator[Source]:
    """The model, and meanwhile a line on standard error that tells that it is loading."""
    with closing(Notices()) as notices:
        notices.loading(model.name)
        yield model.open(notices.tell)


class Notices:
    """The line that tells that a model is loading, which goes when it is there, and lines that stay."""

    def __init__(self) -> None:
        self._loading = False

    def loading(self, model: str | None) -> None:
        """Tell that a model is loading, where a person is looking."""
        if not (model or "").startswith("toy") and sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
            sys.stderr.write(f"loading {visible(model or 'distilbert-base-uncased')} ...")
            sys.stderr.flush()
            self._loading = True

    def tell(self, line: str) -> None:
        """One line that a user should know."""
        self.close()
        sys.stderr.write(f"attnviz: {line}\n")

    def close(self) -> None:
        """Take away the line that tells that a model is loading."""
        if self._loading:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
        self._loading = False


def check_writable(paths: Iterable[Path]) -> None:
    """Find out before any work whether its files can be written, each once.

    Raises:
        SettingsError: two of them are one.
        OutputError: one of them cannot be written.
    """
    from attnviz.storage import files

    places = set()
    for path in paths:
        if path.absolute() in places:
            raise SettingsError(f"Invalid value for '--output' / '-o': {visible(str(path))} is to be written twice")
        places.add(path.absolute())
        files.check_writable(path)


def write_picture(path: Path, draw: Callable[[BytesIO, str], Typefaces]) -> None:
    """Write a picture, whole or not at all, and tell so.

    Args:
        path: the file; its ending, in small letters, is handed to `draw`.
        draw: draws into a buffer and returns the fonts it used.

    Raises:
        OutputError: the file cannot be written.
    """
    from attnviz.render.fonts import advice
    from attnviz.storage.files import write_whole

    buffer = BytesIO()  # Matplotlib has its own ways to fail on a full disk
    missing = draw(buffer, path.suffix.lower()).missing
    write_whole(path, buffer.getvalue())
    if missing:
        sys.stderr.write(f"attnviz: {advice(missing)}\n")
    tell_written(path)


def tell_written(path: Path) -> None:
    """Tell on standard error that a file was written."""
    sys.stderr.write(f"wrote {visible(str(path))}\n")


def print_lines(view: Callable[[Screen], Iterable[Text]], background: str, palette: str) -> None:
    """Print what a view makes for the terminal at hand."""
    from attnviz.render.terminal.screen import console_here, screen_of

    console = console_here()
    for line in view(screen_of(console, background, palette)):
        console.print(line, soft_wrap=True)
