"""The command line can do nothing that Python cannot: the same settings give the same file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import attnviz
from attnviz.settings import ModelSettings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.fixtures.command_line import Result


@pytest.mark.parametrize(
    ("options", "model", "more"),
    [
        (["--toy"], {"toy": True}, {}),
        (["-m", "toy-random", "--seed", "3", "--n-heads", "2", "--dtype", "float64"],
         {"model": "toy-random", "seed": 3, "n_heads": 2, "dtype": "float64"}, {}),
        (["-m", "toy-seq2seq", "--target", "나는 너를 사랑한다"],
         {"model": "toy-seq2seq"}, {"target": "나는 너를 사랑한다"}),
        (["-m", "toy-transformer", "--kind", "decoder", "--layer", "1", "--head", "0-1"],
         {"model": "toy-transformer"}, {"kind": "decoder", "layers": [1], "heads": [0, 1]}),
    ],
)  # fmt: skip
def test_heatmap(
    options: list[str], model: dict[str, Any], more: dict[str, Any], typed: Callable[..., Result], here: Path
) -> None:
    """A record of the command line and one of Python, byte for byte."""
    assert typed("heatmap", "I love you", *options, "-o", "typed.json").status == 0
    attnviz.attend("I love you", ModelSettings(**model).open(), **more).save(here / "called.json")
    assert (here / "typed.json").read_bytes() == (here / "called.json").read_bytes()
