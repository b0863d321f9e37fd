"""One head's page in a terminal: what it does and how sure that is; in full its controls, measures and sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from attnviz.heads import selection, wording
from attnviz.heads.measures import MAX_OFFSET
from attnviz.heads.record import HeadComparison, HeadProfile
from attnviz.heads.roles import CONTROLS
from attnviz.heads.terminal import cells
from attnviz.heads.terminal.cells import Writer
from attnviz.heads.terminal.table import by_offset, draw_relations
from attnviz.heads.wording import description, how_sure, narrow, plural, role_words, sample, say
from attnviz.render.terminal.screen import Screen
from attnviz.render.terminal.table import Column, table
from attnviz.render.terminal.text import fit

_BOLD = Style(bold=True)
ALIKE, BRIEF = 6, 4  # so many of the heads most like this one are named; so many measures on the first screen
FAR_SHOWN = 6  # offsets shown beyond those that are usual, where more were measured: the strongest
WIDEST_BAR = 40  # cells of the longest bar of an offset
NARROW = 72  # the windows, in cells, below which columns stand closer
WITH_MEANINGS = 104  # the windows, in cells, from which on each measure stands with what it means


def draw_head(
    comparison: HeadComparison, layer: int, head: int, screen: Screen, *, full: bool = False, language: str = "en"
) -> list[Text]:
    """One head's page, or in full all that is known of it. Raises SelectionError: there is no such head."""
    profile, out = comparison.head(layer, head), Writer(screen, language)
    lines = out.tell("head_title", "bold", head=profile.name, model=comparison.model)
    lines += out.tell("place", layer=profile.layer, head=profile.head, what=description(comparison, language))
    lines += [Text(), *_roles(profile, comparison, out)]
    on = [Text(), *out.prose(sample(comparison, language))]
    if not full:
        lines += [Text(), *_brief(profile, comparison, out), *on]
        return [*lines, *cells.draw_notes(comparison, [], out), *out.tell("more_head", "dim")]
    for draw in (_held_against, _offsets, _measures, _sentences, _alike, _relations):
        if part := list(draw(profile, comparison, out)):
            lines += [Text(), *part]
    kinds = [kind for name, kind in CONTROLS.items() if name in comparison.controls]
    titles = [f"{kind.titles[screen.width >= NARROW]}: {kind.say(language)}" for kind in kinds]
    marks = say("marks", language, yes=cells.ESTABLISHED, no=cells.DOUBTFUL, doubt="")
    lines += [*on, *out.prose("; ".join([marks, *titles, say("count_from_0", language)]), "dim")]
    lines += [*out.prose(narrow(language), "dim"), *out.tell("not_explanation", "dim")]
    return [*lines, *cells.draw_notes(comparison, comparison.notes, out)]


def _roles(profile: HeadProfile, comparison: HeadComparison, out: Writer) -> Iterator[Text]:
    screen, language = out.screen, out.language
    if not profile.roles:
        yield from out.tell("no_threshold")
        yield from out.prose(wording.closest_roles(comparison, profile, language), indent=2)
    for role in profile.roles:
        ends = "" if math.isnan(role.low) else f" ({out.interval(role.low, role.high, narrow=role.narrow)})"
        start = f"{out.mark(established=role.established)} {role.rule.short} {out.number(role.score)}{ends}"
        yield from out.prose(f"{start}: {role.rule.say(language)}", cells.role_style(role, screen) + _BOLD, indent=2)
        inner = Writer(Screen(width=screen.width - 2, unicode=screen.unicode), language)
        yield from (Text("  ") + line for line in inner.prose(how_sure(role, language)))
        examples = selection.example_of(comparison, profile, role), selection.strongest_of(comparison, profile, role)
        for phrase, example in zip(("example", "strongest_one"), examples, strict=True):
            if example is not None:
                start, end = f"  {out.say(phrase)} ", f"  {out.number(example.score)}"
                room = screen.width - cell_len(start) - len(end)
                yield Text(start + fit(f"“{example.text}”", room, screen) + end, no_wrap=True)


def _brief(profile: HeadProfile, comparison: HeadComparison, out: Writer) -> Iterator[Text]:
    values = {one.name: selection.estimate_of(comparison, one.name, profile)[0] for one in comparison.shares}
    names = sorted((name for name, value in values.items() if not math.isnan(value)), key=lambda name: -values[name])
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
            least = out.say("from_on", measure=role.rule.short, threshold=out.number(role.rule.threshold))
            words = [f"  {CONTROLS[one.name].say(out.language, one)}" for one in role.controls]
            columns = [
                out.column(f"{least} · {out.say('held_against')}", words, least=16),
                out.numbers("value", [one.value for one in role.controls]),
                out.column("95 %", [out.interval(one.low, one.high) for one in role.controls], right=True),
                out.column("", [Text(out.say("could") if one.rules_out else "", "dim") for one in role.controls]),
            ]
            yield from table(columns, out.screen, gap=1 if out.screen.width < NARROW else 2)


def _offsets(profile: HeadProfile, comparison: HeadComparison, out: Writer) -> Iterator[Text]:
    """Its pattern averaged by offset: its numbers with their intervals, how often the largest is there, a bar."""
    found = {offset: selection.at_offset(comparison, offset, profile) for offset in comparison.offsets}
    values = {offset: value for offset, (value, _, _) in found.items() if not math.isnan(value)}
    if not values:
        yield from out.tell("not_measured")
        return
    yield from out.tell("at_offsets")
    largest = max(values.values())
    width = min(WIDEST_BAR, out.screen.width - 42)
    shown = _worth_a_line(values, found)
    parts = [found[offset][0] / largest if largest > 0 else 0.0 for offset in shown]
    columns = [
        out.column("offset", [f"{offset:+d}" if offset else "0" for offset in shown], right=True),
        out.numbers("weight", [found[offset][0] for offset in shown]),
        out.column("95 %", [out.interval(*found[offset][1:]) for offset in shown], right=True),
        out.numbers("peak", [selection.at_offset(comparison, one, profile, "peak")[0] for one in shown], "dim"),
        out.column("", [Text(cells.bar(part, width, out.screen).rstrip(), _style(profile, out)) for part in parts]),
    ]
    yield from table(columns, out.screen)
    hidden = [value for offset, value in values.items() if offset not in shown]
    if hidden:
        n, most = len(hidden), out.number(max(hidden))
        yield from out.tell("offsets_hidden", offsets=plural(n, "other offset"), n=n, most=most)


def _worth_a_line(values: Mapping[int, float], every: Mapping[int, object]) -> list[int]:
    """The offsets to show: the near ones, and of those farther away the strongest."""
    far = [offset for offset in values if abs(offset) > MAX_OFFSET]
    strongest = sorted(far, key=lambda offset: (-values[offset], abs(offset)))[:FAR_SHOWN]
    return [offset for offset in every if abs(offset) <= MAX_OFFSET or offset in strongest]


def _measures(profile: HeadProfile, comparison: HeadComparison, out: Writer) -> Iterator[Text]:
    measures = [one for one in comparison.measures if one.offset is None]
    names, is_wide = [one.name for one in measures], out.screen.width >= NARROW
    found = [selection.estimate_of(comparison, name, profile) for name in names]
    ends = [out.interval(low, high, narrow=one.narrow) for one, (_, low, high) in zip(measures, found, strict=True)]
    columns = [
        out.column("measure", names),
        out.numbers("value", [value for value, _, _ in found]),
        out.column("95 %", ends, right=True),
    ]
    for control, kind in CONTROLS.items():
        if control in comparison.controls:
            values = [out.number(selection.control_of(comparison, control, name, profile)) for name in names]
            title, dim = kind.titles[is_wide], [Text(value, "dim") for value in values]
            columns.append(Column(title, dim, right=True, gap=1 + is_wide))
    if out.screen.width >= WITH_MEANINGS:
        columns.append(out.column("", [Text(one.say(out.language), "dim") for one in measures], least=10))
    yield from table(columns, out.screen)


def _sentences(profile: HeadProfile, comparison: HeadComparison, out: Writer) -> Iterator[Text]:
    screen, of_roles = out.screen, [role.measure for role in profile.roles]
    others = [*(one.name for one in comparison.shares), "entropy_share", "distance", "confidence"]
    names = [name for name in dict.fromkeys([*of_roles, *others]) if comparison.examples.get((profile.name, name))]
    if not names:
        return
    wide = min(max(map(len, names)), screen.width // 3)
    yield from out.tell("strongest")
    for name in names:
        examples = comparison.examples[profile.name, name]
        for index, example in enumerate(examples if name in of_roles else examples[:1]):
            start = f"{fit(name, wide, screen) if index == 0 else '':<{wide}}  {out.number(example.score):>4}  "
            yield Text(start + fit(f"“{example.text}”", screen.width - len(start), screen), no_wrap=True)


def _alike(profile: HeadProfile, comparison: HeadComparison, out: Writer) -> Iterator[Text]:
    near = comparison.nearest(profile, ALIKE)
    if not near:
        return
    others = sum(other.cluster == profile.cluster for other in comparison.heads) - 1
    code = "in_cluster" if others else "alone_in_cluster"
    cluster = say(code, out.language, others=plural(others, "other"), n_others=others, n=profile.cluster)
    yield from out.tell("near", cluster="" if profile.cluster is None else cluster)
    roles = [cells.name_role(one.role, role_words(one.role, out.language), out) for one, _ in near]
    columns = [
        out.column("head", [other.name for other, _ in near]),
        out.column("nats", [out.number(far, 3) for _, far in near], right=True),
        out.column("role", roles, least=8),
    ]
    yield from table(columns, out.screen)


def _relations(profile: HeadProfile, comparison: HeadComparison, out: Writer) -> Iterator[Text]:
    own = [one for one in comparison.relations if (one.layer, one.head) == profile.place]
    return draw_relations(own, out) if own else iter(())
