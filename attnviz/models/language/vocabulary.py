"""The words that the home-built models read and generate, with their numbers."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from unicodedata import normalize

PAD, UNKNOWN, START, END, MASK = "<pad>", "<unknown>", "<start>", "<end>", "<mask>"
SPECIAL = (PAD, UNKNOWN, START, END, MASK)  # the first words of every vocabulary: numbers 0 to 4
PIECE = "##"
"""Begins a piece that continues a word: a Korean particle."""


@dataclass(frozen=True)
class Vocabulary:
    """Words and their numbers."""

    words: tuple[str, ...]  # special words first, then alphabetical order

    def __len__(self) -> int:
        return len(self.words)

    @functools.cached_property
    def numbers(self) -> dict[str, int]:
        """Return the number of each word."""
        return {word: number for number, word in enumerate(self.words)}

    def encode(self, words: Iterable[str]) -> list[int]:
        """Return each word's number, or that of ``<unknown>``; capitals do not matter."""
        numbers, unknown = self.numbers, self.numbers[UNKNOWN]
        composed = (normalize("NFC", word) for word in words)  # Macs store Korean in parts
        return [numbers.get(word, numbers.get(word.lower(), unknown)) for word in composed]

    def decode(self, numbers: Sequence[int]) -> tuple[str, ...]:
        """Return each number's word."""
        return tuple(self.words[number] for number in numbers)

    def knows(self, word: str) -> bool:
        """Return whether the vocabulary has a word; capitals do not matter."""
        word = normalize("NFC", word)
        return word in self.numbers or word.lower() in self.numbers

    def pieces(self, word: str) -> tuple[str, ...]:
        """Return the word, or a noun and its particle where both are known: 고양이 and ##가 of 고양이가."""
        if not self.knows(word):
            for start in range(1, len(word)):  # the longest particle first
                if self.knows(word[:start]) and self.knows(PIECE + word[start:]):
                    return word[:start], PIECE + word[start:]
        return (word,)


@functools.cache
def load_vocabulary(name: str) -> Vocabulary:
    """Read one of the lists in ``vocabularies``, a word a line: english, korean, source or target."""
    path = Path(__file__).parent / "vocabularies" / f"{name}.txt"
    return Vocabulary(SPECIAL + tuple(path.read_text("utf-8").split()))
