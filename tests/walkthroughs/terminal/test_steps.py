"""Walkthroughs in a terminal: every number true, every line in the window, nothing given away that is left blank."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from attnviz.render.terminal.screen import Screen
from attnviz.text.messages import language
from attnviz.walkthroughs.terminal.steps import draw_walk
from attnviz.walkthroughs.view import View
from tests.fixtures.pictures import print_lines
from tests.walkthroughs.by_hand import of_model, one_decoder_step

if TYPE_CHECKING:
    from collections.abc import Callable

    from attnviz.walkthroughs.record import Walkthrough

PLAIN = Screen(colour=False)


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
    with language("ko"):
        golden(print_walk(one_decoder_step(), Screen(dark=False)))


def test_it_is_said_whose_calculation_it_is_and_how_it_was_checked() -> None:
    """Sentence, layer, head and query in the beginning; the receipt last."""
    lines = lines_of(of_model(), Screen(width=200, colour=False))
    assert " attends most to " in lines[0]
    assert lines[1] == "one head · “나는 너희 모두를 사랑해”"
    assert lines[-2] == "a note"
    assert lines[-1] == (
        "The recomputed context matches the model's to 3e-08; ✓ verified (largest difference 2e-07)"
    )
    exact = replace(of_model(), difference=0.0, from_input=None)
    assert any("matches the model's to 0;" in line for line in lines_of(exact))
    unproved = lines_of(replace(exact, receipt=None))
    assert unproved[-1] == "not verified: this walkthrough came without a receipt"
    assert lines_of(replace(exact, own=None, difference=None))[-1].startswith(
        "The model has no such numbers of its own"
    )
