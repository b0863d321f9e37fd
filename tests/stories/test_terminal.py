"""Stories in a terminal: they fit every window, no number is cut, columns stay straight."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from rich.color import Color

from attnviz.render.palette import colours, levels
from attnviz.render.terminal.screen import Screen
from attnviz.stories.record import Story, Table
from attnviz.stories.terminal import draw
from tests.fixtures.pictures import print_lines

if TYPE_CHECKING:
    from collections.abc import Callable

WORDS = ("나는", "너희", "모두를", "I", "internationalization", "사랑해")
PLAIN = Screen(colour=False)
WIDE = Table(
    "many columns",
    ["word", *(f"to {word}" for word in WORDS * 4)],
    [
        (word, *(math.sin(7 * row + column) for column in range(24)))
        for row, word in enumerate(WORDS)
    ],
)
SHADED = Table(
    "weights",
    ["query", "나는", "love", "how many", "all", "of these"],
    [
        ("나는", 0.0, 0.25, 12, 0.5, 1.0),
        ("love", 0.75, math.nan, 3456, 0.126, 0.999),
        ("x", -0.4, 2.0, 7, 0.5, 0.0),
    ],
    digits=2,
    shade=(0.0, 1.0),
)


def story(*parts: str | Table) -> Story:
    """Return a story of these parts."""
    return Story(name="made", title="a finding", parts=parts, picture=(), receipt="verified")


def lines_of(screen: Screen, *parts: str | Table) -> list[str]:
    """Return the lines between a story's title and its receipt."""
    first, empty, *lines, other_empty, last = (d.plain for d in draw(story(*parts), screen))
    assert (first, empty, other_empty, last) == ("a finding", "", "", "verified")
    return lines


def test_story(told: Callable[..., Story], golden: Callable[[str], None]) -> None:
    """One shipped story, in English and in Korean."""
    lines = [line for lang in ("en", "ko") for line in draw(told("library", lang), PLAIN)]
    assert max(line.cell_len for line in lines) <= 80
    golden("".join(f"{line.plain}\n" for line in lines))


@pytest.mark.parametrize(
    ("width", "screen"), [(40, PLAIN), (80, Screen()), (200, Screen(colour=False, unicode=False))]
)
def test_every_line_fits(width: int, screen: Screen) -> None:
    """No line is wider than the window, none ends with a space; ASCII where asked for."""
    prose = "나는 너희 모두를 사랑해, and that is all that there is to say about it. " * 5
    lines = draw(story(prose, WIDE, "Versicherung" * 20, SHADED), replace(screen, width=width))
    assert max(line.cell_len for line in lines) <= width
    assert not any(line.plain.endswith(" ") for line in lines)
    written = print_lines(lines, replace(screen, width=width))
    assert ("\x1b" in written) == screen.colour
    assert written.isascii() == (not screen.unicode)


def test_shades() -> None:
    """Without colour a float stands before its shade; a line tells the scale."""
    lines = lines_of(PLAIN, SHADED)
    assert [re.findall(r"(-?\d\.\d\d)(.?)", line) for line in lines[2:5]] == [
        [("0.00", " "), ("0.25", "░"), ("0.50", "▒"), ("1.00", "█")],
        [("0.75", "▓"), ("0.13", "░"), ("1.00", "█")],
        [("-0.40", " "), ("2.00", "█"), ("0.50", "▒"), ("0.00", "")],
    ]
    assert lines[-1] == "[ ░▒▓█] From 0 to 1"


def test_colours() -> None:
    """A float stands on the palette's colour of its value; nothing else is coloured."""
    table = colours("viridis", on_dark=True)
    lines = draw(story(SHADED), Screen(dark=True, palette="viridis"))[4:7]
    for line, row in zip(lines, SHADED.rows, strict=True):
        found = {}
        for span in line.spans:
            back = getattr(span.style, "bgcolor", None)
            text = line.plain[span.start : span.end].strip()
            if isinstance(back, Color) and text:
                found[text] = list(back.get_truecolor())
        floats = [cell for cell in row if isinstance(cell, float) and not math.isnan(cell)]
        assert found == {
            f"{value:.2f}": table[int(levels(np.array([value]), 1.0)[0])].tolist()
            for value in floats
        }
