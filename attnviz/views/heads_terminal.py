"""What each head does, in a terminal: a line a head, then roles, clusters, relations, and how to read it all.

No row is ever wrapped. A narrow window shows fewer columns, and what is cut ends in an ellipsis; a wide one has bars
with their numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.text import Text

from attnviz.comparison import MAX_OFFSET, Comparison, Relation, measure_of
from attnviz.views import heads_roles
from attnviz.views.heads_cells import (
    DOUBTFUL,
    ESTABLISHED,
    LEAST_TOP,
    Column,
    bar,
    family_style,
    fit,
    heads_in_lines,
    interval,
    mark,
    number,
    prose,
    role_style,
    rows,
    spark,
    spelled,
)
from attnviz.views.heads_roles import CONTROLS, MOST, NONE, NOT_EXPLANATION, Shown, chosen, counted, why_not
from attnviz.views.terminal import Screen

BARS = {
    "previous": ("prev", "previous"),
    "next": ("next", "next"),
    "first": ("1st", "first"),
    "separator": ("sep", "separator"),
    "entropy_share": ("entr", "entropy"),
    "distance": ("dist", "distance"),
}
"""The measures that are drawn as bars where there is room, with a short and a long heading."""
FARTHEST = 8.0
"""Tokens at which the bar of a distance is full."""
WITH_CONTROLS, WITH_BARS, WITH_NUMBERS, WITH_LONG_BARS = 80, 116, 160, 185
"""The windows, in cells, from which on a row has its controls, its bars, the bars' numbers, and longer bars."""
_SHORT = {"shuffled": ("shuf", "shuffled"), "untrained": ("rand", "random"), "offset": ("offs", "offset")}
AIRY = 130
"""The windows, in cells, from which on columns stand further apart."""
LEAST_ROLE = (12, 26, 33)
"""Cells that a role keeps: in a narrow window, beside controls, and beside bars, of which the last give way to it."""
BAD_SHOWN = 5
"""So many lines that could not be used are named."""


def table(
    comparison: Comparison,
    screen: Screen,
    *,
    sort: str = "head",
    role: Sequence[str] = (),
    layers: Sequence[int] = (),
) -> list[Text]:
    """The whole view of a comparison.

    Args:
        comparison: what to show.
        screen: where.
        sort: ``head``, ``role``, ``score``, or a measure, largest first.
        role: names of roles; a head that has any of them is shown. ``none`` is no clear role.
        layers: their numbers, negative from the end.

    Raises:
        SelectionError: there is no such measure, role or layer.
    """
    heads = chosen(comparison, sort=sort, role=role, layers=layers)
    lines = prose(f"What each head does · {comparison.model}", screen, "bold")
    lines += prose(heads_roles.described(comparison), screen)
    lines += prose(heads_roles.sample(comparison), screen)
    lines.append(Text())
    lines += prose(_order(comparison, sort), screen, "dim") if sort != "head" else []
    lines += _heads(heads, comparison, screen, sort) if heads else prose("no head has such a role here", screen)
    if len(heads) < len(comparison.heads):
        lines += prose(_hidden(heads, comparison, asked=bool(role or layers)), screen)
    lines += [Text(), *_roles(comparison, screen)]
    lines += _clusters(comparison, screen)
    if comparison.relations:
        lines += [Text(), *relations(comparison.relations, screen)]
    return [*lines, Text(), *said(comparison, screen, _legend(screen))]


def said(comparison: Comparison, screen: Screen, legend: Sequence[str]) -> Iterator[Text]:
    """What stands below every view: how to read it, what to know, which lines were bad; the proof last."""
    for text in legend:
        yield from prose(text, screen, "dim")
    for note in comparison.notes:
        yield from prose(f"note: {note}", screen)
    for line, reason in comparison.bad[:BAD_SHOWN]:
        yield from prose(f"line {line:,} not used: {reason}", screen, indent=2)
    more = comparison.n_bad - min(len(comparison.bad), BAD_SHOWN)
    if more > 0:
        yield from prose(f"{counted(more, 'more line')} not used", screen)
    yield from prose(comparison.proof, screen, "bold" if comparison.proof.startswith("verified") else "")


def _order(comparison: Comparison, sort: str) -> str:
    if sort in {"role", "score"}:
        return f"sorted by {sort}, the largest score first"
    name = heads_roles.measure_named(sort, comparison.measures)
    one = measure_of(name)
    meaning = "" if one is None else f" ({one.meaning})"
    return f"sorted by {name}{meaning}, the largest first"


def _hidden(heads: Sequence[Shown], comparison: Comparison, *, asked: bool) -> str:
    """How many heads are not shown, and how to see them."""
    hidden = len(comparison.heads) - len(heads)
    if asked:
        return f"{counted(hidden, 'other head')} not shown"
    return (
        f"{counted(hidden, 'head')} with no clear role not shown, since there are more than {MOST} heads: "
        "--role none shows them, --layer N all of a layer"
    )


def _heads(heads: Sequence[Shown], comparison: Comparison, screen: Screen, sort: str) -> Iterator[Text]:
    """The table of heads; the measure that it is sorted by has a column."""
    wide = screen.width
    gap = 1 if wide < AIRY else 2
    least = LEAST_ROLE[(wide >= WITH_CONTROLS) + (wide >= WITH_BARS)]
    reach = MAX_OFFSET if wide >= WITH_BARS else MAX_OFFSET // 2
    columns = [
        Column("head", [Text(one.profile.name) for one in heads], gap=gap),
        Column(_ruler(reach), [_pattern(one, comparison, screen, reach) for one in heads], gap=gap),
        Column("  role", [_role(one, screen) for one in heads], least=least, gap=gap),
        Column("score", [_score(one, screen) for one in heads], right=True, gap=gap),
        Column("95 %", [_interval(one, screen) for one in heads], right=True, gap=gap),
    ]
    if wide >= WITH_CONTROLS:
        columns += [
            Column(
                _SHORT[name][wide >= WITH_NUMBERS], [_control(one, name, screen) for one in heads], right=True, gap=gap
            )
            for name in CONTROLS
            if name in comparison.controls
        ]
    if sort not in {"head", "role", "score"}:
        name = heads_roles.measure_named(sort, comparison.measures)
        values = [comparison.estimate(name, one.profile.layer, one.profile.head)[0] for one in heads]
        measure = measure_of(name)
        title = name if measure is None else measure.label
        columns.insert(3, Column(title, [Text(number(value, screen)) for value in values], right=True, gap=gap))
    if wide >= WITH_BARS:
        columns += _bars(heads, comparison, screen)
    yield from rows(columns, screen)


def _ruler(reach: int) -> str:
    """Above the small patterns: which offsets they show."""
    left, right = f"-{reach}", f"+{reach}"
    return left + "0".center(2 * reach + 1 - len(left) - len(right)) + right


def _pattern(one: Shown, comparison: Comparison, screen: Screen, reach: int) -> Text:
    return Text(
        spark(by_offset(comparison, one.profile.layer, one.profile.head, reach), screen), role_style(one.role, screen)
    )


def by_offset(comparison: Comparison, layer: int, head: int, reach: int) -> list[float]:
    """The mean weight at each offset, from so many tokens back to so many ahead; NaN where it was not measured."""
    names = [f"offset_{offset:+d}" for offset in range(-reach, reach + 1)]
    return [comparison.estimate(name, layer, head)[0] if name in comparison.measures else math.nan for name in names]


def _role(one: Shown, screen: Screen) -> Text:
    style = role_style(one.role, screen)
    if one.role is None:
        return Text(f"  {one.profile.words}", style)
    why = why_not(one.role)
    found = Text(f"{mark(one.role, screen)} {spelled(one.role.words, screen)}", style)
    if why:
        found.append(spelled(f" · {why}", screen), "dim")
    return found


def _score(one: Shown, screen: Screen) -> Text:
    return Text(number(math.nan if one.role is None else one.role.score, screen))


def _interval(one: Shown, screen: Screen) -> Text:
    return Text("" if one.role is None else interval(one.role.low, one.role.high, screen))


def _control(one: Shown, name: str, screen: Screen) -> Text:
    """A control's value; bold where it is why the role is not established."""
    found = [control for control in (one.role.controls if one.role else ()) if control.name == name]
    if not found:
        return Text("" if one.role is None else number(math.nan, screen), "dim")
    rules_out = one.role is not None and found[0].rules_out and one.role.low <= found[0].high
    return Text(number(found[0].value, screen), "bold" if rules_out else "dim")


def _bars(heads: Sequence[Shown], comparison: Comparison, screen: Screen) -> Iterator[Column]:
    names = [name for name in BARS if name in comparison.measures]
    with_numbers = screen.width >= WITH_NUMBERS
    width = 5 if screen.width >= WITH_LONG_BARS else 4
    for index, name in enumerate(names):
        title = BARS[name][with_numbers]
        cells = []
        for one in heads:
            value = comparison.estimate(name, one.profile.layer, one.profile.head)[0]
            drawn = bar(value / FARTHEST if name == "distance" else value, width, screen)
            if with_numbers and not math.isnan(value):
                digits = 1 if name == "distance" else 2
                drawn = f"{number(value, screen, digits):>4} {drawn}"
            own = one.role is not None and one.role.measure == name
            cells.append(Text(drawn, role_style(one.role, screen) if own else "dim"))
        yield Column(title, cells, gap=2 if with_numbers or index == 0 else 1)


def _roles(comparison: Comparison, screen: Screen) -> Iterator[Text]:
    """How many heads have each role first, how many of them establish it, and which they are."""
    for name, words, heads, n_established in heads_roles.tallied(comparison):
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


def _clusters(comparison: Comparison, screen: Screen) -> Iterator[Text]:
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
    gap = 1 if screen.width < WITH_CONTROLS else 2
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
        "head: chosen on one half of the sentences, scored on the other; right: how often its largest weight is on the "
        "right word; offset: the best fixed one, in words; rand: the best head of random weights",
        screen,
        "dim",
    )


def _legend(screen: Screen) -> list[str]:
    """How to read the table."""
    controls = f"shown in a window of {WITH_CONTROLS} cells"
    if screen.width >= WITH_CONTROLS:
        controls = (
            "shuf(fled): the same head on shuffled tokens, rand(om): the best head of random weights, "
            "offs(et): the best fixed one"
        )
    bars = f"; bars end at 1, those of distance at {FARTHEST:.0f} tokens" if screen.width >= WITH_BARS else ""
    marks = (
        f"how to read: {ESTABLISHED} the score's 95 % interval lies above the controls that could rule the role out, "
        f"{DOUBTFUL} it does not: not established. Controls: {controls}"
    )
    patterns = (
        f"small pattern: mean weight by offset, 0 the token itself, its height the head's largest, {LEAST_TOP} at least"
        f"{bars}; layers and heads count from 0"
    )
    return [marks, patterns, NOT_EXPLANATION]
