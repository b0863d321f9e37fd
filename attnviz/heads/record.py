"""The measures of each head with their intervals and controls, and the roles that they give."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike

from attnviz.attention import Attention, Kind, Note, indices_of, parse_head
from attnviz.errors import SelectionError
from attnviz.heads.measures import Measure, RoleRule
from attnviz.heads.settings import Place
from attnviz.render.sheet import HeadSign, HeadSigns
from attnviz.text.messages import _, both

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from attnviz.heads.api import Examples
    from attnviz.pages import WebPage
    from attnviz.render.figure.style import StyleName


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimates:
    """Means with their 95 % intervals; NaN where nothing was counted, or there was too little to resample."""

    value: Float64[np.ndarray, " ..."]  # the mean
    low: Float64[np.ndarray, " ..."]  # the lower end of its interval
    high: Float64[np.ndarray, " ..."]  # the upper end

    @classmethod
    def of(cls, value: ArrayLike, low: ArrayLike, high: ArrayLike) -> Estimates:
        """From numbers that may be one each, which numpy does not call an array."""
        return cls(value=np.asarray(value), low=np.asarray(low), high=np.asarray(high))

    def at(self, *place: int) -> tuple[float, float, float]:
        """One of them: its value and both ends of its interval."""
        return float(self.value[place]), float(self.low[place]), float(self.high[place])

    def map(self, change: Callable[[np.ndarray], np.ndarray]) -> Estimates:
        """The estimates whose three arrays are what `change` makes of these."""
        return Estimates(value=change(self.value), low=change(self.low), high=change(self.high))

    def with_one_more(self, other: Estimates) -> Estimates:
        """Append another measure of each head."""
        parts = ((self.value, other.value), (self.low, other.low), (self.high, other.high))
        return Estimates.of(*(np.concatenate([a, b[..., None]], axis=-1) for a, b in parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """The value of a measure where a head cannot have the role."""

    name: str  # one of `attnviz.heads.roles.CONTROLS`
    value: float  # the measure
    low: float  # the lower end of its interval; of random weights, how low the best head of another seed may be
    high: float  # the upper end; of random weights, how high, corrected for all that is looked at
    # whether the role is not established where its interval overlaps this one. Shuffled tokens do not rule out that a
    # head looks at a position: it then does so whatever the words are
    rules_out: bool
    offset: int | None = None  # of relations between words, the best fixed offset, in words


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """Something that a head does, as far as its numbers reach."""

    rule: RoleRule  # which role
    measure: str  # the name of what it is judged by
    score: float  # the measure
    low: float  # the lower end of its interval
    high: float  # the upper end
    controls: tuple[Control, ...]  # what the score is held against
    doubt: Note | None = None  # why it is not established; None where it is
    narrow: bool = False  # whether its interval is not to be trusted

    @property
    def name(self) -> str:
        """Such as ``previous``."""
        return self.rule.name

    @property
    def established(self) -> bool:
        """Whether nothing that could rule it out does: see `attnviz.heads.roles.doubt`."""
        return self.doubt is None

    @property
    def rival(self) -> Control | None:
        """Of the controls that could rule it out the one whose interval reaches highest; None without any."""
        held = [one for one in self.controls if one.rules_out and not math.isnan(one.high)]
        return max(held, key=lambda control: control.high, default=None)

    @property
    def clearness(self) -> tuple[bool, float]:
        """Return the order of roles: established ones first, then by how far each is above its threshold."""
        least = self.rule.threshold
        return self.established, (self.score - least) / max(1 - least, 1e-9)


NO_ROLE = _("no clear role")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadChange:
    """A head in a second model, on the same sentences."""

    # the mean Jensen-Shannon divergence between the head's rows in the two models, in nats: 0 where they are the same,
    # ln 2 where they share no key; NaN where no row was counted
    divergence: float
    low: float  # the lower end of its interval
    high: float  # the upper end
    role: Role | None  # the clearest role in the second model; None where it has none


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadProfile:
    """One head."""

    layer: int  # its layer, counted from 0
    head: int  # its number, likewise
    # what it does, the clearest first; none where no measure reaches its threshold
    roles: tuple[Role, ...]
    # the number of the cluster of heads like it, from 0; None where heads were not compared
    cluster: int | None = None
    change: HeadChange | None = None  # the head in a second model; None where there is none

    @property
    def name(self) -> str:
        """``layer.head``."""
        return f"{self.layer}.{self.head}"

    @property
    def place(self) -> tuple[int, int]:
        """Its layer and its number."""
        return self.layer, self.head

    @property
    def role(self) -> Role | None:
        """The clearest; None where there is none."""
        return self.roles[0] if self.roles else None

    @property
    def words(self) -> str:
        """Describe the role in plain words."""
        return self.role.rule.words if self.role else NO_ROLE


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A sentence where a measure of a head is large."""

    text: str  # the sentence
    score: float  # the measure on it


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A relation between words and a head that finds it, chosen on one half of the sentences, scored on the other."""

    name: str  # such as ``nsubj`` or ``coreference``
    n: int  # how often it comes up in the half that scores
    layer: int  # of the head
    head: int  # its number
    reverse: bool  # the other way round: of all words, the one depended on looks most at the one that depends
    # the role that follows, established or not: its score is the share of cases in which the head is right; its
    # controls are the best fixed offset, in words after the one that depends, and the best head of random weights
    role: Role

    def control(self, name: str) -> Control | None:
        """One of its controls; None where it was not taken."""
        return next((one for one in self.role.controls if one.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeadSimilarity:
    """The similarity of heads."""

    # the mean Jensen-Shannon divergence of their rows, in nats; heads of all layers one after another
    divergences: Float64[np.ndarray, "one other"]
    # how they join into clusters, as scipy writes it: two clusters, their distance (the square root of the
    # divergence, a metric), how many heads
    linkage: Float64[np.ndarray, "merge 4"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class HeadComparison:
    """The measures and roles of all heads of a model on a corpus."""

    ENDINGS = (".png", ".svg", ".pdf", ".html", ".csv", ".json", ".stats")

    model: str  # its name
    kind: Kind  # which attention it is
    corpus: str  # what it was measured on, in a few words
    n_sentences: int  # how many sentences
    n_tokens: int  # how many tokens they have, special ones too
    differences: tuple[float, ...]  # the largest difference of each layer's receipts, over all runs
    measures: tuple[Measure, ...]  # what was measured
    estimates: Estimates  # each measure of each head
    # by name, the same measures taken otherwise: ``chance`` and ``shuffled`` for each head, ``untrained`` for each head
    # of random weights, ``offset`` for the shares that the best fixed offset has, alike for each head
    controls: Mapping[str, Estimates]
    heads: tuple[HeadProfile, ...]  # each head's roles, layer after layer
    # how alike heads are; None where they were not compared
    similarity: HeadSimilarity | None = None
    # by layer.head and measure, the sentences where it is strongest; likewise of the roles of heads, a sentence like
    # those where it is strong: see `attnviz.heads.selection.typical`
    examples: Mapping[tuple[str, str], tuple[Example, ...]] = field(default_factory=dict)
    typical: Mapping[tuple[str, str], Example] = field(default_factory=dict)
    # what heads find of the words that belong together; the most frequent first
    relations: tuple[Relation, ...] = ()
    n_bad: int = 0  # how many lines could not be used
    bad: tuple[tuple[int, str], ...] = ()  # the first of them: number and reason
    # what a reader should know, as `attnviz.heads.words.note_words` says it
    notes: tuple[Note, ...] = ()
    # what it was computed from, as `attnviz.heads.api.Origin`; None of one made otherwise
    origin: object = None
    # of one sentence all its weights; None of more, or with no model at hand
    attention: Attention | None = None
    # of one sentence, the comparison on many that tells the heads' roles
    roles_on: HeadComparison | None = None
    against: HeadComparison | None = None  # a second model on the same sentences
    names: tuple[str, ...] = field(init=False)  # of the measures

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(one.name for one in self.measures))

    def __repr__(self) -> str:
        n_sure = self.n_established
        return (
            f"<HeadComparison of {self.model!r} ({self.kind}): {self.n_layers} x {self.n_heads} heads, "
            f"{self.n_sentences:,} sentence{'s' * (self.n_sentences != 1)}; "
            f"{n_sure} head{'s' * (n_sure != 1)} with an established role>"
        )

    @property
    def n_layers(self) -> int:
        """The number of layers."""
        return int(self.estimates.value.shape[0])

    @property
    def n_established(self) -> int:
        """The number of heads with an established role."""
        return sum(any(role.established for role in head.roles) for head in self.heads)

    @property
    def signs(self) -> HeadSigns:
        """The clearest established role of each head that has one, to be shown on other pictures of the model."""
        found = {
            head.place: HeadSign(
                head.role.rule.sign, head.role.rule.colour, both(head.role.rule.words)
            )
            for head in self.heads
            if head.role and head.role.established
        }
        return HeadSigns(
            model=self.model, kind=self.kind, n_layers=self.n_layers, n_heads=self.n_heads, of=found
        )

    @property
    def n_heads(self) -> int:
        """The number of heads of a layer."""
        return int(self.estimates.value.shape[1])

    @property
    def offsets(self) -> tuple[int, ...]:
        """The fixed offsets that were measured."""
        return tuple(
            one.offset for one in self.measures if one.family == "offset" and one.offset is not None
        )

    @property
    def clusters(self) -> dict[int, list[str]]:
        """The names of the heads in each cluster, by its number; none where heads were not compared."""
        found: dict[int, list[str]] = {}
        for head in self.heads:
            if head.cluster is not None:
                found.setdefault(head.cluster, []).append(head.name)
        return found

    def head(self, layer: Place | int, head: int | None = None) -> HeadProfile:
        """One head: ``head(1, 2)``, ``head("1.2")``, or ``comparison[1, 2]``.

        Raises SelectionError: there is none of that number, or it is no head.
        """
        layer, head = parse_head(layer if head is None else (layer, head))
        (row,) = indices_of([layer], range(self.n_layers), "layer")
        (column,) = indices_of([head], range(self.n_heads), "head")
        return self.heads[row * self.n_heads + column]

    def nearest(self, head: HeadProfile, n: int) -> list[tuple[HeadProfile, float]]:
        """The heads most like one and the mean divergence from each, in nats; none where heads were not compared."""
        if self.similarity is None:
            return []
        own = head.layer * self.n_heads + head.head
        row = self.similarity.divergences[own]
        order = [
            int(other)
            for other in np.argsort(row, kind="stable")
            if other != own and np.isfinite(row[other])
        ]
        return [(self.heads[other], float(row[other])) for other in order[:n]]

    def __getitem__(self, place: Place) -> HeadProfile:
        """One head, as `head`."""
        return self.head(place)

    def estimate(
        self, measure: str, layer: Place | int, head: int | None = None
    ) -> tuple[float, float, float]:
        """A measure of one head, and both ends of its 95 % interval, in the measure's unit.

        Raises SelectionError: there is no such measure; and as `head`.
        """
        place = self.head(layer, head).place
        if not isinstance(measure, str) or measure not in self.names:
            raise SelectionError(
                f"there is no measure {measure!r}: there are {', '.join(self.names)}"
            )
        return self.estimates.at(*place, self.names.index(measure))

    def at_offset(self, offset: int, head: HeadProfile) -> tuple[float, float, float]:
        """The mean weight of a head at a fixed offset, and both ends of its interval."""
        return self.estimate(f"offset_{offset:+d}", *head.place)

    def control(self, name: str, measure: str, head: HeadProfile) -> float:
        """The value that a control has for a measure of a head."""
        place = (*head.place, self.names.index(measure))
        return float(self.controls[name].value[place])

    def to_frame(self) -> Any:
        """A pandas data frame: a row a head, the columns of the CSV file; NaN where there is no number."""
        from attnviz.heads.export import frame

        return frame(self)

    def page(self, lang: str = "en") -> WebPage:
        """Make a page to explore, in English or Korean at first. Raises SelectionError: another language."""
        from attnviz.heads.html import page
        from attnviz.text.messages import expect_language

        expect_language(lang)
        return page(self, lang=lang)

    def _repr_html_(self) -> str:
        return self.page()._repr_html_()

    def _repr_png_(self) -> bytes:
        from attnviz.heads.api import draw

        return draw(self, examples=None).png()

    def figure(
        self,
        head: Place | None = None,
        *,
        lang: str = "en",
        style: StyleName = "sheet",
        width: str | None = None,
        dpi: int | None = None,
    ) -> Figure:
        """Draw the sheet of all heads, or the page of one head (``(1, 2)`` or ``"1.2"``).

        Patterns of examples are drawn where the model is at hand.

        Raises:
            SelectionError: there is no such head or language.
            SettingsError: a style or width that no picture has.
        """
        from attnviz.heads.api import draw

        return draw(self, head, lang=lang, style=style, width=width, dpi=dpi).figure

    def save(
        self,
        path: str | os.PathLike[str],
        head: Place | None = None,
        *,
        lang: str = "en",
        style: StyleName = "sheet",
        width: str | None = None,
        dpi: int | None = None,
        examples: Examples | None = None,
    ) -> Path:
        """Write it, whole or not at all, by its ending.

        ``.png``, ``.svg`` and ``.pdf`` are pictures, of all heads or the page of one `head`; ``.html`` is a page to
        explore; ``.csv`` and ``.json`` are tables of all numbers; ``.stats`` is what a run goes on from, and what is
        merged. `examples` gives the patterns of examples, as for `attnviz.heads.api.draw`.

        Raises:
            OutputError: another ending, or a file that cannot be written.
            SelectionError: there is no such head or language.
            SettingsError: a style or width that no picture has.
        """
        from attnviz.heads import api, export
        from attnviz.storage.files import check_ending, write_whole

        path = Path(path)
        ending = check_ending(path, self.ENDINGS, "a comparison is")
        content: str | bytes | Callable[[Path], object]
        if ending == ".csv":
            content = export.to_csv(self)
        elif ending == ".json":
            content = export.to_json(self)
        elif ending == ".stats":
            content = api.stats(self)
        elif ending == ".html":
            content = self.page(lang).html
        else:
            picture = api.draw(
                self,
                head,
                examples=examples or api.example_patterns,
                lang=lang,
                style=style,
                width=width,
                dpi=dpi,
            )
            content = picture.fill
        return write_whole(path, content)
