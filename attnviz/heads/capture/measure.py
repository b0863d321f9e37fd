"""Measures of heads, computed while their rows stream by: only a few sums per head are kept of a batch.

The word-to-word attention is summed in the same way; it tells which links between words each head finds.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor, nn

from attnviz.attention import Token
from attnviz.capture.observers import Batch, Block
from attnviz.capture.projections import Call
from attnviz.capture.stream import Layer, visible_keys
from attnviz.errors import NoAttentionError
from attnviz.heads.capture.rows import (
    Marks,
    Received,
    Rows,
    ShareKeys,
    SimilarWords,
    fixed_offsets,
    keys_of_shares,
    peak_counts,
    permute_keys,
    rows_of,
    weight_on,
)
from attnviz.heads.measures import OFFSETS, Measure, measures_of
from attnviz.heads.relations import LinkHits
from attnviz.text.corpus import Annotation, Link

MOST_PAIRS = 2**17
"""Largest number of query-key pairs kept per sentence to compare heads. A sentence of up to 362 tokens keeps all its
rows; a longer one keeps evenly spaced rows, so that it stays below this limit."""
MOST_AT_ONCE = 2**23
"""Largest number of query-key pairs, times shares, that is measured at once. This fits several usual batches, or some
rows of a long sentence; the intermediate results then take about 100 MB."""


class KeptRows(NamedTuple):
    """Rows of attention that are kept to compare heads with one another."""

    # the rows of the heads of all layers, one layer after another; 0 for padding and for rows that are not counted
    weights: Float[Tensor, "batch head row key"]
    counted: Bool[Tensor, "batch row"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchMeasures:
    """The measures of the sentences of a batch."""

    # the sum of each measure over the rows of a sentence
    sums: Float64[np.ndarray, "batch layer head measure"]
    counts: Float64[np.ndarray, "batch layer measure"]  # how many rows were counted
    # Sums of the shares that have no fixed offset, for imaginary heads that always attend to one offset (the control
    # "offset"). They are computed in the first layer only, and only for keys that the model lets a row see.
    fixed: Float64[np.ndarray, "batch offset share"]
    fixed_counts: Float64[np.ndarray, "batch share"]  # how many rows were counted
    rows: KeptRows | None = None  # None if no rows were to be kept


class MeasureCollector:
    """Observer that measures every head of every layer on each sentence of a batch.

    Args:
        keep_rows: whether to keep rows of attention, which are needed to compare heads with one another.
        key_seeds: one seed per sentence. If given, the weights of each sentence are assigned to its keys in a random
            order (the control "chance").
        measures: measures that single rows give, in the order of `measures_of`; None takes the usual ones.
        embeddings: the model's own word vectors; without them, no similarity of words is counted.
    """

    def __init__(
        self,
        *,
        keep_rows: bool = False,
        key_seeds: Sequence[int] | None = None,
        measures: Sequence[Measure] | None = None,
        embeddings: Float[Tensor, "word d"] | None = None,
    ) -> None:
        self._embeddings, self._key_seeds = embeddings, key_seeds
        self.keep_rows = keep_rows
        self.measures = measures_of() if measures is None else measures
        self.columns = {
            takes: [column for column, item in enumerate(self.measures) if item.takes == takes]
            for takes in ("keys", "rows", "received", "peaks")
        }
        """The columns of measures in the results, by what they are computed from (`Measure.takes`)."""
        shares = [self.measures[column] for column in self.columns["keys"]]
        # `measures_of` puts the shares without a fixed offset first, so a slice from 0 selects them.
        self.without_offset = slice(sum(share.offset is None for share in shares))
        """The shares without a fixed offset."""
        number_of_offset = {
            share.offset: number for number, share in enumerate(shares) if share.family == "offset"
        }
        self.shares_of_peaks = [
            number_of_offset[self.measures[column].offset] for column in self.columns["peaks"]
        ]
        """For each measure of the largest weight (`peaks`), the share at the same offset. Both count the same rows, so
        the count of the share is used for the measure too."""

    def begin(self, batch: Batch) -> None:
        """Read the tokens of a new batch and forget the last batch."""
        self.marks = marks_of(batch, self._embeddings)
        self.key_order = None
        if self._key_seeds is not None:
            self.key_order = _random_orders(self.marks.keys, self._key_seeds)
        self._last_keys: tuple[int, Tensor, ShareKeys] | None = None
        self._layers: list[LayerMeasures] = []

    def observe_layer(self, layer: Layer) -> None:
        """Begin a new layer."""
        self._layers.append(LayerMeasures(self, layer, is_first=not self._layers))

    def observe(self, block: Block) -> None:
        """Measure the rows of a block, a few at a time so that the intermediate results stay small."""
        n_batch, _, n_rows, n_keys = block.weights.shape
        step = max(1, MOST_AT_ONCE // (n_batch * n_keys * len(self.columns["keys"])))
        for start in range(0, n_rows, step):
            self._layers[-1].add(block.weights[:, :, start : start + step], block.first_row + start)

    def keys_of_shares(self, rows: Rows) -> ShareKeys:
        """Return the keys that belong to each share, a measure of the weight on some keys.

        They depend on the batch and on the keys that the rows see, not on the weights. They are therefore kept for the
        next layer, whose rows often see the same keys.
        """
        if self._last_keys is not None:
            first_row, seen, last_keys = self._last_keys
            if first_row == rows.first_row and torch.equal(seen, rows.seen):
                return last_keys
        self._last_keys = None  # frees its memory
        keys = keys_of_shares(
            rows, [self.measures[column].compute for column in self.columns["keys"]]
        )
        self._last_keys = rows.first_row, rows.seen, keys
        return keys

    @torch.inference_mode()
    def result(self) -> BatchMeasures:
        """Return the measures of the batch.

        Raises NoAttentionError: the layers have different numbers of heads.
        """
        layers = self._layers
        for layer in layers:
            layer.measure_received()
        if len({layer.sums.shape for layer in layers}) > 1:
            numbers = ", ".join(str(layer.sums.shape[1]) for layer in layers)
            raise NoAttentionError(
                f"the layers of this model have different numbers of heads ({numbers})"
            )
        sums, counts = (
            torch.stack([getattr(layer, name) for layer in layers], dim=1).cpu().numpy()
            for name in ("sums", "counts")
        )
        rows = None
        if self.keep_rows:
            rows_of_layers = [torch.cat(layer.kept_rows, dim=2) for layer in layers]
            counted = torch.cat(layers[0].kept_counted, dim=1)
            rows = KeptRows(torch.cat(rows_of_layers, dim=1), counted)
        return BatchMeasures(
            sums=sums,
            counts=counts,
            fixed=layers[0].fixed.cpu().numpy(),
            fixed_counts=layers[0].fixed_counts.cpu().numpy(),
            rows=rows,
        )


class EmbeddingFinder:
    """Observer that finds the word vectors of the vocabulary: the weight of the embedding that reads the token ids."""

    def __init__(self) -> None:
        self.embeddings: Float[Tensor, "word d"] | None = None
        """The word vectors, before positions are added; None until they are found."""

    def begin(self, batch: Batch) -> None:
        """Read the token ids of the first sentence."""
        self._token_ids = [token.id for token in batch.sentences[0].tokens]

    def observe(self, block: Block) -> None:
        """Ignore blocks of weights."""

    def observe_call(self, call: Call) -> None:
        """Keep the weight if this call is the word embeddings: its input begins with the ids of the sentence."""
        if self.embeddings is not None or not isinstance(call.module, nn.Embedding):
            return
        n_tokens = len(self._token_ids)
        if (
            call.given.shape[-1] >= n_tokens
            and call.given[0, :n_tokens].tolist() == self._token_ids
        ):
            self.embeddings = call.module.weight.detach()


def marks_of(batch: Batch, embeddings: Float[Tensor, "word d"] | None = None) -> Marks:
    """Return the properties of a batch's tokens; with word vectors, also how similar its words are."""
    real_keys = batch.real_keys
    new_ids: dict[str, int] = {}  # home-built models may have no token ids

    def properties(token: Token) -> tuple[int, bool, bool]:
        """Return the id of a token, and whether it is special or punctuation."""
        if token.special:
            return -1, True, False
        token_id = new_ids.setdefault(token.piece, len(new_ids)) if token.id is None else token.id
        return token_id, False, is_punctuation(token.text)

    rows = [
        [
            properties(token)
            for token in (sentence.tokens if sentence.keys is None else sentence.keys)
        ]
        for sentence in batch.sentences
    ]
    padding = -1, False, False
    width = real_keys.shape[1]
    padded = [[*row, *[padding] * (width - len(row))] for row in rows]
    ids, special, punctuation = torch.tensor(padded, device=real_keys.device).unbind(dim=-1)
    special, punctuation = special.bool(), punctuation.bool()
    index = torch.arange(width, device=real_keys.device)
    first = real_keys & (index == 0)
    last = real_keys & (index == real_keys.sum(dim=1)[:, None] - 1)
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


class LayerMeasures:
    """The measures of one layer, summed over the rows that were added so far."""

    def __init__(self, collector: MeasureCollector, layer: Layer, *, is_first: bool) -> None:
        self._collector, self._scoring, self._is_first = collector, layer.scoring, is_first
        n_batch, n_heads = layer.query.shape[:2]
        n_keys = collector.marks.keys.shape[1]
        n_measures, n_shares = len(collector.measures), collector.without_offset.stop
        zeros = partial(torch.zeros, device=collector.marks.keys.device, dtype=torch.float64)
        # The fields without an underscore are those of `BatchMeasures`, for one layer.
        self.sums, self.counts = zeros(n_batch, n_heads, n_measures), zeros(n_batch, n_measures)
        self.fixed = zeros(n_batch, len(OFFSETS), n_shares)
        self.fixed_counts = zeros(n_batch, n_shares)
        self.kept_rows: list[Tensor] = []
        self.kept_counted: list[Tensor] = []
        # The fields of `Received`.
        self._received = zeros(n_batch, n_heads, n_keys)
        self._seen_by = zeros(n_batch, n_keys)
        self._n_rows = zeros(n_batch)
        # Of each sentence, every `_step`-th row is kept, so that no more than `MOST_PAIRS` pairs are. The step follows
        # from its own length, not from the batch, so that parts of a corpus keep the rows that the whole one does.
        marks = collector.marks
        n_pairs = marks.queries.sum(dim=1) * marks.keys.sum(dim=1)
        self._step = (-(-n_pairs // MOST_PAIRS)).clamp(min=1)[:, None]  # -(-a // b) rounds up

    def add(self, weights: Float[Tensor, "batch head rows key"], first_row: int) -> None:
        """Measure some rows of the layer, from the row with index `first_row` on."""
        collector = self._collector
        n_rows, n_keys = weights.shape[2:]
        visible = visible_keys(self._scoring, first_row, first_row + n_rows, n_keys, weights.device)
        rows = rows_of(weights, visible[:, 0], first_row, collector.marks)
        if collector.key_order is not None:
            rows = permute_keys(rows, collector.key_order)
        for column in collector.columns["rows"]:
            sums, counts = collector.measures[column].compute(rows)
            self.sums[:, :, column] += sums
            self.counts[:, column] += counts
        self._add_shares(rows, collector.keys_of_shares(rows))
        self._received += rows.weights.sum(dim=2)
        self._seen_by += rows.seen.sum(dim=1)
        self._n_rows += rows.counted.sum(dim=1)
        if collector.keep_rows:
            # Keep the rows 0, step, 2 step, ... of each sentence; a row that only others keep is not counted.
            numbers = torch.arange(first_row, first_row + n_rows, device=weights.device)
            is_kept = numbers % self._step == 0
            kept = is_kept.any(dim=0)
            self.kept_rows.append(rows.weights[:, :, kept])
            self.kept_counted.append((rows.counted & is_kept)[:, kept])

    def _add_shares(self, rows: Rows, keys: ShareKeys) -> None:
        """Add the measures of the weight on some keys, and those that count the same rows."""
        columns, selected = self._collector.columns, self._collector.without_offset
        self._add(columns["keys"], weight_on(keys, rows), keys.counts)
        if columns["peaks"]:
            counts = keys.counts[:, self._collector.shares_of_peaks]
            self._add(columns["peaks"], peak_counts(rows, OFFSETS), counts)
        if self._is_first and rows.marks.square:
            self.fixed += weight_on(keys, fixed_offsets(rows, OFFSETS))[..., selected]
            self.fixed_counts += keys.counts[:, selected]

    def _add(
        self,
        columns: list[int],
        sums: Float[Tensor, "batch head some"],
        counts: Float[Tensor, "batch some"],
    ) -> None:
        """Add sums and counts of rows to these columns of the measures."""
        # Faster than `+=` on a list of columns, which copies them out and back.
        index = torch.tensor(columns, device=self.sums.device)
        self.sums.index_add_(2, index, sums.double())
        self.counts.index_add_(1, index, counts.double())

    def measure_received(self) -> None:
        """Add the measures of the weight that each key received, after all rows were added."""
        received = Received(weights=self._received, seen_by=self._seen_by, n_rows=self._n_rows)
        for column in self._collector.columns["received"]:
            sums, counts = self._collector.measures[column].compute(received)
            self.sums[:, :, column] = sums
            self.counts[:, column] = counts


def _random_orders(
    real: Bool[Tensor, "batch key"], seeds: Sequence[int]
) -> Int[Tensor, "batch key"]:
    """Return a random order of the keys of each sentence, drawn from its seed; padding keeps its place."""
    orders = torch.arange(real.shape[1], device=real.device).repeat(len(seeds), 1)
    for row, seed in enumerate(seeds):
        places = real[row].nonzero()[:, 0]
        permutation = np.random.Generator(np.random.PCG64(seed)).permutation(len(places))
        orders[row, places] = places[torch.from_numpy(permutation).to(places.device)]
    return orders


def is_punctuation(text: str) -> bool:
    """Return whether a token consists of punctuation marks only (the Unicode categories P)."""
    return bool(text) and all(unicodedata.category(character).startswith("P") for character in text)


# Links between words.


class AlignedWords(NamedTuple):
    """Tokens and words of a sentence, matched by the characters that they have in common.

    A unit is a word with its tokens, or several words that share a token, as in "didn't".
    """

    unit_of_token: list[int | None]  # None for special tokens and tokens of no word
    # None for a word that has no token, or shares its tokens with another word
    unit_of_word: list[int | None]


class LinkFinder:
    """Observer that finds out, for each link between words of a batch, which heads would have guessed it.

    A head's guess for a word is the other word that this word attends to most; in the opposite direction, the other
    word that attends most to this word. Words that share a token count as one unit (`AlignedWords`). In a causal model
    a word attends to earlier words only: a later word is never the guess, so its link counts as not found.

    Args:
        annotated: the links of each sentence of the batch; None for a sentence without annotation.
    """

    def __init__(self, annotated: Sequence[Annotation | None]) -> None:
        self._annotated = [item or Annotation(words=(), links=()) for item in annotated]

    def begin(self, batch: Batch) -> None:
        """Match the words of a new batch with its tokens and forget the last batch."""
        self._marks = marks_of(batch)
        aligned = [
            align(sentence.tokens, annotation.words)
            for sentence, annotation in zip(batch.sentences, self._annotated, strict=True)
        ]
        # (B, K, U): 1 if a token belongs to a unit. Attention to a unit is the sum over its tokens.
        self._sum_over_keys = _assign([words.unit_of_token for words in aligned], batch.real)
        # (B, U, Q): attention from a unit is the mean over its tokens, so that its weights sum to 1.
        n_tokens = self._sum_over_keys.sum(dim=1, keepdim=True).clamp_min(1)
        self._mean_over_queries = (self._sum_over_keys / n_tokens).transpose(1, 2)
        self._matched: list[list[Link]] = []  # the links of each sentence that can be tested
        self._lost: list[list[Link]] = []  # those that cannot
        places = []  # of all links that can be tested: the sentence, and the units of query and key
        for number, (words, annotation) in enumerate(zip(aligned, self._annotated, strict=True)):
            matched, lost = [], []
            for link in annotation.links:
                units = words.unit_of_word[link.query], words.unit_of_word[link.key]
                if None in units:
                    lost.append(link)
                else:
                    matched.append(link)
                    places.append((number, *units))
            self._matched.append(matched)
            self._lost.append(lost)
        self._places = torch.tensor(places, dtype=torch.long, device=batch.real.device)
        self._hits: list[Bool[Tensor, "link 2 head"]] = []  # of each layer that has ended
        self._is_open = False  # whether a layer has begun whose guesses are not compared yet

    def observe_layer(self, layer: Layer) -> None:
        """Begin a new layer."""
        self._close_layer()
        self._is_open, self._scoring = True, layer.scoring
        n_units = self._sum_over_keys.shape[2]
        dtype = torch.promote_types(layer.query.dtype, torch.float32)
        device = self._sum_over_keys.device
        self._unit_weights = torch.zeros(
            *layer.query.shape[:2], n_units, n_units, dtype=dtype, device=device
        )

    def observe(self, block: Block) -> None:
        """Add the weights of these rows to the word-to-word attention."""
        first, n_rows, n_keys = block.first_row, *block.weights.shape[2:]
        visible = visible_keys(self._scoring, first, first + n_rows, n_keys, block.weights.device)
        weights = rows_of(block.weights, visible[:, 0], first, self._marks).weights
        sum_over_keys = self._sum_over_keys.to(weights.dtype)
        mean = self._mean_over_queries[:, :, first : first + n_rows].to(weights.dtype)
        # (B, 1, U, rows) x (B, H, rows, K) x (B, 1, K, U) -> (B, H, U, U)
        self._unit_weights += mean[:, None] @ (weights @ sum_over_keys[:, None])

    def result(self) -> tuple[LinkHits, ...]:
        """Return the links that each head finds in each sentence; none for a sentence without annotation."""
        self._close_layer()
        hits = torch.stack(self._hits, dim=2).cpu().numpy()  # (link, 2, L, H)
        ends = np.cumsum([len(links) for links in self._matched])
        hits_of_sentences = np.split(hits, ends[:-1])
        return tuple(
            LinkHits(
                names=tuple(link.relation for link in matched),
                hits=hits_of_sentence,
                distances=np.array([link.key - link.query for link in matched], np.int64),
                lost=tuple(link.relation for link in lost),
            )
            for matched, lost, hits_of_sentence in zip(
                self._matched, self._lost, hits_of_sentences, strict=True
            )
        )

    @torch.inference_mode()
    def _close_layer(self) -> None:
        """Compare the guesses of the layer that has just ended with the links of the sentences."""
        if not self._is_open:
            return
        self._is_open = False
        weights = self._unit_weights
        diagonal = torch.eye(weights.shape[2], dtype=torch.bool, device=weights.device)
        weights = weights.masked_fill(diagonal, 0.0)  # a word is no guess for itself
        sentence, query, key = self._places.reshape(-1, 3).T
        directions = []
        # The maximum over keys (3) is the guess of the query; over queries (2), the guess in the opposite direction.
        for dim in (3, 2):
            largest = weights.max(dim=dim)  # (B, H, U)
            # (link, H)
            guess = largest.indices[sentence, :, query]
            weight = largest.values[sentence, :, query]
            # A head that puts no weight on any other word makes no guess.
            directions.append((guess == key[:, None]) & (weight > 0))
        self._hits.append(torch.stack(directions, dim=1))


def align(tokens: Sequence[Token], words: Sequence[tuple[int, int]]) -> AlignedWords:
    """Match tokens with words, which are (first, one-past-last) characters of the sentence."""
    covered = [_covered(token, words) for token in tokens]
    # The unit of a word is the first word that it shares tokens with; such words are neighbours.
    unit = list(range(len(words)))
    for word_range in sorted(filter(None, covered), key=lambda word_range: word_range.start):
        for word in word_range:
            unit[word] = min(unit[word], unit[word_range.start])
    has_token = {word for word_range in covered for word in word_range}
    firsts = sorted({unit[word] for word in has_token})
    numbers = {first: number for number, first in enumerate(firsts)}
    return AlignedWords(
        unit_of_token=[
            numbers[unit[word_range.start]] if word_range else None for word_range in covered
        ],
        unit_of_word=[
            numbers[first] if word in has_token and unit.count(first) == 1 else None
            for word, first in enumerate(unit)
        ],
    )


def _covered(token: Token, words: Sequence[tuple[int, int]]) -> range:
    """Return the indices of the words that share characters with a token."""
    if token.special or token.span is None or token.segment or token.span[0] >= token.span[1]:
        return range(0)
    starts, ends = [start for start, _end in words], [end for _start, end in words]
    return range(bisect_right(ends, token.span[0]), bisect_left(starts, token.span[1]))


def _assign(
    units: Sequence[Sequence[int | None]], real: Bool[Tensor, "batch token"]
) -> Float[Tensor, "batch token unit"]:
    """Return a matrix per sentence that is 1 if a token belongs to a unit, and 0 otherwise."""
    n_units = 1 + max((unit for row in units for unit in row if unit is not None), default=0)
    # Tokens of no unit, and padding, belong to one more unit, which is dropped.
    places = torch.full(real.shape, n_units, device=real.device)
    for number, row in enumerate(units):
        of_tokens = [n_units if unit is None else unit for unit in row]
        places[number, : len(row)] = torch.tensor(of_tokens, device=real.device)
    return nn.functional.one_hot(places, n_units + 1)[..., :-1].float()
