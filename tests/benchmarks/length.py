"""Time and memory of a long input: the pooled picture and receipt of one layer, compared with fused attention.

The second line of each is with the 8 strongest links of each row and all statistics, as records have them.

Usage: python tests/benchmarks/length.py [--rows N] [TOKENS ...]

With --rows the weights are computed in blocks of so many rows, other than usual.

One layer, 12 heads of 64, random numbers, one thread. Each line is one run in a process of its own: the seconds of the
processor that fused attention alone takes, those of weights, picture (512 x 512 cells of each head) and receipt, both
together as a multiple of the first, which is what the layer costs with attnviz looking on; and the memory beyond the
inputs, in MB. Other programs disturb seconds of the processor less than those of the clock.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial

import torch
from torch.nn.functional import scaled_dot_product_attention

from attnviz.capture import stream
from attnviz.capture.observers import Batch, ExactRows, WeightCollector
from attnviz.capture.sources.tracing import attend_fused
from attnviz.capture.stream import ForwardPass, Layer, Scoring

HEADS, WIDTH, ROUNDS = 12, 64, 3


def peak() -> float:
    """The most memory so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@torch.inference_mode()
def measure(n_tokens: int, *, causal: bool, links: bool) -> None:
    """Run one layer, and print a row."""
    if not links:
        ExactRows.add = lambda *_: None  # type: ignore[method-assign]
    torch.set_num_threads(1)
    torch.manual_seed(0)
    query, key, value = (torch.randn(1, HEADS, n_tokens, WIDTH) for _ in range(3))
    before, rounds = peak(), []
    for _ in range(ROUNDS):
        start = time.process_time()
        output = scaled_dot_product_attention(query, key, value, is_causal=causal)
        middle = time.process_time()
        real = torch.ones(1, n_tokens, dtype=torch.bool)
        batch = Batch(sentences=(), inputs={}, real=real, real_keys=real)
        keep = WeightCollector(memory=4 * HEADS * 512**2 + 64 * HEADS * n_tokens)
        run = ForwardPass(batch=batch, observers=[keep], native="sdpa")
        output, scoring = output.transpose(1, 2), Scoring(causal=causal)
        layer = Layer(query=query, key=key, value=value, output=output, scoring=scoring)
        run.add_layer(replace(layer, attend=partial(attend_fused, query, key, None)))
        keep.weights(0)
        keep.exact(0, (), ())
        run.receipt("")
        rounds.append((middle - start, time.process_time() - middle))
    fused, own = map(min, zip(*rounds, strict=True))
    name = f"{n_tokens:,}{', causal' * causal}{', links' * links}"
    print(
        f"| {name} | {fused:.2f} s | {own:.2f} s | {(fused + own) / fused:.2f} | {peak() - before:.0f} MB |"
    )


def main() -> None:
    """Measure each length in a process of its own."""
    if sys.argv[1:2] == ["--one"]:
        if "--rows" in sys.argv:
            stream.BLOCK_ROWS = int(sys.argv[-1])
        measure(int(sys.argv[2]), causal="causal" in sys.argv, links="links" in sys.argv)
        return
    print(
        "| tokens | fused, no weights | picture and receipt | together / fused | memory |\n|---|---|---|---|---|"
    )
    given = sys.argv[1:]
    rows = given[:2] if given[:1] == ["--rows"] else []
    for n_tokens in given[len(rows) :] or ["2048", "8192", "32768"]:
        for more in ([], ["links"], ["causal"], ["causal", "links"]):
            subprocess.run([sys.executable, __file__, "--one", n_tokens, *more, *rows], check=True)


if __name__ == "__main__":
    main()
