"""The record of `attnviz.attribute`: changes of an output without the attention to each token."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float64

from attnviz.attention import Kind, Note, Receipt, Token
from attnviz.attributions.verdicts import USED, Comparison, Name
from attnviz.result import Result

# What a change is: the distance of a vector as a share of its length, or the divergence of probabilities in nats.
Unit = Literal["share", "nats"]
# The vector of a word or of a sentence, or the prediction of the next word, of a hidden one, or of a class.
OutputKind = Literal["word", "sentence", "next", "hidden", "class"]
COLUMNS = ("weight", "carried", "here", "everywhere", "hidden")


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The output that is watched while attention is taken out."""

    kind: OutputKind
    text: str  # the word, or the word or class that is predicted; empty for a sentence
    rows: tuple[int, ...]  # the tokens whose vectors, or whose prediction, it is
    probability: float | None = None  # of what is predicted, with all attention

    @property
    def unit(self) -> Unit:
        """The unit of changes."""
        return "share" if self.probability is None else "nats"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether the output depends on what is carried from a token."""

    name: Name
    here: Comparison | None = None  # the cut out of the rows of the output beside its controls
    everywhere: Comparison | None = None  # the cut out of all rows, if it was compared
    head: tuple[int, int] | None = None  # the layer and head whose cut alone changes most
    of_head: Comparison | None = None  # that cut beside its controls
    alone: float = math.nan  # what that cut changes

    @property
    def counted(self) -> Comparison | None:
        """The cut that makes the output depend on the token, beside its controls; None if none does."""
        return next((cut for cut in (self.here, self.everywhere) if cut and cut.counts), None)

    @property
    def is_strong(self) -> bool:
        """Whether that cut lies far above its controls."""
        return self.counted is not None and self.counted.is_strong


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attribution(Result):
    """Changes of one output of a model, each without the attention to one token.

    Changes are 0 if nothing changes. Numbers that are not known are NaN: `carried` without an output projection,
    `hidden` without word vectors, `here` for a whole sentence, in which it is the same as `everywhere`.
    """

    ENDINGS: ClassVar[tuple[str, ...]] = (".png", ".svg", ".pdf", ".html", ".json", ".csv")

    model: str
    text: str
    kind: Kind  # the kind of attention that is cut
    output: Output
    tokens: tuple[Token, ...]  # the keys
    head: (
        tuple[int, int] | None
    )  # the head whose weights and lengths are shown; None for the mean of all
    weight: Float64[np.ndarray, " token"]  # how much attention goes there
    carried: Float64[
        np.ndarray, " token"
    ]  # the length of what is written from there, as a share of all
    here: Float64[np.ndarray, " token"]  # the change without it in the rows of the output
    everywhere: Float64[np.ndarray, " token"]  # the change without it in all rows but its own
    hidden: Float64[np.ndarray, " token"]  # the change with a mask in its place
    # The probability of the predicted word in each of the last three; None for vectors.
    after: Float64[np.ndarray, "3 token"] | None
    verdicts: tuple[Verdict | None, ...]  # None where none was asked
    chosen: int  # the token whose heads are cut one by one
    layers: tuple[int, ...]  # the numbers of the layers that have attention
    heads: Float64[np.ndarray, "layer head"]  # the change without each head's edge to it alone
    # The change without the heads of largest effect together: the first, the first two, and so on.
    together: Float64[np.ndarray, " n"]
    without_head: Float64[np.ndarray, "layer head"] | None  # the change without each head at all
    receipt: Receipt
    notes: tuple[Note, ...] = ()

    def __repr__(self) -> str:
        used = sum(verdict is not None and verdict.name in USED for verdict in self.verdicts)
        what = self.output.text or self.output.kind
        return (
            f"<Attribution of {what!r} by {self.model!r}: {len(self.tokens)} tokens, {used} used>"
        )

    @property
    def order(self) -> list[tuple[int, int]]:
        """The layer and head of the heads in the order of their effect, the largest first."""
        return [(layer, head) for layer, head, _change in self.ranked(self.heads)]

    def ranked(self, changes: Float64[np.ndarray, "layer head"]) -> list[tuple[int, int, float]]:
        """Return layer, head and change of all heads, the largest change first."""
        places = np.argsort(-changes, axis=None, kind="stable")
        found = [divmod(int(place), changes.shape[1]) for place in places]
        return [(self.layers[row], head, float(changes[row, head])) for row, head in found]

    @property
    def change(self) -> Float64[np.ndarray, " token"]:
        """The cut by which tokens are ordered: out of the rows of the output, or of all rows for a sentence."""
        return self.everywhere if np.isnan(self.here).all() else self.here

    def to_frame(self) -> Any:
        """Return a pandas data frame with one row per token: the five columns, the controls and the verdict."""
        import pandas as pd

        from attnviz.attributions.files import HEADING, rows

        return pd.DataFrame(list(rows(self)), columns=list(HEADING))
