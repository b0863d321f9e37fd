"""What a head does, in numbers: each measure is defined here once, on blocks of rows.

A measure is a mean over rows. Of each sentence it gives a sum over its rows and how many rows were counted, so that
one sentence, a batch, a corpus and the parts of a corpus all go through the same definition, and sums merge. A is the
head's pattern: row i is the query, column j the key.

A row is counted where its token is real and sees two keys or more: with one key there is nothing to choose. Of
a share, only rows that see such a key are counted: no row of a causal model sees the next token.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnviz.comparison import MEASURES, OFFSETS

Specials: TypeAlias = Literal["keep", "exclude"]
"""Whether special tokens look and are looked at, or all is as if they were masked."""

SEEN_BY = 0.5
"""A key is a sink candidate where at least this share of the rows sees it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What is known of the tokens of a batch.

    Attributes:
        specials: whether special tokens take part.
        queries: the tokens that look and are counted: neither padding nor special tokens that are left out.
        keys: likewise those that are looked at.
        first: where the key is the sentence's first token.
        separator: where the key is a special token that is not the first.
        punctuation: where the key is a punctuation mark.
        end: where the key is a special token that ends its sentence.
        ids: the number of each token in the vocabulary; all special tokens and padding are -1.
        square: whether queries and keys are the same tokens. If not, no offset and no repetition is measured.
    """

    specials: Specials
    queries: Bool[Tensor, "batch query"]
    keys: Bool[Tensor, "batch key"]
    first: Bool[Tensor, "batch key"]
    separator: Bool[Tensor, "batch key"]
    punctuation: Bool[Tensor, "batch key"]
    end: Bool[Tensor, "batch key"]
    ids: Int[Tensor, "batch key"]
    square: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Some rows of one layer, with all that measures need.

    Attributes:
        weights: A; 0 where `seen` is False.
        seen: which keys each row sees; none of those of a row that is not counted.
        first_row: the number of the first row held.
        marks: of the whole batch.
    """

    weights: Float[Tensor, "batch head rows key"]
    seen: Bool[Tensor, "batch rows key"]
    first_row: int
    marks: Marks

    @property
    def offsets(self) -> Int[Tensor, "rows key"]:
        """The difference j - i: negative where the key is before the query."""
        n_rows, n_keys = self.weights.shape[2:]
        device = self.weights.device
        rows = torch.arange(self.first_row, self.first_row + n_rows, device=device)
        return torch.arange(n_keys, device=device) - rows[:, None]

    @property
    def counted(self) -> Bool[Tensor, "batch rows"]:
        """The rows that are counted."""
        return self.seen.any(dim=-1)


Sums: TypeAlias = tuple[Float[Tensor, "batch head"], Float[Tensor, " batch"]]
"""Of each sentence: the sum over its rows for each head, and how many rows were counted."""


def rows_of(
    weights: Float[Tensor, "batch head rows key"],
    visible: Bool[Tensor, "#batch #rows key"],
    first_row: int,
    marks: Marks,
) -> Rows:
    """A block of rows as the measures take it.

    Where special tokens are left out, what they got is taken away and each row is scaled to sum to what it did: the
    softmax as if they had been masked.

    Args:
        weights: after the softmax.
        visible: where the model lets a query look.
        first_row: the number of the first row.
        marks: of the batch; they say which tokens take part.
    """
    n_rows = weights.shape[2]
    queries = marks.queries[:, first_row : first_row + n_rows]
    seen = visible & marks.keys[:, None] & queries[:, :, None]
    seen = seen & (seen.sum(dim=-1, keepdim=True) > 1)
    kept = weights * seen[:, None]
    if marks.specials == "exclude":
        whole = weights.sum(dim=-1, keepdim=True)
        kept = kept * (whole / kept.sum(dim=-1, keepdim=True).clamp_min(torch.finfo(weights.dtype).tiny))
    return Rows(weights=kept, seen=seen, first_row=first_row, marks=marks)


def self_share(rows: Rows) -> Sums:
    """The weight on the query's own token: mean of A[i, i] (Clark et al. 2019, section 3)."""
    return _share(rows, _at(rows, 0))


def previous_share(rows: Rows) -> Sums:
    """The weight on the token before: mean of A[i, i - 1] (Clark et al. 2019, section 3.1)."""
    return _share(rows, _at(rows, -1))


def next_share(rows: Rows) -> Sums:
    """The weight on the token after: mean of A[i, i + 1] (Clark et al. 2019, section 3.1)."""
    return _share(rows, _at(rows, 1))


def first_share(rows: Rows) -> Sums:
    """The weight on the first token, such as [CLS]: mean of A[i, 0] (Clark et al. 2019, section 3.2)."""
    return _share(rows, rows.marks.first[:, None])


def separator_share(rows: Rows) -> Sums:
    """The weight on special tokens other than the first, such as [SEP], summed (Clark et al. 2019, section 3.2)."""
    return _share(rows, rows.marks.separator[:, None])


def punctuation_share(rows: Rows) -> Sums:
    """The weight on punctuation marks, summed (Clark et al. 2019, section 3.2)."""
    return _share(rows, rows.marks.punctuation[:, None])


def same_word_share(rows: Rows) -> Sums:
    """For a token seen before, the weight on its earlier copies, summed (Wang et al. 2023, duplicate token heads)."""
    return _share(rows, _copies(rows))


def induction_share(rows: Rows) -> Sums:
    """For a token seen before, the weight on the tokens right after its earlier copies (Olsson et al. 2022)."""
    if not rows.marks.square:
        return _share(rows, _copies(rows))
    ids = rows.marks.ids
    after = torch.nn.functional.pad(ids[:, :-1], (1, 0), value=-1)  # what stands before each key
    mine = ids[:, rows.first_row : rows.first_row + rows.weights.shape[2]]
    same = (after[:, None] == mine[:, :, None]) & (mine[:, :, None] >= 0)
    return _share(rows, same & (rows.offsets < 0))


def entropy(rows: Rows) -> Sums:
    """How spread a row is, in nats: mean of -sum over j of A ln A (Clark et al. 2019, section 3.3)."""
    return _total(torch.special.entr(rows.weights)), _number(rows.counted)


def entropy_share(rows: Rows) -> Sums:
    """Entropy as a share of the largest that there can be: of the logarithm of the number of keys seen."""
    largest = rows.seen.sum(dim=-1).clamp_min(2).log()  # (B, rows); a row that is not counted has no weight at all
    return _total(torch.special.entr(rows.weights) / largest[:, None, :, None]), _number(rows.counted)


def distance(rows: Rows) -> Sums:
    """How far the keys are, in tokens: mean of sum over j of A |i - j|."""
    if not rows.marks.square:
        return _nothing(rows)
    return _total(rows.weights * rows.offsets.abs()), _number(rows.counted)


def spread(rows: Rows) -> Sums:
    """How much that distance varies within a row, in tokens: mean of its standard deviation under A."""
    if not rows.marks.square:
        return _nothing(rows)
    far = rows.offsets.abs().to(rows.weights)
    near = (rows.weights * far).sum(dim=-1, keepdim=True)  # (B, H, rows, 1)
    variance = (rows.weights * (far - near).square()).sum(dim=-1)
    return variance.sqrt().sum(dim=-1, dtype=torch.float64), _number(rows.counted)


def confidence(rows: Rows) -> Sums:
    """The largest weight of a row, the end of the sentence left out: mean of max A (Voita et al. 2019, section 4)."""
    keys = ~rows.marks.end[:, None, None]
    n_rows = rows.weights.shape[2]
    counted = rows.counted
    if rows.marks.square:
        counted = counted & ~rows.marks.end[:, rows.first_row : rows.first_row + n_rows]
    largest = (rows.weights * keys).amax(dim=-1)  # (B, H, rows)
    return (largest * counted[:, None]).sum(dim=-1), _number(counted)


SHARES: dict[str, Callable[[Rows], Sums]] = {
    "self": self_share,
    "previous": previous_share,
    "next": next_share,
    "first": first_share,
    "separator": separator_share,
    "punctuation": punctuation_share,
    "same_word": same_word_share,
    "induction": induction_share,
}
"""How much of a head's weight goes to one sort of key."""

ROW_MEASURES: dict[str, Callable[[Rows], Sums]] = {
    **SHARES,
    "entropy": entropy,
    "entropy_share": entropy_share,
    "distance": distance,
    "spread": spread,
    "confidence": confidence,
}

NAMES = tuple(name for name in MEASURES if name != "variability")
"""All that rows give, in the order in which it is kept; how a pattern varies is seen on many sentences only."""


def offset_shares(rows: Rows) -> tuple[Float[Tensor, "batch head offset"], Float[Tensor, "batch offset"]]:
    """The weight at each fixed offset: mean of A[i, i + o], for each o of `OFFSETS`."""
    sums = [_share(rows, _at(rows, offset)) for offset in OFFSETS]
    return torch.stack([total for total, _ in sums], dim=-1), torch.stack([n for _, n in sums], dim=-1)


def offset_peaks(rows: Rows) -> tuple[Float[Tensor, "batch head offset"], Float[Tensor, "batch offset"]]:
    """How often a row's largest weight is at each fixed offset, of the rows that see a key there.

    Source: Voita et al. 2019, section 5.1, positional heads.
    """
    places = torch.arange(rows.weights.shape[3], device=rows.weights.device)
    largest = (places == rows.weights.argmax(dim=-1, keepdim=True)) & rows.seen[:, None]  # (B, H, rows, K)
    sums = [_share(replace(rows, weights=largest.to(rows.weights)), _at(rows, offset)) for offset in OFFSETS]
    return torch.stack([total for total, _ in sums], dim=-1), torch.stack([n for _, n in sums], dim=-1)


def fixed_offsets(rows: Rows) -> Rows:
    """Heads made up: each looks at one of `OFFSETS` with all its weight, where a row sees that, and nowhere else."""
    there = torch.stack([_at(rows, offset) for offset in OFFSETS])  # (offset, rows, K)
    return replace(rows, weights=(there & rows.seen[:, None]).to(rows.weights))


def dealt_out(rows: Rows, order: Int[Tensor, "batch key"]) -> Rows:
    """The same rows with their weights dealt out to other keys: what chance makes of a pattern.

    Args:
        rows: a block.
        order: for each key whose weight it gets.
    """
    keys = order[:, None, None].expand(-1, *rows.weights.shape[1:])
    seen = order[:, None].expand(-1, rows.seen.shape[1], -1)
    return replace(rows, weights=rows.weights.gather(3, keys.expand_as(rows.weights)), seen=rows.seen.gather(2, seen))


def norm_based(rows: Rows, lengths: Float[Tensor, "batch head key"]) -> Rows:
    """The same rows with norm-based weights: A times the length of what each key hands over, each row made to sum to 1.

    Args:
        rows: with A.
        lengths: of the transformed values, ||(x_j W_V + b_V) W_O||.

    Source: Kobayashi et al. 2020, "Attention is Not Only a Weight", equation 4.
    """
    weighed = rows.weights * lengths[:, :, None]
    total = weighed.sum(dim=-1, keepdim=True).clamp_min(torch.finfo(weighed.dtype).tiny)
    return replace(rows, weights=weighed / total)


def sink(
    received: Float[Tensor, "batch head key"], seen_by: Float[Tensor, "batch key"], n_rows: Float[Tensor, " batch"]
) -> Sums:
    """The largest mean weight that one key draws from the rows that see it (Gu et al. 2025, "attention sink").

    Keys that fewer than half of the rows see are left out: the last token of a causal model is seen by itself alone.

    Args:
        received: the weight that each key got, summed over rows.
        seen_by: how many rows saw it.
        n_rows: how many rows were counted.
    """
    fair = (seen_by >= SEEN_BY * n_rows[:, None]) & (seen_by > 0)
    mean = received / seen_by.clamp_min(1)[:, None]
    return (mean * fair[:, None]).amax(dim=-1), (n_rows > 0).to(received.dtype)


def _share(rows: Rows, target: Bool[Tensor, "#batch #rows key"] | Bool[Tensor, "rows key"]) -> Sums:
    """The weight on the keys that are a row's target, over the rows that see one."""
    there = rows.seen & target
    total = torch.einsum("bhik,bik->bh", rows.weights, there.to(rows.weights))
    return total, _number(there.any(dim=-1))


def _total(cells: Float[Tensor, "batch head rows key"]) -> Float[Tensor, "batch head"]:
    """The sum over all cells, in double precision: single precision would lose digits over many of them."""
    return cells.sum(dim=(2, 3), dtype=torch.float64)


def _at(rows: Rows, offset: int) -> Bool[Tensor, "rows key"]:
    """Where the key is so far after the query; nowhere in cross attention."""
    offsets = rows.offsets
    return offsets == offset if rows.marks.square else torch.zeros_like(offsets, dtype=torch.bool)


def _copies(rows: Rows) -> Bool[Tensor, "batch rows key"]:
    """Where the key is an earlier copy of the query; nowhere in cross attention."""
    if not rows.marks.square:
        return torch.zeros_like(rows.seen)
    ids = rows.marks.ids
    mine = ids[:, rows.first_row : rows.first_row + rows.weights.shape[2], None]
    return (ids[:, None] == mine) & (mine >= 0) & (rows.offsets < 0)


def _number(counted: Bool[Tensor, "batch rows"]) -> Float[Tensor, " batch"]:
    return counted.sum(dim=-1).to(torch.get_default_dtype())


def _nothing(rows: Rows) -> Sums:
    """What cannot be measured here: no row is counted."""
    n_batch, n_heads = rows.weights.shape[:2]
    return rows.weights.new_zeros(n_batch, n_heads), rows.weights.new_zeros(n_batch)
