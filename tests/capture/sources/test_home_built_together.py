"""Translations of many sentences together."""

from __future__ import annotations

import pytest
import torch

from attnviz.capture.source import open_source
from attnviz.models.language import splits


@pytest.mark.parametrize("name", ["toy-transformer", "toy-seq2seq"])
def test_each_translation_is_that_of_the_sentence_alone(name: str) -> None:
    """The same greedy tokens, whatever is translated beside a sentence; other sentences are read as ever."""
    sentences = [line.text for line in splits.source_lines(80)]
    source, together = open_source(name), open_source(name)
    alone = source.encode([*sentences, "I love all you"])
    together.prepare([*sentences, "qwertz asdfgh"])
    batch = together.encode([*sentences, "I love all you"])
    assert batch.sentences == alone.sentences
    assert torch.equal(batch.inputs["target"], alone.inputs["target"])
