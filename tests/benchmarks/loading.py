"""How long loading each shipped model takes, once torch is there. Milliseconds.

Usage: python tests/benchmarks/loading.py
"""

from __future__ import annotations

import time

import torch

TARGET = 50
"""Milliseconds."""


def main() -> None:
    """Print a line for each model, the first with what the import of the loader takes."""
    torch.set_num_threads(1)
    start = time.perf_counter()
    from attnviz.models.registry import trained
    from attnviz.models.training import files

    print(f"import of the loader: {1e3 * (time.perf_counter() - start):.0f} ms")
    for name in trained():
        start = time.perf_counter()
        files.load_home_built(name)
        print(
            f"{name:<22} {1e3 * (time.perf_counter() - start):6.1f} ms   at most {TARGET} ms",
            flush=True,
        )


if __name__ == "__main__":
    main()
