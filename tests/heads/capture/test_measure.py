"""Heads measured in models whose rows see little: causal ones, sliding windows, sinks, fewer key heads than heads."""

from __future__ import annotations

import numpy as np
import pytest

from attnviz.capture.observers import WeightCollector
from attnviz.heads.capture.measure import MeasureCollector
from attnviz.heads.measures import measures_of
from tests.fixtures.zoo import ROTARY, SENTENCES, Zoo
from tests.heads.by_formula import every, reach


@pytest.mark.parametrize(
    ("family", "windows"),
    [("gpt2", ()), ("llama", ()), ("mistral", (0, 1, 2)), ("gemma2", (0, 2)), ("gpt_oss", (0, 2))],
)
def test_measures_know_what_a_row_sees(family: str, windows: tuple[int, ...], zoo: Zoo) -> None:
    """Each measure equals its formula, entropy as a share of what a window lets a row see."""
    source = zoo.source(family)
    batch = source.encode(SENTENCES[:3])
    keep, observer = WeightCollector(), MeasureCollector()
    source.stream(batch, [keep, observer])
    found = observer.result()
    n_layers, n_heads = found.sums.shape[1:3]
    for index, sentence in enumerate(batch.sentences):
        weights = keep.weights(index).astype(np.float64)
        n = len(sentence.tokens)
        for layer in range(n_layers):
            sees = reach(
                n, causal=True, window=ROTARY["sliding_window"] if layer in windows else None
            )
            assert all((weights[layer, 0, i] > 0).sum() == len(keys) for i, keys in enumerate(sees))
            for head in range(n_heads):
                for measure, (total, counted) in every(
                    weights[layer, head], sentence.tokens, sees
                ).items():
                    at = [one.name for one in measures_of()].index(measure)
                    assert found.counts[index, layer, at] == counted, (measure, layer)
                    assert (
                        abs(float(found.sums[index, layer, head, at]) - total) / max(counted, 1)
                        < 1e-6
                    ), measure
