"""Sentences of a corpus as they come from a file, and which of their words belong together where a treebank says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

# the relation of a mention to the mention before it of the same person or thing
COREFERENCE = "coreference"
AGREEMENT = "agreement"  # the relation of a verb to the subject that it agrees with
# (first, one past last): of a text's characters, or of a sentence's words
Span: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Two words that belong together; a head of attention may look from the one to the other."""

    query: int  # the number of the word that depends, or of the later mention's head
    key: int  # the number of the word that it depends on, or of the earlier mention's head
    relation: str  # a dependency's name, or ``coreference``


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """The words of a sentence, and which of them belong together."""

    # where each lies in the text; words written as one may all have the span of the whole
    words: tuple[Span, ...]
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusLine:
    """A sentence of a corpus."""

    number: int  # its line in the file, from 1; in a treebank the first of its lines
    text: str
    annotated: Annotation | None = None  # which words belong together, where something says so


@dataclass(frozen=True, slots=True, kw_only=True)
class BadLine:
    """A line that cannot be used."""

    number: int  # from 1
    reason: str


def universal(relation: str) -> str:
    """Return a relation without its subtype: ``nsubj`` for ``nsubj:pass``."""
    return relation.partition(":")[0]
