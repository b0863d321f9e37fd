"""Rows of attention as input of measures: everything that torch computes for `attnviz.heads.measures`.

For each sentence, a measure gives a sum over rows and the number of rows counted. One sentence, a batch, a corpus and
parts of a corpus therefore share one definition, and sums can be merged. A is the head's pattern: row i is the query,
column j the key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

_TINY = 1e-30  # is added to a weight before its logarithm is taken
# The smallest sum of squares of a regressor. A regressor that the others explain completely is left with about 0, and
# dividing by 0 would give NaN.
_COLLINEAR = 1e-12
FEWEST_WORDS = 6
"""Smallest number of words in a row: with fewer words, similarity cannot be separated from position and frequency."""
SEEN_BY = 0.5  # a key can be a sink only if at least this share of the rows sees it


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """Properties of the tokens of a batch."""

    queries: Bool[Tensor, "batch query"]  # True for tokens that attend, False for padding
    keys: Bool[Tensor, "batch key"]  # True for tokens that are attended to, False for padding
    first: Bool[Tensor, "batch key"]  # whether the key is the first token of the sentence
    separator: Bool[Tensor, "batch key"]  # whether it is a special token other than the first
    punctuation: Bool[Tensor, "batch key"]  # whether it is a punctuation mark
    end: Bool[Tensor, "batch key"]  # whether it is a special token at the end
    # the id of each token in the vocabulary; -1 for special tokens and padding
    ids: Int[Tensor, "batch key"]
    # whether queries and keys are the same tokens; if not, offsets and repetitions are not measured
    square: bool
    # the similarity of words; None if the model has no word vectors, or if queries and keys are different tokens
    similar: SimilarWords | None = None


class WordRanks(NamedTuple):
    """The words that each row sees, ranked by their similarity to the word of the row."""

    ranks: Float[Tensor, "batch rows key"]  # from 0 for the least similar word to 1; 0 if no word
    words: Bool[Tensor, "batch rows key"]  # which keys are ranked words


class SimilarWords:
    """Similarity between the word of a row and the words that it sees, corrected for position and frequency.

    The similarity of two words is the cosine of their input embeddings. For row i, over the words j that it sees
    (without special tokens, punctuation marks and copies of its own token), the cosine is predicted by least squares
    from ln |i - j|, from the side of j, and from ln (1 + token id): vocabularies are sorted by frequency, which falls
    as one over the rank (Zipf 1949). The residual is ranked: (rank - 1/2) / n, from 0 for the least similar word to 1.
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
        # The first row and the mask of the last call, with its result: the next layer often has the same.
        self._last: tuple[int, Tensor, WordRanks] | None = None

    def ranks(self, rows: Rows) -> WordRanks:
        """Rank the words that each row sees; rows with fewer than `FEWEST_WORDS` words have none."""
        if self._last is not None:
            first_row, seen, last_ranks = self._last
            if first_row == rows.first_row and torch.equal(seen, rows.seen):
                return last_ranks
        row_range = slice(rows.first_row, rows.first_row + rows.weights.shape[2])
        words = rows.seen & self._between[:, row_range]
        n_words = words.sum(dim=-1, keepdim=True)
        words = words & (n_words >= FEWEST_WORDS)
        log_distance = rows.offsets.abs().clamp_min(1).double().log()
        side = rows.offsets.sign().double()
        rarity = self._rarity[:, None]
        cosine = self._cosine[:, row_range]
        residual = _residual((log_distance, side, rarity), cosine, words)
        # The second argsort turns the order of the keys into the place of each key in this order.
        places = (
            residual.masked_fill(~words, torch.inf).argsort(dim=-1, stable=True).argsort(dim=-1)
        )
        ranks = torch.where(words, (places + 0.5) / n_words.clamp_min(1), 0.0).to(rows.weights)
        self._last = rows.first_row, rows.seen, WordRanks(ranks, words)
        return self._last[2]


def _residual(
    regressors: Sequence[Tensor], values: Tensor, words: Bool[Tensor, "batch rows key"]
) -> Float[Tensor, "batch rows key"]:
    """Return the part of the values that no linear function of the regressors explains, for each row; 0 if no word.

    It is the residual of a least-squares fit with a constant, by Gram-Schmidt: each regressor is made orthogonal to
    those before it. The values come last.
    """
    n_words = words.sum(dim=-1, keepdim=True).clamp_min(1)
    columns = []
    for column in (*regressors, values):
        column = torch.where(words, column.expand_as(words), 0.0)
        mean = column.sum(dim=-1, keepdim=True) / n_words
        columns.append(torch.where(words, column - mean, 0.0))
    for number, column in enumerate(columns):
        norm = (column * column).sum(dim=-1, keepdim=True).clamp_min(_COLLINEAR)
        for later in range(number + 1, len(columns)):
            explained = (columns[later] * column).sum(dim=-1, keepdim=True) / norm * column
            columns[later] = columns[later] - explained
    return columns[-1]


KeyMask: TypeAlias = Bool[Tensor, "#batch #rows key"] | Bool[Tensor, "rows key"]
"""Which keys belong to a share (a measure of the weight on some keys), whether or not a row sees them."""
Sums: TypeAlias = tuple[Float[Tensor, "batch head"], Float[Tensor, " batch"]]
"""For each sentence, the sum over its rows for each head, and the number of rows counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Largest:
    """The largest weight of each row."""

    weight: Float[Tensor, "batch head rows"]  # the largest weight, without the end of the sentence
    # the key of the largest weight of all; the first if several are equal
    key: Int[Tensor, "batch head rows"]
    # whether the row has any weight: a row that is not counted has none
    has_weight: Bool[Tensor, "batch head rows"]


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Some rows of one layer and the values that measures need; cached properties are shared by several measures."""

    weights: Float[Tensor, "batch head rows key"]  # A; 0 if `seen` is False
    # whether a row sees a key; always False for a row that is not counted
    seen: Bool[Tensor, "batch rows key"]
    first_row: int  # the index of the first row
    marks: Marks  # the properties of all tokens of the batch

    @cached_property
    def offsets(self) -> Int[Tensor, "rows key"]:
        """The difference j - i, which is negative if the key is before the query."""
        n_rows, n_keys = self.weights.shape[2:]
        device = self.weights.device
        rows = torch.arange(self.first_row, self.first_row + n_rows, device=device)
        return torch.arange(n_keys, device=device) - rows[:, None]

    @property
    def _row_range(self) -> slice:
        """The indices of these rows among all tokens of a sentence."""
        return slice(self.first_row, self.first_row + self.weights.shape[2])

    @cached_property
    def counted(self) -> Bool[Tensor, "batch rows"]:
        """Whether each row is counted."""
        return self.seen.any(dim=-1)

    @cached_property
    def n_counted(self) -> Float[Tensor, " batch"]:
        """The number of rows that are counted."""
        return _count_rows(self.counted)

    def at(self, offset: int) -> KeyMask:
        """Return the keys at an offset from the query; no key in cross attention."""
        if self.marks.square:
            return self.offsets == offset
        return torch.zeros_like(self.offsets, dtype=torch.bool)

    def on(self, keys: Bool[Tensor, "batch key"]) -> KeyMask:
        """Return the same keys for every row."""
        return keys[:, None]

    def copies(self) -> KeyMask:
        """Return the earlier copies of the query's token; no key in cross attention."""
        return self._repeats(self.marks.ids)

    def after_copies(self) -> KeyMask:
        """Return the keys right after an earlier copy of the query's token; no key in cross attention."""
        return self._repeats(torch.nn.functional.pad(self.marks.ids[:, :-1], (1, 0), value=-1))

    def _repeats(self, ids: Int[Tensor, "batch key"]) -> KeyMask:
        """Return the keys before the query that have its token id in `ids`."""
        if not self.marks.square:
            return torch.zeros_like(self.seen)
        query_ids = self.marks.ids[:, self._row_range, None]
        return (ids[:, None] == query_ids) & (query_ids >= 0) & (self.offsets < 0)

    @cached_property
    def entropy(self) -> Float[Tensor, "batch head rows"]:
        """The entropy of each row, -sum over j of A ln A, in nats."""
        # A + 1e-30 avoids the logarithm of 0; `torch.special.entr` handles 0 too, but takes three times as long.
        terms = (self.weights + _TINY).log_().mul_(self.weights)
        return -terms.sum(dim=-1).double()  # double precision, because it is summed over many rows

    @cached_property
    def largest_entropy(self) -> Float[Tensor, "batch 1 rows"]:
        """The largest possible entropy, in nats: the logarithm of the number of keys that the row sees."""
        # At least 2 keys, so that rows that are not counted do not divide by ln 1 = 0; their entropy is 0 anyway.
        return self.seen.sum(dim=-1).clamp_min(2).log()[:, None]

    @property
    def distance(self) -> Float[Tensor, "batch head rows"]:
        """The mean distance of the keys, the sum over j of A |i - j|, in tokens."""
        return (self.weights * self.offsets.abs().to(self.weights)).sum(dim=-1)

    @cached_property
    def top(self) -> Largest:
        """The largest weight of each row, with and without the end of the sentence."""
        end = self.marks.end
        # `max` takes the first of equal weights: (B, H, rows) each
        weight, key = (self.weights * ~end[:, None, None]).max(dim=-1)
        on_end = torch.matmul(self.weights, end.to(self.weights)[:, None, :, None])[..., 0]
        end_key = end.to(key).argmax(dim=-1)[:, None, None]
        # The end is the last key, so at equal weights the other key comes first.
        return Largest(
            weight=weight,
            key=torch.where(on_end > weight, end_key, key),
            has_weight=torch.maximum(weight, on_end) > 0,
        )

    def total(self, values: Float[Tensor, "batch head rows"]) -> Sums:
        """Return the sum of a value over rows; it must be 0 in rows that are not counted."""
        return values.double().sum(dim=-1), self.n_counted

    def confidence(self) -> Sums:
        """Return the sum of the largest weight of each row, without the end of the sentence as query or key."""
        counted = self.counted
        if self.marks.square:
            counted = counted & ~self.marks.end[:, self._row_range]
        return (self.top.weight * counted[:, None]).sum(dim=-1), _count_rows(counted)

    def similar(self) -> Sums:
        """Return the mean rank of the words that a row attends to, by their similarity: see `SimilarWords`."""
        if self.marks.similar is None:
            return self.nothing()
        ranks, words = self.marks.similar.ranks(self)
        on_words = (self.weights * words[:, None]).sum(dim=-1)
        smallest = torch.finfo(on_words.dtype).tiny  # avoids a division by 0
        mean = (self.weights * ranks[:, None]).sum(dim=-1) / on_words.clamp_min(smallest)
        counted = words.any(dim=-1)
        # A row with no weight on words has no preference, hence the middle rank.
        rank = torch.where(on_words > 0, mean, 0.5)
        return (rank * counted[:, None]).double().sum(dim=-1), _count_rows(counted)

    def nothing(self) -> Sums:
        """Return sums and counts of zero: the measure does not apply."""
        n_batch, n_heads = self.weights.shape[:2]
        return self.weights.new_zeros(n_batch, n_heads), self.weights.new_zeros(n_batch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """The weight that each key received in one layer, from all rows of its sentence together."""

    weights: Float[Tensor, "batch head key"]  # summed over rows
    seen_by: Float[Tensor, "batch key"]  # number of rows that see the key
    n_rows: Float[Tensor, " batch"]  # number of rows counted

    def largest(self) -> Sums:
        """Return the largest mean weight of a key over the rows that see it, among keys that half of the rows see."""
        is_candidate = (self.seen_by >= SEEN_BY * self.n_rows[:, None]) & (self.seen_by > 0)
        mean = self.weights / self.seen_by.clamp_min(1)[:, None]
        return (mean * is_candidate[:, None]).amax(dim=-1), (self.n_rows > 0).to(self.weights.dtype)


def rows_of(
    weights: Float[Tensor, "batch head rows key"],
    visible: Bool[Tensor, "#batch #rows key"],
    first_row: int,
    marks: Marks,
) -> Rows:
    """Return a block of rows with a mask of the counted rows and visible keys."""
    n_rows = weights.shape[2]
    queries = marks.queries[:, first_row : first_row + n_rows]
    seen = visible & marks.keys[:, None] & queries[:, :, None]
    seen = seen & (seen.sum(dim=-1, keepdim=True) > 1)
    return Rows(weights=weights * seen[:, None], seen=seen, first_row=first_row, marks=marks)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareKeys:
    """The keys of each share (a measure of the weight on some keys), for some rows."""

    # For each pair of a row and a key, flattened: 1 if the row sees the key and the key belongs to the share, else 0.
    masks: Float[Tensor, "batch rows_keys share"]
    counts: Float[Tensor, "batch share"]  # number of rows that see such a key


def keys_of_shares(rows: Rows, computations: Sequence[Callable[[Rows], KeyMask]]) -> ShareKeys:
    """Return the keys of each share; they are the same for all layers whose rows see the same keys."""
    masks = [rows.seen & compute_mask(rows) for compute_mask in computations]
    flat_masks = torch.stack([mask.flatten(1) for mask in masks], dim=-1)
    counts = torch.stack([_count_rows(mask.any(dim=-1)) for mask in masks], dim=-1)
    return ShareKeys(masks=flat_masks.to(rows.weights), counts=counts)


def weight_on(keys: ShareKeys, rows: Rows) -> Float[Tensor, "batch head share"]:
    """Return the weight on the keys of each share, summed over rows."""
    return rows.weights.flatten(2) @ keys.masks  # (B, H, rows * K) x (B, rows * K, share)


def peak_counts(rows: Rows, offsets: Sequence[int]) -> Float[Tensor, "batch head offset"]:
    """Return how many rows have their largest weight at each of these offsets (Voita et al. 2019, section 5.1).

    The offsets are consecutive numbers. In cross attention no row is counted.
    """
    n_batch, n_heads, n_rows, _ = rows.weights.shape
    top = rows.top
    queries = torch.arange(rows.first_row, rows.first_row + n_rows, device=top.key.device)
    column = top.key - queries - offsets[0]
    counted = top.has_weight & (column >= 0) & (column < len(offsets)) & rows.marks.square
    # Rows that are not counted add 0 to an additional last column, which is then dropped.
    hits = rows.weights.new_zeros(n_batch, n_heads, len(offsets) + 1)
    hits.scatter_add_(2, torch.where(counted, column, len(offsets)), counted.to(hits))
    return hits[..., :-1]


def fixed_offsets(rows: Rows, offsets: Sequence[int]) -> Rows:
    """Return rows of imaginary heads: all weight at one offset if the row sees that key, else no weight."""
    at_offset = torch.stack([rows.at(offset) for offset in offsets])  # (offset, rows, K)
    return replace(rows, weights=(at_offset & rows.seen[:, None]).to(rows.weights))


def permute_keys(rows: Rows, order: Int[Tensor, "batch key"]) -> Rows:
    """Return rows with their keys in this order, one order per sentence.

    A random order gives the control "chance": the same weights on other keys.
    """
    order_of_weights = order[:, None, None].expand_as(rows.weights)
    order_of_seen = order[:, None].expand_as(rows.seen)
    return replace(
        rows,
        weights=rows.weights.gather(3, order_of_weights),
        seen=rows.seen.gather(2, order_of_seen),
    )


def _count_rows(counted: Bool[Tensor, "batch rows"]) -> Float[Tensor, " batch"]:
    """Return the number of rows of each sentence that are True."""
    return counted.sum(dim=-1).to(torch.get_default_dtype())
