"""What a head does, in numbers: each measure is defined here once, on blocks of rows.

A measure is a mean over rows. Of each sentence it gives a sum over its rows and how many rows were counted, so that
one sentence, a batch, a corpus and the parts of a corpus all go through the same definition, and sums merge. A is the
head's pattern: row i is the query, column j the key.

A row is counted where its token is real and sees two keys or more: with one key there is nothing to choose. Of
a share, only rows that see such a key are counted: no row of a causal model sees the next token.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnviz.heads.record import MAX_OFFSET, measures_up_to

Specials: TypeAlias = Literal["keep", "exclude"]
"""Whether special tokens look and are looked at, or all is as if they were masked."""

_TINY = 1e-30

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


Target: TypeAlias = Bool[Tensor, "#batch #rows key"] | Bool[Tensor, "rows key"]
"""Which keys a share asks for, whether a row sees them or not."""

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


def _at(rows: Rows, offset: int) -> Bool[Tensor, "rows key"]:
    """Where the key is so far after the query; nowhere in cross attention."""
    offsets = rows.offsets
    return offsets == offset if rows.marks.square else torch.zeros_like(offsets, dtype=torch.bool)


def on_itself(rows: Rows) -> Target:
    """The query's own token: A[i, i] (Clark et al. 2019, section 3)."""
    return _at(rows, 0)


def on_previous(rows: Rows) -> Target:
    """The token before: A[i, i - 1] (Clark et al. 2019, section 3.1)."""
    return _at(rows, -1)


def on_next(rows: Rows) -> Target:
    """The token after: A[i, i + 1] (Clark et al. 2019, section 3.1)."""
    return _at(rows, 1)


def on_first(rows: Rows) -> Target:
    """The first token, such as [CLS]: A[i, 0] (Clark et al. 2019, section 3.2)."""
    return rows.marks.first[:, None]


def on_separator(rows: Rows) -> Target:
    """Special tokens other than the first, such as [SEP]: the sum of A over them (Clark et al. 2019, section 3.2)."""
    return rows.marks.separator[:, None]


def on_punctuation(rows: Rows) -> Target:
    """Punctuation marks: the sum of A over them (Clark et al. 2019, section 3.2)."""
    return rows.marks.punctuation[:, None]


def on_same_word(rows: Rows) -> Target:
    """Of a token seen before, its earlier copies: the sum of A over them (Wang et al. 2023, duplicate token heads)."""
    if not rows.marks.square:
        return torch.zeros_like(rows.seen)
    return _same(rows, rows.marks.ids) & (rows.offsets < 0)


def on_what_followed(rows: Rows) -> Target:
    """Of a token seen before, what came right after its earlier copies: the sum of A over it (Olsson et al. 2022)."""
    if not rows.marks.square:
        return torch.zeros_like(rows.seen)
    before = torch.nn.functional.pad(rows.marks.ids[:, :-1], (1, 0), value=-1)  # what stands before each key
    return _same(rows, before) & (rows.offsets < 0)


SHARES: dict[str, Callable[[Rows], Target]] = {
    "self": on_itself,
    "previous": on_previous,
    "next": on_next,
    "first": on_first,
    "separator": on_separator,
    "punctuation": on_punctuation,
    "same_word": on_same_word,
    "induction": on_what_followed,
}
"""How much of a head's weight goes to one sort of key: its mean over the rows that see such a key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """Where the keys of each share are, for some rows: of all of `SHARES`, then of each fixed offset, A[i, i + o].

    Attributes:
        cells: 1 where a row sees such a key, 0 elsewhere; the cells of all rows one after another.
        counts: how many rows see one.
    """

    cells: Float[Tensor, "batch cells share"]
    counts: Float[Tensor, "batch share"]


def targets_of(rows: Rows, offsets: Sequence[int]) -> Targets:
    """Where the keys of all shares are: the same for all layers whose rows see the same keys."""
    wanted = [*(target(rows) for target in SHARES.values()), *(_at(rows, offset) for offset in offsets)]
    there = [rows.seen & target for target in wanted]
    cells = torch.stack([one.flatten(1) for one in there], dim=-1)
    return Targets(
        cells=cells.to(rows.weights), counts=torch.stack([_number(one.any(dim=-1)) for one in there], dim=-1)
    )


def shares(rows: Rows, targets: Targets) -> Float[Tensor, "batch head share"]:
    """The weight on the keys of each share, summed over rows."""
    return rows.weights.flatten(2) @ targets.cells  # (B, H, cells) (B, cells, share)


def entropies(rows: Rows) -> tuple[Sums, Sums]:
    """How spread a row is, in nats: mean of -sum over j of A ln A (Clark et al. 2019, section 3.3).

    And as a share of the largest that there can be, the logarithm of the number of keys that the row sees.
    """
    # A + 1e-30, so that a logarithm of 0 exists; `torch.special.entr` knows of 0, and takes three times as long.
    each = (rows.weights + _TINY).log_().mul_(rows.weights)
    of_rows = -each.sum(dim=-1).double()  # (B, H, rows); sums over rows in double precision
    largest = rows.seen.sum(dim=-1).clamp_min(2).log()  # (B, rows); a row that is not counted has no weight at all
    n = _number(rows.counted)
    return (of_rows.sum(dim=-1), n), ((of_rows / largest[:, None]).sum(dim=-1), n)


def distances(rows: Rows) -> tuple[Sums, Sums]:
    """How far the keys are, in tokens: mean of sum over j of A |i - j|.

    And how much that varies within a row: mean of its standard deviation under A.
    """
    if not rows.marks.square:
        return _nothing(rows), _nothing(rows)
    far = rows.offsets.abs().to(rows.weights)
    near = (rows.weights * far).sum(dim=-1)  # (B, H, rows)
    variance = (far - near[..., None]).square_().mul_(rows.weights).sum(dim=-1)
    n = _number(rows.counted)
    return (near.double().sum(dim=-1), n), (variance.sqrt().double().sum(dim=-1), n)


@dataclass(frozen=True, slots=True, kw_only=True)
class Largest:
    """The largest weight of each row.

    Attributes:
        weight: the largest, the end of the sentence left out.
        key: where the largest of all is; of several, the first.
        found: whether there is any: a row that is not counted has no weight.
    """

    weight: Float[Tensor, "batch head rows"]
    key: Int[Tensor, "batch head rows"]
    found: Bool[Tensor, "batch head rows"]


def largest(rows: Rows) -> Largest:
    """The largest weight of each row, with the end of the sentence and without."""
    end = rows.marks.end
    weight, key = (rows.weights * ~end[:, None, None]).max(dim=-1)  # (B, H, rows); of equal ones the first
    on_end = torch.matmul(rows.weights, end.to(rows.weights)[:, None, :, None])[..., 0]
    is_end = on_end > weight  # the end comes after all other keys
    last = end.to(key).argmax(dim=-1)[:, None, None]
    return Largest(weight=weight, key=torch.where(is_end, last, key), found=torch.maximum(weight, on_end) > 0)


def confidence(rows: Rows, top: Largest) -> Sums:
    """The largest weight of a row, the end of the sentence left out: mean of max A (Voita et al. 2019, section 4)."""
    counted = rows.counted
    if rows.marks.square:
        counted = counted & ~rows.marks.end[:, rows.first_row : rows.first_row + rows.weights.shape[2]]
    return (top.weight * counted[:, None]).sum(dim=-1), _number(counted)


def row_measures(rows: Rows, top: Largest) -> dict[str, Sums]:
    """All that is no share, by name."""
    entropy, entropy_share = entropies(rows)
    distance, spread = distances(rows)
    return {
        "entropy": entropy,
        "entropy_share": entropy_share,
        "distance": distance,
        "spread": spread,
        "confidence": confidence(rows, top),
    }


def names(max_offset: int = MAX_OFFSET) -> tuple[str, ...]:
    """All that rows give, in the order in which it is kept; how a pattern varies is seen on many sentences only."""
    return tuple(name for name in measures_up_to(max_offset) if name != "variability")


def peaks(rows: Rows, top: Largest, offsets: Sequence[int]) -> Float[Tensor, "batch head offset"]:
    """How many rows have their largest weight at each of these offsets, which follow one another.

    Source: Voita et al. 2019, section 5.1, positional heads; there the share must be 0.9.
    """
    n_batch, n_heads, n_rows, _ = rows.weights.shape
    places = torch.arange(rows.first_row, rows.first_row + n_rows, device=top.key.device)
    offset = top.key - places - offsets[0]
    counted = top.found & (offset >= 0) & (offset < len(offsets)) & rows.marks.square
    hits = rows.weights.new_zeros(n_batch, n_heads, len(offsets) + 1)  # the last place is for all that is elsewhere
    hits.scatter_add_(2, torch.where(counted, offset, len(offsets)), counted.to(hits))
    return hits[..., :-1]


def fixed_offsets(rows: Rows, offsets: Sequence[int]) -> Rows:
    """Heads made up: each looks at one offset with all its weight, where a row sees that, and nowhere else."""
    there = torch.stack([_at(rows, offset) for offset in offsets])  # (offset, rows, K)
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
    total = torch.matmul(rows.weights, lengths[..., None]).clamp_min(torch.finfo(lengths.dtype).tiny)
    return replace(rows, weights=(rows.weights * lengths[:, :, None]).div_(total))


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


def _same(rows: Rows, ids: Int[Tensor, "batch key"]) -> Bool[Tensor, "batch rows key"]:
    """Where this number of a key is that of the query's token, special tokens apart."""
    mine = rows.marks.ids[:, rows.first_row : rows.first_row + rows.weights.shape[2], None]
    return (ids[:, None] == mine) & (mine >= 0)


def _number(counted: Bool[Tensor, "batch rows"]) -> Float[Tensor, " batch"]:
    return counted.sum(dim=-1).to(torch.get_default_dtype())


def _nothing(rows: Rows) -> Sums:
    """What cannot be measured here: no row is counted."""
    n_batch, n_heads = rows.weights.shape[:2]
    return rows.weights.new_zeros(n_batch, n_heads), rows.weights.new_zeros(n_batch)
