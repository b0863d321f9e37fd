"""Tables of heads, roles and relations as columns of texts, which a terminal and a picture draw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from attnviz.attention import Attention
from attnviz.heads.measures import CHANCE, OFFSET, UNTRAINED
from attnviz.heads.record import Control, HeadComparison, HeadProfile, Relation, Role
from attnviz.heads.relations import relation_of
from attnviz.heads.roles import CONTROLS
from attnviz.heads.selection import (
    WordLink,
    by_role,
    head_kinds,
    strongest_link,
    strongest_links,
)
from attnviz.heads.words import (
    MISSING,
    interval,
    marked_role,
    role_name,
    rounded,
)
from attnviz.render.columns import Column
from attnviz.text.messages import N_, NC_, _, pgettext

NO_LABEL = "·"  # the label of a head without a clear role, on a map
HEAD, ROLE, SCORE = N_("head"), N_("role"), NC_("heads", "score")
INTERVAL = N_("95% interval")


CODES = {
    "self": "SELF",
    "previous": "PREV",
    "next": "NEXT",
    "first": "FIRST",
    "separator": "SEP",
    "punctuation": "PUNCT",
    "same_word": "SAME",
    "induction": "INDUC",
    "broad": "BROAD",
    "meaning": "SIM",
    "amod": "ADJ",
    "nsubj": "SUBJ",
    "nsubj:pass": "SUBJ",
    "case": "PREP",
    "coreference": "PRON",
    "advmod": "ADV",
    "nummod": "NUM",
    "nmod:poss": "POSS",
    "agreement": "AGREE",
    "compound:prt": "PART",
}
"""Short names of roles on a map, by the name of the role or of the relation; the others are the first letters."""


def code(role: Role) -> str:
    """Return the short name of a role, such as ``PREV`` or ``OBJ``; ``>OBJ`` from the other word to the object."""
    relation = relation_of(role.name)
    if role.rule.family == "offset":
        distance = int(role.name.rpartition("_")[2])
        return f"{abs(distance)}{'BACK' if distance < 0 else 'AHEAD'}"
    if relation is None:
        return CODES.get(role.name, role.name[:5].upper())
    name, is_reverse = relation
    return (">" if is_reverse else "") + CODES.get(name, name.partition(":")[0][:5].upper())


def map_code(head: HeadProfile) -> str:
    """Return the short name of the clearest established role of a head, and how many more it has, such as ``OBJ+2``."""
    if not head.established:
        return NO_LABEL
    more = len(head.established) - 1
    return code(head.established[0]) + (f"+{more}" if more else "")


def overview_table(comparison: HeadComparison, most: int | None = None) -> tuple[list[Column], int]:
    """Return the table of established roles, each with its best head and what could explain it away.

    It has at most so many rows; where these are not all, those that a map names come first. Return how many are left
    out, too.
    """
    rows = by_role(comparison)
    n_hidden = 0 if most is None else max(0, len(rows) - most)
    if n_hidden:
        on_map = {map_code(head).partition("+")[0] for head in comparison.heads}
        rows = sorted(rows, key=lambda row: code(row[0][1]) not in on_map)[:most]
    roles = [row[0][1] for row in rows]
    score, intervals = score_columns(roles)
    columns = [
        Column(title="", cells=list(map(code, roles)), roles=roles),
        Column(title=_(ROLE), cells=list(map(role_name, roles)), least=14, roles=roles),
        Column(title=_(HEAD), cells=list(map(_best_head, rows))),
        score,
        intervals,
        Column(title=_("best fixed offset"), cells=list(map(_best_offset, roles)), right=True),
        Column(
            title=_(CONTROLS[UNTRAINED].title),
            cells=[_up_to(_deciding(role, UNTRAINED)) for role in roles],
            right=True,
        ),
    ]
    return columns, n_hidden


def _best_head(row: Sequence[tuple[HeadProfile, Role]]) -> str:
    """Return the name of the first head, and how many more there are: ``1.2 +4``."""
    name = row[0][0].name
    return f"{name} +{len(row) - 1}" if len(row) > 1 else name


def _deciding(role: Role, name: str) -> Control | None:
    """Return a control if it could rule the role out: a fixed offset is what a role by position is."""
    control = role.control(name)
    return control if control is not None and control.rules_out else None


def _best_offset(role: Role) -> str:
    """Return the upper end of the interval of the best fixed offset, and this offset."""
    control = _deciding(role, OFFSET)
    if control is None or control.offset is None:
        return _up_to(control)
    return f"{_up_to(control)} ({control.offset:+d})"


def score_columns(roles: Sequence[Role | None]) -> list[Column]:
    """Return the columns of the score and its interval; their cells are empty without a role."""
    scores = ["" if role is None else rounded(role.score) for role in roles]
    intervals = [
        "" if role is None else interval(role.low, role.high, narrow=role.narrow) for role in roles
    ]
    return [
        Column(title=_(SCORE), cells=scores, right=True),
        Column(title=_(INTERVAL), cells=intervals, right=True),
    ]


def evidence(role: Role) -> list[tuple[str, float, float, float]]:
    """Return what a role is judged by: the score of the head and of each control, with their intervals."""
    scores = [(_("this head"), role.score, role.low, role.high)]
    for control in role.controls:
        if control.rules_out:
            about = CONTROLS[control.name].describe(control)
            scores.append((about, control.value, control.low, control.high))
    return scores


def head_table(comparison: HeadComparison, heads: Sequence[HeadProfile]) -> list[Column]:
    """Return the table of heads with their clearest roles."""
    roles = [head.role for head in heads]
    columns = [
        Column(title=_(HEAD), cells=[head.name for head in heads]),
        Column(title=_(ROLE), cells=list(map(marked_role, roles)), least=22, roles=roles),
        *score_columns(roles),
    ]
    if comparison.attention is not None:
        links = [strongest_link(comparison.attention, *head.place) for head in heads]
        texts = [f"{link.words} {rounded(link.weight)}" if link else "" for link in links]
        columns.append(Column(title=_("strongest link"), cells=texts))
    if comparison.against is not None:
        columns += _change_columns(heads)
    for name, kind in CONTROLS.items():
        if name in comparison.controls and name != CHANCE:
            controls = ["" if role is None else _value(role.control(name)) for role in roles]
            columns.append(Column(title=_(kind.title), cells=controls, right=True))
    return columns


def _change_columns(heads: Sequence[HeadProfile]) -> list[Column]:
    """Return columns with the divergence of heads from a second model, and their roles there."""
    changes = [head.change for head in heads if head.change is not None]
    roles = [change.role for change in changes]
    divergences = [rounded(change.divergence) for change in changes]
    names = list(map(marked_role, roles))
    return [
        Column(title=_("JSD"), cells=divergences, right=True),
        Column(title=_("role before"), cells=names, least=10, roles=roles),
    ]


def relation_table(relations: Sequence[Relation]) -> list[Column]:
    """Return the table of relations and the head that finds each best, established or not."""
    roles = [item.role for item in relations]
    offset_controls = [role.control(OFFSET) for role in roles]
    offsets = [f"{item.offset:+d} {_up_to(item)}" if item else MISSING for item in offset_controls]
    untrained_highs = [_up_to(role.control(UNTRAINED)) for role in roles]
    score, intervals = score_columns(roles)
    return [
        Column(title=_("relation"), cells=list(map(marked_role, roles)), least=20),
        Column(title="n", cells=[f"{item.n:,}" for item in relations], right=True),
        Column(title=_(HEAD), cells=[f"{item.layer}.{item.head}" for item in relations]),
        replace(score, title=pgettext("heads", "right")),
        intervals,
        Column(title=_(CONTROLS[OFFSET].title), cells=offsets, right=True),
        Column(title=_(CONTROLS[UNTRAINED].title), cells=untrained_highs, right=True),
    ]


def _value(control: Control | None) -> str:
    """Return the value of a control."""
    return MISSING if control is None else rounded(control.value)


def _up_to(control: Control | None) -> str:
    """Return the upper end of the interval of a control; the lower end of a score must lie above it."""
    if control is None or math.isnan(control.high):
        return MISSING
    return f"≤{rounded(control.high)}"


def change_table(comparison: HeadComparison, most: int) -> list[Column]:
    """Return the heads that differ most from the same heads of the second model."""
    changed = [(head, head.change) for head in comparison.heads if head.change is not None]
    # A divergence of NaN, where no row was counted, comes last.
    changed.sort(key=lambda pair: -np.nan_to_num(pair[1].divergence, nan=-np.inf))
    heads, changes = [head for head, _ in changed[:most]], [change for _, change in changed[:most]]
    intervals = [interval(change.low, change.high) for change in changes]
    jsd, second_roles = _change_columns(heads)
    return [
        Column(title=_(HEAD), cells=[head.name for head in heads]),
        jsd,
        Column(title=_(INTERVAL), cells=intervals, right=True),
        Column(title=_(ROLE), cells=[marked_role(head.role) for head in heads]),
        second_roles,
    ]


def kind_table(roles_on: HeadComparison, record: Attention) -> list[Column]:
    """Return the table of the four kinds of heads named in lectures, for one sentence."""
    kinds = head_kinds(roles_on, record)
    links, roles = [kind.link for kind in kinds], [kind.role for kind in kinds]
    link_words = [link.words if link else MISSING for link in links]
    heads = [_head_words(link) if link else MISSING for link in links]
    weights = [rounded(link.weight) if link else MISSING for link in links]
    names = [f"{_(role.rule.short)} {rounded(role.score)}" if role else MISSING for role in roles]
    return [
        Column(title=_("kind"), cells=[_(kind.name) for kind in kinds]),
        Column(title=_("link in the lecture"), cells=link_words, least=12),
        Column(title=_(HEAD), cells=heads),
        Column(title=_("weight"), cells=weights, right=True),
        Column(title=_(ROLE), cells=names, roles=roles, least=10),
    ]


def _head_words(link: WordLink) -> str:
    """Return the head of a link with its word, so that 0.3 is not read as a weight beside one."""
    return _("head {n}").format(n=f"{link.layer}.{link.head}")


def link_table(record: Attention) -> list[Column]:
    """Return the strongest links between words of a sentence, each of another head."""
    links = strongest_links(record)
    return [
        Column(title=_(HEAD), cells=list(map(_head_words, links))),
        Column(title=_("from → to"), cells=[link.words for link in links], least=12),
        Column(title=_("weight"), cells=[rounded(link.weight) for link in links], right=True),
    ]


def measure_table(comparison: HeadComparison, profile: HeadProfile) -> list[Column]:
    """Return the measures of one head with their intervals and controls."""
    measures = [item for item in comparison.measures if item.offset is None]
    values, intervals = [], []
    for item in measures:
        value, low, high = comparison.estimate(item.name, *profile.place)
        values.append(rounded(value))
        intervals.append(interval(low, high, narrow=item.narrow))
    columns = [
        Column(title=_("measure"), cells=[item.name for item in measures]),
        Column(title=pgettext("heads", "value"), cells=values, right=True),
        Column(title=_(INTERVAL), cells=intervals, right=True),
    ]
    for name, kind in CONTROLS.items():
        if name in comparison.controls:
            of_control = [comparison.control(name, item.name, profile) for item in measures]
            texts = list(map(rounded, of_control))
            columns.append(Column(title=_(kind.title), cells=texts, right=True))
    meanings = [_(item.meaning) for item in measures]
    return [*columns, Column(title=_("what it measures"), cells=meanings, least=24)]
