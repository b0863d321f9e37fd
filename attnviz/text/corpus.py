"""Sentences of a corpus as they come from a file and, where it is a treebank, their grammar."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

COREFERENCE = "coreference"  # the relation of a mention to the mention before it of the same person or thing
AGREEMENT = "agreement"  # the relation of a verb to the subject that it agrees with
Span: TypeAlias = tuple[int, int]  # (first, one past last): of a text's characters, or of a sentence's words


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A word of a treebank."""

    form: str  # as it is written
    span: Span  # in the text; words written as one, such as German "zum" (zu, dem), may all have the span of the whole
    upos: str  # its part of speech, such as ``NOUN``
    head: int  # the number, from 0, of the word that it depends on; -1 for the root
    relation: str  # how, with its subtype: ``nsubj``, ``nsubj:pass``


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """Words that stand for a person or thing."""

    entity: str  # which; mentions of the same one have the same name
    words: Span  # of a mention in several pieces, the piece with its head
    head: int  # the word whose own head lies outside the mention; of several, the highest in the tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Parse:
    """A sentence of a treebank."""

    text: str
    words: tuple[Word, ...]
    mentions: tuple[Mention, ...]  # in the order in which they begin, the longer first; empty where the file marks none
    line: int  # where the sentence begins in the file, from 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Two words that belong together; a head of attention may look from the one to the other."""

    query: int  # the number of the word that depends, or of the later mention's head
    key: int  # the number of the word that it depends on, or of the earlier mention's head
    relation: str  # a dependency's name, or ``coreference``


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """The words of a sentence, and which of them belong together."""

    words: tuple[Span, ...]  # where each lies in the text
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusLine:
    """A sentence of a corpus."""

    number: int  # its line in the file, from 1; in a treebank the first of its lines
    text: str
    parsed: Parse | None = None  # its grammar, where the file is a treebank
    annotated: Annotation | None = None  # which words belong together, where something else than its grammar says so


@dataclass(frozen=True, slots=True, kw_only=True)
class BadLine:
    """A line that cannot be used."""

    number: int  # from 1
    reason: str


def annotation(line: CorpusLine) -> Annotation | None:
    """Which words of a sentence belong together; None where nothing says so."""
    if line.annotated is not None or line.parsed is None:
        return line.annotated
    return Annotation(words=tuple(word.span for word in line.parsed.words), links=links(line.parsed))


def links(parsed: Parse) -> tuple[Link, ...]:
    """What belongs together in a sentence.

    Each word with the word that it depends on, but for the root and punctuation; and the head of each mention with
    that of the nearest mention before it of the same person or thing. "Before" compares the two heads: so in "the boy
    who lost his way", all of it one mention, "his" is linked to "boy".
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
