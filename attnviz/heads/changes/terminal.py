"""What two models' heads do otherwise, in a terminal: what changed most on one screen, or a line a head."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.style import Style
from rich.text import Text

from attnviz.heads.changes import wording
from attnviz.heads.changes.compare import largest_changes, size
from attnviz.heads.changes.record import MOST, Change, Changes, Difference, RelationChange
from attnviz.heads.record import HeadProfile, Role
from attnviz.heads.selection import MOST as MOST_HEADS
from attnviz.heads.settings import MAX_OFFSET
from attnviz.heads.terminal.cells import (
    BAD_SHOWN,
    MISSING,
    bar,
    draw_grid,
    interval,
    mark,
    number,
    prose,
    role_style,
    rule_style,
)
from attnviz.heads.wording import MINOR, TOO_NARROW, narrow, note_words, plural, say
from attnviz.render.palette import LEVELS
from attnviz.render.sheet import BLANK
from attnviz.render.terminal.screen import Screen
from attnviz.render.terminal.table import Column, table
from attnviz.render.terminal.text import fit, spell

WITH_BARS, WITH_SHARE, WITH_INTERVALS, WITH_TWO = 72, 90, 110, 150
"""The windows, in cells, from which on a row has its bar, its share of how far others are, the interval of the measure
that changed most, and a second measure."""
BAR = 8  # cells of a bar that is full at ln 2
WITH_WAYS = 100  # the window, in cells, from which on relations show how their heads look
LEAST_ROLE = 11  # cells that each of two roles takes in a narrow window, so that both are seen
FEW = 6  # so many heads, roles and relations stand on the first screen


def draw(changes: Changes, screen: Screen, language: str = "en", *, full: bool = False) -> list[Text]:
    """What changed between two models: on one screen what changed most, in full all heads and relations in tables."""
    names = {"before": changes.before.model, "after": changes.after.model}
    lines = prose(say("changes_title", language, **names), screen, "bold")
    lines += prose(wording.finding(changes, language), screen, "bold")
    lines += prose("; ".join(wording.corpora_of(changes, language, "layers_heads" if full else "mapped")), screen)
    heads = [change for change in wording.sort_changes(changes) if wording.has_changed(changes, change)]
    if heads and not full:
        lines += [Text(), *_map(changes, screen)]
    if moved := wording.moves(changes):
        lines += [Text(), *_roles(moved if full else moved[:FEW], screen, language)]
    if heads:
        lines += [Text(), *_heads(heads[: MOST_HEADS if full else FEW], changes, screen, language)]
    if full and len(heads) > MOST_HEADS:
        more = len(heads) - MOST_HEADS
        lines += prose(say("less_hidden", language, heads=plural(more, "head"), n=more), screen)
    if relations := list(_relations(changes, screen, language, full=full)):
        lines += [Text(), *relations]
    lines += [Text(), *_notes(changes, screen, language, full=full)]
    more_words = say("more_changes", language, head=wording.sort_changes(changes)[0].name)
    return lines if full else [*lines, *prose(more_words, screen, "dim")]


def draw_watch(above: Sequence[Change], threshold: float, screen: Screen, language: str = "en") -> list[Text]:
    """What a watch says: which heads changed by more than was allowed, or that none did."""
    if not above:
        return prose(say("unchanged_watch", language, limit=f"{threshold:g}"), screen)
    names = ", ".join(f"{change.name} ({number(change.pattern, screen, 3)})" for change in above[:BAD_SHOWN])
    more = " " + say("and_more", language, n=len(above) - BAD_SHOWN) if len(above) > BAD_SHOWN else ""
    n, limit = len(above), f"{threshold:g}"
    return prose(
        say("changed_watch", language, heads=plural(n, "head"), n=n, limit=limit, names=names, more=more), screen
    )


def _map(changes: Changes, screen: Screen) -> Iterator[Text]:
    """How far each head's pattern changed, as a size; of saved numbers the difference that is largest, as signed."""
    found = {change.name: change for change in changes.heads}
    largest = max((change.pattern for change in changes.heads if change.pattern > 0), default=MOST)

    def cell(head: HeadProfile, room: int) -> Text:
        change = found[head.name]
        if changes.pattern is not None:
            text, style = _size(change.pattern, largest, room, screen)
        else:
            text, style = _draw_difference(next(iter(largest_changes(changes, change, 1)), None), room, screen)
        end = mark(screen, established=change.role_established) if change.role_changed and len(text) < room else ""
        return Text.assemble((text, style), end)

    yield from draw_grid(changes.before, screen, cell)


def _size(value: float, largest: float, room: int, screen: Screen) -> tuple[str, Style]:
    if math.isnan(value):
        return spell(MISSING, screen), Style(dim=True)
    if value < BLANK:
        return screen.dot, Style(dim=True)
    level = round(min(value / largest, 1.0) * (LEVELS - 1))
    return f"{value:.{1 + (room > 2)}f}"[1:], screen.paint(level) if screen.colour else Style()


def _draw_difference(one: Difference | None, room: int, screen: Screen) -> tuple[str, Style]:
    """A difference in a cell, red above 0 and blue below; its sign says so where there are no colours."""
    if one is None:
        return screen.dot, Style(dim=True)
    value = math.copysign(min(size(one), 0.99), one.value)
    text = f"{value:+.{1 + (room > 3)}f}".replace("0.", ".")
    return text[:room], screen.paint_signed(value, 1.0)


def _roles(moved: Sequence[wording.RoleMove], screen: Screen, language: str) -> Iterator[Text]:
    names = [Text(spell(one.rule.short, screen), rule_style(one.rule, screen)) for one in moved]
    columns = [
        Column(say("role", language), names, least=10),
        Column(say("before", language), [f"{len(one.before):,}" for one in moved], right=True),
        Column(say("after", language), [f"{len(one.after):,}" for one in moved], right=True),
        Column(say("lost_by", language), [" ".join(wording.names_of(one.lost)) for one in moved], least=10),
        Column(say("got_by", language), [" ".join(wording.names_of(one.got)) for one in moved], least=10),
    ]
    yield from table(columns, screen)


def _heads(heads: Sequence[Change], changes: Changes, screen: Screen, language: str) -> Iterator[Text]:
    wide = screen.width
    columns = [Column(say("head", language), [change.name for change in heads])]
    if changes.pattern is not None:
        patterns = [
            Text(number(one.pattern, screen, 3), Style(bold=True) if one.beyond_nearest else Style()) for one in heads
        ]
        columns.append(Column(say("change", language), patterns, right=True))
        columns.append(Column("95 %", [interval(one.low, one.high, screen, 3) for one in heads], right=True))
        if wide >= WITH_BARS:
            columns.append(Column("", [bar(one.pattern / MOST, BAR, screen) for one in heads]))
        if wide >= WITH_SHARE:
            shares = [number(one.share, screen) if math.isnan(one.share) else f"{one.share:.0%}" for one in heads]
            columns.append(Column(say("of_others", language), [Text(share, "dim") for share in shares], right=True))
    columns.append(Column(f"  {say('role', language)}", [_role(one, screen, language) for one in heads], least=16))
    measured = [largest_changes(changes, one, 2) for one in heads]
    first = [_measure(found[:1], screen, language) for found in measured]
    columns.append(Column(say("changed_most", language), first, least=10))
    if wide >= WITH_TWO:
        columns.append(Column("", [_measure(found[1:], screen, language) for found in measured], least=10))
    yield from table(columns, screen, gap=1 if wide < WITH_SHARE else 2)


def _role(change: Change, screen: Screen, language: str) -> Text:
    most = screen.width if screen.width >= WITH_BARS or not change.role_changed else LEAST_ROLE
    names = [_name(role, most, screen, language) for role in change.roles]
    if not change.role_changed:
        return Text.assemble("  ", names[0])
    return Text.assemble(
        f"{mark(screen, established=change.role_established)} ", names[0], spell(" → ", screen), names[1]
    )


def _name(role: Role | None, most: int, screen: Screen, language: str) -> Text:
    short = say("no_role", language) if role is None else role.rule.short
    return Text(fit(short, most, screen), role_style(role, screen))


def _measure(differences: Sequence[Difference], screen: Screen, language: str) -> Text:
    if not differences:
        return Text(spell(MISSING, screen), "dim")
    one = differences[0]
    digits = 1 if one.measure.unit == "tokens" else 2
    value = f"{one.value:+.{digits}f}"
    if not value.strip("+-0."):
        return Text(say("below", language), "dim")
    share = math.copysign(size(one), one.value)
    ends = ""
    if screen.width >= WITH_INTERVALS and not math.isnan(one.low):
        mark = TOO_NARROW if one.measure.narrow else ""
        ends = f" ({mark}{one.low:+.{digits}f} to {one.high:+.{digits}f})"
    style = screen.paint_signed(share, 1.0) if one.established else Style(dim=True)
    return Text.assemble(
        (f"{spell(one.measure.label, screen)} ", "" if one.established else "dim"), (value, style), (ends, "dim")
    )


def _relations(changes: Changes, screen: Screen, language: str, *, full: bool) -> Iterator[Text]:
    changed = wording.relations(changes)
    shown = changed if full else [one for one in changed if one.established][:FEW]
    if shown:
        yield from prose(say("relations_changed", language), screen)
        yield from table(_relation_columns(shown, screen, language), screen, gap=2 if screen.width >= WITH_SHARE else 1)
    if full:
        words = wording.on_relations(changes, language, len(shown))
    else:
        words = [wording.sure_relations(changes, language)] if changes.relations else []
    for text in words:
        yield from prose(text, screen, "dim")


def _relation_columns(relations: Sequence[RelationChange], screen: Screen, language: str) -> list[Column]:
    names = [f"{mark(screen, established=one.established)} {spell(one.name, screen)}" for one in relations]
    styles = [screen.paint_signed(one.value, 1.0) if one.established else Style(dim=True) for one in relations]
    missing = spell(MISSING, screen)
    values = [
        Text(missing if math.isnan(one.value) else wording.with_sign(one.value), style)
        for one, style in zip(relations, styles, strict=True)
    ]
    ends = [
        missing if math.isnan(one.low) else f"{wording.with_sign(one.low)} to {wording.with_sign(one.high)}"
        for one in relations
    ]
    columns = [
        Column(f"  {say('relation', language)}", names, least=10),
        Column("n", [wording.links_of(one) for one in relations], right=True),
        Column(say("before", language), [number(one.before.accuracy, screen) for one in relations], right=True),
        Column(say("after", language), [number(one.after.accuracy, screen) for one in relations], right=True),
        Column(say("change", language), values, right=True),
        Column("95 %", ends, right=True),
        Column(say("best_head_title", language), [spell(wording.heads_of(one), screen) for one in relations]),
    ]
    if screen.width >= WITH_WAYS:
        ways = [
            " / ".join(dict.fromkeys("head→dep" if best.reverse else "dep→head" for best in (one.before, one.after)))
            for one in relations
        ]
        columns.append(Column(say("looks", language), [spell(way, screen) for way in ways]))
    return columns


def _notes(changes: Changes, screen: Screen, language: str, *, full: bool) -> Iterator[Text]:
    yes, no = (mark(screen, established=sure) for sure in (True, False))
    if full:
        legend = [*wording.how_to_read(changes, language), say("where_from", language)]
        legend.append(say("how_measure", language, expected=wording.expected(changes, language)))
        legend.append(say("how_bold", language))
        legend += [say("how_others", language)] if screen.width >= WITH_SHARE else []
        legend.append(wording.counts(changes, language))
    else:
        phrase = "map_measure" if changes.pattern is None else "map_pattern"
        legend = wording.how_to_read(changes, language, say(phrase, language, yes=yes, no=no, most=MAX_OFFSET))
    if screen.width >= WITH_INTERVALS and any(
        one.measure.narrow for change in changes.heads for one in largest_changes(changes, change, 2)
    ):
        legend.append(narrow(language))
    for text in legend:
        yield from prose(text, screen, "dim")
    for note in changes.notes:
        if full or note.code not in MINOR:
            yield from prose(say("note", language, text=note_words(note, language)), screen)
    for one in (changes.before,) if changes.before.bad == changes.after.bad else (changes.before, changes.after):
        for line, reason in one.bad[:BAD_SHOWN]:
            yield from prose(say("bad_line", language, line=line, reason=reason), screen, indent=2)
    for text in wording.proofs(changes, language):
        yield from prose(text, screen, "bold")
