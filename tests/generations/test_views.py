"""A generation as it is shown: drawn anew on a terminal, in a pipe, as files."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console

import attnviz
from attnviz.generations.terminal import Live
from attnviz.render.terminal.screen import Screen, screen_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from attnviz.attention import Attention
    from attnviz.generations.record import Step
    from tests.fixtures.command_line import Result


@pytest.fixture(scope="module")
def made() -> list[tuple[Attention, list[Step]]]:
    """The records that two home-built models generate, and their steps."""
    generated = []
    for name in ("toy-decoder", "toy-seq2seq"):
        steps: list[Step] = []
        generated.append((attnviz.generate("The big animal", name, on_step=steps.append), steps))
    return generated


@pytest.mark.parametrize("width", [60, 80, 120])
def test_views(
    made: list[tuple[Attention, list[Step]]], golden: Callable[[str], None], width: int
) -> None:
    """Each view fits the screen: the last step, with shades for colours, in Korean on the widest; lines of a pipe."""
    console = Console(file=io.StringIO(), width=width, color_system=None)
    live = Live(console, Screen(width=width, colour=False), "ko" if width == 120 else "en")
    for record, steps in made:
        for step in steps:
            live.show(step)
        for line in live.drawing(steps[-1], 20):
            console.print(line, soft_wrap=True)
        live.end(record)
    shown = [line.rstrip() for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]
    assert max(map(cell_len, shown)) <= width
    golden("\n".join(shown) + "\n")


def test_on_a_terminal(in_terminal: Callable[..., Any]) -> None:
    """Each token is drawn over the one before; at the end its text stands once, and the receipt below."""
    with in_terminal("generate", "I love", "-o", "a.png", columns=60) as one:
        assert one.ended() == (0, "wrote a.png\n")
        shown = one.shown
    assert sum(line.startswith("toy-decoder") for line in shown) == 1
    assert sum(line.startswith("I love all you . <end>") for line in shown) == 1
    assert b"\x1b[48;5;" in one.sent
    assert any(line.startswith("verified: weights, max difference") for line in shown)


def test_on_an_old_console_of_windows(made: list[tuple[Attention, list[Step]]]) -> None:
    """It obeys no codes: each token is a line below the one before, as in a pipe."""
    written = io.StringIO()
    console = Console(
        file=written, width=60, force_terminal=True, color_system=None, legacy_windows=True
    )
    record, steps = made[0]
    live = Live(console, screen_of(console, "teal"))
    for step in steps:
        live.show(step)
    live.end(record)
    assert "\x1b" not in written.getvalue()
    tokens = [line for line in written.getvalue().splitlines() if line.lstrip()[:1].isdigit()]
    assert len(tokens) == len(steps)


def test_in_a_pipe_and_as_files(typed: Callable[..., Result], here: Path) -> None:
    """A line a token; the record, its picture and its page; the record is loaded and drawn again."""
    result = typed(
        "generate",
        "I love",
        "--head",
        "2.1",
        "-o",
        "a.npz",
        "-o",
        "a.png",
        "-o",
        "a.html",
        "--lang",
        "ko",
    )
    assert result.status == 0
    assert len([line for line in result.output.splitlines() if line.lstrip()[:1].isdigit()]) == 4
    assert (here / "a.html").stat().st_size > 0
    record = attnviz.load(here / "a.npz")
    assert isinstance(record, attnviz.Attention)
    np.testing.assert_array_equal(
        record.weights, attnviz.generate("I love", layers=[2], heads=[1]).weights
    )
    assert typed("heatmap", "--load", "a.npz", "-o", "b.png").status == 0
    assert typed("generate", "I love", "--max-new-tokens", "0").status == 2
    assert typed("generate", "I love", "-m", "toy").status == 1
    assert typed("generate", "I love", "--top-k", "3").status == 2
