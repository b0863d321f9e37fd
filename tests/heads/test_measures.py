"""Every measure equals a plain version written from its formula; one sentence and a padded batch agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from attnviz.capture.observers import Batch, WeightCollector
from attnviz.capture.source import open_source
from attnviz.heads.capture.measure import BatchMeasures, EmbeddingFinder, MeasureCollector
from attnviz.heads.measures import measures_of
from tests.fixtures.zoo import ROTARY, SENTENCES
from tests.heads.by_formula import every, ranks, reach

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attnviz.capture.sources import Source
    from tests.fixtures.zoo import Zoo

NAMES = tuple(one.name for one in measures_of())

TEXTS = (
    "The animal didn't cross the street because it was too tired.",
    "She is eating a green apple",
    "I love you",
    "The dogs near the house are big, and the dogs near the street are old.",
    "There is a prince",
)


def measured(source: Source, batch: Batch) -> BatchMeasures:
    """Return the measures by attnviz."""
    find = EmbeddingFinder()
    source.stream(batch, [find])
    observer = MeasureCollector(embeddings=find.embeddings)
    source.stream(batch, [observer])
    return observer.result()


def vectors_of(source: Source) -> np.ndarray:
    """The model's own vectors of all tokens, found by their name."""
    model = source._model  # type: ignore[attr-defined]
    (table,) = (
        module.weight
        for path, module in model.named_modules()
        if path in {"embedding.table", "embeddings.word_embeddings"}
    )
    return np.asarray(table.detach().double().numpy())


@pytest.mark.parametrize(
    ("name", "texts", "causal", "windows"),
    [
        ("real", TEXTS[:3], False, ()),
        ("toy-decoder", TEXTS, True, ()),
        ("mistral", SENTENCES[:3], True, (0, 1, 2)),
        ("gpt_oss", SENTENCES[:3], True, (0, 2)),
    ],
)
def test_each_measure_equals_its_formula(
    name: str, texts: Sequence[str], causal: bool, windows: tuple[int, ...], zoo: Zoo
) -> None:
    """Of heads of all layers, each measure in a padded batch: 1e-6; rows of some layers see a window."""
    source = open_source(name) if name.startswith("toy") else zoo.source(name)
    has_vectors = name in {"real", "toy-decoder"}  # those of the others are not compared
    vectors = vectors_of(source) if has_vectors else np.zeros(0)
    batch = source.encode(texts)
    keep, alone = WeightCollector(), MeasureCollector()
    source.stream(batch, [keep, alone])
    found = measured(source, batch) if has_vectors else alone.result()
    for index, sentence in enumerate(batch.sentences):
        weights, tokens = keep.weights(index).astype(np.float64), sentence.tokens
        for layer, head in [*np.ndindex(*weights.shape[:2])][:: 5 if name == "real" else 1]:
            window = ROTARY["sliding_window"] if layer in windows else None
            sees = reach(len(tokens), causal=causal, window=window)
            ranked = None
            if has_vectors:
                ranked = ranks(tokens, vectors[[token.id or 0 for token in tokens]], sees)
            expected = every(weights[layer, head], tokens, sees, ranked=ranked)
            assert set(expected) == set(NAMES)
            for at, measure in enumerate(NAMES):
                total, n = expected[measure]
                assert found.counts[index, layer, at] == n, (measure, sentence.text)
                off = abs(float(found.sums[index, layer, head, at]) - total) / max(n, 1)
                assert off < 1e-6, (measure, layer, head, sentence.text)


def test_cross_attention_has_no_offsets() -> None:
    """Where queries and keys are other tokens, no distance, offset or repetition is counted; entropy is."""
    source = open_source("toy-transformer")
    found = measured(source, source.encode(TEXTS[:2]))
    counted = {name for at, name in enumerate(NAMES) if found.counts[..., at].any()}
    assert {"entropy", "entropy_share", "confidence", "first", "sink"} <= counted
    assert not counted & {*["self", "previous", "next", "same_word", "induction", "distance"]}
    assert not [name for name in counted if name.startswith(("offset", "peak"))]
