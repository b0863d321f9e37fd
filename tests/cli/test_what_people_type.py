"""Commands as people type them first: a sentence alone, without quotation marks, from a pipe; help and version."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Run
    from tests.fixtures.command_line import Result

    Typed = Callable[..., Result]

TOY = ("-m", "toy-random", "-o", "a.json")


@pytest.mark.parametrize("sentence", ["I love all you", "사랑해"])
def test_a_sentence_alone_is_drawn(typed: Typed, sentence: str) -> None:
    """Without a command it is what heatmap prints; a mistake is reported as one of heatmap."""
    assert typed(sentence, *TOY) == typed("heatmap", sentence, *TOY)
    assert typed(sentence, "--scale", "logs") == typed("heatmap", sentence, "--scale", "logs")


def test_help_and_version_are_words_too(typed: Typed) -> None:
    """As commands they print what the options print."""
    assert typed("help") == typed("--help")
    assert typed("help", "heatmap") == typed("heatmap", "--help")
    assert typed("version") == typed("--version")


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ("I love all you", 'attnviz heatmap "I love all you"'),
        ("heatmap I love all you --toy", 'attnviz heatmap "I love all you"'),
        ("walkthrough --toy I love", 'attnviz walkthrough "I love"'),
        ("heatmp I love", "did you mean heatmap?"),
        ("heatmap I --head 1,2", "did you mean 1.2"),
        ("generate I --head 1,2", "did you mean 1.2"),
        ("walkthrough I --toy --head 1,2", "did you mean 1.2"),
        ("compare-heads --toy --head 1,2", "did you mean 1.2"),
        ("head 1.2", "attnviz compare-heads --head 2.3"),
        ("merge a.stats b.stats", "--ray ADDRESS"),
        ("heatmap I --truncate", "a text that is too long is cut"),
        ("heatmap I --against-model toy", "--against NAME takes a sentence or a model"),
        ("compare-heads --toy --sort entropy", "--table shows all heads"),
    ],
)
def test_a_mistake_is_answered_with_what_to_type(
    refused: Callable[..., tuple[int, str]], arguments: str, answer: str
) -> None:
    """One line shows the command, before any work."""
    status, line = refused(*arguments.split())
    assert status in {1, 2}
    assert answer in line


@pytest.mark.parametrize("command", ["heatmap", "generate", "walkthrough"])
def test_a_sentence_from_a_pipe(typed: Typed, here: Path, command: str) -> None:
    """It is read without `-`."""
    model = ("--toy", "-o", "a.png")
    piped = typed(command, *model, stdin=b"I love\n")
    assert piped.status == 0, piped.errors
    assert piped == typed(command, "I love", *model)
    assert (here / "a.png").exists()


def test_an_empty_pipe_is_no_sentence(typed: Typed) -> None:
    """A program without input is asked for a sentence; a walkthrough takes its own."""
    assert typed("heatmap", "--toy", stdin=b"") == typed("heatmap", "--toy")
    walk = ("walkthrough", "--toy", "-o", "a.png")
    assert typed(*walk, stdin=b"") == typed(*walk)


def test_a_file_that_a_loop_reads_is_left_alone(attnviz: Run, tmp_path: Path) -> None:
    """Its next lines are the loop's; a file given to the command alone is its sentence."""
    lines = tmp_path / "lines.txt"
    lines.write_text("I love\nyou love\n")
    command = ("walkthrough", "--toy", "-o", "a.json")
    with lines.open("rb", buffering=0) as file:
        file.read(len("I love\n"))
        in_loop = attnviz(*command, stdin=file)
        assert file.read() == b"you love\n"
    assert in_loop.stdout == attnviz(*command, stdin=subprocess.DEVNULL).stdout
    with lines.open("rb") as file:
        assert "I love" in attnviz(*command, stdin=file).stdout


def test_a_silent_pipe_is_named(environment: Callable[..., dict[str, str]], tmp_path: Path) -> None:
    """A command that waits says for what, and goes on when the sentence comes."""
    command = [sys.executable, "-m", "attnviz", "heatmap", "--toy", "-o", "a.json"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=tmp_path, env=environment()
    ) as waiting:
        assert waiting.stderr is not None
        assert "waiting for a sentence from standard input" in waiting.stderr.readline()
        waiting.communicate("I love")
    assert waiting.returncode == 0


def test_only_the_default_folder_is_created(typed: Typed, here: Path) -> None:
    """A mistyped folder is named and not created, whatever is written."""
    for command in (("heatmap", "I love"), ("demo", "mask"), ("walkthrough",), ("train", "toy")):
        ending = "safetensors" if command[0] == "train" else "png"
        result = typed(*command, "-o", f"nosuch/a.{ending}")
        assert (result.status, result.output) == (1, "")
        assert result.errors.endswith("there is no folder nosuch\n")
    assert not (here / "nosuch").exists()
    assert typed("heatmap", "I love", "--toy", "-o", "outputs/a.png").status == 0
    assert (here / "outputs" / "a.png").exists()
