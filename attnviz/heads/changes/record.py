"""What two models' heads do otherwise, head by head, as a value: patterns, measures and roles, before and after."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float64

from attnviz.attention import Note
from attnviz.errors import InputError, SelectionError
from attnviz.heads.measures import MAX_OFFSET, Measure
from attnviz.heads.record import Estimates, HeadComparison, HeadProfile, HeadResult, Relation, Role
from attnviz.heads.settings import check_divergence
from attnviz.settings import Place
from attnviz.storage.formats import CHANGES, Formats
from attnviz.text.arguments import check_call

MOST = math.log(
    2
)  # the divergence of two rows that share no key, in nats: no pattern changes by more
ROUNDING = 1e-6  # up to here a number is exact: what is less is no change


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shift:
    """By how much a number is another."""

    value: float  # after less before
    low: float  # the lower end of its 95 % interval
    high: float  # the upper end

    @property
    def established(self) -> bool:
        """Whether the interval excludes 0, and by more than rounding."""
        return self.low > ROUNDING or self.high < -ROUNDING


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference(_Shift):
    """By how much a measure of one head is another."""

    measure: Measure  # which
    before: float  # in the first model
    after: float  # in the second

    @property
    def scaled(self) -> float:
        """It on one scale for all measures: a share as it is, tokens as a share of `MAX_OFFSET` of them."""
        return self.value / (MAX_OFFSET if self.measure.unit == "tokens" else 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationChange(_Shift):
    """How much better or worse a relation between words is found, each model with its own best head."""

    before: Relation  # the best head of the first model and how often it is right
    after: Relation  # likewise of the second

    @property
    def name(self) -> str:
        """Such as ``nsubj``."""
        return self.before.name

    @property
    def moved(self) -> bool:
        """Whether the best head is another one, or looks the other way round."""
        one, other = self.before, self.after
        return (one.layer, one.head, one.reverse) != (other.layer, other.head, other.reverse)

    @property
    def changed(self) -> bool:
        """Whether it is found more often or less often, by whichever head."""
        return abs(self.value) > ROUNDING


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One head in both models."""

    before: HeadProfile  # what it does in the first
    after: HeadProfile  # what it does in the second
    # the mean Jensen-Shannon divergence of its rows in one and in the other, in nats: 0 where they are the same, ln 2
    # where they share no key; NaN where it was not measured
    pattern: float
    low: float  # the lower end of its 95 % interval
    high: float  # the upper end
    nearest: float  # a yardstick: the divergence, in the first model, from the head most like it; NaN where unknown
    others: float  # another: the mean divergence, in the first model, from every other head
    role_differs: (
        bool  # whether a measure that the roles before and after are judged by has changed for sure
    )

    @property
    def name(self) -> str:
        """``layer.head``."""
        return self.before.name

    @property
    def roles(self) -> tuple[Role | None, Role | None]:
        """The clearest role before and after; None where there is none."""
        return self.before.role, self.after.role

    @property
    def role_changed(self) -> bool:
        """Whether the clearest role is another."""
        before, after = self.roles
        return (before and before.name) != (after and after.name)

    @property
    def role_established(self) -> bool:
        """Whether it is another and that is more than a score near its threshold: a measure of it has changed."""
        return self.role_changed and self.role_differs

    @property
    def same_pattern(self) -> bool:
        """Whether its rows are the same, but for rounding."""
        return self.pattern <= ROUNDING

    @property
    def beyond_nearest(self) -> bool:
        """Whether it has moved, interval and all, further than the head most like it was away."""
        return self.low > max(self.nearest, ROUNDING)

    @property
    def share(self) -> float:
        """How far it has moved, of how far another head is in the mean; NaN where either is unknown."""
        return self.pattern / self.others if self.others > ROUNDING else math.nan


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Changes(HeadResult):
    """What two models' heads do otherwise."""

    FORMATS: ClassVar[Formats] = CHANGES

    before: HeadComparison  # what each head of the first model does
    after: HeadComparison  # what each head of the second does
    pattern: (
        Estimates | None
    )  # how far each head's is from the other model's; None of saved numbers
    measures: tuple[Measure, ...]  # what was measured
    differences: Estimates  # of each measure of each head, after less before
    paired: bool  # whether both were measured on the same sentences
    heads: tuple[Change, ...]  # each head, layer after layer
    relations: tuple[
        RelationChange, ...
    ] = ()  # between words, that both were measured on; the most frequent first
    notes: tuple[Note, ...] = ()  # what a reader should know

    def __repr__(self) -> str:
        n_changed = sum(change.role_established for change in self.heads)
        return (
            f"<Changes from {self.before.model!r} to {self.after.model!r}: {self.before.n_layers} x "
            f"{self.before.n_heads} heads; {n_changed} of them with another role, established>"
        )

    @property
    def matrix(self) -> Float64[np.ndarray, "layer head"]:
        """The pattern change of each head; NaN where it was not measured."""
        whole = np.array([change.pattern for change in self.heads])
        return whole.reshape(self.before.n_layers, self.before.n_heads)

    @check_call()
    def exceeds(self, threshold: float) -> tuple[Change, ...]:
        """The heads whose pattern changed by more than this many nats, the largest change first.

        Raises SettingsError: the threshold is not between 0 and ln 2; SelectionError: patterns were not compared, since
        one model is a ``.stats`` file; InputError: of some head there was no row to compare: a watch that sees nothing
        must not be silent.
        """
        check_divergence(threshold)
        if self.pattern is None:
            raise SelectionError(
                "how far patterns changed is known only where both models are run, not of saved numbers"
            )
        blind = [change.name for change in self.heads if math.isnan(change.pattern)]
        if blind:
            raise InputError(
                f"there is no row to compare heads by (head {blind[0]}): no sentence has two tokens"
            )
        above = [change for change in self.heads if change.pattern > threshold]
        return tuple(sorted(above, key=lambda change: -change.pattern))

    def difference(self, measure: str, layer: Place | int, head: int | None = None) -> Difference:
        """By how much a measure of one head is another, in the measure's unit.

        Raises SelectionError: no such measure, or no such head; SettingsError: it is no head.
        """
        profile = self.before.head(layer, head)
        layer, head = profile.layer, profile.head
        before, after = (one.estimate(measure, layer, head)[0] for one in (self.before, self.after))
        number = self.before.names.index(measure)
        value, low, high = self.differences.at(layer, head, number)
        return Difference(
            measure=self.measures[number],
            before=before,
            after=after,
            value=value,
            low=low,
            high=high,
        )

    def change(self, layer: Place | int, head: int | None = None) -> Change:
        """One head: ``change(1, 2)``, ``change("1.2")``, or ``changes[1, 2]``. Raises as `HeadComparison.head`."""
        profile = self.before.head(layer, head)
        return self.heads[profile.layer * self.before.n_heads + profile.head]

    def __getitem__(self, place: Place) -> Change:
        """Likewise."""
        return self.change(place)

    def figure(self, **view: Any) -> Any:
        """The sheet of both models as a Matplotlib figure of its own.

        `view` has ``lang`` (``en`` or ``ko``), and what the picture is for: the fields of `PageSettings`.
        Raises SettingsError: a width that no picture has.
        """
        return self.FORMATS.make(".png", self, **view).figure

    def save(self, path: str | Path, **view: Any) -> Path:
        """Write it whole, by its ending (png, svg, pdf, html, csv, json).

        Raises OutputError: another ending, or the file cannot be written; SettingsError, as `figure`.
        """
        return self.FORMATS.save(path, self, **view)
