"""All heads on one screen: a map, roles with their heads, relations; or their patterns on one sentence."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from attnviz.attention import Attention
from attnviz.heads.record import HeadComparison, HeadProfile, Relation, Role
from attnviz.heads.relations import FAMILY, terms_of
from attnviz.heads.roles import CONTROLS, TOO_FEW
from attnviz.heads.selection import (
    HeadRole,
    by_role,
    received_by_words,
    sorted_heads,
    strongest_link,
    strongest_links,
)
from attnviz.heads.terminal.cells import (
    Writer,
    bar,
    draw_clusters,
    draw_grid,
    draw_notes,
    role_style,
    rule_style,
)
from attnviz.heads.wording import (
    MINOR,
    change_columns,
    description,
    explain_changes,
    model_names,
    plural,
    reason_of,
    role_columns,
    sample,
    say,
)
from attnviz.render.palette import LEVELS
from attnviz.render.terminal.screen import Screen
from attnviz.render.terminal.table import Column, table
from attnviz.render.terminal.text import fit, spell
from attnviz.text.messages import in_language

WITH_WORDS = 116
"""The windows, in cells, from which on a role stands with its words; in narrower ones these stand below."""
WITH_CONTROLS = 76  # likewise, with the control that comes closest
LINES, FEWEST_ROLES = 48, 6
"""Of a screen, as far as the map leaves room; so many roles are named of a model of any size."""
NO_SIGN = "·"  # stands on the map for a head without a clear role
CHANGED = 6  # so many heads are named that differ most from those of a second model
WIDEST_TOKEN = 10  # cells that a head takes on the map at most
# the shares that the table of all heads has
SHARES = ("self", "previous", "next", "first", "separator")


def draw_overview(comparison: HeadComparison, screen: Screen, language: str = "en") -> list[Text]:
    """The first screen of a comparison; of one sentence what each head looks at in it."""
    if comparison.attention is not None:
        return draw_sentence(comparison, comparison.attention, screen, language)
    out, rows = Writer(screen, language), by_role(comparison)
    lines = out.tell("title", "bold", model=model_names(comparison))
    lines += out.prose(description(comparison, language, "mapped"))
    lines += out.prose(sample(comparison, language))
    lines += [
        Text(),
        *draw_grid(comparison, screen, lambda head, room: _sign(head, room, screen)),
        Text(),
        *_changes(comparison, out),
    ]
    shown = [note for note in comparison.notes if note.code not in MINOR]
    best = next((row[0].head for row in rows if row[0].role is not None), comparison.heads[0])
    hidden = len(comparison.notes) - len(shown)
    more = say("more_notes", language, n=hidden) if hidden else ""
    ends = [*draw_notes(comparison, shown, out)]
    ends += out.prose(say("more", language, head=best.name) + more, "dim")
    for n in range(len(rows), min(FEWEST_ROLES, len(rows)) - 1, -1):
        roles = [*_roles(rows[:n], out)]
        if n < len(rows):
            roles += out.tell("more_roles", "dim", n=len(rows) - n)
        roles += [
            Text(),
            *_relations(comparison.relations, out),
            *_legend([row[0].role for row in rows[:n]], out),
        ]
        if len(lines) + len(roles) + len(ends) <= LINES:
            break
    return [*lines, *roles, *ends]


def _changes(comparison: HeadComparison, out: Writer) -> Iterator[Text]:
    """How far the heads are from those of the second model: a map, and those that differ most."""
    if comparison.against is None:
        return
    known = [one.change.divergence for one in comparison.heads if one.change is not None]
    largest = max((one for one in known if one > 0), default=1.0)

    def cell(head: HeadProfile, room: int) -> Text:
        value = math.nan if head.change is None else head.change.divergence
        style = Style()
        if out.screen.colour and not math.isnan(value):
            style = out.screen.paint(round(value / largest * (LEVELS - 1)))
        return Text(out.number(value).removeprefix("0")[:room], style)

    explained, moved = explain_changes(comparison, out.language)
    yield from out.prose(explained)
    yield from draw_grid(comparison, out.screen, cell)
    yield Text()
    yield from out.prose(f"{moved}; {say('changed_most', out.language)}")
    columns = change_columns(comparison, CHANGED, out.language)
    yield from table(
        [out.column(title, cells, right=right) for title, cells, right in columns], out.screen
    )
    yield Text()


def _sign(head: HeadProfile, room: int, screen: Screen) -> Text:
    """The sign of its role in so many cells: the arrow of a relation and the mark of doubt are never cut."""
    if head.role is None:
        return Text(spell(NO_SIGN, screen), "dim")
    rule = head.role.rule
    sign, end = rule.sign.removesuffix(rule.arrow), rule.arrow + "?" * (not head.role.established)
    return Text(spell(sign, screen)[: max(1, room - len(end))] + end, role_style(head.role, screen))


def _roles(rows: Sequence[Sequence[HeadRole]], out: Writer) -> Iterator[Text]:
    screen = out.screen
    roles = [row[0].role for row in rows]
    rules = [None if role is None else role.rule for role in roles]
    named, _, _, scores, _, meaning = role_columns(rows, out.language)
    names = [
        Text(spell(name, screen), rule_style(rule, screen))
        for name, rule in zip(named.cells, rules, strict=True)
    ]
    ends = [
        "" if role is None else out.interval(role.low, role.high, narrow=role.narrow)
        for role in roles
    ]
    columns = [
        Column("", [_role_sign(role, out) for role in roles]),
        out.column("role", names, least=12 if screen.width < WITH_CONTROLS else 22),
        out.column("best", scores.cells, right=True),
        out.column("95 %", ends, right=True),
    ]
    if screen.width >= WITH_CONTROLS:
        columns.append(out.column("to_beat", [_rival(role, out) for role in roles]))
    if screen.width >= WITH_WORDS:
        columns.append(out.column(meaning.title, meaning.cells, least=30))
    room = max(12, screen.width - sum(column.width + 2 for column in columns))
    heads = [_names([head.name for head, _ in row], room, out) for row in rows]
    yield from table([*columns, Column(out.say("heads"), heads, least=10)], screen)


def _rival(role: Role | None, out: Writer) -> str:
    """The control that comes closest: the upper end of its interval, which the score's lower end must lie above."""
    if role is None or role.rival is None:
        return ""
    one = role.rival
    which = (
        in_language(CONTROLS[one.name].title, out.language)
        if one.offset is None
        else out.say("at_offset", n=one.offset)
    )
    return f"{out.number(one.high)} {which}"


def _role_sign(role: Role | None, out: Writer) -> Text:
    if role is None:
        return Text(f"  {spell(NO_SIGN, out.screen)}", "dim")
    sign = spell(role.rule.sign + "?" * (not role.established), out.screen)
    return Text(f"{out.mark(established=role.established)} {sign}", role_style(role, out.screen))


def _names(names: Sequence[str], room: int, out: Writer) -> str:
    for n in range(len(names), 0, -1):
        more = "" if n == len(names) else f" {out.say('and_more', n=len(names) - n)}"
        text = " ".join(names[:n]) + more
        if cell_len(text) <= room:
            return text
    return plural(len(names), "head")


def _relations(relations: Sequence[Relation], out: Writer) -> Iterator[Text]:
    if not relations:
        return
    sure = sum(one.established for one in relations)
    few = sum(one.doubt is not None and one.doubt.code in TOO_FEW for one in relations)
    words = say(
        "relations_rest" if sure else "relations_none",
        out.language,
        n=len(relations),
        sure=sure,
        few=say("relations_few", out.language, n=few) if few else "",
    )
    yield from out.prose(f"{words}; {say('halves', out.language)}" if sure else words, "dim")


def _legend(roles: Sequence[Role | None], out: Writer) -> Iterator[Text]:
    width, language = out.screen.width, out.language
    there = [role for role in roles if role is not None]
    if width < WITH_WORDS:
        rules = [role.rule for role in there]
        words = [
            f"{rule.short}: {in_language(rule.words, language)}"
            for rule in rules
            if rule.family != FAMILY.name
        ]
        if terms := terms_of(rules, language):
            words.append(say("terms", language, terms=", ".join(terms)))
        yield from out.prose("; ".join(words), "dim")
    doubts: dict[str, list[str]] = {}
    for role in there:
        if role.doubt is not None:
            doubts.setdefault(reason_of(role.doubt, language, brief=True), []).append(
                role.rule.short
            )
    marks = say("marks", language) + say("marked_so", language) * bool(doubts)
    yield from out.prose(marks + say("to_beat_is", language) * (width >= WITH_CONTROLS), "dim")
    if any(role.narrow for role in there):
        yield from out.tell("narrow", "dim")
    for why, names in doubts.items():
        yield from out.tell("because", "dim", role=", ".join(names), why=why)


def draw_sentence(
    comparison: HeadComparison,
    record: Attention,
    screen: Screen,
    language: str = "en",
    *,
    full: bool = False,
) -> list[Text]:
    """Draw the heads on one sentence."""
    out = Writer(screen, language)
    lines = out.tell("one_title", "bold", model=comparison.model)
    lines += out.prose(
        f"{sample(comparison, language)}; {description(comparison, language, 'mapped')}"
    )
    if comparison.roles_on is None:
        lines += out.tell("one_few")
    lines.append(Text())
    if full:
        lines += _table(comparison, record, out)
        return [*lines, Text(), *draw_notes(comparison, comparison.notes, out)]
    received = received_by_words(record)

    def cell(head: HeadProfile, room: int) -> Text:
        most = int(received[head.place].argmax())
        share = float(received[head.place][most])
        style = screen.paint(round(min(share, 1.0) * (LEVELS - 1))) if screen.colour else Style()
        return Text(fit(record.key_tokens[most].text, room, screen), style)

    if comparison.roles_on is not None:
        lines += [*_sorts(comparison.roles_on, record, out), Text()]
    lines += [*out.tell("one_map"), *draw_grid(comparison, screen, cell, WIDEST_TOKEN)]
    lines += [Text(), *_links(record, out)]
    if groups := list(draw_clusters(comparison, out)):
        lines += [Text(), *groups]
    notes = [note for note in comparison.notes if note.code != "few_sentences"]
    return [*lines, Text(), *draw_notes(comparison, notes, out), *out.tell("more_one", "dim")]


def _sorts(roles: HeadComparison, record: Attention, out: Writer) -> Iterator[Text]:
    """The lecture's four sorts of heads: the head that is so, its role, and its weights in the sentence."""
    yield from out.tell("sorts", n=roles.n_sentences)
    rows = []
    for one in sorted_heads(roles, record):
        head, role = one.best or (None, None)
        words = (
            out.say("sort_none") if role is None else f"{role.rule.short} {out.number(role.score)}"
        )
        linked = max(one.cells, key=lambda cell: cell[2], default=None)
        cell = "" if linked is None else f"{linked[0]} → {linked[1]} {out.number(linked[2])}"
        cell += out.say("sort_any", head=linked[3]) if head is None and linked is not None else ""
        strong = (
            ""
            if one.strongest is None
            else f"{one.strongest[0]} → {one.strongest[1]} {one.strongest[2]:.2f}"
        )
        mine = (
            f"{out.mark(established=head is not None)} {in_language(one.sort.words, out.language)}"
        )
        rows.append(
            [
                Text(mine, role_style(role, out.screen)),
                head.name if head else "",
                words,
                cell,
                strong,
            ]
        )
    titles = "sort", "head", "role", "sort_links", "top_link"
    columns = zip(titles, zip(*rows, strict=True), strict=True)
    yield from table([out.column(title, cells, least=10) for title, cells in columns], out.screen)


def _links(record: Attention, out: Writer) -> Iterator[Text]:
    shown = dict(strongest_links(record))
    if not shown:
        return
    yield from out.tell("one_links")
    columns = [
        out.column("head", [f"{layer}.{head}" for _, layer, head in shown.values()]),
        out.column("from_to", [_arrow(record, *link) for link in shown], least=12),
        out.numbers("weight", [weight for weight, _, _ in shown.values()]),
        out.column("", [bar(weight, 10, out.screen) for weight, _, _ in shown.values()]),
    ]
    yield from table(columns, out.screen)


def _arrow(record: Attention, query: int, key: int) -> str:
    return f"{record.query_tokens[query].text} → {record.key_tokens[key].text}"


def _table(comparison: HeadComparison, record: Attention, out: Writer) -> Iterator[Text]:
    received, heads = received_by_words(record), comparison.heads
    most = [int(received[one.place].argmax()) for one in heads]
    links = [strongest_link(record, *one.place) for one in heads]
    found = [
        "" if link is None else f"{_arrow(record, *link[:2])} {out.number(link[2])}"
        for link in links
    ]
    columns = [
        out.column("head", [one.name for one in heads]),
        *(
            Column(
                one.label,
                [out.number(comparison.estimate(name, *head.place)[0]) for head in heads],
                right=True,
            )
            for name in SHARES
            for one in comparison.measures
            if one.name == name
        ),
        out.column("most", [record.key_tokens[at].text for at in most], least=8),
        out.numbers(
            "share", [float(received[one.place][at]) for one, at in zip(heads, most, strict=True)]
        ),
        out.column("top_link", found, least=12),
    ]
    yield from table(columns, out.screen)
