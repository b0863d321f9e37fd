"""What a head is for, from its measures: a role is a measure, a threshold, and the controls that could rule it out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from jaxtyping import Float64

from attnviz.attention import Note
from attnviz.errors import SelectionError
from attnviz.heads.measures import CHANCE, OFFSET, SHUFFLED, UNTRAINED, Measure, RoleRule
from attnviz.heads.record import Control, Estimates, Role
from attnviz.text.display import clip
from attnviz.text.names import did_you_mean

RELATION = "relation"
"""What the threshold of all roles is called that relations between words speak for."""

SEEN = 0.25
"""A fixed offset makes a role only where at least this share of the rows sees a key there: of an offset as long as the
sentences a single row sees one, and its largest weight is there or not."""

Judged: TypeAlias = tuple[Measure, RoleRule]
"""A role, and the measure that it is judged by."""


def with_thresholds(every: Sequence[Judged], changed: Mapping[str, float]) -> tuple[Judged, ...]:
    """The roles with other thresholds; ``offset`` changes those of all fixed offsets.

    That of ``relation`` is checked too, though relations between words make roles of their own.

    Raises:
        SelectionError: there is no role of that name, or a threshold is not between 0 and 1.
    """
    names = {rule.family for _, rule in every} | {RELATION}
    for name, value in changed.items():
        if name not in names:
            hint = did_you_mean(name, sorted(names))
            raise SelectionError(f"there is no role {clip(name, 40)!r} to set a threshold of{hint}")
        if not 0 < value <= 1:
            raise SelectionError(f"the threshold of {name} must be above 0 and at most 1, not {value:g}")
    return tuple((one, replace(rule, threshold=changed.get(rule.family, rule.threshold))) for one, rule in every)


def roles_of(
    layer: int,
    head: int,
    *,
    measures: Sequence[Measure],
    estimates: Estimates,
    controls: Mapping[str, Estimates],
    n_rows: Float64[np.ndarray, "layer measure"],
    every: Sequence[Judged],
) -> tuple[Role, ...]:
    """The roles of one head, the clearest first.

    Args:
        layer: its layer.
        head: its number.
        measures: what was measured.
        estimates: of each head, layer and measure.
        controls: likewise, by name; those of random weights are of other heads.
        n_rows: how many rows each measure was counted for.
        every: the roles that there are.
    """
    names = [one.name for one in measures]
    roles = []
    for measure, rule in every:
        if measure.name not in names:
            continue
        at = names.index(measure.name)
        score, low, high = (float(e[layer, head, at]) for e in (estimates.value, estimates.low, estimates.high))
        if not score >= rule.threshold:  # NaN is not
            continue
        if measure.offset is not None and n_rows[layer, at] < SEEN * n_rows[layer, names.index("entropy")]:
            continue
        against = [_control(name, one, (layer, head, at), rule) for name, one in controls.items()]
        taken = tuple(control for control in against if control is not None)
        doubt = _doubt(low, taken, rule)
        roles.append(role_of(rule, measure.name, (score, low, high), taken, doubt))
    return clearest_first(roles)


def role_of(
    rule: RoleRule,
    measure: str,
    score: tuple[float, float, float],
    controls: tuple[Control, ...],
    doubt: Note | None = None,
) -> Role:
    """A role of one head.

    Args:
        rule: which.
        measure: the name of what it is judged by.
        score: that measure and both ends of its interval.
        controls: what it is held against.
        doubt: why it is not established; None where it is.
    """
    return Role(
        name=rule.name, words=rule.words, measure=measure, score=score[0], low=score[1], high=score[2],
        threshold=rule.threshold, controls=controls, established=doubt is None, doubt=doubt,
        family=rule.family, family_words=rule.family_words, sign=rule.sign, colour=rule.colour,
    )  # fmt: skip


def clearest_first(found: Iterable[Role]) -> tuple[Role, ...]:
    """Roles, those established first, in the order of how far each is above its threshold, of how far it could be."""

    def clearness(role: Role) -> tuple[bool, float]:
        return role.established, (role.score - role.threshold) / max(1 - role.threshold, 1e-9)

    return tuple(sorted(found, key=clearness, reverse=True))


def _control(name: str, estimate: Estimates, place: tuple[int, int, int], rule: RoleRule) -> Control | None:
    """A control of this measure; None where it has none."""
    layer, head, at = place
    what = {
        CHANCE: "chance (its weights dealt out at random)",
        SHUFFLED: "the same head on shuffled tokens",
        OFFSET: "the best fixed offset",
    }.get(name, "")
    if name == UNTRAINED:
        best = estimate.value[:, :, at]
        if not np.isfinite(best).any():
            return None
        layer, head = divmod(int(np.nanargmax(best)), best.shape[1])
        what = f"the best head of random weights ({layer}.{head})"
    value, low, high = (float(e[layer, head, at]) for e in (estimate.value, estimate.low, estimate.high))
    if math.isnan(value):
        return None
    return Control(name=name, what=what, value=value, low=low, high=high, rules_out=name in rule.ruled_out_by)


def _doubt(low: float, against: Sequence[Control], rule: RoleRule) -> Note | None:
    """Why a role is not established; None where it is."""
    if math.isnan(low):
        return Note("too_few_sentences")
    missing = set(rule.ruled_out_by) - {control.name for control in against} - {OFFSET}
    if missing:
        return Note.of("no_control", controls=", ".join(sorted(missing)))
    for control in against:
        if control.rules_out and math.isnan(control.high):
            return Note.of("too_few_for_control", control=control.name)
        if control.rules_out and not low > control.high:
            return Note.of("control_does_as_much", control=control.name)
    return None
