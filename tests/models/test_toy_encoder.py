"""The toy: any words, the same numbers each time, and nobody else's random numbers touched."""

from __future__ import annotations

import unicodedata

import torch

from attnviz.models.config import ToyConfig
from attnviz.models.embedding import sinusoidal_positions
from attnviz.models.language_models import ToyEncoder, word_vector

WORDS = ["I", "love", "you", "all"]


class TestWordVector:
    """A vector for each word, with no vocabulary."""

    def test_korean_typed_in_two_ways(self) -> None:
        """A word of whole syllables and the same word as a Mac stores it are one word."""
        assert torch.equal(
            word_vector("사랑", 7), word_vector(unicodedata.normalize("NFD", "사랑"), 7)
        )


class TestToyEncoder:
    """Words in, vectors and attention out."""

    def test_word_plus_position(self) -> None:
        """The encoder reads the word's vector plus its position's."""
        vectors = torch.stack([word_vector(word, 20) for word in WORDS])
        assert torch.equal(ToyEncoder().embed(WORDS), vectors + sinusoidal_positions(4, 20))


def test_positions_as_bert_has_them() -> None:
    """A row of numbers for each place, the same whatever the sentence; between its special tokens."""
    toy = ToyEncoder(ToyConfig(positions="learned"))
    table = toy.positions(3)
    assert table.shape == (3, 20)
    assert torch.equal(toy.positions(5)[:3], table)
    words = torch.stack([word_vector(word, 20) for word in ("I", "I", "love")])
    assert torch.equal(toy.embed(["I", "I", "love"]), words + table)
