"""The measures of heads: one entry each, with its computation, its unit, its words, and the role that it may give.

A measure is a mean over rows. A row is counted where its token is real and sees two keys or more: with one key there
is nothing to choose. Of a share, only rows that see such a key are counted: no row of a causal model sees the next
token. A is the head's pattern: row i is the query, column j the key.

To add a measure, write one entry: `attnviz.compare_heads(..., measures=(*MEASURES, mine))` measures it, shows it and
names heads for it. A share needs only to say which keys it asks for::

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
offset in 90 % of its rows. All can be set. Colours are Paul Tol's muted scheme, which colour-blind readers tell apart
(https://sronpersonalpages.nl/~pault/); punctuation has the orange of his light scheme, a relation the blue of his
vibrant one, which a terminal of 256 colours does not take for that of the next token.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Literal, TypeAlias

from attnviz.text.messages import _

CHANCE, SHUFFLED, UNTRAINED, OFFSET = "chance", "shuffled", "untrained", "offset"
"""The controls. Three can rule a role out: the head's own weights dealt out to keys at random, the best head of random
weights, the best fixed offset. The fourth, the head on sentences with their tokens shuffled, tells what it goes by: one
that looks at a position does so on any words."""
BROAD = round(3.8 / math.log(128), 3)
"""The entropy from which on Clark et al. call a head broad, as a share of the largest."""
MAX_OFFSET = 8  # how far fixed offsets go, in tokens before and after the query
OFFSETS = tuple(range(-MAX_OFFSET, MAX_OFFSET + 1))
ENOUGH_ROWS = 3  # a sentence is no example of a measure that counts fewer of its rows
GREY = "#555555"  # of a role that names no colour
About: TypeAlias = Literal["position", "content", "spread"]
"""Subject of a role: the position of a key, its content, or the spread of the weights."""

RULED_OUT_BY: dict[About, tuple[str, ...]] = {
    "position": (CHANCE, UNTRAINED),
    "content": (CHANCE, UNTRAINED, OFFSET),
    "spread": (UNTRAINED,),
}
"""The controls whose interval a head's must lie above."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleRule:
    """A role that a measure may give."""

    name: str  # of the role, in files
    words: str  # what the head does, in plain words
    threshold: float  # from which value of the measure on
    about: About = "content"  # what it is about, which says the controls that can rule it out
    short: str = ""  # its name where it is shown, and where it is typed
    also: tuple[str, ...] = ()  # other names by which it can be asked for
    sign: str = ""  # the role in a few characters, for who sees no colours
    colour: str = GREY  # as ``#rrggbb``
    # the name by which roles of one sort are chosen and set a threshold; its own by default
    family: str = ""

    def __post_init__(self) -> None:
        usual = {
            "family": self.name,
            "short": self.name.replace("_", " "),
            "sign": self.name[:4],
        }
        for name, value in usual.items():
            if not getattr(self, name):
                object.__setattr__(self, name, value)


Takes: TypeAlias = Literal["keys", "rows", "received", "norms", "peaks", "places", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A number about a head."""

    name: str  # in tables, files and messages
    label: str  # short, for a column
    meaning: str  # in a few words
    unit: str = (
        "share"  # 0 to 1, or ``nats`` or ``tokens``; empty of a measure that another version took
    )
    # what it is computed of:
    # ``keys``: `compute` is given `Rows` and returns the keys asked for; measured is the weight on them. Two controls
    # come with it: norm-based weights, and the best fixed offset.
    # ``rows``: `compute` is given `Rows` and returns sums and counts, as `Rows.total` makes them.
    # ``received``: `compute` is given `Received`, what each key of a layer got from all rows.
    # ``norms``: as ``keys``, of norm-based weights. ``peaks``: rows whose largest weight is at `offset`.
    # ``places``: how the pattern varies between sentences. ``unknown``: of another version, read from a file.
    takes: Takes = "keys"
    compute: Callable[[Any], Any] | None = None  # the computation; None where `takes` says all
    # what a head does where the measure is large; None where that is no role
    role: RoleRule | None = None
    # of a measure at a fixed offset, how many tokens after the query; negative before it
    offset: int | None = None
    family: str = ""  # of such a measure, the name of the entry that it is made of
    enough_rows: int = ENOUGH_ROWS  # a sentence that counts fewer rows is no example
    # whether its 95 % interval is not to be trusted: fewer than 92 of 100 samples of real text held the mean in it
    # (`tests/benchmarks/coverage.py`)
    narrow: bool = False

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by name where it is an entry below, else by all its fields."""
        if replace(_entry(self.name), compute=self.compute) == self:
            return _entry, (self.name,)
        return partial(Measure, **{one.name: getattr(self, one.name) for one in fields(self)}), ()


def _entry(name: str) -> Measure:
    return named([name])[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class AtOffsets:
    """A measure that is taken at each fixed offset."""

    family: str  # its name without the offset
    at: Callable[[int], Measure]  # makes the measure at an offset


Entry: TypeAlias = Measure | AtOffsets


def _weight_at(offset: int) -> Measure:
    return Measure(
        name=f"offset_{offset:+d}",
        label=f"{offset:+d}",
        meaning=_("weight at offset {offset:+d}").format(offset=offset),
        compute=lambda rows: rows.at(offset),
        offset=offset,
        family="offset",
    )


def _peak_at(offset: int) -> Measure:
    n, way = abs(offset), "back" if offset < 0 else "ahead"
    words = _("attends {n} tokens back") if offset < 0 else _("attends {n} tokens ahead")
    role = RoleRule(
        name=f"offset_{offset:+d}",
        words=words.format(n=n),
        threshold=0.9,
        about="position",
        short=f"{n} {way}",
        also=(f"{offset:+d}",),
        sign=f"{offset:+d}",
        colour="#44aa99",
        family="offset",
    )
    return Measure(
        name=f"peak_{offset:+d}",
        label=f"top {offset:+d}",
        takes="peaks",
        offset=offset,
        family="peak",
        meaning=_("rows whose largest weight is at offset {offset:+d}").format(offset=offset),
        role=role if abs(offset) > 1 else None,
    )


MEASURES: tuple[Entry, ...] = (
    # A[i, i] (Clark et al. 2019, section 3)
    Measure(
        name="self",
        label="self",
        compute=lambda rows: rows.at(0),
        meaning=_("weight on the token itself"),
        role=RoleRule(
            name="self",
            words=_("attends to itself"),
            threshold=0.5,
            about="position",
            colour="#117733",
        ),
    ),
    # A[i, i - 1] (Clark et al. 2019, section 3.1)
    Measure(
        name="previous",
        label="prev",
        compute=lambda rows: rows.at(-1),
        meaning=_("weight on the token before"),
        role=RoleRule(
            name="previous",
            words=_("attends to the previous token"),
            also=("prev", "-1"),
            threshold=0.5,
            about="position",
            sign="-1",
            colour="#332288",
        ),
    ),
    # A[i, i + 1] (Clark et al. 2019, section 3.1)
    Measure(
        name="next",
        label="next",
        compute=lambda rows: rows.at(1),
        meaning=_("weight on the token after"),
        role=RoleRule(
            name="next",
            words=_("attends to the next token"),
            also=("+1",),
            threshold=0.5,
            about="position",
            sign="+1",
            colour="#88ccee",
        ),
    ),
    # A[i, 0], such as [CLS] (Clark et al. 2019, section 3.2)
    Measure(
        name="first",
        label="1st",
        compute=lambda rows: rows.on(rows.marks.first),
        meaning=_("weight on the first token"),
        role=RoleRule(
            name="first",
            words=_("attends to the first token"),
            also=("sink", "sink [cls]", "[cls]", "cls", "bos"),
            threshold=0.6,
            sign="1st",
            colour="#cc6677",
        ),
    ),
    # such as [SEP]: the sum of A over them (Clark et al. 2019, section 3.2)
    Measure(
        name="separator",
        label="sep",
        compute=lambda rows: rows.on(rows.marks.separator),
        meaning=_("weight on special tokens other than the first"),
        role=RoleRule(
            name="separator",
            words=_("attends to the separator"),
            also=("[sep]", "sep"),
            threshold=0.6,
            sign="sep",
            colour="#882255",
        ),
    ),
    # the sum of A over them (Clark et al. 2019, section 3.2)
    Measure(
        name="punctuation",
        label="punct",
        narrow=True,
        compute=lambda rows: rows.on(rows.marks.punctuation),
        meaning=_("weight on punctuation marks"),
        role=RoleRule(
            name="punctuation",
            words=_("attends to punctuation"),
            also=("punct",),
            threshold=0.6,
            sign=".,",
            colour="#ee8866",
        ),
    ),
    # the sum of A over them (Wang et al. 2023, duplicate token heads)
    Measure(
        name="same_word",
        label="same",
        compute=lambda rows: rows.copies(),
        meaning=_("of a token seen before: weight on its earlier copies"),
        enough_rows=1,
        narrow=True,
        role=RoleRule(
            name="same_word",
            words=_("attends back to the same word"),
            also=("duplicate",),
            threshold=0.5,
            sign="same",
            colour="#aa4499",
        ),
    ),
    # what came right after its earlier copies: the sum of A over it (Olsson et al. 2022)
    Measure(
        name="induction",
        label="induct",
        compute=lambda rows: rows.after_copies(),
        meaning=_("of a token seen before: weight on what followed its earlier copies"),
        enough_rows=1,
        narrow=True,
        role=RoleRule(
            name="induction",
            words=_("attends to what followed the same word before"),
            threshold=0.5,
            sign="ind",
            colour="#999933",
        ),
    ),
    # mean of -sum over j of A ln A (Clark et al. 2019, section 3.3)
    Measure(
        name="entropy",
        label="entropy",
        unit="nats",
        takes="rows",
        compute=lambda rows: rows.total(rows.entropy),
        meaning=_("how spread a row is"),
    ),
    Measure(
        name="entropy_share",
        label="even",
        takes="rows",
        compute=lambda rows: rows.total(rows.entropy / rows.largest_entropy),
        meaning=_("entropy as a share of the largest there can be"),
        role=RoleRule(
            name="broad",
            words=_("attends broadly, to many tokens"),
            threshold=BROAD,
            about="spread",
            sign="all",
            colour="#ddcc77",
        ),
    ),
    # `attnviz.heads.capture.rows.SimilarWords`
    Measure(
        name="meaning",
        label="sim",
        takes="rows",
        compute=lambda rows: rows.similar(),
        meaning=_("mean rank of the words it attends to by their similarity, 0.5 by chance"),
        role=RoleRule(
            name="meaning",
            words=_("attends to words of similar meaning"),
            also=("similar",),
            threshold=0.6,
            sign="sim",
            colour="#00a5b5",
        ),
    ),
    Measure(
        name="distance",
        label="dist",
        unit="tokens",
        takes="rows",
        narrow=True,
        compute=lambda rows: rows.total(rows.distance) if rows.marks.square else rows.nothing(),
        meaning=_("mean distance of the keys"),
    ),
    Measure(
        name="spread",
        label="± tokens",
        unit="tokens",
        takes="rows",
        narrow=True,
        compute=lambda rows: rows.total(rows.spread) if rows.marks.square else rows.nothing(),
        meaning=_("standard deviation of that distance within a row"),
    ),
    # mean of max A (Voita et al. 2019, section 4)
    Measure(
        name="confidence",
        label="max",
        takes="rows",
        compute=lambda rows: rows.confidence(),
        meaning=_("largest weight of a row, the end of the sentence left out"),
    ),
    # Gu et al. 2025, "attention sink"
    Measure(
        name="sink",
        label="sink",
        takes="received",
        compute=lambda received: received.largest(),
        meaning=_("largest mean weight that a single key draws from the rows that see it"),
    ),
    AtOffsets(family="offset", at=_weight_at),  # A[i, i + o]
    # Voita et al. 2019, section 5.1, positional heads: there 0.9 of the rows
    AtOffsets(family="peak", at=_peak_at),
    # after Vig and Belinkov 2019: `attnviz.heads.survey.variability`
    Measure(
        name="variability",
        label="varies",
        takes="places",
        meaning=_("how far the pattern depends on the words"),
    ),
)
"""All that is measured of a head, where nothing else is set."""


def measures_of(entries: Iterable[Entry] = MEASURES) -> tuple[Measure, ...]:
    """All that the entries measure of a head, in the order in which it is kept: shares come first."""
    entries = tuple(entries)
    single = [one for one in entries if isinstance(one, Measure)]
    shares = [one for one in single if one.takes == "keys"]
    return (
        *shares,
        *(one for one in single if one.takes in {"rows", "received"}),
        *(_norm_measure(one) for one in shares),
        *(one.at(offset) for one in entries if isinstance(one, AtOffsets) for offset in OFFSETS),
        *(one for one in single if one.takes == "places"),
    )


def _norm_measure(share: Measure) -> Measure:
    return replace(
        share,
        name=f"norm_{share.name}",
        label=f"|{share.label}|",
        meaning=_("norm-based {measure}").format(measure=share.meaning),
        takes="norms",
        role=None,
    )


def of_rows(measures: Iterable[Measure]) -> tuple[Measure, ...]:
    """Return the measures that single rows give; how a pattern varies is seen on many sentences only."""
    return tuple(one for one in measures if one.takes != "places")


def named(names: Sequence[str], entries: Iterable[Entry] = MEASURES) -> tuple[Measure, ...]:
    """The measures of these names, as files have them; of a name that no entry has, one that says no more than that."""
    known = {one.name: one for one in measures_of(entries)}
    return tuple(
        known.get(name) or Measure(name=name, label=name, unit="", meaning="", takes="unknown")
        for name in names
    )


def rules_of(measures: Iterable[Measure]) -> tuple[tuple[Measure, RoleRule], ...]:
    """The roles that measures may give, each with the measure that it is judged by."""
    return tuple((one, one.role) for one in measures if one.role is not None)
