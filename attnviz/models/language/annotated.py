"""Sentences of the home-built language as a corpus, with the words that are known to belong together."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate, islice

from attnviz.models.language.english import English
from attnviz.models.language.splits import Split, sentences
from attnviz.text.corpus import COREFERENCE, Annotation, CorpusLine, Link

MOST_DRAWN = 100
"""Sentences are drawn until there are enough different ones, or until so many times as many were drawn."""


def annotated(n: int, split: Split = "test", *, seed: int = 0, kind: str | None = None) -> tuple[CorpusLine, ...]:
    """English sentences of a split of which words are known to belong together, each once.

    Args:
        n: how many.
        split: of the language; no sentence is in two.
        seed: another seed, other sentences.
        kind: of a construction; None is any.

    Raises:
        ValueError: there are not so many.
    """
    drawn = (line_of(sentence) for sentence in islice(sentences(split, seed, kind), MOST_DRAWN * n))
    known = (line for line in drawn if line.annotated is not None and line.annotated.links)
    found: dict[str, CorpusLine] = {}
    while len(found) < n and (line := next(known, None)) is not None:
        found.setdefault(line.text, replace(line, number=len(found) + 1))
    if len(found) < n:
        raise ValueError(f"there are only {len(found)} such sentences among {MOST_DRAWN * n}, not {n}")
    return tuple(found.values())


def line_of(sentence: English, number: int = 1) -> CorpusLine:
    """A sentence as a line of a corpus."""
    starts = accumulate((len(word) + 1 for word in sentence.words), initial=0)
    words = tuple((start, start + len(word)) for start, word in zip(starts, sentence.words, strict=False))
    found = sentence.reference
    refers = () if found is None else (Link(query=found.pronoun, key=found.noun, relation=COREFERENCE),)
    return CorpusLine(
        number=number,
        text=" ".join(sentence.words),
        annotated=Annotation(words=words, links=(*refers, *sentence.links)),
    )
