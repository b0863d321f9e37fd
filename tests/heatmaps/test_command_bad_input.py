"""Bad input to ``attnviz heatmap``: one clear line, nothing on standard output, nothing written."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.fixtures.command_line import Result

SEE = "(see attnviz heatmap --help)"
ENDINGS = "the ending must be one of png, svg, pdf, html, csv, json, npz, safetensors"
NAMES = "teal, magma, inferno, plasma, viridis, cividis, gray, mako, rocket, crest, flare"
NOT_WITH_LOAD = "--load draws a saved record: it takes no sentence and no model"
LAYERS = "this model has layers 0 to 1 (counted from 0)"
HEADS = "this model has heads 0 to 3 (counted from 0)"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([""], "the text is empty"),
        (["I", "--pair", "\n "], "the second sentence is empty (only spaces)"),
        (["a\ud800"], r"the text is not valid Unicode: character 2 is a lone surrogate (\ud800)"),
        (["caf\udce9"], "the text is not UTF-8: byte 4 is 0xe9"),
        (["I", "--layer", "2"], f"there is no layer 2: {LAYERS}"),
        (["I", "--head", "4"], f"there is no head 4: {HEADS}"),
        (["I", "--device", "cuda"], "there is no CUDA device here that torch can use: take cpu"),
    ],
)
def test_text_and_numbers(
    refused: Callable[..., tuple[int, str]], arguments: list[str], line: str
) -> None:
    """Errors name the mistake in the sentence, or the existing layers and heads."""
    assert refused("heatmap", "-m", "toy-random", *arguments) == (1, f"attnviz: {line}")


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        (b"", "the text is empty"),
        (b" \r\n", "the text is empty (only spaces)"),
        (b"caf\xe9", "{} is not UTF-8: byte 4 is 0xe9"),
        (None, "standard input is closed"),
    ],
)
def test_standard_input_and_files(
    refused: Callable[..., tuple[int, str]], here: Path, raw: bytes | None, line: str
) -> None:
    """A sentence that cannot be read, from standard input or from a file."""
    expected = f"attnviz: {line.format('standard input')}"
    assert refused("heatmap", "-m", "toy-random", "-", stdin=raw) == (1, expected)
    if raw is not None:
        (here / "text").write_bytes(raw)
        expected = f"attnviz: {line.format('text')}"
        assert refused("heatmap", "-m", "toy-random", "--file", "text") == (1, expected)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("CUDA out of memory. Tried to allocate 20.00 MiB"),
    ],
)
def test_no_memory(
    refused: Callable[..., tuple[int, str]],
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
) -> None:
    """A text that this machine has no room for is said to be too long, in a line; another failure is none of it."""

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("attnviz.capture.source.open_source", fail)
    line = "attnviz: there is not enough memory here for a text of this length: shorten it"
    assert refused("heatmap", "--toy", "I love you") == (1, line)
    error = RuntimeError("something else")
    with pytest.raises(RuntimeError, match="something else"):
        refused("heatmap", "--toy", "I love you")


def test_texts_that_are_too_long(refused: Callable[..., tuple[int, str]]) -> None:
    """A file of a gigabyte, or a pipe that does not end, is refused before it is read to its end."""
    limit = "is too long: at most 1,048,576 bytes are read"
    for command in ("heatmap", "walkthrough"):
        refusal = refused(command, "-m", "toy-random", "-", stdin=b"a" * (2**20 + 1))
        assert refusal == (1, f"attnviz: standard input {limit}")
    refusal = refused("heatmap", "-m", "toy-random", "--file", "/dev/zero")
    assert refusal == (1, f"attnviz: /dev/zero {limit}")


def test_a_file_that_is_read_is_not_written(
    refused: Callable[..., tuple[int, str]], saved: Path, here: Path
) -> None:
    """By its name or by a link; of a corpus as of a record."""
    content = saved.read_bytes()
    (here / "link.json").symlink_to(saved)
    (here / "corpus.csv").write_text("I love all you")
    (here / "record.json").write_bytes(content)
    for command, option, name, output in (
        ("heatmap", "--load", saved.name, saved.name),
        ("heatmap", "--load", "record.json", f"../{here.name}/record.json"),
        ("heatmap", "--load", saved.name, "link.json"),
        ("compare-heads", "--corpus", "corpus.csv", "corpus.csv"),
    ):
        status, line = refused(command, option, name, "-o", output)
        assert status == 2
        assert f"{name} is read by this command" in line
    assert saved.read_bytes() == (here / "record.json").read_bytes() == content


def test_a_pipe_for_a_model(refused: Callable[..., tuple[int, str]], here: Path) -> None:
    """A pipe is no file of weights, and nobody waits for its writer."""
    os.mkfifo(here / "toy.safetensors")
    status, line = refused("models", "toy.safetensors")
    assert status == 1
    assert "it is not a regular file" in line


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("none", "none cannot be read: No such file or directory"),
        ("\x1b[2J", r"\x1b[2J cannot be read: No such file or directory"),
        ("long" * 99, f"{'long' * 99} cannot be read: File name too long"),
    ],
)
def test_files_that_cannot_be_read(
    refused: Callable[..., tuple[int, str]], name: str, line: str
) -> None:
    """A file that is not there, or none."""
    assert refused("heatmap", "-m", "toy-random", "--file", name) == (1, f"attnviz: {line}")


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("file/a.png", "{}/file is not a folder"),
        ("nosuch/a.png", "there is no folder nosuch"),
        ("folder.png", "it is a folder"),
        (f"{'long' * 99}.png", "File name too long"),
    ],
)
def test_outputs_that_cannot_be_written(
    refused: Callable[..., tuple[int, str]], here: Path, saved: Path, output: str, reason: str
) -> None:
    """Where a picture cannot be written, that is said before any work, and before another one is."""
    (here / "file").touch()
    (here / "folder.png").mkdir()
    line = f"attnviz: {output} cannot be written: {reason.format(here)}"
    for source in (["--load", saved.name], ["-m", "toy-random", "I"]):
        assert refused("heatmap", *source, "-o", "good.png", "-o", output) == (1, line)


def test_the_default_folder_cannot_be_written(
    refused: Callable[..., tuple[int, str]], typed: Callable[..., Result], here: Path, saved: Path
) -> None:
    """A file named outputs where the folder should be is an error only for a file that was asked for."""
    (here / "outputs").touch()
    line = (
        f"outputs/a.png cannot be written: {here}/outputs is not a folder; name another file with -o, "
        "or another folder with ATTNVIZ_OUTPUTS"
    )
    for command in (
        ["heatmap", "--load", saved.name],
        ["heatmap", "-m", "toy-random", "I love", "--against", "You love"],
        ["walkthrough", "--example", "seq2seq"],
        ["demo", "scaling"],
    ):
        assert refused(*command, "-o", "outputs/a.png") == (1, f"attnviz: {line}")
        result = typed(*command)
        assert (result.status, result.output.count("\n") > 5) == (0, True)
        start = "attnviz: no picture was written: outputs/"
        assert result.errors.startswith(start)
        assert result.errors.endswith(line.removeprefix("outputs/a") + "\n")
        assert result.errors.count("\n") == 1
        assert typed(*command, "--quiet").errors == ""
    assert typed("heatmap", "-m", "toy-random", "I", "-o", "-").status == 0


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("", 'give a sentence, such as "I love all you", or - for standard input'),
        ("I --file x", "give the sentence or a file, not both"),
        ("I --toy -m x", "give --toy or another model, not both"),
        ("I --load x.npz", NOT_WITH_LOAD),
        ("--load x.npz --toy", NOT_WITH_LOAD),
        ("--load x.npz --pair I", NOT_WITH_LOAD),
        ("I -o a.doc", f"Invalid: '--output' / '-o': a.doc: {ENDINGS}"),
        ("I --scale logs", "Invalid: '--scale': 'logs' is not one of 'shared', 'panel', 'log'"),
        (
            "I --palette jets",
            f"Invalid: '--palette': there is no palette 'jets': there are {NAMES}",
        ),
        (
            "I --device tpu",
            "Invalid: '--device': 'tpu' is not one of 'auto', 'cpu', 'cuda', 'mps'",
        ),
        (
            "I --toy --layer 1-0",
            "Invalid: '--layer': the first of '1-0' must not be after the last",
        ),
        (
            "I --toy --head -1-0",
            "Invalid: '--head': '-1-0': give numbers from the end one by one: -2, -1",
        ),
        (
            "I --toy --rows 3-1",
            "Invalid: '--rows': the first of '3-1' must not be after the last",
        ),
        ("I --zzz", "there is no option --zzz"),
        ("I --layer", "Option '--layer' requires an argument"),
    ],
)
def test_usage(refused: Callable[..., tuple[int, str]], arguments: str, line: str) -> None:
    """Wrong usage exits with 2 and points to the help."""
    line = line.replace("Invalid:", "Invalid value for")
    assert refused("heatmap", *arguments.split()) == (2, f"attnviz heatmap: {line} {SEE}")


def test_nothing_typed(typed: Callable[..., Result]) -> None:
    """Without a command the help is shown, and the status is that of wrong usage."""
    result = typed()
    assert (result.status, result.output) == (2, "")
    assert result.errors.startswith("Usage: attnviz [OPTIONS] COMMAND")
    assert os.linesep in result.errors
