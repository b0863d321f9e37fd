"""How often a 95% interval holds the truth: samples drawn from many real sentences, whose truth is known.

Usage: python tests/benchmarks/coverage.py MODEL TREEBANK.conllu... [--draws 200]

Every sentence of the treebanks is measured once; together they are the population, and what they come to is the truth.
Then samples are drawn from it with replacement, each sentence into a group at random, and given to the very functions
that `compare_heads` takes its intervals from. Printed is, for each measure and number of sentences, in how many percent
of the samples the interval holds the truth, in the mean over heads; and for relations the same of the best head of
each. The Monte Carlo error of one head is 1.5 points for 200 draws. In brackets, where it is more than a tenth: in how
many percent of the samples few sentences carry the measure (`attnviz.heads.roles.UNEVEN`), so that no role may be
established by it.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from attnviz.capture.batching import in_batches, join
from attnviz.capture.source import open_source
from attnviz.heads import relations, tally
from attnviz.heads.capture.measure import LinkFinder
from attnviz.heads.capture.survey import TOKENS, Runner
from attnviz.heads.compare import estimates_of
from attnviz.heads.measures import MEASURES, measures_of
from attnviz.heads.roles import UNEVEN
from attnviz.heads.settings import SurveySettings
from attnviz.storage.corpora.corpus import read_corpus
from attnviz.text.corpus import CorpusLine

if TYPE_CHECKING:
    from collections.abc import Sequence

SIZES = (5, 10, 20, 50, 116, 400)


class Population:
    """Every sentence of some treebanks, measured."""

    def __init__(self, model: str, paths: Sequence[str]) -> None:
        source = open_source(model)
        runner = Runner(source, SurveySettings(), MEASURES, TOKENS)
        self.names = [one.name for one in measures_of()]
        sums, counts = [], []
        self.links: list[Any] = []
        lines = [
            line
            for path in paths
            for line in read_corpus(path, kind="conllu")
            if isinstance(line, CorpusLine)
        ]
        for together in in_batches(
            {at: runner.encode(line.text) for at, line in enumerate(lines)}, TOKENS
        ):
            batch, find = (
                join(together.values()),
                LinkFinder([lines[at].annotated for at in together]),
            )
            measured, _receipt = runner._stream(batch, [find])
            sums.append(measured.sums.astype(np.float32))
            counts.append(measured.counts.astype(np.float32))
            self.links += find.result()
        self.sums, self.counts = np.concatenate(sums), np.concatenate(counts)[:, :, None]

    def __len__(self) -> int:
        return len(self.sums)


def of_measures(
    population: Population, draws: int, rng: np.random.Generator
) -> dict[str, list[str]]:
    """By measure and number of sentences, how often the interval holds the truth."""
    truth = population.sums.sum(axis=0, dtype=np.float64) / population.counts.sum(
        axis=0, dtype=np.float64
    )
    table: dict[str, list[str]] = {name: [] for name in population.names}
    rows = population.names.index("entropy")
    for size in SIZES:
        held, known, uneven = np.zeros((3, len(population.names)))
        for _ in range(draws):
            chosen, groups = (
                rng.integers(len(population), size=size),
                rng.integers(tally.GROUPS, size=size),
            )
            sums, counts = (
                tally.sum_groups(values[chosen], groups)
                for values in (population.sums, population.counts)
            )
            tallied = tally.Tally(sums=sums, counts=counts, n_sentences=size)
            found, spread = estimates_of(tallied, measures_of()), tally.effective(counts)
            there = np.isfinite(found.low)
            held += (there & (found.low <= truth) & (truth <= found.high)).sum(axis=(0, 1))
            known += there.sum(axis=(0, 1))
            uneven += (spread / spread[..., [rows]] < UNEVEN).mean(axis=(0, 1))
        for name, hits, n, often in zip(population.names, held, known, uneven / draws, strict=True):
            table[name].append(
                f"{100 * hits / max(n, 1):.0f}" + f" ({100 * often:.0f})" * bool(often > 0.1)
            )
    return table


def of_relations(
    population: Population, draws: int, rng: np.random.Generator
) -> dict[str, list[str]]:
    """Coverage for each frequent relation, for the head that finds it best, on the half that scores."""
    names = [name for one in population.links for name in one.names]
    found = relations.count_links(list(enumerate(population.links)), *population.sums.shape[1:3])
    table: dict[str, list[str]] = {}
    for name, counted in found.by_name.items():
        if names.count(name) < 500:
            continue
        whole = counted.hits[:, relations.WHOLE].sum(axis=0)
        best = np.unravel_index(int(whole.argmax()), whole.shape)
        which = [[link == name for link in one.names] for one in population.links]
        counts = np.array([sum(one) for one in which])
        right = [
            one.hits[mine][(slice(None), *best)].sum()
            for one, mine in zip(population.links, which, strict=True)
        ]
        hits, truth = np.array(right), sum(right) / counts.sum()
        table[name] = []
        for size in SIZES:
            held = known = 0
            for _ in range(draws):
                chosen = rng.integers(len(hits), size=max(1, size // relations.HALVES))
                groups = rng.integers(relations.HALF_GROUPS, size=len(chosen))
                n = tally.sum_groups(counts[chosen].astype(float), groups)
                if n[0]:
                    _, low, high = tally.share(
                        tally.sum_groups(hits[chosen].astype(float), groups), n
                    ).at()
                    held, known = held + (low <= truth <= high), known + 1
            table[name].append(f"{100 * held / max(known, 1):.0f}")
    return table


def main() -> None:
    """Measure, and print two tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("treebanks", nargs="+")
    parser.add_argument("--draws", type=int, default=200)
    given = parser.parse_args()
    torch.set_num_threads(1)
    population, rng = Population(given.model, given.treebanks), np.random.default_rng(0)
    for what, measured in (("measure", of_measures), ("relation", of_relations)):
        print(f"{len(population):,} sentences, {given.draws} samples of each size")
        print(f"| {what} | {' | '.join(map(str, SIZES))} |\n|---|{'---|' * len(SIZES)}")
        for name, cells in measured(population, given.draws, rng).items():
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
