"""The help of every command and its examples; the version."""

from __future__ import annotations

import platform
import re
import shlex
from typing import TYPE_CHECKING

import pytest
import typer

from attnviz import __version__
from attnviz.cli import COMMANDS, app

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fixtures.command_line import Result

NEEDED = {
    "heatmap": "text",
    "page": "model",
    "generate": "text",
    "doctor": "model",
    "train": "name",
    "demo": "name",
    "models": "measure",
    "walkthrough": "numbers",
    "verify": "file",
    "compare-heads": "treebank",
}
"""What an example of a command must give."""


def test_help_ends_in_an_example(typed: Callable[..., Result]) -> None:
    """The help of every command ends in an example that the command understands."""
    group = typer.main.get_command(app)
    for arguments in ([], *([name] for name in COMMANDS)):
        result = typed(*arguments, "--help")
        assert (result.status, result.errors) == (0, "")
        assert typed(*arguments, "-h") == result
        example = shlex.split(result.output.rstrip().rpartition("attnviz ")[2])
        command = group.commands[example[0]]  # type: ignore[attr-defined]
        with command.make_context(example[0], example[1:]) as context:
            assert context.params[NEEDED[example[0]]] or context.params.get("file")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_example_is_understood(name: str) -> None:
    """No example of a command's help has an option that the command lacks."""
    command = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]
    examples = [
        line for line in COMMANDS[name][1].splitlines() if line.startswith(f"attnviz {name}")
    ]
    assert examples
    for example in examples:
        with command.make_context(name, shlex.split(example)[2:]) as context:
            found = context.params[NEEDED[name]] or context.params.get("file")
            assert name in {"models", "demo", "walkthrough", "compare-heads"} or found


@pytest.mark.parametrize("columns", [80, 100, 200])
def test_help_fits_the_window(typed: Callable[..., Result], columns: int) -> None:
    """No line of any help is wider than the window."""
    for arguments in ([], *([name] for name in COMMANDS)):
        result = typed(*arguments, "--help", columns=columns)
        assert max(map(len, result.output.splitlines())) <= columns


def test_version(typed: Callable[..., Result]) -> None:
    """The first line is the version of the package; the second has what a report of a bug needs."""
    result = typed("--version")
    assert (result.status, result.errors) == (0, "")
    own, others = result.output.splitlines()
    assert own == f"attnviz {__version__}"
    for library in ("Python", "torch", "transformers", "numpy", "matplotlib"):
        assert re.search(rf"{library} \d+\.\d+", others)
    assert platform.system() in others
