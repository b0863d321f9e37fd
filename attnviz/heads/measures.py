"""The measures of heads: one entry each, with its computation, its unit, its description and its possible role.

A measure is a mean over rows. A row is counted if its token is real and sees at least two keys: with one key there is
nothing to choose. A share counts only the rows that see a key of its kind: no row of a causal model sees the next
token. A is the head's pattern: row i is the query, column j the key.

To add a measure, write one entry: `attnviz.compare_heads(..., measures=(*MEASURES, mine))` measures it, shows it and
names heads after it. A share only has to say which keys it asks for::

    second = Measure(
        name="second",
        label="2nd",
        meaning="weight on the second token",
        compute=lambda rows: rows.on(rows.marks.first.roll(1, dims=1)),
        role=RoleRule(name="second", words="attends to the second token", threshold=0.6),
    )

Thresholds of roles are those of Clark et al. 2019 (section 3) and Voita et al. 2019 (section 5.1) where they give one:
previous and next token more than half of the weight; first token, separators and punctuation more than 0.6; broad an
entropy of 3.8 nats on 128 tokens, which is 0.78 of the largest; a positional head has its largest weight at one fixed
offset in 90% of its rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Literal, TypeAlias

from attnviz.errors import RecordError
from attnviz.text.messages import N_, NC_, Message

CHANCE, UNTRAINED, OFFSET = "chance", "untrained", "offset"
"""The controls: the head's own weights assigned to keys at random, the best head of random weights, and the best fixed
offset. Those in `RULED_OUT_BY` can rule a role out."""
# The family of all roles that are relations between words.
RELATION = "relation"
BROAD = round(3.8 / math.log(128), 3)
"""The smallest entropy of a head that Clark et al. call broad, as a share of the largest possible entropy."""
MAX_OFFSET = 8  # the largest fixed offset, in tokens before and after the query
OFFSETS = tuple(range(-MAX_OFFSET, MAX_OFFSET + 1))
ENOUGH_ROWS = 3  # a sentence is an example of a measure only if at least 3 of its rows are counted
Group: TypeAlias = Literal[
    "position", "grammar", "reference", "special", "meaning", "broad", "other"
]
GROUPS: dict[Group, tuple[Message, str]] = {
    "position": (NC_("roles", "position"), "#77aadd"),
    "grammar": (NC_("roles", "grammar"), "#44bb99"),
    "reference": (NC_("roles", "reference and repetition"), "#ffaabb"),
    "special": (NC_("roles", "special tokens and punctuation"), "#ee8866"),
    "meaning": (NC_("roles", "meaning"), "#bbcc33"),
    "broad": (NC_("roles", "broad attention"), "#eedd88"),
    "other": (NC_("roles", "other"), "#dddddd"),
}
"""Groups of roles, each with its name and its colour.

The colours are Paul Tol's light scheme, made for cells with black text and distinct for colour-blind readers
(https://sronpersonalpages.nl/~pault/).
"""
About: TypeAlias = Literal["position", "content", "spread"]
"""Subject of a role: the position of a key, its content, or the spread of the weights."""

RULED_OUT_BY: dict[About, tuple[str, ...]] = {
    "position": (CHANCE, UNTRAINED),
    "content": (CHANCE, UNTRAINED, OFFSET),
    "spread": (UNTRAINED,),
}
"""The controls that can rule a role out: the interval of the head must lie above theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleRule:
    """A role that a measure may give."""

    name: str  # the name of the role in files
    words: str | Message  # what the head does, in plain words
    threshold: float  # the smallest value of the measure that gives the role
    about: About = "content"  # subject of the role; it selects the controls (`RULED_OUT_BY`)
    short: str | Message = ""  # the name that users see
    group: Group = "other"  # what the role is about, which gives its colour (`GROUPS`)
    # the name of a group of roles, such as those of all fixed offsets; by default the name of the role
    family: str = ""

    def __post_init__(self) -> None:
        if not self.family:
            object.__setattr__(self, "family", self.name)
        if not self.short:
            object.__setattr__(self, "short", self.name.replace("_", " "))

    @property
    def colour(self) -> str:
        """The colour of its group, as ``#rrggbb``."""
        return GROUPS[self.group][1]


def _no_computation(_rows: object) -> Any:
    """Refuse to compute a measure that has no computation."""
    raise RecordError("a measure that takes keys, rows or received needs `compute`")


Takes: TypeAlias = Literal["keys", "rows", "received", "peaks", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A number about a head."""

    name: str  # the name in tables, files and messages
    label: str  # a short title of its column
    meaning: str | Message  # a description in a few words
    unit: str = "share"  # 0 to 1, or ``nats`` or ``tokens``; empty for a measure of another version
    # The input of the measure:
    # ``keys``: `compute` takes `Rows` and returns a mask of keys; the measure is the weight on these keys. Such a share
    # also has the control of the best fixed offset.
    # ``rows``: `compute` takes `Rows` and returns sums and counts, in the form of `Rows.total`.
    # ``received``: `compute` takes `Received`, the weight that each key of a layer received from all rows.
    # ``peaks``: the share of rows whose largest weight is at `offset`.
    # ``unknown``: a measure of another version, read from a file.
    takes: Takes = "keys"
    compute: Callable[[Any], Any] = _no_computation  # unused if `takes` already determines it
    # the role of a head whose measure is large; None if there is no such role
    role: RoleRule | None = None
    # the position of the key after the query, in tokens (negative: before it); None for a measure without an offset
    offset: int | None = None
    family: str = ""  # the name of all measures like it, for a measure at an offset
    enough_rows: int = ENOUGH_ROWS  # a sentence needs this many counted rows to be an example
    # whether its 95% interval is too narrow: for real text, fewer than 92 of 100 intervals contained the mean
    # (`tests/benchmarks/coverage.py`)
    narrow: bool = False

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by name if the measure is one of `MEASURES`, else by all its fields."""
        if replace(_entry(self.name), compute=self.compute) == self:
            return _entry, (self.name,)
        return partial(
            Measure, **{field.name: getattr(self, field.name) for field in fields(self)}
        ), ()


def _entry(name: str) -> Measure:
    """Return one of `MEASURES` by name, to unpickle it."""
    return named([name])[0]


def _weight_at(offset: int) -> Measure:
    """Return the measure of the weight at a fixed offset."""
    return Measure(
        name=f"offset_{offset:+d}",
        label=f"{offset:+d}",
        meaning=N_("weight at offset {offset:+d}").format(offset=offset),
        compute=lambda rows: rows.at(offset),
        offset=offset,
        family="offset",
    )


def _peak_at(offset: int) -> Measure:
    """Return the measure of rows whose largest weight is at an offset; offsets beyond 1 also give a role."""
    distance = abs(offset)
    short = N_("{n} back") if offset < 0 else N_("{n} ahead")
    words = N_("attends {n} tokens back") if offset < 0 else N_("attends {n} tokens ahead")
    role = RoleRule(
        name=f"offset_{offset:+d}",
        words=words.format(n=distance),
        threshold=0.9,
        about="position",
        short=short.format(n=distance),
        group="position",
        family="offset",
    )
    return Measure(
        name=f"peak_{offset:+d}",
        label=f"top {offset:+d}",
        takes="peaks",
        offset=offset,
        family="peak",
        meaning=N_("rows whose largest weight is at offset {offset:+d}").format(offset=offset),
        role=role if abs(offset) > 1 else None,
    )


MEASURES: tuple[Measure, ...] = (
    # A[i, i] (Clark et al. 2019, section 3)
    Measure(
        name="self",
        label="self",
        compute=lambda rows: rows.at(0),
        meaning=N_("weight on the token itself"),
        role=RoleRule(
            name="self",
            short=NC_("role", "itself"),
            group="position",
            words=N_("attends to itself"),
            threshold=0.5,
            about="position",
        ),
    ),
    # A[i, i - 1] (Clark et al. 2019, section 3.1)
    Measure(
        name="previous",
        label="prev",
        compute=lambda rows: rows.at(-1),
        meaning=N_("weight on the token before"),
        role=RoleRule(
            name="previous",
            short=NC_("role", "previous token"),
            group="position",
            words=N_("attends to the previous token"),
            threshold=0.5,
            about="position",
        ),
    ),
    # A[i, i + 1] (Clark et al. 2019, section 3.1)
    Measure(
        name="next",
        label="next",
        compute=lambda rows: rows.at(1),
        meaning=N_("weight on the token after"),
        role=RoleRule(
            name="next",
            short=NC_("role", "next token"),
            group="position",
            words=N_("attends to the next token"),
            threshold=0.5,
            about="position",
        ),
    ),
    # A[i, 0], such as [CLS] (Clark et al. 2019, section 3.2)
    Measure(
        name="first",
        label="1st",
        compute=lambda rows: rows.on(rows.marks.first),
        meaning=N_("weight on the first token"),
        role=RoleRule(
            name="first",
            short=NC_("role", "first token"),
            group="special",
            words=N_("attends to the first token"),
            threshold=0.6,
        ),
    ),
    # the sum of A over tokens such as [SEP] (Clark et al. 2019, section 3.2)
    Measure(
        name="separator",
        label="sep",
        compute=lambda rows: rows.on(rows.marks.separator),
        meaning=N_("weight on special tokens other than the first"),
        role=RoleRule(
            name="separator",
            short=NC_("role", "separator"),
            group="special",
            words=N_("attends to the separator"),
            threshold=0.6,
        ),
    ),
    # the sum of A over punctuation marks (Clark et al. 2019, section 3.2)
    Measure(
        name="punctuation",
        label="punct",
        narrow=True,
        compute=lambda rows: rows.on(rows.marks.punctuation),
        meaning=N_("weight on punctuation marks"),
        role=RoleRule(
            name="punctuation",
            short=NC_("role", "punctuation"),
            group="special",
            words=N_("attends to punctuation"),
            threshold=0.6,
        ),
    ),
    # the sum of A over earlier copies of the token (Wang et al. 2023, duplicate token heads)
    Measure(
        name="same_word",
        label="same",
        compute=lambda rows: rows.copies(),
        meaning=N_("weight on earlier copies of the same token"),
        enough_rows=1,
        narrow=True,
        role=RoleRule(
            name="same_word",
            short=NC_("role", "same word"),
            group="reference",
            words=N_("attends back to the same word"),
            threshold=0.5,
        ),
    ),
    # the sum of A over the tokens right after earlier copies of the token (Olsson et al. 2022)
    Measure(
        name="induction",
        label="induct",
        compute=lambda rows: rows.after_copies(),
        meaning=N_("weight on the tokens that followed earlier copies of the same token"),
        enough_rows=1,
        narrow=True,
        role=RoleRule(
            name="induction",
            short=NC_("role", "induction"),
            group="reference",
            words=N_("attends to what followed the same word before"),
            threshold=0.5,
        ),
    ),
    # mean of -sum over j of A ln A (Clark et al. 2019, section 3.3)
    Measure(
        name="entropy",
        label="entropy",
        unit="nats",
        takes="rows",
        compute=lambda rows: rows.total(rows.entropy),
        meaning=N_("how spread a row is"),
    ),
    Measure(
        name="entropy_share",
        label="even",
        takes="rows",
        compute=lambda rows: rows.total(rows.entropy / rows.largest_entropy),
        meaning=N_("entropy as a share of its maximum"),
        role=RoleRule(
            name="broad",
            short=NC_("role", "broad"),
            group="broad",
            words=N_("attends broadly, to many tokens"),
            threshold=BROAD,
            about="spread",
        ),
    ),
    # computed by `attnviz.heads.capture.rows.SimilarWords`
    Measure(
        name="meaning",
        label="sim",
        takes="rows",
        compute=lambda rows: rows.similar(),
        meaning=N_("mean rank, by similarity, of the words attended to; 0.5 by chance"),
        role=RoleRule(
            name="meaning",
            short=NC_("role", "similar meaning"),
            group="meaning",
            words=N_("attends to words of similar meaning"),
            threshold=0.6,
        ),
    ),
    Measure(
        name="distance",
        label="dist",
        unit="tokens",
        takes="rows",
        narrow=True,
        compute=lambda rows: rows.total(rows.distance) if rows.marks.square else rows.nothing(),
        meaning=N_("mean distance of the keys"),
    ),
    # mean of max A (Voita et al. 2019, section 4)
    Measure(
        name="confidence",
        label="max",
        takes="rows",
        compute=lambda rows: rows.confidence(),
        meaning=N_("largest weight of a row, without the end of the sentence"),
    ),
    # Gu et al. 2025, "attention sink"
    Measure(
        name="sink",
        label="sink",
        takes="received",
        compute=lambda received: received.largest(),
        meaning=N_("largest mean weight that a single key receives from the rows that see it"),
    ),
    *map(_weight_at, OFFSETS),  # A[i, i + o]
    # positional heads of Voita et al. 2019, section 5.1, which require 0.9 of the rows
    *map(_peak_at, OFFSETS),
)
"""The measures of a head, unless a caller gives others."""


def measures_of(measures: Iterable[Measure] = MEASURES) -> tuple[Measure, ...]:
    """Return measures in the order in which they are stored: shares come first, those at fixed offsets last."""
    return tuple(
        sorted(measures, key=lambda measure: (bool(measure.family), measure.takes != "keys"))
    )


def named(names: Sequence[str]) -> tuple[Measure, ...]:
    """Return the measures of these names, as files have them; an unknown name gives a measure without a unit."""
    known = {measure.name: measure for measure in MEASURES}
    return tuple(
        known.get(name) or Measure(name=name, label=name, unit="", meaning="", takes="unknown")
        for name in names
    )


def rules_of(measures: Iterable[Measure]) -> tuple[tuple[Measure, RoleRule], ...]:
    """Return the roles that measures may give, each with its measure."""
    return tuple((measure, measure.role) for measure in measures if measure.role is not None)
