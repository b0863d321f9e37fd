"""Figures in the prose of the docs are those of a run: links, shares, sizes of pages, scores of heads."""

from __future__ import annotations

import re
from itertools import permutations
from typing import TYPE_CHECKING

import pytest

import attnviz
from attnviz.heatmaps.finding import find
from tests.fixtures.pages import pages_named

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.fixtures.command_line import Result

HEATMAPS, HEADS, PAGE, WALKTHROUGHS = (
    re.sub(r"\s+", " ", pages_named(name)[0].text)
    for name in ("heatmaps", "heads", "page", "walkthroughs")
)
NAMED = re.findall(r"\| ([^|]+) \| (\S+) \| (“[^|]+\)) (?=\|)", HEATMAPS)
"""The table of sentences, models and the links that are named first."""


def test_the_table_of_links_is_found() -> None:
    """It has a row for each sentence."""
    assert len(NAMED) == 16


@pytest.mark.parametrize(("sentence", "model", "named"), NAMED)
def test_links_named_first(sentence: str, model: str, named: str, real_model: str) -> None:
    """The table says which link, of which weight and head, the first line names."""
    found = find(attnviz.attend(sentence, real_model if model[0] != "`" else model.strip("`")))
    assert found is not None
    assert found.sentence.replace("attends most to", "→") == named


def test_share_of_the_sinks(typed: Callable[..., Result], real_model: str) -> None:
    """The note quoted under the commands is what the command above prints."""
    said = re.findall(r'"(Without sinks [^"]+)"', HEATMAPS)
    printed = typed("heatmap", "I am full", "-m", real_model, "--without-sinks").output
    assert len(said) == 1
    assert said[0] in re.sub(r"\s+", " ", printed)


def test_links_above_a_weight(real_model: str) -> None:
    """Of the links between two of four words, as many are above 0.8 as the page says; so is the weight of a head."""
    record = attnviz.attend("I love all you", real_model)
    words = [token.text for token in record.query_tokens]
    pairs = [*permutations([words.index(word) for word in ("i", "love", "all", "you")], 2)]
    n = sum(record.weights[:, :, query, key].max() > 0.8 for query, key in pairs)
    assert f"of the {len(pairs)} links between two of these words, {n} have a weight" in HEADS
    weight = record.pattern(1, 8)[words.index("all"), words.index("you")]
    assert f"gives *you* {weight:.2f} from *all*" in HEADS


def test_scores_beside_those_of_treebanks() -> None:
    """The scores of the table that compares treebanks are those of the session above."""
    rows = re.findall(r"\| ([\w ]+) \| (\d\.\d+) \| (\S+) \((\S+) to (\S+)\) \|", HEADS)
    assert len(rows) == 5
    for relation, head, score, low, high in rows:
        assert re.search(rf"{relation} {head} (\+\d+ )?{score} {low}–{high} ", HEADS), relation


def test_sizes_of_pages(typed: Callable[..., Result], here: Path, real_model: str) -> None:
    """A page is as large as its docs say."""

    def size(*arguments: str) -> float:
        assert typed(*arguments, "-q", "-o", "page.html").status == 0
        return (here / "page.html").stat().st_size / 1000

    said = re.search(r"The file is (\S+) MB \((\S+) MB for `toy-ko`\)", PAGE)
    assert said is not None
    sizes = size("page") / 1000, size("page", "-m", "toy-ko") / 1000
    assert tuple(map(float, said.groups())) == pytest.approx(sizes, abs=0.01)
    said = re.search(
        r"has (\S+) KB for `--toy`, (\S+) KB for `--example seq2seq`, (\S+) MB for five tokens in a head of MiniLM, "
        r"and (\S+) MB for its whole layer",
        WALKTHROUGHS,
    )
    assert said is not None
    five = ("walkthrough", "I am full", "-m", real_model)
    sizes = size("walkthrough", "--toy"), size("walkthrough", "--example", "seq2seq")
    assert tuple(map(float, said.groups()[:2])) == pytest.approx(sizes, rel=0.02)
    sizes = size(*five) / 1000, size(*five, "--whole-layer", "2") / 1000
    assert tuple(map(float, said.groups()[2:])) == pytest.approx(sizes, abs=0.01)
