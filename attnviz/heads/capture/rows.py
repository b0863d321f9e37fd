"""Rows of attention as measures take them: all that torch computes for `attnviz.heads.measures`.

Of each sentence a measure gives a sum over its rows and how many rows were counted, so that one sentence, a batch, a
corpus and the parts of a corpus all go through the same definition, and sums merge. A is the head's pattern: row i is
the query, column j the key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

_TINY = 1e-30
_COLLINEAR = 1e-12  # what a regressor has left that others explain whole
FEWEST_WORDS = 6
"""A row that sees fewer words tells nothing of which of them is like its own, position and frequency apart."""
SEEN_BY = 0.5  # a key is a sink candidate where at least this share of the rows sees it


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """Properties of the tokens of a batch."""

    queries: Bool[Tensor, "batch query"]  # tokens that attend: no padding
    keys: Bool[Tensor, "batch key"]  # tokens that are attended to: no padding
    first: Bool[Tensor, "batch key"]  # where the key is the sentence's first token
    separator: Bool[Tensor, "batch key"]  # where the key is a special token that is not the first
    punctuation: Bool[Tensor, "batch key"]  # where the key is a punctuation mark
    end: Bool[Tensor, "batch key"]  # where the key is a special token that ends its sentence
    # the number of each token in the vocabulary; all special tokens and padding are -1
    ids: Int[Tensor, "batch key"]
    square: bool  # whether queries and keys are the same tokens. If not, no offset and no repetition is measured
    # of words; None where the model has no vectors, or queries are other tokens
    similar: SimilarWords | None = None


class SimilarWords:
    """Similarity of the words that a row sees to its own, by the model's input embeddings, beyond chance.

    For row i, over the words j that it sees (no special token, no punctuation mark, not its own token again), the
    cosine of both vectors is predicted by least squares from ln |i - j|, from the side on which j stands and from
    ln (1 + the token's number): vocabularies are sorted by frequency, which falls as one over the rank (Zipf 1949).
    What is left is ranked: (rank - 1/2) / n, from 0 for the least similar word to 1.
    """

    def __init__(
        self,
        vectors: Float[Tensor, "batch key d"],
        ids: Int[Tensor, "batch key"],
        words: Bool[Tensor, "batch key"],
    ) -> None:
        unit = torch.nn.functional.normalize(vectors.double(), dim=-1)
        self._cosine = unit @ unit.transpose(1, 2)  # (B, K, K)
        self._rarity = ids.clamp_min(0).add(1).double().log()
        self._between = words[:, :, None] & words[:, None] & (ids[:, :, None] != ids[:, None])
        self._known: tuple[int, Tensor, tuple[Tensor, Tensor]] | None = None

    def ranks(
        self, rows: Rows
    ) -> tuple[Float[Tensor, "batch rows key"], Bool[Tensor, "batch rows key"]]:
        """Each word's rank, and which words these are; none in rows that see fewer than `FEWEST_WORDS`."""
        if (
            self._known
            and self._known[0] == rows.first_row
            and torch.equal(self._known[1], rows.seen)
        ):
            return self._known[2]
        here = slice(rows.first_row, rows.first_row + rows.weights.shape[2])
        words = rows.seen & self._between[:, here]
        n = words.sum(dim=-1, keepdim=True)
        words = words & (n >= FEWEST_WORDS)
        # Each regressor less its mean, then less what the ones before explain: what is left of the cosine is ranked.
        far = rows.offsets.abs().clamp_min(1).double().log().expand_as(words)
        side = rows.offsets.sign().double().expand_as(words)
        rarity = self._rarity[:, None].expand_as(words)
        left = [torch.where(words, one, 0.0) for one in (far, side, rarity, self._cosine[:, here])]
        left = [
            torch.where(words, one - one.sum(dim=-1, keepdim=True) / n.clamp_min(1), 0.0)
            for one in left
        ]
        for first, one in enumerate(left):
            size = (one * one).sum(dim=-1, keepdim=True).clamp_min(_COLLINEAR)
            for after in range(first + 1, len(left)):
                left[after] = (
                    left[after] - (left[after] * one).sum(dim=-1, keepdim=True) / size * one
                )
        order = left[-1].masked_fill(~words, torch.inf).argsort(dim=-1, stable=True).argsort(dim=-1)
        ranks = torch.where(words, (order + 0.5) / n.clamp_min(1), 0.0).to(rows.weights)
        self._known = rows.first_row, rows.seen, (ranks, words)
        return ranks, words


Target: TypeAlias = Bool[Tensor, "#batch #rows key"] | Bool[Tensor, "rows key"]
"""Which keys a share asks for, whether a row sees them or not."""
Sums: TypeAlias = tuple[Float[Tensor, "batch head"], Float[Tensor, " batch"]]
"""Of each sentence: the sum over its rows for each head, and how many rows were counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Largest:
    """The largest weight of each row."""

    weight: Float[Tensor, "batch head rows"]  # the largest, the end of the sentence left out
    key: Int[Tensor, "batch head rows"]  # where the largest of all is; of several, the first
    # whether there is any: a row that is not counted has no weight
    found: Bool[Tensor, "batch head rows"]


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Some rows of one layer, with all that measures need; what several of them share is worked out once."""

    weights: Float[Tensor, "batch head rows key"]  # A; 0 where `seen` is False
    # which keys each row sees; none of those of a row that is not counted
    seen: Bool[Tensor, "batch rows key"]
    first_row: int  # the number of the first row held
    marks: Marks  # of the whole batch

    @cached_property
    def offsets(self) -> Int[Tensor, "rows key"]:
        """The difference j - i: negative where the key is before the query."""
        n_rows, n_keys = self.weights.shape[2:]
        device = self.weights.device
        rows = torch.arange(self.first_row, self.first_row + n_rows, device=device)
        return torch.arange(n_keys, device=device) - rows[:, None]

    @cached_property
    def counted(self) -> Bool[Tensor, "batch rows"]:
        """The rows that are counted."""
        return self.seen.any(dim=-1)

    @cached_property
    def n_counted(self) -> Float[Tensor, " batch"]:
        """The number of rows that are counted."""
        return _number(self.counted)

    def at(self, offset: int) -> Target:
        """Where the key is so far after the query; nowhere in cross attention."""
        return (
            self.offsets == offset
            if self.marks.square
            else torch.zeros_like(self.offsets, dtype=torch.bool)
        )

    def on(self, keys: Bool[Tensor, "batch key"]) -> Target:
        """Where the key is one of these, for every row."""
        return keys[:, None]

    def copies(self) -> Target:
        """Where the key is an earlier copy of the query's token; nowhere in cross attention."""
        return self._repeats(self.marks.ids)

    def after_copies(self) -> Target:
        """Where the key came right after an earlier copy of the query's token; nowhere in cross attention."""
        return self._repeats(torch.nn.functional.pad(self.marks.ids[:, :-1], (1, 0), value=-1))

    def _repeats(self, ids: Int[Tensor, "batch key"]) -> Target:
        if not self.marks.square:
            return torch.zeros_like(self.seen)
        mine = self.marks.ids[:, self.first_row : self.first_row + self.weights.shape[2], None]
        return (ids[:, None] == mine) & (mine >= 0) & (self.offsets < 0)

    @cached_property
    def entropy(self) -> Float[Tensor, "batch head rows"]:
        """-sum over j of A ln A, in nats."""
        # A + 1e-30, so that a logarithm of 0 exists; `torch.special.entr` knows of 0, and takes three times as long.
        each = (self.weights + _TINY).log_().mul_(self.weights)
        return -each.sum(dim=-1).double()  # sums over rows in double precision

    @cached_property
    def largest_entropy(self) -> Float[Tensor, "batch 1 rows"]:
        """The largest that there can be, in nats: the logarithm of the number of keys that the row sees."""
        # a row that is not counted has no weight at all
        return self.seen.sum(dim=-1).clamp_min(2).log()[:, None]

    @cached_property
    def distance(self) -> Float[Tensor, "batch head rows"]:
        """Sum over j of A |i - j|, in tokens."""
        return (self.weights * self._far).sum(dim=-1)

    @cached_property
    def spread(self) -> Float[Tensor, "batch head rows"]:
        """The standard deviation of |i - j| under A, in tokens."""
        return (
            (self._far - self.distance[..., None]).square_().mul_(self.weights).sum(dim=-1).sqrt()
        )

    @cached_property
    def _far(self) -> Float[Tensor, "rows key"]:
        return self.offsets.abs().to(self.weights)

    @cached_property
    def top(self) -> Largest:
        """The largest weight of each row, with the end of the sentence and without."""
        end = self.marks.end
        # (B, H, rows); of equal ones the first
        weight, key = (self.weights * ~end[:, None, None]).max(dim=-1)
        on_end = torch.matmul(self.weights, end.to(self.weights)[:, None, :, None])[..., 0]
        is_end = on_end > weight  # the end comes after all other keys
        last = end.to(key).argmax(dim=-1)[:, None, None]
        return Largest(
            weight=weight,
            key=torch.where(is_end, last, key),
            found=torch.maximum(weight, on_end) > 0,
        )

    def total(self, values: Float[Tensor, "batch head rows"]) -> Sums:
        """A value of each row, 0 in rows that are not counted, summed."""
        return values.double().sum(dim=-1), self.n_counted

    def confidence(self) -> Sums:
        """The largest weight of each row, the end of the sentence left out, as a query and as a key."""
        counted = self.counted
        if self.marks.square:
            counted = (
                counted
                & ~self.marks.end[:, self.first_row : self.first_row + self.weights.shape[2]]
            )
        return (self.top.weight * counted[:, None]).sum(dim=-1), _number(counted)

    def similar(self) -> Sums:
        """The mean rank of the words that a row looks at, by how like its own word they are: see `SimilarWords`."""
        if self.marks.similar is None:
            return self.nothing()
        ranks, words = self.marks.similar.ranks(self)
        on_words = (self.weights * words[:, None]).sum(dim=-1)
        mean = (self.weights * ranks[:, None]).sum(dim=-1) / on_words.clamp_min(
            torch.finfo(on_words.dtype).tiny
        )
        counted = words.any(dim=-1)
        even = torch.where(on_words > 0, mean, 0.5)  # no weight on any word is no preference
        return (even * counted[:, None]).double().sum(dim=-1), _number(counted)

    def nothing(self) -> Sums:
        """Return sums and counts of zero: the measure does not apply."""
        n_batch, n_heads = self.weights.shape[:2]
        return self.weights.new_zeros(n_batch, n_heads), self.weights.new_zeros(n_batch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """The weight that each key of a batch's sentences received in one layer."""

    weights: Float[Tensor, "batch head key"]  # summed over rows
    seen_by: Float[Tensor, "batch key"]  # how many rows saw the key
    n_rows: Float[Tensor, " batch"]  # how many rows were counted

    def largest(self) -> Sums:
        """The largest mean weight that a key draws from rows that see it; of keys that half of the rows see or more."""
        fair = (self.seen_by >= SEEN_BY * self.n_rows[:, None]) & (self.seen_by > 0)
        mean = self.weights / self.seen_by.clamp_min(1)[:, None]
        return (mean * fair[:, None]).amax(dim=-1), (self.n_rows > 0).to(self.weights.dtype)


def rows_of(
    weights: Float[Tensor, "batch head rows key"],
    visible: Bool[Tensor, "#batch #rows key"],
    first_row: int,
    marks: Marks,
) -> Rows:
    """A block of rows as the measures take it."""
    n_rows = weights.shape[2]
    queries = marks.queries[:, first_row : first_row + n_rows]
    seen = visible & marks.keys[:, None] & queries[:, :, None]
    seen = seen & (seen.sum(dim=-1, keepdim=True) > 1)
    return Rows(weights=weights * seen[:, None], seen=seen, first_row=first_row, marks=marks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """Where the keys of each share are, for some rows."""

    # 1 where a row sees such a key, or 0; those of all rows in a row
    cells: Float[Tensor, "batch cells share"]
    counts: Float[Tensor, "batch share"]  # how many rows see one


def targets_of(rows: Rows, computations: Sequence[Callable[[Rows], Target]]) -> Targets:
    """Where the keys are that each share asks for: the same for all layers whose rows see the same keys."""
    there = [rows.seen & keys_of(rows) for keys_of in computations]
    cells = torch.stack([one.flatten(1) for one in there], dim=-1)
    counts = torch.stack([_number(one.any(dim=-1)) for one in there], dim=-1)
    return Targets(cells=cells.to(rows.weights), counts=counts)


def shares(rows: Rows, targets: Targets) -> Float[Tensor, "batch head share"]:
    """The weight on the keys of each share, summed over rows."""
    return rows.weights.flatten(2) @ targets.cells  # (B, H, cells) (B, cells, share)


def peaks(rows: Rows, offsets: Sequence[int]) -> Float[Tensor, "batch head offset"]:
    """Return how many rows have their largest weight at each of these offsets (Voita et al. 2019, section 5.1)."""
    n_batch, n_heads, n_rows, _ = rows.weights.shape
    top = rows.top
    places = torch.arange(rows.first_row, rows.first_row + n_rows, device=top.key.device)
    offset = top.key - places - offsets[0]
    counted = top.found & (offset >= 0) & (offset < len(offsets)) & rows.marks.square
    # the last place is for all that is elsewhere
    hits = rows.weights.new_zeros(n_batch, n_heads, len(offsets) + 1)
    hits.scatter_add_(2, torch.where(counted, offset, len(offsets)), counted.to(hits))
    return hits[..., :-1]


def fixed_offsets(rows: Rows, offsets: Sequence[int]) -> Rows:
    """Heads made up: each looks at one offset with all its weight, where a row sees that, and nowhere else."""
    there = torch.stack([rows.at(offset) for offset in offsets])  # (offset, rows, K)
    return replace(rows, weights=(there & rows.seen[:, None]).to(rows.weights))


def permute_keys(rows: Rows, order: Int[Tensor, "batch key"]) -> Rows:
    """Permute the keys of each row: the pattern that chance gives."""
    keys = order[:, None, None].expand(-1, *rows.weights.shape[1:])
    seen = order[:, None].expand(-1, rows.seen.shape[1], -1)
    return replace(
        rows,
        weights=rows.weights.gather(3, keys.expand_as(rows.weights)),
        seen=rows.seen.gather(2, seen),
    )


def norm_weights(rows: Rows, lengths: Float[Tensor, "batch head key"]) -> Rows:
    """Return rows of norm-based weights: A times the norm of the transformed value, normalised to sum to 1.

    Lengths: ||(x_j W_V + b_V) W_O||. Source: Kobayashi et al. 2020, "Attention is Not Only a Weight", equation 4.
    """
    total = torch.matmul(rows.weights, lengths[..., None]).clamp_min(
        torch.finfo(lengths.dtype).tiny
    )
    return replace(rows, weights=(rows.weights * lengths[:, :, None]).div_(total))


def _number(counted: Bool[Tensor, "batch rows"]) -> Float[Tensor, " batch"]:
    return counted.sum(dim=-1).to(torch.get_default_dtype())
