"""What every view of two models says: which heads changed most, which roles came and went, and how to read it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from attnviz.heads.changes.compare import is_main, largest_changes, sort_changes
from attnviz.heads.changes.record import MOST, ROUNDING, Change, Changes, RelationChange
from attnviz.heads.measures import RoleRule
from attnviz.heads.wording import Cells, description, proof, sample, say

NAMED = 4  # so many heads, or roles, are named in what was found


class RoleMove(NamedTuple):
    """A role, the heads that had it as their clearest before, and those that have it after."""

    rule: RoleRule
    before: list[Change]
    after: list[Change]

    @property
    def lost(self) -> list[Change]:
        """The heads that no longer have it."""
        return [change for change in self.before if change.role_changed]

    @property
    def got(self) -> list[Change]:
        """The heads that have it now."""
        return [change for change in self.after if change.role_changed]


def moves(found: Changes) -> list[RoleMove]:
    """The roles that some head lost or got: those that went, those that came, then the others; the most moved first."""
    sides: dict[str, RoleMove] = {}
    for change in found.heads:
        for side, role in enumerate(change.roles, 1):
            if role is not None:
                sides.setdefault(role.name, RoleMove(role.rule, [], []))[side].append(change)  # type: ignore[union-attr]  # 1 and 2 are lists
    moved = [one for one in sides.values() if one.lost or one.got]
    return sorted(
        moved,
        key=lambda one: (bool(one.before and one.after), not one.before, -len(one.lost + one.got)),
    )


def finding(found: Changes, language: str = "en") -> str:
    """What changed, in a line: the heads that changed most, the roles that no head has any longer, or has now."""
    heads = changed_heads(found)
    if not heads:
        return say("nothing_changed", language)
    beyond = [change for change in heads if change.beyond_nearest]
    is_known = found.pattern is not None and bool(
        np.isfinite([change.nearest for change in found.heads]).any()
    )
    shown = (beyond or heads)[:NAMED]
    if found.pattern is not None:
        sizes = [f"{change.pattern:.2f}" for change in shown]
    else:
        most = (largest_changes(found, change, 1)[0] for change in shown)
        sizes = [f"{one.measure.label} {one.value:+.2f}" for one in most]
    names = ", ".join(f"{change.name} ({size})" for change, size in zip(shown, sizes, strict=True))
    names += ", …" if len(beyond) > NAMED else ""
    phrase = "moved_beyond" if beyond and is_known else "moved_less" if is_known else "moved_most"
    parts = [say(phrase, language, n=len(beyond), n_heads=len(found.heads), names=names)]
    for phrase, roles in (
        ("roles_gone", [one.rule.short for one in moves(found) if not one.after]),
        ("roles_new", [one.rule.short for one in moves(found) if not one.before]),
    ):
        if roles:
            parts.append(
                say(phrase, language, roles=", ".join(roles[:NAMED]) + ", …" * (len(roles) > NAMED))
            )
    return "; ".join(parts)


def changed_heads(found: Changes) -> list[Change]:
    """The heads of which anything is another, those that changed most first."""
    there = [change for change in sort_changes(found) if not change.same_pattern]
    return [change for change in there if change.pattern > 0 or largest_changes(found, change, 1)]


def corpora_of(found: Changes, language: str = "en", phrase: str = "layers_heads") -> str:
    """What was measured, and on what."""
    what = description(found.before, language, phrase)
    first, second = (sample(one, language) for one in (found.before, found.after))
    if first == second and found.paired:
        return f"{what}; {say('both_on', language, sample=first)}"
    sides = (("before", first), ("after", second))
    return "; ".join(
        [what, *(say("on", language, side=say(side, language), sample=one) for side, one in sides)]
    )


def group_by_change(found: Changes) -> Iterator[tuple[str, list[str]]]:
    """Ways in which heads changed, by their phrases, each with the heads that did."""
    is_known = bool(np.isfinite([change.nearest for change in found.heads]).any())
    less = "pattern_within" if is_known else "pattern_changed"
    patterns: dict[str, Callable[[Change], bool]] = {
        "pattern_beyond": lambda one: one.beyond_nearest,
        less: lambda one: one.pattern > ROUNDING and not one.beyond_nearest,
        "pattern_same": lambda one: one.same_pattern,
        "pattern_no_row": lambda one: math.isnan(one.pattern),
    }
    roles: dict[str, Callable[[Change], bool]] = {
        "role_changed": lambda one: one.role_established,
        "role_changed_doubtful": lambda one: one.role_changed and not one.role_established,
    }
    for phrase, holds in ((patterns if found.pattern is not None else {}) | roles).items():
        yield phrase, [change.name for change in found.heads if holds(change)]


def counts(found: Changes, language: str = "en") -> str:
    """How many heads changed in which way, in a line."""
    ways = [
        f"{say(phrase, language)}: {len(names):,}"
        for phrase, names in group_by_change(found)
        if names
    ]
    return say("counts", language, ways="; ".join(ways))


def names_of(heads: list[Change]) -> list[str]:
    """The heads that lost or got a role; with a question mark where that is not established."""
    return [f"{change.name}{'' if change.role_established else '?'}" for change in heads]


def relations(found: Changes) -> list[RelationChange]:
    """The relations between words that are found more often or less often: those established first, then by size."""
    there = [one for one in found.relations if one.changed]
    return sorted(there, key=lambda one: (not one.established, -abs(one.value)))


def heads_of(one: RelationChange) -> str:
    """The head that finds a relation best before, and the one that does after, where it is another or looks back."""
    turned = one.before.reverse != one.after.reverse
    before, after = (
        f"{best.layer}.{best.head}{'←' * (turned and best.reverse)}"
        for best in (one.before, one.after)
    )
    return before if before == after else f"{before} → {after}"


def with_sign(value: float) -> str:
    """A difference with its sign, which 0 has not."""
    text = f"{value:+.2f}"
    return text if text.strip("+-0.") else "0.00"


def links_of(one: RelationChange) -> str:
    """How many links were scored; where the sentences are others, in both models."""
    before, after = f"{one.before.n:,}", f"{one.after.n:,}"
    return before if before == after else f"{before}/{after}"


def role_columns(moved: Sequence[RoleMove], language: str = "en") -> list[Cells]:
    """The table of the roles that some head lost or got."""
    return [
        Cells(say("role", language), [one.rule.short for one in moved]),
        Cells(say("before", language), [f"{len(one.before):,}" for one in moved], right=True),
        Cells(say("after", language), [f"{len(one.after):,}" for one in moved], right=True),
        Cells(say("lost_by", language), [" ".join(names_of(one.lost)) for one in moved]),
        Cells(say("got_by", language), [" ".join(names_of(one.got)) for one in moved]),
    ]


def relation_columns(changed: Sequence[RelationChange], language: str = "en") -> list[Cells]:
    """The table of the relations between words that are found more often or less often."""
    return [
        Cells(say("relation", language), [one.name for one in changed]),
        Cells("n", [links_of(one) for one in changed], right=True),
        Cells(
            say("before", language), [f"{one.before.accuracy:.2f}" for one in changed], right=True
        ),
        Cells(say("after", language), [f"{one.after.accuracy:.2f}" for one in changed], right=True),
        Cells(say("change", language), [with_sign(one.value) for one in changed], right=True),
        Cells(
            "95 %",
            [f"{with_sign(one.low)} to {with_sign(one.high)}" for one in changed],
            right=True,
        ),
        Cells(say("best_head_title", language), [heads_of(one) for one in changed]),
    ]


def on_relations(found: Changes, language: str = "en", shown: int | None = None) -> list[str]:
    """Of how many relations the best head is another one, what is not shown of all that changed, and how to read it."""
    n, changed = len(found.relations), relations(found)
    if not n:
        return []
    others = sum(one.moved for one in found.relations)
    where = say("best_elsewhere", language, n=others, of=n)
    if not changed:
        by = say("by_others", language, where=where) if others else say("by_same", language)
        return [say("relations_same", language, n=n, by=by)]
    resampled = say("same_sentences" if found.paired else "own_sentences", language)
    sure, expected = sum(one.established for one in found.relations), round(n / 20)
    lines = [
        say("best_head", language, where=where if others else say("best_same", language)),
        say("relation_change", language, resampled=resampled, sure=sure, n=n, expected=expected),
    ]
    if (hidden := n - (len(changed) if shown is None else shown)) > 0:
        lines.append(say("relations_hidden", language, n=hidden))
    return lines


def how_measured(found: Changes, language: str = "en") -> str:
    """How to read differences of measures, and how many intervals would exclude 0 though nothing had changed."""
    at = [at for at, one in enumerate(found.measures) if is_main(one)]
    values, low, high = (
        getattr(found.differences, part)[..., at] for part in ("value", "low", "high")
    )
    n = int((np.isfinite(low) & (np.abs(values) > 0)).sum())
    sure = int(((low > 0) | (high < 0)).sum())
    expected = say("expected", language, n=n, sure=sure, expected=round(n / 20)) if n else ""
    return say("how_measure", language, expected=expected)


def sure_relations(found: Changes, language: str = "en") -> str:
    """How many relations changed for sure, and how many intervals would say so though nothing had changed."""
    n, sure = len(found.relations), sum(one.established for one in found.relations)
    return say("relations_sure", language, n=n, sure=sure, expected=round(n / 20))


def on_map(found: Changes, language: str = "en") -> str:
    """What the colours and frames of a picture of all heads are."""
    what = say("measure_change" if found.pattern is None else "pattern_change", language)
    return f"{say('figure_colour', language, what=what)}; {say('in_a_frame', language)}"


def how_to_read(found: Changes, language: str = "en", start: str = "") -> list[str]:
    """How to read what changed, in lines; on a first screen, whose first line begins with `start`, in fewer."""
    pattern = say("how_pattern", language, most=f"{MOST:.2f}") if found.pattern is not None else ""
    first, more = (
        "; ".join(filter(None, [start, pattern])),
        [] if start else [say("where_from", language)],
    )
    return [
        *([first] if first else []),
        say("how_role", language),
        say("not_explanation", language),
        *more,
    ]


def proofs(found: Changes, language: str = "en") -> list[str]:
    """The proof of each model's numbers."""
    sides = (("before", found.before), ("after", found.after))
    return [f"{say(side, language)}: {proof(one, language)}" for side, one in sides]
