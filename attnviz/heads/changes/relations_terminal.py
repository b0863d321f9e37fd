"""How much better or worse relations between words are found, in a terminal: a line a relation, and how to read it."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rich.text import Text

from attnviz.heads.changes import wording as say
from attnviz.heads.changes.record import Changes, RelationChange
from attnviz.heads.terminal.cells import DOUBTFUL, ESTABLISHED, MISSING, Column, number, prose, rows, spelled
from attnviz.render.terminal.screen import Screen

AIRY, WITH_WAYS = 90, 100
"""The windows, in cells, from which on columns stand two cells apart, and from which on it is shown how heads look."""


def relations(found: Changes, screen: Screen) -> Iterator[Text]:
    """The table of what the heads of two models find in a treebank; what is found as often is only counted."""
    shown = say.relations(found)
    if shown:
        yield from prose("relations between words, each found by its best head before and after", screen)
        yield from rows(_columns(shown, screen), screen)
    marks = f" ({ESTABLISHED}: the interval excludes 0, else {DOUBTFUL})"
    for text in say.on_relations(found):
        yield from prose(f"{text}{marks if text.startswith('change: ') else ''}", screen, "dim")


def _columns(shown: list[RelationChange], screen: Screen) -> list[Column]:
    gap = 2 if screen.width >= AIRY else 1
    numbers = [
        ("n", [say.links_of(one) for one in shown]),
        ("before", [number(one.before.accuracy, screen) for one in shown]),
        ("after", [number(one.after.accuracy, screen) for one in shown]),
    ]
    columns = [
        Column("  relation", [_name(one, screen) for one in shown], least=10, gap=gap),
        *(Column(title, [Text(cell) for cell in cells], right=True, gap=gap) for title, cells in numbers),
        Column("change", [_signed(one, screen) for one in shown], right=True, gap=gap),
        Column("95 %", [_interval(one, screen) for one in shown], right=True, gap=gap),
        Column("best head", [Text(spelled(say.heads_of(one), screen)) for one in shown], gap=gap),
    ]
    if screen.width >= WITH_WAYS:
        columns.append(Column("looks", [Text(spelled(say.ways_of(one), screen)) for one in shown], gap=gap))
    return columns


def _name(one: RelationChange, screen: Screen) -> Text:
    mark = ESTABLISHED if one.established else DOUBTFUL
    return Text(spelled(f"{mark} {one.name}", screen))


def _signed(one: RelationChange, screen: Screen) -> Text:
    """The change; bold where it is established."""
    style = "bold" if one.established else "dim"
    return Text(spelled(MISSING, screen), "dim") if math.isnan(one.value) else Text(say.signed(one.value), style)


def _interval(one: RelationChange, screen: Screen) -> Text:
    if math.isnan(one.low):
        return Text(spelled(MISSING, screen), "dim")
    return Text(f"{say.signed(one.low)} to {say.signed(one.high)}", "" if one.established else "dim")
