"""Sentences with their gold facts, and how they are written down in a line of text.

``the dogs/subject near the house [are/verb] big .`` Square brackets mark the words that the grammar decides: no other
word of the language could stand there. A tag after a
slash marks a word for the facts that follow in columns of their own: three tags for a reference (``it animal place``: a
pronoun, the noun that it stands for, and another noun), two tags and a relation for a link (``verb subject
agreement``).

A pair of sentences ends with its word alignment as alignments are usually written: ``0-2`` where the first English word
is surely translated by the third Korean one, ``0p2`` where the two only go together, an article and the translation of
its noun.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from attnviz.text.corpus import Link


@dataclass(frozen=True, slots=True)
class Reference:
    """A pronoun and the noun that it stands for, by their positions."""

    pronoun: int
    noun: int
    other: int  # the other noun that the pronoun could stand for


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldSentence:
    """A sentence and the gold facts about it."""

    words: tuple[str, ...]  # lower case, punctuation last
    kind: str  # its construction
    decided: frozenset[int] = frozenset()  # the positions whose word the grammar decides
    reference: Reference | None = None  # only in sentences generated with a pronoun
    links: tuple[Link, ...] = ()  # another link between words: a verb and its subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A sentence, its translation, and their word alignment as (Korean position, English position)."""

    english: tuple[str, ...]
    korean: tuple[str, ...]
    sure: frozenset[tuple[int, int]]  # translations of each other
    # the sure ones, and words that only correspond: an article and the translation of its noun
    possible: frozenset[tuple[int, int]]


def parse_sentence(line: str) -> GoldSentence:
    """Return the sentence of a line: its kind, its text, its reference and its link, with tabs between them."""
    kind, text, reference, link = line.split("\t")
    words, decided, tagged = list[str](), set[int](), dict[str, int]()
    for position, token in enumerate(text.split(" ")):
        word, _, tag = token.strip("[]").partition("/")
        words.append(word)
        if token.startswith("["):
            decided.add(position)
        if tag:
            tagged[tag] = position
    links = []
    if link:
        query, key, relation = link.split(" ")
        links.append(Link(query=tagged[query], key=tagged[key], relation=relation))
    return GoldSentence(
        words=tuple(words),
        kind=kind,
        decided=frozenset(decided),
        reference=Reference(*(tagged[tag] for tag in reference.split(" "))) if reference else None,
        links=tuple(links),
    )


def parse_pair(line: str) -> Pair:
    """Return the pair of a line: its English text, its Korean text and its alignment, with tabs between them."""
    english, korean, alignment = line.split("\t")
    links = [re.split("([-p])", link) for link in alignment.split(" ")]  # source, kind, target
    return Pair(
        english=tuple(english.split(" ")),
        korean=tuple(korean.split(" ")),
        sure=frozenset((int(target), int(source)) for source, kind, target in links if kind == "-"),
        possible=frozenset((int(target), int(source)) for source, _, target in links),
    )
