"""How good the shipped models are on sentences that nobody looked at while they were made.

Usage: python tests/benchmarks/unseen.py [--pairs 1000]

The quality that `attnviz models` shows is measured on 500 sentences of the test split, and these were seen while
recipes were chosen. Here are three other draws of that split.
"""

from __future__ import annotations

import argparse
from itertools import islice

from attnviz.models.language import splits
from attnviz.models.language_models import LanguageEncoder
from attnviz.models.training import files, measure

SEEDS = (101, 102, 103)


def main() -> None:
    """Print a line for each model and draw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=1000)
    n = parser.parse_args().pairs
    for name, kind, of in (
        ("toy", "reference", ""),
        ("toy-ko", "reference", ""),
        ("toy-ko", "own", "자기: "),
    ):
        card, model = files.load_home_built(name)
        assert isinstance(model, LanguageEncoder)
        head = int(card.quality[f"{of}reference layer"]), int(card.quality[f"{of}reference head"])
        for seed in SEEDS:
            found = list(islice(splits.sentences("test", seed, kind, model.config.language), n))
            right, turns = (
                float(measure.reference_accuracy(model, found)[head]),
                measure.accuracy_when_swapped(model, head, found),
            )
            print(
                f"{name}, {kind}, draw {seed}: right {right:.1%}, turns {turns:.1%}",
                flush=True,
            )
    for name in ("toy-seq2seq", "toy-transformer"):
        card, translator = files.load_home_built(name)
        assert isinstance(translator, measure.Translator)
        head = int(card.quality["alignment layer"]), int(card.quality["alignment head"])
        errors = []
        for seed in SEEDS:
            pairs = list(islice(splits.pairs("test", seed), n))
            errors.append(float(measure.alignment_errors(translator, pairs)[head]))
            exact = float(measure.hits(translator, pairs).exact.double().mean())
            print(
                f"{name}, draw {seed}: without a fault {exact:.1%}, alignment error {errors[-1]:.1%}",
                flush=True,
            )
        print(f"{name}: alignment error {sum(errors) / len(errors):.1%} in the mean", flush=True)


if __name__ == "__main__":
    main()
