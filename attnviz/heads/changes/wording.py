"""What every view of two models says: which heads changed in which way, and how to read it."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from attnviz.heads.changes.compare import by_measures, by_pattern, is_main
from attnviz.heads.changes.record import MOST, ROUNDING, Change, Changes, Difference, RelationChange
from attnviz.heads.notes import proof
from attnviz.heads.record import NO_ROLE, Role
from attnviz.heads.wording import counted, described, sample

BETWEEN = " · "
"""Stands between the parts of the title."""
BEYOND = "pattern moved beyond the head most like it"
HOW_PATTERN = (
    f"pattern change: mean Jensen-Shannon divergence between a head's rows before and after, in nats; 0: the same, "
    f"{MOST:.2f} (ln 2), the most there can be: no key in common. It is never below 0: the interval says how much, not "
    "whether"
)
HOW_OTHERS = "of others: as a share of how far, in the model before, another head is in the mean"
HOW_ROLES = (
    "a role changes where the clearest one has another name; that is established where the 95 % interval of the "
    "difference in a measure that the role before or after is judged by excludes 0"
)
WHERE_FROM = (
    "a pattern also changes where an earlier layer hands its head something else, and where two heads change places"
)


def title(found: Changes) -> str:
    """Which models."""
    models = f"before: {found.before.model}{BETWEEN}after: {found.after.model}"
    return f"What changed in each head{BETWEEN}{models}"


def corpora_of(found: Changes) -> list[str]:
    """What was measured, and on what, in lines."""
    lines = [described(found.before)]
    first, second = sample(found.before), sample(found.after)
    if first == second and found.paired:
        return [*lines, f"both on {first}"]
    return [*lines, f"before: on {first}", f"after: on {second}"]


def ordered(found: Changes) -> list[Change]:
    """All heads, those that changed most first: by their patterns, or where these are unknown by their measures."""
    return by_measures(found) if found.pattern is None else by_pattern(found.heads)


def tallied(found: Changes) -> Iterator[tuple[str, list[str]]]:
    """Ways in which heads changed, each with the heads that did."""
    heads = found.heads
    if found.pattern is not None:
        beyond = [change for change in heads if change.beyond_nearest]
        same = [change for change in heads if change.same_pattern]
        less = [change for change in heads if change.pattern > ROUNDING and not change.beyond_nearest]
        has_yardstick = bool(np.isfinite([change.nearest for change in heads]).any())
        if has_yardstick:
            yield BEYOND, _names(beyond)
            yield "pattern changed, not beyond the head most like it", _names(less)
        else:
            yield "pattern changed", _names([*beyond, *less])
        yield "pattern the same", _names(same)
        yield "pattern without a row to compare", _names([change for change in heads if math.isnan(change.pattern)])
    yield "role changed, established", _names([change for change in heads if change.role_established])
    doubtful = [change for change in heads if change.role_changed and not change.role_established]
    yield "role changed, not established", _names(doubtful)


def moves(found: Changes) -> list[tuple[Role | None, Role | None, list[Change]]]:
    """Each change of role, from which to which, with the heads that made it; the most frequent first."""
    groups: dict[tuple[str, str], list[Change]] = {}
    for change in found.heads:
        if change.role_changed:
            before, after = change.roles
            groups.setdefault((before.name if before else "", after.name if after else ""), []).append(change)
    return [(*heads[0].roles, heads) for heads in sorted(groups.values(), key=len, reverse=True)]


def relations(found: Changes) -> list[RelationChange]:
    """The relations between words that are found more often or less often: those established first, then by size."""
    there = [one for one in found.relations if one.changed]
    return sorted(there, key=lambda one: (not one.established, -abs(one.value)))


def heads_of(one: RelationChange) -> str:
    """The head that finds a relation best before, and the one that does after, where it is another or looks back."""
    turned = one.before.reverse != one.after.reverse
    before, after = (f"{best.layer}.{best.head}{'←' * (turned and best.reverse)}" for best in (one.before, one.after))
    return _beside(before, after, " → ")


def ways_of(one: RelationChange) -> str:
    """Likewise from what to what these look: from the word that depends to the head of its phrase, or back."""
    before, after = ("head→dep" if best.reverse else "dep→head" for best in (one.before, one.after))
    return _beside(before, after, " / ")


def _beside(before: str, after: str, between: str) -> str:
    return before if before == after else f"{before}{between}{after}"


def signed(value: float) -> str:
    """A difference with its sign, which 0 has not."""
    text = f"{value:+.2f}"
    return text if text.strip("+-0.") else "0.00"


def links_of(one: RelationChange) -> str:
    """How many links were scored; where the sentences are others, in both models."""
    return _beside(f"{one.before.n:,}", f"{one.after.n:,}", "/")


def on_relations(found: Changes, marks: str = "") -> list[str]:
    """Of how many relations the best head is another one, what is not shown, and how to read what is.

    Args:
        found: of two models.
        marks: what a view's own marks mean, said behind how the change is to be read.
    """
    n, shown = len(found.relations), relations(found)
    others = sum(one.moved for one in found.relations)
    way = "looks the other way (←: from the word depended on)"
    where = f"another one after, or {way}, for {others:,} of {counted(n, 'relation')}"
    if not shown:
        by = f"; the best head is {where}" if others else ", by the same heads"
        return [f"{counted(n, 'relation')} between words: found as often after as before{by}"]
    sure = sum(one.established for one in found.relations)
    resampled = "the same sentences" if found.paired else "the sentences of each"
    outside = f"{sure:,} of {n:,} exclude{'s' * (sure == 1)} 0" if sure else f"none of {n:,} excludes 0"
    lines = [
        (
            "best head: chosen in each model by itself on one half of the sentences, scored on the other; it is "
            f"{where if others else 'the same in both'}"
        ),
        (
            f"change: how much more often it is right after than before, with the 95 % interval from {resampled} "
            f"resampled; {outside}, by chance alone {round(n / 20):,} would; n: links scored{marks}"
        ),
    ]
    if len(shown) < n:
        lines.append(f"not shown: {counted(n - len(shown), 'relation')} found as often after as before")
    return lines


def words(role: Role | None) -> str:
    """A role in plain words."""
    return NO_ROLE if role is None else role.rule.words


def named(difference: Difference) -> str:
    """What a measure is called beside its difference."""
    return difference.measure.label


def by_chance(found: Changes) -> str:
    """How many intervals would exclude 0 though nothing had changed; empty where no difference was measured."""
    at = [at for at, one in enumerate(found.measures) if is_main(one)]
    values, low, high = (part[..., at] for part in _parts(found))
    looked_at = int((np.isfinite(low) & (np.abs(values) > 0)).sum())
    if not looked_at:
        return ""
    n = int(((low > 0) | (high < 0)).sum())
    return (
        f"of {counted(looked_at, 'difference')} of measures, the intervals of {n:,} exclude 0; by chance alone "
        f"{round(looked_at / 20):,} would"
    )


def proofs(found: Changes) -> list[str]:
    """The proof of each model's numbers."""
    return [f"before: {proof(found.before)}", f"after: {proof(found.after)}"]


def _parts(found: Changes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    one = found.differences
    return one.value, one.low, one.high


def _names(heads: list[Change]) -> list[str]:
    return [change.name for change in heads]
