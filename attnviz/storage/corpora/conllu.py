"""Treebanks in CoNLL-U, the format of Universal Dependencies (https://universaldependencies.org/format.html)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from attnviz.storage.corpora.conllu_entities import mentions
from attnviz.storage.corpora.conllu_lines import Block, Row, blocks, named, quoted, take_apart
from attnviz.text.corpus import BadLine, Parse, Word

_NUMBER = re.compile(r"0|[1-9][0-9]{0,5}")


def read_conllu(lines: Iterable[str | BadLine]) -> Iterator[Parse | BadLine]:
    """The sentences of a treebank, one after another.

    Args:
        lines: every line of the file, with or without its end; a line that could not be read stands as what is wrong
            with it.

    Yields:
        Each sentence; in place of one that is malformed, the first thing that is wrong with it.
    """
    for block in blocks(lines):
        parsed = parse(block)
        yield block.faults[0] if parsed is None else parsed


def parse(block: Block) -> Parse | None:
    """A sentence from its lines; None where they are malformed, and the block then says why."""
    if not take_apart(block):
        return None
    heads = _heads(block)
    text, spans = _spans(block)
    found = mentions(block, heads)
    if block.faults:
        return None
    words = [
        Word(form=row.form, span=span, upos=row.columns[3], head=head, relation=row.columns[7])
        for row, span, head in zip(block.words(), spans, heads, strict=True)
    ]
    return Parse(text=text, words=tuple(words), mentions=tuple(found), line=block.line)


def _heads(block: Block) -> list[int]:
    """The number of each word's head, from 0; -1 for the root."""
    words = block.words()
    heads = []
    root: Row | None = None
    before = len(block.faults)
    for row in words:
        name, relation = row.columns[6], row.columns[7]
        heads.append(int(name) - 1 if _NUMBER.fullmatch(name) else -1)
        if not _NUMBER.fullmatch(name):
            block.fault(row.number, f"the head of {named(row)} is {quoted(name)}, which is no number")
        elif heads[-1] >= len(words):
            block.fault(
                row.number, f"the head of {named(row)} is {name}, but the last word of the sentence is {len(words)}"
            )
        elif name == "0" and root is not None:
            block.fault(row.number, f"a second root, {named(row)}, after {named(root)}")
        elif name == "0":
            root = row
        if relation in {"", "_"}:
            block.fault(row.number, f"{named(row)} has no relation to its head")
    if len(block.faults) == before:
        circle = _circle(heads)
        if root is None:  # there is a circle too, which says less
            block.fault(block.line, "the sentence has no root: the head of one word must be 0")
        elif circle:
            names = " -> ".join(str(place + 1) for place in (*circle, circle[0]))
            block.fault(words[circle[0]].number, f"the heads run in a circle: {names}")
    return heads


def _circle(heads: list[int]) -> list[int]:
    """Words that depend on one another in a circle; empty where there are none."""
    done = [False] * len(heads)
    for start in range(len(heads)):
        path: dict[int, None] = {}
        place = start
        while place >= 0 and not done[place] and place not in path:
            path[place] = None
            place = heads[place]
        if place in path:
            whole = list(path)
            return whole[whole.index(place) :]
        for seen in path:
            done[seen] = True
    return []


def _spans(block: Block) -> tuple[str, list[tuple[int, int]]]:
    """The sentence's text, and where each word lies in it."""
    tokens: list[tuple[Row, list[Row]]] = []
    for row in block.rows:
        if row.kind == "range" or (row.kind == "word" and not (tokens and row.last <= tokens[-1][0].last)):
            tokens.append((row, [row] if row.kind == "word" else []))
        elif row.kind == "word":
            tokens[-1][1].append(row)
    gaps = ["" if row.misc("SpaceAfter") == "No" else " " for row, _ in tokens]
    if "text" in block.comments:
        line, text = block.comments["text"]
    else:
        line, text = block.line, "".join(row.form + gap for (row, _), gap in zip(tokens, gaps, strict=True)).rstrip()
    spans: list[tuple[int, int]] = []
    place = 0
    for (row, words), gap in zip(tokens, gaps, strict=True):
        if not text.startswith(row.form, place):
            there = quoted(text[place : place + len(row.form)]) if text[place:] else "nothing more"
            block.fault(row.number, f"the text (line {line}) has {there} where {named(row)} should be")
            return text, []
        spans += _shared(row.form, place, [word.form for word in words])
        place += len(row.form)
        rest = text[place:].lstrip()
        space = len(text) - place - len(rest)
        is_last = row is tokens[-1][0]
        if rest and not is_last and bool(space) != bool(gap):
            block.fault(
                row.number,
                f"the text (line {line}) has a space after {named(row)}, but its last column says SpaceAfter=No"
                if space
                else f"the text (line {line}) has no space after {named(row)}, but its last column does not say "
                "SpaceAfter=No",
            )
            return text, []
        place += space
    if text[place:]:
        block.fault(line, f"the text goes on after the last word: {quoted(text[place:])}")
    return text, spans


def _shared(whole: str, place: int, forms: list[str]) -> list[tuple[int, int]]:
    """Where the words lie that are written as one: each has its own letters, or all have the whole."""
    joined = "".join(forms)
    if len(joined) != len(whole) or joined.casefold() != whole.casefold():
        return [(place, place + len(whole))] * len(forms)
    ends = [place]
    for form in forms:
        ends.append(ends[-1] + len(form))
    return list(pairwise(ends))
