"""The command in a real terminal: widths, colours, a light background, and terminals that never answer."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import resource
import select
import struct
import subprocess
import sys
import termios
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyte
import pytest
from rich.cells import cell_len

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from attnviz.attention import Attention

ASKED = b"\x1b]11;?\x1b\\"
"""The question which colour the background has."""
DARK, LIGHT = b"\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\", b"\x1b]11;rgb:ffff/ffff/dede\x07"
KNOWN = b"\x1b[?62;c"
"""The answer of every terminal to the question after it."""
CODES = re.compile(r"\x1b\[[\d;]*m")


ADOPT = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # the terminal becomes this process's own, as in a window
from attnviz.cli import main
main()
"""
BEHIND = ADOPT.replace(
    "from",
    """
import os
if behind := os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(behind, 0)[1]))
os.setpgid(0, 0)
from""",
)
"""Likewise, but the command runs in the background, as a shell starts it with ``&`` and a script with ``timeout``."""


@dataclass(frozen=True)
class Seen:
    """What came to a terminal.

    Attributes:
        text: as it was sent, without the questions.
        lines: as a person sees them.
        seconds: from the question to the end.
        asked: whether there was a question.
        errors: what came to standard error.
    """

    text: str
    lines: list[str]
    seconds: float
    asked: bool
    errors: str


@pytest.fixture
def terminal(here: Path, environment: Callable[..., dict[str, str]]) -> Callable[..., Seen]:
    """Run ``attnviz`` in a terminal of this size: what it answers, after how many seconds, and the keys pressed."""

    def run(
        *arguments: str,
        columns: int = 80,
        rows: int = 500,
        answer: bytes = DARK + KNOWN,
        after: float = 0.0,
        keys: bytes = b"",
        start: str = ADOPT,
        **more: str,
    ) -> Seen:
        variables = environment(**{"TERM": "xterm-256color", "COLORTERM": "truecolor", **more})
        del variables["COLUMNS"]
        controller, end = pty.openpty()
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
        process = subprocess.Popen(
            [sys.executable, "-c", start, *arguments],
            cwd=here,
            env=variables,
            stdin=end,
            stdout=end,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        os.close(end)
        os.write(controller, keys)
        sent, asked, began = b"", False, time.monotonic()
        while select.select([controller], [], [], 30)[0] and (chunk := read(controller)):
            sent += chunk
            if ASKED in sent and not asked:
                asked, began = True, time.monotonic()
                time.sleep(after)
                os.write(controller, answer)
        seconds = time.monotonic() - began
        _, errors = process.communicate(timeout=30)
        os.close(controller)
        assert process.returncode == 0, errors
        text = sent.replace(ASKED + b"\x1b[c", b"").decode()
        screen = pyte.Screen(columns, 500)
        pyte.Stream(screen).feed(text)
        return Seen(
            text, [line.rstrip() for line in screen.display], seconds, asked, errors.decode()
        )

    return run


def read(controller: int) -> bytes:
    """What a terminal shows next; nothing once all who write to it have gone."""
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


@pytest.mark.parametrize(("columns", "side_by_side"), [(60, 2), (80, 2), (200, 7)])
def test_width(terminal: Callable[..., Seen], record: str, columns: int, side_by_side: int) -> None:
    """No line is wider than the window, and as many heads stand side by side as it holds."""
    for options in ([], ["--layer", "0", "--full"], ["--head", "1.2"]):
        seen = terminal("heatmap", "--load", record, "-o", "a.json", *options, columns=columns)
        lines = plain(seen.text)
        assert max(map(cell_len, lines)) <= columns
        assert "\x1b" not in "".join(lines)
        # Nothing was wrapped by the terminal itself: it shows as many lines as were sent.
        assert len("\n".join(seen.lines).rstrip().splitlines()) == len(
            "\n".join(lines).rstrip().splitlines()
        )
        if "--full" in options:
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
        ({"COLORTERM": "", "TERM": "dumb"}, "plain"),
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
    assert ("[ ░▒▓█] weight" in "\n".join(seen.lines)) == (colour in {"shades", "plain"})
    assert ("\x1b" in seen.text) == (colour != "plain")
    assert "numbers: " in "\n".join(seen.lines)


def test_pipes_and_forced_colours(
    record: str, here: Path, environment: Callable[..., dict[str, str]]
) -> None:
    """A pipe gets no codes at all, unless colours are forced; COLUMNS is how wide it is."""
    shown = {}
    for name, more in {
        "pipe": {},
        "forced": {"FORCE_COLOR": "1", "COLORTERM": "truecolor"},
    }.items():
        result = subprocess.run(
            [sys.executable, "-m", "attnviz", "heatmap", "--load", record, "-o", "a.json"],
            cwd=here,
            env=environment(COLUMNS="66", TERM="xterm-256color", **more),
            capture_output=True,
            text=True,
            check=True,
        )
        shown[name] = result.stdout
        assert 50 < max(map(cell_len, plain(result.stdout))) <= 66
    assert "\x1b" not in shown["pipe"]
    assert "48;2;" in shown["forced"]


def test_light_background(terminal: Callable[..., Seen], record: str) -> None:
    """The scale begins with the background, which the terminal is asked for, or told; else with black."""
    arguments = ["heatmap", "--load", record, "-o", "a.json"]
    white, black = "48;2;255;255;255", "48;2;0;0;0"

    def first_colour(seen: Seen) -> str:
        """The first cell of the scale, which is that of nothing."""
        scale = next(line for line in seen.text.split("\r\n") if "blank: below" in line)
        codes: list[str] = re.findall(r"48;2;\d+;\d+;\d+", scale)
        return codes[0]

    assert first_colour(terminal(*arguments, answer=LIGHT + KNOWN)) == "48;2;255;255;222"
    assert first_colour(terminal(*arguments, answer=DARK + KNOWN)) == "48;2;30;30;30"
    assert first_colour(terminal(*arguments, answer=KNOWN)) == black
    told = terminal(*arguments, COLORFGBG="0;15")
    assert first_colour(told) == white
    assert first_colour(terminal(*arguments, "--background", "light", answer=DARK + KNOWN)) == white
    assert first_colour(terminal(*arguments, "--background", "dark", answer=LIGHT + KNOWN)) == black


def test_a_cell_of_a_notebook(terminal: Callable[..., Seen], record: str) -> None:
    """`!attnviz` writes to what calls itself a terminal with colours, shows a question and answers none."""
    notebook = {
        "TERM": "xterm-color",
        "COLORTERM": "",
        "FORCE_COLOR": "1",
        "CLICOLOR_FORCE": "1",
        "PAGER": "cat",
    }
    seen = terminal(
        "heatmap",
        "--load",
        record,
        "-o",
        "a.json",
        "--head",
        "1.2",
        answer=b"",
        rows=24,
        **notebook,
    )
    assert not seen.asked
    scale = next(line for line in seen.text.split("\r\n") if "blank: below" in line)
    assert scale.startswith("\x1b[48;5;231m "), "light pages have white for 0"


def test_a_terminal_that_never_answers(terminal: Callable[..., Seen], record: str) -> None:
    """Nobody waits for long, and what the terminal was sent is shown all the same."""
    seen = terminal("heatmap", "--load", record, "-o", "a.json", answer=b"")
    assert seen.seconds < 3
    assert "verified: max difference 2.5e-07 over 3 layers" in "\n".join(seen.lines)


def test_a_terminal_that_is_far_away(terminal: Callable[..., Seen], record: str) -> None:
    """An answer that takes half a second, as over a long line, is waited for: late, it would stand at the prompt."""
    seen = terminal("heatmap", "--load", record, "-o", "a.json", answer=LIGHT + KNOWN, after=0.5)
    assert "48;2;255;255;222" in seen.text
    assert "]11;" not in seen.text


def test_what_was_typed_ahead_is_no_answer(terminal: Callable[..., Seen], record: str) -> None:
    """Keys pressed meanwhile are not taken for the terminal's answer."""
    seen = terminal("heatmap", "--load", record, "-o", "a.json", answer=b"ls\r" + DARK + KNOWN)
    assert "verified: max difference 2.5e-07 over 3 layers" in "\n".join(seen.lines)
    assert "]11;" not in "\n".join(seen.lines)


def test_escape_characters_reach_no_terminal(terminal: Callable[..., Seen], here: Path) -> None:
    """A record that somebody sent can neither clear the screen nor set the window's title."""
    fields = r'{"weights": [[1, 0], [0, 1]], "tokens": ["\u001b[2J", "[red]x"], "text": "\u001b]0;title\u0007"}'
    (here / "sent.json").write_text(fields)
    seen = terminal("heatmap", "--load", "sent.json", "-o", "a.json")
    assert "\x1b" not in "".join(plain(seen.text))
    assert "\x07" not in seen.text
    assert r"“\x1b]0;title\x07”" in seen.lines[0]
    assert any("[red]x" in line for line in seen.lines)


# ------------------------------------------------------------------------------------------------------ the pager

SHOW = ("heatmap", "--load", "a.npz", "-o", "a.json", "--background", "dark")
"""What the window of ten lines cannot hold."""
LAST = "verified: max difference 2.5e-07 over 3 layers"


def test_a_pager(terminal: Callable[..., Seen], record: str) -> None:
    """What is longer than the window is shown by less, in colour; a file is told of when it is left."""
    assert record == "a.npz"
    left = terminal(*SHOW, rows=10, keys=b"q")
    assert 5 <= left.text.count("\n") <= 12
    assert "48;2;" in left.text
    assert LAST not in left.text
    assert left.errors == "wrote a.json\n"
    to_the_end = terminal(*SHOW, rows=10, keys=b"Gq")
    assert LAST in to_the_end.text


@pytest.mark.parametrize(
    ("options", "rows", "variables"),
    [
        ((), 200, {}),
        (("--no-pager",), 10, {}),
        ((), 10, {"PAGER": "cat"}),
        ((), 10, {"PAGER": ""}),
        ((), 10, {"TERM": "dumb"}),
        ((), 10, {"PAGER": "no-such-pager"}),
        ((), 10, {"PAGER": "an 'odd one"}),
    ],
)
def test_no_pager(
    terminal: Callable[..., Seen],
    record: str,
    options: tuple[str, ...],
    rows: int,
    variables: dict[str, str],
) -> None:
    """Whoever wants none, or has none that works, sees all of it at once."""
    assert record == "a.npz"
    seen = terminal(*SHOW, *options, rows=rows, **({"PAGER": PAGER} | variables))
    assert LAST in seen.text
    assert "paged" not in seen.text
    assert seen.errors == "wrote a.json\n"


PAGER = "sh -c 'cat -v; echo paged $LESS'"


def test_the_pager_of_the_user(terminal: Callable[..., Seen], record: str) -> None:
    """The user's own pager is taken, with colours, and with the settings of less that are usual, or the user's."""
    assert record == "a.npz"
    seen = terminal(*SHOW, rows=10, PAGER=PAGER)
    assert "^[[" in seen.text
    assert "paged FRX" in seen.text
    assert "paged S" in terminal(*SHOW, rows=10, PAGER=PAGER, LESS="S").text


def test_no_pager_in_the_background(terminal: Callable[..., Seen], record: str) -> None:
    """Nobody can press its keys there, and it would stop the command before its files are written."""
    assert record == "a.npz"
    seen = terminal(*SHOW, rows=10, start=BEHIND)
    assert LAST in seen.text
    assert (seen.asked, seen.errors) == (False, "wrote a.json\n")


def test_no_room_for_a_pager(terminal: Callable[..., Seen]) -> None:
    """Where its temporary file cannot be written, as on a full or read-only disk, all is printed at once."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, before[1]))
    try:
        seen = terminal("demo", rows=10, PAGER=PAGER)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "Tell one: attnviz demo NAME" in seen.text
    assert ("paged" in seen.text, seen.errors) == (False, "")


@pytest.mark.parametrize("end", ["kill -9 $$", "exit 1"])
def test_a_pager_that_dies(terminal: Callable[..., Seen], record: str, end: str) -> None:
    """Nothing is lost, and nobody sees a traceback."""
    assert record == "a.npz"
    seen = terminal(*SHOW, rows=10, PAGER=f"sh -c 'head -n 3; {end}'")
    assert LAST in seen.text
    assert seen.errors == "wrote a.json\n"
