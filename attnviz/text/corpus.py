"""Sentences of a corpus, and the links between their words if they come from a treebank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

# the relation of a mention to the mention before it of the same person or thing
COREFERENCE = "coreference"
AGREEMENT = "agreement"  # the relation of a verb to the subject that it agrees with
# (first, one past last) character of a text, or word of a sentence
Span: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Two related words; a head may attend from one to the other."""

    query: int  # index of the dependent word, or of the later mention's head
    key: int  # index of its head, or of the earlier mention's head
    relation: str  # name of the dependency, or ``coreference``


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """The words of a sentence and the links between them."""

    # characters of each word; words written together may share one span
    words: tuple[Span, ...]
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusLine:
    """A sentence of a corpus."""

    number: int  # line number in the file, from 1; in a treebank its first line
    text: str
    annotated: Annotation | None = None  # links between words, if known


@dataclass(frozen=True, slots=True, kw_only=True)
class BadLine:
    """A line of a file that cannot be used."""

    number: int  # line number, from 1
    reason: str


def universal(relation: str) -> str:
    """Return a relation without its subtype: ``nsubj`` for ``nsubj:pass``."""
    return relation.partition(":")[0]
