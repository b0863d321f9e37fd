"""Word pieces merged into words, special tokens hidden: by hand, on sizes that cannot be confused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnviz.attention import Attention, Note, Receipt, Token
from attnviz.errors import SelectionError, SettingsError
from attnviz.heatmaps.difference import difference
from attnviz.heatmaps.words import hide_sinks, hide_special, merge_words
from attnviz.text.notes import sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def special(text: str) -> Token:
    """A token that the tokenizer added."""
    return Token(text=text, piece=text, special=True)


def piece(text: str, word: int | None, start: int | None = None, segment: int = 0) -> Token:
    """A piece of a word; with the place of its first character it has a span."""
    length = len(text.removeprefix("·"))
    return Token(
        text=text,
        piece=text.replace("·", "##"),
        id=7,
        word=word,
        span=None if start is None else (start, start + length),
        segment=segment,
    )


def record(
    weights: Sequence[object] | np.ndarray,
    queries: Sequence[Token],
    keys: Sequence[Token] | None = None,
    **more: object,
) -> Attention:
    """A record of one layer and one head, unless the weights have more."""
    values = np.array(weights, dtype=np.float32)
    fields: dict[str, object] = {
        "weights": values.reshape((1,) * (4 - values.ndim) + values.shape),
        "query_tokens": tuple(queries),
        "key_tokens": tuple(queries if keys is None else keys),
        "kind": "encoder" if keys is None else "cross",
        "model": "by hand",
        "text": "playing dogs",
    }
    return Attention(**(fields | more))  # type: ignore[arg-type]


# "playing dogs", 5 tokens: [CLS] play ##ing dogs [SEP].
DOGS = [
    special("[CLS]"),
    piece("play", 0, 0),
    piece("·ing", 0, 4),
    piece("dogs", 1, 8),
    special("[SEP]"),
]
WEIGHTS = [
    [0.50, 0.10, 0.10, 0.10, 0.20],
    [0.10, 0.20, 0.30, 0.10, 0.30],
    [0.30, 0.40, 0.10, 0.20, 0.00],
    [0.05, 0.15, 0.35, 0.25, 0.20],
    [0.90, 0.00, 0.00, 0.00, 0.10],
]

# Columns "play" and "##ing" added, rows "play" and "##ing" averaged.
MERGED = [
    [0.50, 0.20, 0.10, 0.20],
    [(0.10 + 0.30) / 2, (0.50 + 0.50) / 2, (0.10 + 0.20) / 2, (0.30 + 0.00) / 2],
    [0.05, 0.50, 0.25, 0.20],
    [0.90, 0.00, 0.00, 0.10],
]


def test_words_by_hand() -> None:
    """To a word the sum over its pieces, from it the mean: 5 x 5 become 4 x 4."""
    merged = merge_words(record(WEIGHTS, DOGS))
    np.testing.assert_allclose(merged.weights[0, 0], MERGED, atol=1e-7)
    assert [token.text for token in merged.query_tokens] == ["[CLS]", "playing", "dogs", "[SEP]"]
    assert merged.key_tokens == merged.query_tokens
    assert merge_words(merged) is merged


def test_tokens_without_a_word_stand_alone() -> None:
    """White space and specials belong to no word, and two in a row are not merged with one another."""
    tokens = [
        special("[CLS]"),
        special("[SEP]"),
        piece("a", 0),
        piece("·b", 0),
        piece("␣", None),
        piece("␣", None),
    ]
    merged = merge_words(record(np.full((6, 6), 1 / 6), tokens))
    assert [token.text for token in merged.key_tokens] == ["[CLS]", "[SEP]", "ab", "␣", "␣"]


def test_cross_attention_has_words_of_two_languages() -> None:
    """Queries and keys are merged each by their own words: 3 x 5 become 2 x 3."""
    queries = [piece("너를", 0), piece("사랑", 1), piece("·해", 1)]
    keys = [piece("I", 0), piece("lo", 1), piece("·ve", 1), piece("y", 2), piece("·ou", 2)]
    weights = [[0.1, 0.2, 0.3, 0.3, 0.1], [0.5, 0.1, 0.1, 0.2, 0.1], [0.3, 0.2, 0.2, 0.1, 0.2]]
    merged = merge_words(record(weights, queries, keys))
    np.testing.assert_allclose(merged.weights[0, 0], [[0.1, 0.5, 0.4], [0.4, 0.3, 0.3]], atol=1e-7)
    assert [token.text for token in merged.query_tokens] == ["너를", "사랑해"]
    assert [token.text for token in merged.key_tokens] == ["I", "love", "you"]


def test_the_text_of_a_word_is_what_was_typed() -> None:
    """A word of a lower-casing tokenizer is shown as its writer wrote it, in the second sentence too."""
    tokens = [
        piece("play", 0, 0),
        piece("·ing", 0, 4),
        piece("do", 1, 0, segment=1),
        piece("·gs", 1, 2, segment=1),
    ]
    merged = merge_words(record(np.full((4, 4), 0.25), tokens, text="PLAYing", pair="DoGs"))
    assert [token.text for token in merged.query_tokens] == ["PLAYing", "DoGs"]
    assert [token.segment for token in merged.query_tokens] == [0, 1]


@given(
    query_words=st.lists(st.integers(1, 4), min_size=1, max_size=7),
    key_words=st.lists(st.integers(1, 4), min_size=1, max_size=7),
    seed=st.integers(0, 2**16),
)
@settings(max_examples=60)
def test_rows_sum_to_what_they_did(query_words: list[int], key_words: list[int], seed: int) -> None:
    """Whatever the words: every merged row sums to 1, and nothing becomes negative or lost."""
    sides = [
        [
            piece(f"{'·' * bool(i)}w{word}", word)
            for word, length in enumerate(lengths)
            for i in range(length)
        ]
        for lengths in (query_words, key_words)
    ]
    rows = np.random.default_rng(seed).dirichlet(np.full(len(sides[1]), 0.3), size=len(sides[0]))
    merged = merge_words(record(rows, *sides))
    assert merged.weights.shape == (1, 1, len(query_words), len(key_words))
    np.testing.assert_allclose(merged.weights.sum(axis=-1), 1.0, atol=1e-6)
    assert merged.weights.min() >= 0


def test_hidden_specials_by_hand() -> None:
    """Special rows and columns go, what is left has the model's numbers; a note names each once, and says the rest."""
    hidden = hide_special(record(WEIGHTS, DOGS, notes=(Note("tokens_shuffled"),)))
    np.testing.assert_array_equal(
        hidden.weights[0, 0],
        np.array([[0.20, 0.30, 0.10], [0.40, 0.10, 0.20], [0.15, 0.35, 0.25]], np.float32),
    )
    assert [token.text for token in hidden.query_tokens] == ["play", "·ing", "dogs"]
    assert hidden.key_tokens == hidden.query_tokens
    note = Note.of("specials_hidden", tokens="[CLS] [SEP]")
    assert hidden.notes == (Note("tokens_shuffled"), note)
    assert "not renormalised" in sentence(note)
    assert hidden.short_rows == ("dropped",)


@pytest.mark.parametrize(
    ("change", "queries", "keys", "message"),
    [
        (merge_words, [piece("a", None)], None, "which word"),
        (hide_special, [special("[CLS]")], None, "nothing is left"),
        (hide_special, [special("[CLS]")], [piece("a", 0)], "nothing is left"),
    ],
)
def test_what_cannot_be_changed_is_refused(
    change: Callable[[Attention], Attention],
    queries: list[Token],
    keys: list[Token] | None,
    message: str,
) -> None:
    """A record that does not know its words is not merged; without special queries or keys something must be left."""
    with pytest.raises(SelectionError, match=message):
        change(record([[1.0]], queries, keys))


def test_merging_and_hiding_in_either_order() -> None:
    """Words first or specials first: the same numbers, the same tokens."""
    first, second = (
        hide_special(merge_words(record(WEIGHTS, DOGS))),
        merge_words(hide_special(record(WEIGHTS, DOGS))),
    )
    np.testing.assert_allclose(first.weights, second.weights, atol=1e-7)
    np.testing.assert_allclose(first.weights[0, 0], [[0.5, 0.15], [0.5, 0.25]], atol=1e-7)
    assert first.query_tokens == second.query_tokens
    assert set(first.notes) == set(second.notes)
    assert first.short_rows == second.short_rows == ("dropped",)


@pytest.mark.parametrize("change", [hide_sinks, hide_special, merge_words])
def test_no_record(change: Callable[[Any], Attention]) -> None:
    """A difference or an array is refused in one line."""
    same = record(WEIGHTS, DOGS)
    for value in (difference(same, same), np.eye(2)):
        with pytest.raises(SettingsError, match=f"expected a record.*, not {type(value).__name__}"):
            change(value)


def test_the_receipt_stays() -> None:
    """Merging and hiding compute from verified weights: the receipt and the model's name travel on."""
    receipt = Receipt(
        native="sdpa", dtype="float32", tolerance=1e-5, layers=(0,), differences=(1e-7,)
    )
    seen = hide_special(merge_words(record(WEIGHTS, DOGS, receipt=receipt)))
    assert (seen.receipt, seen.model, seen.text, seen.kind) == (
        receipt,
        "by hand",
        "playing dogs",
        "encoder",
    )
