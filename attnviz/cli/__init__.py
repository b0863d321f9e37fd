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
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TextIO

import typer
from typer.core import TyperGroup

import attnviz
from attnviz.cli import demo, doctor, generate, heads, heatmap, models, output, train, walkthrough
from attnviz.cli.help import Command, CommandGroup
from attnviz.errors import AttnvizError, AttnvizWarning, InputError, OutputError, SettingsError
from attnviz.text.display import visible
from attnviz.text.suggest import suggest

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

INTERRUPTED = 130  # the exit status after Ctrl-C, as shells have it
SENTENCE_COMMANDS = {"heatmap", "generate", "walkthrough", "compare-heads", "head"}

app = typer.Typer(
    name="attnviz",
    cls=CommandGroup,
    help="See, check and understand attention in neural networks.",
    epilog='Example: attnviz heatmap "I love all you"',
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help starts sooner, and brackets in it stay brackets
)


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"attnviz {attnviz.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _begin(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_show_version)
    ] = False,
) -> None:
    output.set_quiet(False)
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)
    try:
        Path.cwd()
    except FileNotFoundError:  # libraries that load would end without a word
        if not {"-h", "--help"} & set(sys.argv):
            raise InputError(
                "the current folder is no longer there: change to another one"
            ) from None


COMMANDS: dict[str, tuple[Callable[..., None], str]] = {
    "heatmap": (heatmap.heatmap, heatmap.EXAMPLES),
    "page": (heatmap.page, heatmap.PAGE_EXAMPLES),
    "generate": (generate.generate, generate.EXAMPLES),
    "walkthrough": (walkthrough.walkthrough, walkthrough.EXAMPLES),
    "verify": (walkthrough.verify, walkthrough.VERIFY_EXAMPLES),
    "compare-heads": (heads.compare_heads, heads.EXAMPLES),
    "head": (heads.head, heads.HEAD_EXAMPLES),
    "merge": (heads.merge, heads.MERGE_EXAMPLES),
    "demo": (demo.demo, demo.EXAMPLES),
    "models": (models.models, models.EXAMPLES),
    "doctor": (doctor.doctor, doctor.EXAMPLES),
    "train": (train.train, train.EXAMPLES),
}
"""Each command with its examples."""

for _name, (_command, _examples) in COMMANDS.items():
    _indented = "\n".join(f"  {line}" for line in _examples.splitlines())
    app.command(
        _name,
        cls=Command,
        context_settings={"max_content_width": 100},
        epilog=f"\b\nExamples:\n{_indented}",
    )(_command)

REPLACED = {
    "--json": "-o - prints JSON",
    "--open": "open the file that is written with your own program",
    "--seed": "-m toy-random:seed=N",
    "--d-model": "-m toy-random:d_model=N",
    "--n-heads": "-m toy-random:n_heads=N",
    "--n-layers": "-m toy-random:n_layers=N",
    "--revision": "-m NAME@REVISION",
    "--color": "the environment variables NO_COLOR and FORCE_COLOR",
    "--no-pager": "nothing is paged",
    "--memory": "--rows and --keys show a part exactly",
    "--dpi": "--style and --width, or dpi= in Python",
    "--font-size": "--style and --width",
    "--no-caption": "--style paper",
    "--full": "--head names the heads to print, such as --head 1.0-5",
    "--steps": "-o FILE.csv has each step by name",
    "--layer": "--head LAYER.HEAD, or --whole-layer LAYER",
    "--against": "compare_heads(..., against=...)",
    "--cmap": "--palette",
    "--colormap": "--palette",
    "--transparent": "-o FILE.svg, and remove its background",
    "--fail-above": "-o FILE.csv has the divergence of each head",
    "--clustermap": "-o FILE.json has the divergences of all pairs of heads",
    "--scatter": "-o FILE.json has the divergences of all pairs of heads",
    "--field": "--corpus FILE with one sentence on each line",
    "--max-offset": "attnviz head LAYER.HEAD --full shows offsets up to 8",
}
"""Advice for options that were removed."""


class _Output(io.FileIO):
    """A stream whose reader may leave."""

    def write(self, data: ReadableBuffer) -> int:
        """Write; once nobody reads any more, write into nothing."""
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
    """Open a stream whose reader may leave; a character that it cannot show is written as its number."""
    if stream is None:  # closed by whoever started us
        return open(os.devnull, "w", encoding="utf-8")
    raw = io.BufferedWriter(_Output(stream.fileno(), "wb", closefd=False))
    is_stderr = stream.fileno() == 2
    return io.TextIOWrapper(
        raw,
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=stream.isatty() or is_stderr,
    )


def main() -> NoReturn:
    """Run the command line and exit with its status."""
    sys.stdout, sys.stderr = _open_output(sys.stdout), _open_output(sys.stderr)

    def interrupt(number: int, _: object) -> None:
        if number != signal.SIGINT:
            raise SystemExit(128 + number)
        _pressed.set()
        raise KeyboardInterrupt

    def raise_again(lost: Any) -> None:
        if not isinstance(lost.exc_value, KeyboardInterrupt):
            sys.__unraisablehook__(lost)
        else:  # Ctrl-C came while Python ran a callback that can raise nothing
            threading.Timer(0.01, _thread.interrupt_main).start()

    def show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
        sys.stderr.write(f"attnviz: {message}\n")

    signal.signal(signal.SIGINT, interrupt)
    for name in ("SIGTERM", "SIGHUP"):  # the window was closed: leave no half of a file behind
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, interrupt)
    sys.unraisablehook = raise_again
    # A library's advice to programmers is not for the person at the terminal.
    warnings.simplefilter("ignore")
    warnings.simplefilter("always", AttnvizWarning)
    warnings.showwarning = show_warning
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
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
    """Return all commands with their options, made once a process."""
    made: TyperGroup = typer.main.get_command(app)  # type: ignore[assignment]  # of several commands
    return made


def _run() -> int:
    try:
        status = _group().main(prog_name="attnviz", standalone_mode=False) or 0
    except typer.TyperException as error:  # what was typed cannot be understood
        return _report_misuse(error)
    except (typer.Abort, KeyboardInterrupt):
        status = INTERRUPTED
    except Exception as error:
        if _pressed.is_set():
            status = INTERRUPTED
        elif isinstance(error, SettingsError):
            return _report_setting(error)
        elif isinstance(error, AttnvizError):
            return _fail(str(error), 1)
        elif isinstance(error, MemoryError) or (
            isinstance(error, RuntimeError) and _NO_MEMORY.search(str(error))
        ):
            return _fail("there is not enough memory here for a text of this length: shorten it", 1)
        else:
            raise
    return _fail("interrupted", INTERRUPTED) if status == INTERRUPTED else int(status)


# How torch says, in a more general error, that numbers had no room.
_NO_MEMORY = re.compile("out of memory|allocate memory|not enough memory", re.IGNORECASE)

# Set when Ctrl-C was pressed: while libraries load, some turn the exception into another.
_pressed = threading.Event()


def _command_path() -> str:
    named = [name for name in sys.argv[1:2] if name in COMMANDS]
    return " ".join(["attnviz", *named])


def _report_setting(error: SettingsError) -> int:
    """Print why a setting was refused, under the name of its option."""
    where = _command_path()
    command = _group().commands.get(where.removeprefix("attnviz "))
    option = next(
        (one for one in (command.params if command else ()) if one.name == error.setting), None
    )
    message = str(error)
    if option is not None:
        shown = option.opts if option.param_type_name == "option" else [option.metavar or ""]
        names = " / ".join(f"'{name}'" for name in shown)
        message = f"Invalid value for {names}: {error.reason}"
    return _fail(f"{message} (see {where} --help)", 2, where)


def _report_misuse(error: typer.TyperException) -> int:
    """Print in one line what cannot be understood, and where help is."""
    context = getattr(error, "ctx", None)
    where = context.command_path if context else _command_path()
    message = error.format_message().removeprefix("Invalid value: ")
    # Typer checks values with pydantic, whose messages begin so.
    message = message.replace("Value error, ", "").rstrip(".")
    if context and hasattr(error, "possibilities"):
        typed = str(getattr(error, "option_name", ""))
        options = [name for parameter in context.command.params for name in parameter.opts]
        known = [name.removeprefix("--") for name in options if name.startswith("--")]
        message = f"there is no option {typed}"
        if re.match(r"-\d", typed):
            message += ": put -- before a head that is counted from the end, as in head -- -1.-1"
        elif typed in REPLACED:
            message += f"; use instead: {REPLACED[typed]}"
        else:
            message += suggest(typed.lstrip("-"), known, ()).replace("mean ", "mean --")
    if "unexpected extra argument" in message and context:
        if context.info_name in SENTENCE_COMMANDS:
            message += ": put a sentence in quotation marks"
        elif context.info_name == "page":
            message = 'page takes no sentence: attnviz heatmap "I love" -o page.html writes one'
    return _fail(f"{message} (see {where} --help)", 2, where)


def _fail(message: str, status: int, where: str = "attnviz") -> int:
    sys.stderr.write(f"{where}: {visible(' '.join(message.split()))}\n")
    return status
