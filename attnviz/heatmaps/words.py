"""Word pieces merged into words, special tokens hidden, and the strongest links of a large head in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from attnviz.attention import POOLED, Attention, Note, Token
from attnviz.errors import SelectionError, SettingsError
from attnviz.text.display import clip, percent, visible
from attnviz.text.messages import N_, _

MOST_LINKS = 4  # that are named
LEAST_SINK = 0.3  # the mean weight above which a key is a sink of a head
SINK_HEADS = 0.25  # the least share of heads in which a key that is left out is a sink

STATISTICS = {
    "entropy": (1, N_("entropy {value} nats")),
    "first": (100, N_("{value}% on the first token")),
    "self": (100, N_("{value}% on itself")),
    "previous": (100, N_("{value}% on the token before")),
    "next": (100, N_("{value}% on the next")),
    "distance": (1, N_("{value} tokens away")),
}
"""For each statistic the factor that it is multiplied by, and the words for it."""


def merge_words(record: Attention) -> Attention:
    """Merge word pieces into words: attention to a word is the sum over its pieces, attention from it their mean.

    Row sums are unchanged. Source: Clark et al. 2019, "What Does BERT Look At?", section 4.1.

    Raises:
        SelectionError: the record does not say which word a token belongs to, or is pooled.
        SettingsError: it is not a record.
    """
    _expect_all_keys(record)
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
    return record.derive(
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
    _expect_all_keys(record)
    queries = [i for i, token in enumerate(record.query_tokens) if not token.special]
    keys = [i for i, token in enumerate(record.key_tokens) if not token.special]
    if not queries or not keys:
        raise SelectionError("nothing is left to show: all tokens are special")
    tokens = (*record.query_tokens, *record.key_tokens)
    hidden = dict.fromkeys(token.text for token in tokens if token.special)
    if not hidden:
        return record
    return record.derive(
        weights=record.weights[:, :, queries][..., keys],
        query_tokens=tuple(record.query_tokens[i] for i in queries),
        key_tokens=tuple(record.key_tokens[i] for i in keys),
        short_rows=tuple(dict.fromkeys((*record.short_rows, "dropped"))),
        notes=(*record.notes, Note.of("specials_hidden", tokens=" ".join(hidden))),
    )


def hide_sinks(record: Attention) -> Attention:
    """Leave out the columns of attention sinks, such as [CLS] or the first token, so that the other weights show.

    In a head, a key is a sink if the rows that see it, at least half of all, give it more than 0.3 of their attention
    on average (Gu et al. 2025, "When Attention Sink Emerges in Language Models"), and more than twice an even share.
    The columns left out are sinks in at least a quarter of the record's heads. Rows are not renormalised, and a note
    says how much of the attention goes to the sinks, or that there is none.

    Raises:
        SelectionError: the record is pooled, or its sinks are left out already.
        SettingsError: it is not a record.
    """
    _expect_all_keys(record)
    weights = record.weights
    is_seen = (weights > 0).any(axis=(0, 1))  # (query, key)
    n_rows = np.maximum(is_seen.sum(axis=0), 1)
    received = weights.sum(axis=2) / n_rows  # (layer, head, key)
    n_keys_of_row = np.maximum(is_seen.sum(axis=1, keepdims=True), 1)
    even_share = (is_seen / n_keys_of_row).sum(axis=0) / n_rows
    is_sink = received > np.maximum(LEAST_SINK, 2 * even_share)
    is_hidden = (is_sink.mean(axis=(0, 1)) >= SINK_HEADS) & (n_rows >= len(record.query_tokens) / 2)
    if not is_hidden.any():
        return record.derive(notes=(*record.notes, Note("no_sinks")))
    hidden = np.flatnonzero(is_hidden).tolist()
    share = weights[..., is_hidden].sum() / weights.sum()
    note = Note.of(
        "sinks_hidden",
        tokens=", ".join(dict.fromkeys(record.key_tokens[key].text for key in hidden)),
        percent=round(100 * float(share)),
    )
    return record.derive(
        weights=weights[..., ~is_hidden],
        key_tokens=tuple(record.key_tokens[key] for key in np.flatnonzero(~is_hidden)),
        hidden_keys=tuple(record.first[1] + key for key in hidden),
        vectors=None,
        short_rows=tuple(dict.fromkeys((*record.short_rows, "dropped"))),
        notes=(*record.notes, note),
    )


def expect_tokens(record: object) -> None:
    """Check that this is a record whose rows and columns are single tokens.

    Raises SettingsError: it is not a record; SelectionError: its tokens are pooled.
    """
    if not isinstance(record, Attention):
        raise SettingsError(
            f"expected a record, as attnviz.attend returns it, not {type(record).__name__}"
        )
    if record.cell > 1:
        raise SelectionError(
            f"{POOLED}: choose a part of its rows and keys, or give it more memory"
        )


def _expect_all_keys(record: Attention) -> None:
    """Check that this is a record of single tokens, whose sinks are still there. Raises as `expect_tokens`."""
    expect_tokens(record)
    if record.hidden_keys:
        raise SelectionError("the sinks of this record are left out already: do that last")


def word_groups(tokens: Sequence[Token]) -> list[list[int]]:
    """Return the indices of the tokens, grouped by word."""
    words = [(index,) if token.word is None else token.word for index, token in enumerate(tokens)]
    return [list(group) for _, group in groupby(range(len(tokens)), key=words.__getitem__)]


def merged_tokens(
    tokens: Sequence[Token], groups: Sequence[Sequence[int]], record: Attention
) -> tuple[Token, ...]:
    """Return one token for each word, named as it was typed if that is known."""
    words = []
    for group in groups:
        first, *others = pieces = [tokens[i] for i in group]
        if others:
            spans = [token.span for token in pieces if token.span is not None]
            span = (
                (min(start for start, _ in spans), max(end for _, end in spans)) if spans else None
            )
            text = "".join(token.text.lstrip("·") for token in pieces)
            if span is not None:
                typed = (record.text, record.pair or "", record.target or "")[first.segment]
                text = visible(typed[slice(*span)].strip())
            piece = "+".join(token.piece for token in pieces)
            first = replace(first, text=text, piece=piece, id=None, span=span)
        words.append(first)
    return tuple(words)


def token_level_summary(record: Attention, layer: int, head: int) -> list[str]:
    """Return the strongest links between single tokens in words; for a pooled record also the means over queries.

    Links to special tokens and of a token to itself are left out; tokens count from 0.
    """
    tokens = record.exact or record  # a pooled record has its single tokens in `exact`
    links = []
    for query, key, weight in record.links(layer, head, MOST_LINKS):
        query_name = _numbered_name(tokens.query_tokens[query], record.first[0] + query)
        number = record.first[1] + key if record.exact is not None else record.key_numbers[key]
        key_name = _numbered_name(tokens.key_tokens[key], number)
        links.append(f"{query_name} → {key_name} {percent(weight)}")
    summary = []
    if links:
        words = _("Strongest links between tokens: {links}")
        summary.append(words.format(links=", ".join(links)))
    if record.exact is not None and record.exact.statistics:
        row, column = record.index_of(layer, head)
        means = []
        for name, values in record.exact.statistics.items():
            if name == "next" and record.kind == "decoder":  # always 0 under a causal mask
                continue
            factor, template = STATISTICS[name]
            means.append(_(template).format(value=_format(values[row][column] * factor)))
        listed = ", ".join(means)
        summary.append(_("Each query on average: {listed}").format(listed=listed))
    return summary


def _numbered_name(token: Token, number: int) -> str:
    """Return the name of a token with its number in the text, such as ``animal (1)``."""
    return f"{clip(token.text, 12)} ({number:,})"


def _format(value: float) -> str:
    """Return a number with two or three significant digits, without decimals from 100 on."""
    if value >= 100:
        return f"{value:,.0f}"
    if value > 1:
        return f"{value:.3g}"
    return f"{value:.2f}" if value >= 0.01 else f"{value:.2g}"
