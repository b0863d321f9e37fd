"""What stands below the table of heads in a terminal: how many have each role, which are alike, who finds relations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from attnviz.heads.numbers import tallied
from attnviz.heads.record import Comparison, Relation
from attnviz.heads.shown import NONE
from attnviz.heads.terminal.cells import (
    DOUBTFUL,
    ESTABLISHED,
    Column,
    family_style,
    fit,
    heads_in_lines,
    interval,
    number,
    prose,
    rows,
    spelled,
)
from attnviz.render.terminal.screen import Screen

AIRY = 80
"""The windows, in cells, from which on columns stand further apart."""


def roles(comparison: Comparison, screen: Screen) -> Iterator[Text]:
    """How many heads have each role first, how many of them establish it, and which they are."""
    for name, words, heads, n_established in tallied(comparison):
        many = f"{len(heads):>4}  "
        how_many = "" if name == NONE else f", {n_established or 'none'} established"
        title = Text(many)
        room = screen.width - len(many) - len(how_many)
        title.append(fit(words, room, screen), "dim" if name == NONE else family_style(name, screen))
        title.append(how_many)
        yield from heads_in_lines(title, [head.name for head in heads], screen, 50)
    yield from _other_roles(comparison, screen)


def _other_roles(comparison: Comparison, screen: Screen) -> Iterator[Text]:
    """What heads are established to do beside what is clearest of them."""
    found: dict[str, tuple[str, list[str]]] = {}
    for head in comparison.heads:
        for role in head.roles[1:]:
            if role.established:
                found.setdefault(role.name, (role.words, []))[1].append(head.name)
    if found:
        yield from prose("beside what is clearest of them, established too:", screen)
    for name, (words, heads) in found.items():
        title = Text(f"{len(heads):>4}  ")
        title.append(fit(words, screen.width - title.cell_len, screen), family_style(name, screen))
        yield from heads_in_lines(title, heads, screen, 50)


def clusters(comparison: Comparison, screen: Screen) -> Iterator[Text]:
    """Which heads look alike; those that look like no other in one line."""
    found: dict[int, list[str]] = {}
    for head in comparison.heads:
        if head.cluster is not None:
            found.setdefault(head.cluster, []).append(head.name)
    if len(comparison.heads) < 2 or not found:
        return
    yield Text()
    yield from prose("heads that look alike (average linkage of Jensen-Shannon distances)", screen)
    alone = [names[0] for names in found.values() if len(names) == 1]
    for cluster, names in sorted(found.items()):
        if len(names) > 1:
            yield from heads_in_lines(Text.assemble((f"{len(names):>4}  cluster {cluster}", "dim")), names, screen, 18)
    if alone:
        yield from heads_in_lines(Text.assemble((f"{len(alone):>4}  each alone", "dim")), alone, screen, 18)


def relations(found: Sequence[Relation], screen: Screen) -> Iterator[Text]:
    """The table of what heads find in a treebank."""
    gap = 1 if screen.width < AIRY else 2
    to = spelled("→", screen)
    marks = [spelled(ESTABLISHED if one.established else DOUBTFUL, screen) for one in found]
    columns = [
        Column(
            "  relation", [Text(f"{m} {spelled(r.name, screen)}") for m, r in zip(marks, found, strict=True)], least=8
        ),
        Column("n", [Text(f"{one.n:,}") for one in found], right=True, gap=gap),
        Column("head", [Text(f"{one.layer}.{one.head}") for one in found], gap=gap),
        Column(
            "looks",
            [Text(f"head{to}dep" if one.reverse else f"dep{to}head") for one in found],
            gap=gap,
        ),
        Column("right", [Text(number(one.accuracy, screen)) for one in found], right=True, gap=gap),
        Column("95 %", [Text(interval(one.low, one.high, screen)) for one in found], right=True, gap=gap),
        Column(
            "offset",
            [Text(f"{one.offset:+d} {number(one.offset_accuracy, screen)}") for one in found],
            right=True,
            gap=gap,
        ),
        Column("rand", [Text(number(one.untrained, screen)) for one in found], right=True, gap=gap),
    ]
    yield from prose("relations between words, and the head that finds each best", screen)
    yield from rows(columns, screen)
    yield from prose(
        "head: chosen on one half of the sentences, scored on the other (roles are scored on all); right: how often "
        "its largest weight is on the right word; offset: the best fixed one, in words; rand: the best head of random "
        "weights",
        screen,
        "dim",
    )
