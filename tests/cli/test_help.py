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


def expect_understood(example: str) -> None:
    """Parse an example as the command line does, which refuses unknown options and missing arguments."""
    name, *arguments = shlex.split(example.removeprefix("attnviz "))
    command = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]
    with command.make_context(name, arguments) as context:
        assert context.params


def test_help_ends_in_an_example(typed: Callable[..., Result]) -> None:
    """The help of the whole ends in an example that is understood; ``-h`` is ``--help``."""
    for arguments in ([], *([name] for name in COMMANDS)):
        result = typed(*arguments, "--help")
        assert (result.status, result.errors) == (0, "")
        assert typed(*arguments, "-h") == result
        expect_understood(result.output.rstrip().rpartition("attnviz ")[2])


@pytest.mark.parametrize("name", COMMANDS)
def test_every_example_is_understood(name: str) -> None:
    """No example of a command's help has an option that the command lacks."""
    examples = COMMANDS[name][1].splitlines()
    assert any(example.startswith(f"attnviz {name}") for example in examples)
    for example in examples:
        if example.startswith("attnviz "):
            expect_understood(example)


@pytest.mark.parametrize("columns", [80, 200])
def test_help_fits_the_window(typed: Callable[..., Result], columns: int) -> None:
    """No line of any help is wider than the window."""
    for arguments in ([], *([name] for name in COMMANDS)):
        result = typed(*arguments, "--help", columns=columns)
        assert max(map(len, result.output.splitlines())) <= columns


def test_the_most_used_commands_come_first(typed: Callable[..., Result]) -> None:
    """All others stand under "More"."""
    first, _more, others = typed("--help").output.partition("\nMore:\n")
    names = ["heatmap", "walkthrough", "attribute", "compare-heads", "generate", "demo", "page"]
    assert re.findall(r"^  ([a-z-]+)  ", first, re.MULTILINE) == names
    listed = re.findall(r"^  ([a-z-]+)  ", others.partition("Options:")[0], re.MULTILINE)
    assert listed == [name for name in COMMANDS if name not in names]


@pytest.mark.parametrize("command", ["heatmap --toy I", "walkthrough --toy I"])
def test_heads_as_papers_write_them(typed: Callable[..., Result], command: str) -> None:
    """In every command that takes a head."""
    usual = typed(*command.split(), "-o", "a.json", "--head", "1.3")
    assert usual.status == 0, usual.errors
    for head in ("L1H3", "l1.h3"):
        assert typed(*command.split(), "-o", "a.json", "--head", head) == usual


def test_version(typed: Callable[..., Result]) -> None:
    """The first line is the version of the package; the second has what a report of a bug needs."""
    result = typed("--version")
    assert (result.status, result.errors) == (0, "")
    own, others = result.output.splitlines()
    assert own == f"attnviz {__version__}"
    for library in ("Python", "torch", "transformers", "numpy", "matplotlib"):
        assert re.search(rf"{library} \d+\.\d+", others)
    assert platform.system() in others
