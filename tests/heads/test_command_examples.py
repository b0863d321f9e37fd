"""The examples of a saved comparison: its pictures are those of the run, and need no model."""

from __future__ import annotations

import re
import shutil
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.heads.surveys import with_thresholds

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fixtures.command_line import Result

pytestmark = pytest.mark.usefixtures("few_seeds")


def words_of(path: Path) -> str:
    """Return the text of an SVG in one line."""
    said = " ".join(
        unescape(text)
        for text in re.findall(r"<text[^>]*>(.*?)</text>", path.read_text(), re.DOTALL)
    )
    return " ".join(re.sub(r"<[^>]*>", " ", said).split())


def test_the_pictures_of_a_saved_comparison(
    typed: Callable[..., Result],
    here: Path,
    corpus: Path,
    tiny_bert: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sheet and card are those of the run, to the last dot, with their patterns, although the model is gone."""
    # Heads have roles of which an example is drawn, though they are not established.
    monkeypatch.setattr("attnviz.heads.api.MEASURES", with_thresholds(0.1))
    bert = shutil.copytree(tiny_bert, here / "bert")
    run = ("-m", bert.name, "--corpus", corpus.name)
    assert typed("compare-heads", *run, "-o", "a.svg", "-o", "a.json").status == 0
    assert typed("compare-heads", *run, "--head", "1.2", "-o", "card.svg").status == 0
    shutil.rmtree(bert)
    for heads, drawn in (((), "a.svg"), (("--head", "1.2"), "card.svg")):
        again = typed("compare-heads", "--load", "a.json", *heads, "-o", "b.svg")
        assert (again.status, again.errors) == (0, "wrote b.svg\n")
        assert "Rows are queries" in words_of(here / "b.svg")
        assert (here / "b.svg").read_bytes() == (here / drawn).read_bytes()
