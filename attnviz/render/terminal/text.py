"""Text for a terminal: in the characters that it can show, in lines that fit, cut and centred by cells.

A cell is the place of one letter; letters of Korean and Chinese and most emoji take two.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from io import StringIO

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.style import Style
from rich.text import Text

from attnviz.render.terminal.screen import Screen
from attnviz.text.display import HELD, hold_units, visible

SENTENCE_LINES = 4  # lines of a long text that are shown: its first ones and its last
READABLE = 100  # cells that a line of prose may have; longer lines are hard to come back from
MARKS = str.maketrans(
    {
        "“": '"',
        "”": '"',
        "’": "'",
        "·": "-",
        "–": "-",
        "—": "-",
        "−": "-",
        "×": "x",
        "√": "v",
        "…": "~",
        "→": ">",
        "←": "<",
        "↔": "-",
        "␣": "_",
        "●": "*",
        "○": "o",
    }
)
"""Replacements, one cell wide, for symbols on a screen that lacks them."""


def spell(text: str, screen: Screen, marks: Mapping[int, str] = MARKS) -> str:
    r"""Return the text as the screen can show it; an unknown character without a substitute becomes ``\ub098``.

    A dot between two letters, as in "q·k", is the sign of a product, and becomes a star.
    """
    text = visible(text)
    if screen.unicode:
        return text
    text = re.sub(r"(?<=\w)·(?=\w)", "*", text).translate(marks)
    return text.encode(screen.encoding, "backslashreplace").decode(screen.encoding)


def fit(text: str, width: int, screen: Screen, marks: Mapping[int, str] = MARKS) -> str:
    """Return the text in so many cells, as the screen can show it, with an ellipsis where it was cut."""
    text = spell(text, screen, marks)
    if cell_len(text) <= width:
        return text
    mark = spell("…", screen, marks)
    cut = set_cell_size(text, max(0, width - cell_len(mark)))
    # half of a wide letter would be a space
    return (cut if text.startswith(cut) else cut[:-1]) + mark


def centre(text: str, width: int) -> str:
    """Return the text in the middle of so many cells; an odd free cell stands before it."""
    free = max(0, width - cell_len(text))
    return " " * ((free + 1) // 2) + text + " " * (free // 2)


def wrap(
    text: str,
    screen: Screen,
    style: str | Style = "",
    *,
    indent: int = 0,
    first: int | None = None,
    most: int = READABLE,
) -> list[Text]:
    """Return the text in lines no wider than the screen; an empty text has no line.

    Before each line `indent` cells are left free, before the first one `first`; on a wide screen a line has at most
    `most` cells.
    """
    if not text:
        return []
    text, width = spell(text, screen), min(most, screen.width)
    start = indent if first is None else first
    lines = fold(Text(text), max(1, width - start))
    if start != indent and len(lines) > 1:
        lines[1:] = fold(Text(text[len(lines[0]) :].lstrip()), max(1, width - indent))
    margins = [start, *[indent] * (len(lines) - 1)]
    return [
        Text(" " * margin + line.plain, style, no_wrap=True)
        for margin, line in zip(margins, lines, strict=True)
    ]


def fold(text: Text, width: int) -> list[Text]:
    """Return the text in lines of so many cells; only a word that is longer than a line is broken."""
    console = Console(file=StringIO(), width=width, legacy_windows=False)
    whole = text.copy()
    whole.plain = hold_units(text.plain, HELD)
    lines = list(whole.wrap(console, width, overflow="fold"))
    for line in lines:
        line.rstrip()
        line.plain = line.plain.replace(HELD, " ")
    return lines


def legend(
    text: str, screen: Screen, *, cells: int = 16, indent: int = 0, most: int = READABLE
) -> list[Text]:
    """Return the scale of colours and its meaning; further lines begin after `indent` cells."""
    bar = screen.scale_bar(cells)
    return behind(bar, wrap(text, screen, "dim", first=bar.cell_len, indent=indent, most=most))


def behind(start: Text, lines: Sequence[Text]) -> list[Text]:
    """Return the lines with `start` in the cells that were left free before the first."""
    return [Text.assemble(start, lines[0][start.cell_len :], no_wrap=True), *lines[1:]]


def shortened(lines: list[Text], screen: Screen) -> list[Text]:
    """Return the first lines of a long text and its last, at most `SENTENCE_LINES`."""
    if len(lines) <= SENTENCE_LINES:
        return lines
    return [*lines[: SENTENCE_LINES - 1], Text(spell("…", screen), lines[0].style), lines[-1]]
