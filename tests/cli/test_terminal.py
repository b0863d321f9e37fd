"""The command in a real terminal: widths, colours, a light background."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from rich.cells import cell_len

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from attnviz.attention import Attention

CODES = re.compile(r"\x1b\[[\d;]*m")


@pytest.fixture
def record(here: Path, make_record: Callable[..., Attention]) -> str:
    """A record in two scripts, in the folder of the command."""
    words = "[CLS] I love 너희 모두를 무지무지무지무지무지무지하게 🙂 [SEP]"
    make_record(words, n_layers=3, n_heads=7).save(here / "a.npz")
    return "a.npz"


@pytest.fixture
def printed(in_terminal: Callable[..., Any]) -> Callable[..., tuple[str, list[str], str]]:
    """Run ``attnviz`` in a long terminal: what was sent, the lines on the screen, and standard error."""

    def run(*arguments: str, columns: int = 80, **more: str) -> tuple[str, list[str], str]:
        variables = {"COLORTERM": "truecolor", "COLORFGBG": "", **more}
        with in_terminal(*arguments, lines=500, columns=columns, **variables) as session:
            status, errors = session.ended()
            assert status == 0, errors
            return session.sent.decode(), session.shown, errors

    return run


def plain(text: str) -> list[str]:
    """The lines of a text without its colours."""
    return CODES.sub("", text).replace("\r\n", "\n").split("\n")


@pytest.mark.parametrize(("columns", "side_by_side"), [(60, 2), (200, 7)])
def test_width(printed: Callable[..., Any], record: str, columns: int, side_by_side: int) -> None:
    """No line is wider than the window, and as many heads stand side by side as it holds."""
    for options in ([], ["--head", "0.0-6"]):
        sent, shown, _ = printed(
            "heatmap", "--load", record, "-o", "a.json", *options, columns=columns
        )
        lines = plain(sent)
        assert max(map(cell_len, lines)) <= columns
        # Nothing was wrapped by the terminal itself: it shows as many lines as were sent.
        assert "\n".join(shown).rstrip().count("\n") == "\n".join(lines).rstrip().count("\n")
    assert max(line.count("head ") for line in lines if "head 0.0" in line) == side_by_side


@pytest.mark.parametrize(
    ("variables", "colour"),
    [
        ({}, "24 bit"),
        ({"COLORTERM": ""}, "256"),
        ({"COLORTERM": "", "TERM": "xterm"}, "shades"),
        ({"TERM": "dumb"}, "plain"),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, "plain"),
        ({"NO_COLOR": ""}, "24 bit"),
        ({"FORCE_COLOR": "1", "COLORTERM": "", "TERM": "dumb"}, "256"),
    ],
)
def test_colours(
    printed: Callable[..., Any], record: str, variables: dict[str, str], colour: str
) -> None:
    """Cells are coloured as finely as the terminal can; where it cannot, shades and numbers stand instead."""
    options = ("--layer", "0", "--head", "0-1", "-o", "a.json")
    sent, shown, _ = printed("heatmap", "--load", record, *options, **variables)
    assert ("48;2;" in sent) == (colour == "24 bit")
    assert ("48;5;" in sent) == (colour == "256")
    assert ("[ ░▒▓█] Rows attend" in "\n".join(shown)) == (colour in {"shades", "plain"})
    assert ("\x1b" in sent) == (colour != "plain")
    assert "even share" in " ".join(shown)


@pytest.mark.parametrize(("columns", "widest"), [("66", 66), ("0", 80)])
def test_a_pipe(
    record: str, here: Path, environment: Callable[..., dict[str, str]], columns: str, widest: int
) -> None:
    """No codes, and COLUMNS is the width, 0 an unknown one; a backend of Matplotlib that is not there is not used."""
    result = subprocess.run(
        [sys.executable, "-m", "attnviz", "heatmap", "--load", record, "-o", "a.png"],
        cwd=here,
        env=environment(COLUMNS=columns, TERM="xterm-256color", MPLBACKEND="nonsense"),
        capture_output=True,
        text=True,
        check=True,
    )
    assert 50 < max(map(cell_len, plain(result.stdout))) <= widest
    assert "\x1b" not in result.stdout
    assert (here / "a.png").exists()


def test_escape_characters_reach_no_terminal(printed: Callable[..., Any], here: Path) -> None:
    """A record that somebody sent can neither clear the screen nor set the window's title."""
    fields = r'{"weights": [[1, 0], [0, 1]], "tokens": ["\u001b[2J", "[red]x"], "text": "\u001b]0;title\u0007"}'
    (here / "sent.json").write_text(fields)
    sent, shown, errors = printed("heatmap", "--load", "sent.json", "-o", "\x1b[2J.json")
    assert errors == "wrote \\x1b[2J.json\n"
    assert not {"\x1b", "\x07"} & {*"".join(plain(sent))}
    assert any(r"\x1b[2J" in line for line in shown)
    assert any("[red]x" in line for line in shown)
