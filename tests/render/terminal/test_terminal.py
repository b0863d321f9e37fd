"""Text and tables for a terminal: they fit any window, lose no word, and show no more than the screen can."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from attnviz.render.columns import Column
from attnviz.render.terminal.screen import Screen
from attnviz.render.terminal.table import folded_table, table
from attnviz.render.terminal.text import legend, spell, wrap

if TYPE_CHECKING:
    from rich.color import Color

PLAIN = Screen(colour=False)
ASCII = Screen(colour=False, unicode=False)
SENTENCE = "나는 너희 모두를 사랑해, and that is all there is to say about 95 % of it; internationalization"


def plain(lines: list[Text]) -> list[str]:
    """The lines without their colours."""
    return [line.plain for line in lines]


MARKED = "“나” → 2 \N{MULTIPLICATION SIGN} 3 — ●"


def test_ascii() -> None:
    """Marks have one letter that stands for them, a product its own; what has none is written by its number."""
    assert spell(MARKED, ASCII) == r'"\ub098" > 2 x 3 - *'
    assert spell(MARKED, PLAIN) == MARKED
    assert spell("toy · q·k of ·ing", ASCII) == "toy - q*k of -ing"
    assert spell("a\x1b[2J", PLAIN) == r"a\x1b[2J"


WORDS = st.lists(
    st.sampled_from(["나는", "a", "9 %", "12.5 %", "is-so", "사랑해", "every"]), max_size=30
).map(" ".join)


@given(text=WORDS, width=st.integers(12, 60), first=st.integers(0, 4), indent=st.integers(0, 4))
def test_wrapped_lines_fit_and_have_every_word(
    text: str, width: int, first: int, indent: int
) -> None:
    """No line is wider than the screen, each begins where it should, no word is lost and no percentage parted."""
    lines = plain(wrap(text, Screen(width=width), first=first, indent=indent))
    assert all(cell_len(line) <= width for line in lines)
    assert " ".join(line.strip() for line in lines) == text
    assert not any(line.lstrip().startswith("%") for line in lines)
    margins = [len(line) - len(line.lstrip()) for line in lines]
    assert margins == [first, *[indent] * len(lines)][: len(lines)]


@pytest.mark.parametrize("screen", [Screen(width=40), Screen(width=40, colour=False)])
def test_legend(screen: Screen) -> None:
    """The scale stands before the first line, and what it means goes on where it is asked to."""
    bar = screen.scale_bar(16)
    for indent in (0, bar.cell_len):
        first, *others = plain(
            legend("what the colours mean, in more words than fit", screen, indent=indent)
        )
        assert first.startswith(bar.plain + "what the")
        assert others
        assert all(re.match(" *", line)[0] == " " * indent for line in others)  # type: ignore[index]


COLUMNS = [
    Column("name", ["first", "나는 너희 모두를 사랑해"], least=8),
    Column("n", ["1", "1,234"], right=True),
    Column("what it is", [SENTENCE, "short"], least=10),
    Column("last", ["one", "two"]),
]


def test_a_wide_table_has_everything() -> None:
    """Each cell stands in its column, numbers at the right."""
    free = " " * (cell_len(SENTENCE) + 2)
    assert plain(list(table(COLUMNS, Screen(width=200)))) == [
        f"name                         n  what it is{free[10:]}last",
        f"first                        1  {SENTENCE}  one",
        f"나는 너희 모두를 사랑해  1,234  short{free[5:]}two",
    ]


@pytest.mark.parametrize("width", [20, 30, 40, 80])
@pytest.mark.parametrize("gap", [1, 2])
def test_a_narrow_table_cuts_cells_and_then_columns(width: int, gap: int) -> None:
    """One line a row; numbers are whole, and what is cut says so."""
    titles, *lines = plain(
        list(table(COLUMNS, Screen(width=width, colour=False, unicode=False), gap=gap))
    )
    assert len(lines) == 2
    assert max(map(cell_len, lines)) <= width
    assert "1,234" in lines[1]
    assert "~" in lines[1]
    assert ("last" in titles) == (width >= 8 + 5 + 10 + 4 + 3 * gap)


@pytest.mark.parametrize("width", range(34, 80, 5))
def test_a_folded_table_cuts_nothing(width: int) -> None:
    """Every word and number is there, in as many lines and blocks as it takes."""
    lines = plain(list(folded_table(COLUMNS, Screen(width=width, colour=False))))
    assert max(map(cell_len, lines)) <= width
    words = {word for line in lines for word in line.split()}
    assert {"1,234", "internationalization", "one", "two", "last", "short"} <= words
    assert "…" not in words


def rgb_of(colour: Color | None) -> tuple[int, int, int]:
    """Its bytes."""
    assert colour is not None
    red, green, blue = colour.get_truecolor()
    return red, green, blue


def test_a_signed_number_shows_its_sign_and_no_shade() -> None:
    """Red above 0, blue below, black at 0; without colour nothing at all, and a scale of weights only."""
    above, zero, below = (Screen().paint_signed(value, 3.0).bgcolor for value in (3.0, 0.0, -3.0))
    assert rgb_of(zero) == (0, 0, 0)
    assert rgb_of(above)[0] > rgb_of(above)[2]
    assert rgb_of(below)[2] > rgb_of(below)[0]
    assert PLAIN.paint_signed(3.0, 3.0) == Style()
    assert PLAIN.scale_bar(8, signed=True).plain == ""
    assert PLAIN.scale_bar(8).plain == "[ ░▒▓█] "
    bar = Screen().scale_bar(8, signed=True)
    assert [rgb_of(bar.spans[at].style.bgcolor) for at in (0, -1)] == [rgb_of(below), rgb_of(above)]  # type: ignore[union-attr]
