"""One head's page in a terminal: its roles with their controls, its pattern by offset, all measures, its sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from rich.style import Style
from rich.text import Text

from attnviz.heads import wording
from attnviz.heads.measures import Measure
from attnviz.heads.notes import counted, reason_of
from attnviz.heads.record import HeadComparison, HeadProfile, Role
from attnviz.heads.selection import at_offset, control_of, estimate_of, nearest, strongest_shown
from attnviz.heads.settings import MAX_OFFSET
from attnviz.heads.terminal.cells import (
    CONTROL_TITLES,
    DOUBTFUL,
    ESTABLISHED,
    bar,
    family_style,
    interval,
    mark,
    name_role,
    number,
    prose,
    role_style,
)
from attnviz.heads.terminal.table import draw_notes, draw_relations
from attnviz.heads.wording import CONTROLS_OF_A_HEAD, HELD, NOT_EXPLANATION, scored_on
from attnviz.render.terminal.screen import Screen
from attnviz.render.terminal.table import Column, table
from attnviz.render.terminal.text import fit, spell

_BOLD = Style(bold=True)
ALIKE = 6
"""So many of the heads most like this one are named."""
FAR_SHOWN = 6
"""Offsets shown beyond those that are usual, where more were measured: the strongest."""

WIDEST_BAR = 40
"""Cells of the longest bar of an offset."""
NARROW = 72
"""The windows, in cells, below which columns stand closer."""
WITH_MEANINGS = 104
"""The windows, in cells, from which on each measure stands with what it means."""


def draw_head(comparison: HeadComparison, layer: int, head: int, screen: Screen) -> list[Text]:
    """One head's page.

    Args:
        comparison: of heads.
        layer: its layer, counted from 0, negative from the end.
        head: its number, likewise.
        screen: where.

    Raises:
        SelectionError: there is no such head.
    """
    profile = comparison.head(layer, head)
    lines = prose(f"Head {profile.name} · {comparison.model}", screen, "bold")
    lines += prose(f"layer {profile.layer}, head {profile.head} of {wording.described(comparison)}", screen)
    lines += prose(wording.sample(comparison), screen)
    lines += [Text(), *_roles(profile, screen)]
    lines += [Text(), *_offsets(profile, comparison, screen)]
    lines += [Text(), *_measures(profile, comparison, screen)]
    if sentences := list(_sentences(profile, comparison, screen)):
        lines += [Text(), *sentences]
    if alike := list(_alike(profile, comparison, screen)):
        lines += [Text(), *alike]
    if own := [one for one in comparison.relations if (one.layer, one.head) == (profile.layer, profile.head)]:
        lines += [Text(), *draw_relations(own, screen)]
    return [*lines, Text(), *draw_notes(comparison, screen, _legend(comparison, screen, related=bool(own)))]


def _roles(profile: HeadProfile, screen: Screen) -> Iterator[Text]:
    """What it does, the clearest first, each with what it is held against."""
    if not profile.roles:
        yield from prose(f"{profile.words}: no measure reaches the threshold of a role", screen)
    gap, could = (1, "may rule out") if screen.width < NARROW else (2, "could rule it out")
    for role in profile.roles:
        yield from _role_lines(role, screen)
        if not role.established:
            yield from prose(f"  not established: {reason_of(role)}", screen, indent=2)
        if role.controls:
            columns = [
                Column("  held against", [f"  {spell(one.what, screen)}" for one in role.controls], least=16),
                Column("value", [number(one.value, screen) for one in role.controls], right=True),
                Column("95 %", [interval(one.low, one.high, screen) for one in role.controls], right=True),
                Column("", [Text(could if one.rules_out else "", "dim") for one in role.controls]),
            ]
            yield from table(columns, screen, gap=gap)


def _role_lines(role: Role, screen: Screen) -> Iterator[Text]:
    """What a role is; its score and measure, on a line of their own where they do not fit behind it."""
    style = role_style(role, screen) + _BOLD
    *before, last = prose(f"{mark(role.established, screen)} {role.words}", screen, style, indent=2)
    yield from before
    line = Text.assemble(last, no_wrap=True)
    ends = "" if math.isnan(role.low) else f" ({interval(role.low, role.high, screen)})"
    score = f"  {number(role.score, screen)}{ends}"
    rest = spell(f"  {role.measure}, a role from {number(role.threshold, screen)} on", screen)
    if line.cell_len + len(score) + len(rest) > screen.width:
        yield line
        line = Text(no_wrap=True)
    line.append(score)
    line.append(fit(rest, screen.width - line.cell_len, screen), "dim")
    yield line


def _offsets(profile: HeadProfile, comparison: HeadComparison, screen: Screen) -> Iterator[Text]:
    """Its pattern averaged by offset: its numbers with their intervals, how often the largest is there, a bar."""
    values = {offset: at_offset(comparison, offset, profile)[0] for offset in comparison.offsets}
    if all(math.isnan(value) for value in values.values()):
        yield from prose("its pattern by offset was not measured", screen)
        return
    yield from prose("mean weight by offset (0 is the token itself, -1 the one before)", screen)
    largest = max(value for value in values.values() if not math.isnan(value))
    width = min(WIDEST_BAR, screen.width - 42)
    style = family_style(profile.roles[0], screen) if profile.roles else Style()
    offsets = _worth_a_line(values)
    ends = [at_offset(comparison, offset, profile)[1:] for offset in offsets]
    peaks = [at_offset(comparison, offset, profile, "peak")[0] for offset in offsets]
    bars = [bar(values[offset] / largest if largest > 0 else 0.0, width, screen).rstrip() for offset in offsets]
    columns = [
        Column("offset", [f"{offset:+d}" if offset else "0" for offset in offsets], right=True),
        Column("weight", [number(values[offset], screen) for offset in offsets], right=True),
        Column("95 %", [interval(low, high, screen) for low, high in ends], right=True),
        Column("largest there", [Text(number(peak, screen), "dim") for peak in peaks], right=True),
        Column("", [Text(text, style) for text in bars]),
    ]
    yield from table(columns, screen)
    hidden = [value for offset, value in values.items() if offset not in offsets and not math.isnan(value)]
    if hidden:
        more = counted(len(hidden), "other offset")
        yield from prose(f"{more} not shown, with at most {number(max(hidden), screen)}", screen)


def _worth_a_line(values: Mapping[int, float]) -> list[int]:
    """The offsets to show: the near ones, and of those farther away the strongest."""
    far = [offset for offset, value in values.items() if abs(offset) > MAX_OFFSET and not math.isnan(value)]
    strongest = sorted(far, key=lambda offset: (-values[offset], abs(offset)))[:FAR_SHOWN]
    return [offset for offset in values if abs(offset) <= MAX_OFFSET or offset in strongest]


def _measures(profile: HeadProfile, comparison: HeadComparison, screen: Screen) -> Iterator[Text]:
    """All measures but those by offset, with their intervals and controls."""
    measures = [one for one in comparison.measures if one.offset is None]
    names = [one.name for one in measures]
    estimates = [estimate_of(comparison, name, profile) for name in names]
    columns = [
        Column("measure", names),
        Column("value", [number(value, screen) for value, _, _ in estimates], right=True),
        Column("95 %", [interval(low, high, screen) for _, low, high in estimates], right=True),
    ]
    is_wide = screen.width >= NARROW
    for control in CONTROLS_OF_A_HEAD:
        if control in comparison.controls:
            values = [number(control_of(comparison, control, name, profile), screen) for name in names]
            title = CONTROL_TITLES[control][is_wide]
            columns.append(Column(title, [Text(value, "dim") for value in values], right=True, gap=1 + is_wide))
    if screen.width >= WITH_MEANINGS:
        columns.append(Column("", [Text(_meaning(one), "dim") for one in measures], least=10))
    yield from table(columns, screen)


def _meaning(one: Measure) -> str:
    return f"{one.meaning}, in {one.unit}" if one.unit in {"nats", "tokens"} else one.meaning


def _sentences(profile: HeadProfile, comparison: HeadComparison, screen: Screen) -> Iterator[Text]:
    """The sentences where it is strongest: several for its roles, one for each other measure."""
    of_roles = [role.measure for role in profile.roles]
    names = [
        name
        for name in dict.fromkeys([*of_roles, *strongest_shown(comparison)])
        if comparison.examples.get((profile.name, name))
    ]
    if not names:
        return
    wide = min(max(map(len, names)), screen.width // 3)
    yield from prose("where it is strongest", screen)
    for name in names:
        examples = comparison.examples[profile.name, name]
        for index, example in enumerate(examples if name in of_roles else examples[:1]):
            start = f"{fit(name, wide, screen) if index == 0 else '':<{wide}}  {number(example.score, screen):>4}  "
            yield Text(start + fit(f"“{example.text}”", screen.width - len(start), screen), no_wrap=True)


def _alike(profile: HeadProfile, comparison: HeadComparison, screen: Screen) -> Iterator[Text]:
    """The heads most like it."""
    near = nearest(comparison, profile.layer, profile.head, ALIKE)
    if not near:
        return
    together = sum(other.cluster == profile.cluster for other in comparison.heads) - 1
    others = f"{counted(together, 'other')} in its cluster" if together else "alone in its cluster"
    of_cluster = f"; {others}, number {profile.cluster}" if profile.cluster is not None else ""
    yield from prose(f"heads most like it, by mean Jensen-Shannon divergence, in nats (0 to 0.69){of_cluster}", screen)
    columns = [
        Column("head", [other.name for other, _ in near]),
        Column("nats", [number(far, screen, 3) for _, far in near], right=True),
        Column("role", [name_role(next(iter(one.roles), None), one.words, screen) for one, _ in near], least=8),
    ]
    yield from table(columns, screen)


def _legend(comparison: HeadComparison, screen: Screen, *, related: bool) -> list[str]:
    """How to read the page: what it has."""
    controls = [
        f"{titles[screen.width >= NARROW]}: {HELD[name]}"
        for name, titles in CONTROL_TITLES.items()
        if name in comparison.controls
    ]
    marks = (
        f"how to read: {ESTABLISHED} the score's 95 % interval lies above the controls that could rule the role out, "
        f"{DOUBTFUL} it does not: not established"
    )
    how = [marks, *controls, "layers and heads count from 0"]
    return ["; ".join(how), *([scored_on(comparison)] if related else []), NOT_EXPLANATION]
