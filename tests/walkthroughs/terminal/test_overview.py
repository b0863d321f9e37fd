"""The first screen of a walkthrough in a terminal: the calculation itself, in its first lines, every number true."""

from __future__ import annotations

import re
from functools import cache
from io import StringIO
from typing import TYPE_CHECKING

import numpy as np
import pyte
import pytest
from rich.console import Console

from attnviz import walkthrough as walk
from attnviz.capture.source import open_source
from attnviz.render.terminal.screen import Screen
from attnviz.text.messages import language
from attnviz.walkthroughs.examples import example, make
from attnviz.walkthroughs.homework import read
from attnviz.walkthroughs.terminal.steps import MOST_KEYS, draw_overview
from attnviz.walkthroughs.view import View
from tests.walkthroughs.by_hand import attention_walk, grid, walks

if TYPE_CHECKING:
    from attnviz.walkthroughs.record import Walkthrough

SIXTEEN = "The animal didn't cross the street because it was too tired and she is happy ."
NUMBER = r"-?(?:\d+\.?\d*(?:e[-+]\d+)?|∞)"
home = cache(open_source)


def shown(walked: Walkthrough, width: int = 80, lines: int = 60, **more: object) -> list[str]:
    """Return the visible lines of a terminal of this height, and everything that was printed."""
    look = {name: more.pop(name) for name in ("colour", "dark", "unicode") if name in more}
    screen = Screen(width=width, **{"colour": False, **look})  # type: ignore[arg-type]
    console = Console(
        width=width,
        file=StringIO(),
        color_system="truecolor" if screen.colour else None,
        force_terminal=True,
    )
    for line in draw_overview(View(walk=walked, **more), screen):  # type: ignore[arg-type]
        console.print(line, soft_wrap=True)
    assert isinstance(console.file, StringIO)
    terminal = pyte.Screen(width, 500)
    pyte.Stream(terminal).feed(console.file.getvalue().replace("\n", "\r\n"))
    printed = [line.rstrip() for line in terminal.display]
    while not printed[-1]:
        printed.pop()
    assert len(printed) <= lines
    return printed


@pytest.mark.parametrize(
    ("width", "colour", "dark"), [(60, False, True), (80, True, False), (200, True, True)]
)
def test_the_calculation_stands_in_the_first_lines(width: int, *, colour: bool, dark: bool) -> None:
    """For 16 tokens all is on one screen; the answer, the query, the formulas and the first keys come first."""
    walked = walk(SIXTEEN, home("toy"), layer=1, head=3, query="it")
    lines = shown(walked, width, colour=colour, dark=dark)
    text = " ".join(lines[:10])
    assert lines[0] == "“it” attends most to “animal” (0.60)"
    assert "toy, head 1.3: the query “it”" in lines[1]
    assert all(
        one in text for one in ("score = q · k", "scaled = score / √8", "weight = softmax(scaled)")
    )
    query, keys = (walked.grids[name].values for name in ("q", "K"))
    row = next(line for line in lines if line.startswith("q "))
    assert [float(number) for number in re.findall(NUMBER, row)] == pytest.approx(query[0].round(3))
    first = next(line for line in lines[:12] if line.startswith("The "))
    scores, scaled, weights = (
        walked.grids[name].values[0] for name in ("scores", "scaled", "weights")
    )
    assert f"{scores[0]:.3f}  {scaled[0]:.3f}" in first.replace("   ", "  ")
    assert re.findall(NUMBER, first)[0] == f"{keys[0, 0]:.3f}"
    for word, weight in zip(walked.grids["weights"].columns, weights, strict=True):
        assert any(re.match(rf"{re.escape(word)} .*{weight:.3f}", line) for line in lines)
    assert lines[-2].endswith("--interactive")
    assert lines[-1] == 'Does it matter? attnviz attribute "..." --for it'
    in_numbers = f"{query[0, 0]:.3f}·{keys[1, 0]:.3f} + "
    worked = " ".join(lines[next(i for i, line in enumerate(lines) if in_numbers in line) :])
    powers = np.exp(walked.grids["scaled"].values[0])
    for part in (
        f" = {scores[1]:.3f}; / √8 = {scaled[1]:.3f}; softmax: ",
        f"e^{scaled[1]:.3f} = {powers[1]:.2f} of {powers.sum():.2f} in all = {weights[1]:.3f}",
        "q, k: vectors of query and key (8 numbers each)",
    ):
        assert part in worked


def test_of_a_long_sentence_the_keys_of_the_largest_weights_are_shown() -> None:
    """In the sentence's order, and how much the others have together."""
    words = tuple(f"w{number}" for number in range(100))
    walked = attention_walk(
        title="made",
        query=grid(1, 8),
        keys=grid(100, 8, rows=words),
        values=grid(100, 8, rows=words),
    )
    weights = walked.grids["weights"].values[0]
    lines = shown(walked)
    labels = [line.split()[0] for line in lines if re.match(r"w\d+ ", line)]
    largest = sorted(np.argsort(-weights)[:MOST_KEYS].tolist())
    assert labels == [words[key] for key in largest]
    rest = 1 - weights[largest].sum()
    assert f"76 more keys with smaller weights, together {rest:.3f}" in lines


def test_an_exercise_gives_nothing_away() -> None:
    """A blank is a line to write on; there are no sums and no bar, which would fill it in."""
    walked = make(7)
    blanks = walked.blanks()
    lines = shown(walked, blanks=blanks)
    assert lines[1].startswith("Name: ____")
    assert lines[1].endswith("Fill in the blanks; round to 3 decimals")
    assert sum(line.count("____") for line in lines[2:]) == len(blanks)
    assert not any(line.startswith("sum ") or "█" in line for line in lines)
    assert not any("seed" in line or "model" in line for line in lines)
    heads = read("sample_inputs/two_heads.yaml", query=0)
    blanks = frozenset((name, 0, column) for name in heads.distributions() for column in (0, 2))
    lines = shown(heads, blanks=blanks)
    assert sum(line.count("____") for line in lines[2:]) == len(blanks)


@pytest.mark.parametrize(("width", "lang"), [(60, "ko"), (80, "en"), (200, "ko")])
def test_no_line_is_wider_than_the_window(width: int, lang: str) -> None:
    """Whatever is walked, with and without colour and Unicode."""
    for walked in (*walks().values(), example("seq2seq"), example("self-attention")):
        for colour, unicode in ((True, True), (False, True), (False, False)):
            screen = Screen(width=width, colour=colour, unicode=unicode)
            with language(lang):
                lines = [*draw_overview(View(walk=walked), screen)]
            for line in lines:
                assert line.cell_len <= width
                assert unicode or line.plain.isascii()
