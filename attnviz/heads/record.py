"""Records of head comparisons: measures with intervals and controls, and the roles that follow from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike

from attnviz.attention import Attention, Kind, Note, indices_of, parse_head
from attnviz.errors import SelectionError
from attnviz.heads.measures import Measure, RoleRule
from attnviz.heads.settings import Place
from attnviz.result import Result
from attnviz.text.messages import N_, _


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimates:
    """Means with their 95% intervals; NaN if nothing was counted, or too little for an interval."""

    value: Float64[np.ndarray, " ..."]  # the mean
    low: Float64[np.ndarray, " ..."]  # the lower end of its interval
    high: Float64[np.ndarray, " ..."]  # the upper end

    @classmethod
    def of(cls, value: ArrayLike, low: ArrayLike, high: ArrayLike) -> Estimates:
        """Return estimates from arrays or from single numbers."""
        return cls(value=np.asarray(value), low=np.asarray(low), high=np.asarray(high))

    def at(self, *place: int) -> tuple[float, float, float]:
        """Return the estimate at one index: its value and both ends of its interval."""
        return float(self.value[place]), float(self.low[place]), float(self.high[place])

    def map(self, change: Callable[[np.ndarray], np.ndarray]) -> Estimates:
        """Return new estimates, with `change` applied to each of the three arrays."""
        return Estimates(value=change(self.value), low=change(self.low), high=change(self.high))


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """The value of a measure under a control, that is, for something that cannot have the role."""

    name: str  # one of `attnviz.heads.roles.CONTROLS`
    value: float  # the value of the measure
    low: float  # the lower end of its interval; for random weights, the lower bound for the best head of another seed
    high: float  # the upper end; for random weights, the upper bound, corrected for the number of roles tested
    # Whether the control can rule the role out: the role is not established if both intervals overlap.
    rules_out: bool = True
    offset: int | None = None  # the best fixed offset in words, for relations between words


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """A role of a head, with the numbers that support it."""

    rule: RoleRule  # the rule that defines the role
    measure: str  # the name of the measure that gives the role
    score: float  # the value of the measure
    low: float  # the lower end of its interval
    high: float  # the upper end
    controls: tuple[Control, ...]  # the controls that the score is compared with
    doubt: Note | None = None  # why the role is not established; None if it is
    narrow: bool = False  # whether its interval is too narrow: see `Measure.narrow`

    @property
    def name(self) -> str:
        """The name of the role, such as ``previous``."""
        return self.rule.name

    @property
    def established(self) -> bool:
        """Whether no control or other doubt rules the role out: see `attnviz.heads.roles.doubt`."""
        return self.doubt is None

    def control(self, name: str) -> Control | None:
        """Return a control by name; None if it was not measured."""
        return next((control for control in self.controls if control.name == name), None)

    @property
    def clearness(self) -> tuple[bool, float]:
        """The sort key of roles: established roles first, then by how far the score is above the threshold."""
        threshold = self.rule.threshold
        # 1e-9 avoids a division by 0 for a threshold of 1.
        return self.established, (self.score - threshold) / max(1 - threshold, 1e-9)


NO_ROLE = N_("no clear role")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadChange:
    """Difference between a head and the same head of a second model, on the same sentences."""

    # the mean Jensen-Shannon divergence between the head's rows in the two models, in nats: 0 if they are equal, ln 2
    # if they share no key; NaN if no row was counted
    divergence: float
    low: float  # the lower end of its interval
    high: float  # the upper end
    role: Role | None  # the clearest role in the second model; None if it has no role


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class HeadProfile:
    """The roles of one head."""

    layer: int  # the layer, counted from 0
    head: int  # the head, counted from 0
    # its roles, the clearest first; empty if no measure reaches its threshold
    roles: tuple[Role, ...]
    # the difference from a second model; None if there is no second model
    change: HeadChange | None = None

    def __repr__(self) -> str:
        score = f" ({self.role.score:.2f})" if self.role else ""
        return f"<Head {self.name}: {self.words}{score}>"

    @property
    def name(self) -> str:
        """The name, ``layer.head``."""
        return f"{self.layer}.{self.head}"

    @property
    def place(self) -> tuple[int, int]:
        """The layer and the head."""
        return self.layer, self.head

    @property
    def role(self) -> Role | None:
        """The clearest role; None if the head has no role."""
        return self.roles[0] if self.roles else None

    @property
    def established(self) -> tuple[Role, ...]:
        """The roles that are established, the clearest first."""
        return tuple(role for role in self.roles if role.established)

    @property
    def words(self) -> str:
        """The description of the role in plain words."""
        return _(self.role.rule.words if self.role else NO_ROLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A sentence in which a measure of a head is large."""

    text: str  # the sentence
    score: float  # the measure on it
    # Of a relation: the words that it links, as the characters of the query's and of the key's word.
    links: tuple[tuple[tuple[int, int], tuple[int, int]], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A relation between words and the head that finds it best.

    The head is chosen on one half of the sentences and scored on the other half.
    """

    name: str  # such as ``nsubj`` or ``coreference``
    n: int  # how often it occurs in the half that is scored
    layer: int  # the layer of the head
    head: int  # the number of the head
    # False: the dependent word attends most to its governor; True: of all words,
    # the governor attends most to the dependent word
    reverse: bool
    # The role, established or not. Its score is the share of cases in which the head is right. Its controls are the
    # best fixed offset (in words after the dependent word) and the best head of random weights.
    role: Role


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class HeadComparison(Result):
    """The measures and roles of all heads of a model on a corpus."""

    ENDINGS = (".png", ".svg", ".pdf", ".html", ".csv", ".json")

    model: str  # the name of the model
    kind: Kind  # the kind of attention
    corpus: str  # a short description of the sentences
    n_sentences: int  # number of sentences
    n_tokens: int  # number of tokens, special tokens included
    differences: tuple[float, ...]  # the largest difference of each layer's receipts, over all runs
    # whether the weights themselves were verified, or only their products with the values
    proves: Literal["weights", "output"] = "weights"
    measures: tuple[Measure, ...]  # the measures, in the order of the last axis of `estimates`
    estimates: Estimates  # each measure of each head, of shape (layer, head, measure)
    # the same measures under each control, by name: ``chance`` is measured for each head,
    # ``untrained`` with random weights; ``offset`` is the best fixed offset, for shares only, the same for
    # all heads
    controls: Mapping[str, Estimates]
    heads: tuple[HeadProfile, ...]  # all heads with their roles, ordered by layer, then by number
    # by ``layer.head`` and measure: `examples` has the sentences with the highest score, `typical` has one typical
    # sentence for each role (see `attnviz.heads.selection.typical`)
    examples: Mapping[tuple[str, str], tuple[Example, ...]] = field(default_factory=dict)
    typical: Mapping[tuple[str, str], Example] = field(default_factory=dict)
    # the attention on examples, by ``layer.head`` and sentence, so that pictures need no model
    patterns: Mapping[tuple[str, str], Attention] = field(default_factory=dict)
    # the relations between words that heads find, the most frequent first
    relations: tuple[Relation, ...] = ()
    n_bad: int = 0  # number of lines that could not be used
    bad: tuple[tuple[int, str], ...] = ()  # the first of these lines: number and reason
    # caveats for the reader; `attnviz.heads.words.note_words` puts them into words
    notes: tuple[Note, ...] = ()
    weights: str | None = None  # the digest of the weights of the model; None if unknown
    # all weights, if one sentence was measured; None for several sentences, or if no model was run
    attention: Attention | None = None
    # a comparison on many sentences that gives the roles of the heads, if one sentence was measured
    roles_on: HeadComparison | None = None
    # a second model on the same sentences, such as this one before it was trained further
    against: HeadComparison | None = None
    names: tuple[str, ...] = field(init=False)  # the names of the measures

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(measure.name for measure in self.measures))

    def __repr__(self) -> str:
        sentences = "sentence" if self.n_sentences == 1 else "sentences"
        heads = "head" if self.n_established == 1 else "heads"
        return (
            f"<HeadComparison of {self.model!r} ({self.kind}): {self.n_layers} x {self.n_heads} heads, "
            f"{self.n_sentences:,} {sentences}; {self.n_established} {heads} with an established role>"
        )

    @property
    def n_layers(self) -> int:
        """The number of layers."""
        return int(self.estimates.value.shape[0])

    @property
    def n_established(self) -> int:
        """The number of heads with an established role."""
        return sum(bool(head.established) for head in self.heads)

    @property
    def n_heads(self) -> int:
        """The number of heads per layer."""
        return int(self.estimates.value.shape[1])

    @property
    def offsets(self) -> tuple[int, ...]:
        """The fixed offsets that were measured."""
        return tuple(
            measure.offset
            for measure in self.measures
            if measure.family == "offset" and measure.offset is not None
        )

    def head(self, layer: Place | int, head: int | None = None) -> HeadProfile:
        """Return one head: ``head(1, 2)``, ``head("1.2")``, or ``comparison[1, 2]``.

        Raises SelectionError: there is no such head, or the text is not a head.
        """
        layer, head = parse_head(layer if head is None else (layer, head))
        (row,) = indices_of([layer], range(self.n_layers), "layer")
        (column,) = indices_of([head], range(self.n_heads), "head")
        return self.heads[row * self.n_heads + column]

    def __getitem__(self, place: Place) -> HeadProfile:
        """Return one head, as `head` does."""
        return self.head(place)

    def estimate(
        self, measure: str, layer: Place | int, head: int | None = None
    ) -> tuple[float, float, float]:
        """Return a measure of one head and both ends of its 95% interval, in the unit of the measure.

        Raises SelectionError: there is no such measure or head.
        """
        place = self.head(layer, head).place
        if not isinstance(measure, str) or measure not in self.names:
            raise SelectionError(
                f"there is no measure {measure!r}: there are {', '.join(self.names)}"
            )
        return self.estimates.at(*place, self.names.index(measure))

    def at_offset(self, offset: int, head: HeadProfile) -> tuple[float, float, float]:
        """Return the mean weight of a head at a fixed offset, and both ends of its interval."""
        return self.estimate(f"offset_{offset:+d}", *head.place)

    def control(self, name: str, measure: str, head: HeadProfile) -> float:
        """Return the value of a control for a measure of a head."""
        place = (*head.place, self.names.index(measure))
        return float(self.controls[name].value[place])

    def to_frame(self, full: bool = False) -> Any:
        """Return a pandas data frame with one row per head: its layer and number, and its clearest role with the score.

        With `full`, it is the table of the CSV file: one row per head and measure. Missing numbers are NaN.
        """
        from attnviz.heads.files import frame

        return frame(self, full=full)
