"""Lines of words for a terminal, no wider than the screen, in the characters that it has."""

from __future__ import annotations

from io import StringIO

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from attnviz.render.terminal.screen import LIKENESS, READABLE, Screen

_PLAIN = LIKENESS | str.maketrans(
    {"·": "*", "⊙": "*", "…": "..", "∞": "inf", "≈": "~=", "Φ": "Phi", "→": "->", "←": "<-", "↑": "up", "↓": "down"}
)
"""What stands for the marks of arithmetic on a screen that knows no more than ASCII."""


def likeness(text: str, screen: Screen) -> str:
    r"""The text as the screen can show it: what has no likeness in ASCII is spelled out there, as in ``\ub098``."""
    if screen.unicode:
        return text
    # Between two parts of a sentence the dot is no sign of multiplication.
    return text.replace(" · ", " - ").translate(_PLAIN).encode("ascii", "backslashreplace").decode()


def fitted(text: str, width: int, screen: Screen) -> str:
    """The text cut to so many cells, with an ellipsis where it was cut."""
    if cell_len(text) <= width:
        return text
    mark = likeness("…", screen)
    return set_cell_size(text, max(0, width - cell_len(mark))).rstrip() + mark


def prose(text: str, screen: Screen, style: str = "", indent: int = 0) -> list[Text]:
    """A text in lines no wider than the screen, and no longer than can be read well; no line where there is no text."""
    if not text:
        return []
    width = max(1, min(READABLE, screen.width) - indent)
    console = Console(file=StringIO(), width=width, legacy_windows=False)
    lines = Text(likeness(text, screen), overflow="fold").wrap(console, width)
    made = []
    for line in lines:
        line.rstrip()
        made.append(Text(" " * indent + line.plain, style, no_wrap=True))
    return made
