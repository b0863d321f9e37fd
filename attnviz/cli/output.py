"""Helpers of all commands: reading the sentence, opening the model, printing, writing files."""

from __future__ import annotations

import os
import stat
import sys
from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any

from attnviz.errors import InputError, OutputError, SettingsError
from attnviz.models.registry import names
from attnviz.render.names import DEFAULT, outputs
from attnviz.text.display import from_utf8, visible
from attnviz.text.messages import language

if TYPE_CHECKING:
    from rich.text import Text

    from attnviz.capture.sources import Source
    from attnviz.look import Look, Theme
    from attnviz.models.registry import Device
    from attnviz.render.terminal.screen import Screen
    from attnviz.result import Result

LARGEST = 2**20  # bytes of the largest text that is read: far more than the positions of any model
SILENCE = 1.0  # seconds after which a message says that standard input is waited for
JSON = Path("-")  # the value of --output that prints JSON
PICTURE_ENDINGS = {".png", ".svg", ".pdf"}
OTHER_PLACE = "name another file with -o, or another folder with ATTNVIZ_OUTPUTS"

_quiet = False


def set_quiet(value: bool) -> bool:
    """Hide messages about files, or show them again (the callback of ``--quiet``)."""
    global _quiet
    _quiet = value
    return value


def log_status(line: str) -> None:
    """Print a message on standard error, unless messages are hidden."""
    if not _quiet:
        sys.stderr.write(f"{line}\n")


def shows_progress() -> bool:
    """Return whether to show progress: standard error is a terminal and messages are not hidden."""
    return sys.stderr.isatty() and not _quiet


def read_text(text: str | None, file: Path | None = None, name: str = "the text") -> str:
    """Return the sentence from the argument, standard input or a file, without its line end.

    `name` names the argument in error messages.

    Raises:
        SettingsError: neither or both of a sentence and a file are given.
        InputError: it cannot be read, is not UTF-8, or is longer than any model reads.
    """
    if text is not None and file is not None:
        raise SettingsError("give the sentence or a file, not both")
    if text is None and file is None:
        piped = read_pipe()
        if piped is None:
            raise SettingsError(
                'give a sentence, such as "I love all you", or - for standard input'
            )
        return piped
    source = name
    try:
        if file is not None:
            source = visible(str(file))
            with file.open("rb") as opened:
                raw = opened.read(LARGEST + 1)
        elif text == "-":
            source = "standard input"
            if sys.stdin is None:
                raise InputError("standard input is closed")
            raw = sys.stdin.buffer.read(LARGEST + 1)
        else:
            # A shell with another encoding passes its bytes on as lone surrogates.
            raw = str(text).encode("utf-8", "surrogateescape")
    except OSError as error:
        raise InputError(f"{source} cannot be read: {error.strerror}") from None
    except UnicodeEncodeError:
        return str(text)  # other lone surrogates are refused later, with other invalid text
    if len(raw) > LARGEST:
        raise InputError(f"{source} is too long: at most {LARGEST:,} bytes are read")
    try:
        return from_utf8(raw.removeprefix(BOM_UTF8)).rstrip("\r\n")
    except InputError as error:
        raise InputError(f"{source} is {error}") from None


def read_pipe() -> str | None:
    """Return the text that was piped into the command; None if nothing was.

    A pipe that stays open and silent is waited for, and a message says so.

    Raises InputError: it is not UTF-8, or is longer than any model reads.
    """
    if not _is_piped():
        return None
    message = (
        f"attnviz: waiting for a sentence from standard input; to read none, add < {os.devnull}\n"
    )
    notice = Timer(SILENCE, lambda: sys.stderr.write(message))
    notice.daemon = True
    notice.start()
    try:
        return read_text("-") or None
    finally:
        notice.cancel()


def _is_piped() -> bool:
    """Return whether standard input is a pipe, or a file that nobody has begun to read.

    A file that is partly read belongs to a loop around the command: while read line; do attnviz ...; done < file.
    """
    if sys.stdin is None or sys.stdin.isatty():
        return False
    try:
        number = sys.stdin.fileno()
    except OSError:  # a stream that is no file
        return True
    mode = os.fstat(number).st_mode
    if stat.S_ISREG(mode):
        return os.lseek(number, 0, os.SEEK_CUR) == 0
    return not stat.S_ISCHR(mode)  # a device, such as /dev/null


def model_name(model: str | None, toy: bool) -> str | None:
    """Return the name of the model; None for the default.

    Raises:
        SettingsError: both ``--toy`` and another model were typed.
    """
    if toy and model not in (None, "toy", os.environ.get("ATTNVIZ_MODEL")):
        raise SettingsError("give --toy or another model, not both")
    return "toy" if toy else model


def open_model(
    model: str | None, *, device: Device = "auto", trust_remote_code: bool = False, **use: Any
) -> Source:
    """Open a model, and show that it is loading; the arguments are those of `open_source`."""
    from attnviz.capture.source import open_source

    with loading(model) as notify:
        return open_source(
            model, device=device, trust_remote_code=trust_remote_code, notify=notify, **use
        )


@contextmanager
def loading(model: str | None) -> Iterator[Callable[[str], None]]:
    """Show that a model is loading, if standard error is a terminal; yield a function that prints a line."""
    name = model or "distilbert-base-uncased"
    shown: AbstractContextManager[object] = nullcontext()
    if shows_progress() and name.partition(":")[0] not in names():
        from rich.console import Console
        from rich.text import Text

        shown = Console(stderr=True).status(Text(f"loading {visible(name)} ..."))
    with shown:
        yield lambda message: print(f"attnviz: {message}", file=sys.stderr)


def check_outputs(
    paths: Sequence[Path], endings: Collection[str], *, prints_json: bool = True
) -> None:
    """Refuse, before any work, files that cannot be written; ``-`` is accepted if the command `prints_json`.

    Raises:
        SettingsError: a file has another ending, or is given twice.
        OutputError: a file cannot be written there.
    """
    from attnviz.storage.files import check_writable, use_instead

    for path in paths:
        if path == JSON and prints_json:
            continue
        if path.suffix.lower() not in endings:
            endings_text = ", ".join(ending.removeprefix(".") for ending in endings)
            reason = use_instead(path.suffix) or f"the ending must be one of {endings_text}"
            raise SettingsError(f"{visible(str(path))}: {reason}", "output")
        if [other.absolute() for other in paths].count(path.absolute()) > 1:
            raise SettingsError(f"{visible(str(path))} is to be written twice", "output")
        folder = path.parent
        if (
            not os.path.lexists(folder) and folder != outputs()
        ):  # only that of default outputs is created
            shown = visible(str(folder))
            raise OutputError(f"{visible(str(path))} cannot be written: there is no folder {shown}")
        try:
            check_writable(path)
        except OutputError as error:
            if path.parent != outputs():
                raise
            raise OutputError(f"{error}; {OTHER_PLACE}") from None


def refuse_own_inputs(parameters: Mapping[str, Any]) -> None:
    """Refuse to write over a file that the command reads; `parameters` are all that were given, by name.

    Raises SettingsError.
    """
    outputs_given = _files_in(parameters.get("output"))
    for name, value in parameters.items():
        if name == "output":
            continue
        for file in _files_in(value):
            if any(os.path.samefile(file, output) for output in outputs_given):
                shown = visible(file)
                raise SettingsError(f"{shown} is read by this command: name another file", "output")


def _files_in(value: object) -> list[str]:
    """Return the texts and paths in the value of an option that are existing files; the value may be a list."""
    values = value if isinstance(value, list) else [value]
    return [
        str(entry)
        for entry in values
        if isinstance(entry, str | Path) and entry != JSON and os.path.isfile(entry)
    ]


def check_style(context: Any, paths: Iterable[Path]) -> None:
    """Refuse --style, before any work, if no picture is written."""
    if is_typed(context, "style") and not any(
        path.suffix.lower() in PICTURE_ENDINGS for path in paths
    ):
        raise SettingsError("--style applies only to pictures")


def is_typed(context: Any, *names: str) -> bool:
    """Return whether one of these options was typed on the command line, not left at its default."""
    return any(
        getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE" for name in names
    )


def write(result: Result, path: Path, look: Look, *place: Any, **own: Any) -> None:
    """Write a result to a file, and print a message; `own` are the keywords of its own view."""
    from attnviz import results

    results.write(result, path, look, *place, **own)
    log_wrote(path)


def log_wrote(path: Path) -> None:
    """Print which file was written."""
    log_status(f"wrote {visible(str(path))}")


@contextmanager
def default_picture() -> Iterator[None]:
    """Print in one line why the block could not write a picture that the user did not ask for, which is no error."""
    try:
        yield
    except OutputError as error:
        log_status(f"attnviz: no picture was written: {error}; {OTHER_PLACE}")


def print_view(
    view: Callable[[Screen], Iterable[Text]], palette: str = DEFAULT, theme: Theme = "auto"
) -> None:
    """Print the lines that a view draws for this terminal."""
    from attnviz.render.terminal.screen import console_here, screen_of

    console = console_here()
    screen = screen_of(console, palette, theme)
    with language(screen.fallback):
        for line in view(screen):
            console.print(line, soft_wrap=True)


def print_json(text: str) -> None:
    """Print JSON and nothing else."""
    sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
