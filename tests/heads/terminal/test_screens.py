"""The first screens of heads in a terminal emulator: the answer in the first ten lines, at any width, in any look."""

from __future__ import annotations

from functools import partial
from io import StringIO
from typing import TYPE_CHECKING

import numpy as np
import pyte
import pytest
from rich.console import Console

import attnviz
from attnviz.heads.selection import by_role
from attnviz.heads.settings import SurveySettings
from attnviz.heads.terminal.overview import draw_overview
from attnviz.heads.terminal.table import draw_head
from attnviz.models.language import splits
from attnviz.render.palette import luminance
from attnviz.render.terminal.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rich.text import Text

    from attnviz.heads.record import HeadComparison

pytestmark = pytest.mark.usefixtures("whole_corpora", "few_seeds")

WIDTHS = pytest.mark.parametrize("width", [60, 80, 120, 200])
LOOKS = pytest.mark.parametrize(("colour", "dark"), [(False, True), (True, True), (True, False)])
LANGUAGES = pytest.mark.parametrize("language", ["en", "ko"])


def sentences(n: int) -> list[str]:
    """Sentences of the home-built encoder's language."""
    made = splits.sentences("test")
    return [" ".join(next(made).words) for _ in range(n)]


@pytest.fixture(scope="module")
def comparison() -> HeadComparison:
    """The heads of the home-built encoder."""
    return attnviz.compare_heads(sentences(40), model="toy", settings=SurveySettings(controls=20))


def shown(
    view: Callable[[Screen], Iterable[Text]], width: int, *, colour: bool, dark: bool
) -> list[str]:
    """What stands on the terminal, line by line; every number on a coloured cell can be read."""
    console = Console(
        width=width,
        file=StringIO(),
        color_system="truecolor" if colour else None,
        force_terminal=True,
    )
    for line in view(Screen(width=width, colour=colour, dark=dark)):
        console.print(line, soft_wrap=True)
    assert isinstance(console.file, StringIO)
    terminal = pyte.Screen(width, 300)
    pyte.Stream(terminal).feed(console.file.getvalue().replace("\n", "\r\n"))
    for row in terminal.buffer.values():
        for cell in row.values():
            assert colour or (cell.fg, cell.bg) == ("default", "default")
            if "default" not in {cell.fg, cell.bg} and cell.data.strip():
                one, other = sorted(float(luminance(rgb(name))) for name in (cell.fg, cell.bg))
                assert (other + 0.05) / (one + 0.05) >= 4.5, (cell.data, cell.fg, cell.bg)
    lines = [line.rstrip() for line in terminal.display]
    while not lines[-1]:
        lines.pop()
    return lines


def rgb(name: str) -> np.ndarray:
    """A colour that a terminal was told."""
    return np.frombuffer(bytes.fromhex(name), dtype=np.uint8)


@WIDTHS
@LOOKS
@LANGUAGES
def test_what_each_head_does(
    comparison: HeadComparison, width: int, language: str, *, colour: bool, dark: bool
) -> None:
    """The map begins in the first ten lines, a role a line follows; all of it is on one screen."""
    lines = shown(
        lambda screen: draw_overview(comparison, screen, language), width, colour=colour, dark=dark
    )
    assert len(lines) <= (54 if width == 60 else 48)
    assert any(line.startswith("0  ") for line in lines[:10])
    for (head, role), *_ in by_role(comparison):
        if role is not None:
            assert any(f"{role.rule.short} " in line and head.name in line for line in lines)


@WIDTHS
@LOOKS
@LANGUAGES
@pytest.mark.parametrize("full", [False, True])
def test_one_head(
    comparison: HeadComparison, width: int, language: str, *, full: bool, colour: bool, dark: bool
) -> None:
    """What it does stands in the first ten lines, with a role and without one."""
    every = comparison.heads
    for head in (
        next(one for one in every if one.roles),
        next(one for one in every if not one.roles),
    ):
        view = partial(draw_head, comparison, head.layer, head.head, full=full, language=language)
        lines = shown(view, width, colour=colour, dark=dark)
        top = " ".join(lines[:10])
        assert head.name in lines[0]
        if head.roles:
            assert head.roles[0].rule.short in top
        else:
            assert ("no clear role" if language == "en" else "뚜렷한 역할 없음") in top
        assert full or len(lines) <= 30
