"""The table of all heads in a terminal: a line a head, as wide as the window; then clusters and all relations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from rich.text import Text

from attnviz.heads import selection
from attnviz.heads.measures import MAX_OFFSET
from attnviz.heads.record import Control, HeadComparison, HeadProfile, Relation
from attnviz.heads.relations import rule_of
from attnviz.heads.roles import CONTROLS, ControlKind
from attnviz.heads.selection import MOST, HeadRole, choose_heads
from attnviz.heads.terminal import cells
from attnviz.heads.terminal.cells import Writer
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
    out, rows = Writer(screen, language), choose_heads(comparison, sort=sort, role=role, layers=layers, heads=heads)
    lines = out.tell("title", "bold", model=comparison.model)
    lines += out.prose(description(comparison, language))
    lines += [*out.prose(sample(comparison, language)), Text()]
    if sort in {"role", "score"}:
        lines += out.tell("sorted", "dim", what=sort)
    elif sort != "head":
        one = selection.find_measure(sort, comparison.measures)
        meaning = one.say(language)
        lines += out.tell("sorted", "dim", what=one.name + (f" ({meaning})" if meaning else ""))
    lines += _rows(comparison, rows, out, sort) if rows else out.tell("no_such_role")
    if n := len(comparison.heads) - len(rows):
        if role or layers or heads:
            lines += out.tell("others_hidden", heads=plural(n, "other head"), n=n)
        else:
            lines += out.tell("many_hidden", heads=plural(n, "head"), n=n, most=MOST)
    lines += _clusters(comparison, out)
    if comparison.relations:
        lines += [Text(), *draw_relations(comparison.relations, out)]
    lines.append(Text())
    for text in _legend(comparison, rows, out):
        lines += out.prose(text, "dim")
    return [*lines, *cells.draw_notes(comparison, comparison.notes, out)]


def _rows(comparison: HeadComparison, heads: Sequence[HeadRole], out: Writer, sort: str) -> Iterator[Text]:
    wide = out.screen.width
    roles = [one.role for one in heads]
    columns = [
        out.column("head", [one.head.name for one in heads]),
        Column(
            f"  {out.say('role')}", [_role(one, out) for one in heads],
            least=LEAST_ROLE[(wide >= WITH_CONTROLS) + (wide >= WITH_BARS)],
        ),
        out.numbers("score", [role.score if role else math.nan for role in roles]),
        out.column(
            "95 %", [out.interval(role.low, role.high, narrow=role.narrow) if role else "" for role in roles],
            right=True,
        ),
    ]  # fmt: skip
    if _has_patterns(comparison):
        reach = MAX_OFFSET if wide >= WITH_BARS else MAX_OFFSET // 2
        left, right = f"-{reach}", f"+{reach}"
        ruler = left + "0".center(2 * reach + 1 - len(left) - len(right)) + right
        patterns = [
            Text(cells.spark(by_offset(comparison, head, reach), out.screen), cells.role_style(role, out.screen))
            for head, role in heads
        ]
        columns.insert(1, Column(ruler, patterns))
    if sort not in {"head", "role", "score"}:
        measure = selection.find_measure(sort, comparison.measures)
        values = [out.number(comparison.estimate(measure.name, *one.head.place)[0]) for one in heads]
        columns.insert(-2, Column(measure.label, values, right=True))
    if wide >= WITH_CONTROLS:
        columns += [
            Column(kind.titles[wide >= WITH_NUMBERS], [_control(one, kind.name, out) for one in heads], right=True)
            for kind in _controls(comparison)
        ]
    if wide >= WITH_BARS:
        columns += _bars(heads, comparison, out)
    yield from table(columns, out.screen, gap=1 if wide < AIRY else 2)


def _controls(comparison: HeadComparison) -> list[ControlKind]:
    return [kind for name, kind in CONTROLS.items() if kind.table and name in comparison.controls]


def _has_patterns(comparison: HeadComparison) -> bool:
    at = [index for index, one in enumerate(comparison.measures) if one.family == "offset"]
    return bool(np.isfinite(comparison.estimates.value[..., at]).any())


def by_offset(comparison: HeadComparison, profile: HeadProfile, reach: int) -> list[float]:
    """The mean weight at each offset, from so many tokens back to so many ahead; NaN where it was not measured."""
    return [selection.at_offset(comparison, offset, profile)[0] for offset in range(-reach, reach + 1)]


def _role(one: HeadRole, out: Writer) -> Text:
    text = cells.name_role(one.role, one.role.rule.short if one.role else out.say("no_role"), out)
    if one.role is not None and (why := why_not(one.role.doubt, out.language)):
        text.append(spell(f" · {why}", out.screen), "dim")
    return text


def _control(one: HeadRole, name: str, out: Writer) -> Text:
    """A control's value; bold where it is why the role is not established."""
    if one.role is None:
        return Text()
    control = next((control for control in one.role.controls if control.name == name), None)
    if control is None:
        return Text(out.number(math.nan), "dim")
    rules_out = control.rules_out and one.role.low <= control.high
    return Text(out.number(control.value), "bold" if rules_out else "dim")


def _bars(heads: Sequence[HeadRole], comparison: HeadComparison, out: Writer) -> Iterator[Column]:
    measures = [one for name in BARS for one in comparison.measures if one.name == name]
    with_numbers = out.screen.width >= WITH_NUMBERS
    width = 5 if out.screen.width >= WITH_LONG_BARS else 4
    for index, measure in enumerate(measures):
        full, digits = (FARTHEST, 1) if measure.name == "distance" else (1.0, 2)
        drawn = []
        for head, role in heads:
            value = comparison.estimate(measure.name, *head.place)[0]
            text = cells.bar(value / full, width, out.screen)
            if with_numbers and not math.isnan(value):
                text = f"{out.number(value, digits):>4} {text}"
            own = role is not None and role.measure == measure.name
            drawn.append(Text(text, cells.role_style(role, out.screen) if own else "dim"))
        yield Column(measure.label, drawn, gap=2 if with_numbers or index == 0 else 1)


def _legend(comparison: HeadComparison, heads: Sequence[HeadRole], out: Writer) -> Iterator[str]:
    language, width = out.language, out.screen.width
    roles = [one.role for one in heads if one.role is not None]
    rules = {role.rule.short: role.rule.say(language) for role in roles}
    yield "; ".join(f"{short}: {words}" for short, words in rules.items())
    yield say("marks", language, yes=cells.ESTABLISHED, no=cells.DOUBTFUL, doubt="")
    if kinds := _controls(comparison):
        named = ", ".join(f"{kind.titles[width >= WITH_NUMBERS]}: {kind.say(language)}" for kind in kinds)
        is_wide = width >= WITH_CONTROLS
        yield say("columns" if is_wide else "columns_hidden", language, controls=named, cells=WITH_CONTROLS)
    if any(role.narrow for role in roles):
        yield narrow(language)
    pattern = [say("pattern", language, least=cells.LEAST_TOP)] if _has_patterns(comparison) else []
    bars = [say("bars", language, most=FARTHEST)] if width >= WITH_BARS else []
    yield "; ".join([*pattern, *bars, say("count_from_0", language)])
    yield say("not_explanation", language)


def _clusters(comparison: HeadComparison, out: Writer) -> Iterator[Text]:
    clusters = comparison.clusters
    if len(comparison.heads) < 2 or not clusters:
        return
    yield Text()
    yield from out.tell("alike")
    groups = [(out.say("cluster", n=cluster), names) for cluster, names in sorted(clusters.items()) if len(names) > 1]
    alone = [names[0] for names in clusters.values() if len(names) == 1]
    for what, names in [*groups, *([(out.say("alone"), alone)] if alone else [])]:
        yield from cells.list_heads(Text.assemble((f"{len(names):>4}  {what}", "dim")), names, out, 18)


def draw_relations(relations: Sequence[Relation], out: Writer) -> Iterator[Text]:
    """The table of what heads find in a treebank, established or not."""

    def name(one: Relation) -> Text:
        short = rule_of(one.name, reverse=one.reverse).short
        text = Text(f"{out.mark(established=one.established)} {spell(short, out.screen)}")
        why = why_not(one.doubt, out.language)
        return text.append(spell(f" · {why}", out.screen) if why else "", "dim")

    def up_to(control: Control | None) -> str:
        """The upper end of a control's interval: what a score's lower end must lie above."""
        high = math.nan if control is None else control.high
        return out.number(high) if math.isnan(high) else f"≤{out.number(high)}"

    columns = [
        Column(f"  {out.say('relation')}", [name(one) for one in relations], least=20),
        out.column("n", [f"{one.n:,}" for one in relations], right=True),
        out.column("head", [f"{one.layer}.{one.head}" for one in relations]),
        out.numbers("right", [one.accuracy for one in relations]),
        out.column("95 %", [out.interval(one.low, one.high) for one in relations], right=True),
        out.column("offset", [f"{one.fixed.offset:+d} {up_to(one.fixed)}" for one in relations], right=True),
        out.column("rand", [up_to(one.random) for one in relations], right=True),
    ]
    yield from out.tell("relations_title")
    yield from table(columns, out.screen, gap=1 if out.screen.width < AIRY_RELATIONS else 2)
    yield from out.tell("relations_columns", "dim")
