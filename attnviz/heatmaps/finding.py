"""The link of a record that stands out most, which every view of it names first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float

from attnviz import text
from attnviz.attention import Attention, Token
from attnviz.text.display import clip
from attnviz.text.messages import Phrase, _

# Added to the standard deviation of a head's weights, so that a head whose weights hardly differ is not chosen.
LEAST_DEVIATION = 0.02
# How the finding was chosen; `find` says it exactly.
CHOSEN = _("Named first: the clearest link between two content words")
LONGEST_WORD = 24  # in the sentence, in characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A query and the key that it attends to most, in one head."""

    layer: int
    head: int
    query: int  # the index of the row
    key: int  # the index of the column
    weight: float
    words: tuple[str, str]  # the query and the key

    @property
    def sentence(self) -> Phrase:
        """The finding in words, such as “it” attends most to “animal” (77%): layer 1, head 3."""
        query, key = (clip(word, LONGEST_WORD) for word in self.words)
        sentence = _(
            "“{query}” attends most to “{key}” ({percent:.0f}%): layer {layer}, head {head}"
        )
        return sentence.format(
            query=query, key=key, percent=100 * self.weight, layer=self.layer, head=self.head
        )


def find(record: Attention) -> Finding | None:
    """Return the link that stands out most among those to the largest weight of a row; None for a pooled record.

    These are links between two content words, or else between two words, or else between any tokens. The one that
    stands out most is furthest above the mean weight of such links in its head, in standard deviations.
    """
    if record.cell > 1:
        return None
    weights = record.weights
    largest = weights.max(axis=-1, keepdims=True)
    is_visible = weights.max(axis=(0, 1)) > 0
    for is_chosen in (_is_content_word, _is_word, _is_token):
        queries = [is_chosen(token) for token in _first_pieces(record.query_tokens)]
        keys = [is_chosen(token) for token in _first_pieces(record.key_tokens)]
        links = np.outer(queries, keys) & is_visible & ~_is_same_word(record)
        places = np.nonzero((weights == largest) & links)
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
                row + record.first[0] == column + record.first[1]
                or (query.word is not None and query.word == key.word)
                for column, key in enumerate(record.key_tokens)
            ]
            for row, query in enumerate(record.query_tokens)
        ]
    )


def _is_content_word(token: Token | None) -> bool:
    """Return whether a token begins a word that is no function word; pronouns count as content words."""
    return token is not None and _is_word(token) and _plain(token) not in function_words()


def _is_word(token: Token | None) -> bool:
    """Return whether a token begins a word: it is neither punctuation nor added by the tokenizer."""
    return token is not None and not token.special and any(map(str.isalnum, token.text))


def _is_token(token: Token | None) -> bool:
    return token is not None


def _plain(token: Token) -> str:
    return token.text.strip("·.,!?;:\"'’“”()").lower()


@cache
def function_words() -> frozenset[str]:
    """Return the words, English and Korean, that carry grammar more than meaning, such as articles and prepositions."""
    path = Path(text.__file__).parent / "function_words.txt"
    return frozenset(path.read_text(encoding="utf-8").split())
