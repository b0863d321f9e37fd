"""Text for a terminal: replaced characters, lines that fit, cutting and centring by cells.

A cell is the place of one letter; Korean and Chinese letters and most emoji take two cells.
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

# The most lines of a long text that are shown: the first ones, an ellipsis and the last one.
SENTENCE_LINES = 4
# The most cells of a line of prose; after a longer line it is hard to find the next one.
READABLE = 100
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
        "✓": "*",
    }
)
"""Replacements, one cell wide, for symbols on a screen that lacks them."""


def spell(text: str, screen: Screen, marks: Mapping[int, str] = MARKS) -> str:
    r"""Return the text as the screen can show it; a character without a substitute becomes a code such as ``\ub098``.

    A dot between two letters, as in "q·k", is the sign of a product, and becomes a star.
    """
    text = visible(text)
    if screen.unicode:
        return text
    text = re.sub(r"(?<=\w)·(?=\w)", "*", text).translate(marks)
    return text.encode(screen.encoding, "backslashreplace").decode(screen.encoding)


def fit(text: str, width: int, screen: Screen, marks: Mapping[int, str] = MARKS) -> str:
    """Return the text in at most `width` cells, as the screen can show it, with an ellipsis if it was cut."""
    text = spell(text, screen, marks)
    if cell_len(text) <= width:
        return text
    mark = spell("…", screen, marks)
    prefix = set_cell_size(text, max(0, width - cell_len(mark)))
    # If the cut falls inside a wide letter, Rich puts a space in place of the half letter; remove that space.
    return (prefix if text.startswith(prefix) else prefix[:-1]) + mark


def centre(text: str, width: int) -> str:
    """Return the text centred in `width` cells; if the number of free cells is odd, one more is on the left."""
    n_free = max(0, width - cell_len(text))
    return " " * ((n_free + 1) // 2) + text + " " * (n_free // 2)


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

    Each line begins with `indent` free cells, the first one with `first` free cells if that is given. On a wide screen
    a line has at most `most` cells.
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
    """Return the text in lines of at most `width` cells; only a word that is longer than a line is broken."""
    console = Console(file=StringIO(), width=width, legacy_windows=False)
    joined = text.copy()
    joined.plain = hold_units(text.plain, HELD)
    lines = list(joined.wrap(console, width, overflow="fold"))
    for line in lines:
        line.rstrip()
        line.plain = line.plain.replace(HELD, " ")
    return lines


def legend(
    text: str,
    screen: Screen,
    *,
    cells: int = 16,
    indent: int = 0,
    most: int = READABLE,
    signed: bool = False,
) -> list[Text]:
    """Return the colour scale and its meaning; lines after the first begin with `indent` free cells."""
    bar = screen.scale_bar(cells, signed=signed)
    return behind(bar, wrap(text, screen, "dim", first=bar.cell_len, indent=indent, most=most))


def behind(start: Text, lines: Sequence[Text]) -> list[Text]:
    """Return the lines with `start` in the free cells at the beginning of the first line."""
    return [Text.assemble(start, lines[0][start.cell_len :], no_wrap=True), *lines[1:]]


def shortened(lines: list[Text], screen: Screen) -> list[Text]:
    """Return at most `SENTENCE_LINES` lines: the first ones, and for a long text an ellipsis and the last line.

    The ellipsis is one more line.
    """
    if len(lines) <= SENTENCE_LINES:
        return lines
    return [*lines[: SENTENCE_LINES - 1], Text(spell("…", screen), lines[0].style), lines[-1]]
