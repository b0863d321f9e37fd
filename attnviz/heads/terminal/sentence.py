"""The heads of a model side by side on one sentence: what each looks at most, which look alike, the strongest links."""

from __future__ import annotations

from collections.abc import Iterator

from rich.style import Style
from rich.text import Text

from attnviz.attention import Attention
from attnviz.heads.record import HeadComparison, HeadProfile
from attnviz.heads.selection import received_by_words, sorted_heads, strongest_link, strongest_links
from attnviz.heads.terminal.cells import View, bar, draw_grid, draw_notes, role_style
from attnviz.heads.wording import description, plural, sample
from attnviz.render.palette import LEVELS
from attnviz.render.terminal.screen import Screen
from attnviz.render.terminal.table import Column, table
from attnviz.render.terminal.text import fit

GROUPS = 5  # so many groups of heads that look alike are shown
WIDEST_TOKEN = 10  # cells that a head takes on the map at most
SHARES = ("self", "previous", "next", "first", "separator")  # the shares that the table of all heads has


def draw_sentence(
    comparison: HeadComparison, record: Attention, screen: Screen, language: str = "en", *, full: bool = False
) -> list[Text]:
    """What the heads do on one sentence."""
    view = View(screen, language)
    lines = view.tell("one_title", "bold", model=comparison.model)
    lines += view.prose(f"{sample(comparison, language)}; {description(comparison, language, 'mapped')}")
    if comparison.roles_on is None:
        lines += view.tell("one_few")
    lines.append(Text())
    if full:
        lines += _table(comparison, record, view)
        return [*lines, Text(), *draw_notes(comparison, comparison.notes, view)]
    received = received_by_words(record)

    def cell(head: HeadProfile, room: int) -> Text:
        most = int(received[head.place].argmax())
        share = float(received[head.place][most])
        style = screen.paint(round(min(share, 1.0) * (LEVELS - 1))) if screen.colour else Style()
        return Text(fit(record.key_tokens[most].text, room, screen), style)

    if comparison.roles_on is not None:
        lines += [*_sorts(comparison.roles_on, record, view), Text()]
    lines += [*view.tell("one_map"), *draw_grid(comparison, screen, cell, WIDEST_TOKEN)]
    lines += [Text(), *_links(record, view)]
    if groups := list(_groups(comparison, view)):
        lines += [Text(), *groups]
    notes = [note for note in comparison.notes if note.code != "few_sentences"]
    return [*lines, Text(), *draw_notes(comparison, notes, view), *view.tell("more_one", "dim")]


def _sorts(roles: HeadComparison, record: Attention, view: View) -> Iterator[Text]:
    """The lecture's four sorts of heads: the head that is so, its role, and its weights in the sentence."""
    yield from view.tell("sorts", sentences=plural(roles.n_sentences, "sentence"), n=roles.n_sentences)
    rows = []
    for one in sorted_heads(roles, record):
        head, role = one.had or (None, None)
        words = view.say("sort_none") if role is None else f"{role.rule.short} {view.number(role.score)}"
        linked = max(one.cells, key=lambda cell: cell[2], default=None)
        cell = "" if linked is None else f"{linked[0]} → {linked[1]} {view.number(linked[2])}"
        cell += view.say("sort_any", head=linked[3]) if head is None and linked is not None else ""
        strong = "" if one.strongest is None else f"{one.strongest[0]} → {one.strongest[1]} {one.strongest[2]:.2f}"
        mine = f"{view.mark(established=head is not None)} {one.sort.words[view.language == 'ko']}"
        rows.append([Text(mine, role_style(role, view.screen)), head.name if head else "", words, cell, strong])
    titles = "sort", "head", "role", "sort_links", "top_link"
    columns = zip(titles, zip(*rows, strict=True), strict=True)
    yield from table([view.column(title, cells, least=10) for title, cells in columns], view.screen)


def _links(record: Attention, view: View) -> Iterator[Text]:
    shown = dict(strongest_links(record))
    if not shown:
        return
    yield from view.tell("one_links")
    columns = [
        view.column("head", [f"{layer}.{head}" for _, layer, head in shown.values()]),
        view.column("from_to", [_arrow(record, *link) for link in shown], least=12),
        view.numbers("weight", [weight for weight, _, _ in shown.values()]),
        view.column("", [bar(weight, 10, view.screen) for weight, _, _ in shown.values()]),
    ]
    yield from table(columns, view.screen)


def _arrow(record: Attention, query: int, key: int) -> str:
    return f"{record.query_tokens[query].text} → {record.key_tokens[key].text}"


def _groups(comparison: HeadComparison, view: View) -> Iterator[Text]:
    several = sorted((names for names in comparison.clusters.values() if len(names) > 1), key=len, reverse=True)
    if not several:
        return
    yield from view.tell("alike")
    for names in several[:GROUPS]:
        start = f"{len(names):>4}  "
        yield Text(start + fit(" ".join(names), view.screen.width - len(start), view.screen), no_wrap=True)


def _table(comparison: HeadComparison, record: Attention, view: View) -> Iterator[Text]:
    received, heads = received_by_words(record), comparison.heads
    most = [int(received[one.place].argmax()) for one in heads]
    links = [strongest_link(record, *one.place) for one in heads]
    found = ["" if link is None else f"{_arrow(record, *link[:2])} {view.number(link[2])}" for link in links]
    columns = [
        view.column("head", [one.name for one in heads]),
        *(
            Column(one.label, [view.number(comparison.estimate(name, *head.place)[0]) for head in heads], right=True)
            for name in SHARES
            for one in comparison.measures
            if one.name == name
        ),
        view.column("most", [record.key_tokens[at].text for at in most], least=8),
        view.numbers("share", [float(received[one.place][at]) for one, at in zip(heads, most, strict=True)]),
        view.column("top_link", found, least=12),
    ]
    yield from table(columns, view.screen)
