"""The roles that heads have on the shipped sentences, on other treebanks, and how the text of each differs.

Usage: python tests/benchmarks/treebanks.py FILE.conllu... [-m MODEL] [-n 300] [--shipped FILE.conllu]

Prints two tables. The first is of the text: how long and deep sentences are, how far words are from what they depend
on. The second has a line for every role that a relation between words gives a head, established on the shipped
sentences: its score there with its 95% interval, and what the same head scores on a sample of each other treebank.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from random import Random
from statistics import mean, median
from typing import TYPE_CHECKING

import conllu

from attnviz.capture.source import open_source
from attnviz.heads.api import TREEBANK
from attnviz.heads.capture.survey import Surveyor
from attnviz.heads.compare import compare
from attnviz.heads.relations import rule_of
from attnviz.heads.settings import SurveySettings
from attnviz.storage.corpora.corpus import read_corpus
from attnviz.text.corpus import COREFERENCE, CorpusLine, universal
from attnviz.text.messages import _

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from attnviz.capture.sources import Source
    from attnviz.heads.relations import Relations

RELATIONS = "punct case det nsubj amod advmod obj obl conj nmod cc compound mark aux advcl cop parataxis ccomp acl"


def read(path: Path, n: int | None = None) -> list[CorpusLine]:
    """The sentences of a treebank, or so many of them drawn with a fixed seed."""
    lines = [line for line in read_corpus(path) if isinstance(line, CorpusLine)]
    return lines if n is None or n >= len(lines) else Random(0).sample(lines, n)


def depth(heads: Sequence[int], word: int) -> int:
    """How many words are above a word in the tree."""
    steps = 0
    while (word := heads[word]) >= 0:
        steps += 1
    return steps


def share(true: Iterable[bool]) -> str:
    """Return the share in percent, such as ``12%``."""
    return f"{100 * mean(true):.0f}%"


def text(path: Path, lines: Sequence[CorpusLine]) -> dict[str, str]:
    """The figures of a treebank's text."""
    with path.open(encoding="utf-8") as file:
        sentences = {one.metadata.get("text"): one for one in conllu.parse_incr(file)}
    parses = [
        [word for word in sentences[line.text] if isinstance(word["id"], int)] for line in lines
    ]
    # The heads of words; -1 of the root.
    trees = [[word["head"] - 1 for word in parse] for parse in parses]
    sizes = [len(tree) for tree in trees]
    found = [link for line in lines if line.annotated is not None for link in line.annotated.links]
    far = [abs(link.query - link.key) for link in found if link.relation != COREFERENCE]
    refer = [link.query - link.key for link in found if link.relation == COREFERENCE]
    names = Counter(universal(word["deprel"]) for parse in parses for word in parse)
    roots = [tree[0] < 0 for tree in trees]
    rows = {
        "sentences": f"{len(trees):,}",
        "words of a sentence, mean (median)": f"{mean(sizes):.1f} ({median(sizes):.0f})",
        "sentences of 1 to 5 words": share(size <= 5 for size in sizes),
        "6 to 14": share(5 < size < 15 for size in sizes),
        "15 to 35": share(15 <= size <= 35 for size in sizes),
        "more than 35": share(size > 35 for size in sizes),
        "depth of the tree, mean": f"{mean(max(depth(tree, w) for w in range(len(tree))) for tree in trees):.1f}",
        "the first word is the root": share(roots),
        "words from one to what it depends on, mean": f"{mean(far):.2f}",
        "next to it": share(one == 1 for one in far),
        "farther than 5 words": share(one > 5 for one in far),
        "pronouns and later mentions, a sentence": f"{len(refer) / len(trees):.2f}",
        "words back to the mention before, median": f"{median(refer):.0f}" if refer else "",
    }
    return rows | {
        f"`{name}`": f"{100 * names[name] / sum(sizes):.1f}%" for name in RELATIONS.split()
    }


def measured(lines: Sequence[CorpusLine], source: Source) -> Relations:
    """Measure every head on a treebank."""
    found = Surveyor([source], SurveySettings(controls=0)).measure_all(lines).whole().relations
    assert found is not None
    return found


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("-n", type=int, default=300)
    parser.add_argument("--shipped", type=Path, default=TREEBANK)
    asked = parser.parse_args()
    names = ["shipped", *(path.stem for path in asked.files)]
    banks = [read(asked.shipped), *(read(path, asked.n) for path in asked.files)]
    rows = [
        text(path, bank) for path, bank in zip([asked.shipped, *asked.files], banks, strict=True)
    ]
    print("|", " | ".join(["", *names]), "|\n|" + "---|" * (len(names) + 1))
    for what in rows[0]:
        print("|", " | ".join([what, *(row[what] for row in rows)]), "|")

    source = open_source(asked.model)
    surveyor = Surveyor([source], SurveySettings())
    shipped = surveyor.measure_all(banks[0]).whole()
    made = compare(surveyor.add_controls(shipped), corpus=names[0])
    others = [measured(bank, source) for bank in banks[1:]]
    rules = {
        rule_of(name, reverse=way > 0).name: (name, way)
        for one in others
        for name in one.by_name
        for way in (0, 1)
    }
    print(
        "\n|",
        " | ".join(["role", "head", "shipped", *names[1:]]),
        "|\n|" + "---|" * (len(names) + 2),
    )
    inside = Counter[str]()
    for head in made.heads:
        for role in head.roles:
            if not role.established or role.name not in rules:
                continue
            name, way = rules[role.name]
            cells = [
                _(role.rule.short),
                head.name,
                f"{role.score:.2f} ({role.low:.2f} to {role.high:.2f})",
            ]
            for other, bank in zip(others, names[1:], strict=True):
                if name not in other.by_name:
                    cells.append("")
                    continue
                counted = other.by_name[name]
                n = int(counted.counts[:, 0].sum())
                score = int(counted.hits[:, 0, way, head.layer, head.head].sum()) / max(n, 1)
                where = "below" if score < role.low else "above" if score > role.high else "within"
                inside[f"{bank} {where}"] += 1
                cells.append(f"{score:.2f} {where} (n = {n})")
            print("|", " | ".join(cells), "|")
    print("\n" + "; ".join(f"{what} {n}" for what, n in sorted(inside.items())))


if __name__ == "__main__":
    main()
