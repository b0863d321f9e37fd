"""Stories in a terminal: they fit every window, no number is cut, columns stay straight, shades mean what they say."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.color import Color

from attnviz.render.palette import colours, levels, luminance
from attnviz.render.terminal.screen import Screen
from attnviz.stories.record import Story, Table
from attnviz.stories.terminal import draw, draw_list
from attnviz.text.messages import Phrase
from tests.fixtures.pictures import print_lines

WORDS = ("나는", "너희", "모두를", "I", "internationalization", "사랑해")
PLAIN = Screen(colour=False)

WIDE = Table(
    title="many columns",
    columns=("word", *(f"to {word}" for word in WORDS * 4)),
    rows=tuple(
        (word, *(math.sin(7 * row + column) for column in range(24)))
        for row, word in enumerate(WORDS)
    ),
)
SHADED = Table(
    title="weights",
    columns=("query", "나는", "love", "how many", "all", "of these"),
    rows=(
        ("나는", 0.0, 0.25, 12, 0.5, 1.0),
        ("love", 0.75, math.nan, 3456, 0.126, 0.999),
        ("x", -0.4, 2.0, 7, 0.5, 0.0),
    ),
    digits=2,
    shade=(0.0, 1.0),
)


def story(*parts: str | Table) -> Story:
    """A story of these parts."""
    return Story(
        name="made", title="what is told here", parts=parts, picture=(), receipt="verified by hand"
    )


def lines_of(screen: Screen, *parts: str | Table) -> list[str]:
    """The lines between a story's title and its receipt."""
    lines = [line.plain for line in draw(story(*parts), screen)]
    assert lines[0] == "what is told here"
    assert lines[-1] == "verified by hand"
    assert lines[1] == lines[-2] == ""
    return lines[2:-2]


def edge(line: str, text: str) -> int:
    """How many cells a line takes to the end of this text."""
    return cell_len(line[: line.index(text) + len(text)])


@pytest.mark.parametrize("width", [40, 60, 80, 200])
@pytest.mark.parametrize(
    "screen", [PLAIN, Screen(), Screen(dark=False), Screen(colour=False, unicode=False)]
)
def test_every_line_fits(width: int, screen: Screen) -> None:
    """No line is wider than the window, none of prose is wider than can be read, none ends with a space."""
    screen = replace(screen, width=width)
    prose = "나는 너희 모두를 사랑해, and that is all that there is to say about it. " * 5
    lines = draw(story(prose, WIDE, "Rechtsschutzversicherung" * 10, SHADED), screen)
    assert max(line.cell_len for line in lines) <= width
    assert not any(line.plain.endswith(" ") for line in lines)
    before = next(index for index, line in enumerate(lines) if line.plain.startswith(WIDE.title))
    assert max(line.cell_len for line in lines[:before]) <= 100
    written = print_lines(lines, screen)
    assert ("\x1b" in written) == screen.colour
    assert re.sub(r"\x1b\[[\d;]*m", "", written) == "".join(f"{line.plain}\n" for line in lines)
    assert written.isascii() == (not screen.unicode)


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_no_number_is_cut(width: int) -> None:
    """Every number of a wide table is there whole, a row's in their order, each block after the row's name."""
    lines = lines_of(Screen(width=width, colour=False), WIDE)
    assert lines.pop(0) == WIDE.title
    for row in WIDE.rows:
        name = str(row[0])[:18]  # half of a window may be the names'
        found = [line.split()[1:] for line in lines if re.match(rf"{name}\w* +-?\d", line)]
        assert [number for block in found for number in block] == [
            f"{number:.3f}" for number in row[1:]
        ]
        assert len(found) == sum(line.split()[:1] == ["word"] for line in lines)


def test_a_table_that_fits_is_one_block() -> None:
    """In a window wide enough the names stand in one line, each over its numbers."""
    narrow = Table(
        title="few",
        columns=("word", "first weight", "second"),
        rows=(("나는", 0.5, 2), ("love", -0.25, 10)),
    )
    assert lines_of(PLAIN, narrow) == [
        "few",
        "word  first weight  second",
        "나는         0.500       2",
        "love        -0.250      10",
    ]
    assert lines_of(Screen(width=22, colour=False), narrow) == [
        "few",
        "       first",
        "word  weight  second",
        "나는   0.500       2",
        "love  -0.250      10",
    ]


def test_korean_keeps_the_columns() -> None:
    """Numbers of one column end at one cell, whatever stands before them."""
    for screen in (PLAIN, Screen(), Screen(colour=False, unicode=False)):
        title, names, *rows = lines_of(screen, SHADED)[:5]
        assert title == "weights"
        for column in range(2, 6):
            digits = [
                re.findall(r"-?[\d.,]*\d|-(?= |$)", line.split(" ", 1)[1])[column - 1]
                for line in rows
            ]
            places = {edge(line, digit) for line, digit in zip(rows, digits, strict=True)}
            assert len(places) == 1, (column, digits)
        assert edge(names, "love") - edge(rows[0], "0.25") == (0 if screen.colour else 1)


def test_long_words_are_wrapped_not_numbers() -> None:
    """A sentence in a table goes on in the next line; its numbers stay beside it."""
    table = Table(
        title="sentences",
        columns=("said", "right"),
        rows=(
            ("the animal didn't cross the street because it was too tired", 0.123),
            ("나는 너를 사랑해", 1.0),
        ),
    )
    lines = lines_of(Screen(width=30, colour=False), table)
    assert max(map(cell_len, lines)) <= 30
    assert "0.123" in lines[2]
    assert "1.000" in lines[-1]
    assert " ".join(line[:23].strip() for line in lines[2:-1]) == table.rows[0][0]


@pytest.mark.parametrize("width", range(40, 61))
@pytest.mark.parametrize("unicode", [True, False])
def test_percentages_are_whole(width: int, *, unicode: bool) -> None:
    """No line ends between a number and its percent sign, in prose or in a table."""
    table = Table(
        title="t",
        columns=("in all", "of these"),
        rows=(("7.5 % against 10.5 % and 100.0 %", "25.0 %"),),
    )
    lines = lines_of(
        Screen(width=width, colour=False, unicode=unicode), "it is 25.0 % or 3 % and " * 9, table
    )
    assert not any(line.lstrip().startswith("%") for line in lines)
    assert " ".join(lines).count(" %") == 9 * 2 + 4


def test_strange_numbers() -> None:
    """What is no number is a dash; what rounds to nothing has no minus; large whole numbers are set in thousands."""
    table = Table(
        title="t",
        columns=("a", "b", "c", "d"),
        rows=((math.nan, -0.0004, 1234567, "12.5 %"), (1.5, -1.0, 1, "3 %")),
    )
    assert lines_of(PLAIN, table)[2:] == [
        "    -   0.000  1,234,567  12.5 %",
        "1.500  -1.000          1     3 %",
    ]


def test_shades() -> None:
    """Without colour a float stands before its shade, whole numbers and gaps before none; a line says what it means."""
    lines = lines_of(PLAIN, SHADED)
    shown = [re.findall(r"(-?\d\.\d\d)(.?)", line) for line in lines[2:5]]
    assert shown == [
        [("0.00", " "), ("0.25", "░"), ("0.50", "▒"), ("1.00", "█")],
        [("0.75", "▓"), ("0.13", "░"), ("1.00", "█")],
        [("-0.40", " "), ("2.00", "█"), ("0.50", "▒"), ("0.00", "")],
    ]
    assert lines[-1] == "[ ░▒▓█] shade: 0 to 1"
    plain = lines_of(PLAIN, replace(SHADED, shade=None))
    assert not set("".join(plain)) & set("░▒▓█")
    assert not any("shade" in line for line in plain)


@pytest.mark.parametrize("dark", [True, False])
@pytest.mark.parametrize("palette", ["magma", "viridis_r"])
def test_colours(palette: str, *, dark: bool) -> None:
    """A float stands on the palette's colour of its value, in an ink that can be read; nothing else is coloured."""
    screen = Screen(dark=dark, palette=palette)
    table = colours(palette, on_dark=dark)
    lines = draw(story(SHADED), screen)[4:7]
    for line, row in zip(lines, SHADED.rows, strict=True):
        shown = [span for span in line.spans if getattr(span.style, "bgcolor", None)]
        found = {}
        for span in shown:
            style = span.style
            assert not isinstance(style, str)
            text = line.plain[span.start : span.end].strip()
            assert isinstance(style.bgcolor, Color)
            assert isinstance(style.color, Color)
            back, ink = (
                np.array(colour.get_truecolor(), dtype=np.uint8)
                for colour in (style.bgcolor, style.color)
            )
            high, low = sorted((float(luminance(back)), float(luminance(ink))), reverse=True)
            assert (high + 0.05) / (low + 0.05) > 4.5
            if text:
                found[text] = back
        floats = [cell for cell in row if isinstance(cell, float) and not math.isnan(cell)]
        assert list(found) == [f"{value:.2f}" for value in floats]
        for value, back in zip(floats, found.values(), strict=True):
            assert back.tolist() == table[int(levels(np.array([value]), 1.0)[0])].tolist()
    assert draw(story(SHADED), screen)[-3].plain.strip() == "colour: 0 to 1"


def test_ascii_spells() -> None:
    """A screen of ASCII gets likenesses, and numbers for what has none."""
    lines = lines_of(Screen(colour=False, unicode=False), "“나” is 2 \u00d7 3")
    assert lines == [r'"\ub098" is 2 x 3']


def test_listed() -> None:
    """By chapter, names in a column of their own, what they are beside them, wrapped to the window."""
    chapters = {
        Phrase("First", "처음"): {"one": Phrase("what the first is about", "첫째")},
        Phrase("Then", "다음"): {"나는너를": Phrase("short", "짧음")},
    }
    screen = Screen(width=24, colour=False)
    assert [line.plain for line in draw_list(chapters, screen)][:-1] == [
        "First",
        "one       what the first",
        "          is about",
        "",
        "Then",
        "나는너를  short",
        "",
    ]
    assert [line.plain for line in draw_list(chapters, screen, "ko")][:5] == [
        "처음",
        "one       첫째",
        "",
        "다음",
        "나는너를  짧음",
    ]


CELLS = st.one_of(
    st.integers(-(10**6), 10**6),
    st.floats(-1000, 1000),
    st.just(math.nan),
    st.text("나a 너b-.", max_size=30),
)


@given(
    data=st.data(), width=st.integers(40, 120), n_columns=st.integers(1, 12), shaded=st.booleans()
)
def test_any_table_fits_whole(
    data: st.DataObject, width: int, n_columns: int, *, shaded: bool
) -> None:
    """Whatever a table holds: no line is too wide, and every number is there."""
    rows = data.draw(st.lists(st.tuples(*[CELLS] * n_columns), min_size=1, max_size=4))
    names = data.draw(st.tuples(*[st.text("나a b", max_size=12)] * n_columns))
    table = Table(title="t", columns=names, rows=tuple(rows), shade=(-1.0, 1.0) if shaded else None)
    for screen in (Screen(width=width), Screen(width=width, colour=False)):
        lines = [line.plain for line in draw(story(table), screen)]
        assert max(map(cell_len, lines)) <= width
        words = {word.rstrip("░▒▓█") for line in lines for word in line.split()}
        for cell in (cell for row in rows for cell in row):
            if isinstance(cell, int):
                assert f"{cell:,}" in words
            elif isinstance(cell, float) and not math.isnan(cell) and abs(cell) > 0.001:
                assert f"{cell:.3f}" in words
