"""Heads measured while their rows stream by: what is kept of a batch are sums, a few numbers for each head.

And which links between words each head finds, by attention from word to word that is built likewise.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor, nn

from attnviz.attention import Token
from attnviz.capture.observers import Batch, Block
from attnviz.capture.projections import Call, projection_of, same
from attnviz.capture.stream import Layer, for_each_head, visible_keys
from attnviz.errors import NoAttentionError, RecordError
from attnviz.heads.capture import rows as heads
from attnviz.heads.capture.rows import Marks, Received, Rows, SimilarWords
from attnviz.heads.measures import OFFSETS, Measure, measures_of, of_rows
from attnviz.heads.relations import LinkHits
from attnviz.text.corpus import Annotation

CORNER = 16  # patterns are compared place by place within so many first tokens
MOST_PAIRS = 2**17
"""Pairs of a query and a key of one sentence whose rows are all kept for comparing heads (362 tokens); of a longer
sentence, so many rows, evenly spaced, as make no more."""
MOST_AT_ONCE = 2**23
"""Pairs of a query and a key, times shares, that are measured at once: several usual batches, or some rows of a long
sentence, for which all that is worked out takes 100 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchMeasures:
    """The measures of the sentences of a batch."""

    # of each measure, the sum over a sentence's rows
    sums: Float64[np.ndarray, "batch layer head measure"]
    counts: Float64[np.ndarray, "batch layer measure"]  # how many rows were counted
    # weights among the first `CORNER` tokens, 0 beyond the sentence
    corner: Float[np.ndarray, "batch layer head 16 16"]
    corner_seen: Bool[np.ndarray, "batch layer 16 16"]  # where a weight was counted there
    # sums of the shares (of those at no fixed offset) for heads made up, each of which looks at one offset always; of
    # the first layer, and where the model lets it
    fixed: Float64[np.ndarray, "batch offset share"]
    fixed_counts: Float64[np.ndarray, "batch share"]  # how many rows were counted
    # if kept, the rows of all heads [batch, heads, rows, key], 0 where there is padding, and which of these rows count
    # [batch, rows]
    rows: tuple[Tensor, ...] = ()


class MeasureHeads:
    """Measures every head of every layer on each sentence of a batch.

    Without `handed`, each layer's output projection as `FindWeights` found it, no norm-based measure is counted;
    without `embeddings`, the model's own vectors of its vocabulary, no similarity of words. `keep_rows` is for
    comparing heads with one another. `dealt` has a seed for each sentence: the weights of its rows are dealt out to
    its keys at random. `measures` are those that rows give, as `measures_of` orders them; None takes the usual
    ones.
    """

    def __init__(
        self,
        handed: Mapping[int, Float[Tensor, "head d_v small"]] | None = None,
        *,
        keep_rows: bool = False,
        dealt: Sequence[int] | None = None,
        measures: Sequence[Measure] | None = None,
        embeddings: Float[Tensor, "word d"] | None = None,
    ) -> None:
        self._embeddings, self._dealt = embeddings, dealt
        self.handed, self.keep_rows = handed or {}, keep_rows
        self.measures = every = of_rows(measures_of()) if measures is None else measures
        self.at = {
            takes: [number for number, one in enumerate(every) if one.takes == takes]
            for takes in ("keys", "rows", "received", "norms", "peaks")
        }
        """The places among all measures of those that are computed of one thing."""
        keys = [every[number] for number in self.at["keys"]]
        column = {one.offset: number for number, one in enumerate(keys) if one.family == "offset"}
        self.peak_columns = [column[every[number].offset] for number in self.at["peaks"]]
        """Of each measure of largest weights, the share of weight at the same offset: as many rows count."""
        self.shares = slice(sum(one.offset is None for one in keys))
        """Shares at no fixed offset, which come first; of each of them there is a norm-based one."""

    def begin(self, batch: Batch) -> None:
        """Read the tokens of a new batch, and forget the last one."""
        self.marks = marks_of(batch, self._embeddings)
        self.order = None if self._dealt is None else _orders(self.marks.keys, self._dealt)
        self._known: tuple[Tensor, heads.Targets] | None = None
        self._layers: list[_OneLayer] = []

    def observe_layer(self, layer: Layer) -> None:
        """A new layer begins."""
        self._layers.append(_OneLayer(self, layer, is_first=not self._layers))

    def observe(self, block: Block) -> None:
        """Measure these rows, few enough at a time that what is worked out on the way stays small."""
        n_batch, _, n_rows, n_keys = block.weights.shape
        step = max(1, MOST_AT_ONCE // (n_batch * n_keys * len(self.at["keys"])))
        for start in range(0, n_rows, step):
            weights = block.weights[:, :, start : start + step]
            self._layers[-1].add(
                self, weights, block.first_row + start, whole=weights.shape[2] == block.n_rows
            )

    def targets_of(self, rows: Rows, *, whole: bool) -> heads.Targets:
        """Where the keys of each share are: worked out once for all layers whose rows see the same in one block."""
        if self._known is not None and whole and torch.equal(self._known[0], rows.seen):
            return self._known[1]
        targets = heads.targets_of(rows, [self.computation(number) for number in self.at["keys"]])
        if whole:
            self._known = rows.seen, targets
        return targets

    def computation(self, number: int) -> Callable[[Any], Any]:
        """The computation of a measure. Raises RecordError: it has none."""
        one = self.measures[number]
        if one.compute is None:
            raise RecordError(f"the measure {one.name!r} takes {one.takes} and computes nothing")
        return one.compute

    @torch.inference_mode()
    def result(self) -> BatchMeasures:
        """Return the measures of the batch. Raises NoAttentionError: the layers have different numbers of heads."""
        done = [layer.done(self) for layer in self._layers]
        if len({one.sums.shape for one in done}) > 1:
            several = ", ".join(str(one.sums.shape[1]) for one in done)
            raise NoAttentionError(
                f"the layers of this model have different numbers of heads ({several})"
            )
        sums, counts, corner, seen = (
            torch.stack([getattr(one, name) for one in done], dim=1).cpu().numpy()
            for name in ("sums", "counts", "corner", "corner_seen")
        )
        first, kept = done[0], [torch.cat(one.kept, dim=2) for one in done if one.kept]
        return BatchMeasures(
            sums=sums,
            counts=counts,
            corner=corner,
            corner_seen=seen,
            fixed=first.fixed.cpu().numpy(),
            fixed_counts=first.fixed_counts.cpu().numpy(),
            rows=(torch.cat(kept, dim=1), torch.cat(first.kept_counted, dim=1)) if kept else (),
        )


class FindWeights:
    """Finds weights that measures need: modules that are given the contexts of heads, or the numbers of tokens."""

    def __init__(self) -> None:
        self.handed: dict[int, Float[Tensor, "head d_v small"]] = {}
        """Of each layer, for each head a matrix R for which |v R| is the length of v through the output projection."""
        self.embeddings: Float[Tensor, "word d"] | None = None
        """The vectors of the vocabulary, as the first layer is given them without positions; None where none are."""
        self._layer: Layer | None = None

    def begin(self, batch: Batch) -> None:
        """Read the numbers of the tokens."""
        self._ids = [token.id for token in batch.sentences[0].tokens]

    def observe(self, block: Block) -> None:
        """Ignore blocks of weights."""

    def observe_layer(self, layer: Layer) -> None:
        """The calls that follow may be its output projection's."""
        self._layer = layer

    def observe_call(self, call: Call) -> None:
        """See whether this is the projection, or the words' embeddings."""
        layer = self._layer
        if self.embeddings is None and isinstance(call.module, nn.Embedding):
            if (
                call.given.shape[-1] >= len(self._ids)
                and call.given[0, : len(self._ids)].tolist() == self._ids
            ):
                self.embeddings = call.module.weight.detach()
            return
        if (
            layer is None
            or layer.number in self.handed
            or not same(call.given, layer.output.flatten(2))
        ):
            return
        found = projection_of(call, 0, call.made.shape[2])
        if found is not None:
            n_heads, d_v = layer.output.shape[2:]
            weight = found.weight.reshape(n_heads, d_v, -1)  # (H, d_v, D)
            dtype = torch.promote_types(weight.dtype, torch.float32)
            # W = R Q with the rows of Q orthonormal, so |v W| = |v R|, with R as small as a head.
            # (H, min(d_v, D), d_v)
            r = torch.linalg.qr(weight.transpose(1, 2).to(dtype), mode="r").R
            self.handed[layer.number] = r.transpose(1, 2)


def marks_of(batch: Batch, embeddings: Float[Tensor, "word d"] | None = None) -> Marks:
    """Return the properties of a batch's tokens; with word vectors, also how similar its words are."""
    keys = [
        sentence.tokens if sentence.keys is None else sentence.keys for sentence in batch.sentences
    ]
    real_keys = batch.real_keys
    device = batch.real.device
    numbers: dict[str, int] = {}  # home-built models may have none of their own

    def number(token: Token) -> int:
        return token.id if token.id is not None else numbers.setdefault(token.piece, len(numbers))

    def where(true: Callable[[int, Token], bool]) -> Bool[Tensor, "batch key"]:
        return _pad(
            [[true(j, token) for j, token in enumerate(row)] for row in keys], real_keys, fill=False
        )

    special = where(lambda _, token: token.special)
    last = real_keys & (
        torch.arange(real_keys.shape[1], device=device) == real_keys.sum(dim=1)[:, None] - 1
    )
    first = where(lambda j, _: j == 0)
    ids = _pad([[-1 if t.special else number(t) for t in row] for row in keys], real_keys, fill=-1)
    punctuation = where(lambda _, token: not token.special and is_punctuation(token.text))
    similar = None
    if embeddings is not None and batch.kind != "cross":
        similar = SimilarWords(embeddings[ids.clamp_min(0)], ids, (ids >= 0) & ~punctuation)
    return Marks(
        queries=batch.real,
        keys=real_keys,
        first=first,
        separator=special & ~first,
        punctuation=punctuation,
        end=special & last & ~first,
        ids=ids,
        square=batch.kind != "cross",
        similar=similar,
    )


class _OneLayer:
    """Sums over the rows of one layer."""

    def __init__(self, run: MeasureHeads, layer: Layer, *, is_first: bool) -> None:
        n_batch, n_heads = layer.query.shape[:2]
        handed, n_keys, n = run.handed.get(layer.number), run.marks.keys.shape[1], len(run.measures)
        self._scoring, self._is_first = layer.scoring, is_first
        self._lengths = None if handed is None else _lengths(layer, handed)
        new = partial(torch.zeros, device=run.marks.keys.device, dtype=torch.float64)
        self.sums, self.counts = new(n_batch, n_heads, n), new(n_batch, n)
        self._received, self._seen_by, self._n_rows = (
            new(n_batch, n_heads, n_keys),
            new(n_batch, n_keys),
            new(n_batch),
        )
        self.corner = new(n_batch, n_heads, CORNER, CORNER, dtype=torch.get_default_dtype())
        self.corner_seen = new(n_batch, CORNER, CORNER, dtype=torch.bool)
        self.fixed = new(n_batch, len(OFFSETS), run.shares.stop)
        self.fixed_counts = new(n_batch, run.shares.stop)
        self.kept: list[Tensor] = []
        self.kept_counted: list[Tensor] = []
        self._step = (
            max(1, -(-run.marks.queries.shape[1] * n_keys // MOST_PAIRS)) if run.keep_rows else None
        )

    def add(
        self,
        run: MeasureHeads,
        weights: Float[Tensor, "batch head rows key"],
        first: int,
        *,
        whole: bool,
    ) -> None:
        """Measure some of its rows."""
        visible = visible_keys(
            self._scoring, first, first + weights.shape[2], weights.shape[3], weights.device
        )
        rows = heads.rows_of(weights, visible[:, 0], first, run.marks)
        if run.order is not None:
            rows = heads.permute_keys(rows, run.order)
        targets = run.targets_of(rows, whole=whole)
        for number in run.at["rows"]:
            total, n = run.computation(number)(rows)
            self.sums[:, :, number] += total
            self.counts[:, number] += n
        self._add_shares(run.at["keys"], heads.shares(rows, targets), targets.counts)
        if run.at["peaks"]:
            self._add_shares(
                run.at["peaks"], heads.peaks(rows, OFFSETS), targets.counts[:, run.peak_columns]
            )
        if self._lengths is not None:
            weighed = heads.shares(heads.norm_weights(rows, self._lengths), targets)
            self._add_shares(
                run.at["norms"], weighed[..., run.shares], targets.counts[:, run.shares]
            )
        self._received += rows.weights.sum(dim=2)
        self._seen_by += rows.seen.sum(dim=1)
        self._n_rows += rows.counted.sum(dim=1)
        self._add_corner(rows)
        if self._is_first and run.marks.square:
            self.fixed += heads.shares(heads.fixed_offsets(rows, OFFSETS), targets)[..., run.shares]
            self.fixed_counts += targets.counts[:, run.shares]
        if self._step is not None:
            here = slice(-first % self._step, None, self._step)
            self.kept.append(rows.weights[:, :, here].clone())
            self.kept_counted.append(rows.counted[:, here])

    def _add_shares(
        self,
        at: list[int],
        sums: Float[Tensor, "batch head some"],
        counts: Float[Tensor, "batch some"],
    ) -> None:
        self.sums[:, :, at] += sums
        self.counts[:, at] += counts

    def _add_corner(self, rows: Rows) -> None:
        first, last = rows.first_row, min(CORNER, rows.first_row + rows.weights.shape[2])
        n_keys = min(CORNER, rows.weights.shape[3])
        if first < last:
            self.corner[:, :, first:last, :n_keys] = rows.weights[:, :, : last - first, :n_keys]
            self.corner_seen[:, first:last, :n_keys] = rows.seen[:, : last - first, :n_keys]

    def done(self, run: MeasureHeads) -> _OneLayer:
        """Measure what its keys got of all rows."""
        received = Received(weights=self._received, seen_by=self._seen_by, n_rows=self._n_rows)
        for number in run.at["received"]:
            self.sums[:, :, number], self.counts[:, number] = run.computation(number)(received)
        return self


def _orders(real: Bool[Tensor, "batch key"], seeds: Sequence[int]) -> Int[Tensor, "batch key"]:
    """For each sentence an order of its keys, drawn from its seed; padding stays where it is."""
    orders = torch.arange(real.shape[1], device=real.device).repeat(len(seeds), 1)
    for row, seed in enumerate(seeds):
        places = real[row].nonzero()[:, 0]
        drawn = np.random.Generator(np.random.PCG64(seed)).permutation(len(places))
        orders[row, places] = places[torch.from_numpy(drawn).to(places.device)]
    return orders


def is_punctuation(text: str) -> bool:
    """Whether a token is nothing but punctuation marks (the Unicode categories P)."""
    return bool(text) and all(unicodedata.category(character).startswith("P") for character in text)


def _lengths(
    layer: Layer, handed: Float[Tensor, "head d_v small"]
) -> Float[Tensor, "batch head key"]:
    """Return the norm of each key's value through its head's part of the output projection."""
    value = for_each_head(layer.value.to(handed.dtype), handed.shape[0])
    lengths: Tensor = torch.linalg.vector_norm(torch.matmul(value, handed), dim=-1)
    return lengths


def _pad(rows: Sequence[Sequence[int]], real: Bool[Tensor, "batch token"], *, fill: int) -> Tensor:
    width = real.shape[1]
    return torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows], device=real.device)


# Links between words.


class FindLinks:
    """Finds out, for each link between words of a batch, which heads would have guessed it.

    A head's guess for a word is the other word that this word looks at most; the other way round, the other word
    that looks at this word most. Words that share a token count as one there. In a causal model a word looks at
    earlier ones only: a later one is never its guess, and counts as not found.
    """

    def __init__(self, annotated: Sequence[Annotation | None]) -> None:
        self._annotated = annotated

    def begin(self, batch: Batch) -> None:
        """Match the words of a new batch with its tokens, and forget the last one."""
        self._marks = marks_of(batch)
        given = [((), ()) if one is None else (one.words, one.links) for one in self._annotated]
        aligned = [
            align(one.tokens, words) for one, (words, _) in zip(batch.sentences, given, strict=True)
        ]
        self._to = _assign([tokens for tokens, _ in aligned], batch.real)  # (B, K, U)
        # (B, U, Q)
        self._from = (self._to / self._to.sum(dim=1, keepdim=True).clamp_min(1)).transpose(1, 2)
        self._places = [
            [(units[link.query], units[link.key]) for link in links]
            for (_, units), (_, links) in zip(aligned, given, strict=True)
        ]
        self._hits: list[Bool[Tensor, "link 2 head"]] = []
        self._is_open = False

    def observe_layer(self, layer: Layer) -> None:
        """A new layer begins."""
        self._close()
        self._is_open, self._scoring = True, layer.scoring
        n_units = self._to.shape[2]
        dtype = torch.promote_types(layer.query.dtype, torch.float32)
        self._words = torch.zeros(
            *layer.query.shape[:2], n_units, n_units, dtype=dtype, device=self._to.device
        )

    def observe(self, block: Block) -> None:
        """Add what these rows give to words."""
        first, n_rows, n_keys = block.first_row, *block.weights.shape[2:]
        visible = visible_keys(self._scoring, first, first + n_rows, n_keys, block.weights.device)
        weights = heads.rows_of(block.weights, visible[:, 0], first, self._marks).weights
        to = self._to.to(weights.dtype)
        mean = self._from[:, :, first : first + n_rows].to(weights.dtype)
        self._words += mean[:, None] @ (weights @ to[:, None])  # (B, H, U, U)

    def result(self) -> tuple[LinkHits | None, ...]:
        """Return for each sentence the links that each head finds; None where it has no words given."""
        self._close()
        hits = torch.stack(self._hits, dim=2).cpu().numpy()  # (link, 2, L, H)
        found: list[LinkHits | None] = []
        first = 0
        for one, places in zip(self._annotated, self._places, strict=True):
            if one is None:
                found.append(None)
                continue
            kept = [
                link for link, place in zip(one.links, places, strict=True) if None not in place
            ]
            found.append(
                LinkHits(
                    names=tuple(link.relation for link in kept),
                    hits=hits[first : first + len(kept)],
                    distances=np.array([link.key - link.query for link in kept], dtype=np.int64),
                    lost=tuple(
                        link.relation
                        for link, place in zip(one.links, places, strict=True)
                        if None in place
                    ),
                )
            )
            first += len(kept)
        return tuple(found)

    @torch.inference_mode()
    def _close(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        itself = torch.eye(self._words.shape[2], dtype=torch.bool, device=self._words.device)
        words = self._words.masked_fill(itself, 0.0)
        flat = [
            (row, *place)
            for row, places in enumerate(self._places)
            for place in places
            if None not in place
        ]
        batch, query, key = (
            torch.tensor(flat, dtype=torch.long, device=words.device).reshape(-1, 3).T
        )
        ways = []
        for dim in (3, 2):
            most = words.max(dim=dim)  # (B, H, U)
            guess, weight = most.indices[batch, :, query], most.values[batch, :, query]  # (link, H)
            # no weight on any other word: no guess
            ways.append((guess == key[:, None]) & (weight > 0))
        self._hits.append(torch.stack(ways, dim=1))


def align(
    tokens: Sequence[Token], words: Sequence[tuple[int, int]]
) -> tuple[list[int | None], list[int | None]]:
    """Match tokens with words by the characters that they have in common.

    A unit is a word with its tokens, or words that share one, such as "didn't". Gives the unit of each token, None for
    special tokens and those of no word; and of each word, None where it has no token, or none of its own.
    """
    covered = [_covered(token, words) for token in tokens]
    # of each word, the first of those it shares tokens with: they stand in a row
    unit = list(range(len(words)))
    for several in sorted(filter(None, covered), key=lambda several: several.start):
        for word in several:
            unit[word] = min(unit[word], unit[several.start])
    has_token = {word for several in covered for word in several}
    firsts = sorted({unit[word] for word in has_token})
    numbers = {first: number for number, first in enumerate(firsts)}
    of_tokens = [numbers[unit[several.start]] if several else None for several in covered]
    of_words = [
        numbers[one] if word in has_token and unit.count(one) == 1 else None
        for word, one in enumerate(unit)
    ]
    return of_tokens, of_words


def _covered(token: Token, words: Sequence[tuple[int, int]]) -> range:
    """Return the numbers of the words that share characters with a token."""
    if token.special or token.span is None or token.segment or token.span[0] >= token.span[1]:
        return range(0)
    starts, ends = [start for start, _end in words], [end for _start, end in words]
    return range(bisect_right(ends, token.span[0]), bisect_left(starts, token.span[1]))


def _assign(
    units: Sequence[Sequence[int | None]], real: Bool[Tensor, "batch token"]
) -> Float[Tensor, "batch token unit"]:
    places = [
        (b, t, unit)
        for b, row in enumerate(units)
        for t, unit in enumerate(row)
        if unit is not None
    ]
    n_units = 1 + max((unit for _, _, unit in places), default=0)
    assigned = torch.zeros(*real.shape, n_units, device=real.device)
    batch, token, unit = torch.tensor(places, dtype=torch.long, device=real.device).reshape(-1, 3).T
    assigned[batch, token, unit] = 1
    return assigned
