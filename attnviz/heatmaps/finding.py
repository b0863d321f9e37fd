"""The link of a record that stands out most, which every view of it names first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

import numpy as np
from jaxtyping import Bool, Float

from attnviz import text
from attnviz.attention import Attention, MeanAxis, Token
from attnviz.text.display import clip
from attnviz.text.messages import N_, _

# Added to the standard deviation of a head's weights, so that a head whose weights hardly differ is not chosen.
LEAST_DEVIATION = 0.02
LONGEST_WORD = 24  # in the sentence, in characters
NO_CHANGE = N_("No weight differs")  # of a difference


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A query and the key that it attends to most, in one head."""

    layer: int
    head: int
    query: int  # the index of the row
    key: int  # the index of the column
    weight: float
    words: tuple[str, str]  # the query and the key
    # Whether the query is the token that was chosen in this row, as in a generated text.
    is_step: bool = False

    @property
    def sentence(self) -> str:
        """The finding in words, such as “it” attends most to “animal” (77%): layer 1, head 3."""
        query, key = (clip(word, LONGEST_WORD) for word in self.words)
        if self.is_step:
            sentence = _(
                "“{query}” was chosen while attending most to “{key}” ({percent:.0f}%): "
                "layer {layer}, head {head}"
            )
        else:
            sentence = _(
                "“{query}” attends most to “{key}” ({percent:.0f}%): layer {layer}, head {head}"
            )
        return sentence.format(
            query=query, key=key, percent=100 * self.weight, layer=self.layer, head=self.head
        )

    @property
    def reason(self) -> str:
        """How the finding was chosen; `find` says it exactly."""
        return _("Named first: the clearest link between two content words")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A query whose attention to a key differs between two records, in one head."""

    layer: int
    head: int
    query: int  # the index of the row of the difference
    key: int  # the index of the column
    before: float  # the weight in the first record
    after: float  # the weight in the second record
    words: tuple[str, str]  # the query and the key
    averaged: tuple[MeanAxis, ...] = ()  # the axes over which both weights are a mean
    # The key that the query attends to most in the first record, and in the second, with the weights, where it is
    # another one; None where it is the same.
    moved: tuple[tuple[str, float], tuple[str, float]] | None = None
    replaced: str = ""  # the words that stand for one another, such as ``wide → tired``; named before the change

    @property
    def difference(self) -> float:
        """The weight in the second record minus that in the first."""
        return self.after - self.before

    @property
    def sentence(self) -> str:
        """The change in words, such as “it” moves from “street” (97%) to “tired” (100%): layer 0, head 5."""
        start = f"{self.replaced}: " if self.replaced else ""
        if self.moved is not None:
            (old, old_weight), (new, new_weight) = self.moved
            sentence = _("“{query}” moves from “{old}” ({before}) to “{new}” ({after}): {place}")
            return start + sentence.format(
                query=clip(self.words[0], LONGEST_WORD),
                old=clip(old, LONGEST_WORD),
                new=clip(new, LONGEST_WORD),
                before=f"{old_weight:.0%}",
                after=f"{new_weight:.0%}",
                place=self.place,
            )
        sentence = (
            _("“{query}” attends less to “{key}” ({before} → {after}): {place}")
            if self.difference < 0
            else _("“{query}” attends more to “{key}” ({before} → {after}): {place}")
        )
        query, key = (clip(word, LONGEST_WORD) for word in self.words)
        before, after = percentages(self.before, self.after)
        return start + sentence.format(
            query=query, key=key, before=before, after=after, place=self.place
        )

    @property
    def place(self) -> str:
        """The head in words, or the axes of the mean."""
        if len(self.averaged) == 2:
            return _("mean of all heads")
        if "heads" in self.averaged:
            return _("layer {n}, mean").format(n=self.layer)
        if "layers" in self.averaged:
            return _("head {n}, mean").format(n=self.head)
        return _("layer {layer}, head {head}").format(layer=self.layer, head=self.head)


def percentages(before: float, after: float) -> tuple[str, str]:
    """Return two weights in percent, with as many decimals (at most 3) as tell them apart."""
    for decimals in range(4):
        texts = f"{before:.{decimals}%}", f"{after:.{decimals}%}"
        if texts[0] != texts[1]:
            break
    return texts


def find(record: Attention) -> Finding | None:
    """Return the link that stands out most among those to the largest weight of a row; None for a pooled record.

    These are links between two content words, or else between two words, or else between any tokens. The one that
    stands out most is furthest above the mean weight of such links in its head, in standard deviations.

    There is none for a mean of heads or layers, whose weights are no head's own.
    """
    if record.cell > 1 or record.averaged:
        return None
    return _clearest(record, (_is_content_word, _is_word, lambda token: token is not None))


Finder: TypeAlias = Callable[[Attention], Finding | None]
"""`find`, or one that remembers what it found, so that a command with several pictures looks only once."""


def _clearest(
    record: Attention, choices: Sequence[Callable[[Token | None], bool]]
) -> Finding | None:
    """Return the link that stands out most between tokens of the first choice that has any; None if none has."""
    weights = record.weights
    largest = weights.max(axis=-1, keepdims=True)
    is_largest = weights == largest
    is_visible = weights.max(axis=(0, 1)) > 0
    for is_chosen in choices:
        queries = [is_chosen(token) for token in _first_pieces(record.query_tokens)]
        keys = [is_chosen(token) for token in _first_pieces(record.key_tokens)]
        links = np.outer(queries, keys) & is_visible & ~_is_same_word(record)
        places = np.nonzero(is_largest & links)
        if len(places[0]):
            break
    else:
        return None
    means, deviations = _statistics(weights, links)
    layers_heads = places[:2]
    standing = (weights[places] - means[layers_heads]) / (
        deviations[layers_heads] + LEAST_DEVIATION
    )
    layer, head, query, key = (int(indices[standing.argmax()]) for indices in places)
    return Finding(
        layer=record.layers[layer],
        head=record.heads[head],
        query=query,
        key=key,
        weight=float(weights[layer, head, query, key]),
        words=(record.query_tokens[query].text, record.key_tokens[key].text),
        is_step=record.by_step,
    )


def _statistics(
    weights: Float[np.ndarray, "layer head query key"], links: Bool[np.ndarray, "query key"]
) -> tuple[Float[np.ndarray, "layer head"], Float[np.ndarray, "layer head"]]:
    """Return the mean and the standard deviation of these weights in each head."""
    mask = links.astype(weights.dtype)
    means = np.einsum("lhqk,qk->lh", weights, mask) / mask.sum()
    squares = np.einsum("lhqk,lhqk,qk->lh", weights, weights, mask) / mask.sum()
    return means, np.sqrt(np.maximum(squares - means**2, 0))


def _first_pieces(tokens: Sequence[Token]) -> list[Token | None]:
    """Return the tokens, with None in the place of each piece that continues a word."""
    pieces: list[Token | None] = []
    word = None
    for token in tokens:
        is_first = token.word is None or token.word != word
        pieces.append(token if is_first else None)
        word = token.word
    return pieces


def _is_same_word(record: Attention) -> Bool[np.ndarray, "query key"]:
    """Return which queries and keys are pieces of one word; none are in cross-attention."""
    shape = len(record.query_tokens), len(record.key_tokens)
    if record.kind == "cross":
        return np.zeros(shape, dtype=bool)
    return np.array(
        [
            [
                row == column or (query.word is not None and query.word == key.word)
                for column, key in zip(record.key_numbers, record.key_tokens, strict=True)
            ]
            for row, query in enumerate(record.query_tokens, start=record.first[0])
        ]
    )


def _is_content_word(token: Token | None) -> bool:
    """Return whether a token begins a word that is no function word; pronouns count as content words."""
    if token is None or not _is_word(token):
        return False
    return token.text.strip("·.,!?;:\"'’“”()").lower() not in function_words()


def _is_word(token: Token | None) -> bool:
    """Return whether a token begins a word: it is neither punctuation nor added by the tokenizer."""
    return token is not None and not token.special and any(map(str.isalnum, token.text))


@cache
def function_words() -> frozenset[str]:
    """Return the words, English and Korean, that carry grammar more than meaning, such as articles and prepositions."""
    path = Path(text.__file__).parent / "function_words.txt"
    return frozenset(path.read_text(encoding="utf-8").split())
