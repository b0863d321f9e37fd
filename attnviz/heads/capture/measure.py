"""Measures of heads, computed while their rows stream by: only a few sums per head are kept of a batch.

The word-to-word attention is summed in the same way; it tells which links between words each head finds.
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

# Patterns of different sentences are compared cell by cell, within the first 16 tokens only.
CORNER = 16
MOST_PAIRS = 2**17
"""Largest number of query-key pairs kept per sentence to compare heads. A sentence of up to 362 tokens keeps all its
rows; a longer one keeps evenly spaced rows, so that it stays below this limit."""
MOST_AT_ONCE = 2**23
"""Largest number of query-key pairs, times shares, that is measured at once. This fits several usual batches, or some
rows of a long sentence; the intermediate results then take about 100 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchMeasures:
    """The measures of the sentences of a batch."""

    # the sum of each measure over the rows of a sentence
    sums: Float64[np.ndarray, "batch layer head measure"]
    counts: Float64[np.ndarray, "batch layer measure"]  # how many rows were counted
    # weights among the first `CORNER` tokens; 0 after the end of the sentence
    corner: Float[np.ndarray, "batch layer head 16 16"]
    corner_seen: Bool[np.ndarray, "batch layer 16 16"]  # True if a weight was counted in this cell
    # Sums of the shares that have no fixed offset, for imaginary heads that always attend to one offset (the control
    # "offset"). They are computed in the first layer only, and only for keys that the model lets a row see.
    fixed: Float64[np.ndarray, "batch offset share"]
    fixed_counts: Float64[np.ndarray, "batch share"]  # how many rows were counted
    # Empty, or two tensors: the rows of all heads [batch, heads, rows, key], with 0 for padding, and whether each row
    # is counted [batch, rows].
    rows: tuple[Tensor, ...] = ()


class MeasureHeads:
    """Measures every head of every layer on each sentence of a batch.

    Args:
        handed: the output projection of each layer, from `FindWeights.handed`; without it, no norm-based measure is
            counted.
        keep_rows: whether to keep rows of attention, which are needed to compare heads with one another.
        dealt: one seed per sentence. If given, the weights of each sentence are assigned to its keys in a random
            order (the control "chance").
        measures: measures that single rows give, in the order of `measures_of`; None takes the usual ones.
        embeddings: the model's own word vectors; without them, no similarity of words is counted.
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
        if measures is None:
            measures = of_rows(measures_of())
        self.measures = measures
        self.at = {
            takes: [index for index, measure in enumerate(measures) if measure.takes == takes]
            for takes in ("keys", "rows", "received", "norms", "peaks")
        }
        """The indices of measures by what they are computed from (`Measure.takes`)."""
        shares = [measures[index] for index in self.at["keys"]]
        column_of_offset = {
            share.offset: column for column, share in enumerate(shares) if share.family == "offset"
        }
        self.peak_columns = [column_of_offset[measures[index].offset] for index in self.at["peaks"]]
        """For each measure of the largest weight (`peaks`), the column of the share at the same offset. Both count the
        same rows, so its count is used for the measure too."""
        # `measures_of` puts the shares without a fixed offset first, so a slice from 0 selects them.
        n_without_offset = len([share for share in shares if share.offset is None])
        self.shares = slice(n_without_offset)
        """The shares without a fixed offset; each of them also has a norm-based measure."""

    def begin(self, batch: Batch) -> None:
        """Read the tokens of a new batch and forget the last batch."""
        self.marks = marks_of(batch, self._embeddings)
        self.order = None if self._dealt is None else _orders(self.marks.keys, self._dealt)
        self._known: tuple[Tensor, heads.Targets] | None = None
        self._layers: list[_OneLayer] = []

    def observe_layer(self, layer: Layer) -> None:
        """Begin a new layer."""
        self._layers.append(_OneLayer(self, layer, is_first=not self._layers))

    def observe(self, block: Block) -> None:
        """Measure the rows of a block, a few at a time so that the intermediate results stay small."""
        n_batch, _, n_rows, n_keys = block.weights.shape
        step = max(1, MOST_AT_ONCE // (n_batch * n_keys * len(self.at["keys"])))
        for start in range(0, n_rows, step):
            weights = block.weights[:, :, start : start + step]
            self._layers[-1].add(
                self, weights, block.first_row + start, whole=weights.shape[2] == block.n_rows
            )

    def targets_of(self, rows: Rows, *, whole: bool) -> heads.Targets:
        """Return the keys that belong to each share (a measure of the weight on some keys).

        `whole` says whether these are all rows of the layer. Only then is the result kept, for the next layer if its
        rows see the same keys.
        """
        if self._known is not None and whole:
            known_seen, known_targets = self._known
            if torch.equal(known_seen, rows.seen):
                return known_targets
        targets = heads.targets_of(rows, [self.computation(number) for number in self.at["keys"]])
        if whole:
            self._known = rows.seen, targets
        return targets

    def computation(self, number: int) -> Callable[[Any], Any]:
        """Return the computation of a measure.

        Raises RecordError: it has none.
        """
        measure = self.measures[number]
        if measure.compute is None:
            raise RecordError(
                f"the measure {measure.name!r} takes {measure.takes} and computes nothing"
            )
        return measure.compute

    @torch.inference_mode()
    def result(self) -> BatchMeasures:
        """Return the measures of the batch.

        Raises NoAttentionError: the layers have different numbers of heads.
        """
        layers = [layer.done(self) for layer in self._layers]
        if len({layer.sums.shape for layer in layers}) > 1:
            numbers = ", ".join(str(layer.sums.shape[1]) for layer in layers)
            raise NoAttentionError(
                f"the layers of this model have different numbers of heads ({numbers})"
            )
        sums, counts, corner, seen = (
            torch.stack([getattr(layer, name) for layer in layers], dim=1).cpu().numpy()
            for name in ("sums", "counts", "corner", "corner_seen")
        )
        first = layers[0]
        rows_of_layers = [torch.cat(layer.kept, dim=2) for layer in layers if layer.kept]
        rows: tuple[Tensor, ...] = ()
        if rows_of_layers:
            rows = torch.cat(rows_of_layers, dim=1), torch.cat(first.kept_counted, dim=1)
        return BatchMeasures(
            sums=sums,
            counts=counts,
            corner=corner,
            corner_seen=seen,
            fixed=first.fixed.cpu().numpy(),
            fixed_counts=first.fixed_counts.cpu().numpy(),
            rows=rows,
        )


class FindWeights:
    """Finds two weights that measures need: the output projection of each layer, and the word embeddings.

    A projection is known by its input, the context vectors of the heads; the embeddings, by token ids as input.
    """

    def __init__(self) -> None:
        self.handed: dict[int, Float[Tensor, "head d_v small"]] = {}
        """By layer, one matrix R per head such that |v R| is the norm of v after the output projection."""
        self.embeddings: Float[Tensor, "word d"] | None = None
        """The word vectors of the vocabulary, before positions are added; None until they are found."""
        self._layer: Layer | None = None

    def begin(self, batch: Batch) -> None:
        """Read the token ids of the first sentence."""
        self._ids = [token.id for token in batch.sentences[0].tokens]

    def observe(self, block: Block) -> None:
        """Ignore blocks of weights."""

    def observe_layer(self, layer: Layer) -> None:
        """Remember the layer: one of the next calls may be its output projection."""
        self._layer = layer

    def observe_call(self, call: Call) -> None:
        """Keep the weight if this call is the output projection or the word embeddings."""
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
        projection = projection_of(call, 0, call.made.shape[2])
        if projection is not None:
            n_heads, d_v = layer.output.shape[2:]
            weight = projection.weight.reshape(n_heads, d_v, -1)  # (H, d_v, D)
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
    numbers: dict[str, int] = {}  # home-built models may have no token ids

    def number(token: Token) -> int:
        return token.id if token.id is not None else numbers.setdefault(token.piece, len(numbers))

    def where(condition: Callable[[int, Token], bool]) -> Bool[Tensor, "batch key"]:
        return _pad(
            [[condition(j, token) for j, token in enumerate(row)] for row in keys],
            real_keys,
            fill=False,
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
        projection, n_keys, n_measures = (
            run.handed.get(layer.number),
            run.marks.keys.shape[1],
            len(run.measures),
        )
        self._scoring, self._is_first = layer.scoring, is_first
        self._lengths = None if projection is None else _lengths(layer, projection)
        zeros = partial(torch.zeros, device=run.marks.keys.device, dtype=torch.float64)
        self.sums, self.counts = zeros(n_batch, n_heads, n_measures), zeros(n_batch, n_measures)
        self._received, self._seen_by, self._n_rows = (
            zeros(n_batch, n_heads, n_keys),
            zeros(n_batch, n_keys),
            zeros(n_batch),
        )
        self.corner = zeros(n_batch, n_heads, CORNER, CORNER, dtype=torch.get_default_dtype())
        self.corner_seen = zeros(n_batch, CORNER, CORNER, dtype=torch.bool)
        self.fixed = zeros(n_batch, len(OFFSETS), run.shares.stop)
        self.fixed_counts = zeros(n_batch, run.shares.stop)
        self.kept: list[Tensor] = []
        self.kept_counted: list[Tensor] = []
        # Every `_step`-th row is kept; -(-a // b) rounds up, so that no more than `MOST_PAIRS` pairs are kept.
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
        """Measure some rows of the layer.

        `first` is the index of the first row; `whole` says whether these are all rows of the layer.
        """
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
            # Keep the rows 0, step, 2 step, ... of the sentence; this block begins at row `first`.
            kept = slice(-first % self._step, None, self._step)
            self.kept.append(rows.weights[:, :, kept].clone())
            self.kept_counted.append(rows.counted[:, kept])

    def _add_shares(
        self,
        columns: list[int],
        sums: Float[Tensor, "batch head some"],
        counts: Float[Tensor, "batch some"],
    ) -> None:
        """Add the sums and counts of shares to these columns of the measures."""
        self.sums[:, :, columns] += sums
        self.counts[:, columns] += counts

    def _add_corner(self, rows: Rows) -> None:
        first, last = rows.first_row, min(CORNER, rows.first_row + rows.weights.shape[2])
        n_keys = min(CORNER, rows.weights.shape[3])
        if first < last:
            self.corner[:, :, first:last, :n_keys] = rows.weights[:, :, : last - first, :n_keys]
            self.corner_seen[:, first:last, :n_keys] = rows.seen[:, : last - first, :n_keys]

    def done(self, run: MeasureHeads) -> _OneLayer:
        """Add the measures of the weight that each key received from all rows, and return the layer."""
        received = Received(weights=self._received, seen_by=self._seen_by, n_rows=self._n_rows)
        for number in run.at["received"]:
            self.sums[:, :, number], self.counts[:, number] = run.computation(number)(received)
        return self


def _orders(real: Bool[Tensor, "batch key"], seeds: Sequence[int]) -> Int[Tensor, "batch key"]:
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


def _lengths(
    layer: Layer, projection: Float[Tensor, "head d_v small"]
) -> Float[Tensor, "batch head key"]:
    """Return the norm of each key's value through its head's part of the output projection."""
    value = for_each_head(layer.value.to(projection.dtype), projection.shape[0])
    lengths: Tensor = torch.linalg.vector_norm(torch.matmul(value, projection), dim=-1)
    return lengths


def _pad(rows: Sequence[Sequence[int]], real: Bool[Tensor, "batch token"], *, fill: int) -> Tensor:
    width = real.shape[1]
    return torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows], device=real.device)


# Links between words.


class FindLinks:
    """Finds out, for each link between words of a batch, which heads would have guessed it.

    A head's guess for a word is the other word that this word attends to most; in the opposite direction, the other
    word that attends most to this word. Words that share a token count as one unit. In a causal model a word attends
    to earlier words only: a later word is never the guess, so its link counts as not found.
    """

    def __init__(self, annotated: Sequence[Annotation | None]) -> None:
        self._annotated = annotated

    def begin(self, batch: Batch) -> None:
        """Match the words of a new batch with its tokens and forget the last batch."""
        self._marks = marks_of(batch)
        annotations = [
            ((), ()) if item is None else (item.words, item.links) for item in self._annotated
        ]
        aligned = [
            align(item.tokens, words)
            for item, (words, _) in zip(batch.sentences, annotations, strict=True)
        ]
        self._to = _assign([tokens for tokens, _ in aligned], batch.real)  # (B, K, U)
        # The mean over the queries of a unit, so that each unit has weights that sum to 1: (B, U, Q)
        self._from = (self._to / self._to.sum(dim=1, keepdim=True).clamp_min(1)).transpose(1, 2)
        self._places = [
            [(units[link.query], units[link.key]) for link in links]
            for (_, units), (_, links) in zip(aligned, annotations, strict=True)
        ]
        self._hits: list[Bool[Tensor, "link 2 head"]] = []
        self._is_open = False

    def observe_layer(self, layer: Layer) -> None:
        """Begin a new layer."""
        self._close()
        self._is_open, self._scoring = True, layer.scoring
        n_units = self._to.shape[2]
        dtype = torch.promote_types(layer.query.dtype, torch.float32)
        self._words = torch.zeros(
            *layer.query.shape[:2], n_units, n_units, dtype=dtype, device=self._to.device
        )

    def observe(self, block: Block) -> None:
        """Add the weights of these rows to the word-to-word attention."""
        first, n_rows, n_keys = block.first_row, *block.weights.shape[2:]
        visible = visible_keys(self._scoring, first, first + n_rows, n_keys, block.weights.device)
        weights = heads.rows_of(block.weights, visible[:, 0], first, self._marks).weights
        to = self._to.to(weights.dtype)
        mean = self._from[:, :, first : first + n_rows].to(weights.dtype)
        self._words += mean[:, None] @ (weights @ to[:, None])  # (B, H, U, U)

    def result(self) -> tuple[LinkHits | None, ...]:
        """Return the links that each head finds in each sentence; None for a sentence without annotation."""
        self._close()
        hits = torch.stack(self._hits, dim=2).cpu().numpy()  # (link, 2, L, H)
        links_found: list[LinkHits | None] = []
        first_link = 0
        for annotation, places in zip(self._annotated, self._places, strict=True):
            if annotation is None:
                links_found.append(None)
                continue
            matched_links = [
                link
                for link, place in zip(annotation.links, places, strict=True)
                if None not in place
            ]
            links_found.append(
                LinkHits(
                    names=tuple(link.relation for link in matched_links),
                    hits=hits[first_link : first_link + len(matched_links)],
                    distances=np.array(
                        [link.key - link.query for link in matched_links], dtype=np.int64
                    ),
                    lost=tuple(
                        link.relation
                        for link, place in zip(annotation.links, places, strict=True)
                        if None in place
                    ),
                )
            )
            first_link += len(matched_links)
        return tuple(links_found)

    @torch.inference_mode()
    def _close(self) -> None:
        """Compare the guesses of the layer that has just ended with the links of the sentences."""
        if not self._is_open:
            return
        self._is_open = False
        diagonal = torch.eye(self._words.shape[2], dtype=torch.bool, device=self._words.device)
        words = self._words.masked_fill(diagonal, 0.0)
        link_places = [
            (row, *place)
            for row, places in enumerate(self._places)
            for place in places
            if None not in place
        ]
        batch, query, key = (
            torch.tensor(link_places, dtype=torch.long, device=words.device).reshape(-1, 3).T
        )
        directions = []
        # The maximum over keys (3) is the guess of the query; over queries (2), the guess in the opposite direction.
        for dim in (3, 2):
            largest = words.max(dim=dim)  # (B, H, U)
            # (link, H)
            guess = largest.indices[batch, :, query]
            weight = largest.values[batch, :, query]
            # A head that puts no weight on any other word makes no guess.
            directions.append((guess == key[:, None]) & (weight > 0))
        self._hits.append(torch.stack(directions, dim=1))


def align(
    tokens: Sequence[Token], words: Sequence[tuple[int, int]]
) -> tuple[list[int | None], list[int | None]]:
    """Match tokens with words by the characters that they have in common.

    A unit is a word with its tokens, or several words that share a token, as in "didn't". Returns the unit of each
    token, which is None for special tokens and tokens of no word; and the unit of each word, which is None if the word
    has no token or shares its tokens with another word.
    """
    covered = [_covered(token, words) for token in tokens]
    # The unit of a word is the first word that it shares tokens with; such words are neighbours.
    unit = list(range(len(words)))
    for word_range in sorted(filter(None, covered), key=lambda word_range: word_range.start):
        for word in word_range:
            unit[word] = min(unit[word], unit[word_range.start])
    has_token = {word for word_range in covered for word in word_range}
    firsts = sorted({unit[word] for word in has_token})
    numbers = {first: number for number, first in enumerate(firsts)}
    of_tokens = [numbers[unit[word_range.start]] if word_range else None for word_range in covered]
    of_words = [
        numbers[first_word] if word in has_token and unit.count(first_word) == 1 else None
        for word, first_word in enumerate(unit)
    ]
    return of_tokens, of_words


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
