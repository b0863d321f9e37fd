"""The command line: parse, call, print.

Results go to standard output, everything else to standard error. Exit status 0, 1 for what went wrong, 2 for usage,
130 after Ctrl-C.
"""

from __future__ import annotations

import _thread
import io
import logging
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import typer
from typer.core import TyperGroup

import attnviz
from attnviz.cli import doctor, models, train
from attnviz.cli.groups import Command, CommandGroup, HeadCommand, as_command
from attnviz.errors import AttnvizError, AttnvizWarning, OutputError
from attnviz.generations import command as generate
from attnviz.heads import command as heads
from attnviz.heatmaps import command as heatmap
from attnviz.options import RARE, group, option
from attnviz.settings import ShellSettings
from attnviz.stories import command as demo
from attnviz.text.arguments import did_you_mean
from attnviz.text.display import visible
from attnviz.walkthroughs import command as walkthrough

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_OF_A_SENTENCE = {"heatmap", "generate", "walkthrough", "compare-heads", "head"}
INTERRUPTED = 130  # the exit status after Ctrl-C, as shells have it

app = typer.Typer(
    name="attnviz",
    cls=CommandGroup,
    help="See, check and understand attention in neural networks.",
    epilog='Example: attnviz heatmap "I love all you"',
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help starts sooner, and brackets in it stay brackets
)


@group
class MainSettings(ShellSettings):
    """What is typed before the name of a command."""

    version: bool = option("--version", default=False, help="Show the version.", panel=RARE)


def _begin(context: Any, settings: MainSettings) -> None:
    if settings.version:
        typer.echo(f"attnviz {attnviz.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)
    context.obj = settings  # for the command: see `as_command`


app.callback(invoke_without_command=True)(as_command(_begin, takes_shell=False))


COMMANDS: dict[str, tuple[Callable[..., None], str]] = {
    "heatmap": (heatmap.command, heatmap.EXAMPLES),
    "page": (heatmap.page_command, heatmap.PAGE_EXAMPLES),
    "generate": (generate.command, generate.EXAMPLES),
    "walkthrough": (walkthrough.command, walkthrough.EXAMPLES),
    "verify": (walkthrough.verify_command, walkthrough.VERIFY_EXAMPLES),
    "compare-heads": (heads.command, heads.EXAMPLES),
    "head": (heads.head_command, heads.HEAD_EXAMPLES),
    "merge": (heads.merge_command, heads.MERGE_EXAMPLES),
    "demo": (demo.command, demo.EXAMPLES),
    "models": (models.command, models.EXAMPLES),
    "doctor": (doctor.command, doctor.EXAMPLES),
    "train": (train.command, train.EXAMPLES),
}
"""By name, each with its examples."""

for _name, (_command, _examples) in COMMANDS.items():
    app.command(
        _name,
        cls=HeadCommand if _name == "head" else Command,
        context_settings={"max_content_width": 100},
        epilog="\n\n".join(["Examples:", *_examples.splitlines()]),
    )(as_command(_command))


class _Output(io.FileIO):
    """A stream whose reader may leave."""

    def write(self, data: ReadableBuffer) -> int:
        """Write; once that fails, what comes later goes nowhere. That nobody reads any more is no error."""
        try:
            return super().write(data)
        except OSError as error:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            if isinstance(error, BrokenPipeError):
                return memoryview(data).nbytes
            raise OutputError(f"the output cannot be written: {error.strerror}") from None


def _open_output(stream: TextIO | None) -> TextIO:
    """The same stream, whose reader may leave; a character that it cannot show is written as its number."""
    if stream is None:  # closed by whoever started us
        return open(os.devnull, "w", encoding="utf-8")
    raw = io.BufferedWriter(_Output(stream.fileno(), "wb", closefd=False))
    by_line = stream.isatty() or stream.fileno() == 2
    return io.TextIOWrapper(
        raw, encoding=stream.encoding, errors="backslashreplace", line_buffering=by_line
    )


def main() -> NoReturn:
    """Run the command line and exit with its status."""
    sys.stdout, sys.stderr = _open_output(sys.stdout), _open_output(sys.stderr)

    def interrupt(number: int, _: object) -> None:
        if number != signal.SIGINT:
            raise SystemExit(128 + number)
        _PRESSED.set()
        raise KeyboardInterrupt

    def raise_again(lost: Any) -> None:
        if not isinstance(lost.exc_value, KeyboardInterrupt):
            sys.__unraisablehook__(lost)
        else:  # Ctrl-C came while Python ran what can raise nothing, such as a callback when an object goes
            threading.Timer(0.01, _thread.interrupt_main).start()

    def tell(message: Warning | str, *_: Any, **__: Any) -> None:
        sys.stderr.write(f"attnviz: {message}\n")

    signal.signal(signal.SIGINT, interrupt)
    for name in (
        "SIGTERM",
        "SIGHUP",
    ):  # that time is up, or the window closed: no half of a file stays behind
        if signal.getsignal(number := getattr(signal, name, signal.SIGINT)) is signal.SIG_DFL:
            signal.signal(number, interrupt)
    sys.unraisablehook = raise_again
    # A library's advice to programmers is not for the person at the terminal.
    warnings.simplefilter("ignore")
    warnings.simplefilter("always", AttnvizWarning)
    warnings.showwarning = tell
    logging.getLogger("matplotlib").setLevel(
        logging.ERROR
    )  # such as where the home folder cannot be written
    os.environ.setdefault("HF_HUB_VERBOSITY", "critical")
    status = _run()
    try:
        sys.stdout.flush()
    except OutputError as error:
        status = _fail(str(error), 1)
    # Not sys.exit: tearing down torch costs a tenth of a second, and everything is written by now.
    os._exit(status)


@cache
def _group() -> TyperGroup:
    """All commands with their options: made once, however many commands run in a process."""
    made: TyperGroup = typer.main.get_command(app)  # type: ignore[assignment]  # of several commands
    return made


def _run() -> int:
    try:
        status = _group().main(prog_name="attnviz", standalone_mode=False) or 0
    except typer.TyperException as error:  # what was typed cannot be understood
        return _misused(error)
    except (typer.Abort, KeyboardInterrupt):
        status = INTERRUPTED
    except Exception as error:
        if _PRESSED.is_set():
            status = INTERRUPTED
        elif isinstance(error, AttnvizError):
            return _fail(str(error), 1)
        elif isinstance(error, MemoryError) or (
            isinstance(error, RuntimeError) and _NO_MEMORY.search(str(error))
        ):
            return _fail("there is not enough memory here for a text of this length: shorten it", 1)
        else:
            raise
    return _fail("interrupted", INTERRUPTED) if status == INTERRUPTED else int(status)


_NO_MEMORY = re.compile("out of memory|allocate memory|not enough memory", re.IGNORECASE)
"""How torch says that numbers had no room, in a more general error."""


_PRESSED = threading.Event()
"""Whether Ctrl-C was pressed: while libraries load, some turn the exception that it raises into another."""


def _misused(error: typer.TyperException) -> int:
    """Say in one line what cannot be understood, and where help is."""
    context = getattr(error, "ctx", None)
    named = [name for name in sys.argv[1:2] if name in COMMANDS]
    where = context.command_path if context else " ".join(["attnviz", *named])
    message = (
        error.format_message()
        .removeprefix("Invalid value: ")
        .replace("Value error, ", "")
        .rstrip(".")
    )
    if context and hasattr(error, "possibilities"):
        typed = str(getattr(error, "option_name", ""))
        known = [
            name[2:]
            for parameter in context.command.params
            for name in parameter.opts
            if name.startswith("--")
        ]
        meant = "palette" if typed in {"--cmap", "--colormap"} else typed.lstrip("-")
        message = f"there is no option {typed}{did_you_mean(meant, known, ()).replace('mean ', 'mean --')}"
    if "unexpected extra argument" in message and context and context.info_name in _OF_A_SENTENCE:
        message += ": put a sentence in quotation marks"
    elif "unexpected extra argument" in message and context and context.info_name == "page":
        message = (
            'it takes no sentence: attnviz heatmap "I love" -o page.html writes the page of one'
        )
    return _fail(f"{message} (see {where} --help)", 2, where)


def _fail(message: str, status: int, where: str = "attnviz") -> int:
    sys.stderr.write(f"{where}: {visible(' '.join(message.split()))}\n")
    return status
