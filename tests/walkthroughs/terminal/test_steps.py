"""Walkthroughs in a terminal: every number true, every line in the window, nothing given away that is left blank."""

from __future__ import annotations

import re
from dataclasses import replace
from io import StringIO
from typing import TYPE_CHECKING

import numpy as np
import pytest
from rich.console import Console

from attnviz.attention import Receipt
from attnviz.render.terminal.screen import Screen
from attnviz.walkthroughs.calculation import Calculation
from attnviz.walkthroughs.record import Grid, Walkthrough
from attnviz.walkthroughs.terminal.steps import draw_walk
from attnviz.walkthroughs.view import View
from tests.walkthroughs.by_hand import attend, attention_walk

if TYPE_CHECKING:
    from collections.abc import Callable

PLAIN = Screen(colour=False)
KOREAN = ("[CLS]", "나는", "너희", "모두를", "사랑해", "internationalization", "[SEP]")
RECEIPT = Receipt(
    native="sdpa", dtype="float32", tolerance=1e-5, layers=(0, 1), differences=(1e-7, 2.5e-7)
)
NUMBER = r"-?(?:\d+\.?\d*(?:e[-+]\d+)?|∞)"


def by_hand() -> Walkthrough:
    """A decoder's state and four states of an encoder, as in the book."""
    states = Grid(
        values=np.array([[0.0, 1, 1], [5, 0, 1], [1, 1, 0], [0, 5, 1]]),
        rows=("first", "second", "third", "fourth"),
    )
    query = Grid(values=np.array([[10.0, 5.0, 10.0]]), rows=("decoder",))
    return attention_walk(
        title="made by hand", query=query, keys=states, values=states, score="dot"
    )


def of_model(
    n: int = 7, d_model: int = 48, d: int = 8, *, one: bool = True, mask: bool = False
) -> Walkthrough:
    """A head of a model from its input to the layer's output, with numbers from a seed."""
    draw = np.random.default_rng(n * d)
    c = Calculation()
    tokens = (KOREAN * n)[:n]
    c.give("X", Grid(values=draw.normal(size=(n, d_model)), rows=tokens))
    query, x = ("q", "x") if one else ("Q", "X")
    if one:
        c.give("x", Grid(values=c.grids["X"].values[[3]], rows=(tokens[3],)))
    for letter, name, step, given in (
        ("q", query, "query", x),
        ("k", "K", "keys", "X"),
        ("v", "V", "values", "X"),
    ):
        c.give(f"W{letter}", Grid(values=draw.normal(size=(d_model, d)) / d_model**0.5))
        c.give(f"b{letter}", Grid(values=draw.normal(size=(1, d))))
        c.step(step, name, "projection", given, f"W{letter}", f"b{letter}")
    allowed = np.tril(np.ones((n, n)))
    attend(c, query=query, mask=Grid(values=allowed[[3]] if one else allowed) if mask else None)
    if one:
        for head in (1, 2):
            c.give(f"context_{head}", Grid(values=draw.normal(size=(1, d))))
        c.step("concatenated", "concatenated", "concatenate", "context", "context_1", "context_2")
        c.give("Wo", Grid(values=draw.normal(size=(3 * d, d_model))))
        c.step("output", "output", "projection", "concatenated", "Wo")
    return replace(
        c.finish("one head", query=3 if one else None, notes=("a note",)),
        model="a model",
        text="나는 너희 모두를 사랑해",
        kind="encoder",
        layer=2,
        head=1,
        own="context",
        difference=1.2e-8,
        from_input=3.4e-8,
        receipt=RECEIPT,
    )


def lines_of(walk: Walkthrough, screen: Screen = PLAIN, **more: object) -> list[str]:
    """What is shown, without colours."""
    return [line.plain for line in draw_walk(View(walk=walk, **more), screen)]  # type: ignore[arg-type]


def table_of(lines: list[str], title: str) -> list[str]:
    """The rows below a line that holds this, as far as the next empty line."""
    start = next(index for index, line in enumerate(lines) if title in line) + 1
    return lines[start : lines.index("", start)]


def test_the_book_s_numbers_come_out_to_every_digit() -> None:
    """Scores, softmax, alignment and context of the book's example, and in one table, a row for each key."""
    screen = Screen(width=140, colour=False)
    rows = table_of(lines_of(by_hand(), screen, precision=8), "Key by key")
    header, counted, *cells = rows[:7]
    assert counted.split() == ["0", "1", "2"] * 3, "vectors are counted, single numbers are not"
    assert header.split() == ["key", "k", "score", "weight", "value", "alignment"]
    found = [re.findall(NUMBER, re.sub("[█-▏]", " ", row)) for row in cells]
    tiny, small, one, five = "2.86251858e-20", "1.38879439e-11", "1.00000000e+00", "5.00000000e+00"
    assert found == [
        ["0", "1", "1", "15", tiny, "0", "1", "1", "0", tiny, tiny],
        ["5", "0", "1", "60", one, "5", "0", "1", five, "0", one],
        ["1", "1", "0", "15", tiny, "1", "1", "0", tiny, tiny, "0"],
        ["0", "5", "1", "35", small, "0", "5", "1", "0", "6.94397193e-11", small],
        [one, five, "6.94397194e-11", one],
    ]
    assert [row.split()[0] for row in cells] == ["first", "second", "third", "fourth", "sum"]


def print_walk(walk: Walkthrough, screen: Screen, **more: object) -> str:
    """What a console writes."""
    console = Console(
        width=screen.width,
        file=StringIO(),
        color_system="truecolor" if screen.colour else None,
        force_terminal=screen.colour,
        legacy_windows=False,
        no_color=False,
    )
    for line in draw_walk(View(walk=walk, **more), screen):  # type: ignore[arg-type]
        console.print(line, soft_wrap=True)
    written = console.file
    assert isinstance(written, StringIO)
    return written.getvalue()


def test_walkthrough_by_hand(golden: Callable[[str], None]) -> None:
    """The book's example as it looks on 80 columns without colours."""
    golden(print_walk(by_hand(), PLAIN))


def test_walkthrough_by_hand_in_korean_and_colour(golden: Callable[[str], None]) -> None:
    """The same in Korean on a light screen with colours."""
    golden(print_walk(by_hand(), Screen(dark=False), lang="ko"))


def test_walkthrough_of_a_model_in_ascii(golden: Callable[[str], None]) -> None:
    """A masked head from its input on, where there is no more than ASCII and 60 columns."""
    golden(print_walk(of_model(mask=True), Screen(width=60, colour=False, unicode=False)))


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


def test_a_long_vector_is_shortened_and_keeps_its_ends() -> None:
    """Of 64 numbers those at the ends are shown with their places."""
    walk = of_model(d=64)
    lines = lines_of(walk)
    start = lines.index("2. Keys")
    header = next(line for line in lines[start:] if line.rstrip().endswith(" 63"))
    assert header.split()[:2] == ["0", "1"]
    row = next(line for line in lines[start:] if line.startswith("너희"))
    assert "…" in row
    keys = walk.grids["K"].values[2]
    numbers = [float(cell) for cell in re.findall(NUMBER, row)]
    assert numbers[:2] == pytest.approx(keys[:2], abs=0.0005)
    assert numbers[-1] == pytest.approx(keys[-1], abs=0.0005)


def test_it_is_said_whose_calculation_it_is_and_how_it_was_checked() -> None:
    """Sentence, layer, head and query in the beginning; the receipt last."""
    lines = lines_of(of_model(), Screen(width=200, colour=False))
    expected = "a model · “나는 너희 모두를 사랑해” · layer 2, head 1 (counted from 0) · query: 모두를 (row 3)"
    assert lines[:2] == ["one head", expected]
    assert lines[-3] == "a note"
    assert " ".join(lines[-2:]) == (
        "The recomputed context matches the model's to 1.2e-08 (3.4e-08 from the input on); "
        "verified: max difference 2.5e-07 over 2 layers"
    )
    exact = replace(of_model(), difference=0.0, from_input=None, receipt=None)
    assert lines_of(exact)[-1] == "The recomputed context matches the model's to 0"
    assert lines_of(replace(exact, own=None, difference=None))[-1].startswith(
        "The model has no such numbers of its own"
    )


def test_korean_is_korean_and_english_where_it_cannot_be_shown() -> None:
    """Titles, sentences and the words of a table; a screen of ASCII gets English."""
    lines = lines_of(by_hand(), lang="ko")
    assert "1. 어텐션 스코어" in lines
    assert "   키마다 보기:" in lines
    assert not any(
        re.search(r"[a-z]{4,} [a-z]{4,}", line) for line in lines[1:] if "rows of" not in line
    )
    plain = lines_of(by_hand(), Screen(colour=False, unicode=False), lang="ko")
    assert "1. Attention scores" in plain
