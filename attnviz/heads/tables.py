"""Tables of heads, roles and relations as columns of texts, which a terminal and a picture draw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from attnviz.attention import Attention
from attnviz.heads.measures import CHANCE, OFFSET, UNTRAINED
from attnviz.heads.record import Control, HeadComparison, HeadProfile, Relation, Role
from attnviz.heads.roles import CONTROLS
from attnviz.heads.selection import (
    HeadRole,
    WordLink,
    head_kinds,
    strongest_link,
    strongest_links,
)
from attnviz.heads.words import (
    MARKS,
    MISSING,
    interval,
    marked_role,
    role_name,
    rounded,
)
from attnviz.text.messages import N_, NC_, _, pgettext

NAMED = 3  # number of heads named per role
NO_LABEL = "·"  # the label of a head without a clear role, on a map
HEAD, ROLE, SCORE = N_("head"), N_("role"), NC_("heads", "score")
INTERVAL = N_("95% interval")


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table; a table is a list of columns with the same number of cells."""

    title: str
    cells: Sequence[str]
    right: bool = False  # whether cells are right-aligned, like numbers
    least: int = 0  # smallest width in a narrow terminal, in letters; 0 keeps the full width
    roles: Sequence[Role | None] = ()  # the role of each cell, which gives its colour


def map_label(role: Role | None) -> str:
    """Return the short name of a role, with a question mark if it is not established."""
    if role is None:
        return NO_LABEL
    return _(role.rule.short) + ("" if role.established else "?")


def role_table(rows: Sequence[Sequence[HeadRole]]) -> list[Column]:
    """Return the table of roles, one row per group of `attnviz.heads.selection.by_role`."""
    roles = [row[0].role for row in rows]
    return [
        Column(
            title="",
            cells=[MARKS[role.established] if role else " " for role in roles],
            roles=roles,
        ),
        Column(title=_(ROLE), cells=[role_name(role) for role in roles], least=18, roles=roles),
        *_score_columns(roles),
        Column(title=_("best heads"), cells=[_names(row) for row in rows]),
        Column(title=_("to beat"), cells=[_rival(role) for role in roles]),
        Column(
            title=_("what it does"),
            cells=[_(role.rule.words) if role else "" for role in roles],
            least=30,
        ),
    ]


def _score_columns(roles: Sequence[Role | None]) -> list[Column]:
    """Return the columns of the score and its interval; cells without a role are empty."""
    return [
        Column(
            title=_(SCORE),
            cells=[rounded(role.score) if role else "" for role in roles],
            right=True,
        ),
        Column(
            title=_(INTERVAL),
            cells=[
                interval(role.low, role.high, narrow=role.narrow) if role else "" for role in roles
            ],
            right=True,
        ),
    ]


def _rival(role: Role | None) -> str:
    """Return the upper end of the interval of the strongest control, with its name."""
    if role is None or role.rival is None:
        return ""
    control = role.rival
    if control.offset is None:
        return f"{rounded(control.high)} {_(CONTROLS[control.name].title)}"
    return _("{value} at {offset:+d}").format(value=rounded(control.high), offset=control.offset)


def _names(row: Sequence[HeadRole]) -> str:
    """Return the names of the first heads, and how many more there are: ``1.2 0.3 2.2 +4``."""
    names = " ".join(head.name for head, _role in row[:NAMED])
    return f"{names} +{len(row) - NAMED}" if len(row) > NAMED else names


def head_table(comparison: HeadComparison, rows: Sequence[HeadRole]) -> list[Column]:
    """Return the table of heads with their roles."""
    heads, roles = [head for head, _role in rows], [role for _head, role in rows]
    columns = [
        Column(title=_(HEAD), cells=[head.name for head in heads]),
        Column(title=_(ROLE), cells=list(map(marked_role, roles)), least=22, roles=roles),
        *_score_columns(roles),
    ]
    if comparison.attention is not None:
        links = [strongest_link(comparison.attention, *head.place) for head in heads]
        columns.append(Column(title=_("strongest link"), cells=list(map(_link_words, links))))
    if comparison.against is not None:
        columns += _change_columns(heads)
    for name, kind in CONTROLS.items():
        if name in comparison.controls and name != CHANCE:
            controls = [_control_value(role, name) for role in roles]
            columns.append(Column(title=_(kind.title), cells=controls, right=True))
    return columns


def _change_columns(heads: Sequence[HeadProfile]) -> list[Column]:
    """Return columns with the divergence of heads from a second model, and their roles there."""
    changes = [head.change for head in heads if head.change is not None]
    second_roles = [change.role for change in changes]
    divergences = [rounded(change.divergence) for change in changes]
    return [
        Column(title=_("JSD"), cells=divergences, right=True),
        Column(
            title=_("role before"),
            cells=list(map(marked_role, second_roles)),
            least=10,
            roles=second_roles,
        ),
    ]


def _control_value(role: Role | None, name: str) -> str:
    """Return the value of a control of a role; empty without a role."""
    if role is None:
        return ""
    values = [control.value for control in role.controls if control.name == name]
    return rounded(values[0]) if values else MISSING


def relation_table(relations: Sequence[Relation]) -> list[Column]:
    """Return the table of relations and the head that finds each best, established or not."""
    roles = [item.role for item in relations]
    offset_controls = [item.control(OFFSET) for item in relations]
    offsets = [f"{item.offset:+d} {_up_to(item)}" if item else MISSING for item in offset_controls]
    untrained_highs = [_up_to(item.control(UNTRAINED)) for item in relations]
    score, intervals = _score_columns(roles)
    return [
        Column(title=_("relation"), cells=list(map(marked_role, roles)), least=20),
        Column(title="n", cells=[f"{item.n:,}" for item in relations], right=True),
        Column(title=_(HEAD), cells=[f"{item.layer}.{item.head}" for item in relations]),
        replace(score, title=pgettext("heads", "right")),
        intervals,
        Column(title=_(CONTROLS[OFFSET].title), cells=offsets, right=True),
        Column(title=_(CONTROLS[UNTRAINED].title), cells=untrained_highs, right=True),
    ]


def _up_to(control: Control | None) -> str:
    """Return the upper end of the interval of a control; the lower end of a score must lie above it."""
    if control is None or math.isnan(control.high):
        return MISSING
    return f"≤{rounded(control.high)}"


def change_table(comparison: HeadComparison, most: int) -> list[Column]:
    """Return the heads that differ most from the same heads of the second model."""
    heads = sorted(comparison.heads, key=_divergence, reverse=True)[:most]
    intervals = [interval(head.change.low, head.change.high) for head in heads if head.change]
    jsd, second_roles = _change_columns(heads)
    return [
        Column(title=_(HEAD), cells=[head.name for head in heads]),
        jsd,
        Column(title=_(INTERVAL), cells=intervals, right=True),
        Column(title=_(ROLE), cells=[marked_role(head.role) for head in heads]),
        second_roles,
    ]


def _divergence(head: HeadProfile) -> float:
    """Return how far a head is from the second model; minus infinity if no row was counted."""
    value = math.nan if head.change is None else head.change.divergence
    return -math.inf if math.isnan(value) else value


def kind_table(roles_on: HeadComparison, record: Attention) -> list[Column]:
    """Return the table of the four kinds of heads named in lectures, for one sentence."""
    kinds = head_kinds(roles_on, record)
    links = [kind.link for kind in kinds]
    roles = [kind.role for kind in kinds]
    names = [f"{_(role.rule.short)} {rounded(role.score)}" if role else MISSING for role in roles]
    return [
        Column(title=_("kind"), cells=[_(kind.name) for kind in kinds]),
        Column(
            title=_("link in the lecture"),
            cells=[link.words if link else MISSING for link in links],
            least=12,
        ),
        Column(
            title=_(HEAD),
            cells=[_head_words(link) if link else MISSING for link in links],
        ),
        Column(
            title=_("weight"),
            cells=[rounded(link.weight) if link else MISSING for link in links],
            right=True,
        ),
        Column(title=_(ROLE), cells=names, roles=roles, least=10),
    ]


def _link_words(link: WordLink | None) -> str:
    """Return a link with its weight; empty for None."""
    return "" if link is None else f"{link.words} {rounded(link.weight)}"


def _head_words(link: WordLink) -> str:
    """Return the head of a link with its word, so that 0.3 is not read as a weight beside one."""
    return _("head {n}").format(n=f"{link.layer}.{link.head}")


def link_table(record: Attention) -> list[Column]:
    """Return the strongest links between words of a sentence, each of another head."""
    links = strongest_links(record)
    return [
        Column(title=_(HEAD), cells=[_head_words(link) for link in links]),
        Column(title=_("from → to"), cells=[link.words for link in links], least=12),
        Column(title=_("weight"), cells=[rounded(link.weight) for link in links], right=True),
    ]


def measure_table(comparison: HeadComparison, profile: HeadProfile) -> list[Column]:
    """Return the measures of one head with their intervals and controls."""
    measures = [item for item in comparison.measures if item.offset is None]
    estimates = [comparison.estimate(item.name, *profile.place) for item in measures]
    intervals = [
        interval(low, high, narrow=item.narrow)
        for item, (_value, low, high) in zip(measures, estimates, strict=True)
    ]
    columns = [
        Column(title=_("measure"), cells=[item.name for item in measures]),
        Column(
            title=pgettext("heads", "value"),
            cells=[rounded(item[0]) for item in estimates],
            right=True,
        ),
        Column(title=_(INTERVAL), cells=intervals, right=True),
    ]
    for name, kind in CONTROLS.items():
        if name in comparison.controls:
            values = [comparison.control(name, item.name, profile) for item in measures]
            columns.append(
                Column(title=_(kind.title), cells=list(map(rounded, values)), right=True)
            )
    meanings = [_(item.meaning) for item in measures]
    return [*columns, Column(title=_("what it measures"), cells=meanings, least=24)]
