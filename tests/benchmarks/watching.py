"""Time of a module under `attnviz.watch`, without and with a record, as ratios in one run.

An encoder of torch of BERT's size (6 layers, 12 heads of 64), 8 inputs of 256 tokens, random numbers; beside it what
its weights alone cost, softmax(q k^T) and times v, which a record must compute again for its one input.

    python tests/benchmarks/watching.py
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

import torch
from torch import nn

import attnviz

if TYPE_CHECKING:
    from collections.abc import Callable

    from attnviz.capture.sources.modules import Watched

LAYERS, HEADS, WIDTH, INPUTS, TOKENS, ROUNDS = 6, 12, 64, 8, 256, 9


def seconds(run: Callable[[], object]) -> float:
    """How long a call takes."""
    since = time.perf_counter()
    run()
    return time.perf_counter() - since


@torch.no_grad()
def main() -> None:
    """Plain, watched, and watched with a record, by turns, so that all see the same machine."""
    torch.manual_seed(0)
    torch.backends.mha.set_fastpath_enabled(False)  # so that all three compute alike
    layer = nn.TransformerEncoderLayer(HEADS * WIDTH, HEADS, 4 * HEADS * WIDTH, batch_first=True)
    model = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False).eval()
    x = torch.randn(INPUTS, TOKENS, HEADS * WIDTH)
    q, k, v = torch.randn(3, HEADS, TOKENS, WIDTH)

    def watched() -> Watched:
        with attnviz.watch(model) as seen:
            model(x)
        return seen

    def weights() -> None:
        for _ in range(LAYERS):
            torch.softmax(q @ k.mT * WIDTH**-0.5, dim=-1) @ v

    runs: list[Callable[[], object]] = [lambda: model(x), watched, weights]
    for run in runs:
        run()
    times = [[*(seconds(run) for run in runs), seconds(watched().attention)] for _ in range(ROUNDS)]
    plain, looked_on, least, record = (
        statistics.median(column) for column in zip(*times, strict=True)
    )
    print(f"plain {plain:.3f} s; watched {looked_on:.3f} s, {looked_on / plain:.3f} times")
    print(
        f"a record {record:.4f} s, {record / plain:.3f} of plain; its weights alone {least:.4f} s"
    )


if __name__ == "__main__":
    main()
