"""One head's page in a terminal: what it does and how sure that is; in full its controls, measures and sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from attnviz.heads import selection
from attnviz.heads.record import HeadComparison, HeadProfile
from attnviz.heads.roles import CONTROLS
from attnviz.heads.settings import MAX_OFFSET
from attnviz.heads.terminal.cells import (
    DOUBTFUL,
    ESTABLISHED,
    bar,
    draw_notes,
    interval,
    mark,
    name_role,
    number,
    prose,
    role_style,
    rule_style,
    spark,
)
from attnviz.heads.terminal.table import by_offset, draw_relations
from attnviz.heads.wording import closest_roles, description, how_sure, narrow, plural, role_words, sample, say
from attnviz.render.terminal.screen import Screen
from attnviz.render.terminal.table import Column, table
from attnviz.render.terminal.text import fit, spell

_BOLD = Style(bold=True)
ALIKE, ALIKE_BRIEF = 6, 4  # so many of the heads most like this one are named, in full and on the first screen
FAR_SHOWN = 6  # offsets shown beyond those that are usual, where more were measured: the strongest
WIDEST_BAR = 40  # cells of the longest bar of an offset
NARROW = 72  # the windows, in cells, below which columns stand closer
WITH_MEANINGS = 104  # the windows, in cells, from which on each measure stands with what it means


def draw_head(
    comparison: HeadComparison, layer: int, head: int, screen: Screen, *, full: bool = False, language: str = "en"
) -> list[Text]:
    """One head's page, or in full all that is known of it. Raises SelectionError: there is no such head."""
    profile = comparison.head(layer, head)
    lines = prose(say("head_title", language, head=profile.name, model=comparison.model), screen, "bold")
    what = description(comparison, language)
    lines += prose(say("place", language, layer=profile.layer, head=profile.head, what=what), screen)
    lines += [Text(), *_roles(profile, comparison, screen, language)]
    if not full:
        lines += [Text(), *_brief(profile, comparison, screen, language)]
        lines += [Text(), *prose(sample(comparison, language), screen)]
        lines += draw_notes(comparison, [], screen, language)
        return [*lines, *prose(say("more_head", language), screen, "dim")]
    own = [one for one in comparison.relations if (one.layer, one.head) == (profile.layer, profile.head)]
    parts = [list(part(profile, comparison, screen, language))
             for part in (_held_against, _offsets, _measures, _sentences, _alike)]  # fmt: skip
    for part in (*parts, list(draw_relations(own, screen, language)) if own else []):
        lines += [Text(), *part] if part else []
    lines += [Text(), *prose(sample(comparison, language), screen)]
    kinds = [kind for name, kind in CONTROLS.items() if name in comparison.controls]
    titles = [f"{kind.titles[screen.width >= NARROW]}: {kind.say(language)}" for kind in kinds]
    marks = say("marks", language, yes=ESTABLISHED, no=DOUBTFUL, doubt="")
    how = "; ".join([marks, *titles, say("count_from_0", language)])
    for text in (how, narrow(language), say("not_explanation", language)):
        lines += prose(text, screen, "dim")
    return [*lines, *draw_notes(comparison, comparison.notes, screen, language)]


def _roles(profile: HeadProfile, comparison: HeadComparison, screen: Screen, language: str) -> Iterator[Text]:
    if not profile.roles:
        yield from prose(say("no_threshold", language), screen)
        yield from prose(closest_roles(comparison, profile, language), screen, indent=2)
    for role in profile.roles:
        ends = "" if math.isnan(role.low) else f" ({interval(role.low, role.high, screen, narrow=role.narrow)})"
        start = f"{mark(screen, established=role.established)} {role.rule.short} {number(role.score, screen)}{ends}"
        words = role.rule.say(language)
        yield from prose(f"{start}: {words}", screen, role_style(role, screen) + _BOLD, indent=2)
        inner = Screen(width=screen.width - 2, unicode=screen.unicode)
        yield from (Text("  ") + line for line in prose(spell(how_sure(role, language), screen), inner))
        examples = selection.example_of(comparison, profile, role), selection.strongest_of(comparison, profile, role)
        for phrase, example in zip(("example", "strongest_one"), examples, strict=True):
            if example is not None:
                start, end = f"  {spell(say(phrase, language), screen)} ", f"  {number(example.score, screen)}"
                room = screen.width - cell_len(start) - len(end)
                yield Text(start + fit(f"“{example.text}”", room, screen) + end, no_wrap=True)


def _brief(profile: HeadProfile, comparison: HeadComparison, screen: Screen, language: str) -> Iterator[Text]:
    values = {one.name: selection.estimate_of(comparison, one.name, profile)[0] for one in comparison.shares}
    names = sorted((name for name, value in values.items() if not math.isnan(value)), key=lambda name: -values[name])
    weights = ", ".join(f"{name.replace('_', ' ')} {number(values[name], screen)}" for name in names[:ALIKE_BRIEF])
    yield from prose(say("mean_weights", language, weights=weights), screen)
    pattern = by_offset(comparison, profile, MAX_OFFSET)
    if not all(map(math.isnan, pattern)):
        style = rule_style(profile.roles[0].rule, screen) if profile.roles else Style()
        start = f"{say('offset', language)} -{MAX_OFFSET} "
        yield Text.assemble(start, (spark(pattern, screen), style), f" +{MAX_OFFSET}", no_wrap=True)
    near = selection.nearest(comparison, profile.layer, profile.head, ALIKE_BRIEF)
    if near:
        heads = ", ".join(
            f"{other.name} ({other.roles[0].rule.short if other.roles else say('no_role', language)})"
            for other, _ in near
        )
        yield from prose(say("most_alike", language, heads=heads), screen)


def _held_against(profile: HeadProfile, _: HeadComparison, screen: Screen, language: str) -> Iterator[Text]:
    gap = 1 if screen.width < NARROW else 2
    for role in profile.roles:
        if role.controls:
            least = say("from_on", language, measure=role.rule.short, threshold=number(role.rule.threshold, screen))
            words = [f"  {spell(CONTROLS[one.name].say(language, one), screen)}" for one in role.controls]
            could = spell(say("could", language), screen)
            columns = [
                Column(spell(f"{least} · {say('held_against', language)}", screen), words, least=16),
                Column(say("value", language), [number(one.value, screen) for one in role.controls], right=True),
                Column("95 %", [interval(one.low, one.high, screen) for one in role.controls], right=True),
                Column("", [Text(could if one.rules_out else "", "dim") for one in role.controls]),
            ]
            yield from table(columns, screen, gap=gap)


def _offsets(profile: HeadProfile, comparison: HeadComparison, screen: Screen, language: str) -> Iterator[Text]:
    """Its pattern averaged by offset: its numbers with their intervals, how often the largest is there, a bar."""
    values = {offset: selection.at_offset(comparison, offset, profile)[0] for offset in comparison.offsets}
    if all(math.isnan(value) for value in values.values()):
        yield from prose(say("not_measured", language), screen)
        return
    yield from prose(say("at_offsets", language), screen)
    largest = max(value for value in values.values() if not math.isnan(value))
    width = min(WIDEST_BAR, screen.width - 42)
    style = rule_style(profile.roles[0].rule, screen) if profile.roles else Style()
    offsets = _worth_a_line(values)
    ends = [selection.at_offset(comparison, offset, profile)[1:] for offset in offsets]
    peaks = [selection.at_offset(comparison, offset, profile, "peak")[0] for offset in offsets]
    bars = [bar(values[offset] / largest if largest > 0 else 0.0, width, screen).rstrip() for offset in offsets]
    columns = [
        Column(say("offset", language), [f"{offset:+d}" if offset else "0" for offset in offsets], right=True),
        Column(say("weight", language), [number(values[offset], screen) for offset in offsets], right=True),
        Column("95 %", [interval(low, high, screen) for low, high in ends], right=True),
        Column(say("peak", language), [Text(number(peak, screen), "dim") for peak in peaks], right=True),
        Column("", [Text(text, style) for text in bars]),
    ]
    yield from table(columns, screen)
    hidden = [value for offset, value in values.items() if offset not in offsets and not math.isnan(value)]
    if hidden:
        n, most = len(hidden), number(max(hidden), screen)
        yield from prose(say("offsets_hidden", language, offsets=plural(n, "other offset"), n=n, most=most), screen)


def _worth_a_line(values: Mapping[int, float]) -> list[int]:
    """The offsets to show: the near ones, and of those farther away the strongest."""
    far = [offset for offset, value in values.items() if abs(offset) > MAX_OFFSET and not math.isnan(value)]
    strongest = sorted(far, key=lambda offset: (-values[offset], abs(offset)))[:FAR_SHOWN]
    return [offset for offset in values if abs(offset) <= MAX_OFFSET or offset in strongest]


def _measures(profile: HeadProfile, comparison: HeadComparison, screen: Screen, language: str) -> Iterator[Text]:
    measures = [one for one in comparison.measures if one.offset is None]
    names = [one.name for one in measures]
    estimates = [selection.estimate_of(comparison, name, profile) for name in names]
    ends = [
        interval(low, high, screen, narrow=one.narrow) for one, (_, low, high) in zip(measures, estimates, strict=True)
    ]
    columns = [
        Column(say("measure", language), names),
        Column(say("value", language), [number(value, screen) for value, _, _ in estimates], right=True),
        Column("95 %", ends, right=True),
    ]
    is_wide = screen.width >= NARROW
    for control, kind in CONTROLS.items():
        if control in comparison.controls:
            values = [number(selection.control_of(comparison, control, name, profile), screen) for name in names]
            title = kind.titles[is_wide]
            columns.append(Column(title, [Text(value, "dim") for value in values], right=True, gap=1 + is_wide))
    if screen.width >= WITH_MEANINGS:
        columns.append(Column("", [Text(one.say(language), "dim") for one in measures], least=10))
    yield from table(columns, screen)


def _sentences(profile: HeadProfile, comparison: HeadComparison, screen: Screen, language: str) -> Iterator[Text]:
    of_roles = [role.measure for role in profile.roles]
    others = [*(one.name for one in comparison.shares), "entropy_share", "distance", "confidence"]
    names = [name for name in dict.fromkeys([*of_roles, *others]) if comparison.examples.get((profile.name, name))]
    if not names:
        return
    wide = min(max(map(len, names)), screen.width // 3)
    yield from prose(say("strongest", language), screen)
    for name in names:
        examples = comparison.examples[profile.name, name]
        for index, example in enumerate(examples if name in of_roles else examples[:1]):
            start = f"{fit(name, wide, screen) if index == 0 else '':<{wide}}  {number(example.score, screen):>4}  "
            yield Text(start + fit(f"“{example.text}”", screen.width - len(start), screen), no_wrap=True)


def _alike(profile: HeadProfile, comparison: HeadComparison, screen: Screen, language: str) -> Iterator[Text]:
    near = selection.nearest(comparison, profile.layer, profile.head, ALIKE)
    if not near:
        return
    others = sum(other.cluster == profile.cluster for other in comparison.heads) - 1
    code = "in_cluster" if others else "alone_in_cluster"
    cluster = say(code, language, others=plural(others, "other"), n_others=others, n=profile.cluster)
    yield from prose(say("near", language, cluster="" if profile.cluster is None else cluster), screen)
    roles = [next(iter(one.roles), None) for one, _ in near]
    columns = [
        Column(say("head", language), [other.name for other, _ in near]),
        Column("nats", [number(far, screen, 3) for _, far in near], right=True),
        Column(say("role", language), [name_role(role, role_words(role, language), screen) for role in roles], least=8),
    ]
    yield from table(columns, screen)
