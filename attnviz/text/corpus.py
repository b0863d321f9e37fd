"""Sentences of a corpus as they come from a file and, where it is a treebank, their grammar."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

COREFERENCE = "coreference"
"""The relation of a mention to the mention before it of the same person or thing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A word of a treebank.

    Attributes:
        form: as it is written.
        span: its characters in the sentence's text, (first, one past last). Words that are written as one, such as
            German "zum" (zu, dem), share the span of the whole where its letters cannot be shared out.
        upos: its part of speech, such as ``NOUN``.
        head: the number, from 0, of the word that it depends on; -1 for the root.
        relation: how, with its subtype: ``nsubj``, ``nsubj:pass``.
    """

    form: str
    span: tuple[int, int]
    upos: str
    head: int
    relation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """Words that stand for a person or thing.

    Attributes:
        entity: which; mentions of the same one have the same name.
        words: the words' numbers, (first, one past last). Of a mention in several pieces, the piece with its head.
        head: the word whose own head lies outside the mention; of several, the highest in the tree.
    """

    entity: str
    words: tuple[int, int]
    head: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Parse:
    """A sentence of a treebank.

    Attributes:
        text: as it is written.
        words: in their order.
        mentions: in the order in which they begin, the longer first; empty where the file marks none.
        line: where the sentence begins in the file, from 1.
    """

    text: str
    words: tuple[Word, ...]
    mentions: tuple[Mention, ...]
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Two words that belong together; a head of attention may look from the one to the other.

    Attributes:
        query: the number of the word that depends, or of the later mention's head.
        key: the number of the word it depends on, or of the earlier mention's head.
        relation: a dependency's name, or ``coreference``.
    """

    query: int
    key: int
    relation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """The words of a sentence, and which of them belong together.

    Attributes:
        words: the characters of each in the sentence's text, (first, one past last).
        links: between words, by their numbers.
    """

    words: tuple[tuple[int, int], ...]
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusLine:
    """A sentence of a corpus.

    Attributes:
        number: its line in the file, from 1; in a treebank the first of its lines.
        text: the sentence.
        parsed: its grammar, where the file is a treebank.
        annotated: which of its words belong together, where something else than its grammar says so.
    """

    number: int
    text: str
    parsed: Parse | None = None
    annotated: Annotation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BadLine:
    """A line that cannot be used.

    Attributes:
        number: which, from 1.
        reason: why, in a few words.
    """

    number: int
    reason: str


def annotation(line: CorpusLine) -> Annotation | None:
    """Which words of a sentence belong together; None where nothing says so."""
    if line.annotated is not None or line.parsed is None:
        return line.annotated
    return Annotation(words=tuple(word.span for word in line.parsed.words), links=links(line.parsed))


def links(parsed: Parse) -> tuple[Link, ...]:
    """What belongs together in a sentence.

    Each word with the word that it depends on, but for the root and punctuation; and the head of each mention with
    that of the nearest mention before it of the same person or thing. Before means that its head stands before, so
    that in "the boy who lost his way", all of it one mention, "his" still finds "boy".
    """
    found = [
        Link(query=number, key=word.head, relation=word.relation)
        for number, word in enumerate(parsed.words)
        if word.head >= 0 and universal(word.relation) != "punct"
    ]
    heads: dict[str, set[int]] = {}
    for mention in parsed.mentions:
        heads.setdefault(mention.entity, set()).add(mention.head)
    chains = [sorted(chain) for chain in heads.values()]
    pairs = sorted((later, earlier) for chain in chains for earlier, later in pairwise(chain))
    return (*found, *(Link(query=later, key=earlier, relation=COREFERENCE) for later, earlier in pairs))


def universal(relation: str) -> str:
    """A relation without its subtype: ``nsubj`` for ``nsubj:pass``."""
    return relation.partition(":")[0]
