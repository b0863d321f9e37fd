"""What each head of a model does, as a value: measures with their intervals and controls, and the roles they give."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float64, Int64

from attnviz.attention import Kind, positions
from attnviz.errors import SelectionError

MAX_OFFSET = 8
"""Fixed offsets are measured from so many tokens back to so many ahead, where nothing else is wished for."""


def offsets_up_to(most: int) -> tuple[int, ...]:
    """The fixed offsets from so many tokens back to so many ahead."""
    return tuple(range(-most, most + 1))


OFFSETS = offsets_up_to(MAX_OFFSET)


@dataclass(frozen=True, slots=True)
class Measure:
    """What a number about a head is called.

    Attributes:
        label: short, for a column.
        unit: ``share`` (0 to 1), ``nats`` or ``tokens``.
        meaning: in a few words.
    """

    label: str
    unit: str
    meaning: str


SHARES: dict[str, Measure] = {
    "self": Measure("self", "share", "weight on the token itself"),
    "previous": Measure("prev", "share", "weight on the token before"),
    "next": Measure("next", "share", "weight on the token after"),
    "first": Measure("1st", "share", "weight on the first token"),
    "separator": Measure("sep", "share", "weight on special tokens other than the first"),
    "punctuation": Measure("punct", "share", "weight on punctuation marks"),
    "same_word": Measure("same", "share", "of a token seen before: weight on its earlier copies"),
    "induction": Measure("induct", "share", "of a token seen before: weight on what followed its earlier copies"),
}
"""How much of a head's weight goes to one sort of key."""

_OTHERS: dict[str, Measure] = {
    "entropy": Measure("entropy", "nats", "how spread a row is"),
    "entropy_share": Measure("even", "share", "entropy as a share of the largest there can be"),
    "distance": Measure("dist", "tokens", "mean distance of the keys"),
    "spread": Measure("± tokens", "tokens", "standard deviation of that distance within a row"),
    "confidence": Measure("max", "share", "largest weight of a row, the end of the sentence left out"),
    "sink": Measure("sink", "share", "largest mean weight that a single key draws from the rows that see it"),
    **{f"norm_{name}": Measure(f"|{one.label}|", "share", f"norm-based {one.meaning}") for name, one in SHARES.items()},
}

_VARIABILITY = Measure("varies", "share", "how far the pattern changes with what the words are")


_AT_OFFSETS = {"offset": ("", "weight at offset"), "peak": ("top ", "rows whose largest weight is at offset")}
"""What is measured at each fixed offset: how its label begins, and its meaning."""


def _at_offset(sort: str, offset: int) -> Measure:
    start, meaning = _AT_OFFSETS[sort]
    return Measure(f"{start}{offset:+d}", "share", f"{meaning} {offset:+d}")


def measures_up_to(max_offset: int) -> dict[str, Measure]:
    """All that is measured of a head, in the order in which it is kept.

    Args:
        max_offset: fixed offsets are measured from so many tokens back to so many ahead.
    """
    offsets = offsets_up_to(max_offset)
    return {
        **SHARES,
        **_OTHERS,
        **{f"{sort}_{offset:+d}": _at_offset(sort, offset) for sort in _AT_OFFSETS for offset in offsets},
        "variability": _VARIABILITY,
    }


MEASURES = measures_up_to(MAX_OFFSET)
"""Those that are usual."""


def measure_of(name: str) -> Measure | None:
    """What a measure is called, at any offset; None if it is one of another version."""
    if name in MEASURES:
        return MEASURES[name]
    found = re.fullmatch(r"(offset|peak)_([+-][0-9]{1,6})", name)
    return None if found is None else _at_offset(found[1], int(found[2]))


def offsets_in(measures: Sequence[str]) -> tuple[int, ...]:
    """The fixed offsets that are among some measures, by their names."""
    return tuple(int(name.removeprefix("offset_")) for name in measures if name.startswith("offset_"))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimate:
    """Means with their 95 % intervals; NaN where nothing was counted, or there was too little to resample.

    Attributes:
        value: the mean.
        low: the lower end of its interval.
        high: the upper end.
    """

    value: Float64[np.ndarray, ...]
    low: Float64[np.ndarray, ...]
    high: Float64[np.ndarray, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """What a measure comes to where a head cannot have the role.

    Attributes:
        name: ``chance``, ``shuffled``, ``untrained`` or ``offset``.
        what: what it is, in a few words, such as "best head of random weights (4.2)".
        value: the measure.
        low: the lower end of its interval.
        high: the upper end.
        rules_out: whether the role is not established where its interval overlaps this one. Shuffled tokens do not
            rule out that a head looks at a position: it then does so whatever the words are.
    """

    name: str
    what: str
    value: float
    low: float
    high: float
    rules_out: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """Something that a head does, as far as its numbers reach.

    Attributes:
        name: such as ``previous``; heads of one name are drawn in one colour.
        words: the same in plain words: "looks at the previous token".
        measure: what it is judged by.
        score: the measure.
        low: the lower end of its interval.
        high: the upper end.
        threshold: from which score on a head has the role.
        controls: what the score is held against.
        established: whether its interval lies above that of every control that could rule it out.
        reason: why it is not; empty where it is.
    """

    name: str
    words: str
    measure: str
    score: float
    low: float
    high: float
    threshold: float
    controls: tuple[Control, ...]
    established: bool
    reason: str = ""


NO_ROLE = "no clear role"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadProfile:
    """One head.

    Attributes:
        layer: its layer, counted from 0.
        head: its number, likewise.
        roles: what it does, the clearest first; none where no measure reaches its threshold.
        cluster: the number of the cluster of heads like it, from 0; None where heads were not compared.
    """

    layer: int
    head: int
    roles: tuple[Role, ...]
    cluster: int | None = None

    @property
    def name(self) -> str:
        """``layer.head``."""
        return f"{self.layer}.{self.head}"

    @property
    def words(self) -> str:
        """What it does, in plain words."""
        return self.roles[0].words if self.roles else NO_ROLE


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A sentence where a measure of a head is large.

    Attributes:
        text: the sentence.
        score: the measure on it.
    """

    text: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """How well the best head finds a relation between words: chosen on one half of the sentences, scored on the other.

    Attributes:
        name: such as ``nsubj`` or ``coreference``.
        n: how often it comes up in the half that scores.
        layer: of the best head.
        head: its number.
        reverse: whether it is the other way round: of all words, the one depended on looks most at the one that
            depends.
        accuracy: in how many of them that is the right word.
        low: the lower end of its interval.
        high: the upper end.
        offset: the best fixed offset, in words after the one that depends; negative before it.
        offset_accuracy: how often the right word is there.
        offset_low: the lower end of its interval.
        offset_high: the upper end.
        untrained: the accuracy of the best head of random weights, chosen and scored likewise; NaN where unknown.
        untrained_high: the upper end of its interval.
    """

    name: str
    n: int
    layer: int
    head: int
    reverse: bool
    accuracy: float
    low: float
    high: float
    offset: int
    offset_accuracy: float
    offset_low: float
    offset_high: float
    untrained: float = float("nan")
    untrained_high: float = float("nan")

    @property
    def established(self) -> bool:
        """Whether the head's interval lies above those of the best fixed offset and of random weights.

        Where one of these was not taken, it is not known, and nothing is established.
        """
        return self.low > max(self.offset_high, self.untrained_high) and not math.isnan(self.untrained_high)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Likeness:
    """How alike heads are.

    Attributes:
        divergences: the mean Jensen-Shannon divergence of their rows, in nats; heads of all layers one after another.
        linkage: how they join into clusters, as scipy writes it: two clusters, their distance (the square root of the
            divergence, a metric), how many heads.
        points: where each stands if their distances are laid out in the plane.
        kept: how much of the squared distances the plane keeps.
    """

    divergences: Float64[np.ndarray, "one other"]
    linkage: Float64[np.ndarray, "merge 4"]
    points: Float64[np.ndarray, "one 2"]
    kept: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison:
    """What each head of a model does on a corpus.

    Attributes:
        model: its name.
        kind: which attention it is.
        corpus: what it was measured on, in a few words.
        specials: whether special tokens took part: ``keep`` or ``exclude``.
        n_sentences: how many sentences.
        n_tokens: how many tokens they have, special ones too.
        n_bad: how many lines could not be used.
        bad: the first of them: number and reason.
        proof: the receipts of all runs, in a line.
        measures: the names of the measures.
        estimates: each measure of each head.
        controls: by name, the same measures taken otherwise: ``chance`` and ``shuffled`` for each head,
            ``untrained`` for each head of random weights, ``offset`` for the shares that the best fixed offset has,
            alike for each head.
        heads: each head's roles, layer after layer.
        likeness: how alike heads are; None where they were not compared.
        examples: by layer.head and measure, the sentences where it is strongest.
        relations: what heads find of the words that belong together, where the corpus says which; the most frequent
            first.
        notes: what a reader should know, a sentence each.
    """

    model: str
    kind: Kind
    corpus: str
    specials: str
    n_sentences: int
    n_tokens: int
    proof: str
    measures: tuple[str, ...]
    estimates: Estimate
    controls: Mapping[str, Estimate]
    heads: tuple[HeadProfile, ...]
    likeness: Likeness | None = None
    examples: Mapping[tuple[str, str], tuple[Example, ...]] = field(default_factory=dict)
    relations: tuple[Relation, ...] = ()
    n_bad: int = 0
    bad: tuple[tuple[int, str], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def n_layers(self) -> int:
        """How many layers."""
        return int(self.estimates.value.shape[0])

    @property
    def n_heads(self) -> int:
        """How many heads a layer has."""
        return int(self.estimates.value.shape[1])

    @property
    def offsets(self) -> tuple[int, ...]:
        """The fixed offsets that were measured."""
        return offsets_in(self.measures)

    @property
    def clusters(self) -> Int64[np.ndarray, " one"]:
        """The cluster of each head; -1 where heads were not compared."""
        return np.array([-1 if head.cluster is None else head.cluster for head in self.heads], dtype=np.int64)

    def head(self, layer: int, head: int) -> HeadProfile:
        """One head, by its numbers.

        Raises:
            SelectionError: there is none of that number.
        """
        (row,) = positions([layer], range(self.n_layers), "layer")
        (column,) = positions([head], range(self.n_heads), "head")
        return self.heads[row * self.n_heads + column]

    def estimate(self, measure: str, layer: int, head: int) -> tuple[float, float, float]:
        """A measure of one head: its value and both ends of its interval.

        Raises:
            SelectionError: there is no such measure.
        """
        if measure not in self.measures:
            raise SelectionError(f"there is no measure {measure!r}: there are {', '.join(self.measures)}")
        at = self.measures.index(measure)
        e = self.estimates
        return float(e.value[layer, head, at]), float(e.low[layer, head, at]), float(e.high[layer, head, at])
