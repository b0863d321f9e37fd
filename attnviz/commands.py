"""What all commands do around their one call: read the sentence, open the model, print, write files and tell so.

How they speak (`ShellSettings`: quietly, in colour, through a pager) stands once, here: `session`.
"""

from __future__ import annotations

import os
import re
import sys
import time
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnviz.errors import InputError, OutputError, SettingsError
from attnviz.models.registry import HOME_BUILT, names
from attnviz.options import changed
from attnviz.render.names import DEFAULT, outputs
from attnviz.settings import FileSettings, ShellSettings
from attnviz.storage.formats import PICTURES
from attnviz.text.display import from_utf8, visible

if TYPE_CHECKING:
    from rich.text import Text

    from attnviz.capture.sources import Source
    from attnviz.render.terminal.screen import Screen
    from attnviz.settings import LoadingSettings
    from attnviz.storage.formats import Content, Formats

LARGEST = (
    2**20
)  # bytes of a text that is read: some hundred thousand words, far more than any model's positions


def read_text(text: str | None, file: Path | None = None, what: str = "the text") -> str:
    """The sentence, from the argument, standard input or a file; the line end after it is not part of it.

    Raises SettingsError: there is none; InputError: it cannot be read, is not UTF-8, or longer than any model reads.
    """
    if file is None and text is None:
        raise SettingsError(
            'give a sentence, as in "I love all you", or - to read it from standard input'
        )
    if file is None and text == "-" and sys.stdin is None:
        raise InputError("standard input is closed")
    source = visible(str(file)) if file is not None else "standard input" if text == "-" else what
    try:
        if file is not None:
            with file.open("rb") as opened:
                raw = opened.read(LARGEST + 1)
        elif text == "-":
            raw = sys.stdin.buffer.read(LARGEST + 1)
        else:  # what the shell handed over in another encoding arrives as lone surrogates
            raw = str(text).encode("utf-8", "surrogateescape")
    except OSError as error:
        raise InputError(f"{source} cannot be read: {error.strerror}") from None
    except UnicodeEncodeError:
        return str(
            text
        )  # a surrogate of another kind: refused with all other texts that are no Unicode
    if len(raw) > LARGEST:
        raise InputError(f"{source} is too long: of a text at most {LARGEST:,} bytes are read")
    try:
        return from_utf8(raw.removeprefix(BOM_UTF8)).rstrip("\r\n")
    except InputError as error:
        raise InputError(f"{source} is {error}") from None


@dataclass(slots=True)
class _Session:
    shell: ShellSettings = field(default_factory=ShellSettings)  # how it speaks
    files: FileSettings = field(default_factory=FileSettings)  # how it writes pictures
    since: float = field(
        default_factory=time.perf_counter
    )  # when the part that runs now began, in seconds
    end: ExitStack = field(
        default_factory=ExitStack
    )  # what is done at its end: to wait for the pager of its output


_now = _Session()


@contextmanager
def session(shell: ShellSettings, files: FileSettings | None) -> Iterator[None]:
    """Speak so for as long as a command runs; at its end its pager is waited for.

    Raises InputError: the current folder was deleted, and libraries that load would end all without a word.
    """
    global _now
    try:
        Path.cwd()
    except FileNotFoundError:
        raise InputError("the current folder is no longer there: change to another one") from None
    _now = _Session(shell, files or FileSettings())
    with _now.end:
        yield


def tell(line: str) -> None:
    """Tell on standard error what a person may like to know of a file."""
    if not _now.shell.quiet:
        sys.stderr.write(f"{line}\n")


def is_watched() -> bool:
    """Whether somebody likes to see on standard error how far a command is."""
    return sys.stderr.isatty() and not _now.shell.quiet


def took(part: str) -> None:
    """Where everything is told: what was done, and how long it took since the part before it."""
    before, _now.since = _now.since, time.perf_counter()
    if _now.shell.verbose:
        sys.stderr.write(f"{_now.since - before:8.2f} s  {visible(part)}\n")


def open_model(model: LoadingSettings, text: str = "", *, generates: bool = False) -> Source:
    """The model that is to read a text, and meanwhile a line on standard error that tells that it is loading."""
    from attnviz.capture.source import open_source

    with loading(model.name) as notify:
        source = open_source(**model.arguments, notify=notify, reads=text, generates=generates)
    took(
        f"model {source.name}, from {_origin(source.name, model)}"
        if _now.shell.verbose
        else "model"
    )
    return source


def _origin(name: str, model: LoadingSettings) -> str:
    from huggingface_hub import constants

    if name.partition(" ")[0] in HOME_BUILT:
        return "attnviz itself"
    path = Path(re.sub(r"\.py:.*", ".py", model.name or ""))
    return (
        str(path.resolve())
        if path.exists()
        else f"{constants.HF_HUB_CACHE} (the cache of Hugging Face)"
    )


@contextmanager
def loading(model: str | None) -> Iterator[Callable[[str], None]]:
    """Tell that a model is loading, where a person is looking, until it is there or a line that stays is told."""
    name = model or "distilbert-base-uncased"
    is_shown = is_watched() and os.environ.get("TERM") != "dumb" and name not in names()

    def write(line: str) -> None:
        nonlocal is_shown
        sys.stderr.write(f"\r\x1b[2K{line}" if is_shown else line)
        sys.stderr.flush()
        is_shown = False

    if is_shown:
        sys.stderr.write(f"loading {visible(name)} ...")
        sys.stderr.flush()
    try:
        yield lambda line: write(f"attnviz: {line}\n")
    finally:
        write("")


def check_writable(paths: Iterable[Path]) -> None:
    """Find out before any work whether its files can be written, each once.

    Raises SettingsError: two are one; OutputError: one cannot be written.
    """
    from attnviz.storage import files

    places = set()
    for path in paths:
        if path.absolute() in places:
            raise SettingsError(
                f"Invalid value for '--output' / '-o': {visible(str(path))} is to be written twice"
            )
        places.add(path.absolute())
        try:
            files.check_writable(path)
        except OutputError as error:
            if path.parent != outputs():
                raise
            advice = "name another file by -o, or another folder by ATTNVIZ_OUTPUTS"
            raise OutputError(f"{error}; {advice}") from None


def check_look(look: object, paths: Iterable[Path]) -> None:
    """Refuse settings of pictures where no picture is written. Raises SettingsError: some are not as usual."""
    if (idle := changed(look)) and not any(path.suffix.lower() in PICTURES for path in paths):
        raise SettingsError(f"{' and '.join(idle)}: of a picture, and none is written")


SEEN = {".png", ".svg", ".pdf", ".html"}
"""The endings of files that a person looks at, and that can be opened when they are written."""


def _digest(path: Path) -> bytes | None:
    """What tells a file from another; None where there is none."""
    import hashlib

    if not path.is_file():
        return None
    try:
        with path.open("rb") as held:
            return hashlib.file_digest(held, "blake2b").digest()
    except OSError:
        return None


def write_result(formats: Formats, result: object, path: Path, **look: Any) -> None:
    """Write a result, as its formats have it; of the `look` is taken what can be said of such a file."""
    write_content(path, formats.content(path, result, look))


def write_content(path: Path, content: Content) -> None:
    """Write a file, whole or not at all, and tell so, and which characters on it no font has.

    It is told, too, whether it replaced one that held something else. Raises OutputError: the file cannot be written;
    or there are such characters, and none is wanted.
    """
    from attnviz.storage.files import write_whole

    def fill(temporary: Path) -> None:
        if callable(content) and (missing := content(temporary)):
            from attnviz.render.fonts import advice

            if _now.files.strict:
                raise OutputError(advice(missing, f"{visible(str(path))} is not written"))
            sys.stderr.write(f"attnviz: {advice(missing)}\n")

    before = _digest(path)
    write_whole(path, fill if callable(content) else content)
    tell(f"{'wrote' if before in {None, _digest(path)} else 'replaced'} {visible(str(path))}")
    took(str(path))
    if _now.files.show and path.suffix.lower() in SEEN:
        import typer

        if typer.launch(str(path)):
            sys.stderr.write(f"attnviz: no program here opens {visible(str(path))}\n")


def print_lines(
    view: Callable[[Screen], Iterable[Text]], background: str, palette: str = DEFAULT
) -> None:
    """Print what a view makes for the terminal at hand."""
    from attnviz.cli.output import print_view

    print_view(view, palette)


def print_json(text: str) -> None:
    """Print JSON, and nothing else."""
    took("computed")
    sys.stdout.write(f"{text}\n")
