"""How often `attnviz attribute` gives the right verdict where it is known, and what it costs.

Usage: python tests/benchmarks/attributions.py [NUMBER, else 200] [MODEL]

- a decoder made by hand, in random layouts: the verdict of each kind of token;
- the toy, on sentences that it was not trained on: whether the noun that "it" refers to is used;
- models with random weights: the share of judged tokens that are used, which should be none;
- with a MODEL, its changes for the mean vector of sentences of the shipped treebank, beside those of hidden tokens.
"""

from __future__ import annotations

import collections
import sys
import time
from itertools import islice

import numpy as np

import attnviz
from attnviz.attributions.build import build
from attnviz.capture.sources.home_built import CircuitSource
from attnviz.models.circuit import RIGHT
from attnviz.models.language import splits

USED = ("used", "used together", "used through other words")
N = int(sys.argv[1]) if sys.argv[1:] else 200
MODEL = sys.argv[2] if sys.argv[2:] else None


def circuits() -> None:
    """The seven kinds of tokens of the circuit."""
    right: collections.Counter[str] = collections.Counter()
    for seed in range(N):
        source = CircuitSource(seed)
        found = build(source, "a layout", of="next", judged=20)
        for kind, verdict in zip(source.order, found.verdicts, strict=True):
            right[kind] += kind in RIGHT and verdict is not None and verdict.name == RIGHT[kind]
    for kind, name in RIGHT.items():
        print(f"circuit, {kind} ({name}): {right[kind]} of {N}", flush=True)


def pronouns() -> None:
    """The noun of “it” in sentences of the test split."""
    source = attnviz.open_source("toy")
    counts: collections.Counter[str] = collections.Counter()
    for sentence in islice(splits.sentences("test", 101, "reference", "english"), N):
        reference = sentence.reference
        assert reference is not None
        found = build(source, " ".join(sentence.words), of=str(reference.pronoun))
        verdict = found.verdicts[reference.noun]
        counts["used"] += verdict is not None and verdict.name in USED
        counts["largest"] += found.chosen == reference.noun
    print(
        f"toy, “it”: its noun is used in {counts['used']}, the largest cut in {counts['largest']} of {N}"
    )


def random_weights() -> None:
    """Tokens of untrained models that are called used."""
    judged: collections.Counter[bool] = collections.Counter()
    texts = [
        " ".join(s.words) for s in islice(splits.sentences("test", 102, "reference", "english"), 8)
    ]
    for seed in range(max(1, N // 20)):
        source = attnviz.open_source("toy").untrained(seed)
        for text in texts:
            for verdict in build(source, text, of="0").verdicts:
                if verdict is not None:
                    judged[verdict.name in USED] += 1
    print(f"random weights: {judged[True]} of {judged.total()} judged tokens are used", flush=True)


def agreement(model: str) -> None:
    """Rank agreement of cuts everywhere, and of weights, with hidden tokens; times."""
    from scipy.stats import spearmanr

    source = attnviz.open_source(model)
    cuts, weights = [], []
    since = time.perf_counter()
    for sentence in islice(splits.sentences("test", 103, "reference", "english"), 10):
        found = build(source, " ".join(sentence.words), of="sentence", judged=0)
        cuts.append(spearmanr(found.everywhere, found.hidden).statistic)
        weights.append(spearmanr(found.weight, found.hidden).statistic)
    seconds = time.perf_counter() - since
    print(
        f"{source.name}: agreement with hidden tokens: cuts {np.mean(cuts):.2f}, weights {np.mean(weights):.2f}; "
        f"{seconds / len(cuts):.1f} s a sentence"
    )


circuits()
pronouns()
random_weights()
if MODEL is not None:
    agreement(MODEL)
