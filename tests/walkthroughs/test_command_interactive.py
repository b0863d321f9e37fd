"""``attnviz walkthrough --interactive`` in a real terminal: every key, every way to end, the terminal afterwards."""

from __future__ import annotations

import select
import signal
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from attnviz.render.terminal.keyboard import KEYS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RIGHT, LEFT, UP, DOWN, HOME, END = "\x1b[C", "\x1b[D", "\x1b[A", "\x1b[B", "\x1b[H", "\x1b[F"
PAGE_DOWN, PAGE_UP, CTRL_C, CTRL_Z = "\x1b[6~", "\x1b[5~", "\x03", "\x1a"


@pytest.fixture
def session(in_terminal: Callable[..., Any]) -> Callable[..., Any]:
    """Run ``attnviz walkthrough --interactive`` in a terminal of 24 lines and 80 columns."""
    return partial(in_terminal, "walkthrough", "--interactive")


def test_every_key(session: Callable[..., Any], here: Path) -> None:
    """Forward and back by each of its names, and to both ends; no step before the first or after the last."""
    with session("--example", "seq2seq", lines=50) as one:
        shown = one.sees("step 1 of 5")
        assert shown[0].startswith("Attention by hand")
        assert any(line.startswith("1. Attention scores") for line in shown)
        assert not any(line.startswith("2. ") for line in shown)
        for code in KEYS["next"]:
            one.press(code)
            one.sees(r"^2\. Softmax")
            one.press(KEYS["back"][0])
            one.sees(r"^1\. Attention")
        for code in KEYS["back"]:
            one.press(RIGHT)
            one.sees("step 2 of 5")
            one.press(code)
            one.sees("step 1 of 5")
        for last, first in zip(KEYS["last"], [*KEYS["first"], HOME], strict=False):
            one.press(last)
            assert "no model to compare with" in one.sees("step 5 of 5")
            one.press(first)
            one.sees("step 1 of 5")
        one.press(LEFT, LEFT, RIGHT, RIGHT)  # in one go, as from a person in a hurry
        one.sees("step 3 of 5")
        one.press(" ")
        one.sees("step 4 of 5")
        one.press(END, RIGHT, "n", " ", "x", "\x1b", "가", CTRL_Z, UP, DOWN, "\x1b[99~", LEFT)
        one.sees("step 4 of 5")
        one.press("q")
        assert one.ended() == (0, "")
    assert list(here.iterdir()) == []


def test_the_table_grows_with_the_steps(session: Callable[..., Any]) -> None:
    """What the query makes of the keys is shown as far as the step."""
    with session("--example", "seq2seq", "--jump", "1", "--precision", "3", lines=50) as one:
        heads = []
        for number in (1, 2, 3):
            shown = one.sees(f"step {number} of 5")
            heads.append(next(line for line in shown if line.startswith("key ")).split()[1:])
            one.press(RIGHT)
        assert heads == [
            ["k", "score"],
            ["k", "score", "weight"],
            ["k", "score", "weight", "value", "alignment"],
        ]
        assert not any(line.startswith("key ") for line in one.sees("step 4 of 5"))
        one.press("Q")
        assert one.ended() == (0, "")


def test_a_page_longer_than_the_window(session: Callable[..., Any]) -> None:
    """It is scrolled by lines and by pages; space goes on to the next step at its end; a new step begins at its top."""
    chosen = (
        "--example",
        "self-attention",
        "--query",
        "you",
        "--steps",
        "query,keys,values",
        "--jump",
        "2",
    )
    with session(*chosen, lines=18) as one:
        shown = one.sees("step 2 of 9")
        assert len(shown) == 18
        one.press(RIGHT)
        top = one.sees(r"step 3 of 9.*lines 1-17 of \d+")
        one.press(DOWN)
        assert one.sees("lines 2-18")[:16] == top[1:17]
        one.press("k")
        assert one.sees("lines 1-17")[:17] == top[:17]
        one.press(UP, PAGE_DOWN)
        one.sees(r"lines (\d+)-(\d+) of \2 ")
        one.press(PAGE_UP)
        one.sees("lines 1-17")
        one.press(" ")
        one.sees(r"step 3 of 9.*lines (\d+)-(\d+) of \2 ")
        one.press(" ")
        one.sees(r"step 4 of 9.*lines 1-17")
        one.press(LEFT, RIGHT, "ㅂ")  # q on a Korean keyboard
        assert one.ended() == (0, "")


def test_another_size(session: Callable[..., Any]) -> None:
    """The page is made anew for the window, however small."""
    with session("--example", "seq2seq", "--lang", "ko", lines=40) as one:
        one.sees("단계 1/5")
        one.resize(30, 50)
        shown = one.sees("쿼리: decoder")
        one.resize(5, 30)
        assert len(one.sees("^1/5 · ↑ ↓ · → ← q")) == 5
        one.resize(40, 120)
        shown = one.sees("쿼리를 각 키와 비교합니다. 서로 잘 맞을수록")
        assert any("나가기 q" in line for line in shown)
        one.press("q")
        assert one.ended() == (0, "")


def test_no_size(session: Callable[..., Any]) -> None:
    """A serial line says that it has no lines and no columns: it is taken for a usual one."""
    with session("--example", "seq2seq") as one:
        one.sees("step 1 of 5")
        one._size(0, 0)
        one.press(RIGHT)
        shown = one.sees("step 2 of 5")
        assert any(line.startswith("2. Softmax") for line in shown)
        one.press("q")
        assert one.ended() == (0, "")


def test_ctrl_c(session: Callable[..., Any]) -> None:
    """Status 130, one word, and the terminal as it was."""
    with session("--example", "seq2seq") as one:
        one.sees("step 1 of 5")
        one.press(CTRL_C)
        assert one.ended() == (130, "attnviz: interrupted\n")


def test_it_is_told_to_end(session: Callable[..., Any]) -> None:
    """The terminal is as it was."""
    with session("--example", "seq2seq") as one:
        one.sees("step 1 of 5")
        one.process.send_signal(signal.SIGTERM)
        assert one.ended()[0] == 128 + signal.SIGTERM


def test_files_are_written_after_it(session: Callable[..., Any], here: Path) -> None:
    """Those asked for, once the person has seen enough."""
    with session(
        "--exercise", "-o", "a.md", "--background", "light", lines=40, COLORTERM="truecolor"
    ) as one:
        one.sees("____")
        assert list(here.iterdir()) == []
        one.press(END, "q")
        assert one.ended() == (0, "wrote a.md\n")
    assert r"\_\_\_\_" in (here / "a.md").read_text()


@pytest.mark.parametrize("variables", [{"TERM": "dumb"}, {"TERM": "xterm-color"}])
def test_terminals_that_cannot(session: Callable[..., Any], variables: dict[str, str]) -> None:
    """One line, and nothing is drawn."""
    with session("--example", "seq2seq", **variables) as one:
        _, errors = one.process.communicate(timeout=60)
        assert one.process.returncode == 2
        assert errors.decode().startswith("attnviz walkthrough: --interactive needs a terminal")
        assert not select.select([one.controller], [], [], 0)[0]
