"""``attnviz demo``: the list, the story in any window, its files, and what is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import attnviz.stories
from attnviz.stories import CHAPTERS, DEMOS
from attnviz.text.messages import _

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.fixtures.command_line import Result

    Refused = Callable[..., tuple[int, str]]
    Typed = Callable[..., Result]

TOLD = "library"
"""A demo that is quickly told."""


def test_list(typed: Typed, here: Path) -> None:
    """Every demo with what it shows, by chapter, in the order to be read, on one screen; nothing is written."""
    result = typed("demo")
    assert (result.status, result.errors) == (0, "")
    lines = result.output.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[-2:] == ["", "To see one: attnviz demo NAME"]
    assert len(lines) <= 40
    widest = max(map(len, DEMOS)) + 2
    titles = [line for line in lines if line in map(_, CHAPTERS)]
    assert titles == [*map(_, CHAPTERS)]
    rows = [line for line in lines[:-2] if line and line not in titles]
    names = [line[:widest].strip() for line in rows]
    assert [name for name in names if name] == list(DEMOS)
    assert " ".join(line[widest:] for line in rows) == " ".join(map(_, DEMOS.values()))
    assert not list(here.iterdir())


def test_tells(typed: Typed, here: Path) -> None:
    """The story on standard output, its picture in outputs/, and where that is on standard error."""
    result = typed("demo", TOLD)
    assert (result.status, result.errors) == (0, f"wrote outputs/demo-{TOLD}.png\n")
    lines = result.output.splitlines()
    story = attnviz.stories.tell(TOLD)
    assert " ".join(lines[: lines.index("")]) == story.title
    assert " ".join(lines[lines.index("") :]).endswith(story.receipt)
    assert "\x1b" not in result.output
    assert [path.name for path in here.rglob("*") if path.is_file()] == [f"demo-{TOLD}.png"]
    assert (here / "outputs" / f"demo-{TOLD}.png").read_bytes().startswith(b"\x89PNG")


def test_files(typed: Typed, here: Path) -> None:
    """Each file asked for, in the format of its ending; `-` prints the same JSON."""
    (here / "new").mkdir()
    names = ["new/a.png", "a.svg", "a.PDF", "a.json"]
    outputs = [part for name in names for part in ("-o", name)]
    result = typed("demo", TOLD, "--palette", "viridis", *outputs)
    assert (result.status, result.errors) == (0, "".join(f"wrote {name}\n" for name in names))
    files = [str(path.relative_to(here)) for path in here.rglob("*") if path.is_file()]
    assert sorted(files) == sorted(names)
    for name, begins in zip(names, (b"\x89PNG", b"<?xml", b"%PDF", b"{"), strict=True):
        assert (here / name).read_bytes().startswith(begins)
    printed = json.loads(typed("demo", TOLD, "-o", "-").output)
    assert printed["name"] == TOLD
    assert json.loads((here / "a.json").read_text()) == printed


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["no-such"], "there is no demo 'no-such': there are library, scaling, transpose,"),
        (["-o", "a.png"], "give the name of a demo: library, "),
        ([TOLD, "-o", "a.npz"], "a.npz: the ending must be one of png, svg, pdf, html, json"),
        ([TOLD, "--palette", "jets"], "there is no palette 'jets'"),
    ],
)
def test_misused(refused: Refused, arguments: list[str], told: str) -> None:
    """Status 2 and one line that says what there is."""
    status, line = refused("demo", *arguments)
    assert status == 2
    assert told in line
    assert line.endswith("(see attnviz demo --help)")
