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
        (["--toy"], {"model": "toy"}, {}),
        (
            ["-m", "toy-random:seed=3,n_heads=2", "--dtype", "float64"],
            {"model": "toy-random:seed=3,n_heads=2", "dtype": "float64"},
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


@pytest.mark.parametrize(
    ("options", "called"),
    [
        (["--toy"], {"model": "toy"}),
        (
            ["-m", "toy-seq2seq", "I love all you", "--query", "1"],
            {"text": "I love all you", "model": "toy-seq2seq", "query": 1},
        ),
        (
            ["--toy", "I am full", "--whole-layer", "1"],
            {"text": "I am full", "model": "toy", "whole_layer": True, "layer": 1},
        ),
        (
            [
                *("-m", "toy-random", "I love you", "--score", "additive"),
                *("--causal", "--all-queries", "--head", "0.2"),
            ],
            {
                "text": "I love you",
                "model": "toy-random",
                "score": "additive",
                "causal": True,
                "all_queries": True,
                "head": 2,
            },
        ),
        (["--example", "seq2seq"], {"example": "seq2seq"}),
    ],
)
def test_walkthrough(
    options: list[str], called: dict[str, Any], typed: Callable[..., Result], here: Path
) -> None:
    """A walkthrough of the command line and one of Python, byte for byte."""
    assert typed("walkthrough", *options, "-o", "typed.json").status == 0
    attnviz.walkthrough(**called).save(here / "called.json")
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
