"""``attnviz compare-heads --against``: two models head by head, and a watch for pipelines."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Result

    Typed = Callable[..., Result]
    Refused = Callable[..., tuple[int, str]]

TWO = ("compare-heads", "-m", "toy-random", "--seed", "1", "--against", "toy-random", "--controls", "5")
"""Two models of random weights, which differ in their seeds."""


@pytest.fixture
def corpus(here: Path) -> str:
    """A small corpus."""
    names = ("the boy", "a girl", "two dogs", "the old queen", "나는", "그는")
    (here / "corpus.txt").write_text(
        "".join(f"{one} sees {other} near the house .\n" for one in names for other in names)
    )
    return "corpus.txt"


def test_a_model_against_itself_has_not_changed(typed: Typed, corpus: str, here: Path) -> None:
    """Nothing differs, and a watch for anything at all is content."""
    result = typed(
        "compare-heads", "--toy", "--corpus", corpus, "--against", "toy", "--fail-above", "0", "-o", "same.csv"
    )  # fmt: skip
    assert result.status == 0, result.errors
    assert "no head's pattern changed by more than 0 nats" in result.output
    with (here / "same.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 18
    assert {row["change"] for row in rows} == {"0.0"}


def test_a_watch_ends_with_status_3(typed: Typed, corpus: str, here: Path) -> None:
    """Heads that changed too much are named last, and the files are written all the same."""
    result = typed(*TWO, "--corpus", corpus, "--fail-above", "0.001", "-o", "two.png", "-o", "two.json")
    assert result.status == 3
    assert "8 heads changed by more than 0.001 nats" in result.output
    assert (here / "two.png").stat().st_size > 10_000
    assert json.loads((here / "two.json").read_text())
    assert typed(*TWO, "--corpus", corpus, "--fail-above", "0.69", "-o", "two.csv").status == 0
    piped = typed(*TWO, "--corpus", corpus, "--fail-above", "0.001", "--json")
    assert piped.status == 3
    assert json.loads(piped.output)


def test_saved_numbers_are_compared_too(typed: Typed, corpus: str, here: Path) -> None:
    """Measures and roles of a .stats file, but no patterns; a broken-off, foreign or missing one is refused."""
    assert typed(*TWO[:5], "--corpus", corpus, "--controls", "5", "-o", "one.stats").status == 0
    result = typed("compare-heads", "-m", "toy-random", "--corpus", corpus, "--controls", "5", "--against", "one.stats")
    assert result.status == 0, result.errors
    assert "(seed 1)" in result.output
    assert list((here / "outputs").iterdir())
    both = typed("compare-heads", "--load", "one.stats", "--against", "one.stats", "-o", "a.csv")
    assert both.status == 0, both.errors


@pytest.mark.parametrize("threshold", ["0.7", "-1", "nan"])
def test_a_threshold_that_watches_nothing(refused: Refused, corpus: str, threshold: str) -> None:
    """A pattern changes by 0 nats to ln 2."""
    status, line = refused(*TWO, "--corpus", corpus, "--fail-above", threshold)
    assert status == 2
    assert "0 nats to ln 2" in line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("compare-heads", "--toy", "--fail-above", "0.1"), "--fail-above is for --against"),
        ((*TWO, "--checkpoint", "a.stats"), "--checkpoint"),
        ((*TWO, "--clustermap", "a.png"), "--clustermap is of all pairs of heads of one model"),
        ((*TWO, "-o", "a.stats"), "not saved as stats"),
        (("compare-heads", "--load", "a.stats", "--against", "toy"), "another .stats file alone"),
        (("compare-heads", "--toy", "--against", "b.stats", "--fail-above", "0.1"), "does not hold"),
    ],
)
def test_what_cannot_be_meant_together(refused: Refused, arguments: tuple[str, ...], words: str) -> None:
    """One line, before a model is loaded."""
    status, line = refused(*arguments)
    assert status == 2
    assert words in line


def test_models_that_cannot_be_compared(refused: Refused, corpus: str, real_model: str, here: Path) -> None:
    """Other tokens, other numbers of heads, other attention, no file, no stats: said in one line."""
    (here / "foreign.stats").write_bytes(b"nothing")
    one = ("compare-heads", "--corpus", corpus, "--controls", "0")
    for model, against, words in (
        ("toy-random", "toy", "layers x heads"),
        ("toy", "toy-decoder", "decoder"),
        ("toy-random", "missing.stats", "missing.stats"),
        ("toy-random", "foreign.stats", "foreign.stats"),
        ("toy-random", real_model, "tokens"),
        ("toy-random", "toy-foo", "toy-foo"),
    ):
        status, line = refused(*one, "-m", model, "--against", against)
        assert status == 1, line
        assert words in line


def test_clusters_drawn_by_seaborn(
    typed: Typed, refused: Refused, corpus: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With scipy a picture; without, one line says what to install, before any model runs."""
    one = ("compare-heads", "-m", "toy-random", "--corpus", corpus, "--controls", "0", "-o", "a.csv")
    assert typed(*one, "--clustermap", "clusters.svg").status == 0
    assert "1.3" in (here / "clusters.svg").read_text()
    status, line = refused(*one, "--no-likeness", "--clustermap", "b.svg")
    assert status == 2
    monkeypatch.setattr("attnviz.views.likeness.find_spec", lambda _: None)
    status, line = refused(*one, "--clustermap", "b.svg")
    assert status == 1
    assert 'pip install "attnviz[clusters]"' in line
