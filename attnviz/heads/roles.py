"""What a head is for, from its measures: a role is a measure, a threshold, and the controls that could rule it out.

Thresholds are those of Clark et al. 2019 (section 3) and Voita et al. 2019 (section 5.1) where they give one: previous
and next token more than half of the weight; first token, separators and punctuation more than 0.6; broad an entropy of
3.8 nats on 128 tokens, which is 0.78 of the largest; a positional head has its largest weight at one fixed offset in
90 % of its rows. All can be set.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from attnviz.errors import SelectionError
from attnviz.heads.record import Control, Estimate, Role
from attnviz.text.display import clip

CHANCE, SHUFFLED, UNTRAINED, OFFSET = "chance", "shuffled", "untrained", "offset"
"""The controls. Three can rule a role out: the head's own weights dealt out to keys at random, the best head of random
weights, the best fixed offset. The fourth, the head on sentences with their tokens shuffled, tells what it goes by: one
that looks at a position does so on any words."""

RELATION = "relation"
"""What the threshold of all roles is called that relations between words speak for."""

SEEN = 0.25
"""A fixed offset makes a role only where at least this share of the rows sees a key there: of an offset as long as the
sentences a single row sees one, and its largest weight is there or not."""

BROAD = round(3.8 / math.log(128), 3)
"""The entropy from which on Clark et al. call a head broad, as a share of the largest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A role that a head may have.

    Attributes:
        name: of the role.
        measure: what it is judged by.
        threshold: from which value on.
        words: what it does, in plain words.
        ruled_out_by: the controls whose interval the head's must lie above.
    """

    name: str
    measure: str
    threshold: float
    words: str
    ruled_out_by: tuple[str, ...]


def _offset_words(offset: int) -> str:
    return f"looks {abs(offset)} tokens {'back' if offset < 0 else 'ahead'}"


def kinds(offsets: Sequence[int]) -> tuple[Kind, ...]:
    """All roles, with the thresholds that are usual.

    Args:
        offsets: those that are measured.
    """
    position, content = (CHANCE, UNTRAINED), (CHANCE, UNTRAINED, OFFSET)
    return (
        Kind(name="self", measure="self", threshold=0.5, words="looks at itself", ruled_out_by=position),
        Kind(
            name="previous", measure="previous", threshold=0.5, words="looks at the previous token",
            ruled_out_by=position,
        ),
        Kind(name="next", measure="next", threshold=0.5, words="looks at the next token", ruled_out_by=position),
        Kind(
            name="first", measure="first", threshold=0.6, words="rests on the first token",
            ruled_out_by=content,
        ),
        Kind(
            name="separator", measure="separator", threshold=0.6, words="rests on the separator",
            ruled_out_by=content,
        ),
        Kind(
            name="punctuation", measure="punctuation", threshold=0.6, words="rests on punctuation",
            ruled_out_by=content,
        ),
        Kind(
            name="same_word", measure="same_word", threshold=0.5, words="looks back at the same word",
            ruled_out_by=content,
        ),
        Kind(
            name="induction", measure="induction", threshold=0.5, words="repeats what followed last time",
            ruled_out_by=content,
        ),
        Kind(name="broad", measure="entropy_share", threshold=BROAD, words="broad", ruled_out_by=(UNTRAINED,)),
        *(
            Kind(
                name=f"offset_{offset:+d}", measure=f"peak_{offset:+d}", threshold=0.9, words=_offset_words(offset),
                ruled_out_by=position,
            )
            for offset in offsets
            if abs(offset) > 1
        ),
    )  # fmt: skip


def with_thresholds(every: Sequence[Kind], changed: Mapping[str, float]) -> tuple[Kind, ...]:
    """The roles with other thresholds; ``offset`` changes those of all fixed offsets.

    That of ``relation`` is checked too, though relations between words make roles of their own.

    Raises:
        SelectionError: there is no role of that name, or a threshold is not between 0 and 1.
    """
    names = {kind.name.partition("_")[0] if kind.name.startswith("offset") else kind.name for kind in every} | {
        RELATION
    }
    for name, value in changed.items():
        if name not in names:
            near = difflib.get_close_matches(name, sorted(names), 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(names))}"
            raise SelectionError(f"there is no role {clip(name, 40)!r} to set a threshold of: {hint}")
        if not 0 < value <= 1:
            raise SelectionError(f"the threshold of {name} must be above 0 and at most 1, not {value:g}")
    return tuple(
        Kind(
            name=kind.name,
            measure=kind.measure,
            threshold=changed.get("offset" if kind.name.startswith("offset") else kind.name, kind.threshold),
            words=kind.words,
            ruled_out_by=kind.ruled_out_by,
        )
        for kind in every
    )


def roles_of(
    layer: int,
    head: int,
    *,
    measures: Sequence[str],
    estimates: Estimate,
    controls: Mapping[str, Estimate],
    n_rows: Float64[np.ndarray, "layer measure"],
    every: Sequence[Kind],
) -> tuple[Role, ...]:
    """The roles of one head, the clearest first.

    Args:
        layer: its layer.
        head: its number.
        measures: their names.
        estimates: of each head, layer and measure.
        controls: likewise, by name; those of random weights are of other heads.
        n_rows: how many rows each measure was counted for.
        every: the roles that there are.
    """
    found = []
    for kind in every:
        if kind.measure not in measures:
            continue
        at = measures.index(kind.measure)
        score, low, high = (float(e[layer, head, at]) for e in (estimates.value, estimates.low, estimates.high))
        if not score >= kind.threshold:  # NaN is not
            continue
        if kind.name.startswith("offset_") and n_rows[layer, at] < SEEN * n_rows[layer, measures.index("entropy")]:
            continue
        against = [_control(name, one, (layer, head, at), kind) for name, one in controls.items()]
        reason = _reason(low, [control for control in against if control is not None], kind)
        role = Role(
            name=kind.name,
            words=kind.words,
            measure=kind.measure,
            score=score,
            low=low,
            high=high,
            threshold=kind.threshold,
            controls=tuple(control for control in against if control is not None),
            established=not reason,
            reason=reason,
        )
        found.append(role)
    return clearest_first(found)


def clearest_first(found: Iterable[Role]) -> tuple[Role, ...]:
    """Roles, those established first, in the order of how far each is above its threshold, of how far it could be."""

    def clearness(role: Role) -> tuple[bool, float]:
        return role.established, (role.score - role.threshold) / max(1 - role.threshold, 1e-9)

    return tuple(sorted(found, key=clearness, reverse=True))


def _control(name: str, estimate: Estimate, place: tuple[int, int, int], kind: Kind) -> Control | None:
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
    return Control(name=name, what=what, value=value, low=low, high=high, rules_out=name in kind.ruled_out_by)


def _reason(low: float, against: Sequence[Control], kind: Kind) -> str:
    """Why a role is not established; empty where it is."""
    if math.isnan(low):
        return "too few sentences for an interval"
    missing = set(kind.ruled_out_by) - {control.name for control in against} - {OFFSET}
    if missing:
        return f"no control was taken ({', '.join(sorted(missing))})"
    for control in against:
        if control.rules_out and math.isnan(control.high):
            return f"too few sentences for an interval of {control.what}"
        if control.rules_out and not low > control.high:
            return f"{control.what} does as much ({control.value:.2f})"
    return ""
