"""The command line: parse arguments, call the library, print results.

Results go to standard output, everything else to standard error. The exit status is 0 for success, 1 for an error, 2
for wrong usage, and 130 after Ctrl-C.
"""

from __future__ import annotations

import _thread
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
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from attnviz.cli import (
    attribute,
    demo,
    doctor,
    generate,
    heads,
    heatmap,
    models,
    output,
    train,
    walkthrough,
)
from attnviz.cli.help import REMOVED, Command, CommandGroup, is_sentence, versions
from attnviz.cli.streams import open_output
from attnviz.errors import AttnvizError, AttnvizWarning, InputError, OutputError, SettingsError
from attnviz.releases import misuse_error, unfit_releases
from attnviz.text.display import visible
from attnviz.text.suggest import suggest

INTERRUPTED = 130  # the exit status after Ctrl-C in shells: 128 + SIGINT
SENTENCE_COMMANDS = {"heatmap", "attribute", "generate", "walkthrough", "compare-heads"}

app = typer.Typer(
    name="attnviz",
    cls=CommandGroup,
    help="See, check and understand attention in neural networks.",
    epilog='Example: attnviz heatmap "I love all you"',
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help starts faster, and brackets in it are not markup
)


def _show_version(value: bool) -> None:
    if value:
        typer.echo(versions())
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _begin(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Show the versions of attnviz and of its libraries.",
            callback=_show_version,
        ),
    ] = False,
) -> None:
    output.set_quiet(False)
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)
    try:
        Path.cwd()
    except FileNotFoundError:  # libraries would fail without a clear message
        if not {"-h", "--help"} & set(sys.argv):
            raise InputError(
                "the current folder is no longer there: change to another one"
            ) from None


COMMANDS: dict[str, tuple[Callable[..., None], str]] = {
    "heatmap": (heatmap.heatmap, heatmap.EXAMPLES),
    "walkthrough": (walkthrough.walkthrough, walkthrough.EXAMPLES),
    "attribute": (attribute.attribute, attribute.EXAMPLES),
    "compare-heads": (heads.compare_heads, heads.EXAMPLES),
    "generate": (generate.generate, generate.EXAMPLES),
    "demo": (demo.demo, demo.EXAMPLES),
    "page": (heatmap.page, heatmap.PAGE_EXAMPLES),
    "verify": (walkthrough.verify, walkthrough.VERIFY_EXAMPLES),
    "models": (models.models, models.EXAMPLES),
    "doctor": (doctor.doctor, doctor.EXAMPLES),
    "train": (train.train, train.EXAMPLES),
}
"""The commands by name, each with its examples; help lists the first `MAIN_COMMANDS` first."""

for _name, (_command, _examples) in COMMANDS.items():
    _indented = "\n".join(f"  {line}" for line in _examples.splitlines())
    app.command(
        _name,
        cls=Command,
        context_settings={"max_content_width": 100},
        epilog=f"\b\nExamples:\n{_indented}",
    )(_command)


def main() -> NoReturn:
    """Run the command line and exit with its status."""
    sys.stdout, sys.stderr = open_output(sys.stdout), open_output(sys.stderr)

    def interrupt(number: int, _: object) -> None:
        _signals.append(number)
        if number != signal.SIGINT:
            raise SystemExit(128 + number)
        raise KeyboardInterrupt

    def raise_again(failure: Any) -> None:
        if not isinstance(failure.exc_value, (KeyboardInterrupt, SystemExit)):
            sys.__unraisablehook__(failure)
        elif _signals:
            # The signal came during a callback that cannot raise: interrupt again after it.
            threading.Timer(0.01, _thread.interrupt_main, [_signals[-1]]).start()

    def show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
        sys.stderr.write(f"attnviz: {message}\n")

    signal.signal(signal.SIGINT, interrupt)
    # If the window is closed, exit in order, so that no partial file is left.
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, interrupt)
    sys.unraisablehook = raise_again
    # Warnings of libraries are for programmers, not for users of the command line.
    warnings.simplefilter("ignore")
    warnings.simplefilter("once", AttnvizWarning)  # not again for each file that is written
    warnings.showwarning = show_warning
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    os.environ.setdefault("HF_HUB_VERBOSITY", "critical")
    # No command opens a window, and Matplotlib refuses to be imported if this names a backend that is not there.
    os.environ["MPLBACKEND"] = "agg"
    status = _run()
    try:
        sys.stdout.flush()
    except OutputError as error:
        status = _fail(str(error), 1)
    # os._exit is faster than sys.exit: torch needs 0.1 s to shut down, and all output is already written.
    os._exit(status)


@cache
def _group() -> TyperGroup:
    """Return all commands with their options; they are built once per process."""
    group: TyperGroup = typer.main.get_command(app)  # type: ignore[assignment]  # a group, as there are several commands
    return group


def _run() -> int:
    """Run the command and return its exit status; print errors as one line."""
    try:
        status = _group().main(prog_name="attnviz", standalone_mode=False) or 0
    except misuse_error() as error:  # the arguments cannot be parsed
        return _report_misuse(error)
    except (typer.Abort, KeyboardInterrupt):
        status = INTERRUPTED
    except Exception as error:
        if _signals:
            status = 128 + _signals[-1]
        elif isinstance(error, SettingsError):
            return _report_setting(error)
        elif isinstance(error, AttnvizError):
            return _fail(str(error), 1)
        elif isinstance(error, MemoryError) or (
            isinstance(error, RuntimeError) and _NO_MEMORY.search(str(error))
        ):
            return _fail("there is not enough memory here for a text of this length: shorten it", 1)
        elif unfit := unfit_releases():
            return _fail(unfit, 1)
        else:
            raise
    return _fail("interrupted", INTERRUPTED) if status == INTERRUPTED else int(status)


# torch reports missing memory as a RuntimeError with one of these texts.
_NO_MEMORY = re.compile("out of memory|allocate memory|not enough memory", re.IGNORECASE)

# The signals received so far, because some libraries turn KeyboardInterrupt or SystemExit into another exception.
_signals: list[int] = []


def _command_path() -> str:
    """Return the command as it was typed, such as ``attnviz heatmap``, which is also that of a sentence alone."""
    for name in sys.argv[1:2]:
        if name in COMMANDS:
            return f"attnviz {name}"
        if is_sentence(name):
            return "attnviz heatmap"
    return "attnviz"


def _report_setting(error: SettingsError) -> int:
    """Print why a setting was refused, with the name of its option; return the exit status."""
    path = _command_path()
    command = _group().commands.get(path.removeprefix("attnviz "))
    parameters = command.params if command else []
    option = next((option for option in parameters if option.name == error.setting), None)
    message = str(error)
    if option is not None:
        spellings = option.opts if option.param_type_name == "option" else [option.metavar or ""]
        names = " / ".join(f"'{name}'" for name in spellings)
        message = f"Invalid value for {names}: {error.reason}"
    return _fail(f"{message} (see {path} --help)", 2, path)


def _report_misuse(error: Any) -> int:
    """Print in one line what cannot be parsed, and the command for help; return the exit status."""
    context = getattr(error, "ctx", None)
    where = context.command_path if context else _command_path()
    message = error.format_message().removeprefix("Invalid value: ")
    # Typer checks values with pydantic, whose messages begin with "Value error, ".
    message = message.replace("Value error, ", "").rstrip(".")
    if context and hasattr(error, "possibilities"):
        typed = str(getattr(error, "option_name", ""))
        options = [name for parameter in context.command.params for name in parameter.opts]
        known = [name.removeprefix("--") for name in options if name.startswith("--")]
        message = f"there is no option {typed}"
        if typed in REMOVED:
            message += f": {REMOVED[typed]}"
        else:
            message += suggest(typed.lstrip("-"), known, ()).replace("mean ", "mean --")
    if "unexpected extra argument" in message and context:
        if context.info_name in SENTENCE_COMMANDS:
            words = f"{context.params['text']} {message.partition(' (')[2].removesuffix(')')}"
            message = f'put the sentence in quotation marks: {where} "{words}"'
        elif context.info_name == "page":
            message = 'page takes no sentence: attnviz heatmap "I love" -o page.html writes one'
    return _fail(f"{message} (see {where} --help)", 2, where)


def _fail(message: str, status: int, where: str = "attnviz") -> int:
    """Print a message in one line, after the command (`where`); return the exit status."""
    sys.stderr.write(f"{where}: {visible(' '.join(message.split()))}\n")
    return status
