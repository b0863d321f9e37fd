"""What each head does, in a terminal: a line a head, then roles, clusters, relations, and how to read it all.

No row is ever wrapped. A narrow window shows fewer columns, and what is cut ends in an ellipsis; a wide one has bars
with their numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from rich.text import Text

from attnviz.heads import notes, selection, wording
from attnviz.heads.notes import counted, why_not
from attnviz.heads.record import HeadComparison, HeadProfile, Relation, Role
from attnviz.heads.selection import MOST, HeadRow, chosen, tallied
from attnviz.heads.settings import MAX_OFFSET
from attnviz.heads.terminal.cells import (
    CONTROL_TITLES,
    DOUBTFUL,
    ESTABLISHED,
    LEAST_TOP,
    bar,
    family_style,
    interval,
    list_heads,
    mark,
    name_role,
    number,
    prose,
    role_style,
    spark,
)
from attnviz.heads.wording import CONTROLS, NOT_EXPLANATION
from attnviz.render.terminal.screen import Screen
from attnviz.render.terminal.table import Column, table
from attnviz.render.terminal.text import fit, spell

BARS = ("previous", "next", "first", "separator", "entropy_share", "distance")
"""The measures that are drawn as bars where there is room."""
FARTHEST = 8.0
"""Tokens at which the bar of a distance is full."""
WITH_CONTROLS, WITH_BARS, WITH_NUMBERS, WITH_LONG_BARS = 80, 116, 160, 185
"""The windows, in cells, from which on a row has its controls, its bars, the bars' numbers, and longer bars."""
LEGEND = {
    "shuffled": "shuf(fled): the same head on shuffled tokens",
    "untrained": "rand(om): the best head of random weights",
    "offset": "offs(et): the best fixed one",
}
"""What the columns of controls are."""
AIRY, AIRY_RELATIONS = 130, 80
"""The windows, in cells, from which on the columns of heads, and of relations, stand further apart."""
LEAST_ROLE = (12, 26, 33)
"""Cells that a role keeps: in a narrow window, beside controls, and beside bars, of which the last give way to it."""
BAD_SHOWN = 5
"""So many lines that could not be used are named."""


def draw_heads(
    comparison: HeadComparison,
    screen: Screen,
    *,
    sort: str = "head",
    role: Sequence[str] = (),
    layers: Sequence[int] = (),
    heads: Sequence[int] = (),
) -> list[Text]:
    """The whole view of a comparison.

    Args:
        comparison: what to show.
        screen: where.
        sort: ``head``, ``role``, ``score``, or a measure, largest first.
        role: names of roles; a head that has any of them is shown. ``none`` is no clear role.
        layers: their numbers, negative from the end.
        heads: likewise, of each of these layers.

    Raises:
        SelectionError: there is no such measure, role, layer or head.
    """
    is_chosen = bool(role or layers or heads)
    rows = chosen(comparison, sort=sort, role=role, layers=layers, heads=heads)
    lines = prose(f"What each head does · {comparison.model}", screen, "bold")
    lines += prose(wording.described(comparison), screen)
    lines += prose(wording.sample(comparison), screen)
    lines.append(Text())
    lines += prose(_order(comparison, sort), screen, "dim") if sort != "head" else []
    lines += _rows(rows, comparison, screen, sort) if rows else prose("no head has such a role here", screen)
    if len(rows) < len(comparison.heads):
        lines += prose(_hidden(rows, comparison, is_chosen=is_chosen), screen)
    lines += [Text(), *_roles(comparison, screen)]
    lines += _clusters(comparison, screen)
    if comparison.relations:
        lines += [Text(), *draw_relations(comparison.relations, screen)]
    return [*lines, Text(), *draw_notes(comparison, screen, _legend(comparison, screen))]


def draw_notes(comparison: HeadComparison, screen: Screen, legend: Sequence[str]) -> Iterator[Text]:
    """What stands below every view: how to read it, what to know, which lines were bad; the proof last."""
    for text in legend:
        yield from prose(text, screen, "dim")
    for note in comparison.notes:
        yield from prose(f"note: {notes.note_words(note)}", screen)
    for line, reason in comparison.bad[:BAD_SHOWN]:
        yield from prose(f"line {line:,} not used: {reason}", screen, indent=2)
    more = comparison.n_bad - min(len(comparison.bad), BAD_SHOWN)
    if more > 0:
        yield from prose(f"{counted(more, 'more line')} not used", screen)
    yield from prose(notes.proof(comparison), screen, "bold")


def _order(comparison: HeadComparison, sort: str) -> str:
    if sort in {"role", "score"}:
        return f"sorted by {sort}, the largest score first"
    one = selection.measure_named(sort, comparison.measures)
    meaning = f" ({one.meaning})" if one.meaning else ""
    return f"sorted by {one.name}{meaning}, the largest first"


def _hidden(heads: Sequence[HeadRow], comparison: HeadComparison, *, is_chosen: bool) -> str:
    """How many heads are not shown, and how to see them."""
    hidden = len(comparison.heads) - len(heads)
    if is_chosen:
        return f"{counted(hidden, 'other head')} not shown"
    return (
        f"{counted(hidden, 'head')} with no clear role not shown, since there are more than {MOST} heads: "
        "--role none shows them, --layer N all of a layer"
    )


def _rows(heads: Sequence[HeadRow], comparison: HeadComparison, screen: Screen, sort: str) -> Iterator[Text]:
    """The table of heads; the measure that it is sorted by has a column."""
    wide = screen.width
    gap = 1 if wide < AIRY else 2
    least = LEAST_ROLE[(wide >= WITH_CONTROLS) + (wide >= WITH_BARS)]
    reach = MAX_OFFSET if wide >= WITH_BARS else MAX_OFFSET // 2
    nan = math.nan
    scores = [number(one.role.score if one.role else nan, screen) for one in heads]
    intervals = [interval(one.role.low, one.role.high, screen) if one.role else "" for one in heads]
    columns = [
        Column("head", [one.profile.name for one in heads]),
        Column("  role", [_role(one, screen) for one in heads], least=least),
        Column("score", scores, right=True),
        Column("95 %", intervals, right=True),
    ]
    if _has_patterns(comparison):
        patterns = [
            Text(spark(by_offset(comparison, one.profile, reach), screen), role_style(one.role, screen))
            for one in heads
        ]
        columns.insert(1, Column(_ruler(reach), patterns))
    if sort not in {"head", "role", "score"}:
        measure = selection.measure_named(sort, comparison.measures)
        values = [number(_value(comparison, measure.name, one), screen) for one in heads]
        columns.insert(-2, Column(measure.label, values, right=True))
    if wide >= WITH_CONTROLS:
        for name in CONTROLS:
            if name in comparison.controls:
                controls = [_control(one, name, screen) for one in heads]
                columns.append(Column(CONTROL_TITLES[name][wide >= WITH_NUMBERS], controls, right=True))
    if wide >= WITH_BARS:
        columns += _bars(heads, comparison, screen)
    yield from table(columns, screen, gap=gap)


def _value(comparison: HeadComparison, measure: str, one: HeadRow) -> float:
    return comparison.estimate(measure, one.profile.layer, one.profile.head)[0]


def _ruler(reach: int) -> str:
    """Above the small patterns: which offsets they show."""
    left, right = f"-{reach}", f"+{reach}"
    return left + "0".center(2 * reach + 1 - len(left) - len(right)) + right


def _has_patterns(comparison: HeadComparison) -> bool:
    """Whether the weight at some offset was measured: between two sentences there are none."""
    at = [index for index, one in enumerate(comparison.measures) if one.family == "offset"]
    return bool(np.isfinite(comparison.estimates.value[..., at]).any())


def by_offset(comparison: HeadComparison, profile: HeadProfile, reach: int) -> list[float]:
    """The mean weight at each offset, from so many tokens back to so many ahead; NaN where it was not measured."""
    return [selection.at_offset(comparison, offset, profile)[0] for offset in range(-reach, reach + 1)]


def _role(one: HeadRow, screen: Screen) -> Text:
    """The role that is shown of a head, and why it is not established."""
    text = name_role(one.role, one.role.words if one.role else one.profile.words, screen)
    if one.role is not None and (why := why_not(one.role)):
        text.append(spell(f" · {why}", screen), "dim")
    return text


def _control(one: HeadRow, name: str, screen: Screen) -> Text:
    """A control's value; bold where it is why the role is not established."""
    if one.role is None:
        return Text()
    control = next((control for control in one.role.controls if control.name == name), None)
    if control is None:
        return Text(number(math.nan, screen), "dim")
    rules_out = control.rules_out and one.role.low <= control.high
    return Text(number(control.value, screen), "bold" if rules_out else "dim")


def _bars(heads: Sequence[HeadRow], comparison: HeadComparison, screen: Screen) -> Iterator[Column]:
    measures = [one for name in BARS for one in comparison.measures if one.name == name]
    with_numbers = screen.width >= WITH_NUMBERS
    width = 5 if screen.width >= WITH_LONG_BARS else 4
    for index, measure in enumerate(measures):
        name = measure.name
        full, digits = (FARTHEST, 1) if name == "distance" else (1.0, 2)
        cells = []
        for one in heads:
            value = _value(comparison, name, one)
            text = bar(value / full, width, screen)
            if with_numbers and not math.isnan(value):
                text = f"{number(value, screen, digits):>4} {text}"
            own = one.role is not None and one.role.measure == name
            cells.append(Text(text, role_style(one.role, screen) if own else "dim"))
        yield Column(measure.label, cells, gap=2 if with_numbers or index == 0 else 1)


def _legend(comparison: HeadComparison, screen: Screen) -> list[str]:
    """How to read the table: what it has."""
    controls = [LEGEND[name] for name in CONTROLS if name in comparison.controls]
    controls = controls if screen.width >= WITH_CONTROLS else [f"shown in a window of {WITH_CONTROLS} cells"]
    marks = (
        f"how to read: {ESTABLISHED} the score's 95 % interval lies above the controls that could rule the role out, "
        f"{DOUBTFUL} it does not: not established{'. Controls: ' if controls else ''}{', '.join(controls)}"
    )
    patterns = (
        f"small pattern: mean weight by offset, 0 the token itself, its height the head's largest, {LEAST_TOP} at least"
    )
    bars = f"bars end at 1, that of dist(ance) at {FARTHEST:.0f} tokens; even: entropy as a share of the largest"
    how = [
        *([patterns] if _has_patterns(comparison) else []),
        *([bars] if screen.width >= WITH_BARS else []),
        "layers and heads count from 0",
    ]
    return [marks, "; ".join(how), NOT_EXPLANATION]


def _roles(comparison: HeadComparison, screen: Screen) -> Iterator[Text]:
    """How many heads have each role first, how many of them establish it, and which they are; then further roles."""
    for _, words, heads, n_established in tallied(comparison):
        how_many = f", {n_established or 'none'} established" if heads[0].roles else ""
        style = family_style(heads[0].roles[0], screen) if heads[0].roles else "dim"
        what = fit(words, screen.width - 6 - len(how_many), screen)
        title = Text.assemble(f"{len(heads):>4}  ", (what, style), how_many)
        yield from list_heads(title, [head.name for head in heads], screen, 50)
    others: dict[str, tuple[Role, list[str]]] = {}
    for head in comparison.heads:
        for role in head.roles[1:]:
            if role.established:
                others.setdefault(role.name, (role, []))[1].append(head.name)
    if others:
        yield from prose("beside what is clearest of them, established too:", screen)
    for role, names in others.values():
        what = fit(role.words, screen.width - 6, screen)
        title = Text.assemble(f"{len(names):>4}  ", (what, family_style(role, screen)))
        yield from list_heads(title, names, screen, 50)


def _clusters(comparison: HeadComparison, screen: Screen) -> Iterator[Text]:
    """Which heads look alike; those that look like no other in one line."""
    clusters: dict[int, list[str]] = {}
    for head in comparison.heads:
        if head.cluster is not None:
            clusters.setdefault(head.cluster, []).append(head.name)
    if len(comparison.heads) < 2 or not clusters:
        return
    yield Text()
    yield from prose("heads that look alike (average linkage of Jensen-Shannon distances)", screen)
    groups = [(f"cluster {cluster}", names) for cluster, names in sorted(clusters.items()) if len(names) > 1]
    alone = [names[0] for names in clusters.values() if len(names) == 1]
    for what, names in [*groups, *([("each alone", alone)] if alone else [])]:
        yield from list_heads(Text.assemble((f"{len(names):>4}  {what}", "dim")), names, screen, 18)


def draw_relations(relations: Sequence[Relation], screen: Screen) -> Iterator[Text]:
    """The table of what heads find in a treebank."""
    gap = 1 if screen.width < AIRY_RELATIONS else 2
    names = [f"{mark(one.established, screen)} {spell(one.name, screen)}" for one in relations]
    looks = [spell("head→dep" if one.reverse else "dep→head", screen) for one in relations]
    offsets = [f"{one.offset:+d} {number(one.offset_accuracy, screen)}" for one in relations]
    columns = [
        Column("  relation", names, least=8),
        Column("n", [f"{one.n:,}" for one in relations], right=True),
        Column("head", [f"{one.layer}.{one.head}" for one in relations]),
        Column("looks", looks),
        Column("right", [number(one.accuracy, screen) for one in relations], right=True),
        Column("95 %", [interval(one.low, one.high, screen) for one in relations], right=True),
        Column("offset", offsets, right=True),
        Column("rand", [number(one.untrained, screen) for one in relations], right=True),
    ]
    yield from prose("relations between words, and the head that finds each best", screen)
    yield from table(columns, screen, gap=gap)
    yield from prose(
        "head: chosen on one half of the sentences, scored on the other (roles are scored on all); right: how often "
        "its largest weight is on the right word; offset: the best fixed one, in words; rand: the best head of random "
        "weights",
        screen,
        "dim",
    )
