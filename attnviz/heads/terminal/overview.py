"""What each head does, on one screen: a map of layers and heads, roles with their heads, relations that are found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.text import Text

from attnviz.heads.notes import MINOR, reason_of
from attnviz.heads.record import HeadComparison, Relation, Role
from attnviz.heads.relations import rule_of
from attnviz.heads.selection import RoleHeads, by_role
from attnviz.heads.terminal.cells import draw_grid, draw_notes, interval, mark, number, prose, role_style, rule_style
from attnviz.heads.terminal.sentence import draw_sentence
from attnviz.heads.wording import counted, described, sample, say
from attnviz.render.terminal.screen import Screen
from attnviz.render.terminal.table import Column, table
from attnviz.render.terminal.text import spell

WITH_WORDS = 116
"""The windows, in cells, from which on a role stands with its words; in narrower ones these stand below."""
NO_SIGN = "·"
"""Stands on the map for a head without a clear role."""


def draw_overview(comparison: HeadComparison, screen: Screen, language: str = "en") -> list[Text]:
    """The first screen of a comparison; of one sentence what each head looks at in it.

    Args:
        comparison: what to show.
        screen: where.
        language: ``en`` or ``ko``.
    """
    if comparison.attention is not None:
        return draw_sentence(comparison, comparison.attention, screen, language)
    rows = by_role(comparison)
    lines = prose(say("title", language, model=comparison.model), screen, "bold")
    lines += prose(described(comparison, language, "mapped"), screen)
    lines += prose(sample(comparison, language), screen)
    lines += [Text(), *draw_map(comparison, screen)]
    lines += [Text(), *_roles(rows, screen, language)]
    if comparison.relations:
        lines += [Text(), *_relations(comparison.relations, screen, language)]
    lines += [Text(), *_legend(rows, screen, language)]
    shown = [note for note in comparison.notes if note.code not in MINOR]
    lines += draw_notes(comparison, shown, screen, language)
    best = next((row.heads[0][0] for row in rows if row.rule is not None), comparison.heads[0])
    hidden = len(comparison.notes) - len(shown)
    more = say("more_notes", language, notes=counted(hidden, "note"), n=hidden) if hidden else ""
    return [*lines, *prose(say("more", language, head=best.name) + more, screen, "dim")]


def draw_map(comparison: HeadComparison, screen: Screen) -> Iterator[Text]:
    """The sign of each head's clearest role, in its colour; a question mark behind one that is not established."""
    yield from draw_grid(
        comparison, screen, lambda head, room: _sign(head.roles[0] if head.roles else None, room, screen)
    )


def _sign(role: Role | None, room: int, screen: Screen) -> Text:
    """The sign of a role in so many cells: the arrow of a relation and the question mark are never cut."""
    if role is None:
        return Text(spell(NO_SIGN, screen), "dim")
    sign, end = role.rule.sign, "" if role.established else "?"
    if sign.endswith(">"):
        sign, end = sign[:-1], ">" + end
    return Text(spell(sign, screen)[: max(1, room - len(end))] + end, role_style(role, screen))


def _roles(rows: Sequence[RoleHeads], screen: Screen, language: str) -> Iterator[Text]:
    """A line a role: its sign, its name, its best score, its heads."""
    signs, names, scores, ends = [], [], [], []
    for row in rows:
        role = row.heads[0][1]
        signs.append(_marked(row, screen))
        name = say("no_role", language) if row.rule is None else row.rule.short
        names.append(Text(spell(name, screen), rule_style(row.rule, screen)))
        scores.append("" if role is None else number(role.score, screen))
        ends.append("" if role is None else interval(role.low, role.high, screen))
    columns = [
        Column("", signs),
        Column(say("role", language), names, least=12),
        Column(say("best", language), scores, right=True),
        Column("95 %", ends, right=True),
    ]
    if screen.width >= WITH_WORDS:
        words = ["" if row.rule is None else row.rule.say(language) for row in rows]
        columns.append(Column(say("meaning", language), words, least=30))
    room = max(12, screen.width - sum(column.width + 2 for column in columns))
    heads = [_heads(row, room, screen, language) for row in rows]
    yield from table([*columns, Column(say("heads", language), heads, least=10)], screen)


def _marked(row: RoleHeads, screen: Screen) -> Text:
    """Whether a role is established, and its sign on the map."""
    if row.rule is None:
        return Text(f"  {spell(NO_SIGN, screen)}", "dim")
    sign = row.rule.sign + "?" * (row.doubt is not None)
    return Text(
        f"{mark(screen, established=row.doubt is None)} {spell(sign, screen)}", role_style(row.heads[0][1], screen)
    )


def _heads(row: RoleHeads, room: int, screen: Screen, language: str) -> str:
    """As many heads as have room, and how many more there are."""
    names = [head.name for head, _ in row.heads]
    for n in range(len(names), 0, -1):
        more = "" if n == len(names) else " " + spell(say("and_more", language, n=len(names) - n), screen)
        text = " ".join(names[:n]) + more
        if cell_len(text) <= room:
            return text
    return counted(len(names), "head")


def _relations(relations: Sequence[Relation], screen: Screen, language: str) -> Iterator[Text]:
    """The relations that are established, each with its best head; how many are not."""
    sure = [one for one in relations if one.established]
    few = sum(one.doubt is not None and one.doubt.code.startswith("too_few") for one in relations)
    counts = {"n": len(relations), "sure": len(sure), "few": say("relations_few", language, n=few) if few else ""}
    if not sure:
        yield from prose(say("relations_none", language, **counts), screen)
        return
    rules = [rule_of(one.name, reverse=one.reverse) for one in sure]
    yield from prose(say("relations_established", language), screen)
    columns = [
        Column(
            f"  {say('relation', language)}",
            [
                Text(f"{mark(screen, established=True)} {spell(rule.short, screen)}", rule_style(rule, screen))
                for rule in rules
            ],
            least=12,
        ),
        Column(say("head", language), [f"{one.layer}.{one.head}" for one in sure]),
        Column(say("right", language), [number(one.accuracy, screen) for one in sure], right=True),
        Column("95 %", [interval(one.low, one.high, screen) for one in sure], right=True),
        Column("n", [f"{one.n:,}" for one in sure], right=True),
        Column(
            say("fixed", language),
            [f"{one.offset:+d} {number(one.offset_accuracy, screen)}" for one in sure],
            right=True,
        ),
        Column(say("random", language), [number(one.untrained, screen) for one in sure], right=True),
    ]
    yield from table(columns, screen)
    yield from prose(say("relations_rest", language, **counts) + "; " + say("halves", language), screen, "dim")


def _legend(rows: Sequence[RoleHeads], screen: Screen, language: str) -> Iterator[Text]:
    """What the names that are shown mean, what the marks mean, and why roles are not established."""
    if screen.width < WITH_WORDS:
        rules = {row.rule.short: row.rule.say(language) for row in rows if row.rule is not None}
        words = "; ".join(f"{short}: {words}" for short, words in rules.items())
        yield from prose(words, screen, "dim")
    doubtful = say("marked_so", language) if any(row.doubt is not None for row in rows) else ""
    yes, no = mark(screen, established=True), mark(screen, established=False)
    yield from prose(say("marks", language, yes=yes, no=no, doubt=doubtful), screen, "dim")
    for why, names in _doubts(rows, language).items():
        yield from prose(say("because", language, role=", ".join(names), why=why), screen, "dim")


def _doubts(rows: Sequence[RoleHeads], language: str) -> dict[str, list[str]]:
    """The reasons why roles are not established, each with the roles."""
    found: dict[str, list[str]] = {}
    for row in rows:
        if row.rule is not None and row.doubt is not None:
            found.setdefault(reason_of(row.doubt, language), []).append(row.rule.short)
    return found
