"""What two models' heads do otherwise, in a terminal: a line a head, the largest change first, and how to read it.

No row is ever wrapped. A narrow window shows fewer columns, and what is cut ends in an ellipsis.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.text import Text

from attnviz.heads.changes import wording
from attnviz.heads.changes.compare import most_changed
from attnviz.heads.changes.record import MOST, Change, Changes, Difference, RelationChange
from attnviz.heads.changes.wording import words
from attnviz.heads.notes import note_words
from attnviz.heads.record import Role
from attnviz.heads.relations import FAMILY
from attnviz.heads.selection import MOST as MOST_HEADS
from attnviz.heads.terminal.cells import (
    BAD_SHOWN,
    DOUBTFUL,
    ESTABLISHED,
    MISSING,
    READABLE,
    bar,
    interval,
    list_heads,
    mark,
    number,
    prose,
    role_style,
)
from attnviz.heads.wording import counted, say
from attnviz.render.terminal.screen import Screen
from attnviz.render.terminal.table import Column, table
from attnviz.render.terminal.text import fit, spell

WITH_BARS, WITH_SHARE, WITH_INTERVALS, WITH_TWO = 72, 90, 110, 150
"""The windows, in cells, from which on a row has its bar, its share of how far others are, the interval of the measure
that changed most, and a second measure."""
BAR = 8
"""Cells of a bar that is full at ln 2."""
A_TENTH = 0.1
"""From so many tokens on a difference of distances has one decimal."""
AIRY_RELATIONS, WITH_WAYS = 90, 100
"""The windows, in cells, from which on columns of relations stand two cells apart, and show how heads look."""
LEAST_WORDS = 12
"""Cells from which on a role that is cut still says what it is."""
LEAST_RELATION = 36
"""Likewise of a relation: they all begin alike."""
LEAST_ROLES = 16
"""Cells that a role, or the two that it changed between, take at least."""
SUMMARY = 54
"""Cells that the ways in which heads changed take at most before the heads."""


def draw(changes: Changes, screen: Screen) -> list[Text]:
    """The whole view of two models.

    Args:
        changes: what to show.
        screen: where.
    """
    lines = prose(wording.title(changes), screen, "bold")
    for text in wording.corpora_of(changes):
        lines += prose(text, screen)
    lines.append(Text())
    heads = [change for change in wording.ordered(changes) if _has_changed(changes, change)]
    if heads:
        lines += _rows(heads[:MOST_HEADS], changes, screen)
        if len(heads) > MOST_HEADS:
            more = counted(len(heads) - MOST_HEADS, "head")
            lines += prose(f"{more} that changed less not shown: a file of the ending .csv has all", screen)
    else:
        lines += prose("no head changed: every pattern, measure and role is the same", screen)
    if summary := list(_summary(changes, screen)):
        lines += [Text(), *summary]
    if changes.relations:
        lines += [Text(), *_relations(changes, screen)]
    return [*lines, Text(), *_notes(changes, screen)]


def draw_exceeded(above: Sequence[Change], threshold: float, screen: Screen) -> list[Text]:
    """What a watch says: which heads changed by more than was allowed, or that none did."""
    limit = f"{threshold:g} nats"
    if not above:
        return prose(f"no head's pattern changed by more than {limit}", screen)
    names = ", ".join(f"{change.name} ({number(change.pattern, screen, 3)})" for change in above[:BAD_SHOWN])
    more = f" and {len(above) - BAD_SHOWN:,} more" if len(above) > BAD_SHOWN else ""
    return prose(f"{counted(len(above), 'head')} changed by more than {limit}: {names}{more}", screen)


def _has_changed(changes: Changes, change: Change) -> bool:
    return not change.same_pattern and (change.pattern > 0 or bool(most_changed(changes, change, 1)))


def _rows(heads: Sequence[Change], changes: Changes, screen: Screen) -> Iterator[Text]:
    """The table of heads."""
    wide = screen.width
    gap = 1 if wide < WITH_SHARE else 2
    columns = [Column("head", [change.name for change in heads])]
    if changes.pattern is not None:
        intervals = [interval(change.low, change.high, screen, 3) for change in heads]
        columns.append(Column("change", [_change(change, screen) for change in heads], right=True))
        columns.append(Column("95 %", intervals, right=True))
        if wide >= WITH_BARS:
            columns.append(Column("", [bar(change.pattern / MOST, BAR, screen) for change in heads]))
        if wide >= WITH_SHARE:
            columns.append(Column("of others", [_share(change, screen) for change in heads], right=True))
    last = []
    for index in range(2 if wide >= WITH_TWO else 1):
        with_interval = wide >= WITH_INTERVALS
        cells = [
            _measure(most_changed(changes, change, 2)[index:], screen, with_interval=with_interval) for change in heads
        ]
        last.append(Column("then" if index else "changed most", cells, least=12))
    room = wide - sum(column.width + gap for column in (*columns, *last)) - gap
    roles = [_roles(change, max(LEAST_ROLES, room), screen) for change in heads]
    yield from table([*columns, Column("  role", roles, least=LEAST_ROLES), *last], screen, gap=gap)


def _change(change: Change, screen: Screen) -> Text:
    """How far its pattern moved; bold where that is further than the head most like it was."""
    return Text(number(change.pattern, screen, 3), "bold" if change.beyond_nearest else "")


def _share(change: Change, screen: Screen) -> Text:
    share = change.share
    return Text(number(share, screen) if math.isnan(share) else f"{share:.0%}", "dim")


def _roles(change: Change, room: int, screen: Screen) -> Text:
    """Its role, or from which to which it changed, and whether that is established; in so many cells."""
    before, after = change.roles
    if not change.role_changed:
        return Text(f"  {fit(words(before), room - 2, screen)}", role_style(None, screen) if before is None else "")
    return Text.assemble(
        f"{mark(screen, established=change.role_established)} ", _from_to(before, after, room - 2, screen)
    )


def _from_to(before: Role | None, after: Role | None, room: int, screen: Screen) -> Text:
    """Two roles with an arrow between them; what is too long is cut, or where little would be left of it, a sign."""
    arrow = spell(" → ", screen)
    names = [fit(words(role), 1000, screen) for role in (before, after)]
    spare = room - len(arrow)
    longest = [max(spare // 2, spare - cell_len(other)) for other in reversed(names)]
    texts = [
        fit(name if cell_len(name) <= most or most >= _least(role) else _sign(role), most, screen)
        for name, role, most in zip(names, (before, after), longest, strict=True)
    ]
    return Text.assemble((texts[0], role_style(before, screen)), arrow, (texts[1], role_style(after, screen)))


def _least(role: Role | None) -> int:
    return LEAST_RELATION if role is not None and role.rule.family == FAMILY.name else LEAST_WORDS


def _sign(role: Role | None) -> str:
    return "none" if role is None else role.rule.sign


def _measure(differences: Sequence[Difference], screen: Screen, *, with_interval: bool) -> Text:
    """The first of these differences, dim where it is not established."""
    if not differences:
        return Text(spell(MISSING, screen), "dim")
    one = differences[0]
    digits = 1 if one.measure.unit == "tokens" and abs(one.value) >= A_TENTH else 2
    if not round(abs(one.value), digits):
        return Text("below 0.01", "dim")
    text = f"{wording.named(one)} {one.value:+.{digits}f}"
    if with_interval and not math.isnan(one.low):
        text += f" ({one.low:+.{digits}f} to {one.high:+.{digits}f})"
    return Text(spell(text, screen), "" if one.established else "dim")


def _summary(changes: Changes, screen: Screen) -> Iterator[Text]:
    """How many heads changed in which way and which they are; then from which role to which."""
    for what, names in wording.tallied(changes):
        if names:
            title = Text(f"{len(names):>4}  {fit(what, screen.width - 6, screen)}")
            yield from list_heads(title, names, screen, SUMMARY)
    if moves := wording.moves(changes):
        yield Text()
        yield from prose("roles that changed", screen)
    for before, after, heads in moves:
        title = Text(f"{len(heads):>4}  ")
        title.append(_from_to(before, after, min(READABLE, screen.width) - title.cell_len, screen))
        yield from list_heads(title, [change.name for change in heads], screen, SUMMARY)


def _relations(changes: Changes, screen: Screen) -> Iterator[Text]:
    """The table of what the heads of two models find in a treebank; what is found as often is only counted."""
    relations = wording.relations(changes)
    if relations:
        yield from prose("relations between words, each found by its best head before and after", screen)
        yield from table(_relation_columns(relations, screen), screen, gap=2 if screen.width >= AIRY_RELATIONS else 1)
    marks = f" ({ESTABLISHED}: the interval excludes 0, else {DOUBTFUL})"
    for text in wording.on_relations(changes, marks):
        yield from prose(text, screen, "dim")


def _relation_columns(relations: Sequence[RelationChange], screen: Screen) -> list[Column]:
    names = [f"{mark(screen, established=one.established)} {spell(one.name, screen)}" for one in relations]
    missing = Text(spell(MISSING, screen), "dim")
    values = [
        missing if math.isnan(one.value) else Text(wording.signed(one.value), "bold" if one.established else "dim")
        for one in relations
    ]
    intervals = [
        missing
        if math.isnan(one.low)
        else Text(f"{wording.signed(one.low)} to {wording.signed(one.high)}", "" if one.established else "dim")
        for one in relations
    ]
    columns = [
        Column("  relation", names, least=10),
        Column("n", [wording.links_of(one) for one in relations], right=True),
        Column("before", [number(one.before.accuracy, screen) for one in relations], right=True),
        Column("after", [number(one.after.accuracy, screen) for one in relations], right=True),
        Column("change", values, right=True),
        Column("95 %", intervals, right=True),
        Column("best head", [spell(wording.heads_of(one), screen) for one in relations]),
    ]
    if screen.width >= WITH_WAYS:
        columns.append(Column("looks", [spell(wording.ways_of(one), screen) for one in relations]))
    return columns


def _notes(changes: Changes, screen: Screen) -> Iterator[Text]:
    """How to read it, what to know, which lines were bad; the proofs last."""
    chance = f"; {by_chance}" if (by_chance := wording.by_chance(changes)) else ""
    legend = [
        *(["how to read: " + wording.HOW_PATTERN, _how_bars(screen)] if changes.pattern is not None else []),
        f"{wording.HOW_ROLES} ({ESTABLISHED}, else {DOUBTFUL}){_how_signs(screen)}",
        f"changed most: after less before; dim where the interval holds 0{chance}",
        wording.WHERE_FROM,
        say("not_explanation"),
    ]
    for text in legend:
        yield from prose(text, screen, "dim")
    for note in changes.notes:
        yield from prose(f"note: {note_words(note)}", screen)
    for one in (changes.before,) if changes.before.bad == changes.after.bad else (changes.before, changes.after):
        for line, reason in one.bad[:BAD_SHOWN]:
            yield from prose(f"line {line:,} not used: {reason}", screen, indent=2)
    for text in wording.proofs(changes):
        yield from prose(text, screen, "bold")


def _how_signs(screen: Screen) -> str:
    return "; a role without room is a sign, such as 1st" if screen.width < WITH_TWO else ""


def _how_bars(screen: Screen) -> str:
    bars = "bars end at ln 2; " if screen.width >= WITH_BARS else ""
    share = f"; {wording.HOW_OTHERS}" if screen.width >= WITH_SHARE else ""
    return f"{bars}bold: beyond the head most like it, further than that was away{share}; layers and heads count from 0"
