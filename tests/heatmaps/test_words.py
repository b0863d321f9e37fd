"""Word pieces merged into words, special tokens hidden: by hand, on sizes that cannot be confused."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnviz.attention import Attention, Note, Receipt, Token
from attnviz.errors import SelectionError
from attnviz.heatmaps.words import hide_special, merge_words
from attnviz.text.notes import sentence

if TYPE_CHECKING:
    from collections.abc import Sequence


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


def test_a_merged_word_says_what_it_is_of() -> None:
    """A word keeps its number, its place in the text and its pieces' spelling; it has no number in the vocabulary."""
    word = merge_words(record(WEIGHTS, DOGS)).query_tokens[1]
    assert word == Token(text="playing", piece="play+##ing", id=None, span=(0, 7), word=0)


def test_tokens_that_are_words_are_left_alone() -> None:
    """A token that is a whole word, and a special one, is the same token as before."""
    merged = merge_words(record(WEIGHTS, DOGS))
    assert (merged.query_tokens[0], *merged.query_tokens[2:]) == (DOGS[0], DOGS[3], DOGS[4])


def test_merging_is_said_once() -> None:
    """A note says how numbers were joined, behind the notes that were there."""
    notes = merge_words(record(WEIGHTS, DOGS, notes=(Note("tokens_shuffled"),))).notes
    assert notes == (Note("tokens_shuffled"), Note("words_merged"))
    assert "mean" in sentence(notes[1])


def test_the_record_itself_does_not_change() -> None:
    """What is merged is a new record; the old one has its pieces still."""
    before = record(WEIGHTS, DOGS)
    merge_words(before)
    hide_special(before)
    assert before == record(WEIGHTS, DOGS)


def test_merging_twice_is_merging_once() -> None:
    """Words have no pieces: the second time nothing happens, and nothing is said."""
    once = merge_words(record(WEIGHTS, DOGS))
    assert merge_words(once) is once


def test_whole_words_are_not_merged() -> None:
    """A record of whole words comes back as it is, without a note."""
    words = record([[0.5, 0.5], [0.25, 0.75]], [piece("big", 0), piece("dogs", 1)])
    assert merge_words(words) is words


def test_a_word_written_twice_is_two_words() -> None:
    """Neighbours with the same text but different numbers stay apart."""
    words = record([[0.5, 0.5], [0.25, 0.75]], [piece("no", 0), piece("no", 1)])
    assert merge_words(words) is words


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


def test_every_layer_and_head_is_merged_alike() -> None:
    """Sizes 2, 3, 5 and 7: each head of each layer is what it would be alone."""
    rows = np.random.default_rng(5).dirichlet(np.ones(7), size=(2, 3, 5)).astype(np.float32)
    queries = [
        piece(text, word) for text, word in (("a", 0), ("·b", 0), ("c", 1), ("·d", 1), ("·e", 1))
    ]
    keys = [piece(text, word) for text, word in zip("stuvwxy", (0, 0, 0, 1, 2, 2, 3), strict=True)]
    merged = merge_words(record(rows, queries, keys, layers=(4, 6), heads=(1, 2, 9)))
    assert merged.weights.shape == (2, 3, 2, 4)
    assert (merged.layers, merged.heads) == ((4, 6), (1, 2, 9))
    for layer in range(2):
        for head in range(3):
            alone = merge_words(record(rows[layer, head], queries, keys))
            np.testing.assert_array_equal(merged.weights[layer, head], alone.weights[0, 0])


def test_cross_attention_has_words_of_two_languages() -> None:
    """Queries and keys are merged each by their own words: 3 x 5 become 2 x 3."""
    queries = [piece("너를", 0), piece("사랑", 1), piece("·해", 1)]
    keys = [piece("I", 0), piece("lo", 1), piece("·ve", 1), piece("y", 2), piece("·ou", 2)]
    weights = [[0.1, 0.2, 0.3, 0.3, 0.1], [0.5, 0.1, 0.1, 0.2, 0.1], [0.3, 0.2, 0.2, 0.1, 0.2]]
    merged = merge_words(record(weights, queries, keys))
    np.testing.assert_allclose(merged.weights[0, 0], [[0.1, 0.5, 0.4], [0.4, 0.3, 0.3]], atol=1e-7)
    assert [token.text for token in merged.query_tokens] == ["너를", "사랑해"]
    assert [token.text for token in merged.key_tokens] == ["I", "love", "you"]


def test_only_one_side_has_pieces() -> None:
    """Where only the keys are pieces, only they are merged; the queries are the same tokens."""
    queries, keys = [piece("a", 0), piece("b", 1)], [piece("c", 0), piece("·d", 0), piece("e", 1)]
    merged = merge_words(record([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]], queries, keys))
    np.testing.assert_allclose(merged.weights[0, 0], [[0.5, 0.5], [0.2, 0.8]], atol=1e-7)
    assert merged.query_tokens == tuple(queries)


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


def test_the_text_of_a_word_without_a_place_is_its_pieces() -> None:
    """Pieces that do not know their place in the text are joined, without the marks of attnviz."""
    merged = merge_words(record(np.full((2, 2), 0.5), [piece("play", 0), piece("·ing", 0)]))
    assert merged.query_tokens[0].text == "playing"
    assert merged.weights.tolist() == [[[[1.0]]]]


def test_bytes_of_one_character_become_the_character() -> None:
    """Three tokens that are the bytes of one character are that character again."""
    tokens = [replace(piece(f"한 {part}/3", 0), span=(0, 1)) for part in (1, 2, 3)]
    merged = merge_words(record(np.full((3, 3), 1 / 3), tokens, text="한"))
    assert [token.text for token in merged.query_tokens] == ["한"]
    np.testing.assert_allclose(merged.weights, 1.0, atol=1e-6)


def test_control_characters_in_a_word_are_spelled_out() -> None:
    """What was typed is shown, never obeyed."""
    tokens = [replace(piece("a", 0), span=(0, 2)), replace(piece("·b", 0), span=(2, 3))]
    merged = merge_words(record(np.full((2, 2), 0.5), tokens, text="a\x1bb"))
    assert merged.query_tokens[0].text == r"a\x1bb"


def test_a_record_without_words_is_refused() -> None:
    """A record that does not know its words cannot be merged, and the error says so."""
    with pytest.raises(SelectionError, match="which word"):
        merge_words(record([[0.5, 0.5], [0.5, 0.5]], [piece("a", None), special("b")]))


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
    """Rows and columns of special tokens are left out; what is left has the model's own numbers."""
    hidden = hide_special(record(WEIGHTS, DOGS))
    np.testing.assert_array_equal(
        hidden.weights[0, 0],
        np.array([[0.20, 0.30, 0.10], [0.40, 0.10, 0.20], [0.15, 0.35, 0.25]], np.float32),
    )
    assert [token.text for token in hidden.query_tokens] == ["play", "·ing", "dogs"]
    assert hidden.key_tokens == hidden.query_tokens


def test_hidden_specials_are_said() -> None:
    """The note names each special token once and says that rows were not renormalised; the record allows short rows."""
    hidden = hide_special(record(WEIGHTS, DOGS, notes=(Note("tokens_shuffled"),)))
    assert hidden.notes == (
        Note("tokens_shuffled"),
        Note.of("specials_hidden", tokens="[CLS] [SEP]"),
    )
    assert "not renormalised" in sentence(hidden.notes[1])
    assert hidden.short_rows == ("dropped",)


def test_short_rows_keep_their_other_reasons() -> None:
    """A record that was short already is short for both reasons, each given once."""
    assert hide_special(record(WEIGHTS, DOGS, short_rows=("pooled",))).short_rows == (
        "pooled",
        "dropped",
    )
    assert hide_special(record(WEIGHTS, DOGS, short_rows=("dropped",))).short_rows == ("dropped",)


def test_hiding_twice_is_hiding_once() -> None:
    """Without special tokens there is nothing to hide, and nothing to say."""
    once = hide_special(record(WEIGHTS, DOGS))
    assert hide_special(once) is once


def test_specials_of_one_side_only() -> None:
    """In cross-attention, keys may have special tokens where queries have none: 2 x 3 become 2 x 2."""
    keys = [piece("I", 0), piece("love", 1), special("</s>")]
    hidden = hide_special(
        record([[0.2, 0.3, 0.5], [0.6, 0.4, 0.0]], [piece("나", 0), piece("너", 1)], keys)
    )
    np.testing.assert_array_equal(
        hidden.weights[0, 0], np.array([[0.2, 0.3], [0.6, 0.4]], np.float32)
    )
    assert len(hidden.query_tokens) == 2
    assert "(</s>)" in sentence(hidden.notes[0])


@pytest.mark.parametrize("keys", [None, [piece("a", 0)]])
def test_nothing_left_is_refused(keys: list[Token] | None) -> None:
    """Where all queries or all keys are special, there is nothing to show, and the error says so."""
    with pytest.raises(SelectionError, match="nothing is left"):
        hide_special(record([[1.0]], [special("[CLS]")], keys))


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
