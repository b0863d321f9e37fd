"""``attnviz.page``, ``attnviz.save`` and ``attnviz.load``: results of every kind."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

import attnviz
from attnviz.errors import FileFormatError, OutputError, SelectionError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from attnviz.result import Result

SENTENCES = ["I love you", "You love me"]
RESULTS: dict[str, Callable[[], Result]] = {
    "record": lambda: attnviz.attend("I love you", model="toy-random"),
    "generation": lambda: attnviz.generate("I love", model="toy-decoder", max_new_tokens=2),
    "walkthrough": lambda: attnviz.walkthrough(example="seq2seq"),
    "attribution": lambda: attnviz.attribute("I love you", "toy", judged=1),
    "comparison": lambda: attnviz.compare_heads(SENTENCES, model="toy-random"),
    "story": lambda: attnviz.tell("transpose"),
}
"""One of each kind."""


@cache
def result_of(kind: str) -> Result:
    """One of a kind, made once."""
    return RESULTS[kind]()


@pytest.mark.parametrize("kind", [*RESULTS, "page", "diagnosis", "model", "listed"])
def test_each_says_itself_in_a_line(kind: str) -> None:
    """The repr of a result is one line."""
    if kind == "page":
        shown = repr(attnviz.page(result_of("walkthrough")))
    elif kind == "diagnosis":
        shown = repr(attnviz.doctor("toy-random"))
    elif kind == "model":
        shown = repr(attnviz.open_source("toy-random"))
    elif kind == "listed":
        shown = f"<{attnviz.list_models()[0]}>"
    else:
        shown = repr(result_of(kind))
    assert shown.startswith("<")
    assert len(shown) < 300
    assert "\n" not in shown


def test_what_cannot_be_loaded(tmp_path: Path) -> None:
    """Other JSON of attnviz is named, and what reads it."""
    attnviz.tell("library").save(tmp_path / "story.json")
    with pytest.raises(
        FileFormatError,
        match="the numbers of a story, for other programs: attnviz demo tells it again",
    ):
        attnviz.load(tmp_path / "story.json")
    (tmp_path / "heads.stats").write_bytes(b"")
    with pytest.raises(FileFormatError, match="made by an earlier version of attnviz: make it"):
        attnviz.load(tmp_path / "heads.stats")


# -------------------------------------------------------------------------------------------------------- pages


@pytest.mark.parametrize("kind", RESULTS)
def test_every_result_has_its_page(kind: str, tmp_path: Path) -> None:
    """A page is the same from the function, the method, a file and a notebook; in Korean if asked for."""
    result = result_of(kind)
    made = attnviz.page(result, tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == made.html == result.page("en").html
    attnviz.save(result, tmp_path / "b.html")
    assert (tmp_path / "b.html").read_text(encoding="utf-8") == made.html
    assert made.html.startswith('<!doctype html>\n<html lang="en">')
    assert "default-src 'none'; script-src 'sha256-" in made.html
    assert '<html lang="ko">' in attnviz.page(result, lang="ko").html
    assert result._repr_html_() == made._repr_html_()
    assert made._repr_html_().startswith('<iframe sandbox="allow-scripts allow-downloads"')


@pytest.mark.parametrize("kind", RESULTS)
def test_a_page_that_cannot_be(kind: str, tmp_path: Path) -> None:
    """A language that is not there, another ending, a model beside a result: one line, and no file."""
    result = result_of(kind)
    with pytest.raises(SelectionError, match=r"^there is no language 'de': choose one of en, ko$"):
        attnviz.page(result, lang="de")
    with pytest.raises(OutputError, match=r"a page is saved as \.html"):
        attnviz.page(result, tmp_path / "a.pdf")
    with pytest.raises(SettingsError, match="give one of them"):
        attnviz.page(result, model="toy")
    assert list(tmp_path.iterdir()) == []
