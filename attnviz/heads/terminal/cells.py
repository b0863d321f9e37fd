"""The parts that the terminal views of heads are made of: numbers, bars, small patterns, lists of heads."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.style import Style
from rich.text import Text

from attnviz.heads.record import Role
from attnviz.heads.wording import readable
from attnviz.render.terminal.screen import Screen
from attnviz.render.terminal.text import behind, fit, spell, wrap

READABLE = 110
"""Cells that a line of prose may have; longer lines are hard to come back from."""
MISSING = "—"
"""Stands for a number that there is none of."""
ESTABLISHED, DOUBTFUL = "●", "○"
"""A role that is established, and one that is not."""
UP = " ▁▂▃▄▅▆▇█"
ALONG = " ▏▎▍▌▋▊▉█"
UP_ASCII = " .:-=+*#@"
CONTROL_TITLES = {
    "shuffled": ("shuf", "shuffled"),
    "untrained": ("rand", "random"),
    "offset": ("offs", "offset"),
    "chance": ("chance", "chance"),
}
"""Above the columns of controls, in a narrow window and in a wide one."""
MOST_NAMES = 48
"""So many heads are named in one list."""
SEEN = 0.005
"""A share below this reads 0.00."""
LEAST_TOP = 0.2
"""The least weight that a small pattern's full height stands for: an even head looks even."""


def prose(text: str, screen: Screen, style: str | Style = "", indent: int = 0) -> list[Text]:
    """A text in lines that can be read; those after the first begin so many cells further in."""
    return wrap(text, screen, style, first=0, indent=indent, most=READABLE)


def number(value: float, screen: Screen, digits: int = 2) -> str:
    """A measure with two decimals, or a dash where there is none."""
    if math.isnan(value):
        return spell(MISSING, screen)
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if not text.strip("-0.") else text


def interval(low: float, high: float, screen: Screen, digits: int = 2) -> str:
    """Both ends, or a dash where there are none."""
    if math.isnan(low) or math.isnan(high):
        return spell(MISSING, screen)
    return spell(f"{number(low, screen, digits)}–{number(high, screen, digits)}", screen)  # noqa: RUF001 - an en dash


def bar(share: float, width: int, screen: Screen) -> str:
    """A share of 1 as a bar of so many cells; one that reads 0.00 is blank, one that is missing is a dash."""
    if math.isnan(share):
        return fit(MISSING, 1, screen).ljust(width)
    part = min(max(share, 0.0), 1.0) * width if share >= SEEN else 0.0
    if not screen.unicode:
        filled = max(round(part), int(share >= SEEN))
        return ("#" * filled).ljust(width)
    eighths = max(round(part * 8), int(share >= SEEN))
    return ("█" * (eighths // 8) + ALONG[eighths % 8].strip()).ljust(width)


def spark(values: Sequence[float], screen: Screen) -> str:
    """A small pattern: a bar for each weight; nothing where there is no weight, or no such key."""
    top = max([LEAST_TOP, *(value for value in values if not math.isnan(value))])
    steps = UP if screen.unicode else UP_ASCII
    return "".join(
        " " if math.isnan(value) or value <= 0 else steps[max(1, round(value / top * (len(steps) - 1)))]
        for value in values
    )


def family_style(role: Role, screen: Screen) -> Style:
    """The colour of a role; none where there are no colours."""
    return Style(color=readable(role.colour, dark=screen.dark)) if screen.colour else Style()


def role_style(role: Role | None, screen: Screen) -> Style:
    """The colour of a role: dim where there is none, italic where it is not established."""
    if role is None:
        return Style(dim=True)
    return family_style(role, screen) + Style(italic=None if role.established else True)


def mark(established: bool, screen: Screen) -> str:  # noqa: FBT001 - it is what is marked
    """What stands before a role, a relation or a change: whether it is established."""
    return spell(ESTABLISHED if established else DOUBTFUL, screen)


def name_role(role: Role | None, words: str, screen: Screen) -> Text:
    """A role in words, after its mark and in its colour."""
    return Text(f"{mark(role.established, screen) if role else ' '} {spell(words, screen)}", role_style(role, screen))


def list_heads(title: Text, names: Sequence[str], screen: Screen, indent: int) -> Iterator[Text]:
    """A title and behind it names, `MOST_NAMES` at most, as many in a line as fit; further lines begin below."""
    room = min(READABLE, screen.width)
    start = Text.assemble(title, " " * max(1, indent - title.cell_len), no_wrap=True)
    if start.cell_len > room // 2:
        start.rstrip()
        yield start
        indent = 6
        start = Text(" " * indent)
    more = len(names) - MOST_NAMES
    text = " ".join([*names[:MOST_NAMES], *(["and", f"{more:,}", "more"] if more > 0 else [])])
    yield from behind(start, wrap(text, screen, first=start.cell_len, indent=indent, most=READABLE))
