"""Each command, with each kind of file that it writes, as a short session of a user."""

from __future__ import annotations

import shlex
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.fixtures.command_line import Result

SENTENCE = "The animal didn't cross the street because it was too tired."

COMMANDS = [
    f'heatmap --toy "{SENTENCE}" --head 1.3 -o a.png',
    f'heatmap --toy "{SENTENCE}" --head mean --theme dark --style slides -o a.pdf',
    f'heatmap --toy "{SENTENCE}" --scale log -o a.svg',
    f'heatmap --toy "{SENTENCE}" -o a.html -o a.npz -o a.json -o a.safetensors',
    "heatmap -m MINILM 'I love all you' --without-sinks -o a.png",
    "heatmap -m toy-random '나는 너희 모두를 사랑해' --lang ko -o a.png",
    "heatmap -m toy-transformer 'I love all you' --kind cross",
    f'walkthrough --toy "{SENTENCE}" --head 1.3 --query it -o a.png -o a.html -o a.json',
    "walkthrough --example seq2seq --full -o a.pdf",
    "walkthrough -m MINILM 'I love all you' --query love -o a.svg",
    "walkthrough --exercise 7 --solution -o a.md",
    "generate -m toy-decoder 'The animal' -o a.html -o a.png",
    "compare-heads --toy --corpus corpus.txt -o a.png -o a.html -o a.csv -o a.json",
    "page -m toy -o a.html",
    "demo scaling -o a.png -o a.html",
    "models toy",
    "doctor toy-transformer",
    "doctor MINILM",
    "--version",
]


@pytest.mark.usefixtures("corpus")
@pytest.mark.parametrize("command", COMMANDS)
def test_command(command: str, typed: Callable[..., Result], here: Path, real_model: str) -> None:
    """It ends without an error, prints something, and writes each file that it was asked for."""
    arguments = shlex.split(command.replace("MINILM", shlex.quote(real_model)))
    result = typed(*arguments)
    assert result.status == 0, result.errors
    assert result.output or "-o" in arguments
    for name in (name for option, name in pairwise(arguments) if option == "-o"):
        assert (here / name).stat().st_size > 100


@pytest.mark.usefixtures("corpus")
def test_saved_files(typed: Callable[..., Result]) -> None:
    """Saved results are shown and checked again."""
    for command in (
        "heatmap --toy 'I love all you' -o a.npz",
        "heatmap --load a.npz",
        "walkthrough --toy 'I love all you' -o a.json",
        "verify a.json",
        "compare-heads --toy --corpus corpus.txt -o heads.json",
        "compare-heads --load heads.json --head 1.3 --style slides -o a.png",
    ):
        result = typed(*shlex.split(command))
        assert result.status == 0, f"{command}: {result.errors}"


def test_mistakes(refused: Callable[..., tuple[int, str]]) -> None:
    """An unknown option and an unknown command are named in one line, whichever library finds them."""
    assert "--hed" in refused("heatmap", "--toy", "I love you", "--hed", "1")[1]
    assert "hetmap" in refused("hetmap")[1]
    assert "layer 9" in refused("heatmap", "--toy", "I love you", "--head", "9.9")[1]
