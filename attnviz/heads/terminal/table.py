"""All heads in a table in a terminal, a line a head; and one head: what it does, or all that is known of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from attnviz.heads import selection, wording
from attnviz.heads.measures import MAX_OFFSET
from attnviz.heads.record import Control, HeadComparison, HeadProfile, Relation
from attnviz.heads.relations import rule_of
from attnviz.heads.roles import CONTROLS, ControlKind
from attnviz.heads.selection import MOST, ORDERS, HeadRole, choose_heads
from attnviz.heads.terminal import cells
from attnviz.heads.terminal.cells import Writer
from attnviz.heads.wording import description, ends, how_sure, role_words, sample, say, why_not
from attnviz.render.terminal.screen import Screen
from attnviz.render.terminal.table import Column, table
from attnviz.render.terminal.text import fit, spell
from attnviz.text.messages import in_language

WITH_CONTROLS, WIDE = 80, 116
"""The windows, in cells, from which on a row has its controls, and a wider pattern."""
AIRY, AIRY_RELATIONS = 130, 80
"""The windows, in cells, from which on the columns of heads, and of relations, stand further apart."""
LEAST_ROLE, LEAST_ROLE_WITH_CONTROLS = 12, 26  # cells that a role keeps
_BOLD = Style(bold=True)
ALIKE = 6  # so many of the heads most like this one are named
BRIEF = 4  # so many measures stand on the first screen
WIDEST_BAR = 40  # cells of the longest bar of an offset
NARROW = 72  # the windows, in cells, below which columns stand closer
WITH_MEANINGS = 104  # the windows, in cells, from which on each measure stands with what it means


def draw_table(
    comparison: HeadComparison,
    screen: Screen,
    *,
    sort: str = "head",
    role: Sequence[str] = (),
    layers: Sequence[int] = (),
    heads: Sequence[int] = (),
    language: str = "en",
) -> list[Text]:
    """All heads, their clusters, and all relations. Raises SelectionError: no such measure, role, layer or head."""
    out = Writer(screen, language)
    rows = choose_heads(comparison, sort=sort, role=role, layers=layers, heads=heads)
    lines = out.tell("title", "bold", model=wording.model_names(comparison))
    lines += out.prose(description(comparison, language))
    lines += [*out.prose(sample(comparison, language)), Text()]
    if sort in ORDERS:
        lines += out.tell("sorted", "dim", what=sort) if sort != "head" else []
    else:
        one = selection.find_measure(sort, comparison.measures)
        meaning = in_language(one.meaning, language)
        lines += out.tell("sorted", "dim", what=one.name + (f" ({meaning})" if meaning else ""))
    lines += _rows(comparison, rows, out, sort) if rows else out.tell("no_such_role")
    if n := len(comparison.heads) - len(rows):
        lines += out.tell(
            "others_hidden" if role or layers or heads else "many_hidden", n=n, most=MOST
        )
    if clusters := list(cells.draw_clusters(comparison, out)):
        lines += [Text(), *clusters]
    if comparison.relations:
        lines += [Text(), *draw_relations(comparison.relations, out)]
    lines.append(Text())
    for text in _legend(comparison, rows, out):
        lines += out.prose(text, "dim")
    return [*lines, *cells.draw_notes(comparison, comparison.notes, out)]


def _rows(
    comparison: HeadComparison, heads: Sequence[HeadRole], out: Writer, sort: str
) -> Iterator[Text]:
    wide = out.screen.width
    roles = [one.role for one in heads]
    columns = [
        out.column("head", [one.head.name for one in heads]),
        Column(
            f"  {out.say('role')}",
            [_role(one, out) for one in heads],
            least=LEAST_ROLE if wide < WITH_CONTROLS else LEAST_ROLE_WITH_CONTROLS,
        ),
        out.numbers("score", [role.score if role else math.nan for role in roles]),
        out.column(
            "95 %",
            [
                out.interval(role.low, role.high, narrow=role.narrow) if role else ""
                for role in roles
            ],
            right=True,
        ),
    ]
    if _has_patterns(comparison):
        reach = MAX_OFFSET if wide >= WIDE else MAX_OFFSET // 2
        left, right = f"-{reach}", f"+{reach}"
        ruler = left + "0".center(2 * reach + 1 - len(left) - len(right)) + right
        patterns = [
            Text(
                cells.spark(by_offset(comparison, head, reach), out.screen),
                cells.role_style(role, out.screen),
            )
            for head, role in heads
        ]
        columns.insert(1, Column(ruler, patterns))
    if sort not in ORDERS:
        measure = selection.find_measure(sort, comparison.measures)
        values = [
            out.number(comparison.estimate(measure.name, *one.head.place)[0]) for one in heads
        ]
        columns.insert(-2, Column(measure.label, values, right=True))
    if comparison.against is not None:
        columns += _change(heads, out)
    if _has_room_for_controls(comparison, wide):
        columns += [
            Column(
                kind.column_title(wide=wide >= WIDE),
                [_control(one, kind.name, out) for one in heads],
                right=True,
            )
            for kind in _controls(comparison)
        ]
    yield from table(columns, out.screen, gap=1 if wide < AIRY else 2)


def _change(heads: Sequence[HeadRole], out: Writer) -> Iterator[Column]:
    """How far each head is from the same head of the second model, and its clearest role there."""
    changes = [one.head.change for one in heads if one.head.change is not None]
    yield out.numbers("divergence", [one.divergence for one in changes])
    roles = [wording.marked_role(one.role, out.language) for one in changes]
    styled = [
        Text(spell(text, out.screen), cells.role_style(one.role, out.screen))
        for text, one in zip(roles, changes, strict=True)
    ]
    yield out.column("role_after", styled, least=10)


def _has_room_for_controls(comparison: HeadComparison, wide: int) -> bool:
    return wide >= (WITH_CONTROLS if comparison.against is None else WIDE)


def _controls(comparison: HeadComparison) -> list[ControlKind]:
    return [kind for name, kind in CONTROLS.items() if kind.table and name in comparison.controls]


def _has_patterns(comparison: HeadComparison) -> bool:
    at = [index for index, one in enumerate(comparison.measures) if one.family == "offset"]
    return bool(np.isfinite(comparison.estimates.value[..., at]).any())


def by_offset(comparison: HeadComparison, profile: HeadProfile, reach: int) -> list[float]:
    """The mean weight at each offset, from so many tokens back to so many ahead; NaN where it was not measured."""
    return [
        selection.at_offset(comparison, offset, profile)[0] for offset in range(-reach, reach + 1)
    ]


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


def _legend(comparison: HeadComparison, heads: Sequence[HeadRole], out: Writer) -> Iterator[str]:
    language, width = out.language, out.screen.width
    roles = [one.role for one in heads if one.role is not None]
    rules = {role.rule.short: in_language(role.rule.words, language) for role in roles}
    yield "; ".join(f"{short}: {words}" for short, words in rules.items())
    yield say("marks", language)
    if kinds := _controls(comparison):
        named = ", ".join(
            f"{kind.column_title(wide=width >= WIDE)}: {in_language(kind.words, language)}"
            for kind in kinds
        )
        if _has_room_for_controls(comparison, width):
            yield say("columns", language, controls=named)
        else:
            least = WITH_CONTROLS if comparison.against is None else WIDE
            yield say("columns_hidden", language, cells=least)
    yield from wording.explain_changes(comparison, language)
    if any(role.narrow for role in roles):
        yield say("narrow", language)
    pattern = [say("pattern", language, least=cells.LEAST_TOP)] if _has_patterns(comparison) else []
    yield "; ".join([*pattern, say("count_from_0", language)])
    yield say("not_explanation", language)


def draw_relations(relations: Sequence[Relation], out: Writer) -> Iterator[Text]:
    """The table of what heads find in a treebank, established or not; nothing where that is nothing."""
    if not relations:
        return

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
        out.column(
            "offset", [f"{one.fixed.offset:+d} {up_to(one.fixed)}" for one in relations], right=True
        ),
        out.column("rand", [up_to(one.random) for one in relations], right=True),
    ]
    yield from out.tell("relations_title")
    yield from table(columns, out.screen, gap=1 if out.screen.width < AIRY_RELATIONS else 2)
    yield from out.tell("relations_columns", "dim")


def draw_head(
    comparison: HeadComparison,
    layer: int,
    head: int,
    screen: Screen,
    *,
    full: bool = False,
    language: str = "en",
) -> list[Text]:
    """One head's page, or in full all that is known of it. Raises SelectionError: there is no such head."""
    profile, out = comparison.head(layer, head), Writer(screen, language)
    lines = out.tell("head_title", "bold", head=profile.name, model=wording.model_names(comparison))
    lines += out.tell(
        "place", layer=profile.layer, head=profile.head, what=description(comparison, language)
    )
    lines += [Text(), *_roles(profile, comparison, out)]
    if profile.change is not None and comparison.against is not None:
        between = ends(profile.change.low, profile.change.high)
        lines += out.tell(
            "in_second",
            second=comparison.against.model,
            role=wording.marked_role(profile.change.role, language),
            divergence=out.number(profile.change.divergence),
            between=between and f" ({between})",
        )
    on = [Text(), *out.prose(sample(comparison, language))]
    if not full:
        lines += [Text(), *_brief(profile, comparison, out), *on]
        return [*lines, *cells.draw_notes(comparison, [], out), *out.tell("more_head", "dim")]
    for draw in (_held_against, _offsets, _measures, _sentences, _alike, _relations):
        if part := list(draw(profile, comparison, out)):
            lines += [Text(), *part]
    kinds = [kind for name, kind in CONTROLS.items() if name in comparison.controls]
    titles = [
        f"{kind.column_title(wide=screen.width >= NARROW)}: {in_language(kind.words, language)}"
        for kind in kinds
    ]
    marks = [say("marks", language), *titles, say("count_from_0", language)]
    lines += [*on, *out.prose("; ".join(marks), "dim")]
    lines += [*out.tell("narrow", "dim"), *out.tell("not_explanation", "dim")]
    return [*lines, *cells.draw_notes(comparison, comparison.notes, out)]


def _roles(profile: HeadProfile, comparison: HeadComparison, out: Writer) -> Iterator[Text]:
    screen, language = out.screen, out.language
    if not profile.roles:
        yield from out.tell("no_threshold")
        yield from out.prose(wording.closest_roles(comparison, profile, language), indent=2)
    for role in profile.roles:
        text = f"{out.mark(established=role.established)} {wording.role_score(role, language)}"
        yield from out.prose(text, cells.role_style(role, screen) + _BOLD, indent=2)
        inner = Writer(replace(screen, width=screen.width - 2), language)
        yield from (Text("  ") + line for line in inner.prose(how_sure(role, language)))
        example = selection.example_of(comparison, profile, role)
        if example is not None:
            start, end = f"  {out.say('example')} ", f"  {out.number(example.score)}"
            room = screen.width - cell_len(start) - len(end)
            yield Text(start + fit(f"“{example.text}”", room, screen) + end, no_wrap=True)


def _brief(profile: HeadProfile, comparison: HeadComparison, out: Writer) -> Iterator[Text]:
    values = {
        one.name: selection.estimate_of(comparison, one.name, profile)[0]
        for one in comparison.shares
    }
    names = sorted(
        (name for name, value in values.items() if not math.isnan(value)),
        key=lambda name: -values[name],
    )
    weights = [f"{name.replace('_', ' ')} {out.number(values[name])}" for name in names[:BRIEF]]
    yield from out.tell("mean_weights", weights=", ".join(weights))
    pattern = by_offset(comparison, profile, MAX_OFFSET)
    if not all(map(math.isnan, pattern)):
        start = f"{say('offset', out.language)} -{MAX_OFFSET} "
        drawn = cells.spark(pattern, out.screen), _style(profile, out)
        yield Text.assemble(start, drawn, f" +{MAX_OFFSET}", no_wrap=True)
    yield from out.prose(wording.list_alike(comparison, profile, out.language))


def _style(profile: HeadProfile, out: Writer) -> Style:
    return cells.rule_style(profile.role.rule, out.screen) if profile.role else Style()


def _held_against(profile: HeadProfile, _: HeadComparison, out: Writer) -> Iterator[Text]:
    for role in profile.roles:
        if role.controls:
            least = out.say(
                "from_on", measure=role.rule.short, threshold=out.number(role.rule.threshold)
            )
            words = [
                f"  {in_language(CONTROLS[one.name].describe(one), out.language)}"
                for one in role.controls
            ]
            columns = [
                out.column(f"{least} · {out.say('held_against')}", words, least=16),
                out.numbers("value", [one.value for one in role.controls]),
                out.column(
                    "95 %", [out.interval(one.low, one.high) for one in role.controls], right=True
                ),
                out.column(
                    "",
                    [
                        Text(out.say("could") if one.rules_out else "", "dim")
                        for one in role.controls
                    ],
                ),
            ]
            yield from table(columns, out.screen, gap=1 if out.screen.width < NARROW else 2)


def _offsets(profile: HeadProfile, comparison: HeadComparison, out: Writer) -> Iterator[Text]:
    """Its pattern averaged by offset: its numbers with their intervals, how often the largest is there, a bar."""
    found = {
        offset: selection.at_offset(comparison, offset, profile) for offset in comparison.offsets
    }
    values = {offset: value for offset, (value, _, _) in found.items() if not math.isnan(value)}
    if not values:
        yield from out.tell("not_measured")
        return
    yield from out.tell("at_offsets")
    largest = max(values.values())
    width = min(WIDEST_BAR, out.screen.width - 42)
    shown = list(found)
    parts = [found[offset][0] / largest if largest > 0 else 0.0 for offset in shown]
    columns = [
        out.column("offset", [f"{offset:+d}" if offset else "0" for offset in shown], right=True),
        out.numbers("weight", [found[offset][0] for offset in shown]),
        out.column("95 %", [out.interval(*found[offset][1:]) for offset in shown], right=True),
        out.numbers(
            "peak",
            [selection.at_offset(comparison, one, profile, "peak")[0] for one in shown],
            "dim",
        ),
        out.column(
            "",
            [
                Text(cells.bar(part, width, out.screen).rstrip(), _style(profile, out))
                for part in parts
            ],
        ),
    ]
    yield from table(columns, out.screen)


def _measures(profile: HeadProfile, comparison: HeadComparison, out: Writer) -> Iterator[Text]:
    measures = [one for one in comparison.measures if one.offset is None]
    names, is_wide = [one.name for one in measures], out.screen.width >= NARROW
    found = [selection.estimate_of(comparison, name, profile) for name in names]
    ends = [
        out.interval(low, high, narrow=one.narrow)
        for one, (_, low, high) in zip(measures, found, strict=True)
    ]
    columns = [
        out.column("measure", names),
        out.numbers("value", [value for value, _, _ in found]),
        out.column("95 %", ends, right=True),
    ]
    for control, kind in CONTROLS.items():
        if control in comparison.controls:
            values = [
                out.number(selection.control_of(comparison, control, name, profile))
                for name in names
            ]
            title, dim = kind.column_title(wide=is_wide), [Text(value, "dim") for value in values]
            columns.append(Column(title, dim, right=True, gap=1 + is_wide))
    if out.screen.width >= WITH_MEANINGS:
        columns.append(
            out.column(
                "",
                [Text(in_language(one.meaning, out.language), "dim") for one in measures],
                least=10,
            )
        )
    yield from table(columns, out.screen)


def _sentences(profile: HeadProfile, comparison: HeadComparison, out: Writer) -> Iterator[Text]:
    screen, of_roles = out.screen, [role.measure for role in profile.roles]
    others = [*(one.name for one in comparison.shares), "entropy_share", "distance", "confidence"]
    names = [
        name
        for name in dict.fromkeys([*of_roles, *others])
        if comparison.examples.get((profile.name, name))
    ]
    if not names:
        return
    wide = min(max(map(len, names)), screen.width // 3)
    yield from out.tell("strongest")
    for name in names:
        examples = comparison.examples[profile.name, name]
        for index, example in enumerate(examples if name in of_roles else examples[:1]):
            start = f"{fit(name, wide, screen) if index == 0 else '':<{wide}}  {out.number(example.score):>4}  "
            yield Text(
                start + fit(f"“{example.text}”", screen.width - len(start), screen), no_wrap=True
            )


def _alike(profile: HeadProfile, comparison: HeadComparison, out: Writer) -> Iterator[Text]:
    near = comparison.nearest(profile, ALIKE)
    if not near:
        return
    others = sum(other.cluster == profile.cluster for other in comparison.heads) - 1
    code = "in_cluster" if others else "alone_in_cluster"
    cluster = say(code, out.language, n_others=others, n=profile.cluster)
    yield from out.tell("near", cluster="" if profile.cluster is None else cluster)
    roles = [cells.name_role(one.role, role_words(one.role, out.language), out) for one, _ in near]
    columns = [
        out.column("head", [other.name for other, _ in near]),
        out.column("nats", [out.number(far, 3) for _, far in near], right=True),
        out.column("role", roles, least=8),
    ]
    yield from table(columns, out.screen)


def _relations(profile: HeadProfile, comparison: HeadComparison, out: Writer) -> Iterator[Text]:
    return draw_relations(
        [one for one in comparison.relations if (one.layer, one.head) == profile.place], out
    )
