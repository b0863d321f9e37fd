"""Training, validation and test sentences that share none.

A sentence's split is read off its content words (not its articles and full stop) in their order: no such row of words
is in two splits, so every test sentence puts words together as no training sentence does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from random import Random
from typing import Literal

from attnviz.models.language import english, korean
from attnviz.models.language.english import English
from attnviz.models.language.korean import Pair

Split = Literal["train", "validation", "test"]

_LIGHT = frozenset(("the", "a", "an", "two", ".", "?"))
_SEEDS: dict[Split, int] = {"train": 1, "validation": 2, "test": 3}


def split_of(words: Sequence[str]) -> Split:
    """Which split a sentence belongs to: eight in ten to training, one each to the others."""
    content = " ".join(word for word in words if word not in _LIGHT)
    tenth = hashlib.blake2b(content.encode(), digest_size=8).digest()[0] % 10
    return "validation" if tenth == 8 else "test" if tenth == 9 else "train"


def sentences(split: Split, seed: int = 0, kind: str | None = None) -> Iterator[English]:
    """English sentences of a split, without end; the same seed, the same sentences."""
    random = Random(f"english {_SEEDS[split]} {seed}")
    while True:
        sentence = english.generate(random, kind)
        if split_of(sentence.words) == split:
            yield sentence


def pairs(split: Split, seed: int = 0, clauses: int | None = None) -> Iterator[Pair]:
    """English-Korean pairs of a split, without end; of so many clauses, or of any number."""
    random = Random(f"korean {_SEEDS[split]} {seed}")
    while True:
        pair = korean.generate(random, clauses)
        if split_of(pair.english) == split:
            yield pair
