"""The numbers of heads, as every view takes them: measures, controls, how many have a role, which are most alike."""

from __future__ import annotations

import math

import numpy as np

from attnviz.heads.record import NO_ROLE, SHARES, Comparison, HeadProfile
from attnviz.heads.roles import UNTRAINED
from attnviz.heads.shown import NONE, role_names

STRONGEST = (*SHARES, "entropy_share", "distance", "confidence")
"""The measures of which the strongest sentence is shown, beside those that the head's roles are judged by."""


def estimate_of(comparison: Comparison, name: str, profile: HeadProfile) -> tuple[float, float, float]:
    """A measure of a head and both ends of its interval; NaN where it was not measured."""
    if name not in comparison.measures:
        return math.nan, math.nan, math.nan
    return comparison.estimate(name, profile.layer, profile.head)


def control_of(comparison: Comparison, control: str, name: str, profile: HeadProfile) -> float:
    """A control of one measure of a head: of random weights that of the best head, as roles are held against it."""
    values = comparison.controls[control].value[:, :, comparison.measures.index(name)]
    if control != UNTRAINED:
        return float(values[profile.layer, profile.head])
    return float(np.nanmax(values)) if np.isfinite(values).any() else math.nan


def tallied(comparison: Comparison) -> list[tuple[str, str, list[HeadProfile], int]]:
    """Each first role: its name, its words, the heads that have it and how many of them establish it; no role last."""
    found: dict[str, tuple[str, list[HeadProfile]]] = {}
    for head in comparison.heads:
        name = head.roles[0].name if head.roles else NONE
        found.setdefault(name, (head.roles[0].words if head.roles else NO_ROLE, []))[1].append(head)
    order = role_names(comparison)
    return [
        (name, words, heads, sum(bool(head.roles) and head.roles[0].established for head in heads))
        for name, (words, heads) in sorted(
            found.items(), key=lambda item: (item[0] == NONE, order.index(item[0]) if item[0] in order else len(order))
        )
    ]


def nearest(comparison: Comparison, layer: int, head: int, n: int) -> list[tuple[HeadProfile, float]]:
    """The heads most like one, each with the mean divergence from it, in nats; none where they were not compared."""
    if comparison.likeness is None:
        return []
    own = layer * comparison.n_heads + head
    row = comparison.likeness.divergences[own]
    order = [int(other) for other in np.argsort(row, kind="stable") if other != own and np.isfinite(row[other])]
    return [(comparison.heads[other], float(row[other])) for other in order[:n]]
