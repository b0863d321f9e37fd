"""What two models' heads do otherwise, in a terminal: what changed most on one screen, or a line a head."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.style import Style
from rich.text import Text

from attnviz.heads.changes import wording
from attnviz.heads.changes.compare import change_on_map, largest_changes, sort_changes
from attnviz.heads.changes.record import MOST, Change, Changes, Difference, RelationChange
from attnviz.heads.measures import MAX_OFFSET
from attnviz.heads.record import HeadProfile, Role
from attnviz.heads.selection import MOST as MOST_HEADS
from attnviz.heads.terminal import cells
from attnviz.heads.terminal.cells import Writer, bar, draw_grid, role_style, rule_style
from attnviz.heads.wording import MINOR, TOO_NARROW, note_words, say
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


def draw(
    changes: Changes, screen: Screen, language: str = "en", *, full: bool = False
) -> list[Text]:
    """What changed between two models: on one screen what changed most, in full all heads and relations in tables."""
    out = Writer(screen, language)
    lines = out.tell(
        "changes_title", "bold", before=changes.before.model, after=changes.after.model
    )
    lines += out.prose(wording.finding(changes, language), "bold")
    lines += out.prose(wording.corpora_of(changes, language, "layers_heads" if full else "mapped"))
    heads = wording.changed_heads(changes)
    if heads and not full:
        lines += [Text(), *_map(changes, screen)]
    if moved := wording.moves(changes):
        lines += [Text(), *_roles(moved if full else moved[:FEW], out)]
    if heads:
        lines += [Text(), *_heads(heads[: MOST_HEADS if full else FEW], changes, out)]
    if full and len(heads) > MOST_HEADS:
        lines += out.tell("less_hidden", n=len(heads) - MOST_HEADS)
    if relations := list(_relations(changes, out, full=full)):
        lines += [Text(), *relations]
    lines += [Text(), *_notes(changes, out, full=full)]
    return (
        lines
        if full
        else [*lines, *out.tell("more_changes", "dim", head=sort_changes(changes)[0].name)]
    )


def draw_watch(
    above: Sequence[Change], threshold: float, screen: Screen, language: str = "en"
) -> list[Text]:
    """What a watch says: which heads changed by more than was allowed, or that none did."""
    out, n, limit = Writer(screen, language), len(above), f"{threshold:g}"
    if not above:
        return out.tell("unchanged_watch", limit=limit)
    names = ", ".join(
        f"{change.name} ({out.number(change.pattern, 3)})" for change in above[: cells.BAD_SHOWN]
    )
    more = " " + say("and_more", language, n=n - cells.BAD_SHOWN) if n > cells.BAD_SHOWN else ""
    return out.tell("changed_watch", n=n, limit=limit, names=names, more=more)


def _map(changes: Changes, screen: Screen) -> Iterator[Text]:
    """How far each head's pattern changed, as a size; of saved numbers the difference that is largest, as signed."""
    largest = max((change.pattern for change in changes.heads if change.pattern > 0), default=MOST)

    def cell(head: HeadProfile, room: int) -> Text:
        change = changes.change(*head.place)
        shown = change_on_map(changes, change)
        if changes.pattern is not None:
            text, style = _size(shown, largest, room, screen)
        else:
            text, style = _draw_difference(shown, room, screen)
        is_marked = change.role_changed and len(text) < room
        return Text.assemble(
            (text, style),
            Writer(screen).mark(established=change.role_established) if is_marked else "",
        )

    yield from draw_grid(changes.before, screen, cell)


def _size(value: float, largest: float, room: int, screen: Screen) -> tuple[str, Style]:
    if math.isnan(value):
        return spell(cells.MISSING, screen), Style(dim=True)
    if value < BLANK:
        return screen.dot, Style(dim=True)
    level = round(min(value / largest, 1.0) * (LEVELS - 1))
    return f"{value:.{1 + (room > 2)}f}"[1:], screen.paint(level) if screen.colour else Style()


def _draw_difference(value: float, room: int, screen: Screen) -> tuple[str, Style]:
    """A difference in a cell, red above 0 and blue below; its sign says so where there are no colours."""
    if not value:
        return screen.dot, Style(dim=True)
    value = max(-0.99, min(value, 0.99))
    text = f"{value:+.{1 + (room > 3)}f}".replace("0.", ".")
    return text[:room], screen.paint_signed(value, 1.0)


def _roles(moved: Sequence[wording.RoleMove], out: Writer) -> Iterator[Text]:
    names, *others = wording.role_columns(moved, out.language)
    rules = [rule_style(one.rule, out.screen) for one in moved]
    styled = [
        Text(spell(name, out.screen), style) for name, style in zip(names.cells, rules, strict=True)
    ]
    columns = [
        Column(title, texts, right=right, least=0 if right else 10)
        for title, texts, right in others
    ]
    yield from table([Column(names.title, styled, least=10), *columns], out.screen)


def _heads(heads: Sequence[Change], changes: Changes, out: Writer) -> Iterator[Text]:
    wide = out.screen.width
    columns = [out.column("head", [change.name for change in heads])]
    if changes.pattern is not None:
        patterns = [
            Text(out.number(one.pattern, 3), Style(bold=one.beyond_nearest or None))
            for one in heads
        ]
        columns.append(out.column("change", patterns, right=True))
        columns.append(
            out.column("95 %", [out.interval(one.low, one.high, 3) for one in heads], right=True)
        )
        if wide >= WITH_BARS:
            columns.append(
                out.column("", [bar(one.pattern / MOST, BAR, out.screen) for one in heads])
            )
        if wide >= WITH_SHARE:
            shares = [
                out.number(one.share) if math.isnan(one.share) else f"{one.share:.0%}"
                for one in heads
            ]
            columns.append(
                out.column("of_others", [Text(share, "dim") for share in shares], right=True)
            )
    columns.append(Column(f"  {out.say('role')}", [_role(one, out) for one in heads], least=16))
    measured = [largest_changes(changes, one, 2) for one in heads]
    columns.append(
        out.column("changed_most", [_measure(found[:1], out) for found in measured], least=10)
    )
    if wide >= WITH_TWO:
        columns.append(Column("", [_measure(found[1:], out) for found in measured], least=10))
    yield from table(columns, out.screen, gap=1 if wide < WITH_SHARE else 2)


def _role(change: Change, out: Writer) -> Text:
    most = (
        out.screen.width if out.screen.width >= WITH_BARS or not change.role_changed else LEAST_ROLE
    )
    before, after = (_name(role, most, out) for role in change.roles)
    if not change.role_changed:
        return Text.assemble("  ", before)
    return Text.assemble(
        f"{out.mark(established=change.role_established)} ", before, spell(" → ", out.screen), after
    )


def _name(role: Role | None, most: int, out: Writer) -> Text:
    short = out.say("no_role") if role is None else role.rule.short
    return Text(fit(short, most, out.screen), role_style(role, out.screen))


def _measure(differences: Sequence[Difference], out: Writer) -> Text:
    if not differences:
        return Text(spell(cells.MISSING, out.screen), "dim")
    one = differences[0]
    digits = 1 if one.measure.unit == "tokens" else 2
    value = f"{one.value:+.{digits}f}"
    if not value.strip("+-0."):
        return Text(out.say("below"), "dim")
    ends = ""
    if out.screen.width >= WITH_INTERVALS and not math.isnan(one.low):
        mark = TOO_NARROW if one.measure.narrow else ""
        ends = f" ({mark}{one.low:+.{digits}f} to {one.high:+.{digits}f})"
    style = out.screen.paint_signed(one.scaled, 1.0) if one.established else Style(dim=True)
    label = f"{spell(one.measure.label, out.screen)} ", "" if one.established else "dim"
    return Text.assemble(label, (value, style), (ends, "dim"))


def _relations(changes: Changes, out: Writer, *, full: bool) -> Iterator[Text]:
    changed = wording.relations(changes)
    shown = changed if full else [one for one in changed if one.established][:FEW]
    if shown:
        yield from out.tell("relations_changed")
        gap = 2 if out.screen.width >= WITH_SHARE else 1
        yield from table(list(_relation_columns(shown, out)), out.screen, gap=gap)
    if full:
        words = wording.on_relations(changes, out.language, len(shown))
    else:
        words = [wording.sure_relations(changes, out.language)] if changes.relations else []
    for text in words:
        yield from out.prose(text, "dim")


def _relation_columns(relations: Sequence[RelationChange], out: Writer) -> Iterator[Column]:
    marked = [f"{out.mark(established=one.established)} {one.name}" for one in relations]
    signed = [
        out.screen.paint_signed(one.value, 1.0) if one.established else Style(dim=True)
        for one in relations
    ]
    names, *others = wording.relation_columns(relations, out.language)
    yield out.column(f"  {names.title}", marked, least=10)
    for title, texts, right in others:
        if title == out.say("change"):
            values = [Text(value, style) for value, style in zip(texts, signed, strict=True)]
            yield Column(title, values, right=True)
        else:
            yield out.column(title, texts, right=right)
    if out.screen.width >= WITH_WAYS:
        ways = (
            dict.fromkeys(
                "head→dep" if best.reverse else "dep→head" for best in (one.before, one.after)
            )
            for one in relations
        )
        yield out.column("looks", map(" / ".join, ways))


def _notes(changes: Changes, out: Writer, *, full: bool) -> Iterator[Text]:
    language, wide = out.language, out.screen.width
    if full:
        legend = [*wording.how_to_read(changes, language), wording.how_measured(changes, language)]
        legend.append(say("how_bold", language))
        legend += [say("how_others", language)] if wide >= WITH_SHARE else []
        legend.append(wording.counts(changes, language))
    else:
        phrase = "map_measure" if changes.pattern is None else "map_pattern"
        legend = wording.how_to_read(changes, language, say(phrase, language, most=MAX_OFFSET))
    shown = (one for change in changes.heads for one in largest_changes(changes, change, 2))
    if wide >= WITH_INTERVALS and any(one.measure.narrow for one in shown):
        legend.append(say("narrow", language))
    for text in legend:
        yield from out.prose(text, "dim")
    for note in changes.notes:
        if full or note.code not in MINOR:
            yield from out.tell("note", text=note_words(note, language))
    for one in (
        (changes.before,)
        if changes.before.bad == changes.after.bad
        else (changes.before, changes.after)
    ):
        yield from cells.draw_bad_lines(one, out)
    for text in wording.proofs(changes, language):
        yield from out.prose(text, "bold")
