"""Each option of ``attnviz heatmap``, and what it changes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from attnviz.results import load_record

if TYPE_CHECKING:
    from collections.abc import Callable

    from attnviz.attention import Attention
    from tests.fixtures.command_line import Result


# ---------------------------------------------------------------------------------------- layers and heads


@pytest.mark.parametrize(
    ("typed_numbers", "numbers"),
    [(["0-3"], (0, 1, 2, 3)), (["1-3", "2-4", "-1", " 6 "], (1, 2, 3, 4, 6))],
)
def test_layers_and_heads(
    typed: Callable[..., Result],
    here: Path,
    make_record: Callable[..., Attention],
    typed_numbers: list[str],
    numbers: tuple[int, ...],
) -> None:
    """Single numbers, ranges, numbers from the end, repeated: each once, in order."""
    make_record(n_layers=7, n_heads=7).save(here / "a.npz")
    for option, held in (("--layer", "layers"), ("--head", "heads")):
        chosen = [part for number in typed_numbers for part in (option, number)]
        assert typed("heatmap", "--load", "a.npz", *chosen, "-o", "b.npz").status == 0
        assert getattr(load_record(here / "b.npz"), held) == numbers


# ---------------------------------------------------------------------------------------------------- files


def test_a_file_by_its_ending(typed: Callable[..., Result], here: Path, saved: Path) -> None:
    """Each ending, in capitals too, makes its own kind of file, in a folder that is there; each is named."""
    (here / "b").mkdir()
    png = b"\x89PNG\r\n"
    first = {
        "a.png": png,
        "a.svg": b"<?xml",
        "a.pdf": b"%PDF-",
        "b/c.PNG": png,
        "a.json": b'{"format"',
        "a.npz": b"PK",
        "a.SafeTensors": b"",
    }
    outputs = [part for name in first for part in ("-o", name)]
    result = typed("heatmap", "--load", saved.name, *outputs)
    assert result.status == 0
    assert result.errors == "".join(f"wrote {name}\n" for name in first)
    for name, beginning in first.items():
        assert (here / name).read_bytes().startswith(beginning)
    assert not (here / "outputs").exists()
    for name in ("a.json", "a.npz", "a.SafeTensors"):
        assert load_record(here / name) == load_record(saved)


def test_json(typed: Callable[..., Result], here: Path, saved: Path) -> None:
    """The record on standard output is JSON and nothing else, and loads back equal; no file is made."""
    result = typed("heatmap", "--load", saved.name, "-o", "-")
    assert (result.status, result.errors) == (0, "")
    assert json.loads(result.output)["model"] == "made by hand"
    (here / "again.json").write_text(result.output)
    assert load_record(here / "again.json") == load_record(saved)
    assert sorted(path.name for path in here.iterdir()) == ["again.json", "saved.npz"]


def test_made_elsewhere(typed: Callable[..., Result]) -> None:
    """Attention from another program is drawn, and that nobody vouches for it is said."""
    sample = Path(__file__).parents[2] / "sample_inputs" / "made_elsewhere.json"
    result = typed("heatmap", "--load", str(sample), "-o", "a.png")
    assert result.status == 0
    assert "not verified" in result.output


# -------------------------------------------------------------------------------------------------- sentences


@pytest.mark.parametrize("raw", ["I love 너 🙂", "I love 너 🙂\n", "\ufeffI love 너 🙂\r\n"])
def test_where_the_sentence_comes_from(typed: Callable[..., Result], here: Path, raw: str) -> None:
    """Argument, standard input and file give the same record; a line end and a byte order mark are no part of it."""
    (here / "text").write_bytes(raw.encode())
    records = []
    for sentence in ([raw], ["-"], ["--file", "text"]):
        arguments = ("heatmap", "-m", "toy-random", *sentence, "-o", "a.npz")
        assert typed(*arguments, stdin=raw.encode()).status == 0
        records.append(load_record(here / "a.npz"))
    assert records[0] == records[1] == records[2]
    assert records[0].text == "I love 너 🙂"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[red]a[/red] [bold]b", "[red]a[/red] [bold]b"),
        ("\x1b[2Ja\x07 \x1b]0;title\x1b\\b", r"\x1b[2Ja\x07 \x1b]0;title\x1b\b"),
        ("a\u202eb \u200bc", r"a\u202eb \u200bc"),
        ("a\rb\nc", r"a\rb\nc"),
    ],
)
def test_shown_but_never_obeyed(
    typed: Callable[..., Result], here: Path, text: str, shown: str
) -> None:
    """Markup, control and escape characters of the text stand in the picture as what they are."""
    result = typed("heatmap", "-m", "toy-random", text, "-o", "a.svg", "-o", "a.json", columns=200)
    assert result.status == 0
    assert shown in re.sub("[░▒▓█]", "", result.output)
    assert not set(result.output) & set("\x1b\x07\r\u202e\u200b")
    assert not set((here / "a.svg").read_text()) & set("\x1b\x07\u202e\u200b")
    assert load_record(here / "a.json").text == text


def test_ten_thousand_characters(typed: Callable[..., Result], here: Path) -> None:
    """A word that no window, no sheet and no file name can hold is cut there, and drawn in seconds."""
    result = typed("heatmap", "-m", "toy-random", "a" * 10_000, "--layer", "0", "--head", "1")
    assert result.status == 0
    (picture,) = (here / "outputs").iterdir()
    assert picture.match(f"heatmap-{'a' * 40}-*-toy-random-layer-0-head-1.png")


def test_names_differ(typed: Callable[..., Result], here: Path) -> None:
    """A command overwrites only its own file: another sentence, pair, layer or head has another name."""
    commands = [
        ["Let's eat, grandma"],
        ["Let's eat grandma"],
        ["lets eat grandma"],
        ["lets eat grandma", "--layer", "0"],
        ["lets eat grandma", "--head", "0-2"],
    ]
    for arguments in (*commands, commands[0]):
        assert typed("heatmap", "-m", "toy-random", *arguments).status == 0
    assert len(list((here / "outputs").iterdir())) == len(commands)
