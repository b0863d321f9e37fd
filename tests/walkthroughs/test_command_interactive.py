"""``attnviz walkthrough --interactive`` in a real terminal."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RIGHT, LEFT, CTRL_C = "\x1b[C", "\x1b[D", "\x03"


@pytest.fixture
def session(in_terminal: Callable[..., Any]) -> Callable[..., Any]:
    """Run ``attnviz walkthrough --interactive`` in a terminal of 80 columns."""
    return partial(in_terminal, "walkthrough", "--interactive")


def test_keys(session: Callable[..., Any], here: Path) -> None:
    """Forward and back; no step before the first or after the last; nothing is written."""
    with session("--example", "seq2seq", lines=50) as one:
        shown = one.sees("step 1 of 5")
        assert shown[0].startswith("Attention by hand")
        for forward, back in ((RIGHT, LEFT), ("n", "p"), (" ", "b"), ("ㅜ", "ㅔ")):
            one.press(forward)
            one.sees(r"^2\. Softmax")
            one.press(back)
            one.sees(r"^1\. Attention")
        one.press(LEFT)
        one.sees("step 1 of 5")
        one.press("n", "n", "n", "n", "n")
        assert "A calculation by hand: no model to compare with" in one.sees("step 5 of 5")
        one.press("q")
        assert one.ended() == (0, "")
    assert list(here.iterdir()) == []


def test_korean_and_ctrl_c(session: Callable[..., Any]) -> None:
    """The keys are named in the language of the view; Ctrl-C ends it as any command."""
    with session("--example", "seq2seq", "--lang", "ko", lines=50) as one:
        one.sees("→ 다음 · ← 이전 · q 종료")
        one.press(CTRL_C)
        status, _ = one.ended()
        assert status == 130
