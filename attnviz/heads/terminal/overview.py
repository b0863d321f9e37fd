"""What each head does, on one screen: a map of layers and heads, roles with their heads, relations that are found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.text import Text

from attnviz.heads.record import HeadComparison, HeadProfile, Relation, Role
from attnviz.heads.relations import FAMILY, terms_of
from attnviz.heads.roles import TOO_FEW
from attnviz.heads.selection import HeadRole, by_role
from attnviz.heads.terminal.cells import View, draw_grid, draw_notes, role_style, rule_style
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
    view, rows = View(screen, language), by_role(comparison)
    lines = view.tell("title", "bold", model=comparison.model)
    lines += view.prose(description(comparison, language, "mapped"))
    lines += view.prose(sample(comparison, language))
    lines += [Text(), *draw_grid(comparison, screen, lambda head, room: _sign(head, room, screen)), Text()]
    shown = [note for note in comparison.notes if note.code not in MINOR]
    best = next((row[0].head for row in rows if row[0].role is not None), comparison.heads[0])
    hidden = len(comparison.notes) - len(shown)
    more = say("more_notes", language, notes=plural(hidden, "note"), n=hidden) if hidden else ""
    ends = [*draw_notes(comparison, shown, view)]
    ends += view.prose(say("more", language, head=best.name) + more, "dim")
    for n in range(len(rows), min(FEWEST_ROLES, len(rows)) - 1, -1):
        roles = [*_roles(rows[:n], view)]
        if n < len(rows):
            roles += view.tell("more_roles", "dim", n=len(rows) - n)
        roles += [Text(), *_relations(comparison.relations, view), *_legend([row[0].role for row in rows[:n]], view)]
        if len(lines) + len(roles) + len(ends) <= LINES:
            break
    return [*lines, *roles, *ends]


def _sign(head: HeadProfile, room: int, screen: Screen) -> Text:
    """The sign of its role in so many cells: the arrow of a relation and the mark of doubt are never cut."""
    if head.role is None:
        return Text(spell(NO_SIGN, screen), "dim")
    rule = head.role.rule
    sign, end = rule.sign.removesuffix(rule.arrow), rule.arrow + "?" * (not head.role.established)
    return Text(spell(sign, screen)[: max(1, room - len(end))] + end, role_style(head.role, screen))


def _roles(rows: Sequence[Sequence[HeadRole]], view: View) -> Iterator[Text]:
    screen = view.screen
    roles = [row[0].role for row in rows]
    names = [
        Text(
            view.say("no_role") if role is None else spell(role.rule.short, screen),
            rule_style(role and role.rule, screen),
        )
        for role in roles
    ]
    ends = ["" if role is None else view.interval(role.low, role.high, narrow=role.narrow) for role in roles]
    columns = [
        Column("", [_role_sign(role, view) for role in roles]),
        view.column("role", names, least=12 if screen.width < WITH_CONTROLS else 22),
        view.column("best", ["" if role is None else view.number(role.score) for role in roles], right=True),
        view.column("95 %", ends, right=True),
    ]
    if screen.width >= WITH_CONTROLS:
        columns.append(view.column("to_beat", [_rival(role, view) for role in roles]))
    if screen.width >= WITH_WORDS:
        words = ["" if role is None else role.rule.say(view.language) for role in roles]
        columns.append(Column(view.say("meaning"), words, least=30))
    room = max(12, screen.width - sum(column.width + 2 for column in columns))
    heads = [_names([head.name for head, _ in row], room, view) for row in rows]
    yield from table([*columns, Column(view.say("heads"), heads, least=10)], screen)


def _rival(role: Role | None, view: View) -> str:
    """The control that comes closest: the upper end of its interval, which the score's lower end must lie above."""
    if role is None or role.rival is None:
        return ""
    one = role.rival
    which = view.say(f"mark_{one.name}") if one.offset is None else view.say("at_offset", n=one.offset)
    return f"{view.number(one.high)} {which}"


def _role_sign(role: Role | None, view: View) -> Text:
    if role is None:
        return Text(f"  {spell(NO_SIGN, view.screen)}", "dim")
    sign = spell(role.rule.sign + "?" * (not role.established), view.screen)
    return Text(f"{view.mark(established=role.established)} {sign}", role_style(role, view.screen))


def _names(names: Sequence[str], room: int, view: View) -> str:
    for n in range(len(names), 0, -1):
        more = "" if n == len(names) else f" {view.say('and_more', n=len(names) - n)}"
        text = " ".join(names[:n]) + more
        if cell_len(text) <= room:
            return text
    return plural(len(names), "head")


def _relations(relations: Sequence[Relation], view: View) -> Iterator[Text]:
    if not relations:
        return
    sure = sum(one.established for one in relations)
    few = sum(one.doubt is not None and one.doubt.code in TOO_FEW for one in relations)
    words = say(
        "relations_rest" if sure else "relations_none", view.language, n=len(relations), sure=sure,
        few=say("relations_few", view.language, n=few) if few else "",
    )  # fmt: skip
    yield from view.prose(f"{words}; {say('halves', view.language)}" if sure else words, "dim")


def _legend(roles: Sequence[Role | None], view: View) -> Iterator[Text]:
    width, language = view.screen.width, view.language
    there = [role for role in roles if role is not None]
    if width < WITH_WORDS:
        rules = [role.rule for role in there]
        words = [f"{rule.short}: {rule.say(language)}" for rule in rules if rule.family != FAMILY.name]
        if terms := terms_of(rules, language):
            words.append(say("terms", language, terms=", ".join(terms)))
        yield from view.prose("; ".join(words), "dim")
    doubts: dict[str, list[str]] = {}
    for role in there:
        if role.doubt is not None:
            doubts.setdefault(reason_of(role.doubt, language, brief=True), []).append(role.rule.short)
    yes, no = view.mark(established=True), view.mark(established=False)
    marks = say("marks", language, yes=yes, no=no, doubt=say("marked_so", language) if doubts else "")
    yield from view.prose(marks + (say("to_beat_is", language) if width >= WITH_CONTROLS else ""), "dim")
    if any(role.narrow for role in there):
        yield from view.prose(narrow(language), "dim")
    for why, names in doubts.items():
        yield from view.tell("because", "dim", role=", ".join(names), why=why)
