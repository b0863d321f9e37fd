"""The command line can do nothing that Python cannot: the same settings give the same file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import attnviz

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fixtures.command_line import Result


@pytest.mark.parametrize(
    ("options", "model", "more"),
    [
        (
            ["-m", "toy-random:seed=3,n_heads=2", "--device", "cpu"],
            {"model": "toy-random:seed=3,n_heads=2", "device": "cpu"},
            {},
        ),
        (
            ["-m", "toy-seq2seq", "--target", "나는 너를 사랑한다"],
            {"model": "toy-seq2seq"},
            {"target": "나는 너를 사랑한다"},
        ),
        (
            ["-m", "toy-transformer", "--kind", "decoder", "--layer", "1", "--head", "0-1"],
            {"model": "toy-transformer"},
            {"kind": "decoder", "layers": [1], "heads": [0, 1]},
        ),
    ],
)
def test_heatmap(
    options: list[str],
    model: dict[str, Any],
    more: dict[str, Any],
    typed: Callable[..., Result],
    here: Path,
) -> None:
    """A record of the command line and one of Python, byte for byte."""
    assert typed("heatmap", "I love you", *options, "-o", "typed.json").status == 0
    attnviz.attend("I love you", **model, **more).save(here / "called.json")
    assert (here / "typed.json").read_bytes() == (here / "called.json").read_bytes()


def test_compare_heads(typed: Callable[..., Result], here: Path) -> None:
    """All numbers of heads, byte for byte."""
    lines = ["I love you", "You love me", "They see the old dog", "She is eating a green apple"]
    (here / "lines.txt").write_text("\n".join(lines))
    run = ["compare-heads", "-m", "toy-random", "--corpus", "lines.txt"]
    assert typed(*run, "-o", "typed.csv", "-o", "typed.json").status == 0
    compared = attnviz.compare_heads(Path("lines.txt"), model="toy-random")
    for ending in ("csv", "json"):
        compared.save(here / f"called.{ending}")
        assert (here / f"typed.{ending}").read_bytes() == (here / f"called.{ending}").read_bytes()
