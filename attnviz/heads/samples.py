"""The sentences that heads are compared on where none are given."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from attnviz.models.registry import HOME_BUILT

if TYPE_CHECKING:
    from attnviz.capture.source import Source
    from attnviz.text.corpus import BadLine, CorpusLine

TREEBANK = Path(__file__).parent.parent / "text" / "treebank.conllu"

OWN = 600
"""Sentences of a home-built model's own language."""


def samples(source: Source) -> tuple[Iterable[CorpusLine | BadLine], str]:
    """Sentences, and what they are: of a trained home-built model its own language, of any other the treebank."""
    model = HOME_BUILT.get(source.name)
    if model is not None and model.has_language:
        from attnviz.models.language.splits import corpus_lines

        return corpus_lines(OWN), f"{OWN} sentences of its own language that it never saw"
    from attnviz.storage.corpora.corpus import read_corpus

    return read_corpus(TREEBANK), "the sentences that come with attnviz"
