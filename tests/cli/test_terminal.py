"""The command in a real terminal: widths, colours, a light background."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyte
import pytest
from rich.cells import cell_len

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from attnviz.attention import Attention

DARK, LIGHT = b"\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\", b"\x1b]11;rgb:ffff/ffff/dede\x07"
CODES = re.compile(r"\x1b\[[\d;]*m")


ADOPT = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # the terminal becomes this process's own, as in a window
from attnviz.cli import main
main()
"""


@dataclass(frozen=True)
class Seen:
    """The output that reached a terminal.

    Attributes:
        text: as it was sent.
        lines: as a person sees them.
        errors: what came to standard error.
    """

    text: str
    lines: list[str]
    errors: str


@pytest.fixture
def terminal(here: Path, environment: Callable[..., dict[str, str]]) -> Callable[..., Seen]:
    """Run ``attnviz`` in a terminal of this size."""

    def run(*arguments: str, columns: int = 80, rows: int = 500, **more: str) -> Seen:
        variables = environment(**{"TERM": "xterm-256color", "COLORTERM": "truecolor", **more})
        del variables["COLUMNS"]
        controller, end = pty.openpty()
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
        process = subprocess.Popen(
            [sys.executable, "-c", ADOPT, *arguments],
            cwd=here,
            env=variables,
            stdin=end,
            stdout=end,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        os.close(end)
        sent = b""
        while select.select([controller], [], [], 30)[0] and (chunk := read(controller)):
            sent += chunk
        _, errors = process.communicate(timeout=30)
        os.close(controller)
        assert process.returncode == 0, errors
        text = sent.decode()
        screen = pyte.Screen(columns, 500)
        pyte.Stream(screen).feed(text)
        return Seen(text, [line.rstrip() for line in screen.display], errors.decode())

    return run


def read(controller: int) -> bytes:
    """Read the next output of a terminal; empty once all writers have gone."""
    try:
        return os.read(controller, 65536)
    except OSError:
        return b""


@pytest.fixture
def record(here: Path, make_record: Callable[..., Attention]) -> str:
    """A record in two scripts, in the folder of the command."""
    words = "[CLS] I love 너희 모두를 무지무지무지무지무지무지하게 🙂 [SEP]"
    make_record(words, n_layers=3, n_heads=7).save(here / "a.npz")
    return "a.npz"


def plain(text: str) -> list[str]:
    """The lines of a text without its colours."""
    return CODES.sub("", text).replace("\r\n", "\n").split("\n")


@pytest.mark.parametrize(("columns", "side_by_side"), [(60, 2), (200, 7)])
def test_width(terminal: Callable[..., Seen], record: str, columns: int, side_by_side: int) -> None:
    """No line is wider than the window, and as many heads stand side by side as it holds."""
    for options in ([], ["--head", "0.0-6"], ["--head", "1.2"]):
        seen = terminal("heatmap", "--load", record, "-o", "a.json", *options, columns=columns)
        lines = plain(seen.text)
        assert max(map(cell_len, lines)) <= columns
        assert "\x1b" not in "".join(lines)
        # Nothing was wrapped by the terminal itself: it shows as many lines as were sent.
        assert len("\n".join(seen.lines).rstrip().splitlines()) == len(
            "\n".join(lines).rstrip().splitlines()
        )
        if "0.0-6" in options:
            assert (
                max(line.count("head ") for line in lines if line.strip().startswith("head "))
                == side_by_side
            )


@pytest.mark.parametrize(
    ("variables", "colour"),
    [
        ({}, "24 bit"),
        ({"COLORTERM": ""}, "256"),
        ({"COLORTERM": "", "TERM": "xterm"}, "shades"),
        ({"TERM": "dumb"}, "plain"),
        ({"NO_COLOR": "1"}, "plain"),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, "plain"),
        ({"NO_COLOR": ""}, "24 bit"),
        ({"FORCE_COLOR": "1", "COLORTERM": "", "TERM": "dumb"}, "256"),
    ],
)
def test_colours(
    terminal: Callable[..., Seen], record: str, variables: dict[str, str], colour: str
) -> None:
    """Cells are coloured as finely as the terminal can; where it cannot, shades and numbers stand instead."""
    seen = terminal(
        "heatmap", "--load", record, "--layer", "0", "--head", "0-1", "-o", "a.json", **variables
    )
    assert ("\x1b[48;2;" in seen.text or ";48;2;" in seen.text) == (colour == "24 bit")
    assert (";48;5;" in seen.text or "\x1b[48;5;" in seen.text) == (colour == "256")
    assert ("[ ░▒▓█] Rows attend" in "\n".join(seen.lines)) == (colour in {"shades", "plain"})
    assert ("\x1b" in seen.text) == (colour != "plain")
    assert "even share" in " ".join(seen.lines)


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


def test_escape_characters_reach_no_terminal(terminal: Callable[..., Seen], here: Path) -> None:
    """A record that somebody sent can neither clear the screen nor set the window's title."""
    fields = r'{"weights": [[1, 0], [0, 1]], "tokens": ["\u001b[2J", "[red]x"], "text": "\u001b]0;title\u0007"}'
    (here / "sent.json").write_text(fields)
    seen = terminal("heatmap", "--load", "sent.json", "-o", "\x1b[2J.json")
    assert seen.errors == "wrote \\x1b[2J.json\n"
    assert "\x1b" not in "".join(plain(seen.text))
    assert "\x07" not in seen.text
    assert any(r"\x1b[2J" in line for line in seen.lines)
    assert any("[red]x" in line for line in seen.lines)
