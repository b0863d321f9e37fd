"""The command line: parse, call, print.

Results go to standard output, everything else to standard error. Exit status 0, 1 for what went wrong, 2 for usage,
130 after Ctrl-C.
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import NoReturn

import typer

import attnviz
from attnviz.cli import heatmap
from attnviz.errors import AttnvizError
from attnviz.text.display import visible

INTERRUPTED = 130
"""The exit status after Ctrl-C, as shells have it."""

app = typer.Typer(
    name="attnviz",
    help="See, check and understand attention in neural networks.",
    epilog='Example: attnviz heatmap "I love all you"',
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help starts sooner, and brackets in it stay brackets
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"attnviz {attnviz.__version__}")
        raise typer.Exit


@app.callback()
def attnviz_(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version."
    ),
) -> None:
    """See, check and understand attention in neural networks."""


app.command(
    "heatmap", epilog=heatmap.EXAMPLES, no_args_is_help=False, context_settings={"max_content_width": 100}
)(heatmap.command)


def main() -> NoReturn:
    """Run the command line and exit with its status."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character is shown its number, rather than a traceback.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    # A library's advice to programmers is not for the person at the terminal.
    warnings.simplefilter("ignore")
    os.environ.setdefault("HF_HUB_VERBOSITY", "critical")
    status = _run()
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _leave_the_pipe()
    # Not sys.exit: tearing down torch costs a tenth of a second, and everything is written by now.
    sys.stderr.flush()
    os._exit(status)


def _run() -> int:
    command = typer.main.get_command(app)
    try:
        status = command.main(prog_name="attnviz", standalone_mode=False) or 0
    except typer.TyperException as error:  # what was typed cannot be understood
        context = getattr(error, "ctx", None)
        where = context.command_path if context else "attnviz"
        return _fail(f"{visible(' '.join(error.format_message().split()))} (see {where} --help)", 2, where)
    except AttnvizError as error:
        return _fail(str(error), 1)
    except (typer.Abort, KeyboardInterrupt):
        status = INTERRUPTED
    except BrokenPipeError:
        _leave_the_pipe()
        return 0
    return _fail("interrupted", INTERRUPTED) if status == INTERRUPTED else int(status)


def _fail(message: str, status: int, where: str = "attnviz") -> int:
    sys.stderr.write(f"{where}: {message}\n")
    return status


def _leave_the_pipe() -> None:
    """Whoever read our output has seen enough: say nothing, and let nothing that is still buffered complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
