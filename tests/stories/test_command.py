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
    """The story on standard output, in Korean; its picture in outputs/, or each file asked for."""
    result = typed("demo", TOLD, "--lang", "ko")
    assert (result.status, result.errors) == (0, f"wrote outputs/demo-{TOLD}.png\n")
    lines = result.output.splitlines()
    story = attnviz.stories.tell(TOLD, "ko")
    assert " ".join(lines[: lines.index("")]) == story.title
    assert " ".join(lines[lines.index("") :]).endswith(story.receipt)
    assert (here / "outputs" / f"demo-{TOLD}.png").read_bytes().startswith(b"\x89PNG")
    assert (
        typed("demo", TOLD, "-o", "a.svg", "-o", "a.html").errors == "wrote a.svg\nwrote a.html\n"
    )
    assert (here / "a.html").read_text(encoding="utf-8") == attnviz.stories.tell(TOLD).page().html
    assert json.loads(typed("demo", TOLD, "-o", "-").output)["name"] == TOLD


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["no-such"], "there is no demo 'no-such': there are library, scaling, transpose,"),
        (["-o", "a.png"], "give the name of a demo: library, "),
        ([TOLD, "-o", "a.csv"], "a.csv: the ending must be one of png, svg, pdf, html, json"),
        ([TOLD, "--palette", "jets"], "there is no palette 'jets'"),
    ],
)
def test_misused(refused: Refused, arguments: list[str], told: str) -> None:
    """Status 2 and one line that says what there is."""
    status, line = refused("demo", *arguments)
    assert status == 2
    assert told in line
    assert line.endswith("(see attnviz demo --help)")
