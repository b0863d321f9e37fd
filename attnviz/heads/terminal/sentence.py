"""The heads of a model side by side on one sentence: what each looks at most, which look alike, the strongest links."""

from __future__ import annotations

from collections.abc import Iterator

from rich.style import Style
from rich.text import Text

from attnviz.attention import Attention
from attnviz.heads.record import HeadComparison
from attnviz.heads.selection import received_by_words, sorted_heads, strongest_link, strongest_links
from attnviz.heads.terminal.cells import bar, draw_grid, draw_notes, mark, number, prose, role_style
from attnviz.heads.wording import description, plural, sample, say
from attnviz.render.palette import LEVELS
from attnviz.render.terminal.screen import Screen
from attnviz.render.terminal.table import Column, table
from attnviz.render.terminal.text import fit, spell

GROUPS = 5  # so many groups of heads that look alike are shown
WIDEST_TOKEN = 10  # cells that a head takes on the map at most
SHARES = ("self", "previous", "next", "first", "separator")  # the shares that the table of all heads has


def draw_sentence(
    comparison: HeadComparison, record: Attention, screen: Screen, language: str = "en", *, full: bool = False
) -> list[Text]:
    """What the heads do on one sentence."""
    lines = prose(say("one_title", language, model=comparison.model), screen, "bold")
    lines += prose(f"{sample(comparison, language)}; {description(comparison, language, 'mapped')}", screen)
    if comparison.roles_on is None:
        lines += prose(say("one_few", language), screen)
    lines.append(Text())
    if full:
        lines += _table(comparison, record, screen, language)
        return [*lines, Text(), *draw_notes(comparison, comparison.notes, screen, language)]
    received = received_by_words(record)
    labels = [token.text for token in record.key_tokens]

    def cell(layer: int, head: int, room: int) -> Text:
        most = int(received[layer, head].argmax())
        share = float(received[layer, head, most])
        style = screen.paint(round(min(share, 1.0) * (LEVELS - 1))) if screen.colour else Style()
        return Text(fit(labels[most], room, screen), style)

    if comparison.roles_on is not None:
        lines += [*_sorts(comparison.roles_on, record, screen, language), Text()]
    lines += prose(say("one_map", language), screen)
    lines += draw_grid(comparison, screen, lambda one, room: cell(one.layer, one.head, room), WIDEST_TOKEN)
    lines += [Text(), *_links(record, screen, language)]
    if groups := list(_groups(comparison, screen, language)):
        lines += [Text(), *groups]
    notes = [note for note in comparison.notes if note.code != "few_sentences"]
    lines += [Text(), *draw_notes(comparison, notes, screen, language)]
    return [*lines, *prose(say("more_one", language), screen, "dim")]


def _sorts(roles: HeadComparison, record: Attention, screen: Screen, language: str) -> Iterator[Text]:
    """The lecture's four sorts of heads: the head that is so, its role, and its weights in the sentence."""
    yield from prose(
        say("sorts", language, sentences=plural(roles.n_sentences, "sentence"), n=roles.n_sentences), screen
    )
    rows = []
    for one in sorted_heads(roles, record):
        head, role = one.had or (None, None)
        words = say("sort_none", language) if role is None else f"{role.rule.short} {number(role.score, screen)}"
        linked = max(one.cells, key=lambda cell: cell[2], default=None)
        cell = "" if linked is None else f"{linked[0]} → {linked[1]} {number(linked[2], screen)}"
        cell += say("sort_any", language, head=linked[3]) if head is None and linked is not None else ""
        strong = "" if one.strongest is None else f"{one.strongest[0]} → {one.strongest[1]} {one.strongest[2]:.2f}"
        mine = f"{mark(screen, established=head is not None)} {one.sort.words[language == 'ko']}"
        texts = [spell(text, screen) for text in (words, cell, strong)]
        rows.append([Text(mine, role_style(role, screen)), head.name if head else "", *texts])
    titles = [say(name, language) for name in ("sort", "head", "role", "sort_links", "top_link")]
    columns = zip(titles, zip(*rows, strict=True), strict=True)
    yield from table([Column(title, list(cells), least=10) for title, cells in columns], screen)


def _links(record: Attention, screen: Screen, language: str) -> Iterator[Text]:
    shown = dict(strongest_links(record))
    if not shown:
        return
    yield from prose(say("one_links", language), screen)
    columns = [
        Column(say("head", language), [f"{layer}.{head}" for _, layer, head in shown.values()]),
        Column(spell(say("from_to", language), screen), [_arrow(record, *link, screen) for link in shown], least=12),
        Column(say("weight", language), [number(weight, screen) for weight, _, _ in shown.values()], right=True),
        Column("", [bar(weight, 10, screen) for weight, _, _ in shown.values()]),
    ]
    yield from table(columns, screen)


def _arrow(record: Attention, query: int, key: int, screen: Screen) -> str:
    return spell(f"{record.query_tokens[query].text} → {record.key_tokens[key].text}", screen)


def _groups(comparison: HeadComparison, screen: Screen, language: str) -> Iterator[Text]:
    groups: dict[int, list[str]] = {}
    for head in comparison.heads:
        if head.cluster is not None:
            groups.setdefault(head.cluster, []).append(head.name)
    several = sorted((names for names in groups.values() if len(names) > 1), key=len, reverse=True)
    if not several:
        return
    yield from prose(say("alike", language), screen)
    for names in several[:GROUPS]:
        start = f"{len(names):>4}  "
        yield Text(start + fit(" ".join(names), screen.width - len(start), screen), no_wrap=True)


def _table(comparison: HeadComparison, record: Attention, screen: Screen, language: str) -> Iterator[Text]:
    received = received_by_words(record)
    most = [int(received[one.layer, one.head].argmax()) for one in comparison.heads]
    links = [strongest_link(record, one.layer, one.head) for one in comparison.heads]
    columns = [Column(say("head", language), [one.name for one in comparison.heads])]
    for name in SHARES:
        if name in comparison.names:
            values = [number(comparison.estimate(name, one.layer, one.head)[0], screen) for one in comparison.heads]
            columns.append(Column(comparison.measures[comparison.names.index(name)].label, values, right=True))
    shares = [received[one.layer, one.head, at] for one, at in zip(comparison.heads, most, strict=True)]
    found = ["" if link is None else f"{_arrow(record, *link[:2], screen)} {number(link[2], screen)}" for link in links]
    columns += [
        Column(say("most", language), [spell(record.key_tokens[at].text, screen) for at in most], least=8),
        Column(say("share", language), [number(float(share), screen) for share in shares], right=True),
        Column(say("top_link", language), found, least=12),
    ]
    yield from table(columns, screen)
