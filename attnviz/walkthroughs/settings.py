"""The part of a model that a walkthrough follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Score = Literal["dot", "scaled", "general", "additive"]  # how a query and a key make a score
Kind = Literal["encoder", "decoder", "cross"]  # as in the record, which help must not load
Example = Literal["seq2seq", "seq2seq-word", "self-attention"]  # calculations by hand


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkthroughSelection:
    """The part of the model that is followed, and how its scores are made."""

    layer: int = 0  # negative from the end
    head: int = 0  # likewise
    query: str | None = None  # a word or its number; None: the first, of a decoder the last
    all_queries: bool = False
    whole_layer: bool = False  # all heads, then the rest of the layer
    kind: Kind | None = None
    score: Score = "scaled"
    causal: bool = False  # whether the words after each word are hidden

    @property
    def walks_all(self) -> bool:
        """True if all queries are followed at once."""
        return self.all_queries or (self.whole_layer and self.query is None)
