"""The table of all heads in a terminal: a line a head, as wide as the window; then clusters and all relations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from rich.text import Text

from attnviz.heads import selection
from attnviz.heads.record import HeadComparison, HeadProfile, Relation
from attnviz.heads.relations import rule_of
from attnviz.heads.roles import CONTROLS, ControlKind
from attnviz.heads.selection import MOST, HeadRow, chosen
from attnviz.heads.settings import MAX_OFFSET
from attnviz.heads.terminal.cells import (
    DOUBTFUL,
    ESTABLISHED,
    LEAST_TOP,
    bar,
    draw_notes,
    interval,
    list_heads,
    mark,
    name_role,
    number,
    prose,
    role_style,
    spark,
)
from attnviz.heads.wording import description, narrow, plural, sample, say, why_not
from attnviz.render.terminal.screen import Screen
from attnviz.render.terminal.table import Column, table
from attnviz.render.terminal.text import spell

BARS = ("previous", "next", "first", "separator", "entropy_share", "distance")
"""The measures that are drawn as bars where there is room."""
FARTHEST = 8.0  # tokens at which the bar of a distance is full
WITH_CONTROLS, WITH_BARS, WITH_NUMBERS, WITH_LONG_BARS = 80, 116, 160, 185
"""The windows, in cells, from which on a row has its controls, its bars, the bars' numbers, and longer bars."""
AIRY, AIRY_RELATIONS = 130, 80
"""The windows, in cells, from which on the columns of heads, and of relations, stand further apart."""
LEAST_ROLE = (12, 26, 33)
"""Cells that a role keeps: in a narrow window, beside controls, and beside bars, of which the last give way to it."""


def draw_table(
    comparison: HeadComparison, screen: Screen, *, sort: str = "head", role: Sequence[str] = (),
    layers: Sequence[int] = (), heads: Sequence[int] = (), language: str = "en",
) -> list[Text]:  # fmt: skip
    """All heads, their clusters, and all relations. Raises SelectionError: no such measure, role, layer or head."""
    is_chosen = bool(role or layers or heads)
    rows = chosen(comparison, sort=sort, role=role, layers=layers, heads=heads)
    lines = prose(say("title", language, model=comparison.model), screen, "bold")
    lines += prose(description(comparison, language), screen)
    lines += prose(sample(comparison, language), screen)
    lines.append(Text())
    lines += prose(_order(comparison, sort, language), screen, "dim") if sort != "head" else []
    view = _View(comparison, rows, screen, language)
    lines += _rows(view, sort) if rows else prose(say("no_such_role", language), screen)
    if hidden := len(comparison.heads) - len(rows):
        lines += prose(_hidden(hidden, language, is_chosen=is_chosen), screen)
    lines += _clusters(comparison, screen, language)
    if comparison.relations:
        lines += [Text(), *draw_relations(comparison.relations, screen, language)]
    lines.append(Text())
    for text in _legend(view):
        lines += prose(text, screen, "dim")
    return [*lines, *draw_notes(comparison, comparison.notes, screen, language)]


@dataclass(frozen=True, slots=True)
class _View:
    comparison: HeadComparison
    heads: Sequence[HeadRow]
    screen: Screen
    language: str


def _order(comparison: HeadComparison, sort: str, language: str) -> str:
    if sort in {"role", "score"}:
        return say("sorted", language, what=sort)
    one = selection.find_measure(sort, comparison.measures)
    meaning = one.say(language)
    return say("sorted", language, what=one.name + (f" ({meaning})" if meaning else ""))


def _hidden(n: int, language: str, *, is_chosen: bool) -> str:
    if is_chosen:
        return say("others_hidden", language, heads=plural(n, "other head"), n=n)
    return say("many_hidden", language, heads=plural(n, "head"), n=n, most=MOST)


def _rows(view: _View, sort: str) -> Iterator[Text]:
    comparison, heads, screen, language = view.comparison, view.heads, view.screen, view.language
    wide = screen.width
    gap = 1 if wide < AIRY else 2
    least = LEAST_ROLE[(wide >= WITH_CONTROLS) + (wide >= WITH_BARS)]
    reach = MAX_OFFSET if wide >= WITH_BARS else MAX_OFFSET // 2
    scores = [number(one.role.score if one.role else math.nan, screen) for one in heads]
    intervals = [
        interval(one.role.low, one.role.high, screen, narrow=one.role.narrow) if one.role else "" for one in heads
    ]
    columns = [
        Column(say("head", language), [one.profile.name for one in heads]),
        Column(f"  {say('role', language)}", [_role(one, screen, language) for one in heads], least=least),
        Column(say("score", language), scores, right=True),
        Column("95 %", intervals, right=True),
    ]
    if _has_patterns(comparison):
        patterns = [
            Text(spark(by_offset(comparison, one.profile, reach), screen), role_style(one.role, screen))
            for one in heads
        ]
        columns.insert(1, Column(_ruler(reach), patterns))
    if sort not in {"head", "role", "score"}:
        measure = selection.find_measure(sort, comparison.measures)
        values = [number(_value(comparison, measure.name, one), screen) for one in heads]
        columns.insert(-2, Column(measure.label, values, right=True))
    if wide >= WITH_CONTROLS:
        columns += [
            Column(kind.titles[wide >= WITH_NUMBERS], [_control(one, kind.name, screen) for one in heads], right=True)
            for kind in _controls(comparison)
        ]
    if wide >= WITH_BARS:
        columns += _bars(heads, comparison, screen)
    yield from table(columns, screen, gap=gap)


def _controls(comparison: HeadComparison) -> list[ControlKind]:
    return [kind for name, kind in CONTROLS.items() if kind.table and name in comparison.controls]


def _value(comparison: HeadComparison, measure: str, one: HeadRow) -> float:
    return comparison.estimate(measure, one.profile.layer, one.profile.head)[0]


def _ruler(reach: int) -> str:
    left, right = f"-{reach}", f"+{reach}"
    return left + "0".center(2 * reach + 1 - len(left) - len(right)) + right


def _has_patterns(comparison: HeadComparison) -> bool:
    at = [index for index, one in enumerate(comparison.measures) if one.family == "offset"]
    return bool(np.isfinite(comparison.estimates.value[..., at]).any())


def by_offset(comparison: HeadComparison, profile: HeadProfile, reach: int) -> list[float]:
    """The mean weight at each offset, from so many tokens back to so many ahead; NaN where it was not measured."""
    return [selection.at_offset(comparison, offset, profile)[0] for offset in range(-reach, reach + 1)]


def _role(one: HeadRow, screen: Screen, language: str) -> Text:
    text = name_role(one.role, one.role.rule.short if one.role else say("no_role", language), screen)
    if one.role is not None and (why := why_not(one.role.doubt, language)):
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


def _legend(view: _View) -> list[str]:
    comparison, screen, language = view.comparison, view.screen, view.language
    rules = {one.role.rule.short: one.role.rule.say(language) for one in view.heads if one.role is not None}
    words = "; ".join(f"{short}: {words}" for short, words in rules.items())
    kinds = _controls(comparison)
    if screen.width >= WITH_CONTROLS:
        named = ", ".join(f"{kind.titles[screen.width >= WITH_NUMBERS]}: {kind.say(language)}" for kind in kinds)
        controls = say("columns", language, controls=named)
    else:
        controls = say("columns_hidden", language, cells=WITH_CONTROLS)
    how = [
        *([say("pattern", language, least=LEAST_TOP)] if _has_patterns(comparison) else []),
        *([say("bars", language, most=FARTHEST)] if screen.width >= WITH_BARS else []),
        say("count_from_0", language),
    ]
    marks = say("marks", language, yes=ESTABLISHED, no=DOUBTFUL, doubt="")
    doubted = [narrow(language)] * any(one.role is not None and one.role.narrow for one in view.heads)
    return [
        words, marks, *([controls] if kinds else []), *doubted, "; ".join(how), say("not_explanation", language),
    ]  # fmt: skip


def _clusters(comparison: HeadComparison, screen: Screen, language: str) -> Iterator[Text]:
    clusters: dict[int, list[str]] = {}
    for head in comparison.heads:
        if head.cluster is not None:
            clusters.setdefault(head.cluster, []).append(head.name)
    if len(comparison.heads) < 2 or not clusters:
        return
    yield Text()
    yield from prose(say("alike", language), screen)
    groups = [
        (say("cluster", language, n=cluster), names) for cluster, names in sorted(clusters.items()) if len(names) > 1
    ]
    alone = [names[0] for names in clusters.values() if len(names) == 1]
    for what, names in [*groups, *([(say("alone", language), alone)] if alone else [])]:
        title = Text.assemble((f"{len(names):>4}  {spell(what, screen)}", "dim"))
        yield from list_heads(title, names, screen, 18, language)


def _up_to(high: float, screen: Screen) -> str:
    """The upper end of a control's interval: what a score's lower end must lie above."""
    return number(high, screen) if math.isnan(high) else spell(f"≤{number(high, screen)}", screen)


def draw_relations(relations: Sequence[Relation], screen: Screen, language: str = "en") -> Iterator[Text]:
    """The table of what heads find in a treebank, established or not."""
    gap = 1 if screen.width < AIRY_RELATIONS else 2
    rules = [rule_of(one.name, reverse=one.reverse) for one in relations]
    names = []
    for one, rule in zip(relations, rules, strict=True):
        text = Text(f"{mark(screen, established=one.established)} {spell(rule.short, screen)}")
        why = why_not(one.doubt, language)
        text.append(spell(f" · {why}", screen) if why else "", "dim")
        names.append(text)
    offsets = [f"{one.offset:+d} {_up_to(one.offset_high, screen)}" for one in relations]
    columns = [
        Column(f"  {say('relation', language)}", names, least=20),
        Column("n", [f"{one.n:,}" for one in relations], right=True),
        Column(say("head", language), [f"{one.layer}.{one.head}" for one in relations]),
        Column(say("right", language), [number(one.accuracy, screen) for one in relations], right=True),
        Column("95 %", [interval(one.low, one.high, screen) for one in relations], right=True),
        Column(say("offset", language), offsets, right=True),
        Column("rand", [_up_to(one.untrained_high, screen) for one in relations], right=True),
    ]
    yield from prose(say("relations_title", language), screen)
    yield from table(columns, screen, gap=gap)
    yield from prose(say("relations_columns", language), screen, "dim")
