"""How often a head of random weights has an established role: never, if the claim means anything.

Usage: python tests/benchmarks/false_roles.py TOKENIZER [--models 60] [--sentences FILE]

Models of random weights, of four shapes and each with seeds of its own, go through `compare_heads` as any other model:
the sentences that ship with their relations, the usual thresholds, the usual controls. Printed are, for each shape, the
share of models with any established role, beside its Monte Carlo error (Wilson's 95% interval), and which roles these
were; and the same where no role of a measure asks for any least value, which shows what the controls alone hold back.
TOKENIZER is a folder with a WordPiece tokenizer, such as that of any BERT.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from attnviz.capture.source import as_source, open_source
from attnviz.heads.api import TREEBANK
from attnviz.heads.capture.survey import Surveyor
from attnviz.heads.compare import compare
from attnviz.heads.measures import MEASURES
from attnviz.heads.settings import SurveySettings
from attnviz.heads.tally import wilson
from attnviz.storage.corpora.corpus import read_corpus

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST_SEED = 1000
"""Seeds of the models that are tested, far from those of the controls."""

SIZES: dict[str, Any] = {
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "intermediate_size": 96,
}


def bert(n_words: int) -> Any:
    """A small BERT."""
    from transformers import BertConfig, BertModel

    return BertModel(BertConfig(vocab_size=n_words, **SIZES))


def gpt2(n_words: int) -> Any:
    """A small GPT-2."""
    from transformers import GPT2Config, GPT2Model

    return GPT2Model(GPT2Config(vocab_size=n_words, n_embd=48, n_layer=3, n_head=6))


def llama(n_words: int) -> Any:
    """A small Llama."""
    from transformers import LlamaConfig, LlamaModel

    return LlamaModel(LlamaConfig(vocab_size=n_words, **SIZES))


SHAPES: dict[str, Callable[[int], Any] | None] = {
    "toy-random": None,
    "BERT": bert,
    "GPT-2": gpt2,
    "Llama": llama,
}


Found = tuple[list[str], list[str]]
"""The roles that are established of a model, and those that are without thresholds."""


def established(shape: str, seed: int, tokenizer: Any, sentences: str | None) -> Found:
    """The roles that are established of a model of random weights."""
    make = SHAPES[shape]
    if make is None:
        source = open_source(f"toy-random:seed={seed}")
    else:
        torch.manual_seed(FIRST_SEED + seed)
        source = as_source(make(len(tokenizer)).eval(), tokenizer)
    surveyor = Surveyor([source], SurveySettings())
    survey = surveyor.add_controls(surveyor.measure_all(read_corpus(sentences or TREEBANK)).whole())
    low = tuple(
        item if item.role is None else replace(item, role=replace(item.role, threshold=1e-9))
        for item in MEASURES
    )
    every = compare(survey, corpus=""), compare(survey, corpus="", entries=low)
    names = [
        sorted({role.name for head in one.heads for role in head.roles if role.established})
        for one in every
    ]
    return names[0], names[1]


def main() -> None:
    """Measure, and print a table."""
    from transformers import AutoTokenizer

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tokenizer")
    parser.add_argument("--models", type=int, default=60, help="of each shape")
    parser.add_argument(
        "--sentences", default=None, help="a file of sentences, instead of those that ship"
    )
    given = parser.parse_args()
    tokenizer = AutoTokenizer.from_pretrained(given.tokenizer)
    every: list[Found] = []
    roles = Counter[str]()
    print("| shape | models | with an established role | without thresholds |\n|---|---|---|---|")
    for shape in SHAPES:
        start = time.process_time()
        found = [
            established(shape, seed, tokenizer, given.sentences) for seed in range(given.models)
        ]
        every += found
        roles.update(role for one in found for role in one[0])
        roles.update(f"{role} without thresholds" for one in found for role in one[1])
        print(_row(shape, found), f"({time.process_time() - start:.0f} s)", flush=True)
    print(_row("all", every))
    print(*(f"{role}: {n}" for role, n in roles.most_common()), sep="\n")


def _row(shape: str, found: list[Found]) -> str:
    cells = []
    for which in (0, 1):
        n = sum(bool(one[which]) for one in found)
        low, high = (100 * max(end, 0.0) for end in wilson(n / len(found), len(found)))
        cells.append(f"{n} ({100 * n / len(found):.1f}%, {low:.1f} to {high:.1f}%)")
    return f"| {shape} | {len(found)} | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
