"""Word pieces merged into words, special tokens hidden, and the strongest links of a large head in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from attnviz.attention import POOLED, Attention, Note, Token
from attnviz.errors import SelectionError
from attnviz.text.display import clip, visible
from attnviz.text.messages import Phrase, _, join_phrases

SHOWN = 4  # links that are named

STATED = {
    "entropy": (1, _("entropy {value} nats")),
    "first": (100, _("{value}% on the first token")),
    "self": (100, _("{value}% on itself")),
    "previous": (100, _("{value}% on the token before")),
    "next": (100, _("{value}% on the next")),
    "distance": (1, _("{value} tokens away")),
}
"""How each statistic is told: what it is multiplied by, and the words."""


def merge_words(record: Attention) -> Attention:
    """Merge word pieces into words: attention to a word is the sum over its pieces, attention from it their mean.

    Row sums are unchanged. Source: Clark et al. 2019, "What Does BERT Look At?", section 4.1.

    Raises:
        SelectionError: the record does not say which word a token belongs to, or is pooled.
        SettingsError: it is not a record.
    """
    _expect_tokens(record)
    query_groups, key_groups = word_groups(record.query_tokens), word_groups(record.key_tokens)
    tokens = (*record.query_tokens, *record.key_tokens)
    if all(token.word is None for token in tokens):
        raise SelectionError(
            "word pieces cannot be merged: this record does not say which word each token is of"
        )
    if len(query_groups) + len(key_groups) == len(tokens):
        return record
    weights = np.add.reduceat(
        record.weights, [group[0] for group in key_groups], axis=3, dtype=np.float64
    )
    weights = np.add.reduceat(weights, [group[0] for group in query_groups], axis=2)
    weights /= np.array([len(group) for group in query_groups])[:, None]
    return replace(
        record,
        weights=weights.astype(np.float32),
        query_tokens=merged_tokens(record.query_tokens, query_groups, record),
        key_tokens=merged_tokens(record.key_tokens, key_groups, record),
        notes=(*record.notes, Note("words_merged")),
    )


def hide_special(record: Attention) -> Attention:
    """Leave out rows and columns of special tokens; the other weights stay as the model computed them.

    Rows are not renormalised: what a row lacks is what the model gave to the special tokens.

    Raises:
        SelectionError: there are only special tokens, or the record is pooled.
        SettingsError: it is not a record.
    """
    _expect_tokens(record)
    queries = [i for i, token in enumerate(record.query_tokens) if not token.special]
    keys = [i for i, token in enumerate(record.key_tokens) if not token.special]
    if not queries or not keys:
        raise SelectionError("nothing is left to show: all tokens are special")
    hidden = list(
        dict.fromkeys(
            token.text for token in (*record.query_tokens, *record.key_tokens) if token.special
        )
    )
    if not hidden:
        return record
    return replace(
        record,
        weights=record.weights[:, :, queries][..., keys],
        query_tokens=tuple(record.query_tokens[i] for i in queries),
        key_tokens=tuple(record.key_tokens[i] for i in keys),
        short_rows=tuple(dict.fromkeys((*record.short_rows, "dropped"))),
        notes=(*record.notes, Note.of("specials_hidden", tokens=" ".join(hidden))),
    )


def _expect_tokens(record: Attention) -> None:
    if record.cell > 1:
        raise SelectionError(
            f"{POOLED}: choose a part of its rows and keys, or give it more memory"
        )


def word_groups(tokens: Sequence[Token]) -> list[list[int]]:
    """Return the indices of the tokens, grouped by word."""
    words = [(index,) if token.word is None else token.word for index, token in enumerate(tokens)]
    return [list(group) for _, group in groupby(range(len(tokens)), key=words.__getitem__)]


def merged_tokens(
    tokens: Sequence[Token], groups: Sequence[Sequence[int]], record: Attention
) -> tuple[Token, ...]:
    """Return one token for each word, named as it was typed."""
    return tuple(_merge([tokens[i] for i in group], record) for group in groups)


def _merge(pieces: Sequence[Token], record: Attention) -> Token:
    first, *more = pieces
    if not more:
        return first
    spans = [token.span for token in pieces if token.span is not None]
    typed = (record.text, record.pair or "", record.target or "")[first.segment]
    span = (min(start for start, _ in spans), max(end for _, end in spans)) if spans else None
    text = (
        visible(typed[slice(*span)].strip())
        if span
        else "".join(token.text.lstrip("·") for token in pieces)
    )
    return replace(
        first, text=text, piece="+".join(token.piece for token in pieces), id=None, span=span
    )


def exactly(record: Attention, layer: int, head: int) -> list[Phrase]:
    """Return the strongest links of a large head as text, and the means over queries if it is pooled.

    Links to special tokens and to the query itself are left out; tokens count from 0.
    """
    of = record.exact or record

    def name(tokens: Sequence[Token], at: int, side: int) -> str:
        return f"{clip(tokens[at].text, 12)} ({record.first[side] + at:,})"

    links = ", ".join(
        f"{name(of.query_tokens, query, 0)} → {name(of.key_tokens, key, 1)} {_figure(weight)}"
        for query, key, weight in record.links(layer, head, SHOWN)
    )
    said = [_("Strongest links between tokens: {links}").format(links=links)] if links else []
    if record.exact is not None and record.exact.statistics:
        row, column = record.layers.index(layer), record.heads.index(head)
        means = [
            words.format(value=_figure(values[row][column] * unit))
            for name, values in record.exact.statistics.items()
            for unit, words in [STATED[name]]
            if name != "next" or record.kind != "decoder"
        ]
        listed = join_phrases(means, ", ")
        said.append(_("Each query on average: {listed}").format(listed=listed))
    return said


def _figure(value: float) -> str:
    """Return a number with two or three significant digits."""
    form = ",.0f" if value >= 100 else ".3g" if value > 1 else ".2f" if value >= 0.01 else ".2g"
    return f"{value:{form}}"
