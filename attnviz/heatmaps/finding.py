"""The link of a record that stands out most, which every view of it names first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

import numpy as np
from jaxtyping import Bool, Float, Int

from attnviz import text
from attnviz.attention import Attention, MeanAxis, Token, spans
from attnviz.text.display import clip, percent, with_particles
from attnviz.text.messages import N_, _

# Added to the standard deviation of a head's weights, so that a head whose weights hardly differ is not chosen.
LEAST_DEVIATION = 0.02
# A head attends by position if its largest weights stand at one offset in at least this share of the rows, ...
ONE_OFFSET = 0.5
ONE_KEY = 0.8  # ... and to one token if they stand at it in at least this share
EVEN_SHARES = 2  # a link has at least this many times the attention that each key would have evenly
LEAST_ROWS = 3  # with a choice of keys, for a head to have a rule of position that is worth saying
LONGEST_WORD = 24  # in the sentence, in characters
NO_CHANGE = N_("No weight differs")  # of a difference
NO_LINK = N_("No clear link between two words: try a longer sentence, or one head, --head 1.3")
MOST_AGREEING = 3  # heads that are named because they agree
OFFSETS = {
    -1: N_("the token before them"),
    0: N_("themselves"),
    1: N_("the token after them"),
}


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
        """The finding in words, such as “it” attends most to “animal”: 77% (layer 1, head 3)."""
        if self.is_step:
            sentence = _(
                "“{query}” was chosen while attending most to “{key}”: {percent:.0f}% "
                "(layer {layer}, head {head})"
            )
        else:
            sentence = _(
                "“{query}” attends most to “{key}”: {percent:.0f}% (layer {layer}, head {head})"
            )
        query, key = (clip(word, LONGEST_WORD) for word in self.words)
        return with_particles(
            sentence.format(
                query=query, key=key, percent=100 * self.weight, layer=self.layer, head=self.head
            )
        )


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
        query, key = (clip(word, LONGEST_WORD) for word in self.words)
        if self.moved is not None:
            (old, old_weight), (new, new_weight) = self.moved
            sentence = _("“{query}” moves from “{old}” ({before}) to “{new}” ({after}): {place}")
            old, new = clip(old, LONGEST_WORD), clip(new, LONGEST_WORD)
            before, after = f"{old_weight:.0%}", f"{new_weight:.0%}"
            said = sentence.format(
                query=query, old=old, new=new, before=before, after=after, place=self.place
            )
        else:
            sentence = (
                _("“{query}” attends less to “{key}” ({before} → {after}): {place}")
                if self.difference < 0
                else _("“{query}” attends more to “{key}” ({before} → {after}): {place}")
            )
            before, after = percentages(self.before, self.after)
            said = sentence.format(
                query=query, key=key, before=before, after=after, place=self.place
            )
        return f"{self.replaced}: {said}" if self.replaced else said

    @property
    def place(self) -> str:
        """The head in words, or the axes of the mean."""
        if len(self.averaged) == 2:
            return _("mean of the heads")
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


def find(record: Attention, query: int | None = None) -> Finding | None:
    """Return the clearest link between two words, or of the word of row `query`; None if there is no clear one.

    A link goes from a word to the word that it attends to most: two content words or else any two words. It has at
    least twice an even share of the attention of its row. Heads that attend by position, or to one token from
    everywhere, name nothing. The clearest link is furthest above the mean weight of such links in its head, in standard
    deviations.

    There is none in a pooled record, or in a mean of heads or layers, whose weights are no head's own.
    """
    if record.cell > 1 or record.averaged:
        return None
    weights, is_seen = record.weights, _is_seen(record)
    # argmax copies what is read-only, as a record's weights are: one head at a time. (layer, head, query)
    keys = np.array([[head.argmax(axis=-1) for head in heads] for heads in weights])
    largest = np.take_along_axis(weights, keys[..., None], axis=-1)[..., 0]
    # What a row has left if sinks or special tokens are hidden.
    even_shares = weights.sum(axis=-1) / np.maximum(is_seen.sum(axis=1), 1)
    # With two keys, twice an even share is all: rounding must not decide.
    is_clear = largest > EVEN_SHARES * even_shares - 1e-6
    is_clear[_attends_by_position(record, keys, is_seen)] = False
    if query is not None:
        is_clear &= np.arange(is_clear.shape[2]) == query
    for is_chosen in (_is_content_word, _is_word):
        queries = [is_chosen(token) for token in _first_pieces(record.query_tokens)]
        columns = [is_chosen(token) for token in _first_pieces(record.key_tokens)]
        links = np.outer(queries, columns) & is_seen & ~_is_same_word(record)
        places = np.argwhere(is_clear & links[np.arange(len(links)), keys])
        if len(places):
            return _clearest(record, places, links)
    return None


Finder: TypeAlias = Callable[[Attention, int | None], Finding | None]


def other_heads(record: Attention, finding: Finding) -> str:
    """Return which other heads give most of this query's attention to the same key, and what the others attend to.

    Such as "12 of 18 heads agree: 1.5 88%, 2.3 82% …; layer 0: street or tired". Special tokens are left out.
    """
    is_word = np.array([not token.special for token in record.key_tokens])
    rows = np.where(is_word, record.weights[:, :, finding.query], -1)  # (layer, head, key)
    largest = rows.argmax(axis=-1)
    agrees = largest == finding.key
    n_agree, n_heads = int(agrees.sum()), agrees.size
    if n_agree == 1:
        said = _("None of the other {n} heads agrees").format(n=n_heads - 1)
    else:
        places = [
            (float(rows[layer, head, finding.key]), f"{record.layers[layer]}.{record.heads[head]}")
            for layer, head in np.argwhere(agrees)
        ]
        own = f"{finding.layer}.{finding.head}"
        others = [f"{name} {share:.0%}" for share, name in sorted(places)[::-1] if name != own]
        listed = ", ".join(others[:MOST_AGREEING]) + (" …" if len(others) > MOST_AGREEING else "")
        words = _("{n} of {n_heads} heads agree: {listed}")
        said = words.format(n=n_agree, n_heads=n_heads, listed=listed)
    # the layers in which most heads attend to something else
    differing = np.flatnonzero(agrees.mean(axis=1) < 1 / 2)
    keys = Counter(int(key) for layer in differing for key in largest[layer] if key != finding.key)
    if not keys:
        return said
    texts = [clip(record.key_tokens[key].text, LONGEST_WORD) for key, _n in keys.most_common(2)]
    numbers = [record.layers[layer] for layer in differing]
    if len(numbers) == len(record.layers):
        where = _("the others")
    elif len(numbers) == 1:
        where = _("layer {n}").format(n=numbers[0])
    else:
        where = _("layers {numbers}").format(numbers=spans(numbers))
    either = _(" or ")
    return f"{said}; {where}: {either.join(texts)}"


def head_sentence(record: Attention) -> str:
    """Return what the only head of a record does, where no link is named: its rule of position, if it has one."""
    is_seen = _is_seen(record)
    rows = np.flatnonzero(is_seen.sum(axis=1) > 1)
    largest = record.weights[0, 0].argmax(axis=-1)[rows]
    place = _("layer {layer}, head {head}").format(layer=record.layers[0], head=record.heads[0])
    if len(rows) >= LEAST_ROWS:
        offsets = np.array(record.key_numbers)[largest] - record.first[0] - rows
        offset, n_offset = Counter(offsets.tolist()).most_common(1)[0]
        key, n_key = Counter(largest.tolist()).most_common(1)[0]
        if n_key >= ONE_KEY * len(rows):
            said = _("{share} of the tokens attend most to “{key}” ({place})")
            word = clip(record.key_tokens[key].text, LONGEST_WORD)
            text = said.format(share=percent(n_key / len(rows)), key=word, place=place)
            return with_particles(text)
        if record.kind != "cross" and n_offset > len(rows) / 2:
            if offset in OFFSETS:
                where = _(OFFSETS[offset])
            else:
                after = _("the token {n} places after them")
                before = _("the token {n} places before them")
                where = (after if offset > 0 else before).format(n=abs(offset))
            said = _("{share} of the tokens attend most to {where} ({place})")
            text = said.format(share=percent(n_offset / len(rows)), where=where, place=place)
            return with_particles(text)
    return _("No clear link between two words ({place})").format(place=place)


def _is_seen(record: Attention) -> Bool[np.ndarray, "query key"]:
    """Return which keys each query may attend to: under a causal mask, those that are not after it."""
    shape = record.weights.shape[2:]
    if record.kind != "decoder":
        return np.ones(shape, dtype=bool)
    query_numbers = np.arange(record.first[0], record.first[0] + shape[0])
    is_earlier = np.array(record.key_numbers)[None] <= query_numbers[:, None]
    return np.asarray(is_earlier | (record.weights.max(axis=(0, 1)) > 0))


def _attends_by_position(
    record: Attention,
    keys: Int[np.ndarray, "layer head query"],
    is_seen: Bool[np.ndarray, "query key"],
) -> Bool[np.ndarray, "layer head"]:
    """Return which heads attend to a fixed offset or to one key, whatever the words are.

    `keys` are the keys that the queries attend to most. In cross-attention an offset is no rule of position: words of
    two languages often stand in the same order.
    """
    rows = np.flatnonzero(is_seen.sum(axis=1) > 1)
    by_key = _largest_share(keys[..., rows]) >= ONE_KEY
    if record.kind == "cross":
        return by_key
    numbers = np.array(record.key_numbers)  # sinks that are left out leave gaps
    return by_key | (_largest_share(numbers[keys[..., rows]] - rows) >= ONE_OFFSET)


def _largest_share(numbers: Int[np.ndarray, "layer head row"]) -> Float[np.ndarray, "layer head"]:
    """Return the share of rows that have the most frequent number of a head; 0 without rows."""
    n_layers, n_heads, n_rows = numbers.shape
    most = [
        np.bincount(head - head.min(initial=0)).max(initial=0)
        for head in numbers.reshape(n_layers * n_heads, n_rows)
    ]
    return np.asarray(np.reshape(most, (n_layers, n_heads)) / max(n_rows, 1))


def _clearest(
    record: Attention, places: Int[np.ndarray, "place axis"], links: Bool[np.ndarray, "query key"]
) -> Finding:
    """Return the one of some queries whose largest weight stands out most among the `links` of its head.

    `places` are the layer, the head and the query of each, as indices.
    """
    best, found = -np.inf, places[0]
    for layer, head in np.unique(places[:, :2], axis=0):
        pattern = record.weights[layer, head]
        queries = places[(places[:, :2] == (layer, head)).all(axis=1), 2]
        largest = pattern[queries].max(axis=1)
        of_links = pattern[links]
        standing = (largest.max() - of_links.mean()) / (of_links.std() + LEAST_DEVIATION)
        if standing > best:
            best, found = standing, np.array((layer, head, queries[largest.argmax()]))
    layer, head, query = map(int, found)
    key = int(record.weights[layer, head, query].argmax())
    own_layer, own_head = record.places[layer * len(record.heads) + head]
    return Finding(
        layer=own_layer,
        head=own_head,
        query=query,
        key=key,
        weight=float(record.weights[layer, head, query, key]),
        words=(record.query_tokens[query].text, record.key_tokens[key].text),
        is_step=record.by_step,
    )


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
    if record.kind == "cross":
        return np.zeros(record.weights.shape[2:], dtype=bool)
    rows = np.arange(len(record.query_tokens)) + record.first[0]
    query_words, key_words = (
        np.array([-1 if token.word is None else token.word for token in tokens])
        for tokens in (record.query_tokens, record.key_tokens)
    )
    is_one_word = (query_words[:, None] == key_words) & (key_words >= 0)
    return np.asarray(is_one_word | (rows[:, None] == np.array(record.key_numbers)))


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
