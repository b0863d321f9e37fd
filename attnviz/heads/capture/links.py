"""Word-level attention built while rows stream by, and which links between words each head finds."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnviz.attention import Token
from attnviz.capture.observers import Batch, Block
from attnviz.capture.stream import Layer, visible_keys
from attnviz.heads.capture.measure import marks_of
from attnviz.heads.capture.rows import rows_of
from attnviz.heads.relations import LinkHits
from attnviz.heads.settings import Specials
from attnviz.text.corpus import Annotation, Link


@dataclass(frozen=True, slots=True, kw_only=True)
class WordUnits:
    """Tokens and words of a sentence: a unit is a word with its tokens, or words that share one, such as "didn't"."""

    tokens: tuple[int | None, ...]  # of each token its unit; None for special tokens and those of no word
    words: tuple[int | None, ...]  # of each word its unit; None where it has no token, or none of its own


class FindLinks:
    """Finds out, for each link between words of a batch, which heads would have guessed it.

    A head's guess for a word is the other word that this word looks at most; the other way round, the other word
    that looks at this word most. Words that share a token count as one there. In a causal model a word looks at
    earlier ones only: a later one is never its guess, and counts as not found. Without special tokens rows are
    scaled as if these were masked.
    """

    def __init__(self, annotated: Sequence[Annotation | None], specials: Specials = "keep") -> None:
        self._annotated, self._specials = annotated, specials

    def begin(self, batch: Batch) -> None:
        """Match the words of a new batch with its tokens, and forget the last one."""
        self._marks = marks_of(batch, self._specials)
        self._aligned = [
            WordUnits(tokens=(None,) * len(sentence.tokens), words=())
            if one is None
            else align(sentence.tokens, one.words)
            for sentence, one in zip(batch.sentences, self._annotated, strict=True)
        ]
        self._to = _assign([one.tokens for one in self._aligned], batch.real)  # (B, K, U)
        self._from = (self._to / self._to.sum(dim=1, keepdim=True).clamp_min(1)).transpose(1, 2)  # (B, U, Q)
        self._links = [
            [(sentence, units[link.query], units[link.key]) for link in one.links if _has_units(units, link)]
            for sentence, one, units in self._sentences()
        ]
        self._hits: list[Bool[Tensor, "link 2 head"]] = []
        self._is_open = False

    def observe_layer(self, layer: Layer) -> None:
        """A new layer begins."""
        self._close()
        self._is_open = True
        self._scoring = layer.scoring
        n_units = self._to.shape[2]
        dtype = torch.promote_types(layer.query.dtype, torch.float32)
        self._words = torch.zeros(*layer.query.shape[:2], n_units, n_units, dtype=dtype, device=self._to.device)

    def observe(self, block: Block) -> None:
        """Add what these rows give to words."""
        first, n_rows, n_keys = block.first_row, *block.weights.shape[2:]
        visible = visible_keys(self._scoring, first, first + n_rows, n_keys, block.weights.device)
        weights = rows_of(block.weights, visible[:, 0], first, self._marks).weights
        to, mean = self._to.to(weights.dtype), self._from[:, :, first : first + n_rows].to(weights.dtype)
        self._words += mean[:, None] @ (weights @ to[:, None])  # (B, H, U, U)

    def result(self) -> tuple[LinkHits | None, ...]:
        """Which links each head finds, for each sentence; None where it has no words given."""
        self._close()
        hits = torch.stack(self._hits, dim=2).cpu().numpy()  # (link, 2, L, H)
        found: list[LinkHits | None] = [None] * len(self._annotated)
        first = 0
        for (sentence, one, units), links in zip(self._sentences(), self._links, strict=True):
            kept = [link for link in one.links if _has_units(units, link)]
            found[sentence] = LinkHits(
                names=tuple(link.relation for link in kept), hits=hits[first : first + len(links)],
                distances=np.array([link.key - link.query for link in kept], dtype=np.int64),
                lost=tuple(link.relation for link in one.links if not _has_units(units, link)),
            )  # fmt: skip
            first += len(links)
        return tuple(found)

    def _sentences(self) -> list[tuple[int, Annotation, tuple[int | None, ...]]]:
        """The sentences that have words given: number, what is given, the unit of each word."""
        return [
            (number, one, aligned.words)
            for number, (one, aligned) in enumerate(zip(self._annotated, self._aligned, strict=True))
            if one is not None
        ]

    @torch.inference_mode()
    def _close(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        itself = torch.eye(self._words.shape[2], dtype=torch.bool, device=self._words.device)
        words = self._words.masked_fill(itself, 0.0)
        flat = [link for links in self._links for link in links]
        batch, query, key = torch.tensor(flat, dtype=torch.long, device=words.device).reshape(-1, 3).T
        ways = []
        for dim in (3, 2):
            most = words.max(dim=dim)  # (B, H, U)
            guess, weight = most.indices[batch, :, query], most.values[batch, :, query]  # (link, H)
            ways.append((guess == key[:, None]) & (weight > 0))  # no weight on any other word: no guess
        self._hits.append(torch.stack(ways, dim=1))


def align(tokens: Sequence[Token], words: Sequence[tuple[int, int]]) -> WordUnits:
    """Match tokens with words by the characters that they have in common."""
    starts, ends = [start for start, _ in words], [end for _, end in words]
    covered = [
        range(0)
        if token.special or token.span is None or token.segment or token.span[0] >= token.span[1]
        else range(bisect_right(ends, token.span[0]), bisect_left(starts, token.span[1]))
        for token in tokens
    ]
    unit = list(range(len(words)))  # of each word, the first of those it shares tokens with: they stand in a row
    for several in sorted((several for several in covered if several), key=lambda several: several.start):
        for word in several:
            unit[word] = min(unit[word], unit[several.start])
    has_token = {word for several in covered for word in several}
    numbers = {first: number for number, first in enumerate(sorted({unit[word] for word in has_token}))}
    return WordUnits(
        tokens=tuple(numbers[unit[several.start]] if several else None for several in covered),
        words=tuple(
            numbers[unit[word]] if word in has_token and unit.count(unit[word]) == 1 else None
            for word in range(len(words))
        ),
    )


def _has_units(units: Sequence[int | None], link: Link) -> bool:
    return units[link.query] is not None and units[link.key] is not None


def _assign(
    units: Sequence[Sequence[int | None]], real: Bool[Tensor, "batch token"]
) -> Float[Tensor, "batch token unit"]:
    places = [(b, t, unit) for b, row in enumerate(units) for t, unit in enumerate(row) if unit is not None]
    n_units = 1 + max((unit for _, _, unit in places), default=0)
    assigned = torch.zeros(*real.shape, n_units, device=real.device)
    batch, token, unit = torch.tensor(places, dtype=torch.long, device=real.device).reshape(-1, 3).T
    assigned[batch, token, unit] = 1
    return assigned
