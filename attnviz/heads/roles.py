"""Roles of heads: a measure, a threshold, and the controls that could rule the role out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from attnviz.attention import Note
from attnviz.errors import SelectionError
from attnviz.heads.measures import (
    CHANCE,
    OFFSET,
    RULED_OUT_BY,
    SHUFFLED,
    UNTRAINED,
    Measure,
    RoleRule,
    rules_of,
)
from attnviz.heads.record import Control, Estimates, Role
from attnviz.heads.tally import student
from attnviz.text.display import clip
from attnviz.text.messages import Phrase, _, pgettext
from attnviz.text.suggest import suggest

# what the threshold of all roles is called that relations between words speak for
RELATION = "relation"
SEEN = 0.25
"""A fixed offset makes a role only where at least this share of the rows sees a key there: of an offset as long as the
sentences a single row sees one, and its largest weight is there or not."""
FEWEST_DIFFERENT, FEWEST_CASES, FEWEST_SENTENCES = 10, 10, 5
"""Nothing is established on fewer different sentences than the first of these; nor where what is counted (rows, or
links between words) comes up less often than the second, or is spread over fewer sentences than the third."""
UNEVEN = 0.85
"""The least evenness with which counted cases are spread over sentences, compared with rows.

A repeated word, for example, occurs in few and mostly long sentences; an interval from so few is too narrow."""
TOO_FEW = {"too_few_different", "too_few_cases", "too_few_sentences", "too_few_for_control"}
"""The codes of doubts that too little was measured to say anything."""
FAMILY_ERROR = 0.05
"""How often, at most, any head of random weights does more than the best heads of others, in all that is looked at."""


class ControlKind(NamedTuple):
    """A kind of control that a score is compared with."""

    title: Phrase  # above its column
    words: Phrase  # the description

    def describe(self, control: Control) -> Phrase:
        """Return its description, with the offset of one control."""
        if control.offset is None:
            return self.words
        return _("{control} ({offset:+d})").format(control=self.words, offset=control.offset)


CONTROLS = {
    SHUFFLED: ControlKind(_("shuffled"), _("this head on shuffled tokens")),
    UNTRAINED: ControlKind(_("random"), _("the best head of random weights")),
    OFFSET: ControlKind(pgettext("control", "offset"), _("the best fixed offset")),
    CHANCE: ControlKind(
        pgettext("control", "chance"), _("this head with its weights dealt out at random")
    ),
}
"""The controls by name, in the order in which they are shown."""


def doubt(
    score: float,
    low: float,
    controls: Sequence[Control],
    *,
    threshold: float,
    needs: Iterable[str],
    cases: float,
    sentences: float,
    different: int,
    even: float = 1.0,
) -> Note | None:
    """Why a role is not established; None where it is: the one rule. `needs` are controls that must have been taken.

    `low` is the lower end of the score's interval. `cases`, rows or links between words, are spread over so many
    `sentences`, as `attnviz.heads.tally.effective` counts them; `even` is that as a share of the same number for all
    rows. The corpus has so many `different` sentences.
    """
    if few := _too_few(low, cases, sentences, different):
        return few
    if score < threshold:
        return Note.of("below_threshold", percent=round(100 * threshold))
    if missing := set(needs) - {control.name for control in controls}:
        return Note.of("no_control", controls=", ".join(sorted(missing)))
    for control in controls:
        if control.rules_out and not low > control.high:
            if not math.isnan(control.high):
                numbers = {
                    name: f"{getattr(control, name):.2f}" for name in ("value", "low", "high")
                }
                return Note.of("control_does_as_much", control=control.name, **numbers)
            return Note.of("too_few_for_control", control=control.name)
    return Note("few_carry_it") if even < UNEVEN else None


def best_of_seeds(
    best: Float64[np.ndarray, "seed ..."], looked_at: int, noise: float | np.ndarray = 0.0
) -> Estimates:
    """Return the best head of random weights: the mean of several seeds, and its interval.

    The upper end is above the best head of one more model of random weights, in all but `FAMILY_ERROR` of models
    for everything that is looked at together: it is the upper bound of a prediction by Student's t, with
    Bonferroni's correction for the number of roles and relations. That the heads are many is in it, since each seed
    gives its best. `noise` is how much of the variance between seeds comes from having few cases: that is in the
    interval of what is held against it already.
    """
    n = len(best)
    value = best.mean(axis=0)
    if n < 2:  # one seed says nothing of the next
        return Estimates.of(value, value * np.nan, value * np.nan)
    varied = best.var(axis=0, ddof=1)
    apart = np.sqrt(np.maximum(varied - noise, 0.0) + varied / n)
    far = student(n - 1, FAMILY_ERROR / max(looked_at, 1)) * apart
    return Estimates.of(value, np.maximum(value - far, 0.0), np.minimum(value + far, 1.0))


def _too_few(low: float, cases: float, sentences: float, different: int) -> Note | None:
    if different < FEWEST_DIFFERENT:
        return Note.of("too_few_different", n=different, fewest=FEWEST_DIFFERENT)
    if cases < FEWEST_CASES:
        return Note.of("too_few_cases", n=int(cases), fewest=FEWEST_CASES)
    if math.isnan(low) or sentences < FEWEST_SENTENCES:
        return Note.of("too_few_sentences", fewest=FEWEST_SENTENCES)
    return None


def spelling(name: str) -> str:
    """A name as it is compared with others: in small letters, ``a -> b`` and ``a to b`` as ``a > b``."""
    words = (
        name.lower()
        .replace("->", ">")
        .replace("→", ">")
        .replace("_", " ")
        .replace(">", " > ")
        .split()
    )
    return " ".join(">" if word == "to" else word for word in words)


def names_of(rule: RoleRule) -> set[str]:
    """All that a role can be asked for by, as `spelling` spells it."""
    return {spelling(name) for name in (rule.name, rule.short, rule.sign, *rule.also)}


def with_thresholds(
    measures: Sequence[Measure], changed: Mapping[str, float]
) -> tuple[Measure, ...]:
    """The measures, their roles with other thresholds; ``offset`` changes those of all fixed offsets.

    That of ``relation`` is checked too, though relations between words make roles of their own. Raises SelectionError:
    there is no role of that name, or a threshold is not between 0 and 1.
    """
    known = {name: rule.family for _, rule in rules_of(measures) for name in names_of(rule)}
    known |= {family: family for family in {*known.values(), RELATION}}
    wanted = {}
    for name, value in changed.items():
        family = known.get(spelling(name))
        if family is None:
            hint = suggest(spelling(name), known, sorted(set(known.values())))
            raise SelectionError(f"there is no role {clip(name, 40)!r} to set a threshold of{hint}")
        if not 0 < value <= 1:
            raise SelectionError(
                f"the threshold of {name} must be above 0 and at most 1, not {value:g}"
            )
        wanted[family] = value
    return tuple(
        replace(
            one,
            role=one.role
            and replace(one.role, threshold=wanted.get(one.role.family, one.role.threshold)),
        )
        for one in measures
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Counts:
    """The number of cases behind each measure."""

    rows: Float64[np.ndarray, "layer measure"]  # for each measure
    sentences: Float64[np.ndarray, "layer measure"]  # over how many sentences these are spread
    even: Float64[np.ndarray, "layer measure"]  # that, as a share of the same number for all rows
    different: int  # how many different sentences there are


def roles_of(
    layer: int,
    head: int,
    *,
    measures: Sequence[Measure],
    estimates: Estimates,
    controls: Mapping[str, Estimates],
    counts: Counts,
) -> list[Role]:
    """The roles of one head, in the order of the measures that these are judged by."""
    names = [one.name for one in measures]
    roles = []
    for at, measure in enumerate(measures):
        score, low, high = estimates.at(layer, head, at)
        if (rule := measure.role) is None or not score >= rule.threshold:  # NaN is not
            continue
        rows = float(counts.rows[layer, at])
        if measure.offset is not None and rows < SEEN * counts.rows[layer, names.index("entropy")]:
            continue
        beats = RULED_OUT_BY[rule.about]  # the controls that the head's interval must lie above
        taken = tuple(
            Control(name=name, value=value, low=ends[0], high=ends[1], rules_out=name in beats)
            for name, one in controls.items()
            for value, *ends in [one.at(layer, head, at)]
            if not math.isnan(value)
        )
        why = doubt(
            score,
            low,
            taken,
            threshold=rule.threshold,
            needs={*beats} - {OFFSET},
            cases=rows,
            sentences=float(counts.sentences[layer, at]),
            different=counts.different,
            even=1.0 if measure.family else float(counts.even[layer, at]),
        )
        roles.append(
            Role(
                rule=rule,
                measure=measure.name,
                score=score,
                low=low,
                high=high,
                controls=taken,
                doubt=why,
                narrow=measure.narrow,
            )
        )
    return roles
