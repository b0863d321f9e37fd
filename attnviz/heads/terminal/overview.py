"""What each head does, on one screen: a map of layers and heads, roles with their heads, relations that are found."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.text import Text

from attnviz.heads.record import HeadComparison, Relation, Role
from attnviz.heads.relations import FAMILY, terms_of
from attnviz.heads.roles import TOO_FEW
from attnviz.heads.selection import RoleHeads, by_role
from attnviz.heads.terminal.cells import draw_grid, draw_notes, interval, mark, number, prose, role_style, rule_style
from attnviz.heads.terminal.sentence import draw_sentence
from attnviz.heads.wording import MINOR, description, narrow, plural, reason_of, sample, say
from attnviz.render.terminal.screen import Screen
from attnviz.render.terminal.table import Column, table
from attnviz.render.terminal.text import spell

WITH_WORDS = 116
"""The windows, in cells, from which on a role stands with its words; in narrower ones these stand below."""
WITH_CONTROLS = 76  # likewise, with the control that comes closest
LINES, FEWEST_ROLES = 48, 6
"""Of a screen, as far as the map leaves room; so many roles are named of a model of any size."""
NO_SIGN = "·"  # stands on the map for a head without a clear role


def draw_overview(comparison: HeadComparison, screen: Screen, language: str = "en") -> list[Text]:
    """The first screen of a comparison; of one sentence what each head looks at in it."""
    if comparison.attention is not None:
        return draw_sentence(comparison, comparison.attention, screen, language)
    rows = by_role(comparison)
    lines = prose(say("title", language, model=comparison.model), screen, "bold")
    lines += prose(description(comparison, language, "mapped"), screen)
    lines += prose(sample(comparison, language), screen)
    lines += [Text(), *draw_map(comparison, screen), Text()]
    shown = [note for note in comparison.notes if note.code not in MINOR]
    best = next((row.heads[0][0] for row in rows if row.rule is not None), comparison.heads[0])
    hidden = len(comparison.notes) - len(shown)
    more = say("more_notes", language, notes=plural(hidden, "note"), n=hidden) if hidden else ""
    ends = [*draw_notes(comparison, shown, screen, language)]
    ends += prose(say("more", language, head=best.name) + more, screen, "dim")
    for n in range(len(rows), min(FEWEST_ROLES, len(rows)) - 1, -1):
        roles = [*_roles(rows[:n], screen, language)]
        if n < len(rows):
            roles += prose(say("more_roles", language, n=len(rows) - n), screen, "dim")
        roles += [Text(), *_relations(comparison.relations, screen, language), *_legend(rows[:n], screen, language)]
        if len(lines) + len(roles) + len(ends) <= LINES:
            break
    return [*lines, *roles, *ends]


def draw_map(comparison: HeadComparison, screen: Screen) -> Iterator[Text]:
    """The sign of each head's clearest role, in its colour; a question mark behind one that is not established."""
    yield from draw_grid(
        comparison, screen, lambda head, room: _sign(head.roles[0] if head.roles else None, room, screen)
    )


def _sign(role: Role | None, room: int, screen: Screen) -> Text:
    """The sign of a role in so many cells: the arrow of a relation and the question mark are never cut."""
    if role is None:
        return Text(spell(NO_SIGN, screen), "dim")
    sign, end = role.rule.sign.removesuffix(role.rule.arrow), role.rule.arrow + "?" * (not role.established)
    return Text(spell(sign, screen)[: max(1, room - len(end))] + end, role_style(role, screen))


def _roles(rows: Sequence[RoleHeads], screen: Screen, language: str) -> Iterator[Text]:
    signs, names, scores, ends, rivals = [], [], [], [], []
    for row in rows:
        role = row.heads[0][1]
        signs.append(_sign_of(row, screen))
        name = say("no_role", language) if row.rule is None else row.rule.short
        names.append(Text(spell(name, screen), rule_style(row.rule, screen)))
        scores.append("" if role is None else number(role.score, screen))
        ends.append("" if role is None else interval(role.low, role.high, screen, narrow=role.narrow))
        rivals.append("" if role is None else _rival(role, screen, language))
    columns = [
        Column("", signs), Column(say("role", language), names, least=12 if screen.width < WITH_CONTROLS else 22),
        Column(say("best", language), scores, right=True), Column("95 %", ends, right=True),
    ]  # fmt: skip
    if screen.width >= WITH_CONTROLS:
        columns.append(Column(say("to_beat", language), rivals))
    if screen.width >= WITH_WORDS:
        words = ["" if row.rule is None else row.rule.say(language) for row in rows]
        columns.append(Column(say("meaning", language), words, least=30))
    room = max(12, screen.width - sum(column.width + 2 for column in columns))
    heads = [_heads(row, room, screen, language) for row in rows]
    yield from table([*columns, Column(say("heads", language), heads, least=10)], screen)


def _rival(role: Role, screen: Screen, language: str) -> str:
    """The control that comes closest: the upper end of its interval, which the score's lower end must lie above."""
    controls = [one for one in role.controls if one.rules_out and not math.isnan(one.high)]
    if not controls:
        return ""
    one = max(controls, key=lambda control: control.high)
    which = say(f"mark_{one.name}", language) if one.offset is None else say("at_offset", language, n=one.offset)
    return f"{number(one.high, screen)} {which}"


def _sign_of(row: RoleHeads, screen: Screen) -> Text:
    if row.rule is None:
        return Text(f"  {spell(NO_SIGN, screen)}", "dim")
    sign = row.rule.sign + "?" * (row.doubt is not None)
    return Text(
        f"{mark(screen, established=row.doubt is None)} {spell(sign, screen)}", role_style(row.heads[0][1], screen)
    )


def _heads(row: RoleHeads, room: int, screen: Screen, language: str) -> str:
    names = [head.name for head, _ in row.heads]
    for n in range(len(names), 0, -1):
        more = "" if n == len(names) else " " + spell(say("and_more", language, n=len(names) - n), screen)
        text = " ".join(names[:n]) + more
        if cell_len(text) <= room:
            return text
    return plural(len(names), "head")


def _relations(relations: Sequence[Relation], screen: Screen, language: str) -> Iterator[Text]:
    if not relations:
        return
    sure = sum(one.established for one in relations)
    few = sum(one.doubt is not None and one.doubt.code in TOO_FEW for one in relations)
    counts = {"n": len(relations), "sure": sure, "few": say("relations_few", language, n=few) if few else ""}
    if sure:
        yield from prose(say("relations_rest", language, **counts) + "; " + say("halves", language), screen, "dim")
    else:
        yield from prose(say("relations_none", language, **counts), screen, "dim")


def _legend(rows: Sequence[RoleHeads], screen: Screen, language: str) -> Iterator[Text]:
    if screen.width < WITH_WORDS:
        rules = [row.rule for row in rows if row.rule is not None]
        words = [f"{rule.short}: {rule.say(language)}" for rule in rules if rule.family != FAMILY.name]
        if terms := terms_of(rules, language):
            words.append(say("terms", language, terms=", ".join(terms)))
        yield from prose("; ".join(words), screen, "dim")
    doubtful = say("marked_so", language) if any(row.doubt is not None for row in rows) else ""
    yes, no = mark(screen, established=True), mark(screen, established=False)
    marks = say("marks", language, yes=yes, no=no, doubt=doubtful)
    beat = say("to_beat_is", language) if screen.width >= WITH_CONTROLS else ""
    yield from prose(marks + beat, screen, "dim")
    if any(role is not None and role.narrow for row in rows for _, role in row.heads[:1]):
        yield from prose(narrow(language), screen, "dim")
    for why, names in _doubts(rows, language).items():
        yield from prose(say("because", language, role=", ".join(names), why=why), screen, "dim")


def _doubts(rows: Sequence[RoleHeads], language: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in rows:
        if row.rule is not None and row.doubt is not None:
            found.setdefault(reason_of(row.doubt, language, brief=True), []).append(row.rule.short)
    return found
