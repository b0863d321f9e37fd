"""Roles of heads: a measure, a threshold, and the controls that could rule the role out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from attnviz.attention import Note
from attnviz.heads.measures import (
    CHANCE,
    OFFSET,
    RULED_OUT_BY,
    UNTRAINED,
    Measure,
)
from attnviz.heads.record import Control, Estimates, Role
from attnviz.heads.tally import student
from attnviz.text.messages import N_, NC_, Message, _

SEEN = 0.25
"""A fixed offset gives a role only if at least this share of the rows sees a key there. If the offset is almost as long
as the sentences, only one row per sentence sees such a key, which says too little."""
FEWEST_DIFFERENT, FEWEST_CASES, FEWEST_SENTENCES = 10, 10, 5
"""A role needs at least this many different sentences in the corpus, this many cases (rows, or links between words),
and this many sentences that have such cases."""
UNEVEN = 0.85
"""Smallest evenness of the counted cases over sentences, relative to that of rows.

A repeated word, for example, occurs in few and mostly long sentences; an interval from few sentences is too narrow."""
FAMILY_ERROR = 0.05
"""The error rate for all roles together: the largest probability that a model with random weights exceeds the upper
bound in any of them."""


class ControlKind(NamedTuple):
    """A kind of control that a score is compared with."""

    title: Message  # the title of its column
    words: Message  # the description

    def describe(self, control: Control) -> str:
        """Return its description, with the offset of one control."""
        if control.offset is None:
            return _(self.words)
        return _("{control} ({offset:+d})").format(control=_(self.words), offset=control.offset)


CONTROLS = {
    UNTRAINED: ControlKind(N_("random"), N_("the best head of random weights")),
    OFFSET: ControlKind(NC_("control", "offset"), N_("the best fixed offset")),
    CHANCE: ControlKind(NC_("control", "chance"), N_("its weights on random keys")),
}
"""The controls by name, in the order in which they are shown."""


def doubt(
    low: float,
    controls: Sequence[Control],
    *,
    threshold: float,
    needs: Iterable[str],
    cases: float,
    sentences: float,
    different: int,
    even_sentences: float = 0.0,
) -> Note | None:
    """Return why a role is not established, or None if it is. This is the only place that decides it.

    `low` is the lower end of the interval of the score. `needs` names the controls that must have been measured.
    `cases` is the number of rows or links between words, of links in the half that has fewer. `sentences` is the
    effective number of sentences with such cases (`attnviz.heads.tally.effective`), and `even_sentences` the smallest
    such number with which the interval is not too narrow. `different` is the number of different sentences.
    """
    few_cases = different < FEWEST_DIFFERENT or cases < FEWEST_CASES
    if few_cases or math.isnan(low) or sentences < FEWEST_SENTENCES:
        return _too_few(cases, sentences, FEWEST_SENTENCES, different)
    if low < threshold:
        return Note.of("below_threshold", least=f"{threshold:.2g}")
    rivals = [control for control in controls if control.rules_out]
    missing = set(needs) - {control.name for control in controls}
    missing |= {control.name for control in rivals if math.isnan(control.high)}
    if missing:
        return Note.of("no_control", controls=", ".join(sorted(missing)))
    for control in rivals:
        if not low > control.high:
            numbers = {name: f"{getattr(control, name):.2f}" for name in ("value", "low", "high")}
            return Note.of("control_does_as_much", control=control.name, **numbers)
    if sentences < even_sentences:
        return _too_few(cases, sentences, even_sentences, different)
    return None


def _too_few(cases: float, sentences: float, fewest: float, different: int) -> Note:
    """Return the doubt that too little was measured: where at least `fewest` sentences must have cases."""
    return Note.of(
        "too_few",
        cases=int(cases),
        sentences=f"{sentences:.1f}",
        different=different,
        fewest_cases=FEWEST_CASES,
        fewest_sentences=f"{fewest:.1f}",
        fewest_different=FEWEST_DIFFERENT,
    )


def best_of_seeds(
    best: Float64[np.ndarray, "seed ..."], n_tested: int, noise: float | np.ndarray = 0.0
) -> Estimates:
    """Return the value of the best head of random weights: the mean of several seeds, and its interval.

    `best` has the best head of each seed. The upper end is a prediction bound: the best head of one more model with
    random weights stays below it, with probability 1 - `FAMILY_ERROR` for all tested roles together. It uses Student's
    t with Bonferroni's correction for the number of roles and relations tested (`n_tested`). No correction for the
    number of heads is needed, since each seed already gives its best head. `noise` is the part of the variance between
    seeds that comes from few cases; it is subtracted because the interval of the tested head already contains it.
    """
    n = len(best)
    value = best.mean(axis=0)
    if n < 2:  # the variance between seeds needs two seeds
        unknown = np.full_like(value, np.nan)
        return Estimates.of(value, unknown, unknown)
    variance = best.var(axis=0, ddof=1)
    deviation = np.sqrt(np.maximum(variance - noise, 0.0) + variance / n)
    margin = student(n - 1, FAMILY_ERROR / max(n_tested, 1)) * deviation
    return Estimates.of(value, np.maximum(value - margin, 0.0), np.minimum(value + margin, 1.0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Counts:
    """The number of cases behind each measure."""

    rows: Float64[np.ndarray, "layer measure"]  # number of rows that each measure counts
    sentences: Float64[np.ndarray, "layer measure"]  # effective number of sentences with such rows
    different: int  # number of different sentences


def roles_of(
    layer: int,
    head: int,
    measures: Sequence[Measure],
    estimates: Estimates,
    controls: Mapping[str, Estimates],
    counts: Counts,
) -> list[Role]:
    """Return the roles of one head, in the order of their measures."""
    rows, sentences = counts.rows[layer], counts.sentences[layer]
    all_rows = int(rows.argmax())  # a measure of all rows, such as entropy
    roles = []
    for column, measure in enumerate(measures):
        score, low, high = estimates.at(layer, head, column)
        # `not >=` instead of `<`, so that NaN gives no role.
        if (rule := measure.role) is None or not score >= rule.threshold:
            continue
        if measure.offset is not None and rows[column] < SEEN * rows[all_rows]:
            continue
        controls_of_head = []
        for name, control in controls.items():
            value, low_end, high_end = control.at(layer, head, column)
            if not math.isnan(value):
                rules_out = name in RULED_OUT_BY[rule.about]
                controls_of_head.append(
                    Control(name=name, value=value, low=low_end, high=high_end, rules_out=rules_out)
                )
        reason = doubt(
            low,
            controls_of_head,
            threshold=rule.threshold,
            needs=set(RULED_OUT_BY[rule.about]) - {OFFSET},
            cases=float(rows[column]),
            sentences=float(sentences[column]),
            different=counts.different,
            even_sentences=0.0 if measure.family else UNEVEN * float(sentences[all_rows]),
        )
        roles.append(
            Role(
                rule=rule,
                measure=measure.name,
                score=score,
                low=low,
                high=high,
                controls=tuple(controls_of_head),
                doubt=reason,
                narrow=measure.narrow,
            )
        )
    return roles
