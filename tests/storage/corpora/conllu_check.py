"""A treebank checked beyond what its sentences need to be read.

The rules beyond the format are those of Universal Dependencies, version 2, that hold in every language: its parts of
speech and relations, which way some relations point, and which words nothing depends on
(https://universaldependencies.org/guidelines.html).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from attnviz.storage.corpora.conllu import Row, parse, quote, show_word, split_sentences
from attnviz.text.corpus import BadLine, universal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_PARTS = "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X"
_RELATIONS = (
    "acl advcl advmod amod appos aux case cc ccomp clf compound conj cop csubj dep det discourse dislocated expl fixed "
    "flat goeswith iobj list mark nmod nsubj nummod obj obl orphan parataxis punct reparandum root vocative xcomp"
)

PARTS = frozenset(_PARTS.split())
"""The parts of speech."""

RELATIONS = frozenset(_RELATIONS.split())
"""The relations, without their subtypes."""

RIGHTWARD = frozenset({"appos", "conj", "fixed", "flat", "goeswith"})
"""Relations whose head is the first of the words."""

LEAVES: dict[str, frozenset[str]] = {
    "aux": frozenset({"goeswith", "fixed", "reparandum", "conj", "cc", "punct"}),
    "cop": frozenset({"goeswith", "fixed", "reparandum", "conj", "cc", "punct"}),
    "case": frozenset(
        {"advmod", "obl", "nmod", "goeswith", "fixed", "reparandum", "conj", "cc", "punct", "case"}
    ),
    "mark": frozenset({"advmod", "obl", "goeswith", "fixed", "reparandum", "conj", "cc", "punct"}),
    "cc": frozenset({"advmod", "goeswith", "fixed", "reparandum", "conj", "punct"}),
    "punct": frozenset({"punct"}),
}
"""Relations of words that nothing depends on, but for the relations named here."""

ONCE = ("nsubj", "obj", "iobj", "cop")
"""Relations that a word can have one of; a subtype such as ``nsubj:outer`` is another."""

_FEATURE = re.compile(
    r"[A-Z][A-Za-z0-9]*(?:\[[a-z0-9]+\])?=[A-Z0-9][A-Za-z0-9]*(?:,[A-Z0-9][A-Za-z0-9]*)*"
)


def check_conllu(lines: Iterable[str | BadLine]) -> Iterator[BadLine]:
    """What is wrong with a treebank, each with its line; of a sentence that cannot be read the first mistake alone."""
    seen: dict[str, int] = {}
    for sentence in split_sentences(lines):
        parsed = parse(sentence)
        if isinstance(parsed, BadLine):
            yield parsed
            continue
        found = [
            (sentence.line, f"the sentence has no # {n}")
            for n in ("sent_id", "text")
            if n not in sentence.comments
        ]
        number, name = sentence.comments.get("sent_id", (0, ""))
        if name in seen:
            found.append((number, f"sent_id {quote(name)} is that of line {seen[name]} too"))
        elif number:
            seen[name] = number
        for row in sentence.words():
            found += ((row.number, reason) for reason in _check_word(row))
        found += _check_tree(sentence.words())
        yield from (BadLine(number=number, reason=reason) for number, reason in sorted(found))


def _check_word(row: Row) -> Iterator[str]:
    part, features, head, relation = row.columns[3], row.columns[5], row.columns[6], row.columns[7]
    if part not in PARTS:
        yield f"the part of speech of {show_word(row)} is {quote(part)}: there is no such"
    if universal(relation) not in RELATIONS:
        yield f"the relation of {show_word(row)} is {quote(relation)}: there is no such"
    if (head == "0") != (universal(relation) == "root"):
        yield f"the head of {show_word(row)} is {head} and its relation {quote(relation)}"
    if features != "_":
        names = features.split("|")
        if not all(_FEATURE.fullmatch(name) for name in names):
            yield f"the features of {show_word(row)} are not Name=Value: {quote(features)}"
        elif names != sorted(names, key=str.lower):
            yield f"the features of {show_word(row)} are not in the order of the alphabet"


def _check_tree(rows: list[Row]) -> Iterator[tuple[int, str]]:
    taken: set[tuple[int, str]] = set()
    for place, row in enumerate(rows):
        above, relation = int(row.columns[6]) - 1, universal(row.columns[7])
        if above < 0:
            continue
        head = rows[above]
        if relation in RIGHTWARD and above > place:
            yield (
                row.number,
                f"{show_word(row)} stands before its head, which {relation} does not allow",
            )
        leaf = universal(head.columns[7])
        if leaf in LEAVES and relation not in LEAVES[leaf]:
            yield (
                row.number,
                f"{show_word(row)} depends on {show_word(head)}, which is {quote(leaf)}",
            )
        if relation in ONCE and not row.columns[7].endswith(":outer"):
            if (above, relation) in taken:
                yield row.number, f"{show_word(head)} has a second {relation}, {show_word(row)}"
            taken.add((above, relation))
