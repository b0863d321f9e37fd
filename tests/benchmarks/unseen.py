"""How good the shipped models are on sentences that nobody looked at while they were made.

Usage: python tests/benchmarks/unseen.py [NUMBER, else 1000]

The quality that `attnviz models` shows is measured on 500 sentences of the test split, and these were seen while
recipes were chosen. Here are three other draws of that split.
"""

from __future__ import annotations

import sys
from itertools import islice
from statistics import mean

from attnviz.models.language import splits
from attnviz.models.language_models import LanguageEncoder
from attnviz.models.training import files, measure

SEEDS = (101, 102, 103)
N = int(sys.argv[1]) if sys.argv[1:] else 1000

for name, kind, of in (
    ("toy", "reference", ""),
    ("toy-ko", "reference", ""),
    ("toy-ko", "own", "자기: "),
):
    card, model = files.load_home_built(name)
    assert isinstance(model, LanguageEncoder)
    head = int(card.quality[f"{of}reference layer"]), int(card.quality[f"{of}reference head"])
    for seed in SEEDS:
        found = list(islice(splits.sentences("test", seed, kind, model.config.language), N))
        right = float(measure.reference_accuracy(model, found)[head])
        turns = measure.accuracy_when_swapped(model, head, found)
        print(f"{name}, {kind}, draw {seed}: right {right:.1%}, turns {turns:.1%}", flush=True)
for name in ("toy-seq2seq", "toy-transformer"):
    card, translator = files.load_home_built(name)
    assert isinstance(translator, measure.Translator)
    head = int(card.quality["alignment layer"]), int(card.quality["alignment head"])
    draws = [list(islice(splits.pairs("test", seed), N)) for seed in SEEDS]
    errors = [float(measure.alignment_errors(translator, pairs)[head]) for pairs in draws]
    exact = [float(measure.hits(translator, pairs).exact.double().mean()) for pairs in draws]
    for seed, share, error in zip(SEEDS, exact, errors, strict=True):
        print(f"{name}, draw {seed}: without a fault {share:.1%}, alignment error {error:.1%}")
    print(f"{name}: alignment error {mean(errors):.1%} in the mean", flush=True)
