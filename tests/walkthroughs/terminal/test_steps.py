"""Walkthroughs in a terminal: every number true, every line in the window, nothing given away that is left blank."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from attnviz.attention import Receipt
from attnviz.render.terminal.screen import Screen
from attnviz.walkthroughs.record import Grid, Walkthrough
from attnviz.walkthroughs.terminal.steps import draw_walk
from attnviz.walkthroughs.view import View
from tests.fixtures.pictures import print_lines
from tests.walkthroughs.by_hand import attention_walk, of_model, one_decoder_step

if TYPE_CHECKING:
    from collections.abc import Callable

PLAIN = Screen(colour=False)
RECEIPT = Receipt(
    native="sdpa", dtype="float32", tolerance=1e-5, layers=(0, 1), differences=(1e-7, 2.5e-7)
)
NUMBER = r"-?(?:\d+\.?\d*(?:e[-+]\d+)?|∞)"


def lines_of(walk: Walkthrough, screen: Screen = PLAIN, **more: object) -> list[str]:
    """Return the lines without colours."""
    return [line.plain for line in draw_walk(View(walk=walk, **more), screen)]  # type: ignore[arg-type]


def print_walk(walk: Walkthrough, screen: Screen, **more: object) -> str:
    """Return what a console prints."""
    return print_lines(draw_walk(View(walk=walk, **more), screen), screen)  # type: ignore[arg-type]


def test_walkthrough_by_hand(golden: Callable[[str], None]) -> None:
    """The book's example as it looks on 80 columns without colours."""
    golden(print_walk(one_decoder_step(), PLAIN))


def test_walkthrough_by_hand_in_korean_and_colour(golden: Callable[[str], None]) -> None:
    """The worked example in Korean, in colours, on a light screen."""
    golden(print_walk(one_decoder_step(), Screen(dark=False), lang="ko"))


def test_walkthrough_of_a_model_in_ascii(golden: Callable[[str], None]) -> None:
    """A masked head from its input on, where there is no more than ASCII and 60 columns."""
    golden(print_walk(of_model(), Screen(width=60, colour=False, unicode=False)))


def test_a_number_stands_on_the_colour_of_its_sign() -> None:
    """Red above 0, blue below, as far from the page as it is from 0; what is masked has no colour."""
    walk = attention_walk(
        title="made",
        query=Grid(values=np.array([[1.0]])),
        keys=Grid(values=np.array([[2.0], [-4.0], [0.0]]), rows=("a", "b", "c")),
        values=Grid(values=np.array([[1.0], [2.0], [3.0]])),
        score="dot",
        mask=Grid(values=np.array([[1.0, 1.0, 0.0]])),
    )
    screen = Screen(width=100)
    lines = list(draw_walk(View(walk=walk), screen))
    start = next(i for i, line in enumerate(lines) if line.plain == "Keys K (3, 1)")
    for line, value in zip(lines[start + 2 : start + 5], (2.0, -4.0, 0.0), strict=True):
        found = [span.style for span in line.spans if span.style]
        assert found == ([screen.paint_signed(value, 4.0)] if value else [])
    masked = next(line for line in lines if line.plain.startswith("c ") and "-∞" in line.plain)
    assert not any(
        "∞" in masked.plain[span.start : span.end] and span.style for span in masked.spans
    )


def test_it_is_said_whose_calculation_it_is_and_how_it_was_checked() -> None:
    """Sentence, layer, head and query in the beginning; the receipt last."""
    lines = lines_of(of_model(), Screen(width=200, colour=False))
    assert " attends most to " in lines[0]
    assert lines[1] == "one head · “나는 너희 모두를 사랑해”"
    assert lines[-3] == "a note"
    assert " ".join(lines[-2:]) == (
        "The recomputed context matches the model's to 1.2e-08 (3.4e-08 from the input on); "
        "verified: weights, max difference 2.5e-07 over 2 layers"
    )
    exact = replace(of_model(), difference=0.0, from_input=None)
    assert any("matches the model's to 0;" in line for line in lines_of(exact))
    unproved = lines_of(replace(exact, receipt=None))
    assert unproved[-1] == "not verified: this walkthrough came without a receipt"
    assert lines_of(replace(exact, own=None, difference=None))[-1].startswith(
        "The model has no such numbers of its own"
    )
