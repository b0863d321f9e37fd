"""What a walkthrough follows: the sentence that a model reads, and the part of the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Score = Literal["dot", "scaled", "general", "additive"]  # how a query and a key make a score
Kind = Literal["encoder", "decoder", "cross"]  # as in the record, which help must not load
Example = Literal["seq2seq", "seq2seq-word", "self-attention"]  # calculations by hand


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkthroughText:
    """The sentence, and what goes with it."""

    text: str
    pair: str | None = None  # the second sentence, for models that read two
    target: str | None = None  # what a model that translates is made to generate
    truncate: bool = False  # whether a text that is too long is cut


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
    def place(self) -> tuple[int, int]:
        """The numbers of the layer and the head."""
        return self.layer, self.head

    @property
    def walks_all(self) -> bool:
        """Whether all queries are followed at once."""
        return self.all_queries or (self.whole_layer and self.query is None)
