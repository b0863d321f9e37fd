"""A corpus on two workers of Ray, beside two plain processes that measure one half of its lines each.

Usage: python tests/benchmarks/ray_workers.py [--sentences 6000] [-m toy]

The sentences are those of the shipped treebank, one after another, each time with one word less. Two plain
commands run at once, of which the slower counts; then one command runs on two workers. Ray's own start, measured with
a corpus of two sentences less the same corpus without Ray, is subtracted: a cluster is there already.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING

from attnviz.heads.api import TREEBANK
from attnviz.storage.corpora.corpus import read_corpus
from attnviz.text.corpus import CorpusLine

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST = 1.3  # times the slower of two plain processes


def sentences() -> Iterator[str]:
    """Yield the shipped sentences without end, each time without one more of their first words."""
    texts = [line.text for line in read_corpus(TREEBANK) if isinstance(line, CorpusLine)]
    for n_cut in count():
        for text in texts:
            words = text.split()
            yield " ".join(words[n_cut % len(words) :])


def seconds(commands: Sequence[Sequence[str]], folder: Path) -> float:
    """Return how long it takes until all of these commands, started at once, have ended."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    start = time.perf_counter()
    running = [
        subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
        for command in commands
    ]
    if any(process.wait() for process in running):
        sys.exit("a command failed")
    return time.perf_counter() - start


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sentences", type=int, default=6000)
    parser.add_argument("-m", "--model", default="toy")
    options = parser.parse_args()

    def command(corpus: str, *more: str) -> list[str]:
        run = [sys.executable, "-m", "attnviz", "compare-heads", "-m", options.model, "--quiet"]
        return [*run, "--corpus", f"{corpus}.txt", "-o", f"{corpus}.json", *more]

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = [f"{text}\n" for text in islice(sentences(), options.sentences)]
        half = len(lines) // 2
        parts = {"all": lines, "one": lines[:half], "other": lines[half:], "few": lines[:2]}
        for part, of_part in parts.items():
            (folder / f"{part}.txt").write_text("".join(of_part), encoding="utf-8")
        ray = ("--ray", "local")
        start = seconds([command("few", *ray)], folder) - seconds([command("few")], folder)
        plain = seconds([command("one"), command("other")], folder)
        shared = seconds([command("all", *ray)], folder)
    print(f"| {options.sentences:,} sentences, {options.model} | seconds |\n|---|---|")
    print(f"| two plain processes at once, half of the lines each | {plain:.1f} |")
    print(f"| two workers of Ray | {shared:.1f} |")
    print(f"| Ray's own start | {start:.1f} |")
    print(f"| workers without the start / plain, at most {MOST} | {(shared - start) / plain:.2f} |")


if __name__ == "__main__":
    main()
