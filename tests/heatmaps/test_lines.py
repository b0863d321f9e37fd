"""Many sentences: each is drawn as it would be alone, and one that fails holds up no other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from PIL import Image

import attnviz
from attnviz.errors import InputError, OutputError
from attnviz.heatmaps import lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fixtures.command_line import Result

TEXTS = ["I love all you", "", "she is eating a green apple", "quokka zyx", "you love me"]


def pages(path: Path) -> int:
    """How many pages a PDF has."""
    return len(re.findall(rb"/Type /Page\b", path.read_bytes()))


def test_each_is_as_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Together or one at a time: the same files, in their order; the progress counts to the end."""
    counted: list[int] = []
    failures = attnviz.heatmap_all(TEXTS, tmp_path / "a", "toy", on_done=counted.append)
    assert [(one.line, one.text) for one in failures] == [(4, "quokka zyx")]
    assert "knows none of these words" in failures[0].reason
    assert counted == [1, 2, 3, 4]
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert names == [
        "1-i-love-all-you.png",
        "3-she-is-eating-a-green-apple.png",
        "5-you-love-me.png",
    ]
    alone = attnviz.attend(TEXTS[2], "toy").save(tmp_path / "alone.png")
    with Image.open(alone) as one, Image.open(tmp_path / "a" / names[1]) as other:
        assert one.size == other.size
        assert one.text["Title"] == other.text["Title"]  # type: ignore[attr-defined]  # of a PNG
    monkeypatch.setattr(lines, "MOST_SENTENCES", 1)
    attnviz.heatmap_all(TEXTS, tmp_path / "b", "toy")
    assert sorted(path.name for path in (tmp_path / "b").iterdir()) == names


def test_a_book(typed: Callable[..., Result], here: Path) -> None:
    """A page a line; what fails is told with its number, and the exit status is 1."""
    (here / "lines.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    result = typed("heatmap", "--toy", "--file", "lines.txt", "-o", "book.pdf", "--head", "1.3")
    assert result.status == 1
    assert result.errors.splitlines()[0] == "wrote book.pdf: 3 of 4 lines"
    assert result.errors.splitlines()[1].startswith("attnviz: line 4 (quokka zyx): toy knows none")
    assert pages(here / "book.pdf") == 3
    assert b"/Type3" not in (here / "book.pdf").read_bytes()  # which publishers refuse
    (here / "lines.txt").write_text("I love\nyou love me", encoding="utf-8")
    assert typed("heatmap", "--toy", "--file", "lines.txt", "-o", "folder/").status == 0
    assert len(list((here / "folder").iterdir())) == 2
    assert typed("heatmap", "--toy", "--file", "lines.txt", "-o", "one.npz").status == 0
    for more in (["--words"], ["--target", "나는"]):
        assert typed("heatmap", "--toy", "--file", "lines.txt", "-o", "folder/", *more).status == 2
    assert typed("heatmap", "--toy", "I love", "-o", "folder/").status == 2


def test_heads_counted_from_the_end(typed: Callable[..., Result], here: Path) -> None:
    """They are chosen for lines as for one sentence; a range from the end is refused, whatever there is to draw."""
    (here / "lines.txt").write_text("I love all you\n", encoding="utf-8")
    one = typed(
        "heatmap",
        "--toy",
        "I love all you",
        "--layer",
        "-1",
        "--head",
        "-2",
        "--head",
        "0",
        "-o",
        "alone.png",
    )
    many = ("heatmap", "--toy", "--file", "lines.txt", "-o", "folder")
    several = typed(*many, "--layer", "-1", "--head", "-2", "--head", "0")
    assert (one.status, several.status) == (0, 0)
    pictures = {(here / name).read_bytes() for name in ("alone.png", "folder/1-i-love-all-you.png")}
    assert len(pictures) == 1
    refused = typed(*many, "--layer", "-2--1")
    assert (refused.status, "give numbers from the end one by one" in refused.errors) == (2, True)


def test_bad_input(tmp_path: Path) -> None:
    """No sentence, no place to write to, and a line that alone is at fault in a batch."""
    with pytest.raises(InputError, match="all lines are blank"):
        attnviz.heatmap_all(["", " "], tmp_path, "toy")
    for text in ("sentences.txt", Path("sentences.txt")):
        with pytest.raises(InputError, match="expected a list of sentences"):
            attnviz.heatmap_all(text, tmp_path, "toy")  # type: ignore[arg-type]  # a path is no list
    with pytest.raises(OutputError, match="drawn into a folder"):
        attnviz.heatmap_all(["I love"], tmp_path / "a.png", "toy")
    failures = attnviz.heatmap_all(["quokka"], tmp_path / "none.pdf", "toy")
    assert len(failures) == 1
    assert not (tmp_path / "none.pdf").exists()
